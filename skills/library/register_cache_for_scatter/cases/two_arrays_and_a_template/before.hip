#include <hip/hip_runtime.h>

namespace ops {
// Sums and counts of each label.
template <typename scalar_t>
__global__ void by_label(const scalar_t* x, const int* labels, scalar_t* sums, unsigned long long* counts, int n) {
    const int step = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) {
        const int label = labels[i];
        if (label >= 0) {
            atomicAdd(sums + label, x[i]);
            atomicAdd(&counts[label], 1ULL);
        }
    }
}

template __global__ void by_label<float>(const float*, const int*, float*, unsigned long long*, int);
}  // namespace ops
