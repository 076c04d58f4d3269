"""A small evaluator for the instruction pseudocode that AMD publishes, as found in the tinygrad package.

The text is parsed and run for one lane at a time; nothing of it is kept here. Values are bits with a width and a kind,
so that `S0[31 : 16].f16` or `64'U(S1.u32)` mean what they say. What the evaluator does not know raises `NotEvaluable`.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


class NotEvaluable(Exception):
    """The pseudocode uses something outside the subset that is evaluated."""


FLOAT_FORMATS = {16: "<e", 32: "<f", 64: "<d"}


@dataclass(frozen=True)
class Value:
    """`width` bits read as `u` (unsigned), `i` (signed), `f` (IEEE) or `bf` (bfloat16)."""

    bits: int
    width: int
    kind: str = "u"

    @property
    def number(self) -> Any:
        if self.kind == "f":
            return struct.unpack(FLOAT_FORMATS[self.width], self.bits.to_bytes(self.width // 8, "little"))[0]
        if self.kind == "bf":
            return struct.unpack("<f", (self.bits << 16).to_bytes(4, "little"))[0]
        if self.kind == "i" and self.bits >> (self.width - 1):
            return self.bits - (1 << self.width)
        return self.bits


def integer(number: int, width: int = 32, kind: str = "i") -> Value:
    return Value(number & (1 << width) - 1, width, kind)


def floating(number: float, width: int = 64) -> Value:
    with np.errstate(all="ignore"):
        raw = np.array(number, {16: np.float16, 32: np.float32, 64: np.float64}[width]).tobytes()
    return Value(int.from_bytes(raw, "little"), width, "f")


def cast(value: Value, kind: str, width: int) -> Value:
    """`32'F(x)`, `64'U(x)`, `16'B(x)`: numbers are converted, except that B and same-kind casts keep bits."""
    if kind == "F":
        if value.kind == "f" and value.number != value.number:
            return resized_nan(value, width)
        return (
            floating(value.number, width)
            if value.kind in ("f", "bf")
            else Value(value.bits & (1 << width) - 1, width, "f")
        )
    if value.kind in ("f", "bf"):
        raise NotEvaluable("integer cast of a float")
    return integer(value.number, width, {"U": "u", "I": "i", "B": "u"}[kind])


def resized_nan(value: Value, width: int) -> Value:
    """A NaN in another format with its sign, quiet bit and leading payload bits, signalling ones included."""
    mantissa = {16: 10, 32: 23, 64: 52}
    payload = value.bits & (1 << mantissa[value.width]) - 1
    shift = mantissa[width] - mantissa[value.width]
    payload = payload << shift if shift >= 0 else payload >> -shift or 1
    sign, top = value.bits >> (value.width - 1), (1 << (width - 1 - mantissa[width])) - 1
    return Value(sign << (width - 1) | top << mantissa[width] | payload, width, "f")


TOKENS = re.compile(
    r"//[^\n]*|\s+|(?P<cast>\d+'[A-Z]+(?=\())|(?P<declared>\d+'[A-Z]+)"
    r"|(?P<sized>\d+'-?(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)U?)"
    r"|(?P<hex>0x[0-9a-fA-F]+(?:ULL|LL|U|L)?)|(?P<real>\d+\.\d+F?)|(?P<int>\d+(?:ULL|LL|U|L|F)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z_0-9]*)|(?P<op><<=|>>=|<>|\*\*|==|!=|<=|>=|<<|>>|&&|\|\||\+=|-=|\|=|[-+*/%&|^~!<>=?:;,.(){}\[\]])"
)
LEVELS = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>"), ("<", "<=", ">", ">="), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"), ("**",),
)  # fmt: skip
TYPE = re.compile(r"(u|i|f|b|bf)(\d+)$")


def tokenize(text: str) -> list[tuple[str, str]]:
    out, at = [], 0
    while at < len(text):
        match = TOKENS.match(text, at)
        if match is None:
            raise NotEvaluable(f"character {text[at]!r}")
        if match.lastgroup:
            out.append((match.lastgroup, match[0]))
        at = match.end()
    return out


class Machine:
    """Runs one pseudocode text. `state` maps names (S0, D0, VCC, SCC...) to values; results are left there."""

    def __init__(self, text: str, state: dict[str, Value], library: Callable[[str, list[Value]], Value | None]) -> None:
        self.tokens = tokenize(text)
        self.at = 0
        self.state = state
        self.library = library
        self.live = True
        self.broken = False
        self.result: Value | None = None
        self.lambdas: dict[str, tuple[list[str], int]] = {}

    def peek(self, *texts: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at][1] in texts

    def take(self, text: str | None = None) -> str:
        if self.at >= len(self.tokens):
            raise NotEvaluable("the text ends early")
        found = self.tokens[self.at][1]
        if text is not None and found != text:
            raise NotEvaluable(f"{found!r} where {text!r} was expected")
        self.at += 1
        return found

    def run(self) -> None:
        while self.at < len(self.tokens):
            self.statement()
            while self.peek(";"):
                self.take()

    def block(self, *ends: str) -> None:
        while not self.peek(*ends):
            self.statement()
            while self.peek(";"):
                self.take()

    def statement(self) -> None:
        if self.peek("if"):
            return self.conditional()
        if self.peek("for"):
            return self.loop()
        if self.peek("break"):
            self.take()
            self.broken, self.live = self.broken or self.live, False
            return None
        if self.peek("return"):
            self.take()
            value = self.expression()
            self.result, self.live = value if self.live else self.result, False
            return None
        if self.peek("declare"):
            self.take()
            name = self.take()
            self.take(":")
            sized = self.take()
            if self.peek("["):
                raise NotEvaluable("an array")
            width, kind = sized.split("'")
            if self.live:
                self.state[name] = Value(0, int(width), {"F": "f", "I": "i"}.get(kind, "u"))
            return None
        return self.assignment()

    def conditional(self) -> None:
        outer, done = self.live, False
        self.take("if")
        while True:
            condition = self.expression()
            self.take("then")
            truth = outer and not done and bool(condition.bits)
            self.live = truth and self.running
            done = done or truth
            self.block("elsif", "else", "endif")
            if self.peek("elsif"):
                self.take()
                self.live = outer and not done and self.running
                continue
            if self.peek("else"):
                self.take()
                self.live = outer and not done and self.running
                self.block("endif")
            self.take("endif")
            self.live = outer and self.running
            return

    @property
    def running(self) -> bool:
        """Neither `break` nor `return` was reached."""
        return not self.broken and self.result is None

    def loop(self) -> None:
        self.take("for")
        name = self.take()
        self.take("in")
        first = self.expression(1).number
        self.take(":")
        last = self.expression(1).number
        self.take("do")
        start, outer = self.at, self.live
        for k in range(first, last + 1) if outer else [0]:
            self.at = start
            self.state[name] = integer(k)
            self.block("endfor")
        self.take("endfor")
        self.broken, self.live = False, outer and self.result is None

    def assignment(self) -> None:
        if self.peek("{"):
            self.split_assignment()
            return
        targets = []
        while True:
            mark = self.at
            target = self.target()
            if target is not None and self.peek("=") and self.tokens[self.at + 1][1] == "lambda":
                self.define(self.tokens[mark][1])
                return
            if target is None or not self.peek("=", "+=", "-=", "|="):
                self.at = mark
                value = self.expression()
                break
            operator = self.take()
            targets.append((target, operator))
            if operator != "=":
                value = self.expression()
                break
        for (read, write), operator in reversed(targets):
            if self.live:
                write(value if operator == "=" else self.binary(operator[0], read(), value))

    def split_assignment(self) -> None:
        """`{ D1.u1, D0.u64 } = x`: the last target takes the low bits."""
        self.take("{")
        parts = []
        while True:
            width = TYPE.match(self.tokens[self.at + 2][1])
            target = self.target()
            if target is None or width is None:
                raise NotEvaluable("an assignment to several targets")
            parts.append((target[1], int(width[2])))
            if self.take() == "}":
                break
        self.take("=")
        value = self.expression()
        bits = value.bits
        for write, count in reversed(parts):
            if self.live:
                write(Value(bits & (1 << count) - 1, count))
            bits >>= count

    def define(self, name: str) -> None:
        """`F = lambda(x, y) (body)`: the body is kept as a place in the text and run at each call."""
        self.take("=")
        self.take("lambda")
        self.take("(")
        names = []
        while not self.peek(")"):
            names.append(self.take())
            if self.peek(","):
                self.take()
        self.take(")")
        self.lambdas[name] = (names, self.at)
        depth = 0
        while True:
            depth += {"(": 1, ")": -1}.get(self.take(), 0)
            if depth == 0:
                return

    def invoke(self, name: str, arguments: list[Value]) -> Value:
        names, start = self.lambdas[name]
        saved, back = {n: self.state.get(n) for n in names}, self.at
        self.state.update(zip(names, arguments, strict=True))
        self.at, self.result = start, None
        self.take("(")
        if self.peek("if", "return", "declare", "for"):
            self.block(")")
            value = self.result
        else:
            value = self.expression()
        self.at, self.result, self.live = back, None, True
        self.state.update({n: v for n, v in saved.items() if v is not None})
        if value is None:
            raise NotEvaluable(f"{name} returns nothing")
        return value

    def target(self) -> tuple[Callable[[], Value], Callable[[Value], None]] | None:
        """Something that can be assigned: a name with an optional type and bit range."""
        kind, name = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        if kind != "name":
            return None
        self.take()
        type_name, low, count = "", 0, 0
        while self.peek(".", "["):
            if self.take() == ".":
                type_name = self.take()
                continue
            high = self.expression().number
            if self.peek(":"):
                self.take()
                low = self.expression(1).number
                count = high - low + 1
            else:
                low, count = high, 1
            if not self.peek("]"):
                return None
            self.take("]")
        base, bound_low, bound_count = name, low, count

        def read() -> Value:
            return self.typed(self.slice(self.state[base], bound_low, bound_count), type_name)

        def write(value: Value) -> None:
            self.store(base, type_name, bound_low, bound_count, value)

        return read, write

    def store(self, name: str, type_name: str, low: int, count: int, value: Value) -> None:
        match = TYPE.match(type_name)
        if match:
            kind, width = match[1], int(match[2])
            if kind == "f" and (value.kind != "f" or value.width != width):
                value = floating(value.number, width) if value.kind == "f" else Value(value.bits, width, "f")
            elif kind in "uib" and value.kind in ("u", "i"):
                value = integer(value.number, width, "i" if kind == "i" else "u")
        if count == 0:
            count = value.width if not match else int(match[2])
            if name not in self.state or name not in ("D0", "D1", "VCC", "EXEC"):
                self.state[name] = Value(value.bits, value.width, value.kind)
                return
        old = self.state.get(name, Value(0, 64))
        mask = (1 << count) - 1 << low
        width = max(old.width, low + count)
        self.state[name] = Value((old.bits & ~mask) | (value.bits << low & mask), width, old.kind)

    def slice(self, value: Value, low: int, count: int) -> Value:
        if count < 0:  # from a high to a low bit: reversed
            high, count = low, 2 - count
            bits = value.bits >> (high - count + 1) & (1 << count) - 1
            return Value(int(format(bits, f"0{count}b")[::-1], 2), count)
        return Value(value.bits >> low & (1 << count) - 1, count) if count else value

    def typed(self, value: Value, type_name: str) -> Value:
        if not type_name:
            return value
        match = TYPE.match(type_name)
        if match is None:
            raise NotEvaluable(f"type {type_name}")
        kind, width = match[1], int(match[2])
        return Value(value.bits & (1 << width) - 1, width, "u" if kind == "b" else kind)

    def expression(self, level: int = 0) -> Value:
        if level == 0:
            condition = self.expression(1)
            if not self.peek("?"):
                return condition
            self.take()
            first = self.expression()
            self.take(":")
            second = self.expression()
            return first if condition.bits else second
        if level > len(LEVELS):
            return self.unary()
        left = self.expression(level + 1)
        while self.peek(*LEVELS[level - 1]):
            operator = self.take()
            left = self.binary(operator, left, self.expression(level + 1))
        return left

    def unary(self) -> Value:
        if self.peek("-", "~", "!", "+"):
            operator, value = self.take(), self.unary()
            if operator == "!":
                return integer(int(not value.bits), 1, "u")
            if operator == "~":
                return Value(~value.bits & (1 << value.width) - 1, value.width, value.kind)
            if value.kind == "f" and value.number == 0 and self.tokens[self.at - 1][0] == "real":
                return Value(int(operator == "-"), 64, "zero")
            if operator == "+":
                return value
            if value.kind == "f":
                return Value(value.bits ^ 1 << (value.width - 1), value.width, "f")
            return integer(-value.number, value.width, "i")
        return self.postfix(self.primary())

    def postfix(self, value: Value) -> Value:
        while self.peek(".", "["):
            if self.take() == ".":
                value = self.typed(value, self.take())
                continue
            high = self.expression().number
            low = high
            if self.peek("+"):
                raise NotEvaluable("a slice by length")
            if self.peek(":"):
                self.take()
                low = self.expression(1).number
            self.take("]")
            value = self.slice(value, low, high - low + 1)
        return value

    def primary(self) -> Value:
        kind, text = self.tokens[self.at]
        self.take()
        if kind == "cast":
            width, _, target = text.partition("'")
            self.take("(")
            value = self.expression()
            self.take(")")
            return cast(value, target[0], int(width)) if target in ("F", "U", "I", "B") else self.unknown(text)
        if kind == "sized":
            width, number = text.split("'")
            if "." in number:
                return floating(float(number), int(width))
            return integer(int(number.rstrip("U"), 0), int(width), "u")
        if kind in ("hex", "int"):
            digits = text.rstrip("ULF") if kind == "int" else text.rstrip("UL")
            if text.endswith("F") and kind == "int":
                return floating(float(digits), 32)
            return integer(int(digits, 0), 64 if "LL" in text else 32, "u" if "U" in text else "i")
        if kind == "real":
            return floating(float(text.rstrip("F")), 32 if text.endswith("F") else 64)
        if text == "(":
            value = self.expression()
            self.take(")")
            return value
        if text == "{":
            return self.concatenation()
        if kind != "name":
            return self.unknown(text)
        if self.peek("("):
            return self.call(text)
        if text == "WAVE_MODE":
            self.take(".")
            return integer(int(self.take() in ("IEEE", "DX10_CLAMP")), 1, "u")
        if text == "DENORM":
            return Value(0, self.suffix_width(), "denormal")
        if text in ("INF", "PI", "NAN"):
            return floating({"INF": math.inf, "PI": math.pi, "NAN": math.nan}[text], self.suffix_width())
        if text in self.state:
            return self.state[text]
        if not self.live:
            return Value(0, 64)
        return self.unknown(text)

    def suffix_width(self) -> int:
        if self.peek("."):
            self.take()
            return int(self.take()[1:])
        return 64

    def unknown(self, text: str) -> Value:
        raise NotEvaluable(text)

    def concatenation(self) -> Value:
        bits = width = 0
        while True:
            part = self.expression()
            bits, width = bits << part.width | part.bits, width + part.width
            if self.take() == "}":
                return Value(bits, width)

    def call(self, name: str) -> Value:
        self.take("(")
        arguments = []
        while not self.peek(")"):
            arguments.append(self.expression())
            if self.peek(","):
                self.take()
        self.take(")")
        if not self.live:
            return Value(0, 64)
        if name in self.lambdas:
            return self.invoke(name, arguments)
        result = self.library(name, arguments)
        return self.unknown(f"{name}()") if result is None else result

    def binary(self, operator: str, a: Value, b: Value) -> Value:
        if operator in ("==", "!=", "<>", "<", "<=", ">", ">=", "&&", "||"):
            return integer(int(compare(operator, a, b)), 1, "u")
        if not self.live:
            return a
        if operator == "**" and a.kind == "f":
            with np.errstate(all="ignore"):
                return floating(float(np.float64(a.number) ** np.float64(b.number)), a.width)
        if "f" in (a.kind, b.kind):
            return float_operation(operator, a, b)
        width = max(a.width, b.width, 32)
        x, y = a.number, b.number
        if operator in ("<<", ">>"):
            return integer(x << y if operator == "<<" else x >> y, a.width, a.kind) if 0 <= y < 256 else integer(0)
        if operator in ("/", "%"):
            raise NotEvaluable("integer division")
        results = {"+": x + y, "-": x - y, "*": x * y, "&": a.bits & b.bits, "|": a.bits | b.bits, "^": a.bits ^ b.bits}
        kind = "i" if a.kind == b.kind == "i" else "u"
        return integer(results[operator] if operator != "**" else x**y, width, kind)


def compare(operator: str, a: Value, b: Value) -> bool:
    if b.kind == "denormal":
        smallest = {16: 2.0**-14, 32: 2.0**-126, 64: 2.0**-1022}[b.width]
        return a.number != 0 and abs(a.number) < smallest
    if b.kind == "zero":  # `== -0.0` looks at the sign
        return a.number == 0 and a.bits >> (a.width - 1) == b.bits
    x, y = a.number, b.number
    if operator == "<>":
        return bool(x < y or x > y)
    if operator in ("&&", "||"):
        return bool(a.bits and b.bits) if operator == "&&" else bool(a.bits or b.bits)
    return {"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[operator]  # type: ignore[no-any-return]


def float_operation(operator: str, a: Value, b: Value) -> Value:
    if a.kind != "f" or b.kind != "f":
        raise NotEvaluable("arithmetic of a float and an integer")
    width = max(a.width, b.width)
    dtype = {16: np.float16, 32: np.float32, 64: np.float64}[width]
    with np.errstate(all="ignore"):
        x, y = dtype(a.number), dtype(b.number)
        functions: dict[str, Callable[[Any, Any], Any]] = {
            "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide,
        }  # fmt: skip
        if operator not in functions:
            raise NotEvaluable(f"float {operator}")
        return floating(functions[operator](x, y), width)
