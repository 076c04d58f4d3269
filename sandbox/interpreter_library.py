"""Device library functions and inline assembly of interpreted kernels.

`__nv_*`, `__ocml_*` and Triton's own HIP symbols are computed in float64 and rounded once, at least as good as what a
device does. Inline assembly is run only where it is one of the known elementwise instructions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np

from sandbox.interpreter_arith import high_product
from sandbox.interpreter_ir import IrError, Op, Type
from sandbox.interpreter_numerics import (
    Array,
    as_float32,
    bit_width,
    from_memory,
    held_dtype,
    is_float,
    settle,
    stored_dtype,
    to_integer,
    to_memory,
    unsigned,
)
from sandbox.interpreter_ptx import evaluate
from sandbox.interpreter_tensor import full

Function = Callable[..., Any]


def _torch(name: str) -> Function:
    def run(*args: Array) -> Array:
        import torch

        tensors = [torch.from_numpy(np.array(a)) for a in np.broadcast_arrays(*args)]
        return np.asarray(getattr(torch.special, name)(*tensors).numpy())

    return run


def _cbrt_inverse(x: Array) -> Array:
    return np.asarray(1.0 / np.cbrt(x))


_REAL: dict[str, Function] = {
    "abs": np.abs, "fabs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "rcbrt": _cbrt_inverse,
    "ceil": np.ceil, "floor": np.floor, "trunc": np.trunc, "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh,
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2)), "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2)),
    "sin": np.sin, "sinh": np.sinh, "tan": np.tan, "tanh": np.tanh, "fast_tanh": np.tanh,
    "erf": _torch("erf"), "erfc": _torch("erfc"), "erfcx": _torch("erfcx"), "erfinv": _torch("erfinv"),
    "erfcinv": lambda x: _torch("erfinv")(1 - x), "normcdf": _torch("ndtr"), "normcdfinv": _torch("ndtri"),
    "cyl_bessel_i0": _torch("i0"), "i0": _torch("i0"), "cyl_bessel_i1": _torch("i1"), "i1": _torch("i1"),
    "j0": _torch("bessel_j0"), "j1": _torch("bessel_j1"), "y0": _torch("bessel_y0"), "y1": _torch("bessel_y1"),
    "lgamma": _torch("gammaln"), "tgamma": lambda x: np.sign(_gamma_sign(x)) * np.exp(_torch("gammaln")(x)),
    "exp": np.exp, "exp2": np.exp2, "exp10": lambda x: np.power(10.0, x), "expm1": np.expm1,
    "log": np.log, "log2": np.log2, "log10": np.log10, "log1p": np.log1p,
    "logb": lambda x: np.floor(np.log2(np.abs(x))),
    "fdim": lambda a, b: np.maximum(a - b, 0), "fmod": np.fmod, "remainder": lambda a, b: a - b * np.rint(a / b),
    "fma": lambda a, b, c: a * b + c, "hypot": np.hypot, "rhypot": lambda a, b: 1 / np.hypot(a, b),
    "norm3d": lambda a, b, c: np.sqrt(a * a + b * b + c * c),
    "rnorm3d": lambda a, b, c: 1 / np.sqrt(a * a + b * b + c * c),
    "norm4d": lambda a, b, c, d: np.sqrt(a * a + b * b + c * c + d * d),
    "rnorm4d": lambda a, b, c, d: 1 / np.sqrt(a * a + b * b + c * c + d * d),
    "ldexp": lambda a, b: a * np.exp2(b), "scalbn": lambda a, b: a * np.exp2(b),
    "nearbyint": np.rint, "rint": np.rint, "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "pow": np.power, "powi": np.power, "pown": np.power, "fast_pow": np.power, "rsqrt": lambda x: 1 / np.sqrt(x),
    "rsqrt_rn": lambda x: 1 / np.sqrt(x), "frsqrt_rn": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt,
    "saturate": lambda x: np.clip(np.nan_to_num(x, nan=0.0), 0, 1),
    "fast_cos": np.cos, "fast_sin": np.sin, "fast_tan": np.tan, "fast_exp": np.exp, "fast_log": np.log,
    "fast_log2": np.log2, "fast_log10": np.log10, "fast_exp10": lambda x: np.power(10.0, x),
    "fast_fdivide": np.divide, "fast_divide": np.divide,
}  # fmt: skip
"""Real functions, by their name without prefix and float suffix; arguments and result in float64."""

_TEST: dict[str, Function] = {
    "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "finite": np.isfinite, "signbit": np.signbit,
}  # fmt: skip
_WHOLE: dict[str, Function] = {
    "llrint": np.rint, "lrint": np.rint, "llround": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "ilogb": lambda x: np.floor(np.log2(np.abs(x))),
}  # fmt: skip


def _gamma_sign(x: Array) -> Array:
    return np.where((x < 0) & (np.mod(np.floor(x), 2) != 0), -1.0, 1.0)


def _popcount(x: Array) -> Array:
    return np.bitwise_count(unsigned(x)).astype(np.int32)


def _leading_zeros(x: Array) -> Array:
    bits = 8 * x.dtype.itemsize
    value, count = unsigned(x).astype(np.uint64), np.zeros(x.shape, np.int32)
    for shift in (32, 16, 8, 4, 2, 1):
        big = (value >> np.uint64(shift)) != 0
        count += np.where(big, shift, 0).astype(np.int32)
        value = np.where(big, value >> np.uint64(shift), value)
    return np.where(unsigned(x) == 0, bits, bits - 1 - count).astype(np.int32)


def _reverse_bits(x: Array) -> Array:
    raw = np.ascontiguousarray(unsigned(x))
    bits = np.unpackbits(raw.view(np.uint8).reshape(*raw.shape, raw.dtype.itemsize), axis=-1, bitorder="little")
    flipped = np.packbits(bits[..., ::-1], axis=-1, bitorder="little")
    return np.ascontiguousarray(flipped).view(raw.dtype).reshape(raw.shape).view(x.dtype)


def _byte_perm(a: Array, b: Array, selector: Array) -> Array:
    source = (unsigned(b).astype(np.uint64) << np.uint64(32)) | unsigned(a).astype(np.uint64)
    result = np.zeros(np.broadcast_shapes(a.shape, b.shape, selector.shape), np.uint64)
    for byte in range(4):
        pick = (unsigned(selector).astype(np.uint64) >> np.uint64(4 * byte)) & np.uint64(7)
        result |= ((source >> (pick * np.uint64(8))) & np.uint64(255)) << np.uint64(8 * byte)
    return result.astype(np.uint32).view(np.int32)


def _signed_high(a: Array, b: Array) -> Array:
    high = high_product(a, b)
    return np.asarray(high - np.where(a < 0, b, 0).astype(a.dtype) - np.where(b < 0, a, 0).astype(a.dtype))


_INTEGER: dict[str, Function] = {
    "abs": np.abs, "iabs": np.abs, "llabs": np.abs, "clz": _leading_zeros, "clzll": _leading_zeros, "popc": _popcount,
    "popcll": _popcount, "brev": _reverse_bits, "brevll": _reverse_bits, "byte_perm": _byte_perm,
    "ffs": lambda x: np.where(x == 0, 0, _popcount((x & -x) - 1) + 1), "mulhi": _signed_high, "mul64hi": _signed_high,
    "ffsll": lambda x: np.where(x == 0, 0, _popcount((x & -x) - 1) + 1),
    "umulhi": high_product, "umul64hi": high_product,
    "mul24": lambda a, b: (a << 8 >> 8) * (b << 8 >> 8), "umul24": lambda a, b: (a & 0xFFFFFF) * (b & 0xFFFFFF),
    "sad": lambda a, b, c: np.abs(a - b) + c, "hadd": lambda a, b: (a & b) + ((a ^ b) >> 1),
    "rhadd": lambda a, b: (a | b) - ((a ^ b) >> 1),
}  # fmt: skip
_REINTERPRET = re.compile(r"^(?:float|double|int|uint|longlong)_as_(?:float|double|int|uint|longlong)$")
_CONVERT = re.compile(r"^(float|double|int|uint|ll|ull)2(float|double|int|uint|ll|ull)_(rn|rz|rd|ru)$")
_DIRECTED = re.compile(r"^[fd]?(add|sub|mul|div|rcp|sqrt|fma)f?_(rn|rz|rd|ru)$")
_ROUND: dict[str, Function] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}


def extern_elementwise(op: Op, args: list[Array]) -> Array:
    """`tt.extern_elementwise`; raises IrError for a symbol that is not known."""
    symbol = op.attributes["symbol"].strip('"')
    name = re.sub(r"^__(?:nv|ocml|triton_hip|triton)_", "", symbol)
    name = re.sub(r"_(?:f16|f32|f64|bf16)$", "", name)
    result = op.result_types[0].element
    if _REINTERPRET.match(name):
        return np.ascontiguousarray(args[0]).view(held_dtype(result))
    if match := _CONVERT.match(name):
        return _conversion(args[0], match[2], match[3], result)
    if match := _DIRECTED.match(name):
        return _directed(match[1], match[2], args)
    for candidate in (name, name.removesuffix("f"), name.removesuffix("d")):
        if candidate in _TEST:
            return np.asarray(_TEST[candidate](args[0])).astype(held_dtype(result))
        if candidate in _WHOLE:
            return to_integer(_WHOLE[candidate](args[0].astype(np.float64)), result)
        if candidate in _INTEGER and not is_float(op.operand_types[0].element):
            return np.asarray(_INTEGER[candidate](*args)).astype(held_dtype(result))
        if candidate in _REAL:
            wide = [as_float32(a, t.element).astype(np.float64) for a, t in zip(args, op.operand_types, strict=True)]
            return settle(np.asarray(_REAL[candidate](*wide)), result)
    if name.removesuffix("f") == "nextafter":
        return np.asarray(np.nextafter(args[0], args[1]))
    raise IrError(f"the library function {symbol} is not interpreted")


def _conversion(value: Array, target: str, mode: str, element: str) -> Array:
    if target in ("float", "double"):
        wide: Array = settle(value, element)
        if mode == "rn" or value.dtype.itemsize <= wide.dtype.itemsize // 2:
            return wide
        return _nudge(wide, np.sign(value.astype(np.longdouble) - wide.astype(np.longdouble)), mode)
    return to_integer(_ROUND[mode](value.astype(np.float64)), element, unsigned=target in ("uint", "ull"))


def _directed(operation: str, mode: str, args: list[Array]) -> Array:
    """float32 arithmetic rounded down, up or toward zero: the nearest result, moved by one step where it is past."""
    if args[0].dtype != np.float32 and mode != "rn":
        raise IrError(f"directed rounding of float64 {operation} is not interpreted")
    wide: list[Array] = [x.astype(np.longdouble) for x in args]
    a, rest = wide[0], wide[1:]
    b: Array = rest[0] if rest else np.ones_like(a)
    forms: dict[str, Callable[[], tuple[Any, Any]]] = {
        "add": lambda: _sum(a, b),
        "sub": lambda: _sum(a, -b),
        "mul": lambda: (a * b, 0),
        "div": lambda: (a / b, 0),
        "rcp": lambda: (1 / a, 0),
        "sqrt": lambda: (np.sqrt(a), 0),
        "fma": lambda: _sum(a * b, rest[1]),
    }
    exact = forms[operation]()
    near = np.asarray(exact[0]).astype(args[0].dtype)
    if mode == "rn":
        return near
    return _nudge(near, np.sign((exact[0] - near) + exact[1]), mode)


def _sum(a: Array, b: Array) -> tuple[Array, Array]:
    """The rounded sum and its error, exactly (Knuth's TwoSum)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _nudge(near: Array, beyond: Array, mode: str) -> Array:
    """`near`, moved one step as `mode` says where the exact value lies on that side of it (sign `beyond`)."""
    if mode == "rz":
        down, up = (beyond < 0) & (near > 0), (beyond > 0) & (near < 0)
    else:
        down, up = (beyond < 0) & (mode == "rd"), (beyond > 0) & (mode == "ru")
    infinity = near.dtype.type(np.inf)
    return np.where(down, np.nextafter(near, -infinity), np.where(up, np.nextafter(near, infinity), near))


_AMD: dict[str, Function] = {
    "v_exp_f32": np.exp2, "v_log_f32": np.log2, "v_rcp_f32": lambda x: 1 / x, "v_rsq_f32": lambda x: 1 / np.sqrt(x),
    "v_sqrt_f32": np.sqrt, "v_mul_f32": np.multiply, "v_add_f32": np.add, "v_sub_f32": np.subtract,
    "v_max_f32": np.fmax, "v_min_f32": np.fmin, "v_fma_f32": lambda a, b, c: a * b + c, "v_mov_b32": lambda x: x,
    "v_sin_f32": lambda x: np.sin(2 * np.pi * x), "v_cos_f32": lambda x: np.cos(2 * np.pi * x),
}  # fmt: skip
_INSTRUCTION = re.compile(r"^(v_\w+?)(?:_e(?:32|64))?\s+\$0((?:,\s*\$\d+)+)\s*;?$")


def inline_asm(op: Op, args: list[Array]) -> Array | tuple[Array, ...]:
    """`tt.elementwise_inline_asm`: PTX as `interpreter_ptx` knows it, or one AMD float instruction; else IrError."""
    quoted = re.search(r'elementwise_inline_asm "((?:[^"\\]|\\.)*)"', op.text)
    text = re.sub(r"\\([0-9A-Fa-f]{2})", lambda m: chr(int(m[1], 16)), quoted[1] if quoted else "").strip()
    if match := _INSTRUCTION.match(text):
        order = [int(n) - 1 for n in re.findall(r"\$(\d+)", match[2])]
        if match[1] not in _AMD or max(order) >= len(args):
            raise IrError(f"inline assembly is not interpreted: {text[:120]}")
        wide = [as_float32(args[n], op.operand_types[n].element).astype(np.float64) for n in order]
        return settle(np.asarray(_AMD[match[1]](*wide)), op.result_types[0].element)
    pack = int(op.attributes.get("packed_element", "1"))
    outputs = op.attributes.get("constraints", "").count("=")
    inputs = [r for a, t in zip(args, op.operand_types, strict=True) for r in _registers(a, t, pack)]
    registers = evaluate(text, outputs, inputs)
    results = []
    for kind in op.result_types:
        count = max(1, pack * bit_width(kind.element) // 32)
        taken, registers = registers[:count], registers[count:]
        results.append(_elements(taken, kind, pack))
    return tuple(results) if len(results) > 1 else results[0]


def _registers(value: Array, kind: Type, pack: int) -> list[Array]:
    """The bits of an operand in registers of 32 (or, alone, of its own width): `pack` neighbours share registers."""
    raw = np.ascontiguousarray(
        to_memory(value, kind.element) if pack == 1 else to_memory(full(value, kind), kind.element)
    )
    bits = raw.view(f"u{raw.dtype.itemsize}").astype(np.uint64)
    if pack == 1:
        return [bits]
    width = bit_width(kind.element)
    if kind.shape[-1:] == () or kind.shape[-1] % pack:
        raise IrError(f"inline assembly on {pack} packed elements of a tensor of shape {kind.shape} is not interpreted")
    groups = bits.reshape(*bits.shape[:-1], -1, pack)
    each = max(1, 32 // width)
    registers = []
    for first in range(0, pack, each):
        parts = [groups[..., first + n] << np.uint64(width * n) for n in range(min(each, pack - first))]
        registers.append(np.asarray(sum(parts, np.uint64(0))))
    return registers


def _elements(registers: list[Array], kind: Type, pack: int) -> Array:
    """Inverse of `_registers`."""
    dtype = stored_dtype(kind.element)
    width = bit_width(kind.element)
    if pack == 1:
        parts = [registers[0]]
    else:
        each = max(1, 32 // width)
        parts = [registers[n // each] >> np.uint64(width * (n % each)) for n in range(pack)]
    bits = [(p & np.uint64(2**width - 1)).astype(f"u{dtype.itemsize}").view(dtype) for p in parts]
    if pack == 1:
        return from_memory(bits[0], kind.element)
    joined = np.stack(np.broadcast_arrays(*bits), axis=-1)
    return from_memory(joined.reshape(*joined.shape[:-2], -1), kind.element)
