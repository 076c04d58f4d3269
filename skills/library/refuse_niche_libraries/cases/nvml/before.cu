#include <nvml.h>
int devices() { unsigned n = 0; nvmlDeviceGetCount(&n); return (int)n; }
