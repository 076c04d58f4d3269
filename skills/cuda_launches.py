"""Where a CUDA or HIP source launches its kernels, as far as grids and blocks are constants there."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from sandbox.hip_source import HipSource
from skills.cuda_edit import constant_value, constants

Dim = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class LaunchSite:
    """One launch in the source. What is no constant there is None."""

    grid: Dim | None
    block: Dim | None
    shared_bytes: int | None


def launch_sites(source: HipSource, kernel: str, beside: Mapping[str, int] | None = None) -> list[LaunchSite]:
    """Launches by `<<<...>>>` and by `hipLaunchKernelGGL`, in that order. `beside`: constants of what it includes."""
    known = {**(beside or {}), **constants(source)}
    pattern = rf"\b{kernel}\s*(?:<[^;{{}}<>]*(?:<[^<>]*>[^;{{}}<>]*)*>)?\s*<<<(?P<config>[^;]*?)>>>"
    configs = [
        split_at_commas(source.text[m.start("config") : m.end("config")]) for m in re.finditer(pattern, source.masked)
    ]
    for call in source.calls({"hipLaunchKernelGGL"}):
        given = [source.slice(a) for a in call.args]
        if len(given) >= 4 and re.search(rf"\b{kernel}\b", given[0]):
            configs.append(given[1:4])
    return [
        LaunchSite(
            _dim(parts[0], known, source),
            _dim(parts[1], known, source),
            constant_value(parts[2], known) if len(parts) > 2 else None,
        )
        for parts in configs
        if len(parts) >= 2
    ]


def _dim(text: str, known: dict[str, int], source: HipSource) -> Dim | None:
    text = text.strip()
    value = constant_value(text, known)
    if value is not None:
        return (value, 1, 1)
    m = re.fullmatch(r"dim3\s*[({](.*)[)}]", text, re.S)
    if m is None and re.fullmatch(r"\w+", text):
        named = re.search(
            rf"\bdim3\s+{text}\s*[({{]([^;]*)[)}}]\s*;|\bdim3\s+{text}\s*=\s*dim3\s*\(([^;]*)\)\s*;", source.masked
        )
        plain = re.search(rf"\b{text}\s*=\s*([^;,]+);", source.masked)
        if named:
            return _dim(f"dim3({named.group(1) or named.group(2)})", known, source)
        return _dim(plain.group(1), known, source) if plain and plain.group(1).strip() != text else None
    if m is None:
        return None
    values = [constant_value(p, known) for p in split_at_commas(m.group(1))]
    if any(v is None for v in values) or not 1 <= len(values) <= 3:
        return None
    x, y, z = [*(v or 1 for v in values), 1, 1][:3]
    return (x, y, z)


def split_at_commas(text: str, opening: str = "([{", closing: str = ")]}") -> list[str]:
    """The parts of a list of arguments, with what stands inside brackets kept together."""
    parts, depth, current = [], 0, ""
    for character in text:
        depth += (character in opening) - (character in closing)
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]
