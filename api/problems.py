"""Errors as RFC 9457 problem+json, for every error the service answers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from sandbox.errors import InputError

MEDIA_TYPE = "application/problem+json"
_log = logging.getLogger("wavesmith.api")

TITLES = {
    "bad-request": "The request cannot be understood",
    "unauthorized": "A bearer token is needed",
    "forbidden": "This is not allowed",
    "not-found": "There is no such thing here",
    "method-not-allowed": "This method is not supported here",
    "not-finished": "The job has not finished",
    "no-patch": "The job gave no patch",
    "conflict": "The request contradicts an earlier one",
    "too-large": "The request is too large",
    "unusable-input": "What was given cannot be used",
    "queue-full": "The queue is full",
    "not-ready": "The service is not ready",
    "internal": "A fault of the service",
}
_BY_STATUS = {
    400: "bad-request",
    401: "unauthorized",
    403: "forbidden",
    404: "not-found",
    405: "method-not-allowed",
    409: "conflict",
    413: "too-large",
    422: "unusable-input",
    429: "queue-full",
    503: "not-ready",
}


class ProblemError(Exception):
    """Raised in a handler to answer with a problem. `kind` is a key of `TITLES`; `extra` goes into the body."""

    def __init__(
        self, status: int, kind: str, detail: str, *, headers: dict[str, str] | None = None, **extra: Any
    ) -> None:
        super().__init__(detail)
        self.status, self.kind, self.detail, self.headers, self.extra = status, kind, detail, headers, extra


def problem_response(
    status: int, kind: str, detail: str, *, headers: dict[str, str] | None = None, **extra: Any
) -> JSONResponse:
    """`type` is a relative reference; the page behind it explains the kind."""
    body = {"type": f"/problems/{kind}", "title": TITLES[kind], "status": status, "detail": detail, **extra}
    return JSONResponse(body, status, headers, MEDIA_TYPE)


AsPage = Callable[[Request, int, str, str], Response | None]
"""An error (status, title, detail) as a page, or None where the request did not ask for one."""


def install_handlers(app: FastAPI, as_page: AsPage) -> None:
    """Route every exception of the application through `problem_response`, or to a browser as a page."""

    def answer(request: Request, status: int, kind: str, detail: str, **more: Any) -> Response:
        page = as_page(request, status, TITLES[kind], detail)
        return page if page is not None else problem_response(status, kind, detail, **more)

    async def on_problem(request: Request, exc: Exception) -> Response:
        assert isinstance(exc, ProblemError)
        return answer(request, exc.status, exc.kind, exc.detail, headers=exc.headers, **exc.extra)

    async def on_http(request: Request, exc: Exception) -> Response:
        assert isinstance(exc, HTTPException)
        kind = _BY_STATUS.get(exc.status_code, "bad-request" if exc.status_code < 500 else "internal")
        return answer(request, exc.status_code, kind, str(exc.detail), headers=dict(exc.headers or {}))

    async def on_validation(request: Request, exc: Exception) -> Response:
        assert isinstance(exc, RequestValidationError)
        errors = [{"field": ".".join(map(str, e["loc"])), "message": e["msg"]} for e in exc.errors()]
        detail = "; ".join(f"{e['field']}: {e['message']}" for e in errors[:5])
        return answer(request, 422, "unusable-input", detail, errors=errors)

    async def on_input(request: Request, exc: Exception) -> Response:
        assert isinstance(exc, InputError)
        more = {"file": exc.file, "line": exc.line, "remedy": exc.remedy}
        return answer(request, 422, "unusable-input", str(exc), **more)

    async def on_fault(request: Request, exc: Exception) -> Response:
        request_id = getattr(request.state, "request_id", None)
        _log.error("fault in %s %s, request %s", request.method, request.url.path, request_id, exc_info=exc)
        detail = "The service failed; the log holds the details."
        return answer(request, 500, "internal", detail, request_id=request_id)

    app.add_exception_handler(ProblemError, on_problem)
    app.add_exception_handler(HTTPException, on_http)
    app.add_exception_handler(RequestValidationError, on_validation)
    app.add_exception_handler(InputError, on_input)
    app.add_exception_handler(Exception, on_fault)
