"""How long a tiled GEMM will take, from physical constants alone: ranks tile configurations without running any.

The model follows one workgroup through its loop: a K step costs the longest of issuing the matrix instructions, moving
the tile through LDS, through the port of its compute unit, from the shared caches and from HBM, and the part of the
memory latency that the software pipeline does not cover. Workgroups that share a compute unit share its rates; the grid
runs in whole waves. Formulas in the spirit of Origami (arXiv 2610.22230, III-B); constants are rates and latencies of
the hardware, the same for every shape. A prediction is evidence of level `modelled`: good for order, not for time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from sandbox.errors import InputError
from sandbox.target import Dtype, Target

OPERAND_BYTES: dict[Dtype, float] = {
    "fp32": 4,
    "tf32": 4,
    "fp16": 2,
    "bf16": 2,
    "fp8": 1,
    "int8": 1,
    "fp6": 0.75,
    "fp4": 0.5,
}


@dataclass(frozen=True, slots=True)
class Gemm:
    """C[m, n] = A[m, k] B[k, n]; operands of one type, both contiguous along k, 16-bit result."""

    m: int
    n: int
    k: int
    dtype: Dtype = "bf16"
    shuffled: bool = False
    """B lies in memory as matrix instructions want it (aiter's `shuffle_weight`), and goes to registers past LDS."""
    block_scaled: bool = False
    """Every 128 of k have scales of their own: vector instructions add each partial sum to the accumulators."""

    @property
    def operand_bytes(self) -> float:
        return OPERAND_BYTES[self.dtype]


@dataclass(frozen=True, slots=True)
class Tile:
    """One launch configuration. `num_stages` as in Triton: buffers in LDS; `split_k` workgroups share a tile of C."""

    block_m: int
    block_n: int
    block_k: int
    num_warps: int = 4
    num_stages: int = 2
    split_k: int = 1


@dataclass(frozen=True, slots=True)
class Rates:
    """What one architecture can move and hide. Cycles are of the clock under matrix load, bytes per cycle per CU."""

    clock_ghz: float
    """Sustained under matrix load, below the data-sheet maximum."""
    latency_ns: float
    """From issuing a tile's loads to their arrival, HBM miss."""
    port_bytes: float
    """Shared caches to one compute unit, several workgroups resident."""
    single_bytes: float
    """The same for one workgroup alone: its requests in flight limit it first."""
    lds_bytes: float
    """Of 32 banks, which give at most 128."""
    hbm_share: float
    """Part of the data-sheet bandwidth that a copy kernel reaches."""
    cache_gb_per_s: float
    """Shared cache to all compute units together."""
    matrix_efficiency: float
    """Matrix instructions issued back to back reach this part of the peak."""
    step_cycles: float
    """Barrier, address arithmetic and dependent issue of one K step, not hidden within a workgroup."""
    epilogue_cycles: float
    launch_us: float
    fixed_registers: int
    """Registers a lane needs beside accumulators and loads in flight."""


# Latency and single-workgroup rate: read off the num_stages series of a memory-bound GEMM (a 16x64x32 tile: 0.78, 0.46,
# 0.35 us a step with 1, 2, 3 tiles in flight). Port: 64 bytes a cycle. LDS: 128 bytes a cycle.
# CDNA: latency, port, LDS rate and efficiency, and the constants below, were chosen once, within plausible ranges, for
# the order of all measured AMD tiles of one half of the shapes together; the other half was looked at afterwards
# (tests/data/gemm). They are not separately measured.
_HOPPER = Rates(1.60, 700, 64, 37.5, 128, 0.9, 10500, 1.0, 96, 480, 3.0, 44)
_CDNA = Rates(2.1, 550, 18, 56, 80, 0.8, 17000, 0.7, 50, 0, 2.0, 90)
_TILES_PER_STAGE = 1.25
"""CDNA: tiles whose loads are under way, for each of `num_stages`: two stages are about two and a half."""
_IN_TURN = 0.8
"""CDNA: part of loads, LDS and matrix instructions that a workgroup alone does in turn, between barriers."""
_BLOCK_SCALED_RATE = 0.4
"""CDNA: matrix rate that is left where each 128 of k are scaled by vector instructions."""
_RESULTS_PER_CYCLE = 8
"""CDNA: elements of C that a compute unit rounds and stores in a cycle."""
_SPLIT_TRAFFIC = 14
"""CDNA: what a part of a split tile moves for its sum, in 16-bit results: fp32 atomics, or a buffer and its sum."""
_REDUCE_CYCLES = 1000


def predict_us(gemm: Gemm, tile: Tile, target: Target) -> float | None:
    """Predicted time, or None when the tile does not fit the LDS. Raises `InputError` without a matrix peak."""
    if gemm.dtype not in target.board.peak_tflop_per_s:
        raise InputError(f"{target.arch} has no matrix instruction for {gemm.dtype}.", remedy="Choose another type.")
    in_lds = tile.block_m + (0 if gemm.shuffled else tile.block_n)
    stage_bytes = in_lds * tile.block_k * gemm.operand_bytes
    buffers = tile.num_stages if not target.is_amd else max(1, tile.num_stages - 1)
    if buffers * stage_bytes > target.lds_bytes_per_workgroup:
        return None
    return _amd_us(gemm, tile, target) if target.is_amd else _nvidia_us(gemm, tile, target)


def rank(gemm: Gemm, tiles: Iterable[Tile], target: Target) -> list[Tile]:
    """The tiles that fit, fastest prediction first; ties keep the given order."""
    timed = [(us, n, t) for n, t in enumerate(tiles) if (us := predict_us(gemm, t, target)) is not None]
    return [t for _, _, t in sorted(timed, key=lambda item: item[:2])]


def split_to_fill(gemm: Gemm, tile: Tile, target: Target, most: int = 8, least_steps: int = 8) -> int:
    """How far to split K so that a grid smaller than the machine fills it, each part keeping `least_steps` K steps."""
    groups, steps = _grid(gemm, tile)
    units = target.board.compute_units
    return 1 if groups >= units else max(1, min(most, units // groups, steps // least_steps))


def _grid(gemm: Gemm, tile: Tile) -> tuple[int, int]:
    """Output tiles and K steps."""
    return -(-gemm.m // tile.block_m) * -(-gemm.n // tile.block_n), -(-gemm.k // tile.block_k)


def _unique_bytes(gemm: Gemm, tile: Tile, rows: int, columns: int) -> float:
    """Bytes of A and B that `rows` x `columns` concurrent tiles read in one K step, each counted once."""
    edge = min(gemm.m, rows * tile.block_m) + min(gemm.n, columns * tile.block_n)
    return edge * tile.block_k * gemm.operand_bytes


def _near_square(gemm: Gemm, tile: Tile, concurrent: float) -> float:
    """Bytes that concurrent tiles read in one K step where they lie in a block as square as C allows."""
    most_rows, most_columns = -(-gemm.m // tile.block_m), -(-gemm.n // tile.block_n)
    rows = min(most_rows, max(1, round(math.sqrt(concurrent * tile.block_n / tile.block_m))))
    columns = min(most_columns, math.ceil(concurrent / rows))
    rows = min(most_rows, math.ceil(concurrent / columns))
    return _unique_bytes(gemm, tile, rows, columns)


def _nvidia_us(gemm: Gemm, tile: Tile, target: Target) -> float:
    """Hopper: warpgroup instructions from 64 rows on, asynchronous copies where rows are 16-byte aligned."""
    r, board = _HOPPER, target.board
    clock, threads = r.clock_ghz, tile.num_warps * target.wavefront_size
    bm, bn, bk, width = tile.block_m, tile.block_n, tile.block_k, gemm.operand_bytes
    tiles, steps = _grid(gemm, tile)
    groups, steps = tiles * tile.split_k, -(-steps // tile.split_k)
    step_bytes = (bm + bn) * bk * width
    elements = (bm + bn) * bk / threads
    aligned = gemm.k * width % 32 == 0  # Triton knows an alignment only from a divisibility by 16 elements
    warpgroup = bm >= 64

    # a vectorised copy holds one address per 16 bytes, an element-wise load an address and a value per element
    held = bm * bn / threads + r.fixed_registers + (elements * width / 8 if aligned else 3 * elements)
    held += 0 if warpgroup else (bm + bn) * 16 / threads
    spilled = max(0.0, held - target.max_vgprs_per_wave)
    granted = math.ceil(min(255.0, max(32.0, held)) / 8) * 8
    lds = (tile.num_stages if aligned else 1) * step_bytes
    resident = max(
        1, min(target.lds_bytes_per_cu // int(lds + 1024), 65536 // (granted * threads), 64 // tile.num_warps)
    )
    per_cu = min(resident, -(-groups // board.compute_units))
    active = min(groups, board.compute_units * per_cu)

    flop_per_cycle = board.peak_tflop_per_s[gemm.dtype] * 1e3 / board.compute_units / 1.83
    flops = 2.0 * bm * bn * bk
    if warpgroup:
        wide = min(bn, 256)
        matrix = flops / flop_per_cycle
        operands = bm / 64 * bk / 16 * (64 + wide) * 16 * width * bn / wide
        chain = 0.06 * clock * 1e3  # waiting for the last instruction of the group
    else:
        # mma.sync: 62% of the peak at best, one tensor core per warp, each instruction after the one before
        matrix = flops / (0.62 * flop_per_cycle) / min(1.0, tile.num_warps * per_cu / 4)
        operands = tile.num_warps * bm * bk * width + bn * bk * width
        chain = bk / 16 * 33
    through_lds = (operands + step_bytes) / r.lds_bytes
    chain += 3.0 * clock * elements / 8  # issuing the copies
    latency = r.latency_ns * clock + step_bytes / r.single_bytes
    if aligned:
        alone = max(latency / (tile.num_stages - 1), step_bytes / r.single_bytes) if tile.num_stages > 1 else latency
        alone = max(alone + r.step_cycles, matrix) + chain
        issue = 0.0
    else:
        issue = elements * tile.num_warps * 5.0
        alone = r.latency_ns * clock + issue + matrix + r.step_cycles + chain
    concurrent = -(-active // tile.split_k)
    rows = min(8, -(-gemm.m // bm))
    columns = min(-(-gemm.n // bn), max(1, math.ceil(concurrent / rows)))
    if concurrent > rows * columns:
        rows = min(-(-gemm.m // bm), rows * math.ceil(concurrent / (rows * columns)))
    hbm = _unique_bytes(gemm, tile, rows, columns) * tile.split_k / (board.hbm_gb_per_s * r.hbm_share / clock)
    shared = active * step_bytes / (r.cache_gb_per_s / clock)
    step = max(alone, per_cu * max(matrix, through_lds, step_bytes / r.port_bytes, issue), hbm, shared)
    step = max(step, _hot_lines(gemm, tile, active))
    step += per_cu * spilled * threads * 8 / 64
    result_bytes = 2 if tile.split_k == 1 else 4
    write = bm * bn * result_bytes * active / (board.hbm_gb_per_s * r.hbm_share / clock)
    write *= 1 if gemm.n % 16 == 0 else 2
    waves = -(-groups // (board.compute_units * per_cu))
    return waves * (latency + steps * step + write + r.epilogue_cycles) / clock / 1e3 + r.launch_us


def _hot_lines(gemm: Gemm, tile: Tile, active: int) -> float:
    """Cycles in which rows beyond m, wrapped onto the same few cache lines by every workgroup, queue at their slices.

    A slice serves 64 bytes a cycle, and eight requests for a line are merged on the way.
    """
    if tile.block_m <= gemm.m:
        return 0.0
    row_bytes = tile.block_k * gemm.operand_bytes
    lines = max(1.0, gemm.m * row_bytes / 128)
    return active * tile.block_m * row_bytes / (min(lines, 96) * 64) / 8


def _amd_us(gemm: Gemm, tile: Tile, target: Target) -> float:
    """CDNA: MFMA from LDS, private L2 per XCD over one Infinity Cache.

    Whole waves of workgroups, then the rest, which has fewer on a compute unit.
    """
    board = target.board
    tiles, steps = _grid(gemm, tile)
    groups, steps = tiles * tile.split_k, -(-steps // tile.split_k)
    units, resident = board.compute_units, _amd_resident(gemm, tile, target)
    full, rest = divmod(groups, units * resident)
    cycles = full * _amd_wave(gemm, tile, target, steps, units * resident, resident) if full else 0.0
    if rest:
        cycles += _amd_wave(gemm, tile, target, steps, rest, -(-rest // units))
    cycles += _REDUCE_CYCLES if tile.split_k > 1 else 0
    return cycles / board.max_clock_ghz / 1e3 + _CDNA.launch_us


def _amd_resident(gemm: Gemm, tile: Tile, target: Target) -> int:
    """Workgroups that registers and LDS of a compute unit hold."""
    step_bytes = (tile.block_m + tile.block_n) * tile.block_k * gemm.operand_bytes
    lanes = 64 * max(tile.num_warps, 8)
    held = tile.block_m * tile.block_n / lanes + _CDNA.fixed_registers + step_bytes / (lanes * 4) / 2
    by_registers = 1
    if held <= 512:
        by_registers = int(target.vgprs_per_simd_lane // held) * target.simds_per_cu // (lanes // 64)
    by_lds = int(target.lds_bytes_per_cu // (max(1, tile.num_stages - 1) * step_bytes))
    return max(1, min(by_lds, by_registers, 8))


def _amd_wave(gemm: Gemm, tile: Tile, target: Target, steps: int, active: int, per_cu: int) -> float:
    """Cycles of `active` workgroups side by side, `per_cu` on a compute unit."""
    r, board = _CDNA, target.board
    clock, waves_wg = board.max_clock_ghz, max(tile.num_warps, 8)
    bm, bn, bk, width = tile.block_m, tile.block_n, tile.block_k, gemm.operand_bytes
    step_bytes = (bm + bn) * bk * width
    flop_per_cycle = board.peak_tflop_per_s[gemm.dtype] * 1e3 / board.compute_units / board.max_clock_ghz
    matrix = 2.0 * bm * bn * bk / flop_per_cycle / r.matrix_efficiency
    matrix /= _BLOCK_SCALED_RATE if gemm.block_scaled else 1.0
    wave_rows = min(2, max(1, bm // 32))
    wave_columns = max(1, waves_wg // wave_rows)
    through_lds = (wave_columns * bm + (0 if gemm.shuffled else wave_rows * bn)) * bk * width
    through_lds /= r.lds_bytes * target.lds_banks / 32
    latency = r.latency_ns * clock + step_bytes / r.single_bytes
    concurrent = max(1, active // tile.split_k)
    hbm = _near_square(gemm, tile, concurrent) * tile.split_k / (board.hbm_gb_per_s * r.hbm_share / clock)
    # what tiles on several XCDs share, each of them reads through the Infinity Cache
    dies = min(board.xcds, concurrent)
    shared = dies * _near_square(gemm, tile, concurrent / dies) * tile.split_k / (r.cache_gb_per_s / clock)
    if tile.num_stages > 1:
        phases = (latency / (_TILES_PER_STAGE * tile.num_stages), matrix, through_lds)
        alone = (1 - _IN_TURN) * max(phases) + _IN_TURN * sum(phases) + r.step_cycles
    else:
        alone = latency + matrix + through_lds + r.step_cycles
    step = max(alone, per_cu * max(matrix, through_lds, step_bytes / r.port_bytes), hbm, shared)
    write = bm * bn * 2 * active / (board.hbm_gb_per_s / clock) * (_SPLIT_TRAFFIC if tile.split_k > 1 else 1)
    return steps * step + write + r.epilogue_cycles + bm * bn / _RESULTS_PER_CYCLE
