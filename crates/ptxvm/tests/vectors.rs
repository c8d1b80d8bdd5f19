//! Runs the instruction vectors of `tests/vectors`: each form becomes a kernel, each vector a thread of it, and every result is
//! compared with the value that the oracle beside the data computed. One trial is one file; a failing trial lists its forms.
//!
//! Nothing here computes an expected value. The file format is described in `tests/vectors/README.md`.

use libtest_mimic::{Arguments, Failed, Trial};
use ptxvm::{Arg, ErrorKind, Launch, Vm};
use std::fmt::Write as _;
use std::path::Path;

/// Bytes of one operand or result in the arrays a kernel reads and writes.
const SLOT: usize = 8;
/// Threads of a CTA, where a form does not say.
const BLOCK: usize = 128;
/// Wrong results shown for a form.
const SHOWN: usize = 4;

fn main() {
    let args = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors");
    let mut files: Vec<_> =
        std::fs::read_dir(&root).expect("tests/vectors").map(|e| e.expect("entry").path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "vec"));
    files.sort();
    assert!(!files.is_empty(), "no vectors in {}", root.display());
    let trials = files.into_iter().map(|file| {
        let name = file.file_stem().expect("stem").to_string_lossy().into_owned();
        Trial::test(name, move || {
            let text = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
            run_file(&text).map_err(Failed::from)
        })
    });
    libtest_mimic::run(&args, trials.collect()).exit();
}

/// Runs every form; the report names each that failed.
fn run_file(text: &str) -> Result<(), String> {
    let forms = parse(text)?;
    let vm = Vm::new().map_err(|e| e.to_string())?;
    let mut report = String::new();
    let mut failed = 0;
    for form in &forms {
        if let Err(why) = run_form(&vm, form) {
            failed += 1;
            report += &format!("line {}: {}\n{why}\n", form.line, form.name);
        }
    }
    if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} forms failed\n{report}", forms.len())) }
}

struct Form<'a> {
    line: usize,
    name: &'a str,
    version: &'a str,
    target: &'a str,
    /// Threads of a CTA, where the form says: the vectors of one CTA follow each other in the order of its threads.
    lanes: Option<usize>,
    outs: Vec<Operand<'a>>,
    ins: Vec<Operand<'a>>,
    body: String,
    vectors: Vec<Vector<'a>>,
}

struct Operand<'a> {
    name: &'a str,
    ty: &'a str,
}

struct Vector<'a> {
    line: usize,
    operands: Vec<u64>,
    expected: Vec<&'a str>,
}

impl Operand<'_> {
    fn bits(&self) -> u32 {
        match self.ty {
            "pred" => 1,
            "f16x2" => 32,
            other => other[1..].parse().expect("`operands` let only types through that name a width"),
        }
    }

    /// The type of its register.
    fn register(&self) -> &str {
        if self.ty == "f16x2" { "b32" } else { self.ty }
    }

    /// The type under which it is loaded and stored.
    fn memory(&self) -> &str {
        match self.ty {
            "f16" => "b16",
            "f16x2" => "b32",
            other => other,
        }
    }
}

fn parse(text: &str) -> Result<Vec<Form<'_>>, String> {
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

fn parse_head(line: usize, head: &str) -> Option<Form<'_>> {
    let mut fields = head.split(" | ");
    let mut title = fields.next()?.split(" @");
    let mut form = Form {
        line,
        name: title.next()?.trim(),
        version: "6.4",
        target: "sm_70",
        lanes: None,
        outs: operands(fields.next()?)?,
        ins: operands(fields.next()?)?,
        body: fields.next().unwrap_or_default().to_owned(),
        vectors: Vec::new(),
    };
    for option in title {
        match option.trim().split_once('=')? {
            ("version", value) => form.version = value,
            ("target", value) => form.target = value,
            ("lanes", value) => form.lanes = Some(value.parse().ok()?),
            _ => return None,
        }
    }
    if form.body.is_empty() {
        let operands: Vec<String> =
            form.outs.iter().chain(&form.ins).map(|o| format!("%{}", o.name)).collect();
        form.body = format!("{} {};", form.name, operands.join(", "));
    }
    Some(form)
}

fn operands(text: &str) -> Option<Vec<Operand<'_>>> {
    fn operand(text: &str) -> Option<Operand<'_>> {
        const TYPES: &str = "pred f16x2 b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f16 f32 f64";
        let (name, ty) = text.split_once(':')?;
        TYPES.split(' ').any(|t| t == ty).then_some(Operand { name, ty })
    }
    text.split_whitespace().map(operand).collect()
}

/// The kernel of a form. `%in` and `%out` are the addresses of the thread's operands and results, `%group` that of the operands
/// of the first thread of its CTA, `%slot` eight times the thread's number in its CTA.
fn kernel(form: &Form<'_>) -> String {
    let (ins, outs) = (form.ins.len() * SLOT, form.outs.len() * SLOT);
    let mut ptx = format!(".version {}\n.target {}\n.address_size 64\n", form.version, form.target);
    ptx += ".visible .entry run(.param .u64 source, .param .u64 result)\n{\n";
    let mut line = |text: &str| {
        let _infallible = writeln!(ptx, "\t{text}");
    };
    line(".reg .u64 %in, %out, %group, %bytes64;");
    line(".reg .u32 %slot, %thread, %cta, %threads, %flag32;");
    line(".reg .pred %flag;");
    line("ld.param.u64 %in, [source];");
    line("ld.param.u64 %out, [result];");
    line("mov.u32 %thread, %tid.x;");
    line("mov.u32 %cta, %ctaid.x;");
    line("mov.u32 %threads, %ntid.x;");
    line("mul.lo.u32 %cta, %cta, %threads;");
    line(&format!("mul.wide.u32 %bytes64, %cta, {ins};"));
    line("add.u64 %group, %in, %bytes64;");
    line(&format!("mul.wide.u32 %bytes64, %thread, {ins};"));
    line("add.u64 %in, %group, %bytes64;");
    line("add.u32 %cta, %cta, %thread;");
    line(&format!("mul.wide.u32 %bytes64, %cta, {outs};"));
    line("add.u64 %out, %out, %bytes64;");
    line("shl.b32 %slot, %thread, 3;");
    for operand in form.outs.iter().chain(&form.ins) {
        line(&format!(".reg .{} %{};", operand.register(), operand.name));
    }
    for (index, operand) in form.ins.iter().enumerate() {
        let (name, at) = (operand.name, index * SLOT);
        if operand.ty == "pred" {
            line(&format!("ld.global.u32 %flag32, [%in+{at}];"));
            line(&format!("setp.ne.u32 %{name}, %flag32, 0;"));
        } else {
            line(&format!("ld.global.{} %{name}, [%in+{at}];", operand.memory()));
        }
    }
    line(&form.body.replace("; ", ";\n\t"));
    for (index, operand) in form.outs.iter().enumerate() {
        let (name, at) = (operand.name, index * SLOT);
        if operand.ty == "pred" {
            line(&format!("selp.u32 %flag32, 1, 0, %{name};"));
            line(&format!("st.global.u32 [%out+{at}], %flag32;"));
        } else {
            line(&format!("st.global.{} [%out+{at}], %{name};", operand.memory()));
        }
    }
    line("ret;");
    ptx + "}\n"
}

fn run_form(vm: &Vm, form: &Form<'_>) -> Result<(), String> {
    let text = kernel(form);
    let module = vm.load(form.name, &text).map_err(|error| match error.kind() {
        ErrorKind::Rejected(diagnostics) => {
            let source = ptxvm::Source::new(form.name, text.as_str());
            diagnostics.iter().map(|d| ptxvm::render(d, &source, false)).collect::<Vec<_>>().join("\n")
        }
        ErrorKind::Trap(..) | ErrorKind::Caller(_) | ErrorKind::Machine(_) => error.to_string(),
    })?;
    let kernel = module.kernel("run").map_err(|e| e.to_string())?;

    let count = form.vectors.len();
    let last = form.vectors.last().ok_or("a form without vectors")?;
    let block = form.lanes.unwrap_or(count.min(BLOCK));
    if form.lanes.is_some() && !count.is_multiple_of(block) {
        return Err(format!("{count} vectors for CTAs of {block} threads"));
    }
    let threads = count.next_multiple_of(block);
    // The last CTA is filled up with repetitions of the last vector.
    let vectors = form.vectors.iter().chain(std::iter::repeat(last)).take(threads);
    let operands: Vec<u64> = vectors.flat_map(|v| v.operands.iter().copied()).collect();
    let source = vm.buffer(&operands).map_err(|e| e.to_string())?;
    let result = vm.zeros::<u64>(threads * form.outs.len()).map_err(|e| e.to_string())?;
    let extent = |n: usize| [u32::try_from(n).expect("the vectors of a form fit a grid"), 1, 1];
    let mut launch = Launch::new(extent(threads / block), extent(block))
        .args(&kernel, &[Arg::buffer(&source), Arg::buffer(&result)])
        .map_err(|e| e.to_string())?
        .threads(1);
    launch.timeout = Some(std::time::Duration::from_secs(60));
    vm.launch(&kernel, &launch).map_err(|e| e.to_string())?;
    let found = result.read().map_err(|e| e.to_string())?;

    let mut wrong = 0;
    let mut report = String::new();
    for (vector, results) in form.vectors.iter().zip(found.chunks(form.outs.len())) {
        for ((out, expected), have) in form.outs.iter().zip(&vector.expected).zip(results) {
            if agrees(expected, *have, out)
                .ok_or_else(|| format!("line {}: `{expected}` expects nothing", vector.line))?
            {
                continue;
            }
            wrong += 1;
            if wrong <= SHOWN {
                let operands: Vec<String> = vector.operands.iter().map(|o| format!("{o:x}")).collect();
                let (line, operands, name, digits) =
                    (vector.line, operands.join(" "), out.name, out.bits().div_ceil(4) as usize);
                report += &format!(
                    "    line {line}: {operands}: {name} is {have:0digits$x}, expected {expected}\n"
                );
            }
        }
    }
    if wrong == 0 {
        Ok(())
    } else {
        Err(format!("    `{}`: {wrong} wrong of {count} vectors\n{report}", form.body))
    }
}

/// Whether a result is one that `expected` allows; `None` if that is no expectation.
fn agrees(expected: &str, have: u64, out: &Operand<'_>) -> Option<bool> {
    let mut any = false;
    for one in expected.split('|') {
        any |= agrees_one(one, have, out)?;
    }
    Some(any)
}

fn agrees_one(expected: &str, have: u64, out: &Operand<'_>) -> Option<bool> {
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    if expected == "*" {
        return Some(true);
    }
    if let Some((high, low)) = expected.split_once(':') {
        let half = Operand { name: out.name, ty: "f16" };
        return Some(agrees_one(high, have >> 16, &half)? && agrees_one(low, have & 0xffff, &half)?);
    }
    if expected == "nan" {
        return Some(is_nan(have, out.bits()));
    }
    if let Some((low, high)) = expected.split_once("..") {
        let place = |bits: u64| order(bits, out.bits());
        return Some(
            !is_nan(have, out.bits()) && (place(hex(low)?)..=place(hex(high)?)).contains(&place(have)),
        );
    }
    Some(hex(expected)? == have)
}

/// The encoding of +infinity, and the sign bit.
fn infinity(bits: u32) -> (u64, u64) {
    match bits {
        16 => (0x7c00, 1 << 15),
        32 => (0x7f80_0000, 1 << 31),
        _ => (0x7ff0_0000_0000_0000, 1 << 63),
    }
}

fn is_nan(have: u64, bits: u32) -> bool {
    let (infinity, sign) = infinity(bits);
    have & !sign > infinity
}

/// Places floats on a line of integers, -0 just below +0.
fn order(have: u64, bits: u32) -> i128 {
    let (_, sign) = infinity(bits);
    let magnitude = i128::from(have & !sign);
    if have & sign == 0 { magnitude } else { -magnitude - 1 }
}
