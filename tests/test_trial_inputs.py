"""Inputs of a trial: rebuilt as recorded, drawn anew, of other sizes; guards; the plan of what to call."""

from __future__ import annotations

import numpy as np
import pytest

from sandbox.tensor_file import TensorFile
from sandbox.variants import RECORDED, InputVariant, plan_steps, size_changes, variants_of
from sandbox.workload import EntryCall, HarnessOutcome, StorageRecord, StoredWorkload, TensorRecord, Value, Workload

torch = pytest.importorskip("torch")


def tensor(storage: int, shape: tuple[int, ...], stride: tuple[int, ...], offset: int = 0, dtype="float32") -> Value:
    return Value("tensor", tensor=TensorRecord(dtype, shape, stride, offset, storage))


def stored(arrays: dict[int, np.ndarray], entry: EntryCall) -> StoredWorkload:
    dtypes = {"float32": "F32", "int64": "I64"}
    records = tuple(StorageRecord(i, a.nbytes, str(a.dtype), f"s{i}") for i, a in arrays.items())
    file = TensorFile(
        {f"s{i}": memoryview(a.tobytes()) for i, a in arrays.items()},
        {f"s{i}": dtypes[str(a.dtype)] for i, a in arrays.items()},
    )
    outcome = HarnessOutcome("main", "passed")
    return StoredWorkload(Workload("k.py", "", "gfx942", "MI300X", (), (entry,), records, outcome, {}), file)


DATA = {0: np.arange(40, dtype=np.float32), 1: np.array([0, 3, 7, 10]), 2: np.zeros(10, np.float32)}
ENTRY = EntryCall(
    0,
    "function",
    "f",
    (
        tensor(0, (10, 2), (4, 1), 1),
        tensor(0, (10,), (4,)),
        tensor(1, (4,), (1,), dtype="int64"),
        tensor(2, (10,), (1,)),
    ),
    {"n": Value("int", 10), "eps": Value("float", 0.5), "causal": Value("bool", True)},
    mutated={"args.3": TensorRecord("float32", (10,), (1,), 0, 2)},
)


def build(variant: InputVariant, guarded: bool = False):
    from sandbox.child_inputs import InputBuilder

    whole = stored(DATA, ENTRY)
    builder = InputBuilder(whole.workload, whole.tensors, "cpu", guarded)
    return builder, builder.build(ENTRY, variant.to_json())


def test_elements_that_share_memory_are_drawn_once():
    """The gradient of a sum is one number, expanded."""
    from sandbox.child_inputs import InputBuilder

    entry = EntryCall(0, "function", "f", (tensor(0, (4, 10), (0, 1)), tensor(1, (3, 4), (0, 1), dtype="int64")), {})
    whole = stored(DATA, entry)
    builder = InputBuilder(whole.workload, whole.tensors, "cpu", False)
    drawn = [builder.build(entry, InputVariant("x", "seed", seed, "normal", permute=True).to_json()) for seed in (1, 2)]
    floats, numbers = (drawn[0].tensors[f"args.{i}"] for i in (0, 1))
    assert floats.stride() == (0, 1) and torch.equal(floats[0], floats[3])
    assert not torch.equal(floats, drawn[1].tensors["args.0"])
    assert sorted(numbers[2].tolist()) == [0, 3, 7, 10]
    held = builder.refill(drawn[0], drawn[1])
    assert held.tensors["args.0"] is floats and torch.equal(floats, drawn[1].tensors["args.0"])


@pytest.mark.parametrize("pages", [[], [1, 3]])
def test_memory_that_was_hardly_touched_is_rebuilt(pages: list[int]) -> None:
    from sandbox.child_inputs import InputBuilder

    nbytes, page = 4 * 4096 + 8, 4096
    touched = np.full(page * len(pages), 7, np.uint8)
    file = TensorFile(
        {"s0": memoryview(touched.tobytes()), "p0": memoryview(np.array(pages, np.int64).tobytes())},
        {"s0": "U8", "p0": "I64"},
    )
    entry = EntryCall(0, "function", "f", (tensor(0, (nbytes,), (1,), dtype="uint8"),), {})
    outcome = HarnessOutcome("main", "passed")
    record = StorageRecord(0, nbytes, "uint8", "s0", "p0")
    workload = Workload("k.py", "", "gfx942", "MI300X", (), (entry,), (record,), outcome, {})
    rebuilt = InputBuilder(workload, file, "cpu", False).build(entry, RECORDED.to_json()).tensors["args.0"]
    expected = np.zeros(nbytes, np.uint8)
    for number in pages:
        expected[number * page : (number + 1) * page] = 7
    np.testing.assert_array_equal(rebuilt.numpy(), expected)


@pytest.mark.parametrize("guarded", [False, True])
def test_recorded_inputs_are_rebuilt_with_their_views(guarded):
    _, inputs = build(RECORDED, guarded)
    matrix, column = inputs.tensors["args.0"], inputs.tensors["args.1"]
    np.testing.assert_array_equal(matrix.numpy(), np.arange(40).reshape(10, 4)[:, 1:3])
    assert matrix.stride() == (4, 1)
    column[0] = 99
    matrix[0, 0] = 98
    assert matrix.untyped_storage().data_ptr() == column.untyped_storage().data_ptr(), "views of one storage alias"


def test_a_call_that_is_built_again_and_again_has_its_own_memory_each_time():
    from sandbox.child_inputs import InputBuilder

    whole = stored(DATA, ENTRY)
    builder = InputBuilder(whole.workload, whole.tensors, "cpu", guarded=False, resident=True)
    variants = [RECORDED, InputVariant("x", "seed", 5, "normal"), InputVariant("x", "sizes", 5, "normal", {10: 7})]
    for variant in variants:
        first = builder.build(ENTRY, variant.to_json())
        before = {path: tensor.clone() for path, tensor in first.tensors.items()}
        for tensor in first.tensors.values():
            tensor.fill_(77)
        again = builder.build(ENTRY, variant.to_json())
        for path, tensor in again.tensors.items():
            np.testing.assert_array_equal(tensor.numpy(), before[path].numpy(), err_msg=f"{variant.name} {path}")


def test_bytes_beside_a_tensor_are_guarded():
    _, inputs = build(RECORDED, guarded=True)
    assert inputs.broken_guards() == 0
    flat = inputs.tensors["args.3"]
    beyond = flat.as_strided((1,), (1,), flat.storage_offset() + 10)
    beyond.fill_(1.0)
    assert inputs.broken_guards() > 0


def test_the_same_seed_gives_the_same_values_and_another_seed_others():
    values = [build(InputVariant("x", "seed", s, "normal"))[1].tensors["args.0"] for s in (5, 5, 6)]
    assert torch.equal(values[0], values[1])
    assert not torch.equal(values[0], values[2])
    assert (values[0] >= 0).all(), "what was never negative stays so"


def test_accumulators_stay_zero_and_offsets_stay_sorted():
    _, inputs = build(InputVariant("x", "seed", 3, "normal", permute=True))
    assert not inputs.tensors["args.3"].any()
    assert inputs.tensors["args.2"].tolist() == [0, 3, 7, 10]


def test_other_sizes_reach_tensors_offsets_and_numbers():
    builder, inputs = build(InputVariant("x", "sizes", 3, "normal", sizes={10: 7}))
    assert tuple(inputs.tensors["args.0"].shape) == (7, 2)
    assert inputs.tensors["args.2"].tolist() == [0, 3, 7, 7], "an end stays the end"
    _, args, kwargs, _ = builder.assemble(inputs, None)
    assert kwargs == {"n": 7, "eps": 0.5, "causal": True}
    assert args[3].shape == (7,)


def test_a_part_of_the_offsets_stays_sorted_where_both_shrink():
    _, inputs = build(InputVariant("x", "sizes", 3, "normal", sizes={10: 5, 4: 3}))
    assert inputs.tensors["args.2"].tolist() == [0, 3, 5], "7 is past the end, not 2 again"


def test_scalars_and_flags():
    builder, inputs = build(InputVariant("x", "scalars", 3, "normal", scalars=True, flip="kwargs.causal"))
    assert builder.assemble(inputs, None)[2] == {"n": 10, "eps": 0.375, "causal": False}


def test_fresh_values_at_the_same_addresses():
    builder, first = build(InputVariant("x", "seed", 3, "normal"))
    before = first.tensors["args.0"].clone()
    second = builder.refill(first, builder.build(ENTRY, InputVariant("x", "seed", 4, "normal").to_json()))
    assert second.tensors["args.0"].data_ptr() == first.tensors["args.0"].data_ptr()
    assert not torch.equal(second.tensors["args.0"], before)


def test_a_plan_has_five_seeds_and_secret_ones():
    whole = stored(DATA, ENTRY)
    plans = [plan_steps(whole.workload, np.random.default_rng(s)) for s in (1, 2)]
    seeds = [{s.variant.seed for s in p if s.variant.kind == "seed"} for p in plans]
    assert len(seeds[0]) >= 5
    assert not seeds[0] & seeds[1]
    kinds = {s.variant.kind for s in plans[0]}
    assert kinds == {"recorded", "seed", "distribution", "sizes", "scalars"}
    assert {s.variant.distribution for s in plans[0]} >= {"zeros", "large", "denormal", "tails"}


def test_large_inputs_are_planned_however_little_time_there_is():
    plan = plan_steps(stored(DATA, ENTRY).workload, np.random.default_rng(1), budget_s=0.0)
    assert sum(s.variant.distribution == "large" for s in plan) == 1
    assert {s.variant.distribution for s in plan} == {"recorded", "normal", "large"}


def test_sizes_change_to_odd_half_and_double():
    changes = size_changes(ENTRY)
    assert {10: 7} in changes
    assert {10: 20} in changes
    assert {10: 5} in changes
    assert [v.flip for v in variants_of(ENTRY, np.random.default_rng(0)) if v.flip] == ["kwargs.causal"]


def test_a_child_never_gets_results():
    from dataclasses import replace

    from sandbox.trials import inputs_only

    secret = {**DATA, 3: np.full(4, 7.0, np.float32)}
    entry = replace(ENTRY, outputs=tensor(3, (4,), (1,)))
    given = inputs_only(stored(secret, entry))
    assert given.workload.entries[0].outputs is None
    assert "s3" not in given.tensors
    assert given.workload.storages[3].key is None
    assert "s0" in given.tensors


@pytest.mark.parametrize(
    ("on_gpu", "free_bytes"),
    [(False, 0), (True, 1 << 20), (True, 8 * 12 * 4)],
    ids=["by digest", "by a copy on the device", "by digest where the device is full"],
)
def test_a_change_of_memory_is_seen_bit_by_bit(on_gpu: bool, free_bytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    from sandbox import child_trials

    monkeypatch.setattr(child_trials, "_is_cuda", lambda tensor: on_gpu)
    monkeypatch.setattr(child_trials, "_free_bytes", lambda device: free_bytes)
    column = torch.arange(12.0).reshape(3, 4).t()[1]
    before = child_trials.contents(column)
    assert isinstance(before, str) == (not on_gpu or free_bytes < 1000)
    assert child_trials.same_contents(column, before)
    column.untyped_storage()[0] = 1
    assert not child_trials.same_contents(column, before), "the whole storage counts, not this view of it alone"
    column[0] = float("nan")
    assert child_trials.same_contents(column, child_trials.contents(column))
    empty, grown = torch.zeros(0), torch.zeros(5, dtype=torch.bfloat16)
    assert child_trials.same_contents(empty, child_trials.contents(empty))
    before = child_trials.contents(grown)
    assert not child_trials.same_contents(grown.resize_(9), before)


def test_memory_of_several_tensors_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox import child_trials

    looked: list[int] = []
    real = child_trials.read_memory
    monkeypatch.setattr(child_trials, "read_memory", lambda t, n: looked.append(t.data_ptr()) or real(t, n))
    both, other = torch.arange(12.0), torch.zeros(3)
    tensors = {"k": both[:6], "v": both[6:], "o": other}
    before = child_trials.contents_of(tensors)
    assert len(looked) == 2
    other[0] = 1
    assert child_trials.changed_since(tensors, before) == ["o"]
    assert len(looked) == 4
    both[7] = -1
    assert child_trials.changed_since(tensors, before) == ["k", "v", "o"], "one storage, both tensors"
    grown = {"k": both[:6], "v": torch.arange(99.0), "o": other}
    before = child_trials.contents_of(grown)
    grown["v"].set_(both[6:])
    assert child_trials.changed_since(grown, before) == ["v"], "it lies elsewhere now, where something else lies"


def test_what_a_program_does_to_its_inputs_stays_there() -> None:
    """Children map one file, and a call is built several times from it."""
    from sandbox.child_inputs import InputBuilder
    from sandbox.tensor_file import sealed

    kept = stored(DATA, ENTRY)
    given = TensorFile.of_descriptor(sealed(kept.tensors, kept.tensors))
    builder = InputBuilder(kept.workload, given, "cpu", guarded=False)
    first, second = (builder.build(ENTRY, RECORDED.to_json()) for _ in range(2))
    for tensor in first.tensors.values():
        tensor.fill_(77)
    again = builder.build(ENTRY, RECORDED.to_json())
    for path, tensor in second.tensors.items():
        assert not (tensor == 77).any()
        assert torch.equal(tensor, again.tensors[path])


def test_what_does_not_change_is_recorded_with_one_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    from sandbox import child_values
    from sandbox.frames import FrameWriter
    from sandbox.isolation import Limits

    read: list[int] = []
    real = child_values.read_memory
    monkeypatch.setattr(child_values, "read_memory", lambda t, n: read.append(t.data_ptr()) or real(t, n))
    store = child_values.SnapshotStore(FrameWriter(-1, write=lambda fd, data: len(data)), Limits())
    both = torch.arange(12.0)
    with store.still():
        digests = {store.digest(both[:6]), store.digest(both[6:])}
        with store.still():
            numbers = {store.record(both[:6])["storage"], store.record(both)["storage"]}
        assert (len(digests), len(numbers), len(read)) == (1, 1, 1)
    both[0] = 5
    with store.still():
        assert store.digest(both) not in digests
        assert store.record(both)["storage"] not in numbers
    assert len(read) == 2
