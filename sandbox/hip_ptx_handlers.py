"""One handler per PTX opcode: the C++ text of an instruction, given how its operands are spelled."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from sandbox.hip_asm import AsmError, PtxInstruction, split_operands

C_TYPES = {
    "u8": "unsigned char", "s8": "signed char", "b8": "unsigned char", "u16": "unsigned short", "s16": "short",
    "b16": "unsigned short", "u32": "unsigned", "s32": "int", "b32": "unsigned", "u64": "unsigned long long",
    "s64": "long long", "b64": "unsigned long long", "f32": "float", "f64": "double", "pred": "bool",
    "f16": "wavesmith::ptx::f16", "f16x2": "wavesmith::ptx::f16x2", "bf16": "wavesmith::ptx::bf16",
    "bf16x2": "wavesmith::ptx::bf16x2",
}  # fmt: skip
_BINARY = ("add", "sub", "min", "max", "and", "or", "xor", "div", "rem", "mul24", "copysign")
_UNARY = (
    "abs",
    "neg",
    "not",
    "cnot",
    "popc",
    "clz",
    "brev",
    "sqrt",
    "rsqrt",
    "rcp",
    "sin",
    "cos",
    "lg2",
    "ex2",
    "tanh",
)
_ROUNDINGS = {"rz", "rm", "rp"}


class Registers(Protocol):
    """What a handler asks of the statement it works in."""

    def value(self, operand: str, type_name: str) -> str:
        """C++ text of a source operand read as a PTX type."""

    def address(self, operand: str) -> tuple[str, str]:
        """(register or immediate, byte offset text) of `[reg+offset]`."""

    def put(self, operand: str, expression: str) -> str:
        """Assignment of a value to a destination register; `_` drops it."""


def _type(i: PtxInstruction) -> str:
    if i.modifiers and i.modifiers[-1] in C_TYPES:
        return i.modifiers[-1]
    raise AsmError(f"the PTX instruction {i.text} has no known type")


def _rounding(i: PtxInstruction) -> str:
    found = [m for m in i.modifiers if m in _ROUNDINGS]
    return f"_{found[0]}" if found and not _type(i).startswith(("u", "s", "b")) else ""


def _elementwise(t: Registers, i: PtxInstruction) -> str:
    type_ = _type(i)
    name = {"and": "and_", "or": "or_", "xor": "xor_", "not": "not_"}.get(i.opcode, i.opcode)
    suffix = _rounding(i)
    if i.has("sat") and (type_.startswith(("f", "bf")) or i.opcode in ("add", "sub")):
        suffix += "_sat"
    if i.opcode in ("min", "max") and i.has("NaN"):
        suffix += "_nan"
    if i.has("relu"):
        raise AsmError(f"the PTX instruction {i.text} has no translation")
    result = {"popc": "u32", "clz": "u32"}.get(i.opcode)
    sources = ", ".join(t.value(o, type_) for o in i.operands[1:])
    carry = ""
    if i.opcode in ("addc", "subc") or i.has("cc"):
        name = {"add": "add_carry", "sub": "sub_carry", "addc": "add_carry", "subc": "sub_carry"}[i.opcode]
        taken = "ptx_carry" if i.opcode in ("addc", "subc") else "0u"
        carry = f", {taken}, {'&ptx_carry' if i.has('cc') else '(unsigned*)0'}"
    call = f"wavesmith::ptx::{name}{suffix}<{C_TYPES[type_]}>({sources}{carry})"
    return t.put(i.operands[0], f"({C_TYPES[result]})({call})" if result else call)


def _mul(t: Registers, i: PtxInstruction) -> str:
    type_ = _type(i)
    part = next((m for m in i.modifiers if m in ("lo", "hi", "wide")), "")
    is_float = "f" in type_
    if not is_float and not part:
        raise AsmError(f"the PTX instruction {i.text} lacks lo, hi or wide")
    name = {"mul": "mul", "mad": "mad", "fma": "mad", "madc": "mad", "mad24": "mad24"}[i.opcode]
    suffix = (_rounding(i) if is_float else f"_{part}") + ("_sat" if is_float and i.has("sat") else "")
    if i.has("relu"):
        raise AsmError(f"the PTX instruction {i.text} has no translation")
    values = [t.value(o, type_) for o in i.operands[1:3]]
    if name.startswith("mad"):
        wide = {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}.get(type_, type_) if part == "wide" else type_
        values.append(t.value(i.operands[3], wide))
    carry = ""
    if i.opcode == "madc" or i.has("cc"):
        suffix += "_carry"
        taken = "ptx_carry" if i.opcode == "madc" else "0u"
        carry = f", {taken}, {'&ptx_carry' if i.has('cc') else '(unsigned*)0'}"
    return t.put(i.operands[0], f"wavesmith::ptx::{name}{suffix}<{C_TYPES[type_]}>({', '.join(values)}{carry})")


def _mov(t: Registers, i: PtxInstruction) -> str:
    type_ = _type(i)
    to, source = i.operands
    if to.startswith("{"):
        parts = split_operands(to.strip("{} "))
        bits = int(re.sub(r"\D", "", type_)) // len(parts)
        value = t.value(source, f"b{bits * len(parts)}")
        return " ".join(t.put(p, f"({C_TYPES[f'b{bits}']})({value} >> {n * bits})") for n, p in enumerate(parts))
    if source.startswith("{"):
        parts = split_operands(source.strip("{} "))
        whole = C_TYPES[type_]
        bits = int(re.sub(r"\D", "", type_)) // len(parts)
        joined = " | ".join(f"(({whole}){t.value(p, f'b{bits}')} << {n * bits})" for n, p in enumerate(parts))
        return t.put(to, f"({whole})({joined})")
    return t.put(to, t.value(source, type_))


def _setp(t: Registers, i: PtxInstruction) -> str:
    type_ = _type(i)
    test, *joins = i.modifiers
    test = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(test, test)
    values = f"{t.value(i.operands[1], type_)}, {t.value(i.operands[2], type_)}"
    call = f"wavesmith::ptx::compare_{test}<{C_TYPES[type_]}>({values})"
    to = [part.strip() for part in i.operands[0].split("|")]
    join = next((j for j in joins if j in ("and", "or", "xor")), None)
    other = t.value(i.operands[3], "pred") if join else ""
    symbol = {"and": "&&", "or": "||", "xor": "!="}.get(join or "", "")
    texts = [call if not join else f"({call} {symbol} {other})"]
    if len(to) > 1:
        texts.append(f"!{call}" if not join else f"(!{call} {symbol} {other})")
    if i.opcode == "set":
        yes, no = ("1.f", "0.f") if "f32" in joins[:1] else ("0xffffffffu", "0u")
        return t.put(to[0], f"({texts[0]}) ? {yes} : {no}")
    return " ".join(t.put(p, text) for p, text in zip(to, texts, strict=True))


def _named(name: str, kinds: Sequence[str] = (), result: str = "") -> Callable[[Registers, PtxInstruction], str]:
    """A call of one function. `kinds` are the PTX types of the sources; empty: all of the instruction's own type."""

    def handle(t: Registers, i: PtxInstruction) -> str:
        type_ = _type(i) if not kinds or "" in kinds else ""
        sources = i.operands[1:]
        types = (
            [kinds[n] or type_ if kinds else type_ for n in range(len(sources))] if kinds else [type_] * len(sources)
        )
        values = ", ".join(t.value(o, k) for o, k in zip(sources, types, strict=True))
        generic = f"<{C_TYPES[type_]}>" if type_ else ""
        return t.put(i.operands[0], f"wavesmith::ptx::{name}{generic}({values})")

    return handle


def _shf(t: Registers, i: PtxInstruction) -> str:
    name = f"shf_{i.modifiers[0]}_{'clamp' if i.has('clamp') else 'wrap'}"
    return t.put(i.operands[0], f"wavesmith::ptx::{name}({', '.join(t.value(o, 'u32') for o in i.operands[1:])})")


def _cvt(t: Registers, i: PtxInstruction) -> str:
    types = [m for m in i.modifiers if m in C_TYPES]
    others = [m for m in i.modifiers if m not in C_TYPES and m != "ftz"]
    if len(types) != 2 or any(
        o not in ("rn", "rz", "rm", "rp", "rni", "rzi", "rmi", "rpi", "sat", "satfinite") for o in others
    ):
        raise AsmError(f"the PTX instruction {i.text} has no translation")
    to, source = types
    mode = next((o for o in others if o.startswith("r")), "rn")
    saturate = "true" if "sat" in others else "false"
    if to in ("f16x2", "bf16x2") and len(i.operands) == 3:
        values = f"{t.value(i.operands[1], source)}, {t.value(i.operands[2], source)}"
        return t.put(i.operands[0], f"wavesmith::ptx::pack<{C_TYPES[to]}>({values})")
    names = f"{C_TYPES[to]}, {C_TYPES[source]}, wavesmith::ptx::{mode}, {saturate}"
    return t.put(i.operands[0], f"wavesmith::ptx::cvt<{names}>({t.value(i.operands[1], source)})")


def _cvta(t: Registers, i: PtxInstruction) -> str:
    space = next((m for m in i.modifiers if m.split("::")[0] in ("shared", "global", "const", "local", "param")), "")
    direction = "to" if i.has("to") else "from"
    name = "shared" if space.startswith("shared") else "global"
    return t.put(i.operands[0], f"wavesmith::ptx::address_{direction}_{name}({t.value(i.operands[1], 'u64')})")


def _space(i: PtxInstruction) -> str:
    for m in i.modifiers:
        base = m.split("::")[0]
        if base == "shared":
            if "cluster" in m:
                raise AsmError(f"{i.text} reaches the shared memory of another block")
            return "shared"
        if base in ("global", "const", "local", "generic"):
            return "generic"
        if base == "param":
            raise AsmError(f"{i.text} reads a parameter by address")
    return "generic"


def _memory_order(i: PtxInstruction) -> str:
    if i.has("volatile", "mmio"):
        return "volatile_"
    scoped = {"cta": "block", "gpu": "device", "sys": "system"}
    scope = next((scoped[m] for m in i.modifiers if m in scoped), "device")
    order = next((m for m in i.modifiers if m in ("relaxed", "acquire", "release", "acq_rel", "sc")), "")
    return (
        f"{order}_{scope}"
        if order
        else ("system_" if i.has("cv", "wt") else "streaming" if i.has("cs", "lu") else "plain")
    )


def _load_store(t: Registers, i: PtxInstruction) -> str:
    type_ = _type(i)
    where, what = (i.operands[1], i.operands[0]) if i.opcode in ("ld", "ldu") else (i.operands[0], i.operands[1])
    address, offset = t.address(where)
    parts = split_operands(what.strip("{} ")) if what.startswith("{") else [what]
    count = next((int(m[1:]) for m in i.modifiers if re.fullmatch(r"v[248]", m)), 1)
    if count != len(parts):
        raise AsmError(f"{i.text} does not name {count} registers")
    place = f"wavesmith::ptx::at_{_space(i)}<{C_TYPES[type_]}, {count}>({address}, {offset})"
    kind = f"wavesmith::ptx::{_memory_order(i)}"
    if i.opcode in ("ld", "ldu"):
        reads = " ".join(t.put(p, f"ptx_loaded.v[{n}]") for n, p in enumerate(parts))
        return f"{{ const auto ptx_loaded = {kind}.load({place}); {reads} }}"
    values = ", ".join(t.value(p, type_) for p in parts)
    return f"{kind}.store({place}, wavesmith::ptx::vec<{C_TYPES[type_]}, {count}>{{{{{values}}}}});"


def _shfl(t: Registers, i: PtxInstruction) -> str:
    mode = next((m for m in i.modifiers if m in ("idx", "up", "down", "bfly")), None)
    if mode is None:
        raise AsmError(f"the PTX instruction {i.text} has no translation")
    to = [part.strip() for part in i.operands[0].split("|")]
    values = ", ".join(t.value(o, "u32") for o in i.operands[1:4])
    result = t.put(to[0], "ptx_shuffled.value")
    if len(to) > 1:
        result += " " + t.put(to[1], "ptx_shuffled.valid")
    return f"{{ const auto ptx_shuffled = wavesmith::ptx::shfl_{mode}({values}); {result} }}"


def _vote(t: Registers, i: PtxInstruction) -> str:
    mode = next((m for m in i.modifiers if m in ("any", "all", "uni", "ballot")), "ballot")
    mask = t.value(i.operands[2], "u32") if len(i.operands) > 2 else "0xffffffffu"
    return t.put(i.operands[0], f"wavesmith::ptx::vote_{mode}({t.value(i.operands[1], 'pred')}, {mask})")


def _match(t: Registers, i: PtxInstruction) -> str:
    type_ = _type(i)
    to = [part.strip() for part in i.operands[0].split("|")]
    mode = "all" if i.has("all") else "any"
    values = f"{t.value(i.operands[1], type_)}, {t.value(i.operands[2], 'u32')}"
    call = f"wavesmith::ptx::match_{mode}<{C_TYPES[type_]}>({values})"
    result = t.put(to[0], "ptx_matched.value") + (" " + t.put(to[1], "ptx_matched.valid") if len(to) > 1 else "")
    return f"{{ const auto ptx_matched = {call}; {result} }}"


def _redux(t: Registers, i: PtxInstruction) -> str:
    type_ = _type(i)
    operation = next((m for m in i.modifiers if m in ("add", "min", "max", "and", "or", "xor")), None)
    if operation is None or type_.startswith("f"):
        raise AsmError(f"the PTX instruction {i.text} has no translation")
    values = f"{t.value(i.operands[1], type_)}, {t.value(i.operands[2], 'u32')}"
    return t.put(i.operands[0], f"wavesmith::ptx::redux_{operation}<{C_TYPES[type_]}>({values})")


def _atomic(t: Registers, i: PtxInstruction) -> str:
    type_ = _type(i)
    operation = next((m for m in i.modifiers if m in _ATOMICS), None)
    if operation is None or any(re.fullmatch(r"v\d", m) for m in i.modifiers):
        raise AsmError(f"the PTX instruction {i.text} has no translation")
    first = 0 if i.opcode == "red" else 1
    address, offset = t.address(i.operands[first])
    values = "".join(f", {t.value(o, type_)}" for o in i.operands[first + 1 :])
    place = f"wavesmith::ptx::at_{_space(i)}<{C_TYPES[type_]}, 1>({address}, {offset})"
    scoped = {"cta": "block", "gpu": "device", "sys": "system"}
    scope = next((scoped[m] for m in i.modifiers if m in scoped), "device")
    order = next((m for m in i.modifiers if m in ("acquire", "release", "acq_rel")), "relaxed")
    call = f"wavesmith::ptx::{order}_{scope}.{operation}_({place}{values})"
    return f"(void){call};" if i.opcode == "red" else t.put(i.operands[0], call)


_ATOMICS = ("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec")


def _barrier(t: Registers, i: PtxInstruction) -> str:
    if i.has("warp"):
        return "wavesmith::ptx::sync_warp();"
    if i.has("red", "arrive", "cluster") or len(i.operands) != 1 or i.operands[0] != "0":
        raise AsmError(f"{i.text} {', '.join(i.operands)} waits for a part of the block")
    return "__syncthreads();"


def _fence(t: Registers, i: PtxInstruction) -> str:
    if i.has("proxy", "cluster", "mbarrier_init"):
        raise AsmError(f"the PTX instruction {i.text} has no translation")
    scope = "block" if i.has("cta") else "system" if i.has("sys") else "device"
    return f"wavesmith::ptx::fence_{scope}();"


def _cp(t: Registers, i: PtxInstruction) -> str:
    if i.modifiers[:1] != ("async",) or i.has("bulk", "tensor", "mbarrier"):
        raise AsmError(f"the PTX instruction {i.text} has no translation")
    operands = [o for o in i.operands if not o.startswith("%") or not i.has("L2::cache_hint") or o != i.operands[-1]]
    to, to_offset = t.address(operands[0])
    source, source_offset = t.address(operands[1])
    size = t.value(operands[2], "u32")
    copied = t.value(operands[3], "u32") if len(operands) > 3 else size
    return f"wavesmith::ptx::copy_to_shared({to} + {to_offset}, {source} + {source_offset}, {size}, {copied});"


def _dot(t: Registers, i: PtxInstruction, name: str) -> str:
    types = [m for m in i.modifiers if m in C_TYPES]
    half = "_hi" if i.has("hi") else "_lo" if i.has("lo") else ""
    result = "s32" if "s32" in types else "u32"
    values = ", ".join([*(t.value(o, "b32") for o in i.operands[1:3]), t.value(i.operands[3], result)])
    names = f"{_truth(types[0])}, {_truth(types[1])}"
    return t.put(i.operands[0], f"wavesmith::ptx::{name}{half}<{names}, {C_TYPES[result]}>({values})")


def _truth(type_name: str) -> str:
    return "true" if type_name.startswith("s") else "false"


def _simple(text: str) -> Callable[[Registers, PtxInstruction], str]:
    return lambda t, i: text


def _activemask(t: Registers, i: PtxInstruction) -> str:
    return t.put(i.operands[0], "wavesmith::ptx::activemask()")


def _isspacep(t: Registers, i: PtxInstruction) -> str:
    space = i.modifiers[0].split("::")[0]
    return t.put(i.operands[0], f"wavesmith::ptx::is_{space}({t.value(i.operands[1], 'u64')})")


def _policy(t: Registers, i: PtxInstruction) -> str:
    return t.put(i.operands[0], "0ull")


HANDLERS: dict[str, Callable[[Registers, PtxInstruction], str]] = {
    **dict.fromkeys((*_BINARY, *_UNARY, "addc", "subc"), _elementwise),
    **dict.fromkeys(("mul", "mad", "fma", "madc", "mad24"), _mul),
    "mov": _mov, "setp": _setp, "set": _setp,
    "shl": _named("shl", ("", "u32")), "shr": _named("shr", ("", "u32")),
    "bfe": _named("bfe", ("", "u32", "u32")), "bfi": _named("bfi", ("", "", "u32", "u32")),
    "bfind": _named("bfind"), "fns": _named("fns", ("b32", "b32", "s32")),
    "prmt": _named("prmt", ("b32", "b32", "b32")), "lop3": _named("lop3", ("b32", "b32", "b32", "b32")),
    "sad": _named("sad"), "selp": _named("selp", ("", "", "pred")), "slct": _named("slct", ("", "", "s32")),
    "dp4a": lambda t, i: _dot(t, i, "dp4a"), "dp2a": lambda t, i: _dot(t, i, "dp2a"),
    "shf": _shf, "cvt": _cvt, "cvta": _cvta, "ld": _load_store, "ldu": _load_store, "st": _load_store, "shfl": _shfl,
    "vote": _vote, "match": _match, "redux": _redux, "atom": _atomic, "red": _atomic, "bar": _barrier,
    "barrier": _barrier, "membar": _fence, "fence": _fence, "cp": _cp, "activemask": _activemask,
    "isspacep": _isspacep, "createpolicy": _policy, "trap": _simple("__builtin_trap();"),
    "brkpt": _simple("__builtin_trap();"), "nanosleep": _simple(";"),
}  # fmt: skip
