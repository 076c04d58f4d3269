// Hopper warp-group products
#include <cuda_runtime.h>
__global__ void k(float* y) {
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("wgmma.commit_group.sync.aligned;");
  y[0] = 1.f;
}
