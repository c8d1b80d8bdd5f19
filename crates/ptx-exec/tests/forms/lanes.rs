//! Properties of every step, independent of its function: lanes do not affect each other, inactive lanes keep
//! their registers, and a destination may be a source.

use super::machine::{Machine, Values, bind_alone, lane_state, rotate};
use ptx::ir::{Dst, Inst, Reg, Src};
use ptx::isa::{Class, RowId};
use ptx_exec::bind::{sample, supported};
use ptx_exec::lanes::{FULL, LANES};

/// One instruction of every bound form that acts on each lane's registers separately.
fn lane_instructions() -> Vec<Inst> {
    let mut all = Vec::new();
    for row in RowId::all() {
        // Forms that can trap need valid operands.
        if row.row().class != Class::Lane || row.row().traps() {
            continue;
        }
        for mods in row.spellings() {
            if supported(row, &mods) {
                all.push(sample(row, &mods).expect("a supported form can be made up"));
            }
        }
    }
    assert!(all.len() > 2000, "only {} forms", all.len());
    all
}

#[test]
fn inactive_lanes_keep_their_registers_and_active_ones_do_not_care() {
    let mut values = Values::new();
    let mut machine = Machine::new();
    for inst in lane_instructions() {
        let step = bind_alone(&inst);
        machine.fill(&mut values);
        let (before, carry_before) = (machine.regs.clone(), machine.warp.carry);
        machine.run(&step, FULL);
        let (full, carry_full) = (machine.regs.clone(), machine.warp.carry);
        for mask in [0x0000_0001, 0x8000_0000, 0x0f0f_1234, values.random() as u32] {
            (machine.regs, machine.warp.carry) = (before.clone(), carry_before);
            machine.run(&step, mask);
            for lane in 0..LANES {
                let now = lane_state(&machine.regs, machine.warp.carry, lane);
                let expected = if mask >> lane & 1 != 0 {
                    lane_state(&full, carry_full, lane)
                } else {
                    lane_state(&before, carry_before, lane)
                };
                assert_eq!(now, expected, "{}{} lane {lane} mask {mask:#x}", inst.op.name(), inst.mods);
            }
        }
    }
}

#[test]
fn lanes_do_not_see_each_other() {
    let mut values = Values::new();
    let mut machine = Machine::new();
    for inst in lane_instructions() {
        let step = bind_alone(&inst);
        machine.fill(&mut values);
        let (before, carry_before) = (machine.regs.clone(), machine.warp.carry);
        machine.run(&step, FULL);
        let (mut expected, mut carry) = (machine.regs.clone(), machine.warp.carry);
        rotate(&mut expected, &mut carry, 5);
        (machine.regs, machine.warp.carry) = (before, carry_before);
        rotate(&mut machine.regs, &mut machine.warp.carry, 5);
        machine.run(&step, FULL);
        for lane in 0..LANES {
            let now = lane_state(&machine.regs, machine.warp.carry, lane);
            assert_eq!(
                now,
                lane_state(&expected, carry, lane),
                "{}{} lane {lane}",
                inst.op.name(),
                inst.mods
            );
        }
    }
}

/// The register of a source operand.
fn register_of(src: &Src) -> Option<Reg> {
    match src {
        Src::Reg(reg) => Some(*reg),
        Src::Video(video) => register_of(&video.value),
        Src::Absent | Src::Not(_) | Src::Imm(_) | Src::Sreg(..) | Src::Addr(_) => None,
    }
}

#[test]
fn a_destination_may_be_a_source() {
    let mut values = Values::new();
    let mut machine = Machine::new();
    let mut aliased = 0;
    for inst in lane_instructions() {
        let [Dst::Reg(d) | Dst::Video { reg: d, .. }] = inst.dsts[..] else { continue };
        machine.fill(&mut values);
        let (before, carry) = (machine.regs.clone(), machine.warp.carry);
        for source in inst.srcs.iter().filter_map(register_of).filter(|reg| reg.class == d.class) {
            aliased += 1;
            (machine.regs, machine.warp.carry) = (before.clone(), carry);
            machine.run(&bind_alone(&inst), 0x7fff_00ff);
            let expected = contents(&machine, d);
            let mut overlapping = inst.clone();
            overlapping.dsts = match inst.dsts[0] {
                Dst::Video { bytes, .. } => vec![Dst::Video { reg: source, bytes }],
                Dst::Reg(_) | Dst::Sink => vec![Dst::Reg(source)],
            };
            (machine.regs, machine.warp.carry) = (before.clone(), carry);
            machine.run(&bind_alone(&overlapping), 0x7fff_00ff);
            let found = contents(&machine, source);
            for lane in (0..LANES).filter(|lane| 0x7fff_00ff >> lane & 1 != 0) {
                assert_eq!(found[lane], expected[lane], "{}{} lane {lane}", inst.op.name(), inst.mods);
            }
        }
    }
    assert!(aliased > 1000, "only {aliased} instructions");
}

fn contents(machine: &Machine, reg: Reg) -> [u64; LANES] {
    let index = reg.index as usize;
    std::array::from_fn(|lane| match reg.class {
        ptx::ir::RegClass::Pred => u64::from(machine.regs.pred[index] >> lane & 1),
        ptx::ir::RegClass::R16 => u64::from(machine.regs.r16[index].0[lane]),
        ptx::ir::RegClass::R32 => u64::from(machine.regs.r32[index].0[lane]),
        ptx::ir::RegClass::R64 => machine.regs.r64[index].0[lane],
    })
}
