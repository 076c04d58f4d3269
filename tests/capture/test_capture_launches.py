"""What a capture records of launches, host calls, checks and harness forms. The real compiler, the real interpreter."""

from __future__ import annotations

import textwrap

from sandbox.capture import Capture, Variant, capture
from sandbox.isolation import Limits
from sandbox.kernel import Kernel, parse_kernel
from sandbox.target import load_target

HEAD = """
import torch
import triton
import triton.language as tl


@triton.jit
def scale_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


def scale(x, factor=2.0, out=None):
    y = torch.empty_like(x) if out is None else out
    scale_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), factor, BLOCK=64)
    return y
"""


def kernel(text: str, head: str = HEAD) -> Kernel:
    return parse_kernel((head + textwrap.dedent(text)).encode(), "k.py")


def of(text: str, *, head: str = HEAD, limits: Limits | None = None, **options) -> Capture:
    options.setdefault("compile", False)
    limits = limits or Limits(wall_s=120)
    return capture(kernel(text, head), load_target("gfx950"), limits=limits, **options)


def test_a_launch_is_recorded_in_full():
    taken = of(
        """
        if __name__ == "__main__":
            base = torch.arange(200, device="cuda", dtype=torch.float16)
            x = base[3:103]
            out = torch.zeros(2, 50, device="cuda", dtype=torch.float16).t()
            y = scale(x, 3.0)
            torch.testing.assert_close(y.float(), x.float() * 3, atol=1e-3, rtol=1e-3)
        """,
        compile=True,
    )
    assert taken.outcome.status == "passed", taken.outcome.traceback
    (launch,) = taken.launches
    assert (launch.kernel, launch.file, launch.grid) == ("scale_kernel", "k.py", (2, 1, 1))
    source = kernel("").source.splitlines()
    assert "scale_kernel[(" in source[launch.call_line - 1]
    x, y = launch.argument("x_ptr"), launch.argument("y_ptr")
    assert x.value.tensor.shape == (100,) and x.value.tensor.offset == 3 and not x.value.tensor.aligned
    assert x.value.tensor.dtype == "float16" and x.written is False and y.written is True and y.after is not None
    assert [launch.argument(n).value.value for n in ("n", "factor", "BLOCK")] == [100, 3.0, 64]
    assert launch.argument("BLOCK").kind == "constexpr" and launch.argument("n").kind == "scalar"
    (record,) = launch.compiles
    assert record.ok and record.arch == "gfx950" and set(taken.stored.compiled[record.blob]) >= {"code", "asm"}
    (entry,) = taken.entries
    assert (entry.qualname, entry.kind, entry.parameters) == ("scale", "function", ("x", "factor", "out"))
    assert entry.known and entry.exact and entry.launches == (0,) and launch.entry == 0
    storage = taken.workload.storages[entry.outputs.tensor.storage]
    assert taken.stored.tensors.dtypes[storage.key] == "F16"
    (check,) = taken.outcome.checks
    assert (check.passed, check.known, check.rtol, check.atol, check.entry, check.output) == (
        True,
        True,
        1e-3,
        1e-3,
        0,
        0,
    )
    assert check.max_abs_error == 0.0 and check.expected.dtype == "float32" and check.actual_dtype == "float32"


def test_failures_and_unknown_results_do_not_stop_the_harness():
    taken = of(
        """
        @triton.jit
        def refused(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
            i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + i, mask=i < n)
            y = tl.inline_asm_elementwise("frobnicate.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
            tl.store(y_ptr + i, y, mask=i < n)

        x = torch.ones(64, device="cuda")
        y = torch.empty_like(x)
        refused[(1,)](x, y, 64, BLOCK=64)
        torch.testing.assert_close(y, x)
        assert torch.allclose(y, x)
        z = scale(x)
        too_many = scale_kernel[(1,)](x, y, 64, 2.0, BLOCK=64, num_warps=32)
        unknown_option = scale_kernel[(1,)](x, y, 64, 2.0, BLOCK=64, maxnreg=64)
        print("the end")
        """,
        compile=True,
    )
    assert taken.ended.stdout.endswith("the end\n"), taken.ended.stderr
    first, second, third, fourth = taken.launches
    assert not first.compiles[0].ok and first.compiles[0].error_kind == "compiler-exit"
    assert first.execution.status == "unknown" and first.execution.reason
    assert second.execution.status == "executed" and second.compiles[0].launches
    assert third.compiles[0].ok and "2048 threads" in third.compiles[0].limit
    assert [x.compiles[0].limit_kind for x in taken.launches] == [None, None, "threads_per_workgroup", None]
    assert fourth.compiles[0].error_kind == "option" and fourth.execution.status == "executed"
    assert [c.known for c in taken.outcome.checks] == [False, False]
    assert not taken.entries[0].known


def test_a_launch_over_its_budget_is_unknown():
    taken = of(
        """
        x = torch.ones(1 << 23, device="cuda")
        y = torch.empty_like(x)
        scale_kernel[(1 << 23,)](x, y, 1 << 23, 2.0, BLOCK=1)
        assert y.sum() == 2 << 23
        """,
        limits=Limits(wall_s=60, launch_s=0.05),
        executor="interpreter",
    )
    (launch,) = taken.launches
    assert launch.execution.status == "unknown" and "0.05 s" in launch.execution.reason
    assert taken.outcome.status == "unknown" and "AssertionError" in taken.outcome.exception


def test_autotuner_and_heuristics():
    head = HEAD.replace(
        "@triton.jit\ndef scale_kernel",
        """@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((65536, 32), (128, 4), (64, 4))],
    key=["n"], reset_to_zero=["y_ptr"],
)
@triton.heuristics({"EVEN": lambda a: a["n"] % a["BLOCK"] == 0})
@triton.jit
def scale_kernel""",
    ).replace("BLOCK: tl.constexpr", "BLOCK: tl.constexpr, EVEN: tl.constexpr")
    head = head.replace("triton.cdiv(x.numel(), 64),)", "lambda m: (triton.cdiv(x.numel(), m['BLOCK']),)").replace(
        "[(lambda", "[lambda"
    )
    head = head.replace("m['BLOCK']),)]", "m['BLOCK']),)]").replace(", BLOCK=64)", ")")
    taken = of(
        "for _ in range(2): y = scale(torch.ones(256, device='cuda'))\nassert y.sum() == 512\n", head=head, compile=True
    )
    assert taken.outcome.status == "passed", taken.outcome.traceback
    launch = taken.launches[1]
    tuned = launch.autotune
    assert [c.kwargs["BLOCK"].value for c in tuned.configs] == [65536, 128, 64] and tuned.index == 1
    assert tuned.configs[0].fits is False and "2048 threads" in tuned.configs[0].reason
    assert [c.limit_kind for c in tuned.configs] == ["threads_per_workgroup", None, None]
    assert [c.grid for c in tuned.configs] == [(1, 1, 1), (2, 1, 1), (4, 1, 1)]
    assert launch.constexprs["BLOCK"].value == 128 and launch.constexprs["EVEN"].value is True
    assert launch.heuristics == ("EVEN",)


def test_configs_with_too_many_threads_are_tried_beyond_the_first_that_fits():
    head = HEAD.replace(
        "@triton.jit\ndef scale_kernel",
        """@triton.autotune(configs=[triton.Config({}, num_warps=w) for w in (4, 8, 32)], key=["n"])
@triton.jit
def scale_kernel""",
    )
    taken = of("scale(torch.ones(256, device='cuda'))", head=head, compile=True)
    (launch,) = taken.launches
    assert launch.autotune.index == 0
    assert [c.fits for c in launch.autotune.configs] == [True, None, False]
    assert "32 warps x 64 lanes = 2048 threads per workgroup > 1024" in launch.autotune.configs[2].reason


def test_configs_that_the_kernel_itself_refuses_do_not_speak_for_the_others():
    head = HEAD.replace(
        "@triton.jit\ndef scale_kernel",
        """@triton.autotune(configs=[triton.Config({"BLOCK": b}) for b in (16, 16, 16, 16, 64)], key=["n"])
@triton.jit
def scale_kernel""",
    ).replace("BLOCK: tl.constexpr):", "BLOCK: tl.constexpr):\n    tl.static_assert(BLOCK >= 64, 'too small')")
    head = head.replace(", BLOCK=64)", ")").replace("(triton.cdiv(x.numel(), 64),)", "(4,)")
    (launch,) = of("scale(torch.ones(256, device='cuda'))", head=head, compile=True).launches
    assert "static_assert" in head and launch.autotune.index == 4
    assert [c.fits for c in launch.autotune.configs] == [False] * 4 + [True]


def test_autograd_belongs_to_the_forward_call():
    taken = of(
        """
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, factor):
                ctx.factor = factor
                return scale(x, factor)

            @staticmethod
            def backward(ctx, g):
                return scale(g.contiguous(), ctx.factor), None

        def layer(x):
            return Scale.apply(x, 3.0) + 1

        x = torch.randn(50, device="cuda", requires_grad=True)
        layer(x).backward(torch.full((50,), 0.5, device="cuda"))
        assert torch.equal(x.grad, torch.full_like(x, 1.5))
        """
    )
    assert taken.outcome.status == "passed", taken.outcome.traceback
    (entry,) = taken.entries
    assert entry.qualname == "layer" and entry.launches == (0, 1) and entry.grads[0].tensor.shape == (50,)
    assert [launch.phase for launch in taken.launches] == ["forward", "backward"]
    assert entry.args[0].tensor.requires_grad


def test_changed_arguments_are_outputs():
    taken = of(
        """
        def fill(out, items, *, extra):
            scale(items["a"][0], out=out)
            scale(extra, out=extra)

        out, a, extra = (torch.ones(8, device="cuda") for _ in range(3))
        fill(out, {"a": [a]}, extra=extra)
        """
    )
    (entry,) = taken.entries
    assert entry.qualname == "fill" and sorted(entry.mutated) == ["args.0", "kwargs.extra"]


def test_which_function_is_the_entry():
    taken = of(
        """
        class Layer(torch.nn.Module):
            def __init__(self, n, factor):
                super().__init__()
                self.weight = torch.nn.Parameter(torch.randn(n))
                self.factor = factor

            def forward(self, x):
                return scale(x * self.weight, self.factor)

        def make_and_scale(n):
            return scale(torch.randn(n, device="cuda"))

        def test_direct():
            x = torch.ones(64, device="cuda")
            scale_kernel[(1,)](x, x, 64, 2.0, BLOCK=64)

        def test_all():
            layer = Layer(16, factor=2.0).cuda()
            layer(torch.ones(16, device="cuda"))
            make_and_scale(16)
            return make_and_scale(8)

        test_all()
        test_direct()
        """
    )
    kinds = [(e.kind, e.qualname) for e in taken.entries]
    assert kinds[0] == ("method", "Layer.forward") and kinds[-1] == ("kernel", "scale_kernel")
    assert kinds[1][1] == "scale"
    receiver = taken.entries[0].receiver
    assert receiver.kind == "module" and [t.shape for t in receiver.tensors()] == [(16,)]


def test_other_seeds_and_distributions_rerun_the_harness():
    text = """
        torch.manual_seed(0)
        x = torch.randn(64, device="cuda")
        y = scale(x)
        torch.testing.assert_close(y, x * 2)
    """
    first, again, other, large = (
        of(text, variant=v) for v in (Variant(), Variant(), Variant(seed=7), Variant(seed=7, distribution="large"))
    )

    def inputs(taken: Capture) -> bytes:
        tensor = taken.entries[0].args[0].tensor
        return bytes(taken.stored.tensors[taken.workload.storages[tensor.storage].key])

    assert inputs(first) == inputs(again) != inputs(other) != inputs(large)
    assert {t.outcome.status for t in (first, other, large)} == {"passed"}
    assert large.outcome.checks[0].passed


def test_kernelbench_form():
    taken = of(
        """
        class Model(torch.nn.Module):
            def __init__(self, factor):
                super().__init__()
                self.factor = factor

            def forward(self, x):
                return x * self.factor

        class ModelNew(Model):
            def forward(self, x):
                return scale(x, self.factor)

        def get_inputs():
            return [torch.rand(32, 4)]

        def get_init_inputs():
            return [4.0]
        """
    )
    assert (taken.outcome.form, taken.outcome.status) == ("kernelbench", "passed"), taken.outcome.traceback
    assert [(e.kind, e.qualname) for e in taken.entries] == [("method", "ModelNew.forward")]
    assert taken.outcome.checks[0].passed and taken.outcome.checks[0].entry == 0


def test_test_functions_and_other_file():
    taken = of(
        """
        def test_scale():
            torch.testing.assert_close(scale(torch.ones(5, device="cuda")), torch.full((5,), 2.0, device="cuda"))

        def test_wrong():
            raise ValueError("no")
        """
    )
    assert (taken.outcome.form, taken.outcome.status, len(taken.launches)) == ("tests", "failed", 1)
    assert taken.outcome.exception == "ValueError: no"
    other = parse_kernel(b"import torch\nfrom k import scale\nscale(torch.ones(5, device='cuda'))\n", "harness.py")
    taken = of("", harness=other)
    assert (taken.outcome.form, taken.outcome.status) == ("other-file", "passed"), taken.outcome.traceback
    assert [e.qualname for e in taken.entries] == ["scale"]


def test_a_harness_beside_the_kernel_runs_the_kernel_as_given():
    """It brings along the file that it imports, as it lies there: not what is judged."""
    text = b"import torch\nfrom k import scale\nscale(torch.ones(5, device='cuda'))\n"
    other = parse_kernel(text, "harness.py", {"k.py": "raise RuntimeError('the file as it lies there')\n"})
    taken = of("", harness=other)
    assert taken.outcome.status == "passed", taken.outcome.traceback


def test_huge_storages_stay_lazy():
    taken = of(
        """
        x = torch.empty(2_200_000_000, device="cuda", dtype=torch.int8)
        x[-64:] = 3
        y = scale(x[-64:], 2)
        assert int(y.sum()) == 64 * 6
        """,
        limits=Limits(wall_s=100, memory_bytes=2 << 30),
    )
    assert taken.outcome.status == "passed", (taken.outcome.traceback, taken.ended)
    tensor = taken.entries[0].args[0].tensor
    storage = taken.workload.storages[tensor.storage]
    assert storage.nbytes == 2_200_000_000 and storage.page_key is not None
    assert taken.stored.tensors[storage.key].nbytes < 4 << 20


def test_static_mode_compiles_without_a_harness():
    taken = of("", compile=True)
    assert (taken.outcome.form, taken.outcome.status) == ("static", "none")
    assert taken.launches[0].compiles[0].ok and taken.launches[0].execution.status == "unknown"
    assert taken.suggested_harness.startswith('if __name__ == "__main__":') and "scale(" in taken.suggested_harness
    missing = HEAD.replace("import torch\n", "import torch\nfrom some_serving_engine.ops import thing, tl, triton\n")
    missing = missing.replace("import triton\nimport triton.language as tl\n", "")
    taken = of("", head=missing, compile=True)
    assert taken.outcome.form == "static" and "some_serving_engine" in taken.outcome.exception
    assert taken.launches and all(c.ok for launch in taken.launches for c in launch.compiles)
    assert any("placeholders" in note for note in taken.notes)


def test_what_has_every_attribute_is_no_endless_decorator():
    """A kernel that does not build names everything it reaches; a placeholder among it, or a proxy, ends the walk."""
    read = "tl.load(x_ptr + i, mask=i < n)"
    head = HEAD.replace("import torch\n", "import torch\nfrom some_serving_engine.ops import cast\n")
    taken = of("", head=head.replace(read, f"cast({read}, 1)"), compile=True, limits=Limits(wall_s=60))
    assert "some_serving_engine" in taken.outcome.exception
    assert taken.launches and not any(c.ok for launch in taken.launches for c in launch.compiles)
    proxy = "class Proxy:\n    def __getattr__(self, name):\n        return Proxy()\n\nproxy = Proxy()\n"
    head = HEAD.replace("@triton.jit", f"{proxy}\n@triton.jit", 1).replace(read, f"proxy({read})")
    taken = of("", head=head, compile=True, limits=Limits(wall_s=60))
    assert taken.outcome.status == "none", taken.outcome
    assert taken.launches and not any(c.ok for launch in taken.launches for c in launch.compiles)


def test_two_buffers_of_equal_contents_are_two_pieces_of_memory():
    taken = of(
        """
        if __name__ == "__main__":
            x, y = torch.zeros(64, device="cuda"), torch.zeros(64, device="cuda")
            scale(x, out=y)
            scale(x, out=x)
        """
    )
    first, second = taken.launches
    x, y = (first.argument(name).value.tensor for name in ("x_ptr", "y_ptr"))
    assert x.storage != y.storage
    storages = taken.workload.storages
    assert storages[x.storage].key == storages[y.storage].key, "the bytes are kept once"
    assert second.argument("x_ptr").value.tensor.storage == second.argument("y_ptr").value.tensor.storage


def test_comparisons_import_no_distributed_tensors_and_still_know_them():
    """Where the harness imports them itself, one is not comparable with a plain tensor, as torch says."""
    taken = of(
        """
        if __name__ == "__main__":
            import sys
            y = scale(torch.ones(5, device="cuda"))
            torch.testing.assert_close(y, torch.full((5,), 2.0, device="cuda"))
            assert "torch.distributed.tensor" not in sys.modules
            from torch.distributed.tensor import DTensor
            class Local(DTensor):
                pass
            try:
                torch.testing.assert_close(y, torch.Tensor._make_subclass(Local, torch.ones(5)))
            except TypeError as e:
                assert "DTensor" in str(e)
            else:
                raise AssertionError("a DTensor was compared")
        """
    )
    assert taken.outcome.status == "passed", taken.outcome.traceback
