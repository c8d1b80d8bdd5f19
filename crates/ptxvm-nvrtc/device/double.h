// Mathematical functions in double precision, under the names of the device library that clang's headers call
// (`__nv_sin`, ...).
//
// An argument is reduced to an interval on which a polynomial of coefficients.py has an error below half an
// ulp. If the reduction or the result would lose bits, a number is kept as a sum of two. Errors are at most
// those that CUDA documents; tests/functions.rs states them.
#pragma once

#include "coefficients.h"

#define PTXVM_FN static __device__ inline __attribute__((always_inline))
#define PTXVM_NV extern "C" __device__ inline __attribute__((always_inline))
#define PTXVM_NV_CALL extern "C" __device__ inline __attribute__((noinline))

namespace __ptxvm {

PTXVM_FN double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
PTXVM_FN long long bits(double x) { return __builtin_bit_cast(long long, x); }
PTXVM_FN double number(long long x) { return __builtin_bit_cast(double, x); }
PTXVM_FN int high(double x) { return (int)(bits(x) >> 32); }
PTXVM_FN double inf() { return __builtin_inf(); }
PTXVM_FN double nan() { return __builtin_nan(""); }
PTXVM_FN double abs(double x) { return __builtin_fabs(x); }
PTXVM_FN double with_sign(double x, double sign) { return __builtin_copysign(x, sign); }

// c[0] + c[1] x + ...
template <int N> PTXVM_FN double poly(double x, const double (&c)[N]) {
  double sum = c[N - 1];
#pragma unroll
  for (int i = N - 2; i >= 0; --i)
    sum = fma(sum, x, c[i]);
  return sum;
}
#define PTXVM_POLY(x, name)                                                                                           \
  ([](double ptxvm_x) __attribute__((device, always_inline)) {                                                        \
    constexpr double ptxvm_c[] = {name};                                                                              \
    return __ptxvm::poly(ptxvm_x, ptxvm_c);                                                                           \
  }(x))

// A number as a sum of two, with |lo| less than half an ulp of hi.
struct Sum {
  double hi, lo;
};
PTXVM_FN Sum fast_sum(double a, double b) {
  // |a| >= |b|, or a is zero.
  double hi = __nvvm_add_rn_d(a, b);
  return {hi, __nvvm_add_rn_d(b, __nvvm_add_rn_d(a, -hi))};
}
PTXVM_FN double add(double a, double b) { return __nvvm_add_rn_d(a, b); }
PTXVM_FN double mul(double a, double b) { return __nvvm_mul_rn_d(a, b); }
PTXVM_FN Sum sum(double a, double b) {
  double hi = add(a, b), part = add(hi, -a);
  return {hi, add(add(a, -add(hi, -part)), add(b, -part))};
}
PTXVM_FN Sum product(double a, double b) {
  double hi = mul(a, b);
  return {hi, fma(a, b, -hi)};
}
PTXVM_FN Sum product(Sum a, Sum b) {
  Sum p = product(a.hi, b.hi);
  return fast_sum(p.hi, fma(a.hi, b.lo, fma(a.lo, b.hi, p.lo)));
}
PTXVM_FN Sum plus(Sum a, Sum b) {
  Sum s = sum(a.hi, b.hi);
  return fast_sum(s.hi, add(s.lo, add(a.lo, b.lo)));
}

// exp(hi + lo), for |lo| much less than 2^10 ulps of hi.
PTXVM_FN double exp(double hi, double lo) {
  constexpr double ln2[] = {PTXVM_LN2};
  constexpr double log2e[] = {PTXVM_LOG2_E};
  double k = __builtin_rint(hi * log2e[0]);
  double r = fma(-k, ln2[0], hi);
  r = fma(-k, ln2[1], r);
  lo = fma(-k, ln2[2], lo);
  Sum s = fast_sum(r, lo);
  double p = PTXVM_POLY(s.hi, PTXVM_EXP);
  double y = 1.0 + (s.hi + fma(s.hi * s.hi, p, s.lo));
  if (hi > 720.0)
    return inf();
  if (hi < -750.0)
    return 0.0;
  int n = (int)k;
  int half = n >> 1;
  // y is near one, so the first multiplication is exact.
  return y * number((long long)(half + 1023) << 52) * number((long long)(n - half + 1023) << 52);
}

// Splits a positive finite number: x = m 2^e with m in [sqrt(1/2), sqrt(2)).
PTXVM_FN double fraction(double x, int &e) {
  e = 0;
  if (x < 0x1p-1022) {
    x *= 0x1p54;
    e = -54;
  }
  long long b = bits(x);
  long long from = b - 0x3fe6a09e667f3bcdll;
  int n = (int)(from >> 52);
  e += n;
  return number(b - ((long long)n << 52));
}

// f - log(1 + f), for 1 + f in [sqrt(1/2), sqrt(2)]. It is small against f, so its rounding costs less than
// an ulp of log.
PTXVM_FN double log_less(double f) {
  double s = f / (2.0 + f);
  double t = s * s;
  double half = 0.5 * f * f;
  return half - s * (half + 2.0 * t * PTXVM_POLY(t, PTXVM_LOG));
}

// log(x) as a sum, for positive finite x. The relative error is below 2^-64.
PTXVM_FN Sum log_sum(double x) {
  constexpr double ln2[] = {PTXVM_LN2};
  int n;
  double m = fraction(x, n);
  double e = n;
  double f = m - 1.0;
  Sum d = sum(2.0, f);
  double inverse = 1.0 / d.hi;
  Sum s;
  s.hi = mul(f, inverse);
  s.lo = fma(-s.hi, d.lo, fma(-s.hi, d.hi, f)) * inverse;
  s = fast_sum(s.hi, s.lo);
  Sum t = product(s, s);
  double rest = mul(mul(t.hi, t.hi), PTXVM_POLY(t.hi, PTXVM_LOG_REST));
  Sum third = product(t, Sum{0x1.5555555555555p-2, 0x1.5555555555555p-56});
  third = fast_sum(third.hi, add(third.lo, rest));
  Sum one = product(s, third);
  Sum whole = plus(s, one);
  whole = {2.0 * whole.hi, 2.0 * whole.lo};
  if (n == 0)
    return whole;
  Sum l = sum(e * ln2[0], whole.hi);
  Sum m1 = sum(l.lo, fma(e, ln2[1], 0.0));
  return fast_sum(l.hi, add(m1.hi, add(m1.lo, add(whole.lo, e * ln2[2]))));
}

PTXVM_FN bool is_positive_finite(double x) { return x > 0.0 && x < inf(); }
// Logarithms of numbers that are not positive and finite.
PTXVM_FN double log_special(double x) { return x == 0.0 ? -inf() : x > 0.0 ? x : nan(); }

// x minus a multiple of pi/2, as a sum, and the multiple's last two bits.
PTXVM_FN Sum reduced(double x, int &quadrant) {
  constexpr double half_pi[] = {PTXVM_HALF_PI};
  constexpr double log[] = {0x1.45f306dc9c883p-1};
  if (abs(x) < 1e5) {
    double k = __builtin_rint(x * log[0]);
    quadrant = (int)k & 3;
    double r = fma(-k, half_pi[0], x);
    Sum p = product(k, half_pi[1]);
    Sum s = sum(r, -p.hi);
    return fast_sum(s.hi, add(s.lo, fma(-k, half_pi[2], -p.lo)));
  }
  if (!(abs(x) < inf())) {
    quadrant = 0;
    return {nan(), 0.0};
  }
  // x 2/pi modulo 4, from the bits of 2/pi that matter. x is m 2^e with an integer m of 53 bits, so the bits
  // before place e - 2 contribute multiples of 4.
  constexpr unsigned long long table[] = {PTXVM_TWO_OVER_PI};
  int e = (int)((bits(x) >> 52) & 0x7ff) - 1075;
  unsigned long long m = (bits(x) & 0xfffffffffffffll) | 0x10000000000000ll;
  int place = e > 2 ? e - 2 : 0;
  int word = place >> 6, shift = place & 63;
  unsigned long long w[4];
  for (int i = 0; i < 4; ++i) {
    unsigned long long a = table[word + i], b = table[word + i + 1];
    w[i] = shift ? a << shift | b >> (64 - shift) : a;
  }
  // m times 0.w: an integer word, then three words after the binary point.
  unsigned long long f2 = m * w[2] + __nvvm_mulhi_ull(m, w[3]);
  unsigned long long carry = f2 < m * w[2];
  unsigned long long h2 = __nvvm_mulhi_ull(m, w[2]) + carry;
  unsigned long long f1 = m * w[1] + h2;
  unsigned long long h1 = __nvvm_mulhi_ull(m, w[1]) + (f1 < h2);
  unsigned long long f0 = m * w[0] + h1;
  unsigned long long whole = __nvvm_mulhi_ull(m, w[0]) + (f0 < h1);
  // The fraction is now scaled by 2^(place - e), which is 1/4 for large numbers; scale it by 1/4 for all.
  int back = 2 - (e - place);
  if (back > 0) {
    f2 = f2 >> back | f1 << (64 - back);
    f1 = f1 >> back | f0 << (64 - back);
    f0 = f0 >> back | whole << (64 - back);
  }
  int q = (int)(f0 >> 62);
  unsigned long long r1 = f0 << 2 | f1 >> 62, r2 = f1 << 2 | f2 >> 62;
  // Round to the nearest multiple.
  bool up = (long long)r1 < 0;
  if (up) {
    q += 1;
    r1 = ~r1;
    r2 = ~r2;
  }
  int zeros = r1 ? __builtin_clzll(r1) : 64;
  if (zeros) {
    r1 = zeros < 64 ? r1 << zeros | r2 >> (64 - zeros) : r2;
    r2 = zeros < 64 ? r2 << zeros : 0;
  }
  double hi = (double)(r1 >> 11) * number((long long)(1023 - 53 - zeros) << 52);
  double lo = (double)((r1 & 0x7ff) << 42 | r2 >> 22) * number((long long)(1023 - 106 - zeros) << 52);
  Sum f = fast_sum(hi, lo);
  f = product(f, Sum{half_pi[0], half_pi[1]});
  bool negative = up != (x < 0.0);
  quadrant = (x < 0.0 ? -q : q) & 3;
  return negative ? Sum{-f.hi, -f.lo} : f;
}

// sin(r) for |r| <= pi/4.
PTXVM_FN double sin_kernel(Sum r) {
  double t = r.hi * r.hi;
  double p = PTXVM_POLY(t, PTXVM_SIN);
  // The low part is multiplied by the derivative of sin, which is cos.
  return r.hi + fma(r.hi * t, p, r.lo * fma(-0.5, t, 1.0));
}
PTXVM_FN double cos_kernel(Sum r) {
  double t = r.hi * r.hi;
  double half = 0.5 * t;
  double w = add(1.0, -half);
  double p = PTXVM_POLY(t, PTXVM_COS);
  return w + (add(add(1.0, -w), -half) + fma(t * t, p, -r.hi * r.lo));
}
PTXVM_FN double sin_of(Sum r, int quadrant) {
  double y = quadrant & 1 ? cos_kernel(r) : sin_kernel(r);
  return quadrant & 2 ? -y : y;
}

// atan(x) for |x| <= 1 that is not NaN, or pi/2 minus atan for x that is the inverse of a larger number.
PTXVM_FN double atan_positive(double x) {
  constexpr double half_pi[] = {PTXVM_HALF_PI};
  bool is_large = x > 1.0;
  double u = is_large ? 1.0 / x : x;
  double lost = is_large ? fma(-u, x, 1.0) * u : 0.0; // 1/x = u + lost
  lost = is_large && !(x < 1e300) ? 0.0 : lost;
  bool is_middle = u > 0.2679491924311227; // tan(pi/12)
  // tan(a - pi/6) = (u - c) / (1 + u c) with c = tan(pi/6)
  constexpr double c = 0x1.279a74590331cp-1, c_lo = 0x1.34863e0792bedp-55;
  double v = u;
  if (is_middle) {
    double top = add(u, -c);
    double below = fma(u, c, 1.0);
    v = (top + (lost - c_lo)) / below;
  } else {
    v = u + lost;
  }
  double t = v * v;
  double p = v * t * PTXVM_POLY(t, PTXVM_ATAN);
  double y = v + p;
  double low = add(v, -y) + p;
  if (is_middle) {
    Sum s = fast_sum(0x1.0c152382d7366p-1, y); // pi/6
    y = s.hi;
    low += s.lo - 0x1.ee6913347c2a6p-55;
    Sum n = fast_sum(y, low);
    y = n.hi;
    low = n.lo;
  }
  return is_large ? half_pi[0] - (y - (half_pi[1] - low)) : y + low;
}

// exp(x^2) erfc(x) for x >= 0, so that erfc(x) is exp(-x^2) times it.
PTXVM_FN double erfcx_positive(double x) {
  double q = x < 1e10 ? (x - 4.0) / (x + 4.0) : 1.0;
  double p = PTXVM_POLY(q, PTXVM_ERFCX);
  return p / fma(2.0, x, 1.0);
}
PTXVM_FN double erfc_positive(double x) {
  Sum square = product(x, x);
  return x > 28.0 ? 0.0 : exp(-square.hi, -square.lo) * erfcx_positive(x);
}

// The exact remainder of |x| by |y|, for finite x and y and y not zero; also the last bits of the quotient.
PTXVM_FN double remainder_of(double x, double y, unsigned &quotient) {
  quotient = 0;
  x = abs(x);
  y = abs(y);
  if (x < y)
    return x;
  int ex, ey;
  ex = (int)(bits(x) >> 52);
  ey = (int)(bits(y) >> 52);
  unsigned long long mx = bits(x) & 0xfffffffffffffll, my = bits(y) & 0xfffffffffffffll;
  if (ex)
    mx |= 0x10000000000000ll;
  else
    ex = 1;
  if (ey)
    my |= 0x10000000000000ll;
  else
    ey = 1;
  unsigned q = (unsigned)(mx / my);
  mx %= my;
  for (int left = ex - ey; left > 0;) {
    int step = left < 11 ? left : 11;
    mx <<= step;
    q = q << step | (unsigned)(mx / my);
    mx %= my;
    left -= step;
  }
  quotient = q;
  if (mx == 0)
    return 0.0;
  int zeros = __builtin_clzll(mx) - 11;
  int e = ey - zeros;
  if (e >= 1)
    return number((long long)((mx << zeros) & 0xfffffffffffffll) | (long long)e << 52);
  return number((long long)(mx << (ey - 1)));
}

} // namespace __ptxvm

PTXVM_NV double __nv_exp(double x) { return __ptxvm::exp(x, 0.0); }
PTXVM_NV double __nv_exp2(double x) {
  constexpr double ln2[] = {PTXVM_LN2_2};
  double k = __builtin_rint(x);
  __ptxvm::Sum r = __ptxvm::product(x - k, ln2[0]);
  r.lo = __ptxvm::fma(x - k, ln2[1], r.lo);
  double y = __ptxvm::exp(r.hi, r.lo);
  if (x != x)
    return x;
  if (x > 1100.0)
    return __ptxvm::inf();
  if (x < -1100.0)
    return 0.0;
  int n = (int)k, half = n >> 1;
  return y * __ptxvm::number((long long)(half + 1023) << 52) * __ptxvm::number((long long)(n - half + 1023) << 52);
}
PTXVM_NV double __nv_exp10(double x) {
  constexpr double ln10[] = {PTXVM_LN10};
  __ptxvm::Sum r = __ptxvm::product(x, ln10[0]);
  r.lo = __ptxvm::fma(x, ln10[1], r.lo);
  return __ptxvm::exp(r.hi, __ptxvm::abs(x) < 400.0 ? r.lo : 0.0);
}
PTXVM_NV double __nv_expm1(double x) {
  constexpr double ln2[] = {PTXVM_LN2};
  constexpr double log2e[] = {PTXVM_LOG2_E};
  if (x < -40.0)
    return -1.0;
  if (x > 700.0)
    return __ptxvm::exp(x, 0.0);
  double k = __builtin_rint(x * log2e[0]);
  double r = __ptxvm::fma(-k, ln2[0], x);
  __ptxvm::Sum s = __ptxvm::fast_sum(__ptxvm::fma(-k, ln2[1], r), -k * ln2[2]);
  double p = s.hi * s.hi * PTXVM_POLY(s.hi, PTXVM_EXP) + s.lo;
  if (k == 0.0)
    return x == 0.0 ? x : r + p;
  double scale = __ptxvm::number((long long)((int)k + 1023) << 52);
  // 2^k (1 + s + p) - 1
  __ptxvm::Sum one = __ptxvm::sum(scale, -1.0);
  __ptxvm::Sum all = __ptxvm::sum(one.hi, scale * s.hi);
  double y = all.hi + (all.lo + one.lo + scale * p);
  return x != x ? x : y;
}
PTXVM_NV double __nv_log(double x) {
  constexpr double ln2[] = {PTXVM_LN2};
  if (!__ptxvm::is_positive_finite(x))
    return __ptxvm::log_special(x);
  int n;
  double f = __ptxvm::fraction(x, n) - 1.0;
  double e = n, less = __ptxvm::log_less(f);
  double high = e * ln2[0];
  __ptxvm::Sum s = __ptxvm::sum(high, f);
  return n == 0 ? f - less : s.hi + (s.lo - (less - e * ln2[1]));
}
PTXVM_NV double __nv_log1p(double x) {
  if (x > -0.25 && x < 0.4) {
    double less = __ptxvm::log_less(x);
    return x == 0.0 ? x : x - less;
  }
  double u = 1.0 + x;
  if (!__ptxvm::is_positive_finite(u))
    return __ptxvm::log_special(u);
  double lost = u > 2.0 ? 1.0 - (u - x) : x - (u - 1.0);
  __ptxvm::Sum l = __ptxvm::log_sum(u);
  return l.hi + (l.lo + lost / u);
}
PTXVM_NV double __nv_log2(double x) {
  constexpr double log2e[] = {PTXVM_LOG2_E};
  if (!__ptxvm::is_positive_finite(x))
    return __ptxvm::log_special(x);
  int n;
  double m = __ptxvm::fraction(x, n);
  __ptxvm::Sum l = __ptxvm::product(__ptxvm::log_sum(m), __ptxvm::Sum{log2e[0], log2e[1]});
  __ptxvm::Sum s = __ptxvm::sum((double)n, l.hi);
  return s.hi + (s.lo + l.lo);
}
PTXVM_NV double __nv_log10(double x) {
  constexpr double log10e[] = {PTXVM_LOG10_E};
  if (!__ptxvm::is_positive_finite(x))
    return __ptxvm::log_special(x);
  __ptxvm::Sum l = __ptxvm::product(__ptxvm::log_sum(x), __ptxvm::Sum{log10e[0], log10e[1]});
  return l.hi + l.lo;
}
PTXVM_NV double __nv_pow(double x, double y) {
  using namespace __ptxvm;
  if (y == 0.0 || x == 1.0)
    return 1.0;
  if (x != x || y != y)
    return nan();
  bool is_whole = abs(y) >= 0x1p53 || __builtin_trunc(y) == y;
  bool is_odd = abs(y) < 0x1p53 && is_whole && ((long long)y & 1);
  double sign = is_odd && bits(x) < 0 ? -1.0 : 1.0;
  double a = abs(x);
  if (a == 0.0 || a == inf()) {
    bool is_large = (a == 0.0) == (y < 0.0);
    return sign * (is_large ? inf() : 0.0);
  }
  if (abs(y) == inf())
    return a == 1.0 ? 1.0 : (a > 1.0) == (y > 0.0) ? inf() : 0.0;
  if (x < 0.0 && !is_whole)
    return nan();
  Sum l = log_sum(a);
  // A larger exponent has the same result as infinity.
  double limited = abs(y) > 1e20 ? with_sign(1e20, y) : y;
  Sum p = product(l.hi, limited);
  p = fast_sum(p.hi, fma(l.lo, limited, p.lo));
  return sign * exp(p.hi, abs(p.hi) < 800.0 ? p.lo : 0.0);
}
PTXVM_NV double __nv_powi(double x, int n) { return __nv_pow(x, (double)n); }

PTXVM_NV double __nv_sin(double x) {
  int q;
  __ptxvm::Sum r = __ptxvm::reduced(x, q);
  double y = __ptxvm::sin_of(r, q);
  return x == 0.0 ? x : y;
}
PTXVM_NV double __nv_cos(double x) {
  int q;
  __ptxvm::Sum r = __ptxvm::reduced(x, q);
  return __ptxvm::sin_of(r, q + 1);
}
PTXVM_NV void __nv_sincos(double x, double *s, double *c) {
  int q;
  __ptxvm::Sum r = __ptxvm::reduced(x, q);
  double y = __ptxvm::sin_of(r, q);
  *s = x == 0.0 ? x : y;
  *c = __ptxvm::sin_of(r, q + 1);
}
PTXVM_NV double __nv_tan(double x) {
  int q;
  __ptxvm::Sum r = __ptxvm::reduced(x, q);
  double s = __ptxvm::sin_kernel(r), c = __ptxvm::cos_kernel(r);
  double y = q & 1 ? -c / s : s / c;
  return x == 0.0 ? x : y;
}
namespace __ptxvm {
// pi (x - k/2) as a sum, and the last two bits of k.
PTXVM_FN Sum reduced_pi(double x, int &quadrant) {
  constexpr double half_pi[] = {PTXVM_HALF_PI};
  if (!(abs(x) < inf())) {
    quadrant = 0;
    return {nan(), 0.0};
  }
  double whole = abs(x) < 0x1p53 ? x - 2.0 * __builtin_rint(0.5 * x) : 0.0;
  double k = __builtin_rint(2.0 * whole);
  quadrant = (int)k & 3;
  double f = 2.0 * fma(-0.5, k, whole);
  Sum p = product(f, half_pi[0]);
  return fast_sum(p.hi, fma(f, half_pi[1], p.lo));
}
} // namespace __ptxvm
PTXVM_NV double __nv_sinpi(double x) {
  int q;
  __ptxvm::Sum r = __ptxvm::reduced_pi(x, q);
  double y = __ptxvm::sin_of(r, q);
  return x == 0.0 || __builtin_trunc(x) == x ? 0.0 * x : y;
}
PTXVM_NV double __nv_cospi(double x) {
  int q;
  __ptxvm::Sum r = __ptxvm::reduced_pi(x, q);
  return 0.0 + __ptxvm::sin_of(r, q + 1);
}
PTXVM_NV void __nv_sincospi(double x, double *s, double *c) {
  *s = __nv_sinpi(x);
  *c = __nv_cospi(x);
}

PTXVM_NV double __nv_atan(double x) { return __ptxvm::with_sign(__ptxvm::atan_positive(__ptxvm::abs(x)), x); }
PTXVM_NV double __nv_atan2(double y, double x) {
  using namespace __ptxvm;
  constexpr double half_pi[] = {PTXVM_HALF_PI};
  if (x != x || y != y)
    return nan();
  double ay = abs(y), ax = abs(x);
  double a;
  if (ay == 0.0)
    a = 0.0;
  else if (ax == 0.0)
    a = half_pi[0];
  else if (ax == inf() && ay == inf())
    a = 0.5 * half_pi[0];
  else
    a = atan_positive(ay / ax);
  if (bits(x) < 0) {
    a = a - 2.0 * half_pi[1];
    a = 2.0 * half_pi[0] - a;
  }
  return with_sign(a, y);
}
PTXVM_NV double __nv_asin(double x) {
  using namespace __ptxvm;
  constexpr double half_pi[] = {PTXVM_HALF_PI};
  double a = abs(x);
  if (a > 1.0 || x != x)
    return nan();
  bool is_large = a > 0.5;
  double t = is_large ? 0.5 * (1.0 - a) : a * a;
  double root = is_large ? __nvvm_sqrt_rn_d(t) : a;
  double p = t * PTXVM_POLY(t, PTXVM_ASIN);
  double y = fma(root, p, root);
  if (is_large) {
    double lost = root > 0.0 ? fma(-root, root, t) / (2.0 * root) : 0.0;
    y = half_pi[0] - (2.0 * root + (2.0 * (root * p + lost) - half_pi[1]));
  }
  return with_sign(y, x);
}
PTXVM_NV double __nv_acos(double x) {
  using namespace __ptxvm;
  constexpr double half_pi[] = {PTXVM_HALF_PI};
  double a = abs(x);
  if (a > 1.0 || x != x)
    return nan();
  bool is_large = a > 0.5;
  double t = is_large ? 0.5 * (1.0 - a) : a * a;
  double root = is_large ? __nvvm_sqrt_rn_d(t) : x;
  double p = t * PTXVM_POLY(t, PTXVM_ASIN);
  if (!is_large)
    return half_pi[0] - (x - (half_pi[1] - x * p));
  double lost = root > 0.0 ? fma(-root, root, t) / (2.0 * root) : 0.0;
  double low = fma(root, p, lost);
  return x > 0.0 ? 2.0 * (root + low) : 2.0 * (half_pi[0] - (root + (low - half_pi[1])));
}
namespace __ptxvm {
// exp(x) / 2, which overflows only if the half itself does.
PTXVM_FN double half_exp(double x) {
  Sum s = sum(x, -0x1.62e42fefa39efp-1);
  return exp(s.hi, s.lo - 0x1.abc9e3b39803fp-56);
}
} // namespace __ptxvm
PTXVM_NV double __nv_sinh(double x) {
  using namespace __ptxvm;
  double a = abs(x);
  double y;
  if (a < 22.0) {
    double e = __nv_expm1(a);
    y = 0.5 * (e + e / (e + 1.0));
  } else {
    y = half_exp(a);
  }
  return x != x ? x : with_sign(y, x);
}
PTXVM_NV double __nv_cosh(double x) {
  using namespace __ptxvm;
  double a = abs(x);
  double e = half_exp(a);
  if (a < 22.0) {
    e = 0.5 * exp(a, 0.0);
    e += 0.25 / e;
  }
  return x != x ? x : e;
}
PTXVM_NV double __nv_tanh(double x) {
  using namespace __ptxvm;
  double a = abs(x);
  double y = 1.0;
  if (a < 20.0) {
    if (a < 0.55) {
      double e = __nv_expm1(-2.0 * a);
      y = -e / (e + 2.0);
    } else {
      y = 1.0 - 2.0 / (exp(2.0 * a, 0.0) + 1.0);
    }
  }
  return x != x || x == 0.0 ? x : with_sign(y, x);
}
PTXVM_NV double __nv_asinh(double x) {
  using namespace __ptxvm;
  double a = abs(x);
  double y;
  if (a > 0x1p28) {
    constexpr double ln2[] = {PTXVM_LN2_2};
    y = a < inf() ? __nv_log(a) + ln2[0] : a;
  } else {
    double square = a * a;
    y = __nv_log1p(a + square / (1.0 + __nvvm_sqrt_rn_d(square + 1.0)));
  }
  return x != x ? x : with_sign(y, x);
}
PTXVM_NV double __nv_acosh(double x) {
  using namespace __ptxvm;
  if (!(x >= 1.0))
    return nan();
  if (x > 0x1p28) {
    constexpr double ln2[] = {PTXVM_LN2_2};
    return x < inf() ? __nv_log(x) + ln2[0] : x;
  }
  double t = x - 1.0;
  return __nv_log1p(t + __nvvm_sqrt_rn_d(fma(t, t, 2.0 * t)));
}
PTXVM_NV double __nv_atanh(double x) {
  using namespace __ptxvm;
  double a = abs(x);
  if (!(a <= 1.0))
    return nan();
  double y = a < 1.0 ? 0.5 * __nv_log1p(2.0 * a / (1.0 - a)) : inf();
  return a < 0x1p-30 ? x : with_sign(y, x);
}

PTXVM_NV double __nv_cbrt(double x) {
  using namespace __ptxvm;
  if (x == 0.0 || !(abs(x) < inf()))
    return x;
  double a = abs(x);
  int e = 0;
  if (a < 0x1p-1022) {
    a *= 0x1p54;
    e = -54;
  }
  int n = (int)(bits(a) >> 52) - 1023;
  double m = number(bits(a) - ((long long)n << 52));
  e += n;
  // e = 3 third + rest
  int third = (e + 3000) / 3 - 1000;
  int rest = e - 3 * third;
  m = rest == 1 ? 2.0 * m : rest == 2 ? 4.0 * m : m;
  // Newton's steps from a linear estimate for m in [1, 8); each step doubles the number of exact bits.
  double y = fma(m, 0.14, 0.9);
  for (int i = 0; i < 5; ++i)
    y = y - (y * y * y - m) / (3.0 * y * y);
  Sum square = product(y, y);
  Sum cube = product(square, Sum{y, 0.0});
  y = y - ((cube.hi - m) + cube.lo) / (3.0 * y * y);
  return with_sign(y * number((long long)(third + 1023) << 52), x);
}
PTXVM_NV double __nv_rcbrt(double x) { return 1.0 / __nv_cbrt(x); }
