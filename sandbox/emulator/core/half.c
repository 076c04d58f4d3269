// 16-bit operations, single and packed. Halves are computed in f32 (fused operations in f64) and rounded once.
#include "core.h"
#include <math.h>

static inline f32 least(f32 a, f32 b) {
  return a != a ? b : b != b ? a : a == b ? as_f32(bits32(a) | bits32(b)) : a < b ? a : b;
}
static inline f32 most(f32 a, f32 b) {
  return a != a ? b : b != b ? a : a == b ? as_f32(bits32(a) & bits32(b)) : a > b ? a : b;
}
static f32 middle(f32 a, f32 b, f32 c) {
  if (a != a || b != b || c != c) return least(least(a, b), c);
  return most(least(a, b), least(most(a, b), c));
}
static f32 fraction(f32 x) {
  f32 rest = x - floorf(x);
  return rest < 0x1.ffcp-1f || rest != rest ? rest : 0x1.ffcp-1f;
}
// Sine and cosine of an angle in revolutions; constant outside the valid range of 256 turns.
static f32 sine(f32 x) { return fabsf(x) > 256 && !isinf(x) ? 0 : (f32)sin(6.283185307179586 * fmod((f64)x, 1.0)); }
static f32 cosine(f32 x) { return fabsf(x) > 256 && !isinf(x) ? 1 : (f32)cos(6.283185307179586 * fmod((f64)x, 1.0)); }

// One lane loop over halves widened to f32.
#define HALF1(NAME, EXPR)                                                                 \
  static void NAME(wave *w, const record *r) {                                            \
    f32 A[LANES], R[LANES];                                                               \
    halves_to_floats(source(w, r, 0), A);                                                 \
    for (int i = 0; i < LANES; i++) { f32 a = A[i]; R[i] = EXPR; }                        \
    floats_to_halves(R, w->out);                                                          \
    finish_wide(w, r);                                                                    \
  }
#define HALF2(NAME, EXPR)                                                                 \
  static void NAME(wave *w, const record *r) {                                            \
    f32 A[LANES], B[LANES], R[LANES];                                                     \
    halves_to_floats(source(w, r, 0), A);                                                 \
    halves_to_floats(source(w, r, 1), B);                                                 \
    for (int i = 0; i < LANES; i++) { f32 a = A[i], b = B[i]; R[i] = EXPR; }              \
    floats_to_halves(R, w->out);                                                          \
    finish_wide(w, r);                                                                    \
  }
#define HALF3(NAME, EXPR)                                                                 \
  static void NAME(wave *w, const record *r) {                                            \
    f32 A[LANES], B[LANES], C[LANES];                                                     \
    halves_to_floats(source(w, r, 0), A);                                                 \
    halves_to_floats(source(w, r, 1), B);                                                 \
    halves_to_floats(source(w, r, 2), C);                                                 \
    for (int i = 0; i < LANES; i++) { f32 a = A[i], b = B[i], c = C[i]; w->out[i] = EXPR; } \
    finish_wide(w, r);                                                                    \
  }
#define SHORT1(NAME, EXPR)                                                                \
  static void NAME(wave *w, const record *r) {                                            \
    const u32 *A = source(w, r, 0);                                                       \
    for (int i = 0; i < LANES; i++) { u32 a = A[i]; w->out[i] = (u16)(EXPR); }            \
    finish_wide(w, r);                                                                    \
  }
#define SHORT2(NAME, T, EXPR, CLAMPED, FLAGS)                                             \
  static void NAME(wave *w, const record *r) {                                            \
    const u32 *A = source(w, r, 0), *B = source(w, r, 1);                                 \
    for (int i = 0; i < LANES; i++) {                                                     \
      T a = (T)A[i], b = (T)B[i];                                                         \
      w->out[i] = (u16)(r->clamp ? (i32)(CLAMPED) : (i32)(EXPR));                         \
    }                                                                                     \
    finish_wide(w, r);                                                                    \
  }
#define SHORT3(NAME, T, EXPR, CLAMPED, FLAGS)                                             \
  static void NAME(wave *w, const record *r) {                                            \
    const u32 *A = source(w, r, 0), *B = source(w, r, 1), *C = source(w, r, 2);           \
    for (int i = 0; i < LANES; i++) {                                                     \
      T a = (T)A[i], b = (T)B[i], c = (T)C[i];                                            \
      w->out[i] = (u16)(r->clamp ? (i32)(CLAMPED) : (i32)(EXPR));                         \
    }                                                                                     \
    finish_wide(w, r);                                                                    \
  }

static inline i32 cu(i64 x) { return x < 0 ? 0 : x > 65535 ? 65535 : (i32)x; }
static inline i32 ci(i64 x) { return x < -32768 ? -32768 : x > 32767 ? 32767 : (i32)x; }
#define MINOF(a, b) ((a) < (b) ? (a) : (b))
#define MAXOF(a, b) ((a) > (b) ? (a) : (b))
static u16 half_mantissa(u32 bits) {
  int exponent;
  f32 x = half_to_float(bits);
  return (u16)float_to_half(isfinite(x) ? frexpf(x, &exponent) : x);
}
static u16 half_exponent(u32 bits) {
  int exponent = 0;
  f32 x = half_to_float(bits);
  if (isfinite(x) && x != 0) frexpf(x, &exponent);
  return (u16)exponent;
}
static u16 half_to_u16(u32 bits) {
  f32 x = half_to_float(bits);
  return (u16)(x > 65535 ? 65535 : x > 0 ? (i32)x : 0);
}
static u16 half_to_i16(u32 bits) {
  f32 x = half_to_float(bits);
  return (u16)(x > 32767 ? 32767 : x < -32768 ? -32768 : x != x ? 0 : (i32)x);
}
static f32 normal(f32 x, f32 low, f32 scale) { return x != x ? 0 : rintf((x < low ? low : x > 1 ? 1 : x) * scale); }
static u32 fused(f32 a, f32 b, f32 c) { return double_to_half((f64)a * b + (f64)c); }
static u32 plain_mad(f32 a, f32 b, f32 c) { return float_to_half(half_to_float(float_to_half(a * b)) + c); }
static u32 half_fixup(f32 q, f32 d, f32 n) {
  u32 sign = (bits32(d) ^ bits32(n)) >> 16 & 0x8000;
  if (n != n) return float_to_half(n) | 0x200;
  if (d != d) return float_to_half(d) | 0x200;
  if ((d == 0 && n == 0) || (isinf(d) && isinf(n))) return 0xfe00;
  if (d == 0 || isinf(n)) return sign | 0x7c00;
  if (isinf(d) || n == 0) return sign;
  return q != q ? sign | 0x7c00 : sign | (float_to_half(q) & 0x7fff);
}

#include "half.def"

static void v_ldexp_f16(wave *w, const record *r) {
  const u32 *B = source(w, r, 1);
  f32 A[LANES];
  halves_to_floats(source(w, r, 0), A);
  for (int i = 0; i < LANES; i++) w->out[i] = double_to_half(ldexp((f64)A[i], (i16)B[i]));
  finish_wide(w, r);
}
static void v_cvt_f32_f16(wave *w, const record *r) {
  f32 *D = destination(w, r), A[LANES];
  halves_to_floats(source(w, r, 0), A);
  memcpy(D, A, sizeof A);
  finish(w, r, D);
}
static void v_cvt_f16_f32(wave *w, const record *r) {
  const f32 *A = source(w, r, 0);
  if ((w->mode >> 2 & 3) == 0)
    floats_to_halves(A, w->out);
  else if ((w->mode >> 2 & 3) == 3)
    for (int i = 0; i < LANES; i++) w->out[i] = float_to_half_zero(A[i]);
  else
    return found(w, r, NEEDS, 0, 0, 0, 0);
  finish_wide(w, r);
}

// Packed forms: the same operation on both halves; the halves were selected and negated when the sources were fetched.
static void unpack(const u32 *in, f32 *low, f32 *high) {
  u32 shifted[LANES];
  EACH_LANE shifted[i] = in[i] >> 16;
  halves_to_floats(in, low);
  halves_to_floats(shifted, high);
}
static void pack(const f32 *low, const f32 *high, u32 *out) {
  u32 upper[LANES];
  floats_to_halves(low, out);
  floats_to_halves(high, upper);
  EACH_LANE out[i] |= upper[i] << 16;
}
#define PACKED2(NAME, EXPR)                                                               \
  static void NAME(wave *w, const record *r) {                                            \
    f32 A[2][LANES], B[2][LANES], R[2][LANES];                                            \
    unpack(source(w, r, 0), A[0], A[1]);                                                  \
    unpack(source(w, r, 1), B[0], B[1]);                                                  \
    for (int h = 0; h < 2; h++)                                                           \
      for (int i = 0; i < LANES; i++) { f32 a = A[h][i], b = B[h][i]; R[h][i] = EXPR; }   \
    pack(R[0], R[1], w->out);                                                             \
    finish_wide(w, r);                                                                    \
  }
#define PACKED3(NAME, EXPR)                                                               \
  static void NAME(wave *w, const record *r) {                                            \
    f32 A[2][LANES], B[2][LANES], C[2][LANES];                                            \
    unpack(source(w, r, 0), A[0], A[1]);                                                  \
    unpack(source(w, r, 1), B[0], B[1]);                                                  \
    unpack(source(w, r, 2), C[0], C[1]);                                                  \
    u32 R[2][LANES];                                                                      \
    for (int h = 0; h < 2; h++)                                                           \
      for (int i = 0; i < LANES; i++) { f32 a = A[h][i], b = B[h][i], c = C[h][i]; R[h][i] = EXPR; } \
    EACH_LANE w->out[i] = R[0][i] | R[1][i] << 16;                                        \
    finish_wide(w, r);                                                                    \
  }
#define PACKED_SHORT(NAME, T, COUNT, EXPR, CLAMPED)                                       \
  static void NAME(wave *w, const record *r) {                                            \
    const u32 *A = source(w, r, 0), *B = source(w, r, 1);                                 \
    const u32 *C = COUNT > 2 ? source(w, r, 2) : A;                                       \
    for (int i = 0; i < LANES; i++) {                                                     \
      u32 packed = 0;                                                                     \
      for (int h = 0; h < 32; h += 16) {                                                  \
        T a = (T)(A[i] >> h), b = (T)(B[i] >> h), c = (T)(C[i] >> h);                     \
        (void)c;                                                                          \
        packed |= (u32)(u16)(r->clamp ? (i32)(CLAMPED) : (i32)(EXPR)) << h;               \
      }                                                                                   \
      w->out[i] = packed;                                                                 \
    }                                                                                     \
    finish_wide(w, r);                                                                    \
  }
#include "packed.def"

#define DOT2(NAME, WIDEN)                                                                 \
  static void NAME(wave *w, const record *r) {                                            \
    const u32 *A = source(w, r, 0), *B = source(w, r, 1);                                 \
    const f32 *C = source(w, r, 2);                                                       \
    f32 *D = (f32 *)w->out;                                                               \
    for (int i = 0; i < LANES; i++) {                                                     \
      f64 sum = (f64)WIDEN(A[i] & 0xffff) * WIDEN(B[i] & 0xffff);                         \
      sum += (f64)WIDEN(A[i] >> 16) * WIDEN(B[i] >> 16);                                  \
      D[i] = (f32)(sum + (f64)C[i]);                                                      \
    }                                                                                     \
    finish_wide(w, r);                                                                    \
  }
DOT2(v_dot2_f32_f16, half_to_float)
DOT2(v_dot2c_f32_f16, half_to_float)
DOT2(v_dot2_f32_bf16, bf16_to_float)
DOT2(v_dot2c_f32_bf16, bf16_to_float)

#undef HALF1
#undef HALF2
#undef HALF3
#undef SHORT1
#undef SHORT2
#undef SHORT3
#undef PACKED2
#undef PACKED3
#undef PACKED_SHORT
#define HALF1(NAME, ...) {#NAME, NAME, MODE_64},
#define HALF2(NAME, ...) {#NAME, NAME, MODE_64},
#define HALF3(NAME, ...) {#NAME, NAME, MODE_64},
#define SHORT1(NAME, ...) {#NAME, NAME, MODE_64},
#define SHORT2(NAME, T, EXPR, CLAMPED, FLAGS) {#NAME, NAME, FLAGS},
#define SHORT3(NAME, T, EXPR, CLAMPED, FLAGS) {#NAME, NAME, FLAGS},
#define PACKED2(NAME, ...) {#NAME, NAME, MODE_64},
#define PACKED3(NAME, ...) {#NAME, NAME, MODE_64},
#define PACKED_SHORT(NAME, ...) {#NAME, NAME, SATURATES},
const entry half_table[] = {
#include "half.def"
#include "packed.def"
    {"v_ldexp_f16", v_ldexp_f16, MODE_64},
    {"v_cvt_f32_f16", v_cvt_f32_f16, MODE_64},
    {"v_cvt_f16_f32", v_cvt_f16_f32, MODE_64},
    {"v_dot2_f32_f16", v_dot2_f32_f16, 0},
    {"v_dot2c_f32_f16", v_dot2c_f32_f16, 0},
    {"v_dot2_f32_bf16", v_dot2_f32_bf16, 0},
    {"v_dot2c_f32_bf16", v_dot2c_f32_bf16, 0},
    {0, 0, 0},
};
