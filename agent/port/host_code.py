"""Which parts of a CUDA source only a host with a GPU could run: left out of the program that runs kernels on a CPU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sandbox.hip_source import Edit, HipSource, Token, apply_edits

_HOST_WORDS = re.compile(
    r"^(cuda[A-Z]\w*|cu[A-Z]\w+|CU[a-z]\w+|cublas\w*|cudnn\w*|cufft\w*|cusparse\w*|cusolver\w*|nvtx\w*|nccl\w*|curandGenerator\w*"
    r"|thrust|torch|at|c10|py|pybind11|TORCH_\w+|AT_DISPATCH\w*|PYBIND11_\w+|CUDA_CHECK\w*|TORCH_CHECK|CHECK_\w+|CUmodule)$"
)
_DEVICE_WORDS = frozenset({"__device__", "__global__", "__constant__", "__shared__", "constexpr"})
_TYPE_WORDS = frozenset({"struct", "class", "union", "enum"})


@dataclass(frozen=True)
class _Item:
    """A function, type or declaration at namespace scope: its head up to the brace, and what the braces hold."""

    name: str
    head: Sequence[Token]
    body: Sequence[Token]
    end: int

    @property
    def is_type(self) -> bool:
        words = [t.text for t in self.head]
        return bool(_TYPE_WORDS & set(words)) and ")" not in words[-3:]

    @property
    def is_declaration(self) -> bool:
        return not self.body


@dataclass(frozen=True)
class _Macros:
    launching: frozenset[str]
    """Expand to a launch: whoever calls one is host code."""
    device: frozenset[str]
    """Expand to `__device__` or `__global__`: whoever is declared with one is device code."""


def host_names(texts: Iterable[str]) -> frozenset[str]:
    """Functions and types that are host code, or use some that are, over all files together."""
    sources = [HipSource(text) for text in texts]
    macros = [_macros(source) for source in sources]
    merged = _Macros(
        frozenset().union(*(m.launching for m in macros)), frozenset().union(*(m.device for m in macros))
    )  # fmt: skip
    items = [item for source in sources for item in _items(source) if item.name and not item.is_declaration]
    device = {item.name for item in items if _is_device(item, merged)}
    names: frozenset[str] = frozenset()
    while True:
        fresh = frozenset(i.name for i in items if i.name not in device and _is_host(i, merged, names))
        if fresh <= names:
            return names
        names |= fresh


def without_host_code(text: str, names: frozenset[str] = frozenset()) -> str:
    """Host functions, types and declarations at namespace scope blanked; lines keep their numbers."""
    source = HipSource(text)
    macros = _macros(source)
    names = names or host_names([text])
    pieces = list(text)
    for item in _items(source):
        if _is_host_declaration(item) if item.is_declaration else _is_host(item, macros, names):
            for k in range(item.head[0].start if item.head else item.end, item.end):
                if pieces[k] != "\n":
                    pieces[k] = " "
    return "".join(pieces)


def without_launch_macros(text: str) -> str:
    """Bodies of macros that launch kernels, and file-scope uses of such macros, blanked."""
    source = HipSource(text)
    edits = [Edit(d.start, d.end, re.sub(r"[^\n]", " ", text[d.start : d.end])) for d in source.directives
             if d.name == "define" and "<<<" in d.body]  # fmt: skip
    return apply_edits(text, edits)


def _macros(source: HipSource) -> _Macros:
    named = [(m.group(), d.body[m.end() :]) for d in source.directives
             if d.name == "define" and (m := re.match(r"\w+", d.body)) is not None]  # fmt: skip
    return _Macros(
        frozenset(n for n, body in named if "<<<" in body),
        frozenset(n for n, body in named if re.search(r"\b__(?:device|global)__\b", body)),
    )


def _items(source: HipSource) -> Iterator[_Item]:
    spans = [(d.start, d.end) for d in source.directives]
    code = [t for t in source.code if not any(s <= t.start < e for s, e in spans)] if spans else list(source.code)
    i = start = 0
    while i < len(code):
        text = code[i].text
        if text == "{":
            words = [t.text for t in code[start:i]]
            if "namespace" in words or ("extern" in words and '"C"' in words):
                i += 1
                start = i
                continue
            close = _matching(code, i)
            last = close + 1 if close + 1 < len(code) and code[close + 1].text == ";" else close
            head = code[start:i]
            yield _Item(_name(head), head, code[i : close + 1], code[min(close, len(code) - 1)].end)
            i = start = last + 1
            continue
        if text == "}":
            start = i + 1
        elif text == ";":
            head = code[start : i + 1]
            yield _Item("", head, (), code[i].end)
            start = i + 1
        i += 1


def _name(head: Sequence[Token]) -> str:
    words = [t.text for t in head]
    if _TYPE_WORDS & set(words) and ")" not in words[-3:]:
        at = max(i for i, w in enumerate(words) if w in _TYPE_WORDS)
        return words[at + 1] if at + 1 < len(words) else ""
    return next((a.text for a, b in pairwise(head) if b.text == "(" and a.kind == "word"), "")


def _is_device(item: _Item, macros: _Macros) -> bool:
    tokens = [*item.head, *item.body] if item.is_type else item.head
    return any(t.text in _DEVICE_WORDS or t.text in macros.device for t in tokens)


def _is_host(item: _Item, macros: _Macros, names: frozenset[str]) -> bool:
    if _is_device(item, macros):
        return False
    words = [t.text for t in item.head if t.kind == "word"]
    if item.is_type and not item.body:
        return False
    if "main" in words or any(_HOST_WORDS.match(w) for w in words) or names & set(words[1:]):
        return True
    return any(
        t.text == "<<<"
        or t.text in macros.launching
        or t.text in names
        or (t.kind == "word" and _HOST_WORDS.match(t.text))
        for t in item.body
    )


def _matching(code: Sequence[Token], opening: int) -> int:
    depth = 0
    for i in range(opening, len(code)):
        depth += (code[i].text == "{") - (code[i].text == "}")
        if depth == 0:
            return i
    return len(code) - 1


def _is_host_declaration(item: _Item) -> bool:
    words = [t.text for t in item.head]
    if (_DEVICE_WORDS - {"constexpr"}) & set(words):
        return False
    if words and words[0] in ("using", "typedef") and "cuda" not in "".join(words):
        return False
    return any(_HOST_WORDS.match(w) for w in words) or "<<<" in words
