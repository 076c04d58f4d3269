"""PTX inside `asm` statements, translated to calls of `wavesmith::ptx` functions.

The functions exist twice with the same names: for AMD devices in the compat header, for the host in the header of the
32-lane reference. What is not in the tables raises `AsmError`: nothing is dropped silently.
"""

from __future__ import annotations

import re

from sandbox.hip_asm import AsmError, AsmStatement, PtxInstruction, parse_ptx
from sandbox.hip_ptx_handlers import C_TYPES, HANDLERS

REGISTER_TYPES = {
    "r": "unsigned", "l": "unsigned long long", "f": "float", "d": "double", "h": "unsigned short", "b": "bool",
}  # fmt: skip
SPECIAL_REGISTERS = {
    **{f"%{ptx}.{axis}": f"(unsigned){hip}.{axis}" for ptx, hip in
       {"tid": "threadIdx", "ntid": "blockDim", "ctaid": "blockIdx", "nctaid": "gridDim"}.items() for axis in "xyz"},
    **{f"%{name}": f"wavesmith::ptx::{name}()" for name in
       ("laneid", "warpid", "nwarpid", "smid", "nsmid", "lanemask_eq", "lanemask_lt", "lanemask_le", "lanemask_gt",
        "lanemask_ge", "clock", "clock64", "globaltimer", "gridid")},
}  # fmt: skip
_NO_EFFECT = {"prefetch", "prefetchu", "discard", "applypriority", "griddepcontrol", "pmevent"}


def translate_asm(statement: AsmStatement) -> str:
    """C++ text that does what the statement does: a block in braces. Raises `AsmError` naming what is unknown."""
    return _Translation(statement).text()


class _Translation:
    """State of one statement: its registers and the carry flag."""

    def __init__(self, statement: AsmStatement) -> None:
        self.statement = statement
        self.instructions = parse_ptx(statement)
        self.registers: dict[str, str] = {}
        """PTX register name -> C++ type; the C++ name is the same with `%` and `$` turned into `_`."""
        self.lines: list[str] = []

    def text(self) -> str:
        head: list[str] = []
        for operand in self.statement.operands:
            type_ = REGISTER_TYPES.get(operand.kind)
            if operand.kind in ("n", "C"):
                continue
            if type_ is None:
                raise AsmError(f'the constraint "{operand.constraint}" is unknown')
            value = f" = wavesmith::ptx::in<{type_}>({operand.expression})" if operand.is_input else " = {}"
            const = "" if operand.is_output else "const "
            head.append(f"{const}{type_} ptx{operand.index}{value};")
        if any(i.has("cc") or i.opcode in ("addc", "subc", "madc") for i in self.instructions):
            head.append("unsigned ptx_carry = 0;")
        for instruction in self.instructions:
            self._one(instruction)
        tail = [f"wavesmith::ptx::out({o.expression}, ptx{o.index});" for o in self.statement.operands if o.is_output]
        return "{ " + " ".join([*head, *self.lines, *tail]) + " }"

    def _one(self, i: PtxInstruction) -> None:
        if i.opcode in "{}":
            self.lines.append(i.opcode)
        elif i.opcode == ".reg":
            self._declare(i)
        elif i.opcode in _NO_EFFECT or (
            (i.opcode, *i.modifiers[:1]) in {("cp", "async")} and i.has("commit_group", "wait_group", "wait_all")
        ):
            self.lines.append("wavesmith::ptx::wait();" if i.has("wait_group", "wait_all", "wait") else ";")
        else:
            handler = HANDLERS.get(i.opcode)
            if handler is None:
                raise AsmError(f"the PTX instruction {i.text} has no translation")
            body = handler(self, i)
            self.lines.append(f"if ({self._predicate(i.guard)}) {{ {body} }}" if i.guard else body)

    def _declare(self, i: PtxInstruction) -> None:
        type_name, _, names = i.operands[0].partition(" ") if not i.modifiers else (i.modifiers[-1], "", i.operands[0])
        type_ = C_TYPES.get(type_name.lstrip("."))
        if type_ is None:
            raise AsmError(f"registers of type {type_name} are unknown")
        for name in (n.strip() for n in names.split(",")):
            ranged = re.fullmatch(r"([%$\w]+)<(\d+)>", name)
            for each in [f"{ranged[1]}{n}" for n in range(int(ranged[2]))] if ranged else [name]:
                self.registers[each] = type_
                self.lines.append(f"{type_} {_cpp_name(each)} = {{}};")

    def _predicate(self, guard: str) -> str:
        negated = guard.startswith("!")
        return f"{'!' if negated else ''}{self.value(guard.lstrip('!'), 'pred')}"

    def register(self, operand: str) -> tuple[str, str]:
        """(C++ lvalue, C++ type) of a destination."""
        if m := re.fullmatch(r"%(\d+|\[\w+\])", operand):
            index = self._index(m[1])
            kind = self.statement.operands[index].kind
            return f"ptx{index}", REGISTER_TYPES.get(kind, "unsigned")
        if operand in self.registers:
            return _cpp_name(operand), self.registers[operand]
        raise AsmError(f"{operand} is no register")

    def _index(self, text: str) -> int:
        if text.startswith("["):
            found = [o.index for o in self.statement.operands if o.name == text[1:-1]]
            if not found:
                raise AsmError(f"operand {text} is not given")
            return found[0]
        index = int(text)
        if index >= len(self.statement.operands):
            raise AsmError(f"operand %{index} is not given")
        return index

    def value(self, operand: str, type_name: str) -> str:
        """C++ text of a source operand read as a PTX type."""
        target = C_TYPES.get(type_name)
        if target is None:
            raise AsmError(f"the PTX type {type_name} is unknown")
        if operand in SPECIAL_REGISTERS:
            return f"wavesmith::ptx::as<{target}>({SPECIAL_REGISTERS[operand]})"
        if operand.startswith("!"):
            return f"!{self.value(operand[1:].strip(), type_name)}"
        if m := re.fullmatch(r"%(\d+|\[\w+\])", operand):
            index = self._index(m[1])
            given = self.statement.operands[index]
            if REGISTER_TYPES.get(given.kind) == target:
                return f"ptx{index}"
            text = f"({given.expression})" if given.kind in ("n", "C") else f"ptx{index}"
            return f"wavesmith::ptx::as<{target}>({text})"
        if operand in self.registers:
            name = _cpp_name(operand)
            return name if self.registers[operand] == target else f"wavesmith::ptx::as<{target}>({name})"
        return _immediate(operand, target)

    def address(self, operand: str) -> tuple[str, str]:
        """(register or immediate, byte offset text) of `[reg+offset]`."""
        m = re.fullmatch(r"\[\s*([%$\w\[\]]+?)\s*(?:\+\s*(-?\w+))?\s*\]", operand)
        if m is None:
            raise AsmError(f"the address {operand} is not understood")
        return self.value(m[1], "u64"), m[2] or "0"

    def put(self, operand: str, expression: str) -> str:
        """Assignment of a value to a destination register; `_` drops it."""
        if operand == "_":
            return f"(void)({expression});"
        name, type_ = self.register(operand)
        return f"{name} = wavesmith::ptx::put<{type_}>({expression});"


def _cpp_name(register: str) -> str:
    return "ptx_" + register.replace("%", "_").replace("$", "_")


def _immediate(text: str, target: str) -> str:
    if m := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        return f"wavesmith::ptx::as<{target}>(wavesmith::ptx::as<float>(0x{m[1]}u))"
    if m := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", text):
        return f"wavesmith::ptx::as<{target}>(wavesmith::ptx::as<double>(0x{m[1]}ull))"
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)[uU]?", text):
        return f"({target})({text})"
    if re.fullmatch(r"-?\d+\.\d*([eE][-+]?\d+)?", text):
        return f"({target})({text})"
    if text == "WARP_SZ":
        return f"({target})32"
    raise AsmError(f"the operand {text} is not understood")
