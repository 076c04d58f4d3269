"""A GitHub of one's own: real HTTP, real state over a real git repository, checked by the official description.

A response is the official example with the state put in; every request and response is validated, and what is wrong is
kept in `problems`. Rules that the description does not hold are enforced as GitHub does: tokens, permissions, comments
only on lines of the diff, the length of a comment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jwt
from branches import Branches
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from octokit import description
from serving import run_app
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

OWNER, NAME, NUMBER = "octo", "kernels", 7
FULL_NAME = f"{OWNER}/{NAME}"
APP_ID, INSTALLATION, SLUG = "4711", 99, "wavesmith-test"
REPO = "/repos/{owner}/{repo}"


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


def pem(key: rsa.RSAPrivateKey) -> bytes:
    """A private key as GitHub hands it out."""
    form = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


@dataclass
class Fault:
    """An answer that the next matching requests get instead."""

    method: str
    path: str
    status: int
    body: dict[str, Any]
    headers: dict[str, str] = field(default_factory=dict)
    times: int = 1


@dataclass
class GitHub:
    """The server's state. `branches` is the repository; pull request 7 asks to merge `pr` into `main`."""

    branches: Branches
    key: rsa.RSAPrivateKey = field(default_factory=new_key)
    state: str = "open"
    exists: bool = True
    locked: bool = False
    checks: list[dict[str, Any]] = field(default_factory=list)
    annotations: list[dict[str, Any]] = field(default_factory=list)
    comments: list[dict[str, Any]] = field(default_factory=list)
    review_comments: list[dict[str, Any]] = field(default_factory=list)
    reviews: list[dict[str, Any]] = field(default_factory=list)
    resolved: dict[int, str] = field(default_factory=dict)
    """Review comment to the person who resolved its conversation."""
    reactions: list[tuple[int, str]] = field(default_factory=list)
    permissions: dict[str, str] = field(default_factory=lambda: {"writer": "write", "reader": "read"})
    tokens: dict[str, str] = field(default_factory=dict)
    """Token to the login it writes as; an empty login may only read."""
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    on_request: Callable[[str], None] = lambda line: None
    url: str = ""
    _ids: int = 1000

    def next_id(self) -> int:
        self._ids += 1
        return self._ids

    @property
    def head(self) -> str:
        return self.branches.repo.commit("pr").hexsha

    @property
    def base(self) -> str:
        return self.branches.repo.commit("main").hexsha

    def say(self, login: str, body: str) -> int:
        """A person comments on the pull request; returns the comment's id."""
        self.comments.append(_comment(self, login, body))
        return int(self.comments[-1]["id"])

    def commentable(self, path: str, line: int) -> bool:
        """Whether a line is shown in the pull request's diff."""
        start = self.branches.repo.merge_base("main", "pr")[0].hexsha
        diff = self.branches.repo.git.diff("-U3", "-M", start, self.head, "--", path)
        for m in re.finditer(r"^@@ -\S+ \+(\d+)(?:,(\d+))? @@", diff, re.MULTILINE):
            first, count = int(m[1]), int(m[2] or 1)
            if first <= line < first + count:
                return True
        return False


@dataclass
class Call:
    """One request, as a handler sees it."""

    github: GitHub
    method: str
    path: str
    params: dict[str, str]
    query: dict[str, str]
    body: Any
    login: str

    def example(self, status: int, **values: Any) -> tuple[int, Any]:
        """The official example of a response, with values of the state."""
        found = description().example(self.method, self.path, status)
        return status, {**found, **values}


Handler = Callable[[Call], tuple[int, Any]]
_ROUTES: list[tuple[str, str, Handler]] = []


def route(method: str, path: str) -> Callable[[Handler], Handler]:
    def add(handler: Handler) -> Handler:
        _ROUTES.append((method, path, handler))
        return handler

    return add


def problem(message: str) -> dict[str, Any]:
    return {"message": message, "documentation_url": "https://docs.github.com/rest"}


def _user(login: str) -> dict[str, Any]:
    found: dict[str, Any] = description().example("GET", REPO + "/issues/comments/{comment_id}", 200)["user"]
    return {**found, "login": login, "type": "Bot" if login.endswith("[bot]") else "User"}


def _comment(github: GitHub, login: str, body: str) -> dict[str, Any]:
    found = description().example("GET", REPO + "/issues/comments/{comment_id}", 200)
    return {**found, "id": github.next_id(), "body": body, "user": _user(login)}


@route("POST", "/app/installations/{installation_id}/access_tokens")
def _token(call: Call) -> tuple[int, Any]:
    if call.params["installation_id"] != str(INSTALLATION):
        return 404, problem("Not Found")
    token = f"ghs_{call.github.next_id()}"
    call.github.tokens[token] = f"{SLUG}[bot]"
    return call.example(201, token=token)


@route("GET", "/app")
def _app(call: Call) -> tuple[int, Any]:
    return call.example(200, slug=SLUG)


@route("GET", REPO + "/pulls/{pull_number}")
def _pull(call: Call) -> tuple[int, Any]:
    if not call.github.exists:
        return 404, problem("Not Found")
    return 200, _pull_body(call)


def _pull_body(call: Call) -> dict[str, Any]:
    found = description().example("GET", REPO + "/pulls/{pull_number}", 200)
    found |= {"number": NUMBER, "state": call.github.state, "requested_teams": []}  # the example's team lacks a field
    found["head"]["sha"], found["base"]["sha"] = call.github.head, call.github.base
    return dict(found)


@route("GET", REPO + "/pulls")
def _pulls(call: Call) -> tuple[int, Any]:
    (found,) = description().example("GET", REPO + "/pulls", 200)
    found |= {"number": NUMBER, "requested_teams": []}
    found["head"]["sha"] = call.github.head
    return 200, [found] if call.query.get("head") == f"{OWNER}:pr" and call.github.state == "open" else []


@route("GET", REPO + "/compare/{basehead}")
def _compare(call: Call) -> tuple[int, Any]:
    base, head = call.params["basehead"].split("...")
    (common,) = call.github.branches.repo.merge_base(base, head)
    found = description().example("GET", REPO + "/compare/{basehead}", 200)
    found["merge_base_commit"]["sha"] = common.hexsha
    return 200, found


@route("GET", REPO + "/collaborators/{username}/permission")
def _permission(call: Call) -> tuple[int, Any]:
    level = call.github.permissions.get(call.params["username"])
    if level is None:
        return 404, problem("Not Found")
    found = call.example(200, permission=level, role_name=level)[1]
    return 200, {**found, "user": {**found["user"], "role_name": level}}  # which the example lacks


@route("POST", REPO + "/check-runs")
def _new_check(call: Call) -> tuple[int, Any]:
    check = {**call.example(201)[1], "id": call.github.next_id(), **call.body}
    check |= {"conclusion": None, "output": {**check["output"], "title": None, "summary": None, "text": None}}
    call.github.checks.append(check)
    return 201, check


@route("PATCH", REPO + "/check-runs/{check_run_id}")
def _update_check(call: Call) -> tuple[int, Any]:
    check = next(c for c in call.github.checks if str(c["id"]) == call.params["check_run_id"])
    output = dict(call.body.pop("output", {}))
    call.github.annotations += output.pop("annotations", [])
    check.update(call.body)
    check["output"] = {**check["output"], **output}
    return 200, check


@route("GET", REPO + "/issues/{issue_number}/comments")
def _comments(call: Call) -> tuple[int, Any]:
    return 200, call.github.comments


@route("POST", REPO + "/issues/{issue_number}/comments")
def _new_comment(call: Call) -> tuple[int, Any]:
    if len(call.body["body"]) > 65536:
        return 422, {**problem("Validation Failed"), "errors": [{"resource": "IssueComment", "code": "custom"}]}
    if call.github.locked:
        return 403, problem("Unable to create comment because issue is locked.")
    call.github.comments.append(_comment(call.github, call.login, call.body["body"]))
    return 201, call.github.comments[-1]


@route("PATCH", REPO + "/issues/comments/{comment_id}")
def _edit_comment(call: Call) -> tuple[int, Any]:
    comment = next(c for c in call.github.comments if str(c["id"]) == call.params["comment_id"])
    assert comment["user"]["login"] == call.login, "somebody else's comment is edited"
    comment["body"] = call.body["body"]
    return 200, comment


@route("POST", REPO + "/issues/comments/{comment_id}/reactions")
def _react(call: Call) -> tuple[int, Any]:
    call.github.reactions.append((int(call.params["comment_id"]), call.body["content"]))
    return call.example(201, content=call.body["content"])


@route("GET", REPO + "/pulls/{pull_number}/comments")
def _review_comments(call: Call) -> tuple[int, Any]:
    return 200, call.github.review_comments


@route("POST", REPO + "/pulls/{pull_number}/reviews")
def _review(call: Call) -> tuple[int, Any]:
    if not all(_in_diff(call.github, c) for c in call.body["comments"]):
        return 422, {**problem("Unprocessable Entity"), "errors": ["Line could not be resolved"]}
    for c in call.body["comments"]:
        _add_review_comment(call, c)
    call.github.reviews.append(call.body)
    return call.example(200, body=call.body.get("body", ""), commit_id=call.body["commit_id"])


@route("POST", REPO + "/pulls/{pull_number}/comments")
def _one_review_comment(call: Call) -> tuple[int, Any]:
    if not _in_diff(call.github, call.body):
        return 422, {**problem("Validation Failed"), "errors": [{"resource": "x", "field": "line", "code": "invalid"}]}
    return 201, _add_review_comment(call, call.body)


def _in_diff(github: GitHub, comment: dict[str, Any]) -> bool:
    lines = range(comment.get("start_line", comment["line"]), comment["line"] + 1)
    return all(github.commentable(comment["path"], n) for n in lines)


def _add_review_comment(call: Call, comment: dict[str, Any]) -> dict[str, Any]:
    (example,) = description().example("GET", REPO + "/pulls/{pull_number}/comments", 200)
    kept = {k: comment[k] for k in ("path", "line", "body")}
    found = {**example, "id": call.github.next_id(), **kept, "user": _user(call.login)}
    if "start_line" in comment:
        found["start_line"] = comment["start_line"]
    call.github.review_comments.append(found)
    return dict(found)


_GRAPHQL_FIELDS = frozenset(
    """after author body comments endCursor first hasNextPage isResolved login name nodes number owner pageInfo
    pullRequest query repository resolvedBy reviewThreads String Int""".split()  # noqa: SIM905 - reads as the schema
)
"""Names this server answers, each as in GitHub's published GraphQL schema."""


async def _graphql(github: GitHub, request: Request) -> Response:
    """Conversations of the pull request, two a page. Of a bot, GraphQL gives the name without `[bot]`."""
    line = f"POST {request.url.path}"
    github.requests.append(line)
    for fault in github.faults:
        if fault.times > 0 and fault.method == "POST" and re.search(fault.path, request.url.path):
            fault.times -= 1
            return JSONResponse(fault.body, fault.status, fault.headers)
    if _login(github, "POST", "/graphql", request) is None:
        return JSONResponse(problem("Bad credentials"), 401)
    asked = await request.json()
    unknown = set(re.findall(r"[A-Za-z]+", asked["query"])) - _GRAPHQL_FIELDS
    if unknown:
        github.problems.append(f"{line}: unknown {unknown}")
        return JSONResponse({"errors": [{"type": "undefinedField", "message": f"{unknown}"}]})
    wanted = asked["variables"]
    if (wanted["owner"], wanted["name"], wanted["number"]) != (OWNER, NAME, NUMBER) or not github.exists:
        return JSONResponse({"data": {"repository": None}, "errors": [{"type": "NOT_FOUND", "message": "none"}]})
    start = int(wanted["after"] or 0)
    page = github.review_comments[start : start + 2]
    more = start + 2 < len(github.review_comments)
    threads = {
        "pageInfo": {"hasNextPage": more, "endCursor": str(start + 2) if page else None},
        "nodes": [_thread(github, c) for c in page],
    }
    return JSONResponse({"data": {"repository": {"pullRequest": {"reviewThreads": threads}}}})


def _thread(github: GitHub, comment: dict[str, Any]) -> dict[str, Any]:
    by = github.resolved.get(comment["id"])
    author = {"login": comment["user"]["login"].removesuffix("[bot]")}
    first = {"body": comment["body"], "author": author}
    return {
        "isResolved": by is not None,
        "resolvedBy": {"login": by} if by is not None else None,
        "comments": {"nodes": [first]},
    }


def _login(github: GitHub, method: str, path: str, request: Request) -> str | None:
    """Who asks: None for a bad token."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if path.startswith("/app"):
        try:
            claims = jwt.decode(token, github.key.public_key(), algorithms=["RS256"])
        except jwt.InvalidTokenError:
            return None
        return "app" if scheme.lower() == "bearer" and claims["iss"] == APP_ID else None
    return github.tokens.get(token)


def _endpoint(github: GitHub, method: str, path: str, handler: Handler) -> Callable[[Request], Any]:
    async def endpoint(request: Request) -> Response:
        line = f"{method} {request.url.path}"
        github.requests.append(line)
        github.on_request(line)
        for fault in github.faults:
            if fault.times > 0 and fault.method == method and re.search(fault.path, request.url.path):
                fault.times -= 1
                return JSONResponse(fault.body, fault.status, fault.headers)
        login = _login(github, method, path, request)
        raw = await request.body()
        body = json.loads(raw) if raw else None
        if login is None:
            return JSONResponse(problem("Bad credentials"), 401)
        if login == "" and method != "GET":
            return JSONResponse(problem("Resource not accessible by integration"), 403)
        wrong = description().check_request(method, path, body)
        github.problems += [f"{line}: request: {w}" for w in wrong]
        if wrong:
            return JSONResponse(problem(f"Invalid request. {wrong[0]}"), 422)
        call = Call(github, method, path, dict(request.path_params), dict(request.query_params), body, login)
        status, answer = handler(call)
        wrong = description().check_response(method, path, status, answer)
        github.problems += [f"{line}: response {status}: {w}" for w in wrong]
        return JSONResponse(answer, status, {"x-ratelimit-remaining": "4000", "x-ratelimit-limit": "5000"})

    return endpoint


@contextmanager
def serve(github: GitHub) -> Iterator[GitHub]:
    """The server in a thread."""
    routes = [Route(path, _endpoint(github, m, path, h), methods=[m]) for m, path, h in _ROUTES]
    routes.append(Route("/graphql", partial(_graphql, github), methods=["POST"]))
    with run_app(Starlette(routes=routes)) as url:
        github.url = url
        yield github


def git_root(github: GitHub, folder: Path) -> str:
    """Where the repository is fetched from: `.../octo/kernels.git`, as an address."""
    link = folder / OWNER / f"{NAME}.git"
    link.parent.mkdir(parents=True)
    link.symlink_to(github.branches.folder / ".git")
    return f"file://{folder}"
