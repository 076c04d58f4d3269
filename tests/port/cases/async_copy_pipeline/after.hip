// double buffering with the pipeline primitives
#include "shims/wavesmith_compat.h"
#include "shims/cuda_pipeline.h"
#include <hip/hip_runtime.h>
__global__ void k(const float* in, float* out, int tiles) {
  __shared__ float buffer[2][128];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&buffer[0][t], &in[t], sizeof(float));
  __pipeline_commit();
  float sum = 0.f;
  for (int k = 0; k < tiles; k++) {
    if (k + 1 < tiles) __pipeline_memcpy_async(&buffer[(k + 1) & 1][t], &in[(k + 1) * 128 + t], sizeof(float));
    __pipeline_commit();
    __pipeline_wait_prior(1);
    __syncthreads();
    sum += buffer[k & 1][127 - t];
    __syncthreads();
  }
  out[t] = sum;
}
void run(const float* in, float* out) { k<<<1, 128>>>(in, out, 4); }
