// thrust with CUDA policies on a stream
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>
#include <thrust/system/hip/execution_policy.h>
#include <hip/hip_runtime.h>
float total(const float* x, int n, hipStream_t s) { return thrust::reduce(thrust::hip::par.on(s), x, x + n, 0.f, thrust::plus<float>()); }
