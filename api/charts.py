"""Charts as SVG made on the server: geometry in attributes and colours in the page's sheet, so no inline style."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent.stats import HitRate

_LABEL, _BAR, _ROW = 230, 400, 26


def hit_rate_chart(rates: Sequence[HitRate]) -> str:
    """Share kept per skill as a bar with the whisker of its Wilson interval."""
    height = _ROW * len(rates) + 30
    width = _LABEL + _BAR + 90
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-labelledby="rates-title"><title id="rates-title">Share of tried edits kept, per skill</title>'
    ]
    for i, rate in enumerate(rates):
        y = i * _ROW
        share = rate.kept / rate.tried if rate.tried else 0.0
        low, high = rate.kept_interval
        middle = y + 14
        parts.append(
            f'<text x="0" y="{y + 18}">{escape(rate.skill)}</text>'
            f'<rect class="bar" x="{_LABEL}" y="{y + 6}" width="{_BAR}" height="16" rx="3"/>'
            f'<rect class="bar-good" x="{_LABEL}" y="{y + 6}" width="{_BAR * share:.1f}" height="16" rx="3"/>'
            f'<line class="whisker" x1="{_LABEL + _BAR * low:.1f}" x2="{_LABEL + _BAR * high:.1f}" '
            f'y1="{middle}" y2="{middle}"/>'
            f'<text class="soft" x="{_LABEL + _BAR + 10}" y="{y + 18}">{rate.kept} of {rate.tried}</text>'
        )
    for share in (0.0, 0.5, 1.0):
        x = _LABEL + _BAR * share
        parts.append(f'<text class="soft" x="{x:.0f}" y="{height - 6}" text-anchor="middle">{share:.0%}</text>')
    return "".join(parts) + "</svg>"
