__device__ float f(float x) {
#ifdef __HIP_PLATFORM_AMD__
  return x;
#else
  asm("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];" : "=f"(x) : "r"(0));
  return x;
#endif
}
