//! Parses the columns of a row. The notation is described in [`super::row`].
//!
//! Invariant: each row is parsed once, at first use, and every row of the table parses (a test parses all);
//! an error names the column. The program's text is not involved.

use super::form::{
    Dir, Form, Item, Kind, LanesOf, Need, OperandForm, Part, Selector, SlotSet, SpaceOf, TypeOf, Value,
};
use super::row::{Row, Set};
use super::{Gate, Slot, Space, Ty, Word};

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

/// Parses a suffix; `text` is the rest of it.
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
                '{' => items.push(Item::Opt(self.parts('}')?)),
                '(' => items.push(Item::Group(self.parts(')')?)),
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

    fn parts(&mut self, end: char) -> Result<Vec<Part>, String> {
        let mut parts = Vec::new();
        while let Some(rest) = self.text.strip_prefix('.') {
            self.text = rest;
            parts.push(self.part()?);
        }
        self.text = self.text.strip_prefix(end).ok_or("syntax: a bracket is not closed")?;
        Ok(parts)
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

/// The name at the start of `text`, and the rest.
pub(super) fn name(text: &'static str) -> (&'static str, &'static str) {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    text.split_at(end)
}
