"""What every page of the dashboard shares: its templates, its form token, and how it says that something is missing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from agent.versions import toolchain_versions
from api.gate import session_cookie
from api.problems import ProblemError
from api.session import Sessions
from api.settings import Settings
from api.store import Store

HERE = Path(__file__).parent
PAGE_SIZE = 50
_FOR_MACHINES = ("/v1/", "/static/", "/healthz", "/readyz", "/openapi.json")
"""Addresses whose errors are never pages, whatever a client accepts."""


def clip(text: str | None, characters: int) -> str:
    """The beginning of a text on one line, for lists."""
    line = " ".join((text or "")[: 4 * characters].split())
    return line if len(line) <= characters else line[: characters - 1] + "…"


def clip_lines(text: str, characters: int) -> str:
    """Whole lines of a text, up to about so many characters."""
    return text if len(text) <= characters else text[:characters].rpartition("\n")[0]


class Pages:
    """Renders templates with what every page needs."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self.settings, self.store = settings, store
        self.sessions = Sessions(settings.token.get_secret_value()) if settings.token else None
        self._environment = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=select_autoescape(default=True, default_for_string=True),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.filters |= {"clip": clip, "clip_lines": clip_lines}

    def render(self, request: Request, name: str, values: Mapping[str, Any], status: int = 200) -> HTMLResponse:
        shared = {
            "here": request.url.path,
            "version": toolchain_versions().get("wavesmith", ""),
            "base_url": str(request.base_url),
            "form_token": self.form_token(request),
        }
        template = self._environment.get_template(f"{name}.html.j2")
        return HTMLResponse(template.render({**shared, **values}), status)

    def missing(self, request: Request, title: str, detail: str) -> HTMLResponse:
        """A page that is not there."""
        return self.render(request, "error", {"title": title, "detail": detail}, 404)

    def problem(self, request: Request, status: int, title: str, detail: str) -> HTMLResponse | None:
        """An error as a page, for a browser that asked for one; None for a client of the API."""
        path = request.url.path
        if "text/html" not in request.headers.get("accept", "") or path.startswith(_FOR_MACHINES):
            return None
        return self.render(request, "error", {"title": title, "detail": detail}, status)

    def form_token(self, request: Request) -> str:
        cookie = session_cookie(request.headers)
        return self.sessions.form_token(cookie) if self.sessions is not None and cookie else ""

    def check_form(self, request: Request, given: str) -> None:
        """Refuse a form that did not come from one of our own pages in this session."""
        if self.sessions is not None and (not given or given != self.form_token(request)):
            raise ProblemError(403, "forbidden", "The form is too old or came from elsewhere; load the page again.")
