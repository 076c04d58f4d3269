"""The tools a model gets, and nothing else: no shell, no files, no network. Results are text, faults of a call too."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agent.candidate import Measurement, Proposal, describe
from agent.edits import EDITS_SCHEMA, EditError, apply_edits, parse_edits
from agent.model import Tool, ToolCall, ToolResult
from agent.search import Bench
from agent.spend import Ledger
from agent.visibility import interpreter_sees
from prompts import one_line
from sandbox.kernel import Kernel
from sandbox.verdict import Incorrect, Verdict
from skills.skill import Library

_MAX_RESULT_CHARS = 12_000
PROMISES = (
    "vgpr_spill_count down", "scratch_bytes down", "lds_bytes down", "occupancy_waves_per_simd up",
    "cas_loop_count down", "cache_maintenance_count down", "global_load_mean_bytes up", "global_store_mean_bytes up",
    "executed_lane_atomics down", "executed_lds_atomics down", "executed_instructions down",
    "executed_alu_cycles down",
)  # fmt: skip
"""What a candidate may promise: resources that cost time wherever they are used, read from the code object or counted
in an emulated run; not the length of the code."""
_OPTIONAL = ("expects",)


def _tool(name: str, description: str, **properties: Any) -> Tool:
    required = [n for n in properties if n not in _OPTIONAL]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return Tool(name, description, schema)


TOOLS: tuple[Tool, ...] = (
    _tool("read_kernel", "The whole file as it stands."),
    _tool("read_profile", "What the compiler's output says of each kernel: registers, LDS, spills, instruction mix."),
    _tool("list_skills", "The skills of the library: id, what it does and why, which metric it must move."),
    _tool("search_knowledge", "Search guides, target facts, skills and past verified wins.", query={"type": "string"}),
    _tool("compile_candidate", "Build the edited file for the target; errors or resource changes.", edits=EDITS_SCHEMA),
    _tool(
        "verify_candidate",
        "Let the validator judge the edited file (counts against the job's evaluations): the verdict, and for a wrong"
        " result the failing check.",
        edits=EDITS_SCHEMA,
    ),
    _tool(
        "submit_candidate",
        "Propose the edited file. State in one sentence which bottleneck it removes. `expects` names the metrics that"
        " must move; a candidate whose named metric does not move is rejected. Leave it out when only time will tell.",
        title={"type": "string"},
        why={"type": "string"},
        expects={"type": "array", "items": {"type": "string", "enum": list(PROMISES)}},
        edits=EDITS_SCHEMA,
    ),
)


@dataclass
class Toolbox:
    """Answers the calls of one conversation about one measured kernel; collects what is submitted."""

    measured: Measurement
    bench: Bench
    library: Library
    ledger: Ledger
    model: str
    stands_on: Kernel
    """The candidate that the search compares with; what is edited, `measured`, may be another."""
    knowledge: Callable[[str], list[str]] = lambda _query: []
    submitted: list[Proposal] = field(default_factory=list)

    def answer(self, call: ToolCall) -> ToolResult:
        """The result of one call. A wrong call is answered, not raised: the model can correct it."""
        if call.arguments is None:
            return ToolResult(call.id, f"The call was not run: {call.problem}.", failed=True)
        handler = self._handlers().get(call.name)
        if handler is None:
            names = ", ".join(t.name for t in TOOLS)
            return ToolResult(
                call.id, f"There is no tool {one_line(call.name, 60)!r}. The tools are {names}.", failed=True
            )
        try:
            text = handler(call.arguments)
        except EditError as e:
            return ToolResult(call.id, f"Not applied: {e}", failed=True)
        if len(text) > _MAX_RESULT_CHARS:
            text = text[:_MAX_RESULT_CHARS] + "\n[cut]"
        return ToolResult(call.id, text)

    def _handlers(self) -> Mapping[str, Callable[[Mapping[str, Any]], str]]:
        return {
            "read_kernel": lambda _: self.measured.kernel.source,
            "read_profile": lambda _: _profile(self.measured),
            "list_skills": lambda _: self._skills(),
            "search_knowledge": lambda a: "\n".join(self.knowledge(str(a.get("query", "")))) or "Nothing was found.",
            "compile_candidate": self._compile,
            "verify_candidate": self._verify,
            "submit_candidate": self._submit,
        }

    def _skills(self) -> str:
        """Those for the file's language, each with the first sentence of why; `search_knowledge` has the rest."""
        own = [s for s in self.library if self.measured.kernel.language in s.data.languages]
        return "\n".join(f"{s.id}: {s.data.title}. {s.data.why.split('. ')[0].rstrip('.')}." for s in own)

    def _edited(self, arguments: Mapping[str, Any]) -> Kernel:
        """The edited kernel; raises `EditError` when edits do not apply or leave no Python."""
        source = apply_edits(self.measured.kernel.source, parse_edits(arguments.get("edits")))
        try:
            ast.parse(source)
        except (SyntaxError, ValueError) as e:
            line = getattr(e, "lineno", None)
            raise EditError(f"the result is not Python: line {line}: {getattr(e, 'msg', e)}.") from None
        return self.measured.kernel.with_source(source)

    def _compile(self, arguments: Mapping[str, Any]) -> str:
        after = self.bench.measure(self._edited(arguments))
        if after.failures:
            return "It does not build:\n" + "\n".join(f.sentence for f in after.failures)
        return "It builds.\n" + _profile(after)

    def _verify(self, arguments: Mapping[str, Any]) -> str:
        proposal = self._proposal(self._edited(arguments), "trial", "")
        self.ledger.take_evaluation()
        return explain(self.bench.judge(self.measured, proposal).verdict)

    def _submit(self, arguments: Mapping[str, Any]) -> str:
        kernel = self._edited(arguments)
        if kernel.digest == self.measured.kernel.digest:
            raise EditError("the edits change nothing.")
        if any(p.kernel.digest == kernel.digest for p in self.submitted):
            return "This candidate was submitted before."
        expects = _promises(arguments.get("expects"))
        title = one_line(str(arguments.get("title", "")), 120) or "Rewrite proposed by the model"
        why = one_line(str(arguments.get("why", "")), 600)
        self.submitted.append(replace(self._proposal(kernel, title, why), expects=expects))
        return "Submitted. The validator decides."

    def _proposal(self, kernel: Kernel, title: str, why: str) -> Proposal:
        name = hashlib.sha256(kernel.source.encode()).hexdigest()[:12]
        return Proposal(
            id=f"model@{name}",
            origin=self.model,
            title=title,
            why=why,
            kernel=kernel,
            repair=not self.measured.builds,
            invisible=not interpreter_sees(self.stands_on.source, kernel.source),
        )


def _promises(value: object) -> tuple[str, ...]:
    """The metrics a candidate promises to move; raises `EditError` for others than `PROMISES`."""
    given = value if isinstance(value, list) else [] if value is None else [value]
    unknown = [str(v)[:60] for v in given if v not in PROMISES]
    if unknown:
        raise EditError(f"`expects` holds {unknown[0]!r}; it may hold {', '.join(PROMISES)}.")
    return tuple(dict.fromkeys(given))


def explain(verdict: Verdict) -> str:
    """A verdict for the model: the failing check and place, never the expected values."""
    if isinstance(verdict, Incorrect):
        place = {
            k: v for k, v in verdict.details.items() if k in ("index", "output", "entry", "dtype", "shape", "line")
        }
        where = f" {place}" if place else ""
        return f"Rejected by the check `{verdict.check}`.{where}"
    return f"{type(verdict).__name__}: {describe(verdict)}"


def _profile(measured: Measurement) -> str:
    if not measured.profiles:
        return "No profile: the file does not build, or nothing was launched."
    lines = []
    for kernel, profile in measured.profiles.items():
        lines.append(f"{kernel}:")
        lines += [f"  {m.name} = {m.value} {m.unit}".rstrip() for m in sorted(profile, key=lambda m: m.name) if m.value]
    return "\n".join(lines)
