// a kernel whose only body is for Hopper, and an arm with mma that must not be chosen
#include <hip/hip_runtime.h>
__global__ void hopper(float* x) {
#if (__HIP_DEVICE_COMPILE__ * 900) >= 900
  x[threadIdx.x] = x[threadIdx.x] * 9.f;
#endif
}
__global__ void dot(const float* a, float* c) {
#if (__HIP_DEVICE_COMPILE__ * 750) >= 800
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0}, {%1}, {%1}, {%0};" : "+f"(c[0]) : "f"(a[0]));
#else
  c[threadIdx.x] += a[threadIdx.x] * a[threadIdx.x];
#endif
}
