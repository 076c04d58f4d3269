"""Versions of everything a claim depends on, read from package metadata: nothing is imported for it."""

from __future__ import annotations

import platform
from functools import cache
from importlib import metadata

_PACKAGES = ("wavesmith", "triton", "pytorch-triton-rocm", "torch", "numpy")


@cache
def toolchain_versions() -> dict[str, str]:
    """Name to version of Python and of each package that is installed."""
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions
