//! The modifiers of one instruction, assigned to the slots of its row.
//!
//! Invariant: [`Mods`] holds the words as written, in order, followed by the words that the row implies and
//! the defaults of omitted slots. So no later stage supplies a default. Typed accessors return closed enums.

use super::{Scope, Sem, Slot, Space, Ty, Word};

/// The modifiers of an instruction: as written, then implied.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mods {
    items: [(Slot, Word); Mods::CAPACITY],
    given: u8,
    len: u8,
}

impl Mods {
    /// The most modifiers that an instruction can have (a test of the table asserts that it suffices).
    pub const CAPACITY: usize = 18;

    /// No modifiers.
    pub const fn new() -> Self {
        Self { items: [(Slot::Flag, Word::Sat); Self::CAPACITY], given: 0, len: 0 }
    }

    /// Adds a word as written. Words beyond [`Mods::CAPACITY`] are dropped; no row has as many.
    pub(super) fn give(&mut self, slot: Slot, word: Word) {
        self.imply(slot, word);
        self.given = self.len;
    }

    /// Adds an implied word or a default.
    pub(super) fn imply(&mut self, slot: Slot, word: Word) {
        if let Some(item) = self.items.get_mut(usize::from(self.len)) {
            *item = (slot, word);
            self.len += 1;
        }
    }

    /// A copy with `word` in `slot`, replacing the previous word; a word of [`Slot::Flag`] is added.
    pub fn with(mut self, slot: Slot, word: Word) -> Self {
        let old =
            self.items[..usize::from(self.len)].iter_mut().find(|(s, _)| *s == slot && slot != Slot::Flag);
        match old {
            Some(old) => *old = (slot, word),
            None => self.imply(slot, word),
        }
        self
    }

    /// Removes words beyond `len`, for backtracking.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = len as u8;
        self.given = len as u8;
    }

    /// All words with their slots: as written, then implied.
    pub fn all(&self) -> &[(Slot, Word)] {
        &self.items[..usize::from(self.len)]
    }

    /// The words as written.
    pub fn given(&self) -> &[(Slot, Word)] {
        &self.items[..usize::from(self.given)]
    }

    /// The word in `slot`, given or implied. Not for [`Slot::Flag`]: see [`Mods::has`].
    pub fn get(&self, slot: Slot) -> Option<Word> {
        self.all().iter().find(|(s, _)| *s == slot).map(|(_, w)| *w)
    }

    /// Whether the literal word is present, given or implied.
    pub fn has(&self, word: Word) -> bool {
        self.all().contains(&(Slot::Flag, word))
    }

    /// The type in `slot`.
    pub fn ty_in(&self, slot: Slot) -> Option<Ty> {
        self.get(slot).and_then(Word::ty)
    }

    /// The type of the instruction (slot `type`).
    ///
    /// # Panics
    /// If the row has no slot `type`: a bug of the caller, independent of the program's text.
    pub fn ty(&self) -> Ty {
        self.ty_in(Slot::Type).expect("ptxvm bug: this row has no `.type`")
    }

    /// The type of the destination: slot `dtype`, else `type`.
    ///
    /// # Panics
    /// If the row has neither: a bug of the caller, independent of the program's text.
    pub fn dtype(&self) -> Ty {
        self.ty_in(Slot::Dtype).or(self.ty_in(Slot::Type)).expect("ptxvm bug: this row has no `.dtype`")
    }

    /// The type of the sources: slot `atype`, `stype`, else `type`.
    ///
    /// # Panics
    /// If the row has none of them: a bug of the caller, independent of the program's text.
    pub fn atype(&self) -> Ty {
        let ty = self.ty_in(Slot::Atype).or(self.ty_in(Slot::Stype)).or(self.ty_in(Slot::Type));
        ty.expect("ptxvm bug: this row has no `.atype`")
    }

    fn find<T>(&self, pick: impl Fn(Word) -> Option<T>) -> Option<T> {
        self.all().iter().find_map(|(_, w)| pick(*w))
    }

    fn pick<T>(&self, slot: Slot, pick: impl Fn(Word) -> Option<T>) -> Option<T> {
        self.all().iter().filter(|(s, _)| *s == slot || *s == Slot::Flag).find_map(|(_, w)| pick(*w))
    }

    /// The rounding.
    pub fn rnd(&self) -> Option<Rnd> {
        self.pick(Slot::Rnd, Rnd::from_word)
    }

    /// The comparison.
    pub fn cmp(&self) -> Option<Cmp> {
        self.get(Slot::CmpOp).and_then(Cmp::from_word)
    }

    /// The operation that combines a comparison with a predicate.
    pub fn bool_op(&self) -> Option<BoolOp> {
        self.get(Slot::BoolOp).and_then(BoolOp::from_word)
    }

    /// The state space; `Generic` by default.
    pub fn space(&self) -> Space {
        self.pick(Slot::Ss, space_from_word).unwrap_or(Space::Generic)
    }

    /// The bank of `.const[bank]`; 0 otherwise. PTX ISA §5.1.3.1.
    pub fn const_bank(&self) -> u8 {
        self.get(Slot::Ss).and_then(const_bank).unwrap_or(0)
    }

    /// The ordering of a memory operation; `Weak` by default (`atom`, `red` and `fence` imply theirs).
    pub fn sem(&self) -> Sem {
        self.pick(Slot::Sem, sem_from_word).unwrap_or(Sem::Weak)
    }

    /// The scope of a memory operation or fence.
    pub fn scope(&self) -> Option<Scope> {
        self.get(Slot::Scope).and_then(scope_from_word)
    }

    /// Number of vector elements: 1, 2, 4 (or 8).
    pub fn vec(&self) -> u8 {
        match self.find(|w| matches!(w, Word::V2 | Word::V4 | Word::V8).then_some(w)) {
            Some(Word::V2) => 2,
            Some(Word::V4) => 4,
            Some(Word::V8) => 8,
            Some(_) | None => 1,
        }
    }

    /// The half of a product.
    pub fn half(&self) -> Option<Half> {
        self.pick(Slot::Mode, |w| match w {
            Word::Hi => Some(Half::Hi),
            Word::Lo => Some(Half::Lo),
            Word::Wide => Some(Half::Wide),
            _ => None,
        })
    }

    /// The mode of `shfl`.
    pub fn shfl_mode(&self) -> Option<ShflMode> {
        self.pick(Slot::Mode, |w| match w {
            Word::Up => Some(ShflMode::Up),
            Word::Down => Some(ShflMode::Down),
            Word::Bfly => Some(ShflMode::Bfly),
            Word::Idx => Some(ShflMode::Idx),
            _ => None,
        })
    }

    /// The mode of `vote`.
    pub fn vote_mode(&self) -> Option<VoteMode> {
        self.pick(Slot::Mode, |w| match w {
            Word::All => Some(VoteMode::All),
            Word::Any => Some(VoteMode::Any),
            Word::Uni => Some(VoteMode::Uni),
            Word::Ballot => Some(VoteMode::Ballot),
            _ => None,
        })
    }

    /// The mode of `prmt`.
    pub fn prmt_mode(&self) -> PrmtMode {
        let mode = self.pick(Slot::Mode, |w| match w {
            Word::F4e => Some(PrmtMode::F4e),
            Word::B4e => Some(PrmtMode::B4e),
            Word::Rc8 => Some(PrmtMode::Rc8),
            Word::Ecl => Some(PrmtMode::Ecl),
            Word::Ecr => Some(PrmtMode::Ecr),
            Word::Rc16 => Some(PrmtMode::Rc16),
            _ => None,
        });
        mode.unwrap_or(PrmtMode::Index)
    }

    /// The treatment of large amounts by a shift (`shf`, `vshl`, `vshr`).
    pub fn shift_mode(&self) -> Option<ShiftMode> {
        self.pick(Slot::Mode, |w| match w {
            Word::Clamp => Some(ShiftMode::Clamp),
            Word::Wrap => Some(ShiftMode::Wrap),
            _ => None,
        })
    }

    /// The operation of `atom`, `red` and `sured`.
    pub fn atom_op(&self) -> Option<AtomOp> {
        self.pick(Slot::Op, |w| match w {
            Word::And => Some(AtomOp::And),
            Word::Or => Some(AtomOp::Or),
            Word::Xor => Some(AtomOp::Xor),
            Word::Exch => Some(AtomOp::Exch),
            Word::Cas => Some(AtomOp::Cas),
            Word::Add => Some(AtomOp::Add),
            Word::Inc => Some(AtomOp::Inc),
            Word::Dec => Some(AtomOp::Dec),
            Word::Min => Some(AtomOp::Min),
            Word::Max => Some(AtomOp::Max),
            _ => None,
        })
    }

    /// The reduction of `barrier.red`.
    pub fn bar_red_op(&self) -> Option<BarRedOp> {
        self.pick(Slot::Op, |w| match w {
            Word::Popc => Some(BarRedOp::Popc),
            Word::And => Some(BarRedOp::And),
            Word::Or => Some(BarRedOp::Or),
            _ => None,
        })
    }

    /// The property that `testp` tests.
    pub fn testp_op(&self) -> Option<TestpOp> {
        self.pick(Slot::Op, |w| match w {
            Word::Finite => Some(TestpOp::Finite),
            Word::Infinite => Some(TestpOp::Infinite),
            Word::Number => Some(TestpOp::Number),
            Word::Notanumber => Some(TestpOp::Notanumber),
            Word::Normal => Some(TestpOp::Normal),
            Word::Subnormal => Some(TestpOp::Subnormal),
            _ => None,
        })
    }

    /// The secondary operation of a video instruction.
    pub fn secop(&self) -> Option<Secop> {
        self.pick(Slot::Secop, |w| match w {
            Word::Add => Some(Secop::Add),
            Word::Min => Some(Secop::Min),
            Word::Max => Some(Secop::Max),
            _ => None,
        })
    }

    /// The amount by which `vmad` shifts its result right.
    pub fn vmad_shift(&self) -> u8 {
        match self.get(Slot::Scale) {
            Some(Word::Shr7) => 7,
            Some(Word::Shr15) => 15,
            Some(_) | None => 0,
        }
    }

    /// The geometry of a texture or surface.
    pub fn geom(&self) -> Option<Geom> {
        self.get(Slot::Geom).and_then(Geom::from_word)
    }

    /// The kind of level of detail.
    pub fn lod(&self) -> Lod {
        match self.find(|w| matches!(w, Word::Base | Word::Level | Word::Grad).then_some(w)) {
            Some(Word::Base) => Lod::Base,
            Some(Word::Level) => Lod::Level,
            Some(Word::Grad) => Lod::Grad,
            Some(_) | None => Lod::None,
        }
    }

    /// The treatment of out-of-bounds surface accesses.
    pub fn clamp(&self) -> Option<Clamp> {
        self.get(Slot::Clamp).and_then(|w| match w {
            Word::Trap => Some(Clamp::Trap),
            Word::Clamp => Some(Clamp::Clamp),
            Word::Zero => Some(Clamp::Zero),
            _ => None,
        })
    }

    /// The shape of a matrix operation.
    pub fn shape(&self) -> Option<MatrixShape> {
        self.find(MatrixShape::from_word)
    }

    /// The layout in `slot` ([`Slot::Layout`], [`Slot::Alayout`] or [`Slot::Blayout`]).
    pub fn layout(&self, slot: Slot) -> Option<Layout> {
        self.get(slot).and_then(|w| match w {
            Word::Row => Some(Layout::Row),
            Word::Col => Some(Layout::Col),
            _ => None,
        })
    }

    /// The matrix to which a fragment belongs: `a`, `b`, `c` or `d`.
    pub fn matrix(&self) -> Option<char> {
        self.pick(Slot::Matrix, |w| match w {
            Word::A => Some('a'),
            Word::B => Some('b'),
            Word::C => Some('c'),
            Word::D => Some('d'),
            _ => None,
        })
    }
}

impl Default for Mods {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Mods {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (i, (slot, word)) in self.all().iter().enumerate() {
            let open = if i == usize::from(self.given) { " implied" } else { "" };
            write!(f, "{open}.{}", word.text())?;
            if *slot != Slot::Flag {
                write!(f, ":{}", slot.name())?;
            }
        }
        Ok(())
    }
}

impl std::fmt::Display for Mods {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.given().iter().try_for_each(|(_, word)| write!(f, ".{}", word.text()))
    }
}

macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// The variant for this word, if there is one.
            pub const fn from_word(word: Word) -> Option<Self> {
                match word {
                    $(Word::$word => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The word.
            pub const fn word(self) -> Word {
                match self { $(Self::$variant => Word::$word),* }
            }
        }
    };
}

word_enum! {
    /// A rounding. PTX ISA §6.5.2.
    Rnd {
        /// To the nearest even.
        Rn = Rn,
        /// Towards zero.
        Rz = Rz,
        /// Towards minus infinity.
        Rm = Rm,
        /// Towards plus infinity.
        Rp = Rp,
        /// To the nearest integer, halves to even.
        Rni = Rni,
        /// To an integer, towards zero.
        Rzi = Rzi,
        /// To an integer, towards minus infinity.
        Rmi = Rmi,
        /// To an integer, towards plus infinity.
        Rpi = Rpi,
        /// To the nearest, halves away from zero (later than PTX 6.4).
        Rna = Rna,
        /// Stochastic (later than PTX 6.4).
        Rs = Rs,
    }
}

word_enum! {
    /// A comparison. PTX ISA §9.3.1.
    #[allow(missing_docs, reason = "the variants are the manual's names")]
    Cmp {
        Eq = Eq, Ne = Ne, Lt = Lt, Le = Le, Gt = Gt, Ge = Ge,
        /// Unsigned lower.
        Lo = Lo,
        /// Unsigned lower or same.
        Ls = Ls,
        /// Unsigned higher.
        Hi = Hi,
        /// Unsigned higher or same.
        Hs = Hs,
        Equ = Equ, Neu = Neu, Ltu = Ltu, Leu = Leu, Gtu = Gtu, Geu = Geu,
        /// Neither is NaN.
        Num = Num,
        /// Either is NaN.
        Nan = Nan,
    }
}

word_enum! {
    /// The operation that combines a comparison with a predicate. PTX ISA §9.7.5.2.
    #[allow(missing_docs, reason = "the variants are the manual's names")]
    BoolOp { And = And, Or = Or, Xor = Xor, }
}

word_enum! {
    /// The geometry of a texture or surface. PTX ISA §9.7.9.3.
    #[allow(missing_docs, reason = "the variants are the manual's names")]
    Geom {
        D1 = D1, D2 = D2, D3 = D3, A1d = A1d, A2d = A2d, Cube = Cube, Acube = Acube, D2ms = D2ms, A2dms = A2dms,
    }
}

/// The half of a product. PTX ISA §9.7.1.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Half {
    /// The upper half.
    Hi,
    /// The lower half.
    Lo,
    /// The whole product, twice as wide.
    Wide,
}

/// The mode of `shfl`, which selects the source lane. PTX ISA §9.7.8.5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}

/// The mode of `vote`. PTX ISA §9.7.12.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum VoteMode {
    All,
    Any,
    Uni,
    Ballot,
}

/// The mode of `prmt`, which interprets the selector. PTX ISA §9.7.8.6.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum PrmtMode {
    /// No mode: four selectors.
    Index,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

/// The treatment of shift amounts beyond the width. PTX ISA §9.7.7.7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum ShiftMode {
    Clamp,
    Wrap,
}

/// An atomic operation. PTX ISA §9.7.12.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum AtomOp {
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Add,
    Inc,
    Dec,
    Min,
    Max,
}

/// The reduction of `barrier.red`. PTX ISA §9.7.12.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum BarRedOp {
    Popc,
    And,
    Or,
}

/// A property of a floating-point number. PTX ISA §9.7.3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum TestpOp {
    Finite,
    Infinite,
    Number,
    Notanumber,
    Normal,
    Subnormal,
}

/// The secondary operation of a video instruction. PTX ISA §9.7.15.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum Secop {
    Add,
    Min,
    Max,
}

/// The kind of level of detail of a texture access. PTX ISA §9.7.9.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lod {
    /// Not given: the base level.
    None,
    /// The base level.
    Base,
    /// Given by an operand.
    Level,
    /// From gradients.
    Grad,
}

/// The treatment of out-of-bounds surface accesses. PTX ISA §9.7.10.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clamp {
    /// The access traps.
    Trap,
    /// The access uses the nearest location.
    Clamp,
    /// A load returns zero, a store has no effect.
    Zero,
}

/// The layout of a matrix. PTX ISA §9.7.13.4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "the variants are the manual's names")]
pub enum Layout {
    Row,
    Col,
}

/// The shape of a matrix operation: D and C are M×N, A is M×K, B is K×N. PTX ISA §9.7.13.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "M, N and K are the manual's names")]
pub struct MatrixShape {
    pub m: u16,
    pub n: u16,
    pub k: u16,
}

impl MatrixShape {
    /// The shape with a name such as `m16n16k16`.
    pub fn from_word(word: Word) -> Option<Self> {
        let (m, rest) = word.text().strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(Self { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
    }
}

fn space_from_word(word: Word) -> Option<Space> {
    match word {
        Word::Const => Some(Space::Const),
        Word::Global => Some(Space::Global),
        Word::Local => Some(Space::Local),
        Word::Param | Word::ParamEntry | Word::ParamFunc => Some(Space::Param),
        Word::Shared | Word::SharedCta => Some(Space::Shared),
        _ => const_bank(word).map(|_| Space::Const),
    }
}

fn const_bank(word: Word) -> Option<u8> {
    word.text().strip_prefix("const[")?.strip_suffix(']')?.parse().ok()
}

fn sem_from_word(word: Word) -> Option<Sem> {
    match word {
        Word::Weak => Some(Sem::Weak),
        Word::Volatile => Some(Sem::Volatile),
        Word::Relaxed => Some(Sem::Relaxed),
        Word::Acquire => Some(Sem::Acquire),
        Word::Release => Some(Sem::Release),
        Word::AcqRel => Some(Sem::AcqRel),
        Word::Sc => Some(Sem::Sc),
        _ => None,
    }
}

fn scope_from_word(word: Word) -> Option<Scope> {
    match word {
        Word::Cta => Some(Scope::Cta),
        Word::Cluster => Some(Scope::Cluster),
        Word::Gpu | Word::Gl => Some(Scope::Gpu),
        Word::Sys => Some(Scope::Sys),
        _ => None,
    }
}
