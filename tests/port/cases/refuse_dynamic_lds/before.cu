// 96 KiB of dynamic shared memory
#include <cuda_runtime.h>
constexpr int STAGES = 3, TILE_BYTES = 32 * 1024;
__global__ void k(float* y) { extern __shared__ float s[]; s[threadIdx.x] = y[threadIdx.x]; __syncthreads(); y[threadIdx.x] = s[255 - threadIdx.x]; }
void run(float* y) {
  cudaFuncSetAttribute(k, cudaFuncAttributeMaxDynamicSharedMemorySize, STAGES * TILE_BYTES);
  k<<<1, 256, STAGES * TILE_BYTES>>>(y);
}
