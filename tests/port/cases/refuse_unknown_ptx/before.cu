// an instruction the table does not know
#include <cuda_runtime.h>
__global__ void k(unsigned* y) { unsigned r; asm("vadd4.u32.u32.u32.sat %0, %1, %1, 0;" : "=r"(r) : "r"(y[0])); y[0] = r; }
