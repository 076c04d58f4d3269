// block scan and cooperative loads
#include <hip/hip_runtime.h>
#include <hipcub/hipcub.hpp>
#include <hipcub/hipcub.hpp>
#include <hipcub/hipcub.hpp>
__global__ void k(const int* in, int* out) {
  using Load = hipcub::BlockLoad<int, 128, 4, hipcub::BLOCK_LOAD_TRANSPOSE>;
  using Store = hipcub::BlockStore<int, 128, 4, hipcub::BLOCK_STORE_TRANSPOSE>;
  using Scan = hipcub::BlockScan<int, 128>;
  __shared__ union { typename Load::TempStorage load; typename Store::TempStorage store; typename Scan::TempStorage scan; } temp;
  int items[4];
  Load(temp.load).Load(in + blockIdx.x * 512, items);
  __syncthreads();
  Scan(temp.scan).ExclusiveSum(items, items);
  __syncthreads();
  Store(temp.store).Store(out + blockIdx.x * 512, items);
}
void run(const int* in, int* out) { k<<<2, 128>>>(in, out); }
