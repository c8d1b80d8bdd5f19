// Arithmetic, conversions and operations on bits, under the names of the device library that clang's headers call (`__nv_fadd_rz`, ...).
#pragma once

#include "single.h"

// Defines a function of one argument by an expression, usually one of clang's builtins.
#define PTXVM_1(result, name, a, value)                                                                               \
  PTXVM_NV result __nv_##name(a x) { return value; }
#define PTXVM_2(result, name, a, b, value)                                                                            \
  PTXVM_NV result __nv_##name(a x, b y) { return value; }
#define PTXVM_3(result, name, a, b, c, value)                                                                         \
  PTXVM_NV result __nv_##name(a x, b y, c z) { return value; }

// The builtins name rounding down and up by `rm` and `rp`.
#define PTXVM_ROUNDED(r, b)                                                                                            \
  PTXVM_2(float, fadd_##r, float, float, __nvvm_add_##b##_f(x, y))                                                    \
  PTXVM_2(float, fsub_##r, float, float, __nvvm_add_##b##_f(x, -y))                                                   \
  PTXVM_2(float, fmul_##r, float, float, __nvvm_mul_##b##_f(x, y))                                                    \
  PTXVM_2(float, fdiv_##r, float, float, __nvvm_div_##b##_f(x, y))                                                    \
  PTXVM_1(float, frcp_##r, float, __nvvm_rcp_##b##_f(x))                                                              \
  PTXVM_1(float, fsqrt_##r, float, __nvvm_sqrt_##b##_f(x))                                                            \
  PTXVM_3(float, fmaf_##r, float, float, float, __nvvm_fma_##b##_f(x, y, z))                                          \
  PTXVM_3(float, fmaf_ieee_##r, float, float, float, __nvvm_fma_##b##_f(x, y, z))                                     \
  PTXVM_2(double, dadd_##r, double, double, __nvvm_add_##b##_d(x, y))                                                 \
  PTXVM_2(double, dsub_##r, double, double, __nvvm_add_##b##_d(x, -y))                                                \
  PTXVM_2(double, dmul_##r, double, double, __nvvm_mul_##b##_d(x, y))                                                 \
  PTXVM_2(double, ddiv_##r, double, double, __nvvm_div_##b##_d(x, y))                                                 \
  PTXVM_1(double, drcp_##r, double, __nvvm_rcp_##b##_d(x))                                                            \
  PTXVM_1(double, dsqrt_##r, double, __nvvm_sqrt_##b##_d(x))                                                          \
  PTXVM_3(double, fma_##r, double, double, double, __nvvm_fma_##b##_d(x, y, z))                                       \
  PTXVM_1(float, double2float_##r, double, __nvvm_d2f_##b(x))                                                         \
  PTXVM_1(int, double2int_##r, double, __nvvm_d2i_##b(x))                                                             \
  PTXVM_1(unsigned, double2uint_##r, double, __nvvm_d2ui_##b(x))                                                      \
  PTXVM_1(long long, double2ll_##r, double, __nvvm_d2ll_##b(x))                                                       \
  PTXVM_1(unsigned long long, double2ull_##r, double, __nvvm_d2ull_##b(x))                                            \
  PTXVM_1(int, float2int_##r, float, __nvvm_f2i_##b(x))                                                               \
  PTXVM_1(unsigned, float2uint_##r, float, __nvvm_f2ui_##b(x))                                                        \
  PTXVM_1(long long, float2ll_##r, float, __nvvm_f2ll_##b(x))                                                         \
  PTXVM_1(unsigned long long, float2ull_##r, float, __nvvm_f2ull_##b(x))                                              \
  PTXVM_1(float, int2float_##r, int, __nvvm_i2f_##b(x))                                                               \
  PTXVM_1(float, uint2float_##r, unsigned, __nvvm_ui2f_##b(x))                                                        \
  PTXVM_1(float, ll2float_##r, long long, __nvvm_ll2f_##b(x))                                                         \
  PTXVM_1(float, ull2float_##r, unsigned long long, __nvvm_ull2f_##b(x))                                              \
  PTXVM_1(double, ll2double_##r, long long, __nvvm_ll2d_##b(x))                                                       \
  PTXVM_1(double, ull2double_##r, unsigned long long, __nvvm_ull2d_##b(x))
PTXVM_ROUNDED(rn, rn)
PTXVM_ROUNDED(rz, rz)
PTXVM_ROUNDED(rd, rm)
PTXVM_ROUNDED(ru, rp)
#undef PTXVM_ROUNDED

PTXVM_1(double, int2double_rn, int, (double)x)
PTXVM_1(double, uint2double_rn, unsigned, (double)x)
PTXVM_1(float, frsqrt_rn, float, (float)(1.0 / __nvvm_sqrt_rn_d((double)x)))
PTXVM_1(float, rsqrtf, float, __nvvm_rsqrt_approx_f(x))
PTXVM_1(double, rsqrt, double, 1.0 / __nvvm_sqrt_rn_d(x))
PTXVM_1(double, sqrt, double, __builtin_sqrt(x))
// Clang 19 rounds `__builtin_sqrtf` correctly whatever the option for it says.
#if PTXVM_PREC_SQRT
PTXVM_1(float, sqrtf, float, __builtin_sqrtf(x))
#elif PTXVM_FTZ
PTXVM_1(float, sqrtf, float, __nvvm_sqrt_approx_ftz_f(x))
#else
PTXVM_1(float, sqrtf, float, __nvvm_sqrt_approx_f(x))
#endif
PTXVM_3(double, fma, double, double, double, __builtin_fma(x, y, z))
PTXVM_3(float, fmaf, float, float, float, __builtin_fmaf(x, y, z))
PTXVM_2(double, fmax, double, double, __builtin_fmax(x, y))
PTXVM_2(float, fmaxf, float, float, __builtin_fmaxf(x, y))
PTXVM_2(double, fmin, double, double, __builtin_fmin(x, y))
PTXVM_2(float, fminf, float, float, __builtin_fminf(x, y))
PTXVM_1(double, fabs, double, __builtin_fabs(x))
PTXVM_1(float, fabsf, float, __builtin_fabsf(x))
PTXVM_1(double, ceil, double, __builtin_ceil(x))
PTXVM_1(float, ceilf, float, __builtin_ceilf(x))
PTXVM_1(double, floor, double, __builtin_floor(x))
PTXVM_1(float, floorf, float, __builtin_floorf(x))
PTXVM_1(double, trunc, double, __builtin_trunc(x))
PTXVM_1(float, truncf, float, __builtin_truncf(x))
PTXVM_1(double, rint, double, __builtin_rint(x))
PTXVM_1(float, rintf, float, __builtin_rintf(x))
PTXVM_1(double, nearbyint, double, __builtin_rint(x))
PTXVM_1(float, nearbyintf, float, __builtin_rintf(x))
PTXVM_1(double, round, double, __builtin_round(x))
PTXVM_1(float, roundf, float, __builtin_roundf(x))
PTXVM_1(long long, llrint, double, __nvvm_d2ll_rn(x))
PTXVM_1(long long, llrintf, float, __nvvm_f2ll_rn(x))
PTXVM_1(long long, llround, double, __nvvm_d2ll_rz(__builtin_round(x)))
PTXVM_1(long long, llroundf, float, __nvvm_f2ll_rz(__builtin_roundf(x)))
PTXVM_2(double, copysign, double, double, __builtin_copysign(x, y))
PTXVM_2(float, copysignf, float, float, __builtin_copysignf(x, y))
PTXVM_1(float, saturatef, float, __nvvm_saturate_f(x))
PTXVM_1(int, signbitd, double, __ptxvm::bits(x) < 0)
PTXVM_1(int, signbitf, float, __builtin_bit_cast(int, x) < 0)
PTXVM_1(int, isfinited, double, __builtin_isfinite(x))
PTXVM_1(int, finitef, float, __builtin_isfinite(x))
PTXVM_1(int, isinfd, double, __builtin_isinf(x))
PTXVM_1(int, isinff, float, __builtin_isinf(x))
PTXVM_1(int, isnand, double, __builtin_isnan(x))
PTXVM_1(int, isnanf, float, __builtin_isnan(x))

PTXVM_1(long long, double_as_longlong, double, __builtin_bit_cast(long long, x))
PTXVM_1(double, longlong_as_double, long long, __builtin_bit_cast(double, x))
PTXVM_1(int, float_as_int, float, __builtin_bit_cast(int, x))
PTXVM_1(unsigned, float_as_uint, float, __builtin_bit_cast(unsigned, x))
PTXVM_1(float, int_as_float, int, __builtin_bit_cast(float, x))
PTXVM_1(float, uint_as_float, unsigned, __builtin_bit_cast(float, x))
PTXVM_1(int, double2hiint, double, (int)(__builtin_bit_cast(long long, x) >> 32))
PTXVM_1(int, double2loint, double, (int)__builtin_bit_cast(long long, x))
PTXVM_2(double, hiloint2double, int, int, __builtin_bit_cast(double, (long long)x << 32 | (unsigned)y))
PTXVM_1(float, half2float, unsigned short, (float)__builtin_bit_cast(_Float16, x))
PTXVM_1(unsigned short, float2half_rn, float, __builtin_bit_cast(unsigned short, (_Float16)x))

PTXVM_1(int, abs, int, x < 0 ? (int)(0u - (unsigned)x) : x)
PTXVM_1(long long, llabs, long long, x < 0 ? (long long)(0ull - (unsigned long long)x) : x)
PTXVM_2(int, max, int, int, x > y ? x : y)
PTXVM_2(int, min, int, int, x < y ? x : y)
PTXVM_2(unsigned, umax, unsigned, unsigned, x > y ? x : y)
PTXVM_2(unsigned, umin, unsigned, unsigned, x < y ? x : y)
PTXVM_2(long long, llmax, long long, long long, x > y ? x : y)
PTXVM_2(long long, llmin, long long, long long, x < y ? x : y)
PTXVM_2(unsigned long long, ullmax, unsigned long long, unsigned long long, x > y ? x : y)
PTXVM_2(unsigned long long, ullmin, unsigned long long, unsigned long long, x < y ? x : y)
PTXVM_1(int, brev, int, (int)__builtin_bitreverse32(x))
PTXVM_1(long long, brevll, long long, (long long)__builtin_bitreverse64(x))
PTXVM_1(int, clz, int, x ? __builtin_clz(x) : 32)
PTXVM_1(int, clzll, long long, x ? __builtin_clzll(x) : 64)
PTXVM_1(int, ffs, int, __builtin_ffs(x))
PTXVM_1(int, ffsll, long long, __builtin_ffsll(x))
PTXVM_1(int, popc, unsigned, __builtin_popcount(x))
PTXVM_1(int, popcll, unsigned long long, __builtin_popcountll(x))
PTXVM_3(int, byte_perm, int, int, int, (int)__nvvm_prmt(x, y, z))
PTXVM_2(int, mulhi, int, int, __nvvm_mulhi_i(x, y))
PTXVM_2(unsigned, umulhi, unsigned, unsigned, __nvvm_mulhi_ui(x, y))
PTXVM_2(long long, mul64hi, long long, long long, __nvvm_mulhi_ll(x, y))
PTXVM_2(unsigned long long, umul64hi, unsigned long long, unsigned long long, __nvvm_mulhi_ull(x, y))
PTXVM_2(int, mul24, int, int, __nvvm_mul24_i(x, y))
PTXVM_2(unsigned, umul24, unsigned, unsigned, __nvvm_mul24_ui(x, y))
// Means that do not overflow, rounded down and up.
PTXVM_2(int, hadd, int, int, (int)(((long long)x + y) >> 1))
PTXVM_2(int, rhadd, int, int, (int)(((long long)x + y + 1) >> 1))
PTXVM_2(unsigned, uhadd, unsigned, unsigned, (unsigned)(((unsigned long long)x + y) >> 1))
PTXVM_2(unsigned, urhadd, unsigned, unsigned, (unsigned)(((unsigned long long)x + y + 1) >> 1))
PTXVM_3(int, sad, int, int, int, (int)((x > y ? (unsigned)x - (unsigned)y : (unsigned)y - (unsigned)x) + (unsigned)z))
PTXVM_3(unsigned, usad, unsigned, unsigned, unsigned, (x > y ? x - y : y - x) + z)
#undef PTXVM_1
#undef PTXVM_2
#undef PTXVM_3
