//! A row of the instruction table, and the notation of its columns.
//!
//! Invariant: a row is plain `const` data, one per syntax line of the manual, in the manual's notation.
//! Everything structured ([`Form`](super::form::Form)) is parsed from it once. A test parses every row, so
//! every column is well-formed. Rows do not say whether they are implemented.
//!
//! # `syntax`
//! `"add{.rnd}{.ftz}{.sat}.f32 d, a, b"`. The mnemonic is followed by the suffix words: a word that names a
//! set of the row (column `sets`) is a slot, any other is literal. `{...}` is optional, `<...>` contains
//! parts in any order, of which `(.a.b)` stay together (A101, A146 of the project's list of readings). A
//! literal type fills slot `type`, except in a row with its own slot `type`. Operands: `a` plain, `{!}c` a
//! predicate that may be negated, `{-}a` a value that may be negated, `d|p` a pair, `d[|p]` a pair with an
//! optional second half, `[a]` an address, `[a, b]` a bracket of several operands, `(a)` a parenthesised
//! list, `a{.asel}` with an optional selector, `d.dsel` with a required selector, `{, e}` an optional
//! operand.
//!
//! # `sets`
//! `s("rnd", "rn* rz rm@2.0,sm_20")`: the values of a slot, the default marked `*`, each with an optional
//! gate after `@`. The value `-` gates omitting the slot. A literal word may be a set of itself
//! (`s("aligned", "aligned* -@until,6.3")`), and is then implied if it is omitted. `g("weak", "6.0 sm_70")`:
//! the gate of a literal word.
//!
//! # `opnds`
//! `"d:=dtype b:u32"`: the kind of each operand by name; a leading `=` makes it a destination. An unlisted
//! operand is `=type` if it is named `d`, else `type`. The kinds:
//!
//! | kind | operand |
//! | --- | --- |
//! | `type`, `dtype`, ... | a value of the type in that slot |
//! | `u32`, `b64`, `pred`, ... | a value of that type |
//! | `wide(type)` | a value of twice that width |
//! | `>type` | a value whose register may be wider than the type (§9.4.1) |
//! | `type*vec`, `b32*4` | as many elements as in slot `vec`, or four; in braces if more than one |
//! | `ptr` | an integer of the module's address size |
//! | `reg(u32)` | a register only |
//! | `type.sub`, `.sel2`, `.sel4`, `.mask2`, `.mask4` | with a video selector of that kind |
//! | `imm(0..255)` | an integer constant in that range |
//! | `addr(ss)`, `addr(global)` | an address in the state space of slot `ss` (generic by default), or in that one |
//! | `label`, `tlist` | a label; the label of a `.branchtargets` |
//! | `func`, `fptr`, `targets`, `args`, `rets` | the parts of a call |
//! | `texref`, `samplerref`, `surfref` | an opaque variable, or a 64-bit register that points to one |
//! | `coords`, `offset`, `grad`, `lod` | texture or surface coordinates and their companions, by slots `geom` and `ctype` (`.s32` by default) |
//! | `frag(a)`, `frag(matrix)` | the registers of the fragment of A, B, C or D, by shape and type |
//! | `elems` | the vector of a packing or unpacking `mov` |
//! | `movsrc` | a source of `mov`: value, special register, address of a variable or function |
//! | `var` | a register, or the name of a variable with an offset (`cvta`) |
//!
//! After a kind, `@2.0,sm_20` gates the operand; `%2.0,sm_20` gates a register in place of a constant.

use super::Op;

/// One syntax line of the manual.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The operation.
    pub op: Op,
    /// Mnemonic, suffix words and operands.
    pub syntax: &'static str,
    /// Values of the slots, and gates of literal words.
    pub sets: &'static [Set],
    /// Kinds of the operands.
    pub opnds: &'static str,
    /// Gate: version and targets.
    pub since: &'static str,
    /// The threads or state that are involved.
    pub class: Class,
    /// Section of the PTX 6.4 manual (or, for later forms, of the current one).
    pub section: &'static str,
    /// Its result, in our own words.
    pub brief: &'static str,
    /// Modifiers that the form implies without spelling them (`div.f32` of PTX 1.3 means `.approx.ftz`).
    pub implies: &'static str,
    /// How precisely the manual determines the result.
    pub exact: Exactness,
    /// Rules that the syntax cannot express.
    pub rules: &'static [Rule],
    /// The project's feature ids that this form covers.
    pub ids: &'static [&'static str],
}

/// The values of a slot, or the gate of a literal word.
#[derive(Clone, Copy, Debug)]
pub struct Set {
    /// Slot name, or literal word.
    pub name: &'static str,
    /// Values; empty for a literal word.
    pub values: &'static str,
    /// Gate of a literal word; empty for a slot.
    pub gate: &'static str,
}

/// The threads or state that an instruction involves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// Each lane separately, on registers.
    Lane,
    /// Lanes of a warp together.
    Warp,
    /// Memory is read or written.
    Memory,
    /// Threads wait for or order themselves against others.
    Sync,
    /// Control flow.
    Control,
}

/// How precisely the manual determines the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// To the bit, except for the payload of NaN.
    Exact,
    /// Within the bound given.
    Bounded(&'static str),
    /// Unspecified precision or order.
    Approximate,
}

/// A rule that the syntax of a row cannot express. Rules about modifiers alone are checked in
/// [`super::rule`], rules about operands in the checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// The comparison must exist for the source type, and `.ftz` needs floating-point sources. §9.3.1.
    CmpForType,
    /// `.sat` requires that the destination cannot represent every source value. §9.7.8.14, A98.
    SatNarrows,
    /// `.ftz` requires that one side is `.f32`. §9.7.8.14, A99.
    FtzNeedsF32,
    /// The vector may not exceed 128 bits. §9.7.8.7.
    Vec128,
    /// A vector may have 256 bits in global memory if its words have 32 or 64 bits, else 128; `.b128` has no
    /// vectors. `ld`, `st` of the current manual.
    Vec256,
    /// The vector has 256 bits. `ld`, `st` of the current manual.
    Only256,
    /// A and B must have the same type. §9.7.13.8.
    SameAb,
    /// `.ctype` `.f32` needs `.dtype` `.f32`. §9.7.13.9, A154.
    CtypeNeedsDtype,
    /// The coordinate types and companions that a texture geometry allows. §9.7.9.3.
    TexGeometry,
    /// 64-bit atomics in shared memory need PTX 2.0 and `sm_20`. §9.7.12.4.
    Shared64,
    /// `c` may be unsigned only if both factors are. §9.7.1.21.
    Dot,
    /// Accesses to call arguments and results may not be guarded; input parameters may not be written. §7.1,
    /// A42.
    ParamAccess,
    /// The parts of the vector together have the size of the whole. §9.7.8.3.
    PackSizes,
    /// The operand has the module's address size. §9.7.8.13.
    AddressSize,
    /// A constant thread count is a positive multiple of the warp size; the barrier number is at most 15.
    /// §9.7.12.1, A123.
    BarrierCount,
    /// An asynchronous copy has 4, 8 or 16 bytes. `cp.async` of the current manual.
    CopySize,
    /// The fraction is above 0 and at most 1. `createpolicy` of the current manual.
    Fraction,
    /// Only one of the product and `c` may be negated. §9.7.15.3, V26.
    VmadNegation,
    /// Constants as operands: accepted with a warning, because ptxas refuses them in SIMD video instructions.
    /// V13.
    SimdConstant,
    /// Omitting the clamp: accepted with a warning, as in the manual's examples; ptxas refuses it. A140.
    ClampGiven,
    /// Omitting the rounding: accepted with a warning, as in the manual's notes; ptxas refuses it. A93.
    RndGiven,
    /// No brackets around texture and coordinates: accepted with a warning; ptxas refuses it. §9.7.9.3.
    BracketsGiven,
    /// Accepted with a warning: the manual discourages it.
    Deprecated,
    /// Whether a sampler is allowed or required depends on the texturing mode. §9.7.9.1.
    TexMode,
    /// Arguments match the callee. §9.7.11.5.
    CallSignature,
}

/// A slot and its values.
pub(super) const fn s(name: &'static str, values: &'static str) -> Set {
    Set { name, values, gate: "" }
}

/// The gate of a literal word.
pub(super) const fn g(word: &'static str, gate: &'static str) -> Set {
    Set { name: word, values: "", gate }
}

/// A row, in the order of the columns.
#[allow(clippy::too_many_arguments, reason = "these are the columns of the table")]
pub(super) const fn row(
    op: Op,
    syntax: &'static str,
    sets: &'static [Set],
    opnds: &'static str,
    since: &'static str,
    class: Class,
    section: &'static str,
    ids: &'static [&'static str],
    brief: &'static str,
) -> Row {
    Row {
        op,
        syntax,
        sets,
        opnds,
        since,
        class,
        section,
        brief,
        implies: "",
        exact: Exactness::Exact,
        rules: &[],
        ids,
    }
}

impl Row {
    /// Whether it can trap: see [`Op::traps`].
    pub const fn traps(&self) -> bool {
        self.op.traps()
    }

    /// With rules.
    pub(super) const fn rules(mut self, rules: &'static [Rule]) -> Self {
        self.rules = rules;
        self
    }

    /// With modifiers that the form implies.
    pub(super) const fn implies(mut self, words: &'static str) -> Self {
        self.implies = words;
        self
    }

    /// With an error bound.
    pub(super) const fn bounded(mut self, bound: &'static str) -> Self {
        self.exact = Exactness::Bounded(bound);
        self
    }

    /// With a result of unspecified precision or order.
    pub(super) const fn approximate(mut self) -> Self {
        self.exact = Exactness::Approximate;
        self
    }
}
