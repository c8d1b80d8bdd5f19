"""Accesses of 256 bits (.v8, .v4 of 64 bits; PTX 8.8), and values of 128 bits (.b128; PTX 8.3): bytes as they lie in memory.

Written after the PTX ISA manual 9.0: memory is little-endian, element i of a vector lies behind element i - 1, the low half of 128 bits
comes first.
"""
from form import Suite
from samples import rng

W256 = {"version": "8.8", "target": "sm_100"}
W128 = {"version": "8.3", "target": "sm_70"}
SYS = {"version": "8.4", "target": "sm_70"}
ATOMIC = {"version": "8.3", "target": "sm_90"}
SYS_ATOMIC = {"version": "8.4", "target": "sm_90"}
FILL = 0x0101010101010101
ROOM = ".shared .align 16 .b8 room[2048];"


def words(quads):
    """64-bit words as 32-bit words, the low one first."""
    return [half for quad in quads for half in (quad & 0xFFFFFFFF, quad >> 32)]


def quads_of(words):
    return [words[i] | words[i + 1] << 32 for i in range(0, len(words), 2)]


def names(letter, count):
    return ["%%%s%d" % (letter, i) for i in range(count)]


def typed(letter, count, kind):
    return " ".join("%s%d:%s" % (letter, i, kind) for i in range(count))


def vectors(s):
    ways = ["", ".global", ".weak.global", ".volatile.global", ".relaxed.gpu.global", ".acquire.sys", ".global.cg", ".global.nc",
            ".global.L1::evict_last.L2::evict_first", ".L2::evict_normal.L2::128B", ".global.nc.L1::no_allocate.L2::evict_last"]
    for vec, kinds in ("v8", ("b32", "u32", "s32", "f32")), ("v4", ("b64", "u64", "s64", "f64")):
        count = int(vec[1])
        for way in ways:
            for kind in kinds if way == ".global" else kinds[:1]:
                f = s.form("ld%s.%s.%s" % (way, vec, kind), typed("d", count, kind), typed("i", 4, "b64"),
                           "ld%s.%s.%s {%s}, [%%in];" % (way, vec, kind, ", ".join(names("d", count))), **W256)
                r = rng(f.name)
                for _ in range(5):
                    q = [r.getrandbits(64) for _ in range(4)]
                    f.vec(tuple(q), tuple(words(q) if count == 8 else q))
        kept = [i % 3 == 0 for i in range(count)]
        f = s.form("ld.%s with sinks" % vec, typed("d", count, "b%d" % (256 // count)), typed("i", 4, "b64"),
                   "".join("mov.b%d %%d%d, 7; " % (256 // count, i) for i in range(count)) +
                   "ld.global.%s.b%d {%s}, [%%in];" % (vec, 256 // count, ", ".join("%%d%d" % i if kept[i] else "_" for i in range(count))), **W256)
        r = rng(f.name)
        for _ in range(5):
            q = [r.getrandbits(64) for _ in range(4)]
            f.vec(tuple(q), tuple(x if k else 7 for x, k in zip(words(q) if count == 8 else q, kept)))
        stores = ["", ".global", ".weak.global", ".volatile.global", ".relaxed.gpu.global", ".release.sys", ".global.cs",
                  ".global.L1::evict_first.L2::evict_last", ".L2::evict_normal"]
        back = " ld.global.v2.b64 {%d0, %d1}, [%out]; ld.global.v2.b64 {%d2, %d3}, [%out+16];"
        fill = "st.global.v2.b64 [%out], {{{0}, {0}}}; st.global.v2.b64 [%out+16], {{{0}, {0}}}; ".format(FILL)
        for way in stores:
            for kind in kinds if way == ".global" else kinds[:1]:
                f = s.form("st%s.%s.%s" % (way, vec, kind), typed("d", 4, "b64"), typed("v", count, kind),
                           "st%s.%s.%s [%%out], {%s};" % (way, vec, kind, ", ".join(names("v", count))) + back, **W256)
                r = rng(f.name)
                for _ in range(5):
                    v = [r.getrandbits(256 // count) for _ in range(count)]
                    f.vec(tuple(v), tuple(quads_of(v) if count == 8 else v))
        for pattern in range(3):
            kept = [i % 3 == pattern for i in range(count)]
            f = s.form("st.%s with sinks %d" % (vec, pattern), typed("d", 4, "b64"), typed("v", count, "b%d" % (256 // count)),
                       fill + "st.global.%s.b%d [%%out], {%s};" % (vec, 256 // count, ", ".join("%%v%d" % i if kept[i] else "_" for i in range(count))) + back, **W256)
            r = rng(f.name)
            for _ in range(5):
                v = [r.getrandbits(256 // count) for _ in range(count)]
                old = words([FILL] * 4) if count == 8 else [FILL] * 4
                new = [x if k else o for x, k, o in zip(v, kept, old)]
                f.vec(tuple(v), tuple(quads_of(new) if count == 8 else new))


def halves(s):
    two = lambda r: (r.getrandbits(64), r.getrandbits(64))
    simple = [
        ("mov", ".reg .b128 %q, %r; mov.b128 %q, {%a, %b}; mov.b128 %r, %q; mov.b128 {%x, %y}, %r;", W128),
        ("mov in place", ".reg .b128 %q; mov.b128 %q, {%a, %b}; mov.b128 {%b, %a}, %q; mov.b64 %x, %b; mov.b64 %y, %a;", W128),
        ("mov to a sink", ".reg .b128 %q; mov.b64 %x, %a; mov.b128 %q, {%a, %b}; mov.b128 {_, %y}, %q;", W128),
        ("ld.param of a call", ".reg .b128 %q; mov.b128 %q, {%a, %b}; { .param .b128 p; .param .b128 r; st.param.b128 [p], %q; call.uni (r), pass, (p); ld.param.b128 %q, [r]; } mov.b128 {%x, %y}, %q;", W128),
        ("ld.local", ".reg .b128 %q; .local .b128 own; mov.b128 %q, {%a, %b}; st.local.b128 [own], %q; ld.local.b64 %x, [own]; ld.local.b64 %y, [own+8];", W128),
    ]
    for way, options in ("", W128), (".global", W128), (".weak.global", W128), (".volatile.global", W128), (".relaxed.gpu.global", W128), (".acquire.cta", W128), (".acquire.sys.global", SYS), \
            (".global.ca.nc", W128), (".global.cg", W128), (".global.L1::evict_last", W128), (".global.nc.L1::no_allocate", W128):
        simple.append(("ld%s" % way, ".reg .b128 %%q; ld%s.b128 %%q, [%%in]; mov.b128 {%%x, %%y}, %%q;" % way, options))
    simple.append(("ldu", ".reg .b128 %q; ldu.global.b128 %q, [%in]; mov.b128 {%x, %y}, %q;", W128))
    for way, options in ("", W128), (".global", W128), (".weak.global", W128), (".volatile.global", W128), (".relaxed.gpu.global", W128), (".release.cta", W128), (".release.sys.global", SYS), \
            (".global.cs", W128), (".global.L1::evict_last", W128):
        simple.append(("st%s" % way, ".reg .b128 %%q; mov.b128 %%q, {%%a, %%b}; st%s.b128 [%%out], %%q; ld.global.b64 %%x, [%%out]; ld.global.b64 %%y, [%%out+8];" % way, options))
    callee = ".func (.param .b128 r) pass(.param .b128 p) { .reg .b128 %q; ld.param.b128 %q, [p]; st.param.b128 [r], %q; ret; }"
    for name, body, options in simple:
        f = s.form("%s.b128" % name, "x:b64 y:b64", "a:b64 b:b64", body, callee if "call" in name else None, **options)
        r = rng(f.name)
        for _ in range(9):
            a, b = two(r)
            f.vec((a, b), (a, b))
    for space in "shared", "shared::cta":
        options = W128 if space == "shared" else {"version": "8.3", "target": "sm_80"}
        for sem in "", ".relaxed.cta":
            body = ".reg .b128 %q; .reg .u32 %s, %t; shl.b32 %s, %slot, 1; mov.u32 %t, room; add.u32 %s, %s, %t; mov.b128 %q, {%a, %b}; STORE [%s], %q; LOAD %q, [%s]; mov.b128 {%y, %x}, %q;"
            store, load = ("%s%s.%s.b128" % (way, sem, space) for way in ("st", "ld"))
            f = s.form(store, "x:b64 y:b64", "a:b64 b:b64", body.replace("STORE", store).replace("LOAD", load), ROOM, **options)
            r = rng(f.name)
            for _ in range(9):
                a, b = two(r)
                f.vec((a, b), (b, a))


def atomics(s):
    read = "mov.b128 {%o0, %o1}, %old; ld.global.b64 %n0, [%out]; ld.global.b64 %n1, [%out+8];"
    setup = ".reg .b128 %old, %m, %b, %c; mov.b128 %m, {%m0, %m1}; mov.b128 %b, {%b0, %b1}; mov.b128 %c, {%c0, %c1}; st.global.b128 [%out], %m; "
    for way, options in (".global", ATOMIC), ("", ATOMIC), (".relaxed.gpu.global", ATOMIC), (".acq_rel.sys.global", SYS_ATOMIC):
        for op in "exch", "cas":
            name = "atom%s.%s.b128" % (way, op)
            f = s.form(name, "o0:b64 o1:b64 n0:b64 n1:b64", "m0:b64 m1:b64 b0:b64 b1:b64 c0:b64 c1:b64",
                       setup + "%s %%old, [%%out], %%b%s; " % (name, ", %c" if op == "cas" else "") + read, **options)
            r = rng(f.name)
            for _ in range(24):
                m, b, c = ([r.getrandbits(64) for _ in range(2)] for _ in range(3))
                if r.random() < 0.7:
                    b = list(m)
                if r.random() < 0.4:
                    # They differ in one bit of one half.
                    b[r.randrange(2)] ^= 1 << r.randrange(64)
                new = b if op == "exch" else c if b == m else m
                f.vec(tuple(m + b + c), tuple(m + new))
    f = s.form("atom.shared.cas.b128", "o0:b64 o1:b64 n0:b64 n1:b64", "m0:b64 m1:b64 b0:b64 b1:b64 c0:b64 c1:b64",
               setup.replace("st.global.b128 [%out], %m; ", ".reg .u32 %s, %t; shl.b32 %s, %slot, 1; mov.u32 %t, room; add.u32 %s, %s, %t; st.shared.b128 [%s], %m; ") +
               "atom.shared.cas.b128 %old, [%s], %b, %c; mov.b128 {%o0, %o1}, %old; ld.shared.b128 %m, [%s]; mov.b128 {%n0, %n1}, %m;", ROOM, **ATOMIC)
    r = rng(f.name)
    for _ in range(24):
        m, c = ([r.getrandbits(64) for _ in range(2)] for _ in range(2))
        b = list(m)
        if r.random() < 0.4:
            b[r.randrange(2)] ^= 1 << r.randrange(64)
        f.vec(tuple(m + b + c), tuple(m + (c if b == m else m)))


def wide():
    s = Suite("wide", "Accesses of 256 bits (PTX 8.8) and of 128 bits as one value (PTX 8.3), atomics of 128 bits.")
    vectors(s)
    halves(s)
    atomics(s)
    return s


SUITES = [wide]
