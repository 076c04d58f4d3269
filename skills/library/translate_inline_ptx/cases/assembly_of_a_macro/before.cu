#define DPP_ADD(TYPE) \
  __asm__ volatile("v_nop\n" \
                   "v_add_" #TYPE "_dpp %0 %0 %0 row_shr:8\n" \
                   : "=v"(r) : "0"(r))
__device__ float sum(float r) {
  DPP_ADD(f32);
  return r;
}
__device__ float load(int x, int y, int z) __asm("llvm.amdgcn.raw.buffer.load.f32");
