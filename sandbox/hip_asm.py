"""`asm` statements of CUDA source, and the PTX text inside them, as data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sandbox.hip_source import HipSource, Token

AMD_REGISTERS = frozenset("vsaVS")
"""Letters of register classes that NVIDIA has not."""


class AsmError(Exception):
    """The statement cannot be read as PTX; the message says why."""


@dataclass(frozen=True, slots=True)
class AsmOperand:
    """`"=r"(expression)`; `index` is the number `%N` refers to it by."""

    index: int
    name: str
    constraint: str
    expression: str

    @property
    def is_output(self) -> bool:
        return self.constraint[:1] in "=+"

    @property
    def is_input(self) -> bool:
        return self.constraint[:1] != "="

    @property
    def kind(self) -> str:
        """The register letter: r, l, f, d, h, b, q, n or C."""
        return self.constraint.lstrip("=+&")[:1]


@dataclass(frozen=True, slots=True)
class AsmStatement:
    """One `asm(...);` with its place in the source, semicolon included. The template of one in AMD's registers lacks
    what a macro puts together from its arguments."""

    template: str
    operands: tuple[AsmOperand, ...]
    has_operand_lists: bool
    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True)
class PtxInstruction:
    """`@p add.s32 d, a, b` -> guard `p`, opcode `add`, modifiers (`s32`,), operands."""

    guard: str
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[str, ...]

    def has(self, *names: str) -> bool:
        return any(n in self.modifiers for n in names)

    @property
    def text(self) -> str:
        return ".".join((self.opcode, *self.modifiers))


def asm_statements(source: HipSource) -> Iterator[AsmStatement | tuple[int, AsmError]]:
    """Every `asm` statement; one that cannot be read comes as (line, reason)."""
    code = source.code
    for i, token in enumerate(code):
        if token.text not in ("asm", "__asm__", "__asm") or token.kind != "word":
            continue
        opening = i + 1
        while opening < len(code) and code[opening].text in ("volatile", "__volatile__", "inline", "__inline__"):
            opening += 1
        if opening >= len(code) or code[opening].text != "(":
            continue
        closing = source.matching(opening)
        if closing is None:
            continue
        line = source.line_of(token.start)
        last = closing + 1 if closing + 1 < len(code) and code[closing + 1].text == ";" else closing
        try:
            yield _statement(source, token, opening, closing, code[last].end, line)
        except AsmError as e:
            yield line, e


def _statement(source: HipSource, token: Token, opening: int, closing: int, end: int, line: int) -> AsmStatement:
    sections: list[list[int]] = [[]]
    depth = 0
    for i in range(opening + 1, closing):
        text = source.code[i].text
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
        if depth == 0 and text == ":":
            sections.append([])
        elif depth == 0 and text == "::":
            sections += [[], []]
        else:
            sections[-1].append(i)
    operands: list[AsmOperand] = []
    for indices in sections[1:3]:
        operands += _operands(source, indices, len(operands))
    pieces = [source.code[i] for i in sections[0]]
    plain = [p for p in pieces if p.kind == "string"]
    if not plain or (len(plain) < len(pieces) and not any(o.kind in AMD_REGISTERS for o in operands)):
        raise AsmError("its text is not a plain string")
    template = "".join(_string_value(p.text) for p in plain)
    return AsmStatement(template, tuple(operands), len(sections) > 1, token.start, end, line)


def _operands(source: HipSource, indices: list[int], first: int) -> Iterator[AsmOperand]:
    code = source.code
    at = 0
    number = first
    while at < len(indices):
        name = ""
        if code[indices[at]].text == "[":
            name = code[indices[at + 1]].text
            at += 3
        constraint = code[indices[at]]
        if constraint.kind != "string" or at + 1 >= len(indices) or code[indices[at + 1]].text != "(":
            raise AsmError('an operand is not of the form "constraint"(expression)')
        opening = indices[at + 1]
        closing = source.matching(opening)
        if closing is None:
            raise AsmError("an operand is not closed")
        expression = source.text[code[opening].end : code[closing].start].strip()
        yield AsmOperand(number, name, _string_value(constraint.text), expression)
        number += 1
        at = next((k for k, index in enumerate(indices) if index > closing), len(indices))
        if at < len(indices) and code[indices[at]].text == ",":
            at += 1


def _string_value(text: str) -> str:
    if 'R"' in text[:4]:
        return text[text.index("(") + 1 : text.rindex(")")]
    body = text[text.index('"') + 1 : -1]
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), body.replace("\\\n", ""))


def parse_ptx(statement: AsmStatement) -> list[PtxInstruction]:
    """The instructions of a statement; a scope shows as opcode `{` or `}`, a register declaration as `.reg`.

    Raises `AsmError` for labels, directives and whatever else is no instruction.
    """
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", statement.template, flags=re.S)
    if statement.has_operand_lists:
        text = text.replace("%%", "%")
    found: list[PtxInstruction] = []
    for part in _split_instructions(text):
        if part in "{}":
            found.append(PtxInstruction("", part, (), ()))
            continue
        found.append(_instruction(part))
    return found


def _split_instructions(text: str) -> Iterator[str]:
    current, depth = "", 0
    for character in text:
        if character in "{}" and not current.strip() and depth == 0:
            yield character
            current = ""
        elif character == ";" and depth == 0:
            if current.strip():
                yield current.strip()
            current = ""
        elif character == "}" and depth == 0:
            raise AsmError("braces do not match")
        else:
            depth += (character == "{") - (character == "}")
            current += character
    if current.strip():
        yield current.strip()


def _instruction(text: str) -> PtxInstruction:
    m = re.match(r"(?:@(!?[\w%$]+)\s+)?([.\w]+(?:::\w+)?[.\w:]*)\s*(.*)$", text, re.S)
    if m is None or re.match(r"[\w$]+\s*:(?!:)", text):
        raise AsmError("it holds a label or a branch")
    guard, name, rest = m.group(1) or "", m.group(2), m.group(3)
    if name.startswith(".reg"):
        return PtxInstruction("", ".reg", tuple(name.split(".")[2:]) or (), (rest,))
    if name.startswith("."):
        raise AsmError(f"the directive {name} has no counterpart")
    opcode, *modifiers = name.split(".")
    return PtxInstruction(guard, opcode, tuple(modifiers), tuple(split_operands(rest)))


def split_operands(text: str) -> list[str]:
    """Operands at the top level: `{a,b}, [c+4], d` -> three."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in "{[(") - (character in "}])")
        if character == "," and depth == 0:
            parts.append(current.strip())
            current = ""
        else:
            current += character
    if current.strip():
        parts.append(current.strip())
    return parts
