// shuffles, votes and lane registers in PTX
#include <cuda_runtime.h>
__global__ void k(const int* x, int* y) {
  int v = x[threadIdx.x], s, d;
  unsigned b, lt, lane;
  asm volatile("shfl.sync.bfly.b32 %0, %1, 16, 0x1f, 0xffffffff;" : "=r"(s) : "r"(v));
  asm volatile("{ .reg .pred p; shfl.sync.down.b32 %0|p, %1, 5, 0x181f, 0xffffffff; @!p mov.b32 %0, -1; }" : "=r"(d) : "r"(v));
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }" : "=r"(b) : "r"(v & 1));
  asm volatile("mov.u32 %0, %%lanemask_lt;" : "=r"(lt));
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  y[threadIdx.x] = s + 3 * d + __popc(b & lt) * 1000 + (int)lane;
}
