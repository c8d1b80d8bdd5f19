"""bfloat16, and what half precision gained after PTX 6.4: add, sub, mul, fma, neg, abs, min, max, set, setp, cvt, tanh, ex2.

Written after the PTX ISA manual, versions 6.5 to 8.1. A NaN of the 16-bit formats is 0x7fff here, as that manual has it for `.NaN`,
`.relu` and conversions; ptxvm gives the same in the other instructions, where the manual leaves the bits open.
"""
from fractions import Fraction

import mpmath

import approximate
import number as fp
from comparing import BOOL, FLOAT_OPS, compare, operands
from converting import FRND, INTS, IRND, can_saturate, extend, float_result, integer_borders, narrow_cases, to_integer, width
from floating import BINARY, fma_operands, near, near_product
from form import Either, Halves, Range, Suite
from number import BF16, F16, F32, F64, FORMATS, NAN, mask, read
from samples import any_float, any_int, float_edges, int_edges, nans, pairs, pick, rng

QUIET = 0x7FFF
SM_80 = {"version": "7.0", "target": "sm_80"}
SM_86 = {"version": "7.2", "target": "sm_86"}
SM_90 = {"version": "7.8", "target": "sm_90"}
FINITE = {"version": "8.1", "target": "sm_80"}


def canonical(x, f):
    if x != NAN and not fp.is_nan(x, f):
        return x
    return QUIET if f.width == 16 else 0x7FFFFFFF if f == F32 else NAN


def relu(x, f):
    x = canonical(x, f)
    return x if fp.is_nan(x, f) else 0 if fp.negative(x, f) else x


def finite(x, f):
    x = canonical(x, f)
    return x - 1 if fp.is_inf(x, f) else x


def both(s, name, f, count, cases, meaning, **options):
    """A form of one number, and the packed one with the next case in the high half."""
    k = f.name
    letters = "abc"[:count]
    one = s.form(name + "." + k, "d:" + k, " ".join("%s:%s" % (c, k) for c in letters), **options)
    two = s.form(name + "." + k + "x2", "d:%sx2" % k, " ".join("%s:%sx2" % (c, k) for c in letters), **options)
    cases = [c if isinstance(c, tuple) else (c,) for c in cases]
    for low, high in zip(cases, cases[3:] + cases[:3]):
        x, y = meaning(*low), meaning(*high)
        one.vec(low, x)
        two.vec(tuple(p | q << 16 for p, q in zip(low, high)), Halves((x, y)))


def extremum(a, b, f, op, ftz, nan, xorsign):
    """The pseudocode of min and max; -0 is less than +0 in the 16-bit formats."""
    a, b = fp.inputs(ftz, f, a, b)
    sign = (a ^ b) & f.sign
    if xorsign:
        a, b = a & ~f.sign, b & ~f.sign
    if fp.is_nan(a, f) and fp.is_nan(b, f) or nan and (fp.is_nan(a, f) or fp.is_nan(b, f)):
        return canonical(NAN, f)
    if fp.is_nan(a, f) or fp.is_nan(b, f):
        d = b if fp.is_nan(a, f) else a
    else:
        order = fp.order_key(a, f) - fp.order_key(b, f)
        d = a if (order < 0) == (op == "min") else b
        if f == F32 and not xorsign and fp.is_zero(a, f) and fp.is_zero(b, f) and a != b:
            return Either((a, b))
    return d & ~f.sign | sign if xorsign else d


def arithmetic():
    s = Suite("bfloat", "add sub mul fma neg abs min max of bf16 and bf16x2; fma.relu, abs, min and max of f16 and f16x2; .NaN and .xorsign.abs of f32.",
              "PTX ISA 7.0, 7.2, 7.8. NaN is 0x7fff.")
    f = BF16
    for op, meaning in BINARY.items():
        for rnd in "", ".rn":
            r = rng(op + rnd + "bf16")
            cases = pairs(r, "bf16", 60, 60) + [near(r, f) if op != "mul" else near_product(r, f) for _ in range(60)]
            both(s, op + rnd, f, 2, cases, lambda a, b: canonical(meaning(a, b, f), f), **SM_90)
    for f in BF16, F16:
        for ftz in (False, True) if f == F16 else (False,):
            for clamp in (False, True) if f == BF16 else (True,):
                name = "fma.rn" + (".ftz" if ftz else "") + (".relu" if clamp else "")
                cases = list(fma_operands(rng(name + f.name), f, 200))
                end = relu if clamp else canonical
                both(s, name, f, 3, cases, lambda a, b, c: end(fp.fma(a, b, c, f, "rn", ftz), f), **SM_80)
            for op in ("neg", "abs") if f == BF16 else ("abs",):
                name = op + (".ftz" if ftz else "")
                r = rng(name + f.name)

                def bits(a):
                    a = fp.flush(a, f) if ftz else a
                    return QUIET if fp.is_nan(a, f) else a & ~f.sign if op == "abs" else a ^ f.sign

                options = SM_80 if f == BF16 else {"version": "6.5", "target": "sm_53"}
                both(s, name, f, 1, float_edges(f) + [any_float(r, f) for _ in range(12)], bits, **options)
        for op in "min", "max":
            for ftz in (False, True) if f == F16 else (False,):
                for nan in False, True:
                    for xorsign in False, True:
                        name = op + (".ftz" if ftz else "") + (".NaN" if nan else "") + (".xorsign.abs" if xorsign else "")
                        cases = extremum_operands(rng(name + f.name), f)
                        both(s, name, f, 2, cases, lambda a, b: extremum(a, b, f, op, ftz, nan, xorsign), **(SM_86 if xorsign else SM_80))
    f = F32
    for op in "min", "max":
        for ftz in False, True:
            for nan, xorsign in (True, False), (False, True), (True, True):
                name = op + (".ftz" if ftz else "") + (".NaN" if nan else "") + (".xorsign.abs" if xorsign else "") + ".f32"
                form = s.form(name, "d:f32", "a:f32 b:f32", **(SM_86 if xorsign else SM_80))
                for a, b in extremum_operands(rng(name), f):
                    form.vec((a, b), extremum(a, b, f, op, ftz, nan, xorsign))
    return s


def extremum_operands(r, f):
    zeros = [(a, b) for a in (0, f.sign, 1, f.sign | 1) for b in (0, f.sign, 1, f.sign | 1)]
    special = [(a, b) for a in nans(f) for b in nans(f) + [f.one, f.one | f.sign, f.inf, f.sign | f.inf, f.sign, 1]]
    return zeros + special + [(b, a) for a, b in special] + pairs(r, f.name, 20, 40)


def comparisons():
    s = Suite("bfloat_compare", "set and setp of bf16 and bf16x2; set of f16 and f16x2 to integers. PTX ISA 6.5, 7.8.", "Readings: A90 to A92.")
    for op in FLOAT_OPS:
        for k, ftz in ("bf16", False), ("f16", False), ("f16", True):
            options = SM_90 if k == "bf16" else {"version": "6.5", "target": "sm_53"}
            tail = ".ftz" if ftz else ""
            r = rng("newer set" + op + k + tail)
            cases = operands(r, k, 22)
            to = ["u16", "s16", "u32", "s32"] + (["bf16"] if k == "bf16" else [])
            body, outs = "", []
            for d in to:
                body += " set.{0}{1}.{2}.{3} %x{2}, %a, %b; set.{0}.xor{1}.{2}.{3} %y{2}, %a, %b, !%c;".format(op, tail, d, k)
                outs += ["x%s:%s" % (d, d), "y%s:%s" % (d, d)]
            form = s.form("set.%s%s.*.%s" % (op, tail, k), " ".join(outs), "a:%s b:%s c:pred" % (k, k), body, **options)
            for a, b in cases:
                c = r.getrandbits(1)
                t = compare(a, b, op, k, ftz)
                out = ()
                for d in to:
                    one = BF16.one if d == "bf16" else mask(width(d))
                    out += (one if t else 0, one if t ^ (1 - c) else 0)
                form.vec((a, b, c), out)
            to = ["u32", "s32"] + (["bf16x2"] if k == "bf16" else [])
            body, outs = "", []
            for d in to:
                body += " set.{0}{1}.{2}.{3}x2 %x{2}, %a, %b; set.{0}.and{1}.{2}.{3}x2 %y{2}, %a, %b, %c;".format(op, tail, d, k)
                outs += ["x%s:%s" % (d, d), "y%s:%s" % (d, d)]
            form = s.form("set.%s%s.*.%sx2" % (op, tail, k), " ".join(outs), "a:%sx2 b:%sx2 c:pred" % (k, k), body, **options)
            for (a, b), (a1, b1) in zip(cases, cases[5:] + cases[:5]):
                c = r.getrandbits(1)
                t = [compare(p, q, op, k, ftz) for p, q in ((a, b), (a1, b1))]
                out = ()
                for d in to:
                    one = BF16.one if d == "bf16x2" else mask(16)
                    out += tuple((one if x else 0) | (one if y else 0) << 16 for x, y in (t, [v & c for v in t]))
                form.vec((a | a1 << 16, b | b1 << 16, c), out)
        r = rng("setp bf16" + op)
        body = "setp.%s.bf16 %%p, %%a, %%b;" % op
        outs = "p:pred"
        for i, bo in enumerate(BOOL):
            body += " setp.%s.%s.bf16 %%s%d, %%a, %%b, %%c; setp.%s.%s.bf16 %%n%d, %%a, %%b, !%%c;" % (op, bo, i, op, bo, i)
            outs += " s%d:pred n%d:pred" % (i, i)
        form = s.form("setp.%s.*.bf16" % op, outs, "a:bf16 b:bf16 c:pred", body, **SM_90)
        cases = operands(r, "bf16", 22)
        for i, (a, b) in enumerate(cases):
            t, c = compare(a, b, op, "bf16"), i & 1
            form.vec((a, b, c), (t,) + tuple(x for combine in BOOL.values() for x in (combine(t, c), combine(t, 1 - c))))
        body = "setp.%s.bf16x2 %%p|%%q, %%a, %%b; setp.%s.or.bf16x2 %%r|%%s, %%a, %%b, !%%c;" % (op, op)
        form = s.form("setp.%s.*.bf16x2" % op, "p:pred q:pred r:pred s:pred", "a:bf16x2 b:bf16x2 c:pred", body, **SM_90)
        for (a, b), (a1, b1) in zip(cases, cases[5:] + cases[:5]):
            c = r.getrandbits(1)
            t, u = compare(a, b, op, "bf16"), compare(a1, b1, op, "bf16")
            form.vec((a | a1 << 16, b | b1 << 16, c), (t, u, t | 1 - c, u | 1 - c))
    for k in "b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f16", "f32", "f64":
        for op in ("eq", "ne") if k[0] == "b" else ("lt", "ge"):
            form = s.form("set.%s.bf16.%s" % (op, k), "d:bf16", "a:%s b:%s" % (k, k), **SM_90)
            for a, b in operands(rng("set bf16" + op + k), k, 20):
                form.vec((a, b), BF16.one if compare(a, b, op, k) else 0)
    return s


def conversions():
    s = Suite("bfloat_cvt", "cvt from and to bf16; into f16x2 and bf16x2; .relu and .satfinite; tf32. PTX ISA 7.0, 7.1, 7.8, 8.1.",
              "NaN is 0x7fff in the 16-bit formats, 0x7fffffff in f32 and tf32.")
    for f in F16, BF16:
        for mode in "rn", "rz":
            for clamp in False, True:
                for top in False, True:
                    if f == F16 and not clamp and not top:
                        continue
                    words = mode + (".relu" if clamp else "") + (".satfinite" if top else "")
                    r = rng("cvt" + words + f.name)
                    cases = float_edges(F32) + [any_float(r, F32) for _ in range(20)] + narrow_cases(r, F32, f)

                    def meaning(x):
                        x = canonical(fp.convert(x, F32, f, mode), f)
                        x = finite(x, f) if top else x
                        return relu(x, f) if clamp else x

                    options = FINITE if top else SM_80
                    one = s.form("cvt.%s.%s.f32" % (words, f.name), "d:" + f.name, "a:f32", **options)
                    two = s.form("cvt.%s.%sx2.f32" % (words, f.name), "d:%sx2" % f.name, "a:f32 b:f32", **options)
                    for x, y in zip(cases, cases[5:] + cases[:5]):
                        one.vec(x, meaning(x))
                        two.vec((x, y), meaning(x) << 16 | meaning(y))
    for mode in "rn", "rz":
        form = s.form("cvt.%s.f16x2.f32" % mode, "d:f16x2", "a:f32 b:f32", **SM_80)
        r = rng(form.name)
        cases = float_edges(F32) + narrow_cases(r, F32, F16)
        for x, y in zip(cases, cases[5:] + cases[:5]):
            form.vec((x, y), canonical(fp.convert(x, F32, F16, mode), F16) << 16 | canonical(fp.convert(y, F32, F16, mode), F16))
    for mode in "rm", "rp":
        form = s.form("cvt.%s.bf16.f32" % mode, "d:bf16", "a:f32", **SM_90)
        r = rng(form.name)
        for x in float_edges(F32) + [any_float(r, F32) for _ in range(20)] + narrow_cases(r, F32, BF16):
            form.vec(x, canonical(fp.convert(x, F32, BF16, mode), BF16))
    for d, a in ("bf16", "f32"), ("bf16", "f16"), ("bf16", "f64"), ("f16", "bf16"), ("f32", "bf16"), ("f64", "bf16"), ("bf16", "bf16"):
        fd, fa = FORMATS[d], FORMATS[a]
        exact = d in ("f32", "f64")
        for mode in ["", *IRND] if d == a else [""] if exact else FRND:
            for ftz in (False, True) if d == "f32" else (False,):
                for sat in False, True:
                    if (d, a, sat) == ("bf16", "f32", False):
                        continue
                    name = "cvt%s%s%s.%s.%s" % ("." + mode if mode else "", ".ftz" if ftz else "", ".sat" if sat else "", d, a)
                    options = {"version": "7.1", "target": "sm_80"} if d == "f32" else SM_90
                    form = s.form(name, "d:" + d, "a:" + a, **options)
                    r = rng(name)
                    cases = float_edges(fa) + [any_float(r, fa) for _ in range(30)]
                    if fa.precision > fd.precision:
                        cases += narrow_cases(r, fa, fd) if a != "f16" else [x for x in range(0, 0x10000, 331)]
                    if mode in IRND:
                        cases += [fp.round_to(Fraction(n, 4), fa) for n in range(-11, 12)]
                    for x in cases:
                        y = float_result(x, fa, fd, mode, ftz, sat)
                        # a copy keeps the bits of a NaN
                        form.vec(x, x if d == a and not mode and not sat else canonical(y, fd) if y == NAN else y)
    for k in INTS:
        for mode in FRND:
            name = "cvt.%s.*.bf16.%s" % (mode, k)
            form = s.form(name, "d:bf16 e:bf16", "a:" + k[0] + str(max(16, width(k))), "cvt.{0}.bf16.{1} %d, %a; cvt.{0}.sat.bf16.{1} %e, %a;".format(mode, k), **SM_90)
            r = rng(name)
            cases = int_edges(width(k)) + [any_int(r, width(k)) for _ in range(16)]
            if width(k) > 8:
                for _ in range(12):
                    shift = r.randint(1, width(k) - 8)
                    cases.append(((0x80 | r.getrandbits(7)) << shift) + (1 << (shift - 1)) + r.randint(-1, 1) & mask(width(k)))
            for x in cases:
                y = fp.round_to(Fraction(read(x, k)), BF16, mode)
                form.vec(x | (r.getrandbits(8) << 8 if width(k) == 8 else 0), (y, fp.finish(y, BF16, False, True)))
        for mode in IRND:
            own = k[0] + str(max(16, width(k)))
            form = s.form("cvt.%s.*.%s.bf16" % (mode, k), "d:%s e:%s" % (own, own), "a:bf16", "cvt.{0}.{1}.bf16 %d, %a; cvt.{0}.sat.{1}.bf16 %e, %a;".format(mode, k), **SM_90)
            r = rng(form.name)
            for x in float_edges(BF16) + integer_borders(r, BF16, k) + [any_float(r, BF16) for _ in range(10)]:
                y = to_integer(x, BF16, k, mode, False)
                form.vec(x, (extend(y, k, width(own)),) * 2)
    tf32 = fp.Format("tf32", 19, 11, 127)
    for mode in "rna", "rn", "rz":
        for top in False, True:
            for clamp in (False, True) if mode != "rna" else (False,):
                name = "cvt." + mode + (".satfinite" if top else "") + (".relu" if clamp else "") + ".tf32.f32"
                options = {"version": "8.1", "target": "sm_90"} if top else SM_80 if mode == "rna" else SM_90
                form = s.form(name, "d:b32", "a:f32", **options)
                r = rng(name)
                for x in float_edges(F32) + [any_float(r, F32) for _ in range(20)] + narrow_cases(r, F32, tf32):
                    y = to_tf32(x, tf32, mode)
                    if y != NAN and top and fp.is_inf(y, tf32):
                        y -= 1
                    if y != NAN and clamp and fp.negative(y, tf32):
                        y = 0
                    form.vec(x, 0x7FFFFFFF if y == NAN else y << 13)
    return s


def to_tf32(x, tf32, mode):
    """The upper 19 bits of a result."""
    if fp.is_nan(x, F32):
        return NAN
    if mode != "rna" or fp.is_inf(x, F32):
        return fp.convert(x, F32, tf32, mode if mode != "rna" else "rn")
    low = fp.convert(x, F32, tf32, "rz")
    rest = abs(fp.value(x, F32)) - abs(fp.value(low, tf32))
    return low + (2 * rest >= fp.spacing(fp.value(low, tf32), tf32))


def approximations():
    s = Suite("bfloat_approximate", "tanh.approx of f32, f16 and bf16, ex2.approx of f16 and bf16. PTX ISA 7.0, 7.8.",
              "Specials exactly; else within the manual's bound: of tanh 2^-11 relative for f32, 2^-10.987 absolute for f16, 2^-8 absolute for",
              "bf16; of ex2 2^-9.9 relative for f16, 2^-7 for bf16, plus one unit of a subnormal result.")

    def hyperbolic(x):
        return approximate.rational(mpmath.tanh(approximate.real(x))) if abs(x) < 100 else Fraction(1 if x > 0 else -1)

    def exponential(x):
        return approximate.rational(mpmath.mpf(2) ** approximate.real(max(min(x, Fraction(2000)), Fraction(-2000))))

    bounds = {
        ("tanh", "f32"): lambda y: abs(y) * approximate.power("-11"),
        ("tanh", "f16"): lambda y: approximate.power("-10.987"),
        ("tanh", "bf16"): lambda y: approximate.power("-8"),
        ("ex2", "f16"): lambda y: y * approximate.power("-9.9"),
        ("ex2", "bf16"): lambda y: y * approximate.power("-7"),
    }
    for (op, k), bound in bounds.items():
        f = FORMATS[k]
        ftz = op == "ex2" and k == "bf16"
        r = rng("newer " + op + k)
        cases = float_edges(f) + [any_float(r, f) for _ in range(60)]
        cases += [fp.round_to(Fraction(r.uniform(-20, 20)), f) for _ in range(60)] + [fp.round_to(Fraction(r.uniform(-1, 1)), f) for _ in range(40)]
        exact = hyperbolic if op == "tanh" else exponential

        def meaning(x):
            if ftz:
                x = fp.flush(x, f)
            if fp.is_nan(x, f):
                return canonical(NAN, f)
            if op == "tanh" and (fp.is_zero(x, f) or fp.is_inf(x, f)):
                return x if fp.is_zero(x, f) else x & f.sign | f.one
            if op == "ex2" and (fp.is_zero(x, f) or fp.is_inf(x, f)):
                return f.one if fp.is_zero(x, f) else 0 if fp.negative(x, f) else f.inf
            y = exact(fp.value(x, f))
            error = max(bound(y), fp.value(1, f) if abs(y) < fp.value(f.min_normal, f) else 0)
            low, high = fp.round_to(y - error, f, "rp"), fp.round_to(y + error, f, "rm")
            if y + error > fp.value(f.largest, f):
                high = f.inf
            if ftz and fp.is_subnormal(low, f):
                low = 0
            if ftz and fp.is_subnormal(high, f):
                high = 0
            return Range(low, high)

        name = op + ".approx" + (".ftz" if ftz else "")
        options = {"version": "7.0", "target": "sm_75"} if k != "bf16" else SM_90
        if k == "f32":
            form = s.form("tanh.approx.f32", "d:f32", "a:f32", **options)
            for x in cases:
                form.vec(x, meaning(x))
        else:
            both(s, name, f, 1, cases, meaning, **options)
    return s


SUITES = [arithmetic, comparisons, conversions, approximations]
