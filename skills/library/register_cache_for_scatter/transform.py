"""`atomicAdd` in a loop of one thread: the last two addresses are kept in registers with what is still to be added."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_atomics import NotAssuredError
from skills.cuda_edit import rewritten
from skills.cuda_scatter import MAX_SUMS, Merged, Scatter, merge_edits, scatters
from skills.cuda_tree import CudaFile, KernelTree
from skills.facts import Facts
from skills.skill import Refusal, Site

HELPER = "wavesmith_scatter_cache"
_HELPER_TEXT = f"""\
// The last two addresses that a thread added to, and what is still to be added there: a run of updates of one row
// becomes one atomic. Nothing is lost as long as `flush` is called.
template <typename T>
struct {HELPER} {{
  T* newer = nullptr;
  T* older = nullptr;
  T newer_sum = T(0);
  T older_sum = T(0);

  __device__ __forceinline__ void add(T* address, T value) {{
    if (address == newer) {{
      newer_sum += value;
    }} else if (address == older) {{
      older_sum += value;
    }} else {{
      if (older != nullptr) atomicAdd(older, older_sum);
      older = newer;
      older_sum = newer_sum;
      newer = address;
      newer_sum = value;
    }}
  }}

  __device__ __forceinline__ void flush() {{
    if (older != nullptr) atomicAdd(older, older_sum);
    if (newer != nullptr) atomicAdd(newer, newer_sum);
  }}
}};
"""


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel, for all loops that scatter."""
    tree = CudaFile(kernel.source).kernel(str(facts["kernel.name"] or ""))
    if tree is None:
        return
    try:
        found = _few(tree)
    except NotAssuredError:
        return
    yield Site(found[0].loop.start_point[0] + 1, ", ".join(dict.fromkeys(s.base for s in found)), tree.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """A cache in front of each loop, additions to it inside, and its flush behind."""
    tree = CudaFile(kernel.source).kernel(site.kernel or "")
    if tree is None:
        return None
    try:
        merged = [Merged(s, s.loop, f"{HELPER}<{s.type}>") for s in _few(tree)]
    except NotAssuredError:
        return None
    return rewritten(kernel, merge_edits(tree.file, merged, {HELPER: _HELPER_TEXT}, "cache"))


def _few(tree: KernelTree) -> list[Scatter]:
    """Raises `NotAssuredError` when there is no scatter that may be merged, or too many."""
    found = scatters(tree)
    if len(found) > MAX_SUMS:
        raise NotAssuredError("more sums than registers should hold")
    return found
