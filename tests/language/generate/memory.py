"""Loads, stores and addresses: 9.7.8.1, 9.7.8.7 to 9.7.8.13."""

from integer import counts, regs
from page import BITS, REGISTERS, SIGNED, UNSIGNED, Page, fits, r, size

MEM = BITS + UNSIGNED + SIGNED + ["f32", "f64"]
"""The types of memory accesses."""
SCOPES = ["cta", "gpu", "sys"]
LD = {"": "%b64_9", ".const": "cvar", ".global": "gvar", ".local": "lvar", ".param": "kpar", ".shared": "svar"}
"""State spaces of loads, each with an address."""
ST = {space: LD[space] for space in ("", ".global", ".local", ".shared")}
STRONG = {space: LD[space] for space in ("", ".global", ".shared")}


def row(op, space):
    """The inventory row of a plain access."""
    return f"ins.{op}.{space[1:] or 'generic'}"


def vectors(ty):
    """Vector modifiers that a type allows, with the operand."""
    return [("", r(ty))] + [(f".v{n}", "{" + regs(ty, n) + "}") for n in (2, 4) if n * size(ty) <= 128]


def access(op, words, space, address, data):
    """The text of a load or a store."""
    return f"{op}{words} {data}, [{address}];" if op.startswith("ld") else f"{op}{words} [{address}], {data};"


def plain(page):
    for op, spaces, cops in (("ld", LD, ["ca", "cg", "cs", "lu", "cv"]), ("st", ST, ["wb", "cg", "cs", "wt"])):
        page.begin(f"{op}: types and spaces")
        for space, address in spaces.items():
            for ty in MEM:
                for vec, data in vectors(ty):
                    page.ok(row(op, space), access(op, f"{space}{vec}.{ty}", space, address, data))
        page.begin(f"{op}: cache operators and .weak")
        for space, address in spaces.items():
            for cop in cops:
                ids = f"{row(op, space)} " + (f"ld.cache.{cop}" if op == "ld" or cop in ("cg", "cs") else f"st.cache.{cop}")
                page.ok(ids, access(op, f"{space}.{cop}.u32", space, address, "%u32_0"), access(op, f".weak{space}.{cop}.v2.f32", space, address, "{%f32_0, %f32_1}"))
            page.ok(row(op, space), access(op, f".weak{space}.s16", space, address, "%s16_0"))
        for ty in ("b64", "u64", "s64", "f64"):
            page.bad("P0501", row(op, ""), access(op, f".global.v4.{ty}", ".global", "gvar", "{" + regs(ty, 4) + "}"))
        page.begin(f"{op}: what does not exist")
        page.types("P0202", row(op, ".global"), MEM, lambda ty: access(op, f".global.{ty}", ".global", "gvar", r(ty)))
        for cop in {"ld": ["wb", "wt"], "st": ["ca", "lu", "cv"]}[op]:
            page.bad("P0202", row(op, ".global"), access(op, f".global.{cop}.u32", ".global", "gvar", "%u32_0"))
        page.order(row(op, ".global"), access(op, ".global.u32.v2", ".global", "gvar", "{%u32_0, %u32_1}"))
        page.bad("P0202", row(op, ".global"), access(op, ".global", ".global", "gvar", "%u32_0"), access(op, ".global.v3.u32", "", "gvar", "%u32_0"),
                 access(op, ".global.shared.u32", "", "gvar", "%u32_0"), access(op, ".reg.u32", "", "gvar", "%u32_0"), access(op, ".sreg.u32", "", "gvar", "%u32_0"), access(op, ".tex.u32", "", "gvar", "%u32_0"))
        page.bad("P0211", row(op, ".global"), access(op, ".global.v2.u32", "", "gvar", "{%u32_0, %u32_1, %u32_2}"), access(op, ".global.v4.u32", "", "gvar", "{%u32_0, %u32_1}"), access(op, ".global.v2.u32", "", "gvar", "%v4u32_0"),
                 access(op, ".global.u32", "", "gvar", "{%u32_0, %u32_1}"), access(op, ".global.v2.u32", "", "gvar", "%u32_0"))
        page.bad("P0203", row(op, ".global"), f"{op}.global.u32 {'%u32_0' if op == 'ld' else '[gvar]'};", access(op, ".global.u32", "", "gvar", "%u32_0")[:-1] + ", %u32_1;")
        page.bad("P0204", row(op, ".global"), access(op, ".global.u32", "", "gvar", "%u32_0").replace("[", "").replace("]", ""))
        strong = ["relaxed", "acquire"] if op == "ld" else ["relaxed", "release"]
        other = "release" if op == "ld" else "acquire"
        for space in spaces:
            if space not in STRONG:
                page.bad("P0501" if space == ".local" else "P0202", row(op, space) + f" ins.{op}.volatile", access(op, f".volatile{space}.u32", space, spaces[space], "%u32_0"))
                for sem in strong:
                    page.bad("P0202", f"{row(op, space)} ins.{op}.{sem}", access(op, f".{sem}.gpu{space}.u32", space, spaces[space], "%u32_0"))
        for cop in cops:
            name = f"ld.cache.{cop}" if op == "ld" or cop in ("cg", "cs") else f"st.cache.{cop}"
            page.bad("P0202", f"{name} ins.{op}.volatile", access(op, f".volatile.global.{cop}.u32", "", "gvar", "%u32_0"))
            for sem in strong:
                page.bad("P0202", f"{name} ins.{op}.{sem}", access(op, f".{sem}.gpu.global.{cop}.u32", "", "gvar", "%u32_0"))
        for sem in strong:
            page.bad("P0202", f"ins.{op}.{sem}", access(op, f".{sem}.global.u32", "", "gvar", "%u32_0"), access(op, f".{sem}.cta.volatile.u32", "", "%b64_9", "%u32_0"), access(op, f".weak.{sem}.cta.u32", "", "%b64_9", "%u32_0"),
                     access(op, f".{sem}.warp.global.u32", "", "gvar", "%u32_0"), access(op, f".{sem}.gl.global.u32", "", "gvar", "%u32_0"), access(op, f".{sem}.gpu.gpu.global.u32", "", "gvar", "%u32_0"))
        page.bad("P0202", f"ins.{op}.relaxed", access(op, f".{other}.gpu.global.u32", "", "gvar", "%u32_0"), access(op, ".acq_rel.gpu.global.u32", "", "gvar", "%u32_0"), access(op, ".sc.gpu.global.u32", "", "gvar", "%u32_0"),
                 access(op, ".gpu.global.u32", "", "gvar", "%u32_0"))
        page.bad("P0202", f"ins.{op}.volatile", access(op, ".volatile.gpu.global.u32", "", "gvar", "%u32_0"), access(op, ".weak.volatile.global.u32", "", "gvar", "%u32_0"), access(op, ".volatile.volatile.global.u32", "", "gvar", "%u32_0"))
    page.bad("P0202", "ins.st.generic", "st.const.u32 [cvar], %u32_0;", "st.weak.const.u32 [cvar], %u32_0;")
    page.bad("P0202", "ins.st.global", "st.global.nc.u32 [gvar], %u32_0;")


def strong(page):
    for op, sems in (("ld", ["relaxed", "acquire"]), ("st", ["relaxed", "release"])):
        page.begin(f"{op}: volatile and strong accesses")
        for space, address in STRONG.items():
            for ty in MEM:
                for vec, data in vectors(ty):
                    page.ok(f"ins.{op}.volatile", access(op, f".volatile{space}{vec}.{ty}", space, address, data))
                    for sem in sems:
                        for scope in SCOPES:
                            page.ok(f"ins.{op}.{sem}", access(op, f".{sem}.{scope}{space}{vec}.{ty}", space, address, data))
        for space in (".global", ".shared"):
            page.ok(f"ins.{op}.volatile", access(op, f"{space}.volatile.u32", space, STRONG[space], "%u32_0"))
            for sem in sems:
                for scope in SCOPES:
                    page.ok(f"ins.{op}.{sem}", access(op, f"{space}.{sem}.{scope}.u32", space, STRONG[space], "%u32_0"))


def others(page):
    page.begin("read-only loads")
    for ty in MEM:
        for vec, data in vectors(ty):
            for cop in ("", ".ca", ".cg", ".cs"):
                page.ok("ins.ld.global.nc", f"ld.global{cop}.nc{vec}.{ty} {data}, [gvar];")
            for space in ("", ".global"):
                page.ok("ins.ldu", f"ldu{space}{vec}.{ty} {data}, [{'gvar' if space else '%b64_9'}];")
    for space in ("", ".const", ".local", ".param", ".shared"):
        page.bad("P0202", "ins.ld.global.nc", f"ld{space}.nc.u32 %u32_0, [%b64_9];")
    for cop in ("cv", "lu", "wb", "wt"):
        page.bad("P0202", "ins.ld.global.nc", f"ld.global.{cop}.nc.u32 %u32_0, [gvar];")
    page.bad("P0202", "ins.ld.global.nc", "ld.volatile.global.nc.u32 %u32_0, [gvar];", "ld.relaxed.gpu.global.nc.u32 %u32_0, [gvar];", "ld.weak.global.nc.f16 %f16_0, [gvar];")
    page.types("P0202", "ins.ld.global.nc", MEM, lambda ty: f"ld.global.nc.{ty} {r(ty)}, [gvar];")
    page.types("P0202", "ins.ldu", MEM, lambda ty: f"ldu.global.{ty} {r(ty)}, [gvar];")
    for space in ("const", "local", "param", "shared"):
        page.bad("P0202", "ins.ldu", f"ldu.{space}.u32 %u32_0, [%b64_9];")
    page.bad("P0202", "ins.ldu", "ldu.global.ca.u32 %u32_0, [gvar];", "ldu.volatile.global.u32 %u32_0, [gvar];")
    for op, ids in (("ld.global.nc", "ins.ld.global.nc"), ("ldu.global", "ins.ldu")):
        page.bad("P0213" if op == "ldu.global" else "P0501", ids, *[f"{op}.v4.{ty} {{{regs(ty, 4)}}}, [gvar];" for ty in ("b64", "u64", "s64", "f64")])
        page.bad("P0205", ids, f"{op}.u32 %u16_0, [gvar];", f"{op}.f32 %u32_0, [gvar];", f"{op}.f32 %f64_0, [gvar];", f"{op}.u32 %f32_0, [gvar];")
        page.bad("P0207", ids, f"{op}.u32 %u32_0, [svar];", f"{op}.u32 %u32_0, [cvar];")
        page.bad("P0204", ids, f"{op}.u32 %u32_0, %b64_9;")
        counts(page, ids, f"{op}.u32", ["%u32_0", "[gvar]"])
    page.begin("prefetch")
    for level in ("L1", "L2"):
        page.ok("ins.prefetch", f"prefetch.global.{level} [gvar];", f"prefetch.local.{level} [lvar+4];", f"prefetch.{level} [%b64_9];", f"prefetch.global.{level} [%b64_9+128];")
        for space in ("const", "shared", "param"):
            page.bad("P0202", "ins.prefetch", f"prefetch.{space}.{level} [%b64_9];")
    page.ok("ins.prefetchu", "prefetchu.L1 [%b64_9];", "prefetchu.L1 [%b64_9+4];")
    page.bad("P0202", "ins.prefetch", "prefetch.global [gvar];", "prefetch.L3 [%b64_9];", "prefetch.global.L1.u32 [gvar];")
    page.bad("P0202", "ins.prefetchu", "prefetchu.L2 [%b64_9];", "prefetchu.global.L1 [gvar];", "prefetchu [%b64_9];")
    page.bad("P0207", "ins.prefetch", "prefetch.global.L1 [svar];", "prefetch.local.L2 [gvar];")
    page.bad("P0204", "ins.prefetch", "prefetch.global.L1 gvar;", "prefetch.global.L1 %b64_9;")
    page.bad("P0203", "ins.prefetch", "prefetch.global.L1;", "prefetch.global.L1 [gvar], [gvar];")
    page.bad("P0203", "ins.prefetchu", "prefetchu.L1;", "prefetchu.L1 [%b64_9], 1;")
    page.begin("generic addresses")
    for space, var in (("const", "cvar"), ("global", "gvar"), ("local", "lvar"), ("shared", "svar")):
        page.ok("ins.isspacep", f"isspacep.{space} %pred_0, %u64_0;", f"isspacep.{space} %pred_0, %b64_0;")
        page.bad("P0205", "ins.isspacep", f"isspacep.{space} %u32_0, %u64_0;", f"isspacep.{space} %pred_0, %u32_0;", f"isspacep.{space} %pred_0, %f64_0;")
        page.ok("ins.cvta", f"cvta.{space}.u64 %u64_0, %u64_1;", f"cvta.{space}.u64 %b64_0, {var};", f"cvta.{space}.u64 %u64_0, {var}+4;", f"cvta.{space}.u64 %s64_0, %b64_1;")
        page.ok("ins.cvta.to", f"cvta.to.{space}.u64 %u64_0, %u64_1;", f"cvta.to.{space}.u64 %b64_0, %b64_1;")
        page.bad("P0213", "ins.cvta", f"cvta.{space}.u32 %u32_0, %u32_1;", f"cvta.{space}.u32 %u32_0, {var};")
        page.bad("P0213", "ins.cvta.to", f"cvta.to.{space}.u32 %u32_0, %u32_1;")
        page.bad("P0204", "ins.cvta.to", f"cvta.to.{space}.u64 %u64_0, {var};", f"cvta.to.{space}.u64 %u64_0, {var}+4;", f"cvta.to.{space}.u64 %u64_0, [%u64_1];")
        page.bad("P0207", "ins.cvta", f"cvta.{space}.u64 %u64_0, {'gvar' if space != 'global' else 'svar'};")
        page.bad("P0205", "ins.cvta", f"cvta.{space}.u64 %u32_0, %u64_1;", f"cvta.{space}.u64 %u64_0, %u32_1;", f"cvta.{space}.u64 %u64_0, %f64_1;")
        page.bad("P0205", "ins.cvta.to", f"cvta.to.{space}.u64 %u64_0, %u32_1;", f"cvta.to.{space}.u64 %f64_0, %u64_1;")
        counts(page, "ins.cvta", f"cvta.{space}.u64", ["%u64_0", "%u64_1"])
        counts(page, "ins.cvta.to", f"cvta.to.{space}.u64", ["%u64_0", "%u64_1"])
        counts(page, "ins.isspacep", f"isspacep.{space}", ["%pred_0", "%u64_1"])
        page.bad("P0202", "ins.cvta", f"cvta.{space}.b64 %b64_0, %b64_1;", f"cvta.{space}.s64 %s64_0, %s64_1;", f"cvta.{space} %u64_0, %u64_1;")
        page.bad("P0202", "ins.cvta.to", f"cvta.to.{space}.b64 %b64_0, %b64_1;")
        page.bad("P0202", "ins.isspacep", f"isspacep.{space}.u64 %pred_0, %u64_0;")
    page.bad("P0501", "ins.cvta", "cvta.param.u64 %u64_0, kpar;")
    page.bad("P0501", "ins.isspacep", "isspacep.param %pred_0, %u64_0;")
    page.bad("P0202", "ins.isspacep", "isspacep %pred_0, %u64_0;", "isspacep.tex %pred_0, %u64_0;")
    page.bad("P0202", "ins.cvta", "cvta.u64 %u64_0, gvar;", "cvta.tex.u64 %u64_0, %u64_1;")
    page.bad("P0202", "ins.cvta.to", "cvta.to.u64 %u64_0, %u64_1;")


def addresses(page):
    page.begin("addresses")
    for ids, op, d in (("ins.ld.global", "ld.global.u32", "%u32_0"), ("ins.ld.shared", "ld.shared.u32", "%u32_0")):
        var = "gvar" if "global" in op else "svar"
        page.ok(ids, f"{op} {d}, [{var}];", f"{op} {d}, [{var}+4];", f"{op} {d}, [{var}+-4];", f"{op} {d}, [%u64_1];", f"{op} {d}, [%s64_1+8];", f"{op} {d}, [%b64_1+-8];", f"{op} {d}, [%b64_1+0x10];", f"{op} {d}, [%b64_1 + 2 * 4];")
        page.warn("P0903", ids, f"{op} {d}, [16];", f"{op} {d}, [%u64_1-4];")
        page.bad("P0205", ids, f"{op} {d}, [%u16_1];", f"{op} {d}, [%f64_1];", f"{op} {d}, [%pred_1];", f"{op} {d}, [%f32_1];")
        page.bad("P0209", ids, f"{op} {d}, [%u64_1+%u64_2];")
        page.bad("P0210", ids, f"{op} {d}, [%u64_1+0x100000000];", f"{op} {d}, [{var}+-2147483649];")
    page.ok("ins.ld.shared", "ld.shared.u32 %u32_0, [%u32_1];", "ld.shared.u32 %u32_0, [%b32_1+4];")
    page.ok("ins.ld.local", "ld.local.b32 %b32_0, [240];", "ld.local.b32 %b32_0, [%b64_1+-8];")
    page.ok("ins.ld.global", "ld.global.u32 %u32_0, garr[2];", "ld.global.u32 %u32_0, garr[%u64_1];")
    page.warn("P0905", "ins.ld.generic", "ld.u32 %u32_0, [gvar];", "ld.u32 %u32_0, [svar];", "ld.u32 %u32_0, [lvar];")
    page.warn("P0905", "ins.st.generic", "st.u32 [gvar], %u32_0;", "st.u32 [svar], %u32_0;")
    page.bad("P0207", "ins.ld.generic", "ld.u32 %u32_0, [kpar];", "ld.u32 %u32_0, [cvar];")
    page.bad("P0207", "ins.st.generic", "st.u32 [cvar], %u32_0;")
    for space, var in (("const", "gvar"), ("global", "svar"), ("local", "gvar"), ("param", "gvar"), ("shared", "cvar"), ("global", "kpar"), ("shared", "lvar")):
        page.bad("P0207", f"ins.ld.{space}", f"ld.{space}.u32 %u32_0, [{var}];")
        if space not in ("const", "param"):
            page.bad("P0207", f"ins.st.{space}", f"st.{space}.u32 [{var}], %u32_0;")
    page.bad("P0212", "ins.st.param", "st.param.u64 [kpar], %u64_0;")
    page.ok("ins.st.param", "st.param.b32 [callpar], %b32_0;")
    page.bad("P0206", "ins.ld.global", "ld.global.u32 %u32_0, [nowhere];", "ld.global.u32 %u32_0, [%nowhere+4];")
    page.bad("P0212", "ins.ld.global", "ld.global.u32 %u32_0, [%tid.x];")
    page.begin("data registers of loads and stores")
    for ty in MEM:
        for reg in ["pred"] + REGISTERS:
            for op, ids in (("ld", "ins.ld.widen"), ("st", "ins.st.global")):
                line = access(op, f".global.{ty}", "", "gvar", r(reg, 3))
                page.ok(ids, line) if fits(ty, reg) else page.bad("P0205", ids, line)
    page.ok("ins.st.global", "st.global.u32 [gvar], 7;", "st.global.f32 [gvar], 1.5;", "st.global.v2.u32 [gvar], {%u32_0, 7};", "st.global.u8 [gvar], 255;")
    page.bad("P0205", "ins.st.global", "st.global.u32 [gvar], 1.5;", "st.global.v2.u32 [gvar], {%u32_0, 1.5};", "st.global.v2.u32 [gvar], {%u32_0, %f32_1};")
    page.bad("P0205", "ins.ld.global", "ld.global.v2.u32 {%u32_0, %f32_1}, [gvar];", "ld.global.v4.f32 {%f32_0, %f32_1, %f32_2, %u32_3}, [gvar];")
    page.ok("ins.ld.global", "ld.global.v2.u32 {%u32_0, _}, [gvar];", "ld.global.v2.u32 %v2u32_0, [gvar];", "ld.global.v2.u16 {%u32_0, %b64_1}, [gvar];", "ld.global.u32 _, [gvar];")
    page.bad("P0204", "ins.ld.global", "ld.global.u32 1, [gvar];", "ld.global.u32 gvar, [gvar];", "ld.global.v2.u32 {%u32_0, 1}, [gvar];")
    page.bad("P0204", "ins.st.global", "st.global.u32 [gvar], [gvar];", "st.global.u32 [gvar], gvar;", "st.global.u32 %u32_0, [gvar];")
    page.bad("P0212", "ins.st.global", "st.global.u32 [gvar], %tid.x;")
    page.bad("P0212", "ins.ld.global", "ld.global.u32 %tid.x, [gvar];")


def gates(page):
    cops = [("ld.cache.ca", "ld.global.ca.u32 %u32_0, [gvar];"), ("ld.cache.cg", "ld.global.cg.u32 %u32_0, [gvar];"), ("ld.cache.cs", "st.global.cs.u32 [gvar], %u32_0;"), ("ld.cache.lu", "ld.local.lu.u32 %u32_0, [lvar];"),
            ("ld.cache.cv", "ld.global.cv.u32 %u32_0, [gvar];"), ("st.cache.wb", "st.global.wb.u32 [gvar], %u32_0;"), ("st.cache.wt", "st.global.wt.u32 [gvar], %u32_0;")]
    generic = [("ins.ld.generic", "ld.u32 %u32_0, [%u32_1];"), ("ins.st.generic", "st.u32 [%u32_1], %u32_0;"), ("ins.ldu", "ldu.global.u32 %u32_0, [gvar];"), ("ins.prefetch", "prefetch.global.L1 [gvar];"),
               ("ins.prefetchu", "prefetchu.L1 [%u32_1];"), ("ins.isspacep", "isspacep.global %pred_0, %u32_1;"), ("ins.cvta", "cvta.global.u32 %u32_0, gvar;"), ("ins.cvta.to", "cvta.to.shared.u32 %u32_0, %u32_1;"),
               ("ins.ld.volatile", "ld.volatile.u32 %u32_0, [%u32_1];"), ("ins.st.volatile", "st.volatile.u32 [%u32_1], %u32_0;"), ("ins.st.param", "st.param.b32 [callpar], %b32_0;")]
    strong = [("ins.ld.relaxed", "ld.relaxed.gpu.global.u32 %u32_0, [gvar];"), ("ins.ld.acquire", "ld.acquire.cta.shared.u32 %u32_0, [svar];"), ("ins.st.relaxed", "st.relaxed.sys.global.u32 [gvar], %u32_0;"),
              ("ins.st.release", "st.release.gpu.global.u32 [gvar], %u32_0;"), ("ins.ld.generic", "ld.weak.global.u32 %u32_0, [gvar];"), ("ins.st.generic", "st.weak.global.u32 [gvar], %u32_0;")]
    constant = [("ins.isspacep", "isspacep.const %pred_0, %u32_1;"), ("ins.cvta", "cvta.const.u32 %u32_0, cvar;"), ("ins.cvta.to", "cvta.to.const.u32 %u32_0, %u32_1;")]
    volatile = [("ins.ld.volatile", "ld.volatile.global.u32 %u32_0, [gvar];"), ("ins.st.volatile", "st.volatile.shared.u32 [svar], %u32_0;")]
    double = [("ins.ld.f64_target", "ld.global.f64 %f64_0, [gvar];"), ("ins.ld.f64_target", "st.shared.f64 [svar], %f64_0;")]
    nc = [("ins.ld.global.nc", "ld.global.nc.u32 %u32_0, [gvar];")]
    for version, target, lines, code in (
            ("2.0", "sm_20", cops + generic, None), ("1.4", "sm_13", [c for c in cops + generic if c[0] != "ins.st.param"], "P0501"), ("2.0", "sm_13", [c for c in cops + generic if c[0] != "ins.st.param"], "P0502"), ("3.1", "sm_20", constant, None), ("3.0", "sm_20", constant, "P0501"),
            ("1.1", "sm_10", volatile, None), ("1.0", "sm_10", volatile, "P0501"), ("6.0", "sm_70", strong, None), ("5.0", "sm_62", strong, "P0501"), ("6.0", "sm_62", strong, "P0502"), ("6.4", "sm_62", strong, "P0502"),
            ("1.2", "sm_13", double, None), ("1.4", "sm_12", double, "P0502"), ("1.4", "sm_12, map_f64_to_f32", double, None), ("3.1", "sm_35", nc, None), ("4.0", "sm_32", nc, None), ("3.0", "sm_30", nc, "P0501"), ("3.1", "sm_30", nc, "P0502")):
        page.begin(f"{lines[0][0]} and its like for {version} and {target}", version=version, target=target, wide=False)
        for ids, line in lines:
            page.bad(code, ids, line) if code else page.ok(ids, line)
    page.begin("constant banks", version="2.1", target="sm_10", wide=False)
    for bank in range(11):
        page.ok("ins.ld.const_bank", f"ld.const[{bank}].u32 %u32_0, [%u32_1];")
    page.bad("P0210", "ins.ld.const_bank", "ld.const[11].u32 %u32_0, [%u32_1];", "ld.const[-1].u32 %u32_0, [%u32_1];")
    page.begin("constant banks are deprecated", version="2.2", target="sm_20", wide=False)
    page.warn("P0901", "ins.ld.const_bank", "ld.const[3].u32 %u32_0, [%u32_1];")


def pages():
    page = Page("F18_memory", "Loads, stores and addresses, PTX ISA 9.7.8.1 and 9.7.8.7 to 9.7.8.13.")
    for part in (plain, strong, others, addresses, gates):
        part(page)
    yield page
