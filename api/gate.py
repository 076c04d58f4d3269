"""What every request passes before a handler sees it: a name, its host, its token or session, the size of its body."""

from __future__ import annotations

import secrets
from http.cookies import CookieError, SimpleCookie
from typing import cast
from urllib.parse import quote

from fastapi import HTTPException
from fastapi.responses import JSONResponse, RedirectResponse, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.github.signature import MAX_WEBHOOK_BYTES, WEBHOOK_PATH
from api.problems import problem_response
from api.session import COOKIE, Sessions
from api.settings import Settings

OPEN_PATHS = ("/healthz", "/readyz", "/login")
OPEN_PREFIX = "/static/"
_LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


class Gate:
    """ASGI middleware. With a token: bearer or browser session, else 401 (a browser is sent to the login page). On
    loopback without one it refuses foreign Host and Origin headers instead, so that a web page in the user's browser
    cannot reach the service by DNS rebinding or a cross-site form."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._sessions = Sessions(settings.token.get_secret_value()) if settings.token else None
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
                out["Referrer-Policy"] = "same-origin"
                if out.get("content-type", "").startswith("text/html"):
                    out["Content-Security-Policy"] = PAGE_POLICY
            await send(message)

        limit = max(self._max_bytes, MAX_WEBHOOK_BYTES) if scope["path"] == WEBHOOK_PATH else self._max_bytes
        refusal = self._refuse(scope, headers, limit)
        if refusal is not None:
            await refusal(scope, receive, named_send)
            return
        await self._app(scope, _counted(receive, limit), named_send)

    def _refuse(self, scope: Scope, headers: Headers, limit: int) -> Response | None:
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            return problem_response(413, "too-large", _too_large_detail(limit))
        if scope["path"] == WEBHOOK_PATH:  # its sender proves itself by a signature over the body
            return None
        if self._sessions is None:
            return self._refuse_foreign(headers)
        path = scope["path"]
        if path in OPEN_PATHS or path.startswith(OPEN_PREFIX):
            return None
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._sessions.is_token(given.strip()):
            return None
        cookie = session_cookie(headers)
        if cookie is not None and self._sessions.is_valid(cookie):
            if path.startswith("/v1/") and scope["method"] not in _SAFE_METHODS:
                return problem_response(403, "forbidden", "A browser session may only read here; use a bearer token.")
            return None
        if "text/html" in headers.get("accept", "") and not path.startswith("/v1/"):
            query = scope.get("query_string", b"").decode("latin-1")
            return RedirectResponse(f"/login?next={quote(f'{path}?{query}' if query else path)}", 303)
        headers_out = {"WWW-Authenticate": "Bearer"}
        return problem_response(401, "unauthorized", "Send `Authorization: Bearer TOKEN`.", headers=headers_out)

    def _refuse_foreign(self, headers: Headers) -> JSONResponse | None:
        for name in ("host", "origin"):
            value = headers.get(name)
            if value is not None and self._on_loopback and _hostname(value) not in _LOOPBACK_NAMES:
                return problem_response(403, "forbidden", f"The {name.title()} header does not name this machine.")
        return None


def session_cookie(headers: Headers) -> str | None:
    """The session cookie of a request, unchecked."""
    try:
        jar = SimpleCookie(headers.get("cookie", ""))
    except CookieError:
        return None
    return jar[COOKIE].value if COOKIE in jar else None


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
