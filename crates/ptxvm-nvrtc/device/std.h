// The few parts of C++'s standard library that programs use without including anything.
#pragma once

namespace std {
template <class T> struct __ptxvm_referred { typedef T type; };
template <class T> struct __ptxvm_referred<T &> { typedef T type; };
template <class T> struct __ptxvm_referred<T &&> { typedef T type; };
template <class T>
__host__ __device__ constexpr typename __ptxvm_referred<T>::type &&move(T &&x) noexcept {
  return static_cast<typename __ptxvm_referred<T>::type &&>(x);
}
template <class T> __host__ __device__ constexpr T &&forward(typename __ptxvm_referred<T>::type &x) noexcept {
  return static_cast<T &&>(x);
}
template <class T> __host__ __device__ constexpr T &&forward(typename __ptxvm_referred<T>::type &&x) noexcept {
  return static_cast<T &&>(x);
}

// The compiler constructs values of this type.
template <class T> class initializer_list {
  const T *first;
  size_t count;
  __host__ __device__ constexpr initializer_list(const T *first, size_t count) : first(first), count(count) {}

public:
  typedef T value_type;
  typedef const T &reference;
  typedef const T &const_reference;
  typedef size_t size_type;
  typedef const T *iterator;
  typedef const T *const_iterator;
  __host__ __device__ constexpr initializer_list() noexcept : first(nullptr), count(0) {}
  __host__ __device__ constexpr size_t size() const noexcept { return count; }
  __host__ __device__ constexpr const T *begin() const noexcept { return first; }
  __host__ __device__ constexpr const T *end() const noexcept { return first + count; }
};
template <class T> __host__ __device__ constexpr const T *begin(initializer_list<T> list) noexcept { return list.begin(); }
template <class T> __host__ __device__ constexpr const T *end(initializer_list<T> list) noexcept { return list.end(); }
} // namespace std
