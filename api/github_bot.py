"""The GitHub bot's door: the webhook route, and the runner that does what the deliveries ask for.

A delivery is checked before it is parsed: signature first, then its id, then its contents. The route only writes to the
store and answers at once; everything that takes time, permissions included, is the runner's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from api.github.events import Asked, Closed, Decision, Ignored, PayloadError, Wanted, decide
from api.github.signature import WEBHOOK_PATH, is_signed
from api.problems import ProblemError
from api.review_store import PullReview, ReviewStore
from api.settings import Settings
from api.store import Store
from sandbox.errors import ToolMissing

if TYPE_CHECKING:
    from api.github.runner import Runner

_log = logging.getLogger("wavesmith.github")
_DELIVERY = re.compile(r"[A-Za-z0-9-]{8,80}")


def add_github_bot(app: FastAPI, settings: Settings, store: Store) -> ReviewStore:
    """The webhook route. It answers 404 until the service is set up as a GitHub App."""
    reviews = ReviewStore(store)

    @app.post(WEBHOOK_PATH, status_code=202, tags=["github"], operation_id="githubWebhook")
    async def webhook(request: Request) -> JSONResponse:
        """Deliveries of the GitHub App, signed with its webhook secret."""
        secret = settings.github_webhook_secret
        if secret is None:
            raise ProblemError(404, "not-found", "This service is not set up as a GitHub App.")
        body = await request.body()
        if not is_signed(body, request.headers.get("x-hub-signature-256"), secret.get_secret_value()):
            raise ProblemError(401, "unauthorized", "The X-Hub-Signature-256 header is not the signature of the body.")
        delivery = request.headers.get("x-github-delivery", "")
        event = request.headers.get("x-github-event", "")
        if _DELIVERY.fullmatch(delivery) is None or not event:
            raise ProblemError(400, "bad-request", "The headers X-GitHub-Delivery and X-GitHub-Event are missing.")
        decision = _decide(event, body)
        answer = await anyio.to_thread.run_sync(_take, reviews, delivery, event, decision)
        return JSONResponse(answer, 202)

    return reviews


def _decide(event: str, body: bytes) -> Decision:
    try:
        return decide(event, json.loads(body))
    except PayloadError as e:
        raise ProblemError(422, "unusable-input", f"The payload of {event[:60]!r} cannot be used: {e}") from None
    except (ValueError, RecursionError):
        raise ProblemError(400, "bad-request", "The body is not JSON; set the content type to JSON.") from None


def _take(reviews: ReviewStore, delivery: str, event: str, decision: Decision) -> dict[str, Any]:
    """Remember the delivery and queue what it asks for."""
    row = _row(decision)
    if not reviews.accept(delivery, event[:60], row):
        raise ProblemError(409, "conflict", "This delivery was accepted before; it is not done twice.")
    match decision:
        case Ignored(reason):
            return {"status": "ignored", "reason": reason}
        case Closed(repository, pull):
            reviews.close_pull(repository, pull)
            return {"status": "closed"}
        case _:
            return {"status": "queued"}


def _row(decision: Decision) -> PullReview | None:
    now = time.time()
    match decision:
        case Wanted(repository, pull, head, _, installation):
            return PullReview(repository=repository, pull=pull, installation=installation, head=head, created_at=now)
        case Asked(repository, pull, command, by, comment, installation):
            return PullReview(
                repository=repository,
                pull=pull,
                installation=installation,
                command=command,
                by=by,
                comment=comment,
                created_at=now,
            )
        case _:
            return None


async def _keep_alive(runner: Runner) -> None:
    """Run the runner, and again after a fault of ours: its work is in the store, and given up after some tries."""
    while True:
        task = asyncio.create_task(runner.run())
        try:
            await asyncio.wait({task})
        finally:
            task.cancel()
        if not task.cancelled() and (fault := task.exception()) is not None:
            _log.error("the GitHub bot failed and starts again", exc_info=fault)
        await asyncio.sleep(1.0)


@asynccontextmanager
async def running_bot(settings: Settings, reviews: ReviewStore) -> AsyncIterator[None]:
    """Does the bot's work while the service runs; nothing when it is not set up."""
    if settings.github_app_id is None or settings.github_private_key_file is None:
        yield
        return
    try:
        from api.github.client import App
        from api.github.runner import Runner
    except ImportError as e:
        raise ToolMissing(f"the GitHub bot needs {e.name}. Install wavesmith[github].") from None
    app = App(settings.github_api_url, settings.github_app_id, settings.github_private_key_file.read_text())
    task = asyncio.create_task(_keep_alive(Runner(settings, reviews, app)), name="github-bot")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
