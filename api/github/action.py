"""The bot inside a GitHub workflow: the same review and the same texts, with the workflow's own token and no server.

What a server keeps in its database, a workflow reads from the pull request: `/wavesmith ignore` comments and resolved
conversations of people with write access. Where the token may only read (a fork's pull request) the review stays in a
file, and a second workflow posts it.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agent.review.finding import Level, ReviewResult
from api.github import render
from api.github.client import Client, connect, may_write
from api.github.engine import FetchError, Unreviewed, confined_options, fetch_commits, has_commit, run_review
from api.github.events import Asked, Decision, PayloadError, Wanted, decide, find_command, parse_command
from api.github.publish import CannotWrite, Publisher
from sandbox.errors import InputError, WavesmithError

MAX_REVIEW_BYTES = 16 * 2**20
_FETCH_TIMEOUT_S = 600.0
DEFAULT_LOGIN = "github-actions[bot]"


@dataclass(frozen=True, slots=True)
class Workflow:
    """What the runner of a workflow tells its steps."""

    event: str
    payload: Any
    repository: str
    token: str
    api_url: str
    git_url: str
    workspace: Path
    login: str = DEFAULT_LOGIN
    summary: Path | None = None
    run: str = ""
    """Address of this run, which holds the log and the artifacts."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run in a workflow ended: the review, if there was one, and whether it was posted."""

    message: str
    result: ReviewResult | None = None
    posted: bool = False


def read_workflow(environment: Mapping[str, str]) -> Workflow:
    """The workflow's event and token. Raises `InputError` outside of a workflow."""
    path, token = environment.get("GITHUB_EVENT_PATH", ""), environment.get("GITHUB_TOKEN", "")
    if not path or not token:
        missing = "GITHUB_TOKEN" if path else "GITHUB_EVENT_PATH"
        remedy = "Run it in a GitHub workflow with env GITHUB_TOKEN: ${{ github.token }}."
        raise InputError(f"--github: {missing} is not set.", remedy=remedy)
    try:
        payload = json.loads(Path(path).read_bytes())
    except (OSError, ValueError, RecursionError):
        raise InputError("the event cannot be read.", file=path, remedy="Check GITHUB_EVENT_PATH.") from None
    summary = environment.get("GITHUB_STEP_SUMMARY")
    return Workflow(
        event=environment.get("GITHUB_EVENT_NAME", ""),
        payload=payload,
        repository=environment.get("GITHUB_REPOSITORY", ""),
        token=token,
        api_url=environment.get("GITHUB_API_URL", "https://api.github.com"),
        git_url=environment.get("GITHUB_SERVER_URL", "https://github.com"),
        workspace=Path(environment.get("GITHUB_WORKSPACE", ".")),
        login=environment.get("WAVESMITH_GITHUB_LOGIN", DEFAULT_LOGIN),
        summary=Path(summary) if summary else None,
        run=_run_address(environment),
    )


def _run_address(environment: Mapping[str, str]) -> str:
    server, repository = environment.get("GITHUB_SERVER_URL", ""), environment.get("GITHUB_REPOSITORY", "")
    number = environment.get("GITHUB_RUN_ID", "")
    return f"{server}/{repository}/actions/runs/{number}" if server.startswith("http") and number else ""


async def answer(workflow: Workflow, options: tuple[str, ...], timeout_s: float, out: Path | None) -> Ended:
    """Do what the workflow's event asks for. `options` are handed to the review."""
    try:
        decision = decide(workflow.event, workflow.payload)
    except PayloadError as e:
        raise InputError(f"the event cannot be used: {e}.", remedy="Run on pull_request or issue_comment.") from None
    async with connect(workflow.api_url, workflow.token) as client:
        match decision:
            case Wanted(repository, pull):
                publisher = Publisher(client, repository, pull, workflow.login)
            case Asked(repository, pull):
                publisher = Publisher(client, repository, pull, workflow.login)
                refusal, options = await _obey(publisher, decision, options)
                if refusal:
                    return Ended(refusal)
            case _:
                return Ended(f"Nothing to do: {_why(decision)}.")
        return await _review(workflow, publisher, options, timeout_s, out)


def _why(decision: Decision) -> str:
    return str(getattr(decision, "reason", "the pull request is closed"))


async def _obey(publisher: Publisher, asked: Asked, options: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Why a command is not done, or empty; and the options of the review it asks for."""
    if not await may_write(publisher.client, asked.repository, asked.by):
        return f"{asked.by} has no write access.", options
    command = parse_command(asked.command)
    await publisher.react(asked.comment, "+1" if command else "confused")
    if command is None:
        return f"{asked.command!r} is no command.", options
    chosen = ("--target", ",".join(command.names)) if command.verb == "target" else ()
    return "", (*options, *chosen)


async def _review(
    workflow: Workflow, publisher: Publisher, options: tuple[str, ...], timeout_s: float, out: Path | None
) -> Ended:
    pull = await publisher.pull_request()
    if pull is None or pull["state"] != "open":
        return Ended("Nothing to do: the pull request is closed.")
    head, base = str(pull["head"]["sha"]), str(pull["base"]["sha"])
    try:
        check: int | None = await publisher.begin(head, workflow.run)
    except CannotWrite:
        check = None
    if check is not None and (pull["head"].get("repo") or {}).get("full_name") != publisher.repository:
        options = (*options, *confined_options())  # a fork's code, beside a token that may write
    outcome = await _outcome(workflow, publisher, base, head, timeout_s, options)
    if isinstance(outcome, Unreviewed):
        if check is not None:
            await publisher.abandon(check, "neutral", "The review needs a correction", outcome.reason)
        fault = WavesmithError if outcome.ours else InputError
        raise fault(outcome.reason)
    if out is not None:
        out.write_text(outcome.model_dump_json(indent=2) + "\n", encoding="utf-8")
    result = outcome.without(await silenced(publisher))
    _write_summary(workflow, result)
    if check is None:
        print_annotations(result)
        where = f"in {out}" if out is not None else "in the log"
        return Ended(f"{render.headline(result)} The token may only read; the review is {where}.", result)
    now = await publisher.pull_request()
    if now is None or now["head"]["sha"] != head:
        await publisher.abandon(check, "cancelled", "Superseded by a newer push", "The result was dropped.")
        return Ended("A newer push took its place; the result was dropped.")
    problem = await publisher.publish(result, check)
    return Ended(render.headline(result) + (f" But {problem}." if problem else ""), result, posted=True)


async def _outcome(
    workflow: Workflow, publisher: Publisher, base: str, head: str, timeout_s: float, options: tuple[str, ...]
) -> ReviewResult | Unreviewed:
    """The review in the workflow's checkout; in a copy of the two commits where the checkout lacks them."""
    if all(has_commit(workflow.workspace, commit) for commit in (base, head)):
        return run_review(workflow.workspace, base, head, timeout_s, options)
    url = f"{workflow.git_url.rstrip('/')}/{publisher.repository}.git"
    start = await publisher.merge_base(base, head)
    wanted = [(start, ""), (head, f"refs/pull/{publisher.pull}/head")]
    with tempfile.TemporaryDirectory(prefix="wavesmith-pull-") as name:
        try:
            fetch_commits(url, workflow.token, wanted, Path(name), _FETCH_TIMEOUT_S)
        except FetchError as e:
            return Unreviewed(f"The commits could not be fetched: {e}", ours=False)
        return run_review(Path(name), start, head, timeout_s, ("--direct", *options))


async def silenced(publisher: Publisher) -> frozenset[str]:
    """Rules and findings that people with write access dismissed on this pull request, by command or by resolving."""
    names = set(await publisher.resolved())
    writers: dict[str, bool] = {}
    async for comment in publisher.comments(f"/issues/{publisher.pull}/comments"):
        command = parse_command(find_command(comment["body"]) or "-")
        user = comment.get("user") or {}
        if command is None or command.verb != "ignore" or user.get("type") == "Bot":
            continue
        login = str(user.get("login", ""))
        if login not in writers:
            writers[login] = await may_write(publisher.client, publisher.repository, login)
        if writers[login]:
            names.update(command.names)
    return frozenset(names)


async def post_review(workflow: Workflow, file: Path) -> Ended:
    """In a `workflow_run`: post a review that a workflow without secrets left.

    The file is untrusted: it is read by its schema, and must be about the commit that the event names. Which pull
    request that is, GitHub is asked.
    """
    result = read_review(file)
    run = workflow.payload.get("workflow_run") if isinstance(workflow.payload, dict) else None
    if not isinstance(run, dict) or run.get("event") != "pull_request":
        raise InputError("--post: the event is no workflow_run of a pull request.", remedy="See docs/ci.md.")
    if run.get("head_sha") != result.head:
        raise InputError("the review is about another commit than the run.", file=file, remedy="See docs/ci.md.")
    async with connect(workflow.api_url, workflow.token) as client:
        pull = await _pull_of(client, workflow.repository, run)
        if pull is None:
            return Ended("Nothing to do: no open pull request has this commit as its head.")
        publisher = Publisher(client, workflow.repository, pull, workflow.login)
        shown = result.without(await silenced(publisher))
        problem = await publisher.publish(shown, await publisher.begin(result.head, workflow.run))
        return Ended(render.headline(shown) + (f" But {problem}." if problem else ""), shown, posted=True)


def read_review(file: Path) -> ReviewResult:
    """A review from a file. Raises `InputError` for one that is too large or not of this schema."""
    try:
        if file.stat().st_size > MAX_REVIEW_BYTES:
            raise InputError("the review is too large.", file=file, remedy="Write it with --out.")
        return ReviewResult.model_validate_json(file.read_bytes())
    except OSError:
        raise InputError("there is no such file.", file=file, remedy="Download the artifact first.") from None
    except ValidationError as e:
        first = e.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(p) for p in first["loc"])
        raise InputError(
            f"it is no review: {place}: {first['msg']}.", file=file, remedy="Write it with --out."
        ) from None


async def _pull_of(client: Client, repository: str, run: Mapping[str, Any]) -> int | None:
    """The open pull request whose head is the commit of a run; forks are not in the run's own list."""
    owner = ((run.get("head_repository") or {}).get("owner") or {}).get("login")
    query = {"repo": repository, "head": f"{owner}:{run.get('head_branch')}"}
    async for pull in client.getiter("/repos/{+repo}/pulls?state=open&per_page=100{&head}", query):
        if pull["head"]["sha"] == run.get("head_sha"):
            return int(pull["number"])
    return None


def _write_summary(workflow: Workflow, result: ReviewResult) -> None:
    if workflow.summary is not None:
        with workflow.summary.open("a", encoding="utf-8") as file:
            file.write(f"### Wavesmith\n\n{render.check_output(result)['summary']}\n")


_WORDS = {Level.NOTE: "notice", Level.WARNING: "warning", Level.ERROR: "error"}


def print_annotations(result: ReviewResult) -> None:
    """Workflow commands: the runner shows them as annotations even where the token may not write."""
    for f in result.findings[: render.ANNOTATIONS_PER_REQUEST]:
        level = _WORDS[f.level] if f.origin == "introduced" else "notice"
        place = f"file={_escaped(f.path, True)},line={f.line},endLine={max(f.line, f.end_line)}"
        print(f"::{level} {place},title=Wavesmith {f.rule}::{_escaped(f'{f.message} {f.remedy}'.strip())}")


def _escaped(text: str, is_property: bool = False) -> str:
    """As the runner's own toolkit escapes values of workflow commands."""
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return text.replace(":", "%3A").replace(",", "%2C") if is_property else text


def workflow_of_process() -> Workflow:
    """The workflow this process runs in."""
    return read_workflow(os.environ)
