// Instructions that compilers reach only through builtins or inline assembly, and that older code objects hold.
#include "device.h"
typedef _Float16 f16;
typedef _Float16 h4 __attribute__((ext_vector_type(4)));
typedef _Float16 h8 __attribute__((ext_vector_type(8)));

// Sparse products. a: [64][registers of A], b: [64][twice as many], index: [64]; out: [64][results] accumulators of each
// lane, which start at 1, 2, 3, ...
template <int N> using dwords = int __attribute__((ext_vector_type(N)));
#define SPARSE(NAME, A, X, Y, ACC, R)                                                                         \
  KERNEL void NAME(const int* a, const int* b, const int* index, int* out) {                                  \
    dwords<A> x;                                                                                              \
    dwords<2 * A> y;                                                                                          \
    ACC __attribute__((ext_vector_type(R))) c;                                                                \
    for (int j = 0; j < A; j++) x[j] = a[TID * A + j];                                                        \
    for (int j = 0; j < 2 * A; j++) y[j] = b[TID * 2 * A + j];                                                \
    for (int r = 0; r < R; r++) c[r] = r + 1;                                                                 \
    c = __builtin_amdgcn_##NAME(__builtin_bit_cast(X, x), __builtin_bit_cast(Y, y), c, index[TID], 0, PART);  \
    for (int r = 0; r < R; r++) {                                                                             \
      ACC result = c[r]; /* clang 22 takes the first element in a bit cast of c[r] itself */                  \
      out[TID * R + r] = __builtin_bit_cast(int, result);                                                     \
    }                                                                                                         \
  }
#define SPARSE_F8(SHAPE, A, R)                                        \
  SPARSE(smfmac_f32_##SHAPE##_bf8_bf8, A, dwords<A>, dwords<2 * A>, float, R) \
  SPARSE(smfmac_f32_##SHAPE##_bf8_fp8, A, dwords<A>, dwords<2 * A>, float, R) \
  SPARSE(smfmac_f32_##SHAPE##_fp8_bf8, A, dwords<A>, dwords<2 * A>, float, R) \
  SPARSE(smfmac_f32_##SHAPE##_fp8_fp8, A, dwords<A>, dwords<2 * A>, float, R)
typedef short s4 __attribute__((ext_vector_type(4)));
typedef short s8 __attribute__((ext_vector_type(8)));
#define PART 1
SPARSE(smfmac_f32_16x16x32_f16, 2, h4, h8, float, 4)
SPARSE(smfmac_f32_32x32x16_f16, 2, h4, h8, float, 16)
SPARSE(smfmac_f32_16x16x32_bf16, 2, s4, s8, float, 4)
SPARSE(smfmac_f32_32x32x16_bf16, 2, s4, s8, float, 16)
SPARSE(smfmac_i32_16x16x64_i8, 2, dwords<2>, dwords<4>, int, 4)
SPARSE(smfmac_i32_32x32x32_i8, 2, dwords<2>, dwords<4>, int, 16)
SPARSE_F8(16x16x64, 2, 4)
SPARSE_F8(32x32x32, 2, 16)
#ifdef __gfx950__
typedef _Float16 h16 __attribute__((ext_vector_type(16)));
typedef __bf16 b8 __attribute__((ext_vector_type(8)));
typedef __bf16 b16 __attribute__((ext_vector_type(16)));
SPARSE(smfmac_f32_16x16x64_f16, 4, h8, h16, float, 4)
SPARSE(smfmac_f32_32x32x32_f16, 4, h8, h16, float, 16)
SPARSE(smfmac_f32_16x16x64_bf16, 4, b8, b16, float, 4)
SPARSE(smfmac_f32_32x32x32_bf16, 4, b8, b16, float, 16)
#undef PART
#define PART 0
SPARSE(smfmac_i32_16x16x128_i8, 4, dwords<4>, dwords<8>, int, 4)
SPARSE(smfmac_i32_32x32x64_i8, 4, dwords<4>, dwords<8>, int, 16)
SPARSE_F8(16x16x128, 4, 4)
SPARSE_F8(32x32x64, 4, 16)
#endif

// Each lane of which keep[lane] is set gets a slot; then half of them give theirs back.
KERNEL void append_consume(const int* keep, int* slot, int* left) {
  __shared__ int counter[4];
  if (TID == 0) counter[1] = 100;
  __builtin_amdgcn_s_barrier();
  slot[TID] = -1;
  if (keep[TID]) slot[TID] = __builtin_amdgcn_ds_append((__attribute__((address_space(3))) int*)&counter[1]);
  if (keep[TID] && TID % 2) left[TID] = __builtin_amdgcn_ds_consume((__attribute__((address_space(3))) int*)&counter[1]);
}

KERNEL void message(int* out) {
  __builtin_amdgcn_s_sendmsg(1, 0);
  out[TID] = TID;
}

// v[n] through the index register, as source (out) and as destination (out + 64).
KERNEL void indexed(const int* n, int* out) {
  int by = __builtin_amdgcn_readfirstlane(n[0]), got, put;
  asm volatile("v_mov_b32 v40, %1\n v_add_u32 v41, 1, %1\n v_add_u32 v42, 2, %1\n v_add_u32 v43, 3, %1\n"
               "s_set_gpr_idx_on %2, gpr_idx(SRC0)\n v_mov_b32 %0, v40\n s_set_gpr_idx_off\n"
               : "=v"(got) : "v"(TID * 10), "s"(by) : "v40", "v41", "v42", "v43", "m0");
  out[TID] = got;
  asm volatile("v_mov_b32 v40, 0\n v_mov_b32 v41, 0\n v_mov_b32 v42, 0\n v_mov_b32 v43, 0\n"
               "s_set_gpr_idx_on %2, gpr_idx(DST)\n v_mov_b32 v40, %1\n s_set_gpr_idx_off\n"
               "v_mov_b32 %0, v42\n"
               : "=&v"(put) : "v"(TID), "s"(by) : "v40", "v41", "v42", "v43", "m0");
  out[64 + TID] = put;
}

// The modifiers of dense products: blgp takes B from other lanes, and negates A, B and C of doubles.
#define PERMUTED(SHAPE, R, P)                                                            \
  KERNEL void mfma_##SHAPE##_##P(const float* a, const float* b, float* out) {           \
    float __attribute__((ext_vector_type(R))) c = {};                                    \
    c = __builtin_amdgcn_mfma_f32_##SHAPE(a[TID], b[TID], c, 0, 0, P);                   \
    for (int r = 0; r < R; r++) out[TID * R + r] = c[r];                                 \
  }
#define PATTERN(P) \
  PERMUTED(32x32x1f32, 32, P) PERMUTED(16x16x1f32, 16, P) PERMUTED(4x4x1f32, 4, P) PERMUTED(16x16x4f32, 4, P)
PATTERN(0) PATTERN(1) PATTERN(2) PATTERN(3) PATTERN(4) PATTERN(5) PATTERN(6) PATTERN(7)
typedef double d4 __attribute__((ext_vector_type(4)));
template <int SIGNS> __device__ void doubles(const double* a, const double* b, double* out) {
  d4 c = {1, 2, 3, 4};
  c = __builtin_amdgcn_mfma_f64_16x16x4f64(a[TID], b[TID], c, 0, 0, SIGNS);
  for (int r = 0; r < 4; r++) out[4 * TID + r] = c[r];
}
KERNEL void mfma_doubles(const double* a, const double* b, double* out) {
  doubles<0>(a, b, out);
  doubles<1>(a, b, out + 256);
  doubles<6>(a, b, out + 512);
  doubles<7>(a, b, out + 768);
}

// A dot product with signs, selections and clamp; x: [64] pairs of halves, y: the same, out: [2][64].
typedef _Float16 h2 __attribute__((ext_vector_type(2)));
KERNEL void dots(const h2* x, const h2* y, const float* c, float* out) {
  out[TID] = __builtin_amdgcn_fdot2(-x[TID], y[TID], -c[TID], true);
  out[64 + TID] = __builtin_amdgcn_fdot2(x[TID].yx, y[TID].xx, c[TID], false);
}

// Packed integers and a constant that is 1.0f.
typedef short s2 __attribute__((ext_vector_type(2)));
KERNEL void packed_constant(const s2* x, s2* out) { out[TID] = x[TID] + (s2){0, 0x3f80}; }

#ifdef __gfx950__
// The exchange of rows with what it says about inactive lanes, of which there are none; and then some.
KERNEL void swapped_rows(const unsigned* x, const unsigned* y, int lanes, unsigned* out) {
  if (TID >= lanes) return;
  auto pair = __builtin_amdgcn_permlane16_swap(x[TID], y[TID], true, true);
  out[2 * TID] = pair[0];
  out[2 * TID + 1] = pair[1];
}
#endif

// s[n] through M0, as source (out) and as destination (out + 2).
KERNEL void relative(int n, long* out) {
  int by = __builtin_amdgcn_readfirstlane(n), got, put;
  long wide_got, wide_put;
  asm volatile("s_mov_b32 m0, %4\n s_mov_b32 s40, 7\n s_mov_b32 s41, 8\n s_mov_b32 s42, 9\n s_mov_b32 s43, 10\n"
               "s_nop 0\n s_movrels_b32 %0, s40\n s_movrels_b64 %2, s[40:41]\n"
               "s_movreld_b32 s40, 70\n s_mov_b32 %1, s42\n s_movreld_b64 s[40:41], 71\n s_mov_b64 %3, s[42:43]\n"
               : "=&s"(got), "=&s"(put), "=&s"(wide_got), "=&s"(wide_put)
               : "s"(by) : "s40", "s41", "s42", "s43", "m0");
  out[0] = got, out[1] = wide_got, out[2] = put, out[3] = wide_put;
}

KERNEL void grid_barrier(int* out) {
  __builtin_amdgcn_ds_gws_barrier(1, 0);
  out[TID] = 1;
}
