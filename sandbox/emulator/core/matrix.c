// Matrix instructions. Every lane takes part whatever EXEC says.
//
// Element j of the lanes of one group is a run of rows of A (or columns of B) for one k, so the operands need no
// transposition: `Operand.at[k]` points at M (or N) consecutive values. A register of C holds, in each group of lanes, one
// row of N values, so rows are accumulated where they lie.
#include "core.h"

typedef f32 f8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef i32 i8v __attribute__((vector_size(32), aligned(4), may_alias));
enum { MAX_K = 128 };

typedef struct {
  u32 m, k, blocks, registers;
} shape;

typedef struct {
  f32 values[MAX_K * 32];
  const f32 *at[4 * MAX_K];         // [block][k]
} operands;

enum kind_of { F32, XF32, F16, BF16, FP8, BF8, I8 };

static f32 fp8_table[4][256];
static int fp8_ready;
static void fill_tables(void) {
  for (int t = 0; t < 4; t++)
    for (u32 b = 0; b < 256; b++) fp8_table[t][b] = fp8_to_float(b, t & 1, t >> 1);
  fp8_ready = 1;
}

// Values [element j][lane] of an operand whose lanes hold `count` elements each.
static void widen(const wave *w, u32 row, int kind, u32 count, f32 *out) {
  const u32 *v = w->v + (u64)row * LANES;
  if (kind == F32) {
    memcpy(out, v, (u64)count * LANES * 4);
  } else if (kind == XF32) {
    for (u32 n = 0; n < count * LANES; n++) out[n] = as_f32((v[n] + 0xfff + (v[n] >> 13 & 1)) & ~0x1fffu);
  } else if (kind == F16) {
    u32 upper[LANES];
    for (u32 d = 0; d < count / 2; d++, v += LANES) {
      halves_to_floats(v, out + 2 * d * LANES);
      for (int i = 0; i < LANES; i++) upper[i] = v[i] >> 16;
      halves_to_floats(upper, out + (2 * d + 1) * LANES);
    }
  } else if (kind == BF16) {
    u32 *bits = (u32 *)out;
    for (u32 d = 0; d < count / 2; d++)
      for (int i = 0; i < LANES; i++) {
        bits[2 * d * LANES + i] = v[d * LANES + i] << 16;
        bits[(2 * d + 1) * LANES + i] = v[d * LANES + i] & 0xffff0000u;
      }
  } else {
    const f32 *table = fp8_table[(kind == BF8) + 2 * (w->m->arch >= 950)];
    i32 *integers = (i32 *)out;
    for (u32 j = 0; j < count; j++)
      for (int i = 0; i < LANES; i++) {
        u32 byte = v[j / 4 * LANES + i] >> 8 * (j % 4) & 255;
        if (kind == I8)
          integers[j * LANES + i] = (i8)byte;
        else
          out[j * LANES + i] = table[byte];
      }
  }
}

static void arrange(const shape *s, operands *o) {
  u32 groups = LANES / s->m, per_lane = s->blocks > 1 ? s->k : s->k / groups;
  for (u32 b = 0; b < s->blocks; b++)
    for (u32 k = 0; k < s->k; k++) {
      u32 group = s->blocks > 1 ? b : k / per_lane, j = s->blocks > 1 ? k : k % per_lane;
      o->at[b * s->k + k] = o->values + j * LANES + group * s->m;
    }
}

// The deep sparse forms: each half of the registers of B holds one half of K.
static void arrange_halves(const shape *s, operands *o) {
  u32 groups = LANES / s->m, run = s->k / groups / 2;
  for (u32 k = 0; k < s->k; k++) {
    u32 part = k / (s->k / 2), group = k % (s->k / 2) / run;
    o->at[k] = o->values + (part * run + k % run) * LANES + group * s->m;
  }
}

// Rows of C at once, the sum over k of a[row][k] * b[k][0..N), with all sums in registers: two rows of 32 columns, or
// four rows of 16. Written out, because compilers keep an array of sums in memory.
#define LOAD(T, from) (*(const T *)(from))
#define STORE(to, value) (*(__typeof__(value) *)(to) = (value))
#define ROWS_32(NAME, T, SCALAR)                                                          \
  static void NAME(const f32 *const *a, const f32 *const *b, u32 depth, u32 row, SCALAR *c) { \
    SCALAR *d = c + LANES;                                                                \
    T c0 = LOAD(T, c), c1 = LOAD(T, c + 8), c2 = LOAD(T, c + 16), c3 = LOAD(T, c + 24);   \
    T d0 = LOAD(T, d), d1 = LOAD(T, d + 8), d2 = LOAD(T, d + 16), d3 = LOAD(T, d + 24);   \
    for (u32 k = 0; k < depth; k++) {                                                     \
      const SCALAR *x = (const SCALAR *)a[k] + row, *y = (const SCALAR *)b[k];            \
      T y0 = LOAD(T, y), y1 = LOAD(T, y + 8), y2 = LOAD(T, y + 16), y3 = LOAD(T, y + 24); \
      c0 += x[0] * y0, c1 += x[0] * y1, c2 += x[0] * y2, c3 += x[0] * y3;                 \
      d0 += x[1] * y0, d1 += x[1] * y1, d2 += x[1] * y2, d3 += x[1] * y3;                 \
    }                                                                                     \
    STORE(c, c0), STORE(c + 8, c1), STORE(c + 16, c2), STORE(c + 24, c3);                 \
    STORE(d, d0), STORE(d + 8, d1), STORE(d + 16, d2), STORE(d + 24, d3);                 \
  }
#define ROWS_16(NAME, T, SCALAR)                                                          \
  static void NAME(const f32 *const *a, const f32 *const *b, u32 depth, u32 row, SCALAR *c) { \
    SCALAR *d = c + LANES, *e = d + LANES, *f = e + LANES;                                \
    T c0 = LOAD(T, c), c1 = LOAD(T, c + 8), d0 = LOAD(T, d), d1 = LOAD(T, d + 8);         \
    T e0 = LOAD(T, e), e1 = LOAD(T, e + 8), f0 = LOAD(T, f), f1 = LOAD(T, f + 8);         \
    for (u32 k = 0; k < depth; k++) {                                                     \
      const SCALAR *x = (const SCALAR *)a[k] + row, *y = (const SCALAR *)b[k];            \
      T y0 = LOAD(T, y), y1 = LOAD(T, y + 8);                                             \
      c0 += x[0] * y0, c1 += x[0] * y1, d0 += x[1] * y0, d1 += x[1] * y1;                 \
      e0 += x[2] * y0, e1 += x[2] * y1, f0 += x[3] * y0, f1 += x[3] * y1;                 \
    }                                                                                     \
    STORE(c, c0), STORE(c + 8, c1), STORE(d, d0), STORE(d + 8, d1);                       \
    STORE(e, e0), STORE(e + 8, e1), STORE(f, f0), STORE(f + 8, f1);                       \
  }
ROWS_32(rows_32, f8, f32)
ROWS_16(rows_16, f8, f32)
ROWS_32(integer_rows_32, i8v, i32)
ROWS_16(integer_rows_16, i8v, i32)

static void small_block(const shape *s, const f32 *const *a, const f32 *const *b, u32 row, u32 *c, int integers) {
  for (u32 n = 0; n < s->m; n++) {
    if (integers) {
      u32 sum = c[n];
      for (u32 k = 0; k < s->k; k++) sum += (u32)(((const i32 *)a[k])[row] * ((const i32 *)b[k])[n]);
      c[n] = sum;
    } else {
      f32 sum = as_f32(c[n]);
      for (u32 k = 0; k < s->k; k++) sum += a[k][row] * b[k][n];
      c[n] = bits32(sum);
    }
  }
}

static void load_accumulator(wave *w, const record *r, u32 registers, u32 *c) {
  const operand *o = &r->src[2];
  if (o->kind == VECTOR) {
    memcpy(c, w->v + (u64)o->index * LANES, (u64)registers * LANES * 4);
    return;
  }
  u32 value = scalar32(w, o);
  for (u32 n = 0; n < registers * LANES; n++) c[n] = value;
}

static void multiply(wave *w, const record *r, const shape *s, const operands *a, const operands *b, int integers) {
  static _Thread_local u32 c[32 * LANES] __attribute__((aligned(64)));
  u32 groups = LANES / s->m, per_block = s->registers / s->blocks;
  load_accumulator(w, r, s->registers, c);
  for (u32 reg = 0; reg < s->registers; reg++)
    for (u32 group = 0; group < groups; group++) {
      u32 block = s->m == 4 ? group : reg / per_block, inside = reg % per_block;
      u32 row = s->m == 4 ? reg : inside % 4 + 4 * group + 4 * groups * (inside / 4);
      u32 from = r->cbsz ? (block >> r->cbsz << r->cbsz) + r->abid : block;
      const f32 *const *x = a->at + from * s->k, *const *y = b->at + block * s->k;
      u32 *to = c + reg * LANES + group * s->m;
      if (s->m == 32 && reg % 2 == 0) {
        if (integers) integer_rows_32(x, y, s->k, row, (i32 *)to); else rows_32(x, y, s->k, row, (f32 *)to);
      } else if (s->m == 16 && reg % 4 == 0) {
        if (integers) integer_rows_16(x, y, s->k, row, (i32 *)to); else rows_16(x, y, s->k, row, (f32 *)to);
      } else if (s->m == 4) {
        small_block(s, x, y, row, to, integers);
      }
    }
  memcpy(w->v + (u64)r->dst[0].index * LANES, c, (u64)s->registers * LANES * 4);
}

// blgp: each lane takes the values of B of another one.
static void permute_lanes(u32 pattern, u32 count, f32 *values) {
  f32 own[LANES];
  for (u32 j = 0; j < count; j++, values += LANES) {
    memcpy(own, values, sizeof own);
    for (u32 i = 0; i < LANES; i++) {
      u32 from = pattern == 3 ? (i + 16) % LANES : pattern < 3 ? i % 32 + 32 * (pattern - 1) : i % 16 + 16 * (pattern - 4);
      values[i] = own[from];
    }
  }
}

static void matrix(wave *w, const record *r, u32 m, u32 k, u32 blocks, int kind_a, int kind_b) {
  static _Thread_local operands a, b;
  shape s = {m, k, blocks, m * m * blocks / LANES};
  bool permutes = blocks > 1 || kind_b == F32;
  if (!fp8_ready) fill_tables();
  if ((r->blgp && !permutes) || (1u << r->cbsz) > blocks || r->abid >= 1u << r->cbsz)
    return found(w, r, NEEDS, -1, r->blgp, 0, 2);
  u32 count = m * k * blocks / LANES;
  widen(w, r->src[0].index, kind_a, count, a.values);
  widen(w, r->src[1].index, kind_b, count, b.values);
  if (UNLIKELY(r->blgp)) permute_lanes(r->blgp, count, b.values);
  arrange(&s, &a);
  arrange(&s, &b);
  multiply(w, r, &s, &a, &b, kind_a == I8);
}

// Sparse A: two of every four values along K are kept, and two bits of the third source say which each one is. The
// destination is the accumulator. Where the indices of a lane fill a part of the register, abid chooses the part.
static void sparse(wave *w, const record *r, u32 m, u32 k, int kind_a, int kind_b) {
  static _Thread_local operands a, b;
  static _Thread_local f32 kept[MAX_K * 32];
  shape s = {m, k, 1, m * m / LANES};
  if (!fp8_ready) fill_tables();
  if (r->blgp) return found(w, r, NEEDS, -1, r->blgp, 0, 2);
  u32 count = m * k / LANES, half = count / 2, bits = 2 * half, part = r->cbsz ? 0 : r->abid % (32 / bits);
  widen(w, r->src[0].index, kind_a, half, kept);
  widen(w, r->src[1].index, kind_b, count, b.values);
  memset(a.values, 0, (u64)count * LANES * 4);
  const u32 *index = w->v + (u64)r->src[2].index * LANES;
  for (u32 j = 0; j < half; j++)
    for (u32 i = 0; i < LANES; i++) {
      u32 to = (4 * (j / 2) + (index[i] >> (part * bits + 2 * j) & 3)) * LANES + i, from = j * LANES + i;
      if (kind_a == I8) ((i32 *)a.values)[to] += ((const i32 *)kept)[from]; else a.values[to] += kept[from];
    }
  arrange(&s, &a);
  arrange(&s, &b);
  if (r->src[1].dwords == 8) arrange_halves(&s, &b);
  record plain = *r;
  plain.cbsz = plain.abid = 0;
  plain.src[2] = r->dst[0];
  multiply(w, &plain, &s, &a, &b, kind_a == I8);
}

// f8f6f4: 32 elements a lane in the format that cbsz (A) or blgp (B) names, perhaps with a power of two for each.
static f32 power_of_two(u32 e8m0) { return e8m0 == 255 ? __builtin_nanf("") : e8m0 ? as_f32(e8m0 << 23) : as_f32(0x00400000); }

static void widen_formats(wave *w, const record *r, const shape *s, int n, u32 format, operands *o) {
  static const u32 widths[5] = {8, 8, 6, 6, 4};
  u32 bits = widths[format], groups = LANES / s->m;
  const u32 *v = w->v + (u64)r->src[n].index * LANES;
  for (u32 j = 0; j < 32; j++) {
    u32 at = j * bits, d = at / 32;
    for (u32 i = 0; i < LANES; i++) {
      u64 pool = v[d * LANES + i];
      if (at % 32 + bits > 32) pool |= (u64)v[(d + 1) * LANES + i] << 32;
      u32 code = (u32)(pool >> at % 32) & ((1u << bits) - 1), group = i / s->m;
      u32 k = bits == 8 ? 16 * group + j % 16 + 16 * groups * (j / 16) : 32 * group + j;
      f32 value = format < 2 ? fp8_table[format + 2][code] : format < 4 ? fp6_to_float(code, format == 3) : fp4_to_float(code);
      o->values[k * s->m + i % s->m] = value;
    }
  }
  for (u32 k = 0; k < s->k; k++) o->at[k] = o->values + k * s->m;
  if (r->scale[n].kind == NONE) return;
  u32 shift = 8 * ((r->op_sel >> n & 1) | (r->op_sel_hi >> n & 1) << 1);
  for (u32 i = 0; i < LANES; i++) {
    u32 dword = r->scale[n].kind == VECTOR ? w->v[(u64)r->scale[n].index * LANES + i] : scalar32(w, &r->scale[n]);
    f32 factor = power_of_two(dword >> shift & 255);
    for (u32 k = 32 * (i / s->m); k < 32 * (i / s->m) + 32; k++) o->values[k * s->m + i % s->m] *= factor;
  }
}

static void formats(wave *w, const record *r, u32 m, u32 k) {
  static _Thread_local operands a, b;
  shape s = {m, k, 1, m * m / LANES};
  if (!fp8_ready) fill_tables();
  record plain = *r;
  plain.cbsz = plain.abid = 0;
  widen_formats(w, r, &s, 0, r->cbsz, &a);
  widen_formats(w, r, &s, 1, r->blgp, &b);
  multiply(w, &plain, &s, &a, &b, 0);
}

static f64 double_at(const wave *w, u32 row, u32 lane) { return lane_f64(w->v + (u64)row * LANES, (int)lane); }

// Doubles: D[row][column] in register pair p of lane l is row 4 p + l / 16, column l % 16 (16x16), or of block l / 4 % 4,
// row l / 16, column l % 4 (4x4). blgp negates A (1), B (2) and C (4).
static void doubles(wave *w, const record *r, int large) {
  f64 d[4][LANES], sign = (r->blgp & 1) != (r->blgp >> 1 & 1) ? -1.0 : 1.0;
  if (r->cbsz || r->abid) return found(w, r, NEEDS, -1, r->blgp, 0, 2);
  u32 pairs = large ? 4 : 1;
  for (u32 p = 0; p < pairs; p++)
    for (u32 l = 0; l < LANES; l++) {
      const operand *o = &r->src[2];
      f64 sum = o->kind == VECTOR ? double_at(w, o->index + 2 * p, l) : as_f64(scalar64(w, o));
      if (r->blgp & 4) sum = -sum;
      for (u32 k = 0; k < 4; k++) {
        u32 from_a = large ? 16 * k + l / 16 + 4 * p : 16 * k + (l & 12) + l / 16;
        u32 from_b = large ? 16 * k + l % 16 : 16 * k + (l & 12) + l % 4;
        sum = __builtin_fma(sign * double_at(w, r->src[0].index, from_a), double_at(w, r->src[1].index, from_b), sum);
      }
      d[p][l] = sum;
    }
  for (u32 p = 0; p < pairs; p++)
    for (int l = 0; l < LANES; l++) put_f64(w->v + (u64)(r->dst[0].index + 2 * p) * LANES, l, d[p][l]);
}

#define MFMA(NAME, M, K, BLOCKS, A, B) static void NAME(wave *w, const record *r) { matrix(w, r, M, K, BLOCKS, A, B); }
#define SPARSE(NAME, M, K, A, B) static void NAME(wave *w, const record *r) { sparse(w, r, M, K, A, B); }
#define NARROW(NAME, M, K) static void NAME(wave *w, const record *r) { formats(w, r, M, K); }
#define DOUBLE(NAME, LARGE) static void NAME(wave *w, const record *r) { doubles(w, r, LARGE); }
#include "matrix.def"
#undef MFMA
#undef SPARSE
#undef NARROW
#undef DOUBLE
#define MFMA(NAME, ...) {#NAME, NAME, CUSTOM | BLGP},
#define SPARSE MFMA
#define NARROW MFMA
#define DOUBLE(NAME, ...) {#NAME, NAME, CUSTOM | BLGP | MODE_64},
const entry matrix_table[] = {
#include "matrix.def"
    {0, 0, 0},
};
