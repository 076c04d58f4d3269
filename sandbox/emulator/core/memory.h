// Addresses of vector and scalar memory instructions (memory.c), shared with atomics and scalar loads (atomic.c).
#pragma once
#include "core.h"

enum space { GLOBAL, FLAT, SCRATCH, BUFFER };

typedef struct {
  u64 base, limit;                  // bytes [0, limit) from base may be touched
  bool supported;
} descriptor;

u8 *reach(wave *w, const record *r, u64 address, u32 bytes, int lane, int writing);
void plain_addresses(wave *w, const record *r, int scratch);
descriptor read_descriptor(wave *w, const record *r, u32 index);
u64 buffer_addresses(wave *w, const record *r, u64 *limit, u64 *base);
