"""Directed rounding: what float instructions do while MODE asks for something else than round to nearest even."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sandbox.emulator.instruction import Instruction
from sandbox.emulator.machine import Wave, unsupported
from sandbox.emulator.semantics.exact import F64, Array, add_to_odd, fma_wide, narrow


def _wide(a: Array) -> F64:
    return a.astype(np.float64)


def _add(a: Array, b: Array) -> F64:
    return add_to_odd(_wide(a), _wide(b))


def _mul(a: Array, b: Array) -> F64:
    return _wide(a) * _wide(b)


_EXACT: dict[str, Callable[..., F64]] = {
    **{f"v_add_{k}": _add for k in ("f16", "f32")},
    **{f"v_sub_{k}": lambda a, b: _add(a, -b) for k in ("f16", "f32")},
    **{f"v_subrev_{k}": lambda a, b: _add(b, -a) for k in ("f16", "f32")},
    **{f"v_mul_{k}": _mul for k in ("f16", "f32")},
    **{f"v_{op}_{k}": fma_wide for op in ("fma", "fmac") for k in ("f16", "f32")},
    "v_cvt_f32_f64": _wide,
    "v_cvt_f16_f32": _wide,
    "v_cvt_f32_i32": _wide,
    "v_cvt_f32_u32": _wide,
    "v_cvt_f16_u16": _wide,
    "v_cvt_f16_i16": _wide,
}
"""Operations as doubles that are exact, or rounded to odd, so that one narrowing in any mode is right."""

_UNAFFECTED = (
    "v_min", "v_max", "v_med3", "v_trunc", "v_ceil", "v_floor", "v_rndne", "v_frexp", "v_exp", "v_log", "v_rcp",
    "v_rsq", "v_sqrt", "v_sin", "v_cos", "v_cvt_f32_ubyte", "v_cvt_f32_f16", "v_cvt_f64", "v_cvt_f32_bf16",
    "v_div_scale", "v_div_fixup", "v_fract",
)  # fmt: skip
"""Results that are exact, or approximations in which rounding is not the point."""


def respect_mode(i: Instruction, function: Callable[..., Array]) -> Callable[[Wave, list[Array]], Array]:
    """`function` for a float instruction, obeying the rounding mode; raises `Unsupported` where it is not known."""
    kind = i.dst[0].type
    shift = 0 if kind == "f32" else 2
    exact = _EXACT.get(i.mnemonic)
    unaffected = i.mnemonic.startswith(_UNAFFECTED)
    dtype = np.float32 if kind == "f32" else np.float16

    def run(w: Wave, sources: list[Array]) -> Array:
        mode = w.mode >> shift & 3
        if mode == 0 or unaffected:
            return function(*sources)
        if exact is None:
            raise unsupported(i, f"rounding mode {mode}")
        return narrow(exact(*sources), dtype, mode)

    return run
