#include <mma.h>
using namespace nvcuda;
__global__ void tile(const half* a, float* c) {
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> f;
  wmma::fill_fragment(f, 0.f);
  wmma::store_matrix_sync(c, f, 16, wmma::mem_row_major);
}
