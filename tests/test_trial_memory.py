"""Which memory outlives a call: on a GPU the allocator knows what torch's modes do not see."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


def segment(address: int, *blocks: tuple[int, str]) -> dict[str, object]:
    """As `torch.cuda.memory_snapshot` gives it."""
    return {"address": address, "blocks": [{"size": size, "state": state} for size, state in blocks]}


def test_memory_that_the_allocator_gave_away_is_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox.child_torch import living_memory

    segments = [
        segment(4096, (512, "active_allocated"), (512, "inactive"), (1024, "active_allocated")),
        segment(1 << 20, (2048, "active_pending_free"), (512, "active_allocated")),
    ]
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: segments)
    assert living_memory() == {4096, 4096 + 1024, (1 << 20) + 2048}


@pytest.mark.parametrize(
    ("before", "alive", "foreign"),
    [
        (None, None, {"made", "kept"}),
        ({"kept"}, {"made", "kept"}, {"kept"}),
        ({"kept"}, {"kept"}, {"made", "kept"}),
        ({"made", "kept"}, {"made", "kept"}, {"made", "kept"}),
    ],
)
def test_what_was_made_during_the_call_is_not_foreign_whoever_made_it(monkeypatch, before, alive, foreign) -> None:
    """`given` is an input, `kept` outlives the call; `made` was allocated where no mode saw it."""
    from sandbox import child_torch
    from sandbox.child_trial_launches import TrialRecorder
    from sandbox.child_values import storage_of

    bound = {name: torch.zeros(8) for name in ("given", "made", "kept")} | {"n": 8}
    addresses = {name: storage_of(t)[0] for name, t in bound.items() if name != "n"}

    def places(names: set[str] | None) -> frozenset[int] | None:
        return None if names is None else frozenset(addresses[n] for n in names)

    recorder = TrialRecorder.__new__(TrialRecorder)
    recorder.call_storages, recorder.lived_before = {addresses["given"]}, places(before)
    monkeypatch.setattr(child_torch, "living_memory", lambda: places(alive))
    assert set(recorder._foreign(bound)) == foreign
