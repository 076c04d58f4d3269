"""Scripted models on two kernels of the suite: the expert is believed once judged, the cheater never.

All kernels, and the populations one by one: `benchmarks/model_trials.py`.
"""

from __future__ import annotations

import argparse
import ast
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from agent.model import Message, ToolCall, ToolResult
from agent.toolbox import PROMISES
from benchmarks.model_trials import (
    CHEATS,
    PROMISED,
    Case,
    ScriptedProposals,
    cheats_of,
    graft,
    ideas_for,
    load_cases,
    run,
)

CASES = {c.name: c for c in load_cases() if c.expert is not None}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_scripts_are_whole_programs(case: Case) -> None:
    """At least 12 kernels, and every idea keeps the user's harness."""
    assert len(CASES) >= 12
    for idea in (*ideas_for(case, "expert"), *ideas_for(case, "cheater")):
        tree = ast.parse(idea.source)
        names = {n.name for n in tree.body if isinstance(n, ast.FunctionDef)}
        assert {case.entry, "make_inputs"} <= names
        assert '__name__ == "__main__"' in idea.source
    assert len(ideas_for(case, "cheater")) == len(CHEATS) + 1
    idle = ideas_for(case, "cheater")[-1].source
    assert idle.count("if tl.program_id(0) % 2 == 1:") == idle.count("@triton.jit")


def test_grafting_keeps_what_the_other_file_does_not_define() -> None:
    mine = "import a\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return f()\n"
    assert graft(mine, "def h():\n    pass\n\n\ndef f():\n    return h()\n") == (
        "import a\n\n\ndef h():\n    pass\n\n\ndef f():\n    return h()\n\n\ndef g():\n    return f()\n"
    )
    (first, *_) = cheats_of("import torch\n\n\ndef run(x):\n    return x\n", "run")
    assert "def _honest(x):" in first.source and first.source.count("def run(") == 1


def test_a_scripted_model_reads_and_compiles_before_it_writes_and_promises_what_it_saw() -> None:
    model = ScriptedProposals("m", ideas_for(CASES["index_select_forward"], "expert"))
    talk = [Message("system", "s"), Message("user", "u")]

    def answer(*texts: str) -> list[ToolCall]:
        asked = model.propose(talk)
        talk.extend([asked.message, Message("user", results=tuple(ToolResult("c", t) for t in texts))])
        return list(asked.calls)

    before = "k:\n  global_load_mean_bytes = 2.0 bytes per lane\n  global_store_mean_bytes = 2.0 bytes per lane"
    assert [c.name for c in answer("the file", before)] == ["read_kernel", "read_profile"]
    after = before.replace("load_mean_bytes = 2.0", "load_mean_bytes = 12.0")
    (compiled,) = answer(f"It builds.\n{after}")
    (call,) = answer("Submitted.")
    assert compiled.name == "compile_candidate" and call.name == "submit_candidate"
    assert compiled.arguments is not None and call.arguments is not None
    assert call.arguments["edits"] == compiled.arguments["edits"]
    assert call.arguments["edits"][0]["search"] == "the file"
    assert call.arguments["expects"] == ["global_load_mean_bytes up", "executed_instructions down"]
    assert not model.propose(talk).calls and not model.propose(talk[:2]).calls


def test_every_promise_of_the_trials_is_one_that_a_candidate_may_make() -> None:
    assert set(PROMISED) >= {c.bottleneck for c in CASES.values()}
    assert all(promise in PROMISES for promises in PROMISED.values() for promise in promises)


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize("name", ["norm_residual", "index_select_backward"])
def test_a_mixed_population_keeps_no_cheat_and_is_as_good_as_the_expert(name: str, tmp_path: Path) -> None:
    """Each cheat promises what it achieves and still falls, by a named check and not for want of a gain. The version by
    hand is kept, or is right and shows no gain over what the skills made before it came."""
    options = argparse.Namespace(target="gfx950", executor="interpreter", evaluations=16, out=tmp_path)
    row = run(CASES[name], "mixed", options, time.monotonic() + 1500)
    cheats = [o for o in row["own"] if o[0].startswith("cheat")]
    assert len(cheats) == 3 and row["cheats_kept"] == 0, cheats
    assert all(check and check.islower() for *_, check in cheats), f"kinds of verdicts are written otherwise: {cheats}"
    assert row["outcome"] in ("improved", "builds-now") and row["evaluations"] <= 16, row
    (by_hand,) = (o for o in row["own"] if o[0] == "by hand")
    assert "by hand" in row["kept"] or by_hand[3] == "NoGain", row
