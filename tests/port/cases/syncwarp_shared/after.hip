// a warp transposes through shared memory with __syncwarp between write and read
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void k(const float* x, float* y) {
  __shared__ float tile[8][33];
  int w = threadIdx.x / 32, l = threadIdx.x % 32;
  tile[w][l] = x[threadIdx.x];
  wavesmith::__syncwarp();
  float v = tile[w][31 - l];
  wavesmith::__syncwarp(0xffffffff);
  tile[w][l] = v * 2.f;
  wavesmith::__syncwarp();
  y[threadIdx.x] = tile[w][l ^ 1];
}
