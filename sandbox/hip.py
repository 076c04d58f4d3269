"""Compile HIP for one architecture or the host: diagnostics, code object, resources per kernel. Cached on disk.

The sources are data (`SourceTree`): they are written to a scratch folder of fixed shape, so the same tree with the same
flags and toolchain is compiled once, wherever it came from.
"""

from __future__ import annotations

import hashlib
import json
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from sandbox.compile_cache import CompileCache
from sandbox.errors import InputError, SandboxError
from sandbox.hip_diagnostics import Diagnostic, Note, parse_diagnostics
from sandbox.hip_headers import forget, precompiled_runtime, starts_with_runtime
from sandbox.toolchain import Toolchain
from sandbox.yaml_text import FAST_LOADER

HOST = "host"
_ASSEMBLY = "out.s"
_FORMAT = 4
"""Part of every cache key: raised when what a cache entry holds changes."""


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What the code object's metadata says about one kernel."""

    symbol: str
    """Mangled name, without `.kd`."""
    name: str
    """Demangled, as C++ spells it."""
    sgpr_count: int
    vgpr_count: int
    agpr_count: int
    sgpr_spill_count: int
    vgpr_spill_count: int
    scratch_bytes: int
    """Per lane."""
    lds_bytes: int
    """Static, per workgroup."""
    max_workgroup_threads: int
    kernarg_bytes: int
    dynamic_stack: bool
    args: tuple[KernelArg, ...]


@dataclass(frozen=True, slots=True)
class KernelArg:
    """One entry of the argument block; hidden ones carry a `hidden_*` kind."""

    offset: int
    size_bytes: int
    kind: str


@dataclass(frozen=True)
class SourceTree:
    """Relative POSIX path -> text. Everything a translation unit includes with quotes or from `include_folders`."""

    files: Mapping[str, str]
    include_folders: tuple[str, ...] = ()
    """Folders inside the tree, searched in order."""
    system_folders: tuple[Path, ...] = ()
    """Folders outside the tree given by the user (`-I`); their modification times enter the cache key."""
    flags: tuple[str, ...] = ()
    """Definitions and language options of the user's build."""
    forced_includes: tuple[str, ...] = field(default=())

    def write_to(self, folder: Path) -> None:
        for name, text in self.files.items():
            if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
                raise InputError("the path leaves its folder.", file=name, remedy="Use paths below the project folder.")
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    @property
    def digest(self) -> str:
        h = hashlib.sha256()
        for name, text in sorted(self.files.items()):
            h.update(f"{name}\0{len(text)}\0".encode() + text.encode("utf-8", "surrogateescape"))
        rest = [*self.include_folders, "|", *self.flags, "|", *self.forced_includes, "|"]
        rest += [f"{p}:{p.stat().st_mtime_ns if p.exists() else 0}" for p in self.system_folders]
        h.update("\0".join(rest).encode())
        return h.hexdigest()


@dataclass(frozen=True, slots=True)
class HipBuild:
    """Result of one pass. `code_object` is None for the host and when the build failed."""

    pass_name: str
    """`gfx942`, `gfx950` ... or `host`."""
    diagnostics: tuple[Diagnostic, ...]
    code_object: bytes | None
    kernels: tuple[KernelResources, ...]
    seconds: float
    """Wall time of the compilation, also when it came from the cache."""
    cached: bool = False
    assembly: str | None = None
    """The code as text, where `HipOptions.assembly` asked for it."""

    @property
    def ok(self) -> bool:
        return not self.errors

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity == "error")


@dataclass(frozen=True, slots=True)
class HipOptions:
    optimize: str = "-O3"
    standard: str = "c++17"
    timeout_s: float = 180.0
    memory_bytes: int = 6 * 2**30
    syntax_only: bool = False
    """Stop after the front end (no code object): faster, but misses the back end's complaints."""
    assembly: bool = False
    """Keep the code as text too; the code object is assembled from it."""


def compile_hip(
    tree: SourceTree, main: str, pass_name: str, toolchain: Toolchain, options: HipOptions | None = None
) -> HipBuild:
    """Compile `main` of `tree` for one pass. A source that does not build is a result, not an exception.

    Raises `SandboxError` when the compiler itself crashed or took longer than allowed.
    """
    options = options or HipOptions()
    key = _cache_key(tree, main, pass_name, toolchain, options)
    cache = CompileCache.default()
    if cache is not None and (blobs := cache.load(key)) is not None and (build := _thaw(blobs)) is not None:
        return build
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wavesmith-hip-") as name:
        folder = Path(name)
        tree.write_to(folder / "src")
        build = _compile_in(folder, tree, main, pass_name, toolchain, options, started)
    if cache is not None:
        cache.store(key, _freeze(build))
    return build


def compile_command(
    tree: SourceTree, main: str, pass_name: str, toolchain: Toolchain, options: HipOptions
) -> list[str]:
    """The command line, relative to the folder the tree was written to."""
    arch = None if pass_name == HOST else pass_name
    words = [str(toolchain.clang), *toolchain.flags(arch), f"-std={options.standard}", options.optimize, *tree.flags]
    words += [f"-I{folder}" for folder in tree.include_folders]
    words += [word for folder in tree.system_folders for word in ("-isystem", str(folder))]
    words += [word for header in tree.forced_includes for word in ("-include", header)]
    words += ["-ferror-limit=0", "-fdiagnostics-format=sarif", "-Wno-sarif-format-unstable", "-fno-color-diagnostics"]
    if arch is None:
        words += ["--cuda-host-only", "-fsyntax-only"]
    else:
        words += [f"--offload-arch={arch}", "--cuda-device-only"]
        last = ["-S", "-o", f"../{_ASSEMBLY}"] if options.assembly else ["-c", "-o", "../out.hsaco"]
        words += ["-fsyntax-only"] if options.syntax_only else ["--no-gpu-bundle-output", *last]
    return [*words, main]


def _compile_in(
    folder: Path, tree: SourceTree, main: str, pass_name: str, toolchain: Toolchain, options: HipOptions, started: float
) -> HipBuild:
    command = compile_command(tree, main, pass_name, toolchain, options)
    header = _precompiled(tree, main, pass_name, toolchain, options)
    done = _limited_run([command[0], *header, *command[1:]], folder / "src", toolchain, options)
    if header and done.returncode and "PCH file" in done.stderr:
        forget(header)
        done = _limited_run(command, folder / "src", toolchain, options)
    diagnostics = parse_diagnostics(done.stderr, str((folder / "src").resolve()), pass_name)
    failed = done.returncode != 0
    if failed and not any(d.severity == "error" for d in diagnostics):
        if done.returncode < 0 or "PLEASE submit a bug report" in done.stderr:
            raise SandboxError(f"clang crashed on {main} for {pass_name}: {_tail(done.stderr)}")
        diagnostics.append(Diagnostic("error", _tail(done.stderr) or "compilation failed", main, 0, 0, (pass_name,)))
    text = folder / _ASSEMBLY
    assembly = text.read_text(encoding="utf-8") if not failed and text.exists() else None
    code: bytes | None = None
    kernels: tuple[KernelResources, ...] = ()
    output = folder / "out.hsaco"
    if assembly is not None:
        _assemble(text, output, pass_name, toolchain, options)
    if not failed and output.exists():
        code = output.read_bytes()
        kernels = kernel_resources(code, toolchain)
    seconds = round(time.monotonic() - started, 3)
    return HipBuild(pass_name, tuple(diagnostics), code, kernels, seconds, assembly=assembly)


def _assemble(text: Path, output: Path, arch: str, toolchain: Toolchain, options: HipOptions) -> None:
    """The code object of a compiler's own text; raises `SandboxError` when it is none."""
    command = [str(toolchain.clang), "--target=amdgcn-amd-amdhsa", f"-mcpu={arch}", str(text), "-o", str(output)]
    done = _limited_run(command, text.parent, toolchain, options)
    if done.returncode:
        raise SandboxError(f"clang cannot assemble its own code for {arch}: {_tail(done.stderr)}")


def _precompiled(tree: SourceTree, main: str, pass_name: str, toolchain: Toolchain, options: HipOptions) -> list[str]:
    """Words for HIP's runtime header as a precompiled one, where it is what `main` reads first and the build defines
    nothing that the header could look at."""
    plain = all(f.startswith("-W") or f == "-w" for f in tree.flags)
    if not plain or tree.system_folders or tree.forced_includes or not starts_with_runtime(tree.files, main):
        return []
    arch = None if pass_name == HOST else pass_name
    flags = [*toolchain.flags(arch), f"-std={options.standard}", options.optimize, *tree.flags]
    return precompiled_runtime(arch, flags, toolchain)


def _limited_run(
    command: Sequence[str], folder: Path, toolchain: Toolchain, options: HipOptions
) -> subprocess.CompletedProcess[str]:
    def limit() -> None:  # runs between fork and exec: only async-signal-safe calls
        resource.setrlimit(resource.RLIMIT_AS, (options.memory_bytes, options.memory_bytes))
        resource.setrlimit(resource.RLIMIT_FSIZE, (2**30, 2**30))

    try:
        return subprocess.run(
            command, cwd=folder, env=toolchain.environment(), capture_output=True, text=True, errors="replace",
            timeout=options.timeout_s, check=False, preexec_fn=limit,
        )  # fmt: skip
    except subprocess.TimeoutExpired as e:
        raise SandboxError(f"clang took longer than {options.timeout_s:.0f} s.") from e


def kernel_resources(code_object: bytes, toolchain: Toolchain) -> tuple[KernelResources, ...]:
    """The kernels of a code object with their resources, in the order of the metadata."""
    metadata = code_object_metadata(code_object, toolchain)
    entries: list[dict[str, Any]] = metadata.get("amdhsa.kernels") or []
    names = demangle([str(e[".name"]) for e in entries], toolchain)
    return tuple(_resources(entry, name) for entry, name in zip(entries, names, strict=True))


def code_object_metadata(code_object: bytes, toolchain: Toolchain) -> dict[str, Any]:
    """The AMDGPU metadata note (the YAML that `llvm-readelf --notes` prints)."""
    with tempfile.NamedTemporaryFile(suffix=".hsaco") as file:
        file.write(code_object)
        file.flush()
        text = _tool_output([str(toolchain.tool("llvm-readelf")), "--notes", file.name], toolchain)
    start, end = text.find("---\n"), text.rfind("...")
    loaded = yaml.load(text[start:end], FAST_LOADER) if start >= 0 else {}
    return loaded if isinstance(loaded, dict) else {}


def disassemble(code_object: bytes, toolchain: Toolchain) -> dict[str, tuple[str, ...]]:
    """Symbol -> its instructions as text, from llvm-objdump."""
    with tempfile.NamedTemporaryFile(suffix=".hsaco") as file:
        file.write(code_object)
        file.flush()
        words = [str(toolchain.tool("llvm-objdump")), "-d", "--no-show-raw-insn", "--no-leading-addr", file.name]
        text = _tool_output(words, toolchain)
    functions: dict[str, tuple[str, ...]] = {}
    current, lines = "", list[str]()
    for line in [*text.splitlines(), "<end>:"]:
        stripped = line.split("//")[0].strip()
        if stripped.endswith(">:"):
            if current:
                functions[current] = tuple(lines)
            current, lines = stripped[stripped.index("<") + 1 : -2], []
        elif stripped and current:
            lines.append(stripped)
    return functions


def demangle(symbols: Sequence[str], toolchain: Toolchain) -> list[str]:
    """C++ spellings of mangled names."""
    if not symbols:
        return []
    done = subprocess.run(
        [str(toolchain.tool("llvm-cxxfilt"))], input="\n".join(symbols) + "\n", capture_output=True, text=True,
        check=True, env=toolchain.environment(), timeout=60,
    )  # fmt: skip
    return done.stdout.splitlines()


def _tool_output(command: Sequence[str], toolchain: Toolchain) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=toolchain.environment(), timeout=120, errors="replace"
    )
    if done.returncode:
        raise SandboxError(f"{Path(command[0]).name} failed: {_tail(done.stderr)}")
    return done.stdout


def _resources(entry: dict[str, Any], name: str) -> KernelResources:
    args = tuple(KernelArg(int(a[".offset"]), int(a[".size"]), str(a[".value_kind"])) for a in entry.get(".args") or [])
    return KernelResources(
        symbol=str(entry[".name"]), name=name, sgpr_count=int(entry[".sgpr_count"]),
        vgpr_count=int(entry[".vgpr_count"]), agpr_count=int(entry.get(".agpr_count", 0)),
        sgpr_spill_count=int(entry.get(".sgpr_spill_count", 0)),
        vgpr_spill_count=int(entry.get(".vgpr_spill_count", 0)),
        scratch_bytes=int(entry[".private_segment_fixed_size"]), lds_bytes=int(entry[".group_segment_fixed_size"]),
        max_workgroup_threads=int(entry[".max_flat_workgroup_size"]), kernarg_bytes=int(entry[".kernarg_segment_size"]),
        dynamic_stack=bool(entry.get(".uses_dynamic_stack", False)), args=args,
    )  # fmt: skip


def _tail(text: str) -> str:
    lines: Iterable[str] = [line for line in text.strip().splitlines() if line.strip()]
    return " / ".join(list(lines)[-3:])[:400]


def _cache_key(tree: SourceTree, main: str, pass_name: str, toolchain: Toolchain, options: HipOptions) -> str:
    command = compile_command(tree, main, pass_name, toolchain, options)
    assembled = ["assembled"] if options.assembly else []
    text = "\0".join([str(_FORMAT), tree.digest, toolchain.digest, *command, *assembled])
    return hashlib.sha256(text.encode()).hexdigest()


def _freeze(build: HipBuild) -> dict[str, bytes]:
    record = asdict(build)
    code = record.pop("code_object")
    blobs = {"build.json": json.dumps(record).encode()}
    if code is not None:
        blobs["code.hsaco"] = code
    return blobs


def _thaw(blobs: Mapping[str, bytes]) -> HipBuild | None:
    try:
        record: dict[str, Any] = json.loads(blobs["build.json"])
    except (KeyError, ValueError):
        return None
    diagnostics = tuple(
        Diagnostic(**{**d, "passes": tuple(d["passes"]), "notes": tuple(Note(**n) for n in d["notes"])})
        for d in record["diagnostics"]
    )
    kernels = tuple(
        KernelResources(**{**k, "args": tuple(KernelArg(**a) for a in k["args"])}) for k in record["kernels"]
    )
    return HipBuild(
        record["pass_name"], diagnostics, blobs.get("code.hsaco"), kernels, record["seconds"], cached=True,
        assembly=record["assembly"],
    )  # fmt: skip
