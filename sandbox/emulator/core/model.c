// Models behind the counters that depend on hardware organisation: L2 traffic and LDS bank conflicts. They are models, not
// measurements: lines of 128 bytes, one 4 MiB 16-way L2 per XCD with least-recently-used replacement, workgroups dealt to
// the XCDs in turn; 32 LDS banks of one dword (64 on gfx950).
#include "core.h"
#include <stdlib.h>

enum { LINE = 128, WAYS = 16, SETS = (4 << 20) / LINE / WAYS, MAX_BANKS = 64 };

struct cache {
  u64 tag[SETS][WAYS];
  u64 used[SETS][WAYS];
  u64 now;
};

cache *ws_new_caches(u32 count) { return calloc(count, sizeof(cache)); }
void ws_free_caches(cache *caches) { free(caches); }

static bool touch(cache *c, u64 line) {
  u32 set = (u32)(line % SETS), oldest = 0;
  c->now++;
  for (u32 k = 0; k < WAYS; k++) {
    if (c->tag[set][k] == line + 1) {
      c->used[set][k] = c->now;
      return true;
    }
    if (c->used[set][k] < c->used[set][oldest]) oldest = k;
  }
  c->tag[set][oldest] = line + 1;
  c->used[set][oldest] = c->now;
  return false;
}

// kind: 0 load, 1 store, 2 atomic. Requests of 128 bytes (loads) or 64 bytes (stores); each line of a wave counts once.
void model_access(wave *w, const u64 *addresses, u64 mask, u32 bytes, int kind) {
  traffic *t = &w->m->traffic;
  cache *c = &w->m->caches[w->g->linear % w->m->xcds];
  u64 unit = kind == 1 ? LINE / 2 : LINE, last = ~0ull, recent[8];
  u32 known = 0;
  for (int i = 0; i < LANES; i++) {
    if (!(mask >> i & 1)) continue;
    u64 first = addresses[i] / unit, end = (addresses[i] + bytes - 1) / unit;
    for (u64 line = first; line <= end; line++) {
      if (line == last && kind != 2) continue;
      bool repeated = false;
      for (u32 k = 0; k < known && kind != 2; k++) repeated |= recent[k] == line;
      if (repeated) continue;
      if (known < 8) recent[known++] = line; else recent[line & 7] = line;
      last = line;
      bool hit = touch(c, line * unit / LINE);
      *(kind == 0 ? &t->tcc_read : kind == 1 ? &t->tcc_write : &t->tcc_atomic) += 1;
      *(hit ? &t->tcc_hit : &t->tcc_miss) += 1;
    }
  }
}

// Extra cycles of an LDS access: lanes are served in groups of half a wave (a quarter for 8 bytes, an eighth for 16); in
// a group each bank serves one dword a cycle, and equal dwords are one.
void model_banks(wave *w, const u32 *addresses, u64 mask, u32 bytes) {
  int group = bytes >= 16 ? 8 : bytes >= 8 ? 16 : 32;
  u32 dwords = bytes < 4 ? 1 : bytes / 4, banks = w->m->arch >= 950 ? 64 : 32;
  for (int start = 0; start < LANES; start += group) {
    u32 distinct[MAX_BANKS][LANES], count[MAX_BANKS] = {0}, most = 0;
    for (int i = start; i < start + group; i++) {
      if (!(mask >> i & 1)) continue;
      for (u32 d = 0; d < dwords; d++) {
        u32 word = addresses[i] / 4 + d, bank = word % banks, k = 0;
        while (k < count[bank] && distinct[bank][k] != word) k++;
        if (k == count[bank]) distinct[bank][count[bank]++] = word;
      }
    }
    for (u32 b = 0; b < banks; b++) most = count[b] > most ? count[b] : most;
    if (most > 1) w->m->traffic.lds_conflicts += most - 1;
  }
}

// Atomics for each address. When the table is full the address is left out, which fast.py reports.
void count_atomic(machine *m, u64 address) {
  u64 slots = m->histogram_slots, at = (address * 0x9e3779b97f4a7c15ull >> 20) % slots;
  for (u64 n = 0; n < slots; n++, at = (at + 1) % slots) {
    u64 *slot = m->histogram + 2 * at;
    if (slot[1] == 0) {
      if (m->histogram_used * 2 > slots) return;
      m->histogram_used++;
      slot[0] = address;
    }
    if (slot[0] == address) {
      slot[1]++;
      return;
    }
  }
}
