"""Logic and shift instructions, section 9.7.7, prmt, 9.7.8.6, and mov, 9.7.8.2 to 9.7.8.3."""
from form import Suite
from number import mask, read, wrap
from samples import any_int, edges, int_edges, pairs, pick, rng


def logic():
    s = Suite("logic", "and or xor not cnot lop3 shf shl shr: PTX ISA 6.4 section 9.7.7. Readings: A73 to A75.")
    ops = {"and": lambda a, b: a & b, "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b}
    for op, meaning in ops.items():
        for k in "pred", "b16", "b32", "b64":
            f = s.form("%s.%s" % (op, k), "d:" + k, "a:%s b:%s" % (k, k))
            for a, b in pairs(rng(op + k), k, 0 if k == "pred" else 16, 30):
                f.vec((a, b), meaning(a, b))
    for k in "pred", "b16", "b32", "b64":
        n = 1 if k == "pred" else int(k[1:])
        f = s.form("not." + k, "d:" + k, "a:" + k)
        r = rng("not" + k)
        for a in edges(k) + [pick(r, k) for _ in range(0 if k == "pred" else 12)]:
            f.vec(a, a ^ mask(n))
        if k != "pred":
            f = s.form("cnot." + k, "d:" + k, "a:" + k)
            for a in edges(k) + [pick(r, k) for _ in range(12)]:
                f.vec(a, int(a == 0))
    for k in "f32", "f64", "f16", "s32", "u64", "s16":
        n = k[1:]
        f = s.form("logic on registers of type " + k, "d:%s e:b%s" % (k, n), "a:%s b:b%s" % (k, n),
                   "xor.b%s %%d, %%a, %%b; and.b%s %%e, %%d, %%a; " % (n, n))
        r = rng("untyped" + k)
        for _ in range(12):
            a, b = pick(r, k), pick(r, k)
            f.vec((a, b), (a ^ b, (a ^ b) & a))
    # all 256 tables, 16 a form; operands that show every row of the table
    for first in range(0, 256, 16):
        luts = range(first, first + 16)
        f = s.form("lop3.b32 0x%02x to 0x%02x" % (first, first + 15), " ".join("d%d:b32" % i for i in luts), "a:b32 b:b32 c:b32",
                   " ".join("lop3.b32 %%d%d, %%a, %%b, %%c, %s;" % (i, hex(i) if i % 2 else i) for i in luts))
        r = rng("lop3%d" % first)
        for a, b, c in [(0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA)] + [(any_int(r, 32), any_int(r, 32), any_int(r, 32)) for _ in range(5)]:
            f.vec((a, b, c), tuple(lop3(a, b, c, i) for i in luts))
    counts = [0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 255, 256, 0x80000000, 0xFFFFFFFF, 0x100000001 & mask(32)]
    for mode in "clamp", "wrap":
        for way in "l", "r":
            f = s.form("shf.%s.%s.b32" % (way, mode), "d:b32", "a:b32 b:b32 c:u32")
            r = rng("shf" + mode + way)
            for c in counts + [r.randrange(40) for _ in range(20)]:
                for _ in range(2):
                    a, b = pick(r, "b32"), pick(r, "b32")
                    n = min(c, 32) if mode == "clamp" else c & 31
                    whole = b << 32 | a
                    f.vec((a, b, c), wrap(whole << n >> 32, 32) if way == "l" else wrap(whole >> n, 32))
    for n in 16, 32, 64:
        f = s.form("shl.b%d" % n, "d:b%d" % n, "a:b%d b:u32" % n)
        r = rng("shl%d" % n)
        for b in counts + [r.randrange(n) for _ in range(16)]:
            for a in (mask(n), pick(r, "b%d" % n)):
                f.vec((a, b), wrap(a << min(b, n), n))
        for k in "bus":
            kind = k + str(n)
            f = s.form("shr." + kind, "d:%s" % kind, "a:%s b:u32" % kind)
            for b in counts + [r.randrange(n) for _ in range(16)]:
                for a in (mask(n), 1 << (n - 1), pick(r, kind)):
                    f.vec((a, b), wrap(read(a, kind) >> min(b, n), n))
            f = s.form("shifts by immediates " + kind, "d0:{0} d1:{0} d2:{0} d3:{0} e1:{0}".format(kind), "a:" + kind,
                       "shr.{0} %d0, %a, 0; shr.{0} %d1, %a, 1; shr.{0} %d2, %a, {1}; shr.{0} %d3, %a, 200; shl.b{2} %e1, %a, 3;".format(kind, n - 1, n))
            for a in edges(kind) + [pick(r, kind) for _ in range(6)]:
                x = read(a, kind)
                f.vec(a, tuple(wrap(x >> m, n) for m in (0, 1, n - 1, n)) + (wrap(a << 3, n),))
    return s


def lop3(a, b, c, table):
    d = 0
    for i in range(32):
        row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1
        d |= (table >> row & 1) << i
    return d


# d.b3, d.b2, d.b1, d.b0 for c[1:0] = 0, 1, 2, 3, as tabulated
PRMT = {
    "f4e": ((3, 2, 1, 0), (4, 3, 2, 1), (5, 4, 3, 2), (6, 5, 4, 3)),
    "b4e": ((5, 6, 7, 0), (6, 7, 0, 1), (7, 0, 1, 2), (0, 1, 2, 3)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((3, 2, 1, 0), (3, 2, 1, 1), (3, 2, 2, 2), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (1, 1, 1, 0), (2, 2, 1, 0), (3, 2, 1, 0)),
    "rc16": ((1, 0, 1, 0), (3, 2, 3, 2), (1, 0, 1, 0), (3, 2, 3, 2)),
}


def prmt(a, b, c, mode):
    source = b << 32 | a
    d = 0
    for i in range(4):
        if mode:
            byte = source >> 8 * PRMT[mode][c & 3][3 - i] & 255
        else:
            select = c >> 4 * i & 15
            byte = source >> 8 * (select & 7) & 255
            if select & 8:
                byte = 255 if byte & 0x80 else 0
        d |= byte << 8 * i
    return d


def moves():
    s = Suite("move", "prmt mov selp-free moves, packing and unpacking: PTX ISA 6.4 sections 9.7.8.2, 9.7.8.3, 9.7.8.6. Reading: A77.")
    r = rng("prmt")
    f = s.form("prmt.b32", "d:b32", "a:b32 b:b32 c:b32")
    for c in [0x3210, 0x7654, 0xBA98, 0xFEDC, 0x0123, 0x4567, 0x89AB, 0xFFFF3210, 0x8888, 0x5140, 0xF0F0] + [any_int(r, 32) for _ in range(60)]:
        a, b = r.choice([(0x83828180, 0x87868584), (0x03020100, 0x07060504), (any_int(r, 32), any_int(r, 32))])
        f.vec((a, b, c), prmt(a, b, c, None))
    f = s.form("prmt.b32 immediate selectors", "d0:b32 d1:b32 d2:b32", "a:b32 b:b32",
               "prmt.b32 %d0, %a, %b, 0x7531; prmt.b32 %d1, %a, 0x80, 0xc4c4; prmt.b32.rc16 %d2, %a, %b, 1;")
    for _ in range(8):
        a, b = any_int(r, 32), any_int(r, 32)
        f.vec((a, b), (prmt(a, b, 0x7531, None), prmt(a, 0x80, 0xC4C4, None), prmt(a, b, 1, "rc16")))
    for mode in PRMT:
        f = s.form("prmt.b32." + mode, "d:b32", "a:b32 b:b32 c:b32")
        for c in (0, 1, 2, 3, 4, 0xFFFFFFFF, 0xFFFFFFFE, 0x10, 0x32109, 0x8000000A):
            a, b = r.choice([(0x83828180, 0x87868584), (any_int(r, 32), any_int(r, 32))])
            f.vec((a, b, c), prmt(a, b, c, mode))
    for k in "b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64", "f32", "f64", "pred":
        f = s.form("mov." + k, "d:" + k, "a:" + k)
        for a in edges(k) if k[0] != "f" else [x for x in edges(k)]:
            f.vec(a, a)
    for name, parts, whole in ("2x8", "b8 b8", "b16"), ("4x8", "b8 b8 b8 b8", "b32"), ("2x16", "b16 b16", "b32"), \
            ("4x16", "b16 b16 b16 b16", "b64"), ("2x32", "b32 b32", "b64"), ("2xf16", "f16 f16", "b32"), ("2xf32", "f32 f32", "f64"), ("2xu32", "u32 u32", "s64"), \
            ("4xu16", "u16 s16 u16 s16", "u64"):
        kinds = parts.split()
        names = "xyzw"[: len(kinds)]
        n = int(kinds[0][1:])
        size = whole[1:]
        listed = ", ".join("%" + c for c in names)
        pack = s.form("mov.b%s pack %s into %s" % (size, name, whole), "d:" + whole, " ".join("%s:%s" % z for z in zip(names, kinds)), "mov.b%s %%d, {%s};" % (size, listed))
        unpack = s.form("mov.b%s unpack %s from %s" % (size, name, whole), " ".join("%s:%s" % z for z in zip(names, kinds)), "a:" + whole, "mov.b%s {%s}, %%a;" % (size, listed))
        for _ in range(10):
            x = [r.getrandbits(n) if r.random() < 0.8 else mask(n) for _ in kinds]
            total = sum(v << n * i for i, v in enumerate(x))
            pack.vec(tuple(x), total)
            unpack.vec(total, tuple(x))
    f = s.form("mov.b64 unpack into one and the bit bucket", "y:b32 x:b32", "a:b64", "mov.b64 {_, %y}, %a; mov.b64 {%x, _}, %a;")
    for _ in range(6):
        a = r.getrandbits(64)
        f.vec(a, (a >> 32, a & mask(32)))
    f = s.form("mov immediates", "a:s32 b:u64 c:f32 d:f32 e:f64 f:u16 g:b32 h:f64 i:f32 j:s64", "x:u32",
               "mov.s32 %a, -5; mov.u64 %b, 0xfedcba9876543210; mov.f32 %c, 0f40490fdb; mov.f32 %d, 0.1; mov.f64 %e, 0d400921fb54442d18; "
               "mov.u16 %f, 65535; mov.b32 %g, 0x80000000; mov.f64 %h, 1e-3; mov.f32 %i, -1.5; mov.s64 %j, -1;")
    f.vec(0, (wrap(-5, 32), 0xFEDCBA9876543210, 0x40490FDB, 0x3DCCCCCD, 0x400921FB54442D18, 0xFFFF, 0x80000000, 0x3F50624DD2F1A9FC, 0xBFC00000, mask(64)))
    f = s.form("swap through one instruction's operands", "d:b32 e:b32", "a:b32 b:b32",
               ".reg .b64 %t; mov.b64 %t, {%b, %a}; mov.b64 {%a, %b}, %t; mov.b32 %d, %a; mov.b32 %e, %b;")
    for _ in range(4):
        a, b = r.getrandbits(32), r.getrandbits(32)
        f.vec((a, b), (b, a))
    return s


SUITES = [logic, moves]
