"""Floating-point instructions with exact results: sections 9.7.3 and 9.7.4."""
from fractions import Fraction

import number as fp
from form import Either, Halves, Suite
from number import F16, F32, F64, NAN
from samples import any_float, float_edges, nans, pairs, pick, rng

MODES = ["rn", "rz", "rm", "rp"]


def modifiers(f, sat=True):
    """Every combination of .ftz and .sat that the format has."""
    for ftz in (False, True) if f != F64 else (False,):
        for s in (False, True) if f != F64 and sat else (False,):
            yield ftz, s


def suffix(rnd, ftz, sat=False):
    return (("." + rnd) if rnd else "") + (".ftz" if ftz else "") + (".sat" if sat else "")


def near(r, f):
    """Pairs that cancel, tie, overflow or underflow."""
    a = any_float(r, f)
    kind = r.randrange(5)
    if kind == 0:
        return a, (a ^ f.sign) + r.randint(-3, 3) & fp.mask(f.width)
    if kind == 1:
        e = (a & f.inf) >> f.fraction_bits
        other = max(0, e - f.precision + r.randint(-1, 1))
        return a, (r.getrandbits(1) * f.sign) | other << f.fraction_bits | r.choice([0, 0, 1, fp.mask(f.fraction_bits), r.getrandbits(f.fraction_bits)])
    if kind == 2:
        return f.largest - r.randint(0, 3) | r.getrandbits(1) * f.sign, f.largest - (r.randint(0, f.precision + 2) << f.fraction_bits) | r.getrandbits(1) * f.sign
    if kind == 3:
        return f.min_normal + r.randint(-3, 3) | r.getrandbits(1) * f.sign, f.min_normal + r.randint(-3, 3) | r.getrandbits(1) * f.sign
    return a, pick(r, f.name)


def near_product(r, f):
    """Pairs of which the product is subnormal, at a border, or exact."""
    a = any_float(r, f)
    e = (a & f.inf) >> f.fraction_bits
    target = r.choice([1, 0, -1, -f.precision, 2 * f.emax, 2 * f.emax + 1, f.emax])
    other = min(max(target - e + f.emax, 0), 2 * f.emax)
    return a, r.getrandbits(1) * f.sign | other << f.fraction_bits | r.choice([0, 1, r.getrandbits(f.fraction_bits)])


def quotient_pairs(r, f, count):
    for _ in range(count):
        a, b = any_float(r, f), any_float(r, f)
        if r.random() < 0.4:
            q = fp.round_to(fp.value(a, f) * fp.value(b, f), f)
            if not fp.is_inf(q, f):
                a = q
        if r.random() < 0.3:
            a, b = near_product(r, f)
            b = fp.div(f.one, b, f) if not fp.is_zero(b, f) else b
        yield a, b


BINARY = {"add": fp.add, "sub": fp.sub, "mul": fp.mul}


def least_products(r, f, count):
    """Factors whose product is beside the least normal number, closer than its neighbours are."""
    least = fp.value(f.min_normal, f)
    while count:
        a = fp.round_to((1 + Fraction(r.getrandbits(f.fraction_bits), 1 << f.fraction_bits)) * Fraction(2) ** r.randint(f.emin // 2, -3), f)
        target = least * (1 + Fraction(r.choice((-3, -2, -1, -1, -1, 1, 2)), 1 << f.fraction_bits + r.randint(1, 3)))
        b = fp.round_to(target / fp.value(a, f), f)
        if fp.is_inf(b, f) or b < f.min_normal:
            continue
        count -= 1
        sign = r.getrandbits(1) * f.sign
        yield (a, b | sign) if r.getrandbits(1) else (b | sign, a)


def arithmetic(name, f):
    s = Suite(name, "add sub mul fma mad div rcp sqrt abs neg min max testp copysign .%s with exact results: PTX ISA 6.4 section 9.7.3." % f.name,
              "Readings: A82 (-0 saturates to +0), A83 (equal zeros in min and max: either), A84 (NaN: only NaN-ness), A85, A86.")
    k = f.name
    for op, meaning in BINARY.items():
        for rnd in [""] + MODES:
            for ftz, sat in modifiers(f):
                name = op + suffix(rnd, ftz, sat) + "." + k
                form = s.form(name, "d:" + k, "a:%s b:%s" % (k, k))
                r = rng(name)
                cases = pairs(r, k, 6, 30) + [near(r, f) if op != "mul" else near_product(r, f) for _ in range(16)]
                if ftz and op == "mul":
                    cases += least_products(r, f, 24)
                if sat:
                    cases += [(f.one, f.one), (f.one - 3, 1), (f.sign, f.sign), (f.one | f.sign, f.min_normal), (f.one - 1, f.one - f.min_normal)]
                for a, b in cases:
                    form.vec((a, b), meaning(a, b, f, rnd or "rn", ftz, sat))
    for op in "fma", "mad":
        for rnd in MODES:
            for ftz, sat in modifiers(f):
                name = op + suffix(rnd, ftz, sat) + "." + k
                form = s.form(name, "d:" + k, "a:%s b:%s c:%s" % (k, k, k))
                r = rng(name)
                cases = list(fma_operands(r, f, 44 if op == "fma" else 20))
                if ftz:
                    for a, b in least_products(r, f, 16):
                        c = f.min_normal + r.choice((0, 1, 1 << f.fraction_bits))
                        # The addend takes away a part of a product that is larger by as much, or all is the product.
                        cases += [(a, b, 0), (a, fp.mul(b, f.one + f.min_normal, f), c | f.sign & ~(a ^ b))]
                for a, b, c in cases:
                    form.vec((a, b, c), fp.fma(a, b, c, f, rnd, ftz, sat))
    for rnd in MODES:
        for ftz, _ in modifiers(f, sat=False):
            name = "div" + suffix(rnd, ftz) + "." + k
            form = s.form(name, "d:" + k, "a:%s b:%s" % (k, k))
            r = rng(name)
            for a, b in pairs(r, k, 6, 36) + list(quotient_pairs(r, f, 30)):
                form.vec((a, b), fp.div(a, b, f, rnd, ftz))
            if ftz:
                # Exact quotients about the least normal number: below it nothing is rounded up to it.
                for i in range(16):
                    b = f.one + r.getrandbits(f.fraction_bits)
                    a = fp.round_to(fp.value(b, f) * fp.value(f.min_normal, f), f, "rz") - i % 2
                    for left, right in ((a, b), (a | f.sign, b), (a, b | f.sign)):
                        form.vec((left, right), fp.div(left, right, f, rnd, ftz))
            for op in "rcp", "sqrt":
                name = op + suffix(rnd, ftz) + "." + k
                form = s.form(name, "d:" + k, "a:" + k)
                r = rng(name)
                positive = [any_float(r, f) & ~f.sign for _ in range(20)]
                squares = [fp.mul(x, x, f) for x in positive[:8]]
                # around 1 / largest and where 1/a becomes subnormal
                small = [fp.div(f.one, f.min_normal + i - 2, f) for i in range(5)] + [f.largest - f.min_normal, f.largest - 1]
                if ftz and op == "rcp":
                    small += [0x7E800001, 0x7E800001 | f.sign, 0x7E800000, 0x7E800002]
                for a in float_edges(f) + positive + squares + small + [any_float(r, f) for _ in range(6)]:
                    form.vec(a, fp.div(f.one, a, f, rnd, ftz) if op == "rcp" else fp.sqrt(a, f, rnd, ftz))
    if f == F32:
        # A finite divisor beyond 2^126: 0, or NaN where the dividend is infinite (reading A79).
        for ftz in False, True:
            name = "div.approx" + suffix("", ftz) + ".f32"
            form = s.form(name, "d:f32", "a:f32 b:f32")
            r = rng(name)
            for a in [0, f.sign, f.one, f.largest, f.largest | f.sign, f.inf, f.inf | f.sign, f.inf | 1, f.min_normal] + [any_float(r, f) for _ in range(20)]:
                for b in 0x7E800001, 0x7F7FFFFF, 0xFE800001, 0xFF000000, 0x7E800001 + r.getrandbits(23):
                    bad = fp.is_nan(a, f) or fp.is_inf(a, f)
                    form.vec((a, b), NAN if bad else (a ^ b) & f.sign)
    for ftz, _ in modifiers(f, sat=False):
        for op in "abs", "neg":
            name = op + suffix("", ftz) + "." + k
            form = s.form(name, "d:" + k, "a:" + k)
            r = rng(name)
            for a in float_edges(f) + [any_float(r, f) for _ in range(12)]:
                x = fp.flush(a, f) if ftz else a
                form.vec(a, NAN if fp.is_nan(a, f) else x & ~f.sign if op == "abs" else x ^ f.sign)
        for op in "min", "max":
            name = op + suffix("", ftz) + "." + k
            form = s.form(name, "d:" + k, "a:%s b:%s" % (k, k))
            r = rng(name)
            zeros = [(a, b) for a in (0, f.sign, 1, f.sign | 1) for b in (0, f.sign, 1, f.sign | 1)]
            for a, b in zeros + [(a, b) for a in nans(f) for b in nans(f) + [f.one, f.inf, f.sign | f.inf, f.sign, 1]] + pairs(r, k, 12, 40):
                form.vec((a, b), extremum(a, b, f, op, ftz))
                form.vec((b, a), extremum(b, a, f, op, ftz))
    tests = {
        "finite": lambda a: not fp.is_nan(a, f) and not fp.is_inf(a, f),
        "infinite": lambda a: fp.is_inf(a, f),
        "number": lambda a: not fp.is_nan(a, f),
        "notanumber": lambda a: fp.is_nan(a, f),
        "normal": lambda a: not fp.is_nan(a, f) and not fp.is_inf(a, f) and not fp.is_subnormal(a, f),
        "subnormal": lambda a: fp.is_subnormal(a, f),
    }
    for op, meaning in tests.items():
        form = s.form("testp.%s.%s" % (op, k), "p:pred", "a:" + k)
        r = rng("testp" + k)
        for a in float_edges(f) + [any_float(r, f) for _ in range(6)]:
            form.vec(a, meaning(a))
    form = s.form("copysign." + k, "d:" + k, "a:%s b:%s" % (k, k))
    r = rng("copysign" + k)
    for a, b in pairs(r, k, 12, 60):
        x = (a & f.sign) | (b & ~f.sign)
        form.vec((a, b), NAN if fp.is_nan(b, f) else x)
    if f == F32:
        form = s.form("immediates f32", "a:f32 b:f32 c:f32 d:f32", "x:f32",
                      "add.f32 %a, %x, 0f3f800000; mul.f32 %b, 2.0, %x; fma.rn.f32 %c, %x, -0.5, 1.0; sub.f32 %d, 0f00000001, %x;")
        for x in float_edges(F32):
            form.vec(x, (fp.add(x, F32.one, F32), fp.mul(0x40000000, x, F32), fp.fma(x, 0xBF000000, F32.one, F32), fp.sub(1, x, F32)))
    else:
        form = s.form("immediates f64", "a:f64 b:f64 c:f64", "x:f64",
                      "add.f64 %a, %x, 0d3ff0000000000000; mul.f64 %b, 2.0, %x; fma.rz.f64 %c, %x, -0.5, 1.0;")
        for x in float_edges(F64):
            form.vec(x, (fp.add(x, F64.one, F64), fp.mul(0x4000000000000000, x, F64), fp.fma(x, 0xBFE0000000000000, F64.one, F64, "rz")))
    form = s.form("mul then add is not contracted " + k, "d:" + k, "a:%s b:%s c:%s" % (k, k, k), "mul.%s %%d, %%a, %%b; add.%s %%d, %%d, %%c;" % (k, k))
    r = rng("contract" + k)
    for _ in range(30):
        a, b = any_float(r, f), any_float(r, f)
        p = fp.mul(a, b, f)
        if fp.is_nan(p, f) or fp.is_inf(p, f):
            continue
        c = p ^ f.sign
        form.vec((a, b, c), fp.add(p, c, f))
    return s


def extremum(a, b, f, op, ftz):
    a, b = fp.inputs(ftz, f, a, b)
    if fp.is_nan(a, f):
        return NAN if fp.is_nan(b, f) else b
    if fp.is_nan(b, f):
        return a
    if fp.is_zero(a, f) and fp.is_zero(b, f) and a != b:
        return Either((b, a))
    first = fp.order_key(a, f) < fp.order_key(b, f)
    if op == "max":
        first = fp.order_key(a, f) > fp.order_key(b, f)
    return a if first else b


def fma_operands(r, f, count):
    """Edges; and products that c cancels, rounds twice, or moves by a tie."""
    e = float_edges(f)
    for _ in range(count // 2):
        yield r.choice(e), r.choice(e), r.choice(e)
    for _ in range(count // 2):
        a, b = any_float(r, f), any_float(r, f)
        p = fp.mul(a, b, f)
        choice = r.randrange(5)
        if fp.is_nan(p, f) or choice == 0:
            c = any_float(r, f)
        elif choice == 1:
            c = p ^ f.sign
        elif choice == 2:
            c = (p ^ f.sign) + r.randint(-2, 2) & fp.mask(f.width)
        else:
            # c far below or far above the product
            e_p = (p & f.inf) >> f.fraction_bits
            distance = r.choice([f.precision, f.precision + 1, 2 * f.precision, -f.precision, -1, 1])
            c = r.getrandbits(1) * f.sign | min(max(e_p - distance, 0), 2 * f.emax) << f.fraction_bits | r.choice([0, 1, r.getrandbits(f.fraction_bits)])
        yield a, b, c
    top, low = f.largest, f.min_normal
    yield from [(top, f.one + (f.min_normal), top | f.sign), (low, low, 0), (low, low, f.sign), (low | f.sign, low, 1), (low, f.one - f.min_normal, low | f.sign),
                (f.inf, 0, f.one), (0, f.inf, nans(f)[0]), (f.inf, f.one, f.inf | f.sign), (f.one, f.one, f.one | f.sign), (f.one | f.sign, f.one, f.one), (f.sign, f.one, f.sign), (f.sign, f.one, 0)]


def half():
    s = Suite("half", "add sub mul fma neg .f16 and .f16x2: PTX ISA 6.4 section 9.7.4. Readings: A82, A84, A93.")
    f = F16

    def both(low, high):
        return Halves((low, high))

    for op, meaning in BINARY.items():
        for rnd in "", "rn":
            for ftz, sat in modifiers(f):
                name = op + suffix(rnd, ftz, sat)
                form = s.form(name + ".f16", "d:f16", "a:f16 b:f16")
                packed = s.form(name + ".f16x2", "d:f16x2", "a:f16x2 b:f16x2")
                r = rng(name + "f16")
                cases = pairs(r, "f16", 8, 40) + [near(r, f) if op != "mul" else near_product(r, f) for _ in range(24)]
                if ftz and op == "mul":
                    cases += least_products(r, f, 24)
                for (a, b), (a1, b1) in zip(cases, cases[1:] + cases[:1]):
                    x, y = (meaning(p, q, f, "rn", ftz, sat) for p, q in ((a, b), (a1, b1)))
                    form.vec((a, b), x)
                    packed.vec((a | a1 << 16, b | b1 << 16), both(x, y))
    for ftz, sat in modifiers(f):
        name = "fma.rn" + suffix("", ftz, sat)
        default = s.form("fma" + suffix("", ftz, sat) + ".f16", "d:f16", "a:f16 b:f16 c:f16")  # A93
        default2 = s.form("fma" + suffix("", ftz, sat) + ".f16x2", "d:f16x2", "a:f16x2 b:f16x2 c:f16x2")
        form = s.form(name + ".f16", "d:f16", "a:f16 b:f16 c:f16")
        packed = s.form(name + ".f16x2", "d:f16x2", "a:f16x2 b:f16x2 c:f16x2")
        cases = list(fma_operands(rng(name + "f16"), f, 80))
        if ftz:
            cases += [(a, b, 0) for a, b in least_products(rng(name + "least"), f, 24)]
        for (a, b, c), (a1, b1, c1) in zip(cases, cases[1:] + cases[:1]):
            x, y = fp.fma(a, b, c, f, "rn", ftz, sat), fp.fma(a1, b1, c1, f, "rn", ftz, sat)
            form.vec((a, b, c), x)
            packed.vec((a | a1 << 16, b | b1 << 16, c | c1 << 16), both(x, y))
            if len(default.lines) < 12:
                default.vec((a, b, c), x)
                default2.vec((a | a1 << 16, b | b1 << 16, c | c1 << 16), both(x, y))
    for ftz in False, True:
        name = "neg" + suffix("", ftz)
        form = s.form(name + ".f16", "d:f16", "a:f16")
        packed = s.form(name + ".f16x2", "d:f16x2", "a:f16x2")
        r = rng(name + "f16")
        cases = float_edges(f) + [any_float(r, f) for _ in range(8)]
        for a, b in zip(cases, cases[3:] + cases[:3]):
            x, y = (NAN if fp.is_nan(v, f) else (fp.flush(v, f) if ftz else v) ^ f.sign for v in (a, b))
            form.vec(a, x)
            packed.vec(a | b << 16, both(x, y))
    for op, meaning in BINARY.items():
        form = s.form("%s.f16x2 on f16x2 registers" % op, "d:f16x2", "a:f16x2 b:f16x2", ".reg .f16x2 %%x, %%y, %%z; mov.b32 %%x, %%a; mov.b32 %%y, %%b; %s.f16x2 %%z, %%x, %%y; mov.b32 %%d, %%z;" % op)
        r = rng("f16x2 registers" + op)
        for _ in range(10):
            v = [any_float(r, f) for _ in range(4)]
            form.vec((v[0] | v[1] << 16, v[2] | v[3] << 16), both(meaning(v[0], v[2], f), meaning(v[1], v[3], f)))
    form = s.form("f16 arithmetic on b16 registers", "d:b16", "a:b16 b:b16 c:b16", "fma.rn.f16 %d, %a, %b, %c; add.f16 %d, %d, %a; ")
    r = rng("b16")
    for _ in range(16):
        a, b, c = (any_float(r, f) for _ in range(3))
        p = fp.fma(a, b, c, f)
        x = fp.add(p, a, f) if p != NAN else NAN
        if x != NAN:
            form.vec((a, b, c), x)
    return s


def single():
    return arithmetic("f32", F32)


def double():
    return arithmetic("f64", F64)


SUITES = [single, double, half]
