//@ entry: cooperative_groups
//@ header: cooperative_groups.h, hip/hip_cooperative_groups.h
//@ requires: warp_core
//@ contract: exact
//@ note: groups over logical warps of 32 lanes; grid synchronisation through the device library
namespace wavesmith {
namespace cg {
namespace detail {
static __device__ __forceinline__ unsigned block_rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }
static __device__ __forceinline__ unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }
static __device__ __forceinline__ void fence() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}
/// The n-th set bit of mask (n < popcount).
static __device__ __forceinline__ unsigned nth_lane(unsigned mask, unsigned n) {
  for (; n; n--) mask &= mask - 1;
  return (unsigned)__builtin_ctz(mask);
}
}  // namespace detail

/// Lanes of one logical warp: what tiles and coalesced groups share. `members` is the 32-bit mask of the group.
class warp_group {
 public:
  __device__ __forceinline__ unsigned size() const { return (unsigned)__builtin_popcount(members_); }
  __device__ __forceinline__ unsigned num_threads() const { return size(); }
  __device__ __forceinline__ unsigned thread_rank() const { return (unsigned)__builtin_popcount(members_ & ((1u << lane()) - 1u)); }
  __device__ __forceinline__ void sync() const { detail::fence(); }
  template <class T> __device__ __forceinline__ T shfl(__attribute__((maybe_undef)) T v, int rank) const { return read_lane(v, detail::nth_lane(members_, (unsigned)rank % size())); }
  template <class T> __device__ __forceinline__ T shfl_down(__attribute__((maybe_undef)) T v, unsigned d) const { const unsigned r = thread_rank() + d; return read_lane(v, r < size() ? detail::nth_lane(members_, r) : lane()); }
  template <class T> __device__ __forceinline__ T shfl_up(__attribute__((maybe_undef)) T v, unsigned d) const { const unsigned r = thread_rank(); return read_lane(v, r >= d ? detail::nth_lane(members_, r - d) : lane()); }
  __device__ __forceinline__ unsigned ballot(int p) const { return packed(ballot32(p != 0)); }
  __device__ __forceinline__ int any(int p) const { return (ballot32(p != 0) & members_) != 0; }
  __device__ __forceinline__ int all(int p) const { return (ballot32(p == 0) & members_) == 0; }
  template <class T> __device__ __forceinline__ unsigned match_any(T v) const {
    unsigned found = 0;
    for (unsigned rest = members_; rest; rest &= rest - 1) {
      const unsigned from = (unsigned)__builtin_ctz(rest);
      const T other = read_lane(v, from);
      found |= (unsigned)(__builtin_memcmp(&other, &v, sizeof(T)) == 0) << from;
    }
    return packed(found);
  }
  template <class T> __device__ __forceinline__ unsigned match_all(T v, int& p) const { const unsigned full = packed(members_); p = match_any(v) == full; return p ? full : 0u; }
  __device__ __forceinline__ unsigned wavesmith_members() const { return members_; }

 protected:
  __device__ __forceinline__ explicit warp_group(unsigned members) : members_(members) {}
  /// Lane bits renumbered by rank within the group.
  __device__ __forceinline__ unsigned packed(unsigned lanes) const {
    unsigned result = 0, rank = 0;
    for (unsigned rest = members_; rest; rest &= rest - 1, rank++) result |= ((lanes >> __builtin_ctz(rest)) & 1u) << rank;
    return result;
  }
  unsigned members_;
};

class coalesced_group : public warp_group {
 public:
  __device__ __forceinline__ explicit coalesced_group(unsigned members, unsigned index = 0, unsigned count = 1) : warp_group(members), index_(index), count_(count) {}
  __device__ __forceinline__ unsigned meta_group_rank() const { return index_; }
  __device__ __forceinline__ unsigned meta_group_size() const { return count_; }

 private:
  unsigned index_, count_;
};

class thread_block {
 public:
  static __device__ __forceinline__ void sync() { __syncthreads(); }
  static __device__ __forceinline__ unsigned thread_rank() { return detail::block_rank(); }
  static __device__ __forceinline__ unsigned size() { return detail::block_size(); }
  static __device__ __forceinline__ unsigned num_threads() { return detail::block_size(); }
  static __device__ __forceinline__ dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
  static __device__ __forceinline__ dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
  static __device__ __forceinline__ dim3 group_dim() { return dim3(blockDim.x, blockDim.y, blockDim.z); }
  static __device__ __forceinline__ dim3 dim_threads() { return group_dim(); }
  struct arrival_token {};
  static __device__ __forceinline__ arrival_token barrier_arrive() { __syncthreads(); return {}; }
  static __device__ __forceinline__ void barrier_wait(arrival_token&&) { __syncthreads(); }
};
static __device__ __forceinline__ thread_block this_thread_block() { return {}; }

class grid_group {
 public:
  static __device__ __forceinline__ bool is_valid() { return __ockl_grid_is_valid(); }
  static __device__ __forceinline__ void sync() { __ockl_grid_sync(); }
  static __device__ __forceinline__ unsigned long long num_blocks() { return (unsigned long long)gridDim.x * gridDim.y * gridDim.z; }
  static __device__ __forceinline__ unsigned long long block_rank() { return blockIdx.x + (unsigned long long)gridDim.x * (blockIdx.y + (unsigned long long)gridDim.y * blockIdx.z); }
  static __device__ __forceinline__ unsigned long long size() { return num_blocks() * detail::block_size(); }
  static __device__ __forceinline__ unsigned long long num_threads() { return size(); }
  static __device__ __forceinline__ unsigned long long thread_rank() { return block_rank() * detail::block_size() + detail::block_rank(); }
  static __device__ __forceinline__ dim3 group_dim() { return dim3(gridDim.x, gridDim.y, gridDim.z); }
  static __device__ __forceinline__ dim3 dim_blocks() { return group_dim(); }
  static __device__ __forceinline__ dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
};
static __device__ __forceinline__ grid_group this_grid() { return {}; }

template <unsigned Size, class Parent = void> class thread_block_tile : public warp_group {
  static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile holds a power of two of at most 32 threads");

 public:
  __device__ __forceinline__ thread_block_tile() : warp_group((Size == 32 ? ~0u : (1u << (Size & 31)) - 1u) << (lane() & ~(Size - 1u))) {}
  template <class G> __device__ __forceinline__ explicit thread_block_tile(const G&) : thread_block_tile() {}
  template <class P> __device__ __forceinline__ thread_block_tile(const thread_block_tile<Size, P>&) : thread_block_tile() {}
  static constexpr __device__ __forceinline__ unsigned size() { return Size; }
  static constexpr __device__ __forceinline__ unsigned num_threads() { return Size; }
  static __device__ __forceinline__ unsigned thread_rank() { return lane() & (Size - 1u); }
  static __device__ __forceinline__ unsigned meta_group_rank() { return detail::block_rank() / Size; }
  static __device__ __forceinline__ unsigned meta_group_size() { return (detail::block_size() + Size - 1) / Size; }
  static __device__ __forceinline__ void sync() { detail::fence(); }
  template <class T> __device__ __forceinline__ T shfl(__attribute__((maybe_undef)) T v, int rank) const { return read_lane(v, first() | ((unsigned)rank & (Size - 1u))); }
  template <class T> __device__ __forceinline__ T shfl_down(__attribute__((maybe_undef)) T v, unsigned d) const { return read_lane(v, thread_rank() + d < Size ? lane() + d : lane()); }
  template <class T> __device__ __forceinline__ T shfl_up(__attribute__((maybe_undef)) T v, unsigned d) const { return read_lane(v, thread_rank() >= d ? lane() - d : lane()); }
  template <class T> __device__ __forceinline__ T shfl_xor(__attribute__((maybe_undef)) T v, unsigned m) const { return read_lane(v, (thread_rank() ^ m) < Size ? lane() ^ m : lane()); }
  __device__ __forceinline__ unsigned ballot(int p) const { return (ballot32(p != 0) & members_) >> first(); }
  template <class T> __device__ __forceinline__ unsigned match_any(T v) const { return warp_group::match_any(v); }

 private:
  static __device__ __forceinline__ unsigned first() { return lane() & ~(Size - 1u); }
};

/// A group of a size known only at run time, and the common base of dynamic partitions.
class thread_group {
 public:
  __device__ __forceinline__ thread_group(thread_block) : size_(0) {}
  __device__ __forceinline__ thread_group(unsigned size, unsigned members) : size_(size), members_(members) {}
  __device__ __forceinline__ thread_group(const coalesced_group& g) : size_(g.size()), members_(g.wavesmith_members()) {}
  template <unsigned S, class P> __device__ __forceinline__ thread_group(const thread_block_tile<S, P>& t) : size_(S), members_(t.wavesmith_members()) {}
  __device__ __forceinline__ unsigned size() const { return size_ ? size_ : detail::block_size(); }
  __device__ __forceinline__ unsigned num_threads() const { return size(); }
  __device__ __forceinline__ unsigned thread_rank() const { return size_ ? (unsigned)__builtin_popcount(members_ & ((1u << lane()) - 1u)) : detail::block_rank(); }
  __device__ __forceinline__ void sync() const { if (size_) detail::fence(); else __syncthreads(); }

 private:
  unsigned size_, members_ = 0;
};

template <unsigned Size, class G> static __device__ __forceinline__ thread_block_tile<Size, G> tiled_partition(const G& g) { return thread_block_tile<Size, G>(g); }
template <class G> static __device__ __forceinline__ thread_group tiled_partition(const G&, unsigned size) {
  return thread_group(size, (size >= 32 ? ~0u : (1u << size) - 1u) << (lane() & ~(size - 1u)));
}
static __device__ __forceinline__ coalesced_group coalesced_threads() { return coalesced_group(ballot32(true)); }
template <class G> static __device__ __forceinline__ coalesced_group labeled_partition(const G& g, unsigned label) {
  unsigned same = 0, groups = 0, index = 0;
  for (unsigned rest = g.wavesmith_members(); rest; ) {
    const unsigned wanted = read_lane(label, (unsigned)__builtin_ctz(rest));
    const unsigned equal = ballot32(label == wanted) & g.wavesmith_members();
    if (label == wanted) { same = equal; index = groups; }
    groups++;
    rest &= ~equal;
  }
  return coalesced_group(same, index, groups);
}
template <class G> static __device__ __forceinline__ coalesced_group binary_partition(const G& g, bool p) {
  const unsigned yes = ballot32(p) & g.wavesmith_members(), mine = p ? yes : g.wavesmith_members() & ~yes;
  return coalesced_group(mine, p ? 1u : 0u, 2u);
}
template <class G> static __device__ __forceinline__ void sync(const G& g) { g.sync(); }
template <class G> static __device__ __forceinline__ unsigned thread_rank(const G& g) { return g.thread_rank(); }
template <class G> static __device__ __forceinline__ unsigned group_size(const G& g) { return g.size(); }

/// First thread of the group executes f. (CUDA picks any one thread.)
template <class G, class F> static __device__ __forceinline__ void invoke_one(const G& g, F&& f) { if (g.thread_rank() == 0) f(); }
template <class G, class F> static __device__ __forceinline__ auto invoke_one_broadcast(const G& g, F&& f) -> decltype(f()) {
  decltype(f()) result{};
  if (g.thread_rank() == 0) result = f();
  return g.shfl(result, 0);
}
}  // namespace cg
}  // namespace wavesmith
//@ end

//@ entry: cooperative_groups_reduce
//@ header: cooperative_groups/reduce.h
//@ requires: cooperative_groups
//@ contract: exact
//@ note: tree order for full tiles as in CUDA, rank order for partial groups
namespace wavesmith {
namespace cg {
template <class T> struct plus { __host__ __device__ __forceinline__ T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { __host__ __device__ __forceinline__ T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { __host__ __device__ __forceinline__ T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { __host__ __device__ __forceinline__ T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { __host__ __device__ __forceinline__ T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { __host__ __device__ __forceinline__ T operator()(T a, T b) const { return a ^ b; } };
template <unsigned S, class P, class T, class F> static __device__ __forceinline__ T reduce(const thread_block_tile<S, P>& g, __attribute__((maybe_undef)) T value, F&& op) {
#pragma unroll
  for (unsigned step = S / 2; step > 0; step >>= 1) value = op(value, g.shfl_xor(value, step));
  return value;
}
template <class T, class F> static __device__ __forceinline__ T reduce(const coalesced_group& g, __attribute__((maybe_undef)) T value, F&& op) {
  unsigned lanes = g.wavesmith_members();
  T result = read_lane(value, (unsigned)__builtin_ctz(lanes));
  for (lanes &= lanes - 1; lanes; lanes &= lanes - 1) result = op(result, read_lane(value, (unsigned)__builtin_ctz(lanes)));
  return result;
}
template <class G, class A, class T, class F> static __device__ __forceinline__ void reduce_update_async(const G& g, A& target, T value, F&& op) {
  const T total = reduce(g, value, op);
  if (g.thread_rank() == 0) target.fetch_add(total);
}
}  // namespace cg
}  // namespace wavesmith
//@ end

//@ entry: cooperative_groups_scan
//@ header: cooperative_groups/scan.h
//@ requires: cooperative_groups_reduce
//@ contract: exact
namespace wavesmith {
namespace cg {
template <class G, class T, class F> static __device__ __forceinline__ T inclusive_scan(const G& g, __attribute__((maybe_undef)) T value, F&& op) {
  const unsigned rank = g.thread_rank(), size = g.size();
  for (unsigned d = 1; d < size; d <<= 1) {
    const T other = g.shfl_up(value, d);
    if (rank >= d) value = op(other, value);
  }
  return value;
}
template <class G, class T> static __device__ __forceinline__ T inclusive_scan(const G& g, __attribute__((maybe_undef)) T value) { return inclusive_scan(g, value, plus<T>()); }
template <class G, class T, class F> static __device__ __forceinline__ T exclusive_scan(const G& g, __attribute__((maybe_undef)) T value, F&& op) {
  const T before = g.shfl_up(inclusive_scan(g, value, op), 1);
  return g.thread_rank() == 0 ? T() : before;
}
template <class G, class T> static __device__ __forceinline__ T exclusive_scan(const G& g, __attribute__((maybe_undef)) T value) { return exclusive_scan(g, value, plus<T>()); }
}  // namespace cg
}  // namespace wavesmith
//@ end

//@ entry: cooperative_groups_memcpy
//@ header: cooperative_groups/memcpy_async.h
//@ requires: cooperative_groups
//@ contract: performance-only
//@ note: the copy is complete when the call returns; waiting for it is a group barrier
namespace wavesmith {
namespace cg {
template <class G> static __device__ __forceinline__ void memcpy_async(const G& g, void* to, const void* from, size_t bytes) {
  const size_t rank = g.thread_rank(), size = g.size();
  if ((((size_t)to | (size_t)from | bytes) & 15u) == 0) for (size_t i = rank; i < bytes / 16; i += size) ((uint4*)to)[i] = ((const uint4*)from)[i];
  else if ((((size_t)to | (size_t)from | bytes) & 3u) == 0) for (size_t i = rank; i < bytes / 4; i += size) ((unsigned*)to)[i] = ((const unsigned*)from)[i];
  else for (size_t i = rank; i < bytes; i += size) ((unsigned char*)to)[i] = ((const unsigned char*)from)[i];
}
template <class G, class T, class U> static __device__ __forceinline__ void memcpy_async(const G& g, T* to, size_t to_count, const U* from, size_t from_count) {
  memcpy_async(g, (void*)to, (const void*)from, (to_count < from_count ? to_count : from_count) * sizeof(T));
}
template <class G> static __device__ __forceinline__ void wait(const G& g) { g.sync(); }
template <unsigned Stages, class G> static __device__ __forceinline__ void wait_prior(const G& g) { g.sync(); }
}  // namespace cg
}  // namespace wavesmith
//@ end
