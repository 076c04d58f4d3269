#include <hip/hip_runtime.h>

template <typename value_t, typename index_t>
__global__ void bag(const value_t* dy, const index_t* ids, value_t* table, int count, int width) {
    const int lane = threadIdx.x, first = (blockIdx.x * blockDim.y + threadIdx.y) * 16;
    for (int p = first; p < first + 16 && p < count; p++) {
        const auto id = ids[p];
        value_t* dst = table + static_cast<int64_t>(id) * width;
        for (int half = 0; half < 2; ++half) {
            atomicAdd(dst + lane, dy[(p * 2 + half) * width + lane]);
        }
    }
}

template __global__ void bag<float, int64_t>(const float*, const int64_t*, float*, int, int);
