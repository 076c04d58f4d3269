"""Child side: the comparisons a harness makes, kept as evidence: what was expected, how closely, and of which output.

The expected tensor is the harness's own reference, an oracle the kernel had no part in. While a launch before it has
unknown outputs a comparison says nothing: it is recorded as such and does not stop the harness.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch

from sandbox.child_entries import EntryTracker, user_frames
from sandbox.child_torch import DeviceMode
from sandbox.child_values import Encoder, raw
from sandbox.frames import FrameWriter

_MAX_MATCH_ELEMENTS = 1 << 24
_MAX_CHECKS = 1000


def _ask_for_dtensors_only_where_they_are() -> None:
    """torch 2.13's comparisons import `torch.distributed.tensor`, and sympy with it, to ask for its type.

    That is as dear as importing torch, and no tensor has the type before the harness has imported it itself.
    """
    comparison = sys.modules["torch.testing._comparison"]
    original = getattr(comparison, "_unwrap_dtensor_for_comparison", None)

    def unwrapped(actual: Any, expected: Any) -> Any:
        known = "torch.distributed.tensor" in sys.modules
        return original(actual, expected) if original is not None and known else (actual, expected)

    if original is not None:
        vars(comparison)[original.__name__] = functools.wraps(original)(unwrapped)


class CheckRecorder:
    """Hooks `torch.testing.assert_close`, `torch.allclose`, `torch.equal`, Triton's and numpy's counterparts."""

    def __init__(self, tracker: EntryTracker, encoder: Encoder, channel: FrameWriter) -> None:
        self.tracker = tracker
        self.encoder = encoder
        self.channel = channel
        self.count = 0

    def install(self, mode: DeviceMode) -> None:
        import triton.testing

        mode.on_compare = self.boolean
        _ask_for_dtensors_only_where_they_are()
        torch.testing.assert_close = self._asserting("torch.testing.assert_close", torch.testing.assert_close)
        torch.testing.assert_allclose = torch.testing.assert_close
        triton.testing.assert_close = self._asserting("triton.testing.assert_close", triton.testing.assert_close)
        try:
            import numpy as np
        except ImportError:
            return
        for name in ("assert_allclose", "assert_array_equal", "assert_array_almost_equal"):
            original = getattr(np.testing, name)
            setattr(np.testing, name, self._asserting(f"numpy.testing.{name}", original))
        np.allclose = self._boolean_function("numpy.allclose", np.allclose)

    def boolean(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        """`torch.allclose` and the like: their answer, or True while outputs are unknown."""
        passed = bool(func(*args, **kwargs))
        self._record(name, args, kwargs, passed)
        return True if self.tracker.tainted else passed

    def _boolean_function(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        return functools.wraps(original)(lambda *args, **kwargs: self.boolean(name, original, args, kwargs))

    def _asserting(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            try:
                with raw():
                    answer = original(*args, **kwargs)
            except AssertionError:
                self._record(name, args, kwargs, False)
                if self.tracker.tainted:
                    return None
                raise
            self._record(name, args, kwargs, True)
            return answer

        return wrapped

    def _record(self, name: str, args: Any, kwargs: Any, passed: bool) -> None:
        values = [*args, *(kwargs[k] for k in ("actual", "input", "x", "expected", "other", "y") if k in kwargs)]
        if len(values) < 2 or self.count >= _MAX_CHECKS:
            return
        line, _ = user_frames(self.tracker.files)
        with self.tracker.paused(), raw():
            for actual, expected in _pairs(values[0], values[1]):
                self.count += 1
                self.channel.send("check", self._check(name, actual, expected, args, kwargs, passed, line))

    def _check(
        self, name: str, actual: Any, expected: Any, args: Any, kwargs: Any, passed: bool, line: int | None
    ) -> dict[str, Any]:
        match = self._match(actual)
        if match is None and (other := self._match(expected)) is not None:
            actual, expected, match = expected, actual, other
        rtol, atol = _tolerances(name, actual, expected, args, kwargs)
        return {
            "call": name,
            "passed": passed,
            "known": not self.tracker.tainted,
            "rtol": rtol,
            "atol": atol,
            "max_abs_error": _max_abs_error(actual, expected),
            "line": line,
            "expected": self.encoder.store.record(expected),
            "entry": match[0] if match else None,
            "output": match[1] if match else None,
            "actual_dtype": str(actual.dtype).removeprefix("torch."),
        }

    def _match(self, actual: Any) -> tuple[int, int | None] | None:
        """The call whose output this is: the same memory, or the same values in another dtype or shape."""
        if actual.numel() > _MAX_MATCH_ELEMENTS or actual.numel() == 0:
            return None
        for number, position, output in reversed(self.tracker.outputs):
            if output.numel() == actual.numel() and _same(output.detach(), actual.detach()):
                return number, position
        return None


def _same(output: Any, actual: Any) -> bool:
    if output.data_ptr() == actual.data_ptr() and output.dtype == actual.dtype:
        return True
    if output.is_complex() or actual.is_complex():
        return False
    a, b = output.reshape(-1).to(torch.float64), actual.reshape(-1).to(torch.float64)
    return bool(((a == b) | (a.isnan() & b.isnan())).all())


def _pairs(actual: Any, expected: Any) -> list[tuple[Any, Any]]:
    left, right = _tensors(actual), _tensors(expected)
    return list(zip(left, right, strict=False))


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if type(value).__module__ == "numpy" and hasattr(value, "dtype"):
        import numpy as np

        array = np.ascontiguousarray(value)
        return [torch.as_tensor(array)] if array.dtype.kind in "fiub" else []
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in _tensors(item)]
    if isinstance(value, dict):
        return [t for item in value.values() for t in _tensors(item)]
    return []


def _tolerances(name: str, actual: Any, expected: Any, args: Any, kwargs: Any) -> tuple[float | None, float | None]:
    rtol, atol = kwargs.get("rtol"), kwargs.get("atol")
    if name.endswith("equal"):
        return 0.0, 0.0
    if name in ("torch.allclose", "numpy.allclose"):
        rtol = rtol if rtol is not None else args[2] if len(args) > 2 else 1e-5
        atol = atol if atol is not None else args[3] if len(args) > 3 else 1e-8
    elif name == "torch.testing.assert_close" and rtol is None and atol is None:
        rtol, atol = torch.testing._comparison.default_tolerances(actual, expected)
    elif name == "triton.testing.assert_close":
        atol, rtol = atol if atol is not None else 1e-2, rtol if rtol is not None else 0.0
    numbers = [float(x) if isinstance(x, (int, float)) else None for x in (rtol, atol)]
    return numbers[0], numbers[1]


def _max_abs_error(actual: Any, expected: Any) -> float | None:
    """None where shapes differ, nothing is comparable, or the difference is not finite."""
    if actual.shape != expected.shape or actual.numel() == 0 or actual.numel() > _MAX_MATCH_ELEMENTS:
        return None
    if actual.is_complex() or expected.is_complex():
        return None
    difference = float((actual.detach().to(torch.float64) - expected.detach().to(torch.float64)).abs().max())
    return difference if difference - difference == 0.0 else None
