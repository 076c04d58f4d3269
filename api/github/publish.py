"""Puts a review on a pull request: the check run, suggestions, and the one comment that is edited in place."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from gidgethub import HTTPException

from agent.review.finding import Finding, ReviewResult
from api.github import render
from api.github.client import Client
from api.github.markers import findings_in
from api.github.threads import resolved_findings

_PAGE = 100


class CannotWrite(Exception):  # noqa: N818 - an expected outcome, not a fault
    """The token may not write here, as in a workflow of a fork's pull request."""


@dataclass(frozen=True)
class Publisher:
    """Writes on one pull request as `login`. What others wrote is never edited."""

    client: Client
    repository: str
    pull: int
    login: str

    def url(self, rest: str) -> str:
        """An address below the repository."""
        return f"/repos/{self.repository}{rest}"

    async def pull_request(self) -> dict[str, Any] | None:
        """The pull request as it is now; None when it is gone."""
        try:
            found: dict[str, Any] = await self.client.getitem(self.url(f"/pulls/{self.pull}"))
        except HTTPException as e:
            if int(e.status_code) in (404, 410):
                return None
            raise
        return found

    async def merge_base(self, base: str, head: str) -> str:
        """Where a change starts; the base itself when GitHub knows no common commit."""
        try:
            found = await self.client.getitem(self.url(f"/compare/{base}...{head}?per_page=1"))
        except HTTPException as e:
            if int(e.status_code) in (404, 422):
                return base
            raise
        return str(found["merge_base_commit"]["sha"])

    async def begin(self, head: str, address: str = "") -> int:
        """A check run that says that the review runs; returns its id. Raises `CannotWrite`.

        `address` is where everything that the review left can be had.
        """
        data = {"name": render.CHECK_NAME, "head_sha": head, "status": "in_progress"}
        data |= {"details_url": address} if address else {}
        try:
            return int((await self.client.post(self.url("/check-runs"), data=data))["id"])
        except HTTPException as e:
            if int(e.status_code) in (401, 403, 404):
                raise CannotWrite(str(e)) from None
            raise

    async def abandon(self, check: int, conclusion: str, title: str, summary: str) -> None:
        """End a check run without a review."""
        output = {"title": title[: render.MAX_TITLE], "summary": summary[: render.MAX_BODY]}
        await self._update(check, {"status": "completed", "conclusion": conclusion, "output": output})

    async def publish(self, result: ReviewResult, check: int) -> str:
        """Everything a review has to say; returns what could not be posted, empty when all was."""
        suggested, problem = await self._suggest(result)
        problem = (await self._comment(result, suggested)) or problem
        output = render.check_output(result)
        first, *rest = render.annotation_batches(result) or [[]]
        data = {"status": "completed", "conclusion": render.conclusion(result)}
        await self._update(check, {**data, "output": {**output, "annotations": first}})
        for batch in rest:
            short = {"title": output["title"], "summary": output["summary"]}
            await self._update(check, {"output": {**short, "annotations": batch}})
        return problem

    async def _update(self, check: int, data: dict[str, Any]) -> None:
        try:
            await self.client.patch(self.url(f"/check-runs/{check}"), data=data)
        except HTTPException as e:
            output = data.get("output", {})
            if int(e.status_code) != 422 or not output.get("annotations"):
                raise
            await self.client.patch(  # a file or line GitHub does not know must not cost the result
                self.url(f"/check-runs/{check}"), data={**data, "output": {**output, "annotations": []}}
            )

    async def _suggest(self, result: ReviewResult) -> tuple[frozenset[str], str]:
        """Post suggestions that were not posted before; returns the findings that have one on the pull request."""
        wanted = render.suggestion_comments(result)
        if not wanted:
            return frozenset(), ""
        posted = {fp async for c in self._own(f"/pulls/{self.pull}/comments") for fp in findings_in(c["body"])}
        fresh = [(f, c) for f, c in wanted if f.fingerprint not in posted]
        there = {f.fingerprint for f, _ in wanted} & posted
        if not fresh:
            return frozenset(there), ""
        review = {"commit_id": result.head, "event": "COMMENT", "comments": [c for _, c in fresh]}
        try:
            await self.client.post(self.url(f"/pulls/{self.pull}/reviews"), data=review)
        except HTTPException as e:
            if int(e.status_code) == 422:
                return frozenset(there | await self._one_by_one(result, fresh)), ""
            if int(e.status_code) == 403:
                return frozenset(there), "suggestions could not be posted: the conversation is locked"
            raise
        return frozenset(there | {f.fingerprint for f, _ in fresh}), ""

    async def _one_by_one(self, result: ReviewResult, fresh: list[tuple[Finding, dict[str, Any]]]) -> set[str]:
        """One of several comments does not lie in the diff GitHub shows: post those that do."""
        kept: set[str] = set()
        for finding, comment in fresh:
            data = {**comment, "commit_id": result.head}
            try:
                await self.client.post(self.url(f"/pulls/{self.pull}/comments"), data=data)
            except HTTPException as e:
                if int(e.status_code) != 422:
                    raise
            else:
                kept.add(finding.fingerprint)
        return kept

    async def _comment(self, result: ReviewResult, suggested: frozenset[str]) -> str:
        """Create, edit or resolve the comment. Nothing is written when it would not change."""
        text = render.comment_text(result, suggested)
        comments = [c async for c in self._own(f"/issues/{self.pull}/comments") if render.MARKER in c["body"]]
        old = comments[0] if comments else None
        if not text and (old is None or render.RESOLVED in old["body"]):
            return ""
        body = text or render.resolved_text(result)
        try:
            if old is None:
                await self.client.post(self.url(f"/issues/{self.pull}/comments"), data={"body": body})
            elif old["body"] != body:
                await self.client.patch(self.url(f"/issues/comments/{old['id']}"), data={"body": body})
        except HTTPException as e:
            if int(e.status_code) in (403, 404, 410, 422):
                return f"the comment could not be posted: {e}"
            raise
        return ""

    async def _own(self, rest: str) -> AsyncIterator[dict[str, Any]]:
        """Comments that `login` wrote."""
        async for comment in self.comments(rest):
            if (comment.get("user") or {}).get("login") == self.login:
                yield comment

    async def comments(self, rest: str) -> AsyncIterator[dict[str, Any]]:
        """Every comment of a list, each with a body."""
        async for comment in self.client.getiter(self.url(f"{rest}?per_page={_PAGE}")):
            yield {**comment, "body": comment.get("body") or ""}

    async def resolved(self) -> frozenset[str]:
        """Findings whose conversation somebody with write access resolved."""
        return await resolved_findings(self.client, self.repository, self.pull, self.login)

    async def react(self, comment: int, content: str) -> None:
        """A reaction on the comment that held a command; a deleted comment needs none."""
        try:
            await self.client.post(self.url(f"/issues/comments/{comment}/reactions"), data={"content": content})
        except HTTPException as e:
            if int(e.status_code) not in (403, 404, 410, 422):
                raise
