// CUB's block and warp collectives by definition: everyone writes, everyone reads, folds in rank order.
#pragma once
#include "libcudacxx.h"
namespace cub {
namespace ref = wavesmith_reference;
struct Sum { template <class T> T operator()(const T& a, const T& b) const { return a + b; } };
struct Max { template <class T> T operator()(const T& a, const T& b) const { return a < b ? b : a; } };
struct Min { template <class T> T operator()(const T& a, const T& b) const { return b < a ? b : a; } };
struct Equality { template <class T> bool operator()(const T& a, const T& b) const { return a == b; } };
template <class K, class V> struct KeyValuePair { K key; V value; KeyValuePair() = default; KeyValuePair(K k, V v) : key(k), value(v) {} };
struct ArgMax { template <class T> T operator()(const T& a, const T& b) const { return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a; } };
struct ArgMin { template <class T> T operator()(const T& a, const T& b) const { return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a; } };
struct NullType {};
inline unsigned LaneId() { return ref::lane(); }
inline unsigned WarpId() { return ref::current->rank / ref::lanes; }
inline int RowMajorTid(int, int, int) { return (int)ref::current->rank; }
inline void CTA_SYNC() { __syncthreads(); }
inline void WARP_SYNC(ref::Mask m) { __syncwarp(m); }
enum BlockReduceAlgorithm { BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY, BLOCK_REDUCE_RAKING, BLOCK_REDUCE_WARP_REDUCTIONS };
enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };
enum BlockLoadAlgorithm { BLOCK_LOAD_DIRECT, BLOCK_LOAD_STRIPED, BLOCK_LOAD_VECTORIZE, BLOCK_LOAD_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE, BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED };
enum BlockStoreAlgorithm { BLOCK_STORE_DIRECT, BLOCK_STORE_STRIPED, BLOCK_STORE_VECTORIZE, BLOCK_STORE_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE, BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED };
template <class T> struct Values { T data[1024]; };
inline unsigned threads() { return blockDim.x * blockDim.y * blockDim.z; }
/// A collective is compiled for one size of block; in another its results and its accesses are undefined.
inline void of_block(unsigned x, unsigned y, unsigned z) {
  if (threads() == x * y * z) return;
  static char text[80];
  snprintf(text, sizeof text, "a collective is for blocks of %ux%ux%u threads", x, y, z);
  ref::stop(ref::block_size, text);
}
/// As many as take part in a reduction: at least the first.
inline int of_valid(int valid, int most) {
  if (valid < 1) ref::stop(ref::undefined, "a reduction of no values");
  return std::min(valid, most);
}
/// How many items there are: no fewer than none, as HIP's collectives count without a sign.
inline int of_count(int valid) {
  if (valid < 0) ref::stop(ref::undefined, "a collective of fewer items than none");
  return valid;
}
/// A collective that exchanges items loads and stores them for other threads: from one place, the block's.
template <class It> void of_one_place(bool exchanges, It place) {
  if constexpr (std::is_pointer<It>::value) {
    if (!exchanges) return;
    static const void* first;
    if (ref::current->rank == 0) first = (const void*)place;
    __syncthreads();
    if (first != (const void*)place) ref::stop(ref::undefined, "a collective that exchanges items is given another place by each thread");
    __syncthreads();
  }
}
/// What only the first of those that reduce is given.
template <class T> T for_first(bool first, T v) { return first ? v : ref::undefined_value(v); }
template <class T, int X, BlockReduceAlgorithm = BLOCK_REDUCE_WARP_REDUCTIONS, int Y = 1, int Z = 1, int = 0> struct BlockReduce {
  struct TempStorage : Values<T> {};
  TempStorage& t;
  explicit BlockReduce(TempStorage& s) : t(s) { of_block(X, Y, Z); }
  template <class F> T Reduce(T v, F f, int valid = X * Y * Z) {
    t.data[ref::current->rank] = v;
    __syncthreads();
    T r = t.data[0];
    for (int i = 1; i < of_valid(valid, X * Y * Z); i++) r = f(r, t.data[i]);
    __syncthreads();
    return for_first(ref::current->rank == 0, r);
  }
  template <int N, class F> T Reduce(T (&v)[N], F f) { T r = v[0]; for (int i = 1; i < N; i++) r = f(r, v[i]); return Reduce(r, f); }
  T Sum(T v) { return Reduce(v, cub::Sum()); }
  T Sum(T v, int valid) { return Reduce(v, cub::Sum(), valid); }
  template <int N> T Sum(T (&v)[N]) { return Reduce(v, cub::Sum()); }
};
template <class T, int W = (int)ref::lanes, int = 0> struct WarpReduce {
  struct TempStorage { T data[ref::lanes]; };
  explicit WarpReduce(TempStorage&) {}
  static ref::Mask mask() { const ref::Mask m = W == ref::lanes ? ref::whole : (ref::one << W % ref::lanes) - 1; return (m << (ref::lane() / W * W)) & ref::warps[ref::current->warp].alive; }
  template <class F> T Reduce(T v, F f) { const T r = ref::fold(mask(), v, f); return for_first(ref::lane() % W == 0, r); }
  template <class F> T Reduce(T v, F f, int valid) {
    const auto& m = ref::meet(mask(), &v, sizeof(T));
    const unsigned first = ref::lane() / W * W;
    T r = ref::value_of<T>(m, first);
    for (int i = 1; i < of_valid(valid, W); i++) r = f(r, ref::value_of<T>(m, first + i));
    return for_first(ref::lane() == first, r);
  }
  T Sum(T v) { return Reduce(v, cub::Sum()); }
  T Sum(T v, int valid) { return Reduce(v, cub::Sum(), valid); }
};
template <class T> struct ScanCore {
  template <class F> static T inclusive(const T* d, unsigned i, F f) { T r = d[0]; for (unsigned k = 1; k <= i; k++) r = f(r, d[k]); return r; }
};
template <class T, int X, BlockScanAlgorithm = BLOCK_SCAN_RAKING, int Y = 1, int Z = 1, int = 0> struct BlockScan {
  struct TempStorage : Values<T> {};
  TempStorage& t;
  explicit BlockScan(TempStorage& s) : t(s) { of_block(X, Y, Z); }
  template <class F> T both(T v, T& exclusive, T& total, F f) {
    const unsigned i = ref::current->rank;
    t.data[i] = v;
    __syncthreads();
    const T inclusive = ScanCore<T>::inclusive(t.data, i, f);
    exclusive = i ? ScanCore<T>::inclusive(t.data, i - 1, f) : T();
    total = ScanCore<T>::inclusive(t.data, threads() - 1, f);
    __syncthreads();
    return inclusive;
  }
  void InclusiveSum(T v, T& out) { T e, s; out = both(v, e, s, cub::Sum()); }
  void InclusiveSum(T v, T& out, T& total) { T e; out = both(v, e, total, cub::Sum()); }
  void ExclusiveSum(T v, T& out) { T s; both(v, out, s, cub::Sum()); }
  void ExclusiveSum(T v, T& out, T& total) { both(v, out, total, cub::Sum()); }
  template <class F> void InclusiveScan(T v, T& out, F f) { T e, s; out = both(v, e, s, f); }
  template <class F> void InclusiveScan(T v, T& out, F f, T& total) { T e; out = both(v, e, total, f); }
  template <class F> void ExclusiveScan(T v, T& out, T init, F f) { T e, s; both(v, e, s, f); out = ref::current->rank ? f(init, e) : init; }
  template <class F> void ExclusiveScan(T v, T& out, T init, F f, T& total) { T e; both(v, e, total, f); out = ref::current->rank ? f(init, e) : init; }
  template <int N> void InclusiveSum(T (&in)[N], T (&out)[N]) { T total; InclusiveSum(in, out, total); }
  template <int N> void InclusiveSum(T (&in)[N], T (&out)[N], T& total) { T own = T(), e; for (int i = 0; i < N; i++) own = own + in[i]; both(own, e, total, cub::Sum()); T run = e; for (int i = 0; i < N; i++) out[i] = run = run + in[i]; }
  template <int N> void ExclusiveSum(T (&in)[N], T (&out)[N]) { T total; ExclusiveSum(in, out, total); }
  template <int N> void ExclusiveSum(T (&in)[N], T (&out)[N], T& total) { T own = T(), e; for (int i = 0; i < N; i++) own = own + in[i]; both(own, e, total, cub::Sum()); T run = e; for (int i = 0; i < N; i++) { const T v = in[i]; out[i] = run; run = run + v; } }
};
template <class T, int W = (int)ref::lanes, int = 0> struct WarpScan {
  struct TempStorage { T data[ref::lanes]; };
  explicit WarpScan(TempStorage&) {}
  template <class F> T both(T v, T& exclusive, T& total, F f) {
    const auto& m = ref::meet(WarpReduce<T, W>::mask(), &v, sizeof(T));
    const unsigned first = ref::lane() / W * W;
    T run{};
    T mine{};
    exclusive = T();
    bool started = false;
    for (unsigned i = first; i < first + W && i < ref::lanes; i++) {
      if (!(m.published >> i & ref::one)) continue;
      if (i == ref::lane() && started) exclusive = run;
      const T x = ref::value_of<T>(m, i);
      run = started ? f(run, x) : x;
      started = true;
      if (i == ref::lane()) mine = run;
    }
    total = run;
    return mine;
  }
  void InclusiveSum(T v, T& out) { T e, s; out = both(v, e, s, cub::Sum()); }
  void InclusiveSum(T v, T& out, T& total) { T e; out = both(v, e, total, cub::Sum()); }
  void ExclusiveSum(T v, T& out) { T s; both(v, out, s, cub::Sum()); }
  void ExclusiveSum(T v, T& out, T& total) { both(v, out, total, cub::Sum()); }
  template <class F> void InclusiveScan(T v, T& out, F f) { T e, s; out = both(v, e, s, f); }
};
template <class T, int X, int N, BlockLoadAlgorithm A = BLOCK_LOAD_DIRECT, int Y = 1, int Z = 1, int = 0> struct BlockLoad {
  struct TempStorage { T unused; };
  BlockLoad() { of_block(X, Y, Z); }
  explicit BlockLoad(TempStorage&) : BlockLoad() {}
  static int at(int i) { return A == BLOCK_LOAD_STRIPED ? (int)ref::current->rank + i * X * Y * Z : (int)ref::current->rank * N + i; }
  template <class It> void Load(It in, T (&out)[N]) { of_one_place(A >= BLOCK_LOAD_TRANSPOSE, in); for (int i = 0; i < N; i++) out[i] = in[at(i)]; __syncthreads(); }
  template <class It> void Load(It in, T (&out)[N], int valid) { of_one_place(A >= BLOCK_LOAD_TRANSPOSE, in); for (int i = 0; i < N; i++) if (at(i) < of_count(valid)) out[i] = in[at(i)]; __syncthreads(); }
  template <class It, class D> void Load(It in, T (&out)[N], int valid, D d) { of_one_place(A >= BLOCK_LOAD_TRANSPOSE, in); for (int i = 0; i < N; i++) out[i] = at(i) < of_count(valid) ? (T)in[at(i)] : (T)d; __syncthreads(); }
};
template <class T, int X, int N, BlockStoreAlgorithm A = BLOCK_STORE_DIRECT, int Y = 1, int Z = 1, int = 0> struct BlockStore {
  struct TempStorage { T unused; };
  BlockStore() { of_block(X, Y, Z); }
  explicit BlockStore(TempStorage&) : BlockStore() {}
  static int at(int i) { return A == BLOCK_STORE_STRIPED ? (int)ref::current->rank + i * X * Y * Z : (int)ref::current->rank * N + i; }
  template <class It> void Store(It out, T (&in)[N]) { of_one_place(A >= BLOCK_STORE_TRANSPOSE, out); for (int i = 0; i < N; i++) out[at(i)] = in[i]; __syncthreads(); }
  template <class It> void Store(It out, T (&in)[N], int valid) { of_one_place(A >= BLOCK_STORE_TRANSPOSE, out); for (int i = 0; i < N; i++) if (at(i) < of_count(valid)) out[at(i)] = in[i]; __syncthreads(); }
};
template <class K, int X, int N, class V = NullType, int = 4, bool = true, BlockScanAlgorithm = BLOCK_SCAN_WARP_SCANS, int = 0, int Y = 1, int Z = 1, int = 0> struct BlockRadixSort {
  struct Item { K first; V second; };
  struct TempStorage { Item items[1024 * N]; };
  TempStorage& t;
  explicit BlockRadixSort(TempStorage& s) : t(s) { of_block(X, Y, Z); }
  void sorted(K (&k)[N], V* v, bool down, bool striped) {
    const unsigned r = ref::current->rank, n = threads();
    for (int i = 0; i < N; i++) t.items[r * N + i] = {k[i], v ? v[i] : V()};
    __syncthreads();
    if (r == 0) std::stable_sort(t.items, t.items + n * N, [down](const auto& a, const auto& b) { return down ? b.first < a.first : a.first < b.first; });
    __syncthreads();
    for (int i = 0; i < N; i++) { const auto& e = t.items[striped ? r + i * n : r * N + i]; k[i] = e.first; if (v) v[i] = e.second; }
    __syncthreads();
  }
  void Sort(K (&k)[N], int = 0, int = 0) { sorted(k, nullptr, false, false); }
  void SortDescending(K (&k)[N], int = 0, int = 0) { sorted(k, nullptr, true, false); }
  void Sort(K (&k)[N], V (&v)[N], int = 0, int = 0) { sorted(k, v, false, false); }
  void SortDescending(K (&k)[N], V (&v)[N], int = 0, int = 0) { sorted(k, v, true, false); }
  void SortBlockedToStriped(K (&k)[N], int = 0, int = 0) { sorted(k, nullptr, false, true); }
  void SortDescendingBlockedToStriped(K (&k)[N], V (&v)[N], int = 0, int = 0) { sorted(k, v, true, true); }
};
}  // namespace cub
