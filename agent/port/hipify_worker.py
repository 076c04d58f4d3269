"""Runs in a process of its own: reads the rename tables of an installed torch's hipify, without importing torch.

Usage: python hipify_worker.py FOLDER, where FOLDER is torch/utils/hipify. Writes one JSON object to standard output.
hipify keeps state in module globals and calls `sys.exit`, which is why it gets a process.
"""

import importlib.util
import json
import sys
from pathlib import Path


def main(folder: Path) -> None:
    """Load the package by path and print its tables, include names apart from identifiers."""
    spec = importlib.util.spec_from_file_location(
        "hipify", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["hipify"] = package
    spec.loader.exec_module(package)
    mappings = importlib.import_module("hipify.cuda_to_hip_mappings")
    tables = {
        name: {k: v[0] if isinstance(v, tuple) else v for k, v in getattr(mappings, name, {}).items()}
        for name in (
            "CUDA_IDENTIFIER_MAP", "CUDA_TYPE_NAME_MAP", "CUDA_INCLUDE_MAP", "CUDA_SPECIAL_MAP",
            "PYTORCH_SPECIFIC_MAPPINGS", "C10_MAPPINGS",
        )
    }  # fmt: skip
    version = importlib.import_module("hipify.version").__version__ if (folder / "version.py").exists() else ""
    json.dump({"version": version, "tables": tables}, sys.stdout)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
