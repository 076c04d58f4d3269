#include <hip/hip_runtime.h>

__global__ void count(int* found, int n) { if (threadIdx.x < n) atomicAdd(found, 1); }
