// Mathematical functions in single precision: computed in double precision by shorter polynomials, and
// rounded once.
//
// The fast variants are the processor's approximations, as in NVIDIA's device library.
#pragma once

#include "special.h"

namespace __ptxvm {
PTXVM_FN float single_inf() { return __builtin_inff(); }
PTXVM_FN double exp_short(double x) {
  constexpr double ln2[] = {PTXVM_LN2_2};
  constexpr double log2e[] = {PTXVM_LOG2_E};
  x = x > 150.0 ? 150.0 : x < -150.0 ? -150.0 : x;
  double k = __builtin_rint(x * log2e[0]);
  double r = fma(-k, ln2[0], x);
  double y = 1.0 + fma(r * r, PTXVM_POLY(r, PTXVM_EXP_SHORT), r);
  return y * number((long long)((int)k + 1023) << 52);
}
// log of any x that is not subnormal in double precision. No number of single precision is.
PTXVM_FN double log_short(double x) {
  long long b = bits(x);
  int n = (int)((b - 0x3fe6a09e667f3bcdll) >> 52);
  double f = number(b - ((long long)n << 52)) - 1.0;
  double s = f / (2.0 + f), t = s * s;
  double y = 2.0 * fma(s * t, PTXVM_POLY(t, PTXVM_LOG_SHORT), s);
  constexpr double ln2[] = {PTXVM_LN2_2};
  return fma((double)n, ln2[0], y);
}
PTXVM_FN float log_single(float x, double factor) {
  double y = log_short((double)x) * factor;
  bool is_plain = x > 0.0f && x < single_inf();
  return is_plain ? (float)y : (float)log_special((double)x);
}
PTXVM_FN double reduced_short(float x, int &quadrant) {
  constexpr double half_pi[] = {PTXVM_HALF_PI};
  double d = x;
  if (abs(d) < 1e5) {
    double k = __builtin_rint(d * 0x1.45f306dc9c883p-1);
    quadrant = (int)k & 3;
    return fma(-k, half_pi[1], fma(-k, half_pi[0], d));
  }
  Sum r = reduced(d, quadrant);
  return r.hi;
}
PTXVM_FN double sin_short(double r) {
  double t = r * r;
  return fma(r * t, PTXVM_POLY(t, PTXVM_SIN_SHORT), r);
}
PTXVM_FN double cos_short(double r) {
  double t = r * r;
  return fma(t * t, PTXVM_POLY(t, PTXVM_COS_SHORT), fma(-0.5, t, 1.0));
}
PTXVM_FN float sin_single(double r, int quadrant) {
  double y = quadrant & 1 ? cos_short(r) : sin_short(r);
  return (float)(quadrant & 2 ? -y : y);
}
PTXVM_FN double atan_short(double x) {
  double a = abs(x);
  bool is_large = a > 1.0;
  double u = is_large ? 1.0 / a : a;
  bool is_middle = u > 0.2679491924311227;
  double v = is_middle ? (u - 0x1.279a74590331cp-1) / fma(u, 0x1.279a74590331cp-1, 1.0) : u;
  double t = v * v;
  double y = fma(v * t, PTXVM_POLY(t, PTXVM_ATAN_SHORT), v);
  y = is_middle ? 0x1.0c152382d7366p-1 + y : y;
  return with_sign(is_large ? 0x1.921fb54442d18p0 - y : y, x);
}
PTXVM_FN double asin_short(double x) {
  double a = abs(x);
  bool is_large = a > 0.5;
  double t = is_large ? 0.5 * (1.0 - a) : a * a;
  double root = is_large ? __nvvm_sqrt_rn_d(t) : a;
  double y = fma(root * t, PTXVM_POLY(t, PTXVM_ASIN_SHORT), root);
  return with_sign(is_large ? 0x1.921fb54442d18p0 - 2.0 * y : y, x);
}
} // namespace __ptxvm

PTXVM_NV float __nv_expf(float x) { return x != x ? x : (float)__ptxvm::exp_short((double)x); }
PTXVM_NV float __nv_exp2f(float x) {
  double y = __ptxvm::exp_short((double)x * 0x1.62e42fefa39efp-1);
  return x != x ? x : (float)y;
}
PTXVM_NV float __nv_exp10f(float x) {
  double y = __ptxvm::exp_short((double)x * 0x1.26bb1bbb55516p1);
  return x != x ? x : (float)y;
}
PTXVM_NV float __nv_expm1f(float x) {
  double d = (double)x;
  double small = __ptxvm::fma(d * d, PTXVM_POLY(d, PTXVM_EXP), d);
  double y = __ptxvm::abs(d) < 0.3 ? small : __ptxvm::exp_short(d) - 1.0;
  return x != x || x == 0.0f ? x : (float)y;
}
PTXVM_NV float __nv_logf(float x) { return __ptxvm::log_single(x, 1.0); }
PTXVM_NV float __nv_log2f(float x) { return __ptxvm::log_single(x, 0x1.71547652b82fep0); }
PTXVM_NV float __nv_log10f(float x) { return __ptxvm::log_single(x, 0x1.bcb7b1526e50ep-2); }
PTXVM_NV float __nv_log1pf(float x) {
  double d = (double)x;
  double small = __ptxvm::fma(-0.5 * d, d, d);
  double y = __ptxvm::abs(d) < 1e-5 ? small : __ptxvm::log_short(1.0 + d);
  bool is_plain = x > -1.0f && x < __ptxvm::single_inf();
  return is_plain ? (x == 0.0f ? x : (float)y) : (float)__ptxvm::log_special(1.0 + d);
}
PTXVM_NV float __nv_powf(float x, float y) {
  if (x > 0.0f && x < __ptxvm::single_inf() && y > -1e30f && y < 1e30f)
    return (float)__ptxvm::exp((double)y * (double)__nv_log((double)x), 0.0);
  return (float)__nv_pow((double)x, (double)y);
}
PTXVM_NV float __nv_powif(float x, int n) { return (float)__nv_pow((double)x, (double)n); }
PTXVM_NV float __nv_sinf(float x) {
  int q;
  double r = __ptxvm::reduced_short(x, q);
  float y = __ptxvm::sin_single(r, q);
  return x == 0.0f ? x : y;
}
PTXVM_NV float __nv_cosf(float x) {
  int q;
  double r = __ptxvm::reduced_short(x, q);
  return __ptxvm::sin_single(r, q + 1);
}
PTXVM_NV void __nv_sincosf(float x, float *s, float *c) {
  int q;
  double r = __ptxvm::reduced_short(x, q);
  float y = __ptxvm::sin_single(r, q);
  *s = x == 0.0f ? x : y;
  *c = __ptxvm::sin_single(r, q + 1);
}
PTXVM_NV float __nv_tanf(float x) {
  int q;
  double r = __ptxvm::reduced_short(x, q);
  double s = __ptxvm::sin_short(r), c = __ptxvm::cos_short(r);
  double y = q & 1 ? -c / s : s / c;
  return x == 0.0f ? x : (float)y;
}
PTXVM_NV float __nv_atanf(float x) { return x != x ? x : (float)__ptxvm::atan_short((double)x); }
PTXVM_NV float __nv_atan2f(float y, float x) { return (float)__nv_atan2((double)y, (double)x); }
PTXVM_NV float __nv_asinf(float x) {
  double d = (double)x;
  return __ptxvm::abs(d) <= 1.0 ? (float)__ptxvm::asin_short(d) : (float)__ptxvm::nan();
}
PTXVM_NV float __nv_acosf(float x) {
  return (float)__nv_acos((double)x);
}

// Functions computed by those of double precision, and rounded.
#define PTXVM_SINGLE(name)                                                                                            \
  PTXVM_NV float __nv_##name##f(float x) { return (float)__nv_##name((double)x); }
#define PTXVM_SINGLE_2(name)                                                                                          \
  PTXVM_NV float __nv_##name##f(float x, float y) { return (float)__nv_##name((double)x, (double)y); }
PTXVM_SINGLE(sinpi)
PTXVM_SINGLE(cospi)
PTXVM_SINGLE(sinh)
PTXVM_SINGLE(cosh)
PTXVM_SINGLE(tanh)
PTXVM_SINGLE(asinh)
PTXVM_SINGLE(acosh)
PTXVM_SINGLE(atanh)
PTXVM_SINGLE(cbrt)
PTXVM_SINGLE(rcbrt)
PTXVM_SINGLE(erf)
PTXVM_SINGLE(erfc)
PTXVM_SINGLE(erfcx)
PTXVM_SINGLE(erfinv)
PTXVM_SINGLE(erfcinv)
PTXVM_SINGLE(normcdf)
PTXVM_SINGLE(normcdfinv)
PTXVM_SINGLE(lgamma)
PTXVM_SINGLE(tgamma)
PTXVM_SINGLE(logb)
PTXVM_SINGLE_2(fmod)
PTXVM_SINGLE_2(remainder)
PTXVM_SINGLE_2(fdim)
#undef PTXVM_SINGLE
#undef PTXVM_SINGLE_2
// Squares of single precision do not overflow in double precision.
PTXVM_NV float __nv_norm3df(float x, float y, float z);
PTXVM_NV float __nv_hypotf(float x, float y) { return (float)__nv_hypot((double)x, (double)y); }
PTXVM_NV float __nv_norm3df(float x, float y, float z) { return (float)__nv_norm3d((double)x, (double)y, (double)z); }
PTXVM_NV float __nv_norm4df(float x, float y, float z, float w) {
  return (float)__nv_norm4d((double)x, (double)y, (double)z, (double)w);
}
PTXVM_NV float __nv_normf(int n, const float *v) {
  double sum = 0.0;
  bool is_infinite = false;
  for (int i = 0; i < n; ++i) {
    sum += (double)v[i] * (double)v[i];
    is_infinite |= __ptxvm::abs((double)v[i]) == __ptxvm::inf();
  }
  return is_infinite ? __ptxvm::single_inf() : (float)__nvvm_sqrt_rn_d(sum);
}
PTXVM_NV float __nv_rhypotf(float x, float y) { return (float)(1.0 / __nv_hypot((double)x, (double)y)); }
PTXVM_NV float __nv_rnorm3df(float x, float y, float z) {
  return (float)(1.0 / __nv_norm3d((double)x, (double)y, (double)z));
}
PTXVM_NV float __nv_rnorm4df(float x, float y, float z, float w) {
  return (float)(1.0 / __nv_norm4d((double)x, (double)y, (double)z, (double)w));
}
PTXVM_NV float __nv_rnormf(int n, const float *v) { return 1.0f / __nv_normf(n, v); }
PTXVM_NV void __nv_sincospif(float x, float *s, float *c) {
  *s = __nv_sinpif(x);
  *c = __nv_cospif(x);
}
PTXVM_NV float __nv_remquof(float x, float y, int *q) { return (float)__nv_remquo((double)x, (double)y, q); }
PTXVM_NV float __nv_frexpf(float x, int *e) { return (float)__nv_frexp((double)x, e); }
PTXVM_NV float __nv_ldexpf(float x, int n) {
  n = n > 1000 ? 1000 : n < -1000 ? -1000 : n;
  return (float)__nv_ldexp((double)x, n);
}
PTXVM_NV float __nv_scalbnf(float x, int n) { return __nv_ldexpf(x, n); }
PTXVM_NV int __nv_ilogbf(float x) { return __nv_ilogb((double)x); }
PTXVM_NV float __nv_modff(float x, float *whole) {
  *whole = __builtin_truncf(x);
  float rest = __builtin_fabsf(x) == __ptxvm::single_inf() ? 0.0f : x - *whole;
  return __builtin_copysignf(rest, x);
}
PTXVM_NV float __nv_nextafterf(float x, float y) {
  if (x != x || y != y)
    return __builtin_nanf("");
  if (x == y)
    return y;
  if (x == 0.0f)
    return __builtin_copysignf(__builtin_bit_cast(float, 1), y);
  return __builtin_bit_cast(float, __builtin_bit_cast(int, x) + ((x < y) == (x > 0.0f) ? 1 : -1));
}
PTXVM_NV float __nv_nanf(const signed char *) { return __builtin_nanf(""); }

#if PTXVM_FTZ
#define PTXVM_APPROX(name) __nvvm_##name##_approx_ftz_f
#else
#define PTXVM_APPROX(name) __nvvm_##name##_approx_f
#endif
PTXVM_NV float __nv_fast_sinf(float x) { return PTXVM_APPROX(sin)(x); }
PTXVM_NV float __nv_fast_cosf(float x) { return PTXVM_APPROX(cos)(x); }
PTXVM_NV void __nv_fast_sincosf(float x, float *s, float *c) {
  *s = PTXVM_APPROX(sin)(x);
  *c = PTXVM_APPROX(cos)(x);
}
PTXVM_NV float __nv_fast_fdividef(float x, float y) { return PTXVM_APPROX(div)(x, y); }
PTXVM_NV float __nv_fast_tanf(float x) { return PTXVM_APPROX(div)(PTXVM_APPROX(sin)(x), PTXVM_APPROX(cos)(x)); }
PTXVM_NV float __nv_fast_log2f(float x) { return PTXVM_APPROX(lg2)(x); }
PTXVM_NV float __nv_fast_logf(float x) { return PTXVM_APPROX(lg2)(x) * 0x1.62e430p-1f; }
PTXVM_NV float __nv_fast_log10f(float x) { return PTXVM_APPROX(lg2)(x) * 0x1.344136p-2f; }
PTXVM_NV float __nv_fast_expf(float x) { return PTXVM_APPROX(ex2)(x * 0x1.715476p0f); }
PTXVM_NV float __nv_fast_exp10f(float x) { return PTXVM_APPROX(ex2)(x * 0x1.a934f0p1f); }
PTXVM_NV float __nv_fast_powf(float x, float y) { return PTXVM_APPROX(ex2)(y * PTXVM_APPROX(lg2)(x)); }
#undef PTXVM_APPROX

// Functions that this device library lacks. A program that calls one does not compile, and the error names
// the function.
#define PTXVM_MISSING(type, name, ...)                                                                                \
  extern "C" __device__ __attribute__((error("Bessel functions are not implemented"))) type __nv_##name(__VA_ARGS__);
#define PTXVM_MISSING_BOTH(name, ...)                                                                                 \
  PTXVM_MISSING(double, name, __VA_ARGS__ double)                                                                     \
  PTXVM_MISSING(float, name##f, __VA_ARGS__ float)
#define PTXVM_AND ,
PTXVM_MISSING_BOTH(cyl_bessel_i0, )
PTXVM_MISSING_BOTH(cyl_bessel_i1, )
PTXVM_MISSING_BOTH(j0, )
PTXVM_MISSING_BOTH(j1, )
PTXVM_MISSING_BOTH(y0, )
PTXVM_MISSING_BOTH(y1, )
PTXVM_MISSING_BOTH(jn, int PTXVM_AND)
PTXVM_MISSING_BOTH(yn, int PTXVM_AND)
#undef PTXVM_AND
#undef PTXVM_MISSING_BOTH
#undef PTXVM_MISSING
