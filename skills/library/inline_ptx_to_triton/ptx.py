"""A small evaluator of straight-line PTX: registers hold Triton expressions, each instruction combines them.

Semantics follow the PTX ISA. What is not listed here is refused by name, never guessed.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from skills.library.inline_ptx_to_triton.ptx_text import instructions

Kind = str
"""`f32`, `f64`, `f16`, `bf16`, `s32`, `u32`, `s64`, `u64`, `pred`, or `bits` for a register of unknown meaning."""

TRITON_TYPES: Mapping[Kind, str] = {
    "f32": "float32", "f64": "float64", "f16": "float16", "bf16": "bfloat16", "s32": "int32", "u32": "uint32",
    "s64": "int64", "u64": "uint64", "s16": "int16", "u16": "uint16",
}  # fmt: skip
CONSTRAINTS: Mapping[str, Kind] = {"f": "f32", "d": "f64", "r": "bits", "l": "bits", "h": "bits"}


class UnknownPtxError(Exception):
    """An instruction or operand without a Triton counterpart; the message names it."""


@dataclass(frozen=True, slots=True)
class Term:
    """A Triton expression. `atom`: needs no parentheses as an operand or before a method call."""

    text: str
    kind: Kind
    atom: bool = True

    @property
    def operand(self) -> str:
        return self.text if self.atom else f"({self.text})"


@dataclass(frozen=True, slots=True)
class Names:
    """Local names of `triton.language` and of `triton.language.extra.libdevice`."""

    tl: str
    libdevice: str


def evaluate(asm: str, constraints: str, args: list[Term], names: Names) -> list[Term]:
    """The outputs of a snippet as expressions over its arguments; raises `UnknownPtxError`."""
    slots = [c.strip() for c in constraints.split(",") if c.strip() and not c.strip().startswith("~")]
    outputs = sum(1 for c in slots if c.startswith("="))
    registers: dict[str, Term] = {}
    for number, (constraint, arg) in enumerate(zip(slots[outputs:], args, strict=False), outputs):
        kind = CONSTRAINTS.get(slots[int(constraint)].lstrip("=&") if constraint.isdigit() else constraint, "bits")
        registers[f"${number}"] = Term(arg.text, kind, arg.atom)
    for line in instructions(asm):
        _step(line, registers, names)
    results = [registers.get(f"${i}") for i in range(outputs)]
    if any(r is None for r in results):
        raise UnknownPtxError(f"`{asm.strip()}` leaves an output unset")
    return [r for r in results if r is not None]


def _step(line: str, registers: dict[str, Term], names: Names) -> None:
    if line.startswith("@"):
        raise UnknownPtxError(f"the predicated instruction `{line}`")
    opcode, _, rest = line.partition(" ")
    operands = [o.strip() for o in rest.replace("\n", " ").split(",") if o.strip()]
    if not operands:
        raise UnknownPtxError(f"`{opcode}`")
    values = [_operand(o, registers, opcode) for o in operands[1:]]
    registers[operands[0]] = apply(opcode, values, names)


def _operand(text: str, registers: Mapping[str, Term], opcode: str) -> Term:
    if text in registers:
        return registers[text]
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+)U?", text):
        return Term(text.rstrip("U"), "bits", not text.startswith("-"))
    if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", text):
        value = struct.unpack(">f", bytes.fromhex(match[1]))[0]
        return Term(f'float("{value}")' if value != value or abs(value) == float("inf") else repr(value), "f32")
    if re.fullmatch(r"-?\d+\.\d*(e[+-]?\d+)?", text):
        return Term(text, "f32", not text.startswith("-"))
    raise UnknownPtxError(f"`{opcode}` with the operand {text}")


def apply(opcode: str, args: list[Term], names: Names) -> Term:
    """One instruction; raises `UnknownPtxError` naming it when it has no exact or tighter Triton form."""
    name, *modifiers = opcode.split(".")
    if name in ("add", "sub", "mul", "fma", "div", "rcp", "sqrt") and {"rm", "rp", "rz"} & set(modifiers):
        raise UnknownPtxError(f"`{opcode}`: AMD has no per-instruction directed rounding")
    kind = modifiers[-1] if modifiers else "bits"
    rule = _RULES.get(name)
    if rule is None:
        raise UnknownPtxError(f"`{opcode}`")
    try:
        return rule(modifiers, kind, args, names)
    except (IndexError, KeyError, ValueError):
        raise UnknownPtxError(f"`{opcode}`") from None


def as_kind(term: Term, kind: Kind, names: Names) -> Term:
    """The same bits seen as another type, spelt out only where the type is not known to be right."""
    kind = {"b32": "bits", "b64": "bits", "b16": "bits", "f16x2": "f16", "bf16x2": "bf16"}.get(kind, kind)
    if (
        kind in ("bits", "pred")
        or term.kind == kind
        or (re.fullmatch(r"\(?-?[\w.]+\)?", term.text) and _is_literal(term))
    ):
        return term
    if term.kind == "bits" or {term.kind, kind} & {"s32", "u32", "s64", "u64"}:
        return Term(f"{term.operand}.to({names.tl}.{TRITON_TYPES[kind]}, bitcast=True)", kind)
    return term


def _is_literal(term: Term) -> bool:
    return bool(re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|\d+(\.\d*(e[+-]?\d+)?)?)", term.text))


def _literal(term: Term) -> int:
    """The value of an integer literal; raises ValueError for a register."""
    return int(term.text, 0)


_Rule = Callable[[list[str], Kind, list[Term], Names], Term]


def _signed(kind: Kind) -> Kind:
    """The kind a result has: packed pairs are elementwise in Triton, bare bits stay bits."""
    return {"f16x2": "f16", "bf16x2": "bf16", "b32": "bits", "b64": "bits", "b16": "bits"}.get(kind, kind)


def _binary(symbol: str) -> _Rule:
    def rule(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
        a, b = (as_kind(x, kind, names) for x in args[:2])
        return Term(f"{a.operand} {symbol} {b.operand}", _signed(kind), False)

    return rule


def _function(template: str, arity: int = 1) -> _Rule:
    def rule(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
        given = [as_kind(x, kind, names) for x in args[:arity]]
        if len(given) < arity:
            raise ValueError
        text = template.format(*(g.text for g in given), tl=names.tl, ld=names.libdevice)
        return Term(text, _signed(kind))

    return rule


def _half_function(template: str) -> _Rule:
    """A function that Triton defines for fp32 only: narrower types go through fp32, which is more exact than PTX's."""

    def rule(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
        a = as_kind(args[0], kind, names)
        narrow = _signed(kind) in ("f16", "bf16")
        inner = f"{a.operand}.to({names.tl}.float32)" if narrow else a.text
        text = template.format(inner, tl=names.tl)
        return Term(f"{text}.to({names.tl}.{TRITON_TYPES[_signed(kind)]})" if narrow else text, _signed(kind))

    return rule


def _tanh(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    """tanh(x) = 2 sigmoid(2x) - 1: closer to tanh than tanh.approx (2^-11), on both vendors."""
    a = as_kind(args[0], kind, names)
    narrow = _signed(kind) in ("f16", "bf16")
    x = f"{a.operand}.to({names.tl}.float32)" if narrow else a.operand
    text = f"2.0 * {names.tl}.sigmoid(2.0 * {x}) - 1.0"
    if narrow:
        return Term(f"({text}).to({names.tl}.{TRITON_TYPES[_signed(kind)]})", _signed(kind))
    return Term(text, "f32", False)


def _reciprocal(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    return Term(f"1.0 / {as_kind(args[0], kind, names).operand}", kind, False)


def _divide(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    if kind.startswith(("s", "u")):
        return _binary("//")(modifiers, kind, args, names)
    if "rn" in modifiers:
        return _function("{tl}.div_rn({0}, {1})", 2)(modifiers, kind, args, names)
    return _binary("/")(modifiers, kind, args, names)


def _multiply(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    if "hi" in modifiers and kind in ("u32", "u64"):
        return _function("{tl}.umulhi({0}, {1})", 2)(modifiers, kind, args, names)
    if "hi" in modifiers and kind == "s32":
        a, b = (as_kind(x, kind, names).operand for x in args[:2])
        tl = names.tl
        return Term(f"(({a}.to({tl}.int64) * {b}.to({tl}.int64)) >> 32).to({tl}.int32)", kind)
    if "wide" in modifiers:
        wide = {"s32": "s64", "u32": "u64"}[kind]
        a, b = (f"{as_kind(x, kind, names).operand}.to({names.tl}.{TRITON_TYPES[wide]})" for x in args[:2])
        return Term(f"{a} * {b}", wide, False)
    return _binary("*")(modifiers, kind, args, names)


def _multiply_add(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    if kind.startswith(("f", "b")):
        return _function("{tl}.fma({0}, {1}, {2})", 3)(modifiers, kind, args, names)
    if "lo" not in modifiers:
        raise ValueError
    a, b, c = (as_kind(x, kind, names).operand for x in args[:3])
    return Term(f"{a} * {b} + {c}", kind, False)


def _shift_left(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    return Term(f"{args[0].operand} << {args[1].operand}", args[0].kind, False)


def _shift_right(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    kind = {"b32": "u32", "b64": "u64"}.get(kind, kind)
    return Term(f"{as_kind(args[0], kind, names).operand} >> {args[1].operand}", kind, False)


def _not(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    return Term(f"~{args[0].operand}", args[0].kind, False)


def _negate(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    return Term(f"-{as_kind(args[0], kind, names).operand}", _signed(kind), False)


def _move(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    return as_kind(args[0], kind, names)


def _copysign(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    a, b = (as_kind(x, kind, names).text for x in args[:2])
    return Term(f"{names.libdevice}.copysign({b}, {a})", kind)


def _extract(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    """bfe with literal position and length; the signed form sign-extends."""
    position, length = _literal(args[1]), _literal(args[2])
    if not (position >= 0 and length > 0 and position + length <= 32):
        raise ValueError
    if kind == "s32":
        a = as_kind(args[0], "s32", names).operand
        return Term(f"({a} << {32 - position - length}) >> {32 - length}", "s32", False)
    a = as_kind(args[0], "u32", names).operand
    return Term(f"({a} >> {position}) & {hex((1 << length) - 1)}", "u32", False)


def _insert(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    """bfi: the low bits of a at a literal position of b."""
    position, length = _literal(args[2]), _literal(args[3])
    if not (position >= 0 and length > 0 and position + length <= 32):
        raise ValueError
    mask = ((1 << length) - 1) << position
    a, b = (as_kind(x, "u32", names).operand for x in args[:2])
    return Term(f"({b} & {hex(~mask & 0xFFFFFFFF)}) | (({a} << {position}) & {hex(mask)})", "u32", False)


def _permute_bytes(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    """prmt in its default mode with a literal selector that copies no signs."""
    selector = _literal(args[2])
    if selector & 0x8888 or len(modifiers) > 1:
        raise ValueError
    sources = [None if _is_literal(x) and _literal(x) == 0 else as_kind(x, "u32", names).operand for x in args[:2]]
    parts = []
    for place in range(4):
        index = (selector >> (4 * place)) & 7
        source = sources[index // 4]
        if source is None:
            continue
        shift = 8 * (place - index % 4)
        moved = f"{source} << {shift}" if shift > 0 else f"{source} >> {-shift}" if shift < 0 else source
        parts.append(
            f"(({moved}) & {hex(0xFF << (8 * place))})" if shift else f"({source} & {hex(0xFF << (8 * place))})"
        )
    return Term(" | ".join(parts) if parts else "0", "u32", False)


def _logic(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    """lop3: any function of three bits, as the sum of the rows of its truth table that are set."""
    table = _literal(args[3])
    a, b, c = (x.operand for x in args[:3])
    known = {
        0xC0: f"{a} & {b}",
        0xFC: f"{a} | {b}",
        0x80: f"{a} & {b} & {c}",
        0xFE: f"{a} | {b} | {c}",
        0x96: f"{a} ^ {b} ^ {c}",
        0xEA: f"({a} & {b}) | {c}",
        0xF8: f"{a} | ({b} & {c})",
        0x6A: f"({a} & {b}) ^ {c}",
        0xA8: f"({a} | {b}) & {c}",
        0xCA: f"({a} & {b}) | (~{a} & {c})",
    }
    if table in known:
        return Term(known[table], "bits", False)
    rows = []
    for row in range(8):
        if table >> row & 1:
            bits = [x if row >> place & 1 else f"~{x}" for x, place in ((a, 2), (b, 1), (c, 0))]
            rows.append(f"({' & '.join(bits)})")
    return Term(" | ".join(rows) if rows else "0", "bits", False)


_ROUNDED = {"rni": "{ld}.nearbyint({0})", "rmi": "{tl}.floor({0})", "rpi": "{tl}.ceil({0})", "rzi": "{0}"}


def _convert(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    """cvt between plain types. `modifiers` ends with the two types; the others are rounding and saturation."""
    result, given = modifiers[-2], modifiers[-1]
    flags = set(modifiers[:-2]) - {"ftz"}
    if result == "tf32":
        bits = f"({as_kind(as_kind(args[0], 'f32', names), 's32', names).operand} + 0x1000) & -0x2000"
        if flags != {"rna"}:
            raise ValueError
        return Term(f"({bits}).to({names.tl}.float32, bitcast=True)", "f32")
    source = as_kind(args[0], given, names)
    target = f"{names.tl}.{TRITON_TYPES[result]}"
    if flags & {"sat", "satfinite", "relu", "rm", "rp", "rz"}:
        raise ValueError
    if given.startswith(("f", "b")) and result.startswith(("s", "u")):
        mode = next(f for f in ("rni", "rmi", "rpi", "rzi") if f in flags)
        rounded = _ROUNDED[mode].format(source.operand, tl=names.tl, ld=names.libdevice)
        return Term(f"{rounded}.to({target})", result)
    return Term(f"{source.operand}.to({target})", result)


_COMPARE = {
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "eq": "==",
    "ne": "!=",
    "lo": "<",
    "ls": "<=",
    "hi": ">",
    "hs": ">=",
}


def _set_predicate(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    a, b = (as_kind(x, kind, names) for x in args[:2])
    return Term(f"{a.operand} {_COMPARE[modifiers[0]]} {b.operand}", "pred", False)


def _select(modifiers: list[str], kind: Kind, args: list[Term], names: Names) -> Term:
    a, b = (as_kind(x, kind, names) for x in args[:2])
    return Term(f"{names.tl}.where({args[2].text}, {a.text}, {b.text})", _signed(kind))


_RULES: Mapping[str, _Rule] = {
    "tanh": _tanh,
    "ex2": _half_function("{tl}.exp2({0})"),
    "lg2": _function("{tl}.log2({0})"),
    "sin": _function("{tl}.sin({0})"),
    "cos": _function("{tl}.cos({0})"),
    "rsqrt": _function("{tl}.rsqrt({0})"),
    "sqrt": lambda m, k, a, n: _function("{tl}.sqrt_rn({0})" if "rn" in m else "{tl}.sqrt({0})")(m, k, a, n),
    "rcp": _reciprocal,
    "div": _divide,
    "fma": _multiply_add,
    "mad": _multiply_add,
    "mul": _multiply,
    "add": _binary("+"),
    "sub": _binary("-"),
    "max": _function("{tl}.maximum({0}, {1})", 2),
    "min": _function("{tl}.minimum({0}, {1})", 2),
    "abs": _function("{tl}.abs({0})"),
    "neg": _negate,
    "copysign": _copysign,
    "and": _binary("&"),
    "or": _binary("|"),
    "xor": _binary("^"),
    "not": _not,
    "shl": _shift_left,
    "shr": _shift_right,
    "bfe": _extract,
    "bfi": _insert,
    "prmt": _permute_bytes,
    "lop3": _logic,
    "cvt": _convert,
    "mov": _move,
    "setp": _set_predicate,
    "selp": _select,
    "popc": lambda m, k, a, n: Term(f"_popc({a[0].text})", "s32"),
    "clz": lambda m, k, a, n: Term(f"_clz({a[0].text})", "s32"),
    "brev": lambda m, k, a, n: Term(f"_brev({a[0].text})", a[0].kind),
}
