#include <hip/hip_runtime.h>

constexpr int CHUNK = 32;

// The row that a thread is adding to, the address that it means, and what is still to be added there: a run of updates
// of one row becomes one atomic. Equal rows mean equal addresses. Nothing is lost as long as `flush` is called.
template <typename T, typename Row>
struct wavesmith_row_sum {
  bool started = false;
  Row row = Row();
  T* address = nullptr;
  T sum = T(0);

  __device__ __forceinline__ void add(Row next, T* next_address, T value) {
    if (!started) {
      started = true;
      row = next;
      address = next_address;
    } else if (next != row) {
      flush();
      row = next;
      address = next_address;
      sum = T(0);
    }
    sum += value;
  }

  __device__ __forceinline__ void flush() {
    if (started) atomicAdd(address, sum);
  }
};

__global__ void select_backward(const double* grad, const long long* sorted, double* out, int count, int width) {
  const int first = blockIdx.x * CHUNK;
  for (int c = threadIdx.x; c < width; c += blockDim.x) {
    wavesmith_row_sum<double, long long> out_pending;
    for (int k = first; k < min(first + CHUNK, count); ++k) {
      out_pending.add(sorted[k], &out[sorted[k] * width + c], grad[k * width + c]);
    }
    out_pending.flush();
  }
}
