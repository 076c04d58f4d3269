"""The waterfall: what each kept step changed, as an SVG that needs no script and reads in dark and light."""

from __future__ import annotations

from html import escape

from agent.report import Report, WaterfallStep

_WIDTH = 720
_LABEL = 280
_BAR = 300
_ROW = 26
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1c2430}.note{fill:#566173}.step{font-weight:600}"
    ".before{fill:#b6bfcc}.after{fill:#1f7a4d}.axis{stroke:#8892a0}"
    "@media(prefers-color-scheme:dark){text{fill:#e8ecf2}.note{fill:#a3adbb}.before{fill:#4a5464}.after{fill:#4cc38a}}"
)


def waterfall_svg(report: Report) -> str:
    """One block per step: its metrics before and after, scaled to the larger of each pair."""
    rows: list[str] = []
    y = 48
    for step in report.waterfall:
        y = _step(rows, step, y)
    title = f"What each step changed: {report.file.path} for {report.target.arch}"
    described = "; ".join(f"{s.label}: {s.statement}" for s in report.waterfall)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y + 8}" viewBox="0 0 {_WIDTH} {y + 8}" '
        f'role="img" aria-labelledby="t d"><title id="t">{escape(title)}</title><desc id="d">{escape(described)}</desc>'
        f'<style>{_STYLE}</style><text class="step" x="12" y="24">{escape(_clip(title, 90))}</text>'
        + "".join(rows)
        + "</svg>\n"
    )


def _step(rows: list[str], step: WaterfallStep, y: int) -> int:
    """Append the rows of one step; returns the y below them."""
    rows.append(f'<text class="step" x="12" y="{y + 16}">{escape(_clip(step.label, 60))}</text>')
    rows.append(f'<text class="note" x="{_WIDTH - 12}" y="{y + 16}" text-anchor="end">{escape(step.speed)}</text>')
    y += _ROW
    if not step.metrics and step.ratio is None:
        rows.append(f'<text class="note" x="24" y="{y + 14}">{escape(_clip(step.statement, 95))}</text>')
        return y + _ROW + 6
    if step.ratio is not None:
        y = _pair(rows, "time (relative)", 1.0, 1.0 / step.ratio, y)
    for change in step.metrics:
        if change.before is not None and change.after is not None:
            y = _pair(rows, change.name, change.before, change.after, y)
    return y + 6


def _pair(rows: list[str], name: str, before: float, after: float, y: int) -> int:
    largest = max(abs(before), abs(after)) or 1.0
    rows.append(f'<text x="24" y="{y + 14}">{escape(_clip(name, 38))}</text>')
    for value, css, dy in ((before, "before", 3), (after, "after", 11)):
        width = round(_BAR * abs(value) / largest, 1)
        rows.append(f'<rect class="{css}" x="{_LABEL}" y="{y + dy}" width="{width}" height="7"/>')
    rows.append(f'<text class="note" x="{_LABEL + _BAR + 10}" y="{y + 14}">{_number(before)} → {_number(after)}</text>')
    return y + _ROW


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3g}"


def _clip(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
