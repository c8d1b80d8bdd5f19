// Functions that C++ overloads: mathematical ones by type, and atomics, votes and dot products.
#pragma once

#define PTXVM_OVERLOAD static __device__ inline __attribute__((always_inline))

PTXVM_OVERLOAD long long abs(long long x) { return ::llabs(x); }
PTXVM_OVERLOAD long abs(long x) { return ::labs(x); }
PTXVM_OVERLOAD float abs(float x) { return ::fabsf(x); }
PTXVM_OVERLOAD double abs(double x) { return ::fabs(x); }

// A function that has a variant with the suffix `f`: float calls that variant, and integers are converted to
// double.
#define PTXVM_MATH_1(name)                                                                                            \
  PTXVM_OVERLOAD float name(float x) { return ::name##f(x); }                                                         \
  PTXVM_OVERLOAD double name(int x) { return ::name((double)x); }                                                     \
  PTXVM_OVERLOAD double name(unsigned x) { return ::name((double)x); }                                                \
  PTXVM_OVERLOAD double name(long x) { return ::name((double)x); }                                                    \
  PTXVM_OVERLOAD double name(unsigned long x) { return ::name((double)x); }                                           \
  PTXVM_OVERLOAD double name(long long x) { return ::name((double)x); }                                               \
  PTXVM_OVERLOAD double name(unsigned long long x) { return ::name((double)x); }
#define PTXVM_LIST_1(m)                                                                                               \
  m(acos) m(acosh) m(asin) m(asinh) m(atan) m(atanh) m(cbrt) m(ceil) m(cos) m(cosh) m(cospi) m(erf) m(erfc)           \
  m(erfcinv) m(erfcx) m(erfinv) m(exp) m(exp10) m(exp2) m(expm1) m(fabs) m(floor) m(lgamma) m(log) m(log10) m(log1p)  \
  m(log2) m(logb) m(nearbyint) m(normcdf) m(normcdfinv) m(rcbrt) m(rint) m(round) m(rsqrt) m(sin) m(sinh) m(sinpi)    \
  m(sqrt) m(tan) m(tanh) m(tgamma) m(trunc)
PTXVM_LIST_1(PTXVM_MATH_1)
#undef PTXVM_MATH_1

namespace __ptxvm {
template <bool, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { typedef T type; };
template <class T> struct is_number { static const bool value = false; };
#define PTXVM_NUMBER(type) template <> struct is_number<type> { static const bool value = true; };
PTXVM_NUMBER(bool)
PTXVM_NUMBER(char)
PTXVM_NUMBER(signed char)
PTXVM_NUMBER(unsigned char)
PTXVM_NUMBER(short)
PTXVM_NUMBER(unsigned short)
PTXVM_NUMBER(int)
PTXVM_NUMBER(unsigned)
PTXVM_NUMBER(long)
PTXVM_NUMBER(unsigned long)
PTXVM_NUMBER(long long)
PTXVM_NUMBER(unsigned long long)
PTXVM_NUMBER(float)
PTXVM_NUMBER(double)
#undef PTXVM_NUMBER
} // namespace __ptxvm

// Functions of two arguments: two floats call the variant with `f`; other types are converted to double.
#define PTXVM_MATH_2(name)                                                                                            \
  PTXVM_OVERLOAD float name(float x, float y) { return ::name##f(x, y); }                                             \
  template <class A, class B>                                                                                         \
  PTXVM_OVERLOAD typename __ptxvm::enable_if<__ptxvm::is_number<A>::value && __ptxvm::is_number<B>::value,            \
                                             double>::type                                                            \
  name(A x, B y) {                                                                                                    \
    return ::name((double)x, (double)y);                                                                              \
  }
#define PTXVM_LIST_2(m)                                                                                               \
  m(atan2) m(copysign) m(fdim) m(fmax) m(fmin) m(fmod) m(hypot) m(nextafter) m(remainder) m(rhypot)
PTXVM_LIST_2(PTXVM_MATH_2)
#undef PTXVM_MATH_2
PTXVM_OVERLOAD float pow(float x, float y) { return ::powf(x, y); }
PTXVM_OVERLOAD float pow(float x, int y) { return ::powif(x, y); }
PTXVM_OVERLOAD double pow(double x, int y) { return ::powi(x, y); }
template <class A, class B>
PTXVM_OVERLOAD typename __ptxvm::enable_if<__ptxvm::is_number<A>::value && __ptxvm::is_number<B>::value, double>::type
pow(A x, B y) {
  return ::pow((double)x, (double)y);
}
PTXVM_OVERLOAD float fma(float x, float y, float z) { return ::fmaf(x, y, z); }
PTXVM_OVERLOAD float frexp(float x, int *e) { return ::frexpf(x, e); }
PTXVM_OVERLOAD float ldexp(float x, int e) { return ::ldexpf(x, e); }
PTXVM_OVERLOAD float scalbn(float x, int e) { return ::scalbnf(x, e); }
PTXVM_OVERLOAD float scalbln(float x, long e) { return ::scalblnf(x, e); }
PTXVM_OVERLOAD float modf(float x, float *whole) { return ::modff(x, whole); }
PTXVM_OVERLOAD float remquo(float x, float y, int *q) { return ::remquof(x, y, q); }
PTXVM_OVERLOAD void sincos(float x, float *s, float *c) { ::sincosf(x, s, c); }
PTXVM_OVERLOAD void sincospi(float x, float *s, float *c) { ::sincospif(x, s, c); }
PTXVM_OVERLOAD int ilogb(float x) { return ::ilogbf(x); }
PTXVM_OVERLOAD long lrint(float x) { return ::lrintf(x); }
PTXVM_OVERLOAD long lround(float x) { return ::lroundf(x); }
PTXVM_OVERLOAD long long llrint(float x) { return ::llrintf(x); }
PTXVM_OVERLOAD long long llround(float x) { return ::llroundf(x); }
PTXVM_OVERLOAD float fdivide(float x, float y) { return ::fdividef(x, y); }
PTXVM_OVERLOAD double nan(const char *) { return __builtin_nan(""); }
PTXVM_OVERLOAD float nanf(const char *) { return __builtin_nanf(""); }

#define PTXVM_TEST(name, type, value)                                                                                 \
  PTXVM_OVERLOAD bool name(type x) { return value; }
#define PTXVM_TESTS(name, builtin)                                                                                    \
  PTXVM_TEST(name, float, builtin(x))                                                                                 \
  PTXVM_TEST(name, double, builtin(x))                                                                                \
  template <class A>                                                                                                  \
  PTXVM_OVERLOAD typename __ptxvm::enable_if<__ptxvm::is_number<A>::value, bool>::type name(A x) {                    \
    return builtin((double)x);                                                                                        \
  }
PTXVM_TESTS(isnan, __builtin_isnan)
PTXVM_TESTS(isinf, __builtin_isinf)
PTXVM_TESTS(isfinite, __builtin_isfinite)
PTXVM_TESTS(isnormal, __builtin_isnormal)
PTXVM_TESTS(signbit, __builtin_signbit)
#undef PTXVM_TESTS
#undef PTXVM_TEST

// Minimum and maximum in the common type of both arguments.
#define PTXVM_EXTREMES(type)                                                                                          \
  PTXVM_OVERLOAD type min(type x, type y) { return x < y ? x : y; }                                                   \
  PTXVM_OVERLOAD type max(type x, type y) { return x > y ? x : y; }
#define PTXVM_MIXED(type, a, b)                                                                                       \
  PTXVM_OVERLOAD type min(a x, b y) { return min((type)x, (type)y); }                                                 \
  PTXVM_OVERLOAD type max(a x, b y) { return max((type)x, (type)y); }
PTXVM_EXTREMES(unsigned)
PTXVM_MIXED(unsigned, int, unsigned)
PTXVM_MIXED(unsigned, unsigned, int)
PTXVM_EXTREMES(long)
PTXVM_EXTREMES(unsigned long)
PTXVM_MIXED(unsigned long, long, unsigned long)
PTXVM_MIXED(unsigned long, unsigned long, long)
PTXVM_EXTREMES(long long)
PTXVM_EXTREMES(unsigned long long)
PTXVM_MIXED(unsigned long long, long long, unsigned long long)
PTXVM_MIXED(unsigned long long, unsigned long long, long long)
PTXVM_OVERLOAD float min(float x, float y) { return ::fminf(x, y); }
PTXVM_OVERLOAD float max(float x, float y) { return ::fmaxf(x, y); }
PTXVM_OVERLOAD double min(double x, double y) { return ::fmin(x, y); }
PTXVM_OVERLOAD double max(double x, double y) { return ::fmax(x, y); }
PTXVM_MIXED(double, float, double)
PTXVM_MIXED(double, double, float)
#undef PTXVM_MIXED
#undef PTXVM_EXTREMES

// Atomics with the scope of the device, of a CTA, and of the system.
#define PTXVM_ATOMIC(name, suffix, type, of)                                                                          \
  PTXVM_OVERLOAD type atomic##name##suffix(type *p, type v) { return of(p, v); }
#define PTXVM_SCOPES(m, name, type, of)                                                                               \
  m(name, , type, of) m(name, _block, type, of##_block) m(name, _system, type, of##_system)
PTXVM_SCOPES(PTXVM_ATOMIC, Add, int, __iAtomicAdd)
PTXVM_SCOPES(PTXVM_ATOMIC, Add, unsigned, __uAtomicAdd)
PTXVM_SCOPES(PTXVM_ATOMIC, Add, unsigned long long, __ullAtomicAdd)
PTXVM_SCOPES(PTXVM_ATOMIC, Add, float, __fAtomicAdd)
#if __CUDA_ARCH__ >= 600
PTXVM_SCOPES(PTXVM_ATOMIC, Add, double, __dAtomicAdd)
#endif
PTXVM_SCOPES(PTXVM_ATOMIC, Exch, int, __iAtomicExch)
PTXVM_SCOPES(PTXVM_ATOMIC, Exch, unsigned, __uAtomicExch)
PTXVM_SCOPES(PTXVM_ATOMIC, Exch, unsigned long long, __ullAtomicExch)
PTXVM_SCOPES(PTXVM_ATOMIC, Exch, float, __fAtomicExch)
PTXVM_SCOPES(PTXVM_ATOMIC, Min, int, __iAtomicMin)
PTXVM_SCOPES(PTXVM_ATOMIC, Min, unsigned, __uAtomicMin)
PTXVM_SCOPES(PTXVM_ATOMIC, Min, long long, __illAtomicMin)
PTXVM_SCOPES(PTXVM_ATOMIC, Min, unsigned long long, __ullAtomicMin)
PTXVM_SCOPES(PTXVM_ATOMIC, Max, int, __iAtomicMax)
PTXVM_SCOPES(PTXVM_ATOMIC, Max, unsigned, __uAtomicMax)
PTXVM_SCOPES(PTXVM_ATOMIC, Max, long long, __illAtomicMax)
PTXVM_SCOPES(PTXVM_ATOMIC, Max, unsigned long long, __ullAtomicMax)
PTXVM_SCOPES(PTXVM_ATOMIC, Inc, unsigned, __uAtomicInc)
PTXVM_SCOPES(PTXVM_ATOMIC, Dec, unsigned, __uAtomicDec)
PTXVM_SCOPES(PTXVM_ATOMIC, And, int, __iAtomicAnd)
PTXVM_SCOPES(PTXVM_ATOMIC, And, unsigned, __uAtomicAnd)
PTXVM_SCOPES(PTXVM_ATOMIC, And, unsigned long long, __ullAtomicAnd)
PTXVM_SCOPES(PTXVM_ATOMIC, Or, int, __iAtomicOr)
PTXVM_SCOPES(PTXVM_ATOMIC, Or, unsigned, __uAtomicOr)
PTXVM_SCOPES(PTXVM_ATOMIC, Or, unsigned long long, __ullAtomicOr)
PTXVM_SCOPES(PTXVM_ATOMIC, Xor, int, __iAtomicXor)
PTXVM_SCOPES(PTXVM_ATOMIC, Xor, unsigned, __uAtomicXor)
PTXVM_SCOPES(PTXVM_ATOMIC, Xor, unsigned long long, __ullAtomicXor)
// Subtraction is addition of the negated value.
#define PTXVM_SUB(name, suffix, type, of)                                                                             \
  PTXVM_OVERLOAD type atomicSub##suffix(type *p, type v) { return of(p, (type)(0u - (unsigned)v)); }
PTXVM_SCOPES(PTXVM_SUB, Sub, int, __iAtomicAdd)
PTXVM_SCOPES(PTXVM_SUB, Sub, unsigned, __uAtomicAdd)
#undef PTXVM_SUB
#define PTXVM_CAS(name, suffix, type, of)                                                                             \
  PTXVM_OVERLOAD type atomicCAS##suffix(type *p, type compare, type v) { return of(p, compare, v); }
PTXVM_SCOPES(PTXVM_CAS, CAS, int, __iAtomicCAS)
PTXVM_SCOPES(PTXVM_CAS, CAS, unsigned, __uAtomicCAS)
PTXVM_SCOPES(PTXVM_CAS, CAS, unsigned long long, __ullAtomicCAS)
#undef PTXVM_CAS
#if __CUDA_ARCH__ >= 700
// Headers of clang before 20 have no function for 16 bits.
#define PTXVM_CAS16(suffix, scope)                                                                                    \
  PTXVM_OVERLOAD unsigned short atomicCAS##suffix(unsigned short *p, unsigned short compare, unsigned short v) {      \
    unsigned short old;                                                                                               \
    asm volatile("atom" scope ".cas.b16 %0, [%1], %2, %3;" : "=h"(old) : "l"(p), "h"(compare), "h"(v) : "memory");    \
    return old;                                                                                                       \
  }
PTXVM_CAS16(, "")
PTXVM_CAS16(_block, ".cta")
PTXVM_CAS16(_system, ".sys")
#undef PTXVM_CAS16
#endif
#undef PTXVM_SCOPES
#undef PTXVM_ATOMIC

// The mask of the lanes that have the same value.
#if __CUDA_ARCH__ >= 700
#define PTXVM_MATCH(type, bits, as)                                                                                   \
  PTXVM_OVERLOAD unsigned __match_any_sync(unsigned mask, type v) {                                                   \
    return __match##bits##_any_sync(mask, __builtin_bit_cast(as, v));                                                 \
  }                                                                                                                   \
  PTXVM_OVERLOAD unsigned __match_all_sync(unsigned mask, type v, int *is_same) {                                     \
    return __match##bits##_all_sync(mask, __builtin_bit_cast(as, v), is_same);                                        \
  }
PTXVM_MATCH(int, 32, unsigned)
PTXVM_MATCH(unsigned, 32, unsigned)
PTXVM_MATCH(float, 32, unsigned)
PTXVM_MATCH(long, 64, unsigned long long)
PTXVM_MATCH(unsigned long, 64, unsigned long long)
PTXVM_MATCH(long long, 64, unsigned long long)
PTXVM_MATCH(unsigned long long, 64, unsigned long long)
PTXVM_MATCH(double, 64, unsigned long long)
#undef PTXVM_MATCH
PTXVM_OVERLOAD void __nanosleep(unsigned time) { __nvvm_nanosleep(time); }
#endif

// Reductions over the lanes of a mask.
#if __CUDA_ARCH__ >= 800
#define PTXVM_REDUCE(name, type, builtin)                                                                             \
  PTXVM_OVERLOAD type __reduce_##name##_sync(unsigned mask, type v) { return builtin(v, mask); }
PTXVM_REDUCE(add, unsigned, __nvvm_redux_sync_add)
PTXVM_REDUCE(add, int, __nvvm_redux_sync_add)
PTXVM_REDUCE(min, unsigned, __nvvm_redux_sync_umin)
PTXVM_REDUCE(min, int, __nvvm_redux_sync_min)
PTXVM_REDUCE(max, unsigned, __nvvm_redux_sync_umax)
PTXVM_REDUCE(max, int, __nvvm_redux_sync_max)
PTXVM_REDUCE(and, unsigned, __nvvm_redux_sync_and)
PTXVM_REDUCE(or, unsigned, __nvvm_redux_sync_or)
PTXVM_REDUCE(xor, unsigned, __nvvm_redux_sync_xor)
#undef PTXVM_REDUCE
#endif

#if __CUDA_ARCH__ >= 610
#define PTXVM_DOT(name, instruction, result, a, b)                                                                    \
  PTXVM_OVERLOAD result name(a x, b y, result z) {                                                                    \
    result d;                                                                                                         \
    asm(instruction " %0, %1, %2, %3;" : "=r"(d) : "r"(x), "r"(y), "r"(z));                                           \
    return d;                                                                                                         \
  }
PTXVM_DOT(__dp4a, "dp4a.s32.s32", int, int, int)
PTXVM_DOT(__dp4a, "dp4a.u32.u32", unsigned, unsigned, unsigned)
PTXVM_DOT(__dp2a_lo, "dp2a.lo.s32.s32", int, int, int)
PTXVM_DOT(__dp2a_lo, "dp2a.lo.u32.u32", unsigned, unsigned, unsigned)
PTXVM_DOT(__dp2a_hi, "dp2a.hi.s32.s32", int, int, int)
PTXVM_DOT(__dp2a_hi, "dp2a.hi.u32.u32", unsigned, unsigned, unsigned)
#undef PTXVM_DOT
PTXVM_OVERLOAD int __dp4a(char4 x, char4 y, int z) {
  return __dp4a(__builtin_bit_cast(int, x), __builtin_bit_cast(int, y), z);
}
PTXVM_OVERLOAD unsigned __dp4a(uchar4 x, uchar4 y, unsigned z) {
  return __dp4a(__builtin_bit_cast(unsigned, x), __builtin_bit_cast(unsigned, y), z);
}
#endif

PTXVM_OVERLOAD void *memmove(void *to, const void *from, size_t bytes) { return __builtin_memmove(to, from, bytes); }
