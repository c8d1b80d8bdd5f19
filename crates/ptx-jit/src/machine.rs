//! What single instructions are to the planner.

use crate::plan::Machine;
use ptx::ir::{Inst, Src};
use ptx::isa::{Class, Op, Sem, Sreg};

/// This machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Native;

/// Whether the instruction's result depends on nothing but its operands, lane by lane.
pub(crate) fn is_pure(inst: &Inst) -> bool {
    let moves = |src: &Src| {
        matches!(
            src,
            Src::Sreg(
                Sreg::Clock
                    | Sreg::ClockHi
                    | Sreg::Clock64
                    | Sreg::Globaltimer
                    | Sreg::GlobaltimerLo
                    | Sreg::GlobaltimerHi,
                _
            )
        )
    };
    let (reads, writes) = carry(inst);
    inst.row.row().class == Class::Lane && !inst.srcs.iter().any(moves) && !reads && !writes
        || matches!(inst.op, Op::Cvta | Op::CvtaTo | Op::Isspacep)
}

/// Whether the instruction reads and writes the carry flags. PTX ISA §9.7.2.
fn carry(inst: &Inst) -> (bool, bool) {
    use ptx::isa::Word;
    match inst.op {
        Op::AddCc | Op::SubCc | Op::MadCc => (false, true),
        Op::Addc | Op::Subc | Op::Madc => (true, inst.mods.has(Word::Cc)),
        _ => (false, false),
    }
}

impl Machine for Native {
    fn does_sync(&self, inst: &Inst) -> bool {
        matches!(inst.op, Op::ShflSync | Op::VoteSync | Op::BarWarpSync)
    }

    fn is_pure(&self, inst: &Inst) -> bool {
        is_pure(inst)
    }

    fn carry(&self, inst: &Inst) -> (bool, bool) {
        carry(inst)
    }

    fn watches(&self, inst: &Inst) -> bool {
        match inst.op {
            Op::Ld | Op::LdNc | Op::Ldu => inst.mods.sem() != Sem::Weak,
            Op::Atom | Op::Red | Op::Nanosleep => true,
            _ => false,
        }
    }
}
