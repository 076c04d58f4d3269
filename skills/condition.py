"""Conditions of a skill: one fact, one operator, one value per line, read from YAML and never evaluated as code.

A line is `FACT OPERATOR VALUE`, for example `vgpr_spill_count > 0`, `target.arch in [gfx942, gfx950]` or
`lds_bytes > target.lds_bytes_per_workgroup` (a value that is itself the name of a fact stands for that fact). A fact
that was not collected makes a condition unknown, and an unknown condition is not met; `... if known` lets it pass
instead, for skills that can work from the source alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import yaml

Value = bool | int | float | str | tuple[str, ...]
"""What a fact may hold. Sets of names are sorted tuples."""


class Truth(Enum):
    TRUE = "met"
    FALSE = "not met"
    UNKNOWN = "unknown"


class ConditionError(ValueError):
    """A condition line that does not follow the grammar; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    truth: Truth
    explanation: str
    """One sentence with the values that were compared."""


def _contains(left: Any, right: Any) -> bool:
    return right in left


def _inside(left: Any, right: Any) -> bool:
    return left in right


def _not_inside(left: Any, right: Any) -> bool:
    return left not in right


OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "in": _inside,
    "not-in": _not_inside,
    "contains": _contains,
}
_ORDERED = ("<", "<=", ">", ">=")
_IF_KNOWN = " if known"


@dataclass(frozen=True, slots=True)
class Condition:
    """One parsed line. `operand` is a literal, or the name of another fact when `operand_is_fact`."""

    text: str
    fact: str
    operator: str
    operand: Value
    operand_is_fact: bool
    if_known: bool

    def check(self, facts: Mapping[str, Value | None], reason: Callable[[str], str]) -> Outcome:
        """Compare with collected facts; `reason(name)` says why a fact is missing."""
        names = [self.fact, str(self.operand)] if self.operand_is_fact else [self.fact]
        for name in names:
            if facts.get(name) is None:
                truth = Truth.TRUE if self.if_known else Truth.UNKNOWN
                return Outcome(truth, f"{name} is not known: {reason(name)}")
        left = facts[self.fact]
        right = facts[str(self.operand)] if self.operand_is_fact else self.operand
        try:
            met = OPERATORS[self.operator](left, right)
        except TypeError:
            return Outcome(Truth.UNKNOWN, f"{self.fact} = {_show(left)} cannot be compared with {_show(right)}")
        return Outcome(
            Truth.TRUE if met else Truth.FALSE,
            f"{self.fact} = {_show(left)}" + ("" if met else f", not {self.operator} {_show(right)}"),
        )


def _show(value: object) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def parse_condition(text: str, vocabulary: Collection[str]) -> Condition:
    """Parse one line; raises `ConditionError` for an unknown fact, a second operator or a value of the wrong kind."""
    body = text.strip()
    if_known = body.endswith(_IF_KNOWN)
    body = body.removesuffix(_IF_KNOWN).strip()
    parts = body.split(None, 2)
    if len(parts) != 3:
        raise ConditionError(f"`{text}` is not `FACT OPERATOR VALUE`")
    fact, op, rest = parts
    if fact not in vocabulary:
        raise ConditionError(f"`{fact}` is not a known fact")
    if op not in OPERATORS:
        raise ConditionError(f"`{op}` is not an operator; use one of {', '.join(OPERATORS)}")
    if rest in vocabulary:
        return Condition(text, fact, op, rest, True, if_known)
    operand = _literal(rest, text)
    if op in ("in", "not-in") and not isinstance(operand, tuple):
        raise ConditionError(f"`{text}`: `{op}` needs a list such as [a, b]")
    if op not in ("in", "not-in") and isinstance(operand, tuple):
        raise ConditionError(f"`{text}`: `{op}` takes one value, not a list")
    if op in _ORDERED and (isinstance(operand, bool) or not isinstance(operand, int | float)):
        raise ConditionError(f"`{text}`: `{op}` needs a number or the name of a fact")
    return Condition(text, fact, op, operand, False, if_known)


def _literal(text: str, line: str) -> Value:
    """A YAML scalar or a flat list of names; a word with spaces must be quoted, so that a second operator never
    hides."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        raise ConditionError(f"`{line}`: the value cannot be read") from None
    if isinstance(value, list) and all(isinstance(v, str | int) and not isinstance(v, bool) for v in value):
        return tuple(str(v) for v in value)
    if isinstance(value, str) and len(value.split()) > 1 and text[0] not in "'\"":
        raise ConditionError(f"`{line}` holds more than one operator or an unquoted text")
    if isinstance(value, bool | int | float | str):
        return value
    raise ConditionError(f"`{line}`: the value must be a number, a word, true, false or a flat list")
