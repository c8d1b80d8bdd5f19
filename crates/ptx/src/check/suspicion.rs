//! Warnings about legal but likely mistaken code: unused results, one register for two results, accesses that
//! cannot be aligned.
//!
//! Invariant: nothing here is an error, and a warning never depends on the values of registers. PTX ISA
//! §5.4.5, §9.2.

use super::body::BodyChecker;
use super::inst::Site;
use super::module::{Address, AddressBase, Body, Inst, Operand, RegisterId, Statement};
use super::names::Name;
use super::report::Report;
use crate::Span;
use crate::diag::{Code, Diagnostic, Severity};
use crate::isa::{Class, Dir, Op, OperandForm, Slot};

/// Checks one instruction.
pub(super) fn instruction(body: &mut BodyChecker<'_, '_>, site: &Site<'_>, inst: &Inst) {
    let row = inst.row.row();
    for (form, operand) in inst.row.form().operands.iter().zip(&inst.operands) {
        match operand {
            Operand::Sink if form.dir == Dir::Out && row.class == Class::Lane && !row.traps() => {
                let text = "`_` as the only result: the instruction does nothing";
                body.checker.report.push(
                    Diagnostic::new(Code::NonStandard, site.opcode, text)
                        .with_help("remove the instruction")
                        .with_section("9.2"),
                );
            }
            Operand::Pair(d, p) => {
                if let (Operand::Register(d), Operand::Register(p)) = (&**d, &**p)
                    && d == p
                {
                    let name = &body.body.registers[d.0 as usize].name;
                    let text = format!("`{name}` takes both results, and only one of them can stay");
                    let mut diagnostic = Diagnostic::new(Code::Suspicious, site.opcode, text)
                        .with_help("`_` in place of the result that is not needed")
                        .with_section("9.2");
                    // The manual does not define which result stays; ptxas accepts it.
                    if body.checker.options.strict {
                        diagnostic.severity = Severity::Error;
                    }
                    body.checker.report.push(diagnostic);
                }
            }
            Operand::Address(address) => misaligned(body, site, inst, address),
            Operand::Absent
            | Operand::Sink
            | Operand::Register(_)
            | Operand::Element(..)
            | Operand::Not(_)
            | Operand::Sreg(..)
            | Operand::Imm(_)
            | Operand::Vector(_)
            | Operand::SymbolAddress(..)
            | Operand::Opaque(_)
            | Operand::AddressList(_)
            | Operand::Label(_)
            | Operand::BranchTargets(_)
            | Operand::Function(_)
            | Operand::CallTargets(_)
            | Operand::Prototype(_)
            | Operand::Args(_)
            | Operand::ParamVar(_)
            | Operand::Video { .. } => {}
        }
    }
}

/// §5.4.5: an access whose constant offset makes it misaligned for every address of the variable.
#[allow(clippy::wildcard_enum_match_arm, reason = "other instructions have no access of one size")]
fn misaligned(body: &mut BodyChecker<'_, '_>, site: &Site<'_>, inst: &Inst, address: &Address) {
    let size = match inst.row.row().op {
        Op::Ld | Op::LdNc | Op::Ldu | Op::St | Op::Atom | Op::Red => {
            let Some(ty) = inst.mods.ty_in(Slot::Type) else { return };
            u64::from(ty.bytes()) * u64::from(inst.mods.vec())
        }
        _ => return,
    };
    if address.index.is_some() {
        return;
    }
    let (align, name) = match address.base {
        AddressBase::Absolute => (u64::MAX, None),
        AddressBase::Var(id) => {
            let variable = &body.checker.variables[id.0 as usize];
            (u64::from(variable.align), Some(&variable.name))
        }
        AddressBase::Local(id) => {
            let local = &body.body.locals[id.0 as usize];
            (u64::from(local.align), Some(&local.name))
        }
        AddressBase::Register(_) | AddressBase::Func(_) => return,
    };
    // A smaller alignment of the variable determines fewer bits of the address.
    let known = size.min(align);
    if known < 2 || address.offset.rem_euclid(known.cast_signed()) == 0 {
        return;
    }
    let what = match name {
        Some(name) => format!("byte {} of `{name}`, which is aligned to {align}", address.offset),
        None => format!("address {:#x}", address.offset),
    };
    body.checker.report.push(
        Diagnostic::new(Code::Misaligned, site.opcode, format!("an access of {size} bytes at {what}"))
            .with_label("this traps when it executes")
            .with_help(format!("an offset that is a multiple of {size}"))
            .with_section("5.4.5"),
    );
}

/// Reports results of side-effect-free instructions that are overwritten in straight-line code before they
/// are read.
pub(super) fn unused_results(body: &Body, report: &mut Report) {
    let mut unread = Unread::new(body.registers.len());
    for statement in &body.statements {
        let inst = match statement {
            Statement::Inst(inst) => inst,
            Statement::Label(_) => {
                unread.clear();
                continue;
            }
            Statement::Loc(_) => continue,
        };
        let row = inst.row.row();
        if let Some(guard) = inst.guard {
            unread.remove(guard.register);
        }
        let operands = || inst.row.form().operands.iter().zip(&inst.operands);
        let result = |form: &OperandForm, operand: &Operand| {
            if let (Operand::Register(register), Dir::Out) = (operand, form.dir) {
                Some(*register)
            } else {
                None
            }
        };
        for (form, operand) in operands() {
            if result(form, operand).is_none() {
                operand.for_each_name(&mut |name| {
                    if let Name::Register(register) = name {
                        unread.remove(register);
                    }
                });
            }
        }
        // Control flow may reach a read of the result.
        if row.class == Class::Control || inst.guard.is_some() {
            unread.clear();
            continue;
        }
        for register in operands().filter_map(|(form, operand)| result(form, operand)) {
            let written = unread.remove(register);
            if let Some(span) = written {
                let name = &body.registers[register.0 as usize].name;
                report.push(
                    Diagnostic::new(
                        Code::UnusedResult,
                        span,
                        format!("the result of `{name}` is never read"),
                    )
                    .with_related(inst.span, "it is overwritten here")
                    .with_section("9.2"),
                );
            }
            // The forms of §9.7.2 also write the carry flag.
            if row.class == Class::Lane && !row.traps() && !row.section.starts_with("9.7.2.") {
                unread.insert(register, inst.span);
            }
        }
    }
}

/// Registers that were written and not read since, with the places.
struct Unread {
    /// By register: the number of the last reset, and the place of the write.
    written: Vec<(u32, Span)>,
    cleared: u32,
}

impl Unread {
    fn new(registers: usize) -> Self {
        Self { written: vec![(0, Span::default()); registers], cleared: 1 }
    }

    fn clear(&mut self) {
        self.cleared += 1;
    }

    fn insert(&mut self, register: RegisterId, span: Span) {
        if let Some(place) = self.written.get_mut(register.0 as usize) {
            *place = (self.cleared, span);
        }
    }

    fn remove(&mut self, register: RegisterId) -> Option<Span> {
        let place = self.written.get_mut(register.0 as usize)?;
        let since = std::mem::take(&mut place.0);
        (since == self.cleared).then_some(place.1)
    }
}
