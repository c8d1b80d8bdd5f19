//! Resolution of external symbols. PTX ISA §11.6; A166, A167, A168 of the project's readings.
//!
//! Invariant: names are processed in the order of the texts, so that diagnostics do not depend on hashing.

use crate::Span;
use crate::check::module::{FuncId, Function, FunctionKind, Linkage, Module, VarId, Variable};
use crate::check::parameter::difference;
use crate::diag::{Code, Diagnostic};
use crate::isa::Space;
use std::collections::HashMap;

/// A symbol of one of the modules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// A variable of the module with that index.
    Var(usize, VarId),
    /// A function of the module with that index.
    Func(usize, FuncId),
}

/// The definition of each symbol that several modules declare; other symbols are their own definitions.
pub(super) type Resolved = HashMap<Place, Place>;

/// Finds the definition of each external symbol, and reports conflicts.
pub(super) fn resolve(modules: &mut [Module], found: &mut Vec<Diagnostic>) -> Resolved {
    let mut resolved = Resolved::new();
    for group in groups(modules) {
        if group.len() < 2 {
            continue;
        }
        let Some(chosen) = choose(modules, &group, found) else { continue };
        let mut agree = true;
        for other in group.iter().filter(|other| **other != chosen) {
            agree &= agrees(modules, chosen, *other, found);
        }
        if !agree {
            continue;
        }
        align(modules, chosen, &group);
        resolved.extend(group.iter().filter(|other| **other != chosen).map(|other| (*other, chosen)));
    }
    resolved
}

/// All symbols that other modules can see, by name, in the order of the texts.
fn groups(modules: &[Module]) -> Vec<Vec<Place>> {
    let mut groups: Vec<Vec<Place>> = Vec::new();
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    let mut add = |name, place| {
        let index = *by_name.entry(name).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.push(place),
            None => groups.push(vec![place]),
        }
    };
    for (index, module) in modules.iter().enumerate() {
        for (id, variable) in module.variables.iter().enumerate() {
            // An unsized array in shared memory is the dynamic shared memory of the launch, under any name.
            let dynamic = variable.space == Space::Shared
                && variable.linkage == Linkage::Extern
                && variable.dims.first() == Some(&0);
            if variable.owner.is_none() && variable.linkage != Linkage::Internal && !dynamic {
                add(variable.name.as_str(), Place::Var(index, VarId(id as u32)));
            }
        }
        for (id, function) in module.functions.iter().enumerate() {
            if function.linkage != Linkage::Internal || function.kind == FunctionKind::Entry {
                add(function.name.as_str(), Place::Func(index, FuncId(id as u32)));
            }
        }
    }
    groups
}

fn variable(modules: &[Module], module: usize, id: VarId) -> Option<&Variable> {
    modules.get(module)?.variables.get(id.0 as usize)
}

fn function(modules: &[Module], module: usize, id: FuncId) -> Option<&Function> {
    modules.get(module)?.functions.get(id.0 as usize)
}

/// The properties of a symbol that determine its definition.
struct Facts<'m> {
    name: &'m str,
    span: Span,
    linkage: Linkage,
    defined: bool,
    bytes: u64,
    initialised: bool,
}

fn facts(modules: &[Module], place: Place) -> Option<Facts<'_>> {
    match place {
        Place::Var(module, id) => variable(modules, module, id).map(|v| Facts {
            name: &v.name,
            span: v.span,
            linkage: v.linkage,
            defined: v.linkage != Linkage::Extern,
            bytes: v.bytes,
            initialised: v.init.is_some() || !v.fields.is_empty(),
        }),
        Place::Func(module, id) => function(modules, module, id).map(|f| Facts {
            name: &f.name,
            span: f.span,
            // A kernel is launched by name, with any linkage.
            linkage: if f.linkage == Linkage::Internal { Linkage::Visible } else { f.linkage },
            defined: f.body.is_some() || f.alias_of.is_some(),
            bytes: 0,
            initialised: false,
        }),
    }
}

/// Chooses the definition for a group of declarations.
fn choose(modules: &[Module], group: &[Place], found: &mut Vec<Diagnostic>) -> Option<Place> {
    let all: Vec<(Place, Facts<'_>)> =
        group.iter().filter_map(|place| Some((*place, facts(modules, *place)?))).collect();
    let of = |linkage: Linkage| all.iter().filter(move |(_, f)| f.defined && f.linkage == linkage);
    let mut visible = of(Linkage::Visible);
    let commons: Vec<&(Place, Facts<'_>)> = of(Linkage::Common).collect();
    // The first of the largest: reversed, because `max_by_key` returns the last.
    let largest = commons.iter().rev().max_by_key(|(_, f)| f.bytes);
    if let Some((place, first)) = visible.next() {
        for (_, again) in visible {
            found.push(
                Diagnostic::new(
                    Code::Redeclared,
                    again.span,
                    format!("`{}` is defined in two modules", again.name),
                )
                .with_label("defined again")
                .with_related(first.span, "first defined here")
                .with_help("make one of them `.weak` or `.extern`, or leave out `.visible`")
                .with_section("11.6.2"),
            );
        }
        if let Some((_, common)) = largest.filter(|(_, common)| common.bytes > first.bytes) {
            too_small(first, common, found);
        }
        return Some(*place);
    }
    let Some((place, largest)) = largest else {
        return of(Linkage::Weak).next().or(all.first()).map(|(place, _)| *place);
    };
    let initialised: Vec<&Facts<'_>> = commons.iter().map(|(_, f)| f).filter(|f| f.initialised).collect();
    if let [first, second, ..] = initialised.as_slice() {
        found.push(
            Diagnostic::new(
                Code::BadInitializer,
                second.span,
                format!("`{}` is initialised in two modules", second.name),
            )
            .with_related(first.span, "first initialised here")
            .with_section("11.6.4"),
        );
    } else if let [only] = initialised.as_slice() {
        if only.bytes < largest.bytes {
            too_small(only, largest, found);
        }
        return commons.iter().find(|(_, f)| f.initialised).map(|(place, _)| *place);
    }
    Some(*place)
}

fn too_small(counts: &Facts<'_>, larger: &Facts<'_>, found: &mut Vec<Diagnostic>) {
    let (name, bytes) = (counts.name, counts.bytes);
    found.push(
        Diagnostic::new(
            Code::DefinitionMismatch,
            counts.span,
            format!("`{name}` has {bytes} bytes here, but a `.common` definition has {}", larger.bytes),
        )
        .with_label("the chosen definition must be the largest")
        .with_related(larger.span, "the larger one")
        .with_section("11.6.4"),
    );
}

/// Whether a declaration matches the chosen definition; reports a mismatch.
fn agrees(modules: &[Module], chosen: Place, other: Place, found: &mut Vec<Diagnostic>) -> bool {
    let (Some(here), Some(there)) = (facts(modules, chosen), facts(modules, other)) else { return false };
    let difference = match (chosen, other) {
        (Place::Var(m, a), Place::Var(n, b)) => match (variable(modules, m, a), variable(modules, n, b)) {
            (Some(a), Some(b)) => variable_difference(a, b),
            (_, _) => return false,
        },
        (Place::Func(m, a), Place::Func(n, b)) => match (function(modules, m, a), function(modules, n, b)) {
            (Some(a), Some(b)) if a.kind != b.kind => Some("a kernel, and a device function".to_owned()),
            (Some(a), Some(b)) => difference(&a.signature, &b.signature),
            (_, _) => return false,
        },
        (Place::Var(..), Place::Func(..)) => Some("a variable, and a function".to_owned()),
        (Place::Func(..), Place::Var(..)) => Some("a function, and a variable".to_owned()),
    };
    let Some(difference) = difference else { return true };
    // Two competing definitions were reported before.
    let reported = here.defined && there.defined && there.linkage == Linkage::Visible;
    if !reported {
        found.push(
            Diagnostic::new(
                Code::DefinitionMismatch,
                there.span,
                format!("`{}` differs in two modules: {difference}", there.name),
            )
            .with_label("declared here")
            .with_related(here.span, if here.defined { "defined here" } else { "also declared here" })
            .with_section("11.6"),
        );
    }
    false
}

/// The difference between a declaration and the definition, if any.
fn variable_difference(a: &Variable, b: &Variable) -> Option<String> {
    if a.space != b.space || a.bank != b.bank {
        return Some(format!("`.{}`, and `.{}`", a.space.name(), b.space.name()));
    }
    // `.common` symbols may differ in type and size.
    if a.linkage == Linkage::Common || b.linkage == Linkage::Common {
        return None;
    }
    if a.ty != b.ty || a.vector != b.vector {
        let text = |v: &Variable| match v.vector {
            1 => format!("`.{}`", v.ty.name()),
            n => format!("`.v{n} .{}`", v.ty.name()),
        };
        return Some(format!("{}, and {}", text(a), text(b)));
    }
    let sized = a.bytes > 0 && b.bytes > 0;
    (sized && a.bytes != b.bytes).then(|| format!("{} bytes, and {} bytes", a.bytes, b.bytes))
}

/// Aligns a variable to the strictest of its declarations.
fn align(modules: &mut [Module], chosen: Place, group: &[Place]) {
    let aligned = |place: &Place| match place {
        Place::Var(module, id) => variable(modules, *module, *id).map(|v| v.align),
        Place::Func(..) => None,
    };
    let strictest = group.iter().filter_map(aligned).max();
    if let (Place::Var(module, id), Some(strictest)) = (chosen, strictest)
        && let Some(variable) = modules.get_mut(module).and_then(|m| m.variables.get_mut(id.0 as usize))
    {
        variable.align = strictest;
    }
}
