// cp.async through shared addresses, then ld.shared
#include <cuda_runtime.h>
#include <cstdint>
__global__ void k(const float4* g, float* y) {
  __shared__ alignas(16) float4 s[64];
  uint32_t p = static_cast<uint32_t>(__cvta_generic_to_shared(&s[threadIdx.x]));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(p), "l"(g + threadIdx.x));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  uint32_t o = static_cast<uint32_t>(__cvta_generic_to_shared(&s[63 - threadIdx.x]));
  float v;
  asm volatile("ld.shared.f32 %0, [%1+8];" : "=f"(v) : "r"(o));
  y[threadIdx.x] = v;
}
void run(const float4* g, float* y) { k<<<1, 64>>>(g, y); }
