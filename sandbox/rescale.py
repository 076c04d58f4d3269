"""Held-out shapes: the harness run again with other sizes, so that a candidate is not judged on the recorded ones only.

Works on the text of the trusted baseline. Integer literals of the harness that name sizes change, each value everywhere
to the same new value, so that shapes which belong together stay together. Whether the changed harness still means
something is decided by running it: one that raises, or launches other kernels, is dropped.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from sandbox.capture import Capture, Variant, capture
from sandbox.isolation import Limits
from sandbox.kernel import Kernel
from sandbox.target import Target

_HARNESS_FUNCTION = re.compile(
    r"^(test|bench|check|main|run_|demo|example|get_inputs|get_init_inputs|make_inputs|_?inputs)"
)
_NOT_A_SIZE = re.compile(
    r"block|warp|stage|group|seed|cta|split|iter|repeat|rep$|warmup|steps|device|dim$|axis|chunk", re.I
)
_NOT_A_SIZE_CALLS = {"manual_seed", "seed", "range", "manual_seed_all", "round", "Config", "device", "softmax", "sum"}
_MIN_SIZE = 16
_HUGE = 1 << 22


@dataclass(frozen=True, slots=True)
class Scale:
    """A named change of sizes; `change` answers the new value of a size, or None where it stays."""

    name: str
    change: Callable[[int], int | None]


def _odd(size: int) -> int | None:
    return size - 3 if size >= 96 else None


def _half(size: int) -> int | None:
    return size // 2 if size >= 64 and size % 2 == 0 else None


def _larger(size: int) -> int | None:
    return size + size // 2 if 64 <= size <= 4096 and size % 2 == 0 else None


def _executable(size: int) -> int | None:
    return size // 4096 if size >= _HUGE else None


SCALES = (
    Scale("sizes-executable", _executable),
    Scale("sizes-odd", _odd),
    Scale("sizes-half", _half),
    Scale("sizes-larger", _larger),
)
"""In the order they are tried: huge sizes made small enough to execute, tails, half, one and a half."""


@dataclass(frozen=True, slots=True)
class _Literal:
    """An integer literal in the text: 1-based line, columns in bytes of UTF-8, value."""

    line: int
    start: int
    end: int
    value: int


def rescaled(source: str, scale: Scale) -> str | None:
    """The harness text with its sizes changed; None when nothing changes."""
    literals = sorted(set(_sizes(ast.parse(source))), key=lambda x: (x.line, x.start), reverse=True)
    lines = [line.encode() for line in source.split("\n")]
    changed = False
    for literal in literals:
        new = scale.change(literal.value)
        if new is None or new == literal.value:
            continue
        line = lines[literal.line - 1]
        lines[literal.line - 1] = line[: literal.start] + str(new).encode() + line[literal.end :]
        changed = True
    return "\n".join(line.decode() for line in lines) if changed else None


def held_out(
    kernel: Kernel,
    target: Target,
    baseline: Capture,
    *,
    harness: Kernel | None = None,
    seed: int = 1,
    wanted: int = 2,
    limits: Limits | None = None,
    executor: str = "auto",
) -> tuple[Capture, ...]:
    """Up to `wanted` captures of the baseline with other sizes that launch the same kernels without raising."""
    found: list[Capture] = []
    text = harness or kernel
    for scale in SCALES:
        source = rescaled(text.source, scale)
        if source is None or len(found) == wanted:
            continue
        changed = text.with_source(source)
        taken = capture(
            kernel if harness is not None else changed,
            target,
            harness=changed if harness is not None else None,
            executor=executor,
            limits=limits,
            variant=Variant(seed=seed, scale=scale.name),
            compile=False,
        )
        if taken.outcome.status in ("passed", "unknown") and taken.outcome.exception is None and taken.launches:
            same = set(taken.workload.kernels()) == set(baseline.workload.kernels())
            if same and _shapes(taken) != _shapes(baseline):
                found.append(replace(taken, notes=(*taken.notes, f"held-out shapes: {scale.name}")))
    return tuple(found)


def _shapes(taken: Capture) -> list[object]:
    return [(x.kernel, x.grid, [t.shape for a in x.args for t in a.value.tensors()]) for x in taken.launches]


def _sizes(tree: ast.Module) -> Iterator[_Literal]:
    for top in tree.body:
        if isinstance(top, ast.FunctionDef):
            if _HARNESS_FUNCTION.match(top.name) and not top.decorator_list:
                yield from _literals(top)
        elif not isinstance(top, (ast.ClassDef, ast.Import, ast.ImportFrom, ast.AsyncFunctionDef)):
            yield from _literals(top)


def _literals(node: ast.AST) -> Iterator[_Literal]:
    """Size literals below a node, without what is assigned to or passed as something else."""
    if isinstance(node, ast.Assign):
        yield from (x for name, value in _assigned(node) if not _NOT_A_SIZE.search(name) for x in _literals(value))
        return
    if isinstance(node, ast.keyword) and node.arg is not None and _NOT_A_SIZE.search(node.arg):
        return
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in _NOT_A_SIZE_CALLS:
            return
    if isinstance(node, (ast.Subscript, ast.Compare, ast.Assert)):
        return
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Pow, ast.LShift)):
        return
    if isinstance(node, ast.Constant):
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and value >= _MIN_SIZE:
            assert node.end_col_offset is not None
            yield _Literal(node.lineno, node.col_offset, node.end_col_offset, value)
        return
    for child in ast.iter_child_nodes(node):
        yield from _literals(child)


def _assigned(node: ast.Assign) -> Iterator[tuple[str, ast.expr]]:
    """Each value with the name it goes to; `""` where there is none or several."""
    for target in node.targets:
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=False))
        for left, right in pairs:
            yield left.id if isinstance(left, ast.Name) else "", right
