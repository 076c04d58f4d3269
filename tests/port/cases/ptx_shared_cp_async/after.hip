// cp.async through shared addresses, then ld.shared
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
#include <cstdint>
__global__ void k(const float4* g, float* y) {
  __shared__ alignas(16) float4 s[64];
  uint32_t p = static_cast<uint32_t>(wavesmith::__cvta_generic_to_shared(&s[threadIdx.x]));
  { const unsigned ptx0 = wavesmith::ptx::in<unsigned>(p); const unsigned long long ptx1 = wavesmith::ptx::in<unsigned long long>(g + threadIdx.x); wavesmith::ptx::copy_to_shared(wavesmith::ptx::as<unsigned long long>(ptx0) + 0, ptx1 + 0, (unsigned)(16), (unsigned)(16)); }
  { ; }
  { wavesmith::ptx::wait(); }
  __syncthreads();
  uint32_t o = static_cast<uint32_t>(wavesmith::__cvta_generic_to_shared(&s[63 - threadIdx.x]));
  float v;
  { float ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(o); { const auto ptx_loaded = wavesmith::ptx::plain.load(wavesmith::ptx::at_shared<float, 1>(wavesmith::ptx::as<unsigned long long>(ptx1), 8)); ptx0 = wavesmith::ptx::put<float>(ptx_loaded.v[0]); } wavesmith::ptx::out(v, ptx0); }
  y[threadIdx.x] = v;
}
void run(const float4* g, float* y) { k<<<1, 64>>>(g, y); }
