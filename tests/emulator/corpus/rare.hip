// Instructions that compilers reach only through builtins or inline assembly, and that older code objects hold.
#include "device.h"
typedef _Float16 f16;
typedef _Float16 h4 __attribute__((ext_vector_type(4)));
typedef _Float16 h8 __attribute__((ext_vector_type(8)));
typedef float f4 __attribute__((ext_vector_type(4)));
typedef int i2 __attribute__((ext_vector_type(2)));
typedef int i4 __attribute__((ext_vector_type(4)));

// a: [64][4] kept values of each lane, b: [64][8], index: [64]; out: [64][4] accumulators of each lane, from 1, 2, 3, 4.
KERNEL void sparse_16x16x32_f16(const f16* a, const f16* b, const int* index, float* out) {
  h4 x;
  h8 y;
  for (int j = 0; j < 4; j++) x[j] = a[TID * 4 + j];
  for (int j = 0; j < 8; j++) y[j] = b[TID * 8 + j];
  f4 c = {1, 2, 3, 4};
  c = __builtin_amdgcn_smfmac_f32_16x16x32_f16(x, y, c, index[TID], 0, 1);
  for (int r = 0; r < 4; r++) out[TID * 4 + r] = c[r];
}
// a: [64][2] dwords of four int8, b: [64][4] dwords.
KERNEL void sparse_16x16x64_i8(const int* a, const int* b, const int* index, int* out) {
  i2 x = {a[TID * 2], a[TID * 2 + 1]};
  i4 y, c = {0, 0, 0, 0};
  for (int j = 0; j < 4; j++) y[j] = b[TID * 4 + j];
  c = __builtin_amdgcn_smfmac_i32_16x16x64_i8(x, y, c, index[TID], 0, 0);
  for (int r = 0; r < 4; r++) out[TID * 4 + r] = c[r];
}

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
