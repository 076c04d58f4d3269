"""rocprofv3 is run pass by pass; the stand-in is an executable that takes its options and misbehaves in its ways."""

import os
import re
import stat
import time
from pathlib import Path

import pytest
import yaml

from sandbox.errors import InputError, ToolMissing
from sandbox.profiler.rocprof import run_rocprof
from sandbox.profiler.rocprof_plan import Pass, block_of, plan_passes
from sandbox.target import load_target

DATA = Path(__file__).parent.parent / "data" / "rocprof"

TOOL = """#!/usr/bin/env python3
import os, pathlib, shutil, subprocess, sys, time
args = sys.argv[1:]
options, program = args[: args.index("--")], args[args.index("--") + 1 :]
out = pathlib.Path(options[options.index("-d") + 1]) / "host" / "17"
behave = os.environ.get("BEHAVE", "")
if "-i" in options:
    job = os.path.basename(options[options.index("-i") + 1]).removesuffix(".yaml")
    if behave == f"hang {job}":
        subprocess.Popen(["sleep", "1000"])
        time.sleep(1000)
    if behave == f"abort {job}":
        print("E20 error 38: Request exceeds the capabilities of the hardware to collect", file=sys.stderr)
        os.abort()
    if behave == f"nothing {job}":
        sys.exit(0)
    n = int(job.removeprefix("pass"))
    out.mkdir(parents=True)
    shutil.copy(f"{os.environ['DATA']}/MI350/pmc_perf_{n}.csv", out / "c_counter_collection.csv")
else:
    if behave == "nothing trace":
        sys.exit(0)
    out.mkdir(parents=True)
    shutil.copy(f"{os.environ['DATA']}/kernel_trace.csv", out / "t_kernel_trace.csv")
sys.exit(subprocess.call(program))
"""
PASSES = (Pass(("SQ_WAVES",)), Pass(("SQ_INSTS_VMEM",)))


@pytest.fixture
def tool(tmp_path: Path) -> str:
    path = tmp_path / "rocprofv3"
    path.write_text(TOOL)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def run(tool: str, tmp_path: Path, behave: str, timeout_s: float = 100.0):
    env = {"PATH": os.environ["PATH"], "BEHAVE": behave, "DATA": str(DATA)}
    return run_rocprof(["true"], PASSES, tmp_path / "out", executable=tool, env=env, timeout_s=timeout_s)


def test_trace_and_passes_become_one_data_set(tool: str, tmp_path: Path) -> None:
    data = run(tool, tmp_path, "")
    assert data.notes == ()
    assert len(data.dispatches) == 9 + 3
    vcopy = [d for d in data.dispatches if d.counters]
    assert {"SQ_INSTS_VMEM", "TCC_RW_REQ_sum"} <= set(vcopy[0].counters)


@pytest.mark.parametrize(
    ("behave", "note"),
    [
        ("hang pass0", r"pass0: it did not end within 8 s and was stopped"),
        ("abort pass0", r"pass0: it ended with -6: E20 error 38: Request exceeds the capabilities"),
        ("nothing pass0", r"pass0: it ended well but wrote nothing"),
        ("nothing trace", r"trace: it ended well but wrote nothing"),
    ],
)
def test_a_misbehaving_pass_costs_only_its_own_counters(tool: str, tmp_path: Path, behave: str, note: str) -> None:
    start = time.monotonic()
    data = run(tool, tmp_path, behave, timeout_s=8.0 if "hang" in behave else 100.0)
    assert time.monotonic() - start < 200
    assert any(re.match(note, n) for n in data.notes), data.notes
    assert any("TCC_RW_REQ_sum" in d.counters for d in data.dispatches)


def test_without_rocprofv3_the_message_says_where_it_comes_from(tmp_path: Path) -> None:
    with pytest.raises(ToolMissing, match="comes with ROCm"):
        run_rocprof(["true"], PASSES, tmp_path, executable="no-such-rocprofv3")


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_plans_respect_the_limits_of_every_block(arch: str) -> None:
    target = load_target(arch)
    passes = plan_passes(target)
    for p in passes:
        used: dict[str, int] = {}
        for counter in p.counters:
            used[block_of(counter)] = used.get(block_of(counter), 0) + 1
        assert all(n <= target.counter_blocks[b] for b, n in used.items()), used
        assert "GRBM_GUI_ACTIVE" in p.counters
        assert yaml.safe_load(p.input_file("f.*"))["jobs"][0]["kernel_include_regex"] == "f.*"
    assert len(passes) <= 5
    reads = {c for p in passes for c in p.counters if "RDREQ" in c}
    assert ("TCC_EA0_RDREQ_128B_sum" in reads) == (arch == "gfx950")


def test_impossible_plans_are_refused() -> None:
    target = load_target("gfx942")
    with pytest.raises(InputError, match="do not fit one pass of gfx942"):
        plan_passes(target, [[f"TCC_X{n}" for n in range(5)]])
    with pytest.raises(InputError, match="not a hardware counter"):
        plan_passes(target, [["waves"]])
    with pytest.raises(InputError, match="no counter limits"):
        plan_passes(load_target("sm_90"))
