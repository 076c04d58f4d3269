import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def _mulhi(a, b):
    """High half of the product, for 32-bit integers of either sign and unsigned 64-bit ones."""
    if a.dtype == tl.int32:
        high = ((a.to(tl.int64) * b.to(tl.int64)) >> 32).to(tl.int32)
    else:
        high = tl.umulhi(a, b)
    return high


@triton.jit
def _popc(x):
    """Number of bits set, as int32."""
    if x.dtype.primitive_bitwidth == 64:
        v = x.to(tl.uint64, bitcast=True)
        v = v - ((v >> 1) & 0x5555555555555555)
        v = (v & 0x3333333333333333) + ((v >> 2) & 0x3333333333333333)
        v = (v + (v >> 4)) & 0x0F0F0F0F0F0F0F0F
        v = v + (v >> 8)
        v = v + (v >> 16)
        v = (v + (v >> 32)) & 0x7F
    else:
        v = x.to(tl.uint32, bitcast=True)
        v = v - ((v >> 1) & 0x55555555)
        v = (v & 0x33333333) + ((v >> 2) & 0x33333333)
        v = (v + (v >> 4)) & 0x0F0F0F0F
        v = v + (v >> 8)
        v = (v + (v >> 16)) & 0x3F
    return v.to(tl.int32)


@triton.jit
def _clz(x):
    """Number of leading zero bits, as int32."""
    if x.dtype.primitive_bitwidth == 64:
        v = x.to(tl.uint64, bitcast=True)
        v = v | (v >> 1)
        v = v | (v >> 2)
        v = v | (v >> 4)
        v = v | (v >> 8)
        v = v | (v >> 16)
        v = v | (v >> 32)
        zeros = 64 - _popc(v)
    else:
        v = x.to(tl.uint32, bitcast=True)
        v = v | (v >> 1)
        v = v | (v >> 2)
        v = v | (v >> 4)
        v = v | (v >> 8)
        v = v | (v >> 16)
        zeros = 32 - _popc(v)
    return zeros


@triton.jit
def _ffs(x):
    """Position of the lowest set bit counted from 1, 0 when there is none, as int32."""
    return tl.where(x == 0, 0, _popc((x & -x) - 1) + 1)


@triton.jit
def _brev(x):
    """Bits of a 32-bit or 64-bit integer in reverse order."""
    if x.dtype.primitive_bitwidth == 64:
        v = x.to(tl.uint64, bitcast=True)
        v = ((v >> 1) & 0x5555555555555555) | ((v & 0x5555555555555555) << 1)
        v = ((v >> 2) & 0x3333333333333333) | ((v & 0x3333333333333333) << 2)
        v = ((v >> 4) & 0x0F0F0F0F0F0F0F0F) | ((v & 0x0F0F0F0F0F0F0F0F) << 4)
        v = ((v >> 8) & 0x00FF00FF00FF00FF) | ((v & 0x00FF00FF00FF00FF) << 8)
        v = ((v >> 16) & 0x0000FFFF0000FFFF) | ((v & 0x0000FFFF0000FFFF) << 16)
        v = (v >> 32) | (v << 32)
    else:
        v = x.to(tl.uint32, bitcast=True)
        v = ((v >> 1) & 0x55555555) | ((v & 0x55555555) << 1)
        v = ((v >> 2) & 0x33333333) | ((v & 0x33333333) << 2)
        v = ((v >> 4) & 0x0F0F0F0F) | ((v & 0x0F0F0F0F) << 4)
        v = ((v >> 8) & 0x00FF00FF) | ((v & 0x00FF00FF) << 8)
        v = (v >> 16) | (v << 16)
    return v.to(x.dtype, bitcast=True)


@triton.jit
def _byte_perm(x, y, selector):
    """Four bytes chosen from the eight of y:x by the low three bits of each selector nibble, as int32."""
    both = (y.to(tl.uint32, bitcast=True).to(tl.uint64) << 32) | x.to(tl.uint32, bitcast=True).to(tl.uint64)
    picks = x * 0 + selector  # a constant selector has no type of its own
    low = (both >> ((picks & 7) * 8).to(tl.uint64)) & 0xFF
    second = (both >> (((picks >> 4) & 7) * 8).to(tl.uint64)) & 0xFF
    third = (both >> (((picks >> 8) & 7) * 8).to(tl.uint64)) & 0xFF
    high = (both >> (((picks >> 12) & 7) * 8).to(tl.uint64)) & 0xFF
    return (low | (second << 8) | (third << 16) | (high << 24)).to(tl.uint32).to(tl.int32, bitcast=True)


@triton.jit
def bits_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0)
    y = _popc(x) + _clz(x) + _ffs(x) + _mulhi(x, x + 3)
    y = y ^ _byte_perm(x, y, 0x5140) ^ _brev(x)
    tl.store(y_ptr + i, y, mask=m)


def run(x, y):
    n = x.numel()
    bits_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y
