"""Source lines of findings: the DWARF reader against llvm-dwarfdump, and a finding that names its line."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from sandbox.emulator import Memory, emulate, load_code_object
from sandbox.emulator.lines import LineTable

DWARFDUMP = next(
    (p for n in ("llvm-dwarfdump-22", "llvm-dwarfdump-21", "llvm-dwarfdump") if (p := shutil.which(n))), None
)


@pytest.mark.skipif(DWARFDUMP is None, reason="needs llvm-dwarfdump")
@pytest.mark.parametrize("name", ["add_float32", "matmul_fp16", "online_softmax"])
def test_lines_are_those_llvm_reads(name: str, corpus_code: dict[str, dict[str, bytes]], tmp_path: Path) -> None:
    path = tmp_path / "code.hsaco"
    path.write_bytes(corpus_code["gfx950"][name])
    assert DWARFDUMP is not None
    out = subprocess.run([DWARFDUMP, "--debug-line", str(path)], capture_output=True, text=True, check=True).stdout
    rows = re.findall(r"^0x([0-9a-f]{16})\s+(\d+)\s+\d+\s+\d+.*?(end_sequence)?$", out, re.M)
    last = {int(address, 16): (line, end) for address, line, end in rows}
    table = LineTable(load_code_object(path.read_bytes()).elf.debug)
    compared = 0
    for address, (line, end) in last.items():
        if line != "0" and not end:
            assert (table.find(address) or "").endswith(f".py:{line}")
            compared += 1
    assert compared > 10


def test_a_finding_names_its_source_line(corpus_code: dict[str, dict[str, bytes]]) -> None:
    code = load_code_object(corpus_code["gfx942"]["add_float32"])
    memory, n = Memory(), 256
    x, y = (memory.allocate(name, np.ones(n, np.float32)) for name in "xy")
    out = memory.allocate("out", np.zeros(n - 1, np.float32))
    for core in ("fast", "reference"):
        result = emulate(code, "add_kernel", (1,), (256,), [x, y, out, n], memory, core=core)  # type: ignore[arg-type]
        assert result.status == "trapped" and result.trap is not None
        assert re.search(r"triton_elementwise\.py:\d+$", result.trap.source or "")
        assert "past its end" in str(result.trap)
        assert result.reason == str(result.trap)


def test_damaged_tables_give_no_lines(corpus_code: dict[str, dict[str, bytes]]) -> None:
    sections = load_code_object(corpus_code["gfx942"]["add_float32"]).elf.debug
    good, draw = sections[".debug_line"], random.Random(3)
    assert LineTable({}).find(0x1700) is None
    for _ in range(300):
        data = bytearray(good[: draw.randrange(len(good))] if draw.random() < 0.3 else good)
        for _ in range(draw.randrange(1, 9)):
            if data:
                data[draw.randrange(len(data))] = draw.randrange(256)
        LineTable({**sections, ".debug_line": bytes(data)}).find(0x1720)
