template <int T, int B> __global__ void __launch_bounds__(T, B) a(float* x) { x[threadIdx.x] *= 2.f; }
__global__ void __launch_bounds__(1024, 2, 1) b(float* x) { x[threadIdx.x] *= 2.f; }
