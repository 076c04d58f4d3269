"""torch's own headers, hipified once into the cache: an extension compiles for AMD without a ROCm torch.

The CPU wheel ships ATen/cuda and c10/cuda. They are copied, put through torch's hipify in a process of its own, and
used in front of the wheel's include folders.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandbox.compile_cache import cache_root
from sandbox.errors import SandboxError, ToolMissing

_MACROS = "#pragma once\n#define C10_HIP_BUILD_SHARED_LIBS\n"
FLAGS = (
    "-DUSE_ROCM=1", "-D__HIP_NO_HALF_OPERATORS__=1", "-D__HIP_NO_HALF_CONVERSIONS__=1", "-DTORCH_HIP_VERSION=604",
    "-DHIPBLAS_V2", "-DCUDA_HAS_FP16=1", "-DTORCH_API_INCLUDE_EXTENSION_H", "-DTORCH_EXTENSION_NAME=extension",
    "-DHIP_ENABLE_WARP_SYNC_BUILTINS=1", "-fno-gpu-rdc",
)  # fmt: skip
"""What torch's extension builder passes for ROCm."""


@dataclass(frozen=True)
class TorchHeaders:
    """Include folders in order, and the version they are of."""

    folders: tuple[Path, ...]
    version: str


@cache
def torch_headers() -> TorchHeaders:
    """The folders to compile an extension with; raises `ToolMissing` without an installed torch that ships headers."""
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None:
        raise ToolMissing("This file includes torch's headers, and torch is not installed. Install wavesmith[triton].")
    torch = Path(spec.origin).parent
    include = torch / "include"
    if not (include / "ATen" / "cuda").is_dir():
        raise ToolMissing("The installed torch ships no CUDA headers, so its extensions cannot be compiled here.")
    version = importlib.metadata.version("torch")
    own = _hipified(torch, version)
    folders = [own, include, include / "torch" / "csrc" / "api" / "include"]
    python = Path(sysconfig.get_paths()["include"])
    return TorchHeaders((*folders, *([python] if (python / "Python.h").exists() else [])), version)


def _hipified(torch: Path, version: str) -> Path:
    target = cache_root() / f"torch-hip-{version}"
    if (target / "done").exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="torch-hip-", dir=target.parent) as name:
        work = Path(name) / "tree"
        for part in ("ATen/cuda", "ATen/native/cuda", "c10/cuda"):
            source = torch / "include" / part
            if source.is_dir():
                shutil.copytree(source, work / part)
        done = subprocess.run(
            [sys.executable, "-I", "-W", "ignore", "-c", _PROGRAM, str(torch / "utils" / "hipify"), str(work)],
            capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
        if done.returncode:
            raise SandboxError(f"torch's headers cannot be hipified: {done.stderr.strip()[-300:]}")
        macros = work / "c10" / "hip" / "impl" / "hip_cmake_macros.h"
        macros.parent.mkdir(parents=True, exist_ok=True)
        macros.write_text(_MACROS, encoding="utf-8")
        (work / "done").write_text(version, encoding="utf-8")
        if not target.exists():
            work.rename(target)
    return target


_PROGRAM = """
import importlib.util, sys
from pathlib import Path
folder, work = Path(sys.argv[1]), sys.argv[2]
init = folder / "__init__.py"
spec = importlib.util.spec_from_file_location("hipify", init, submodule_search_locations=[str(folder)])
package = importlib.util.module_from_spec(spec)
sys.modules["hipify"] = package
spec.loader.exec_module(package)
from hipify import hipify_python
hipify_python.hipify(
    project_directory=work, output_directory=work, includes=[work + "/*"], header_include_dirs=["."],
    is_pytorch_extension=True, show_detailed=False,
)
"""
