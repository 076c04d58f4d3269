// dynamic shared memory through an opt-in attribute that fits both targets
#include <cuda_runtime.h>
__global__ void reverse(const int* in, int* out) {
  extern __shared__ int tile[];
  int t = threadIdx.x;
  tile[t] = in[blockIdx.x * blockDim.x + t];
  __syncthreads();
  out[blockIdx.x * blockDim.x + t] = tile[blockDim.x - 1 - t];
}
cudaError_t run(const int* in, int* out) {
  cudaError_t e = cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 48 * 1024);
  if (e != cudaSuccess) return e;
  cudaFuncSetAttribute(reverse, cudaFuncAttributePreferredSharedMemoryCarveout, cudaSharedmemCarveoutMaxShared);
  reverse<<<3, 128, 128 * sizeof(int)>>>(in, out);
  return cudaGetLastError();
}
