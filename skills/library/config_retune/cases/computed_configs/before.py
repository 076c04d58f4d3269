import torch
import triton
import triton.language as tl


def project_autotune(configs, key):
    return lambda fn: triton.autotune(configs=configs, key=key)(fn)


def all_configs():
    return [triton.Config({"BLOCK": b}, num_warps=w, num_stages=2) for b in (256, 512) for w in (8, 16)]


@project_autotune(configs=all_configs(), key=["n"])
@triton.jit
def relu(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(y_ptr + offs, tl.maximum(x, 0.0), mask=offs < n)


def run(x):
    y = torch.empty_like(x)
    n = x.numel()
    relu[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
    return y
