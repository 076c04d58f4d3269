"""`report.md`: the report for a reader, in the order of their questions: what came out, how sure, what was tried."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from agent.report import MetricChange, Report

_MAIN_METRICS = frozenset(
    {"vgpr_count", "vgpr_spill_count", "scratch_bytes", "lds_bytes", "occupancy_waves_per_simd", "instructions"}
)
"""Shown always; other metrics only where they changed. `report.json` holds all."""


def report_markdown(report: Report) -> str:
    """The whole report as GitHub-flavoured Markdown."""
    parts = [
        [
            f"# {report.file.path} for {report.target.arch} ({report.target.board}): {report.outcome}",
            "",
            _inline(report.summary),
        ],
        _evidence(report),
        _baseline(report),
        _waterfall(report),
        _offers(report),
        _refusals(report),
        _attempts(report),
        _skipped(report),
        _model(report),
        _footer(report),
    ]
    return "\n\n".join("\n".join(p) for p in parts if p) + "\n"


def _evidence(report: Report) -> list[str]:
    if report.artifacts.patch is None:
        return []
    word = "validated" if report.correctness.validated else "not validated"
    speed = f": {_inline(report.speed.statement)}" if report.speed.statement else ""
    lines = [
        "## What was shown",
        "",
        f"- Correctness: **{report.correctness.level}** ({word}).",
        f"- Speed: **{report.speed.level}**{speed}",
        *(f"- {_inline(s)}" for s in report.statements),
        "",
        f"Apply with `git apply {report.artifacts.patch}` from the root of the repository.",
    ]
    if report.speed.metrics:
        lines += ["", *_changes(report.speed.metrics)]
    if report.correctness.checks:
        lines += ["", "| check | passed | detail |", "|---|---|---|"]
        lines += [_row(c.name, "yes" if c.passed else "no", c.detail) for c in report.correctness.checks]
    return lines


def _baseline(report: Report) -> list[str]:
    base = report.baseline
    how = "recorded" if report.file.language == "triton" else "made up from signatures and launch sites"
    lines = [
        "## Before",
        "",
        f"{_count(base.launches, 'launch')} {how}, executed by: {base.executor}. "
        + (f"Builds for {report.target.arch}." if base.builds else f"Does not build for {report.target.arch}:"),
    ]
    for failure in base.failures:
        place = f"`{failure.kernel}`" + (f", line {failure.line}" if failure.line is not None else "")
        lines.append(f"- {place}: {_inline(failure.message)}")
        if failure.source_line:
            lines.append(f"  `{failure.source_line.strip()}`")
    if base.bottlenecks:
        lines += ["", f"Bottlenecks: {', '.join(base.bottlenecks)}."]
    lines += ["", *(f"- {_inline(n)}" for n in base.notes)] if base.notes else []
    if base.suggested_harness:
        lines += ["", "Nothing calls the kernels here. With this at its end the file's results can be compared:", ""]
        lines += ["```python", base.suggested_harness.strip(), "```"]
    if base.kernels:
        after = {k.kernel: k.metrics for k in report.result}
        lines += ["", "| kernel | metric | before | after |", "|---|---|---|---|"]
        for part in base.kernels:
            for name, value in part.metrics.items():
                changed = after.get(part.kernel, {}).get(name)
                if name in _MAIN_METRICS or (changed is not None and changed != value):
                    lines.append(_row(part.kernel, name, _number(value), _number(changed)))
    return lines


def _waterfall(report: Report) -> list[str]:
    if not report.waterfall:
        return []
    lines = ["## Step by step", ""]
    if report.artifacts.waterfall:
        lines += [f"![What each step changed]({report.artifacts.waterfall})", ""]
    for number, step in enumerate(report.waterfall, 1):
        lines.append(f"{number}. {step.label} ({step.speed}): {_inline(step.statement)}")
    return lines


def _offers(report: Report) -> list[str]:
    if not report.offers:
        return []
    lines = [
        "## Offered separately",
        "",
        "Not part of the patch, because their effect or their results were not shown.",
        "",
    ]
    for offer in report.offers:
        levels = f"correctness {offer.correctness}, speed {offer.speed}"
        lines.append(f"- {offer.title} ([{offer.patch}]({offer.patch}); {levels}): {_inline(offer.reason)}")
    return lines


def _refusals(report: Report) -> list[str]:
    if not report.refusals:
        return []
    lines = ["## Refused", ""]
    return lines + [f"- Line {r.line} ({r.origin}): {_inline(r.reason)} {_inline(r.route)}" for r in report.refusals]


def _attempts(report: Report) -> list[str]:
    if not report.attempts:
        return []
    head = ["## What was tried", "", "| # | edit | fate | correctness | speed | why |", "|---|---|---|---|---|---|"]
    rows = [_row(str(a.number), a.id, a.fate, a.correctness, a.speed, a.reason) for a in report.attempts]
    return head + rows + (["", f"The search ended early: {report.stopped}."] if report.stopped else [])


def _skipped(report: Report) -> list[str]:
    if not report.skipped:
        return []
    rows = [_row(s.origin, s.reason) for s in report.skipped]
    return ["## Not tried", "", "| skill | condition not met |", "|---|---|", *rows]


def _model(report: Report) -> list[str]:
    """What the language model cost and gave; its proposals are in the table of attempts, under its name."""
    m = report.model
    if m is None:
        return []
    tokens = m.input_tokens + m.cache_read_tokens + m.cache_write_tokens + m.output_tokens
    limit = f" of ${m.budget_usd:,.2f}" if m.budget_usd is not None else ""
    prices = f" (prices of {m.prices_as_of})" if m.prices_as_of else ""
    cost = "its price is not known" if m.usd is None else f"${m.usd:,.4f}{limit}{prices}"
    lines = [
        "## Language model",
        "",
        f"{_inline(m.name)} ({m.provider}): {_count(m.calls, 'call')}, {tokens:,} tokens, {cost}. "
        f"{_count(m.proposals, 'proposal')} judged, {m.kept} kept. It proposes; the validator decides.",
    ]
    if m.confirmation:
        lines += ["", f"{_inline(m.confirmation[:1].upper() + m.confirmation[1:]).rstrip('.')}."]
    if m.ended:
        lines += ["", f"{'It failed' if m.failed else 'It ended'}: {_inline(m.ended).rstrip('.')}."]
    return [*lines, "", f"Everything it was asked and answered: [{m.transcript}]({m.transcript})."]


def _footer(report: Report) -> list[str]:
    versions = ", ".join(f"{v.name} {v.version}" for v in report.toolchain)
    return ["## How", "", f"`{report.reproduce}`", "", f"{versions}. {report.created_at}, {report.seconds:g} s."]


def _changes(metrics: Sequence[MetricChange]) -> Iterable[str]:
    yield "| metric | before | after |"
    yield "|---|---|---|"
    for m in metrics:
        yield _row(m.name, _number(m.before), _number(m.after))


def _row(*cells: str) -> str:
    return "| " + " | ".join(_inline(c).replace("|", "\\|") for c in cells) + " |"


def _inline(text: str) -> str:
    """One line of text; compiler messages come with line breaks, and may hold what Markdown or HTML would act on."""
    return " ".join(text.split()).replace("<", "&lt;")


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}{'es' if noun.endswith('ch') else 's'}"
