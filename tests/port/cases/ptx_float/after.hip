// rounding, approximations, conversions and half operations in PTX
#include "shims/wavesmith_compat.h"
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
__global__ void k(const float* x, float* y, unsigned* h, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float a = x[i], e, r, m, z;
  { float ptx0 = {}; const float ptx1 = wavesmith::ptx::in<float>(a); ptx0 = wavesmith::ptx::put<float>(wavesmith::ptx::ex2<float>(ptx1)); wavesmith::ptx::out(e, ptx0); }
  { float ptx0 = {}; const float ptx1 = wavesmith::ptx::in<float>(a + 4.5f); ptx0 = wavesmith::ptx::put<float>(wavesmith::ptx::rcp<float>(ptx1)); wavesmith::ptx::out(r, ptx0); }
  { float ptx0 = {}; const float ptx1 = wavesmith::ptx::in<float>(a); const float ptx2 = wavesmith::ptx::in<float>(0.5f); ptx0 = wavesmith::ptx::put<float>(wavesmith::ptx::max<float>(ptx1, ptx2)); wavesmith::ptx::out(m, ptx0); }
  { float ptx0 = {}; const float ptx1 = wavesmith::ptx::in<float>(a); const float ptx2 = wavesmith::ptx::in<float>(1e-4f); ptx0 = wavesmith::ptx::put<float>(wavesmith::ptx::add_rz<float>(ptx1, ptx2)); wavesmith::ptx::out(z, ptx0); }
  int q;
  { unsigned ptx0 = {}; const float ptx1 = wavesmith::ptx::in<float>(a * 100.f); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::cvt<int, float, wavesmith::ptx::rni, false>(ptx1)); wavesmith::ptx::out(q, ptx0); }
  unsigned p;
  { unsigned ptx0 = {}; const float ptx1 = wavesmith::ptx::in<float>(a); const float ptx2 = wavesmith::ptx::in<float>(m); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::pack<wavesmith::ptx::f16x2>(ptx1, ptx2)); wavesmith::ptx::out(p, ptx0); }
  { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(p); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::mad<wavesmith::ptx::f16x2>(wavesmith::ptx::as<wavesmith::ptx::f16x2>(ptx1), wavesmith::ptx::as<wavesmith::ptx::f16x2>(ptx1), wavesmith::ptx::as<wavesmith::ptx::f16x2>(ptx1))); wavesmith::ptx::out(h[i], ptx0); }
  y[i] = e + r + m + z + (float)q;
}
