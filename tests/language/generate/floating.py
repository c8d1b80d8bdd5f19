"""Floating point (9.7.3) and half precision (9.7.4)."""

from integer import counts, regs
from page import REGISTERS, Page, agrees, r

ROUND = ["rn", "rz", "rm", "rp"]
HALVES = ["f16", "f16x2"]
UNARY = [("rcp", True), ("sqrt", True), ("rsqrt", False), ("sin", False), ("cos", False), ("lg2", False), ("ex2", False)]
"""Unary functions, and whether they have rounded forms."""


def words(*choices):
    """Every way of taking one word (or none, for an empty one) from each choice: `.rn.ftz`."""
    out = [""]
    for choice in choices:
        out = [head + ("." + word if word else "") for head in out for word in choice]
    return out


def others(good):
    """Types besides those."""
    return [ty for ty in ["pred"] + REGISTERS if ty not in good]


def arithmetic(page):
    page.begin("sums and products")
    for op in ("add", "sub", "mul"):
        for tail in words(["", *ROUND], ["", "ftz"], ["", "sat"]):
            page.ok(f"ins.{op}.f32 fp.round_table" + (" fp.sat_rule" if "sat" in tail else ""), f"{op}{tail}.f32 {regs('f32', 3)};")
        for tail in words(["", *ROUND]):
            page.ok(f"ins.{op}.f64 fp.round_table", f"{op}{tail}.f64 {regs('f64', 3)};")
        page.ok(f"ins.{op}.f32 fp.contract", f"{op}.f32 %f32_0, %f32_1, 1.0;", f"{op}.f32 %f32_0, 0f3f800000, %f32_1;", f"{op}.f32 %f32_0, -1.5e-3, %b32_1;",
                f"{op}.f32 %f32_0, %f32_1, 0d3ff0000000000000;")
        page.ok(f"ins.{op}.f64", f"{op}.f64 %f64_0, %f64_1, 2.0;", f"{op}.f64 %b64_0, %b64_1, 0d4000000000000000;", f"{op}.f64 %f64_0, 0f3f800000, -.5;")
        page.bad("P0202", f"ins.{op}.f64 fp.ftz_default", f"{op}.ftz.f64 {regs('f64', 3)};", f"{op}.rn.ftz.f64 {regs('f64', 3)};")
        page.bad("P0202", f"ins.{op}.f64 fp.sat_rule", f"{op}.sat.f64 {regs('f64', 3)};", f"{op}.rz.sat.f64 {regs('f64', 3)};")
        page.bad("P0202", f"ins.{op}.f32 fp.round_table", f"{op}.rni.f32 {regs('f32', 3)};", f"{op}.approx.f32 {regs('f32', 3)};", f"{op}.full.f32 {regs('f32', 3)};",
                 f"{op}.rn.rn.f32 {regs('f32', 3)};")
        page.order(f"ins.{op}.f32", f"{op}.sat.ftz.f32 {regs('f32', 3)};", f"{op}.ftz.rn.f32 {regs('f32', 3)};", f"{op}.f32.rn {regs('f32', 3)};")
        for ty in ("f32", "f64"):
            counts(page, f"ins.{op}.{ty}", f"{op}.{ty}", [r(ty, i) for i in range(3)])
    for mode in ("hi", "lo", "wide"):
        page.bad("P0202", "ins.mul.f32", f"mul.{mode}.f32 {regs('f32', 3)};")
        page.bad("P0202", "ins.mul.f64", f"mul.{mode}.f64 {regs('f64', 3)};")
    for op in ("fma", "mad"):
        for tail in words(ROUND, ["", "ftz"], ["", "sat"]):
            page.ok(f"ins.{op}.f32 fp.round_table", f"{op}{tail}.f32 {regs('f32', 4)};")
        for tail in words(ROUND):
            page.ok(f"ins.{op}.f64 fp.round_table", f"{op}{tail}.f64 {regs('f64', 4)};")
        page.ok(f"ins.{op}.f32", f"{op}.rn.f32 %f32_0, %f32_1, 2.0, %b32_1;")
        for mod in ("ftz", "sat"):
            page.bad("P0202", f"ins.{op}.f64 fp.ftz_default", f"{op}.rn.{mod}.f64 {regs('f64', 4)};")
        page.bad("P0202", f"ins.{op}.f32", f"{op}.approx.f32 {regs('f32', 4)};", f"{op}.hi.f32 {regs('f32', 4)};")
        page.order(f"ins.{op}.f32", f"{op}.rn.sat.ftz.f32 {regs('f32', 4)};")
        counts(page, f"ins.{op}.f32", f"{op}.rn.f32", [r("f32", i) for i in range(4)])
        counts(page, f"ins.{op}.f64", f"{op}.rn.f64", [r("f64", i) for i in range(4)])
    page.bad("P0202", "ins.fma.f32", "fma.f32 %f32_0, %f32_1, %f32_2, %f32_3;", "fma.ftz.f32 %f32_0, %f32_1, %f32_2, %f32_3;", "fma.sat.f32 %f32_0, %f32_1, %f32_2, %f32_3;")
    page.bad("P0202", "ins.fma.f64", "fma.f64 %f64_0, %f64_1, %f64_2, %f64_3;")
    page.types("P0202", "ins.fma.f32", ["f32", "f64"] + HALVES, lambda ty: f"fma.rn.{ty} {regs(ty, 4)};")
    page.types("P0202", "ins.mad.f32", ["f32", "f64"], lambda ty: f"mad.rn.{ty} {regs(ty, 4)};")
    page.bad("P0503", "ins.mad.f32 ins.mad.f32.sm1x", "mad.f32 %f32_0, %f32_1, %f32_2, %f32_3;", "mad.ftz.f32 %f32_0, %f32_1, %f32_2, %f32_3;", "mad.sat.f32 %f32_0, %f32_1, %f32_2, %f32_3;",
             "mad.ftz.sat.f32 %f32_0, %f32_1, %f32_2, %f32_3;")
    page.bad("P0503", "ins.mad.f64 ins.mad.f64.legacy", "mad.f64 %f64_0, %f64_1, %f64_2, %f64_3;")


def division(page):
    page.begin("division")
    for tail in words(["approx", "full", *ROUND], ["", "ftz"]):
        which = tail.split(".")[1]
        ids = "ins.div.rnd.f32" if which in ROUND else f"ins.div.{which}.f32"
        page.ok(f"{ids} fp.round_table", f"div{tail}.f32 {regs('f32', 3)};")
        page.bad("P0202", f"{ids} fp.sat_rule", f"div{tail}.sat.f32 {regs('f32', 3)};")
    for tail in words(ROUND):
        page.ok("ins.div.rnd.f64", f"div{tail}.f64 {regs('f64', 3)};")
        page.bad("P0202", "ins.div.rnd.f64", f"div{tail}.ftz.f64 {regs('f64', 3)};", f"div{tail}.sat.f64 {regs('f64', 3)};")
    page.bad("P0202", "ins.div.full.f32", "div.full.rn.f32 %f32_0, %f32_1, %f32_2;", "div.full.f64 %f64_0, %f64_1, %f64_2;")
    page.bad("P0202", "ins.div.approx.f32", "div.approx.rn.f32 %f32_0, %f32_1, %f32_2;", "div.approx.f64 %f64_0, %f64_1, %f64_2;", "div.approx.ftz.f64 %f64_0, %f64_1, %f64_2;",
             "div.approx.u32 %u32_0, %u32_1, %u32_2;", "div.approx.f16 %f16_0, %f16_1, %f16_2;")
    page.bad("P0202", "ins.div.rnd.f32", "div.rn.f16 %f16_0, %f16_1, %f16_2;", "div.rn.u32 %u32_0, %u32_1, %u32_2;", "div.rni.f32 %f32_0, %f32_1, %f32_2;")
    page.bad("P0503", "ins.div.legacy", "div.f32 %f32_0, %f32_1, %f32_2;", "div.f64 %f64_0, %f64_1, %f64_2;")
    page.bad("P0202", "ins.div.legacy", "div.ftz.f32 %f32_0, %f32_1, %f32_2;")
    counts(page, "ins.div.approx.f32", "div.approx.f32", ["%f32_0", "%f32_1", "%f32_2"])
    counts(page, "ins.div.full.f32", "div.full.f32", ["%f32_0", "%f32_1", "%f32_2"])
    counts(page, "ins.div.rnd.f64", "div.rn.f64", ["%f64_0", "%f64_1", "%f64_2"])


def unary(page):
    page.begin("functions of one value")
    for op, rounded in UNARY:
        ids = f"ins.{op}.approx.f32"
        for tail in words(["approx"], ["", "ftz"]):
            page.ok(f"{ids} fp.round_table", f"{op}{tail}.f32 {regs('f32', 2)};", f"{op}{tail}.f32 %f32_0, 0.5;")
            page.bad("P0202", ids, f"{op}{tail}.sat.f32 {regs('f32', 2)};", f"{op}{tail}.rn.f32 {regs('f32', 2)};")
        good = ["f32", "f64"] if op == "rsqrt" else ["f32"]
        later = HALVES if op == "ex2" else []
        page.types("P0202", ids, good + later, lambda ty: f"{op}.approx.{ty} {regs(ty, 2)};")
        page.bad("P0501", ids, *[f"{op}.approx.{ty} {regs(ty, 2)};" for ty in later])
        counts(page, ids, f"{op}.approx.f32", ["%f32_0", "%f32_1"])
        page.bad("P0503", f"ins.{op}.legacy", f"{op}.f32 {regs('f32', 2)};")
        if rounded or op == "rsqrt":
            page.bad("P0503", f"ins.{op}.legacy", f"{op}.f64 {regs('f64', 2)};")
        else:
            page.bad("P0202", f"ins.{op}.legacy", f"{op}.f64 {regs('f64', 2)};")
        page.bad("P0202", f"ins.{op}.legacy", f"{op}.ftz.f32 {regs('f32', 2)};")
        for rnd in ROUND:
            if rounded:
                page.ok(f"ins.{op}.rnd.f32 fp.round_table", f"{op}.{rnd}.f32 {regs('f32', 2)};", f"{op}.{rnd}.ftz.f32 {regs('f32', 2)};")
                page.ok(f"ins.{op}.rnd.f64 fp.round_table", f"{op}.{rnd}.f64 {regs('f64', 2)};")
                page.bad("P0202", f"ins.{op}.rnd.f64", f"{op}.{rnd}.ftz.f64 {regs('f64', 2)};")
                page.bad("P0202", f"ins.{op}.rnd.f32", f"{op}.{rnd}.sat.f32 {regs('f32', 2)};", f"{op}.{rnd}.f16 {regs('f16', 2)};")
            else:
                page.bad("P0202", ids, f"{op}.{rnd}.f32 {regs('f32', 2)};")
        page.bad("P0202", ids, f"{op}.full.f32 {regs('f32', 2)};")
        page.order(ids, f"{op}.ftz.approx.f32 {regs('f32', 2)};")
        for ty in ("u32", "f64", "b64", "pred", "f16"):
            page.bad("P0205", ids, f"{op}.approx.f32 %f32_0, {r(ty, 1)};", f"{op}.approx.f32 {r(ty, 1)}, %f32_1;")
    page.ok("ins.rcp.approx.ftz.f64", "rcp.approx.ftz.f64 %f64_0, %f64_1;")
    page.bad("P0202", "ins.rcp.approx.ftz.f64", "rcp.ftz.f64 %f64_0, %f64_1;", "rcp.approx.f64 %f64_0, %f64_1;")
    page.order("ins.rcp.approx.ftz.f64", "rcp.ftz.approx.f64 %f64_0, %f64_1;")
    page.ok("ins.rsqrt.approx.f64", "rsqrt.approx.f64 %f64_0, %f64_1;")
    page.ok("ins.rsqrt.approx.ftz.f64", "rsqrt.approx.ftz.f64 %f64_0, %f64_1;")
    page.bad("P0202", "ins.rsqrt.approx.ftz.f64", "rsqrt.ftz.f64 %f64_0, %f64_1;", "rsqrt.rn.f64 %f64_0, %f64_1;")
    for op in ("sqrt", "sin", "cos", "lg2", "ex2"):
        page.bad("P0202", f"ins.{op}.approx.f32", f"{op}.approx.ftz.f64 {regs('f64', 2)};")
    for op in ("abs", "neg"):
        for ftz in ("", ".ftz"):
            page.ok(f"ins.{op}.f32 fp.round_table", f"{op}{ftz}.f32 {regs('f32', 2)};")
        page.ok(f"ins.{op}.f64 fp.round_table", f"{op}.f64 {regs('f64', 2)};")
        page.bad("P0202", f"ins.{op}.f64", f"{op}.ftz.f64 {regs('f64', 2)};")
        page.bad("P0202", f"ins.{op}.f32", f"{op}.sat.f32 {regs('f32', 2)};", f"{op}.rn.f32 {regs('f32', 2)};", f"{op}.approx.f32 {regs('f32', 2)};")
        counts(page, f"ins.{op}.f32", f"{op}.f32", ["%f32_0", "%f32_1"])
    for op in ("min", "max"):
        for ftz in ("", ".ftz"):
            page.ok(f"ins.{op}.f32 fp.round_table", f"{op}{ftz}.f32 {regs('f32', 3)};")
        page.ok(f"ins.{op}.f64 fp.round_table", f"{op}.f64 {regs('f64', 3)};")
        page.bad("P0202", f"ins.{op}.f64", f"{op}.ftz.f64 {regs('f64', 3)};")
        page.bad("P0202", f"ins.{op}.f32", f"{op}.sat.f32 {regs('f32', 3)};", f"{op}.rn.f32 {regs('f32', 3)};", f"{op}.ftz.u32 {regs('u32', 3)};")
        page.bad("P0501", f"ins.{op}.f32", f"{op}.NaN.f32 {regs('f32', 3)};")
        counts(page, f"ins.{op}.f32", f"{op}.f32", ["%f32_0", "%f32_1", "%f32_2"])
    ops = ["finite", "infinite", "number", "notanumber", "normal", "subnormal"]
    for op in ops:
        for ty in ("f32", "f64"):
            page.ok("ins.testp", f"testp.{op}.{ty} %pred_0, {r(ty)};")
    page.types("P0202", "ins.testp", ["f32", "f64"], lambda ty: f"testp.finite.{ty} %pred_0, {r(ty)};")
    page.bad("P0202", "ins.testp", "testp.f32 %pred_0, %f32_0;", "testp.nan.f32 %pred_0, %f32_0;", "testp.zero.f32 %pred_0, %f32_0;", "testp.finite.ftz.f32 %pred_0, %f32_0;")
    page.bad("P0205", "ins.testp", "testp.finite.f32 %b32_0, %f32_0;", "testp.finite.f64 %pred_0, %f32_0;", "testp.normal.f32 %pred_0, %u32_0;")
    counts(page, "ins.testp", "testp.normal.f32", ["%pred_0", "%f32_0"])
    for ty in ("f32", "f64"):
        page.ok("ins.copysign", f"copysign.{ty} {regs(ty, 3)};", f"copysign.{ty} {r(ty)}, -1.0, {r(ty, 1)};")
    page.types("P0202", "ins.copysign", ["f32", "f64"], lambda ty: f"copysign.{ty} {regs(ty, 3)};")
    page.bad("P0202", "ins.copysign", "copysign.ftz.f32 %f32_0, %f32_1, %f32_2;", "copysign.rn.f32 %f32_0, %f32_1, %f32_2;")
    counts(page, "ins.copysign", "copysign.f32", ["%f32_0", "%f32_1", "%f32_2"])


def agreement(page):
    page.begin("registers of floating-point instructions")
    for ty in ("f32", "f64"):
        for reg in ["pred"] + REGISTERS:
            for line in (f"add.{ty} {r(reg, 3)}, {r(ty, 1)}, {r(ty, 2)};", f"add.{ty} {r(ty)}, {r(reg, 3)}, {r(ty, 2)};", f"fma.rn.{ty} {r(ty)}, {r(ty, 1)}, {r(ty, 2)}, {r(reg, 3)};"):
                ids = f"ins.add.{ty}" if line.startswith("add") else f"ins.fma.{ty}"
                page.ok(ids, line) if agrees(ty, reg) else page.bad("P0205", ids, line)
    page.bad("P0204", "ins.add.f32", "add.f32 %f32_0, -%f32_1, %f32_2;", "add.f32 %f32_0, [gword], %f32_2;", "add.f32 1.0, %f32_1, %f32_2;", "add.f32 %f32_0, _, %f32_2;")
    page.bad("P0212", "ins.add.f32", "add.f32 %f32_0, %f32_1, %tid.x;")


def gates(page):
    page.begin("single precision of the first version", version="1.0", target="sm_10", wide=False)
    for op in ("add", "sub", "mul"):
        for tail in words(["", "rn", "rz"], ["", "sat"]):
            page.ok(f"ins.{op}.f32", f"{op}{tail}.f32 {regs('f32', 3)};")
        page.bad("P0501", f"ins.{op}.f32", f"{op}.rm.f32 {regs('f32', 3)};", f"{op}.rp.f32 {regs('f32', 3)};")
    for tail in ("", ".sat"):
        page.ok("ins.mad.f32.sm1x", f"mad{tail}.f32 {regs('f32', 4)};")
    for op in ("div", "min", "max"):
        page.ok("ins.div.legacy" if op == "div" else f"ins.{op}.f32", f"{op}.f32 {regs('f32', 3)};")
    for op, _ in UNARY:
        page.ok(f"ins.{op}.legacy", f"{op}.f32 {regs('f32', 2)};")
    for op in ("abs", "neg"):
        page.ok(f"ins.{op}.f32", f"{op}.f32 {regs('f32', 2)};")
    page.begin("forms without modifiers, last version that has them", version="1.3", target="sm_13", wide=False)
    page.ok("ins.div.legacy", "div.f32 %f32_0, %f32_1, %f32_2;", "div.f64 %f64_0, %f64_1, %f64_2;")
    page.ok("ins.mad.f64.legacy", "mad.f64 %f64_0, %f64_1, %f64_2, %f64_3;")
    for op, rounded in UNARY:
        page.ok(f"ins.{op}.legacy", f"{op}.f32 {regs('f32', 2)};")
        if rounded or op == "rsqrt":
            page.ok(f"ins.{op}.legacy", f"{op}.f64 {regs('f64', 2)};")
        else:
            page.bad("P0202", f"ins.{op}.legacy", f"{op}.f64 {regs('f64', 2)};")
        page.bad("P0501", f"ins.{op}.approx.f32", f"{op}.approx.f32 {regs('f32', 2)};")
    page.bad("P0501", "ins.div.approx.f32", "div.approx.f32 %f32_0, %f32_1, %f32_2;")
    page.bad("P0501", "ins.div.full.f32", "div.full.f32 %f32_0, %f32_1, %f32_2;")
    page.bad("P0501", "ins.div.rnd.f64", "div.rn.f64 %f64_0, %f64_1, %f64_2;")
    page.bad("P0501", "ins.fma.f64", "fma.rn.f64 %f64_0, %f64_1, %f64_2, %f64_3;")
    page.bad("P0501", "fp.ftz_default", "add.ftz.f32 %f32_0, %f32_1, %f32_2;", "mul.rn.ftz.f32 %f32_0, %f32_1, %f32_2;", "abs.ftz.f32 %f32_0, %f32_1;", "min.ftz.f32 %f32_0, %f32_1, %f32_2;")
    page.begin("forms without modifiers, first version that lacks them", version="1.4", target="sm_13", wide=False)
    for op, rounded in UNARY:
        page.bad("P0503", f"ins.{op}.legacy", f"{op}.f32 {regs('f32', 2)};")
        if rounded or op == "rsqrt":
            page.bad("P0503", f"ins.{op}.legacy", f"{op}.f64 {regs('f64', 2)};")
        page.ok(f"ins.{op}.approx.f32", f"{op}.approx.f32 {regs('f32', 2)};", f"{op}.approx.ftz.f32 {regs('f32', 2)};")
        if rounded:
            page.ok(f"ins.{op}.rnd.f64", f"{op}.rn.f64 {regs('f64', 2)};")
            page.bad("P0502", f"ins.{op}.rnd.f32", f"{op}.rn.f32 {regs('f32', 2)};", f"{op}.rn.ftz.f32 {regs('f32', 2)};")
    page.bad("P0503", "ins.div.legacy", "div.f32 %f32_0, %f32_1, %f32_2;", "div.f64 %f64_0, %f64_1, %f64_2;")
    page.bad("P0503", "ins.mad.f64.legacy", "mad.f64 %f64_0, %f64_1, %f64_2, %f64_3;")
    page.ok("ins.rsqrt.approx.f64", "rsqrt.approx.f64 %f64_0, %f64_1;")
    page.ok("ins.div.approx.f32", "div.approx.f32 %f32_0, %f32_1, %f32_2;", "div.approx.ftz.f32 %f32_0, %f32_1, %f32_2;")
    page.ok("ins.div.full.f32", "div.full.f32 %f32_0, %f32_1, %f32_2;")
    page.ok("ins.div.rnd.f64", "div.rn.f64 %f64_0, %f64_1, %f64_2;")
    page.bad("P0502", "ins.div.rnd.f32", "div.rn.f32 %f32_0, %f32_1, %f32_2;")
    page.ok("ins.fma.f64", "fma.rn.f64 %f64_0, %f64_1, %f64_2, %f64_3;")
    page.ok("ins.mad.f64", "mad.rn.f64 %f64_0, %f64_1, %f64_2, %f64_3;")
    page.ok("fp.ftz_default", "add.ftz.f32 %f32_0, %f32_1, %f32_2;", "abs.ftz.f32 %f32_0, %f32_1;", "mad.ftz.sat.f32 %f32_0, %f32_1, %f32_2, %f32_3;")
    page.begin("double precision below sm_13", version="1.4", target="sm_12", wide=False)
    doubles(page, "P0502")
    page.begin("double precision mapped to single", version="1.4", target="sm_12, map_f64_to_f32", wide=False)
    doubles(page, None)
    page.begin("double precision on sm_13", version="1.4", target="sm_13", wide=False)
    doubles(page, None)
    page.begin("roundings below sm_20", version="3.1", target="sm_13", wide=False)
    for op in ("add", "sub", "mul"):
        page.bad("P0502", f"ins.{op}.f32", f"{op}.rm.f32 {regs('f32', 3)};", f"{op}.rp.f32 {regs('f32', 3)};")
        for rnd in ROUND:
            page.ok(f"ins.{op}.f64", f"{op}.{rnd}.f64 {regs('f64', 3)};")
    for op in ("rcp", "sqrt"):
        for rnd in ROUND:
            page.bad("P0502", f"ins.{op}.rnd.f32", f"{op}.{rnd}.f32 {regs('f32', 2)};")
        for rnd in ROUND[1:]:
            page.bad("P0502", f"ins.{op}.rnd.f64", f"{op}.{rnd}.f64 {regs('f64', 2)};")
    for rnd in ROUND:
        page.bad("P0502", "ins.div.rnd.f32", f"div.{rnd}.f32 {regs('f32', 3)};")
        page.bad("P0502", "ins.fma.f32", f"fma.{rnd}.f32 {regs('f32', 4)};")
        page.bad("P0502", "ins.mad.f32", f"mad.{rnd}.f32 {regs('f32', 4)};")
    for rnd in ROUND[1:]:
        page.bad("P0502", "ins.div.rnd.f64", f"div.{rnd}.f64 {regs('f64', 3)};")
    page.bad("P0502", "ins.testp", "testp.normal.f32 %pred_0, %f32_0;")
    page.bad("P0502", "ins.copysign", "copysign.f32 %f32_0, %f32_1, %f32_2;")
    page.bad("P0502", "ins.rcp.approx.ftz.f64", "rcp.approx.ftz.f64 %f64_0, %f64_1;")
    page.ok("ins.mad.f32.sm1x", "mad.f32 %f32_0, %f32_1, %f32_2, %f32_3;", "mad.sat.f32 %f32_0, %f32_1, %f32_2, %f32_3;", "mad.ftz.f32 %f32_0, %f32_1, %f32_2, %f32_3;")
    page.begin("first version with all roundings", version="2.0", target="sm_20", wide=False)
    for rnd in ROUND:
        page.ok("ins.add.f32", f"add.{rnd}.f32 {regs('f32', 3)};")
        page.ok("ins.fma.f32", f"fma.{rnd}.f32 {regs('f32', 4)};")
        page.ok("ins.mad.f32", f"mad.{rnd}.f32 {regs('f32', 4)};")
        page.ok("ins.div.rnd.f32", f"div.{rnd}.f32 {regs('f32', 3)};")
        page.ok("ins.div.rnd.f64", f"div.{rnd}.f64 {regs('f64', 3)};")
        page.ok("ins.rcp.rnd.f64", f"rcp.{rnd}.f64 {regs('f64', 2)};")
        page.ok("ins.sqrt.rnd.f32", f"sqrt.{rnd}.f32 {regs('f32', 2)};")
    page.ok("ins.testp", "testp.normal.f32 %pred_0, %f32_0;")
    page.ok("ins.copysign", "copysign.f64 %f64_0, %f64_1, %f64_2;")
    page.bad("P0501", "ins.rcp.approx.ftz.f64", "rcp.approx.ftz.f64 %f64_0, %f64_1;")
    page.bad("P0501", "ins.rsqrt.approx.ftz.f64", "rsqrt.approx.ftz.f64 %f64_0, %f64_1;")
    page.begin("the reciprocal of the upper word, first version", version="2.1", target="sm_20", wide=False)
    page.ok("ins.rcp.approx.ftz.f64", "rcp.approx.ftz.f64 %f64_0, %f64_1;")
    page.begin("the square root of the upper word, first version", version="4.0", target="sm_20", wide=False)
    page.ok("ins.rsqrt.approx.ftz.f64", "rsqrt.approx.ftz.f64 %f64_0, %f64_1;")
    page.begin("the square root of the upper word, too early", version="3.2", target="sm_20", wide=False)
    page.bad("P0501", "ins.rsqrt.approx.ftz.f64", "rsqrt.approx.ftz.f64 %f64_0, %f64_1;")
    page.begin("mad without rounding, last version for sm_20", version="3.0", target="sm_20", wide=False)
    for tail in words(["", "ftz"], ["", "sat"]):
        page.ok("ins.mad.f32", f"mad{tail}.f32 {regs('f32', 4)};")
    page.begin("mad without rounding, the version that warns", version="3.1", target="sm_30", wide=False)
    page.warn("P0901", "ins.mad.f32", *[f"mad{tail}.f32 {regs('f32', 4)};" for tail in words(["", "ftz"], ["", "sat"])])
    page.begin("mad without rounding, first version that refuses it", version="3.2", target="sm_20", wide=False)
    page.bad("P0503", "ins.mad.f32", *[f"mad{tail}.f32 {regs('f32', 4)};" for tail in words(["", "ftz"], ["", "sat"])])
    for target in ("sm_13", "sm_20", "sm_70"):
        page.begin(f"mapping doubles on {target}", version="6.4", target=f"{target}, map_f64_to_f32 //~ P0111 fp.map_f64_to_f32", wide=False)
    page.begin("mapping doubles on sm_10", version="1.4", target="sm_10, map_f64_to_f32", wide=False)
    page.ok("fp.map_f64_to_f32", "add.f64 %f64_0, %f64_1, %f64_2;", "sqrt.rn.f64 %f64_0, %f64_1;", "rcp.rn.f64 %f64_0, %f64_1;", "div.rn.f64 %f64_0, %f64_1, %f64_2;")


def doubles(page, code):
    """The double-precision forms that `sm_13` brought."""
    put = lambda ids, line: page.bad(code, ids, line) if code else page.ok(ids, line)
    for op in ("add", "sub", "mul", "min", "max"):
        put(f"ins.{op}.f64", f"{op}.f64 {regs('f64', 3)};")
    for op in ("abs", "neg"):
        put(f"ins.{op}.f64", f"{op}.f64 {regs('f64', 2)};")
    put("ins.mad.f64", f"mad.rn.f64 {regs('f64', 4)};")
    put("ins.div.rnd.f64", f"div.rn.f64 {regs('f64', 3)};")
    put("ins.rcp.rnd.f64", f"rcp.rn.f64 {regs('f64', 2)};")
    put("ins.sqrt.rnd.f64", f"sqrt.rn.f64 {regs('f64', 2)};")
    put("ins.rsqrt.approx.f64", f"rsqrt.approx.f64 {regs('f64', 2)};")


def half(page):
    page.begin("half precision")
    for op, n in (("add", 3), ("sub", 3), ("mul", 3), ("fma", 4)):
        for ty, reg in (("f16", "b16"), ("f16x2", "b32")):
            ids = f"ins.{op}.{ty}"
            for tail in words(["rn"] if op == "fma" else ["", "rn"], ["", "ftz"], ["", "sat"]):
                page.ok(ids, f"{op}{tail}.{ty} {regs(ty, n)};", f"{op}{tail}.{ty} {regs(reg, n)};")
            for rnd in ROUND[1:]:
                page.bad("P0202", ids, f"{op}.{rnd}.{ty} {regs(ty, n)};")
            page.order(ids, f"{op}.rn.sat.ftz.{ty} {regs(ty, n)};")
            page.bad("P0202", ids, f"{op}.rn.approx.{ty} {regs(ty, n)};")
            page.bad("P0204", ids, f"{op}.rn.{ty} {regs(ty, n - 1)}, 1.0;", f"{op}.rn.{ty} {regs(ty, n - 1)}, 0x3c00;", f"{op}.rn.{ty} {r(ty)}, 1, {', '.join(r(ty, i) for i in range(2, n))};")
            counts(page, ids, f"{op}.rn.{ty}", [r(ty, i) for i in range(n)])
    for tail in words(["", "ftz"], ["", "sat"]):
        for ty in HALVES:
            page.warn("P0903", f"ins.fma.{ty}", f"fma{tail}.{ty} {regs(ty, 4)};")
    for ty, reg in (("f16", "b16"), ("f16x2", "b32")):
        for ftz in ("", ".ftz"):
            page.ok(f"ins.neg.{ty}", f"neg{ftz}.{ty} {regs(ty, 2)};", f"neg{ftz}.{ty} {regs(reg, 2)};")
        page.bad("P0202", f"ins.neg.{ty}", f"neg.rn.{ty} {regs(ty, 2)};", f"neg.sat.{ty} {regs(ty, 2)};")
        page.bad("P0204", f"ins.neg.{ty}", f"neg.{ty} {r(ty)}, 1.0;")
        counts(page, f"ins.neg.{ty}", f"neg.{ty}", [r(ty), r(ty, 1)])
    for ty in HALVES:
        for reg in ["pred"] + REGISTERS:
            for line in (f"add.{ty} {r(reg, 3)}, {r(ty, 1)}, {r(ty, 2)};", f"add.{ty} {r(ty)}, {r(reg, 3)}, {r(ty, 2)};", f"fma.rn.{ty} {r(ty)}, {r(ty, 1)}, {r(ty, 2)}, {r(reg, 3)};",
                         f"neg.{ty} {r(ty)}, {r(reg, 3)};"):
                ids = f"ins.{line[:3]}.{ty}"
                page.ok(ids, line) if agrees(ty, reg) else page.bad("P0205", ids, line)
        for op in ("mad", "div", "sqrt", "rcp", "sin", "copysign"):
            n = {"mad": 4, "div": 3, "copysign": 3}.get(op, 2)
            tail = "" if op == "copysign" else ".rn" if op in ("mad", "div", "sqrt", "rcp") else ".approx"
            page.bad("P0202", "", f"{op}{tail}.{ty} {regs(ty, n)};")
    lines = [(f"ins.{op}.{ty}", f"{op}.rn.{ty} {regs(ty, n)};") for op, n in (("add", 3), ("sub", 3), ("mul", 3), ("fma", 4)) for ty in HALVES]
    for version, target, code in (("4.2", "sm_53", None), ("4.1", "sm_50", "P0501"), ("4.2", "sm_52", "P0502"), ("6.4", "sm_52", "P0502")):
        page.begin(f"half precision for {version} and {target}", version=version, target=target)
        for ids, line in lines:
            line = line.replace("%f16x2", "%b32").replace("%f16", "%b16")
            page.bad(code, ids, line) if code else page.ok(ids, line)
    for version, target, code in (("6.0", "sm_53", None), ("5.0", "sm_53", "P0501"), ("6.0", "sm_52", "P0502")):
        page.begin(f"negation of halves for {version} and {target}", version=version, target=target)
        for ty in HALVES:
            line = f"neg.{ty} {'%b16_0, %b16_1' if ty == 'f16' else '%b32_0, %b32_1'};"
            page.bad(code, f"ins.neg.{ty}", line) if code else page.ok(f"ins.neg.{ty}", line)


def pages():
    page = Page("F14_float", "Floating point, PTX ISA 9.7.3.")
    for part in (arithmetic, division, unary, agreement, gates):
        part(page)
    yield page
    page = Page("F15_half", "Half precision, PTX ISA 9.7.4.")
    half(page)
    yield page
