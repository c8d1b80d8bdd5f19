//! Special registers (PTX ISA chapter 10).
//!
//! Invariant: a register that is constant for a warp is an ordinary source. The value of a clock depends on
//! the position of the instruction in its block, so only `mov` can read it, with a step of its own
//! ([`clock`]).
//!
//! Choices where the manual is silent: components `.w` are zero (A158); performance counters are zero;
//! `%globaltimer` is the warp's clock plus a start time that is common to all warps of the launch.

use super::Missing;
use crate::lanes::{LANES, Lane};
use crate::lift::{Operand, Slot};
use crate::warp::WarpState;
use ptx::isa::Sreg;

/// A special register as a source.
pub(super) fn read<S: Slot>(sreg: Sreg, component: u8) -> Result<Operand<S>, Missing> {
    let axis = usize::from(component);
    Ok(match sreg {
        Sreg::Tid => match axis {
            0..3 => Operand::Other(Box::new(move |inputs, lanes| widen(&inputs.warp.tid[axis], lanes))),
            _ => Operand::splat(S::default()),
        },
        Sreg::Ntid => uniform(move |warp| vector(warp.grid.ntid, axis)),
        Sreg::Ctaid => uniform(move |warp| vector(warp.ctaid, axis)),
        Sreg::Nctaid => uniform(move |warp| vector(warp.grid.nctaid, axis)),
        Sreg::Laneid
        | Sreg::LanemaskEq
        | Sreg::LanemaskLe
        | Sreg::LanemaskLt
        | Sreg::LanemaskGe
        | Sreg::LanemaskGt => by_lane(move |lane| sreg.of_lane(lane as u32).unwrap_or_default().into()),
        Sreg::Warpid => uniform(|warp| u64::from(warp.warpid)),
        Sreg::Nwarpid => uniform(|warp| u64::from(warp.grid.warps())),
        Sreg::Smid => uniform(|warp| u64::from(warp.smid)),
        Sreg::Nsmid => uniform(|warp| u64::from(warp.grid.nsmid)),
        Sreg::Gridid => uniform(|warp| warp.grid.gridid),
        Sreg::Envreg(number) => {
            uniform(move |warp| warp.grid.envreg.get(usize::from(number)).copied().map_or(0, u64::from))
        }
        Sreg::TotalSmemSize => uniform(|warp| u64::from(warp.grid.total_shared)),
        Sreg::DynamicSmemSize => uniform(|warp| u64::from(warp.grid.dynamic_shared)),
        Sreg::ReservedSmemOffsetBegin
        | Sreg::ReservedSmemOffsetEnd
        | Sreg::ReservedSmemOffsetCap
        | Sreg::ReservedSmemOffset0
        | Sreg::ReservedSmemOffset1 => {
            Operand::splat(S::from_bits(sreg.reserved_smem().map_or(0, u64::from)))
        }
        Sreg::Pm(_) | Sreg::Pm64(_) => Operand::splat(S::default()),
        Sreg::Clock
        | Sreg::ClockHi
        | Sreg::Clock64
        | Sreg::Globaltimer
        | Sreg::GlobaltimerLo
        | Sreg::GlobaltimerHi => return Err(Missing),
    })
}

/// The function that reads a clock, given the number of instructions after it in its block.
pub(super) fn clock(sreg: Sreg) -> Option<fn(&WarpState, u64) -> u64> {
    match sreg {
        Sreg::Clock => Some(|warp, behind| warp.read_clock(behind) & u64::from(u32::MAX)),
        Sreg::ClockHi => Some(|warp, behind| warp.read_clock(behind) >> 32),
        Sreg::Clock64 => Some(WarpState::read_clock),
        Sreg::Globaltimer => Some(WarpState::read_globaltimer),
        Sreg::GlobaltimerLo => Some(|warp, behind| warp.read_globaltimer(behind) & u64::from(u32::MAX)),
        Sreg::GlobaltimerHi => Some(|warp, behind| warp.read_globaltimer(behind) >> 32),
        Sreg::Tid
        | Sreg::Ntid
        | Sreg::Laneid
        | Sreg::Warpid
        | Sreg::Nwarpid
        | Sreg::Ctaid
        | Sreg::Nctaid
        | Sreg::Smid
        | Sreg::Nsmid
        | Sreg::Gridid
        | Sreg::LanemaskEq
        | Sreg::LanemaskLe
        | Sreg::LanemaskLt
        | Sreg::LanemaskGe
        | Sreg::LanemaskGt
        | Sreg::Pm(_)
        | Sreg::Pm64(_)
        | Sreg::Envreg(_)
        | Sreg::TotalSmemSize
        | Sreg::DynamicSmemSize
        | Sreg::ReservedSmemOffsetBegin
        | Sreg::ReservedSmemOffsetEnd
        | Sreg::ReservedSmemOffsetCap
        | Sreg::ReservedSmemOffset0
        | Sreg::ReservedSmemOffset1 => None,
    }
}

fn vector(components: [u32; 3], axis: usize) -> u64 {
    components.get(axis).copied().map_or(0, u64::from)
}

fn uniform<S: Slot>(value: impl Fn(&WarpState) -> u64 + Send + Sync + 'static) -> Operand<S> {
    Operand::Other(Box::new(move |inputs, lanes| *lanes = Lane::splat(S::from_bits(value(inputs.warp)))))
}

fn by_lane<S: Slot>(value: impl Fn(u64) -> u64) -> Operand<S> {
    Operand::Const(Box::new(Lane(std::array::from_fn(|lane| S::from_bits(value(lane as u64))))))
}

fn widen<S: Slot>(from: &Lane<u32>, lanes: &mut Lane<S>) {
    for lane in 0..LANES {
        lanes.0[lane] = S::from_bits(u64::from(from.0[lane]));
    }
}
