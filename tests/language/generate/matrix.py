"""Matrices: 9.7.13."""

from page import Page

SHAPES = ["m16n16k16", "m8n32k16", "m32n8k16"]
"""Shapes of floating-point and byte matrices."""
PLACES = [("", "%b64_9"), (".global", "gvar"), (".shared", "svar")]
LAYOUTS = ["row", "col"]


def frag(ty, count, start=0):
    """A fragment of registers."""
    return "{" + ", ".join(f"%{ty}_{start + i}" for i in range(count)) + "}"


def size(matrix, ty, shape):
    """Registers of a fragment. 9.7.13.3."""
    if shape in ("m8n8k32", "m8n8k128"):
        return 1 if matrix in "ab" else 2
    if ty == "f16":
        return 8 if matrix in "ab" else 4
    if ty in ("s8", "u8"):
        a = {"m16n16k16": 2, "m8n32k16": 1, "m32n8k16": 4}[shape]
        return a if matrix == "a" else {2: 2, 1: 4, 4: 1}[a]
    return 8


def register(matrix, ty):
    """The type of a fragment's registers."""
    return {"f16": "f16x2", "f32": "f32", "s32": "s32"}.get(ty, "b32")


def row(matrix, ty):
    """The inventory row of a load."""
    if matrix == "c":
        return "wmma.load.c.s32" if ty == "s32" else "wmma.load.c.fp"
    return {"f16": "wmma.load.f16ab", "s8": "wmma.load.int8", "u8": "wmma.load.int8", "s4": "wmma.load.sub4", "u4": "wmma.load.sub4", "b1": "wmma.load.b1"}[ty]


def loads():
    """Every load: matrix, type, shape, layouts."""
    for shape in SHAPES:
        for matrix, types in (("a", ["f16", "s8", "u8"]), ("b", ["f16", "s8", "u8"]), ("c", ["f16", "f32", "s32"])):
            for ty in types:
                yield matrix, ty, shape, LAYOUTS
    for shape, types in (("m8n8k32", ["s4", "u4"]), ("m8n8k128", ["b1"])):
        for ty in types:
            yield "a", ty, shape, ["row"]
            yield "b", ty, shape, ["col"]
        yield "c", "s32", shape, LAYOUTS


def load(page):
    page.begin("loads", target="sm_75")
    for matrix, ty, shape, layouts in loads():
        ids = row(matrix, ty)
        regs = frag(register(matrix, ty), size(matrix, ty, shape))
        for layout in LAYOUTS:
            for ss, place in PLACES:
                line = f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}{ss}.{ty} {regs}, [{place}]"
                if layout in layouts:
                    page.ok(f"{ids} wmma.fragment wmma.shape wmma.storage", line + ";", line + ", 32;", line + ", %b32_9;")
                elif not ss:
                    page.bad("P0202", f"{ids} wmma.shape", line + ";")
        layout = layouts[0]
        page.ok(ids, f"wmma.load.{matrix}.sync.aligned.{shape}.{layout}.{ty} {regs}, [%b64_9];", f"wmma.load.{matrix}.sync.aligned.{shape}.global.{layout}.{ty} {regs}, [gvar];",
                f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}.{ty} {frag('b32', size(matrix, ty, shape))}, [%b64_9+64];")
        n = size(matrix, ty, shape)
        reg = register(matrix, ty)
        page.bad("P0211", f"{ids} wmma.fragment", *[f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}.{ty} {frag(reg, k)}, [%b64_9];" for k in (1, n - 1, n + 1, 2 * n) if k not in (0, n)][1 if n == 2 else 0:])
        wrong = {"f16x2": "u32", "f32": "u32", "s32": "f32", "b32": "b64"}[reg]
        page.bad("P0205", f"{ids} wmma.fragment", f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}.{ty} {{{', '.join(frag(reg, n)[1:-1].split(', ')[:-1] + [f'%{wrong}_0'])}}}, [%b64_9];")
        page.bad("P0202", f"{ids}", f"wmma.load.{matrix}.aligned.{layout}.{shape}.{ty} {regs}, [%b64_9];", f"wmma.load.{matrix}.sync.aligned.{shape}.{ty} {regs}, [%b64_9];",
                 f"wmma.load.{matrix}.sync.aligned.{layout}.{ty} {regs}, [%b64_9];", f"wmma.load.{matrix}.sync.aligned.{layout}.{shape} {regs}, [%b64_9];",
                 f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}.const.{ty} {regs}, [%b64_9];", f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}.local.{ty} {regs}, [%b64_9];")
        page.bad("P0503", f"{ids}", f"wmma.load.{matrix}.sync.{layout}.{shape}.{ty} {regs}, [%b64_9];")
    ids = "wmma.types wmma.shape"
    for matrix in "abc":
        for ty in ("u32", "b32", "f64", "s16", "b8"):
            page.bad("P0202", ids, f"wmma.load.{matrix}.sync.aligned.row.m16n16k16.{ty} {frag('b32', 8)}, [%b64_9];")
    page.bad("P0202", ids, f"wmma.load.a.sync.aligned.row.m16n16k16.f32 {frag('f32', 8)}, [%b64_9];", f"wmma.load.a.sync.aligned.row.m16n16k16.s32 {frag('s32', 8)}, [%b64_9];",
             f"wmma.load.c.sync.aligned.row.m16n16k16.s8 {frag('b32', 8)}, [%b64_9];", f"wmma.load.a.sync.aligned.row.m8n8k32.f16 {frag('b32', 1)}, [%b64_9];", f"wmma.load.a.sync.aligned.row.m8n8k32.s8 {frag('b32', 1)}, [%b64_9];",
             f"wmma.load.a.sync.aligned.row.m16n16k16.s4 {frag('b32', 1)}, [%b64_9];", f"wmma.load.a.sync.aligned.row.m8n8k128.s4 {frag('b32', 1)}, [%b64_9];", f"wmma.load.a.sync.aligned.row.m8n8k32.b1 {frag('b32', 1)}, [%b64_9];",
             f"wmma.load.a.sync.aligned.row.m16n16k8.f16 {frag('b32', 8)}, [%b64_9];", f"wmma.load.a.sync.aligned.row.m8n8k4.f16 {frag('b32', 2)}, [%b64_9];", f"wmma.load.d.sync.aligned.row.m16n16k16.f16 {frag('b32', 4)}, [%b64_9];",
             f"wmma.load.c.sync.aligned.row.m8n8k32.f32 {frag('f32', 2)}, [%b64_9];")
    one = f"wmma.load.a.sync.aligned.row.m16n16k16"
    page.bad("P0203", "wmma.load.f16ab", f"{one}.f16 {frag('b32', 8)};", f"{one}.f16 {frag('b32', 8)}, [%b64_9], 16, 1;")
    page.bad("P0211", "wmma.load.f16ab", f"{one}.f16 %b32_0, [%b64_9];")
    page.bad("P0204", "wmma.load.f16ab", f"{one}.f16 {frag('b32', 8)}, %b64_9;", f"{one}.f16 [%b64_9], {frag('b32', 8)};")
    page.bad("P0205", "wmma.load.f16ab", f"{one}.f16 {frag('b32', 8)}, [%b64_9], %b64_0;", f"{one}.f16 {frag('b32', 8)}, [%b64_9], %f32_0;", f"{one}.f16 {frag('b32', 8)}, [%b64_9], 1.0;")
    page.bad("P0207", "wmma.load.f16ab", f"{one}.global.f16 {frag('b32', 8)}, [svar];", f"{one}.shared.f16 {frag('b32', 8)}, [gvar];")


def store(page):
    page.begin("stores", target="sm_75")
    cases = [(ty, shape) for shape in SHAPES for ty in ("f16", "f32", "s32")] + [("s32", "m8n8k32"), ("s32", "m8n8k128")]
    for ty, shape in cases:
        ids = "wmma.store.s32" if ty == "s32" else "wmma.store.fp"
        n, reg = size("d", ty, shape), register("d", ty)
        for layout in LAYOUTS:
            for ss, place in PLACES:
                line = f"wmma.store.d.sync.aligned.{layout}.{shape}{ss}.{ty} [{place}], {frag(reg, n)}"
                page.ok(f"{ids} wmma.fragment wmma.storage", line + ";", line + ", 32;", line + ", %u32_9;")
            page.ok(ids, f"wmma.store.d.sync.aligned.{shape}.{layout}.{ty} [%b64_9], {frag(reg, n)};", f"wmma.store.d.sync.aligned.{shape}.global.{layout}.{ty} [gvar], {frag('b32', n)};")
        page.bad("P0211", f"{ids} wmma.fragment", f"wmma.store.d.sync.aligned.row.{shape}.{ty} [%b64_9], {frag(reg, n + 1)};", f"wmma.store.d.sync.aligned.row.{shape}.{ty} [%b64_9], {frag(reg, n - 1)};")
        page.bad("P0503", ids, f"wmma.store.d.sync.row.{shape}.{ty} [%b64_9], {frag(reg, n)};")
        page.bad("P0202", ids, f"wmma.store.d.aligned.row.{shape}.{ty} [%b64_9], {frag(reg, n)};", f"wmma.store.d.sync.aligned.{shape}.{ty} [%b64_9], {frag(reg, n)};", f"wmma.store.c.sync.aligned.row.{shape}.{ty} [%b64_9], {frag(reg, n)};",
                 f"wmma.store.sync.aligned.row.{shape}.{ty} [%b64_9], {frag(reg, n)};", f"wmma.store.d.sync.aligned.row.{shape}.local.{ty} [%b64_9], {frag(reg, n)};")
    for ty in ("s8", "u8", "u32", "b32", "f64"):
        page.bad("P0202", "wmma.store.fp wmma.types", f"wmma.store.d.sync.aligned.row.m16n16k16.{ty} [%b64_9], {frag('b32', 8)};")
    page.bad("P0202", "wmma.store.s32 wmma.shape", f"wmma.store.d.sync.aligned.row.m8n8k32.f32 [%b64_9], {frag('f32', 2)};", f"wmma.store.d.sync.aligned.row.m8n8k4.f32 [%b64_9], {frag('f32', 8)};")
    one = "wmma.store.d.sync.aligned.row.m16n16k16.f32"
    page.bad("P0203", "wmma.store.fp", f"{one} [%b64_9];", f"{one} [%b64_9], {frag('f32', 8)}, 16, 1;")
    page.bad("P0204", "wmma.store.fp", f"{one} {frag('f32', 8)}, [%b64_9];", f"{one} %b64_9, {frag('f32', 8)};")
    page.bad("P0205", "wmma.store.fp", f"{one} [%b64_9], {frag('u32', 8)[:-8]}%u32_7}};".replace(frag('u32', 8)[:-8], frag('f32', 8)[:-8]), f"{one} [%b64_9], {frag('f32', 8)}, %b64_0;")
    page.bad("P0207", "wmma.store.fp", f"wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [svar], {frag('f32', 8)};")


def operands(kinds, shape):
    """The fragments of D, A, B and C; `kinds` are their element types."""
    return ", ".join(frag(register(m, ty), size(m, ty, shape), 0 if m in "ac" else 10) for m, ty in zip("dabc", kinds))


def multiply(page):
    page.begin("products", target="sm_75")
    for shape in SHAPES:
        for alayout in LAYOUTS:
            for blayout in LAYOUTS:
                for d in ("f16", "f32"):
                    for c in ("f16", "f32"):
                        args = operands((d, "f16", "f16", c), shape)
                        page.ok("wmma.mma.fp wmma.fragment wmma.types", f"wmma.mma.sync.aligned.{alayout}.{blayout}.{shape}.{d}.{c} {args};", f"wmma.mma.sync.aligned.{shape}.{alayout}.{blayout}.{d}.{c} {args};")
                        page.warn("P0901", "wmma.mma.fp.satfinite", f"wmma.mma.sync.aligned.{alayout}.{blayout}.{shape}.{d}.{c}.satfinite {args};")
                for ty in ("s8", "u8"):
                    for sat in ("", ".satfinite"):
                        args = operands(("s32", ty, ty, "s32"), shape)
                        page.ok("wmma.mma.int8 wmma.fragment wmma.types", f"wmma.mma.sync.aligned.{alayout}.{blayout}.{shape}.s32.{ty}.{ty}.s32{sat} {args};")
    for ty in ("s4", "u4"):
        args = operands(("s32", ty, ty, "s32"), "m8n8k32")
        for sat in ("", ".satfinite"):
            page.ok("wmma.mma.sub4 wmma.fragment", f"wmma.mma.sync.aligned.row.col.m8n8k32.s32.{ty}.{ty}.s32{sat} {args};", f"wmma.mma.sync.aligned.m8n8k32.row.col.s32.{ty}.{ty}.s32{sat} {args};")
        for layouts in ("row.row", "col.row", "col.col", "row", "col"):
            page.bad("P0202", "wmma.mma.sub4", f"wmma.mma.sync.aligned.{layouts}.m8n8k32.s32.{ty}.{ty}.s32 {args};")
    args = operands(("s32", "b1", "b1", "s32"), "m8n8k128")
    page.ok("wmma.mma.b1 wmma.fragment", f"wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {args};", f"wmma.mma.xor.popc.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32 {args};")
    page.bad("P0202", "wmma.mma.b1", f"wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32.satfinite {args};", f"wmma.mma.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {args};",
             f"wmma.mma.xor.popc.sync.aligned.col.row.m8n8k128.s32.b1.b1.s32 {args};", f"wmma.mma.xor.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {args};",
             f"wmma.mma.xor.popc.sync.aligned.row.col.m8n8k32.s32.s4.s4.s32 {operands(('s32', 's4', 's4', 's32'), 'm8n8k32')};")
    page.bad("P0503", "wmma.mma.b1", f"wmma.mma.xor.popc.sync.row.col.m8n8k128.s32.b1.b1.s32 {args};")
    ints = operands(("s32", "s8", "s8", "s32"), "m16n16k16")
    page.bad("P0213", "wmma.mma.int8 wmma.types", f"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {ints};", f"wmma.mma.sync.aligned.row.col.m16n16k16.s32.u8.s8.s32 {ints};")
    page.bad("P0213", "wmma.mma.sub4 wmma.types", f"wmma.mma.sync.aligned.row.col.m8n8k32.s32.s4.u4.s32 {operands(('s32', 's4', 's4', 's32'), 'm8n8k32')};")
    fps = operands(("f32", "f16", "f16", "f32"), "m16n16k16")
    page.bad("P0202", "wmma.mma.int8 wmma.types", f"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.f32 {ints};", f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.s8.s8.s32 {ints};", f"wmma.mma.sync.aligned.row.col.m16n16k16.s32.f16.f16.s32 {ints};",
             f"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s4.s4.s32 {ints};", f"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s32 {ints};", f"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8 {ints};",
             f"wmma.mma.sync.aligned.row.col.m16n16k16.u32.u8.u8.u32 {ints};", f"wmma.mma.sync.aligned.row.m16n16k16.s32.s8.s8.s32 {ints};")
    page.bad("P0202", "wmma.mma.fp wmma.types", f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.s32 {fps};", f"wmma.mma.sync.aligned.row.col.m16n16k16.f64.f64 {fps};", f"wmma.mma.sync.aligned.row.col.m8n8k32.f32.f32 {fps};",
             f"wmma.mma.sync.aligned.row.m16n16k16.f32.f32 {fps};", f"wmma.mma.aligned.row.col.m16n16k16.f32.f32 {fps};", f"wmma.mma.sync.aligned.row.col.f32.f32 {fps};", f"wmma.mma.sync.aligned.row.col.m16n16k16.f32 {fps};",
             f"wmma.sync.aligned.row.col.m16n16k16.f32.f32 {fps};")
    page.bad("P0503", "wmma.mma.fp", f"wmma.mma.sync.row.col.m16n16k16.f32.f32 {fps};")
    page.bad("P0503", "wmma.mma.int8", f"wmma.mma.sync.row.col.m16n16k16.s32.s8.s8.s32 {ints};")
    one = "wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32"
    parts = [frag("f32", 8, 10), frag("f16x2", 8), frag("f16x2", 8, 10), frag("f32", 8)]
    for i in range(4):
        short = parts[:i] + [parts[i].rsplit(",", 1)[0] + "}"] + parts[i + 1:]
        page.bad("P0211", "wmma.mma.fp wmma.fragment", f"{one} {', '.join(short)};")
        reg = "u32" if i in (0, 3) else "b64"
        wrong = parts[:i] + [parts[i].rsplit(",", 1)[0] + f", %{reg}_0}}"] + parts[i + 1:]
        page.bad("P0205", "wmma.mma.fp wmma.fragment", f"{one} {', '.join(wrong)};")
    page.bad("P0203", "wmma.mma.fp", f"{one} {', '.join(parts[:3])};", f"{one} {', '.join(parts)}, 1;")
    page.bad("P0204", "wmma.mma.fp", f"{one} {', '.join(parts[:3])}, [%b64_9];")
    page.bad("P0211", "wmma.mma.fp", f"{one} {', '.join(parts[:3])}, %f32_0;")


def mma(page):
    page.begin("mma.m8n8k4")
    pair = lambda start: frag("f16x2", 2, start)
    acc = lambda ty, start: frag("f16x2", 4, start) if ty == "f16" else frag("f32", 8, start)
    for alayout in LAYOUTS:
        for blayout in LAYOUTS:
            for d, c in (("f16", "f16"), ("f32", "f16"), ("f32", "f32")):
                ids = "mma.m8n8k4 mma.m8n8k4.frag_a mma.m8n8k4.frag_b " + ("mma.m8n8k4.frag_c16" if c == "f16" else "mma.m8n8k4.frag_c32")
                page.ok(ids, f"mma.sync.aligned.m8n8k4.{alayout}.{blayout}.{d}.f16.f16.{c} {acc(d, 10)}, {pair(0)}, {pair(2)}, {acc(c, 20)};")
            page.bad("P0213", "mma.m8n8k4", f"mma.sync.aligned.m8n8k4.{alayout}.{blayout}.f16.f16.f16.f32 {acc('f16', 10)}, {pair(0)}, {pair(2)}, {acc('f32', 20)};")
    line = lambda words, args=None: f"mma.{words} {args or ', '.join((acc('f32', 10), pair(0), pair(2), acc('f32', 20)))};"
    page.bad("P0202", "mma.m8n8k4", line("sync.aligned.m8n8k4.f32.f16.f16.f32"), line("sync.aligned.m8n8k4.row.f32.f16.f16.f32"), line("sync.m8n8k4.row.col.f32.f16.f16.f32"), line("aligned.m8n8k4.row.col.f32.f16.f16.f32"),
             line("sync.aligned.m16n16k16.row.col.f32.f16.f16.f32"), line("sync.aligned.m8n8k4.row.col.f32.f32"), line("sync.aligned.m8n8k4.row.col.f32.f16.f16"),
             line("sync.aligned.m8n8k4.row.col.f32.s8.s8.f32"), line("sync.aligned.m8n8k4.row.col.s32.f16.f16.s32"), line("sync.aligned.m8n8k4.row.col.f32.f16.f16.f32.satfinite"))
    op = "sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
    page.bad("P0211", "mma.m8n8k4.frag_a", line(op, f"{acc('f32', 10)}, {frag('f16x2', 4)}, {pair(2)}, {acc('f32', 20)}"), line(op, f"{acc('f32', 10)}, {frag('f16x2', 1)}, {pair(2)}, {acc('f32', 20)}"))
    page.bad("P0211", "mma.m8n8k4.frag_b", line(op, f"{acc('f32', 10)}, {pair(0)}, {frag('f16x2', 3)}, {acc('f32', 20)}"))
    page.bad("P0211", "mma.m8n8k4.frag_c32", line(op, f"{frag('f32', 4)}, {pair(0)}, {pair(2)}, {acc('f32', 20)}"), line(op, f"{acc('f32', 10)}, {pair(0)}, {pair(2)}, {frag('f32', 4)}"))
    half = "sync.aligned.m8n8k4.row.col.f16.f16.f16.f16"
    page.bad("P0211", "mma.m8n8k4.frag_c16", line(half, f"{frag('f16x2', 8)}, {pair(0)}, {pair(2)}, {acc('f16', 20)}"), line(half, f"{acc('f16', 10)}, {pair(0)}, {pair(2)}, {frag('f16x2', 8)}"))
    page.bad("P0205", "mma.m8n8k4.frag_a", line(op, f"{acc('f32', 10)}, {{%f16x2_0, %f32_1}}, {pair(2)}, {acc('f32', 20)}"))
    page.bad("P0203", "mma.m8n8k4", line(op, f"{acc('f32', 10)}, {pair(0)}, {pair(2)}"))


def gates(page):
    f16 = f"wmma.load.a.sync.aligned.row.m16n16k16.f16 {frag('b32', 8)}, [%b64_9];"
    other = f"wmma.load.a.sync.aligned.row.m8n32k16.f16 {frag('b32', 8)}, [%b64_9];"
    old = f"wmma.load.a.sync.row.m16n16k16.f16 {frag('b32', 8)}, [%b64_9];"
    byte = f"wmma.load.a.sync.aligned.row.m16n16k16.s8 {frag('b32', 2)}, [%b64_9];"
    nibble = f"wmma.load.a.sync.aligned.row.m8n8k32.s4 {frag('b32', 1)}, [%b64_9];"
    bit = f"wmma.load.b.sync.aligned.col.m8n8k128.b1 {frag('b32', 1)}, [%b64_9];"
    product = f"wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {operands(('f16', 'f16', 'f16', 'f16'), 'm16n16k16').replace('f16x2', 'b32')};"
    saturated = product.replace("f16.f16 ", "f16.f16.satfinite ")
    ints = f"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32 {operands(('s32', 's8', 's8', 's32'), 'm16n16k16')};"
    nibbles = f"wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.u4.s32 {operands(('s32', 'u4', 'u4', 's32'), 'm8n8k32')};"
    bits = f"wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {operands(('s32', 'b1', 'b1', 's32'), 'm8n8k128')};"
    stores = f"wmma.store.d.sync.aligned.row.m16n16k16.f32 [%b64_9], {frag('f32', 8)};"
    storei = f"wmma.store.d.sync.aligned.row.m16n16k16.s32 [%b64_9], {frag('s32', 8)};"
    storeb = f"wmma.store.d.sync.aligned.row.m8n8k32.s32 [%b64_9], {frag('s32', 2)};"
    loadc = f"wmma.load.c.sync.aligned.row.m16n16k16.s32 {frag('s32', 8)}, [%b64_9];"
    loadcb = f"wmma.load.c.sync.aligned.row.m8n8k128.s32 {frag('s32', 2)}, [%b64_9];"
    loadcf = f"wmma.load.c.sync.aligned.row.m16n16k16.f32 {frag('f32', 8)}, [%b64_9];"
    mma = f"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {frag('f32', 8)}, {frag('b32', 2)}, {frag('b32', 2, 2)}, {frag('f32', 8, 10)};"
    floats = [("wmma.load.f16ab", f16), ("wmma.mma.fp", product), ("wmma.store.fp", stores), ("wmma.load.c.fp", loadcf), ("wmma.mma.fp.satfinite", saturated)]
    bytes_ = [("wmma.load.int8", byte), ("wmma.mma.int8", ints), ("wmma.store.s32", storei), ("wmma.load.c.s32", loadc)]
    small = [("wmma.load.sub4", nibble), ("wmma.load.b1", bit), ("wmma.mma.sub4", nibbles), ("wmma.mma.b1", bits), ("wmma.store.s32", storeb), ("wmma.load.c.s32", loadcb)]
    for version, target, lines, code in (
            ("6.0", "sm_70", floats, None), ("5.0", "sm_62", floats, "P0501"), ("6.0", "sm_62", floats, "P0502"), ("6.4", "sm_62", floats[:4], "P0502"),
            ("6.1", "sm_70", [("wmma.shape", other)], None), ("6.0", "sm_70", [("wmma.shape", other)], "P0501"),
            ("6.2", "sm_70", [("wmma.load.f16ab", old)], None), ("6.3", "sm_70", [("wmma.load.f16ab", old)], "P0503"),
            ("6.3", "sm_72", bytes_, None), ("6.2", "sm_72", bytes_, "P0501"), ("6.3", "sm_70", bytes_, "P0502"), ("6.4", "sm_70", bytes_, "P0502"),
            ("6.3", "sm_75", small, None), ("6.3", "sm_72", small, "P0502"), ("6.4", "sm_70", small, "P0502"),
            ("6.4", "sm_70", [("mma.m8n8k4", mma)], None), ("6.3", "sm_70", [("mma.m8n8k4", mma)], "P0501"), ("6.4", "sm_62", [("mma.m8n8k4", mma)], "P0502")):
        page.begin(f"{lines[0][0]} and its like for {version} and {target}", version=version, target=target)
        for ids, line in lines:
            page.bad(code, ids, line) if code else page.ok(ids, line)


def pages():
    page = Page("F23_matrix", "Matrices, PTX ISA 9.7.13.")
    for part in (load, store, multiply, mma, gates):
        part(page)
    yield page
