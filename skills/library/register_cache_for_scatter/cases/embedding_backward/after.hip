#include <hip/hip_runtime.h>

// The last two addresses that a thread added to, and what is still to be added there: a run of updates of one row
// becomes one atomic. Nothing is lost as long as `flush` is called.
template <typename T>
struct wavesmith_scatter_cache {
  T* newer = nullptr;
  T* older = nullptr;
  T newer_sum = T(0);
  T older_sum = T(0);

  __device__ __forceinline__ void add(T* address, T value) {
    if (address == newer) {
      newer_sum += value;
    } else if (address == older) {
      older_sum += value;
    } else {
      if (older != nullptr) atomicAdd(older, older_sum);
      older = newer;
      older_sum = newer_sum;
      newer = address;
      newer_sum = value;
    }
  }

  __device__ __forceinline__ void flush() {
    if (older != nullptr) atomicAdd(older, older_sum);
    if (newer != nullptr) atomicAdd(newer, newer_sum);
  }
};

__global__ void embedding_backward(const float* grad, const int* rows, float* weight_grad, int lookups, int dim) {
  const int d = threadIdx.x;
  if (d >= dim) return;
  const int begin = blockIdx.x * 32;
  // one lookup after the other
  wavesmith_scatter_cache<float> weight_grad_cache;
#pragma unroll 4
  for (int k = begin; k < begin + 32; ++k) {
    if (k >= lookups) break;
    const int row = rows[k];
    weight_grad_cache.add(&weight_grad[row * dim + d], grad[k * dim + d]);
  }
  weight_grad_cache.flush();
}
