//! Calls: arguments and results, indirect calls, and functions that the machine implements.
//!
//! Invariant: an indirect call reaches only device functions of the program that have bound code and that are
//! in its target list, if it has one. Anything else, including a kernel, is a fault.

use crate::bound::{Call, Function};
use crate::context::LaunchContext;
use crate::frame::{Current, WarpFrame};
use crate::lanes::{FULL, Lane, LaneMask, Registers, lanes_of};
use crate::mem::Memory;
use crate::printf::{self, Room};
use crate::trap::{Fault, FaultKind};
use crate::watch::{ArgumentMove, MovePlace};
use ptx::check::module::{AddressSize, FunctionKind};
use ptx::ir::{ArgPlace, Builtin, Callee, ParamPlace, ParamSlot, Reg, RegClass};
use ptx::isa::{Sem, Space};

/// Most bytes of output that a warp keeps between two slices; more is dropped. Output is charged against the
/// slice ([`PRINTED`]), so only a single long call can reach this limit.
const OUTPUT_BYTES: usize = 4 << 20;
/// Bytes read and printed by machine functions that cost as much of the slice as one loop iteration.
const PRINTED: u64 = 32;

/// The result of executing a call.
pub(crate) enum Called {
    /// A machine function has returned.
    Done,
    /// All lanes entered one activation.
    Entered(u32),
    /// Lanes called different functions and are in the list of groups.
    Scattered,
}

/// Executes a call.
///
/// # Errors
/// A fault of the call, of copying arguments, or of a machine function.
pub(crate) fn call(
    frame: &mut WarpFrame,
    context: &LaunchContext<'_>,
    current: &Current,
    call: &Call,
) -> Result<Called, Box<Fault>> {
    if let Some(builtin) = call.builtin {
        return run_builtin(frame, context, current, call, builtin).map(|()| Called::Done);
    }
    match &call.callee {
        Callee::Direct(func) => {
            enter(frame, context, current, call, func.0, current.mask).map(Called::Entered)
        }
        Callee::Indirect { address, allowed } => {
            let addresses = register(&frame.acts[current.act as usize].regs, *address);
            let mut rest = current.mask;
            let mut entered = Vec::new();
            while rest != 0 {
                let lane = rest.trailing_zeros() as usize;
                let target = addresses.0[lane];
                let group = lanes_of(rest).filter(|l| addresses.0[*l] == target).fold(0, |m, l| m | 1 << l);
                let count = context.code.functions.len() as u32;
                let func = Memory::function_at(context.functions, count, target)
                    .filter(|func| allowed.as_ref().is_none_or(|list| list.iter().any(|f| f.0 == *func)))
                    .ok_or_else(|| Fault::new(FaultKind::BadCall, lane))?;
                entered.push((enter(frame, context, current, call, func, group)?, group));
                rest &= !group;
            }
            match entered[..] {
                [(act, _)] => Ok(Called::Entered(act)),
                _ => {
                    for (act, group) in entered {
                        frame.push_ready(act, 0, group);
                    }
                    Ok(Called::Scattered)
                }
            }
        }
    }
}

/// Lanes enter a function, with their arguments.
fn enter(
    frame: &mut WarpFrame,
    context: &LaunchContext<'_>,
    current: &Current,
    call: &Call,
    func: u32,
    mask: LaneMask,
) -> Result<u32, Box<Fault>> {
    let missing = || Fault::new(FaultKind::BadCall, mask.trailing_zeros() as usize);
    let function = context.code.functions.get(func as usize).and_then(Option::as_ref).ok_or_else(missing)?;
    let fits = function.params.len() == call.args.len() && function.returns.len() >= call.rets.len();
    if function.kind == FunctionKind::Entry || !fits {
        return Err(missing());
    }
    let act = frame.enter(current.act, current.block, func, function, mask)?;
    if let Some(site) = frame.view.site() {
        let fresh = frame.acts[act as usize].lanes == mask;
        site.tell(|observer, site| observer.enters(site, act, func, mask, fresh));
    }
    // The callee's frame is above the caller's, so both are in bounds.
    frame.view.set_local_top(frame.acts[act as usize].top);
    for (arg, slot) in call.args.iter().zip(&function.params) {
        pass(frame, mask, (current.act, *arg), (act, *slot))?;
    }
    Ok(act)
}

/// Copies results to the places of the caller.
///
/// # Errors
/// Faults of local memory.
pub(crate) fn give_results(
    frame: &mut WarpFrame,
    current: &Current,
    parent: u32,
    function: &Function,
    call: &Call,
) -> Result<(), Box<Fault>> {
    for (ret, slot) in call.rets.iter().zip(&function.returns) {
        let to = match *ret {
            ArgPlace::Frame { offset, bytes } => {
                ParamSlot { place: ParamPlace::Frame(offset), bytes: bytes.min(slot.bytes), align: 1 }
            }
            ArgPlace::Reg(reg) => ParamSlot { place: ParamPlace::Reg(reg), ..*slot },
            ArgPlace::KernelParam { .. } | ArgPlace::Imm(_) | ArgPlace::None => continue,
        };
        let from = match slot.place {
            ParamPlace::Reg(reg) => ArgPlace::Reg(reg),
            ParamPlace::Frame(offset) | ParamPlace::Kernel(offset) => {
                ArgPlace::Frame { offset, bytes: slot.bytes }
            }
        };
        pass(frame, current.mask, (current.act, from), (parent, to))?;
    }
    Ok(())
}

/// Copies one argument or result between two activations.
fn pass(
    frame: &mut WarpFrame,
    mask: LaneMask,
    (from, arg): (u32, ArgPlace),
    (to, slot): (u32, ParamSlot),
) -> Result<(), Box<Fault>> {
    let source = frame.acts[from as usize].frame;
    let target = frame.acts[to as usize].frame;
    if let Some(site) = frame.view.site() {
        let moved = moved((from, source, arg), (to, target, slot));
        site.tell(|observer, site| observer.moves(site, mask, &moved));
    }
    match (arg, slot.place) {
        (ArgPlace::None, _) => Ok(()),
        (
            ArgPlace::Frame { offset, bytes } | ArgPlace::KernelParam { offset, bytes },
            ParamPlace::Frame(at) | ParamPlace::Kernel(at),
        ) => {
            let from = match arg {
                ArgPlace::KernelParam { .. } => (Space::Param, u64::from(offset)),
                _ => (Space::Local, source + u64::from(offset)),
            };
            frame.view.copy_to_local(mask, from, target + u64::from(at), u64::from(bytes.min(slot.bytes)))
        }
        (_, ParamPlace::Reg(reg)) => {
            let value = argument(frame, from, arg, slot.bytes, mask)?;
            set_register(&mut frame.acts[to as usize].regs, reg, mask, &value);
            Ok(())
        }
        (_, ParamPlace::Frame(at) | ParamPlace::Kernel(at)) => {
            let value = argument(frame, from, arg, slot.bytes, mask)?;
            store_bytes(frame, target + u64::from(at), slot.bytes, mask, &value)
        }
    }
}

/// A copied argument or result, for observers.
fn moved(
    (from, source, arg): (u32, u64, ArgPlace),
    (to, target, slot): (u32, u64, ParamSlot),
) -> ArgumentMove {
    let mut bytes = u64::from(slot.bytes);
    let from = match arg {
        ArgPlace::Reg(reg) => MovePlace::Reg { act: from, reg },
        ArgPlace::Frame { offset, bytes: size } => {
            bytes = bytes.min(u64::from(size));
            MovePlace::Local(source + u64::from(offset))
        }
        ArgPlace::KernelParam { offset, bytes: size } => {
            bytes = bytes.min(u64::from(size));
            MovePlace::Param(u64::from(offset))
        }
        ArgPlace::Imm(_) | ArgPlace::None => MovePlace::Immediate,
    };
    let to = match slot.place {
        ParamPlace::Reg(reg) => MovePlace::Reg { act: to, reg },
        ParamPlace::Frame(at) | ParamPlace::Kernel(at) => MovePlace::Local(target + u64::from(at)),
    };
    ArgumentMove { from, to, bytes }
}

/// The value of an argument, zero-extended. `bytes` is the number of bytes to read from a frame: 1 to 8.
fn argument(
    frame: &mut WarpFrame,
    act: u32,
    arg: ArgPlace,
    bytes: u32,
    mask: LaneMask,
) -> Result<Lane<u64>, Box<Fault>> {
    match arg {
        ArgPlace::None => Ok(Lane::splat(0)),
        ArgPlace::Imm(bits) => Ok(Lane::splat(bits)),
        ArgPlace::Reg(reg) => Ok(register(&frame.acts[act as usize].regs, reg)),
        ArgPlace::Frame { offset, bytes: size } | ArgPlace::KernelParam { offset, bytes: size } => {
            let (space, base) = match arg {
                ArgPlace::KernelParam { .. } => (Space::Param, u64::from(offset)),
                _ => (Space::Local, frame.acts[act as usize].frame + u64::from(offset)),
            };
            let mut value = Lane::splat(0u64);
            for at in 0..u64::from(bytes.min(size).min(8)) {
                let mut byte = Lane::splat(0u8);
                frame.view.load_at(space, base + at, mask, Sem::Weak, &mut byte)?;
                for (value, byte) in value.0.iter_mut().zip(byte.0) {
                    *value |= u64::from(byte) << (8 * at);
                }
            }
            Ok(value)
        }
    }
}

fn store_bytes(
    frame: &mut WarpFrame,
    base: u64,
    bytes: u32,
    mask: LaneMask,
    value: &Lane<u64>,
) -> Result<(), Box<Fault>> {
    for at in 0..u64::from(bytes.min(8)) {
        let byte = Lane(value.0.map(|v| (v >> (8 * at)) as u8));
        frame.view.store_at(Space::Local, base + at, mask, Sem::Weak, &byte)?;
    }
    Ok(())
}

/// A register, zero-extended; a predicate is 0 or 1.
fn register(regs: &Registers, reg: Reg) -> Lane<u64> {
    let index = reg.index as usize;
    match reg.class {
        RegClass::Pred => Lane(std::array::from_fn(|lane| u64::from(regs.pred[index] >> lane & 1))),
        RegClass::R16 => Lane(regs.r16[index].0.map(u64::from)),
        RegClass::R32 => Lane(regs.r32[index].0.map(u64::from)),
        RegClass::R64 => regs.r64[index],
    }
}

fn set_register(regs: &mut Registers, reg: Reg, mask: LaneMask, value: &Lane<u64>) {
    let index = reg.index as usize;
    match reg.class {
        RegClass::Pred => {
            let bits = lanes_of(FULL)
                .filter(|lane| value.0[*lane] & 1 != 0)
                .fold(0, |m: LaneMask, lane| m | 1 << lane);
            regs.pred[index] = regs.pred[index] & !mask | bits & mask;
        }
        RegClass::R16 => regs.r16[index].blend(mask, &Lane(value.0.map(|v| v as u16))),
        RegClass::R32 => regs.r32[index].blend(mask, &Lane(value.0.map(|v| v as u32))),
        RegClass::R64 => regs.r64[index].blend(mask, value),
    }
}

/// Executes a machine function. Lanes act in ascending order.
fn run_builtin(
    frame: &mut WarpFrame,
    context: &LaunchContext<'_>,
    current: &Current,
    call: &Call,
    builtin: Builtin,
) -> Result<(), Box<Fault>> {
    let pointer = match context.address_size {
        AddressSize::Bits32 => 4,
        AddressSize::Bits64 => 8,
    };
    let arg = |frame: &mut WarpFrame, index: usize, bytes: u32| {
        let place = call.args.get(index).copied().unwrap_or(ArgPlace::None);
        argument(frame, current.act, place, bytes, current.mask)
    };
    let mut result = Lane::splat(0u64);
    frame.charge += i64::from(current.mask.count_ones());
    match builtin {
        Builtin::Vprintf => {
            let (format, values) = (arg(frame, 0, pointer)?, arg(frame, 1, pointer)?);
            let mut bytes = 0;
            let stop = || context.end.come();
            for lane in lanes_of(current.mask) {
                let text = frame.view.read_c_string(Space::Generic, lane, format.0[lane])?;
                let room = Room { bytes: OUTPUT_BYTES.saturating_sub(frame.output.len()), stop: &stop };
                let written = printf::format(&mut frame.view, lane, &text, (values.0[lane], pointer), &room)?;
                frame.output.extend_from_slice(&written.text);
                frame.dropped += written.dropped;
                bytes += text.len() as u64 + written.text.len() as u64 + written.dropped;
                result.0[lane] = u64::from(written.arguments);
            }
            frame.charge += i64::try_from(bytes / PRINTED).unwrap_or(i64::MAX);
        }
        Builtin::Malloc => {
            let bytes = arg(frame, 0, pointer)?;
            for lane in lanes_of(current.mask) {
                result.0[lane] = frame.view.malloc(bytes.0[lane]);
                if let Some(site) = frame.view.site() {
                    let (bytes, address) = (bytes.0[lane], result.0[lane]);
                    site.tell(|observer, site| observer.malloc(site, lane, bytes, address));
                }
            }
        }
        Builtin::Free => {
            let address = arg(frame, 0, pointer)?;
            for lane in lanes_of(current.mask) {
                let ignored = frame.view.site().is_some_and(|site| {
                    let site = &*site;
                    site.watch.any(|observer| observer.free(site, lane, address.0[lane]))
                });
                if !ignored {
                    frame.view.free(lane, address.0[lane])?;
                }
            }
        }
        Builtin::AssertFail => {
            let (message, file) = (arg(frame, 0, pointer)?, arg(frame, 1, pointer)?);
            let (line, function) = (arg(frame, 2, 4)?, arg(frame, 3, pointer)?);
            let lane = current.mask.trailing_zeros() as usize;
            let mut text = |address: &Lane<u64>| {
                let bytes = frame.view.read_c_string(Space::Generic, lane, address.0[lane]);
                bytes.map_or_else(|_| "?".to_owned(), |bytes| String::from_utf8_lossy(&bytes).into_owned())
            };
            let (message, file, function) = (text(&message), text(&file), text(&function));
            let line = line.0[lane];
            let whole = format!("{file}:{line}: {function}: assertion `{message}` failed");
            return Err(Fault::new(FaultKind::Assert(whole), lane));
        }
    }
    if let Some(ret) = call.rets.first() {
        let bytes = match builtin {
            Builtin::Malloc => pointer,
            Builtin::Vprintf | Builtin::Free | Builtin::AssertFail => 4,
        };
        let base = frame.acts[current.act as usize].frame;
        if let Some(site) = frame.view.site() {
            let (act, from) = (current.act, MovePlace::Immediate);
            let to = match *ret {
                ArgPlace::Reg(reg) => Some((MovePlace::Reg { act, reg }, 8)),
                ArgPlace::Frame { offset, bytes: size } => {
                    Some((MovePlace::Local(base + u64::from(offset)), u64::from(size.min(bytes))))
                }
                ArgPlace::KernelParam { .. } | ArgPlace::Imm(_) | ArgPlace::None => None,
            };
            if let Some((to, bytes)) = to {
                let moved = ArgumentMove { from, to, bytes };
                site.tell(|observer, site| observer.moves(site, current.mask, &moved));
            }
        }
        match *ret {
            ArgPlace::Reg(reg) => {
                set_register(&mut frame.acts[current.act as usize].regs, reg, current.mask, &result)
            }
            ArgPlace::Frame { offset, bytes: size } => {
                store_bytes(frame, base + u64::from(offset), size.min(bytes), current.mask, &result)?;
            }
            ArgPlace::KernelParam { .. } | ArgPlace::Imm(_) | ArgPlace::None => {}
        }
    }
    Ok(())
}
