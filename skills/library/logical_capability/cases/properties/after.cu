bool is_hopper() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  return (WAVESMITH_CUDA_CAPABILITY / 100) * 10 + (WAVESMITH_CUDA_CAPABILITY / 10 % 10) >= 90;
}
