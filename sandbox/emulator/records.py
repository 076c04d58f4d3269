"""Decoded instructions as the records of the compiled core (`core/core.h`).

Here is decided which modifiers an instruction may carry: what an operand's type, an operation's flags (in the tables at
the end of each C file) and the encoding do not cover becomes a record that ends the run as unsupported when it is
reached. Nothing is dropped silently.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, field
from functools import cache

import numpy as np
import numpy.typing as npt

from sandbox.emulator.instruction import Instruction, Operand, Unsupported

_OPERAND = struct.Struct("<8B6I")
_TAIL = struct.Struct("<qqIIIIi25BxH")
RECORD_BYTES = 8 + 11 * 32 + _TAIL.size
LANES = 64

NONE, VECTOR, SCALAR, CONSTANT, SPECIAL = range(5)
_SELECT_HALVES, _SELECT_SDWA, _SELECT_DWORDS = 1, 2, 3
_SATURATES, _CUSTOM, _OP_SEL, _BLGP, _MODE_64 = 1, 2, 4, 8, 16
_UNKNOWN = 0xFFFFFFFF

_TYPE_CODES = {"f16": 1, "bf16": 1, "f32": 2, "f64": 3, "f16x2": 4, "f32x2": 5}
_SCALAR_FLOATS = {"f16": 0x8000, "f32": 0x80000000, "f64": 0x80000000}
_HALVES = frozenset({"f16", "bf16", "i16", "u16", "b16"})
_PACKED = frozenset({"f16x2", "bf16x2", "i16x2", "u16x2"})
_PACKED_FLOATS = frozenset({"f16x2", "bf16x2"})
_PAIRS = frozenset({"f32x2", "b32x2"})
_ALL = 0xFFFFFFFF
_NO_OPERAND = _OPERAND.pack(*([0] * 14))


@dataclass(frozen=True)
class Operations:
    """Mnemonic to the number and flags of the operation that implements it."""

    numbers: dict[str, tuple[int, int]]


@cache
def operations(library: ctypes.CDLL) -> Operations:
    """The table of the compiled core; checks that both sides agree about the layout of a record."""
    sizes = (ctypes.c_uint64 * 5)()
    library.ws_sizes(sizes)
    if sizes[0] != RECORD_BYTES or sizes[1] != _OPERAND.size:
        raise AssertionError(f"record layout: {list(sizes)} in C, {RECORD_BYTES}, {_OPERAND.size} here")
    library.ws_operation.restype = ctypes.c_char_p
    numbers: dict[str, tuple[int, int]] = {}
    flags = ctypes.c_uint32()
    while (name := library.ws_operation(len(numbers), ctypes.byref(flags))) is not None:
        mnemonic = name.decode()
        if mnemonic in numbers:
            raise AssertionError(f"{mnemonic} is defined twice")
        numbers[mnemonic] = (len(numbers), flags.value)
    return Operations(numbers)


@dataclass
class _Select:
    """How a vector source is transformed when it is fetched."""

    select: int = 0
    low: int = 0
    high: int = 0
    sext: int = 0
    keep: list[int] = field(default_factory=lambda: [_ALL, _ALL])
    flip: list[int] = field(default_factory=lambda: [0, 0])
    dpp: int = 0

    @property
    def changed(self) -> bool:
        return bool(self.select or self.dpp or self.flip[0] or self.flip[1]) or self.keep != [_ALL, _ALL]


class Translator:
    """Turns instructions of one program into records. Constants are shared; AccVGPRs follow `vgprs` VGPRs."""

    def __init__(self, table: Operations, vgprs: int) -> None:
        self.table = table
        self.vgprs = vgprs
        self.constants: dict[int, int] = {}
        self.unsupported: dict[int, Unsupported] = {}

    def constant(self, value: int) -> int:
        return self.constants.setdefault(value, len(self.constants))

    def constant_lanes(self) -> npt.NDArray[np.uint32]:
        """[constant][low, high dword][lane], as the core reads them."""
        values = np.array([*self.constants] or [0], dtype=np.uint64)
        words = np.stack([values.astype(np.uint32), (values >> np.uint64(32)).astype(np.uint32)], axis=1)
        return np.ascontiguousarray(np.repeat(words[:, :, None], LANES, axis=2))

    def operand(self, o: Operand | None, select: _Select | None = None) -> bytes:
        if o is None:
            return _NO_OPERAND
        kind, index = {
            "vgpr": (VECTOR, o.index),
            "agpr": (VECTOR, self.vgprs + o.index),
            "sgpr": (SCALAR, o.index),
            "special": (SPECIAL, o.index),
        }.get(o.kind) or (CONSTANT, self.constant(o.value))
        s = select or _Select()
        return _OPERAND.pack(
            kind, min(o.dwords, 255), _TYPE_CODES.get(o.type, 0), s.dpp, s.select, s.low, s.high, s.sext, index,
            *s.keep, *s.flip, s.changed,
        )  # fmt: skip

    def record(self, number: int, pc: int, i: Instruction, target: int) -> bytes:
        """The record of instruction `number` of the program, at image offset `pc`."""
        op, flags = self.table.numbers.get(i.mnemonic, (_UNKNOWN, 0))
        try:
            if op == _UNKNOWN:
                raise Unsupported(i.mnemonic)
            _check(i, flags)
            sources = [self.operand(o, _source_select(i, n, flags)) for n, o in enumerate(i.src)]
        except Unsupported as why:
            self.unsupported[number] = why
            op, sources = _UNKNOWN, [self.operand(o) for o in i.src]
        operands = [
            *_padded([self.operand(o) for o in i.dst], 2),
            *_padded(sources, 4),
            self.operand(i.vaddr),
            self.operand(i.saddr),
            self.operand(i.soffset),
            *_padded([self.operand(o) for o in i.scale], 2),
        ]
        return bytes(8) + b"".join(operands) + _tail(op, pc, i, target, flags)


def _padded(items: list[bytes], count: int) -> list[bytes]:
    return items + [_NO_OPERAND] * (count - len(items))


def _refuse(i: Instruction, what: str, condition: object) -> None:
    if condition:
        raise Unsupported(i.mnemonic, what)


_SCALAR_SOURCES = {"v_readlane_b32": (1,), "v_writelane_b32": (0, 1)}
_EXCHANGES = frozenset({"v_swap_b32", "v_permlane16_swap_b32", "v_permlane32_swap_b32"})


def _check_files(i: Instruction) -> None:
    """Refuses a vector register where a scalar is read, and the other way round: only damaged code has them."""
    scalars = [o for n, o in enumerate(i.src) if o.type == "mask" or n in _SCALAR_SOURCES.get(i.mnemonic, ())]
    scalars += [i.soffset] if i.soffset is not None else []
    if i.encoding.startswith("SOP"):
        scalars += i.src
    _refuse(i, "a vector register where a scalar is needed", any(o.kind in ("vgpr", "agpr") for o in scalars))
    _refuse(i, "a scalar that is exchanged", i.mnemonic in _EXCHANGES and i.src[0].kind != "vgpr")


def _check(i: Instruction, flags: int) -> None:
    """Refuses what no operand type or operation flag accounts for."""
    _refuse(i, "gds", i.gds)
    _check_files(i)
    if flags & _CUSTOM:
        signs = i.neg or i.abs or i.neg_hi
        op_sel = i.encoding == "VOP3" and i.op_sel and not flags & _OP_SEL
        _refuse(i, "a modifier", signs or i.clamp or i.omod or i.dpp or i.sdwa or op_sel)
        _refuse(i, "cbsz or blgp", (i.cbsz or i.abid or i.blgp) and not flags & _BLGP)
        return
    result = i.dst[0].type if i.dst else ""
    floating = result in _TYPE_CODES and result != "bf16"
    _refuse(i, f"clamp on a {result} result", i.clamp and not floating and not flags & _SATURATES)
    _refuse(i, f"omod on a {result} result", i.omod and result not in _SCALAR_FLOATS)
    if i.encoding == "VOP3" and not flags & _OP_SEL:
        _refuse(i, "op_sel on the destination", i.op_sel >> 3 & 1 and not (result in _HALVES and i.merge))
    if i.sdwa is not None:
        odd = i.sdwa.dst_sel > 6 or i.sdwa.dst_unused > 2 or max(i.sdwa.src_sel) > 6
        _refuse(i, "SDWA selection", odd or (flags & _OP_SEL and i.sdwa.dst_sel != 6))


def _source_select(i: Instruction, n: int, flags: int) -> _Select | None:
    """What happens to source `n` on the way in; refuses modifiers that its type does not have."""
    if flags & _CUSTOM:
        return None
    o, s = i.src[n], _Select()
    if i.encoding == "VOP3P":
        return _packed_select(i, n, flags)
    if o.type == "mask":
        return None
    if i.sdwa is not None and n < 2:
        if i.sdwa.src_sel[n] != 6:
            s.select, s.low, s.sext = _SELECT_SDWA, i.sdwa.src_sel[n], int(i.sdwa.src_sext[n])
        _refuse(i, "sext on a float source", i.sdwa.src_sext[n] and o.type in _SCALAR_FLOATS)
    elif i.encoding == "VOP3" and i.op_sel >> n & 1 and not flags & _OP_SEL:
        _refuse(i, f"op_sel on a {o.type} source", o.type not in _HALVES)
        _refuse(i, "op_sel on a constant", o.is_constant)
        s.select, s.low = _SELECT_HALVES, 1
    if i.dpp is not None and n == 0:
        s.dpp = 1
    negate, absolute = i.neg >> n & 1, i.abs >> n & 1
    if negate or absolute:
        raw = i.mnemonic == "v_cndmask_b32"
        _refuse(i, f"neg or abs on a {o.type} source", o.type not in _SCALAR_FLOATS and not raw)
        sign = 0x80000000 if raw else _SCALAR_FLOATS[o.type]
        part = 1 if o.type == "f64" else 0
        s.keep[part] = _ALL & ~sign if absolute else _ALL
        s.flip[part] = sign if negate else 0
    return s


def _packed_select(i: Instruction, n: int, flags: int) -> _Select:
    o, s = i.src[n], _Select()
    low, high = i.op_sel >> n & 1, i.op_sel_hi >> n & 1
    negate, negate_high = i.neg >> n & 1, i.neg_hi >> n & 1
    if flags & _OP_SEL:  # mixed precision: neg_hi is abs, op_sel_hi chose the type when it was decoded
        sign = _SCALAR_FLOATS[o.type]
        if o.type == "f16" and low:
            s.select, s.low = _SELECT_HALVES, 1
        _refuse(i, "op_sel on an f32 source", o.type == "f32" and low)
        s.keep[0] = _ALL & ~sign if negate_high else _ALL
        s.flip[0] = sign if negate else 0
        return s
    if o.type in _PACKED:
        if (low, high) != (0, 1):
            s.select, s.low, s.high = _SELECT_HALVES, low, high
        _refuse(i, "neg on an integer source", (negate or negate_high) and o.type not in _PACKED_FLOATS)
        s.flip[0] = (0x8000 if negate else 0) | (0x80000000 if negate_high else 0)
    elif o.type in _PAIRS:
        if (low, high) != (0, 1):
            s.select, s.low, s.high = _SELECT_DWORDS, low, high
        _refuse(i, "neg on an integer source", (negate or negate_high) and o.type != "f32x2")
        _refuse(i, "the high half of a constant", o.is_constant and high and o.value and i.mnemonic != "v_pk_mov_b32")
        s.flip = [0x80000000 if negate else 0, 0x80000000 if negate_high else 0]
    else:
        _refuse(i, "op_sel", low)
        _refuse(i, "neg on an integer source", (negate or negate_high) and (o.type != "f32" or not negate))
        s.flip[0] = 0x80000000 if negate else 0
    return s


def _offsets(i: Instruction) -> tuple[int, int]:
    """Byte offsets. Two-address LDS forms count in elements, or in 64 elements."""
    if i.encoding != "DS" or not any(part in i.mnemonic for part in ("read2", "write2")):
        return i.offset, i.offset1
    unit = (8 if i.mnemonic.endswith("b64") else 4) * (64 if "st64" in i.mnemonic else 1)
    return i.offset * unit, i.offset1 * unit


def _tail(op: int, pc: int, i: Instruction, target: int, flags: int) -> bytes:
    result = i.dst[0].type if i.dst else ""
    float_clamp = i.clamp and result in _TYPE_CODES and not flags & _SATURATES
    high = i.encoding == "VOP3" and i.op_sel >> 3 & 1 and not flags & _OP_SEL and not flags & _CUSTOM
    merge = i.merge and not high
    moved = i.sdwa is not None and i.sdwa.dst_sel != 6
    plain = not (float_clamp or i.omod or high or merge or moved or i.dpp)
    dpp = i.dpp
    offset, offset1 = _offsets(i)
    return _TAIL.pack(
        offset, offset1, op, pc, pc + i.size, i.imm, target,
        i.clamp, i.omod, i.op_sel, i.op_sel_hi, i.neg, i.neg_hi, i.abs, i.cbsz, i.abid, i.blgp,
        merge, i.sc0, i.offen, i.idxen, i.lds, float_clamp, high, plain, dpp is not None,
        dpp.row_mask if dpp else 15, dpp.bank_mask if dpp else 15, dpp.bound_ctrl if dpp else 0,
        i.sdwa.dst_sel if i.sdwa and moved else 6, i.sdwa.dst_unused if i.sdwa else 0, bool(flags & _MODE_64),
        dpp.control if dpp else 0,
    )  # fmt: skip
