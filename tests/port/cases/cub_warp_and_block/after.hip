// CUB at warp and block level, width left to its default
#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>
__global__ void k(const int* x, int* y, int* z) {
  typedef hipcub::WarpReduce<int, 32> WarpReduce;
  typedef hipcub::BlockReduce<int, 128> BlockReduce;
  __shared__ typename WarpReduce::TempStorage warp_temp[4];
  __shared__ typename BlockReduce::TempStorage block_temp;
  int v = x[blockIdx.x * 128 + threadIdx.x], w = threadIdx.x / 32;
  int s = WarpReduce(warp_temp[w]).Sum(v);
  if (threadIdx.x % 32 == 0) y[blockIdx.x * 4 + w] = s;
  int m = BlockReduce(block_temp).Reduce(v, hipcub::Max());
  if (threadIdx.x == 0) z[blockIdx.x] = m;
}
void run(const int* x, int* y, int* z) { k<<<2, 128>>>(x, y, z); }
