"""Targets are data: every file loads, every value has a source, and bad names are refused with the choices."""

import pytest

from sandbox.errors import InputError
from sandbox.target import known_archs, load_target


def test_the_promised_architectures_and_boards_are_there() -> None:
    boards = {arch: set(load_target(arch).boards) for arch in known_archs()}
    assert boards == {
        "gfx90a": {"MI250X"},
        "gfx942": {"MI300X", "MI300A", "MI325X"},
        "gfx950": {"MI350X", "MI355X"},
        "sm_90": {"H100", "H200"},
    }


@pytest.mark.parametrize("arch", known_archs())
def test_every_value_has_a_source(arch: str) -> None:
    target = load_target(arch)
    assert "*" in target.isa_sources
    assert set(target.isa_sources) <= {"*", *type(target).model_fields}
    for board in target.boards.values():
        assert "*" in board.sources
        assert set(board.sources) <= {"*", *type(board).model_fields}
        assert all(len(s) > 5 for s in board.sources.values())


def test_peaks_follow_from_units_and_clock() -> None:
    """2,048 bf16 FLOPs per CU and cycle on CDNA3, 4,096 on CDNA4 (MFMA 32x32x8 in 16, 32x32x16 in 8 passes of 4)."""
    for name, flops in (("MI300X", 2048), ("MI325X", 2048), ("MI300A", 2048), ("MI350X", 4096), ("MI355X", 4096)):
        board = load_target(name).board
        expected = board.compute_units * board.max_clock_ghz * flops / 1000
        assert board.peak_tflop_per_s["bf16"] == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "arch", "board"),
    [
        ("gfx950", "gfx950", "MI350X"),
        ("GFX942", "gfx942", "MI300X"),
        ("gfx942:sramecc+:xnack-", "gfx942", "MI300X"),
        ("mi355x", "gfx950", "MI355X"),
        ("H200", "sm_90", "H200"),
    ],
)
def test_names_are_resolved_once_at_the_border(name: str, arch: str, board: str) -> None:
    target = load_target(name)
    assert (target.arch, target.board.name) == (arch, board)


@pytest.mark.parametrize("name", ["gfx1100", "", "gfx", "MI999", "../gfx950", "sm_90a"])
def test_unknown_names_are_refused_with_the_choices(name: str) -> None:
    with pytest.raises(InputError, match="not a known target.*gfx950.*MI300X"):
        load_target(name)


def test_boards_of_another_architecture_are_refused() -> None:
    with pytest.raises(InputError, match="gfx950 has no board named MI300X"):
        load_target("gfx950").on("MI300X")


@pytest.mark.parametrize(
    ("arch", "vgprs", "lds_bytes", "waves", "expected"),
    [
        ("gfx942", 64, 0, 4, (8, "waves")),
        ("gfx942", 65, 0, 4, (7, "vgpr")),
        ("gfx942", 128, 0, 4, (4, "vgpr")),
        ("gfx942", 512, 0, 4, (1, "vgpr")),
        ("gfx942", 32, 65536, 4, (1, "lds")),
        ("gfx942", 32, 65537, 4, (0, "lds")),
        ("gfx950", 32, 65536, 4, (2, "lds")),
        ("gfx950", 32, 163840, 8, (2, "lds")),
    ],
)
def test_occupancy_and_its_limiter(
    arch: str, vgprs: int, lds_bytes: int, waves: int, expected: tuple[int, str]
) -> None:
    assert load_target(arch).occupancy(vgprs, lds_bytes, waves) == expected
