"""Scalar and SIMD video instructions, sections 9.7.15 and 9.7.16, after the pseudocode of the current documents.

Readings (ambiguities V1 to V29): intermediate values are exact integers (V1, V2, V3); c is read by dtype, unsigned for vset
(V18, V21); with a merge .sat clamps to the sub-word range (V19); vmad ignores dtype (V6), subtracts c as the pseudocode does
(V4), clamps the full sum (V5).
"""
from form import Suite
from number import clamp, limits, mask, read, signed, wrap
from samples import any_int, int_edges, rng

TYPES = ["u32", "s32"]
SELECTORS = ["", ".b0", ".b1", ".b2", ".b3", ".h0", ".h1"]
CMP = {"eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b}


def part(x, kind, selector):
    """A byte, half-word or word, extended by the type."""
    if not selector:
        return read(x, kind)
    bits = 8 if selector[1] == "b" else 16
    return read(x >> bits * int(selector[2]), kind[0] + str(bits))


def saturate(t, dtype, selector):
    bits = 32 if not selector else 8 if selector[1] == "b" else 16
    return clamp(t, *limits(dtype[0] + str(bits)))


def merge(t, c, selector):
    bits = 8 if selector[1] == "b" else 16
    at = bits * int(selector[2])
    return c & mask(32) & ~(mask(bits) << at) | wrap(t, bits) << at


def second(t, c, op):
    return {"add": t + c, "min": min(t, c), "max": max(t, c)}[op]


def operand(r):
    """Words of which the bytes and halves are edges."""
    kind = r.random()
    if kind < 0.25:
        return r.choice(int_edges(32))
    if kind < 0.6:
        return sum(r.choice((0, 1, 0x7F, 0x80, 0xFF, r.getrandbits(8))) << 8 * i for i in range(4))
    return any_int(r, 32)


PRIMARY = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vabsdiff": lambda a, b: abs(a - b),
    "vmin": min,
    "vmax": max,
}


def shift(op, mode, a, b):
    b = min(b, 32) if mode == "clamp" else b & 31
    return a << b if op == "vshl" else a >> b


def scalar_form(s, title, dtype, cases, meaning, r, count, shifts=False):
    """One form: the plain instruction, each secondary operation, and every merge, with selectors drawn anew for each.

    `cases` gives the head of the instruction and the modifiers that follow `.sat`; meaning(a, b, asel, bsel, dsel) -> t.
    """
    head, atype, btype = cases
    steps = [("", "", None)] + [("." + op, "", op) for op in ("add", "min", "max")] + [("", d, "merge") for d in SELECTORS[1:]]
    body, outs, drawn = [], [], []
    for i, (tail, dsel, kind) in enumerate(steps):
        asel, bsel = r.choice(SELECTORS), r.choice(SELECTORS)
        drawn.append((asel, bsel, dsel, kind))
        body.append("%s%s %%d%d%s, %%a%s, %%b%s%s;" % (head, tail, i, dsel, asel, bsel, ", %c" if kind else ""))
        outs.append("d%d:%s" % (i, dtype))
    f = s.form(title, " ".join(outs), "a:%s b:%s c:%s" % (atype, btype, dtype), " ".join(body))
    for _ in range(count):
        a, b, c = operand(r), operand(r), operand(r)
        if shifts and r.random() < 0.7:
            b = sum(r.choice((0, 1, 7, 8, 16, 31, 32, 33, r.randrange(40))) << 8 * i for i in range(4)) if r.random() < 0.5 else r.choice((0, 1, 15, 31, 32, 33, 64, r.randrange(40)))
        results = []
        for asel, bsel, dsel, kind in drawn:
            t = meaning(part(a, atype, asel), part(b, btype, bsel), dsel)
            if kind == "merge":
                results.append(merge(t, c, dsel))
            elif kind:
                results.append(wrap(second(t, read(c, dtype), kind), 32))
            else:
                results.append(wrap(t, 32))
        f.vec((a, b, c), tuple(results))


def scalar():
    s = Suite("video_scalar", "vadd vsub vabsdiff vmin vmax vshl vshr vset: every type, .sat, secondary operation and merge; selectors drawn at random.",
              "PTX ISA 6.4 section 9.7.15. Readings: V1, V2, V18 to V21, V25.")
    for op, primary in PRIMARY.items():
        for d in TYPES:
            for a in TYPES:
                for b in TYPES:
                    for sat in "", ".sat":
                        head = "%s.%s.%s.%s%s" % (op, d, a, b, sat)
                        for variant in range(2):
                            def meaning(x, y, dsel, primary=primary, sat=sat, d=d):
                                t = primary(x, y)
                                return saturate(t, d, dsel) if sat else t

                            scalar_form(s, "%s #%d" % (head, variant + 1), d, (head, a, b), meaning, rng(head + str(variant)), 10)
    for op in "vshl", "vshr":
        for d in TYPES:
            for a in TYPES:
                for sat in "", ".sat":
                    for mode in "clamp", "wrap":
                        head = "%s.%s.%s.u32%s.%s" % (op, d, a, sat, mode)
                        for variant in range(2):
                            def meaning(x, y, dsel, op=op, mode=mode, sat=sat, d=d):
                                t = shift(op, mode, x, y)
                                return saturate(t, d, dsel) if sat else t

                            scalar_form(s, "%s #%d" % (head, variant + 1), d, (head, a, "u32"), meaning, rng(head + str(variant)), 14, shifts=True)
    for a in TYPES:
        for b in TYPES:
            for cmp, holds in CMP.items():
                head = "vset.%s.%s.%s" % (a, b, cmp)
                scalar_form(s, head, "u32", (head, a, b), lambda x, y, _, holds=holds: int(holds(x, y)), rng(head), 12)
    # alone: also under a guard, in place and with immediates
    for op, primary in PRIMARY.items():
        f = s.form("%s.s32.u32.s32.sat" % op, "d:s32", "a:u32 b:s32")
        g = s.form("%s.u32.s32.u32.sat.max" % op, "d:u32", "a:s32 b:u32 c:u32")
        r = rng("plain" + op)
        for _ in range(12):
            a, b, c = operand(r), operand(r), operand(r)
            f.vec((a, b), wrap(saturate(primary(a, signed(b, 32)), "s32", ""), 32))
            g.vec((a, b, c), max(saturate(primary(signed(a, 32), b), "u32", ""), c))
    # every selector pair once for one instruction, and registers of other types and immediates
    pairs = [(x, y) for x in SELECTORS for y in SELECTORS]
    for a in TYPES:
        f = s.form("selectors %s" % a, " ".join("d%d:s32" % i for i in range(49)), "a:b32 b:b32",
                   " ".join("vsub.s32.%s.u32 %%d%d, %%a%s, %%b%s;" % (a, i, x, y) for i, (x, y) in enumerate(pairs)))
        r = rng("selectors" + a)
        for _ in range(6):
            p, q = operand(r), operand(r)
            f.vec((p, q), tuple(wrap(part(p, a, x) - part(q, "u32", y), 32) for x, y in pairs))
    f = s.form("video immediates", "d:s32 e:u32 g:u32", "a:s32", "vadd.s32.s32.s32.sat %d, %a, 0x7fffffff; vmax.u32.u32.s32.add %e, %a, -1, 5; vset.s32.u32.lt %g, %a.b0, 3;")
    r = rng("video immediates")
    for _ in range(8):
        a = operand(r)
        f.vec(a, (wrap(clamp(signed(a, 32) + mask(31), *limits("s32")), 32), wrap(max(a, -1) + 5, 32), int(part(a, "s32", ".b0") < 3)))
    return s


def multiply_add():
    s = Suite("video_mad", "vmad: every type, negation, .po, .sat and scale; selectors drawn at random. PTX ISA 6.4 section 9.7.15.3. Readings: V4 to V6, V12, V26.")
    negations = [("", "", ""), ("-", "", ""), ("", "-", ""), ("", "", "-"), ("-", "-", ""), ("-", "-", "-")]
    for d in TYPES:
        for a in TYPES:
            for b in TYPES:
                for sat in "", ".sat":
                    for scale in "", ".shr7", ".shr15":
                        head = "vmad.%s.%s.%s" % (d, a, b)
                        r = rng(head + sat + scale)
                        body, outs, drawn = [], [], []
                        for i, n in enumerate(negations + ["po"]):
                            asel, bsel = r.choice(SELECTORS + [""] * 3), r.choice(SELECTORS + [""] * 3)
                            po = n == "po"
                            na, nb, nc = ("", "", "") if po else n
                            drawn.append((asel, bsel, na, nb, nc, po))
                            body.append("%s%s%s%s %%d%d, %s%%a%s, %s%%b%s, %s%%c;" % (head, ".po" if po else "", sat, scale, i, na, asel, nb, bsel, nc))
                            outs.append("d%d:%s" % (i, d))
                        f = s.form(head + ".*" + sat + scale, " ".join(outs), "a:%s b:%s c:b32" % (a, b), " ".join(body))
                        for _ in range(16):
                            x, y, c = operand(r), operand(r), operand(r)
                            f.vec((x, y, c), tuple(vmad(x, y, c, a, b, sat, scale, *how) for how in drawn))
    return s


def vmad(x, y, c, atype, btype, sat, scale, asel, bsel, na, nb, nc, po):
    """The pseudocode: 128-bit complement and increment are written as it writes them, c's on 32 bits."""
    negated = bool(na) != bool(nb)
    final_signed = "s" in (atype[0], btype[0]) or negated or bool(nc)
    t = part(x, atype, asel) * part(y, btype, bsel)
    lsb = 0
    if po:
        lsb = 1
    elif negated:
        t, lsb = ~t, 1
    elif nc:
        c, lsb = ~c & mask(32), 1
    t = t + (signed(c, 32) if final_signed else c) + lsb
    # 128-bit arithmetic, read by the sign of the final result
    t = signed(t, 128) if final_signed else wrap(t, 128)
    if scale:
        t >>= int(scale[4:])
        t = signed(t, 64) if final_signed else wrap(t, 64)
    if sat:
        t = clamp(t, *limits("s32" if final_signed else "u32"))
    return wrap(t, 32)


SIMD = dict(PRIMARY)
SIMD["vavrg"] = lambda a, b: (a + b + 1) >> 1 if a + b >= 0 else (a + b) >> 1
MASKS = {2: ["", ".h0", ".h1", ".h10"], 4: ["", ".b0", ".b1", ".b10", ".b2", ".b20", ".b21", ".b210", ".b3", ".b30", ".b31", ".b310", ".b32", ".b320", ".b321", ".b3210"]}


def lanes_of(text, n, default):
    """The lane numbers of a selector, element 0 first."""
    return [int(c) for c in reversed(text[2:])] if text else default


def pick_selector(r, n):
    letter = "h" if n == 2 else "b"
    return "" if r.random() < 0.3 else ".%s%s" % (letter, "".join(str(r.randrange(2 * n)) for _ in range(n)))


def simd_form(s, title, n, head, dtype, atype, btype, tails, meaning, r, count):
    """Every mask of each tail ("" merges, ".add" accumulates), selectors drawn anew."""
    bits = 32 // n
    body, outs, drawn = [], [], []
    for tail in tails:
        for m in MASKS[n]:
            asel, bsel = pick_selector(r, n), pick_selector(r, n)
            i = len(drawn)
            drawn.append((tail, m, asel, bsel))
            body.append("%s%s %%d%d%s, %%a%s, %%b%s, %%c;" % (head, tail, i, m, asel, bsel))
            outs.append("d%d:%s" % (i, dtype))
    f = s.form(title, " ".join(outs), "a:%s b:%s c:%s" % (atype, btype, dtype), " ".join(body))
    for _ in range(count):
        a, b, c = operand(r), operand(r), operand(r)
        f.vec((a, b, c), tuple(simd(a, b, c, n, bits, tail, m, asel, bsel, atype, btype, meaning) for tail, m, asel, bsel in drawn))


def simd(a, b, c, n, bits, tail, m, asel, bsel, atype, btype, meaning):
    both = b << 32 | a
    va = [read(both >> bits * i, atype[0] + str(bits)) for i in lanes_of(asel, n, range(n))]
    vb = [read(both >> bits * i, btype[0] + str(bits)) for i in lanes_of(bsel, n, range(n, 2 * n))]
    chosen = lanes_of(m, n, list(range(n)))
    t = [meaning(x, y) for x, y in zip(va, vb)]
    if tail == ".add":
        return wrap(c + sum(t[i] for i in chosen), 32)
    d = c
    for i in chosen:
        d = d & ~(mask(bits) << bits * i) | wrap(t[i], bits) << bits * i
    return d


def packed():
    s = Suite("video_simd", "vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 and their 4-way kin: every type, .sat, .add and mask; selectors drawn at random.",
              "PTX ISA 6.4 section 9.7.16. Readings: V3, V8, V14, V22 to V24.")
    for n in 2, 4:  # alone: also under a guard, in place and with immediates
        bits = 32 // n
        for op, primary in SIMD.items():
            for tail in "", ".add":
                head = "%s%d.s32.u32.s32%s" % (op, n, tail)
                f = s.form(head, "d:s32", "a:u32 b:s32 c:s32")
                r = rng("plain" + head)
                for _ in range(10):
                    a, b, c = operand(r), operand(r), operand(r)
                    f.vec((a, b, c), simd(a, b, c, n, bits, tail, "", "", "", "u32", "s32", primary))
    for n in 2, 4:
        bits = 32 // n
        for op, primary in SIMD.items():
            for d in TYPES:
                for a in TYPES:
                    for b in TYPES:
                        head = "%s%d.%s.%s.%s" % (op, n, d, a, b)
                        low, high = limits(d[0] + str(bits))
                        simd_form(s, head + "*", n, head, d, a, b, ["", ".add"], primary, rng(head), 8)
                        simd_form(s, head + ".sat*", n, head, d, a, b, [".sat"], lambda x, y, p=primary, l=low, h=high: clamp(p(x, y), l, h), rng(head + "sat"), 8)
        for a in TYPES:
            for b in TYPES:
                for cmp, holds in CMP.items():
                    head = "vset%d.%s.%s.%s" % (n, a, b, cmp)
                    simd_form(s, head + "*", n, head, "u32", a, b, ["", ".add"], lambda x, y, h=holds: int(h(x, y)), rng(head), 8)
    return s


SUITES = [scalar, multiply_add, packed]
