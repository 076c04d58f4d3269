"""What every request passes before a handler sees it: a name, its host, its token, the size of its body."""

from __future__ import annotations

import hmac
import secrets
from typing import cast

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.problems import problem_response
from api.settings import Settings

OPEN_PATHS = ("/healthz", "/readyz")
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


class Gate:
    """ASGI middleware. On loopback without a token it refuses foreign Host and Origin headers instead, so that a web
    page in the user's browser cannot reach the service by DNS rebinding or a cross-site form."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._token = settings.token.get_secret_value() if settings.token else None
        self._on_loopback = settings.on_loopback
        self._max_bytes = settings.max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        request_id = secrets.token_hex(8)
        scope.setdefault("state", {})["request_id"] = request_id

        async def named_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                out["X-Request-ID"] = request_id
                out["X-Content-Type-Options"] = "nosniff"
            await send(message)

        refusal = self._refuse(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, named_send)
            return
        await self._app(scope, _counted(receive, self._max_bytes), named_send)

    def _refuse(self, scope: Scope, headers: Headers) -> JSONResponse | None:
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._max_bytes:
            return self._too_large()
        if scope["path"] in OPEN_PATHS:
            return None
        if self._token is not None:
            scheme, _, given = headers.get("authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token.encode()):
                return problem_response(
                    401, "unauthorized", "Send `Authorization: Bearer TOKEN`.", headers={"WWW-Authenticate": "Bearer"}
                )
            return None
        for name in ("host", "origin"):
            value = headers.get(name)
            if value is not None and self._on_loopback and _hostname(value) not in _LOOPBACK_NAMES:
                return problem_response(403, "forbidden", f"The {name.title()} header does not name this machine.")
        return None

    def _too_large(self) -> JSONResponse:
        return problem_response(413, "too-large", _too_large_detail(self._max_bytes))


def _too_large_detail(max_bytes: int) -> str:
    return f"A request may have {max_bytes} bytes."


def _hostname(value: str) -> str:
    """The host of a Host or Origin header, without scheme, port and brackets."""
    bare = value.rpartition("://")[2]
    if bare.startswith("["):
        return bare[1:].partition("]")[0]
    return bare.partition(":")[0].lower()


def _counted(receive: Receive, max_bytes: int) -> Receive:
    """`receive` that stops a body without (or with a false) Content-Length at the limit."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(cast("bytes", message.get("body", b"")))
            if seen > max_bytes:
                raise HTTPException(413, _too_large_detail(max_bytes))
        return message

    return counted
