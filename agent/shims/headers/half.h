//@ entry: half_to_integers
//@ provides: __half2int_rn, __half2int_rd, __half2int_ru, __half2uint_rn, __half2uint_rd, __half2uint_ru, __half2short_rn, __half2short_rd, __half2short_ru, __half2ushort_rn, __half2ushort_rd, __half2ushort_ru, __half2ll_rn, __half2ll_rd, __half2ll_ru, __half2ull_rn, __half2ull_rd, __half2ull_ru
//@ includes: hip/hip_fp16.h
//@ contract: exact
//@ note: HIP's own versions drop the fraction, whatever their names say
//@ rename: wavesmith
namespace wavesmith {
template <class T> static __host__ __device__ __forceinline__ T integer_of(float v) {
  constexpr bool is_signed = T(-1) < T(0);
  constexpr T high = is_signed ? T(((unsigned long long)1 << (sizeof(T) * 8 - 1)) - 1) : T(-1), low = is_signed ? T(-high - 1) : T(0);
  if (v != v) return 0;
  if (v <= (float)low) return low;
  return v >= (float)high ? high : (T)v;
}
static __host__ __device__ __forceinline__ int __half2int_rn(__half v) { return integer_of<int>(__builtin_rintf(__half2float(v))); }
static __host__ __device__ __forceinline__ int __half2int_rd(__half v) { return integer_of<int>(__builtin_floorf(__half2float(v))); }
static __host__ __device__ __forceinline__ int __half2int_ru(__half v) { return integer_of<int>(__builtin_ceilf(__half2float(v))); }
static __host__ __device__ __forceinline__ unsigned __half2uint_rn(__half v) { return integer_of<unsigned>(__builtin_rintf(__half2float(v))); }
static __host__ __device__ __forceinline__ unsigned __half2uint_rd(__half v) { return integer_of<unsigned>(__builtin_floorf(__half2float(v))); }
static __host__ __device__ __forceinline__ unsigned __half2uint_ru(__half v) { return integer_of<unsigned>(__builtin_ceilf(__half2float(v))); }
static __host__ __device__ __forceinline__ short __half2short_rn(__half v) { return integer_of<short>(__builtin_rintf(__half2float(v))); }
static __host__ __device__ __forceinline__ short __half2short_rd(__half v) { return integer_of<short>(__builtin_floorf(__half2float(v))); }
static __host__ __device__ __forceinline__ short __half2short_ru(__half v) { return integer_of<short>(__builtin_ceilf(__half2float(v))); }
static __host__ __device__ __forceinline__ unsigned short __half2ushort_rn(__half v) { return integer_of<unsigned short>(__builtin_rintf(__half2float(v))); }
static __host__ __device__ __forceinline__ unsigned short __half2ushort_rd(__half v) { return integer_of<unsigned short>(__builtin_floorf(__half2float(v))); }
static __host__ __device__ __forceinline__ unsigned short __half2ushort_ru(__half v) { return integer_of<unsigned short>(__builtin_ceilf(__half2float(v))); }
static __host__ __device__ __forceinline__ long long __half2ll_rn(__half v) { return integer_of<long long>(__builtin_rintf(__half2float(v))); }
static __host__ __device__ __forceinline__ long long __half2ll_rd(__half v) { return integer_of<long long>(__builtin_floorf(__half2float(v))); }
static __host__ __device__ __forceinline__ long long __half2ll_ru(__half v) { return integer_of<long long>(__builtin_ceilf(__half2float(v))); }
static __host__ __device__ __forceinline__ unsigned long long __half2ull_rn(__half v) { return integer_of<unsigned long long>(__builtin_rintf(__half2float(v))); }
static __host__ __device__ __forceinline__ unsigned long long __half2ull_rd(__half v) { return integer_of<unsigned long long>(__builtin_floorf(__half2float(v))); }
static __host__ __device__ __forceinline__ unsigned long long __half2ull_ru(__half v) { return integer_of<unsigned long long>(__builtin_ceilf(__half2float(v))); }
}  // namespace wavesmith
//@ end

//@ entry: bfloat16_names
//@ provides: nv_bfloat16, nv_bfloat162, nv_half, nv_half2, __nv_half, __nv_half2
//@ includes: hip/hip_bf16.h, hip/hip_fp16.h
//@ contract: exact
//@ note: NVIDIA's spellings of the types
using nv_bfloat16 = __hip_bfloat16;
using nv_bfloat162 = __hip_bfloat162;
using nv_half = __half;
using nv_half2 = __half2;
using __nv_half = __half;
using __nv_half2 = __half2;
//@ end

//@ entry: bfloat16_pairs
//@ provides: __float2bfloat162_rn, __floats2bfloat162_rn, __bfloat162bfloat162, make_bfloat162, __halves2bfloat162, __low2bfloat162, __high2bfloat162, __low2bfloat16, __high2bfloat16, __lows2bfloat162, __highs2bfloat162, __bfloat1622float2, __float22bfloat162_rn
//@ probe: __float2bfloat162_rn(1.f); __floats2bfloat162_rn(1.f, 2.f); __bfloat162bfloat162(__hip_bfloat16()); make_bfloat162(__hip_bfloat16(), __hip_bfloat16()); __halves2bfloat162(__hip_bfloat16(), __hip_bfloat16()); __low2bfloat162(__hip_bfloat162()); __high2bfloat162(__hip_bfloat162()); __low2bfloat16(__hip_bfloat162()); __high2bfloat16(__hip_bfloat162()); __bfloat1622float2(__hip_bfloat162()); __float22bfloat162_rn(float2())
//@ probing: each
//@ includes: hip/hip_bf16.h
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
static __host__ __device__ __forceinline__ __hip_bfloat162 pair(__hip_bfloat16 a, __hip_bfloat16 b) { __hip_bfloat162 r; r.x = a; r.y = b; return r; }
static __host__ __device__ __forceinline__ __hip_bfloat162 __float2bfloat162_rn(float a) { return pair(__float2bfloat16(a), __float2bfloat16(a)); }
static __host__ __device__ __forceinline__ __hip_bfloat162 __floats2bfloat162_rn(float a, float b) { return pair(__float2bfloat16(a), __float2bfloat16(b)); }
static __host__ __device__ __forceinline__ __hip_bfloat162 __float22bfloat162_rn(float2 a) { return pair(__float2bfloat16(a.x), __float2bfloat16(a.y)); }
static __host__ __device__ __forceinline__ __hip_bfloat162 __bfloat162bfloat162(__hip_bfloat16 a) { return pair(a, a); }
static __host__ __device__ __forceinline__ __hip_bfloat162 make_bfloat162(__hip_bfloat16 a, __hip_bfloat16 b) { return pair(a, b); }
static __host__ __device__ __forceinline__ __hip_bfloat162 __halves2bfloat162(__hip_bfloat16 a, __hip_bfloat16 b) { return pair(a, b); }
static __host__ __device__ __forceinline__ __hip_bfloat162 __low2bfloat162(__hip_bfloat162 a) { return pair(a.x, a.x); }
static __host__ __device__ __forceinline__ __hip_bfloat162 __high2bfloat162(__hip_bfloat162 a) { return pair(a.y, a.y); }
static __host__ __device__ __forceinline__ __hip_bfloat16 __low2bfloat16(__hip_bfloat162 a) { return a.x; }
static __host__ __device__ __forceinline__ __hip_bfloat16 __high2bfloat16(__hip_bfloat162 a) { return a.y; }
static __host__ __device__ __forceinline__ __hip_bfloat162 __lows2bfloat162(__hip_bfloat162 a, __hip_bfloat162 b) { return pair(a.x, b.x); }
static __host__ __device__ __forceinline__ __hip_bfloat162 __highs2bfloat162(__hip_bfloat162 a, __hip_bfloat162 b) { return pair(a.y, b.y); }
static __host__ __device__ __forceinline__ float2 __bfloat1622float2(__hip_bfloat162 a) { return make_float2(__bfloat162float(a.x), __bfloat162float(a.y)); }
}  // namespace wavesmith
//@ end

//@ entry: bfloat16_conversions
//@ provides: __float2bfloat16_rz, __float2bfloat16_rd, __float2bfloat16_ru, __float2bfloat16_rn, __bfloat16_as_ushort, __ushort_as_bfloat16, __bfloat16_as_short, __short_as_bfloat16, __int2bfloat16_rn, __uint2bfloat16_rn, __bfloat162int_rn, __bfloat162int_rz, __bfloat162uint_rz, __double2bfloat16
//@ probe: __float2bfloat16_rz(1.f); __float2bfloat16_rd(1.f); __float2bfloat16_ru(1.f); __float2bfloat16_rn(1.f); __bfloat16_as_ushort(__hip_bfloat16()); __ushort_as_bfloat16((unsigned short)1); __bfloat16_as_short(__hip_bfloat16()); __short_as_bfloat16((short)1); __int2bfloat16_rn(1); __uint2bfloat16_rn(1u); __bfloat162int_rn(__hip_bfloat16()); __bfloat162int_rz(__hip_bfloat16()); __bfloat162uint_rz(__hip_bfloat16()); __double2bfloat16(1.)
//@ probing: each
//@ includes: hip/hip_bf16.h
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
static __host__ __device__ __forceinline__ unsigned short bits_of(__hip_bfloat16 a) { unsigned short r; __builtin_memcpy(&r, &a, 2); return r; }
static __host__ __device__ __forceinline__ __hip_bfloat16 bfloat16_of(unsigned short a) { __hip_bfloat16 r; __builtin_memcpy(&r, &a, 2); return r; }
static __host__ __device__ __forceinline__ __hip_bfloat16 truncated(float a, int direction) {
  unsigned u;
  __builtin_memcpy(&u, &a, 4);
  if (a != a) return bfloat16_of(0x7fffu);
  const bool away = (u & 0xffffu) && (direction < 0 ? u >> 31 : direction > 0 ? !(u >> 31) : false);
  return bfloat16_of((unsigned short)((u >> 16) + away));
}
static __host__ __device__ __forceinline__ __hip_bfloat16 __float2bfloat16_rn(float a) { return __float2bfloat16(a); }
static __host__ __device__ __forceinline__ __hip_bfloat16 __float2bfloat16_rz(float a) { return truncated(a, 0); }
static __host__ __device__ __forceinline__ __hip_bfloat16 __float2bfloat16_rd(float a) { return truncated(a, -1); }
static __host__ __device__ __forceinline__ __hip_bfloat16 __float2bfloat16_ru(float a) { return truncated(a, 1); }
static __host__ __device__ __forceinline__ unsigned short __bfloat16_as_ushort(__hip_bfloat16 a) { return bits_of(a); }
static __host__ __device__ __forceinline__ __hip_bfloat16 __ushort_as_bfloat16(unsigned short a) { return bfloat16_of(a); }
static __host__ __device__ __forceinline__ short __bfloat16_as_short(__hip_bfloat16 a) { return (short)bits_of(a); }
static __host__ __device__ __forceinline__ __hip_bfloat16 __short_as_bfloat16(short a) { return bfloat16_of((unsigned short)a); }
static __host__ __device__ __forceinline__ __hip_bfloat16 odd_rounded(double a) {
  float f = (float)a;  // round to odd, so that the second rounding is right
  if ((double)f != a && f == f && !__builtin_isinf(f)) {
    unsigned u;
    __builtin_memcpy(&u, &f, 4);
    if (!(u & 1u)) { u += ((double)f < a) == (f >= 0.f) ? 1u : (unsigned)-1; __builtin_memcpy(&f, &u, 4); }
  }
  return __float2bfloat16(f);
}
static __host__ __device__ __forceinline__ __hip_bfloat16 __double2bfloat16(double a) { return odd_rounded(a); }
static __host__ __device__ __forceinline__ __hip_bfloat16 __int2bfloat16_rn(int a) { return odd_rounded((double)a); }
static __host__ __device__ __forceinline__ __hip_bfloat16 __uint2bfloat16_rn(unsigned a) { return odd_rounded((double)a); }
static __device__ __forceinline__ int __bfloat162int_rn(__hip_bfloat16 a) { return __float2int_rn(__bfloat162float(a)); }
static __device__ __forceinline__ int __bfloat162int_rz(__hip_bfloat16 a) { return __float2int_rz(__bfloat162float(a)); }
static __device__ __forceinline__ unsigned __bfloat162uint_rz(__hip_bfloat16 a) { return __float2uint_rz(__bfloat162float(a)); }
}  // namespace wavesmith
//@ end

//@ entry: half_extremes
//@ provides: __hmax_nan, __hmin_nan, __hmax2, __hmin2, __hmax2_nan, __hmin2_nan
//@ probe: __hmax2(__half2(), __half2()); __hmin2(__half2(), __half2()); __hmax2(__hip_bfloat162(), __hip_bfloat162()); __hmin2(__hip_bfloat162(), __hip_bfloat162())
//@ includes: hip/hip_fp16.h, hip/hip_bf16.h
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
template <class T> static __device__ __forceinline__ T pick(T a, T b, bool larger, bool nan) {
  const float x = (float)a, y = (float)b;
  if (x != x) return nan ? a : b;
  if (y != y) return nan ? b : a;
  return larger == (x > y) ? a : b;
}
template <class P> static __device__ __forceinline__ P pick2(P a, P b, bool larger, bool nan) {
  using T = typename std::conditional<std::is_same<P, __hip_bfloat162>::value, __hip_bfloat16, __half>::type;
  T av[2], bv[2];
  __builtin_memcpy(av, &a, sizeof(P));
  __builtin_memcpy(bv, &b, sizeof(P));
  av[0] = pick(av[0], bv[0], larger, nan);
  av[1] = pick(av[1], bv[1], larger, nan);
  __builtin_memcpy(&a, av, sizeof(P));
  return a;
}
template <class T> static __device__ __forceinline__ T __hmax_nan(T a, T b) { return pick(a, b, true, true); }
template <class T> static __device__ __forceinline__ T __hmin_nan(T a, T b) { return pick(a, b, false, true); }
template <class P> static __device__ __forceinline__ P __hmax2(P a, P b) { return pick2(a, b, true, false); }
template <class P> static __device__ __forceinline__ P __hmin2(P a, P b) { return pick2(a, b, false, false); }
template <class P> static __device__ __forceinline__ P __hmax2_nan(P a, P b) { return pick2(a, b, true, true); }
template <class P> static __device__ __forceinline__ P __hmin2_nan(P a, P b) { return pick2(a, b, false, true); }
}  // namespace wavesmith
//@ end

//@ entry: half_relu
//@ provides: __hfma_relu, __hfma2_relu, __hadd_sat, __hsub_sat, __hmul_sat, __hfma_sat, __hadd2_sat, __hmul2_sat, __hfma2_sat
//@ probe: __hadd_sat(__half(), __half()); __hfma_sat(__half(), __half(), __half()); __hadd2_sat(__half2(), __half2()); __hfma2_sat(__half2(), __half2(), __half2()); __hfma_relu(__half(), __half(), __half())
//@ probing: each
//@ includes: hip/hip_fp16.h
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
static __device__ __forceinline__ __half unit(__half a) { const float f = __half2float(a); return f >= 0.f ? (f <= 1.f ? a : __float2half(1.f)) : __float2half(0.f); }
static __device__ __forceinline__ __half positive(__half a) { const float f = __half2float(a); return f > 0.f || f != f ? a : __float2half(0.f); }
static __device__ __forceinline__ __half __hadd_sat(__half a, __half b) { return unit(__hadd(a, b)); }
static __device__ __forceinline__ __half __hsub_sat(__half a, __half b) { return unit(__hsub(a, b)); }
static __device__ __forceinline__ __half __hmul_sat(__half a, __half b) { return unit(__hmul(a, b)); }
static __device__ __forceinline__ __half __hfma_sat(__half a, __half b, __half c) { return unit(__hfma(a, b, c)); }
static __device__ __forceinline__ __half __hfma_relu(__half a, __half b, __half c) { return positive(__hfma(a, b, c)); }
static __device__ __forceinline__ __half2 unit2(__half2 a) { return __halves2half2(unit(__low2half(a)), unit(__high2half(a))); }
static __device__ __forceinline__ __half2 __hadd2_sat(__half2 a, __half2 b) { return unit2(__hadd2(a, b)); }
static __device__ __forceinline__ __half2 __hmul2_sat(__half2 a, __half2 b) { return unit2(__hmul2(a, b)); }
static __device__ __forceinline__ __half2 __hfma2_sat(__half2 a, __half2 b, __half2 c) { return unit2(__hfma2(a, b, c)); }
static __device__ __forceinline__ __half2 __hfma2_relu(__half2 a, __half2 b, __half2 c) { a = __hfma2(a, b, c); return __halves2half2(positive(__low2half(a)), positive(__high2half(a))); }
}  // namespace wavesmith
//@ end

//@ entry: half_constructors
//@ provides: make_half2, __float2half2_rn, __float22half2_rn, __half2half2
//@ probe: make_half2(__half(), __half()); __float2half2_rn(1.f); __float22half2_rn(float2()); __half2half2(__half())
//@ probing: each
//@ includes: hip/hip_fp16.h
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
static __host__ __device__ __forceinline__ __half2 make_half2(__half a, __half b) { __half v[2] = {a, b}; __half2 r; __builtin_memcpy(&r, v, 4); return r; }
static __host__ __device__ __forceinline__ __half2 __float2half2_rn(float a) { return wavesmith::make_half2(__float2half(a), __float2half(a)); }
static __host__ __device__ __forceinline__ __half2 __float22half2_rn(float2 a) { return wavesmith::make_half2(__float2half(a.x), __float2half(a.y)); }
static __host__ __device__ __forceinline__ __half2 __half2half2(__half a) { return wavesmith::make_half2(a, a); }
}  // namespace wavesmith
//@ end
