"""What the interpreter sees of a free rewrite."""

from __future__ import annotations

import pytest

from agent.visibility import interpreter_sees

BEFORE = """\
WARPS = 4
STAGES = 2
EXTRA = {"num_stages": STAGES}


def pick(n):
    return n // 8


@triton.jit
def k(x, BLOCK: tl.constexpr):
    tl.store(x, tl.load(x) * 2)


def run(x):
    w = WARPS + pick(2)
    k[(1,)](x, BLOCK=32, num_warps=w)
"""


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("* 2)", "+ tl.load(x))", True),
        ("BLOCK=32", "BLOCK=16", True),
        ("STAGES = 2", "STAGES = 3", False),
        ('"num_stages": STAGES', '"num_stages": 1', False),
        ("return n // 8", "return n // 16", False),
        ("WARPS = 4", "WARPS = 8", False),
        ("num_warps=w", "num_warps=8", False),
        ("num_warps=w", "num_warps=w, waves_per_eu=2", False),
        ("tl.load(x)", "tl.load(x, cache_modifier='.cg')", False),
        ("* 2)", "* 2)  # a comment", True),
        ("(1,)", "(2,)", True),
        ("k[(1,)]", "other[(1,)]", False),
        ("tl.load(x)", "tl.multiple_of(tl.load(x), 8)", False),
        ("def run(x):\n", "def run(x):\n    x = x.clone()\n", True),
        ("def run(x):", "def run(x:", False),
    ],
)
def test_options_and_what_reaches_them_are_not_seen(old: str, new: str, seen: bool) -> None:
    assert BEFORE.count(old) == 1
    assert interpreter_sees(BEFORE, BEFORE.replace(old, new)) is seen
