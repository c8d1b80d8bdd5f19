"""Comparison and selection: 9.3.1, 9.3.2, 9.7.5, and 9.7.6 for half precision."""

from integer import counts, regs
from page import ANY, REGISTERS, Page, agrees, kind, r

ORDERED = ["eq", "ne", "lt", "le", "gt", "ge"]
NAMED = ["lo", "ls", "hi", "hs"]
UNORDERED = ["equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]
BOOL = ["and", "or", "xor"]


def row(cmp, ty):
    """The inventory row of a comparison on a type, or None where it does not exist; with the row that says so."""
    k = kind(ty)
    if k == "f":
        good = cmp in ORDERED + UNORDERED
    elif k == "b":
        good = cmp in ("eq", "ne")
    elif k == "u":
        good = cmp in ORDERED + NAMED
    else:
        good = cmp in ORDERED
    if cmp in UNORDERED:
        name = "cmp.fp_nan" if cmp in ("num", "nan") else "cmp.fp_unordered"
    elif cmp in NAMED:
        name = "cmp.int_unsigned"
    else:
        name = {"f": "cmp.fp_ordered", "b": "cmp.bits", "u": "cmp.int_unsigned", "s": "cmp.int_signed"}[k]
    return good, name


def put(page, good, ids, line):
    """A comparison that exists, or does not."""
    page.ok(ids, line) if good else page.bad("P0213", ids, line)


def single(page):
    page.begin("setp")
    for ty in ANY:
        a, b = r(ty, 1), r(ty, 2)
        for cmp in ORDERED + NAMED + UNORDERED:
            good, name = row(cmp, ty)
            put(page, good, f"ins.setp {name}", f"setp.{cmp}.{ty} %pred_0, {a}, {b};")
            if not good:
                continue
            page.ok("ins.setp", f"setp.{cmp}.{ty} %pred_0|%pred_1, {a}, {b};")
            for op in BOOL:
                page.ok("ins.setp.bool", f"setp.{cmp}.{op}.{ty} %pred_0, {a}, {b}, %pred_2;", f"setp.{cmp}.{op}.{ty} %pred_0|%pred_1, {a}, {b}, !%pred_2;")
            if ty == "f32":
                page.ok("ins.setp", f"setp.{cmp}.ftz.{ty} %pred_0|%pred_1, {a}, {b};")
                for op in BOOL:
                    page.ok("ins.setp.bool", f"setp.{cmp}.{op}.ftz.{ty} %pred_0|%pred_1, {a}, {b}, %pred_2;", f"setp.{cmp}.{op}.ftz.{ty} %pred_0, {a}, {b}, !%pred_2;")
        if ty != "f32":
            page.bad("P0213", "ins.setp", f"setp.eq.ftz.{ty} %pred_0, {a}, {b};")
            page.bad("P0213", "ins.setp.bool", f"setp.ne.and.ftz.{ty} %pred_0, {a}, {b}, %pred_1;")
    page.begin("set")
    for dtype in ("u32", "s32", "f32"):
        for ty in ANY:
            a, b = r(ty, 1), r(ty, 2)
            for cmp in ORDERED + NAMED + UNORDERED:
                good, name = row(cmp, ty)
                put(page, good, f"ins.set {name}", f"set.{cmp}.{dtype}.{ty} {r(dtype)}, {a}, {b};")
                if not good:
                    continue
                for op in BOOL:
                    page.ok("ins.set.bool", f"set.{cmp}.{op}.{dtype}.{ty} {r(dtype)}, {a}, {b}, {'!' if op == 'or' else ''}%pred_2;")
                if ty == "f32":
                    page.ok("ins.set", f"set.{cmp}.ftz.{dtype}.{ty} {r(dtype)}, {a}, {b};")
                    for op in BOOL:
                        page.ok("ins.set.bool", f"set.{cmp}.{op}.ftz.{dtype}.{ty} {r(dtype)}, {a}, {b}, {'!' if op == 'and' else ''}%pred_2;")
            if ty != "f32":
                page.bad("P0213", "ins.set", f"set.eq.ftz.{dtype}.{ty} {r(dtype)}, {a}, {b};")
                page.bad("P0213", "ins.set.bool", f"set.eq.or.ftz.{dtype}.{ty} {r(dtype)}, {a}, {b}, %pred_0;")


def wrong(page):
    page.begin("comparisons that do not exist")
    halves = ["f16", "f16x2"]
    page.types("P0202", "ins.setp", ANY + halves, lambda ty: f"setp.eq.{ty} %pred_0, {r(ty, 1)}, {r(ty, 2)};")
    page.types("P0202", "ins.set", ANY + ["f16", "f16x2"], lambda ty: f"set.eq.u32.{ty} %u32_0, {r(ty, 1)}, {r(ty, 2)};")
    page.types("P0202", "ins.set", ["u32", "s32", "f32", "f16", "f16x2"], lambda ty: f"set.eq.{ty}.u32 {r(ty)}, %u32_1, %u32_2;")
    page.bad("P0501", "ins.set", "set.eq.u32.f16 %u32_0, %f16_1, %f16_2;", "set.eq.u32.f16x2 %u32_0, %f16x2_1, %f16x2_2;")
    page.bad("P0202", "ins.set", "set.eq.f16x2.f16 %f16x2_0, %f16_1, %f16_2;",
             "set.eq.f16x2.u32 %f16x2_0, %u32_1, %u32_2;", "set.eq.f16.f16x2 %f16_0, %f16x2_1, %f16x2_2;", "set.u32.u32 %u32_0, %u32_1, %u32_2;", "set.eq.u32 %u32_0, %u32_1, %u32_2;",
             "set.eq.ne.u32.u32 %u32_0, %u32_1, %u32_2;", "set.eq.sat.u32.f32 %u32_0, %f32_1, %f32_2;")
    page.bad("P0202", "ins.set.bool", "set.eq.not.u32.u32 %u32_0, %u32_1, %u32_2, %pred_0;")
    page.order("ins.set.bool", "set.and.eq.u32.u32 %u32_0, %u32_1, %u32_2, %pred_0;", "set.ftz.eq.and.u32.f32 %u32_0, %f32_1, %f32_2, %pred_0;")
    page.bad("P0202", "ins.setp", "setp.u32 %pred_0, %u32_1, %u32_2;", "setp.eq %pred_0, %u32_1, %u32_2;", "setp.eqv.u32 %pred_0, %u32_1, %u32_2;", "setp.lt.sat.f32 %pred_0, %f32_1, %f32_2;", "setp.eq.u32.u32 %pred_0, %u32_1, %u32_2;")
    page.bad("P0202", "ins.setp.bool", "setp.eq.andc.u32 %pred_0, %u32_1, %u32_2, %pred_1;")
    page.order("ins.setp", "setp.u32.eq %pred_0, %u32_1, %u32_2;", "setp.ftz.lt.f32 %pred_0, %f32_1, %f32_2;")
    page.order("ins.setp.bool", "setp.and.eq.u32 %pred_0, %u32_1, %u32_2, %pred_1;", "setp.lt.ftz.and.f32 %pred_0, %f32_1, %f32_2, %pred_1;")
    page.bad("P0205", "ins.setp", "setp.eq.u32 %u32_0, %u32_1, %u32_2;", "setp.eq.u32 %pred_0|%u32_0, %u32_1, %u32_2;", "setp.eq.u32 %pred_0, %u64_1, %u32_2;", "setp.eq.u32 %pred_0, %u32_1, %f32_2;",
             "setp.eq.f32 %pred_0, %f32_1, %u32_2;", "setp.eq.b64 %pred_0, %b64_1, %b32_2;", "setp.eq.f64 %pred_0, %f64_1, %f32_2;", "setp.eq.u32 %pred_0, %pred_1, %u32_2;")
    page.bad("P0205", "ins.setp.bool", "setp.eq.and.u32 %pred_0, %u32_1, %u32_2, %u32_3;")
    page.bad("P0205", "ins.set", "set.eq.u32.u64 %u64_0, %u64_1, %u64_2;", "set.eq.f32.u32 %u32_0, %u32_1, %u32_2;", "set.eq.u32.u32 %pred_0, %u32_1, %u32_2;", "set.eq.s32.f64 %s32_0, %f32_1, %f64_2;")
    page.bad("P0205", "ins.set.bool", "set.eq.and.u32.u32 %u32_0, %u32_1, %u32_2, %u32_3;")
    page.bad("P0203", "ins.setp", "setp.eq.u32 %pred_0, %u32_1;", "setp.eq.u32 %pred_0, %u32_1, %u32_2, %pred_1;")
    page.bad("P0203", "ins.setp.bool", "setp.eq.and.u32 %pred_0, %u32_1, %u32_2;")
    page.bad("P0203", "ins.set", "set.eq.u32.u32 %u32_0, %u32_1;", "set.eq.u32.u32 %u32_0, %u32_1, %u32_2, %pred_0;")
    page.bad("P0203", "ins.set.bool", "set.eq.and.u32.u32 %u32_0, %u32_1, %u32_2;")
    page.bad("P0204", "ins.setp", "setp.eq.u32 !%pred_0, %u32_1, %u32_2;", "setp.eq.u32 %pred_0, [gword], %u32_2;", "setp.eq.u32 {%pred_0, %pred_1}, %u32_1, %u32_2;", "setp.eq.u32 1, %u32_1, %u32_2;")
    page.bad("P0204", "ins.set", "set.eq.u32.u32 %u32_0|%pred_0, %u32_1, %u32_2;")
    page.ok("ins.setp", "setp.eq.u32 %pred_0, %u32_1, 7;", "setp.lt.s32 %pred_0, -1, %s32_1;", "setp.eq.f32 %pred_0, %f32_1, 0f00000000;", "setp.eq.b64 %pred_0, %f64_1, %f64_2;",
            "setp.eq.u32 %pred_0|_, %u32_1, %u32_2;", "setp.eq.u32 _|%pred_0, %u32_1, %u32_2;")
    page.warn("P0903", "ins.setp", "setp.eq.f32 %pred_0, %f32_1, 0;")
    page.begin("single predicates: logic", target="sm_70")
    for op in ("and", "or", "xor"):
        page.ok("pred.manip", f"{op}.pred %pred_0, %pred_1, %pred_2;", f"{op}.pred %pred_0, %pred_1, 1;")
    page.ok("pred.manip", "not.pred %pred_0, %pred_1;", "mov.pred %pred_0, %pred_1;", "selp.u32 %u32_0, 1, 0, %pred_0;", "setp.ne.u32 %pred_0, %u32_0, 0;", "mov.pred %pred_0, 1;", "mov.pred %pred_0, 0;")
    page.bad("P0202", "pred.manip", "cvt.u32.pred %u32_0, %pred_0;", "cvt.pred.u32 %pred_0, %u32_0;", "ld.global.pred %pred_0, [gvar];", "st.global.pred [gvar], %pred_0;", "add.pred %pred_0, %pred_1, %pred_2;",
             "shl.pred %pred_0, %pred_1, 1;", "setp.eq.pred %pred_0, %pred_1, %pred_2;", "selp.pred %pred_0, %pred_1, %pred_2, %pred_3;", "cnot.pred %pred_0, %pred_1;", "ldu.global.pred %pred_0, [gvar];")
    page.bad("P0205", "pred.manip", "mov.u32 %u32_0, %pred_0;", "mov.pred %pred_0, %u32_0;", "ld.global.u32 %pred_0, [gvar];", "st.global.u32 [gvar], %pred_0;", "and.pred %pred_0, %b32_0, %pred_1;",
             "and.b32 %b32_0, %pred_0, %b32_1;", "st.global.u8 [gvar], %pred_0;", "cvt.u32.u32 %u32_0, %pred_1;")


def selection(page):
    page.begin("selection")
    for ty in ANY:
        page.ok("ins.selp", f"selp.{ty} {regs(ty, 3)}, %pred_0;", f"selp.{ty} {r(ty)}, {'1.0, 2.0' if kind(ty) == 'f' else '1, -1'}, %pred_0;")
        page.ok("ins.slct.s32", f"slct.{ty}.s32 {regs(ty, 3)}, %s32_3;", f"slct.{ty}.s32 {regs(ty, 3)}, %b32_3;")
        page.ok("ins.slct.f32", f"slct.{ty}.f32 {regs(ty, 3)}, %f32_3;", f"slct.ftz.{ty}.f32 {regs(ty, 3)}, %f32_3;")
    page.types("P0202", "ins.selp", ANY, lambda ty: f"selp.{ty} {regs(ty, 3)}, %pred_3;")
    page.types("P0202", "ins.slct.s32", ANY, lambda ty: f"slct.{ty}.s32 {regs(ty, 3)}, %s32_3;")
    page.types("P0202", "ins.slct.f32", ANY, lambda ty: f"slct.{ty}.f32 {regs(ty, 3)}, %f32_3;")
    page.types("P0202", "ins.slct.s32 ins.slct.f32", ["s32", "f32"], lambda ty: f"slct.u32.{ty} {regs('u32', 3)}, {r(ty, 3)};")
    page.bad("P0202", "ins.slct.s32", "slct.ftz.u32.s32 %u32_0, %u32_1, %u32_2, %s32_3;", "slct.u32 %u32_0, %u32_1, %u32_2, %s32_3;")
    page.bad("P0202", "ins.selp", "selp.ftz.f32 %f32_0, %f32_1, %f32_2, %pred_0;", "selp.eq.u32 %u32_0, %u32_1, %u32_2, %pred_0;")
    page.bad("P0204", "ins.selp", "selp.u32 %u32_0, %u32_1, %u32_2, !%pred_0;", "selp.u32 %u32_0, [gword], %u32_2, %pred_0;")
    page.bad("P0205", "ins.selp", "selp.u32 %u32_0, %u32_1, %u32_2, %u32_3;", "selp.u32 %u64_0, %u32_1, %u32_2, %pred_0;", "selp.u32 %u32_0, %f32_1, %u32_2, %pred_0;", "selp.f32 %f32_0, %u32_1, %f32_2, %pred_0;",
             "selp.u32 %u32_0, 1.5, %u32_2, %pred_0;")
    page.bad("P0205", "ins.slct.s32", "slct.u32.s32 %u32_0, %u32_1, %u32_2, %f32_3;", "slct.u32.s32 %u32_0, %u32_1, %u32_2, %pred_3;", "slct.u64.s32 %u64_0, %u64_1, %u64_2, %s64_3;", "slct.f32.s32 %u32_0, %f32_1, %f32_2, %s32_3;")
    page.bad("P0205", "ins.slct.f32", "slct.u32.f32 %u32_0, %u32_1, %u32_2, %u32_3;", "slct.u32.f32 %u32_0, %u32_1, %u32_2, %f64_3;", "slct.f64.f32 %f32_0, %f64_1, %f64_2, %f32_3;")
    counts(page, "ins.selp", "selp.u32", ["%u32_0", "%u32_1", "%u32_2", "%pred_0"])
    counts(page, "ins.slct.s32", "slct.u32.s32", ["%u32_0", "%u32_1", "%u32_2", "%s32_0"])
    counts(page, "ins.slct.f32", "slct.u32.f32", ["%u32_0", "%u32_1", "%u32_2", "%f32_0"])


def half(page):
    page.begin("half precision")
    cmps = ORDERED + UNORDERED
    for cmp in cmps:
        for op in [""] + ["." + op for op in BOOL]:
            for ftz in ("", ".ftz"):
                c = ", %pred_2" if op else ""
                page.ok("ins.setp.f16", f"setp.{cmp}{op}{ftz}.f16 %pred_0, %f16_0, %b16_1{c};")
                page.ok("ins.setp.f16x2", f"setp.{cmp}{op}{ftz}.f16x2 %pred_0|%pred_1, %f16x2_0, %b32_1{c};")
                page.ok("ins.set.f16", f"set.{cmp}{op}{ftz}.f16.f16 %f16_2, %f16_0, %b16_1{c};", f"set.{cmp}{op}{ftz}.f16.f32 %b16_2, %f32_0, %f32_1{c};")
                page.ok("ins.set.f16x2", f"set.{cmp}{op}{ftz}.f16x2.f16x2 %f16x2_2, %f16x2_0, %b32_1{c};")
                if op:
                    neg = ", !%pred_2"
                    page.ok("ins.setp.f16", f"setp.{cmp}{op}{ftz}.f16 %pred_0, %f16_0, %b16_1{neg};")
                    page.ok("ins.set.f16x2", f"set.{cmp}{op}{ftz}.f16x2.f16x2 %f16x2_2, %f16x2_0, %b32_1{neg};")
    for ty in ANY + ["f16"]:
        for cmp in cmps + NAMED:
            good, name = row(cmp, ty)
            for op in [""] + ["." + op for op in BOOL]:
                c = ", !%pred_2" if op else ""
                line = f"set.{cmp}{op}.f16.{ty} %f16_2, {r(ty)}, {r(ty, 1)}{c};"
                if cmp in NAMED:
                    page.bad("P0202", "ins.set.f16", line) if not op else None
                elif good or not op:
                    put(page, good, f"ins.set.f16 {name}", line)
        if ty not in ("f16", "f32"):
            page.bad("P0213", "ins.set.f16", f"set.eq.ftz.f16.{ty} %f16_2, {r(ty)}, {r(ty, 1)};")
    for cmp in NAMED:
        page.bad("P0202", "ins.setp.f16", f"setp.{cmp}.f16 %pred_0, %f16_0, %f16_1;")
        page.bad("P0202", "ins.setp.f16x2", f"setp.{cmp}.f16x2 %pred_0|%pred_1, %f16x2_0, %f16x2_1;")
        page.bad("P0202", "ins.set.f16x2", f"set.{cmp}.f16x2.f16x2 %f16x2_2, %f16x2_0, %f16x2_1;")
    page.bad("P0204", "ins.setp.f16", "setp.eq.f16 %pred_0|%pred_1, %f16_0, %f16_1;", "setp.eq.and.f16 %pred_0|%pred_1, %f16_0, %f16_1, %pred_2;", "setp.eq.f16 %pred_0, %f16_0, 1.0;")
    page.bad("P0204", "ins.setp.f16x2", "setp.eq.f16x2 %pred_0, %f16x2_0, %f16x2_1;", "setp.lt.or.f16x2 %pred_0, %f16x2_0, %f16x2_1, %pred_2;", "setp.eq.f16x2 %pred_0|%pred_1, %f16x2_0, 1;")
    page.bad("P0205", "ins.setp.f16", "setp.eq.f16 %b16_0, %f16_0, %f16_1;", "setp.eq.f16 %pred_0, %u16_0, %f16_1;", "setp.eq.f16 %pred_0, %f16x2_0, %f16_1;", "setp.eq.and.f16 %pred_0, %f16_0, %f16_1, %b16_2;")
    page.bad("P0205", "ins.setp.f16x2", "setp.eq.f16x2 %pred_0|%pred_1, %f32_0, %f16x2_1;", "setp.eq.f16x2 %pred_0|%pred_1, %u32_0, %f16x2_1;", "setp.eq.f16x2 %pred_0|%b32_1, %f16x2_0, %f16x2_1;")
    page.bad("P0205", "ins.set.f16", "set.eq.f16.f16 %u16_0, %f16_0, %f16_1;", "set.eq.f16.u32 %b32_0, %u32_0, %u32_1;", "set.eq.f16.f16 %f16_0, %f32_0, %f16_1;")
    page.bad("P0205", "ins.set.f16x2", "set.eq.f16x2.f16x2 %u32_0, %f16x2_0, %f16x2_1;", "set.eq.f16x2.f16x2 %f16x2_0, %b16_0, %f16x2_1;")
    page.bad("P0203", "ins.set.f16", "set.eq.f16.f16 %f16_0, %f16_1;", "set.eq.and.f16.f16 %f16_0, %f16_1, %f16_2;")
    page.bad("P0203", "ins.set.f16x2", "set.eq.f16x2.f16x2 %f16x2_0, %f16x2_1;", "set.eq.f16x2.f16x2 %f16x2_0, %f16x2_1, %f16x2_2, %pred_0;")
    page.bad("P0203", "ins.setp.f16", "setp.eq.f16 %pred_0, %f16_1;", "setp.eq.and.f16 %pred_0, %f16_1, %f16_2;")
    page.bad("P0203", "ins.setp.f16x2", "setp.eq.f16x2 %pred_0|%pred_1, %f16x2_1;")
    lines = [("ins.set.f16", "set.eq.f16.f32 %b16_0, %f32_1, %f32_2;"), ("ins.set.f16x2", "set.eq.f16x2.f16x2 %b32_0, %b32_1, %b32_2;"), ("ins.setp.f16", "setp.eq.f16 %pred_0, %b16_1, %b16_2;"),
             ("ins.setp.f16x2", "setp.eq.f16x2 %pred_0|%pred_1, %b32_1, %b32_2;")]
    for version, target, code in (("4.2", "sm_53", None), ("4.1", "sm_50", "P0501"), ("4.2", "sm_52", "P0502")):
        page.begin(f"half precision for {version} and {target}", version=version, target=target)
        for ids, line in lines:
            page.bad(code, ids, line) if code else page.ok(ids, line)


def gates(page):
    page.begin("the first version", version="1.0", target="sm_10", wide=False)
    for ty in [ty for ty in ANY if ty != "f64"]:
        page.ok("ins.setp", f"setp.eq.{ty} %pred_0|%pred_1, {r(ty, 1)}, {r(ty, 2)};")
        page.ok("ins.set", f"set.eq.u32.{ty} %u32_0, {r(ty, 1)}, {r(ty, 2)};")
        page.ok("ins.selp", f"selp.{ty} {regs(ty, 3)}, %pred_0;")
        page.ok("ins.slct.s32", f"slct.{ty}.s32 {regs(ty, 3)}, %s32_3;")
    page.bad("P0502", "ins.setp", "setp.eq.f64 %pred_0, %f64_1, %f64_2;")
    page.bad("P0502", "ins.setp.bool", "setp.eq.and.f64 %pred_0, %f64_1, %f64_2, %pred_1;")
    page.bad("P0502", "ins.set", "set.eq.u32.f64 %u32_0, %f64_1, %f64_2;")
    page.bad("P0502", "ins.set.bool", "set.eq.or.u32.f64 %u32_0, %f64_1, %f64_2, %pred_0;")
    page.bad("P0502", "ins.selp", "selp.f64 %f64_0, %f64_1, %f64_2, %pred_0;")
    page.bad("P0502", "ins.slct.s32", "slct.f64.s32 %f64_0, %f64_1, %f64_2, %s32_0;")
    page.bad("P0502", "ins.slct.f32", "slct.f64.f32 %f64_0, %f64_1, %f64_2, %f32_0;")
    page.bad("P0501", "ins.setp", "setp.eq.ftz.f32 %pred_0, %f32_1, %f32_2;")
    page.begin("doubles on sm_13", version="1.4", target="sm_13", wide=False)
    page.ok("ins.setp", "setp.eq.f64 %pred_0, %f64_1, %f64_2;", "setp.eq.ftz.f32 %pred_0, %f32_1, %f32_2;")
    page.ok("ins.set", "set.eq.u32.f64 %u32_0, %f64_1, %f64_2;")
    page.ok("ins.selp", "selp.f64 %f64_0, %f64_1, %f64_2, %pred_0;")
    page.ok("ins.slct.f32", "slct.f64.f32 %f64_0, %f64_1, %f64_2, %f32_0;")


def pages():
    page = Page("F11_compare", "Comparison operators and predicates, PTX ISA 9.3, with set and setp, 9.7.5.")
    for part in (single, wrong):
        part(page)
    yield page
    page = Page("F16_select", "Selection, 9.7.5, and half-precision comparison, 9.7.6.")
    for part in (selection, half, gates):
        part(page)
    yield page
