// Cooperative groups over warps of 32 lanes.
#pragma once
#include "halves.h"
namespace cooperative_groups {
namespace ref = wavesmith_reference;
inline unsigned wavesmith_block_rank() { return ref::current->rank; }
inline unsigned wavesmith_block_size() { return blockDim.x * blockDim.y * blockDim.z; }
/// Lanes of one warp by mask; ranks count the members below.
struct lane_group {
  unsigned members;
  unsigned size() const { return (unsigned)__builtin_popcount(members); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return (unsigned)__builtin_popcount(members & ((1u << ref::lane()) - 1)); }
  void sync() const { __syncwarp(members); }
  unsigned nth(unsigned n) const { unsigned m = members; while (n--) m &= m - 1; return (unsigned)__builtin_ctz(m); }
  template <class T> T shfl(T v, int r) const { return ref::pick(members, v, nth((unsigned)r % size())); }
  template <class T> T shfl_down(T v, unsigned d) const { const unsigned r = thread_rank() + d; return ref::pick(members, v, r < size() ? nth(r) : ref::lane()); }
  template <class T> T shfl_up(T v, unsigned d) const { const unsigned r = thread_rank(); return ref::pick(members, v, r >= d ? nth(r - d) : ref::lane()); }
  template <class T> T shfl_xor(T v, unsigned x) const { const unsigned r = thread_rank() ^ x; return ref::pick(members, v, r < size() ? nth(r) : ref::lane()); }
  unsigned by_rank(unsigned lanes) const { unsigned r = 0; for (unsigned i = 0; i < size(); i++) r |= (lanes >> nth(i) & 1u) << i; return r; }
  unsigned ballot(int p) const { return by_rank(__ballot_sync(members, p)); }
  int any(int p) const { return __any_sync(members, p); }
  int all(int p) const { return __all_sync(members, p); }
  template <class T> unsigned match_any(T v) const { return by_rank(__match_any_sync(members, v)); }
  template <class T> unsigned match_all(T v, int& p) const { return by_rank(__match_all_sync(members, v, &p)); }
};
struct coalesced_group : lane_group {
  unsigned index = 0, count = 1;
  unsigned meta_group_rank() const { return index; }
  unsigned meta_group_size() const { return count; }
};
struct thread_block {
  static void sync() { __syncthreads(); }
  static unsigned thread_rank() { return wavesmith_block_rank(); }
  static unsigned size() { return wavesmith_block_size(); }
  static unsigned num_threads() { return size(); }
  static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static dim3 group_dim() { return blockDim; }
  static dim3 dim_threads() { return blockDim; }
  struct arrival_token {};
  static arrival_token barrier_arrive() { return {}; }
  static void barrier_wait(arrival_token&&) { __syncthreads(); }
};
inline thread_block this_thread_block() { return {}; }
struct grid_group {
  static bool is_valid() { return true; }
  static void sync() { if (num_blocks() > 1) ref::stop(ref::unsupported, "synchronisation of the whole grid"); __syncthreads(); }
  static unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  static unsigned long long block_rank() { return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z); }
  static unsigned long long size() { return num_blocks() * wavesmith_block_size(); }
  static unsigned long long num_threads() { return size(); }
  static unsigned long long thread_rank() { return block_rank() * wavesmith_block_size() + wavesmith_block_rank(); }
  static dim3 group_dim() { return gridDim; }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
};
inline grid_group this_grid() { return {}; }
template <unsigned N, class Parent = void> struct thread_block_tile : lane_group {
  thread_block_tile() { const unsigned alive = ref::warps[ref::current->warp].alive; (void)alive; members = (N == 32 ? ~0u : (1u << (N & 31)) - 1) << (ref::lane() / N * N); const unsigned total = wavesmith_block_size(), first = ref::current->warp * 32; if (total - first < 32) members &= (1u << (total - first)) - 1; }
  template <class G> explicit thread_block_tile(const G&) : thread_block_tile() {}
  template <class P> thread_block_tile(const thread_block_tile<N, P>&) : thread_block_tile() {}
  static constexpr unsigned size() { return N; }
  static constexpr unsigned num_threads() { return N; }
  static unsigned thread_rank() { return ref::lane() % N; }
  static unsigned meta_group_rank() { return wavesmith_block_rank() / N; }
  static unsigned meta_group_size() { return (wavesmith_block_size() + N - 1) / N; }
};
struct thread_group {
  unsigned size_ = 0, members = 0;
  thread_group(thread_block) {}
  thread_group(unsigned s, unsigned m) : size_(s), members(m) {}
  thread_group(const coalesced_group& g) : size_(g.size()), members(g.members) {}
  template <unsigned N, class P> thread_group(const thread_block_tile<N, P>& t) : size_(N), members(t.members) {}
  unsigned size() const { return size_ ? size_ : wavesmith_block_size(); }
  unsigned num_threads() const { return size(); }
  unsigned thread_rank() const { return size_ ? (unsigned)__builtin_popcount(members & ((1u << ref::lane()) - 1)) : wavesmith_block_rank(); }
  void sync() const { if (size_) __syncwarp(members); else __syncthreads(); }
};
template <unsigned N, class G> thread_block_tile<N, G> tiled_partition(const G& g) { return thread_block_tile<N, G>(g); }
template <class G> thread_group tiled_partition(const G&, unsigned n) { return {n, (n >= 32 ? ~0u : (1u << n) - 1) << (ref::lane() / n * n)}; }
__attribute__((noinline)) inline coalesced_group coalesced_threads() { coalesced_group g; g.members = WAVESMITH_HERE; return g; }
template <class G> coalesced_group labeled_partition(const G& g, unsigned label) {
  const auto& m = ref::meet(g.members, &label, 4);
  coalesced_group r;
  r.members = 0;
  std::vector<unsigned> labels;
  for (unsigned i = 0; i < 32; i++) {
    if (!(m.published >> i & 1u)) continue;
    const unsigned l = ref::value_of<unsigned>(m, i);
    if (std::find(labels.begin(), labels.end(), l) == labels.end()) { if (l == label) r.index = (unsigned)labels.size(); labels.push_back(l); }
    if (l == label) r.members |= 1u << i;
  }
  r.count = (unsigned)labels.size();
  return r;
}
template <class G> coalesced_group binary_partition(const G& g, bool p) {
  const unsigned yes = __ballot_sync(g.members, p);
  coalesced_group r;
  r.members = p ? yes : g.members & ~yes;
  r.index = p;
  r.count = 2;
  return r;
}
template <class G> void sync(const G& g) { g.sync(); }
template <class G> unsigned thread_rank(const G& g) { return g.thread_rank(); }
template <class G> unsigned group_size(const G& g) { return g.size(); }
template <class G, class F> void invoke_one(const G& g, F&& f) { if (g.thread_rank() == 0) f(); }
template <class T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };
template <class G, class T, class F> T reduce(const G& g, T v, F&& f) { return ref::fold(g.members, v, f); }
template <class G, class T, class F> T inclusive_scan(const G& g, T v, F&& f) {
  const auto& m = ref::meet(g.members, &v, sizeof(T));
  bool first = true;
  T r{};
  for (unsigned i = 0; i <= ref::lane(); i++) if (m.published >> i & 1u) { const T x = ref::value_of<T>(m, i); r = first ? x : f(r, x); first = false; }
  return r;
}
template <class G, class T> T inclusive_scan(const G& g, T v) { return inclusive_scan(g, v, plus<T>()); }
template <class G, class T, class F> T exclusive_scan(const G& g, T v, F&& f) { const T all = inclusive_scan(g, v, f); const T r = g.shfl_up(all, 1); return g.thread_rank() == 0 ? T() : r; }
template <class G, class T> T exclusive_scan(const G& g, T v) { return exclusive_scan(g, v, plus<T>()); }
template <class G> void memcpy_async(const G& g, void* to, const void* from, size_t bytes) { for (size_t i = g.thread_rank(); i < bytes; i += g.size()) ((char*)to)[i] = ((const char*)from)[i]; }
template <class G, class T, class U> void memcpy_async(const G& g, T* to, size_t a, const U* from, size_t b) { memcpy_async(g, (void*)to, (const void*)from, (a < b ? a : b) * sizeof(T)); }
template <class G> void wait(const G& g) { g.sync(); }
template <unsigned N, class G> void wait_prior(const G& g) { g.sync(); }
}  // namespace cooperative_groups
