"""A patch that is verified gets the kind of answer that the search gave of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent.baseline import take_baseline
from agent.companions import load_candidate, load_program, load_with_companions
from agent.events import Progress
from agent.job import JobRequest, Options
from agent.orchestrator import optimize
from agent.verify import verify
from sandbox.benchmark import TimingPlan
from sandbox.capture import capture
from sandbox.errors import InputError
from sandbox.target import load_target
from sandbox.timed import CallTimer, RecordedCall

ROWS = """
import torch
import triton
import triton.language as tl


@triton.jit
def norm(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0)
    y = x / tl.sqrt(tl.sum(x * x, axis=0) / n + 1e-6)
    tl.store(y_ptr + row * n + at, y, mask=at < n)


def run(x):
    y = torch.empty_like(x)
    norm[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


if __name__ == "__main__":
    torch.manual_seed(0)
    run(torch.randn(24, 60, device="cuda"))
"""
ADDED = """
import torch
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, at_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    to = tl.load(at_ptr + at, mask=at < n, other=0)
    tl.atomic_add(out_ptr + to, tl.load(x_ptr + at, mask=at < n), mask=at < n)


def run(x, at):
    out = torch.zeros(40, device=x.device, dtype=x.dtype)
    add[(triton.cdiv(x.numel(), 64),)](x, at, out, x.numel(), BLOCK=64, num_warps=1)
    return out


if __name__ == "__main__":
    torch.manual_seed(0)
    run(torch.randn(200, device="cuda"), torch.randint(0, 40, (200,), device="cuda"))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "level", "said"),
    [(ROWS, "counted", "executed instructions"), (ADDED, "static", "cache maintenance 2 -> 0")],
    ids=["counted", "static"],
)
def test_what_the_search_found_is_found_again(tmp_path: Path, source: str, level: str, said: str) -> None:
    file = tmp_path / "f.py"
    file.write_text(source)
    target, options = load_target("gfx950"), Options(executor="interpreter", seed=3)
    request = JobRequest(load_with_companions(file), target, "f.py", file.read_bytes(), options=options)
    report = optimize(request, tmp_path / "out", Progress())
    assert (report.outcome, report.speed.level) == ("improved", level), report.summary
    assert report.artifacts.patched_file is not None
    patched = load_candidate(tmp_path / "out" / report.artifacts.patched_file, request.kernel)
    found = verify(request, patched, Progress())
    assert (found.outcome, found.exit_code) == ("improved", 0) and said in found.message, found.message
    assert said in report.summary.lower() and found.speed.level in (level, "counted")


def test_a_file_of_a_package_is_judged_and_timed_as_its_package_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Relative imports, a package that imports the file itself, a sibling named like a module of Python's."""
    body = ROWS[: ROWS.index("def run(")].replace(
        "import triton.language as tl", "import triton.language as tl\n\nfrom .types import EPS"
    )
    body = body.replace("1e-6", "EPS").replace("\n\n\n@triton.jit", "\n\nEPS = tl.constexpr(EPS)\n\n\n@triton.jit")
    launch = ROWS[ROWS.index("def run(") : ROWS.index("if __name__")]
    files = {
        "__init__.py": "from .ops import run\n",
        "types.py": "EPS = 1e-6\n",
        "ops.py": f"import torch\nimport triton\n\nfrom .kernels import norm\n\n\n{launch}",
        "kernels.py": body,
    }
    (tmp_path / "lib").mkdir()
    for name, text in files.items():
        (tmp_path / "lib" / name).write_text(text)
    harness = tmp_path / "bench.py"
    harness.write_text("import torch\nimport lib\n\nlib.run(torch.randn(24, 60, device='cuda'))\n")
    file, candidate = tmp_path / "lib" / "kernels.py", tmp_path / "kernels.py"
    kernel = load_with_companions(file)
    request = JobRequest(
        kernel, load_target("gfx950"), kernel.filename, file.read_bytes(), harness=load_with_companions(harness),
        options=Options(executor="interpreter", seed=3),
    )  # fmt: skip
    for edited, wanted in (
        (body.replace("x / tl", "2 * x / tl"), "Incorrect"),
        (body.replace("at, y,", "at, y + 0.0,"), "NoGain"),
    ):
        assert edited != body
        candidate.write_text(edited)
        assert verify(request, load_candidate(candidate, kernel), Progress()).verdict == wanted
    recorded = capture(kernel, load_target("gfx950"), harness=request.harness, executor="interpreter").stored
    monkeypatch.setenv("TRITON_INTERPRET", "1")  # stands for a device
    plan = TimingPlan(rounds=12, device="cpu", warmup_calls=1, warmup_s=0.0, flush_bytes=1 << 20)
    for edited, wrong in (
        (body.replace("x / tl", "2 * x / tl"), True),
        (body.replace("at, y,", "at, y + 0.0,"), False),
    ):
        timer = CallTimer(recorded, [RecordedCall(0)], plan)
        candidate.write_text(edited)
        calls = timer.time(kernel, load_candidate(candidate, kernel))
        timer.close()
        assert bool(calls[0].timing.wrong_results) == wrong


def test_the_harness_may_import_the_file_by_a_folder_set_the_environment_and_launch_other_kernels(
    tmp_path: Path,
) -> None:
    """What it launches of other files is left out, and said; what it set before the import is set for candidates."""
    (tmp_path / "kernels").mkdir()
    own = ROWS[: ROWS.index("if __name__")]
    asked = own.replace("import torch\n", "import os\nimport torch\n", 1)
    file, candidate, harness = tmp_path / "kernels" / "rows.py", tmp_path / "rows.py", tmp_path / "bench.py"
    file.write_text(asked.replace("\n\n\n@triton", "\n\nEPS = tl.constexpr(float(os.environ['LIB_EPS']))\n\n\n@triton"))
    (tmp_path / "kernels" / "other.py").write_text(own.replace("norm", "other_norm"))
    harness.write_text(
        "import os\nimport torch\nos.environ['LIB_EPS'] = '1e-6'\nfrom kernels.rows import run\n"
        "from kernels import other\n\nother.run(run(torch.randn(24, 60, device='cuda')))\n"
    )
    kernel, runner = load_program(file, harness, None)
    assert kernel.filename == "kernels/rows.py"
    request = JobRequest(
        kernel, load_target("gfx950"), "kernels/rows.py", file.read_bytes(), harness=runner,
        options=Options(executor="interpreter", seed=3),
    )  # fmt: skip
    taken = capture(kernel, request.target, harness=runner, executor="interpreter")
    assert [launch.kernel for launch in taken.launches] == ["norm"]
    (left_out,) = taken.left_out
    assert "1 launch of other_norm in kernels/other.py" in left_out and left_out in taken.notes
    assert dict(taken.workload.environment) == {"LIB_EPS": "1e-6"}
    text = file.read_text()
    for edited, wanted in (
        (text.replace("x / tl", "2 * x / tl"), "Incorrect"),
        (text.replace("at, y,", "at, y + 0.0,"), "NoGain"),
    ):
        assert edited != text
        candidate.write_text(edited)
        judged = verify(request, load_candidate(candidate, kernel), Progress())
        assert judged.verdict == wanted, judged.message
    harness.write_text("import torch\nfrom kernels import other, rows\n\nother.run(torch.ones(4, 60, device='cuda'))\n")
    (tmp_path / "kernels" / "rows.py").write_text(own)
    kernel, runner = load_program(file, harness, None)
    with pytest.raises(InputError, match="kernels of other files only, and none through kernels/rows.py") as e:
        verify(replace(request, kernel=kernel, harness=runner), kernel, Progress())
    assert e.value.file == "bench.py"


HELPER = """
import triton
import triton.language as tl


@triton.jit
def mean(x, y):
    return (x + y) / 2
"""
TUNED = """
import torch
import triton
import triton.language as tl
from tuner import tuned


@triton.jit
def product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    for _ in tl.range(2):
        x, y = tl.load(a + m[:, None] * K + k[None, :]), tl.load(b + k[:, None] * N + n[None, :])
        tl.store(c + m[:, None] * N + n[None, :], tl.dot(x, y))


def run(a, b):
    c = torch.empty(a.shape[0], b.shape[1], device=a.device)
    tuned(lambda stages: product[(1,)](a, b, c, *c.shape, a.shape[1], num_stages=stages), STAGES)
    return c


if __name__ == "__main__":
    torch.manual_seed(0)
    run(*(torch.randn(128, 128, device="cuda", dtype=torch.float16) for _ in "ab"))
"""
TUNER = """
from triton.testing import do_bench


def tuned(call, choices):
    times = {choice: do_bench(lambda: call(choice)) for choice in choices}
    return call(min(choices))
"""


@pytest.mark.parametrize(("stages", "builds"), [((2, 6), True), ((6,), False)])
def test_what_a_tuner_of_the_users_own_only_times_is_passed_over(
    tmp_path: Path, stages: tuple[int, ...], builds: bool
) -> None:
    """A config that is out of resources, as Triton's own tuner does; a line is one of this file, not of the tuner's."""
    file = tmp_path / "k.py"
    file.write_text(TUNED.replace("STAGES", str(stages)))
    (tmp_path / "tuner.py").write_text(TUNER)
    request = JobRequest(load_with_companions(file), load_target("gfx942"), "k.py", file.read_bytes())
    taken = take_baseline(request, Progress())
    assert taken.measurement.builds is builds
    assert any("a tuner passes over them: LDS" in note for note in taken.notes) is builds
    lines = file.read_text().splitlines()
    assert all("product[(1,)]" in lines[launch.call_line - 1] for launch in taken.stored.workload.launches)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("import torch\n", "no Triton kernel was launched, and none is defined"),
        ("import os\nos._exit(3)\n", "it launched no kernel: the process ended with status 3"),
        (HELPER, "no Triton kernel was launched, and none is defined"),
        (f"import triton.ops\n{HELPER}", "No module named 'triton.ops'.*The installed triton has no such module"),
        (f"from .lib import x\n{HELPER}", "attempted relative import.*Give the file where it lies in its package"),
        (f"import served_models.ops\n{HELPER}", "served_models.*Install served_models"),
    ],
)
def test_a_file_of_which_nothing_was_seen_is_not_said_to_build(tmp_path: Path, source: str, said: str) -> None:
    file = tmp_path / "k.py"
    file.write_text(source)
    request = JobRequest(load_with_companions(file), load_target("gfx950"), "k.py", file.read_bytes())
    with pytest.raises(InputError) as e:
        optimize(request, tmp_path / "out", Progress())
    assert re.search(said, str(e.value)), e.value


def test_a_file_of_a_package_needs_no_harness_and_its_package_only_where_it_imports_from_it(tmp_path: Path) -> None:
    """A package that imports the file itself; and one that cannot be imported, which the file does not need."""
    (tmp_path / "lib").mkdir()
    file, candidate = tmp_path / "lib" / "rows.py", tmp_path / "rows.py"
    (tmp_path / "lib" / "eps.py").write_text("EPS = 1e-6\n")
    bound = "import triton.language as tl\nfrom .eps import EPS as E\n\nEPS = tl.constexpr(E)"
    needing = ROWS.replace("import triton.language as tl", bound).replace("1e-6", "EPS")
    for package, source in (("from .rows import run\n", needing), ("import not_installed_here\n", ROWS)):
        (tmp_path / "lib" / "__init__.py").write_text(package)
        for form, text in (("static", source[: source.index("if __name__")]), ("main", source)):
            file.write_text(text)
            kernel = load_with_companions(file)
            taken = capture(kernel, load_target("gfx950"), executor="interpreter")
            assert (taken.outcome.form, len(taken.launches)) == (form, 1), taken.outcome
        request = JobRequest(kernel, load_target("gfx950"), "lib/rows.py", file.read_bytes())
        candidate.write_text(source.replace("x / tl", "2 * x / tl"))
        assert verify(request, load_candidate(candidate, kernel), Progress()).verdict == "Incorrect"


MADE = '''
import importlib.util
import tempfile
from pathlib import Path

import torch

TEXT = """
import triton
import triton.language as tl

@triton.jit
def made(x, y, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + offs, tl.load(x + offs, mask=offs < n) * 2, mask=offs < n)
"""


def run(x):
    path = Path(tempfile.mkdtemp()) / "made_up.py"
    path.write_text(TEXT)
    spec = importlib.util.spec_from_file_location("made_up", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    y = torch.empty_like(x)
    module.made[(4,)](x, y, x.numel(), BLOCK=256)
    return y


if __name__ == "__main__":
    x = torch.randn(1000, device="cuda")
    assert torch.equal(run(x), 2 * x)
'''


def test_kernels_that_a_file_writes_elsewhere_are_said_to_lie_there(tmp_path: Path) -> None:
    file = tmp_path / "f.py"
    file.write_text(MADE)
    options = Options(executor="interpreter", seed=3)
    request = JobRequest(load_with_companions(file), load_target("gfx950"), "f.py", file.read_bytes(), options=options)
    report = optimize(request, tmp_path / "out", Progress())
    assert report.outcome == "nothing" and "f.py holds no kernel itself" in report.summary, report.summary
    assert "made, launched here, lies in made_up.py: edits are made to f.py only" in report.baseline.notes
