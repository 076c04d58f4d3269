"""`atomicAdd` in a loop of one thread: the sum for one address is kept in a register until the address changes."""

from __future__ import annotations

from collections.abc import Iterable

from sandbox.kernel import Kernel
from sandbox.target import Target
from skills.cuda_atomics import NotAssuredError
from skills.cuda_edit import rewritten
from skills.cuda_runs import run_loop
from skills.cuda_scatter import MAX_SUMS, Merged, Scatter, merge_edits, scatters
from skills.cuda_tree import CudaFile, KernelTree
from skills.facts import Facts
from skills.skill import Refusal, Site

ROW_SUM = "wavesmith_row_sum"
RUN_SUM = "wavesmith_run_sum"
SUM = "wavesmith_sum"
_HELPERS = {
    ROW_SUM: f"""\
// The row that a thread is adding to, the address that it means, and what is still to be added there: a run of updates
// of one row becomes one atomic. Equal rows mean equal addresses. Nothing is lost as long as `flush` is called.
template <typename T, typename Row>
struct {ROW_SUM} {{
  bool started = false;
  Row row = Row();
  T* address = nullptr;
  T sum = T(0);

  __device__ __forceinline__ void add(Row next, T* next_address, T value) {{
    if (!started) {{
      started = true;
      row = next;
      address = next_address;
    }} else if (next != row) {{
      flush();
      row = next;
      address = next_address;
      sum = T(0);
    }}
    sum += value;
  }}

  __device__ __forceinline__ void flush() {{
    if (started) atomicAdd(address, sum);
  }}
}};
""",
    RUN_SUM: f"""\
// The address that a thread is adding to, and what is still to be added there: a run of updates of one address becomes
// one atomic. Nothing is lost as long as `flush` is called.
template <typename T>
struct {RUN_SUM} {{
  T* address = nullptr;
  T sum = T(0);

  __device__ __forceinline__ void add(T* next_address, T value) {{
    if (next_address != address) {{
      flush();
      address = next_address;
      sum = T(0);
    }}
    sum += value;
  }}

  __device__ __forceinline__ void flush() {{
    if (address != nullptr) atomicAdd(address, sum);
  }}
}};
""",
    SUM: f"""\
// What a thread has still to add to an address that never changes. Nothing is lost as long as `flush` is called.
template <typename T>
struct {SUM} {{
  T* address = nullptr;
  T sum = T(0);

  __device__ __forceinline__ void add(T* same_address, T value) {{
    address = same_address;
    sum += value;
  }}

  __device__ __forceinline__ void flush() {{
    if (address != nullptr) atomicAdd(address, sum);
  }}
}};
""",
}


def find(kernel: Kernel, facts: Facts, target: Target) -> Iterable[Site | Refusal]:
    """One site per kernel, for all loops that scatter."""
    tree = CudaFile(kernel.source).kernel(str(facts["kernel.name"] or ""))
    merged = _merged(tree) if tree is not None else []
    if tree is not None and merged:
        bases = dict.fromkeys(m.scatter.base for m in merged)
        yield Site(merged[0].loop.start_point[0] + 1, ", ".join(bases), tree.name)


def transform(kernel: Kernel, site: Site, target: Target) -> Kernel | None:
    """A sum in front of each loop, additions to it inside, and its flush behind."""
    tree = CudaFile(kernel.source).kernel(site.kernel or "")
    return rewritten(kernel, merge_edits(tree.file, _merged(tree), _HELPERS, "pending")) if tree is not None else None


def _merged(tree: KernelTree) -> list[Merged]:
    """What can be summed; empty when that is nothing, or more than registers should hold."""
    try:
        found = [_sum_of(tree, s) for s in scatters(tree)]
    except NotAssuredError:
        return []
    return found if len(found) <= MAX_SUMS else []


def _sum_of(tree: KernelTree, scatter: Scatter) -> Merged:
    """By row where the block has one row at a time, else by address: a flag that differs between lanes costs more."""
    run = run_loop(tree, scatter.call)
    if run is None:
        return Merged(scatter, scatter.loop, f"{RUN_SUM}<{scatter.type}>")
    loop, key = run
    if not key.text:
        return Merged(scatter, loop, f"{SUM}<{scatter.type}>")
    return Merged(scatter, loop, f"{ROW_SUM}<{scatter.type}, {key.type}>", (key.text,))
