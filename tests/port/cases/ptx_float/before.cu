// rounding, approximations, conversions and half operations in PTX
#include <cuda_fp16.h>
#include <cuda_runtime.h>
__global__ void k(const float* x, float* y, unsigned* h, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = x[i], e, r, m, z;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(a));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a + 4.5f));
  asm("max.f32 %0, %1, %2;" : "=f"(m) : "f"(a), "f"(0.5f));
  asm("add.rz.f32 %0, %1, %2;" : "=f"(z) : "f"(a), "f"(1e-4f));
  int q;
  asm("cvt.rni.s32.f32 %0, %1;" : "=r"(q) : "f"(a * 100.f));
  unsigned p;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(p) : "f"(a), "f"(m));
  asm("fma.rn.f16x2 %0, %1, %1, %1;" : "=r"(h[i]) : "r"(p));
  y[i] = e + r + m + z + (float)q;
}
