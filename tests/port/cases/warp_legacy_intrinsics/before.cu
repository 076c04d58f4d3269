// intrinsics without masks, as before CUDA 9
#include <cuda_runtime.h>
__global__ void k(const int* x, int* y) {
  int v = x[threadIdx.x];
  int s = v;
  for (int o = 16; o > 0; o >>= 1) s += __shfl_xor(s, o);
  y[threadIdx.x] = s + __shfl(v, 3) + __popc(__ballot(v > 20)) + __any(v == 5) + 2 * __all(v >= 0) + __shfl_down(v, 1);
}
