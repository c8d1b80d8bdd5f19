//! Runs the instruction vectors of `tests/vectors`: each form becomes a kernel, each vector a thread of it, and every result is
//! compared with the value that the oracle beside the data computed. One trial is one file; a failing trial lists its forms.
//!
//! A form that is a single instruction is also run under a guard, in place (the destination is a source), and with immediates; any
//! form also with some threads branching around it, with registers of other types, and as the printer writes it.
//!
//! Nothing here computes an expected value. The file format is described in `tests/vectors/README.md`.

use libtest_mimic::{Arguments, Failed, Trial};
use ptxvm::{AddressSize, Arg, CheckOptions, ErrorKind, Launch, Vm};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Bytes of one operand or result in the arrays a kernel reads and writes.
const SLOT: usize = 8;
/// Threads of a CTA, where a form does not say.
const BLOCK: usize = 128;
/// Vectors of a form that are tried with immediates.
const IMMEDIATES: usize = 4;
/// Characters of a body shown.
const BODY_SHOWN: usize = 120;
/// Wrong results shown for a form.
const SHOWN: usize = 4;

fn main() {
    let args = Arguments::from_args();
    let elsewhere = std::env::var_os("PTXVM_VECTORS").map(PathBuf::from);
    let root = elsewhere.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors"));
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
    let wide = Vm::new().map_err(|e| e.to_string())?;
    let narrow = Vm::for_addresses(AddressSize::Bits32).map_err(|e| e.to_string())?;
    let mut report = String::new();
    let mut failed = 0;
    for form in &forms {
        let vm = if form.address == AddressSize::Bits64 { &wide } else { &narrow };
        if let Err(why) = run_form(vm, form) {
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
    /// Width of an address.
    address: AddressSize,
    /// Threads of a CTA, where the form says: the vectors of one CTA follow each other in the order of its threads.
    lanes: Option<usize>,
    outs: Vec<Operand<'a>>,
    ins: Vec<Operand<'a>>,
    body: String,
    /// What stands before the kernel: functions and variables.
    module: &'a str,
    /// The body is the instruction NAME, with the results and operands in order.
    plain: bool,
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

    /// Whether a register of the one type can stand for one of the other (section 9.4).
    fn agrees(&self, other: &Self) -> bool {
        let class = |o: &Self| o.register()[..1].replace(['s', 'u'], "i");
        let (a, b) = (class(self), class(other));
        self.bits() == other.bits() && (a == b || a == "b" || b == "b")
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

fn operands(text: &str) -> Option<Vec<Operand<'_>>> {
    fn operand(text: &str) -> Option<Operand<'_>> {
        const TYPES: &str = "pred f16x2 b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f16 f32 f64";
        let (name, ty) = text.split_once(':')?;
        TYPES.split(' ').any(|t| t == ty).then_some(Operand { name, ty })
    }
    text.split_whitespace().map(operand).collect()
}

/// The ways in which the instruction of a form is run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// Every thread runs the body.
    Whole,
    /// One thread of four branches around the body.
    Branch,
    /// One thread of four has a false guard on the instruction.
    Guard,
    /// The destination is the register of that operand.
    InPlace(usize),
    /// Every thread runs the body, of the checked module printed again.
    Printed,
    /// Every register has a bit-size type.
    Untyped,
    /// Signed registers are unsigned and the other way round.
    OtherSign,
}

/// The ways to run a form; most need that it is a single instruction.
fn ways(form: &Form<'_>) -> Vec<Way> {
    let mut ways = vec![Way::Whole, Way::Printed];
    if form.lanes.is_none() {
        ways.extend([Way::Branch, Way::Untyped, Way::OtherSign]);
        if form.plain {
            ways.push(Way::Guard);
            let fits = |i: &usize| form.outs.len() == 1 && form.outs[0].agrees(&form.ins[*i]);
            ways.extend((0..form.ins.len()).filter(fits).map(Way::InPlace));
        }
    }
    ways
}

/// Whether a thread of a CTA runs the instruction. Mirrored by the kernel's `%live`.
fn lives(way: Way, thread: usize) -> bool {
    !matches!(way, Way::Branch | Way::Guard) || thread & 3 != 1
}

/// The PTX of a kernel, line by line.
struct Text {
    ptx: String,
    /// The type of addresses.
    address: &'static str,
}

impl Text {
    /// The head of the module and the kernel, down to the addresses of its two arrays.
    fn new(form: &Form<'_>) -> Self {
        let old = form.version.starts_with("1.");
        let (address, directive) = match form.address {
            AddressSize::Bits32 => ("u32", ".address_size 32\n"),
            AddressSize::Bits64 => ("u64", ".address_size 64\n"),
        };
        let mut text = Self { ptx: format!(".version {}\n.target {}\n", form.version, form.target), address };
        // The directive came with 2.3.
        if !old && !matches!(form.version, "2.0" | "2.1" | "2.2") {
            text.ptx += directive;
        }
        text.ptx += &form.module.replace("; ", ";\n");
        if matches!(form.version, "1.0" | "1.1" | "1.2" | "1.3") {
            text.ptx += ".entry run\n{\n";
            text.line(&format!(".param .{address} source;"));
            text.line(&format!(".param .{address} result;"));
        } else {
            text.ptx +=
                &format!(".visible .entry run(.param .{address} source, .param .{address} result)\n{{\n");
        }
        text.line(&format!(".reg .{address} %in, %out, %group, %step;"));
        text.line(".reg .u32 %slot, %thread, %cta, %threads, %flag32;");
        text.line(".reg .pred %live;");
        text.line(&format!("ld.param.{address} %group, [source];"));
        text.line(&format!("ld.param.{address} %out, [result];"));
        let read = if old { "cvt.u32.u16" } else { "mov.u32" };
        text.line(&format!("{read} %thread, %tid.x;"));
        text.line(&format!("{read} %cta, %ctaid.x;"));
        text.line(&format!("{read} %threads, %ntid.x;"));
        text
    }

    fn line(&mut self, text: &str) {
        let _infallible = writeln!(self.ptx, "\t{text}");
    }

    /// `to` = `from` + `index` * `bytes`.
    fn place(&mut self, to: &str, from: &str, index: &str, bytes: usize) {
        let multiply = if self.address == "u64" { "mul.wide.u32" } else { "mul.lo.u32" };
        self.line(&format!("{multiply} %step, {index}, {bytes};"));
        self.line(&format!("add.{} {to}, {from}, %step;", self.address));
    }

    fn declare(&mut self, form: &Form<'_>, way: Way) {
        for operand in form.outs.iter().chain(&form.ins) {
            let ty = operand.register();
            let (class, bits) = ty.split_at(1);
            let ty = match (way, class) {
                (Way::Untyped, _) if ty != "pred" => format!("b{bits}"),
                (Way::OtherSign, "u") => format!("s{bits}"),
                (Way::OtherSign, "s") => format!("u{bits}"),
                _ => ty.to_owned(),
            };
            self.line(&format!(".reg .{ty} %{};", operand.name));
        }
    }

    fn load(&mut self, ins: &[Operand<'_>], offset: usize) {
        for (index, operand) in ins.iter().enumerate() {
            let (name, at) = (operand.name, offset + index * SLOT);
            if operand.ty == "pred" {
                self.line(&format!("ld.global.u32 %flag32, [%in+{at}];"));
                self.line(&format!("setp.ne.u32 %{name}, %flag32, 0;"));
            } else {
                self.line(&format!("ld.global.{} %{name}, [%in+{at}];", operand.memory()));
            }
        }
    }

    fn store(&mut self, outs: &[Operand<'_>], offset: usize) {
        for (index, operand) in outs.iter().enumerate() {
            let (name, at) = (operand.name, offset + index * SLOT);
            if operand.ty == "pred" {
                self.line(&format!("selp.u32 %flag32, 1, 0, %{name};"));
                self.line(&format!("st.global.u32 [%out+{at}], %flag32;"));
            } else {
                self.line(&format!("st.global.{} [%out+{at}], %{name};", operand.memory()));
            }
        }
    }

    fn end(mut self) -> String {
        self.line("ret;");
        self.ptx + "}\n"
    }
}

/// The kernel of a form. `%in` and `%out` are the addresses of the thread's operands and results, `%group` that of the operands
/// of the first thread of its CTA, `%slot` eight times the thread's number in its CTA.
fn kernel(form: &Form<'_>, way: Way) -> String {
    let mut text = Text::new(form);
    text.line("mul.lo.u32 %cta, %cta, %threads;");
    text.place("%group", "%group", "%cta", form.ins.len() * SLOT);
    text.place("%in", "%group", "%thread", form.ins.len() * SLOT);
    text.line("add.u32 %cta, %cta, %thread;");
    text.place("%out", "%out", "%cta", form.outs.len() * SLOT);
    text.line("shl.b32 %slot, %thread, 3;");
    text.line("and.b32 %flag32, %thread, 3;");
    text.line("setp.ne.u32 %live, %flag32, 1;");
    text.declare(form, way);
    if way == Way::Branch {
        text.line("@!%live bra SKIP;");
    }
    text.load(&form.ins, 0);
    match way {
        Way::Whole | Way::Printed | Way::Branch | Way::Untyped | Way::OtherSign => {
            text.line(&form.body.replace("; ", ";\n\t"))
        }
        Way::Guard => text.line(&format!("@%live {}", form.body)),
        Way::InPlace(position) => {
            let (out, operand) = (&form.outs[0], &form.ins[position]);
            let ty = if out.ty == "pred" { "pred".to_owned() } else { format!("b{}", out.bits()) };
            text.line(&format!("mov.{ty} %{}, %{};", out.name, operand.name));
            text.line(&instruction(form, &|i| {
                if i == position { format!("%{}", out.name) } else { format!("%{}", form.ins[i].name) }
            }));
        }
    }
    text.store(&form.outs, 0);
    if way == Way::Branch {
        text.line("SKIP:");
    }
    text.end()
}

/// The instruction of a plain form with these source operands.
fn instruction(form: &Form<'_>, operand: &dyn Fn(usize) -> String) -> String {
    let outs = form.outs.iter().map(|o| format!("%{}", o.name));
    let operands: Vec<String> = outs.chain((0..form.ins.len()).map(operand)).collect();
    format!("{} {};", form.name, operands.join(", "))
}

/// Runs one form in every way.
fn run_form(vm: &Vm, form: &Form<'_>) -> Result<(), String> {
    for way in ways(form) {
        let mut text = kernel(form, way);
        if way == Way::Printed {
            let module = ptx::check::check(form.name, &text, &CheckOptions::default()).module;
            text = ptx::check::print(&module.expect("the form was accepted as it stands"));
        }
        let start: String = form.body.chars().take(BODY_SHOWN).collect();
        run_vectors(vm, form, way, &text).map_err(|why| format!("    {way:?} of `{start}`: {why}"))?;
    }
    if form.plain {
        run_immediates(vm, form)?;
    }
    Ok(())
}

fn run_vectors(vm: &Vm, form: &Form<'_>, way: Way, text: &str) -> Result<(), String> {
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
    // Threads that meet do so in any order; with one OS thread a seed repeats a schedule.
    let seeds: &[u64] = if form.lanes.is_some() { &[0, 1, 12345] } else { &[0] };
    for seed in seeds {
        let shape = Shape { grid: threads / block, block, results: threads * form.outs.len(), seed: *seed };
        let found = run(vm, form, text, &operands, shape)?;
        let mut report = Report::default();
        for (index, (vector, results)) in form.vectors.iter().zip(found.chunks(form.outs.len())).enumerate() {
            if lives(way, index % block) {
                report.compare(form, vector, results)?;
            } else if way == Way::Branch && results.iter().any(|r| *r != 0) {
                return Err(format!("line {}: a thread that skips the body wrote {results:x?}", vector.line));
            }
        }
        report.verdict(count).map_err(|why| format!("seed {seed}: {why}"))?;
    }
    Ok(())
}

/// Runs a few vectors of a plain form with immediates: in each source position alone, then in all. Half precision has none (A94).
fn run_immediates(vm: &Vm, form: &Form<'_>) -> Result<(), String> {
    let can = |i: usize| !matches!(form.ins[i].ty, "f16" | "f16x2");
    let positions: Vec<usize> = (0..form.ins.len()).filter(|i| can(*i)).collect();
    let (count, outs) = (form.vectors.len(), form.outs.len());
    let vectors: Vec<&Vector<'_>> =
        (0..IMMEDIATES.min(count)).map(|i| &form.vectors[i * count / IMMEDIATES.min(count)]).collect();
    let mut cases: Vec<(&Vector<'_>, Vec<usize>)> = Vec::new();
    for vector in &vectors {
        cases.extend(positions.iter().map(|p| (*vector, vec![*p])));
        if positions.len() > 1 {
            cases.push((vector, positions.clone()));
        }
    }
    if cases.is_empty() {
        return Ok(());
    }
    let mut text = Text::new(form);
    text.line(&format!("mov.{} %in, %group;", text.address));
    let mut operands = Vec::new();
    for (index, (vector, immediate)) in cases.iter().enumerate() {
        text.line("{");
        text.declare(form, Way::Whole);
        text.load(&form.ins, operands.len() * SLOT);
        operands.extend(&vector.operands);
        text.line(&instruction(form, &|i| {
            if immediate.contains(&i) {
                literal(&form.ins[i], vector.operands[i])
            } else {
                format!("%{}", form.ins[i].name)
            }
        }));
        text.store(&form.outs, index * outs * SLOT);
        text.line("}");
    }
    let found = run(
        vm,
        form,
        &text.end(),
        &operands,
        Shape { grid: 1, block: 1, results: cases.len() * outs, seed: 0 },
    )
    .map_err(|e| format!("    with immediates: {e}"))?;
    let mut report = Report::default();
    for ((vector, _), results) in cases.iter().zip(found.chunks(outs)) {
        report.compare(form, vector, results)?;
    }
    report.verdict(cases.len()).map_err(|why| format!("    with immediates: {why}"))
}

/// A constant as it is written for an operand of a type.
fn literal(operand: &Operand<'_>, bits: u64) -> String {
    match operand.ty {
        "f32" => format!("0f{bits:08x}"),
        "f64" => format!("0d{bits:016x}"),
        "s16" => (bits as i16).to_string(),
        "s32" => (bits as i32).to_string(),
        "s64" => (bits as i64).to_string(),
        _ => format!("{bits:#x}"),
    }
}

/// How a kernel is launched, and how many results it writes.
struct Shape {
    grid: usize,
    block: usize,
    results: usize,
    seed: u64,
}

/// Loads a kernel, runs it on `operands`, and reads its results.
fn run(vm: &Vm, form: &Form<'_>, text: &str, operands: &[u64], shape: Shape) -> Result<Vec<u64>, String> {
    let module = vm.load(form.name, text).map_err(|error| match error.kind() {
        ErrorKind::Rejected(diagnostics) => {
            let source = ptxvm::Source::new(form.name, text);
            diagnostics.iter().map(|d| ptxvm::render(d, &source, false)).collect::<Vec<_>>().join("\n")
        }
        ErrorKind::Trap(..) | ErrorKind::Caller(_) | ErrorKind::Machine(_) => error.to_string(),
    })?;
    let kernel = module.kernel("run").map_err(|e| e.to_string())?;
    let source = vm.buffer(operands).map_err(|e| e.to_string())?;
    let result = vm.zeros::<u64>(shape.results).map_err(|e| e.to_string())?;
    let extent = |n: usize| [u32::try_from(n).expect("the vectors of a form fit a grid"), 1, 1];
    let mut launch = Launch::new(extent(shape.grid), extent(shape.block))
        .args(&kernel, &[Arg::buffer(&source), Arg::buffer(&result)])
        .map_err(|e| e.to_string())?
        .threads(1)
        .seed(shape.seed);
    launch.timeout = Some(std::time::Duration::from_secs(60));
    vm.launch(&kernel, &launch).map_err(|e| e.to_string())?;
    result.read().map_err(|e| e.to_string())
}

/// The wrong results of one kernel.
#[derive(Default)]
struct Report {
    wrong: usize,
    lines: String,
}

impl Report {
    fn compare(&mut self, form: &Form<'_>, vector: &Vector<'_>, results: &[u64]) -> Result<(), String> {
        for ((out, expected), have) in form.outs.iter().zip(&vector.expected).zip(results) {
            if agrees(expected, *have, out)
                .ok_or_else(|| format!("line {}: `{expected}` expects nothing", vector.line))?
            {
                continue;
            }
            self.wrong += 1;
            if self.wrong <= SHOWN {
                let operands: Vec<String> = vector.operands.iter().map(|o| format!("{o:x}")).collect();
                let (line, operands, name, digits) =
                    (vector.line, operands.join(" "), out.name, out.bits().div_ceil(4) as usize);
                self.lines += &format!(
                    "    line {line}: {operands}: {name} is {have:0digits$x}, expected {expected}\n"
                );
            }
        }
        Ok(())
    }

    fn verdict(self, count: usize) -> Result<(), String> {
        if self.wrong == 0 {
            Ok(())
        } else {
            Err(format!("{} wrong of {count} vectors\n{}", self.wrong, self.lines))
        }
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
