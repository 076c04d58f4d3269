#include <hip/hip_runtime.h>

// Adds the sum of `value` over the block to `*address` with one atomic: over wavefronts by shuffles, then through LDS.
// Every thread of the block has to call it.
template <typename T>
__device__ __forceinline__ void wavesmith_block_add(T* address, T value) {
  __shared__ T partial[1024 / 32];
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned threads = blockDim.x * blockDim.y * blockDim.z;
  const unsigned lane = thread % warpSize, live = min(unsigned(warpSize), threads - (thread - lane));
  for (unsigned offset = warpSize / 2; offset > 0; offset /= 2) {
    const T other = __shfl_down(value, offset);
    if (lane + offset < live) value += other;
  }
  if (lane == 0) partial[thread / warpSize] = value;
  __syncthreads();
  if (thread == 0) {
#pragma unroll 1
    for (unsigned wave = 1; wave * warpSize < threads; ++wave) value += partial[wave];
    if (value != T(0)) atomicAdd(address, value);
  }
  __syncthreads();
}

__global__ void count(int* found, int n) {
  int found_sum = 0;
  if (threadIdx.x < n) { found_sum += 1;
  }
  wavesmith_block_add(found, found_sum);
}
