// CUDA's arithmetic intrinsics, from the definitions in its manual.
#pragma once
#include "vectors.h"
#include <cfenv>
using std::isfinite;
using std::isinf;
using std::isnan;
using std::signbit;
template <class A, class B, class C = typename std::common_type<A, B>::type> constexpr C max(A a, B b) { return (C)a < (C)b ? (C)b : (C)a; }
template <class A, class B, class C = typename std::common_type<A, B>::type> constexpr C min(A a, B b) { return (C)b < (C)a ? (C)b : (C)a; }
inline float __expf(float x) { return expf(x); }
inline float __exp10f(float x) { return exp10f(x); }
inline float __logf(float x) { return logf(x); }
inline float __log2f(float x) { return log2f(x); }
inline float __log10f(float x) { return log10f(x); }
inline float __powf(float x, float y) { return powf(x, y); }
inline float __sinf(float x) { return sinf(x); }
inline float __cosf(float x) { return cosf(x); }
inline float __tanf(float x) { return tanf(x); }
inline float __tanhf(float x) { return tanhf(x); }
inline void __sincosf(float x, float* s, float* c) { *s = sinf(x); *c = cosf(x); }
inline void sincospif(float x, float* s, float* c) { *s = (float)sin(M_PI * x); *c = (float)cos(M_PI * x); }
inline void sincospi(double x, double* s, double* c) { *s = sin(M_PI * x); *c = cos(M_PI * x); }
inline float sinpif(float x) { return (float)sin(M_PI * x); }
inline float cospif(float x) { return (float)cos(M_PI * x); }
inline float rsqrtf(float x) { return (float)(1.0 / sqrt((double)x)); }
inline double rsqrt(double x) { return 1.0 / sqrt(x); }
inline float rcbrtf(float x) { return 1.f / cbrtf(x); }
inline float normcdff(float x) { return (float)(0.5 * erfc(-(double)x * M_SQRT1_2)); }
inline double normcdf(double x) { return 0.5 * erfc(-x * M_SQRT1_2); }
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __saturatef(float x) { return x >= 0.f ? (x <= 1.f ? x : 1.f) : 0.f; }
inline float norm3df(float a, float b, float c) { return (float)sqrt((double)a * a + (double)b * b + (double)c * c); }
namespace wavesmith_reference {
template <class F> auto rounded(int mode, F f) { const int before = fegetround(); fesetround(mode); const auto r = f(); fesetround(before); return r; }
template <class T> T opaque(T v) { volatile T w = v; return w; }
}  // namespace wavesmith_reference
#define WAVESMITH_ROUNDED(S, MODE) \
  inline float __fadd_##S(float a, float b) { return wavesmith_reference::rounded(MODE, [=] { volatile float x = a, y = b; volatile float r = x + y; return (float)r; }); } \
  inline float __fsub_##S(float a, float b) { return wavesmith_reference::rounded(MODE, [=] { volatile float x = a, y = b; volatile float r = x - y; return (float)r; }); } \
  inline float __fmul_##S(float a, float b) { return wavesmith_reference::rounded(MODE, [=] { volatile float x = a, y = b; volatile float r = x * y; return (float)r; }); } \
  inline float __fdiv_##S(float a, float b) { return wavesmith_reference::rounded(MODE, [=] { volatile float x = a, y = b; volatile float r = x / y; return (float)r; }); } \
  inline float __frcp_##S(float a) { return __fdiv_##S(1.f, a); } \
  inline float __fsqrt_##S(float a) { return wavesmith_reference::rounded(MODE, [=] { volatile float x = a; volatile float r = sqrtf(x); return (float)r; }); } \
  inline float __fmaf_##S(float a, float b, float c) { return wavesmith_reference::rounded(MODE, [=] { volatile float x = a, y = b, z = c; volatile float r = fmaf(x, y, z); return (float)r; }); } \
  inline double __dadd_##S(double a, double b) { return wavesmith_reference::rounded(MODE, [=] { volatile double x = a, y = b; volatile double r = x + y; return (double)r; }); } \
  inline double __dsub_##S(double a, double b) { return wavesmith_reference::rounded(MODE, [=] { volatile double x = a, y = b; volatile double r = x - y; return (double)r; }); } \
  inline double __dmul_##S(double a, double b) { return wavesmith_reference::rounded(MODE, [=] { volatile double x = a, y = b; volatile double r = x * y; return (double)r; }); } \
  inline double __ddiv_##S(double a, double b) { return wavesmith_reference::rounded(MODE, [=] { volatile double x = a, y = b; volatile double r = x / y; return (double)r; }); } \
  inline float __double2float_##S(double a) { return wavesmith_reference::rounded(MODE, [=] { volatile double x = a; volatile float r = (float)x; return (float)r; }); } \
  inline float __int2float_##S(int a) { return wavesmith_reference::rounded(MODE, [=] { volatile int x = a; volatile float r = (float)x; return (float)r; }); } \
  inline float __uint2float_##S(unsigned a) { return wavesmith_reference::rounded(MODE, [=] { volatile unsigned x = a; volatile float r = (float)x; return (float)r; }); } \
  inline float __ll2float_##S(long long a) { return wavesmith_reference::rounded(MODE, [=] { volatile long long x = a; volatile float r = (float)x; return (float)r; }); } \
  inline int __float2int_##S(float a) { return wavesmith_reference::to_integer<int>(wavesmith_reference::rounded(MODE, [=] { volatile float x = a; return (double)rint((double)x); })); } \
  inline unsigned __float2uint_##S(float a) { return wavesmith_reference::to_integer<unsigned>(wavesmith_reference::rounded(MODE, [=] { volatile float x = a; return (double)rint((double)x); })); } \
  inline long long __float2ll_##S(float a) { return wavesmith_reference::to_integer<long long>(wavesmith_reference::rounded(MODE, [=] { volatile float x = a; return (double)rint((double)x); })); } \
  inline int __double2int_##S(double a) { return wavesmith_reference::to_integer<int>(wavesmith_reference::rounded(MODE, [=] { volatile double x = a; return (double)rint(x); })); }
namespace wavesmith_reference {
template <class I> I to_integer(double v) {
  if (v != v) return 0;
  if (v >= (double)std::numeric_limits<I>::max()) return std::numeric_limits<I>::max();
  if (v <= (double)std::numeric_limits<I>::min()) return std::numeric_limits<I>::min();
  return (I)v;
}
}  // namespace wavesmith_reference
WAVESMITH_ROUNDED(rn, FE_TONEAREST)
WAVESMITH_ROUNDED(rz, FE_TOWARDZERO)
WAVESMITH_ROUNDED(rd, FE_DOWNWARD)
WAVESMITH_ROUNDED(ru, FE_UPWARD)
template <class To, class From> To wavesmith_bits(From v) { To r; memcpy(&r, &v, sizeof r); return r; }
inline float __int_as_float(int v) { return wavesmith_bits<float>(v); }
inline float __uint_as_float(unsigned v) { return wavesmith_bits<float>(v); }
inline int __float_as_int(float v) { return wavesmith_bits<int>(v); }
inline unsigned __float_as_uint(float v) { return wavesmith_bits<unsigned>(v); }
inline double __longlong_as_double(long long v) { return wavesmith_bits<double>(v); }
inline long long __double_as_longlong(double v) { return wavesmith_bits<long long>(v); }
inline int __double2hiint(double v) { return (int)(wavesmith_bits<unsigned long long>(v) >> 32); }
inline int __double2loint(double v) { return (int)wavesmith_bits<unsigned long long>(v); }
inline double __hiloint2double(int h, int l) { return wavesmith_bits<double>(((unsigned long long)(unsigned)h << 32) | (unsigned)l); }
inline int __popc(unsigned v) { return __builtin_popcount(v); }
inline int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
inline int __clz(int v) { return v ? __builtin_clz((unsigned)v) : 32; }
inline int __clzll(long long v) { return v ? __builtin_clzll((unsigned long long)v) : 64; }
inline int __ffs(int v) { return __builtin_ffs(v); }
inline int __ffsll(long long v) { return __builtin_ffsll(v); }
inline unsigned __brev(unsigned v) { unsigned r = 0; for (int i = 0; i < 32; i++) r |= (v >> i & 1u) << (31 - i); return r; }
inline unsigned long long __brevll(unsigned long long v) { unsigned long long r = 0; for (int i = 0; i < 64; i++) r |= (v >> i & 1ull) << (63 - i); return r; }
inline int __mul24(int a, int b) { return (int)((unsigned)((a << 8) >> 8) * (unsigned)((b << 8) >> 8)); }
inline unsigned __umul24(unsigned a, unsigned b) { return (a & 0xffffffu) * (b & 0xffffffu); }
inline int __mulhi(int a, int b) { return (int)(((long long)a * b) >> 32); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a * b) >> 32); }
inline long long __mul64hi(long long a, long long b) { return (long long)(((__int128)a * b) >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return (unsigned long long)(((unsigned __int128)a * b) >> 64); }
inline unsigned __sad(int a, int b, unsigned c) { return c + (unsigned)(a > b ? (long long)a - b : (long long)b - a); }
inline unsigned __usad(unsigned a, unsigned b, unsigned c) { return c + (a > b ? a - b : b - a); }
inline int __hadd(int a, int b) { return (int)(((long long)a + b) >> 1); }
inline int __rhadd(int a, int b) { return (int)(((long long)a + b + 1) >> 1); }
inline unsigned __uhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b) >> 1); }
inline unsigned __urhadd(unsigned a, unsigned b) { return (unsigned)(((unsigned long long)a + b + 1) >> 1); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned s) { const unsigned long long v = ((unsigned long long)b << 32) | a; unsigned r = 0; for (int i = 0; i < 4; i++) r |= (unsigned)(v >> (8 * (s >> (4 * i) & 7u)) & 0xffu) << (8 * i); return r; }
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned n) { n &= 31; return n ? (hi << n) | (lo >> (32 - n)) : hi; }
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned n) { n &= 31; return n ? (hi << (32 - n)) | (lo >> n) : lo; }
inline unsigned __funnelshift_lc(unsigned lo, unsigned hi, unsigned n) { return n >= 32 ? lo : __funnelshift_l(lo, hi, n); }
inline unsigned __funnelshift_rc(unsigned lo, unsigned hi, unsigned n) { return n >= 32 ? hi : __funnelshift_r(lo, hi, n); }
inline unsigned __fns(unsigned mask, unsigned base, int offset) {
  if (offset == 0) return mask >> base & 1u ? base : 0xffffffffu;
  int left = offset > 0 ? offset : -offset;
  for (int i = (int)base; i >= 0 && i < 32; i += offset > 0 ? 1 : -1) if (mask >> i & 1u && --left == 0) return (unsigned)i;
  return 0xffffffffu;
}
// Byte and half-word lanes in one word.
namespace wavesmith_reference {
template <int B> int lane_of(unsigned v, int i, bool is_signed) { const unsigned p = v >> (B * i) & ((1u << B) - 1); return is_signed && p >> (B - 1) ? (int)p - (1 << B) : (int)p; }
template <int B, class F> unsigned each(unsigned a, unsigned b, bool is_signed, F f) { unsigned r = 0; for (int i = 0; i < 32 / B; i++) r |= ((unsigned)f(lane_of<B>(a, i, is_signed), lane_of<B>(b, i, is_signed)) & ((1u << B) - 1)) << (B * i); return r; }
inline int clamped(int v, int low, int high) { return v < low ? low : v > high ? high : v; }
}  // namespace wavesmith_reference
#define WAVESMITH_SIMD(N, B) \
  inline unsigned __vadd##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, false, [](int x, int y) { return x + y; }); } \
  inline unsigned __vsub##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, false, [](int x, int y) { return x - y; }); } \
  inline unsigned __vaddss##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, true, [](int x, int y) { return wavesmith_reference::clamped(x + y, -(1 << (B - 1)), (1 << (B - 1)) - 1); }); } \
  inline unsigned __vsubss##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, true, [](int x, int y) { return wavesmith_reference::clamped(x - y, -(1 << (B - 1)), (1 << (B - 1)) - 1); }); } \
  inline unsigned __vaddus##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, false, [](int x, int y) { return wavesmith_reference::clamped(x + y, 0, (1 << B) - 1); }); } \
  inline unsigned __vsubus##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, false, [](int x, int y) { return wavesmith_reference::clamped(x - y, 0, (1 << B) - 1); }); } \
  inline unsigned __vabs##N(unsigned a) { return wavesmith_reference::each<B>(a, 0, true, [](int x, int) { return x < 0 ? -x : x; }); } \
  inline unsigned __vabsss##N(unsigned a) { return wavesmith_reference::each<B>(a, 0, true, [](int x, int) { return std::min(x < 0 ? -x : x, (1 << (B - 1)) - 1); }); } \
  inline unsigned __vneg##N(unsigned a) { return wavesmith_reference::each<B>(a, 0, true, [](int x, int) { return -x; }); } \
  inline unsigned __vnegss##N(unsigned a) { return wavesmith_reference::each<B>(a, 0, true, [](int x, int) { return std::min(-x, (1 << (B - 1)) - 1); }); } \
  inline unsigned __vabsdiffs##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, true, [](int x, int y) { return std::abs(x - y); }); } \
  inline unsigned __vabsdiffu##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, false, [](int x, int y) { return std::abs(x - y); }); } \
  inline unsigned __vavgs##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, true, [](int x, int y) { return (x + y + (x + y >= 0)) >> 1; }); } \
  inline unsigned __vavgu##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, false, [](int x, int y) { return (x + y + 1) / 2; }); } \
  inline unsigned __vhaddu##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, false, [](int x, int y) { return (x + y) / 2; }); } \
  inline unsigned __vmaxs##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, true, [](int x, int y) { return std::max(x, y); }); } \
  inline unsigned __vmaxu##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, false, [](int x, int y) { return std::max(x, y); }); } \
  inline unsigned __vmins##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, true, [](int x, int y) { return std::min(x, y); }); } \
  inline unsigned __vminu##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, false, [](int x, int y) { return std::min(x, y); }); } \
  inline unsigned __vsads##N(unsigned a, unsigned b) { unsigned r = 0; for (int i = 0; i < 32 / B; i++) r += (unsigned)std::abs(wavesmith_reference::lane_of<B>(a, i, true) - wavesmith_reference::lane_of<B>(b, i, true)); return r; } \
  inline unsigned __vsadu##N(unsigned a, unsigned b) { unsigned r = 0; for (int i = 0; i < 32 / B; i++) r += (unsigned)std::abs(wavesmith_reference::lane_of<B>(a, i, false) - wavesmith_reference::lane_of<B>(b, i, false)); return r; }
#define WAVESMITH_LANE_TEST(NAME, N, B, S, OP) \
  inline unsigned __vcmp##NAME##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, S, [](int x, int y) { return x OP y ? -1 : 0; }); } \
  inline unsigned __vset##NAME##N(unsigned a, unsigned b) { return wavesmith_reference::each<B>(a, b, S, [](int x, int y) { return x OP y ? 1 : 0; }); }
#define WAVESMITH_LANE_TESTS(N, B) WAVESMITH_LANE_TEST(eq, N, B, false, ==) WAVESMITH_LANE_TEST(ne, N, B, false, !=) WAVESMITH_LANE_TEST(ges, N, B, true, >=) WAVESMITH_LANE_TEST(geu, N, B, false, >=) WAVESMITH_LANE_TEST(gts, N, B, true, >) WAVESMITH_LANE_TEST(gtu, N, B, false, >) WAVESMITH_LANE_TEST(les, N, B, true, <=) WAVESMITH_LANE_TEST(leu, N, B, false, <=) WAVESMITH_LANE_TEST(lts, N, B, true, <) WAVESMITH_LANE_TEST(ltu, N, B, false, <)
WAVESMITH_SIMD(4, 8)
WAVESMITH_SIMD(2, 16)
WAVESMITH_LANE_TESTS(4, 8)
WAVESMITH_LANE_TESTS(2, 16)
namespace wavesmith_reference {
template <class C> C dot4(unsigned a, unsigned b, C c, bool s) { unsigned r = (unsigned)c; for (int i = 0; i < 4; i++) r += (unsigned)(lane_of<8>(a, i, s) * lane_of<8>(b, i, s)); return (C)r; }
template <class C> C dot2(unsigned a, unsigned b, int first, C c, bool s) { unsigned r = (unsigned)c; for (int i = 0; i < 2; i++) r += (unsigned)(lane_of<16>(a, i, s) * lane_of<8>(b, first + i, s)); return (C)r; }
}  // namespace wavesmith_reference
inline int __dp4a(int a, int b, int c) { return wavesmith_reference::dot4((unsigned)a, (unsigned)b, c, true); }
inline unsigned __dp4a(unsigned a, unsigned b, unsigned c) { return wavesmith_reference::dot4(a, b, c, false); }
inline int __dp4a(char4 a, char4 b, int c) { return __dp4a(wavesmith_bits<int>(a), wavesmith_bits<int>(b), c); }
inline unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) { return __dp4a(wavesmith_bits<unsigned>(a), wavesmith_bits<unsigned>(b), c); }
inline int __dp2a_lo(int a, int b, int c) { return wavesmith_reference::dot2((unsigned)a, (unsigned)b, 0, c, true); }
inline unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) { return wavesmith_reference::dot2(a, b, 0, c, false); }
inline int __dp2a_hi(int a, int b, int c) { return wavesmith_reference::dot2((unsigned)a, (unsigned)b, 2, c, true); }
inline unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return wavesmith_reference::dot2(a, b, 2, c, false); }
inline int __vimax3_s32(int a, int b, int c) { return std::max({a, b, c}); }
inline int __vimin3_s32(int a, int b, int c) { return std::min({a, b, c}); }
inline unsigned __vimax3_u32(unsigned a, unsigned b, unsigned c) { return std::max({a, b, c}); }
inline unsigned __vimin3_u32(unsigned a, unsigned b, unsigned c) { return std::min({a, b, c}); }
inline int __viaddmax_s32(int a, int b, int c) { return std::max((int)((unsigned)a + (unsigned)b), c); }
inline int __viaddmin_s32(int a, int b, int c) { return std::min((int)((unsigned)a + (unsigned)b), c); }
inline unsigned __viaddmax_u32(unsigned a, unsigned b, unsigned c) { return std::max(a + b, c); }
inline unsigned __viaddmin_u32(unsigned a, unsigned b, unsigned c) { return std::min(a + b, c); }
inline int __vimax_s32_relu(int a, int b) { return std::max({a, b, 0}); }
inline int __vimin_s32_relu(int a, int b) { return std::max(std::min(a, b), 0); }
inline int __vimax3_s32_relu(int a, int b, int c) { return std::max({a, b, c, 0}); }
inline int __vimin3_s32_relu(int a, int b, int c) { return std::max(std::min({a, b, c}), 0); }
inline int __viaddmax_s32_relu(int a, int b, int c) { return std::max(__viaddmax_s32(a, b, c), 0); }
inline int __viaddmin_s32_relu(int a, int b, int c) { return std::max(__viaddmin_s32(a, b, c), 0); }
inline int __vibmax_s32(int a, int b, bool* p) { *p = a >= b; return std::max(a, b); }
inline int __vibmin_s32(int a, int b, bool* p) { *p = a <= b; return std::min(a, b); }
