"""Rooflines as SVG: attainable speed over arithmetic intensity for one board, kernels as points."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from sandbox.target import Board, Dtype

_Scale = Callable[[float], float]
_WIDTH, _HEIGHT = 640, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 28, 48


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel: floating-point operations, HBM bytes, time; `evidence` is the speed scale's word for the time."""

    label: str
    flops: float
    hbm_bytes: float
    time_us: float
    evidence: str

    @property
    def intensity(self) -> float:
        """FLOP per byte."""
        return self.flops / self.hbm_bytes

    @property
    def tflop_per_s(self) -> float:
        return self.flops / self.time_us / 1e6


def attainable_tflop_per_s(board: Board, dtype: Dtype, intensity: float) -> float:
    """The lower of the matrix peak (vector peak where the dtype has none) and bandwidth times intensity."""
    return min(peak(board, dtype), board.hbm_gb_per_s * intensity / 1e3)


def peak(board: Board, dtype: Dtype) -> float:
    return board.peak_tflop_per_s.get(dtype, board.peak_vector_fp32_tflop_per_s)


def least_time_us(board: Board, dtype: Dtype, flops: float, hbm_bytes: float) -> float:
    """No run can be shorter: the larger of flops/peak and bytes/bandwidth. A shorter measurement is a wrong one."""
    return max(flops / (peak(board, dtype) * 1e6), hbm_bytes / (board.hbm_gb_per_s * 1e3))


def roofline_svg(board: Board, dtype: Dtype, points: Sequence[Point], title: str) -> str:
    """A log-log roofline with a text alternative. Points must have positive flops, bytes and time."""
    ridge = peak(board, dtype) * 1e3 / board.hbm_gb_per_s
    xs = [p.intensity for p in points] + [ridge]
    x_low, x_high = math.floor(math.log10(min(xs)) - 0.3), math.ceil(math.log10(max(xs)) + 0.7)
    ys = [p.tflop_per_s for p in points] + [peak(board, dtype)]
    y_low, y_high = math.floor(math.log10(min(ys)) - 0.3), math.ceil(math.log10(max(ys)) + 0.1)

    def x(value: float) -> float:
        return _LEFT + (math.log10(value) - x_low) / (x_high - x_low) * (_WIDTH - _LEFT - _RIGHT)

    def y(value: float) -> float:
        share = (math.log10(value) - y_low) / (y_high - y_low)
        return _HEIGHT - _BOTTOM - max(0.0, share) * (_HEIGHT - _TOP - _BOTTOM)

    start, end = 10.0**x_low, 10.0**x_high
    roof = " ".join(
        f"{x(i):.1f},{y(attainable_tflop_per_s(board, dtype, i)):.1f}"
        for i in (start, max(start, min(ridge, end)), end)
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="currentColor">',
        f"<title>{escape(title)}</title>",
        f"<desc>{escape(_describe(board, dtype, points))}</desc>",
        f'<text x="{_LEFT}" y="16" font-weight="600">{escape(title)}</text>',
        *_axes(x, y, (x_low, x_high), (y_low, y_high)),
        f'<polyline points="{roof}" fill="none" stroke="currentColor" stroke-width="2"/>',
        f'<text x="{_WIDTH - _RIGHT}" y="{y(peak(board, dtype)) - 6:.1f}" text-anchor="end">'
        f"{escape(board.name)} {dtype} peak {peak(board, dtype):g} TFLOP/s</text>",
    ]
    for n, point in enumerate(points):
        px, py = x(point.intensity), y(point.tflop_per_s)
        parts.append(f'<circle cx="{px:.1f}" cy="{py:.1f}" r="5" fill="{"none" if n == 0 else "currentColor"}" '
                     f'stroke="currentColor" stroke-width="2"/>')  # fmt: skip
        parts.append(f'<text x="{px + 9:.1f}" y="{py + 4:.1f}">{escape(point.label)} ({escape(point.evidence)})</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _axes(x: _Scale, y: _Scale, x_range: tuple[int, int], y_range: tuple[int, int]) -> list[str]:
    """Decade lines and labels."""
    bottom = _HEIGHT - _BOTTOM
    parts = []
    for power in range(x_range[0], x_range[1] + 1):
        px = x(10.0**power)
        parts.append(_line(px, _TOP, px, bottom))
        parts.append(f'<text x="{px:.1f}" y="{bottom + 16}" text-anchor="middle">{10.0**power:g}</text>')
    for power in range(y_range[0], y_range[1] + 1):
        py = y(10.0**power)
        parts.append(_line(_LEFT, py, _WIDTH - _RIGHT, py))
        parts.append(f'<text x="{_LEFT - 6}" y="{py + 4:.1f}" text-anchor="end">{10.0**power:g}</text>')
    parts.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 10}" text-anchor="middle">FLOP per HBM byte</text>')
    turned = f'transform="rotate(-90 12 {_HEIGHT / 2})" text-anchor="middle"'
    parts.append(f'<text x="12" y="{_HEIGHT / 2}" {turned}>TFLOP/s</text>')
    return parts


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="currentColor" opacity="0.15"/>'


def _describe(board: Board, dtype: Dtype, points: Sequence[Point]) -> str:
    said = [f"{p.label}: {p.tflop_per_s:.3g} TFLOP/s at {p.intensity:.3g} FLOP/byte ({p.evidence})" for p in points]
    ceiling = f"{board.name}: {peak(board, dtype):g} TFLOP/s {dtype}, {board.hbm_gb_per_s:g} GB/s"
    return "; ".join([ceiling, *said])
