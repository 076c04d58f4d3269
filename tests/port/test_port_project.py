"""What belongs to a project: files that are included, macros of the build, functions nothing uses, host code."""

from pathlib import Path

import pytest

from agent.port.includes import Include, PathIndex
from agent.port.intake import open_project
from agent.port.items import items_of
from agent.port.loop import port
from agent.port.macros import macros_of_the_build
from agent.port.repair import repair
from agent.port.request import PortRequest
from agent.port.result import PortRefusal
from agent.port.slice import Slice
from agent.port.unused import LEFT_OUT, leave_out_unused
from sandbox.errors import InputError
from sandbox.hip_guards import UNDEFINED
from sandbox.hip_source import HipSource
from skills.cuda_edit import defined_names

KERNEL = "__global__ void k(float* x) { x[threadIdx.x] *= scale(2.f); }\n"
HEADER = "#pragma once\n__device__ inline float scale(float v) { return __ldg(&v); }\n"


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_single_file_brings_what_it_includes(tmp_path: Path) -> None:
    written(
        tmp_path, {"src/a.cu": '#include "../common/s.cuh"\n' + KERNEL, "common/s.cuh": HEADER, "other/b.cu": KERNEL}
    )
    with open_project(PortRequest(tmp_path / "src" / "a.cu")) as project:
        assert sorted(project.sources) == ["common/s.cuh", "src/a.cu"]
        assert project.units == ["src/a.cu"]


def test_an_upload_brings_nothing_from_outside_its_folder(tmp_path: Path) -> None:
    written(tmp_path, {"src/a.cu": '#include "../common/s.cuh"\n' + KERNEL, "common/s.cuh": HEADER})
    with pytest.raises(InputError) as caught, open_project(PortRequest(tmp_path / "src" / "a.cu", contained=True)):
        pass
    assert caught.value.line == 1
    assert "lies outside of what was given" in str(caught.value)


@pytest.mark.parametrize("name", ["/etc/passwd", "../../../etc/passwd"])
def test_an_include_that_leaves_the_project_is_refused(tmp_path: Path, name: str) -> None:
    written(tmp_path, {"a.cu": f'#include "{name}"\n' + KERNEL})
    with pytest.raises(InputError, match="outside of what was given"), open_project(PortRequest(tmp_path)):
        pass


def test_cuda_headers_of_an_include_folder_are_ported(tmp_path: Path) -> None:
    written(
        tmp_path,
        {"src/a.cu": "#include <lib/s.cuh>\n" + KERNEL, "inc/lib/s.cuh": HEADER, "inc/lib/plain.h": "int x;\n"},
    )
    with open_project(PortRequest(tmp_path / "src" / "a.cu", include_folders=(tmp_path / "inc",))) as project:
        assert sorted(project.sources) == ["a.cu", "include/lib/s.cuh"]
        assert project.sources["include/lib/s.cuh"].foreign and not project.sources["a.cu"].foreign


def test_a_named_file_of_a_folder_brings_what_it_includes_and_nothing_else(tmp_path: Path) -> None:
    files = {
        "src/a.cu": "#include <lib/s.cuh>\n" + KERNEL,
        "include/lib/s.cuh": HEADER + '#include "t.h"\n',
        "include/lib/t.h": "int t;\n",
        "src/b.cu": KERNEL,
    }
    with open_project(PortRequest(written(tmp_path, files), include=("src/a.cu",))) as project:
        assert sorted(project.sources) == ["include/lib/s.cuh", "src/a.cu"]
        assert sorted(project.others) == ["include/lib/t.h"]
        assert project.units == ["src/a.cu"]


def test_a_kernel_file_that_another_includes_is_no_unit(tmp_path: Path) -> None:
    files = {"main.cu": '#include "impl.cu"\nvoid run(float* x) { k<<<1, 1>>>(x); }\n', "impl.cu": HEADER + KERNEL}
    with open_project(PortRequest(written(tmp_path, files))) as project:
        assert project.units == ["main.cu"]


def test_of_files_with_the_same_name_the_nearest_is_meant() -> None:
    index = PathIndex.of(["a/x.h", "b/x.h", "b/c/x.h", "b/math.h"])
    assert index.find(Include("x.h", True, 1), "b/k.cu") == "b/x.h"
    assert index.find(Include("c/x.h", False, 1), "a/k.cu") == "b/c/x.h"
    assert index.find(Include("math.h", False, 1), "b/k.cu") is None
    assert index.find(Include("none.h", True, 1), "b/k.cu") is None


GUARDED = """\
#if defined(__HIP_PLATFORM_AMD__) || defined(__HIPCC__)
#define ON_HIP 1
#else
#define ON_HIP 0
#endif
#ifndef A_GUARD
#define A_GUARD
#endif
#if ON_HIP
int hip;
#else
__device__ void f() { nvcuda::wmma::fill_fragment(a, 0.f); }
#endif
#ifdef WITH_TENSOR_CORES
__device__ void g() { nvcuda::wmma::fill_fragment(a, 0.f); }
#endif
"""


def test_macros_of_the_build(tmp_path: Path) -> None:
    request = PortRequest(
        written(tmp_path, {"a.cu": GUARDED + "__global__ void k() {}\n"}), defines=("LEVEL=3", "FAST")
    )
    with open_project(request) as project:
        known = macros_of_the_build(project, request)
    assert (known["ON_HIP"], known["WITH_TENSOR_CORES"], known["LEVEL"], known["FAST"]) == (1, UNDEFINED, 3, 1)
    assert "A_GUARD" not in known


def test_what_the_build_does_not_compile_is_not_refused(tmp_path: Path) -> None:
    folder = written(tmp_path, {"a.cu": GUARDED + "__global__ void k() {}\n"})
    for defines, lines in (((), []), (("WITH_TENSOR_CORES",), [15])):
        request = PortRequest(folder, defines=defines)
        with open_project(request) as project:
            macros = macros_of_the_build(project, request)
        found = repair("a.cu", GUARDED, ("gfx942",), macros=macros).refusals
        assert sorted({r.line for r in found}) == lines


BARRIERS = """\
namespace lib {
template <int N> __device__ __forceinline__ void wait_for(int name) {
  asm volatile("bar.sync %0, %1;" : : "r"(name), "n"(N) : "memory");
}
__device__ inline int used(int v) { return v + 1; }
}
"""


def test_a_refused_function_that_nothing_uses_is_left_out_by_name(tmp_path: Path) -> None:
    kernel = '#include "b.cuh"\n__global__ void k(int* x) { x[0] = lib::used(x[0]); }\n'
    refusal = PortRefusal("b.cuh", 3, "named barriers", "Use others.", "refuse-named-barriers", ("gfx942",))
    with open_project(PortRequest(written(tmp_path, {"a.cu": kernel, "b.cuh": BARRIERS}))) as project:
        texts = {p: f.text for p, f in project.sources.items()}
        fresh, applied, kept = leave_out_unused(project, texts, [refusal])
        assert kept == []
        assert applied[0].detail == "wait_for is used nowhere: named barriers"
        assert fresh["b.cuh"].splitlines()[1] == f"#ifdef {LEFT_OUT}  // wait_for: named barriers"
        assert fresh["b.cuh"].count("#endif") == 1
        calling = {**texts, "a.cu": texts["a.cu"].replace("lib::used(x[0])", "(lib::wait_for<32>(1), 1)")}
        assert leave_out_unused(project, calling, [refusal]) == (calling, [], [refusal])


def test_what_was_asked_for_is_never_left_out(tmp_path: Path) -> None:
    refusal = PortRefusal("b.cuh", 3, "named barriers", "Use others.", "refuse-named-barriers", ("gfx942",))
    with open_project(PortRequest(written(tmp_path, {"b.cuh": BARRIERS}))) as project:
        texts = {p: f.text for p, f in project.sources.items()}
        assert leave_out_unused(project, texts, [refusal])[2] == [refusal]


HOST = """\
#define LAUNCH(k) k<<<1, 1>>>()
#define BOTH __host__ __device__
struct Timer { cudaEvent_t e; void start() { cudaEventRecord(e); } };
struct Pair { int a, b; };
BOTH inline int both(Pair p) { return p.a + p.b; }
__global__ void k() { both({width(), 1}); }
void launch() { LAUNCH(k); }
template <typename T> void outer(T t) { launch(); }
void outermost() { Timer t; outer(1); }
constexpr int width() { return 4; }
constexpr int depth = width();
__global__ void other(Pair p) { both(p); }
int plain(int v) { return v; }
"""


def test_a_slice_holds_what_the_kernels_reach() -> None:
    sliced = Slice({"a.cu": HOST}).texts(["k"])["a.cu"]
    assert sliced.count("\n") == HOST.count("\n")
    for name in ("struct Pair", "BOTH inline int both(Pair p)", "__global__ void k(", "constexpr int width()"):
        assert name in sliced
    for name in ("Timer", "launch(", "outer", "int plain", "void other"):
        assert name not in sliced


def test_what_a_compiler_complains_of_is_found_as_member_function_or_item() -> None:
    slice_ = Slice({"a.cu": HOST})
    line = 1 + HOST[: HOST.index("cudaEventRecord")].count("\n")
    found = slice_.blame("a.cu", line)
    assert found is not None and found.names == {"start"}
    slice_.dropped.add(("a.cu", found.start))
    again = slice_.blame("a.cu", line)
    assert again is not None and again.names == {"Timer"}


ITEMS = """\
namespace n { extern "C" {
template <typename T = decltype(f(1)), int N = (3 > 2)> struct __align__(16) V : public B<T> { T v[N]; } one, *two;
} }
extern "C" __global__ void __launch_bounds__(64, 2) kernel(float* x) { if (x) { x[0] = 1; } }
DISPATCH(float)
DISPATCH(half);
static const int table[] = {1, 2}, other = f(3);
typedef struct { int a; } Named;
typedef void (*callback)(int);
using Alias = V<float>;
using namespace std;
enum Kind : int { FIRST, SECOND };
__device__ float operator+(V<float> a, V<float> b) { return 0; }
__constant__ float weights[64];
int declared(int a, int b);
template __global__ void kernel<float, 4>(float* x);
class Later;
"""


def test_items_of_a_file() -> None:
    found = [(i.kind, set(i.names)) for i in items_of(HipSource(ITEMS))]
    assert found == [
        ("type", {"V", "one", "two"}),
        ("function", {"kernel"}),
        ("macro-use", set()),
        ("macro-use", set()),
        ("variable", {"table", "other"}),
        ("type", {"Named"}),
        ("alias", {"callback"}),
        ("alias", {"Alias"}),
        ("using", set()),
        ("type", {"Kind", "FIRST", "SECOND"}),
        ("function", {"operator"}),
        ("variable", {"weights"}),
        ("declaration", {"declared"}),
        ("declaration", {"kernel"}),
        ("type", {"Later"}),
    ]


def test_a_definition_for_another_compiler_is_none() -> None:
    text = "#ifdef __CUDACC__\n#define __ldcs(p) (*(p))\n#endif\n__device__ int f(const int* p) { return __ldcs(p); }\n"
    assert "__ldcs" not in defined_names(HipSource(text))


OWN_TYPE = """\
#include <cuda_runtime.h>
#if defined(USE_ROCM) || defined(__HIP_PLATFORM_AMD__)
#include <hip/hip_fp8.h>
using __nv_fp8_e4m3 = __hip_fp8_e4m3_fnuz;
#else
#include <cuda_fp8.h>
#endif
__global__ void widened(const __nv_fp8_e4m3* x, float* y) { y[threadIdx.x] = (float)x[threadIdx.x]; }
"""


def test_a_type_that_the_file_gives_amd_is_not_brought_by_a_shim(tmp_path: Path) -> None:
    for text, shimmed in ((OWN_TYPE, False), (OWN_TYPE.replace("using", "// using"), True)):
        (tmp_path / "a.cu").write_text(text)
        result = port(PortRequest(tmp_path / "a.cu", execute=False))
        assert result.builds, result.diagnostics
        assert ("fp8_ocp" in {s.name for s in result.shim_uses}) is shimmed
