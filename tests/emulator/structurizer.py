"""Whether a wrong result is LLVM's: device IR evaluated on the host, before and after control flow is structurised.

LLVM 22's StructurizeCFG can lose the value that a block gives to a phi with three or more incoming values, if
computing it costs nothing (fabs, a shuffle): https://github.com/llvm/llvm-project/pull/183792 fixes it. In the IR it
leaves, the result then depends on `poison`, which the program it was given does not. That is what is looked for here:
every `poison` is replaced by one number and by another, both are compiled for the host without optimisation, and run.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
from random_programs import (
    COMMON,
    DEVICE_PRELUDE,
    ITEMS,
    RESULTS,
    device_command,
    device_kernel,
    find_clang,
    inputs,
    source,
)

OPT = shutil.which("opt-22")
LARGE = 3 << 29
"""What `poison` is replaced by, beside 0: exact in every float type."""
PASSES = "lower-switch,flatten-cfg,sink,fix-irreducible,unify-loop-exits,structurizecfg"
"""What the AMDGPU back end does to control flow before it selects instructions."""
_IDS = """extern "C" {
int ws_group, ws_item;
int ws_group_id(void) { return ws_group; }
int ws_item_id(void) { return ws_item; }
}
"""


def structurised(ir: str, arch: str) -> str:
    """The IR as the back end structurises it."""
    assert OPT is not None
    command = [OPT, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={arch}", f"-passes={PASSES}", "-S"]
    return subprocess.run(command, input=ir, capture_output=True, text=True, check=True, timeout=600).stdout


def for_the_host(ir: str, poison: int | None) -> str:
    """Device IR as IR of the host: one address space, no device attributes; phis take `poison` for a number."""
    ir = re.sub(r"^(?:target |@llvm\.compiler\.used|@__hip_cuid).*$", "", ir, flags=re.M)
    ir = re.sub(r",? addrspace\(\d\)", "", ir)
    ir = re.sub(r"\.p[1-5]\b", ".p0", ir)
    ir = re.sub(r"^attributes #(\d+) = \{.*\}$", r"attributes #\1 = { nounwind }", ir, flags=re.M)
    ir = ir.replace("amdgpu_kernel ", "").replace("protected ", "")
    ir = ir.replace("@llvm.amdgcn.workgroup.id.x", "@ws_group_id").replace("@llvm.amdgcn.workitem.id.x", "@ws_item_id")
    return ir if poison is None else "\n".join(_filled(line, poison) for line in ir.splitlines())


def _filled(line: str, poison: int) -> str:
    match = re.search(r"= phi (float|double|i\d+) ", line)
    if match is None:
        return line
    as_text = {"i1": "false", "i8": str(poison & 127), "i16": str(poison & 32767)}
    bits = int(np.array(float(poison)).view(np.uint64))
    number = f"0x{bits:016X}" if match[1] in ("float", "double") else as_text.get(match[1], str(poison))
    return line.replace("[ poison,", f"[ {number},")


def compiled_for_the_host(ir: str, folder: Path, name: str) -> ctypes.CDLL:
    clang = find_clang()
    assert clang is not None
    files = [folder / f"{name}.ll", folder / "ids.cpp", folder / f"{name}.so"]
    files[0].write_text(ir)
    files[1].write_text(_IDS)
    command = [clang, "-O0", "-ffp-contract=off", "-shared", "-fPIC", "-w", str(files[0]), str(files[1]), "-o",
               str(files[2]), "-lm"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr[:1000])
    return ctypes.CDLL(str(files[2]))


def device_ir(seed: int, arch: str, folder: Path) -> str:
    """Program `seed` as optimised IR for the device."""
    file, out = folder / "device.hip", folder / "device.ll"
    file.write_text("\n".join([DEVICE_PRELUDE, COMMON, device_kernel(seed, source(seed))]))
    subprocess.run(device_command(file, out, arch, ["-S", "-emit-llvm"]), check=True, capture_output=True, timeout=600)
    return out.read_text()


def run_on_the_host(library: ctypes.CDLL, seed: int) -> np.ndarray:
    """[item][result] of a kernel of `device_ir`, one work-item after the other."""
    words, out = inputs(seed), np.zeros((ITEMS, RESULTS), np.uint64)
    group, item = (ctypes.c_int.in_dll(library, name) for name in ("ws_group", "ws_item"))
    for k in range(ITEMS):
        group.value, item.value = divmod(k, 64)
        getattr(library, f"run{seed}")(ctypes.c_void_p(words.ctypes.data), ctypes.c_void_p(out.ctypes.data))
    return out


def lost_by_the_structurizer(seed: int, arch: str, folder: Path, expected: np.ndarray) -> bool:
    """Whether the optimised IR of a program is right, and what the structurizer makes of it depends on poison."""
    ir = device_ir(seed, arch, folder)
    before = run_on_the_host(compiled_for_the_host(for_the_host(ir, None), folder, f"before_{arch}"), seed)
    if not np.array_equal(before, expected):
        return False
    after = structurised(ir, arch)
    results = [
        run_on_the_host(compiled_for_the_host(for_the_host(after, n), folder, f"after_{arch}_{n}"), seed)
        for n in (0, LARGE)
    ]
    return not np.array_equal(*results)
