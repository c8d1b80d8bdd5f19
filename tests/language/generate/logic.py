"""Logic and shift (9.7.7)."""

from integer import counts, regs
from page import REGISTERS, Page, agrees, r

BITS = ["pred", "b16", "b32", "b64"]


def pages():
    page = Page("F17_logic", "Logic and shift, PTX ISA 9.7.7.")
    page.begin("logic")
    for op in ("and", "or", "xor"):
        for ty in BITS:
            page.ok(f"ins.{op}", f"{op}.{ty} {regs(ty, 3)};", f"{op}.{ty} {r(ty)}, {r(ty, 1)}, 1;")
        page.types("P0202", f"ins.{op}", BITS, lambda ty: f"{op}.{ty} {regs(ty, 3)};")
        counts(page, f"ins.{op}", f"{op}.b32", ["%b32_0", "%b32_1", "%b32_2"])
        page.bad("P0202", f"ins.{op}", f"{op} %b32_0, %b32_1, %b32_2;", f"{op}.sat.b32 %b32_0, %b32_1, %b32_2;")
        page.bad("P0205", f"ins.{op}", f"{op}.b32 %b32_0, %b32_1, 1.5;", f"{op}.b64 %b64_0, %b64_1, %b32_2;")
    page.ok("ins.and", "and.b32 %f32_0, %f32_1, 0x7fffffff;", "and.b64 %f64_0, %s64_1, %u64_2;", "and.b32 %f16x2_0, %u32_1, %s32_2;")
    for op in ("not", "cnot"):
        good = BITS if op == "not" else BITS[1:]
        for ty in good:
            page.ok(f"ins.{op}", f"{op}.{ty} {regs(ty, 2)};")
        page.types("P0202", f"ins.{op}", good, lambda ty: f"{op}.{ty} {regs(ty, 2)};")
        counts(page, f"ins.{op}", f"{op}.b32", ["%b32_0", "%b32_1"])
        page.bad("P0205", f"ins.{op}", f"{op}.b32 %b64_0, %b32_1;", f"{op}.b32 %b32_0, %pred_1;", f"{op}.b64 %b64_0, %b32_1;")
    page.begin("three operands")
    page.ok("ins.lop3", *[f"lop3.b32 %b32_0, %b32_1, %b32_2, %b32_3, {lut};" for lut in (0, 1, 0x80, 128, 255, "0xF0 & 0xCC", "0x1A", "(0xF0 & 0xCC | 0xAA) ^ 0xF0")])
    page.ok("ins.lop3", "lop3.b32 %u32_0, %s32_1, %f32_2, 7, 0xE8;")
    page.bad("P0210", "ins.lop3", *[f"lop3.b32 %b32_0, %b32_1, %b32_2, %b32_3, {lut};" for lut in (256, -1, "0x100", 4294967295)])
    page.bad("P0204", "ins.lop3", "lop3.b32 %b32_0, %b32_1, %b32_2, %b32_3, %b32_4;")
    page.bad("P0204", "ins.lop3", "lop3.b32 %b32_0, %b32_1, %b32_2, %b32_3, 1.0;")
    page.types("P0202", "ins.lop3", ["b32"], lambda ty: f"lop3.{ty} {regs(ty, 4)}, 1;")
    counts(page, "ins.lop3", "lop3.b32", ["%b32_0", "%b32_1", "%b32_2", "%b32_3", "1"])
    page.bad("P0205", "ins.lop3", "lop3.b32 %b64_0, %b32_1, %b32_2, %b32_3, 1;", "lop3.b32 %b32_0, %pred_1, %b32_2, %b32_3, 1;")
    page.begin("shifts")
    for d in ("l", "r"):
        for mode in ("clamp", "wrap"):
            page.ok(f"ins.shf.{d}", f"shf.{d}.{mode}.b32 %b32_0, %b32_1, %b32_2, %u32_3;", f"shf.{d}.{mode}.b32 %u32_0, %s32_1, %f32_2, 33;", f"shf.{d}.{mode}.b32 %b32_0, %b32_1, %b32_2, %b32_3;")
            page.types("P0202", f"ins.shf.{d}", ["b32"], lambda ty: f"shf.{d}.{mode}.{ty} {regs(ty, 3)}, %u32_3;")
        page.bad("P0202", f"ins.shf.{d}", f"shf.{d}.b32 %b32_0, %b32_1, %b32_2, %u32_3;", f"shf.{d}.sat.b32 %b32_0, %b32_1, %b32_2, %u32_3;")
        page.order(f"ins.shf.{d}", f"shf.wrap.{d}.b32 %b32_0, %b32_1, %b32_2, %u32_3;")
        page.bad("P0205", f"ins.shf.{d}", f"shf.{d}.wrap.b32 %b32_0, %b32_1, %b32_2, %u64_3;", f"shf.{d}.wrap.b32 %b32_0, %b32_1, %b32_2, %f32_3;", f"shf.{d}.wrap.b32 %b64_0, %b32_1, %b32_2, %u32_3;",
                 f"shf.{d}.clamp.b32 %b32_0, %b32_1, %b32_2, %u16_3;")
        counts(page, f"ins.shf.{d}", f"shf.{d}.wrap.b32", ["%b32_0", "%b32_1", "%b32_2", "%u32_3"])
    page.bad("P0202", "ins.shf.l", "shf.wrap.b32 %b32_0, %b32_1, %b32_2, %u32_3;")
    shr = ["b16", "b32", "b64", "u16", "u32", "u64", "s16", "s32", "s64"]
    for op, good in (("shl", shr[:3]), ("shr", shr)):
        for ty in good:
            page.ok(f"ins.{op}", f"{op}.{ty} {regs(ty, 2)}, %u32_2;", f"{op}.{ty} {regs(ty, 2)}, 5;", f"{op}.{ty} {regs(ty, 2)}, %s32_2;", f"{op}.{ty} {regs(ty, 2)}, %b32_2;", f"{op}.{ty} {r(ty)}, 1, %u32_2;",
                    f"{op}.{ty} {regs(ty, 2)}, 64;")
            for reg in ("u16", "u64", "b64", "f32", "pred", "u8"):
                page.bad("P0205", f"ins.{op}", f"{op}.{ty} {regs(ty, 2)}, {r(reg, 3)};")
            page.bad("P0205", f"ins.{op}", f"{op}.{ty} {regs(ty, 2)}, 1.0;")
        page.types("P0202", f"ins.{op}", good, lambda ty: f"{op}.{ty} {regs(ty, 2)}, %u32_2;")
        counts(page, f"ins.{op}", f"{op}.b32", ["%b32_0", "%b32_1", "%u32_2"])
        page.bad("P0202", f"ins.{op}", f"{op}.wrap.b32 %b32_0, %b32_1, %u32_2;", f"{op} %b32_0, %b32_1, %u32_2;")
    page.begin("registers that agree with bits")
    for ty in BITS:
        for reg in ["pred"] + REGISTERS:
            for line in (f"and.{ty} {r(reg, 3)}, {r(ty, 1)}, {r(ty, 2)};", f"and.{ty} {r(ty)}, {r(reg, 3)}, {r(ty, 2)};"):
                page.ok("ins.and", line) if agrees(ty, reg) else page.bad("P0205", "ins.and", line)
    page.begin("the first version", version="1.0", target="sm_10", wide=False)
    for op in ("and", "or", "xor"):
        page.ok(f"ins.{op}", *[f"{op}.{ty} {regs(ty, 3)};" for ty in BITS])
    page.ok("ins.not", "not.pred %pred_0, %pred_1;")
    page.ok("ins.cnot", "cnot.b32 %b32_0, %b32_1;")
    page.ok("ins.shl", "shl.b64 %b64_0, %b64_1, 3;")
    page.ok("ins.shr", "shr.s16 %s16_0, %s16_1, 3;")
    lop3, shf = "lop3.b32 %b32_0, %b32_1, %b32_2, %b32_3, 1;", "shf.l.wrap.b32 %b32_0, %b32_1, %b32_2, %u32_3;"
    for version, target, ids, line, code in (
            ("4.3", "sm_50", "ins.lop3", lop3, None), ("4.2", "sm_50", "ins.lop3", lop3, "P0501"), ("4.3", "sm_37", "ins.lop3", lop3, "P0502"),
            ("4.0", "sm_32", "ins.shf.l", shf, None), ("3.1", "sm_35", "ins.shf.l", shf, None), ("3.0", "sm_30", "ins.shf.l", shf, "P0501"), ("3.1", "sm_30", "ins.shf.l", shf, "P0502"),
            ("3.1", "sm_30", "ins.shf.r", shf.replace("shf.l", "shf.r"), "P0502"), ("3.1", "sm_35", "ins.shf.r", shf.replace("shf.l", "shf.r"), None)):
        page.begin(f"{line.split()[0]} for {version} and {target}", version=version, target=target)
        page.bad(code, ids, line) if code else page.ok(ids, line)
    yield page
