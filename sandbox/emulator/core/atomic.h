// The value an atomic leaves behind, from the old value and its operands. Shared by LDS and global atomics.
#pragma once
#include "core.h"

enum atomic_kind {
  A_SWAP, A_CMPSWAP, A_ADD32, A_ADD64, A_SUB32, A_SUB64, A_RSUB32, A_RSUB64, A_SMIN32, A_SMIN64, A_SMAX32, A_SMAX64,
  A_UMIN, A_UMAX, A_AND, A_OR, A_XOR, A_INC32, A_INC64, A_DEC32, A_DEC64, A_ADD_F32, A_ADD_F64, A_MIN_F32, A_MAX_F32,
  A_MIN_F64, A_MAX_F64, A_PK_ADD_F16, A_PK_ADD_BF16
};

static inline f64 lesser(f64 a, f64 b) { return a != a ? b : b != b ? a : a == b ? (__builtin_signbit(a) ? a : b) : a < b ? a : b; }
static inline f64 greater(f64 a, f64 b) { return a != a ? b : b != b ? a : a == b ? (__builtin_signbit(a) ? b : a) : a > b ? a : b; }

static inline u64 pair_sum_f16(u64 a, u64 b) {
  u32 low = float_to_half(half_to_float((u32)a & 0xffff) + half_to_float((u32)b & 0xffff));
  return low | (u64)float_to_half(half_to_float((u32)a >> 16) + half_to_float((u32)b >> 16)) << 16;
}
static inline u64 pair_sum_bf16(u64 a, u64 b) {
  u32 low = float_to_bf16(bf16_to_float((u32)a & 0xffff) + bf16_to_float((u32)b & 0xffff));
  return low | (u64)float_to_bf16(bf16_to_float((u32)a >> 16) + bf16_to_float((u32)b >> 16)) << 16;
}

// 32-bit operands and results are zero-extended.
static u64 apply_atomic(int kind, u64 old, u64 v, u64 compare) {
  switch (kind) {
    case A_SWAP: return v;
    case A_CMPSWAP: return old == compare ? v : old;
    case A_ADD32: return (u32)(old + v);
    case A_ADD64: return old + v;
    case A_SUB32: return (u32)(old - v);
    case A_SUB64: return old - v;
    case A_RSUB32: return (u32)(v - old);
    case A_RSUB64: return v - old;
    case A_SMIN32: return (i32)old < (i32)v ? old : v;
    case A_SMIN64: return (i64)old < (i64)v ? old : v;
    case A_SMAX32: return (i32)old > (i32)v ? old : v;
    case A_SMAX64: return (i64)old > (i64)v ? old : v;
    case A_UMIN: return old < v ? old : v;
    case A_UMAX: return old > v ? old : v;
    case A_AND: return old & v;
    case A_OR: return old | v;
    case A_XOR: return old ^ v;
    case A_INC32: case A_INC64: return old >= v ? 0 : old + 1;
    case A_DEC32: case A_DEC64: return old == 0 || old > v ? v : old - 1;
    case A_ADD_F32: return bits32(as_f32((u32)old) + as_f32((u32)v));
    case A_ADD_F64: return bits64(as_f64(old) + as_f64(v));
    case A_MIN_F32: return bits32((f32)lesser(as_f32((u32)old), as_f32((u32)v)));
    case A_MAX_F32: return bits32((f32)greater(as_f32((u32)old), as_f32((u32)v)));
    case A_MIN_F64: return bits64(lesser(as_f64(old), as_f64(v)));
    case A_MAX_F64: return bits64(greater(as_f64(old), as_f64(v)));
    case A_PK_ADD_F16: return pair_sum_f16(old, v);
    default: return pair_sum_bf16(old, v);
  }
}
