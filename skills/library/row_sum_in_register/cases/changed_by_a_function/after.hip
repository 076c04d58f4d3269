#include <hip/hip_runtime.h>

__device__ void advance(int& column, int by) { column += by; }

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

__global__ void shifted(const float* x, const int* rows, float* out, int n, int dim) {
  int column = threadIdx.x;
  wavesmith_run_sum<float> out_pending;
  for (int k = 0; k < n; ++k) {
    const int row = rows[k];
    out_pending.add(&out[row * dim + column], x[k]);
    advance(column, 1);
  }
  out_pending.flush();
}
