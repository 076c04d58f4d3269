#define WARP_SHFL(v, lane) __shfl_sync(~0u, v, lane)
__device__ float first(float v) { return WARP_SHFL(v, 0); }
