"""Real git repositories with a branch, for reviews."""

from __future__ import annotations

from pathlib import Path

import git

KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def scale(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(out + i, tl.load(x + i, mask=mask) * 2.0, mask=mask)


def call(x):
    out = torch.empty_like(x)
    scale[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
    return out


if __name__ == "__main__":
    call(torch.randn(1000, device="cuda"))
"""
LIBDEVICE = (
    KERNEL.replace(
        "import triton.language as tl\n",
        "import triton.language as tl\nfrom triton.language.extra.cuda import libdevice\n",
    )
    .replace("* 2.0", "* 2.0")
    .replace("tl.load(x + i, mask=mask) * 2.0", "libdevice.tanh(tl.load(x + i, mask=mask))")
)
"""The same kernel after someone made it depend on CUDA's libdevice."""


class Branches:
    """A repository on `main`; `commit` writes files on the current branch."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.repo = git.Repo.init(folder, initial_branch="main")
        with self.repo.config_writer() as config:
            config.set_value("user", "name", "A")
            config.set_value("user", "email", "a@example.com")
            config.set_value("uploadpack", "allowAnySHA1InWant", "true")

    def commit(self, files: dict[str, str | bytes | None]) -> str:
        for name, text in files.items():
            path = self.folder / name
            if text is None:
                path.unlink()
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        self.repo.git.add("-A")
        self.repo.git.commit("-qm", "change", "--allow-empty")
        return self.repo.head.commit.hexsha

    def branch(self, name: str, start: str = "main") -> None:
        self.repo.git.checkout("-q", "-B", name, start)
