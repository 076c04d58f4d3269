// The parts of the PTX functions that touch memory or other lanes, on the CPU model. Arithmetic comes from the shims.
#pragma once
#include "cub.h"
namespace wavesmith {
namespace ptx {
template <class T> T sqrt(T a) { return (T)::sqrt((double)a); }
template <class T> T rsqrt(T a) { return (T)(1.0 / ::sqrt((double)a)); }
template <class T> T rcp(T a) { return (T)(1.0 / (double)a); }
template <class T> T sin(T a) { return (T)::sinf((float)a); }
template <class T> T cos(T a) { return (T)::cosf((float)a); }
template <class T> T lg2(T a) { return (T)::log2f((float)a); }
template <class T> T ex2(T a) { return (T)::exp2f((float)a); }
template <class T> T tanh(T a) { return (T)::tanhf((float)a); }
template <> inline f16x2 ex2<f16x2>(f16x2 a) { return {ex2(a.x), ex2(a.y)}; }
template <> inline f16x2 tanh<f16x2>(f16x2 a) { return {tanh(a.x), tanh(a.y)}; }
#define WAVESMITH_DIRECTED(SUFFIX, S) \
  template <class T> T add_##SUFFIX(T a, T b) { if constexpr (sizeof(T) == 4) return __fadd_##S(a, b); else return __dadd_##S(a, b); } \
  template <class T> T sub_##SUFFIX(T a, T b) { if constexpr (sizeof(T) == 4) return __fsub_##S(a, b); else return __dsub_##S(a, b); } \
  template <class T> T mul_##SUFFIX(T a, T b) { if constexpr (sizeof(T) == 4) return __fmul_##S(a, b); else return __dmul_##S(a, b); } \
  template <class T> T div_##SUFFIX(T a, T b) { if constexpr (sizeof(T) == 4) return __fdiv_##S(a, b); else return __ddiv_##S(a, b); } \
  template <class T> T rcp_##SUFFIX(T a) { if constexpr (sizeof(T) == 4) return __fdiv_##S(1.f, a); else return __ddiv_##S(1.0, a); } \
  template <class T> T mad_##SUFFIX(T a, T b, T c) { return __fmaf_##S(a, b, c); } \
  template <class T> T sqrt_##SUFFIX(T a) { return __fsqrt_##S(a); }
WAVESMITH_DIRECTED(rm, rd)
WAVESMITH_DIRECTED(rp, ru)
WAVESMITH_DIRECTED(rz, rz)
template <class T, int N> struct __attribute__((aligned(sizeof(T) * N <= 16 ? sizeof(T) * N : 16))) vec { T v[N]; };
template <class T, int N> vec<T, N>* at_generic(unsigned long long a, long long o) { return (vec<T, N>*)(a + o); }
template <class T, int N> vec<T, N>* at_shared(unsigned long long a, long long o) { return (vec<T, N>*)wavesmith_reference::from_shared((size_t)(a + o)); }
inline unsigned long long address_to_shared(unsigned long long p) { return wavesmith_reference::shared_offset((void*)p); }
inline unsigned long long address_from_shared(unsigned long long p) { return (unsigned long long)wavesmith_reference::from_shared(p); }
inline unsigned long long address_to_global(unsigned long long p) { return p; }
inline unsigned long long address_from_global(unsigned long long p) { return p; }
struct access {
  template <class V> V load(const V* p) const { return *p; }
  template <class V> void store(V* p, V v) const { *p = v; }
  template <class T> T add_(vec<T, 1>* p, T v) const { const T o = p->v[0]; p->v[0] = add(o, v); return o; }
  template <class T> T min_(vec<T, 1>* p, T v) const { const T o = p->v[0]; p->v[0] = v < o ? v : o; return o; }
  template <class T> T max_(vec<T, 1>* p, T v) const { const T o = p->v[0]; p->v[0] = o < v ? v : o; return o; }
  template <class T> T and_(vec<T, 1>* p, T v) const { const T o = p->v[0]; p->v[0] = o & v; return o; }
  template <class T> T or_(vec<T, 1>* p, T v) const { const T o = p->v[0]; p->v[0] = o | v; return o; }
  template <class T> T xor_(vec<T, 1>* p, T v) const { const T o = p->v[0]; p->v[0] = o ^ v; return o; }
  template <class T> T exch_(vec<T, 1>* p, T v) const { const T o = p->v[0]; p->v[0] = v; return o; }
  template <class T> T cas_(vec<T, 1>* p, T c, T v) const { const T o = p->v[0]; if (o == c) p->v[0] = v; else wavesmith_reference::yield_now(); return o; }
  unsigned inc_(vec<unsigned, 1>* p, unsigned l) const { return atomicInc(&p->v[0], l); }
  unsigned dec_(vec<unsigned, 1>* p, unsigned l) const { return atomicDec(&p->v[0], l); }
};
struct waiting : access { template <class V> V load(const V* p) const { wavesmith_reference::yield_now(); return *p; } };
inline constexpr access plain{}, streaming{};
inline constexpr waiting volatile_{}, system_{}, relaxed_block{}, relaxed_device{}, relaxed_system{}, acquire_block{}, acquire_device{}, acquire_system{}, release_block{}, release_device{}, release_system{}, acq_rel_block{}, acq_rel_device{}, acq_rel_system{}, sc_block{}, sc_device{}, sc_system{};
inline void fence_block() {}
inline void fence_device() {}
inline void fence_system() {}
inline void wait() {}
inline void copy_to_shared(unsigned long long to, unsigned long long from, unsigned size, unsigned copied) { char* t = (char*)wavesmith_reference::from_shared(to); memset(t, 0, size); memcpy(t, (const void*)from, copied < size ? copied : size); }
inline unsigned laneid() { return wavesmith_reference::lane(); }
inline unsigned warpid() { return wavesmith_reference::current->warp; }
inline unsigned nwarpid() { return 32; }
inline unsigned smid() { return 0; }
inline unsigned nsmid() { return 512; }
inline unsigned gridid() { return 0; }
inline unsigned lanemask_eq() { return __lanemask_eq(); }
inline unsigned lanemask_lt() { return __lanemask_lt(); }
inline unsigned lanemask_le() { return __lanemask_le(); }
inline unsigned lanemask_gt() { return __lanemask_gt(); }
inline unsigned lanemask_ge() { return __lanemask_ge(); }
inline unsigned clock() { return (unsigned)::clock64(); }
inline unsigned long long clock64() { return (unsigned long long)::clock64(); }
inline unsigned long long globaltimer() { return (unsigned long long)::clock64(); }
template <class T> struct flagged { T value; bool valid; };
inline flagged<unsigned> exchanged(unsigned v, int from, bool valid) {
  const auto& m = wavesmith_reference::meet(wavesmith_reference::warps[wavesmith_reference::current->warp].alive, &v, 4);
  return {valid && from >= 0 && from < 32 && (m.published >> from & 1u) ? wavesmith_reference::value_of<unsigned>(m, (unsigned)from) : v, valid};
}
inline unsigned bound(unsigned c) { const unsigned s = c >> 8 & 31u; return (wavesmith_reference::lane() & s) | (c & 31u & ~s); }
inline flagged<unsigned> shfl_idx(unsigned v, unsigned b, unsigned c) { const unsigned s = c >> 8 & 31u, j = (wavesmith_reference::lane() & s) | (b & 31u & ~s); return exchanged(v, (int)j, j <= bound(c)); }
inline flagged<unsigned> shfl_up(unsigned v, unsigned b, unsigned c) { const int j = (int)wavesmith_reference::lane() - (int)(b & 31u); return exchanged(v, j, j >= (int)bound(c)); }
inline flagged<unsigned> shfl_down(unsigned v, unsigned b, unsigned c) { const unsigned j = wavesmith_reference::lane() + (b & 31u); return exchanged(v, (int)j, j <= bound(c)); }
inline flagged<unsigned> shfl_bfly(unsigned v, unsigned b, unsigned c) { const unsigned j = wavesmith_reference::lane() ^ (b & 31u); return exchanged(v, (int)j, j <= bound(c)); }
inline bool vote_any(bool p, unsigned m) { return __any_sync(m, p); }
inline bool vote_all(bool p, unsigned m) { return __all_sync(m, p); }
inline bool vote_uni(bool p, unsigned m) { return __uni_sync(m, p); }
inline unsigned vote_ballot(bool p, unsigned m) { return __ballot_sync(m, p); }
template <class T> flagged<unsigned> match_any(T v, unsigned m) { return {__match_any_sync(m, v), true}; }
template <class T> flagged<unsigned> match_all(T v, unsigned m) { int p; const unsigned r = __match_all_sync(m, v, &p); return {r, p != 0}; }
template <class T> T redux_add(T v, unsigned m) { return __reduce_add_sync(m, v); }
template <class T> T redux_min(T v, unsigned m) { return __reduce_min_sync(m, v); }
template <class T> T redux_max(T v, unsigned m) { return __reduce_max_sync(m, v); }
template <class T> T redux_and(T v, unsigned m) { return __reduce_and_sync(m, v); }
template <class T> T redux_or(T v, unsigned m) { return __reduce_or_sync(m, v); }
template <class T> T redux_xor(T v, unsigned m) { return __reduce_xor_sync(m, v); }
__attribute__((noinline)) inline unsigned activemask() { return WAVESMITH_HERE; }
inline void sync_warp() { __syncwarp(); }
}  // namespace ptx
}  // namespace wavesmith
