// dynamic shared memory through an opt-in attribute that fits both targets
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void reverse(const int* in, int* out) {
  extern __shared__ int tile[];
  int t = threadIdx.x;
  tile[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  out[blockIdx.x * blockDim.x + t] = tile[blockDim.x - 1 - t];
}
hipError_t run(const int* in, int* out) {
  hipError_t e = hipFuncSetAttribute(reverse, hipFuncAttributeMaxDynamicSharedMemorySize, 48 * 1024);
  if (e != hipSuccess) return e;
  hipFuncSetAttribute(reverse, hipFuncAttributePreferredSharedMemoryCarveout, 100);
  reverse<<<3, 128, 128 * sizeof(int)>>>(in, out);
  return hipGetLastError();
}
