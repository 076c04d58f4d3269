bool is_hopper() {
  cudaDeviceProp p;
  cudaGetDeviceProperties(&p, 0);
  return p.major * 10 + p.minor >= 90;
}
