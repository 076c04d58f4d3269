"""Browser sessions: one login token, a signed cookie, and a form token that a foreign page cannot know."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time

COOKIE = "wavesmith_session"
LIFETIME_S = 12 * 3600


class Sessions:
    """Signs and checks session cookies. Changing the service's token ends every session."""

    def __init__(self, token: str) -> None:
        self._token = token
        self._key = hashlib.sha256(b"wavesmith session\0" + token.encode()).digest()

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    def new_cookie(self, now: float | None = None) -> str:
        body = f"{int((now or time.time()) + LIFETIME_S)}.{secrets.token_hex(16)}"
        return f"{body}.{self._sign(body)}"

    def is_valid(self, cookie: str, now: float | None = None) -> bool:
        body, _, signature = cookie.rpartition(".")
        if not hmac.compare_digest(signature.encode(), self._sign(body).encode()):
            return False
        expiry = body.partition(".")[0]
        return expiry.isdecimal() and int(expiry) > (now or time.time())

    def form_token(self, cookie: str) -> str:
        """What a form must send along: bound to the session."""
        return self._sign(f"form {cookie}")

    def _sign(self, text: str) -> str:
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()
