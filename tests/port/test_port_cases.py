"""Every case folder: the port's text against its golden file, its outcome, and for most of them its execution."""

import json
import os
from pathlib import Path

import pytest

from agent.port.loop import port
from agent.port.request import PortRequest
from sandbox.verdict import Correctness

CASES = Path(__file__).parent / "cases"
NAMES = sorted(p.name for p in CASES.iterdir() if (p / "before.cu").exists())
REFUSED = [n for n in NAMES if n.startswith("refuse_")]
HOST_ONLY = ["thrust_policies"]
"""No kernel is the user's: the host code is run as a program."""
DRAWS = "both draw the same given random numbers, as hipRAND's are not cuRAND's"
RESTS_ON = {
    "clock_and_print": {"k": "both read the same given clock"},
    "random_draws": dict.fromkeys(("seed_states", "dropout", "noise"), DRAWS),
}
"""What the trials of a kernel take for granted, by its name; most take nothing."""
PORTED = [n for n in NAMES if n not in REFUSED and n not in HOST_ONLY]


def golden(name: str, text: str) -> str:
    path = CASES / name / "after.hip"
    if os.environ.get("WRITE_GOLDEN"):
        path.write_text(text)
    return path.read_text()


@pytest.mark.parametrize("name", PORTED)
def test_is_ported_and_right_in_emulation(name: str) -> None:
    result = port(PortRequest(CASES / name / "before.cu"))
    assert [str(d) for d in result.diagnostics] == []
    assert result.files[0].after == golden(name, result.files[0].after)
    rests_on = RESTS_ON.get(name, {})
    assert {k.kernel: (k.evidence, k.reason) for k in result.kernels} == {
        k.kernel: (Correctness.EMULATED, rests_on.get(k.kernel.split("(")[0], "")) for k in result.kernels
    }
    assert result.kernels
    assert result.outcome == "builds-now"
    targets = {t.target for k in result.kernels for t in k.trials if t.status == "equal"}
    assert targets == {"gfx942", "gfx950"}
    json.dumps(result.to_json())


@pytest.mark.parametrize("name", HOST_ONLY)
@pytest.mark.long  # a device and a host pass over Thrust's headers for each target
def test_host_code_is_right_as_a_program(name: str) -> None:
    result = port(PortRequest(CASES / name / "before.cu"))
    assert [str(d) for d in result.diagnostics] == []
    assert result.files[0].after == golden(name, result.files[0].after)
    (program,) = result.programs
    assert (program.evidence, program.reason) == (Correctness.EMULATED, "")
    assert min(program.launched[t] for t in ("gfx942", "gfx950")) > 0
    assert result.outcome == "builds-now"


REASONS = {
    "refuse_wgmma": ("register layout", ("gfx942", "gfx950")),
    "refuse_named_barrier": ("one barrier", ("gfx942", "gfx950")),
    "refuse_texture_reference": ("no image instructions", ("gfx942", "gfx950")),
    "refuse_static_lds": ("exceeds limit (65536)", ("gfx942",)),
    "refuse_dynamic_lds": ("98304 bytes of shared memory", ("gfx942",)),
    "refuse_nvjpeg": ("rocJPEG", ("gfx942", "gfx950")),
    "refuse_unknown_ptx": ("vadd4", ("gfx942", "gfx950")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_with_the_right_reason(name: str) -> None:
    result = port(PortRequest(CASES / name / "before.cu"))
    reason, targets = REASONS[name]
    assert result.outcome == "refused"
    assert result.exit_code == 4
    assert any(reason in r.reason and r.targets == targets and r.route for r in result.refusals), result.refusals
