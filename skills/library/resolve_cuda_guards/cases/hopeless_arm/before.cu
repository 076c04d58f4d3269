__device__ float f(float a) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 ...");
  return a;
#else
  return a * a;
#endif
}
#if CUDART_VERSION >= 11000
#include <cuda_bf16.h>
#endif
