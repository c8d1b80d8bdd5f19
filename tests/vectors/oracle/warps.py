"""Warp instructions over whole and partial warps: sections 9.7.8.4, 9.7.8.5, 9.7.12.6 to 9.7.12.9.

A form with lanes=n runs CTAs of n threads; the vectors of one CTA are its lanes in order. Lanes that do not execute the
instruction keep what the body put into their destination before.
"""
from form import ANY, Suite
from number import mask
from samples import any_int, rng

MODES = ["up", "down", "bfly", "idx"]


def shuffle_source(mode, lane, b, c):
    """The pseudocode of shfl.sync: the source lane and whether it is in range. Lane arithmetic is signed (A109)."""
    bval, cval, seg = b & 31, c & 31, c >> 8 & 31
    top = lane & seg | cval & ~seg & 31
    bottom = lane & seg
    j, ok = {"up": (lane - bval, lane - bval >= top), "down": (lane + bval, lane + bval <= top), "bfly": (lane ^ bval, lane ^ bval <= top),
             "idx": (bottom | bval & ~seg & 31, (bottom | bval & ~seg & 31) <= top)}[mode]
    # `lane ^ bval <= top` parses as a chain in Python: spelt out
    if mode == "bfly":
        ok = (lane ^ bval) <= top
    return (j if ok else lane), ok


def defined(mode, member, bs, cs):
    """Whether every member reads a member: the manual leaves the rest undefined."""
    return all(shuffle_source(mode, i, bs[i], cs[i])[0] in member for i in member)


def shuffles():
    s = Suite("shuffle", "shfl.sync and, for targets below sm_70, shfl: every mode, segments, clamps, whole warps, partial warps and partial masks.",
              "PTX ISA 6.4 sections 9.7.8.4, 9.7.8.5. Readings: A109, A110, A113. A181: sources that do not take part give 0.")
    widths = [(32, 0x00), (16, 0x10), (8, 0x18), (4, 0x1C), (2, 0x1E), (1, 0x1F)]
    for mode in MODES:
        c_of = lambda seg: (0 if mode == "up" else 0x1F) | seg << 8
        for lanes in 32, 20, 7, 1:
            whole = "shfl.sync.%s.b32 %%d|%%p, %%a, %%b, %%c, %%m;" % mode
            f = s.form("shfl.sync.%s %d lanes" % (mode, lanes), "d:b32 p:pred e:b32", "a:b32 b:b32 c:b32 m:b32", whole + " shfl.sync.%s.b32 %%e, %%a, %%b, %%c, %%m;" % mode, lanes=lanes)
            r = rng("shfl" + mode + str(lanes))
            done = 0
            tried = 0
            while done < (24 if lanes == 32 else 8) and tried < 4000:
                tried += 1
                kind = r.randrange(4)
                if kind < 2:
                    bs = [r.choice((0, 1, 2, 4, 8, 16, 31, 32, 33, 0xFFFFFFFF, r.randrange(32)))] * lanes
                    cs = [c_of(r.choice(widths)[1])] * lanes
                elif kind == 2:
                    bs = [r.randrange(32) for _ in range(lanes)]
                    cs = [r.getrandbits(5) | r.getrandbits(5) << 8] * lanes
                else:
                    bs = [any_int(r, 32) for _ in range(lanes)]
                    cs = [any_int(r, 32) for _ in range(lanes)]
                everyone = set(range(lanes))
                if not defined(mode, everyone, bs, cs):
                    continue
                done += 1
                a = [r.getrandbits(32) for _ in range(lanes)]
                m = mask(32) if r.random() < 0.5 else mask(lanes)
                for lane in range(lanes):
                    j, ok = shuffle_source(mode, lane, bs[lane], cs[lane])
                    f.vec((a[lane], bs[lane], cs[lane], m), (a[j], ok, a[j]))
            assert done or lanes == 1
        # sources that do not take part give zero (A181)
        for lanes in 20, 5:
            f = s.form("shfl.sync.%s any source, %d lanes" % (mode, lanes), "d:b32 p:pred", "a:b32 b:b32 c:b32", "shfl.sync.%s.b32 %%d|%%p, %%a, %%b, %%c, 0xffffffff;" % mode, lanes=lanes)
            r = rng("shfl any" + mode + str(lanes))
            for _ in range(8):
                a = [r.getrandbits(32) for _ in range(lanes)]
                bs = [r.randrange(32) for _ in range(lanes)]
                c = r.getrandbits(13)
                for lane in range(lanes):
                    j, ok = shuffle_source(mode, lane, bs[lane], c)
                    f.vec((a[lane], bs[lane], c), (a[j] if j < lanes else 0, ok))
        # a subset executes: the guard decides, the mask names exactly the members
        f = s.form("shfl.sync.%s by some lanes" % mode, "d:b32 p:pred", "a:b32 b:b32 c:b32 m:b32 g:pred",
                   "mov.b32 %%d, 0x5a5a5a5a; mov.pred %%p, 0; @%%g shfl.sync.%s.b32 %%d|%%p, %%a, %%b, %%c, %%m;" % mode, lanes=32)
        r = rng("shfl some" + mode)
        done = 0
        while done < 10:
            m = r.choice((0x0000FFFF, 0xFFFF0000, 0x55555555, 0x80000001, 0x0F0F0F0F, 1 << r.randrange(32), r.getrandbits(32) | 1))
            member = {i for i in range(32) if m >> i & 1}
            seg = r.choice(widths)[1]
            bs = [r.choice(sorted(member)) if mode == "idx" else r.choice((0, 1, 2, 4, 16))] * 32
            cs = [c_of(seg)] * 32
            done += 1
            a = [r.getrandbits(32) for _ in range(32)]
            for lane in range(32):
                if lane in member:
                    j, ok = shuffle_source(mode, lane, bs[lane], cs[lane])
                    f.vec((a[lane], bs[lane], cs[lane], m, 1), (a[j] if j in member else 0, ok))
                else:
                    f.vec((a[lane], bs[lane], cs[lane], m, 0), (0x5A5A5A5A, 0))
        f = s.form("shfl.sync.%s immediates" % mode, "d:b32 p:pred e:b32", "a:b32", "shfl.sync.%s.b32 %%d|%%p, %%a, 1, %s, 0xffffffff; shfl.sync.%s.b32 %%e, %%a, 3, %s, -1;" % (mode, hex(c_of(0)), mode, hex(c_of(0x18))), lanes=32)
        a = [r.getrandbits(32) for _ in range(32)]
        for lane in range(32):
            j, ok = shuffle_source(mode, lane, 1, c_of(0))
            k, _ = shuffle_source(mode, lane, 3, c_of(0x18))
            f.vec(a[lane], (a[j], ok, a[k]))
        f = s.form("shfl.sync.%s immediates, 20 lanes" % mode, "d:b32 p:pred e:b32", "a:b32", "shfl.sync.%s.b32 %%d|%%p, %%a, 1, %s, 0xffffffff; shfl.sync.%s.b32 %%e, %%a, 16, %s, -1;" % (mode, hex(c_of(0)), mode, hex(c_of(0))), lanes=20)
        few = [r.getrandbits(32) for _ in range(20)]
        for lane in range(20):
            j, ok = shuffle_source(mode, lane, 1, c_of(0))
            k, _ = shuffle_source(mode, lane, 16, c_of(0))
            f.vec(few[lane], (few[j] if j < 20 else 0, ok, few[k] if k < 20 else 0))
        f = s.form("shfl.%s" % mode, "d:b32 p:pred e:b32", "a:b32 b:b32 c:b32", "shfl.%s.b32 %%d|%%p, %%a, %%b, %%c; shfl.%s.b32 %%e, %%a, %%b, %%c;" % (mode, mode), lanes=32, target="sm_60")
        for i in range(4):
            bs, cs = [r.choice((0, 1, 5, 16, 31))] * 32, [c_of(r.choice(widths)[1])] * 32
            if i == 3:
                bs = [r.randrange(32) for _ in range(32)]
            for lane in range(32):
                j, ok = shuffle_source(mode, lane, bs[lane], cs[lane])
                f.vec((a[lane], bs[lane], cs[lane]), (a[j], ok, a[j]))
    return s


def predicates(r, n):
    kind = r.randrange(6)
    if kind == 0:
        return [1] * n
    if kind == 1:
        return [0] * n
    if kind == 2:
        odd = r.randrange(n)
        return [int(i == odd) for i in range(n)]
    if kind == 3:
        odd = r.randrange(n)
        return [int(i != odd) for i in range(n)]
    return [r.getrandbits(1) for _ in range(n)]


def votes():
    s = Suite("vote", "vote.sync, vote (below sm_70), match.sync, activemask over whole warps, partial warps, partial masks and exited lanes.",
              "PTX ISA 6.4 sections 9.7.12.6 to 9.7.12.9. Readings: A112, A113.")

    def results(member, p):
        """all, any, uni, ballot over the members."""
        values = [p[i] for i in member]
        return int(all(values)), int(any(values)), int(len(set(values)) <= 1), sum(p[i] << i for i in member)

    body = "vote.sync.all.pred %all, %a, %m; vote.sync.any.pred %any, %a, %m; vote.sync.uni.pred %uni, %a, %m; vote.sync.ballot.b32 %b, %a, %m; " \
           "vote.sync.all.pred %nall, !%a, %m; vote.sync.any.pred %nany, !%a, %m; vote.sync.uni.pred %nuni, !%a, %m; vote.sync.ballot.b32 %nb, !%a, %m;"
    outs = "all:pred any:pred uni:pred b:b32 nall:pred nany:pred nuni:pred nb:b32"
    for lanes in 32, 40, 20, 1:
        f = s.form("vote.sync %d lanes" % lanes, outs, "a:pred m:b32", body, lanes=lanes)
        r = rng("vote%d" % lanes)
        for _ in range(10):
            p = predicates(r, lanes)
            for first in range(0, lanes, 32):
                here = p[first:first + 32]
                member = range(len(here))
                m = mask(32) if r.random() < 0.5 else mask(len(here))
                out = results(member, here) + results(member, [1 - x for x in here])
                for x in here:
                    f.vec((x, m), out)
    guarded = "mov.pred %all, 0; mov.pred %any, 0; mov.pred %uni, 0; mov.b32 %b, 0x77; mov.pred %nall, 0; mov.pred %nany, 0; mov.pred %nuni, 0; mov.b32 %nb, 0x77; " + " ".join("@%g " + x.strip() + ";" for x in body.split(";") if x.strip())
    f = s.form("vote.sync by some lanes", outs, "a:pred m:b32 g:pred", guarded, lanes=32)
    g = s.form("vote.sync in both branches", "b:b32 any:pred", "a:pred m:b32 g:pred",
               "@%g bra ONE; vote.sync.ballot.b32 %b, %a, %m; vote.sync.any.pred %any, %a, %m; bra JOIN; ONE: vote.sync.ballot.b32 %b, %a, %m; vote.sync.any.pred %any, %a, %m; JOIN:", lanes=32)
    h = s.form("vote.sync after some lanes have exited", "b:b32 all:pred", "a:pred g:pred",
               "mov.b32 %b, 0; mov.pred %all, 0; st.global.b32 [%out], %b; st.global.b32 [%out+8], %b; @!%g exit; vote.sync.ballot.b32 %b, %a, 0xffffffff; vote.sync.all.pred %all, %a, 0xffffffff;", lanes=32)
    r = rng("vote some")
    for _ in range(10):
        m = r.choice((0x0000FFFF, 0xFFFF0000, 0x55555555, 0x80000001, 1 << r.randrange(32), r.getrandbits(32) | 1, r.getrandbits(32) | 2))
        member = [i for i in range(32) if m >> i & 1]
        rest = [i for i in range(32) if not m >> i & 1]
        p = predicates(r, 32)
        out = results(member, p) + results(member, [1 - x for x in p])
        other = results(rest, p)
        mine = results(member, p)
        for i in range(32):
            f.vec((p[i], m, int(i in member)), out if i in member else (0, 0, 0, 0x77, 0, 0, 0, 0x77))
            g.vec((p[i], m if i in member else m ^ mask(32), int(i in member)), (mine[3], mine[1]) if i in member else (other[3], other[1]))
            h.vec((p[i], int(i in member)), (mine[3], mine[0]) if i in member else (0, 0))
    old = body.replace(".sync", "").replace(", %m;", ";")
    f = s.form("vote", outs, "a:pred", old, lanes=32, target="sm_60")
    for _ in range(6):
        p = predicates(r, 32)
        out = results(range(32), p) + results(range(32), [1 - x for x in p])
        for i in range(32):
            f.vec(p[i], out)
    f = s.form("vote.ballot by some lanes", "b:b32 any:pred all:pred uni:pred", "a:pred g:pred", "mov.b32 %b, 0; mov.pred %any, 0; mov.pred %all, 0; mov.pred %uni, 0; @%g vote.ballot.b32 %b, %a; @%g vote.any.pred %any, %a; @%g vote.all.pred %all, %a; @%g vote.uni.pred %uni, %a;", lanes=32, target="sm_60")
    g = s.form("match after some lanes have exited", "any:b32 all:b32 p:pred", "a:b32 g:pred", "mov.b32 %any, 0; st.global.b32 [%out], %any; st.global.b32 [%out+8], %any; st.global.b32 [%out+16], %any; @!%g exit; match.any.sync.b32 %any, %a, -1; match.all.sync.b32 %all|%p, %a, -1;", lanes=32)
    for turn in range(8):
        p = predicates(r, 32)
        on = predicates(r, 32)
        member = [i for i in range(32) if on[i]]
        everyone, someone, equal, ballot = results(member, p) if member else (0, 0, 0, 0)
        key = [r.choice((5, 9, 5 << 16))] * 32 if turn % 2 else [r.choice((5, 9, 5 << 16)) for _ in range(32)]
        for i in range(32):
            f.vec((p[i], on[i]), (ballot, someone, everyone, equal) if on[i] else (0, 0, 0, 0))
            same = sum(1 << j for j in member if key[j] == key[i])
            every = len({key[j] for j in member}) == 1
            g.vec((key[i], on[i]), (same, sum(1 << j for j in member) if every else 0, every) if on[i] else (0, 0, 0))
    f = s.form("activemask", "all:b32 some:b32", "g:pred", "activemask.b32 %all; mov.b32 %some, 0; @%g activemask.b32 %some;", lanes=32)
    g = s.form("activemask 20 lanes", "all:b32", "z:b32", "activemask.b32 %all;", lanes=20)
    for _ in range(3):
        p = predicates(r, 32)
        for i in range(32):
            f.vec(p[i], (mask(32), sum(x << j for j, x in enumerate(p)) if p[i] else 0))
    for _ in range(20):
        g.vec(0, mask(20))
    for k in "b32", "b64":
        n = int(k[1:])
        for lanes in 32, 20, 1:
            f = s.form("match %s %d lanes" % (k, lanes), "any:b32 all:b32 p:pred all2:b32", "a:%s m:b32" % k,
                       "match.any.sync.%s %%any, %%a, %%m; match.all.sync.%s %%all|%%p, %%a, %%m; match.all.sync.%s %%all2, %%a, %%m;" % (k, k, k), lanes=lanes)
            for turn in range(8):
                pool = [r.getrandbits(n) for _ in range((1, 2, 3, 8, 32)[turn % 5])]
                if n == 64 and turn >= 4:  # values that differ in one half only
                    pool += [pool[0] ^ 1 << 32, pool[0] ^ 1]
                a = [r.choice(pool) for _ in range(lanes)]
                m = mask(32) if turn % 2 else mask(lanes)
                for x in a:
                    same = sum(1 << j for j, y in enumerate(a) if y == x)
                    every = len(set(a)) == 1
                    f.vec((x, m), (same, mask(lanes) if every else 0, every, mask(lanes) if every else 0))
        f = s.form("match %s by some lanes" % k, "any:b32 all:b32 p:pred", "a:%s m:b32 g:pred" % k,
                   "mov.b32 %%any, 0; mov.b32 %%all, 0; mov.pred %%p, 0; @%%g match.any.sync.%s %%any, %%a, %%m; @%%g match.all.sync.%s %%all|%%p, %%a, %%m;" % (k, k), lanes=32)
        for turn in range(6):
            m = r.getrandbits(32) | 1
            pool = [r.getrandbits(n) for _ in range((1, 2, 4)[turn % 3])]
            a = [r.choice(pool) if m >> i & 1 else r.getrandbits(n) for i in range(32)]
            values = {a[i] for i in range(32) if m >> i & 1}
            for i in range(32):
                if m >> i & 1:
                    f.vec((a[i], m, 1), (sum(1 << j for j in range(32) if m >> j & 1 and a[j] == a[i]), m if len(values) == 1 else 0, len(values) == 1))
                else:
                    f.vec((a[i], m, 0), (0, 0, 0))
    f = s.form("bar.warp.sync orders shared memory", "d:u32", "a:u32", ".shared .align 8 .b8 box[256]; .reg .u32 %p; mov.u32 %p, box; add.u32 %p, %p, %slot; st.shared.u32 [%p], %a; bar.warp.sync 0xffffffff; xor.b32 %p, %slot, 248; .reg .u32 %q; mov.u32 %q, box; add.u32 %p, %p, %q; ld.shared.u32 %d, [%p];", lanes=32)
    a = [r.getrandbits(32) for _ in range(32)]
    for i in range(32):
        f.vec(a[i], a[31 - i])
    f = s.form("bar.red over a CTA", "n:u32 o:pred e:pred", "a:pred", "bar.red.popc.u32 %n, 0, %a; bar.red.or.pred %o, 0, %a; bar.red.and.pred %e, 0, !%a;", lanes=80)
    for _ in range(4):
        p = predicates(r, 80)
        for x in p:
            f.vec(x, (sum(p), any(p), not any(p)))
    return s


SUITES = [shuffles, votes]
