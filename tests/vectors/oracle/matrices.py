"""mma with 8 and 16 rows after PTX 6.4: bf16, tf32, and integers of 8 and 4 bits. One CTA is one warp; its vectors are the lanes.

Where elements lie is transcribed from the fragment formulas of the manual (PTX ISA 7.0, matrix fragments for mma). The numbers are
small integers, so that every order of summing gives the same.
"""
from fractions import Fraction

from form import Suite
from number import F64, clamp, fma, mask, round_to, signed, wrap
from samples import rng

LIMIT = (-(1 << 31), (1 << 31) - 1)


def bf16(x):
    return f32(x) >> 16


def f32(x):
    """The bits of a small integer as a single."""
    if x == 0:
        return 0
    e = abs(x).bit_length() - 1
    return (1 << 31 if x < 0 else 0) | (e + 127) << 23 | (abs(x) << 23 >> e) & mask(23)


def a_place(lane, i, per, rows):
    """Row and column of element i of A: registers hold `per` neighbours; those of rows g and g + 8 take turns."""
    register, at = divmod(i, per)
    row = lane // 4 + (8 if rows == 16 and register % 2 else 0)
    return row, lane % 4 * per + at + 4 * per * (register // 2 if rows == 16 else register)


def b_place(lane, i, per):
    """Row and column of element i of B."""
    register, at = divmod(i, per)
    return lane % 4 * per + at + 4 * per * register, lane // 4


def c_place(lane, i):
    return lane // 4 + (8 if i >= 2 else 0), lane % 4 * 2 + i % 2


def product(s, name, shape, bits, kind, a_read, b_read, clamped, options):
    m, n, k = shape
    per = 32 // bits
    counts = m * k * bits // 1024, k * n * bits // 1024, m * n // 32
    names = [["%s%d" % (letter, i) for i in range(count)] for letter, count in zip("abc", counts)]
    regs = ["{%s}" % ", ".join("%" + x for x in xs) for xs in names]
    results = ["d%d" % i for i in range(counts[2])]
    f = s.form(name, " ".join("%s:%s" % (x, kind) for x in results), " ".join("%s:%s" % (x, t) for xs, t in zip(names, ("b32", "b32", kind)) for x in xs),
               "%s {%s}, %s, %s, %s;" % (name, ", ".join("%" + x for x in results), *regs), lanes=32, **options)
    r = rng(name)
    for turn in range(3):
        a = [[r.getrandbits(bits) for _ in range(k)] for _ in range(m)]
        b = [[r.getrandbits(bits) for _ in range(n)] for _ in range(k)]
        c = [[r.randrange(-99, 100) for _ in range(n)] for _ in range(m)]
        if kind == "s32" and turn == 2:
            c = [[r.choice(LIMIT) for _ in range(n)] for _ in range(m)]
        va, vb = ([[read(x) for x in row] for row in rows] for read, rows in ((a_read[0], a), (b_read[0], b)))
        d = [[c[i][j] + sum(va[i][x] * vb[x][j] for x in range(k)) for j in range(n)] for i in range(m)]
        finish = f32 if kind == "f32" else (lambda x: wrap(clamp(x, *LIMIT) if clamped else x, 32))
        for lane in range(32):
            words = []
            for count, place, rows, write in (counts[0], lambda i: a_place(lane, i, per, m), a, a_read[1]), (counts[1], lambda i: b_place(lane, i, per), b, b_read[1]):
                for register in range(count):
                    word = 0
                    for at in range(per):
                        row, column = place(register * per + at)
                        word |= write(rows[row][column]) << at * bits
                    words.append(word)
            places = [c_place(lane, i) for i in range(counts[2])]
            words += [f32(c[i][j]) if kind == "f32" else wrap(c[i][j], 32) for i, j in places]
            f.vec(tuple(words), tuple(finish(d[i][j]) for i, j in places))


def matrices():
    s = Suite("mma", "mma of bf16, tf32, and integers of 8 and 4 bits (PTX 6.5, 7.0). Small integers as elements: exact in any order.")
    sm_80 = {"version": "7.0", "target": "sm_80"}
    small = lambda bits: signed(bits, 4)
    for k in 8, 16:
        name = "mma.sync.aligned.m16n8k%d.row.col.f32.bf16.bf16.f32" % k
        product(s, name, (16, 8, k), 16, "f32", (small, lambda x: bf16(small(x))), (small, lambda x: bf16(small(x))), False, sm_80)
    for k in 4, 8:
        name = "mma.sync.aligned.m16n8k%d.row.col.f32.tf32.tf32.f32" % k
        product(s, name, (16, 8, k), 32, "f32", (small, lambda x: f32(small(x))), (small, lambda x: f32(small(x))), False, sm_80)
    for bits, shapes in (8, ((8, 8, 16), (16, 8, 16), (16, 8, 32))), (4, ((8, 8, 32), (16, 8, 32))):
        for shape in shapes:
            for ta in "su":
                for tb in "su":
                    for clamped in False, True:
                        read = {"s": lambda x: signed(x, bits), "u": lambda x: x}
                        same = lambda x: x
                        name = "mma.sync.aligned.m%dn%dk%d.row.col%s.s32.%s%d.%s%d.s32" % (*shape, ".satfinite" if clamped else "", ta, bits, tb, bits)
                        options = sm_80 if shape[0] == 16 else {"version": "6.5", "target": "sm_75"}
                        product(s, name, shape, bits, "s32", (read[ta], same), (read[tb], same), clamped, options)
    return s


def eight(x, fraction, bias):
    """The bits of a small integer as a number of eight bits; it is exact."""
    if x == 0:
        return 0
    e = abs(x).bit_length() - 1
    rest = Fraction(abs(x), 1 << e) - 1
    assert (rest * (1 << fraction)).denominator == 1
    return (0x80 if x < 0 else 0) | e + bias << fraction | int(rest * (1 << fraction))


def f16(x):
    """The bits of a small integer as a half."""
    if x == 0:
        return 0
    e = abs(x).bit_length() - 1
    return (0x8000 if x < 0 else 0) | (e + 15) << 10 | (abs(x) << 10 >> e) & mask(10)


FORMATS = {"f16": (16, f16), "bf16": (16, bf16), "tf32": (32, f32), "e4m3": (8, lambda x: eight(x, 3, 7)), "e5m2": (8, lambda x: eight(x, 2, 15)),
           "s8": (8, lambda x: x & 255), "u8": (8, lambda x: x), "s4": (4, lambda x: x & 15), "u4": (4, lambda x: x), "b1": (1, lambda x: x)}


def sample(r, kind):
    """An element: a small integer that every format holds exactly."""
    if kind == "b1":
        return r.getrandbits(1)
    return r.randrange(0, 4) if kind[0] == "u" else r.randrange(-4, 4)


def form_of(s, name, counts, kinds, extra, tail, options):
    """A form with registers a, b, c, d of those counts and types."""
    names = [["%s%d" % (letter, i) for i in range(count)] for letter, count in zip("dabc", counts)]
    lists = ["{%s}" % ", ".join("%" + x for x in xs) for xs in names]
    ins = " ".join("%s:%s" % (x, t) for xs, t in zip(names[1:], kinds[1:]) for x in xs) + extra
    return s.form(name, " ".join("%s:%s" % (x, kinds[0]) for x in names[0]), ins, "%s %s%s;" % (name, ", ".join(lists), tail), lanes=32, **options)


def packed(place, count, per, bits, element):
    """The registers of a lane: `per` elements in each, at `place(i)`, from the low bits up."""
    return [sum(element(*place(register * per + at)) << at * bits for at in range(per)) for register in range(count)]


def accumulators(lane, kind, matrix):
    """The registers of C or D: 32-bit elements, or pairs of halves."""
    write = {"f32": f32, "s32": lambda x: wrap(x, 32), "f16": f16}[kind]
    flat = [write(matrix[i][j]) for i, j in (c_place(lane, i) for i in range(4 if len(matrix) == 16 else 2))]
    return flat if kind != "f16" else [flat[i] | flat[i + 1] << 16 for i in range(0, len(flat), 2)]


def dense(s, name, shape, ta, tb, kind, options, combine=lambda x, y: x * y):
    """A product whose elements are small integers."""
    m, n, k = shape
    (bits, write_a), (_, write_b) = FORMATS[ta], FORMATS[tb]
    per = 32 // bits
    results = m * n // 32 // (2 if kind == "f16" else 1)
    counts = results, m * k * bits // 1024, k * n * bits // 1024, results
    word = "b32" if kind == "f16" else kind
    f = form_of(s, name, counts, (word, "b32", "b32", word), "", "", options)
    r = rng(name)
    for _ in range(2):
        a = [[sample(r, ta) for _ in range(k)] for _ in range(m)]
        b = [[sample(r, tb) for _ in range(n)] for _ in range(k)]
        c = [[r.randrange(-99, 100) for _ in range(n)] for _ in range(m)]
        d = [[c[i][j] + sum(combine(a[i][x], b[x][j]) for x in range(k)) for j in range(n)] for i in range(m)]
        for lane in range(32):
            words = packed(lambda i: a_place(lane, i, per, m), counts[1], per, bits, lambda i, j: write_a(a[i][j]))
            words += packed(lambda i: b_place(lane, i, per), counts[2], per, bits, lambda i, j: write_b(b[i][j]))
            f.vec(tuple(words + accumulators(lane, kind, c)), tuple(accumulators(lane, kind, d)))


def metadata(choices, selector, bits, k):
    """The words of the warp: `choices[row][chunk]` are nibbles. Where the manual's formula is, per elements of A and width of a row."""
    words = [0] * 32
    width = 4 * len(choices[0])
    for row, nibbles in enumerate(choices):
        for q, nibble in enumerate(nibbles):
            if width == 16:
                t, place = selector, 4 * (row // 8) + q
            elif width == 32 and bits >= 16:
                t, place = 2 * selector + q // 4, 4 * (row // 8) + q % 4
            elif width == 32:
                t, place = 2 * selector + row // 8, q
            else:
                t, place = row // 8 + 2 * (q // 8), q % 8
            words[4 * (row % 8) + t] |= nibble << 4 * place
    return words


def sparse(s, name, shape, ta, tb, kind, selectors, options):
    """A product with a sparse A."""
    m, n, k = shape
    (bits, write_a), (_, write_b) = FORMATS[ta], FORMATS[tb]
    per = 32 // bits
    results = m * n // 32 // (2 if kind == "f16" else 1)
    counts = results, m * k * bits // 2048, k * n * bits // 1024, results
    word = "b32" if kind == "f16" else kind
    r = rng(name)
    for selector in selectors:
        f = form_of(s, name, counts, (word, "b32", "b32", word), " e:b32", ", %%e, %d" % selector, options)
        f.name += " selector %d" % selector
        full = [[0] * k for _ in range(m)]
        stored = [[0] * (k // 2) for _ in range(m)]
        choices = []
        for i in range(m):
            nibbles = []
            for q in range(k // {4: 8, 8: 4, 16: 4, 32: 2}[bits]):
                if bits == 32:
                    second = r.getrandbits(1)
                    nibbles.append(0b1110 if second else 0b0100)
                    columns = [2 * q + second]
                else:
                    x, y = sorted(r.sample(range(4), 2))
                    nibbles.append(x | y << 2)
                    columns = [4 * q + x, 4 * q + y] if bits != 4 else [8 * q + 2 * x, 8 * q + 2 * x + 1, 8 * q + 2 * y, 8 * q + 2 * y + 1]
                for at, column in enumerate(columns):
                    full[i][column] = stored[i][q * len(columns) + at] = sample(r, ta)
            choices.append(nibbles)
        words_of = metadata(choices, selector, bits, k)
        b = [[sample(r, tb) for _ in range(n)] for _ in range(k)]
        c = [[r.randrange(-99, 100) for _ in range(n)] for _ in range(m)]
        d = [[c[i][j] + sum(full[i][x] * b[x][j] for x in range(k)) for j in range(n)] for i in range(m)]
        # Words that are not looked at hold anything.
        looked = {4 * g + t for g in range(8) for t in range(4) if words_of[4 * g + t]}
        for lane in range(32):
            words = packed(lambda i: a_place(lane, i, per, m), counts[1], per, bits, lambda i, j: write_a(stored[i][j]))
            words += packed(lambda i: b_place(lane, i, per), counts[2], per, bits, lambda i, j: write_b(b[i][j]))
            words += accumulators(lane, kind, c) + [words_of[lane] if lane in looked else r.getrandbits(32)]
            f.vec(tuple(words), tuple(accumulators(lane, kind, d)))


def doubles(s, name, shape, mode, options):
    """Fused multiply-adds in the order of k, each rounded."""
    m, n, k = shape
    counts = m * n // 32, m * k // 32, k * n // 32, m * n // 32
    f = form_of(s, name, counts, ("f64",) * 4, "", "", options)
    r = rng(name)
    number = lambda: round_to(Fraction(r.randrange(-(1 << 53), 1 << 53), 1 << r.randrange(40, 60)), F64)
    a = [[number() for _ in range(k)] for _ in range(m)]
    b = [[number() for _ in range(n)] for _ in range(k)]
    c = [[number() for _ in range(n)] for _ in range(m)]
    d = [row[:] for row in c]
    for i in range(m):
        for j in range(n):
            for x in range(k):
                d[i][j] = fma(a[i][x], b[x][j], d[i][j], F64, mode)
    for lane in range(32):
        g, t = divmod(lane, 4)
        places = [(g + 8 * (i % 2), t + 4 * (i // 2)) if m == 16 else (g, t) for i in range(counts[1])]
        words = [a[i][j] for i, j in places] + [b[t + 4 * i][g] for i in range(counts[2])]
        own = [c_place(lane, i) for i in range(counts[0])]
        f.vec(tuple(words + [c[i][j] for i, j in own]), tuple(d[i][j] for i, j in own))


def matrices_later():
    s = Suite("mma_later", "mma of bits, of numbers of 4 and 8 bits, with a sparse A, and in double precision (PTX 7.0 to 8.7).",
              "Small integers as elements: exact in any order; double precision by exact fused multiply-adds in the order of k.")
    sm = lambda version, target: {"version": version, "target": target}
    line = "mma.sync.aligned.m%dn%dk%d.row.col.%s.%s.%s.%s"
    for shape in (8, 8, 128), (16, 8, 128), (16, 8, 256):
        for op, combine in ("xor", lambda x, y: x ^ y), ("and", lambda x, y: x & y):
            name = (line + ".%s.popc") % (*shape, "s32", "b1", "b1", "s32", op)
            dense(s, name, shape, "b1", "b1", "s32", sm("7.1", "sm_80"), combine)
    for ta in "s4", "u4":
        for tb in "s4", "u4":
            dense(s, line % (16, 8, 64, "s32", ta, tb, "s32"), (16, 8, 64), ta, tb, "s32", sm("7.0", "sm_80"))
    for k in 16, 32:
        for kind in "f32", "f16":
            for ta in "e4m3", "e5m2":
                for tb in "e4m3", "e5m2":
                    dense(s, line % (16, 8, k, kind, ta, tb, kind), (16, 8, k), ta, tb, kind, sm("8.7", "sm_89"))
    for k in 8, 16:
        for kind in "f32", "f16":
            dense(s, line % (16, 8, k, kind, "f16", "f16", kind), (16, 8, k), "f16", "f16", kind, sm("7.0", "sm_80"))
    for m, k in (8, 4), (16, 4), (16, 8), (16, 16):
        for mode in ("", "rn", "rz", "rm", "rp") if m == 8 else ("", "rp"):
            name = line % (m, 8, k, "f64", "f64", "f64", "f64") + ("." + mode if mode else "")
            doubles(s, name, (m, 8, k), mode or "rn", sm("7.8", "sm_90") if m == 16 else sm("7.0", "sm_80"))
    line = "mma.%s.sync.aligned.m16n8k%d.row.col.%s.%s.%s.%s"
    for variant, version in ("sp", "7.1"), ("sp::ordered_metadata", "8.5"):
        for k, selectors in (16, range(4)), (32, range(2)):
            for kind in "f16", "f32":
                sparse(s, line % (variant, k, kind, "f16", "f16", kind), (16, 8, k), "f16", "f16", kind, selectors, sm(version, "sm_80"))
            sparse(s, line % (variant, k, "f32", "bf16", "bf16", "f32"), (16, 8, k), "bf16", "bf16", "f32", selectors, sm(version, "sm_80"))
        for k, selectors in (8, range(4)), (16, range(2)):
            sparse(s, line % (variant, k, "f32", "tf32", "tf32", "f32"), (16, 8, k), "tf32", "tf32", "f32", selectors, sm(version, "sm_80"))
        for bits, k, selectors in (8, 32, range(2)), (8, 64, range(1)), (4, 64, range(2)), (4, 128, range(1)):
            sparse(s, line % (variant, k, "s32", "s%d" % bits, "u%d" % bits, "s32"), (16, 8, k), "s%d" % bits, "u%d" % bits, "s32", selectors, sm(version, "sm_80"))
    sparse(s, line % ("sp", 64, "f32", "e5m2", "e4m3", "f32"), (16, 8, 64), "e5m2", "e4m3", "f32", range(1), sm("8.4", "sm_89"))
    r = rng("movmatrix")
    f = s.form("movmatrix.sync.aligned.m8n8.trans.b16", "d:b32", "a:b32", ".reg .b32 %t; mov.b32 %t, %a; movmatrix.sync.aligned.m8n8.trans.b16 %d, %t;", lanes=32, version="7.8", target="sm_75")
    matrix = [[r.getrandbits(16) for _ in range(8)] for _ in range(8)]
    for lane in range(32):
        g, t = divmod(lane, 4)
        f.vec(matrix[g][2 * t] | matrix[g][2 * t + 1] << 16, matrix[2 * t][g] | matrix[2 * t + 1][g] << 16)
    for trans in "", ".trans":
        for count in 1, 2, 4:
            regs = "{%s}" % ", ".join("%%a%d" % i for i in range(count))
            # Each lane of the matrices gives the address of a row of 16 bytes; lane l then reads bytes 4 l of each matrix.
            body = (".reg .b32 %%at, %%me; mov.u32 %%me, %%tid.x; mov.u32 %%at, tile; mad.lo.u32 %%at, %%me, 16, %%at; "
                    "stmatrix.sync.aligned.m8n8.x%d%s.shared.b16 [%%at], %s; bar.sync 0; mov.u32 %%at, tile; mad.lo.u32 %%at, %%me, 4, %%at; " % (count, trans, regs)
                    + " ".join("ld.shared.b32 %%d%d, [%%at+%d];" % (i, 128 * i) for i in range(count)))
            f = s.form("stmatrix x%d%s" % (count, trans), " ".join("d%d:b32" % i for i in range(count)), " ".join("a%d:b32" % i for i in range(count)), body,
                       ".shared .align 16 .b8 tile[512];", lanes=32, version="7.8", target="sm_90")
            held = [[[r.getrandbits(16) for _ in range(8)] for _ in range(8)] for _ in range(count)]
            for lane in range(32):
                g, t = divmod(lane, 4)
                of = lambda x, row, column: x[column][row] if trans else x[row][column]
                f.vec(tuple(of(x, g, 2 * t) | of(x, g, 2 * t + 1) << 16 for x in held), tuple(x[g][2 * t] | x[g][2 * t + 1] << 16 for x in held))
    return s


SUITES = [matrices, matrices_later]
