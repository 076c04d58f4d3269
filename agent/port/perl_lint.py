"""hipify-perl as a second pair of eyes, where it is installed: what it calls unsupported, as findings."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from agent.port.result import Finding
from sandbox.compile_cache import CompileCache
from sandbox.toolchain import Toolchain

_WARNING = re.compile(r":(?P<line>\d+): warning: (?P<text>unsupported [^:\n]*)")
_TIMEOUT_S = 60.0


def perl_lint(path: str, text: str, toolchain: Toolchain) -> list[Finding]:
    """Findings of one CUDA file; none where hipify-perl or perl is missing. Remembered per text and version."""
    if toolchain.hipify_perl is None or shutil.which("perl") is None:
        return []
    key = "perl-lint" + hashlib.sha256(f"{toolchain.digest}\0{text}".encode("utf-8", "replace")).hexdigest()
    cache = CompileCache.default()
    blobs = cache.load(key) if cache is not None else None
    if blobs is None:
        blobs = {"found.json": json.dumps(_run(text, toolchain.hipify_perl)).encode()}
        if cache is not None:
            cache.store(key, blobs)
    found: list[tuple[int, str]] = json.loads(blobs["found.json"])
    return [Finding("hipify-perl", path, line, f"hipify-perl: {message}", False) for line, message in found]


def _run(text: str, script: Path) -> list[tuple[int, str]]:
    with tempfile.TemporaryDirectory(prefix="wavesmith-perl-") as name:
        file = Path(name) / "unit.cu"
        file.write_text(text, encoding="utf-8")
        try:
            done = subprocess.run(
                ["perl", str(script), "-examine", str(file)], capture_output=True, text=True, errors="replace",
                timeout=_TIMEOUT_S, check=False, cwd=name,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return []
    lines = (done.stdout + done.stderr).splitlines()
    return [(int(m["line"]), m["text"].strip()) for line in lines if (m := _WARNING.search(line))]
