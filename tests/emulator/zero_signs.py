"""Whether a wrong result is LLVM's: a selection between a number and zero that becomes a minimum or maximum.

LLVM up to 22 selects `v_min_f64 x, 0` for `x < 0 ? x : 0`, whose result for -0 is +0 by the comparison and -0 by the
instruction (https://github.com/llvm/llvm-project/issues/93414, mended by pull request 210077). A `freeze` of the
comparison's result changes no meaning and keeps LLVM from seeing the pattern: if the same IR with such a `freeze` gives
the host's results, that selection was what differed.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import numpy as np
from random_programs import emulated_results, find_clang
from structurizer import device_ir

_COMPARISON = re.compile(r"^(\s*)(%\S+) = (fcmp .*)$")


def frozen(ir: str) -> str:
    """The IR with the result of each comparison of scalar floats frozen."""
    lines = []
    for line in ir.splitlines():
        match = _COMPARISON.match(line)
        if match is None or "<" in match[3]:
            lines.append(line)
            continue
        name = '%"ws.' + match[2].strip('%"') + '"'
        lines += [f"{match[1]}{name} = {match[3]}", f"{match[1]}{match[2]} = freeze i1 {name}"]
    return "\n".join(lines)


def code_of(ir: str, arch: str, folder: Path) -> bytes:
    """The code object of device IR, from instruction selection on: the IR's passes are not run again."""
    clang = find_clang()
    assert clang is not None
    file, out = folder / f"frozen_{arch}.ll", folder / f"frozen_{arch}.hsaco"
    file.write_text(ir)
    command = [clang, "-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib", "-O2", "-Xclang",
               "-disable-llvm-passes", "-ffp-contract=off", "-w", str(file), "-o", str(out)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise RuntimeError(done.stderr[:2000])
    return out.read_bytes()


def lost_by_a_minimum(seed: int, arch: str, folder: Path, expected: np.ndarray) -> bool:
    """Whether a program gives the host's results once its comparisons are frozen, and does not as it is."""
    ir = device_ir(seed, arch, folder)
    plain, kept = (emulated_results(code_of(text, arch, folder), seed) for text in (ir, frozen(ir)))
    return not np.array_equal(plain, expected) and np.array_equal(kept, expected)
