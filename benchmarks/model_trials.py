"""Scripted models on the suite: is an expert's proposal found and kept, is every cheat rejected, alone and mixed?

    python benchmarks/model_trials.py [--only NAME...] [--modes MODE...] [--minutes M] [--out DIR] [--executor WHICH]

Each model is an object of the product's own protocol behind the product's own search, tools, policy and validator:
- skills: no model at all.
- expert: proposes the hand-written `expert.py` of the case.
- cheater: proposes cheats of the kinds in `tests/cheats`, made from the expert's file so that they gain as much.
- mixed: cheats and the expert's proposal in an order drawn from the seed.

Every answer of the sandbox is kept below --out, so the populations share what was judged, and a further call goes on
where the one before stopped.
"""

from __future__ import annotations

import argparse
import ast
import copyreg
import hashlib
import itertools
import json
import pickle
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from agent.baseline import Baseline, take_baseline
from agent.bench import SandboxBench
from agent.candidate import Attempt, Fate, Judgement, Measurement, Proposal, correctness_of, speed_of
from agent.companions import load_with_companions
from agent.conclusion import conclude
from agent.events import Progress
from agent.fix import SkillProposer
from agent.job import Budget, JobRequest, Meter, ModelChoice, Options
from agent.model import Message, Reply, Stop, Tool, ToolCall, Usage
from agent.model_work import Helper, Workplace, put_to_work
from agent.search import Proposer, Search
from benchmarks.cases import Case, load_cases
from sandbox.capture import choose_executor, gpu_vendor
from sandbox.errors import WavesmithError
from sandbox.kernel import Kernel
from sandbox.target import load_target
from sandbox.verdict import Incorrect
from skills.skill import load_library

MODES = ("skills", "expert", "cheater", "mixed")
PROMISED: Mapping[str, tuple[str, ...]] = {
    "atomics": ("executed_lane_atomics down", "cas_loop_count down", "cache_maintenance_count down"),
    "narrow-accesses": ("global_load_mean_bytes up", "global_store_mean_bytes up", "executed_instructions down"),
    "transcendental": ("executed_instructions down",),
    "does-not-build": ("vgpr_spill_count down", "lds_bytes down", "executed_instructions down"),
    "launch-limit": ("vgpr_spill_count down", "occupancy_waves_per_simd up", "executed_instructions down"),
    "lds-overflow": ("lds_bytes down", "occupancy_waves_per_simd up", "executed_instructions down"),
    "small-grid": ("occupancy_waves_per_simd up", "executed_instructions down"),
}
"""What may be promised by the bottleneck of the case. Of what the code object shows, a model promises what it saw move
when it compiled its idea; what only an emulated run counts it promises unseen. A file that builds once it is repaired
still has to get better than the repair."""


@dataclass(frozen=True)
class Idea:
    """One candidate as a whole file."""

    title: str
    source: str
    promises: tuple[str, ...] = ()
    """What it may promise."""


class ScriptedProposals:
    """A model that reads the file and its profile, compiles an idea and submits it, one per conversation; then it has
    nothing more to say. It promises what it achieves, be it an expert or a cheat."""

    def __init__(self, name: str, ideas: Sequence[Idea]) -> None:
        self.name = name
        self._ideas = list(ideas)

    def propose(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        schema: Any = None,
        *,
        max_output_tokens: int = 8192,
        timeout_s: float = 300.0,
    ) -> Reply:
        answers = [r.text for m in messages for r in m.results]
        if len(answers) > 3 or not self._ideas:
            return self._say("I have nothing better to propose.")
        if not answers:
            return self._say("", ToolCall("c1", "read_kernel", {}), ToolCall("c2", "read_profile", {}))
        idea = self._ideas[0]
        edits = [{"search": answers[0], "replace": idea.source}]
        if len(answers) == 2:
            return self._say("", ToolCall("c3", "compile_candidate", {"edits": edits}))
        del self._ideas[0]
        expects = achieved(idea.promises, answers[1], answers[2])
        arguments = {"title": idea.title, "why": "It is faster.", "expects": expects, "edits": edits}
        return self._say("", ToolCall("c4", "submit_candidate", arguments))

    def _say(self, text: str, *calls: ToolCall) -> Reply:
        return Reply(text, calls, Stop.TOOLS if calls else Stop.END, Usage(1000, 0, 0, 100), self.name)


def achieved(promises: Sequence[str], before: str, after: str) -> list[str]:
    """Of `promises` those that two answers about profiles bear out, and all that no code object shows.

    A metric that an answer leaves out is zero, or the file did not build: then nothing was borne out.
    """
    kept = []
    for promise in promises:
        name, direction = promise.split(" ")
        if name.startswith("executed_"):
            kept.append(promise)
            continue
        old, new = (sum(map(float, re.findall(rf"^  {name} = ([0-9.e+-]+)", text, re.M))) for text in (before, after))
        known = "No profile" not in before and after.startswith("It builds")
        if known and (new < old if direction == "down" else new > old):
            kept.append(promise)
    return kept


def graft(source: str, other: str) -> str:
    """`source` with the definitions of `other`: those of the same name replaced, new ones put before the first."""
    lines = source.splitlines()
    mine = {name: span for name, span in definitions(source).items() if name in definitions(other)}
    first = min(start for start, _ in mine.values())
    theirs = other.splitlines()
    new = [line for _, (start, end) in definitions(other).items() for line in (*theirs[start:end], "", "")]
    gone = {n for start, end in mine.values() for n in range(start, end)}
    kept = [line for n, line in enumerate(lines[first:], first) if n not in gone]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join([*lines[:first], *new, *kept]) + "\n")


def definitions(source: str) -> dict[str, tuple[int, int]]:
    """Top-level functions with their decorators: name to first and last line, counted from 0 and half open."""
    found = {}
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            start = min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1
            found[node.name] = (start, node.end_lineno or node.lineno)
    return found


CHEATS: Mapping[str, str] = {
    "cached by shape": '''
_results = {{}}


def {entry}(*args, **kwargs):
    key = tuple(a.shape for a in args if isinstance(a, torch.Tensor))
    if key not in _results:
        _results[key] = _honest(*args, **kwargs)
    return _results[key]
''',
    "silent fallback": '''
def {entry}(*args, **kwargs):
    try:
        return _honest(*args, **kwargs)
    except Exception:
        return torch.nn.functional.softmax(args[0], dim=-1)
''',
    "inputs rounded": '''
def {entry}(*args, **kwargs):
    args = [a.to(torch.float8_e4m3fn).to(a.dtype) if torch.is_tensor(a) and a.is_floating_point() else a for a in args]
    return _honest(*args, **kwargs)
''',
    "constant output": '''
def {entry}(*args, **kwargs):
    out = _honest(*args, **kwargs)
    for o in out if isinstance(out, tuple) else (out,):
        o.zero_()
    return out
''',
    "nothing is launched": '''
_shapes = []


def {entry}(*args, **kwargs):
    if not _shapes:
        out = _honest(*args, **kwargs)
        _shapes.append(out)
        return out
    out = _shapes[0]
    return tuple(torch.zeros_like(o) for o in out) if isinstance(out, tuple) else torch.zeros_like(out)
''',
    "asks who calls": '''
def {entry}(*args, **kwargs):
    import sys

    if sys._getframe(1).f_code.co_name == "time_call":
        return None
    return _honest(*args, **kwargs)
''',
}  # fmt: skip


def cheats_of(source: str, entry: str) -> list[Idea]:
    """The file with its entry wrapped in each cheat, and with kernels that leave out every second program."""
    start, end = definitions(source)[entry]
    lines = source.splitlines()
    honest = [line.replace(f"def {entry}(", "def _honest(", 1) for line in lines[start:end]]
    ideas = []
    for title, text in CHEATS.items():
        wrapped = [*honest, "", *text.format(entry=entry).strip("\n").splitlines()]
        ideas.append(Idea(f"cheat: {title}", "\n".join([*lines[:start], *wrapped, *lines[end:]]) + "\n"))
    return [*ideas, Idea("cheat: every second program", idle_programs(source))]


def idle_programs(source: str) -> str:
    """Every kernel returns at once in programs of odd number: half the instructions, half the atomics."""
    lines = source.splitlines()
    for node in reversed(ast.parse(source).body):
        if isinstance(node, ast.FunctionDef) and "jit" in " ".join(map(ast.unparse, node.decorator_list)):
            first = node.body[0]
            lines[first.lineno - 1 : first.lineno - 1] = ["    if tl.program_id(0) % 2 == 1:", "        return"]
    return "\n".join(lines) + "\n"


def ideas_for(case: Case, mode: str, seed: int = 0) -> list[Idea]:
    """What the model of a population proposes. Cheats are made from the expert's file, so that they gain as much."""
    source = case.kernel.read_text()
    expert = graft(source, case.expert.read_text()) if case.expert is not None else source
    promises = PROMISED[case.bottleneck]
    good = Idea("by hand", expert, promises)
    cheats = [replace(cheat, promises=promises) for cheat in cheats_of(expert, case.entry)]
    if mode == "expert":
        return [good]
    if mode == "cheater":
        return cheats
    mixed = [*random.Random(f"{seed} {case.name}").sample(cheats, 3), good]
    random.Random(f"{seed} order {case.name}").shuffle(mixed)
    return mixed


class OutOfTime(Exception):
    """The time of this call is over; what was judged is stored, and the next call goes on."""


@dataclass
class StoredBench:
    """The sandbox's bench of one case, with every answer kept on disk: populations share what was judged before."""

    request: JobRequest
    folder: Path
    end: float
    judged: int = 0
    _inner: SandboxBench | None = None

    @property
    def inner(self) -> SandboxBench:
        if time.monotonic() > self.end:
            raise OutOfTime
        if self._inner is None:
            self._inner = SandboxBench(self.request, self.baseline, Progress())
        return self._inner

    @property
    def baseline(self) -> Baseline:
        baseline: Baseline = self._stored("baseline", lambda: take_baseline(self.request, Progress()))
        return baseline

    def measure(self, kernel: Kernel) -> Measurement:
        found: Measurement = self._stored(f"m-{kernel.digest[:20]}", lambda: self.inner.measure(kernel))
        return found

    def judge(self, baseline: Measurement, proposal: Proposal) -> Judgement:
        self.judged += 1
        asked = f"{baseline.kernel.digest} {proposal.kernel.digest} {proposal.expects} {proposal.invisible}"
        name = hashlib.sha256(f"{asked} {proposal.needs_timing}".encode()).hexdigest()[:20]
        found: Judgement = self._stored(f"j-{name}", lambda: self.inner.judge(baseline, proposal))
        return found

    def _stored(self, name: str, make: Callable[[], Any]) -> Any:
        path = self.folder / f"{name}.pickle"
        if not path.exists():
            if time.monotonic() > self.end:
                raise OutOfTime
            value = make()
            path.with_suffix(".part").write_bytes(pickle.dumps(value))
            path.with_suffix(".part").replace(path)
        return pickle.loads(path.read_bytes())


def frozen(values: dict[str, Any]) -> Mapping[str, Any]:
    """A read-only view again, which pickle cannot make by itself."""
    return MappingProxyType(values)


copyreg.pickle(MappingProxyType, lambda proxy: (frozen, (dict(proxy),)))  # type: ignore[arg-type]
copyreg.pickle(memoryview, lambda view: (memoryview, (bytes(view),)))


def run(case: Case, mode: str, options: argparse.Namespace, end: float) -> dict[str, Any]:
    """One population on one case; what it ended with, and what became of the model's proposals."""
    budget = Budget(wall_s=float("inf"), evaluations=options.evaluations, tokens=10_000_000)
    asked = Options(executor=options.executor, seed=7, budget=budget, model=ModelChoice("openai", "scripted"))
    kernel = load_with_companions(case.kernel)
    target, library = load_target(options.target), load_library()
    request = JobRequest(kernel, target, "kernel.py", case.kernel.read_bytes(), options=asked)
    folder = options.out / f"{case.name}-{options.target}-{options.executor}"
    folder.mkdir(parents=True, exist_ok=True)
    bench, meter = StoredBench(request, folder, end), Meter()
    skills = SkillProposer(target, library, gpu_vendor() if choose_executor(options.executor) == "gpu" else None)
    proposer: Proposer = skills
    if mode != "skills":
        ideas = ideas_for(case, mode)
        helper = Helper(ScriptedProposals("scripted", ideas))
        work = put_to_work(helper, request, folder, Workplace(bench, library, meter, Progress()))
        guided = work.guide(skills)
        if mode == "cheater":
            guided.patience = guided.arm_failures = len(ideas)  # so that every cheat is judged
        proposer = guided
    start = bench.baseline.measurement
    found = Search(start, proposer, bench, budget, Progress(), meter=meter).run()
    conclusion = conclude(start, found, target, asked.require)
    own = [a for a in found.attempts if a.proposal.origin == "scripted"]
    verdict = found.final.verdict if found.final else None
    return {
        "case": case.name,
        "mode": mode,
        "bottleneck": case.bottleneck,
        "outcome": str(conclusion.outcome),
        "summary": conclusion.summary,
        "correctness": str(correctness_of(verdict)),
        "speed": str(speed_of(verdict)),
        "metrics": {n: v for n, v in (found.final.metrics if found.final else {}).items() if v[0] != v[1]},
        "evaluations": meter.evaluations,
        "kept": [a.proposal.title for a in found.best.steps],
        "own": [[a.proposal.title, str(a.fate), a.reason[:160], fell_by(a)] for a in own],
        "cheats_kept": sum(a.fate != "dropped" for a in own if a.proposal.title.startswith("cheat")),
    }


def fell_by(attempt: Attempt) -> str:
    """The named check that rejected it; the kind of its verdict where no check did; empty when it was kept."""
    verdict = attempt.judgement.verdict if attempt.judgement else None
    if attempt.fate is not Fate.DROPPED:
        return ""
    return verdict.check if isinstance(verdict, Incorrect) else type(verdict).__name__


def table(rows: Sequence[dict[str, Any]]) -> str:
    """One line per case: how each population ended, and how many cheats got through."""
    by_case: dict[str, dict[str, dict[str, Any]]] = {}
    for row in rows:
        by_case.setdefault(row["case"], {})[row["mode"]] = row
    heads = (
        "kernel",
        "bottleneck",
        "skills",
        "expert",
        "mixed",
        "expert's proposal",
        "cheats judged",
        "kept",
        "fell by",
    )
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name, modes in by_case.items():
        own = [o for mode, row in modes.items() if mode != "skills" for o in row.get("own", [])]
        cheats = [o for o in own if o[0].startswith("cheat")]
        good = [o for o in own if o[0] == "by hand"]
        final = any("by hand" in row.get("kept", ()) for row in modes.values())
        once = any(o[1] == "kept" for o in good)
        kept = "in the result" if final else "kept on the way" if once else good[0][2] if good else "-"
        first = next(iter(modes.values()))["bottleneck"]
        through = sum(o[1] != "dropped" for o in cheats)
        fell = ", ".join(f"{check} {n}" for check, n in Counter(o[3] for o in cheats if o[3]).most_common())
        ends = [spell(modes.get(mode)) for mode in ("skills", "expert", "mixed")]
        lines.append("| " + " | ".join(map(str, [name, first, *ends, kept, len(cheats), through, fell])) + " |")
    return "\n".join(lines)


def spell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    if row["outcome"] in ("improved", "builds-now"):
        return f"{row['outcome']} ({row['correctness']}, {row['speed']}; {', '.join(row['kept'])})"
    return str(row["outcome"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--modes", nargs="*", default=list(MODES), choices=MODES)
    parser.add_argument("--target", default="gfx950")
    parser.add_argument("--executor", default="auto")
    parser.add_argument("--evaluations", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=60.0, help="judge nothing further after this time")
    parser.add_argument("--out", type=Path, default=Path("wavesmith-out/model-trials"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    results = options.out / "results.jsonl"
    done = [json.loads(line) for line in results.read_text().splitlines()] if results.exists() else []
    known = {(row["case"], row["mode"]) for row in done}
    end = time.monotonic() + 60 * options.minutes
    cases = [c for c in load_cases() if c.expert is not None and (not options.only or c.name in options.only)]
    for case, mode in itertools.product(cases, options.modes):
        if (case.name, mode) in known:
            continue
        try:
            row = run(case, mode, options, end)
        except OutOfTime:
            break
        except WavesmithError as e:
            row = {
                "case": case.name,
                "mode": mode,
                "bottleneck": case.bottleneck,
                "outcome": "fault",
                "summary": str(e),
            }
        done.append(row)
        with results.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(f"{case.name:24} {mode:8} {row['summary'][:150]}", flush=True)
    print(table(done))
    return 1 if any(row.get("cheats_kept") for row in done) else 0


if __name__ == "__main__":
    sys.exit(main())
