"""Operands and what instructions do beside computing: addresses, vector registers, names as values, guards, hints.

Chapter 6, sections 9.3, 9.7.8.2, 9.7.8.13, 9.7.11, 9.7.17. Readings: A127, A150, V13.
"""
from form import Suite
from number import mask, wrap
from samples import any_int, rng


def signed(x, bits=32):
    return x - (x >> bits - 1 << bits)


def operand():
    s = Suite("operand", "Addresses, vector registers, names as values, guards, hints: PTX ISA 6.4 chapter 6, sections 9.3, 9.7.8, 9.7.11. Reading: V13.")
    addresses(s)
    vectors(s)
    names(s)
    guards(s)
    video_immediates(s)
    return s


def addresses(s):
    r = rng("operand addresses")
    some = [any_int(r, 32) for _ in range(6)]
    # Both directions: one of the sums wraps where an address has 32 bits.
    for bits in 32, 64:
        f = s.form("offsets at both ends of their range, %d-bit addresses" % bits, "d:u32 e:u32", "a:u32",
                   ".reg .u%d %%p; sub.u%d %%p, %%in, 2147483647; ld.global.u32 %%d, [%%p+2147483647]; add.u%d %%p, %%in, 2147483648; ld.global.u32 %%e, [%%p+-2147483648];" % (bits, bits, bits),
                   **({"address": "32"} if bits == 32 else {}))
        for a in some:
            f.vec(a, (a, a))
    # The address is a number: what is stored there is found through a register that holds the number.
    f = s.form("absolute addresses", "d:u32 e:u16", "a:u32",
               ".shared .align 8 .b8 box[64]; .reg .u32 %p; mov.u32 %p, box; mov.u32 %p, 16; st.shared.u32 [16], %a; ld.shared.u32 %d, [%p]; ld.shared.u16 %e, [18];", lanes=1)
    for a in some:
        f.vec(a, (a, a >> 16))
    f = s.form("constant banks", "d:u32 e:u32", "i:u32",
               ".reg .u64 %p, %o; mul.wide.u32 %o, %i, 4; mov.u64 %p, second; add.u64 %p, %p, %o; ld.const[2].u32 %d, [%p]; ld.const[10].s8 %e, [tenth+1];",
               ".const[2] .u32 second[4] = {5, 0xffffffff, 7, 1}; .const[10] .s8 tenth[3] = {1, -2, 3};", version="2.1", target="sm_20")
    for i in range(4):
        f.vec(i, ((5, mask(32), 7, 1)[i], mask(32) - 1))
    f = s.form("prefetch changes nothing", "d:u32 e:u32", "a:u32",
               ".shared .u32 sh[128]; .local .u32 lo; .reg .u32 %p; .reg .u64 %q; mov.u32 %p, sh; shr.u32 %slot, %slot, 1; add.u32 %p, %p, %slot; st.shared.u32 [%p], %a; st.local.u32 [lo], %a; prefetch.global.L1 [%in]; prefetch.global.L2 [%in+4]; "
               "prefetch.L1 [%in]; prefetch.L2 [%in]; prefetchu.L1 [%in]; cvt.u64.u32 %q, %p; cvta.shared.u64 %q, %q; prefetch.L1 [%q]; prefetchu.L1 [%q]; mov.u64 %q, lo; prefetch.local.L1 [%q]; prefetch.local.L2 [%q]; cvta.local.u64 %q, %q; prefetchu.L1 [%q]; "
               "ld.shared.u32 %d, [%p]; ld.local.u32 %e, [lo];")
    for a in some:
        f.vec(a, (a, a))
    f = s.form("nanosleep and brkpt go on", "d:u32", "a:u32", "nanosleep.u32 0; add.u32 %d, %a, 1; nanosleep.u32 100; brkpt; .reg .u32 %t; and.b32 %t, %a, 63; nanosleep.u32 %t; add.u32 %d, %d, 1;")
    for a in some:
        f.vec(a, wrap(a + 2, 32))
    f = s.form("atom without its result", "d:u32 e:u64", "a:u32 b:u32 c:u64",
               "atom.global.add.u32 _, [%in], %b; atom.exch.b64 _, [%in+16], 77; atom.global.cas.b32 _, [%in], 0, 1; ld.global.u32 %d, [%in]; ld.global.u64 %e, [%in+16];", lanes=1)
    for a in some + [0]:
        b = any_int(r, 32) if a else 0
        f.vec((a, b, 9), (wrap(a + b, 32) or 1, 77))


def vectors(s):
    r = rng("operand vectors")
    some = [tuple(any_int(r, 32) for _ in range(4)) for _ in range(6)]
    f = s.form("elements of a vector register by both names", "d0:u32 d1:u32 d2:u32 d3:u32 e0:u32 e1:u32 e2:u32 e3:u32", "a:u32 b:u32 c:u32 e:u32",
               ".reg .v4 .u32 %v, %w; mov.u32 %v.x, %a; mov.u32 %v.y, %b; mov.u32 %v.z, %c; mov.u32 %v.w, %e; mov.u32 %d0, %v.r; mov.u32 %d1, %v.g; mov.u32 %d2, %v.b; mov.u32 %d3, %v.a; "
               "mov.u32 %w.a, %a; mov.u32 %w.b, %b; mov.u32 %w.g, %c; mov.u32 %w.r, %e; add.u32 %e0, %w.x, 0; add.u32 %e1, %w.y, 0; add.u32 %e2, %w.z, 0; add.u32 %e3, %w.w, 0;")
    for v in some:
        f.vec(v, v + v[::-1])
    f = s.form("mov of a vector register to a list", "d0:f32 d1:f32 d2:f32 d3:f32 e0:u16 e1:u16", "a:f32 b:f32 c:f32 e:f32 g:u16 h:u16",
               ".reg .v4 .f32 %v; .reg .v2 .u16 %w; mov.f32 %v.x, %a; mov.f32 %v.y, %b; mov.f32 %v.z, %c; mov.f32 %v.w, %e; mov.v4.f32 {%d0, %d1, %d2, %d3}, %v; mov.u16 %w.x, %g; mov.u16 %w.y, %h; mov.v2.u16 {%e0, %e1}, %w;")
    for v in some:
        v = v + (any_int(r, 16), any_int(r, 16))
        f.vec(v, v)


def names(s):
    r = rng("operand names")
    some = [any_int(r, 32) for _ in range(6)]
    f = s.form("addresses of variables", "d:u32 e:u32 g:u32 h:u32", "a:u32",
               ".shared .align 8 .u32 sh[260]; .local .u32 lo[4]; .reg .u64 %p; .reg .u32 %q; mov.u64 %p, gl+8; ld.global.u32 %d, [%p]; mov.u64 %p, gl[1]; ld.global.u32 %e, [%p]; mov.u64 %p, co+4; ld.const.u32 %g, [%p]; "
               "mov.u32 %q, sh+8; add.u32 %q, %q, %slot; st.shared.u32 [%q], %a; mov.u64 %p, lo; st.local.u32 [%p+12], 0; mov.u64 %p, lo+12; ld.shared.u32 %q, [%q]; st.local.u32 [%p], %q; ld.local.u32 %h, [lo+12];",
               ".global .u32 gl[4] = {11, 22, 33, 44}; .const .u32 co[2] = {55, 66};")
    for a in some:
        f.vec(a, (33, 22, 66, a))
    f = s.form("address of a kernel parameter", "p:pred q:pred", "a:u32",
               ".reg .u64 %t, %x, %y; mov.u64 %t, source; ld.param.u64 %x, [%t]; ld.param.u64 %y, [source]; setp.eq.u64 %p, %x, %y; mov.u64 %t, result; ld.param.u64 %x, [%t]; ld.param.u64 %y, [result]; setp.eq.u64 %q, %x, %y;")
    for a in some:
        f.vec(a, (True, True))
    f = s.form("address of a function's parameter", "d:u32 e:u32 g:u32", "a:u32 b:u32",
               "{ .param .align 8 .b8 box[8]; .param .b64 res; st.param.u32 [box], %a; st.param.u32 [box+4], %b; call (res), read, (box); .reg .u64 %w; ld.param.b64 %w, [res]; mov.b64 {%d, %e}, %w; ld.param.b64 %w, [res]; cvt.u32.u64 %g, %w; }",
               ".func (.param .b64 res) read (.param .align 8 .b8 x[8]) { .reg .u64 %p; .reg .u32 %a, %b; .reg .b64 %v; mov.u64 %p, x; ld.local.u32 %a, [%p]; cvta.local.u64 %p, %p; ld.u32 %b, [%p+4]; st.u32 [%p+4], 3; ld.param.u32 %a, [x]; mov.b64 %v, {%b, %a}; st.param.b64 [res], %v; ret; }")
    for a in some:
        b = any_int(r, 32)
        f.vec((a, b), (b, a, b))
    functions = (".func (.reg .u32 %r) twice (.reg .u32 %x) { add.u32 %r, %x, %x; } .func (.reg .u32 %r) minus (.reg .u32 %x) { neg.s32 %r, %x; ret.uni; } ")
    f = s.form("functions as values", "d:u32 e:u32 same:pred other:pred", "a:u32 p:pred",
               ".reg .u64 %f, %g, %h; mov.u64 %f, twice; mov.u64 %g, minus; setp.eq.u64 %other, %f, %g; ld.global.u64 %h, [there]; setp.eq.u64 %same, %h, %g; selp.b64 %h, %f, %g, %p; "
               "L: .calltargets twice, minus; call (%d), %h, (%a), L; P: .callprototype (.reg .u32 _) _ (.reg .u32 _); call.uni (%e), %g, (%a), P;",
               functions + ".global .u64 there = minus;")
    for a in some:
        for p in 0, 1:
            f.vec((a, p), (wrap(2 * a if p else -a, 32), wrap(-a, 32), True, False))
    f = s.form("a kernel as a value", "same:pred there:pred", "a:u32",
               ".reg .u64 %k, %h; mov.u64 %k, other; ld.global.u64 %h, [entry]; setp.eq.u64 %same, %h, %k; setp.ne.u64 %there, %k, 0;", ".visible .entry other() { ret; } .global .u64 entry = other;")
    f.vec(0, (True, True))
    # The functions end without ret; .uni says that all threads agree, as they do here.
    f = s.form("uniform control flow, and functions that end without ret", "d:u32", "a:u32",
               "bra.uni OVER; BACK: bra.uni JOIN; OVER: call.uni (%d), twice, (%a); bra.uni BACK; JOIN: call.uni (%d), minus, (%d); T: .branchtargets A, B; .reg .u32 %i; mov.u32 %i, 1; brx.idx.uni %i, T; A: add.u32 %d, %d, 1; B: add.u32 %d, %d, 2;", functions)
    for a in some:
        f.vec(a, wrap(2 - 2 * a, 32))


def guards(s):
    f = s.form("a false guard prevents everything", "d:u32 e:u32", "a:u32 p:pred",
               ".reg .u64 %z; mov.u64 %z, 0; mov.u32 %d, 5; mov.u32 %e, 6; @%p ld.global.u32 %d, [%z]; @%p st.global.u32 [%z], %a; @%p atom.global.add.u32 %d, [%z], 1; @%p red.global.add.u32 [%z], 1; @%p ld.shared.u32 %d, [%z+65536]; @%p trap; "
               "@%p exit; @%p call (%d), never, (%a); @!%p add.u32 %e, %e, %a;",
               ".func (.reg .u32 %r) never (.reg .u32 %x) { trap; }")
    for a in 0, 1, 99:
        f.vec((a, 0), (5, 6 + a))


def video_immediates(s):
    r = rng("operand video")
    f = s.form("video instructions with immediates", "d0:u32 d1:s32 d2:u32 d3:u32 d4:u32 d5:s32", "a:u32 b:u32",
               "vadd.u32.u32.u32 %d0, %a, 5; vadd.s32.s32.s32.add %d1, %a.b0, -3, 7; vsub.u32.u32.u32 %d2, 1000, %a.h0; vadd2.u32.u32.u32 %d3, %a, %b, 0; vadd4.u32.u32.u32.add %d4, %a, %b, 9; vmad.s32.s32.s32 %d5, %a.h1, %b.b3, -1;")
    for _ in range(20):
        a, b = any_int(r, 32), any_int(r, 32)
        halves = sum(((a >> k & 0xFFFF) + (b >> k & 0xFFFF) & 0xFFFF) << k for k in (0, 16))
        sums = 9 + sum((a >> k & 0xFF) + (b >> k & 0xFF) for k in (0, 8, 16, 24))
        f.vec((a, b), (wrap(a + 5, 32), wrap(signed(a & 0xFF, 8) - 3 + 7, 32), wrap(1000 - (a & 0xFFFF), 32), halves, sums, wrap(signed(a >> 16, 16) * signed(b >> 24, 8) - 1, 32)))


SUITES = [operand]
