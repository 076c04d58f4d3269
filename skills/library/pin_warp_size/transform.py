"""`warpSize`, the field of that name and PyTorch's names for it become 32."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.hip_source import Edit, HipSource
from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_edit import defined_names, plain_uses, postfix_start, rewritten, sites
from skills.facts import Facts
from skills.skill import Refusal, Site


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site for the whole file."""
    source = HipSource(kernel.source)
    return sites(source, _edits(source), "warp size 32")


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """Every read of the warp size becomes 32."""
    return rewritten(kernel, _edits(HipSource(kernel.source)))


def _edits(source: HipSource) -> list[Edit]:
    edits = [Edit(t.start, t.end, "32") for _, t in plain_uses(source, frozenset({"C10_WARP_SIZE"}))]
    if _declares_own(source):
        return edits
    for i, token in enumerate(source.code):
        after = source.code[i + 1].text if i + 1 < len(source.code) else ""
        before = source.code[i - 1].text if i else ""
        if token.text == "warpSize" and after != "=" and before not in ("define", "ifdef", "ifndef", "undef"):
            start = postfix_start(source, i) if before in (".", "->") else i
            edits.append(Edit(source.code[start].start, token.end, "32"))
        elif token.text == "warp_size" and before == "::" and _words_before(source, i) == ["at", "cuda"]:
            close = source.matching(i + 1) if after == "(" else None
            if close is not None:
                edits.append(Edit(source.code[i - 4].start, source.code[close].end, "32"))
    return edits


def _declares_own(source: HipSource) -> bool:
    """A variable, parameter or macro of the user's own is called warpSize."""
    if "warpSize" in defined_names(source):
        return True
    code = source.code
    kinds = ("int", "unsigned", "auto", "size_t", "uint32_t", "int32_t", "short", "long")
    return any(t.text == "warpSize" and i and code[i - 1].text in kinds for i, t in enumerate(code))


def _words_before(source: HipSource, index: int) -> list[str]:
    return [source.code[j].text for j in (index - 4, index - 2) if j >= 0]
