#include <hip/hip_runtime.h>

__global__ void row_sums(const double* x, double* sums, int cols) {
  __shared__ double tile[64][16];
  const int tx = threadIdx.x;
  for (int c = 0; c < 16; ++c) tile[c * 4 + tx / 16][tx % 16] = x[(c * 4 + tx / 16) * cols + tx % 16];
  __syncthreads();
  double sum = 0;
  for (int c = 0; c < 16; ++c) sum += tile[tx][c];
  sums[tx] = sum;
}
