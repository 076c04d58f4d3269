"""Refuses text that no edit could make sense of: unbalanced brackets."""

from __future__ import annotations

from collections.abc import Sequence

from sandbox.errors import InputError
from sandbox.hip_source import OPEN, Directive, HipSource, Span, Token


def check_balanced(source: HipSource, file: str) -> None:
    """Raise `InputError` naming the line of the first bracket that is never closed, or closes nothing.

    Of a conditional only the first arm counts: each arm may open what the common text closes.
    """
    skipped = _later_arms(source.directives, len(source.text))
    stack: list[Token] = []
    for token in source.code:
        if token.kind != "punct" or token.text not in "()[]{}" or _covered(token.start, skipped):
            continue
        if token.text in OPEN:
            stack.append(token)
        elif stack and OPEN[stack[-1].text] == token.text:
            stack.pop()
        else:
            raise InputError(
                f"`{token.text}` closes nothing.",
                file=file,
                line=source.line_of(token.start),
                remedy="Correct the code.",
            )
    if stack:
        raise InputError(
            f"`{stack[-1].text}` is never closed.", file=file, line=source.line_of(stack[-1].start),
            remedy="Correct the code.",
        )  # fmt: skip


def _later_arms(directives: Sequence[Directive], length: int) -> list[Span]:
    """Spans after an `#else` or `#elif`, and macro bodies: text that need not balance by itself."""
    spans: list[Span] = []
    stack: list[int | None] = []
    for d in directives:
        if d.name in ("if", "ifdef", "ifndef"):
            stack.append(None)
        elif d.name in ("else", "elif", "elifdef") and stack and stack[-1] is None:
            stack[-1] = d.start
        elif d.name == "endif" and stack:
            start = stack.pop()
            if start is not None:
                spans.append(Span(start, d.end))
        elif d.name in ("define", "include", "error", "warning", "pragma"):
            spans.append(Span(d.start, d.end))
    spans += [Span(s, length) for s in stack if s is not None]
    return spans


def _covered(position: int, spans: Sequence[Span]) -> bool:
    return any(s.start <= position < s.end for s in spans)
