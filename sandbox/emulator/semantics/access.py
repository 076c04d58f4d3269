"""Bytes in and out of memory for the active lanes: global allocations, LDS and scratch, with every check on the way."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from sandbox.emulator.machine import LANES, PRIVATE_APERTURE, SHARED_APERTURE, Mask, Wave

Bytes = npt.NDArray[np.uint8]
Addresses = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.int64]

_STEP = np.arange(64)


def _window(offsets: Offsets, size: int) -> Offsets:
    """Byte numbers [lane, byte] of `size` bytes from each offset on."""
    return offsets[:, None] + _STEP[:size]


def _fault(w: Wave, lanes: Offsets, addresses: Addresses, size: int, verb: str) -> None:
    """Report the first lane whose address no allocation holds; raises `Trapped`."""
    lane = int(lanes[0])
    address = int(addresses[lane])
    where = w.group.memory.describe(address)
    w.report("out_of_bounds_global", f"{verb} of {size} bytes at {where}", lane, address)


def locate(w: Wave, addresses: Addresses, size: int, active: Mask, verb: str) -> dict[int, Offsets]:
    """Allocation number to the active lanes that address it; traps if a lane addresses none."""
    lanes = np.flatnonzero(active)
    if lanes.size == 0:
        return {}
    index = w.group.memory.resolve(addresses[lanes], size)
    if (index < 0).any():
        _fault(w, lanes[index < 0], addresses, size, verb)
    first = int(index[0])
    if (index == first).all():
        return {first: lanes}
    return {int(k): lanes[index == k] for k in np.unique(index)}


def load_global(w: Wave, addresses: Addresses, size: int, active: Mask) -> Bytes:
    """`size` bytes per lane as [lane, byte]; zeros in inactive lanes."""
    out = np.zeros((LANES, size), np.uint8)
    for number, lanes in locate(w, addresses, size, active, "load").items():
        allocation = w.group.memory.allocations[number]
        where = _window((addresses[lanes] - np.uint64(allocation.base)).astype(np.int64), size)
        out[lanes] = allocation.data[where]
        if allocation.initialised is not None:
            fresh = ~allocation.initialised[where]
            if fresh.any():
                lane = int(lanes[np.argmax(fresh.any(axis=1))])
                place = w.group.memory.describe(int(addresses[lane]))
                w.report("uninitialised_global", f"load from {place}, never written", lane, int(addresses[lane]))
    return out


def store_global(w: Wave, addresses: Addresses, data: Bytes, active: Mask) -> None:
    """Store `data[lane]` at each address; where lanes collide, the highest wins."""
    size = data.shape[1]
    for number, lanes in locate(w, addresses, size, active, "store").items():
        allocation = w.group.memory.allocations[number]
        if not allocation.writable:
            lane = int(lanes[0])
            w.report("write_to_read_only", f"store to {allocation.name}", lane, int(addresses[lane]))
        where = _window((addresses[lanes] - np.uint64(allocation.base)).astype(np.int64), size)
        allocation.data[where] = data[lanes]
        if allocation.initialised is not None:
            allocation.initialised[where] = True


def lds_offsets(w: Wave, addresses: Addresses, size: int, active: Mask, verb: str) -> tuple[Offsets, Offsets]:
    """Active lanes and their LDS byte numbers; addresses wrap at 32 bits. Traps past the workgroup's allocation."""
    lanes = np.flatnonzero(active)
    offsets = (addresses[lanes] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    beyond = offsets + size > w.group.lds.size
    if beyond.any():
        lane = int(lanes[np.argmax(beyond)])
        offset = int(offsets[np.argmax(beyond)])
        message = f"{verb} of {size} bytes at byte {offset} of LDS ({w.group.lds.size} bytes allocated)"
        w.report("out_of_bounds_lds", message, lane, offset)
    return lanes, offsets


def _note_lds_read(w: Wave, where: Offsets) -> None:
    fresh, racing = w.group.shadow.read(where.reshape(-1), w.index)
    if fresh is not None:
        w.report("uninitialised_lds", f"read of LDS byte {fresh}, never written", address=fresh)
    if racing is not None:
        report_race(w, "read", racing)


def report_race(w: Wave, verb: str, byte: int) -> None:
    """Note that an access races with one of another wave."""
    message = f"{verb} of LDS byte {byte} races with another wave: no barrier lies between the accesses"
    w.report("lds_race", message, address=byte)


def load_lds(w: Wave, addresses: Addresses, size: int, active: Mask) -> Bytes:
    """`size` bytes per lane as [lane, byte]; zeros in inactive lanes."""
    out = np.zeros((LANES, size), np.uint8)
    lanes, offsets = lds_offsets(w, addresses, size, active, "read")
    where = _window(offsets, size)
    out[lanes] = w.group.lds[where]
    if lanes.size:
        _note_lds_read(w, where)
    return out


def store_lds(w: Wave, addresses: Addresses, data: Bytes, active: Mask, atomic: bool = False) -> None:
    """Store `data[lane]` at each LDS address. Lanes of one wave that store different values to a byte race too, unless
    they hold copies of one value: then only the last lane at an address counts."""
    size = data.shape[1]
    lanes, offsets = lds_offsets(w, addresses, size, active, "write")
    if lanes.size == 0:
        return
    if w.group.copied_lanes:
        last = lanes.size - 1 - np.unique(offsets[::-1], return_index=True)[1]
        lanes, offsets = lanes[last], offsets[last]
    where, values, lds = _window(offsets, size).reshape(-1), data[lanes].reshape(-1), w.group.lds
    racing = w.group.shadow.write(where, values, lds, w.index, atomic)
    if racing is not None:
        report_race(w, "write", racing)
    lds[where] = values
    lost = lds[where] != values
    if lost.any():
        byte = int(where[np.argmax(lost)])
        w.report("lds_race", f"two lanes of a wave store different values to LDS byte {byte}", address=byte)


def scratch_offsets(w: Wave, offsets: Offsets, size: int, active: Mask, verb: str) -> Offsets:
    """The active lanes; traps where one leaves its private memory."""
    lanes = np.flatnonzero(active)
    beyond = (offsets[lanes] < 0) | (offsets[lanes] + size > w.scratch.size)
    if beyond.any():
        lane = int(lanes[np.argmax(beyond)])
        message = f"{verb} of {size} bytes at byte {int(offsets[lane])} of scratch ({w.scratch.size} bytes per lane)"
        w.report("out_of_bounds_scratch", message, lane, int(offsets[lane]))
    return lanes


def load_scratch(w: Wave, offsets: Offsets, size: int, active: Mask) -> Bytes:
    """`size` bytes of each lane's private memory."""
    out = np.zeros((LANES, size), np.uint8)
    lanes = scratch_offsets(w, offsets, size, active, "load")
    out[lanes] = w.scratch.data[lanes[:, None], _window(offsets[lanes], size)]
    return out


def store_scratch(w: Wave, offsets: Offsets, data: Bytes, active: Mask) -> None:
    """Store `data[lane]` in each lane's private memory."""
    size = data.shape[1]
    lanes = scratch_offsets(w, offsets, size, active, "store")
    w.scratch.data[lanes[:, None], _window(offsets[lanes], size)] = data[lanes]


def split_flat(addresses: Addresses, active: Mask) -> tuple[Mask, Mask, Mask]:
    """Active lanes whose flat address means global memory, LDS and scratch."""
    window = addresses >> np.uint64(32)
    shared = window == np.uint64(SHARED_APERTURE >> 32)
    private = window == np.uint64(PRIVATE_APERTURE >> 32)
    return active & ~shared & ~private, active & shared, active & private


def load_flat(w: Wave, addresses: Addresses, size: int, active: Mask) -> Bytes:
    """`size` bytes per lane from wherever its flat address points."""
    in_global, in_lds, in_scratch = split_flat(addresses, active)
    out = load_global(w, addresses, size, in_global)
    if in_lds.any():
        out += load_lds(w, addresses & np.uint64(0xFFFFFFFF), size, in_lds)
    if in_scratch.any():
        out += load_scratch(w, (addresses & np.uint64(0xFFFFFFFF)).astype(np.int64), size, in_scratch)
    return out


def store_flat(w: Wave, addresses: Addresses, data: Bytes, active: Mask) -> None:
    """Store to wherever each lane's flat address points."""
    in_global, in_lds, in_scratch = split_flat(addresses, active)
    store_global(w, addresses, data, in_global)
    if in_lds.any():
        store_lds(w, addresses & np.uint64(0xFFFFFFFF), data, in_lds)
    if in_scratch.any():
        store_scratch(w, (addresses & np.uint64(0xFFFFFFFF)).astype(np.int64), data, in_scratch)
