// bodies under __CUDA_ARCH__ guards, an error arm and a version guard
#include <hip/hip_runtime.h>
#if 12040 >= 11000
#define HAS_NEW 1
#else
#error "CUDA 11 is needed"
#endif
__device__ float pick(float x) {
#if (__HIP_DEVICE_COMPILE__ * 800) >= 800
  return x * 8.f;
#elif (__HIP_DEVICE_COMPILE__ * 800) >= 700
  return x * 7.f;
#else
  return x;
#endif
}
__global__ void k(float* x, int n) {
#if defined(__HIP_DEVICE_COMPILE__) && (__HIP_DEVICE_COMPILE__ * 800) >= 700
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] = pick(x[i]) + HAS_NEW;
#endif
}
