//! External symbols that a module uses and does not define. PTX ISA §11.6.1.
//!
//! Invariant: a declaration alone is no use. A symbol is used if it is called, its address is taken, it is
//! accessed, or it occurs in an initialiser. Unsized shared arrays are the dynamic shared memory of a launch,
//! and need no definition.

use super::module::{Body, FuncId, Linkage, Module, Statement, Symbol, VarId};
use super::names::Name;
use crate::isa::Space;

/// An external symbol that a module uses and does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    /// A variable.
    Var(VarId),
    /// A function.
    Func(FuncId),
}

/// The used symbols.
struct Uses {
    variables: Vec<bool>,
    functions: Vec<bool>,
}

/// The external symbols that a module uses and does not define: its loader must find them elsewhere, or
/// refuse it. Variables come first, each kind in the order of the text.
pub fn unresolved(module: &Module) -> Vec<Unresolved> {
    let mut uses = Uses {
        variables: vec![false; module.variables.len()],
        functions: vec![false; module.functions.len()],
    };
    for variable in &module.variables {
        for reloc in variable.init.iter().flat_map(|init| &init.relocs) {
            match reloc.symbol {
                Symbol::Var(id) => uses.variable(id),
                Symbol::Func(id) => uses.function(id),
            }
        }
    }
    for body in module.functions.iter().filter_map(|function| function.body.as_ref()) {
        uses.body(body);
    }
    let variables =
        module.variables.iter().zip(uses.variables).enumerate().filter(|(_, (variable, used))| {
            *used && variable.linkage == Linkage::Extern && variable.space != Space::Shared
        });
    let functions = module
        .functions
        .iter()
        .zip(uses.functions)
        .enumerate()
        .filter(|(_, (function, used))| *used && function.body.is_none() && function.alias_of.is_none());
    let variables = variables.map(|(index, _)| Unresolved::Var(VarId(index as u32)));
    let functions = functions.map(|(index, _)| Unresolved::Func(FuncId(index as u32)));
    variables.chain(functions).collect()
}

impl Uses {
    fn variable(&mut self, id: VarId) {
        if let Some(used) = self.variables.get_mut(id.0 as usize) {
            *used = true;
        }
    }

    fn function(&mut self, id: FuncId) {
        if let Some(used) = self.functions.get_mut(id.0 as usize) {
            *used = true;
        }
    }

    fn body(&mut self, body: &Body) {
        for id in body.call_targets.iter().flatten() {
            self.function(*id);
        }
        for statement in &body.statements {
            if let Statement::Inst(inst) = statement {
                let mut see = |name| match name {
                    Name::Var(id) => self.variable(id),
                    Name::Func(id) => self.function(id),
                    Name::Register(_) => {}
                };
                inst.operands.iter().for_each(|operand| operand.for_each_name(&mut see));
            }
        }
    }
}
