//! A checked module: the result of the front end.
//!
//! Invariant: a [`Module`] exists only if checking found no error. Every name is a handle; operand kinds,
//! types, widths, state spaces, signatures, constants, versions and targets are valid. Later stages do not
//! check them again, and cannot fail because of the program text. The order of declarations is kept.
//!
//! It has no control-flow graph, and no layout of parameters or frames; `ir::lower` makes these.

use crate::isa::{Mods, RowId, Sm, Space, Sreg, Ty, Version};
use crate::{LineIndex, Span};
use std::sync::{Arc, OnceLock};

/// Index of a [`Variable`] in [`Module::variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u32);
/// Index of a [`Function`] in [`Module::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncId(pub u32);
/// Index of a [`Register`] in [`Body::registers`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegisterId(pub u32);
/// Index of a [`LocalVar`] in [`Body::locals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LocalId(pub u32);
/// Index of a label in [`Body::labels`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LabelId(pub u32);
/// Index of a prototype in [`Module::prototypes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProtoId(pub u32);

/// The text of a module, or the concatenated texts of a linked module; spans point into it.
#[derive(Debug)]
pub struct Source {
    /// Name for messages: a path, or `<stdin>`; for several texts, their names.
    pub name: String,
    /// The text.
    pub text: String,
    /// Its line starts, computed on first use.
    lines: OnceLock<LineIndex>,
    /// The texts that it consists of, in order; at least one.
    pub parts: Vec<SourcePart>,
}

/// One text of a [`Source`].
#[derive(Clone, Debug)]
pub struct SourcePart {
    /// Its name.
    pub name: String,
    /// Where it begins.
    pub start: u32,
}

impl Source {
    /// Wraps a text and its name.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        let (name, text) = (name.into(), text.into());
        let parts = vec![SourcePart { name: name.clone(), start: 0 }];
        Self { name, text, lines: OnceLock::new(), parts }
    }

    /// Concatenates several texts, each as a part that begins on a new line. `None` if they are too long for
    /// spans.
    pub fn join(sources: &[&Source]) -> Option<Self> {
        let mut text = String::new();
        let mut parts = Vec::new();
        for source in sources {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            let start = u32::try_from(text.len()).ok()?;
            let moved = source.parts.iter().map(|part| (part.name.clone(), part.start));
            for (name, within) in moved {
                parts.push(SourcePart { name, start: start.checked_add(within)? });
            }
            text.push_str(&source.text);
        }
        u32::try_from(text.len()).ok()?;
        let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
        Some(Self { name: names.join(" + "), text, lines: OnceLock::new(), parts })
    }

    /// The line starts of the text.
    pub fn lines(&self) -> &LineIndex {
        self.lines.get_or_init(|| LineIndex::new(&self.text))
    }

    /// The part in which a span starts.
    fn part(&self, span: Span) -> Option<&SourcePart> {
        self.parts.get(self.parts.partition_point(|part| part.start <= span.start).saturating_sub(1))
    }

    /// The name of the text in which a span starts.
    pub fn name_of(&self, span: Span) -> &str {
        self.part(span).map_or(self.name.as_str(), |part| part.name.as_str())
    }

    /// Line number (from 1) of a span's start, in its own text.
    pub fn line(&self, span: Span) -> u32 {
        let before = self.part(span).map_or(1, |part| self.lines().line(part.start));
        self.lines().line(span.start).saturating_sub(before) + 1
    }
}

/// `.address_size`: the width of a generic address. PTX ISA §11.1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressSize {
    /// 32-bit addresses.
    Bits32,
    /// 64-bit addresses.
    Bits64,
}

impl AddressSize {
    /// Width in bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            AddressSize::Bits32 => 4,
            AddressSize::Bits64 => 8,
        }
    }
}

/// The contents of `.target`. PTX ISA §11.1.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The architecture.
    pub sm: Sm,
    /// `texmode_independent` (the default is `texmode_unified`).
    pub texmode_independent: bool,
    /// `map_f64_to_f32`.
    pub map_f64_to_f32: bool,
    /// `debug`.
    pub debug: bool,
}

/// A checked module.
#[derive(Debug)]
pub struct Module {
    /// The text.
    pub source: Arc<Source>,
    /// `.version`
    pub version: Version,
    /// `.target`, or the architecture on which the module is loaded.
    pub target: Target,
    /// `.address_size`, or the version's default.
    pub address_size: AddressSize,
    /// `.file` entries: index and name.
    pub files: Vec<(u32, String)>,
    /// All variables that are laid out once per module or CTA: `.global`, `.const`, `.shared`, `.tex` and
    /// opaque ones, of module scope and of function scope (moved out of bodies; their names need not be
    /// unique).
    pub variables: Vec<Variable>,
    /// All functions, with and without bodies; an `.extern` and its definition are one entry.
    pub functions: Vec<Function>,
    /// `.callprototype`s of all bodies.
    pub prototypes: Vec<Signature>,
    /// Registers of module scope (PTX before 3.0): each thread has one copy, which all functions share.
    pub registers: Vec<Register>,
    /// `.local` variables of module scope (PTX before 3.0), shared in the same way.
    pub locals: Vec<LocalVar>,
    /// `.section`s, in order. PTX ISA §11.5.2.
    pub sections: Vec<Section>,
    /// Lines `@@DWARF …` as written, in order. PTX ISA §11.5.1.
    pub dwarf: Vec<String>,
}

/// A `.section`: data for a debugger, which ptxvm does not interpret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Its name, with its dots.
    pub name: String,
    /// Its contents; adjacent data of one width are one line.
    pub lines: Vec<SectionLine>,
}

/// A part of a [`Section`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionLine {
    /// `name:`
    Label(String),
    /// `.b8`, `.b16`, `.b32` or `.b64` with values.
    Data(Ty, Vec<SectionValue>),
}

/// A value in a [`Section`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SectionValue {
    /// Bits of the data's width.
    Number(u64),
    /// An address, as written without blanks: a section, a label, a function, or one of these and a number.
    Address(Box<str>),
}

/// Visibility of a symbol to other modules. PTX ISA §11.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum Linkage {
    /// No linking directive.
    Internal,
    Extern,
    Visible,
    Weak,
    Common,
}

/// A variable of `.global`, `.const`, `.shared`, `.tex`.
#[derive(Clone, Debug)]
pub struct Variable {
    /// Name as declared.
    pub name: String,
    /// Linkage.
    pub linkage: Linkage,
    /// State space: `Global`, `Const`, `Shared` or `Tex`.
    pub space: Space,
    /// `.const[bank]`, 0 by default.
    pub bank: u8,
    /// Element type.
    pub ty: Ty,
    /// 1, 2 or 4.
    pub vector: u8,
    /// Array dimensions; empty for a scalar. An unsized first dimension is 0 (only `.extern`).
    pub dims: Vec<u64>,
    /// Size in bytes; 0 for an unsized external array.
    pub bytes: u64,
    /// Alignment in bytes.
    pub align: u32,
    /// Initial contents; `None` is zero (undefined in `.shared`).
    pub init: Option<Init>,
    /// Initial fields of an opaque variable: name and value.
    pub fields: Vec<(String, u64)>,
    /// `.attribute(.managed)`
    pub managed: bool,
    /// The function that declares it, for a variable of function scope.
    pub owner: Option<FuncId>,
    /// Place of the name.
    pub span: Span,
}

/// Initial contents of a variable.
#[derive(Clone, Debug, Default)]
pub struct Init {
    /// Bytes, little-endian, from the start of the variable; zero at places of addresses. The rest of the
    /// variable is zero.
    pub bytes: Vec<u8>,
    /// Addresses to fill in at load.
    pub relocs: Vec<Reloc>,
}

/// An address inside an initialiser.
#[derive(Clone, Debug)]
pub struct Reloc {
    /// Byte offset in the variable.
    pub offset: u64,
    /// Width in bytes: 4 or 8 (with `mask()`-like forms 1 to 8).
    pub bytes: u8,
    /// The symbol whose address it is.
    pub symbol: Symbol,
    /// Added to it.
    pub addend: i64,
    /// `generic(...)`: the generic address; otherwise the address in the symbol's own space.
    pub generic: bool,
}

/// A symbol with an address at load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A variable.
    Var(VarId),
    /// A function or kernel.
    Func(FuncId),
}

/// A parameter of a function, kernel or prototype.
#[derive(Clone, Debug)]
pub struct Param {
    /// Name; empty or `_` in prototypes.
    pub name: String,
    /// `Reg` or `Param`.
    pub space: Space,
    /// Element type.
    pub ty: Ty,
    /// 1, 2 or 4.
    pub vector: u8,
    /// Array dimensions, empty for a scalar; `[0]` for the unsized last parameter.
    pub dims: Vec<u64>,
    /// Size in bytes (0 when unsized).
    pub bytes: u64,
    /// Alignment in bytes.
    pub align: u32,
    /// `.ptr` attribute: pointee space and alignment.
    pub ptr: Option<(Space, u32)>,
    /// Its variable in the body (`None` without a body).
    pub storage: Option<Storage>,
    /// Place of the declaration.
    pub span: Span,
}

/// The variable of a formal parameter in its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storage {
    /// A `.reg` parameter.
    Register(RegisterId),
    /// A `.param` parameter.
    Local(LocalId),
}

/// Parameter lists of a function or prototype.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// Return parameters.
    pub returns: Vec<Param>,
    /// Input parameters.
    pub params: Vec<Param>,
    /// `.noreturn`
    pub noreturn: bool,
}

/// `.entry` or `.func`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// A kernel.
    Entry,
    /// A device function.
    Func,
}

/// Performance-tuning directives. PTX ISA §11.4.
#[derive(Clone, Debug, Default)]
pub struct Performance {
    /// `.maxnreg`
    pub maxnreg: Option<u32>,
    /// `.maxntid`
    pub maxntid: Option<[u32; 3]>,
    /// `.reqntid`
    pub reqntid: Option<[u32; 3]>,
    /// `.minnctapersm`
    pub minnctapersm: Option<u32>,
}

/// A function or kernel.
#[derive(Debug)]
pub struct Function {
    /// Name.
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// Linkage.
    pub linkage: Linkage,
    /// Parameters.
    pub signature: Signature,
    /// Performance directives.
    pub performance: Performance,
    /// Body; `None` for a declaration.
    pub body: Option<Body>,
    /// `.alias`: the function that this name denotes.
    pub alias_of: Option<FuncId>,
    /// Place of the name.
    pub span: Span,
}

/// The body of a function: names resolved, scopes flattened.
#[derive(Debug, Default)]
pub struct Body {
    /// Registers: members of parameterised names, including formal `.reg` parameters, then registers of
    /// module scope that the body uses.
    pub registers: Vec<Register>,
    /// The registers of module scope among them, with their numbers in [`Module::registers`].
    pub shared: Vec<(RegisterId, u32)>,
    /// `.local` and `.param` variables, including formal `.param` parameters, then variables of module scope
    /// that the body uses.
    pub locals: Vec<LocalVar>,
    /// Label names, by id, with their places.
    pub labels: Vec<(String, Span)>,
    /// `.branchtargets` lists: by index of the list.
    pub branch_targets: Vec<Vec<LabelId>>,
    /// `.calltargets` lists and tables of functions.
    pub call_targets: Vec<Vec<FuncId>>,
    /// Statements in order.
    pub statements: Vec<Statement>,
    /// Place of the closing brace.
    pub end: Span,
}

/// A register variable.
#[derive(Clone, Debug)]
pub struct Register {
    /// Name, such as `%r1`.
    pub name: String,
    /// Element type.
    pub ty: Ty,
    /// 1, 2 or 4 elements.
    pub vector: u8,
}

/// A `.local` or `.param` variable of a body.
#[derive(Clone, Debug)]
pub struct LocalVar {
    /// Name.
    pub name: String,
    /// `Local` or `Param`.
    pub space: Space,
    /// Which role a `.param` has.
    pub role: LocalRole,
    /// Element type.
    pub ty: Ty,
    /// Size in bytes.
    pub bytes: u64,
    /// Alignment in bytes.
    pub align: u32,
    /// Array dimensions, empty for a scalar.
    pub dims: Vec<u64>,
    /// 1, 2 or 4.
    pub vector: u8,
}

/// The role of a [`LocalVar`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocalRole {
    /// `.local`
    Local,
    /// `.local` of module scope: the number in [`Module::locals`].
    Shared(u32),
    /// Input parameter of a kernel: the index.
    KernelParam(u32),
    /// Input parameter of a device function: the index.
    Input(u32),
    /// Return parameter of a device function: the index.
    Return(u32),
    /// `.param` declared in a body, for arguments and results of calls.
    CallParam,
}

/// One statement of a body.
#[derive(Clone, Debug)]
pub enum Statement {
    /// `name:`
    Label(LabelId),
    /// An instruction.
    Inst(Inst),
    /// `.loc file line column`: applies to the following statements.
    Loc(Loc),
}

/// A `.loc` directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loc {
    /// Index of the `.file`.
    pub file: u32,
    /// Source line.
    pub line: u32,
    /// Source column.
    pub column: u32,
}

/// `@p` or `@!p`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The predicate.
    pub register: RegisterId,
    /// `@!p`
    pub negated: bool,
}

/// A checked instruction.
#[derive(Clone, Debug)]
pub struct Inst {
    /// The row of the table.
    pub row: RowId,
    /// Its modifiers, as written (defaults are added by `ir::lower`).
    pub mods: Mods,
    /// Guard.
    pub guard: Option<Guard>,
    /// Operands in the order of the text; an omitted optional operand is [`Operand::Absent`] at its place of
    /// the row.
    pub operands: Vec<Operand>,
    /// The instruction without its guard.
    pub span: Span,
}

/// A checked operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// An omitted optional operand of the row.
    Absent,
    /// `_`
    Sink,
    /// A register; a whole vector register if its `vector` is over 1.
    Register(RegisterId),
    /// Element `.x .y .z .w` of a vector register.
    Element(RegisterId, u8),
    /// `!p`
    Not(RegisterId),
    /// A special register, with the component for vector ones.
    Sreg(Sreg, u8),
    /// Bits of an immediate, converted to the operand's type (integers truncated to its width, floats rounded
    /// to it).
    Imm(u64),
    /// `{a, b, ..}`
    Vector(Vec<Operand>),
    /// `d|p`
    Pair(Box<Operand>, Box<Operand>),
    /// `[base + offset]`
    Address(Address),
    /// The address (`mov`, `cvta`) of a symbol plus an offset.
    SymbolAddress(AddressBase, i64),
    /// A texture, surface or sampler: variable, kernel parameter or register that holds a handle.
    Opaque(AddressBase),
    /// `[a, b, c]`: texture, optional sampler, coordinates.
    AddressList(Vec<Operand>),
    /// A label.
    Label(LabelId),
    /// Index into [`Body::branch_targets`].
    BranchTargets(u32),
    /// A function to call.
    Function(FuncId),
    /// Index into [`Body::call_targets`].
    CallTargets(u32),
    /// A prototype of an indirect call.
    Prototype(ProtoId),
    /// Arguments or results of a call.
    Args(Vec<Operand>),
    /// A `.param` variable as an argument or result.
    ParamVar(LocalId),
    /// Operand of a video instruction: minus sign and selector or mask.
    Video {
        /// Register or immediate.
        value: Box<Operand>,
        /// `-a`
        negated: bool,
        /// The word after the dot (`b0`, `h1`, `b3210`, `h10`); empty if none.
        selector: String,
    },
}

/// `[base + offset]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The base to which the offset is added.
    pub base: AddressBase,
    /// A register that is added to a variable (`array[r]`): a byte offset (A32).
    pub index: Option<RegisterId>,
    /// Byte offset, sign-extended.
    pub offset: i64,
}

/// The base of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressBase {
    /// An absolute address (`[16]`): the offset alone.
    Absolute,
    /// A register with an address.
    Register(RegisterId),
    /// A module or function-scope static variable.
    Var(VarId),
    /// A `.local` or `.param` variable of the body.
    Local(LocalId),
    /// A function (only in `mov`).
    Func(FuncId),
}
