// dropout and noise from cuRAND's device functions, with the states kept in memory
#include <curand_kernel.h>
#include <cuda_runtime.h>
__global__ void seed_states(curandState* states, unsigned long long seed, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) curand_init(seed, i, 0, &states[i]);
}
__global__ void dropout(const float* x, float* y, unsigned char* kept, unsigned long long seed, float p, int n) {
  int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
  curandStatePhilox4_32_10_t state;
  curand_init(seed, i, 0, &state);
  float4 u = curand_uniform4(&state);
  const float draws[4] = {u.x, u.y, u.z, u.w};
  for (int k = 0; k < 4 && i + k < n; k++) {
    kept[i + k] = draws[k] > p * 0.25f;
    y[i + k] = kept[i + k] ? x[i + k] / (1.f - p * 0.25f) : 0.f;
  }
}
__global__ void noise(float* y, curandState* states, float deviation, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] += deviation * curand_normal(&states[i]);
}
