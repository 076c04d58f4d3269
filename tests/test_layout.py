"""Promises of the layout: nothing needs torch to be imported, modules stay readable, no name shadows the stdlib."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("agent", "skills", "sandbox", "api", "prompts")
SOURCES = sorted(
    p for package in PACKAGES for p in (ROOT / package).rglob("*.py") if "cases" not in p.relative_to(ROOT).parts
)


def child_side_files() -> set[Path]:
    """Files that need torch or triton to be imported, directly or through another such file."""
    found: set[str] = {"torch", "triton"}
    files: set[Path] = set()
    while True:
        new = {p for p in SOURCES if p not in files and imports_at_module_level(ast.parse(p.read_text())) & found}
        if not new:
            return files
        files |= new
        found |= {".".join(p.relative_to(ROOT).with_suffix("").parts) for p in new}


def imports_at_module_level(tree: ast.Module) -> set[str]:
    """Top-level names and full module names."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {n for a in node.names for n in (a.name, a.name.split(".")[0])}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, node.module.split(".")[0], *(f"{node.module}.{a.name}" for a in node.names)}
    return names


def test_importing_everything_needs_no_torch_no_triton() -> None:
    """Child-side files name torch at module level and say so; every other module is imported here with both blocked."""
    child_side = child_side_files()
    assert all(p.relative_to(ROOT).parts[0] == "sandbox" for p in child_side), child_side
    modules = [
        ".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for p in SOURCES
        if p not in child_side and "library" not in p.parts
    ]
    program = (
        "import sys, importlib\n"
        "sys.modules['torch'] = None\nsys.modules['triton'] = None\n"
        f"for name in {modules!r}:\n    importlib.import_module(name)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_no_module_is_named_like_one_of_the_standard_library() -> None:
    clashes = [p for p in SOURCES if p.stem in sys.stdlib_module_names and p.stem != "__init__"]
    assert clashes == []


def test_modules_can_be_read_in_one_sitting() -> None:
    long = {str(p.relative_to(ROOT)): n for p in SOURCES if (n := p.read_text().count("\n")) > 450}
    assert long == {}
