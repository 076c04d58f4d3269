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

namespace metrics {

template <typename T>
__launch_bounds__(256) __global__ void loss(const T* x, const T* y, T* total, unsigned long long* seen, int n) {
    T total_sum = 0;
    unsigned long long seen_sum = 0;
    const int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        const T d = x[i] - y[i];
        if (d == T(0)) {
            continue;
        }
        total_sum += d * d;
        seen_sum += 1ULL;
    }
    wavesmith_block_add(total, total_sum);
    wavesmith_block_add(seen, seen_sum);
}

template __global__ void loss<float>(const float*, const float*, float*, unsigned long long*, int);

}  // namespace metrics
