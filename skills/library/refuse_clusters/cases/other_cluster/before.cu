__global__ void kmeans(float* cluster_size) { cluster_size[threadIdx.x] = 0.f; }
