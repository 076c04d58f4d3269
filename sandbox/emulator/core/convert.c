// Packing and narrow-float conversions, and the operations that move values between lanes or register files.
#include "core.h"
#include <math.h>

#define PAIR(NAME, TA, TB, EXPR)                                                          \
  static void NAME(wave *w, const record *r) {                                            \
    const TA *A = source(w, r, 0);                                                        \
    const TB *B = source(w, r, 1);                                                        \
    int ocp = w->m->arch >= 950, saturate = w->mode >> 23 & 1;                            \
    (void)ocp, (void)saturate;                                                            \
    for (int i = 0; i < LANES; i++) { TA a = A[i]; TB b = B[i]; w->out[i] = (u32)(EXPR); } \
    finish_wide(w, r);                                                                    \
  }
static u32 norm(f32 x, f32 low, f32 scale) {
  if (x != x) return 0;
  return (u32)(i32)rintf((x < low ? low : x > 1 ? 1 : x) * scale) & 0xffff;
}
PAIR(v_cvt_pkrtz_f16_f32, f32, f32, float_to_half_zero(a) | float_to_half_zero(b) << 16)
PAIR(v_cvt_pk_f16_f32, f32, f32, float_to_half(a) | float_to_half(b) << 16)
PAIR(v_cvt_pk_bf16_f32, f32, f32, float_to_bf16(a) | float_to_bf16(b) << 16)
PAIR(v_cvt_pknorm_i16_f32, f32, f32, norm(a, -1, 32767) | norm(b, -1, 32767) << 16)
PAIR(v_cvt_pknorm_u16_f32, f32, f32, norm(a, 0, 65535) | norm(b, 0, 65535) << 16)
PAIR(v_cvt_pknorm_i16_f16, u32, u32, norm(half_to_float(a), -1, 32767) | norm(half_to_float(b), -1, 32767) << 16)
PAIR(v_cvt_pknorm_u16_f16, u32, u32, norm(half_to_float(a), 0, 65535) | norm(half_to_float(b), 0, 65535) << 16)
PAIR(v_cvt_pk_fp8_f32, f32, f32, float_to_fp8(a, 0, ocp, saturate) | float_to_fp8(b, 0, ocp, saturate) << 8)
PAIR(v_cvt_pk_bf8_f32, f32, f32, float_to_fp8(a, 1, ocp, saturate) | float_to_fp8(b, 1, ocp, saturate) << 8)
PAIR(v_cvt_sr_f16_f32, f32, u32, __builtin_isfinite(a) ? float_to_half_zero(as_f32(bits32(a) + (b >> 19))) : float_to_half(a))
PAIR(v_cvt_sr_bf16_f32, f32, u32, a != a ? bits32(a) >> 16 | 0x40 : (bits32(a) + (b >> 16)) >> 16)

static void v_cvt_pk_u8_f32(wave *w, const record *r) {
  const f32 *A = source(w, r, 0);
  const u32 *B = source(w, r, 1), *C = source(w, r, 2);
  for (int i = 0; i < LANES; i++) {
    f32 x = A[i];
    u32 shift = 8 * (B[i] & 3), byte = x != x || x < 0 ? 0 : x > 255 ? 255 : (u32)rintf(x);
    w->out[i] = (C[i] & ~(255u << shift)) | byte << shift;
  }
  finish_wide(w, r);
}

// A byte result goes where op_sel's two upper bits say; the other bytes stay.
static void put_byte(wave *w, const record *r, const u32 *bytes) {
  u32 shift = 8 * (r->op_sel >> 2 & 3), *old = w->v + (u64)r->dst[0].index * LANES;
  u32 merged[LANES];
  for (int i = 0; i < LANES; i++) merged[i] = (old[i] & ~(255u << shift)) | (bytes[i] & 255) << shift;
  write_rows(w, r->dst[0].index, merged, 1, EXEC(w));
}
static void stochastic(wave *w, const record *r, int e5m2) {
  const f32 *A = source(w, r, 0);
  const u32 *B = source(w, r, 1);
  int ocp = w->m->arch >= 950, saturate = w->mode >> 23 & 1;
  u32 bytes[LANES];
  for (int i = 0; i < LANES; i++) bytes[i] = float_to_fp8_random(A[i], B[i], e5m2, ocp, saturate);
  put_byte(w, r, bytes);
}
static void v_cvt_sr_fp8_f32(wave *w, const record *r) { stochastic(w, r, 0); }
static void v_cvt_sr_bf8_f32(wave *w, const record *r) { stochastic(w, r, 1); }

static void unpack_fp8(wave *w, const record *r, int e5m2, int pair) {
  const u32 *A = source(w, r, 0);
  int ocp = w->m->arch >= 950;
  u32 shift = pair ? 16 * (r->op_sel & 1) : 8 * (r->op_sel & 3);
  for (int k = 0; k <= pair; k++)
    for (int i = 0; i < LANES; i++) w->out[k * LANES + i] = bits32(fp8_to_float(A[i] >> (shift + 8 * k) & 255, e5m2, ocp));
  finish_wide(w, r);
}
static void v_cvt_f32_fp8(wave *w, const record *r) { unpack_fp8(w, r, 0, 0); }
static void v_cvt_f32_bf8(wave *w, const record *r) { unpack_fp8(w, r, 1, 0); }
static void v_cvt_pk_f32_fp8(wave *w, const record *r) { unpack_fp8(w, r, 0, 1); }
static void v_cvt_pk_f32_bf8(wave *w, const record *r) { unpack_fp8(w, r, 1, 1); }

// Conversions with a scale (gfx950): only the scale's exponent counts. Narrowing divides by it, widening multiplies.
static f32 power_of(u32 scale) {
  u32 exponent = scale & 0x7f800000u;
  return as_f32(exponent == 0x7f800000u ? 0x7fc00000u : exponent ? exponent : 0x00400000u);
}
// A quotient that leaves the range of f32 is still finite.
static f32 divided(f32 x, f32 scale) {
  f32 q = x / scale;
  if (scale != scale) return x != x ? x : scale;
  return __builtin_isinf(q) && !__builtin_isinf(x) ? as_f32((bits32(q) & 0x80000000u) | 0x7f7fffff) : q;
}
enum format { FP8, BF8, FP4, FP6, BF6 };
enum element { IN_F32, IN_F16, IN_BF16 };

static u32 narrow_to(f32 x, int format, int saturate) {
  return format == FP4 ? float_to_fp4(x) : float_to_fp8(x, format == BF8, 1, saturate);
}
static f32 widen_from(u32 bits, int format) { return format == FP4 ? fp4_to_float(bits & 15) : fp8_to_float(bits & 255, format == BF8, 1); }
static f32 element_of(u32 bits, int kind) { return kind == IN_F16 ? half_to_float(bits & 0xffff) : as_f32(bits << 16); }
static u32 element_bits(f32 x, int kind) { return kind == IN_F16 ? float_to_half(x) : float_to_bf16(x); }

static void narrow_pair(wave *w, const record *r, int format, int kind) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1), *C = kind == IN_F32 ? source(w, r, 2) : B;
  int saturate = w->mode >> 23 & 1;
  u32 bytes[LANES];
  for (int i = 0; i < LANES; i++) {
    f32 scale = power_of(C[i]);
    f32 low = kind == IN_F32 ? as_f32(A[i]) : element_of(A[i], kind);
    f32 high = kind == IN_F32 ? as_f32(B[i]) : element_of(A[i] >> 16, kind);
    u32 first = narrow_to(divided(low, scale), format, saturate), second = narrow_to(divided(high, scale), format, saturate);
    bytes[i] = first | second << (format == FP4 ? 4 : 8);
  }
  if (format == FP4) {
    put_byte(w, r, bytes);
    return;
  }
  u32 *old = w->v + (u64)r->dst[0].index * LANES;
  int high = r->op_sel >> 3 & 1;
  for (int i = 0; i < LANES; i++) bytes[i] = high ? (old[i] & 0xffff) | bytes[i] << 16 : (old[i] & 0xffff0000u) | bytes[i];
  write_rows(w, r->dst[0].index, bytes, 1, EXEC(w));
}
static void widen_pair(wave *w, const record *r, int format, int kind) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1);
  u32 shift = format == FP4 ? 8 * (r->op_sel & 3) : 16 * (r->op_sel & 1), step = format == FP4 ? 4 : 8;
  for (int i = 0; i < LANES; i++) {
    f32 scale = power_of(B[i]);
    f32 low = widen_from(A[i] >> shift, format) * scale, high = widen_from(A[i] >> (shift + step), format) * scale;
    if (kind == IN_F32) {
      w->out[i] = bits32(low);
      w->out[LANES + i] = bits32(high);
    } else {
      w->out[i] = element_bits(low, kind) | element_bits(high, kind) << 16;
    }
  }
  write_rows(w, r->dst[0].index, w->out, kind == IN_F32 ? 2 : 1, EXEC(w));
}
static void widen_one(wave *w, const record *r, int format, int kind) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1);
  u32 shift = 8 * (r->op_sel & 3), *old = w->v + (u64)r->dst[0].index * LANES;
  for (int i = 0; i < LANES; i++) {
    f32 value = widen_from(A[i] >> shift, format) * power_of(B[i]);
    u32 half = kind == IN_F32 ? 0 : element_bits(value, kind);
    w->out[i] = kind == IN_F32 ? bits32(value) : r->op_sel >> 3 & 1 ? (old[i] & 0xffff) | half << 16 : (old[i] & 0xffff0000u) | half;
  }
  write_rows(w, r->dst[0].index, w->out, 1, EXEC(w));
}

// A number in a format without infinities: exponent and fraction bits, rounded to even or up by the random bits.
static u32 encode_small(f64 x, int exponent_bits, int fraction, int random, u32 noise) {
  int least = 2 - (1 << (exponent_bits - 1)), exponent = least;
  u32 sign = (u32)(bits64(x) >> 63) << (exponent_bits + fraction), largest = (1u << (exponent_bits + fraction)) - 1;
  f64 size = __builtin_fabs(x);
  if (!(size < 1e30)) return sign | largest;
  if (size >= ldexp(1, least)) exponent = ilogb(size);
  f64 steps = ldexp(size, fraction - exponent), whole = floor(steps), rest = steps - whole;
  bool up = random ? rest + noise * 0x1p-32 >= 1 : rest > 0.5 || (rest == 0.5 && fmod(whole, 2) == 1);
  f64 code = whole + up + (f64)(exponent - least) * (1 << fraction);
  return sign | (code > largest ? largest : (u32)code);
}
static u32 next_random(u32 x) { return (x << 1) ^ (x >> 31 ? 197u : 0u); }
static u32 narrow_small(f64 x, int format, int random, u32 noise) {
  return format == FP4 ? encode_small(x, 2, 1, random, noise)
                       : encode_small(x, format == FP6 ? 2 : 3, format == FP6 ? 3 : 2, random, noise);
}

// One value to a byte (fp8, bf8) or two to a byte (fp4), rounded by the second source's random bits.
static void narrow_random(wave *w, const record *r, int format, int kind) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1), *C = source(w, r, 2);
  int saturate = w->mode >> 23 & 1;
  u32 bytes[LANES];
  if (r->op_sel & 3) return found(w, r, NEEDS, -1, r->op_sel, 0, 2);
  for (int i = 0; i < LANES; i++) {
    f32 scale = power_of(C[i]), low = kind == IN_F32 ? as_f32(A[i]) : element_of(A[i], kind);
    if (format == FP4) {
      f32 high = kind == IN_F32 ? as_f32(A[LANES + i]) : element_of(A[i] >> 16, kind);
      bytes[i] = narrow_small((f64)low / scale, FP4, 1, B[i]) | narrow_small((f64)high / scale, FP4, 1, next_random(B[i])) << 4;
    } else {
      bytes[i] = float_to_fp8_random(divided(low, scale), B[i], format == BF8, 1, saturate);
    }
  }
  put_byte(w, r, bytes);
}

// 32 values to six registers of 6-bit codes: from 32 registers, 16 pairs of halves, or two times 16 registers in turn.
static void narrow_many(wave *w, const record *r, int format, int kind, int sources, int random) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1), *C = source(w, r, sources == 2 || random ? 2 : 1);
  u32 packed[6 * LANES] = {0};
  if (r->src[0].kind != VECTOR || (sources == 2 && r->src[1].kind != VECTOR)) return found(w, r, NEEDS, -1, 0, 0, 2);
  for (int i = 0; i < LANES; i++) {
    u32 noise = random ? B[i] : 0;
    f32 scale = power_of(C[i]);
    for (int k = 0; k < 32; k++) {
      f32 x = sources == 2 ? as_f32((k & 1 ? B : A)[k / 2 * LANES + i])
              : kind == IN_F32 ? as_f32(A[k * LANES + i]) : element_of(A[k / 2 * LANES + i] >> 16 * (k & 1), kind);
      u64 code = (u64)narrow_small((f64)x / scale, format, random, noise) << 6 * k % 32;
      packed[6 * k / 32 * LANES + i] |= (u32)code;
      if (code >> 32) packed[(6 * k / 32 + 1) * LANES + i] |= (u32)(code >> 32);
      noise = next_random(noise);
    }
  }
  write_rows(w, r->dst[0].index, packed, 6, EXEC(w));
}
static void narrow_32(wave *w, const record *r, int format, int kind) { narrow_many(w, r, format, kind, 1, 0); }
static void narrow_16_16(wave *w, const record *r, int format, int kind) { narrow_many(w, r, format, kind, 2, 0); }
static void narrow_32_random(wave *w, const record *r, int format, int kind) { narrow_many(w, r, format, kind, 1, 1); }
static void widen_32(wave *w, const record *r, int format, int kind) {
  static _Thread_local u32 wide[32 * LANES];
  const u32 *A = source(w, r, 0), *B = source(w, r, 1);
  if (r->src[0].kind != VECTOR) return found(w, r, NEEDS, -1, 0, 0, 2);
  for (int k = 0; k < 32; k++)
    for (int i = 0; i < LANES; i++) {
      int at = 6 * k / 32, shift = 6 * k % 32;
      u64 pool = A[at * LANES + i] | (shift > 26 ? (u64)A[(at + 1) * LANES + i] << 32 : 0);
      f32 value = fp6_to_float(pool >> shift & 63, format == BF6) * power_of(B[i]);
      if (kind == IN_F32) wide[k * LANES + i] = bits32(value);
      else if (k & 1) wide[k / 2 * LANES + i] |= element_bits(value, kind) << 16;
      else wide[k / 2 * LANES + i] = element_bits(value, kind);
    }
  write_rows(w, r->dst[0].index, wide, kind == IN_F32 ? 32 : 16, EXEC(w));
}
#define SCALED(NAME, ACTION, FORMAT, KIND) static void NAME(wave *w, const record *r) { ACTION(w, r, FORMAT, KIND); }
#define SCALED32 SCALED
#include "scaled.def"

// Lanes and register files.
static void v_readfirstlane_b32(wave *w, const record *r) {
  const u32 *A = source(w, r, 0);
  u64 exec = EXEC(w);
  w->s[r->dst[0].index] = A[exec ? __builtin_ctzll(exec) : 0];
}
static void v_readlane_b32(wave *w, const record *r) {
  const u32 *A = source(w, r, 0);
  w->s[r->dst[0].index] = A[scalar32(w, &r->src[1]) & 63];
}
static void v_writelane_b32(wave *w, const record *r) {
  u32 value = scalar32(w, &r->src[0]), lane = scalar32(w, &r->src[1]) & 63;
  w->v[(u64)r->dst[0].index * LANES + lane] = value;
}
static void exchange(wave *w, const record *r, const u8 *partner) {
  u32 *x = w->v + (u64)r->dst[0].index * LANES, *y = w->v + (u64)r->src[0].index * LANES;
  u64 exec = EXEC(w);
  for (int i = 0; i < LANES; i++) {
    if (partner[i] == 255) continue;
    u32 old = x[i];
    bool here = exec >> i & 1, there = exec >> partner[i] & 1;
    if (here) x[i] = y[partner[i]];
    if (there) y[partner[i]] = old;
  }
}
static void v_swap_b32(wave *w, const record *r) {
  u8 partner[LANES];
  for (int i = 0; i < LANES; i++) partner[i] = (u8)i;
  exchange(w, r, partner);
}
// fi and bound_ctrl (op_sel) say what an inactive lane gives; with all lanes active they say nothing.
static void exchange_rows(wave *w, const record *r, const u8 *partner) {
  if (r->op_sel && EXEC(w) != ~0ull) return found(w, r, NEEDS, -1, r->op_sel, 0, 0);
  exchange(w, r, partner);
}
// Upper half of the first register with the lower half of the second.
static void v_permlane32_swap_b32(wave *w, const record *r) {
  u8 partner[LANES];
  for (int i = 0; i < LANES; i++) partner[i] = i >= 32 ? (u8)(i - 32) : 255;
  exchange_rows(w, r, partner);
}
// Odd rows of 16 lanes of the first register with the even rows of the second.
static void v_permlane16_swap_b32(wave *w, const record *r) {
  u8 partner[LANES];
  for (int i = 0; i < LANES; i++) partner[i] = i & 16 ? (u8)(i - 16) : 255;
  exchange_rows(w, r, partner);
}
static void v_nop(wave *w, const record *r) {
  (void)w;
  (void)r;
}

#define E(NAME, FLAGS) {#NAME, NAME, FLAGS},
#undef SCALED
#undef SCALED32
#define SCALED(NAME, ...) {#NAME, NAME, OP_SEL},
#define SCALED32(NAME, ...) {#NAME, NAME, CUSTOM},
const entry convert_table[] = {
    E(v_cvt_pkrtz_f16_f32, 0) E(v_cvt_pk_f16_f32, 0) E(v_cvt_pk_bf16_f32, 0) E(v_cvt_pknorm_i16_f32, 0)
    E(v_cvt_pknorm_u16_f32, 0) E(v_cvt_pknorm_i16_f16, 0) E(v_cvt_pknorm_u16_f16, 0) E(v_cvt_pk_fp8_f32, 0)
    E(v_cvt_pk_bf8_f32, 0) E(v_cvt_sr_f16_f32, 0) E(v_cvt_sr_bf16_f32, 0) E(v_cvt_pk_u8_f32, 0)
    E(v_cvt_sr_fp8_f32, OP_SEL) E(v_cvt_sr_bf8_f32, OP_SEL) E(v_cvt_f32_fp8, OP_SEL) E(v_cvt_f32_bf8, OP_SEL)
    E(v_cvt_pk_f32_fp8, OP_SEL) E(v_cvt_pk_f32_bf8, OP_SEL)
#include "scaled.def"
    {0, 0, 0},
};
const entry special_table[] = {
    E(v_readfirstlane_b32, 0) E(v_readlane_b32, CUSTOM) E(v_writelane_b32, CUSTOM) E(v_swap_b32, CUSTOM)
    E(v_permlane16_swap_b32, CUSTOM | OP_SEL) E(v_permlane32_swap_b32, CUSTOM | OP_SEL) E(v_nop, CUSTOM)
    {0, 0, 0},
};
