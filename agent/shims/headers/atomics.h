//@ entry: atomic_core
//@ contract: exact
namespace wavesmith {
/// Replace *p by f(*p) with compare-and-swap on the naturally aligned word W that holds it; returns the old value.
template <class W, class T, class F> static __device__ __forceinline__ T exchange_loop(T* p, F next) {
  static_assert(sizeof(T) <= sizeof(W), "the value lies within one word");
  const unsigned long long address = (unsigned long long)p;
  W* word = (W*)(address & ~(unsigned long long)(sizeof(W) - 1));
  const unsigned shift = (unsigned)(address & (sizeof(W) - 1)) * 8;
  W seen = __hip_atomic_load(word, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT), wanted;
  T old;
  do {
    using Bits = typename std::conditional<sizeof(T) == 2, unsigned short, W>::type;
    const Bits part = (Bits)(seen >> shift);
    __builtin_memcpy(&old, &part, sizeof(T));
    const T fresh = next(old);
    Bits fresh_part = 0;
    __builtin_memcpy(&fresh_part, &fresh, sizeof(T));
    wanted = sizeof(T) == sizeof(W) ? (W)fresh_part : (W)((seen & ~((W)(Bits)~(Bits)0 << shift)) | ((W)fresh_part << shift));
  } while (!__hip_atomic_compare_exchange_strong(word, &seen, wanted, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT));
  return old;
}
}  // namespace wavesmith
//@ end

//@ entry: atomic_cas_short
//@ provides: atomicCAS
//@ probe: atomicCAS((unsigned short*)0, (unsigned short)1, (unsigned short)2)
//@ when: short, ushort, uint16_t, __half_as_ushort, __bfloat16_as_ushort
//@ requires: atomic_core
//@ contract: exact
//@ native: 7.0
static __device__ __forceinline__ unsigned short atomicCAS(unsigned short* p, unsigned short compare, unsigned short value) {
  return wavesmith::exchange_loop<unsigned>(p, [=](unsigned short old) { return old == compare ? value : old; });
}
//@ end

//@ entry: atomic_add_half
//@ provides: atomicAdd
//@ probe: atomicAdd((__half*)0, __half()); atomicAdd((__half2*)0, __half2())
//@ when: half, __half, half2, __half2, nv_half, nv_half2
//@ requires: atomic_core
//@ includes: hip/hip_fp16.h
//@ contract: exact
//@ note: compare-and-swap; the pair is updated as one word, which is stronger than CUDA's per-element promise
static __device__ __forceinline__ __half atomicAdd(__half* p, __half v) {
  return wavesmith::exchange_loop<unsigned>(p, [=](__half old) { return __hadd(old, v); });
}
static __device__ __forceinline__ __half2 atomicAdd(__half2* p, __half2 v) {
  return wavesmith::exchange_loop<unsigned>(p, [=](__half2 old) { return __hadd2(old, v); });
}
//@ end

//@ entry: atomic_add_bfloat16
//@ provides: atomicAdd
//@ probe: atomicAdd((__hip_bfloat16*)0, __hip_bfloat16()); atomicAdd((__hip_bfloat162*)0, __hip_bfloat162())
//@ when: __nv_bfloat16, __nv_bfloat162, nv_bfloat16, nv_bfloat162, __hip_bfloat16, __hip_bfloat162
//@ requires: atomic_core
//@ includes: hip/hip_bf16.h
//@ contract: exact
static __device__ __forceinline__ __hip_bfloat16 atomicAdd(__hip_bfloat16* p, __hip_bfloat16 v) {
  return wavesmith::exchange_loop<unsigned>(p, [=](__hip_bfloat16 old) { return __hadd(old, v); });
}
static __device__ __forceinline__ __hip_bfloat162 atomicAdd(__hip_bfloat162* p, __hip_bfloat162 v) {
  return wavesmith::exchange_loop<unsigned>(p, [=](__hip_bfloat162 old) { return __hadd2(old, v); });
}
//@ end

//@ entry: atomic_add_float_vector
//@ provides: atomicAdd
//@ probe: atomicAdd((float2*)0, float2()); atomicAdd((float4*)0, float4())
//@ when: float2, float4
//@ contract: exact
//@ note: one atomic per element, which is what CUDA promises for vectors
static __device__ __forceinline__ float2 atomicAdd(float2* p, float2 v) { return make_float2(atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y)); }
static __device__ __forceinline__ float4 atomicAdd(float4* p, float4 v) {
  return make_float4(atomicAdd(&p->x, v.x), atomicAdd(&p->y, v.y), atomicAdd(&p->z, v.z), atomicAdd(&p->w, v.w));
}
//@ end

//@ entry: atomic_block_scope
//@ provides: atomicAdd_block, atomicSub_block, atomicExch_block, atomicMin_block, atomicMax_block, atomicAnd_block, atomicOr_block, atomicXor_block, atomicCAS_block, atomicInc_block, atomicDec_block
//@ probe: atomicAdd_block((int*)0, 1); atomicSub_block((int*)0, 1); atomicExch_block((int*)0, 1); atomicMin_block((int*)0, 1); atomicMax_block((int*)0, 1); atomicAnd_block((int*)0, 1); atomicOr_block((int*)0, 1); atomicXor_block((int*)0, 1); atomicCAS_block((int*)0, 1, 2)
//@ contract: exact
//@ rename: wavesmith
//@ note: workgroup scope
namespace wavesmith {
#define WAVESMITH_BLOCK_ATOMIC(NAME, FUNCTION) \
  template <class T> static __device__ __forceinline__ T NAME(T* p, typename std::common_type<T>::type v) { return FUNCTION(p, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); }
WAVESMITH_BLOCK_ATOMIC(atomicAdd_block, __hip_atomic_fetch_add)
WAVESMITH_BLOCK_ATOMIC(atomicExch_block, __hip_atomic_exchange)
WAVESMITH_BLOCK_ATOMIC(atomicMin_block, __hip_atomic_fetch_min)
WAVESMITH_BLOCK_ATOMIC(atomicMax_block, __hip_atomic_fetch_max)
WAVESMITH_BLOCK_ATOMIC(atomicAnd_block, __hip_atomic_fetch_and)
WAVESMITH_BLOCK_ATOMIC(atomicOr_block, __hip_atomic_fetch_or)
WAVESMITH_BLOCK_ATOMIC(atomicXor_block, __hip_atomic_fetch_xor)
template <class T> static __device__ __forceinline__ T atomicSub_block(T* p, typename std::common_type<T>::type v) { return __hip_atomic_fetch_add(p, (T)-v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); }
template <class T> static __device__ __forceinline__ T atomicCAS_block(T* p, typename std::common_type<T>::type compare, typename std::common_type<T>::type v) {
  __hip_atomic_compare_exchange_strong(p, &compare, v, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  return compare;
}
static __device__ __forceinline__ unsigned atomicInc_block(unsigned* p, unsigned limit) {
  unsigned seen = __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  while (!__hip_atomic_compare_exchange_strong(p, &seen, seen >= limit ? 0u : seen + 1u, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)) {}
  return seen;
}
static __device__ __forceinline__ unsigned atomicDec_block(unsigned* p, unsigned limit) {
  unsigned seen = __hip_atomic_load(p, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  while (!__hip_atomic_compare_exchange_strong(p, &seen, seen == 0u || seen > limit ? limit : seen - 1u, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)) {}
  return seen;
}
}  // namespace wavesmith
//@ end
