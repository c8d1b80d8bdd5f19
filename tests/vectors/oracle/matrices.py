"""mma with 8 and 16 rows after PTX 6.4: bf16, tf32, and integers of 8 and 4 bits. One CTA is one warp; its vectors are the lanes.

Where elements lie is transcribed from the fragment formulas of the manual (PTX ISA 7.0, matrix fragments for mma). The numbers are
small integers, so that every order of summing gives the same.
"""
from form import Suite
from number import clamp, mask, signed, wrap
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


SUITES = [matrices]
