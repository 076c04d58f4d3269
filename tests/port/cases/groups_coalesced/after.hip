// coalesced groups and labelled partitions
#include "shims/wavesmith_compat.h"
#include "shims/cooperative_groups.h"
using namespace wavesmith::cg;
__global__ void k(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && (x[i] & 1)) {
    coalesced_group g = coalesced_threads();
    y[i] = g.size() * 100 + g.thread_rank();
  }
}
