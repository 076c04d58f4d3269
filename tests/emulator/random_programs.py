"""Random C programs, compiled by one clang for the host and for gfx942/gfx950: an unlimited supply of tests.

A program is a function of a few integers and floats with arithmetic, shifts, conversions, conditions, loops, switches,
arrays and calls; no operation in it is undefined or depends on the target. Integer results must be equal bit for bit.
Float results are written as bits too, from operations that IEEE 754 fixes (add, sub, mul, div, sqrt, fma, conversions,
comparisons), so they must be equal as well, apart from which NaN it is.
"""

from __future__ import annotations

import ctypes
import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from compile_corpus import CORPUS, find_clang

from sandbox.emulator import fast, reference
from sandbox.emulator.launch import prepare
from sandbox.emulator.loader import load_code_object
from sandbox.emulator.memory import Memory

ITEMS = 128
RESULTS = 8  # 64-bit words each item writes
INTEGERS = ("u8", "i8", "u16", "i16", "u32", "int", "u64", "i64")
BITS = {"u8": 8, "i8": 8, "u16": 16, "i16": 16, "u32": 32, "int": 32, "u64": 64, "i64": 64}
FLOATS = ("float", "double")

HOST_PRELUDE = """
#include <string.h>
typedef unsigned char u8; typedef unsigned short u16; typedef unsigned int u32; typedef unsigned long u64;
typedef signed char i8; typedef short i16; typedef long i64;
#define DEVICE static
"""
DEVICE_PRELUDE = """
#include "device.h"
typedef short i16;
#define DEVICE __device__ static
"""
COMMON = """
#define NOINLINE __attribute__((noinline))
DEVICE u32 fbits(float x) { return x != x ? 0x7fc00000u : __builtin_bit_cast(u32, x); }
DEVICE u64 dbits(double x) { return x != x ? 0x7ff8000000000000ul : __builtin_bit_cast(u64, x); }
DEVICE int to_int(double x) { return x > -1e9 && x < 1e9 ? (int)x : 7; }
DEVICE u32 to_uint(double x) { return x >= 0 && x < 4e9 ? (u32)x : 9u; }
DEVICE i64 to_long(double x) { return x > -4e18 && x < 4e18 ? (i64)x : 5; }
"""


@dataclass
class Generator:
    """Writes one program from a seed. `depth` bounds expressions, `budget` statements."""

    random: random.Random
    names: list[tuple[str, str]] = field(default_factory=list)  # (name, type) that may be read
    constant: set[str] = field(default_factory=set)
    count: int = 0
    lines: list[str] = field(default_factory=list)
    helpers: list[tuple[str, str, str]] = field(default_factory=list)  # name, result type, argument type

    def literal(self, kind: str) -> str:
        r = self.random
        if kind in FLOATS:
            special = ["0.0", "-0.0", "1.0", "-1.5", "1e30", "3e-30", "1e-40", "65504.0", "0.1"]
            text = r.choice([*special, f"{r.uniform(-100, 100):.6f}"])
            return f"({kind}){text}"
        bits = BITS[kind]
        value = r.choice([0, 1, 2, (1 << bits) - 1, 1 << (bits - 1), (1 << (bits - 1)) - 1, r.getrandbits(bits)])
        return f"({kind}){value}ul"

    def pick(self, kind: str) -> str:
        """A readable variable converted to `kind`, in a way that is defined for every value."""
        name, have = self.random.choice(self.names)
        return self.convert(name, have, kind)

    def convert(self, text: str, have: str, want: str) -> str:
        if have in FLOATS and want not in FLOATS:
            cast = {"u32": "to_uint", "u64": "to_long", "i64": "to_long"}.get(want, "to_int")
            return f"({want}){cast}({text})"
        return text if have == want else f"({want})({text})"

    def expression(self, kind: str, depth: int) -> str:
        r = self.random
        if depth <= 0 or r.random() < 0.15:
            return self.literal(kind) if r.random() < 0.25 else self.pick(kind)
        if r.random() < 0.12:
            other = r.choice([*INTEGERS, *FLOATS])
            return self.convert(f"({self.expression(other, depth - 1)})", other, kind)
        if r.random() < 0.1:
            left, right = (self.expression(t, depth - 1) for t in (kind, kind))
            return f"(({self.condition(depth - 1)}) ? {left} : {right})"
        if self.helpers and r.random() < 0.08:
            name, result, argument = r.choice(self.helpers)
            return self.convert(f"{name}({self.expression(argument, depth - 1)})", result, kind)
        return self.real(kind, depth) if kind in FLOATS else self.integer(kind, depth)

    def real(self, kind: str, depth: int) -> str:
        r, suffix = self.random, "f" if kind == "float" else ""
        a, b = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        form = r.choice(["+", "-", "*", "*", "/", "fma", "sqrt", "neg", "fabs", "floor", "trunc", "minmax", "ldexp"])
        if form in "+-*/":
            return f"({a} {form} {b})"
        if form == "fma":
            return f"__builtin_fma{suffix}({a}, {b}, {self.expression(kind, depth - 1)})"
        if form == "sqrt":
            return f"__builtin_sqrt{suffix}(__builtin_fabs{suffix}({a}))"
        if form == "neg":
            return f"(-{a})"
        if form == "ldexp":
            return f"({a})" if suffix else f"__builtin_ldexp({a}, (int)({self.expression('u8', 0)}) - 128)"
        if form == "minmax":
            return f"({a} {r.choice('<>')} {b} ? {a} : {b})"
        return f"__builtin_{form}{suffix}({a})"

    def integer(self, kind: str, depth: int) -> str:
        """Computed unsigned, so that nothing overflows in an undefined way, then converted back."""
        r, bits = self.random, BITS[kind]
        wide = "u64" if bits == 64 else "u32"
        a, b = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        form = r.choice([*"+-*&|^/%~", "<<", ">>", "sar", "rot", "mulhi", "bits", "minmax"])
        if form in "+-*&|^":
            return f"({kind})(({wide}){a} {form} ({wide}){b})"
        if form in ("<<", ">>"):
            return f"({kind})(({wide}){a} {form} (({wide}){b} & {max(bits, 32) - 1}))"
        if form == "sar":
            return f"({kind})({a} >> (({wide}){b} & {bits - 1}))"
        if form in "/%":
            unsigned = f"(({wide}){a} {form} (({wide}){b} | 1))"
            signed = f"((i64)(int){a} {form} ((i64)(int){b} | 1))"
            return f"({kind}){unsigned if kind.startswith('u') or bits == 64 else signed}"
        if form == "rot":
            x = f"({wide}){a}"
            size = 64 if wide == "u64" else 32
            n = f"(({wide}){b} & {size - 1})"
            return f"({kind})(({x} << {n}) | ({x} >> (({size} - {n}) & {size - 1})))"
        if form == "mulhi":
            return f"({kind})(((u64)(u32){a} * (u64)(u32){b}) >> 32)"
        if form == "bits":
            calls = ("popcountll((u64){})", "clzll((u64){} | 1)", "bswap32((u32){})", "ctzll((u64){} | 1ul << 63)")
            call = "__builtin_" + r.choice([*calls, "bitreverse32((u32){})"])
            return f"({kind}){call.format(a)}"
        if form == "minmax":
            return f"({kind})({a} {r.choice('<>')} {b} ? {a} : {b})"
        return f"({kind})(~({wide}){a})"

    def condition(self, depth: int) -> str:
        r = self.random
        kind = r.choice([*INTEGERS, *FLOATS])
        operator = r.choice(["<", "<=", ">", ">=", "==", "!="])
        text = f"{self.expression(kind, depth - 1)} {operator} {self.expression(kind, depth - 1)}"
        if depth > 1 and r.random() < 0.2:
            return f"({text}) {r.choice(['&&', '||'])} ({self.condition(depth - 1)})"
        return text

    def declare(self, indent: str) -> None:
        kind = self.random.choice([*INTEGERS, "u32", "int", *FLOATS, "float"])
        name = f"v{self.count}"
        self.count += 1
        self.lines.append(f"{indent}{kind} {name} = {self.expression(kind, 3)};")
        self.names.append((name, kind))

    def assign(self, indent: str) -> None:
        name, kind = self.random.choice([n for n in self.names if n[0] not in self.constant])
        self.lines.append(f"{indent}{name} = {self.expression(kind, 3)};")

    def block(self, indent: str, statements: int, depth: int) -> None:
        """Statements whose declarations end with the block."""
        known = len(self.names)
        for _ in range(statements):
            self.statement(indent, depth)
        del self.names[known:]

    def statement(self, indent: str, depth: int) -> None:
        r = self.random
        form = r.choices(["declare", "assign", "if", "loop", "switch", "array"], [4, 4, 2 * depth, depth, depth, 2])[0]
        if form == "declare":
            self.declare(indent)
        elif form == "assign":
            self.assign(indent)
        elif form == "if":
            self.lines.append(f"{indent}if ({self.condition(2)}) {{")
            self.block(indent + "  ", r.randint(1, 3), depth - 1)
            self.lines.append(f"{indent}}} else {{")
            self.block(indent + "  ", r.randint(1, 2), depth - 1)
            self.lines.append(f"{indent}}}")
        elif form == "loop":
            self.loop(indent, depth)
        elif form == "switch":
            self.lines.append(f"{indent}switch ((u32){self.expression('u32', 1)} % 5) {{")
            for case in range(r.randint(2, 4)):
                self.lines.append(f"{indent}case {case}: {{")
                self.block(indent + "  ", r.randint(1, 2), depth - 1)
                self.lines.append(f"{indent}{'' if r.random() < 0.2 else 'break;'} }}")
            self.lines.append(f"{indent}default: ;\n{indent}}}")
        else:
            place, value = self.expression("u32", 2), self.expression("u32", 2)
            self.lines.append(f"{indent}cell[(u32){place} % 12] ^= (u32){value};")
            name = f"v{self.count}"
            self.count += 1
            self.lines.append(f"{indent}u32 {name} = cell[(u32){self.expression('u32', 2)} % 12];")
            self.names.append((name, "u32"))

    def loop(self, indent: str, depth: int) -> None:
        counter = f"n{self.count}"
        self.count += 1
        bound = f"(int)((u32){self.expression('u32', 1)} % {self.random.randint(2, 9)})"
        self.lines.append(f"{indent}for (int {counter} = {bound}; {counter} > 0; {counter}--) {{")
        self.names.append((counter, "int"))
        self.constant.add(counter)
        self.block(indent + "  ", self.random.randint(1, 3), depth - 1)
        self.names.remove((counter, "int"))
        if self.random.random() < 0.2:
            self.lines.append(f"{indent}  if ({self.condition(1)}) break;")
        self.lines.append(f"{indent}}}")

    def helper(self) -> None:
        result, argument = (self.random.choice([*INTEGERS, *FLOATS]) for _ in range(2))
        inner = Generator(self.random, [("x", argument)], {"x"})
        name = f"help{len(self.helpers)}"
        body = inner.expression(result, 4)
        inline = self.random.choice(["", "NOINLINE "])
        self.lines.append(f"{inline}DEVICE {result} {name}({argument} x) {{ return {body}; }}")
        self.helpers.append((name, result, argument))

    def program(self) -> str:
        for _ in range(self.random.randint(0, 2)):
            self.helper()
        self.lines.append("DEVICE void body(const u64* in, u64* out) {")
        self.lines.append("  u32 cell[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};")
        for k, kind in enumerate(("u32", "int", "u64", "i64")):
            self.lines.append(f"  {kind} a{k} = ({kind})in[{k}];")
            self.names.append((f"a{k}", kind))
        self.lines.append("  float a4 = __builtin_bit_cast(float, (u32)in[4]);")
        self.lines.append("  double a5 = __builtin_bit_cast(double, in[5]);")
        self.names += [("a4", "float"), ("a5", "double")]
        for _ in range(self.random.randint(4, 9)):
            self.statement("  ", 2)
        for k in range(RESULTS):
            kind = self.random.choice([*INTEGERS, *FLOATS])
            value = self.pick(kind)
            wrap = {"float": f"fbits({value})", "double": f"dbits({value})"}.get(kind, f"(u64){value}")
            self.lines.append(f"  out[{k}] = {wrap};")
        self.lines.append("}")
        return "\n".join(self.lines)


def source(seed: int) -> str:
    """The text of program `seed`, without prelude."""
    return Generator(random.Random(seed)).program()


def inputs(seed: int) -> np.ndarray:
    """[item][8] input words: random bits, and floats of moderate size with a few special ones."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, 1 << 64, (ITEMS, 8), dtype=np.uint64)
    small = rng.random((ITEMS, 8)) < 0.3
    words[small] %= np.uint64(9)
    reals = rng.standard_normal(ITEMS) * 10.0 ** rng.integers(-3, 4, ITEMS)
    words[:, 4] = reals.astype(np.float32).view(np.uint32)
    words[:, 5] = (rng.standard_normal(ITEMS) * 10.0 ** rng.integers(-3, 4, ITEMS)).view(np.uint64)
    words[:4, 4] = np.array([0, 0x80000000, 0x7F800000, 0x00000003], np.uint64)
    words[:4, 5] = np.array([0, 1 << 63, 0x7FF0 << 48, 3], np.uint64)
    return words


FLAGS = ("-O2", "-std=c++17", "-ffp-contract=off", "-fno-strict-aliasing", "-fwrapv", "-w")


def _clang(arguments: list[str]) -> None:
    clang = find_clang()
    assert clang is not None
    done = subprocess.run([clang, *arguments], capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr[:2000])


def host_results(programs: dict[int, str], folder: Path) -> dict[int, np.ndarray]:
    """What the host computes for each program."""
    text = [HOST_PRELUDE, COMMON]
    for seed, body in programs.items():
        text.append(f"namespace p{seed} {{\n{body}\n}}")
        text.append(f'extern "C" void run{seed}(const u64* in, u64* out, int n) {{ for (int i = 0; i < n; i++) '
                    f"p{seed}::body(in + 8 * i, out + {RESULTS} * i); }}")  # fmt: skip
    file = folder / "host.cpp"
    file.write_text("\n".join(text))
    _clang([*FLAGS, "-shared", "-fPIC", "-march=x86-64-v3", str(file), "-o", str(folder / "host.so"), "-lm"])
    library = ctypes.CDLL(str(folder / "host.so"))
    out = {}
    for seed in programs:
        words, results = inputs(seed), np.zeros((ITEMS, RESULTS), np.uint64)
        getattr(library, f"run{seed}")(
            ctypes.c_void_p(words.ctypes.data), ctypes.c_void_p(results.ctypes.data), ctypes.c_int(ITEMS)
        )
        out[seed] = results
    return out


def device_kernel(seed: int, body: str) -> str:
    """A program as a kernel in which each work-item takes one row of inputs."""
    return (
        f"namespace p{seed} {{\n{body}\n}}\nKERNEL void run{seed}(const u64* in, u64* out) {{ int i = BID * 64 + TID; "
        f"p{seed}::body(in + 8 * i, out + {RESULTS} * i); }}"
    )


def device_command(file: Path, output: Path, arch: str, what: list[str]) -> list[str]:
    """The compiler's command line for the device."""
    clang = find_clang()
    assert clang is not None
    return [
        clang, "-x", "hip", f"--offload-arch={arch}", "--cuda-device-only", "--no-gpu-bundle-output", "-nogpuinc",
        "-nogpulib", *FLAGS, f"-I{CORPUS}", *what, str(file), "-o", str(output),
    ]  # fmt: skip


def device_results(programs: dict[int, str], arch: str, folder: Path, core: str = "fast") -> dict[int, np.ndarray]:
    """What the emulated GPU computes. Raises `RuntimeError` where a run does not end clean."""
    text = [DEVICE_PRELUDE, COMMON]
    for seed, body in programs.items():
        text.append(device_kernel(seed, body))
    file, code_file = folder / f"device_{arch}.hip", folder / f"{arch}.hsaco"
    file.write_text("\n".join(text))
    _clang(device_command(file, code_file, arch, ["-c"])[1:])
    code = code_file.read_bytes()
    return {seed: emulated_results(code, seed, core) for seed in programs}


def emulated_results(code: bytes, seed: int, core: str = "fast") -> np.ndarray:
    """[item][result] of program `seed` in a code object. Raises `RuntimeError` where the run does not end clean."""
    memory, results = Memory(), np.zeros((ITEMS, RESULTS), np.uint64)
    arguments = [memory.allocate("in", inputs(seed)), memory.allocate("out", results)]
    launch = prepare(load_code_object(code), f"run{seed}", (ITEMS // 64,), (64,), arguments, memory)
    runner = fast.run if core == "fast" else reference.run
    result = runner(launch, range(launch.workgroups), "sequential")
    if not result.clean:
        raise RuntimeError(f"program {seed}: {result.status} {result.reason} {[str(f) for f in result.findings]}")
    return results


def differences(seeds: range, archs: tuple[str, ...], folder: Path) -> list[str]:
    """One line for each program whose results differ between host and GPU."""
    programs = {seed: source(seed) for seed in seeds}
    expected = host_results(programs, folder)
    lines = []
    for arch in archs:
        for seed, got in device_results(programs, arch, folder).items():
            wrong = np.argwhere(got != expected[seed])
            if len(wrong):
                item, k = (int(x) for x in wrong[0])
                ours, host = int(got[item, k]), int(expected[seed][item, k])
                place = f"{arch} program {seed}: item {item} result {k}"
                lines.append(f"{place}: {ours:#x}, host {host:#x} ({len(wrong)} of {got.size} words)")
    return lines
