// Norms, error functions, gamma functions, remainders, and functions that split numbers, in double precision.
#pragma once

#include "double.h"

namespace __ptxvm {
// The scale for the root of a sum of squares of up to four numbers, and for its inverse.
PTXVM_FN double norm_scale(double largest, double &back) {
  int e = (int)(bits(largest) >> 52);
  e = e < 64 ? 64 : e > 1982 ? 1982 : e;
  back = number((long long)e << 52);
  return number((long long)(2046 - e) << 52);
}
PTXVM_FN double norm_of(const double *v, int n) {
  double largest = 0.0;
  bool is_nan = false;
  for (int i = 0; i < n; ++i) {
    double a = abs(v[i]);
    is_nan |= a != a;
    largest = a > largest ? a : largest;
  }
  if (largest == inf())
    return inf();
  if (is_nan)
    return nan();
  double back, scale = norm_scale(largest, back);
  Sum total = {0.0, 0.0};
  for (int i = 0; i < n; ++i) {
    double x = v[i] * scale;
    total = plus(total, product(x, x));
  }
  double root = __nvvm_sqrt_rn_d(total.hi);
  if (root > 0.0) {
    Sum square = product(root, root);
    root += ((total.hi - square.hi) - square.lo + total.lo) / (2.0 * root);
  }
  return root * back;
}
} // namespace __ptxvm
PTXVM_NV double __nv_hypot(double x, double y) {
  double v[] = {x, y};
  return __ptxvm::norm_of(v, 2);
}
PTXVM_NV double __nv_norm3d(double x, double y, double z) {
  double v[] = {x, y, z};
  return __ptxvm::norm_of(v, 3);
}
PTXVM_NV double __nv_norm4d(double x, double y, double z, double w) {
  double v[] = {x, y, z, w};
  return __ptxvm::norm_of(v, 4);
}
PTXVM_NV double __nv_norm(int n, const double *v) { return __ptxvm::norm_of(v, n); }
PTXVM_NV double __nv_rhypot(double x, double y) { return 1.0 / __nv_hypot(x, y); }
PTXVM_NV double __nv_rnorm3d(double x, double y, double z) { return 1.0 / __nv_norm3d(x, y, z); }
PTXVM_NV double __nv_rnorm4d(double x, double y, double z, double w) { return 1.0 / __nv_norm4d(x, y, z, w); }
PTXVM_NV double __nv_rnorm(int n, const double *v) { return 1.0 / __nv_norm(n, v); }

PTXVM_NV double __nv_erfcx(double x) {
  using namespace __ptxvm;
  if (abs(x) < 0.5)
    return exp(x * x, 0.0) * (1.0 - fma(x, PTXVM_POLY(x * x, PTXVM_ERF), x));
  if (x >= 0.0)
    return erfcx_positive(x);
  Sum square = product(x, x);
  return x < -27.0 ? inf() : 2.0 * exp(square.hi, square.lo) - erfcx_positive(-x);
}
PTXVM_NV double __nv_erf(double x) {
  using namespace __ptxvm;
  double a = abs(x);
  double y;
  if (a < 1.0)
    y = fma(a, PTXVM_POLY(a * a, PTXVM_ERF), a);
  else
    y = 1.0 - erfc_positive(a);
  return x != x ? x : with_sign(y, x);
}
PTXVM_NV double __nv_erfc(double x) {
  using namespace __ptxvm;
  if (x != x)
    return x;
  if (x > 0.5)
    return erfc_positive(x);
  return x > -1.0 ? 1.0 - fma(x, PTXVM_POLY(x * x, PTXVM_ERF), x) : 2.0 - erfc_positive(-x);
}
PTXVM_NV double __nv_normcdf(double x) {
  using namespace __ptxvm;
  // erfc(-x / sqrt(2)) / 2, with the rounding error of the quotient.
  constexpr double root = 0x1.6a09e667f3bcdp-1, root_lo = -0x1.bdd3413b26456p-55;
  if (x != x)
    return x;
  if (x < -40.0)
    return 0.0;
  Sum z = product(-x, root);
  z.lo = fma(-x, root_lo, z.lo);
  double y = __nv_erfc(z.hi);
  // erfc(z + d) = erfc(z) - d 2/sqrt(pi) exp(-z^2)
  y = fma(-z.lo * 0x1.20dd750429b6dp0, abs(z.hi) < 28.0 ? exp(-z.hi * z.hi, 0.0) : 0.0, y);
  return 0.5 * y;
}
namespace __ptxvm {
// The x with erfc(x) = y, for y in (0, 1]: an estimate by the asymptotic form, then Halley's steps on
// log(erfc), which is nearly a parabola.
PTXVM_FN double erfcinv_small(double y) {
  double l = -__nv_log(y);
  double x = __nvvm_sqrt_rn_d(l);
  x = y > 0.5 ? (1.0 - y) * 0.886227 : y > 0.1 ? 0.7 * x : x - 0.5 * __nv_log(1.77 * x) / x;
  for (int i = 0; i < 6; ++i) {
    // exp(x^2) (erfc(x) - y), where 1 - y is exact by 1 - erf(x).
    Sum square = product(x, x);
    double scale = exp(square.hi, square.lo);
    double difference = y > 0.5 ? scale * ((1.0 - y) - __nv_erf(x)) : erfcx_positive(x) - scale * y;
    double step = difference * 0x1.c5bf891b4ef6ap-1; // sqrt(pi) / 2
    x += step / (1.0 - x * step);
  }
  return x;
}
} // namespace __ptxvm
PTXVM_NV_CALL double __nv_erfcinv(double y) {
  using namespace __ptxvm;
  if (!(y >= 0.0 && y <= 2.0))
    return nan();
  if (y == 0.0 || y == 2.0)
    return y == 0.0 ? inf() : -inf();
  return y > 1.0 ? -erfcinv_small(2.0 - y) : erfcinv_small(y);
}
PTXVM_NV_CALL double __nv_erfinv(double y) {
  using namespace __ptxvm;
  double a = abs(y);
  if (!(a <= 1.0))
    return nan();
  if (a == 1.0)
    return with_sign(inf(), y);
  if (a > 0.5)
    return with_sign(erfcinv_small(1.0 - a), y);
  double x = a * 0.886227;
  for (int i = 0; i < 5; ++i) {
    double step = exp(x * x, 0.0) * (__nv_erf(x) - a) * 0x1.c5bf891b4ef6ap-1;
    x -= step / (1.0 + x * step);
  }
  return y == 0.0 ? y : with_sign(x, y);
}
PTXVM_NV_CALL double __nv_normcdfinv(double y) { return -0x1.6a09e667f3bcdp0 * __nv_erfcinv(2.0 * y); }

namespace __ptxvm {
// log(gamma(x)) - ((x - 1/2) log(x) - x + log(2 pi)/2) for large x, by Stirling's series.
PTXVM_FN double stirling(double x) {
  double r = 1.0 / x;
  constexpr double c[] = {1.0 / 12, -1.0 / 360, 1.0 / 1260, -1.0 / 1680, 1.0 / 1188, -691.0 / 360360, 1.0 / 156};
  return r * poly(r * r, c);
}
PTXVM_FN double lgamma_positive(double x) {
  // gamma(x) = gamma(1 + x) / x
  if (x < 0.5)
    return fma(x, PTXVM_POLY(x, PTXVM_LGAMMA_1), -__nv_log(x));
  if (x < 0.7)
    return fma(x - 1.0, PTXVM_POLY(x - 1.0, PTXVM_LGAMMA_2), -__nv_log(x));
  if (x < 1.5)
    return (x - 1.0) * PTXVM_POLY(x - 1.0, PTXVM_LGAMMA_1);
  if (x < 2.5)
    return (x - 2.0) * PTXVM_POLY(x - 2.0, PTXVM_LGAMMA_2);
  if (x < 10.0) {
    double factor = 1.0;
    while (x >= 2.5) {
      x -= 1.0;
      factor *= x;
    }
    return fma(x - 2.0, PTXVM_POLY(x - 2.0, PTXVM_LGAMMA_2), __nv_log(factor));
  }
  if (x > 1e305)
    return x * (__nv_log(x) - 1.0);
  Sum l = log_sum(x);
  Sum p = product(l, Sum{x - 0.5, 0.0});
  Sum all = sum(p.hi, -x);
  return all.hi + (all.lo + p.lo + (0x1.d67f1c864beb5p-1 + stirling(x)));
}
} // namespace __ptxvm
PTXVM_NV_CALL double __nv_lgamma(double x) {
  using namespace __ptxvm;
  if (x != x)
    return x;
  if (abs(x) == inf())
    return inf();
  if (x > 0.0)
    return lgamma_positive(x);
  if (__builtin_trunc(x) == x)
    return inf();
  if (x > -0x1p-60)
    return -__nv_log(-x);
  // gamma(x) gamma(-x) = -pi / (x sin(pi x))
  return __nv_log(0x1.921fb54442d18p1 / abs(x * __nv_sinpi(x))) - lgamma_positive(-x);
}
PTXVM_NV_CALL double __nv_tgamma(double x) {
  using namespace __ptxvm;
  if (x != x || x == inf())
    return x;
  if (x == 0.0)
    return with_sign(inf(), x);
  if (x < 0.0 && __builtin_trunc(x) == x)
    return nan();
  if (x > 172.0)
    return inf();
  if (abs(x) < 13.0) {
    double over = 1.0, under = 1.0;
    while (x > 1.5) {
      x -= 1.0;
      over *= x;
    }
    while (x < 0.5) {
      under *= x;
      x += 1.0;
    }
    return over / (under * PTXVM_POLY(x - 1.0, PTXVM_RGAMMA));
  }
  if (x < -185.0)
    return 0.0;
  double a = abs(x);
  // sqrt(2 pi) a^(a - 1/2) exp(-a) exp(stirling)
  Sum l = product(log_sum(a), Sum{a - 0.5, 0.0});
  Sum s = sum(l.hi, -a);
  Sum all = fast_sum(s.hi, s.lo + l.lo + stirling(a));
  double half = 0.5 * all.hi;
  double root = exp(half, 0.5 * all.lo);
  if (x > 0.0)
    return 0x1.40d931ff62706p1 * root * root;
  // gamma(a) gamma(-a) = -pi / (a sin(pi a))
  return -0x1.921fb54442d18p1 / (a * __nv_sinpi(a)) / (0x1.40d931ff62706p1 * root) / root;
}

PTXVM_NV double __nv_fmod(double x, double y) {
  using namespace __ptxvm;
  if (!(abs(x) < inf()) || y != y || y == 0.0)
    return nan();
  unsigned q;
  return abs(y) == inf() ? x : with_sign(remainder_of(x, y, q), x);
}
PTXVM_NV double __nv_remquo(double x, double y, int *quotient) {
  using namespace __ptxvm;
  *quotient = 0;
  if (!(abs(x) < inf()) || y != y || y == 0.0)
    return nan();
  if (abs(y) == inf())
    return x;
  unsigned q;
  double r = remainder_of(x, y, q), a = abs(y);
  // Round to the nearest multiple, and a tie to the even one.
  bool up = a < 0x1p-1020 ? 2.0 * r > a || (2.0 * r == a && (q & 1)) : r > 0.5 * a || (r == 0.5 * a && (q & 1));
  if (up) {
    r -= a;
    q += 1;
  }
  *quotient = bits(x) < 0 != bits(y) < 0 ? -(int)(q & 0x7fffffff) : (int)(q & 0x7fffffff);
  return r == 0.0 ? with_sign(0.0, x) : bits(x) < 0 ? -r : r;
}
PTXVM_NV double __nv_remainder(double x, double y) {
  int q;
  return __nv_remquo(x, y, &q);
}
PTXVM_NV double __nv_frexp(double x, int *e) {
  using namespace __ptxvm;
  *e = 0;
  if (x == 0.0 || !(abs(x) < inf()))
    return x;
  int n = 0;
  if (abs(x) < 0x1p-1022) {
    x *= 0x1p54;
    n = -54;
  }
  *e = n + (int)((bits(x) >> 52) & 0x7ff) - 1022;
  return number((bits(x) & ~(0x7ffll << 52)) | 1022ll << 52);
}
PTXVM_NV double __nv_ldexp(double x, int n) {
  using namespace __ptxvm;
  if (x == 0.0 || !(abs(x) < inf()))
    return x;
  int e;
  double m = __nv_frexp(x, &e);
  n = n > 5000 ? 5000 : n < -5000 ? -5000 : n;
  e += n;
  if (e > 1024)
    return with_sign(inf(), x);
  if (e < -1080)
    return with_sign(0.0, x);
  if (e > -1000)
    return 2.0 * m * number((long long)(e - 1 + 1023) << 52);
  // A single rounding step.
  return m * 0x1p-1000 * number((long long)(e + 1000 + 1023) << 52);
}
PTXVM_NV double __nv_scalbn(double x, int n) { return __nv_ldexp(x, n); }
PTXVM_NV int __nv_ilogb(double x) {
  if (x == 0.0 || x != x)
    return -2147483647 - 1;
  if (__ptxvm::abs(x) == __ptxvm::inf())
    return 2147483647;
  int e;
  __nv_frexp(x, &e);
  return e - 1;
}
PTXVM_NV double __nv_logb(double x) {
  if (x == 0.0)
    return -__ptxvm::inf();
  if (!(__ptxvm::abs(x) < __ptxvm::inf()))
    return x * x;
  return (double)__nv_ilogb(x);
}
PTXVM_NV double __nv_modf(double x, double *whole) {
  *whole = __builtin_trunc(x);
  double rest = __ptxvm::abs(x) == __ptxvm::inf() ? 0.0 : x - *whole;
  return __ptxvm::with_sign(rest, x);
}
PTXVM_NV double __nv_nextafter(double x, double y) {
  using namespace __ptxvm;
  if (x != x || y != y)
    return nan();
  if (x == y)
    return y;
  if (x == 0.0)
    return with_sign(number(1), y);
  return number(bits(x) + ((x < y) == (x > 0.0) ? 1 : -1));
}
PTXVM_NV double __nv_fdim(double x, double y) { return x != x || y != y ? __ptxvm::nan() : x > y ? x - y : 0.0; }
PTXVM_NV double __nv_nan(const signed char *) { return __ptxvm::nan(); }
