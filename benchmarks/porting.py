"""Port CUDA files beside plain torch hipify and hipify-perl, and print how far each got, file by file.

Usage: python benchmarks/porting.py DIR [--list FILE] [--json FILE] [--seconds N] [--targets gfx942,gfx950] [--again]

A file in a subfolder of DIR is ported with what it includes from that subfolder, which counts as its project. Every
file runs in a process of its own; finished rows are kept in the JSON file, and another run goes on where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.port.build import options_for, reached_text, source_tree
from agent.port.intake import open_project
from agent.port.loop import port
from agent.port.request import PortRequest, Project
from sandbox.compile_cache import CompileCache
from sandbox.errors import InputError, SandboxError, ToolMissing
from sandbox.hip import HOST, SourceTree, compile_hip
from sandbox.toolchain import Toolchain, prepare_toolchain

FILE_TIMEOUT_S = 1800
OTHERS = ("torch hipify", "hipify-perl")
_HIPIFY = """
import importlib.util, json, sys
from pathlib import Path
folder, work, torch = Path(sys.argv[1]), sys.argv[2], sys.argv[3] == "1"
init = folder / "__init__.py"
spec = importlib.util.spec_from_file_location("hipify", init, submodule_search_locations=[str(folder)])
package = importlib.util.module_from_spec(spec)
sys.modules["hipify"] = package
spec.loader.exec_module(package)
from hipify import hipify_python
done = hipify_python.hipify(
    project_directory=work, output_directory=work, includes=[work + "/*"], header_include_dirs=["."],
    extensions=(".cu", ".cuh", ".c", ".cc", ".cpp", ".h", ".hpp", ".inl"), is_pytorch_extension=torch,
)
Path(work, "hipified.json").write_text(json.dumps({k: v.hipified_path for k, v in done.items()}))
"""


def request_for(path: Path, folder: Path, targets: tuple[str, ...]) -> PortRequest:
    """The file itself, or its project with the file named."""
    relative = path.relative_to(folder)
    if len(relative.parts) == 1:
        return PortRequest(path, targets=targets)
    root = folder / relative.parts[0]
    return PortRequest(root, targets=targets, include=(path.relative_to(root).as_posix(),))


def write_project(project: Project, folder: Path) -> None:
    """The project's files as they were given."""
    for name, text in {**project.others, **{p: f.text for p, f in project.sources.items()}}.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def builds(folder: Path, main: str, project: Project, request: PortRequest, toolchain: Toolchain) -> bool:
    """Whether the rewritten tree compiles for every target and the host, with the flags that our own port gets."""
    from agent.port.assemble import Assembled
    from agent.shims.generate import ShimPlan

    unit = project.units[0]
    assembled = Assembled({unit: project.sources[unit].text}, {}, ShimPlan((), {}, (), ()))
    ours = source_tree(project, assembled, request, unit)
    files = {
        p.relative_to(folder).as_posix(): p.read_text(encoding="utf-8", errors="replace")
        for p in folder.rglob("*") if p.is_file() and p.name != "hipified.json"
    }  # fmt: skip
    folders = dict.fromkeys([".", *ours.include_folders, *(str(Path(f).parent) for f in files)])
    tree = SourceTree(
        files, tuple(folders), ours.system_folders, (*ours.flags, "-DHIP_ENABLE_WARP_SYNC_BUILTINS=1"),
    )  # fmt: skip
    options = replace(options_for(reached_text(unit, project, assembled)), timeout_s=200.0)
    try:
        return all(compile_hip(tree, main, p, toolchain, options).ok for p in [*request.targets, HOST])
    except SandboxError:
        return False


def torch_hipify(project: Project, request: PortRequest, toolchain: Toolchain) -> bool:
    """Plain `torch.utils.hipify`, as torch's extension builder calls it."""
    import importlib.util

    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None, "this comparison needs torch"
    hipify = Path(spec.origin).parent / "utils" / "hipify"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "tree"
        write_project(project, folder)
        words = [sys.executable, "-I", "-W", "ignore", "-c", _HIPIFY, str(hipify), str(folder)]
        done = subprocess.run(
            [*words, str(int(project.uses_torch))], capture_output=True, text=True, timeout=200, check=False
        )
        if done.returncode:
            return False
        unit = project.units[0]
        paths: dict[str, str | None] = json.loads((folder / "hipified.json").read_text())
        main = paths.get(str(folder / unit)) or str(folder / unit)
        return builds(folder, Path(main).relative_to(folder).as_posix(), project, request, toolchain)


def perl_output(path: Path, perl: Path) -> str | None:
    """What hipify-perl makes of a file, kept: units share headers, and it takes seconds for each. None: it hangs."""
    key = "perl" + hashlib.sha256(f"{perl}\0{path.read_text(encoding='utf-8')}".encode()).hexdigest()
    cache = CompileCache.default()
    if cache is not None and (blobs := cache.load(key)) is not None:
        return blobs["out"].decode()
    words = ["perl", str(perl), str(path)]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=200, check=False, errors="replace")
    except subprocess.TimeoutExpired:
        return None
    if cache is not None:
        cache.store(key, {"out": done.stdout.encode()})
    return done.stdout


def perl_hipify(project: Project, request: PortRequest, toolchain: Toolchain) -> bool | None:
    """The real hipify-perl over every file; None where it is not installed."""
    if toolchain.hipify_perl is None or shutil.which("perl") is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "tree"
        write_project(project, folder)
        for source in project.sources:
            text = perl_output(folder / source, toolchain.hipify_perl)
            if text is None:
                return False
            if text:
                (folder / source).write_text(text, encoding="utf-8")
        return builds(folder, project.units[0], project, request, toolchain)


def one(path: Path, folder: Path, targets: tuple[str, ...], row: dict[str, Any]) -> dict[str, Any]:
    """The row of one file. `row` holds what an earlier run found out; None stands for what this one is to find out."""
    request = request_for(path, folder, targets)
    toolchain = prepare_toolchain()
    try:
        with open_project(request) as project:
            if "torch hipify" in row and row["torch hipify"] is None:
                row["torch hipify"] = torch_hipify(project, request, toolchain)
            if "hipify-perl" in row and row["hipify-perl"] is None:
                row["hipify-perl"] = perl_hipify(project, request, toolchain)
        if "outcome" in row:
            return row
        result = port(request)
    except (InputError, SandboxError, ToolMissing) as e:
        return {**row, "outcome": "input", "detail": str(e)}
    return {
        **row,
        "outcome": result.outcome,
        "built": result.builds and not result.refusals,
        "kernels": len(result.kernels),
        "validated": sum(str(k.evidence) == "emulated" for k in result.kernels),
        "wrong": sum(k.wrong for k in result.kernels),
        "detail": result.summary,
        "rounds": len(result.rounds),
        "left": [str(d) for d in result.diagnostics[:20]],
        "refusals": [f"{r.file}:{r.line}: {r.reason}" for r in result.refusals],
        "blockers": [f"{f.file}:{f.line}: {f.message}" for f in result.findings if f.blocker],
        "open": [f"{k.kernel}: {k.reason}" for k in result.kernels if k.reason and str(k.evidence) != "emulated"],
        "programs": [f"{p.what}: {p.evidence}: {p.reason}" for p in result.programs],
        "seconds": result.seconds,
    }


def in_child(path: Path, given: argparse.Namespace, known: Mapping[str, Any]) -> dict[str, Any]:
    """One file in a process of its own: whatever happens to it becomes a row."""
    started = time.monotonic()
    words = [sys.executable, __file__, str(given.folder), "--one", str(path), "--targets", given.targets]
    row = dict(known) if not (given.again and not known.get("built")) else {}
    for column in OTHERS:
        if column in known or not given.ours:
            row[column] = known.get(column)
    try:
        done = subprocess.run(
            [*words, "--row", json.dumps(row)], capture_output=True, text=True, timeout=FILE_TIMEOUT_S, check=False
        )
        lines = done.stdout.strip().splitlines()
        if done.returncode == 0 and lines:
            row = json.loads(lines[-1])
        else:
            said = (done.stderr.strip().splitlines() or ["no output"])[-1][:300]
            row = {"outcome": "failed", "detail": said} | row
    except subprocess.TimeoutExpired:
        row = {"outcome": "failed", "detail": f"took longer than {FILE_TIMEOUT_S} s"} | row
    return {**row, "file": str(path.relative_to(given.folder)), "wall": round(time.monotonic() - started, 1)}


def show(rows: list[dict[str, Any]]) -> None:
    """The table and the sums."""
    print(f"{'file':56} {'torch':5} {'perl':5} {'ours':7} {'kernels shown right':20} note")
    for r in rows:
        ours = "built" if r.get("built") else r["outcome"][:7]
        shown = f"{r.get('validated', 0)} of {r.get('kernels', 0)}" + (" WRONG" if r.get("wrong") else "")
        cells = ["built" if r.get(k) else "-" for k in ("torch hipify", "hipify-perl")]
        print(f"{r['file'][-56:]:56} {cells[0]:5} {cells[1]:5} {ours:7} {shown:20} {str(r.get('detail', ''))[:90]}")
    outcomes = Counter(str(r["outcome"]) for r in rows)
    print(f"\n{len(rows)} files: {dict(outcomes)}")
    for column, label in (("torch hipify", "torch hipify"), ("hipify-perl", "hipify-perl"), ("built", "wavesmith")):
        print(f"{label:13} builds {sum(bool(r.get(column)) for r in rows)} of {len(rows)}")
    refused = [r for r in rows if r["outcome"] == "refused"]
    whole = [r for r in rows if r.get("kernels") and r.get("validated") == r.get("kernels")]
    print(f"refused with a reason: {len(refused)}; every kernel shown right: {len(whole)} files")
    kernels, right, wrong = (sum(int(r.get(k) or 0) for r in rows) for k in ("kernels", "validated", "wrong"))
    print(f"kernels {kernels}, shown right in emulation {right}, wrong {wrong}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=lambda text: Path(text).resolve())
    parser.add_argument("--list", type=Path, help="File with one path below DIR a line; all .cu files without it.")
    parser.add_argument("--json", type=Path, help="Where rows are kept.")
    parser.add_argument("--seconds", type=float, default=1e9, help="Stop starting files after this long.")
    parser.add_argument("--targets", default="gfx942,gfx950")
    parser.add_argument("--again", action="store_true", help="Port again what was not built; keep the other columns.")
    parser.add_argument("--ours", action="store_true", help="Leave the other tools for a later run.")
    parser.add_argument("--only", default="", help="Only files whose path holds this.")
    parser.add_argument("--one", type=lambda text: Path(text).resolve(), help=argparse.SUPPRESS)
    parser.add_argument("--row", default="{}", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one(given.one, given.folder, tuple(given.targets.split(",")), json.loads(given.row))))
        return
    names = given.list.read_text().split() if given.list else []
    paths = [given.folder / n for n in names] or sorted(given.folder.rglob("*.cu"))
    rows = {r["file"]: r for r in json.loads(given.json.read_text())} if given.json and given.json.exists() else {}
    started = time.monotonic()
    for path in paths:
        name = str(path.relative_to(given.folder))
        known = rows.get(name, {})
        complete = "outcome" in known and (given.ours or all(known.get(c) is not None for c in OTHERS))
        if given.only not in name or (complete and not (given.again and not known.get("built"))):
            continue
        if time.monotonic() - started > given.seconds:
            break
        rows[name] = row = in_child(path, given, known)
        print(f"{name[-60:]:60} {row['outcome']:13} {row['wall']:6} s  {str(row.get('detail', ''))[:140]}", flush=True)
        if given.json:
            given.json.write_text(json.dumps(list(rows.values()), indent=1) + "\n")
    show([rows[n] for n in (str(p.relative_to(given.folder)) for p in paths) if n in rows])


if __name__ == "__main__":
    main()
