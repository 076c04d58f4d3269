"""Compile a port's units for every target and the host."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from agent.port.assemble import SHIMS_FOLDER, Assembled, new_path
from agent.port.includes import PathIndex, closure, includes_of
from agent.port.request import PortRequest, Project
from agent.port.torch_headers import FLAGS as TORCH_FLAGS
from agent.port.torch_headers import torch_headers
from sandbox.hip import HOST, HipBuild, HipOptions, SourceTree, compile_command, compile_hip
from sandbox.hip_diagnostics import Diagnostic, merge_passes
from sandbox.toolchain import Toolchain


@dataclass(frozen=True)
class UnitBuild:
    """One unit's passes, in the order they were compiled."""

    unit: str
    passes: Mapping[str, HipBuild]

    @property
    def diagnostics(self) -> list[Diagnostic]:
        return merge_passes(b.diagnostics for b in self.passes.values())

    @property
    def ok(self) -> bool:
        return all(b.ok for b in self.passes.values())


def source_tree(project: Project, assembled: Assembled, request: PortRequest, unit: str = "") -> SourceTree:
    """The port as it will lie in the output folder, with the project's other files, and torch's headers for a unit that
    includes them."""
    files = {**project.others, **assembled.shims}
    files |= {new_path(path): text for path, text in assembled.files.items()}
    flags = [f"-D{d}" for d in request.defines]
    folders = [p.resolve() for p in request.include_folders]
    if _includes_torch(reached_text(unit, project, assembled)):
        headers = torch_headers()
        folders += headers.folders
        flags += TORCH_FLAGS
    return SourceTree(
        files,
        include_folders=(".", SHIMS_FOLDER, *include_folders(project)),
        system_folders=tuple(folders),
        flags=(*flags, "-Wno-everything"),
    )


def reached_text(unit: str, project: Project, assembled: Assembled) -> str:
    """A unit with everything of the project that it includes, one after the other."""
    texts = {**project.others, **assembled.files}
    if unit not in texts:
        return ""
    return "\n".join(texts[path] for path in closure([unit], PathIndex.of(texts), texts.get))


def _includes_torch(text: str) -> bool:
    return re.search(r"^[ \t]*#[ \t]*include[ \t]*[<\"](torch|ATen|c10)/", text, re.M) is not None


def include_folders(project: Project) -> list[str]:
    """Folders of the project that its quoted or angled includes are relative to."""
    index = PathIndex.of([*project.sources, *project.others])
    texts = {**{p: f.text for p, f in project.sources.items()}, **project.others}
    folders: dict[str, None] = {}
    for path, text in texts.items():
        for include in includes_of(text):
            found = index.find(include, path)
            if found is not None and found.endswith("/" + include.name):
                folders[found.removesuffix("/" + include.name)] = None
    return list(folders)


def options_for(text: str) -> HipOptions:
    """C++20 where the source shows that it needs it."""
    newer = re.search(r"#\s*include\s*<(concepts|span|bit|compare|ranges|source_location|numbers)>|\bconsteval\b", text)
    torch = _includes_torch(text)
    return HipOptions(standard="c++20" if newer or torch else "c++17", timeout_s=1800.0 if torch else 240.0)


def build_units(
    units: Sequence[str], project: Project, assembled: Assembled, request: PortRequest, toolchain: Toolchain
) -> list[UnitBuild]:
    """Compile `units` (input paths). A second target is compiled only once the first is clean: it says the same."""
    trees = {unit: source_tree(project, assembled, request, unit) for unit in units}
    first, *rest = request.targets
    with ThreadPoolExecutor(max_workers=min(4, os.cpu_count() or 1)) as pool:

        def run(unit: str, pass_name: str) -> HipBuild:
            return compile_hip(
                trees[unit], new_path(unit), pass_name, toolchain, options_for(reached_text(unit, project, assembled))
            )

        jobs = {(u, p): pool.submit(run, u, p) for u in units for p in (first, HOST)}
        done = {key: job.result() for key, job in jobs.items()}
        clean = [u for u in units if done[u, first].ok]
        later = {(u, p): pool.submit(run, u, p) for u in clean for p in rest}
        done |= {key: job.result() for key, job in later.items()}
    return [UnitBuild(u, {p: b for (unit, p), b in done.items() if unit == u}) for u in units]


def build_commands(
    units: Sequence[str], project: Project, assembled: Assembled, request: PortRequest, toolchain: Toolchain
) -> dict[str, str]:
    """For the report: how each unit was compiled for the first target, relative to the output folder."""
    commands: dict[str, str] = {}
    for unit in units:
        tree = source_tree(project, assembled, request, unit)
        words = compile_command(
            tree, new_path(unit), request.targets[0], toolchain, options_for(reached_text(unit, project, assembled))
        )
        kept = [
            w
            for w in words[1:]
            if not w.startswith(("--hip-path", "--rocm-device-lib", "-fdiag", "-Wno-", "-ferror", "-fno-color"))
        ]
        commands[unit] = " ".join(["clang++", *kept]).replace("../out.hsaco", f"{unit}.hsaco")
    return commands
