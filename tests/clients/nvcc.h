// What nvcc declares on the host and clang does not: the smaller and the larger of two numbers. For other people's programs.
#if defined(__CUDA__) && defined(__cplusplus)
#include <type_traits>

template <typename A, typename B>
using common_number = typename std::enable_if<
    std::is_arithmetic<A>::value && std::is_arithmetic<B>::value && !std::is_same<A, B>::value,
    typename std::common_type<A, B>::type>::type;

template <typename A, typename B>
__host__ inline common_number<A, B> min(A a, B b) {
  return common_number<A, B>(a) < common_number<A, B>(b) ? a : b;
}

template <typename A, typename B>
__host__ inline common_number<A, B> max(A a, B b) {
  return common_number<A, B>(a) < common_number<A, B>(b) ? b : a;
}

// Of one type: `None` is empty, so that any other function with that name comes first.
template <typename T, typename... None>
__host__ inline typename std::enable_if<std::is_arithmetic<T>::value, T>::type min(T a, T b) {
  return b < a ? b : a;
}

template <typename T, typename... None>
__host__ inline typename std::enable_if<std::is_arithmetic<T>::value, T>::type max(T a, T b) {
  return a < b ? b : a;
}
#endif
