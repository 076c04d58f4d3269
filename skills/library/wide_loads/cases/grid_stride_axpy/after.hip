#include <hip/hip_runtime.h>

__global__ void axpy(float a, const float* __restrict__ x, float* __restrict__ y, unsigned n) {
    const unsigned first = blockIdx.x * blockDim.x + threadIdx.x;
    const unsigned stride = gridDim.x * blockDim.x;
    if (n % 4 == 0 &&
        reinterpret_cast<size_t>(y) % 16 == 0 &&
        reinterpret_cast<size_t>(x) % 16 == 0) {
        for (unsigned i = first; i < n / 4; i += stride) {
            *reinterpret_cast<float4*>(&y[4 * i]) += a * (*reinterpret_cast<const float4*>(&x[4 * i]) - 1.0f);
        }
    } else {
        for (unsigned i = first; i < n; i += stride) y[i] += a * (x[i] - 1.0f);
    }
}
