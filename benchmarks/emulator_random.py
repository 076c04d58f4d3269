"""Random C programs on the host and in the emulator, in numbers: `python benchmarks/emulator_random.py 2000`.

Programs are compiled in groups by the same clang for the host and for both architectures; a line is printed for each
program whose results differ, and whether they do without the optimiser too (-O0, -O1): a difference that needs -O2 may
be the compiler's. Exits with 1 if one differed.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "emulator"))

import random_programs
from random_programs import ITEMS, RESULTS, differences

GROUP = 20


def unoptimised(line: str, archs: tuple[str, ...]) -> str:
    """In words, at which lower optimisation levels the program of a difference's line differs as well."""
    match = re.search(r"program (\d+)", line)
    assert match is not None
    seed, flags, said = int(match[1]), random_programs.FLAGS, []
    for level in ("-O0", "-O1"):
        random_programs.FLAGS = (level, *flags[1:])
        try:
            with tempfile.TemporaryDirectory() as folder:
                differs = bool(differences(range(seed, seed + 1), archs, Path(folder)))
            said.append(f"{level} {'differs' if differs else 'agrees'}")
        finally:
            random_programs.FLAGS = flags
    return ", ".join(said)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, help="number of programs")
    parser.add_argument("--start", type=int, default=1000, help="seed of the first one (the test suite uses 0 to 39)")
    parser.add_argument("--arch", nargs="+", default=["gfx942", "gfx950"])
    arguments = parser.parse_args()
    wrong, done, began = 0, 0, time.monotonic()
    for start in range(arguments.start, arguments.start + arguments.count, GROUP):
        seeds = range(start, min(start + GROUP, arguments.start + arguments.count))
        with tempfile.TemporaryDirectory() as folder:
            lines = differences(seeds, tuple(arguments.arch), Path(folder))
        for line in lines:
            print(f"{line}; {unoptimised(line, tuple(arguments.arch))}", flush=True)
        wrong += len(lines)
        done += len(seeds)
        rate = done / (time.monotonic() - began)
        print(f"{done} programs, {wrong} differences, {rate:.1f} programs/s", file=sys.stderr, flush=True)
    words = done * ITEMS * RESULTS * len(arguments.arch)
    print(f"{done} programs x {', '.join(arguments.arch)}: {words:,} result words compared, {wrong} programs differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
