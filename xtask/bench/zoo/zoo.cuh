// What kernels of the zoo need beyond the prelude of the fixtures: the fast intrinsics of CUDA.
#pragma once
#include "prelude.cuh"

__device__ __forceinline__ float __expf(float x) { return exp2_approx(x * 1.4426950408889634f); }
__device__ __forceinline__ float __logf(float x) { return log2_approx(x) * 0.6931471805599453f; }
__device__ __forceinline__ float __sinf(float x) { return __nvvm_sin_approx_f(x); }
__device__ __forceinline__ float __cosf(float x) { return __nvvm_cos_approx_f(x); }
__device__ __forceinline__ float __fdividef(float a, float b) { return __nvvm_div_approx_f(a, b); }
__device__ __forceinline__ float sigmoid(float x) { return __fdividef(1.0f, 1.0f + __expf(-x)); }
__device__ __forceinline__ float tanh_fast(float x) { return 2.0f * sigmoid(2.0f * x) - 1.0f; }
__device__ __forceinline__ int __ffs(unsigned a) { return __builtin_ffs((int)a); }
__device__ __forceinline__ int __clz(unsigned a) { return a ? __builtin_clz(a) : 32; }
__device__ __forceinline__ int clamp(int a, int low, int high) { return min(max(a, low), high); }
