"""Kernels of other projects, pinned in external.yaml: fetched when wanted, never kept here.

    python benchmarks/external.py fetch DIR [--from MIRROR] [--only CASE ...]
    python benchmarks/external.py list

Every file comes from GitHub at its pinned commit, or with `--from` out of local git directories
(`MIRROR/<owner>/<name>` or `MIRROR/<owner>+<name>`, bare or not), and must have its pinned SHA-256. DIR then holds a
folder per case and `cases.json`, which is all that `benchmarks/run.py --external DIR` reads. Needs PyYAML.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

HERE = Path(__file__).resolve().parent
RAW = "https://raw.githubusercontent.com/{github}/{commit}/{path}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    fetching = commands.add_parser("fetch", help="put the pinned files in DIR")
    fetching.add_argument("folder", type=Path)
    fetching.add_argument("--from", dest="mirror", type=Path, help="local git directories instead of GitHub")
    fetching.add_argument("--only", nargs="*")
    commands.add_parser("list", help="what is pinned")
    options = parser.parse_args()
    pinned = yaml.safe_load((HERE / "external.yaml").read_text())
    if options.command == "list":
        for case in pinned["cases"]:
            source = pinned["repositories"][case["repository"]]
            print(f"{case['name']:24} {source['github']}@{source['commit'][:12]} {source['licence']}")
        return 0
    cases = [c for c in pinned["cases"] if not options.only or c["name"] in options.only]
    try:
        for case in cases:
            fetch(case, pinned["repositories"], options.folder / case["name"], options.mirror)
            print(f"{case['name']}: {len(case['files'])} files", flush=True)
    except FetchError as e:
        print(f"external.py: {e}", file=sys.stderr)
        return 1
    (options.folder / "cases.json").write_text(json.dumps(list(described(cases, pinned["repositories"])), indent=1))
    return 0


class FetchError(Exception):
    """A pinned file cannot be had, or is not what was pinned."""


def fetch(case: dict[str, Any], repositories: dict[str, Any], folder: Path, mirror: Path | None) -> None:
    """The case's files below `folder`; those there already with the right digest stay. Raises `FetchError`."""
    for file in case["files"]:
        source = repositories[file.get("repository", case["repository"])]
        path = folder / PurePosixPath(file["as"])
        if path.is_file() and digest(path.read_bytes()) == file["sha256"]:
            continue
        name = f"{source['github']}@{source['commit'][:12]}:{file['path']}"
        data = from_mirror(mirror, source, file["path"], name) if mirror else download(source, file["path"], name)
        if digest(data) != file["sha256"]:
            raise FetchError(f"{name} has SHA-256 {digest(data)}, pinned is {file['sha256']}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def described(cases: list[dict[str, Any]], repositories: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """What a timing run needs of each case, without YAML."""
    for case in cases:
        source = repositories[case["repository"]]
        kept = {k: case[k] for k in ("name", "kernel", "calls", "bottleneck", "harness", "expert") if k in case}
        yield kept | {k: source[k] for k in ("github", "commit", "licence")}


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def download(source: dict[str, str], path: str, name: str) -> bytes:
    url = RAW.format(github=source["github"], commit=source["commit"], path=path)
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            data: bytes = answer.read()
    except (urllib.error.URLError, TimeoutError) as e:
        raise FetchError(f"{name} cannot be fetched: {e}") from None
    return data


def from_mirror(mirror: Path, source: dict[str, str], path: str, name: str) -> bytes:
    for folder in (mirror / source["github"], mirror / source["github"].replace("/", "+")):
        for git in (folder / ".git", folder, folder / "repo"):
            if not (git / "HEAD").is_file():
                continue
            shown = subprocess.run(
                ["git", "--git-dir", str(git), "show", f"{source['commit']}:{path}"], capture_output=True, check=False
            )
            if shown.returncode:
                raise FetchError(f"{name} is not in {git}: {shown.stderr.decode(errors='replace').strip()}")
            return shown.stdout
    raise FetchError(f"{mirror} holds no git directory of {source['github']}")


if __name__ == "__main__":
    sys.exit(main())
