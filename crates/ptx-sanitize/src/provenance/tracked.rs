//! Static analysis of a function: registers whose provenance memcheck tracks. They satisfy two conditions:
//!
//! * *Forwards:* the register may hold an address, because it is computed from the address of a variable,
//!   from a loaded value, from a parameter, or from an argument of a function. Floating-point results are
//!   never addresses.
//! * *Backwards:* the value may reach the address of an access, an argument of a call, or a store of the
//!   whole register.
//!
//! Invariant: no access of the function depends on an address in a register that is not tracked.

use ptx::check::module::FunctionKind;
use ptx::ir::{ArgPlace, Dst, Function, Inst, ParamPlace, Reg, RegClass, Src, Terminator};
use ptx::isa::{Class, Op, Slot};
use ptx_exec::watch::Interest;
use std::collections::BTreeSet;

/// The instructions whose results are tracked, and those that store what may be an address.
pub(crate) fn interests(function: &Function) -> Vec<Vec<Interest>> {
    let holding = holding(function);
    let tracked = tracked(function, &holding);
    let after = |inst: &Inst| {
        inst.dsts.iter().filter_map(Dst::reg).any(|reg| tracked.contains(&reg)) || stores(inst, &holding)
    };
    Interest::of_function(function, |inst| Interest { before: false, after: after(inst) })
}

fn insts(function: &Function) -> impl Iterator<Item = &Inst> {
    function.blocks.iter().flat_map(|block| block.insts.iter().chain(block.term.inst()))
}

fn registers(places: &[ArgPlace]) -> impl Iterator<Item = Reg> {
    places.iter().filter_map(|place| match place {
        ArgPlace::Reg(reg) => Some(*reg),
        ArgPlace::Frame { .. } | ArgPlace::KernelParam { .. } | ArgPlace::Imm(_) | ArgPlace::None => None,
    })
}

/// Registers that may hold an address.
fn holding(function: &Function) -> BTreeSet<Reg> {
    let mut holding = BTreeSet::new();
    if function.kind != FunctionKind::Entry {
        holding.extend(function.params.iter().filter_map(|slot| match slot.place {
            ParamPlace::Reg(reg) => Some(reg),
            ParamPlace::Frame(_) | ParamPlace::Kernel(_) => None,
        }));
    }
    for block in &function.blocks {
        if let Terminator::Call(call) = &block.term {
            holding.extend(registers(&call.rets));
        }
    }
    loop {
        let before = holding.len();
        for inst in insts(function) {
            if gives_address(inst, &holding) {
                let wide = |reg: &Reg| matches!(reg.class, RegClass::R32 | RegClass::R64);
                holding.extend(inst.dsts.iter().filter_map(Dst::reg).filter(wide));
            }
        }
        if holding.len() == before {
            return holding;
        }
    }
}

/// Whether a result may be an address.
fn gives_address(inst: &Inst, holding: &BTreeSet<Reg>) -> bool {
    let float = |slot| inst.mods.ty_in(slot).is_some_and(|ty| ty.is_float());
    if float(Slot::Dtype) || inst.mods.ty_in(Slot::Dtype).is_none() && float(Slot::Type) {
        return false;
    }
    match inst.op {
        Op::Ld | Op::LdNc | Op::Ldu => inst.mods.ty_in(Slot::Type).is_none_or(|ty| ty.bits() >= 32),
        // Of an exchange of addresses.
        Op::Atom => inst.mods.ty_in(Slot::Type).is_some_and(|ty| ty.bits() >= 64),
        _ => inst.srcs.iter().any(|src| {
            let mut any = matches!(src, Src::Addr(_)) && inst.row.row().class == Class::Lane;
            src.for_each_reg(&mut |reg| any |= holding.contains(&reg));
            any
        }),
    }
}

/// Whether an instruction may store an address.
fn stores(inst: &Inst, holding: &BTreeSet<Reg>) -> bool {
    let float = inst.mods.ty_in(Slot::Type).is_some_and(|ty| ty.is_float());
    inst.op == Op::St && !float && matches!(&inst.srcs[..], [_, Src::Reg(reg)] if holding.contains(reg))
}

/// The registers of a function whose provenance is tracked.
pub(super) fn tracked_registers(function: &Function) -> BTreeSet<Reg> {
    tracked(function, &holding(function))
}

/// Registers that may hold an address, and that an address of an access, an argument or a stored value is
/// computed from.
fn tracked(function: &Function, holding: &BTreeSet<Reg>) -> BTreeSet<Reg> {
    let mut made: Vec<(Reg, Vec<Reg>)> = Vec::new();
    let mut work: Vec<Reg> = Vec::new();
    for inst in insts(function) {
        let mut all = Vec::new();
        for src in &inst.srcs {
            src.for_each_reg(&mut |reg| all.push(reg));
            if let Src::Addr(_) = src {
                src.for_each_reg(&mut |reg| work.push(reg));
            }
        }
        let lane = matches!(inst.row.row().class, Class::Lane | Class::Warp);
        let data = matches!(inst.op, Op::St | Op::Atom | Op::Red);
        if !lane && !data || stores(inst, holding) {
            work.extend(&all);
        }
        made.extend(inst.dsts.iter().filter_map(Dst::reg).map(|reg| (reg, all.clone())));
    }
    for block in &function.blocks {
        if let Terminator::Call(call) = &block.term {
            work.extend(registers(&call.args));
        }
    }
    work.extend(function.returns.iter().filter_map(|slot| match slot.place {
        ParamPlace::Reg(reg) => Some(reg),
        ParamPlace::Frame(_) | ParamPlace::Kernel(_) => None,
    }));
    made.sort_by_key(|(reg, _)| *reg);
    let mut tracked = BTreeSet::new();
    while let Some(reg) = work.pop() {
        if holding.contains(&reg) && tracked.insert(reg) {
            let first = made.partition_point(|(other, _)| *other < reg);
            let of_it = made[first..].iter().take_while(|(other, _)| *other == reg);
            work.extend(of_it.flat_map(|(_, sources)| sources));
        }
    }
    tracked
}
