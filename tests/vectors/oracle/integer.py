"""Integer arithmetic, section 9.7.1, and extended precision, 9.7.2."""
from form import Suite
from number import clamp, limits, mask, read, signed, wrap
from samples import any_int, edges, int_edges, pairs, pick, rng

INTS = ["u16", "u32", "u64", "s16", "s32", "s64"]
SIGNED = ["s16", "s32", "s64"]


def bits_of(kind):
    return int(kind[1:])


def trunc_div(a, b):
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def divide(a, b, kind):
    """Readings A59: x/0 is all ones; MIN/-1 wraps."""
    return mask(bits_of(kind)) if b == 0 else wrap(trunc_div(a, b), bits_of(kind))


def remainder(a, b, kind):
    """Readings A59, A60: x rem 0 is x; the sign is the dividend's."""
    return wrap(a if b == 0 else a - b * trunc_div(a, b), bits_of(kind))


def arithmetic():
    s = Suite("int_arithmetic", "add sub mul mad mul24 mad24 sad div rem abs neg min max: PTX ISA 6.4 section 9.7.1.",
              "Readings: A58 to A63, A68 of the ambiguities: x/0 is all ones, x rem 0 is x, MIN/-1 and |MIN| wrap.")
    binary = {
        "add": lambda a, b, k: wrap(a + b, bits_of(k)),
        "sub": lambda a, b, k: wrap(a - b, bits_of(k)),
        "mul.lo": lambda a, b, k: wrap(a * b, bits_of(k)),
        "mul.hi": lambda a, b, k: wrap(a * b >> bits_of(k), bits_of(k)),
        "div": divide,
        "rem": remainder,
        "min": lambda a, b, k: wrap(min(a, b), bits_of(k)),
        "max": lambda a, b, k: wrap(max(a, b), bits_of(k)),
    }
    for op, meaning in binary.items():
        for k in INTS:
            name = "%s.%s" % (op, k)
            f = s.form(name, "d:" + k, "a:%s b:%s" % (k, k))
            for a, b in pairs(rng(name), k, 24, 40):
                f.vec((a, b), meaning(read(a, k), read(b, k), k))
    for op in "add", "sub":
        name = op + ".sat.s32"
        f = s.form(name, "d:s32", "a:s32 b:s32")
        for a, b in pairs(rng(name), "s32", 40):
            x = read(a, "s32") + (read(b, "s32") if op == "add" else -read(b, "s32"))
            f.vec((a, b), wrap(clamp(x, *limits("s32")), 32))
    for k in "u16", "u32", "s16", "s32":
        n = bits_of(k)
        wide = k[0] + str(2 * n)
        f = s.form("mul.wide." + k, "d:" + wide, "a:%s b:%s" % (k, k))
        for a, b in pairs(rng("mul.wide." + k), k, 24, 60):
            f.vec((a, b), wrap(read(a, k) * read(b, k), 2 * n))
        f = s.form("mad.wide." + k, "d:" + wide, "a:%s b:%s c:%s" % (k, k, wide))
        r = rng("mad.wide." + k)
        for a, b in pairs(r, k, 24, 40):
            c = pick(r, wide)
            f.vec((a, b, c), wrap(read(a, k) * read(b, k) + c, 2 * n))
    for half in "lo", "hi":
        for k in INTS:
            n = bits_of(k)
            name = "mad.%s.%s" % (half, k)
            r = rng(name)
            f = s.form(name, "d:" + k, "a:%s b:%s c:%s" % (k, k, k))
            for a, b in pairs(r, k, 24, 40):
                c = pick(r, k)
                t = read(a, k) * read(b, k)
                f.vec((a, b, c), wrap((t if half == "lo" else t >> n) + c, n))
    f = s.form("mad.hi.sat.s32", "d:s32", "a:s32 b:s32 c:s32")
    r = rng("mad.hi.sat.s32")
    for a, b in pairs(r, "s32", 30, 60):
        for c in (pick(r, "s32"), r.choice((mask(31), 1 << 31))):
            x = (signed(a, 32) * signed(b, 32) >> 32) + signed(c, 32)
            f.vec((a, b, c), wrap(clamp(x, *limits("s32")), 32))
    for half in "lo", "hi":
        for k in "u32", "s32":
            names = ["mul24.%s.%s" % (half, k), "mad24.%s.%s" % (half, k)] + (["mad24.hi.sat.s32"] if (half, k) == ("hi", "s32") else [])
            for name in names:
                r = rng(name)
                three = name.startswith("mad")
                f = s.form(name, "d:" + k, "a:%s b:%s" % (k, k) + (" c:" + k if three else ""))
                extra = [0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF, 0xFF800000, 0xFF7FFFFF, 0x01000000, 0xFFFFFFFF]
                cases = pairs(r, "u32", 24, 24) + [(a, b) for a in extra for b in extra]
                for a, b in cases:
                    kind24 = k[0] + "24"
                    t = wrap(read(a, kind24) * read(b, kind24), 48)
                    x = wrap(t >> 16 if half == "hi" else t, 32)
                    if not three:
                        f.vec((a, b), x)
                        continue
                    c = r.choice(edges(k) + [pick(r, k)])
                    total = signed(x, 32) + signed(c, 32)
                    f.vec((a, b, c), wrap(clamp(total, *limits("s32")) if ".sat" in name else total, 32))
    for k in INTS:
        r = rng("sad." + k)
        f = s.form("sad." + k, "d:" + k, "a:%s b:%s c:%s" % (k, k, k))
        for a, b in pairs(r, k, 24, 40):
            c = pick(r, k)
            f.vec((a, b, c), wrap(c + abs(read(a, k) - read(b, k)), bits_of(k)))
    for k in SIGNED:
        for op in "abs", "neg":
            f = s.form("%s.%s" % (op, k), "d:" + k, "a:" + k)
            r = rng(op + k)
            for a in edges(k) + [pick(r, k) for _ in range(24)]:
                f.vec(a, wrap(abs(read(a, k)) if op == "abs" else -read(a, k), bits_of(k)))
    immediates(s)
    registers(s)
    return s


def immediates(s):
    """Immediate operands of several spellings, in every source position."""
    for k in INTS:
        n = bits_of(k)
        for text, v in (("-1", -1), ("0x7f", 127), ("1", 1), ("-32768" if k[0] == "s" else "65535", -32768 if k[0] == "s" else 65535)):
            f = s.form("immediate %s %s" % (k, text), "d:%s e:%s" % (k, k), "a:" + k,
                       "add.%s %%d, %%a, %s; sub.%s %%e, %s, %%a;" % (k, text, k, text))
            r = rng(k + text)
            for a in edges(k)[:6] + [pick(r, k) for _ in range(4)]:
                f.vec(a, (wrap(a + v, n), wrap(v - a, n)))
    f = s.form("immediate both", "d:s32 e:u64 g:s16", "a:u32",
               "add.s32 %d, 0x7fffffff, 1; mul.wide.u32 %e, 0xffffffff, 0xffffffff; mad.lo.s16 %g, -7, 011, 0b101; ")
    f.vec(0, (0x80000000, 0xFFFFFFFF * 0xFFFFFFFF, wrap(-7 * 9 + 5, 16)))


def registers(s):
    """The same register as source and destination; operands of bit-size and of the other signedness."""
    for k in INTS:
        n = bits_of(k)
        f = s.form("in place " + k, "d:" + k, "a:" + k, "mov.%s %%d, %%a; add.%s %%d, %%d, %%d; mul.lo.%s %%d, %%d, %%a; sub.%s %%d, %%d, %%d; mad.lo.%s %%d, %%a, %%a, %%a;" % ((k,) * 5))
        r = rng("in place" + k)
        for a in edges(k) + [pick(r, k) for _ in range(6)]:
            f.vec(a, wrap(a * a + a, n))
        other = ("u" if k[0] == "s" else "s") + k[1:]
        f = s.form("operands of other types " + k, "d:%s e:%s" % (other, "b" + k[1:]), "a:b%s b:%s" % (k[1:], other),
                   "max.%s %%d, %%a, %%b; min.%s %%e, %%b, %%a;" % (k, k))
        for a, b in pairs(r, k, 8, 30):
            f.vec((a, b), (wrap(max(read(a, k), read(b, k)), n), wrap(min(read(a, k), read(b, k)), n)))


def bitwise_counts():
    s = Suite("int_bits", "popc clz bfind fns brev bfe bfi dp4a dp2a: PTX ISA 6.4 sections 9.7.1.14 to 9.7.1.22. Readings: A64 to A67, A72.")
    for n in 32, 64:
        r = rng("counts%d" % n)
        # words take the low byte of a position, double words all of it (A176)
        field = 255 if n == 32 else mask(32)
        values = int_edges(n) + [1 << r.randrange(n) for _ in range(12)] + [any_int(r, n) for _ in range(30)]
        f = s.form("popc.b%d" % n, "d:u32", "a:b%d" % n)
        g = s.form("clz.b%d" % n, "d:u32", "a:b%d" % n)
        h = s.form("brev.b%d" % n, "d:b%d" % n, "a:b%d" % n)
        for a in values:
            f.vec(a, bin(a).count("1"))
            g.vec(a, n - a.bit_length())
            h.vec(a, int(format(a, "0%db" % n)[::-1], 2))
        for k in "us":
            f = s.form("bfind.%s%d" % (k, n), "d:u32", "a:%s%d" % (k, n))
            g = s.form("bfind.shiftamt.%s%d" % (k, n), "d:u32", "a:%s%d" % (k, n))
            for a in values:
                x = a ^ mask(n) if k == "s" and a >> (n - 1) else a
                f.vec(a, x.bit_length() - 1 if x else mask(32))
                g.vec(a, n - x.bit_length() if x else mask(32))
            f = s.form("bfe.%s%d" % (k, n), "d:%s%d" % (k, n), "a:%s%d b:u32 c:u32" % (k, n))
            for pos, length in positions(r, n):
                a = r.choice(values)
                f.vec((a, pos, length), bit_field_extract(a, pos & field, length & field, n, k == "s"))
        f = s.form("bfi.b%d" % n, "f:b%d" % n, "a:b%d b:b%d c:u32 d:u32" % (n, n))
        for pos, length in positions(r, n):
            a, b = r.choice(values), r.choice(values)
            f.vec((a, b, pos, length), bit_field_insert(a, b, pos & field, length & field, n))
    for base in "b32", "u32", "s32":
        f = s.form("fns.b32 base %s" % base, "d:b32", "m:b32 b:%s o:s32" % base, "fns.b32 %d, %m, %b, %o;")
        r = rng("fns" + base)
        for example in ((0xAAAAAAAA, 3, 1), (0xAAAAAAAA, 3, -1), (0xAAAAAAAA, 2, 1), (0xAAAAAAAA, 2, -1)):
            f.vec((example[0], example[1], wrap(example[2], 32)), find_nth_set(*example))
        for _ in range(60):
            m = r.choice(int_edges(32) + [any_int(r, 32)] * 6)
            b = r.choice([0, 1, 15, 30, 31, r.randrange(32)])
            o = r.choice([0, 1, -1, 2, -2, 16, -16, 31, -31, 32, -32, 33, -33, 1 << 31, -(1 << 31), (1 << 31) - 1, r.randint(-8, 8)])
            f.vec((m, b, wrap(o, 32)), find_nth_set(m, b, signed(o, 32)))
    for at in "us":
        for bt in "us":
            c = "s32" if "s" in (at, bt) else "u32"
            name = "dp4a.%s32.%s32" % (at, bt)
            f = s.form(name, "d:" + c, "a:b32 b:b32 c:" + c)
            r = rng(name)
            for a, b in dot_operands(r):
                t = r.choice(int_edges(32) + [any_int(r, 32)] * 8)
                total = t + sum(read(a >> 8 * i, at + "8") * read(b >> 8 * i, bt + "8") for i in range(4))
                f.vec((a, b, t), wrap(total, 32))
            for half in "lo", "hi":
                name = "dp2a.%s.%s32.%s32" % (half, at, bt)
                f = s.form(name, "d:" + c, "a:b32 b:b32 c:" + c)
                for a, b in dot_operands(r):
                    t = r.choice(int_edges(32) + [any_int(r, 32)] * 8)
                    first = 0 if half == "lo" else 2
                    total = t + sum(read(a >> 16 * i, at + "16") * read(b >> 8 * (first + i), bt + "8") for i in range(2))
                    f.vec((a, b, t), wrap(total, 32))
    return s


def dot_operands(r):
    e = [0, 0xFFFFFFFF, 0x80808080, 0x7F7F7F7F, 0x80008000, 0x7FFF7FFF, 0x01020304, 0xFF00FF00]
    return [(a, b) for a in e for b in e if r.random() < 0.6] + [(any_int(r, 32), any_int(r, 32)) for _ in range(16)]


def positions(r, n):
    e = [0, 1, n // 2, n - 1, n, n + 1, 255]
    fixed = [(p, q) for p in e for q in e]
    high = [(256, 8), (8, 256), (256 + 4, 256 + 8), (0xFFFFFF04, 0x80000004), (200, 100), (254, 255)]
    return fixed + high + [(r.randrange(n), r.randrange(n + 1)) for _ in range(40)]


def bit_field_extract(a, pos, length, n, is_signed):
    msb = n - 1
    fill = a >> min(pos + length - 1, msb) & 1 if is_signed and length else 0
    d = 0
    for i in range(n):
        bit = a >> (pos + i) & 1 if i < length and pos + i <= msb else fill
        d |= bit << i
    return d


def bit_field_insert(a, b, pos, length, n):
    for i in range(length):
        if pos + i >= n:
            break
        b = b & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
    return b


def find_nth_set(m, base, offset):
    if offset == 0:
        return base if m >> base & 1 else mask(32)
    wanted, step = abs(offset), 1 if offset > 0 else -1
    pos = base
    while 0 <= pos < 32:
        wanted -= m >> pos & 1
        if wanted == 0:
            return pos
        pos += step
    return mask(32)


def carries():
    s = Suite("int_carry", "add.cc addc sub.cc subc mad.cc madc: PTX ISA 6.4 section 9.7.2. Readings A69 to A71: CC.CF is the carry-out",
              "of the sum, after a subtraction of a + ~b + 1; a chain reads it back with addc 0, 0. The flag is set by add.cc of the operand x and -1.")
    for k in "u32", "s32", "u64", "s64":
        n = bits_of(k)
        r = rng("carry" + k)
        # x != 0 sets the carry
        set_carry = "add.cc.%s %%t, %%x, -1; " % k
        show = " addc.%s %%cf, 0, 0;" % k
        decl = ".reg .%s %%t; " % k

        def operands(count, r=r, k=k):
            e = edges(k)
            return [(r.choice(e), r.choice(e), r.getrandbits(1)) for _ in range(count)] + [(pick(r, k), pick(r, k), r.getrandbits(1)) for _ in range(count // 2)]

        f = s.form("add.cc." + k, "d:%s cf:%s" % (k, k), "a:%s b:%s" % (k, k), "add.cc.%s %%d, %%a, %%b;" % k + show)
        g = s.form("sub.cc." + k, "d:%s cf:%s" % (k, k), "a:%s b:%s" % (k, k), "sub.cc.%s %%d, %%a, %%b;" % k + show)
        for a, b, _ in operands(40):
            f.vec((a, b), (wrap(a + b, n), int(a + b > mask(n))))
            g.vec((a, b), (wrap(a - b, n), int(a >= b)))
        for cc in "", ".cc":
            for op in "addc", "subc":
                f = s.form("%s%s.%s" % (op, cc, k), "d:%s cf:%s" % (k, k), "a:%s b:%s x:%s" % (k, k, k),
                           decl + set_carry + "%s%s.%s %%d, %%a, %%b;" % (op, cc, k) + show)
                for a, b, x in operands(40):
                    total = a + (b if op == "addc" else b ^ mask(n)) + x
                    out = int(total > mask(n)) if cc else x
                    f.vec((a, b, x), (wrap(total, n), out))
        for half in "lo", "hi":
            def product(a, b, half=half, k=k, n=n):
                t = read(a, k) * read(b, k)
                return wrap(t if half == "lo" else t >> n, n)

            f = s.form("mad.%s.cc.%s" % (half, k), "d:%s cf:%s" % (k, k), "a:%s b:%s c:%s" % (k, k, k),
                       "mad.%s.cc.%s %%d, %%a, %%b, %%c;" % (half, k) + show)
            for a, b, _ in operands(40):
                c = pick(r, k)
                total = product(a, b) + c
                f.vec((a, b, c), (wrap(total, n), int(total > mask(n))))
            for cc in "", ".cc":
                f = s.form("madc.%s%s.%s" % (half, cc, k), "d:%s cf:%s" % (k, k), "a:%s b:%s c:%s x:%s" % (k, k, k, k),
                           decl + set_carry + "madc.%s%s.%s %%d, %%a, %%b, %%c;" % (half, cc, k) + show)
                for a, b, x in operands(40):
                    c = r.choice([pick(r, k), mask(n), wrap(-product(a, b), n)])
                    total = product(a, b) + c + x
                    f.vec((a, b, c, x), (wrap(total, n), int(total > mask(n)) if cc else x))
    for op, meaning in ("add", lambda a, b: a + b), ("sub", lambda a, b: a - b):
        f = s.form("%s 128 bits in four words" % op, "d0:u32 d1:u32 d2:u32 d3:u32 cf:u32",
                   "a0:u32 a1:u32 a2:u32 a3:u32 b0:u32 b1:u32 b2:u32 b3:u32",
                   "%s.cc.u32 %%d0, %%a0, %%b0; %sc.cc.u32 %%d1, %%a1, %%b1; %sc.cc.u32 %%d2, %%a2, %%b2; %sc.cc.u32 %%d3, %%a3, %%b3; addc.u32 %%cf, 0, 0;" % ((op,) * 4))
        r = rng(op + "128")
        for _ in range(24):
            a, b = pick(r, "u32") | pick(r, "u32") << 32 | pick(r, "u64") << 64, pick(r, "u64") | pick(r, "u32") << 64 | pick(r, "u32") << 96
            x = meaning(a, b)
            words = lambda v: tuple(v >> 32 * i & mask(32) for i in range(4))
            f.vec(words(a) + words(b), words(x) + (int(x > mask(128) if op == "add" else x >= 0),))
    f = s.form("mul 64 x 64 bits in words", "r0:u32 r1:u32 r2:u32 r3:u32", "r4:u32 r5:u32 r6:u32 r7:u32",
               "mul.lo.u32 %r0, %r4, %r6; mul.hi.u32 %r1, %r4, %r6; mad.lo.cc.u32 %r1, %r5, %r6, %r1; madc.hi.u32 %r2, %r5, %r6, 0; "
               "mad.lo.cc.u32 %r1, %r4, %r7, %r1; madc.hi.cc.u32 %r2, %r4, %r7, %r2; addc.u32 %r3, 0, 0; mad.lo.cc.u32 %r2, %r5, %r7, %r2; madc.hi.u32 %r3, %r5, %r7, %r3;")
    r = rng("mul64")
    for _ in range(40):
        w = [pick(r, "u32") for _ in range(4)]
        x = (w[0] | w[1] << 32) * (w[2] | w[3] << 32)
        f.vec(tuple(w), tuple(x >> 32 * i & mask(32) for i in range(4)))
    f = s.form("a guard keeps the flag", "cf:u32", "a:u32 b:u32 p:pred",
               ".reg .u32 %t; add.cc.u32 %t, 0, 0; @%p add.cc.u32 %t, %a, %b; addc.u32 %cf, 0, 0;")
    for a, b in pairs(r, "u32", 4, 20):
        for p in 0, 1:
            f.vec((a, b, p), int(bool(p) and a + b > mask(32)))
    return s


SUITES = [arithmetic, bitwise_counts, carries]
