// __half, __nv_bfloat16 and the fp8 types: stored bits, arithmetic in float rounded once to nearest even.
#pragma once
#include "arithmetic.h"
namespace wavesmith_reference {
inline unsigned short half_bits(float f) { const _Float16 h = (_Float16)f; unsigned short b; memcpy(&b, &h, 2); return b; }
inline float half_float(unsigned short b) { _Float16 h; memcpy(&h, &b, 2); return (float)h; }
inline unsigned short half_bits(double d) { const _Float16 h = (_Float16)d; unsigned short b; memcpy(&b, &h, 2); return b; }
inline unsigned short brain_bits(float f) { const unsigned u = wavesmith_bits<unsigned>(f); return f != f ? 0x7fff : (unsigned short)((u + 0x7fffu + (u >> 16 & 1u)) >> 16); }
inline unsigned short brain_bits(double d) {
  float f = (float)d;
  if ((double)f != d && f == f && !std::isinf(f)) {
    unsigned u = wavesmith_bits<unsigned>(f);
    if (!(u & 1u)) f = wavesmith_bits<float>(((double)f < d) == (f >= 0) ? u + 1 : u - 1);
  }
  return brain_bits(f);
}
inline float brain_float(unsigned short b) { return wavesmith_bits<float>((unsigned)b << 16); }
}  // namespace wavesmith_reference
struct __half_raw { unsigned short x; };
struct __half2_raw { unsigned short x, y; };
struct __nv_bfloat16_raw { unsigned short x; };
struct __nv_bfloat162_raw { unsigned short x, y; };
#define WAVESMITH_HALF(NAME, RAW, BITS, FLOAT) \
  struct NAME { \
    unsigned short __x; \
    NAME() = default; \
    NAME(float v) : __x(wavesmith_reference::BITS(v)) {} \
    NAME(double v) : __x(wavesmith_reference::BITS(v)) {} \
    NAME(int v) : __x(wavesmith_reference::BITS((double)v)) {} \
    NAME(unsigned v) : __x(wavesmith_reference::BITS((double)v)) {} \
    NAME(long long v) : __x(wavesmith_reference::BITS((double)v)) {} \
    NAME(unsigned long long v) : __x(wavesmith_reference::BITS((double)v)) {} \
    NAME(RAW r) : __x(r.x) {} \
    operator float() const { return wavesmith_reference::FLOAT(__x); } \
    operator RAW() const { return {__x}; } \
    NAME& operator+=(NAME o) { return *this = NAME((float)*this + (float)o); } \
    NAME& operator-=(NAME o) { return *this = NAME((float)*this - (float)o); } \
    NAME& operator*=(NAME o) { return *this = NAME((float)*this * (float)o); } \
    NAME& operator/=(NAME o) { return *this = NAME((float)*this / (float)o); } \
    friend NAME operator+(NAME a, NAME b) { return NAME((float)a + (float)b); } \
    friend NAME operator-(NAME a, NAME b) { return NAME((float)a - (float)b); } \
    friend NAME operator*(NAME a, NAME b) { return NAME((float)a * (float)b); } \
    friend NAME operator/(NAME a, NAME b) { return NAME((float)a / (float)b); } \
    friend NAME operator-(NAME a) { a.__x ^= 0x8000u; return a; } \
    friend bool operator<(NAME a, NAME b) { return (float)a < (float)b; } \
    friend bool operator>(NAME a, NAME b) { return (float)a > (float)b; } \
    friend bool operator<=(NAME a, NAME b) { return (float)a <= (float)b; } \
    friend bool operator>=(NAME a, NAME b) { return (float)a >= (float)b; } \
    friend bool operator==(NAME a, NAME b) { return (float)a == (float)b; } \
    friend bool operator!=(NAME a, NAME b) { return (float)a != (float)b; } \
  };
WAVESMITH_HALF(__half, __half_raw, half_bits, half_float)
WAVESMITH_HALF(__nv_bfloat16, __nv_bfloat16_raw, brain_bits, brain_float)
#define WAVESMITH_PAIR(NAME, H, RAW) \
  struct __attribute__((aligned(4))) NAME { \
    H x, y; \
    NAME() = default; \
    NAME(H a, H b) : x(a), y(b) {} \
    NAME(RAW r) { memcpy(this, &r, 4); } \
    operator RAW() const { RAW r; memcpy(&r, this, 4); return r; } \
    friend NAME operator+(NAME a, NAME b) { return {a.x + b.x, a.y + b.y}; } \
    friend NAME operator-(NAME a, NAME b) { return {a.x - b.x, a.y - b.y}; } \
    friend NAME operator*(NAME a, NAME b) { return {a.x * b.x, a.y * b.y}; } \
    friend NAME operator/(NAME a, NAME b) { return {a.x / b.x, a.y / b.y}; } \
    NAME& operator+=(NAME o) { return *this = *this + o; } \
    NAME& operator-=(NAME o) { return *this = *this - o; } \
    NAME& operator*=(NAME o) { return *this = *this * o; } \
  };
WAVESMITH_PAIR(__half2, __half, __half2_raw)
WAVESMITH_PAIR(__nv_bfloat162, __nv_bfloat16, __nv_bfloat162_raw)
using half = __half;
using half2 = __half2;
using nv_half = __half;
using nv_half2 = __half2;
using __nv_half = __half;
using __nv_half2 = __half2;
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

#define WAVESMITH_HALF_API(H, P) \
  inline H __hadd(H a, H b) { return a + b; } \
  inline H __hsub(H a, H b) { return a - b; } \
  inline H __hmul(H a, H b) { return a * b; } \
  inline H __hdiv(H a, H b) { return a / b; } \
  inline H __hadd_rn(H a, H b) { return a + b; } \
  inline H __hmul_rn(H a, H b) { return a * b; } \
  inline H __hfma(H a, H b, H c) { return H(fma((double)(float)a, (double)(float)b, (double)(float)c)); } \
  inline H __hneg(H a) { return -a; } \
  inline H __habs(H a) { a.__x &= 0x7fffu; return a; } \
  inline H __hmax(H a, H b) { return a != a ? b : b != b ? a : a > b ? a : b; } \
  inline H __hmin(H a, H b) { return a != a ? b : b != b ? a : a < b ? a : b; } \
  inline H __hmax_nan(H a, H b) { return a != a ? a : b != b ? b : a > b ? a : b; } \
  inline H __hmin_nan(H a, H b) { return a != a ? a : b != b ? b : a < b ? a : b; } \
  inline H __hadd_sat(H a, H b) { return H(__saturatef((float)(a + b))); } \
  inline H __hsub_sat(H a, H b) { return H(__saturatef((float)(a - b))); } \
  inline H __hmul_sat(H a, H b) { return H(__saturatef((float)(a * b))); } \
  inline H __hfma_sat(H a, H b, H c) { return H(__saturatef((float)__hfma(a, b, c))); } \
  inline H __hfma_relu(H a, H b, H c) { const H r = __hfma(a, b, c); return r > H(0.f) || r != r ? r : H(0.f); } \
  inline bool __heq(H a, H b) { return a == b; } \
  inline bool __hne(H a, H b) { return (float)a == (float)a && (float)b == (float)b && a != b; } \
  inline bool __hlt(H a, H b) { return a < b; } \
  inline bool __hle(H a, H b) { return a <= b; } \
  inline bool __hgt(H a, H b) { return a > b; } \
  inline bool __hge(H a, H b) { return a >= b; } \
  inline bool __hisnan(H a) { return a != a; } \
  inline int __hisinf(H a) { return std::isinf((float)a) ? ((float)a > 0 ? 1 : -1) : 0; } \
  inline H hexp(H a) { return H(expf((float)a)); } \
  inline H hlog(H a) { return H(logf((float)a)); } \
  inline H hsqrt(H a) { return H(sqrtf((float)a)); } \
  inline H hrsqrt(H a) { return H(rsqrtf((float)a)); } \
  inline H hrcp(H a) { return H(1.f / (float)a); } \
  inline H hsin(H a) { return H(sinf((float)a)); } \
  inline H hcos(H a) { return H(cosf((float)a)); } \
  inline H hexp2(H a) { return H(exp2f((float)a)); } \
  inline H hlog2(H a) { return H(log2f((float)a)); } \
  inline H hceil(H a) { return H(ceilf((float)a)); } \
  inline H hfloor(H a) { return H(floorf((float)a)); } \
  inline H htrunc(H a) { return H(truncf((float)a)); } \
  inline H hrint(H a) { return H(rintf((float)a)); } \
  inline P __hadd2(P a, P b) { return a + b; } \
  inline P __hsub2(P a, P b) { return a - b; } \
  inline P __hmul2(P a, P b) { return a * b; } \
  inline P __h2div(P a, P b) { return a / b; } \
  inline P __hfma2(P a, P b, P c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; } \
  inline P __hfma2_relu(P a, P b, P c) { return {__hfma_relu(a.x, b.x, c.x), __hfma_relu(a.y, b.y, c.y)}; } \
  inline P __hadd2_sat(P a, P b) { return {__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y)}; } \
  inline P __hmul2_sat(P a, P b) { return {__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y)}; } \
  inline P __hfma2_sat(P a, P b, P c) { return {__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y)}; } \
  inline P __hmax2(P a, P b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; } \
  inline P __hmin2(P a, P b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; } \
  inline P __hmax2_nan(P a, P b) { return {__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y)}; } \
  inline P __hmin2_nan(P a, P b) { return {__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y)}; } \
  inline P __hneg2(P a) { return {-a.x, -a.y}; } \
  inline P __habs2(P a) { return {__habs(a.x), __habs(a.y)}; } \
  inline P h2exp(P a) { return {hexp(a.x), hexp(a.y)}; } \
  inline P h2rcp(P a) { return {hrcp(a.x), hrcp(a.y)}; } \
  inline P h2sqrt(P a) { return {hsqrt(a.x), hsqrt(a.y)}; } \
  inline P h2rsqrt(P a) { return {hrsqrt(a.x), hrsqrt(a.y)}; } \
  inline P __heq2(P a, P b) { return {H(a.x == b.x ? 1.f : 0.f), H(a.y == b.y ? 1.f : 0.f)}; } \
  inline P __hlt2(P a, P b) { return {H(a.x < b.x ? 1.f : 0.f), H(a.y < b.y ? 1.f : 0.f)}; } \
  inline P __hgt2(P a, P b) { return {H(a.x > b.x ? 1.f : 0.f), H(a.y > b.y ? 1.f : 0.f)}; } \
  inline float __low2float(P a) { return (float)a.x; } \
  inline float __high2float(P a) { return (float)a.y; } \
  inline H atomicAdd(H* p, H v) { wavesmith_reference::interleave(); const H old = *p; *p = old + v; return old; } \
  inline P atomicAdd(P* p, P v) { wavesmith_reference::interleave(); const P old = *p; *p = old + v; return old; }
WAVESMITH_HALF_API(__half, __half2)
WAVESMITH_HALF_API(__nv_bfloat16, __nv_bfloat162)
inline __half __float2half(float v) { return __half(v); }
inline __half __float2half_rn(float v) { return __half(v); }
inline __half __double2half(double v) { return __half(v); }
inline float __half2float(__half v) { return (float)v; }
inline __half2 __float2half2_rn(float v) { return {__half(v), __half(v)}; }
inline __half2 __floats2half2_rn(float a, float b) { return {__half(a), __half(b)}; }
inline __half2 __float22half2_rn(float2 v) { return {__half(v.x), __half(v.y)}; }
inline float2 __half22float2(__half2 v) { return {(float)v.x, (float)v.y}; }
inline __half2 __half2half2(__half v) { return {v, v}; }
inline __half2 __halves2half2(__half a, __half b) { return {a, b}; }
inline __half2 make_half2(__half a, __half b) { return {a, b}; }
inline __half __low2half(__half2 v) { return v.x; }
inline __half __high2half(__half2 v) { return v.y; }
inline __half2 __low2half2(__half2 v) { return {v.x, v.x}; }
inline __half2 __high2half2(__half2 v) { return {v.y, v.y}; }
inline __half2 __lows2half2(__half2 a, __half2 b) { return {a.x, b.x}; }
inline __half2 __highs2half2(__half2 a, __half2 b) { return {a.y, b.y}; }
inline __half2 __lowhigh2highlow(__half2 v) { return {v.y, v.x}; }
inline unsigned short __half_as_ushort(__half v) { return v.__x; }
inline short __half_as_short(__half v) { return (short)v.__x; }
inline __half __ushort_as_half(unsigned short v) { return __half(__half_raw{v}); }
inline __half __short_as_half(short v) { return __half(__half_raw{(unsigned short)v}); }
namespace wavesmith_reference {
/// CUDA's conversions to integers: no number is 0, what is out of range is the nearest that is in it.
template <class T> T half_to_integer(double v) {
  if (std::isnan(v)) return 0;
  if (v <= (double)std::numeric_limits<T>::lowest()) return std::numeric_limits<T>::lowest();
  return v >= (double)std::numeric_limits<T>::max() ? std::numeric_limits<T>::max() : (T)v;
}
}  // namespace wavesmith_reference
#define WAVESMITH_TO_INTEGER(NAME, H, T, SHORT) \
  inline T NAME##2##SHORT##_rn(H v) { return wavesmith_reference::half_to_integer<T>(std::nearbyint((double)(float)v)); } \
  inline T NAME##2##SHORT##_rz(H v) { return wavesmith_reference::half_to_integer<T>(std::trunc((double)(float)v)); } \
  inline T NAME##2##SHORT##_rd(H v) { return wavesmith_reference::half_to_integer<T>(std::floor((double)(float)v)); } \
  inline T NAME##2##SHORT##_ru(H v) { return wavesmith_reference::half_to_integer<T>(std::ceil((double)(float)v)); }
#define WAVESMITH_TO_INTEGERS(NAME, H) \
  WAVESMITH_TO_INTEGER(NAME, H, int, int) WAVESMITH_TO_INTEGER(NAME, H, unsigned, uint) \
  WAVESMITH_TO_INTEGER(NAME, H, short, short) WAVESMITH_TO_INTEGER(NAME, H, unsigned short, ushort) \
  WAVESMITH_TO_INTEGER(NAME, H, long long, ll) WAVESMITH_TO_INTEGER(NAME, H, unsigned long long, ull)
WAVESMITH_TO_INTEGERS(__half, __half)
WAVESMITH_TO_INTEGERS(__bfloat16, __nv_bfloat16)
inline __half __int2half_rn(int v) { return __half(v); }
inline __half __uint2half_rn(unsigned v) { return __half(v); }
inline __nv_bfloat16 __float2bfloat16(float v) { return __nv_bfloat16(v); }
inline __nv_bfloat16 __float2bfloat16_rn(float v) { return __nv_bfloat16(v); }
inline __nv_bfloat16 __double2bfloat16(double v) { return __nv_bfloat16(v); }
inline __nv_bfloat16 __int2bfloat16_rn(int v) { return __nv_bfloat16(v); }
inline __nv_bfloat16 __uint2bfloat16_rn(unsigned v) { return __nv_bfloat16(v); }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short v) { return __nv_bfloat16(__nv_bfloat16_raw{v}); }
inline __nv_bfloat16 __short_as_bfloat16(short v) { return __ushort_as_bfloat16((unsigned short)v); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 v) { return v.__x; }
inline short __bfloat16_as_short(__nv_bfloat16 v) { return (short)v.__x; }
inline __nv_bfloat16 __float2bfloat16_rz(float v) { return v != v ? __ushort_as_bfloat16(0x7fff) : __ushort_as_bfloat16((unsigned short)(__float_as_uint(v) >> 16)); }
inline __nv_bfloat16 __float2bfloat16_rd(float v) { const __nv_bfloat16 t = __float2bfloat16_rz(v); return (float)t > v ? __ushort_as_bfloat16((unsigned short)(t.__x + 1)) : t; }
inline __nv_bfloat16 __float2bfloat16_ru(float v) { const __nv_bfloat16 t = __float2bfloat16_rz(v); return (float)t < v ? __ushort_as_bfloat16((unsigned short)(t.__x + 1)) : t; }
inline float __bfloat162float(__nv_bfloat16 v) { return (float)v; }
inline __nv_bfloat162 __float2bfloat162_rn(float v) { return {__nv_bfloat16(v), __nv_bfloat16(v)}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b) { return {__nv_bfloat16(a), __nv_bfloat16(b)}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {__nv_bfloat16(v.x), __nv_bfloat16(v.y)}; }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {(float)v.x, (float)v.y}; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 v) { return {v, v}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b) { return {a, b}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 v) { return {v.x, v.x}; }
inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 v) { return {v.y, v.y}; }
inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.x, b.x}; }
inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b) { return {a.y, b.y}; }

// OCP fp8: every code decoded by definition, encoding by nearest search with ties to even.
typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;
typedef enum { __NV_NOSAT, __NV_SATFINITE } __nv_saturation_t;
typedef enum { __NV_E4M3, __NV_E5M2 } __nv_fp8_interpretation_t;
namespace wavesmith_reference {
inline double fp8_value(unsigned code, bool e5) {
  const int m = e5 ? 2 : 3, bias = e5 ? 15 : 7, e = (int)(code >> m & (e5 ? 31u : 15u)), f = (int)(code & ((1u << m) - 1));
  const double sign = code & 0x80u ? -1.0 : 1.0;
  if (e5 && e == 31) return f ? NAN : sign * INFINITY;
  if (!e5 && (code & 0x7fu) == 0x7fu) return NAN;
  return sign * (e ? ldexp(1.0 + ldexp(f, -m), e - bias) : ldexp(f, 1 - bias - m));
}
inline unsigned char fp8_code(double v, bool e5, bool saturate) {
  const unsigned sign = std::signbit(v) ? 0x80u : 0u;
  if (v != v) return (unsigned char)(sign | (e5 ? 0x7eu : 0x7fu));
  const double a = fabs(v);
  const unsigned top = e5 ? 0x7bu : 0x7eu;
  const double largest = fp8_value(top, e5), step = largest - fp8_value(top - 1, e5);
  if (a > largest + step / 2 || (a == largest + step / 2 && (top & 1u))) return (unsigned char)(sign | (saturate ? top : e5 ? 0x7cu : 0x7fu));
  unsigned best = 0;
  for (unsigned c = 0; c <= top; c++) {
    const double d = fabs(fp8_value(c, e5) - a), b = fabs(fp8_value(best, e5) - a);
    if (d < b || (d == b && !(c & 1u))) best = c;
  }
  return (unsigned char)(sign | best);
}
}  // namespace wavesmith_reference
inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double v, __nv_saturation_t s, __nv_fp8_interpretation_t f) { return wavesmith_reference::fp8_code(v, f == __NV_E5M2, s == __NV_SATFINITE); }
inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(float v, __nv_saturation_t s, __nv_fp8_interpretation_t f) { return __nv_cvt_double_to_fp8(v, s, f); }
inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(double2 v, __nv_saturation_t s, __nv_fp8_interpretation_t f) { return (unsigned short)(__nv_cvt_double_to_fp8(v.x, s, f) | __nv_cvt_double_to_fp8(v.y, s, f) << 8); }
inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(float2 v, __nv_saturation_t s, __nv_fp8_interpretation_t f) { return __nv_cvt_double2_to_fp8x2({v.x, v.y}, s, f); }
inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(__half_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t f) { return __nv_cvt_double_to_fp8((float)__half(v), s, f); }
inline __nv_fp8x2_storage_t __nv_cvt_halfraw2_to_fp8x2(__half2_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t f) { return (unsigned short)(__nv_cvt_halfraw_to_fp8({v.x}, s, f) | __nv_cvt_halfraw_to_fp8({v.y}, s, f) << 8); }
inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(__nv_bfloat16_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t f) { return __nv_cvt_double_to_fp8((float)__nv_bfloat16(v), s, f); }
inline __nv_fp8x2_storage_t __nv_cvt_bfloat16raw2_to_fp8x2(__nv_bfloat162_raw v, __nv_saturation_t s, __nv_fp8_interpretation_t f) { return (unsigned short)(__nv_cvt_bfloat16raw_to_fp8({v.x}, s, f) | __nv_cvt_bfloat16raw_to_fp8({v.y}, s, f) << 8); }
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t v, __nv_fp8_interpretation_t f) { return __half((float)wavesmith_reference::fp8_value(v, f == __NV_E5M2)); }
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t v, __nv_fp8_interpretation_t f) { return {__nv_cvt_fp8_to_halfraw((unsigned char)v, f).x, __nv_cvt_fp8_to_halfraw((unsigned char)(v >> 8), f).x}; }
#define WAVESMITH_FP8(NAME, E5) \
  struct NAME { \
    __nv_fp8_storage_t __x; \
    NAME() = default; \
    NAME(float v) : __x(wavesmith_reference::fp8_code(v, E5, true)) {} \
    NAME(double v) : __x(wavesmith_reference::fp8_code(v, E5, true)) {} \
    explicit NAME(int v) : __x(wavesmith_reference::fp8_code(v, E5, true)) {} \
    explicit NAME(unsigned v) : __x(wavesmith_reference::fp8_code(v, E5, true)) {} \
    explicit NAME(__half v) : __x(wavesmith_reference::fp8_code((float)v, E5, true)) {} \
    explicit NAME(__nv_bfloat16 v) : __x(wavesmith_reference::fp8_code((float)v, E5, true)) {} \
    explicit operator float() const { return (float)wavesmith_reference::fp8_value(__x, E5); } \
    explicit operator double() const { return wavesmith_reference::fp8_value(__x, E5); } \
    explicit operator __half() const { return __half((float)*this); } \
    explicit operator __nv_bfloat16() const { return __nv_bfloat16((float)*this); } \
    explicit operator int() const { return (int)(float)*this; } \
    explicit operator bool() const { return (__x & 0x7fu) != 0; } \
  };
WAVESMITH_FP8(__nv_fp8_e4m3, false)
WAVESMITH_FP8(__nv_fp8_e5m2, true)
#define WAVESMITH_FP8_PAIR(NAME, KIND) \
  struct NAME { \
    __nv_fp8x2_storage_t __x; \
    NAME() = default; \
    explicit NAME(float2 v) : __x(__nv_cvt_float2_to_fp8x2(v, __NV_SATFINITE, KIND)) {} \
    explicit NAME(__half2 v) : __x(__nv_cvt_halfraw2_to_fp8x2((__half2_raw)v, __NV_SATFINITE, KIND)) {} \
    explicit NAME(__nv_bfloat162 v) : __x(__nv_cvt_bfloat16raw2_to_fp8x2((__nv_bfloat162_raw)v, __NV_SATFINITE, KIND)) {} \
    explicit operator __half2() const { return __half2(__nv_cvt_fp8x2_to_halfraw2(__x, KIND)); } \
    explicit operator float2() const { return __half22float2((__half2)*this); } \
  };
WAVESMITH_FP8_PAIR(__nv_fp8x2_e4m3, __NV_E4M3)
WAVESMITH_FP8_PAIR(__nv_fp8x2_e5m2, __NV_E5M2)
#define WAVESMITH_FP8_QUAD(NAME, PAIR) \
  struct NAME { \
    __nv_fp8x4_storage_t __x; \
    NAME() = default; \
    explicit NAME(float4 v) : __x((unsigned)PAIR(float2{v.x, v.y}).__x | (unsigned)PAIR(float2{v.z, v.w}).__x << 16) {} \
    explicit operator float4() const { PAIR a, b; a.__x = (unsigned short)__x; b.__x = (unsigned short)(__x >> 16); const float2 p = (float2)a, q = (float2)b; return {p.x, p.y, q.x, q.y}; } \
  };
WAVESMITH_FP8_QUAD(__nv_fp8x4_e4m3, __nv_fp8x2_e4m3)
WAVESMITH_FP8_QUAD(__nv_fp8x4_e5m2, __nv_fp8x2_e5m2)
