"""Charts as SVG made on the server: geometry in attributes and colours in the page's sheet, so no inline style."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent.stats import HitRate

_LABEL, _BAR, _ROW = 230, 400, 26
_TREND_WIDTH, _TREND_HEIGHT, _TREND_FOOT = 720, 150, 24


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
        ends = f'x1="{_LABEL + _BAR * low:.1f}" x2="{_LABEL + _BAR * high:.1f}"'
        parts.append(
            f'<text x="0" y="{y + 18}">{escape(rate.skill)}</text>'
            f'<rect class="bar" x="{_LABEL}" y="{y + 6}" width="{_BAR}" height="16" rx="3"/>'
            f'<rect class="bar-good" x="{_LABEL}" y="{y + 6}" width="{_BAR * share:.1f}" height="16" rx="3"/>'
            f'<line class="halo" {ends} y1="{middle}" y2="{middle}"/><line class="whisker" {ends} '
            f'y1="{middle}" y2="{middle}"/>'
            f'<text class="soft" x="{_LABEL + _BAR + 10}" y="{y + 18}">{rate.kept} of {rate.tried}</text>'
        )
    for share in (0.0, 0.5, 1.0):
        x = _LABEL + _BAR * share
        parts.append(f'<text class="soft" x="{x:.0f}" y="{height - 6}" text-anchor="middle">{share:.0%}</text>')
    return "".join(parts) + "</svg>"


def funnel_chart(stages: Sequence[tuple[str, int]]) -> str:
    """How many edits came how far: a bar for each stage, as a share of the first."""
    height, width = _ROW * len(stages), _LABEL + _BAR + 130
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" aria-labelledby="funnel-title"><title id="funnel-title">How far edits came</title>'
    ]
    first = max(1, stages[0][1])
    for i, (label, n) in enumerate(stages):
        y, length = i * _ROW, _BAR * min(1.0, n / first)
        parts.append(
            f'<text x="0" y="{y + 18}">{escape(label)}</text>'
            f'<rect class="bar" x="{_LABEL}" y="{y + 6}" width="{_BAR}" height="16" rx="3"/>'
            f'<rect class="bar-good" x="{_LABEL}" y="{y + 6}" width="{length:.1f}" height="16" rx="3"/>'
            f'<text class="soft" x="{_LABEL + _BAR + 10}" y="{y + 18}">{n:,} ({n / first:.0%})</text>'
        )
    return "".join(parts) + "</svg>"


def trend_chart(points: Sequence[tuple[str, int, int]]) -> str:
    """Share kept by week, from (day the week begins, tried, kept). A week without trials has no bar."""
    bottom = _TREND_HEIGHT - _TREND_FOOT
    left, step = 44, (_TREND_WIDTH - 44) / len(points)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_TREND_WIDTH} {_TREND_HEIGHT}" width="{_TREND_WIDTH}" '
        f'height="{_TREND_HEIGHT}" role="img" aria-labelledby="trend-title">'
        '<title id="trend-title">Share of tried edits kept, by week</title>'
    ]
    for share in (0.0, 0.5, 1.0):
        y = bottom - (bottom - 10) * share
        parts.append(f'<line class="grid" x1="{left}" x2="{_TREND_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="soft" x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    for i, (day, tried, kept) in enumerate(points):
        x, height = left + i * step, (bottom - 10) * kept / tried if tried else 0.0
        parts.append(
            f'<rect class="bar-good" x="{x + step * 0.15:.1f}" y="{bottom - height:.1f}" width="{step * 0.7:.1f}" '
            f'height="{height:.1f}"><title>{day}: {kept} of {tried}</title></rect>'
        )
    for i, anchor in ((0, "start"), (len(points) - 1, "end")):
        x = left + (i + (anchor == "end")) * step
        parts.append(
            f'<text class="soft" x="{x:.1f}" y="{_TREND_HEIGHT - 6}" text-anchor="{anchor}">{points[i][0]}</text>'
        )
    return "".join(parts) + "</svg>"
