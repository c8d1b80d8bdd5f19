//! The structure of a row: its columns, parsed once.
//!
//! Invariant: every row of the table parses to a [`Form`] (a test reads all); matching, checking, lowering and printing
//! work on forms and never read a column's text again. The notation is described in [`super::row`].

use super::row::{Row, Set};
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
    /// What the form implies.
    pub implies: Vec<(Slot, Word)>,
}

/// A piece of the suffix.
#[derive(Clone, Debug)]
pub enum Item {
    /// Must stand here.
    One(Part),
    /// May be left out, as a whole.
    Opt(Vec<Part>),
    /// May stand in any order.
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

/// The values of a slot.
#[derive(Clone, Debug)]
pub struct SlotSet {
    /// The slot.
    pub slot: Slot,
    /// Its name in the syntax.
    pub name: &'static str,
    /// Its values, each with its gate.
    pub values: Vec<(Word, Gate)>,
    /// What holds where the slot is left out.
    pub default: Option<Word>,
    /// Gate of leaving the slot out.
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
    /// What it must be.
    pub kind: Kind,
    /// May be left out.
    pub optional: bool,
    /// A predicate that may be negated with `!`.
    pub may_not: bool,
    /// A value that may be negated with `-`.
    pub may_minus: bool,
    /// A video selector, and whether it must be given.
    pub selector: Option<(Selector, Need)>,
    /// The second half of a pair `d|p`.
    pub second: Option<(Box<OperandForm>, Need)>,
    /// The operands inside brackets, for `[a, b]` and for `[a]` of an opaque variable.
    pub members: Vec<OperandForm>,
    /// Gate of giving the operand.
    pub gate: Gate,
    /// Gate of giving a register in place of a constant.
    pub register_gate: Gate,
}

/// Whether a part must be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Need {
    /// It must.
    Required,
    /// It may.
    Optional,
}

/// What an operand must be.
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
    /// What `mov` reads.
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
    /// How many elements.
    pub lanes: LanesOf,
    /// The register may be wider than the type (§9.4.1).
    pub wider: bool,
    /// Constants are not allowed.
    pub register: bool,
}

/// Where an operand's type comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TypeOf {
    /// It is this.
    Is(Ty),
    /// From a slot.
    Slot(Slot),
    /// Twice as wide as in a slot.
    Wide(Slot),
    /// An integer of the module's address size.
    Pointer,
}

/// Where an operand's number of elements comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LanesOf {
    /// It is this.
    Is(u8),
    /// The modifiers say (`.v2`, `.v4`).
    Vec,
}

/// Where the state space of an address comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceOf {
    /// It is this.
    Is(Space),
    /// The modifiers say; generic where they do not.
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
    /// Whether `text` (without its dot) is a selector of this kind. V22, V24 of the project's list of readings.
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

    /// How the manual writes the choices, for messages.
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
    /// The type in an instruction with these modifiers. `None` where the slot is empty or has no wider type, and for an
    /// address (the module's address size says).
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
    /// The type of the operand's value (or of each element), where it has one.
    pub fn ty(&self, mods: &Mods) -> Option<Ty> {
        match self.kind {
            Kind::Value(value) => value.ty.resolve(mods),
            Kind::MovSource => mods.ty_in(Slot::Type),
            Kind::Opaque(ty) => Some(ty),
            Kind::Imm { .. } => Some(Ty::S32),
            Kind::LevelOfDetail => mods.ty_in(Slot::Ctype),
            Kind::Offset => Some(Ty::S32),
            Kind::Grad => Some(Ty::F32),
            _ => None,
        }
    }

    /// How many elements the operand has; 1 for a scalar.
    pub fn lanes(&self, mods: &Mods) -> u8 {
        match self.kind {
            Kind::Value(Value { lanes: LanesOf::Is(n), .. }) => n,
            Kind::Value(Value { lanes: LanesOf::Vec, .. }) => mods.vec(),
            _ => 1,
        }
    }
}

/// The elements of a coordinate operand: the type of each, and which shorter or longer vectors also serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoordShape {
    /// The types of the elements that count; an array index or sample number is `.u32`.
    pub types: [Ty; 4],
    /// How many of them count.
    pub used: u8,
    /// The vector length that the manual prescribes.
    pub prescribed: u8,
}

impl CoordShape {
    /// Whether a vector of `n` elements serves: the prescribed length, or just the elements that count (A129, A141), or the
    /// four elements of the old forms.
    pub fn accepts(&self, n: u8) -> bool {
        n == self.prescribed || n == self.used || n == 4
    }
}

/// The coordinates of a geometry; `ctype` is the type of the coordinates proper. PTX ISA §9.7.9.3, §9.7.10.1.
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

/// How many elements an offset or gradient has. PTX ISA §9.7.9.3.
pub fn companion_lanes(geom: Geom) -> u8 {
    match geom {
        Geom::D1 | Geom::A1d => 1,
        Geom::D2 | Geom::A2d | Geom::D2ms | Geom::A2dms => 2,
        Geom::D3 | Geom::Cube | Geom::Acube => 4,
    }
}

impl Form {
    /// Parses the columns of a row; the message names the column.
    pub fn parse(row: &'static Row) -> Result<Form, String> {
        let (head, operands) = row.syntax.split_once(' ').unwrap_or((row.syntax, ""));
        let mut sets = Vec::new();
        let mut word_gates = Vec::new();
        for set in row.sets {
            if set.values.is_empty() {
                let word = Word::from_text(set.name).ok_or(format!("sets: no word `{}`", set.name))?;
                let gate = Gate::parse(set.gate).ok_or(format!("sets: gate of `{}`", set.name))?;
                word_gates.push((word, gate));
            } else {
                sets.push(parse_set(set)?);
            }
        }
        let end = head.find(['.', '{', '<']).unwrap_or(head.len());
        let (mnemonic, suffix) = head.split_at(end);
        let mut suffix = Suffix { text: suffix, sets: &sets };
        let items = suffix.items('\0')?;
        let implies = row.implies.split_whitespace().map(|w| implied(w, &sets)).collect::<Result<_, _>>()?;
        let kinds = row.opnds.split_whitespace().map(parse_entry).collect::<Result<Vec<_>, _>>()?;
        let operands = Operands { kinds: &kinds }.list(operands)?;
        let gate = Gate::parse(row.since).ok_or("since: malformed")?;
        Ok(Form { row, mnemonic, suffix: items, operands, gate, sets, word_gates, implies })
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

/// The slot of a literal word, in a row with these sets.
fn literal_slot(word: Word, sets: &[SlotSet]) -> Slot {
    let has_type = sets.iter().any(|set| set.slot == Slot::Type);
    if word.ty().is_some() && !has_type { Slot::Type } else { Slot::Flag }
}

/// `"rn:rnd"` or `"approx"`: an implied word with its slot.
fn implied(text: &'static str, sets: &[SlotSet]) -> Result<(Slot, Word), String> {
    let (word, slot) = text.split_once(':').map_or((text, None), |(w, s)| (w, Some(s)));
    let word = Word::from_text(word).ok_or(format!("implies: no word `{word}`"))?;
    match slot {
        None => Ok((literal_slot(word, sets), word)),
        Some(name) => Ok((Slot::from_name(name).ok_or(format!("implies: no slot `{name}`"))?, word)),
    }
}

fn parse_set(set: &Set) -> Result<SlotSet, String> {
    let flag = Word::from_text(set.name).map(|_| Slot::Flag);
    let slot = Slot::from_name(set.name).or(flag).ok_or(format!("sets: no slot `{}`", set.name))?;
    let mut parsed = SlotSet { slot, name: set.name, values: Vec::new(), default: None, absent: Gate::OPEN };
    for value in set.values.split_whitespace() {
        let (text, gate) = value.split_once('@').unwrap_or((value, ""));
        let gate = Gate::parse(gate).ok_or(format!("sets: gate of `{value}`"))?;
        if text == "-" {
            parsed.absent = gate;
            continue;
        }
        let (text, default) = text.strip_suffix('*').map_or((text, false), |text| (text, true));
        let word = Word::from_text(text).ok_or(format!("sets: no word `{text}`"))?;
        if default {
            parsed.default = Some(word);
        }
        parsed.values.push((word, gate));
    }
    Ok(parsed)
}

/// Reads a suffix; `text` is what is left.
struct Suffix<'a> {
    text: &'static str,
    sets: &'a [SlotSet],
}

impl Suffix<'_> {
    fn items(&mut self, end: char) -> Result<Vec<Item>, String> {
        let mut items = Vec::new();
        while let Some(c) = self.text.chars().next() {
            if c == end {
                break;
            }
            self.text = &self.text[1..];
            match c {
                '.' => items.push(Item::One(self.part()?)),
                '{' => {
                    let mut parts = Vec::new();
                    while let Some(rest) = self.text.strip_prefix('.') {
                        self.text = rest;
                        parts.push(self.part()?);
                    }
                    self.text = self.text.strip_prefix('}').ok_or("syntax: `}` missing")?;
                    items.push(Item::Opt(parts));
                }
                '<' => {
                    let inner = self.items('>')?;
                    self.text = self.text.strip_prefix('>').ok_or("syntax: `>` missing")?;
                    items.push(Item::AnyOrder(inner));
                }
                _ => return Err(format!("syntax: unexpected `{c}`")),
            }
        }
        Ok(items)
    }

    fn part(&mut self) -> Result<Part, String> {
        let end = self
            .text
            .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
            .unwrap_or(self.text.len());
        let (name, rest) = self.text.split_at(end);
        self.text = rest;
        if let Some(index) = self.sets.iter().position(|set| set.name == name) {
            return Ok(Part::Set(index));
        }
        let word = Word::from_text(name).ok_or(format!("syntax: `{name}` is neither set nor word"))?;
        Ok(Part::Word(literal_slot(word, self.sets), word))
    }
}

/// An entry of the column `opnds`.
struct Entry {
    name: &'static str,
    dir: Dir,
    kind: Kind,
    selector: Option<Selector>,
    gate: Gate,
    register_gate: Gate,
}

fn parse_entry(text: &'static str) -> Result<Entry, String> {
    let bad = || format!("opnds: `{text}`");
    let (name, kind) = text.split_once(':').ok_or_else(bad)?;
    let (kind, gate) = kind.split_once('@').unwrap_or((kind, ""));
    let (kind, register_gate) = kind.split_once('%').unwrap_or((kind, ""));
    let (dir, kind) = kind.strip_prefix('=').map_or((Dir::In, kind), |kind| (Dir::Out, kind));
    let selected = kind.rsplit_once('.').and_then(|(kind, sel)| Some((kind, parse_selector(sel)?)));
    let (kind, selector) = selected.map_or((kind, None), |(kind, sel)| (kind, Some(sel)));
    let kind = parse_kind(kind).ok_or_else(bad)?;
    let gate = Gate::parse(gate).ok_or_else(bad)?;
    let register_gate = Gate::parse(register_gate).ok_or_else(bad)?;
    Ok(Entry { name, dir, kind, selector, gate, register_gate })
}

fn parse_selector(text: &str) -> Option<Selector> {
    match text {
        "sub" => Some(Selector::Sub),
        "sel2" => Some(Selector::Sel2),
        "sel4" => Some(Selector::Sel4),
        "mask2" => Some(Selector::Mask2),
        "mask4" => Some(Selector::Mask4),
        _ => None,
    }
}

fn parse_kind(text: &str) -> Option<Kind> {
    let inside = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(range) = inside("imm") {
        let (min, max) = range.split_once("..")?;
        return Some(Kind::Imm { min: min.parse().ok()?, max: max.parse().ok()? });
    }
    if let Some(space) = inside("addr") {
        let space = match space {
            "ss" | "space" => SpaceOf::Mods,
            "generic" => SpaceOf::Is(Space::Generic),
            "global" => SpaceOf::Is(Space::Global),
            "shared" => SpaceOf::Is(Space::Shared),
            _ => return None,
        };
        return Some(Kind::Address(space));
    }
    if let Some(part) = inside("frag") {
        return part.chars().next().map(Kind::Fragment);
    }
    Some(match text {
        "label" => Kind::Label,
        "tlist" => Kind::TargetList,
        "func" => Kind::Func,
        "fptr" => Kind::FuncPtr,
        "targets" => Kind::CallTargets,
        "args" => Kind::Args,
        "rets" => Kind::Rets,
        "coords" => Kind::Coords,
        "offset" => Kind::Offset,
        "grad" => Kind::Grad,
        "lod" => Kind::LevelOfDetail,
        "elems" => Kind::Elems,
        "movsrc" => Kind::MovSource,
        "var" => Kind::Variable,
        "texref" => Kind::Opaque(Ty::Texref),
        "samplerref" => Kind::Opaque(Ty::Samplerref),
        "surfref" => Kind::Opaque(Ty::Surfref),
        _ => return parse_value(text).map(Kind::Value),
    })
}

fn parse_value(text: &str) -> Option<Value> {
    let (text, wider) = text.strip_prefix('>').map_or((text, false), |text| (text, true));
    let (text, lanes) = match text.split_once('*') {
        None => (text, LanesOf::Is(1)),
        Some((text, "vec")) => (text, LanesOf::Vec),
        Some((text, n)) => (text, LanesOf::Is(n.parse().ok()?)),
    };
    let call = |name: &str| text.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')');
    if let Some(inner) = call("reg") {
        return Some(Value { ty: parse_type(inner)?, lanes, wider, register: true });
    }
    if let Some(inner) = call("wide") {
        return Some(Value { ty: TypeOf::Wide(Slot::from_name(inner)?), lanes, wider, register: false });
    }
    Some(Value { ty: parse_type(text)?, lanes, wider, register: false })
}

fn parse_type(text: &str) -> Option<TypeOf> {
    if text == "ptr" {
        return Some(TypeOf::Pointer);
    }
    Slot::from_name(text).map(TypeOf::Slot).or_else(|| Ty::from_name(text).map(TypeOf::Is))
}

/// Reads operands, given the kinds of the row.
struct Operands<'a> {
    kinds: &'a [Entry],
}

impl Operands<'_> {
    fn list(&self, mut text: &'static str) -> Result<Vec<OperandForm>, String> {
        let mut operands = Vec::new();
        loop {
            text = text.trim_start_matches([' ', ',']);
            if text.is_empty() {
                return Ok(operands);
            }
            if let Some(rest) = text.strip_prefix("{,") {
                let end = rest.find('}').ok_or("syntax: `}` of an optional operand missing")?;
                operands.extend(self.list(&rest[..end])?.into_iter().map(|mut o| {
                    o.optional = true;
                    o
                }));
                text = &rest[end + 1..];
            } else {
                let (operand, rest) = self.operand(text)?;
                operands.push(operand);
                text = rest;
            }
        }
    }

    fn operand(&self, text: &'static str) -> Result<(OperandForm, &'static str), String> {
        if let Some(rest) = text.strip_prefix('[') {
            let end = rest.find(']').ok_or("syntax: `]` missing")?;
            let mut members = self.list(&rest[..end])?;
            let after = &rest[end + 1..];
            let single = members.len() == 1 && matches!(members[0].kind, Kind::Address(_));
            if single {
                return members.pop().map(|m| (m, after)).ok_or("syntax: empty brackets".into());
            }
            let mut bracket = self.plain("[]")?;
            bracket.members = members;
            return Ok((bracket, after));
        }
        if let Some(rest) = text.strip_prefix('(') {
            let end = rest.find(')').ok_or("syntax: `)` missing")?;
            return Ok((self.plain(&rest[..end])?, &rest[end + 1..]));
        }
        let (text, may_not) = text.strip_prefix("{!}").map_or((text, false), |rest| (rest, true));
        let (text, may_minus) = text.strip_prefix("{-}").map_or((text, false), |rest| (rest, true));
        let (name, mut rest) = name(text);
        let mut operand = self.plain(name)?;
        operand.may_not = may_not;
        operand.may_minus = may_minus;
        if let Some(after) = rest.strip_prefix("{.") {
            rest = after.split_once('}').ok_or("syntax: `}` of a selector missing")?.1;
            self.select(&mut operand, Need::Optional)?;
        } else if let Some(after) = rest.strip_prefix('.') {
            rest = self::name(after).1;
            self.select(&mut operand, Need::Required)?;
        } else if operand.selector.is_some() {
            operand.selector = None;
        }
        if let Some(after) = rest.strip_prefix("[|") {
            let (second, after) = self::name(after);
            rest = after.strip_prefix(']').ok_or("syntax: `]` of a pair missing")?;
            operand.second = Some((Box::new(self.plain(second)?), Need::Optional));
        } else if let Some(after) = rest.strip_prefix('|') {
            let (second, after) = self::name(after);
            rest = after;
            operand.second = Some((Box::new(self.plain(second)?), Need::Required));
        }
        Ok((operand, rest))
    }

    fn select(&self, operand: &mut OperandForm, need: Need) -> Result<(), String> {
        match &mut operand.selector {
            Some((_, n)) => {
                *n = need;
                Ok(())
            }
            None => Err(format!("opnds: `{}` has no kind of selector", operand.name)),
        }
    }

    fn plain(&self, name: &'static str) -> Result<OperandForm, String> {
        let entry = self.kinds.iter().find(|entry| entry.name == name);
        let default = || {
            let value =
                Value { ty: TypeOf::Slot(Slot::Type), lanes: LanesOf::Is(1), wider: false, register: false };
            (if name == "d" { Dir::Out } else { Dir::In }, Kind::Value(value))
        };
        let (dir, kind) = match entry {
            Some(entry) => (entry.dir, entry.kind),
            None if name == "[]" => (Dir::In, Kind::Bracket),
            None => default(),
        };
        Ok(OperandForm {
            name,
            dir,
            kind,
            optional: false,
            may_not: false,
            may_minus: false,
            selector: entry.and_then(|e| e.selector).map(|s| (s, Need::Optional)),
            second: None,
            members: Vec::new(),
            gate: entry.map_or(Gate::OPEN, |e| e.gate),
            register_gate: entry.map_or(Gate::OPEN, |e| e.register_gate),
        })
    }
}

/// The name at the start of `text`, and what follows.
fn name(text: &'static str) -> (&'static str, &'static str) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    text.split_at(end)
}
