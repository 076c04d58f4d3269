// structures by value: nested, with pointers, arrays and vectors, and a functor without members
#include "shims/wavesmith_compat.h"
#include <hip/hip_fp16.h>
#include <hip/hip_runtime.h>
namespace ns {
struct Inner {
  float scale;
  int shift[2];
};
}  // namespace ns
template <typename T> struct View {
  const T* data;
  long long n;
  ns::Inner in;
  float4 add;
};
struct Out {
  float* y;
  __half* h;
  bool twice;
};
struct Scale {
  __device__ float operator()(float x) const { return 2.f * x; }
};
template <typename T, typename F> __global__ void apply(View<T> v, Out o, F f, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < v.n && i < n) {
    float r = f((float)v.data[i]) * v.in.scale + v.in.shift[0] + v.add.z;
    o.y[i] = o.twice ? 2.f * r : r;
    o.h[i] = __float2half(v.add.x + wavesmith::__shfl_xor_sync(wavesmith::__activemask(), r, 1));
  }
}
void run(View<float> v, Out o, int n) { apply<<<4, 128>>>(v, o, Scale(), n); }
