//! Places of registers, parameters and local variables of a function.
//!
//! Invariant: places in one buffer do not overlap, and each has the alignment of its variable. PTX ISA
//! §5.1.5, §5.1.6, §7.1.
//!
//! `.param` variables of different calls do not share places, although they could.

use super::Context;
use crate::check::module::{
    self, Body, FunctionKind, LocalId, LocalRole, Module, Param, RegisterId, Storage,
};
use crate::ir::{ArgPlace, Base, Function, Object, ParamPlace, ParamSlot, Reg, RegClass, RegCounts};
use crate::isa::{Space, Ty};
use std::collections::{BTreeSet, HashMap};

/// The places of one function.
pub(super) struct Layout {
    /// Slots of the inputs.
    pub(super) params: Vec<ParamSlot>,
    /// Slots of the returns.
    pub(super) returns: Vec<ParamSlot>,
    /// Bytes of the kernel's parameter buffer.
    pub(super) param_bytes: u64,
    /// Bytes of the frame.
    pub(super) frame_bytes: u64,
    /// Alignment of the frame.
    pub(super) frame_align: u32,
    /// Registers for the elements of each register variable, in the order of declaration: first those of the
    /// body, then those of module scope that the body does not name.
    registers: Vec<Vec<Reg>>,
    /// Names of the registers of module scope that the body does not name.
    unnamed: Vec<String>,
    /// The registers for [`Shared::registers`].
    pub(super) shared: Vec<Vec<Reg>>,
    /// Place and size of each local variable.
    locals: Vec<(Place, u64)>,
}

/// The place of a local variable.
#[derive(Clone, Copy)]
enum Place {
    /// Offset in the frame.
    Frame(u64),
    /// Offset in the kernel's parameter buffer.
    Kernel(u64),
    /// Address in local memory.
    Local(u64),
}

/// The parts of the layout that functions share because they are of module scope.
pub(super) struct Shared {
    /// The registers of module scope that device functions use, as numbers of [`Module::registers`].
    registers: Vec<u32>,
    /// The address of each of [`Module::locals`].
    locals: Vec<u64>,
    /// Their total size and alignment.
    bytes: u64,
    align: u32,
}

impl Shared {
    pub(super) fn new(module: &Module) -> Self {
        let functions = module.functions.iter().filter(|f| f.kind == FunctionKind::Func);
        let named = functions.filter_map(|f| f.body.as_ref()).flat_map(|body| &body.shared);
        let registers: BTreeSet<u32> = named.map(|(_, number)| *number).collect();
        let mut buffer = Buffer::new();
        let locals = module.locals.iter().map(|local| buffer.place(local.bytes, local.align)).collect();
        let Buffer { bytes, align } = buffer;
        Self { registers: registers.into_iter().collect(), locals, bytes, align }
    }
}

/// A buffer that is filled in order.
struct Buffer {
    bytes: u64,
    align: u32,
}

impl Buffer {
    fn new() -> Self {
        Self { bytes: 0, align: 1 }
    }

    /// Allocates `bytes` bytes aligned to `align`, and returns the offset.
    fn place(&mut self, bytes: u64, align: u32) -> u64 {
        let align = align.max(1);
        self.align = self.align.max(align);
        let offset = self.bytes.div_ceil(u64::from(align)).saturating_mul(u64::from(align));
        self.bytes = offset.saturating_add(bytes);
        offset
    }
}

/// A size or offset for the IR. A value that does not fit is larger than any memory, and refused at launch.
pub(super) fn clamp(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl RegClass {
    /// The class of a register variable's element, and the number of registers per element (two for `.b128`).
    pub fn of(ty: Ty) -> (RegClass, usize) {
        match ty.bits() {
            1 => (RegClass::Pred, 1),
            0..=16 => (RegClass::R16, 1),
            17..=32 => (RegClass::R32, 1),
            33..=64 => (RegClass::R64, 1),
            _ => (RegClass::R64, 2),
        }
    }

    /// Width of a lane's value in bits.
    pub const fn bits(self) -> u32 {
        match self {
            RegClass::Pred => 1,
            RegClass::R16 => 16,
            RegClass::R32 => 32,
            RegClass::R64 => 64,
        }
    }
}

impl Layout {
    pub(super) fn new(context: &Context<'_>, function: &module::Function) -> Self {
        let mut layout = Self {
            params: Vec::new(),
            returns: Vec::new(),
            param_bytes: 0,
            frame_bytes: 0,
            frame_align: 1,
            registers: Vec::new(),
            unnamed: Vec::new(),
            shared: Vec::new(),
            locals: Vec::new(),
        };
        if let Some(body) = &function.body {
            layout.number_registers(context, body);
        }
        let (mut frame, mut kernel) = (Buffer::new(), Buffer::new());
        if function.kind == FunctionKind::Entry {
            frame.place(context.shared.bytes, context.shared.align);
        }
        let mut params = |layout: &mut Self, params: &[Param]| {
            let mut slots = Vec::new();
            for param in params {
                let unsized_last = function.kind == FunctionKind::Func && param.dims.first() == Some(&0);
                let bytes = if unsized_last { context.variadic_bytes } else { param.bytes };
                layout.place_param(function.kind, param, bytes, &mut frame, &mut kernel, &mut slots);
            }
            slots
        };
        layout.params = params(&mut layout, &function.signature.params);
        layout.returns = params(&mut layout, &function.signature.returns);
        if let Some(body) = &function.body {
            let formals = function.signature.params.iter().chain(&function.signature.returns);
            layout.place_locals(&context.shared, body, formals, &mut frame, &mut kernel);
            if function.kind == FunctionKind::Func {
                let bytes = |reg: &Reg| reg.class.bits().div_ceil(8);
                let slot = |reg: &Reg| ParamSlot {
                    place: ParamPlace::Reg(*reg),
                    bytes: bytes(reg),
                    align: bytes(reg),
                };
                let slots: Vec<ParamSlot> = layout.shared.iter().flatten().map(slot).collect();
                layout.params.extend(&slots);
                layout.returns.extend(slots);
            }
        }
        layout.param_bytes = kernel.bytes;
        layout.frame_bytes = frame.bytes;
        layout.frame_align = frame.align;
        layout
    }

    fn place_param(
        &self,
        kind: FunctionKind,
        param: &Param,
        bytes: u64,
        frame: &mut Buffer,
        kernel: &mut Buffer,
        slots: &mut Vec<ParamSlot>,
    ) {
        if let Some(Storage::Register(register)) = param.storage {
            for reg in self.registers(register) {
                let place = ParamPlace::Reg(*reg);
                let bytes = param.ty.bytes().clamp(1, 8);
                slots.push(ParamSlot { place, bytes, align: param.align });
            }
            return;
        }
        if param.space == Space::Reg {
            // The callee's registers are unknown, only their number.
            for _ in 0..usize::from(param.vector.max(1)) * RegClass::of(param.ty).1 {
                let bytes = param.ty.bytes().clamp(1, 8);
                let place = ParamPlace::Frame(clamp(frame.place(u64::from(bytes), bytes)));
                slots.push(ParamSlot { place, bytes, align: bytes });
            }
            return;
        }
        let place = match kind {
            FunctionKind::Entry => ParamPlace::Kernel(clamp(kernel.place(bytes, param.align))),
            FunctionKind::Func => ParamPlace::Frame(clamp(frame.place(bytes, param.align))),
        };
        slots.push(ParamSlot { place, bytes: clamp(bytes), align: param.align });
    }

    /// Places the variables of a body: formals in their slots, the others after them.
    fn place_locals<'p>(
        &mut self,
        shared: &Shared,
        body: &Body,
        formals: impl Iterator<Item = &'p Param>,
        frame: &mut Buffer,
        kernel: &mut Buffer,
    ) {
        let slots = self.params.iter().chain(&self.returns);
        let in_memory = slots.filter(|slot| !matches!(slot.place, ParamPlace::Reg(_)));
        let formals = formals.filter_map(|param| match param.storage {
            Some(Storage::Local(local)) => Some(local),
            Some(Storage::Register(_)) | None => None,
        });
        let mut known: Vec<Option<(Place, u64)>> = vec![None; body.locals.len()];
        for (local, slot) in formals.zip(in_memory) {
            let place = match slot.place {
                ParamPlace::Frame(offset) => Place::Frame(u64::from(offset)),
                ParamPlace::Kernel(offset) => Place::Kernel(u64::from(offset)),
                ParamPlace::Reg(_) => continue,
            };
            if let Some(known) = known.get_mut(local.0 as usize) {
                *known = Some((place, u64::from(slot.bytes)));
            }
        }
        let place = |(local, known): (&module::LocalVar, Option<(Place, u64)>)| {
            known.unwrap_or_else(|| match local.role {
                LocalRole::KernelParam(_) => {
                    (Place::Kernel(kernel.place(local.bytes, local.align)), local.bytes)
                }
                LocalRole::Shared(number) => {
                    let address = shared.locals.get(number as usize).copied().unwrap_or_default();
                    (Place::Local(address), local.bytes)
                }
                LocalRole::Local | LocalRole::Input(_) | LocalRole::Return(_) | LocalRole::CallParam => {
                    (Place::Frame(frame.place(local.bytes, local.align)), local.bytes)
                }
            })
        };
        self.locals = body.locals.iter().zip(known).map(place).collect();
    }

    /// The registers of a register variable, element by element.
    pub(super) fn registers(&self, register: RegisterId) -> &[Reg] {
        self.registers.get(register.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// The register of a scalar variable, or of one element.
    pub(super) fn register(&self, register: RegisterId, element: u8) -> Reg {
        let regs = self.registers(register);
        let reg = regs.get(usize::from(element)).or(regs.first());
        *reg.unwrap_or(&Reg { class: RegClass::R64, index: 0 })
    }

    /// Base, offset and state space of a local variable.
    pub(super) fn local(&self, local: LocalId) -> (Base, i64, Space) {
        match self.locals.get(local.0 as usize) {
            Some((Place::Kernel(offset), _)) => (Base::KernelParam, i64::from(clamp(*offset)), Space::Param),
            Some((Place::Frame(offset), _)) => (Base::Frame, i64::from(clamp(*offset)), Space::Local),
            Some((Place::Local(address), _)) => (Base::Absolute, i64::from(clamp(*address)), Space::Local),
            None => (Base::Frame, 0, Space::Local),
        }
    }

    /// The variables of a body for the IR.
    pub(super) fn objects(&self, body: &Body) -> Vec<Object> {
        let object = |(local, (place, bytes)): (&module::LocalVar, &(Place, u64))| {
            let (base, offset) = match place {
                Place::Frame(offset) => (Base::Frame, *offset),
                Place::Kernel(offset) => (Base::KernelParam, *offset),
                Place::Local(address) => (Base::Absolute, *address),
            };
            let param = local.space == Space::Param;
            Object { name: local.name.clone(), base, offset, bytes: *bytes, param }
        };
        body.locals.iter().zip(&self.locals).map(object).collect()
    }

    /// A local variable as an argument or result of a call.
    pub(super) fn argument(&self, local: LocalId) -> ArgPlace {
        match self.locals.get(local.0 as usize) {
            Some((Place::Frame(offset), bytes)) => {
                ArgPlace::Frame { offset: clamp(*offset), bytes: clamp(*bytes) }
            }
            Some((Place::Kernel(offset), bytes)) => {
                ArgPlace::KernelParam { offset: clamp(*offset), bytes: clamp(*bytes) }
            }
            // Only `.param` variables are arguments.
            Some((Place::Local(_), _)) | None => ArgPlace::None,
        }
    }

    /// Drops registers that the lowered body does not use, renumbers the others densely, and names them.
    pub(super) fn compact_registers(&self, body: &Body, function: &mut Function) {
        let mut number: [Vec<Option<u32>>; 4] = Default::default();
        for regs in &self.registers {
            for reg in regs {
                number[reg.class as usize].push(None);
            }
        }
        let mut blocks = std::mem::take(&mut function.blocks);
        let slot = |number: &mut [Vec<Option<u32>>; 4], reg: Reg| {
            let class = &mut number[reg.class as usize];
            let index = reg.index as usize;
            if class.len() <= index {
                class.resize(index + 1, None);
            }
            class[index] = Some(0);
        };
        for block in &mut blocks {
            block.for_each_reg_mut(&mut |reg| slot(&mut number, *reg));
        }
        for param in function.params.iter().chain(&function.returns) {
            if let ParamPlace::Reg(reg) = param.place {
                slot(&mut number, reg);
            }
        }
        let mut counts = [0; 4];
        for (class, count) in number.iter_mut().zip(&mut counts) {
            for used in class.iter_mut().flatten() {
                *used = *count;
                *count += 1;
            }
        }
        let new = |reg: Reg| {
            let index = number[reg.class as usize].get(reg.index as usize).copied().flatten();
            index.map(|index| Reg { class: reg.class, index })
        };
        for block in &mut blocks {
            block.for_each_reg_mut(&mut |reg| *reg = new(*reg).unwrap_or(*reg));
        }
        for param in function.params.iter_mut().chain(&mut function.returns) {
            if let ParamPlace::Reg(reg) = &mut param.place {
                *reg = new(*reg).unwrap_or(*reg);
            }
        }
        function.blocks = blocks;
        let [pred, r16, r32, r64] = counts;
        function.regs = RegCounts { pred, r16, r32, r64 };
        for (names, count) in function.reg_names.iter_mut().zip(counts) {
            *names = vec![String::new(); count as usize];
        }
        let names = body.registers.iter().map(|variable| &variable.name).chain(&self.unnamed);
        for (name, regs) in names.zip(&self.registers) {
            for (element, reg) in regs.iter().enumerate() {
                let Some(reg) = new(*reg) else { continue };
                let suffix = if regs.len() == 1 { "" } else { [".x", ".y", ".z", ".w"][element % 4] };
                function.reg_names[reg.class as usize][reg.index as usize] = format!("{name}{suffix}");
            }
        }
    }

    /// Numbers the elements of all register variables, class by class.
    fn number_registers(&mut self, context: &Context<'_>, body: &Body) {
        let own: HashMap<u32, RegisterId> = body.shared.iter().map(|(id, number)| (*number, *id)).collect();
        let shared = &context.shared.registers;
        let unnamed = shared.iter().filter(|number| !own.contains_key(number));
        let unnamed: Vec<&module::Register> =
            unnamed.filter_map(|number| context.module.registers.get(*number as usize)).collect();
        self.registers = numbered(body.registers.iter().chain(unnamed.iter().copied()));
        self.unnamed = unnamed.iter().map(|register| register.name.clone()).collect();
        let mut rest = self.registers.iter().skip(body.registers.len());
        let regs = |number: &u32| match own.get(number) {
            Some(id) => self.registers.get(id.0 as usize).cloned(),
            None => rest.next().cloned(),
        };
        self.shared = shared.iter().filter_map(regs).collect();
    }
}

/// Registers for the elements of register variables, numbered class by class.
fn numbered<'m>(variables: impl Iterator<Item = &'m module::Register>) -> Vec<Vec<Reg>> {
    let mut next = [0u32; 4];
    let number = |variable: &module::Register| {
        let (class, parts) = RegClass::of(variable.ty);
        let elements = usize::from(variable.vector.max(1)) * parts;
        let next = &mut next[class as usize];
        let element = |_| {
            *next += 1;
            Reg { class, index: *next - 1 }
        };
        (0..elements).map(element).collect()
    };
    variables.map(number).collect()
}
