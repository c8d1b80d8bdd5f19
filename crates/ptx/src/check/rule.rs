//! Rules about operands that the syntax of a row cannot express. The table's rows refer to them.
//!
//! Invariant: the match on [`Rule`] is exhaustive. Rules about modifiers alone are checked in
//! [`crate::isa::rule`], and properties of operand kinds (state spaces, sizes of parts) where operands are
//! checked.

use super::body::BodyChecker;
use super::inst::{Site, Written, WrittenKind};
use super::module::{AddressBase, Inst, LocalId, Operand};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Dir, Kind, Op, Rule, Slot, Word};

/// Checks the rules of an instruction's row; false after an error.
pub(super) fn operands<'a>(
    body: &mut BodyChecker<'_, 'a>,
    site: &Site<'_>,
    inst: &mut Inst,
    written: &[Written<'_>],
) -> bool {
    let errors = body.checker.report.errors();
    for rule in inst.row.row().rules {
        match rule {
            Rule::CmpForType
            | Rule::SatNarrows
            | Rule::FtzNeedsF32
            | Rule::Vec128
            | Rule::Vec256
            | Rule::Only256
            | Rule::SameAb
            | Rule::CtypeNeedsDtype
            | Rule::Shared64
            | Rule::TexGeometry
            | Rule::VmadNegation
            | Rule::Dot
            | Rule::ParamAccess
            | Rule::PackSizes => {}
            Rule::AddressSize => address_size(body, site),
            Rule::BarrierCount => barrier_count(body, site, inst, written),
            Rule::CopySize => copy_size(body, site, inst, written),
            Rule::Fraction => fraction(body, site, inst, written),
            Rule::SimdConstant => simd_constant(body, inst, written),
            Rule::ClampGiven => clamp_given(body, site),
            Rule::BracketsGiven | Rule::RndGiven => {
                if let Some(text) = site.found.portability(&[]) {
                    warn(body, Code::NotPortable, site, text);
                }
            }
            Rule::Deprecated => {
                let sm = body.checker.header.level().map(|level| level.sm);
                if let Some(old) = site.found.deprecation()
                    && body.checker.at_least(old.since)
                    && sm.is_some_and(|sm| sm.number >= old.sm.number)
                {
                    let name = inst.row.form().name(&site.found.mods);
                    let text = format!(
                        "`{name}` is deprecated from PTX {} on; {} replaces it",
                        old.since, old.instead
                    );
                    warn(body, Code::Deprecated, site, &text);
                }
            }
            Rule::TexMode => tex_mode(body, site, inst),
            Rule::CallSignature => call_signature(body, site, inst, written),
        }
    }
    if inst.row.row().op == Op::ShflSync
        && let Some(Operand::Pair(d, _)) = inst.operands.first()
        && **d == Operand::Sink
    {
        warn(body, Code::NotPortable, site, "`_` as the value of `shfl.sync` is legal, but ptxas refuses it");
    }
    body.checker.report.errors() == errors
}

fn warn(body: &mut BodyChecker<'_, '_>, code: Code, site: &Site<'_>, text: &str) {
    let section = site.found.row.row().section;
    body.checker.report.push(Diagnostic::new(code, site.opcode, text).with_section(section));
}

fn error(body: &mut BodyChecker<'_, '_>, code: Code, span: Span, text: &str, section: &'static str) {
    body.checker.report.push(Diagnostic::new(code, span, text).with_section(section));
}

/// The place of the row's operand of that number.
fn place(site: &Site<'_>, written: &[Written<'_>], index: usize) -> Span {
    site.found.binding.written(index).and_then(|i| written.get(i)).map_or(site.opcode, |w| w.span)
}

/// §9.7.8.13: generic addresses have the module's address size.
fn address_size(body: &mut BodyChecker<'_, '_>, site: &Site<'_>) {
    let wanted = body.checker.header.address_size().bytes() * 8;
    let Some(have) = site.found.mods.ty_in(Slot::Type) else { return };
    if have.bits() == wanted || body.checker.header.address_size_is_open() {
        return;
    }
    let text =
        format!("addresses of this module have {wanted} bits, and `.{}` has {}", have.name(), have.bits());
    body.checker.report.push(
        Diagnostic::new(Code::BadModifierUse, site.opcode, text)
            .with_help(format!("`.u{wanted}`"))
            .with_section("9.7.8.13"),
    );
}

/// §9.7.12.1: sixteen barriers; a constant count is a positive multiple of 32. A123. ptxas accepts a count of
/// 0 where the count is optional: the barrier is for all threads of the CTA, as without a count.
fn barrier_count(body: &mut BodyChecker<'_, '_>, site: &Site<'_>, inst: &mut Inst, written: &[Written<'_>]) {
    let form = inst.row.form();
    let op = inst.row.row().op;
    for (index, (operand_form, operand)) in form.operands.iter().zip(&mut inst.operands).enumerate() {
        let Operand::Imm(value) = operand else { continue };
        if operand_form.name == "b" && *value == 0 && op != Op::BarArrive {
            body.checker.report.push(
                Diagnostic::new(
                    Code::NonStandard,
                    place(site, written, index),
                    "the number of threads at a barrier is a positive multiple of 32, not 0",
                )
                .with_label("taken as all threads of the CTA")
                .with_help("leave the number out")
                .with_section("9.7.12.1"),
            );
            *operand = Operand::Absent;
            continue;
        }
        let text = match operand_form.name {
            "a" if *value > 15 => format!("there is no barrier {value}; barriers are 0 to 15"),
            "b" if *value == 0 || *value % 32 != 0 => {
                format!(
                    "{value} threads cannot take part in a barrier; the count is a positive multiple of 32"
                )
            }
            _ => continue,
        };
        error(body, Code::ImmediateOutOfRange, place(site, written, index), &text, "9.7.12.1");
    }
}

/// An asynchronous copy has 4, 8 or 16 bytes.
fn copy_size(body: &mut BodyChecker<'_, '_>, site: &Site<'_>, inst: &Inst, written: &[Written<'_>]) {
    let form = inst.row.form();
    let Some(index) = form.operands.iter().position(|operand| operand.name == "size") else { return };
    if let Some(Operand::Imm(bytes)) = inst.operands.get(index)
        && !matches!(bytes, 4 | 8 | 16)
    {
        let text = format!("{bytes} bytes cannot be copied at once; 4, 8 and 16 can");
        error(body, Code::ImmediateOutOfRange, place(site, written, index), &text, form.row.section);
    }
}

/// The fraction of accesses to which a cache policy applies.
fn fraction(body: &mut BodyChecker<'_, '_>, site: &Site<'_>, inst: &Inst, written: &[Written<'_>]) {
    let form = inst.row.form();
    let Some(index) = form.operands.iter().position(|operand| operand.name == "fraction") else { return };
    let Some(Operand::Imm(bits)) = inst.operands.get(index) else { return };
    let value = f32::from_bits(*bits as u32);
    if !(value > 0.0 && value <= 1.0) {
        let text =
            format!("{value} is not a fraction of the accesses: expected a number above 0 and at most 1");
        error(body, Code::ImmediateOutOfRange, place(site, written, index), &text, form.row.section);
    }
}

/// §9.7.16: operands are registers; constants are accepted here, but ptxas refuses them. V13.
fn simd_constant(body: &mut BodyChecker<'_, '_>, inst: &Inst, written: &[Written<'_>]) {
    let section = inst.row.row().section;
    for operand in written {
        if matches!(operand.kind, WrittenKind::Const(_)) {
            body.checker.report.push(
                Diagnostic::new(Code::NotPortable, operand.span, "ptxas accepts only registers here")
                    .with_section(section),
            );
        }
    }
}

/// §9.7.10: the clamp is required, although the manual's examples omit it. A140.
fn clamp_given(body: &mut BodyChecker<'_, '_>, site: &Site<'_>) {
    if site.found.mods.given().iter().any(|(slot, _)| *slot == Slot::Clamp) {
        return;
    }
    let section = site.found.row.row().section;
    body.checker.report.push(
        Diagnostic::new(Code::NotPortable, site.opcode, "a missing clamp means `.trap`; ptxas refuses it")
            .with_help("`.trap`, `.clamp` or `.zero`")
            .with_section(section),
    );
}

/// §5.3, §9.7.9.1: separate samplers exist only in independent mode, where they are required; pointers to
/// textures exist in unified mode only.
fn tex_mode(body: &mut BodyChecker<'_, '_>, site: &Site<'_>, inst: &Inst) {
    let independent = body.checker.header.texmode_independent();
    let (mut texture, mut sampler) = (None, None);
    let form = inst.row.form();
    for (operand_form, operand) in form.operands.iter().zip(&inst.operands) {
        let list = match (&operand_form.kind, operand) {
            (Kind::Bracket, Operand::AddressList(list)) => list.as_slice(),
            (Kind::Opaque(_), operand) => std::slice::from_ref(operand),
            _ => continue,
        };
        for operand in list {
            let Operand::Opaque(base) = operand else { continue };
            if texture.is_none() { texture = Some(*base) } else { sampler = Some(*base) }
        }
    }
    let query = inst.row.row().op == Op::Txq;
    if query {
        let force = site.found.mods.get(Slot::Query) == Some(Word::ForceUnnormalizedCoords);
        if force && !independent {
            error(
                body,
                Code::BadModifierUse,
                site.opcode,
                "`.force_unnormalized_coords` exists in independent texture mode only",
                "9.7.9.5",
            );
        }
        return;
    }
    match (independent, sampler) {
        (false, Some(_)) => {
            let text = "a separate sampler needs `.target texmode_independent`";
            error(body, Code::WrongOperandKind, site.opcode, text, "9.7.9.1");
        }
        (true, None) => {
            let text = "in independent texture mode a sampler operand is required";
            error(body, Code::WrongOperandCount, site.opcode, text, "9.7.9.1");
        }
        (false, None) | (true, Some(_)) => {}
    }
    if independent && matches!(texture, Some(AddressBase::Register(_))) {
        let text = "pointers to textures need unified texture mode";
        error(body, Code::WrongOperandKind, site.opcode, text, "5.3");
    }
}

/// §7.1: arguments and results match the callee's parameters.
fn call_signature<'a>(
    body: &mut BodyChecker<'_, 'a>,
    site: &Site<'_>,
    inst: &mut Inst,
    written: &[Written<'_>],
) {
    let Some(target) = body.callee_of(&inst.operands) else { return };
    let (signature, callee) = body.take(target);
    let form = inst.row.form();
    let (mut arguments, mut results) = (0, 0);
    let mut span = site.opcode;
    for (index, (operand_form, operand)) in form.operands.iter().zip(&inst.operands).enumerate() {
        let Operand::Args(list) = operand else { continue };
        let (count, wanted) = if operand_form.kind == Kind::Rets {
            (&mut results, signature.returns.len())
        } else {
            (&mut arguments, signature.params.len())
        };
        *count = list.len();
        if list.len() != wanted && span == site.opcode {
            span = place(site, written, index);
        }
    }
    if body.counts(&signature, arguments, results, span, callee) {
        for (index, (operand_form, operand)) in form.operands.iter().zip(&mut inst.operands).enumerate() {
            let Operand::Args(list) = operand else { continue };
            let (dir, params) = if operand_form.kind == Kind::Rets {
                (Dir::Out, &signature.returns)
            } else {
                (Dir::In, &signature.params)
            };
            let written = site.found.binding.written(index).and_then(|i| written.get(i));
            let Some(Written { kind: WrittenKind::List(actuals), .. }) = written else { continue };
            body.fit(dir, params, list, actuals, callee);
        }
    }
    body.put_back(target, signature);
}

/// The `.param` variables that a call reads and writes: results, then arguments.
pub(super) fn call_locals(inst: &Inst) -> (Vec<LocalId>, Vec<LocalId>) {
    let (mut results, mut arguments) = (Vec::new(), Vec::new());
    for (form, operand) in inst.row.form().operands.iter().zip(&inst.operands) {
        let Operand::Args(list) = operand else { continue };
        let into = if form.dir == Dir::Out { &mut results } else { &mut arguments };
        into.extend(
            list.iter()
                .filter_map(|operand| if let Operand::ParamVar(id) = operand { Some(*id) } else { None }),
        );
    }
    (results, arguments)
}
