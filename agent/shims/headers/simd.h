//@ entry: simd_core
//@ contract: exact
namespace wavesmith {
template <int Bits, bool Signed, class F> static __device__ __forceinline__ unsigned lanewise(unsigned a, unsigned b, F op) {
  constexpr unsigned mask = Bits == 8 ? 0xffu : 0xffffu;
  unsigned result = 0;
#pragma unroll
  for (int s = 0; s < 32; s += Bits) {
    int x = (int)((a >> s) & mask), y = (int)((b >> s) & mask);
    if constexpr (Signed) { x = (x << (32 - Bits)) >> (32 - Bits); y = (y << (32 - Bits)) >> (32 - Bits); }
    result |= ((unsigned)op(x, y) & mask) << s;
  }
  return result;
}
template <int Bits> static __device__ __forceinline__ int clamp_signed(int x) { constexpr int top = (1 << (Bits - 1)) - 1; return x > top ? top : x < -top - 1 ? -top - 1 : x; }
template <int Bits> static __device__ __forceinline__ int clamp_unsigned(int x) { constexpr int top = (1 << Bits) - 1; return x > top ? top : x < 0 ? 0 : x; }
template <int Bits, bool Signed, class F> static __device__ __forceinline__ unsigned compare_mask(unsigned a, unsigned b, F op) { return lanewise<Bits, Signed>(a, b, [op](int x, int y) { return op(x, y) ? -1 : 0; }); }
template <int Bits, bool Signed, class F> static __device__ __forceinline__ unsigned compare_one(unsigned a, unsigned b, F op) { return lanewise<Bits, Signed>(a, b, [op](int x, int y) { return op(x, y) ? 1 : 0; }); }
template <int Bits, bool Signed> static __device__ __forceinline__ unsigned difference_sum(unsigned a, unsigned b) {
  unsigned total = 0;
  constexpr unsigned mask = Bits == 8 ? 0xffu : 0xffffu;
#pragma unroll
  for (int s = 0; s < 32; s += Bits) {
    int x = (int)((a >> s) & mask), y = (int)((b >> s) & mask);
    if constexpr (Signed) { x = (x << (32 - Bits)) >> (32 - Bits); y = (y << (32 - Bits)) >> (32 - Bits); }
    total += (unsigned)(x > y ? x - y : y - x);
  }
  return total;
}
}  // namespace wavesmith
//@ end

//@ entry: simd_bytes
//@ provides: __vadd4, __vsub4, __vaddss4, __vaddus4, __vsubss4, __vsubus4, __vabs4, __vabsss4, __vneg4, __vnegss4, __vabsdiffs4, __vabsdiffu4, __vavgs4, __vavgu4, __vhaddu4, __vmaxs4, __vmaxu4, __vmins4, __vminu4, __vsads4, __vsadu4, __vcmpeq4, __vcmpne4, __vcmpges4, __vcmpgeu4, __vcmpgts4, __vcmpgtu4, __vcmples4, __vcmpleu4, __vcmplts4, __vcmpltu4, __vseteq4, __vsetne4, __vsetges4, __vsetgeu4, __vsetgts4, __vsetgtu4, __vsetles4, __vsetleu4, __vsetlts4, __vsetltu4
//@ requires: simd_core
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
#define WAVESMITH_SIMD(N, B) \
  static __device__ __forceinline__ unsigned __vadd##N(unsigned a, unsigned b) { return lanewise<B, false>(a, b, [](int x, int y) { return x + y; }); } \
  static __device__ __forceinline__ unsigned __vsub##N(unsigned a, unsigned b) { return lanewise<B, false>(a, b, [](int x, int y) { return x - y; }); } \
  static __device__ __forceinline__ unsigned __vaddss##N(unsigned a, unsigned b) { return lanewise<B, true>(a, b, [](int x, int y) { return clamp_signed<B>(x + y); }); } \
  static __device__ __forceinline__ unsigned __vaddus##N(unsigned a, unsigned b) { return lanewise<B, false>(a, b, [](int x, int y) { return clamp_unsigned<B>(x + y); }); } \
  static __device__ __forceinline__ unsigned __vsubss##N(unsigned a, unsigned b) { return lanewise<B, true>(a, b, [](int x, int y) { return clamp_signed<B>(x - y); }); } \
  static __device__ __forceinline__ unsigned __vsubus##N(unsigned a, unsigned b) { return lanewise<B, false>(a, b, [](int x, int y) { return clamp_unsigned<B>(x - y); }); } \
  static __device__ __forceinline__ unsigned __vabs##N(unsigned a) { return lanewise<B, true>(a, 0u, [](int x, int) { return x < 0 ? -x : x; }); } \
  static __device__ __forceinline__ unsigned __vabsss##N(unsigned a) { return lanewise<B, true>(a, 0u, [](int x, int) { return clamp_signed<B>(x < 0 ? -x : x); }); } \
  static __device__ __forceinline__ unsigned __vneg##N(unsigned a) { return lanewise<B, true>(a, 0u, [](int x, int) { return -x; }); } \
  static __device__ __forceinline__ unsigned __vnegss##N(unsigned a) { return lanewise<B, true>(a, 0u, [](int x, int) { return clamp_signed<B>(-x); }); } \
  static __device__ __forceinline__ unsigned __vabsdiffs##N(unsigned a, unsigned b) { return lanewise<B, true>(a, b, [](int x, int y) { return x > y ? x - y : y - x; }); } \
  static __device__ __forceinline__ unsigned __vabsdiffu##N(unsigned a, unsigned b) { return lanewise<B, false>(a, b, [](int x, int y) { return x > y ? x - y : y - x; }); } \
  static __device__ __forceinline__ unsigned __vavgs##N(unsigned a, unsigned b) { return lanewise<B, true>(a, b, [](int x, int y) { return (x + y + (x + y >= 0)) >> 1; }); } \
  static __device__ __forceinline__ unsigned __vavgu##N(unsigned a, unsigned b) { return lanewise<B, false>(a, b, [](int x, int y) { return (x + y + 1) >> 1; }); } \
  static __device__ __forceinline__ unsigned __vhaddu##N(unsigned a, unsigned b) { return lanewise<B, false>(a, b, [](int x, int y) { return (x + y) >> 1; }); } \
  static __device__ __forceinline__ unsigned __vmaxs##N(unsigned a, unsigned b) { return lanewise<B, true>(a, b, [](int x, int y) { return x > y ? x : y; }); } \
  static __device__ __forceinline__ unsigned __vmaxu##N(unsigned a, unsigned b) { return lanewise<B, false>(a, b, [](int x, int y) { return x > y ? x : y; }); } \
  static __device__ __forceinline__ unsigned __vmins##N(unsigned a, unsigned b) { return lanewise<B, true>(a, b, [](int x, int y) { return x < y ? x : y; }); } \
  static __device__ __forceinline__ unsigned __vminu##N(unsigned a, unsigned b) { return lanewise<B, false>(a, b, [](int x, int y) { return x < y ? x : y; }); } \
  static __device__ __forceinline__ unsigned __vsads##N(unsigned a, unsigned b) { return difference_sum<B, true>(a, b); } \
  static __device__ __forceinline__ unsigned __vsadu##N(unsigned a, unsigned b) { return difference_sum<B, false>(a, b); }
#define WAVESMITH_SIMD_COMPARE(NAME, N, B, SIGNED, OP) \
  static __device__ __forceinline__ unsigned __vcmp##NAME##N(unsigned a, unsigned b) { return compare_mask<B, SIGNED>(a, b, [](int x, int y) { return x OP y; }); } \
  static __device__ __forceinline__ unsigned __vset##NAME##N(unsigned a, unsigned b) { return compare_one<B, SIGNED>(a, b, [](int x, int y) { return x OP y; }); }
#define WAVESMITH_SIMD_COMPARES(N, B) \
  WAVESMITH_SIMD_COMPARE(eq, N, B, false, ==) WAVESMITH_SIMD_COMPARE(ne, N, B, false, !=) \
  WAVESMITH_SIMD_COMPARE(ges, N, B, true, >=) WAVESMITH_SIMD_COMPARE(geu, N, B, false, >=) \
  WAVESMITH_SIMD_COMPARE(gts, N, B, true, >) WAVESMITH_SIMD_COMPARE(gtu, N, B, false, >) \
  WAVESMITH_SIMD_COMPARE(les, N, B, true, <=) WAVESMITH_SIMD_COMPARE(leu, N, B, false, <=) \
  WAVESMITH_SIMD_COMPARE(lts, N, B, true, <) WAVESMITH_SIMD_COMPARE(ltu, N, B, false, <)
WAVESMITH_SIMD(4, 8)
WAVESMITH_SIMD_COMPARES(4, 8)
}  // namespace wavesmith
//@ end

//@ entry: simd_halfwords
//@ provides: __vadd2, __vsub2, __vaddss2, __vaddus2, __vsubss2, __vsubus2, __vabs2, __vabsss2, __vneg2, __vnegss2, __vabsdiffs2, __vabsdiffu2, __vavgs2, __vavgu2, __vhaddu2, __vmaxs2, __vmaxu2, __vmins2, __vminu2, __vsads2, __vsadu2, __vcmpeq2, __vcmpne2, __vcmpges2, __vcmpgeu2, __vcmpgts2, __vcmpgtu2, __vcmples2, __vcmpleu2, __vcmplts2, __vcmpltu2, __vseteq2, __vsetne2, __vsetges2, __vsetgeu2, __vsetgts2, __vsetgtu2, __vsetles2, __vsetleu2, __vsetlts2, __vsetltu2
//@ requires: simd_bytes
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
WAVESMITH_SIMD(2, 16)
WAVESMITH_SIMD_COMPARES(2, 16)
}  // namespace wavesmith
//@ end

//@ entry: dot_products
//@ provides: __dp4a, __dp2a_lo, __dp2a_hi
//@ probe: __dp4a(1, 2, 3); __dp2a_lo(1, 2, 3)
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
template <class A, class B, class C> static __device__ __forceinline__ C dot4(unsigned a, unsigned b, C c) {
  unsigned sum = (unsigned)c;
#pragma unroll
  for (int s = 0; s < 32; s += 8) sum += (unsigned)((int)(A)(a >> s) * (int)(B)(b >> s));
  return (C)sum;
}
template <class A, class B, class C> static __device__ __forceinline__ C dot2(unsigned a, unsigned b, int shift, C c) {
  return (C)((unsigned)c + (unsigned)((int)(A)a * (int)(B)(b >> shift)) + (unsigned)((int)(A)(a >> 16) * (int)(B)(b >> (shift + 8))));
}
static __device__ __forceinline__ int __dp4a(int a, int b, int c) { return dot4<signed char, signed char>((unsigned)a, (unsigned)b, c); }
static __device__ __forceinline__ unsigned __dp4a(unsigned a, unsigned b, unsigned c) { return dot4<unsigned char, unsigned char>(a, b, c); }
static __device__ __forceinline__ int __dp4a(char4 a, char4 b, int c) { unsigned x, y; __builtin_memcpy(&x, &a, 4); __builtin_memcpy(&y, &b, 4); return dot4<signed char, signed char>(x, y, c); }
static __device__ __forceinline__ unsigned __dp4a(uchar4 a, uchar4 b, unsigned c) { unsigned x, y; __builtin_memcpy(&x, &a, 4); __builtin_memcpy(&y, &b, 4); return dot4<unsigned char, unsigned char>(x, y, c); }
static __device__ __forceinline__ int __dp2a_lo(int a, int b, int c) { return dot2<short, signed char>((unsigned)a, (unsigned)b, 0, c); }
static __device__ __forceinline__ unsigned __dp2a_lo(unsigned a, unsigned b, unsigned c) { return dot2<unsigned short, unsigned char>(a, b, 0, c); }
static __device__ __forceinline__ int __dp2a_hi(int a, int b, int c) { return dot2<short, signed char>((unsigned)a, (unsigned)b, 16, c); }
static __device__ __forceinline__ unsigned __dp2a_hi(unsigned a, unsigned b, unsigned c) { return dot2<unsigned short, unsigned char>(a, b, 16, c); }
}  // namespace wavesmith
//@ end

//@ entry: dpx
//@ provides: __vimax3_s32, __vimin3_s32, __vimax3_u32, __vimin3_u32, __viaddmax_s32, __viaddmin_s32, __viaddmax_u32, __viaddmin_u32, __vimax_s32_relu, __vimin_s32_relu, __vimax3_s32_relu, __vimin3_s32_relu, __viaddmax_s32_relu, __viaddmin_s32_relu, __vibmax_s32, __vibmin_s32
//@ contract: exact
//@ rename: wavesmith
namespace wavesmith {
template <class T> static __device__ __forceinline__ T larger(T a, T b) { return a < b ? b : a; }
template <class T> static __device__ __forceinline__ T smaller(T a, T b) { return b < a ? b : a; }
static __device__ __forceinline__ int __vimax3_s32(int a, int b, int c) { return larger(larger(a, b), c); }
static __device__ __forceinline__ int __vimin3_s32(int a, int b, int c) { return smaller(smaller(a, b), c); }
static __device__ __forceinline__ unsigned __vimax3_u32(unsigned a, unsigned b, unsigned c) { return larger(larger(a, b), c); }
static __device__ __forceinline__ unsigned __vimin3_u32(unsigned a, unsigned b, unsigned c) { return smaller(smaller(a, b), c); }
static __device__ __forceinline__ int __viaddmax_s32(int a, int b, int c) { return larger((int)((unsigned)a + (unsigned)b), c); }
static __device__ __forceinline__ int __viaddmin_s32(int a, int b, int c) { return smaller((int)((unsigned)a + (unsigned)b), c); }
static __device__ __forceinline__ unsigned __viaddmax_u32(unsigned a, unsigned b, unsigned c) { return larger(a + b, c); }
static __device__ __forceinline__ unsigned __viaddmin_u32(unsigned a, unsigned b, unsigned c) { return smaller(a + b, c); }
static __device__ __forceinline__ int __vimax_s32_relu(int a, int b) { return larger(larger(a, b), 0); }
static __device__ __forceinline__ int __vimin_s32_relu(int a, int b) { return larger(smaller(a, b), 0); }
static __device__ __forceinline__ int __vimax3_s32_relu(int a, int b, int c) { return larger(__vimax3_s32(a, b, c), 0); }
static __device__ __forceinline__ int __vimin3_s32_relu(int a, int b, int c) { return larger(__vimin3_s32(a, b, c), 0); }
static __device__ __forceinline__ int __viaddmax_s32_relu(int a, int b, int c) { return larger(__viaddmax_s32(a, b, c), 0); }
static __device__ __forceinline__ int __viaddmin_s32_relu(int a, int b, int c) { return larger(__viaddmin_s32(a, b, c), 0); }
static __device__ __forceinline__ int __vibmax_s32(int a, int b, bool* p) { *p = a >= b; return larger(a, b); }
static __device__ __forceinline__ int __vibmin_s32(int a, int b, bool* p) { *p = a <= b; return smaller(a, b); }
}  // namespace wavesmith
//@ end
