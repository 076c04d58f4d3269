"""What every port needs once per machine: probes of HIP's headers, the precompiled headers, the CPU model."""

from __future__ import annotations

import tempfile
from pathlib import Path

from agent.port.loop import port
from agent.port.request import PortRequest

_SOURCE = """\
#include <cuda_runtime.h>
__global__ void prepare(const int* x, int* y) { y[threadIdx.x] = __shfl_sync(0xffffffff, x[threadIdx.x], 0); }
void run(const int* x, int* y) { prepare<<<1, 64>>>(x, y); }
"""


def prepare_port(targets: tuple[str, ...] = ("gfx942", "gfx950")) -> None:
    """Port one small kernel, so that the next one finds in the cache what all ports share."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "prepare.cu"
        file.write_text(_SOURCE, encoding="utf-8")
        port(PortRequest(file, targets=targets))
