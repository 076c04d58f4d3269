// wide multiplies, carries and multiply-adds in PTX
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void k(const unsigned* x, const unsigned* y, unsigned long long* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned hi, lo, mad;
  unsigned long long wide;
  { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(x[i]); const unsigned ptx2 = wavesmith::ptx::in<unsigned>(y[i]); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::mul_hi<unsigned>(ptx1, ptx2)); wavesmith::ptx::out(hi, ptx0); }
  { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(x[i]); const unsigned ptx2 = wavesmith::ptx::in<unsigned>(y[i]); const unsigned ptx3 = wavesmith::ptx::in<unsigned>(hi); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::mad_lo<unsigned>(ptx1, ptx2, ptx3)); wavesmith::ptx::out(mad, ptx0); }
  { unsigned long long ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(x[i]); const unsigned ptx2 = wavesmith::ptx::in<unsigned>(y[i]); ptx0 = wavesmith::ptx::put<unsigned long long>(wavesmith::ptx::mul_wide<unsigned>(ptx1, ptx2)); wavesmith::ptx::out(wide, ptx0); }
  { unsigned ptx0 = {}; unsigned ptx1 = {}; const unsigned ptx2 = wavesmith::ptx::in<unsigned>(x[i]); const unsigned ptx3 = wavesmith::ptx::in<unsigned>(y[i]); const unsigned ptx4 = wavesmith::ptx::in<unsigned>(hi); const unsigned ptx5 = wavesmith::ptx::in<unsigned>(mad); unsigned ptx_carry = 0; ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::add_carry<unsigned>(ptx2, ptx3, 0u, &ptx_carry)); ptx1 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::add_carry<unsigned>(ptx4, ptx5, ptx_carry, (unsigned*)0)); wavesmith::ptx::out(lo, ptx0); wavesmith::ptx::out(hi, ptx1); }
  z[i] = wide + ((unsigned long long)hi << 32 | lo);
}
