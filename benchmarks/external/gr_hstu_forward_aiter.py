"""HSTU attention, forward, as tuned for AMD in aiter: its kernel with its configuration of gfx950."""

import torch
from aiter.ops.triton.attention.hstu_attention import triton_hstu_attention_fwd

CONFIG = {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 2}
"""Of fewer than 512 sequences; its options that only AMD's compiler knows are given on AMD only."""
AMD_OPTIONS = {"waves_per_eu": 0, "matrix_instr_nonkdim": 16}


def run(q, k, v, offsets, max_len, alpha):
    config = CONFIG | (AMD_OPTIONS if torch.version.hip else {})
    return triton_hstu_attention_fwd(
        N=max_len, alpha=alpha, q=q, k=k, v=v, seq_offsets=offsets, causal=True, num_targets=None, max_attn_len=0,
        contextual_seq_len=0, sort_by_length_indices=None, config=config,
    )  # fmt: skip
