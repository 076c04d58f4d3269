// Calls host functions with made-up arguments and prints what they return and leave behind: a driver for a file without a
// main(). The same text is compiled with the original and with the port; WAVESMITH_API names the runtime's functions.
#pragma once
#include <cstdio>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#ifndef WAVESMITH_API
#define WAVESMITH_API(name) cuda##name
#endif
namespace wavesmith_entry {
constexpr size_t capacity = 2048;
inline unsigned long long drawn = 1;
inline unsigned number, sizes_given;
inline unsigned draw() {
  drawn = drawn * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(drawn >> 33);
}
/// Small halves around one, whose sums and products are exact in single precision: no order of additions is the right one.
template <class T> T value() {
  if constexpr (std::is_same<T, bool>::value) return draw() & 1;
  else if constexpr (std::is_floating_point<T>::value) return (T)((int)(draw() % 64) - 24) / 16;
  else return (T)(draw() % 24);
}
template <class T> void show(const T& v) {
  if constexpr (std::is_floating_point<T>::value) printf(" %.9g", (double)v);
  else if constexpr (std::is_enum<T>::value) printf(" %lld", (long long)v);
  else if constexpr (std::is_integral<T>::value) printf(" %lld", (long long)v);
  else for (size_t i = 0; i < sizeof(T); i++) printf(" %u", ((const unsigned char*)&v)[i]);
}
template <class T> void show_all(const char* what, const T* data, size_t count) {
  printf("%s %u:", what, number++);
  for (size_t i = 0; i < count; i++) show(data[i]);
  printf("\n");
}
/// An argument of type A: `get` before the call; `done` after it says whether what it leads to was changed. `possible`
/// says whether one can be made up.
template <class A, class = void> struct Made { static constexpr bool possible = false; };
template <class A> struct Made<A, std::enable_if_t<std::is_arithmetic<A>::value>> {
  static constexpr bool possible = true;
  A given{};
  A& get() {
    constexpr unsigned sizes[] = {32, 24, 16};
    if constexpr (std::is_same<A, bool>::value || std::is_floating_point<A>::value) given = value<A>();
    else given = (A)sizes[sizes_given++ % 3];
    return given;
  }
  bool done() { return false; }
};
/// Memory of the device. What a void* points to is small numbers of 16 bits, brain floats as well as integers.
template <class T> struct Made<T*, std::enable_if_t<std::is_arithmetic<T>::value || std::is_void<T>::value>> {
  static constexpr bool possible = true;
  using E = std::conditional_t<std::is_void<T>::value, unsigned short, std::remove_cv_t<T>>;
  std::vector<E> host = std::vector<E>(capacity);
  E* device = nullptr;
  T* passed = nullptr;
  T*& get() {
    for (E& e : host) e = std::is_void<T>::value ? (E)(0x3f00 + 8 * (draw() % 32)) : value<E>();
    (void)WAVESMITH_API(Malloc)((void**)&device, capacity * sizeof(E));
    (void)WAVESMITH_API(Memcpy)(device, host.data(), capacity * sizeof(E), WAVESMITH_API(MemcpyHostToDevice));
    return passed = device;
  }
  bool done() {
    const std::vector<E> before = host;
    (void)WAVESMITH_API(Memcpy)(host.data(), device, capacity * sizeof(E), WAVESMITH_API(MemcpyDeviceToHost));
    show_all("buffer", host.data(), capacity);
    (void)WAVESMITH_API(Free)(device);
    return memcmp(before.data(), host.data(), capacity * sizeof(E)) != 0;
  }
};
template <> struct Made<WAVESMITH_API(Stream_t)> {
  static constexpr bool possible = true;
  WAVESMITH_API(Stream_t) stream = nullptr;
  WAVESMITH_API(Stream_t)& get() { return stream; }
  bool done() { return false; }
};
#ifdef WAVESMITH_VECTORS
template <class T> struct Made<thrust::device_vector<T>, std::enable_if_t<std::is_arithmetic<T>::value>> {
  static constexpr bool possible = true;
  std::vector<T> host = std::vector<T>(capacity / 4);
  thrust::device_vector<T> device;
  thrust::device_vector<T>& get() {
    for (T& e : host) e = value<T>();
    device = thrust::device_vector<T>(host.begin(), host.end());
    return device;
  }
  bool done() {
    std::vector<T> after(device.size());
    (void)WAVESMITH_API(Memcpy)(after.data(), thrust::raw_pointer_cast(device.data()), after.size() * sizeof(T), WAVESMITH_API(MemcpyDeviceToHost));
    show_all("vector", after.data(), after.size());
    return after != host;
  }
};
#endif
/// Stands for a parameter that is a library's handle: on one side that is a type of its own, on the other any pointer.
struct Handle;
#ifdef WAVESMITH_BLASLT
template <> struct Made<Handle> {
  static constexpr bool possible = true;
  WAVESMITH_BLASLT(Handle_t) handle = nullptr;
  WAVESMITH_BLASLT(Handle_t)& get() { (void)WAVESMITH_BLASLT(Create)(&handle); return handle; }
  bool done() { (void)WAVESMITH_BLASLT(Destroy)(handle); return false; }
};
#endif
template <class A> using Plain = std::remove_cv_t<std::remove_reference_t<A>>;
template <unsigned handles, class R, class... A, size_t... I> void call_with(const char* name, R (*function)(A...), std::index_sequence<I...>) {
  if constexpr ((Made<std::conditional_t<((handles >> I) & 1) != 0, Handle, Plain<A>>>::possible && ...) && sizeof...(A) > 0) {
    bool changed = std::is_floating_point<R>::value;
    for (unsigned seed = 1; seed <= 2; seed++) {
      drawn = seed * 7919, number = sizes_given = 0;
      std::tuple<Made<std::conditional_t<((handles >> I) & 1) != 0, Handle, Plain<A>>>...> made;
      printf("%s, seed %u\n", name, seed);
      std::apply([&](auto&... m) {
        std::tuple<decltype(m.get())...> given{m.get()...};
        std::apply([&](auto&... a) {
          if constexpr (std::is_void<R>::value) function(a...);
          else if constexpr (std::is_arithmetic<R>::value || std::is_enum<R>::value) { const R r = function(a...); printf("returned:"); show(r); printf("\n"); }
          else (void)function(a...);
        }, given);
        (void)WAVESMITH_API(DeviceSynchronize)();
        ((changed |= m.done()), ...);
      }, made);
    }
    if (!changed) printf("idle %s\n", name);
  } else printf("unmade %s\n", name);
}
/// `handles` has a bit for each parameter that is a library's handle.
template <unsigned handles, class R, class... A> void call(const char* name, R (*function)(A...)) {
  call_with<handles>(name, function, std::index_sequence_for<A...>());
}
}  // namespace wavesmith_entry
