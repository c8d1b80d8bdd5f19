"""set, setp, selp, slct: sections 9.7.5 and 9.7.6."""
import number as fp
from form import Suite
from number import F16, F32, FORMATS, mask, read
from samples import edges, float_edges, nans, pairs, pick, rng

INT_OPS = {"b": ["eq", "ne"], "s": ["eq", "ne", "lt", "le", "gt", "ge"], "u": ["eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"]}
FLOAT_OPS = ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
BOOL = {"and": lambda t, c: t & c, "or": lambda t, c: t | c, "xor": lambda t, c: t ^ c}
TYPES = ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64"]


def operators(k):
    return FLOAT_OPS if k in FORMATS else INT_OPS[k[0]]


def compare(a, b, op, k, ftz=False):
    if k in FORMATS:
        f = FORMATS[k]
        a, b = fp.inputs(ftz, f, a, b)
        return int(fp.compare(a, b, op, f))
    return int(fp.relation(read(a, k), read(b, k), op))


def operands(r, k, count):
    """Pairs in which equality and the borders are common."""
    e = edges(k)
    out = []
    if k in FORMATS:
        f = FORMATS[k]
        out += [(0, f.sign), (1, f.sign | 1), (0, 1), (f.sign | 1, f.sign), (nans(f)[0], f.one), (f.one, nans(f)[1]), (nans(f)[2], nans(f)[3]), (f.inf, f.inf), (f.inf, f.inf | f.sign), (f.largest, f.inf)]
    while len(out) < count:
        a = r.choice(e) if r.random() < 0.6 else pick(r, k)
        out.append((a, a if r.random() < 0.25 else r.choice(e) if r.random() < 0.6 else pick(r, k)))
    return out


def ftz_choices(k):
    return (False, True) if k in ("f32", "f16", "f16x2") else (False,)


def setp():
    s = Suite("setp", "setp for every comparison and type: plain, with both destinations, and each Boolean operator with c and with !c.",
              "PTX ISA 6.4 sections 9.7.5.2, 9.7.6.2. Readings: A90 to A92 (q is BoolOp(!t, c), true for NaN with ordered comparisons).")
    for k in TYPES:
        for op in operators(k):
            for ftz in ftz_choices(k):
                head = "setp." + op
                tail = (".ftz" if ftz else "") + "." + k
                body = "%s%s %%p, %%a, %%b; %s%s %%q|%%r, %%a, %%b;" % (head, tail, head, tail)
                outs = "p:pred q:pred r:pred"
                for i, bo in enumerate(BOOL):
                    body += " %s.%s%s %%s%d|%%t%d, %%a, %%b, %%c; %s.%s%s %%n%d|%%m%d, %%a, %%b, !%%c;" % (head, bo, tail, i, i, head, bo, tail, i, i)
                    outs += " s%d:pred t%d:pred n%d:pred m%d:pred" % ((i,) * 4)
                f = s.form(head + ".*" + tail, outs, "a:%s b:%s c:pred" % (k, k), body)
                r = rng(head + tail)
                for i, (a, b) in enumerate(operands(r, k, 16)):
                    t = compare(a, b, op, k, ftz)
                    c = r.getrandbits(1) if k[0] != "f" or i >= 10 else i & 1
                    out = (t, t, 1 - t)
                    for combine in BOOL.values():
                        out += (combine(t, c), combine(1 - t, c), combine(t, 1 - c), combine(1 - t, 1 - c))
                    f.vec((a, b, c), out)
    for op in FLOAT_OPS:
        for ftz in False, True:
            tail = (".ftz" if ftz else "") + ".f16"
            body = "setp.%s%s %%p, %%a, %%b;" % (op, tail)
            outs = "p:pred"
            for i, bo in enumerate(BOOL):
                body += " setp.%s.%s%s %%s%d, %%a, %%b, %%c; setp.%s.%s%s %%n%d, %%a, %%b, !%%c;" % (op, bo, tail, i, op, bo, tail, i)
                outs += " s%d:pred n%d:pred" % (i, i)
            f = s.form("setp.%s.*%s" % (op, tail), outs, "a:f16 b:f16 c:pred", body)
            r = rng("setp" + op + tail)
            cases = operands(r, "f16", 22)
            for i, (a, b) in enumerate(cases):
                t = compare(a, b, op, "f16", ftz)
                c = i & 1
                out = (t,)
                for combine in BOOL.values():
                    out += (combine(t, c), combine(t, 1 - c))
                f.vec((a, b, c), out)
            tail += "x2"
            body = "setp.%s%s %%p|%%q, %%a, %%b;" % (op, tail)
            outs = "p:pred q:pred"
            for i, bo in enumerate(BOOL):
                body += " setp.%s.%s%s %%s%d|%%t%d, %%a, %%b, %%c; setp.%s.%s%s %%n%d|%%m%d, %%a, %%b, !%%c;" % (op, bo, tail, i, i, op, bo, tail, i, i)
                outs += " s%d:pred t%d:pred n%d:pred m%d:pred" % ((i,) * 4)
            f = s.form("setp.%s.*%s" % (op, tail), outs, "a:b32 b:b32 c:pred", body)
            for i, ((a, b), (a1, b1)) in enumerate(zip(cases, cases[5:] + cases[:5])):
                low, high = compare(a, b, op, "f16", ftz), compare(a1, b1, op, "f16", ftz)
                c = i & 1
                out = (low, high)
                for combine in BOOL.values():
                    out += (combine(low, c), combine(high, c), combine(low, 1 - c), combine(high, 1 - c))
                f.vec((a | a1 << 16, b | b1 << 16, c), out)
    for k in TYPES:  # alone: also under a guard and with immediates
        for op in operators(k)[:4]:
            f = s.form("setp.%s.%s" % (op, k), "p:pred", "a:%s b:%s" % (k, k))
            for a, b in operands(rng("plain" + op + k), k, 14):
                f.vec((a, b), compare(a, b, op, k))
    f = s.form("setp with a bit bucket", "p:pred q:pred", "a:s32 b:s32", "setp.lt.s32 %p|_, %a, %b; setp.lt.s32 _|%q, %a, %b;")
    g = s.form("setp in place", "p:pred", "a:s32 b:s32 c:pred", "mov.pred %p, %c; setp.ge.xor.s32 %p, %a, %b, %p;")
    h = s.form("setp immediates", "p:pred q:pred", "a:s32 b:s32", "setp.lt.s32 %p, %a, -1; setp.hi.u32 %q, 0x80000000, %b;")
    g2 = s.form("guards", "d:s32", "a:s32 b:s32 c:pred", "mov.s32 %d, 7; @%c mov.s32 %d, %a; @!%c add.s32 %d, %d, %b;")
    r = rng("setp extras")
    for a, b in pairs(r, "s32", 8, 40):
        t = compare(a, b, "lt", "s32")
        f.vec((a, b), (t, 1 - t))
        for c in 0, 1:
            g.vec((a, b, c), (1 - t) ^ c)
            g2.vec((a, b, c), a if c else 7 + b & mask(32))
        h.vec((a, b), (compare(a, mask(32), "lt", "s32"), int(0x80000000 > b)))
    return s


DTYPES = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f32": 0x3F800000}


def set_():
    s = Suite("set", "set for every comparison, source and destination type: plain, and each Boolean operator with c and with !c.",
              "PTX ISA 6.4 sections 9.7.5.1, 9.7.6.1. Readings: A90, A92.")

    def one(op, ftz, dtype, k, true, ins, d, count):
        tail = (".ftz" if ftz else "") + ".%s.%s" % (dtype, k)
        body = "set.%s%s %%d, %%a, %%b;" % (op, tail)
        outs = "d:" + d
        for i, bo in enumerate(BOOL):
            body += " set.%s.%s%s %%e%d, %%a, %%b, %%c; set.%s.%s%s %%n%d, %%a, %%b, !%%c;" % (op, bo, tail, i, op, bo, tail, i)
            outs += " e%d:%s n%d:%s" % (i, d, i, d)
        f = s.form("set.%s.*%s" % (op, tail), outs, "a:%s b:%s c:pred" % (ins, ins), body)
        r = rng("set" + op + tail)
        if k == "f16x2":
            cases = operands(r, "f16", count)
            for i, ((a, b), (a1, b1)) in enumerate(zip(cases, cases[5:] + cases[:5])):
                c = i & 1
                out = ()
                for combine in [lambda t, _: t, *BOOL.values()]:
                    for x in (c, 1 - c) if out else (c,):
                        low, high = combine(compare(a, b, op, "f16", ftz), x), combine(compare(a1, b1, op, "f16", ftz), x)
                        out += ((0x3C00 if low else 0) | (0x3C000000 if high else 0),)
                f.vec((a | a1 << 16, b | b1 << 16, c), out)
            return
        for i, (a, b) in enumerate(operands(r, k, count)):
            c = i & 1
            t = compare(a, b, op, k, ftz)
            out = (true if t else 0,)
            for combine in BOOL.values():
                out += (true if combine(t, c) else 0, true if combine(t, 1 - c) else 0)
            f.vec((a, b, c), out)

    for k in TYPES:
        for op in operators(k)[-2:]:
            f = s.form("set.%s.f32.%s" % (op, k), "d:f32", "a:%s b:%s" % (k, k))
            g = s.form("set.%s.xor.u32.%s" % (op, k), "d:u32", "a:%s b:%s c:pred" % (k, k))
            for i, (a, b) in enumerate(operands(rng("plain" + op + k), k, 14)):
                t = compare(a, b, op, k)
                f.vec((a, b), 0x3F800000 if t else 0)
                g.vec((a, b, i & 1), mask(32) if t ^ i & 1 else 0)
    for k in TYPES:
        for op in operators(k):
            for ftz in ftz_choices(k):
                for dtype, true in DTYPES.items():
                    one(op, ftz, dtype, k, true, k, dtype, 12 if k in FORMATS else 8)
    for k in TYPES + ["f16"]:
        for op in [o for o in operators(k) if o not in ("lo", "ls", "hi", "hs")]:
            for ftz in (False, True) if k in ("f16", "f32") else (False,):
                one(op, ftz, "f16", k, 0x3C00, k, "f16", 12 if k in FORMATS else 8)
    for op in FLOAT_OPS:
        for ftz in False, True:
            one(op, ftz, "f16x2", "f16x2", None, "b32", "b32", 14)
    return s


def select():
    s = Suite("select", "selp and slct: PTX ISA 6.4 sections 9.7.5.3, 9.7.5.4. Reading: A95; values are copied bit for bit.")
    for k in TYPES:
        f = s.form("selp." + k, "d:" + k, "a:%s b:%s c:pred" % (k, k))
        r = rng("selp" + k)
        for _ in range(5):
            a, b = pick(r, k), r.choice(edges(k))
            for c in 0, 1:
                f.vec((a, b, c), a if c else b)
        f = s.form("slct.%s.s32" % k, "d:%s" % k, "a:%s b:%s c:s32" % (k, k))
        for c in edges("s32") + [pick(r, "s32") for _ in range(4)]:
            a, b = pick(r, k), pick(r, k)
            f.vec((a, b, c), a if read(c, "s32") >= 0 else b)
        for ftz in "", ".ftz":
            f = s.form("slct%s.%s.f32" % (ftz, k), "d:%s" % k, "a:%s b:%s c:f32" % (k, k))
            for c in float_edges(F32) + [pick(r, "f32") for _ in range(4)]:
                a, b = pick(r, k), pick(r, k)
                x = fp.flush(c, F32) if ftz else c
                f.vec((a, b, c), a if fp.compare(x, 0, "ge", F32) else b)
    f = s.form("selp immediates", "d:s32 e:f64 g:u16", "c:pred", "selp.s32 %d, -1, 5, %c; selp.f64 %e, 1.0, 0d0000000000000001, %c; selp.u16 %g, 65535, 1, %c;")
    f.vec(0, (5, 1, 1))
    f.vec(1, (mask(32), 0x3FF0000000000000, 65535))
    return s


SUITES = [setp, set_, select]
