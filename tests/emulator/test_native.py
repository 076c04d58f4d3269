"""Where the fast core cannot be had, the reference core runs instead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.emulator import fast, native
from sandbox.emulator.opcodes import mnemonics
from sandbox.emulator.records import operations

PROGRAM = "from sandbox.emulator import fast; print(fast.available())"


@pytest.mark.parametrize(
    "change",
    [{"PATH": "", "CC": ""}, {"WAVESMITH_EMULATOR_CORE": "numpy"}, {"CC": "false", "PATH": "/nowhere"}],
    ids=["no compiler", "turned off", "broken compiler"],
)
def test_no_fast_core(change: dict[str, str], tmp_path: Path) -> None:
    environment = {**os.environ, "WAVESMITH_CACHE_DIR": str(tmp_path), **change}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
    assert not list(tmp_path.rglob("*.so*"))


@pytest.mark.skipif(not fast.available(), reason="no C compiler")
def test_every_operation_of_the_core_is_an_instruction() -> None:
    core = native.library()
    assert core is not None
    known = operations(core).numbers
    real = mnemonics("gfx942") | mnemonics("gfx950")
    scaled = {name for name in known if name.startswith("v_mfma_scale_")}
    unreal = set(known) - real - scaled
    assert not unreal, sorted(unreal)[:20]
    assert len(known) > 900
