__device__ float f(float a) {
#if (__HIP_DEVICE_COMPILE__ * 750) >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 ...");
  return a;
#else
  return a * a;
#endif
}
#if 12040 >= 11000
#include <cuda_bf16.h>
#endif
