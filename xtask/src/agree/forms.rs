//! Instructions from the table: a row, words for its slots, and operands of the row's kinds.
//!
//! Invariant: the instruction follows from the table; the row's rules and gates decide whether a choice is
//! legal.

use super::random::Random;
use ptx::isa::form::{Item, Part, Value};
use ptx::isa::gate::Level;
use ptx::isa::{
    Class, Dir, Form, Kind, Mods, Need, Op, OperandForm, Row, RowId, Selector, Sm, Ty, TyKind, Version, Word,
    match_mods, rule,
};

/// Numbers of registers of each width for instructions; the names are `%h0`, `%r0`, `%d0`, `%p0`.
pub(crate) const HALF: usize = 6;
pub(crate) const SINGLE: usize = 10;
pub(crate) const DOUBLE: usize = 6;
pub(crate) const PREDICATES: usize = 4;

/// Special registers with equal values in every engine.
const SREGS: &[&str] = &[
    "%tid.x",
    "%tid.y",
    "%tid.z",
    "%ntid.x",
    "%ntid.y",
    "%ntid.z",
    "%ctaid.x",
    "%ctaid.y",
    "%ctaid.z",
    "%nctaid.x",
    "%nctaid.y",
    "%nctaid.z",
    "%warpid",
    "%nwarpid",
    "%laneid",
    "%lanemask_eq",
    "%lanemask_le",
    "%lanemask_lt",
    "%lanemask_ge",
    "%lanemask_gt",
];

/// A chosen instruction: its row, its words, and its modifiers.
#[derive(Clone)]
pub(crate) struct Spelled {
    pub(crate) row: RowId,
    pub(crate) head: String,
    pub(crate) mods: Mods,
}

/// The rows of the table by op, at a version and target.
pub(crate) struct Forms {
    level: Level,
    /// `.version` and `.target` of it.
    pub(crate) version: &'static str,
    pub(crate) target: &'static str,
    lane: Vec<Vec<RowId>>,
    /// The rows without native code for some of their words.
    stepped: Vec<RowId>,
    /// By row: whether ptxvm executes it.
    executed: Vec<bool>,
}

impl Forms {
    pub(crate) fn new(version: &'static str, target: &'static str) -> Option<Self> {
        let (major, minor) = version.split_once('.')?;
        let ptx = Version::new(major.parse().ok()?, minor.parse().ok()?);
        let level = Level { ptx, sm: Sm::from_name(target)?, map_f64: false };
        let executed = ptxvm::isa(None).iter().map(|form| form.interpreted == ptxvm::Support::Yes).collect();
        let mut forms = Self { level, version, target, lane: Vec::new(), stepped: Vec::new(), executed };
        let native: Vec<bool> =
            ptxvm::isa(None).iter().map(|form| form.native == ptxvm::Support::Yes).collect();
        for op in Op::ALL {
            let rows = forms.rows(*op, |row| row.class == Class::Lane && !by_hand(row.op));
            if !rows.is_empty() {
                forms.stepped.extend(rows.iter().filter(|row| !native[row.index()]));
                forms.lane.push(rows);
            }
        }
        Some(forms)
    }

    /// The rows of an op that exist at the level.
    pub(crate) fn rows(&self, op: Op, wanted: impl Fn(&Row) -> bool) -> Vec<RowId> {
        let fits = |row: &RowId| {
            row.row().op == op
                && wanted(row.row())
                && row.form().gate.unmet(self.level).is_none()
                && self.executed.get(row.index()).copied().unwrap_or(false)
        };
        RowId::all().filter(fits).collect()
    }

    /// The level's version, as a number.
    pub(crate) fn has(&self, major: u8, minor: u8, sm: u16) -> bool {
        let version = (u32::from(self.level.ptx.major), u32::from(self.level.ptx.minor));
        version >= (u32::from(major), u32::from(minor)) && u32::from(self.level.sm.number) >= u32::from(sm)
    }

    /// Random words for a row; `None` if they violate a rule.
    pub(crate) fn spell(&self, random: &mut Random, row: RowId) -> Option<Spelled> {
        let form = row.form();
        let mut words = Vec::new();
        choose(form, &form.suffix, random, &mut words);
        let texts: Vec<&str> = words.iter().map(|word| word.text()).collect();
        let (_, mods) = match_mods(form.mnemonic, &texts).into_iter().find(|(other, _)| *other == row)?;
        if form.row.rules.iter().any(|rule| rule::mods_error(*rule, &mods).is_some()) {
            return None;
        }
        let open = |gate: ptx::isa::Gate| gate.unmet(self.level).is_none();
        let given = |set: &ptx::isa::form::SlotSet| mods.given().iter().any(|(slot, _)| *slot == set.slot);
        let words_open = mods.given().iter().all(|(slot, word)| open(form.word_gate(*slot, *word)));
        let absent_open = form.sets.iter().filter(|set| !given(set)).all(|set| open(set.absent));
        let rules_open =
            form.row.rules.iter().filter_map(|r| rule::gate(*r, &mods)).all(|(_, gate)| open(gate));
        if !words_open || !absent_open || !rules_open {
            return None;
        }
        let mut head = form.mnemonic.to_owned();
        for text in texts {
            head.push('.');
            head.push_str(text);
        }
        Some(Spelled { row, head, mods })
    }

    /// An instruction on registers, without a guard.
    pub(crate) fn lane(&self, random: &mut Random) -> String {
        loop {
            let rows = &self.lane[random.below(self.lane.len())];
            let row = random.pick(rows);
            let Some(spelled) = self.spell(random, row) else { continue };
            if let Some(text) = self.instruction(random, &spelled) {
                return text;
            }
        }
    }

    /// An instruction that native code mostly leaves to the interpreter.
    pub(crate) fn stepped(&self, random: &mut Random) -> String {
        for _ in 0..50 {
            let row = random.pick(&self.stepped);
            if let Some(text) = self.spell(random, row).and_then(|spelled| self.instruction(random, &spelled))
            {
                return text;
            }
        }
        self.lane(random)
    }

    /// The instruction with operands; `None` if an operand has an unsupported kind.
    pub(crate) fn instruction(&self, random: &mut Random, spelled: &Spelled) -> Option<String> {
        let form = spelled.row.form();
        let mut operands = Vec::new();
        let mut minus = false;
        for operand in &form.operands {
            if operand.optional && (operand.gate.unmet(self.level).is_some() || random.chance(50)) {
                continue;
            }
            let mut text = self.operand(random, operand, &spelled.mods, spelled.row.row().op)?;
            if operand.may_not && random.chance(30) {
                text.insert(0, '!');
            }
            if operand.may_minus && !minus && text.starts_with('%') && random.chance(20) {
                text.insert(0, '-');
                minus = true;
            }
            operands.push(text);
        }
        Some(format!("{} {};", spelled.head, operands.join(", ")))
    }

    fn operand(&self, random: &mut Random, operand: &OperandForm, mods: &Mods, op: Op) -> Option<String> {
        let text = match operand.kind {
            // A fraction of accesses: above 0 and at most 1.
            _ if operand.name == "fraction" => {
                random.pick(&["0f3F800000", "0f3F000000", "0f00800000"]).to_string()
            }
            Kind::Imm { min, max } => (min + random.below((max - min) as usize + 1) as i64).to_string(),
            Kind::Elems => {
                let whole = mods.ty();
                let parts: &[u32] = match whole.bits() {
                    32 => &[16, 16],
                    64 if random.chance(50) => &[32, 32],
                    64 => &[16, 16, 16, 16],
                    _ => return None,
                };
                // Destinations of a vector must differ.
                let first = random.below(HALF);
                let names: Vec<String> = parts
                    .iter()
                    .enumerate()
                    .map(|(i, bits)| format!("%{}{}", letter(*bits), (first + i) % HALF))
                    .collect();
                format!("{{{}}}", names.join(", "))
            }
            Kind::MovSource => {
                let ty = operand.ty(mods)?;
                if matches!(ty, Ty::B32 | Ty::U32) && random.chance(30) {
                    random.pick(SREGS).to_owned()
                } else {
                    one(random, ty, Dir::In, false, false)?
                }
            }
            Kind::Value(value) => self.value(random, operand, value, mods, op)?,
            Kind::Address(_)
            | Kind::Label
            | Kind::TargetList
            | Kind::Func
            | Kind::FuncPtr
            | Kind::CallTargets
            | Kind::Args
            | Kind::Rets
            | Kind::Opaque(_)
            | Kind::Coords
            | Kind::Offset
            | Kind::Grad
            | Kind::LevelOfDetail
            | Kind::Fragment(_)
            | Kind::Variable
            | Kind::Bracket => return None,
        };
        let text = match operand.selector {
            Some((selector, need))
                if text.starts_with('%') && (need == Need::Required || random.chance(50)) =>
            {
                format!("{text}.{}", chosen(random, selector))
            }
            Some(_) | None => text,
        };
        match &operand.second {
            Some((second, need)) if *need == Need::Required || random.chance(40) => {
                let other = loop {
                    let other = self.operand(random, second, mods, op)?;
                    if other != text {
                        break other;
                    }
                };
                Some(format!("{text}|{other}"))
            }
            Some(_) | None => Some(text),
        }
    }

    fn value(
        &self,
        random: &mut Random,
        operand: &OperandForm,
        value: Value,
        mods: &Mods,
        op: Op,
    ) -> Option<String> {
        if value.ty == ptx::isa::form::TypeOf::Pointer {
            return Some(random.pick(&["%own", "%inp"]).to_owned());
        }
        let ty = operand.ty(mods)?;
        let register =
            value.register || operand.register_gate.unmet(self.level).is_some() || op == Op::MovVec;
        let lanes = operand.lanes(mods);
        if lanes == 1 {
            return one(random, ty, operand.dir, register, value.wider);
        }
        vector(random, ty, usize::from(lanes), operand.dir, value.wider)
    }
}

/// Whether a coarse warp can execute it: no carry flag, no rounding that the host's instructions lack.
pub(crate) fn is_plain(text: &str) -> bool {
    let head = text.split_whitespace().next().unwrap_or_default();
    let words =
        ["cc", "addc", "subc", "madc", "rz", "rm", "rp", "fns", "isspacep", "nanosleep", "bf16", "relu"];
    !head.split('.').any(|word| words.contains(&word))
}

/// Ops that need more than registers, or that another module generates.
fn by_hand(op: Op) -> bool {
    matches!(op, Op::Cvta | Op::CvtaTo | Op::Pmevent | Op::Istypep | Op::Txq | Op::Suq)
}

fn choose(form: &Form, items: &[Item], random: &mut Random, words: &mut Vec<Word>) {
    for item in items {
        match item {
            Item::One(part) => choose_part(form, *part, random, words),
            Item::Group(parts) => parts.iter().for_each(|part| choose_part(form, *part, random, words)),
            Item::Opt(parts) => {
                if random.chance(35) {
                    parts.iter().for_each(|part| choose_part(form, *part, random, words));
                }
            }
            Item::AnyOrder(inner) => choose(form, inner, random, words),
        }
    }
}

fn choose_part(form: &Form, part: Part, random: &mut Random, words: &mut Vec<Word>) {
    match part {
        Part::Word(_, word) => words.push(word),
        Part::Set(index) => {
            let values = &form.sets[index].values;
            words.push(values[random.below(values.len())].0);
        }
    }
}

/// The letter of the registers of a width.
pub(crate) fn letter(bits: u32) -> char {
    match bits {
        0..=16 => 'h',
        17..=32 => 'r',
        _ => 'd',
    }
}

/// A register of a width.
pub(crate) fn register(random: &mut Random, bits: u32) -> String {
    let letter = letter(bits);
    let count = match letter {
        'h' => HALF,
        'r' => SINGLE,
        _ => DOUBLE,
    };
    format!("%{letter}{}", random.below(count))
}

/// Registers of one width in braces; destinations differ.
pub(crate) fn vector(random: &mut Random, ty: Ty, lanes: usize, dir: Dir, wider: bool) -> Option<String> {
    if ty == Ty::Pred || ty.bits() > 64 {
        return None;
    }
    let bits = width(random, ty, wider);
    let count = match letter(bits) {
        'h' => HALF,
        'r' => SINGLE,
        _ => DOUBLE,
    };
    let first = random.below(count);
    let name = |i: usize| format!("%{}{}", letter(bits), (first + i) % count);
    let names: Vec<String> = match dir {
        Dir::Out => (0..lanes).map(name).collect(),
        Dir::In => (0..lanes).map(|_| register(random, bits)).collect(),
    };
    Some(format!("{{{}}}", names.join(", ")))
}

/// The register width for a type: that of the type, or a wider one if allowed.
fn width(random: &mut Random, ty: Ty, wider: bool) -> u32 {
    let bits = ty.bits().max(16);
    if wider && ty.kind() != TyKind::Float && random.chance(40) {
        random.pick(&[bits, 32, 64]).max(bits)
    } else {
        bits
    }
}

/// A register, or for sources sometimes a constant.
fn one(random: &mut Random, ty: Ty, dir: Dir, register_only: bool, wider: bool) -> Option<String> {
    if ty == Ty::Pred {
        return Some(format!("%p{}", random.below(PREDICATES)));
    }
    if ty.bits() > 64 || ty.kind() == TyKind::Opaque {
        return None;
    }
    let constant = dir == Dir::In && !register_only && random.chance(20);
    if constant {
        match ty {
            Ty::F32 => return Some(format!("0f{:08X}", random.value(32))),
            Ty::F64 => return Some(format!("0d{:016X}", random.value(64))),
            _ if ty.kind() != TyKind::Float && ty.bits() >= 16 && !is_packed(ty) => {
                return Some(integer(random, ty));
            }
            _ => {}
        }
    }
    let bits = width(random, ty, wider);
    Some(register(random, bits))
}

fn is_packed(ty: Ty) -> bool {
    matches!(ty, Ty::U16x2 | Ty::S16x2 | Ty::F32x2)
}

/// A constant of an integer type.
fn integer(random: &mut Random, ty: Ty) -> String {
    let bits = ty.bits();
    let value = random.value(bits);
    if ty.kind() == TyKind::Signed {
        let shift = 64 - bits;
        let signed = (value << shift).cast_signed() >> shift;
        // The most negative number has no literal.
        return if signed == i64::MIN { "0x8000000000000000".to_owned() } else { signed.to_string() };
    }
    if value > i64::MAX as u64 { format!("0x{value:x}U") } else { value.to_string() }
}

fn chosen(random: &mut Random, selector: Selector) -> String {
    match selector {
        Selector::Sub => random.pick(&["b0", "b1", "b2", "b3", "h0", "h1"]).to_owned(),
        Selector::Sel2 => format!("h{}{}", random.below(4), random.below(4)),
        Selector::Sel4 => {
            format!("b{}{}{}{}", random.below(8), random.below(8), random.below(8), random.below(8))
        }
        Selector::Mask2 => random.pick(&["h0", "h1", "h10"]).to_owned(),
        Selector::Mask4 => {
            let set = 1 + random.below(15);
            let digits: String = (0..4).rev().filter(|i| set >> i & 1 == 1).map(|i| i.to_string()).collect();
            format!("b{digits}")
        }
    }
}
