// wide multiplies, carries and multiply-adds in PTX
#include <cuda_runtime.h>
__global__ void k(const unsigned* x, const unsigned* y, unsigned long long* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned hi, lo, mad;
  unsigned long long wide;
  asm("mul.hi.u32 %0, %1, %2;" : "=r"(hi) : "r"(x[i]), "r"(y[i]));
  asm("mad.lo.u32 %0, %1, %2, %3;" : "=r"(mad) : "r"(x[i]), "r"(y[i]), "r"(hi));
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(wide) : "r"(x[i]), "r"(y[i]));
  asm("add.cc.u32 %0, %2, %3;\n\taddc.u32 %1, %4, %5;" : "=r"(lo), "=r"(hi) : "r"(x[i]), "r"(y[i]), "r"(hi), "r"(mad));
  z[i] = wide + ((unsigned long long)hi << 32 | lo);
}
