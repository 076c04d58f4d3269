// shuffles, votes and lane registers in PTX
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void k(const int* x, int* y) {
  int v = x[threadIdx.x], s, d;
  unsigned b, lt, lane;
  { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(v); { const auto ptx_shuffled = wavesmith::ptx::shfl_bfly(ptx1, (unsigned)(16), (unsigned)(0x1f)); ptx0 = wavesmith::ptx::put<unsigned>(ptx_shuffled.value); } wavesmith::ptx::out(s, ptx0); }
  { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(v); { bool ptx_p = {}; { const auto ptx_shuffled = wavesmith::ptx::shfl_down(ptx1, (unsigned)(5), (unsigned)(0x181f)); ptx0 = wavesmith::ptx::put<unsigned>(ptx_shuffled.value); ptx_p = wavesmith::ptx::put<bool>(ptx_shuffled.valid); } if (!ptx_p) { ptx0 = wavesmith::ptx::put<unsigned>((unsigned)(-1)); } } wavesmith::ptx::out(d, ptx0); }
  { unsigned ptx0 = {}; const unsigned ptx1 = wavesmith::ptx::in<unsigned>(v & 1); { bool ptx_p = {}; ptx_p = wavesmith::ptx::put<bool>(wavesmith::ptx::compare_ne<int>(wavesmith::ptx::as<int>(ptx1), (int)(0))); ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::vote_ballot(ptx_p, (unsigned)(0xffffffff))); } wavesmith::ptx::out(b, ptx0); }
  { unsigned ptx0 = {}; ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::as<unsigned>(wavesmith::ptx::lanemask_lt())); wavesmith::ptx::out(lt, ptx0); }
  { unsigned ptx0 = {}; ptx0 = wavesmith::ptx::put<unsigned>(wavesmith::ptx::as<unsigned>(wavesmith::ptx::laneid())); wavesmith::ptx::out(lane, ptx0); }
  y[threadIdx.x] = s + 3 * d + __popc(b & lt) * 1000 + (int)lane;
}
