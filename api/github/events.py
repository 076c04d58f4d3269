"""From a webhook payload to what is wanted. Only the fields that are used are read; everything else may be anything."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agent.review.config import is_ignorable, review_targets
from api.github.render import CHECK_NAME

REVIEWED_ACTIONS = frozenset({"opened", "synchronize", "reopened", "ready_for_review"})
_NAME = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+/[A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*$", max_length=200)]
_SHA = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
_NUMBER = Annotated[int, Field(ge=1, lt=2**53)]


class PayloadError(ValueError):
    """A payload of a kind that is handled, without the fields it must have."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pull request is to be reviewed at `head`."""

    repository: str
    pull: int
    head: str
    base: str
    installation: int
    from_fork: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """Somebody gave a command in a comment on a pull request; whether they may is not known yet."""

    repository: str
    pull: int
    command: str
    by: str
    comment: int
    installation: int


@dataclass(frozen=True, slots=True)
class Closed:
    """A pull request needs no more work."""

    repository: str
    pull: int


@dataclass(frozen=True, slots=True)
class Ignored:
    """Nothing is to be done, on purpose."""

    reason: str


Decision = Wanted | Asked | Closed | Ignored


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class _Repository(_Loose):
    full_name: _NAME


class _Installation(_Loose):
    id: _NUMBER


class _Side(_Loose):
    sha: _SHA
    repo: _Repository | None = None


class _Pull(_Loose):
    number: _NUMBER
    head: _Side
    base: _Side
    draft: bool | None = False


class _User(_Loose):
    login: Annotated[str, Field(max_length=100)]
    type: str | None = None


class _PullPayload(_Loose):
    action: str
    pull_request: _Pull
    repository: _Repository
    installation: _Installation | None = None


class _Issue(_Loose):
    number: _NUMBER
    pull_request: dict[str, Any] | None = None


class _Comment(_Loose):
    id: _NUMBER
    body: str | None = None
    user: _User | None = None


class _CommentPayload(_Loose):
    action: str
    issue: _Issue
    comment: _Comment
    repository: _Repository
    installation: _Installation | None = None


class _Commit(_Loose):
    sha: _SHA


class _PullOfCheck(_Loose):
    """Of the same repository always; pull requests of forks are not listed."""

    number: _NUMBER
    head: _Commit
    base: _Commit


class _Check(_Loose):
    name: str | None = None
    head_sha: _SHA
    pull_requests: list[_PullOfCheck] | None = None


class _CheckPayload(_Loose):
    action: str
    check_run: _Check | None = None
    check_suite: _Check | None = None
    repository: _Repository
    installation: _Installation | None = None


def decide(event: str, payload: Any) -> Decision:
    """What a delivery asks for. Raises `PayloadError` for a handled kind without the fields it must have."""
    readers = {
        "pull_request": _pull_request,
        "issue_comment": _issue_comment,
        "check_run": _check,
        "check_suite": _check,
    }
    reader = readers.get(event)
    if reader is None:
        return Ignored(f"the event {event[:60]!r} is not used")
    action = payload.get("action") if isinstance(payload, dict) else None
    try:
        return reader(payload, action if isinstance(action, str) else "")
    except ValidationError as e:
        first = e.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(p) for p in first["loc"]) or "the payload"
        raise PayloadError(f"{place}: {first['msg']}") from None


def _pull_request(payload: Any, action: str) -> Decision:
    if action not in REVIEWED_ACTIONS | {"closed"}:
        return Ignored(f"pull_request {action[:60]!r} does not change what is reviewed")
    read = _PullPayload.model_validate(payload)
    pull = read.pull_request
    if action == "closed":
        return Closed(read.repository.full_name, pull.number)
    if pull.draft:
        return Ignored("the pull request is a draft")
    return _wanted(read.repository, pull, read.installation)


def _wanted(repository: _Repository, pull: _Pull, installation: _Installation | None) -> Wanted:
    own = repository.full_name
    from_fork = pull.head.repo is None or pull.head.repo.full_name != own
    return Wanted(own, pull.number, pull.head.sha, pull.base.sha, installation.id if installation else 0, from_fork)


def _issue_comment(payload: Any, action: str) -> Decision:
    if action != "created":
        return Ignored("only new comments are read")
    read = _CommentPayload.model_validate(payload)
    if read.issue.pull_request is None:
        return Ignored("the comment is not on a pull request")
    user = read.comment.user
    if user is None or user.type == "Bot":
        return Ignored("comments of bots are not read")
    command = find_command(read.comment.body or "")
    if not command:
        return Ignored("the comment holds no command")
    installation = read.installation.id if read.installation else 0
    return Asked(read.repository.full_name, read.issue.number, command, user.login, read.comment.id, installation)


def _check(payload: Any, action: str) -> Decision:
    if action != "rerequested":
        return Ignored("checks are only read when a rerun is asked for")
    read = _CheckPayload.model_validate(payload)
    check = read.check_run or read.check_suite
    if check is None or not check.pull_requests:
        return Ignored("the check belongs to no pull request of this repository")
    if read.check_run is not None and check.name != CHECK_NAME:
        return Ignored("the check is somebody else's")
    pull = check.pull_requests[0]
    installation = read.installation.id if read.installation else 0
    return Wanted(read.repository.full_name, pull.number, pull.head.sha, pull.base.sha, installation)


_COMMAND = re.compile(r"^/wavesmith[ \t]+(\S[^\r\n]*)$", re.MULTILINE)


def find_command(body: str) -> str:
    """The first `/wavesmith ...` line of a comment, without the word; empty when there is none."""
    m = _COMMAND.search(body.replace("\r\n", "\n")[:10_000])
    return " ".join(m.group(1).split())[:200] if m else ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that is understood: `rerun`, `target` with architectures, or `ignore` with a rule or fingerprint."""

    verb: str
    names: tuple[str, ...] = ()


def parse_command(text: str) -> Command | None:
    """The command in a line; None for anything else."""
    verb, *names = text.replace(",", " ").split()
    if verb == "rerun" and not names:
        return Command("rerun")
    if verb == "target" and 1 <= len(names) <= 4:
        try:
            return Command("target", review_targets(tuple(names)))
        except ValueError:
            return None
    if verb == "ignore" and 1 <= len(names) <= 20 and all(is_ignorable(n) for n in names):
        return Command("ignore", tuple(names))
    return None
