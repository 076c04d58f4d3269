"""Child side: `torch.cuda` and its neighbours answering as the chosen board would, where there is no GPU.

Files choose tile sizes and `num_warps` by these answers, so they come from the target's data. What cannot be honoured
(graph capture) is refused in words; what only costs time on a GPU (streams, events, synchronisation) does nothing.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch

from sandbox.child_torch import DeviceMode, device_kind, with_mode
from sandbox.target import Target

EVENT_MS = 1.0
"""What every timing answers without a GPU: a token, noted in the record, never reported as a time."""

_TYPES = ("Float", "Half", "BFloat16", "Double", "Long", "Int", "Short", "Char", "Byte", "Bool")


def capability(target: Target) -> tuple[int, int]:
    """`torch.cuda.get_device_capability`: (9, 4) for gfx942, (9, 5) for gfx950, (9, 0) for sm_90 and gfx90a."""
    digits = target.arch.removeprefix("gfx").removeprefix("sm_")
    if target.is_amd:
        return int(digits[:-2]), int(digits[-2], 16)
    return int(digits[:-1]), int(digits[-1])


def device_properties(target: Target) -> types.SimpleNamespace:
    """The fields of `torch.cuda.get_device_properties` that code reads."""
    board = target.board
    major, minor = capability(target)
    return types.SimpleNamespace(
        name=board.device_name,
        major=major,
        minor=minor,
        total_memory=int(board.hbm_gb * 10**9),
        multi_processor_count=board.compute_units,
        gcnArchName=f"{target.arch}:sramecc+:xnack-" if target.is_amd else "",
        warp_size=target.wavefront_size,
        max_threads_per_multi_processor=target.simds_per_cu * target.max_waves_per_simd * target.wavefront_size,
        max_threads_per_block=target.max_threads_per_workgroup,
        shared_memory_per_block=target.lds_bytes_per_workgroup if target.is_amd else 48 * 1024,
        shared_memory_per_block_optin=target.lds_bytes_per_workgroup,
        shared_memory_per_multiprocessor=target.lds_bytes_per_cu,
        regs_per_multiprocessor=target.vgprs_per_simd_lane * target.simds_per_cu * target.wavefront_size,
        L2_cache_size=board.l2_bytes_per_xcd,
        clock_rate=int(board.max_clock_ghz * 10**6),
        is_integrated=False,
        is_multi_gpu_board=False,
    )


class Stream:
    """A stream on which everything has already happened."""

    cuda_stream = 0
    device = torch.device("cuda", 0)
    stream_id = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *args: Any) -> None:
        pass

    def query(self) -> bool:
        return True

    def record_event(self, event: Any = None) -> Any:
        return event if event is not None else Event()

    def synchronize(self, *args: Any) -> None:
        pass

    wait_event = wait_stream = synchronize


class Event:
    """An event that has already happened; the time between two is the token `EVENT_MS`."""

    cuda_event = 0
    note: Callable[[str], None] = staticmethod(lambda text: None)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        pass

    def query(self) -> bool:
        return True

    def elapsed_time(self, other: Any) -> float:
        Event.note("timings read from events are a fixed token: there is no GPU")
        return EVENT_MS

    def record(self, *args: Any) -> None:
        pass

    wait = synchronize = record


class DeviceGenerator(torch._C.Generator):  # type: ignore[misc]
    """`torch.cuda.default_generators[0]`: its state is 16 bytes, seed and offset, as files that seed Philox expect."""

    def __new__(cls) -> DeviceGenerator:
        return super().__new__(cls, "cpu")  # type: ignore[no-any-return]

    def __init__(self) -> None:
        self._offset = 0

    def get_state(self) -> Any:
        state = torch.tensor([self.initial_seed(), self._offset], dtype=torch.int64)
        return state.view(torch.uint8)

    def set_state(self, state: Any) -> Any:
        seed, self._offset = (int(x) for x in state.view(torch.int64)[:2])
        if seed != self.initial_seed():
            self.manual_seed(seed)
        return self

    def get_offset(self) -> int:
        return self._offset

    def set_offset(self, offset: int) -> Any:
        self._offset = int(offset)
        return self


class _Context:
    """`torch.cuda.device(0)`, `torch.cuda.stream(s)`: enters and leaves, and works as a decorator."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.idx = 0
        self.prev_idx = 0

    def __enter__(self) -> _Context:
        return self

    def __exit__(self, *args: Any) -> None:
        pass

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        return function


def _refuse_graph(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("CUDA graphs cannot be captured without a GPU; run the harness without graph capture")


class _Graph:
    """`torch.cuda.CUDAGraph`: a name that can be mentioned but not made."""

    __new__ = _refuse_graph


def install(target: Target, mode: DeviceMode, note: Callable[[str], None], seed_offset: int) -> None:
    """Put the stand-ins in place. `seed_offset` is added to every seed the harness sets (0: as written)."""
    Event.note = staticmethod(note)
    _versions(target)
    _functions(target)
    _classes()
    _generators(seed_offset)
    _autocast()
    _compilers(mode, note)


def _versions(target: Target) -> None:
    torch.version.hip = "7.1.25424" if target.is_amd else None
    torch.version.cuda = None if target.is_amd else "12.8"
    torch._C._cuda_getCurrentRawStream = lambda device: 0
    torch.backends.cuda.is_built = lambda: True
    # What torch.compile generates allocates with this.
    torch._C._dynamo.guards._empty_strided_cuda = lambda size, stride, dtype: torch.empty_strided(
        size, stride, dtype=dtype, device="cuda"
    )


def _functions(target: Target) -> None:
    properties = device_properties(target)
    memory = properties.total_memory
    answers: dict[str, Any] = {
        "is_available": True, "is_initialized": True, "device_count": 1, "current_device": 0,
        "get_device_name": properties.name, "get_device_capability": capability(target),
        "get_device_properties": properties, "get_arch_list": [target.arch], "is_bf16_supported": True,
        "memory_allocated": 0, "max_memory_allocated": 0, "memory_reserved": 0, "max_memory_reserved": 0,
        "mem_get_info": (memory, memory), "is_current_stream_capturing": False, "memory_stats": {},
        "can_device_access_peer": False, "is_tf32_supported": True, "utilization": 0,
    }  # fmt: skip
    for name, answer in answers.items():
        setattr(torch.cuda, name, functools.partial(_answer, answer))
    for name in (
        "synchronize", "set_device", "empty_cache", "init", "_lazy_init", "reset_peak_memory_stats", "ipc_collect",
        "reset_max_memory_allocated", "set_stream", "_sleep", "set_per_process_memory_fraction", "_check_capability",
        "reset_accumulated_memory_stats",
    ):  # fmt: skip
        setattr(torch.cuda, name, functools.partial(_answer, None))
    for name in ("range_push", "range_pop", "mark"):
        setattr(torch.cuda.nvtx, name, functools.partial(_answer, None))
    torch.cuda.nvtx.range = _Context
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        accelerator.is_available = functools.partial(_answer, True)
        accelerator.device_count = functools.partial(_answer, 1)
        accelerator.current_accelerator = functools.partial(_answer, torch.device("cuda"))
        accelerator.current_device_index = accelerator.current_device_idx = functools.partial(_answer, 0)
        accelerator.synchronize = accelerator.set_device_index = functools.partial(_answer, None)


def _answer(value: Any, *args: Any, **kwargs: Any) -> Any:
    return value


def _classes() -> None:
    cuda = torch.cuda
    cuda.Stream = cuda.ExternalStream = Stream
    cuda.Event = Event
    cuda.device = cuda.device_of = cuda.stream = cuda.StreamContext = cuda._DeviceGuard = _Context
    stream = Stream()
    cuda.current_stream = cuda.default_stream = functools.partial(_answer, stream)
    cuda.CUDAGraph = _Graph
    cuda.graph = cuda.make_graphed_callables = cuda.graph_pool_handle = _refuse_graph
    for name in _TYPES:
        setattr(cuda, f"{name}Tensor", getattr(torch, f"{name}Tensor"))
    default_type = torch.set_default_tensor_type

    def set_default_tensor_type(kind: Any) -> None:
        default_type(kind.replace("torch.cuda.", "torch.") if isinstance(kind, str) else kind)

    torch.set_default_tensor_type = set_default_tensor_type


def _generators(seed_offset: int) -> None:
    original = torch.Generator

    class Generator(original):  # type: ignore[misc, valid-type]
        """A generator asked for on `cuda` is a host one."""

        def __new__(cls, device: Any = "cpu") -> Any:
            return original.__new__(cls, "cpu" if device_kind(device) == "cuda" else device)

        def manual_seed(self, seed: int) -> Any:
            return super().manual_seed(seed + seed_offset)

    torch.Generator = Generator
    default = torch.default_generator

    def seeding() -> Callable[[int], Any]:
        """A function of its own for every name: torch.compile keeps rules by function and takes each only once."""

        def manual_seed(seed: int) -> Any:
            return default.manual_seed(int(seed) + seed_offset)

        return manual_seed

    for module, name in ((torch, "manual_seed"), (torch.cuda, "manual_seed"), (torch.cuda, "manual_seed_all")):
        seed = seeding()
        setattr(module, name, seed)
        setattr(module.random, name, seed)
    torch.cuda.seed, torch.cuda.seed_all = (lambda: torch.seed()), (lambda: torch.seed())
    torch.cuda.initial_seed = lambda: torch.initial_seed()
    torch.cuda.get_rng_state = lambda device=None: torch.get_rng_state()
    torch.cuda.set_rng_state = lambda state, device=None: torch.set_rng_state(state)
    torch.cuda.get_rng_state_all = lambda: [torch.get_rng_state()]
    torch.cuda.set_rng_state_all = lambda states: torch.set_rng_state(states[0])
    torch.cuda.default_generators = (DeviceGenerator(),)


def shift_seeds(offset: int) -> None:
    """On a real GPU: add `offset` to the seeds a harness sets (0: leave torch as it is)."""
    if offset == 0:
        return
    for module, name in ((torch, "manual_seed"), (torch.cuda, "manual_seed"), (torch.cuda, "manual_seed_all")):
        setattr(module, name, functools.partial(_shifted, getattr(module, name), offset))


def _shifted(function: Callable[[int], Any], offset: int, seed: int) -> Any:
    return function(int(seed) + offset)


def _autocast() -> None:
    enter = torch.autocast.__init__

    def init(self: Any, device_type: Any = "cuda", dtype: Any = None, *args: Any, **kwargs: Any) -> None:
        if device_kind(device_type) == "cuda":
            device_type, dtype = "cpu", dtype if dtype is not None else torch.float16
        enter(self, device_type, dtype, *args, **kwargs)

    torch.autocast.__init__ = init
    for name in ("is_autocast_enabled", "get_autocast_dtype"):
        original = getattr(torch, name)
        setattr(torch, name, functools.partial(_on_cpu, original))


def _on_cpu(function: Callable[..., Any], device_type: Any = "cuda") -> Any:
    return function("cpu" if device_kind(device_type) == "cuda" else device_type)


def _compilers(mode: DeviceMode, note: Callable[[str], None]) -> None:
    """Decorators that would compile the user's host code run it as it is; custom operators keep their bodies."""

    def identity(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        note("torch.compile and torch.jit.script leave functions as they are: there is no GPU")
        return model if model is not None else (lambda function: function)

    torch.compile = identity
    script = torch.jit.script

    def jit_script(obj: Any, *args: Any, **kwargs: Any) -> Any:
        return identity(obj) if isinstance(obj, types.FunctionType) else script(obj, *args, **kwargs)

    torch.jit.script = jit_script
    for name in ("custom_op", "triton_op"):
        if hasattr(torch.library, name):
            setattr(torch.library, name, _operator(mode, getattr(torch.library, name)))
    frombuffer = torch.from_numpy

    def from_numpy(array: Any) -> Any:
        tensor = frombuffer(array)
        tensor.__dict__["_wavesmith_host"] = True
        return tensor

    torch.from_numpy = from_numpy


def _operator(mode: DeviceMode, register: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.library.custom_op`: registered for the CPU as well, its body run with the mode on."""

    def registering(name: str, fn: Any = None, /, **kwargs: Any) -> Any:
        kwargs.pop("device_types", None)
        if fn is not None:
            return register(name, with_mode(mode, fn), **kwargs)
        return lambda function: register(name, with_mode(mode, function), **kwargs)

    return registering
