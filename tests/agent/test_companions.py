"""Local imports travel with a kernel; installed packages and files outside its folder do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent import companions
from agent.companions import load_candidate, load_with_companions
from sandbox.errors import InputError
from sandbox.kernel import parse_kernel
from skills.source_facts import imported_jit


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def test_modules_and_packages_are_followed(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "k.py": "import torch, helper\nfrom pkg.sub import f\nfrom pkg import other\nimport os.path\n",
            "helper.py": "from second import x\n",
            "second.py": "import helper  # a cycle\nx = 1\n",
            "pkg/__init__.py": "from . import base\n",
            "pkg/base.py": "",
            "pkg/sub.py": "from .deep.leaf import f\n",
            "pkg/deep/leaf.py": "from ...secret import y\ndef f(): pass\n",
            "pkg/other.py": "",
            "unrelated.py": "",
        },
    )
    kernel = load_with_companions(tmp_path / "k.py")
    expected = ["helper.py", "pkg/__init__.py", "pkg/base.py", "pkg/deep/leaf.py", "pkg/other.py", "pkg/sub.py"]
    assert sorted(kernel.companions) == sorted([*expected, "second.py"])


def test_nothing_above_the_folder_is_taken(tmp_path: Path) -> None:
    write(tmp_path, {"secret.py": "x = 1\n", "in/k.py": "from ..secret import x\nfrom . import k\nimport secret\n"})
    assert not load_with_companions(tmp_path / "in" / "k.py").companions


def test_too_many_and_unreadable_files_are_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"k.py": "import a\nimport b\n", "a.py": "", "b.py": ""})
    monkeypatch.setattr(companions, "MAX_FILES", 1)
    with pytest.raises(InputError, match="more than 1"):
        load_with_companions(tmp_path / "k.py")
    (tmp_path / "a.py").write_bytes(b"\xff\xfe")
    monkeypatch.setattr(companions, "MAX_FILES", 9)
    with pytest.raises(InputError, match="UTF-8"):
        load_with_companions(tmp_path / "k.py")


def test_jit_functions_of_the_files_beside_are_named() -> None:
    text = "import triton\nfrom pkg.parts import add, plain\n\n\n@triton.jit\ndef top(x):\n    add(x)\n    plain(x)\n"
    parts = "import triton\n\n\n@triton.jit\ndef add(x):\n    pass\n\n\ndef plain(x):\n    pass\n"
    kernel = parse_kernel(text.encode(), "k.py", {"pkg/parts.py": parts})
    assert imported_jit(kernel) == [("add", "pkg/parts.py")]


def test_a_candidate_brings_its_own_modules_and_else_has_those_of_its_baseline(tmp_path: Path) -> None:
    """The patched file of a job lies alone in the job's folder."""
    write(tmp_path, {"k.py": "import first, second\n", "first.py": "a = 1\n", "second.py": "b = 1\n"})
    write(tmp_path / "out", {"patched.py": "import first, second\n# faster\n", "second.py": "b = 2\n"})
    baseline = load_with_companions(tmp_path / "k.py")
    candidate = load_candidate(tmp_path / "out" / "patched.py", baseline)
    assert (candidate.filename, candidate.source) == ("k.py", "import first, second\n# faster\n")
    assert candidate.companions == {"first.py": "a = 1\n", "second.py": "b = 2\n"}


def test_a_file_in_a_package_is_named_from_where_the_package_lies(tmp_path: Path) -> None:
    """Its package comes whole, with what it reads by name; the rest of the checkout only where it is imported."""
    write(
        tmp_path,
        {
            "lib/__init__.py": "from .ops import k\n",
            "lib/ops/__init__.py": "",
            "lib/ops/k.py": "from ..base import x\nimport near, shared\n",
            "lib/ops/types.py": "",
            "lib/base.py": "x = 1\n",
            "lib/by_name.py": "",
            "lib/configs/tuned.yaml": "block: 64\n",
            "lib/.git/hook.py": "",
            "shared.py": "",
            "unrelated.py": "",
        },
    )
    kernel = load_with_companions(tmp_path / "lib" / "ops" / "k.py")
    assert kernel.filename == "lib/ops/k.py"
    inside = ["__init__.py", "base.py", "by_name.py", "configs/tuned.yaml", "ops/__init__.py", "ops/types.py"]
    assert sorted(kernel.companions) == [*(f"lib/{n}" for n in inside), "shared.py"]
    write(tmp_path / "out", {"k.py": "from ..base import x\nimport near\n# faster\n", "near.py": ""})
    candidate = load_candidate(tmp_path / "out" / "k.py", kernel)
    assert candidate.filename == "lib/ops/k.py"
    assert candidate.companions == {**kernel.companions, "lib/ops/near.py": ""}


def test_of_a_large_package_comes_what_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"lib/__init__.py": "", "lib/k.py": "from .a import x\n", "lib/a.py": "x = 1\n", "lib/b.py": ""})
    monkeypatch.setattr(companions, "MAX_FILES", 3)
    assert sorted(load_with_companions(tmp_path / "lib" / "k.py").companions) == ["lib/__init__.py", "lib/a.py"]
