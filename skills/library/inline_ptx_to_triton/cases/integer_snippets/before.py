import triton
import triton.language as tl


@triton.jit
def unpack_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    x = tl.load(x_ptr + i, mask=m, other=0)
    low = tl.inline_asm_elementwise("bfe.u32 $0, $1, 4, 8;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)
    swapped = tl.inline_asm_elementwise("prmt.b32 $0, $1, 0, 0x0123;", "=r,r", [x], tl.int32, True, 1)
    mixed = tl.inline_asm_elementwise(
        asm="lop3.b32 $0, $1, $2, $3, 0xea;", constraints="=r,r,r,r", args=[x, low, swapped],
        dtype=tl.int32, is_pure=True, pack=1,
    )
    ones = tl.inline_asm_elementwise("popc.b32 $0, $1;", "=r,r", [mixed], dtype=tl.int32, is_pure=True, pack=1)
    high, half = tl.inline_asm_elementwise(
        "{ shr.u32 $0, $2, 16; shr.s32 $1, $2, 1; }", "=r,=r,r", [x], dtype=(tl.int32, tl.int32), is_pure=True, pack=1
    )
    tl.store(y_ptr + i, mixed + ones + high + half, mask=m)


def run(x, y):
    n = x.numel()
    unpack_kernel[(triton.cdiv(n, 256),)](x, y, n, BLOCK=256)
    return y
