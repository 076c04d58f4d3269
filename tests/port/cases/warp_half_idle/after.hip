// the second step of a block reduction runs in one warp only: half a wavefront
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
template <int N> __device__ double warp_max(double v) {
  for (int o = N / 2; o; o /= 2) v = fmax(v, wavesmith::__shfl_down_sync(0xffffffff, v, o));
  return v;
}
__global__ void block_max(const double* in, double* out, int n) {
  __shared__ double slots[32];
  double v = -1e300;
  for (int i = threadIdx.x; i < n; i += blockDim.x) v = fmax(v, in[i]);
  v = warp_max<32>(v);
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < (blockDim.x + 31) / 32 ? slots[threadIdx.x] : -1e300;
    v = warp_max<32>(v);
    if (threadIdx.x == 0) out[0] = v;
  }
}
