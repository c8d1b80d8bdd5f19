//! The syntax tree: the structure of a text, before names, types and instructions are known.
//!
//! Invariants: every node has the span of its text; children lie inside their parents, in the order of the
//! text. The tree contains no text: a [`Name`] or [`Word`] returns its text from the source. The depth of the
//! tree is bounded (see [`MAX_NESTING`](super::MAX_NESTING)), so recursion over it cannot overflow the stack.
//! A part with a syntax error is an `Error` node or `None`, and has a diagnostic.
//!
//! The tree is independent of the instruction table: an instruction is a mnemonic, words and operands. PTX
//! ISA §4.3, §5.4, §6.4, §11.

mod expression;
mod words;

pub use expression::{BinaryOp, Expr, ExprKind, UnaryOp};
pub use words::Words;

use super::token::Token;
use crate::Span;
use crate::isa::{Space, Ty};

/// A whole text.
#[derive(Clone, Debug, Default)]
pub struct Tree {
    /// Every byte of the text, in order; empty if the tree is not made for printing.
    pub tokens: Vec<Token>,
    /// The items at module scope, in order.
    pub items: Vec<Item>,
}

impl Tree {
    /// The text, byte for byte. `source` is the text from which the tree was made.
    pub fn print(&self, source: &str) -> String {
        self.tokens.iter().map(|t| t.span.text(source)).collect()
    }
}

/// An identifier: `x`, `%r1`, `$L__BB0_1`, or `_` for an unnamed parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its place.
    pub span: Span,
}

impl Name {
    /// The identifier.
    pub fn text(self, source: &str) -> &str {
        self.span.text(source)
    }
}

/// A word with its dot: a directive's name, a modifier, a type. The span includes the dot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its place, including the dot.
    pub span: Span,
}

impl Word {
    /// The word without its dot: `u32` for `.u32`.
    pub fn text(self, source: &str) -> &str {
        let text = self.span.text(source);
        text.strip_prefix('.').unwrap_or(text)
    }
}

/// A string literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Str {
    /// Its place, including the quotes.
    pub span: Span,
}

impl Str {
    /// The characters between the quotes, as written (PTX defines no escapes).
    pub fn text(self, source: &str) -> &str {
        let text = self.span.text(source);
        let text = text.strip_prefix('"').unwrap_or(text);
        text.strip_suffix('"').unwrap_or(text)
    }
}

/// A value with its place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// Its place.
    pub span: Span,
}

/// An item of module scope.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `.version 6.4`
    Version(Version),
    /// `.target sm_70, debug`
    Target(Target),
    /// `.address_size 64`
    AddressSize(AddressSize),
    /// A declaration of variables.
    Variable(Variable),
    /// `.entry` or `.func`, with or without a body.
    Function(Function),
    /// `.alias a, b;`
    Alias(Alias),
    /// `.file 1 "name"`
    File(File),
    /// `.section .debug_info { … }`
    Section(Section),
    /// A line `@@DWARF …`.
    Dwarf(Span),
    /// `.pragma "…";`
    Pragma(Pragma),
    /// `.loc 1 2 3`
    Loc(Loc),
    /// A syntax error; it has a diagnostic.
    Error(Span),
}

impl Item {
    /// Its place.
    pub fn span(&self) -> Span {
        match self {
            Item::Version(i) => i.span,
            Item::Target(i) => i.span,
            Item::AddressSize(i) => i.span,
            Item::Variable(i) => i.span,
            Item::Function(i) => i.span,
            Item::Alias(i) => i.span,
            Item::File(i) => i.span,
            Item::Section(i) => i.span,
            Item::Dwarf(span) | Item::Error(span) => *span,
            Item::Pragma(i) => i.span,
            Item::Loc(i) => i.span,
        }
    }
}

/// `.version major.minor`. PTX ISA §11.1.1.
#[derive(Clone, Debug, PartialEq)]
pub struct Version {
    /// The whole directive.
    pub span: Span,
    /// The version, if it has the form `major.minor`.
    pub number: Option<Spanned<(u32, u32)>>,
}

/// `.target list`. PTX ISA §11.1.2.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The whole directive.
    pub span: Span,
    /// Architectures and options, as written.
    pub names: Vec<Name>,
}

/// `.address_size 32|64`. PTX ISA §11.1.3.
#[derive(Clone, Debug, PartialEq)]
pub struct AddressSize {
    /// The whole directive.
    pub span: Span,
    /// The number.
    pub size: Option<Spanned<u64>>,
}

/// A linking directive. PTX ISA §11.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linkage {
    /// `.extern`
    Extern,
    /// `.visible`
    Visible,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

impl Linkage {
    /// The name without the dot.
    pub const fn name(self) -> &'static str {
        match self {
            Linkage::Extern => "extern",
            Linkage::Visible => "visible",
            Linkage::Weak => "weak",
            Linkage::Common => "common",
        }
    }
}

/// The part of a declaration that applies to all its names. PTX ISA §5.4.
#[derive(Clone, Debug, PartialEq)]
pub struct Specifiers {
    /// `.extern`, `.visible`, `.weak`, `.common`
    pub linkage: Option<Spanned<Linkage>>,
    /// The state space.
    pub space: Spanned<Space>,
    /// The bank of `.const[bank]`.
    pub bank: Option<Expr>,
    /// `.align N`
    pub align: Option<Expr>,
    /// The words in `.attribute(…)`.
    pub attributes: Vec<Attribute>,
    /// The `N` of `.vN`.
    pub vector: Option<Spanned<u8>>,
    /// The type; `None` if it is wrong, with a diagnostic.
    pub ty: Option<Spanned<Ty>>,
    /// `.ptr …` on a kernel parameter.
    pub ptr: Option<Ptr>,
}

/// One attribute: `.managed`, or `.unified(1, 2)`. PTX ISA §5.4.8.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub word: Word,
    /// Its arguments.
    pub arguments: Vec<Expr>,
}

/// `.ptr {.space} {.align N}`. PTX ISA §5.1.6.3.
#[derive(Clone, Debug, PartialEq)]
pub struct Ptr {
    /// The whole attribute.
    pub span: Span,
    /// The state space of the target; `None`: generic.
    pub space: Option<Spanned<Space>>,
    /// The alignment of the target.
    pub align: Option<Expr>,
}

/// A declaration of one or more variables.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// The whole declaration, semicolon included.
    pub span: Span,
    /// The part that applies to all names.
    pub specifiers: Specifiers,
    /// The names, at least one.
    pub names: Vec<Declarator>,
}

/// One declared name, with the part that applies to it alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Declarator {
    /// Name, count, dimensions and initialiser.
    pub span: Span,
    /// The name; `_` in a prototype's parameter.
    pub name: Name,
    /// The `N` of `name<N>`. PTX ISA §5.4.6.
    pub count: Option<Expr>,
    /// `[n]`, `[]`, outermost first. PTX ISA §5.4.3.
    pub dimensions: Vec<Dimension>,
    /// The value after `=`. PTX ISA §5.4.4.
    pub initializer: Option<Initializer>,
}

/// One `[n]` of an array declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// With its brackets.
    pub span: Span,
    /// The number of elements; none for `[]`.
    pub size: Option<Expr>,
}

/// An initialiser or a part of one.
#[derive(Clone, Debug, PartialEq)]
pub enum Initializer {
    /// One value.
    Value(Expr),
    /// `{ …, … }`
    List {
        /// With its braces.
        span: Span,
        /// Its elements.
        items: Vec<Initializer>,
    },
    /// `name = value`, in the list of an opaque type.
    Field {
        /// The field.
        name: Name,
        /// Its value: a number, or a word of the manual as an [`ExprKind::Name`].
        value: Expr,
    },
}

impl Initializer {
    /// Its place.
    pub fn span(&self) -> Span {
        match self {
            Initializer::Value(e) => e.span,
            Initializer::List { span, .. } => *span,
            Initializer::Field { name, value } => name.span.to(value.span),
        }
    }
}

/// A formal parameter or return parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The whole parameter.
    pub span: Span,
    /// Space, type and so on; without a linkage.
    pub specifiers: Specifiers,
    /// Its name (`_` in prototypes) and dimensions.
    pub declarator: Declarator,
}

/// Whether a function is a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionKind {
    /// `.entry`
    Entry,
    /// `.func`
    Func,
}

/// `.entry` or `.func`, a definition or a declaration. PTX ISA §11.2.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// From its first word to the end of its body.
    pub span: Span,
    /// `.extern`, `.visible`, `.weak`, `.common`
    pub linkage: Option<Spanned<Linkage>>,
    /// Kernel or device function; the span is that of the word.
    pub kind: Spanned<FunctionKind>,
    /// The words in `.attribute(…)`.
    pub attributes: Vec<Attribute>,
    /// Return parameters.
    pub returns: Vec<Parameter>,
    /// The name; `None` if it is wrong, with a diagnostic.
    pub name: Option<Name>,
    /// Parameters.
    pub parameters: Vec<Parameter>,
    /// The directives between signature and body.
    pub directives: Vec<FunctionDirective>,
    /// The body; a declaration has none.
    pub body: Option<Block>,
}

/// A directive between a function's signature and its body. PTX ISA §11.4.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionDirective {
    /// With its arguments.
    pub span: Span,
    /// Its kind.
    pub kind: FunctionDirectiveKind,
}

/// A directive with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub enum FunctionDirectiveKind {
    /// `.maxnreg n`
    MaxNReg(Expr),
    /// `.maxntid nx{, ny{, nz}}`
    MaxNTid(Vec<Expr>),
    /// `.reqntid nx{, ny{, nz}}`
    ReqNTid(Vec<Expr>),
    /// `.minnctapersm n`
    MinNCtaPerSm(Expr),
    /// `.maxnctapersm n`
    MaxNCtaPerSm(Expr),
    /// `.noreturn`
    NoReturn,
    /// `.pragma "…";`
    Pragma(Vec<Str>),
    /// `.reqnctapercluster nx{, ny{, nz}}` (PTX 7.8)
    ReqNCtaPerCluster(Vec<Expr>),
    /// `.explicitcluster` (PTX 7.8)
    ExplicitCluster,
    /// `.maxclusterrank n` (PTX 7.8)
    MaxClusterRank(Expr),
    /// `.blocksareclusters` (PTX 9.0)
    BlocksAreClusters,
    /// `.abi_preserve n` (PTX 9.0)
    AbiPreserve(Expr),
    /// `.abi_preserve_control n` (PTX 9.0)
    AbiPreserveControl(Expr),
    /// `.language "…", n` (PTX 9.3): the source language.
    Language,
    /// `.minperctamemory n` (PTX 9.4)
    MinPerCtaMemory(Expr),
}

/// `.alias name, target;`. PTX ISA §11.2.3.
#[derive(Clone, Debug, PartialEq)]
pub struct Alias {
    /// The whole directive.
    pub span: Span,
    /// The new name.
    pub name: Name,
    /// The function that it denotes.
    pub target: Name,
}

/// `.file index "name"{, timestamp, size}`. PTX ISA §11.5.3.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// The whole directive.
    pub span: Span,
    /// The index that `.loc` uses.
    pub index: Spanned<u64>,
    /// The file's name.
    pub name: Str,
    /// Time of last modification.
    pub timestamp: Option<Spanned<u64>>,
    /// Size in bytes.
    pub size: Option<Spanned<u64>>,
}

/// `.loc file line column{, function_name label{+n}, inlined_at file line column}`. PTX ISA §11.5.4; the
/// inlining part is from PTX 7.2.
#[derive(Clone, Debug, PartialEq)]
pub struct Loc {
    /// The whole directive.
    pub span: Span,
    /// File index.
    pub file: Spanned<u64>,
    /// Line.
    pub line: Spanned<u64>,
    /// Column.
    pub column: Spanned<u64>,
    /// The place at which the code was inlined.
    pub inlined: Option<Box<Inlined>>,
    /// Whether it is a `.loc_intermediate` (PTX 9.4), whose file is in an intermediate language.
    pub intermediate: bool,
}

/// The inlining part of a `.loc`.
#[derive(Clone, Debug, PartialEq)]
pub struct Inlined {
    /// Label of the function's name in `.debug_str`, optionally with an offset.
    pub function_name: Expr,
    /// File index of the place of inlining.
    pub file: Spanned<u64>,
    /// Line of the place of inlining.
    pub line: Spanned<u64>,
    /// Column of the place of inlining.
    pub column: Spanned<u64>,
}

/// `.section name { … }`. PTX ISA §11.5.2.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The whole directive.
    pub span: Span,
    /// The section's name, with its dots.
    pub name: Span,
    /// Its contents.
    pub lines: Vec<SectionLine>,
}

/// One line of a section.
#[derive(Clone, Debug, PartialEq)]
pub enum SectionLine {
    /// `name:`
    Label(Name),
    /// `.b8 1, 2`, `.b32 .debug_abbrev`, `.b64 label+4`
    Data {
        /// With its values.
        span: Span,
        /// `.b8`, `.b16`, `.b32` or `.b64`.
        ty: Spanned<Ty>,
        /// The values.
        values: Vec<Expr>,
    },
}

/// `.pragma "…", "…";`. PTX ISA §11.4.7.
#[derive(Clone, Debug, PartialEq)]
pub struct Pragma {
    /// The whole directive.
    pub span: Span,
    /// The strings.
    pub strings: Vec<Str>,
}

/// `{ … }` in a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// With its braces.
    pub span: Span,
    /// Its statements, in order.
    pub statements: Vec<Statement>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `{ … }`
    Block(Block),
    /// `name:`, unless it names one of the three directives below.
    Label(Name),
    /// A declaration of variables.
    Variable(Box<Variable>),
    /// An instruction.
    Instruction(Instruction),
    /// `.loc 1 2 3`
    Loc(Loc),
    /// `.pragma "…";`
    Pragma(Pragma),
    /// `name: .callprototype …;`
    CallPrototype(CallPrototype),
    /// `name: .calltargets f, g;`
    CallTargets(CallTargets),
    /// `name: .branchtargets L1, L2;`
    BranchTargets(BranchTargets),
    /// `.target sm_70`, which is for module scope.
    Target(Target),
    /// A syntax error; it has a diagnostic.
    Error(Span),
}

impl Statement {
    /// Its place.
    pub fn span(&self) -> Span {
        match self {
            Statement::Block(s) => s.span,
            Statement::Label(name) => name.span,
            Statement::Variable(s) => s.span,
            Statement::Instruction(s) => s.span,
            Statement::Loc(s) => s.span,
            Statement::Pragma(s) => s.span,
            Statement::CallPrototype(s) => s.span,
            Statement::CallTargets(s) => s.span,
            Statement::BranchTargets(s) => s.span,
            Statement::Target(s) => s.span,
            Statement::Error(span) => *span,
        }
    }
}

/// `name: .callprototype (returns) _ (parameters) .noreturn;`. PTX ISA §11.3.3.
#[derive(Clone, Debug, PartialEq)]
pub struct CallPrototype {
    /// From the label to the semicolon.
    pub span: Span,
    /// The label.
    pub label: Name,
    /// Return parameters.
    pub returns: Vec<Parameter>,
    /// Parameters.
    pub parameters: Vec<Parameter>,
    /// `.noreturn` and (PTX 9.0) `.abi_preserve n`, `.abi_preserve_control n`.
    pub directives: Vec<FunctionDirective>,
}

/// `name: .calltargets list;`. PTX ISA §11.3.2.
#[derive(Clone, Debug, PartialEq)]
pub struct CallTargets {
    /// From the label to the semicolon.
    pub span: Span,
    /// The label.
    pub label: Name,
    /// The functions.
    pub targets: Vec<Name>,
}

/// `name: .branchtargets list;`. PTX ISA §11.3.1.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchTargets {
    /// From the label to the semicolon.
    pub span: Span,
    /// The label. Without one, nothing can use the list; ptxas accepts that.
    pub label: Option<Name>,
    /// The labels.
    pub targets: Vec<BranchTarget>,
}

/// One label, or `prefix<N>` for `prefix0 … prefixN-1`.
#[derive(Clone, Debug, PartialEq)]
pub struct BranchTarget {
    /// With its count.
    pub span: Span,
    /// The label or prefix.
    pub name: Name,
    /// The `N` of `prefix<N>`.
    pub count: Option<Expr>,
}

/// An instruction, as written. PTX ISA §4.3.2.
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// From the guard to the semicolon.
    pub span: Span,
    /// `@p` or `@!p`
    pub guard: Option<Box<Guard>>,
    /// The first word: `ld`.
    pub mnemonic: Name,
    /// The words after it, in order: `global`, `v2`, `u32`.
    pub modifiers: Words,
    /// The bank of `ld.const[bank]`.
    pub bank: Option<Box<Expr>>,
    /// The operands, in order.
    pub operands: Vec<Operand>,
}

impl Instruction {
    /// The mnemonic with its modifiers.
    pub fn opcode_span(&self) -> Span {
        self.modifiers.last().map_or(self.mnemonic.span, |last| self.mnemonic.span.to(last.span))
    }
}

/// `@p` or `@!p`.
#[derive(Clone, Debug, PartialEq)]
pub struct Guard {
    /// With its `@`.
    pub span: Span,
    /// Whether there is a `!`.
    pub negated: bool,
    /// The predicate register.
    pub name: Reference,
}

/// A name in an operand, with an optional component or selector: `%tid.x`, `v.r`, `%r1.b0`, `%r1.b3210`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// Name and suffix.
    pub span: Span,
    /// The name.
    pub name: Name,
    /// Vector component or video selector.
    pub suffix: Option<Word>,
}

/// One operand.
#[derive(Clone, Debug, PartialEq)]
pub struct Operand {
    /// Its place.
    pub span: Span,
    /// Its kind.
    pub kind: OperandKind,
}

/// The kind of an operand.
#[derive(Clone, Debug, PartialEq)]
pub enum OperandKind {
    /// `_`
    Sink,
    /// A register, variable, label or function: `%r1`, `%tid.x`, `%r1.b0`.
    Name(Reference),
    /// `!p`
    Not(Reference),
    /// `-r`
    Minus(Reference),
    /// A constant, or an expression with names in it such as `array+4`; never a bare name (`WARP_SZ` is no
    /// name).
    Expr(Expr),
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `[base+offset]`
    Address(Address),
    /// Brackets with commas: `[tex, sampler, {x, y}]`.
    AddressList(Vec<Operand>),
    /// `a[index]`: index as base and offset, like an address.
    Indexed {
        /// The array.
        array: Name,
        /// The contents of the brackets.
        index: Box<Address>,
    },
    /// `d|p`: each a name or a sink.
    Pair(Box<Operand>, Box<Operand>),
    /// `(a, b)`, in a `call`.
    Parameters(Vec<Operand>),
    /// A syntax error; it has a diagnostic.
    Error,
}

/// A sum of a name and a constant expression, each optional but not both.
#[derive(Clone, Debug, PartialEq)]
pub struct Address {
    /// The text between the brackets.
    pub span: Span,
    /// A register or variable.
    pub base: Option<Reference>,
    /// The offset: `-4` for `[r-4]`.
    pub offset: Option<Box<Expr>>,
    /// `.unified` after the brackets: the memory is unified (PTX 8.0).
    pub unified: Option<Span>,
}
