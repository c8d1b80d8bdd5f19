"""Scalar and SIMD video instructions: 9.7.15 and 9.7.16."""

import itertools

from page import Page

TYPES = ["u32", "s32"]
SUB = ["b0", "b1", "b2", "b3", "h0", "h1"]
CMP = ["eq", "ne", "lt", "le", "gt", "ge"]
SECOND = ["add", "min", "max"]
MASKS2 = ["h0", "h1", "h10"]
MASKS4 = ["b0", "b1", "b10", "b2", "b20", "b21", "b210", "b3", "b30", "b31", "b310", "b32", "b320", "b321", "b3210"]
TRIPLES = list(itertools.product(TYPES, repeat=3))
PAIRS = list(itertools.product(TYPES, repeat=2))


def scalar(page, op, head, types, plain, typed):
    """Plain, secondary and merging forms. `head` makes the modifiers from types, `plain` and `typed` say how they end."""
    ids = f"vid.{op}"
    for tys in types:
        for tail in plain:
            name = f"{op}{head(tys)}{tail}"
            d, a, b = typed(tys)
            page.ok(ids, f"{name} %{d}_0, %{a}_1, %{b}_2;")
            for i, sel in enumerate(SUB):
                other = SUB[(i + 1) % len(SUB)]
                page.ok(f"{ids} vid.sel", f"{name} %{d}_0, %{a}_1.{sel}, %{b}_2.{other};", f"{name} %{d}_0, %{a}_1, %{b}_2.{sel};", f"{name} %{d}_0, %{a}_1.{sel}, %{b}_2;")
                page.ok(f"{ids}.merge", f"{name} %{d}_0.{sel}, %{a}_1, %{b}_2.{other}, %{d}_3;", f"{name} %{d}_0.{sel}, %{a}_1.{other}, %{b}_2, %{d}_3;")
            for second in SECOND:
                page.ok(f"{ids}.{second}", f"{name}.{second} %{d}_0, %{a}_1, %{b}_2, %{d}_3;", f"{name}.{second} %{d}_0, %{a}_1.b1, %{b}_2.h1, %{d}_3;")
    d, a, b = typed(types[0])
    name = f"{op}{head(types[0])}{plain[0]}"
    page.ok("vid.imm", f"{name} %{d}_0, 7, %{b}_2;", f"{name} %{d}_0, %{a}_1, 7;", f"{name}.add %{d}_0, %{a}_1, %{b}_2, 7;", f"{name}.max %{d}_0, %{a}_1, %{b}_2, -1;")
    page.bad("P0203", f"{ids}", f"{name} %{d}_0, %{a}_1;", f"{name} %{d}_0, %{a}_1, %{b}_2, %{d}_3, %{d}_4;")
    page.bad("P0204", f"{ids}", f"{name} %{d}_0, %{a}_1, %{b}_2, %{d}_3;")
    page.bad("P0204", f"{ids}.merge", f"{name} %{d}_0.h0, %{a}_1, %{b}_2;")
    for second in SECOND:
        page.bad("P0203", f"{ids}.{second}", f"{name}.{second} %{d}_0, %{a}_1, %{b}_2;")
        page.bad("P0204", f"{ids}.{second} {ids}.merge", f"{name}.{second} %{d}_0.h0, %{a}_1, %{b}_2, %{d}_3;")
        page.bad("P0204", f"{ids}.{second}", f"{name}.{second} %{d}_0, %{a}_1, %{b}_2, %{d}_3.h0;")
        page.bad("P0205", f"{ids}.{second}", f"{name}.{second} %{d}_0, %{a}_1, %{b}_2, %b64_3;", f"{name}.{second} %{d}_0, %{a}_1, %{b}_2, %f32_3;")
        page.bad("P0202", f"{ids}.{second}", f"{op}.{second}{head(types[0])}{plain[0]} %{d}_0, %{a}_1, %{b}_2, %{d}_3;")
    page.bad("P0202", ids, f"{name}.sub %{d}_0, %{a}_1, %{b}_2, %{d}_3;", f"{name}.add.min %{d}_0, %{a}_1, %{b}_2, %{d}_3;")
    page.bad("P0204", f"{ids}.merge", f"{name} %{d}_0.b1, %{a}_1, %{b}_2, %{d}_3.b0;")
    for sel in ("b4", "h2", "h10", "b10", "b00", "x", "b"):
        page.bad("P0213", f"{ids} vid.sel", f"{name} %{d}_0, %{a}_1.{sel}, %{b}_2;", f"{name} %{d}_0, %{a}_1, %{b}_2.{sel};")
        page.bad("P0213", f"{ids}.merge vid.sel", f"{name} %{d}_0.{sel}, %{a}_1, %{b}_2, %{d}_3;") if len(sel) > 1 else None
    page.bad("P0204", ids, f"{name} %{d}_0, -%{a}_1, %{b}_2;", f"{name} %{d}_0, %{a}_1, -%{b}_2;", f"{name} 7, %{a}_1, %{b}_2;", f"{name} %{d}_0, [gword], %{b}_2;", f"{name} %{d}_0, !%pred_0, %{b}_2;",
             f"{name} %{d}_0, gword, %{b}_2;", f"{name} %{d}_0|%pred_0, %{a}_1, %{b}_2;")
    for reg in ("b64", "u16", "f32", "pred"):
        page.bad("P0205", ids, f"{name} %{reg}_0, %{a}_1, %{b}_2;", f"{name} %{d}_0, %{reg}_1, %{b}_2;", f"{name} %{d}_0, %{a}_1, %{reg}_2;")
    page.bad("P0205", ids, f"{name} %{d}_0, %{a}_1, 1.0;")
    page.ok(ids, f"{name} %b32_0, %b32_1, %b32_2;", f"{name} %{d}_0, %s32_1.b0, %u32_2.h1;")


def scalars(page):
    for op in ("vadd", "vsub", "vabsdiff", "vmin", "vmax"):
        page.begin(op, version="2.0", target="sm_20", wide=False)
        head = lambda tys: "".join("." + ty for ty in tys)
        scalar(page, op, head, TRIPLES, ["", ".sat"], lambda tys: tys)
        ids = f"vid.{op}"
        for ty in ("u16", "s64", "b32", "f32", "u8", "pred"):
            page.bad("P0202", ids, f"{op}.{ty}.u32.u32 %b32_0, %b32_1, %b32_2;", f"{op}.u32.{ty}.u32 %b32_0, %b32_1, %b32_2;", f"{op}.u32.u32.{ty} %b32_0, %b32_1, %b32_2;")
        page.bad("P0202", ids, f"{op}.u32.u32 %b32_0, %b32_1, %b32_2;", f"{op}.u32 %b32_0, %b32_1, %b32_2;", f"{op}.sat.u32.u32.u32 %b32_0, %b32_1, %b32_2;", f"{op}.u32.u32.u32.clamp %b32_0, %b32_1, %b32_2;",
                 f"{op}.u32.u32.u32.po %b32_0, %b32_1, %b32_2;", f"{op}.u32.u32.u32.eq %b32_0, %b32_1, %b32_2;", f"{op}.u32.u32.u32.add.sat %b32_0, %b32_1, %b32_2, %b32_3;")
    for op in ("vshl", "vshr"):
        page.begin(op, version="2.0", target="sm_20", wide=False)
        head = lambda tys: f".{tys[0]}.{tys[1]}.u32"
        modes = [sat + mode for sat in ("", ".sat") for mode in (".clamp", ".wrap")]
        scalar(page, op, head, PAIRS, modes, lambda tys: (*tys, "u32"))
        ids = f"vid.{op}"
        for d, a in PAIRS:
            page.bad("P0202", ids, f"{op}.{d}.{a}.u32 %b32_0, %b32_1, %b32_2;", f"{op}.{d}.{a}.u32.sat %b32_0, %b32_1, %b32_2;", f"{op}.{d}.{a}.s32.wrap %b32_0, %b32_1, %b32_2;",
                     f"{op}.{d}.{a}.u32.clamp.sat %b32_0, %b32_1, %b32_2;", f"{op}.{d}.{a}.u32.wrap.sat %b32_0, %b32_1, %b32_2;", f"{op}.{d}.{a}.u32.clamp.wrap %b32_0, %b32_1, %b32_2;")
        page.bad("P0202", ids, f"{op}.u32.u32.u32.add %b32_0, %b32_1, %b32_2, %b32_3;", f"{op}.u32.u32.u32.add.wrap %b32_0, %b32_1, %b32_2, %b32_3;", f"{op}.u32.u32.clamp %b32_0, %b32_1, %b32_2;")
    page.begin("vset", version="2.0", target="sm_20", wide=False)
    head = lambda tys: f".{tys[0]}.{tys[1]}"
    scalar(page, "vset", head, PAIRS, ["." + cmp for cmp in CMP], lambda tys: ("u32", *tys))
    for a, b in PAIRS:
        page.bad("P0202", "vid.vset", *[f"vset.{a}.{b}.{cmp} %u32_0, %{a}_1, %{b}_2;" for cmp in ("lo", "ls", "hi", "hs", "equ", "num", "sat")])
        page.bad("P0202", "vid.vset", f"vset.u32.{a}.{b}.eq %u32_0, %{a}_1, %{b}_2;", f"vset.{a}.{b} %u32_0, %{a}_1, %{b}_2;", f"vset.{a}.{b}.eq.sat %u32_0, %{a}_1, %{b}_2;", f"vset.{a}.{b}.sat.eq %u32_0, %{a}_1, %{b}_2;",
                 f"vset.eq.{a}.{b} %u32_0, %{a}_1, %{b}_2;")


def vmad(page):
    page.begin("vmad", version="2.0", target="sm_20", wide=False)
    for d, a, b in TRIPLES:
        for sat in ("", ".sat"):
            for scale in ("", ".shr7", ".shr15"):
                ids = f"vid.vmad{scale}"
                name = f"vmad.{d}.{a}.{b}{sat}{scale}"
                regs = f"%{d}_0, %{a}_1, %{b}_2, %{d}_3"
                page.ok(ids, f"{name} {regs};")
                for i, sel in enumerate(SUB):
                    page.ok(f"{ids} vid.sel", f"{name} %{d}_0, %{a}_1.{sel}, %{b}_2.{SUB[i - 1]}, %{d}_3;")
                page.ok("vid.vmad.negab", f"{name} %{d}_0, -%{a}_1, %{b}_2, %{d}_3;", f"{name} %{d}_0, %{a}_1, -%{b}_2, %{d}_3;", f"{name} %{d}_0, -%{a}_1.b0, %{b}_2.h1, %{d}_3;")
                page.ok("vid.vmad.negab2", f"{name} %{d}_0, -%{a}_1, -%{b}_2, %{d}_3;", f"{name} %{d}_0, -%{a}_1, -%{b}_2, -%{d}_3;", f"{name} %{d}_0, -%{a}_1.b3, -%{b}_2.h0, -%{d}_3;")
                page.ok("vid.vmad.negc", f"{name} %{d}_0, %{a}_1, %{b}_2, -%{d}_3;")
                page.bad("P0204", "vid.vmad.negab vid.vmad.negab2 vid.vmad.negc", f"{name} %{d}_0, -%{a}_1, %{b}_2, -%{d}_3;", f"{name} %{d}_0, %{a}_1, -%{b}_2, -%{d}_3;")
                po = f"vmad.{d}.{a}.{b}.po{sat}{scale}"
                page.ok("vid.vmad.po", f"{po} {regs};", f"{po} %{d}_0, %{a}_1.b2, %{b}_2.h1, %{d}_3;")
                page.bad("P0204", "vid.vmad.po", f"{po} %{d}_0, -%{a}_1, %{b}_2, %{d}_3;", f"{po} %{d}_0, %{a}_1, %{b}_2, -%{d}_3;", f"{po} %{d}_0, -%{a}_1, -%{b}_2, %{d}_3;")
    name = "vmad.s32.s32.s32"
    regs = "%s32_0, %s32_1, %s32_2, %s32_3"
    page.ok("vid.imm", f"{name} %s32_0, %s32_1, 7, %s32_3;", f"{name} %s32_0, %s32_1, %s32_2, 7;", f"{name} %s32_0, 7, %s32_2, 0;")
    page.bad("P0202", "vid.vmad", f"{name}.add {regs};", f"{name}.min {regs};", f"{name}.max {regs};", f"vmad.sat.s32.s32.s32 {regs};", f"vmad.s32.s32 {regs};")
    page.bad("P0202", "vid.vmad.po", f"{name}.sat.po {regs};", f"{name}.shr7.po {regs};")
    page.bad("P0202", "vid.vmad.shr7", f"{name}.shr7.sat {regs};", f"{name}.po.shr7.sat {regs};", f"{name}.shr7.shr15 {regs};")
    page.bad("P0202", "vid.vmad.shr15", f"{name}.shr15.sat {regs};", f"{name}.shr8 {regs};")
    page.bad("P0204", "vid.vmad", f"{name} %s32_0.h0, %s32_1, %s32_2, %s32_3;", f"{name} %s32_0, %s32_1, %s32_2, %s32_3.h0;", f"{name} -%s32_0, %s32_1, %s32_2, %s32_3;")
    page.bad("P0203", "vid.vmad", f"{name} %s32_0, %s32_1, %s32_2;", f"{name} {regs}, %s32_4;")
    page.bad("P0213", "vid.vmad vid.sel", f"{name} %s32_0, %s32_1.b4, %s32_2, %s32_3;", f"{name} %s32_0, %s32_1, %s32_2.h10, %s32_3;")
    for reg in ("b64", "u16", "f32", "pred"):
        page.bad("P0205", "vid.vmad", f"{name} %{reg}_0, %s32_1, %s32_2, %s32_3;", f"{name} %s32_0, %{reg}_1, %s32_2, %s32_3;", f"{name} %s32_0, %s32_1, %{reg}_2, %s32_3;", f"{name} %s32_0, %s32_1, %s32_2, %{reg}_3;")
    for ty in ("u16", "s64", "b32", "f32"):
        page.bad("P0202", "vid.vmad", f"vmad.{ty}.u32.u32 {regs};", f"vmad.u32.{ty}.u32 {regs};", f"vmad.u32.u32.{ty} {regs};")


def simd(page, op, lanes):
    """The forms of a SIMD instruction."""
    page.begin(op, version="3.0", target="sm_30", wide=False)
    ids = f"vid.{op}"
    masks = MASKS2 if lanes == 2 else MASKS4
    letter, digits = ("h", "0123") if lanes == 2 else ("b", "01234567")
    compares = op.startswith("vset")
    types = PAIRS if compares else TRIPLES
    default = "h10" if lanes == 2 else "b3210"
    sels = [letter + "".join(s) for s in itertools.product(digits, repeat=lanes)] if lanes == 2 else \
        [letter + "".join(digits[(k * step + j) % 8] for j in range(4)) for k in range(8) for step in (1, 3)] + ["b0000", "b7777", "b7654", "b3210", "b0123", "b4567"]
    for tys in types:
        d = "u32" if compares else tys[0]
        a, b = tys[-2:]
        for tail, row in ([("." + cmp, "") for cmp in CMP] + [(f".{cmp}.add", ".add") for cmp in CMP] if compares else [("", ""), (".sat", ".sat"), (".add", ".add")]):
            name = f"{op}.{'.'.join(tys)}{tail}"
            page.ok(ids + row, f"{name} %{d}_0, %{a}_1, %{b}_2, %{d}_3;")
            for mask in masks:
                page.ok(f"{ids}{row} vid.simd{lanes}.mask", f"{name} %{d}_0.{mask}, %{a}_1, %{b}_2, %{d}_3;")
    d, a, b = ("u32", *types[0]) if compares else types[0]
    tail = ".eq" if compares else ""
    name = f"{op}.{'.'.join(types[0])}{tail}"
    for sel in sels:
        page.ok(f"{ids} vid.simd{lanes}.sel", f"{name} %{d}_0, %{a}_1.{sel}, %{b}_2, %{d}_3;", f"{name} %{d}_0.{default}, %{a}_1, %{b}_2.{sel}, %{d}_3;")
    page.warn("P0903", "vid.imm", f"{name} %{d}_0, %{a}_1, %{b}_2, 0;", f"{name} %{d}_0, %{a}_1, 7, %{d}_3;", f"{name} %{d}_0, 7, %{b}_2, %{d}_3;")
    page.bad("P0203", ids, f"{name} %{d}_0, %{a}_1, %{b}_2;", f"{name}.add %{d}_0, %{a}_1, %{b}_2;", f"{name} %{d}_0, %{a}_1, %{b}_2, %{d}_3, %{d}_4;")
    wrong = ["h2", "h01", "h00", "h11", "h210", "b0"] if lanes == 2 else ["b4", "b01", "b00", "b33", "b012", "b3211", "b43210", "h0"]
    for mask in wrong:
        page.bad("P0213", f"{ids} vid.simd{lanes}.mask", f"{name} %{d}_0.{mask}, %{a}_1, %{b}_2, %{d}_3;")
    for sel in (["h4", "h40", "h04", "h0", "h210", "b10"] if lanes == 2 else ["b8", "b3218", "b321", "b76543", "h10", "b0"]):
        page.bad("P0213", f"{ids} vid.simd{lanes}.sel", f"{name} %{d}_0, %{a}_1.{sel}, %{b}_2, %{d}_3;", f"{name} %{d}_0, %{a}_1, %{b}_2.{sel}, %{d}_3;")
    page.bad("P0204", ids, f"{name} %{d}_0, %{a}_1, %{b}_2, %{d}_3.{default};", f"{name} %{d}_0, -%{a}_1, %{b}_2, %{d}_3;", f"{name} 7, %{a}_1, %{b}_2, %{d}_3;", f"{name} %{d}_0, [gword], %{b}_2, %{d}_3;",
             f"{name} %{d}_0, %{a}_1, -%{b}_2, %{d}_3;", f"{name} %{d}_0, %{a}_1, %{b}_2, -%{d}_3;")
    page.bad("P0202", ids, f"{name}.min %{d}_0, %{a}_1, %{b}_2, %{d}_3;", f"{name}.max %{d}_0, %{a}_1, %{b}_2, %{d}_3;", f"{name}.clamp %{d}_0, %{a}_1, %{b}_2, %{d}_3;", f"{name}.sat.add %{d}_0, %{a}_1, %{b}_2, %{d}_3;",
             f"{name}.add.sat %{d}_0, %{a}_1, %{b}_2, %{d}_3;")
    if compares:
        page.bad("P0202", ids, f"{name}.sat %{d}_0, %{a}_1, %{b}_2, %{d}_3;", f"{op}.u32.{a}.{b}.eq %{d}_0, %{a}_1, %{b}_2, %{d}_3;", f"{op}.{a}.{b} %{d}_0, %{a}_1, %{b}_2, %{d}_3;")
        page.bad("P0202", ids, *[f"{op}.{a}.{b}.{cmp} %{d}_0, %{a}_1, %{b}_2, %{d}_3;" for cmp in ("lo", "ls", "hi", "hs", "equ", "nan")])
    else:
        page.bad("P0202", ids, f"{op}.u32.u32 %{d}_0, %{a}_1, %{b}_2, %{d}_3;", f"{op}.sat.u32.u32.u32 %{d}_0, %{a}_1, %{b}_2, %{d}_3;")
    rows = [(".add", ids + ".add")] + ([] if compares else [(".sat", ids + ".sat")])
    for modifier, row in rows:
        form = name + modifier
        page.bad("P0203", row, f"{form} %{d}_0, %{a}_1, %{b}_2;", f"{form} %{d}_0, %{a}_1, %{b}_2, %{d}_3, %{d}_4;")
        page.bad("P0202", row, *[f"{form}.{other} %{d}_0, %{a}_1, %{b}_2, %{d}_3;" for other in ("sat", "add", "min", "max")])
        for mask in wrong:
            page.bad("P0213", f"{row} vid.simd{lanes}.mask", f"{form} %{d}_0.{mask}, %{a}_1, %{b}_2, %{d}_3;")
        page.bad("P0213", f"{row} vid.simd{lanes}.sel", f"{form} %{d}_0, %{a}_1.{wrong[0]}, %{b}_2, %{d}_3;", f"{form} %{d}_0, %{a}_1, %{b}_2.{wrong[-1]}, %{d}_3;")
        page.bad("P0204", row, f"{form} %{d}_0, %{a}_1, %{b}_2, %{d}_3.{default};")
    for ty in ("u16", "b32", "s64", "f32"):
        page.bad("P0202", ids, f"{op}.{'.'.join([ty] + list(types[0])[1:])}{tail} %b32_0, %b32_1, %b32_2, %b32_3;")
    for reg in ("b64", "u16", "f32", "pred"):
        page.bad("P0205", ids, f"{name} %{reg}_0, %{a}_1, %{b}_2, %{d}_3;", f"{name} %{d}_0, %{reg}_1, %{b}_2, %{d}_3;", f"{name} %{d}_0, %{a}_1, %{reg}_2, %{d}_3;", f"{name} %{d}_0, %{a}_1, %{b}_2, %{reg}_3;")
    page.ok(ids, f"{name} %b32_0, %b32_1, %b32_2, %b32_3;", f"{name} %s32_0, %u32_1, %s32_2, %u32_3;")


def gates(page, ops, names, first, target, older_version, older_target):
    """Version and target of a group."""
    for version, sm, code in ((first, target, None), (older_version, target, "P0501"), (first, older_target, "P0502")):
        if (version, sm) == ("2.3", "sm_30") or (version, sm) == ("1.4", "sm_20"):
            sm = older_target
        page.begin(f"{names} for {version} and {sm}", version=version, target=sm, wide=False)
        for ids, line in ops:
            page.bad(code, ids, line) if code else page.ok(ids, line)


def pages():
    page = Page("F24_video", "Scalar video instructions, PTX ISA 9.7.15.")
    scalars(page)
    vmad(page)
    lines = [(f"vid.{op}", f"{op}.s32.u32.s32.sat %s32_0, %u32_1.b0, %s32_2.h1;") for op in ("vadd", "vsub", "vabsdiff", "vmin", "vmax")]
    lines += [(f"vid.{op}", f"{op}.s32.u32.u32.clamp %s32_0, %u32_1.b0, %u32_2.h1;") for op in ("vshl", "vshr")]
    lines += [("vid.vmad", "vmad.s32.u32.s32 %s32_0, %u32_1, %s32_2, %s32_3;"), ("vid.vset", "vset.s32.u32.lt %u32_0, %s32_1, %u32_2;")]
    gates(page, lines, "scalar video instructions", "2.0", "sm_20", "1.4", "sm_13")
    yield page
    page = Page("F25_video", "SIMD video instructions, PTX ISA 9.7.16.")
    names = [(base + str(lanes), lanes) for lanes in (2, 4) for base in ("vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax", "vset")]
    for op, lanes in names:
        simd(page, op, lanes)
    page.begin("names that are misprints", version="3.0", target="sm_30", wide=False)
    page.bad("P0201", "", "vavg2.u32.u32.u32 %u32_0, %u32_1, %u32_2, %u32_3;", "varvg2.u32.u32.u32 %u32_0, %u32_1, %u32_2, %u32_3;")
    page.bad("P0201", "", "vavg4.u32.u32.u32 %u32_0, %u32_1, %u32_2, %u32_3;", "varvg4.u32.u32.u32 %u32_0, %u32_1, %u32_2, %u32_3;")
    page.bad("P0201", "", "vshl2.u32.u32.u32.wrap %u32_0, %u32_1, %u32_2, %u32_3;", "vmad4.u32.u32.u32 %u32_0, %u32_1, %u32_2, %u32_3;", "vadd8.u32.u32.u32 %u32_0, %u32_1, %u32_2, %u32_3;")
    lines = [(f"vid.{op}", f"{op}.u32.u32.lt %u32_0, %u32_1, %u32_2, %u32_3;" if op.startswith("vset") else f"{op}.u32.u32.u32 %u32_0, %u32_1, %u32_2, %u32_3;") for op, _ in names]
    gates(page, lines, "SIMD video instructions", "3.0", "sm_30", "2.3", "sm_20")
    yield page
