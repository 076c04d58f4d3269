"""`wavesmith emulate` on code objects: runs, and one sentence with exit code 2 for each bad input."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from api.cli import _run

sys.path.insert(0, str(Path(__file__).parent.parent / "emulator"))
CLANG = next((p for n in ("clang-22", "clang-21", "clang") if (p := shutil.which(n))), None)
pytestmark = pytest.mark.skipif(CLANG is None, reason="no clang with the amdgcn back end")
SOURCE = """
#define KERNEL extern "C" __attribute__((global))
KERNEL void scale(float* x, float by, int n) {
  int i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < n) x[i] *= by;
}
KERNEL void last(int* x) { x[0] = __builtin_amdgcn_workgroup_id_x() + 10 * __builtin_amdgcn_workgroup_id_z(); }
KERNEL void sum(int* x) {
  extern __attribute__((shared)) int values[];
  int i = __builtin_amdgcn_workitem_id_x();
  values[i] = i;
  __builtin_amdgcn_s_barrier();
  if (i == 0) for (int k = 0; k < 64; k++) x[0] += values[k];
}
"""


def compiled(folder: Path, arch: str, *options: str) -> Path:
    source, out = folder / "k.hip", folder / f"k_{arch}.hsaco"
    source.write_text(SOURCE)
    command = [CLANG, "-x", "hip", f"--offload-arch={arch}", "--cuda-device-only", "-nogpuinc", "-nogpulib", "-O2",
               "-c", "-Wno-everything", *(options or ("--no-gpu-bundle-output",)), source, "-o", out]  # fmt: skip
    subprocess.run([str(word) for word in command], check=True, capture_output=True, timeout=300)
    return out


def emulated(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str]:
    code = _run(["emulate", *(str(w) for w in words)])
    shown = capsys.readouterr()
    return code, shown.out + shown.err


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_a_kernel_runs_under_every_schedule(arch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [compiled(tmp_path, arch), "--target", arch, "--kernel", "scale", "--grid", "2", "--block", "64"]
    arguments = ["--arg", "f32:100:arange", "--arg", "2.5", "--arg", "100"]
    code, shown = emulated(capsys, *words, *arguments, "--schedule", "all", "--json")
    found = json.loads(shown)
    assert code == 0 and found["complete"] and not found["disagreements"]
    assert [row["schedule"] for row in found["launches"]] == ["lockstep", "sequential", "reverse", "random:0"]
    assert all(row["changed"] == {"x": 99} or list(row["changed"].values()) == [99] for row in found["launches"])
    code, shown = emulated(capsys, *words, *arguments[:-1], "101")
    assert code == 4 and "out_of_bounds_global" in shown and "byte 400 of" in shown


def test_order_and_dynamic_lds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = compiled(tmp_path, "gfx942")
    words = [file, "--target", "gfx942", "--arg", "i32:1:zeros"]
    code, shown = emulated(capsys, *words, "--kernel", "last", "--grid", "3,1,2", "--block", "1", "--schedule", "all")
    assert code == 4 and "differs between lockstep and reverse: 1 of 1 elements" in shown
    lds = ["--kernel", "sum", "--block", "64"]
    code, shown = emulated(capsys, *words, *lds, "--dynamic-lds", "256")
    assert code == 0 and "from 2016" in shown
    code, shown = emulated(capsys, *words, *lds)
    assert code == 4 and "out_of_bounds_lds" in shown


def test_every_bad_input_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = compiled(tmp_path, "gfx950")
    data = good.read_bytes()
    files = {
        "The file is empty": b"",
        "not an ELF file": b"some text\n",
        "cannot be read: it ends inside": data[: len(data) // 2],
        "is for gfx1100; the emulator runs": data[:48] + b"\x41" + data[49:],
        "not for an AMD GPU": Path(sys.executable).resolve().read_bytes(),
    }
    for message, contents in files.items():
        (tmp_path / "bad.hsaco").write_bytes(contents)
        code, shown = emulated(capsys, tmp_path / "bad.hsaco", "--target", "gfx950")
        assert code == 2 and message in shown and shown.count("\n") == 1, shown
    launches = {
        "for gfx950, not gfx942": ["--target", "gfx942"],
        "has 3 kernels": ["--target", "gfx950"],
        "has no kernel 'nope'": ["--target", "gfx950", "--kernel", "nope"],
        "takes 3 arguments, 1 were given": ["--target", "gfx950", "--kernel", "scale", "--arg", "f32:4"],
        "cannot run with 2048 threads": ["--target", "gfx950", "--kernel", "last", "--arg", "i32:1", "--block", "2048"],
        "grid (0,) is not made of": ["--target", "gfx950", "--kernel", "last", "--arg", "i32:1", "--grid", "0"],
        "is not one to three numbers": ["--target", "gfx950", "--kernel", "last", "--grid", "1,a"],
        "no element type 'q7'": ["--target", "gfx950", "--kernel", "last", "--arg", "q7:1"],
        "'what' is no argument": ["--target", "gfx950", "--kernel", "last", "--arg", "what"],
        "bytes of LDS; gfx950 has 163840": [
            "--target", "gfx950", "--kernel", "last", "--arg", "i32:1", "--dynamic-lds", "200000",
        ],
    }  # fmt: skip
    for message, words in launches.items():
        code, shown = emulated(capsys, good, *words)
        assert code == 2 and message in shown and shown.count("\n") == 1, shown


def test_bundles_and_sources(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = compiled(tmp_path, "gfx942", "--gpu-bundle-output")
    assert emulated(capsys, bundle, "--target", "gfx942")[0] == 2
    code, shown = emulated(capsys, bundle, "--target", "gfx942")
    assert "offload bundle" in shown
    code, shown = emulated(capsys, tmp_path / "k.hip", "--target", "gfx942")
    assert code == 2 and "no launch to emulate" in shown
    (tmp_path / "k.py").write_text("x = 1\n")
    code, shown = emulated(capsys, tmp_path / "k.py", "--target", "gfx942", "--grid", "2")
    assert code == 2 and "are for code objects" in shown
