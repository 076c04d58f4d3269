__global__ void k(float* x) {
#if defined(__HIP_DEVICE_COMPILE__) && (__HIP_DEVICE_COMPILE__ * 800) >= 700
  x[threadIdx.x] *= 2.f;
#else
  // nothing before Volta
#endif
}
