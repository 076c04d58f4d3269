// bit field, permute, three-input logic, funnel shift and leading zeros in PTX
#include <cuda_runtime.h>
__device__ unsigned bfe(unsigned v, unsigned s, unsigned n) { unsigned r; asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(v), "r"(s), "r"(n)); return r; }
__device__ int sbfe(int v, unsigned s, unsigned n) { int r; asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(v), "r"(s), "r"(n)); return r; }
__global__ void k(const unsigned* x, const unsigned* y, unsigned* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned a = x[i], b = y[i], r, s, t, u, w;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(0x5410));
  asm("lop3.b32 %0, %1, %2, %3, 0xE8;" : "=r"(s) : "r"(a), "r"(b), "r"(r));
  asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(t) : "r"(a), "r"(b), "r"(b));
  asm("bfi.b32 %0, %1, %2, 4, 9;" : "=r"(u) : "r"(a), "r"(b));
  asm("{\n\t.reg .pred p;\n\tsetp.lt.u32 p, %1, %2;\n\tselp.u32 %0, 1, 7, p;\n\t}" : "=r"(w) : "r"(a), "r"(b));
  z[i] = bfe(a, b & 31, 7) + (unsigned)sbfe((int)a, 3, 11) + r + s * 3 + t * 5 + u * 7 + w;
}
