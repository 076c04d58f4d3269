// Atomics on global, flat and buffer memory, lane after lane, and scalar loads.
#include "atomic.h"
#include "memory.h"

static bool atomic_place(wave *w, const record *r, int space, u64 at, u32 bytes, int lane, u8 **place) {
  u64 window = at & ~0xffffffffull;
  if (at % bytes) {
    found(w, r, MISALIGNED, lane, at, bytes, 0);
    return false;
  }
  if (space == FLAT && window == w->m->shared_base) {
    if ((u32)at > w->m->lds_bytes || bytes > w->m->lds_bytes - (u32)at) {
      found(w, r, OOB_LDS, lane, (u32)at, bytes, w->m->lds_bytes);
      return false;
    }
    *place = 0;
    return true;
  }
  if (space == FLAT && window == w->m->private_base) {
    found(w, r, NEEDS, lane, at, bytes, 0);
    return false;
  }
  *place = reach(w, r, at, bytes, lane, 1);
  return *place != 0;
}

static void atomic(wave *w, const record *r, int space, int kind, u32 bytes) {
  u64 mask = EXEC(w), limit = ~0ull, base = 0;
  if (space == BUFFER) {
    mask = buffer_addresses(w, r, &limit, &base);
    if (w->fault) return;
  } else {
    plain_addresses(w, r, 0);
  }
  const u32 *value = w->v + (u64)r->src[0].index * LANES, *compare = value + bytes / 4 * LANES;
  u32 out[2 * LANES] = {0};
  u64 touched = 0;
  for (int i = 0; i < LANES; i++) {
    if (!(mask >> i & 1)) continue;
    if (space == BUFFER && w->address[i] + bytes > limit) continue;
    u64 at = w->address[i] += base;
    u8 *place;
    if (!atomic_place(w, r, space, at, bytes, i, &place)) return;
    u64 old = 0, v = bytes == 8 ? lane64(value, i) : value[i];
    u64 expected = kind == A_CMPSWAP ? (bytes == 8 ? lane64(compare, i) : compare[i]) : 0;
    u8 *from = place ? place : w->g->lds + (u32)at;
    memcpy(&old, from, bytes);
    u64 next = apply_atomic(kind, old, v, expected);
    if (place)
      memcpy(place, &next, bytes);
    else
      lds_store(w, r, (u32)at, (const u8 *)&next, bytes | 0x100, i);
    touched |= (u64)(place != 0) << i;
    out[i] = (u32)old;
    out[LANES + i] = (u32)(old >> 32);
    w->m->traffic.lane_atomics++;
    if (UNLIKELY(w->m->modelling)) count_atomic(w->m, at);
  }
  if (UNLIKELY(w->m->modelling)) model_access(w, w->address, touched, bytes, 2);
  if (r->dst[0].kind == VECTOR) write_rows(w, r->dst[0].index, out, (int)bytes / 4, EXEC(w));
}

#define ATOMIC_OP(NAME, SPACE, KIND, BYTES) static void NAME(wave *w, const record *r) { atomic(w, r, SPACE, KIND, BYTES); }
#define LOAD(...)
#define STORE(...)
#include "memory.def"

// Scalar loads. The two low address bits do not exist; a buffer load beyond its range gives zero.
static void scalar_load(wave *w, const record *r, u32 dwords, int buffer) {
  u64 offset = (u64)r->offset;
  if (r->soffset.kind != NONE) offset += scalar32(w, &r->soffset);
  u64 base = scalar_pair(w, r->saddr.index), limit = ~0ull;
  if (buffer) {
    descriptor d = read_descriptor(w, r, r->saddr.index);
    u32 stride = w->s[r->saddr.index + 1] >> 16 & 0x3fff;
    base = d.base;
    limit = stride ? d.limit * stride : d.limit;
    if (!d.supported) return;
  }
  u32 values[16];
  for (u32 k = 0; k < dwords; k++) {
    u64 at = (offset & ~3ull) + 4 * k;
    values[k] = 0;
    if (buffer && at + 4 > limit) continue;
    const u8 *from = reach(w, r, ((base & ~3ull) + at), 4, -1, 0);
    if (!from) return;
    memcpy(&values[k], from, 4);
  }
  memcpy(&w->s[r->dst[0].index], values, 4 * dwords);
}
#define SMEM(NAME, DWORDS, IS_BUFFER) static void NAME(wave *w, const record *r) { scalar_load(w, r, DWORDS, IS_BUFFER); }
#define ALL_SMEM                                                                          \
  SMEM(s_load_dword, 1, 0) SMEM(s_load_dwordx2, 2, 0) SMEM(s_load_dwordx4, 4, 0)          \
  SMEM(s_load_dwordx8, 8, 0) SMEM(s_load_dwordx16, 16, 0) SMEM(s_buffer_load_dword, 1, 1) \
  SMEM(s_buffer_load_dwordx2, 2, 1) SMEM(s_buffer_load_dwordx4, 4, 1)                     \
  SMEM(s_buffer_load_dwordx8, 8, 1) SMEM(s_buffer_load_dwordx16, 16, 1)
ALL_SMEM

#undef ATOMIC_OP
#undef SMEM
#define ATOMIC_OP(NAME, ...) {#NAME, NAME, CUSTOM},
#define SMEM ATOMIC_OP
const entry atomic_table[] = {
#include "memory.def"
    ALL_SMEM
    {0, 0, 0},
};
