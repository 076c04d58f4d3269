// occupancy, attributes, pools, pointer attributes, capability checks, streams
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
#include <cstdio>
__global__ void k(float* x) { x[threadIdx.x] += 1.f; }  // cudaMalloc in a comment stays
int run(float* x) {
  hipDeviceProp_t prop;
  hipGetDeviceProperties(&prop, 0);
  if ((WAVESMITH_CUDA_CAPABILITY / 100) >= 9) return -1;
  int optin = 0, blocks = 0, warp = 0;
  wavesmith::hipDeviceGetAttribute(&optin, hipDeviceAttributeSharedMemPerBlockOptin, 0);
  wavesmith::hipDeviceGetAttribute(&warp, hipDeviceAttributeWarpSize, 0);
  hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, k, 128, 0);
  hipPointerAttribute_t attributes;
  hipPointerGetAttributes(&attributes, x);
  bool device = attributes.type == hipMemoryTypeDevice;
  hipFuncAttributes fa;
  hipFuncGetAttributes(&fa, k);
  printf("cudaMalloc is only a word here: %d\n", optin);
  k<<<blocks, 32, 0, hipStreamPerThread>>>(x);
  return warp + device + fa.numRegs;
}
