"""What a candidate may change: kernels, the code that launches them, and what that code calls. Never the harness."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from sandbox.cheats.host import Item, check_of_name
from sandbox.cheats.names import COMPUTING_METHODS
from sandbox.cheats.source import Source

_HARNESS_NAMES = frozenset(("get_inputs", "get_init_inputs", "main"))
_JUDGING_CALLS = frozenset(
    ("allclose", "assert_close", "assert_allclose", "assert_array_equal", "assert_equal", "isclose", "equal")
)
_DRAWING_CALLS = frozenset(
    ("rand", "randn", "randint", "rand_like", "randn_like", "randperm", "normal", "manual_seed", "seed", "uniform")
)
_TIMING_CALLS = frozenset(("do_bench", "perf_report", "perf_counter", "elapsed_time", "do_bench_cudagraph", "time"))


def scope_items(baseline: Source, candidate: Source) -> Iterator[Item]:
    """Edits outside the allowed places; already relative to the baseline."""
    yield from _harness_statements(baseline, candidate)
    yield from _harness_functions(baseline, candidate)
    yield from _reference_calls(baseline, candidate)
    yield from _inheritance(baseline, candidate)
    if any(True for _ in baseline.launches(baseline.tree)) and not any(
        True for _ in candidate.launches(candidate.tree)
    ):
        yield "kernel-not-launched", "launches", 1, "no kernel is launched any more"


def _harness_statements(baseline: Source, candidate: Source) -> Iterator[Item]:
    """Comparisons, drawn inputs and timings of the baseline file must all still be there, word for word."""
    left = [text for _, text in _sensitive(candidate)]
    for line, text in _sensitive(baseline):
        if text in left:
            left.remove(text)
        else:
            yield "harness-edit", text, line, f"the baseline's line {line}, `{_short(text)}`, was changed or removed"


def _sensitive(source: Source) -> Iterator[tuple[int, str]]:
    inside = source.kernel_nodes()
    for node in ast.walk(source.tree):
        if id(node) in inside:
            continue
        if isinstance(node, ast.Assert):
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call):
            name = (source.resolve(node.func) or "?").rsplit(".", 1)[-1]
            if name in _JUDGING_CALLS | _DRAWING_CALLS | _TIMING_CALLS:
                yield node.lineno, ast.unparse(node)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else line[:57] + "..."


def _launching(source: Source) -> set[str]:
    """Functions whose own code launches a kernel, with the classes they belong to."""
    direct = {name for name, f in source.functions.items() if any(True for _ in source.launches(f))}
    return direct | {name.rsplit(".", 1)[0] for name in direct if "." in name}


def _kernel_side(source: Source) -> set[str]:
    """Everything that kernels and their launchers reach: the places an edit may touch."""
    return source.closure(_launching(source) | set(source.kernels))


def _harness_functions(baseline: Source, candidate: Source) -> Iterator[Item]:
    """Functions the kernels' launchers never call, that launch nothing through others: inputs, references, tests."""
    allowed = _kernel_side(baseline)
    launching = _launching(baseline)
    for name, function in baseline.functions.items():
        last = name.rsplit(".", 1)[-1]
        reaches = bool(baseline.closure({name}) & launching)
        harness = last in _HARNESS_NAMES or last.startswith("test_") or (name not in allowed and not reaches)
        if not harness or name in launching or (reaches and not last.startswith(("test_", "get_"))):
            continue
        now = candidate.functions.get(name)
        if now is None:
            yield "harness-edit", name, function.lineno, f"`{name}` was removed"
        elif ast.dump(now) != ast.dump(function):
            yield "harness-edit", name, now.lineno, f"`{name}` belongs to the harness and was changed"


def _computes(source: Source, name: str) -> bool:
    """Whether a function computes with library operations of its own (a reference implementation does)."""
    function = source.functions.get(name)
    if function is None:
        return False
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            called = source.resolve(node.func) or ""
            if check_of_name(called) == "library-call":
                return True
            if called.startswith("?.") and called.rsplit(".", 1)[-1] in COMPUTING_METHODS:
                return True
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return True
    return False


def _reference_calls(baseline: Source, candidate: Source) -> Iterator[Item]:
    """A function that now calls one which computes without kernels, and did not before: the reference does the work."""
    launching = _launching(candidate)
    for name, function in candidate.functions.items():
        before = baseline.functions.get(name)
        known = baseline.called(before) if before is not None else set()
        for other in sorted(candidate.called(function) - known):
            if other == name or other in candidate.kernels or candidate.closure({other}) & launching:
                continue
            parts = [f for f in candidate.closure({other}) if _computes(baseline, f)]
            if parts and other.split(".")[0] in baseline.functions.keys() | baseline.classes.keys():
                message = f"`{name}` now calls `{other}`, which computes without a kernel"
                yield "library-call", f"{name}>{other}", function.lineno, message


def _inheritance(baseline: Source, candidate: Source) -> Iterator[Item]:
    """A class that launched kernels and now inherits what it does from one that never did."""
    launching, launched = _launching(candidate), _launching(baseline)
    for name, node in candidate.classes.items():
        bases = {b.id for b in node.bases if isinstance(b, ast.Name)} & set(candidate.classes)
        before = baseline.classes.get(name)
        old = {b.id for b in before.bases if isinstance(b, ast.Name)} if before is not None else set()
        reaches = name in launching or bool(candidate.closure({name}) & launching)
        if bases - old - launched and not reaches:
            yield (
                "inherited-reference",
                name,
                node.lineno,
                f"class `{name}` inherits its work from {', '.join(sorted(bases))}",
            )
