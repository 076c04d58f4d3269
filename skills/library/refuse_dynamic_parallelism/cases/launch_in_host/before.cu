__global__ void child(int* x) { x[threadIdx.x]++; }
void run(int* x) { child<<<1, 32>>>(x); }
