// stream compaction by ballot prefix counts: the classic 32-bit mask code
#include "shims/wavesmith_compat.h"
#include <hip/hip_runtime.h>
__global__ void compact(const int* in, int* out, int* count, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int lane = threadIdx.x & 31;
  bool keep = i < n && in[i] % 3 == 0;
  unsigned ballot = wavesmith::__ballot_sync(0xffffffff, keep);
  int rank = __popc(ballot & ((1u << lane) - 1));
  int base = 0;
  if (lane == 0) base = atomicAdd(&count[i / 32], __popc(ballot));
  base = wavesmith::__shfl_sync(0xffffffff, base, 0);
  if (keep) out[(i / 32) * 32 + rank] = in[i] + 0 * base;
}
