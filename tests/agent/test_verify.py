"""A patch that is verified gets the kind of answer that the search gave of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.companions import load_candidate, load_with_companions
from agent.events import Progress
from agent.job import JobRequest, Options
from agent.orchestrator import optimize
from agent.verify import verify
from sandbox.target import load_target

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


def test_a_file_of_a_package_is_judged_as_its_package_uses_it(tmp_path: Path) -> None:
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
