// The types that programs use without including anything: vectors, `dim3`, sizes.
#pragma once

typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __builtin_va_list va_list;
typedef long clock_t;
#ifndef NULL
#define NULL __null
#endif
#define va_start(list, last) __builtin_va_start(list, last)
#define va_end(list) __builtin_va_end(list)
#define va_arg(list, type) __builtin_va_arg(list, type)
#define va_copy(to, from) __builtin_va_copy(to, from)

#define PTXVM_VECTORS(base, type, align2, align4)                                                                     \
  struct base##1 { type x; };                                                                                         \
  struct __attribute__((aligned(align2))) base##2 { type x, y; };                                                     \
  struct base##3 { type x, y, z; };                                                                                   \
  struct __attribute__((aligned(align4))) base##4 { type x, y, z, w; };                                               \
  static __host__ __device__ inline __attribute__((always_inline)) base##1 make_##base##1(type x) {                   \
    base##1 v = {x};                                                                                                  \
    return v;                                                                                                         \
  }                                                                                                                   \
  static __host__ __device__ inline __attribute__((always_inline)) base##2 make_##base##2(type x, type y) {           \
    base##2 v = {x, y};                                                                                               \
    return v;                                                                                                         \
  }                                                                                                                   \
  static __host__ __device__ inline __attribute__((always_inline)) base##3 make_##base##3(type x, type y, type z) {   \
    base##3 v = {x, y, z};                                                                                            \
    return v;                                                                                                         \
  }                                                                                                                   \
  static __host__ __device__ inline __attribute__((always_inline)) base##4 make_##base##4(type x, type y, type z,     \
                                                                                          type w) {                   \
    base##4 v = {x, y, z, w};                                                                                         \
    return v;                                                                                                         \
  }
PTXVM_VECTORS(char, signed char, 2, 4)
PTXVM_VECTORS(uchar, unsigned char, 2, 4)
PTXVM_VECTORS(short, short, 4, 8)
PTXVM_VECTORS(ushort, unsigned short, 4, 8)
PTXVM_VECTORS(int, int, 8, 16)
PTXVM_VECTORS(uint, unsigned, 8, 16)
PTXVM_VECTORS(long, long, 16, 16)
PTXVM_VECTORS(ulong, unsigned long, 16, 16)
PTXVM_VECTORS(longlong, long long, 16, 16)
PTXVM_VECTORS(ulonglong, unsigned long long, 16, 16)
PTXVM_VECTORS(float, float, 8, 16)
PTXVM_VECTORS(double, double, 16, 16)
#undef PTXVM_VECTORS

// The vectors of four elements whose names state their alignment.
#define PTXVM_ALIGNED(base, type, align)                                                                              \
  struct __attribute__((aligned(align))) base##4_##align##a { type x, y, z, w; };                                     \
  static __host__ __device__ inline __attribute__((always_inline)) base##4_##align##a make_##base##4_##align##a(      \
      type x, type y, type z, type w) {                                                                               \
    base##4_##align##a v = {x, y, z, w};                                                                              \
    return v;                                                                                                         \
  }
#define PTXVM_ALIGNED_BOTH(base, type) PTXVM_ALIGNED(base, type, 16) PTXVM_ALIGNED(base, type, 32)
PTXVM_ALIGNED_BOTH(long, long)
PTXVM_ALIGNED_BOTH(ulong, unsigned long)
PTXVM_ALIGNED_BOTH(longlong, long long)
PTXVM_ALIGNED_BOTH(ulonglong, unsigned long long)
PTXVM_ALIGNED_BOTH(double, double)
#undef PTXVM_ALIGNED_BOTH
#undef PTXVM_ALIGNED

struct dim3 {
  unsigned x, y, z;
#if __cplusplus >= 201103L
  constexpr
#endif
  __host__ __device__ dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
  __host__ __device__ dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  __host__ __device__ operator uint3() const { return make_uint3(x, y, z); }
};

typedef unsigned long long cudaTextureObject_t;
typedef unsigned long long cudaSurfaceObject_t;
typedef struct CUstream_st *cudaStream_t;
typedef unsigned cuuint32_t;
typedef unsigned long cuuint64_t;
enum cudaRoundMode { cudaRoundNearest, cudaRoundZero, cudaRoundPosInf, cudaRoundMinInf };
