// 80 KiB of static shared memory: too much for gfx942
#include <cuda_runtime.h>
__global__ void k(float* y) {
  __shared__ float s[20 * 1024];
  for (int i = threadIdx.x; i < 20 * 1024; i += blockDim.x) s[i] = y[i & 255];
  __syncthreads();
  y[threadIdx.x] = s[(threadIdx.x * 97) % (20 * 1024)];
}
