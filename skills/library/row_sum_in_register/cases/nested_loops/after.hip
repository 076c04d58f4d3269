#include <hip/hip_runtime.h>

// What a thread has still to add to an address that never changes. Nothing is lost as long as `flush` is called.
template <typename T>
struct wavesmith_sum {
  T* address = nullptr;
  T sum = T(0);

  __device__ __forceinline__ void add(T* same_address, T value) {
    address = same_address;
    sum += value;
  }

  __device__ __forceinline__ void flush() {
    if (address != nullptr) atomicAdd(address, sum);
  }
};

__global__ void columns(const double* x, double* sums, int rows, int cols) {
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    int r = blockIdx.x;
    wavesmith_sum<double> sums_pending;
    while (r < rows) {
      sums_pending.add(&sums[c], x[r * cols + c]);
      r += gridDim.x;
    }
    sums_pending.flush();
  }
}
