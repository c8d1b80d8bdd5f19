//! Merges modules: numbers and places of the parts become those of the whole.
//!
//! Invariant: kept entities refer only to kept entities, by new numbers; the order of the texts is kept.

use super::shift as shifted;
use super::symbols::{Place, Resolved};
use crate::check::module::{
    Body, FuncId, Function, LocalRole, LocalVar, Module, ProtoId, Signature, Source, Statement, Symbol,
    VarId, Variable,
};
use crate::check::names::NameMut;
use std::sync::Arc;

/// Moves all places of a module `by` bytes.
pub(super) fn shift(module: &mut Module, by: u32) {
    let signature = |signature: &mut Signature| {
        for param in signature.returns.iter_mut().chain(&mut signature.params) {
            param.span = shifted(param.span, by);
        }
    };
    module.variables.iter_mut().for_each(|v| v.span = shifted(v.span, by));
    module.prototypes.iter_mut().for_each(signature);
    for function in &mut module.functions {
        function.span = shifted(function.span, by);
        signature(&mut function.signature);
        let Some(body) = &mut function.body else { continue };
        body.end = shifted(body.end, by);
        body.labels.iter_mut().for_each(|(_, span)| *span = shifted(*span, by));
        for statement in &mut body.statements {
            if let Statement::Inst(inst) = statement {
                inst.span = shifted(inst.span, by);
            }
        }
    }
}

/// New numbers of the entities of one module; `None` for omitted ones.
struct Numbers {
    variables: Vec<Option<VarId>>,
    functions: Vec<Option<FuncId>>,
    /// The offset of prototype numbers.
    prototypes: u32,
    /// New numbers of files.
    files: Vec<(u32, u32)>,
}

/// Merges several modules into one; `None` for an empty list.
pub(super) fn merge(modules: Vec<Module>, resolved: &Resolved, source: Arc<Source>) -> Option<Module> {
    let mut files: Vec<(u32, String)> = Vec::new();
    let numbers = numbers(&modules, resolved, &mut files);
    let version = modules.iter().map(|m| m.version).max();
    let newest = modules.iter().rev().map(|m| m.target).max_by_key(|target| target.sm.number);
    let debug = modules.iter().any(|m| m.target.debug);
    let mut modules = modules.into_iter();
    let first = modules.next()?;
    let mut linked = Module {
        source,
        version: version.unwrap_or(first.version),
        target: newest.map_or(first.target, |target| crate::check::module::Target { debug, ..target }),
        address_size: first.address_size,
        files,
        variables: Vec::new(),
        functions: Vec::new(),
        prototypes: Vec::new(),
        registers: Vec::new(),
        locals: Vec::new(),
        sections: Vec::new(),
        dwarf: Vec::new(),
    };
    for (index, module) in std::iter::once(first).chain(modules).enumerate() {
        let Some(numbers) = numbers.get(index) else { continue };
        let (registers, locals) = (linked.registers.len() as u32, linked.locals.len() as u32);
        for (id, mut variable) in module.variables.into_iter().enumerate() {
            let place = Place::Var(index, VarId(id as u32));
            if !resolved.contains_key(&place) && numbers.variables.get(id).is_some_and(Option::is_some) {
                numbers.variable(&mut variable);
                linked.variables.push(variable);
            }
        }
        for (id, mut function) in module.functions.into_iter().enumerate() {
            if !resolved.contains_key(&Place::Func(index, FuncId(id as u32))) {
                numbers.function(&mut function);
                if let Some(body) = &mut function.body {
                    body.shared.iter_mut().for_each(|(_, number)| *number += registers);
                    body.locals.iter_mut().for_each(|local| renumber(local, locals));
                }
                linked.functions.push(function);
            }
        }
        linked.prototypes.extend(module.prototypes);
        linked.sections.extend(module.sections);
        linked.dwarf.extend(module.dwarf);
        linked.registers.extend(module.registers);
        linked.locals.extend(module.locals.into_iter().map(|mut local| {
            renumber(&mut local, locals);
            local
        }));
    }
    Some(linked)
}

/// Variables of module scope follow those of the modules before.
fn renumber(local: &mut LocalVar, before: u32) {
    if let LocalRole::Shared(number) = &mut local.role {
        *number += before;
    }
}

/// Numbers all kept entities in the order of the texts, then maps symbols to their definitions.
fn numbers(modules: &[Module], resolved: &Resolved, files: &mut Vec<(u32, String)>) -> Vec<Numbers> {
    let (mut variables, mut functions, mut prototypes) = (0, 0, 0);
    let next = |counter: &mut u32| {
        *counter += 1;
        *counter - 1
    };
    let mut numbers: Vec<Numbers> = Vec::with_capacity(modules.len());
    for (index, module) in modules.iter().enumerate() {
        let left_out = |id: u32| resolved.contains_key(&Place::Func(index, FuncId(id)));
        let keeps = |(id, variable): (usize, &Variable)| {
            let stands_for_itself = !resolved.contains_key(&Place::Var(index, VarId(id as u32)));
            stands_for_itself && !variable.owner.is_some_and(|owner| left_out(owner.0))
        };
        let kept: Vec<bool> = module.variables.iter().enumerate().map(keeps).collect();
        let kept = kept.into_iter().map(|kept| kept.then(|| VarId(next(&mut variables))));
        let variables = kept.collect();
        let ids = 0..module.functions.len() as u32;
        let functions = ids.map(|id| (!left_out(id)).then(|| FuncId(next(&mut functions)))).collect();
        numbers.push(Numbers { variables, functions, prototypes, files: renumbered(&module.files, files) });
        prototypes += module.prototypes.len() as u32;
    }
    let variable = |numbers: &[Numbers], module: usize, id: VarId| {
        numbers.get(module).and_then(|n| n.variables.get(id.0 as usize).copied().flatten())
    };
    let function = |numbers: &[Numbers], module: usize, id: FuncId| {
        numbers.get(module).and_then(|n| n.functions.get(id.0 as usize).copied().flatten())
    };
    for (index, module) in modules.iter().enumerate() {
        for id in 0..module.variables.len() {
            if let Some(Place::Var(m, v)) = resolved.get(&Place::Var(index, VarId(id as u32))) {
                let target = variable(&numbers, *m, *v);
                numbers[index].variables[id] = target;
            }
        }
        for id in 0..module.functions.len() {
            if let Some(Place::Func(m, f)) = resolved.get(&Place::Func(index, FuncId(id as u32))) {
                let target = function(&numbers, *m, *f);
                numbers[index].functions[id] = target;
            }
        }
    }
    numbers
}

/// Adds the files of a module; returns their new numbers.
fn renumbered(own: &[(u32, String)], files: &mut Vec<(u32, String)>) -> Vec<(u32, u32)> {
    let mut numbers = Vec::with_capacity(own.len());
    for (number, name) in own {
        let known = files.iter().find(|(_, n)| n == name).map(|(number, _)| *number);
        let new = known.unwrap_or_else(|| {
            let taken = files.iter().any(|(n, _)| n == number);
            let free = files.iter().map(|(n, _)| n.saturating_add(1)).max().unwrap_or(1);
            let new = if taken { free } else { *number };
            files.push((new, name.clone()));
            new
        });
        numbers.push((*number, new));
    }
    numbers
}

impl Numbers {
    fn var(&self, id: &mut VarId) {
        let new = self.variables.get(id.0 as usize).copied().flatten();
        *id = new.expect(
            "kept entities refer only to kept entities: `numbers` omits entities that only omitted bodies use",
        );
    }

    fn func(&self, id: &mut FuncId) {
        let new = self.functions.get(id.0 as usize).copied().flatten();
        *id = new.expect("every function has a new number, its own or that of its definition");
    }

    fn variable(&self, variable: &mut Variable) {
        if let Some(owner) = &mut variable.owner {
            self.func(owner);
        }
        for reloc in variable.init.iter_mut().flat_map(|init| &mut init.relocs) {
            match &mut reloc.symbol {
                Symbol::Var(id) => self.var(id),
                Symbol::Func(id) => self.func(id),
            }
        }
    }

    fn function(&self, function: &mut Function) {
        if let Some(target) = &mut function.alias_of {
            self.func(target);
        }
        if let Some(body) = &mut function.body {
            self.body(body);
        }
    }

    fn body(&self, body: &mut Body) {
        body.call_targets.iter_mut().flatten().for_each(|id| self.func(id));
        for statement in &mut body.statements {
            match statement {
                Statement::Label(_) => {}
                Statement::Inst(inst) => {
                    let mut see = |name: NameMut<'_>| match name {
                        NameMut::Var(id) => self.var(id),
                        NameMut::Func(id) => self.func(id),
                        NameMut::Prototype(ProtoId(id)) => *id += self.prototypes,
                        NameMut::Register(_) | NameMut::Local(_) => {}
                    };
                    inst.operands.iter_mut().for_each(|operand| operand.for_each_name_mut(&mut see));
                }
                Statement::Loc(loc) => {
                    let new = self.files.iter().find(|(old, _)| *old == loc.file);
                    loc.file = new.map_or(loc.file, |(_, new)| *new);
                }
            }
        }
    }
}
