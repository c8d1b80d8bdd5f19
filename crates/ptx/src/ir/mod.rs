//! The Program: explicit control flow over dense typed registers.
//!
//! Rules, checked by [`verify`](verify::verify) after every pass in tests:
//! 1. Blocks are numbered in a reverse postorder in which the blocks of a loop are contiguous and a loop's
//!    exits come after all its blocks; block 0 is the entry; every block is reachable. "Lowest block first"
//!    therefore reconverges where post-dominators would.
//! 2. One PTX instruction is one [`Inst`], alone or inside its [`Terminator`]. Guarded control flow
//!    (`@p bra`, `@p ret`, `@p call`, `@p bar.sync`, `@p shfl.sync`) is a [`Terminator::Branch`] around the
//!    unguarded one.
//! 3. All defaults are explicit in [`Inst::mods`]: rounding, `.ftz` where the target implies it, scope, sem,
//!    space.
//! 4. Registers are dense per class; vector registers are split into their elements; video operands carry
//!    decoded selectors.
//! 5. Operands of an [`Inst`] follow the row's order: destinations in `dsts`, everything else in `srcs`.
//!
//! The program contains neither addresses of variables (the machine places them at load) nor a calling
//! convention of a CPU.

mod flow;
pub mod graph;
pub mod inline;
mod lower;
pub mod order;
mod print;
pub mod verify;
mod visit;

pub use lower::lower;

use crate::Span;
use crate::check::module::{
    AddressSize, FuncId, FunctionKind, Loc, Performance, Source, Target, VarId, Variable,
};
use crate::isa::{Mods, Op, RowId, Sreg, Ty, Version};
use std::sync::Arc;

/// A lowered module.
#[derive(Debug)]
pub struct Program {
    /// The text; spans point into it.
    pub source: Arc<Source>,
    /// `.version`
    pub version: Version,
    /// `.target`
    pub target: Target,
    /// Width of generic addresses.
    pub address_size: AddressSize,
    /// `.file` entries.
    pub files: Vec<(u32, String)>,
    /// Variables, by [`VarId`], as in the module.
    pub variables: Vec<Variable>,
    /// Functions, by [`FuncId`], as in the module. Declarations without a body have no blocks.
    pub functions: Vec<Function>,
}

/// Width class of a register, which selects the array of the warp frame that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegClass {
    /// One lane mask.
    Pred,
    /// `[u16; 32]`; also 8-bit registers, whose upper bits are unspecified and not read.
    R16,
    /// `[u32; 32]`
    R32,
    /// `[u64; 32]`
    R64,
}

/// A register: class and index within the class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reg {
    /// Width class.
    pub class: RegClass,
    /// Index within the class.
    pub index: u32,
}

/// How many registers of each class a function has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[allow(missing_docs, reason = "the fields are the classes")]
pub struct RegCounts {
    pub pred: u32,
    pub r16: u32,
    pub r32: u32,
    pub r64: u32,
}

/// Index of a [`Block`] in its function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u32);

/// A function or kernel.
#[derive(Debug)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Registers per class.
    pub regs: RegCounts,
    /// Names of the registers in the text, by class and index (for reports): `names[class as usize][index]`.
    pub reg_names: [Vec<String>; 4],
    /// Slots of the input parameters: for a kernel its parameter buffer layout, for a device function the
    /// places to which the caller copies. A parameter has one slot; a register vector has one per element.
    pub params: Vec<ParamSlot>,
    /// Names of the input parameters in the text.
    pub param_names: Vec<String>,
    /// Element type of each input parameter, and how many elements it has: 1 for a scalar.
    pub param_types: Vec<(Ty, u64)>,
    /// Return parameters of a device function.
    pub returns: Vec<ParamSlot>,
    /// Bytes of the kernel's parameter buffer (0 for a device function).
    pub param_bytes: u32,
    /// Bytes of local memory that one activation needs per lane: `.local` variables and `.param` variables of
    /// calls, inputs and returns of a device function.
    pub frame_bytes: u32,
    /// Alignment of the frame.
    pub frame_align: u32,
    /// Named variables in the frame and in the parameter buffer, by their number in the text.
    pub objects: Vec<Object>,
    /// Performance directives.
    pub performance: Performance,
    /// Blocks in the order of rule 1; empty for a declaration.
    pub blocks: Vec<Block>,
    /// The functions whose blocks are among these: see [`inline`](inline::inline).
    pub inlined: Vec<inline::Inlined>,
    /// The meaning of a call of this declaration, if it is a machine function.
    pub builtin: Option<Builtin>,
    /// Place of the name.
    pub span: Span,
}

/// Functions that the machine implements and that compilers call as externals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Builtin {
    /// `vprintf(format, arguments) -> s32`
    Vprintf,
    /// `malloc(bytes) -> pointer`
    Malloc,
    /// `free(pointer)`
    Free,
    /// `__assertfail(message, file, line, function, char size)`
    AssertFail,
}

/// A variable in an activation's frame, or a parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Object {
    /// Name in the text.
    pub name: String,
    /// Base of its address: [`Base::Frame`], [`Base::KernelParam`], or [`Base::Absolute`] for `.local`
    /// variables of module scope.
    pub base: Base,
    /// Offset from there.
    pub offset: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Whether it is a `.param` variable.
    pub param: bool,
}

/// A parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamSlot {
    /// Place.
    pub place: ParamPlace,
    /// Size in bytes.
    pub bytes: u32,
    /// Alignment in bytes.
    pub align: u32,
}

/// The place of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamPlace {
    /// A register.
    Reg(Reg),
    /// Offset in the activation's frame (device functions).
    Frame(u32),
    /// Offset in the kernel's parameter buffer.
    Kernel(u32),
}

/// A basic block.
#[derive(Debug)]
pub struct Block {
    /// Label in the text, if it has one.
    pub label: Option<String>,
    /// Straight-line instructions.
    pub insts: Vec<Inst>,
    /// The terminator.
    pub term: Terminator,
}

/// A guard: the instruction acts only in lanes where the predicate, or its negation, is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// Predicate register.
    pub pred: Reg,
    /// `@!p`
    pub negated: bool,
}

/// One instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    /// Operation.
    pub op: Op,
    /// Row of the table.
    pub row: RowId,
    /// Modifiers with all defaults explicit.
    pub mods: Mods,
    /// Guard; never on the instruction of a terminator.
    pub guard: Option<Guard>,
    /// Destinations in the row's order; a vector's elements one after another.
    pub dsts: Vec<Dst>,
    /// Sources in the row's order; a vector's elements one after another.
    pub srcs: Vec<Src>,
    /// Place in the text.
    pub span: Span,
    /// `.loc` in force.
    pub loc: Option<Loc>,
    /// The frame variable or kernel parameter that an address operand names: an index of
    /// [`Function::objects`]. The address may lie outside of it. For several such operands, the first.
    pub object: Option<u32>,
}

/// A destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dst {
    /// A register.
    Reg(Reg),
    /// A register of which a video instruction writes only these bytes (bit `i` for byte `i`): `.b2` is
    /// `0b0100`, `.h1` is `0b1100`. The other bytes come from the source `c`. Packed forms always have it.
    Video {
        /// The register.
        reg: Reg,
        /// Which bytes.
        bytes: u8,
    },
    /// `_`, or an omitted optional destination.
    Sink,
}

/// A source.
#[derive(Clone, Debug, PartialEq)]
pub enum Src {
    /// An omitted optional operand.
    Absent,
    /// A register.
    Reg(Reg),
    /// `!p`
    Not(Reg),
    /// Bits of an immediate of the operand's type.
    Imm(u64),
    /// A special register and its component.
    Sreg(Sreg, u8),
    /// A memory address: for `[..]` operands, and for the address of a symbol in `mov`/`cvta`.
    Addr(Addr),
    /// A source of a video instruction.
    Video(Box<VideoSrc>),
}

/// A source of a video instruction with its selector decoded. All sources of these instructions that can have
/// a selector or a minus sign are of this kind, even without either.
#[derive(Clone, Debug, PartialEq)]
pub struct VideoSrc {
    /// Register or immediate.
    pub value: Src,
    /// `-a`
    pub negated: bool,
    /// The selector's elements, lowest first: `.b2` is `[2]` with `bytes`, `.h10` is `[0, 1]` without. Empty
    /// for a whole word. In packed forms the numbers continue from `a` to `b`, and the default is explicit
    /// (V22).
    pub elements: Vec<u8>,
    /// Whether the elements are bytes (else half-words).
    pub bytes: bool,
}

/// An address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addr {
    /// Base.
    pub base: Base,
    /// A register that is added to a variable or the frame: an unsigned byte offset.
    pub index: Option<Reg>,
    /// Byte offset.
    pub offset: i64,
}

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Base {
    /// The offset alone.
    Absolute,
    /// A register: its value is an address of the instruction's space.
    Reg(Reg),
    /// A variable of the program; its address in its own space.
    Var(VarId),
    /// The activation's frame in local memory.
    Frame,
    /// The kernel's parameter buffer.
    KernelParam,
    /// A function's address (only `mov`).
    Func(FuncId),
}

/// The end of a block.
#[derive(Clone, Debug)]
pub enum Terminator {
    /// `bra` without a guard; without an instruction: falling into the next block.
    Goto(BlockId, Option<Inst>),
    /// Lanes where the predicate, or its negation, is true go to `then`, the others to `els`.
    Branch {
        /// Condition.
        cond: Guard,
        /// The target where the condition is true.
        then: BlockId,
        /// The target where it is false.
        els: BlockId,
        /// The `bra`, or the guarded instruction that needs the branch (then `then` is a block with only that
        /// instruction).
        inst: Inst,
    },
    /// `brx.idx`: the index is `inst.srcs[0]`, the only source; an index past the end traps.
    Switch {
        /// Targets by index.
        targets: Vec<BlockId>,
        /// The `brx.idx`.
        inst: Inst,
    },
    /// `call`.
    Call(Box<Call>),
    /// A warp-synchronous instruction (`shfl.sync vote.sync match.sync bar.warp.sync wmma mma`): lanes wait
    /// for the other members.
    WarpSync {
        /// The instruction.
        inst: Inst,
        /// The next block.
        next: BlockId,
    },
    /// A CTA barrier (`bar`, `barrier`), including `.arrive`.
    Barrier {
        /// The instruction.
        inst: Inst,
        /// The next block.
        next: BlockId,
    },
    /// `ret`, or falling off the end; in a kernel the lane exits.
    Ret(Option<Inst>),
    /// `exit`
    Exit(Inst),
}

/// A call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The callee.
    pub callee: Callee,
    /// Arguments, one for each slot of the callee's `params`.
    pub args: Vec<ArgPlace>,
    /// Results, one for each slot of the callee's `returns`.
    pub rets: Vec<ArgPlace>,
    /// The next block.
    pub next: BlockId,
    /// The `call`, without operands.
    pub inst: Inst,
}

/// The callee of a call.
#[derive(Clone, Debug)]
pub enum Callee {
    /// A known function.
    Direct(FuncId),
    /// The function whose address is in the register; `allowed` lists the possible callees, if the text does.
    /// The signature was checked.
    Indirect {
        /// Register with the address.
        address: Reg,
        /// The call target list.
        allowed: Option<Vec<FuncId>>,
    },
}

/// The source of an argument or the destination of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgPlace {
    /// A `.param` variable in the caller's frame.
    Frame {
        /// Offset in the frame.
        offset: u32,
        /// Size in bytes.
        bytes: u32,
    },
    /// A parameter of the calling kernel.
    KernelParam {
        /// Offset in the parameter buffer.
        offset: u32,
        /// Size in bytes.
        bytes: u32,
    },
    /// A register.
    Reg(Reg),
    /// An immediate's bits.
    Imm(u64),
    /// A dropped result, or an omitted unsized argument.
    None,
}
