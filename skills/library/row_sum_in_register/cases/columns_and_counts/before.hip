#include <hip/hip_runtime.h>

namespace ops {
// Sums of each column, and how often a segment was met in it.
__global__ void columns(const float* x, const int* segments, float* sums, unsigned* met, int rows, int cols) {
  const int c = threadIdx.x;
  int r = blockIdx.x * 8, segment;
  while (r < rows && r < (blockIdx.x + 1) * 8) {
    segment = segments[r];
    atomicAdd(&sums[c], x[r * cols + c]);
    atomicAdd(met + (size_t)segment * cols + c, 1u);
    r += 1;
  }
}
}  // namespace ops
