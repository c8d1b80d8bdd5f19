"""Every spelling of ld, st, ldu, atom, red, fence, membar, barrier and prefetch: qualifiers that change no value of a lone thread.

Sections 9.7.8.7 to 9.7.8.11, 9.7.12.1 to 9.7.12.5. Reading: A101 (the space may stand before or after .sem and .scope).
"""
import number as fp
from form import Suite
from memory import INTEGER, atomic_meaning
from number import F16, F32, F64, mask, read, wrap
from samples import any_float, pick, rng

TYPES = "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64".split()
INS = "m0:b64 m1:b64 m2:b64 m3:b64"

# space -> (setup: 32 bytes, aligned to 32, filled from m0 to m3; address; what it is for)
FILL = " ".join("st.{s}.b64 [%p+{at}], %m{i};".replace("{at}", str(8 * i)).replace("{i}", str(i)) for i in range(4)) + " "
SHARED = ".shared .align 32 .b8 box[4096]; .reg .u32 %p; mov.u32 %p, box; mad.lo.u32 %p, %slot, 4, %p; " + FILL.replace("{s}", "shared")
LOCAL = ".local .align 32 .b8 stack[32]; .reg .u32 %p; mov.u32 %p, stack; " + FILL.replace("{s}", "local")
PLACES = {
    "global": ("", "%in"),
    "shared": (SHARED, "%p"),
    "local": (LOCAL, "%p"),
    "": ("", "%in"),
    "generic shared": (SHARED + ".reg .u64 %g; cvt.u64.u32 %g, %p; cvta.shared.u64 %g, %g; ", "%g"),
    "generic local": (LOCAL + ".reg .u64 %g; cvt.u64.u32 %g, %p; cvta.local.u64 %g, %g; ", "%g"),
}
BANK = [0x8877665544332211, 0xFFEEDDCCBBAA9988, 0x0123456789ABCDEF, 0x7FF0000080000000]


def register(k):
    return k if int(k[1:]) > 8 else k[0] + "16"


def element(words, k, i):
    n = int(k[1:])
    whole = sum(w << 64 * j for j, w in enumerate(words))
    return wrap(read(whole >> n * i, k), max(n, 16))


def shapes():
    for vec, lanes in ("", 1), (".v2", 2), (".v4", 4):
        yield vec, lanes, [k for k in TYPES if not (lanes == 4 and k[1:] == "64")]


def braces(names):
    return "%" + names[0] if len(names) == 1 else "{" + ", ".join("%" + n for n in names) + "}"


def load_form(s, head, tail, place, setup, address, words=None):
    """All types of one spelling; `words` are the contents if they are not the operands."""
    for vec, lanes, kinds in shapes():
        outs, body = [], []
        for k in kinds:
            names = ["%s_%d" % (k, i) for i in range(lanes)]
            outs += ["%s:%s" % (n, register(k)) for n in names]
            body.append("%s%s%s.%s %s, [%s];" % (head, tail, vec, k, braces(names), address))
        f = s.form("%s%s%s of %s" % (head, tail, vec, place), " ".join(outs), INS, setup + " ".join(body))
        r = rng(f.name)
        memory = tuple(r.getrandbits(64) for _ in range(4))
        f.vec(memory, tuple(element(words or memory, k, i) for k in kinds for i in range(lanes)))


def store_form(s, head, tail, place, setup, address, back):
    for vec, lanes, kinds in shapes():
        outs, body, ins = [], [], INS.split()
        for n, k in enumerate(kinds):
            names = ["%s_%d" % (k, i) for i in range(lanes)]
            ins += ["%s:%s" % (x, register(k)) for x in names]
            words = (int(k[1:]) * lanes + 63) // 64
            body.append("%s%s%s.%s [%s], %s;" % (head, tail, vec, k, address, braces(names)))
            for w in range(words):
                outs.append("o%d_%d:b64" % (n, w))
                body.append("ld%s.b64 %%o%d_%d, [%s+%d];" % (back, n, w, address, 8 * w))
        f = s.form("%s%s%s of %s" % (head, tail, vec, place), " ".join(outs), " ".join(ins), setup + " ".join(body))
        r = rng(f.name)
        memory = [r.getrandbits(64) for _ in range(4)]
        values, results = list(memory), []
        for k in kinds:
            bits = int(k[1:])
            xs = [r.getrandbits(max(bits, 16)) for _ in range(lanes)]
            values += xs
            whole = sum(w << 64 * j for j, w in enumerate(memory))
            for i, x in enumerate(xs):
                whole = whole & ~(mask(bits) << bits * i) | (x & mask(bits)) << bits * i
            memory = [whole >> 64 * j & mask(64) for j in range(4)]
            results += memory[: (bits * lanes + 63) // 64]
        f.vec(tuple(values), tuple(results))


def accesses():
    s = Suite("spelling_memory", "ld, st and ldu: every spelling of the qualifiers, vector and type: PTX ISA 6.4 sections 9.7.8.7 to 9.7.8.10.")
    bank = ".const .align 32 .b64 bank[4] = {%s};" % ", ".join(hex(w) for w in BANK)
    for weak in "", ".weak":
        for place, (setup, address) in PLACES.items():
            space = "" if place.startswith("generic") or not place else "." + place
            label = place or "generic global"
            for cop in "", ".ca", ".cg", ".cs", ".lu", ".cv":
                load_form(s, "ld" + weak + space, cop, label, setup, address)
            if "%in" in address:
                continue
            for cop in "", ".wb", ".cg", ".cs", ".wt":
                store_form(s, "st" + weak + space, cop, label, setup, address, space)
        for vec, lanes, kinds in shapes():
            outs = ["%s_%d:%s" % (k, i, register(k)) for k in kinds for i in range(lanes)]
            body = " ".join("ld%s.const%s.%s %s, [bank];" % (weak, vec, k, braces(["%s_%d" % (k, i) for i in range(lanes)])) for k in kinds)
            f = s.form("ld%s.const%s" % (weak, vec), " ".join(outs), "z:u32", body, bank)
            f.vec(0, tuple(element(BANK, k, i) for k in kinds for i in range(lanes)))
    strong = [".volatile"] + [".%s.%s" % (sem, scope) for sem in ("relaxed", "acquire") for scope in ("cta", "gpu", "sys")]
    for q in strong:
        for place in "global", "shared", "", "generic shared":
            setup, address = PLACES[place]
            space = "." + place if place in ("global", "shared") else ""
            load_form(s, "ld" + q + space, "", place or "generic global", setup, address)
            if address != "%in":
                store_form(s, "st" + q.replace("acquire", "release") + space, "", place, setup, address, space)
    # in global memory, through a cell beside the operands
    for q in ["", ".weak", ".wb", ".cg", ".cs", ".wt"] + [x.replace("acquire", "release") for x in strong]:
        cop = q in (".wb", ".cg", ".cs", ".wt")
        for space in ".global", "":
            head = "st" + ("" if cop else q) + space
            store_form(s, head, q if cop else "", "global cell" if space else "generic global cell", ".global .align 32 .b8 cell[4096]; .reg .u64 %g; .reg .u32 %o; mov.u64 %g, cell; mul.wide.u32 %g, %slot, 4; .reg .u64 %c; mov.u64 %c, cell; add.u64 %g, %g, %c; "
                       + " ".join("st.global.b64 [%%g+%d], %%m%d;" % (8 * i, i) for i in range(4)) + " ", "%g", space)
    for cop in "", ".ca", ".cg", ".cs":
        load_form(s, "ld.global%s.nc" % cop, "", "global", "", "%in")
    for space in "", ".global":
        for vec, lanes, kinds in shapes():
            outs = ["%s_%d:%s" % (k, i, register(k)) for k in kinds for i in range(lanes)]
            body = " ".join("ldu%s%s.%s %s, [%%p];" % (space, vec, k, braces(["%s_%d" % (k, i) for i in range(lanes)])) for k in kinds)
            f = s.form("ldu%s%s" % (space, vec), " ".join(outs), "z:u32", ".reg .u64 %p; mov.u64 %p, bank; " + body, bank.replace(".const", ".global"))
            f.vec(0, tuple(element(BANK, k, i) for k in kinds for i in range(lanes)))
    f = s.form("prefetch changes nothing", "d:b64", "m:b64", "prefetch.L1 [%in]; prefetch.L2 [%in]; prefetch.global.L1 [%in]; prefetch.global.L2 [%in+8]; prefetchu.L1 [%in]; .local .u32 x; prefetch.local.L1 [x]; prefetch.local.L2 [x]; ld.global.b64 %d, [%in];")
    f.vec(0x123456789ABCDEF0, 0x123456789ABCDEF0)
    return s


SEMS = ["", ".relaxed", ".acquire", ".release", ".acq_rel"]
SCOPES = ["", ".cta", ".gpu", ".sys"]
FLOAT = [("add.f32", "f32", F32), ("add.f64", "f64", F64), ("add.noftz.f16", "f16", F16), ("add.noftz.f16x2", "f16x2", F16)]


def atomics():
    s = Suite("spelling_atomic", "atom and red: every .sem, .scope and space of every operation, each spelling once in a chain on one cell.",
              "PTX ISA 6.4 sections 9.7.12.4, 9.7.12.5. Reading: A100.")
    places = {".global": ("", "%in"), "": ("", "%in"), ".shared": (".shared .align 8 .b8 cells[1024]; .reg .u32 %at; mov.u32 %at, cells; add.u32 %at, %at, %slot; st.shared.b64 [%at], %cell; ", "%at")}
    for op, k in INTEGER + [("cas", k) for k in ("b16", "b32", "b64")] + [(o, k) for o, k, _ in FLOAT]:
        fmt = {o: f for o, _, f in FLOAT}.get(op)
        name = op if fmt else "%s.%s" % (op, k)
        n = 32 if k == "f16x2" else int(k[1:])
        kind = k
        for space, (setup, at) in places.items():
            spellings = [(sem, scope) for sem in SEMS for scope in SCOPES]
            r = rng("spelling" + name + space)

            def plain():
                if not fmt:
                    return pick(r, k)
                one = lambda: fp.round_to(fp.Fraction(r.randint(-50, 50), 4), fmt)
                return one() | one() << 16 if k == "f16x2" else one()

            def apply(old, b, c):
                if op == "cas":
                    return c if old == b else old
                if not fmt:
                    return atomic_meaning(op, k)(old, b)
                if k == "f16x2":
                    return sum(fp.add(old >> 16 * i & 0xFFFF, b >> 16 * i & 0xFFFF, F16) << 16 * i for i in range(2))
                return fp.add(old, b, fmt)

            old, b, c = plain(), plain(), plain()
            if op == "cas":
                old = b
            operands = (old, b, c)
            body, outs, results = [], [], []
            for i, (sem, scope) in enumerate(spellings):
                # cas: compare with what is there and with what is not, in turn
                x, y = ("%b", "%c") if i % 2 == 0 else ("%c", "%b")
                extra = ", %s" % y if op == "cas" else ""
                body.append("atom%s%s%s.%s %%d%d, [%s], %s%s;" % (sem, scope, space, name, i, at, x if op == "cas" else "%b", extra))
                outs.append("d%d:%s" % (i, kind))
                results.append(old)
                old = apply(old, *((b, c) if i % 2 == 0 else (c, b)) if op == "cas" else (b, c))
            if op not in ("cas", "exch"):
                for sem in "", ".relaxed", ".release":
                    for scope in SCOPES:
                        body.append("red%s%s%s.%s [%s], %%b;" % (sem, scope, space, name, at))
                        old = apply(old, b, c)
            if space == ".global":  # the order of the manual's examples
                body.append("atom.global.acquire.sys.%s %%e, [%s], %%b%s;" % (name, at, ", %c" if op == "cas" else ""))
                outs.append("e:" + kind)
                results.append(old)
                old = apply(old, b, c)
            load = {"f16": "b16", "f16x2": "b32"}.get(k, k)
            body.append("ld%s.%s %%m, [%s];" % (space, load, at))
            f = s.form("%s in %s" % (name, space or "generic"), " ".join(outs) + " m:" + kind, "cell:b64 b:%s c:%s" % (kind, kind), setup + " ".join(body))
            f.vec(operands, tuple(results) + (old,))
    return s


def fences():
    s = Suite("spelling_sync", "fence, membar, bar and barrier: every spelling: PTX ISA 6.4 sections 9.7.12.1 to 9.7.12.3. Reading: A53.")
    f = s.form("fence and membar keep values", "d:u32", "a:u32", "st.global.u32 [%in], 5; " + " ".join("fence%s.%s;" % (sem, scope) for sem in ("", ".sc", ".acq_rel") for scope in ("cta", "gpu", "sys"))
               + " membar.cta; membar.gl; membar.sys; ld.global.u32 %d, [%in];")
    f.vec(1, 5)
    for aligned in "", ".aligned":
        b = "barrier"
        f = s.form("barrier.*%s" % aligned, "n:u32 m:u32 all:pred any:pred nall:pred nany:pred k:u32", "a:pred",
                   "{b}.sync{x} 0; {b}.sync{x} 1, 96; {b}.red.popc{x}.u32 %n, 0, %a; {b}.red.popc{x}.u32 %m, 2, 96, !%a; {b}.red.and{x}.pred %all, 0, %a; {b}.red.or{x}.pred %any, 3, 96, %a; {b}.red.and{x}.pred %nall, 0, !%a; {b}.red.or{x}.pred %nany, 0, !%a; "
                   ".reg .u32 %id, %count; mov.u32 %id, 15; mov.u32 %count, 96; {b}.sync{x} %id, %count; {b}.sync{x} %id; {b}.red.popc{x}.u32 %k, %id, %count, %a;".replace("{b}", b).replace("{x}", aligned), lanes=96)
        r = rng("barrier" + aligned)
        for p in ([r.getrandbits(1) for _ in range(96)], [1] * 96, [0] * 96):
            for x in p:
                f.vec(x, (sum(p), 96 - sum(p), all(p), any(p), not any(p), not all(p), sum(p)))
        f = s.form("barrier.arrive%s" % aligned, "d:u32", "a:u32", ".shared .align 4 .u32 box[32]; .reg .u32 %p; .reg .pred %k; mov.u32 %p, box; setp.ge.u32 %k, %slot, 256; @%k bra WAIT; shr.u32 %d, %slot, 1; add.u32 %p, %p, %d; st.shared.u32 [%p], %a; barrier.arrive{x} 4, 64; mov.u32 %d, 0; bra JOIN; "
                   "WAIT: barrier.sync{x} 4, 64; and.b32 %d, %slot, 248; shr.u32 %d, %d, 1; add.u32 %p, %p, %d; ld.shared.u32 %d, [%p]; JOIN:".replace("{x}", aligned), lanes=64)
        a = [r.getrandbits(32) for _ in range(64)]
        for i in range(64):
            f.vec(a[i], a[i - 32] if i >= 32 else 0)
    f = s.form("bar.*", "n:u32 m:u32 all:pred any:pred", "a:pred", "bar.sync 0; bar.sync 1, 64; bar.red.popc.u32 %n, 0, %a; bar.red.popc.u32 %m, 2, 64, !%a; bar.red.and.pred %all, 0, %a; bar.red.or.pred %any, 3, 64, %a;", lanes=64)
    for p in ([r.getrandbits(1) for _ in range(64)], [1] * 64):
        for x in p:
            f.vec(x, (sum(p), 64 - sum(p), all(p), any(p)))
    return s


SUITES = [accesses, atomics, fences]
