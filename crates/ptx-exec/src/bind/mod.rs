//! From a `Program` to bound code: each instruction becomes a step, each terminator becomes the data that the
//! interpreter needs for it.
//!
//! Invariants: the match on `Op` is exhaustive, so a new instruction is a compile error here. An instruction
//! with a word or operand that was not interpreted is [`Unimplemented`]; it is never executed without it
//! (`Operands::finish`). No table lists the supported forms: [`supported`] binds an instruction of the form
//! and checks the result.
//!
//! Positions and waiting belong to the interpreter; addresses belong to the [`Layout`].
#![deny(clippy::wildcard_enum_match_arm)]

mod access;
mod arith;
mod asynchronous;
mod atom;
mod b128;
mod barrier;
mod compare;
mod cvt;
mod cvt16;
mod float;
mod fragment;
mod half;
mod ldmatrix;
mod logic;
mod matrix;
mod matrix_f64;
mod matrix_operands;
mod memory;
mod misc;
mod mov;
mod opaque;
mod operands;
mod product;
mod rounding;
mod sparse;
mod sreg;
mod surface;
mod synthesise;
mod texture;
mod video;
mod warp;

use crate::bound::{self, Code, Step, StepFn, Term, Value32};
use crate::layout::Layout;
use crate::trap::FaultKind;
pub use fragment::{Fragment, Matrix};
use operands::{Bound, Operands};
pub use product::{Product, Types};
use ptx::Span;
use ptx::analysis::calls;
use ptx::check::module::FuncId;
use ptx::ir::{Base, Callee, Inst, Program, RegClass, Src, Terminator};
use ptx::isa::{Class, Mods, Op, RowId, Ty};
use ptx_sem::{VideoLanes, VideoScalarOp, VideoSimdOp};
pub use warp::shfl_semantics;

/// Selects by type; types that are not listed are not bound.
macro_rules! by_type {
    ($ty:expr; $($($name:ident)|+ => $then:expr),+ $(,)?) => {
        'by_type: {
            let ty: ptx::isa::Ty = $ty;
            $(if matches!(ty, $(ptx::isa::Ty::$name)|+) {
                let made = $then;
                break 'by_type made;
            })+
            Err($crate::bind::Missing)
        }
    };
}
use by_type;

/// The error of a form that is not bound. The caller knows the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Missing;

/// An instruction that ptxvm understands but cannot execute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unimplemented {
    /// The instruction with its modifiers, or a description of the missing part.
    pub name: String,
    /// The function that contains it.
    pub function: String,
    /// Its place.
    pub span: Span,
    /// Its line in the PTX text, from 1.
    pub line: u32,
}

impl std::fmt::Display for Unimplemented {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "line {}: `{}` is not implemented", self.line, self.name)
    }
}

/// The context of a binding.
struct Binding<'a> {
    program: &'a Program,
    layout: &'a Layout,
    /// The kernel whose parameters are accessed, if known.
    kernel: Option<FuncId>,
}

/// Binds all code that a kernel can reach.
///
/// # Errors
/// The first instruction that is not implemented.
pub fn bind(program: &Program, kernel: FuncId, layout: &Layout) -> Result<Code, Unimplemented> {
    let binding = Binding { program, layout, kernel: Some(kernel) };
    let mut functions: Vec<Option<bound::Function>> = program.functions.iter().map(|_| None).collect();
    for id in calls::reachable(program, kernel) {
        functions[id.0 as usize] = Some(binding.function(&program.functions[id.0 as usize])?);
    }
    Ok(Code { functions, shared_bytes: layout.shared_bytes })
}

/// Every instruction of the program that cannot be executed, in the order of the text.
pub fn check_supported(program: &Program) -> Vec<Unimplemented> {
    let layout = Layout {
        variables: vec![0; program.variables.len()],
        functions: vec![0; program.functions.len()],
        shared_bytes: 0,
        reserved_bytes: 0,
    };
    let binding = Binding { program, layout: &layout, kernel: None };
    let mut all = Vec::new();
    for function in &program.functions {
        for block in &function.blocks {
            let steps = block.insts.iter().filter_map(|inst| binding.step(function, inst, 0).err());
            all.extend(steps);
            all.extend(binding.term(function, &block.term).err());
        }
    }
    all.sort_by_key(|missing| missing.span.start);
    all
}

/// How many spellings of a row are bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// Every spelling of its modifiers.
    All,
    /// Some.
    Some,
    /// None.
    None,
}

/// Tests how many spellings of a row are bound, by binding an instruction of each.
pub fn support(row: RowId) -> Support {
    let all = row.spellings();
    match all.iter().filter(|mods| supported(row, mods)).count() {
        0 => Support::None,
        n if n == all.len() => Support::All,
        _ => Support::Some,
    }
}

/// Whether an instruction of this row with these modifiers is bound, tested by binding one.
pub fn supported(row: RowId, mods: &Mods) -> bool {
    synthesise::is_bound(row, mods)
}

/// An instruction of this row with these modifiers, with every optional operand, and with registers wherever
/// the row allows them, numbered from 0 in each class, destinations first. `None` for control flow.
pub fn sample(row: RowId, mods: &Mods) -> Option<Inst> {
    synthesise::instruction(row, mods).ok()
}

/// The step of an isolated instruction without variables, for `sm_70`. `None` if it is not bound or ends a
/// block; a matrix instruction ends one, but has a step all the same.
pub fn lone_step(inst: &Inst) -> Option<StepFn> {
    let (program, layout) = (synthesise::empty_program(), Layout::default());
    let binding = Binding { program: &program, layout: &layout, kernel: None };
    if matrix::is_matrix(inst.op) {
        return binding.understood(inst, matrix::matrix).ok();
    }
    binding.run(inst, 0).ok()
}

impl Binding<'_> {
    fn function(&self, function: &ptx::ir::Function) -> Result<bound::Function, Unimplemented> {
        let block = |block: &ptx::ir::Block| {
            // Each instruction is followed by the rest of the block, including the terminator.
            let behind = (1..=block.insts.len() as u64).rev();
            let steps = block.insts.iter().zip(behind);
            let steps = steps.map(|(inst, behind)| self.step(function, inst, behind));
            let steps = steps.collect::<Result<_, _>>()?;
            let inst = instruction_of(&block.term);
            Ok(bound::Block {
                steps,
                term: self.term(function, &block.term)?,
                span: inst.map_or(Span::default(), |inst| inst.span),
                loc: inst.and_then(|inst| inst.loc),
            })
        };
        Ok(bound::Function {
            name: function.name.clone(),
            kind: function.kind,
            blocks: function.blocks.iter().map(block).collect::<Result<_, _>>()?,
            regs: function.regs,
            params: function.params.clone(),
            returns: function.returns.clone(),
            frame_bytes: function.frame_bytes,
            frame_align: function.frame_align,
        })
    }

    /// The step of an instruction; `behind` is the number of instructions after it in its block.
    fn step(&self, function: &ptx::ir::Function, inst: &Inst, behind: u64) -> Result<Step, Unimplemented> {
        // Under `.map_f64_to_f32` only old devices define how a 64-bit register holds an `.f32`, so
        // arithmetic is refused; a move does not depend on it.
        let arithmetic = inst.row.row().class == Class::Lane && inst.op != Op::Mov;
        let double = inst.mods.given().iter().any(|(_, word)| word.ty() == Some(Ty::F64));
        if self.program.target.map_f64_to_f32 && arithmetic && double {
            return Err(self.missing(function, inst, format!("{} under map_f64_to_f32", spelled(inst))));
        }
        let run = self.run(inst, behind).map_err(|Missing| self.missing(function, inst, spelled(inst)))?;
        Ok(Step { guard: inst.guard, run, span: inst.span, loc: inst.loc })
    }

    /// The step of an instruction of which every word and operand was interpreted.
    fn run(&self, inst: &Inst, behind: u64) -> Bound {
        let o = Operands::at(self, inst, behind);
        let run = step(&o)?;
        o.finish()?;
        Ok(run)
    }

    fn missing(&self, function: &ptx::ir::Function, inst: &Inst, name: String) -> Unimplemented {
        Unimplemented {
            name,
            function: function.name.clone(),
            span: inst.span,
            line: self.program.source.line(inst.span),
        }
    }

    fn term(&self, function: &ptx::ir::Function, term: &Terminator) -> Result<Term, Unimplemented> {
        let refuse = |inst: &Inst| self.missing(function, inst, spelled(inst));
        match term {
            Terminator::Goto(to, _) => Ok(Term::Goto(*to)),
            Terminator::Branch { cond, then, els, .. } => {
                Ok(Term::Branch { cond: *cond, then: *then, els: *els })
            }
            Terminator::Switch { targets, inst } => {
                let index = inst.srcs.first().ok_or(Missing).and_then(value32);
                let index = index.map_err(|Missing| refuse(inst))?;
                Ok(Term::Switch { index, targets: targets.clone() })
            }
            Terminator::Call(call) => self.call(function, call),
            Terminator::WarpSync { inst, next } if matrix::is_matrix(inst.op) => self
                .understood(inst, matrix::matrix)
                .map(|run| Term::Aligned { run, next: *next })
                .map_err(|Missing| refuse(inst)),
            Terminator::WarpSync { inst, next } => self
                .understood(inst, |o| warp::sync(o, *next))
                .map(|sync| Term::WarpSync(Box::new(sync)))
                .map_err(|Missing| refuse(inst)),
            Terminator::Barrier { inst, next } => self
                .understood(inst, |o| barrier::barrier(o, *next))
                .map(|barrier| Term::Barrier(Box::new(barrier)))
                .map_err(|Missing| refuse(inst)),
            Terminator::Ret(_) => Ok(Term::Ret),
            Terminator::Exit(_) => Ok(Term::Exit),
        }
    }

    fn understood<T>(
        &self,
        inst: &Inst,
        f: impl Fn(&Operands<'_>) -> Result<T, Missing>,
    ) -> Result<T, Missing> {
        let o = Operands::new(self, inst);
        let made = f(&o)?;
        o.finish()?;
        Ok(made)
    }

    fn call(&self, function: &ptx::ir::Function, call: &ptx::ir::Call) -> Result<Term, Unimplemented> {
        let mut builtin = None;
        if let Callee::Direct(callee) = &call.callee {
            let callee = &self.program.functions[callee.0 as usize];
            builtin = callee.builtin;
            if callee.blocks.is_empty() && builtin.is_none() {
                let name = format!("call of `{}`, which has no body", callee.name);
                return Err(self.missing(function, &call.inst, name));
            }
        }
        Ok(Term::Call(Box::new(bound::Call {
            callee: call.callee.clone(),
            builtin,
            args: call.args.clone(),
            rets: call.rets.clone(),
            next: call.next,
        })))
    }
}

/// The mnemonic and modifiers of an instruction, as written.
fn spelled(inst: &Inst) -> String {
    format!("{}{}", inst.row.form().mnemonic, inst.mods)
}

fn instruction_of(term: &Terminator) -> Option<&Inst> {
    match term {
        Terminator::Goto(_, inst) | Terminator::Ret(inst) => inst.as_ref(),
        Terminator::Branch { inst, .. }
        | Terminator::Switch { inst, .. }
        | Terminator::WarpSync { inst, .. }
        | Terminator::Barrier { inst, .. }
        | Terminator::Exit(inst) => Some(inst),
        Terminator::Call(call) => Some(&call.inst),
    }
}

/// A 32-bit operand that the interpreter reads outside of a step.
fn value32(src: &Src) -> Result<Value32, Missing> {
    match src {
        Src::Reg(reg) if reg.class == RegClass::R32 => Ok(Value32::Reg(*reg)),
        Src::Imm(bits) => Ok(Value32::Imm(*bits as u32)),
        Src::Addr(ptx::ir::Addr { base: Base::Absolute, offset, .. }) => Ok(Value32::Imm(*offset as u32)),
        Src::Reg(_) | Src::Absent | Src::Not(_) | Src::Sreg(..) | Src::Addr(_) | Src::Video(_) => {
            Err(Missing)
        }
    }
}

/// A step without an effect, for hints.
fn no_effect() -> StepFn {
    Box::new(|_| Ok(()))
}

/// The step of an instruction that is no terminator.
fn step(o: &Operands<'_>) -> Bound {
    use VideoLanes::{Four, Two};
    match o.inst.op {
        Op::Add => arith::add(o),
        Op::Sub => arith::sub(o),
        Op::Mul => arith::mul(o),
        Op::Mad => arith::mad(o),
        Op::Mul24 => arith::mul24(o),
        Op::Mad24 => arith::mad24(o),
        Op::Sad => arith::sad(o),
        Op::Div => arith::div(o),
        Op::Rem => arith::rem(o),
        Op::Abs => arith::abs(o),
        Op::Neg => arith::neg(o),
        Op::Min => arith::min(o),
        Op::Max => arith::max(o),
        Op::Popc => arith::popc(o),
        Op::Clz => arith::clz(o),
        Op::Bfind => arith::bfind(o),
        Op::Fns => arith::fns(o),
        Op::Brev => arith::brev(o),
        Op::Bfe => arith::bfe(o),
        Op::Bfi => arith::bfi(o),
        Op::Dp4a => arith::dp4a(o),
        Op::Dp2a => arith::dp2a(o),
        Op::AddCc => arith::add_cc(o),
        Op::Addc => arith::addc(o),
        Op::SubCc => arith::sub_cc(o),
        Op::Subc => arith::subc(o),
        Op::MadCc => arith::mad_cc(o),
        Op::Madc => arith::madc(o),

        Op::Testp => float::testp(o),
        Op::Copysign => float::copysign(o),
        Op::Fma => float::fma(o),
        Op::Rcp => float::rcp(o),
        Op::Sqrt => float::sqrt(o),
        Op::Rsqrt => float::rsqrt(o),
        Op::Sin => float::sin(o),
        Op::Cos => float::cos(o),
        Op::Lg2 => float::lg2(o),
        Op::Ex2 => float::ex2(o),
        Op::Tanh => cvt16::tanh(o),

        Op::Set => compare::set(o),
        Op::Setp => compare::setp(o),
        Op::Selp => compare::selp(o),
        Op::Slct => compare::slct(o),

        Op::And => logic::and(o),
        Op::Or => logic::or(o),
        Op::Xor => logic::xor(o),
        Op::Not => logic::not(o),
        Op::Cnot => logic::cnot(o),
        Op::Lop3 => logic::lop3(o),
        Op::Shf => logic::shf(o),
        Op::Shl => logic::shl(o),
        Op::Shr => logic::shr(o),
        Op::Prmt => logic::prmt(o),

        Op::Mov => mov::mov(o),
        Op::MovPack => mov::mov_pack(o),
        Op::MovUnpack => mov::mov_unpack(o),
        Op::MovVec => mov::mov_vec(o),
        Op::Isspacep => mov::isspacep(o),
        Op::Cvta => mov::cvta(o),
        Op::CvtaTo => mov::cvta_to(o),
        Op::Cvt => cvt::cvt(o),

        Op::Ld => memory::ld(o),
        Op::LdNc => memory::ld_nc(o),
        Op::Ldu => memory::ldu(o),
        Op::St => memory::st(o),
        Op::Prefetch | Op::Prefetchu => memory::prefetch(o),
        Op::Atom => atom::atom(o),
        Op::Red => atom::red(o),
        Op::Membar | Op::Fence => misc::fence(o),

        Op::Shfl => warp::shfl(o),
        Op::Vote => warp::vote(o),
        Op::Activemask => warp::activemask(o),

        Op::Vadd => video::scalar(o, VideoScalarOp::Add),
        Op::Vsub => video::scalar(o, VideoScalarOp::Sub),
        Op::Vabsdiff => video::scalar(o, VideoScalarOp::Absdiff),
        Op::Vmin => video::scalar(o, VideoScalarOp::Min),
        Op::Vmax => video::scalar(o, VideoScalarOp::Max),
        Op::Vshl => video::scalar(o, VideoScalarOp::Shl),
        Op::Vshr => video::scalar(o, VideoScalarOp::Shr),
        Op::Vset => video::scalar(o, VideoScalarOp::Set),
        Op::Vmad => video::vmad(o),
        Op::Vadd2 => video::simd(o, VideoSimdOp::Add, Two),
        Op::Vsub2 => video::simd(o, VideoSimdOp::Sub, Two),
        Op::Vavrg2 => video::simd(o, VideoSimdOp::Avrg, Two),
        Op::Vabsdiff2 => video::simd(o, VideoSimdOp::Absdiff, Two),
        Op::Vmin2 => video::simd(o, VideoSimdOp::Min, Two),
        Op::Vmax2 => video::simd(o, VideoSimdOp::Max, Two),
        Op::Vset2 => video::simd(o, VideoSimdOp::Set, Two),
        Op::Vadd4 => video::simd(o, VideoSimdOp::Add, Four),
        Op::Vsub4 => video::simd(o, VideoSimdOp::Sub, Four),
        Op::Vavrg4 => video::simd(o, VideoSimdOp::Avrg, Four),
        Op::Vabsdiff4 => video::simd(o, VideoSimdOp::Absdiff, Four),
        Op::Vmin4 => video::simd(o, VideoSimdOp::Min, Four),
        Op::Vmax4 => video::simd(o, VideoSimdOp::Max, Four),
        Op::Vset4 => video::simd(o, VideoSimdOp::Set, Four),

        Op::Trap => misc::fault(FaultKind::Trap),
        // There is no debugger.
        Op::Brkpt => Ok(no_effect()),
        Op::Pmevent => misc::pmevent(o),
        Op::Nanosleep => misc::nanosleep(o),

        // Terminators are never among the steps of a block.
        Op::Bra
        | Op::BrxIdx
        | Op::Call
        | Op::CallIndirect
        | Op::Ret
        | Op::Exit
        | Op::ShflSync
        | Op::VoteSync
        | Op::MatchAny
        | Op::MatchAll
        | Op::BarWarpSync
        | Op::ReduxSync
        | Op::ElectSync
        | Op::BarSync
        | Op::BarArrive
        | Op::BarRed
        | Op::WmmaLoad
        | Op::WmmaStore
        | Op::WmmaMma
        | Op::Mma
        | Op::Ldmatrix
        | Op::Stmatrix
        | Op::Movmatrix => Err(Missing),

        Op::Tex => texture::tex(o),
        Op::Tld4 => texture::tld4(o),
        Op::Txq | Op::Suq => opaque::query(o),
        Op::Istypep => opaque::istypep(o),
        Op::Suld => surface::suld(o),
        Op::Sust => surface::sust(o),
        Op::Sured => surface::sured(o),

        // Instructions introduced after PTX 6.4.
        Op::Szext => arith::szext(o),
        Op::Bmsk => arith::bmsk(o),
        Op::CvtPack => arith::cvt_pack(o),
        Op::CpAsync => asynchronous::copy(o),
        Op::CpAsyncCommitGroup
        | Op::CpAsyncWaitGroup
        | Op::CpAsyncWaitAll
        | Op::Applypriority
        | Op::Discard
        | Op::Griddepcontrol => asynchronous::nothing(o),
        Op::Createpolicy => asynchronous::policy(o),
        Op::CpAsyncMbarrierArrive => asynchronous::copies_arrive(o),
        Op::MbarrierInit => asynchronous::init(o, true),
        Op::MbarrierInval => asynchronous::init(o, false),
        Op::MbarrierArrive => asynchronous::arrive(o, ptx_sem::mbarrier_arrive),
        Op::MbarrierArriveDrop => asynchronous::arrive(o, ptx_sem::mbarrier_arrive_drop),
        Op::MbarrierTestWait => asynchronous::test_wait(o),
        Op::MbarrierPendingCount => asynchronous::pending_count(o),
    }
}
