"""Triton kernels whose lanes talk to each other: reductions, scans, sorts, gathers, atomics, random numbers."""

from __future__ import annotations

from itertools import pairwise

import torch
import triton
import triton.language as tl
from corpus.case import Case, TritonSource, Values, outputs_match, randint, randn


@triton.jit
def softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + lane, lane < columns, other=-float("inf"))
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + row * columns + lane, value / tl.sum(value, 0), lane < columns)


@triton.jit
def online_softmax_kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    peak = -float("inf")
    total = 0.0
    for start in range(0, columns, BLOCK):
        value = tl.load(x + row * columns + start + lane, start + lane < columns, other=-float("inf"))
        new_peak = tl.maximum(peak, tl.max(value, 0))
        total = total * tl.exp(peak - new_peak) + tl.sum(tl.exp(value - new_peak), 0)
        peak = new_peak
    for start in range(0, columns, BLOCK):
        inside = start + lane < columns
        value = tl.load(x + row * columns + start + lane, inside, other=0.0)
        tl.store(out + row * columns + start + lane, tl.exp(value - peak) / total, inside)


@triton.jit
def layer_norm_kernel(x, weight, bias, out, columns, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    inside = lane < columns
    value = tl.load(x + row * columns + lane, inside, other=0.0).to(tl.float32)
    mean = tl.sum(value, 0) / columns
    centred = tl.where(inside, value - mean, 0.0)
    rstd = 1.0 / tl.sqrt(tl.sum(centred * centred, 0) / columns + eps)
    w = tl.load(weight + lane, inside, other=0.0)
    b = tl.load(bias + lane, inside, other=0.0)
    tl.store(out + row * columns + lane, centred * rstd * w + b, inside)


@triton.jit
def rms_norm_kernel(x, weight, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    inside = lane < columns
    value = tl.load(x + row * columns + lane, inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(value * value, 0) / columns + 1e-5)
    tl.store(out + row * columns + lane, value * scale * tl.load(weight + lane, inside, other=0.0), inside)


@triton.jit
def cross_entropy_kernel(x, labels, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + lane, lane < columns, other=-float("inf"))
    peak = tl.max(value, 0)
    label = tl.load(labels + row)
    chosen = tl.load(x + row * columns + label)
    tl.store(out + row, peak + tl.log(tl.sum(tl.exp(value - peak), 0)) - chosen)


@triton.jit
def row_statistics_kernel(x, total, peak, where, low, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    value = tl.load(x + rows[:, None] * columns + tl.arange(0, BLOCK)[None, :])
    tl.store(total + rows, tl.sum(value, 1))
    tl.store(peak + rows, tl.max(value, 1))
    tl.store(where + rows, tl.argmax(value, 1))
    tl.store(low + rows, tl.argmin(value, 1))


@triton.jit
def column_sum_kernel(x, out, rows, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        inside = (row[:, None] < rows) & (column[None, :] < columns)
        total += tl.sum(tl.load(x + row[:, None] * columns + column[None, :], inside, other=0.0), 0)
    tl.store(out + column, total, column < columns)


@triton.jit
def welford_combine(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    delta = mean_b - mean_a
    ratio = tl.where(count == 0, 0.0, count_b / tl.maximum(count, 1.0))
    return mean_a + delta * ratio, m2_a + m2_b + delta * delta * count_a * ratio, count


@triton.jit
def welford_kernel(x, mean, variance, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + lane, lane < columns, other=0.0)
    count = (lane < columns).to(tl.float32)
    m, m2, n = tl.reduce((value, tl.zeros_like(value), count), 0, welford_combine)
    tl.store(mean + row, m)
    tl.store(variance + row, m2 / n)


@triton.jit
def cumulative_kernel(x, total, product, backward, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + lane, lane < columns, other=0.0)
    tl.store(total + row * columns + lane, tl.cumsum(value, 0), lane < columns)
    tl.store(product + row * columns + lane, tl.cumprod(1.0 + value * 0.01, 0), lane < columns)
    tl.store(backward + row * columns + lane, tl.cumsum(value, 0, reverse=True), lane < columns)


@triton.jit
def maximum(a, b):
    return tl.maximum(a, b)


@triton.jit
def running_maximum_kernel(x, out, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    position = tl.arange(0, ROWS)[:, None] * columns + tl.arange(0, BLOCK)[None, :]
    value = tl.load(x + position)
    tl.store(out + position, tl.associative_scan(value, 1, maximum))


@triton.jit
def linear_combine(a_left, b_left, a_right, b_right):
    return a_left * a_right, a_right * b_left + b_right


@triton.jit
def recurrence_kernel(a, b, out, columns, BLOCK: tl.constexpr):
    position = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    _, h = tl.associative_scan((tl.load(a + position), tl.load(b + position)), 0, linear_combine)
    tl.store(out + position, h)


def recurrence_reference(v: Values) -> Values:
    h = torch.zeros(4, dtype=torch.float64)
    rows = []
    for a, b in zip(v["a"].double().T, v["b"].double().T, strict=True):
        h = a * h + b
        rows.append(h)
    return {"out": torch.stack(rows, 1)}


@triton.jit
def sort_kernel(x, out, columns, DESCENDING: tl.constexpr, BLOCK: tl.constexpr):
    position = tl.program_id(0) * columns + tl.arange(0, BLOCK)
    tl.store(out + position, tl.sort(tl.load(x + position), descending=DESCENDING))


@triton.jit
def topk_kernel(x, out, columns, K: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    best = tl.topk(tl.load(x + row * columns + tl.arange(0, BLOCK)), K)
    tl.store(out + row * K + tl.arange(0, K), best)


@triton.jit
def histogram_kernel(x, out, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    counts = tl.histogram(tl.load(x + offset, offset < n, other=0), BINS, mask=offset < n)
    tl.atomic_add(out + tl.arange(0, BINS), counts)


@triton.jit
def gather_kernel(x, index, out, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    position = tl.arange(0, ROWS)[:, None] * BLOCK + tl.arange(0, BLOCK)[None, :]
    tl.store(out + position, tl.gather(tl.load(x + position), tl.load(index + position), 1))


@triton.jit
def scatter_kernel(x, index, out, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.load(index + offset, offset < n, other=0), tl.load(x + offset, offset < n), offset < n)


@triton.jit
def embedding_kernel(table, index, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    token = tl.load(index + row)
    tl.store(out + row * width + lane, tl.load(table + token * width + lane, lane < width), lane < width)


@triton.jit
def jagged_sum_kernel(x, starts, out, BLOCK: tl.constexpr):
    segment = tl.program_id(0)
    begin = tl.load(starts + segment)
    end = tl.load(starts + segment + 1)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(begin, end, BLOCK):
        position = start + tl.arange(0, BLOCK)
        total += tl.load(x + position, position < end, other=0.0)
    tl.store(out + segment, tl.sum(total, 0))


def jagged_reference(v: Values) -> Values:
    bounds = v["starts"].tolist()
    sums = [v["x"][a:b].double().sum() for a, b in pairwise(bounds)]
    return {"out": torch.stack(sums)}


@triton.jit
def packed_rows_kernel(x, y, total, cumulated, nearest, rows, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK)[None, :]
    a = tl.load(x + row * BLOCK + lane, row < rows, other=0.0)
    b = tl.load(y + row * BLOCK + lane, row < rows, other=0.0)
    tl.store(total + row, tl.sum(a * (b - 1.0), 1, keep_dims=True), row < rows)
    scanned = tl.cumsum(a * b, 1)
    tl.store(cumulated + row, tl.max(scanned, 1, keep_dims=True), row < rows)
    distance = tl.sum((a - b) * (a - b), 1)
    tl.store(
        nearest + tl.arange(0, ROWS) + tl.program_id(0) * ROWS,
        tl.sqrt(distance) * 0.5 + 1.0,
        tl.arange(0, ROWS) + tl.program_id(0) * ROWS < rows,
    )


def packed_rows_reference(v: Values) -> Values:
    a, b = v["x"].double(), v["y"].double()
    return {
        "total": (a * (b - 1)).sum(1),
        "cumulated": (a * b).cumsum(1).amax(1),
        "nearest": (a - b).pow(2).sum(1).sqrt() * 0.5 + 1,
    }


@triton.jit
def shape_kernel(x, transposed, flipped, joined, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    value = tl.load(x + rows[:, None] * COLUMNS + columns[None, :])
    tl.store(transposed + columns[:, None] * ROWS + rows[None, :], tl.trans(value))
    tl.store(flipped + rows[:, None] * COLUMNS + columns[None, :], tl.flip(value, 1))
    even, odd = tl.split(tl.reshape(value, (ROWS, COLUMNS // 2, 2)))
    mixed = tl.interleave(odd, even)
    tl.store(joined + rows[:, None] * COLUMNS + columns[None, :], mixed)


def shape_reference(v: Values) -> Values:
    x = v["x"]
    swapped = x.reshape(x.shape[0], -1, 2).flip(2).reshape(x.shape)
    return {"transposed": x.T.contiguous(), "flipped": x.flip(1), "joined": swapped}


@triton.jit
def random_kernel(uniform, normal, integers, seed, n, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(uniform + offset, tl.rand(seed, offset), offset < n)
    tl.store(normal + offset, tl.randn(seed, offset), offset < n)
    tl.store(integers + offset, tl.randint(seed, offset).to(tl.int32, bitcast=True), offset < n)


def philox_word0(seed: int, counters: torch.Tensor) -> torch.Tensor:
    """First output word of Philox 4x32-10 with counter (c, 0, 0, 0), in unbounded integers."""
    words = []
    for counter in counters.tolist():
        c = [counter, 0, 0, 0]
        k0, k1 = seed & 0xFFFFFFFF, seed >> 32
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(b >> 32) ^ c[1] ^ k0, b & 0xFFFFFFFF, (a >> 32) ^ c[3] ^ k1, a & 0xFFFFFFFF]
            k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
        words.append(c[0])
    return torch.tensor(words, dtype=torch.int64)


def random_check(inputs: Values, outputs: Values) -> None:
    words = philox_word0(inputs["seed"], torch.arange(inputs["n"]))
    assert torch.equal(outputs["integers"].to(torch.int64) & 0xFFFFFFFF, words)
    signed = torch.where(words >= 2**31, words - 2**32, words)
    positive = torch.where(signed < 0, -signed - 1, signed)
    torch.testing.assert_close(outputs["uniform"], (positive.float() * 4.6566127342e-10))
    assert abs(float(outputs["normal"].mean())) < 0.1 and 0.9 < float(outputs["normal"].std()) < 1.1


@triton.jit
def dropout_kernel(x, out, n, seed, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, offset) > 0.25
    tl.store(out + offset, tl.where(keep, tl.load(x + offset, offset < n) / 0.75, 0.0), offset < n)


def dropout_reference(v: Values) -> Values:
    words = philox_word0(v["seed"], torch.arange(v["n"]))
    signed = torch.where(words >= 2**31, words - 2**32, words)
    uniform = torch.where(signed < 0, -signed - 1, signed).float() * 4.6566127342e-10
    return {"out": torch.where(uniform > 0.25, v["x"].double() / 0.75, 0.0)}


@triton.jit
def quantize_kernel(x, out, scales, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    value = tl.load(x + row * columns + lane, lane < columns, other=0.0)
    scale = tl.max(tl.abs(value), 0) / 127.0
    rounded = tl.floor(value / scale + 0.5).to(tl.int8)
    tl.store(out + row * columns + lane, rounded, lane < columns)
    tl.store(scales + row, scale)


def quantize_check(inputs: Values, outputs: Values) -> None:
    x = inputs["x"].double()
    scale = x.abs().amax(1) / 127
    torch.testing.assert_close(outputs["scales"].double(), scale, rtol=1e-6, atol=0)
    off = (outputs["out"].double() - (x / scale[:, None] + 0.5).floor()).abs()
    assert off.max() <= 1 and (off > 0).double().mean() < 1e-3


def _reduce_cases() -> list[Case]:
    out = torch.zeros
    softmax = outputs_match(lambda v: {"out": v["x"].double().softmax(1)}, rtol=1e-5, atol=1e-7)
    ce = torch.nn.functional.cross_entropy
    layer_norm = torch.nn.functional.layer_norm
    cases = [
        Case(f"softmax_warps{w}", TritonSource(softmax_kernel, {"BLOCK": 1024}, num_warps=w), (6, 1, 1),
             lambda arch: {"x": randn(6, 1000) * 3, "out": out(6, 1000), "columns": 1000}, softmax)
        for w in (1, 2, 4, 8)
    ]  # fmt: skip
    return [
        *cases,
        Case("online_softmax", TritonSource(online_softmax_kernel, {"BLOCK": 256}), (5, 1, 1),
             lambda arch: {"x": randn(5, 1100) * 3, "out": out(5, 1100), "columns": 1100}, softmax),
        Case("layer_norm_fp16", TritonSource(layer_norm_kernel, {"BLOCK": 512}), (7, 1, 1),
             lambda arch: {"x": randn(7, 500, dtype=torch.float16), "weight": randn(500, seed=1),
                           "bias": randn(500, seed=2), "out": out(7, 500), "columns": 500, "eps": 1e-5},
             outputs_match(lambda v: {"out": layer_norm(v["x"].double(), (500,), v["weight"].double(),
                                                        v["bias"].double(), 1e-5)}, rtol=1e-4, atol=1e-5)),
        Case("rms_norm_bf16", TritonSource(rms_norm_kernel, {"BLOCK": 256}, num_warps=2), (5, 1, 1),
             lambda arch: {"x": randn(5, 200, dtype=torch.bfloat16), "weight": randn(200, seed=1),
                           "out": out(5, 200, dtype=torch.bfloat16), "columns": 200},
             outputs_match(lambda v: {"out": v["x"].double() * (v["x"].double().pow(2).mean(1, True) + 1e-5).rsqrt()
                                      * v["weight"].double()}, rtol=8e-3, atol=1e-3)),
        Case("cross_entropy", TritonSource(cross_entropy_kernel, {"BLOCK": 512}), (9, 1, 1),
             lambda arch: {"x": randn(9, 401), "labels": randint(0, 401, 9, dtype=torch.int64), "out": out(9),
                           "columns": 401},
             outputs_match(lambda v: {"out": ce(v["x"].double(), v["labels"], reduction="none")}, rtol=1e-5,
                           atol=1e-5)),
        Case("row_statistics", TritonSource(row_statistics_kernel, {"ROWS": 8, "BLOCK": 128}), (4, 1, 1),
             lambda arch: {"x": randint(-50, 50, 32, 128).float(), "total": out(32), "peak": out(32),
                           "where": out(32, dtype=torch.int32), "low": out(32, dtype=torch.int32), "columns": 128},
             outputs_match(lambda v: {"total": v["x"].sum(1), "peak": v["x"].amax(1),
                                      "where": _first(v["x"], v["x"].amax(1)),
                                      "low": _first(v["x"], v["x"].amin(1))})),
        *(Case(f"packed_rows{rows}_warps{warps}",
               TritonSource(packed_rows_kernel, {"ROWS": rows, "BLOCK": block}, num_warps=warps), (3, 1, 1),
               lambda arch, n=3 * rows - 1, block=block: {
                   "x": randn(n, block), "y": randn(n, block, seed=1), "total": out(n), "cumulated": out(n),
                   "nearest": out(n), "rows": n},
               outputs_match(packed_rows_reference, rtol=1e-5, atol=1e-5))
          for rows, block, warps in ((32, 8, 4), (16, 8, 4), (8, 16, 4), (64, 8, 8), (16, 64, 2))),
        Case("column_sum", TritonSource(column_sum_kernel, {"ROWS": 32, "BLOCK": 64}), (4, 1, 1),
             lambda arch: {"x": randn(100, 250), "out": out(250), "rows": 100, "columns": 250},
             outputs_match(lambda v: {"out": v["x"].double().sum(0)}, rtol=1e-4, atol=1e-4)),
        Case("welford", TritonSource(welford_kernel, {"BLOCK": 512}), (5, 1, 1),
             lambda arch: {"x": randn(5, 300) + 4, "mean": out(5), "variance": out(5), "columns": 300},
             outputs_match(lambda v: {"mean": v["x"].double().mean(1),
                                      "variance": v["x"].double().var(1, unbiased=False)}, rtol=1e-4, atol=1e-5)),
    ]  # fmt: skip


def _first(x: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    return (x == value[:, None]).int().argmax(1).int()


def _scan_and_move_cases() -> list[Case]:
    out = torch.zeros
    return [
        Case("cumulative", TritonSource(cumulative_kernel, {"BLOCK": 512}), (4, 1, 1),
             lambda arch: {"x": randn(4, 500), "total": out(4, 500), "product": out(4, 500),
                           "backward": out(4, 500), "columns": 500},
             outputs_match(lambda v: {"total": v["x"].double().cumsum(1),
                                      "product": (1 + v["x"].double() * 0.01).cumprod(1),
                                      "backward": v["x"].double().flip(1).cumsum(1).flip(1)}, rtol=1e-4, atol=1e-4)),
        Case("running_maximum", TritonSource(running_maximum_kernel, {"ROWS": 16, "BLOCK": 64}), (1, 1, 1),
             lambda arch: {"x": randint(-(2**30), 2**30, 16, 64), "out": out(16, 64, dtype=torch.int32),
                           "columns": 64},
             outputs_match(lambda v: {"out": v["x"].cummax(1).values})),
        Case("recurrence", TritonSource(recurrence_kernel, {"BLOCK": 256}, num_warps=2), (4, 1, 1),
             lambda arch: {"a": randn(4, 256).sigmoid(), "b": randn(4, 256, seed=1), "out": out(4, 256),
                           "columns": 256},
             outputs_match(recurrence_reference, rtol=1e-4, atol=1e-5)),
        Case("sort_fp32", TritonSource(sort_kernel, {"DESCENDING": False, "BLOCK": 256}), (3, 1, 1),
             lambda arch: {"x": randn(3, 256), "out": out(3, 256), "columns": 256},
             outputs_match(lambda v: {"out": v["x"].sort(1).values})),
        Case("sort_int16_descending", TritonSource(sort_kernel, {"DESCENDING": True, "BLOCK": 128}, 2), (3, 1, 1),
             lambda arch: {"x": randint(-30000, 30000, 3, 128, dtype=torch.int16),
                           "out": out(3, 128, dtype=torch.int16), "columns": 128},
             outputs_match(lambda v: {"out": v["x"].sort(1, descending=True).values})),
        Case("topk", TritonSource(topk_kernel, {"K": 16, "BLOCK": 128}), (3, 1, 1),
             lambda arch: {"x": randn(3, 128), "out": out(3, 16), "columns": 128},
             outputs_match(lambda v: {"out": v["x"].topk(16, 1).values})),
        Case("histogram", TritonSource(histogram_kernel, {"BINS": 64, "BLOCK": 512}), (5, 1, 1),
             lambda arch: {"x": randint(0, 64, 2300), "out": out(64, dtype=torch.int32), "n": 2300},
             outputs_match(lambda v: {"out": torch.bincount(v["x"], minlength=64)})),
        Case("gather", TritonSource(gather_kernel, {"ROWS": 16, "BLOCK": 64}), (1, 1, 1),
             lambda arch: {"x": randn(16, 64), "index": randint(0, 64, 16, 64), "out": out(16, 64)},
             outputs_match(lambda v: {"out": v["x"].gather(1, v["index"].long())})),
        Case("scatter", TritonSource(scatter_kernel, {"BLOCK": 256}), (4, 1, 1),
             lambda arch: {"x": randn(1000), "index": torch.randperm(1000, generator=torch.Generator().manual_seed(2)),
                           "out": out(1000), "n": 1000},
             outputs_match(lambda v: {"out": torch.zeros(1000).index_put((v["index"],), v["x"])})),
        Case("embedding", TritonSource(embedding_kernel, {"BLOCK": 128}, num_warps=1), (10, 1, 1),
             lambda arch: {"table": randn(50, 100, dtype=torch.float16), "out": out(10, 100, dtype=torch.float16),
                           "index": randint(0, 50, 10, dtype=torch.int64), "width": 100},
             outputs_match(lambda v: {"out": v["table"][v["index"]]})),
        Case("jagged_sum", TritonSource(jagged_sum_kernel, {"BLOCK": 128}), (5, 1, 1),
             lambda arch: {"x": randn(1500), "starts": torch.tensor([0, 10, 10, 700, 701, 1500], dtype=torch.int32),
                           "out": out(5)},
             outputs_match(jagged_reference, rtol=1e-4, atol=1e-4)),
        Case("shapes", TritonSource(shape_kernel, {"ROWS": 32, "COLUMNS": 64}), (1, 1, 1),
             lambda arch: {"x": randn(32, 64, dtype=torch.float16), "transposed": out(64, 32, dtype=torch.float16),
                           "flipped": out(32, 64, dtype=torch.float16), "joined": out(32, 64, dtype=torch.float16)},
             outputs_match(shape_reference)),
        Case("random", TritonSource(random_kernel, {"BLOCK": 512}), (4, 1, 1),
             lambda arch: {"uniform": out(2000), "normal": out(2000), "integers": out(2000, dtype=torch.int32),
                           "seed": 1234, "n": 2000}, random_check),
        Case("dropout", TritonSource(dropout_kernel, {"BLOCK": 512}), (4, 1, 1),
             lambda arch: {"x": randn(2000), "out": out(2000), "n": 2000, "seed": 99},
             outputs_match(dropout_reference, rtol=1e-6)),
        Case("quantize_int8", TritonSource(quantize_kernel, {"BLOCK": 256}), (6, 1, 1),
             lambda arch: {"x": randn(6, 250), "out": out(6, 250, dtype=torch.int8), "scales": out(6),
                           "columns": 250}, quantize_check),
    ]  # fmt: skip


def cases() -> list[Case]:
    return [*_reduce_cases(), *_scan_and_move_cases()]
