// What the corpus needs of HIP, declared here so that clang with the amdgcn back end suffices: no ROCm headers.
#pragma once
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define KERNEL extern "C" __global__

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef signed char i8;
typedef long i64;
typedef _Float16 f16;

#define TID ((int)__builtin_amdgcn_workitem_id_x())
#define TID_Y ((int)__builtin_amdgcn_workitem_id_y())
#define TID_Z ((int)__builtin_amdgcn_workitem_id_z())
#define BID ((int)__builtin_amdgcn_workgroup_id_x())
#define BID_Y ((int)__builtin_amdgcn_workgroup_id_y())
#define BID_Z ((int)__builtin_amdgcn_workgroup_id_z())
#define BDIM ((int)__builtin_amdgcn_workgroup_size_x())
#define BDIM_Y ((int)__builtin_amdgcn_workgroup_size_y())
#define GTID (BID * BDIM + TID)

__device__ static inline void sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
__device__ static inline int lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
__device__ static inline u64 ballot(bool predicate) { return __builtin_amdgcn_ballot_w64(predicate); }
__device__ static inline int shuffle(int value, int lane) { return __builtin_amdgcn_ds_bpermute(lane << 2, value); }
__device__ static inline float shuffle(float value, int lane) {
  return __builtin_bit_cast(float, shuffle(__builtin_bit_cast(int, value), lane));
}
template <class T> __device__ static inline T shuffle_xor(T value, int mask) { return shuffle(value, lane_id() ^ mask); }
template <class T> __device__ static inline T wave_sum(T value) {
  for (int mask = 32; mask; mask >>= 1) value += shuffle_xor(value, mask);
  return value;
}
template <class T> __device__ static inline T add_global(T* at, T value) {
  return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
template <class T> __device__ static inline T add_shared(T* at, T value) {
  return __hip_atomic_fetch_add(at, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
