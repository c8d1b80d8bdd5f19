// Tests for the state space of a generic address, and conversions of addresses. Clang's headers call some of
// them.
#pragma once

#define PTXVM_SPACE(name, upper, builtin, number)                                                                     \
  static __device__ inline __attribute__((always_inline)) unsigned __is##upper(const void *p) { return builtin(p); } \
  static __device__ inline __attribute__((always_inline)) size_t __cvta_generic_to_##name(const void *p) {            \
    return (size_t)(const void __attribute__((address_space(number))) *)p;                                            \
  }                                                                                                                   \
  static __device__ inline __attribute__((always_inline)) void *__cvta_##name##_to_generic(size_t p) {                \
    return (void *)(void __attribute__((address_space(number))) *)p;                                                  \
  }
PTXVM_SPACE(global, Global, __nvvm_isspacep_global, 1)
PTXVM_SPACE(shared, Shared, __nvvm_isspacep_shared, 3)
PTXVM_SPACE(constant, Constant, __nvvm_isspacep_const, 4)
PTXVM_SPACE(local, Local, __nvvm_isspacep_local, 5)
#undef PTXVM_SPACE

static __device__ inline __attribute__((always_inline)) unsigned __isGridConstant(const void *p) {
  unsigned is_parameter;
  asm("{ .reg .pred p; isspacep.param p, %1; selp.u32 %0, 1, 0, p; }" : "=r"(is_parameter) : "l"(p));
  return is_parameter;
}
