inline __host__ __device__ void operator+=(float4 &a, float4 b) {
  a.x += b.x;
  a.y += b.y;
  a.z += b.z;
  a.w += b.w;
}
static __device__ void operator*=(float2 &a, float s) { a.x *= s; a.y *= s; }
__global__ void k(float4 *x, float2 *y) {
  x[threadIdx.x] += x[threadIdx.x + 64];
  y[threadIdx.x] *= 2.f;
}
