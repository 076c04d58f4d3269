"""Child side: a HIP program's device. Owns its memory, executes its launches in the emulator, notes how it ended.

The program is linked with `host_runtime/runtime.cpp`, which asks here in frames of `word, bytes` over two pipes. A
device buffer is a file of the scratch folder that both sides map, so that copies are the program's own.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import resource
import struct
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sandbox.emulator import Allocation, CodeObject, Memory, emulate, load_code_object
from sandbox.emulator.launch import load_image
from sandbox.errors import InputError

ALLOCATE, RELEASE, KERNEL, LAUNCH, SYMBOL, UNKNOWN = 1, 2, 3, 4, 5, 6
_STOPPED = 124
"""Exit status of a program that was told that it cannot go on."""
_POISON = 0xA5
_MEMORY_BYTES = 1 << 30
_OUTPUT_BYTES = 4 << 20
_FRAME = struct.Struct("<II")
_MAPPED = struct.Struct("<QQQ")


class Stop(Exception):  # noqa: N818 - an outcome: the program cannot go on
    """`status` is unknown, stopped or trapped; the message says why."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass
class Device:
    """Memory and code of one device."""

    code: CodeObject
    folder: Path
    budget: int
    """Wave instructions of all launches together."""
    skip: frozenset[str] = frozenset()
    """Kernels that are not executed: what a program prints without one shows whether its output depends on it."""
    memory: Memory = field(default_factory=Memory)
    launched: list[str] = field(default_factory=list)
    image: Allocation | None = None
    files: int = 0
    used_bytes: int = 0

    def answer(self, word: int, data: bytes) -> bytes:
        """What to reply to one frame. Raises `Stop`."""
        if word == ALLOCATE:
            size, _ = struct.unpack("<QI", data)
            return self._mapped(self._allocate("a buffer", size))
        if word == RELEASE:
            (base,) = struct.unpack("<Q", data)
            self._release(base)
            return b""
        if word == KERNEL:
            return self._layout(data.decode())
        if word == LAUNCH:
            self._launch(data)
            return b""
        if word == SYMBOL:
            return self._symbol(data.decode())
        raise Stop("unknown", f"the host runtime does not know {data.decode(errors='replace')}")

    def _allocate(self, name: str, size: int) -> Allocation:
        self.used_bytes += size
        if self.used_bytes > _MEMORY_BYTES:
            raise Stop("stopped", f"it uses more than {_MEMORY_BYTES >> 20} MiB of device memory")
        self.files += 1
        path = self.folder / str(self.files)
        with path.open("wb") as file:
            file.truncate(size)
        with path.open("r+b") as file:
            data = np.frombuffer(mmap.mmap(file.fileno(), size), np.uint8)
        data[:] = _POISON
        return self.memory.allocate(f"{name} {self.files}", data)

    def _mapped(self, allocation: Allocation) -> bytes:
        return _MAPPED.pack(allocation.base, allocation.data.size, int(allocation.name.rsplit(" ", 1)[-1]))

    def _release(self, base: int) -> None:
        for allocation in self.memory:
            if allocation.base == base:
                self.memory.release(allocation)
                (self.folder / allocation.name.rsplit(" ", 1)[-1]).unlink()
                self.used_bytes -= allocation.data.size
                return

    def _layout(self, name: str) -> bytes:
        try:
            arguments = self.code.kernel(name).explicit_arguments
        except InputError:
            raise Stop("unknown", f"there is no device code for {name}") from None
        rows = b"".join(struct.pack("<II", a.offset, a.size) for a in arguments)
        return struct.pack("<I", max((a.offset + a.size for a in arguments), default=0)) + rows

    def _loaded(self) -> Allocation:
        """The code object, kept from launch to launch with its variables."""
        if self.image is None:
            self.image = self._allocate("code and variables", len(self.code.elf.image))
            load_image(self.code, self.image)
        return self.image

    def _launch(self, data: bytes) -> None:
        gx, gy, gz, bx, by, bz, shared, length = struct.unpack_from("<8I", data)
        name, arguments = data[32 : 32 + length].decode(), data[32 + length :]
        if self.budget <= 0:
            raise Stop("stopped", "its kernels take more instructions than the emulator's budget")
        if name in self.skip:
            return
        try:
            done = emulate(
                self.code, name, (gx, gy, gz), (bx, by, bz), arguments, self.memory, dynamic_lds_bytes=shared,
                instruction_budget=self.budget, image=self._loaded(),
            )  # fmt: skip
        except InputError as e:
            raise Stop("trapped", f"{name}: {e}") from e
        self.budget -= done.instructions
        if not done.completed:
            kind = "stopped" if done.status in ("unsupported", "budget") else "trapped"
            raise Stop(kind, f"{name}: {done.status}: {done.reason}")
        self.launched.append(name)

    def _symbol(self, name: str) -> bytes:
        symbol = self.code.elf.symbols.get(name)
        if symbol is None or not symbol.section:
            raise Stop("unknown", f"there is no device variable {name}")
        return self._mapped(self._loaded()) + struct.pack("<Q", symbol.address)


def serve(device: Device, source: int, sink: int) -> Stop | None:
    """Answer until the program has gone; why it could not go on, or None."""
    with os.fdopen(source, "rb") as questions, os.fdopen(sink, "wb", buffering=0) as answers:
        while len(head := questions.read(_FRAME.size)) == _FRAME.size:
            word, size = _FRAME.unpack(head)
            try:
                reply = device.answer(word, questions.read(size))
            except Stop as e:
                answers.write(_FRAME.pack(1, 0))
                return e
            answers.write(_FRAME.pack(0, len(reply)) + reply)
    return None


def run(job: dict[str, Any]) -> dict[str, Any]:
    """Run the program to its end; how it ended as plain data."""
    with tempfile.TemporaryDirectory(prefix="device-") as name:
        folder = Path(name)
        device = Device(load_code_object(Path(job["code"]).read_bytes()), folder, job["budget"], frozenset(job["skip"]))
        to_us, from_program = os.pipe()
        from_us, to_program = os.pipe()
        board = str(job["board"]).replace(",", " ")
        given = f"{from_us},{from_program},{job['units']},{job['lds_bytes']},{device.code.arch},{board},{folder}"
        with (folder / "stdout").open("wb") as out, (folder / "stderr").open("wb") as err:
            process = subprocess.Popen(
                [job["program"]], stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=folder,
                env={"WAVESMITH_RUNTIME": given, "PATH": "/usr/bin:/bin"}, pass_fds=(from_us, from_program),
                preexec_fn=_limit,
            )  # fmt: skip
            os.close(from_us)
            os.close(from_program)
            stop = serve(device, to_us, to_program)
            code = process.wait()
        said = (folder / "stdout").read_bytes()[:_OUTPUT_BYTES].decode(errors="replace")
        complaint = (folder / "stderr").read_bytes()[-2000:].decode(errors="replace")
        status = stop.status if stop is not None else "ended"
        return {
            "status": status, "code": code, "stdout": said, "stderr": complaint, "reason": str(stop or ""),
            "launched": device.launched,
        }  # fmt: skip


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (_OUTPUT_BYTES, _OUTPUT_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", type=Path, required=True)
    parser.add_argument("--result-fd", type=int, required=True)
    given = parser.parse_args(arguments)
    job = json.loads(given.job.read_text())
    os.environ["WAVESMITH_CACHE_DIR"] = job["cache_root"]
    with os.fdopen(given.result_fd, "wb") as channel:
        channel.write(json.dumps(run(job)).encode())
