"""Record representative launches of a user's own program: `capture_program`.

The program runs as it is, with its own interpreter, environment and folder, unconfined, because it is the user's. A
`sitecustomize` in front of its `PYTHONPATH` loads our recorder (`sandbox.child_program`). Per kernel the first launches
with distinct types, shapes and constants are kept, each with the host call above it.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sandbox.assembly import Assembly, stored_with
from sandbox.compile_cache import cache_root
from sandbox.errors import InputError, SandboxError
from sandbox.frames import FrameReader
from sandbox.isolation import Limits
from sandbox.kernel import Kernel, Language, load_kernel
from sandbox.target import Target
from sandbox.workload import HarnessOutcome, Launch, StoredWorkload, Workload

_SITECUSTOMIZE = """\
import os, sys
_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != _here]
try:
    import sitecustomize as _next
except ImportError:
    pass
sys.path.append({root!r})
try:
    from sandbox.child_program import install
    install()
except Exception as e:
    print(f"wavesmith: this program is not recorded: {{type(e).__name__}}: {{e}}", file=sys.stderr)
"""


@dataclass(frozen=True, slots=True)
class Recording:
    """What one kernel file of the program did."""

    kernel: Kernel
    path: Path
    stored: StoredWorkload


@dataclass(frozen=True, slots=True)
class ProgramCapture:
    """The program's exit status and a recording per file that launched a kernel. `reason`: why there is none."""

    exit_code: int
    recordings: tuple[Recording, ...]
    notes: tuple[str, ...] = ()
    reason: str | None = None


def capture_program(
    argv: Sequence[str],
    target: Target,
    *,
    kernel_regex: str = "",
    max_launches: int = 8,
    executor: str = "auto",
    limits: Limits | None = None,
) -> ProgramCapture:
    """Run `argv` to its end and record up to `max_launches` launches of each kernel whose name matches `kernel_regex`.

    Standard streams are the program's own. Without a GPU its `cuda` tensors lie in host memory and kernels run in the
    interpreter. Raises `InputError` when the program cannot be started.
    """
    limits = limits or Limits()
    with tempfile.TemporaryDirectory(prefix="wavesmith-program-") as name:
        scratch = Path(name)
        result = scratch / "result"
        environment = _environment(scratch, result, target, kernel_regex, max_launches, executor, limits)
        try:
            code = subprocess.run(list(argv), env=environment, check=False).returncode
        except (OSError, ValueError) as e:
            raise InputError(f"{argv[0]} cannot be run: {e}.", remedy="Give the command after `--`.") from None
        if not result.is_file():
            reason = "no kernel was launched in a Python process that the recorder could be loaded into"
            return ProgramCapture(code, (), reason=reason)
        assembly = _read(result, limits)
    recordings = tuple(_recording(assembly, path, target) for path in _files(assembly))
    return ProgramCapture(code, tuple(r for r in recordings if r is not None), tuple(dict.fromkeys(assembly.notes)))


def _environment(
    scratch: Path, result: Path, target: Target, kernel_regex: str, max_launches: int, executor: str, limits: Limits
) -> dict[str, str]:
    root = Path(__file__).resolve().parent.parent
    hook = scratch / "hook"
    hook.mkdir()
    (hook / "sitecustomize.py").write_text(_SITECUSTOMIZE.format(root=str(root)))
    job = {
        "targets": [target.board.name], "executor": executor, "limits": asdict(limits), "kernel": kernel_regex,
        "max_launches": max_launches, "result": str(result), "cache": str(cache_root() / "compile"),
    }  # fmt: skip
    (scratch / "job.json").write_text(json.dumps(job))
    python_path = [str(hook), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {"PYTHONPATH": os.pathsep.join(python_path), "WAVESMITH_CAPTURE_JOB": str(scratch / "job.json")}
    return {**os.environ, **variables}


def _read(result: Path, limits: Limits) -> Assembly:
    assembly = Assembly()
    reader = FrameReader(assembly.on_frame, limits.result_bytes)
    with result.open("rb") as handle:
        while data := handle.read(1 << 20):
            reader.feed(data)
    if reader.broken is not None:
        raise SandboxError(f"the recording cannot be read: {reader.broken}")
    return assembly


def _files(assembly: Assembly) -> list[Path]:
    return list(dict.fromkeys(Path(str(data["file"])) for data in assembly.launches.values()))


def _recording(assembly: Assembly, path: Path, target: Target) -> Recording | None:
    """The launches of one file, renumbered, with the calls of that file above them."""
    if not path.is_file() or path.suffix != ".py":
        return None
    kernel = load_kernel(path)
    launches, entries, numbers = assembly.only_file(str(path)).finish()
    workload = Workload(
        filename=path.name,
        kernel_digest=kernel.digest,
        target=target.arch,
        board=target.board.name,
        launches=tuple(_relative(launch, path) for launch in launches),
        entries=entries,
        storages=tuple(assembly.storages),
        outcome=HarnessOutcome("program", "none", checks=assembly.finished_checks(numbers)),
        versions=assembly.versions,
        notes=tuple(dict.fromkeys(assembly.notes)),
    )
    assert kernel.language is Language.TRITON
    return Recording(kernel, path, stored_with(workload, assembly))


def _relative(launch: Launch, path: Path) -> Launch:
    return replace(launch, file=path.name)
