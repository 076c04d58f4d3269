// What device code of PyTorch extensions takes from torch's headers: its 16-bit types, their accumulators, warp helpers.
#pragma once
#include "cub.h"
namespace c10 {
/// A 16-bit number that computes in single precision and rounds every result; `N` is CUDA's type of the same bits.
#define WAVESMITH_NARROW_TYPE(T, N, NARROWED, WIDENED) \
  struct alignas(2) T { \
    unsigned short x; \
    T() = default; \
    T(float v) : T(NARROWED(v)) {} \
    T(const N& n) { memcpy(&x, &n, 2); } \
    explicit operator N() const { N n; memcpy((void*)&n, &x, 2); return n; } \
    operator float() const { return WIDENED((N)*this); } \
    T& operator+=(const T& b) { return *this = T((float)*this + (float)b); } \
    T& operator-=(const T& b) { return *this = T((float)*this - (float)b); } \
    T& operator*=(const T& b) { return *this = T((float)*this * (float)b); } \
    T& operator/=(const T& b) { return *this = T((float)*this / (float)b); } \
  };
WAVESMITH_NARROW_TYPE(Half, __half, __float2half_rn, __half2float)
WAVESMITH_NARROW_TYPE(BFloat16, __nv_bfloat16, __float2bfloat16_rn, __bfloat162float)
#define WAVESMITH_NARROW_OPERATOR(T, O) \
  inline T operator O(const T& a, const T& b) { return T((float)a O (float)b); } \
  inline float operator O(const T& a, float b) { return (float)a O b; } \
  inline float operator O(float a, const T& b) { return a O (float)b; } \
  inline double operator O(const T& a, double b) { return (double)(float)a O b; } \
  inline double operator O(double a, const T& b) { return a O (double)(float)b; } \
  inline T operator O(const T& a, int b) { return T((float)a O (float)b); } \
  inline T operator O(int a, const T& b) { return T((float)a O (float)b); } \
  inline T operator O(const T& a, int64_t b) { return T((float)a O (float)b); } \
  inline T operator O(int64_t a, const T& b) { return T((float)a O (float)b); }
#define WAVESMITH_NARROW(T) \
  WAVESMITH_NARROW_OPERATOR(T, +) WAVESMITH_NARROW_OPERATOR(T, -) WAVESMITH_NARROW_OPERATOR(T, *) WAVESMITH_NARROW_OPERATOR(T, /) \
  inline T operator-(const T& a) { return T(-(float)a); } \
  inline bool operator<(const T& a, const T& b) { return (float)a < (float)b; } \
  inline bool operator>(const T& a, const T& b) { return (float)a > (float)b; }
WAVESMITH_NARROW(Half)
WAVESMITH_NARROW(BFloat16)
}  // namespace c10
namespace at {
using c10::BFloat16;
using c10::Half;
template <class T> struct OpMathType { using type = T; };
template <> struct OpMathType<Half> { using type = float; };
template <> struct OpMathType<BFloat16> { using type = float; };
template <class T> using opmath_type = typename OpMathType<T>::type;
template <class T, bool> struct AccumulateType { using type = std::conditional_t<std::is_same<T, bool>::value, bool, std::conditional_t<std::is_integral<T>::value, int64_t, opmath_type<T>>>; };
template <class T> struct AccumulateType<T, false> { using type = std::conditional_t<std::is_integral<T>::value, int64_t, double>; };
template <class T, bool device> using acc_type = typename AccumulateType<T, device>::type;
}  // namespace at
template <class T> T WARP_SHFL(T v, int source, int width = warpSize, wavesmith_reference::Mask mask = wavesmith_reference::whole) { return __shfl_sync(mask, v, source, width); }
template <class T> T WARP_SHFL_XOR(T v, int lanes, int width = warpSize, wavesmith_reference::Mask mask = wavesmith_reference::whole) { return __shfl_xor_sync(mask, v, lanes, width); }
template <class T> T WARP_SHFL_UP(T v, unsigned d, int width = warpSize, wavesmith_reference::Mask mask = wavesmith_reference::whole) { return __shfl_up_sync(mask, v, d, width); }
template <class T> T WARP_SHFL_DOWN(T v, unsigned d, int width = warpSize, wavesmith_reference::Mask mask = wavesmith_reference::whole) { return __shfl_down_sync(mask, v, d, width); }
inline wavesmith_reference::Mask WARP_BALLOT(int p, wavesmith_reference::Mask mask = wavesmith_reference::whole) { return __ballot_sync(mask, p); }
#define C10_WARP_SIZE WAVESMITH_LANES
#define CUDA_KERNEL_ASSERT(...) ((__VA_ARGS__) ? (void)0 : __trap())
