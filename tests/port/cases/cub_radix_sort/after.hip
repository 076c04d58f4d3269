#include <hipcub/hipcub.hpp>
#include <hip/hip_runtime.h>
__global__ void k(const int* x, int* y) {
  using Load = hipcub::BlockLoad<int, 128, 4, hipcub::BLOCK_LOAD_TRANSPOSE>;
  using Store = hipcub::BlockStore<int, 128, 4, hipcub::BLOCK_STORE_TRANSPOSE>;
  using Sort = hipcub::BlockRadixSort<int, 128, 4>;
  __shared__ union { typename Load::TempStorage l; typename Store::TempStorage s; typename Sort::TempStorage r; } t;
  int v[4];
  Load(t.l).Load(x + blockIdx.x * 512, v);
  __syncthreads();
  Sort(t.r).Sort(v);
  __syncthreads();
  Store(t.s).Store(y + blockIdx.x * 512, v);
}
void run(const int* x, int* y) { k<<<2, 128>>>(x, y); }
