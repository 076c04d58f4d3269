"""Lower `num_warps` to what a workgroup of the target may have, where it is decided; drop configs that ask for more."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from dataclasses import replace as with_fields

import libcst as cst

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.edit import Edit, apply_edits, drop_element, replace
from skills.facts import Facts
from skills.literals import int_value
from skills.skill import Refusal, Site
from skills.triton_source import Config, TritonSource, parse_triton
from skills.warps import OPTION, Decision, decisions, siblings, sinks, understood

_MOST = 64
"""Literals above this are no number of warps that any GPU would launch."""


@dataclass(frozen=True, slots=True)
class _Change:
    edit: Edit
    line: int
    warps: int
    config: Config | None = None
    """The autotuner's config that it mends or drops."""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the whole file: a launch left anywhere above the limit is still refused. Where one was recorded, a
    second that caps at the launches, for numbers that came from elsewhere.

    Where every recorded launch builds, the site says what would fail (`latent`). Where they fail for another reason,
    there is none yet.
    """
    source = parse_triton(kernel)
    status, threads = facts["compile.status"], facts.number("launch.threads_per_workgroup")
    within = threads is not None and threads <= target.max_threads_per_workgroup
    built = status == "ok" and within
    if status == "failed" and within:
        return
    failing = () if within or threads is None else tuple(_failing(facts, target))
    changes = _changes(source, target, failing)
    if built and all(_pruned(source, facts, c, target.most_warps) for c in changes):
        return
    if changes:
        line, label = min(c.line for c in changes), f"{OPTION} at most {target.most_warps}"
        variant: dict[str, bool | str] = {"failing": ",".join(failing), "at_launch": False}
        yield Site(line, label, variant=variant, latent=_latent(changes, target) if built else "")
        if failing:
            yield Site(line, f"{label} at launches", variant={**variant, "at_launch": True})


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every place of the file at once."""
    source = parse_triton(kernel)
    failing = tuple(n for n in str(site.variant["failing"]).split(",") if n)
    changes = _changes(source, target, failing, at_launch=bool(site.variant["at_launch"]))
    return apply_edits(kernel, source, [c.edit for c in changes])


def _failing(facts: Facts, target: Target) -> Iterator[str]:
    """Kernels that were launched with more threads than the target allows."""
    for name, known in facts.kernels.items():
        if (known.number("launch.threads_per_workgroup") or 0) > target.max_threads_per_workgroup:
            yield name


def _changes(
    source: TritonSource, target: Target, failing: tuple[str, ...], *, at_launch: bool = False
) -> list[_Change]:
    """What to edit. Literals chosen by vendor only where nothing else explains a failure."""
    limit = target.most_warps
    over = [d for d in decisions(source) if limit < d.warps <= _MOST]
    open_ones = [d for d in over if not d.guarded]
    chosen = open_ones if open_ones or not failing else over
    changes = [_change(source, with_fields(d, at_launch=d.at_launch or at_launch), limit) for d in chosen]
    explained = {d.sink.kernel for d in chosen}
    for sink in sinks(source):
        if sink.kernel in failing and sink.kernel not in explained and not understood(source, sink):
            edit = _wrapped(source, sink.value, limit)
            changes += [_Change(edit, source.line(sink.value), 0)] if edit is not None else []
    return changes


def _change(source: TritonSource, decision: Decision, limit: int) -> _Change:
    """One literal: dropped with its config or from a list of choices that keeps others, else lowered."""
    node, config = decision.node, decision.sink.config
    edit = replace(source, node, str(limit))
    if decision.at_launch and int_value(decision.sink.value) is None:
        edit = _wrapped(source, decision.sink.value, limit) or edit
    elif config is not None and node is decision.sink.value:
        edit = _without_config(source, config, limit) or edit
    elif config is not None and decision.choices is not None:
        edit = _without_choice(source, decision.choices, node, limit) or edit
    return _Change(edit, source.line(node), decision.warps, config)


def _without_config(source: TritonSource, config: Config, limit: int) -> Edit | None:
    """The list without the config; None where all of it asks for too much, or where it stands in no list."""
    found = siblings(source, config)
    if found is None or all(_over(c.options.get(OPTION), limit) for c in found[1]):
        return None
    display = found[0]
    elements: list[cst.CSTNode] = list(display.elements)
    return drop_element(source, elements, next(e for e in display.elements if e.value is config.call))


def _without_choice(
    source: TritonSource, choices: cst.List | cst.Tuple, node: cst.BaseExpression, limit: int
) -> Edit | None:
    """The list that configs are made from, without the element; None where too little of it would be left."""
    kept = [e for e in choices.elements if not _over(e.value, limit)]
    if len(kept) < (1 if isinstance(choices, cst.List) else 2):
        return None
    if "\n" not in source.code(choices):
        texts = ", ".join(source.code(e.value) for e in kept)
        return replace(source, choices, f"[{texts}]" if isinstance(choices, cst.List) else texts)
    elements: list[cst.CSTNode] = list(choices.elements)
    return drop_element(source, elements, next(e for e in choices.elements if e.value is node))


def _over(node: cst.BaseExpression | None, limit: int) -> bool:
    return (int_value(node) or 0) > limit


def _wrapped(source: TritonSource, value: cst.BaseExpression, limit: int) -> Edit | None:
    text = source.code(value)
    return None if text.startswith(f"min({limit}, ") else replace(source, value, f"min({limit}, {text})")


def _pruned(source: TritonSource, facts: Facts, change: _Change, limit: int) -> bool:
    """Whether the file's own pruning left nothing above the limit of the list that the change is about."""
    if change.config is None:
        return False
    for name, function in source.functions.items():
        if any(c.call is change.config.call for c in source.configs_of(function)):
            recorded = facts.for_kernel(name).names("launch.configs")
            warps = [int(n) for text in recorded for n in re.findall(r"num_warps=(\d+)", text)]
            if not warps or max(warps) > limit:
                return False
    return True


def _latent(changes: list[_Change], target: Target) -> str:
    """What would fail, and where, in one sentence."""
    lines = sorted({c.line for c in changes})
    warps, width = max(c.warps for c in changes), target.wavefront_size
    place = f"line {lines[0]}" if len(lines) == 1 else f"lines {', '.join(map(str, lines))}"
    verb = "gives" if len(lines) == 1 else "give"
    threads = f"{warps * width} threads per workgroup > {target.max_threads_per_workgroup} on {target.arch}"
    return f"{place} {verb} {warps} warps x {width} lanes = {threads}"
