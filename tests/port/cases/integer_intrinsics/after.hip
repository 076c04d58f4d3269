// integer intrinsics: bits, bytes, funnel shifts, averages, high products
#include "shims/wavesmith_compat.h"
__global__ void ints(const unsigned* a, const int* b, unsigned* o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
  unsigned x = a[i]; int y = b[i];
  o[i] = __brev(x) ^ __byte_perm(x, (unsigned)y, 0x3142) ^ __funnelshift_l(x, (unsigned)y, 7) ^ __funnelshift_rc(x, (unsigned)y, 40) ^ __sad(y, 5, 3u)
       ^ __umulhi(x, 12345u) ^ (unsigned)__mulhi(y, 77) ^ __umul24(x, 9u) ^ (unsigned)__clz(y) ^ (unsigned)__ffs(y) ^ (unsigned)__popc(x) ^ (unsigned)__rhadd(y, 3) ^ (unsigned)__hadd(y, 3) ^ __uhadd(x, 7u);
}
__global__ void longs(const unsigned long long* a, long long* o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
  o[i] = (long long)(__brevll(a[i]) ^ __umul64hi(a[i], 0x123456789abcull)) + __clzll((long long)a[i]) + wavesmith::__ffsll((long long)a[i]) + __popcll(a[i]);
}
