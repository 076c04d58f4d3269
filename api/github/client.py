"""GitHub's REST API through gidgethub: waits out rate limits, tells refusals apart, and mints installation tokens."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
from gidgethub import GitHubException, HTTPException
from gidgethub.apps import get_installation_access_token, get_jwt
from gidgethub.httpx import GitHubAPI
from jwt import PyJWTError

from sandbox.errors import InputError

MAX_TRIES = 5
MAX_WAIT_S = 900.0
"""Longest wait for one answer; a limit that lasts longer ends the attempt, and the review is queued again."""
_TIMEOUT_S = 30.0
Fault = (GitHubException, httpx.HTTPError, OSError)
"""What talking to GitHub may raise."""


class Client(GitHubAPI):  # type: ignore[misc]
    """One identity. Writes are made one after the other by whoever holds it."""

    async def handle_rate_limit_error(self, *, method: str, url: str, exception: Any, attempt: int) -> bool:
        """Wait as the answer says (403 and 429 with a limit), or shortly (5xx of a request that may be repeated)."""
        status = int(exception.status_code)
        wait_s = limit_wait_s(status, exception.headers, str(exception), attempt)
        if wait_s is None and status >= 500 and method in ("GET", "PATCH"):
            wait_s = float(2 ** (attempt - 1))
        if wait_s is None or wait_s > MAX_WAIT_S or attempt >= MAX_TRIES:
            return False
        await self.sleep(wait_s)
        return True


def limit_wait_s(status: int, headers: Mapping[str, str], message: str, attempt: int) -> float | None:
    """Seconds to wait before the next try when an answer is a rate limit, primary or secondary; None when it is not.

    GitHub's rule: `retry-after` first, then `x-ratelimit-reset` when nothing remains, else a minute, then longer.
    """
    if status not in (403, 429):
        return None
    after = headers.get("retry-after", "")
    if after.isdecimal():
        return float(after)
    if headers.get("x-ratelimit-remaining") == "0":
        reset = headers.get("x-ratelimit-reset", "")
        return max(1.0, float(reset) - time.time()) if reset.isdecimal() else 60.0
    if status == 429 or "rate limit" in message.lower() or "abuse" in message.lower():
        return 60.0 * float(2 ** (attempt - 1))
    return None


@asynccontextmanager
async def connect(api_url: str, token: str | None = None) -> AsyncIterator[Client]:
    """A client for one token."""
    async with httpx.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=True) as http:
        yield Client(http, "wavesmith", oauth_token=token, base_url=api_url.rstrip("/"))


class App:
    """The GitHub App: its private key, and the tokens it got for installations, each used for most of its hour.

    Raises `InputError` for a key that signs nothing.
    """

    def __init__(self, api_url: str, app_id: str, private_key: str) -> None:
        self._api_url, self._app_id, self._key = api_url, app_id, private_key
        self._tokens: dict[int, tuple[str, float]] = {}
        self._login = ""
        try:
            get_jwt(app_id=app_id, private_key=private_key)
        except (ValueError, TypeError, PyJWTError):
            remedy = "Give the .pem file that GitHub made for the App."
            raise InputError("the GitHub App's private key cannot be used.", remedy=remedy) from None

    async def token(self, installation: int) -> str:
        """A token of an installation."""
        known = self._tokens.get(installation)
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        async with connect(self._api_url) as client:
            answer = await get_installation_access_token(
                client, installation_id=str(installation), app_id=self._app_id, private_key=self._key
            )
        self._tokens[installation] = (str(answer["token"]), time.monotonic() + 50 * 60)
        return str(answer["token"])

    async def login(self) -> str:
        """The name the App's comments carry."""
        if not self._login:
            async with connect(self._api_url) as client:
                app = await client.getitem("/app", jwt=get_jwt(app_id=self._app_id, private_key=self._key))
            self._login = f"{app['slug']}[bot]"
        return self._login


async def may_write(client: Client, repository: str, login: str) -> bool:
    """Whether somebody may push to the repository; asked of GitHub, never read from a payload."""
    url = "/repos/{+repo}/collaborators/{login}/permission"
    try:
        answer: Any = await client.getitem(url, {"repo": repository, "login": login})
    except HTTPException as e:
        if int(e.status_code) in (403, 404):
            return False
        raise
    return answer.get("permission") in ("admin", "write")
