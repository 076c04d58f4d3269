// The copy kernel that rocprofiler-compute profiles in its own tests, written anew.
#include "device.h"
KERNEL void vecCopy(double* a, double* b, double* c, int n, int stride) {
  int i = GTID;
  if (i < n) c[i] = a[i];
}
