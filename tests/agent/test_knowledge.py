"""The knowledge base, the memory and skill drafts: what is found, what is stored, and what is never loaded."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from agent import memory as memory_module
from agent.events import Progress
from agent.job import JobRequest, ModelChoice, Options
from agent.job_record import Ending, store_inputs, store_record
from agent.knowledge import Item, Knowledge, own_items
from agent.memory import Memory, Program, Win, memory_path, toolchain
from agent.report import REPORT_NAME, Report, load_report
from agent.skill_draft import DRAFT_NAME, propose_skills, skill_id
from api.cli import _run
from sandbox.errors import InputError, WavesmithError
from sandbox.kernel import Kernel, Language
from sandbox.target import load_target
from skills.skill import load_library

TARGET = load_target("gfx950")
BEFORE = Kernel("x = 0\n", "k.py", Language.TRITON)
WIN = Win("gfx950", "atomics", "Sum first", "Fewer atomics.", "atomics 64 -> 1", "emulated", Program(BEFORE, "x = 1\n"))


@pytest.fixture(scope="module")
def knowledge() -> Knowledge:
    return Knowledge(own_items(TARGET, load_library()))


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("atomics on one address", "guide atomics.md"),
        ("vgpr_spill_count", "guide occupancy.md"),
        ("how much LDS may a workgroup use", "lds"),
        ("how many lanes has a wavefront", "wavefront"),
        ("libdevice does not build", "libdevice"),
        ("compute units", "MI350X"),
    ],
)
def test_what_is_asked_for_is_found(knowledge: Knowledge, query: str, first: str) -> None:
    found = knowledge.lines(query)
    assert any(first.lower() in line.lower() for line in found[:3]), found


def test_every_item_names_source_and_licence() -> None:
    items = list(own_items(TARGET, load_library()))
    assert {i.kind for i in items} == {"skill", "target", "guide"}
    assert len([i for i in items if i.kind == "guide"]) >= 18
    assert all(i.source and i.licence and i.text for i in items)
    assert all(str(i).endswith(f"[{i.source}; {i.licence}]") for i in items)


@pytest.mark.parametrize(
    "query", ["", "the of a", '"', "NEAR(", "a AND OR NOT", "title:*", "x" * 9000, "é", "1 OR 1=1; --"]
)
def test_no_query_breaks_the_index(knowledge: Knowledge, query: str) -> None:
    knowledge.search(query)
    assert len(knowledge) > 40


def test_skills_of_other_targets_are_left_out() -> None:
    library = load_library()
    only = [s.id for s in library if "gfx950" not in s.data.targets]
    found = {i.source for i in own_items(TARGET, library)}
    assert only and not any(f"skill {name}" in found for name in only)


def test_wins_are_offered_while_their_tools_are_the_present_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = Memory(tmp_path / "memory.db")
    memory.store_win(WIN)
    memory.store_win(WIN)
    (item,) = memory.items("gfx950")
    assert item.kind == "win" and "atomics 64 -> 1" in item.text and "x = 1" not in str(item)
    assert list(memory.items("gfx942")) == []
    monkeypatch.setattr(memory_module, "toolchain", lambda: "triton 99")
    assert list(memory.items("gfx950")) == []
    (stale,) = memory.wins(stale=True)
    assert stale.program == WIN.program and memory.wins(stale=False) == []
    memory.drop_win(stale, "no longer holds")
    (failed,) = memory.items("gfx950")
    assert failed.kind == "failure" and memory.wins() == []


def test_stale_wins_are_judged_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from agent import remember
    from agent.report import CorrectnessPart, SpeedPart
    from agent.verify import Verification

    memory = Memory(tmp_path / "memory.db")
    other = replace(WIN, title="Does not hold", program=Program(BEFORE, "x = 2\n"))
    memory.store_win(WIN, with_tools="triton 1")
    memory.store_win(other, with_tools="triton 1")
    memory.store_win(replace(WIN, title="Present", program=Program(BEFORE, "x = 3\n")))

    def judged(request: JobRequest, candidate: Kernel, progress: Progress) -> Verification:
        good = candidate.source == "x = 1\n"
        return Verification(
            verdict="Accepted" if good else "Incorrect",
            outcome="improved",
            exit_code=0,
            message="atomics 64 -> 2" if good else "wrong now",
            correctness=CorrectnessPart(level="emulated", validated=True),
            speed=SpeedPart(level="static", statement=""),
        )

    monkeypatch.setattr(remember, "verify", judged)
    results = remember.check_wins(memory, Progress())
    assert [(w.title, holds) for w, holds, _ in results] == [("Sum first", True), ("Does not hold", False)]
    assert {(w.title, w.effect) for w in memory.wins(stale=False)} == {
        ("Sum first", "atomics 64 -> 2"),
        ("Present", "atomics 64 -> 1"),
    }
    assert "no longer holds with" in memory.failures()[0][3]


def test_failures_are_counted_and_bounded(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory.db")
    memory.store_failures("gfx950", [("atomics", "Idea", "wrong")] * 3)
    assert memory.failures() == [("gfx950", "atomics", "Idea", "wrong", 3)]
    memory.store_failures("gfx950", [("atomics", f"Idea {n}", "wrong") for n in range(300)])
    assert len(memory.failures()) == memory_module.MAX_FAILURES


def test_where_the_memory_is(tmp_path: Path) -> None:
    assert memory_path({"WAVESMITH_MEMORY": "off"}) is None
    assert memory_path({"WAVESMITH_MEMORY": "/x/m.db"}) == Path("/x/m.db")
    assert memory_path({"XDG_DATA_HOME": "/data"}) == Path("/data/wavesmith/memory.db")
    broken = tmp_path / "not-a-database"
    broken.write_text("text" * 100)
    with pytest.raises(InputError, match="cannot be used as memory"):
        Memory(broken)


def test_a_memory_of_another_version_is_not_touched(tmp_path: Path) -> None:
    import sqlite3

    path = tmp_path / "memory.db"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 9")
    with pytest.raises(WavesmithError, match="schema version 9"):
        Memory(path)


def finished_job(folder: Path, origin: str = "m") -> Report:
    """The folder of a job in which a proposal of the model `m` was kept."""
    text = {
        "wavesmith_version": "0", "created_at": "2026-01-01T00:00:00",
        "outcome": "improved", "exit_code": 0, "summary": "s",
        "target": {"arch": "gfx950", "board": "MI350X", "title": "t"},
        "file": {"path": "ops/k.py", "language": "triton", "sha256": "0"},
        "requirement": "r", "correctness": {"level": "emulated", "validated": True},
        "speed": {"level": "static", "statement": "s"},
        "baseline": {"builds": True, "launches": 1, "executor": "interpreter"},
        "attempts": [
            {
                "number": 1, "id": "model@1", "origin": origin, "title": "Smaller blocks, 2x", "why": "Registers.",
                "line": None, "fate": "kept", "reason": "r", "verdict": "Accepted", "correctness": "emulated",
                "speed": "static", "seconds": 1.0, "diff": "--- a\n",
                "metrics": [{"name": "vgpr_count", "before": 256, "after": 4}],
            }
        ],
        "artifacts": {"patch": "wavesmith.patch", "patched_file": "patched/ops/k.py"},
    }  # fmt: skip
    request = JobRequest(
        BEFORE, TARGET, "ops/k.py", b"x = 0\n", options=Options(seed=1, model=ModelChoice("openai", "m"))
    )
    store_inputs(folder, request)
    store_record(folder, request, Ending(1, False, b"patch", "0"))
    (folder / "patched/ops").mkdir(parents=True)
    (folder / "patched/ops/k.py").write_text("x = 1\n")
    (folder / REPORT_NAME).write_text(json.dumps(text))
    return load_report(json.dumps(text))


def test_a_draft_holds_what_the_job_knows_and_is_no_skill(tmp_path: Path) -> None:
    finished_job(tmp_path / "job")
    words = ["skills", "propose", str(tmp_path / "job"), "--out", str(tmp_path / "drafts")]
    assert _run(words) == 0
    folder = tmp_path / "drafts" / "smaller_blocks_2x"
    data = yaml.safe_load((folder / DRAFT_NAME).read_text())
    assert data["id"] == "smaller-blocks-2x" and data["targets"] == ["gfx950"]
    assert data["expects"] == [{"metric": "vgpr_count", "direction": "down"}]
    assert data["proven_on"][0]["before"] == 256 and data["applies_when"] == ["TO DO"]
    assert (folder / "cases/k/before.py").read_text() == "x = 0\n"
    assert (folder / "cases/k/after.py").read_text() == "x = 1\n"
    compile((folder / "transform.py").read_text(), "transform.py", "exec")
    assert not (folder / "skill.yaml").exists()
    assert "smaller-blocks-2x" not in load_library().skills
    assert _run(["skills", "propose", str(tmp_path / "job"), "--out", str(tmp_path / "drafts")]) == 2, (
        "never overwritten"
    )


def test_a_job_without_a_models_win_gives_no_draft(tmp_path: Path) -> None:
    finished_job(tmp_path / "job", origin="relax-atomics")
    with pytest.raises(InputError, match="no proposal of a model was kept"):
        propose_skills(tmp_path / "job", tmp_path / "drafts")


def test_ids_of_drafts() -> None:
    assert skill_id("16x16 MFMA!") == "mfma"
    assert skill_id("***") == "new-skill"


def test_items_survive_being_stored() -> None:
    item = Item("win", "t", "x", "memory", "own")
    assert Item(**json.loads(json.dumps({k: getattr(item, k) for k in item.__slots__}))) == item  # type: ignore[attr-defined]
    assert toolchain() == toolchain()
