"""What a review looks like on GitHub: one check run, one comment, suggestions. Limits are those of GitHub's API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from agent.review.finding import RULES, Finding, Fix, Level, ReviewResult
from api.github.markdown import code, details, fenced, html_code, plain, sentence
from api.github.markers import finding_marker

MARKER = "<!-- wavesmith:review -->"
RESOLVED = "<!-- wavesmith:resolved -->"
CHECK_NAME = "Wavesmith"
ANNOTATIONS_PER_REQUEST = 50
MAX_ANNOTATIONS = 500
MAX_TITLE = 255
MAX_SECTIONS = 20
"""Findings in the comment; the check run has all."""
MAX_BODY = 64_000
"""GitHub takes 65,535 characters; the rest is room for line ends that it counts twice."""
_MAX_ANNOTATION_TEXT = 4000
_MAX_SHOWN_PATCH = 12_000
_SEVERITIES = {Level.NOTE: "notice", Level.WARNING: "warning", Level.ERROR: "failure"}
_EVIDENCE = {
    "source": "read in the source, not built",
    "compiled": "compiled, not executed",
    "interpreted": "results matched in the interpreter; AMD code not executed",
    "executed-elsewhere": "results matched on another GPU",
    "emulated": "results of the AMD code matched in the emulator; not run on a GPU",
    "executed": "results matched on the target",
}
_COMMANDS = "`/wavesmith rerun` · `/wavesmith target gfx942` · `/wavesmith ignore RULE` (write access)"


def evidence_words(level: str) -> str:
    """An evidence level as words for people."""
    return _EVIDENCE.get(level, "nothing was shown")


def headline(result: ReviewResult) -> str:
    """The review in one line."""
    introduced = result.counted()
    touched = len(result.findings) - len(introduced)
    if not result.files_reviewed:
        return "No kernel is affected by this change."
    reviewed = _count(len(result.kernels), "affected kernel")
    if not result.findings:
        return f"Nothing found in {reviewed}."
    by_level = [_count(n, lv) for lv in reversed(Level) if (n := sum(f.level == lv for f in introduced))]
    found = f"{', '.join(by_level)} introduced" if introduced else "Nothing introduced"
    return f"{found}{f', {touched} there before' if touched else ''}, in {reviewed}."


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' if n != 1 else ''}"


def conclusion(result: ReviewResult) -> str:
    """`failure` only where the repository asked for it."""
    if result.fails():
        return "failure"
    return "neutral" if result.counted() else "success"


def check_output(result: ReviewResult) -> dict[str, Any]:
    """Title, summary and text of the check run, without annotations."""
    parts = [headline(result), f"Targets: {', '.join(result.targets)}. {_spent(result)}"]
    if result.findings:
        parts.append(_table(result.findings))
    if result.hidden:
        parts.append(f"{_count(result.hidden, 'finding')} kept quiet by `ignore`.")
    parts += [f"- {sentence(n)}" for n in result.notes]
    if result.skipped:
        rows = "\n".join(f"- {code(s.what)}: {sentence(s.reason)}" for s in result.skipped[:100])
        parts.append(f"Not looked at:\n{rows}")
    parts.append(f"{_reproduce(result)}")
    output = {"title": headline(result)[:MAX_TITLE], "summary": joined(parts, MAX_BODY)}
    text = joined([_section(f) for f in result.findings], MAX_BODY)
    if text:
        output["text"] = text
    return output


def _spent(result: ReviewResult) -> str:
    return f"{result.seconds:.0f} s of {result.budget_minutes:g} minutes used."


def _reproduce(result: ReviewResult) -> str:
    base, head = result.base[:12], result.head[:12]
    return f"Locally: `wavesmith review --base {base} --head {head} --target {','.join(result.targets)}`"


def _table(findings: Sequence[Finding]) -> str:
    head = "| level | rule | where | evidence |\n|---|---|---|---|\n"
    rows = [
        f"| {f.level}{'' if f.origin == 'introduced' else ', was there before'} | {code(f.rule)} | "
        f"{code(f'{f.path}:{f.line}').replace('|', '/')} | {evidence_words(f.evidence)} |"
        for f in findings[:100]
    ]
    return head + "\n".join(rows)


def annotation_batches(result: ReviewResult) -> list[list[dict[str, Any]]]:
    """Annotations in batches of what one request may carry."""
    found = iter([_annotation(f) for f in result.findings[:MAX_ANNOTATIONS]])
    batches: list[list[dict[str, Any]]] = []
    while batch := list(islice(found, ANNOTATIONS_PER_REQUEST)):
        batches.append(batch)
    return batches


def _annotation(f: Finding) -> dict[str, Any]:
    level = _SEVERITIES[f.level] if f.origin == "introduced" else "notice"
    words = [f.message, f.remedy, f"Targets: {', '.join(f.targets)}; {evidence_words(f.evidence)}."]
    return {
        "path": f.path,
        "start_line": f.line,
        "end_line": max(f.line, f.end_line),
        "annotation_level": level,
        "title": f"{RULES[f.rule].title if f.rule in RULES else f.rule} ({f.rule})"[:MAX_TITLE],
        "message": "\n".join(w for w in words if w)[:_MAX_ANNOTATION_TEXT],
    }


def comment_text(result: ReviewResult, suggested: frozenset[str] = frozenset()) -> str:
    """The comment, empty when there is nothing to say. `suggested` holds findings whose fix is a suggestion."""
    found = result.counted()
    if not found or result.comment == "never":
        return ""
    parts = [MARKER, f"**Wavesmith**: {headline(result)}"]
    blocks = [details(_summary(f), _section(f, suggested)) for f in found[:MAX_SECTIONS]]
    if len(found) > MAX_SECTIONS:
        blocks.append(f"{_count(len(found) - MAX_SECTIONS, 'more finding')} in the check run.")
    foot = f"<sub>{result.head[:12]}, {', '.join(result.targets)}. {_COMMANDS}</sub>"
    return joined([*parts, *blocks], MAX_BODY - len(foot) - 4) + f"\n\n{foot}"


def resolved_text(result: ReviewResult) -> str:
    """What an earlier comment becomes when nothing is left to say."""
    gone = f"Earlier findings no longer apply at {result.head[:12]}."
    return f"{MARKER}{RESOLVED}\n\n**Wavesmith**: {headline(result)} {gone}"


def joined(parts: Sequence[str], limit: int) -> str:
    """Paragraphs up to `limit` characters; whole ones only, so that no code block stays open."""
    kept: list[str] = []
    used = 0
    for n, part in enumerate(parts):
        if used + len(part) + 2 > limit - 80:
            kept.append(f"{_count(len(parts) - n, 'more section')} left out; the list of findings is complete.")
            break
        kept.append(part)
        used += len(part) + 2
    return "\n\n".join(kept)


def _summary(f: Finding) -> str:
    where = f" in {html_code(f.kernel)}" if f.kernel else ""
    title = RULES[f.rule].title if f.rule in RULES else f.rule
    return f"<b>{f.level}</b> {title}{where}, {html_code(f'{f.path}:{f.line}')}"


def _section(f: Finding, suggested: frozenset[str] = frozenset()) -> str:
    is_said_by_fix = f.fix is not None and f.remedy.startswith(f.fix.title.rstrip("."))
    lines = [sentence(f.message), *([sentence(f.remedy)] if f.remedy and not is_said_by_fix else [])]
    lines.append(f"{plain(', '.join(f.targets))}: {evidence_words(f.evidence)}. {code(f.rule)} {code(f.fingerprint)}")
    if f.fix is not None:
        lines += _fix_lines(f.fix, is_suggested=f.fingerprint in suggested)
    return "\n\n".join(lines)


def _fix_lines(fix: Fix, *, is_suggested: bool) -> Iterator[str]:
    yield f"Fix: {sentence(fix.title)}. {sentence(fix.statement)}"
    if is_suggested:
        yield "It is offered as a suggestion in the diff."
    elif len(fix.patch) <= _MAX_SHOWN_PATCH:
        yield "Save as `wavesmith.patch` and run `git apply wavesmith.patch`:"
        yield fenced(fix.patch, "diff")
    else:
        yield "The patch is too long to be shown; the command in the check run makes it."


def suggestion_comments(result: ReviewResult) -> list[tuple[Finding, dict[str, Any]]]:
    """Review comments with a suggestion, most important first, one for each edit."""
    found: list[tuple[Finding, dict[str, Any]]] = []
    seen: set[tuple[str, int, int]] = set()
    for f in result.counted():
        s = f.fix.suggestion if f.fix is not None else None
        if f.fix is None or s is None or len(found) >= result.max_suggestions:
            continue
        if any(path == f.path and start <= s.end and s.start <= end for path, start, end in seen):
            continue
        seen.add((f.path, s.start, s.end))
        body = [
            finding_marker(f.fingerprint),
            f"**{f.level}** {sentence(f.message)}",
            f"{sentence(f.fix.title)}. {sentence(f.fix.statement)}",
            fenced(s.text, "suggestion"),
            f"<sub>{code(f.rule)} {code(f.fingerprint)}</sub>",
        ]
        comment: dict[str, Any] = {"path": f.path, "line": s.end, "side": "RIGHT", "body": "\n\n".join(body)}
        if s.start < s.end:
            comment |= {"start_line": s.start, "start_side": "RIGHT"}
        found.append((f, comment))
    return found
