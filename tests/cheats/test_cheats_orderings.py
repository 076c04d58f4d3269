"""Integers put in order for a kernel: which form passes the scan, and what is seen of types and origins as it runs."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from sandbox.cheats import scan
from sandbox.child_orderings import Orderings
from sandbox.child_trials import Watch
from sandbox.kernel import load_kernel

ROOT = Path(__file__).parent.parent.parent
BASE = load_kernel(ROOT / "benchmarks/suite/tbe_backward/kernel.py")
LAUNCH = "    tbe_bwd[(lookups, tables)](idx, bag, grad, out, table_rows, d, "
SORTED = "    order = idx.argsort(dim=1, stable=True)\n    idx, bag = idx.gather(1, order), bag.gather(1, order)\n"

HONEST = {
    "methods, names given anew": SORTED + LAUNCH,
    "functions of torch": SORTED.replace("idx.argsort(dim=1", "torch.argsort(idx, 1").replace(
        "bag.gather(1", "torch.gather(bag, 1"
    )
    + LAUNCH,
    "sorted values": "    rows, order = idx.sort(dim=-1, stable=True)\n    bags = bag.gather(-1, order)\n"
    + LAUNCH.replace("idx, bag", "rows, bags"),
    "asked for its form": SORTED + "    assert idx.shape == bag.shape\n" + LAUNCH,
    "ordered twice": SORTED + "    idx = idx.gather(1, order)\n" + LAUNCH,
}
REFUSED = {
    "an operand no launch is given": SORTED.replace("idx.argsort", "(idx + table_rows).argsort") + LAUNCH,
    "memory of the call's own": SORTED.replace("idx.argsort", "out.argsort") + LAUNCH,
    "another axis at each call": SORTED.replace("dim=1", "dim=d") + LAUNCH,
    "descending by what is given": SORTED.replace("stable=True", "descending=grad.shape[0] > 9") + LAUNCH,
    "a result": SORTED + LAUNCH.replace("    tbe_bwd", "    out.order = order\n    tbe_bwd"),
    "kept": SORTED + "    run.order = order\n" + LAUNCH,
    "in a list": SORTED + "    orders = [order]\n" + LAUNCH,
    "read by a helper": SORTED + "    make_inputs(order)\n" + LAUNCH,
    "counted with": SORTED + "    idx = idx + 1\n" + LAUNCH,
    "cut": SORTED + "    first = idx[0]\n" + LAUNCH,
    "by something that is no order": SORTED.replace("bag.gather(1, order)", "bag.gather(1, bag)") + LAUNCH,
    "an order that was changed": SORTED.replace("    idx, bag", "    order = order.flip(1)\n    idx, bag") + LAUNCH,
    "another name for sorting": "    s = torch.Tensor.argsort\n    order = s(idx, 1)\n" + LAUNCH,
    "another sort": SORTED.replace("argsort(dim=1, stable=True)", "msort()") + LAUNCH,
    "into given memory": "    order = torch.argsort(idx, 1, out=bag)\n" + LAUNCH,
    "under a new condition": "    if lookups > 1_000_000:\n        idx = idx.gather(1, idx.argsort(1))\n" + LAUNCH,
    "one launch to see whether it is sorted, one to use that": SORTED + LAUNCH + "BLOCK=2)\n" + LAUNCH,
    "for a kernel that is none": SORTED + LAUNCH.replace("tbe_bwd[", "KERNELS["),
}


def candidate(lines: str) -> Any:
    return BASE.with_source(BASE.source.replace(LAUNCH, lines))


def rejecting(lines: str) -> set[str]:
    return {f.check for f in scan(BASE, candidate(lines)) if f.severity.value == "reject"}


@pytest.mark.parametrize("form", HONEST)
def test_an_order_of_given_integers_is_no_library_call(form: str) -> None:
    assert not rejecting(HONEST[form])


@pytest.mark.parametrize("form", REFUSED)
def test_what_is_more_than_an_order_is_refused(form: str) -> None:
    assert "library-call" in rejecting(REFUSED[form])


@pytest.mark.parametrize("write", ["tl.store(out_ptr, 0.0)", "tl.atomic_xchg(out_ptr, 0.0)"])
def test_an_order_is_for_kernels_that_write_through_atomics_that_commute(write: str) -> None:
    honest = candidate(HONEST["sorted values"])
    writing = honest.with_source(honest.source.replace("    tl.atomic_add(", f"    {write}\n    tl.atomic_add("))
    assert {f.check for f in scan(BASE, writing)} >= {"library-call"}


def test_a_file_that_sorts_already_may_go_on() -> None:
    sorting = candidate(HONEST["sorted values"])
    assert not scan(sorting, sorting.with_source(sorting.source.replace("num_warps=8", "num_warps=4")))


# --- as it runs -------------------------------------------------------------------------------------------------------


IDX, FLOATS = torch.tensor([[3, 1, 1, 2]]), torch.tensor([3.0, 1.0, 1.0, 2.0])
RUNNING: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "integers": (lambda i, f: i.gather(1, i.argsort(1)), ""),
    "values of a sort": (lambda i, f: i[0].sort().values[0:0].shape, ""),
    "floats": (lambda i, f: f.argsort(), "argsort"),
    "bits of floats": (lambda i, f: f.view(torch.int32).argsort(), "argsort"),
    "truth values": (lambda i, f: (i > 1).argsort(), "argsort"),
    "a copy of its own": (lambda i, f: i.clone().argsort(), "argsort"),
    "floats by an order": (lambda i, f: f.gather(0, i[0].argsort()), "gather"),
    "floats indexed": (lambda i, f: f[i[0].argsort()], "indexing by a tensor"),
    "integers by no order": (lambda i, f: i.gather(1, i - 1), "gather"),
    "indexing by what is given": (lambda i, f: f[i[0] - 1], "indexing by a tensor"),
    "into given memory": (lambda i, f: torch.sort(i, 1, out=(i.clone(), i.clone())), "sort"),
}


def watched(given: list[Any]) -> Watch:
    watch = Watch(lambda tensor: False)
    watch.start(given)
    return watch


@pytest.mark.parametrize("name", RUNNING)
def test_what_counts_as_an_order_is_seen_as_it_runs(name: str) -> None:
    function, called = RUNNING[name]
    given = [IDX.clone(), FLOATS.clone()]
    watch = watched(given)
    with watch:
        watch.on = True
        function(*given)
        watch.on = False
    assert (called in watch.names) == bool(called), watch.names
    if not called:
        assert watch.orderings.found
        assert not watch.names.keys() & {"sort", "argsort", "gather"}


def wrong_after(*calls: Callable[[Watch, Any], Any]) -> list[str]:
    """What is found wrong in the last of several calls on the same integers."""
    idx = IDX.clone()
    watch = Watch(lambda tensor: False)
    for call in calls:
        watch.start([idx])
        with watch:
            watch.on = True
            call(watch, idx)
            watch.on = False
    return watch.orderings.wrong


def test_ordered_integers_go_to_kernels_and_nowhere_else() -> None:
    assert not wrong_after(lambda w, i: w.orderings.handed("k", [i.argsort(1)], w.storages))
    assert not wrong_after(lambda w, i: i.argsort(1).shape)
    assert wrong_after(lambda w, i: i.argsort(1) + 1) == ["torch's add is given integers that were put in order"]
    assert wrong_after(lambda w, i: i.argsort(1).to(torch.int32))
    assert wrong_after(lambda w, i: w.orderings.returned(i.argsort(1))) == ["what was put in order is itself a result"]
    assert wrong_after(lambda w, i: (i.argsort(1), w.orderings.returned(torch.zeros(3, dtype=torch.int64))))
    assert not wrong_after(lambda w, i: (i.argsort(1), w.orderings.returned(torch.zeros(3))))


def test_an_order_lives_as_long_as_its_call() -> None:
    kept: list[Any] = []
    seen: dict[str, int] = {}

    def gathers(watch: Watch, idx: Any) -> None:
        idx.gather(1, kept[0])
        seen.update(watch.names)

    assert not wrong_after(lambda w, i: kept.append(i.argsort(1)))
    assert wrong_after(
        lambda w, i: kept.append(i.argsort(1)), lambda w, i: w.orderings.handed("k", [kept[-1]], w.storages)
    ) == ["a kernel is given the order that an earlier call found"]
    wrong_after(lambda w, i: kept.insert(0, i.argsort(1)), gathers)
    assert seen["gather"] == 1


def test_what_a_kernel_was_given_is_not_sorted_any_more() -> None:
    def late(watch: Watch, idx: Any) -> None:
        watch.orderings.handed("k", [idx], watch.storages)
        idx.argsort(1)
        assert watch.names["argsort"] == 1

    wrong_after(late)


def test_host_memory_is_not_sorted() -> None:
    orderings = Orderings(lambda tensor: True)
    orderings.start([IDX], None)
    assert orderings.seen("argsort", (IDX, 1), {}, IDX.argsort(1))[0] == "argsort"


def test_a_random_order_takes_the_place_of_the_one_found() -> None:
    idx = torch.arange(64).reshape(2, 32).flip(1)
    watch = Watch(lambda tensor: False)
    watch.start([idx], torch.Generator().manual_seed(3))
    with watch:
        watch.on = True
        values, order = idx.sort(dim=1)
        watch.on = False
    assert torch.equal(order.sort(1).values, torch.arange(32).expand(2, -1))
    assert torch.equal(values, idx.gather(1, order))
    assert not torch.equal(values, idx.sort(1).values)


def test_the_expert_of_the_suite_passes_the_scan() -> None:
    expert = (ROOT / "benchmarks/suite/tbe_backward/expert.py").read_text()
    tail = BASE.source[BASE.source.index("def make_inputs") :]
    assert not scan(BASE, BASE.with_source(textwrap.dedent(expert) + "\n\n" + tail))
