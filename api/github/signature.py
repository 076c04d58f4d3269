"""Whether a webhook came from GitHub: HMAC-SHA-256 over the raw body, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import re

WEBHOOK_PATH = "/v1/github/webhook"
MAX_WEBHOOK_BYTES = 25 * 2**20
"""GitHub sends no larger payloads."""
_FORM = re.compile(r"sha256=([0-9a-fA-F]{64})")


def sign(body: bytes, secret: str) -> str:
    """The value GitHub sends as `X-Hub-Signature-256`."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def is_signed(body: bytes, header: str | None, secret: str) -> bool:
    """Whether `header` is the signature of exactly these bytes. Only sha256 counts, never the older sha1."""
    given = _FORM.fullmatch(header or "")
    expected = sign(body, secret)
    return hmac.compare_digest(expected.encode(), (given.group() if given else "").lower().encode())
