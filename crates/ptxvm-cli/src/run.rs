//! `ptxvm run`: one kernel of one file, with arguments from the command line.
//!
//! Invariant: nothing is launched before the module is accepted and every argument fits its parameter; output files are
//! written only after the launch (the last one, with `--repeat`) ended without a trap.

use crate::arg::Arg;
use crate::npy::Array;
use crate::options::{Engine, Format, RunOptions, gpu_name};
use crate::{Exit, UsageError};
use ptxvm::{Buffer, ErrorKind, Kernel, Launch, Report, Trap, Vm};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Runs the kernel.
pub(crate) fn run(options: &RunOptions) -> Result<Exit, UsageError> {
    if options.engine == Engine::Jit {
        return Err("`--engine jit`: this build has no JIT; use `auto` or `interp`".into());
    }
    let args = options.args.iter().map(|text| Arg::parse(text)).collect::<Result<Vec<_>, _>>()?;
    let gpu_name = gpu_name(options.gpu_name.as_deref())?;
    let files = std::iter::once(&options.file).chain(&options.links);
    let texts = files.map(|file| crate::read_source(file)).collect::<Result<Vec<_>, _>>()?;
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let checked = ptxvm::link(&texts, &ptxvm::CheckOptions { gpu_name, strict: false });
    crate::check::print_diagnostics(&checked, Format::Human);
    let Some(module) = checked.module else {
        return Ok(Exit::Rejected);
    };
    let vm = Vm::for_addresses(module.address_size)?;
    let module = match vm.load_module(module) {
        Ok(module) => module,
        Err(error) => match error.kind() {
            ErrorKind::Rejected(diagnostics) => {
                for diagnostic in diagnostics {
                    eprintln!("{}", ptxvm::render(diagnostic, &checked.source, crate::colors()));
                }
                return Ok(Exit::Rejected);
            }
            ErrorKind::Trap(..) | ErrorKind::Caller(_) | ErrorKind::Machine(_) => return Err(error.into()),
        },
    };
    let kernel = module.kernel_or_only(options.kernel.as_deref())?;
    let bound = bind(&vm, &kernel, &args)?;
    let mut launch = Launch::new(options.grid, options.block).shared(options.shared).seed(options.seed);
    launch.threads = options.threads;
    launch.max_steps = options.max_steps;
    launch.timeout = options.timeout;
    launch.params = bound.params;

    let mut session = Session { options, kernel: kernel.name().to_owned(), reports: Vec::new(), trap: None };
    for _ in 0..options.repeat {
        match vm.launch(&kernel, &launch) {
            Ok(report) => session.reports.push(report),
            Err(error) => match error.into_kind() {
                ErrorKind::Trap(trap, report) => {
                    session.reports.push(report);
                    session.trap = Some(*trap);
                    break;
                }
                other @ (ErrorKind::Rejected(_) | ErrorKind::Caller(_) | ErrorKind::Machine(_)) => {
                    return Err(other.into());
                }
            },
        }
    }
    session.print();
    if session.trap.is_some() {
        return Ok(Exit::Trapped);
    }
    for (buffer, mut array, file) in bound.outputs {
        array.bytes = buffer.read()?;
        array.write(&file)?;
    }
    Ok(Exit::Done)
}

/// Arguments, ready to launch.
struct Bound {
    /// The parameter buffer.
    params: Vec<u8>,
    /// What to write back, and where to.
    outputs: Vec<(Buffer<u8>, Array, PathBuf)>,
    /// Buffers that only the device uses; they live as long as the launches.
    _inputs: Vec<Buffer<u8>>,
}

/// Puts the arguments into the parameter buffer of the kernel.
fn bind(vm: &Vm, kernel: &Kernel, args: &[Arg]) -> Result<Bound, UsageError> {
    let slots = kernel.params();
    if slots.len() != args.len() {
        let (wants, has) = (slots.len(), args.len());
        return Err(format!(
            "kernel `{}` has {wants} parameters, but {has} were given with --arg",
            kernel.name()
        )
        .into());
    }
    let mut bound = Bound { params: vec![0; kernel.param_bytes()], outputs: Vec::new(), _inputs: Vec::new() };
    for (index, (slot, arg)) in slots.iter().zip(args).enumerate() {
        let label = format!("argument {} (`{}`)", index + 1, slot.name);
        let bytes = match arg {
            Arg::Scalar(bytes) | Arg::Bytes(bytes) => bytes.clone(),
            Arg::In(file) => {
                let buffer = vm.named_buffer(&label, &Array::read(file)?.bytes)?;
                let address = buffer.address();
                bound._inputs.push(buffer);
                pointer(address, slot.bytes)
            }
            Arg::InOut(from, to) => {
                let array = Array::read(from)?;
                let buffer = vm.named_buffer(&label, &array.bytes)?;
                let address = buffer.address();
                bound.outputs.push((buffer, array, to.clone()));
                pointer(address, slot.bytes)
            }
            Arg::Out { dtype, shape, file } => {
                let array = Array::zeros(dtype, shape.clone())?;
                let buffer = vm.named_buffer(&label, &array.bytes)?;
                let address = buffer.address();
                bound.outputs.push((buffer, array, file.clone()));
                pointer(address, slot.bytes)
            }
            Arg::Zeros(bytes) => {
                let buffer = vm.named_zeros(&label, *bytes)?;
                let address = buffer.address();
                bound._inputs.push(buffer);
                pointer(address, slot.bytes)
            }
        };
        if bytes.len() != slot.bytes {
            let (has, wants) = (bytes.len(), slot.bytes);
            return Err(format!("{label} is {has} bytes wide, but the parameter has {wants}").into());
        }
        bound.params[slot.offset..slot.offset + slot.bytes].copy_from_slice(&bytes);
    }
    Ok(bound)
}

/// The bytes of an address for a parameter of that width.
fn pointer(address: u64, bytes: usize) -> Vec<u8> {
    let width = if bytes == 4 && u32::try_from(address).is_ok() { 4 } else { 8 };
    address.to_le_bytes()[..width].to_vec()
}

/// What ran, to be printed.
struct Session<'a> {
    options: &'a RunOptions,
    kernel: String,
    reports: Vec<Report>,
    trap: Option<Trap>,
}

impl Session<'_> {
    fn print(&self) {
        let output: Vec<u8> = self.reports.iter().flat_map(|r| r.output.iter().copied()).collect();
        let output = String::from_utf8_lossy(&output);
        if let Some(trap) = &self.trap {
            eprint!("{trap}");
        }
        match self.options.format {
            Format::Human => crate::print_out(&output),
            Format::Json => crate::print_out(&format!("{}\n", self.json(&output))),
        }
        if self.options.stats {
            eprint!("{}", self.stats());
        }
    }

    fn launch_ms(&self) -> Vec<f64> {
        self.reports.iter().map(|r| r.elapsed.as_secs_f64() * 1e3).collect()
    }

    fn json(&self, output: &str) -> Value {
        let mut object = json!({
            "kernel": self.kernel,
            "engine": "interp",
            "status": if self.trap.is_some() { "trap" } else { "ok" },
            "trap": self.trap.as_ref().map(trap_json),
            "launch_ms": self.launch_ms(),
            "compile_ms": 0.0,
            "output": output,
        });
        if self.options.stats {
            object["stats"] = self.reports.last().map_or(Value::Null, |r| {
                json!({ "warp_instructions": r.warp_instructions, "thread_instructions": r.thread_instructions, "threads": r.threads })
            });
        }
        object
    }

    fn stats(&self) -> String {
        use std::fmt::Write as _;
        let mut text = format!("kernel {}: engine interp (this build has no JIT)\n", self.kernel);
        for (index, report) in self.reports.iter().enumerate() {
            let seconds = report.elapsed.as_secs_f64();
            let rate = report.thread_instructions as f64 / seconds / 1e6;
            let _infallible = writeln!(
                text,
                "launch {index}: {:.3} ms on {} threads, {} warp instructions, {} thread instructions, {rate:.0} million/s",
                seconds * 1e3,
                report.threads,
                report.warp_instructions,
                report.thread_instructions,
            );
        }
        text
    }
}

fn trap_json(trap: &Trap) -> Value {
    json!({
        "kind": trap.kind.word(),
        "message": trap.to_string().lines().next().unwrap_or_default(),
        "kernel": trap.kernel,
        "function": trap.function,
        "file": trap.file,
        "line": trap.line,
        "instruction": trap.instruction,
        "source": trap.source.as_ref().map(|(file, line)| json!({ "file": file, "line": line })),
        "ctaid": trap.ctaid,
        "tid": trap.tid,
        "warp": trap.warp,
        "lane": trap.lane,
        "address": trap.access.as_ref().map(|a| format!("{:#x}", a.address)),
        "bytes": trap.access.as_ref().map(|a| a.bytes),
        "space": trap.access.as_ref().map(|a| a.space.name()),
        "access": trap.access.as_ref().map(|a| if a.write { "write" } else { "read" }),
        "nearest": trap.nearest,
    })
}
