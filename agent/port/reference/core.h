// A CPU model of CUDA's execution: blocks one after another, threads as fibers, warps of 32 lanes.
// Warp intrinsics meet by their mask, as CUDA's manual states them. Built with WAVESMITH_LANES=64 it is HIP's on a CDNA
// GPU: wavefronts of 64 lanes, masks of 64 bits.
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <cfloat>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <iomanip>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

// `__shared__ alignas(16) T x[n]` is CUDA; on a CPU the attribute is allowed in that place and the keyword is not.
#define alignas(...) __attribute__((aligned(__VA_ARGS__)))

#ifndef WAVESMITH_LANES
#define WAVESMITH_LANES 32
#endif

namespace wavesmith_reference {
inline constexpr unsigned lanes = WAVESMITH_LANES;
using Mask = std::conditional_t<lanes == 32, unsigned, unsigned long long>;
inline constexpr Mask one = 1, whole = ~(Mask)0;
enum Exit { fault = 30, deadlock = 31, undefined = 32, unsupported = 33, race = 34, block_size = 35 };
[[noreturn]] inline void stop(Exit code, const char* why) {
  fprintf(stderr, "reference: %s\n", why);
  fflush(stderr);
  _exit(code);
}
struct Index { unsigned x, y, z; };
enum class State { runnable, barrier, meeting, converging, done };
struct Fiber {
  ucontext_t context;
  State state;
  Index thread;
  unsigned rank, lane, warp;
  Mask wait_mask;
  unsigned long long generation;
  const void* site;
  Mask converged;
  bool yielded;
};
struct Meeting {
  Mask arrived = 0, published = 0;
  unsigned long long generation = 0;
  alignas(16) unsigned char values[lanes][32];
  alignas(16) unsigned char results[lanes][32];
};
struct Warp {
  Mask alive = 0;
  unsigned met = 0;
  std::map<Mask, Meeting> meetings;
};
inline std::vector<Fiber> fibers;
inline std::vector<Warp> warps;
inline ucontext_t scheduler;
inline Fiber* current = nullptr;
inline unsigned long long votes = 0, votes_result = 0, barrier_arrivals = 0;
/// 0: blocks and threads one after another. 1: threads of a block in reverse. 2: blocks too. From 3 on: both in a mixed order.
inline unsigned schedule = 0;
inline bool interleaved = false;
/// What holds memory that nothing has written, and results that CUDA leaves undefined: another byte for every `fill`.
inline unsigned fill = 0;
inline unsigned char fill_byte() { return fill ? (unsigned char)((0x2a + 24 * fill) & 0x7f) : 0; }
inline unsigned mixed(unsigned k, unsigned count) {
  unsigned step = 7 + 2 * schedule;
  while (std::gcd(step, count) != 1) step += 2;
  return (unsigned)(((unsigned long long)k * step + 5 * schedule) % count);
}
inline unsigned thread_order(unsigned k, unsigned count) { return schedule == 0 ? k : schedule <= 2 ? count - 1 - k : mixed(k, count); }
inline unsigned long long block_order(unsigned long long k, unsigned long long count) { return schedule <= 1 || count > 0x7fffffff ? k : schedule == 2 ? count - 1 - k : mixed((unsigned)k, (unsigned)count); }
inline std::function<void()> body;
inline constexpr size_t stack_bytes = 256 * 1024;
inline char* stacks = nullptr;
alignas(4096) inline unsigned char dynamic_shared[256 * 1024];
extern "C" __attribute__((weak, visibility("hidden"))) unsigned char __start_wavesmith_shared[], __stop_wavesmith_shared[];

// ---- races: compiled in for a second look at a launch, with a call at every load and store ---------------------------
inline unsigned barriers = 0, quiet = 0;
/// While one lives, accesses are an atomic's and race with nothing.
struct Quiet { Quiet() { quiet++; } ~Quiet() { quiet--; } };
#ifdef WAVESMITH_RACES
struct Access { unsigned long long thread; unsigned barriers, meetings; };
struct Shadow { const unsigned char* base; std::vector<Access> written, read; };
inline std::vector<Shadow> shadows;
inline bool raced = false;
inline unsigned long long block_number = 0;
#endif
}  // namespace wavesmith_reference

// Types of the host's side that device code is declared beside.
enum cudaError { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorMemoryAllocation = 2, cudaErrorInvalidConfiguration = 9, cudaErrorInvalidSymbol = 13, cudaErrorInvalidDevice = 101, cudaErrorNotReady = 600, cudaErrorPeerAccessAlreadyEnabled = 704, cudaErrorUnknown = 999 };
typedef cudaError cudaError_t;
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  operator uint3() const { return {x, y, z}; }
};
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
inline constexpr int warpSize = WAVESMITH_LANES;

namespace wavesmith_reference {
inline void resume(Fiber& f) {
  current = &f;
  threadIdx = {f.thread.x, f.thread.y, f.thread.z};
  swapcontext(&scheduler, &f.context);
  current = nullptr;
}
#ifdef WAVESMITH_RACES
#define WAVESMITH_UNSEEN __attribute__((no_sanitize("coverage")))
WAVESMITH_UNSEEN inline bool apart(const Access& a, const Access& b) {
  if (!a.thread || a.thread == b.thread) return false;
  if (a.thread >> 11 != b.thread >> 11) return true;
  return a.barriers == b.barriers && ((a.thread & 2047) / lanes != (b.thread & 2047) / lanes || a.meetings == b.meetings);
}
WAVESMITH_UNSEEN inline void touch(const void* p, size_t size, bool store) {
  if (!current || quiet) return;
  const Access now{(block_number + 1) << 11 | current->rank, barriers, warps[current->warp].met};
  for (Shadow& s : shadows) {
    const size_t at = (const unsigned char*)p - s.base;
    if (at >= s.written.size()) continue;
    for (size_t i = at; i < at + size && i < s.written.size(); i++) {
      raced |= apart(s.written[i], now) || (store && apart(s.read[i], now));
      (store ? s.written : s.read)[i] = now;
    }
  }
}
inline void watch(const void* base, size_t size) { shadows.push_back({(const unsigned char*)base, std::vector<Access>(size), std::vector<Access>(size)}); }
#endif
inline void leave() { swapcontext(&current->context, &scheduler); }
inline void trampoline() {
  body();
  Fiber& f = *current;
  f.state = State::done;
  Warp& w = warps[f.warp];
  w.alive &= ~(one << f.lane);
  setcontext(&scheduler);
}
inline void publish_ready(Warp& w) {
  for (auto& [mask, m] : w.meetings) {
    const Mask needed = mask & w.alive;
    if (m.arrived && (m.arrived & needed) == needed) {
      memcpy(m.results, m.values, sizeof m.results);
      m.published = m.arrived;
      m.arrived = 0;
      m.generation++;
      w.met++;
    }
  }
}
/// Every live lane of the mask hands in a value and sees those of all: the meaning of every _sync intrinsic.
inline const Meeting& meet(Mask mask, const void* value, size_t bytes) {
  Fiber& f = *current;
  Warp& w = warps[f.warp];
  if (!(mask >> f.lane & one)) stop(undefined, "a lane calls a warp intrinsic with a mask that does not name it");
  Meeting& m = w.meetings[mask];
  memset(m.values[f.lane], 0, sizeof m.values[f.lane]);
  memcpy(m.values[f.lane], value, bytes);
  m.arrived |= one << f.lane;
  const unsigned long long before = m.generation;
  publish_ready(w);
  while (m.generation == before) {
    f.state = State::meeting;
    f.wait_mask = mask;
    f.generation = before;
    leave();
  }
  f.state = State::runnable;
  return m;
}
/// The lanes of the warp that are at this very call: what __activemask and the intrinsics without a mask see.
inline Mask converge(const void* site) {
  Fiber& f = *current;
  f.site = site;
  f.state = State::converging;
  leave();
  return f.converged;
}
inline void yield_now() { current->yielded = true; leave(); }
/// Before every atomic: lets the other threads run first in the schedule that looks for order dependence.
inline void interleave() { if (interleaved) leave(); }
inline bool release_converging(Warp& w, unsigned first, unsigned count) {
  const void* site = nullptr;
  for (unsigned i = 0; i < count; i++)
    if (fibers[first + i].state == State::converging && (!site || fibers[first + i].site < site)) site = fibers[first + i].site;
  if (!site) return false;
  Mask group = 0;
  for (unsigned i = 0; i < count; i++)
    if (fibers[first + i].state == State::converging && fibers[first + i].site == site) group |= one << fibers[first + i].lane;
  for (unsigned i = 0; i < count; i++)
    if (group >> fibers[first + i].lane & one && fibers[first + i].state == State::converging && fibers[first + i].site == site) {
      fibers[first + i].state = State::runnable;
      fibers[first + i].converged = group;
    }
  (void)w;
  return true;
}
inline bool run_warp(unsigned index, unsigned total) {
  const unsigned first = index * lanes, count = std::min(lanes, total - first);
  Warp& w = warps[index];
  bool any = false;
  for (;;) {
    bool ran = false;
    for (unsigned k = 0; k < count; k++) {
      Fiber& f = fibers[first + thread_order(k, count)];
      if (f.state == State::meeting && w.meetings[f.wait_mask].generation != f.generation) f.state = State::runnable;
      if (f.state != State::runnable) continue;
      f.yielded = false;
      resume(f);
      publish_ready(w);
      any = true;
      ran = ran || !f.yielded;
    }
    if (!ran && !release_converging(w, first, count)) return any;
    any = any || !ran;
  }
}
inline void run_block(unsigned total) {
  const unsigned warp_count = (total + lanes - 1) / lanes;
  for (;;) {
    bool any = false;
    for (unsigned k = 0; k < warp_count; k++) any |= run_warp(thread_order(k, warp_count), total);
    unsigned waiting = 0, done = 0;
    for (unsigned i = 0; i < total; i++) waiting += fibers[i].state == State::barrier, done += fibers[i].state == State::done;
    if (done == total) return;
    if (waiting && waiting + done == total) {
      votes_result = votes;
      votes = 0;
      barriers++;
      for (unsigned i = 0; i < total; i++) if (fibers[i].state == State::barrier) fibers[i].state = State::runnable;
    } else if (!any) {
      stop(deadlock, "threads wait for others that never come");
    }
  }
}
inline void launch(dim3 grid, dim3 block, size_t shared_bytes, std::function<void()> kernel) {
  const unsigned total = block.x * block.y * block.z;
  if (total == 0 || total > 1024 || shared_bytes > sizeof dynamic_shared) stop(unsupported, "the launch is outside the limits");
  if (!stacks) stacks = (char*)mmap(nullptr, stack_bytes * 1024, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  gridDim = grid;
  blockDim = block;
  body = std::move(kernel);
  const size_t used = (shared_bytes + 4095) / 4096 * 4096;
  mprotect(dynamic_shared, used, PROT_READ | PROT_WRITE);
  mprotect(dynamic_shared + used, sizeof dynamic_shared - used, PROT_NONE);
  const unsigned long long blocks = (unsigned long long)grid.x * grid.y * grid.z;
  for (unsigned long long number = 0; number < blocks; number++) {
        const unsigned long long b = block_order(number, blocks);
        blockIdx = {(unsigned)(b % grid.x), (unsigned)(b / grid.x % grid.y), (unsigned)(b / grid.x / grid.y)};
        memset(dynamic_shared, fill_byte(), used);
        if (__start_wavesmith_shared) memset(__start_wavesmith_shared, fill_byte(), (size_t)(__stop_wavesmith_shared - __start_wavesmith_shared));
#ifdef WAVESMITH_RACES
        block_number = b;
#endif
        fibers.assign(total, Fiber{});
        warps.assign((total + lanes - 1) / lanes, Warp{});
        for (unsigned i = 0; i < total; i++) {
          Fiber& f = fibers[i];
          f.state = State::runnable;
          f.thread = {i % block.x, i / block.x % block.y, i / (block.x * block.y)};
          f.rank = i;
          f.lane = i % lanes;
          f.warp = i / lanes;
          warps[f.warp].alive |= one << f.lane;
          getcontext(&f.context);
          f.context.uc_stack.ss_sp = stacks + i * stack_bytes;
          f.context.uc_stack.ss_size = stack_bytes;
          f.context.uc_link = &scheduler;
          makecontext(&f.context, trampoline, 0);
        }
        run_block(total);
  }
}
struct Config { dim3 grid, block; size_t shared; };
inline Config config(dim3 grid, dim3 block, size_t shared = 0, const void* = nullptr) { return {grid, block, shared}; }
}  // namespace wavesmith_reference

#ifdef WAVESMITH_RACES
#define WAVESMITH_TOUCHES(N) \
  extern "C" WAVESMITH_UNSEEN void __sanitizer_cov_load##N(const void* p) { wavesmith_reference::touch(p, N, false); } \
  extern "C" WAVESMITH_UNSEEN void __sanitizer_cov_store##N(const void* p) { wavesmith_reference::touch(p, N, true); }
WAVESMITH_TOUCHES(1)
WAVESMITH_TOUCHES(2)
WAVESMITH_TOUCHES(4)
WAVESMITH_TOUCHES(8)
WAVESMITH_TOUCHES(16)
#endif
#define __global__
#define __device__
#define __host__
#define __shared__ static __attribute__((section("wavesmith_shared")))
#define __constant__ static
#define __managed__ static
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))
#if WAVESMITH_LANES == 32
#define __CUDACC__ 1
#define __NVCC__ 1
#define __CUDA_ARCH__ 800
#define CUDART_VERSION 12040
#define CUDA_VERSION 12040
#else
#define __HIPCC__ 1
#define __HIP__ 1
#define __HIP_PLATFORM_AMD__ 1
#endif
#define __HIP_DEVICE_COMPILE__ 1
#define WAVESMITH_CUDA_CAPABILITY 800

inline void __syncthreads() {
  wavesmith_reference::current->state = wavesmith_reference::State::barrier;
  wavesmith_reference::leave();
}
inline int __syncthreads_count(int p) { wavesmith_reference::votes += p != 0; __syncthreads(); const int r = (int)wavesmith_reference::votes_result; __syncthreads(); return r; }
inline int __syncthreads_or(int p) { return __syncthreads_count(p != 0) != 0; }
inline int __syncthreads_and(int p) { return __syncthreads_count(p == 0) == 0; }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) { wavesmith_reference::yield_now(); }
[[noreturn]] inline void __trap() { wavesmith_reference::stop(wavesmith_reference::undefined, "the kernel traps"); }
inline void __brkpt() { __trap(); }
inline void __prof_trigger(int) {}
/// The reading of a clock that a port is given too (see given.py).
#define WAVESMITH_GIVEN_CLOCK (7ll + 3 * (long long)threadIdx.x + 1000 * (long long)blockIdx.x)
/// What any other clock says is another thing under every fill.
inline long long clock64() { static long long now = 0; return now += 16 + 65536ll * wavesmith_reference::fill; }
inline unsigned __smid() { return 0; }

// ---- warp intrinsics -------------------------------------------------------------------------------------------------
namespace wavesmith_reference {
template <class T> T value_of(const Meeting& m, unsigned lane) { T v; memcpy(&v, m.results[lane], sizeof(T)); return v; }
/// What a lane reads that takes no part in a shuffle is undefined: another value under every fill.
template <class T> T undefined_value(T v) {
  if (fill) memset((void*)&v, fill_byte(), sizeof(T));
  return v;
}
template <class T> T pick(Mask mask, T v, unsigned from) {
  static_assert(sizeof(T) <= 32, "value too large");
  const Meeting& m = meet(mask, &v, sizeof(T));
  return m.published >> from & one ? value_of<T>(m, from) : undefined_value(v);
}
inline Mask gather_votes(Mask mask, bool p) {
  const Meeting& m = meet(mask, &p, sizeof p);
  Mask r = 0;
  for (unsigned i = 0; i < lanes; i++) if (m.published >> i & one && m.results[i][0]) r |= one << i;
  return r;
}
inline unsigned lane() { return current->lane; }
/// A reduction of the lanes of a mask: in order, or, as CUDA leaves the order open, pairwise.
template <class T, class F> T fold(Mask mask, T v, F f) {
  const Meeting& m = meet(mask, &v, sizeof(T));
  T values[lanes];
  unsigned count = 0;
  for (unsigned i = 0; i < lanes; i++) if (m.published >> i & one) values[count++] = value_of<T>(m, i);
  if (schedule == 0) {
    for (unsigned i = 1; i < count; i++) values[0] = f(values[0], values[i]);
  } else {
    for (unsigned half; count > 1; count = half) {
      half = (count + 1) / 2;
      for (unsigned i = 0; i + half < count; i++) values[i] = f(values[i], values[i + half]);
    }
  }
  return values[0];
}
}  // namespace wavesmith_reference
inline void __syncwarp(wavesmith_reference::Mask mask = wavesmith_reference::whole) { char c = 0; wavesmith_reference::meet(mask, &c, 1); }
namespace wavesmith_reference {
inline void check_width(int width) { if (width < 1 || width > (int)lanes || (width & (width - 1))) stop(undefined, "a shuffle's width is no power of two up to a warp"); }
}  // namespace wavesmith_reference
template <class T> T __shfl_sync(wavesmith_reference::Mask mask, T v, int source, int width = WAVESMITH_LANES) {
  wavesmith_reference::check_width(width);
  const unsigned base = wavesmith_reference::lane() / width * width;
  return wavesmith_reference::pick(mask, v, base + (unsigned)source % width);
}
template <class T> T __shfl_up_sync(wavesmith_reference::Mask mask, T v, unsigned d, int width = WAVESMITH_LANES) {
  wavesmith_reference::check_width(width);
  const unsigned l = wavesmith_reference::lane(), in = l % width;
  return wavesmith_reference::pick(mask, v, in >= d ? l - d : l);
}
template <class T> T __shfl_down_sync(wavesmith_reference::Mask mask, T v, unsigned d, int width = WAVESMITH_LANES) {
  wavesmith_reference::check_width(width);
  const unsigned l = wavesmith_reference::lane(), in = l % width;
  return wavesmith_reference::pick(mask, v, in + d < (unsigned)width ? l + d : l);
}
template <class T> T __shfl_xor_sync(wavesmith_reference::Mask mask, T v, int x, int width = WAVESMITH_LANES) {
  wavesmith_reference::check_width(width);
  const unsigned l = wavesmith_reference::lane(), to = l ^ (unsigned)x;
  return wavesmith_reference::pick(mask, v, to < WAVESMITH_LANES && to / width <= l / width ? to : l);
}
inline wavesmith_reference::Mask __ballot_sync(wavesmith_reference::Mask mask, int p) { return wavesmith_reference::gather_votes(mask, p != 0); }
inline int __any_sync(wavesmith_reference::Mask mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(wavesmith_reference::Mask mask, int p) { return __ballot_sync(mask, !p) == 0; }
inline int __uni_sync(wavesmith_reference::Mask mask, int p) { const wavesmith_reference::Mask yes = __ballot_sync(mask, p), no = __ballot_sync(mask, !p); return yes == 0 || no == 0; }
template <class T> wavesmith_reference::Mask __match_any_sync(wavesmith_reference::Mask mask, T v) {
  const auto& m = wavesmith_reference::meet(mask, &v, sizeof(T));
  wavesmith_reference::Mask r = 0;
  for (unsigned i = 0; i < wavesmith_reference::lanes; i++) if (m.published >> i & wavesmith_reference::one && memcmp(m.results[i], &v, sizeof(T)) == 0) r |= wavesmith_reference::one << i;
  return r;
}
template <class T> wavesmith_reference::Mask __match_all_sync(wavesmith_reference::Mask mask, T v, int* p) {
  const auto& m = wavesmith_reference::meet(mask, &v, sizeof(T));
  bool same = true;
  for (unsigned i = 0; i < wavesmith_reference::lanes; i++) if (m.published >> i & wavesmith_reference::one) same = same && memcmp(m.results[i], &v, sizeof(T)) == 0;
  *p = same;
  return same ? mask : 0;
}
template <class T> T __reduce_add_sync(wavesmith_reference::Mask m, T v) { return wavesmith_reference::fold(m, v, [](T a, T b) { return (T)(a + b); }); }
template <class T> T __reduce_min_sync(wavesmith_reference::Mask m, T v) { return wavesmith_reference::fold(m, v, [](T a, T b) { return std::min(a, b); }); }
template <class T> T __reduce_max_sync(wavesmith_reference::Mask m, T v) { return wavesmith_reference::fold(m, v, [](T a, T b) { return std::max(a, b); }); }
template <class T> T __reduce_and_sync(wavesmith_reference::Mask m, T v) { return wavesmith_reference::fold(m, v, [](T a, T b) { return (T)(a & b); }); }
template <class T> T __reduce_or_sync(wavesmith_reference::Mask m, T v) { return wavesmith_reference::fold(m, v, [](T a, T b) { return (T)(a | b); }); }
template <class T> T __reduce_xor_sync(wavesmith_reference::Mask m, T v) { return wavesmith_reference::fold(m, v, [](T a, T b) { return (T)(a ^ b); }); }
__attribute__((noinline)) inline wavesmith_reference::Mask __activemask() { return wavesmith_reference::converge(__builtin_return_address(0)); }
#define WAVESMITH_HERE wavesmith_reference::converge(__builtin_return_address(0))
template <class T> __attribute__((noinline)) T __shfl(T v, int s, int w = WAVESMITH_LANES) { return __shfl_sync(WAVESMITH_HERE, v, s, w); }
template <class T> __attribute__((noinline)) T __shfl_up(T v, unsigned d, int w = WAVESMITH_LANES) { return __shfl_up_sync(WAVESMITH_HERE, v, d, w); }
template <class T> __attribute__((noinline)) T __shfl_down(T v, unsigned d, int w = WAVESMITH_LANES) { return __shfl_down_sync(WAVESMITH_HERE, v, d, w); }
template <class T> __attribute__((noinline)) T __shfl_xor(T v, int x, int w = WAVESMITH_LANES) { return __shfl_xor_sync(WAVESMITH_HERE, v, x, w); }
__attribute__((noinline)) inline wavesmith_reference::Mask __ballot(int p) { return __ballot_sync(WAVESMITH_HERE, p); }
__attribute__((noinline)) inline int __any(int p) { return __any_sync(WAVESMITH_HERE, p); }
__attribute__((noinline)) inline int __all(int p) { return __all_sync(WAVESMITH_HERE, p); }
inline wavesmith_reference::Mask __lanemask_eq() { return wavesmith_reference::one << wavesmith_reference::lane(); }
inline wavesmith_reference::Mask __lanemask_lt() { return (wavesmith_reference::one << wavesmith_reference::lane()) - 1; }
inline wavesmith_reference::Mask __lanemask_le() { return __lanemask_lt() | __lanemask_eq(); }
inline wavesmith_reference::Mask __lanemask_gt() { return ~__lanemask_le(); }
inline wavesmith_reference::Mask __lanemask_ge() { return ~__lanemask_lt(); }

// ---- atomics ---------------------------------------------------------------------------------------------------------
#define WAVESMITH_ATOMIC(NAME, RESULT) \
  template <class T> T NAME(T* p, typename std::common_type<T>::type v) { wavesmith_reference::interleave(); const wavesmith_reference::Quiet quiet; const T old = *p; *p = RESULT; return old; } \
  template <class T> T NAME##_block(T* p, typename std::common_type<T>::type v) { return NAME(p, v); } \
  template <class T> T NAME##_system(T* p, typename std::common_type<T>::type v) { return NAME(p, v); }
WAVESMITH_ATOMIC(atomicAdd, (T)(old + v))
WAVESMITH_ATOMIC(atomicSub, (T)(old - v))
WAVESMITH_ATOMIC(atomicMin, v < old ? v : old)
WAVESMITH_ATOMIC(atomicMax, old < v ? v : old)
WAVESMITH_ATOMIC(atomicAnd, (T)(old & v))
WAVESMITH_ATOMIC(atomicOr, (T)(old | v))
WAVESMITH_ATOMIC(atomicXor, (T)(old ^ v))
template <class T> T atomicExch(T* p, typename std::common_type<T>::type v) { wavesmith_reference::interleave(); T old; { const wavesmith_reference::Quiet quiet; old = *p; *p = v; } wavesmith_reference::yield_now(); return old; }
template <class T> T atomicExch_block(T* p, typename std::common_type<T>::type v) { return atomicExch(p, v); }
template <class T> T atomicExch_system(T* p, typename std::common_type<T>::type v) { return atomicExch(p, v); }
template <class T> T atomicCAS(T* p, typename std::common_type<T>::type c, typename std::common_type<T>::type v) { wavesmith_reference::interleave(); T old; bool same; { const wavesmith_reference::Quiet quiet; old = *p; same = memcmp(&old, &c, sizeof(T)) == 0; if (same) *p = v; } if (!same) wavesmith_reference::yield_now(); return old; }
template <class T> T atomicCAS_block(T* p, typename std::common_type<T>::type c, typename std::common_type<T>::type v) { return atomicCAS(p, c, v); }
template <class T> T atomicCAS_system(T* p, typename std::common_type<T>::type c, typename std::common_type<T>::type v) { return atomicCAS(p, c, v); }
inline unsigned atomicInc(unsigned* p, unsigned limit) { wavesmith_reference::interleave(); const wavesmith_reference::Quiet quiet; const unsigned old = *p; *p = old >= limit ? 0 : old + 1; return old; }
inline unsigned atomicDec(unsigned* p, unsigned limit) { wavesmith_reference::interleave(); const wavesmith_reference::Quiet quiet; const unsigned old = *p; *p = old == 0 || old > limit ? limit : old - 1; return old; }
inline unsigned atomicInc_block(unsigned* p, unsigned l) { return atomicInc(p, l); }
inline unsigned atomicDec_block(unsigned* p, unsigned l) { return atomicDec(p, l); }
inline unsigned atomicInc_system(unsigned* p, unsigned l) { return atomicInc(p, l); }
inline unsigned atomicDec_system(unsigned* p, unsigned l) { return atomicDec(p, l); }

// ---- memory ----------------------------------------------------------------------------------------------------------
template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcs(const T* p) { return *p; }
template <class T> T __ldcg(const T* p) { return *p; }
template <class T> T __ldca(const T* p) { return *p; }
template <class T> T __ldlu(const T* p) { return *p; }
template <class T> T __ldcv(const T* p) { wavesmith_reference::yield_now(); return *p; }
template <class T> void __stcs(T* p, typename std::common_type<T>::type v) { *p = v; }
template <class T> void __stcg(T* p, typename std::common_type<T>::type v) { *p = v; }
template <class T> void __stwb(T* p, typename std::common_type<T>::type v) { *p = v; }
template <class T> void __stwt(T* p, typename std::common_type<T>::type v) { *p = v; }
namespace wavesmith_reference {
/// Shared variables lie in the program's own data, whose addresses share their upper half.
inline size_t shared_offset(const void* p) { return (size_t)p & 0xffffffffu; }
inline void* from_shared(size_t offset) { return (void*)(((size_t)dynamic_shared & ~(size_t)0xffffffffu) | (offset & 0xffffffffu)); }
}  // namespace wavesmith_reference
inline size_t __cvta_generic_to_shared(const void* p) { return wavesmith_reference::shared_offset(p); }
inline void* __cvta_shared_to_generic(size_t o) { return wavesmith_reference::from_shared(o); }
inline size_t __cvta_generic_to_global(const void* p) { return (size_t)p; }
inline void* __cvta_global_to_generic(size_t p) { return (void*)p; }
