"""Variables, functions and how they are declared, as far as results show it: chapters 5, 7, sections 5.4, 11.2, 11.6. Readings: A6, A20."""
from form import Suite
from number import mask, wrap
from samples import any_int, rng


def declaration():
    s = Suite("declaration", "Variables, alignment, functions, aliases, variadic and multiple parameters: PTX ISA 6.4 sections 5.1, 5.4, 7.1, 11.2, 11.6.")
    variables(s)
    functions(s)
    return s


def variables(s):
    f = s.form("initialisers", "a:u32 b:u32 c:u32 d:u64 e:u16 g:u32 h:f32 z:u32", "i:u32",
               ".reg .u64 %p, %o; mul.wide.u32 %o, %i, 4; mov.u64 %p, open; add.u64 %p, %p, %o; ld.global.u32 %a, [%p]; mov.u64 %p, rows; add.u64 %p, %p, %o; ld.global.u32 %b, [%p]; mov.u64 %p, short; add.u64 %p, %p, %o; ld.global.u32 %c, [%p]; "
               "ld.global.u64 %d, [wide]; ld.const.u16 %e, [narrow]; ld.global.v2.u32 {_, %g}, [pair]; ld.const.f32 %h, [rounded]; ld.global.u32 %z, [nothing];",
               ".global .u32 open[] = {5, 6, 7, 8}; .global .u32 rows[][2] = { {1, 2}, {3, 4} }; .global .u32 short[4] = {9}; .global .u64 wide = -1; .const .u16 narrow = 0x12345; .global .v2 .u32 pair = {1, 0xffffffff}; "
               ".const .f32 rounded = 0.1; .global .u32 nothing;")
    for i in range(4):
        f.vec(i, ((5, 6, 7, 8)[i], i + 1, (9, 0, 0, 0)[i], mask(64), 0x2345, mask(32), 0x3DCCCCCD, 0))
    f = s.form("addresses before generic()", "a:u32 b:u32 g:pred", "i:u32",
               ".reg .u64 %p; ld.global.u64 %p, [to]; isspacep.global %g, %p; ld.u32 %a, [%p]; ld.global.u32 %b, [table+4];", ".global .u32 table[2] = {33, 44}; .global .u64 to = table;", version="3.0", target="sm_20")
    f.vec(0, (33, 44, True))
    # An address modulo the alignment is 0, and the start of the array alone is aligned.
    f = s.form("alignment", "a:u64 b:u64 c:u64 d:u64 e:u64 g:u64", "i:u32",
               ".local .align 32 .b8 lo[5]; .shared .align 64 .b8 sh[5]; .shared .v4 .f32 quad; .reg .u64 %p; .reg .u32 %q; mov.u64 %p, gl; and.b64 %a, %p, 255; mov.u64 %p, co; and.b64 %b, %p, 15; mov.u64 %p, lo; and.b64 %c, %p, 31; mov.u32 %q, sh; cvt.u64.u32 %p, %q; and.b64 %d, %p, 63; "
               "mov.u32 %q, quad; cvt.u64.u32 %p, %q; and.b64 %e, %p, 15; mov.u64 %p, gl[1]; and.b64 %g, %p, 255;",
               ".global .b8 before; .global .align 256 .b8 gl[7]; .const .u8 odd; .const .v2 .f64 co;")
    f.vec(0, (0, 0, 0, 0, 0, 1))
    f = s.form("managed variables", "d:u32", "a:u32", "atom.global.add.u32 _, [shared_with_host], 0; ld.global.u32 %d, [shared_with_host]; add.u32 %d, %d, %a;", ".global .attribute(.managed) .u32 shared_with_host = 100;")
    for a in 0, 1, mask(32):
        f.vec(a, wrap(a + 100, 32))


def functions(s):
    r = rng("declaration functions")
    f = s.form("two results", "d:u32 e:u32", "a:u32 b:u32", "call (%d, %e), both, (%a, %b);", ".func (.reg .u32 %q, .reg .u32 %r) both (.reg .u32 %x, .reg .u32 %y) { add.u32 %q, %x, %y; sub.u32 %r, %x, %y; ret; }", version="1.4", target="sm_13")
    for _ in range(8):
        a, b = any_int(r, 32), any_int(r, 32)
        f.vec((a, b), (wrap(a + b, 32), wrap(a - b, 32)))
    f = s.form("a call without parameters", "d:u32", "a:u32", "call set; ld.global.u32 %d, [cell]; call set; add.u32 %d, %d, %a;", ".global .u32 cell; .func set { st.global.u32 [cell], 41; ret; }")
    for a in 0, 1, 99:
        f.vec(a, a + 41)
    f = s.form("as many arguments as wanted", "d:u32 e:u32", "a:u32 b:u32 c:u32",
               "{ .param .b32 n; .param .align 4 .b8 v[12]; .param .b32 r; st.param.b32 [n], 3; st.param.b32 [v], %a; st.param.b32 [v+4], %b; st.param.b32 [v+8], %c; call (r), sum, (n, v); ld.param.b32 %d, [r]; } "
               "{ .param .b32 n; .param .b32 r; st.param.b32 [n], 0; call (r), sum, (n); ld.param.b32 %e, [r]; }",
               ".func (.param .b32 r) sum (.param .b32 n, .param .align 4 .b8 v[]) { .reg .u32 %n, %s, %x; .reg .u64 %p; .reg .pred %q; ld.param.u32 %n, [n]; mov.u32 %s, 7; mov.u64 %p, v; LOOP: setp.eq.u32 %q, %n, 0; @%q bra DONE; ld.local.u32 %x, [%p]; add.u32 %s, %s, %x; "
               "add.u64 %p, %p, 4; sub.u32 %n, %n, 1; bra LOOP; DONE: st.param.b32 [r], %s; ret; }")
    for _ in range(8):
        v = tuple(any_int(r, 32) for _ in range(3))
        f.vec(v, (wrap(7 + sum(v), 32), 7))
    f = s.form("a function that does not return", "d:u32", "n:u32", "mov.u32 %d, 1; st.global.u32 [%out], %d; .reg .pred %p; setp.gt.u32 %p, %n, 3; @%p call leave; mov.u32 %d, 2;", ".func leave .noreturn { exit; }", lanes=8)
    for n in range(8):
        f.vec(n, 1 if n > 3 else 2)
    f = s.form("aliases", "d:u32 same:pred", "a:u32", "{ .param .b32 x; .param .b32 r; st.param.b32 [x], %a; call (r), other_name, (x); ld.param.b32 %d, [r]; } setp.eq.u32 %same, %d, 0; .reg .u64 %p, %q; mov.u64 %p, plus_one; mov.u64 %q, other_name; setp.eq.u64 %same, %p, %q;",
               ".visible .func (.param .b32 r) plus_one (.param .b32 x) { .reg .u32 %v; ld.param.u32 %v, [x]; add.u32 %v, %v, 1; st.param.b32 [r], %v; ret; } .visible .func (.param .b32 r) other_name (.param .b32 x); .alias other_name, plus_one;")
    for _ in range(6):
        a = any_int(r, 32)
        f.vec(a, (wrap(a + 1, 32), True))


SUITES = [declaration]
