//! From a checked [`Module`] to a [`Program`].
//!
//! Invariant: lowering is total: every checked module becomes a program that keeps the rules of [`super`],
//! without errors or panics. One PTX instruction becomes one [`Inst`](super::Inst); nothing is optimised.
//!
//! Choices where the manual is silent, or distributed over chapters:
//! * **Parameters.** A kernel's parameters lie in one buffer, in order, each at the next multiple of its
//!   alignment; they stay in `.param` space ([`Base::KernelParam`](super::Base::KernelParam)). A device
//!   function's `.param` inputs and returns, and the `.param` variables of calls, lie in its own frame:
//!   accesses to them, and their addresses, have space `.local` and base [`Base::Frame`](super::Base::Frame)
//!   (§5.1.6.3). An access of a device function in `.param` space through a register is therefore an access
//!   to `.local` space.
//! * **Unsized last parameters** get a place at the end of the frame. Its size is that of the largest
//!   argument that any call in the module passes for an unsized parameter (§7.2, A44).
//! * **Spaces.** An access that names a variable without a state space has the variable's space.
//! * **Flushing.** On `sm_1x`, single-precision arithmetic flushes subnormals: `.ftz` is added to the
//!   modifiers.
//! * **`mad.f32` without rounding** is `mad.rn.f32` on `sm_20` and newer (§9.7.3.7); on `sm_1x` it stays
//!   without.
//! * **Falling off the end** of a body is `ret` (A126). Unreachable blocks are dropped.
//! * **Registers of module scope** (PTX before 3.0), if device functions use any: every device function takes
//!   all of them as its last parameters and returns them as its last results, and every function has a copy
//!   of each.
//! * **`.local` variables of module scope** lie at the bottom of local memory, below the frames of kernels,
//!   at the same addresses in all kernels.
//! * **`.alias`** names are replaced by their targets in calls, addresses and initialisers.
#![deny(clippy::wildcard_enum_match_arm)]

mod body;
mod call;
mod layout;
mod operand;

use super::{Builtin, Function, Program, RegCounts};
use crate::check::module::{self, FuncId, Module, Operand, Param, ProtoId, Signature, Statement, Symbol};
use crate::isa::Ty;

/// Lowers a module.
pub fn lower(mut module: Module) -> Program {
    let variadic_bytes = largest_variadic_argument(&module);
    let aliases = Aliases::new(&module.functions);
    for variable in &mut module.variables {
        for reloc in variable.init.iter_mut().flat_map(|init| &mut init.relocs) {
            if let Symbol::Func(func) = &mut reloc.symbol {
                *func = aliases.resolve(*func);
            }
        }
    }
    let shared = layout::Shared::new(&module);
    let context = Context { module: &module, aliases, variadic_bytes, shared };
    let functions = module.functions.iter().map(|function| lower_function(&context, function)).collect();
    Program {
        source: module.source,
        version: module.version,
        target: module.target,
        address_size: module.address_size,
        files: module.files,
        variables: module.variables,
        functions,
    }
}

/// The parts of a module that the lowering of a body needs.
struct Context<'m> {
    module: &'m Module,
    aliases: Aliases,
    /// Bytes of the largest argument for an unsized parameter.
    variadic_bytes: u64,
    /// The layout of module scope.
    shared: layout::Shared,
}

/// The target of each function name.
struct Aliases(Vec<FuncId>);

impl Aliases {
    fn new(functions: &[module::Function]) -> Self {
        let resolve = |start: usize| {
            let mut at = FuncId(start as u32);
            // Bounded, in case a chain of aliases is circular.
            for _ in 0..functions.len() {
                match functions.get(at.0 as usize).and_then(|f| f.alias_of) {
                    Some(next) => at = next,
                    None => break,
                }
            }
            at
        };
        Self((0..functions.len()).map(resolve).collect())
    }

    fn resolve(&self, func: FuncId) -> FuncId {
        self.0.get(func.0 as usize).copied().unwrap_or(func)
    }
}

impl Context<'_> {
    fn signature(&self, callee: Target) -> Option<&Signature> {
        match callee {
            Target::Function(func) => self.module.functions.get(func.0 as usize).map(|f| &f.signature),
            Target::Prototype(proto) => self.module.prototypes.get(proto.0 as usize),
        }
    }
}

/// Element type of a parameter, and how many elements it has.
fn element_type(param: &Param) -> (Ty, u64) {
    let width = u64::from(param.ty.bits() / 8).max(1);
    (param.ty, (param.bytes / width).max(1))
}

/// A function or prototype, which has a signature.
#[derive(Clone, Copy)]
enum Target {
    Function(FuncId),
    Prototype(ProtoId),
}

fn lower_function(context: &Context<'_>, function: &module::Function) -> Function {
    let layout = layout::Layout::new(context, function);
    let mut lowered = Function {
        name: function.name.clone(),
        kind: function.kind,
        regs: RegCounts::default(),
        reg_names: Default::default(),
        params: layout.params.clone(),
        param_names: function.signature.params.iter().map(|p| p.name.clone()).collect(),
        param_types: function.signature.params.iter().map(element_type).collect(),
        returns: layout.returns.clone(),
        param_bytes: layout::clamp(layout.param_bytes),
        frame_bytes: layout::clamp(layout.frame_bytes),
        frame_align: layout.frame_align,
        objects: function.body.as_ref().map_or_else(Vec::new, |body| layout.objects(body)),
        performance: function.performance.clone(),
        blocks: Vec::new(),
        inlined: Vec::new(),
        builtin: if function.body.is_none() { builtin(&function.name) } else { None },
        span: function.span,
    };
    if let Some(body) = &function.body {
        lowered.blocks = body::lower(context, function, body, &layout);
        layout.compact_registers(body, &mut lowered);
    }
    lowered
}

/// The machine function with this name.
fn builtin(name: &str) -> Option<Builtin> {
    match name {
        "vprintf" => Some(Builtin::Vprintf),
        "malloc" => Some(Builtin::Malloc),
        "free" => Some(Builtin::Free),
        "__assertfail" => Some(Builtin::AssertFail),
        _ => None,
    }
}

/// The largest `.param` array that is the last argument of any call: an unsized parameter may receive it.
fn largest_variadic_argument(module: &Module) -> u64 {
    let bodies = module.functions.iter().filter_map(|f| f.body.as_ref());
    let mut largest = 0;
    for body in bodies {
        for statement in &body.statements {
            let Statement::Inst(inst) = statement else { continue };
            for operand in &inst.operands {
                if let Operand::Args(args) = operand
                    && let Some(Operand::ParamVar(local)) = args.last()
                {
                    largest = largest.max(body.locals.get(local.0 as usize).map_or(0, |l| l.bytes));
                }
            }
        }
    }
    largest
}
