#include <hip/hip_runtime.h>

__global__ void axpy(float a, const float* __restrict__ x, float* __restrict__ y, unsigned n) {
    const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned stride = gridDim.x * blockDim.x;
    for (unsigned i = first; i < n; i += stride) y[i] += a * (x[i] - 1.0f);
}
