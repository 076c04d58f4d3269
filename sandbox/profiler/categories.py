"""What kind of work a kernel does, told from its name: first rule that matches, collectives before everything else."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

COLLECTIVE: Final = "collective"
ATTENTION: Final = "attention"
GEMM: Final = "gemm"
CONVOLUTION: Final = "convolution"
TRITON_POINTWISE: Final = "inductor pointwise"
TRITON_REDUCTION: Final = "inductor reduction"
TRITON_PERSISTENT: Final = "inductor persistent reduction"
TRITON_FOREACH: Final = "inductor foreach"
TRITON_TEMPLATE: Final = "inductor template"
EMBEDDING: Final = "embedding"
NORM: Final = "norm"
SOFTMAX: Final = "softmax"
REDUCTION: Final = "reduction"
COPY: Final = "copy"
ELEMENTWISE: Final = "elementwise"
OPTIMIZER: Final = "optimizer"
TRITON_OWN: Final = "hand-written triton"
OTHER: Final = "other"

# Names: rocBLAS and hipBLASLt `Cijk_*`, CUTLASS and cuBLAS, CK, aotriton `attn_fwd`, AITER, RCCL/NCCL, PyTorch's native
# kernels, TorchInductor's `triton_{poi,red,per,for,tem}_fused_*`.
_RULES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (category, re.compile(pattern, re.IGNORECASE))
    for category, pattern in (
        (COLLECTIVE, r"nccl|rccl|cross_device_reduce|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|msccl"),
        (COPY, r"^__amd_rocclr_|^memcpy|^memset|copybuffer|fillbuffer|^hipmem(cpy|set)|direct_copy_kernel"),
        (TRITON_FOREACH, r"^triton_for_"),
        (TRITON_PERSISTENT, r"^triton_per_"),
        (TRITON_REDUCTION, r"^triton_red_"),
        (TRITON_TEMPLATE, r"^triton_tem_"),
        (EMBEDDING, r"embedding|index_?select|split_embedding|gather_kernel|index_elementwise|index_add|index_put"
                    r"|scatter_add|bounds_check"),
        (TRITON_POINTWISE, r"^triton_poi_"),
        (ATTENTION, r"attn|attention|fmha|flash|mha_|sdpa|paged_att|mla_"),
        (CONVOLUTION, r"conv(?!ert)|winograd|miopen.*igemm|implicit_?gemm|im2col"),
        (GEMM, r"gemm|gemv|cijk_|matmul|cublas|nvjet|cutlass|mma_kernel|splitk|wmma_tensorop|_dot_kernel|mm_kernel"),
        (NORM, r"norm"),
        (SOFTMAX, r"softmax|cross_entropy|log_?sum_?exp"),
        (OPTIMIZER, r"multi_tensor_apply|(?<![a-z])(adam|sgd|lamb)(?!da|[a-z]*ge)"),
        (REDUCTION, r"reduce|cub::|hipcub|rocprim|::sum|scan|sort|topk|argmax"),
        (ELEMENTWISE, r"elementwise|pointwise|gelu|silu|relu|sigmoid|dropout|rope|rotary|fill_?functor|activ|cast"),
    )
)  # fmt: skip
# A lower-case Python identifier with no C++ scope is how Triton names kernels.
_TRITON_NAME = re.compile(r"^_?[a-z][a-z0-9_]*$")


@lru_cache(maxsize=16384)
def category(kernel: str) -> str:
    """The category of a kernel by its demangled name; `hand-written triton` only where nothing more exact is known."""
    for name, pattern in _RULES:
        if pattern.search(kernel):
            return name
    return TRITON_OWN if _TRITON_NAME.match(kernel) else OTHER
