"""Shared by the emulator's tests: the compiled corpus."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def corpus_code() -> dict[str, dict[str, bytes]]:
    """Architecture to case name to code object, for every corpus kernel (compiled once, then cached on disk)."""
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    import compile_corpus
    from corpus.case import HipSource
    from corpus.catalogue import all_cases

    out: dict[str, dict[str, bytes]] = {"gfx942": {}, "gfx950": {}}
    for case in all_cases():
        if isinstance(case.source, HipSource) and compile_corpus.find_clang() is None:
            continue
        for arch in case.archs:
            out[arch][case.name] = compile_corpus.build(case, arch).code
    return out
