// Every matrix instruction shape through its builtin: one wave computes D = A * B + C for 64-lane register layouts.
#include "device.h"
typedef float f4 __attribute__((ext_vector_type(4)));
typedef float f16v __attribute__((ext_vector_type(16)));
typedef float f32v __attribute__((ext_vector_type(32)));
typedef int i4 __attribute__((ext_vector_type(4)));
typedef int i16v __attribute__((ext_vector_type(16)));
typedef double d4 __attribute__((ext_vector_type(4)));
typedef f16 h4 __attribute__((ext_vector_type(4)));
typedef short s4 __attribute__((ext_vector_type(4)));

// A is M x K and B is K x N per block, row-major; C and D are M x N per block.
template <int M, int K, int BLOCKS, int PER, class T, class V> __device__ V load_a(const T* a) {
  V v;
  int lane = lane_id();
  int row = lane % M, group = lane / M;
  for (int j = 0; j < PER; j++) {
    int k = BLOCKS > 1 ? j : group * PER + j, block = BLOCKS > 1 ? group : 0;
    v[j] = a[(block * M + row) * K + k];
  }
  return v;
}
template <int N, int K, int BLOCKS, int PER, class T, class V> __device__ V load_b(const T* b) {
  V v;
  int lane = lane_id();
  int column = lane % N, group = lane / N;
  for (int j = 0; j < PER; j++) {
    int k = BLOCKS > 1 ? j : group * PER + j, block = BLOCKS > 1 ? group : 0;
    v[j] = b[(block * K + k) * N + column];
  }
  return v;
}

KERNEL void mfma_16x16x16_f16(const f16* a, const f16* b, float* d) {
  h4 x = load_a<16, 16, 1, 4, f16, h4>(a), y = load_b<16, 16, 1, 4, f16, h4>(b);
  f4 c = {1, 2, 3, 4};
  c = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, c, 0, 0, 0);
  for (int r = 0; r < 4; r++) d[(lane_id() / 16 * 4 + r) * 16 + lane_id() % 16] = c[r];
}
KERNEL void mfma_32x32x8_f16(const f16* a, const f16* b, float* d) {
  h4 x = load_a<32, 8, 1, 4, f16, h4>(a), y = load_b<32, 8, 1, 4, f16, h4>(b);
  f16v c = {};
  c = __builtin_amdgcn_mfma_f32_32x32x8f16(x, y, c, 0, 0, 0);
  for (int r = 0; r < 16; r++) d[(r / 4 * 8 + lane_id() / 32 * 4 + r % 4) * 32 + lane_id() % 32] = c[r];
}
KERNEL void mfma_4x4x4_f16(const f16* a, const f16* b, float* d) {
  h4 x = load_a<4, 4, 16, 4, f16, h4>(a), y = load_b<4, 4, 16, 4, f16, h4>(b);
  f4 c = {};
  c = __builtin_amdgcn_mfma_f32_4x4x4f16(x, y, c, 0, 0, 0);
  for (int r = 0; r < 4; r++) d[(lane_id() / 4 * 4 + r) * 4 + lane_id() % 4] = c[r];
}
KERNEL void mfma_16x16x4_f32(const float* a, const float* b, float* d) {
  int lane = lane_id();
  f4 c = {};
  c = __builtin_amdgcn_mfma_f32_16x16x4f32(a[lane % 16 * 4 + lane / 16], b[lane / 16 * 16 + lane % 16], c, 0, 0, 0);
  for (int r = 0; r < 4; r++) d[(lane / 16 * 4 + r) * 16 + lane % 16] = c[r];
}
KERNEL void mfma_16x16x1_f32(const float* a, const float* b, float* d) {
  int lane = lane_id();
  f16v c = {};
  c = __builtin_amdgcn_mfma_f32_16x16x1f32(a[lane], b[lane], c, 0, 0, 0);
  for (int r = 0; r < 16; r++) d[(r / 4 * 16 + lane / 16 * 4 + r % 4) * 16 + lane % 16] = c[r];
}
KERNEL void mfma_32x32x1_f32(const float* a, const float* b, float* d) {
  int lane = lane_id();
  f32v c = {};
  c = __builtin_amdgcn_mfma_f32_32x32x1f32(a[lane], b[lane], c, 0, 0, 0);
  for (int r = 0; r < 32; r++) d[(r / 16 * 32 + r % 16 / 4 * 8 + lane / 32 * 4 + r % 4) * 32 + lane % 32] = c[r];
}
KERNEL void mfma_16x16x4_f64(const double* a, const double* b, double* d) {
  int lane = lane_id();
  d4 c = {};
  c = __builtin_amdgcn_mfma_f64_16x16x4f64(a[lane % 16 * 4 + lane / 16], b[lane / 16 * 16 + lane % 16], c, 0, 0, 0);
  for (int r = 0; r < 4; r++) d[(lane / 16 + 4 * r) * 16 + lane % 16] = c[r];
}
KERNEL void mfma_4x4x4_f64(const double* a, const double* b, double* d) {
  int lane = lane_id(), block = lane / 4 % 4, i = lane % 4, k = lane / 16;
  double c = __builtin_amdgcn_mfma_f64_4x4x4f64(a[(block * 4 + i) * 4 + k], b[(block * 4 + k) * 4 + i], 0.0, 0, 0, 0);
  d[(block * 4 + lane / 16) * 4 + i] = c;
}
KERNEL void mfma_16x16x16_bf16(const short* a, const short* b, float* d) {
  s4 x = load_a<16, 16, 1, 4, short, s4>(a), y = load_b<16, 16, 1, 4, short, s4>(b);
  f4 c = {};
  c = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(x, y, c, 0, 0, 0);
  for (int r = 0; r < 4; r++) d[(lane_id() / 16 * 4 + r) * 16 + lane_id() % 16] = c[r];
}
KERNEL void mfma_16x16x32_i8(const i8* a, const i8* b, int* d) {
  int lane = lane_id();
  i64 x = 0, y = 0;
  for (int j = 0; j < 8; j++) {
    x |= (i64)(u8)a[lane % 16 * 32 + lane / 16 * 8 + j] << 8 * j;
    y |= (i64)(u8)b[(lane / 16 * 8 + j) * 16 + lane % 16] << 8 * j;
  }
  i4 c = {};
  c = __builtin_amdgcn_mfma_i32_16x16x32_i8(x, y, c, 0, 0, 0);
  for (int r = 0; r < 4; r++) d[(lane / 16 * 4 + r) * 16 + lane % 16] = c[r];
}
