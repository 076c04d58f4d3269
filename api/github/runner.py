"""The bot's work, one review after the other: fetch, review, look again whether it is still wanted, post."""

from __future__ import annotations

import asyncio
import logging
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio.to_thread
from gidgethub import HTTPException

from agent.review.finding import ReviewResult
from api.github.client import App, Client, Fault, connect, limit_wait_s, may_write
from api.github.engine import FetchError, Unreviewed, confined_options, fetch_commits, run_review
from api.github.events import Command, parse_command
from api.github.publish import CannotWrite, Publisher
from api.review_store import MAX_TRIES, PullReview, ReviewState, ReviewStore
from api.settings import Settings

_FETCH_TIMEOUT_S = 600.0
_log = logging.getLogger("wavesmith.github")


@dataclass
class Runner:
    """Takes reviews from the store. Writes on GitHub are made by this one, so they never overtake each other."""

    settings: Settings
    reviews: ReviewStore
    app: App
    later: dict[int, float] = field(default_factory=dict)
    """Reviews that wait for GitHub: id to the time of `time.monotonic` before which they are not tried again."""

    async def run(self) -> None:
        """Work until cancelled."""
        await anyio.to_thread.run_sync(self.reviews.recover)
        while True:
            if not await self.run_one():
                await asyncio.sleep(self.settings.poll_s)

    async def run_one(self) -> bool:
        """Take one review and finish it; False when none waits."""
        waiting = [number for number, at in self.later.items() if at > time.monotonic()]
        row = await anyio.to_thread.run_sync(lambda: self.reviews.claim(but_not=waiting))
        if row is None:
            return False
        assert row.id is not None
        try:
            await self._handle(row)
        except CannotWrite as e:
            reason = f"The App may not write there: {e}. It needs write access to checks and pull requests."
            self.reviews.finish(row.id, ReviewState.FAILED, summary=reason)
        except Fault as e:
            _log.warning("review %s of %s#%s: %s", row.id, row.repository, row.pull, e)
            again = row.tries < MAX_TRIES
            self.later[row.id] = time.monotonic() + delay_s(e, row.tries)
            state = ReviewState.QUEUED if again else ReviewState.FAILED
            self.reviews.finish(row.id, state, summary=f"GitHub could not be reached: {str(e)[:300]}")
        return True

    async def _handle(self, row: PullReview) -> None:
        token = await self.app.token(row.installation)
        async with connect(self.settings.github_api_url, token) as client:
            publisher = Publisher(client, row.repository, row.pull, await self.app.login())
            if row.command:
                await self._obey(row, publisher, client, token)
            else:
                await self._review(row, publisher, token, ())

    async def _obey(self, row: PullReview, publisher: Publisher, client: Client, token: str) -> None:
        """A command: only from people who may write, whatever the comment says of itself."""
        assert row.id is not None
        comment = row.comment or 0
        if not await may_write(client, row.repository, row.by):
            self.reviews.finish(row.id, ReviewState.REFUSED, summary=f"{row.by} has no write access.")
            return
        command = parse_command(row.command)
        if command is None:
            await publisher.react(comment, "confused")
            self.reviews.finish(row.id, ReviewState.REFUSED, summary=f"{row.command!r} is no command.")
            return
        await publisher.react(comment, "+1")
        if command.verb == "ignore" and await self._ignore(row, publisher, command):
            return
        await self._review(row, publisher, token, command.names if command.verb == "target" else ())

    async def _ignore(self, row: PullReview, publisher: Publisher, command: Command) -> bool:
        """Remember what is silenced and show the last review without it; False when there is none to show."""
        assert row.id is not None
        for name in command.names:
            self.reviews.dismiss(row.repository, row.pull, name, row.by)
        last = self.reviews.latest_result(row.repository, row.pull)
        pull = await publisher.pull_request()
        if last is None or pull is None or pull["head"]["sha"] != ReviewResult.model_validate_json(last.result).head:
            return False
        result = ReviewResult.model_validate_json(last.result)
        check = await publisher.begin(result.head, self._address(row))
        await self._post(row, publisher, result, check)
        return True

    async def _review(self, row: PullReview, publisher: Publisher, token: str, targets: tuple[str, ...]) -> None:
        assert row.id is not None
        pull = await publisher.pull_request()
        problem = _unwanted(row, pull)
        if problem or pull is None:
            self.reviews.finish(row.id, ReviewState.SUPERSEDED, summary=problem)
            return
        head = str(pull["head"]["sha"])
        check = await publisher.begin(head, self._address(row))
        outcome = await self._run(row, publisher, pull, token, targets)
        if isinstance(outcome, Unreviewed) and self._is_wanted(row):
            await self._give_up(row, publisher, check, outcome)
            return
        now = await publisher.pull_request()
        moved = now is None or now["head"]["sha"] != head or now["state"] != "open"
        if moved or isinstance(outcome, Unreviewed) or not self._is_wanted(row):
            summary = "The pull request changed while it was reviewed; the result was dropped."
            await publisher.abandon(check, "cancelled", "Superseded by a newer push", summary)
            self.reviews.finish(row.id, ReviewState.SUPERSEDED, summary=summary)
            return
        await self._post(row, publisher, outcome, check)

    def _address(self, row: PullReview) -> str:
        """The dashboard's page of a review, where its findings, patches and log are; empty when nobody can reach it."""
        return f"{self.settings.public_url.rstrip('/')}/pulls/{row.id}" if self.settings.public_url else ""

    def _is_wanted(self, row: PullReview) -> bool:
        """False once a newer push, or closing the pull request, took its place."""
        return row.id is not None and self.reviews.is_current(row.id)

    async def _run(
        self, row: PullReview, publisher: Publisher, pull: dict[str, Any], token: str, targets: tuple[str, ...]
    ) -> ReviewResult | Unreviewed:
        head = str(pull["head"]["sha"])
        base = await publisher.merge_base(str(pull["base"]["sha"]), head)
        url = f"{self.settings.github_git_url.rstrip('/')}/{row.repository}.git"
        wanted = [(base, ""), (head, f"refs/pull/{row.pull}/head")]
        chosen = ("--target", ",".join(targets)) if targets else ()
        options = ("--direct", *confined_options(), *chosen)
        timeout_s = self.settings.github_review_timeout_s
        with tempfile.TemporaryDirectory(prefix="wavesmith-pull-") as name:
            folder = Path(name)
            try:
                await _in_thread(lambda: fetch_commits(url, token, wanted, folder, _FETCH_TIMEOUT_S))
            except FetchError as e:
                return Unreviewed(f"The commits could not be fetched: {e}", ours=False)
            outcome: ReviewResult | Unreviewed = await _in_thread(
                lambda: run_review(folder, base, head, timeout_s, options, lambda: self._is_wanted(row))
            )
            return outcome

    async def _give_up(self, row: PullReview, publisher: Publisher, check: int, outcome: Unreviewed) -> None:
        assert row.id is not None
        title = "The review failed" if outcome.ours else "The review needs a correction"
        await publisher.abandon(check, "neutral", title, outcome.reason)
        self.reviews.finish(row.id, ReviewState.FAILED, summary=outcome.reason)

    async def _post(self, row: PullReview, publisher: Publisher, result: ReviewResult, check: int) -> None:
        """Without what was silenced on this pull request; the stored result keeps everything."""
        from api.github.render import headline

        assert row.id is not None
        quiet = await anyio.to_thread.run_sync(self.reviews.dismissed, row.repository, row.pull)
        shown = result.without(quiet | await publisher.resolved())
        problem = await publisher.publish(shown, check)
        summary = headline(shown) + (f" But {problem}." if problem else "")
        fields = {"result": result.model_dump_json(), "introduced": len(shown.counted()), "head": result.head}
        targets = ",".join(result.targets)
        self.reviews.finish(row.id, ReviewState.DONE, summary=summary, targets=targets, **fields)


def _unwanted(row: PullReview, pull: dict[str, Any] | None) -> str:
    """Why a pull request is not reviewed now; empty when it is."""
    if pull is None:
        return "The pull request is gone."
    if pull["state"] != "open":
        return "The pull request is closed."
    if row.head and pull["head"]["sha"] != row.head:
        return "A newer push took its place."
    return ""


def delay_s(fault: Exception, tries: int) -> float:
    """Seconds until a review that met a fault is tried again: as a rate limit says, else longer each time."""
    limit = None
    if isinstance(fault, HTTPException):
        headers = getattr(fault, "headers", None) or {}
        limit = limit_wait_s(int(fault.status_code), headers, str(fault), tries)
    return limit if limit is not None else 5.0 * 4.0 ** (tries - 1)


async def _in_thread(work: Callable[[], Any]) -> Any:
    return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
