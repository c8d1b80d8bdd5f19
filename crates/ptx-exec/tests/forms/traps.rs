//! Whether the table is right about the rows that can trap ([`ptx::isa::Row::traps`]). Native code removes an
//! instruction that cannot trap if nothing reads its result, and executes it in inactive lanes.
//!
//! Every spelling of every row is executed with invalid operands: no memory is allocated and no object is
//! bound, so no address and no handle is valid. A spelling that traps must belong to a row that can trap, and
//! each such row must have a spelling that traps.

use super::machine::{Machine, Values};
use ptx::ir::Inst;
use ptx::isa::{Op, RowId};
use ptx_exec::bind::{lone_step, sample, supported};
use ptx_exec::lanes::FULL;

/// How often each spelling is executed, with different operands.
const TRIES: u32 = 4;

/// Whether an instruction traps with one of several invalid operands.
fn traps(inst: &Inst, machine: &mut Machine, values: &mut Values) -> bool {
    let Some(step) = lone_step(inst) else {
        // Traps of the interpreter itself have no step: lanes outside of member masks, barrier numbers, stack
        // overflow.
        return !matches!(inst.op, Op::Bra | Op::Ret | Op::Exit);
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
            let inst = sample(id, &mods).expect("a supported form can be made up");
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
    // A matrix instruction is executed by all lanes.
    let whole =
        [Op::WmmaLoad, Op::WmmaStore, Op::WmmaMma, Op::Mma, Op::Ldmatrix, Op::Stmatrix, Op::Movmatrix];
    for id in RowId::all().filter(|id| id.row().traps() && !whole.contains(&id.row().op)) {
        for mods in id.spellings().into_iter().filter(|mods| supported(id, mods)) {
            let inst = sample(id, &mods).expect("a supported form can be made up");
            let Some(step) = lone_step(&inst) else { continue };
            machine.fill(&mut values);
            assert!(machine.try_run(&step, 0).is_ok(), "`{}` traps in no lane", id.row().syntax);
        }
    }
}
