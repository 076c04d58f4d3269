// What a pair is timed with: memory, random floats, the clock and the comparison. hip_pairs.py loads it.
#pragma once
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr size_t FLUSH_BYTES = size_t(512) << 20;  // several times any L2

inline void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s\n", cudaGetErrorString(status));
  std::_Exit(1);
}

// Multiples of 1 / levels in [-1, 1] with mean 0, by splitmix64 of the element's number: sums of them are exact in any
// order as long as they stay below 2^24 / levels.
__global__ void fill_kernel(float* to, size_t count, int levels, uint64_t seed) {
  const size_t stride = size_t(gridDim.x) * blockDim.x;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) {
    uint64_t z = seed + (i + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    z ^= z >> 31;
    to[i] = (int(z % (2 * levels + 1)) - levels) / float(levels);
  }
}

// Counts words that differ; as floats, where `floats`, by more than `relative` of what is expected (or by a NaN).
__global__ void differ_kernel(const uint32_t* expected, const uint32_t* found, size_t words, bool floats,
                              float relative, unsigned long long* count) {
  const size_t stride = size_t(gridDim.x) * blockDim.x;
  for (size_t i = size_t(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += stride) {
    if (expected[i] == found[i]) continue;
    const float a = __uint_as_float(expected[i]), b = __uint_as_float(found[i]);
    if (!floats || !(fabsf(a - b) <= relative * fabsf(a))) atomicAdd(count, 1ull);
  }
}

extern "C" const char* device_name() {
  static cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0));
  return properties.name;
}

extern "C" void* allocate(size_t bytes) {
  void* memory = nullptr;
  check(cudaMalloc(&memory, bytes));
  return memory;
}

extern "C" void copy(void* to, const void* from, size_t bytes) { check(cudaMemcpy(to, from, bytes, cudaMemcpyDefault)); }

extern "C" void clear(void* to, size_t bytes) { check(cudaMemset(to, 0, bytes)); }

extern "C" void fill(float* to, size_t count, int levels, uint64_t seed) {
  fill_kernel<<<1024, 256>>>(to, count, levels, seed);
  check(cudaGetLastError());
}

extern "C" uint64_t differ(const void* expected, const void* found, size_t bytes, int floats, float relative) {
  static auto* count = static_cast<unsigned long long*>(allocate(sizeof(unsigned long long)));
  unsigned long long result = 0;
  clear(count, sizeof result);
  differ_kernel<<<1024, 256>>>(static_cast<const uint32_t*>(expected), static_cast<const uint32_t*>(found), bytes / 4,
                               floats != 0, relative, count);
  check(cudaGetLastError());
  copy(&result, count, sizeof result);
  return result;
}

struct Clock {
  void* flushed = allocate(FLUSH_BYTES);
  cudaEvent_t start = nullptr, stop = nullptr;
  Clock() {
    check(cudaEventCreate(&start));
    check(cudaEventCreate(&stop));
  }
};

inline Clock& the_clock() {
  static Clock clock;
  return clock;
}

// Microseconds between two events around the launch. All is queued while the flush still runs, so the time that a
// launch takes on the host is not in it.
template <typename Run>
float timed_us(Run run) {
  Clock& clock = the_clock();
  check(cudaDeviceSynchronize());
  check(cudaMemsetAsync(clock.flushed, 1, FLUSH_BYTES));
  check(cudaEventRecord(clock.start));
  run();
  check(cudaGetLastError());
  check(cudaEventRecord(clock.stop));
  check(cudaDeviceSynchronize());
  float milliseconds = 0.0f;
  check(cudaEventElapsedTime(&milliseconds, clock.start, clock.stop));
  return milliseconds * 1e3f;
}
