// Lanes of one wave and waves of one workgroup talking to each other.
#include "device.h"

KERNEL void block_reduce(const float* x, float* out, int n) {
  __shared__ float partial[16];
  float value = 0;
  for (int i = GTID; i < n; i += BDIM * 4) value += x[i];
  value = wave_sum(value);
  if (lane_id() == 0) partial[TID / 64] = value;
  sync();
  if (TID == 0) {
    float total = 0;
    for (int w = 0; w < BDIM / 64; w++) total += partial[w];
    out[BID] = total;
  }
}

KERNEL void ballot_compact(const int* x, int* out, int* count, int n) {
  int i = GTID;
  bool keep = i < n && x[i] % 3 == 0;
  u64 mask = ballot(keep);
  int base = 0;
  if (lane_id() == 0) base = add_global(count, __builtin_popcountll(mask));
  base = __builtin_amdgcn_readfirstlane(base);
  int rank = __builtin_amdgcn_mbcnt_hi(mask >> 32, __builtin_amdgcn_mbcnt_lo((u32)mask, 0));
  if (keep) out[base + rank] = x[i];
}

KERNEL void lds_histogram(const u8* x, u32* out, int n) {
  __shared__ u32 bins[256];
  for (int i = TID; i < 256; i += BDIM) bins[i] = 0;
  sync();
  for (int i = GTID; i < n; i += BDIM * 2) add_shared(&bins[x[i]], 1u);
  sync();
  for (int i = TID; i < 256; i += BDIM) add_global(&out[i], bins[i]);
}

KERNEL void transpose(const float* x, float* out, int rows, int columns) {
  __shared__ float tile[32][33];
  int column = BID * 32 + TID, row = BID_Y * 32 + TID_Y;
  for (int i = 0; i < 32; i += 8)
    if (column < columns && row + i < rows) tile[TID_Y + i][TID] = x[(row + i) * columns + column];
  sync();
  int to_row = BID * 32 + TID_Y, to_column = BID_Y * 32 + TID;
  for (int i = 0; i < 32; i += 8)
    if (to_column < rows && to_row + i < columns) out[(to_row + i) * rows + to_column] = tile[TID][TID_Y + i];
}

KERNEL void bitonic(const int* x, int* out) {
  __shared__ int data[256];
  data[TID] = x[BID * 256 + TID];
  for (int size = 2; size <= 256; size *= 2)
    for (int stride = size / 2; stride; stride /= 2) {
      sync();
      int other = TID ^ stride;
      int mine = data[TID], theirs = data[other];
      bool smaller = ((TID & size) == 0) == (TID < other);
      sync();
      data[TID] = smaller ? (mine < theirs ? mine : theirs) : (mine < theirs ? theirs : mine);
    }
  sync();
  out[BID * 256 + TID] = data[TID];
}

extern __shared__ float dynamic_lds[];
KERNEL void dynamic_lds_scan(const float* x, float* out) {
  float* ping = dynamic_lds;
  float* pong = dynamic_lds + BDIM;
  ping[TID] = x[GTID];
  sync();
  for (int step = 1; step < BDIM; step *= 2) {
    pong[TID] = ping[TID] + (TID >= step ? ping[TID - step] : 0);
    sync();
    float* swap = ping; ping = pong; pong = swap;
  }
  out[GTID] = ping[TID];
}

KERNEL void shuffles(const int* x, int* out) {
  int value = x[TID], lane = lane_id(), n = 64;
  out[TID] = shuffle(value, lane + 1 < n ? lane + 1 : lane);
  out[TID + n] = shuffle(value, lane * 7 % 64);
  out[TID + 2 * n] = shuffle_xor(value, 21);
  out[TID + 3 * n] = __builtin_amdgcn_ds_permute((lane * 5 % 64) << 2, value);
  out[TID + 4 * n] = __builtin_amdgcn_readlane(value, 37);
  out[TID + 5 * n] = __builtin_amdgcn_ds_swizzle(value, 0x041f);
  out[TID + 6 * n] = __builtin_amdgcn_ds_swizzle(value, 0x80b1);
}

KERNEL void dpp_moves(const int* x, int* out) {
  int value = x[TID];
#define MOVE(slot, control, rows, banks, bound) \
  out[slot * 64 + TID] = __builtin_amdgcn_update_dpp(-1, value, control, rows, banks, bound)
  MOVE(0, 0x1b, 0xf, 0xf, false);   // quad_perm:[3,2,1,0]
  MOVE(1, 0x101, 0xf, 0xf, false);  // row_shl:1
  MOVE(2, 0x113, 0xf, 0xf, true);   // row_shr:3, zero filled
  MOVE(3, 0x125, 0xf, 0xf, false);  // row_ror:5
  MOVE(4, 0x130, 0xf, 0xf, false);  // wave_shl:1
  MOVE(5, 0x134, 0xf, 0xf, false);  // wave_rol:1
  MOVE(6, 0x138, 0xf, 0xf, true);   // wave_shr:1
  MOVE(7, 0x13c, 0xf, 0xf, false);  // wave_ror:1
  MOVE(8, 0x140, 0xf, 0xf, false);  // row_mirror
  MOVE(9, 0x141, 0xf, 0xf, false);  // row_half_mirror
  MOVE(10, 0x142, 0xa, 0xf, false); // row_bcast:15 into odd rows
  MOVE(11, 0x143, 0xc, 0xf, false); // row_bcast:31 into the upper half
  MOVE(12, 0x155, 0xf, 0xf, false); // row_newbcast:5
  MOVE(13, 0x111, 0x7, 0x5, false); // masks
}

KERNEL void dpp_scan(const int* x, int* out) {
  int value = x[GTID];
  value += __builtin_amdgcn_update_dpp(0, value, 0x111, 0xf, 0xf, true);
  value += __builtin_amdgcn_update_dpp(0, value, 0x112, 0xf, 0xf, true);
  value += __builtin_amdgcn_update_dpp(0, value, 0x114, 0xf, 0xf, true);
  value += __builtin_amdgcn_update_dpp(0, value, 0x118, 0xf, 0xf, true);
  value += __builtin_amdgcn_update_dpp(0, value, 0x142, 0xa, 0xf, false);
  value += __builtin_amdgcn_update_dpp(0, value, 0x143, 0xc, 0xf, false);
  out[GTID] = value;
}

KERNEL void divergent(const int* x, int* out) {
  int value = x[GTID], steps = 0;
  while (value != 1 && steps < 200) {
    if (value & 1) { value = value * 3 + 1; steps += 2; }
    else value >>= 1;
    if (value % 5 == 0) continue;
    steps++;
  }
  out[GTID] = steps;
}

KERNEL void wave_vote(const int* x, int* out) {
  bool predicate = x[GTID] > 0;
  u64 mask = ballot(predicate);
  int first = mask ? __builtin_ctzll(mask) : -1, last = mask ? 63 - __builtin_clzll(mask) : -1;
  out[GTID] = __builtin_popcountll(mask) * 65536 + (first & 255) * 256 + (last & 255);
}

KERNEL void lds_rotate(const u64* x, u64* out) {
  __shared__ u64 wide[256];
  __shared__ u16 narrow[256];
  __shared__ u8 bytes[256];
  wide[TID] = x[TID];
  narrow[TID] = (u16)(x[TID] >> 5);
  bytes[TID] = (u8)(x[TID] >> 11);
  sync();
  int other = (TID + 97) & 255;
  out[TID] = wide[other] ^ ((u64)narrow[(other + 3) & 255] << 20) ^ (u64)(i64)(i8)bytes[(other * 3) & 255];
}
