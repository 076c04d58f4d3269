// 32-bit integer operations.
#include "core.h"
#include "lanes.h"

static inline u32 reverse32(u32 x) {
  x = (x >> 1 & 0x55555555u) | (x & 0x55555555u) << 1;
  x = (x >> 2 & 0x33333333u) | (x & 0x33333333u) << 2;
  x = (x >> 4 & 0x0f0f0f0fu) | (x & 0x0f0f0f0fu) << 4;
  x = (x >> 8 & 0x00ff00ffu) | (x & 0x00ff00ffu) << 8;
  return x >> 16 | x << 16;
}
static inline u32 population(u32 x) {
  x -= x >> 1 & 0x55555555u;
  x = (x & 0x33333333u) + (x >> 2 & 0x33333333u);
  x = (x + (x >> 4)) & 0x0f0f0f0fu;
  return x * 0x01010101u >> 24;
}
// Leading bits equal to the sign bit, -1 where all are.
static inline u32 sign_run(u32 x) {
  u32 differing = (i32)x < 0 ? ~x : x;
  return differing ? (u32)__builtin_clz(differing) : ~0u;
}
static inline u32 clamp_byte(i32 x) { return x < 0 ? 0 : x > 255 ? 255 : (u32)x; }
static inline u32 clamp_signed_byte(i32 x) { return (u8)(x < -128 ? -128 : x > 127 ? 127 : x); }
static inline i32 clamp_short(i32 x) { return x < -32768 ? -32768 : x > 32767 ? 32767 : x; }
static inline i32 clamp_int(i64 x) { return x < INT32_MIN ? INT32_MIN : x > INT32_MAX ? INT32_MAX : (i32)x; }
static inline u32 clamp_uint(u64 x) { return x > 0xffffffffu ? ~0u : (u32)x; }
static inline i32 wrap_add(i64 a, i32 b) { return (i32)((u32)a + (u32)b); }
static inline i32 smaller(i32 a, i32 b) { return a < b ? a : b; }
static inline i32 larger(i32 a, i32 b) { return a > b ? a : b; }
static inline u32 smaller_u(u32 a, u32 b) { return a < b ? a : b; }
static inline u32 larger_u(u32 a, u32 b) { return a > b ? a : b; }
static inline u32 distance(u32 a, u32 b) { return a > b ? a - b : b - a; }
static inline i64 signed24(i32 a, i32 b) { return (i64)(a << 8 >> 8) * (b << 8 >> 8); }
static inline u64 unsigned24(u32 a, u32 b) { return (u64)(a & 0xffffff) * (b & 0xffffff); }
static inline i32 extract_signed(i32 a, u32 offset, u32 width) {
  u32 bits = width & 31;
  if (bits == 0) return 0;
  u32 field = (u32)(a >> (offset & 31)) << (32 - bits);
  return (i32)field >> (32 - bits);
}
static inline u32 sum_differences(u32 a, u32 b, u32 c, int masked) {
  for (int k = 0; k < 32; k += 8) {
    u32 y = b >> k & 255;
    c += masked && y == 0 ? 0 : distance(a >> k & 255, y);
  }
  return c;
}
static inline u32 average_bytes(u32 a, u32 b, u32 c) {
  u32 out = 0;
  for (int k = 0; k < 32; k += 8) out |= (((a >> k & 255) + (b >> k & 255) + (c >> k & 1)) >> 1) << k;
  return out;
}
static inline u32 permute_byte(u64 pool, u32 selector) {
  if (selector < 8) return (u32)(pool >> 8 * selector) & 255;
  if (selector < 12) return pool >> (16 * (selector - 8) + 15) & 1 ? 255 : 0;
  return selector == 12 ? 0 : 255;
}
static inline u32 permute_bytes(u32 a, u32 b, u32 selectors) {
  u64 pool = (u64)a << 32 | b;
  if ((selectors & 0xf8f8f8f8u) == 0) {
    u32 low = (u32)(pool >> 8 * (selectors & 7)) & 255, second = (u32)(pool >> 8 * (selectors >> 8 & 7)) & 255;
    u32 third = (u32)(pool >> 8 * (selectors >> 16 & 7)) & 255;
    return low | second << 8 | third << 16 | (u32)(pool >> 8 * (selectors >> 24 & 7)) << 24;
  }
  u32 out = 0;
  for (int k = 0; k < 32; k += 8) out |= permute_byte(pool, selectors >> k & 255) << k;
  return out;
}
static inline i64 dot_signed(u32 a, u32 b, int bits) {
  i64 sum = 0;
  for (int k = 0; k < 32; k += bits) sum += (i64)((i32)(a << (32 - bits - k)) >> (32 - bits)) * ((i32)(b << (32 - bits - k)) >> (32 - bits));
  return sum;
}
static inline u64 dot_unsigned(u32 a, u32 b, int bits) {
  u64 sum = 0;
  u32 mask = (u32)((1ull << bits) - 1);
  for (int k = 0; k < 32; k += bits) sum += (u64)(a >> k & mask) * (b >> k & mask);
  return sum;
}

#include "integer.def"

static void v_cndmask_b32(wave *w, const record *r) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1);
  u32 *D = destination(w, r);
  u32 chosen[LANES];
  expand_mask(scalar64(w, &r->src[2]), chosen);
  EACH_LANE D[i] = (B[i] & chosen[i]) | (A[i] & ~chosen[i]);
  finish(w, r, D);
}

// Carry chains. Lane masks have bits only where EXEC has.
#define CARRY(NAME, SUM, OUT, IN)                                                         \
  static void NAME(wave *w, const record *r) {                                            \
    const u32 *A = source(w, r, 0), *B = source(w, r, 1);                                 \
    u64 exec = EXEC(w);                                                                   \
    u32 carry[LANES];                                                                     \
    if (IN) expand_mask(scalar64(w, &r->src[2]), carry); else memset(carry, 0, sizeof carry); \
    u32 *D = w->out;                                                                      \
    u32 left[LANES];                                                                      \
    EACH_LANE {                                                                           \
      u32 a = A[i], b = B[i], c = carry[i] & 1;                                           \
      (void)c;                                                                            \
      D[i] = SUM;                                                                         \
      left[i] = (OUT) ? ~0u : 0;                                                          \
    }                                                                                     \
    u64 out = pack_mask(left);                                                            \
    if (r->clamp) EACH_LANE D[i] = left[i] ? (u32)(NAME##_saturated) : D[i];                   \
    write_result(w, r, D);                                                                \
    u64 taking = r->partial ? w->write_mask : exec, old = scalar_pair(w, r->dst[1].index); \
    set_pair(w, r->dst[1].index, (out & taking) | (old & exec & ~taking));                \
  }
enum {
  v_add_co_u32_saturated = -1, v_addc_co_u32_saturated = -1, v_sub_co_u32_saturated = 0, v_subb_co_u32_saturated = 0,
  v_subrev_co_u32_saturated = 0, v_subbrev_co_u32_saturated = 0
};
CARRY(v_add_co_u32, a + b, a + b < a, 0)
CARRY(v_sub_co_u32, a - b, a < b, 0)
CARRY(v_subrev_co_u32, b - a, b < a, 0)
CARRY(v_addc_co_u32, a + b + c, (u64)a + b + c > 0xffffffffull, 1)
CARRY(v_subb_co_u32, a - b - c, (u64)a < (u64)b + c, 1)
CARRY(v_subbrev_co_u32, b - a - c, (u64)b < (u64)a + c, 1)

static void v_bitop3_b32(wave *w, const record *r) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1), *C = source(w, r, 2);
  u32 *D = w->out;
  memset(D, 0, LANES * 4);
  for (int k = 0; k < 8; k++) {
    if (!(r->imm >> k & 1)) continue;
    u32 fa = k & 4 ? 0 : ~0u, fb = k & 2 ? 0 : ~0u, fc = k & 1 ? 0 : ~0u;
    EACH_LANE D[i] |= (A[i] ^ fa) & (B[i] ^ fb) & (C[i] ^ fc);
  }
  if (r->high_result) EACH_LANE D[i] &= 0xffff;
  write_rows(w, r->dst[0].index, D, 1, EXEC(w));
}
static void v_bitop3_b16(wave *w, const record *r) {
  record half = *r;
  half.high_result = 1;
  v_bitop3_b32(w, &half);
}

static void v_mbcnt_lo_u32_b32(wave *w, const record *r) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1);
  u32 *D = destination(w, r);
  EACH_LANE D[i] = population(A[i] & (i >= 32 ? ~0u : (1u << (i & 31)) - 1)) + B[i];
  finish(w, r, D);
}
static void v_mbcnt_hi_u32_b32(wave *w, const record *r) {
  const u32 *A = source(w, r, 0), *B = source(w, r, 1);
  u32 *D = destination(w, r);
  EACH_LANE D[i] = population(A[i] & (i < 32 ? 0 : (1u << (i & 31)) - 1)) + B[i];
  finish(w, r, D);
}

#define TABLE
#include "lanes.h"
const entry integer_table[] = {
#include "integer.def"
    {"v_cndmask_b32", v_cndmask_b32, 0},
    {"v_add_co_u32", v_add_co_u32, SATURATES},
    {"v_sub_co_u32", v_sub_co_u32, SATURATES},
    {"v_subrev_co_u32", v_subrev_co_u32, SATURATES},
    {"v_addc_co_u32", v_addc_co_u32, SATURATES},
    {"v_subb_co_u32", v_subb_co_u32, SATURATES},
    {"v_subbrev_co_u32", v_subbrev_co_u32, SATURATES},
    {"v_bitop3_b32", v_bitop3_b32, 0},
    {"v_bitop3_b16", v_bitop3_b16, 0},
    {"v_mbcnt_lo_u32_b32", v_mbcnt_lo_u32_b32, 0},
    {"v_mbcnt_hi_u32_b32", v_mbcnt_hi_u32_b32, 0},
    {0, 0, 0},
};
