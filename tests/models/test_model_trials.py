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

from agent.model import Message, ToolResult
from benchmarks.model_trials import CHEATS, Case, ScriptedProposals, cheats_of, graft, ideas_for, load_cases, run

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
    assert len(ideas_for(case, "cheater")) == len(CHEATS)


def test_grafting_keeps_what_the_other_file_does_not_define() -> None:
    mine = "import a\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return f()\n"
    assert graft(mine, "def h():\n    pass\n\n\ndef f():\n    return h()\n") == (
        "import a\n\n\ndef h():\n    pass\n\n\ndef f():\n    return h()\n\n\ndef g():\n    return f()\n"
    )
    (first, *_) = cheats_of("import torch\n\n\ndef run(x):\n    return x\n", "run")
    assert "def _honest(x):" in first.source and first.source.count("def run(") == 1


def test_a_scripted_model_reads_before_it_writes() -> None:
    model = ScriptedProposals("m", ideas_for(CASES["column_sum"], "expert"))
    opening = [Message("system", "s"), Message("user", "u")]
    asked = model.propose(opening)
    assert [c.name for c in asked.calls] == ["read_kernel"]
    answer = Message("user", results=(ToolResult("c1", "the file"),))
    (call,) = model.propose([*opening, asked.message, answer]).calls
    assert call.arguments is not None and call.arguments["edits"][0]["search"] == "the file"
    assert not model.propose(opening).calls


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(("name", "expert_helps"), [("norm_residual", False), ("index_select_backward", True)])
def test_a_mixed_population_keeps_no_cheat_and_takes_the_expert_where_its_gain_shows(
    name: str, expert_helps: bool, tmp_path: Path
) -> None:
    """Without a clock a gain shows as a resource or as executed atomics; else the skills' result stays."""
    options = argparse.Namespace(target="gfx950", executor="interpreter", evaluations=16, out=tmp_path)
    row = run(CASES[name], "mixed", options, time.monotonic() + 1500)
    cheats = [o for o in row["own"] if o[0].startswith("cheat")]
    assert len(cheats) == 3 and row["cheats_kept"] == 0, cheats
    assert row["outcome"] in ("improved", "builds-now") and row["evaluations"] <= 16, row
    (expert,) = [o for o in row["own"] if o[0] == "by hand"]
    assert (expert[1] == "kept") is expert_helps, expert
