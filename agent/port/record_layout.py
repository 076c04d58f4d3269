"""What a kernel's structure parameters hold, read from clang's record layouts, so that contents can be made up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_LINE = re.compile(r"^\s*(?P<offset>\d+) \|(?P<indent> +)(?P<text>\S.*)$")
_RECORD = re.compile(r"^(?:struct|class) (?P<name>.+?)(?: \(empty\))?$")
_FIELD = re.compile(r"^(?P<type>.*?)\s?(?P<dims>(?:\[\d+\])*) (?P<name>\w+)$")
_SCALARS: Mapping[str, tuple[str, int]] = {
    "float": ("float", 4), "double": ("float", 8), "_Bool": ("bool", 1), "bool": ("bool", 1),
    "char": ("int", 1), "signed char": ("int", 1), "unsigned char": ("uint", 1), "short": ("int", 2),
    "unsigned short": ("uint", 2), "int": ("int", 4), "unsigned int": ("uint", 4), "unsigned": ("uint", 4),
    "long": ("int", 8), "unsigned long": ("uint", 8), "long long": ("int", 8), "unsigned long long": ("uint", 8),
    "size_t": ("uint", 8), "std::size_t": ("uint", 8), "ptrdiff_t": ("int", 8),
    **{f"{'u' * (k == 'uint')}int{8 * n}_t": (k, n) for k in ("int", "uint") for n in (1, 2, 4, 8)},
}  # fmt: skip
_WHOLE: Mapping[str, tuple[str, int, int]] = {
    "__half": ("half", 2, 2), "half": ("half", 2, 2), "__half2": ("half", 2, 4), "half2": ("half", 2, 4),
    "c10::Half": ("half", 2, 2), "c10::BFloat16": ("bfloat16", 2, 2),
    "__nv_bfloat16": ("bfloat16", 2, 2), "__nv_bfloat162": ("bfloat16", 2, 4),
    **{f"{t}{n}": (k, s, s * n) for t, k, s in (("float", "float", 4), ("double", "float", 8), ("int", "int", 4),
       ("uint", "uint", 4), ("short", "int", 2), ("ushort", "uint", 2), ("char", "int", 1), ("uchar", "uint", 1))
       for n in (2, 3, 4)},
}  # fmt: skip
MAX_POINTERS = 16
"""More buffers than that in one structure are tables whose meaning a name does not tell."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar or a pointer inside a structure. `pointee_bytes` is the size of what a pointer points to, None of a
    scalar."""

    offset: int
    name: str
    element: str
    element_bytes: int
    size_bytes: int
    pointee_bytes: int | None = None


def layouts(dump: str, wanted: Sequence[str]) -> dict[str, list[Leaf]]:
    """The contents of the wanted structures, by name, in the text of `-fdump-record-layouts-canonical`.

    Those that hold what cannot be made up (unions, virtual tables, bit fields, unknown types) are left out.
    """
    found: dict[str, list[Leaf]] = {}
    for block in dump.split("*** Dumping AST Record Layout")[1:]:
        lines = [m for line in block.splitlines() if (m := _LINE.match(line)) is not None]
        head = _RECORD.match(lines[0]["text"]) if lines else None
        name = _spelled(head["name"]) if head is not None else ""
        if name not in wanted or name in found or re.search(r"^\s*\d+:[\d-]+ \|", block, re.M):
            continue
        leaves = list(_leaves(lines[1:]))
        whole = [leaf for leaf in leaves if leaf is not None]
        if len(whole) == len(leaves) and sum(leaf.pointee_bytes is not None for leaf in whole) <= MAX_POINTERS:
            found[name] = whole
    return found


def _spelled(name: str) -> str:
    """The name as `__PRETTY_FUNCTION__` has it."""
    return re.sub(r"\b_Bool\b", "bool", re.sub(r"\b(?:struct|class|enum) ", "", name))


def _leaves(lines: Sequence[re.Match[str]]) -> Iterator[Leaf | None]:
    """The scalars and pointers of a record's lines; None for what cannot be made up."""
    skip = 0
    for number, line in enumerate(lines):
        depth = len(line["indent"])
        if skip and depth > skip:
            continue
        skip = 0
        text, offset = line["text"], int(line["offset"])
        record = re.match(r"(?:struct|class) (?P<type>[\w:]+) (?P<name>\w+)$", text)
        if record is not None and (whole := _WHOLE.get(record["type"])) is not None:
            skip = depth
            yield Leaf(offset, record["name"], whole[0], whole[1], whole[2])
            continue
        nested = number + 1 < len(lines) and len(lines[number + 1]["indent"]) > depth
        if text.endswith("(empty)") or (nested and re.match(r"(?:struct|class) ", text)):
            continue
        yield from _field(text, offset)


def _field(text: str, offset: int) -> Iterator[Leaf | None]:
    m = _FIELD.match(text)
    if m is None:
        yield None
        return
    count = 1
    for n in re.findall(r"\d+", m["dims"]):
        count *= int(n)
    bare = re.sub(r"\b(?:const|volatile|__restrict|struct|class|enum) ?", "", m["type"]).strip()
    if bare.endswith("*"):
        pointee = bare[:-1].strip()
        element, size, whole = _pointee(pointee)
        if not element:
            yield None
            return
        for k in range(count):
            yield Leaf(offset + 8 * k, m["name"], element, size, 8, whole)
    elif bare in _SCALARS:
        element, size = _SCALARS[bare]
        for k in range(count):
            yield Leaf(offset + size * k, m["name"], element, size, size)
    else:
        yield None


def _pointee(name: str) -> tuple[str, int, int]:
    if name == "void":
        return "uint", 1, 1
    if name in _SCALARS:
        return (*_SCALARS[name], _SCALARS[name][1])
    return _WHOLE.get(name, ("", 0, 0))
