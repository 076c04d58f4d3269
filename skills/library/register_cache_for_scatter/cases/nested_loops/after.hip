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

__global__ void columns(const double* x, double* sums, int rows, int cols) {
  wavesmith_scatter_cache<double> sums_cache;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    int r = blockIdx.x;
    while (r < rows) {
      sums_cache.add(&sums[c], x[r * cols + c]);
      r += gridDim.x;
    }
  }
  sums_cache.flush();
}
