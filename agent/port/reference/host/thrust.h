// The part of Thrust that ports are tried with, by the standard library: policies run at once, device memory is memory.
#pragma once
#include "runtime.h"
namespace thrust {
template <class... T> using tuple = std::tuple<T...>;
template <class A, class B> using pair = std::pair<A, B>;
using std::get;
using std::make_pair;
using std::make_tuple;
using std::tie;
template <class T = void> struct plus : std::plus<T> {};
template <class T = void> struct minus : std::minus<T> {};
template <class T = void> struct multiplies : std::multiplies<T> {};
template <class T = void> struct divides : std::divides<T> {};
template <class T = void> struct negate : std::negate<T> {};
template <class T = void> struct less : std::less<T> {};
template <class T = void> struct greater : std::greater<T> {};
template <class T = void> struct equal_to : std::equal_to<T> {};
template <class T = void> struct maximum { template <class A, class B> auto operator()(const A& a, const B& b) const { return a < b ? b : a; } };
template <class T = void> struct minimum { template <class A, class B> auto operator()(const A& a, const B& b) const { return b < a ? b : a; } };
template <class T = void> struct identity { template <class A> A operator()(const A& a) const { return a; } };
template <class T> struct square { T operator()(const T& a) const { return a * a; } };

struct Policy {
  template <class S> const Policy& on(S) const { return *this; }
  template <class A> const Policy& operator()(const A&) const { return *this; }
};
inline constexpr Policy device{}, host{}, seq{};
namespace cuda { inline constexpr Policy par{}, par_nosync{}; }
namespace system { namespace cuda { using thrust::cuda::par; } }
template <class T> constexpr bool is_policy = std::is_same<std::decay_t<T>, Policy>::value;

template <class T> class device_ptr {
  T* p = nullptr;
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = std::remove_cv_t<T>;
  using difference_type = std::ptrdiff_t;
  using pointer = T*;
  using reference = T&;
  device_ptr() = default;
  explicit device_ptr(T* q) : p(q) {}
  T* get() const { return p; }
  T& operator*() const { return *p; }
  T& operator[](std::ptrdiff_t i) const { return p[i]; }
  device_ptr& operator++() { ++p; return *this; }
  device_ptr operator++(int) { auto old = *this; ++p; return old; }
  device_ptr& operator--() { --p; return *this; }
  device_ptr operator--(int) { auto old = *this; --p; return old; }
  device_ptr& operator+=(std::ptrdiff_t n) { p += n; return *this; }
  device_ptr& operator-=(std::ptrdiff_t n) { p -= n; return *this; }
  friend device_ptr operator+(device_ptr a, std::ptrdiff_t n) { return device_ptr(a.p + n); }
  friend device_ptr operator+(std::ptrdiff_t n, device_ptr a) { return device_ptr(a.p + n); }
  friend device_ptr operator-(device_ptr a, std::ptrdiff_t n) { return device_ptr(a.p - n); }
  friend std::ptrdiff_t operator-(device_ptr a, device_ptr b) { return a.p - b.p; }
  friend bool operator==(device_ptr a, device_ptr b) { return a.p == b.p; }
  friend bool operator!=(device_ptr a, device_ptr b) { return a.p != b.p; }
  friend bool operator<(device_ptr a, device_ptr b) { return a.p < b.p; }
};
template <class T> device_ptr<T> device_pointer_cast(T* p) { return device_ptr<T>(p); }
template <class T> T* raw_pointer_cast(T* p) { return p; }
template <class T> T* raw_pointer_cast(device_ptr<T> p) { return p.get(); }
template <class T> auto* raw_pointer_cast(__gnu_cxx::__normal_iterator<T, std::vector<std::remove_pointer_t<T>>> p) { return &*p; }
template <class T> struct vector : std::vector<T> {
  using std::vector<T>::vector;
  vector() = default;
  template <class U> vector(const std::vector<U>& o) : std::vector<T>(o.begin(), o.end()) {}
  T* data() { return std::vector<T>::data(); }
};
template <class T> struct host_vector : vector<T> { using vector<T>::vector; };
template <class T> struct device_vector : vector<T> { using vector<T>::vector; };

template <class T> struct constant_iterator {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = const T*;
  using reference = T;
  T v;
  std::ptrdiff_t i = 0;
  T operator*() const { return v; }
  T operator[](std::ptrdiff_t) const { return v; }
  constant_iterator& operator++() { ++i; return *this; }
  constant_iterator operator++(int) { auto o = *this; ++i; return o; }
  constant_iterator& operator+=(std::ptrdiff_t n) { i += n; return *this; }
  friend constant_iterator operator+(constant_iterator a, std::ptrdiff_t n) { return a += n; }
  friend std::ptrdiff_t operator-(constant_iterator a, constant_iterator b) { return a.i - b.i; }
  friend bool operator==(constant_iterator a, constant_iterator b) { return a.i == b.i; }
};
template <class T> constant_iterator<T> make_constant_iterator(T v) { return {v}; }
template <class T> struct counting_iterator {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = T;
  using difference_type = std::ptrdiff_t;
  using pointer = const T*;
  using reference = T;
  T v{};
  counting_iterator() = default;
  explicit counting_iterator(T a) : v(a) {}
  T operator*() const { return v; }
  T operator[](std::ptrdiff_t n) const { return (T)(v + n); }
  counting_iterator& operator++() { ++v; return *this; }
  counting_iterator operator++(int) { auto o = *this; ++v; return o; }
  counting_iterator& operator+=(std::ptrdiff_t n) { v += n; return *this; }
  friend counting_iterator operator+(counting_iterator a, std::ptrdiff_t n) { return a += n; }
  friend std::ptrdiff_t operator-(counting_iterator a, counting_iterator b) { return a.v - b.v; }
  friend bool operator==(counting_iterator a, counting_iterator b) { return a.v == b.v; }
};
template <class T> counting_iterator<T> make_counting_iterator(T v) { return counting_iterator<T>(v); }
template <class F, class I> struct transform_iterator {
  using iterator_category = std::random_access_iterator_tag;
  using difference_type = std::ptrdiff_t;
  using value_type = std::decay_t<decltype(std::declval<F>()(*std::declval<I>()))>;
  using pointer = const value_type*;
  using reference = value_type;
  I i;
  F f;
  value_type operator*() const { return f(*i); }
  value_type operator[](std::ptrdiff_t n) const { return f(i[n]); }
  transform_iterator& operator++() { ++i; return *this; }
  transform_iterator operator++(int) { auto o = *this; ++i; return o; }
  transform_iterator& operator+=(std::ptrdiff_t n) { i += n; return *this; }
  friend transform_iterator operator+(transform_iterator a, std::ptrdiff_t n) { return a += n; }
  friend std::ptrdiff_t operator-(transform_iterator a, transform_iterator b) { return a.i - b.i; }
  friend bool operator==(const transform_iterator& a, const transform_iterator& b) { return a.i == b.i; }
};
template <class I, class F> transform_iterator<F, I> make_transform_iterator(I i, F f) { return {i, f}; }
template <class Tuple> struct zip_iterator;
template <class... I> struct zip_iterator<std::tuple<I...>> {
  using iterator_category = std::random_access_iterator_tag;
  using difference_type = std::ptrdiff_t;
  using value_type = std::tuple<typename std::iterator_traits<I>::value_type...>;
  using reference = std::tuple<typename std::iterator_traits<I>::reference...>;
  using pointer = const value_type*;
  std::tuple<I...> at;
  zip_iterator() = default;
  zip_iterator(std::tuple<I...> t) : at(t) {}
  reference operator*() const { return std::apply([](const I&... i) { return reference(*i...); }, at); }
  reference operator[](std::ptrdiff_t n) const { return *(*this + n); }
  zip_iterator& operator+=(std::ptrdiff_t n) { std::apply([n](I&... i) { ((i += n), ...); }, at); return *this; }
  zip_iterator& operator++() { return *this += 1; }
  zip_iterator operator++(int) { auto o = *this; *this += 1; return o; }
  const std::tuple<I...>& get_iterator_tuple() const { return at; }
  friend zip_iterator operator+(zip_iterator a, std::ptrdiff_t n) { return a += n; }
  friend std::ptrdiff_t operator-(const zip_iterator& a, const zip_iterator& b) { return std::get<0>(a.at) - std::get<0>(b.at); }
  friend bool operator==(const zip_iterator& a, const zip_iterator& b) { return std::get<0>(a.at) == std::get<0>(b.at); }
};
template <class... I> zip_iterator<std::tuple<I...>> make_zip_iterator(std::tuple<I...> t) { return {t}; }
template <class A, class B, class... I> zip_iterator<std::tuple<A, B, I...>> make_zip_iterator(A a, B b, I... i) { return {std::tuple<A, B, I...>(a, b, i...)}; }

/// Every algorithm with a policy in front, and without.
#define WAVESMITH_ALGORITHM(NAME) \
  template <class P, class... A, std::enable_if_t<is_policy<P>, int> = 0> auto NAME(const P&, A&&... a) { return by_definition::NAME(std::forward<A>(a)...); } \
  template <class F, class... A, std::enable_if_t<!is_policy<F>, int> = 0> auto NAME(F&& f, A&&... a) { return by_definition::NAME(std::forward<F>(f), std::forward<A>(a)...); }
namespace by_definition {
template <class I> using Value = typename std::iterator_traits<I>::value_type;
template <class I> std::vector<Value<I>> taken(I a, I b) { std::vector<Value<I>> v; for (; !(a == b); ++a) v.push_back(*a); return v; }
template <class K, class V, class F = std::less<>> void stable_sort_by_key(K a, K b, V v, F f = {}) {
  const std::ptrdiff_t n = b - a;
  std::vector<std::ptrdiff_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  const auto keys = taken(a, b);
  const auto values = taken(v, v + n);
  std::stable_sort(order.begin(), order.end(), [&](auto x, auto y) { return f(keys[x], keys[y]); });
  for (std::ptrdiff_t i = 0; i < n; i++) a[i] = keys[order[i]], v[i] = values[order[i]];
}
template <class K, class V, class... F> void sort_by_key(K a, K b, V v, F... f) { stable_sort_by_key(a, b, v, f...); }
template <class I, class... F> void sort(I a, I b, F... f) { std::stable_sort(a, b, f...); }
template <class I, class... F> void stable_sort(I a, I b, F... f) { std::stable_sort(a, b, f...); }
template <class I, class T, class F = std::plus<>> T reduce(I a, I b, T t, F f = {}) { for (; !(a == b); ++a) t = f(t, *a); return t; }
template <class I> Value<I> reduce(I a, I b) { return reduce(a, b, Value<I>{}); }
template <class I, class U, class T, class F> T transform_reduce(I a, I b, U u, T t, F f) { for (; !(a == b); ++a) t = f(t, u(*a)); return t; }
template <class I, class J> Value<I> inner_product(I a, I b, J c, Value<I> t) { for (; !(a == b); ++a, ++c) t = t + *a * *c; return t; }
template <class I, class J, class T, std::enable_if_t<!std::is_same<T, Value<I>>::value, int> = 0> T inner_product(I a, I b, J c, T t) { for (; !(a == b); ++a, ++c) t = t + *a * *c; return t; }
template <class I, class O, class F> O transform(I a, I b, O o, F f) { for (; !(a == b); ++a, ++o) *o = f(*a); return o; }
template <class I, class J, class O, class F> O transform(I a, I b, J c, O o, F f) { for (; !(a == b); ++a, ++c, ++o) *o = f(*a, *c); return o; }
template <class I, class F> I for_each(I a, I b, F f) { for (; !(a == b); ++a) { auto&& v = *a; f(v); } return a; }
template <class I, class T> void fill(I a, I b, const T& t) { for (; !(a == b); ++a) *a = t; }
template <class I, class N, class T> I fill_n(I a, N n, const T& t) { for (; n > 0; --n, ++a) *a = t; return a; }
template <class I> void sequence(I a, I b) { Value<I> v{}; for (; !(a == b); ++a) *a = v, v = v + 1; }
template <class I, class T> void sequence(I a, I b, T v) { for (; !(a == b); ++a) *a = v, v = v + 1; }
template <class I, class T> void sequence(I a, I b, T v, T step) { for (; !(a == b); ++a) *a = v, v = v + step; }
template <class I, class O> O copy(I a, I b, O o) { for (; !(a == b); ++a, ++o) *o = *a; return o; }
template <class I, class N, class O> O copy_n(I a, N n, O o) { for (; n > 0; --n, ++a, ++o) *o = *a; return o; }
template <class I, class O, class F> O copy_if(I a, I b, O o, F f) { for (; !(a == b); ++a) if (f(*a)) *o = *a, ++o; return o; }
template <class I, class T> std::ptrdiff_t count(I a, I b, const T& t) { std::ptrdiff_t n = 0; for (; !(a == b); ++a) n += *a == t; return n; }
template <class I, class F> std::ptrdiff_t count_if(I a, I b, F f) { std::ptrdiff_t n = 0; for (; !(a == b); ++a) n += !!f(*a); return n; }
template <class I, class O, class F = std::plus<>> O inclusive_scan(I a, I b, O o, F f = {}) {
  if (a == b) return o;
  Value<I> t = *a;
  for (*o++ = t, ++a; !(a == b); ++a) t = f(t, *a), *o++ = t;
  return o;
}
template <class I, class O, class T, class F = std::plus<>> O exclusive_scan(I a, I b, O o, T t, F f = {}) { for (; !(a == b); ++a) { T next = f(t, *a); *o++ = t; t = next; } return o; }
template <class I, class O> O exclusive_scan(I a, I b, O o) { return exclusive_scan(a, b, o, Value<I>{}); }
template <class I, class... F> I max_element(I a, I b, F... f) { return std::max_element(a, b, f...); }
template <class I, class... F> I min_element(I a, I b, F... f) { return std::min_element(a, b, f...); }
template <class I, class... F> I unique(I a, I b, F... f) { return std::unique(a, b, f...); }
template <class I, class F> I remove_if(I a, I b, F f) { return std::remove_if(a, b, f); }
template <class I, class J> bool equal(I a, I b, J c) { return std::equal(a, b, c); }
template <class K, class V, class KO, class VO> std::pair<KO, VO> reduce_by_key(K a, K b, V v, KO ko, VO vo) {
  while (!(a == b)) {
    Value<K> key = *a;
    Value<V> sum = *v;
    for (++a, ++v; !(a == b) && *a == key; ++a, ++v) sum = sum + *v;
    *ko++ = key, *vo++ = sum;
  }
  return {ko, vo};
}
template <class M, class I, class O> O gather(M a, M b, I in, O o) { for (; !(a == b); ++a, ++o) *o = in[*a]; return o; }
template <class I, class M, class O> void scatter(I a, I b, M m, O o) { for (; !(a == b); ++a, ++m) o[*m] = *a; }
}  // namespace by_definition
WAVESMITH_ALGORITHM(sort)
WAVESMITH_ALGORITHM(stable_sort)
WAVESMITH_ALGORITHM(sort_by_key)
WAVESMITH_ALGORITHM(stable_sort_by_key)
WAVESMITH_ALGORITHM(reduce)
WAVESMITH_ALGORITHM(transform_reduce)
WAVESMITH_ALGORITHM(inner_product)
WAVESMITH_ALGORITHM(transform)
WAVESMITH_ALGORITHM(for_each)
WAVESMITH_ALGORITHM(fill)
WAVESMITH_ALGORITHM(fill_n)
WAVESMITH_ALGORITHM(sequence)
WAVESMITH_ALGORITHM(copy)
WAVESMITH_ALGORITHM(copy_n)
WAVESMITH_ALGORITHM(copy_if)
WAVESMITH_ALGORITHM(count)
WAVESMITH_ALGORITHM(count_if)
WAVESMITH_ALGORITHM(inclusive_scan)
WAVESMITH_ALGORITHM(exclusive_scan)
WAVESMITH_ALGORITHM(max_element)
WAVESMITH_ALGORITHM(min_element)
WAVESMITH_ALGORITHM(unique)
WAVESMITH_ALGORITHM(remove_if)
WAVESMITH_ALGORITHM(equal)
WAVESMITH_ALGORITHM(reduce_by_key)
WAVESMITH_ALGORITHM(gather)
WAVESMITH_ALGORITHM(scatter)
}  // namespace thrust
