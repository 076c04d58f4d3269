//@ entry: find_first_set
//@ provides: __ffsll
//@ contract: exact
//@ note: HIP's overloads leave a call with an int ambiguous
//@ rename: wavesmith
namespace wavesmith {
static __host__ __device__ __forceinline__ int __ffsll(long long v) { return __builtin_ffsll(v); }
}  // namespace wavesmith
//@ end

//@ entry: host_math
//@ header: wavesmith_host_math.h
//@ contract: exact
//@ note: CUDA's mathematics beyond C's are for the host too, HIP's for the device alone
#include <cmath>
static inline __host__ float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
static inline __host__ float rsqrt(float x) { return 1.0f / std::sqrt(x); }
static inline __host__ double rsqrt(double x) { return 1.0 / std::sqrt(x); }
static inline __host__ float rcbrtf(float x) { return 1.0f / std::cbrt(x); }
static inline __host__ double rcbrt(double x) { return 1.0 / std::cbrt(x); }
static inline __host__ double sinpi(double x) { const double r = std::remainder(x, 2.0); return std::fabs(r) == 1.0 ? 0.0 : std::sin(r * 3.141592653589793); }
static inline __host__ double cospi(double x) { const double r = std::fabs(std::remainder(x, 2.0)); return r == 0.5 ? 0.0 : std::cos(r * 3.141592653589793); }
static inline __host__ float sinpif(float x) { return (float)sinpi((double)x); }
static inline __host__ float cospif(float x) { return (float)cospi((double)x); }
static inline __host__ double normcdf(double x) { return 0.5 * std::erfc(-x * 0.7071067811865476); }
static inline __host__ float normcdff(float x) { return (float)normcdf((double)x); }
//@ end

//@ entry: directed_core
//@ contract: exact
namespace wavesmith {
static __device__ __forceinline__ float step(float x, bool up) { return nextafterf(x, up ? __builtin_inff() : -__builtin_inff()); }
static __device__ __forceinline__ double step(double x, bool up) { return nextafter(x, up ? __builtin_inf() : -__builtin_inf()); }
/// x is nearest to the exact value, which is x - excess: correct x to the wanted direction (-1 down, 1 up, 0 to zero).
template <class T> static __device__ __forceinline__ T directed(T x, double excess, int direction) {
  if (x != x || excess == 0.0) return x;
  if (direction == 0) direction = x - (T)excess > (T)0 || x > (T)0 ? -1 : 1;
  if (direction < 0 && excess > 0.0) return step(x, false);
  if (direction > 0 && excess < 0.0) return step(x, true);
  return x;
}
static __device__ __forceinline__ float round_to(double exact, int direction) { const float f = (float)exact; return directed(f, (double)f - exact, direction); }
static __device__ __forceinline__ double sum_excess(double a, double b, double s) { const double t = s - a; return -((a - (s - t)) + (b - t)); }
static __device__ __forceinline__ float add_to(float a, float b, int direction) {
  const double s = (double)a + b, excess = sum_excess(a, b, s);
  const float f = (float)s;
  return __builtin_isinf(s) || f != f ? f : directed(f, ((double)f - s) + excess, direction);
}
static __device__ __forceinline__ float fma_to(float a, float b, float c, int direction) {
  const double p = (double)a * b, s = p + c, excess = sum_excess(p, c, s);
  const float f = (float)s;
  return __builtin_isinf(s) || f != f ? f : directed(f, ((double)f - s) + excess, direction);
}
static __device__ __forceinline__ float div_to(float a, float b, int direction) {
  const float q = a / b;
  if (__builtin_isinf(q) || q != q || b == 0.f) return q;
  const double residual = __builtin_fma((double)q, (double)b, -(double)a);
  return directed(q, b > 0.f ? residual : -residual, direction);
}
static __device__ __forceinline__ float sqrt_to(float a, int direction) { const float s = sqrtf(a); return s != s || __builtin_isinf(s) ? s : directed(s, (double)s * s - a, direction); }
static __device__ __forceinline__ double dadd_to(double a, double b, int direction) { const double s = a + b; return __builtin_isinf(s) || s != s ? s : directed(s, sum_excess(a, b, s), direction); }
static __device__ __forceinline__ double dmul_to(double a, double b, int direction) { const double p = a * b; return __builtin_isinf(p) || p != p ? p : directed(p, -__builtin_fma(a, b, -p), direction); }
static __device__ __forceinline__ double ddiv_to(double a, double b, int direction) {
  const double q = a / b;
  if (__builtin_isinf(q) || q != q || b == 0.0) return q;
  const double residual = __builtin_fma(q, b, -a);
  return directed(q, b > 0.0 ? residual : -residual, direction);
}
}  // namespace wavesmith
//@ end

//@ entry: directed_add
//@ provides: __fadd_rd, __fadd_ru, __fadd_rz, __fsub_rd, __fsub_ru, __fsub_rz
//@ probe: __fadd_rd(1.f, 2.f); __fadd_ru(1.f, 2.f); __fadd_rz(1.f, 2.f); __fsub_rd(1.f, 2.f)
//@ requires: directed_core
//@ contract: exact
//@ rename: wavesmith
//@ note: rounded down, up or to zero in software; slower than the hardware mode of NVIDIA
namespace wavesmith {
static __device__ __forceinline__ float __fadd_rd(float a, float b) { return add_to(a, b, -1); }
static __device__ __forceinline__ float __fadd_ru(float a, float b) { return add_to(a, b, 1); }
static __device__ __forceinline__ float __fadd_rz(float a, float b) { return add_to(a, b, 0); }
static __device__ __forceinline__ float __fsub_rd(float a, float b) { return add_to(a, -b, -1); }
static __device__ __forceinline__ float __fsub_ru(float a, float b) { return add_to(a, -b, 1); }
static __device__ __forceinline__ float __fsub_rz(float a, float b) { return add_to(a, -b, 0); }
}  // namespace wavesmith
//@ end

//@ entry: directed_multiply
//@ provides: __fmul_rd, __fmul_ru, __fmul_rz, __fmaf_rd, __fmaf_ru, __fmaf_rz, __fdiv_rd, __fdiv_ru, __fdiv_rz, __frcp_rd, __frcp_ru, __frcp_rz, __fsqrt_rd, __fsqrt_ru, __fsqrt_rz
//@ probe: __fmul_rd(1.f, 2.f); __fmaf_rd(1.f, 2.f, 3.f); __fdiv_rd(1.f, 2.f); __frcp_rd(1.f); __fsqrt_rd(1.f); __fmul_rz(1.f, 2.f)
//@ requires: directed_core
//@ contract: exact
//@ rename: wavesmith
//@ note: rounded down, up or to zero in software
namespace wavesmith {
static __device__ __forceinline__ float __fmul_rd(float a, float b) { return round_to((double)a * b, -1); }
static __device__ __forceinline__ float __fmul_ru(float a, float b) { return round_to((double)a * b, 1); }
static __device__ __forceinline__ float __fmul_rz(float a, float b) { return round_to((double)a * b, 0); }
static __device__ __forceinline__ float __fmaf_rd(float a, float b, float c) { return fma_to(a, b, c, -1); }
static __device__ __forceinline__ float __fmaf_ru(float a, float b, float c) { return fma_to(a, b, c, 1); }
static __device__ __forceinline__ float __fmaf_rz(float a, float b, float c) { return fma_to(a, b, c, 0); }
static __device__ __forceinline__ float __fdiv_rd(float a, float b) { return div_to(a, b, -1); }
static __device__ __forceinline__ float __fdiv_ru(float a, float b) { return div_to(a, b, 1); }
static __device__ __forceinline__ float __fdiv_rz(float a, float b) { return div_to(a, b, 0); }
static __device__ __forceinline__ float __frcp_rd(float a) { return div_to(1.f, a, -1); }
static __device__ __forceinline__ float __frcp_ru(float a) { return div_to(1.f, a, 1); }
static __device__ __forceinline__ float __frcp_rz(float a) { return div_to(1.f, a, 0); }
static __device__ __forceinline__ float __fsqrt_rd(float a) { return sqrt_to(a, -1); }
static __device__ __forceinline__ float __fsqrt_ru(float a) { return sqrt_to(a, 1); }
static __device__ __forceinline__ float __fsqrt_rz(float a) { return sqrt_to(a, 0); }
}  // namespace wavesmith
//@ end

//@ entry: directed_double
//@ provides: __dadd_rd, __dadd_ru, __dadd_rz, __dsub_rd, __dsub_ru, __dsub_rz, __dmul_rd, __dmul_ru, __dmul_rz, __ddiv_rd, __ddiv_ru, __ddiv_rz
//@ probe: __dadd_rd(1., 2.); __dmul_rd(1., 2.); __ddiv_rd(1., 2.); __dsub_rd(1., 2.)
//@ requires: directed_core
//@ contract: exact
//@ rename: wavesmith
//@ note: rounded down, up or to zero in software; products whose rounding error is subnormal may stay at nearest
namespace wavesmith {
static __device__ __forceinline__ double __dadd_rd(double a, double b) { return dadd_to(a, b, -1); }
static __device__ __forceinline__ double __dadd_ru(double a, double b) { return dadd_to(a, b, 1); }
static __device__ __forceinline__ double __dadd_rz(double a, double b) { return dadd_to(a, b, 0); }
static __device__ __forceinline__ double __dsub_rd(double a, double b) { return dadd_to(a, -b, -1); }
static __device__ __forceinline__ double __dsub_ru(double a, double b) { return dadd_to(a, -b, 1); }
static __device__ __forceinline__ double __dsub_rz(double a, double b) { return dadd_to(a, -b, 0); }
static __device__ __forceinline__ double __dmul_rd(double a, double b) { return dmul_to(a, b, -1); }
static __device__ __forceinline__ double __dmul_ru(double a, double b) { return dmul_to(a, b, 1); }
static __device__ __forceinline__ double __dmul_rz(double a, double b) { return dmul_to(a, b, 0); }
static __device__ __forceinline__ double __ddiv_rd(double a, double b) { return ddiv_to(a, b, -1); }
static __device__ __forceinline__ double __ddiv_ru(double a, double b) { return ddiv_to(a, b, 1); }
static __device__ __forceinline__ double __ddiv_rz(double a, double b) { return ddiv_to(a, b, 0); }
}  // namespace wavesmith
//@ end

//@ entry: directed_convert
//@ provides: __double2float_rd, __double2float_ru, __double2float_rz, __int2float_rd, __int2float_ru, __int2float_rz, __uint2float_rd, __uint2float_ru, __uint2float_rz
//@ requires: directed_core
//@ contract: exact
//@ rename: wavesmith
//@ note: rounded in software; older HIP headers round all of them to nearest
namespace wavesmith {
static __device__ __forceinline__ float __double2float_rd(double a) { return round_to(a, -1); }
static __device__ __forceinline__ float __double2float_ru(double a) { return round_to(a, 1); }
static __device__ __forceinline__ float __double2float_rz(double a) { return round_to(a, 0); }
static __device__ __forceinline__ float __int2float_rd(int a) { return round_to((double)a, -1); }
static __device__ __forceinline__ float __int2float_ru(int a) { return round_to((double)a, 1); }
static __device__ __forceinline__ float __int2float_rz(int a) { return round_to((double)a, 0); }
static __device__ __forceinline__ float __uint2float_rd(unsigned a) { return round_to((double)a, -1); }
static __device__ __forceinline__ float __uint2float_ru(unsigned a) { return round_to((double)a, 1); }
static __device__ __forceinline__ float __uint2float_rz(unsigned a) { return round_to((double)a, 0); }
}  // namespace wavesmith
//@ end

//@ entry: nearest_arithmetic
//@ provides: __fadd_rn, __fsub_rn, __fmul_rn, __dadd_rn, __dsub_rn, __dmul_rn
//@ contract: exact
//@ rename: wavesmith
//@ note: never contracted into a fused multiply-add, as CUDA promises; HIP's own may be
namespace wavesmith {
static __device__ __forceinline__ float __fadd_rn(float a, float b) {
#pragma clang fp contract(off)
  return a + b;
}
static __device__ __forceinline__ float __fsub_rn(float a, float b) {
#pragma clang fp contract(off)
  return a - b;
}
static __device__ __forceinline__ float __fmul_rn(float a, float b) {
#pragma clang fp contract(off)
  return a * b;
}
static __device__ __forceinline__ double __dadd_rn(double a, double b) {
#pragma clang fp contract(off)
  return a + b;
}
static __device__ __forceinline__ double __dsub_rn(double a, double b) {
#pragma clang fp contract(off)
  return a - b;
}
static __device__ __forceinline__ double __dmul_rn(double a, double b) {
#pragma clang fp contract(off)
  return a * b;
}
}  // namespace wavesmith
//@ end

//@ entry: fast_tanh
//@ provides: __tanhf
//@ probe: __tanhf(1.f)
//@ contract: exact
//@ rename: wavesmith
//@ note: the accurate tanhf, at least as close as NVIDIA's approximation
namespace wavesmith {
static __device__ __forceinline__ float __tanhf(float x) { return tanhf(x); }
}  // namespace wavesmith
//@ end

//@ entry: fast_math_names
//@ provides: __tanf, __exp10f, __frsqrt_rn, __fsqrt_rn, __frcp_rn, __fdiv_rn, __fmaf_rn, __saturatef, __fdividef
//@ probe: __tanf(1.f); __exp10f(1.f); __frsqrt_rn(1.f); __fsqrt_rn(1.f); __frcp_rn(1.f); __fdiv_rn(1.f, 2.f); __fmaf_rn(1.f, 2.f, 3.f); __saturatef(1.f); __fdividef(1.f, 2.f)
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
static __device__ __forceinline__ float __tanf(float x) { return tanf(x); }
static __device__ __forceinline__ float __exp10f(float x) { return exp10f(x); }
static __device__ __forceinline__ float __frsqrt_rn(float x) { return (float)(1.0 / sqrt((double)x)); }
static __device__ __forceinline__ float __fsqrt_rn(float x) { return sqrtf(x); }
static __device__ __forceinline__ float __frcp_rn(float x) { return 1.f / x; }
static __device__ __forceinline__ float __fdiv_rn(float a, float b) { return a / b; }
static __device__ __forceinline__ float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static __device__ __forceinline__ float __saturatef(float x) { return x >= 0.f ? (x <= 1.f ? x : 1.f) : 0.f; }
static __device__ __forceinline__ float __fdividef(float a, float b) { return a / b; }
}  // namespace wavesmith
//@ end

//@ entry: fast_functions
//@ provides: __expf, __logf, __log2f, __log10f, __powf, __sinf, __cosf, __sincosf
//@ probe: __expf(1.f); __logf(1.f); __log2f(1.f); __log10f(1.f); __powf(1.f, 2.f); __sinf(1.f); __cosf(1.f); { float s, c; __sincosf(1.f, &s, &c); }
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
static __device__ __forceinline__ float __expf(float x) { return expf(x); }
static __device__ __forceinline__ float __logf(float x) { return logf(x); }
static __device__ __forceinline__ float __log2f(float x) { return log2f(x); }
static __device__ __forceinline__ float __log10f(float x) { return log10f(x); }
static __device__ __forceinline__ float __powf(float x, float y) { return powf(x, y); }
static __device__ __forceinline__ float __sinf(float x) { return sinf(x); }
static __device__ __forceinline__ float __cosf(float x) { return cosf(x); }
static __device__ __forceinline__ void __sincosf(float x, float* s, float* c) { sincosf(x, s, c); }
}  // namespace wavesmith
//@ end

//@ entry: host_classification
//@ provides: isfinite, isnan, isinf, signbit, isnormal
//@ probe-host: float f = 0; bool b = isfinite(f) || isnan(f) || isinf(f); (void)b
//@ includes: math.h
//@ contract: exact
//@ note: nvcc includes <math.h> by itself, so sources use these on the host without it
using std::isfinite;
using std::isinf;
using std::isnan;
using std::isnormal;
using std::signbit;
//@ end

//@ entry: minimum_of_types
//@ provides: min, max
//@ contract: exact
//@ note: HIP takes double for mixed types on the device and int for everything on the host; these are CUDA's overloads
#define WAVESMITH_ORDER(where, R, A, B) \
  static inline where R min(A a, B b) { return (R)b < (R)a ? (R)b : (R)a; } \
  static inline where R max(A a, B b) { return (R)a < (R)b ? (R)b : (R)a; }
#define WAVESMITH_ORDER_MIXED(S, U) \
  WAVESMITH_ORDER(__host__ __device__, U, S, U) WAVESMITH_ORDER(__host__ __device__, U, U, S) WAVESMITH_ORDER(__host__, U, U, U)
WAVESMITH_ORDER_MIXED(int, unsigned)
WAVESMITH_ORDER_MIXED(long, unsigned long)
WAVESMITH_ORDER_MIXED(long long, unsigned long long)
WAVESMITH_ORDER(__host__, long, long, long)
WAVESMITH_ORDER(__host__, long long, long long, long long)
#undef WAVESMITH_ORDER_MIXED
#undef WAVESMITH_ORDER
#define WAVESMITH_ORDER(where, R, A, B, suffix) \
  static inline where R min(A a, B b) { return __builtin_fmin##suffix(a, b); } \
  static inline where R max(A a, B b) { return __builtin_fmax##suffix(a, b); }
WAVESMITH_ORDER(__host__ __device__, double, float, double, )
WAVESMITH_ORDER(__host__ __device__, double, double, float, )
WAVESMITH_ORDER(__host__, double, double, double, )
WAVESMITH_ORDER(__host__, float, float, float, f)
#undef WAVESMITH_ORDER
//@ end
