"""Port every CUDA file of a folder, beside plain torch hipify and hipify-perl, and print how far each got.

Usage: python benchmarks/porting.py DIR [--limit N] [--targets gfx942,gfx950] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
from collections import Counter
from pathlib import Path

from agent.port.loop import port
from agent.port.rename import load_tables, rename_source
from agent.port.request import PortRequest
from sandbox.errors import InputError, SandboxError
from sandbox.hip import HOST, HipOptions, SourceTree, compile_hip
from sandbox.toolchain import Toolchain, prepare_toolchain


def builds(text: str, targets: list[str], toolchain: Toolchain) -> bool:
    """Whether a HIP text compiles for every target and the host, with nothing beside it."""
    tree = SourceTree({"k.hip": text}, flags=("-w", "-DHIP_ENABLE_WARP_SYNC_BUILTINS=1"))
    return all(compile_hip(tree, "k.hip", p, toolchain, HipOptions()).ok for p in [*targets, HOST])


def plain_hipify(text: str) -> str:
    """The renames alone: what torch's tables make of the file."""
    return rename_source(text, load_tables(), torch=False, own_files=frozenset())[0]


def perl_hipify(path: Path, toolchain: Toolchain) -> str | None:
    """What hipify-perl makes of the file, None where it is not installed."""
    if toolchain.hipify_perl is None or shutil.which("perl") is None:
        return None
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name) / path.name
        shutil.copy(path, copy)
        done = subprocess.run(
            ["perl", str(toolchain.hipify_perl), str(copy)], capture_output=True, text=True, timeout=120, check=False
        )
    return done.stdout or None


def one(path: Path, targets: list[str], toolchain: Toolchain) -> dict[str, object]:
    text = path.read_text(encoding="utf-8", errors="replace")
    row: dict[str, object] = {"file": path.name}
    try:
        row["names only"] = builds(plain_hipify(text), targets, toolchain)
        perl = perl_hipify(path, toolchain)
        row["hipify-perl"] = perl is not None and builds(perl, targets, toolchain)
        result = port(PortRequest(path, targets=tuple(targets)))
    except (InputError, SandboxError) as e:
        return {**row, "outcome": "input", "detail": str(e)}
    return {
        **row,
        "outcome": result.outcome,
        "built": result.builds and not result.refusals,
        "kernels": len(result.kernels),
        "validated": sum(str(k.evidence) == "emulated" for k in result.kernels),
        "wrong": sum(k.wrong for k in result.kernels),
        "detail": result.summary,
        "seconds": result.seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--targets", default="gfx942,gfx950")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    toolchain = prepare_toolchain(print)
    rows = []
    for path in sorted(given.folder.rglob("*.cu"))[: given.limit]:
        row = one(path, given.targets.split(","), toolchain)
        rows.append(row)
        print(f"{row['file']!s:40.40} {row['outcome']!s:13} {str(row.get('detail', ''))[:110]}", flush=True)
    outcomes = Counter(str(r["outcome"]) for r in rows)
    print(f"\n{len(rows)} files: {dict(outcomes)}")
    for column in ("names only", "hipify-perl", "built"):
        print(f"{column:12} builds {sum(bool(r.get(column)) for r in rows)} of {len(rows)}")
    kernels = sum(int(str(r.get("kernels", 0))) for r in rows)
    print(f"kernels      {kernels}, validated {sum(int(str(r.get('validated', 0))) for r in rows)}, "
          f"wrong {sum(int(str(r.get('wrong', 0))) for r in rows)}")  # fmt: skip
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
