// hardware reductions of Ampere, and votes
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void k(const int* x, int* y) {
  const unsigned full = 0xffffffff;
  int v = x[threadIdx.x];
  int s = wavesmith::__reduce_add_sync(full, v);
  int lo = wavesmith::__reduce_min_sync(full, v), hi = wavesmith::__reduce_max_sync(full, v);
  unsigned a = wavesmith::__reduce_and_sync(full, (unsigned)v), o = wavesmith::__reduce_or_sync(full, (unsigned)v), e = wavesmith::__reduce_xor_sync(full, (unsigned)v);
  y[threadIdx.x] = s + lo * 3 + hi * 5 + (int)(a ^ o ^ e) + (wavesmith::__any_sync(full, v > 40) ? 7 : 0) + (wavesmith::__all_sync(full, v >= 0) ? 11 : 0);
}
void run(const int* x, int* y) { k<<<1, 128>>>(x, y); }
