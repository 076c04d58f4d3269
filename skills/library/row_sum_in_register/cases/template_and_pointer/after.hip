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

template <typename value_t, typename index_t>
__global__ void bag(const value_t* dy, const index_t* ids, value_t* table, int count, int width) {
    const int lane = threadIdx.x, first = (blockIdx.x * blockDim.y + threadIdx.y) * 16;
    wavesmith_run_sum<value_t> dst_pending;
    for (int p = first; p < first + 16 && p < count; p++) {
        const auto id = ids[p];
        value_t* dst = table + static_cast<int64_t>(id) * width;
        for (int half = 0; half < 2; ++half) {
            dst_pending.add(dst + lane, dy[(p * 2 + half) * width + lane]);
        }
    }
    dst_pending.flush();
}

template __global__ void bag<float, int64_t>(const float*, const int64_t*, float*, int, int);
