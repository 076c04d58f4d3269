"""Reads Triton IR text (TTIR) into operations that the interpreter can run.

TTIR is what Triton's own front end makes of a kernel: types, promotions and inlined functions are exactly those that
are compiled. The text is regular: one operation per line, regions in braces.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_NAME = r"%[\w$.\-]+(?:#\d+)?"
_VALUE = re.compile(_NAME)
_RESULTS = re.compile(r"^((?:%[\w$.\-]+(?::\d+)?(?:,\s*)?)+)\s*=\s*(.*)$", re.S)
_OPNAME = re.compile(r'^"?([a-z_][\w.]*)"?\s*(.*)$', re.S)
_FUNC = re.compile(r"^tt\.func (?:public |private |nested )*@([\w$.\-]+|\"[^\"]+\")\((.*)\)")
_ARG = re.compile(rf"({_NAME}): ([^,{{]+(?:<[^>]*>+)?)")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_LOC_DEF = re.compile(r"^#loc(\d*) = loc\((.*)\)\s*$", re.M)
_FILE_LINE = re.compile(r'"([^"]+)":(\d+):\d+')


class IrError(ValueError):
    """Text this reader does not understand; names the line."""


@dataclass(frozen=True, slots=True)
class Type:
    """A value's type. `element` is `f32`, `bf16`, `i1`, `ptr`, ...; `shape` is empty for scalars."""

    element: str
    shape: tuple[int, ...] = ()
    pointee: str = ""

    def of(self, element: str) -> Type:
        return Type(element, self.shape)


@dataclass(slots=True)
class Op:
    """One operation. Operands and results are slots of the function's frame; `text` is the line without results."""

    name: str
    operands: list[int]
    results: list[int]
    attributes: dict[str, str]
    operand_types: list[Type]
    result_types: list[Type]
    regions: list[Region]
    location: str
    text: str


@dataclass(slots=True)
class Block:
    arguments: list[int] = field(default_factory=list)
    operations: list[Op] = field(default_factory=list)


@dataclass(slots=True)
class Region:
    blocks: list[Block] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Function:
    name: str
    parameters: list[int]
    parameter_names: list[str]
    parameter_types: list[Type]
    body: Region
    slots: int


@dataclass(slots=True)
class Module:
    """Functions by name; `entry` is the public kernel. `places` maps location ids to the user's file and line."""

    functions: dict[str, Function]
    entry: str
    places: dict[str, tuple[str, int]]


def parse_type(text: str) -> Type:
    """`tensor<128x64x!tt.ptr<f16>>`, `i32`, `!tt.ptr<f32>`; raises IrError for anything else."""
    text = text.strip()
    shape: tuple[int, ...] = ()
    if text.startswith("tensor<"):
        inner = text[len("tensor<") : -1].split(", #", 1)[0]
        dims = re.match(r"^((?:\d+x)*)(.*)$", inner)
        assert dims is not None
        shape = tuple(int(d) for d in dims[1].split("x") if d)
        text = dims[2]
    if text.startswith("!tt.ptr<"):
        return Type("ptr", shape, text[len("!tt.ptr<") : -1].split(",")[0])
    if re.fullmatch(r"(?:i|f|bf)\d+|f8E\w+|index", text):
        return Type(text, shape)
    raise IrError(f"unknown type {text}")


def parse_module(text: str) -> Module:
    """Parse TTIR as Triton prints it; raises IrError."""
    reader = _Reader(text)
    functions = reader.functions()
    entry = reader.public or next(iter(functions), "")
    if not entry:
        raise IrError("the module has no function")
    return Module(functions, entry, _places(text))


def split_types(text: str) -> list[str]:
    """Comma-separated types, respecting brackets and parentheses."""
    parts, depth, current = [], 0, ""
    for char in text:
        if char in "<([{":
            depth += 1
        elif char in ">)]}":
            depth -= 1
        if char == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += char
    if current.strip():
        parts.append(current)
    return [part.strip() for part in parts]


class _Reader:
    def __init__(self, text: str) -> None:
        self.lines = [line for line in text.split("\n") if line.strip() and not line.startswith("#")]
        self.at = 0
        self.public = ""
        self.slots: dict[str, int] = {}
        self.types: dict[int, Type] = {}

    def functions(self) -> dict[str, Function]:
        found = {}
        while self.at < len(self.lines):
            line, _ = _strip_locations(self.lines[self.at])
            self.at += 1
            if line.lstrip().startswith("tt.func"):
                function = self._function(line.strip())
                found[function.name] = function
        return found

    def _function(self, line: str) -> Function:
        match = _FUNC.match(line)
        if match is None:
            raise IrError(f"cannot read the function: {line[:200]}")
        self.slots, self.types = {}, {}
        name = match[1].strip('"')
        if line.startswith("tt.func public"):
            self.public = name
        header = _close(line[match.start(2) :])
        names, types = [], []
        for part in split_types(header):
            value, kind = part.split(":", 1)
            names.append(value.strip())
            types.append(_argument_type(kind.split(" {", 1)[0]))
        parameters = [self._define(n, t) for n, t in zip(names, types, strict=True)]
        body = self._region()
        return Function(name, parameters, [n[1:] for n in names], types, body, len(self.slots))

    def _define(self, name: str, kind: Type) -> int:
        slot = self.slots.setdefault(name, len(self.slots))
        self.types[slot] = kind
        return slot

    def _use(self, name: str) -> int:
        if name not in self.slots and f"{name}#0" in self.slots:
            name = f"{name}#0"
        try:
            return self.slots[name]
        except KeyError:
            raise IrError(f"value {name} is used before it is defined") from None

    def _region(self) -> Region:
        """Reads until the line that closes the region, which stays unread except for its leading brace."""
        region = Region([Block()])
        while True:
            if self.at >= len(self.lines):
                raise IrError("the text ends inside a region")
            line, location = _strip_locations(self.lines[self.at])
            line = line.strip()
            if line.startswith("}"):
                return region
            self.at += 1
            if line.startswith("^"):
                self._label(line, region)
                continue
            region.blocks[-1].operations.append(self._op(line, location))

    def _label(self, line: str, region: Region) -> None:
        label = re.match(r"^(\^\w+)(?:\((.*)\))?:", line)
        if label is None:
            raise IrError(f"cannot read the block label: {line[:200]}")
        if region.blocks[-1].operations or region.labels:
            region.blocks.append(Block())
        region.labels[label[1]] = len(region.blocks) - 1
        for part in split_types(label[2] or ""):
            value, kind = part.split(":", 1)
            region.blocks[-1].arguments.append(self._define(value.strip(), _argument_type(kind)))

    def _op(self, line: str, location: str) -> Op:
        results: list[str] = []
        if match := _RESULTS.match(line):
            results = _result_names(match[1])
            line = match[2]
        named = _OPNAME.match(line)
        if named is None:
            raise IrError(f"cannot read the operation: {line[:200]}")
        name, rest = named[1], named[2]
        if name == "scf.for":
            return self._for(rest, results, location, line)
        if name == "scf.while":
            return self._while(rest, results, location, line)
        opens = rest.rstrip().endswith("{")
        plain = rest.rstrip()[:-1].rstrip(" (") if opens else rest
        bare, attributes = _attributes(plain)
        operands = [self._use(v) for v in _VALUE.findall(_STRING.sub('""', bare).replace("@", "@ "))]
        regions: list[Region] = []
        if opens:
            regions, tail = self._regions()
            bare = f"{bare} {tail[0]}" if tail[0] else bare
            attributes.update(tail[1])
            location = tail[2] or location
        types = [self.types[s] for s in operands]
        result_types = _result_types(name, bare, types, len(results), attributes)
        slots = [self._define(r, t) for r, t in zip(results, result_types, strict=True)]
        return Op(name, operands, slots, attributes, types, result_types, regions, location, line)

    def _regions(self) -> tuple[list[Region], tuple[str, dict[str, str], str]]:
        """The regions of an operation, then what follows the last closing brace: types, attributes, location."""
        regions = [self._region()]
        while True:
            line, location = _strip_locations(self.lines[self.at])
            self.at += 1
            tail = line.strip()[1:].strip()
            if tail.startswith(("else {", "do {", ", {")):
                regions.append(self._region())
                continue
            bare, attributes = _attributes(tail.removeprefix(")"))
            return regions, (bare.strip(), attributes, location)

    def _for(self, rest: str, results: list[str], location: str, line: str) -> Op:
        head = re.match(rf"(unsigned )?({_NAME}) = ({_NAME}) to ({_NAME}) step ({_NAME})\s*(.*)$", rest, re.S)
        if head is None:
            raise IrError(f"cannot read the loop: {line[:200]}")
        carried = re.findall(rf"({_NAME}) = ({_NAME})", head[6].split("->")[0]) if "iter_args" in head[6] else []
        operands = [self._use(v) for v in (head[3], head[4], head[5], *(init for _, init in carried))]
        types = [self.types[s] for s in operands]
        arguments = [self._define(head[2], types[0])]
        arguments += [self._define(inner, t) for (inner, _), t in zip(carried, types[3:], strict=True)]
        regions, tail = self._regions()
        regions[0].blocks[0].arguments = arguments
        slots = [self._define(r, t) for r, t in zip(results, types[3:], strict=True)]
        attributes = {**tail[1], **({"unsigned": "true"} if head[1] else {})}
        return Op("scf.for", operands, slots, attributes, types, types[3:], regions, tail[2] or location, line)

    def _while(self, rest: str, results: list[str], location: str, line: str) -> Op:
        carried = re.findall(rf"({_NAME}) = ({_NAME})", rest.split(" : ")[0])
        operands = [self._use(init) for _, init in carried]
        types = [self.types[s] for s in operands]
        arguments = [self._define(inner, t) for (inner, _), t in zip(carried, types, strict=True)]
        arrow = rest.rsplit("->", 1)[1].rstrip(" {") if "->" in rest else ""
        result_types = [parse_type(t) for t in split_types(arrow.strip().removeprefix("(").removesuffix(")"))]
        regions, tail = self._regions()
        regions[0].blocks[0].arguments = arguments
        slots = [self._define(r, t) for r, t in zip(results, result_types, strict=True)]
        return Op("scf.while", operands, slots, tail[1], types, result_types, regions, tail[2] or location, line)


def _argument_type(text: str) -> Type:
    try:
        return parse_type(text)
    except IrError:
        return Type(text.strip())  # a type only some operations can take, such as a descriptor: they refuse it


def _result_names(text: str) -> list[str]:
    names = []
    for part in text.split(","):
        name, _, count = part.strip().partition(":")
        names.extend([f"{name}#{i}" for i in range(int(count))] if count else [name])
    return names


def _result_types(name: str, bare: str, operands: list[Type], count: int, attributes: dict[str, str]) -> list[Type]:
    """Types of the results, from the trailing type list and the operation's own rule."""
    if count == 0:
        return []
    if name == "arith.constant" and " : " not in bare:
        return [Type("i1")]
    if name == "scf.if":
        return [parse_type(t) for t in split_types(bare.rsplit("->", 1)[1].strip().strip("()"))]
    signature = _STRING.sub('""', bare).rsplit(" : ", 1)[-1].removeprefix(": ").strip()
    if "->" in signature:
        target = signature.rsplit("->", 1)[1].strip().removeprefix("(")
        target = target[:-1] if target.endswith(")") else target
        types = [_argument_type(t) for t in split_types(target)]
        return types * count if len(types) == 1 else types
    if " to " in signature:
        return [parse_type(signature.rsplit(" to ", 1)[1])]
    if name in ("arith.cmpi", "arith.cmpf"):
        return [parse_type(signature).of("i1")]
    if name == "tt.load":
        pointer = parse_type(signature)
        return [Type("ptr", pointer.shape, "i8")] if pointer.pointee.startswith("!") else [pointer.of(pointer.pointee)]
    if name == "arith.select":
        return [_argument_type(split_types(signature)[-1])]
    if name == "tt.addptr":
        return [parse_type(split_types(signature)[0])]
    kinds = [_argument_type(t) for t in split_types(signature)]
    return kinds * count if len(kinds) == 1 else kinds[:count]


def _attributes(text: str) -> tuple[str, dict[str, str]]:
    """The text without its attribute dictionaries, and their entries. Properties (`<{...}>`) count as attributes."""
    attributes: dict[str, str] = {}
    masked = _STRING.sub(lambda m: "\0" * len(m[0]), text)
    while (start := masked.find("{")) >= 0:
        end = _balanced(masked, start)
        for part in _split_attributes(text[start + 1 : end]):
            key, _, value = part.partition("=")
            attributes[key.strip()] = re.sub(r" : [\w<>]+$", "", value.strip()) if value else "unit"
        first = start - 1 if start and masked[start - 1] == "<" else start
        last = end + 2 if first < start else end + 1
        text, masked = text[:first] + text[last:], masked[:first] + masked[last:]
    return text, attributes


def _split_attributes(text: str) -> list[str]:
    strings: list[str] = []

    def keep(match: re.Match[str]) -> str:
        strings.append(match[0])
        return f"\1{len(strings) - 1}\1"

    parts = split_types(_STRING.sub(keep, text))
    return [re.sub("\1(\\d+)\1", lambda m: strings[int(m[1])], part) for part in parts]


def _balanced(text: str, start: int) -> int:
    depth = 0
    pairs = {"{": "}", "(": ")", "<": ">"}
    closing = pairs[text[start]]
    for index in range(start, len(text)):
        if text[index] == text[start]:
            depth += 1
        elif text[index] == closing:
            depth -= 1
            if depth == 0:
                return index
    raise IrError(f"unbalanced {text[start]} in {text[:200]}")


def _close(text: str) -> str:
    """The text up to the parenthesis that closes an already opened one."""
    return text[: _balanced("(" + text, 0) - 1]


def _strip_locations(line: str) -> tuple[str, str]:
    """The line without its locations, and the id of the last one."""
    location = ""
    while (start := line.rfind(" loc(")) >= 0:
        end = _balanced(line, start + 4)
        if not location and (ids := re.search(r"#loc(\d*)", line[start:end])):
            location = ids[1] or "0"
        line = line[:start] + line[end + 1 :]
    return line, location


def _places(text: str) -> dict[str, tuple[str, int]]:
    """Location id to the user's file and line, through names and call sites (the outermost caller is last)."""
    bodies = {m[1] or "0": m[2] for m in _LOC_DEF.finditer(text)}

    def resolve(identifier: str, depth: int) -> tuple[str, int] | None:
        body = bodies.get(identifier, "")
        if match := _FILE_LINE.search(body):
            return match[1], int(match[2])
        if depth < 20:
            for inner in re.findall(r"#loc(\d*)", body):
                if place := resolve(inner or "0", depth + 1):
                    return place
        return None

    return {identifier: place for identifier in bodies if (place := resolve(identifier, 0))}
