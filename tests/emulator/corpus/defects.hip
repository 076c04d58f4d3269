// Kernels with one defect each, of the kinds that ported CUDA code has.
#include "device.h"

// Written for 32 lanes: the upper half of the ballot is thrown away.
KERNEL void ballot_of_32(const int* x, int* out) {
  u32 mask = (u32)ballot(x[GTID] > 0);
  if (lane_id() == 0) add_global(out, __builtin_popcount(mask));
}
// Written for 32 lanes: the tree starts at 16, and only lane 0 of the wave contributes.
KERNEL void reduction_of_32(const int* x, int* out) {
  int value = x[GTID];
  for (int mask = 16; mask; mask >>= 1) value += shuffle_xor(value, mask);
  if (lane_id() == 0) add_global(out, value);
}
KERNEL void lds_overrun(const int* x, int* out) {
  __shared__ int data[64];
  data[TID + 1] = x[TID];
  sync();
  out[TID] = data[TID];
}
KERNEL void load_past_end(const int* x, int* out, int n) {
  int i = GTID;
  if (i < n) out[i] = x[i + 1];
}
KERNEL void store_past_end(const int* x, int* out, int n) {
  int i = GTID;
  if (i <= n) out[i] = i < n ? x[i] : 7;
}
KERNEL void missing_barrier(const int* x, int* out) {
  __shared__ int data[256];
  data[TID] = x[TID];
  out[TID] = data[255 - TID];
}
// The second barrier is missing: a fast wave overwrites what a slow one still reads.
KERNEL void missing_second_barrier(const int* x, int* out) {
  __shared__ int data[128];
  for (int round = 0; round < 3; round++) {
    data[TID] = x[TID] + round;
    sync();
    out[TID + 128 * round] = data[127 - TID];
  }
}
KERNEL void same_value_twice(const int* x, int* out) {
  __shared__ int flag;
  flag = x[0];
  sync();
  out[TID] = flag;
}
KERNEL void uninitialised_lds(const int* x, int* out) {
  __shared__ int data[64];
  if (TID < 32) data[TID] = x[TID];
  sync();
  out[TID] = data[TID];
}
KERNEL void endless(int* flag, int* out) {
  while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) {}
  out[TID] = 1;
}
KERNEL void divergent_barrier(int* flag, int* out) {
  if (TID < 64) {
    sync();
    __hip_atomic_store(flag, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  } else {
    while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) {}
    sync();
  }
  out[TID] = 1;
}
KERNEL void writes_constant(const int* x, int* out) {
  ((int*)x)[TID] = 1;
  out[TID] = 1;
}
KERNEL void two_lanes_collide(const int* x, int* out) {
  __shared__ int data[64];
  data[TID / 2] = x[TID];
  sync();
  out[TID] = data[TID / 2];
}
// Both waves fill the same 32 words, with different numbers.
KERNEL void waves_collide(const int* x, int* out) {
  __shared__ int data[32];
  data[TID % 64 / 2] = x[TID];
  sync();
  out[TID] = data[TID % 32];
}
KERNEL void traps(const int* x, int* out) {
  if (x[TID] > 100) __builtin_trap();
  out[TID] = x[TID];
}
