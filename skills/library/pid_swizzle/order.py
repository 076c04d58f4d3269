"""The order in which programs take tiles, as jit helpers that are bijections for any grid.

Hardware deals workgroups to the dies (XCDs) round robin in launch order, so program i runs on XCD i % XCDS. Checked
exhaustively in `tests/test_skills_swizzle.py`.
"""

from __future__ import annotations

REMAP = '''@triton.jit
def _neighbours_on_one_xcd(pid, programs, XCDS: tl.constexpr):
    """Renumber programs so that each XCD, dealt every XCDS-th, works on consecutive tiles. A bijection for any grid."""
    xcd = pid % XCDS
    longer = programs % XCDS  # that many XCDs get one program more
    share = programs // XCDS
    return xcd * share + tl.minimum(xcd, longer) + pid // XCDS
'''

GROUPED = '''@triton.jit
def _grouped_tiles(pid, tiles_0, tiles_1, GROUP: tl.constexpr):
    """Tile coordinates in groups of GROUP rows, so that neighbouring programs share operands. A bijection."""
    width = GROUP * tiles_1
    first = (pid // width) * GROUP
    rows = tl.minimum(tiles_0 - first, GROUP)
    return first + (pid % width) % rows, (pid % width) // rows
'''


def remapped(pid: int, programs: int, xcds: int) -> int:
    """What `_neighbours_on_one_xcd` computes."""
    xcd = pid % xcds
    return xcd * (programs // xcds) + min(xcd, programs % xcds) + pid // xcds


def grouped(pid: int, tiles_0: int, tiles_1: int, group: int) -> tuple[int, int]:
    """What `_grouped_tiles` computes."""
    width = group * tiles_1
    first = pid // width * group
    rows = min(tiles_0 - first, group)
    return first + pid % width % rows, pid % width // rows
