"""Every cheating candidate is rejected for the named check, and by nothing of that name once the check is off."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from sandbox.gate import Gate
from sandbox.kernel import load_kernel
from sandbox.verdict import Accepted, Correctness, Incorrect, NoGain

HERE = Path(__file__).parent
CORPUS = yaml.safe_load((HERE / "corpus.yaml").read_text())
CHEATS = [e for e in CORPUS if "check" in e]
HONEST = [e for e in CORPUS if "check" not in e]


def name(entry) -> str:
    return Path(entry["file"]).stem


def in_order(entries):
    """Candidates of one baseline together, so that a process needs few baselines."""
    return sorted(entries, key=lambda e: e["baseline"])


@pytest.mark.parametrize("entry", in_order(CHEATS), ids=name)
def test_cheat_is_rejected_for_the_named_check(entry, evaluator_of):
    evaluator = evaluator_of(entry["baseline"])
    candidate = load_kernel(HERE / entry["file"])
    expected = {entry["check"], *entry.get("also", [])}
    evaluation = evaluator.evaluate(candidate)
    verdict = evaluation.verdict
    assert isinstance(verdict, Incorrect), verdict
    assert verdict.check in expected, verdict
    assert [c.name for c in evaluation.checks if not c.passed]
    assert not evaluation.correctness.validated

    gate = Gate(frozenset(expected))
    evaluator._scan(gate, candidate)
    if gate.first() is None and (candidate.digest, "interpreter") in evaluator._trials:
        without = evaluator.evaluate(candidate, disabled_checks=frozenset(expected)).verdict
        assert not isinstance(without, Incorrect) or without.check not in expected
    else:
        assert gate.first() is None or gate.first().check not in expected


@pytest.mark.parametrize("entry", in_order(HONEST), ids=name)
def test_honest_candidate_is_equivalent(entry, evaluator_of):
    evaluation = evaluator_of(entry["baseline"]).evaluate(load_kernel(HERE / entry["file"]))
    assert isinstance(evaluation.verdict, NoGain | Accepted), evaluation.verdict
    assert all(c.passed for c in evaluation.checks)
    wanted = Correctness.INTERPRETED if entry.get("interpreted_only") else Correctness.EMULATED
    assert evaluation.correctness is wanted, evaluation.statements
    assert "validated" in evaluation.statements[0]


def test_the_corpus_covers_the_checks():
    """At least 25 cheats of at least 20 names, and 10 honest candidates."""
    assert len(CHEATS) >= 25
    assert len({e["check"] for e in CHEATS}) >= 20
    assert len(HONEST) >= 10
