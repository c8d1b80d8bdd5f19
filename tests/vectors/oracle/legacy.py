"""Old PTX versions and targets below sm_20: implied modifiers, subnormals flushed by default, mad.f32 with a truncated product.

Sections 9.7.3 (notes on sm_1x and on PTX 1.0 to 1.4), 9.7.5, 9.7.8.14. Readings: A87, A96.
"""
from fractions import Fraction

import approximate
import number as fp
from comparing import compare
from converting import float_result, to_integer
from floating import extremum, fma_operands
from form import Either, Suite
from number import F16, F32, F64, FORMATS, NAN, mask
from samples import any_float, edges, float_edges, pairs, pick, rng

OLD = {"version": "1.4", "target": "sm_13"}


def flushed():
    s = Suite("legacy_flush", "f32 instructions for targets below sm_20 flush subnormals without .ftz; f64 never: PTX ISA 6.4 sections 9.7.3, 9.7.5.")
    some = lambda r: [x for x in float_edges(F32)] + [any_float(r, F32) for _ in range(8)]
    for op, meaning in ("add", fp.add), ("sub", fp.sub), ("mul", fp.mul):
        for rnd in "", ".rn", ".rz":
            for sat in "", ".sat":
                name = "%s%s%s.f32" % (op, rnd, sat)
                f = s.form(name, "d:f32", "a:f32 b:f32", **OLD)
                for a, b in pairs(rng("old" + name), "f32", 12, 40):
                    f.vec((a, b), meaning(a, b, F32, rnd[1:] or "rn", True, bool(sat)))
        for rnd in "", ".rn", ".rm":
            name = "%s%s.f64" % (op, rnd)
            f = s.form(name, "d:f64", "a:f64 b:f64", **OLD)
            for a, b in pairs(rng("old" + name), "f64", 4, 30):
                f.vec((a, b), meaning(a, b, F64, rnd[1:] or "rn"))
    for op in "abs", "neg":
        f = s.form(op + ".f32", "d:f32", "a:f32", **OLD)
        for a in some(rng("old" + op)):
            x = fp.flush(a, F32)
            f.vec(a, NAN if fp.is_nan(a, F32) else x & ~F32.sign if op == "abs" else x ^ F32.sign)
    for op in "min", "max":
        f = s.form(op + ".f32", "d:f32", "a:f32 b:f32", **OLD)
        for a, b in pairs(rng("old" + op), "f32", 8, 60):
            f.vec((a, b), extremum(a, b, F32, op, True))
    for op in "eq", "ne", "lt", "le", "gt", "ge", "equ", "ltu", "num", "nan":
        f = s.form("setp.%s.f32" % op, "p:pred", "a:f32 b:f32", **OLD)
        g = s.form("set.%s.u32.f32" % op, "d:u32", "a:f32 b:f32", **OLD)
        h = s.form("setp.%s.f64" % op, "p:pred", "a:f64 b:f64", **OLD)
        for a, b in pairs(rng("old" + op), "f32", 4, 60) + [(0, 1), (1, 2), (1, F32.sign | 1)]:
            t = compare(a, b, op, "f32", True)
            f.vec((a, b), t)
            g.vec((a, b), mask(32) * t)
        for a, b in [(0, 1), (1, 2), (1, F64.sign | 1), (F64.sign, 0)]:
            h.vec((a, b), compare(a, b, op, "f64"))
    f = s.form("slct.u32.f32", "d:u32", "a:u32 b:u32 c:f32", **OLD)
    for c in some(rng("old slct")):
        f.vec((1, 2, c), 1 if fp.compare(fp.flush(c, F32), 0, "ge", F32) else 2)
    for rnd in ".rn", ".rz", ".rm", ".rp":
        f = s.form("mad%s.f64" % rnd, "d:f64", "a:f64 b:f64 c:f64", **OLD)
        for a, b, c in fma_operands(rng("old mad" + rnd), F64, 30):
            f.vec((a, b, c), fp.fma(a, b, c, F64, rnd[1:]))
    for sat in "", ".sat":
        name = "mad%s.f32" % sat
        f = s.form(name, "d:f32", "a:f32 b:f32 c:f32", **OLD)
        for a, b, c in list(fma_operands(rng("old" + name), F32, 80)) + [(a, b, c) for a in float_edges(F32)[:16:3] for b in float_edges(F32)[1:20:4] for c in (0, F32.sign)]:
            f.vec((a, b, c), truncated_mad(a, b, c, bool(sat)))
    return s


def truncated_mad(a, b, c, sat):
    """The product in double precision, its mantissa cut to 23 bits and its exponent kept; with c = +-0 mul and add."""
    a, b, c = fp.inputs(True, F32, a, b, c)
    if any(fp.is_nan(x, F32) or fp.is_inf(x, F32) for x in (a, b, c)):
        return fp.finish(fp.fma(a, b, c, F32), F32, True, sat)
    if fp.is_zero(c, F32):
        p = fp.mul(a, b, F32, "rn", True)
        return fp.add(p, c, F32, "rn", True, sat)
    p = fp.value(a, F32) * fp.value(b, F32)
    if p:
        unit = Fraction(2) ** (fp.floor_log2(abs(p)) - 23)
        q = abs(p) / unit
        p = (1 if p > 0 else -1) * Fraction(q.numerator // q.denominator) * unit
    return fp.finish(fp.round_to(p + fp.value(c, F32), F32), F32, True, sat)


def implied():
    s = Suite("legacy_default", "Modifiers that PTX 1.0 to 1.3 imply (div.f32 is div.approx.ftz.f32, rcp.f64 is rcp.rn.f64, ...), and mad without a rounding",
              "until 3.1: PTX ISA 6.4 sections 9.7.3.7 to 9.7.3.21; cvt of PTX 1.4 and earlier, which flushes f32 only beside 16 and 32 bits: 9.7.8.14.")
    v = {"version": "1.3", "target": "sm_13"}
    for op, meaning in ("div", lambda a, b: fp.div(a, b, F64)), :
        f = s.form("div.f64", "d:f64", "a:f64 b:f64", **v)
        for a, b in pairs(rng("old div"), "f64", 12, 30):
            f.vec((a, b), meaning(a, b))
    for op, meaning in ("rcp", lambda a: fp.div(F64.one, a, F64)), ("sqrt", lambda a: fp.sqrt(a, F64)):
        f = s.form(op + ".f64", "d:f64", "a:f64", **v)
        r = rng("old" + op)
        for a in float_edges(F64) + [any_float(r, F64) for _ in range(12)]:
            f.vec(a, meaning(a))
    f = s.form("mad.f64", "d:f64", "a:f64 b:f64 c:f64", **v)
    for a, b, c in fma_operands(rng("old mad f64"), F64, 30):
        f.vec((a, b, c), fp.fma(a, b, c, F64))
    # the approximations: the same vectors as those of the .approx.ftz forms
    modern = {form.name: form for form in approximate.approximations().forms}
    for op, name in [("div.f32", "div.approx.ftz.f32")] + [(o + ".f32", o + ".approx.ftz.f32") for o in ("rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2")] + [("rsqrt.f64", "rsqrt.approx.f64")]:
        source = modern[name]
        f = s.form(op, " ".join(source.outs), " ".join(source.ins), **v)
        f.lines = source.lines[::2]
    for version in "2.0", "3.0", "3.1":
        for sat in "", ".sat", ".ftz", ".ftz.sat":
            f = s.form("mad%s.f32 in %s" % (sat, version), "d:f32", "a:f32 b:f32 c:f32", "mad%s.f32 %%d, %%a, %%b, %%c;" % sat, version=version, target="sm_20")
            for a, b, c in fma_operands(rng("mad" + version), F32, 20):
                f.vec((a, b, c), fp.fma(a, b, c, F32, "rn", "ftz" in sat, "sat" in sat))
    conversions(s)
    return s


def conversions(s):
    for version in "1.4", "2.0":
        for d, a, mode in ("f32", "f64", "rn"), ("f32", "f64", "rz"), ("f64", "f32", ""), ("f32", "f32", ""), ("f32", "f32", "rni"), ("f32", "f32", "rpi"), ("f16", "f32", "rn"), ("f32", "f16", ""):
            fd, fa = FORMATS[d], FORMATS[a]
            name = "cvt%s.%s.%s" % ("." + mode if mode else "", d, a)
            ftz = version == "2.0" or "f64" not in (d, a)
            f = s.form(name + " in " + version, "d:" + d, "a:" + a, name + " %d, %a;", version=version, target="sm_13")
            r = rng(name + version)
            low = [1, 0x007FFFFF, 0x00400000, 0x80000001] if a == "f32" else [0x3690000000000000, 0x380FFFFFC0000000, 0x3800000000000000] if a == "f64" else [1, 0x8001]
            for x in float_edges(fa) + low + [any_float(r, fa) for _ in range(8)]:
                f.vec(x, float_result(x, fa, fd, mode, ftz, False))
        for d in "s32", "u64", "s64", "u16":
            for mode in "rni", "rmi", "rpi":
                name = "cvt.%s.%s.f32" % (mode, d)
                # 1.4 and earlier: the integer notes exempt 64-bit destinations, the floating-point notes all integers
                open_question = version == "1.4" and d[1:] != "64"
                f = s.form(name + " in " + version, "d:" + d, "a:f32", name + " %d, %a;", version=version, target="sm_13")
                for x in (0, 1, F32.sign | 1, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000, F32.one, 0x3F000000, 0xBFC00000, F32.inf, F32.inf | F32.sign, 0x4F800000):
                    result = to_integer(x, F32, d, mode, version == "2.0")
                    f.vec(x, Either((result, to_integer(x, F32, d, mode, True))) if open_question else result)


SUITES = [flushed, implied]
