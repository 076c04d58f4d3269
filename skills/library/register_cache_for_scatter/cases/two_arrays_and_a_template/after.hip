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

namespace ops {
// Sums and counts of each label.
template <typename scalar_t>
__global__ void by_label(const scalar_t* x, const int* labels, scalar_t* sums, unsigned long long* counts, int n) {
    const int step = gridDim.x * blockDim.x;
    wavesmith_scatter_cache<scalar_t> sums_cache;
    wavesmith_scatter_cache<unsigned long long> counts_cache;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        const int label = labels[i];
        if (label >= 0) {
            sums_cache.add(sums + label, x[i]);
            counts_cache.add(&counts[label], 1ULL);
        }
    }
    sums_cache.flush();
    counts_cache.flush();
}

template __global__ void by_label<float>(const float*, const int*, float*, unsigned long long*, int);
}  // namespace ops
