"""`Instruction` to assembler text, spelled as llvm-objdump spells it, for findings, traps and the decoder's test."""

from __future__ import annotations

from sandbox.emulator.constants import inline_constant
from sandbox.emulator.instruction import SCC, Instruction, Operand

_SCALAR_NAMES = {102: "flat_scratch", 104: "xnack_mask", 106: "vcc", 126: "exec"}
_SPECIAL_NAMES = {
    235: "src_shared_base",
    236: "src_shared_limit",
    237: "src_private_base",
    238: "src_private_limit",
    251: "src_vccz",
    252: "src_execz",
    SCC: "src_scc",
}
_FLOAT_NAMES = ("0.5", "-0.5", "1.0", "-1.0", "2.0", "-2.0", "4.0", "-4.0", "0.15915494")
_HWREGS = {
    1: "HW_REG_MODE", 2: "HW_REG_STATUS", 3: "HW_REG_TRAPSTS", 4: "HW_REG_HW_ID", 5: "HW_REG_GPR_ALLOC",
    6: "HW_REG_LDS_ALLOC", 7: "HW_REG_IB_STS", 15: "HW_REG_SH_MEM_BASES", 20: "HW_REG_XCC_ID",
}  # fmt: skip
_DPP_NAMES = {
    0x130: "wave_shl:1", 0x134: "wave_rol:1", 0x138: "wave_shr:1", 0x13C: "wave_ror:1",
    0x140: "row_mirror", 0x141: "row_half_mirror", 0x142: "row_bcast:15", 0x143: "row_bcast:31",
}  # fmt: skip
_SEL = ("BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD")
_BRANCHES = frozenset({"s_branch", "s_call_b64", "s_cbranch_i_fork"})
_HEX_IMM = frozenset({"s_sendmsg", "s_sendmsghalt"})


def _register(prefix: str, index: int, dwords: int) -> str:
    return f"{prefix}{index}" if dwords == 1 else f"{prefix}[{index}:{index + dwords - 1}]"


def _scalar(index: int, dwords: int) -> str:
    if index == 124:
        return "m0"
    if index >= 102 and not 108 <= index < 124:
        pair = _SCALAR_NAMES[index & ~1]
        return pair if dwords == 2 else f"{pair}_{'hi' if index & 1 else 'lo'}"
    return _register("ttmp", index - 108, dwords) if index >= 108 else _register("s", index, dwords)


def _could_be_inline(operand: Operand) -> bool:
    """Whether the assembler would have chosen an inline constant, so that a literal has to be asked for."""
    if operand.type in ("f64", "f16", "b64", "u64", "i64", "i16", "u16", "b16", "bf16") or operand.type.endswith("x2"):
        return False
    codes = (*range(128, 209), *range(240, 249))
    return any(inline_constant(code, operand.type).value == operand.value for code in codes)


def operand_text(operand: Operand) -> str:
    """One operand, without modifiers."""
    if operand.kind in ("vgpr", "agpr"):
        return _register("v" if operand.kind == "vgpr" else "a", operand.index, operand.dwords)
    if operand.kind == "sgpr":
        return _scalar(operand.index, operand.dwords)
    if operand.kind == "special":
        return _SPECIAL_NAMES[operand.index]
    if operand.kind == "literal":
        value = operand.value >> 32 if operand.type == "f64" else operand.value & 0xFFFFFFFF
        return f"lit({value:#x})" if _could_be_inline(operand) else hex(value)
    code = operand.index
    if code >= 240:
        if code == 248 and operand.type in ("f64", "b64", "u64", "i64"):
            return "0.15915494309189532"
        return "0.15915494" if code == 248 and operand.type != "f16" else _float_name(code, operand.type)
    return str(code - 128 if code <= 192 else 192 - code)


def _float_name(code: int, type_name: str) -> str:
    return "0.15915494" if code == 248 else _FLOAT_NAMES[code - 240]


def _source(i: Instruction, n: int) -> str:
    text = operand_text(i.src[n])
    if i.encoding in ("VOP3P", "MAI"):
        if "_mix" in i.mnemonic:
            text = f"|{text}|" if i.neg_hi >> n & 1 else text
            return f"-{text}" if i.neg >> n & 1 else text
        return text
    if i.sdwa and n < 2 and i.sdwa.src_sext[n]:
        return f"sext({text})"
    if i.abs >> n & 1:
        text = f"|{text}|"
    if i.neg >> n & 1:
        text = f"-{text}" if i.src[n].kind not in ("inline", "literal") or text.startswith("|") else f"neg({text})"
    return text


def _dpp_text(i: Instruction) -> list[str]:
    assert i.dpp is not None
    c = i.dpp.control
    if c < 0x100:
        name = "quad_perm:[" + ",".join(str(c >> 2 * k & 3) for k in range(4)) + "]"
    elif c < 0x130:
        name = f"{('row_shl', 'row_shr', 'row_ror')[(c >> 4) - 0x10]}:{c & 15}"
    elif 0x150 <= c < 0x160:
        name = f"row_newbcast:{c & 15}"
    else:
        name = _DPP_NAMES.get(c, f"dpp_ctrl:{c:#x}")
    bound = ["bound_ctrl:1"] if i.dpp.bound_ctrl else []
    return [name, f"row_mask:{i.dpp.row_mask:#x}", f"bank_mask:{i.dpp.bank_mask:#x}", *bound]


def _sdwa_text(i: Instruction) -> list[str]:
    assert i.sdwa is not None
    out = []
    if i.encoding != "VOPC" and not i.mnemonic.startswith(("v_cvt_f32_fp8", "v_cvt_f32_bf8", "v_cvt_pk_f32_")):
        out += [f"dst_sel:{_SEL[i.sdwa.dst_sel]}"]
        out += [f"dst_unused:UNUSED_{('PAD', 'SEXT', 'PRESERVE')[i.sdwa.dst_unused]}"]
    sources = [n for n in range(min(2, len(i.src))) if i.src[n].type != "mask"]
    return out + [f"src{n}_sel:{_SEL[i.sdwa.src_sel[n]]}" for n in sources]


def _bits(value: int, count: int) -> str:
    return "[" + ",".join(str(value >> k & 1) for k in range(count)) + "]"


def _modifiers(i: Instruction) -> list[str]:
    out: list[str] = []
    if i.mnemonic.startswith("v_bitop3"):
        out.append(f"bitop3:{i.imm:#x}" if i.imm else "")
    explicit = [s for s in i.src if s.type != "mask"]
    if i.encoding == "VOP3" and i.op_sel:
        wide = len(explicit)
        sources = i.op_sel & ((1 << wide) - 1)
        out.append(f"op_sel:{_bits(sources | (i.op_sel >> 3 & 1) << wide, wide + 1)}")
    if i.encoding == "VOP3P":
        mix, count = "_mix" in i.mnemonic, len(i.src)
        if i.op_sel:
            out.append(f"op_sel:{_bits(i.op_sel, count)}")
        full = (1 << count) - 1
        if (i.op_sel_hi & full) != (0 if mix else full) and not i.mnemonic.startswith(("v_dot4", "v_dot8")):
            out.append(f"op_sel_hi:{_bits(i.op_sel_hi, count)}")
        if not mix:
            out += [f"neg_lo:{_bits(i.neg, count)}"] if i.neg else []
            out += [f"neg_hi:{_bits(i.neg_hi, count)}"] if i.neg_hi else []
    if i.scale:
        out += [f"op_sel:[{i.op_sel & 1},{i.op_sel >> 1 & 1},0]"] if i.op_sel else []
        out.append(f"op_sel_hi:[{i.op_sel_hi & 1},{i.op_sel_hi >> 1 & 1},0]")
    if i.encoding == "MAI":
        out += [f"cbsz:{i.cbsz}"] if i.cbsz else []
        out += [f"abid:{i.abid}"] if i.abid else []
        if i.blgp:
            out.append(f"neg:{_bits(i.blgp, 3)}" if "_f64" in i.mnemonic else f"blgp:{i.blgp}")
    out += ["clamp"] if i.clamp else []
    out += [["", "mul:2", "mul:4", "div:2"][i.omod]] if i.omod else []
    out += _dpp_text(i) if i.dpp else []
    return out + (_sdwa_text(i) if i.sdwa else [])


def _vector_text(i: Instruction) -> tuple[list[str], list[str]]:
    dst = [operand_text(o) for o in i.dst]
    sources = [n for n, s in enumerate(i.src) if not (i.dst and s == i.dst[0] and _reads_result(i.mnemonic))]
    if i.mnemonic.startswith("v_div_fmas"):
        sources = sources[:3]
    if (
        "_fmac_" in i.mnemonic
        or "_mac_" in i.mnemonic
        or "dot2c" in i.mnemonic
        or "dot4c" in i.mnemonic
        or "dot8c" in i.mnemonic
    ):
        sources = [0, 1]
    src = [_source(i, n) for n in sources]
    return dst + src + [operand_text(s) for s in i.scale], _modifiers(i)


def _reads_result(mnemonic: str) -> bool:
    return "_fmac_" in mnemonic or "_mac_" in mnemonic


def _cache_bits(i: Instruction) -> list[str]:
    return [name for name, on in (("sc0", i.sc0), ("nt", i.nt), ("sc1", i.sc1)) if on]


def _memory_text(i: Instruction) -> tuple[list[str], list[str]]:
    dst = [operand_text(o) for o in i.dst]
    src = [operand_text(o) for o in i.src]
    address = [operand_text(i.vaddr)] if i.vaddr else []
    offset = [f"offset:{i.offset}"] if i.offset else []
    if i.encoding == "DS":
        if any(part in i.mnemonic for part in ("read2", "write2", "wrxchg2")):
            offset = [f"offset{k}:{v}" for k, v in ((0, i.offset), (1, i.offset1)) if v]
        return dst + address + src, _swizzle(i, offset) + (["gds"] if i.gds else [])
    if i.encoding == "MUBUF":
        if i.saddr is None:
            return [], _cache_bits(i)
        assert i.soffset is not None
        data = [] if i.lds else (src or dst)
        parts = [*data, *(address or ["off"]), operand_text(i.saddr), operand_text(i.soffset)]
        flags = [name for name, on in (("idxen", i.idxen), ("offen", i.offen)) if on]
        return parts, flags + offset + _cache_bits(i) + (["lds"] if i.lds else [])
    base = [] if i.encoding == "FLAT" else [operand_text(i.saddr) if i.saddr else "off"]
    return dst + (address or ["off"]) + src + base, offset + _cache_bits(i)


def _swizzle(i: Instruction, offset: list[str]) -> list[str]:
    if i.mnemonic != "ds_swizzle_b32" or not i.offset:
        return offset
    o = i.offset
    if o & 0x8000:
        return (
            [f"offset:swizzle(QUAD_PERM,{','.join(str(o >> 2 * k & 3) for k in range(4))})"] if o < 0x8100 else offset
        )
    and_mask, or_mask, xor_mask = o & 31, o >> 5 & 31, o >> 10
    if or_mask == 0 and and_mask == 31 and xor_mask in (1, 2, 4, 8, 16):
        return [f"offset:swizzle(SWAP,{xor_mask})"]
    if or_mask == 0 and and_mask == 31 and xor_mask and xor_mask & (xor_mask + 1) == 0:
        return [f"offset:swizzle(REVERSE,{xor_mask + 1})"]
    if xor_mask == 0 and and_mask in (0, 16, 24, 28, 30) and or_mask < 32 - and_mask:
        return [f"offset:swizzle(BROADCAST,{32 - and_mask},{or_mask})"]
    letters = []
    for k in range(4, -1, -1):
        a, r, x = and_mask >> k & 1, or_mask >> k & 1, xor_mask >> k & 1
        letters.append(("p" if not x else "i") if a and not r else ("1" if r != x else "0"))
    return [f'offset:swizzle(BITMASK_PERM,"{"".join(letters)}")']


def _smem_text(i: Instruction) -> tuple[list[str], list[str]]:
    parts = [operand_text(o) for o in (*i.dst, *i.src)]
    if i.saddr is None:
        return parts, []
    parts.append(operand_text(i.saddr))
    tail: list[str] = []
    if i.soffset is None:
        parts.append(hex(i.offset) if i.offset >= 0 else f"-{-i.offset:#x}")
    else:
        parts.append(operand_text(i.soffset))
        tail = [f"offset:{i.offset:#x}"] if i.offset else []
    return parts, tail + (["glc"] if i.sc0 else [])


def _waitcnt(imm: int) -> str:
    vm, exp, lgkm = imm & 15 | (imm >> 14 & 3) << 4, imm >> 4 & 7, imm >> 8 & 15
    parts = [
        f"{name}({v})" for name, v, top in (("vmcnt", vm, 63), ("expcnt", exp, 7), ("lgkmcnt", lgkm, 15)) if v != top
    ]
    return " ".join(parts) or "vmcnt(63) expcnt(7) lgkmcnt(15)"


def _hwreg(imm: int) -> str:
    number, low, count = imm & 63, imm >> 6 & 31, (imm >> 11) + 1
    name = _HWREGS.get(number, str(number))
    return f"hwreg({name})" if (low, count) == (0, 32) else f"hwreg({name}, {low}, {count})"


def _setreg_value(value: int) -> str:
    return str(value) if value <= 64 else hex(value)


def _index_mode(imm: int) -> str:
    return f"gpr_idx({','.join(name for k, name in enumerate(('SRC0', 'SRC1', 'SRC2', 'DST')) if imm >> k & 1)})"


def _scalar_immediate(i: Instruction) -> str:
    if i.mnemonic == "s_set_gpr_idx_mode":
        return f"{i.mnemonic} {_index_mode(i.imm)}"
    if i.encoding == "SOPP":
        if i.mnemonic == "s_waitcnt":
            return f"s_waitcnt {_waitcnt(i.imm)}"
        none = {"s_barrier", "s_wakeup", "s_icache_inv", "s_ttracedata", "s_set_gpr_idx_off", "s_endpgm_saved"}
        if i.mnemonic in none or (i.mnemonic == "s_endpgm" and not i.imm):
            return i.mnemonic
        return f"{i.mnemonic} {i.imm}"
    if i.mnemonic == "s_getreg_b32":
        return f"s_getreg_b32 {operand_text(i.dst[0])}, {_hwreg(i.imm)}"
    if i.mnemonic.startswith("s_setreg"):
        literal = i.src[0].kind == "literal"
        return f"{i.mnemonic} {_hwreg(i.imm)}, {_setreg_value(i.src[0].value) if literal else operand_text(i.src[0])}"
    register = operand_text((i.dst or i.src)[0])
    return f"{i.mnemonic} {register}, {i.imm if i.mnemonic in _BRANCHES else hex(i.imm)}"


def _long_suffix(i: Instruction) -> str:
    """`_e64` where the mnemonic also has a short form; the decoder keeps only which encoding it came from."""
    return "_e64" if i.encoding == "VOP3" and i.opcode < 0x1C0 else ""


def text(i: Instruction) -> str:
    """The instruction as llvm-objdump prints it, symbolic branch targets aside."""
    if i.encoding in ("SOPK", "SOPP"):
        return _scalar_immediate(i)
    if i.encoding == "SMEM":
        operands, modifiers = _smem_text(i)
    elif i.encoding in ("DS", "FLAT", "GLOBAL", "SCRATCH", "MUBUF"):
        operands, modifiers = _memory_text(i)
    elif i.encoding.startswith("SOP"):
        operands, modifiers = [operand_text(o) for o in (*i.dst, *i.src)], []
        if i.mnemonic == "s_set_gpr_idx_on":
            operands.append(_index_mode(i.imm))
    else:
        operands, modifiers = _vector_text(i)
    no_suffix = {
        "v_readfirstlane_b32", "v_swap_b32", "v_accvgpr_mov_b32", "v_fmamk_f32", "v_fmaak_f32", "v_madmk_f16",
        "v_madak_f16", "v_nop",
    }  # fmt: skip
    suffix = "" if i.mnemonic in no_suffix and not (i.dpp or i.sdwa) else i.suffix or _long_suffix(i)
    return " ".join(x for x in (i.mnemonic + suffix, ", ".join(operands), *modifiers) if x)
