"""The reader of Triton IR text: structure, types, attributes, places, and what it refuses."""

import pytest

from sandbox.interpreter_ir import IrError, Type, parse_module, parse_type, split_types

TEXT = """
#loc = loc("/somewhere/kernel.py":3:0)
#loc1 = loc(unknown)
#loc2 = loc("/somewhere/kernel.py":7:12)
#loc3 = loc("v"(#loc2))
#loc4 = loc(callsite(#loc1 at #loc3))
module {
  tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc("x"(#loc)), %n: i32 loc("n"(#loc))) {
    %cst = arith.constant dense<0.000000e+00> : tensor<64xf32> loc(#loc1)
    %c0_i32 = arith.constant 0 : i32 loc(#loc1)
    %c1_i32 = arith.constant 1 : i32 loc(#loc1)
    %0 = arith.cmpi sge, %n, %c0_i32 : i32 loc(#loc2)
    cf.cond_br %0, ^bb1, ^bb2(%c0_i32 : i32) loc(#loc2)
  ^bb1:  // pred: ^bb0
    tt.return loc(#loc2)
  ^bb2(%arg: i32 loc(#loc1)):  // pred: ^bb0
    %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32> loc(#loc3)
    %acc:2 = scf.for %i = %c0_i32 to %n step %c1_i32 iter_args(%a = %cst, %b = %arg) -> (tensor<64xf32>, i32)  : i32 {
      %w = tt.elementwise_inline_asm "{} : %n" {constraints = "=f,f"} %a : tensor<64xf32> -> tensor<64xf32> loc(#loc4)
      scf.yield %w, %b : tensor<64xf32>, i32 loc(#loc2)
    } {tt.num_stages = 2 : i32} loc(#loc2)
    %m = "tt.reduce"(%acc#0) <{axis = 0 : i32}> ({
    ^bb0(%p: f32 loc(unknown), %q: f32 loc(unknown)):
      %s = arith.addf %p, %q : f32 loc(#loc4)
      tt.reduce.return %s : f32 loc(#loc4)
    }) : (tensor<64xf32>) -> f32 loc(#loc4)
    tt.store %x, %m : !tt.ptr<f32> loc(#loc3)
    tt.return loc(#loc2)
  } loc(#loc)
} loc(#loc)
"""


def test_structure_types_and_places() -> None:
    module = parse_module(TEXT)
    kernel = module.functions["k"]
    assert kernel.parameter_names == ["x", "n"] and kernel.parameter_types[0] == Type("ptr", (), "f32")
    assert len(kernel.body.blocks) == 3 and kernel.body.labels == {"^bb1": 1, "^bb2": 2}
    assert len(kernel.body.blocks[2].arguments) == 1
    make_range, loop, reduce, store, end = kernel.body.blocks[2].operations
    assert make_range.attributes == {"end": "64", "start": "0"}
    assert loop.attributes == {"tt.num_stages": "2"} and len(loop.results) == 2
    assert loop.result_types == [Type("f32", (64,)), Type("i32")]
    assembly = loop.regions[0].blocks[0].operations[0]
    assert assembly.operands == [loop.regions[0].blocks[0].arguments[1]]
    assert assembly.attributes["constraints"] == '"=f,f"'
    assert reduce.attributes == {"axis": "0"} and reduce.result_types == [Type("f32")]
    assert reduce.operands == [loop.results[0]] and store.operands == [kernel.parameters[0], reduce.results[0]]
    assert end.name == "tt.return"
    assert module.places[assembly.location] == ("/somewhere/kernel.py", 7)


def test_types() -> None:
    assert parse_type("tensor<2x128x!tt.ptr<f8E4M3FN>>") == Type("ptr", (2, 128), "f8E4M3FN")
    assert parse_type("!tt.ptr<!tt.ptr<f32>>").pointee == "!tt.ptr<f32>"
    assert parse_type("tensor<4xbf16>") == Type("bf16", (4,))
    assert split_types("tensor<4xf32>, (i32, i64), !tt.ptr<f32, 1>") == [
        "tensor<4xf32>",
        "(i32, i64)",
        "!tt.ptr<f32, 1>",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "module {\n}",
        "module {\n  tt.func public @k() {\n    %0 = arith.addi %1, %2 : i32\n    tt.return\n  }\n}",
        "module {\n  tt.func public @k() {\n    tt.return",
        "module {\n  tt.func public @k() {\n    %0 = arith.bitcast %1 : i32 to vector<4xi8>\n    tt.return\n  }\n}",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(IrError):
        parse_module(text)
