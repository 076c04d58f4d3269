"""Preprocessor conditionals as regions, and what is known about their conditions when HIP compiles for AMD."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from sandbox.hip_source import Directive, HipSource, Span

ARCH_MACRO = "__CUDA_ARCH__"
VERSION_MACROS = (
    "CUDART_VERSION",
    "CUDA_VERSION",
    "__CUDACC_VER_MAJOR__",
    "__CUDACC_VER_MINOR__",
    "CUDA_API_PER_THREAD_DEFAULT_STREAM",
)
UNDEFINED = "undefined"
"""A macro that is known not to be defined."""

KNOWN_ON_AMD: Mapping[str, int | str] = {
    "__HIP_PLATFORM_AMD__": 1,
    "__HIPCC__": 1,
    "__HIP__": 1,
    "__CUDACC__": UNDEFINED,
    "__NVCC__": UNDEFINED,
    "__CUDA_ARCH__": UNDEFINED,
    "USE_ROCM": 1,
    "__HIP_PLATFORM_HCC__": UNDEFINED,
    "__HIP_PLATFORM_NVIDIA__": UNDEFINED,
    "__AMDGCN__": 1,
    "__clang__": 1,
    "__linux__": 1,
    "_WIN32": UNDEFINED,
    "_WIN64": UNDEFINED,
    "WIN32": UNDEFINED,
    "_MSC_VER": UNDEFINED,
    "__APPLE__": UNDEFINED,
    "__MINGW32__": UNDEFINED,
    "__INTEL_COMPILER": UNDEFINED,
    "__CUDACC_RTC__": UNDEFINED,
    "__HIPCC_RTC__": UNDEFINED,
    "__cplusplus": 201703,
}


@dataclass(frozen=True, slots=True)
class Arm:
    """One branch: the directive that opens it, its condition (`` for else) and the text between directives."""

    directive: Directive
    condition: str
    """As an `#if` expression; `#ifdef X` reads `defined(X)`."""
    body: Span


@dataclass(frozen=True, slots=True)
class Conditional:
    """A whole `#if` ... `#endif`."""

    arms: tuple[Arm, ...]
    start: int
    end: int

    def arm_at(self, position: int) -> Arm | None:
        return next((a for a in self.arms if a.body.start <= position < a.body.end), None)


@lru_cache(maxsize=256)
def conditionals(source: HipSource) -> Sequence[Conditional]:
    """Every complete conditional, inner ones before the outer one that holds them."""
    found: list[Conditional] = []
    stack: list[list[Directive]] = []
    for d in source.directives:
        if d.name in ("if", "ifdef", "ifndef"):
            stack.append([d])
        elif d.name in ("elif", "else", "elifdef", "elifndef") and stack:
            stack[-1].append(d)
        elif d.name == "endif" and stack:
            opened = stack.pop()
            ends = [*(o.start for o in opened[1:]), d.start]
            arms = tuple(Arm(o, _condition(o), Span(o.end, end)) for o, end in zip(opened, ends, strict=True))
            found.append(Conditional(arms, opened[0].start, d.end))
    return found


def _condition(d: Directive) -> str:
    if d.name in ("ifdef", "elifdef"):
        return f"defined({d.body.split()[0] if d.body.split() else ''})"
    if d.name in ("ifndef", "elifndef"):
        return f"!defined({d.body.split()[0] if d.body.split() else ''})"
    return "" if d.name == "else" else d.body.replace("\\\n", " ")


def chosen_arm(conditional: Conditional, known: Mapping[str, int | str]) -> Arm | None:
    """The arm that is compiled when `known` says enough; None when it does not, or when no arm is taken."""
    for arm in conditional.arms:
        value = 1 if not arm.condition else evaluate(arm.condition, known)
        if value is None:
            return None
        if value:
            return arm
    return None


def dead_spans(source: HipSource, known: Mapping[str, int | str] = KNOWN_ON_AMD) -> list[Span]:
    """Text that is certainly compiled neither for the device nor for the host."""
    return list(_dead_spans(source, frozenset(known.items())))


@lru_cache(maxsize=512)
def _dead_spans(source: HipSource, items: frozenset[tuple[str, int | str]]) -> Sequence[Span]:
    known = dict(items)
    device = _dead_in_pass(source, {**known, "__HIP_DEVICE_COMPILE__": 1})
    host = _dead_in_pass(source, {**known, "__HIP_DEVICE_COMPILE__": UNDEFINED})
    edges = sorted({e for span in (*device, *host) for e in (span.start, span.end)})
    return [
        Span(start, end) for start, end in pairwise(edges) if _inside(start, end, device) and _inside(start, end, host)
    ]


def _dead_in_pass(source: HipSource, known: Mapping[str, int | str]) -> list[Span]:
    """Arms whose condition is known false, or that follow one known true."""
    spans: list[Span] = []
    for conditional in conditionals(source):
        taken = False
        for arm in conditional.arms:
            value = 1 if not arm.condition else evaluate(arm.condition, known)
            if taken or value == 0:
                spans.append(arm.body)
            taken = taken or bool(value)
    return spans


def _inside(start: int, end: int, spans: Sequence[Span]) -> bool:
    return any(s.start <= start and end <= s.end for s in spans)


def live_text(source: HipSource, known: Mapping[str, int | str] = KNOWN_ON_AMD) -> str:
    """The text with comments and dead arms blanked; same length, so positions stay."""
    return _live_text(source, frozenset(known.items()))


@lru_cache(maxsize=512)
def _live_text(source: HipSource, items: frozenset[tuple[str, int | str]]) -> str:
    known = dict(items)
    text = list(source.uncommented)
    for span in dead_spans(source, known):
        for i in range(span.start, span.end):
            if text[i] != "\n":
                text[i] = " "
    return "".join(text)


def evaluate(condition: str, known: Mapping[str, int | str]) -> int | None:
    """The value of an `#if` expression, None when it depends on something unknown. Never raises."""
    try:
        parser = _Expression(condition, known)
        value = parser.ternary()
        return value if parser.done else None
    except (_NotAnExpressionError, RecursionError, OverflowError):
        return None


class _NotAnExpressionError(Exception):
    pass


_LEVELS: Sequence[Sequence[str]] = (
    ("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!="), ("<=", ">=", "<", ">"), ("<<", ">>"), ("+", "-"),
    ("*", "/", "%"),
)  # fmt: skip


class _Expression:
    """Recursive descent over the integer expressions of `#if`; None propagates as unknown, `0 &&` and `1 ||` do not."""

    def __init__(self, text: str, known: Mapping[str, int | str]) -> None:
        self._known = known
        self._items = list(_items(text))
        self._at = 0

    @property
    def done(self) -> bool:
        return self._at == len(self._items)

    def _peek(self) -> str:
        return self._items[self._at] if self._at < len(self._items) else ""

    def _take(self) -> str:
        item = self._peek()
        self._at += 1
        return item

    def ternary(self) -> int | None:
        condition = self.binary(0)
        if self._peek() != "?":
            return condition
        self._take()
        yes = self.ternary()
        if self._take() != ":":
            raise _NotAnExpressionError
        no = self.ternary()
        return None if condition is None else yes if condition else no

    def binary(self, level: int) -> int | None:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self._peek() in _LEVELS[level]:
            operator = self._take()
            left = _apply(operator, left, self.binary(level + 1))
        return left

    def unary(self) -> int | None:
        item = self._take()
        if item == "(":
            value = self.ternary()
            if self._take() != ")":
                raise _NotAnExpressionError
            return value
        if item in ("!", "-", "+", "~"):
            value = self.unary()
            if value is None:
                return None
            return {"!": int(not value), "-": -value, "+": value, "~": ~value}[item]
        if item == "defined":
            return self._defined()
        if re.match(r"\d", item):
            return int(re.sub(r"[uUlLzZ']", "", item), 0) if not re.fullmatch(r"0\d+", item) else int(item, 8)
        if re.match(r"[A-Za-z_]", item):
            return self._word(item)
        raise _NotAnExpressionError

    def _defined(self) -> int | None:
        bracket = self._peek() == "("
        if bracket:
            self._take()
        name = self._take()
        if bracket and self._take() != ")":
            raise _NotAnExpressionError
        value = self._known.get(name)
        return None if value is None else int(value != UNDEFINED)

    def _word(self, name: str) -> int | None:
        if self._peek() == "(":  # function-like: __has_include and the like
            depth = 0
            while not self.done:
                item = self._take()
                depth += (item == "(") - (item == ")")
                if depth == 0:
                    return None
            raise _NotAnExpressionError
        if name in ("true", "false"):
            return int(name == "true")
        value = self._known.get(name)
        return None if value is None else 0 if value == UNDEFINED else int(value)


def _items(text: str) -> Iterator[str]:
    for m in re.finditer(r"[A-Za-z_]\w*|\d[\w']*|&&|\|\||==|!=|<=|>=|<<|>>|\S", text):
        yield m.group()


def _apply(operator: str, a: int | None, b: int | None) -> int | None:
    if operator == "&&":
        return 0 if a == 0 or b == 0 else None if a is None or b is None else 1
    if operator == "||":
        return 1 if a or b else None if a is None or b is None else 0
    if a is None or b is None:
        return None
    if operator in ("/", "%"):
        return None if b == 0 else a // b if operator == "/" else a % b
    table = {
        "|": a | b, "^": a ^ b, "&": a & b, "==": int(a == b), "!=": int(a != b), "<=": int(a <= b), ">=": int(a >= b),
        "<": int(a < b), ">": int(a > b), "+": a + b, "-": a - b, "*": a * b,
    }  # fmt: skip
    if operator in ("<<", ">>"):
        return None if not 0 <= b < 64 else a << b if operator == "<<" else a >> b
    return table[operator]
