"""What a kernel reads that no two machines agree on, given to the original and to the port alike: clocks, draws.

A kernel whose results follow from a clock or from a random generator can be compared only as a function of them. For
its trials the readings of `clock64` and `clock` become a number of the thread, and the device functions of cuRAND and
hipRAND draw from one stream. What is shown is what the kernel makes of them; the report says so.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from importlib import resources

from agent.port.items import items_of
from sandbox.hip_source import Edit, HipSource, apply_edits

RANDOM_HEADER = "wavesmith_given_random.h"
_READING = "WAVESMITH_GIVEN_CLOCK"
_DEFINITION = f"""\
#ifndef {_READING}
#define {_READING} (7ll + 3 * (long long)threadIdx.x + 1000 * (long long)blockIdx.x)
#endif
"""
_CLOCKS = frozenset({"clock", "clock64", "wall_clock64"})
_DEVICE = frozenset({"__global__", "__device__"})
_RANDOM_INCLUDE = re.compile(r"[<\"](?:hiprand/hiprand_kernel|rocrand/rocrand_kernel)\.h[>\"]")
_DRAWS = re.compile(r"^(?:cu|hip)rand_(?:uniform|normal|log_normal)|^(?:cu|hip)rand(?:_init|4)?$")


def with_given_clocks(text: str) -> str:
    """The text with every reading of a clock in device code replaced by a macro, which the CPU model defines."""
    if not _CLOCKS & set(re.findall(r"\w+", text)):
        return text
    source = HipSource(text)
    edits = []
    for item in items_of(source):
        if not item.head_words & _DEVICE:
            continue
        for a, b, c in zip(item.code, item.code[1:], item.code[2:], strict=False):
            if a.text in _CLOCKS and b.text == "(" and c.text == ")":
                edits.append(Edit(a.start, c.end, _READING))
    return apply_edits(text, edits)


def with_given(files: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Ported files ready for a trial, and headers to put beside them."""
    fresh = {path: _RANDOM_INCLUDE.sub(f'"{RANDOM_HEADER}"', with_given_clocks(text)) for path, text in files.items()}
    fresh = {path: _DEFINITION + text if _READING in text else text for path, text in fresh.items()}
    used = any(RANDOM_HEADER in text for text in fresh.values())
    return fresh, {RANDOM_HEADER: _random_header()} if used else {}


def _random_header() -> str:
    text = (resources.files("agent.port") / "reference" / "random.h").read_text(encoding="utf-8")
    names = "#define WAVESMITH_RAND(name) hiprand##name\n#define WAVESMITH_RAND_FN static inline __device__\n"
    return f"#pragma once\n#include <hip/hip_runtime.h>\n{names}{text.replace('#pragma once', '')}"


def given_note(words: Collection[str]) -> str:
    """What the trials of a kernel that reaches these words rest on; empty when on nothing but its arguments."""
    notes = []
    if any(_DRAWS.match(w) for w in words):
        notes.append("both draw the same given random numbers, as hipRAND's are not cuRAND's")
    if any(w.startswith(("cublasLt", "hipblasLt")) for w in words):
        notes.append("products of hipBLASLt were computed by definition, not by its kernels")
    if _READING in words:
        notes.append("both read the same given clock")
    return "; ".join(notes)
