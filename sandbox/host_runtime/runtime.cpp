// HIP's host runtime for a program whose kernels run in the emulator: memory, copies, streams in order, launches.
//
// The other half is sandbox/child_host_program.py, which owns device memory and executes launches; the two talk in
// frames over two pipes. A device buffer is a file that both map: here under an address of the program's own for copies,
// and, where the host may touch it, at its device address too. A host access to any other device buffer faults.
// Everything is done at once and in order: a stream is a name, an event has passed when it was recorded.
// What is not here does not link, and what is here and cannot be answered ends the program by `unknown`.
#include <hip/hip_runtime_api.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {
enum Op : uint32_t { ALLOCATE = 1, RELEASE, KERNEL, LAUNCH, SYMBOL, UNKNOWN };
struct Frame { uint32_t word, bytes; };  // word: an Op one way, 0 or an error the other
struct Mapped { uint64_t base, size, file; };
struct Block { size_t size; char* bytes; hipMemoryType type; };
struct Argument { uint32_t offset, size; };
struct Kernel { std::string name; std::vector<Argument> arguments; uint32_t bytes = 0; bool known = false; };
struct Variable { std::string name; size_t size; void* address = nullptr; };
struct Call { dim3 grid, block; size_t shared; hipStream_t stream; };

struct Runtime {
  int in = -1, out = -1, units = 0;
  size_t lds_bytes = 0;
  std::string arch, board, folder;
  std::map<uintptr_t, Block> blocks;
  std::map<const void*, Kernel> kernels;
  std::map<const void*, Variable> variables;
  std::vector<Call> calls;
  uintptr_t names = 0;
  hipError_t last = hipSuccess;
};
Runtime& runtime();

[[noreturn]] void lost() { _exit(125); }
void write_all(const void* data, size_t size) {
  for (const char* p = (const char*)data; size;) {
    const ssize_t n = write(runtime().out, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) lost();
    p += n, size -= n;
  }
}
void read_all(void* data, size_t size) {
  for (char* p = (char*)data; size;) {
    const ssize_t n = read(runtime().in, p, size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) lost();
    p += n, size -= n;
  }
}
/// One question and its answer; an answer other than 0 means that the program cannot go on, and the reason is known.
std::string ask(Op op, const std::string& data) {
  const Frame question{op, (uint32_t)data.size()};
  write_all(&question, sizeof question);
  write_all(data.data(), data.size());
  Frame answer{};
  read_all(&answer, sizeof answer);
  std::string said(answer.bytes, 0);
  read_all(said.data(), said.size());
  if (answer.word) fflush(stdout), _exit(124);
  return said;
}
[[noreturn]] __attribute__((format(printf, 1, 2))) void unknown(const char* format, ...) {
  char text[400];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  ask(UNKNOWN, text);
  _exit(124);
}
template <class... T> std::string packed(const T&... values) {
  std::string data;
  (data.append((const char*)&values, sizeof values), ...);
  return data;
}
Runtime& runtime() {
  static Runtime* made = [] {
    auto* r = new Runtime;
    const char* given = getenv("WAVESMITH_RUNTIME");
    char arch[32], board[64], folder[512];
    if (!given || sscanf(given, "%d,%d,%d,%zu,%31[^,],%63[^,],%511s", &r->in, &r->out, &r->units, &r->lds_bytes, arch, board, folder) != 7) lost();
    r->arch = arch, r->board = board, r->folder = folder;
    unsetenv("WAVESMITH_RUNTIME");
    return r;
  }();
  return *made;
}
hipError_t result(hipError_t e) {
  if (e != hipSuccess) runtime().last = e;
  return e;
}

// ---- memory ----------------------------------------------------------------------------------------------------------
Block* block_of(const void* p, size_t size = 1) {
  auto& blocks = runtime().blocks;
  auto at = blocks.upper_bound((uintptr_t)p);
  if (at == blocks.begin()) return nullptr;
  --at;
  const size_t offset = (uintptr_t)p - at->first;
  return offset < at->second.size && size <= at->second.size - offset ? &at->second : nullptr;
}
void* mapped(const std::string& said, hipMemoryType type) {
  Mapped m;
  if (said.size() != sizeof m) lost();
  memcpy(&m, said.data(), sizeof m);
  const std::string path = runtime().folder + "/" + std::to_string(m.file);
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  const size_t page = 4096, front = m.base % page, whole = (front + m.size + page - 1) / page * page;
  char* bytes = fd < 0 ? (char*)MAP_FAILED : (char*)mmap(nullptr, whole, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (bytes == MAP_FAILED) unknown("a buffer of %llu bytes (no room to map it)", (unsigned long long)m.size);
  if (type != hipMemoryTypeDevice &&
      mmap((void*)(m.base - front), whole, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0) == MAP_FAILED)
    unknown("a buffer that host and device share (its address is taken)");
  close(fd);
  runtime().blocks[m.base] = {m.size, bytes + front, type};
  return (void*)m.base;
}
template <class T> hipError_t allocate(T** p, size_t size, hipMemoryType type) {
  if (!p) return result(hipErrorInvalidValue);
  *p = size ? (T*)mapped(ask(ALLOCATE, packed((uint64_t)size, (uint32_t)type)), type) : nullptr;
  return hipSuccess;
}
hipError_t release(void* p) {
  if (!p) return hipSuccess;
  auto at = runtime().blocks.find((uintptr_t)p);
  if (at == runtime().blocks.end()) return result(hipErrorInvalidValue);
  const size_t page = 4096, front = at->first % page, whole = (front + at->second.size + page - 1) / page * page;
  munmap(at->second.bytes - front, whole);
  if (at->second.type != hipMemoryTypeDevice) munmap((void*)(at->first - front), whole);
  runtime().blocks.erase(at);
  ask(RELEASE, packed((uint64_t)(uintptr_t)p));
  return hipSuccess;
}
/// Where `size` bytes at a pointer can be reached; null where a device buffer is too small for them.
char* reach(const void* p, size_t size, bool& device) {
  const auto& blocks = runtime().blocks;
  device = false;
  auto at = blocks.upper_bound((uintptr_t)p);
  if (at != blocks.begin()) {
    --at;
    const size_t offset = (uintptr_t)p - at->first;
    if (offset <= at->second.size) {
      device = at->second.type == hipMemoryTypeDevice;
      return size <= at->second.size - offset ? at->second.bytes + offset : nullptr;
    }
  }
  return (char*)p;
}
hipError_t copy(void* to, size_t to_pitch, const void* from, size_t from_pitch, size_t width, size_t height, hipMemcpyKind kind) {
  if (!width || !height) return hipSuccess;
  bool to_device, from_device;
  char* t = reach(to, to_pitch * (height - 1) + width, to_device);
  const char* f = reach(from, from_pitch * (height - 1) + width, from_device);
  const bool to_may = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice, from_may = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  if (!t || !f || (kind != hipMemcpyDefault && ((to_device && !to_may) || (from_device && !from_may)))) return result(hipErrorInvalidValue);
  if ((to_may && !block_of(to)) || (from_may && !block_of(from))) return result(hipErrorInvalidValue);
  for (size_t row = 0; row < height; row++) memmove(t + row * to_pitch, f + row * from_pitch, width);
  return hipSuccess;
}
hipError_t fill(void* to, size_t pitch, const void* value, size_t value_size, size_t width, size_t height) {
  if (!width || !height) return hipSuccess;
  bool device;
  char* t = reach(to, pitch * (height - 1) + width, device);
  if (!t || !block_of(to)) return result(hipErrorInvalidValue);
  for (size_t row = 0; row < height; row++)
    for (size_t i = 0; i < width; i += value_size) memcpy(t + row * pitch + i, value, value_size);
  return hipSuccess;
}
/// The device address of a variable that was registered, or null.
char* variable(const void* symbol, size_t size, size_t offset) {
  auto at = runtime().variables.find(symbol);
  if (at == runtime().variables.end() || offset + size > at->second.size) return nullptr;
  Variable& v = at->second;
  if (!v.address) {
    const std::string said = ask(SYMBOL, v.name);
    Mapped whole;
    uint64_t inside;
    if (said.size() != sizeof whole + sizeof inside) lost();
    memcpy(&whole, said.data(), sizeof whole);
    memcpy(&inside, said.data() + sizeof whole, sizeof inside);
    if (!runtime().blocks.count(whole.base)) mapped(said.substr(0, sizeof whole), hipMemoryTypeDevice);
    v.address = (void*)(whole.base + inside);
  }
  return (char*)v.address + offset;
}

// ---- launches --------------------------------------------------------------------------------------------------------
hipError_t launch(const void* function, dim3 grid, dim3 block, void** given, size_t shared) {
  auto at = runtime().kernels.find(function);
  if (at == runtime().kernels.end()) return result(hipErrorInvalidDeviceFunction);
  Kernel& k = at->second;
  if (!grid.x || !grid.y || !grid.z || !block.x || !block.y || !block.z || (size_t)block.x * block.y * block.z > 1024)
    return result(hipErrorInvalidConfiguration);
  if (!k.known) {
    const std::string said = ask(KERNEL, k.name);
    memcpy(&k.bytes, said.data(), 4);
    for (size_t i = 4; i + sizeof(Argument) <= said.size(); i += sizeof(Argument)) {
      k.arguments.emplace_back();
      memcpy(&k.arguments.back(), said.data() + i, sizeof(Argument));
    }
    k.known = true;
  }
  std::string block_of_arguments(k.bytes, 0);
  for (size_t i = 0; i < k.arguments.size(); i++) memcpy(block_of_arguments.data() + k.arguments[i].offset, given[i], k.arguments[i].size);
  const uint32_t numbers[] = {grid.x, grid.y, grid.z, block.x, block.y, block.z, (uint32_t)shared, (uint32_t)k.name.size()};
  ask(LAUNCH, packed(numbers) + k.name + block_of_arguments);
  return hipSuccess;
}
template <class T> T name_of_its_own() { return (T)(0x1000 + 16 * ++runtime().names); }
}  // namespace

#define API extern "C" __attribute__((visibility("default")))
/// For the library parts beside this one: where `size` bytes of device memory lie, or null; and how to give up.
API char* wavesmith_memory(const void* p, size_t size) {
  bool device;
  return block_of(p, size) ? reach(p, size, device) : nullptr;
}
API [[noreturn]] void wavesmith_unknown(const char* what) { unknown("%s", what); }
API const char wavesmith_fatbin[16] = "in the emulator";
API void** __hipRegisterFatBinary(const void*) { static void* module = nullptr; return &module; }
API void __hipUnregisterFatBinary(void**) {}
API void __hipRegisterFunction(void**, const void* function, char*, const char* name, unsigned, void*, void*, void*, void*, int*) { runtime().kernels[function].name = name; }
API void __hipRegisterVar(void**, void* variable, char*, char* name, int, size_t size, int, int) { runtime().variables[variable] = {name, size, nullptr}; }
API void __hipRegisterManagedVar(void**, void**, void*, const char* name, size_t, unsigned) { unknown("__managed__ %s", name); }
API hipError_t __hipPushCallConfiguration(dim3 grid, dim3 block, size_t shared, hipStream_t stream) { runtime().calls.push_back({grid, block, shared, stream}); return hipSuccess; }
API hipError_t __hipPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, hipStream_t* stream) {
  if (runtime().calls.empty()) return result(hipErrorMissingConfiguration);
  const Call c = runtime().calls.back();
  runtime().calls.pop_back();
  *grid = c.grid, *block = c.block, *shared = c.shared, *stream = c.stream;
  return hipSuccess;
}
API hipError_t hipLaunchKernel(const void* f, dim3 grid, dim3 block, void** args, size_t shared, hipStream_t) { return launch(f, grid, block, args, shared); }
API hipError_t hipExtLaunchKernel(const void* f, dim3 grid, dim3 block, void** args, size_t shared, hipStream_t, hipEvent_t, hipEvent_t, int) { return launch(f, grid, block, args, shared); }
API hipError_t hipFuncSetAttribute(const void*, hipFuncAttribute, int) { return hipSuccess; }
API hipError_t hipFuncSetCacheConfig(const void*, hipFuncCache_t) { return hipSuccess; }
API hipError_t hipFuncSetSharedMemConfig(const void*, hipSharedMemConfig) { return hipSuccess; }
API hipError_t hipDeviceSetCacheConfig(hipFuncCache_t) { return hipSuccess; }
API hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig) { return hipSuccess; }

API hipError_t hipMalloc(void** p, size_t size) { return allocate(p, size, hipMemoryTypeDevice); }
API hipError_t hipMallocAsync(void** p, size_t size, hipStream_t) { return allocate(p, size, hipMemoryTypeDevice); }
API hipError_t hipMallocManaged(void** p, size_t size, unsigned) { return allocate(p, size, hipMemoryTypeManaged); }
API hipError_t hipHostMalloc(void** p, size_t size, unsigned) { return allocate(p, size, hipMemoryTypeHost); }
API hipError_t hipHostAlloc(void** p, size_t size, unsigned) { return allocate(p, size, hipMemoryTypeHost); }
API hipError_t hipMallocHost(void** p, size_t size) { return allocate(p, size, hipMemoryTypeHost); }
API hipError_t hipMallocPitch(void** p, size_t* pitch, size_t width, size_t height) { *pitch = (width + 255) / 256 * 256; return allocate(p, *pitch * height, hipMemoryTypeDevice); }
API hipError_t hipFree(void* p) { return release(p); }
API hipError_t hipFreeAsync(void* p, hipStream_t) { return release(p); }
API hipError_t hipHostFree(void* p) { return release(p); }
API hipError_t hipFreeHost(void* p) { return release(p); }
API hipError_t hipHostGetDevicePointer(void** device, void* host, unsigned) { *device = host; return block_of(host) ? hipSuccess : result(hipErrorInvalidValue); }
API hipError_t hipMemcpy(void* to, const void* from, size_t n, hipMemcpyKind k) { return copy(to, n, from, n, n, 1, k); }
API hipError_t hipMemcpyAsync(void* to, const void* from, size_t n, hipMemcpyKind k, hipStream_t) { return copy(to, n, from, n, n, 1, k); }
API hipError_t hipMemcpyWithStream(void* to, const void* from, size_t n, hipMemcpyKind k, hipStream_t) { return copy(to, n, from, n, n, 1, k); }
API hipError_t hipMemcpyHtoD(hipDeviceptr_t to, void* from, size_t n) { return copy(to, n, from, n, n, 1, hipMemcpyHostToDevice); }
API hipError_t hipMemcpyDtoH(void* to, hipDeviceptr_t from, size_t n) { return copy(to, n, from, n, n, 1, hipMemcpyDeviceToHost); }
API hipError_t hipMemcpyDtoD(hipDeviceptr_t to, hipDeviceptr_t from, size_t n) { return copy(to, n, from, n, n, 1, hipMemcpyDeviceToDevice); }
API hipError_t hipMemcpy2D(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h, hipMemcpyKind k) { return copy(to, tp, from, fp, w, h, k); }
API hipError_t hipMemcpy2DAsync(void* to, size_t tp, const void* from, size_t fp, size_t w, size_t h, hipMemcpyKind k, hipStream_t) { return copy(to, tp, from, fp, w, h, k); }
API hipError_t hipMemset(void* to, int v, size_t n) { const char c = (char)v; return fill(to, n, &c, 1, n, 1); }
API hipError_t hipMemsetAsync(void* to, int v, size_t n, hipStream_t) { return hipMemset(to, v, n); }
API hipError_t hipMemset2D(void* to, size_t pitch, int v, size_t w, size_t h) { const char c = (char)v; return fill(to, pitch, &c, 1, w, h); }
API hipError_t hipMemset2DAsync(void* to, size_t pitch, int v, size_t w, size_t h, hipStream_t) { return hipMemset2D(to, pitch, v, w, h); }
API hipError_t hipMemsetD8(hipDeviceptr_t to, unsigned char v, size_t n) { return fill(to, n, &v, 1, n, 1); }
API hipError_t hipMemsetD32(hipDeviceptr_t to, int v, size_t n) { return fill(to, 4 * n, &v, 4, 4 * n, 1); }
API hipError_t hipMemsetD32Async(hipDeviceptr_t to, int v, size_t n, hipStream_t) { return hipMemsetD32(to, v, n); }
API hipError_t hipMemcpyToSymbol(const void* symbol, const void* from, size_t n, size_t offset, hipMemcpyKind k) {
  char* to = variable(symbol, n, offset);
  return to ? copy(to, n, from, n, n, 1, k) : result(hipErrorInvalidSymbol);
}
API hipError_t hipMemcpyToSymbolAsync(const void* s, const void* from, size_t n, size_t offset, hipMemcpyKind k, hipStream_t) { return hipMemcpyToSymbol(s, from, n, offset, k); }
API hipError_t hipMemcpyFromSymbol(void* to, const void* symbol, size_t n, size_t offset, hipMemcpyKind k) {
  const char* from = variable(symbol, n, offset);
  return from ? copy(to, n, from, n, n, 1, k) : result(hipErrorInvalidSymbol);
}
API hipError_t hipMemcpyFromSymbolAsync(void* to, const void* s, size_t n, size_t offset, hipMemcpyKind k, hipStream_t) { return hipMemcpyFromSymbol(to, s, n, offset, k); }
API hipError_t hipGetSymbolAddress(void** p, const void* symbol) { *p = variable(symbol, 0, 0); return *p ? hipSuccess : result(hipErrorInvalidSymbol); }
API hipError_t hipGetSymbolSize(size_t* size, const void* symbol) {
  auto at = runtime().variables.find(symbol);
  return at == runtime().variables.end() ? result(hipErrorInvalidSymbol) : (*size = at->second.size, hipSuccess);
}
API hipError_t hipMemGetInfo(size_t* free, size_t* total) { *total = (size_t)64 << 30; *free = *total - ((size_t)1 << 30); return hipSuccess; }
API hipError_t hipPointerGetAttributes(hipPointerAttribute_t* a, const void* p) {
  Block* b = block_of(p);
  if (!b) return result(hipErrorInvalidValue);
  memset(a, 0, sizeof *a);
  a->type = b->type, a->devicePointer = (void*)p, a->hostPointer = b->type == hipMemoryTypeDevice ? nullptr : (void*)p, a->isManaged = b->type == hipMemoryTypeManaged;
  return hipSuccess;
}
API hipError_t hipMemPrefetchAsync(const void*, size_t, int, hipStream_t) { return hipSuccess; }
API hipError_t hipMemAdvise(const void*, size_t, hipMemoryAdvise, int) { return hipSuccess; }

API hipError_t hipInit(unsigned) { return hipSuccess; }
API hipError_t hipGetDeviceCount(int* n) { *n = 1; return hipSuccess; }
API hipError_t hipGetDevice(int* n) { *n = 0; return hipSuccess; }
API hipError_t hipDeviceGet(hipDevice_t* d, int n) { *d = 0; return n ? result(hipErrorInvalidDevice) : hipSuccess; }
API hipError_t hipSetDevice(int n) { return n ? result(hipErrorInvalidDevice) : hipSuccess; }
API hipError_t hipSetDeviceFlags(unsigned) { return hipSuccess; }
API hipError_t hipDeviceSynchronize() { return hipSuccess; }
API hipError_t hipDeviceReset() { return hipSuccess; }
API hipError_t hipDriverGetVersion(int* v) { *v = HIP_VERSION; return hipSuccess; }
API hipError_t hipRuntimeGetVersion(int* v) { *v = HIP_VERSION; return hipSuccess; }
API hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* p, int n) {
  if (n) return result(hipErrorInvalidDevice);
  memset(p, 0, sizeof *p);
  snprintf(p->name, sizeof p->name, "%s", runtime().board.c_str());
  snprintf(p->gcnArchName, sizeof p->gcnArchName, "%s:sramecc+:xnack-", runtime().arch.c_str());
  p->totalGlobalMem = (size_t)64 << 30, p->sharedMemPerBlock = p->maxSharedMemoryPerMultiProcessor = p->sharedMemPerMultiprocessor = p->sharedMemPerBlockOptin = runtime().lds_bytes;
  p->regsPerBlock = p->regsPerMultiprocessor = 65536, p->warpSize = 64, p->maxThreadsPerBlock = 1024, p->maxThreadsPerMultiProcessor = 2048;
  p->maxThreadsDim[0] = p->maxThreadsDim[1] = p->maxThreadsDim[2] = 1024;
  p->maxGridSize[0] = 2147483647, p->maxGridSize[1] = p->maxGridSize[2] = 65536;
  p->clockRate = 2100000, p->memoryClockRate = 1300000, p->memoryBusWidth = 8192, p->multiProcessorCount = runtime().units;
  p->major = 9, p->minor = runtime().arch == "gfx950" ? 5 : 4, p->totalConstMem = 2147483647, p->l2CacheSize = 4 << 20, p->concurrentKernels = 1;
  p->managedMemory = p->canMapHostMemory = p->unifiedAddressing = p->concurrentManagedAccess = p->cooperativeLaunch = 1;
  return hipSuccess;
}
API hipError_t hipDeviceGetAttribute(int* v, hipDeviceAttribute_t a, int n) {
  hipDeviceProp_tR0600 p;
  if (hipGetDevicePropertiesR0600(&p, n) != hipSuccess) return runtime().last;
  switch (a) {
    case hipDeviceAttributeWarpSize: *v = p.warpSize; break;
    case hipDeviceAttributeMultiprocessorCount: *v = p.multiProcessorCount; break;
    case hipDeviceAttributeMaxThreadsPerBlock: *v = p.maxThreadsPerBlock; break;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor: *v = p.maxThreadsPerMultiProcessor; break;
    case hipDeviceAttributeMaxSharedMemoryPerBlock: case hipDeviceAttributeSharedMemPerBlockOptin: case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor: *v = (int)p.sharedMemPerBlock; break;
    case hipDeviceAttributeComputeCapabilityMajor: *v = p.major; break;
    case hipDeviceAttributeComputeCapabilityMinor: *v = p.minor; break;
    case hipDeviceAttributeManagedMemory: case hipDeviceAttributeConcurrentManagedAccess: case hipDeviceAttributeCanMapHostMemory: *v = 1; break;
    case hipDeviceAttributeMaxGridDimX: *v = p.maxGridSize[0]; break;
    case hipDeviceAttributeClockRate: *v = p.clockRate; break;
    default: unknown("hipDeviceGetAttribute of attribute %d", (int)a);
  }
  return hipSuccess;
}
API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void*, int threads, size_t) { *blocks = threads > 0 ? 2048 / ((threads + 63) / 64 * 64) : 1; return hipSuccess; }
API hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* f, int threads, size_t shared, unsigned) { return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, f, threads, shared); }
API hipError_t hipOccupancyMaxPotentialBlockSize(int* grid, int* block, const void*, size_t, int limit) { *block = limit ? limit : 256; *grid = runtime().units; return hipSuccess; }

API hipError_t hipStreamCreate(hipStream_t* s) { *s = name_of_its_own<hipStream_t>(); return hipSuccess; }
API hipError_t hipStreamCreateWithFlags(hipStream_t* s, unsigned) { return hipStreamCreate(s); }
API hipError_t hipStreamCreateWithPriority(hipStream_t* s, unsigned, int) { return hipStreamCreate(s); }
API hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) { *least = 1, *greatest = -1; return hipSuccess; }
API hipError_t hipStreamDestroy(hipStream_t) { return hipSuccess; }
API hipError_t hipStreamSynchronize(hipStream_t) { return hipSuccess; }
API hipError_t hipStreamQuery(hipStream_t) { return hipSuccess; }
API hipError_t hipStreamWaitEvent(hipStream_t, hipEvent_t, unsigned) { return hipSuccess; }
API hipError_t hipStreamGetDevice(hipStream_t, hipDevice_t* d) { *d = 0; return hipSuccess; }
API int hipGetStreamDeviceId(hipStream_t) { return 0; }
API hipError_t hipEventCreate(hipEvent_t* e) { *e = name_of_its_own<hipEvent_t>(); return hipSuccess; }
API hipError_t hipEventCreateWithFlags(hipEvent_t* e, unsigned) { return hipEventCreate(e); }
API hipError_t hipEventDestroy(hipEvent_t) { return hipSuccess; }
API hipError_t hipEventRecord(hipEvent_t, hipStream_t) { return hipSuccess; }
API hipError_t hipEventSynchronize(hipEvent_t) { return hipSuccess; }
API hipError_t hipEventQuery(hipEvent_t) { return hipSuccess; }
API hipError_t hipEventElapsedTime(float* ms, hipEvent_t, hipEvent_t) { *ms = 1.0f; return hipSuccess; }
API hipError_t hipProfilerStart() { return hipSuccess; }
API hipError_t hipProfilerStop() { return hipSuccess; }
API hipError_t hipGetLastError() { const hipError_t e = runtime().last; runtime().last = hipSuccess; return e; }
API hipError_t hipPeekAtLastError() { return runtime().last; }
API const char* hipGetErrorName(hipError_t e) { return e == hipSuccess ? "hipSuccess" : e == hipErrorInvalidValue ? "hipErrorInvalidValue" : e == hipErrorInvalidConfiguration ? "hipErrorInvalidConfiguration" : "hipError"; }
API const char* hipGetErrorString(hipError_t e) { return e == hipSuccess ? "no error" : e == hipErrorInvalidValue ? "invalid argument" : e == hipErrorInvalidConfiguration ? "invalid configuration argument" : "error"; }
