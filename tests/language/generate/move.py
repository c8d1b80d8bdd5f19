"""Moves, exchanges within a warp, byte permutation: 9.7.8.2 to 9.7.8.6."""

from integer import counts, regs
from page import ANY, REGISTERS, Page, agrees, kind, r

PACKS = [("b16", 2, 8), ("b32", 4, 8), ("b32", 2, 16), ("b64", 4, 16), ("b64", 2, 32)]
MODES = ["up", "down", "bfly", "idx"]


def moves(page):
    page.begin("values")
    for ty in ANY + ["pred"]:
        page.ok("ins.mov.reg", f"mov.{ty} {regs(ty, 2)};")
        if ty != "pred":
            page.ok("ins.mov.reg", f"mov.{ty} {r(ty)}, {'1.5' if kind(ty) == 'f' else '-1'};")
    page.types("P0202", "ins.mov.reg", ANY + ["pred"], lambda ty: f"mov.{ty} {regs(ty, 2)};")
    page.bad("P0202", "ins.mov.reg", "mov %u32_0, %u32_1;", "mov.sat.s32 %s32_0, %s32_1;", "mov.rn.f32 %f32_0, %f32_1;", "mov.global.u32 %u32_0, %u32_1;")
    page.bad("P0501", "ins.mov.reg", "mov.b128 %b64_0, %b64_1;")
    for ty in ANY:
        for reg in ["pred"] + REGISTERS:
            for line in (f"mov.{ty} {r(reg, 3)}, {r(ty, 1)};", f"mov.{ty} {r(ty)}, {r(reg, 3)};"):
                page.ok("ins.mov.reg", line) if agrees(ty, reg) else page.bad("P0205", "ins.mov.reg", line)
    counts(page, "ins.mov.reg", "mov.u32", ["%u32_0", "%u32_1"])
    page.bad("P0205", "ins.mov.reg", "mov.u32 %u32_0, 1.5;", "mov.s16 %s16_0, 0f3f800000;", "mov.pred %pred_0, 1.0;")
    page.warn("P0903", "ins.mov.reg", "mov.f32 %f32_0, 1;", "mov.f64 %f64_0, 1;")
    page.bad("P0204", "ins.mov.reg", "mov.u32 %u32_0, [gword];", "mov.u32 [gword], %u32_0;", "mov.u32 %u32_0, -%u32_1;", "mov.u32 1, %u32_0;", "mov.u32 %u32_0, _;")
    page.begin("special registers")
    page.ok("ins.mov.sreg", "mov.u32 %u32_0, %tid.x;", "mov.b32 %b32_0, %ntid.y;", "mov.s32 %s32_0, %ctaid.z;", "mov.u16 %u16_0, %tid.x;", "mov.u16 %u16_0, %ntid.x;", "mov.u16 %u16_0, %ctaid.y;",
            "mov.u16 %u16_0, %nctaid.z;", "mov.b16 %b16_0, %tid.z;", "mov.u64 %u64_0, %gridid;", "mov.u32 %u32_0, %gridid;", "mov.u16 %u16_0, %gridid;",
            "mov.u64 %u64_0, %clock64;", "mov.u32 %u32_0, %laneid;", "mov.u32 %b32_0, %smid;",
            "mov.v4.u32 {%u32_0, %u32_1, %u32_2, %u32_3}, %tid;")
    page.warn("P0903", "ins.mov.sreg", "mov.u32 %u32_0, %pm0_64;", "mov.u32 %u32_0, %pm7_64;")
    page.bad("P0205", "ins.mov.sreg", "mov.u64 %u64_0, %tid.x;", "mov.u32 %u32_0, %clock64;", "mov.u16 %u16_0, %laneid;", "mov.u16 %u16_0, %clock;", "mov.u64 %u64_0, %laneid;", "mov.f32 %f32_0, %tid.x;",
             "mov.pred %pred_0, %laneid;", "mov.u32 %u32_0, %globaltimer;", "mov.u32 %u64_0, %tid.x;", "mov.u32 %u16_0, %tid.x;")
    page.bad("P0211", "ins.mov.sreg", "mov.u32 %u32_0, %tid;", "mov.u32 %u32_0, %laneid.x;", "mov.u32 %u32_0, %ctaid.q;")
    page.begin("addresses")
    page.ok("ins.mov.var", "mov.u64 %u64_0, gvar;", "mov.b64 %b64_0, cvar;", "mov.u64 %u64_0, svar;", "mov.u64 %u64_0, lvar;", "mov.u64 %u64_0, gvar+20;", "mov.u64 %u64_0, gvar + 4 * 5;", "mov.u64 %u64_0, garr[5];",
            "mov.u64 %u64_0, kpar;", "mov.s64 %s64_0, gvar;", "mov.u64 %b64_0, gword;")
    page.ok("ins.mov.var", "mov.u32 %u32_0, svar;", "mov.b32 %b32_0, svar;", "mov.u32 %u32_0, svar+16;")
    page.bad("P0205", "ins.mov.var", "mov.u16 %u16_0, gvar;", "mov.f64 %f64_0, gvar;", "mov.pred %pred_0, gvar;", "mov.u16 %u16_0, svar;", "mov.f32 %f32_0, svar;", "mov.u64 %u32_0, gvar;", "mov.u64 %f64_0, gvar;")
    page.bad("P0204", "ins.mov.var", "mov.u64 %u64_0, %u64_1+4;", "mov.u64 %u64_0, [gvar];", "mov.u64 gvar, %u64_0;")
    page.bad("P0206", "ins.mov.var", "mov.u64 %u64_0, nolabel;")
    page.bad("P0209", "ins.mov.var", "mov.u64 %u64_0, callpar;")
    page.ok("ins.mov.func", "mov.u64 %u64_0, dfun;", "mov.b64 %b64_0, dfun;")
    page.ok("ins.mov.kernel", "mov.u64 %u64_0, kernel;")
    page.warn("P0904", "ins.mov.var ins.mov.func ins.mov.kernel", "mov.u32 %u32_0, gvar;", "mov.u32 %u32_0, dfun;", "mov.u32 %u32_0, kernel;")
    page.bad("P0205", "ins.mov.func", "mov.u16 %u16_0, dfun;", "mov.f64 %f64_0, dfun;")
    page.bad("P0205", "ins.mov.kernel", "mov.u16 %u16_0, kernel;")
    page.raw("here:")
    page.bad("P0503", "ins.mov.label", "mov.u64 %u64_0, here;", "mov.u32 %u32_0, here;")
    page.begin("addresses in a module of 32 bits", version="3.1", target="sm_35", wide=False)
    page.ok("ins.mov.var", "mov.u32 %u32_0, gvar;", "mov.u32 %u32_0, svar+4;", "mov.u32 %u32_0, garr[2];", "mov.u32 %u32_0, kpar;")
    page.ok("ins.mov.var", "mov.u64 %u64_0, gvar;")
    page.bad("P0205", "ins.mov.var", "mov.u16 %u16_0, gvar;")
    page.ok("ins.mov.func", "mov.u32 %u32_0, dfun;")
    for version, target, code in (("2.1", "sm_20", None), ("2.0", "sm_20", "P0501"), ("2.1", "sm_13", "P0502")):
        page.begin(f"the address of a function for {version} and {target}", version=version, target=target, wide=False)
        line = "mov.u32 %u32_0, dfun;"
        page.bad(code, "ins.mov.func", line) if code else page.ok("ins.mov.func", line)
    for version, target, code in (("3.1", "sm_35", None), ("3.0", "sm_30", "P0501"), ("3.1", "sm_30", "P0502"), ("6.4", "sm_32", "P0502")):
        page.begin(f"the address of a kernel for {version} and {target}", version=version, target=target)
        line = "mov.u64 %u64_0, kernel;"
        page.bad(code, "ins.mov.kernel", line) if code else page.ok("ins.mov.kernel", line)
    page.begin("doubles below sm_13", version="1.4", target="sm_12", wide=False)
    page.bad("P0502", "ins.mov.reg", "mov.f64 %f64_0, %f64_1;")
    page.ok("ins.mov.reg", "mov.b64 %f64_0, %f64_1;", "mov.u32 %u32_0, %u32_1;")


def packs(page):
    page.begin("packing and unpacking")
    for ty, n, bits in PACKS:
        for k in "bus" + ("f" if bits in (16, 32) else ""):
            element = f"{k}{bits}"
            parts = "{" + regs(element, n) + "}"
            for whole in ("b", "u", "s") + (("f",) if ty != "b16" else ()):
                reg = r(whole + ty[1:])
                page.ok("ins.mov.pack", f"mov.{ty} {reg}, {parts};")
                page.ok("ins.mov.unpack", f"mov.{ty} {parts}, {reg};")
    page.ok("ins.mov.unpack", "mov.b64 {_, %b32_0}, %b64_0;", "mov.b64 {%b32_0, _}, %b64_0;", "mov.b32 {%b16_0, %b16_1}, %f16x2_0;", "mov.b32 {%f16_0, %f16_1}, %b32_0;")
    page.ok("ins.mov.pack", "mov.b64 %b64_0, {%b32_0, 0};", "mov.b64 %b64_0, {1, 2};", "mov.b32 %f16x2_0, {%f16_0, %f16_1};", "mov.b64 %b64_0, %v2b32_0;", "mov.b64 %b64_0, {%f16x2_0, %b32_0};")
    page.ok("ins.mov.unpack", "mov.b64 %v2b32_0, %b64_0;")
    for line, n in (("{%b16_0, %b16_1, %b16_2}", 32), ("{%b32_0, %b32_1, %b32_2, %b32_3}", 64), ("{%b8_0, %b8_1}", 32), ("{%b16_0, %b16_1}", 64), ("{%b32_0, %b32_1}", 32), ("{%b64_0, %b64_1}", 64),
                    ("{%b16_0, %b32_0}", 64), ("{%b32_0}", 64), ("{%b8_0, %b8_1, %b8_2, %b8_3}", 64)):
        code = "P0211" if line.count(",") in (0, 2) else "P0205"
        page.bad(code, "ins.mov.pack", f"mov.b{n} %b{n}_9, {line};")
        page.bad(code, "ins.mov.unpack", f"mov.b{n} {line}, %b{n}_9;")
    page.bad("P0205", "ins.mov.pack", "mov.b64 %b32_0, {%b32_1, %b32_2};", "mov.b32 %b64_0, {%b16_1, %b16_2};", "mov.b64 %b64_0, {%pred_1, %b32_2};")
    page.bad("P0205", "ins.mov.unpack", "mov.b64 {%b32_1, %b32_2}, %b32_0;", "mov.b32 {%b16_1, %b16_2}, %b64_0;")
    page.bad("P0202", "ins.mov.pack", "mov.u64 %u64_0, {%u32_0, %u32_1};", "mov.s32 %s32_0, {%s16_0, %s16_1};", "mov.f64 %f64_0, {%f32_0, %f32_1};")
    page.bad("P0202", "ins.mov.unpack", "mov.u64 {%u32_0, %u32_1}, %u64_0;", "mov.f64 {%f32_0, %f32_1}, %f64_0;")
    page.bad("P0204", "ins.mov.unpack", "mov.b64 {1, %b32_1}, %b64_0;")
    page.bad("P0204", "ins.mov.pack", "mov.b64 %b64_0, {_, %b32_1};")
    page.ok("opnd.vec.mov_v", "mov.v2.f32 {%f32_0, %f32_1}, %v2f32_0;", "mov.v4.f32 {%f32_0, %f32_1, %f32_2, %f32_3}, %v4f32_0;", "mov.v2.b64 %v2b64_0, {%b64_0, %b64_1};", "mov.v4.u32 %v4u32_0, {%u32_0, 1, 2, %u32_3};",
            "mov.v2.u16 {%u16_0, %u16_1}, {%u16_1, %u16_0};")
    page.bad("P0213", "opnd.vec.mov_v", "mov.v4.u64 {%u64_0, %u64_1, %u64_2, %u64_3}, {%u64_0, %u64_1, %u64_2, %u64_3};", "mov.v4.f64 {%f64_0, %f64_1, %f64_2, %f64_3}, {%f64_0, %f64_1, %f64_2, %f64_3};")
    page.bad("P0211", "opnd.vec.mov_v", "mov.v2.f32 {%f32_0, %f32_1, %f32_2}, %v2f32_0;", "mov.v4.f32 {%f32_0, %f32_1, %f32_2, %f32_3}, %v2f32_0;")
    page.bad("P0202", "opnd.vec.mov_v", "mov.v3.f32 {%f32_0, %f32_1, %f32_2}, %f32_0;")


def warp(page):
    page.begin("exchange within a warp")
    for mode in MODES:
        ids = f"ins.shfl.sync.{mode}"
        op = f"shfl.sync.{mode}.b32"
        page.ok(ids, f"{op} %b32_0, %b32_1, %b32_2, %b32_3, %b32_4;", f"{op} %b32_0|%pred_0, %b32_1, %b32_2, %b32_3, %b32_4;", f"{op} %f32_0|%pred_0, %f32_1, 1, 0x1f, 0xffffffff;", f"{op} %u32_0, %s32_1, %u32_2, %u32_3, -1;",
                f"{op} %b32_0|_, %b32_1, 1, 31, -1;")
        page.warn("P0903", ids, f"{op} _|%pred_0, %b32_1, 1, 31, -1;")
        page.types("P0202", ids, ["b32"], lambda ty: f"shfl.sync.{mode}.{ty} {regs(ty, 2)}, 1, 31, -1;")
        page.bad("P0203", ids, f"{op} %b32_0, %b32_1, %b32_2, %b32_3;", f"{op} %b32_0, %b32_1, %b32_2, %b32_3, %b32_4, %b32_5;")
        page.bad("P0205", ids, f"{op} %b64_0, %b32_1, 1, 31, -1;", f"{op} %b32_0, %b64_1, 1, 31, -1;", f"{op} %b32_0|%b32_1, %b32_2, 1, 31, -1;", f"{op} %b32_0, %b32_1, %b64_1, 31, -1;",
                 f"{op} %b32_0, %b32_1, 1, %u64_1, -1;", f"{op} %b32_0, %b32_1, 1, 31, %b64_2;", f"{op} %b32_0, %b32_1, 1, 31, 1.0;")
        page.bad("P0202", ids, f"shfl.sync.{mode} %b32_0, %b32_1, 1, 31, -1;", f"shfl.sync.{mode}.aligned.b32 %b32_0, %b32_1, 1, 31, -1;")
        page.bad("P0503", f"ins.shfl.{mode}", f"shfl.{mode}.b32 %b32_0, %b32_1, 1, 31;", f"shfl.{mode}.b32 %b32_0|%pred_0, %b32_1, %b32_2, %b32_3;")
    page.bad("P0202", "ins.shfl.sync.idx", "shfl.sync.b32 %b32_0, %b32_1, 1, 31, -1;", "shfl.sync.xor.b32 %b32_0, %b32_1, 1, 31, -1;")
    cases = [("3.0", "sm_30", 0, None), ("2.3", "sm_20", 0, "P0501"), ("3.0", "sm_20", 0, "P0502"), ("6.4", "sm_62", 0, "P0901"), ("6.3", "sm_70", 0, "P0901"), ("6.0", "sm_30", 0, "P0901"), ("5.0", "sm_60", 0, None),
             ("6.4", "sm_70", 0, "P0503"), ("6.4", "sm_75", 0, "P0503"), ("6.0", "sm_30", 1, None), ("5.0", "sm_30", 1, "P0501"), ("6.0", "sm_20", 1, "P0502")]
    for version, target, sync, code in cases:
        page.begin(f"exchange {'with' if sync else 'without'} mask for {version} and {target}", version=version, target=target, wide=False)
        for mode in MODES:
            ids = f"ins.shfl.{'sync.' if sync else ''}{mode}"
            line = f"shfl.sync.{mode}.b32 %b32_0|%pred_0, %b32_1, 1, 31, -1;" if sync else f"shfl.{mode}.b32 %b32_0|%pred_0, %b32_1, 1, 31;"
            if code == "P0901":
                page.warn(code, ids, line)
                page.ok(ids, f"{line[:-1].replace('|%pred_0', '')};")
            elif code:
                page.bad(code, ids, line)
            else:
                page.ok(ids, line)
    page.begin("a module for sm_60 loaded on sm_70", version="6.4", target="sm_60", gpu="sm_70")
    for mode in MODES:
        page.bad("P0503", f"ins.shfl.{mode}", f"shfl.{mode}.b32 %b32_0, %b32_1, 1, 31;")
    page.begin("bytes")
    page.ok("ins.prmt", "prmt.b32 %b32_0, %b32_1, %b32_2, %b32_3;", "prmt.b32 %u32_0, %s32_1, %f32_2, 0x3210;", "prmt.b32 %b32_0, 1, 2, %b32_3;")
    for mode in ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16"):
        ids = f"ins.prmt.{mode}"
        page.ok(ids, f"prmt.b32.{mode} %b32_0, %b32_1, %b32_2, %b32_3;", f"prmt.b32.{mode} %b32_0, %b32_1, %b32_2, 1;")
        page.order(ids, f"prmt.{mode}.b32 %b32_0, %b32_1, %b32_2, %b32_3;")
        page.bad("P0202", ids, f"prmt.u32.{mode} %u32_0, %u32_1, %u32_2, %u32_3;")
        counts(page, ids, f"prmt.b32.{mode}", ["%b32_0", "%b32_1", "%b32_2", "%b32_3"])
    page.types("P0202", "ins.prmt", ["b32"], lambda ty: f"prmt.{ty} {regs(ty, 4)};")
    page.bad("P0202", "ins.prmt", "prmt.b32.f4x %b32_0, %b32_1, %b32_2, %b32_3;", "prmt.b32.f4e.b4e %b32_0, %b32_1, %b32_2, %b32_3;")
    page.bad("P0205", "ins.prmt", "prmt.b32 %b64_0, %b32_1, %b32_2, %b32_3;", "prmt.b32 %b32_0, %b16_1, %b32_2, %b32_3;", "prmt.b32 %b32_0, %b32_1, %b32_2, %pred_3;")
    for version, target, code in (("2.0", "sm_20", None), ("1.4", "sm_13", "P0501"), ("2.0", "sm_13", "P0502")):
        page.begin(f"bytes for {version} and {target}", version=version, target=target, wide=False)
        for line, ids in (("prmt.b32 %b32_0, %b32_1, %b32_2, %b32_3;", "ins.prmt"), ("prmt.b32.ecl %b32_0, %b32_1, %b32_2, %b32_3;", "ins.prmt.ecl")):
            page.bad(code, ids, line) if code else page.ok(ids, line)


def pages():
    page = Page("F18_move", "Moves and exchanges, PTX ISA 9.7.8.2 to 9.7.8.6.")
    for part in (moves, packs, warp):
        part(page)
    yield page
