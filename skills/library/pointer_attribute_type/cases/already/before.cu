bool on_device(cudaPointerAttributes a) { return a.type == cudaMemoryTypeDevice; }
