"""The condition language, and facts: worst values, missing ones with a reason."""

from types import SimpleNamespace

import pytest

from sandbox.target import load_target
from skills.condition import ConditionError, Truth, parse_condition
from skills.facts import VOCABULARY, build_facts, launch_facts, profile_facts

GFX942 = load_target("gfx942")


def check(line: str, **known):
    facts = build_facts(
        {"k": [{n.replace("__", "."): v for n, v in known.items()}]}, GFX942, missing={"lds_bytes": "no"}
    )
    return parse_condition(line, VOCABULARY).check(facts, facts.reason)


@pytest.mark.parametrize(
    ("line", "truth"),
    [
        ("vgpr_spill_count > 0", Truth.TRUE),
        ("vgpr_spill_count == 0", Truth.FALSE),
        ("target.arch in [gfx942, gfx950]", Truth.TRUE),
        ("target.arch not-in [gfx942]", Truth.FALSE),
        ("launch.arg_dtypes contains float32", Truth.TRUE),
        ("source.has_dot == true", Truth.FALSE),
        ("vgpr_count > target.wavefront_size", Truth.TRUE),
        ("lds_bytes > 0", Truth.UNKNOWN),
        ("lds_bytes > 0 if known", Truth.TRUE),
        ("target.arch > 3", Truth.UNKNOWN),
    ],
)
def test_conditions(line: str, truth: Truth) -> None:
    known = {"vgpr_spill_count": 7, "vgpr_count": 128, "launch__arg_dtypes": ("float32",), "source__has_dot": False}
    assert check(line, **known).truth is truth


def test_an_unknown_fact_is_named_with_its_reason() -> None:
    assert check("lds_bytes > 0").explanation == "lds_bytes is not known: no"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("vgpr_spills > 0", "not a known fact"),
        ("vgpr_count > 0 and lds_bytes > 0", "more than one operator"),
        ("vgpr_count", "not `FACT OPERATOR VALUE`"),
        ("vgpr_count ~ 3", "not an operator"),
        ("target.arch in gfx942", "needs a list"),
        ("target.arch == [gfx942]", "one value"),
        ("vgpr_count > many", "needs a number"),
        ("vgpr_count > __import__('os')", "needs a number"),
        ("vgpr_count > {a: 1}", "must be a number"),
    ],
)
def test_lines_outside_the_grammar_are_refused(line: str, problem: str) -> None:
    with pytest.raises(ConditionError, match=problem.replace("`", ".")):
        parse_condition(line, VOCABULARY)


def test_facts_of_a_file_are_the_worst_of_its_launches() -> None:
    one = {"vgpr_spill_count": 0, "occupancy_waves_per_simd": 4, "compile.status": "ok", "bottlenecks": ("atomics",)}
    two = {"vgpr_spill_count": 9, "occupancy_waves_per_simd": 1, "compile.status": "failed", "bottlenecks": ("fences",)}
    facts = build_facts({"a": [one], "b": [two]}, GFX942)
    assert (facts["vgpr_spill_count"], facts["occupancy_waves_per_simd"], facts["compile.status"]) == (9, 1, "failed")
    assert facts["bottlenecks"] == ("atomics", "fences")
    assert facts.for_kernel("a")["vgpr_spill_count"] == 0
    assert facts.for_kernel("a")["target.xcds"] == 8
    with pytest.raises(KeyError):
        facts["no.such.fact"]


def test_launch_facts_count_threads_as_hip_does() -> None:
    x = SimpleNamespace(name="x", kind="tensor", dtype="float16", storage_bytes=64, integer=None, whole_elements=32)
    n = SimpleNamespace(name="n", kind="scalar", dtype=None, storage_bytes=None, integer=32, whole_elements=None)
    facts = launch_facts([x, n], (17_187_500, 1, 1), {"num_warps": 4}, GFX942)
    assert facts["launch.grid_threads"] == 17_187_500 * 256
    assert facts["launch.arg_dtypes"] == ("float16",)
    assert facts["launch.max_tensor_bytes"] == 64
    assert facts["launch.integers"] == ("n=32",)
    assert facts["launch.pointer_elements"] == ("x=32",)


def test_metrics_outside_the_vocabulary_and_unknown_values_are_left_out() -> None:
    metrics = [SimpleNamespace(name=n, value=v) for n, v in (("vgpr_count", 3), ("sgpr_count", None), ("other", 1))]
    assert profile_facts(metrics) == {"vgpr_count": 3}
