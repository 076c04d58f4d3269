"""A model behind the port loop's seam: asked for a file whose errors no rule knows, within the job's budget.

What it writes is checked by the guardrails, compiled, executed against the original and recorded like any other edit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agent.conversation import Conversation
from agent.edits import EDITS_SCHEMA, EditError, apply_edits, parse_edits
from agent.knowledge import Knowledge, own_items
from agent.model import Message, Model, ModelError, Tool, ToolCall, ToolResult
from agent.spend import BudgetSpent, Ledger
from prompts import one_line, render
from sandbox.target import load_target
from skills.skill import load_library

MAX_TURNS = 8
MAX_FILE_ASKS = 3
"""Conversations about one file; a model that has not mended it by then is not going to."""


def _tool(name: str, description: str, properties: Mapping[str, object]) -> Tool:
    return Tool(
        name,
        description,
        {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False},
    )


TOOLS = (
    _tool("read_file", "The whole file as it stands.", {}),
    _tool("search_knowledge", "Search guides, target facts and skills.", {"query": {"type": "string"}}),
    _tool("submit_edits", "Propose the edited file. It is compiled for every target.", {"edits": EDITS_SCHEMA}),
)


def repair_knowledge(targets: Sequence[str]) -> Callable[[str], list[str]]:
    """What a model that repairs ports can look up: skills, target facts and guide pages."""
    return Knowledge(item for name in targets for item in own_items(load_target(name), load_library())).lines


@dataclass
class ModelRepairer:
    """Proposes whole texts of files. A provider that fails ends its part of the port, not the port."""

    model: Model
    ledger: Ledger
    targets: Sequence[str]
    say: Callable[[str], None] = lambda _line: None
    knowledge: Callable[[str], list[str]] = lambda _query: []
    ended: str = ""
    _asked: dict[str, int] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Of the model."""
        return self.model.name

    @property
    def notes(self) -> tuple[str, ...]:
        """What the report says of it."""
        said = f"{self.model.name} was asked for repairs: {self.ledger.account}."
        return (said, f"{self.model.name} was asked no further: {self.ended.rstrip('.')}.") if self.ended else (said,)

    def propose(self, path: str, text: str, diagnostics: tuple[str, ...]) -> str | None:
        """The new text of a file, or None: nothing submitted, budget spent, or asked often enough."""
        if self.ended or self._asked.get(path, 0) >= MAX_FILE_ASKS:
            return None
        self._asked[path] = self._asked.get(path, 0) + 1
        submitted: list[str] = []
        tools = _Answers(text, submitted, self.knowledge)
        talk = Conversation(self.model, self.ledger, TOOLS, tools.answer, lambda: bool(submitted), self.say)
        try:
            talk.hold(self._opening(path, text, diagnostics), MAX_TURNS)
        except (BudgetSpent, ModelError) as e:
            self.ended = str(e)
            self.say(f"{self.model.name}: {e}")
        return submitted[-1] if submitted else None

    def _opening(self, path: str, text: str, diagnostics: Sequence[str]) -> list[Message]:
        targets = [load_target(name) for name in self.targets]
        known = self.knowledge(" ".join(diagnostics[:3]))[:4]
        task = render("port_task", path=path, source=text, diagnostics="\n".join(diagnostics[:30]), knowledge=known)
        return [Message("system", render("port_system", targets=targets)), Message("user", task)]


@dataclass
class _Answers:
    """The tools of one conversation about one file."""

    text: str
    submitted: list[str]
    knowledge: Callable[[str], list[str]]

    def answer(self, call: ToolCall) -> ToolResult:
        if call.arguments is None:
            return ToolResult(call.id, f"The call was not run: {call.problem}.", failed=True)
        match call.name:
            case "read_file":
                return ToolResult(call.id, self.text)
            case "search_knowledge":
                found = self.knowledge(str(call.arguments.get("query", "")))
                return ToolResult(call.id, "\n".join(found) or "Nothing was found.")
            case "submit_edits":
                return self._submit(call, call.arguments)
            case _:
                names = ", ".join(t.name for t in TOOLS)
                return ToolResult(
                    call.id, f"There is no tool {one_line(call.name, 60)!r}. The tools are {names}.", failed=True
                )

    def _submit(self, call: ToolCall, arguments: Mapping[str, object]) -> ToolResult:
        try:
            edited = apply_edits(self.text, parse_edits(arguments.get("edits")))
        except EditError as e:
            return ToolResult(call.id, f"Not applied: {e}", failed=True)
        if edited == self.text:
            return ToolResult(call.id, "Not applied: the edits change nothing.", failed=True)
        self.submitted.append(edited)
        return ToolResult(call.id, "Submitted. The compilers decide.")
