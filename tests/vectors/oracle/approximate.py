"""Approximate instructions: what the manual bounds is an interval, what its tables list is exact.

Where the manual gives no bound ("TBD", or outside the stated range) the vectors ask for what is written beside them; these
are ptxvm's own promises. Without .ftz a subnormal may be treated as tabulated or as its value (readings A78, A80).
"""
from fractions import Fraction

import mpmath

import number as fp
from form import Either, Range, Suite
from number import F32, F64, NAN
from samples import any_float, float_edges, nans, rng

mpmath.mp.prec = 300


def power(exponent):
    """2^exponent for a fractional exponent, rounded down a little: only for bounds."""
    m = mpmath.mpf(2) ** mpmath.mpf(str(exponent))
    return rational(m)


def rational(m):
    sign, man, exp, _ = m._mpf_
    x = Fraction(man) * Fraction(2) ** exp
    return -x if sign else x


def real(x):
    return mpmath.mpf(x.numerator) / mpmath.mpf(x.denominator)


def interval(exact, error, f, ftz):
    """The floats within error of exact. A result that may be subnormal may, with .ftz must, be flushed."""
    if abs(exact) < fp.value(f.min_normal, f):
        error = max(error, fp.value(1, f))  # a subnormal result may be the neighbour of the exact one
    low, high = fp.round_to(exact - error, f, "rp", zero_sign=exact < 0), fp.round_to(exact + error, f, "rm", zero_sign=exact < 0)
    top = fp.value(f.largest, f)
    if exact + error > top:
        high = f.inf
    if exact - error < -top:
        low = f.inf | f.sign
    zero = f.sign if exact < 0 else 0
    small = fp.value(f.min_normal, f)
    if abs(exact) - error >= small:
        return Range(low, high)
    if ftz:
        if abs(exact) + error < small:
            return zero
        return Either((zero, Range(f.min_normal | zero, max(low & ~f.sign, high & ~f.sign) | zero) if exact > 0 else Range(max(low & ~f.sign, high & ~f.sign) | zero, f.min_normal | zero)))
    return Either((Range(low, high), zero, zero ^ f.sign) if exact == 0 else (Range(low, high), zero))


def division(name, s, domain):
    for ftz in False, True:
        full = "%s%s.f32" % (name, ".ftz" if ftz else "")
        form = s.form(full, "d:f32", "a:f32 b:f32")
        r = rng(full)
        e = float_edges(F32)
        cases = [(a, b) for a in e for b in e if r.random() < 0.35] + [(any_float(r, F32), any_float(r, F32)) for _ in range(60)]
        for a, b in cases:
            if not domain(b):
                continue
            form.vec((a, b), quotient(a, b, ftz))


def quotient(a, b, ftz):
    plain = one_quotient(a, b, ftz)
    flushed = one_quotient(fp.flush(a, F32), fp.flush(b, F32), ftz)
    if ftz:
        return flushed
    return plain if a == fp.flush(a, F32) and b == fp.flush(b, F32) else Either((plain, flushed))


def one_quotient(a, b, ftz):
    special = [fp.is_nan(x, F32) or fp.is_inf(x, F32) or fp.is_zero(x, F32) for x in (a, b)]
    if any(special):
        return fp.div(a, b, F32)
    exact = fp.value(a, F32) / fp.value(b, F32)
    return interval(exact, 2 * fp.spacing(exact, F32), F32, ftz)


def in_approx_range(b):
    """|b| in [2^-126, 2^126], or one of 0, inf, NaN; subnormal b counts as 0 or lies outside."""
    magnitude = b & ~F32.sign
    return magnitude == 0 or magnitude >= F32.inf or F32.min_normal <= magnitude <= 253 << 23


def unary(s, name, f, table, exact, error, domain, ftz_forms=(False, True), extra=(), tail=None, show_low=False):
    """table: bits of +-0, +-inf, NaN, and `subnormal` / `-subnormal` -> result."""
    for ftz in ftz_forms:
        full = "%s%s.%s" % (name, ".ftz" if ftz else "", f.name)
        if show_low:
            form = s.form(full, "d:f64 l:b64", "a:f64", "%s %%d, %%a; mov.b64 %%l, %%d; and.b64 %%l, %%l, 0xffffffff;" % full)
        else:
            form = s.form(full, "d:" + f.name, "a:" + f.name)
        r = rng(full)
        cases = float_edges(f) + [any_float(r, f) for _ in range(30)] + [x(r) if callable(x) else x for x in extra]
        for whole in cases:
            # the 20-bit approximations see the upper word only
            a = whole & ~0xFFFFFFFF if show_low else whole
            if fp.is_nan(a, f):
                out = table["nan"]
            elif fp.is_zero(a, f) or fp.is_inf(a, f):
                out = table[a]
            elif fp.is_subnormal(a, f):
                tabulated = table[a & f.sign]
                if ftz:
                    out = tabulated
                else:
                    out = Either((tabulated, evaluate(a, f, exact, error, ftz)))
            elif not domain(a):
                continue
            else:
                out = evaluate(a, f, exact, error, ftz)
            if show_low and not isinstance(out, (Range, Either)):
                form.vec(whole, (out, 0 if out in (NAN, 0x7FFFFFFF00000000) else out & 0xFFFFFFFF))
            else:
                form.vec(whole, (out, 0) if show_low else out)


def evaluate(a, f, exact, error, ftz):
    x = exact(fp.value(a, f))
    if x is None:
        return NAN
    return interval(x, error(fp.value(a, f), x), f, ftz)


def binade(x):
    return Fraction(2) ** fp.floor_log2(abs(x))


def approximations():
    s = Suite("approximate", "div rcp sqrt rsqrt .approx, div.full, sin cos lg2 ex2: PTX ISA 6.4 sections 9.7.3.8, 9.7.3.13 to 9.7.3.21.",
              "Specials as tabulated; else every float within the bound the manual states for the range it states, and beyond it, in ptxvm's",
              "own promise, the same bound scaled with the exponent (rcp, rsqrt, ex2), plus an ulp of the result (lg2), the same (sin, cos up to 2 pi),",
              "2 ulp for sqrt (f32) and rsqrt (f64), 2^-18 relative for the f64 approximations of 20 bits. Readings: A78 to A81, A89.")
    S, I = F32.sign, F32.inf
    division("div.approx", s, in_approx_range)
    division("div.full", s, lambda b: True)
    positive = lambda x: x if x > 0 else None

    # 2^-23 absolute over [1, 2]: there 1/a is in [1/2, 1]; scaled by the exponent of a
    unary(s, "rcp.approx", F32, {0: I, S: I | S, I: 0, I | S: S, "nan": NAN}, lambda x: 1 / x,
          lambda x, y: Fraction(1, 2**23) / binade(x), lambda a: True,
          extra=[lambda r: F32.one | r.getrandbits(23)] * 30 + [0x7E800000, 0x7E800001, 0x7F000000, 0x00800000, 0x00FFFFFF])
    root = lambda x: rational(mpmath.sqrt(real(x))) if x >= 0 else None
    unary(s, "sqrt.approx", F32, {0: 0, S: S, I: I, I | S: NAN, "nan": NAN}, root, lambda x, y: 2 * fp.spacing(y, F32), lambda a: True,
          extra=[lambda r: any_float(r, F32) & ~S] * 30)
    reciprocal_root = lambda x: rational(1 / mpmath.sqrt(real(x))) if x > 0 else None

    def rsqrt_error(x, y):
        # 2^-22.4 absolute over [1, 4]; scaled by powers of 4
        e = fp.floor_log2(x)
        return power("-22.4") / Fraction(2) ** (e // 2)

    unary(s, "rsqrt.approx", F32, {0: I, S: I | S, I: 0, I | S: NAN, "nan": NAN}, reciprocal_root, rsqrt_error, lambda a: True,
          extra=[lambda r: F32.one + (r.getrandbits(1) << 23) | r.getrandbits(23)] * 30 + [lambda r: any_float(r, F32) & ~S] * 20)
    S64, I64 = F64.sign, F64.inf
    unary(s, "rsqrt.approx", F64, {0: I64, S64: I64 | S64, I64: 0, I64 | S64: NAN, "nan": NAN}, reciprocal_root,
          lambda x, y: 2 * fp.spacing(y, F64), lambda a: True, ftz_forms=(False,), extra=[lambda r: any_float(r, F64) & ~S64] * 30)
    quiet = 0x7FFFFFFF00000000
    gross = lambda x, y: abs(y) / 2**18
    unary(s, "rcp.approx", F64, {0: I64, S64: I64 | S64, I64: 0, I64 | S64: S64, "nan": quiet}, lambda x: 1 / x, gross, lambda a: True,
          ftz_forms=(True,), show_low=True, extra=[lambda r: any_float(r, F64) & ~S64] * 10)
    unary(s, "rsqrt.approx", F64, {0: I64, S64: I64 | S64, I64: 0, I64 | S64: quiet, "nan": quiet}, reciprocal_root, gross,
          lambda a: not a & S64, ftz_forms=(True,), show_low=True, extra=[lambda r: any_float(r, F64) & ~S64] * 30)
    trig = power("-20.9")
    small = lambda a: abs(fp.value(a, F32)) <= 6.2831855
    quadrant = [lambda r: fp.round_to(Fraction(r.random()) * Fraction("1.5707963"), F32)] * 40 + [0x3FC90FDB, 0x40490FDB, 0x3F490FDB, 0x3F000000, 0x3F800000, 0x40000000]
    unary(s, "sin.approx", F32, {0: 0, S: S, I: NAN, I | S: NAN, "nan": NAN}, lambda x: rational(mpmath.sin(real(x))), lambda x, y: trig, small, extra=quadrant)
    unary(s, "cos.approx", F32, {0: F32.one, S: F32.one, I: NAN, I | S: NAN, "nan": NAN}, lambda x: rational(mpmath.cos(real(x))), lambda x, y: trig, small, extra=quadrant)

    def log_error(x, y):
        bound = power("-22.6")
        return bound if 1 <= x < 2 else bound + fp.spacing(y, F32) if y else bound

    unary(s, "lg2.approx", F32, {0: I | S, S: I | S, I: I, I | S: NAN, "nan": NAN}, lambda x: rational(mpmath.log(real(x), 2)) if x > 0 else None,
          log_error, lambda a: True, extra=[lambda r: F32.one | r.getrandbits(23)] * 30 + [lambda r: any_float(r, F32) & ~S] * 20 + [0x40000000, 0x41000000, 0x3F000000, 0x3F7FFFFF])

    def exponential(x):
        if x > 2000:
            return Fraction(2) ** 2000
        if x < -2000:
            return Fraction(1, 2**2000)
        return rational(mpmath.mpf(2) ** real(x))

    near_one = lambda r: fp.round_to(Fraction(r.random()) * r.choice((1, -1, 16, -16, 120, -120)), F32)
    low_results = [0xC2FC0000 + i for i in (0, 1, 0x10000)] + [0xC3080000, 0xC3140000, 0xC3160000, 0xC3158000, 0x43000000, 0x42FFFFFF, 0x42FE0000]

    unary(s, "ex2.approx", F32, {0: F32.one, S: F32.one, I: I, I | S: 0, "nan": NAN}, exponential, lambda x, y: power("-22.5") * binade(y),
          lambda a: True, extra=[near_one] * 40 + low_results)
    return s


SUITES = [approximations]
