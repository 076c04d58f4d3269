"""The host's side of calls that a kernel makes: what printf, device_print and a failed device_assert say is kept.

A kernel that prints takes a packet from a free list in memory, fills one payload of eight 64-bit words a lane, puts it
on a ready list, adds to a signal, sends the host a message, and waits until a flag of the packet is cleared. The layout
is that of ROCm's device libraries (`ockl`), which Triton and HIP link; the host of the real thing is the HIP runtime.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field

import numpy as np

from sandbox.emulator.memory import Allocation, Memory

PACKETS = 32
"""More waves than that wait for a packet; each is free again as soon as its call was answered."""
_PRINTF = 2
_BEGIN, _END, _LENGTH, _NUMBER = 1, 2, 5, 8
"""Flags of the first word of a payload; shifts of the count of words in use (3 bits) and of the message's number."""
_HEADER_WORDS, _LANES, _WORDS = 3, 64, 8
_FREE, _READY, _MASK = 3, 4, 5
"""Words of the block that the kernel gets a pointer to; the first three are pointers."""
_MOST_TEXT, _MOST_WORDS = 1 << 16, 1 << 12
"""Characters kept of a launch, and words of one message."""
_SPECIFIER = re.compile(r"%([-+ #0]*)(\d{0,3})((?:\.\d{0,3})?)(hh|h|ll|l|z|j|t)?([diouxXcsfFeEgGaAp%])")


@dataclass
class HostCalls:
    """The lists in a launch's memory, and the messages that came so far."""

    block: Allocation
    headers: Allocation
    payloads: Allocation
    messages: dict[int, list[int]] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)
    refused: int = 0
    """The number of a service that was asked for and is not there (a heap, a host function)."""

    def reset(self) -> None:
        """Forget what came, before a launch is run again."""
        self.messages, self.printed, self.refused = {}, [], 0

    def answer(self) -> int:
        """Answer every packet on the ready list; returns the number of a service that is not there, else 0."""
        block, headers = self.block.data.view(np.uint64), self.headers.data.view(np.uint64).reshape(-1, _HEADER_WORDS)
        packet, block[_READY] = int(block[_READY]), 0
        for _ in range(PACKETS):  # a damaged list may go round
            if not packet:
                break
            number = packet % PACKETS
            following, lanes, last = (int(word) for word in headers[number])
            service = last & 0xFFFFFFFF
            if service != _PRINTF:
                self.refused = service
                return service
            payload = self.payloads.data.view(np.uint64).reshape(PACKETS, _LANES, _WORDS)[number]
            for lane in range(_LANES):
                if lanes >> lane & 1:
                    words = [int(word) for word in payload[lane]]
                    payload[lane, 0] = self._append(words[0], words[1:])
            headers[number, 2] = last & ~(1 << 32)
            packet = following
        return 0

    def _append(self, first: int, words: list[int]) -> int:
        """Take one part of a message; returns the first word of its next part."""
        number = first >> _NUMBER
        if first & _BEGIN:
            number = max(self.messages, default=0) + 1
            self.messages[number] = []
        message = self.messages.setdefault(number, [])
        message += words[: (first >> _LENGTH & 7) if len(message) < _MOST_WORDS else 0]
        if first & _END:
            if sum(map(len, self.printed)) < _MOST_TEXT:
                self.printed.append(formatted(message))
            del self.messages[number]
        return (number << _NUMBER | first & ~_BEGIN & (1 << _NUMBER) - 1) & (1 << 64) - 1


def host_calls(memory: Memory) -> HostCalls:
    """Lay out the lists in `memory`, all packets free."""
    doorbell = memory.allocate("the signal of calls to the host", np.zeros(9, np.uint64))
    doorbell.data.view(np.uint64)[[0, 2]] = 1, doorbell.base + 64
    words = np.zeros((PACKETS, _HEADER_WORDS), np.uint64)
    words[1:, 0] = [PACKETS, *range(1, PACKETS - 1)]  # the pointer to packet 0 is PACKETS, since 0 ends a list
    headers = memory.allocate("the headers of calls to the host", words)
    payloads = memory.allocate("the payloads of calls to the host", np.zeros((PACKETS, _LANES, _WORDS), np.uint64))
    pointers = [headers.base, payloads.base, doorbell.base, PACKETS - 1, 0, PACKETS - 1]
    block = memory.allocate("the lists of calls to the host", np.array(pointers, np.uint64))
    return HostCalls(block, headers, payloads)


def formatted(message: list[int]) -> str:
    """The text of a message: a stream number, then format and arguments, strings in place and padded to words."""
    raw = b"".join(word.to_bytes(8, "little") for word in message[1:])
    form, at = _text(raw, 0)
    out, end = [], 0
    for match in _SPECIFIER.finditer(form):
        out.append(form[end : match.start()])
        end = match.end()
        if match[5] == "%":
            out.append("%")
        elif match[5] == "s":
            string, at = _text(raw, at)
            out.append(f"%{match[1]}{match[2]}{match[3]}s" % string)
        else:
            out.append(_number(match, raw[at : at + 8].ljust(8, b"\0")))
            at += 8
    return "".join(out) + form[end:]


def _text(raw: bytes, at: int) -> tuple[str, int]:
    """The string at a place, and the place behind its padding."""
    end = raw.find(b"\0", at)
    end = len(raw) if end < 0 else end
    return raw[at:end].decode("utf-8", "replace"), at + (end - at + 8) // 8 * 8


def _number(match: re.Match[str], word: bytes) -> str:
    flags, width, precision, size, letter = match.groups()
    form = f"%{flags}{width}{precision}"
    if letter in "fFeEgG":
        return (form + letter) % struct.unpack("<d", word)
    if letter in "aA":
        return float(struct.unpack("<d", word)[0]).hex()
    value = int.from_bytes(word, "little", signed=letter in "di")
    bits = {"hh": 8, "h": 16}.get(size, 64 if size or letter == "p" else 32)
    value &= (1 << bits) - 1
    if letter in "di" and value >> bits - 1:
        value -= 1 << bits
    if letter == "p":
        return f"0x{value:x}"
    if letter == "c":
        value &= 0xFF
    return (form + letter.replace("i", "d").replace("u", "d")) % value
