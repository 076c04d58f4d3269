// cache operators, vector loads, volatile and ordered accesses, reductions in PTX
#include <cuda_runtime.h>
__device__ int4 ld_stream(const int4* p) { int4 v; asm volatile("ld.global.cs.v4.s32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p)); return v; }
__global__ void k(const int4* x, int4* y, int* flags, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int4 v = ld_stream(x + i);
  asm volatile("st.global.cg.v4.s32 [%0], {%1,%2,%3,%4};" ::"l"(y + i), "r"(v.w), "r"(v.z), "r"(v.y), "r"(v.x) : "memory");
  asm volatile("red.global.add.s32 [%0], %1;" ::"l"(flags), "r"(1) : "memory");
  int old;
  asm volatile("atom.global.max.s32 %0, [%1], %2;" : "=r"(old) : "l"(flags + 1), "r"(v.x) : "memory");
  asm volatile("st.release.gpu.global.s32 [%0+4], %1;" ::"l"(flags + 1), "r"(3) : "memory");
  asm volatile("membar.gl;");
}
