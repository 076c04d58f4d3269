"""The program orders of pid-swizzle are bijections for every grid, and the inserted jit helpers compute them."""

from types import SimpleNamespace

import pytest

from skills.library.pid_swizzle.order import GROUPED, REMAP, grouped, remapped


def compiled(text: str, name: str):
    """The helper as plain Python: integer arithmetic means the same there."""
    names = {"triton": SimpleNamespace(jit=lambda f: f), "tl": SimpleNamespace(minimum=min, constexpr=int)}
    exec(text, names)
    return names[name]


@pytest.mark.parametrize("xcds", [1, 2, 4, 6, 8])
def test_xcd_order_is_a_bijection_for_any_grid(xcds: int) -> None:
    helper = compiled(REMAP, "_neighbours_on_one_xcd")
    for programs in [*range(1, 200), 304, 1023, 4097]:
        order = [remapped(p, programs, xcds) for p in range(programs)]
        assert sorted(order) == list(range(programs))
        assert order == [helper(p, programs, xcds) for p in range(programs)]


@pytest.mark.parametrize("xcds", [6, 8])
def test_each_xcd_gets_consecutive_tiles(xcds: int) -> None:
    for programs in (72, 73, 79, 500):
        for xcd in range(xcds):
            tiles = [remapped(p, programs, xcds) for p in range(xcd, programs, xcds)]
            assert tiles == list(range(tiles[0], tiles[0] + len(tiles)))


@pytest.mark.parametrize("group", [1, 3, 8])
def test_grouped_order_is_a_bijection_for_any_grid(group: int) -> None:
    helper = compiled(GROUPED, "_grouped_tiles")
    for rows in range(1, 20):
        for columns in (1, 2, 7, 16):
            tiles = [grouped(p, rows, columns, group) for p in range(rows * columns)]
            assert sorted(tiles) == [(r, c) for r in range(rows) for c in range(columns)]
            assert tiles == [helper(p, rows, columns, group) for p in range(rows * columns)]
