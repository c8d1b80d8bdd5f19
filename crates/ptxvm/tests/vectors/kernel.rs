//! The kernels of a form, and their runs: each vector is a thread, and every result is compared.
//!
//! Invariant: expected values come from the vectors; none is computed here.

use super::form::{Form, Operand, Vector, agrees, instruction};
use ptxvm::{AddressSize, Arg, CheckOptions, ErrorKind, Launch, Vm};
use std::fmt::Write as _;

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

/// The ways in which the instruction of a form is run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
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
pub(crate) fn ways(form: &Form<'_>) -> Vec<Way> {
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
pub(crate) fn lives(way: Way, thread: usize) -> bool {
    !matches!(way, Way::Branch | Way::Guard) || thread & 3 != 1
}

/// The PTX of a kernel, line by line.
pub(crate) struct Text {
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

/// The parts of a kernel that all forms share: without the body, and without the statements before it.
#[allow(dead_code, reason = "used where the rows of a form are counted")]
pub(crate) fn frame(form: &Form<'_>) -> String {
    let (outs, ins) = (form.outs.iter().map(copy).collect(), form.ins.iter().map(copy).collect());
    let empty = Form { body: String::new(), module: "", vectors: Vec::new(), outs, ins, ..*form };
    kernel(&empty, Way::Whole)
}

fn copy<'a>(operand: &Operand<'a>) -> Operand<'a> {
    Operand { name: operand.name, ty: operand.ty }
}

/// The kernel of a form. `%in` and `%out` are the addresses of the thread's operands and results, `%group`
/// that of the operands of the first thread of its CTA, `%slot` eight times the thread's number in its CTA.
pub(crate) fn kernel(form: &Form<'_>, way: Way) -> String {
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

/// Runs one form in every way.
pub(crate) fn run_form(vm: &Vm, form: &Form<'_>) -> Result<(), String> {
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

pub(crate) fn run_vectors(vm: &Vm, form: &Form<'_>, way: Way, text: &str) -> Result<(), String> {
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

/// Runs a few vectors of a plain form with immediates: in each source position alone, then in all. The 16-bit
/// floats have none (A94).
pub(crate) fn run_immediates(vm: &Vm, form: &Form<'_>) -> Result<(), String> {
    let can = |i: usize| !matches!(form.ins[i].ty, "f16" | "f16x2" | "bf16" | "bf16x2");
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
pub(crate) fn literal(operand: &Operand<'_>, bits: u64) -> String {
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
pub(crate) struct Shape {
    grid: usize,
    block: usize,
    results: usize,
    seed: u64,
}

/// Loads a kernel, runs it on `operands`, and reads its results.
pub(crate) fn run(
    vm: &Vm,
    form: &Form<'_>,
    text: &str,
    operands: &[u64],
    shape: Shape,
) -> Result<Vec<u64>, String> {
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
pub(crate) struct Report {
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
