//! Results of steps compared with the functions of `ptx-sem`, called directly, lane by lane.
//!
//! The list below is written from the manual's names, not from the binding, so a form that is bound to the
//! function of another form fails.

use super::machine::{Machine, Values, bind_alone};
use ptx::ir::{Dst, Inst, RegClass, Src};
use ptx::isa::match_mods;
use ptx_exec::bind::sample;
use ptx_exec::lanes::{LANES, lanes_of};
use ptx_exec::lift::{Slot, Value};
use ptx_sem::*;

/// The instruction with this mnemonic and this many sources, such as `add.sat.s32`.
pub(super) fn named(text: &str, sources: usize) -> Inst {
    let mut words = text.split('.');
    let mnemonic = words.next().expect("a text has a first word");
    let words: Vec<&str> = words.collect();
    let found = match_mods(mnemonic, &words).into_iter().find_map(|(row, mods)| {
        let inst = sample(row, &mods)?;
        (inst.srcs.len() == sources).then_some(inst)
    });
    found.unwrap_or_else(|| panic!("no form `{text}` with {sources} sources"))
}

/// How often each form is executed, with 32 lanes each time.
pub(super) const ROUNDS: usize = 24;

pub(super) fn read<V: Value>(machine: &Machine, src: &Src, lane: usize) -> V {
    let Src::Reg(reg) = src else { panic!("every source is a register") };
    assert_eq!(reg.class, V::Slot::CLASS);
    V::of(V::Slot::file(&machine.regs)[reg.index as usize].0[lane])
}

fn predicate(machine: &Machine, src: &Src, lane: usize) -> bool {
    let Src::Reg(reg) = src else { panic!("every source is a register") };
    assert_eq!(reg.class, RegClass::Pred);
    machine.regs.pred[reg.index as usize] >> lane & 1 != 0
}

/// Executes the instruction many times; `expected` returns each active lane's destination as bits, from the
/// registers before.
pub(super) fn check(text: &str, sources: usize, expected: impl Fn(&Machine, &Inst, usize) -> u64) {
    compare(text, sources, &expected);
}

/// As [`check`]. It is compiled once for all instructions.
fn compare(text: &str, sources: usize, expected: &dyn Fn(&Machine, &Inst, usize) -> u64) {
    let inst = named(text, sources);
    let step = bind_alone(&inst);
    let Dst::Reg(d) = inst.dsts[0] else { panic!("`{text}` has no register to write") };
    let mut machine = Machine::new();
    let mut values = Values::new();
    for round in 0..ROUNDS {
        machine.fill(&mut values);
        let mask = if round % 2 == 0 { u32::MAX } else { values.random() as u32 };
        let want: Vec<u64> = (0..LANES).map(|lane| expected(&machine, &inst, lane)).collect();
        let operands: Vec<Src> = inst.srcs.clone();
        machine.run(&step, mask);
        for lane in lanes_of(mask) {
            let index = d.index as usize;
            let found = match d.class {
                RegClass::Pred => u64::from(machine.regs.pred[index] >> lane & 1),
                RegClass::R16 => u64::from(machine.regs.r16[index].0[lane]),
                RegClass::R32 => u64::from(machine.regs.r32[index].0[lane]),
                RegClass::R64 => machine.regs.r64[index].0[lane],
            };
            assert_eq!(found, want[lane], "{text} {operands:?} lane {lane} round {round}");
        }
    }
}

pub(super) fn one<A: Value, D: Value>(text: &str, f: impl Fn(A) -> D) {
    check(text, 1, |m, inst, lane| f(read(m, &inst.srcs[0], lane)).slot().bits());
}

pub(super) fn two<A: Value, B: Value, D: Value>(text: &str, f: impl Fn(A, B) -> D) {
    check(text, 2, |m, inst, lane| {
        f(read(m, &inst.srcs[0], lane), read(m, &inst.srcs[1], lane)).slot().bits()
    });
}

pub(super) fn three<A: Value, B: Value, C: Value, D: Value>(text: &str, f: impl Fn(A, B, C) -> D) {
    check(text, 3, |m, inst, lane| {
        f(read(m, &inst.srcs[0], lane), read(m, &inst.srcs[1], lane), read(m, &inst.srcs[2], lane))
            .slot()
            .bits()
    });
}

fn truth<A: Value>(text: &str, f: impl Fn(A, A) -> bool) {
    check(text, 2, |m, inst, lane| u64::from(f(read(m, &inst.srcs[0], lane), read(m, &inst.srcs[1], lane))));
}

#[test]
fn integer_arithmetic() {
    two("add.u16", add_u16);
    two("add.s16", add_s16);
    two("add.u32", add_u32);
    two("add.s32", add_s32);
    two("add.u64", add_u64);
    two("add.s64", add_s64);
    two("add.sat.s32", add_sat_s32);
    two("sub.u16", sub_u16);
    two("sub.s16", sub_s16);
    two("sub.u32", sub_u32);
    two("sub.s32", sub_s32);
    two("sub.u64", sub_u64);
    two("sub.s64", sub_s64);
    two("sub.sat.s32", sub_sat_s32);
    two("mul.lo.u16", mul_lo_u16);
    two("mul.lo.s16", mul_lo_s16);
    two("mul.lo.u32", mul_lo_u32);
    two("mul.lo.s32", mul_lo_s32);
    two("mul.lo.u64", mul_lo_u64);
    two("mul.lo.s64", mul_lo_s64);
    two("mul.hi.u16", mul_hi_u16);
    two("mul.hi.s16", mul_hi_s16);
    two("mul.hi.u32", mul_hi_u32);
    two("mul.hi.s32", mul_hi_s32);
    two("mul.hi.u64", mul_hi_u64);
    two("mul.hi.s64", mul_hi_s64);
    two("mul.wide.u16", mul_wide_u16);
    two("mul.wide.s16", mul_wide_s16);
    two("mul.wide.u32", mul_wide_u32);
    two("mul.wide.s32", mul_wide_s32);
    three("mad.lo.u16", mad_lo_u16);
    three("mad.lo.s16", mad_lo_s16);
    three("mad.lo.u32", mad_lo_u32);
    three("mad.lo.s32", mad_lo_s32);
    three("mad.lo.u64", mad_lo_u64);
    three("mad.lo.s64", mad_lo_s64);
    three("mad.hi.u16", mad_hi_u16);
    three("mad.hi.s16", mad_hi_s16);
    three("mad.hi.u32", mad_hi_u32);
    three("mad.hi.s32", mad_hi_s32);
    three("mad.hi.u64", mad_hi_u64);
    three("mad.hi.s64", mad_hi_s64);
    three("mad.hi.sat.s32", mad_hi_sat_s32);
    three("mad.wide.u16", mad_wide_u16);
    three("mad.wide.s16", mad_wide_s16);
    three("mad.wide.u32", mad_wide_u32);
    three("mad.wide.s32", mad_wide_s32);
    two("mul24.lo.u32", mul24_lo_u32);
    two("mul24.lo.s32", mul24_lo_s32);
    two("mul24.hi.u32", mul24_hi_u32);
    two("mul24.hi.s32", mul24_hi_s32);
    three("mad24.lo.u32", mad24_lo_u32);
    three("mad24.lo.s32", mad24_lo_s32);
    three("mad24.hi.u32", mad24_hi_u32);
    three("mad24.hi.s32", mad24_hi_s32);
    three("mad24.hi.sat.s32", mad24_hi_sat_s32);
    three("sad.u16", sad_u16);
    three("sad.s16", sad_s16);
    three("sad.u32", sad_u32);
    three("sad.s32", sad_s32);
    three("sad.u64", sad_u64);
    three("sad.s64", sad_s64);
    two("div.u16", div_u16);
    two("div.s16", div_s16);
    two("div.u32", div_u32);
    two("div.s32", div_s32);
    two("div.u64", div_u64);
    two("div.s64", div_s64);
    two("rem.u16", rem_u16);
    two("rem.s16", rem_s16);
    two("rem.u32", rem_u32);
    two("rem.s32", rem_s32);
    two("rem.u64", rem_u64);
    two("rem.s64", rem_s64);
    one("abs.s16", abs_s16);
    one("abs.s32", abs_s32);
    one("abs.s64", abs_s64);
    one("neg.s16", neg_s16);
    one("neg.s32", neg_s32);
    one("neg.s64", neg_s64);
    two("min.u16", min_u16);
    two("min.s16", min_s16);
    two("min.u32", min_u32);
    two("min.s32", min_s32);
    two("min.u64", min_u64);
    two("min.s64", min_s64);
    two("max.u16", max_u16);
    two("max.s16", max_s16);
    two("max.u32", max_u32);
    two("max.s32", max_s32);
    two("max.u64", max_u64);
    two("max.s64", max_s64);
}

#[test]
fn bits_and_dot_products() {
    one("popc.b32", popc_b32);
    one("popc.b64", popc_b64);
    one("clz.b32", clz_b32);
    one("clz.b64", clz_b64);
    one("bfind.u32", bfind_u32);
    one("bfind.s32", bfind_s32);
    one("bfind.u64", bfind_u64);
    one("bfind.s64", bfind_s64);
    one("bfind.shiftamt.u32", bfind_shiftamt_u32);
    one("bfind.shiftamt.s32", bfind_shiftamt_s32);
    one("bfind.shiftamt.u64", bfind_shiftamt_u64);
    one("bfind.shiftamt.s64", bfind_shiftamt_s64);
    one("brev.b32", brev_b32);
    one("brev.b64", brev_b64);
    three("fns.b32", fns_b32);
    three("bfe.u32", bfe_u32);
    three("bfe.s32", bfe_s32);
    three("bfe.u64", bfe_u64);
    three("bfe.s64", bfe_s64);
    check("bfi.b32", 4, |m, i, lane| {
        let [a, b, c, d] = [0, 1, 2, 3].map(|k| read::<u32>(m, &i.srcs[k], lane));
        u64::from(bfi_b32(a, b, c, d))
    });
    check("bfi.b64", 4, |m, i, lane| {
        let [a, b] = [0, 1].map(|k| read::<u64>(m, &i.srcs[k], lane));
        let [c, d] = [2, 3].map(|k| read::<u32>(m, &i.srcs[k], lane));
        bfi_b64(a, b, c, d)
    });
    three("dp4a.u32.u32", dp4a_u32_u32);
    three("dp4a.u32.s32", dp4a_u32_s32);
    three("dp4a.s32.u32", dp4a_s32_u32);
    three("dp4a.s32.s32", dp4a_s32_s32);
    three("dp2a.lo.u32.u32", dp2a_lo_u32_u32);
    three("dp2a.lo.u32.s32", dp2a_lo_u32_s32);
    three("dp2a.lo.s32.u32", dp2a_lo_s32_u32);
    three("dp2a.lo.s32.s32", dp2a_lo_s32_s32);
    three("dp2a.hi.u32.u32", dp2a_hi_u32_u32);
    three("dp2a.hi.u32.s32", dp2a_hi_u32_s32);
    three("dp2a.hi.s32.u32", dp2a_hi_s32_u32);
    three("dp2a.hi.s32.s32", dp2a_hi_s32_s32);
}

/// An extended-precision form: value and carry of every lane.
fn carry(
    text: &str,
    sources: usize,
    reads_and_writes: (bool, bool),
    f: impl Fn([u64; 3], bool) -> (u64, bool),
) {
    let inst = named(text, sources);
    let step = bind_alone(&inst);
    let mut machine = Machine::new();
    let mut values = Values::new();
    for _ in 0..ROUNDS {
        machine.fill(&mut values);
        let before = machine.warp.carry;
        let want: Vec<(u64, bool)> = (0..LANES)
            .map(|lane| {
                let mut operands = [0; 3];
                for (value, src) in operands.iter_mut().zip(&inst.srcs) {
                    let Src::Reg(reg) = src else { panic!("every source is a register") };
                    *value = match reg.class {
                        RegClass::R64 => read::<u64>(&machine, src, lane),
                        RegClass::R32 => read::<u32>(&machine, src, lane).into(),
                        RegClass::R16 | RegClass::Pred => panic!("no such form"),
                    };
                }
                f(operands, reads_and_writes.0 && before >> lane & 1 != 0)
            })
            .collect();
        machine.run(&step, u32::MAX);
        let Dst::Reg(d) = inst.dsts[0] else { panic!("`{text}` writes a register") };
        for (lane, (value, out)) in want.into_iter().enumerate() {
            let found = match d.class {
                RegClass::R64 => machine.regs.r64[d.index as usize].0[lane],
                RegClass::R32 | RegClass::R16 | RegClass::Pred => {
                    u64::from(machine.regs.r32[d.index as usize].0[lane])
                }
            };
            let flag = if reads_and_writes.1 { out } else { before >> lane & 1 != 0 };
            assert_eq!((found, machine.warp.carry >> lane & 1 != 0), (value, flag), "{text} lane {lane}");
        }
    }
}

#[test]
fn extended_precision() {
    const WRITES: (bool, bool) = (false, true);
    const READS: (bool, bool) = (true, false);
    const BOTH: (bool, bool) = (true, true);
    let narrow = |(value, flag): (u32, bool)| (u64::from(value), flag);
    carry("add.cc.u32", 2, WRITES, |[a, b, _], _| narrow(add_cc_u32(a as u32, b as u32)));
    carry("add.cc.s64", 2, WRITES, |[a, b, _], _| add_cc_u64(a, b));
    carry("addc.u32", 2, READS, |[a, b, _], cf| narrow(addc_cc_u32(a as u32, b as u32, cf)));
    carry("addc.cc.s32", 2, BOTH, |[a, b, _], cf| narrow(addc_cc_u32(a as u32, b as u32, cf)));
    carry("addc.cc.u64", 2, BOTH, |[a, b, _], cf| addc_cc_u64(a, b, cf));
    carry("sub.cc.s32", 2, WRITES, |[a, b, _], _| narrow(sub_cc_u32(a as u32, b as u32)));
    carry("subc.u64", 2, READS, |[a, b, _], cf| subc_cc_u64(a, b, cf));
    carry("subc.cc.u32", 2, BOTH, |[a, b, _], cf| narrow(subc_cc_u32(a as u32, b as u32, cf)));
    carry("mad.lo.cc.u32", 3, WRITES, |[a, b, c], _| narrow(mad_lo_cc_u32(a as u32, b as u32, c as u32)));
    carry("mad.hi.cc.u64", 3, WRITES, |[a, b, c], _| mad_hi_cc_u64(a, b, c));
    carry("mad.hi.cc.s64", 3, WRITES, |[a, b, c], _| {
        let (value, flag) = mad_hi_cc_s64(a as i64, b as i64, c as i64);
        (value as u64, flag)
    });
    carry("madc.lo.u32", 3, READS, |[a, b, c], cf| narrow(madc_lo_cc_u32(a as u32, b as u32, c as u32, cf)));
    carry("madc.hi.cc.s32", 3, BOTH, |[a, b, c], cf| {
        let (value, flag) = madc_hi_cc_s32(a as i32, b as i32, c as i32, cf);
        (value as u32 as u64, flag)
    });
    carry("madc.hi.u64", 3, READS, |[a, b, c], cf| madc_hi_cc_u64(a, b, c, cf));
}

#[test]
fn logic_and_shifts() {
    two("and.b16", and_b16);
    two("and.b32", and_b32);
    two("and.b64", and_b64);
    two("or.b16", or_b16);
    two("or.b32", or_b32);
    two("or.b64", or_b64);
    two("xor.b16", xor_b16);
    two("xor.b32", xor_b32);
    two("xor.b64", xor_b64);
    one("not.b16", not_b16);
    one("not.b32", not_b32);
    one("not.b64", not_b64);
    one("cnot.b16", cnot_b16);
    one("cnot.b32", cnot_b32);
    one("cnot.b64", cnot_b64);
    let bools = |text: &str, f: fn(bool, bool) -> bool| {
        check(text, 2, |m, i, lane| {
            u64::from(f(predicate(m, &i.srcs[0], lane), predicate(m, &i.srcs[1], lane)))
        });
    };
    bools("and.pred", and_pred);
    bools("or.pred", or_pred);
    bools("xor.pred", xor_pred);
    check("not.pred", 1, |m, i, lane| u64::from(not_pred(predicate(m, &i.srcs[0], lane))));
    two("shl.b16", shl_b16);
    two("shl.b32", shl_b32);
    two("shl.b64", shl_b64);
    two("shr.b16", shr_b16);
    two("shr.b32", shr_b32);
    two("shr.b64", shr_b64);
    two("shr.u16", shr_u16);
    two("shr.u32", shr_u32);
    two("shr.u64", shr_u64);
    two("shr.s16", shr_s16);
    two("shr.s32", shr_s32);
    two("shr.s64", shr_s64);
    three("shf.l.clamp.b32", shf_l_clamp_b32);
    three("shf.l.wrap.b32", shf_l_wrap_b32);
    three("shf.r.clamp.b32", shf_r_clamp_b32);
    three("shf.r.wrap.b32", shf_r_wrap_b32);
    three("prmt.b32", prmt_b32);
    three("prmt.b32.f4e", prmt_f4e_b32);
    three("prmt.b32.b4e", prmt_b4e_b32);
    three("prmt.b32.rc8", prmt_rc8_b32);
    three("prmt.b32.ecl", prmt_ecl_b32);
    three("prmt.b32.ecr", prmt_ecr_b32);
    three("prmt.b32.rc16", prmt_rc16_b32);
}

#[test]
fn single_and_double_precision() {
    for (word, rnd) in [("", Rnd::Rn), (".rn", Rnd::Rn), (".rz", Rnd::Rz), (".rm", Rnd::Rm), (".rp", Rnd::Rp)]
    {
        two(&format!("add{word}.f32"), |a, b| add_f32(a, b, rnd));
        two(&format!("sub{word}.f32"), |a, b| sub_f32(a, b, rnd));
        two(&format!("mul{word}.f32"), |a, b| mul_f32(a, b, rnd));
        two(&format!("add{word}.sat.f32"), |a, b| sat_f32(add_f32(a, b, rnd)));
        two(&format!("mul{word}.ftz.f32"), |a, b| ftz_f32(mul_f32(ftz_f32(a), ftz_f32(b), rnd)));
        two(&format!("sub{word}.ftz.sat.f32"), |a, b| sat_f32(ftz_f32(sub_f32(ftz_f32(a), ftz_f32(b), rnd))));
        two(&format!("add{word}.f64"), |a, b| add_f64(a, b, rnd));
        two(&format!("sub{word}.f64"), |a, b| sub_f64(a, b, rnd));
        two(&format!("mul{word}.f64"), |a, b| mul_f64(a, b, rnd));
        if word.is_empty() {
            continue;
        }
        three(&format!("fma{word}.f32"), |a, b, c| fma_f32(a, b, c, rnd));
        three(&format!("fma{word}.ftz.f32"), |a, b, c| {
            ftz_f32(fma_f32(ftz_f32(a), ftz_f32(b), ftz_f32(c), rnd))
        });
        three(&format!("fma{word}.sat.f32"), |a, b, c| sat_f32(fma_f32(a, b, c, rnd)));
        three(&format!("mad{word}.f32"), |a, b, c| fma_f32(a, b, c, rnd));
        three(&format!("fma{word}.f64"), |a, b, c| fma_f64(a, b, c, rnd));
        three(&format!("mad{word}.f64"), |a, b, c| fma_f64(a, b, c, rnd));
        two(&format!("div{word}.f32"), |a, b| div_f32(a, b, rnd));
        two(&format!("div{word}.ftz.f32"), |a, b| ftz_f32(div_f32(ftz_f32(a), ftz_f32(b), rnd)));
        two(&format!("div{word}.f64"), |a, b| div_f64(a, b, rnd));
        one(&format!("rcp{word}.f32"), |a| rcp_f32(a, rnd));
        one(&format!("rcp{word}.f64"), |a| rcp_f64(a, rnd));
        one(&format!("sqrt{word}.f32"), |a| sqrt_f32(a, rnd));
        one(&format!("sqrt{word}.ftz.f32"), |a| ftz_f32(sqrt_f32(ftz_f32(a), rnd)));
        one(&format!("sqrt{word}.f64"), |a| sqrt_f64(a, rnd));
    }
    two("div.approx.f32", div_approx_f32);
    two("div.full.ftz.f32", |a, b| ftz_f32(div_full_f32(ftz_f32(a), ftz_f32(b))));
    one("abs.f32", abs_f32);
    one("abs.ftz.f32", |a| ftz_f32(abs_f32(ftz_f32(a))));
    one("neg.f32", neg_f32);
    one("abs.f64", abs_f64);
    one("neg.f64", neg_f64);
    two("min.f32", min_f32);
    two("max.f32", max_f32);
    two("min.ftz.f32", |a, b| ftz_f32(min_f32(ftz_f32(a), ftz_f32(b))));
    two("max.f64", max_f64);
    two("min.f64", min_f64);
    two("copysign.f32", copysign_f32);
    two("copysign.f64", copysign_f64);
    one("rcp.approx.f32", rcp_approx_f32);
    one("sqrt.approx.f32", sqrt_approx_f32);
    one("rsqrt.approx.f32", rsqrt_approx_f32);
    one("rsqrt.approx.f64", rsqrt_approx_f64);
    one("rcp.approx.ftz.f64", rcp_approx_ftz_f64);
    one("rsqrt.approx.ftz.f64", rsqrt_approx_ftz_f64);
    one("sin.approx.f32", sin_approx_f32);
    one("cos.approx.ftz.f32", |a| ftz_f32(cos_approx_f32(ftz_f32(a))));
    one("lg2.approx.f32", lg2_approx_f32);
    one("ex2.approx.ftz.f32", |a| ftz_f32(ex2_approx_f32(ftz_f32(a))));
    for (word, op) in [
        ("finite", TestpOp::Finite),
        ("infinite", TestpOp::Infinite),
        ("number", TestpOp::Number),
        ("notanumber", TestpOp::NotANumber),
        ("normal", TestpOp::Normal),
        ("subnormal", TestpOp::Subnormal),
    ] {
        check(&format!("testp.{word}.f32"), 1, |m, i, lane| {
            u64::from(testp_f32(op, read(m, &i.srcs[0], lane)))
        });
        check(&format!("testp.{word}.f64"), 1, |m, i, lane| {
            u64::from(testp_f64(op, read(m, &i.srcs[0], lane)))
        });
    }
}

#[test]
fn half_precision() {
    two("add.f16", add_f16);
    two("sub.rn.f16", sub_f16);
    two("mul.ftz.sat.f16", |a, b| sat_f16(ftz_f16(mul_f16(ftz_f16(a), ftz_f16(b)))));
    three("fma.rn.f16", fma_f16);
    two("add.f16x2", add_f16x2);
    two("sub.sat.f16x2", |a, b| sat_f16x2(sub_f16x2(a, b)));
    two("mul.ftz.f16x2", |a, b| ftz_f16x2(mul_f16x2(ftz_f16x2(a), ftz_f16x2(b))));
    three("fma.rn.f16x2", fma_f16x2);
    one("neg.f16", neg_f16);
    one("abs.f16", abs_f16);
    one("neg.f16x2", neg_f16x2);
    one("abs.ftz.f16x2", |a| ftz_f16x2(abs_f16x2(ftz_f16x2(a))));
}

pub(super) const RELATIONS: [(&str, Cmp); 18] = [
    ("eq", Cmp::Eq),
    ("ne", Cmp::Ne),
    ("lt", Cmp::Lt),
    ("le", Cmp::Le),
    ("gt", Cmp::Gt),
    ("ge", Cmp::Ge),
    ("lo", Cmp::Lo),
    ("ls", Cmp::Ls),
    ("hi", Cmp::Hi),
    ("hs", Cmp::Hs),
    ("equ", Cmp::Equ),
    ("neu", Cmp::Neu),
    ("ltu", Cmp::Ltu),
    ("leu", Cmp::Leu),
    ("gtu", Cmp::Gtu),
    ("geu", Cmp::Geu),
    ("num", Cmp::Num),
    ("nan", Cmp::Nan),
];

#[test]
fn comparisons() {
    for (word, cmp) in &RELATIONS[..6] {
        truth(&format!("setp.{word}.s16"), |a, b| cmp_s16(*cmp, a, b));
        truth(&format!("setp.{word}.s32"), |a, b| cmp_s32(*cmp, a, b));
        truth(&format!("setp.{word}.s64"), |a, b| cmp_s64(*cmp, a, b));
    }
    for (word, cmp) in &RELATIONS[..10] {
        truth(&format!("setp.{word}.u16"), |a, b| cmp_u16(*cmp, a, b));
        truth(&format!("setp.{word}.u32"), |a, b| cmp_u32(*cmp, a, b));
        truth(&format!("setp.{word}.u64"), |a, b| cmp_u64(*cmp, a, b));
        two(&format!("set.{word}.u32.u32"), |a, b| set_u32(cmp_u32(*cmp, a, b)));
        two(&format!("set.{word}.f32.u64"), |a, b| set_f32(cmp_u64(*cmp, a, b)));
    }
    for (word, cmp) in RELATIONS[..6].iter().chain(&RELATIONS[10..]) {
        truth(&format!("setp.{word}.f32"), |a, b| cmp_f32(*cmp, a, b));
        truth(&format!("setp.{word}.ftz.f32"), |a, b| cmp_f32(*cmp, ftz_f32(a), ftz_f32(b)));
        truth(&format!("setp.{word}.f64"), |a, b| cmp_f64(*cmp, a, b));
        truth(&format!("setp.{word}.f16"), |a, b| cmp_f16(*cmp, a, b));
        truth(&format!("setp.{word}.f16x2"), |a: u32, b: u32| cmp_f16(*cmp, a as u16, b as u16));
        two(&format!("set.{word}.s32.f32"), |a, b| set_s32(cmp_f32(*cmp, a, b)));
        two(&format!("set.{word}.f16.f64"), |a, b| set_f16(cmp_f64(*cmp, a, b)));
        two(&format!("set.{word}.f16x2.f16x2"), |a: u32, b: u32| {
            let high = cmp_f16(*cmp, (a >> 16) as u16, (b >> 16) as u16);
            set_f16x2(cmp_f16(*cmp, a as u16, b as u16), high)
        });
    }
    truth("setp.eq.b16", |a, b| cmp_u16(Cmp::Eq, a, b));
    truth("setp.ne.b32", |a, b| cmp_u32(Cmp::Ne, a, b));
    truth("setp.ne.b64", |a, b| cmp_u64(Cmp::Ne, a, b));
    for (word, op) in [("and", BoolOp::And), ("or", BoolOp::Or), ("xor", BoolOp::Xor)] {
        check(&format!("setp.lt.{word}.f32"), 3, |m, i, lane| {
            let t = cmp_f32(Cmp::Lt, read(m, &i.srcs[0], lane), read(m, &i.srcs[1], lane));
            u64::from(bool_op(op, t, predicate(m, &i.srcs[2], lane)))
        });
        check(&format!("set.geu.{word}.u32.f32"), 3, |m, i, lane| {
            let t = cmp_f32(Cmp::Geu, read(m, &i.srcs[0], lane), read(m, &i.srcs[1], lane));
            u64::from(set_u32(bool_op(op, t, predicate(m, &i.srcs[2], lane))))
        });
    }
}

#[test]
fn the_second_predicate_is_the_complement_combined() {
    let inst = named("setp.lt.or.f32", 3);
    let step = bind_alone(&inst);
    let (mut machine, mut values) = (Machine::new(), Values::new());
    for _ in 0..ROUNDS {
        machine.fill(&mut values);
        let want: Vec<bool> = (0..LANES)
            .map(|lane| {
                let t = cmp_f32(
                    Cmp::Lt,
                    read(&machine, &inst.srcs[0], lane),
                    read(&machine, &inst.srcs[1], lane),
                );
                bool_op(BoolOp::Or, !t, predicate(&machine, &inst.srcs[2], lane))
            })
            .collect();
        machine.run(&step, u32::MAX);
        let Dst::Reg(q) = inst.dsts[1] else { panic!("there is a second destination") };
        for (lane, q_wanted) in want.into_iter().enumerate() {
            assert_eq!(machine.regs.pred[q.index as usize] >> lane & 1 != 0, q_wanted, "lane {lane}");
        }
    }
}

#[test]
fn selections() {
    for (text, bits) in [("selp.b16", 16), ("selp.f32", 32), ("selp.s64", 64)] {
        check(text, 3, |m, i, lane| {
            let chosen = if predicate(m, &i.srcs[2], lane) { &i.srcs[0] } else { &i.srcs[1] };
            match bits {
                16 => read::<u16>(m, chosen, lane).into(),
                32 => read::<u32>(m, chosen, lane).into(),
                _ => read::<u64>(m, chosen, lane),
            }
        });
    }
    three("slct.u16.s32", slct_b16_s32);
    three("slct.f32.s32", slct_b32_s32);
    three("slct.b64.s32", slct_b64_s32);
    three("slct.s16.f32", slct_b16_f32);
    three("slct.u32.f32", slct_b32_f32);
    three("slct.f64.f32", slct_b64_f32);
    three("slct.ftz.u32.f32", |a, b, c| slct_b32_f32(a, b, ftz_f32(c)));
}
