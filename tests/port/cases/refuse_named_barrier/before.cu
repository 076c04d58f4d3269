// producer and consumer warps behind named barriers
#include <cuda_runtime.h>
__global__ void k(float* y) {
  if (threadIdx.x < 64) asm volatile("bar.sync 1, 128;");
  else asm volatile("bar.arrive 1, 128;");
  y[threadIdx.x] = 1.f;
}
