//! Equality of two modules: everything is compared except places, the names of declarations in bodies, and
//! the order in which labels are numbered.

use ptx::check::module::{Body, Module, Statement};
use std::fmt::Write as _;

/// Text without string literals and places.
fn anonymous(debug: &str) -> String {
    let mut text = String::with_capacity(debug.len());
    let mut inside = false;
    for c in debug.chars() {
        match c {
            '"' => inside = !inside,
            c if !inside => text.push(c),
            _ => {}
        }
    }
    let mut shape = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find("..") {
        let start = rest[..at].rfind(|c: char| !c.is_ascii_digit()).map_or(0, |i| i + 1);
        shape.push_str(&rest[..start]);
        shape.push('@');
        rest = rest[at + 2..].trim_start_matches(|c: char| c.is_ascii_digit());
    }
    shape + rest
}

/// Labels by the order of the statements.
fn renumbered(body: &Body, debug: &str) -> String {
    let mut order = vec![usize::MAX; body.labels.len()];
    let labels = body.statements.iter().filter_map(|statement| match statement {
        Statement::Label(id) => Some(id.0 as usize),
        Statement::Inst(_) | Statement::Loc(_) => None,
    });
    labels.enumerate().for_each(|(place, id)| order[id] = place);
    let mut parts = debug.split("LabelId(");
    let mut text = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let (id, rest) = part.split_once(')').expect("a number");
        let id: usize = id.parse().expect("a number");
        write!(text, "LabelId({}){rest}", order[id]).expect("a string takes everything");
    }
    text
}

/// What must survive, line by line.
pub(crate) fn facts(module: &Module) -> Vec<String> {
    let mut facts = vec![
        format!("{:?} {:?} {:?} {:?}", module.version, module.target, module.address_size, module.files),
        anonymous(&format!("{:?}", module.prototypes)),
        format!("{:?} {:?}", module.registers, module.locals),
        format!("{:?} {:?}", module.sections, module.dwarf),
    ];
    for variable in &module.variables {
        let name = if variable.owner.is_none() { variable.name.as_str() } else { "" };
        let fields: Vec<_> = variable.fields.iter().map(|(name, value)| (name, *value)).collect();
        facts.push(format!("{name} {fields:?} {}", anonymous(&format!("{variable:?}"))));
    }
    for function in &module.functions {
        let debug = anonymous(&format!("{function:?}"));
        let debug = function.body.as_ref().map_or(debug.clone(), |body| renumbered(body, &debug));
        facts.push(format!("{} {debug}", function.name));
        let statements = function.body.iter().flat_map(|body| &body.statements);
        let mods = statements.filter_map(|statement| match statement {
            Statement::Inst(inst) => Some(format!("{:?}", inst.mods)),
            Statement::Label(_) | Statement::Loc(_) => None,
        });
        facts.extend(mods);
    }
    facts
}
