// Declarations that every program compiled at run time finds without including anything. They come before the
// program's text.
//
// The intrinsics are those of clang's own headers. They call the device library, which is ptxvm's
// (arithmetic.h and the headers that it includes).
#pragma once
#pragma clang system_header

#if __clang_major__ < 19
#error "ptxvm's NVRTC needs clang 19 or later; PTXVM_CLANG names the compiler"
#endif

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __managed__ __attribute__((managed))
#define __grid_constant__ __attribute__((grid_constant))
#define __forceinline__ __inline__ __attribute__((always_inline))
#ifndef __noinline__
#define __noinline__ __attribute__((noinline))
#endif
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __maxnreg__(count)
#define __align__(count) __attribute__((aligned(count)))
#define __builtin_align__(count) __attribute__((aligned(count)))
#define __device_builtin__
#define __cudart_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __annotate__(text)
#define __location__(text) __attribute__((text))
#define __specialization_static static
#define CUDARTAPI
#define CUDARTAPI_CDECL
#define __nv_pure__ __attribute__((pure))
#define __NV_SILENCE_DEPRECATION_BEGIN
#define __NV_SILENCE_DEPRECATION_END
#define __NV_SILENCE_HOST_DEPRECATION_BEGIN
#define __NV_SILENCE_HOST_DEPRECATION_END
#define __NV_BUILTIN_INITIALIZER_LIST 1
#define __NV_BUILTIN_MOVE_FORWARD 1
// The compilation's options under the names that headers of CUDA use.
#define __CUDA_FTZ PTXVM_FTZ
#define __CUDA_PREC_DIV PTXVM_PREC_DIV
#define __CUDA_PREC_SQRT PTXVM_PREC_SQRT

// cuda_fp16.h omits the bodies of its functions, unless these macros ask for them.
#define __FORCE_INCLUDE_CUDA_FP16_HPP_FROM_FP16_H__
#define __FORCE_INCLUDE_CUDA_BF16_HPP_FROM_BF16_H__

// Headers of CUDA whose contents are already declared here.
#define __HOST_DEFINES_H__
#define __HOST_CONFIG_H__
#define __VECTOR_TYPES_H__
#define __VECTOR_FUNCTIONS_H__
#define __VECTOR_FUNCTIONS_HPP__
#define __CUDA_DEVICE_RUNTIME_API_H__
#define __DEVICE_FUNCTIONS_H__
#define __DEVICE_FUNCTIONS_HPP__
#define __DEVICE_DOUBLE_FUNCTIONS_H__
#define __DEVICE_DOUBLE_FUNCTIONS_HPP__
#define __DEVICE_ATOMIC_FUNCTIONS_H__
#define __DEVICE_ATOMIC_FUNCTIONS_HPP__
#define __DEVICE_LAUNCH_PARAMETERS_H__
#define __COMMON_FUNCTIONS_H__
#define __MATH_FUNCTIONS_H__
#define __MATH_FUNCTIONS_HPP__
#define __SM_20_ATOMIC_FUNCTIONS_H__
#define __SM_20_INTRINSICS_H__
#define __SM_30_INTRINSICS_H__
#define __SM_32_ATOMIC_FUNCTIONS_H__
#define __SM_35_ATOMIC_FUNCTIONS_H__
#define __SM_60_ATOMIC_FUNCTIONS_H__
#define __SM_61_INTRINSICS_H__
#define __SM_70_RT_H__
#define __SM_70_RT_HPP__
#define __SM_80_RT_H__
#define __SM_90_RT_H__
#define __CUDA_RUNTIME_H__
#define __DEVICE_TYPES_H__

#include "types.h"

// Clang's headers ask for the version of CUDA.
#define CUDA_VERSION 12000
#include <__clang_cuda_builtin_vars.h>
__device__ inline __cuda_builtin_threadIdx_t::operator dim3() const { return dim3(x, y, z); }
__device__ inline __cuda_builtin_threadIdx_t::operator uint3() const { return {x, y, z}; }
__device__ inline __cuda_builtin_blockIdx_t::operator dim3() const { return dim3(x, y, z); }
__device__ inline __cuda_builtin_blockIdx_t::operator uint3() const { return {x, y, z}; }
__device__ inline __cuda_builtin_blockDim_t::operator dim3() const { return dim3(x, y, z); }
__device__ inline __cuda_builtin_blockDim_t::operator uint3() const { return {x, y, z}; }
__device__ inline __cuda_builtin_gridDim_t::operator dim3() const { return dim3(x, y, z); }
__device__ inline __cuda_builtin_gridDim_t::operator uint3() const { return {x, y, z}; }

// The definitions here replace the declarations in this header of clang.
#define __CLANG_CUDA_LIBDEVICE_DECLARES_H__
#include "arithmetic.h"
#include "addresses.h"

extern "C" {
__device__ int vprintf(const char *, const char *);
__device__ int printf(const char *, ...);
__device__ void free(void *) __attribute__((nothrow));
__device__ void *malloc(size_t) __attribute__((nothrow)) __attribute__((malloc));
__device__ void __assertfail(const char *message, const char *file, unsigned line, const char *function, size_t size);
}

#ifndef INT_MAX
#define INT_MAX __INT_MAX__
#define INT_MIN (-__INT_MAX__ - 1)
#define PTXVM_LIMITS
#endif
#define HUGE_VAL __builtin_huge_val()
#define HUGE_VALF __builtin_huge_valf()
#include <__clang_cuda_device_functions.h>
#include <__clang_cuda_math.h>
// It includes crt/sm_70_rt.hpp; CUDA's copy of that file causes warnings.
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-W#warnings"
// Clang 19 exchanges mask and value in these; overloads.h defines them.
#define __reduce_add_sync __clang_reduce_add_sync
#define __reduce_min_sync __clang_reduce_min_sync
#define __reduce_max_sync __clang_reduce_max_sync
#define __reduce_and_sync __clang_reduce_and_sync
#define __reduce_or_sync __clang_reduce_or_sync
#define __reduce_xor_sync __clang_reduce_xor_sync
#include <__clang_cuda_intrinsics.h>
#undef __reduce_add_sync
#undef __reduce_min_sync
#undef __reduce_max_sync
#undef __reduce_and_sync
#undef __reduce_or_sync
#undef __reduce_xor_sync
#pragma clang diagnostic pop
#ifdef PTXVM_LIMITS
#undef INT_MAX
#undef INT_MIN
#undef PTXVM_LIMITS
#endif
#undef HUGE_VAL
#undef HUGE_VALF
#undef CUDA_VERSION
#include "overloads.h"
#include "std.h"

#ifdef NDEBUG
#define assert(condition) ((void)0)
#else
#define assert(condition)                                                                                             \
  ((condition) ? (void)0 : __assertfail(#condition, __FILE__, __LINE__, __PRETTY_FUNCTION__, sizeof(char)))
#endif

#undef PTXVM_OVERLOAD
#undef PTXVM_FN
#undef PTXVM_NV
#undef PTXVM_NV_CALL

// Headers ask for the compiler. As NVRTC they find the declarations here; as clang they would include the
// host's headers.
#define __CUDACC__ 1
#define __CUDACC_RTC__ 1
#undef __clang__
#undef __clang_major__
#undef __clang_minor__
#undef __GNUC__
#undef __GNUC_MINOR__
#undef __GNUC_PATCHLEVEL__
#undef __GNUG__
#undef __llvm__
#define CUDART_VERSION (__CUDACC_VER_MAJOR__ * 1000 + __CUDACC_VER_MINOR__ * 10)
// Some headers of CUDA use these headers without including them.
#if __has_include(<nv/target>)
#include <nv/target>
#elif __has_include(<cccl/nv/target>)
#include <cccl/nv/target>
#endif
#if __has_include(<driver_types.h>)
#include <driver_types.h>
#endif
