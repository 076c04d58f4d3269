"""Launches compiled for targets without a GPU: what the specialisation is, and what a failure says."""

import os
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.tools.tensor_descriptor import TensorDescriptor

from sandbox.compile_cache import CompileCache
from sandbox.compile_errors import from_exception
from sandbox.compiling import Compiled, CompileError, compile_launch, compile_signature, pack, specialize, unpack
from sandbox.target import Target, load_target

GFX942, GFX950, GFX90A, SM90 = (load_target(name) for name in ("gfx942", "gfx950", "gfx90a", "sm_90"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> CompileCache:
    return CompileCache(tmp_path_factory.mktemp("compile"))


@triton.jit
def scale(x, y, n, factor, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, tl.load(x + i, mask=i < n) * factor, mask=i < n)


def arguments(n: int = 4096, **options):
    return (torch.zeros(n), torch.zeros(n), n, 2.0), {"BLOCK": 256, **options}


@pytest.mark.parametrize("target", [GFX942, GFX950, GFX90A, SM90], ids=lambda t: t.arch)
def test_compiles_for_every_target(target: Target, cache: CompileCache) -> None:
    args, kwargs = arguments(num_warps=8)
    result = compile_launch(scale, args, kwargs, target, cache=cache)
    assert isinstance(result, Compiled)
    assert result.code[:4] == b"\x7fELF" and result.kernel == "scale" and result.arch == target.arch
    assert result.num_warps == 8 and result.threads_per_workgroup == 8 * target.wavefront_size
    assert "scale" in result.asm and "tt.func" in result.ttir and "ttg." in result.ttgir
    assert list(result.signature.items())[:3] == [("x", "*fp32"), ("y", "*fp32"), ("n", "i32")]
    assert result.constants == {"BLOCK": "256"}


def test_specialisation_is_that_of_the_launch() -> None:
    args, kwargs = arguments()
    aligned = specialize(scale, args, kwargs, GFX942)
    assert ["tt.divisibility", 16] in aligned.attributes[(0,)] and ["tt.pointer_range", 32] in aligned.attributes[(0,)]
    assert ["tt.divisibility", 16] in aligned.attributes[(2,)]
    odd = specialize(scale, (args[0][1:], args[1], 4095, 2.0), kwargs, GFX942)
    assert ["tt.divisibility", 16] not in odd.attributes.get((0,), [])
    assert ["tt.divisibility", 16] not in odd.attributes.get((2,), [])
    one = specialize(scale, (args[0], args[1], 1, 2.0), kwargs, GFX942)
    assert one.signature["n"] == "constexpr" and one.constants[(2,)] == 1
    assert one.arguments["n"] == 1


@triton.jit
def mixed(pair, desc, flag, wide, none, OP: tl.constexpr, KIND: tl.constexpr):
    v = desc.load([0, 0])
    if flag:
        v = OP(v, v)
    if none is None:
        v += pair[1]
    tl.store(pair[0] + wide, tl.sum(tl.sum(v, 1), 0).to(KIND))


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def multiply(a, b):
    return a * b


def test_tuples_descriptors_functions_and_types(cache: CompileCache) -> None:
    x, out = torch.zeros(64, 64), torch.zeros(8, dtype=torch.float16)
    desc = TensorDescriptor.from_tensor(x, [16, 32])
    args = ((out, 3), desc, True, 2**40, None)
    results = {}
    for op in (add, multiply):
        result = compile_launch(mixed, args, {"OP": op, "KIND": tl.float16}, GFX942, cache=cache)
        assert isinstance(result, Compiled), result
        results[op] = result
    assert results[add].asm != results[multiply].asm
    assert results[add].signature["wide"] == "i64" and results[add].signature["desc"].startswith("tensordesc<fp32")


def test_fp8_pointers(cache: CompileCache) -> None:
    x = torch.zeros(4096).to(torch.float8_e4m3fn)
    result = compile_launch(scale, (x, torch.zeros(4096), 4096, 1.0), {"BLOCK": 256}, GFX950, cache=cache)
    assert isinstance(result, Compiled) and result.signature["x"] == "*fp8e4nv"


def failure(kernel, args, kwargs, target: Target, cache: CompileCache) -> CompileError:
    result = compile_launch(kernel, args, kwargs, target, cache=cache)
    assert isinstance(result, CompileError)
    assert result.file == __file__
    lines = Path(__file__).read_text().splitlines()
    if result.line is not None and result.source_line:
        assert lines[result.line - 1].strip() == result.source_line.splitlines()[0].strip()
    return result


@triton.jit
def inner(v):
    return libdevice.add_rd(
        v,
        v,
    )


@triton.jit
def outer(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x + i, inner(tl.load(x + i)))


def test_front_end_error_names_the_innermost_users_statement(cache: CompileCache) -> None:
    error = failure(outer, (torch.zeros(64),), {"BLOCK": 64}, GFX942, cache)
    assert error.kind == "frontend" and "add_rd" in error.message and error.kernel == "outer"
    assert error.source_line == "return libdevice.add_rd(\n    v,\n    v,\n)"


@pytest.mark.parametrize(("option", "words"), [({"maxnreg": 96}, "maxnreg"), ({"num_ctas": 2}, "num_ctas > 1")])
def test_unknown_options_name_the_launch(option: dict[str, int], words: str, cache: CompileCache) -> None:
    args, kwargs = arguments(**option)
    result = compile_launch(scale, args, kwargs, GFX950, cache=cache)
    assert isinstance(result, CompileError) and result.kind == "option" and words in result.message
    assert result.source_line == "result = compile_launch(scale, args, kwargs, GFX950, cache=cache)"


def test_arguments_triton_cannot_take() -> None:
    result = compile_launch(scale, (object(), torch.zeros(4), 4, 1.0), {"BLOCK": 4}, GFX950)
    assert isinstance(result, CompileError) and result.kind == "argument"
    missing = compile_launch(scale, (torch.zeros(4),), {"BLOCK": 4}, GFX950)
    assert isinstance(missing, CompileError) and "missing" in missing.message


@triton.jit
def ptx(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    w = tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [v], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(x + i, w)


def test_llvm_ending_its_process_is_an_error_with_its_words(cache: CompileCache) -> None:
    error = failure(ptx, (torch.zeros(64),), {"BLOCK": 64}, GFX942, cache)
    assert error.kind == "compiler-exit" and "constraint 'f'" in error.message
    assert error.source_line is not None and error.source_line.startswith("w = tl.inline_asm_elementwise(")


@triton.jit
def cuda_only(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.store(x + i, cuda_libdevice.exp(v))


def test_cuda_library_names_its_statement(cache: CompileCache) -> None:
    error = failure(cuda_only, (torch.zeros(64),), {"BLOCK": 64}, GFX950, cache)
    assert error.kind == "lowering" and "__nv_expf" in error.message
    assert error.source_line == "tl.store(x + i, cuda_libdevice.exp(v))"


@triton.jit
def mx(a, s, c, N: tl.constexpr):
    r, k, g = tl.arange(0, N), tl.arange(0, 32), tl.arange(0, 2)
    x = tl.load(a + r[:, None] * 32 + k[None, :])
    y = tl.load(a + r[None, :] * 32 + k[:, None])
    u = tl.load(s + r[:, None] * 2 + g[None, :])
    acc = tl.dot_scaled(x, u, "e2m1", y, u, "e2m1")
    tl.store(c + r[:, None] * N + r[None, :], acc)


def test_pass_failure_names_the_operation(cache: CompileCache) -> None:
    args = (torch.zeros(32, 32, dtype=torch.uint8), torch.zeros(32, 2, dtype=torch.uint8), torch.zeros(32, 32))
    error = failure(mx, args, {"N": 32}, GFX942, cache)
    assert error.kind == "lowering" and "DotScaleOp" in error.message
    assert error.source_line == 'acc = tl.dot_scaled(x, u, "e2m1", y, u, "e2m1")'
    assert isinstance(compile_launch(mx, args, {"N": 32}, GFX950, cache=cache), Compiled)


@triton.jit
def one_of_three(out, a, b, c, n, N: tl.constexpr):
    y = tl.program_id(1)
    if y == 0:
        source = a
    elif y == 1:
        source = b
    else:
        source = c
    i = tl.arange(0, N)
    tl.store(out + y * n + i, tl.load(source + i, mask=i < n), mask=i < n)


def test_a_pass_that_fails_an_assertion_is_named_with_it(cache: CompileCache) -> None:
    error = failure(one_of_three, (*(torch.zeros(96) for _ in range(4)), 32), {"N": 32}, GFX942, cache)
    said = "the compiler's pass TritonAMDGPUCanonicalizePointers failed an assertion of its own: expected then fat ptr"
    assert error.kind == "lowering" and error.message.startswith(said)


def test_a_warning_is_not_the_reason_of_a_failure() -> None:
    """As Python writes them beside what the compiler says: with the line they are about, and with advice."""
    log = (
        "/work/k.py:42: UserWarning: Logical operators 'and' and 'or' are deprecated\n  mask = i < n and i >= 0\n"
        "UserWarning: Enable tracemalloc to get the object allocation traceback\n"
    )
    said = "Implicit conversion of CUDA __nv_rsqrtf device function has been dropped"
    assert from_exception(RuntimeError(said), scale, log=log).message == f"RuntimeError: {said}"
    ended = from_exception(RuntimeError("PassManager::run failed"), scale, log=f"{log}out of registers\n")
    assert ended.message == "out of registers (RuntimeError: PassManager::run failed)"


@triton.jit
def at_most(N: tl.constexpr, M: tl.constexpr):
    tl.static_assert(N <= M)


@triton.jit
def asserts(x, N: tl.constexpr):
    at_most(N, 16)
    tl.store(x + tl.arange(0, N), 0.0)


def test_a_static_assertion_without_words_is_quoted(cache: CompileCache) -> None:
    error = failure(asserts, (torch.zeros(32),), {"N": 32}, GFX942, cache)
    assert error.message == "CompileTimeAssertionFailure: tl.static_assert(N <= M)"


@triton.jit
def unrolled(x, N: tl.constexpr):
    v = tl.load(x)
    for _ in tl.static_range(N):
        v = v * v + 1.0
    tl.store(x, v)


def test_a_compiler_that_does_not_end_is_ended() -> None:
    result = compile_launch(unrolled, (torch.zeros(1),), {"N": 200_000}, GFX942, timeout_s=1.5)
    assert isinstance(result, CompileError) and result.kind == "timeout"


def test_cache_hits_and_survives_damage(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path)
    args, kwargs = arguments()
    first = compile_launch(scale, args, kwargs, GFX942, cache=cache)
    again = compile_launch(scale, args, kwargs, GFX942, cache=cache)
    assert isinstance(first, Compiled) and isinstance(again, Compiled)
    assert not first.from_cache and again.from_cache and again.code == first.code
    other = compile_launch(scale, args, {**kwargs, "num_warps": 1}, GFX942, cache=cache)
    assert isinstance(other, Compiled) and not other.from_cache
    for entry in tmp_path.glob("*/*.zip"):
        entry.write_bytes(entry.read_bytes()[:100])
    repaired = compile_launch(scale, args, kwargs, GFX942, cache=cache)
    assert isinstance(repaired, Compiled) and not repaired.from_cache


def test_cache_stays_within_its_size(tmp_path: Path) -> None:
    cache = CompileCache(tmp_path, max_bytes=6000)
    for number in range(10):
        cache.store(f"{number:02}key", {"code": os.urandom(1000)})
        os.utime(tmp_path / f"{number:02}" / f"{number:02}key.zip", (number, number))
    cache.prune()
    assert cache.load("00key") is None and cache.load("09key") is not None
    assert sum(p.stat().st_size for p in tmp_path.glob("*/*.zip")) <= 6000


def test_a_cache_that_cannot_be_written_only_misses(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    cache = CompileCache(blocked / "cache")
    cache.store("00", {"a": b"b"})
    assert cache.load("00") is None


def test_results_survive_packing(cache: CompileCache) -> None:
    args, kwargs = arguments()
    result = compile_launch(scale, args, kwargs, GFX942, cache=cache)
    assert isinstance(result, Compiled)
    back = unpack(pack(result))
    assert isinstance(back, Compiled) and back.code == result.code and back.metadata == result.metadata
    error = CompileError("option", "no", "k")
    assert unpack(pack(error)) == error


def test_from_a_signature_alone(cache: CompileCache) -> None:
    signature = {"x": "*fp16", "y": "*fp16", "n": "i32", "factor": "fp32"}
    result = compile_signature(scale, signature, {"BLOCK": 1024}, {"num_warps": 4}, GFX950, cache=cache)
    assert isinstance(result, Compiled) and "dwordx" in result.asm
    wrong = compile_signature(scale, signature, {"BLOCK": 1024}, {"cluster_dims": 2}, GFX950)
    assert isinstance(wrong, CompileError) and wrong.kind == "option"


@triton.jit
def dot_into_wrong_sum(x, out):
    i = tl.arange(0, 32)
    acc = tl.zeros((32, 32), dtype=tl.int32)
    a = tl.load(x + i[:, None] * 32 + i[None, :])
    tl.store(out + i[:, None] * 32 + i[None, :], tl.dot(a, a, acc))


def test_an_assertion_without_a_message_is_quoted(cache: CompileCache) -> None:
    """Triton 3.6 has some; later versions may say more."""
    operands = torch.zeros(32, 32, dtype=torch.int8), torch.zeros(32, 32, dtype=torch.int32)
    result = compile_launch(dot_into_wrong_sum, operands, {}, GFX950, cache=cache)
    assert isinstance(result, CompileError) and result.source_line is not None and "tl.dot" in result.source_line
    assert result.message != "AssertionError" and "acc" in result.message


@triton.jit
def of_another_version(x, y, n, OLD: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if n > 4:
        if OLD:
            tl._experimental_descriptor_store(y, tl.load(x + i), [0])
        else:
            tl.store(y + i, tl.load(x + i))


def test_names_of_another_triton_are_said_to_be_that(cache: CompileCache) -> None:
    args = (torch.zeros(64), torch.zeros(64), 8, False, 64)
    error = compile_launch(of_another_version, args, {}, GFX950, cache=cache)
    assert isinstance(error, CompileError)
    assert error.message.startswith(
        f"Triton {triton.__version__} has no triton.language._experimental_descriptor_store"
    )
    assert error.source_line == "tl._experimental_descriptor_store(y, tl.load(x + i), [0])"


@triton.jit
def failing_condition(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    if tl.arange(0, BLOCK) < n:
        tl.store(y + i, tl.load(x + i))
        tl.store(y + i, tl.load(x + i))


def test_of_a_block_only_its_header_is_quoted(cache: CompileCache) -> None:
    error = compile_launch(failing_condition, (torch.zeros(64), torch.zeros(64), 8, 64), {}, GFX950, cache=cache)
    assert isinstance(error, CompileError) and error.source_line is not None
    assert "\n" not in error.source_line and "arange" in error.source_line
