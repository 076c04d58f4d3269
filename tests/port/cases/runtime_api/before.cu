// occupancy, attributes, pools, pointer attributes, capability checks, streams
#include <cuda_runtime.h>
#include <cstdio>
__global__ void k(float* x) { x[threadIdx.x] += 1.f; }  // cudaMalloc in a comment stays
int run(float* x) {
  cudaDeviceProp prop;
  cudaGetDeviceProperties(&prop, 0);
  if (prop.major >= 9) return -1;
  int optin = 0, blocks = 0, warp = 0;
  cudaDeviceGetAttribute(&optin, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0);
  cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 128, 0);
  cudaPointerAttributes attributes;
  cudaPointerGetAttributes(&attributes, x);
  bool device = attributes.memoryType == cudaMemoryTypeDevice;
  cudaFuncAttributes fa;
  cudaFuncGetAttributes(&fa, k);
  printf("cudaMalloc is only a word here: %d\n", optin);
  k<<<blocks, prop.warpSize, 0, cudaStreamPerThread>>>(x);
  return warp + device + fa.numRegs;
}
