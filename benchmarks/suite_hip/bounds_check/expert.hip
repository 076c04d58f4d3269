#include <hip/hip_runtime.h>
#include <cstdint>

// As kernel.hip, by hand: bad lanes are counted with one ballot, wavefronts through LDS, one atomic a block.
__global__ void bounds_check_kernel(int64_t* indices, const int64_t* rows, int* warnings, int per_table) {
  __shared__ int partial[16];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool bad = false;
  if (i < per_table) {
    const int64_t index = indices[blockIdx.y * per_table + i];
    bad = index < 0 || index >= rows[blockIdx.y];
    if (bad) indices[blockIdx.y * per_table + i] = 0;
  }
  const int count = __popcll(__ballot(bad));
  if (threadIdx.x % 64 == 0) partial[threadIdx.x / 64] = count;
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (unsigned wave = 0; wave * 64 < blockDim.x; ++wave) sum += partial[wave];
    if (sum) atomicAdd(warnings, sum);
  }
}

void bounds_check(int64_t* indices, const int64_t* rows, int* warnings, int per_table, int tables) {
  bounds_check_kernel<<<dim3((per_table + 255) / 256, tables), 256>>>(indices, rows, warnings, per_table);
}
