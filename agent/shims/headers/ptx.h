//@ entry: ptx_arithmetic
//@ contract: exact
//@ note: PTX arithmetic as functions; transcendental approximations use the device library, which is at least as accurate
#ifndef WAVESMITH_FN
#define WAVESMITH_FN static __device__ __forceinline__
#define WAVESMITH_FN_PLAIN __device__ __forceinline__
#define WAVESMITH_CTOR __device__ __forceinline__
#endif
namespace wavesmith {
namespace ptx {
using f16 = _Float16;
struct bf16 {
  unsigned short bits;
  bf16() = default;
  WAVESMITH_CTOR explicit bf16(float v) {
    unsigned u;
    __builtin_memcpy(&u, &v, 4);
    bits = v != v ? 0x7fff : (unsigned short)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  WAVESMITH_CTOR explicit operator float() const { const unsigned u = (unsigned)bits << 16; float f; __builtin_memcpy(&f, &u, 4); return f; }
};
template <class E> struct pair_of { E x, y; };
using f16x2 = pair_of<f16>;
using bf16x2 = pair_of<bf16>;
template <class T> struct is_float { static constexpr bool value = false; };
template <> struct is_float<float> { static constexpr bool value = true; };
template <> struct is_float<double> { static constexpr bool value = true; };
template <> struct is_float<f16> { static constexpr bool value = true; };
template <> struct is_float<bf16> { static constexpr bool value = true; };
template <class T> struct bits_type { using type = unsigned long long; };
template <class T> using unsigned_of = typename std::conditional<sizeof(T) == 1, unsigned char, typename std::conditional<sizeof(T) == 2, unsigned short, typename std::conditional<sizeof(T) == 4, unsigned, unsigned long long>::type>::type>::type;
template <class T> using wide_of = typename std::conditional<std::is_signed<T>::value, typename std::conditional<sizeof(T) == 2, int, long long>::type, typename std::conditional<sizeof(T) == 2, unsigned, unsigned long long>::type>::type;

template <class T, class S> WAVESMITH_FN T as(S v) {
  if constexpr (std::is_same<T, S>::value) return v;
  else if constexpr (std::is_same<T, bool>::value) return v != S(0);
  else if constexpr (sizeof(T) == sizeof(S)) { T r; __builtin_memcpy(&r, &v, sizeof(T)); return r; }
  else if constexpr (std::is_integral<S>::value && std::is_integral<T>::value) return (T)v;
  else if constexpr (sizeof(T) < sizeof(S)) { T r; __builtin_memcpy(&r, &v, sizeof(T)); return r; }
  else { unsigned_of<S> b; __builtin_memcpy(&b, &v, sizeof(S)); const unsigned_of<T> w = b; T r; __builtin_memcpy(&r, &w, sizeof(T)); return r; }
}
template <class R, class S> WAVESMITH_FN R put(S v) { return as<R>(v); }
template <class T, class S> WAVESMITH_FN T in(S v) {
  if constexpr (std::is_pointer<S>::value) return (T)(size_t)v;
  else if constexpr (std::is_array<S>::value) return (T)(size_t)&v[0];
  else if constexpr (std::is_arithmetic<S>::value || std::is_enum<S>::value) return (T)v;
  else return as<T>(v);
}
template <class D, class S> WAVESMITH_FN void out(D& d, S v) {
  if constexpr (std::is_pointer<D>::value) d = (D)(size_t)v;
  else if constexpr (std::is_arithmetic<D>::value || std::is_enum<D>::value) d = (D)v;
  else d = as<D>(v);
}

template <class T> WAVESMITH_FN T add(T a, T b) {
#pragma clang fp contract(off)
  if constexpr (std::is_same<T, bf16>::value) return bf16((float)a + (float)b);
  else if constexpr (std::is_same<T, f16x2>::value) return T{(f16)(a.x + b.x), (f16)(a.y + b.y)};
  else if constexpr (std::is_same<T, bf16x2>::value) return T{bf16((float)a.x + (float)b.x), bf16((float)a.y + (float)b.y)};
  else if constexpr (is_float<T>::value) return (T)(a + b);
  else return (T)((unsigned_of<T>)a + (unsigned_of<T>)b);
}
template <class T> WAVESMITH_FN T sub(T a, T b) {
#pragma clang fp contract(off)
  if constexpr (std::is_same<T, bf16>::value) return bf16((float)a - (float)b);
  else if constexpr (std::is_same<T, f16x2>::value) return T{(f16)(a.x - b.x), (f16)(a.y - b.y)};
  else if constexpr (std::is_same<T, bf16x2>::value) return T{bf16((float)a.x - (float)b.x), bf16((float)a.y - (float)b.y)};
  else if constexpr (is_float<T>::value) return (T)(a - b);
  else return (T)((unsigned_of<T>)a - (unsigned_of<T>)b);
}
template <class T> WAVESMITH_FN T mul(T a, T b) {
#pragma clang fp contract(off)
  if constexpr (std::is_same<T, bf16>::value) return bf16((float)a * (float)b);
  else if constexpr (std::is_same<T, f16x2>::value) return T{(f16)(a.x * b.x), (f16)(a.y * b.y)};
  else if constexpr (std::is_same<T, bf16x2>::value) return T{bf16((float)a.x * (float)b.x), bf16((float)a.y * (float)b.y)};
  else return (T)(a * b);
}
template <class T> WAVESMITH_FN T mad(T a, T b, T c) {
  if constexpr (std::is_same<T, bf16>::value) return bf16(__builtin_fmaf((float)a, (float)b, (float)c));
  else if constexpr (std::is_same<T, bf16x2>::value) return T{mad(a.x, b.x, c.x), mad(a.y, b.y, c.y)};
  else if constexpr (std::is_same<T, f16x2>::value) return T{mad(a.x, b.x, c.x), mad(a.y, b.y, c.y)};
  else if constexpr (std::is_same<T, float>::value) return __builtin_fmaf(a, b, c);
  else if constexpr (std::is_same<T, f16>::value) return (f16)__builtin_fma((double)a, (double)b, (double)c);
  else return __builtin_fma(a, b, c);
}
WAVESMITH_FN float saturated(float v) { return v >= 0.f ? (v <= 1.f ? v : 1.f) : 0.f; }
template <class T> WAVESMITH_FN T add_sat(T a, T b) {
  if constexpr (std::is_same<T, float>::value) return saturated(add(a, b));
  else { const long long s = (long long)a + (long long)b; return (T)(s > 2147483647ll ? 2147483647ll : s < -2147483648ll ? -2147483648ll : s); }
}
template <class T> WAVESMITH_FN T sub_sat(T a, T b) {
  if constexpr (std::is_same<T, float>::value) return saturated(sub(a, b));
  else { const long long s = (long long)a - (long long)b; return (T)(s > 2147483647ll ? 2147483647ll : s < -2147483648ll ? -2147483648ll : s); }
}
template <class T> WAVESMITH_FN T mul_sat(T a, T b) { return saturated(mul(a, b)); }
template <class T> WAVESMITH_FN T mad_sat(T a, T b, T c) { return saturated(mad(a, b, c)); }
template <class T> WAVESMITH_FN T mul_lo(T a, T b) { return (T)((unsigned_of<T>)a * (unsigned long long)(unsigned_of<T>)b); }
template <class T> WAVESMITH_FN T mul_hi(T a, T b) {
  if constexpr (sizeof(T) == 8) return (T)(std::is_signed<T>::value ? (T)(((__int128)a * (__int128)b) >> 64) : (T)(((unsigned __int128)a * (unsigned __int128)b) >> 64));
  else return (T)(((wide_of<T>)a * (wide_of<T>)b) >> (8 * sizeof(T)));
}
template <class T> WAVESMITH_FN wide_of<T> mul_wide(T a, T b) { return (wide_of<T>)a * (wide_of<T>)b; }
template <class T> WAVESMITH_FN T mad_lo(T a, T b, T c) { return add(mul_lo(a, b), c); }
template <class T> WAVESMITH_FN T mad_hi(T a, T b, T c) { return add(mul_hi(a, b), c); }
template <class T> WAVESMITH_FN wide_of<T> mad_wide(T a, T b, wide_of<T> c) { return add(mul_wide(a, b), c); }
template <class T> WAVESMITH_FN T mul24_part(T a) { return std::is_signed<T>::value ? (T)((int)((unsigned)a << 8) >> 8) : (T)((unsigned)a & 0xffffffu); }
template <class T> WAVESMITH_FN T mul24(T a, T b) { return mul_lo(mul24_part(a), mul24_part(b)); }
template <class T> WAVESMITH_FN T mad24_lo(T a, T b, T c) { return add(mul24(a, b), c); }
template <class T> WAVESMITH_FN T add_carry(T a, T b, unsigned in, unsigned* out) {
  using U = unsigned_of<T>;
  const U s = (U)((U)a + (U)b), r = (U)(s + in);
  if (out) *out = s < (U)a || r < s;
  return (T)r;
}
template <class T> WAVESMITH_FN T sub_carry(T a, T b, unsigned in, unsigned* out) {
  using U = unsigned_of<T>;
  const U d = (U)((U)a - (U)b), r = (U)(d - in);
  if (out) *out = (U)a < (U)b || d < (U)in;
  return (T)r;
}
template <class T> WAVESMITH_FN T mad_lo_carry(T a, T b, T c, unsigned in, unsigned* out) { return add_carry(mul_lo(a, b), c, in, out); }
template <class T> WAVESMITH_FN T mad_hi_carry(T a, T b, T c, unsigned in, unsigned* out) { return add_carry(mul_hi(a, b), c, in, out); }
template <class T> WAVESMITH_FN T div(T a, T b) { if constexpr (std::is_integral<T>::value) return b ? (T)(a / b) : (T)-1; else return a / b; }
template <class T> WAVESMITH_FN T rem(T a, T b) { return b ? (T)(a % b) : a; }
template <class T> WAVESMITH_FN T min(T a, T b) {
  if constexpr (std::is_same<T, f16x2>::value || std::is_same<T, bf16x2>::value) return T{min(a.x, b.x), min(a.y, b.y)};
  else if constexpr (std::is_same<T, bf16>::value) return (float)a != (float)a ? b : (float)b < (float)a ? b : a;
  else if constexpr (is_float<T>::value) return a != a ? b : b < a ? b : a;
  else return b < a ? b : a;
}
template <class T> WAVESMITH_FN T max(T a, T b) {
  if constexpr (std::is_same<T, f16x2>::value || std::is_same<T, bf16x2>::value) return T{max(a.x, b.x), max(a.y, b.y)};
  else if constexpr (std::is_same<T, bf16>::value) return (float)a != (float)a ? b : (float)a < (float)b ? b : a;
  else if constexpr (is_float<T>::value) return a != a ? b : a < b ? b : a;
  else return a < b ? b : a;
}
template <class T> WAVESMITH_FN T min_nan(T a, T b) { return a != a ? a : b != b ? b : min(a, b); }
template <class T> WAVESMITH_FN T max_nan(T a, T b) { return a != a ? a : b != b ? b : max(a, b); }
template <class T> WAVESMITH_FN T and_(T a, T b) { return (T)(a & b); }
template <class T> WAVESMITH_FN T or_(T a, T b) { return (T)(a | b); }
template <class T> WAVESMITH_FN T xor_(T a, T b) { return (T)(a ^ b); }
template <class T> WAVESMITH_FN T not_(T a) { if constexpr (std::is_same<T, bool>::value) return !a; else return (T)~a; }
template <class T> WAVESMITH_FN T cnot(T a) { return (T)(a == T(0)); }
template <class T> WAVESMITH_FN T abs(T a) { if constexpr (std::is_integral<T>::value) return a < T(0) ? (T)(0 - (unsigned_of<T>)a) : a; else return (T)(a < T(0) ? -a : a == T(0) ? T(0) : a); }
template <class T> WAVESMITH_FN T neg(T a) {
  if constexpr (std::is_integral<T>::value) return (T)(0 - (unsigned_of<T>)a);
  else if constexpr (std::is_same<T, bf16>::value) { a.bits ^= 0x8000u; return a; }
  else if constexpr (std::is_same<T, f16x2>::value || std::is_same<T, bf16x2>::value) return T{neg(a.x), neg(a.y)};
  else return -a;
}
template <class T> WAVESMITH_FN T copysign(T a, T b) { return (T)(sizeof(T) == 4 ? __builtin_copysignf((float)b, (float)a) : __builtin_copysign((double)b, (double)a)); }
template <class T> WAVESMITH_FN unsigned popc(T a) { return (unsigned)__builtin_popcountll((unsigned long long)(unsigned_of<T>)a); }
template <class T> WAVESMITH_FN unsigned clz(T a) { unsigned n = 0; for (int i = 8 * (int)sizeof(T) - 1; i >= 0 && !(((unsigned_of<T>)a >> i) & 1u); i--) n++; return n; }
template <class T> WAVESMITH_FN T brev(T a) { unsigned_of<T> r = 0; for (unsigned i = 0; i < 8 * sizeof(T); i++) r = (unsigned_of<T>)((r << 1) | (((unsigned_of<T>)a >> i) & 1u)); return (T)r; }
template <class T> WAVESMITH_FN T shl(T a, unsigned n) { return n >= 8 * sizeof(T) ? T(0) : (T)((unsigned_of<T>)a << n); }
template <class T> WAVESMITH_FN T shr(T a, unsigned n) {
  if (n >= 8 * sizeof(T)) return std::is_signed<T>::value && a < T(0) ? (T)-1 : T(0);
  return (T)(a >> n);
}
template <class T> WAVESMITH_FN T bfe(T a, unsigned start, unsigned count) {
  constexpr unsigned top = 8 * sizeof(T) - 1;
  start &= 0xffu;
  count &= 0xffu;
  unsigned_of<T> r = 0;
  unsigned last = start + count - 1 < top ? start + count - 1 : top;
  if (count == 0) return T(0);
  const bool fill = std::is_signed<T>::value && ((unsigned_of<T>)a >> last & 1u);
  for (unsigned i = 0; i <= top; i++) {
    const bool bit = i < count && start + i <= top ? ((unsigned_of<T>)a >> (start + i)) & 1u : fill;
    r |= (unsigned_of<T>)((unsigned_of<T>)bit << i);
  }
  return (T)r;
}
template <class T> WAVESMITH_FN T bfi(T a, T b, unsigned start, unsigned count) {
  constexpr unsigned bits = 8 * sizeof(T);
  start &= 0xffu;
  count &= 0xffu;
  unsigned_of<T> r = (unsigned_of<T>)b;
  for (unsigned i = 0; i < count && start + i < bits; i++) {
    const unsigned_of<T> bit = (unsigned_of<T>)1 << (start + i);
    r = ((unsigned_of<T>)a >> i) & 1u ? r | bit : r & (unsigned_of<T>)~bit;
  }
  return (T)r;
}
template <class T> WAVESMITH_FN unsigned bfind(T a) {
  const unsigned_of<T> v = std::is_signed<T>::value && a < T(0) ? (unsigned_of<T>)~a : (unsigned_of<T>)a;
  return v == 0 ? 0xffffffffu : 8u * (unsigned)sizeof(T) - 1u - clz(v);
}
WAVESMITH_FN unsigned fns(unsigned mask, unsigned base, int offset) {
  if (offset == 0) return (mask >> base) & 1u ? base : 0xffffffffu;
  const int step = offset > 0 ? 1 : -1;
  int left = offset > 0 ? offset : -offset;
  for (int i = (int)base; i >= 0 && i < 32; i += step)
    if (((mask >> i) & 1u) && --left == 0) return (unsigned)i;
  return 0xffffffffu;
}
WAVESMITH_FN unsigned prmt(unsigned a, unsigned b, unsigned selector) {
  const unsigned long long bytes = ((unsigned long long)b << 32) | a;
  unsigned r = 0;
  for (int i = 0; i < 4; i++) {
    const unsigned s = (selector >> (4 * i)) & 0xfu;
    unsigned byte = (unsigned)(bytes >> (8 * (s & 7u))) & 0xffu;
    if (s & 8u) byte = byte & 0x80u ? 0xffu : 0u;
    r |= byte << (8 * i);
  }
  return r;
}
WAVESMITH_FN unsigned lop3(unsigned a, unsigned b, unsigned c, unsigned table) {
  unsigned r = 0;
  if (table & 0x01u) r |= ~a & ~b & ~c;
  if (table & 0x02u) r |= ~a & ~b & c;
  if (table & 0x04u) r |= ~a & b & ~c;
  if (table & 0x08u) r |= ~a & b & c;
  if (table & 0x10u) r |= a & ~b & ~c;
  if (table & 0x20u) r |= a & ~b & c;
  if (table & 0x40u) r |= a & b & ~c;
  if (table & 0x80u) r |= a & b & c;
  return r;
}
WAVESMITH_FN unsigned shf_l_wrap(unsigned a, unsigned b, unsigned n) { n &= 31u; return n ? (b << n) | (a >> (32u - n)) : b; }
WAVESMITH_FN unsigned shf_r_wrap(unsigned a, unsigned b, unsigned n) { n &= 31u; return n ? (b << (32u - n)) | (a >> n) : a; }
WAVESMITH_FN unsigned shf_l_clamp(unsigned a, unsigned b, unsigned n) { return n >= 32u ? a : shf_l_wrap(a, b, n); }
WAVESMITH_FN unsigned shf_r_clamp(unsigned a, unsigned b, unsigned n) { return n >= 32u ? b : shf_r_wrap(a, b, n); }
template <class T> WAVESMITH_FN T sad(T a, T b, T c) { return add(c, a > b ? sub(a, b) : sub(b, a)); }
template <class T> WAVESMITH_FN T selp(T a, T b, bool p) { return p ? a : b; }
template <class T> WAVESMITH_FN T slct(T a, T b, int c) { return c >= 0 ? a : b; }
template <bool SA, bool SB, class R> WAVESMITH_FN R dp4a(unsigned a, unsigned b, R c) {
  unsigned s = (unsigned)c;
  for (int i = 0; i < 32; i += 8) s += (unsigned)((SA ? (int)(signed char)(a >> i) : (int)(unsigned char)(a >> i)) * (SB ? (int)(signed char)(b >> i) : (int)(unsigned char)(b >> i)));
  return (R)s;
}
template <bool SA, bool SB, class R> WAVESMITH_FN R dp2a_at(unsigned a, unsigned b, R c, int shift) {
  unsigned s = (unsigned)c;
  for (int i = 0; i < 2; i++) s += (unsigned)((SA ? (int)(short)(a >> (16 * i)) : (int)(unsigned short)(a >> (16 * i))) * (SB ? (int)(signed char)(b >> (shift + 8 * i)) : (int)(unsigned char)(b >> (shift + 8 * i))));
  return (R)s;
}
template <bool SA, bool SB, class R> WAVESMITH_FN R dp2a_lo(unsigned a, unsigned b, R c) { return dp2a_at<SA, SB>(a, b, c, 0); }
template <bool SA, bool SB, class R> WAVESMITH_FN R dp2a_hi(unsigned a, unsigned b, R c) { return dp2a_at<SA, SB>(a, b, c, 16); }
#define WAVESMITH_COMPARE(NAME, OP) \
  template <class T> WAVESMITH_FN bool compare_##NAME(T a, T b) { return a OP b; } \
  template <class T> WAVESMITH_FN bool compare_##NAME##u(T a, T b) { return a != a || b != b || a OP b; }
WAVESMITH_COMPARE(eq, ==)
WAVESMITH_COMPARE(lt, <)
WAVESMITH_COMPARE(le, <=)
WAVESMITH_COMPARE(gt, >)
WAVESMITH_COMPARE(ge, >=)
template <class T> WAVESMITH_FN bool compare_ne(T a, T b) { return a == a && b == b && a != b; }
template <class T> WAVESMITH_FN bool compare_neu(T a, T b) { return a != b; }
template <class T> WAVESMITH_FN bool compare_num(T a, T b) { return a == a && b == b; }
template <class T> WAVESMITH_FN bool compare_nan(T a, T b) { return a != a || b != b; }
enum mode { rn, rz, rm, rp, rni, rzi, rmi, rpi };
template <class T> WAVESMITH_FN double float_of(T v) { if constexpr (std::is_same<T, double>::value) return v; else return (double)(float)v; }
template <class T> WAVESMITH_FN float v_as_float(T v) { return (float)v; }
template <class T> WAVESMITH_FN double rounded(double v, T, mode m) { return m == rni || m == rn ? __builtin_rint(v) : m == rzi || m == rz ? __builtin_trunc(v) : m == rmi || m == rm ? __builtin_floor(v) : __builtin_ceil(v); }
template <class To, class From, mode M, bool Sat> WAVESMITH_FN To cvt(From v) {
  if constexpr (std::is_integral<To>::value && std::is_integral<From>::value) {
    if constexpr (Sat) {
      constexpr long long low = std::is_signed<To>::value ? -(long long)((~0ull >> 1) >> (64 - 8 * sizeof(To))) - 1 : 0;
      constexpr unsigned long long high = std::is_signed<To>::value ? (~0ull >> 1) >> (64 - 8 * sizeof(To)) : ~0ull >> (64 - 8 * sizeof(To));
      if (std::is_signed<From>::value && (long long)v < low) return (To)low;
      if ((!std::is_signed<From>::value || (long long)v > 0) && (unsigned long long)v > high) return (To)high;
    }
    return (To)v;
  } else if constexpr (std::is_integral<To>::value) {
    const double d = rounded((double)(float_of(v)), To(), M);
    constexpr double high = std::is_signed<To>::value ? (double)((~0ull >> 1) >> (64 - 8 * sizeof(To))) : (double)(~0ull >> (64 - 8 * sizeof(To)));
    constexpr double low = std::is_signed<To>::value ? -high - 1 : 0;
    if (d != d) return sizeof(To) == 8 ? (To)(std::is_signed<To>::value ? 0x8000000000000000ull : 0x8000000000000000ull) : To(0);
    return d >= high ? (To)(std::is_signed<To>::value ? (~0ull >> 1) >> (64 - 8 * sizeof(To)) : ~0ull >> (64 - 8 * sizeof(To))) : d <= low ? (To)(std::is_signed<To>::value ? 1ull << (8 * sizeof(To) - 1) : 0ull) : (To)d;
  } else {
    double d;
    if constexpr (std::is_integral<From>::value) d = (double)v; else d = (double)float_of(v);
    if constexpr (M == rni || M == rzi || M == rmi || M == rpi) d = rounded(d, To(), M);
    if constexpr (std::is_same<To, float>::value) {
      float f = std::is_integral<From>::value && sizeof(From) == 8 ? (float)v_as_float(v) : (float)d;
      if constexpr (M == rz || M == rm || M == rp) {
        const double e = (double)f - d;
        if (f == f && e != 0) {
          const bool down = M == rm ? e > 0 : M == rz ? (d > 0 ? e > 0 : false) : false, up = M == rp ? e < 0 : M == rz ? (d < 0 ? e < 0 : false) : false;
          if (down || up) { int b; __builtin_memcpy(&b, &f, 4); b += (f > 0) == up ? 1 : -1; __builtin_memcpy(&f, &b, 4); }
        }
      }
      return Sat ? saturated(f) : f;
    } else if constexpr (std::is_same<To, double>::value) return d;
    else if constexpr (std::is_same<To, bf16>::value) return bf16((float)d);
    else return (To)d;
  }
}
template <class P, class S> WAVESMITH_FN P pack(S high, S low) {
  if constexpr (std::is_same<P, f16x2>::value) return P{(f16)(float)low, (f16)(float)high};
  else return P{bf16((float)low), bf16((float)high)};
}
}  // namespace ptx
}  // namespace wavesmith
//@ end

//@ entry: ptx_functions
//@ requires: ptx_arithmetic
//@ contract: exact
//@ note: approximate PTX functions through the device library
namespace wavesmith {
namespace ptx {
template <class T> WAVESMITH_FN T sqrt(T a) { return (T)(sizeof(T) == 8 ? (double)::sqrt((double)a) : (double)::sqrtf((float)a)); }
template <class T> WAVESMITH_FN T rsqrt(T a) { if constexpr (sizeof(T) == 8) return 1.0 / ::sqrt(a); else return (T)(1.0f / ::sqrtf((float)a)); }
template <class T> WAVESMITH_FN T rcp(T a) { return (T)(T(1) / a); }
template <class T> WAVESMITH_FN T sin(T a) { return (T)::sinf((float)a); }
template <class T> WAVESMITH_FN T cos(T a) { return (T)::cosf((float)a); }
template <class T> WAVESMITH_FN T lg2(T a) { return (T)::log2f((float)a); }
template <class T> WAVESMITH_FN T ex2(T a) { return (T)::exp2f((float)a); }
template <class T> WAVESMITH_FN T tanh(T a) { return (T)::tanhf((float)a); }
template <> WAVESMITH_FN_PLAIN f16x2 ex2<f16x2>(f16x2 a) { return {ex2(a.x), ex2(a.y)}; }
template <> WAVESMITH_FN_PLAIN f16x2 tanh<f16x2>(f16x2 a) { return {tanh(a.x), tanh(a.y)}; }
}  // namespace ptx
}  // namespace wavesmith
//@ end

//@ entry: ptx_directed
//@ requires: ptx_arithmetic, directed_core
//@ contract: exact
//@ note: rounded down, up or to zero in software
namespace wavesmith {
namespace ptx {
#define WAVESMITH_DIRECTED(SUFFIX, WAY) \
  template <class T> WAVESMITH_FN T add_##SUFFIX(T a, T b) { if constexpr (sizeof(T) == 4) return add_to(a, b, WAY); else return dadd_to(a, b, WAY); } \
  template <class T> WAVESMITH_FN T sub_##SUFFIX(T a, T b) { if constexpr (sizeof(T) == 4) return add_to(a, -b, WAY); else return dadd_to(a, -b, WAY); } \
  template <class T> WAVESMITH_FN T mul_##SUFFIX(T a, T b) { if constexpr (sizeof(T) == 4) return round_to((double)a * b, WAY); else return dmul_to(a, b, WAY); } \
  template <class T> WAVESMITH_FN T div_##SUFFIX(T a, T b) { if constexpr (sizeof(T) == 4) return div_to(a, b, WAY); else return ddiv_to(a, b, WAY); } \
  template <class T> WAVESMITH_FN T rcp_##SUFFIX(T a) { if constexpr (sizeof(T) == 4) return div_to(1.f, a, WAY); else return ddiv_to(1.0, a, WAY); } \
  template <class T> WAVESMITH_FN T mad_##SUFFIX(T a, T b, T c) { static_assert(sizeof(T) == 4, "directed fma of double"); return fma_to(a, b, c, WAY); } \
  template <class T> WAVESMITH_FN T sqrt_##SUFFIX(T a) { static_assert(sizeof(T) == 4, "directed square root of double"); return sqrt_to(a, WAY); }
WAVESMITH_DIRECTED(rm, -1)
WAVESMITH_DIRECTED(rp, 1)
WAVESMITH_DIRECTED(rz, 0)
}  // namespace ptx
}  // namespace wavesmith
//@ end

//@ entry: ptx_memory
//@ requires: ptx_arithmetic, cache_core, atomic_core
//@ contract: exact
//@ note: cache operators and eviction hints are performance-only and dropped; cp.async copies at once
namespace wavesmith {
namespace ptx {
template <class T, int N> struct __attribute__((aligned(sizeof(T) * N <= 16 ? sizeof(T) * N : 16))) vec { T v[N]; };
template <class T, int N> WAVESMITH_FN vec<T, N>* at_generic(unsigned long long address, long long offset) { return (vec<T, N>*)(address + (unsigned long long)offset); }
template <class T, int N> WAVESMITH_FN vec<T, N>* at_shared(unsigned long long address, long long offset) { return (vec<T, N>*)(__attribute__((address_space(3))) void*)(unsigned)(address + (unsigned long long)offset); }
WAVESMITH_FN unsigned long long address_to_shared(unsigned long long p) { return (unsigned)(unsigned long long)(__attribute__((address_space(3))) void*)(void*)p; }
WAVESMITH_FN unsigned long long address_from_shared(unsigned long long p) { return (unsigned long long)(void*)(__attribute__((address_space(3))) void*)(unsigned)p; }
WAVESMITH_FN unsigned long long address_to_global(unsigned long long p) { return p; }
WAVESMITH_FN unsigned long long address_from_global(unsigned long long p) { return p; }
WAVESMITH_FN bool is_shared(unsigned long long p) { return __builtin_amdgcn_is_shared((__attribute__((address_space(0))) void*)p); }
WAVESMITH_FN bool is_local(unsigned long long p) { return __builtin_amdgcn_is_private((__attribute__((address_space(0))) void*)p); }
WAVESMITH_FN bool is_global(unsigned long long p) { return !is_shared(p) && !is_local(p); }
struct plain_access {
  template <class V> __device__ __forceinline__ V load(const V* p) const { return *p; }
  template <class V> __device__ __forceinline__ void store(V* p, V v) const { *p = v; }
};
struct volatile_access {
  template <class T, int N> __device__ __forceinline__ vec<T, N> load(const vec<T, N>* p) const { vec<T, N> r; for (int i = 0; i < N; i++) r.v[i] = *(const volatile T*)&p->v[i]; return r; }
  template <class T, int N> __device__ __forceinline__ void store(vec<T, N>* p, vec<T, N> v) const { for (int i = 0; i < N; i++) *(volatile T*)&p->v[i] = v.v[i]; }
};
struct streaming_access {
  template <class V> __device__ __forceinline__ V load(const V* p) const { return load_streaming(p); }
  template <class V> __device__ __forceinline__ void store(V* p, V v) const { store_streaming(p, v); }
};
struct system_access {
  template <class V> __device__ __forceinline__ V load(const V* p) const { return load_system(p); }
  template <class V> __device__ __forceinline__ void store(V* p, V v) const { store_system(p, v); }
};
template <int Order, int Scope> struct ordered {
  static constexpr int load_order = Order == __ATOMIC_ACQ_REL || Order == __ATOMIC_RELEASE ? __ATOMIC_ACQUIRE : Order;
  static constexpr int store_order = Order == __ATOMIC_ACQ_REL || Order == __ATOMIC_ACQUIRE ? __ATOMIC_RELEASE : Order;
  template <class T, int N> __device__ __forceinline__ vec<T, N> load(vec<T, N>* p) const { vec<T, N> r; for (int i = 0; i < N; i++) r.v[i] = __hip_atomic_load(&p->v[i], load_order, Scope); return r; }
  template <class T, int N> __device__ __forceinline__ void store(vec<T, N>* p, vec<T, N> v) const { for (int i = 0; i < N; i++) __hip_atomic_store(&p->v[i], v.v[i], store_order, Scope); }
  template <class T> __device__ __forceinline__ T add_(vec<T, 1>* p, T v) const {
    if constexpr (std::is_same<T, f16x2>::value || std::is_same<T, bf16x2>::value || std::is_same<T, f16>::value || std::is_same<T, bf16>::value) return exchange_loop<unsigned>(&p->v[0], [=](T old) { return ptx::add(old, v); });
    else return __hip_atomic_fetch_add(&p->v[0], v, Order, Scope);
  }
  template <class T> __device__ __forceinline__ T min_(vec<T, 1>* p, T v) const { return __hip_atomic_fetch_min(&p->v[0], v, Order, Scope); }
  template <class T> __device__ __forceinline__ T max_(vec<T, 1>* p, T v) const { return __hip_atomic_fetch_max(&p->v[0], v, Order, Scope); }
  template <class T> __device__ __forceinline__ T and_(vec<T, 1>* p, T v) const { return __hip_atomic_fetch_and(&p->v[0], v, Order, Scope); }
  template <class T> __device__ __forceinline__ T or_(vec<T, 1>* p, T v) const { return __hip_atomic_fetch_or(&p->v[0], v, Order, Scope); }
  template <class T> __device__ __forceinline__ T xor_(vec<T, 1>* p, T v) const { return __hip_atomic_fetch_xor(&p->v[0], v, Order, Scope); }
  template <class T> __device__ __forceinline__ T exch_(vec<T, 1>* p, T v) const { return __hip_atomic_exchange(&p->v[0], v, Order, Scope); }
  template <class T> __device__ __forceinline__ T cas_(vec<T, 1>* p, T compare, T v) const { __hip_atomic_compare_exchange_strong(&p->v[0], &compare, v, Order, load_order, Scope); return compare; }
  __device__ __forceinline__ unsigned inc_(vec<unsigned, 1>* p, unsigned limit) const { return exchange_loop<unsigned>(&p->v[0], [=](unsigned old) { return old >= limit ? 0u : old + 1u; }); }
  __device__ __forceinline__ unsigned dec_(vec<unsigned, 1>* p, unsigned limit) const { return exchange_loop<unsigned>(&p->v[0], [=](unsigned old) { return old == 0u || old > limit ? limit : old - 1u; }); }
};
static constexpr __device__ plain_access plain{};
static constexpr __device__ volatile_access volatile_{};
static constexpr __device__ streaming_access streaming{};
static constexpr __device__ system_access system_{};
#define WAVESMITH_SCOPES(NAME, ORDER) \
  static constexpr __device__ ordered<ORDER, __HIP_MEMORY_SCOPE_WORKGROUP> NAME##_block{}; \
  static constexpr __device__ ordered<ORDER, __HIP_MEMORY_SCOPE_AGENT> NAME##_device{}; \
  static constexpr __device__ ordered<ORDER, __HIP_MEMORY_SCOPE_SYSTEM> NAME##_system{};
WAVESMITH_SCOPES(relaxed, __ATOMIC_RELAXED)
WAVESMITH_SCOPES(acquire, __ATOMIC_ACQUIRE)
WAVESMITH_SCOPES(release, __ATOMIC_RELEASE)
WAVESMITH_SCOPES(acq_rel, __ATOMIC_ACQ_REL)
WAVESMITH_SCOPES(sc, __ATOMIC_SEQ_CST)
WAVESMITH_FN void fence_block() { __threadfence_block(); }
WAVESMITH_FN void fence_device() { __threadfence(); }
WAVESMITH_FN void fence_system() { __threadfence_system(); }
WAVESMITH_FN void wait() { __builtin_amdgcn_fence(__ATOMIC_ACQ_REL, "workgroup"); }
WAVESMITH_FN void copy_to_shared(unsigned long long to, unsigned long long from, unsigned size, unsigned copied) {
  unsigned char* target = (unsigned char*)at_shared<unsigned char, 1>(to, 0);
  const unsigned char* source = (const unsigned char*)from;
  if (size == 16 && copied == 16) *(uint4*)target = *(const uint4*)source;
  else if (size == 8 && copied == 8) *(uint2*)target = *(const uint2*)source;
  else if (size == 4 && copied == 4) *(unsigned*)target = *(const unsigned*)source;
  else for (unsigned i = 0; i < size; i++) target[i] = i < copied ? source[i] : (unsigned char)0;
}
}  // namespace ptx
}  // namespace wavesmith
//@ end

//@ entry: ptx_registers
//@ requires: ptx_arithmetic, warp_core
//@ contract: weaker
//@ note: lane and warp numbers are those of logical warps; multiprocessor numbers and clocks are of the AMD device and mean what they can
namespace wavesmith {
namespace ptx {
WAVESMITH_FN unsigned laneid() { return lane(); }
WAVESMITH_FN unsigned block_rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
WAVESMITH_FN unsigned warpid() { return block_rank() / 32u; }
WAVESMITH_FN unsigned nwarpid() { return 32u; }
WAVESMITH_FN unsigned smid() { return __smid(); }
WAVESMITH_FN unsigned nsmid() { return 512u; }
WAVESMITH_FN unsigned lanemask_eq() { return 1u << lane(); }
WAVESMITH_FN unsigned lanemask_lt() { return (1u << lane()) - 1u; }
WAVESMITH_FN unsigned lanemask_le() { return lanemask_lt() | lanemask_eq(); }
WAVESMITH_FN unsigned lanemask_gt() { return ~lanemask_le(); }
WAVESMITH_FN unsigned lanemask_ge() { return ~lanemask_lt(); }
WAVESMITH_FN unsigned clock() { return (unsigned)clock64(); }
WAVESMITH_FN unsigned long long clock64() { return (unsigned long long)::clock64(); }
WAVESMITH_FN unsigned long long globaltimer() { return (unsigned long long)::wall_clock64() * 10ull; }
WAVESMITH_FN unsigned gridid() { return 0u; }
}  // namespace ptx
}  // namespace wavesmith
//@ end

//@ entry: ptx_warp
//@ requires: ptx_arithmetic, warp_vote, warp_match, warp_reduce, warp_sync, warp_active
//@ contract: exact
//@ note: over the 32 lanes of the logical warp
namespace wavesmith {
namespace ptx {
template <class T> struct flagged { T value; bool valid; };
WAVESMITH_FN flagged<unsigned> shuffled(unsigned v, int from, bool valid) { return {read_lane(v, valid ? (unsigned)from : lane()), valid}; }
WAVESMITH_FN flagged<unsigned> shfl_idx(unsigned v, unsigned b, unsigned c) {
  const unsigned segment = (c >> 8) & 31u, clamp = c & 31u, low = lane() & segment, high = low | (clamp & ~segment);
  const unsigned from = low | (b & ~segment & 31u);
  return shuffled(v, (int)from, from <= high);
}
WAVESMITH_FN flagged<unsigned> shfl_up(unsigned v, unsigned b, unsigned c) {
  const unsigned segment = (c >> 8) & 31u, high = (lane() & segment) | (c & 31u & ~segment);
  const int from = (int)lane() - (int)(b & 31u);
  return shuffled(v, from, from >= (int)high);
}
WAVESMITH_FN flagged<unsigned> shfl_down(unsigned v, unsigned b, unsigned c) {
  const unsigned segment = (c >> 8) & 31u, high = (lane() & segment) | (c & 31u & ~segment);
  const unsigned from = lane() + (b & 31u);
  return shuffled(v, (int)from, from <= high);
}
WAVESMITH_FN flagged<unsigned> shfl_bfly(unsigned v, unsigned b, unsigned c) {
  const unsigned segment = (c >> 8) & 31u, high = (lane() & segment) | (c & 31u & ~segment);
  const unsigned from = lane() ^ (b & 31u);
  return shuffled(v, (int)from, from <= high);
}
WAVESMITH_FN bool vote_any(bool p, unsigned mask) { return __any_sync(mask, p); }
WAVESMITH_FN bool vote_all(bool p, unsigned mask) { return __all_sync(mask, p); }
WAVESMITH_FN bool vote_uni(bool p, unsigned mask) { return __uni_sync(mask, p); }
WAVESMITH_FN unsigned vote_ballot(bool p, unsigned mask) { return __ballot_sync(mask, p); }
template <class T> WAVESMITH_FN flagged<unsigned> match_any(T v, unsigned mask) { return {__match_any_sync(mask, v), true}; }
template <class T> WAVESMITH_FN flagged<unsigned> match_all(T v, unsigned mask) { int p; const unsigned r = __match_all_sync(mask, v, &p); return {r, p != 0}; }
template <class T> WAVESMITH_FN T redux_add(T v, unsigned mask) { return __reduce_add_sync(mask, v); }
template <class T> WAVESMITH_FN T redux_min(T v, unsigned mask) { return __reduce_min_sync(mask, v); }
template <class T> WAVESMITH_FN T redux_max(T v, unsigned mask) { return __reduce_max_sync(mask, v); }
template <class T> WAVESMITH_FN T redux_and(T v, unsigned mask) { return __reduce_and_sync(mask, v); }
template <class T> WAVESMITH_FN T redux_or(T v, unsigned mask) { return __reduce_or_sync(mask, v); }
template <class T> WAVESMITH_FN T redux_xor(T v, unsigned mask) { return __reduce_xor_sync(mask, v); }
WAVESMITH_FN unsigned activemask() { return __activemask(); }
WAVESMITH_FN void sync_warp() { __syncwarp(); }
}  // namespace ptx
}  // namespace wavesmith
//@ end
