//@ entry: fp8_ocp
//@ header: cuda_fp8.h, cuda_fp8.hpp
//@ provides: __nv_fp8_e4m3, __nv_fp8_e5m2, __nv_fp8x2_e4m3, __nv_fp8x2_e5m2, __nv_fp8x4_e4m3, __nv_fp8x4_e5m2, __nv_fp8_storage_t, __nv_fp8x2_storage_t, __nv_fp8x4_storage_t, __nv_fp8_interpretation_t, __nv_saturation_t, __NV_E4M3, __NV_E5M2, __NV_SATFINITE, __NV_NOSAT, __nv_cvt_float_to_fp8, __nv_cvt_double_to_fp8, __nv_cvt_float2_to_fp8x2, __nv_cvt_double2_to_fp8x2, __nv_cvt_halfraw_to_fp8, __nv_cvt_halfraw2_to_fp8x2, __nv_cvt_bfloat16raw_to_fp8, __nv_cvt_bfloat16raw2_to_fp8x2, __nv_cvt_fp8_to_halfraw, __nv_cvt_fp8x2_to_halfraw2
//@ includes: hip/hip_fp16.h, hip/hip_bf16.h
//@ contract: exact
//@ note: OCP bytes (e4m3 up to 448, e5m2 up to 57344) on every architecture, converted in software; HIP maps these names to FNUZ on gfx942, which reads and writes different bytes
namespace wavesmith {
/// The OCP byte nearest to x (ties to even), 3 or 2 mantissa bits; saturate: overflow gives the largest finite value.
template <int Mantissa> static __host__ __device__ __forceinline__ unsigned char to_fp8(double x, bool saturate) {
  constexpr int bias = Mantissa == 3 ? 7 : 15;
  constexpr unsigned largest = Mantissa == 3 ? 0x7eu : 0x7bu;
  unsigned long long u;
  __builtin_memcpy(&u, &x, 8);
  const unsigned sign = (unsigned)(u >> 56) & 0x80u;
  const long long magnitude = (long long)(u & 0x7fffffffffffffffull);
  if (magnitude > 0x7ff0000000000000ll) return (unsigned char)(Mantissa == 3 ? 0x7fu : 0x7eu);
  const int exponent = (int)(magnitude >> 52) - 1023;
  if (magnitude == 0) return (unsigned char)sign;
  const int lowest = 1 - bias;
  const int scale = (exponent < lowest ? lowest : exponent) - Mantissa;  // weight of the last kept bit
  const unsigned long long significand = (magnitude & 0xfffffffffffffull) | 0x10000000000000ull;
  const int drop = 52 + scale - exponent;
  unsigned long long kept = drop > 62 ? 0 : significand >> drop;
  const unsigned long long rest = drop > 62 ? significand : significand & ((1ull << drop) - 1);
  const unsigned long long half = drop > 62 ? ~0ull : 1ull << (drop - 1);
  kept += rest > half || (rest == half && (kept & 1));
  unsigned code = exponent < lowest ? (unsigned)kept : (unsigned)(((exponent + bias - 1) << Mantissa) + (int)kept);
  if (magnitude == 0x7ff0000000000000ll || exponent > 20 || code > largest)
    code = saturate ? largest : Mantissa == 3 ? 0x7fu : 0x7cu;
  return (unsigned char)(sign | code);
}
template <int Mantissa> static __host__ __device__ __forceinline__ float from_fp8(unsigned char code) {
  constexpr int bias = Mantissa == 3 ? 7 : 15;
  const unsigned exponent = (code & 0x7fu) >> Mantissa, fraction = code & ((1u << Mantissa) - 1u);
  unsigned u;
  if (Mantissa == 3 ? (code & 0x7fu) == 0x7fu : (code & 0x7fu) > 0x7cu) u = 0x7fffffffu;
  else if (Mantissa == 2 && (code & 0x7fu) == 0x7cu) u = 0x7f800000u;
  else if (exponent) u = ((exponent + 127u - bias) << 23) | (fraction << (23 - Mantissa));
  else { const float f = (float)fraction * (Mantissa == 3 ? 0x1p-9f : 0x1p-16f); __builtin_memcpy(&u, &f, 4); }
  u |= (unsigned)(code & 0x80u) << 24;
  float result;
  __builtin_memcpy(&result, &u, 4);
  return result;
}
}  // namespace wavesmith
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
typedef enum { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;
static __host__ __device__ __forceinline__ __nv_fp8_storage_t __nv_cvt_double_to_fp8(double x, __nv_saturation_t s, __nv_fp8_interpretation_t f) {
  return f == __NV_E4M3 ? wavesmith::to_fp8<3>(x, s == __NV_SATFINITE) : wavesmith::to_fp8<2>(x, s == __NV_SATFINITE);
}
static __host__ __device__ __forceinline__ __nv_fp8_storage_t __nv_cvt_float_to_fp8(float x, __nv_saturation_t s, __nv_fp8_interpretation_t f) { return __nv_cvt_double_to_fp8(x, s, f); }
static __host__ __device__ __forceinline__ __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 x, __nv_saturation_t s, __nv_fp8_interpretation_t f) {
  return (__nv_fp8x2_storage_t)(__nv_cvt_double_to_fp8(x.x, s, f) | (__nv_cvt_double_to_fp8(x.y, s, f) << 8));
}
static __host__ __device__ __forceinline__ __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 x, __nv_saturation_t s, __nv_fp8_interpretation_t f) { return __nv_cvt_double2_to_fp8x2(make_double2(x.x, x.y), s, f); }
static __host__ __device__ __forceinline__ __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t f) { return __nv_cvt_double_to_fp8(__half2float(__half(x)), s, f); }
static __host__ __device__ __forceinline__ __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t f) {
  __half h[2];
  __builtin_memcpy(h, &x, 4);
  return __nv_cvt_double2_to_fp8x2(make_double2(__half2float(h[0]), __half2float(h[1])), s, f);
}
static __host__ __device__ __forceinline__ __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__hip_bfloat16_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t f) { __hip_bfloat16 b; __builtin_memcpy(&b, &x, 2); return __nv_cvt_double_to_fp8(__bfloat162float(b), s, f); }
static __host__ __device__ __forceinline__ __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__hip_bfloat162_raw x, __nv_saturation_t s, __nv_fp8_interpretation_t f) {
  __hip_bfloat16 b[2];
  __builtin_memcpy(b, &x, 4);
  return __nv_cvt_double2_to_fp8x2(make_double2(__bfloat162float(b[0]), __bfloat162float(b[1])), s, f);
}
static __host__ __device__ __forceinline__ __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t x, __nv_fp8_interpretation_t f) {
  const __half h = __float2half(f == __NV_E4M3 ? wavesmith::from_fp8<3>(x) : wavesmith::from_fp8<2>(x));
  __half_raw r;
  __builtin_memcpy(&r, &h, 2);
  return r;
}
static __host__ __device__ __forceinline__ __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t x, __nv_fp8_interpretation_t f) {
  __half_raw h[2] = {__nv_cvt_fp8_to_halfraw((unsigned char)x, f), __nv_cvt_fp8_to_halfraw((unsigned char)(x >> 8), f)};
  __half2_raw r;
  __builtin_memcpy(&r, h, 4);
  return r;
}
#define WAVESMITH_FP8(NAME, MANTISSA, KIND) \
  struct NAME { \
    __nv_fp8_storage_t __x; \
    NAME() = default; \
    __host__ __device__ NAME(double v) : __x(wavesmith::to_fp8<MANTISSA>(v, true)) {} \
    __host__ __device__ NAME(float v) : __x(wavesmith::to_fp8<MANTISSA>(v, true)) {} \
    __host__ __device__ explicit NAME(int v) : __x(wavesmith::to_fp8<MANTISSA>(v, true)) {} \
    __host__ __device__ explicit NAME(unsigned v) : __x(wavesmith::to_fp8<MANTISSA>(v, true)) {} \
    __host__ __device__ explicit NAME(long long v) : __x(wavesmith::to_fp8<MANTISSA>((double)v, true)) {} \
    __host__ __device__ explicit NAME(__half v) : __x(wavesmith::to_fp8<MANTISSA>(__half2float(v), true)) {} \
    __host__ __device__ explicit NAME(__hip_bfloat16 v) : __x(wavesmith::to_fp8<MANTISSA>(__bfloat162float(v), true)) {} \
    __host__ __device__ explicit operator float() const { return wavesmith::from_fp8<MANTISSA>(__x); } \
    __host__ __device__ explicit operator double() const { return wavesmith::from_fp8<MANTISSA>(__x); } \
    __host__ __device__ explicit operator __half() const { return __float2half(wavesmith::from_fp8<MANTISSA>(__x)); } \
    __host__ __device__ explicit operator __hip_bfloat16() const { return __float2bfloat16(wavesmith::from_fp8<MANTISSA>(__x)); } \
    __host__ __device__ explicit operator int() const { return (int)wavesmith::from_fp8<MANTISSA>(__x); } \
    __host__ __device__ explicit operator bool() const { return (__x & 0x7fu) != 0; } \
  };
#define WAVESMITH_FP8_PAIR(NAME, KIND) \
  struct NAME { \
    __nv_fp8x2_storage_t __x; \
    NAME() = default; \
    __host__ __device__ explicit NAME(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, KIND)) {} \
    __host__ __device__ explicit NAME(double2 v) : __x(__nv_cvt_double2_to_fp8x2(v, __NV_SATFINITE, KIND)) {} \
    __host__ __device__ explicit NAME(__half2 v) { __half2_raw r; __builtin_memcpy(&r, &v, 4); __x = __nv_cvt_halfraw2_to_fp8x2(r, __NV_SATFINITE, KIND); } \
    __host__ __device__ explicit NAME(__hip_bfloat162 v) { __hip_bfloat162_raw r; __builtin_memcpy(&r, &v, 4); __x = __nv_cvt_bfloat16raw2_to_fp8x2(r, __NV_SATFINITE, KIND); } \
    __host__ __device__ explicit operator float2() const { __half2 h = (__half2)*this; return make_float2(__half2float(__low2half(h)), __half2float(__high2half(h))); } \
    __host__ __device__ explicit operator __half2() const { const __half2_raw r = __nv_cvt_fp8x2_to_halfraw2(__x, KIND); __half2 h; __builtin_memcpy(&h, &r, 4); return h; } \
  };
#define WAVESMITH_FP8_QUAD(NAME, PAIR, KIND) \
  struct NAME { \
    __nv_fp8x4_storage_t __x; \
    NAME() = default; \
    __host__ __device__ explicit NAME(float4 v) : __x(__nv_cvt_float2_to_fp8x2(make_float2(v.x, v.y), __NV_SATFINITE, KIND) | ((unsigned)__nv_cvt_float2_to_fp8x2(make_float2(v.z, v.w), __NV_SATFINITE, KIND) << 16)) {} \
    __host__ __device__ explicit operator float4() const { \
      PAIR low, high; \
      low.__x = (unsigned short)__x; \
      high.__x = (unsigned short)(__x >> 16); \
      const float2 a = (float2)low, b = (float2)high; \
      return make_float4(a.x, a.y, b.x, b.y); \
    } \
  };
WAVESMITH_FP8(__nv_fp8_e4m3, 3, __NV_E4M3)
WAVESMITH_FP8(__nv_fp8_e5m2, 2, __NV_E5M2)
WAVESMITH_FP8_PAIR(__nv_fp8x2_e4m3, __NV_E4M3)
WAVESMITH_FP8_PAIR(__nv_fp8x2_e5m2, __NV_E5M2)
WAVESMITH_FP8_QUAD(__nv_fp8x4_e4m3, __nv_fp8x2_e4m3, __NV_E4M3)
WAVESMITH_FP8_QUAD(__nv_fp8x4_e5m2, __nv_fp8x2_e5m2, __NV_E5M2)
//@ end
