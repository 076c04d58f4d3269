"""Evaluates elementwise PTX snippets on numpy arrays of register bits.

Covers straight-line integer, bit, float and conversion instructions, packed halves and predicates: what kernels write
in `tl.inline_asm_elementwise`. Anything else (memory, special registers, control flow) raises `IrError` naming it.
Registers are 64-bit patterns, one per lane.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sandbox.interpreter_ir import IrError
from sandbox.interpreter_numerics import Array, as_float32, convert_float, from_memory, to_memory

_WIDTHS = {"8": 8, "16": 16, "32": 32, "64": 64}
_TYPE = re.compile(r"^(?:[busf](?:8|16|32|64)|f16x2|bf16|bf16x2|pred|e4m3x2|e5m2x2|tf32)$")
_FLOATS = {"f16": "f16", "bf16": "bf16", "f32": "f32", "f64": "f64"}
_FP8_PAIRS = {"e4m3x2": "f8E4M3FN", "e5m2x2": "f8E5M2"}
_UNARY: Mapping[str, Callable[[Array], Any]] = {
    "ex2": np.exp2,
    "lg2": np.log2,
    "rcp": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tanh": np.tanh,
    "neg": np.negative,
    "abs": np.abs,
}
_BINARY: Mapping[str, Callable[[Array, Array], Any]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "min": np.fmin,
    "max": np.fmax,
    "copysign": lambda a, b: np.copysign(b, a),
}
_COMPARE: Mapping[str, Callable[[Array, Array], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "lo": np.less,
    "ls": np.less_equal,
    "hi": np.greater,
    "hs": np.greater_equal,
}


def evaluate(asm: str, outputs: int, inputs: list[Array]) -> list[Array]:
    """Bits of the output registers `$0` .. for the input registers that follow them; raises IrError."""
    machine = _Ptx(inputs, outputs)
    for instruction in _instructions(asm):
        machine.step(instruction)
    try:
        return [machine.registers[f"${n}"] for n in range(outputs)]
    except KeyError as e:
        raise IrError(f"inline assembly is not interpreted: it does not write {e.args[0]}") from None


def _instructions(asm: str) -> list[str]:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", asm, flags=re.S)
    text = re.sub(r"\s+", " ", text).strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1]
    parts = [part.strip() for part in text.split(";")]
    return [part for part in parts if part and not part.startswith(".reg")]


class _Ptx:
    def __init__(self, inputs: list[Array], outputs: int) -> None:
        self.registers: dict[str, Array] = {f"${outputs + n}": value for n, value in enumerate(inputs)}
        self.shape = np.broadcast_shapes(*(v.shape for v in inputs)) if inputs else (1,)

    def step(self, text: str) -> None:
        match = re.match(r"^(?:@(!?)([\w%]+)\s+)?([a-z][\w.]*)\s+(.*)$", text)
        if match is None:
            raise self._unknown(text)
        name, *modifiers = match[3].split(".")
        operands = _operands(match[4])
        types = [m for m in modifiers if _TYPE.match(m)]
        if not types:
            raise self._unknown(text)
        values = self._run(text, name, modifiers, types, operands[1:])
        for target, value in zip(_targets(operands[0]), values, strict=True):
            if match[2]:
                held = self._bits(match[2], "pred") != 0
                value = np.where(held ^ (match[1] == "!"), value, self.registers.get(target, np.uint64(0)))
            self.registers[target] = value

    def _run(self, text: str, name: str, modifiers: list[str], types: list[str], operands: list[str]) -> list[Array]:
        kind = types[-1] if name != "cvt" else types[0]
        if name == "mov":
            return self._move(operands[0], kind, text)
        if name == "cvt":
            return [self._convert(text, modifiers, types, operands)]
        if name == "setp":
            return [self._compare(modifiers, kind, operands)]
        if name == "selp":
            yes, no = (self._bits(o, kind) for o in operands[:2])
            chosen: Array = np.where(self._bits(operands[2], "pred") != 0, yes, no)
            return [chosen]
        if kind in ("f16x2", "bf16x2"):
            return [self._halves(text, name, modifiers, kind, operands)]
        if kind in _FLOATS:
            return [_from_float(self._float(text, name, modifiers, kind, operands), kind)]
        return [self._integer(text, name, modifiers, kind, operands)]

    def _move(self, operand: str, kind: str, text: str) -> list[Array]:
        if operand.startswith("%"):
            raise self._unknown(text)
        if operand.startswith("{"):
            parts = [self._bits(o, kind) for o in _targets(operand)]
            width = _width(kind) // len(parts)
            packed = sum(((p & _mask(width)) << np.uint64(width * n) for n, p in enumerate(parts)), np.uint64(0))
            return [np.asarray(packed)]
        value = self._bits(operand, kind)
        count = len(_targets(_operands(text.split(None, 1)[1])[0]))
        width = _width(kind) // count
        return [(value >> np.uint64(width * n)) & _mask(width) for n in range(count)]

    def _float(self, text: str, name: str, modifiers: list[str], kind: str, operands: list[str]) -> Array:
        if any(m in ("rz", "rm", "rp") for m in modifiers):
            raise self._unknown(text)
        args = [_to_float(self._bits(o, kind), kind) for o in operands]
        return self._compute(text, name, modifiers, args)

    def _compute(self, text: str, name: str, modifiers: list[str], args: list[Array]) -> Array:
        if name in _UNARY and len(args) == 1:
            result = _UNARY[name](args[0])
        elif name in _BINARY and len(args) == 2:
            result = _BINARY[name](args[0], args[1])
            if "NaN" in modifiers:
                result = np.where(np.isnan(args[0]) | np.isnan(args[1]), np.nan, result)
        elif name in ("fma", "mad") and len(args) == 3:
            result = args[0] * args[1] + args[2]
        else:
            raise self._unknown(text)
        if "relu" in modifiers:
            result = np.maximum(result, 0)
        return np.clip(np.nan_to_num(result), 0, 1) if "sat" in modifiers else np.asarray(result)

    def _halves(self, text: str, name: str, modifiers: list[str], kind: str, operands: list[str]) -> Array:
        half = kind.removesuffix("x2")
        bits = [self._bits(o, "b32") for o in operands]
        result = np.zeros((), np.uint64)
        for shift in (np.uint64(0), np.uint64(16)):
            args = [_to_float((b >> shift) & _mask(16), half) for b in bits]
            part = _from_float(self._compute(text, name, modifiers, args), half)
            result = result | (part << shift)
        return np.asarray(result)

    def _integer(self, text: str, name: str, modifiers: list[str], kind: str, operands: list[str]) -> Array:
        width = _width(kind)
        wide = [self._bits(o, kind) for o in operands]
        args = [_signed(v, width) if kind[0] == "s" else v for v in wide]
        if name in ("mul", "mad") and ("hi" in modifiers or "wide" in modifiers):
            product = args[0].astype(object) * args[1].astype(object)
            product = product >> width if "hi" in modifiers else product
            width = 2 * width if "wide" in modifiers else width
            if name == "mad":
                product = product + args[2].astype(object)
            return np.asarray(product & (2**width - 1)).astype(np.uint64)
        result = self._integer_result(text, name, modifiers, kind, args, wide)
        return np.asarray(result).astype(np.uint64) & _mask(width)

    def _integer_result(
        self, text: str, name: str, modifiers: list[str], kind: str, args: list[Array], bits: list[Array]
    ) -> Any:
        width = np.uint64(_width(kind))
        match name:
            case "add" | "sub" | "mul" | "min" | "max" if not {"cc", "sat"} & set(modifiers):
                whole = np.minimum if name == "min" else np.maximum if name == "max" else _BINARY[name]
                return whole(args[0], args[1])
            case "mad":
                return args[0] * args[1] + args[2]
            case "neg" | "abs":
                return _UNARY[name](args[0].astype(np.int64))
            case "and" | "or" | "xor":
                return {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[name](*bits)
            case "not":
                return ~bits[0]
            case "shl":
                return np.where(bits[1] >= width, 0, bits[0] << np.minimum(bits[1], np.uint64(63)))
            case "shr":
                return args[0] >> np.minimum(bits[1], width - np.uint64(kind[0] == "s")).astype(args[0].dtype)
            case "lop3":
                return _truth_table(bits)
            case "prmt" if "b32" in modifiers:
                return _permute(bits)
            case "bfe":
                start, count = bits[1] & np.uint64(255), bits[2] & np.uint64(255)
                field = (bits[0] >> start) & ((np.uint64(1) << count) - np.uint64(1))
                sign = (field >> (count - np.uint64(1))) & np.uint64(1)
                return np.where((kind[0] == "s") & (sign == 1), field - (np.uint64(1) << count), field)
            case "bfi":
                start, count = bits[2] & np.uint64(255), bits[3] & np.uint64(255)
                field = ((np.uint64(1) << count) - np.uint64(1)) << start
                return (bits[1] & ~field) | ((bits[0] << start) & field)
            case "popc":
                return np.bitwise_count(bits[0])
            case "clz":
                return width - np.ceil(np.log2(bits[0].astype(np.float64) + 0.5)).clip(0).astype(np.uint64)
            case "brev":
                flipped = np.zeros_like(bits[0])
                for n in range(int(width)):
                    flipped |= ((bits[0] >> np.uint64(n)) & np.uint64(1)) << (width - np.uint64(n + 1))
                return flipped
        raise self._unknown(text)

    def _compare(self, modifiers: list[str], kind: str, operands: list[str]) -> Array:
        a, b = (self._typed(o, kind) for o in operands[:2])
        predicate = modifiers[0]
        unordered = np.isnan(a) | np.isnan(b) if kind in _FLOATS else np.zeros((), np.bool_)
        name = predicate.removesuffix("u") if kind in _FLOATS else predicate
        if len(operands) != 2 or name not in _COMPARE:
            raise self._unknown(f"setp.{predicate}.{kind}")
        holds = _COMPARE[name](a, b) & ~unordered
        result: Array = holds | unordered if predicate.endswith("u") and kind in _FLOATS else holds
        return result.astype(np.uint64)

    def _convert(self, text: str, modifiers: list[str], types: list[str], operands: list[str]) -> Array:
        target, source = types[0], types[-1]
        if target in ("f16x2", "bf16x2") and source == "f32":
            high, low = (_from_float(self._typed(o, source), target.removesuffix("x2")) for o in operands)
            return (high << np.uint64(16)) | low
        if target in _FP8_PAIRS:
            values = [self._typed(o, "f32") for o in operands] if source == "f32" else self._pair(operands[0], source)
            high, low = (convert_float(v.astype(np.float32), "f32", _FP8_PAIRS[target]) for v in values)
            return (high.astype(np.uint64) << np.uint64(8)) | low.astype(np.uint64)
        if source in _FP8_PAIRS:
            bits = self._bits(operands[0], "b16")
            codes = [((bits >> np.uint64(s)) & _mask(8)).astype(np.uint8) for s in (8, 0)]
            high, low = (_from_float(as_float32(c, _FP8_PAIRS[source]), "f16") for c in codes)
            return (high << np.uint64(16)) | low
        value = self._typed(operands[0], source)
        if target in _FLOATS:
            if any(m in ("rz", "rm", "rp", "rzi", "rmi", "rpi") for m in modifiers):
                raise self._unknown(text)
            return _from_float(np.rint(value) if "rni" in modifiers else value, target)
        if source in _FLOATS:
            modes = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}
            mode = next((modes[m] for m in modifiers if m in modes), None)
            if mode is None:
                raise self._unknown(text)
            value = _saturated(mode(value), target)
        elif "sat" in modifiers:
            value = _saturated(value.astype(np.float64), target)
        return value.astype(np.int64).astype(np.uint64) & _mask(_width(target))

    def _pair(self, operand: str, source: str) -> list[Array]:
        if source not in ("f16x2", "bf16x2"):
            raise self._unknown(f"cvt from {source}")
        bits, half = self._bits(operand, "b32"), source.removesuffix("x2")
        return [_to_float((bits >> np.uint64(s)) & _mask(16), half) for s in (16, 0)]

    def _typed(self, operand: str, kind: str) -> Array:
        bits = self._bits(operand, kind)
        if kind in _FLOATS:
            return _to_float(bits, kind)
        return _signed(bits, _width(kind)) if kind[0] == "s" else bits

    def _bits(self, operand: str, kind: str) -> Array:
        """The bits of a register or immediate, as many as the type has."""
        if operand in self.registers:
            return self.registers[operand] & _mask(_width(kind))
        if match := re.fullmatch(r"0[fF]([0-9a-fA-F]{8})", operand):
            return np.array([int(match[1], 16)], np.uint64)
        if match := re.fullmatch(r"0[dD]([0-9a-fA-F]{16})", operand):
            return np.array([int(match[1], 16)], np.uint64)
        if re.fullmatch(r"-?(?:0x[0-9a-fA-F]+|\d+)U?", operand):
            number = int(operand.rstrip("U"), 0)
            return np.array([number & (2 ** _width(kind) - 1)], np.uint64)
        if kind in _FLOATS and re.fullmatch(r"-?\d+\.\d*(?:[eE][-+]?\d+)?", operand):
            return _from_float(np.array([float(operand)]), kind)
        raise self._unknown(operand)

    def _unknown(self, text: str) -> IrError:
        return IrError(f"inline assembly is not interpreted: {text[:120]}")


def _operands(text: str) -> list[str]:
    return [part.strip() for part in re.findall(r"\{[^}]*\}|[^,{}]+", text) if part.strip()]


def _targets(operand: str) -> list[str]:
    return [part.strip() for part in operand.strip("{}").split(",")]


def _width(kind: str) -> int:
    if kind == "pred":
        return 1
    return 32 if kind.endswith("x2") or kind == "tf32" else int(re.sub(r"\D", "", kind))


def _mask(width: int) -> np.uint64:
    return np.uint64(2**width - 1)


def _signed(bits: Array, width: int) -> Array:
    shift = np.int64(64 - width)
    extended: Array = (bits.view(np.int64) << shift) >> shift
    return extended


def _to_float(bits: Array, kind: str) -> Array:
    if kind == "f64":
        return bits.view(np.float64)
    raw = bits.astype(f"u{_width(kind) // 8}")
    held = raw if kind == "bf16" else raw.view({"f16": np.float16, "f32": np.float32}[kind])
    return from_memory(held, kind).astype(np.float64)


def _from_float(values: Array, kind: str) -> Array:
    if kind == "f64":
        return np.ascontiguousarray(values, dtype=np.float64).view(np.uint64)
    narrow = values.astype(np.float32) if kind != "f16" else values.astype(np.float16)
    raw = np.ascontiguousarray(to_memory(narrow, kind))
    return raw.view(f"u{raw.dtype.itemsize}").astype(np.uint64)


def _saturated(values: Array, kind: str) -> Array:
    width = _width(kind)
    low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if kind[0] == "s" else (0, 2**width - 1)
    inside: Array = np.clip(np.nan_to_num(values, nan=0.0), low, min(high, 2**63 - 1024))
    return inside


def _truth_table(bits: list[Array]) -> Array:
    table = int(np.asarray(bits[3]).reshape(-1)[0])
    result = np.zeros(np.broadcast_shapes(*(b.shape for b in bits[:3])), np.uint64)
    for row in range(8):
        if table >> row & 1:
            term = np.full(result.shape, _mask(64))
            for position, value in zip((2, 1, 0), bits[:3], strict=True):
                term = term & (value if row >> position & 1 else ~value)
            result |= term
    return result


def _permute(bits: list[Array]) -> Array:
    source = (bits[1] << np.uint64(32)) | bits[0]
    result = np.zeros(np.broadcast_shapes(*(b.shape for b in bits)), np.uint64)
    for byte in range(4):
        pick = (bits[2] >> np.uint64(4 * byte)) & np.uint64(15)
        value = (source >> ((pick & np.uint64(7)) * np.uint64(8))) & _mask(8)
        sign = np.where(value >> np.uint64(7), _mask(8), np.uint64(0))
        result |= np.where(pick & np.uint64(8), sign, value) << np.uint64(8 * byte)
    return result
