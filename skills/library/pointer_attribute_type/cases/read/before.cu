bool on_device(const void* p) {
  cudaPointerAttributes a;
  cudaPointerGetAttributes(&a, p);
  return a.memoryType == cudaMemoryTypeDevice;
}
