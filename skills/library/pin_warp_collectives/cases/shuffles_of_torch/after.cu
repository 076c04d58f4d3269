#include <ATen/cuda/DeviceUtils.cuh>
template <typename T> __device__ T total(T v) {
  for (int lane = 16; lane > 0; lane >>= 1) v += WARP_SHFL_XOR(v, lane, 32);
  v = WARP_SHFL(v, (threadIdx.x + (1 << 2)) & 31, 32);  // threadIdx.y + 1 is in the other half of a wave
  return WARP_SHFL_DOWN(v, 1, 8) + WARP_SHFL_UP<T>(v, min(1, 2), 32);
}
