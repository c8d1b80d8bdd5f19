//! The files of `tests/vectors` as data: forms, their operands and vectors, and the results that a vector
//! allows.
//!
//! Invariant: a line that is neither form nor vector is an error. The format is described in
//! `tests/vectors/README.md`.

use ptxvm::AddressSize;

pub(crate) struct Form<'a> {
    pub(crate) line: usize,
    pub(crate) name: &'a str,
    pub(crate) version: &'a str,
    pub(crate) target: &'a str,
    /// Width of an address.
    pub(crate) address: AddressSize,
    /// Threads of a CTA, where the form says: the vectors of one CTA follow each other in the order of its
    /// threads.
    pub(crate) lanes: Option<usize>,
    pub(crate) outs: Vec<Operand<'a>>,
    pub(crate) ins: Vec<Operand<'a>>,
    pub(crate) body: String,
    /// What stands before the kernel: functions and variables.
    pub(crate) module: &'a str,
    /// The body is the instruction NAME, with the results and operands in order.
    pub(crate) plain: bool,
    pub(crate) vectors: Vec<Vector<'a>>,
}

pub(crate) struct Operand<'a> {
    pub(crate) name: &'a str,
    pub(crate) ty: &'a str,
}

pub(crate) struct Vector<'a> {
    pub(crate) line: usize,
    pub(crate) operands: Vec<u64>,
    pub(crate) expected: Vec<&'a str>,
}

impl Operand<'_> {
    pub(crate) fn bits(&self) -> u32 {
        match self.ty {
            "pred" => 1,
            "bf16" => 16,
            "f16x2" | "bf16x2" => 32,
            other => other[1..].parse().expect("`operands` let only types through that name a width"),
        }
    }

    /// Whether a register of the one type can stand for one of the other (section 9.4).
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        let class = |o: &Self| o.register()[..1].replace(['s', 'u'], "i");
        let (a, b) = (class(self), class(other));
        // The bits of bfloat16 are in no register of another float.
        let foreign = a == "f" && other.ty.starts_with("bf16");
        self.bits() == other.bits() && (a == b || a == "b" || b == "b") && !foreign
    }

    /// The type of its register.
    pub(crate) fn register(&self) -> &str {
        match self.ty {
            "f16x2" | "bf16x2" => "b32",
            "bf16" => "b16",
            other => other,
        }
    }

    /// The type under which it is loaded and stored.
    pub(crate) fn memory(&self) -> &str {
        match self.ty {
            "f16" | "bf16" => "b16",
            "f16x2" | "bf16x2" => "b32",
            other => other,
        }
    }
}

pub(crate) fn parse(text: &str) -> Result<Vec<Form<'_>>, String> {
    let mut forms: Vec<Form<'_>> = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(i, l)| (i + 1, l)) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |what: &str| format!("line {number}: {what}: {line}");
        if let Some(head) = line.strip_prefix("form ") {
            forms.push(parse_head(number, head).ok_or_else(|| bad("not a form"))?);
            continue;
        }
        let form = forms.last_mut().ok_or_else(|| bad("a vector before any form"))?;
        let (left, right) = line.split_once(" = ").ok_or_else(|| bad("not a vector"))?;
        let operands: Result<Vec<u64>, _> =
            left.split_whitespace().map(|hex| u64::from_str_radix(hex, 16)).collect();
        let vector = Vector {
            line: number,
            operands: operands.map_err(|_| bad("not hexadecimal"))?,
            expected: right.split_whitespace().collect(),
        };
        if vector.operands.len() != form.ins.len() || vector.expected.len() != form.outs.len() {
            return Err(bad("another number of values than the form has"));
        }
        form.vectors.push(vector);
    }
    Ok(forms)
}

pub(crate) fn parse_head(line: usize, head: &str) -> Option<Form<'_>> {
    let mut fields = head.split(" | ");
    let mut title = fields.next()?.split(" @");
    let mut form = Form {
        line,
        name: title.next()?.trim(),
        version: "6.4",
        target: "sm_70",
        address: AddressSize::Bits64,
        lanes: None,
        outs: operands(fields.next()?)?,
        ins: operands(fields.next()?)?,
        body: fields.next().unwrap_or_default().to_owned(),
        module: fields.next().unwrap_or_default(),
        plain: false,
        vectors: Vec::new(),
    };
    for option in title {
        match option.trim().split_once('=')? {
            ("version", value) => form.version = value,
            ("target", value) => form.target = value,
            ("address", "32") => form.address = AddressSize::Bits32,
            ("lanes", value) => form.lanes = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    if form.body.is_empty() {
        form.plain = true;
        form.body = instruction(&form, &|i| format!("%{}", form.ins[i].name));
    }
    Some(form)
}

pub(crate) fn operands(text: &str) -> Option<Vec<Operand<'_>>> {
    fn operand(text: &str) -> Option<Operand<'_>> {
        const TYPES: &str = "pred bf16 bf16x2 f16x2 b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f16 f32 f64";
        let (name, ty) = text.split_once(':')?;
        TYPES.split(' ').any(|t| t == ty).then_some(Operand { name, ty })
    }
    text.split_whitespace().map(operand).collect()
}

/// The instruction of a plain form with these source operands.
pub(crate) fn instruction(form: &Form<'_>, operand: &dyn Fn(usize) -> String) -> String {
    let outs = form.outs.iter().map(|o| format!("%{}", o.name));
    let operands: Vec<String> = outs.chain((0..form.ins.len()).map(operand)).collect();
    format!("{} {};", form.name, operands.join(", "))
}

/// Whether a result is one that `expected` allows; `None` if that is no expectation.
pub(crate) fn agrees(expected: &str, have: u64, out: &Operand<'_>) -> Option<bool> {
    let mut any = false;
    for one in expected.split('|') {
        any |= agrees_one(one, have, out)?;
    }
    Some(any)
}

pub(crate) fn agrees_one(expected: &str, have: u64, out: &Operand<'_>) -> Option<bool> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    if expected == "*" {
        return Some(true);
    }
    if let Some((high, low)) = expected.split_once(':') {
        let half = Operand { name: out.name, ty: if out.ty == "bf16x2" { "bf16" } else { "f16" } };
        return Some(agrees_one(high, have >> 16, &half)? && agrees_one(low, have & 0xffff, &half)?);
    }
    if expected == "nan" {
        return Some(is_nan(have, out));
    }
    if let Some((low, high)) = expected.split_once("..") {
        let place = |bits: u64| order(bits, out);
        return Some(!is_nan(have, out) && (place(hex(low)?)..=place(hex(high)?)).contains(&place(have)));
    }
    Some(hex(expected)? == have)
}

/// The encoding of +infinity, and the sign bit.
pub(crate) fn infinity(out: &Operand<'_>) -> (u64, u64) {
    match out.bits() {
        16 if out.ty == "bf16" => (0x7f80, 1 << 15),
        16 => (0x7c00, 1 << 15),
        32 => (0x7f80_0000, 1 << 31),
        _ => (0x7ff0_0000_0000_0000, 1 << 63),
    }
}

pub(crate) fn is_nan(have: u64, out: &Operand<'_>) -> bool {
    let (infinity, sign) = infinity(out);
    have & !sign > infinity
}

/// Places floats on a line of integers, -0 just below +0.
pub(crate) fn order(have: u64, out: &Operand<'_>) -> i128 {
    let (_, sign) = infinity(out);
    let magnitude = i128::from(have & !sign);
    if have & sign == 0 { magnitude } else { -magnitude - 1 }
}
