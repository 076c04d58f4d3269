"""A real browser for the pages: Chromium without a window, driven over its debugging pipe."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from serving import PATIENCE_S

_AS_3_AND_4 = """
import os, sys
for number, wanted in ((int(sys.argv[1]), 13), (int(sys.argv[2]), 14), (13, 3), (14, 4)):
    os.dup2(number, wanted)
os.execv(sys.argv[3], sys.argv[3:])
"""


def packed(png: bytes) -> bytes:
    """The same picture, compressed as far as zlib can: Chromium writes its own in haste."""
    out, data, at = png[:8], b"", 8
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4], "big"), png[at + 4 : at + 8]
        body, at = png[at + 8 : at + 8 + size], at + 12 + size
        if kind == b"IDAT":
            data += body
            continue
        if kind == b"IEND":
            out += _chunk(b"IDAT", zlib.compress(zlib.decompress(data), 9))
        out += _chunk(kind, body)
    return out


def _chunk(kind: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + kind + body + zlib.crc32(kind + body).to_bytes(4, "big")


class Browser:
    """One page of a headless Chromium. `problems` collects script errors, console errors and policy violations."""

    def __init__(self, profile: Path) -> None:
        command_read, self._write = os.pipe()
        self._read, answer_write = os.pipe()
        self._process = subprocess.Popen(
            [
                sys.executable, "-c", _AS_3_AND_4, str(command_read), str(answer_write), str(shutil.which("chromium")),
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                "--disable-extensions", "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank",
            ],
            pass_fds=(command_read, answer_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(command_read)
        os.close(answer_write)
        self._buffer, self._number, self._session = b"", 0, ""
        self.problems: list[str] = []
        self.downloads = profile / "downloads"
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        answer = self._answer(method, params)
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def _answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next(PATIENCE_S)
            if answer.get("id") == self._number:
                return answer

    def _next(self, timeout_s: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], timeout_s)
            assert ready, "the browser does not answer"
            data = os.read(self._read, 1 << 16)
            assert data, "the browser has ended"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.problems.append(str(params["exceptionDetails"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.problems.append(f"{params['entry']['text']} {params['entry'].get('url', '')}")
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning"):
                self.problems.append(str(params["args"]))

    def evaluate(self, script: str) -> Any:
        """The value of a JavaScript expression in the page; promises are awaited."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.settle()

    def settle(self) -> None:
        self.until("document.readyState === 'complete'")

    def until(self, script: str, timeout_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + timeout_s
        while not self._is_true(script):
            assert time.monotonic() < deadline, f"never true: {script}"
            time.sleep(0.05)

    def _is_true(self, script: str) -> bool:
        """False also while the page is being replaced, which the browser may answer with an error."""
        answer = self._answer("Runtime.evaluate", {"expression": script, "returnByValue": True})
        if "navigated or closed" in str(answer.get("error")):
            return False
        assert "error" not in answer, (script, answer["error"])
        return answer["result"]["result"].get("value") is True

    def resize(self, width: int, height: int = 900) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def theme(self, name: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def without_scripts(self, off: bool = True) -> None:
        self.call("Emulation.setScriptExecutionDisabled", value=off)

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(packed(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])))

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if shutil.which("chromium") is None:
        pytest.skip("Chromium is not installed")
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()
