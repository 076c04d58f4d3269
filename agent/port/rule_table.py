"""Repair by diagnostic: what the compiler says is looked up in `diagnostic_rules.yaml` and answered with an edit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from sandbox.errors import InputError, WavesmithError
from sandbox.hip_diagnostics import Diagnostic
from sandbox.hip_source import Edit, HipSource, apply_edits
from sandbox.yaml_text import FAST_LOADER

RULES_FILE = "diagnostic_rules.yaml"
Text = Annotated[str, Field(min_length=1)]


class Replacement(BaseModel):
    """Text of a source and what stands in its place."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    old: Text
    new: str


class DiagnosticRule(BaseModel):
    """One row of the table: which diagnostics it answers, and how."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$")]
    message: Text
    identifier: Text = r".*"
    header: str = ""
    text: str = ""
    """Looked for in the whole message, for what its key leaves out."""
    why: Text
    rename: str | None = None
    include: str | None = None
    undefine: list[str] | None = None
    """Macros that the unit, not the file of the diagnostic, undefines before anything else."""
    action: Literal["hip_suggestion", "cast_call", "cast_here"] | None = None
    to: str = "const void*"
    """The type that `cast_here` casts to."""
    replace: Replacement | None = None
    """Wherever the old text stands in code of the diagnostic's file."""
    status: Literal["accepted", "proposed"] = "accepted"
    """A proposed rule answers nothing until a person accepts it."""

    @model_validator(mode="after")
    def _one_action(self) -> DiagnosticRule:
        for pattern in (self.message, self.identifier, self.header, self.text):
            re.compile(pattern)
        if sum(a is not None for a in (self.rename, self.include, self.undefine, self.action, self.replace)) != 1:
            raise ValueError("a rule has exactly one of rename, include, undefine, action and replace")
        return self

    @property
    def needs_place(self) -> bool:
        """Whether the edit is made where the diagnostic points, so that line and column must be of this text."""
        return self.action in ("cast_call", "cast_here")

    def fits(self, d: Diagnostic) -> bool:
        """Whether this rule answers the diagnostic."""
        key = d.key
        return (
            re.match(self.message, key.message) is not None
            and re.search(self.identifier, key.identifier if self.action == "cast_here" else d.symbol) is not None
            and re.search(self.header, key.header) is not None
            and re.search(self.text, d.message) is not None
            and (self.action != "hip_suggestion" or _suggested(d) is not None)
        )


@cache
def load_rules() -> tuple[DiagnosticRule, ...]:
    """The table in order; raises `WavesmithError` naming the row that is wrong."""
    text = (resources.files("agent.port") / RULES_FILE).read_text(encoding="utf-8")
    return parse_rules(text)


def accepted_rules(path: Path) -> tuple[DiagnosticRule, ...]:
    """The rules of a file of one's own that a person accepted; raises `InputError` when it is no table."""
    try:
        rules = parse_rules(path.read_text(encoding="utf-8"), path.name)
    except (OSError, UnicodeDecodeError) as e:
        reason = e.strerror if isinstance(e, OSError) else "it is not UTF-8"
        raise InputError(
            f"the rules cannot be read ({reason}).", file=path, remedy="Give a YAML file of rules."
        ) from None
    except (WavesmithError, yaml.YAMLError) as e:
        said = " ".join(str(e).split())
        raise InputError(f"the rules are not right: {said}", file=path, remedy="Mend the row.") from None
    return tuple(rule for rule in rules if rule.status == "accepted")


def parse_rules(text: str, name: str = RULES_FILE) -> tuple[DiagnosticRule, ...]:
    """The rules of a table's text; ids are unique."""
    rows: list[Any] = yaml.load(text, FAST_LOADER) or []
    if not isinstance(rows, list):
        raise WavesmithError(f"{name}: a table is a list of rules.")
    rules: dict[str, DiagnosticRule] = {}
    for number, row in enumerate(rows, 1):
        try:
            rule = DiagnosticRule.model_validate(row)
        except (ValidationError, re.error) as e:
            raise WavesmithError(f"{name}, row {number}: {e}") from None
        if rule.id in rules:
            raise WavesmithError(f"{name}, row {number}: {rule.id} appears twice.")
        rules[rule.id] = rule
    return tuple(rules.values())


def rule_for(d: Diagnostic, own: Sequence[DiagnosticRule] = ()) -> DiagnosticRule | None:
    """The first rule of the table that answers a diagnostic, then of one's `own` accepted ones."""
    return next((rule for rule in (*load_rules(), *own) if rule.fits(d)), None)


@dataclass(frozen=True, slots=True)
class Answer:
    """One rule applied to one file: `detail` says what was changed and for which key."""

    rule: str
    detail: str


def answer(
    text: str, diagnostics: Sequence[Diagnostic], *, placed: bool = True, own: Sequence[DiagnosticRule] = ()
) -> tuple[str, list[Answer]]:
    """The text with every diagnostic answered that a rule knows, all instances of a key at once.

    `placed` is False for diagnostics of another text, whose lines and columns mean nothing here.
    """
    source = HipSource(text)
    edits: dict[Edit, None] = {}
    answers: dict[Answer, None] = {}
    for d in diagnostics:
        rule = rule_for(d, own)
        if rule is None or (rule.needs_place and not placed):
            continue
        made = list(_edits(rule, d, source))
        edits |= dict.fromkeys(made)
        if made:
            answers[Answer(rule.id, f"{_described(rule, made)} ({d.key.text})")] = None
    try:
        return apply_edits(text, list(edits)), list(answers)
    except ValueError:  # two edits of one place: one at a time, the others follow in the next round
        first = next(iter(edits))
        return apply_edits(text, [first]), list(answers)[:1]


def answer_in_units(
    texts: Mapping[str, str], units: Sequence[str], diagnostics: Sequence[Diagnostic],
    own: Sequence[DiagnosticRule] = (),
) -> tuple[dict[str, str], list[tuple[str, Answer]]]:  # fmt: skip
    """Answers that concern how a whole unit is compiled: the changed units, and what was done to which."""
    wanted = {r.id: (r, d) for d in diagnostics if (r := rule_for(d, own)) is not None and r.undefine}
    changed: dict[str, str] = {}
    answers: list[tuple[str, Answer]] = []
    for rule, d in wanted.values():
        lines = "".join(f"#undef {name}\n" for name in rule.undefine or ())
        for unit in units:
            text = changed.get(unit, texts[unit])
            if lines not in text:
                changed[unit] = lines + text
                names = ", ".join(rule.undefine or ())
                answers.append((unit, Answer(rule.id, f"#undef {names} in front ({d.key.text})")))
    return changed, answers


def _described(rule: DiagnosticRule, edits: Sequence[Edit]) -> str:
    text = edits[0].text.strip()
    return f"{text} in front" if rule.include else f"{text} at {len(edits)} places" if len(edits) > 1 else text


def _edits(rule: DiagnosticRule, d: Diagnostic, source: HipSource) -> Iterator[Edit]:
    if rule.include is not None:
        yield from _include(_filled(rule.include, rule, d), source)
    elif rule.rename is not None:
        yield from _rename(d.symbol, _filled(rule.rename, rule, d), source)
    elif rule.replace is not None:
        yield from _replace(rule.replace, source)
    elif rule.action == "hip_suggestion":
        if (name := _suggested(d)) is not None:
            yield from _rename(d.symbol, name, source)
    elif rule.action == "cast_call":
        yield from _cast_argument(d, source)
    elif rule.action == "cast_here" and d.line:
        position = source.line_span(d.line).start + max(d.column - 1, 0)
        yield Edit(position, position, f"({rule.to})")


def _filled(template: str, rule: DiagnosticRule, d: Diagnostic) -> str:
    m = re.search(rule.identifier, d.symbol)
    return m.expand(template) if m is not None else template


def _rename(old: str, new: str, source: HipSource) -> Iterator[Edit]:
    for token in source.code:
        if token.kind == "word" and token.text == old and old != new:
            yield Edit(token.start, token.end, new)


def _replace(replacement: Replacement, source: HipSource) -> Iterator[Edit]:
    starts = {t.start for t in source.code}
    for m in re.finditer(re.escape(replacement.old), source.text):
        if m.start() in starts:
            yield Edit(m.start(), m.end(), replacement.new)


def _include(name: str, source: HipSource) -> Iterator[Edit]:
    if any(d.name == "include" and re.search(rf"[<\"]{re.escape(name)}[>\"]", d.body) for d in source.directives):
        return
    position = source.code[0].start if source.code else 0
    start = source.text.rfind("\n", 0, position) + 1
    yield Edit(start, start, f"#include <{name}>\n")


_PREFIX = re.compile(r"^(?:__)?(?:cuda|cu|CUDA|CU|nv|NV|hip|HIP)_?")


def _suggested(d: Diagnostic) -> str | None:
    """clang's own suggestion, when it is the same name under HIP's prefix."""
    m = re.search(r"did you mean '(?:::)?(\w+)'", d.message)
    if m is None or not re.match(r"(?:__)?(?:hip|HIP)", m.group(1)):
        return None
    return m.group(1) if _PREFIX.sub("", d.symbol) == _PREFIX.sub("", m.group(1)) else None


_CONVERSION = re.compile(
    r"no known conversion from '[^']*'(?: \(aka '[^']*'\))? to '((?:const )?void \*{1,2})'.*? for (\d+)\w\w argument"
)


def _cast_argument(d: Diagnostic, source: HipSource) -> Iterator[Edit]:
    """A cast for the one argument that keeps the only candidate from fitting."""
    wanted = {m.groups() for note in d.notes if (m := _CONVERSION.search(note.message))}
    if len(wanted) != 1 or not d.line:
        return
    type_name, ordinal = next(iter(wanted))
    position = source.line_span(d.line).start + max(d.column - 1, 0)
    for call in source.calls(frozenset({d.symbol})):
        if call.name.start == position and len(call.args) >= int(ordinal):
            argument = call.args[int(ordinal) - 1]
            text = source.slice(argument)
            begin = argument.start + len(text) - len(text.lstrip())
            end = argument.start + len(text.rstrip())
            yield Edit(begin, begin, f"({type_name.replace(' *', '*')})(")
            yield Edit(end, end, ")")
