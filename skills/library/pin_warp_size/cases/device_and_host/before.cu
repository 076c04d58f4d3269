__global__ void k(float* x) {
  const int lane = threadIdx.x % warpSize;
  if (lane == 0) x[threadIdx.x / warpSize] = 1.f;
}
int warps(int threads) {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  return (threads + p.warpSize - 1) / p.warpSize;  // warpSize of the device
}
