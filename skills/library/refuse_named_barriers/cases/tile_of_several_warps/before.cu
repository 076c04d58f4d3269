#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void k(int* x) {
  __shared__ cg::block_tile_memory<256> scratch;
  auto block = cg::this_thread_block(scratch);
  auto tile = cg::tiled_partition<128>(block);
  tile.sync();
  x[threadIdx.x] = tile.thread_rank();
}
