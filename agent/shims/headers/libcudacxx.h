//@ entry: pipeline_primitives
//@ header: cuda_pipeline.h, cuda_pipeline_primitives.h
//@ provides: __pipeline_memcpy_async, __pipeline_commit, __pipeline_wait_prior
//@ contract: performance-only
//@ note: the copy is complete when the call returns
static __device__ __forceinline__ void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zero_fill = 0) {
  const size_t copied = bytes - zero_fill;
  if (bytes == 16 && zero_fill == 0) *(uint4*)to = *(const uint4*)from;
  else if (bytes == 8 && zero_fill == 0) *(uint2*)to = *(const uint2*)from;
  else if (bytes == 4 && zero_fill == 0) *(unsigned*)to = *(const unsigned*)from;
  else for (size_t i = 0; i < bytes; i++) ((unsigned char*)to)[i] = i < copied ? ((const unsigned char*)from)[i] : (unsigned char)0;
}
static __device__ __forceinline__ void __pipeline_commit() {}
static __device__ __forceinline__ void __pipeline_wait_prior(size_t) { __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup"); }
//@ end

//@ entry: cuda_atomic
//@ header: cuda/atomic, cuda/std/atomic
//@ contract: exact
//@ note: thread scopes become the memory scopes workgroup, agent and system
namespace cuda {
enum thread_scope { thread_scope_system, thread_scope_device, thread_scope_block, thread_scope_thread };
enum memory_order { memory_order_relaxed = __ATOMIC_RELAXED, memory_order_consume = __ATOMIC_CONSUME, memory_order_acquire = __ATOMIC_ACQUIRE, memory_order_release = __ATOMIC_RELEASE, memory_order_acq_rel = __ATOMIC_ACQ_REL, memory_order_seq_cst = __ATOMIC_SEQ_CST };
namespace std {
using memory_order = ::cuda::memory_order;
constexpr memory_order memory_order_relaxed = ::cuda::memory_order_relaxed, memory_order_acquire = ::cuda::memory_order_acquire, memory_order_release = ::cuda::memory_order_release, memory_order_acq_rel = ::cuda::memory_order_acq_rel, memory_order_seq_cst = ::cuda::memory_order_seq_cst;
}  // namespace std
namespace wavesmith_detail {
constexpr int scope_of(thread_scope s) { return s == thread_scope_system ? __HIP_MEMORY_SCOPE_SYSTEM : s == thread_scope_device ? __HIP_MEMORY_SCOPE_AGENT : s == thread_scope_block ? __HIP_MEMORY_SCOPE_WORKGROUP : __HIP_MEMORY_SCOPE_SINGLETHREAD; }
#define WAVESMITH_ORDERED(EXPRESSION) \
  switch (order) { \
    case memory_order_relaxed: { constexpr int ORDER = __ATOMIC_RELAXED; EXPRESSION; } \
    case memory_order_consume: case memory_order_acquire: { constexpr int ORDER = __ATOMIC_ACQUIRE; EXPRESSION; } \
    case memory_order_release: { constexpr int ORDER = __ATOMIC_RELEASE; EXPRESSION; } \
    case memory_order_acq_rel: { constexpr int ORDER = __ATOMIC_ACQ_REL; EXPRESSION; } \
    default: { constexpr int ORDER = __ATOMIC_SEQ_CST; EXPRESSION; } \
  }
template <class T, thread_scope S> class operations {
  static constexpr int scope = scope_of(S);

 public:
  __host__ __device__ T load(memory_order order = memory_order_seq_cst) const { T* p = at(); switch (order) { case memory_order_relaxed: return __hip_atomic_load(p, __ATOMIC_RELAXED, scope); case memory_order_consume: case memory_order_acquire: return __hip_atomic_load(p, __ATOMIC_ACQUIRE, scope); default: return __hip_atomic_load(p, __ATOMIC_SEQ_CST, scope); } }
  __host__ __device__ void store(T v, memory_order order = memory_order_seq_cst) { T* p = at(); switch (order) { case memory_order_relaxed: return __hip_atomic_store(p, v, __ATOMIC_RELAXED, scope); case memory_order_release: return __hip_atomic_store(p, v, __ATOMIC_RELEASE, scope); default: return __hip_atomic_store(p, v, __ATOMIC_SEQ_CST, scope); } }
  __host__ __device__ T exchange(T v, memory_order order = memory_order_seq_cst) { WAVESMITH_ORDERED(return __hip_atomic_exchange(at(), v, ORDER, scope)) }
  __host__ __device__ T fetch_add(T v, memory_order order = memory_order_seq_cst) { WAVESMITH_ORDERED(return __hip_atomic_fetch_add(at(), v, ORDER, scope)) }
  __host__ __device__ T fetch_sub(T v, memory_order order = memory_order_seq_cst) { WAVESMITH_ORDERED(return __hip_atomic_fetch_add(at(), (T)-v, ORDER, scope)) }
  __host__ __device__ T fetch_and(T v, memory_order order = memory_order_seq_cst) { WAVESMITH_ORDERED(return __hip_atomic_fetch_and(at(), v, ORDER, scope)) }
  __host__ __device__ T fetch_or(T v, memory_order order = memory_order_seq_cst) { WAVESMITH_ORDERED(return __hip_atomic_fetch_or(at(), v, ORDER, scope)) }
  __host__ __device__ T fetch_xor(T v, memory_order order = memory_order_seq_cst) { WAVESMITH_ORDERED(return __hip_atomic_fetch_xor(at(), v, ORDER, scope)) }
  __host__ __device__ T fetch_min(T v, memory_order order = memory_order_seq_cst) { WAVESMITH_ORDERED(return __hip_atomic_fetch_min(at(), v, ORDER, scope)) }
  __host__ __device__ T fetch_max(T v, memory_order order = memory_order_seq_cst) { WAVESMITH_ORDERED(return __hip_atomic_fetch_max(at(), v, ORDER, scope)) }
  __host__ __device__ bool compare_exchange_strong(T& expected, T wanted, memory_order = memory_order_seq_cst, memory_order = memory_order_seq_cst) { return __hip_atomic_compare_exchange_strong(at(), &expected, wanted, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST, scope); }
  __host__ __device__ bool compare_exchange_weak(T& expected, T wanted, memory_order a = memory_order_seq_cst, memory_order b = memory_order_seq_cst) { return compare_exchange_strong(expected, wanted, a, b); }
  __host__ __device__ operator T() const { return load(); }
  __host__ __device__ T operator=(T v) { store(v); return v; }
  __host__ __device__ T operator++() { return fetch_add((T)1) + (T)1; }
  __host__ __device__ T operator++(int) { return fetch_add((T)1); }
  __host__ __device__ T operator--() { return fetch_sub((T)1) - (T)1; }
  __host__ __device__ T operator--(int) { return fetch_sub((T)1); }
  __host__ __device__ T operator+=(T v) { return fetch_add(v) + v; }
  __host__ __device__ T operator-=(T v) { return fetch_sub(v) - v; }
  __host__ __device__ bool is_lock_free() const { return true; }
  __host__ __device__ void wait(T old, memory_order order = memory_order_seq_cst) const { while (load(order) == old) {} }
  __host__ __device__ void notify_one() {}
  __host__ __device__ void notify_all() {}

 protected:
  __host__ __device__ explicit operations(T* p) : target_(p) {}
  __host__ __device__ T* at() const { return target_; }
  T* target_;
};
}  // namespace wavesmith_detail
template <class T, thread_scope S = thread_scope_system> class atomic_ref : public wavesmith_detail::operations<T, S> {
 public:
  __host__ __device__ explicit atomic_ref(T& target) : wavesmith_detail::operations<T, S>(&target) {}
  using wavesmith_detail::operations<T, S>::operator=;
};
template <class T, thread_scope S = thread_scope_system> class atomic {
  using view = atomic_ref<T, S>;
  mutable T value_;

 public:
  atomic() = default;
  constexpr __host__ __device__ atomic(T v) : value_(v) {}
  __host__ __device__ view ref() const { return view(value_); }
  __host__ __device__ T load(memory_order o = memory_order_seq_cst) const { return ref().load(o); }
  __host__ __device__ void store(T v, memory_order o = memory_order_seq_cst) { ref().store(v, o); }
  __host__ __device__ T exchange(T v, memory_order o = memory_order_seq_cst) { return ref().exchange(v, o); }
  __host__ __device__ T fetch_add(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_add(v, o); }
  __host__ __device__ T fetch_sub(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_sub(v, o); }
  __host__ __device__ T fetch_and(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_and(v, o); }
  __host__ __device__ T fetch_or(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_or(v, o); }
  __host__ __device__ T fetch_xor(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_xor(v, o); }
  __host__ __device__ T fetch_min(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_min(v, o); }
  __host__ __device__ T fetch_max(T v, memory_order o = memory_order_seq_cst) { return ref().fetch_max(v, o); }
  __host__ __device__ bool compare_exchange_strong(T& e, T w, memory_order a = memory_order_seq_cst, memory_order b = memory_order_seq_cst) { return ref().compare_exchange_strong(e, w, a, b); }
  __host__ __device__ bool compare_exchange_weak(T& e, T w, memory_order a = memory_order_seq_cst, memory_order b = memory_order_seq_cst) { return ref().compare_exchange_strong(e, w, a, b); }
  __host__ __device__ operator T() const { return load(); }
  __host__ __device__ T operator=(T v) { store(v); return v; }
  __host__ __device__ T operator++() { return fetch_add((T)1) + (T)1; }
  __host__ __device__ T operator++(int) { return fetch_add((T)1); }
  __host__ __device__ T operator+=(T v) { return fetch_add(v) + v; }
  __host__ __device__ T operator-=(T v) { return fetch_sub(v) - v; }
  __host__ __device__ void wait(T old, memory_order o = memory_order_seq_cst) const { ref().wait(old, o); }
  __host__ __device__ void notify_one() {}
  __host__ __device__ void notify_all() {}
};
static inline __host__ __device__ void atomic_thread_fence(memory_order, thread_scope scope = thread_scope_system) {
#if defined(__HIP_DEVICE_COMPILE__)
  if (scope == thread_scope_block) __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup");
  else if (scope == thread_scope_device) __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent");
  else __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "");
#else
  (void)scope;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}
namespace std {
template <class T> using atomic = ::cuda::atomic<T, ::cuda::thread_scope_system>;
template <class T> using atomic_ref = ::cuda::atomic_ref<T, ::cuda::thread_scope_system>;
}  // namespace std
}  // namespace cuda
//@ end

//@ entry: cuda_barrier
//@ header: cuda/barrier, cuda/std/barrier, cuda_awbarrier.h, cuda_awbarrier_primitives.h
//@ requires: cuda_atomic
//@ contract: exact
//@ note: arrivals counted in LDS; asynchronous copies complete before they return
namespace cuda {
template <class T, size_t Alignment = alignof(T)> struct aligned_size_helper {};
template <size_t Alignment> struct aligned_size_t {
  static constexpr size_t align = Alignment;
  size_t value;
  __host__ __device__ explicit constexpr aligned_size_t(size_t v) : value(v) {}
  __host__ __device__ constexpr operator size_t() const { return value; }
};
namespace std { struct empty_completion { __host__ __device__ void operator()() const {} }; }
template <thread_scope S, class Completion = ::cuda::std::empty_completion> class barrier {
  unsigned expected_, arrived_, phase_;
  static constexpr int scope = wavesmith_detail::scope_of(S);

 public:
  using arrival_token = unsigned;
  barrier() = default;
  __host__ __device__ barrier(ptrdiff_t expected) : expected_((unsigned)expected), arrived_(0), phase_(0) {}
  template <thread_scope T> friend __device__ void init(barrier<T>* b, ptrdiff_t expected);
  __device__ void wavesmith_init(ptrdiff_t expected) { expected_ = (unsigned)expected; arrived_ = 0; phase_ = 0; }
  __device__ arrival_token arrive(ptrdiff_t update = 1) {
    const unsigned phase = __hip_atomic_load(&phase_, __ATOMIC_ACQUIRE, scope);
    const unsigned before = __hip_atomic_fetch_add(&arrived_, (unsigned)update, __ATOMIC_ACQ_REL, scope);
    if (before + (unsigned)update == __hip_atomic_load(&expected_, __ATOMIC_RELAXED, scope)) {
      __hip_atomic_store(&arrived_, 0u, __ATOMIC_RELAXED, scope);
      __hip_atomic_store(&phase_, phase + 1u, __ATOMIC_RELEASE, scope);
    }
    return phase;
  }
  __device__ void wait(arrival_token phase) const { while (__hip_atomic_load(const_cast<unsigned*>(&phase_), __ATOMIC_ACQUIRE, scope) == phase) __builtin_amdgcn_s_sleep(0); }
  __device__ bool try_wait(arrival_token phase) const { return __hip_atomic_load(const_cast<unsigned*>(&phase_), __ATOMIC_ACQUIRE, scope) != phase; }
  __device__ void arrive_and_wait() { wait(arrive()); }
  __device__ void arrive_and_drop() { __hip_atomic_fetch_add(&expected_, (unsigned)-1, __ATOMIC_RELAXED, scope); arrive(0); }
};
template <thread_scope S> static __device__ void init(barrier<S>* b, ptrdiff_t expected) { b->wavesmith_init(expected); }
namespace std { template <class C = empty_completion> using barrier = ::cuda::barrier<::cuda::thread_scope_system, C>; }
namespace wavesmith_detail {
static __device__ __forceinline__ void copy(void* to, const void* from, size_t bytes, size_t rank, size_t size) {
  if ((((size_t)to | (size_t)from | bytes) & 15u) == 0) for (size_t i = rank; i < bytes / 16; i += size) ((uint4*)to)[i] = ((const uint4*)from)[i];
  else if ((((size_t)to | (size_t)from | bytes) & 3u) == 0) for (size_t i = rank; i < bytes / 4; i += size) ((unsigned*)to)[i] = ((const unsigned*)from)[i];
  else for (size_t i = rank; i < bytes; i += size) ((unsigned char*)to)[i] = ((const unsigned char*)from)[i];
}
}  // namespace wavesmith_detail
template <class G, class Size, thread_scope S> static __device__ __forceinline__ auto memcpy_async(const G& g, void* to, const void* from, Size bytes, barrier<S>&) -> decltype((void)g.thread_rank()) { wavesmith_detail::copy(to, from, (size_t)bytes, g.thread_rank(), g.size()); }
template <class Size, thread_scope S> static __device__ __forceinline__ void memcpy_async(void* to, const void* from, Size bytes, barrier<S>&) { wavesmith_detail::copy(to, from, (size_t)bytes, 0, 1); }
}  // namespace cuda
//@ end

//@ entry: cuda_pipeline
//@ header: cuda/pipeline
//@ requires: cuda_barrier
//@ contract: performance-only
//@ note: copies complete before they return, so a stage is always ready
namespace cuda {
template <thread_scope S, unsigned char Stages> struct pipeline_shared_state {};
enum class pipeline_role { producer, consumer };
template <thread_scope S> class pipeline {
 public:
  __device__ void producer_acquire() {}
  __device__ void producer_commit() { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); }
  __device__ void consumer_wait() { if (S != thread_scope_thread) __syncthreads(); }
  __device__ void consumer_release() { if (S != thread_scope_thread) __syncthreads(); }
  __device__ bool quit() { return true; }
};
template <class G, thread_scope S, unsigned char Stages> static __device__ pipeline<S> make_pipeline(const G&, pipeline_shared_state<S, Stages>*) { return {}; }
static __device__ inline pipeline<thread_scope_thread> make_pipeline() { return {}; }
template <unsigned N, thread_scope S> static __device__ void pipeline_consumer_wait_prior(pipeline<S>& p) { p.consumer_wait(); }
template <class G, class Size, thread_scope S> static __device__ __forceinline__ auto memcpy_async(const G& g, void* to, const void* from, Size bytes, pipeline<S>&) -> decltype((void)g.thread_rank()) { wavesmith_detail::copy(to, from, (size_t)bytes, g.thread_rank(), g.size()); }
template <class Size, thread_scope S> static __device__ __forceinline__ void memcpy_async(void* to, const void* from, Size bytes, pipeline<S>&) { wavesmith_detail::copy(to, from, (size_t)bytes, 0, 1); }
}  // namespace cuda
//@ end

//@ entry: cuda_std
//@ header: cuda/std/type_traits, cuda/std/limits, cuda/std/utility, cuda/std/cstdint, cuda/std/cstddef, cuda/std/tuple, cuda/std/array, cuda/std/functional, cuda/std/optional, cuda/std/cmath, cuda/std/complex, cuda/std/cassert, cuda/std/climits, cuda/std/cfloat, cuda/std/bit, cuda/std/span, cuda/std/algorithm, cuda/std/numeric, cuda/std/initializer_list, cuda/functional, cuda/cmath, cuda/std/concepts, cuda/std/iterator
//@ contract: weaker
//@ note: the host's standard library; in device code only its constexpr members are usable
#include <algorithm>
#include <array>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
namespace cuda {
namespace std {
using namespace ::std;
}  // namespace std
template <class T, class U> constexpr __host__ __device__ T ceil_div(T a, U b) { return (T)((a + b - 1) / b); }
template <class T> struct maximum { constexpr __host__ __device__ T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct minimum { constexpr __host__ __device__ T operator()(T a, T b) const { return b < a ? b : a; } };
}  // namespace cuda
//@ end
