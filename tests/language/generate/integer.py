"""Integer arithmetic (9.7.1) and extended precision (9.7.2)."""

from page import EVERY, INT, REGISTERS, Page, agrees, r, size

NARROW = ["u16", "u32", "s16", "s32"]
SIGNED = ["s16", "s32", "s64"]
TOP = ["u32", "u64", "s32", "s64"]


def double(ty):
    """The integer type of twice the width."""
    return ty[0] + str(2 * size(ty))


def regs(ty, count):
    """Registers of one type, separated by commas."""
    return ", ".join(r(ty, i) for i in range(count))


def counts(page, ids, op, operands):
    """Too few and too many operands."""
    page.bad("P0203", ids, f"{op} {', '.join(operands[:-1])};", f"{op} {', '.join(operands + [operands[-1]])};")


def arithmetic(page):
    page.begin("two and three operands")
    for op, ids in [("add", "ins.add.int"), ("sub", "ins.sub.int"), ("div", "ins.div.int"), ("rem", "ins.rem.int"),
                    ("min", "ins.min.int"), ("max", "ins.max.int")]:
        for ty in INT:
            page.ok(ids, f"{op}.{ty} {regs(ty, 3)};", f"{op}.{ty} {r(ty)}, {r(ty, 1)}, 7;", f"{op}.{ty} {r(ty)}, 7, {r(ty, 1)};")
        page.ok(ids, f"{op}.s32 %s32_0, -1, -2147483648;", f"{op}.u32 %u32_0, 0xffffffffU, 017;", f"{op}.s64 %s64_0, 0b101, 0x7fffffffffffffff;")
        counts(page, ids, f"{op}.u32", ["%u32_0", "%u32_1", "%u32_2"])
    for ty in INT:
        page.ok("ins.sad", f"sad.{ty} {regs(ty, 4)};")
    counts(page, "ins.sad", "sad.u32", ["%u32_0", "%u32_1", "%u32_2", "%u32_3"])
    for op in ("abs", "neg"):
        for ty in SIGNED:
            page.ok(f"ins.{op}.int", f"{op}.{ty} {regs(ty, 2)};", f"{op}.{ty} {r(ty)}, -5;")
        counts(page, f"ins.{op}.int", f"{op}.s32", ["%s32_0", "%s32_1"])
    page.ok("ins.add.sat.s32", "add.sat.s32 %s32_0, %s32_1, %s32_2;", "add.sat.s32 %b32_0, %u32_1, -3;")
    page.ok("ins.sub.sat.s32", "sub.sat.s32 %s32_0, %s32_1, %s32_2;")

    page.begin("types that integer arithmetic does not have")
    half = ["f16", "f16x2"]
    three = lambda op: lambda ty: f"{op}.{ty} {regs(ty, 3)};"
    two = lambda op: lambda ty: f"{op}.{ty} {regs(ty, 2)};"
    for op, ids in [("add", "ins.add.int"), ("sub", "ins.sub.int")]:
        page.types("P0202", ids, INT + ["f32", "f64"] + half, three(op))
    page.types("P0202", "ins.div.int", INT + ["f32", "f64"], three("div"))
    page.types("P0202", "ins.rem.int", INT, three("rem"))
    for op in ("min", "max"):
        page.types("P0202", f"ins.{op}.int", INT + ["f32", "f64"] + half, three(op))
        page.bad("P0501", f"ins.{op}.int", *[f"{op}.{ty} {regs(ty, 3)};" for ty in half])
    for op in ("abs", "neg"):
        page.types("P0202", f"ins.{op}.int", SIGNED + ["f32", "f64"] + half, two(op))
    page.bad("P0501", "ins.abs.int", *[f"abs.{ty} {regs(ty, 2)};" for ty in half])
    page.types("P0202", "ins.sad", INT, lambda ty: f"sad.{ty} {regs(ty, 4)};")
    for op in ("add", "sub"):
        page.types("P0202", f"ins.{op}.sat.s32", ["s32", "f32"] + half, lambda ty: f"{op}.sat.{ty} {regs(ty, 3)};")
    for op in ("div", "rem", "min", "max"):
        page.bad("P0202", f"ins.{op}.int", f"{op}.sat.s32 {regs('s32', 3)};")
    for op in ("abs", "neg"):
        page.bad("P0202", f"ins.{op}.int", f"{op}.sat.s32 {regs('s32', 2)};")
    page.order("ins.add.sat.s32", "add.s32.sat %s32_0, %s32_1, %s32_2;")
    for word in ("rn", "ftz", "approx", "hi", "wide", "to", "relaxed"):
        page.bad("P0202", "ins.add.int", f"add.{word}.u32 {regs('u32', 3)};")
    page.bad("P0202", "ins.add.int", "add %u32_0, %u32_1, %u32_2;", "add.u32.u32 %u32_0, %u32_1, %u32_2;",
             "add.sat.sat.s32 %s32_0, %s32_1, %s32_2;")


def products(page):
    page.begin("products")
    for mode in ("hi", "lo"):
        for ty in INT:
            page.ok(f"ins.mul.{mode}", f"mul.{mode}.{ty} {regs(ty, 3)};", f"mul.{mode}.{ty} {r(ty)}, {r(ty, 1)}, 3;")
            page.ok(f"ins.mad.{mode}", f"mad.{mode}.{ty} {regs(ty, 4)};")
        for ty in ("u32", "s32"):
            page.ok(f"ins.mul24.{mode}", f"mul24.{mode}.{ty} {regs(ty, 3)};")
            page.ok(f"ins.mad24.{mode}", f"mad24.{mode}.{ty} {regs(ty, 4)};")
    for ty in NARROW:
        page.ok("ins.mul.wide", f"mul.wide.{ty} {r(double(ty))}, {r(ty)}, {r(ty, 1)};", f"mul.wide.{ty} {r('b' + double(ty)[1:])}, {r(ty)}, -1;")
        page.ok("ins.mad.wide", f"mad.wide.{ty} {r(double(ty))}, {r(ty)}, {r(ty, 1)}, {r(double(ty), 1)};")
    page.ok("ins.mad.hi.sat.s32", f"mad.hi.sat.s32 {regs('s32', 4)};")
    page.ok("ins.mad24.hi.sat.s32", f"mad24.hi.sat.s32 {regs('s32', 4)};")
    for op, n in (("mul", 3), ("mul24", 3), ("mad", 4), ("mad24", 4)):
        ids = f"ins.{op}.lo"
        counts(page, ids, f"{op}.lo.u32", [r("u32", i) for i in range(n)])
        for ty in ("u32", "s32") if "24" in op else INT:
            page.bad("P0202", f"ins.{op}.lo ins.{op}.hi", f"{op}.{ty} {regs(ty, n)};")
        for mode in ("hi", "lo"):
            good = ["u32", "s32"] if "24" in op else INT
            page.types("P0202", f"ins.{op}.{mode}", good, lambda ty: f"{op}.{mode}.{ty} {regs(ty, n)};")
    page.types("P0202", "ins.mul.wide", NARROW, lambda ty: f"mul.wide.{ty} %b64_0, {r(ty)}, {r(ty, 1)};")
    page.types("P0202", "ins.mad.wide", NARROW, lambda ty: f"mad.wide.{ty} %b64_0, {r(ty)}, {r(ty, 1)}, %b64_1;")
    page.bad("P0202", "ins.mul24.hi", "mul24.wide.u32 %u64_0, %u32_1, %u32_2;")
    page.bad("P0202", "ins.mad24.hi", "mad24.wide.u32 %u64_0, %u32_1, %u32_2, %u64_3;")
    page.types("P0202", "ins.mad.hi.sat.s32", ["s32"], lambda ty: f"mad.hi.sat.{ty} {regs(ty, 4)};")
    page.types("P0202", "ins.mad24.hi.sat.s32", ["s32"], lambda ty: f"mad24.hi.sat.{ty} {regs(ty, 4)};")
    page.bad("P0202", "ins.mad.hi.sat.s32", "mad.lo.sat.s32 %s32_0, %s32_1, %s32_2, %s32_3;", "mad.sat.s32 %s32_0, %s32_1, %s32_2, %s32_3;",
             "mad.wide.sat.s32 %s64_0, %s32_1, %s32_2, %s64_3;")
    page.bad("P0202", "ins.mul.hi", "mul.hi.sat.s32 %s32_0, %s32_1, %s32_2;")
    page.bad("P0202", "ins.mad24.hi.sat.s32", "mad24.lo.sat.s32 %s32_0, %s32_1, %s32_2, %s32_3;")
    page.bad("P0202", "ins.mul24.hi", "mul24.hi.sat.s32 %s32_0, %s32_1, %s32_2;")
    page.bad("P0205", "ins.mul.wide", "mul.wide.u32 %u32_0, %u32_1, %u32_2;", "mul.wide.u16 %u64_0, %u16_1, %u16_2;", "mul.wide.s32 %f64_0, %s32_1, %s32_2;",
             "mul.wide.u32 %u64_0, %u64_1, %u32_2;")
    page.bad("P0205", "ins.mad.wide", "mad.wide.u32 %u64_0, %u32_1, %u32_2, %u32_3;", "mad.wide.s16 %s16_0, %s16_1, %s16_2, %s32_3;")


def bits(page):
    page.begin("bits")
    for ty in ("b32", "b64"):
        for op in ("popc", "clz"):
            page.ok(f"ins.{op}", f"{op}.{ty} %u32_0, {r(ty)};", f"{op}.{ty} %b32_0, {r(ty)};", f"{op}.{ty} %s32_0, 1;")
        page.ok("ins.brev", f"brev.{ty} {regs(ty, 2)};")
        page.ok("ins.bfi", f"bfi.{ty} {regs(ty, 3)}, %u32_0, %u32_1;", f"bfi.{ty} {regs(ty, 3)}, 8, 4;")
    for ty in TOP:
        page.ok("ins.bfind", f"bfind.{ty} %u32_0, {r(ty, 1)};")
        page.ok("ins.bfind.shiftamt", f"bfind.shiftamt.{ty} %u32_0, {r(ty, 1)};")
        page.ok("ins.bfe", f"bfe.{ty} {regs(ty, 2)}, %u32_2, %u32_3;", f"bfe.{ty} {regs(ty, 2)}, 8, 4;")
    page.ok("ins.fns", "fns.b32 %b32_0, %b32_1, %b32_2, %s32_0;", "fns.b32 %b32_0, %u32_1, %u32_2, %s32_0;", "fns.b32 %b32_0, %b32_1, %s32_2, -1;",
            "fns.b32 %b32_0, 0xaaaaaaaa, 3, 1;", "fns.b32 %u32_0, %b32_1, 0, 2;")
    for a in ("u32", "s32"):
        for b in ("u32", "s32"):
            page.ok("ins.dp4a", f"dp4a.{a}.{b} %b32_0, {r(a, 1)}, {r(b, 2)}, %b32_3;")
            for mode in ("lo", "hi"):
                page.ok("ins.dp2a", f"dp2a.{mode}.{a}.{b} %b32_0, {r(a, 1)}, {r(b, 2)}, %b32_3;")
    page.ok("ins.dp4a", "dp4a.s32.s32 %s32_0, %b32_1, %u32_2, 0;")
    for op, good in (("popc", ["b32", "b64"]), ("clz", ["b32", "b64"]), ("bfind", TOP)):
        page.types("P0202", f"ins.{op}", good, lambda ty: f"{op}.{ty} %u32_0, {r(ty, 1)};")
        ty = good[1]
        page.bad("P0205", f"ins.{op}", f"{op}.{ty} %b64_0, {r(ty, 1)};", f"{op}.{ty} %u16_0, {r(ty, 1)};", f"{op}.{ty} %f32_0, {r(ty, 1)};",
                 f"{op}.{ty} %u32_0, %u32_1;")
        counts(page, f"ins.{op}", f"{op}.{ty}", ["%u32_0", r(ty, 1)])
    page.types("P0202", "ins.bfind.shiftamt", TOP, lambda ty: f"bfind.shiftamt.{ty} %u32_0, {r(ty, 1)};")
    page.order("ins.bfind.shiftamt", "bfind.u32.shiftamt %u32_0, %u32_1;")
    page.bad("P0205", "ins.bfind.shiftamt", "bfind.shiftamt.u64 %u64_0, %u64_1;")
    page.types("P0202", "ins.brev", ["b32", "b64"], lambda ty: f"brev.{ty} {regs(ty, 2)};")
    page.types("P0202", "ins.bfe", TOP, lambda ty: f"bfe.{ty} {regs(ty, 2)}, %u32_2, %u32_3;")
    page.bad("P0205", "ins.bfe", "bfe.u64 %u64_0, %u64_1, %u64_2, %u32_3;", "bfe.u64 %u64_0, %u64_1, %u32_2, %u64_3;", "bfe.u32 %u32_0, %u32_1, %f32_2, %u32_3;")
    counts(page, "ins.bfe", "bfe.u32", ["%u32_0", "%u32_1", "%u32_2", "%u32_3"])
    page.types("P0202", "ins.bfi", ["b32", "b64"], lambda ty: f"bfi.{ty} {regs(ty, 3)}, %u32_2, %u32_3;")
    page.bad("P0205", "ins.bfi", "bfi.b64 %b64_0, %b64_1, %b64_2, %b64_3, %u32_3;", "bfi.b64 %b64_0, %b64_1, %b64_2, %u32_3, %b64_3;", "bfi.b32 %b32_0, %b32_1, %b64_2, 1, 2;")
    counts(page, "ins.bfi", "bfi.b32", ["%b32_0", "%b32_1", "%b32_2", "%u32_0", "%u32_1"])
    page.types("P0202", "ins.fns", ["b32"], lambda ty: f"fns.{ty} %b32_0, %b32_1, 0, 1;")
    page.bad("P0205", "ins.fns", "fns.b32 %b32_0, %b64_1, 0, 1;", "fns.b32 %b64_0, %b32_1, 0, 1;", "fns.b32 %b32_0, %b32_1, %f32_1, 1;", "fns.b32 %b32_0, %b32_1, 0, %s64_0;",
             "fns.b32 %b32_0, %b32_1, 0, %f32_0;")
    counts(page, "ins.fns", "fns.b32", ["%b32_0", "%b32_1", "%b32_2", "%s32_0"])
    for name, op in (("ins.dp4a", "dp4a"), ("ins.dp2a", "dp2a.lo")):
        good = ["u32", "s32"]
        page.types("P0202", name, good, lambda ty: f"{op}.{ty}.u32 %b32_0, %b32_1, %b32_2, %b32_3;")
        page.types("P0202", name, good, lambda ty: f"{op}.u32.{ty} %b32_0, %b32_1, %b32_2, %b32_3;")
        page.bad("P0202", name, f"{op}.u32 %b32_0, %b32_1, %b32_2, %b32_3;")
        page.bad("P0205", name, f"{op}.u32.u32 %b64_0, %b32_1, %b32_2, %b32_3;", f"{op}.s32.u32 %s32_0, %b32_1, %f32_2, %b32_3;", f"{op}.u32.u32 %u32_0, %b32_1, %b32_2, %u64_3;")
        counts(page, name, f"{op}.u32.u32", ["%b32_0", "%b32_1", "%b32_2", "%b32_3"])
    page.bad("P0202", "ins.dp2a", "dp2a.u32.u32 %b32_0, %b32_1, %b32_2, %b32_3;",
             "dp2a.wide.u32.u32 %b32_0, %b32_1, %b32_2, %b32_3;")
    page.bad("P0202", "ins.dp4a", "dp4a.lo.u32.u32 %b32_0, %b32_1, %b32_2, %b32_3;")


def agreement(page):
    page.begin("registers that agree with the type of the instruction, and those that do not")
    for ty in INT:
        ids = "ins.add.int"
        for reg in ["pred"] + REGISTERS:
            fine = agrees(ty, reg)
            for line in (f"add.{ty} {r(reg, 3)}, {r(ty, 1)}, {r(ty, 2)};", f"add.{ty} {r(ty)}, {r(reg, 3)}, {r(ty, 2)};", f"add.{ty} {r(ty)}, {r(ty, 1)}, {r(reg, 3)};"):
                page.ok(ids, line) if fine else page.bad("P0205", ids, line)
    page.begin("operands that integer arithmetic does not take")
    page.bad("P0204", "ins.add.int", "add.u32 7, %u32_1, %u32_2;", "add.u32 [%b64_0], %u32_1, %u32_2;", "add.u32 %u32_0, [gword], %u32_2;", "add.u32 %u32_0, gword, %u32_2;",
             "add.u32 %u32_0, {%u32_1, %u32_2}, %u32_2;", "add.u32 %u32_0, !%pred_0, %u32_2;", "add.u32 %u32_0, -%u32_1, %u32_2;", "add.u32 %u32_0|%pred_0, %u32_1, %u32_2;",
             "add.u32 %u32_0, _, %u32_2;", "add.u32 %u32_0, dfun, %u32_2;", "add.u32 gword, %u32_1, %u32_2;")
    page.bad("P0205", "ins.add.int", "add.u32 %u32_0, %u32_1, 1.0;", "add.s32 %s32_0, %s32_1, 0f3F800000;", "add.u64 %u64_0, %u64_1, 0d3FF0000000000000;")
    page.bad("P0205", "ins.sub.int", "sub.s16 %s16_0, 1.5e3, %s16_1;")
    page.bad("P0205", "ins.mul.lo", "mul.lo.u32 %u32_0, %u32_1, 2.5;")
    page.bad("P0212", "ins.add.int", "add.u32 %u32_0, %tid.x, 1;", "add.u32 %u32_0, 1, %laneid;", "add.u32 %tid.x, %u32_0, 1;", "add.u64 %u64_0, %clock64, 1;")
    page.bad("P0206", "ins.add.int", "add.u32 %u32_0, %nosuch, 1;", "add.u32 nosuch, %u32_0, 1;")
    page.warn("P0902", "ins.add.int", "add.u32 %u32_0, %u32_1, 0x1ffffffff;", "add.u16 %u16_0, %u16_1, 0x12345;", "add.s32 %s32_0, %s32_1, 0xffffffffff;")
    page.ok("ins.add.int", "add.u16 %u16_0, %u16_1, -1;", "add.u16 %u16_0, %u16_1, 0xffff;", "add.s16 %s16_0, %s16_1, 65535;", "add.u32 %u32_0, WARP_SZ, (3 + 4) * 2;",
            "add.s32 %s32_0, %s32_1, ~1;", "add.u32 %u32_0, %u32_1, 1 ? 2 : 3;", "@%pred_0 add.u32 %u32_0, %u32_1, 1;", "@!%pred_0 add.u32 %u32_0, %u32_1, 1;")
    page.bad("P0201", "", "plus.u32 %u32_0, %u32_1, %u32_2;", "ADD.u32 %u32_0, %u32_1, %u32_2;", "addd.u32 %u32_0, %u32_1, %u32_2;")
    page.bad("P0208", "ins.add.int", "@%u32_0 add.u32 %u32_0, %u32_1, 1;")


def gates(page):
    page.begin("the first version of the bit instructions", version="2.0", target="sm_20", wide=False)
    lines = {"ins.popc": "popc.b32 %u32_0, %b32_0;", "ins.clz": "clz.b64 %u32_0, %b64_0;", "ins.bfind": "bfind.u32 %u32_0, %u32_1;",
             "ins.bfind.shiftamt": "bfind.shiftamt.s64 %u32_0, %s64_0;", "ins.brev": "brev.b32 %b32_0, %b32_1;", "ins.bfe": "bfe.u32 %u32_0, %u32_1, 1, 2;",
             "ins.bfi": "bfi.b32 %b32_0, %b32_1, %b32_2, 1, 2;"}
    for ids, line in lines.items():
        page.ok(ids, line)
    for version, target, code in (("1.4", "sm_13", "P0501"), ("2.0", "sm_13", "P0502")):
        page.begin(f"bit instructions for {version} and {target}", version=version, target=target, wide=False)
        for ids, line in lines.items():
            page.bad(code, ids, line)
    page.begin("integer arithmetic of the first version", version="1.0", target="sm_10", wide=False)
    for ty in INT:
        page.ok("ins.add.int", f"add.{ty} {regs(ty, 3)};")
        page.ok("ins.sad", f"sad.{ty} {regs(ty, 4)};")
        page.ok("ins.mul.hi", f"mul.hi.{ty} {regs(ty, 3)};")
    page.ok("ins.add.sat.s32", "add.sat.s32 %s32_0, %s32_1, %s32_2;")
    page.ok("ins.mad24.hi.sat.s32", "mad24.hi.sat.s32 %s32_0, %s32_1, %s32_2, %s32_3;")
    fns = "fns.b32 %b32_0, %b32_1, 0, 1;"
    page.begin("fns, first version", version="6.0", target="sm_30")
    page.ok("ins.fns", fns)
    page.begin("fns too early", version="5.0", target="sm_30")
    page.bad("P0501", "ins.fns", fns)
    page.begin("fns on an old target", version="6.0", target="sm_20")
    page.bad("P0502", "ins.fns", fns)
    dots = {"ins.dp4a": "dp4a.u32.s32 %b32_0, %b32_1, %b32_2, %b32_3;", "ins.dp2a": "dp2a.hi.s32.u32 %b32_0, %b32_1, %b32_2, %b32_3;"}
    for version, target, code in (("5.0", "sm_61", None), ("4.3", "sm_53", "P0501"), ("5.0", "sm_60", "P0502"), ("6.4", "sm_53", "P0502")):
        page.begin(f"dot products for {version} and {target}", version=version, target=target)
        for ids, line in dots.items():
            page.bad(code, ids, line) if code else page.ok(ids, line)


def extended(page):
    types = ["u32", "s32", "u64", "s64"]
    one = [("add.cc", "ins.add.cc", 3), ("addc", "ins.addc", 3), ("addc.cc", "ins.addc", 3), ("sub.cc", "ins.sub.cc", 3), ("subc", "ins.subc", 3), ("subc.cc", "ins.subc", 3)]
    two = [(f"{op}.{mode}{cc}", ids, 4) for op, ids, ccs in (("mad", "ins.mad.cc", [".cc"]), ("madc", "ins.madc", ["", ".cc"])) for mode in ("hi", "lo") for cc in ccs]
    page.begin("carry")
    for op, ids, n in one + two:
        for ty in types:
            page.ok(ids + " ext.cc_register", f"{op}.{ty} {regs(ty, n)};")
        page.ok(ids, f"{op}.u32 {regs('b32', n - 1)}, 1;")
        page.types("P0202", ids, types, lambda ty: f"{op}.{ty} {regs(ty, n)};")
        counts(page, ids, f"{op}.u32", [r("u32", i) for i in range(n)])
        page.bad("P0205", ids, f"{op}.u32 %u64_0, {', '.join(r('u32', i) for i in range(1, n))};", f"{op}.s64 {regs('s64', n - 1)}, %s32_0;", f"{op}.u32 {regs('u32', n - 1)}, %f32_0;")
    page.bad("P0202", "ins.add.cc", "add.cc.sat.s32 %s32_0, %s32_1, %s32_2;", "add.sat.cc.s32 %s32_0, %s32_1, %s32_2;")
    page.bad("P0202", "ins.addc", "addc.sat.s32 %s32_0, %s32_1, %s32_2;")
    page.bad("P0202", "ins.sub.cc", "sub.cc.sat.s32 %s32_0, %s32_1, %s32_2;")
    page.order("ins.sub.cc", "sub.s32.cc %s32_0, %s32_1, %s32_2;")
    page.order("ins.mad.cc", "mad.cc.lo.u32 %u32_0, %u32_1, %u32_2, %u32_3;")
    page.bad("P0202", "ins.subc", "subc.sat.s32 %s32_0, %s32_1, %s32_2;")
    page.bad("P0202", "ins.mad.cc", "mad.cc.u32 %u32_0, %u32_1, %u32_2, %u32_3;", "mad.wide.cc.u32 %u64_0, %u32_1, %u32_2, %u64_3;", "mad.hi.sat.cc.s32 %s32_0, %s32_1, %s32_2, %s32_3;")
    page.bad("P0202", "ins.madc", "madc.u32 %u32_0, %u32_1, %u32_2, %u32_3;", "madc.wide.u32 %u64_0, %u32_1, %u32_2, %u64_3;", "madc.cc.u32 %u32_0, %u32_1, %u32_2, %u32_3;",
             "madc.hi.sat.s32 %s32_0, %s32_1, %s32_2, %s32_3;")
    page.bad("P0201", "", "mulc.u32 %u32_0, %u32_1, %u32_2;")
    page.bad("P0206", "ext.cc_register", "mov.u32 %u32_0, CC;")
    cases = [("1.2", "sm_10", one, ("u32", "s32"), None), ("1.1", "sm_10", one, ("u32", "s32"), "P0501"), ("4.3", "sm_20", one, ("u64", "s64"), None),
             ("4.2", "sm_20", one, ("u64", "s64"), "P0501"), ("4.3", "sm_13", one, ("u64", "s64"), "P0502"),
             ("3.0", "sm_20", two, ("u32", "s32"), None), ("2.3", "sm_20", two, ("u32", "s32"), "P0501"), ("3.0", "sm_13", two, ("u32", "s32"), "P0502"),
             ("4.3", "sm_20", two, ("u64", "s64"), None), ("4.2", "sm_20", two, ("u64", "s64"), "P0501"), ("4.3", "sm_13", two, ("u64",), "P0502")]
    for version, target, ops, tys, code in cases:
        page.begin(f"carry of {'products' if ops is two else 'sums'} of {'64' if tys[0] == 'u64' else '32'} bits for {version} and {target}", version=version, target=target, wide=False)
        for op, ids, n in ops:
            for ty in tys:
                line = f"{op}.{ty} {regs(ty, n)};"
                page.bad(code, ids, line) if code else page.ok(ids, line)


def pages():
    page = Page("F12_integer", "Integer arithmetic, PTX ISA 9.7.1.")
    for part in (arithmetic, products, bits, agreement, gates):
        part(page)
    yield page
    page = Page("F13_extended", "Extended-precision integer arithmetic, PTX ISA 9.7.2.")
    extended(page)
    yield page
