// bit field, permute, three-input logic, funnel shift and leading zeros in PTX
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__device__ unsigned bfe(unsigned v, unsigned s, unsigned n) { unsigned r; { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(v); const unsigned ptx2 = wavesmith::ptx::in<unsigned>(s); const unsigned ptx3 = wavesmith::ptx::in<unsigned>(n); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::bfe<unsigned>(ptx1, ptx2, ptx3)); wavesmith::ptx::out(r, ptx0); } return r; }
__device__ int sbfe(int v, unsigned s, unsigned n) { int r; { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(v); const unsigned ptx2 = wavesmith::ptx::in<unsigned>(s); const unsigned ptx3 = wavesmith::ptx::in<unsigned>(n); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::bfe<int>(wavesmith::ptx::as<int>(ptx1), ptx2, ptx3)); wavesmith::ptx::out(r, ptx0); } return r; }
__global__ void k(const unsigned* x, const unsigned* y, unsigned* z, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned a = x[i], b = y[i], r, s, t, u, w;
  { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(a); const unsigned ptx2 = wavesmith::ptx::in<unsigned>(b); const unsigned ptx3 = wavesmith::ptx::in<unsigned>(0x5410); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::prmt(ptx1, ptx2, ptx3)); wavesmith::ptx::out(r, ptx0); }
  { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(a); const unsigned ptx2 = wavesmith::ptx::in<unsigned>(b); const unsigned ptx3 = wavesmith::ptx::in<unsigned>(r); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::lop3(ptx1, ptx2, ptx3, (unsigned)(0xE8))); wavesmith::ptx::out(s, ptx0); }
  { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(a); const unsigned ptx2 = wavesmith::ptx::in<unsigned>(b); const unsigned ptx3 = wavesmith::ptx::in<unsigned>(b); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::shf_l_wrap(ptx1, ptx2, ptx3)); wavesmith::ptx::out(t, ptx0); }
  { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(a); const unsigned ptx2 = wavesmith::ptx::in<unsigned>(b); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::bfi<unsigned>(ptx1, ptx2, (unsigned)(4), (unsigned)(9))); wavesmith::ptx::out(u, ptx0); }
  { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(a); const unsigned ptx2 = wavesmith::ptx::in<unsigned>(b); { bool ptx_p = {}; ptx_p = wavesmith::ptx::put<bool>(wavesmith::ptx::compare_lt<unsigned>(ptx1, ptx2)); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::selp<unsigned>((unsigned)(1), (unsigned)(7), ptx_p)); } wavesmith::ptx::out(w, ptx0); }
  z[i] = bfe(a, b & 31, 7) + (unsigned)sbfe((int)a, 3, 11) + r + s * 3 + t * 5 + u * 7 + w;
}
