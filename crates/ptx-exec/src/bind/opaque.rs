//! Operands that name textures, samplers and surfaces, and queries of them (PTX ISA §5.3, §9.7.9.5, §9.7.9.6,
//! §9.7.10.4).
//!
//! Invariant: a handle is looked up when the instruction executes, so one binding of a kernel works with all
//! bindings of textures.

use super::Missing;
use super::operands::{Bound, Operands};
use crate::bound::{Exec, Stepped};
use crate::lanes::{Lane, LaneMask, lanes_of};
use crate::lift::{Inputs, Operand};
use crate::mem::View;
use crate::texture::{Opaque, is_type};
use crate::trap::{Fault, FaultKind};
use ptx::ir::{Addr, Base, ParamPlace, Src};
use ptx::isa::{Op, Slot, Ty, Word};
use std::sync::Arc;

/// An operand that is a texture, sampler or surface.
pub(super) struct Handle {
    place: Place,
    /// Its name, for traps.
    name: String,
}

/// The place of the handle.
enum Place {
    /// A variable of the module: its address.
    Variable(u64),
    /// A parameter of the kernel: its offset.
    Parameter(u64),
    /// A register.
    Register(Operand<u64>),
}

/// The handles of a warp during one execution, read before memory is accessed.
pub(super) struct Handles<'a> {
    handle: &'a Handle,
    values: Option<Lane<u64>>,
    last: Option<(u64, Arc<Opaque>)>,
}

impl Handle {
    /// The handle operand at index `index`.
    pub(super) fn of(o: &Operands<'_>, index: usize) -> Result<Self, Missing> {
        match o.src_at(index)? {
            Src::Addr(Addr { base: Base::Var(var), index: None, offset: 0 }) => {
                let variable = o.binding.program.variables.get(var.0 as usize).ok_or(Missing)?;
                let place = Place::Variable(o.binding.layout.variable(*var));
                Ok(Self { place, name: format!("`{}`", variable.name) })
            }
            Src::Addr(Addr { base: Base::KernelParam, index: None, offset }) => {
                let offset = u64::try_from(*offset).map_err(|_| Missing)?;
                Ok(Self { place: Place::Parameter(offset), name: parameter_name(o, offset) })
            }
            Src::Reg(_) => {
                let value = o.src::<u64>(index)?;
                Ok(Self { place: Place::Register(value), name: "the register".to_owned() })
            }
            Src::Addr(_) | Src::Absent | Src::Not(_) | Src::Imm(_) | Src::Sreg(..) | Src::Video(_) => {
                Err(Missing)
            }
        }
    }

    /// Reads the handle in every lane.
    pub(super) fn read(&self, inputs: Inputs<'_>) -> Handles<'_> {
        let values = match &self.place {
            Place::Register(value) => Some(value.get(inputs)),
            Place::Variable(_) | Place::Parameter(_) => None,
        };
        Handles { handle: self, values, last: None }
    }
}

impl Handles<'_> {
    /// The object of the handle in a lane.
    pub(super) fn get(&mut self, mem: &mut View, lane: usize) -> Result<Arc<Opaque>, Box<Fault>> {
        let value = match (&self.handle.place, &self.values) {
            (Place::Variable(address), _) => *address,
            (Place::Parameter(offset), _) => *offset,
            (Place::Register(_), values) => values.as_ref().map_or(0, |values| values.0[lane]),
        };
        if let Some((known, opaque)) = &self.last
            && *known == value
        {
            return Ok(Arc::clone(opaque));
        }
        let found = match self.handle.place {
            Place::Parameter(offset) => mem.opaque_param(lane, offset),
            Place::Variable(_) | Place::Register(_) => mem.opaque_at(lane, value),
        };
        let Some(found) = found else {
            let name = &self.handle.name;
            let why = match self.handle.place {
                Place::Register(_) => format!("{value:#x} in {name} names no texture, sampler or surface"),
                Place::Variable(_) | Place::Parameter(_) => format!("{name} is not bound"),
            };
            return Err(Fault::new(FaultKind::BadTexture(why), lane));
        };
        self.last = Some((value, Arc::clone(&found)));
        Ok(found)
    }
}

/// The kernel parameter at an offset, for traps.
fn parameter_name(o: &Operands<'_>, offset: u64) -> String {
    let kernel = o.binding.kernel.and_then(|id| o.binding.program.functions.get(id.0 as usize));
    let slots = kernel.into_iter().flat_map(|f| f.params.iter().zip(&f.param_names));
    let mut here =
        slots.filter(|(slot, _)| matches!(slot.place, ParamPlace::Kernel(at) if u64::from(at) == offset));
    here.next().map_or_else(|| format!("the parameter at offset {offset}"), |(_, name)| format!("`{name}`"))
}

/// A fault of a lane without a memory access.
pub(super) fn fault(kind: FaultKind, lane: usize) -> Box<Fault> {
    Fault::new(kind, lane)
}

/// Computes a 32-bit value for each lane of the mask.
pub(super) fn per_lane(
    mask: LaneMask,
    mut f: impl FnMut(usize) -> Result<u32, Box<Fault>>,
) -> Result<Lane<u32>, Box<Fault>> {
    let mut out = Lane::splat(0);
    for lane in lanes_of(mask) {
        out.0[lane] = f(lane)?;
    }
    Ok(out)
}

/// `txq`, `suq`.
pub(super) fn query(o: &Operands<'_>) -> Bound {
    if o.ty()? != Ty::B32 {
        return Err(Missing);
    }
    let query =
        o.ask(Slot::Query, |word| word != Word::Level && word.ty().is_none(), |mods| mods.get(Slot::Query))?;
    let (d, handle) = (o.dst::<u32>(0)?, Handle::of(o, 0)?);
    let due = if o.inst.op == Op::Suq { Ty::Surfref } else { Ty::Texref };
    let level = if o.has(Word::Level) { Some(o.src::<u32>(1)?) } else { None };
    Ok(Box::new(move |exec: &mut Exec<'_>| -> Stepped {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let inputs = Inputs { regs, warp, frame: *frame };
        let level = level.as_ref().map(|level| level.get(inputs));
        let mut handles = handle.read(inputs);
        let out = per_lane(*mask, |lane| {
            let opaque = handles.get(mem, lane)?;
            opaque
                .query(due, query, level.as_ref().map(|level| level.0[lane]))
                .map_err(|kind| fault(kind, lane))
        })?;
        d.write(regs, *mask, &out);
        Ok(())
    }))
}

/// `istypep`. A value that is no handle has no type.
pub(super) fn istypep(o: &Operands<'_>) -> Bound {
    let ty = o.ty()?;
    let (p, a) = (o.pred_dst(0)?, o.src::<u64>(0)?);
    Ok(Box::new(move |exec: &mut Exec<'_>| -> Stepped {
        let Exec { mask, regs, warp, mem, frame, .. } = exec;
        let values = a.get(Inputs { regs, warp, frame: *frame });
        let mut new = 0;
        for lane in lanes_of(*mask) {
            let is = mem.opaque_at(lane, values.0[lane]).is_some_and(|opaque| is_type(&opaque, ty));
            new |= LaneMask::from(is) << lane;
        }
        p.write(regs, *mask, new);
        Ok(())
    }))
}
