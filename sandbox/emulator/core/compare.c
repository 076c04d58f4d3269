// Comparisons: a lane mask in SGPRs, zero where EXEC is; the cmpx forms write EXEC as well.
#include "core.h"

static void put_mask(wave *w, const record *r, u64 mask, int to_exec) {
  mask &= EXEC(w);
  set_pair(w, r->dst[0].index, mask);
  if (to_exec) EXEC(w) = mask;
}

static inline f32 narrow_half(u32 bits) { return half_to_float(bits); }
static inline i32 narrow_i16(u32 bits) { return (i16)bits; }
static inline u32 narrow_u16(u32 bits) { return bits & 0xffff; }
static inline f32 same_f32(u32 bits) { return as_f32(bits); }
static inline i32 same_i32(u32 bits) { return (i32)bits; }
static inline u32 same_u32(u32 bits) { return bits; }
static inline i64 wide_i64(const u32 *p, int i) { return (i64)lane64(p, i); }

#define COMPARE(SUFFIX, T, READ, NAME, EXPR)                                              \
  static inline u64 mask_##NAME##_##SUFFIX(wave *w, const record *r) {                    \
    const u32 *A = source(w, r, 0), *B = source(w, r, 1);                                 \
    u32 hit[LANES];                                                                       \
    for (int i = 0; i < LANES; i++) {                                                     \
      T a = READ(A[i]), b = READ(B[i]);                                                   \
      (void)a; (void)b;                                                                   \
      hit[i] = (EXPR) ? ~0u : 0;                                                          \
    }                                                                                     \
    return pack_mask(hit);                                                                \
  }                                                                                       \
  static void v_cmp_##NAME##_##SUFFIX(wave *w, const record *r) { put_mask(w, r, mask_##NAME##_##SUFFIX(w, r), 0); } \
  static void v_cmpx_##NAME##_##SUFFIX(wave *w, const record *r) { put_mask(w, r, mask_##NAME##_##SUFFIX(w, r), 1); }
#define COMPARE_WIDE(SUFFIX, T, READ, NAME, EXPR)                                         \
  static inline u64 mask_##NAME##_##SUFFIX(wave *w, const record *r) {                    \
    const u32 *A = source(w, r, 0), *B = source(w, r, 1);                                 \
    u64 mask = 0;                                                                         \
    for (int i = 0; i < LANES; i++) {                                                     \
      T a = READ(A, i), b = READ(B, i);                                                   \
      (void)a; (void)b;                                                                   \
      mask |= (u64)(EXPR) << i;                                                           \
    }                                                                                     \
    return mask;                                                                          \
  }                                                                                       \
  static void v_cmp_##NAME##_##SUFFIX(wave *w, const record *r) { put_mask(w, r, mask_##NAME##_##SUFFIX(w, r), 0); } \
  static void v_cmpx_##NAME##_##SUFFIX(wave *w, const record *r) { put_mask(w, r, mask_##NAME##_##SUFFIX(w, r), 1); }

#define ORDERED(F, SUFFIX, T, READ)                                                       \
  F(SUFFIX, T, READ, f, 0) F(SUFFIX, T, READ, lt, a < b) F(SUFFIX, T, READ, eq, a == b)   \
  F(SUFFIX, T, READ, le, a <= b) F(SUFFIX, T, READ, gt, a > b) F(SUFFIX, T, READ, ge, a >= b)
#define INTEGER(F, SUFFIX, T, READ) ORDERED(F, SUFFIX, T, READ) F(SUFFIX, T, READ, ne, a != b) F(SUFFIX, T, READ, t, 1)
#define FLOAT(F, SUFFIX, T, READ)                                                         \
  ORDERED(F, SUFFIX, T, READ) F(SUFFIX, T, READ, lg, a < b || a > b)                      \
  F(SUFFIX, T, READ, o, a == a && b == b) F(SUFFIX, T, READ, u, a != a || b != b)         \
  F(SUFFIX, T, READ, nge, !(a >= b)) F(SUFFIX, T, READ, nlg, !(a < b || a > b))           \
  F(SUFFIX, T, READ, ngt, !(a > b)) F(SUFFIX, T, READ, nle, !(a <= b))                    \
  F(SUFFIX, T, READ, neq, a != b) F(SUFFIX, T, READ, nlt, !(a < b)) F(SUFFIX, T, READ, tru, 1)

#define ALL                                                                               \
  INTEGER(COMPARE, i32, i32, same_i32) INTEGER(COMPARE, u32, u32, same_u32)               \
  INTEGER(COMPARE, i16, i32, narrow_i16) INTEGER(COMPARE, u16, u32, narrow_u16)           \
  INTEGER(COMPARE_WIDE, i64, i64, wide_i64) INTEGER(COMPARE_WIDE, u64, u64, lane64)       \
  FLOAT(COMPARE, f32, f32, same_f32) FLOAT(COMPARE, f16, f32, narrow_half)                \
  FLOAT(COMPARE_WIDE, f64, f64, lane_f64)
ALL

// Classes: signalling NaN, quiet NaN, -infinity, -normal, -denormal, -0, +0, +denormal, +normal, +infinity.
static u32 class_bit(u64 bits, int fraction, int exponent) {
  u64 mantissa = bits & ((1ull << fraction) - 1);
  u32 power = (u32)(bits >> fraction) & ((1u << exponent) - 1), top = (1u << exponent) - 1;
  int negative = bits >> (fraction + exponent) & 1;
  if (power == top && mantissa) return mantissa >> (fraction - 1) ? 1 : 0;
  int magnitude = power == top ? 3 : power ? 2 : mantissa ? 1 : 0;
  return (u32)(negative ? 5 - magnitude : 6 + magnitude);
}
static u64 classes(wave *w, const record *r, int fraction, int exponent) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1);
  u64 mask = 0;
  for (int i = 0; i < LANES; i++) {
    u64 bits = fraction == 52 ? lane64(A, i) : A[i];
    mask |= (u64)(B[i] >> class_bit(bits, fraction, exponent) & 1) << i;
  }
  return mask;
}
static void v_cmp_class_f32(wave *w, const record *r) { put_mask(w, r, classes(w, r, 23, 8), 0); }
static void v_cmpx_class_f32(wave *w, const record *r) { put_mask(w, r, classes(w, r, 23, 8), 1); }
static void v_cmp_class_f64(wave *w, const record *r) { put_mask(w, r, classes(w, r, 52, 11), 0); }
static void v_cmpx_class_f64(wave *w, const record *r) { put_mask(w, r, classes(w, r, 52, 11), 1); }
static void v_cmp_class_f16(wave *w, const record *r) { put_mask(w, r, classes(w, r, 10, 5), 0); }
static void v_cmpx_class_f16(wave *w, const record *r) { put_mask(w, r, classes(w, r, 10, 5), 1); }

#undef COMPARE
#undef COMPARE_WIDE
#define COMPARE(SUFFIX, T, READ, NAME, EXPR)                                              \
  {"v_cmp_" #NAME "_" #SUFFIX, v_cmp_##NAME##_##SUFFIX, 0}, {"v_cmpx_" #NAME "_" #SUFFIX, v_cmpx_##NAME##_##SUFFIX, 0},
#define COMPARE_WIDE(SUFFIX, T, READ, NAME, EXPR)                                         \
  {"v_cmp_" #NAME "_" #SUFFIX, v_cmp_##NAME##_##SUFFIX, MODE_64},                         \
      {"v_cmpx_" #NAME "_" #SUFFIX, v_cmpx_##NAME##_##SUFFIX, MODE_64},
const entry compare_table[] = {
    ALL
    {"v_cmp_class_f32", v_cmp_class_f32, 0},
    {"v_cmpx_class_f32", v_cmpx_class_f32, 0},
    {"v_cmp_class_f64", v_cmp_class_f64, MODE_64},
    {"v_cmpx_class_f64", v_cmpx_class_f64, MODE_64},
    {"v_cmp_class_f16", v_cmp_class_f16, 0},
    {"v_cmpx_class_f16", v_cmpx_class_f16, 0},
    {0, 0, 0},
};
