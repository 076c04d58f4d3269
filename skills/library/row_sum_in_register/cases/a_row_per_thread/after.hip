#include <hip/hip_runtime.h>

// The address that a thread is adding to, and what is still to be added there: a run of updates of one address becomes
// one atomic. Nothing is lost as long as `flush` is called.
template <typename T>
struct wavesmith_run_sum {
  T* address = nullptr;
  T sum = T(0);

  __device__ __forceinline__ void add(T* next_address, T value) {
    if (next_address != address) {
      flush();
      address = next_address;
      sum = T(0);
    }
    sum += value;
  }

  __device__ __forceinline__ void flush() {
    if (address != nullptr) atomicAdd(address, sum);
  }
};

__global__ void by_label(const float* x, const int* labels, float* sums, int n) {
  wavesmith_run_sum<float> sums_pending;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    const int label = labels[i];
    sums_pending.add(&sums[label], x[i]);
  }
  sums_pending.flush();
}
