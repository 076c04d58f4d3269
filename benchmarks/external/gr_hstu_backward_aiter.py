"""HSTU attention, backward, as tuned for AMD in aiter: its kernel with its configuration of gfx950."""

import torch
from aiter.ops.triton.attention.hstu_attention import triton_hstu_attention_bwd

CONFIG = {"BLOCK_M": 32, "BLOCK_N": 64, "num_warps": 4, "num_stages": 2, "SEQUENCE_PARALLEL": True, "UNROLL": 1}
"""Of fewer than 512 sequences; its options that only AMD's compiler knows are given on AMD only."""
AMD_OPTIONS = {"waves_per_eu": 0, "matrix_instr_nonkdim": 32}


def run(dout, q, k, v, offsets, max_len, alpha):
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    config = CONFIG | (AMD_OPTIONS if torch.version.hip else {})
    return triton_hstu_attention_bwd(
        dout=dout, q=q, k=k, v=v, dq=dq, dk=dk, dv=dv, seq_offsets=offsets, num_targets=None, N=max_len, alpha=alpha,
        max_attn_len=0, causal=True, contextual_seq_len=0, sort_by_length_indices=None, config=config,
    )  # fmt: skip
