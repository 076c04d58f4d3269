"""The static scan: every cheat it must see it names, nothing honest is rejected, and it is relative to the baseline."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import yaml

import skills
from sandbox.cheats import Severity, find_blind_edits, scan
from sandbox.gate import CHECKS
from sandbox.kernel import Kernel, Language, load_kernel, parse_kernel

HERE = Path(__file__).parent
CORPUS = yaml.safe_load((HERE / "corpus.yaml").read_text())

BASE = """
import torch
import triton
import triton.language as tl


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    y = tl.load(y_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x + y, mask=offsets < n)


def add(x, y):
    out = torch.empty_like(x)
    n = out.numel()
    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)
    return out


def plain(x, y):
    return torch.add(x, y)


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.rand(1000, device="cuda")
    torch.testing.assert_close(add(x, x), plain(x, x))
"""


LAUNCH = "    add_kernel[(triton.cdiv(n, 1024),)](x, y, out, n, BLOCK=1024)\n"
HEURISTIC = """
@triton.heuristics({"B": lambda a: a["x_ptr"].sum()})
@triton.jit
def k(x_ptr, B):
    pass
"""
GUARDED_IMPORT = """
try:
    from triton.language.extra import libdevice
except ImportError:
    try:
        from triton.language.math import exp
    except ImportError:
        exp = None
"""
AUTOTUNED = """
@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (4, 8)], key=["n"])
@triton.jit
"""
HELPER = """
def blocks(n):
    return triton.cdiv(n, 1024)


def add(x, y):
"""


def kernel(source: str) -> Kernel:
    return parse_kernel(source.encode(), "add.py")


def rejections(candidate: str, base: str = BASE) -> set[str]:
    return {f.check for f in scan(kernel(base), kernel(candidate)) if f.severity is Severity.REJECT}


def with_body(*lines: str, top: str = "") -> str:
    """The base with `lines` before the launch, and `top` after the imports."""
    body = textwrap.indent("\n".join(lines), "    ")
    return BASE.replace("    n = out.numel()\n", f"    n = out.numel()\n{body}\n").replace(
        "import triton.language as tl\n", f"import triton.language as tl\n{top}\n"
    )


def in_kernel(*lines: str) -> str:
    return BASE.replace("    x = tl.load", textwrap.indent("\n".join(lines), "    ") + "\n    x = tl.load")


@pytest.mark.parametrize("entry", [e for e in CORPUS if "check" in e], ids=lambda e: Path(e["file"]).stem)
def test_corpus_names_known_checks(entry):
    assert entry["check"] in CHECKS
    found = {
        f.check for f in scan(_baseline(entry), load_kernel(HERE / entry["file"])) if f.severity is Severity.REJECT
    }
    assert not found or found & {entry["check"], *entry.get("also", [])}


@pytest.mark.parametrize("entry", [e for e in CORPUS if "check" not in e], ids=lambda e: Path(e["file"]).stem)
def test_honest_candidates_are_not_rejected(entry):
    found = [f for f in scan(_baseline(entry), load_kernel(HERE / entry["file"])) if f.severity is Severity.REJECT]
    assert found == []


def _baseline(entry) -> Kernel:
    return load_kernel(HERE / "baselines" / f"{entry['baseline']}.py")


@pytest.mark.parametrize(
    "path", sorted(Path(skills.__file__).parent.glob("library/*/cases/*/before.py")), ids=lambda p: p.parent.name
)
def test_what_the_skills_write_is_honest(path):
    after = path.with_name("after.py")
    if not after.exists():
        pytest.skip("a case without a change")
    before, changed = (Kernel(p.read_text(), "k.py", Language.TRITON) for p in (path, after))
    assert [str(f) for f in scan(before, changed) if f.severity is Severity.REJECT] == []


@pytest.mark.parametrize(
    ("check", "source"),
    [
        ("library-call", with_body("out = torch.add(x, y)")),
        ("library-call", with_body("x.copy_(out)")),
        ("library-call", with_body("z = x + y")),
        ("library-call", with_body("z = x @ y")),
        ("library-call", with_body("z = plain(x, y)")),
        ("library-call", with_body("z = torch.nn.ReLU()(x)")),
        ("library-call", with_body("z = torch.ops.aten.add(x, y)")),
        ("library-call", with_body("z = torch._C._nn.gelu(x)")),
        ("library-call", with_body("z = f(x)", top="f = torch.nn.functional.gelu")),
        ("library-call", with_body("z = np.add(x, y)", top="import numpy as np")),
        ("library-call", with_body("z = operator.add(x, y)", top="import operator")),
        ("library-call", with_body(top=HEURISTIC)),
        ("hidden-state", with_body("CACHE.append(out)", top="CACHE = []")),
        ("hidden-state", with_body("CACHE[0] += 1", top="CACHE = [0]")),
        ("hidden-state", with_body("add.calls = 1")),
        ("hidden-state", with_body("n = next(COUNT)", top="import itertools\nCOUNT = itertools.count()")),
        ("hidden-state", with_body("S.n += 1", top="class S:\n    n = 0\n")),
        ("identity-cache", with_body("key = hash(x)")),
        ("identity-cache", with_body("v = x._version")),
        ("introspection", with_body("f = torch.__dict__")),
        ("introspection", with_body("g = globals()")),
        ("introspection", with_body("t = type(x).__mro__")),
        ("introspection", with_body("import sys")),
        ("dynamic-code", with_body("m = __import__('torch')")),
        ("dynamic-code", with_body("f = eval('x')")),
        ("dynamic-code", with_body(top="from torch import *")),
        ("dynamic-code", with_body(f"code = {'A' * 200!r}")),
        ("dynamic-code", with_body("tоrch = 1")),
        ("system-access", with_body("import os")),
        ("system-access", with_body("open('/proc/self/maps')")),
        ("system-access", with_body(top="from ctypes import CDLL")),
        ("system-access", with_body("w = torch.load('x')")),
        ("monkeypatch", with_body("torch.empty_like = None")),
        ("monkeypatch", with_body("tl = None", "tl = 3")),
        ("monkeypatch", with_body("x.data = y")),
        ("monkeypatch", with_body("del torch.cuda")),
        ("environment-branch", with_body("d = x.device.type")),
        ("environment-branch", with_body("ok = torch.cuda.is_available()")),
        ("environment-branch", with_body("k = triton.knobs")),
        ("environment-branch", in_kernel("if isinstance(n, int):", "    n = 1")),
        ("environment-branch", in_kernel("t = tl.extra.cuda.globaltimer()")),
        ("input-probe", with_body("v = x.max().item()")),
        ("input-probe", with_body("if (x == 0).all():", "    return out")),
        ("input-probe", with_body("if x[0] > 0:", "    return out")),
        ("input-probe", with_body("v = float(x[0])")),
        ("rng", with_body("torch.manual_seed(1)")),
        ("rng", with_body("z = torch.rand_like(x)")),
        ("timing", with_body("torch.cuda.synchronize()")),
        ("timing", with_body(top="from time import perf_counter")),
        ("concurrency", with_body("s = torch.cuda.current_stream()")),
        ("concurrency", with_body(top="import asyncio")),
        ("graph-capture", with_body("f = torch.jit.script(plain)")),
        ("exit-hook", with_body("raise SystemExit(0)")),
        ("exit-hook", with_body(top="class A:\n    def __del__(self):\n        pass\n")),
        ("tensor-subclass", with_body(top="class T(torch.Tensor):\n    pass\n")),
        ("fake-launch", with_body(top="class K:\n    def __getitem__(self, g):\n        return print\n")),
        ("exception-fallback", with_body("try:", "    n = 1", "except Exception:", "    pass")),
        ("exception-fallback", with_body(top="import contextlib\nS = contextlib.suppress(Exception)")),
        ("foreign-import", with_body(top="import mykernels")),
        ("runtime-install", with_body("c = 'pip install torch'")),
        ("harness-edit", BASE.replace("torch.add(x, y)", "add(x, y)")),
        ("harness-edit", BASE.replace("torch.testing.assert_close(add(x, x), plain(x, x))", "add(x, x)")),
        ("harness-edit", BASE.replace("torch.rand(1000, ", "torch.rand(8, ")),
        ("kernel-not-launched", BASE.replace(LAUNCH, "")),
        ("lower-precision", with_body("torch.set_float32_matmul_precision('medium')")),
        ("stale-memory", with_body("out.set_(x)")),
    ],
)  # fmt: skip
def test_kinds(check, source):
    assert check in rejections(source)


@pytest.mark.parametrize(
    "source",
    [
        BASE.replace("1024", "2048"),
        with_body("x = x.contiguous()", "y = y.to(x.dtype)"),
        with_body("if not x.is_contiguous():", "    x = x.contiguous()"),
        with_body("assert x.shape == y.shape"),
        with_body("part = torch.zeros(4, n, device=x.device, dtype=torch.float32)", "out = part.sum(0)"),
        with_body("BLOCK = 1024 if n > 4096 else 512", "warps = min(8, max(1, BLOCK // 256))"),
        with_body("sms = torch.cuda.get_device_properties(x.device).multi_processor_count"),
        with_body("warps = 8 if torch.version.hip else 4"),
        with_body("grid = lambda META: (triton.cdiv(n, META['BLOCK']),)"),
        with_body(top="from triton.language.extra import libdevice"),
        with_body(top="import math\nSCALE: tl.constexpr = tl.constexpr(math.log2(math.e))"),
        with_body(top=GUARDED_IMPORT),
        BASE.replace("@triton.jit\n", AUTOTUNED),
        BASE.replace("def add(x, y):", HELPER).replace("(triton.cdiv(n, 1024),)", "(blocks(n),)"),
        with_body("configs = []", "configs.append(n)", "table = {}", "table['n'] = n"),
    ],
)  # fmt: skip
def test_honest_edits_pass(source):
    assert rejections(source) == set()


def test_what_the_baseline_does_too_is_not_the_candidates_doing():
    base = with_body("s = torch.cuda.current_stream()", "CACHE.append(n)", top="import os\nCACHE = []")
    assert rejections(base.replace("1024", "512"), base) == set()
    twice = base.replace("    s = torch", "    CACHE.append(n)\n    s = torch")
    assert rejections(twice, base) == {"hidden-state"}


def test_findings_name_file_and_line():
    found = scan(kernel(BASE), kernel(with_body("import os")))[0]
    assert (found.filename, found.line, found.check) == ("add.py", 19, "system-access")
    assert "os" in found.message


def test_companions_are_scanned_too():
    clean, dirty = (Kernel(BASE, "add.py", Language.TRITON, {"helper.py": t}) for t in ("A = 1\n", "import ctypes\n"))
    assert {f.check for f in scan(clean, dirty)} == {"system-access"}


@pytest.mark.parametrize(
    ("source", "only", "semantic"),
    [
        (BASE.replace("BLOCK=1024)", "BLOCK=1024, num_warps=8, waves_per_eu=2)"), True, False),
        (BASE.replace("mask=offsets < n)\n    y", "mask=offsets < n, cache_modifier='.cg')\n    y"), True, False),
        (BASE.replace("tl.arange(0, BLOCK)", "tl.multiple_of(tl.arange(0, BLOCK), 8)"), False, False),
        (in_kernel("tl.debug_barrier()"), True, True),
        (with_body("warps = 8").replace("BLOCK=1024)", "BLOCK=1024, num_warps=warps)"), True, False),
        (BASE.replace("1024", "512"), False, False),
        (BASE.replace("x + y", "y + x").replace("BLOCK=1024)", "BLOCK=1024, num_stages=1)"), False, False),
    ],
)
def test_edits_the_interpreter_cannot_see(source, only, semantic):
    blind = find_blind_edits(kernel(BASE), kernel(source))
    assert (blind.only, bool(blind.semantic)) == (only, semantic)
