"""Conversions to and from numbers of eight bits, e4m3 and e5m2 (PTX 7.8), by tables of all their values and exact fractions; pairs of singles (PTX 8.6)."""
from fractions import Fraction

from form import Suite
from number import F16, F32, add, fma, is_inf, is_nan, mask, mul, negative, round_to, sub, value
from samples import any_float, float_edges, rng

NAN = 0x7F
# exponent bits, fraction bits, bias, greatest finite pattern
FORMATS = {"e4m3x2": (4, 3, 7, 0x7E), "e5m2x2": (5, 2, 15, 0x7B)}


def number(bits, kind):
    """The value of a finite pattern without its sign."""
    _, fraction, bias, _ = FORMATS[kind]
    e, m = bits >> fraction, bits & mask(fraction)
    return Fraction(m if e == 0 else m | 1 << fraction) * Fraction(2) ** (max(e, 1) - bias - fraction)


def narrow(bits, source, kind, relu):
    """To nearest, ties to even, by looking at every pattern; finite; NaN is 0x7f."""
    if is_nan(bits, source):
        return NAN
    greatest = FORMATS[kind][3]
    sign = 0x80 if negative(bits, source) else 0
    if is_inf(bits, source):
        best = greatest
    else:
        x = abs(value(bits, source))
        best = min(range(greatest + 1), key=lambda p: (abs(number(p, kind) - x), p & 1))
    return 0 if relu and sign else sign | best


def widen(bits, kind, relu):
    exponents, fraction, _, greatest = FORMATS[kind]
    magnitude = bits & 0x7F
    if magnitude > greatest:
        infinite = kind == "e5m2x2" and magnitude == 0x7C
        if not infinite:
            return 0x7FFF
        return 0 if relu and bits & 0x80 else (bits & 0x80) << 8 | F16.inf
    if relu and bits & 0x80:
        return 0
    return (bits & 0x80) << 8 | round_to(number(magnitude, kind), F16)


def conversions():
    s = Suite("tiny", "cvt from and to e4m3x2 and e5m2x2 (PTX 7.8): every number of eight bits, and every place between two of them.")
    options = {"version": "8.1", "target": "sm_89"}
    for kind in FORMATS:
        greatest = FORMATS[kind][3]
        places = []
        for p in range(greatest + 1):
            low, high = number(p, kind), number(p + 1, kind) if p < greatest else number(p, kind) * Fraction(9, 8)
            middle = round_to((low + high) / 2, F32)
            places += [round_to(low, F32), middle, middle - 1 if middle else 0, middle + 1]
        singles = places + [x | 1 << 31 for x in places] + list(float_edges(F32))
        r = rng("tiny" + kind)
        singles += [any_float(r, F32) for _ in range(100)]
        halves = list(range(0, 1 << 16, 37)) + list(float_edges(F16))
        for relu in "", ".relu":
            f = s.form("cvt.rn.satfinite%s.%s.f32" % (relu, kind), "d:b16", "a:f32 b:f32", **options)
            for i, a in enumerate(singles):
                b = singles[(i * 7 + 3) % len(singles)]
                f.vec((a, b), narrow(a, F32, kind, relu) << 8 | narrow(b, F32, kind, relu))
            name = "cvt.rn.satfinite%s.%s.f16x2" % (relu, kind)
            f = s.form(name, "d:b16", "a:b32", ".reg .b32 %%t; mov.b32 %%t, %%a; %s %%d, %%t;" % name, **options)
            for i, a in enumerate(halves):
                b = halves[(i * 11 + 5) % len(halves)]
                f.vec(a << 16 | b, narrow(a, F16, kind, relu) << 8 | narrow(b, F16, kind, relu))
            name = "cvt.rn%s.f16x2.%s" % (relu, kind)
            f = s.form(name, "d:b32", "a:b16", ".reg .b16 %%t; mov.b16 %%t, %%a; %s %%d, %%t;" % name, **options)
            for a in range(256):
                b = a * 77 + 5 & 255
                f.vec(a << 8 | b, widen(a, kind, relu) << 16 | widen(b, kind, relu))
    return s


def pairs():
    s = Suite("pairs", "add, sub, mul and fma of f32x2 (PTX 8.6): half by half as single precision.")
    options = {"version": "8.6", "target": "sm_100"}
    for op, meaning in ("add", add), ("sub", sub), ("mul", mul), ("fma", fma):
        count = 3 if op == "fma" else 2
        for mode in ("rn", "rz", "rm", "rp") if op == "fma" else ("", "rn", "rz", "rm", "rp"):
            for ftz in False, True:
                name = op + ("." + mode if mode else "") + (".ftz" if ftz else "") + ".f32x2"
                ins = "abc"[:count]
                moves = " ".join(".reg .b64 %%t%s; mov.b64 %%t%s, {%%%s0, %%%s1};" % (x, x, x, x) for x in ins)
                body = "%s .reg .b64 %%td; %s %%td, %s; mov.b64 {%%d0, %%d1}, %%td;" % (moves, name, ", ".join("%t" + x for x in ins))
                f = s.form(name, "d0:f32 d1:f32", " ".join("%s0:f32 %s1:f32" % (x, x) for x in ins), body, **options)
                r = rng(name)
                for _ in range(60):
                    operands = [[any_float(r, F32) for _ in range(2)] for _ in ins]
                    results = [meaning(*(x[half] for x in operands), F32, mode or "rn", ftz=ftz) for half in range(2)]
                    f.vec(tuple(x for both in operands for x in both), tuple(results))
    return s


SUITES = [conversions, pairs]
