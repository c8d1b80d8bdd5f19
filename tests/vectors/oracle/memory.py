"""Loads, stores, atomics and reductions of one thread and of a whole warp: sections 9.7.8.7 to 9.7.8.13, 9.7.12.4, 9.7.12.5."""
import number as fp
from form import Suite
from number import F16, F32, F64, NAN, mask, read, signed, wrap
from samples import any_float, any_int, edges, float_edges, int_edges, pick, rng

# A cell of the form's own: the thread's operand 0 in global memory, or a word of the CTA's shared memory.
SHARED = ".shared .align 8 .b8 cells[1024]; .reg .u32 %s; mov.u32 %s, cells; add.u32 %s, %s, %slot; "
GENERIC = ".shared .align 8 .b8 cells[1024]; .reg .u32 %s; .reg .u64 %g; mov.u32 %s, cells; add.u32 %s, %s, %slot; cvt.u64.u32 %g, %s; cvta.shared.u64 %g, %g; "
PLACES = {
    "global": ("", ".global", "%in"),
    "generic global": (".reg .u64 %g; cvta.global.u64 %g, %in; ", "", "%g"),
    "shared": (SHARED, ".shared", "%s"),
    "generic shared": (GENERIC, "", "%g"),
}


def access():
    s = Suite("load_store", "ld and st: every type, registers wider than the type, vectors, offsets, cache operators, spaces, strong accesses.",
              "PTX ISA 6.4 sections 9.7.8.7 to 9.7.8.10, 9.4.1 (tables 24, 25). Values are little-endian in memory.")
    for k in "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64".split():
        n = int(k[1:])
        for reg in "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64".split():
            if int(reg[1:]) < n or (reg[0] == "f" and (k[0] != "b")):
                continue
            f = s.form("ld.%s into %s" % (k, reg), "d:" + reg, "m:b64", "ld.global.%s %%d, [%%in];" % k)
            r = rng("ld" + k + reg)
            for m in [mask(64), 1 << (n - 1), mask(n - 1), r.getrandbits(64), r.getrandbits(64)]:
                f.vec(m, wrap(read(m, k), int(reg[1:])))
            f = s.form("st.%s from %s" % (k, reg), "d:b64", "m:b64 a:" + reg, "st.global.%s [%%in], %%a; ld.global.b64 %%d, [%%in];" % k)
            for _ in range(4):
                m, a = r.getrandbits(64), r.getrandbits(int(reg[1:]))
                f.vec((m, a), m & ~mask(n) | a & mask(n))
    for k in "f32", "f64":
        f = s.form("ld.%s st.%s" % (k, k), "d:%s e:b64" % k, "m:%s a:%s" % (k, k), "ld.global.%s %%d, [%%in]; st.global.%s [%%in], %%a; ld.global.b64 %%e, [%%in];" % (k, k))
        for m, a in zip(float_edges(fp.FORMATS[k]), reversed(float_edges(fp.FORMATS[k]))):
            f.vec((m, a), (m, a))
    f = s.form("offsets", "d:u8 e:s16 g:u32 h:b8", "m:b64 o:b64", "ld.global.u8 %d, [%in+5]; ld.global.s16 %e, [%in+2]; .reg .u64 %x; add.u64 %x, %in, 16; ld.global.u32 %g, [%x+-12]; ld.global.b8 %h, [%x+-1];")
    r = rng("offsets")
    for _ in range(6):
        m, o = r.getrandbits(64), r.getrandbits(64)
        f.vec((m, o), (m >> 40 & 255, m >> 16 & 0xFFFF, m >> 32, o >> 56))
    for k in "b8 u8 s8 b16 u16 s16 b32 u32 s32 f32 b64 u64 s64 f64".split():
        n = int(k[1:])
        reg = k if n > 8 else k[0] + "16"
        for lanes in (2, 4) if n < 64 else (2,):
            names = "xyzw"[:lanes]
            words = (n * lanes + 63) // 64
            outs = " ".join("%s:%s" % (c, reg) for c in names)
            f = s.form("ld.v%d.%s" % (lanes, k), outs, " ".join("m%d:b64" % i for i in range(words)) if words != 1 else "m0:b64",
                       ".shared .align 16 .b8 box[2048]; .reg .u32 %%p; .reg .u64 %%t; mov.u32 %%p, box; add.u32 %%p, %%p, %%slot; add.u32 %%p, %%p, %%slot; "
                       "%s ld.shared.v%d.%s {%s}, [%%p];" % (" ".join("st.shared.b64 [%%p+%d], %%m%d;" % (8 * i, i) for i in range(words)), lanes, k, ", ".join("%" + c for c in names)))
            g = s.form("st.v%d.%s" % (lanes, k), " ".join("m%d:b64" % i for i in range(words)), " ".join("%s:%s" % (c, reg) for c in names),
                       ".shared .align 16 .b8 box[2048]; .reg .u32 %%p; .reg .b64 %%zero; mov.u64 %%zero, 0; mov.u32 %%p, box; add.u32 %%p, %%p, %%slot; add.u32 %%p, %%p, %%slot; "
                       "st.shared.b64 [%%p], %%zero; st.shared.v%d.%s [%%p], {%s}; %s" % (lanes, k, ", ".join("%" + c for c in names), " ".join("ld.shared.b64 %%m%d, [%%p+%d];" % (i, 8 * i) for i in range(words))))
            r = rng("vector" + k + str(lanes))
            for _ in range(4):
                x = [r.getrandbits(n) for _ in names]
                total = sum(v << n * i for i, v in enumerate(x))
                parts = tuple(total >> 64 * i & mask(64) for i in range(words))
                f.vec(parts, tuple(wrap(read(v, k), int(reg[1:])) for v in x))
                g.vec(tuple(v if n > 8 else v | r.getrandbits(8) << 8 for v in x), parts)
    for q in "", ".ca", ".cg", ".cs", ".lu", ".cv":
        f = s.form("ld.global%s.u32" % q, "d:u32", "m:u32", "ld.global%s.u32 %%d, [%%in];" % q)
        f.vec(0x12345678, 0x12345678)
    for q in "", ".wb", ".cg", ".cs", ".wt":
        f = s.form("st.global%s.u32" % q, "d:u32", "m:u32 a:u32", "st.global%s.u32 [%%in], %%a; ld.u32 %%d, [%%in];" % q)
        f.vec((1, 0x12345678), 0x12345678)
    for q in [".volatile.global", ".weak.global", ".volatile", ".weak", ".volatile.shared"] + [".%s.%s%s" % (m, c, sp) for m in ("relaxed", "acquire") for c in ("cta", "gpu", "sys") for sp in (".global", "")]:
        other = q.replace("acquire", "release")
        place = PLACES["shared"] if q.endswith("shared") else PLACES["global"]
        for k in "u32", "b64", "s16":
            f = s.form("ld%s st%s %s" % (q, other, k), "d:" + k, "m:%s a:%s" % (k, k), place[0] + "st%s.%s [%s], %%a; ld%s.%s %%d, [%s];" % (other, k, place[2], q, k, place[2]))
            r = rng(q + k)
            for _ in range(2):
                m, a = pick(r, k), pick(r, k)
                f.vec((m, a), a)
    for q in ".global.nc", ".global.ca.nc", ".global.cg.nc", ".global.cs.nc":
        f = s.form("ld%s.u32" % q, "d:u32 x:s8", "m:u32", "ld%s.u32 %%d, [%%in]; ld%s.s8 %%x, [%%in+3];" % (q, q))
        f.vec(0xFE345678, (0xFE345678, 0xFE))
    f = s.form("ldu", "d:u32 x:u64", "m:u32", ".reg .u64 %z; ldu.global.u32 %d, [%group]; ldu.u32 %d, [%group]; cvt.u64.u32 %x, %d;", lanes=1)
    f.vec(0x12345678, (0x12345678, 0x12345678))
    f = s.form("local memory", "d:u64 e:s8", "a:u64", ".local .align 8 .b8 stack[16]; .reg .u64 %p; mov.u64 %p, stack; st.local.u64 [%p+8], %a; ld.local.u64 %d, [%p+8]; cvta.local.u64 %p, %p; ld.s8 %e, [%p+9];")
    r = rng("local")
    for _ in range(4):
        a = r.getrandbits(64)
        f.vec(a, (a, wrap(read(a >> 8, "s8"), 8)))
    f = s.form("variables with initial values", "d:u32 e:f32 g:s16 h:u64", "i:u32",
               ".global .align 4 .u32 table[4] = {1, 0xffffffff, 3}; .global .f32 pi = 3.14159265; .global .s16 half = -7; .global .u64 wide = 0x0123456789abcdef; "
               ".reg .u64 %p, %o; mov.u64 %p, table; mul.wide.u32 %o, %i, 4; add.u64 %p, %p, %o; ld.global.u32 %d, [%p]; ld.global.f32 %e, [pi]; ld.global.s16 %g, [half]; ld.global.u64 %h, [wide];")
    for i, v in enumerate((1, mask(32), 3, 0)):
        f.vec(i, (v, 0x40490FDB, wrap(-7, 16), 0x0123456789ABCDEF))
    f = s.form("constant memory", "d:u32 e:s8 g:f64 h:u32 isc:pred isg:pred", "i:u32",
               ".reg .u64 %p, %o; mul.wide.u32 %o, %i, 4; mov.u64 %p, bank; add.u64 %p, %p, %o; ld.const.u32 %d, [%p]; ld.const.s8 %e, [small+1]; ld.const.f64 %g, [wide]; cvta.const.u64 %p, %p; ld.u32 %h, [%p]; "
               "isspacep.const %isc, %p; isspacep.global %isg, %p; cvta.to.const.u64 %p, %p; ld.const.u32 %d, [%p];",
               ".const .align 4 .u32 bank[4] = {7, 0x80000000, 0, 99}; .const .s8 small[2] = {1, -2}; .const .align 8 .f64 wide = 2.5;")
    for i, v in enumerate((7, 1 << 31, 0, 99)):
        f.vec(i, (v, wrap(-2, 8), 0x4004000000000000, v, 1, 0))
    f = s.form("addresses in initial values", "d:u32 e:u32", "i:u32", ".reg .u64 %p; ld.global.u64 %p, [to]; ld.global.u32 %d, [%p]; ld.global.u64 %p, [anywhere]; ld.u32 %e, [%p+4];",
               ".global .align 4 .u32 array[3] = {11, 22, 33}; .global .u64 to = array+8; .global .u64 anywhere = generic(array);")
    f.vec(0, (33, 22))
    f = s.form("arrays of two dimensions and bytes", "d:s16 e:u8 g:u32", "i:u32", "ld.global.s16 %d, [grid+10]; ld.global.u8 %e, [text+3]; ld.global.u32 %g, [rest+4];",
               ".global .align 2 .s16 grid[2][3] = { {1, 2, 3}, {4, 5, -6} }; .global .b8 text[4] = {0x41, 0x42, 0x43, 0xff}; .global .align 4 .u32 rest[4] = {9};")
    f.vec(0, (wrap(-6, 16), 255, 0))
    f = s.form("vector registers", "x:u32 y:u32 z:f32 w:f32 s:b64", "m0:b64 m1:b64", ".reg .v2 .u32 %v; .reg .v4 .f32 %q; .reg .v2 .b32 %u; .shared .align 16 .b8 box[2048]; .reg .u32 %p; mov.u32 %p, box; mad.lo.u32 %p, %slot, 2, %p; st.shared.v2.b64 [%p], {%m0, %m1}; "
               "ld.shared.v2.u32 %v, [%p]; mov.u32 %x, %v.x; add.u32 %y, %v.y, 1; ld.shared.v4.f32 %q, [%p]; mov.f32 %z, %q.z; mov.f32 %w, %q.a; mov.b32 %u.x, %v.y; mov.b32 %u.y, %v.x; st.shared.v2.b32 [%p+8], %u; ld.shared.b64 %s, [%p+8];", lanes=8)
    for _ in range(8):
        m0, m1 = r.getrandbits(64), r.getrandbits(64)
        f.vec((m0, m1), (m0 & mask(32), wrap((m0 >> 32) + 1, 32), m1 & mask(32), m1 >> 32, m0 >> 32 | m0 << 32 & mask(64)))
    f = s.form("elements without use", "y:u32 w:u16", "m:b64", "ld.global.v2.u32 {_, %y}, [%in]; ld.global.v4.u16 {_, _, _, %w}, [%in];")
    for _ in range(4):
        m = r.getrandbits(64)
        f.vec(m, (m >> 32, m >> 48))
    f = s.form("indexed variables", "a:u32 b:u32 c:u32 d:u32", "i:u32", ".reg .u64 %o; mul.wide.u32 %o, %i, 4; ld.global.u32 %a, list[2]; ld.global.u32 %b, list[%o]; ld.global.u32 %c, [list+4]; ld.global.u32 %d, list[%o+1];",
               ".global .align 4 .u32 list[6] = {10, 20, 30, 40, 50, 60};")
    for i in range(5):
        f.vec(i, (30, 10 * (i + 1), 20, 10 * (i + 2)))
    f = s.form("indexed by registers of either width", "a:u32 b:s16 c:u32 d:u64 e:u8 g:u32", "i:u32", ".local .align 8 .b8 mine[16]; .shared .align 8 .u32 ours[64]; .reg .u32 %o; .reg .u64 %w; shl.b32 %o, %i, 2; cvt.u64.u32 %w, %o; st.local.u64 mine[0], 0x1122334455667788; "
               "st.shared.u32 ours[%slot], %i; ld.shared.u32 %a, ours[%slot]; ld.global.s16 %b, list[%o+1]; ld.const.u32 %c, bank[%w]; ld.local.u64 %d, mine[0]; ld.local.u8 %e, mine[%i]; ld.const.u32 %g, bank[%o+1];",
               ".global .align 4 .s16 list[8] = {0, -1, 2, -3, 4, -5, 6, -7}; .const .u32 bank[5] = {100, 101, 102, 103, 104};", lanes=4)
    for i in range(4):
        f.vec(i, (i, wrap((-1, -3, -5, -7)[i], 16), 100 + i, 0x1122334455667788, 0x1122334455667788 >> 8 * i & 255, 100 + i + 1))
    f = s.form("windows", "g0:pred s0:pred l0:pred g1:pred s1:pred l1:pred s2:pred l2:pred same:pred", "m:u32",
               ".shared .u32 sh; .local .u32 lo; .reg .u64 %p, %q; cvta.global.u64 %p, %in; isspacep.global %g0, %p; isspacep.shared %s0, %p; isspacep.local %l0, %p; "
               "mov.u64 %q, sh; cvta.shared.u64 %p, %q; isspacep.global %g1, %p; isspacep.shared %s1, %p; isspacep.local %l1, %p; "
               "cvta.to.shared.u64 %p, %p; setp.eq.u64 %same, %p, %q; mov.u64 %q, lo; cvta.local.u64 %p, %q; isspacep.shared %s2, %p; isspacep.local %l2, %p;")
    f.vec(1, (1, 0, 0, 0, 1, 0, 0, 1, 1))
    return s


def atomic_meaning(op, k):
    n = int(k[1:]) if k != "f16x2" else 32

    def meaning(old, b):
        x, y = (read(v, k) for v in (old, b)) if k[0] in "us" else (old, b)
        if op == "inc":
            return 0 if x >= y else x + 1
        if op == "dec":
            return y if x == 0 or x > y else x - 1
        return wrap({"add": lambda: x + y, "min": lambda: min(x, y), "max": lambda: max(x, y), "and": lambda: x & y, "or": lambda: x | y,
                     "xor": lambda: x ^ y, "exch": lambda: y}[op](), n)

    return meaning


INTEGER = [("and", "b32"), ("and", "b64"), ("or", "b32"), ("or", "b64"), ("xor", "b32"), ("xor", "b64"), ("exch", "b32"), ("exch", "b64"),
           ("add", "u32"), ("add", "s32"), ("add", "u64"), ("inc", "u32"), ("dec", "u32")] + [(op, k) for op in ("min", "max") for k in ("u32", "s32", "u64", "s64")]


def atomics():
    s = Suite("atomic", "atom and red: every operation and type on global, shared and generic addresses, every .sem and .scope, by one thread.",
              "PTX ISA 6.4 sections 9.7.12.4, 9.7.12.5. Readings: A100 (add.f32 flushes subnormals in global memory only, by the space reached), A116.")
    for place, (setup, space, at) in PLACES.items():
        for op, k in INTEGER:
            prepare = setup + ("st.%s [%s], %%m; " % (space.lstrip(".") + "." + k if space else k, at) if "shared" in place else "")
            name = "atom%s.%s.%s" % (space, op, k)
            meaning = atomic_meaning(op, k)
            f = s.form("%s on %s" % (name, place), "d:%s m2:%s" % (k, k), "m:%s b:%s" % (k, k), prepare + "%s %%d, [%s], %%b; ld%s.%s %%m2, [%s];" % (name, at, space, k, at))
            forms = [f]
            if op != "exch":
                red = name.replace("atom", "red", 1)
                forms.append(s.form("%s on %s" % (red, place), "m2:%s" % k, "m:%s b:%s" % (k, k), prepare + "%s [%s], %%b; ld%s.%s %%m2, [%s];" % (red, at, space, k, at)))
            r = rng(name)
            cases = [(r.choice(edges(k)), r.choice(edges(k))) for _ in range(8)] + [(pick(r, k), pick(r, k)) for _ in range(4)]
            if op in ("inc", "dec"):
                cases += [(5, 5), (4, 5), (6, 5), (0, 0), (0, 7), (mask(32), mask(32)), (1, 0), (mask(32), 3)]
            for m, b in cases:
                new = meaning(m, b)
                f.vec((m, b), (m, new))
                for g in forms[1:]:
                    g.vec((m, b), new)
        for k in "b16", "b32", "b64":
            prepare = setup + ("st.%s [%s], %%m; " % (space.lstrip(".") + "." + k if space else k, at) if "shared" in place else "")
            f = s.form("atom%s.cas.%s on %s" % (space, k, place), "d:%s m2:%s" % (k, k), "m:%s b:%s c:%s" % (k, k, k), prepare + "atom%s.cas.%s %%d, [%s], %%b, %%c; ld%s.%s %%m2, [%s];" % (space, k, at, space, k, at))
            r = rng("cas" + k + place)
            for _ in range(10):
                m, c = pick(r, k), pick(r, k)
                b = m if r.random() < 0.5 else pick(r, k) if r.random() < 0.5 else m ^ 1 << r.randrange(int(k[1:]))
                f.vec((m, b, c), (m, c if m == b else m))
        for op in "atom", "red":
            for q, k, load in ("add.f32", "f32", "f32"), ("add.f64", "f64", "f64"), ("add.noftz.f16", "b16", "b16"), ("add.noftz.f16x2", "b32", "b32"):
                fmt = {"add.f32": F32, "add.f64": F64}.get(q, F16)
                kind = {"add.f32": "f32", "add.f64": "f64", "add.noftz.f16": "f16", "add.noftz.f16x2": "f16x2"}[q]
                prepare = setup + ("st.%s [%s], %%m; " % (space.lstrip(".") + "." + load if space else load, at) if "shared" in place else "")
                name = "%s%s.%s" % (op, space, q)
                first = "%s %%d, [%s], %%b; " % (name, at) if op == "atom" else "%s [%s], %%b; " % (name, at)
                f = s.form("%s on %s" % (name, place), ("d:%s " % kind if op == "atom" else "") + "m2:" + kind, "m:%s b:%s" % (kind, kind), prepare + first + "ld%s.%s %%m2, [%s];" % (space, load, at))
                r = rng(name + place)
                ftz = q == "add.f32" and "shared" not in place
                e = [x for x in float_edges(fmt)]
                for _ in range(24):
                    values = []
                    for _ in range(2 if kind == "f16x2" else 1):
                        a = r.choice(e) if r.random() < 0.5 else any_float(r, fmt)
                        b = r.choice(e) if r.random() < 0.5 else any_float(r, fmt)
                        values.append((a, b, fp.add(a, b, fmt, "rn", ftz)))
                    if kind == "f16x2":
                        from form import Halves

                        m, b, out = values[0][0] | values[1][0] << 16, values[0][1] | values[1][1] << 16, Halves((values[0][2], values[1][2]))
                    else:
                        m, b, out = values[0]
                    f.vec((m, b), (m, out) if op == "atom" else (out,))
    for sem in "relaxed", "acquire", "release", "acq_rel":
        for scope in "cta", "gpu", "sys":
            f = s.form("atom.%s.%s" % (sem, scope), "d:u32 e:u32 m2:u32", "m:u32 b:u32", "atom.%s.%s.global.add.u32 %%d, [%%in], %%b; atom.global.%s.%s.exch.b32 %%e, [%%in], 9; ld.global.u32 %%m2, [%%in];" % (sem, scope, sem, scope))
            f.vec((5, 7), (5, 12, 9))
            if sem in ("relaxed", "release"):
                f = s.form("red.%s.%s" % (sem, scope), "m2:u32", "m:u32 b:u32", "red.%s.%s.global.add.u32 [%%in], %%b; red.global.%s.%s.xor.b32 [%%in], %%b; ld.global.u32 %%m2, [%%in];" % (sem, scope, sem, scope))
                f.vec((5, 7), 12 ^ 7)
    f = s.form("bit bucket and offset", "x:u32 y:u32", "m:u32 b:u32", "atom.global.add.u32 _, [%in], %b; atom.global.max.u32 _, [%in+8], 0xfffffff0; ld.global.u32 %x, [%in]; ld.global.u32 %y, [%in+8];")
    f.vec((1, 2), (3, 0xFFFFFFF0))
    f = s.form("neighbours of narrow atomics stay", "m2:b64 d:b16 e:f16", "m:b64 b:b16 c:b16 h:f16", "atom.global.cas.b16 %d, [%in+2], %b, %c; atom.global.add.noftz.f16 %e, [%in+6], %h; ld.global.b64 %m2, [%in];")
    g = s.form("neighbours of red stay", "m2:b64", "m:b64 h:f16 w:u32", "red.global.add.noftz.f16 [%in+2], %h; red.global.add.u32 [%in+4], %w; ld.global.b64 %m2, [%in];")
    r = rng("neighbours")
    for _ in range(10):
        words = [r.getrandbits(16) for _ in range(3)] + [any_float(r, F16)]
        h = any_float(r, F16)
        b, c = words[1] if r.random() < 0.6 else r.getrandbits(16), r.getrandbits(16)
        new = [words[0], c if words[1] == b else words[1], words[2], fp.add(words[3], h, F16)]
        pack = lambda w: sum(x << 16 * i for i, x in enumerate(w))
        f.vec((pack(words), b, c, h), (pack(new), words[1], words[3]))
        words[1], words[3], w = any_float(r, F16), r.getrandbits(16), r.getrandbits(32)
        upper = wrap((words[2] | words[3] << 16) + w, 32)
        g.vec((pack(words), h, w), pack([words[0], fp.add(words[1], h, F16)]) | upper << 32)
    conflicts(s)
    return s


def conflicts(s):
    """A whole warp, and a CTA of two and a half, on one cell: the final value, and what the order can't change."""
    for place in "global", "shared":
        for lanes in 32, 80:
            if place == "global":
                cell, prepare = "%group", ""
            else:
                cell, prepare = "%z", ".shared .align 8 .b64 cell; .reg .u32 %z; .reg .pred %first; mov.u32 %z, cell; setp.eq.u32 %first, %slot, 0; @%first st.shared.{k} [%z], %m; bar.sync 0; "
            for op, k in INTEGER + [("add", "f32"), ("add", "f64")]:
                if op in ("exch",):
                    continue
                body = prepare.replace("{k}", k) + ("" if place == "shared" else "") + "red.%s.%s.%s [%s], %%b; bar.sync 0; ld.%s.%s %%r, [%s];" % (place, op, k, cell, place, k, cell)
                f = s.form("red.%s.%s.%s by %d threads" % (place, op, k, lanes), "r:" + k, "m:%s b:%s" % (k, k), body, lanes=lanes)
                r = rng(op + k + place + str(lanes))
                for _ in range(2):
                    if k[0] == "f":  # small integers: exact in every order
                        fmt = fp.FORMATS[k]
                        ints = [r.randint(-100, 100) for _ in range(lanes + 1)]
                        from fractions import Fraction

                        m, bs = fp.round_to(Fraction(ints[0]), fmt), [fp.round_to(Fraction(i), fmt) for i in ints[1:]]
                        total = fp.round_to(Fraction(sum(ints)), fmt)
                    else:
                        m = pick(r, k)
                        bs = [pick(r, k)] * lanes if op in ("inc", "dec") else [pick(r, k) for _ in range(lanes)]
                        if op in ("inc", "dec"):
                            bs = [r.choice((3, 31, 1000, mask(32)))] * lanes
                        total = m
                        for b in bs:
                            total = atomic_meaning(op, k)(total, b)
                    for b in bs:
                        # only the first lane's copy of m is the cell
                        f.vec((m, b), total)
            # the old values of atom.add 1 are all different: each marks its own bit
            tail = ".global" if place == "global" else ".shared"
            seen = "%s+%d" % (cell, 8 if place == "global" else 4)
            old = ".shared .align 8 .b32 box[2]; " if place == "shared" else ""
    f = s.form("old values of atom.add are all different", "r:b32 n:u32", "m:u32 z:b32", ".reg .u32 %d; .reg .b32 %bit; atom.global.add.u32 %d, [%group], 1; mov.b32 %bit, 1; shl.b32 %bit, %bit, %d; "
               "red.global.or.b32 [%group+8], %bit; bar.sync 0; ld.global.b32 %r, [%group+8]; ld.global.u32 %n, [%group];", lanes=32)
    for _ in range(32):
        f.vec((0, 0), (mask(32), 32))
    f = s.form("exactly one atom.cas wins", "r:u32 w:u32", "m:u32 z:u32", ".reg .u32 %d, %me, %cell; .reg .pred %won; shr.b32 %me, %slot, 3; add.u32 %me, %me, 100; atom.global.cas.b32 %d, [%group], 7, %me; "
               "setp.eq.u32 %won, %d, 7; @%won red.global.add.u32 [%group+8], 1; bar.sync 0; ld.global.u32 %r, [%group+8]; ld.global.u32 %cell, [%group]; sub.u32 %w, %cell, 100; setp.lt.u32 %won, %w, 32; selp.u32 %w, 1, 0, %won;", lanes=32)
    for _ in range(32):
        f.vec((7, 0), (1, 1))
    f = s.form("a lock by atom.cas and atom.exch", "r:u32", "lock:u32 count:u32",
               ".reg .u32 %d, %c; .reg .pred %busy; AGAIN: atom.global.acquire.gpu.cas.b32 %d, [%group], 0, 1; setp.ne.u32 %busy, %d, 0; @%busy bra AGAIN; ld.relaxed.gpu.global.u32 %c, [%group+8]; add.u32 %c, %c, 1; "
               "st.relaxed.gpu.global.u32 [%group+8], %c; atom.global.release.gpu.exch.b32 %d, [%group], 0; bar.sync 0; ld.global.u32 %r, [%group+8];", lanes=64)
    for _ in range(64):
        f.vec((0, 0), 64)


def narrow():
    s = Suite("address_32", "Modules with 32-bit addresses: loads, stores, atomics, windows, variables, functions: PTX ISA 6.4 sections 6.4.1, 9.7.8.12, 9.7.8.13, 11.1.3.")
    r = rng("narrow")

    def form(name, outs, ins, body, module=None, **options):
        return s.form(name, outs, ins, body, module, address=32, **options)

    for k in "u8 s8 b16 u32 s32 b64 f32 f64".split():
        f = form("ld st %s" % k, "d:%s e:b64" % (k if int(k[1:]) > 8 else k[0] + "16"), "m:b64 a:%s" % (k if int(k[1:]) > 8 else k[0] + "16"), "ld.global.{0} %d, [%in]; st.global.{0} [%in+8], %a; st.{0} [%in], %a; ld.b64 %e, [%in];".format(k))
        n = int(k[1:])
        for _ in range(4):
            m, a = r.getrandbits(64), r.getrandbits(max(n, 16))
            f.vec((m, a), (wrap(read(m, k), max(n, 16)), m & ~mask(n) | a & mask(n)))
    f = form("a wider register holds an address", "d:u32", "m:u32", ".reg .u64 %w; cvt.u64.u32 %w, %in; or.b64 %w, %w, 0x500000000; ld.global.u32 %d, [%w];")
    f.vec(77, 77)
    f = form("windows", "g0:pred s0:pred l0:pred s1:pred l2:pred same:pred v:u32", "m:u32", ".shared .u32 sh; .local .u32 lo; .reg .u32 %p, %q; cvta.global.u32 %p, %in; isspacep.global %g0, %p; isspacep.shared %s0, %p; isspacep.local %l0, %p; mov.u32 %q, sh; cvta.shared.u32 %p, %q; "
             "isspacep.shared %s1, %p; st.u32 [%p], %m; ld.shared.u32 %v, [sh]; cvta.to.shared.u32 %p, %p; setp.eq.u32 %same, %p, %q; mov.u32 %q, lo; cvta.local.u32 %p, %q; isspacep.local %l2, %p;")
    f.vec(5, (1, 0, 0, 1, 1, 1, 5))
    f = form("variables and addresses in initial values", "d:u32 e:u32 g:u32", "i:u32", ".reg .u32 %p, %o; mov.u32 %p, array; shl.b32 %o, %i, 2; add.u32 %p, %p, %o; ld.global.u32 %d, [%p]; ld.global.u32 %p, [to]; ld.global.u32 %e, [%p]; ld.const.u32 %g, [bank+4];",
             ".global .u32 array[3] = {11, 22, 33}; .global .u32 to = array+4; .const .u32 bank[2] = {1, 2};")
    for i in range(3):
        f.vec(i, (11 * (i + 1), 22, 2))
    for space in ".global", "":
        f = form("atom%s.add.u64" % space, "d:u64 m2:u64", "m:u64 b:u64", "atom%s.add.u64 %%d, [%%in], %%b; ld.global.u64 %%m2, [%%in];" % space)
        g = form("atom%s.cas.b32" % space, "d:b32 m2:b32", "m:b32 b:b32 c:b32", "atom%s.cas.b32 %%d, [%%in], %%b, %%c; ld.global.b32 %%m2, [%%in];" % space)
        for _ in range(4):
            m, b = r.getrandbits(64), r.getrandbits(64)
            f.vec((m, b), (m, wrap(m + b, 64)))
            m, b, c = r.getrandbits(32), r.getrandbits(32), r.getrandbits(32)
            g.vec((m, m, c), (m, c))
            g.vec((m, b, c), (m, c if m == b else m))
    f = form("a call through a pointer, and recursion", "d:u32", "n:u32", ".reg .u32 %f; ld.global.u32 %f, [entry]; P: .callprototype (.param .b32 _) _ (.param .b32 _); { .param .b32 x; .param .b32 y; st.param.b32 [x], %n; call (y), %f, (x), P; ld.param.b32 %d, [y]; }",
             ".func (.param .b32 r) sum (.param .b32 x) { .reg .u32 %n, %v; .reg .pred %p; ld.param.u32 %n, [x]; mov.u32 %v, 0; setp.eq.u32 %p, %n, 0; @%p bra DONE; { .param .b32 a; .param .b32 b; .reg .u32 %m; sub.u32 %m, %n, 1; st.param.b32 [a], %m; call (b), sum, (a); ld.param.b32 %v, [b]; } add.u32 %v, %v, %n; DONE: st.param.b32 [r], %v; ret; } .global .u32 entry = sum;")
    for n in range(8):
        f.vec(n, n * (n + 1) // 2)
    return s


SUITES = [access, atomics, narrow]
