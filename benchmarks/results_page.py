"""The results page: what `benchmarks/run.py` timed, beside what `benchmarks/patch_suite.py` showed for AMD.

    python benchmarks/results_page.py --out benchmarks/out --reports wavesmith-out/gfx950 wavesmith-out/gfx942

writes results.md, page.json, results.svg and waterfalls/ from results.json; standard library only.

Counting: a kernel that has no patch, was not timed, or differs within noise counts as 1.0; one that became slower
counts as what it became. Geomeans and medians are over all kernels, their number beside them. Edits whose mechanism
only AMD hardware has are listed apart: their resources and counts moved as the skill promised, no clock of AMD has
seen them, and a time from another vendor's device is shown but enters no mean.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Timed:
    """A/B of a kernel against another version of it: `verdict` is gain, noise, loss, suspect or not-timed."""

    verdict: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    baseline_us: float | None = None
    other_us: float | None = None
    note: str = ""

    @property
    def counted(self) -> float:
        """What enters a mean: a difference inside noise, or one that cannot be believed, is none."""
        return self.ratio if self.ratio is not None and self.verdict in ("gain", "loss") else 1.0


@dataclass(frozen=True)
class Shown:
    """What the report of one kernel says for one architecture."""

    arch: str
    outcome: str
    correctness: str
    speed: str
    statement: str
    skills: tuple[str, ...] = ()
    amd_only: bool = False
    """No kept edit has a counterpart on NVIDIA: a clock there says nothing about it."""
    summary: str = ""

    @property
    def improved(self) -> bool:
        return self.outcome in ("improved", "builds-now")


@dataclass(frozen=True)
class Row:
    name: str
    bottleneck: str
    origin: str
    ours: Timed | None
    expert: Timed | None
    alone_us: float | None = None
    """Baseline time where there was nothing to compare it with."""
    elsewhere: bool = False
    """Timed on a device that is not AMD's."""
    tuned: str = ""
    """The edit of ours that this clock chose, where it chose one."""
    shown: dict[str, Shown] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """Ours / expert, where both were timed and can be believed."""
        timed = ("gain", "loss", "noise")
        if self.expert is None or self.expert.verdict not in timed:
            return None
        if self.ours is not None and self.ours.verdict not in timed:
            return None
        return self.counted / self.expert.counted

    @property
    def counted(self) -> float:
        """Ours in a mean. A device without what the edits are made for says nothing about them, either way."""
        return 1.0 if self.ours is None or self.says_nothing else self.ours.counted

    @property
    def says_nothing(self) -> bool:
        """Whether the time is of edits that this device has no use for."""
        return self.amd_only and self.elsewhere and not self.tuned

    @property
    def amd_only(self) -> bool:
        improved = [s for s in self.shown.values() if s.improved]
        return bool(improved) and all(s.amd_only for s in improved)

    @property
    def improved(self) -> bool:
        """By the clock, or by an edit that only AMD hardware has and whose expected metric moved."""
        return self.counted > 1.0 or self.amd_only


def timed(result: Mapping[str, Any] | None) -> Timed | None:
    """One comparison of results.json."""
    if result is None:
        return None
    if "fault" in result:
        return Timed("not-timed", note=str(result["fault"]).strip().splitlines()[-1][:200])
    interval = result["interval"]
    verdict = "noise"
    if result["suspicions"]:
        verdict = "suspect"
    elif result["gain"]:
        verdict = "gain"
    elif interval["high"] < 1 / (1 + result["noise_floor"]):
        verdict = "loss"
    times = (result["baseline_median_us"], result["candidate_median_us"])
    ends = (interval["ratio"], interval["low"], interval["high"])
    return Timed(verdict, *ends, *times, note="; ".join(result["suspicions"])[:200])


def best_of(result: Mapping[str, Any]) -> tuple[Mapping[str, Any] | None, str]:
    """Our comparison of a row of results.json: the fastest variant that is surely a gain and surely faster than the
    patch without one, with its edit; else the patch."""
    ours = result.get("ours")
    base = timed(ours)
    floor = base.high or 1.0 if base is not None and base.verdict == "gain" else 1.0
    gains = [
        (v["timing"], v["edit"])
        for v in result.get("variants", ())
        if (timed(v["timing"]) or Timed("")).verdict == "gain"
    ]
    better = [(t, edit) for t, edit in gains if t["interval"]["low"] > floor]
    return max(better, key=lambda g: float(g[0]["interval"]["low"])) if better else (ours, "")


def read_reports(folders: Iterable[Path]) -> dict[str, dict[str, Shown]]:
    """By kernel and architecture, what `patch_suite.py` left in `folders` (one folder per architecture)."""
    found: dict[str, dict[str, Shown]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*/job/report.json")):
            report = json.loads(path.read_text())
            summary = json.loads((path.parent.parent / "summary.json").read_text())
            skills = summary.get("skills") or {}
            shown = Shown(
                arch=report["target"]["arch"],
                outcome=report["outcome"],
                correctness=report["correctness"]["level"],
                speed=report["speed"]["level"],
                statement=report["speed"]["statement"],
                skills=tuple(skills),
                amd_only=bool(skills) and not any(skills.values()),
                summary=report["summary"],
            )
            found.setdefault(path.parent.parent.name, {})[shown.arch] = shown
    return found


def rows_of(results: Mapping[str, Any], shown: Mapping[str, dict[str, Shown]]) -> list[Row]:
    rows = []
    for name, r in results.items():
        ours, edit = best_of(r)
        rows.append(
            Row(
                name=name,
                bottleneck=r["bottleneck"],
                origin=r.get("origin", ""),
                ours=timed(ours),
                expert=timed(r.get("expert")),
                elsewhere="AMD" not in str((ours or {}).get("device", "AMD")),
                alone_us=(r.get("baseline") or {}).get("baseline_median_us"),
                tuned=edit,
                shown=shown.get(name, {}),
            )
        )
    return rows


def device_of(results: Mapping[str, Any]) -> str:
    names = (
        r[side]["device"] for r in results.values() for side in ("ours", "expert") if "device" in (r.get(side) or {})
    )
    return str(next(names, "no device"))


def geomean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values]
    return math.exp(sum(logs) / len(logs)) if logs else 1.0


def totals(rows: list[Row]) -> dict[str, Any]:
    """Numbers over all kernels; `n` beside every mean."""
    gains = [r.counted for r in rows]
    shares = [r.share for r in rows if r.share is not None]
    by_clock = [r for r in rows if r.counted > 1.0]
    return {
        "n": len(rows),
        "improved": sum(r.improved for r in rows),
        "improved_by_clock": len(by_clock),
        "improved_amd_only": sum(r.improved for r in rows) - len(by_clock),
        "slower": sum(r.counted < 1.0 for r in rows),
        "geomean": geomean(gains),
        "median": statistics.median(gains) if gains else 1.0,
        "ours_over_expert": geomean(shares) if shares else None,
        "ours_over_expert_median": statistics.median(shares) if shares else None,
        "ours_over_expert_n": len(shares),
    }


def markdown(rows: list[Row], device: str, note: str = "") -> str:
    t = totals(rows)
    external = [r for r in rows if r.origin]
    lines = [f"# Results on {device}", "", *([note, ""] if note else [])]
    lines += ["Ratios baseline / other from interleaved runs, 95% bootstrap interval; above 1 is faster.", ""]
    lines.append(
        f"**{t['improved']} of {t['n']} kernels improved** ({t['improved'] / max(t['n'], 1):.0%}):"
        f" {t['improved_by_clock']} by the clock of this device, {t['improved_amd_only']} by what only AMD has."
        f" {t['slower']} became slower. Over all {t['n']}, unimproved as 1.0: geomean {t['geomean']:.2f}x,"
        f" median {t['median']:.2f}x."
    )
    if external:
        e = totals(external)
        lines.append(
            f"Of other projects: {e['improved']} of {e['n']}, geomean {e['geomean']:.2f}x, median {e['median']:.2f}x."
        )
    if t["ours_over_expert"] is not None:
        lines.append(
            f"Ours / expert: geomean {t['ours_over_expert']:.2f}, median {t['ours_over_expert_median']:.2f},"
            f" n = {t['ours_over_expert_n']}."
        )
    lines += ["", "![ours and expert against the baseline](results.svg)", "", *_timed_table(rows)]
    return "\n".join([*lines, *_doubts(rows), *_amd_only(rows), *_deltas(rows), *_origins(external)]) + "\n"


def _timed_table(rows: list[Row]) -> list[str]:
    lines = ["| kernel | bottleneck | baseline us | ours us | expert us | ours | expert | ours / expert |"]
    lines.append("|---|---|---:|---:|---:|---|---|---:|")
    for r in rows:
        first = r.ours if r.ours is not None and r.ours.baseline_us is not None else r.expert
        times = [
            first.baseline_us if first else r.alone_us,
            r.ours.other_us if r.ours else None,
            r.expert.other_us if r.expert else None,
        ]
        share = "-" if r.share is None else f"{r.share:.2f}"
        lines.append(
            f"| {r.name} | {r.bottleneck} | {' | '.join('-' if x is None else f'{x:,.1f}' for x in times)} | "
            f"{spell(r.ours)}{', not counted: for AMD only' if r.ours and r.says_nothing else ''}"
            f"{f', `{r.tuned}`' if r.tuned else ''} | "
            f"{spell(r.expert)} | {share} |"
        )
    return lines


def spell(t: Timed | None) -> str:
    if t is None:
        return "-"
    if t.ratio is None:
        return "not timed"
    mark = {"suspect": " (not believed)", "noise": " (noise)", "loss": " (slower)"}.get(t.verdict, "")
    return f"{t.ratio:.2f}x [{t.low:.2f}, {t.high:.2f}]{mark}"


def _doubts(rows: list[Row]) -> list[str]:
    """Why a time is missing or not believed."""
    lines = [
        f"| {r.name} | {side} | {t.note.replace('|', '/')} |"
        for r in rows
        for side, t in (("ours", r.ours), ("expert", r.expert))
        if t is not None and t.note
    ]
    head = ["", "## Not timed, or not believed", "", "| kernel | version | why |", "|---|---|---|"]
    return [*head, *lines] if lines else []


def _amd_only(rows: list[Row]) -> list[str]:
    chosen = [r for r in rows if r.amd_only]
    if not chosen:
        return []
    lines = ["", "## What only AMD hardware has", ""]
    lines += ["The expected metric moved and none got worse; not timed. Unproven until someone runs it there.", ""]
    lines += ["| kernel | skills | arch | evidence | what moved |", "|---|---|---|---|---|"]
    for r in chosen:
        for s in r.shown.values():
            if s.improved:
                evidence = f"{s.correctness}, {s.speed}"
                lines.append(f"| {r.name} | {', '.join(s.skills)} | {s.arch} | {evidence} | {s.statement} |")
    return lines


def _deltas(rows: list[Row]) -> list[str]:
    """Static and counted changes of every kernel, and what is said where there is no patch."""
    archs = sorted({a for r in rows for a in r.shown})
    if not archs:
        return []
    lines = ["", "## Code objects and counted runs", "", f"| kernel | {' | '.join(archs)} | waterfall |"]
    lines.append("|---" * (len(archs) + 2) + "|")
    for r in rows:
        cells = [_cell(r.shown.get(a)) for a in archs]
        pictures = [f"[{a}]({waterfall_name(r.name, a)})" for a in archs if a in r.shown and r.shown[a].improved]
        lines.append(f"| {r.name} | {' | '.join(cells)} | {' '.join(pictures) or '-'} |")
    return lines


def _cell(s: Shown | None) -> str:
    if s is None:
        return "-"
    text = s.statement if s.improved and s.statement else s.summary
    return f"{s.outcome} ({s.correctness}, {s.speed}): {text}".replace("|", "\\|").replace("\n", " ")[:400]


def _origins(external: list[Row]) -> list[str]:
    if not external:
        return []
    lines = ["", "## Where the external kernels are from", ""]
    return lines + [f"- {r.name}: {r.origin}" for r in external]


def waterfall_name(name: str, arch: str) -> str:
    return f"waterfalls/{name}-{arch}.svg"


_WIDTH, _LABEL, _BAR, _ROW = 860, 250, 520, 30
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1c2430}.note{fill:#566173}.ours{fill:#1f7a4d}.expert{fill:#6b5bd2}"
    ".line{stroke:#8892a0}.whisker{stroke:#1c2430;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#e8ecf2}.note{fill:#a3adbb}.ours{fill:#4cc38a}.expert{fill:#a79bf5}"
    ".whisker{stroke:#e8ecf2}}"
)


def chart(rows: list[Row], device: str) -> str:
    """Ours and expert over the baseline, a pair of bars per kernel on a logarithmic axis, intervals as whiskers."""
    known = [t for r in rows for t in (r.ours, r.expert) if t is not None and t.ratio is not None]
    ends = [x for t in known for x in (t.low, t.high) if x] or [1.0]
    low, high = min(0.5, *ends), max(2.0, *ends)

    def x(value: float) -> float:
        share = math.log(value / low) / math.log(high / low)
        return round(_LABEL + _BAR * min(max(share, 0.0), 1.0), 1)

    parts, y = [], 56
    ticks = [v for v in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200) if low <= v <= high]
    height = y + _ROW * len(rows) + 16
    for v in ticks:
        parts.append(
            f'<line class="line" x1="{x(v)}" x2="{x(v)}" y1="{y - 6}" y2="{height - 12}" stroke-dasharray="2 4"/>'
        )
        parts.append(f'<text class="note" x="{x(v)}" y="{y - 10}" text-anchor="middle">{v:g}x</text>')
    for r in rows:
        parts.append(f'<text x="12" y="{y + 17}">{escape(r.name)}</text>')
        for t, css, dy in ((r.ours, "ours", 4), (r.expert, "expert", 15)):
            parts += _bar(t, css, y + dy, x)
        y += _ROW
    title = f"Speed of ours and of the expert's version over the baseline, {device}"
    key = '<text x="12" y="42"><tspan class="ours">■</tspan> ours <tspan class="expert">■</tspan> expert</text>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f'role="img" aria-labelledby="t"><title id="t">{escape(title)}</title><style>{_STYLE}</style>'
        f'<text x="12" y="22">{escape(title)}</text>{key}{"".join(parts)}</svg>\n'
    )


def _bar(t: Timed | None, css: str, y: int, x: Any) -> list[str]:
    if t is None or t.ratio is None or t.low is None or t.high is None or t.verdict == "suspect":
        return []
    left, right = sorted((x(1.0), x(t.ratio)))
    mid = y + 4
    return [
        f'<rect class="{css}" x="{left}" y="{y}" width="{max(right - left, 1.0):.1f}" height="9"/>',
        f'<line class="whisker" x1="{x(t.low)}" x2="{x(t.high)}" y1="{mid}" y2="{mid}"/>',
    ]


def write(out: Path, results: Mapping[str, Any], reports: Iterable[Path], note: str = "") -> dict[str, Any]:
    """Write the page below `out`, with `note` under its title; returns its numbers."""
    folders = list(reports)
    rows, device = rows_of(results, read_reports(folders)), device_of(results)
    (out / "results.md").write_text(markdown(rows, device, note))
    (out / "results.svg").write_text(chart(rows, device))
    data = {"device": device, "totals": totals(rows), "rows": [asdict(r) | {"share": r.share} for r in rows]}
    (out / "page.json").write_text(json.dumps(data, indent=1))
    for folder in folders:
        for picture in sorted(folder.glob("*/job/waterfall.svg")):
            arch = json.loads((picture.parent / "report.json").read_text())["target"]["arch"]
            target = out / waterfall_name(picture.parent.parent.name, arch)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(picture, target)
    return data


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "out", help="where results.json lies")
    parser.add_argument("--reports", type=Path, nargs="*", default=[], help="folders that patch_suite.py wrote")
    parser.add_argument("--note", default="", help="a paragraph under the title: when, and with which versions")
    options = parser.parse_args()
    results = json.loads((options.out / "results.json").read_text())
    numbers = write(options.out, results, options.reports, options.note)
    print(json.dumps(numbers["totals"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
