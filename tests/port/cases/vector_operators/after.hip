// the operators that CUDA sources bring for the vector types, which HIP has itself
#include <hip/hip_runtime.h>
inline __host__ __device__ float4 operator+(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }
inline __host__ __device__ float4 operator*(float4 a, float s) { return make_float4(a.x * s, a.y * s, a.z * s, a.w * s); }
template <int Exact = 0> inline __host__ __device__ void operator+=(float4 &a, float4 b) {
  a.x += b.x;
  a.y += b.y;
  a.z += b.z;
  a.w += b.w;
}
template <int Exact = 0> inline __host__ __device__ void operator*=(float4 &a, float s) {
  a.x *= s;
  a.y *= s;
  a.z *= s;
  a.w *= s;
}
inline __host__ __device__ float dot(float4 a, float4 b) { return a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w; }
__global__ void blend(const float4 *x, const float4 *y, float4 *out, float *dots, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float4 sum = x[i] + y[i] * 0.5f;
  sum += y[i];
  sum *= 0.25f;
  out[i] = sum;
  dots[i] = dot(sum, x[i]);
}
void run(const float4 *x, const float4 *y, float4 *out, float *dots, int n) { blend<<<(n + 127) / 128, 128>>>(x, y, out, dots, n); }
