"""Skills that rebuild a kernel compute what it computed: golden pairs run in Triton's interpreter on small inputs."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

from skills.skill import LIBRARY_FOLDER

PROGRAM = """
import importlib.util, json, sys, traceback, torch

torch.cuda.get_device_properties = lambda device=None: type("P", (), {"multi_processor_count": 3})()

def outputs(path, calls):
    spec = importlib.util.spec_from_file_location("case", path)
    m = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(m)
    torch.manual_seed(3)
    results, kept = [], []
    def keep(tensor):
        kept.append(tensor)
        return tensor
    exec(calls, {"torch": torch, "m": m, "results": results, "keep": keep})
    return [t.double() for t in results + kept if t is not None]

for name, calls in json.load(sys.stdin).items():
    folder = f"{sys.argv[1]}/{name.replace('/', '/cases/')}"
    try:
        before, after = outputs(f"{folder}/before.py", calls), outputs(f"{folder}/after.py", calls)
        assert len(before) == len(after) > 0
        worst = max(float(((a - b).abs() / (1.0 + b.abs())).max()) for a, b in zip(after, before))
        print(json.dumps({"name": name, "worst": worst, "size": max(float(b.abs().max()) for b in before)}))
    except Exception:
        print(json.dumps({"name": name, "error": traceback.format_exc()[-2000:]}))
"""

TRIALS = {
    **{
        f"pointer_choice/{case}": """
        for sizes in ((1, 1, 1), (700, 3, 300)):
            results.append(m.join(*(torch.randn(n) for n in sizes)))
    """
        for case in ("elif_chain", "elif_chain_as_integers")
    },
    **{
        f"pointer_choice/{case}": """
        for rows, banks, n in ((1, 1, 1), (4, 3, 200)):
            results.append(m.pick(torch.randn(rows, banks, n).bfloat16(), torch.randn(rows, n).bfloat16()))
    """
        for case in ("an_offset_in_a_branch", "without_else", "an_expression", "where", "where_of_blocks")
    },
    "gqa_accumulate/query_heads": """
        q, do = torch.randn(2, 4, 70, 16)
        k, v = torch.randn(2, 2, 70, 16)
        results += m.backward(q, k, v, do, torch.rand(4, 70) + 3, torch.randn(4, 70), 0.2)
    """,
    "gqa_accumulate/batch_and_head": """
        q, do = torch.randn(2, 3, 4, 70, 16)
        k, v = torch.randn(2, 3, 2, 70, 16)
        results += m.backward(q, k, v, do, torch.rand(3, 4, 70) + 3, torch.randn(3, 4, 70), 0.2)
    """,
    "accumulate_before_atomic/column_sums": """
        for rows, cols in ((1, 1), (16, 128), (400, 130), (127, 3)):
            m.run(torch.randn(rows, cols).half(), keep(torch.randn(cols)))
    """,
    "accumulate_before_atomic/in_place": """
        offsets = torch.tensor([0, 2000, 2000, 12500])
        for rows in (7, 100):
            m.run(keep(torch.randint(-2, 9, (12500,))), offsets, keep(torch.zeros(1, dtype=torch.int32)), rows, 10500)
    """,
    "accumulate_before_atomic/one_arm_of_a_branch": """
        for n, bins in ((1, 5), (9000, 64), (9000, 1500)):
            m.run(torch.randint(0, bins, (n,), dtype=torch.int32), keep(torch.zeros(bins, dtype=torch.int32)))
    """,
    "accumulate_before_atomic/two_counters": """
        for rows, cols in ((1, 5), (8, 64), (21, 100)):
            x, grad, out = keep(torch.randn(3, rows, cols))
            m.run(x, grad, keep(torch.zeros(cols)), keep(torch.ones(cols)), out)
    """,
    "run_length_scatter/sorted_rows": """
        for t in (1, 15, 16, 33):
            idx = torch.randint(0, 5, (t,), dtype=torch.int32).sort().values
            results.append(m.scatter_add(idx, torch.randn(t, 300), 5))
    """,
    "run_length_scatter/index_select_loop": """
        for n in (1, 31, 32, 100):
            for idx in (torch.randint(0, 5, (n,)), torch.randint(0, 5, (n,)).sort().values):
                results.append(m.run(idx, torch.randn(n, 100), 5))
    """,
    "run_length_scatter/derived_in_a_loop": """
        for n in (1, 16, 100):
            x = torch.randint(-60, 60, (n, 100), dtype=torch.int8)
            results.append(m.count(torch.randint(-1, 2, (n,), dtype=torch.int32), x, 2))
    """,
    "run_length_scatter/programs_counted": """
        for lookups in (1, 15, 16, 40):
            idx, bag = torch.randint(0, 3, (2, lookups)), torch.randint(0, 7, (2, lookups))
            results.append(m.run(idx, bag, torch.randn(7, 50), 3))
    """,
    "split_k/skinny": """
        for rows, n, k in ((3, 16, 1600), (16, 40, 1100), (1, 200, 2048), (20, 5, 64)):
            results.append(m.run(torch.randn(rows, k).half() / 8, torch.randn(n, k).half() / 8))
    """,
    "split_k/pointers_moved": """
        for rows, n, k in ((3, 16, 1600), (30, 40, 1100), (64, 33, 100)):
            results.append(m.matmul(torch.randn(rows, k).half() / 8, torch.randn(k, n).half() / 8))
            results.append(m.matmul(torch.randn(k, rows).half().t() / 8, torch.randn(n, k).half().t() / 8))
    """,
    "split_k/grid_of_a_lambda": """
        results.append(m.run(torch.randn(9, 1600).half() / 8, torch.randn(20, 1600).half() / 8))
    """,
    "fold_factors/gelu_derivative": "results += m.run(torch.randn(32, 64), torch.randn(32, 64))",
    "persistent_grid/tiles": "results.append(m.run(torch.randn(200, 64), torch.randn(64, 150)))",
    "pid_swizzle/row_major_tiles": "results.append(m.run(torch.randn(300, 64).half(), torch.randn(64, 150).half()))",
    "pid_swizzle/two_dimensional_grid": "results.append(m.run(torch.randn(700, 32).half(), torch.randn(32, 9).half()))",
    "reduce_before_atomic/bounds_check": """
        results.append(m.bounds_check(keep(torch.randint(-2, 9, (3000,))), 7))
        results.append(m.bounds_check(torch.zeros(10, dtype=torch.int64), 7))
    """,
    "aggregate_atomics/append_buffer": """
        for n in (1, 1024, 5000):
            results += m.compact(torch.randn(n))
        results += m.compact(-torch.rand(2000))
    """,
    "aggregate_atomics/bounds_check": """
        results += m.bounds_check(keep(torch.randint(-2, 9, (3000,))), 7)
        results += m.bounds_check(torch.zeros(10, dtype=torch.int64), 7)
    """,
    "aggregate_atomics/third_reports": """
        for n, start in ((1, 0), (256, 0), (3000, 0), (3000, -7), (3000, -50), (3000, 5)):
            results += m.report(torch.randn(n), start)
    """,
    "aggregate_atomics/variable_lengths": """
        for n in (100, 512, 1900):
            results += m.place(torch.randint(-9, 20, (n,), dtype=torch.int32))
    """,
    "aggregate_atomics/unmasked_values": "results += m.split(torch.randn(1024))",
    "pack_rows/gathered_rows": """
        for rows, d in ((640, 32), (333, 20), (1, 1), (70, 3000)):
            results.append(m.gather(torch.randn(50, d).half(), torch.randint(0, 50, (rows,))))
    """,
    "pack_rows/narrow_softmax": """
        for rows, cols in ((64, 64), (37, 50), (1, 3)):
            results.append(m.softmax(torch.randn(rows, cols)))
    """,
    "pack_rows/layer_norm": """
        for rows, cols in ((32, 128), (37, 200), (3, 900), (2, 1500)):
            results += m.layer_norm(torch.randn(rows, cols), torch.randn(cols), 0)
    """,
    "pack_rows/rotary_heads": """
        for tokens, heads, half in ((7, 16, 64), (5, 3, 32), (4, 1, 16), (3, 40, 64)):
            angle = torch.rand(tokens, half)
            results.append(m.rotary(torch.randn(tokens, heads, 2 * half), angle.cos(), angle.sin()))
    """,
    "pack_rows/scan_over_steps": """
        for batches, channels in ((16, 32), (11, 20), (1, 300)):
            results += m.scan(torch.randn(batches, 9, channels), torch.rand(channels))
    """,
    "pack_rows/shared_grid": """
        for rows in (8, 13, 1):
            results += m.run(torch.randn(rows, 16), torch.randn(rows))
    """,
    "larger_blocks_per_atomic/bounds_check": """
        results.append(m.bounds_check(keep(torch.randint(-2, 9, (9000,))), 7))
        results.append(m.bounds_check(torch.zeros(10, dtype=torch.int64), 7))
    """,
    "larger_blocks_per_atomic/column_sum": """
        for rows, cols in ((90, 100), (200, 64)):
            results.append(m.column_sum(torch.randn(rows, cols).bfloat16()))
    """,
    "larger_blocks_per_atomic/counts": """
        for n, bins in ((1, 64), (5000, 50), (5000, 3000)):
            x = torch.randint(0, bins, (n,), dtype=torch.int32)
            results.append(m.count(x, torch.zeros(bins, dtype=torch.int32)))
    """,
    "sum_axis_before_atomic/column_sum": """
        for rows, cols in ((1, 1), (90, 100), (32, 64)):
            results.append(m.column_sum(torch.randn(rows, cols).bfloat16()))
    """,
    "sum_axis_before_atomic/row_counts": """
        for rows, cols in ((1, 1), (19, 100)):
            results.append(m.row_counts(torch.randint(-9, 2**30, (rows, cols), dtype=torch.int32)) / 2**20)
    """,
    "sum_axis_before_atomic/per_segment": """
        segments = torch.tensor([0, 1, 1, -1], dtype=torch.int32)
        results.append(m.segment_sum(torch.randn(32, 50).half() / 8, segments, 2))
    """,
    "block_histogram/counts": """
        for n, bins in ((1, 1), (5000, 50), (5000, 1024), (5000, 3000)):
            x = torch.randint(0, bins, (n,), dtype=torch.int32)
            results.append(m.count(x, torch.zeros(bins, dtype=torch.int32)))
    """,
    "block_histogram/bytes": """
        x = torch.randint(-128, 128, (5000,), dtype=torch.int8)
        results.append(m.count(x, torch.zeros(256, dtype=torch.int64)))
    """,
    "block_histogram/computed_bin": """
        x = torch.randint(-400, 2**40, (5000,))
        x[::3] %= 300
        results.append(m.count(x, torch.zeros(100, dtype=torch.int32)))
    """,
    "block_histogram/per_row": """
        x = torch.randint(0, 20, (3, 700), dtype=torch.int32)
        results.append(m.count(x, torch.zeros((3, 20), dtype=torch.int32)))
    """,
    "config_retune/ranked_tiles": "results.append(m.run(torch.randn(300, 64).half(), torch.randn(64, 150).half()))",
    "config_retune/one_row_per_program": """
        for rows, cols in ((40, 200), (7, 64), (1, 1)):
            results.append(m.run(torch.randn(rows, cols).half()))
    """,
    "config_retune/computed_step": """
        for rows, cols in ((2, 20000), (3, 700), (1, 1)):
            results.append(m.run(torch.randn(rows, cols) + 1))
    """,
    "config_retune/computed_tile": """
        for n in (1, 4000, 70001):
            results.append(m.run(torch.randn(n), 2.0))
    """,
    "config_retune/square_tiles": "results.append(m.run(torch.randn(100, 130), torch.randn(130, 100)))",
    "config_retune/class_constant": "results.append(m.run(torch.randn(5, 1000), 0.5))",
    "pid_swizzle/tiles_of_a_batch": """
        offsets = torch.tensor([0, 70, 70, 203, 220])
        results.append(m.run(torch.randn(220, 64).half(), offsets, torch.randn(4, 64, 130).half(), 133))
    """,
    "narrow_dot_operands/scores_of_half": """
        q, k, v = (torch.randn(rows, 64).half() / 4 for rows in (64, 150, 150))
        results.append(m.run(q, k, v))
        results.append(m.run(q.float(), k.float(), v.float()))
    """,
    "fold_partial_sum/sum_of_chunks": """
        results.append(m.run(torch.randn(384, 64).half() / 4, torch.randn(384, 64).half()))
    """,
    "reduce_after_loop/norms": """
        for n in (1, 1024, 2500):
            results.append(m.run(torch.randn(2, 3, n) / 8, torch.randn(3)))
    """,
    "oversubscribe_units/rows_per_program": """
        for rows in (2, 50):
            results.append(m.run(torch.randn(rows, 300)))
    """,
    "parallel_parts/two_passes": "results += m.run(torch.randn(3, 20, 16))",
    "reduce_before_atomic/loop_over_rows": "results += m.run(torch.randn(9000), torch.randn(9000))",
    "relax_atomics/zeros_like_loop": "results.append(m.column_sums([torch.randn(5, 30).half() / 8]))",
    "fp8_to_fnuz/scaled_product": """
        a = torch.randn(100, 128).to(torch.float8_e4m3fn)
        b = torch.randn(70, 128).to(torch.float8_e4m3fn)
        results.append(m.run(a, b, torch.tensor([0.5]), torch.tensor([2.0])))
    """,
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, dict]:
    args = [sys.executable, "-c", PROGRAM, str(LIBRARY_FOLDER)]
    trials = json.dumps({name: textwrap.dedent(calls).strip() for name, calls in TRIALS.items()})
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(args, input=trials, capture_output=True, text=True, env=environment, timeout=280)
    assert done.returncode == 0, done.stderr[-2000:]
    return {found["name"]: found for found in map(json.loads, done.stdout.splitlines())}


@pytest.mark.xdist_group("skills-equivalence")
@pytest.mark.parametrize("case", TRIALS)
def test_golden_pairs_agree_in_the_interpreter(case: str, outcomes: dict[str, dict]) -> None:
    found = outcomes[case]
    assert "error" not in found, found["error"]
    assert found["size"] > 0.1
    assert found["worst"] < 2e-3, found
