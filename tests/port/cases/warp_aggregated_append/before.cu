#include <cuda_runtime.h>
__device__ int aggInc(int* c) {
  unsigned m = __activemask();
  int leader = __ffs(m) - 1, lane = threadIdx.x & 31, r;
  if (lane == leader) r = atomicAdd(c, __popc(m));
  r = __shfl_sync(m, r, leader);
  return r + __popc(m & ((1u << lane) - 1));
}
__global__ void k(const int* x, int* y, int* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] > 3) y[aggInc(c)] = x[i];
}
