"""Edits leave everything else as written: comments, line breaks, trailing commas."""

import libcst as cst
import pytest

from sandbox.kernel import Kernel, Language
from skills.edit import add_argument, add_element, append_param, apply_edits, drop_argument, replace, set_keyword
from skills.triton_source import Config, TritonSource, parse_triton


def call_of(source: TritonSource) -> cst.Call:
    return next(n for n in source.nodes if isinstance(n, cst.Call))


def edited(text: str, make) -> str:
    kernel = Kernel(text, "a.py", Language.TRITON)
    source = parse_triton(kernel)
    result = apply_edits(kernel, source, [make(source, call_of(source))])
    assert result is not None
    return result.source


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a, x=1, b=2)\n", "f(a, b=2)\n"),
        ("f(a, b=2, x=1)\n", "f(a, b=2)\n"),
        ("f(x=1)\n", "f()\n"),
        ("f(x=1, b=2)\n", "f(b=2)\n"),
        ("f(a,\n  x=1)\n", "f(a)\n"),
        ("f(a, x=1,\n  b=2)\n", "f(a,\n  b=2)\n"),
        ("f(\n    a,\n    x=1,  # gone with it\n    b=2,\n)\n", "f(\n    a,\n    b=2,\n)\n"),
        ("f(a, x=(1), b=2)  # kept\n", "f(a, b=2)  # kept\n"),
    ],
)
def test_dropping_an_argument(before: str, after: str) -> None:
    def drop(source: TritonSource, call: cst.Call):
        return drop_argument(source, call, next(a for a in call.args if a.keyword and a.keyword.value == "x"))

    assert edited(before, drop) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f()\n", "f(x=3)\n"),
        ("f(a)\n", "f(a, x=3)\n"),
        ("f(a, **kw)\n", "f(a, x=3, **kw)\n"),
        ("f(\n    a,\n    b,\n)\n", "f(\n    a,\n    b, x=3,\n)\n"),
    ],
)
def test_adding_an_argument(before: str, after: str) -> None:
    assert edited(before, lambda s, c: add_argument(s, c, "x=3")) == after


def test_setting_a_keyword_replaces_its_value() -> None:
    assert edited("f(a, x=1 + 1)  # c\n", lambda s, c: set_keyword(s, c, "x", "3")) == "f(a, x=3)  # c\n"


def test_adding_an_element_follows_the_layout() -> None:
    def add(source: TritonSource, call: cst.Call):
        return add_element(source, next(n for n in source.nodes if isinstance(n, cst.List)), "new")

    assert edited("f([\n    a,\n    b,  # last\n])\n", add) == "f([\n    a,\n    b,\n    new,  # last\n])\n"
    assert edited("f([a])\n", add) == "f([a, new])\n"


def test_overlapping_or_breaking_edits_are_not_made() -> None:
    kernel = Kernel("f(a)\n", "a.py", Language.TRITON)
    source = parse_triton(kernel)
    assert apply_edits(kernel, source, []) is None
    assert apply_edits(kernel, source, [set_keyword(source, call_of(source), "x", "(")]) is None


SOURCE = """
import triton
from triton import language as T
from triton.language.extra.cuda import libdevice as ld

exp = T.exp
CONFIGS = [triton.Config({"B": 64}, num_warps=4), triton.Config(dict(B=128), 2, 8)]


@triton.autotune(configs=CONFIGS, key=["n"])
@triton.heuristics({"E": lambda a: True})
@triton.jit
def k(x, n, B: T.constexpr, E: "T.constexpr" = False):
    T.store(x, ld.tanh(exp(T.load(x))))


def run(x):
    chosen = k
    chosen[(1,)](x, 3)
"""


def test_what_a_file_holds() -> None:
    source = TritonSource(SOURCE)
    function = source.functions["k"]
    assert function.constexprs == ("B", "E")
    assert function.autotune is not None and function.heuristics is not None
    assert [launch.kernel for launch in source.launches] == ["k"]
    configs: tuple[Config, ...] = source.configs_of(function)
    assert [source.code(c.constants["B"]) for c in configs] == ["64", "128"]
    assert source.code(configs[1].options["num_stages"]) == "8"
    names = {name for _, name in source.calls(function.node.body)}
    assert {"triton.language.exp", "triton.language.extra.cuda.libdevice.tanh"} <= names


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        ("def max(x):\n    return f(x)\n", "max(1, n // (2))", "sorted((1, n // (2)))[-1]"),
        ("def g(x, min, max):\n    f(x)\n", "max(1, min(n, tl.max(m)))", "sorted((1, sorted((n, tl.max(m)))[0]))[-1]"),
        ("def g(x):\n    max = 3\n    f(x)\n", "max(1, n)", "sorted((1, n))[-1]"),
        ("from torch import min\nf(x)\n", "min(1, n)", "sorted((1, n))[0]"),
        ("def g(x, max):\n    pass\nf(x)\n", "max(1, n)", "max(1, n)"),
        ("@triton.jit\ndef g(x, max):\n    f(x)\n", "max(1, n)", "max(1, n)"),
        ("def max(x):\n    return f(max(x, 2))\n", "max(1, n)", None),
        ("def max(x, sorted):\n    return f(x)\n", "max(1, n)", None),
    ],
)
def test_max_and_min_mean_the_builtins(before: str, text: str, after: str | None) -> None:
    before = f"import triton\nimport triton.language as tl\n{before}"
    kernel = Kernel(before, "a.py", Language.TRITON)
    source = parse_triton(kernel)
    call = next(n for n in source.nodes if isinstance(n, cst.Call) and source.code(n.func) == "f")
    result = apply_edits(kernel, source, [replace(source, call.args[0].value, text)])
    assert (None if result is None else result.source) == (after and before.replace(source.code(call), f"f({after})"))


def test_a_kernel_that_shares_its_launch_keeps_its_parameters() -> None:
    text = """import triton
import triton.language as tl

@triton.jit
def one(x, n):
    tl.store(x, n)

@triton.jit
def two(x, n):
    tl.store(x, n + 1)

def run(x, twice):
    kernel = KERNEL
    kernel[(1,)](x, 3)
"""
    for chosen, shared in (("two if twice else one", True), ("one", False)):
        kernel = Kernel(text.replace("KERNEL", chosen), "a.py", Language.TRITON)
        source = parse_triton(kernel)
        (launch,) = source.launches
        more = [append_param(source, source.functions["one"], "m"), add_argument(source, launch.call, "m=2")]
        assert (apply_edits(kernel, source, more) is None) == shared
        assert apply_edits(kernel, source, [add_argument(source, launch.call, "num_warps=2")]) is not None
