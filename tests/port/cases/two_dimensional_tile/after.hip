// tiled transpose with padding, two-dimensional blocks
#include <hip/hip_runtime.h>
#define TILE 16
__global__ void transpose(const float* in, float* out, int width, int height) {
  __shared__ float tile[TILE][TILE + 1];
  int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
  if (x < width && y < height) tile[threadIdx.y][threadIdx.x] = in[y * width + x];
  __syncthreads();
  x = blockIdx.y * TILE + threadIdx.x;
  y = blockIdx.x * TILE + threadIdx.y;
  if (x < height && y < width) out[y * height + x] = tile[threadIdx.x][threadIdx.y];
}
void run(const float* in, float* out, int w, int h) { transpose<<<dim3((w + 15) / 16, (h + 15) / 16), dim3(TILE, TILE)>>>(in, out, w, h); }
