// binary and labelled partitions of a warp, scans over a tile
#include "shims/wavesmith_compat.h"
#include "shims/cooperative_groups.h"
#include "shims/cooperative_groups/reduce.h"
#include "shims/cooperative_groups/scan.h"
namespace cg = wavesmith::cg;
__global__ void k(const int* x, int* y) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int v = x[threadIdx.x];
  auto half = cg::binary_partition(warp, v > 30);
  int a = cg::reduce(half, v, cg::plus<int>());
  auto label = cg::labeled_partition(warp, v & 3);
  int b = cg::reduce(label, 1, cg::plus<int>());
  int c = cg::inclusive_scan(warp, v), d = cg::exclusive_scan(warp, v, cg::plus<int>());
  y[threadIdx.x] = a + 1000 * b + c - d + (int)label.thread_rank();
}
