"""cvt, section 9.7.8.14: every legal pair of types with every legal modifier."""
from fractions import Fraction

import number as fp
from form import Suite
from number import F16, F32, FORMATS, NAN, clamp, limits, mask, read, wrap
from samples import any_float, any_int, edges, float_edges, int_edges, nans, pick, rng

INTS = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"]
FLOATS = ["f16", "f32", "f64"]
IRND = ["rni", "rzi", "rmi", "rpi"]
FRND = ["rn", "rz", "rm", "rp"]


def width(k):
    return int(k[1:])


def can_saturate(d, a):
    """.sat is legal where the range of d is not a superset of a's."""
    (dl, dh), (al, ah) = limits(d), limits(a)
    return not (dl <= al and ah <= dh)


def extend(x, kind, register_bits):
    """A result in a wider register: extended by the destination type."""
    return wrap(read(x, kind), register_bits)


def int_to_int():
    s = Suite("cvt_int", "cvt between integer types, with and without .sat, into the type's own register and into wider ones,",
              "from registers of which the upper bits are noise: PTX ISA 6.4 sections 9.7.8.14, 9.4.1 (tables 24, 25), 6.5.1. Reading: A34.")
    for d in INTS:
        for a in INTS:
            for sat in (False, True) if can_saturate(d, a) else (False,):
                name = "cvt%s.%s.%s" % (".sat" if sat else "", d, a)
                own = d[0] + str(max(16, width(d)))
                f = s.form(name, "d:%s e:%s g:u32 h:s64" % (own, own) if width(d) <= 32 else "d:%s e:%s h:s64" % (own, own),
                           "a:%s w:u64" % (a[0] + str(max(16, width(a)))),
                           "%s %%d, %%a; %s %%e, %%w;" % (name, name) + (" %s %%g, %%a;" % name if width(d) <= 32 else "") + " %s %%h, %%w;" % name)
                r = rng(name)
                source = [x for x in int_edges(width(a))] + [x & mask(width(a)) for b in (8, 16, 32) if b < width(a) for x in (mask(b), mask(b) + 1, mask(b - 1), mask(b - 1) + 1, -(1 << (b - 1)), -(1 << (b - 1)) - 1)]
                source += [any_int(r, width(a)) for _ in range(6)]
                for x in r.sample(source, min(len(source), 16)):
                    v = read(x, a)
                    if sat:
                        v = clamp(v, *limits(d))
                    y = wrap(v, width(d))
                    noise = r.getrandbits(64)
                    low = x | (noise & ~mask(width(a)) & mask(max(16, width(a))))
                    out = (extend(y, d, width(own)),) * 2 + ((extend(y, d, 32),) if width(d) <= 32 else ()) + (extend(y, d, 64),)
                    f.vec((low, x | noise & ~mask(width(a)) & mask(64)), out)
    for bits in (8, 16, 32):
        for k in "us":
            # a bit-size source register, and an 8-bit register
            f = s.form("cvt.s64.%s%d from b64" % (k, bits), "d:s64 e:u8", "a:b64", "cvt.s64.%s%d %%d, %%a; cvt.u8.%s%d %%e, %%a;" % (k, bits, k, bits))
            r = rng("cvt b64" + k + str(bits))
            for _ in range(8):
                a = r.getrandbits(64)
                v = read(a, k + str(bits))
                f.vec(a, (wrap(v, 64), wrap(v, 8)))
    return s


def to_integer(a, f, d, mode, ftz):
    if ftz:
        a = fp.flush(a, f)
    if fp.is_nan(a, f):  # reading A97
        return 1 << width(d) - 1 if f is FORMATS["f64"] or width(d) == 64 else 0
    low, high = limits(d)
    if fp.is_inf(a, f):
        return wrap(low if fp.negative(a, f) else high, width(d))
    return wrap(clamp(fp.round_integral(fp.value(a, f), mode), low, high), width(d))


def integer_borders(r, f, d):
    """Floats beside every limit of d, halves, and large and small ones."""
    low, high = limits(d)
    values = [Fraction(n, 4) for n in range(-10, 11)] + [Fraction(x) + Fraction(i, 2) for x in (low, high, 0, 1 << 10, 1 << 23, 1 << 52) for i in range(-3, 4)]
    bits = [fp.round_to(v, f) for v in r.sample(values, 26)]
    limit = [fp.round_to(Fraction(v), f, m) for v in (low, high, high + 1) for m in ("rm", "rp")]
    limit += [b + i & mask(f.width) for b in limit for i in (1, -1)]
    return bits + r.sample(limit, 8) + [any_float(r, f) for _ in range(6)]


def float_to_int():
    s = Suite("cvt_float_int", "cvt from floats to integers: every type and rounding, .ftz and the redundant .sat; into the type's own register and into s64.",
              "PTX ISA 6.4 section 9.7.8.14. Reading: A97, NaN gives the highest bit where source or destination have 64 bits (the source: .f64), else 0.")
    for a in FLOATS:
        f = FORMATS[a]
        for d in INTS:
            for mode in IRND:
                for ftz in (False, True) if a == "f32" else (False,):
                    tail = ".%s.%s" % (d, a)
                    name = "cvt." + mode + (".ftz" if ftz else "")
                    own = d[0] + str(max(16, width(d)))
                    form = s.form(name + "*" + tail, "d:%s e:%s g:s64" % (own, own), "a:" + a,
                                  "{0}{1} %d, %a; {0}.sat{1} %e, %a; {0}{1} %g, %a;".format(name, tail))
                    r = rng(name + tail)
                    cases = r.sample(float_edges(f), 12) + nans(f)[:2] + [f.inf, f.inf | f.sign, f.sign, 1, f.sign | 1] + r.sample(integer_borders(r, f, d), 18)
                    for x in cases:
                        y = to_integer(x, f, d, mode, ftz)
                        form.vec(x, (extend(y, d, width(own)),) * 2 + (extend(y, d, 64),))
    return s


def int_to_float():
    s = Suite("cvt_int_float", "cvt from integers to floats: every type and rounding, .sat (limits to [0, 1]), .ftz where it is legal (no effect).",
              "PTX ISA 6.4 section 9.7.8.14. Reading: A31, A98; results wider than f16 overflow as the rounding says.")
    for d in FLOATS:
        f = FORMATS[d]
        for a in INTS:
            for mode in FRND:
                variants = [("", False), (".sat", True)] + ([(".ftz", False), (".ftz.sat", True)] if d == "f32" else [])
                body = " ".join("cvt.%s%s.%s.%s %%d%d, %%a;" % (mode, v, d, a, i) for i, (v, _) in enumerate(variants))
                name = "cvt.%s.*.%s.%s" % (mode, d, a)
                form = s.form(name, " ".join("d%d:%s" % (i, d) for i in range(len(variants))), "a:" + a[0] + str(max(16, width(a))), body)
                r = rng(name)
                cases = int_edges(width(a)) + [any_int(r, width(a)) for _ in range(8)]
                p = f.precision
                if width(a) > p:  # ties and their neighbours
                    for _ in range(10):
                        shift = r.randint(1, width(a) - p)
                        base = (1 << (p - 1) | r.getrandbits(p - 1)) << shift
                        cases.append(base + (1 << (shift - 1)) + r.randint(-1, 1) & mask(width(a)))
                if d == "f16":
                    cases += [x & mask(width(a)) for x in (65504, 65519, 65520, 65535, -65519, -65520, -65521) if width(a) >= 32]
                for x in cases:
                    y = fp.round_to(Fraction(read(x, a)), f, mode)
                    noise = x | (r.getrandbits(8) << 8 if width(a) == 8 else 0)
                    form.vec(noise, tuple(fp.finish(y, f, False, sat) for _, sat in variants))
    return s


def float_to_float():
    s = Suite("cvt_float", "cvt between floats: narrowing with every rounding, widening, same size, and to integral values; .ftz and .sat.",
              "PTX ISA 6.4 section 9.7.8.14. Readings: A31, A98, A99.")
    for d in FLOATS:
        for a in FLOATS:
            fd, fa = FORMATS[d], FORMATS[a]
            narrowing = fd.width < fa.width
            roundings = FRND if narrowing else [""] + (IRND if d == a else [])
            for mode in roundings:
                for ftz in (False, True) if "f32" in (d, a) else (False,):
                    for sat in False, True:
                        name = "cvt%s%s%s.%s.%s" % ("." + mode if mode else "", ".ftz" if ftz else "", ".sat" if sat else "", d, a)
                        form = s.form(name, "d:" + d, "a:" + a)
                        r = rng(name)
                        cases = float_edges(fa) + [any_float(r, fa) for _ in range(10)]
                        if narrowing:
                            cases += narrow_cases(r, fa, fd)
                        if mode in IRND:
                            cases += [fp.round_to(Fraction(n, 4), fa) for n in range(-11, 12)] + [fp.round_to(Fraction(2 * (r.getrandbits(fa.precision - 2)) + 1, 2), fa) for _ in range(4)]
                        for x in cases:
                            form.vec(x, float_result(x, fa, fd, mode, ftz, sat))
    wide_registers(s)
    return s


def wide_registers(s):
    """Tables 24 and 25: float types from and into wider bit-size registers."""
    for d, a, mode in ("f16", "f32", ".rn"), ("f32", "f16", ""), ("f16", "f16", ""), ("f32", "f32", ".rmi"), ("f32", "f64", ".rz"), ("f64", "f32", ""), ("f16", "f64", ".rp"):
        fd, fa = FORMATS[d], FORMATS[a]
        for dw in 16, 32, 64:
            for aw in 16, 32, 64:
                if dw < fd.width or aw < fa.width:
                    continue
                name = "cvt%s.%s.%s" % (mode, d, a)
                f = s.form("%s from b%d into b%d" % (name, aw, dw), "d:b%d" % dw, "a:b%d" % aw, name + " %d, %a;")
                r = rng(f.name)
                for _ in range(8):
                    x = any_float(r, fa)
                    y = float_result(x, fa, fd, mode[1:], False, False)
                    f.vec(x | r.getrandbits(64) & mask(aw) & ~mask(fa.width), y)
    for k in INTS:
        for a in FLOATS:
            f = s.form("cvt.rzi.%s.%s from and into b64" % (k, a), "d:b64", "a:b64", "cvt.rzi.%s.%s %%d, %%a;" % (k, a))
            r = rng(f.name)
            for _ in range(4):
                x = any_float(r, FORMATS[a])
                f.vec(x | r.getrandbits(64) & ~mask(FORMATS[a].width), extend(to_integer(x, FORMATS[a], k, "rzi", False), k, 64))
            if a == "f64":
                continue
            f = s.form("cvt.rn.%s.%s from and into b64" % (a, k), "d:b64", "a:b64", "cvt.rn.%s.%s %%d, %%a;" % (a, k))
            for _ in range(4):
                x = r.getrandbits(64)
                f.vec(x, fp.round_to(Fraction(read(x, k)), FORMATS[a]))


def float_result(x, fa, fd, mode, ftz, sat):
    if ftz and fa == F32 and fd != F16:  # to half precision devices do not flush the operand (reading A177)
        x = fp.flush(x, fa)
    if fp.is_nan(x, fa):
        y = NAN
    elif mode in IRND and not fp.is_inf(x, fa):
        y = fp.round_to(Fraction(fp.round_integral(fp.value(x, fa), mode)), fd, "rn", fp.negative(x, fa))
    else:
        y = fp.convert(x, fa, fd, mode if mode in FRND else "rn")
        if ftz and fa.width > fd.width and fd == F32 and not fp.is_inf(x, fa) and fp.is_small(fp.value(x, fa), fd, mode):
            y &= fd.sign
    return fp.finish(y, fd, ftz and fd == F32, sat)


def narrow_cases(r, fa, fd):
    """Ties, their neighbours, overflow and underflow borders of the narrower format."""
    out = []
    lost = fa.fraction_bits - fd.fraction_bits
    for _ in range(14):
        e = r.choice([fd.emin, fd.emax, 0, r.randint(fd.emin, fd.emax)]) + fa.emax
        fraction = r.getrandbits(fd.fraction_bits) << lost | 1 << (lost - 1)
        out.append(r.getrandbits(1) * fa.sign | e << fa.fraction_bits | (fraction + r.randint(-1, 1)))
    for v in (fp.value(fd.largest, fd), fp.value(fd.largest, fd) + fp.spacing(fp.value(fd.largest, fd), fd) / 2, fp.value(1, fd), fp.value(1, fd) / 2, fp.value(1, fd) * 3 / 2,
              fp.value(fd.min_normal, fd), fp.value(fd.min_normal, fd) - fp.value(1, fd) / 2):
        b = fp.round_to(v, fa)
        out += [b - 1, b, b + 1, b | fa.sign, b + 1 | fa.sign]
    return out


SUITES = [int_to_int, float_to_int, int_to_float, float_to_float]
