"""Compile a Triton launch for a target, without a GPU and without letting the compiler end the calling process.

Runs inside the child that holds the user's live `JITFunction`. The specialisation (types, constants, divisibility,
ones) is computed by Triton's own code as `JITFunction.run` would; the compilation happens in a forked process, because
LLVM may call `exit` with no traceback, crash or hang. Importing this module imports neither torch nor triton.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from sandbox.compile_cache import CompileCache
from sandbox.target import Target

DEFAULT_TIMEOUT_S = 180.0
_FORMAT = 4
"""Raise when the meaning of a cached entry changes."""

ErrorKind = Literal[
    "frontend", "option", "argument", "lowering", "compiler-exit", "compiler-crash", "timeout", "internal"
]
_OWN_LDS = re.compile(r'\.local_scatter\b|elementwise_inline_asm "[^"]*ds_')
"""What a Triton source can address LDS with itself: a scattering store, assembly."""


@dataclass(frozen=True, slots=True)
class CompileError:
    """Why a launch does not compile.

    `kind`: `frontend` (Triton rejects the source), `option` (a launch option the target does not know), `argument` (a
    value Triton cannot take), `lowering` (a pass failed), `compiler-exit` / `compiler-crash` (LLVM or ptxas ended the
    process), `timeout`, `internal` (any other exception). `line` is in `file`; `source_line` is that statement in full.
    """

    kind: ErrorKind
    message: str
    kernel: str = ""
    file: str | None = None
    line: int | None = None
    source_line: str | None = None
    stage: str | None = None
    """The last intermediate form that was reached: `ttir`, `ttgir`, `llir`, `amdgcn`, ..."""
    log: str = ""
    """Tail of what the compiler wrote to stderr."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Compiled:
    """A launch compiled for `arch`: the code object and every text the compiler produced on the way.

    `metadata` is Triton's own (`shared` LDS bytes, `num_warps`, `warp_size`, `global_scratch_size`, ...). `signature`
    maps each parameter to its type after specialisation (`constexpr` where the value went into the code), in parameter
    order: these are the kernel arguments, followed by Triton's scratch pointers.
    """

    kernel: str
    """Entry symbol in the code object."""
    arch: str
    code: bytes
    """The hsaco or cubin."""
    asm: str
    """AMDGCN or PTX text."""
    ttir: str
    ttgir: str
    llir: str
    metadata: Mapping[str, Any]
    signature: Mapping[str, str]
    constants: Mapping[str, str] = field(default_factory=dict)
    """Parameter path to the `repr` of its compile-time value."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    from_cache: bool = False

    @property
    def lds_bytes(self) -> int:
        return int(self.metadata.get("shared") or 0)

    @property
    def num_warps(self) -> int:
        return int(self.metadata.get("num_warps") or 1)

    @property
    def warp_size(self) -> int:
        return int(self.metadata.get("warp_size") or self.metadata.get("target", {}).get("warp_size") or 64)

    @property
    def threads_per_workgroup(self) -> int:
        return self.num_warps * self.warp_size

    @property
    def copied_lanes(self) -> bool:
        """Whether LDS is addressed by the compiler's layouts alone: lanes that store to one address at once then hold
        copies of one element."""
        return _OWN_LDS.search(self.ttgir) is None


@dataclass(frozen=True, slots=True)
class Specialization:
    """What Triton's JIT makes of one launch's arguments: the input of its compiler. Holds live Triton objects."""

    fn: Any
    signature: Mapping[str, Any]
    constants: Mapping[Any, Any]
    attributes: Mapping[Any, Any]
    options: Any
    """The backend's parsed options object."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Every parameter's value at the launch, defaults included; empty for a specialisation without values."""


def gpu_target(target: Target) -> Any:
    """Triton's name of the target: `hip:gfx950` with wavefronts of 64, `cuda:90` with warps of 32."""
    from triton.backends.compiler import GPUTarget

    if target.is_amd:
        return GPUTarget("hip", target.arch, target.wavefront_size)
    return GPUTarget("cuda", int(target.arch.removeprefix("sm_")), target.wavefront_size)


def specialize(fn: Any, args: Sequence[Any], kwargs: Mapping[str, Any], target: Target) -> Specialization:
    """The specialisation that `fn[grid](*args, **kwargs)` would be compiled with on `target`.

    `fn` is a `triton.JITFunction`; autotuners and heuristics are resolved by the caller. Raises what Triton raises:
    TypeError for a missing or unknown argument, KeyError or ValueError for an option the backend does not have.
    """
    from triton import knobs
    from triton.compiler import make_backend
    from triton.runtime.jit import create_function_from_signature

    backend = make_backend(gpu_target(target))
    options = dict(kwargs)
    options["debug"] = options.get("debug", fn.debug) or knobs.runtime.debug
    if hasattr(knobs.compilation, "instrumentation_mode"):
        options["instrumentation_mode"] = knobs.compilation.instrumentation_mode
    for reserved in ("grid", "warmup"):
        options.pop(reserved, None)
    binder = create_function_from_signature(fn.signature, fn.params, backend)
    bound, specialization, extra = binder(*args, **options)
    parsed, signature, constants, attributes = fn._pack_args(backend, options, bound, specialization, extra)
    return Specialization(fn, signature, constants, attributes, parsed, bound)


def specialize_signature(
    fn: Any,
    signature: Mapping[str, str],
    constants: Mapping[str, Any],
    options: Mapping[str, Any],
    target: Target,
    *,
    aligned: bool = True,
) -> Specialization:
    """A specialisation without values: types by parameter name (`*fp16`, `i32`), values only for constexprs.

    `aligned` gives every pointer the 16-byte alignment and, on AMD, the 2 GiB range that ordinary tensors have.
    """
    from triton.compiler import make_backend

    backend = make_backend(gpu_target(target))
    full = {p.name: "constexpr" if p.name in constants else signature[p.name] for p in fn.params}
    attributes: dict[Any, Any] = {}
    if aligned:
        tag = "DS" if target.is_amd else "D"
        attributes = {(p.num,): backend.parse_attr(tag) for p in fn.params if full[p.name].startswith("*")}
    keyed = {(p.num,): constants[p.name] for p in fn.params if p.name in constants}
    parsed = backend.parse_options({"debug": False, **options})
    for name in options:
        if name not in parsed.__dict__:
            raise KeyError(f"Keyword argument {name} was specified but unrecognised")
    return Specialization(fn, full, keyed, attributes, parsed)


def compile_launch(
    fn: Any,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    target: Target,
    *,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    cache: CompileCache | None = None,
) -> Compiled | CompileError:
    """Compile `fn[grid](*args, **kwargs)` for `target` as its first launch there would.

    `kwargs` are the launch's own, options such as `num_warps` included. Tensors are only asked for dtype, alignment and
    storage size. A failure of any kind is returned, not raised.
    """
    return _compile(fn, lambda: specialize(fn, args, kwargs, target), target, timeout_s, cache)


def compile_signature(
    fn: Any,
    signature: Mapping[str, str],
    constants: Mapping[str, Any],
    options: Mapping[str, Any],
    target: Target,
    *,
    timeout_s: float = DEFAULT_TIMEOUT_S,
    cache: CompileCache | None = None,
) -> Compiled | CompileError:
    """Compile `fn` from types alone (a file without a harness); see `specialize_signature`."""
    return _compile(
        fn, lambda: specialize_signature(fn, signature, constants, options, target), target, timeout_s, cache
    )


def _compile(
    fn: Any,
    specializer: Callable[[], Specialization],
    target: Target,
    timeout_s: float,
    cache: CompileCache | None,
) -> Compiled | CompileError:
    from sandbox.compile_errors import from_exception
    from sandbox.compile_worker import compile_in_fork

    try:
        special = specializer()
        key = cache_key(special, target)
    except Exception as e:  # noqa: BLE001 - whatever Triton raises before its compiler runs is the launch's outcome
        return from_exception(e, fn)
    if cache is not None and (blobs := cache.load(key)) is not None:
        hit = _unpack(blobs, special.fn)
        if hit is not None:
            return hit
    result = compile_in_fork(special, target, timeout_s)
    if cache is not None and not (isinstance(result, CompileError) and result.kind in ("timeout", "compiler-crash")):
        cache.store(key, pack(result))
    return result


def pack(result: Compiled | CompileError) -> dict[str, bytes]:
    """A result as named blobs: `result.json` and, when it compiled, the code object and texts. Inverse: `unpack`."""
    if isinstance(result, CompileError):
        return {"result.json": json.dumps({"error": result.to_json()}).encode()}
    data = {
        "kernel": result.kernel,
        "arch": result.arch,
        "metadata": dict(result.metadata),
        "signature": dict(result.signature),
        "constants": dict(result.constants),
        "attributes": dict(result.attributes),
    }
    blobs = {name: getattr(result, name).encode() for name in ("asm", "ttir", "ttgir", "llir")}
    return {"result.json": json.dumps({"compiled": data}).encode(), "code": result.code, **blobs}


def unpack(blobs: Mapping[str, bytes]) -> Compiled | CompileError:
    """Inverse of `pack`; raises ValueError or KeyError for blobs that are not one."""
    data = json.loads(blobs["result.json"])
    if "error" in data:
        return CompileError(**data["error"])
    fields: dict[str, Any] = {name: blobs[name].decode() for name in ("asm", "ttir", "ttgir", "llir")}
    return Compiled(**data["compiled"], code=blobs["code"], **fields)


def _unpack(blobs: Mapping[str, bytes], fn: Any) -> Compiled | CompileError | None:
    try:
        result = unpack(blobs)
    except (ValueError, KeyError, TypeError):
        return None
    if isinstance(result, Compiled):
        return replace(result, from_cache=True)
    here = fn.fn.__code__.co_filename
    if result.file is not None and Path(result.file).name == Path(here).name:
        return replace(result, file=here)  # the same source may lie in another folder now
    return result


def cache_key(special: Specialization, target: Target) -> str:
    """SHA-256 over everything that decides the compiler's result; raises what Triton raises for globals it refuses."""
    import triton

    environment: Mapping[str, Any] = {}
    try:
        from triton.compiler.compiler import get_cache_invalidating_env_vars

        environment = get_cache_invalidating_env_vars()
    except ImportError:
        pass
    parts = (
        f"{_FORMAT}",
        triton.__version__,
        target.arch,
        special.fn.__name__,
        Path(special.fn.fn.__code__.co_filename).name,
        special.fn.cache_key,
        str(list(special.signature.items())),
        str([(k, _identity(v)) for k, v in special.constants.items()]),
        str(sorted(special.attributes.items())),
        special.options.hash(),
        str(sorted(environment.items())),
    )
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _identity(value: Any) -> str:
    """Text that differs when a constexpr's meaning differs: a JIT function stands for its source, not its address."""
    key = getattr(value, "cache_key", None)
    return str(key) if key is not None else repr(value)
