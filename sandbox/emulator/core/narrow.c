// Conversions between f32 and the narrow float formats.
#include "core.h"
#include <math.h>
#if defined(__AVX2__) && defined(__F16C__)
#include <immintrin.h>
#define HAVE_F16C 1
#endif

f32 half_to_float(u32 half) {
  u32 sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, mantissa = half & 1023;
  if (exponent == 31) return as_f32(sign | 0x7f800000 | mantissa << 13);
  if (exponent) return as_f32(sign | (exponent + 112) << 23 | mantissa << 13);
  f32 tiny = (f32)(i32)mantissa * 0x1p-24f;
  return as_f32(sign | bits32(tiny));
}

// Magnitude bits `value` shifted right by `shift`, rounded to nearest even.
static u64 round_shift(u64 value, int shift) {
  if (shift <= 0) return value << -shift;
  if (shift > 63) return 0;
  u64 half = 1ull << (shift - 1), rest = value & ((1ull << shift) - 1), kept = value >> shift;
  return kept + (rest > half || (rest == half && (kept & 1)));
}

u32 double_to_half(f64 value) {
  u64 bits = bits64(value);
  u32 sign = (u32)(bits >> 48) & 0x8000;
  i32 exponent = (i32)(bits >> 52 & 2047) - 1023;
  if (exponent == 1024) return sign | (bits << 12 ? 0x7e00 | (u32)(bits >> 42 & 1023) : 0x7c00);
  if (exponent < -26) return sign;
  u64 mantissa = (bits & 0xfffffffffffffull) | 1ull << 52;
  if (exponent < -14) return sign | (u32)round_shift(mantissa, 42 + (-14 - exponent));
  u64 rounded = round_shift(mantissa, 42) + ((u64)(exponent + 14) << 10);
  return sign | (rounded >= 0x7c00 ? 0x7c00 : (u32)rounded);
}

u32 float_to_half(f32 value) { return double_to_half((f64)value); }

u32 float_to_half_zero(f32 value) {
  u32 bits = bits32(value), sign = bits >> 16 & 0x8000;
  i32 exponent = (i32)(bits >> 23 & 255) - 127;
  u32 mantissa = bits & 0x7fffff;
  if (exponent == 128) return sign | (mantissa ? 0x7e00 | mantissa >> 13 : 0x7c00);
  if (exponent > 15) return sign | 0x7bff;
  if (exponent < -24) return sign;
  if (exponent < -14) return sign | (mantissa | 0x800000) >> (-1 - exponent);
  return sign | (u32)(exponent + 15) << 10 | mantissa >> 13;
}

void halves_to_floats(const u32 *halves, f32 *out) {
#if HAVE_F16C
  for (int i = 0; i < LANES; i += 8) {
    __m256i x = _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(halves + i)), _mm256_set1_epi32(0xffff));
    __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(packed));
  }
#else
  for (int i = 0; i < LANES; i++) out[i] = half_to_float(halves[i]);
#endif
}

void floats_to_halves(const f32 *in, u32 *out) {
#if HAVE_F16C
  for (int i = 0; i < LANES; i += 8) {
    __m128i packed = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
    _mm256_storeu_si256((__m256i *)(out + i), _mm256_cvtepu16_epi32(packed));
  }
#else
  for (int i = 0; i < LANES; i++) out[i] = float_to_half(in[i]);
#endif
}

u32 float_to_bf16(f32 value) {
  u32 bits = bits32(value);
  if (value != value) return bits >> 16 | 0x40;
  return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// Eight-bit floats. OCP (gfx950): e4m3 without infinities, e5m2 as a short half. FNUZ (gfx942): one more bias, no
// negative zero, 0x80 is the only NaN.
f32 fp8_to_float(u32 byte, int e5m2, int ocp) {
  int fraction = e5m2 ? 2 : 3, bias = (e5m2 ? 15 : 7) + (ocp ? 0 : 1), top = e5m2 ? 31 : 15;
  u32 mantissa = byte & ((1u << fraction) - 1), exponent = byte >> fraction & (u32)top;
  f32 sign = byte & 128 ? -1.0f : 1.0f;
  if (!ocp && byte == 0x80) return as_f32(0x7fc00000);
  if (ocp && e5m2 && (int)exponent == top) return mantissa ? as_f32(0x7fc00000) : sign * __builtin_inff();
  if (ocp && !e5m2 && (byte & 127) == 127) return as_f32(0x7fc00000);
  if (!exponent) return sign * ldexpf((f32)mantissa, 1 - bias - fraction);
  return sign * ldexpf((f32)(mantissa | 1u << fraction), (int)exponent - bias - fraction);
}

// What stands for infinity: there is one only in OCP e5m2.
static u32 overflowed(u32 sign, int e5m2, int ocp) { return !ocp ? 0x80 : sign | (e5m2 ? 0x7c : 0x7f); }

static u32 encode_fp8(u32 sign, u64 magnitude, int exponent, int e5m2, int ocp, int saturate, u64 noise, int noise_bits) {
  int fraction = e5m2 ? 2 : 3, bias = (e5m2 ? 15 : 7) + (ocp ? 0 : 1);
  int least = 1 - bias, shift = 23 - fraction + (exponent < least ? least - exponent : 0);
  u64 rounded;
  if (noise_bits) {
    u64 added = shift < 60 ? magnitude + (noise >> (32 - (shift > 32 ? 32 : shift)) << (shift > 32 ? shift - 32 : 0)) : 0;
    rounded = shift < 60 ? added >> shift : 0;
  } else {
    rounded = round_shift(magnitude, shift);
  }
  if (exponent >= least) rounded += (u64)(exponent - least) << fraction;
  u32 largest = ocp ? (e5m2 ? 0x7b : 0x7e) : 0x7f;
  if (rounded > largest) return saturate ? sign | largest : overflowed(sign, e5m2, ocp);
  return !ocp && rounded == 0 ? 0 : sign | (u32)rounded;
}

static u32 to_fp8(f32 value, int e5m2, int ocp, int saturate, u64 noise, int noise_bits) {
  u32 bits = bits32(value), sign = bits >> 24 & 128;
  i32 exponent = (i32)(bits >> 23 & 255) - 127;
  if (value != value) return ocp ? sign | (e5m2 ? 0x7e : 0x7f) : 0x80;
  if (__builtin_isinf(value)) return overflowed(sign, e5m2, ocp);
  if (value == 0) return ocp ? sign : 0;
  u64 magnitude = bits & 0x7fffff;
  if (exponent == -127) exponent = -126; else magnitude |= 0x800000;
  return encode_fp8(sign, magnitude, exponent, e5m2, ocp, saturate, noise, noise_bits);
}
u32 float_to_fp8(f32 value, int e5m2, int ocp, int saturate) { return to_fp8(value, e5m2, ocp, saturate, 0, 0); }
u32 float_to_fp8_random(f32 value, u32 random, int e5m2, int ocp, int saturate) {
  return to_fp8(value, e5m2, ocp, saturate, random, 32);
}

f32 fp4_to_float(u32 nibble) {
  static const f32 values[8] = {0, 0.5f, 1, 1.5f, 2, 3, 4, 6};
  return nibble & 8 ? -values[nibble & 7] : values[nibble & 7];
}
u32 float_to_fp4(f32 value) {
  u32 sign = bits32(value) >> 28 & 8;
  f32 x = __builtin_fabsf(value);
  if (x != x) return sign | 7;
  u32 code = x <= 0.25f ? 0 : x < 0.75f ? 1 : x <= 1.25f ? 2 : x < 1.75f ? 3 : x <= 2.5f ? 4 : x < 3.5f ? 5 : x <= 5 ? 6 : 7;
  return sign | code;
}
f32 fp6_to_float(u32 bits, int e3m2) {
  int fraction = e3m2 ? 2 : 3, bias = e3m2 ? 3 : 1;
  u32 mantissa = bits & ((1u << fraction) - 1), exponent = bits >> fraction & (e3m2 ? 7 : 3);
  f32 sign = bits & 32 ? -1.0f : 1.0f;
  if (!exponent) return sign * ldexpf((f32)mantissa, 1 - bias - fraction);
  return sign * ldexpf((f32)(mantissa | 1u << fraction), (int)exponent - bias - fraction);
}
