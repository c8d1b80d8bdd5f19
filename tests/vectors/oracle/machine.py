"""Special registers, control flow, calls, synchronisation: chapters 9.7.11, 9.7.12, 10, each a small program with a plain Python twin."""
from math import gcd

from form import Suite
from number import mask, wrap
from samples import any_int, rng


def special():
    s = Suite("special_register", "%tid %ntid %ctaid %nctaid %laneid %lanemask_* and WARP_SZ: PTX ISA 6.4 chapter 10. Reading: A158 (.w is 0).")
    for lanes, ctas in (32, 3), (80, 2), (1, 2), (20, 1):
        f = s.form("special registers, %d threads" % lanes, "t:u32 ty:u32 tw:u32 n:u32 ny:u32 nw:u32 c:u32 cy:u32 g:u32 gz:u32 l:u32 eq:u32 lt:u32 le:u32 gt:u32 ge:u32 h:u16 w:u64 q:u32", "z:u32",
                   "mov.u32 %t, %tid.x; mov.u32 %ty, %tid.y; mov.u32 %tw, %tid.w; mov.u32 %n, %ntid.x; mov.u32 %ny, %ntid.y; mov.u32 %nw, %ntid.w; mov.u32 %c, %ctaid.x; mov.u32 %cy, %ctaid.y; "
                   "mov.u32 %g, %nctaid.x; mov.u32 %gz, %nctaid.z; mov.u32 %l, %laneid; mov.u32 %eq, %lanemask_eq; mov.u32 %lt, %lanemask_lt; mov.u32 %le, %lanemask_le; mov.u32 %gt, %lanemask_gt; mov.u32 %ge, %lanemask_ge; "
                   "mov.u16 %h, %tid.x; cvt.u64.u32 %w, %ctaid.x; mov.u32 %q, WARP_SZ; ", lanes=lanes)
        for cta in range(ctas):
            for t in range(lanes):
                l = t % 32
                eq = 1 << l
                f.vec(0, (t, 0, 0, lanes, 1, 0, cta, 0, ctas, 1, l, eq, eq - 1, 2 * eq - 1, mask(32) & ~(2 * eq - 1), mask(32) & ~(eq - 1), t, cta, 32))
    return s


def collatz(n):
    steps = 0
    while n != 1 and steps < 1000:
        n = wrap(3 * n + 1, 32) if n & 1 else n >> 1
        steps += 1
    return steps


def control():
    s = Suite("control", "Loops, branches, brx.idx, calls, recursion, function pointers, exit: PTX ISA 6.4 sections 9.7.11, 7.1, 11.2, 11.3.")
    r = rng("control")
    f = s.form("gcd by a loop", "d:u32", "a:u32 b:u32", ".reg .pred %z; .reg .u32 %t; LOOP: setp.eq.u32 %z, %b, 0; @%z bra DONE; rem.u32 %t, %a, %b; mov.u32 %a, %b; mov.u32 %b, %t; bra LOOP; DONE: mov.u32 %d, %a;")
    for _ in range(40):
        a, b = any_int(r, 32), any_int(r, 32)
        k = r.choice((1, 6, 1024))
        f.vec((wrap(a * k, 32), wrap(b * k, 32)), gcd(wrap(a * k, 32), wrap(b * k, 32)))
    f = s.form("collatz: a branch in a loop", "d:u32", "n:u32", ".reg .pred %p, %q; .reg .u32 %o; mov.u32 %d, 0; LOOP: setp.eq.u32 %p, %n, 1; @%p bra.uni DONE; setp.ge.u32 %p, %d, 1000; @%p bra DONE; and.b32 %o, %n, 1; "
               "setp.ne.u32 %q, %o, 0; @%q bra ODD; shr.u32 %n, %n, 1; bra NEXT; ODD: mad.lo.u32 %n, %n, 3, 1; NEXT: add.u32 %d, %d, 1; bra LOOP; DONE: ".replace("bra.uni DONE", "bra DONE"))
    for n in list(range(1, 30)) + [97, 871, 6171, 0, 0xFFFFFFFF]:
        f.vec(n, collatz(n))
    f = s.form("primes by nested loops with break and continue", "d:u32", "n:u32",
               ".reg .pred %p; .reg .u32 %i, %j, %r, %s; mov.u32 %d, 0; mov.u32 %i, 2; OUTER: setp.gt.u32 %p, %i, %n; @%p bra DONE; mov.u32 %j, 2; INNER: mul.lo.u32 %s, %j, %j; setp.gt.u32 %p, %s, %i; @%p bra PRIME; "
               "rem.u32 %r, %i, %j; setp.eq.u32 %p, %r, 0; @%p bra NEXT; add.u32 %j, %j, 1; bra INNER; PRIME: add.u32 %d, %d, 1; NEXT: add.u32 %i, %i, 1; bra OUTER; DONE:")
    for n in range(0, 64):
        f.vec(n, sum(all(i % j for j in range(2, i)) for i in range(2, n + 1)))
    f = s.form("a loop with two entries", "d:u32", "n:u32 e:pred", ".reg .pred %p; mov.u32 %d, 1; @%e bra SECOND; FIRST: mul.lo.u32 %d, %d, 3; SECOND: add.u32 %d, %d, 7; sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra FIRST;")
    for n in range(1, 20):
        for e in 0, 1:
            d = 1
            for i in range(n):
                d = wrap((d * 3 if i or not e else d) + 7, 32)
            f.vec((n, e), d)
    f = s.form("brx.idx", "d:u32", "i:u32", "T: .branchtargets ZERO, ONE, TWO, ONE, FOUR; brx.idx %i, T; ZERO: mov.u32 %d, 100; bra JOIN; ONE: mov.u32 %d, 101; bra JOIN; TWO: mov.u32 %d, 102; bra FALL; FOUR: mov.u32 %d, 104; FALL: add.u32 %d, %d, 1000; JOIN: add.u32 %d, %d, %i;")
    for i in [0, 1, 2, 3, 4] * 7:
        f.vec(i, {0: 100, 1: 101, 2: 1102, 3: 101, 4: 1104}[i] + i)
    f = s.form("guards of both kinds on one path", "d:u32", "a:s32 b:s32", ".reg .pred %p, %q; mov.u32 %d, 0; setp.lt.s32 %p|%q, %a, %b; @%p add.u32 %d, %d, 1; @!%p add.u32 %d, %d, 2; @%q add.u32 %d, %d, 4; @!%q bra END; add.u32 %d, %d, 8; END:")
    for a, b in (1, 2), (2, 1), (0, 0), (0x80000000, 0), (0, 0x80000000):
        less = (a - (a >> 31 << 32)) < (b - (b >> 31 << 32))
        f.vec((a, b), 1 if less else 2 + 4 + 8)
    f = s.form("call with register parameters", "d:u32", "a:u32 b:u32", "call.uni (%d), mix, (%a, %b); call (%d), mix, (%d, 5);",
               ".func (.reg .u32 %r) mix (.reg .u32 %x, .reg .u32 %y) { mad.lo.u32 %r, %x, 31, %y; ret; }")
    for _ in range(6):
        a, b = any_int(r, 32), any_int(r, 32)
        f.vec((a, b), wrap((a * 31 + b) * 31 + 5, 32))
    f = s.form("recursion in .param", "d:u64", "n:u32", "{ .param .b32 arg; .param .b64 res; st.param.b32 [arg], %n; call.uni (res), fact, (arg); ld.param.b64 %d, [res]; }",
               ".func (.param .b64 res) fact (.param .b32 n) { .reg .u32 %n; .reg .u64 %v, %w; .reg .pred %p; ld.param.u32 %n, [n]; mov.u64 %v, 1; setp.lt.u32 %p, %n, 2; @%p bra DONE; "
               "{ .param .b32 a; .param .b64 b; .reg .u32 %m; sub.u32 %m, %n, 1; st.param.b32 [a], %m; call (b), fact, (a); ld.param.b64 %v, [b]; } cvt.u64.u32 %w, %n; mul.lo.u64 %v, %v, %w; DONE: st.param.b64 [res], %v; ret; }")
    product = 1
    for n in range(0, 22):
        product = wrap(product * max(n, 1), 64)
        f.vec(n, product)
    f = s.form("mutual recursion", "d:u32", "n:u32", "call (%d), even, (%n);",
               ".func (.reg .u32 %r) odd (.reg .u32 %n); .func (.reg .u32 %r) even (.reg .u32 %n) { .reg .pred %p; .reg .u32 %m; mov.u32 %r, 1; setp.eq.u32 %p, %n, 0; @%p ret; sub.u32 %m, %n, 1; call (%r), odd, (%m); ret; } "
               ".func (.reg .u32 %r) odd (.reg .u32 %n) { .reg .pred %p; .reg .u32 %m; mov.u32 %r, 0; setp.eq.u32 %p, %n, 0; @%p ret; sub.u32 %m, %n, 1; call (%r), even, (%m); ret; }")
    for n in range(0, 33):
        f.vec(n, 1 - n % 2)
    f = s.form("calls through a table", "d:u32", "i:u32 a:u32",
               ".reg .u64 %t, %o, %g; mov.u64 %t, table; mul.wide.u32 %o, %i, 8; add.u64 %t, %t, %o; ld.global.u64 %g, [%t]; P: .callprototype (.param .b32 _) _ (.param .b32 _); "
               "{ .param .b32 x; .param .b32 y; st.param.b32 [x], %a; call (y), %g, (x), P; ld.param.b32 %d, [y]; }",
               ".func (.param .b32 r) twice (.param .b32 x) { .reg .u32 %v; ld.param.u32 %v, [x]; add.u32 %v, %v, %v; st.param.u32 [r], %v; ret; } .func (.param .b32 r) square (.param .b32 x) { .reg .u32 %v; ld.param.u32 %v, [x]; mul.lo.u32 %v, %v, %v; "
               "st.param.u32 [r], %v; ret; } .func (.param .b32 r) negate (.param .b32 x) { .reg .u32 %v; ld.param.u32 %v, [x]; neg.s32 %v, %v; st.param.u32 [r], %v; ret; } .global .u64 table[3] = {twice, square, negate};")
    for k in range(30):
        i, a = k % 3, any_int(r, 32)
        f.vec((i, a), wrap((2 * a, a * a, -a)[i], 32))
    f = s.form("a structure by value", "d:u64", "a:u32 b:u16 c:u64", "{ .param .align 8 .b8 box[16]; .param .b64 res; st.param.u32 [box], %a; st.param.u16 [box+4], %b; st.param.u64 [box+8], %c; call (res), sum, (box); ld.param.u64 %d, [res]; }",
               ".func (.param .b64 res) sum (.param .align 8 .b8 box[16]) { .reg .u64 %x, %y; .reg .u32 %a; .reg .u16 %b; ld.param.u32 %a, [box]; ld.param.u16 %b, [box+4]; ld.param.u64 %x, [box+8]; cvt.u64.u32 %y, %a; add.u64 %x, %x, %y; cvt.u64.u16 %y, %b; add.u64 %x, %x, %y; st.param.u64 [res], %x; ret; }")
    for _ in range(6):
        a, b, c = any_int(r, 32), any_int(r, 16), any_int(r, 64)
        f.vec((a, b, c), wrap(a + b + c, 64))
    f = s.form("a guarded call, and returns at different depths", "d:u32", "n:u32 p:pred", "mov.u32 %d, 77; @%p call (%d), search, (%n); add.u32 %d, %d, 1;",
               ".func (.reg .u32 %r) search (.reg .u32 %n) { .reg .pred %q; mov.u32 %r, 0; LOOP: setp.eq.u32 %q, %n, 0; @%q ret; and.b32 %n, %n, -2; add.u32 %r, %r, 1; setp.gt.u32 %q, %r, 10; @%q ret; shr.u32 %n, %n, 1; bra LOOP; }")
    for n in range(0, 40):
        steps, m = 0, n * 57
        while m and steps <= 10:
            m &= ~1
            steps += 1
            if steps > 10:
                break
            m >>= 1
        for p in 0, 1:
            f.vec((n * 57, p), (steps if p else 77) + 1)
    f = s.form("local memory in recursion", "d:u32", "n:u32", "call (%d), walk, (%n, 0);",
               ".func (.reg .u32 %r) walk (.reg .u32 %n, .reg .u32 %depth) { .local .align 4 .u32 cell; .reg .u32 %m, %v, %e; .reg .pred %p; mul.lo.u32 %m, %n, %n; st.local.u32 [cell], %m; mov.u32 %r, 0; setp.eq.u32 %p, %n, 0; @%p bra DONE; "
               "sub.u32 %m, %n, 1; add.u32 %e, %depth, 1; call (%r), walk, (%m, %e); DONE: ld.local.u32 %v, [cell]; add.u32 %r, %r, %v; add.u32 %r, %r, %depth; ret; }")
    for n in range(0, 20):
        f.vec(n, sum(i * i for i in range(n + 1)) + sum(range(n + 1)))
    f = s.form("exit from a function", "d:u32", "n:u32", "mov.u32 %d, 1; st.global.u32 [%out], %d; call leave, (%n); mov.u32 %d, 2;", ".func leave (.reg .u32 %n) { .reg .pred %p; setp.gt.u32 %p, %n, 3; @%p exit; ret; }", lanes=8)
    for n in range(8):
        f.vec(n, 1 if n > 3 else 2)
    f = s.form("ret in the kernel", "d:u32", "n:u32", "mov.u32 %d, 1; st.global.u32 [%out], %d; .reg .pred %p; setp.gt.u32 %p, %n, 3; @%p ret; mov.u32 %d, 2;", lanes=8)
    for n in range(8):
        f.vec(n, 1 if n > 3 else 2)
    return s


def synchronisation():
    s = Suite("synchronisation", "Barriers, warp barriers, waiting on other threads, aggregated atomics: PTX ISA 6.4 sections 9.7.12.1 to 9.7.12.9, 3.2. Reading: A120.")
    r = rng("sync")
    base = ".shared .align 8 .b8 box[2048]; .reg .u32 %b, %p, %q, %v; .reg .pred %k; mov.u32 %b, box; add.u32 %p, %b, %slot; "
    f = s.form("reverse through shared memory", "d:u32", "a:u32 n:u32", base + "st.shared.u32 [%p], %a; bar.sync 0; sub.u32 %q, %n, 1; shl.b32 %q, %q, 3; sub.u32 %q, %q, %slot; add.u32 %q, %q, %b; ld.shared.u32 %d, [%q];", lanes=100)
    a = [any_int(r, 32) for _ in range(100)]
    for i in range(100):
        f.vec((a[i], 100), a[99 - i])
    f = s.form("prefix sums: a barrier in a loop", "d:u32", "a:u32", base + ".reg .u32 %o, %w; mov.u32 %d, %a; mov.u32 %o, 8; LOOP: st.shared.u32 [%p], %d; bar.sync 0; setp.lt.u32 %k, %slot, %o; sub.u32 %q, %p, %o; mov.u32 %v, 0; @!%k ld.shared.u32 %v, [%q]; "
               "bar.sync 0; add.u32 %d, %d, %v; shl.b32 %o, %o, 1; setp.lt.u32 %k, %o, 1024; @%k bra LOOP;", lanes=80)
    total = 0
    for i in range(80):
        x = any_int(r, 32)
        total = wrap(total + x, 32)
        f.vec(x, total)
    f = s.form("producers arrive, consumers wait", "d:u32", "a:u32", base + "setp.lt.u32 %k, %slot, 512; @%k bra CONSUME; st.shared.u32 [%p], %a; bar.arrive 1, 128; mov.u32 %d, 0; bra JOIN; CONSUME: bar.sync 1, 128; ld.shared.u32 %d, [%p+512]; JOIN: bar.sync 0;", lanes=128)
    a = [any_int(r, 32) for _ in range(128)]
    for i in range(128):
        f.vec(a[i], a[i + 64] if i < 64 else 0)
    f = s.form("two pairs of warps at barriers of their own", "d:u32 n:u32", "a:u32 g:pred", base + ".reg .u32 %id; shr.b32 %id, %slot, 9; add.u32 %id, %id, 2; st.shared.u32 [%p], %a; barrier.sync %id, 64; xor.b32 %q, %slot, 256; add.u32 %q, %q, %b; ld.shared.u32 %d, [%q]; barrier.red.popc.u32 %n, %id, 64, %g;", lanes=128)
    a = [any_int(r, 32) for _ in range(128)]
    g = [r.getrandbits(1) for _ in range(128)]
    for i in range(128):
        first = i // 64 * 64
        f.vec((a[i], g[i]), (a[i ^ 32], sum(g[first:first + 64])))
    f = s.form("barrier.sync from both sides of a branch", "d:u32", "a:u32 g:pred", base + "st.shared.u32 [%p], %a; @%g bra ONE; barrier.sync 3; add.u32 %v, %a, 1; bra JOIN; ONE: barrier.sync 3; add.u32 %v, %a, 2; JOIN: xor.b32 %q, %slot, 8; add.u32 %q, %q, %b; ld.shared.u32 %d, [%q]; add.u32 %d, %d, %v;", lanes=64)
    a = [any_int(r, 30) for _ in range(64)]
    g = [r.getrandbits(1) for _ in range(64)]
    for i in range(64):
        f.vec((a[i], g[i]), wrap(a[i ^ 1] + a[i] + 1 + g[i], 32))
    f = s.form("exited threads are not waited for", "d:u32", "a:u32 g:pred", base + "mov.u32 %d, 9; st.global.u32 [%out], %d; st.shared.u32 [%p], %a; @%g exit; bar.sync 0; bar.red.popc.u32 %d, 0, %k; mov.u32 %d, 3;", lanes=96)
    for i in range(96):
        out = 32 <= i < 64
        f.vec((i, out), 9 if out else 3)
    f = s.form("every lane waits for the one before it", "d:u32", "z:u32", ".reg .u32 %lane, %v; .reg .u64 %mine; .reg .pred %k; mov.u32 %lane, %laneid; setp.eq.u32 %k, %lane, 0; @%k bra GO; WAIT: ld.volatile.global.u32 %v, [%group]; setp.ne.u32 %k, %v, %lane; @%k bra WAIT; "
               "GO: add.u32 %d, %lane, 1; st.volatile.global.u32 [%group], %d; ", lanes=32)
    for i in range(32):
        f.vec(0, i + 1)
    f = s.form("a message from one warp to another", "d:u32", "data:u32 ready:u32", ".reg .u32 %w, %v; .reg .pred %k; shr.b32 %w, %slot, 8; setp.ne.u32 %k, %w, 0; @%k bra READ; setp.ne.u32 %k, %slot, 0; mov.u32 %d, 0; @%k bra END; "
               "st.global.u32 [%group], 4242; st.release.gpu.global.u32 [%group+8], 1; bra END; READ: ld.acquire.gpu.global.u32 %v, [%group+8]; setp.eq.u32 %k, %v, 0; @%k bra READ; ld.global.u32 %d, [%group]; END:", lanes=64)
    for i in range(64):
        f.vec((0, 0), 4242 if i >= 32 else 0)
    f = s.form("fence.sc and membar keep values", "d:u32", "a:u32", "st.global.u32 [%in], 5; fence.sc.gpu; membar.cta; fence.acq_rel.sys; membar.sys; membar.gl; ld.global.u32 %d, [%in]; add.u32 %d, %d, %a;")
    f.vec(1, 6)
    f = s.form("one atomic for each group of equal keys", "d:u32", "key:u32", ".reg .u32 %m, %lane, %n, %lt, %top, %r; .reg .pred %k; .reg .u64 %cell, %o; match.any.sync.b32 %m, %key, 0xffffffff; popc.b32 %n, %m; mov.u32 %lt, %lanemask_lt; and.b32 %lt, %lt, %m; popc.b32 %r, %lt; "
               "bfind.u32 %top, %m; mov.u32 %lane, %laneid; setp.eq.u32 %k, %lane, %top; .shared .align 4 .u32 hist[8]; .reg .u32 %h, %x; mov.u32 %h, hist; shl.b32 %x, %key, 2; add.u32 %h, %h, %x; st.shared.u32 [%h], 0; bar.warp.sync 0xffffffff; @%k atom.shared.add.u32 %x, [%h], %n; bar.warp.sync -1; ld.shared.u32 %d, [%h]; mad.lo.u32 %d, %d, 100, %r;", lanes=32)
    keys = [r.randrange(8) for _ in range(32)]
    for i in range(32):
        f.vec(keys[i], keys.count(keys[i]) * 100 + keys[:i].count(keys[i]))
    f = s.form("sum by shfl.sync.down", "d:u32", "a:u32", ".reg .u32 %v, %o; .reg .pred %k; mov.u32 %d, %a; mov.u32 %o, 16; LOOP: shfl.sync.down.b32 %v, %d, %o, 0x1f, 0xffffffff; add.u32 %d, %d, %v; shr.u32 %o, %o, 1; setp.ne.u32 %k, %o, 0; @%k bra LOOP; shfl.sync.idx.b32 %d, %d, 0, 0x1f, 0xffffffff;", lanes=32)
    a = [any_int(r, 32) for _ in range(32)]
    for i in range(32):
        f.vec(a[i], wrap(sum(a), 32))
    f = s.form("inclusive scan by shfl.sync.up and its predicate", "d:u32", "a:u32", "mov.u32 %d, %a; .reg .u32 %v; .reg .pred %k; " + " ".join("shfl.sync.up.b32 %%v|%%k, %%d, %d, 0, -1; @%%k add.u32 %%d, %%d, %%v;" % o for o in (1, 2, 4, 8, 16)), lanes=32)
    for i in range(32):
        f.vec(a[i], wrap(sum(a[: i + 1]), 32))
    f = s.form("bar.warp.sync between the halves of a warp", "d:u32", "a:u32 g:pred", base + "@%g bra ONE; st.shared.u32 [%p], %a; bar.warp.sync 0xffffffff; bra JOIN; ONE: bar.warp.sync 0xffffffff; JOIN: and.b32 %q, %slot, 120; add.u32 %q, %q, %b; ld.shared.u32 %d, [%q];", lanes=32)
    for i in range(32):
        f.vec((a[i], int(i >= 16)), a[i % 16])
    return s


SUITES = [special, control, synchronisation]
