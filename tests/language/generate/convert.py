"""Conversion (9.7.8.14)."""

from integer import counts
from page import EVERY, REGISTERS, SIGNED, UNSIGNED, Page, fits, kind, r, size

INTS = UNSIGNED + SIGNED
FLOATS = ["f16", "f32", "f64"]
FRND = ["rn", "rz", "rm", "rp"]
IRND = ["rni", "rzi", "rmi", "rpi"]


def holds(d, a):
    """Whether integer type `d` holds every value of `a`."""
    if kind(d) == kind(a):
        return size(d) >= size(a)
    return kind(d) == "s" and size(d) > size(a)


def rule(d, a):
    """The row of a conversion, the roundings of which one must stand, and those of which one may."""
    if d in INTS and a in INTS:
        return "ins.cvt.int_int", [], []
    if a in INTS:
        return "ins.cvt.int_fp", FRND, []
    if d in INTS:
        return "ins.cvt.fp_int", IRND, []
    if size(d) < size(a):
        return "ins.cvt.fp_narrow", FRND, []
    if size(d) > size(a):
        return "ins.cvt.fp_widen", [], []
    return "ins.cvt.fp_same", [], IRND


def one(page, d, a):
    """Every combination of modifiers for one pair of types."""
    ids, must, may = rule(d, a)
    operands = f"{r(d)}, {r(a, 1)};"
    single = "f32" in (d, a)
    possible = d in FLOATS or a in FLOATS or not holds(d, a)
    for rnd in [""] + FRND + IRND:
        exists = rnd in must if must else rnd == "" or rnd in may
        row = "ins.cvt.fp_integral" if rnd and may else ids
        op = "cvt" + ("." + rnd if rnd else "")
        if not exists:
            page.bad("P0202", ids, f"{op}.{d}.{a} {operands}")
            continue
        page.ok(row, f"{op}.{d}.{a} {operands}")
        sat_row = "ins.cvt.sat_fp " if d in FLOATS else "ins.cvt.int_int.sat " if a in INTS else ""
        if possible:
            page.ok(sat_row + row, f"{op}.sat.{d}.{a} {operands}")
        else:
            page.bad("P0213", sat_row + row, f"{op}.sat.{d}.{a} {operands}")
        if single:
            page.ok("ins.cvt.ftz " + row, f"{op}.ftz.{d}.{a} {operands}", f"{op}.ftz.sat.{d}.{a} {operands}")
            page.order("ins.cvt.ftz", f"{op}.sat.ftz.{d}.{a} {operands}")
        else:
            code = "P0202" if ids == "ins.cvt.int_int" else "P0213"
            page.bad(code, "ins.cvt.ftz", f"{op}.ftz.{d}.{a} {operands}")


def pages():
    page = Page("F18_convert", "Conversion, PTX ISA 9.7.8.14, and the relaxed type rules of 9.4.1.")
    for d in INTS + FLOATS:
        page.begin(f"to {d}")
        for a in INTS + FLOATS:
            one(page, d, a)
    page.begin("types and operands that conversion does not have")
    for ty in EVERY:
        if ty not in INTS + FLOATS:
            page.bad("P0202", "ins.cvt.int_int", f"cvt.u32.{ty} %u32_0, {r(ty, 1)};", f"cvt.{ty}.u32 {r(ty)}, %u32_1;")
    page.bad("P0202", "ins.cvt.int_int", "cvt.u32 %u32_0, %u32_1;", "cvt %u32_0, %u32_1;")
    page.bad("P0202", "ins.cvt.fp_narrow", "cvt.approx.f16.f32 %f16_0, %f32_1;", "cvt.rn.rn.f16.f32 %f16_0, %f32_1;")
    counts(page, "ins.cvt.int_int", "cvt.u32.u16", ["%u32_0", "%u16_1"])
    counts(page, "ins.cvt.fp_int", "cvt.rzi.u32.f32", ["%u32_0", "%f32_1"])
    page.bad("P0204", "ins.cvt.int_int", "cvt.u32.u16 1, %u16_1;", "cvt.u32.u16 %u32_0, [gvar];", "cvt.u32.u16 %u32_0, gvar;", "cvt.u32.u16 {%u32_0}, %u16_1;", "cvt.u32.u16 %u32_0, -%u16_1;")
    page.ok("ins.cvt.int_int", "cvt.u32.u16 %u32_0, 7;", "cvt.s64.s32 %s64_0, -1;")
    page.ok("ins.cvt.int_fp", "cvt.rn.f32.s32 %f32_0, -1;")
    page.ok("ins.cvt.fp_int", "cvt.rzi.s32.f32 %s32_0, 1.5;")
    for ty in INTS + FLOATS:
        page.begin(f"registers for {ty}")
        other = "s32" if ty != "s32" else "u64"
        to = "cvt.rni" if ty in FLOATS else "cvt"
        back = "cvt.rn" if ty in FLOATS else "cvt"
        for reg in ["pred"] + REGISTERS:
            lines = (f"{to}.{other}.{ty} {r(other, 1)}, {r(reg, 3)};", f"{back}.{ty}.{other} {r(reg, 3)}, {r(other, 1)};")
            for line in lines:
                page.ok("ins.ld.widen ins.cvt.int_int", line) if fits(ty, reg) else page.bad("P0205", "ins.cvt.int_int ins.ld.widen", line)
    page.begin("the first version", version="1.0", target="sm_10", wide=False)
    page.ok("ins.cvt.int_int", "cvt.u32.u16 %u32_0, %u16_1;", "cvt.sat.u8.s32 %u8_0, %s32_1;")
    page.ok("ins.cvt.int_fp", "cvt.rn.f32.s32 %f32_0, %s32_1;")
    page.ok("ins.cvt.fp_int", "cvt.rzi.s32.f32 %s32_0, %f32_1;")
    page.ok("ins.cvt.fp_narrow ins.cvt.ftz_legacy", "cvt.rn.f16.f32 %b16_0, %f32_1;")
    page.ok("ins.cvt.fp_widen ins.cvt.ftz_legacy", "cvt.f32.f16 %f32_0, %b16_1;")
    page.ok("ins.cvt.fp_same ins.cvt.ftz_legacy", "cvt.f32.f32 %f32_0, %f32_1;")
    page.bad("P0501", "ins.cvt.ftz", "cvt.rn.ftz.f16.f32 %b16_0, %f32_1;", "cvt.ftz.f32.f32 %f32_0, %f32_1;", "cvt.rzi.ftz.s32.f32 %s32_0, %f32_1;")
    double = [("ins.cvt.int_fp", "cvt.rn.f64.s32 %f64_0, %s32_1;"), ("ins.cvt.fp_int", "cvt.rzi.s32.f64 %s32_0, %f64_1;"), ("ins.cvt.fp_narrow", "cvt.rn.f32.f64 %f32_0, %f64_1;"),
              ("ins.cvt.fp_widen", "cvt.f64.f32 %f64_0, %f32_1;"), ("ins.cvt.fp_same", "cvt.f64.f64 %f64_0, %f64_1;"), ("ins.cvt.fp_integral", "cvt.rni.f64.f64 %f64_0, %f64_1;"),
              ("ins.cvt.fp_narrow", "cvt.rn.f16.f64 %b16_0, %f64_1;"), ("ins.cvt.fp_widen", "cvt.f64.f16 %f64_0, %b16_1;")]
    for ids, line in double:
        page.bad("P0502", ids, line)
    for target in ("sm_13", "sm_10, map_f64_to_f32"):
        page.begin(f"doubles on {target}", version="1.4", target=target, wide=False)
        for ids, line in double:
            page.ok(ids, line)
    yield page
