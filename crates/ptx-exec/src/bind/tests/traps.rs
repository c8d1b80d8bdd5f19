//! Whether the table is right about which rows can trap ([`ptx::isa::Row::traps`]): native code leaves out what cannot where nothing reads
//! the result, and computes it in lanes that do not run.
//!
//! Every spelling of every row is executed with bad operands: nothing is allocated and nothing is bound, so that no address and no handle is
//! good. What traps must be a row that says so, and of each row that says so some spelling must trap.

use super::super::synthesise::{Shape, empty_program, instruction, shape};
use super::super::{Binding, matrix};
use super::machine::{Machine, Values, bind_alone};
use super::supported;
use crate::lanes::FULL;
use crate::layout::Layout;
use ptx::ir::Inst;
use ptx::isa::{Op, RowId};

/// How often each spelling is executed with other operands.
const TRIES: u32 = 4;

/// Whether an instruction traps with one of several bad operands.
fn traps(inst: &Inst, machine: &mut Machine, values: &mut Values) -> bool {
    let step = match shape(inst.op) {
        // What the interpreter itself does with these has no step: lanes outside of their member masks, numbers of barriers, stacks.
        Shape::WarpSync | Shape::Barrier => return true,
        Shape::Flow => return matches!(inst.op, Op::BrxIdx | Op::Call | Op::CallIndirect),
        Shape::Matrix => {
            let (program, layout) = (empty_program(), Layout::default());
            let binding = Binding { program: &program, layout: &layout, kernel: None };
            binding.understood(inst, matrix::matrix).unwrap_or_else(|_| panic!("{}", inst.op.name()))
        }
        Shape::Step => bind_alone(inst),
    };
    (0..TRIES).any(|_| {
        machine.fill(values);
        let lanes = [FULL, 0x8000_0001];
        lanes.iter().any(|mask| machine.try_run(&step, *mask).is_err())
    })
}

#[test]
fn the_table_knows_which_rows_can_trap() {
    let (mut machine, mut values) = (Machine::new(), Values::new());
    for id in RowId::all() {
        let (row, mut trapped, mut bound) = (id.row(), false, 0);
        for mods in id.spellings() {
            if !supported(id, &mods) {
                continue;
            }
            let inst = instruction(id, &mods).expect("a supported form can be made up");
            let now = traps(&inst, &mut machine, &mut values);
            assert!(!now || row.traps(), "`{}` traps, but the table says it cannot: `Op::traps`", row.syntax);
            trapped |= now;
            bound += 1;
        }
        assert!(
            bound == 0 || trapped == row.traps(),
            "`{}` did not trap, but the table says it can: `Op::traps`",
            row.syntax
        );
    }
}

#[test]
fn an_instruction_in_no_lane_does_not_trap() {
    let (mut machine, mut values) = (Machine::new(), Values::new());
    for id in RowId::all().filter(|id| id.row().traps() && shape(id.row().op) == Shape::Step) {
        for mods in id.spellings().into_iter().filter(|mods| supported(id, mods)) {
            let step = bind_alone(&instruction(id, &mods).expect("a supported form can be made up"));
            machine.fill(&mut values);
            assert!(machine.try_run(&step, 0).is_ok(), "`{}` traps in no lane", id.row().syntax);
        }
    }
}
