"""CUDA libdevice functions that the HIP device library lacks, written in Triton; and those that cannot be.

Templates take the argument texts as {0}, {1}, ... (parenthesised where needed), `{tl}` and `{ld}` as the local names of
`triton.language` and `triton.language.extra.libdevice`. `{0}` may stand several times: the compiler shares the value.
Semantics are those of NVIDIA's libdevice user's guide.
"""

from __future__ import annotations

from collections.abc import Mapping

HIP_FUNCTIONS = frozenset(
    [
        "abs",
        "acos",
        "acosh",
        "asin",
        "asinh",
        "atan",
        "atan2",
        "atanh",
        "ceil",
        "copysign",
        "cos",
        "cosh",
        "cyl_bessel_i0",
        "cyl_bessel_i1",
        "erf",
        "erfc",
        "erfcx",
        "erfinv",
        "exp",
        "exp2",
        "expm1",
        "fast_dividef",
        "fast_expf",
        "fast_tanhf",
        "floor",
        "fma",
        "fmod",
        "hypot",
        "ilogb",
        "isinf",
        "isnan",
        "j0",
        "j1",
        "ldexp",
        "lgamma",
        "llrint",
        "log",
        "log10",
        "log1p",
        "log2",
        "nearbyint",
        "nextafter",
        "pow",
        "round",
        "rsqrt",
        "signbit",
        "sin",
        "sinh",
        "sqrt",
        "tan",
        "tanh",
        "trunc",
        "y0",
        "y1",
    ]
)
"""What `triton/language/extra/hip/libdevice.py` of Triton 3.6 defines."""

TRITON_MATH = frozenset(
    [
        "abs",
        "ceil",
        "cos",
        "div_rn",
        "erf",
        "exp",
        "exp2",
        "fdiv",
        "floor",
        "fma",
        "log",
        "log2",
        "rsqrt",
        "sin",
        "sqrt",
        "sqrt_rn",
        "umulhi",
    ]
)
"""What `tl.math` of Triton 3.6 defines."""

_INFINITY = 'float("inf")'

TEMPLATES: dict[str, str] = {
    "rint": "{ld}.nearbyint({0})",
    "finitef": f"({{tl}}.abs({{0}}) < {_INFINITY}).to({{tl}}.int32)",
    "isfinited": f"({{tl}}.abs({{0}}) < {_INFINITY}).to({{tl}}.int32)",
    "fast_logf": "{tl}.log({0})",
    "fast_log2f": "{tl}.log2({0})",
    "fast_log10f": "({tl}.log2({0}) * 0.30102999566398120)",
    "fast_sinf": "{tl}.sin({0})",
    "fast_cosf": "{tl}.cos({0})",
    "fast_tanf": "{ld}.tan({0})",
    "fast_powf": "{ld}.pow({0}, {1})",
    "fast_exp10f": "{tl}.exp2({0} * 3.3219280948873623)",
    "exp10": "{tl}.exp2({0} * 3.3219280948873623)",
    "cbrt": "{ld}.copysign({ld}.pow({tl}.abs({0}), 1.0 / 3.0), {0})",
    "rcbrt": "{ld}.copysign({ld}.pow({tl}.abs({0}), -1.0 / 3.0), {0})",
    "sinpi": "{tl}.sin(({0} - 2.0 * {ld}.nearbyint({0} * 0.5)) * 3.141592653589793)",
    "cospi": "{tl}.cos(({0} - 2.0 * {ld}.nearbyint({0} * 0.5)) * 3.141592653589793)",
    "scalbn": "{ld}.ldexp({0}, {1})",
    "saturatef": "{tl}.minimum({tl}.maximum({0}, 0.0), 1.0)",
    "fdim": "{tl}.where({0} <= {1}, 0.0, {0} - {1})",
    "norm3d": "{ld}.hypot({ld}.hypot({0}, {1}), {2})",
    "norm4d": "{ld}.hypot({ld}.hypot({0}, {1}), {ld}.hypot({2}, {3}))",
    "rhypot": "(1.0 / {ld}.hypot({0}, {1}))",
    "rnorm3d": "(1.0 / {ld}.hypot({ld}.hypot({0}, {1}), {2}))",
    "rnorm4d": "(1.0 / {ld}.hypot({ld}.hypot({0}, {1}), {ld}.hypot({2}, {3})))",
    "normcdf": "(0.5 * {ld}.erfc({0} * -0.7071067811865476))",
    "llround": "{ld}.round({0}).to({tl}.int64)",
    "mul24": "((({0} << 8) >> 8) * (({1} << 8) >> 8))",
    "sad": "({tl}.where({0} > {1}, {0} - {1}, {1} - {0}) + {2})",
    "hadd": "(({0} & {1}) + (({0} ^ {1}) >> 1))",
    "rhadd": "(({0} | {1}) - (({0} ^ {1}) >> 1))",
    "float_as_int": "{0}.to({tl}.int32, bitcast=True)",
    "float_as_uint": "{0}.to({tl}.uint32, bitcast=True)",
    "int_as_float": "{0}.to({tl}.float32, bitcast=True)",
    "uint_as_float": "{0}.to({tl}.float32, bitcast=True)",
    "double_as_longlong": "{0}.to({tl}.int64, bitcast=True)",
    "longlong_as_double": "{0}.to({tl}.float64, bitcast=True)",
    "double2hiint": "({0}.to({tl}.int64, bitcast=True) >> 32).to({tl}.int32)",
    "double2loint": "{0}.to({tl}.int64, bitcast=True).to({tl}.int32)",
    "hiloint2double": "(({0}.to({tl}.int64) << 32) | ({1}.to({tl}.int64) & 0xFFFFFFFF)).to({tl}.float64, bitcast=True)",
    "add_rn": "({0} + {1})",
    "sub_rn": "({0} - {1})",
    "mul_rn": "({0} * {1})",
    "fma_rn": "{ld}.fma({0}, {1}, {2})",
    "div_rn": "{tl}.div_rn({0}, {1})",
    "sqrt_rn": "{tl}.sqrt_rn({0})",
    "rcp_rn": "{tl}.div_rn({tl}.full({0}.shape, 1.0, {0}.dtype), {0})",
    "rsqrt_rn": "{ld}.rsqrt({0})",
    "mulhi": "_mulhi({0}, {1})",
    "popc": "_popc({0})",
    "clz": "_clz({0})",
    "ffs": "_ffs({0})",
    "brev": "_brev({0})",
    "byte_perm": "_byte_perm({0}, {1}, {2})",
}

_ROUND = {"rn": "{ld}.nearbyint({0})", "rd": "{tl}.floor({0})", "ru": "{tl}.ceil({0})", "rz": "{0}"}
_INTEGERS = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}
for _mode, _rounded in _ROUND.items():
    for _name, _dtype in _INTEGERS.items():
        TEMPLATES[f"float2{_name}_{_mode}"] = TEMPLATES[f"double2{_name}_{_mode}"] = f"{_rounded}.to({{tl}}.{_dtype})"
for _name in _INTEGERS:
    TEMPLATES[f"{_name}2float_rn"] = "{0}.to({tl}.float32)"
    TEMPLATES[f"{_name}2double_rn"] = "{0}.to({tl}.float64)"
TEMPLATES["double2float_rn"] = "{0}.to({tl}.float32)"

HELPERS: Mapping[str, str] = {
    "_mulhi": '''@triton.jit
def _mulhi(a, b):
    """High half of the product, for 32-bit integers of either sign and unsigned 64-bit ones."""
    if a.dtype == {tl}.int32:
        high = ((a.to({tl}.int64) * b.to({tl}.int64)) >> 32).to({tl}.int32)
    else:
        high = {tl}.umulhi(a, b)
    return high
''',
    "_popc": '''@triton.jit
def _popc(x):
    """Number of bits set, as int32."""
    if x.dtype.primitive_bitwidth == 64:
        v = x.to({tl}.uint64, bitcast=True)
        v = v - ((v >> 1) & 0x5555555555555555)
        v = (v & 0x3333333333333333) + ((v >> 2) & 0x3333333333333333)
        v = (v + (v >> 4)) & 0x0F0F0F0F0F0F0F0F
        v = v + (v >> 8)
        v = v + (v >> 16)
        v = (v + (v >> 32)) & 0x7F
    else:
        v = x.to({tl}.uint32, bitcast=True)
        v = v - ((v >> 1) & 0x55555555)
        v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
        v = (v + (v >> 4)) & 0x0F0F0F0F
        v = v + (v >> 8)
        v = (v + (v >> 16)) & 0x3F
    return v.to({tl}.int32)
''',
    "_clz": '''@triton.jit
def _clz(x):
    """Number of leading zero bits, as int32."""
    if x.dtype.primitive_bitwidth == 64:
        v = x.to({tl}.uint64, bitcast=True)
        v = v | (v >> 1)
        v = v | (v >> 2)
        v = v | (v >> 4)
        v = v | (v >> 8)
        v = v | (v >> 16)
        v = v | (v >> 32)
        zeros = 64 - _popc(v)
    else:
        v = x.to({tl}.uint32, bitcast=True)
        v = v | (v >> 1)
        v = v | (v >> 2)
        v = v | (v >> 4)
        v = v | (v >> 8)
        v = v | (v >> 16)
        zeros = 32 - _popc(v)
    return zeros
''',
    "_ffs": '''@triton.jit
def _ffs(x):
    """Position of the lowest set bit counted from 1, 0 when there is none, as int32."""
    return {tl}.where(x == 0, 0, _popc((x & -x) - 1) + 1)
''',
    "_brev": '''@triton.jit
def _brev(x):
    """Bits of a 32-bit or 64-bit integer in reverse order."""
    if x.dtype.primitive_bitwidth == 64:
        v = x.to({tl}.uint64, bitcast=True)
        v = ((v >> 1) & 0x5555555555555555) | ((v & 0x5555555555555555) << 1)
        v = ((v >> 2) & 0x3333333333333333) | ((v & 0x3333333333333333) << 2)
        v = ((v >> 4) & 0x0F0F0F0F0F0F0F0F) | ((v & 0x0F0F0F0F0F0F0F0F) << 4)
        v = ((v >> 8) & 0x00FF00FF00FF00FF) | ((v & 0x00FF00FF00FF00FF) << 8)
        v = ((v >> 16) & 0x0000FFFF0000FFFF) | ((v & 0x0000FFFF0000FFFF) << 16)
        v = (v >> 32) | (v << 32)
    else:
        v = x.to({tl}.uint32, bitcast=True)
        v = ((v >> 1) & 0x55555555) | ((v & 0x55555555) << 1)
        v = ((v >> 2) & 0x33333333) | ((v & 0x33333333) << 2)
        v = ((v >> 4) & 0x0F0F0F0F) | ((v & 0x0F0F0F0F) << 4)
        v = ((v >> 8) & 0x00FF00FF) | ((v & 0x00FF00FF) << 8)
        v = (v >> 16) | (v << 16)
    return v.to(x.dtype, bitcast=True)
''',
    "_byte_perm": '''@triton.jit
def _byte_perm(x, y, selector):
    """Four bytes chosen from the eight of y:x by the low three bits of each selector nibble, as int32."""
    both = (y.to({tl}.uint32, bitcast=True).to({tl}.uint64) << 32) | x.to({tl}.uint32, bitcast=True).to({tl}.uint64)
    picks = x * 0 + selector  # a constant selector has no type of its own
    low = (both >> ((picks & 7) * 8).to({tl}.uint64)) & 0xFF
    second = (both >> (((picks >> 4) & 7) * 8).to({tl}.uint64)) & 0xFF
    third = (both >> (((picks >> 8) & 7) * 8).to({tl}.uint64)) & 0xFF
    high = (both >> (((picks >> 12) & 7) * 8).to({tl}.uint64)) & 0xFF
    return (low | (second << 8) | (third << 16) | (high << 24)).to({tl}.uint32).to({tl}.int32, bitcast=True)
''',
}
"""Jit helpers by name, in the order they depend on each other."""

NEEDED_HELPERS: Mapping[str, tuple[str, ...]] = {
    "mulhi": ("_mulhi",), "popc": ("_popc",), "clz": ("_popc", "_clz"), "ffs": ("_popc", "_ffs"), "brev": ("_brev",),
    "byte_perm": ("_byte_perm",),
}  # fmt: skip

_DIRECTED = frozenset(
    f"{op}_{mode}" for op in ("add", "sub", "mul", "div", "fma", "rcp", "sqrt") for mode in ("rd", "ru", "rz")
) | frozenset(
    f"{source}2{result}_{mode}"
    for source, result in (("int", "float"), ("uint", "float"), ("ll", "float"), ("ull", "float"), ("ll", "double"),
                           ("ull", "double"), ("double", "float"))
    for mode in ("rd", "ru", "rz")
)  # fmt: skip


def refusal_of(name: str) -> tuple[str, str]:
    """(reason, what to do instead) for a function without an exact counterpart."""
    if name in _DIRECTED:
        way = {"rd": "down", "ru": "up", "rz": "towards zero"}[name[-2:]]
        return (
            f"libdevice.{name} rounds {way}; the HIP device library has no directed rounding, and the plain "
            "operation would break bounds that rest on it",
            "compute in the next wider type and step with libdevice.nextafter where the result is on the wrong side",
        )
    return (
        f"libdevice.{name} has no implementation in the HIP device library and no exact form in Triton",
        "replace the function, or compute this step in PyTorch",
    )
