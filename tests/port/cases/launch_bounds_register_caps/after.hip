// launch bounds with blocks per SM, register caps, template bounds
#include <hip/hip_runtime.h>
#define THREADS 256
template <int N> __global__ __launch_bounds__(N) void scale(float* x, float f) { x[blockIdx.x * N + threadIdx.x] *= f; }
extern "C" __global__ void __launch_bounds__(THREADS) shift(float* x, float f) { x[blockIdx.x * blockDim.x + threadIdx.x] += f; }
void run(float* x) { scale<128><<<2, 128>>>(x, 2.f); shift<<<2, THREADS>>>(x, 1.f); }
