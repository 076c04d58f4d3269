//@ entry: warp_core
//@ contract: exact
//@ note: a logical warp is 32 consecutive lanes of the 64-lane wavefront, as the source assumes
namespace wavesmith {
inline constexpr int warp_size = 32;
static __device__ __forceinline__ unsigned lane() { return __lane_id() & 31u; }
static __device__ __forceinline__ unsigned half_of(unsigned long long wave) { return (unsigned)(wave >> (__lane_id() & 32u)); }
static __device__ __forceinline__ unsigned ballot32(bool predicate) { return half_of(__builtin_amdgcn_ballot_w64(predicate)); }
template <class T> static __device__ __forceinline__ T read_lane(__attribute__((maybe_undef)) T value, unsigned lane32) {
  static_assert(__is_trivially_copyable(T), "a warp shuffle moves trivially copyable values");
  constexpr unsigned words = (sizeof(T) + 3) / 4;
  int raw[words] = {};
  __builtin_memcpy(raw, &value, sizeof(T));
  const int address = (int)(((__lane_id() & 32u) | (lane32 & 31u)) << 2);
#pragma unroll
  for (unsigned i = 0; i < words; i++) raw[i] = __builtin_amdgcn_ds_bpermute(address, raw[i]);
  __builtin_memcpy(&value, raw, sizeof(T));
  return value;
}
}  // namespace wavesmith
//@ end

//@ entry: warp_shuffle
//@ provides: __shfl_sync, __shfl_up_sync, __shfl_down_sync, __shfl_xor_sync
//@ requires: warp_core
//@ contract: exact
//@ rename: wavesmith
//@ note: width 32, mask not checked (HIP's own versions trap unless the mask equals the active lanes of 64)
namespace wavesmith {
template <class M, class T> static __device__ __forceinline__ T __shfl_sync(M, __attribute__((maybe_undef)) T value, int source, int width = 32) {
  return read_lane(value, (lane() & ~(unsigned)(width - 1)) | ((unsigned)source & (unsigned)(width - 1)));
}
template <class M, class T> static __device__ __forceinline__ T __shfl_up_sync(M, __attribute__((maybe_undef)) T value, unsigned delta, int width = 32) {
  const unsigned from = lane() - (delta & 31u), first = lane() & ~(unsigned)(width - 1);
  return read_lane(value, (int)from < (int)first ? lane() : from);
}
template <class M, class T> static __device__ __forceinline__ T __shfl_down_sync(M, __attribute__((maybe_undef)) T value, unsigned delta, int width = 32) {
  const unsigned from = lane() + (delta & 31u), last = lane() | (unsigned)(width - 1);
  return read_lane(value, from > last ? lane() : from);
}
template <class M, class T> static __device__ __forceinline__ T __shfl_xor_sync(M, __attribute__((maybe_undef)) T value, int mask, int width = 32) {
  const unsigned from = lane() ^ ((unsigned)mask & 31u), last = lane() | (unsigned)(width - 1);
  return read_lane(value, from > last ? lane() : from);
}
}  // namespace wavesmith
//@ end

//@ entry: warp_shuffle_legacy
//@ provides: __shfl, __shfl_up, __shfl_down, __shfl_xor
//@ requires: warp_shuffle
//@ contract: exact
//@ rename: wavesmith
//@ note: as before CUDA 9, among the 32 lanes of a warp; HIP's own default width is 64
namespace wavesmith {
template <class T> static __device__ __forceinline__ T __shfl(T v, int source, int width = 32) { return __shfl_sync(0u, v, source, width); }
template <class T> static __device__ __forceinline__ T __shfl_up(T v, unsigned d, int width = 32) { return __shfl_up_sync(0u, v, d, width); }
template <class T> static __device__ __forceinline__ T __shfl_down(T v, unsigned d, int width = 32) { return __shfl_down_sync(0u, v, d, width); }
template <class T> static __device__ __forceinline__ T __shfl_xor(T v, int m, int width = 32) { return __shfl_xor_sync(0u, v, m, width); }
}  // namespace wavesmith
//@ end

//@ entry: warp_vote
//@ provides: __ballot_sync, __any_sync, __all_sync, __uni_sync
//@ requires: warp_core
//@ contract: exact
//@ rename: wavesmith
//@ note: 32-bit results over the 32 lanes of the logical warp
namespace wavesmith {
template <class M> static __device__ __forceinline__ unsigned __ballot_sync(M mask, int predicate) { return ballot32(predicate != 0) & (unsigned)mask; }
template <class M> static __device__ __forceinline__ int __any_sync(M mask, int predicate) { return __ballot_sync(mask, predicate) != 0; }
template <class M> static __device__ __forceinline__ int __all_sync(M mask, int predicate) { return __ballot_sync(mask, !predicate) == 0; }
template <class M> static __device__ __forceinline__ int __uni_sync(M mask, int predicate) { return __all_sync(mask, predicate) || __all_sync(mask, !predicate); }
}  // namespace wavesmith
//@ end

//@ entry: warp_vote_legacy
//@ provides: __ballot, __any, __all
//@ requires: warp_core
//@ contract: exact
//@ rename: wavesmith
//@ note: as before CUDA 9, over 32 lanes; HIP's own are over 64
namespace wavesmith {
static __device__ __forceinline__ unsigned __ballot(int predicate) { return ballot32(predicate != 0); }
static __device__ __forceinline__ int __any(int predicate) { return ballot32(predicate != 0) != 0; }
static __device__ __forceinline__ int __all(int predicate) { return ballot32(predicate == 0) == 0; }
}  // namespace wavesmith
//@ end

//@ entry: warp_active
//@ provides: __activemask
//@ requires: warp_core
//@ contract: exact
//@ rename: wavesmith
//@ note: active lanes of the logical warp, 32 bits
namespace wavesmith {
static __device__ __forceinline__ unsigned __activemask() { return ballot32(true); }
}  // namespace wavesmith
//@ end

//@ entry: warp_lane_masks
//@ provides: __lanemask_lt, __lanemask_le, __lanemask_gt, __lanemask_ge, __lanemask_eq
//@ requires: warp_core
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
static __device__ __forceinline__ unsigned __lanemask_eq() { return 1u << lane(); }
static __device__ __forceinline__ unsigned __lanemask_lt() { return (1u << lane()) - 1u; }
static __device__ __forceinline__ unsigned __lanemask_le() { return __lanemask_lt() | __lanemask_eq(); }
static __device__ __forceinline__ unsigned __lanemask_gt() { return ~__lanemask_le(); }
static __device__ __forceinline__ unsigned __lanemask_ge() { return ~__lanemask_lt(); }
}  // namespace wavesmith
//@ end

//@ entry: warp_match
//@ provides: __match_any_sync, __match_all_sync
//@ requires: warp_core
//@ contract: exact
//@ rename: wavesmith
//@ note: values are compared bit by bit
namespace wavesmith {
template <class T> static __device__ __forceinline__ bool same_as_first(__attribute__((maybe_undef)) T value) {
  constexpr unsigned words = (sizeof(T) + 3) / 4;
  int raw[words] = {};
  __builtin_memcpy(raw, &value, sizeof(T));
  bool same = true;
#pragma unroll
  for (unsigned i = 0; i < words; i++) same = same && raw[i] == __builtin_amdgcn_readfirstlane(raw[i]);
  return same;
}
template <class M, class T> static __device__ __forceinline__ unsigned __match_any_sync(M mask, __attribute__((maybe_undef)) T value) {
  unsigned result = 0;
  for (bool done = false; !done;) {
    const bool same = same_as_first(value);
    const unsigned matching = ballot32(same);
    if (same) { result = matching & (unsigned)mask; done = true; }
  }
  return result;
}
template <class M, class T> static __device__ __forceinline__ unsigned __match_all_sync(M mask, __attribute__((maybe_undef)) T value, int* predicate) {
  const unsigned matching = __match_any_sync(mask, value), everyone = ballot32(true) & (unsigned)mask;
  *predicate = matching == everyone;
  return *predicate ? (unsigned)mask : 0u;
}
}  // namespace wavesmith
//@ end

//@ entry: warp_reduce
//@ provides: __reduce_add_sync, __reduce_min_sync, __reduce_max_sync, __reduce_and_sync, __reduce_or_sync, __reduce_xor_sync
//@ requires: warp_core
//@ contract: exact
//@ rename: wavesmith
//@ note: over the active lanes of the mask within the logical warp
namespace wavesmith {
template <class T, class F> static __device__ __forceinline__ T reduce32(unsigned mask, __attribute__((maybe_undef)) T value, F op) {
  unsigned lanes = ballot32(true) & mask;
  if (lanes == 0xffffffffu) {
#pragma unroll
    for (unsigned step = 16; step > 0; step >>= 1) value = op(value, read_lane(value, lane() ^ step));
    return value;
  }
  T result = read_lane(value, (unsigned)__builtin_ctz(lanes));
  for (lanes &= lanes - 1; lanes; lanes &= lanes - 1) result = op(result, read_lane(value, (unsigned)__builtin_ctz(lanes)));
  return result;
}
template <class M, class T> static __device__ __forceinline__ T __reduce_add_sync(M m, T v) { return reduce32((unsigned)m, v, [](T a, T b) { return (T)(a + b); }); }
template <class M, class T> static __device__ __forceinline__ T __reduce_min_sync(M m, T v) { return reduce32((unsigned)m, v, [](T a, T b) { return a < b ? a : b; }); }
template <class M, class T> static __device__ __forceinline__ T __reduce_max_sync(M m, T v) { return reduce32((unsigned)m, v, [](T a, T b) { return a < b ? b : a; }); }
template <class M, class T> static __device__ __forceinline__ T __reduce_and_sync(M m, T v) { return reduce32((unsigned)m, v, [](T a, T b) { return (T)(a & b); }); }
template <class M, class T> static __device__ __forceinline__ T __reduce_or_sync(M m, T v) { return reduce32((unsigned)m, v, [](T a, T b) { return (T)(a | b); }); }
template <class M, class T> static __device__ __forceinline__ T __reduce_xor_sync(M m, T v) { return reduce32((unsigned)m, v, [](T a, T b) { return (T)(a ^ b); }); }
}  // namespace wavesmith
//@ end

//@ entry: warp_sync
//@ provides: __syncwarp
//@ requires: warp_core
//@ contract: exact
//@ rename: wavesmith
//@ note: orders memory among the lanes of the wavefront and keeps the compiler from moving accesses across; lanes run in lock step
namespace wavesmith {
static __device__ __forceinline__ void __syncwarp(unsigned = 0xffffffffu) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
}  // namespace wavesmith
//@ end

//@ entry: warp_lane_id
//@ provides: __nv_laneid
//@ requires: warp_core
//@ contract: exact
static __device__ __forceinline__ unsigned __nv_laneid() { return wavesmith::lane(); }
//@ end
