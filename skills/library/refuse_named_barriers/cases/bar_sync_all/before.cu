__device__ void wait() { asm volatile("bar.sync 0;"); }
