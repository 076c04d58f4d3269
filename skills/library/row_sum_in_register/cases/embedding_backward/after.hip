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

__global__ void embedding_backward(const float* grad, const int* rows, float* weight_grad, int lookups, int dim) {
  const int d = threadIdx.x;
  if (d >= dim) return;
  const int begin = blockIdx.x * 32;
  // one lookup after the other
  wavesmith_row_sum<float, int> weight_grad_pending;
#pragma unroll 4
  for (int k = begin; k < begin + 32; ++k) {
    if (k >= lookups) break;
    const int row = rows[k];
    if (row < 0) continue;
    weight_grad_pending.add(row, &weight_grad[row * dim + d], grad[k * dim + d]);
  }
  weight_grad_pending.flush();
}
