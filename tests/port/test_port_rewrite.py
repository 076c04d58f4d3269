"""Rewriting without a compiler: names, tokens, guards, assembly, the in-place style, edits nobody may make."""

import pytest

from agent.port.assemble import new_path
from agent.port.guardrails import refuse_edit
from agent.port.inplace import GUARD, guarded
from agent.port.rename import load_tables, rename_source
from agent.shims.catalogue import load_catalogue
from sandbox.hip_asm import AsmError, asm_statements, parse_ptx
from sandbox.hip_diagnostics import abstracted, parse_diagnostics
from sandbox.hip_guards import evaluate, live_text
from sandbox.hip_ptx import translate_asm
from sandbox.hip_source import HipSource


def renamed(text: str, *, torch: bool = False) -> str:
    return rename_source(text, load_tables(), torch=torch, own_files=frozenset({"cuda_utils.cuh", "a.cu"}))[0]


def test_comments_and_strings_are_left_alone() -> None:
    text = 'const char* s = "cudaMalloc"; // cudaMalloc\ncudaMalloc(&p, n); /* cudaFree */\n'
    assert renamed(text) == 'const char* s = "cudaMalloc"; // cudaMalloc\nhipMalloc(&p, n); /* cudaFree */\n'


def test_a_token_at_the_start_is_renamed() -> None:
    assert renamed("cudaStream_t s;") == "hipStream_t s;"


def test_members_and_the_projects_own_headers_keep_their_names() -> None:
    text = '#include "cuda_utils.cuh"\n#include "a.cu"\nx.cudaMalloc = 1;\n'
    assert renamed(text) == '#include "cuda_utils.cuh"\n#include "a.hip"\nx.cudaMalloc = 1;\n'


def test_std_max_and_triple_brackets_stay() -> None:
    text = "__global__ void k() { int a = std::max(1, 2); }\nvoid r() { k<<<1, 2>>>(); }\n"
    assert renamed(text) == text


def test_nested_namespaces_of_cub_and_thrust() -> None:
    text = "using namespace cub; ::cub::Sum s; thrust::cuda::par; at::cuda::getCurrentCUDAStream(); my.cub::x;"
    assert renamed(text).startswith("using namespace hipcub; ::hipcub::Sum s; thrust::hip::par; at::cuda::")


def test_opt_in_shared_memory_is_the_opt_in_attribute() -> None:
    assert renamed("cudaDevAttrMaxSharedMemoryPerBlockOptin") == "hipDeviceAttributeSharedMemPerBlockOptin"


def test_torch_headers_follow_torchs_own_naming() -> None:
    assert renamed("#include <ATen/cuda/CUDAContext.h>\n", torch=True) == "#include <ATen/hip/HIPContext.h>\n"


@pytest.mark.parametrize(("path", "expected"), [("a/b.cu", "a/b.hip"), ("a.cuh", "a.cuh")])
def test_new_names(path: str, expected: str) -> None:
    assert new_path(path) == expected


@pytest.mark.parametrize(
    ("condition", "known", "value"),
    [
        ("defined(A) && A >= 700", {"A": 800}, 1),
        ("!defined(A) || A < 600", {"A": "undefined"}, 1),
        ("B > 3", {}, None),
        ("0 && B", {}, 0),
        ("(1 << 3) == 8 ? 2 : 3", {}, 2),
        ("__has_include(<x>) && 1", {}, None),
        ("1 +", {}, None),
        ("010 == 8 && 0x10u == 16", {}, 1),
    ],
)
def test_conditions(condition: str, known: dict[str, int | str], value: int | None) -> None:
    assert evaluate(condition, known) == value


def test_live_text_keeps_what_either_pass_compiles() -> None:
    text = "#if defined(__HIP_DEVICE_COMPILE__)\ndevice;\n#else\nhost;\n#endif\n#if 0\ndead;\n#endif\n"
    live = live_text(HipSource(text))
    assert "device" in live and "host" in live and "dead" not in live
    assert len(live) == len(text)


def test_tokens_give_the_text_back() -> None:
    text = 'auto s = R"x(a " b)x"; #define A(x) x##1 \\\n  // c\nint y = 0x1\'000; k<a<b>>(1)[2];'
    assert "".join(t.text for t in HipSource(text).tokens) == text


def test_kernel_signatures() -> None:
    text = """
namespace n { template <typename T, int N = 4> __launch_bounds__(256) __global__ void
k(const T* __restrict__ x, T (&y)[N], float2 s = {1, 2}) { if (x) { } } }
__global__ void declared(int);
"""
    kernels = HipSource(text).kernels
    assert [(k.namespace, k.name) for k in kernels] == [("n", "k")]
    assert [(p.type, p.name) for p in kernels[0].template] == [("typename", "T"), ("int", "N")]
    assert (kernels[0].parameters[0].type, kernels[0].parameters[0].name) == ("const T*", "x")


def asm(text: str) -> str:
    statement = next(iter(asm_statements(HipSource(text))))
    assert not isinstance(statement, tuple)
    return translate_asm(statement)


def test_named_operands_registers_and_predicates() -> None:
    out = asm(
        'asm("{.reg .pred %p<2>; .reg .b32 t;\\n setp.ge.s32 %p1, %[a], 0; @%p1 mov.b32 t, %[a]; @!%p1 mov.b32 t, 0;'
        ' mov.b32 %[r], t;}" : [r] "=r"(r) : [a] "r"(a));'
    )
    assert "if (ptx__p1)" in out and "if (!ptx__p1)" in out and "wavesmith::ptx::out(r, ptx0)" in out


@pytest.mark.parametrize(
    "text",
    [
        'asm("vset4.u32.u32.eq %0, %1, %1, 0;" : "=r"(d) : "r"(a));',
        'asm("bar.sync 1, 32;");',
        'asm("L: bra L;");',
        'asm("ld.shared::cluster.u32 %0, [%1];" : "=r"(d) : "r"(a));',
        'asm("add.s32 %0, %1, %5;" : "=r"(d) : "r"(a));',
        'asm("min.relu.f16 %0, %1, %1;" : "=h"(d) : "h"(a));',
    ],
)
def test_what_has_no_translation_says_so(text: str) -> None:
    with pytest.raises(AsmError):
        asm(text)


def test_ptx_scopes_and_vectors_are_told_apart() -> None:
    statement = next(
        iter(asm_statements(HipSource('asm("{ ld.global.v2.u32 {%0,%1}, [%2]; }" : "=r"(a), "=r"(b) : "l"(p));')))
    )
    assert not isinstance(statement, tuple)
    assert [i.opcode for i in parse_ptx(statement)] == ["{", "ld", "}"]


def test_in_place_keeps_both_texts_under_their_compilers() -> None:
    before = "#include <cuda_runtime.h>\n#define A(x) \\\n  cudaFree(x)\nint y;\n"
    after = "#include <hip/hip_runtime.h>\n#define A(x) \\\n  hipFree(x)\nint y;\n"
    text = guarded(before, after)
    hip, cuda = [], []
    side = None
    for line in text.splitlines():
        if line == GUARD:
            side = hip
        elif line == "#else" and side is hip:
            side = cuda
        elif line == "#endif":
            side = None
        else:
            for target in (hip, cuda) if side is None else (side,):
                target.append(line)
    assert hip == after.splitlines()
    assert cuda == before.splitlines()


@pytest.mark.parametrize(
    ("after", "reason"),
    [
        ("__global__ void k(float* x) {}\n", "body"),
        ("void f() {}\n", "gone"),
        ("#if 0\n__global__ void k(float* x) { x[0] = 1.f; x[1] = 2.f; x[2] = 3.f; }\n#endif\n", "wider"),
        ('__global__ void k(float* x) { x[0] = 1.f; x[1] = 2.f; x[2] = 3.f; asm(""); }\n', "assembly"),
    ],
)
def test_edits_that_cheat_are_refused(after: str, reason: str) -> None:
    before = "__global__ void k(float* x) { x[0] = 1.f; x[1] = 2.f; x[2] = 3.f; }\n"
    refused = refuse_edit(before, after, "k.hip")
    assert refused is not None and (reason in refused or "gone" in refused)
    assert refuse_edit(before, before.replace("1.f", "4.f"), "k.hip") is None
    assert refuse_edit(before, before, "tests/k.hip") == "it changes a test"


def test_diagnostic_keys() -> None:
    text = "x.hip:3:5: error: use of undeclared identifier '__ldcs'; did you mean '__ldg'?\n"
    (diagnostic,) = parse_diagnostics(text, "/tmp/x", "gfx942")
    assert diagnostic.key.text == "use of undeclared identifier '_' | __ldcs | "
    assert abstracted("local memory (98304) exceeds limit (65536)") == "local memory (N) exceeds limit (N)"


def test_every_shim_states_a_contract_and_names_what_it_provides() -> None:
    entries = load_catalogue()
    assert len(entries) >= 60
    for entry in entries.values():
        for symbol in entry.provides:
            stem = symbol.removesuffix("4").removesuffix("2")
            assert symbol in entry.text or "WAVESMITH_SIMD" in entry.text or stem in entry.text, (entry.name, symbol)
        if entry.contract != "exact":
            assert entry.note, entry.name
