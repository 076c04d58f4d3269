// Local data share: loads, stores, atomics, transposing loads and lane exchange, with the race detector.
//
// Two waves race on a byte when both touch it between the same two barriers and at least one changes it. Not counted: a
// store that leaves a byte as it was (no schedule can tell the difference), two atomics, and a read beside an atomic
// (compilers read once before a compare-and-swap loop, and an atomic load is an ordinary read).
//
// Lanes that store different values to a byte in one instruction race too, unless `copied_lanes` says that they hold
// copies of one value: of such a store only what the last lane leaves there counts.
#include "core.h"

static inline u32 tag_of(const wave *w, u32 extra) { return w->g->epoch << 8 | (w->number + 1) | extra; }
static inline bool foreign(const wave *w, u32 tag) {
  return tag >> 8 == w->g->epoch && (tag & 0x3f) != w->number + 1;
}

static void split(group *g, u32 word) {
  for (u32 k = 0; k < 4; k++) g->bytes[4 * word + k] = g->words[word];
  g->words[word].write = SPLIT;
}

static inline void note_read(wave *w, const record *r, lds_tag *t, u32 at, int lane) {
  if (UNLIKELY(t->write == 0)) found(w, r, UNINITIALISED_LDS, lane, at, 1, 0);
  if (UNLIKELY(foreign(w, t->write) && !(t->write & ATOMIC_TAG))) found(w, r, LDS_RACE, lane, at, 1, (t->write & 0x3f) - 1);
  u32 mine = tag_of(w, 0);
  t->read = t->read >> 8 == w->g->epoch && t->read != mine ? (w->g->epoch << 8 | SEVERAL) : mine;
}

static inline void note_write(wave *w, const record *r, lds_tag *t, u32 at, int lane, u32 extra) {
  bool both_atomic = extra && (t->write & ATOMIC_TAG);
  if (UNLIKELY(foreign(w, t->write) && !both_atomic)) found(w, r, LDS_RACE, lane, at, 1, (t->write & 0x3f) - 1);
  if (UNLIKELY(!extra && foreign(w, t->read))) found(w, r, LDS_RACE, lane, at, 1, (t->read & 0x3f) - 1);
  bool plain_before = t->write >> 8 == w->g->epoch && !(t->write & ATOMIC_TAG);
  t->write = tag_of(w, plain_before ? 0 : extra);
}

static void check_read(wave *w, const record *r, u32 at, u32 bytes, int lane) {
  group *g = w->g;
  while (bytes) {
    lds_tag *word = &g->words[at >> 2];
    if (LIKELY((at & 3) == 0 && bytes >= 4 && word->write != SPLIT)) {
      note_read(w, r, word, at, lane);
      at += 4, bytes -= 4;
      continue;
    }
    if (word->write != SPLIT) split(g, at >> 2);
    note_read(w, r, &g->bytes[at], at, lane);
    at++, bytes--;
  }
}

// Before a store: notes it and writes the bytes.
static void check_write(wave *w, const record *r, u32 at, const u8 *value, u32 bytes, int lane, u32 extra) {
  group *g = w->g;
  while (bytes) {
    lds_tag *word = &g->words[at >> 2];
    if (LIKELY((at & 3) == 0 && bytes >= 4 && word->write != SPLIT)) {
      if (memcmp(g->lds + at, value, 4) != 0 || word->write == 0) note_write(w, r, word, at, lane, extra);
      memcpy(g->lds + at, value, 4);
      at += 4, value += 4, bytes -= 4;
      continue;
    }
    if (word->write != SPLIT) split(g, at >> 2);
    lds_tag *t = &g->bytes[at];
    if (g->lds[at] != *value || t->write == 0) note_write(w, r, t, at, lane, extra);
    g->lds[at] = *value;
    at++, value++, bytes--;
  }
}

static inline bool in_range(wave *w, const record *r, u32 at, u32 bytes, int lane) {
  u32 size = w->m->lds_bytes;
  if (LIKELY(at <= size && bytes <= size - at)) return true;
  found(w, r, OOB_LDS, lane, at, bytes, size);
  return false;
}

void lds_note(wave *w, const record *r, u32 at, u32 bytes, int lane) { check_read(w, r, at, bytes, lane); }

void lds_store(wave *w, const record *r, u32 at, const u8 *value, u32 bytes, int lane) {
  u32 count = bytes & 0xff;
  if (in_range(w, r, at, count, lane)) check_write(w, r, at, value, count, lane, bytes & 0x100 ? ATOMIC_TAG : 0);
}

static const u32 *lds_addresses(wave *w, const record *r) {
  static const u32 nothing[LANES];
  return r->vaddr.kind == VECTOR ? w->v + (u64)r->vaddr.index * LANES : nothing;
}

static void bank_model(wave *w, const u32 *base, i64 offset, u32 bytes) {
  if (!w->m->modelling) return;
  u32 at[LANES];
  for (int i = 0; i < LANES; i++) at[i] = base[i] + (u32)offset;
  model_banks(w, at, EXEC(w), bytes);
}

// Notes a read of a whole dword where nothing is to be found; false sends it the long way.
static inline bool quick_read(lds_tag *t, u32 epoch, u32 mine) {
  u32 tag = t->write;
  if (tag == 0 || (tag >= epoch && (tag & 0x3f) != (mine & 0x3f))) return false;
  t->read = t->read >= epoch && t->read != mine ? epoch | SEVERAL : mine;
  return true;
}
static inline bool quick_write(lds_tag *t, u32 epoch, u32 mine) {
  if ((t->write >= epoch && t->write != mine) || (t->read >= epoch && t->read != mine)) return false;
  t->write = mine;
  return true;
}

// `bytes` per lane from base + offset into rows of `out`.
static bool gather(wave *w, const record *r, const u32 *base, i64 offset, u32 bytes, u32 *out) {
  u64 exec = EXEC(w);
  u32 epoch = w->g->epoch << 8, mine = tag_of(w, 0), dwords = bytes / 4;
  bank_model(w, base, offset, bytes);
  for (u64 rest = exec; rest; rest &= rest - 1) {
    int i = __builtin_ctzll(rest);
    u32 at = base[i] + (u32)offset, d = 0;
    if (!in_range(w, r, at, bytes, i)) return false;
    lds_tag *tags = &w->g->words[at >> 2];
    if (LIKELY((at & 3) == 0))
      while (d < dwords && quick_read(&tags[d], epoch, mine)) d++;
    if (UNLIKELY(4 * d < bytes)) check_read(w, r, at + 4 * d, bytes - 4 * d, i);
    if (bytes < 4) {
      u32 value = 0;
      memcpy(&value, w->g->lds + at, bytes);
      out[i] = value;
    }
    for (d = 0; d < dwords; d++) memcpy(&out[d * LANES + i], w->g->lds + at + 4 * d, 4);
  }
  return true;
}

// Whether one of the lanes `later` stores to the address of lane i as well.
static bool stored_again(const u32 *base, int i, u64 later) {
  for (; later; later &= later - 1)
    if (base[__builtin_ctzll(later)] == base[i]) return true;
  return false;
}

static void scatter(wave *w, const record *r, const u32 *base, i64 offset, u32 bytes, u32 row, u32 shift) {
  u64 exec = EXEC(w);
  const u32 *value = w->v + (u64)row * LANES;
  u32 epoch = w->g->epoch << 8, mine = tag_of(w, 0), dwords = bytes / 4, least = 0;
  bool ascending = true;
  bank_model(w, base, offset, bytes);
  for (u64 rest = exec; rest; rest &= rest - 1) {
    int i = __builtin_ctzll(rest);
    u32 at = base[i] + (u32)offset, words[4], d = 0;
    if (!in_range(w, r, at, bytes, i)) return;
    ascending &= at >= least;
    least = at + bytes;
    if (LIKELY(dwords && (at & 3) == 0))
      for (; d < dwords; d++) {
        lds_tag *t = &w->g->words[(at >> 2) + d];
        u32 old, word = value[d * LANES + i];
        memcpy(&old, w->g->lds + at + 4 * d, 4);
        if (old == word && t->write != 0 && t->write != SPLIT) continue;
        if (t->write == SPLIT || !quick_write(t, epoch, mine)) break;
        memcpy(w->g->lds + at + 4 * d, &word, 4);
      }
    if (LIKELY(dwords && d == dwords)) continue;
    if (w->m->copied_lanes && stored_again(base, i, rest & (rest - 1))) continue;
    for (u32 k = 0; k < (bytes + 3) / 4; k++) words[k] = value[k * LANES + i] >> shift;
    check_write(w, r, at + 4 * d, (const u8 *)(words + d), bytes - 4 * d, i, 0);
  }
  if (ascending) return;
  for (u64 rest = exec; rest; rest &= rest - 1) {  // lanes of one wave that store different values to a byte race as well
    int i = __builtin_ctzll(rest);
    u32 at = base[i] + (u32)offset;
    for (u32 d = 0; d < (bytes + 3) / 4; d++) {
      u32 word = value[d * LANES + i] >> shift;
      if (memcmp(w->g->lds + at + 4 * d, &word, bytes < 4 ? bytes : 4) != 0) {
        if (w->m->copied_lanes && stored_again(base, i, rest & (rest - 1))) break;
        found(w, r, LDS_RACE, i, at + 4 * d, bytes, w->number);
        return;
      }
    }
  }
}

enum extend { ZERO, SIGN8, SIGN16 };
static void read_one(wave *w, const record *r, u32 bytes, int extend, int half) {
  u32 out[4 * LANES], *old = w->v + (u64)r->dst[0].index * LANES;
  if (!gather(w, r, lds_addresses(w, r), r->offset, bytes, out)) return;
  if (extend == SIGN8) EACH_LANE out[i] = (u32)(i32)(i8)out[i];
  if (extend == SIGN16) EACH_LANE out[i] = (u32)(i32)(i16)out[i];
  if (half == 1) EACH_LANE out[i] = (old[i] & 0xffff0000u) | (out[i] & 0xffff);
  if (half == 2) EACH_LANE out[i] = (old[i] & 0xffff) | out[i] << 16;
  write_rows(w, r->dst[0].index, out, bytes < 4 ? 1 : (int)bytes / 4, EXEC(w));
}
static void read_two(wave *w, const record *r, u32 bytes) {
  u32 out[4 * LANES];
  const u32 *base = lds_addresses(w, r);
  if (!gather(w, r, base, r->offset, bytes, out)) return;
  if (!gather(w, r, base, r->offset1, bytes, out + bytes / 4 * LANES)) return;
  write_rows(w, r->dst[0].index, out, (int)bytes / 2, EXEC(w));
}
#define READ(NAME, BYTES, EXTEND, HALF) static void NAME(wave *w, const record *r) { read_one(w, r, BYTES, EXTEND, HALF); }
#define READ2(NAME, BYTES) static void NAME(wave *w, const record *r) { read_two(w, r, BYTES); }
#define WRITE(NAME, BYTES, SHIFT) \
  static void NAME(wave *w, const record *r) { scatter(w, r, lds_addresses(w, r), r->offset, BYTES, r->src[0].index, SHIFT); }
#define WRITE2(NAME, BYTES)                                                               \
  static void NAME(wave *w, const record *r) {                                            \
    const u32 *base = lds_addresses(w, r);                                                \
    scatter(w, r, base, r->offset, BYTES, r->src[0].index, 0);                            \
    scatter(w, r, base, r->offset1, BYTES, r->src[1].index, 0);                           \
  }

// Transposing loads: within 16 lanes, element j of lane i comes from the lane that loaded row j, column i.
static void read_transposed(wave *w, const record *r, u32 bytes, u32 bits) {
  u32 in[3 * LANES], out[3 * LANES];
  memset(out, 0, sizeof out);
  memset(in, 0, sizeof in);
  if (!gather(w, r, lds_addresses(w, r), r->offset, bytes, in)) return;
  u32 elements = 8 * bytes / bits, lanes_per_row = 16 / elements;
  for (u32 i = 0; i < LANES; i++)
    for (u32 j = 0; j < elements; j++) {
      u32 from = (i & ~15u) + j * lanes_per_row + (i & 15) / elements, bit = (i & 15) % elements * bits;
      u64 pool = in[bit / 32 * LANES + from];
      if (bit / 32 + 1 < bytes / 4) pool |= (u64)in[(bit / 32 + 1) * LANES + from] << 32;
      u64 element = pool >> bit % 32 & ((1u << bits) - 1);
      u32 to = j * bits;
      out[to / 32 * LANES + i] |= (u32)(element << to % 32);
      if (to % 32 + bits > 32) out[(to / 32 + 1) * LANES + i] |= (u32)(element >> (32 - to % 32));
    }
  write_rows(w, r->dst[0].index, out, (int)bytes / 4, EXEC(w));
}
#define READ_TR(NAME, BYTES, BITS) static void NAME(wave *w, const record *r) { read_transposed(w, r, BYTES, BITS); }

static void ds_bpermute_b32(wave *w, const record *r) {
  const u32 *at = lds_addresses(w, r), *value = w->v + (u64)r->src[0].index * LANES;
  const u32 *live = exec_lanes(w, EXEC(w));
  u32 out[LANES];
  for (int i = 0; i < LANES; i++) {
    u32 from = (at[i] + (u32)r->offset) >> 2 & 63;
    out[i] = value[from] & live[from];
  }
  write_rows(w, r->dst[0].index, out, 1, EXEC(w));
}
static void ds_permute_b32(wave *w, const record *r) {
  const u32 *at = lds_addresses(w, r), *value = w->v + (u64)r->src[0].index * LANES;
  u64 exec = EXEC(w);
  u32 out[LANES] = {0};
  for (int i = 0; i < LANES; i++)
    if (exec >> i & 1) out[(at[i] + (u32)r->offset) >> 2 & 63] = value[i];
  write_rows(w, r->dst[0].index, out, 1, exec);
}
// The pattern is in the offset: bit 15 set, a quad permutation; otherwise and/or/xor masks within 32 lanes.
static void ds_swizzle_b32(wave *w, const record *r) {
  const u32 *value = lds_addresses(w, r);
  u32 pattern = (u32)r->offset, out[LANES];
  u64 exec = EXEC(w);
  if (pattern >> 13 == 7 || pattern >> 13 == 6) return found(w, r, NEEDS, -1, pattern, 0, 0);
  for (u32 i = 0; i < LANES; i++) {
    u32 from = pattern >> 15 ? (i & ~3u) | (pattern >> 2 * (i & 3) & 3)
                             : (i & 32) | ((((i & 31) & (pattern & 31)) | (pattern >> 5 & 31)) ^ (pattern >> 10 & 31));
    out[i] = exec >> from & 1 ? value[from] : 0;
  }
  write_rows(w, r->dst[0].index, out, 1, exec);
}

#include "atomic.h"
static void lds_atomic(wave *w, const record *r, int kind, u32 bytes, int returns) {
  const u32 *base = lds_addresses(w, r), *value = w->v + (u64)r->src[0].index * LANES;
  const u32 *second = w->v + (u64)r->src[1].index * LANES;
  u64 exec = EXEC(w);
  u32 out[2 * LANES] = {0};
  bank_model(w, base, r->offset, bytes);
  for (int i = 0; i < LANES; i++) {
    if (!(exec >> i & 1)) continue;
    u32 at = base[i] + (u32)r->offset;
    if (!in_range(w, r, at, bytes, i)) return;
    if (at % bytes) return found(w, r, MISALIGNED, i, at, bytes, 0);
    if (w->g->words[at >> 2].write == 0) found(w, r, UNINITIALISED_LDS, i, at, 1, 0);
    u64 old = 0, operand_value = bytes == 8 ? lane64(value, i) : value[i];
    u64 other = r->src[1].kind == NONE ? 0 : bytes == 8 ? lane64(second, i) : second[i];
    memcpy(&old, w->g->lds + at, bytes);
    u64 next = kind == A_CMPSWAP ? (old == operand_value ? other : old) : apply_atomic(kind, old, operand_value, 0);
    check_write(w, r, at, (const u8 *)&next, bytes, i, ATOMIC_TAG);
    w->m->traffic.lds_lane_atomics++;
    out[i] = (u32)old;
    out[LANES + i] = (u32)(old >> 32);
  }
  if (returns) write_rows(w, r->dst[0].index, out, (int)bytes / 4, exec);
}
#define LDS_ATOMIC(NAME, KIND, BYTES, RETURNS) \
  static void NAME(wave *w, const record *r) { lds_atomic(w, r, KIND, BYTES, RETURNS); }

// One dword at M0 plus the offset goes up or down by the number of active lanes, which all get the value before.
static void lds_counter(wave *w, const record *r, int sign) {
  u64 exec = EXEC(w);
  if (!exec) return;
  u32 at = w->s[124] + (u32)r->offset, old, next, out[LANES];
  int lane = __builtin_ctzll(exec);
  if (!in_range(w, r, at, 4, lane)) return;
  if (at % 4) return found(w, r, MISALIGNED, lane, at, 4, 0);
  if (w->g->words[at >> 2].write == 0) found(w, r, UNINITIALISED_LDS, lane, at, 1, 0);
  memcpy(&old, w->g->lds + at, 4);
  next = old + (u32)(sign * __builtin_popcountll(exec));
  check_write(w, r, at, (const u8 *)&next, 4, lane, ATOMIC_TAG);
  w->m->traffic.lds_lane_atomics++;
  for (int i = 0; i < LANES; i++) out[i] = old;
  write_rows(w, r->dst[0].index, out, 1, exec);
}
static void ds_append(wave *w, const record *r) { lds_counter(w, r, 1); }
static void ds_consume(wave *w, const record *r) { lds_counter(w, r, -1); }

#include "lds.def"
#undef READ
#undef READ2
#undef WRITE
#undef WRITE2
#undef READ_TR
#undef LDS_ATOMIC
#define READ(NAME, ...) {#NAME, NAME, CUSTOM},
#define READ2 READ
#define WRITE READ
#define WRITE2 READ
#define READ_TR READ
#define LDS_ATOMIC READ
const entry lds_table[] = {
#include "lds.def"
    {"ds_bpermute_b32", ds_bpermute_b32, CUSTOM},
    {"ds_permute_b32", ds_permute_b32, CUSTOM},
    {"ds_swizzle_b32", ds_swizzle_b32, CUSTOM},
    {"ds_append", ds_append, CUSTOM},
    {"ds_consume", ds_consume, CUSTOM},
    {0, 0, 0},
};
