// cooperative groups: tiles of 32 and 8, reduce, ballot, shuffle
#include "shims/wavesmith_compat.h"
#include "shims/cooperative_groups.h"
#include "shims/cooperative_groups/reduce.h"
#include <hip/hip_runtime.h>
namespace cg = wavesmith::cg;
__global__ void k(const int* x, int* y) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  auto tile = cg::tiled_partition<8>(warp);
  int v = x[block.thread_rank()];
  int s = cg::reduce(warp, v, cg::plus<int>());
  int m = cg::reduce(tile, v, cg::greater<int>());
  unsigned b = warp.ballot(v & 1);
  y[block.thread_rank()] = s + m * 7 + __popc(b) + tile.shfl(v, 2) + warp.shfl_xor(v, 16) + tile.meta_group_rank() + warp.any(v > 50);
}
