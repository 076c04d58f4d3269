#define __shfl_xor_sync(mask, v, lane) my_shuffle(v, lane)
__device__ float f(float v) { return __shfl_xor_sync(~0u, v, 1); }
