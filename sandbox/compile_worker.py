"""The forked grandchild that runs Triton's compiler, and the wait for it.

It is expendable: LLVM may exit, abort or hang in it. What it writes into its scratch folder is the result; what is
missing there is told from its exit status and its stderr.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sandbox.compile_errors import from_exception, from_exit
from sandbox.target import Target

if TYPE_CHECKING:
    from sandbox.compiling import Compiled, CompileError, Specialization

_LOG = "log"
_CACHE = "cache"
_OUT = "out"


Job = Callable[["Specialization", Target], dict[str, bytes]]
"""What a grandchild does; its blobs hold a `result.json`."""


def compile_in_fork(special: Specialization, target: Target, timeout_s: float) -> Compiled | CompileError:
    """Compile in a process of its own, ended after `timeout_s` seconds."""
    from sandbox.compiling import unpack

    blobs = _in_fork(_compile, special, target, timeout_s)
    return unpack(blobs) if isinstance(blobs, dict) else blobs


def ttir_in_fork(special: Specialization, target: Target, timeout_s: float) -> str | CompileError:
    """Triton IR of the kernel, functions inlined and descriptors turned into pointers: what the interpreter runs."""
    from sandbox.compiling import unpack

    blobs = _in_fork(_front_end, special, target, timeout_s)
    if isinstance(blobs, dict) and "ttir" in blobs:
        return blobs["ttir"].decode()
    failure: Any = unpack(blobs) if isinstance(blobs, dict) else blobs
    return cast("CompileError", failure)


def _in_fork(job: Job, special: Specialization, target: Target, timeout_s: float) -> dict[str, bytes] | CompileError:
    with tempfile.TemporaryDirectory(prefix="wavesmith-compile-") as name:
        folder = Path(name)
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _grandchild(job, special, target, folder)
        status = _wait(pid, timeout_s)
        log = _read(folder / _LOG)
        out = folder / _OUT
        if status is not None and (out / "result.json").is_file():
            return {path.name: path.read_bytes() for path in out.iterdir()}
        return from_exit(special.fn, status, log, _texts(folder / _CACHE), timeout_s)


def _wait(pid: int, timeout_s: float) -> int | None:
    """The wait status of `pid`, or None when it had to be killed."""
    handle = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(timeout_s * 1000):
            _kill_group(pid)
            os.waitpid(pid, 0)
            return None
        return os.waitpid(pid, 0)[1]
    finally:
        os.close(handle)


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _grandchild(job: Job, special: Specialization, target: Target, folder: Path) -> None:
    """Never returns. Exit status 0 means that the result folder is complete."""
    status = 70
    try:
        os.setpgid(0, 0)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        log = os.open(folder / _LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (1, 2):
            os.dup2(log, stream)
        _write(folder / _OUT, _answer(job, special, target, folder))
        status = 0
    finally:
        os._exit(status)


def _answer(job: Job, special: Specialization, target: Target, folder: Path) -> dict[str, bytes]:
    from triton import knobs
    from triton.runtime.driver import driver

    from sandbox.compiling import gpu_target, pack

    knobs.cache.dir = str(folder / _CACHE)
    knobs.compilation.listener = None
    driver.set_active(_Driver(gpu_target(target)))
    try:
        return job(special, target)
    except Exception as e:  # noqa: BLE001 - the top of this worker: any exception of the compiler is its answer
        sys.stdout.flush()
        sys.stderr.flush()
        return pack(from_exception(e, special.fn, log=_read(folder / _LOG), texts=_texts(folder / _CACHE)))


def _compile(special: Specialization, target: Target) -> dict[str, bytes]:
    import triton

    from sandbox.compiling import gpu_target, pack

    source = _source_class(special.fn)(special.fn, special.signature, special.constants, special.attributes)
    kernel = triton.compile(source, target=gpu_target(target), options=special.options.__dict__)
    return pack(_compiled(special, target, kernel))


def _front_end(special: Specialization, target: Target) -> dict[str, bytes]:
    from triton._C.libtriton import ir, passes
    from triton.compiler import make_backend

    from sandbox.compiling import gpu_target

    gpu = gpu_target(target)
    backend = make_backend(gpu)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    source = _source_class(special.fn)(special.fn, special.signature, special.constants, special.attributes)
    functions = backend.get_codegen_implementation(special.options)
    module = source.make_ir(gpu, special.options, functions, backend.get_module_map(), context)
    manager = ir.pass_manager(module.context)
    passes.common.add_inliner(manager)
    for name in ("add_rewrite_tensor_pointer", "add_rewrite_tensor_descriptor_to_pointer"):
        if add := getattr(passes.ttir, name, None):  # Triton 3.9 has no block pointers left to rewrite
            add(manager)
    passes.common.add_canonicalizer(manager)
    passes.common.add_cse(manager)
    passes.common.add_symbol_dce(manager)
    manager.run(module, "interpreter")
    return {"result.json": b"{}", "ttir": str(module).encode()}


def _source_class(fn: Any) -> Any:
    if getattr(fn, "is_gluon", lambda: False)():
        from triton.experimental.gluon._runtime import GluonASTSource

        return GluonASTSource
    from triton.compiler import ASTSource

    return ASTSource


def _compiled(special: Specialization, target: Target, kernel: Any) -> Compiled:
    from sandbox.compiling import Compiled

    binary, asm = ("hsaco", "amdgcn") if target.is_amd else ("cubin", "ptx")
    metadata = json.loads(json.dumps(kernel.metadata._asdict(), default=_plain))
    return Compiled(
        kernel=kernel.metadata.name,
        arch=target.arch,
        code=kernel.asm[binary],
        asm=kernel.asm[asm],
        ttir=kernel.asm.get("ttir", ""),
        ttgir=kernel.asm.get("ttgir", ""),
        llir=kernel.asm.get("llir", ""),
        metadata=metadata,
        signature={name: str(kind) for name, kind in special.signature.items()},
        constants={_path(special.fn, path): repr(value) for path, value in special.constants.items()},
        attributes={_path(special.fn, path): value for path, value in special.attributes.items()},
    )


def _path(fn: Any, path: tuple[int, ...]) -> str:
    """`(3,)` as `BLOCK`, `(2, 1)` (inside a tuple argument) as `sizes.1`."""
    return ".".join([fn.arg_names[path[0]], *map(str, path[1:])])


def _plain(value: Any) -> Any:
    return getattr(value, "__dict__", None) or str(value)


def _write(out: Path, blobs: dict[str, bytes]) -> None:
    partial = out.with_suffix(".partial")
    partial.mkdir()
    for name, data in blobs.items():
        (partial / name).write_bytes(data)
    partial.rename(out)


def _texts(cache: Path) -> dict[str, str]:
    """The intermediate forms that were reached, by stage, from the grandchild's private Triton cache."""
    stages = ("source", "ttir", "ttgir", "llir", "amdgcn", "ptx")
    found = {path.suffix[1:]: path for path in cache.glob("*/*") if path.suffix[1:] in stages}
    return {stage: _read(found[stage]) for stage in stages if stage in found}


def _read(path: Path) -> str:
    return path.read_text(errors="replace") if path.is_file() else ""


class _Driver:
    """Answers what Triton's front end asks of the active driver: which target it compiles for."""

    def __init__(self, target: Any) -> None:
        self._target = target

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0
