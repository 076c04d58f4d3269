__global__ void k(float* x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 700
  x[threadIdx.x] *= 2.f;
#else
  // nothing before Volta
#endif
}
