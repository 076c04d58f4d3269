// the float maximum by integer atomics on the bits
#include <hip/hip_runtime.h>
__device__ float atomicMaxFloat(float* a, float v) {
  return v >= 0 ? __int_as_float(atomicMax((int*)a, __float_as_int(v))) : __uint_as_float(atomicMin((unsigned*)a, __float_as_uint(v)));
}
__global__ void k(const float* x, float* m, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicMaxFloat(m, x[i]);
}
