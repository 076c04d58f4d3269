"""Random C programs on the host and in the emulator, in numbers: `python benchmarks/emulator_random.py 2000`.

Programs are compiled in groups by the same clang for the host and for both architectures; a line is printed for each
program whose results differ. LLVM 22 miscompiles programs 1752 (tests/emulator/structurizer.py) and 1950
(tests/emulator/zero_signs.py); a difference is counted as the compiler's only where one of these two shows that.
Exits with 1 if another differed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "emulator"))

from random_programs import ITEMS, RESULTS, differences, host_results, source
from structurizer import OPT, lost_by_the_structurizer
from zero_signs import lost_by_a_minimum

GROUP = 20


def explained(line: str) -> str:
    """How the compiler came to the difference of a line, or nothing where that was not shown."""
    match = re.match(r"(gfx\w+) program (\d+)", line)
    assert match is not None
    arch, seed = match[1], int(match[2])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        expected = host_results({seed: source(seed)}, folder)[seed]
        if OPT is not None and lost_by_the_structurizer(seed, arch, folder, expected):
            return "LLVM, which loses a value in StructurizeCFG"
        if lost_by_a_minimum(seed, arch, folder, expected):
            return "LLVM, which loses the sign of a zero in a minimum or maximum"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, help="number of programs")
    parser.add_argument("--start", type=int, default=1000, help="seed of the first one (the test suite uses 0 to 23)")
    parser.add_argument("--arch", nargs="+", default=["gfx942", "gfx950"])
    arguments = parser.parse_args()
    wrong, lost, done, began = 0, 0, 0, time.monotonic()
    for start in range(arguments.start, arguments.start + arguments.count, GROUP):
        seeds = range(start, min(start + GROUP, arguments.start + arguments.count))
        with tempfile.TemporaryDirectory() as folder:
            lines = differences(seeds, tuple(arguments.arch), Path(folder))
        for line in lines:
            why = explained(line)
            print(f"{line}{'; ' if why else ''}{why}", flush=True)
            wrong, lost = wrong + (not why), lost + bool(why)
        done += len(seeds)
        rate = done / (time.monotonic() - began)
        print(f"{done} programs, {wrong} differences, {rate:.1f} programs/s", file=sys.stderr, flush=True)
    words = done * ITEMS * RESULTS * len(arguments.arch)
    print(f"{done} programs x {', '.join(arguments.arch)}: {words:,} result words compared, {wrong} differences, "
          f"{lost} shown to be the compiler's")  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
