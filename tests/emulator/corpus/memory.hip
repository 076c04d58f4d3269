// Ways to reach memory: atomics, scratch, flat pointers, buffers, narrow and unaligned accesses.
#include "device.h"

KERNEL void float_max_cas(const float* x, float* out, int n) {
  int i = GTID;
  if (i >= n) return;
  u32* at = (u32*)&out[i % 5];
  u32 seen = __hip_atomic_load(at, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  while (__builtin_bit_cast(float, seen) < x[i] &&
         !__hip_atomic_compare_exchange_strong(at, &seen, __builtin_bit_cast(u32, x[i]), __ATOMIC_RELAXED,
                                               __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) {}
}

KERNEL void wide_atomics(const u64* x, u64* out, u64* before, int n) {
  int i = GTID;
  if (i >= n) return;
#define A64(op, at, v) __hip_atomic_fetch_##op(at, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)
  before[i] = A64(add, &out[0], x[i]);
  A64(max, &out[1], x[i]);
  A64(min, &out[2], x[i]);
  A64(and, &out[3], x[i]);
  A64(or, &out[4], x[i]);
  A64(xor, &out[5], x[i]);
  A64(max, (i64*)&out[6], (i64)x[i]);
  A64(min, (i64*)&out[7], (i64)x[i]);
  A64(add, (double*)&out[8], (double)(x[i] & 1023));
}

KERNEL void narrow_atomics(const int* x, int* out, int* before, int n) {
  int i = GTID;
  if (i >= n) return;
  before[i] = A64(add, &out[0], x[i]);
  A64(max, &out[1], x[i]);
  A64(min, &out[2], x[i]);
  A64(max, (u32*)&out[3], (u32)x[i]);
  A64(min, (u32*)&out[4], (u32)x[i]);
  A64(and, &out[5], x[i]);
  A64(or, &out[6], x[i]);
  A64(xor, &out[7], x[i]);
  A64(sub, &out[8], x[i]);
  __builtin_amdgcn_atomic_inc32((u32*)&out[9], 6u, __ATOMIC_RELAXED, "agent");
  __builtin_amdgcn_atomic_dec32((u32*)&out[10], 6u, __ATOMIC_RELAXED, "agent");
}

KERNEL void lds_atomics(const int* x, int* out, int* before) {
  __shared__ int cell[8];
  __shared__ u64 wide[2];
  __shared__ float real[2];
  if (TID < 8) cell[TID] = 0;
  if (TID < 2) { wide[TID] = 5; real[TID] = 0; }
  sync();
#define L(op, at, v) __hip_atomic_fetch_##op(at, v, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP)
  before[TID] = L(add, &cell[0], x[TID]);
  L(max, &cell[1], x[TID]);
  L(min, &cell[2], x[TID]);
  L(or, &cell[3], x[TID]);
  L(xor, &cell[4], x[TID]);
  L(sub, &cell[5], x[TID]);
  before[TID + 128] = __hip_atomic_exchange(&cell[6], TID, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  int seen = 0;
  while (!__hip_atomic_compare_exchange_strong(&cell[7], &seen, seen + 3, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                               __HIP_MEMORY_SCOPE_WORKGROUP)) {}
  L(add, &wide[0], (u64)x[TID] << 20);
  L(max, &wide[1], (u64)x[TID]);
  L(add, &real[0], 0.5f);
  sync();
  if (TID < 8) out[TID] = cell[TID];
  if (TID == 0) { out[8] = (int)(wide[0] >> 20); out[9] = (int)wide[1]; out[10] = (int)(real[0] * 2); }
}

KERNEL void scratch_array(const int* x, int* out) {
  int local[40];
  for (int i = 0; i < 40; i++) local[i] = x[(TID + i) & 63] * (i + 1);
  int at = x[TID] & 31;
  for (int step = 0; step < 20; step++) {
    local[at] += step;
    at = (local[at] ^ (at * 7)) % 40;
    at = at < 0 ? -at : at;
  }
  int total = 0;
  for (int i = 0; i < 40; i++) total = total * 31 + local[i];
  out[TID] = total;
}

__device__ __attribute__((noinline)) int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  if (n == 0) return ackermann(m - 1, 1);
  return ackermann(m - 1, ackermann(m, n - 1));
}
KERNEL void recursion(const int* x, int* out) { out[GTID] = ackermann(x[GTID] % 3, x[GTID] % 4); }

__device__ __attribute__((noinline)) float twice(float v) { return v * 2; }
__device__ __attribute__((noinline)) float square(float v) { return v * v; }
__device__ __attribute__((noinline)) float negate(float v) { return -v; }
typedef float (*function)(float);
KERNEL void function_pointers(const float* x, float* out) {
  function table[3] = {twice, square, negate};
  out[GTID] = table[GTID % 3](x[GTID]);
}

KERNEL void flat_pointers(const int* x, int* out) {
  __shared__ int shared[64];
  int local[4] = {x[TID], x[TID] + 1, x[TID] + 2, x[TID] + 3};
  shared[TID] = x[TID] * 2;
  sync();
  int kind = x[TID] & 3;
  volatile int* p = kind == 0 ? (volatile int*)&shared[63 - TID] : kind == 1 ? (volatile int*)&local[TID & 3] : (volatile int*)&x[TID ^ 1];
  out[TID] = *p + kind;
}

struct __attribute__((packed)) record { u8 tag; int value; u16 half; i8 sign; double wide; };
KERNEL void packed_records(const record* in, double* out, int n) {
  int i = GTID;
  if (i < n) out[i] = in[i].tag + in[i].value * 0.5 + in[i].half + in[i].sign * 1000.0 + in[i].wide;
}

typedef int int4 __attribute__((ext_vector_type(4)));
typedef int int3 __attribute__((ext_vector_type(3)));
KERNEL void buffer_range(const int* x, int* out, int bytes) {
  __amdgpu_buffer_rsrc_t in = __builtin_amdgcn_make_buffer_rsrc((void*)x, 0, bytes, 0x27000);
  __amdgpu_buffer_rsrc_t to = __builtin_amdgcn_make_buffer_rsrc(out, 0, bytes, 0x27000);
  int4 four = __builtin_amdgcn_raw_buffer_load_b128(in, TID * 16, 0, 0);
  int one = __builtin_amdgcn_raw_buffer_load_b32(in, TID * 4, 64, 0);
  u16 half = __builtin_amdgcn_raw_buffer_load_b16(in, TID * 2, 6, 0);
  u8 byte = __builtin_amdgcn_raw_buffer_load_b8(in, TID, 3, 0);
  four += one + half + byte;
  __builtin_amdgcn_raw_buffer_store_b128(four, to, TID * 16, 0, 0);
}

KERNEL void grid_shape(int* out, int width, int height) {
  int x = BID * BDIM + TID, y = BID_Y * BDIM_Y + TID_Y, z = BID_Z * 2 + TID_Z;
  if (x < width && y < height) out[(z * height + y) * width + x] = x + 100 * y + 10000 * z;
}

KERNEL void global_to_lds(const int* x, int* out) {
  __shared__ int stage[256];
  int wave = __builtin_amdgcn_readfirstlane(TID / 64);
  __builtin_amdgcn_global_load_lds((void*)(x + BID * 256 + TID), (__attribute__((address_space(3))) void*)(stage + wave * 64), 4, 0, 0);
  __builtin_amdgcn_s_waitcnt(0);
  sync();
  out[BID * 256 + TID] = stage[255 - TID];
}

__constant__ int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
__device__ int counter_cell = 100;
KERNEL void constants(const int* x, int* out) {
  int total = primes[x[TID] & 7] + primes[BID];
  switch (x[TID] % 7) {
    case 0: total += 11; break;
    case 1: total *= 3; break;
    case 2: total ^= 77; break;
    case 3: total = -total; break;
    case 4: total <<= 4; break;
    case 5: total += counter_cell; break;
    default: total -= 9;
  }
  out[GTID] = total;
}
