// cache operators, vector loads, volatile and ordered accesses, reductions in PTX
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__device__ int4 ld_stream(const int4* p) { int4 v; { unsigned ptx0 = {}; unsigned ptx1 = {}; unsigned ptx2 = {}; unsigned ptx3 = {}; const unsigned long long ptx4 = wavesmith::ptx::in<unsigned long long>(p); { const auto ptx_loaded = wavesmith::ptx::streaming.load(wavesmith::ptx::at_generic<int, 4>(ptx4, 0)); ptx0 = wavesmith::ptx::put<unsigned>(ptx_loaded.v[0]); ptx1 = wavesmith::ptx::put<unsigned>(ptx_loaded.v[1]); ptx2 = wavesmith::ptx::put<unsigned>(ptx_loaded.v[2]); ptx3 = wavesmith::ptx::put<unsigned>(ptx_loaded.v[3]); } wavesmith::ptx::out(v.x, ptx0); wavesmith::ptx::out(v.y, ptx1); wavesmith::ptx::out(v.z, ptx2); wavesmith::ptx::out(v.w, ptx3); } return v; }
__global__ void k(const int4* x, int4* y, int* flags, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int4 v = ld_stream(x + i);
  { const unsigned long long ptx0 = wavesmith::ptx::in<unsigned long long>(y + i); const unsigned ptx1 = wavesmith::ptx::in<unsigned>(v.w); const unsigned ptx2 = wavesmith::ptx::in<unsigned>(v.z); const unsigned ptx3 = wavesmith::ptx::in<unsigned>(v.y); const unsigned ptx4 = wavesmith::ptx::in<unsigned>(v.x); wavesmith::ptx::plain.store(wavesmith::ptx::at_generic<int, 4>(ptx0, 0), wavesmith::ptx::vec<int, 4>{{wavesmith::ptx::as<int>(ptx1), wavesmith::ptx::as<int>(ptx2), wavesmith::ptx::as<int>(ptx3), wavesmith::ptx::as<int>(ptx4)}}); }
  { const unsigned long long ptx0 = wavesmith::ptx::in<unsigned long long>(flags); const unsigned ptx1 = wavesmith::ptx::in<unsigned>(1); (void)wavesmith::ptx::relaxed_device.add_(wavesmith::ptx::at_generic<int, 1>(ptx0, 0), wavesmith::ptx::as<int>(ptx1)); }
  int old;
  { unsigned ptx0 = {}; const unsigned long long ptx1 = wavesmith::ptx::in<unsigned long long>(flags + 1); const unsigned ptx2 = wavesmith::ptx::in<unsigned>(v.x); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::relaxed_device.max_(wavesmith::ptx::at_generic<int, 1>(ptx1, 0), wavesmith::ptx::as<int>(ptx2))); wavesmith::ptx::out(old, ptx0); }
  { const unsigned long long ptx0 = wavesmith::ptx::in<unsigned long long>(flags + 1); const unsigned ptx1 = wavesmith::ptx::in<unsigned>(3); wavesmith::ptx::release_device.store(wavesmith::ptx::at_generic<int, 1>(ptx0, 4), wavesmith::ptx::vec<int, 1>{{wavesmith::ptx::as<int>(ptx1)}}); }
  { wavesmith::ptx::fence_device(); }
}
