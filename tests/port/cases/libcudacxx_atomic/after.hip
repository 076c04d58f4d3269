// libcu++ atomics with scopes and cuda::std
#include "shims/wavesmith_compat.h"
#include "shims/cuda/atomic"
#include "shims/cuda/std/limits"
#include "shims/cuda/std/type_traits"
__global__ void k(const int* x, int* counts, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  cuda::atomic_ref<int, cuda::thread_scope_device> total(counts[0]);
  total.fetch_add(1, cuda::std::memory_order_relaxed);
  cuda::atomic_ref<int, cuda::thread_scope_block> highest(counts[1]);
  highest.fetch_max(x[i]);
  static_assert(cuda::std::is_same<int, int>::value, "");
  if (x[i] == cuda::std::numeric_limits<int>::max()) counts[2] = 1;
}
