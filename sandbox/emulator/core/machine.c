// Running a launch: waves, barriers, the four schedules, findings, and what Python calls.
#include "core.h"
#include <stdlib.h>

enum schedule { LOCKSTEP, SEQUENTIAL, REVERSE, RANDOM };
enum { RESIDENT_GROUPS = 8, SPIN_LIMIT = 100000 };

static const entry *const tables[] = {scalar_table, float_table,   integer_table, wide_table, half_table, compare_table,
                                      convert_table, special_table, matrix_table,  lds_table,  memory_table, atomic_table};
enum { TABLES = sizeof tables / sizeof tables[0] };

static const entry *entry_number(u32 n) {
  for (u32 t = 0; t < TABLES; t++)
    for (const entry *e = tables[t]; e->name; e++)
      if (n-- == 0) return e;
  return 0;
}
const char *ws_operation(u32 n, u32 *flags) {
  const entry *e = entry_number(n);
  if (!e) return 0;
  *flags = e->flags;
  return e->name;
}
static void unsupported(wave *w, const record *r) { found(w, r, NEEDS, -1, 0, 0, 0); }

// Points each record at the function of its operation; ~0 is an instruction the core does not know.
void ws_bind(record *code, u32 count) {
  static operation known[4096];
  static u32 filled;
  if (!filled)
    for (u32 t = 0; t < TABLES; t++)
      for (const entry *e = tables[t]; e->name; e++) known[filled++] = e->run;
  for (u32 n = 0; n < count; n++) code[n].run = code[n].op < filled ? known[code[n].op] : unsupported;
}

void ws_sizes(u64 *out) {
  out[0] = sizeof(record);
  out[1] = sizeof(operand);
  out[2] = sizeof(machine);
  out[3] = sizeof(region);
  out[4] = sizeof(report);
}

// Host floating-point control.
#if defined(__x86_64__)
#include <immintrin.h>
static u32 control_for(u32 rounding, u32 denormals) {
  static const u32 round_bits[4] = {0, 2, 1, 3};  // nearest, +infinity, -infinity, zero
  return 0x1f80 | round_bits[rounding & 3] << 13 | (denormals & 1 ? 0 : 0x40) | (denormals & 2 ? 0 : 0x8000);
}
static u32 saved_control(void) { return _mm_getcsr(); }
static void put_control(u32 value) { _mm_setcsr(value); }
#elif defined(__aarch64__)
static u32 control_for(u32 rounding, u32 denormals) { return (rounding & 3) << 22 | (denormals == 3 ? 0 : 1u << 24); }
static u32 saved_control(void) {
  u64 value;
  __asm__ volatile("mrs %0, fpcr" : "=r"(value));
  return (u32)value;
}
static void put_control(u32 value) {
  u64 wide = value;
  __asm__ volatile("msr fpcr, %0" ::"r"(wide));
}
#else
#error "no floating-point control for this processor"
#endif

void load_fp_control(wave *w, int wide) {
  w->fp_now = wide ? w->fp64_control : w->fp32_control;
  put_control(w->fp_now);
  __asm__ volatile("" ::: "memory");
}
void set_mode(wave *w, u32 mode) {
  w->mode = mode;
  w->fp32_control = control_for(mode & 3, mode >> 4 & 3);
  w->fp64_control = control_for(mode >> 2 & 3, mode >> 6 & 3);
  load_fp_control(w, 0);
}

// Findings. Those that end the run stop the wave; the others are noted once for each instruction.
void found(wave *w, const record *r, int kind, int lane, u64 address, u64 bytes, u32 other) {
  machine *m = w->m;
  u32 number = r >= m->code && r < m->code + m->records ? (u32)(r - m->code) : (u32)(w->at - 1);  // a shifted copy
  bool ends = !(kind == LDS_RACE || kind == UNINITIALISED_LDS || kind == UNINITIALISED_GLOBAL);
  if (ends) {
    w->fault = 1;
    if (m->outcome == COMPLETED) {
      m->outcome = kind == NEEDS ? UNSUPPORTED : TRAPPED;
      m->outcome_record = number;
    }
  }
  if (m->seen[number] >> kind & 1 || m->report_count >= m->report_limit) return;
  m->seen[number] |= (u16)(1u << kind);
  report *out = &m->reports[m->report_count++];
  *out = (report){kind, (i32)number, lane, (i32)w->number, {w->g->id[0], w->g->id[1], w->g->id[2]}, other, address, bytes};
}

// Waves and workgroups.
static void start_wave(machine *m, group *g, wave *w, u32 number) {
  u32 threads = m->group_threads, first = number * LANES;
  memcpy(w->s, m->initial_sgprs, sizeof w->s);
  for (int k = 0; k < 3; k++)
    if (m->id_sgprs[k] >= 0) w->s[m->id_sgprs[k]] = g->id[k];
  memset(w->v, 0, (u64)m->vgprs * LANES * 4);
  if (m->private_bytes) memset(w->scratch, 0, (u64)m->private_bytes * LANES);
  u64 exec = 0;
  for (u32 i = 0; i < LANES; i++) {
    u32 thread = first + i;
    if (thread >= threads) continue;
    exec |= 1ull << i;
    u32 x = thread % m->block[0], y = thread / m->block[0] % m->block[1], z = thread / m->block[0] / m->block[1];
    w->v[i] = x | y << 10 | z << 20;
  }
  w->m = m;
  w->g = g;
  w->number = number;
  w->scc = 0;
  w->fault = 0;
  w->status = RUNNING;
  w->at = m->entry;
  w->index_mode = 0;
  w->mask_of = 0;
  memset(w->lane_mask, 0, sizeof w->lane_mask);
  EXEC(w) = exec;
  set_mode(w, m->mode);
  m->waves_started++;
}

static void start_group(machine *m, group *g, u32 linear) {
  u32 words = m->lds_bytes / 4 + 2;
  g->linear = linear;
  g->id[0] = linear % m->grid[0];
  g->id[1] = linear / m->grid[0] % m->grid[1];
  g->id[2] = linear / m->grid[0] / m->grid[1];
  g->epoch = 1;
  g->done = 0;
  g->clock = 0;
  g->count = m->group_waves;
  memset(g->lds, 0, 4ul * words);
  memset(g->words, 0, words * sizeof(lds_tag));
  for (u32 n = 0; n < g->count; n++) start_wave(m, g, &g->waves[n], n);
}

// Vector registers through the index register (s_set_gpr_idx_*): M0[7:0] is added to the numbers of sources and result
// that M0[15:12] names. Which operations count as vector ones follows from the order of the tables.
static bool is_vector(u32 op) {
  static u32 first, end;
  if (!end) {
    u32 n = 0;
    for (u32 t = 0; t < TABLES; t++) {
      if (tables[t] == float_table) first = n;
      if (tables[t] == matrix_table) end = n;
      for (const entry *e = tables[t]; e->name; e++) n++;
    }
  }
  return op >= first && op < end;
}
static void shift_operand(const machine *m, operand *o, u32 by, bool chosen, bool *beyond) {
  if (!chosen || o->kind != VECTOR || o->index >= m->named_vgprs) return;
  *beyond |= o->index + by + o->dwords > m->named_vgprs;
  o->index += by;
}
static void run_indexed(wave *w, const record *r) {
  record moved = *r;
  bool beyond = false;
  u32 m0 = w->s[124], by = m0 & 0xff, which = m0 >> 12 & 15;
  for (int k = 0; k < 4; k++) shift_operand(w->m, &moved.src[k], by, which >> (k < 2 ? k : 2) & 1, &beyond);
  for (int k = 0; k < 2; k++) shift_operand(w->m, &moved.dst[k], by, which >> 3 & 1, &beyond);
  if (beyond) return found(w, &moved, NEEDS, -1, by, 0, 0);
  r->run(w, &moved);
}

// Runs one wave for at most `limit` instructions, until it waits, ends or faults. Returns how many it ran.
static u64 run_wave(wave *w, u64 limit) {
  machine *m = w->m;
  const record *code = m->code;
  u64 count = 0;
  load_fp_control(w, 0);
  while (count < limit) {
    const record *r = &code[w->at++];
    u64 idle = (u64)__builtin_popcountll(~EXEC(w));
    count++;
    m->times_run[r - code]++;
    m->idle_lanes[r - code] += idle;
    w->g->clock++;
    if (UNLIKELY(w->fp32_control != w->fp64_control)) use_fp(w, r->wide);
    if (UNLIKELY(w->index_mode) && is_vector(r->op)) run_indexed(w, r); else r->run(w, r);
    if (UNLIKELY(w->status != RUNNING || w->fault)) break;
  }
  m->executed += count;
  return count;
}

// After a wave stopped: opens the barrier when all that still run have arrived, and says whether the group is over.
static void settle(group *g) {
  u32 running = 0, waiting = 0;
  for (u32 n = 0; n < g->count; n++) {
    running += g->waves[n].status != ENDED;
    waiting += g->waves[n].status == AT_BARRIER;
  }
  g->done = running == 0;
  if (running == 0 || waiting < running) return;
  for (u32 n = 0; n < g->count; n++)
    if (g->waves[n].status == AT_BARRIER) g->waves[n].status = RUNNING;
  g->epoch++;
}

static u64 next_random(machine *m) {
  u64 x = m->seed += 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

static group *new_groups(const machine *m, u32 count) {
  u32 words = m->lds_bytes / 4 + 2;
  group *groups = calloc(count, sizeof(group));
  for (u32 k = 0; groups && k < count; k++) {
    group *g = &groups[k];
    g->lds = calloc(words, 4);
    g->words = calloc(words, sizeof(lds_tag));
    g->bytes = calloc(4ul * words, sizeof(lds_tag));
    g->waves = aligned_alloc(64, m->group_waves * sizeof(wave));
    g->count = m->group_waves;
    g->done = 1;
    for (u32 n = 0; n < m->group_waves; n++) {
      g->waves[n].v = aligned_alloc(64, (u64)(m->vgprs + 2) * LANES * 4);
      g->waves[n].scratch = m->private_bytes ? malloc((u64)m->private_bytes * LANES) : 0;
    }
  }
  return groups;
}
static void free_groups(group *groups, u32 count) {
  for (u32 k = 0; k < count; k++) {
    for (u32 n = 0; n < groups[k].count; n++) {
      free(groups[k].waves[n].v);
      free(groups[k].waves[n].scratch);
    }
    free(groups[k].lds);
    free(groups[k].words);
    free(groups[k].bytes);
    free(groups[k].waves);
  }
  free(groups);
}

// A budget that runs out while waves wait at a barrier is a deadlock: the others never get there.
static bool out_of_budget(machine *m, const group *g) {
  if (m->executed < m->budget || g->done) return false;
  bool waiting = false, running = false;
  for (u32 n = 0; n < g->count; n++) {
    waiting |= g->waves[n].status == AT_BARRIER;
    running |= g->waves[n].status == RUNNING;
  }
  if (m->outcome == COMPLETED) m->outcome = waiting && running ? DEADLOCK : BUDGET;
  return true;
}

// One turn of a group: every wave that can run does, in the order of the schedule.
static bool turn(machine *m, group *g) {
  if (out_of_budget(m, g)) return false;
  for (u32 k = 0; k < g->count; k++) {
    u32 n = m->schedule == REVERSE ? g->count - 1 - k : k;
    u64 limit = m->schedule == LOCKSTEP ? 1 : SPIN_LIMIT;
    if (m->schedule == RANDOM) {
      n = (u32)(next_random(m) % g->count);
      limit = 1 + next_random(m) % 64;
    }
    wave *w = &g->waves[n];
    if (w->status != RUNNING) continue;
    u64 left = m->budget - m->executed;
    run_wave(w, left < limit ? left : limit);
    if (w->fault) return false;
    if (w->status != RUNNING) settle(g);
    if (out_of_budget(m, g)) return false;
    if (g->done) return true;
  }
  return true;
}

// Workgroups are resident in a window. A schedule that runs groups one after another opens the window only when waves
// spin, perhaps for a group that has not started.
int ws_run(machine *m) {
  u32 control = saved_control(), resident = RESIDENT_GROUPS, next = 0, active = 0;
  if (m->group_count < resident) resident = m->group_count;
  group *groups = new_groups(m, resident);
  if (!groups) return -1;
  u32 open = m->schedule == LOCKSTEP || m->schedule == RANDOM ? resident : 1;
  for (;;) {
    u64 before = m->executed;
    active = 0;
    for (u32 k = 0; k < open; k++) {
      group *g = &groups[m->schedule == RANDOM ? next_random(m) % open : k];
      if (g->done && next < m->group_count) start_group(m, g, m->groups[next++]);
      if (!g->done && !turn(m, g)) goto over;
    }
    for (u32 k = 0; k < open; k++) active += !groups[k].done;
    if (!active && next >= m->group_count) break;
    if (m->executed - before >= SPIN_LIMIT && open < resident && next < m->group_count) open++;
  }
over:
  free_groups(groups, resident);
  put_control(control);
  return 0;
}

// One workgroup, stepped from outside: for comparing cores instruction by instruction.
group *ws_open(machine *m, u32 linear) {
  group *g = new_groups(m, 1);
  if (g) start_group(m, g, linear);
  return g;
}
u32 ws_step(group *g, u32 number) {
  u32 control = saved_control();
  wave *w = &g->waves[number];
  if (w->status == RUNNING && !w->fault) run_wave(w, 1);
  if (w->status != RUNNING) settle(g);
  put_control(control);
  return w->fault ? 3 : w->status;
}
void ws_state(group *g, u32 number, u32 **sgprs, u32 **vgprs, u64 *scc, i64 *at) {
  wave *w = &g->waves[number];
  *sgprs = w->s;
  *vgprs = w->v;
  *scc = w->scc;
  *at = w->at;
}
void ws_set_scc(group *g, u32 number, u64 scc) { g->waves[number].scc = scc; }
void ws_close(group *g) { free_groups(g, 1); }
