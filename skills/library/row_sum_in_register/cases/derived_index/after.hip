#include <hip/hip_runtime.h>

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

__global__ void derived(const float* x, const int* rows, float* out, int n, int dim) {
  const int d = threadIdx.x;
  wavesmith_row_sum<float, int> out_pending;
  for (int k = blockIdx.x * 16; k < n && k < (blockIdx.x + 1) * 16; ++k) {
    const int row = rows[k];
    const int at = row * dim + d;
    out_pending.add(row, &out[at], x[k * dim + d]);
  }
  out_pending.flush();
}
