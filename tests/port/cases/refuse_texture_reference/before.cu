// texture object fetch
#include <cuda_runtime.h>
__global__ void k(cudaTextureObject_t t, float* y) { y[threadIdx.x] = tex2D<float>(t, threadIdx.x, 0.5f); }
