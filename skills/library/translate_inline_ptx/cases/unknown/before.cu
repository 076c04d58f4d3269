__device__ unsigned f(unsigned a) {
  unsigned d;
  asm("vset4.u32.u32.eq %0, %1, %1, 0;" : "=r"(d) : "r"(a));
  return d;
}
