// Source modifiers on the way in, result modifiers and EXEC on the way out.
#include "core.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

u64 pack_mask(const u32 *lanes) {
  u64 mask = 0;
#if defined(__AVX2__)
  for (int i = 0; i < LANES; i += 8)
    mask |= (u64)(u32)_mm256_movemask_ps(_mm256_loadu_ps((const float *)(lanes + i))) << i;
#else
  for (int i = 0; i < LANES; i++) mask |= (u64)(lanes[i] >> 31) << i;
#endif
  return mask;
}

u64 special_source(const wave *w, u32 code) {
  switch (code) {
    case 235: return w->m->shared_base;
    case 236: return w->m->shared_base + 0xffffffffull;
    case 237: return w->m->private_base;
    case 238: return w->m->private_base + 0xffffffffull;
    case 251: return VCC(w) == 0;
    case 252: return EXEC(w) == 0;
    default: return w->scc != 0;
  }
}

// Lane that DPP control `control` reads for lane i, or -1 where there is none.
static int dpp_source(u32 control, int i) {
  int row = i & ~15, place = i & 15, count = control & 15;
  if (control < 0x100) return (i & ~3) | (control >> 2 * (i & 3) & 3);
  switch (control & ~15u) {
    case 0x100: return place + count < 16 ? i + count : -1;                 // row_shl
    case 0x110: return place - count >= 0 ? i - count : -1;                 // row_shr
    case 0x120: return row | ((place - count) & 15);                        // row_ror
    case 0x150: return row | count;                                         // row_newbcast
  }
  switch (control) {
    case 0x130: return i + 1 < LANES ? i + 1 : -1;                          // wave_shl
    case 0x134: return (i + 1) & 63;                                        // wave_rol
    case 0x138: return i - 1;                                               // wave_shr
    case 0x13c: return (i - 1) & 63;                                        // wave_ror
    case 0x140: return row | (15 - place);                                  // row_mirror
    case 0x141: return (i & ~7) | (7 - (i & 7));                            // row_half_mirror
    case 0x142: return row ? row - 1 : -1;                                  // row_bcast:15
    case 0x143: return i >= 32 ? 31 : -1;                                   // row_bcast:31
  }
  return -1;
}

static i8 dpp_from[512][LANES];
static u8 dpp_known[512];
static const i8 *dpp_lanes(u32 control) {
  if (!dpp_known[control]) {
    for (int i = 0; i < LANES; i++) dpp_from[control][i] = (i8)dpp_source(control, i);
    dpp_known[control] = 1;
  }
  return dpp_from[control];
}

// Lanes from elsewhere. A source lane that is missing or switched off reads as zero with bound_ctrl; without it the
// destination lane is not written.
static void fetch_dpp(wave *w, const record *r, const u32 *in, u32 *out, int dwords) {
  const i8 *from = dpp_lanes(r->dpp_control & 511);
  u64 exec = EXEC(w), valid = 0, chosen = 0;
  for (int i = 0; i < LANES; i++) valid |= (u64)(from[i] >= 0 && (exec >> (from[i] & 63) & 1)) << i;
  for (int row = 0; row < 4; row++)
    for (int bank = 0; bank < 4; bank++)
      if ((r->dpp_row_mask >> row & 1) && (r->dpp_bank_mask >> bank & 1)) chosen |= 15ull << (16 * row + 4 * bank);
  for (int d = 0; d < dwords; d++)
    for (int i = 0; i < LANES; i++) out[d * LANES + i] = valid >> i & 1 ? in[d * LANES + (from[i] & 63)] : 0;
  w->write_mask = exec & chosen & (r->dpp_bound ? ~0ull : valid);
}

static u32 take_sdwa(u32 x, u32 selector, u32 extend) {
  if (selector < 4) {
    u32 byte = x >> 8 * selector & 255;
    return extend ? (u32)(i32)(i8)byte : byte;
  }
  if (selector < 6) {
    u32 half = x >> 16 * (selector - 4) & 0xffff;
    return extend ? (u32)(i32)(i16)half : half;
  }
  return x;
}

static void select_lanes(const operand *o, u32 *x) {
  if (o->select == SELECT_SDWA) {
    for (int i = 0; i < LANES; i++) x[i] = take_sdwa(x[i], o->low, o->sext);
  } else if (o->select == SELECT_HALVES) {
    u32 low = 16 * o->low, high = 16 * o->high;
    EACH_LANE x[i] = (x[i] >> low & 0xffff) | (x[i] >> high) << 16;
  } else {
    u32 copy[2 * LANES];
    memcpy(copy, x, sizeof copy);
    memcpy(x, copy + LANES * o->low, 4 * LANES);
    memcpy(x + LANES, copy + LANES * o->high, 4 * LANES);
  }
}

const u32 *fetch_source(wave *w, const record *r, int k) {
  const operand *o = &r->src[k];
  u32 *out = w->fetched[k];
  int dwords = o->dwords > 1 ? 2 : 1;
  if (o->kind == VECTOR) {
    const u32 *row = w->v + (u64)o->index * LANES;
    if (o->dpp)
      fetch_dpp(w, r, row, out, dwords);
    else
      memcpy(out, row, (u64)dwords * LANES * 4);
  } else {
    u64 value = scalar64(w, o);
    u32 low = (u32)value, high = (u32)(value >> 32);
    EACH_LANE out[i] = low;
    if (dwords > 1) EACH_LANE out[LANES + i] = high;
  }
  if (!o->changed) return out;
  if (o->select) select_lanes(o, out);
  for (int d = 0; d < dwords; d++) {
    u32 keep = o->keep[d], flip = o->flip[d], *x = out + d * LANES;
    if (~keep | flip) EACH_LANE x[i] = (x[i] & keep) ^ flip;
  }
  return out;
}

void write_rows(wave *w, u32 row, const u32 *result, int rows, u64 mask) {
  u32 *to = w->v + (u64)row * LANES;
  if (mask == ~0ull) {
    memcpy(to, result, (u64)rows * LANES * 4);
    return;
  }
  const u32 *keep = exec_lanes(w, mask);
  for (int d = 0; d < rows; d++, to += LANES, result += LANES)
    EACH_LANE to[i] = (result[i] & keep[i]) | (to[i] & ~keep[i]);
}

static f32 clamp_float(f32 x) { return x != x || x < 0 ? 0 : x > 1 ? 1 : x; }

static void scale_and_clamp(const record *r, u32 *x) {
  static const f32 factors[4] = {1, 2, 4, 0.5f};
  f32 factor = factors[r->omod & 3];
  int type = r->dst[0].type;
  for (int i = 0; i < LANES; i++) {
    if (type == T_F32) {
      f32 value = r->omod ? as_f32(x[i]) * factor : as_f32(x[i]);
      x[i] = bits32(r->float_clamp ? clamp_float(value) : value);
    } else if (type == T_F16) {
      f32 value = half_to_float(x[i]) * factor;
      x[i] = float_to_half(r->float_clamp ? clamp_float(value) : value);
    } else if (type == T_F64) {
      f64 value = lane_f64(x, i) * (f64)factor;
      put_f64(x, i, !r->float_clamp ? value : value != value || value < 0 ? 0 : value > 1 ? 1 : value);
    } else if (type == T_PK16) {
      u32 low = float_to_half(clamp_float(half_to_float(x[i])));
      x[i] = low | float_to_half(clamp_float(half_to_float(x[i] >> 16))) << 16;
    } else {
      x[i] = bits32(clamp_float(as_f32(x[i])));
      x[LANES + i] = bits32(clamp_float(as_f32(x[LANES + i])));
    }
  }
}

static void place_sdwa(const record *r, const u32 *old, u32 *x) {
  u32 width = r->sdwa_select < 4 ? 8 : 16;
  u32 shift = r->sdwa_select < 4 ? 8 * r->sdwa_select : 16 * (r->sdwa_select - 4);
  u32 field = ((1u << width) - 1) << shift;
  for (int i = 0; i < LANES; i++) {
    u32 value = x[i] << shift & field, rest = 0;
    if (r->sdwa_unused == 1) rest = value >> (shift + width - 1) & 1 ? ~0u << (shift + width - 1) & ~field : 0;
    if (r->sdwa_unused == 2) rest = old[i] & ~field;
    x[i] = value | rest;
  }
}

void write_result(wave *w, const record *r, const u32 *result) {
  const operand *d = &r->dst[0];
  u64 mask = r->partial ? w->write_mask : EXEC(w);
  int rows = d->dwords > 1 ? 2 : 1;
  if (!r->plain) {
    u32 *x = (u32 *)result, *old = w->v + (u64)d->index * LANES;
    if (r->omod | r->float_clamp) scale_and_clamp(r, x);
    if (r->sdwa_select < 6)
      place_sdwa(r, old, x);
    else if (r->high_result)
      EACH_LANE x[i] = (old[i] & 0xffff) | x[i] << 16;
    else if (r->merge)
      EACH_LANE x[i] = (old[i] & 0xffff0000u) | (x[i] & 0xffff);
  }
  write_rows(w, d->index, result, rows, mask);
}
