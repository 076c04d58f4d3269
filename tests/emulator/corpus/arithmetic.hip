// Arithmetic the Triton kernels do not reach: fp64, halves, packed and dot instructions, bit tricks, matrix builtins.
#include "device.h"

KERNEL void double_math(const double* a, const double* b, double* out, int n) {
  int i = GTID;
  if (i >= n) return;
  out[i] = a[i] / b[i];
  out[n + i] = __builtin_sqrt(__builtin_fabs(a[i]));
  out[2 * n + i] = __builtin_fma(a[i], b[i], 0.75);
  out[3 * n + i] = __builtin_floor(a[i]) + __builtin_ceil(b[i]) + __builtin_trunc(a[i] * 3) + __builtin_rint(b[i] * 5);
  out[4 * n + i] = __builtin_fmin(a[i], b[i]) * 2 + __builtin_fmax(a[i], b[i]);
  out[5 * n + i] = __builtin_ldexp(a[i], (int)(b[i] * 4));
  out[6 * n + i] = (double)(float)a[i] + (double)(int)(b[i] * 1000) + (double)(u32)__builtin_fabs(a[i] * 1000);
  out[7 * n + i] = a[i] < b[i] ? a[i] - b[i] : b[i] == a[i] ? 1 : a[i] * b[i];
}

// Quotients over the whole range: operands and results near overflow, underflow and denormal.
KERNEL void division(const float* a, const float* b, const double* c, const double* d, float* out, double* wide, int n) {
  int i = GTID;
  if (i >= n) return;
  out[i] = a[i] / b[i];
  wide[i] = c[i] / d[i];
}

KERNEL void float_math(const float* a, const float* b, float* out, int n) {
  int i = GTID;
  if (i >= n) return;
  float x = a[i], y = b[i];
  out[i] = x / y;
  out[n + i] = __builtin_sqrtf(__builtin_fabsf(x));
  out[2 * n + i] = __builtin_amdgcn_fmed3f(x, y, 0.5f);
  out[3 * n + i] = __builtin_amdgcn_fractf(x) + __builtin_truncf(y * 7) + __builtin_rintf(x * 3);
  out[4 * n + i] = __builtin_amdgcn_frexp_mantf(x) + __builtin_amdgcn_frexp_expf(y);
  out[5 * n + i] = __builtin_amdgcn_ldexpf(x, i % 20 - 10);
  out[6 * n + i] = __builtin_amdgcn_classf(x, 0x3f8) ? 1.0f : __builtin_fminf(x, y) + __builtin_fmaxf(x, y) * 4;
  out[7 * n + i] = (float)(int)(x * 100) + (float)(u32)__builtin_fabsf(y * 100) + (float)(u8)i;
  out[8 * n + i] = __builtin_copysignf(x, y);
  out[9 * n + i] = __builtin_fmaf(x, y, 1.0f);
}

typedef f16 half2 __attribute__((ext_vector_type(2)));
KERNEL void half_packed(const half2* a, const half2* b, half2* out, float* dots, int n) {
  int i = GTID;
  if (i >= n) return;
  half2 x = a[i], y = b[i];
  out[i] = x + y;
  out[n + i] = x * y - x;
  out[2 * n + i] = __builtin_elementwise_fma(x, y, x);
  out[3 * n + i] = __builtin_elementwise_min(x, y);
  out[4 * n + i] = __builtin_elementwise_max(x, -y);
  out[5 * n + i] = __builtin_shufflevector(x, y, 1, 2) + y;
  dots[i] = __builtin_amdgcn_fdot2(x, y, 0.5f, false);
}

KERNEL void half_math(const f16* a, const f16* b, f16* out, int n) {
  int i = GTID;
  if (i >= n) return;
  f16 x = a[i], y = b[i];
  out[i] = x + y * x;
  out[n + i] = x / y;
  out[2 * n + i] = (f16)__builtin_sqrtf16((f16)__builtin_fabsf16(x));
  out[3 * n + i] = __builtin_floorf16(x) + __builtin_ceilf16(y) + __builtin_truncf16(x);
  out[4 * n + i] = x < y ? __builtin_fmaf16(x, y, x) : __builtin_fmaxf16(x, y);
  out[5 * n + i] = (f16)(short)(x * (f16)8) + (f16)(u16)__builtin_fabsf16(y * (f16)8);
  out[6 * n + i] = (f16)((float)x * (float)y);
}

typedef short short2v __attribute__((ext_vector_type(2)));
typedef u16 ushort2v __attribute__((ext_vector_type(2)));
KERNEL void short_packed(const short2v* a, const short2v* b, short2v* out, int n) {
  int i = GTID;
  if (i >= n) return;
  short2v x = a[i], y = b[i];
  out[i] = x + y;
  out[n + i] = x - y;
  out[2 * n + i] = x * y + x;
  out[3 * n + i] = __builtin_elementwise_min(x, y);
  out[4 * n + i] = __builtin_elementwise_max(x, y);
  out[5 * n + i] = x << (y & 15);
  out[6 * n + i] = x >> (y & 15);
  out[7 * n + i] = (short2v)(__builtin_bit_cast(ushort2v, x) >> (__builtin_bit_cast(ushort2v, y) & (u16)15));
  out[8 * n + i] = __builtin_elementwise_add_sat(x, y);
  out[9 * n + i] = __builtin_elementwise_sub_sat(x, y);
}

KERNEL void integer_tricks(const u32* a, const u32* b, u32* out, int n) {
  int i = GTID;
  if (i >= n) return;
  u32 x = a[i], y = b[i];
  int slot = 0;
#define PUT(value) out[n * slot++ + i] = (u32)(value)
  PUT(__builtin_popcount(x) + __builtin_clz(x | 1) * 100 + __builtin_ctz(y | 1u << 31) * 10000);
  PUT(__builtin_bitreverse32(x) ^ __builtin_bswap32(y));
  PUT(__builtin_amdgcn_perm(x, y, 0x07020500));
  PUT(__builtin_amdgcn_alignbit(x, y, 13) ^ __builtin_amdgcn_alignbyte(x, y, 3));
  PUT(__builtin_amdgcn_ubfe(x, y & 31, 9) + __builtin_amdgcn_sbfe((int)y, 5, 11));
  PUT((x & 0xffffff) * (y & 0xffffff));
  PUT((int)(x << 8) / (int)((y >> 20) | 1));
  PUT(x % (y | 1));
  PUT(__builtin_elementwise_add_sat(x, y));
  PUT(__builtin_elementwise_sub_sat((int)x, (int)y));
  PUT(((u64)x * y) >> 32);
  PUT(((i64)(int)x * (int)y) >> 32);
  PUT(__builtin_amdgcn_sad_u8(x, y, 17) + __builtin_amdgcn_msad_u8(x, y, 3));
  PUT(__builtin_amdgcn_sdot4(x, y, 100, false));
  PUT(__builtin_amdgcn_udot4(x, y, 7u, false));
  PUT(__builtin_amdgcn_sdot8(x, y, 3, false) + __builtin_amdgcn_udot8(x, y, 3u, false));
  PUT(x << (y & 31) | x >> (-y & 31));
  PUT((x & y) | (~x & (y >> 3)));
  PUT((int)x > (int)y ? ((int)x >> (y & 31)) : (int)(y >> (x & 31)));
  PUT(x < y ? x - y : (x ^ y) + 5);
}

KERNEL void long_math(const u64* a, const u64* b, u64* out, int n) {
  int i = GTID;
  if (i >= n) return;
  u64 x = a[i], y = b[i];
  int slot = 0;
#define PUTL(value) out[n * slot++ + i] = (u64)(value)
  PUTL(x + y);
  PUTL(x - y);
  PUTL(x * y);
  PUTL(x / (y | 1));
  PUTL((i64)x % (i64)((y >> 17) | 1));
  PUTL(x << (y & 63) ^ x >> (y & 63));
  PUTL((i64)x >> (y & 63));
  PUTL(x < y ? 1 : (i64)x > (i64)y ? 2 : 3);
  PUTL(__builtin_popcountll(x) + __builtin_clzll(x | 1) * 1000 + __builtin_ctzll(y | 1ul << 63) * 100000);
  PUTL((u64)(double)(x >> 12) + (u64)(float)(u32)y);
  PUTL(((unsigned __int128)x * y) >> 64);
}

KERNEL void conversions(const float* a, u32* out, int n) {
  int i = GTID;
  if (i >= n) return;
  float x = a[i], y = a[(i + 1) % n];
  int slot = 0;
  PUT(__builtin_bit_cast(u32, __builtin_amdgcn_cvt_pkrtz(x, y)));
  PUT(__builtin_bit_cast(u32, __builtin_amdgcn_cvt_pknorm_i16(x * 0.01f, y * 0.01f)));
  PUT(__builtin_bit_cast(u32, __builtin_amdgcn_cvt_pknorm_u16(x * 0.01f, y * 0.01f)));
  PUT(__builtin_amdgcn_cvt_pk_u8_f32(x, 2, 0x11223344));
  PUT(__builtin_bit_cast(u32, __builtin_amdgcn_cvt_pk_i16(i * 70000, -i * 50)));
  PUT((u32)(u8)(i * 3) + __builtin_bit_cast(u32, (float)(u8)(i >> 1)));
  PUT(__builtin_bit_cast(u16, (f16)x));
}

KERNEL void fp8_native(const float* a, u32* packed, float* back, int n) {
  int i = GTID;
  if (i >= n) return;
  int word = __builtin_amdgcn_cvt_pk_fp8_f32(a[i], a[(i + 1) % n], 0, false);
  word = __builtin_amdgcn_cvt_pk_bf8_f32(a[i], a[(i + 1) % n], word, true);
  packed[i] = word;
  back[i] = __builtin_amdgcn_cvt_f32_fp8(word, 1);
  back[n + i] = __builtin_amdgcn_cvt_f32_bf8(word, 2);
}

KERNEL void matrix_inverse(const double* in, double* out, int n) {
  int i = GTID;
  if (i >= n) return;
  double m[4][8];
  for (int r = 0; r < 4; r++)
    for (int c = 0; c < 4; c++) { m[r][c] = in[i * 16 + r * 4 + c]; m[r][c + 4] = r == c; }
  for (int p = 0; p < 4; p++) {
    int best = p;
    for (int r = p + 1; r < 4; r++)
      if (__builtin_fabs(m[r][p]) > __builtin_fabs(m[best][p])) best = r;
    for (int c = 0; c < 8; c++) { double t = m[p][c]; m[p][c] = m[best][c]; m[best][c] = t; }
    double scale = 1 / m[p][p];
    for (int c = 0; c < 8; c++) m[p][c] *= scale;
    for (int r = 0; r < 4; r++)
      if (r != p) {
        double f = m[r][p];
        for (int c = 0; c < 8; c++) m[r][c] -= f * m[p][c];
      }
  }
  for (int r = 0; r < 4; r++)
    for (int c = 0; c < 4; c++) out[i * 16 + r * 4 + c] = m[r][c + 4];
}

KERNEL void rounding_mode(const float* a, float* out, int n) {
  int i = GTID;
  if (i >= n) return;
  volatile float x = a[i];
  __builtin_amdgcn_s_setreg(0x801 | 0 << 6, 3);  // MODE.round for fp32: towards zero (hwreg 1, offset 0, width 2)
  volatile float down = x + 1e-9f;
  __builtin_amdgcn_s_setreg(0x801 | 0 << 6, 0);
  volatile float near = x + 1e-9f;
  out[i] = down;
  out[n + i] = near;
}
