"""Miscellaneous instructions (9.7.17) and special registers (chapter 10)."""

from page import Page

PLAIN = [("tid", "u32", True, "1.0", "sm_10"), ("ntid", "u32", True, "1.0", "sm_10"), ("laneid", "u32", False, "1.3", "sm_10"), ("warpid", "u32", False, "1.3", "sm_10"), ("nwarpid", "u32", False, "2.0", "sm_20"),
         ("ctaid", "u32", True, "1.0", "sm_10"), ("nctaid", "u32", True, "1.0", "sm_10"), ("smid", "u32", False, "1.3", "sm_10"), ("nsmid", "u32", False, "2.0", "sm_20"), ("gridid", "u64", False, "1.0", "sm_10")]
PLAIN += [(f"lanemask_{cmp}", "u32", False, "2.0", "sm_20") for cmp in ("eq", "le", "lt", "ge", "gt")]
PLAIN += [("clock", "u32", False, "1.0", "sm_10"), ("clock_hi", "u32", False, "5.0", "sm_20"), ("clock64", "u64", False, "2.0", "sm_20"), ("globaltimer", "u64", False, "3.1", "sm_30"),
          ("globaltimer_lo", "u32", False, "3.1", "sm_30"), ("globaltimer_hi", "u32", False, "3.1", "sm_30"), ("total_smem_size", "u32", False, "4.1", "sm_20"), ("dynamic_smem_size", "u32", False, "4.1", "sm_20")]
NUMBERED = [(f"pm{i}", "u32", False, "1.3" if i < 4 else "3.0", "sm_10" if i < 4 else "sm_20") for i in range(8)] + [(f"pm{i}_64", "u64", False, "4.0", "sm_50") for i in range(8)]
NUMBERED += [(f"envreg{i}", "b32", False, "2.1", "sm_10") for i in range(32)]
BEFORE = {"1.3": "1.2", "2.0": "1.4", "2.1": "2.0", "3.0": "2.3", "3.1": "3.0", "4.0": "3.2", "4.1": "4.0", "5.0": "4.3"}
OLDER = {"sm_20": "sm_13", "sm_30": "sm_20", "sm_50": "sm_37"}


def row(name):
    """The inventory row of a special register."""
    if name.startswith("pm"):
        return "sreg.pm64" if name.endswith("_64") else "sreg.pm0_3" if name[2] in "0123" else "sreg.pm4_7"
    if name.startswith("envreg"):
        return "sreg.envreg"
    return "sreg.globaltimer_lo_hi" if name.startswith("globaltimer_") else f"sreg.{name}"


def registers(page):
    page.begin("special registers")
    for name, ty, vector, _, _ in PLAIN + NUMBERED:
        ids = row(name)
        other = "u64" if ty != "u64" else "u32"
        parts = [f"%{name}.{c}" for c in "xyzw"] if vector else [f"%{name}"]
        for part in parts:
            page.ok(ids, f"mov.{ty} %{ty}_0, {part};", f"mov.b{ty[1:]} %b{ty[1:]}_0, {part};", f"mov.s{ty[1:]} %s{ty[1:]}_0, {part};")
            if ty != "b32":
                page.ok(ids, f"cvt.s64.{ty} %s64_0, {part};", f"cvt.rn.f32.{ty} %f32_0, {part};")
            page.bad("P0212", ids, f"mov.{ty} {part}, %{ty}_0;", f"add.{ty} {part}, %{ty}_0, %{ty}_1;".replace("add.b32", "and.b32"))
            page.bad("P0212", ids, f"add.{ty} %{ty}_0, {part}, 1;".replace("add.b32", "and.b32"), f"st.global.{ty} [gvar], {part};")
            if name == "gridid":
                page.ok(ids, "mov.u32 %u32_0, %gridid;", "mov.u16 %u16_0, %gridid;", "cvt.u32.u16 %u32_0, %gridid;")
            elif name.endswith("_64"):
                page.warn("P0903", ids, f"mov.u32 %u32_0, {part};")
            else:
                page.bad("P0205", ids, f"mov.{other} %{other}_0, {part};")
            short = f"mov.u16 %u16_0, {part};"
            if vector:
                page.ok(ids, short, f"cvt.u32.u16 %u32_0, {part};")
            elif name != "gridid":
                page.bad("P0205", ids, short)
            page.bad("P0205", ids, f"mov.pred %pred_0, {part};")
        page.bad("P0212", ids, f"ld.global.{ty} {parts[0]}, [gvar];", f"setp.eq.{ty} %pred_0, {parts[0]}, 1;")
        if vector:
            page.bad("P0211", ids, f"mov.u32 %u32_0, %{name};", f"mov.u32 %u32_0, %{name}.q;", f"mov.u32 %u32_0, %{name}.r;")
        else:
            page.bad("P0211", ids, f"mov.{ty} %{ty}_0, %{name}.x;")
    page.bad("P0206", "sreg.pm0_3 sreg.pm4_7", "mov.u32 %u32_0, %pm8;", "mov.u32 %u32_0, %pm;", "mov.u32 %u32_0, %pm01;")
    page.bad("P0206", "sreg.pm64", "mov.u64 %u64_0, %pm8_64;", "mov.u64 %u64_0, %pm0_32;")
    page.bad("P0206", "sreg.envreg", "mov.b32 %b32_0, %envreg32;", "mov.b32 %b32_0, %envreg;", "mov.b32 %b32_0, %envreg00;")
    page.bad("P0206", "sreg.tid", "mov.u32 %u32_0, %tidx;", "mov.u32 %u32_0, tid.x;", "mov.u32 %u32_0, %TID.x;")
    page.bad("P0501", "sreg.ctaid", "mov.u32 %u32_0, %clusterid.x;", "mov.u32 %u32_0, %cluster_ctarank;")
    page.bad("P0208", "sreg.laneid", "@%laneid mov.u32 %u32_0, 1;")
    versions = sorted({(v, t) for _, _, _, v, t in PLAIN + NUMBERED})
    for version, target in versions:
        chosen = [(row(n), f"mov.{ty} %{ty}_0, %{n}{'.x' if vec else ''};") for n, ty, vec, v, t in PLAIN + NUMBERED if (v, t) == (version, target)]
        first = "1.0" if version == "1.0" else version
        page.begin(f"registers of {version}", version=first, target="sm_35" if (target, version) == ("sm_30", "3.1") else target, wide=False)
        for ids, line in chosen:
            page.ok(ids, line)
        if version in BEFORE:
            sm = {"1.2": "sm_12", "1.4": "sm_13", "2.0": "sm_20", "2.3": "sm_20", "3.0": "sm_30", "3.2": "sm_35", "4.0": "sm_50", "4.3": "sm_53"}[BEFORE[version]]
            if version != "2.0":
                page.begin(f"registers of {version} in {BEFORE[version]}", version=BEFORE[version], target=sm, wide=False)
                for ids, line in chosen:
                    page.bad("P0501" if not (version == "4.0" and target == "sm_50") else "P0501", ids, line)
            else:
                page.begin(f"registers of {version} in {BEFORE[version]}", version=BEFORE[version], target=sm, wide=False)
                for ids, line in chosen:
                    page.bad("P0501", ids, line)
        if target in OLDER:
            page.begin(f"registers of {version} on {OLDER[target]}", version="6.4", target=OLDER[target], wide=False)
            for ids, line in chosen:
                page.bad("P0502", ids, line)


def instructions(page):
    page.begin("miscellaneous")
    page.ok("ins.brkpt", "brkpt;", "@%pred_0 brkpt;")
    page.ok("ins.trap", "trap;", "@!%pred_0 trap;")
    page.ok("ins.nanosleep", "nanosleep.u32 %u32_0;", "nanosleep.u32 20;", "nanosleep.u32 %b32_0;", "nanosleep.u32 0;")
    page.ok("ins.pmevent", *[f"pmevent {i};" for i in range(16)])
    page.ok("ins.pmevent.mask", "pmevent.mask 0;", "pmevent.mask 1;", "pmevent.mask 0xffff;", "pmevent.mask 0x8001;")
    page.bad("P0210", "ins.pmevent", "pmevent 16;", "pmevent -1;", "pmevent 0xffff;")
    page.bad("P0210", "ins.pmevent.mask", "pmevent.mask 0x10000;", "pmevent.mask -1;", "pmevent.mask 65536;")
    page.bad("P0204", "ins.pmevent", "pmevent %u32_0;", "pmevent 1.0;", "pmevent [gword];")
    page.bad("P0204", "ins.pmevent.mask", "pmevent.mask %u32_0;")
    page.bad("P0203", "ins.pmevent", "pmevent;", "pmevent 1, 2;")
    page.bad("P0203", "ins.pmevent.mask", "pmevent.mask;")
    page.bad("P0203", "ins.brkpt", "brkpt 1;")
    page.bad("P0203", "ins.trap", "trap 1;", "trap %u32_0;")
    page.bad("P0203", "ins.nanosleep", "nanosleep.u32;", "nanosleep.u32 1, 2;")
    page.bad("P0202", "ins.brkpt", "brkpt.sync;")
    page.bad("P0202", "ins.trap", "trap.u32;", "trap.exit;")
    page.bad("P0202", "ins.pmevent", "pmevent.u32 1;", "pmevent.sync 1;")
    page.types("P0202", "ins.nanosleep", ["u32"], lambda ty: f"nanosleep.{ty} 20;")
    page.bad("P0202", "ins.nanosleep", "nanosleep 20;")
    page.bad("P0205", "ins.nanosleep", "nanosleep.u32 %u64_0;", "nanosleep.u32 %f32_0;", "nanosleep.u32 1.5;", "nanosleep.u32 %u16_0;")
    for version, target, ids, line, code in (
            ("1.1", "sm_11", "ins.brkpt", "brkpt;", None), ("1.1", "sm_10", "ins.brkpt", "brkpt;", "P0502"), ("1.0", "sm_10", "ins.trap", "trap;", None),
            ("6.3", "sm_70", "ins.nanosleep", "nanosleep.u32 20;", None), ("6.2", "sm_70", "ins.nanosleep", "nanosleep.u32 20;", "P0501"), ("6.3", "sm_62", "ins.nanosleep", "nanosleep.u32 20;", "P0502"),
            ("1.4", "sm_10", "ins.pmevent", "pmevent 7;", None), ("1.3", "sm_10", "ins.pmevent", "pmevent 7;", "P0501"),
            ("3.0", "sm_20", "ins.pmevent.mask", "pmevent.mask 7;", None), ("2.3", "sm_20", "ins.pmevent.mask", "pmevent.mask 7;", "P0501"), ("3.0", "sm_13", "ins.pmevent.mask", "pmevent.mask 7;", "P0502")):
        page.begin(f"{line[:-1]} for {version} and {target}", version=version, target=target, wide=False)
        page.bad(code, ids, line) if code else page.ok(ids, line)


def pages():
    page = Page("F26_misc", "Miscellaneous instructions, PTX ISA 9.7.17.")
    instructions(page)
    yield page
    page = Page("F27_special", "Special registers, PTX ISA chapter 10.")
    registers(page)
    yield page
