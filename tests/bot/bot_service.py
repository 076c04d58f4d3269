"""The service with the bot, as GitHub sees it."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from typing import Any

import httpx
from github_server import FULL_NAME, INSTALLATION, NUMBER, GitHub
from serving import PATIENCE_S

from api.github.signature import sign
from api.review_store import PullReview, ReviewStore
from api.settings import Settings

SECRET = "the webhook's secret"


@dataclass
class Service:
    """The running service, as GitHub sees it."""

    url: str
    github: GitHub
    settings: Settings
    reviews: ReviewStore

    def send(self, event: str, payload: Any, **headers: str) -> httpx.Response:
        """Deliver an event, signed."""
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        given = {
            "X-GitHub-Event": event,
            "X-GitHub-Delivery": str(uuid.uuid4()),
            "X-Hub-Signature-256": sign(body, SECRET),
            "Content-Type": "application/json",
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }
        return httpx.post(f"{self.url}/v1/github/webhook", content=body, headers=given, timeout=PATIENCE_S)

    def pull_event(self, action: str = "synchronize") -> dict[str, Any]:
        """A pull_request event about the repository as it is now."""
        side = {"repo": {"full_name": FULL_NAME}, "ref": "pr"}
        pull = {
            "number": NUMBER,
            "head": {**side, "sha": self.github.head},
            "base": {**side, "sha": self.github.base},
            "draft": False,
        }
        shared = {"repository": {"full_name": FULL_NAME}, "installation": {"id": INSTALLATION}}
        return {"action": action, "number": NUMBER, "pull_request": pull, **shared}

    def comment_event(self, login: str, body: str) -> dict[str, Any]:
        """What GitHub sends after somebody commented."""
        comment = {"id": self.github.say(login, body), "body": body, "user": {"login": login, "type": "User"}}
        return {
            "action": "created",
            "issue": {"number": NUMBER, "pull_request": {"url": "x"}},
            "comment": comment,
            "repository": {"full_name": FULL_NAME},
            "installation": {"id": INSTALLATION},
        }

    def finished(self, number: int, timeout_s: float = 3 * PATIENCE_S) -> PullReview:
        """The review that was queued as the `number`-th, once it has ended."""
        deadline = time.monotonic() + timeout_s
        while True:
            rows = sorted(self.reviews.reviews(limit=100), key=lambda r: r.id or 0)
            if len(rows) >= number and rows[number - 1].finished_at is not None:
                ended = self.reviews.review(rows[number - 1].id or 0)
                assert ended is not None
                return ended
            assert time.monotonic() < deadline, rows
            time.sleep(0.1)
