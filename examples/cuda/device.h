// What device code needs so that clang compiles it without NVIDIA's headers: the CUDA keywords, the built-in variables, and printf.
// With CUDA's headers installed, leave this file and clang's options -nocudainc and -nocudalib out.
#pragma once

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
};
#include <__clang_cuda_builtin_vars.h> // threadIdx, blockIdx, blockDim, gridDim

extern "C" __device__ int printf(const char *format, ...);

__device__ inline int atomicAdd(int *address, int value) { return __nvvm_atom_add_gen_i(address, value); }
