"""Device functions of included headers that nothing uses and that have no counterpart: left out, and reported so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from agent.port.request import Project
from agent.port.result import Applied, PortRefusal
from sandbox.hip_source import HipSource

LEFT_OUT = "WAVESMITH_LEFT_OUT"
"""Never defined: a condition with a name, so that the reason can be searched for."""


@dataclass(frozen=True, slots=True)
class _Function:
    name: str
    start: int
    end: int


def leave_out_unused(
    project: Project, texts: Mapping[str, str], refusals: list[PortRefusal]
) -> tuple[dict[str, str], list[Applied], list[PortRefusal]]:
    """Texts without the refused device functions that nothing in the project mentions; the refusals that remain.

    Only of files that are included by others: what was asked for is ported whole or refused.
    """
    fresh = dict(texts)
    applied: list[Applied] = []
    kept: list[PortRefusal] = []
    units = set(project.units)
    for refusal in sorted(refusals, key=lambda r: (r.file, -r.line)):
        source = HipSource(fresh[refusal.file])
        function = _enclosing(source, refusal.line) if refusal.file not in units else None
        if function is None or _mentions(function.name, fresh) > 1:
            kept.append(refusal)
            continue
        start = source.text.rfind("\n", 0, function.start) + 1
        end = source.text.find("\n", function.end)
        end = len(source.text) if end < 0 else end + 1
        body = source.text[start:end]
        note = f"#ifdef {LEFT_OUT}  // {function.name}: {refusal.reason}\n"
        fresh[refusal.file] = source.text[:start] + note + body + "#endif\n" + source.text[end:]
        applied.append(Applied(refusal.file, "leave-out-unused", f"{function.name} is used nowhere: {refusal.reason}"))
    return fresh, applied, kept


def _mentions(name: str, texts: Mapping[str, str]) -> int:
    return sum(t.text == name for text in texts.values() for t in HipSource(text).code)


def _enclosing(source: HipSource, line: int) -> _Function | None:
    start, end = source.line_span(line).start, source.line_span(line).end
    return next((f for f in _device_functions(source) if f.start < end and start < f.end), None)


def _device_functions(source: HipSource) -> Iterator[_Function]:
    """`__device__` functions with a body at namespace scope."""
    spans = [(d.start, d.end) for d in source.directives]
    code = [t for t in source.code if not any(s <= t.start < e for s, e in spans)]
    depth = begin = 0
    open_at = -1
    for i, token in enumerate(code):
        if token.text == "{" and token.kind == "punct":
            if depth == 0 and "namespace" in {t.text for t in code[begin:i]}:
                begin = i + 1
                continue
            open_at = i if depth == 0 else open_at
            depth += 1
        elif token.text == "}" and token.kind == "punct":
            depth = max(depth - 1, 0)
            if depth == 0:
                head = code[begin : max(open_at, begin)]
                names = [a.text for a, b in pairwise(head) if b.text == "(" and a.kind == "word"]
                words = {t.text for t in head}
                names = [n for n in names if n not in ("__launch_bounds__", "__align__", "__attribute__", "alignas")]
                if "__device__" in words and "operator" not in words and names:
                    yield _Function(names[0], head[0].start, token.end)
                begin = i + 1
        elif token.text == ";" and depth == 0:
            begin = i + 1
