"""The dashboard's page of skills: hit rates, their trend, what worked best and worst, and why edits were not kept."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse
from markupsafe import Markup

from agent.stats import HitRate, wilson
from api.charts import funnel_chart, hit_rate_chart, trend_chart
from api.pages import Pages
from api.trial_store import TrialStore, Week
from sandbox.kernel import Language
from sandbox.target import known_archs
from sandbox.verdict import Correctness
from skills.skill import load_library

CHARTED = 12
"""Skills in the chart; the table has all."""
WEEKS = 26
_EXAMPLES = 5
_SHOWN_REASONS = 10


def add_skill_page(app: FastAPI, pages: Pages) -> None:
    """`/skills`."""
    trials = TrialStore(pages.store)

    @app.get("/skills", include_in_schema=False)
    def skills_page(
        request: Request, arch: str = "", language: str = "", correctness: str = "", skill: str = ""
    ) -> HTMLResponse:
        chosen = {"arch": arch, "language": language, "correctness": correctness, "skill": skill}
        wanted = {k: v for k, v in chosen.items() if v}
        rates = trials.hit_rates(wanted)
        library = load_library()
        values = {
            "rates": [{**r.to_json(), "low": r.kept_interval[0], "high": r.kept_interval[1]} for r in rates],
            **_charts(rates, trials.trend(wanted, weeks=WEEKS)),
            "proven": {s.id for s in library if s.proven},
            "archs": known_archs(),
            "languages": list(Language),
            "levels": [str(c) for c in Correctness],
            "names": sorted({*library.skills, *([skill] if skill else [])}),
            "detail": library.skills[skill].data if skill in library.skills else None,
            "reasons": trials.failures(wanted, limit=_SHOWN_REASONS) if skill else [],
            "best": trials.best(wanted, limit=_EXAMPLES) if skill else [],
            "worst": trials.worst(wanted, limit=_EXAMPLES) if skill else [],
        }
        return pages.render(request, "skills", {**values, **chosen})


def _charts(rates: list[HitRate], weeks: list[Week]) -> dict[str, Any]:
    """Charts as markup (every text in them is escaped), with the numbers behind them."""
    if not rates:
        return {"chart": "", "funnel": "", "trend": "", "stages": [], "weeks": [], "uncharted": 0}
    stages = stages_of(rates)
    points = [(_day(w.start), w.tried, w.kept) for w in weeks]
    return {
        "chart": Markup(hit_rate_chart(rates[:CHARTED])),
        "uncharted": max(0, len(rates) - CHARTED),
        "funnel": Markup(funnel_chart(stages)),
        "stages": stages,
        "trend": Markup(trend_chart(points)) if len(points) > 1 else "",
        "weeks": [(*p, *wilson(p[2], p[1])) for p in points],
    }


def stages_of(rates: list[HitRate]) -> list[tuple[str, int]]:
    """How many edits of all given skills came to each stage."""
    names = ("tried", "compiled", "equivalent", "effective", "kept")
    labels = ("Matched and applied", "Compiled", "Equivalent", "Effective", "Kept")
    return [(label, sum(getattr(r, n) for r in rates)) for label, n in zip(labels, names, strict=True)]


def _day(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()
