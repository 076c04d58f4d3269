"""Structure parameters, from clang's record layouts."""

from agent.port.record_layout import Leaf, layouts
from agent.port.reference_run import build_reference
from agent.port.reference_source import reference_tree
from sandbox.toolchain import prepare_toolchain

ROW = "Row<float4, ns::Inner>"
DUMP = """\

*** Dumping AST Record Layout
         0 | struct Row<struct float4, class ns::Inner>
         0 |   struct ns::Inner in
         0 |     float a
         4 |     int[2] k
        16 |   const float *__restrict x
        24 |   void *[2] p
        40 |   int64_t n
        48 |   _Bool b
        64 |   struct float4 v
        64 |     float x
        68 |     float y
        72 |     float z
        76 |     float w
           | [sizeof=80, dsize=80, align=16,
           |  nvsize=80, nvalign=16]

*** Dumping AST Record Layout
         0 | struct Empty<_Bool, true> (empty)
           | [sizeof=1, dsize=1, align=1,

*** Dumping AST Record Layout
         0 | struct Bits
     0:0-2 |   int a
           | [sizeof=4, dsize=4, align=4,

*** Dumping AST Record Layout
         0 | struct Table
         0 |   (Table vtable pointer)
         8 |   int n

*** Dumping AST Record Layout
         0 | struct Node
         0 |   Node * next
"""


def test_leaves_are_scalars_and_pointers_wherever_they_lie() -> None:
    found = layouts(DUMP, [ROW, "Empty<bool, true>", "Bits", "Table", "Node", "Absent"])
    assert set(found) == {ROW, "Empty<bool, true>"}
    assert found["Empty<bool, true>"] == []
    assert found[ROW] == [
        Leaf(0, "a", "float", 4, 4),
        Leaf(4, "k", "int", 4, 4),
        Leaf(8, "k", "int", 4, 4),
        Leaf(16, "x", "float", 4, 8, 4),
        Leaf(24, "p", "uint", 1, 8, 1),
        Leaf(32, "p", "uint", 1, 8, 1),
        Leaf(40, "n", "int", 8, 8),
        Leaf(48, "b", "bool", 1, 1),
        Leaf(64, "v", "float", 4, 16),
    ]


def test_the_description_of_many_kernels_is_read_whole() -> None:
    text = (
        "template <int N> __global__ void k(const float* a, float* b, int* c, double d, long e, bool f) { b[0] = N; }\n"
    )
    kernels = [f"k<{i}>" for i in range(200)]
    program = build_reference(reference_tree({"a.cu": text}, "a.cu", kernels), "a.cu", prepare_toolchain())
    assert len(program.parameters) == 200
    assert all([p.kind for p in ps] == ["pointer"] * 3 + ["value"] * 3 for ps in program.parameters)
