// cuda::barrier, cuda::pipeline, cuda::atomic, cuda::std and the pipeline primitives, one thread at a time.
#pragma once
#include "groups.h"
inline void __pipeline_memcpy_async(void* to, const void* from, size_t n, size_t zeros = 0) { memcpy(to, from, n - zeros); memset((char*)to + n - zeros, 0, zeros); }
inline void __pipeline_commit() {}
inline void __pipeline_wait_prior(size_t) {}
namespace cuda {
enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };
enum memory_order { memory_order_relaxed, memory_order_consume, memory_order_acquire, memory_order_release, memory_order_acq_rel, memory_order_seq_cst };
namespace std {
using namespace ::std;
using memory_order = ::cuda::memory_order;
constexpr memory_order memory_order_relaxed = ::cuda::memory_order_relaxed, memory_order_acquire = ::cuda::memory_order_acquire, memory_order_release = ::cuda::memory_order_release, memory_order_acq_rel = ::cuda::memory_order_acq_rel, memory_order_seq_cst = ::cuda::memory_order_seq_cst;
struct empty_completion { void operator()() const {} };
}  // namespace std
template <class T, class U> constexpr T ceil_div(T a, U b) { return (T)((a + b - 1) / b); }
template <class T> struct maximum { T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct minimum { T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T, thread_scope S = thread_scope_system> struct atomic_ref {
  T* p;
  explicit atomic_ref(T& v) : p(&v) {}
  T load(memory_order = memory_order_seq_cst) const { wavesmith_reference::yield_now(); return *p; }
  void store(T v, memory_order = memory_order_seq_cst) { *p = v; }
  T exchange(T v, memory_order = memory_order_seq_cst) { const T o = *p; *p = v; return o; }
  T fetch_add(T v, memory_order = memory_order_seq_cst) { const T o = *p; *p = o + v; return o; }
  T fetch_sub(T v, memory_order = memory_order_seq_cst) { const T o = *p; *p = o - v; return o; }
  T fetch_and(T v, memory_order = memory_order_seq_cst) { const T o = *p; *p = o & v; return o; }
  T fetch_or(T v, memory_order = memory_order_seq_cst) { const T o = *p; *p = o | v; return o; }
  T fetch_xor(T v, memory_order = memory_order_seq_cst) { const T o = *p; *p = o ^ v; return o; }
  T fetch_min(T v, memory_order = memory_order_seq_cst) { const T o = *p; *p = v < o ? v : o; return o; }
  T fetch_max(T v, memory_order = memory_order_seq_cst) { const T o = *p; *p = o < v ? v : o; return o; }
  bool compare_exchange_strong(T& e, T w, memory_order = memory_order_seq_cst, memory_order = memory_order_seq_cst) { if (*p == e) { *p = w; return true; } e = *p; wavesmith_reference::yield_now(); return false; }
  bool compare_exchange_weak(T& e, T w, memory_order a = memory_order_seq_cst, memory_order b = memory_order_seq_cst) { return compare_exchange_strong(e, w, a, b); }
  operator T() const { return load(); }
  T operator=(T v) { store(v); return v; }
  T operator++() { return fetch_add(1) + 1; }
  T operator++(int) { return fetch_add(1); }
  T operator+=(T v) { return fetch_add(v) + v; }
  T operator-=(T v) { return fetch_sub(v) - v; }
  void wait(T old, memory_order o = memory_order_seq_cst) const { while (load(o) == old) {} }
  void notify_one() {}
  void notify_all() {}
};
template <class T, thread_scope S = thread_scope_system> struct atomic {
  T value;
  atomic() = default;
  constexpr atomic(T v) : value(v) {}
  atomic_ref<T, S> ref() const { return atomic_ref<T, S>(const_cast<T&>(value)); }
  T load(memory_order o = memory_order_seq_cst) const { return ref().load(o); }
  void store(T v, memory_order o = memory_order_seq_cst) { ref().store(v, o); }
  T exchange(T v, memory_order o = memory_order_seq_cst) { return ref().exchange(v, o); }
  T fetch_add(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_add(v, o); }
  T fetch_sub(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_sub(v, o); }
  T fetch_and(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_and(v, o); }
  T fetch_or(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_or(v, o); }
  T fetch_xor(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_xor(v, o); }
  T fetch_min(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_min(v, o); }
  T fetch_max(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_max(v, o); }
  bool compare_exchange_strong(T& e, T w, memory_order a = memory_order_seq_cst, memory_order b = memory_order_seq_cst) { return ref().compare_exchange_strong(e, w, a, b); }
  bool compare_exchange_weak(T& e, T w, memory_order a = memory_order_seq_cst, memory_order b = memory_order_seq_cst) { return ref().compare_exchange_strong(e, w, a, b); }
  operator T() const { return load(); }
  T operator=(T v) { store(v); return v; }
  T operator++() { return fetch_add(1) + 1; }
  T operator++(int) { return fetch_add(1); }
  T operator+=(T v) { return fetch_add(v) + v; }
  T operator-=(T v) { return fetch_sub(v) - v; }
  void wait(T old, memory_order o = memory_order_seq_cst) const { ref().wait(old, o); }
  void notify_one() {}
  void notify_all() {}
};
inline void atomic_thread_fence(memory_order, thread_scope = thread_scope_system) {}
template <size_t A> struct aligned_size_t { size_t value; explicit constexpr aligned_size_t(size_t v) : value(v) {} constexpr operator size_t() const { return value; } };
template <thread_scope S, class C = ::cuda::std::empty_completion> struct barrier {
  unsigned expected, arrived, phase;
  using arrival_token = unsigned;
  barrier() = default;
  barrier(ptrdiff_t n) : expected((unsigned)n), arrived(0), phase(0) {}
  arrival_token arrive(ptrdiff_t n = 1) { const unsigned p = phase; arrived += (unsigned)n; if (arrived == expected) { arrived = 0; phase++; } return p; }
  void wait(arrival_token t) const { while (*(const volatile unsigned*)&phase == t) wavesmith_reference::yield_now(); }
  bool try_wait(arrival_token t) const { wavesmith_reference::yield_now(); return phase != t; }
  void arrive_and_wait() { wait(arrive()); }
  void arrive_and_drop() { expected--; arrive(0); }
};
template <thread_scope S> void init(barrier<S>* b, ptrdiff_t n) { b->expected = (unsigned)n; b->arrived = 0; b->phase = 0; }
template <class G, class N, thread_scope S> auto memcpy_async(const G& g, void* to, const void* from, N n, barrier<S>&) -> decltype((void)g.thread_rank()) { for (size_t i = g.thread_rank(); i < (size_t)n; i += g.size()) ((char*)to)[i] = ((const char*)from)[i]; }
template <class N, thread_scope S> void memcpy_async(void* to, const void* from, N n, barrier<S>&) { memcpy(to, from, (size_t)n); }
template <thread_scope S, unsigned char N> struct pipeline_shared_state {};
enum class pipeline_role { producer, consumer };
template <thread_scope S> struct pipeline {
  void producer_acquire() {}
  void producer_commit() {}
  void consumer_wait() { if (S != thread_scope_thread) __syncthreads(); }
  void consumer_release() { if (S != thread_scope_thread) __syncthreads(); }
};
template <class G, thread_scope S, unsigned char N> pipeline<S> make_pipeline(const G&, pipeline_shared_state<S, N>*) { return {}; }
inline pipeline<thread_scope_thread> make_pipeline() { return {}; }
template <unsigned N, thread_scope S> void pipeline_consumer_wait_prior(pipeline<S>& p) { p.consumer_wait(); }
template <class G, class N, thread_scope S> auto memcpy_async(const G& g, void* to, const void* from, N n, pipeline<S>&) -> decltype((void)g.thread_rank()) { for (size_t i = g.thread_rank(); i < (size_t)n; i += g.size()) ((char*)to)[i] = ((const char*)from)[i]; }
template <class N, thread_scope S> void memcpy_async(void* to, const void* from, N n, pipeline<S>&) { memcpy(to, from, (size_t)n); }
}  // namespace cuda
