__global__ void k(float* textured) { textured[threadIdx.x] = 1.f; }
