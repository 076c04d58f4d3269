// 32-bit float operations.
#include "core.h"
#include <math.h>
#include "lanes.h"

// 2^x in double precision: 2^rint(x) times a polynomial in the rest; correct to well below one f32 ulp.
static inline f32 exp2_f32(f32 x) {
  f64 bounded = x < -200.0f ? -200.0 : x > 200.0f ? 200.0 : (f64)x;
  f64 shifted = bounded + 6755399441055744.0;  // 1.5 * 2^52: the sum's low bits hold rint(x)
  f64 f = bounded - (shifted - 6755399441055744.0);
  f64 p = 1.5252733804059841e-05;
  p = p * f + 1.5403530393381608e-04;
  p = p * f + 1.3333558146428443e-03;
  p = p * f + 9.6181291076284770e-03;
  p = p * f + 5.5504108664821580e-02;
  p = p * f + 2.4022650695910072e-01;
  p = p * f + 6.9314718055994531e-01;
  p = p * f + 1.0;
  u64 exponent = (bits64(shifted) + 1023) << 52;
  f32 result = (f32)(p * as_f64(exponent));
  return x != x ? x : result;
}

// log2 in double precision: exponent plus an odd series in (m - 1) / (m + 1), m in [sqrt(1/2), sqrt(2)).
static inline f32 log2_f32(f32 x) {
  f64 wide = (f64)x;
  u64 bits = bits64(wide);
  u64 shifted = bits - 0x3fe6a09e667f3bcdull;
  f64 exponent = (f64)(i32)((i64)shifted >> 52);
  f64 m = as_f64(bits - (shifted & 0xfff0000000000000ull));
  f64 s = (m - 1.0) / (m + 1.0), q = s * s;
  f64 p = 1.0 / 15;
  p = p * q + 1.0 / 13;
  p = p * q + 1.0 / 11;
  p = p * q + 1.0 / 9;
  p = p * q + 1.0 / 7;
  p = p * q + 1.0 / 5;
  p = p * q + 1.0 / 3;
  p = p * q + 1.0;
  f32 result = (f32)(exponent + s * p * 2.8853900817779268);
  result = x == 0 ? -__builtin_inff() : result;
  result = x == __builtin_inff() ? x : result;
  return x != x ? x : x < 0 ? as_f32(0x7fc00000) : result;
}

// Sine and cosine of an angle in revolutions; constant outside the valid range of 256 turns.
static f32 sine32(f32 x) {
  if (__builtin_fabsf(x) > 256 && !__builtin_isinf(x)) return 0;
  return (f32)sin(6.283185307179586 * fmod((f64)x, 1.0));
}
static f32 cosine32(f32 x) {
  if (__builtin_fabsf(x) > 256 && !__builtin_isinf(x)) return 1;
  return (f32)cos(6.283185307179586 * fmod((f64)x, 1.0));
}

// Instructions without denormal support, whatever MODE says.
static inline f32 flushed(f32 x) { return __builtin_fabsf(x) < 0x1p-126f ? as_f32(bits32(x) & 0x80000000u) : x; }

static inline f32 fract32(f32 x) {
  f32 rest = x - __builtin_floorf(x);
  return rest < 0x1.fffffep-1f || rest != rest ? rest : 0x1.fffffep-1f;
}

// IEEE minNum and maxNum: a NaN loses against a number, -0 is below +0.
static inline f32 min32(f32 a, f32 b) {
  f32 least = a == b ? as_f32(bits32(a) | bits32(b)) : a < b ? a : b;
  return a != a ? b : b != b ? a : least;
}
static inline f32 max32(f32 a, f32 b) {
  f32 most = a == b ? as_f32(bits32(a) & bits32(b)) : a > b ? a : b;
  return a != a ? b : b != b ? a : most;
}
static inline f32 minimum32(f32 a, f32 b) { return a != a ? a : b != b ? b : min32(a, b); }
static inline f32 maximum32(f32 a, f32 b) { return a != a ? a : b != b ? b : max32(a, b); }
static inline f32 median32(f32 a, f32 b, f32 c) {
  f32 least = min32(min32(a, b), c);
  return a != a || b != b || c != c ? least : max32(min32(a, b), min32(max32(a, b), c));
}

// Faces of a cube map: the coordinate of the largest magnitude, z before y before x, gives the axis.
static inline u32 cube_axis(f32 x, f32 y, f32 z) {
  f32 ax = __builtin_fabsf(x), ay = __builtin_fabsf(y), az = __builtin_fabsf(z);
  return az >= ax && az >= ay ? 2 : ay >= ax ? 1 : 0;
}
static inline f32 cube_major(f32 x, f32 y, f32 z) {
  u32 axis = cube_axis(x, y, z);
  return axis == 2 ? z : axis == 1 ? y : x;
}
static inline u32 cube_face(f32 x, f32 y, f32 z) { return 2 * cube_axis(x, y, z) + (cube_major(x, y, z) < 0); }
static inline f32 cube_s(f32 x, f32 y, f32 z) {
  u32 axis = cube_axis(x, y, z);
  return axis == 2 ? (z < 0 ? -x : x) : axis == 1 ? x : x < 0 ? z : -z;
}
static inline f32 cube_t(f32 x, f32 y, f32 z) { return cube_axis(x, y, z) != 1 ? -y : y < 0 ? -z : z; }

static inline f32 mantissa32(f32 x) {
  int exponent;
  return __builtin_isfinite(x) ? frexpf(x, &exponent) : x;
}
static inline i32 exponent32(f32 x) {
  int exponent = 0;
  if (__builtin_isfinite(x) && x != 0) frexpf(x, &exponent);
  return exponent;
}

// The exponent is applied in two exact steps where it is large, so that a denormal result is rounded once.
static inline f32 scale32(f32 x, i32 exponent) {
  i32 e = exponent < -400 ? -400 : exponent > 400 ? 400 : exponent;
  return (f32)((f64)x * as_f64((u64)(1023 + e) << 52));
}

static inline i32 to_i32(f32 x) {
  return x >= 2147483648.0f ? 2147483647 : x < -2147483648.0f ? -2147483647 - 1 : x != x ? 0 : (i32)x;
}
static inline u32 to_u32(f32 x) { return x >= 4294967296.0f ? ~0u : x > 0 ? (u32)(i64)x : 0; }

// Last step of a division: a quotient estimate, the denominator and the numerator; settles the special cases.
static f32 div_fixup32(f32 quotient, f32 denominator, f32 numerator) {
  u32 sign = (bits32(denominator) ^ bits32(numerator)) & 0x80000000u;
  f32 d = denominator, n = numerator;
  if (n != n) return as_f32(bits32(n) | 0x400000);
  if (d != d) return as_f32(bits32(d) | 0x400000);
  if ((d == 0 && n == 0) || (__builtin_isinf(d) && __builtin_isinf(n))) return as_f32(0xffc00000u);
  if (d == 0 || __builtin_isinf(n)) return as_f32(sign | 0x7f800000u);
  if (__builtin_isinf(d) || n == 0) return as_f32(sign);
  i32 en = (i32)(bits32(n) >> 23 & 255), ed = (i32)(bits32(d) >> 23 & 255);
  if (en - ed < -150) return as_f32(sign);
  if (ed == 255) return as_f32(sign);
  if (quotient != quotient) return as_f32(sign | 0x7f800000u);  // the steps before overflowed
  return as_f32((bits32(quotient) & 0x7fffffffu) | sign);
}

#include "float.def"

static void v_pk_fma_f32(wave *w, const record *r) {
  const f32 *A = source(w, r, 0), *B = source(w, r, 1), *C = source(w, r, 2);
  f32 *D = (f32 *)w->out;
  for (int i = 0; i < 2 * LANES; i++) D[i] = __builtin_fmaf(A[i], B[i], C[i]);
  finish_wide(w, r);
}
static void v_pk_mul_f32(wave *w, const record *r) {
  const f32 *A = source(w, r, 0), *B = source(w, r, 1);
  f32 *D = (f32 *)w->out;
  for (int i = 0; i < 2 * LANES; i++) D[i] = A[i] * B[i];
  finish_wide(w, r);
}
static void v_pk_add_f32(wave *w, const record *r) {
  const f32 *A = source(w, r, 0), *B = source(w, r, 1);
  f32 *D = (f32 *)w->out;
  for (int i = 0; i < 2 * LANES; i++) D[i] = A[i] + B[i];
  finish_wide(w, r);
}

// Division, first step: numerator or denominator scaled so that the iteration neither overflows nor underflows; true
// where the quotient has to be scaled back. `x` is the value to scale, `d` the denominator, `n` the numerator.
static bool scale_for_division(f32 x, f32 d, f32 n, f32 *result) {
  i32 ed = (i32)(bits32(d) >> 23 & 255), en = (i32)(bits32(n) >> 23 & 255);
  bool is_denominator = bits32(x) == bits32(d);
  bool tiny_quotient = n != 0 && !__builtin_isinf(d) && __builtin_fabs((f64)n / (f64)d) < 0x1p-126;
  bool tiny_reciprocal = !__builtin_isinf(d) && __builtin_fabs(1.0 / (f64)d) < 0x1p-126;
  *result = x;
  if (d == 0 || n == 0) {
    *result = as_f32(0x7fc00000);
  } else if (en - ed >= 96) {
    if (is_denominator) *result = scale32(x, 64);
    return true;
  } else if (ed == 0) {
    *result = scale32(x, 64);
  } else if (tiny_reciprocal && tiny_quotient) {
    if (is_denominator) *result = scale32(x, -64);
    return true;
  } else if (tiny_reciprocal) {
    *result = scale32(x, -64);
  } else if (tiny_quotient) {
    if (bits32(x) == bits32(n)) *result = scale32(x, 64);
    return true;
  } else if (en <= 23) {
    *result = scale32(x, 64);
  }
  return false;
}
// Lanes of which the exponents alone say that nothing has to be done are found first, many at a time.
static u64 unusual_division(const u32 *d, const u32 *n, u64 exec) {
  u32 unusual[LANES];
  EACH_LANE {
    i32 ed = (i32)(d[i] >> 23 & 255), en = (i32)(n[i] >> 23 & 255);
    unusual[i] = (ed < 1) | (ed > 252) | (en < 24) | (en > 254) | (en - ed > 95) | (en - ed < -124) ? ~0u : 0;
  }
  return pack_mask(unusual) & exec;
}
static void v_div_scale_f32(wave *w, const record *r) {
  const f32 *X = source(w, r, 0), *DEN = source(w, r, 1), *NUM = source(w, r, 2);
  f32 *D = (f32 *)w->out;
  u64 exec = EXEC(w), flags = 0, rest = unusual_division((const u32 *)DEN, (const u32 *)NUM, exec);
  EACH_LANE D[i] = X[i];
  for (; rest; rest &= rest - 1) {
    int i = __builtin_ctzll(rest);
    flags |= (u64)scale_for_division(X[i], DEN[i], NUM[i], &D[i]) << i;
  }
  write_result(w, r, (u32 *)D);
  set_pair(w, r->dst[1].index, flags);
}
static void v_div_fixup_f32(wave *w, const record *r) {
  const u32 *Q = source(w, r, 0), *DEN = source(w, r, 1), *NUM = source(w, r, 2);
  u32 *D = w->out;
  u32 not_a_number[LANES];
  EACH_LANE {
    D[i] = (Q[i] & 0x7fffffffu) | ((DEN[i] ^ NUM[i]) & 0x80000000u);
    not_a_number[i] = (Q[i] & 0x7fffffffu) > 0x7f800000u ? ~0u : 0;
  }
  u64 rest = (unusual_division(DEN, NUM, ~0ull) | pack_mask(not_a_number)) & EXEC(w);
  for (; rest; rest &= rest - 1) {
    int i = __builtin_ctzll(rest);
    D[i] = bits32(div_fixup32(as_f32(Q[i]), as_f32(DEN[i]), as_f32(NUM[i])));
  }
  write_result(w, r, D);
}

static void v_div_fmas_f32(wave *w, const record *r) {
  const f32 *A = source(w, r, 0), *B = source(w, r, 1), *C = source(w, r, 2);
  f32 *D = (f32 *)w->out;
  u64 flags = VCC(w) & EXEC(w);
  EACH_LANE D[i] = __builtin_fmaf(A[i], B[i], C[i]);
  for (; flags; flags &= flags - 1) {
    int i = __builtin_ctzll(flags);
    // in double, so that a subnormal quotient is rounded once
    D[i] = (f32)(((f64)A[i] * B[i] + C[i]) * ((bits32(C[i]) >> 23 & 255) > 127 ? 0x1p64 : 0x1p-64));
  }
  write_result(w, r, (u32 *)D);
}

static void v_fma_mix(wave *w, const record *r, f32 *D) {
  f32 widened[3][LANES];
  const f32 *in[3];
  for (int k = 0; k < 3; k++) {
    in[k] = source(w, r, k);
    if (r->op_sel_hi >> k & 1) {
      halves_to_floats((const u32 *)in[k], widened[k]);
      in[k] = widened[k];
    }
  }
  EACH_LANE D[i] = __builtin_fmaf(in[0][i], in[1][i], in[2][i]);
}
static void v_fma_mix_f32(wave *w, const record *r) {
  v_fma_mix(w, r, (f32 *)w->out);
  finish_wide(w, r);
}
static void v_fma_mix_half(wave *w, const record *r, int high) {
  f32 D[LANES];
  v_fma_mix(w, r, D);
  if (r->clamp)
    for (int i = 0; i < LANES; i++) D[i] = D[i] != D[i] || D[i] < 0 ? 0 : D[i] > 1 ? 1 : D[i];
  u32 *old = w->v + (u64)r->dst[0].index * LANES;
  floats_to_halves(D, w->out);
  EACH_LANE w->out[i] = high ? (old[i] & 0xffff) | w->out[i] << 16 : (old[i] & 0xffff0000u) | w->out[i];
  write_rows(w, r->dst[0].index, w->out, 1, EXEC(w));
}
static void v_fma_mixlo_f16(wave *w, const record *r) { v_fma_mix_half(w, r, 0); }
static void v_fma_mixhi_f16(wave *w, const record *r) { v_fma_mix_half(w, r, 1); }

#define TABLE
#include "lanes.h"
const entry float_table[] = {
#include "float.def"
    {"v_pk_fma_f32", v_pk_fma_f32, 0},
    {"v_pk_mul_f32", v_pk_mul_f32, 0},
    {"v_pk_add_f32", v_pk_add_f32, 0},
    {"v_div_scale_f32", v_div_scale_f32, 0},
    {"v_div_fixup_f32", v_div_fixup_f32, 0},
    {"v_div_fmas_f32", v_div_fmas_f32, 0},
    {"v_fma_mix_f32", v_fma_mix_f32, OP_SEL},
    {"v_fma_mixlo_f16", v_fma_mixlo_f16, OP_SEL},
    {"v_fma_mixhi_f16", v_fma_mixhi_f16, OP_SEL},
    {0, 0, 0},
};
