// Global, flat, scratch and buffer memory, and scalar loads. Every access lies inside one region or is a finding; buffer
// accesses beyond their descriptor's range read zero and write nothing, as the hardware does.
#include "core.h"
#include "memory.h"

const region *find_region(machine *m, u64 address, u64 bytes) {
  const region *last = &m->regions[m->last_region];
  if (LIKELY(address - last->base < last->size && bytes <= last->size - (address - last->base))) return last;
  u32 low = 0, high = m->region_count;
  while (low < high) {
    u32 middle = (low + high) / 2;
    if (m->regions[middle].base <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (low == 0) return 0;
  const region *found_region = &m->regions[low - 1];
  u64 at = address - found_region->base;
  if (at >= found_region->size || bytes > found_region->size - at) return 0;
  m->last_region = low - 1;
  return found_region;
}

static bool readable(wave *w, const record *r, const region *g, u64 at, u32 bytes, int lane) {
  if (!g->valid) return true;
  for (u32 k = 0; k < bytes; k++)
    if (!g->valid[at + k]) {
      found(w, r, UNINITIALISED_GLOBAL, lane, g->base + at + k, 1, 0);
      return true;
    }
  return true;
}

// One lane. NULL after a finding that ends the run.
u8 *reach(wave *w, const record *r, u64 address, u32 bytes, int lane, int writing) {
  const region *g = find_region(w->m, address, bytes);
  if (UNLIKELY(!g)) {
    found(w, r, OOB_GLOBAL, lane, address, bytes, (u32)writing);
    return 0;
  }
  u64 at = address - g->base;
  if (writing) {
    if (!g->writable) {
      found(w, r, READ_ONLY, lane, address, bytes, 0);
      return 0;
    }
    if (g->valid) memset(g->valid + at, 1, bytes);
  } else {
    readable(w, r, g, at, bytes, lane);
  }
  return g->data + at;
}

// Addresses. Fills w->address and says which active lanes take part (buffers drop lanes beyond their range).
void plain_addresses(wave *w, const record *r, int scratch) {
  u64 base = (u64)r->offset, *a = w->address;
  if (r->saddr.kind == SCALAR) base += scratch ? (u64)(i64)(i32)w->s[r->saddr.index] : scalar_pair(w, r->saddr.index);
  if (r->vaddr.kind == NONE) {
    EACH_LANE a[i] = base;
    return;
  }
  const u32 *v = w->v + (u64)r->vaddr.index * LANES;
  if (r->vaddr.dwords > 1)
    EACH_LANE a[i] = base + (v[i] | (u64)v[LANES + i] << 32);
  else if (scratch)
    EACH_LANE a[i] = base + v[i];
  else
    EACH_LANE a[i] = base + v[i];
  if (scratch) EACH_LANE a[i] &= 0xffffffffull;
}

descriptor read_descriptor(wave *w, const record *r, u32 index) {
  u32 s1 = w->s[index + 1], s3 = w->s[index + 3], stride = s1 >> 16 & 0x3fff;
  descriptor d = {w->s[index] | (u64)(s1 & 0xffff) << 32, w->s[index + 2], true};
  bool swizzle = s1 >> 31, add_tid = s3 >> 23 & 1;
  if (swizzle || add_tid || (stride && r->idxen)) {
    found(w, r, NEEDS, -1, stride, 0, 1);
    d.supported = false;
  }
  return d;
}

// Buffer offsets, without the base: lane part plus instruction offset; the scalar offset is added afterwards, and what it
// takes is subtracted from the range.
u64 buffer_addresses(wave *w, const record *r, u64 *limit, u64 *base) {
  descriptor d = read_descriptor(w, r, r->saddr.index);
  u64 soffset = r->soffset.kind == NONE ? 0 : scalar32(w, &r->soffset), *a = w->address;
  *limit = d.limit > soffset ? d.limit - soffset : 0;
  *base = d.base + soffset;
  if (!d.supported) return 0;
  if (r->vaddr.kind == NONE || !(r->offen || r->idxen)) {
    EACH_LANE a[i] = (u64)r->offset;
  } else {
    const u32 *v = w->v + ((u64)r->vaddr.index + (r->idxen && r->offen ? 1 : 0)) * LANES;
    u64 offset = (u64)r->offset;
    if (r->offen)
      EACH_LANE a[i] = offset + v[i];
    else
      EACH_LANE a[i] = offset;
  }
  return EXEC(w);
}

static bool bounds(const u64 *a, u64 mask, u64 *low, u64 *high) {
  if (!mask) return false;
  u64 first = a[__builtin_ctzll(mask)];
  i64 least = (i64)first, most = (i64)first;
  if (mask == ~0ull) {
    for (int i = 0; i < LANES; i++) {
      i64 x = (i64)a[i];
      least = x < least ? x : least;
      most = x > most ? x : most;
    }
  } else {
    for (int i = 0; i < LANES; i++) {
      i64 x = mask >> i & 1 ? (i64)a[i] : (i64)first;
      least = x < least ? x : least;
      most = x > most ? x : most;
    }
  }
  *low = (u64)least;
  *high = (u64)most;
  return least >= 0;
}

static inline void spread(const u8 *from, u32 bytes, u32 *out, int i) {
  u32 words[4] = {0};
  memcpy(words, from, bytes);
  for (u32 d = 0; d < (bytes + 3) / 4; d++) out[d * LANES + i] = words[d];
}

static void load_inside(const u8 *data, const u64 *a, u64 mask, u32 bytes, u32 *out) {
  if (bytes == 4 && mask == ~0ull) {
    for (int i = 0; i < LANES; i++) memcpy(&out[i], data + a[i], 4);
  } else if (bytes == 16 && mask == ~0ull) {
    for (int i = 0; i < LANES; i += 4) {
      quad x[4];
      for (int k = 0; k < 4; k++) memcpy(&x[k], data + a[i + k], 16);
      transpose4(&x[0], &x[1], &x[2], &x[3]);
      for (int k = 0; k < 4; k++) memcpy(&out[k * LANES + i], &x[k], 16);
    }
  } else if (bytes >= 4) {
    for (u64 rest = mask; rest; rest &= rest - 1) {
      int i = __builtin_ctzll(rest);
      for (u32 d = 0; d < bytes / 4; d++) memcpy(&out[d * LANES + i], data + a[i] + 4 * d, 4);
    }
  } else {
    for (u64 rest = mask; rest; rest &= rest - 1) {
      int i = __builtin_ctzll(rest);
      u32 value = data[a[i]];
      if (bytes == 2) value |= (u32)data[a[i] + 1] << 8;
      out[i] = value;
    }
  }
}

static void store_inside(u8 *data, const u64 *a, u64 mask, u32 bytes, const u32 *value, u32 shift) {
  if (bytes == 16 && mask == ~0ull) {
    for (int i = 0; i < LANES; i += 4) {
      quad x[4];
      for (int k = 0; k < 4; k++) memcpy(&x[k], &value[k * LANES + i], 16);
      transpose4(&x[0], &x[1], &x[2], &x[3]);
      for (int k = 0; k < 4; k++) memcpy(data + a[i + k], &x[k], 16);
    }
    return;
  }
  for (u64 rest = mask; rest; rest &= rest - 1) {
    int i = __builtin_ctzll(rest);
    u32 word = value[i] >> shift;
    if (bytes < 4) {
      memcpy(data + a[i], &word, bytes);
      continue;
    }
    for (u32 d = 0; d < bytes / 4; d++) memcpy(data + a[i] + 4 * d, &value[d * LANES + i], 4);
  }
}

// Loads `bytes` for each lane of `mask` into rows of `out`. Where all lanes address one region, checks are made once.
static bool load_lanes(wave *w, const record *r, u64 mask, u32 bytes, u32 *out) {
  u64 low, high, *a = w->address;
  if (!mask) return true;
  const region *g = bounds(a, mask, &low, &high) ? find_region(w->m, low, high - low + bytes) : 0;
  if (UNLIKELY(w->m->modelling)) model_access(w, a, mask, bytes, 0);
  if (LIKELY(g && !g->valid)) {
    load_inside(g->data - g->base, a, mask, bytes, out);
    return true;
  }
  for (u64 rest = mask; rest; rest &= rest - 1) {
    int i = __builtin_ctzll(rest);
    const u8 *from = reach(w, r, a[i], bytes, i, 0);
    if (!from) return false;
    spread(from, bytes, out, i);
  }
  return true;
}

static bool store_lanes(wave *w, const record *r, u64 mask, u32 bytes, const u32 *value, u32 shift) {
  u64 low, high, *a = w->address;
  if (!mask) return true;
  const region *g = bounds(a, mask, &low, &high) ? find_region(w->m, low, high - low + bytes) : 0;
  if (UNLIKELY(w->m->modelling)) model_access(w, a, mask, bytes, 1);
  if (LIKELY(g && !g->valid && g->writable)) {
    store_inside(g->data - g->base, a, mask, bytes, value, shift);
    return true;
  }
  for (u64 rest = mask; rest; rest &= rest - 1) {
    int i = __builtin_ctzll(rest);
    u8 *to = reach(w, r, a[i], bytes, i, 1);
    if (!to) return false;
    u32 words[4];
    for (u32 d = 0; d < (bytes + 3) / 4; d++) words[d] = value[d * LANES + i] >> shift;
    memcpy(to, words, bytes);
  }
  return true;
}

// Flat lanes that mean LDS or scratch, one by one.
static bool flat_lane(wave *w, const record *r, int i, u32 bytes, u32 *out, const u32 *value, u32 shift) {
  u64 address = w->address[i], window = address & ~0xffffffffull;
  u32 at = (u32)address, words[4];
  u8 *place;
  if (window == w->m->shared_base) {
    if (at > w->m->lds_bytes || bytes > w->m->lds_bytes - at) {
      found(w, r, OOB_LDS, i, at, bytes, w->m->lds_bytes);
      return false;
    }
    if (value) {
      for (u32 d = 0; d < (bytes + 3) / 4; d++) words[d] = value[d * LANES + i] >> shift;
      lds_store(w, r, at, (const u8 *)words, bytes, i);
      return !w->fault;
    }
    lds_note(w, r, at, bytes, i);
    place = w->g->lds + at;
  } else if (window == w->m->private_base) {
    if (at > w->m->private_bytes || bytes > w->m->private_bytes - at) {
      found(w, r, OOB_SCRATCH, i, at, bytes, w->m->private_bytes);
      return false;
    }
    place = w->scratch + (u64)i * w->m->private_bytes + at;
  } else {
    place = reach(w, r, address, bytes, i, value != 0);
    if (!place) return false;
  }
  if (value) {
    for (u32 d = 0; d < (bytes + 3) / 4; d++) words[d] = value[d * LANES + i] >> shift;
    memcpy(place, words, bytes);
  } else {
    spread(place, bytes, out, i);
  }
  return true;
}

static bool scratch_lanes(wave *w, const record *r, u64 mask, u32 bytes, u32 *out, const u32 *value, u32 shift) {
  u32 size = w->m->private_bytes;
  for (int i = 0; i < LANES; i++) {
    if (!(mask >> i & 1)) continue;
    u64 at = w->address[i];
    if (at > size || bytes > size - at) {
      found(w, r, OOB_SCRATCH, i, at, bytes, size);
      return false;
    }
    u8 *place = w->scratch + (u64)i * size + at;
    if (value) {
      u32 words[4];
      for (u32 d = 0; d < (bytes + 3) / 4; d++) words[d] = value[d * LANES + i] >> shift;
      memcpy(place, words, bytes);
    } else {
      spread(place, bytes, out, i);
    }
  }
  return true;
}

// Reads or writes buffer elements dword by dword, because the range check is per dword.
static bool buffer_lanes(wave *w, const record *r, u32 bytes, u32 *out, const u32 *value, u32 shift) {
  u64 limit, base, mask = buffer_addresses(w, r, &limit, &base);
  if (w->fault) return false;
  u64 offsets[LANES], whole = 0;
  memcpy(offsets, w->address, sizeof offsets);
  for (int i = 0; i < LANES; i++) whole |= (u64)(offsets[i] + bytes <= limit) << i;
  for (int i = 0; i < LANES; i++) w->address[i] = base + offsets[i];
  if (value ? !store_lanes(w, r, mask & whole, bytes, value, shift) : !load_lanes(w, r, mask & whole, bytes, out)) return false;
  u64 rest = mask & ~whole;
  u32 step = bytes < 4 ? bytes : 4;
  if (!rest) return true;
  if (!value)
    for (u32 d = 0; d < (bytes + 3) / 4; d++)
      for (int i = 0; i < LANES; i++)
        if (rest >> i & 1) out[d * LANES + i] = 0;
  for (u32 d = 0; d * 4 + step <= bytes; d++) {
    u64 inside = 0;
    for (int i = 0; i < LANES; i++) {
      inside |= (u64)(offsets[i] + 4 * d + step <= limit) << i;
      w->address[i] = base + offsets[i] + 4 * d;
    }
    inside &= rest;
    if (!inside) continue;
    if (value ? !store_lanes(w, r, inside, step, value + d * LANES, shift) : !load_lanes(w, r, inside, step, out + d * LANES)) return false;
  }
  return true;
}

static u64 flat_special_lanes(const wave *w, u64 mask) {
  u64 special = 0;
  for (int i = 0; i < LANES; i++) {
    u64 window = w->address[i] & ~0xffffffffull;
    special |= (u64)(window == w->m->shared_base || window == w->m->private_base) << i;
  }
  return special & mask;
}

// One access of `bytes` per active lane: a load into `out`, or a store of `value` where that is given.
static bool access_lanes(wave *w, const record *r, int space, u32 bytes, u32 *out, const u32 *value, u32 shift) {
  u64 mask = EXEC(w);
  if (space == BUFFER) return buffer_lanes(w, r, bytes, out, value, shift);
  plain_addresses(w, r, space == SCRATCH);
  if (space == SCRATCH) return scratch_lanes(w, r, mask, bytes, out, value, shift);
  if (space == FLAT) {
    u64 special = flat_special_lanes(w, mask);
    for (int i = 0; i < LANES; i++)
      if (special >> i & 1 && !flat_lane(w, r, i, bytes, out, value, shift)) return false;
    mask &= ~special;
  }
  return value ? store_lanes(w, r, mask, bytes, value, shift) : load_lanes(w, r, mask, bytes, out);
}

enum extend { ZERO, SIGN8, SIGN16 };

// Data that goes straight to LDS: M0 plus the instruction's offset, then lane after lane.
static void load_to_lds(wave *w, const record *r, int space, u32 bytes, int extend) {
  u32 out[4 * LANES], unit = bytes < 4 ? 4 : bytes;
  u64 exec = EXEC(w);
  if (!access_lanes(w, r, space, bytes, out, 0, 0)) return;
  if (extend == SIGN8) EACH_LANE out[i] = (u32)(i32)(i8)out[i];
  if (extend == SIGN16) EACH_LANE out[i] = (u32)(i32)(i16)out[i];
  for (u32 i = 0; i < LANES; i++)
    if (exec >> i & 1) {
      u32 words[4];
      for (u32 d = 0; d < unit / 4; d++) words[d] = out[d * LANES + i];
      lds_store(w, r, w->s[124] + (u32)r->offset + i * unit, (const u8 *)words, unit, (int)i);
      if (w->fault) return;
    }
}

static void load(wave *w, const record *r, int space, u32 bytes, int extend, int half) {
  u32 out[4 * LANES];
  if (r->lds) {
    load_to_lds(w, r, space, bytes, extend);
    return;
  }
  u32 *old = w->v + (u64)r->dst[0].index * LANES;
  if (!access_lanes(w, r, space, bytes, out, 0, 0)) return;
  if (extend == SIGN8) EACH_LANE out[i] = (u32)(i32)(i8)out[i];
  if (extend == SIGN16) EACH_LANE out[i] = (u32)(i32)(i16)out[i];
  if (half == 1) EACH_LANE out[i] = (old[i] & 0xffff0000u) | (out[i] & 0xffff);
  if (half == 2) EACH_LANE out[i] = (old[i] & 0xffff) | out[i] << 16;
  write_rows(w, r->dst[0].index, out, bytes < 4 ? 1 : (int)bytes / 4, EXEC(w));
}
static void store(wave *w, const record *r, int space, u32 bytes, u32 shift) {
  access_lanes(w, r, space, bytes, 0, w->v + (u64)r->src[0].index * LANES, shift);
}

#define LOAD(NAME, SPACE, BYTES, EXTEND, HALF) static void NAME(wave *w, const record *r) { load(w, r, SPACE, BYTES, EXTEND, HALF); }
#define STORE(NAME, SPACE, BYTES, SHIFT) static void NAME(wave *w, const record *r) { store(w, r, SPACE, BYTES, SHIFT); }
#define ATOMIC_OP(...)
#include "memory.def"

#undef LOAD
#undef STORE
#undef ATOMIC_OP
#define LOAD(NAME, ...) {#NAME, NAME, CUSTOM},
#define STORE LOAD
#define ATOMIC_OP(...)
const entry memory_table[] = {
#include "memory.def"
    {0, 0, 0},
};
