//@ entry: cache_core
//@ contract: exact
namespace wavesmith {
template <unsigned long N> struct raw_bits;
template <> struct raw_bits<1> { using type = unsigned char; };
template <> struct raw_bits<2> { using type = unsigned short; };
template <> struct raw_bits<4> { using type = unsigned; };
template <> struct raw_bits<8> { using type = unsigned __attribute__((ext_vector_type(2))); };
template <> struct raw_bits<16> { using type = unsigned __attribute__((ext_vector_type(4))); };
template <class T> using raw_of = typename raw_bits<sizeof(T)>::type;
template <class T> static __device__ __forceinline__ T load_streaming(const T* p) {
  const raw_of<T> raw = __builtin_nontemporal_load((const raw_of<T>*)p);
  T value;
  __builtin_memcpy(&value, &raw, sizeof(T));
  return value;
}
template <class T> static __device__ __forceinline__ void store_streaming(T* p, const T& value) {
  raw_of<T> raw;
  __builtin_memcpy(&raw, &value, sizeof(T));
  __builtin_nontemporal_store(raw, (raw_of<T>*)p);
}
template <class W> static __device__ __forceinline__ void copy_system(W* to, const W* from, int words, bool loading) {
  for (int i = 0; i < words; i++) {
    if (loading) to[i] = __hip_atomic_load((W*)from + i, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
    else __hip_atomic_store(to + i, from[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  }
}
template <class T> static __device__ __forceinline__ T load_system(const T* p) {
  T value;
  if constexpr (sizeof(T) % 8 == 0) copy_system((unsigned long long*)&value, (const unsigned long long*)p, sizeof(T) / 8, true);
  else if constexpr (sizeof(T) == 4) copy_system((unsigned*)&value, (const unsigned*)p, 1, true);
  else if constexpr (sizeof(T) == 2) copy_system((unsigned short*)&value, (const unsigned short*)p, 1, true);
  else copy_system((unsigned char*)&value, (const unsigned char*)p, sizeof(T), true);
  return value;
}
template <class T> static __device__ __forceinline__ void store_system(T* p, const T& value) {
  if constexpr (sizeof(T) % 8 == 0) copy_system((unsigned long long*)p, (const unsigned long long*)&value, sizeof(T) / 8, false);
  else if constexpr (sizeof(T) == 4) copy_system((unsigned*)p, (const unsigned*)&value, 1, false);
  else if constexpr (sizeof(T) == 2) copy_system((unsigned short*)p, (const unsigned short*)&value, 1, false);
  else copy_system((unsigned char*)p, (const unsigned char*)&value, sizeof(T), false);
}
template <class T> struct same_type { using type = T; };
}  // namespace wavesmith
//@ end

//@ entry: cache_load_streaming
//@ provides: __ldcs, __ldlu
//@ requires: cache_core
//@ contract: performance-only
//@ rename: wavesmith
//@ note: non-temporal load
namespace wavesmith {
template <class T> static __device__ __forceinline__ T __ldcs(const T* p) { return load_streaming(p); }
template <class T> static __device__ __forceinline__ T __ldlu(const T* p) { return load_streaming(p); }
}  // namespace wavesmith
//@ end

//@ entry: cache_load_plain
//@ provides: __ldcg, __ldca
//@ requires: cache_core
//@ contract: performance-only
//@ rename: wavesmith
//@ note: an ordinary load; the cache level hint is dropped
namespace wavesmith {
template <class T> static __device__ __forceinline__ T __ldcg(const T* p) { return *p; }
template <class T> static __device__ __forceinline__ T __ldca(const T* p) { return *p; }
}  // namespace wavesmith
//@ end

//@ entry: cache_load_volatile
//@ provides: __ldcv
//@ requires: cache_core
//@ contract: exact
//@ rename: wavesmith
//@ note: a relaxed system-scope load, so that a value written by the host or another device is seen
namespace wavesmith {
template <class T> static __device__ __forceinline__ T __ldcv(const T* p) { return load_system(p); }
}  // namespace wavesmith
//@ end

//@ entry: cache_store_streaming
//@ provides: __stcs
//@ requires: cache_core
//@ contract: performance-only
//@ rename: wavesmith
//@ note: non-temporal store
namespace wavesmith {
template <class T> static __device__ __forceinline__ void __stcs(T* p, typename same_type<T>::type v) { store_streaming(p, v); }
}  // namespace wavesmith
//@ end

//@ entry: cache_store_plain
//@ provides: __stcg, __stwb
//@ requires: cache_core
//@ contract: performance-only
//@ rename: wavesmith
//@ note: an ordinary store; the cache level hint is dropped
namespace wavesmith {
template <class T> static __device__ __forceinline__ void __stcg(T* p, typename same_type<T>::type v) { *p = v; }
template <class T> static __device__ __forceinline__ void __stwb(T* p, typename same_type<T>::type v) { *p = v; }
}  // namespace wavesmith
//@ end

//@ entry: cache_store_through
//@ provides: __stwt
//@ requires: cache_core
//@ contract: exact
//@ rename: wavesmith
//@ note: a relaxed system-scope store, visible to the host
namespace wavesmith {
template <class T> static __device__ __forceinline__ void __stwt(T* p, typename same_type<T>::type v) { store_system(p, v); }
}  // namespace wavesmith
//@ end

//@ entry: read_only_load
//@ provides: __ldg
//@ probe: __ldg((const __half*)0); __ldg((const __half2*)0); __ldg((const __hip_bfloat16*)0); __ldg((const float4*)0); __ldg((const bool*)0)
//@ includes: hip/hip_fp16.h, hip/hip_bf16.h
//@ contract: performance-only
//@ rename: wavesmith
//@ note: HIP's own covers built-in types only
namespace wavesmith {
template <class T> static __device__ __forceinline__ T __ldg(const T* p) { return *p; }
}  // namespace wavesmith
//@ end

//@ entry: shared_address
//@ provides: __cvta_generic_to_shared, __cvta_shared_to_generic
//@ contract: exact
//@ rename: wavesmith
//@ note: a shared address is the offset in the workgroup's LDS
namespace wavesmith {
static __device__ __forceinline__ size_t __cvta_generic_to_shared(const void* p) {
  return (size_t)(unsigned)(unsigned long long)(__attribute__((address_space(3))) void*)const_cast<void*>(p);
}
static __device__ __forceinline__ void* __cvta_shared_to_generic(size_t offset) {
  return (void*)(__attribute__((address_space(3))) void*)(unsigned)offset;
}
}  // namespace wavesmith
//@ end

//@ entry: global_address
//@ provides: __cvta_generic_to_global, __cvta_global_to_generic, __cvta_generic_to_constant, __cvta_generic_to_local
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
static __device__ __forceinline__ size_t __cvta_generic_to_global(const void* p) { return (size_t)p; }
static __device__ __forceinline__ void* __cvta_global_to_generic(size_t p) { return (void*)p; }
static __device__ __forceinline__ size_t __cvta_generic_to_constant(const void* p) { return (size_t)p; }
static __device__ __forceinline__ size_t __cvta_generic_to_local(const void* p) { return (size_t)p; }
}  // namespace wavesmith
//@ end

//@ entry: address_space_query
//@ provides: __isGlobal, __isShared, __isLocal
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
static __device__ __forceinline__ unsigned __isShared(const void* p) { return __builtin_amdgcn_is_shared((__attribute__((address_space(0))) void*)p); }
static __device__ __forceinline__ unsigned __isLocal(const void* p) { return __builtin_amdgcn_is_private((__attribute__((address_space(0))) void*)p); }
static __device__ __forceinline__ unsigned __isGlobal(const void* p) { return !__isShared(p) && !__isLocal(p); }
}  // namespace wavesmith
//@ end

//@ entry: nanosleep
//@ provides: __nanosleep
//@ probe: __nanosleep(1u)
//@ contract: performance-only
//@ rename: wavesmith
//@ note: sleeps about 64 clocks per step; the duration is a hint on both vendors
namespace wavesmith {
static __device__ __forceinline__ void __nanosleep(unsigned ns) {
  for (unsigned i = 0; i <= ns / 32u && i < 64u; i++) __builtin_amdgcn_s_sleep(1);
}
}  // namespace wavesmith
//@ end

//@ entry: breakpoint
//@ provides: __brkpt
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
static __device__ __forceinline__ void __brkpt() { __builtin_trap(); }
}  // namespace wavesmith
//@ end

//@ entry: trap
//@ provides: __trap
//@ probe: __trap()
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
static __device__ __forceinline__ void __trap() { __builtin_trap(); }
}  // namespace wavesmith
//@ end

//@ entry: profiler_trigger
//@ provides: __prof_trigger
//@ contract: no-op
//@ rename: wavesmith
//@ note: a profiler mark
namespace wavesmith {
static __device__ __forceinline__ void __prof_trigger(int) {}
}  // namespace wavesmith
//@ end

//@ entry: block_votes
//@ provides: __syncthreads_count, __syncthreads_and, __syncthreads_or
//@ probe: __syncthreads_count(1); __syncthreads_and(1); __syncthreads_or(1)
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
static __device__ __forceinline__ int __syncthreads_count(int p) {
  __shared__ int total;
  const unsigned rank = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  if (rank == 0) total = 0;
  __syncthreads();
  const unsigned long long votes = __builtin_amdgcn_ballot_w64(p != 0);
  if (votes && __builtin_ctzll(votes) == (int)__lane_id()) atomicAdd(&total, __popcll(votes));
  __syncthreads();
  const int result = total;
  __syncthreads();
  return result;
}
static __device__ __forceinline__ int __syncthreads_or(int p) { return __syncthreads_count(p != 0) != 0; }
static __device__ __forceinline__ int __syncthreads_and(int p) { return __syncthreads_count(p == 0) == 0; }
}  // namespace wavesmith
//@ end
