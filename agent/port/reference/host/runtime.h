// CUDA's runtime on the CPU model, for whole programs: device memory is host memory far from everything else, a launch is
// done when it returns, streams and events are names. What is not here does not compile, which names it.
#pragma once
#define WAVESMITH_UNPRINTED(...) (0)
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice, cudaMemoryTypeManaged };
enum cudaFuncCache { cudaFuncCachePreferNone, cudaFuncCachePreferShared, cudaFuncCachePreferL1, cudaFuncCachePreferEqual };
enum cudaSharedMemConfig { cudaSharedMemBankSizeDefault, cudaSharedMemBankSizeFourByte, cudaSharedMemBankSizeEightByte };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8, cudaFuncAttributePreferredSharedMemoryCarveout = 9 };
enum cudaDeviceAttr { cudaDevAttrMaxThreadsPerBlock = 1, cudaDevAttrMaxSharedMemoryPerBlock = 8, cudaDevAttrWarpSize = 10, cudaDevAttrMultiProcessorCount = 16, cudaDevAttrComputeCapabilityMajor = 75, cudaDevAttrComputeCapabilityMinor = 76, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };
enum { cudaMemAttachGlobal = 1, cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2, cudaHostAllocWriteCombined = 4, cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2, cudaDeviceMapHost = 8, cudaDeviceScheduleAuto = 0 };
struct cudaPointerAttributes { cudaMemoryType type; int device; void *devicePointer, *hostPointer; };
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor, totalConstMem, textureAlignment;
  int regsPerBlock, regsPerMultiprocessor, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor, maxThreadsDim[3], maxGridSize[3], clockRate, memoryClockRate, memoryBusWidth, multiProcessorCount, major, minor, l2CacheSize, concurrentKernels, managedMemory, canMapHostMemory, unifiedAddressing, concurrentManagedAccess, cooperativeLaunch, integrated, ECCEnabled, computeMode, asyncEngineCount, pciBusID, pciDeviceID;
};
namespace wavesmith_host {
namespace ref = wavesmith_reference;
struct Block { size_t size; cudaMemoryType type; };
inline std::map<uintptr_t, Block> blocks;
inline cudaError_t last = cudaSuccess;
inline unsigned long long names = 0x1000;
inline cudaError_t result(cudaError_t e) { if (e != cudaSuccess) last = e; return e; }
template <class T> T name_of_its_own() { return (T)(names += 16); }
/// One run is one schedule; what a program prints that differs between them is no result.
__attribute__((constructor)) inline void begin() {
  const char* given = getenv("WAVESMITH_SCHEDULE");
  ref::schedule = given ? (unsigned)atoi(given) : 0;
  ref::fill = ref::schedule;
  ref::interleaved = ref::schedule != 0;
  unsetenv("WAVESMITH_SCHEDULE");
  wavesmith_driver::catch_faults();
}
template <class T> cudaError_t allocate(T** p, size_t size, cudaMemoryType type) {
  if (!p) return result(cudaErrorInvalidValue);
  *p = nullptr;
  if (!size) return cudaSuccess;
  if (size > (size_t)1 << 30) ref::stop(ref::unsupported, "it uses more than 1 GiB of device memory at once");
  const auto b = wavesmith_driver::guarded(size);
  memset(b.data, ref::schedule ? 0 : 0x5b, size);
  blocks[(uintptr_t)b.data] = {size, type};
  *p = (T*)b.data;
  return cudaSuccess;
}
inline cudaError_t release(void* p) {
  if (!p) return cudaSuccess;
  auto at = blocks.find((uintptr_t)p);
  if (at == blocks.end()) return result(cudaErrorInvalidValue);
  mprotect((void*)((uintptr_t)p & ~(uintptr_t)4095), at->second.size, PROT_NONE);
  blocks.erase(at);
  return cudaSuccess;
}
inline const Block* block_of(const void* p) {
  auto at = blocks.upper_bound((uintptr_t)p);
  if (at == blocks.begin()) return nullptr;
  --at;
  return (uintptr_t)p - at->first < at->second.size ? &at->second : nullptr;
}
inline cudaError_t copy(void* to, size_t tp, const void* from, size_t fp, size_t width, size_t height) {
  for (size_t row = 0; row < height; row++) memmove((char*)to + row * tp, (const char*)from + row * fp, width);
  return cudaSuccess;
}
struct At {
  dim3 grid, block;
  size_t shared;
  template <class M, class... A> void go(M make, const A&... given) const {
    if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z || (size_t)block.x * block.y * block.z > 1024) { last = cudaErrorInvalidConfiguration; return; }
    ref::launch(grid, block, shared, make(given...));
    fflush(stdout);
  }
};
inline At at(dim3 grid, dim3 block, size_t shared = 0, const void* = nullptr) { return {grid, block, shared}; }
}  // namespace wavesmith_host
template <class T> cudaError_t cudaMalloc(T** p, size_t n) { return wavesmith_host::allocate(p, n, cudaMemoryTypeDevice); }
template <class T> cudaError_t cudaMallocAsync(T** p, size_t n, cudaStream_t) { return wavesmith_host::allocate(p, n, cudaMemoryTypeDevice); }
template <class T> cudaError_t cudaMallocManaged(T** p, size_t n, unsigned = 1) { return wavesmith_host::allocate(p, n, cudaMemoryTypeManaged); }
template <class T> cudaError_t cudaMallocHost(T** p, size_t n, unsigned = 0) { return wavesmith_host::allocate(p, n, cudaMemoryTypeHost); }
template <class T> cudaError_t cudaHostAlloc(T** p, size_t n, unsigned) { return wavesmith_host::allocate(p, n, cudaMemoryTypeHost); }
template <class T> cudaError_t cudaMallocPitch(T** p, size_t* pitch, size_t w, size_t h) { *pitch = (w + 511) / 512 * 512; return wavesmith_host::allocate(p, *pitch * h, cudaMemoryTypeDevice); }
template <class T> cudaError_t cudaHostGetDevicePointer(T** d, void* h, unsigned) { *d = (T*)h; return cudaSuccess; }
inline cudaError_t cudaFree(void* p) { return wavesmith_host::release(p); }
inline cudaError_t cudaFreeAsync(void* p, cudaStream_t) { return wavesmith_host::release(p); }
inline cudaError_t cudaFreeHost(void* p) { return wavesmith_host::release(p); }
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t n, cudaMemcpyKind) { return wavesmith_host::copy(to, n, from, n, n, 1); }
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t n, cudaMemcpyKind, cudaStream_t = nullptr) { return wavesmith_host::copy(to, n, from, n, n, 1); }
inline cudaError_t cudaMemcpy2D(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h, cudaMemcpyKind) { return wavesmith_host::copy(to, tp, from, fp, w, h); }
inline cudaError_t cudaMemcpy2DAsync(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h, cudaMemcpyKind, cudaStream_t = nullptr) { return wavesmith_host::copy(to, tp, from, fp, w, h); }
inline cudaError_t cudaMemset(void* p, int v, size_t n) { memset(p, v, n); return cudaSuccess; }
inline cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t = nullptr) { memset(p, v, n); return cudaSuccess; }
inline cudaError_t cudaMemset2D(void* p, size_t pitch, int v, size_t w, size_t h) { for (size_t r = 0; r < h; r++) memset((char*)p + r * pitch, v, w); return cudaSuccess; }
template <class T> cudaError_t cudaMemcpyToSymbol(T& s, const void* from, size_t n, size_t offset = 0, cudaMemcpyKind = cudaMemcpyHostToDevice) { memcpy((char*)&s + offset, from, n); return cudaSuccess; }
template <class T> cudaError_t cudaMemcpyToSymbolAsync(T& s, const void* from, size_t n, size_t offset, cudaMemcpyKind, cudaStream_t = nullptr) { memcpy((char*)&s + offset, from, n); return cudaSuccess; }
template <class T> cudaError_t cudaMemcpyFromSymbol(void* to, const T& s, size_t n, size_t offset = 0, cudaMemcpyKind = cudaMemcpyDeviceToHost) { memcpy(to, (const char*)&s + offset, n); return cudaSuccess; }
template <class T> cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& s, size_t n, size_t offset, cudaMemcpyKind, cudaStream_t = nullptr) { memcpy(to, (const char*)&s + offset, n); return cudaSuccess; }
template <class T> cudaError_t cudaGetSymbolAddress(void** p, const T& s) { *p = (void*)&s; return cudaSuccess; }
template <class T> cudaError_t cudaGetSymbolSize(size_t* n, const T&) { *n = sizeof(T); return cudaSuccess; }
inline cudaError_t cudaMemGetInfo(size_t* free, size_t* total) { *total = (size_t)(24 + wavesmith_reference::schedule) << 30; *free = *total - ((size_t)1 << 30); return cudaSuccess; }
inline cudaError_t cudaMemPrefetchAsync(const void*, size_t, int, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
  const auto* b = wavesmith_host::block_of(p);
  *a = {b ? b->type : cudaMemoryTypeUnregistered, 0, b ? (void*)p : nullptr, b && b->type == cudaMemoryTypeDevice ? nullptr : (void*)p};
  return cudaSuccess;
}
inline cudaError_t cudaGetDeviceCount(int* n) { *n = 1; return cudaSuccess; }
inline cudaError_t cudaGetDevice(int* n) { *n = 0; return cudaSuccess; }
inline cudaError_t cudaSetDevice(int n) { return n ? wavesmith_host::result(cudaErrorInvalidDevice) : cudaSuccess; }
inline cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
inline cudaError_t cudaThreadSynchronize() { return cudaSuccess; }
inline cudaError_t cudaDeviceReset() { return cudaSuccess; }
inline cudaError_t cudaDriverGetVersion(int* v) { *v = CUDART_VERSION + (int)wavesmith_reference::schedule; return cudaSuccess; }
inline cudaError_t cudaRuntimeGetVersion(int* v) { return cudaDriverGetVersion(v); }
/// What a device says of itself is another thing under every schedule, but for what a program's logic may rest on.
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int n) {
  if (n) return wavesmith_host::result(cudaErrorInvalidDevice);
  const int s = (int)wavesmith_reference::schedule;
  memset((void*)p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "device %d", s);
  p->totalGlobalMem = (size_t)(24 + s) << 30, p->sharedMemPerBlock = 49152, p->sharedMemPerBlockOptin = 65536 + 1024 * s, p->sharedMemPerMultiprocessor = 65536 + 1024 * s, p->totalConstMem = 65536;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536, p->warpSize = 32, p->maxThreadsPerBlock = 1024, p->maxThreadsPerMultiProcessor = 2048;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = 1024, p->maxThreadsDim[2] = 64, p->maxGridSize[0] = 2147483647, p->maxGridSize[1] = p->maxGridSize[2] = 65535;
  p->clockRate = 1500000 + s, p->memoryClockRate = 1200000 + s, p->memoryBusWidth = 4096 << s, p->multiProcessorCount = 40 + 16 * s, p->major = 8, p->minor = s ? 9 : 0, p->l2CacheSize = (4 + s) << 20;
  p->concurrentKernels = p->managedMemory = p->canMapHostMemory = p->unifiedAddressing = p->concurrentManagedAccess = p->cooperativeLaunch = 1, p->asyncEngineCount = 2 + s, p->pciBusID = 1 + s;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr a, int n) {
  cudaDeviceProp p;
  if (cudaGetDeviceProperties(&p, n) != cudaSuccess) return cudaErrorInvalidDevice;
  switch (a) {
    case cudaDevAttrMaxThreadsPerBlock: *v = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *v = (int)p.sharedMemPerBlock; break;
    case cudaDevAttrWarpSize: *v = p.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *v = p.multiProcessorCount; break;
    case cudaDevAttrComputeCapabilityMajor: *v = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *v = p.minor; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *v = (int)p.sharedMemPerBlockOptin; break;
  }
  return cudaSuccess;
}
template <class F> cudaError_t cudaFuncSetAttribute(F, cudaFuncAttribute, int) { return cudaSuccess; }
template <class F> cudaError_t cudaFuncSetCacheConfig(F, cudaFuncCache) { return cudaSuccess; }
template <class F> cudaError_t cudaFuncSetSharedMemConfig(F, cudaSharedMemConfig) { return cudaSuccess; }
inline cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }
template <class F> cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, F, int threads, size_t) { *blocks = std::max(1, 2048 / std::max(threads, 1) - (int)wavesmith_reference::schedule); return cudaSuccess; }
template <class F> cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, F, size_t = 0, int limit = 0) { *block = limit ? limit : 256 << wavesmith_reference::schedule; *grid = 40; return cudaSuccess; }
inline cudaError_t cudaStreamCreate(cudaStream_t* s) { *s = wavesmith_host::name_of_its_own<cudaStream_t>(); return cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) { return cudaStreamCreate(s); }
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned, int) { return cudaStreamCreate(s); }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) { return cudaSuccess; }
inline cudaError_t cudaEventCreate(cudaEvent_t* e) { *e = wavesmith_host::name_of_its_own<cudaEvent_t>(); return cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) { return cudaEventCreate(e); }
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventQuery(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t, cudaEvent_t) { *ms = 1.0f + (float)wavesmith_reference::schedule; return cudaSuccess; }
inline cudaError_t cudaProfilerStart() { return cudaSuccess; }
inline cudaError_t cudaProfilerStop() { return cudaSuccess; }
inline cudaError_t cudaGetLastError() { const cudaError_t e = wavesmith_host::last; wavesmith_host::last = cudaSuccess; return e; }
inline cudaError_t cudaPeekAtLastError() { return wavesmith_host::last; }
inline const char* cudaGetErrorName(cudaError_t e) { return e == cudaSuccess ? "cudaSuccess" : "cudaError"; }
inline const char* cudaGetErrorString(cudaError_t e) { return e == cudaSuccess ? "no error" : e == cudaErrorInvalidValue ? "invalid argument" : e == cudaErrorInvalidConfiguration ? "invalid configuration argument" : "error"; }
