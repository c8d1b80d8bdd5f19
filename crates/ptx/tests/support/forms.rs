//! Texts generated from the rows of the table: random modifiers, operands of the right kind, in a module that
//! declares them.

use ptx::isa::form::{Item, Part, companion_lanes, coords, fragment};
use ptx::isa::{
    Dir, Form, Kind, Mods, Need, Op, OperandForm, RowId, Selector, Slot, Space, Ty, Word, match_mods,
};
use std::fmt::Write;

/// xorshift64*; the state is never 0.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    /// A number under `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    /// One of them.
    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Versions (with a target option) and targets, the newest first.
pub(crate) const LEVELS: &[(&str, &str)] = &[
    ("9.0", "sm_100a"),
    ("8.0", "sm_90a"),
    ("6.4", "sm_75"),
    ("6.4, texmode_independent", "sm_70"),
    ("6.0", "sm_60"),
    ("3.1", "sm_30"),
    ("2.1", "sm_20"),
    ("1.5", "sm_13"),
    ("1.3", "sm_13"),
];

fn words(form: &Form, rng: &mut Rng) -> Vec<Word> {
    let mut words = Vec::new();
    for item in &form.suffix {
        add_item(form, item, rng, &mut words);
    }
    words
}

fn add_item(form: &Form, item: &Item, rng: &mut Rng, words: &mut Vec<Word>) {
    let mut add = |part: &Part, rng: &mut Rng| match part {
        Part::Word(_, word) => words.push(*word),
        Part::Set(index) => {
            let values: Vec<Word> = form.sets[*index].values.iter().map(|(word, _)| *word).collect();
            words.push(rng.pick(&values));
        }
    };
    match item {
        Item::One(part) => add(part, rng),
        Item::Opt(_) if rng.below(2) == 0 => {}
        Item::AnyOrder(items) => items.iter().for_each(|item| add_item(form, item, rng, words)),
        other => other.parts().iter().for_each(|part| add(part, rng)),
    }
}

fn register(ty: Ty, rng: &mut Rng) -> String {
    let class = match ty {
        Ty::F16 | Ty::Bf16 | Ty::E4m3x2 | Ty::E5m2x2 => "b16",
        Ty::F16x2 | Ty::Bf16x2 | Ty::Tf32 | Ty::U16x2 | Ty::S16x2 => "b32",
        Ty::F32x2 => "b64",
        other => other.name(),
    };
    format!("%{class}_{}", rng.below(12))
}

fn list(types: impl Iterator<Item = Ty>, rng: &mut Rng) -> String {
    let names: Vec<String> = types.map(|ty| register(ty, rng)).collect();
    format!("{{{}}}", names.join(", "))
}

fn selector(kind: Selector, rng: &mut Rng) -> &'static str {
    match kind {
        Selector::Sub => rng.pick(&[".b0", ".b3", ".h0", ".h1"]),
        Selector::Sel2 => rng.pick(&[".h10", ".h32", ".h03"]),
        Selector::Sel4 => rng.pick(&[".b3210", ".b7654", ".b0440"]),
        Selector::Mask2 => rng.pick(&[".h0", ".h10"]),
        Selector::Mask4 => rng.pick(&[".b2", ".b3210", ".b31"]),
    }
}

/// The text of an operand; `None` where the form leaves it out.
fn operand(form: &OperandForm, mods: &Mods, rng: &mut Rng) -> Option<String> {
    if form.optional && rng.below(2) == 0 {
        return None;
    }
    let mut text = match form.kind {
        Kind::Value(value) => {
            // Without a type it is a generic address.
            let ty = form.ty(mods).unwrap_or(Ty::U64);
            let lanes = form.lanes(mods);
            let constant = form.dir == Dir::In && !value.register && ty.is_integer() && rng.below(4) == 0;
            if lanes > 1 {
                list((0..lanes).map(|_| ty), rng)
            } else if constant && form.selector.is_none() {
                format!("{}", 1 + rng.below(8))
            } else {
                register(ty, rng)
            }
        }
        Kind::Imm { min, max } => format!("{}", min + rng.below((max - min + 1) as usize) as i64),
        Kind::Address(space) => {
            let space = match space {
                ptx::isa::form::SpaceOf::Is(space) => space,
                ptx::isa::form::SpaceOf::Mods => mods.space(),
            };
            match space {
                Space::Global => rng.pick(&["[glob]", "[glob+8]", "[%u64_1]", "[%u64_2+-16]"]).into(),
                Space::Shared => rng.pick(&["[shar]", "[%u64_1+16]"]).into(),
                Space::Const => rng.pick(&["[cons]", "[%u64_1]"]).into(),
                Space::Param => "[par+8]".into(),
                Space::Local => rng.pick(&["[loca]", "[loca+8]", "[%u64_1]"]).into(),
                Space::Generic | Space::Reg | Space::Sreg | Space::Tex => "[%u64_3+16]".into(),
            }
        }
        Kind::Label => "L".into(),
        Kind::TargetList => "targets".into(),
        Kind::Func => "helper".into(),
        Kind::FuncPtr => "%u64_4".into(),
        Kind::CallTargets => rng.pick(&["proto", "callees", "table"]).into(),
        Kind::Args => "(%u32_1)".into(),
        Kind::Rets => rng.pick(&["(%u32_2)", "(_)"]).into(),
        Kind::Opaque(Ty::Texref) => rng.pick(&["texr", "%u64_5"]).into(),
        Kind::Opaque(Ty::Samplerref) => rng.pick(&["samp", "%u64_5"]).into(),
        Kind::Opaque(_) => rng.pick(&["surf", "%u64_5"]).into(),
        Kind::Coords => {
            let shape =
                coords(mods.geom()?, mods.ty_in(Slot::Ctype).filter(|_| mods.lod_types()).unwrap_or(Ty::S32));
            let n = rng.pick(&[shape.prescribed, shape.used]);
            list((0..n).map(|i| shape.types[usize::from(i.min(3))]), rng)
        }
        Kind::Offset => list((0..companion_lanes(mods.geom()?)).map(|_| Ty::S32), rng),
        Kind::Grad => list((0..companion_lanes(mods.geom()?)).map(|_| Ty::F32), rng),
        Kind::LevelOfDetail => register(mods.ty_in(Slot::Ctype)?, rng),
        Kind::Fragment(matrix) => {
            let fragment = fragment(matrix, mods)?;
            list((0..fragment.registers).map(|_| fragment.ty), rng)
        }
        Kind::Elems => match (mods.ty().bits(), rng.below(2)) {
            (16, _) => list([Ty::U8; 2].into_iter(), rng),
            (32, 0) => list([Ty::B16; 2].into_iter(), rng),
            (32, _) => list([Ty::U8; 4].into_iter(), rng),
            (_, 0) => list([Ty::B32; 2].into_iter(), rng),
            _ => list([Ty::B16; 4].into_iter(), rng),
        },
        Kind::MovSource => match mods.ty() {
            Ty::U32 if rng.below(2) == 0 => rng.pick(&["%tid.x", "%laneid", "%ctaid.z"]).into(),
            Ty::U64 if rng.below(2) == 0 => rng.pick(&["glob", "loca+4", "par", "helper"]).into(),
            ty => register(ty, rng),
        },
        Kind::Variable => match mods.space() {
            Space::Global => rng.pick(&["glob", "%u64_1"]).into(),
            Space::Local => rng.pick(&["loca+4", "%u64_1"]).into(),
            Space::Shared => "shar".into(),
            _ => "%u64_2".into(),
        },
        Kind::Bracket => {
            let members: Vec<String> = form.members.iter().filter_map(|m| operand(m, mods, rng)).collect();
            format!("[{}]", members.join(", "))
        }
    };
    if let Some((kind, need)) = form.selector
        && (need == Need::Required || rng.below(2) == 0)
    {
        text.push_str(selector(kind, rng));
    }
    if form.may_not && rng.below(2) == 0 {
        text.insert(0, '!');
    }
    if form.may_minus && rng.below(3) == 0 {
        text.insert(0, '-');
    }
    if let Some((second, need)) = &form.second
        && (*need == Need::Required || rng.below(2) == 0)
    {
        write!(text, "|{}", register(second.ty(mods)?, rng)).expect("a string");
    }
    Some(text)
}

/// Whether coordinates have the type of slot `ctype` (textures), not `.s32` (surfaces).
trait CoordinateTypes {
    fn lod_types(&self) -> bool;
}

impl CoordinateTypes for Mods {
    fn lod_types(&self) -> bool {
        self.ty_in(Slot::Dtype).is_some() && self.clamp().is_none()
    }
}

/// An instruction of the row.
pub(crate) fn instruction(row: RowId, rng: &mut Rng) -> Option<String> {
    let form = row.form();
    let words = words(form, rng);
    let texts: Vec<&str> = words.iter().map(|w| w.text()).collect();
    let (_, mods) = match_mods(form.mnemonic, &texts).into_iter().find(|(r, _)| *r == row)?;
    let operands: Vec<String> = form.operands.iter().filter_map(|o| operand(o, &mods, rng)).collect();
    let has = |kind| form.operands.iter().any(|o| o.kind == kind);
    let callee = if !has(Kind::Args) {
        "_0"
    } else if !has(Kind::Rets) {
        "_1"
    } else {
        ""
    };
    let named = |o: &String| match o.as_str() {
        "helper" | "callees" | "proto" | "table" if matches!(row.row().op, Op::Call | Op::CallIndirect) => {
            format!("{o}{callee}")
        }
        _ => o.clone(),
    };
    let operands: Vec<String> = operands.iter().map(named).collect();
    let suffix: String = texts.iter().map(|t| format!(".{t}")).collect();
    Some(format!("{}{suffix} {};", form.mnemonic, operands.join(", ")))
}

/// A module with that instruction, at that level.
pub(crate) fn text(instruction: &str, level: (&str, &str)) -> String {
    let (version, option) = level.0.split_once(',').map_or((level.0, ""), |(v, o)| (v, o));
    let number: f32 = version.parse().expect("a number");
    let mut text = format!(
        ".version {version}\n.target {}{}{option}\n",
        level.1,
        if option.is_empty() { "" } else { "," }
    );
    if number >= 2.3 {
        text.push_str(".address_size 64\n");
    }
    text.push_str(".global .align 16 .b8 glob[64];\n.const .align 16 .b8 cons[64];\n");
    if number >= 1.5 {
        text.push_str(".global .texref texr;\n.global .surfref surf;\n");
    }
    if option.contains("independent") {
        text.push_str(".global .samplerref samp;\n");
    }
    text.push_str(".func (.reg .u32 r) helper(.reg .u32 x) { ret; }\n.func helper_1(.reg .u32 x) { ret; }\n.func helper_0 { ret; }\n");
    if number >= 2.1 {
        for callee in ["", "_1", "_0"] {
            writeln!(text, ".global .u64 table{callee}[2] = {{helper{callee}, helper{callee}}};")
                .expect("a string");
        }
    }
    text.push_str(".entry e(.param .align 16 .b8 par[64])\n{\n.shared .align 16 .b8 shar[64];\n.local .align 16 .b8 loca[64];\n");
    for ty in [
        "b8", "u8", "s8", "b16", "u16", "s16", "b32", "u32", "s32", "f32", "b64", "u64", "s64", "f64", "pred",
    ] {
        writeln!(text, ".reg .{ty} %{ty}_<12>;").expect("a string");
    }
    if number >= 8.3 {
        text.push_str(".reg .b128 %b128_<12>;\n");
    }
    if number >= 6.0 {
        text.push_str("targets: .branchtargets L, M;\n");
    }
    if number >= 2.1 {
        for callee in ["", "_1", "_0"] {
            writeln!(text, "callees{callee}: .calltargets helper{callee};").expect("a string");
        }
        text.push_str("proto: .callprototype (.reg .u32 _) _ (.reg .u32 _);\n");
        text.push_str("proto_1: .callprototype _ (.reg .u32 _);\nproto_0: .callprototype _ ();\n");
    }
    writeln!(text, "L: {instruction}\nM: ret;\n}}").expect("a string");
    text
}
