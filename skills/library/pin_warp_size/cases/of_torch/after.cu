#include <c10/macros/Macros.h>
template <int LOG2> __global__ void rows(float* x) {
  constexpr int width = (1 << LOG2) < 32 ? (1 << LOG2) : 32;
  x[threadIdx.x / width] = 0.f;
}
int lanes() { return 32; }
