"""Repair by diagnostic: the rule table, the rounds it makes, a user's own build log, and hipify-perl's remarks."""

from pathlib import Path

import pytest

from agent.port.logs import read_log
from agent.port.loop import port
from agent.port.perl_lint import perl_lint
from agent.port.request import PortRequest
from agent.port.rule_table import answer, load_rules, parse_rules, rule_for
from sandbox.errors import WavesmithError
from sandbox.hip_diagnostics import Diagnostic, Note
from sandbox.toolchain import prepare_toolchain


def said(message: str, line: int = 1, column: int = 1, notes: tuple[Note, ...] = ()) -> Diagnostic:
    return Diagnostic("error", message, "a.hip", line, column, ("gfx942",), notes)


def test_the_table_is_sound_and_every_rule_has_a_reason() -> None:
    assert len({r.id for r in load_rules()}) == len(load_rules()) >= 30
    assert all(r.why for r in load_rules())


@pytest.mark.parametrize(
    "row",
    [
        "[{id: a, message: x, why: y}]",
        "[{id: a, message: x, why: y, rename: b, include: c}]",
        "[{id: a, message: '(', why: y, rename: b}]",
        "[{id: a, message: x, why: y, rename: b, colour: red}]",
        "[{id: a, message: x, why: y, rename: b}, {id: a, message: x, why: y, rename: b}]",
    ],
)
def test_a_bad_row_is_named(row: str) -> None:
    with pytest.raises(WavesmithError, match="row"):
        parse_rules(row)


@pytest.mark.parametrize(
    ("message", "rule"),
    [
        ("use of undeclared identifier 'FLT_MAX'", "floating-limits"),
        ("unknown type name 'uint32_t'", "integer-types"),
        ("no member named 'vector' in namespace 'std'", "std-same-name"),
        ("no member named 'sort' in namespace 'std'", "std-algorithm"),
        ("unknown type name 'cudaFancy_t'", "cuda-runtime-name"),
        ("use of undeclared identifier 'memcpy'", "string-functions"),
        ("use of undeclared identifier 'my_own_thing'", None),
        ("no member named 'vector' in 'my_class'", None),
    ],
)
def test_lookup_by_message_and_identifier(message: str, rule: str | None) -> None:
    found = rule_for(said(message))
    assert (found.id if found else None) == rule


def test_a_suggestion_is_taken_only_when_it_is_the_same_name() -> None:
    good = said("unknown type name 'cublasMath_t'; did you mean 'hipblasMath_t'?")
    assert answer("cublasMath_t m; // cublasMath_t\n", [good])[0] == "hipblasMath_t m; // cublasMath_t\n"
    other = said("unknown type name 'cusparseFoo_t'; did you mean 'hipsparseBar_t'?")
    assert answer("cusparseFoo_t m;\n", [other])[0] == "cusparseFoo_t m;\n"


def test_all_instances_of_a_key_are_answered_at_once_and_the_answer_is_idempotent() -> None:
    text = "int f() { return INT_MAX; }\nint g() { return INT_MIN; }\n"
    found = [said("use of undeclared identifier 'INT_MAX'"), said("use of undeclared identifier 'INT_MIN'", 2)]
    fresh, answers = answer(text, found)
    assert fresh == "#include <climits>\n" + text
    assert [a.rule for a in answers] == ["integer-limits", "integer-limits"]
    assert answer(fresh, found) == (fresh, [])


def test_one_argument_is_cast() -> None:
    note = Note(
        "candidate function not viable: no known conversion from 'float **' to 'void **' for 1st argument", "", 0
    )
    text = "void f(float* p) { hipFoo(&p, 4); }\n"
    fresh, _ = answer(text, [said("no matching function for call to 'hipFoo'", 1, 20, (note,))])
    assert fresh == "void f(float* p) { hipFoo((void**)(&p), 4); }\n"


def test_a_place_of_another_text_is_not_used() -> None:
    note = Note(
        "candidate function not viable: no known conversion from 'float **' to 'void **' for 1st argument", "", 0
    )
    text = "void f(float* p) { hipFoo(&p, 4); }\n"
    assert answer(text, [said("no matching function for call to 'hipFoo'", 1, 20, (note,))], placed=False)[0] == text


SOURCE = """\
#include <cuda_runtime.h>
__global__ void fill(float* p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = FLT_MAX > 1.f ? i * 2.f : 0.f;
}
void run(float* p) {
  std::vector<float> h(64);
  fill<<<1, 64>>>(p, (int)h.size());
}
"""


def test_rounds_are_recorded_with_keys_and_rules(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(SOURCE)
    result = port(PortRequest(tmp_path / "a.cu"))
    assert result.outcome == "builds-now"
    assert result.rounds[0].errors["gfx942"] >= 2
    assert "use of undeclared identifier '_' | FLT_MAX | " in result.rounds[0].keys
    assert {a.rule for a in result.rounds[1].applied} == {"floating-limits", "std-same-name"}
    assert set(result.rounds[1].errors.values()) == {0}


def test_a_test_of_the_users_is_not_edited_for_the_compiler(tmp_path: Path) -> None:
    (tmp_path / "test_a.cu").write_text(SOURCE)
    result = port(PortRequest(tmp_path / "test_a.cu", execute=False))
    assert result.outcome == "nothing"
    assert any("it changes a test" in reason for r in result.rounds for reason in r.rejected)


LOG = """\
[1/2] /usr/local/cuda/bin/nvcc -DSCALE=3 -DUSE_ROCM=1 -c a.cu -o a.o
\x1b[1ma.cu:4:23: error: use of undeclared identifier \u2018FLT_MAX\u2019\x1b[0m
a.cu(7): error: namespace "std" has no member "vector"
/build/src/a.hip:9:1: fatal error: what_is_this.h: No such file or directory
a.cu(8): error: identifier "cudaMalloc" is undefined
nonsense without a shape
"""


def test_a_log_is_read_whoever_wrote_it() -> None:
    log = read_log(LOG)
    assert [d.message for d in log.errors] == [
        "use of undeclared identifier 'FLT_MAX'",
        "no member named 'vector' in namespace 'std'",
        "'what_is_this.h' file not found",
        "use of undeclared identifier 'cudaMalloc'",
    ]
    assert log.definitions == ("SCALE=3",)


def test_a_log_saves_a_round_and_gives_definitions(tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(SOURCE.replace("* 2.f", "* float(SCALE)"))
    result = port(PortRequest(tmp_path / "a.cu", log=LOG))
    assert result.outcome == "builds-now", result.summary
    assert len(result.rounds) == 1
    rules = {a.rule for a in result.rounds[0].applied}
    assert {"log:floating-limits", "log:std-same-name", "log"} <= rules
    details = [a.detail for a in result.rounds[0].applied if a.rule == "log"]
    assert any("SCALE=3" in d for d in details)
    assert any("cudaMalloc" in d and "the rules know this name" in d for d in details)
    assert any("what_is_this.h" in d and "the compiler decides" in d for d in details)


def test_hipify_perl_speaks_where_it_is_installed() -> None:
    toolchain = prepare_toolchain()
    if toolchain.hipify_perl is None:
        pytest.skip("hipify-perl is not installed")
    found = perl_lint("a.cu", "__global__ void k(int* p) { __stcs(p, 1); }\n", toolchain)
    assert [(f.line, f.blocker) for f in found] == [(1, False)]
    assert "__stcs" in found[0].message


HOST_MATHEMATICS = """\
#include <cuda_runtime.h>
#include <rocm-core/rocm_version.h>
static_assert(ROCM_VERSION_MAJOR >= 5, "this needs ROCm 5");
template <typename U> U inverse_root(U v) { return U(1) / sqrt(v); }
template <> float inverse_root(float v) { return rsqrtf(v); }
template <> double inverse_root(double v) { return rsqrt(v); }
__global__ void scale(float* y, float s) { y[threadIdx.x] = rsqrtf(y[threadIdx.x] * y[threadIdx.x] + 1.f) * s; }
float run(float* y, float s) {
  scale<<<1, 64>>>(y, inverse_root(s * s + 1.f) + (float)inverse_root(2.0) + normcdff(s));
  return inverse_root(s * s + 3.f) + rcbrtf(s * s + 1.f) + sinpif(s);
}
"""


def test_mathematics_that_cuda_has_on_the_host_too(tmp_path: Path) -> None:
    file = tmp_path / "a.cu"
    file.write_text(HOST_MATHEMATICS)
    result = port(PortRequest(file, targets=("gfx942",), execute=False))
    assert [str(d) for d in result.diagnostics] == []
    assert {"host_math", "rocm_version"} <= {u.name for u in result.shim_uses}
    assert any(a.rule == "host-mathematics" for r in result.rounds for a in r.applied)


def test_half_into_a_builtin_is_cast() -> None:
    text = "float f(__half x) { return __builtin_amdgcn_rcph(x); }\n"
    edited, answers = answer(text, [said("no viable conversion from '__half' to '__fp16'", 1, 50)])
    assert "__builtin_amdgcn_rcph((float)x)" in edited
    assert [a.rule for a in answers] == ["half-into-a-builtin"]
