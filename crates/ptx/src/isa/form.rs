//! The structure of a row: its columns, parsed once.
//!
//! Invariant: every row of the table parses to a [`Form`] (a test parses all). Matching, checking, lowering
//! and printing use forms and never read the text of a column. The notation is described in [`super::row`]
//! and parsed in `isa/notation.rs`.

use super::notation::name;
use super::row::Row;
use super::{Gate, Geom, Mods, Slot, Space, Ty, Word};

/// A row's columns, parsed.
#[derive(Debug)]
pub struct Form {
    /// The row.
    pub row: &'static Row,
    /// First word of the syntax.
    pub mnemonic: &'static str,
    /// The suffix words.
    pub suffix: Vec<Item>,
    /// The operands.
    pub operands: Vec<OperandForm>,
    /// The row's gate.
    pub gate: Gate,
    /// The slots and their values.
    pub sets: Vec<SlotSet>,
    /// Gates of literal words.
    pub word_gates: Vec<(Word, Gate)>,
    /// The modifiers that the form implies.
    pub implies: Vec<(Slot, Word)>,
}

/// A part of the suffix.
#[derive(Clone, Debug)]
pub enum Item {
    /// Required here.
    One(Part),
    /// Required here, as a unit.
    Group(Vec<Part>),
    /// Optional, as a unit.
    Opt(Vec<Part>),
    /// In any order.
    AnyOrder(Vec<Item>),
}

/// A word or slot of the suffix.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// A literal word.
    Word(Slot, Word),
    /// One of the values of `sets[index]`.
    Set(usize),
}

impl Item {
    /// Its words and slots, in the order of the syntax.
    pub fn parts(&self) -> Vec<Part> {
        match self {
            Item::One(part) => vec![*part],
            Item::Group(parts) | Item::Opt(parts) => parts.clone(),
            Item::AnyOrder(inner) => inner.iter().flat_map(Item::parts).collect(),
        }
    }
}

/// The values of a slot.
#[derive(Clone, Debug)]
pub struct SlotSet {
    /// The slot.
    pub slot: Slot,
    /// Its name in the syntax.
    pub name: &'static str,
    /// Its values, each with its gate.
    pub values: Vec<(Word, Gate)>,
    /// The value if the slot is omitted.
    pub default: Option<Word>,
    /// Gate of omitting the slot.
    pub absent: Gate,
}

/// Whether an operand is read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dir {
    /// Read.
    In,
    /// Written.
    Out,
}

/// One operand of a form.
#[derive(Clone, Debug)]
pub struct OperandForm {
    /// Its name in the syntax.
    pub name: &'static str,
    /// Read or written.
    pub dir: Dir,
    /// Its kind.
    pub kind: Kind,
    /// Whether it is optional.
    pub optional: bool,
    /// Whether the predicate may be negated with `!`.
    pub may_not: bool,
    /// Whether the value may be negated with `-`.
    pub may_minus: bool,
    /// The kind of its video selector, and whether the selector is required.
    pub selector: Option<(Selector, Need)>,
    /// The second half of a pair `d|p`, and whether it is required.
    pub second: Option<(Box<OperandForm>, Need)>,
    /// The operands inside brackets, for `[a, b]` and for `[a]` of an opaque variable.
    pub members: Vec<OperandForm>,
    /// Gate of the operand.
    pub gate: Gate,
    /// Gate of a register in place of a constant.
    pub register_gate: Gate,
}

/// Whether a part is required.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// Required.
    Required,
    /// Optional.
    Optional,
}

/// The kind of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A register or, as a source, a constant.
    Value(Value),
    /// An integer constant, `min..=max`.
    Imm {
        /// Smallest value.
        min: i64,
        /// Largest value.
        max: i64,
    },
    /// An address in brackets.
    Address(SpaceOf),
    /// A label of the function.
    Label,
    /// The label of a `.branchtargets`.
    TargetList,
    /// The name of a function.
    Func,
    /// A register that holds the address of a function.
    FuncPtr,
    /// `.calltargets` label, `.callprototype` label, or an array of function addresses.
    CallTargets,
    /// Arguments of a call.
    Args,
    /// Return values of a call.
    Rets,
    /// An opaque variable of that type, or a 64-bit register that points to one.
    Opaque(Ty),
    /// Texture or surface coordinates.
    Coords,
    /// Texel offsets of a texture access.
    Offset,
    /// A gradient of a texture access.
    Grad,
    /// The level of detail of a texture access.
    LevelOfDetail,
    /// The registers of the fragment of matrix `a`, `b`, `c` or `d`.
    Fragment(char),
    /// The vector of a packing or unpacking `mov`.
    Elems,
    /// A source of `mov`.
    MovSource,
    /// A register, or a variable with an offset.
    Variable,
    /// Brackets around other operands.
    Bracket,
}

/// A register or constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// Its type.
    pub ty: TypeOf,
    /// The number of elements.
    pub lanes: LanesOf,
    /// Whether the register may be wider than the type (§9.4.1).
    pub wider: bool,
    /// Whether constants are excluded.
    pub register: bool,
}

/// The source of an operand's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeOf {
    /// This type.
    Is(Ty),
    /// The type in a slot.
    Slot(Slot),
    /// Twice the width of the type in a slot.
    Wide(Slot),
    /// An integer of the module's address size.
    Pointer,
}

/// The source of an operand's number of elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanesOf {
    /// This number.
    Is(u8),
    /// From the modifiers (`.v2`, `.v4`).
    Vec,
}

/// The source of the state space of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceOf {
    /// This state space.
    Is(Space),
    /// From the modifiers; generic by default.
    Mods,
}

/// A kind of video selector. PTX ISA §9.7.15, §9.7.16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Selector {
    /// `.b0` to `.b3`, `.h0`, `.h1`.
    Sub,
    /// `.hxy`, x and y in 0..=3.
    Sel2,
    /// `.bxyzw`, each in 0..=7.
    Sel4,
    /// `.h0`, `.h1`, `.h10`.
    Mask2,
    /// `.b0` to `.b3210`, digits descending.
    Mask4,
}

impl Selector {
    /// Whether `text` (without its dot) is a selector of this kind. V22, V24 of the project's list of
    /// readings.
    pub fn accepts(self, text: &str) -> bool {
        let digits = |prefix: char, top: u8| {
            let rest = text.strip_prefix(prefix)?;
            let ok = !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit() && b - b'0' <= top);
            ok.then_some(rest.as_bytes())
        };
        let descending = |d: &[u8]| d.windows(2).all(|w| w[0] > w[1]);
        match self {
            Selector::Sub => {
                digits('b', 3).is_some_and(|d| d.len() == 1) || digits('h', 1).is_some_and(|d| d.len() == 1)
            }
            Selector::Sel2 => digits('h', 3).is_some_and(|d| d.len() == 2),
            Selector::Sel4 => digits('b', 7).is_some_and(|d| d.len() == 4),
            Selector::Mask2 => digits('h', 1).is_some_and(descending),
            Selector::Mask4 => digits('b', 3).is_some_and(descending),
        }
    }

    /// The choices in the manual's notation, for messages.
    pub const fn choices(self) -> &'static str {
        match self {
            Selector::Sub => ".b0 .b1 .b2 .b3 .h0 .h1",
            Selector::Sel2 => ".hxy, x and y in 0..3",
            Selector::Sel4 => ".bxyzw, each in 0..7",
            Selector::Mask2 => ".h0 .h1 .h10",
            Selector::Mask4 => ".b0 to .b3210, digits descending",
        }
    }
}

impl TypeOf {
    /// The type in an instruction with these modifiers. `None` if the slot is empty or has no wider type, and
    /// for an address, whose width is the module's address size.
    pub fn resolve(self, mods: &Mods) -> Option<Ty> {
        match self {
            TypeOf::Is(ty) => Some(ty),
            TypeOf::Slot(slot) => mods.ty_in(slot),
            TypeOf::Wide(slot) => mods.ty_in(slot).and_then(wide),
            TypeOf::Pointer => None,
        }
    }
}

/// The integer type twice as wide.
pub fn wide(ty: Ty) -> Option<Ty> {
    match ty {
        Ty::U16 => Some(Ty::U32),
        Ty::S16 => Some(Ty::S32),
        Ty::U32 => Some(Ty::U64),
        Ty::S32 => Some(Ty::S64),
        _ => None,
    }
}

impl OperandForm {
    /// The type of the operand's value or elements, if it has one.
    pub fn ty(&self, mods: &Mods) -> Option<Ty> {
        match self.kind {
            Kind::Value(value) => value.ty.resolve(mods),
            Kind::MovSource => mods.ty_in(Slot::Type),
            Kind::Opaque(ty) => Some(ty),
            Kind::Imm { .. } => Some(Ty::S32),
            Kind::LevelOfDetail => mods.ty_in(Slot::Ctype),
            Kind::Offset => Some(Ty::S32),
            Kind::Grad => Some(Ty::F32),
            Kind::Fragment(matrix) => fragment(matrix, mods).map(|f| f.ty),
            _ => None,
        }
    }

    /// The number of elements of the operand; 1 for a scalar. For coordinates see [`coords`]; the vector of a
    /// packing `mov` has any length.
    pub fn lanes(&self, mods: &Mods) -> u8 {
        match self.kind {
            Kind::Value(Value { lanes: LanesOf::Is(n), .. }) => n,
            Kind::Value(Value { lanes: LanesOf::Vec, .. }) => mods.vec(),
            Kind::Offset | Kind::Grad => mods.geom().map_or(1, companion_lanes),
            Kind::Fragment(matrix) => fragment(matrix, mods).map_or(1, |f| f.registers),
            _ => 1,
        }
    }

    /// The expected operand in a few words.
    pub fn describe(&self, mods: &Mods) -> String {
        let ty = self.ty(mods).map_or(String::new(), |ty| format!(" of type `.{}`", ty.name()));
        let value = |value: Value| {
            let lanes = self.lanes(mods);
            let not = if self.may_not { ", perhaps negated with `!`" } else { "" };
            let selector = match self.selector {
                Some((selector, Need::Required)) => format!(" with a selector ({})", selector.choices()),
                Some((_, Need::Optional)) | None => String::new(),
            };
            if lanes > 1 {
                format!("a vector of {lanes} elements{ty}")
            } else if self.dir == Dir::Out || value.register {
                format!("a register{ty}{selector}")
            } else {
                format!("a register or constant{ty}{selector}{not}")
            }
        };
        match self.kind {
            Kind::Value(v) if matches!(self.second, Some((_, Need::Required))) => {
                format!("a pair `d|p`: {}", value(v))
            }
            Kind::Value(v) => value(v),
            Kind::Imm { min, max } => format!("an integer constant from {min} to {max}"),
            Kind::Address(_) => "an address in brackets".into(),
            Kind::Label => "a label".into(),
            Kind::TargetList => "the label of a `.branchtargets`".into(),
            Kind::Func => "the name of a function".into(),
            Kind::FuncPtr => "a register that holds the address of a function".into(),
            Kind::CallTargets => {
                "the label of a `.calltargets` or `.callprototype`, or an array of functions".into()
            }
            Kind::Args => "arguments in parentheses".into(),
            Kind::Rets => "return values in parentheses".into(),
            Kind::Opaque(ty) => {
                format!("a `.{}` variable, or a 64-bit register that points to one", ty.name())
            }
            Kind::Coords => "coordinates".into(),
            Kind::Offset => "a vector of texel offsets".into(),
            Kind::Grad => "a gradient".into(),
            Kind::LevelOfDetail => "a level of detail".into(),
            Kind::Fragment(_) => "the registers of a matrix fragment, in braces".into(),
            Kind::Elems => "a vector in braces".into(),
            Kind::MovSource => format!("a register, constant, special register or address{ty}"),
            Kind::Variable => "a register, or a variable".into(),
            Kind::Bracket => "operands in brackets".into(),
        }
    }
}

/// The registers that hold one lane's part of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// Their number.
    pub registers: u8,
    /// The type of each: `.f32` and `.s32` alone, `.f16` in pairs, all else packed in `.b32`.
    pub ty: Ty,
}

/// The fragment of matrix `a`, `b`, `c` or `d` (`m`: the one in slot `matrix`) in an instruction with these
/// modifiers. `None` for shapes that the table does not describe. PTX ISA §9.7.13.3, §9.7.13.5.
///
/// # Shape
/// A warp holds M×K, K×N or M×N elements, the same number in each lane; elements narrower than 32 bits are
/// packed. `.f16` multiplicands of `wmma` take eight registers for every shape. `mma.m8n8k4` operates on four
/// matrices, each in eight lanes.
pub fn fragment(matrix: char, mods: &Mods) -> Option<Fragment> {
    let matrix = if matrix == 'm' { mods.matrix()? } else { matrix };
    if matrix == 'r' {
        let registers = match mods.get(Slot::Num) {
            Some(Word::X4) => 4,
            Some(Word::X2) => 2,
            Some(_) | None => 1,
        };
        return Some(Fragment { registers, ty: Ty::B32 });
    }
    let shape = mods.shape()?;
    let slot = match matrix {
        'a' => Slot::Atype,
        'b' => Slot::Btype,
        'c' => Slot::Ctype,
        _ => Slot::Dtype,
    };
    let ty = mods.ty_in(slot).or(mods.ty_in(Slot::Type))?;
    let elements = match matrix {
        'a' => shape.m * shape.k,
        'b' => shape.k * shape.n,
        _ => shape.m * shape.n,
    };
    // A sparse A contains every second element.
    let sparse = matrix == 'a' && matches!(mods.get(Slot::Mode), Some(Word::Sp | Word::SpOrdered));
    let elements = if sparse { elements / 2 } else { elements };
    let quad = (shape.m, shape.n, shape.k) == (8, 8, 4) && ty != Ty::F64;
    if shape.m * shape.n == 256 && ty == Ty::F16 && matches!(matrix, 'a' | 'b') {
        return Some(Fragment { registers: 8, ty: Ty::F16x2 });
    }
    let lanes = if quad { 8 } else { 32 };
    let bits = u32::from(elements) * ty.bits() / lanes;
    if ty == Ty::F64 {
        return Some(Fragment { registers: u8::try_from(bits / 64).ok()?, ty });
    }
    let held = match ty {
        Ty::F32 | Ty::S32 => ty,
        Ty::F16 => Ty::F16x2,
        _ => Ty::B32,
    };
    Some(Fragment { registers: u8::try_from(bits / 32).ok()?, ty: held })
}

/// The elements of a coordinate operand: the type of each, and the accepted vector lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoordShape {
    /// The types of the used elements; an array index or sample number is `.u32`.
    pub types: [Ty; 4],
    /// The number of used elements.
    pub used: u8,
    /// The vector length that the manual prescribes.
    pub prescribed: u8,
}

impl CoordShape {
    /// Whether a vector of `n` elements is accepted: of the prescribed length, of the used elements only
    /// (A129, A141), or of the four elements of the old forms.
    pub fn accepts(&self, n: u8) -> bool {
        n == self.prescribed || n == self.used || n == 4
    }
}

/// The coordinates of a geometry; `ctype` is the type of the coordinates without indices. PTX ISA §9.7.9.3,
/// §9.7.10.1.
pub fn coords(geom: Geom, ctype: Ty) -> CoordShape {
    let c = ctype;
    let (types, used, prescribed) = match geom {
        Geom::D1 => ([c, c, c, c], 1, 1),
        Geom::D2 => ([c, c, c, c], 2, 2),
        Geom::D3 | Geom::Cube => ([c, c, c, c], 3, 4),
        Geom::A1d => ([Ty::U32, c, c, c], 2, 2),
        Geom::A2d => ([Ty::U32, c, c, c], 3, 4),
        Geom::Acube => ([Ty::U32, c, c, c], 4, 4),
        Geom::D2ms => ([Ty::U32, c, c, c], 3, 4),
        Geom::A2dms => ([Ty::U32, Ty::U32, c, c], 4, 4),
    };
    CoordShape { types, used, prescribed }
}

/// The number of elements of an offset or gradient. PTX ISA §9.7.9.3.
pub fn companion_lanes(geom: Geom) -> u8 {
    match geom {
        Geom::D1 | Geom::A1d => 1,
        Geom::D2 | Geom::A2d | Geom::D2ms | Geom::A2dms => 2,
        Geom::D3 | Geom::Cube | Geom::Acube => 4,
    }
}

impl Form {
    /// Every word that is allowed in the suffix.
    pub fn words(&self) -> impl Iterator<Item = Word> + '_ {
        self.suffix.iter().flat_map(Item::parts).flat_map(|part| match part {
            Part::Word(_, word) => vec![word],
            Part::Set(index) => self.sets[index].values.iter().map(|(word, _)| *word).collect(),
        })
    }

    /// The syntax line for people: small sets are spelled out, and free order is not marked.
    pub fn syntax(&self) -> String {
        const SPELLED: usize = 4;
        let (head, operands) = self.row.syntax.split_once(' ').unwrap_or((self.row.syntax, ""));
        let mut text = String::new();
        let mut rest = head;
        while let Some(i) = rest.find(['.', '<', '>', '(', ')']) {
            text.push_str(&rest[..i]);
            let after = &rest[i + 1..];
            if !rest[i..].starts_with('.') {
                rest = after;
                continue;
            }
            let (name, after) = after.split_at(name(after).0.len());
            let set = self.sets.iter().find(|set| set.name == name);
            let spelled = |set: &&SlotSet| {
                let needed = !text.ends_with('{') && matches!(set.slot, Slot::Mode | Slot::Op);
                set.values.len() == 1 || (needed && set.values.len() <= SPELLED)
            };
            let short = set.filter(spelled);
            match short.map(|set| set.values.iter().map(|(w, _)| w.text()).collect::<Vec<_>>()) {
                None => text.extend([".", name]),
                Some(words) if words.len() == 1 => text.extend([".", words[0]]),
                Some(words) => text.push_str(&format!(".{{{}}}", words.join(","))),
            }
            rest = after;
        }
        text.push_str(rest);
        if operands.is_empty() { text } else { format!("{text} {operands}") }
    }

    /// The values of the slots, for people: `.type = .u16 .u32`.
    pub fn choices(&self) -> Vec<String> {
        let line = |set: &SlotSet| {
            let words: Vec<String> = set.values.iter().map(|(w, _)| format!(".{}", w.text())).collect();
            format!(".{} = {}", set.name, words.join(" "))
        };
        self.sets.iter().filter(|set| set.values.len() > 1).map(line).collect()
    }

    /// The gate of a word in a slot of this form.
    pub fn word_gate(&self, slot: Slot, word: Word) -> Gate {
        let literal = self.word_gates.iter().find(|(w, _)| *w == word).map(|(_, gate)| *gate);
        let value = self
            .sets
            .iter()
            .filter(|set| set.slot == slot)
            .find_map(|set| set.values.iter().find(|(w, _)| *w == word).map(|(_, gate)| *gate));
        value.or(literal).unwrap_or(Gate::OPEN)
    }
}
