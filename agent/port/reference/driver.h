// Describes the kernels of the program, and runs one of them on buffers read from a file.
#pragma once
#include <csignal>
#include <sys/resource.h>
#include <sys/wait.h>
namespace wavesmith_driver {
namespace ref = wavesmith_reference;
template <class T> struct Element { static const char* name() { return std::is_floating_point<T>::value ? "float" : std::is_same<T, bool>::value ? "bool" : std::is_integral<T>::value || std::is_enum<T>::value ? std::is_signed<T>::value ? "int" : "uint" : "raw"; } static constexpr size_t size = sizeof(T); };
template <> struct Element<void> { static const char* name() { return "uint"; } static constexpr size_t size = 1; };
#define WAVESMITH_ELEMENT(T, NAME, SIZE) template <> struct Element<T> { static const char* name() { return NAME; } static constexpr size_t size = SIZE; };
WAVESMITH_ELEMENT(__half, "half", 2)
WAVESMITH_ELEMENT(__half2, "half", 2)
WAVESMITH_ELEMENT(__nv_bfloat16, "bfloat16", 2)
WAVESMITH_ELEMENT(c10::Half, "half", 2)
WAVESMITH_ELEMENT(c10::BFloat16, "bfloat16", 2)
WAVESMITH_ELEMENT(__nv_bfloat162, "bfloat16", 2)
WAVESMITH_ELEMENT(__nv_fp8_e4m3, "uint", 1)
WAVESMITH_ELEMENT(__nv_fp8_e5m2, "uint", 1)
#define WAVESMITH_ELEMENTS(NAME, KIND, T) WAVESMITH_ELEMENT(NAME##2, KIND, sizeof(T)) WAVESMITH_ELEMENT(NAME##3, KIND, sizeof(T)) WAVESMITH_ELEMENT(NAME##4, KIND, sizeof(T))
WAVESMITH_ELEMENTS(float, "float", float)
WAVESMITH_ELEMENTS(double, "float", double)
WAVESMITH_ELEMENTS(int, "int", int)
WAVESMITH_ELEMENTS(uint, "uint", int)
WAVESMITH_ELEMENTS(short, "int", short)
WAVESMITH_ELEMENTS(ushort, "uint", short)
WAVESMITH_ELEMENTS(char, "int", char)
WAVESMITH_ELEMENTS(uchar, "uint", char)
WAVESMITH_ELEMENTS(longlong, "int", long long)
WAVESMITH_ELEMENTS(ulonglong, "uint", long long)
/// The name of a type as the compiler spells it, for its record layouts.
template <class T> std::string type_name() {
  const std::string text = __PRETTY_FUNCTION__;
  const size_t at = text.find("T = ") + 4;
  return text.substr(at, text.rfind(']') - at);
}
template <class A> void describe_one() {
  using B = typename std::remove_cv<typename std::remove_reference<A>::type>::type;
  if constexpr (std::is_pointer<B>::value) {
    using P = typename std::remove_pointer<B>::type;
    using E = typename std::remove_cv<P>::type;
    const bool nested = std::is_pointer<E>::value || std::is_function<E>::value;
    size_t whole = 1;
    if constexpr (!std::is_void<E>::value && !std::is_function<E>::value) whole = sizeof(E);
    if constexpr (std::is_function<E>::value) printf("{\"kind\":\"other\",\"size\":8}");
    else printf("{\"kind\":\"%s\",\"size\":8,\"element\":\"%s\",\"element_size\":%zu,\"whole\":%zu,\"const\":%s}", nested ? "other" : "pointer", Element<E>::name(), Element<E>::size, whole, std::is_const<P>::value ? "true" : "false");
  } else {
    printf("{\"kind\":\"%s\",\"size\":%zu,\"element\":\"%s\",\"element_size\":%zu,\"type\":\"%s\"}", std::is_arithmetic<B>::value || std::is_enum<B>::value || strcmp(Element<B>::name(), "raw") ? "value" : "other", sizeof(B), Element<B>::name(), Element<B>::size, type_name<B>().c_str());
  }
}
template <class... A> void describe(void (*)(A...)) {
  bool first = true;
  printf("[");
  ((printf(first ? "" : ","), first = false, describe_one<A>()), ...);
  printf("]");
}
template <class A> typename std::remove_reference<A>::type& argument(void* p) { return *(typename std::remove_cv<typename std::remove_reference<A>::type>::type*)p; }
template <class... A, size_t... I> void call(void (*f)(A...), void** args, std::index_sequence<I...>) { f(argument<A>(args[I])...); }
template <class... A> std::function<void()> bound(void (*f)(A...), void** args) { return [=] { call(f, args, std::index_sequence_for<A...>()); }; }

struct Reader {
  FILE* file;
  template <class T> T get() { T v; if (fread(&v, sizeof v, 1, file) != 1) ref::stop(ref::unsupported, "the input is cut short"); return v; }
};
inline void on_fault(int) { static const char text[] = "reference: memory access outside every buffer\n"; (void)!write(2, text, sizeof text - 1); _exit(ref::fault); }
inline void on_bounds(int) { static const char text[] = "reference: index outside an array\n"; (void)!write(2, text, sizeof text - 1); _exit(ref::fault); }
struct Buffer { unsigned char* data; size_t size; };
/// A buffer whose end touches unmapped memory, far from every other buffer: an index out of one must not end up in the next.
inline Buffer guarded(size_t size) {
  const size_t page = 4096, far = (size_t)48 << 20, pages = (size + page - 1) / page + 1;
  unsigned char* base = (unsigned char*)mmap(nullptr, pages * page + 2 * far, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED || mprotect(base + far, pages * page, PROT_READ | PROT_WRITE)) ref::stop(ref::unsupported, "no room for the buffers");
  const size_t rounded = (size + 15) / 16 * 16;
  return {base + far + (pages * page - rounded), size};
}
inline void catch_faults() {
  static char alternate[65536];
  stack_t s{};
  s.ss_sp = alternate;
  s.ss_size = sizeof alternate;
  sigaltstack(&s, nullptr);
  struct sigaction a{};
  a.sa_flags = SA_ONSTACK;
  a.sa_handler = on_fault;
  sigaction(SIGSEGV, &a, nullptr);
  sigaction(SIGBUS, &a, nullptr);
  a.sa_handler = on_bounds;
  sigaction(SIGILL, &a, nullptr);
  sigaction(SIGTRAP, &a, nullptr);
}
/// `schedule`: its low byte; above, a fill that differs from its own.
/// input: kernel, grid[3], block[3], shared bytes, argument count, then per argument: 1 + bytes of a buffer, or 0 + raw
/// value, or 2 + raw value + count of pointers in it, then per pointer its place and the bytes of its buffer.
template <class Make> int run(const char* input, const char* output, unsigned schedule, Make make) {
  catch_faults();
  Reader r{fopen(input, "rb")};
  if (!r.file) return 1;
  const unsigned kernel = r.get<unsigned>();
  unsigned n[6];
  for (unsigned& v : n) v = r.get<unsigned>();
  const unsigned shared = r.get<unsigned>(), count = r.get<unsigned>();
  std::vector<Buffer> buffers;
  std::vector<std::array<unsigned char, 4096>> values(count);
  std::vector<void*> pointers(count);
  for (unsigned i = 0; i < count; i++) {
    const auto buffer = [&](unsigned char* place) {
      const unsigned long long bytes = r.get<unsigned long long>();
      Buffer b = guarded(bytes);
      if (bytes && fread(b.data, bytes, 1, r.file) != 1) return false;
      buffers.push_back(b);
      memcpy(place, &b.data, 8);
#ifdef WAVESMITH_RACES
      ref::watch(b.data, b.size);
#endif
      return true;
    };
    const unsigned kind = r.get<unsigned>();
    if (kind == 1) {
      if (!buffer(values[i].data())) return 1;
    } else {
      const unsigned long long bytes = r.get<unsigned long long>();
      if (bytes > sizeof values[i] || (bytes && fread(values[i].data(), bytes, 1, r.file) != 1)) return 1;
      for (unsigned n = kind == 2 ? r.get<unsigned>() : 0; n; n--) {
        const unsigned long long place = r.get<unsigned long long>();
        if (place + 8 > sizeof values[i] || !buffer(values[i].data() + place)) return 1;
      }
    }
    pointers[i] = values[i].data();
  }
  fclose(r.file);
#ifdef WAVESMITH_RACES
  ref::watch(ref::dynamic_shared, shared);
#endif
  ref::schedule = schedule & 255;
  ref::fill = schedule >> 8 ? schedule >> 8 : schedule;
  ref::interleaved = ref::schedule != 0;
  ref::launch(dim3(n[0], n[1], n[2]), dim3(n[3], n[4], n[5]), shared, make(kernel, pointers.data()));
#ifdef WAVESMITH_RACES
  if (ref::raced) ref::stop(ref::race, "two threads use the same memory and nothing orders them");
#endif
  FILE* out = fopen(output, "wb");
  for (const Buffer& b : buffers) if (b.size) fwrite(b.data, b.size, 1, out);
  fclose(out);
  fflush(stdout);
  return 0;
}
/// The launch under several schedules, each in a process of its own; one that goes wrong ends the row.
/// `words`: the input, where the exit codes go, then pairs of a schedule and the file for its buffers (what was said goes
/// to the same name with `.error` behind it).
template <class Make> int several(int count, char** words, Make make) {
  FILE* codes = fopen(words[1], "wb");
  if (!codes) return 1;
  for (int i = 2; i + 1 < count; i += 2) {
    fflush(nullptr);
    const pid_t child = fork();
    if (child < 0) return 1;
    if (child == 0) {
      if (!freopen((std::string(words[i + 1]) + ".error").c_str(), "wb", stderr)) _exit(1);
      const int code = run(words[0], words[i + 1], (unsigned)atoi(words[i]), make);
      fflush(nullptr);
      _exit(code);
    }
    int state = 0;
    waitpid(child, &state, 0);
    const int code = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
    fprintf(codes, "%d ", code);
    if (code) break;
  }
  fclose(codes);
  return 0;
}
}  // namespace wavesmith_driver
