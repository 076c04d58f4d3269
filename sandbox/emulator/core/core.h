// Shared by all translation units of the fast core: records, machine state, operand access.
//
// A program is an array of pre-decoded records (filled by fast.py from decoded instructions). A wave holds its vector
// registers as [register][64 lanes] so that every vector operation is one loop over 64 lanes that the compiler
// vectorises. Modifiers are handled once, when a source is fetched (source.c) and when a result is written (result.c),
// never inside an operation.
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;
typedef int64_t i64;
typedef float f32;
typedef double f64;

#define LANES 64
#define EACH_LANE _Pragma("GCC ivdep") for (int i = 0; i < LANES; i++)
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum kind { NONE, VECTOR, SCALAR, CONSTANT, SPECIAL };
enum width_type { T_OTHER, T_F16, T_F32, T_F64, T_PK16, T_PK32, T_MIX };
enum select { SELECT_NONE, SELECT_HALVES, SELECT_SDWA, SELECT_DWORDS };

// One operand. `index` is the row of the vector file (AccVGPRs follow the VGPRs), the scalar register, the number of the
// constant, or the special source code. The rest says how a vector source is transformed when it is fetched.
typedef struct {
  u8 kind, dwords, type, dpp;
  u8 select, low, high, sext;       // halves or dwords to take, or SDWA selector in `low`
  u32 index;
  u32 keep[2], flip[2];             // absolute value and negation: (x & keep) ^ flip for each dword
  u32 changed;                      // any of the above is in effect
} operand;

typedef struct wave wave;
typedef struct record record;
typedef void (*operation)(wave *, const record *);

struct record {
  operation run;
  operand dst[2], src[4], vaddr, saddr, soffset, scale[2];
  i64 offset, offset1;
  u32 op, pc, next_pc, imm;
  i32 target;                       // record a branch goes to, -1 none
  u8 clamp, omod, op_sel, op_sel_hi, neg, neg_hi, abs, cbsz, abid, blgp;
  u8 merge, sc0, offen, idxen, lds, float_clamp, high_result, plain, partial;
  u8 dpp_row_mask, dpp_bank_mask, dpp_bound, sdwa_select, sdwa_unused, wide;
  u16 dpp_control;
};

typedef struct {
  const char *name;
  operation run;
  u32 flags;
} entry;

// What an operation allows and needs, beside what follows from operand types.
enum {
  SATURATES = 1,   // integer clamp means saturation
  CUSTOM = 2,      // reads its operands itself: no DPP or SDWA, no source or result modifiers
  OP_SEL = 4,      // custom, but interprets op_sel (and op_sel_hi) itself
  BLGP = 8,        // interprets cbsz, abid and blgp
  MODE_64 = 16,    // runs under the rounding and denormal mode of 64- and 16-bit floats
};

enum status { RUNNING, AT_BARRIER, ENDED };
enum outcome { COMPLETED, TRAPPED, UNSUPPORTED, BUDGET, DEADLOCK };
enum finding {
  OOB_GLOBAL, OOB_LDS, OOB_SCRATCH, READ_ONLY, MISALIGNED, LDS_RACE, UNINITIALISED_LDS, UNINITIALISED_GLOBAL,
  TRAP_INSTRUCTION, NEEDS
};

typedef struct {
  u64 base, size;
  u8 *data, *valid;                 // `valid`: one byte per byte, or NULL when all are initialised
  u32 writable, pad;
} region;

typedef struct {
  i32 kind, record, lane, wave;
  u32 group[3], other;
  u64 address, bytes;
} report;

// What is known of a dword of LDS. A tag is `epoch << 8 | who`: who is wave number + 1, with ATOMIC added for atomics, or
// SEVERAL readers; 0 never. SPLIT: bytes were touched one by one, look into the byte tags.
typedef struct {
  u32 write, read;
} lds_tag;
enum { ATOMIC_TAG = 0x40, SEVERAL = 0x7f };
#define SPLIT 0xffffffffu

typedef struct {
  u64 tcc_read, tcc_write, tcc_atomic, tcc_hit, tcc_miss, lane_atomics, lds_conflicts, lds_lane_atomics;
} traffic;

typedef struct cache cache;
typedef struct group group;

// One launch. fast.py fills it; the layout is checked by ws_sizes.
typedef struct {
  record *code;
  const u32 *constants;             // [number][2 dwords][64 lanes]
  const i32 *record_at;             // record of each dword of the image, -1 where none starts
  region *regions;                  // ascending by base
  u64 *times_run;                   // per record
  u64 *idle_lanes;                  // per record: lanes that EXEC switched off
  u16 *seen;                        // per record: kinds of findings already reported
  report *reports;
  const u32 *groups;                // linear numbers of the workgroups to run, in the order of the schedule
  cache *caches;
  u64 *histogram;                   // open addressing: address, count
  u32 (*host)(void);                // answers calls of the host; the number of a service that is not there, else 0
  u64 code_base, image_dwords, shared_base, private_base, budget, executed, seed, histogram_slots, histogram_used;
  u32 records, vgprs, region_count, group_count;
  u32 lds_bytes, private_bytes, group_waves, group_threads;
  u32 report_count, report_limit, last_region, modelling;
  u32 grid[3], block[3];
  u32 arch, xcds, schedule, mode;
  u32 entry, waves_started, outcome, outcome_record;
  u32 named_vgprs;                  // rows of VGPRs; those of AccVGPRs follow
  u32 copied_lanes;                 // lanes that store to one LDS address at once hold copies of one value
  i32 id_sgprs[3];                  // where the workgroup's numbers go, -1 nowhere
  u32 initial_sgprs[128];
  traffic traffic;
} machine;

struct wave {
  u32 s[128];
  u64 scc;
  u32 mode, status;
  i64 at;                           // next record
  u32 *v;
  u8 *scratch;
  machine *m;
  group *g;
  u32 number, fault;
  u64 write_mask;
  u64 mask_of;                      // EXEC that `lane_mask` was expanded from
  u32 fp_now;                       // which control word is loaded
  u32 fp32_control, fp64_control;
  u32 index_mode;                   // vector register numbers are shifted by M0
  u64 retired;
  _Alignas(64) u32 lane_mask[LANES];
  _Alignas(64) u32 fetched[4][2 * LANES];
  _Alignas(64) u32 out[2 * LANES];
  _Alignas(64) u64 address[LANES];
};

struct group {
  u8 *lds;
  lds_tag *words, *bytes;
  wave *waves;
  u32 count, epoch, linear, done;
  u32 id[3];
  u64 clock;
};

#define EXEC(w) (*(u64 *)&(w)->s[126])
#define VCC(w) (*(u64 *)&(w)->s[106])

static inline u64 scalar_pair(const wave *w, u32 index) {
  u64 value;
  memcpy(&value, &w->s[index], 8);
  return value;
}

static inline void set_pair(wave *w, u32 index, u64 value) { memcpy(&w->s[index], &value, 8); }

u64 special_source(const wave *w, u32 code);

// A scalar operand's bits. Constants are as wide as their type.
static inline u64 scalar64(const wave *w, const operand *o) {
  if (o->kind == SCALAR) return o->dwords > 1 ? scalar_pair(w, o->index) : w->s[o->index];
  if (o->kind == CONSTANT) {
    const u32 *c = w->m->constants + (u64)o->index * 2 * LANES;
    return c[0] | (u64)c[LANES] << 32;
  }
  return special_source(w, o->index);
}
static inline u32 scalar32(const wave *w, const operand *o) {
  return LIKELY(o->kind == SCALAR) ? w->s[o->index] : (u32)scalar64(w, o);
}

const u32 *fetch_source(wave *w, const record *r, int k);

// The 64 lanes of source k (for 64-bit types: low dwords, then high dwords), modifiers applied.
static inline const void *source(wave *w, const record *r, int k) {
  const operand *o = &r->src[k];
  if (LIKELY(!o->changed)) {
    if (LIKELY(o->kind == VECTOR)) return w->v + (u64)o->index * LANES;
    if (o->kind == CONSTANT) return w->m->constants + (u64)o->index * 2 * LANES;
  }
  return fetch_source(w, r, k);
}

// Four dwords of four lanes at a time between memory order and register order.
typedef u32 quad __attribute__((vector_size(16)));
static inline void transpose4(quad *a, quad *b, quad *c, quad *d) {
  quad ab_low = __builtin_shuffle(*a, *b, (quad){0, 4, 1, 5}), ab_high = __builtin_shuffle(*a, *b, (quad){2, 6, 3, 7});
  quad cd_low = __builtin_shuffle(*c, *d, (quad){0, 4, 1, 5}), cd_high = __builtin_shuffle(*c, *d, (quad){2, 6, 3, 7});
  *a = __builtin_shuffle(ab_low, cd_low, (quad){0, 1, 4, 5});
  *b = __builtin_shuffle(ab_low, cd_low, (quad){2, 3, 6, 7});
  *c = __builtin_shuffle(ab_high, cd_high, (quad){0, 1, 4, 5});
  *d = __builtin_shuffle(ab_high, cd_high, (quad){2, 3, 6, 7});
}

// Where an operation may write its 64 results. The register itself when nothing stands between.
static inline void *destination(wave *w, const record *r) {
  return r->plain && EXEC(w) == ~0ull ? w->v + (u64)r->dst[0].index * LANES : w->out;
}

void write_result(wave *w, const record *r, const u32 *result);
void write_rows(wave *w, u32 row, const u32 *result, int rows, u64 mask);

static inline void finish(wave *w, const record *r, const void *result) {
  if (UNLIKELY(result == (void *)w->out)) write_result(w, r, result);
}
static inline void finish_wide(wave *w, const record *r) { write_result(w, r, w->out); }

// Expansion of a lane mask to all-ones or zero per lane, cached for EXEC.
static inline void expand_mask(u64 mask, u32 *lanes) {
  u32 low = (u32)mask, high = (u32)(mask >> 32);
  for (int i = 0; i < 32; i++) lanes[i] = -(low >> i & 1u);
  for (int i = 0; i < 32; i++) lanes[32 + i] = -(high >> i & 1u);
}
static inline const u32 *exec_lanes(wave *w, u64 mask) {
  if (w->mask_of != mask) {
    expand_mask(mask, w->lane_mask);
    w->mask_of = mask;
  }
  return w->lane_mask;
}
u64 pack_mask(const u32 *lanes);

static inline u64 lane64(const u32 *p, int i) { return p[i] | (u64)p[LANES + i] << 32; }
static inline void put64(u32 *p, int i, u64 value) {
  p[i] = (u32)value;
  p[LANES + i] = (u32)(value >> 32);
}
static inline f64 lane_f64(const u32 *p, int i) {
  u64 bits = lane64(p, i);
  f64 value;
  memcpy(&value, &bits, 8);
  return value;
}
static inline void put_f64(u32 *p, int i, f64 value) {
  u64 bits;
  memcpy(&bits, &value, 8);
  put64(p, i, bits);
}
static inline u32 bits32(f32 x) {
  u32 b;
  memcpy(&b, &x, 4);
  return b;
}
static inline f32 as_f32(u32 b) {
  f32 x;
  memcpy(&x, &b, 4);
  return x;
}
static inline u64 bits64(f64 x) {
  u64 b;
  memcpy(&b, &x, 8);
  return b;
}
static inline f64 as_f64(u64 b) {
  f64 x;
  memcpy(&x, &b, 8);
  return x;
}

// Floating-point control of the host (rounding, denormals). 0: as 32-bit operations want it, 1: as 64-bit ones do.
void load_fp_control(wave *w, int wide);
void set_mode(wave *w, u32 mode);
static inline void use_fp(wave *w, int wide) {
  if (UNLIKELY(w->fp_now != (wide ? w->fp64_control : w->fp32_control))) load_fp_control(w, wide);
}

// Narrow floats (narrow.c).
f32 half_to_float(u32 half);
u32 float_to_half(f32 value);       // round to nearest even
u32 float_to_half_zero(f32 value);  // towards zero
u32 double_to_half(f64 value);      // rounded once
void halves_to_floats(const u32 *halves, f32 *out);
void floats_to_halves(const f32 *in, u32 *out);
u32 float_to_bf16(f32 value);
static inline f32 bf16_to_float(u32 b) { return as_f32(b << 16); }
f32 fp8_to_float(u32 byte, int e5m2, int ocp);
// `saturate` (MODE.FP16_OVFL): finite values too large become the largest number instead of infinity or NaN.
u32 float_to_fp8(f32 value, int e5m2, int ocp, int saturate);
u32 float_to_fp8_random(f32 value, u32 random, int e5m2, int ocp, int saturate);
f32 fp4_to_float(u32 nibble);
f32 fp6_to_float(u32 bits, int e3m2);
u32 float_to_fp4(f32 value);

// Findings and traps.
void found(wave *w, const record *r, int kind, int lane, u64 address, u64 bytes, u32 other);
const region *find_region(machine *m, u64 address, u64 bytes);
// LDS accesses of other instructions (lds.c). `lds_store` takes bytes | 0x100 for an atomic.
void lds_note(wave *w, const record *r, u32 at, u32 bytes, int lane);
void lds_store(wave *w, const record *r, u32 at, const u8 *value, u32 bytes, int lane);
void count_atomic(machine *m, u64 address);
void model_access(wave *w, const u64 *addresses, u64 mask, u32 bytes, int kind);
void model_banks(wave *w, const u32 *addresses, u64 mask, u32 bytes);

extern const entry scalar_table[], float_table[], integer_table[], wide_table[], half_table[], compare_table[],
    convert_table[], special_table[], matrix_table[], lds_table[], memory_table[], atomic_table[];
