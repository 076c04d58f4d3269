#define FULL 0xffffffff
__device__ float warp_sum(float v) {
  for (int o = 16; o > 0; o >>= 1) v += wavesmith::__shfl_down_sync(FULL, v, o);
  return v;
}
__device__ unsigned vote(int p) { return __popc(wavesmith::__ballot_sync(FULL, p)) + (wavesmith::__any(p) ? 1u : 0u); }  // __any is old
