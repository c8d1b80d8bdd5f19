//! A warp without a program, to execute single steps.

use ptx::check::module::AddressSize;
use ptx::ir::{Inst, RegCounts};
use ptx_exec::bind::lone_step;
use ptx_exec::bound::{Exec, StepFn, Stepped};
use ptx_exec::lanes::{LANES, Lane, LaneMask, Registers};
use ptx_exec::mem::{Memory, View};
use ptx_exec::warp::{GridShape, WarpState};
use std::sync::Arc;

/// Registers of 32 and of 64 bits: a matrix product has up to 28.
const COUNT: u32 = 64;

/// Registers, a warp and memory.
pub(super) struct Machine {
    pub(super) regs: Registers,
    pub(super) warp: WarpState,
    view: View,
}

impl Machine {
    /// A machine whose registers are zero, with enough registers for any instruction of the table.
    pub(super) fn new() -> Self {
        let grid = GridShape {
            ntid: [32, 1, 1],
            nctaid: [1, 1, 1],
            gridid: 1,
            began: 0,
            nsmid: 1,
            dynamic_shared: 0,
            total_shared: 0,
            envreg: [0; 32],
        };
        let memory = Memory::new(AddressSize::Bits64).expect("the system reserves addresses");
        let mut regs = Registers::default();
        let (pred, r16, r32, r64) = (8, 8, COUNT, COUNT);
        regs.reset(RegCounts { pred, r16, r32, r64 });
        Self { regs, warp: WarpState::new(Arc::new(grid), [0; 3], 0), view: View::new(&memory) }
    }

    /// Executes a step in the lanes of the mask.
    pub(super) fn run(&mut self, step: &StepFn, mask: LaneMask) {
        self.try_run(step, mask).expect("no step here touches memory or traps");
    }

    /// As `run`, for a step that may trap.
    pub(super) fn try_run(&mut self, step: &StepFn, mask: LaneMask) -> Stepped {
        let mut exec = Exec {
            mask,
            group: LaneMask::MAX,
            regs: &mut self.regs,
            warp: &mut self.warp,
            mem: &mut self.view,
            frame: 0,
        };
        step(&mut exec)
    }

    /// Fills all registers.
    pub(super) fn fill(&mut self, values: &mut Values) {
        self.regs.pred.iter_mut().for_each(|p| *p = values.random() as u32);
        self.regs.r16.iter_mut().for_each(|r| *r = lanes(|| values.of_width(16) as u16));
        self.regs.r32.iter_mut().for_each(|r| *r = lanes(|| values.of_width(32) as u32));
        self.regs.r64.iter_mut().for_each(|r| *r = lanes(|| values.of_width(64)));
        self.warp.carry = values.random() as u32;
    }
}

fn lanes<T>(mut next: impl FnMut() -> T) -> Lane<T> {
    Lane(std::array::from_fn(|_: usize| next()))
}

/// Binds an isolated instruction.
pub(super) fn bind_alone(inst: &Inst) -> StepFn {
    lone_step(inst).unwrap_or_else(|| panic!("`{}{}` is not bound", inst.op.name(), inst.mods))
}

/// A reproducible sequence of special and random values of every width.
pub(super) struct Values(u64);

impl Values {
    pub(super) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// xorshift64
    pub(super) fn random(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A value of 16, 32 or 64 bits, with probability one half a special one.
    pub(super) fn of_width(&mut self, bits: u32) -> u64 {
        let choice = self.random();
        let floats: [&[u64]; 3] = [
            &[0x3c00, 0x7c00, 0xfc00, 0x7e00, 0x0001, 0x03ff, 0x0400, 0x7bff, 0x8000, 0x4248],
            &[
                0x3f80_0000,
                0x7f80_0000,
                0xff80_0000,
                0x7fc0_0001,
                0x7f80_0001,
                0x0000_0001,
                0x007f_ffff,
                0x0080_0000,
                0x7f7f_ffff,
                0x8000_0000,
                0x3f00_0000,
                0xbfc0_0000,
                0x4f00_0000,
                0xcf80_0000,
            ],
            &[
                0x3ff0_0000_0000_0000,
                0x7ff0_0000_0000_0000,
                0xfff0_0000_0000_0000,
                0x7ff8_0000_0000_0001,
                0x7ff0_0000_0000_0001,
                1,
                0x000f_ffff_ffff_ffff,
                0x0010_0000_0000_0000,
                0x7fef_ffff_ffff_ffff,
                0x8000_0000_0000_0000,
                0xbff8_0000_0000_0000,
                0x41e0_0000_0000_0000,
                0xc3e0_0000_0000_0000,
            ],
        ];
        let floats = floats[bits.ilog2() as usize - 4];
        let top = 1u64 << (bits - 1);
        let integers =
            [0, 1, 2, 31, 32, 33, 63, 64, 255, 0x80, 0x7f, top, top - 1, top + 1, u64::MAX, u64::MAX - 1];
        match choice % 8 {
            0 | 1 => floats[(choice >> 8) as usize % floats.len()],
            2 | 3 => integers[(choice >> 8) as usize % integers.len()],
            4 => self.random() % 64,
            _ => self.random(),
        }
    }
}

/// Rotates all lanes of the registers and the carry upwards.
pub(super) fn rotate(regs: &mut Registers, carry: &mut LaneMask, by: usize) {
    regs.pred.iter_mut().for_each(|p| *p = p.rotate_left(by as u32));
    regs.r16.iter_mut().for_each(|r| r.0.rotate_right(by));
    regs.r32.iter_mut().for_each(|r| r.0.rotate_right(by));
    regs.r64.iter_mut().for_each(|r| r.0.rotate_right(by));
    *carry = carry.rotate_left(by as u32);
}

/// All state of a lane that a step may change, as bits.
pub(super) fn lane_state(regs: &Registers, carry: LaneMask, lane: usize) -> Vec<u64> {
    assert!(lane < LANES);
    let bit = |mask: LaneMask| u64::from(mask >> lane & 1);
    let preds = regs.pred.iter().map(|p| bit(*p));
    let r16 = regs.r16.iter().map(|r| u64::from(r.0[lane]));
    let r32 = regs.r32.iter().map(|r| u64::from(r.0[lane]));
    let r64 = regs.r64.iter().map(|r| r.0[lane]);
    preds.chain(r16).chain(r32).chain(r64).chain([bit(carry)]).collect()
}
