__global__ void k(float* x) {
  const int lane = threadIdx.x % 32;
  if (lane == 0) x[threadIdx.x / 32] = 1.f;
}
int warps(int threads) {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  return (threads + 32 - 1) / 32;  // warpSize of the device
}
