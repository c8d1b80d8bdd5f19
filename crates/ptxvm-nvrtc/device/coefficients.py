#!/usr/bin/env python3
"""Prints the macros of `coefficients.h`: polynomials that approximate functions on an interval, and constants in two or three parts.

Each polynomial interpolates at Chebyshev nodes, computed by mpmath with 60 digits and rounded to double precision,
lowest coefficient first. The figure after it is its largest error on the interval.
"""

import mpmath as mp

mp.mp.dps = 60


def fit(name, function, interval, degree):
    poly, error = mp.chebyfit(function, interval, degree + 1, error=True)
    texts = [float(c).hex() for c in reversed(poly)]
    print(f"// {function.__doc__} on {[float(x) for x in interval]}: {mp.nstr(error, 2)}")
    print(f"#define PTXVM_{name} {', '.join(texts)}")


def parts(name, value, count, bits=53):
    texts = []
    for _ in range(count):
        with mp.workprec(bits):
            part = mp.mpf(float(value)) if bits == 53 else +value
        texts.append(float(part).hex())
        value -= part
    print(f"#define PTXVM_{name} {', '.join(texts)}")


def series(first, term, count=60):
    return lambda t: mp.fsum(term(n) * t ** (n - first) for n in range(first, first + count))


def described(text, function):
    function.__doc__ = text
    return function


def main():
    quarter = (mp.pi / 4) ** 2
    third = mp.tan(mp.pi / 12) ** 2
    half_log = mp.log(2) / 2
    fraction = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2
    exp = described("(exp(x) - 1 - x) / x^2", series(2, lambda n: 1 / mp.factorial(n)))
    sin = described("(sin(x) - x) / x^3 by x^2", series(1, lambda n: (-1) ** n / mp.factorial(2 * n + 1)))
    cos = described("(cos(x) - 1 + x^2/2) / x^4 by x^2", series(2, lambda n: (-1) ** n / mp.factorial(2 * n)))
    log = described("(atanh(x) / x - 1) / x^2 by x^2", series(1, lambda n: mp.mpf(1) / (2 * n + 1)))
    log2nd = described("(atanh(x) / x - 1 - x^2/3) / x^4 by x^2", series(2, lambda n: mp.mpf(1) / (2 * n + 1)))
    atan = described("(atan(x) / x - 1) / x^2 by x^2", series(1, lambda n: mp.mpf((-1) ** n) / (2 * n + 1)))
    asin = described(
        "(asin(x) / x - 1) / x^2 by x^2",
        series(1, lambda n: mp.binomial(2 * n, n) / mp.mpf(4) ** n / (2 * n + 1), 120),
    )
    erf = described("erf(x) / x - 1 by x^2", lambda t: mp.erf(mp.sqrt(t)) / mp.sqrt(t) - 1 if t > 1e-50 else 2 / mp.sqrt(mp.pi) - 1)

    def erfcx(q):
        "(1 + 2x) exp(x^2) erfc(x) by (x - 4) / (x + 4)"
        if q > 1 - mp.mpf(10) ** -30:
            return 2 / mp.sqrt(mp.pi)
        x = 4 * (1 + q) / (1 - q)
        if x > 1000:
            inner = mp.fsum((-1) ** n * mp.fac2(2 * n - 1) / (2 * x * x) ** n for n in range(12))
            return (1 + 2 * x) / (x * mp.sqrt(mp.pi)) * inner
        return (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x)

    rgamma = described("1 / gamma(1 + x)", lambda x: mp.rgamma(1 + x))
    lgamma1 = described("lgamma(1 + x) / x", lambda x: mp.loggamma(1 + x) / x if abs(x) > 1e-40 else -mp.euler)
    lgamma2 = described("lgamma(2 + x) / x", lambda x: mp.loggamma(2 + x) / x if abs(x) > 1e-40 else 1 - mp.euler)
    fit("EXP", exp, [-half_log, half_log], 10)
    fit("EXP_SHORT", exp, [-half_log, half_log], 5)
    fit("SIN", sin, [0, quarter], 6)
    fit("SIN_SHORT", sin, [0, quarter], 3)
    fit("COS", cos, [0, quarter], 6)
    fit("COS_SHORT", cos, [0, quarter], 3)
    fit("LOG", log, [0, fraction], 8)
    fit("LOG_SHORT", log, [0, fraction], 3)
    fit("LOG_REST", log2nd, [0, fraction], 7)
    fit("ATAN", atan, [0, third], 10)
    fit("ATAN_SHORT", atan, [0, third], 4)
    fit("ASIN", asin, [0, mp.mpf(1) / 4], 16)
    fit("ASIN_SHORT", asin, [0, mp.mpf(1) / 4], 7)
    fit("ERF", erf, [0, 1], 13)
    fit("ERFCX", erfcx, [-1, 1], 26)
    fit("RGAMMA", rgamma, [-0.5, 0.5], 17)
    fit("LGAMMA_1", lgamma1, [-0.3, 0.5], 26)
    fit("LGAMMA_2", lgamma2, [-0.5, 0.5], 22)
    print("// log(2), its inverse, log10(e), log2(10), pi/2 and 2/pi, each as a sum of decreasing terms.")
    parts("LN2", mp.log(2), 3, 40)
    parts("LN2_2", mp.log(2), 2)
    parts("LOG2_E", 1 / mp.log(2), 2)
    parts("LOG10_E", 1 / mp.log(10), 2)
    parts("LOG10_2", mp.log10(2), 3, 40)
    parts("LOG2_10", mp.log(10, 2), 2)
    parts("LN10", mp.log(10), 2)
    parts("HALF_PI", mp.pi / 2, 3)
    print("// The bits of 2/pi after the binary point, from the first.")
    with mp.workprec(1400):
        value = 2 / mp.pi
        words = [int(mp.floor(value * mp.mpf(2) ** (64 * n))) % 2**64 for n in range(1, 21)]
    print(f"#define PTXVM_TWO_OVER_PI {', '.join(f'{word:#x}' for word in words)}")


main()
