__device__ void wait(int id) { asm volatile("bar.sync %0, 64;" ::"r"(id)); }
