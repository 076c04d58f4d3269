"""Reads CUDA before anything is compiled: idioms that build on AMD and then mean something else, or run badly."""

from __future__ import annotations

import re
from collections.abc import Iterator

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

from agent.port.result import Finding
from sandbox.hip_guards import live_text
from sandbox.hip_source import HipSource
from skills.cuda_tree import walk

_COLLECTIVE = re.compile(
    r"^(?:wavesmith::)?__(?:shfl\w*_sync|ballot_sync|any_sync|all_sync|match_\w+_sync|reduce_\w+_sync|syncwarp)$"
)
_FULL_MASK = re.compile(r"0[xX][fF]{8}|~0|-1|FULL|ALL|UINT_MAX|0xFFFFFFFF")
_LANE = re.compile(r"threadIdx|\blane|\btid\b|\bwarp_?id\b|\bwid\b|laneid")


def lint(path: str, text: str) -> list[Finding]:
    """Findings of one file; none of them keeps a port from being tried, execution decides."""
    source = HipSource(text)
    live = live_text(source)
    tree = Parser(Language(tree_sitter_cuda.language())).parse(live.encode("utf-8", "replace"))
    findings = [*_divergent_collectives(path, tree.root_node), *_waits(path, tree.root_node)]
    findings += list(_patterns(path, source, live))
    return sorted(findings, key=lambda f: (f.line, f.kind))


def _text(node: Node | None) -> str:
    return (node.text or b"").decode("utf-8", "replace") if node is not None else ""


def _divergent_collectives(path: str, root: Node) -> Iterator[Finding]:
    """Full-mask collectives under a condition that differs within a warp: undefined in CUDA, other lanes on AMD."""
    for node in walk(root):
        if node.type != "call_expression" or not _COLLECTIVE.match(_text(node.child_by_field_name("function"))):
            continue
        arguments = node.child_by_field_name("arguments")
        if arguments is None or not _FULL_MASK.search(
            _text(arguments.named_children[0] if arguments.named_children else None)
        ):
            continue
        above = node.parent
        while above is not None and above.type != "function_definition":
            if above.type == "if_statement":
                condition = _text(above.child_by_field_name("condition"))
                if re.search(r"\blane\w*\s*[<>]=?\s*\w|threadIdx\.x\s*[<>]=?\s*(?!32\b)\d", condition):
                    name = _text(node.child_by_field_name("function"))
                    message = f"{name} with a full mask under `{condition}`: lanes that are not there are named"
                    yield Finding("divergent-collective", path, node.start_point[0] + 1, message, False)
                    break
            above = above.parent


def _waits(path: str, root: Node) -> Iterator[Finding]:
    """Loops that wait for another thread: two logical warps share a wavefront, and one may wait forever."""
    for node in walk(root):
        if node.type not in ("while_statement", "do_statement", "for_statement"):
            continue
        condition = _text(node.child_by_field_name("condition"))
        if re.search(r"atomic(CAS|Exch|Add|Or)\w*\s*\(|\bvolatile\b|\.load\s*\(", condition):
            message = f"waits in a loop on `{condition[:60]}`: lanes of one wavefront do not progress independently"
            yield Finding("spin-wait", path, node.start_point[0] + 1, message, False)


def _patterns(path: str, source: HipSource, live: str) -> Iterator[Finding]:
    for kind, pattern, message in _TEXTUAL:
        m = re.search(pattern, live)
        if m is not None:
            yield Finding(kind, path, source.line_of(m.start()), message, False)


_TEXTUAL = (
    ("half-wave-block", r"<<<[^;>]*,\s*32\s*[,>]", "blocks of 32 threads leave half of each wavefront idle"),
    (
        "capability-query", r"ComputeCapabilityM(ajor|inor)|\.major\b|->major\b",
        "compute capability is answered with the value the guards were resolved to",
    ),
    (
        "legacy-warp", r"(?<![\w:])__(shfl|shfl_up|shfl_down|shfl_xor|ballot|any|all)\s*\(",
        "warp intrinsics without a mask: 64 lanes on AMD unless pinned to 32",
    ),
    (
        "volatile-shared", r"\bvolatile\s+\w+\s*\*|__shared__\s+volatile|volatile\s+__shared__",
        "volatile shared memory relies on lock step",
    ),
    (
        "warp-shaped-array", r"__shared__[^;=]*\[\s*32\s*\]",
        "an array of 32 slots, one per warp: right as long as warps have 32 lanes",
    ),
)  # fmt: skip
