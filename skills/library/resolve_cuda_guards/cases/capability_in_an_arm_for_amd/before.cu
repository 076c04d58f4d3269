#if defined(USE_ROCM) || __has_include(<cuda_bf16.h>)
__device__ float two(float v) {
#if __CUDA_ARCH__ >= 800
  return __fmaf_rn(v, 2.f, 0.f);
#else
  return v + v;
#endif
}
__device__ bool on_device() {
#ifdef __CUDA_ARCH__
  return true;
#else
  return false;
#endif
}
#endif
