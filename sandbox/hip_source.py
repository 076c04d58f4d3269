"""CUDA and HIP source as tokens, and the few structures edits need: calls, kernels, directives.

A lexical view survives macros, missing headers and code for another compiler, which a parser does not; comments and
strings are tokens of their own, so nothing inside them is ever mistaken for code.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

_TOKEN = re.compile(
    r"""
      (?P<comment>//(?:[^\n\\]|\\.|\\\n)*|/\*.*?(?:\*/|\Z))
    | (?P<string>(?:u8|[uUL])?R"(?P<delim>[^()\\\s]{0,16})\(.*?\)(?P=delim)"|(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*")
    | (?P<char>(?:u8|[uUL])?'(?:[^'\\\n]|\\.)+')
    | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
    | (?P<word>[A-Za-z_$]\w*)
    | (?P<space>(?:\s|\\\n)+)
    | (?P<punct><<<|>>>|::|->|\#\#|<<=|>>=|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%&|^]=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
OPEN = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """comment, string, char, number, word, space or punct."""
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of the source."""

    start: int
    end: int


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """Replace characters `start` to `end` by `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Call:
    """`name<template>(args)`; spans are of the arguments' text without the commas."""

    name: Token
    template: Span | None
    args: tuple[Span, ...]
    start: int
    end: int


@lru_cache(maxsize=256)
def _shared(text: str) -> HipSource:
    source = object.__new__(HipSource)
    source.text = text
    return source


@dataclass(frozen=True, slots=True)
class Directive:
    """One preprocessor line with its continuations; `name` is `if`, `include` ..., `body` the rest without comments."""

    name: str
    body: str
    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True)
class Parameter:
    type: str
    name: str


@dataclass(frozen=True, slots=True)
class KernelFunction:
    """A `__global__` function that has a body."""

    name: str
    template: tuple[Parameter, ...]
    """Template parameters: type `typename`, `int` ...; empty for an ordinary function."""
    parameters: tuple[Parameter, ...]
    launch_bounds: tuple[str, ...]
    start: int
    body: Span
    line: int
    namespace: str
    """Enclosing namespaces joined by `::`, `` at file scope."""


class HipSource:
    """One source text. Positions are character offsets into `text`; lines are 1-based.

    Equal texts share one object, so that forty rules looking at a file read it once; nothing of it may be changed.
    """

    text: str

    def __new__(cls, text: str) -> HipSource:
        return _shared(text)

    @cached_property
    def tokens(self) -> list[Token]:
        """Every token, spaces and comments included; joined they give the text."""
        return [Token(m.lastgroup if m.lastgroup != "delim" else "string", m.group(), m.start(), m.end())  # type: ignore[arg-type]
                for m in _TOKEN.finditer(self.text)]  # fmt: skip

    @cached_property
    def code(self) -> list[Token]:
        """Tokens that mean something: no spaces, no comments."""
        return [t for t in self.tokens if t.kind not in ("space", "comment")]

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset(t.text for t in self.code if t.kind == "word")

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(m.end() for m in re.finditer("\n", self.text))]

    def line_of(self, position: int) -> int:
        return bisect_right(self._line_starts, position)

    def line_span(self, line: int) -> Span:
        """The characters of a line, its newline included."""
        starts = self._line_starts
        return Span(starts[line - 1], starts[line] if line < len(starts) else len(self.text))

    @cached_property
    def masked(self) -> str:
        """The text with comments, strings and characters blanked (same length, newlines kept): safe for regexes."""
        parts = []
        for t in self.tokens:
            blank = t.kind in ("comment", "string", "char")
            parts.append(re.sub(r"[^\n]", " ", t.text) if blank else t.text)
        return "".join(parts)

    @cached_property
    def uncommented(self) -> str:
        """The text with comments blanked; strings stay."""
        return "".join(re.sub(r"[^\n]", " ", t.text) if t.kind == "comment" else t.text for t in self.tokens)

    @cached_property
    def directives(self) -> list[Directive]:
        found = []
        for m in re.finditer(r"^[ \t]*#[ \t]*([a-z_]+)\b((?:\\\n|[^\n])*)", self.uncommented, re.M):
            if self._inside_string(m.start()):
                continue
            found.append(Directive(m.group(1), m.group(2).strip(), m.start(), m.end(), self.line_of(m.start())))
        return found

    @cached_property
    def _strings(self) -> list[tuple[int, int]]:
        return [(t.start, t.end) for t in self.tokens if t.kind == "string" and "\n" in t.text]

    def _inside_string(self, position: int) -> bool:
        return any(start < position < end for start, end in self._strings)

    def matching(self, index: int) -> int | None:
        """Index in `code` of the bracket that closes the one at `index`; None when it is never closed."""
        opening = self.code[index].text
        closing = OPEN[opening]
        depth = 0
        for i in range(index, len(self.code)):
            text = self.code[i].text
            if text == opening and self.code[i].kind == "punct":
                depth += 1
            elif text == closing and self.code[i].kind == "punct":
                depth -= 1
                if depth == 0:
                    return i
        return None

    def template_end(self, index: int) -> int | None:
        """Index in `code` of the `>` that closes the `<` at `index`; None when it is a comparison."""
        depth = 0
        i = index
        while i < len(self.code):
            text = self.code[i].text
            if text in OPEN and self.code[i].kind == "punct":
                close = self.matching(i)
                if close is None:
                    return None
                i = close
            elif text == "<":
                depth += 1
            elif text in (">", ">>", ">>>"):
                depth -= len(text)
                if depth <= 0:
                    return i
            elif text in (";", "{", "}", "&&", "||"):
                return None
            i += 1
        return None

    def arguments(self, opening: int, closing: int) -> tuple[Span, ...]:
        """Spans of the comma-separated items between two brackets of `code`, blanks trimmed; empty for `()`."""
        spans: list[Span] = []
        start = self.code[opening].end
        i = opening + 1
        while i < closing:
            token = self.code[i]
            if token.text in OPEN and token.kind == "punct":
                i = self.matching(i) or closing
            elif token.text == "<" and i > 0 and self.code[i - 1].kind == "word":
                end = self.template_end(i)
                if end is not None and end < closing and "," in self.text[token.start : self.code[end].end]:
                    following = self.code[end + 1].text if end + 1 < len(self.code) else ""
                    i = end if following in ("(", "::", ",", ")", "{", ">", "*", "&") else i
            elif token.text == ",":
                spans.append(self._trimmed(start, token.start))
                start = token.end
            i += 1
        last = self._trimmed(start, self.code[closing].start)
        if spans or last.start < last.end:
            spans.append(last)
        return tuple(spans)

    def _trimmed(self, start: int, end: int) -> Span:
        text = self.text[start:end]
        left = len(text) - len(text.lstrip())
        return Span(min(start + left, end), max(start + left, start + len(text.rstrip())))

    def calls(self, names: Iterable[str]) -> Iterator[Call]:
        """Calls of functions of these names, in source order (declarations and macro definitions look alike)."""
        wanted = frozenset(names)
        for i, token in enumerate(self.code):
            if token.kind != "word" or token.text not in wanted or i + 1 >= len(self.code):
                continue
            template: Span | None = None
            opening = i + 1
            if self.code[opening].text == "<":
                end = self.template_end(opening)
                if end is None or end + 1 >= len(self.code):
                    continue
                template = Span(self.code[opening].end, self.code[end].start)
                opening = end + 1
            if self.code[opening].text != "(":
                continue
            closing = self.matching(opening)
            if closing is not None:
                yield Call(token, template, self.arguments(opening, closing), token.start, self.code[closing].end)

    def slice(self, span: Span) -> str:
        return self.text[span.start : span.end]

    @cached_property
    def kernels(self) -> list[KernelFunction]:
        """`__global__` functions with bodies, in source order."""
        return [k for i, t in enumerate(self.code) if t.text == "__global__" if (k := self._kernel_at(i)) is not None]

    def _kernel_at(self, index: int) -> KernelFunction | None:
        bounds: tuple[str, ...] = ()
        i = index + 1
        opening = None
        while i < len(self.code):
            token = self.code[i]
            if token.text in (";", "}", "="):
                return None
            if token.text == "(":
                close = self.matching(i)
                if close is None:
                    return None
                name = self.code[i - 1].text
                if name == "__launch_bounds__":
                    bounds = tuple(self.slice(s) for s in self.arguments(i, close))
                elif (
                    close + 1 < len(self.code) and self.code[close + 1].text == "{" and self.code[i - 1].kind == "word"
                ):
                    opening = i
                    break
                elif close + 1 < len(self.code) and self.code[close + 1].text == ";":
                    return None
                i = close
            i += 1
        if opening is None:
            return None
        close = self.matching(opening)
        body_end = self.matching(close + 1) if close is not None else None
        if close is None or body_end is None:
            return None
        body = Span(self.code[close + 1].start, self.code[body_end].end)
        params = tuple(_parameter(self.slice(s)) for s in self.arguments(opening, close))
        start, template = self._template_before(index)
        early = [c for c in self.calls({"__launch_bounds__"}) if start <= c.start < self.code[index].start]
        bounds = tuple(self.slice(s) for s in early[0].args) if early else bounds
        return KernelFunction(
            self.code[opening - 1].text, template, tuple(p for p in params if p.type != "void" or p.name), bounds,
            start, body, self.line_of(self.code[index].start), self._namespace_at(index),
        )  # fmt: skip

    def _template_before(self, index: int) -> tuple[int, tuple[Parameter, ...]]:
        """Where the declaration that holds token `index` starts, and its template parameters."""
        i = index
        while i > 0:
            if self.code[i - 1].text in _DECLARATION_WORDS:
                i -= 1
            elif self.code[i - 1].text == ")" and (opening := self._attribute_before(i - 1)) is not None:
                i = opening
            else:
                break
        start = self.code[i].start
        if i == 0 or self.code[i - 1].text != ">":
            return start, ()
        for j in range(i - 2, max(-1, i - 400), -1):
            if self.code[j].text == "template" and self.template_end(j + 1) == i - 1:
                spans = self._template_spans(j + 1, i - 1)
                return self.code[j].start, tuple(_parameter(text) for text in spans)
        return start, ()

    def _attribute_before(self, closing: int) -> int | None:
        """Index of the name of `__launch_bounds__(...)` and the like that ends at token `closing`."""
        depth = 0
        for i in range(closing, max(-1, closing - 60), -1):
            depth += (self.code[i].text == ")") - (self.code[i].text == "(")
            if depth == 0:
                return i - 1 if i and self.code[i - 1].text in _ATTRIBUTE_WORDS else None
        return None

    def _template_spans(self, opening: int, closing: int) -> list[str]:
        items, depth, start = [], 0, self.code[opening].end
        for i in range(opening + 1, closing):
            text = self.code[i].text
            depth += (text in ("<", "(", "[")) - (text in (">", ")", "]"))
            if text == "," and depth == 0:
                items.append(self.text[start : self.code[i].start])
                start = self.code[i].end
        return [*items, self.text[start : self.code[closing].start]]

    def _namespace_at(self, index: int) -> str:
        stack: list[str | None] = []
        for i in range(index):
            text = self.code[i].text
            if text == "{":
                j = i - 1
                parts: list[str] = []
                while j >= 0 and (self.code[j].kind == "word" or self.code[j].text == "::"):
                    parts.append(self.code[j].text)
                    j -= 1
                parts.reverse()
                if "namespace" in parts:
                    named = "".join(parts[parts.index("namespace") + 1 :])
                    stack.append(named.removeprefix("inline") or "(anonymous)")
                else:
                    stack.append(None)
            elif text == "}" and stack:
                stack.pop()
        return "::".join(s for s in stack if s and s != "(anonymous)")

    def enclosing_kernel(self, position: int) -> KernelFunction | None:
        return next((k for k in self.kernels if k.start <= position < k.body.end), None)


_DECLARATION_WORDS = frozenset(
    {"static", "inline", "extern", "__forceinline__", "__noinline__", "constexpr", "__host__"}
)


def _parameter(text: str) -> Parameter:
    """`const float* __restrict__ x[] = 0` -> type `const float*`, name `x`."""
    text = re.sub(r"\b(__restrict__|__restrict|__grid_constant__)\b", " ", text)
    text = " ".join(text.split("=")[0].split())
    array = re.search(r"(\[[^\]]*\])\s*$", text)
    if array:
        text = text[: array.start()].strip()
    m = re.match(r"^(?P<type>.*?[\s*&>.])(?P<name>[A-Za-z_]\w*)$", text)
    type_, name = (m["type"].strip(), m["name"]) if m else (text, "")
    if name in _TYPE_WORDS or (m is not None and not type_):
        type_, name = text, ""
    return Parameter(type_ + ("*" if array else ""), name)


_ATTRIBUTE_WORDS = frozenset(
    {"__launch_bounds__", "__maxnreg__", "__cluster_dims__", "__attribute__", "__block_size__"}
)
_TYPE_WORDS = frozenset({"int", "unsigned", "float", "double", "long", "short", "char", "bool", "const", "void"})


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text with all edits made; raises `ValueError` when two overlap."""
    pieces: list[str] = []
    at = 0
    for edit in sorted(set(edits)):
        if edit.start < at:
            raise ValueError(f"edits overlap at {edit.start}")
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*pieces, text[at:]])
