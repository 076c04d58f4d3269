import triton
import triton.language as tl


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
def unpack_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0)
    low = ((x.to(tl.uint32, bitcast=True) >> 4) & 0xff).to(tl.int32, bitcast=True)
    swapped = (((x.to(tl.uint32, bitcast=True) >> 24) & 0xff) | ((x.to(tl.uint32, bitcast=True) >> 8) & 0xff00) | ((x.to(tl.uint32, bitcast=True) << 8) & 0xff0000) | ((x.to(tl.uint32, bitcast=True) << 24) & 0xff000000)).to(tl.int32, bitcast=True)
    mixed = ((x & low) | swapped).to(tl.int32, bitcast=True)
    ones = _popc(mixed)
    high, half = ((x.to(tl.uint32, bitcast=True) >> 16).to(tl.int32, bitcast=True), x.to(tl.int32, bitcast=True) >> 1)
    tl.store(y_ptr + i, mixed + ones + high + half, mask=m)


def run(x, y):
    n = x.numel()
    unpack_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y
