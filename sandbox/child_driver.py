"""Child side: the Triton driver where there is no GPU. It answers as the target would and launches nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from sandbox.child_cuda import EVENT_MS, device_properties
from sandbox.compiling import gpu_target
from sandbox.target import Target


class StandInDriver:
    """What `triton.runtime.driver.active` is during a run without a GPU."""

    def __init__(self, target: Target, benchmark: Callable[..., Any]) -> None:
        self._target = gpu_target(target)
        self._benchmark = benchmark
        self.utils = _Utils(target)
        self.launcher_cls = _no_launcher
        self.get_device_capability = torch.cuda.get_device_capability

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> Any:
        return self._target

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: Any = None) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_benchmarker(self) -> Callable[..., Any]:
        return self._benchmark

    def get_empty_cache_for_benchmark(self) -> Any:
        return torch.empty(1, dtype=torch.int)

    def clear_cache(self, cache: Any) -> None:
        pass

    def map_python_to_cpp_type(self, ty: str) -> str:
        return "void*" if ty.startswith("*") else ty

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        return args


class _Utils:
    """`driver.active.utils`."""

    def __init__(self, target: Target) -> None:
        board, properties = target.board, device_properties(target)
        clock_khz = int(board.max_clock_ghz * 10**6)
        self._properties = {
            "max_shared_mem": target.lds_bytes_per_workgroup,
            "max_num_regs": properties.regs_per_multiprocessor,
            "multiprocessor_count": board.compute_units,
            "warpSize": target.wavefront_size,
            "arch": target.arch,
            "sm_clock_rate": clock_khz,
            "mem_clock_rate": clock_khz,
            "mem_bus_width": 8192,
        }

    def get_device_properties(self, device: int = 0) -> dict[str, Any]:
        return dict(self._properties)

    def load_binary(self, *args: Any) -> Any:
        raise RuntimeError("a code object cannot be loaded without a GPU")


def _no_launcher(*args: Any) -> Any:
    raise RuntimeError("a compiled kernel cannot be launched directly without a GPU")


def run_once(
    fn: Callable[[], Any],
    *args: Any,
    quantiles: Any = None,
    return_mode: str = "mean",
    grad_to_none: Any = None,
    **kwargs: Any,
) -> Any:
    """Stands for `triton.testing.do_bench`: runs `fn` once and answers the token `EVENT_MS` in the shape asked for."""
    for tensor in grad_to_none or ():
        tensor.grad = None
    fn()
    if quantiles is not None:
        return [EVENT_MS] * len(quantiles) if len(quantiles) != 1 else EVENT_MS
    return [EVENT_MS] if return_mode == "all" else EVENT_MS
