// 64-bit integer and float operations. Results go through `out`, because register pairs of sources and destination may
// overlap by one register.
#include "core.h"
#include <math.h>

static inline f32 lane_float(const u32 *p, int i) { return as_f32(p[i]); }
static inline i32 lane_int(const u32 *p, int i) { return (i32)p[i]; }
static inline u32 lane_uint(const u32 *p, int i) { return p[i]; }
static inline void put32(u32 *p, int i, u32 value) { p[i] = value; }

static inline f64 fract64(f64 x) {
  f64 rest = x - __builtin_floor(x);
  return rest < 0x1.fffffffffffffp-1 || rest != rest ? rest : 0x1.fffffffffffffp-1;
}
static inline f64 min64(f64 a, f64 b) {
  if (a != a) return b;
  if (b != b) return a;
  return a == b ? as_f64(bits64(a) | bits64(b)) : a < b ? a : b;
}
static inline f64 max64(f64 a, f64 b) {
  if (a != a) return b;
  if (b != b) return a;
  return a == b ? as_f64(bits64(a) & bits64(b)) : a > b ? a : b;
}
static f64 mantissa64(f64 x) {
  int exponent;
  return __builtin_isfinite(x) ? frexp(x, &exponent) : x;
}
static u32 exponent64(f64 x) {
  int exponent = 0;
  if (__builtin_isfinite(x) && x != 0) frexp(x, &exponent);
  return (u32)exponent;
}
static f64 scale64(f64 x, i32 exponent) { return ldexp(x, exponent < -4000 ? -4000 : exponent > 4000 ? 4000 : exponent); }
static inline u32 to_i32(f64 x) {
  return (u32)(x >= 2147483647.0 ? INT32_MAX : x <= -2147483648.0 ? INT32_MIN : x != x ? 0 : (i32)x);
}
static inline u32 to_u32(f64 x) { return x >= 4294967295.0 ? ~0u : x > 0 ? (u32)(i64)x : 0; }

static f64 div_fixup64(f64 quotient, f64 d, f64 n) {
  u64 sign = (bits64(d) ^ bits64(n)) & 1ull << 63;
  if (n != n) return as_f64(bits64(n) | 1ull << 51);
  if (d != d) return as_f64(bits64(d) | 1ull << 51);
  if ((d == 0 && n == 0) || (__builtin_isinf(d) && __builtin_isinf(n))) return as_f64(0xfff8000000000000ull);
  if (d == 0 || __builtin_isinf(n)) return as_f64(sign | 0x7ff0000000000000ull);
  if (__builtin_isinf(d) || n == 0) return as_f64(sign);
  i32 en = (i32)(bits64(n) >> 52 & 2047), ed = (i32)(bits64(d) >> 52 & 2047);
  if (en - ed < -1075) return as_f64(sign);
  if (quotient != quotient) return as_f64(sign | 0x7ff0000000000000ull);
  return as_f64((bits64(quotient) & ~(1ull << 63)) | sign);
}

// 53 bits of 2/pi starting at bit 53 * segment, for the argument reduction of large angles; scaled so that the product
// with the argument keeps its weight.
static f64 two_over_pi(f64 x, u32 segment) {
  static const u32 digits[] = {0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab,
                               0xdebbc561, 0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e,
                               0xe88235f5, 0x2ebb4484, 0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b,
                               0xbdf9283b, 0x1ff897ff, 0xde05980f, 0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7,
                               0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b, 0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1,
                               0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20};
  i32 exponent = (i32)(bits64(x) >> 52 & 2047);
  u32 shift = (segment & 31) * 53 + (exponent > 1077 ? (u32)(exponent - 1077) : 0);
  u64 value = 0;
  for (u32 k = 0; k < 53; k++) {
    u32 at = shift + k;
    value = value << 1 | (at / 32 < sizeof digits / 4 ? digits[at / 32] >> (31 - at % 32) & 1 : 0);
  }
  i32 power = -53 - (i32)shift + (exponent >= 0x7b0 ? 128 : 0);
  return ldexp((f64)value, power);
}

static u32 byte_differences(u32 a, u32 b, int masked) {
  u32 sum = 0;
  for (int k = 0; k < 32; k += 8) {
    u32 x = a >> k & 255, y = b >> k & 255;
    if (!masked || y) sum += x > y ? x - y : y - x;
  }
  return sum;
}
static u64 quad_differences(u64 a, u32 b, u64 c, int masked) {
  u64 out = 0;
  for (int q = 0; q < 4; q++)
    out |= (u64)(u16)((u32)(c >> 16 * q) + byte_differences((u32)(a >> 8 * q), b, masked)) << 16 * q;
  return out;
}
static void v_mqsad_u32_u8(wave *w, const record *r) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1), *C = w->v + (u64)r->src[2].index * LANES;
  u32 sums[4 * LANES];
  if (r->src[2].kind != VECTOR) return found(w, r, NEEDS, -1, 0, 0, 2);
  for (int q = 0; q < 4; q++)
    for (int i = 0; i < LANES; i++)
      sums[q * LANES + i] = C[q * LANES + i] + byte_differences((u32)(lane64(A, i) >> 8 * q), B[i], 1);
  write_rows(w, r->dst[0].index, sums, 4, EXEC(w));
}

#define WUNARY(NAME, READ_A, TA, PUT, EXPR)                                               \
  static void NAME(wave *w, const record *r) {                                            \
    const u32 *A = source(w, r, 0);                                                       \
    u32 *D = w->out;                                                                      \
    for (int i = 0; i < LANES; i++) { TA a = READ_A(A, i); PUT(D, i, EXPR); }             \
    finish_wide(w, r);                                                                    \
  }
#define WBINARY(NAME, READ_A, TA, READ_B, TB, PUT, EXPR)                                  \
  static void NAME(wave *w, const record *r) {                                            \
    const u32 *A = source(w, r, 0), *B = source(w, r, 1);                                 \
    u32 *D = w->out;                                                                      \
    for (int i = 0; i < LANES; i++) { TA a = READ_A(A, i); TB b = READ_B(B, i); PUT(D, i, EXPR); } \
    finish_wide(w, r);                                                                    \
  }
#define WTERNARY(NAME, READ_A, TA, READ_B, TB, READ_C, TC, PUT, EXPR)                     \
  static void NAME(wave *w, const record *r) {                                            \
    const u32 *A = source(w, r, 0), *B = source(w, r, 1), *C = source(w, r, 2);           \
    u32 *D = w->out;                                                                      \
    for (int i = 0; i < LANES; i++) {                                                     \
      TA a = READ_A(A, i); TB b = READ_B(B, i); TC c = READ_C(C, i);                      \
      PUT(D, i, EXPR);                                                                    \
    }                                                                                     \
    finish_wide(w, r);                                                                    \
  }
#include "wide.def"

static void v_mad_u64_u32(wave *w, const record *r) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1), *C = source(w, r, 2);
  u32 *D = w->out;
  u64 carries = 0, exec = EXEC(w);
  for (int i = 0; i < LANES; i++) {
    u64 product = (u64)A[i] * B[i], sum = product + lane64(C, i);
    carries |= (u64)(sum < product) << i;
    put64(D, i, sum);
  }
  finish_wide(w, r);
  set_pair(w, r->dst[1].index, carries & exec);
}
static void v_mad_i64_i32(wave *w, const record *r) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1), *C = source(w, r, 2);
  u32 *D = w->out;
  u64 carries = 0, exec = EXEC(w);
  for (int i = 0; i < LANES; i++) {
    __int128 sum = (__int128)((i64)(i32)A[i] * (i32)B[i]) + (i64)lane64(C, i);  // 65 bits; the highest is the carry
    carries |= (u64)(sum >> 64 & 1) << i;
    put64(D, i, (u64)sum);
  }
  finish_wide(w, r);
  set_pair(w, r->dst[1].index, carries & exec);
}

static void v_div_scale_f64(wave *w, const record *r) {
  const u32 *X = source(w, r, 0), *DEN = source(w, r, 1), *NUM = source(w, r, 2);
  u32 *D = w->out;
  u64 flags = 0, exec = EXEC(w);
  for (int i = 0; i < LANES; i++) {
    f64 x = lane_f64(X, i), d = lane_f64(DEN, i), n = lane_f64(NUM, i), result = x;
    i32 ed = (i32)(bits64(d) >> 52 & 2047), en = (i32)(bits64(n) >> 52 & 2047);
    bool is_denominator = bits64(x) == bits64(d), flag = false;
    f64 inverse = 1.0 / d, quotient = n / d;
    bool tiny_reciprocal = inverse != 0 && fabs(inverse) < 0x1p-1022;
    bool tiny_quotient = n != 0 && !isinf(d) && fabs(quotient) < 0x1p-1022;
    if (d == 0 || n == 0) {
      result = as_f64(0x7ff8000000000000ull);
    } else if (en - ed >= 768) {
      flag = true;
      if (is_denominator) result = ldexp(x, 128);
    } else if (ed == 0) {
      result = ldexp(x, 128);
    } else if (tiny_reciprocal && tiny_quotient) {
      flag = true;
      if (is_denominator) result = ldexp(x, -128);
    } else if (tiny_reciprocal) {
      result = ldexp(x, -128);
    } else if (tiny_quotient) {
      flag = true;
      if (bits64(x) == bits64(n)) result = ldexp(x, 128);
    } else if (en <= 53) {
      result = ldexp(x, 128);
    }
    put_f64(D, i, result);
    flags |= (u64)flag << i;
  }
  finish_wide(w, r);
  set_pair(w, r->dst[1].index, flags & exec);
}

static void v_div_fmas_f64(wave *w, const record *r) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1), *C = source(w, r, 2);
  u32 *D = w->out;
  u64 flags = VCC(w);
  for (int i = 0; i < LANES; i++) {
    f64 value = fma(lane_f64(A, i), lane_f64(B, i), lane_f64(C, i));
    bool large = (bits64(lane_f64(C, i)) >> 52 & 2047) > 1023;
    put_f64(D, i, flags >> i & 1 ? ldexp(value, large ? 128 : -128) : value);
  }
  finish_wide(w, r);
}

// The low result comes from source 0, the high one from source 1; op_sel (not op_sel_hi) picks the dword of each, which
// happened when they were fetched.
static void v_pk_mov_b32(wave *w, const record *r) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1);
  u32 second[LANES];
  memcpy(second, B, sizeof second);
  memcpy(w->out, A, LANES * 4);
  memcpy(w->out + LANES, second, LANES * 4);
  finish_wide(w, r);
}

#undef WUNARY
#undef WBINARY
#undef WTERNARY
#define WUNARY(NAME, ...) {#NAME, NAME, MODE_64},
#define WBINARY(NAME, ...) {#NAME, NAME, MODE_64},
#define WTERNARY(NAME, ...) {#NAME, NAME, MODE_64},
const entry wide_table[] = {
#include "wide.def"
    {"v_mad_u64_u32", v_mad_u64_u32, 0},
    {"v_mad_i64_i32", v_mad_i64_i32, 0},
    {"v_div_scale_f64", v_div_scale_f64, MODE_64},
    {"v_div_fmas_f64", v_div_fmas_f64, MODE_64},
    {"v_pk_mov_b32", v_pk_mov_b32, 0},
    {"v_mqsad_u32_u8", v_mqsad_u32_u8, CUSTOM},
    {0, 0, 0},
};
