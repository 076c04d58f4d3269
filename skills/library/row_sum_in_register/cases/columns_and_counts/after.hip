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

namespace ops {
// Sums of each column, and how often a segment was met in it.
__global__ void columns(const float* x, const int* segments, float* sums, unsigned* met, int rows, int cols) {
  const int c = threadIdx.x;
  int r = blockIdx.x * 8, segment;
  wavesmith_sum<float> sums_pending;
  wavesmith_row_sum<unsigned, int> met_pending;
  while (r < rows && r < (blockIdx.x + 1) * 8) {
    segment = segments[r];
    sums_pending.add(&sums[c], x[r * cols + c]);
    met_pending.add(segment, met + (size_t)segment * cols + c, 1u);
    r += 1;
  }
  sums_pending.flush();
  met_pending.flush();
}
}  // namespace ops
