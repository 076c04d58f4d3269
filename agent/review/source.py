"""Findings that the text of a kernel file gives, in milliseconds to seconds and without a compiler."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agent.port.lint import lint
from agent.port.repair import port_rules
from agent.port.result import Finding as PortFinding
from agent.review.changes import text_lines
from sandbox.hip_source import HipSource
from sandbox.kernel import Kernel, Language
from sandbox.target import Target
from skills.facts import Facts, target_facts
from skills.match import Match, match
from skills.skill import Library, Refusal, load_library
from skills.source_facts import collect_facts


@dataclass(frozen=True, slots=True)
class Sighting:
    """Something seen in one version of a file. Two with the same rule, kernel and code are the same finding."""

    rule: str
    kernel: str
    line: int
    code: str
    """Normalised text that the finding is about; empty where it is about the whole kernel."""
    message: str
    remedy: str = ""
    end_line: int = 0
    targets: tuple[str, ...] = ()
    evidence: str = "source"
    value: float | None = None
    """A number that got worse only when it grew."""
    repaired: Kernel | None = None
    """The file with the construct replaced, where a skill knows how."""
    title: str = ""
    builds: bool = False
    """Whether `repaired` was compiled for every launch."""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.rule, self.kernel, self.code


_LINT_RULES = {
    "divergent-collective": "lane-32",
    "half-wave-block": "lane-32",
    "legacy-warp": "lane-32",
    "warp-shaped-array": "lane-32",
    "spin-wait": "lock-step",
    "volatile-shared": "lock-step",
}
_LANES = re.compile(
    r"^[ \t]*(?:\w*WARP_?SIZE|LANES_PER_WARP|THREADS_PER_WARP)\w*\s*(?::[^=\n]+)?=\s*(?:\w+\.)*(?:constexpr\()?32\b",
    re.IGNORECASE | re.MULTILINE,
)
_REPAIR_REMEDY = "Wavesmith can rewrite it: see the fix."


def source_sightings(kernel: Kernel, path: str, target: Target) -> list[Sighting]:
    """What the source alone shows for `target`."""
    if kernel.language is Language.TRITON:
        found = [*_triton_constructs(kernel, target), *_triton_lanes(kernel)]
    else:
        found = [*_cuda_refusals(kernel, target), *_cuda_lint(kernel, path)]
    return [replace(s, targets=(target.arch,), end_line=max(s.end_line, s.line)) for s in found]


def _triton_constructs(kernel: Kernel, target: Target) -> Iterator[Sighting]:
    """Sites of repair skills that need no compiler to be recognised, and refusals."""
    facts = collect_facts(kernel, target)
    repairs = Library({s.id: s for s in load_library() if s.data.kind == "repair"})
    found = match(kernel, facts, target, repairs)
    seen: set[tuple[str, int]] = set()
    for candidate in found.matches:
        place = (candidate.skill.id, candidate.site.line)
        if place not in seen:
            seen.add(place)
            yield from _construct(kernel, candidate)
    yield from _refused(kernel, found.refusals, owner_of_python(kernel.source))


def _construct(kernel: Kernel, candidate: Match) -> Iterator[Sighting]:
    """One sighting per edited group of lines, so that a further use of a known construct is seen as new."""
    edited = candidate.apply()
    if edited is None:
        return
    owner = owner_of_python(kernel.source)
    before = text_lines(kernel.source)
    title = candidate.skill.data.title
    for start, end in edited_lines(kernel.source, edited.source):
        code = normal_python("\n".join(before[start - 1 : end]))
        if not code:
            continue
        yield Sighting(
            rule="cuda-only",
            kernel=owner(start),
            line=start,
            end_line=end,
            code=f"{candidate.skill.id} {code}",
            message=f"{candidate.skill.data.title.rstrip('.')}: `{before[start - 1].strip()[:120]}`.",
            remedy=_REPAIR_REMEDY,
            repaired=edited,
            title=title,
        )


def edited_lines(before: str, after: str) -> list[tuple[int, int]]:
    """1-based inclusive ranges of `before` that an edit replaces or removes; insertions belong to no line."""
    matcher = difflib.SequenceMatcher(None, text_lines(before), text_lines(after), autojunk=False)
    return [(i + 1, j) for tag, i, j, _, _ in matcher.get_opcodes() if tag != "equal" and j > i]


def _refused(kernel: Kernel, refusals: Sequence[Refusal], owner: OwnerOf) -> Iterator[Sighting]:
    lines = text_lines(kernel.source)
    for r in refusals:
        text = lines[r.line - 1] if 0 < r.line <= len(lines) else ""
        code = normal_python(text) if kernel.language is Language.TRITON else normal_cuda(text)
        yield Sighting("cuda-only", owner(r.line), max(1, r.line), f"{r.skill_id} {code}", r.reason, r.route)


def _triton_lanes(kernel: Kernel) -> Iterator[Sighting]:
    owner = owner_of_python(kernel.source)
    for m in _LANES.finditer(kernel.source):
        line = kernel.source.count("\n", 0, m.start()) + 1
        text = m.group().strip()
        yield Sighting(
            "lane-32",
            owner(line),
            line,
            normal_python(text),
            f"`{text}` assumes warps of 32 lanes.",
            "Ask the device: `torch.cuda.get_device_properties(0).warp_size` is 64 on Instinct.",
        )


def _cuda_refusals(kernel: Kernel, target: Target) -> Iterator[Sighting]:
    rules = Library({rule.id: rule for rule in port_rules()})
    found = match(kernel, Facts(target_facts(target)), target, rules)
    yield from _refused(kernel, found.refusals, owner_of_cuda(kernel.source))


def _cuda_lint(kernel: Kernel, path: str) -> Iterator[Sighting]:
    owner = owner_of_cuda(kernel.source)
    lines = text_lines(kernel.source)
    for f in lint(path, kernel.source):
        rule = _LINT_RULES.get(f.kind)
        if rule is not None:
            yield Sighting(
                rule, owner(f.line), f.line, _lint_code(f, lines), f"{f.message[:1].upper()}{f.message[1:]}."
            )


def _lint_code(finding: PortFinding, lines: Sequence[str]) -> str:
    text = lines[finding.line - 1] if 0 < finding.line <= len(lines) else ""
    return f"{finding.kind} {normal_cuda(text)}"


class OwnerOf:
    """The kernel a line belongs to; empty outside of any."""

    def __init__(self, spans: Sequence[tuple[str, int, int]]) -> None:
        self._spans = spans

    def __call__(self, line: int) -> str:
        return next((name for name, start, end in self._spans if start <= line <= end), "")

    def lines_of(self, name: str) -> tuple[int, ...]:
        """First lines of the functions of that name."""
        return tuple(start for known, start, _ in self._spans if known == name)


def owner_of_python(text: str) -> OwnerOf:
    """By top-level function or method, decorators included."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return OwnerOf(())
    spans = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            spans.append((node.name, first, node.end_lineno or node.lineno))
    return OwnerOf(sorted(spans, key=lambda s: s[2] - s[1]))


def owner_of_cuda(text: str) -> OwnerOf:
    source = HipSource(text)
    return OwnerOf([(k.name, source.line_of(k.start), source.line_of(k.body.end)) for k in source.kernels])


def normal_python(text: str) -> str:
    """Code without comments and spaces; what a fingerprint is made of."""
    return "".join(re.sub(r"\s+", "", re.sub(r"(^|\s)#.*", "", line)) for line in text_lines(text))


def normal_cuda(text: str) -> str:
    return " ".join(t.text for t in HipSource(text).code)
