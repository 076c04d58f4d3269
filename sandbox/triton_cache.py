"""Where Triton keeps what it compiles for the GPU at hand: a folder per program, for all processes of this command.

The recording, the trials and the clock start a process each for the same program, and an autotuner has dozens of
configs to compile. No other program's processes see the folder, and it ends with the command.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from sandbox.kernel import Kernel


def folder_of(kernel: Kernel) -> Path:
    """The folder of this very source; made where it is missing."""
    folder = Path(_root().name) / kernel.digest[:32]
    folder.mkdir(exist_ok=True)
    return folder


@cache
def _root() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="wavesmith-triton-")
