"""Other instructions after PTX 6.4: integers, warps, asynchronous copies, barriers in memory, hints to caches.

Written after the PTX ISA manual, versions 6.5 to 8.0; what the pseudocode there says of bits is transcribed.
"""
from form import Suite
from number import clamp, mask, signed, wrap
from samples import any_int, int_edges, rng

SM_80 = {"version": "7.0", "target": "sm_80"}
HINTS = {"version": "7.4", "target": "sm_80"}
SM_90 = {"version": "8.0", "target": "sm_90"}


def pairs32(r, count):
    e = int_edges(32) + [31, 32, 33, 63, 64, 8, 16]
    return [(a, b) for a in e for b in e if r.random() < 0.5] + [(any_int(r, 32), any_int(r, 32)) for _ in range(count)] + [(r.getrandbits(32), r.randrange(40)) for _ in range(count)]


def szext(a, b, mode, kind):
    width, too_large = b & 31, b >= 32 and mode == "clamp"
    m = 0 if too_large else wrap(mask(32) << width, 32)
    sign = not (width == 0 or too_large or kind != "s32") and a >> (width - 1) & 1
    return a & ~m | (m if sign else 0)


def bmsk(a, b, mode):
    a1, b1 = a & 31, b & 31
    mask0, total = wrap(mask(32) << a1, 32), a1 + b1
    mask1 = 0 if total >= 32 else wrap(mask(32) << total, 32)
    if mode == "clamp":
        mask0 = 0 if a >= 32 else mask0
        mask1 = 0 if a >= 32 or b >= 32 else mask1
    return mask0 & ~mask1


def integers():
    s = Suite("newer_integer", "szext and bmsk (PTX 7.6), add, min and max of pairs and .relu (8.0), cvt.pack (6.5).")
    for mode in "clamp", "wrap":
        options = {"version": "7.6", "target": "sm_70"}
        for kind in "u32", "s32":
            f = s.form("szext.%s.%s" % (mode, kind), "d:" + kind, "a:%s b:u32" % kind, **options)
            for a, b in pairs32(rng(f.name), 40):
                f.vec((a, b), szext(a, b, mode, kind))
        f = s.form("bmsk.%s.b32" % mode, "d:b32", "a:u32 b:u32", **options)
        r = rng(f.name)
        for a, b in pairs32(r, 20) + [(r.randrange(40), r.randrange(40)) for _ in range(60)]:
            f.vec((a, b), bmsk(a, b, mode))
    for kind in "u16x2", "s16x2":
        read = (lambda x: x) if kind[0] == "u" else lambda x: signed(x, 16)
        meanings = {"add": lambda x, y: x + y, "min": min, "max": max}
        if kind[0] == "s":
            meanings |= {"min.relu": lambda x, y: max(min(x, y), 0), "max.relu": lambda x, y: max(x, y, 0)}
        for op, meaning in meanings.items():
            f = s.form("%s.%s" % (op, kind), "d:b32", "a:b32 b:b32", **SM_90)
            r = rng(f.name)
            e = int_edges(16)
            for _ in range(120):
                x = [r.choice(e) if r.random() < 0.5 else any_int(r, 16) for _ in range(4)]
                low, high = (wrap(meaning(read(p), read(q)), 16) for p, q in ((x[0], x[1]), (x[2], x[3])))
                f.vec((x[0] | x[2] << 16, x[1] | x[3] << 16), low | high << 16)
    for op, meaning in ("min", min), ("max", max):
        f = s.form(op + ".relu.s32", "d:s32", "a:s32 b:s32", **SM_90)
        for a, b in pairs32(rng(f.name), 20):
            f.vec((a, b), max(meaning(signed(a, 32), signed(b, 32)), 0))
    for kind, low, high in ("u16", 0, 0xFFFF), ("s16", -0x8000, 0x7FFF), ("u8", 0, 0xFF), ("s8", -0x80, 0x7F), ("u4", 0, 15), ("s4", -8, 7), ("u2", 0, 3), ("s2", -2, 1):
        bits = int(kind[1:])
        three = bits < 16
        options = {"version": "6.5", "target": "sm_75" if bits < 8 else "sm_72"}
        f = s.form("cvt.pack.sat.%s.s32%s" % (kind, ".b32" if three else ""), "d:b32", "a:s32 b:s32" + (" c:b32" if three else ""), **options)
        r = rng(f.name)
        near = [low, low - 1, low + 1, high, high + 1, high - 1, 0, -1, 1]
        for _ in range(120):
            a, b = (wrap(r.choice(near), 32) if r.random() < 0.6 else any_int(r, 32) for _ in range(2))
            ta, tb = (wrap(clamp(signed(x, 32), low, high), bits) for x in (a, b))
            c = r.getrandbits(32)
            d = ta << bits | tb
            f.vec((a, b, c) if three else (a, b), wrap(c << 2 * bits | d, 32) if three else d)
    return s


def warps():
    s = Suite("newer_warp", "redux.sync (PTX 7.0) and elect.sync (8.0): whole warps, partial warps, some lanes.",
              "Which lane elect.sync chooses is open: one member, whose number all members get.")
    meanings = {
        "add": lambda xs: wrap(sum(xs), 32), "and": lambda xs: all_of(xs, lambda x, y: x & y), "or": lambda xs: all_of(xs, lambda x, y: x | y),
        "xor": lambda xs: all_of(xs, lambda x, y: x ^ y), "min": min, "max": max,
    }
    for op, meaning in meanings.items():
        for kind in ("b32",) if op in ("and", "or", "xor") else ("u32", "s32"):
            for lanes in 32, 11:
                name = "redux.sync.%s.%s" % (op, kind)
                f = s.form("%s %d lanes" % (name, lanes), "d:%s" % kind, "a:%s m:b32" % kind, name + " %d, %a, %m;", lanes=lanes, **SM_80)
                r = rng(f.name)
                for _ in range(6):
                    xs = [any_int(r, 32) for _ in range(lanes)]
                    d = wrap(meaning([signed(x, 32) if kind == "s32" else x for x in xs]), 32)
                    for x in xs:
                        f.vec((x, mask(lanes)), d)
            f = s.form(name + " by some lanes", "d:%s" % kind, "a:%s m:b32 g:pred" % kind, "mov.b32 %%d, 0x5a5a5a5a; @%%g %s %%d, %%a, %%m;" % name, lanes=32, **SM_80)
            r = rng(f.name)
            for _ in range(4):
                xs, m = [any_int(r, 32) for _ in range(32)], r.getrandbits(32) | 1
                member = [signed(x, 32) if kind == "s32" else x for i, x in enumerate(xs) if m >> i & 1]
                for i, x in enumerate(xs):
                    f.vec((x, m, m >> i & 1), wrap(meaning(member), 32) if m >> i & 1 else 0x5A5A5A5A)
    f = s.form("elect.sync", "n:u32 d:u32 c:u32", "m:b32 g:pred",
               ".reg .pred %p; .reg .b32 %e; mov.u32 %n, 1; mov.u32 %d, 0; mov.u32 %c, 1; @!%g bra DONE; elect.sync %e|%p, %m; vote.sync.ballot.b32 %d, %p, %m; popc.b32 %n, %d; "
               "shr.u32 %c, %m, %e; and.b32 %c, %c, 1; mov.u32 %d, 0; DONE:", lanes=32, **SM_90)
    r = rng(f.name)
    for _ in range(6):
        m = r.getrandbits(32) | 1 << r.randrange(32)
        for i in range(32):
            f.vec((m, m >> i & 1), (1, 0, 1))
    return s


def all_of(xs, f):
    d = xs[0]
    for x in xs[1:]:
        d = f(d, x)
    return d


ROOM = ".shared .align 16 .b8 room[4096]; .shared .align 8 .b64 gate;"
PLACE = ".reg .u32 %at; mov.u32 %at, room; mad.lo.u32 %at, %thread, 16, %at; "


def memory():
    s = Suite("newer_memory", "cp.async (PTX 7.0), with zeros behind a part; mbarrier (7.0 to 8.0) among the threads of a CTA; loads, stores and hints to caches (7.4);",
              "atom.add of bf16 (7.8); fences and barriers under their newer names.")
    for words, wait in ("ca.shared.global", "commit_group; cp.async.wait_group 0"), ("cg.shared.global", "wait_all"), ("ca.shared.global.L2::128B", "wait_all"):
        for size in (4, 8, 16) if words.startswith("ca") else (16,):
            options = SM_80 if "L2" not in words else HINTS
            copy = "cp.async.%s [%%at], [%%in], %d" % (words, size)
            wipe = PLACE + "st.shared.b64 [%at], 0x1122334455667788; st.shared.b64 [%at+8], 0x1122334455667788; "
            read = " cp.async.%s; ld.shared.b64 %%d, [%%at]; ld.shared.b64 %%e, [%%at+8];" % wait
            for part in False, True:
                f = s.form("%s, %d%s" % (words, size, " in part" if part else ""), "d:b64 e:b64", "a:b64 b:b64 n:u32 o:u32", wipe + copy + (", %n" if part else "") + ";" + read, ROOM, lanes=32, **options)
                r = rng(f.name)
                for _ in range(64):
                    a, b, n = r.getrandbits(64), r.getrandbits(64), r.randrange(size + 1)
                    old = 0x1122334455667788 << 64 | 0x1122334455667788
                    new = (a | b << 64) & mask(8 * (n if part else size)) | old & ~mask(8 * size)
                    f.vec((a, b, n, 0), (new & mask(64), new >> 64))
    own = PLACE + ".reg .u64 %state; .reg .pred %first, %over; setp.eq.u32 %first, %thread, 0; @%first mbarrier.init.shared.b64 [gate], COUNT; bar.sync 0; st.shared.b32 [%at], %a; "
    other = " .reg .u32 %next; add.u32 %next, %thread, 1; rem.u32 %next, %next, COUNT; mul.lo.u32 %next, %next, 16; mov.u32 %at, room; add.u32 %at, %at, %next; ld.shared.b32 %d, [%at];"
    waits = {
        "test_wait": (" mbarrier.arrive.shared.b64 %state, [gate]; SPIN: mbarrier.test_wait.shared.b64 %over, [gate], %state; @!%over bra SPIN;", SM_80),
        "parity": (" mbarrier.arrive.shared.b64 _, [gate]; SPIN: mbarrier.test_wait.parity.shared.b64 %over, [gate], 0; @!%over bra SPIN;", {"version": "7.1", "target": "sm_80"}),
        "try_wait": (" mbarrier.arrive.release.cta.shared::cta.b64 %state, [gate], 1; SPIN: mbarrier.try_wait.acquire.cta.shared::cta.b64 %over, [gate], %state, 100; @!%over bra SPIN;", SM_90),
        "generic": (" .reg .u64 %g; mov.u64 %g, gate; cvta.shared.u64 %g, %g; mbarrier.arrive.b64 %state, [%g]; SPIN: mbarrier.try_wait.parity.b64 %over, [%g], 0; @!%over bra SPIN;", SM_90),
        "drop": (" mbarrier.arrive_drop.shared.b64 %state, [gate]; SPIN: mbarrier.test_wait.shared.b64 %over, [gate], %state; @!%over bra SPIN;", SM_80),
        "copies": (" cp.async.mbarrier.arrive.noinc.shared.b64 [gate]; cp.async.mbarrier.arrive.shared.b64 [gate]; SPIN: mbarrier.test_wait.parity.shared.b64 %over, [gate], 0; @!%over bra SPIN;", {"version": "7.1", "target": "sm_80"}),
    }
    for name, (wait, options) in waits.items():
        for lanes in 32, 96:
            f = s.form("mbarrier %s %d threads" % (name, lanes), "d:b32", "a:b32", (own + wait + other).replace("COUNT", str(lanes)), ROOM, lanes=lanes, **options)
            r = rng(f.name)
            for _ in range(2):
                values = [r.getrandbits(32) for _ in range(lanes)]
                for i, a in enumerate(values):
                    f.vec(a, values[(i + 1) % lanes])
    # one thread alone: counts and phases
    f = s.form("mbarrier counts", "a0:u32 a1:u32 a2:u32 p0:pred p1:pred p2:pred p3:pred", "n:u32",
               ".reg .u32 %more; .reg .u64 %s0, %s1, %s2; mbarrier.init.shared.b64 [gate], 3; mbarrier.arrive.noComplete.shared.b64 %s0, [gate], 1; mbarrier.arrive.shared.b64 %s1, [gate]; "
               "mbarrier.test_wait.shared.b64 %p0, [gate], %s1; mbarrier.arrive_drop.shared.b64 %s2, [gate]; mbarrier.test_wait.shared.b64 %p1, [gate], %s1; "
               "mbarrier.pending_count.b64 %a0, %s0; mbarrier.pending_count.b64 %a1, %s1; mbarrier.pending_count.b64 %a2, %s2; "
               "mbarrier.arrive.shared.b64 %s0, [gate]; mbarrier.test_wait.shared.b64 %p2, [gate], %s0; mbarrier.arrive.shared.b64 %s1, [gate]; mbarrier.test_wait.shared.b64 %p3, [gate], %s0; mbarrier.inval.shared.b64 [gate];",
               ROOM, lanes=1, **SM_80)
    f.vec(0, (3, 2, 1, 0, 1, 0, 1))
    body = ("st.global.L1::evict_last.b32 [%out], %a; ld.global.L1::no_allocate.b32 %d, [%out]; .reg .u64 %pol; createpolicy.fractional.L2::evict_last.b64 %pol, 0.5; "
            "st.global.L1::evict_first.L2::cache_hint.b32 [%out], %b, %pol; ld.global.L1::evict_first.L2::cache_hint.L2::128B.b32 %e, [%out], %pol; "
            "createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %pol; createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %pol, [%in], 128, 256; createpolicy.cvt.L2.b64 %pol, 0; "
            "ld.global.L2::256B.b64 %x, [%in]; ld.global.nc.L1::evict_last.b64 %y, [%in+8]; ld.global.nc.L2::64B.v2.b32 {%z0, %z1}, [%in]; ld.global.nc.L2::cache_hint.b32 %w, [%in], %pol; "
            ".reg .b32 %zero; mov.b32 %zero, 0; st.global.L2::cache_hint.v2.b32 [%out], {%a, %zero}, %pol; ld.global.v2.b32 {%d, %zero}, [%out]; "
            "prefetch.global.L2::evict_last [%in]; applypriority.global.L2::evict_normal [%group], 128; cp.async.wait_all;")
    f = s.form("hints to caches", "d:b32 e:b32 x:b64 y:b64 z0:b32 z1:b32 w:b32", "a:b32 b:b32", body, lanes=32, **HINTS)
    r = rng(f.name)
    for _ in range(32):
        a, b = r.getrandbits(32), r.getrandbits(32)
        f.vec((a, b), (a, b, a, b, a, 0, a))
    f = s.form("newer names", "d:b32", "a:b32", "st.shared.b32 [room], 0; bar.cta.sync 0; .reg .u32 %o; atom.shared.add.u32 %o, [room], %a; fence.proxy.alias; fence.proxy.async; fence.proxy.async.shared::cta; "
               "fence.mbarrier_init.release.cluster; griddepcontrol.wait; griddepcontrol.launch_dependents; barrier.cta.sync.aligned 0; ld.shared.b32 %d, [room];", ROOM, lanes=64, **SM_90)
    r = rng(f.name)
    values = [r.getrandbits(32) for _ in range(64)]
    for a in values:
        f.vec(a, wrap(sum(values), 32))
    f = s.form("atom.add bf16", "d:b32", "a:b32", "st.shared.b32 [room], 0; bar.sync 0; .reg .b16 %l, %h, %o; .reg .b32 %t; mov.b32 {%l, %h}, %a; atom.shared.add.noftz.bf16 %o, [room], %l; "
               "red.shared.add.noftz.bf16 [room+2], %h; mov.b32 %t, 0x3f803f80; atom.shared.add.noftz.bf16x2 %t, [room], %t; red.shared.add.noftz.bf16x2 [room], %t; bar.sync 0; ld.shared.b32 %d, [room];", ROOM, lanes=1, version="7.8", target="sm_90")
    # twice the number plus one: exact in eight bits
    for low, high, result in (0x3F80, 0x4000, 0x40A04040), (0x0000, 0xBF80, 0xBF803F80), (0x4040, 0x40A0, 0x413040E0):
        f.vec(low | high << 16, result)
    return s


def table(lut, a, b, c):
    """What `lop3` computes: bit i of the result is the bit of the table that the bits i of a, b and c choose."""
    d = 0
    for i in range(32):
        d |= (lut >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1) & 1) << i
    return d


def forms():
    s = Suite("newer_forms", "lop3 with a predicate (PTX 8.2), cp.async that a predicate turns into zeros (7.5), atom and red with cache policies (7.4),",
              "scopes of clusters (7.8), fences one way (8.6), .mmio (8.2), volatile local memory (9.1).")
    for op in "or", "and":
        for lut in 0x80, 0x96, 0xE8, 0x00:
            for sink in "d", "p", "":
                name = "lop3.%s.b32 %#04x%s" % (op, lut, " without " + sink if sink else "")
                names = "%s|%s" % ("_" if sink == "d" else "%d", "_" if sink == "p" else "%p")
                f = s.form(name, "d:b32 p:pred", "a:b32 b:b32 c:b32 q:pred", "mov.b32 %%d, 9; setp.ne.u32 %%p, %%d, 9; lop3.%s.b32 %s, %%a, %%b, %%c, %d, %%q;" % (op, names, lut), version="8.2", target="sm_70")
                r = rng(name)
                for i in range(24):
                    a, b, c = (r.choice((0, any_int(r, 32), 1 << r.randrange(32))) for _ in range(3))
                    q = i % 2
                    d = table(lut, a, b, c)
                    p = int(d != 0) | q if op == "or" else int(d != 0) & q
                    f.vec((a, b, c, q), (9 if sink == "d" else d, 0 if sink == "p" else p))
    options = {"version": "7.5", "target": "sm_80"}
    for words in "ca.shared.global", "cg.shared.global", "ca.shared.global.L2::cache_hint", "cg.shared.global.L2::cache_hint.L2::128B":
        for size in (4, 8, 16) if words.startswith("ca") else (16,):
            hint = "cache_hint" in words
            body = PLACE + "st.shared.b64 [%at], 0x1122334455667788; st.shared.b64 [%at+8], 0x1122334455667788; " + \
                (".reg .b64 %pol; createpolicy.fractional.L2::evict_first.b64 %pol; " if hint else "") + \
                "cp.async.%s [%%at], [%%in], %d, %%q%s; cp.async.wait_all; ld.shared.b64 %%d, [%%at]; ld.shared.b64 %%e, [%%at+8];" % (words, size, ", %pol" if hint else "")
            f = s.form("cp.async.%s, %d, unless" % (words, size), "d:b64 e:b64", "a:b64 b:b64 q:pred o:u32", body, ROOM, lanes=32, **options)
            r = rng(f.name)
            for _ in range(64):
                a, b, q = r.getrandbits(64), r.getrandbits(64), r.getrandbits(1)
                old = 0x1122334455667788 << 64 | 0x1122334455667788
                new = (0 if q else (a | b << 64) & mask(8 * size)) | old & ~mask(8 * size)
                f.vec((a, b, q, 0), (new & mask(64), new >> 64))
    meanings = {
        "and": lambda m, b: m & b, "or": lambda m, b: m | b, "xor": lambda m, b: m ^ b, "exch": lambda m, b: b, "add": lambda m, b: m + b,
        "min": min, "max": max, "inc": lambda m, b: 0 if m >= b else m + 1, "dec": lambda m, b: b if m == 0 or m > b else m - 1,
    }
    kinds = {"and": ("b32", "b64"), "or": ("b32",), "xor": ("b64",), "exch": ("b32", "b64"), "add": ("u32", "s32", "u64"), "min": ("u32", "s32", "u64", "s64"), "max": ("s32", "u64"), "inc": ("u32",), "dec": ("u32",)}
    setup = "st.global.%s [%%out], %%m; .reg .b64 %%pol; createpolicy.fractional.L2::evict_last.b64 %%pol; "
    for op, meaning in meanings.items():
        for kind in kinds[op]:
            bits = int(kind[1:])
            read = (lambda x, bits=bits: signed(x, bits)) if kind[0] == "s" else lambda x: x
            for way, options in ((".global", HINTS), ("", HINTS), (".relaxed.cluster.global", SM_90), (".acq_rel.cluster", SM_90)):
                for atom in ("atom", "red") if op != "exch" and "acq" not in way else ("atom",):
                    hint = ".L2::cache_hint" if "cluster" not in way else ""
                    name = "%s%s.%s%s.%s" % (atom, way, op, hint, kind)
                    body = setup % ("b%d" % bits) + "%s %s[%%out], %%b%s; ld.global.b%d %%n, [%%out];" % (name, "%o, " if atom == "atom" else "", ", %pol" if hint else "", bits)
                    if atom == "red":
                        body = "mov.b%d %%o, 0; " % bits + body
                    f = s.form(name, "o:b%d n:b%d" % (bits, bits), "m:b%d b:b%d" % (bits, bits), body, **options)
                    r = rng(name)
                    for _ in range(8):
                        m, b = any_int(r, bits), any_int(r, bits)
                        f.vec((m, b), (m if atom == "atom" else 0, wrap(meaning(read(m), read(b)), bits)))
    f = s.form("atom.cluster.cas.b32", "o:b32 n:b32", "m:b32 b:b32 c:b32", "st.global.b32 [%out], %m; atom.relaxed.cluster.global.cas.b32 %o, [%out], %b, %c; ld.relaxed.cluster.global.b32 %n, [%out];", **SM_90)
    r = rng(f.name)
    for i in range(16):
        m, b, c = (r.getrandbits(32) for _ in range(3))
        b = m if i % 2 else b
        f.vec((m, b, c), (m, c if b == m else m))
    f = s.form("strong in a cluster", "d:b32 e:b64", "a:b32 b:b64", "st.release.cluster.global.b32 [%out], %a; fence.acq_rel.cluster; ld.acquire.cluster.global.b32 %d, [%out]; fence.cluster; fence.sc.cluster; "
               "st.relaxed.cluster.b64 [%out+8], %b; ld.relaxed.cluster.b64 %e, [%out+8];", **SM_90)
    one_way = "st.shared.b32 [room], 0; bar.sync 0; .reg .u32 %o; atom.shared.add.u32 %o, [room], %a; " + " ".join(
        ["fence.%s.%s;" % (sem, scope) for sem in ("acquire", "release") for scope in ("cta", "cluster", "gpu", "sys")] +
        ["fence.acquire.sync_restrict::shared::cluster.cluster;", "fence.release.sync_restrict::shared::cta.cluster;",
         "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;", "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;",
         "fence.proxy.async.shared::cluster;", "membar.proxy.alias;", "membar.proxy.async;", "membar.proxy.async.global;", "membar.proxy.async.shared::cta;", "membar.proxy.async.shared::cluster;"]) + \
        " bar.sync 0; ld.shared.b32 %d, [room];"
    g = s.form("fences one way", "d:b32", "a:b32", one_way, ROOM, lanes=32, version="8.6", target="sm_90")
    h = s.form("mmio", "d:b32 e:b64 w:b16", "a:b32 b:b64 c:b16", "st.mmio.relaxed.sys.global.b32 [%out], %a; ld.mmio.relaxed.sys.global.u32 %d, [%out]; st.mmio.relaxed.sys.b64 [%out+8], %b; ld.mmio.relaxed.sys.b64 %e, [%out+8]; "
               "st.mmio.relaxed.sys.global.u16 [%out+16], %c; ld.mmio.relaxed.sys.global.b16 %w, [%out+16];", version="8.2", target="sm_70")
    v = s.form("volatile local", "d:b32 e:b64", "a:b32 b:b64", ".local .align 16 .b8 own[16]; st.volatile.local.b32 [own], %a; st.volatile.local.v2.b64 [own], {%b, %b}; ld.volatile.local.b64 %e, [own+8]; "
               "st.volatile.local.u32 [own+4], %a; ld.volatile.local.u32 %d, [own+4];", version="9.1", target="sm_75")
    r = rng("forms")
    values = [r.getrandbits(32) for _ in range(32)]
    for a in values:
        b, c = r.getrandbits(64), r.getrandbits(16)
        f.vec((a, b), (a, b))
        g.vec(a, wrap(sum(values), 32))
        h.vec((a, b, c), (a, b, c))
        v.vec((a, b), (a, b))
    return s


SUITES = [integers, warps, memory, forms]
