"""How much of a folder of Triton files the emulator runs to the end, and whether it agrees with the interpreter.

    python benchmarks/emulator_coverage.py DIR [--count 60] [--seed 0] [--results FILE] [--minutes M] [--again REGEX]

Made for TritonBench-G (`data/TritonBench_G_v1` of thunlp/TritonBench). Files are taken in a seeded order until
`--count` of them have launches that all compile for both architectures. Each file is run once in the corrected
interpreter; then every distinct launch is repeated in the emulator from its recorded inputs. Grids of more than
`--whole` workgroups are sampled: first, last, tail of each axis and 64 seeded ones; results are compared where every
writer ran.

A tensor ends at its last byte here ("strict"), where on a device more memory follows: torch's allocator gives blocks
of 512 bytes out of segments of 2 MiB and more, and the hardware faults only outside mapped pages. Kernels that read
without a mask past their tensors (a tile larger than the tensor, a pointer that runs ahead of the loop) therefore run
on a device and trap here, and what they read is not defined there. Such a launch is run again with the rest of its
512-byte blocks, then with 1 MiB behind each tensor, and listed with the first byte it reached; results are compared
where a block is enough, and count as "ran" where they are not. A launch that leaves even those is wrong on a device
too: "trapped".

One JSON line per file is appended to the results; a second run leaves out what is there (`--again` repeats the files
whose name matches). A launch over 30 s of processor time counts as not run to the end.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.tritonbench import one_line, read
from sandbox.capture import Capture, capture
from sandbox.compiling import Compiled
from sandbox.emulated_launch import CannotRepeat, Repeated, compiled_for, launch_key, repeat_launch, sample_grid
from sandbox.errors import WavesmithError
from sandbox.isolation import Limits
from sandbox.kernel import load_kernel
from sandbox.target import load_target
from sandbox.workload import Launch

ARCHS = ("gfx942", "gfx950")
LAUNCH_S = 30.0
BUDGET = 200_000_000
"""Wave instructions of one launch; the fast core does some millions a second."""
RAN = ("agrees", "differs", "ran", "order")
BLOCK_BYTES = 512
"""What torch's caching allocator rounds sizes up to (c10/cuda/CUDACachingAllocator, kMinBlockSize)."""
SLACK_BYTES = 1 << 20
"""Memory behind each tensor when a launch that leaves its blocks is run once more, as it would go on a device."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--whole", type=int, default=256, help="grids up to so many workgroups run whole")
    parser.add_argument("--results", type=Path, default=Path("emulator_coverage.jsonl"))
    parser.add_argument("--minutes", type=float, default=1e9, help="start no further file after so long")
    parser.add_argument("--again", default=None, help="repeat files whose name matches")
    options = parser.parse_args()
    files = sorted(options.folder.glob("*.py"))
    random.Random(options.seed).shuffle(files)
    known = read(options.results)
    rows: list[dict[str, Any]] = []
    end = time.monotonic() + 60 * options.minutes
    for file in files:
        if sum(row["compiles"] for row in rows) >= options.count:
            break
        row = known.get(file.name)
        if row is None or (options.again is not None and re.search(options.again, file.name)):
            if time.monotonic() > end:
                break
            row = measure(file, options.whole)
            with options.results.open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(line(row), flush=True)
        rows.append(row)
    print(summary(rows))


def measure(file: Path, whole: int) -> dict[str, Any]:
    """One file: recorded, compiled, emulated. `compiles`: it launches kernels, and all build for both targets."""
    began = time.monotonic()
    row: dict[str, Any] = {"file": file.name, "compiles": False, "launches": [], "reason": "", "harness": "none"}
    targets = [load_target(name) for name in ARCHS]
    try:
        limits = Limits(wall_s=240.0, launch_s=20.0)
        taken = capture(load_kernel(file), targets[0], also=targets[1:], executor="interpreter", limits=limits)
    except WavesmithError as e:
        return {**row, "reason": one_line(str(e))}
    row |= {"harness": taken.outcome.status, "reason": one_line(taken.outcome.exception or "")}
    recorded = taken.launches if taken.outcome.form != "static" else ()
    distinct = {launch_key(launch): launch for launch in reversed(recorded) if 0 not in launch.grid}
    row["compiles"] = bool(distinct) and all(c.launches for launch in distinct.values() for c in launch.compiles)
    if row["compiles"]:
        for launch in reversed(distinct.values()):
            row["launches"] += list(emulated(taken, launch, whole))
    return {**row, "seconds": round(time.monotonic() - began, 1)}


def emulated(taken: Capture, launch: Launch, whole: int) -> Iterator[dict[str, Any]]:
    """One row per architecture. `status`: agrees, differs, ran (nothing to compare), order (the result depends on the
    order of workgroups), or why it did not end. `strict` says what happens where a tensor ends at its last byte.
    """
    numbers = sample_grid(launch.grid, whole)
    for arch in ARCHS:
        row: dict[str, Any] = {"kernel": launch.kernel, "grid": list(launch.grid), "arch": arch, "run": len(numbers)}
        compiled = compiled_for(taken.stored, launch, arch)
        if compiled is None:
            yield {**row, "status": "not compiled", "reason": ""}
            continue

        def repeat(compiled: Compiled = compiled, **change: Any) -> Repeated:
            return repeat_launch(
                taken.stored, launch, compiled, workgroups=numbers, instruction_budget=BUDGET, **change
            )  # fmt: skip

        began = time.process_time()
        try:
            done = repeat()
            seconds, strict, room = time.process_time() - began, done.result, "tensor"
            for name, more in (("block", {}), ("segment", {"slack_bytes": SLACK_BYTES})):
                if done.result.status == "trapped" and "out_of_bounds_global" in done.result.reason:
                    done, room = repeat(block_bytes=BLOCK_BYTES, **more), name
            status = verdict(done, seconds, repeat)
            outside = done.result.completed and room != "tensor"
            if outside and (room == "segment" or status in ("differs", "order")):
                status = "ran"  # what it read outside its tensors is not defined
        except (CannotRepeat, WavesmithError) as e:
            yield {**row, "status": "not repeatable", "reason": one_line(str(e))}
            continue
        result = done.result
        found = [f"{m.place}: {m.message}" for m in done.wrong or done.mismatches] + [str(f) for f in result.findings]
        yield {
            **row, "status": status, "strict": strict.status, "room": room,
            "reason": one_line(strict.reason or result.reason), "unsupported": result.unsupported,
            "core": result.core, "instructions": result.instructions,
            "seconds": round(seconds, 2), "compared": done.compared, "exact_rule": not done.mismatches,
            "found": [one_line(f) for f in found[:3]],
            "interpreter": launch.execution.reason or launch.execution.status,
            "interpreter_findings": [one_line(f) for f in launch.execution.findings[:2]],
        }  # fmt: skip


def verdict(done: Repeated, seconds: float, repeat: Callable[..., Repeated]) -> str:
    if not done.result.completed:
        return done.result.status
    if seconds > LAUNCH_S:
        return "budget"
    if not done.wrong:
        return "agrees" if done.compared else "ran"
    orders = {repeat(schedule=order, slack_bytes=SLACK_BYTES).digest for order in ("sequential", "reverse", "lockstep")}
    return "order" if len(orders) > 1 else "differs"


def line(row: Mapping[str, Any]) -> str:
    counts = Counter(launch["status"] for launch in row["launches"])
    said = ", ".join(f"{n} {status}" for status, n in counts.items()) or f"no launch that compiles: {row['reason']}"
    bad = [x for x in row["launches"] if x["status"] not in ("agrees", "ran", "order")]
    why = f"  {bad[0]['arch']} {bad[0]['kernel']}: {bad[0]['reason'] or bad[0]['found']}" if bad else ""
    return f"{row['file'][:40]:40} {row.get('seconds', 0):6} s  {said}{why}"


def summary(rows: list[dict[str, Any]]) -> str:
    used = [row for row in rows if row["compiles"]]
    launches = [launch for row in used for launch in row["launches"]]
    lines = [f"\n{len(rows)} files looked at, {len(used)} with launches that all compile for {' and '.join(ARCHS)}"]
    for arch in ARCHS:
        mine = [launch for launch in launches if launch["arch"] == arch]
        counts = Counter(launch["status"] for launch in mine)
        ended = sum(counts[s] for s in RAN)
        strict = sum(launch.get("strict") == "completed" and launch["status"] in RAN for launch in mine)
        rooms = Counter(launch.get("room") for launch in mine if launch["status"] in RAN)
        share = f"{ended / max(1, len(mine)):.1%}"
        exact = sum(launch["status"] == "agrees" and launch["exact_rule"] for launch in mine)
        lines.append(f"{arch}: {len(mine)} distinct launches, {ended} run to the end ({share}): "
                     f"{strict} inside their tensors, {rooms['block']} only with the rest of a {BLOCK_BYTES}-byte "
                     f"block, {rooms['segment']} only with memory behind them; "
                     f"{counts['agrees'] + counts['differs']} compared, {counts['agrees']} agree ({exact} by the "
                     f"candidates' rule, the others as a whole), {counts['order']} depend on the order of "
                     "workgroups")  # fmt: skip
        lines += [f"    {n} {status}" for status, n in counts.most_common() if status not in RAN]
    missing = Counter((x["unsupported"], x["arch"]) for x in launches if x.get("unsupported"))
    lines += [f"not implemented: {opcode} ({arch}), {n} launches" for (opcode, arch), n in missing.most_common()]
    left = [x for x in launches if x.get("strict") == "trapped"]
    seen = sum(any("out-of-bounds" in f for f in x["interpreter_findings"]) for x in left)
    lines.append(f"{len(left)} launches leave their tensors; the interpreter reports such an access in {seen} of them")
    lines += [f"{x['status']} ({x.get('room', 'tensor')}): {x['arch']} {x['kernel']}: {x['reason'] or x['found']}; "
              f"interpreter: {x.get('interpreter_findings') or x.get('interpreter')}" for x in launches
              if x in left or x["status"] not in ("agrees", "ran", "order")]  # fmt: skip
    return "\n".join(lines)


if __name__ == "__main__":
    main()
