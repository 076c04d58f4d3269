"""What of a project's sources some kernels reach: the rest is left out of the program that runs them on a CPU."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agent.port.items import Item, items_in, items_of
from sandbox.hip_source import HipSource

Place = tuple[str, int]
"""A file and the position at which an item of it starts."""
_DEVICE_WORDS = frozenset({"__device__", "__global__", "__constant__", "__shared__", "__managed__"})
_DEVICE_MACROS = frozenset({"C10_DEVICE", "C10_HOST_DEVICE", "TORCH_HOST_DEVICE", "GLM_FUNC_QUALIFIER"})
"""Of libraries whose headers a project does not hold."""
_NAMESPACE = re.compile(r"\bnamespace\s+([A-Za-z_]\w*(?:\s*::\s*\w+)*)\s*(?:\{|=)")
_IDLE = re.compile(r"<<<|^\w+\([^)]*\)[\s\\]*template\s+(?!<)")
_STANDARD_NAMESPACES = frozenset({"std", "literals", "chrono"})


@dataclass(frozen=True)
class Macros:
    """What names of macros stand for, over all files."""

    words: Mapping[str, frozenset[str]]
    device: frozenset[str]
    """Expand to `__device__` or `__global__`: what is declared with one is device code."""
    idle: frozenset[str]
    """Expand to a launch or to explicit instantiations: a use of one is nothing that a kernel needs."""

    @classmethod
    def of(cls, sources: Iterable[HipSource]) -> Macros:
        """The macros that the files define; of several definitions all count."""
        words: dict[str, set[str]] = defaultdict(set)
        idle: set[str] = set()
        for source in sources:
            for directive in source.directives:
                m = re.match(r"\w+", directive.body) if directive.name == "define" else None
                if m is not None:
                    words[m.group()] |= set(re.findall(r"[A-Za-z_]\w*", directive.body[m.end() :]))
                    idle |= {m.group()} if _IDLE.search(directive.body) else set()
        device = _DEVICE_MACROS | _meaning(words, _DEVICE_WORDS)
        return cls({n: frozenset(w) for n, w in words.items()}, device, frozenset(idle) | _meaning(words, idle))


def _meaning(words: Mapping[str, set[str]], wanted: Iterable[str]) -> frozenset[str]:
    """The macros that expand to one of the words, by way of others too."""
    found = set(wanted)
    while fresh := {name for name, body in words.items() if name not in found and body & found}:
        found |= fresh
    return frozenset(found & set(words))


@dataclass
class Slice:
    """The files, what they define, and what has proved useless on a CPU (`dropped`), which grows."""

    files: Mapping[str, str]
    namespaces: frozenset[str] = frozenset()
    """Known beside those that the files open."""
    host: bool = False
    """Whether host functions and all kernels are kept too: what a whole program needs."""
    dropped: set[Place] = field(default_factory=set)

    @cached_property
    def sources(self) -> dict[str, HipSource]:
        return {path: HipSource(text) for path, text in self.files.items()}

    @cached_property
    def macros(self) -> Macros:
        return Macros.of(self.sources.values())

    @cached_property
    def items(self) -> list[tuple[str, Item]]:
        return [(path, item) for path, source in self.sources.items() for item in items_of(source)]

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = defaultdict(list)
        for number, (_, item) in enumerate(self.items):
            for name in item.names:
                found[name].append(number)
        return found

    @cached_property
    def _namespaces(self) -> frozenset[str]:
        own = {n for s in self.sources.values() for m in _NAMESPACE.finditer(s.masked) for n in re.split(r"\W+", m[1])}
        return self.namespaces | _STANDARD_NAMESPACES | own

    def is_device(self, item: Item) -> bool:
        """Whether a kernel may use it as it is: marked so, by a macro too, or a constant expression."""
        marks = item.head_words
        return bool(marks & _DEVICE_WORDS or marks & self.macros.device) or "constexpr" in marks

    def is_kernel(self, item: Item) -> bool:
        return "__global__" in item.head_words

    def reached(self, names: Iterable[str]) -> set[int]:
        """Numbers of the items that these words lead to, by way of macros too."""
        kept: set[int] = set()
        waiting = set(names)
        seen: set[str] = set()
        while waiting:
            word = waiting.pop()
            if word in seen:
                continue
            seen.add(word)
            waiting |= self.macros.words.get(word, frozenset()) - seen
            for number in self._by_name.get(word, ()):
                path, item = self.items[number]
                if number not in kept and (path, item.start) not in self.dropped and self._usable(item):
                    kept.add(number)
                    waiting |= item.words - seen
        return kept

    def words_reached(self, kernel: str) -> frozenset[str]:
        """All words that a kernel (C++ spelling) leads to, its own among them."""
        kept = self.reached(re.findall(r"[A-Za-z_]\w*", kernel))
        name = re.sub(r"<.*", "", kernel).split("::")[-1]
        others = {i for i in kept if self.is_kernel(self.items[i][1]) and name not in self.items[i][1].names}
        return frozenset({name}.union(*(self.items[i][1].words for i in kept - others)))

    def _usable(self, item: Item) -> bool:
        if item.code[0].text == "template" and item.code[1].text != "<":
            return False  # an explicit instantiation: the kernels that are run name their own
        if item.kind in ("function", "declaration"):
            return self.host or self.is_device(item)
        return item.kind != "macro-use"

    def texts(self, kernels: Sequence[str]) -> dict[str, str]:
        """The files with only what the kernels (C++ spellings) reach; lines keep their numbers."""
        roots = {word for name in kernels for word in re.findall(r"[A-Za-z_]\w*", name)}
        wanted = {re.sub(r"<.*", "", name).split("::")[-1] for name in kernels}
        kept = self.reached(roots | {"operator"})
        pieces = {path: list(text) for path, text in self.files.items()}
        for number, (path, item) in enumerate(self.items):
            keep = (
                number in kept if item.names else self._keeps_nameless(item) and (path, item.start) not in self.dropped
            )
            if keep and not self.host and self.is_kernel(item) and item.kind in ("function", "declaration"):
                keep = bool(item.names & wanted)
            if not keep:
                self._blank(pieces[path], path, item)
                continue
            for member in self.members(item):
                if (path, member.start) in self.dropped:
                    self._blank(pieces[path], path, member)
        return {path: self._without_launches(path, "".join(p)) for path, p in pieces.items()}

    def _keeps_nameless(self, item: Item) -> bool:
        words = item.words
        if item.kind == "using":
            return "namespace" in words and not words - self._namespaces - {"using", "namespace"}
        if item.kind == "macro-use":
            return bool(words & self.macros.device) and not words & self.macros.idle
        return False

    def _blank(self, pieces: list[str], path: str, item: Item) -> None:
        at = item.start
        lines = [
            (d.start, d.end) for d in self.sources[path].directives
            if item.start < d.start < item.end and d.name not in ("pragma", "include")
        ]  # fmt: skip
        for start, end in [*lines, (item.end, item.end)]:
            for k in range(at, start):
                if pieces[k] != "\n":
                    pieces[k] = " "
            at = max(at, end)

    def _without_launches(self, path: str, text: str) -> str:
        """Macros that launch kernels lose their bodies: nothing that is kept uses them, and the syntax is foreign."""
        for d in self.sources[path].directives:
            if d.name == "define" and "<<<" in d.body:
                text = text[: d.start] + re.sub(r"[^\n]", " ", text[d.start : d.end]) + text[d.end :]
        return text

    def members(self, item: Item) -> Iterator[Item]:
        """What the braces of a type hold."""
        if item.kind == "type" and item.body < len(item.code):
            inside = item.code[item.body + 1 :]
            yield from items_in(inside[: next((i for i in range(len(inside) - 1, -1, -1) if inside[i].text == "}"), 0)])

    def blame(self, path: str, line: int) -> Item | None:
        """The smallest thing that can be left out so that a line is no longer compiled."""
        if path not in self.sources:
            return None
        source = self.sources[path]

        def holds(item: Item) -> bool:
            return source.line_of(item.start) <= line <= source.line_of(item.end)

        found = next((i for p, i in self.items if p == path and (p, i.start) not in self.dropped and holds(i)), None)
        if found is None:
            return None
        inner = (m for m in self.members(found) if holds(m) and (path, m.start) not in self.dropped)
        member = next((m for m in inner if m.kind in ("function", "declaration") and not self.is_device(m)), None)
        return member or found
