// Scalar arithmetic, branches, calls and the instructions that control a wave.
#include "core.h"

static inline u32 reverse(u32 x) {
  u32 out = 0;
  for (int i = 0; i < 32; i++) out |= (x >> i & 1) << (31 - i);
  return out;
}
static u64 whole_quads(u64 a) {
  u64 any = (a | a >> 1 | a >> 2 | a >> 3) & 0x1111111111111111ull;
  return any * 15;
}
static u64 quad_mask(u64 a) {
  u64 out = 0;
  for (int i = 0; i < 16; i++) out |= (u64)((a >> 4 * i & 15) != 0) << i;
  return out;
}
static u64 doubled(u32 a) {
  u64 out = 0;
  for (int i = 0; i < 32; i++) out |= (u64)(a >> i & 1) * 3 << 2 * i;
  return out;
}
// Leading bits equal to the sign, -1 for 0 and -1.
static u32 sign_run(i64 a, int bits) {
  u64 differing = a < 0 ? ~(u64)a : (u64)a;
  return differing ? (u32)(__builtin_clzll(differing) - (64 - bits)) : ~0u;
}
static u64 field(u64 a, u32 offset, u32 width, u32 bits, int is_signed) {
  if (width == 0) return 0;
  u32 have = bits - offset, take = width < have ? width : have;
  if (is_signed) {
    i64 wide = bits == 32 ? (i64)(i32)a : (i64)a;
    return (u64)((i64)((u64)(wide >> offset) << (64 - take)) >> (64 - take));
  }
  a >>= offset;
  return take >= 64 ? a : a & ((1ull << take) - 1);
}

#define K w->scc
#define S1_32(NAME, EXPR, SCC)                                                            \
  static void NAME(wave *w, const record *r) {                                            \
    u32 a = scalar32(w, &r->src[0]), old = w->s[r->dst[0].index], d = EXPR;               \
    (void)old;                                                                            \
    w->scc = SCC;                                                                         \
    w->s[r->dst[0].index] = d;                                                            \
  }
#define S1_64(NAME, EXPR, SCC)                                                            \
  static void NAME(wave *w, const record *r) {                                            \
    u64 a = scalar64(w, &r->src[0]), old = scalar_pair(w, r->dst[0].index), d = EXPR;     \
    (void)old;                                                                            \
    w->scc = SCC;                                                                         \
    set_pair(w, r->dst[0].index, d);                                                      \
  }
#define S1_64TO32(NAME, EXPR, SCC)                                                        \
  static void NAME(wave *w, const record *r) {                                            \
    u64 a = scalar64(w, &r->src[0]);                                                      \
    u32 d = EXPR;                                                                         \
    w->scc = SCC;                                                                         \
    w->s[r->dst[0].index] = d;                                                            \
  }
#define S2_32(NAME, EXPR, SCC)                                                            \
  static void NAME(wave *w, const record *r) {                                            \
    u32 a = scalar32(w, &r->src[0]), b = scalar32(w, &r->src[1]), d = EXPR;               \
    w->scc = SCC;                                                                         \
    w->s[r->dst[0].index] = d;                                                            \
  }
#define S2_64(NAME, EXPR, SCC)                                                            \
  static void NAME(wave *w, const record *r) {                                            \
    u64 a = scalar64(w, &r->src[0]), b = scalar64(w, &r->src[1]), d = EXPR;               \
    w->scc = SCC;                                                                         \
    set_pair(w, r->dst[0].index, d);                                                      \
  }
#define SC(NAME, EXPR)                                                                    \
  static void NAME(wave *w, const record *r) {                                            \
    u64 a = scalar64(w, &r->src[0]), b = scalar64(w, &r->src[1]);                         \
    w->scc = (EXPR) != 0;                                                                 \
  }
#define SK(NAME, EXPR)                                                                    \
  static void NAME(wave *w, const record *r) {                                            \
    u32 a = scalar32(w, &r->src[0]), u = r->imm & 0xffff;                                 \
    i32 k = (i16)r->imm;                                                                  \
    (void)u; (void)k;                                                                     \
    w->scc = EXPR;                                                                        \
  }
#define SAVE(NAME, EXPR)                                                                  \
  static void NAME(wave *w, const record *r) {                                            \
    u64 a = scalar64(w, &r->src[0]), exec = EXEC(w);                                      \
    set_pair(w, r->dst[0].index, exec);                                                   \
    EXEC(w) = EXPR;                                                                       \
    w->scc = EXEC(w) != 0;                                                                \
  }
#define BRANCH(NAME, EXPR)                                                                \
  static void NAME(wave *w, const record *r) {                                            \
    if (EXPR) w->at = r->target;                                                          \
  }
#define NOTHING(NAME)                                                                     \
  static void NAME(wave *w, const record *r) { (void)w; (void)r; }
#include "scalar.def"

static void s_andn1_wrexec_b64(wave *w, const record *r) {
  EXEC(w) = ~scalar64(w, &r->src[0]) & EXEC(w);
  set_pair(w, r->dst[0].index, EXEC(w));
  w->scc = EXEC(w) != 0;
}
static void s_andn2_wrexec_b64(wave *w, const record *r) {
  EXEC(w) = scalar64(w, &r->src[0]) & ~EXEC(w);
  set_pair(w, r->dst[0].index, EXEC(w));
  w->scc = EXEC(w) != 0;
}
static void s_movk_i32(wave *w, const record *r) { w->s[r->dst[0].index] = (u32)(i32)(i16)r->imm; }
static void s_cmovk_i32(wave *w, const record *r) {
  if (w->scc) w->s[r->dst[0].index] = (u32)(i32)(i16)r->imm;
}
static void s_addk_i32(wave *w, const record *r) {
  i32 sum;
  w->scc = __builtin_add_overflow((i32)w->s[r->dst[0].index], (i32)(i16)r->imm, &sum);
  w->s[r->dst[0].index] = (u32)sum;
}
static void s_mulk_i32(wave *w, const record *r) { w->s[r->dst[0].index] *= (u32)(i32)(i16)r->imm; }

// Calls. A program counter is the address of the image plus a byte offset.
static void jump(wave *w, const record *r, u64 address) {
  u64 offset = address - w->m->code_base;
  i32 to = offset % 4 == 0 && offset / 4 < w->m->image_dwords ? w->m->record_at[offset / 4] : -1;
  if (to < 0) {
    found(w, r, TRAP_INSTRUCTION, -1, address, 0, 1);
    return;
  }
  w->at = to;
}
static void s_getpc_b64(wave *w, const record *r) { set_pair(w, r->dst[0].index, w->m->code_base + r->next_pc); }
static void s_setpc_b64(wave *w, const record *r) { jump(w, r, scalar64(w, &r->src[0])); }
static void s_swappc_b64(wave *w, const record *r) {
  u64 to = scalar64(w, &r->src[0]);
  set_pair(w, r->dst[0].index, w->m->code_base + r->next_pc);
  jump(w, r, to);
}
static void s_call_b64(wave *w, const record *r) {
  set_pair(w, r->dst[0].index, w->m->code_base + r->next_pc);
  w->at = r->target;
}

// Register numbers offset by M0: of the source (s_movrels) or of the destination (s_movreld).
static void move_relative(wave *w, const record *r, int reads, u32 dwords) {
  const operand *o = &r->src[0];
  u64 index = (u64)(reads ? o->index : r->dst[0].index) + w->s[124], value;
  if (index + dwords > 102 || (reads && o->kind != SCALAR)) return found(w, r, NEEDS, -1, index, 0, 0);
  u32 from = (u32)index, to = reads ? r->dst[0].index : from;
  value = !reads ? scalar64(w, o) : dwords == 2 ? scalar_pair(w, from) : w->s[from];
  if (dwords == 2) set_pair(w, to, value); else w->s[to] = (u32)value;
}
static void s_movrels_b32(wave *w, const record *r) { move_relative(w, r, 1, 1); }
static void s_movrels_b64(wave *w, const record *r) { move_relative(w, r, 1, 2); }
static void s_movreld_b32(wave *w, const record *r) { move_relative(w, r, 0, 1); }
static void s_movreld_b64(wave *w, const record *r) { move_relative(w, r, 0, 2); }

// Hardware registers: 1 MODE, 4 HW_ID, 20 XCC_ID. The immediate holds id, offset and width - 1.
static void s_getreg_b32(wave *w, const record *r) {
  u32 id = r->imm & 63, offset = r->imm >> 6 & 31, width = (r->imm >> 11 & 31) + 1;
  u32 value = id == 1 ? w->mode : id == 20 ? w->g->linear % w->m->xcds : 0;
  if (id != 1 && id != 4 && id != 20) return found(w, r, NEEDS, -1, id, 0, 0);
  w->s[r->dst[0].index] = value >> offset & (u32)((1ull << width) - 1);
}
static void write_mode(wave *w, const record *r, u32 value) {
  u32 id = r->imm & 63, offset = r->imm >> 6 & 31, width = (r->imm >> 11 & 31) + 1;
  if (id != 1) return found(w, r, NEEDS, -1, id, 0, 0);
  u32 field_mask = (u32)((1ull << width) - 1) << offset;
  set_mode(w, (w->mode & ~field_mask) | (value << offset & field_mask));
}
static void s_setreg_b32(wave *w, const record *r) { write_mode(w, r, scalar32(w, &r->src[0])); }
static void s_setreg_imm32_b32(wave *w, const record *r) { write_mode(w, r, scalar32(w, &r->src[0])); }

static void s_memtime(wave *w, const record *r) { set_pair(w, r->dst[0].index, w->g->clock); }
static void s_memrealtime(wave *w, const record *r) { set_pair(w, r->dst[0].index, (w->g->clock) / 21); }
static void s_endpgm(wave *w, const record *r) {
  (void)r;
  w->status = ENDED;
}
static void s_barrier(wave *w, const record *r) {
  (void)r;
  w->status = AT_BARRIER;
}
// The message to the host (1), which answers calls; the others ask for something of the graphics pipeline.
static void s_sendmsg(wave *w, const record *r) {
  if ((r->imm & 15) != 1) return found(w, r, NEEDS, -1, r->imm & 15, 0, 0);
  u32 refused = w->m->host ? w->m->host() : 0;
  if (refused) found(w, r, NEEDS, -1, refused, 0, 0);
}
static void s_set_gpr_idx_on(wave *w, const record *r) {
  w->s[124] = (w->s[124] & ~0xf0ffu) | (scalar32(w, &r->src[0]) & 0xff) | (r->imm & 15) << 12;
  w->index_mode = 1;
}
static void s_set_gpr_idx_off(wave *w, const record *r) {
  (void)r;
  w->index_mode = 0;
}
static void s_set_gpr_idx_mode(wave *w, const record *r) {
  w->s[124] = (w->s[124] & ~0xf000u) | (r->imm & 15) << 12;
}
static void s_set_gpr_idx_idx(wave *w, const record *r) {
  w->s[124] = (w->s[124] & ~0xffu) | (scalar32(w, &r->src[0]) & 0xff);
}
static void s_trap(wave *w, const record *r) { found(w, r, TRAP_INSTRUCTION, -1, r->imm, 0, 0); }

#undef S1_32
#undef S1_64
#undef S1_64TO32
#undef S2_32
#undef S2_64
#undef SC
#undef SK
#undef SAVE
#undef BRANCH
#undef NOTHING
#define S1_32(NAME, ...) {#NAME, NAME, CUSTOM},
#define S1_64 S1_32
#define S1_64TO32 S1_32
#define S2_32 S1_32
#define S2_64 S1_32
#define SC S1_32
#define SK S1_32
#define SAVE S1_32
#define BRANCH S1_32
#define NOTHING(NAME) {#NAME, NAME, CUSTOM},
#define E(NAME) {#NAME, NAME, CUSTOM},
const entry scalar_table[] = {
#include "scalar.def"
    E(s_andn1_wrexec_b64) E(s_andn2_wrexec_b64) E(s_movk_i32) E(s_cmovk_i32) E(s_addk_i32) E(s_mulk_i32)
    E(s_getpc_b64) E(s_setpc_b64) E(s_swappc_b64) E(s_call_b64) E(s_getreg_b32) E(s_setreg_b32)
    E(s_setreg_imm32_b32) E(s_memtime) E(s_memrealtime) E(s_endpgm) E(s_barrier) E(s_trap)
    E(s_movrels_b32) E(s_movrels_b64) E(s_movreld_b32) E(s_movreld_b64) E(s_sendmsg) E(s_set_gpr_idx_on) E(s_set_gpr_idx_off) E(s_set_gpr_idx_mode) E(s_set_gpr_idx_idx)
    {0, 0, 0},
};
