//! The command line, as clap parses it.
//!
//! Invariant: scripts depend on options and exit statuses, so the meaning of an option never changes.

use clap::{Args, Parser, Subcommand, ValueEnum};

/// What `--verbose` adds, at the end of the help.
const VERBOSE: &str = "`ptxvm --version --verbose` also prints LLVM, the processor and its features.";

/// The PTX virtual machine: checks and runs NVIDIA PTX on any CPU.
#[derive(Debug, Parser)]
#[command(name = "ptxvm", version, about, arg_required_else_help = true, after_help = VERBOSE)]
pub(crate) struct Cli {
    /// When diagnostics are printed in colors
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Parse and check PTX files, and print every diagnostic
    Check(CheckOptions),
    /// Run a kernel of a PTX file
    Run(Box<RunOptions>),
    /// Run a kernel under tools that find memory errors, races, uninitialised values and misused barriers
    Sanitize(Box<SanitizeOptions>),
    /// Format PTX files in the canonical layout; only white space changes
    Fmt(FmtOptions),
    /// Explain a diagnostic code, with examples
    Explain(ExplainOptions),
    /// List the instruction table, or one mnemonic
    Isa(IsaOptions),
    /// Run built-in kernels and check their results
    Demo(DemoOptions),
    /// Decide litmus tests of the memory consistency model
    Litmus(crate::litmus::LitmusOptions),
    /// Run any CUDA program on the CPU
    Exec(Box<ExecOptions>),
    /// List the parts of this installation, and how to get missing ones
    Doctor,
    /// Print the completions of a shell: `eval "$(ptxvm completions bash)"`
    Completions(CompletionsOptions),
    /// Print the manual page of ptxvm or of a command, in roff
    Man(ManOptions),
}

/// When output is colored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Options of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsOptions {
    /// Which shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManOptions {
    /// A command, such as `run` [default: the page of ptxvm itself]
    pub(crate) command: Option<String>,
    /// Write the pages of all commands into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    pub(crate) out: Option<std::path::PathBuf>,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Human,
    /// For tools.
    Json,
}

/// Which engine executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Engine {
    /// Native code where it saves time, else the interpreter.
    Auto,
    /// The interpreter.
    Interp,
    /// Native code.
    Jit,
}

impl From<Engine> for ptxvm::Engine {
    fn from(engine: Engine) -> Self {
        match engine {
            Engine::Auto => ptxvm::Engine::Auto,
            Engine::Interp => ptxvm::Engine::Interp,
            Engine::Jit => ptxvm::Engine::Jit,
        }
    }
}

/// What native code is shown as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Emit {
    /// The warp IR: a register of all lanes is one value.
    Wir,
    /// Which optimisations were applied or missed, and why, by PTX line.
    Remarks,
    /// LLVM's intermediate language.
    Llvm,
    /// Assembly.
    Asm,
}

impl From<Emit> for ptxvm::Listing {
    fn from(emit: Emit) -> Self {
        match emit {
            Emit::Wir => ptxvm::Listing::Wir,
            Emit::Remarks => ptxvm::Listing::Remarks,
            Emit::Llvm => ptxvm::Listing::Llvm,
            Emit::Asm => ptxvm::Listing::Asm,
        }
    }
}

/// Options of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckOptions {
    /// PTX files, folders (all `.ptx` files in them) or patterns such as `'kernels/**/*.ptx'`; `-` is
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Check as if to load on this architecture [default: the module's own .target]
    #[arg(long, value_name = "sm_XX")]
    pub(crate) gpu_name: Option<String>,
    /// Turn warnings about what ptxas would reject into errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Stop printing after this many errors of a file; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) max_errors: usize,
    /// Check the files as one program, as `run --link` links them
    #[arg(long)]
    pub(crate) link: bool,
    /// How to print diagnostics
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
}

/// What an OBJECT is, at the end of `run --help`.
const OBJECTS: &str = "\
Objects (textures, surfaces, samplers):
  tex:SOURCE[,FIELD=VALUE]...      a texture, with its sampler unless the module is in independent mode
  surf:SOURCE[,FIELD=VALUE]...     a surface
  sampler:[FIELD=VALUE]...         a sampler
  SOURCE is FILE.npy, in:FILE.npy, inout:FILE.npy[=OUT.npy], out:DTYPE[SHAPE]=FILE.npy, zeros:BYTES, or @NAME of --texels;
  inout and out are written after the launch.
Fields of texels (tex, surf, --texels):
  geom=1d|2d|3d|a1d|a2d|cube|acube|2dms|a2dms      [default: by the number of axes]
  channel_data_type=TYPE   snorm_int8 snorm_int16 unorm_int8 unorm_int16 unorm_short_565 unorm_short_555 unorm_int_101010
                           signed_int8 signed_int16 signed_int32 unsigned_int8 unsigned_int16 unsigned_int32 half_float float
                           [default: the file's type, not normalised]
  channel_order=ORDER      r a rg ra rgb rgba bgra argb intensity luminance   [default: by the last axis, else r]
  width, height, depth, array_size, num_samples, num_mipmap_levels
                           the extent, where the file's shape is not it: levels one after another
  memory_layout=1, pitch=BYTES     linear memory, rows that many bytes apart
  The axes of a file are, from the first: array elements, samples or cube faces, depth, height, width, channels (if any).
Fields of samplers (tex, sampler; where none is given, the variable's initial ones hold):
  filter_mode, mip_filter_mode     nearest or linear                          [default: nearest]
  addr_mode, addr_mode_0, _1, _2   wrap mirror clamp_ogl clamp_to_edge clamp_to_border   [default: clamp_to_edge]
  compare=never|less|equal|lequal|greater|notequal|gequal|always              [default: lequal]
  normalized_coords=0|1 (tex), force_unnormalized_coords=0|1 (sampler)
Field of surfaces: level=N         the mipmap level                           [default: 0]
In a launch file: {\"kernel\": \"k\", \"grid\": [4, 4], \"args\": [\"s32:1\", \"out:f4[64]=c.npy\"],
  \"bind\": {\"t\": {\"tex\": \"a.npy\", \"filter_mode\": \"linear\"}}, \"texels\": {\"x\": {\"source\": \"b.npy\", \"geom\": \"cube\"}}}";

/// Options of `run`.
#[derive(Debug, Args)]
#[command(after_long_help = OBJECTS)]
pub(crate) struct RunOptions {
    /// PTX file; `-` is standard input
    pub(crate) file: String,
    /// Link this PTX file too (any number of them)
    #[arg(long = "link", value_name = "FILE")]
    pub(crate) links: Vec<String>,
    /// Kernel [default: the only `.entry` of the module]
    pub(crate) kernel: Option<String>,
    /// CTAs in the grid, `X[,Y[,Z]]` [default: 1]
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = extent)]
    pub(crate) grid: Option<[u32; 3]>,
    /// Threads in a CTA, `X[,Y[,Z]]` [default: 1]
    #[arg(long, value_name = "X[,Y[,Z]]", value_parser = extent)]
    pub(crate) block: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory [default: 0]
    #[arg(long, value_name = "BYTES")]
    pub(crate) shared: Option<u32>,
    /// A kernel parameter, one for each in order: `TYPE:VALUE`, `in:FILE.npy`, `inout:FILE.npy[=OUT.npy]`,
    /// `out:DTYPE[SHAPE]=FILE.npy`, `zeros:BYTES`, `bytes:HEX`, or an OBJECT (see below), whose handle it
    /// gets
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    pub(crate) args: Vec<String>,
    /// Bind the module's variable NAME (`.texref`, `.surfref`, `.samplerref`) to an OBJECT (see below); any
    /// number of them
    #[arg(long = "bind", value_name = "NAME=OBJECT")]
    pub(crate) binds: Vec<String>,
    /// Texels with a name, for objects that share them: `tex:@NAME`, `surf:@NAME`
    #[arg(long = "texels", value_name = "NAME=SOURCE[,FIELD=VALUE]...")]
    pub(crate) texels: Vec<String>,
    /// Read kernel, grid, block, shared, args, bind and texels from this file; options of the command line
    /// override it
    #[arg(long = "launch", value_name = "FILE.json")]
    pub(crate) launch: Option<std::path::PathBuf>,
    /// Which engine executes
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) engine: Engine,
    /// Which processor native code is generated for: `native`, `avx512`, `avx2` or `baseline`, then
    /// `,tuning=NAME` (zen4, zen5, skylake-server, icelake-server, sapphirerapids), `,+FEATURE`, `,-FEATURE`;
    /// `,opt=0` or `,opt=1` is LLVM's level of optimisation, which is else 1, and 0 for large kernels.
    /// --emit takes any, others what this machine can execute [default: native]
    #[arg(long, value_name = "CPU")]
    pub(crate) cpu: Option<ptxvm::Target>,
    /// Warps of a CTA, or of several, that native code runs as one, where possible; 0: one thread at a time
    /// [default: chosen by cost]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=32))]
    pub(crate) team: Option<u32>,
    /// Neither use nor keep native code on disk (in PTXVM_CACHE_DIR, or the user's cache folder)
    #[arg(long)]
    pub(crate) no_cache: bool,
    /// Print the kernel's native code for this --block instead of running it
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) emit: Option<Emit>,
    /// OS threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) threads: Option<u32>,
    /// Stop with a trap after this many warp instructions
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<u64>,
    /// Stop with a trap after this many seconds, compiling included
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Drop output of the kernel beyond this limit, and report its size
    #[arg(long, value_name = "BYTES", default_value_t = ptxvm::Launch::OUTPUT_LIMIT)]
    pub(crate) max_output: u64,
    /// Launch this many times in the same process on the same memory, at most a million
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) repeat: u32,
    /// Schedule seed: permutes warps and CTAs and varies their time slices, on one OS thread regardless of
    /// --threads, so that runs repeat
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Initialise memory that the manual leaves undefined (shared and local memory, `malloc`) with these
    /// bytes, repeated, instead of zeros
    #[arg(long, value_name = "HEX", value_parser = ptxvm::Fill::parse)]
    pub(crate) fill: Option<ptxvm::Fill>,
    /// Check as if to load on this architecture [default: the module's own .target]
    #[arg(long, value_name = "sm_XX")]
    pub(crate) gpu_name: Option<String>,
    /// Turn warnings about what ptxas would reject into errors
    #[arg(long)]
    pub(crate) strict: bool,
    /// Stop printing diagnostics after this many errors; 0 for no limit
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) max_errors: usize,
    /// List the kernels of the module and their parameters, and run nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Print each instruction of one thread, with its registers, as the interpreter executes it:
    /// `CTA:THREAD`, each `X[,Y[,Z]]` from 0
    #[arg(long, value_name = "X[,Y[,Z]]:X[,Y[,Z]]", value_parser = thread)]
    pub(crate) trace_thread: Option<([u32; 3], [u32; 3])>,
    /// Print what ran: engine, times, instructions, and why native code was left
    #[arg(long)]
    pub(crate) stats: bool,
    /// What is printed on standard output
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
}

/// Options of `sanitize`: those of `run`, and those of the tools.
#[derive(Debug, Args)]
#[command(after_long_help = OBJECTS)]
pub(crate) struct SanitizeOptions {
    /// Tools: memcheck, racecheck, initcheck, synccheck, several with commas between them, or all
    #[arg(long, value_name = "TOOL[,TOOL]...", required = true, value_parser = tools)]
    pub(crate) tool: Tools,
    /// Exit status when something was found
    #[arg(long, value_name = "N", default_value_t = crate::Exit::Found as u8)]
    pub(crate) error_exitcode: u8,
    /// Stop after this many different findings
    #[arg(long, value_name = "N", default_value_t = ptxvm::SanitizeOptions::MAX_FINDINGS as u64, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) max_findings: u64,
    /// Do not report what the rules in this file cover, one a line, such as `kind=race kernel=scan_* line=41`
    #[arg(long, value_name = "FILE")]
    pub(crate) suppressions: Option<std::path::PathBuf>,
    /// Run with this many seeds, starting at --seed, each on new memory, and report which of them found
    /// something
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) schedules: u32,
    /// How the kernel is run.
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// Tools of `--tool`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tools(pub(crate) Vec<ptxvm::Tool>);

fn tools(text: &str) -> Result<Tools, String> {
    ptxvm::Tool::parse_list(text).map(Tools)
}

/// A pattern of bytes, as it was written.
fn hex(text: &str) -> Result<String, String> {
    ptxvm::Fill::parse(text).map(|_| text.to_owned())
}

/// Options of `fmt`.
#[derive(Debug, Args)]
pub(crate) struct FmtOptions {
    /// PTX files, folders or patterns, formatted in place; `-` is standard input, formatted to standard
    /// output
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Write nothing; exit with 1 if a file is not in canonical layout
    #[arg(long)]
    pub(crate) check: bool,
    /// Print to standard output, and leave the files as they are
    #[arg(long, conflicts_with = "check")]
    pub(crate) stdout: bool,
}

/// Options of `explain`.
#[derive(Debug, Args)]
pub(crate) struct ExplainOptions {
    /// A code, such as `P0202` [default: list all codes]
    pub(crate) code: Option<String>,
}

/// Options of `isa`.
#[derive(Debug, Args)]
pub(crate) struct IsaOptions {
    /// A mnemonic, such as `add` or `shfl.sync`
    pub(crate) name: Option<String>,
    /// How to print the table
    #[arg(long, value_enum, default_value = "human")]
    pub(crate) format: Format,
}

/// Options of `demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoOptions {
    /// Where to write the picture
    #[arg(long, value_name = "FILE.png", default_value = "mandelbrot.png")]
    pub(crate) picture: std::path::PathBuf,
    /// OS threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(crate) threads: Option<u32>,
}

/// `X[,Y[,Z]]`; omitted extents are 1.
fn extent(text: &str) -> Result<[u32; 3], String> {
    let mut extent = [1; 3];
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > 3 {
        return Err("at most three extents".to_owned());
    }
    for (slot, part) in extent.iter_mut().zip(parts) {
        *slot = part.trim().parse().map_err(|_| format!("`{part}` is not a number of CTAs or threads"))?;
        if *slot == 0 {
            return Err("an extent is at least 1".to_owned());
        }
    }
    Ok(extent)
}

/// `CTA:THREAD`, each `X[,Y[,Z]]` from 0; a single thread is in the first CTA.
fn thread(text: &str) -> Result<([u32; 3], [u32; 3]), String> {
    let place = |text: &str| {
        let mut place = [0; 3];
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > 3 {
            return Err("a place has at most three numbers".to_owned());
        }
        for (slot, part) in place.iter_mut().zip(parts) {
            *slot =
                part.trim().parse().map_err(|_| format!("`{part}` is not the number of a CTA or thread"))?;
        }
        Ok(place)
    };
    match text.split_once(':') {
        Some((cta, thread)) => Ok((place(cta)?, place(thread)?)),
        None => Ok(([0; 3], place(text)?)),
    }
}

/// A positive number of seconds.
fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("`{text}` is not a number of seconds"))?;
    match std::time::Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        Ok(_) | Err(_) => Err("a time limit is a positive number of seconds".to_owned()),
    }
}

/// A compute capability: `sm_80`, `80` or `8.0`, as the driver library reads it.
fn capability(text: &str) -> Result<String, String> {
    let digits = text.strip_prefix("sm_").unwrap_or(text).replace('.', "");
    match ptxvm::Sm::from_name(&format!("sm_{digits}")) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("`{text}` is not a compute capability such as sm_80 or 8.0")),
    }
}

/// A driver version of CUDA: `12.9`, `13` or `12090`, as the driver library reads it.
fn driver_version(text: &str) -> Result<String, String> {
    let number = |text: &str, range: std::ops::Range<u32>| text.parse().is_ok_and(|n| range.contains(&n));
    let known = match text.split_once('.') {
        Some((major, minor)) => number(major, 2..100) && number(minor, 0..100),
        None => number(text, 2..100) || number(text, 2000..100_000),
    };
    if known {
        Ok(text.to_owned())
    } else {
        Err(format!("`{text}` is not a driver version such as 12.9 or 13.0"))
    }
}

/// The architecture of `--gpu-name`.
pub(crate) fn gpu_name(name: Option<&str>) -> Result<Option<ptxvm::Sm>, crate::UsageError> {
    name.map(|name| {
        ptxvm::Sm::from_name(name)
            .ok_or_else(|| format!("`{name}` is not an architecture that ptxvm knows").into())
    })
    .transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn extents() {
        assert_eq!(extent("7"), Ok([7, 1, 1]));
        assert_eq!(extent("7,8,9"), Ok([7, 8, 9]));
        for wrong in ["", "0", "1,0", "1,2,3,4", "-1", "x", "1.5"] {
            assert!(extent(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn threads() {
        assert_eq!(thread("1,2:3"), Ok(([1, 2, 0], [3, 0, 0])));
        assert_eq!(thread("5"), Ok(([0; 3], [5, 0, 0])));
        for wrong in ["", ":", "1:", "1,2,3,4:0", "-1", "a:b", "0:0:0"] {
            assert!(thread(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn time_limits() {
        assert_eq!(seconds("0.5"), Ok(std::time::Duration::from_millis(500)));
        for wrong in ["0", "-1", "nan", "inf", "1e400", "soon"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }
}

/// Options of `exec`.
#[derive(Debug, Args)]
#[command(override_usage = "ptxvm exec [OPTIONS] -- COMMAND...")]
pub(crate) struct ExecOptions {
    /// The program and its arguments
    #[arg(
        required_unless_present = "print_env",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<std::ffi::OsString>,
    /// The folder of the CUDA libraries [default: beside this program, or lib/ptxvm beside its folder]
    #[arg(long, value_name = "FOLDER", env = "PTXVM_LIBRARY_PATH")]
    pub(crate) library_path: Option<std::path::PathBuf>,
    /// Run nothing, and print the variables for a shell: `eval "$(ptxvm exec --print-env)"`; the folder that
    /// they name stays
    #[arg(long)]
    pub(crate) print_env: bool,
    /// Put a stand-in for nvcc on PATH, which compiles device code to PTX by clang, for programs that call
    /// nvcc while they run
    #[arg(long)]
    pub(crate) nvcc: bool,
    /// Sanitizers for the program's kernels.
    #[command(flatten)]
    pub(crate) tools: ToolOptions,
    /// Options for the libraries.
    #[command(flatten)]
    pub(crate) library: LibraryOptions,
}

/// Options of `exec` for the tools.
#[derive(Debug, Args)]
pub(crate) struct ToolOptions {
    /// Watch all kernels with tools: memcheck, racecheck, initcheck, synccheck, several with commas between
    /// them, or all
    #[arg(long, value_name = "TOOL[,TOOL]...", value_parser = tools)]
    pub(crate) tool: Option<Tools>,
    /// Write findings as JSON lines to this file, the summary last
    #[arg(long, value_name = "FILE", requires = "tool")]
    pub(crate) report: Option<std::path::PathBuf>,
    /// Exit status when something was found [default: 4]
    #[arg(long, value_name = "N", requires = "tool")]
    pub(crate) error_exitcode: Option<u8>,
    /// Record at most this many different findings of each process [default: 100]
    #[arg(long, value_name = "N", requires = "tool", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(crate) max_findings: Option<u64>,
    /// Do not report what the rules in this file cover, one a line, such as `kind=race kernel=scan_* line=41`
    #[arg(long, value_name = "FILE", requires = "tool")]
    pub(crate) suppressions: Option<std::path::PathBuf>,
}

/// Options of `exec` that the libraries in the program read from variables.
#[derive(Debug, Args)]
pub(crate) struct LibraryOptions {
    /// Compute capability of the device [default: PTXVM_SM, or 8.0]
    #[arg(long, value_name = "sm_XX", value_parser = capability)]
    sm: Option<String>,
    /// How many devices there are, 1 to 32 [default: PTXVM_DEVICES, or 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=32))]
    devices: Option<u32>,
    /// Driver version, such as 12.9 or 13.0 [default: PTXVM_DRIVER_VERSION, or 12.9]
    #[arg(long, value_name = "VERSION", value_parser = driver_version)]
    driver_version: Option<String>,
    /// Which engine executes
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// OS threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
    /// Stop a kernel that runs longer
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    timeout: Option<std::time::Duration>,
    /// Schedule seed of all kernels: permutes warps and CTAs and varies their time slices, on one OS thread
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Initialise memory that the program has not written with these bytes, repeated, instead of zeros
    #[arg(long, value_name = "HEX", value_parser = hex)]
    fill: Option<String>,
    /// Write to standard error each kernel that ran, with its time and instructions
    #[arg(long)]
    stats: bool,
    /// After a trap, one call returns its error, and then the context works again, so that the next test of a
    /// suite can run
    #[arg(long)]
    recover: bool,
    /// Let kernels access all memory of the process, for clients that pass host pointers to kernels (tensors
    /// on the CPU)
    #[arg(long)]
    host_pointers: bool,
    /// Write to standard error each unsupported function that is called, each call that fails, or every call
    #[arg(long, value_name = "WHAT", value_parser = ["refused", "errors", "calls"])]
    log: Option<String>,
    /// Keep each PTX text that the program loads, from files or from memory, as a file in this folder
    #[arg(long = "save-ptx", visible_alias = "keep-ptx", value_name = "FOLDER")]
    keep_ptx: Option<std::path::PathBuf>,
}

impl LibraryOptions {
    /// Whether native code is asked for.
    pub(crate) fn wants_native(&self) -> bool {
        self.engine == Some(Engine::Jit)
    }

    /// The variables, as `ptxvm-cuda` reads them.
    pub(crate) fn variables(&self) -> Vec<(&'static str, std::ffi::OsString)> {
        let engine = self.engine.map(|engine| match engine {
            Engine::Auto => "auto".to_owned(),
            Engine::Interp => "interp".to_owned(),
            Engine::Jit => "jit".to_owned(),
        });
        let flag = |set: bool| set.then(|| "1".to_owned());
        [
            ("PTXVM_SM", self.sm.clone()),
            ("PTXVM_DEVICES", self.devices.map(|devices| devices.to_string())),
            ("PTXVM_DRIVER_VERSION", self.driver_version.clone()),
            ("PTXVM_ENGINE", engine),
            ("PTXVM_THREADS", self.threads.map(|threads| threads.to_string())),
            ("PTXVM_TIMEOUT", self.timeout.map(|time| time.as_secs_f64().to_string())),
            ("PTXVM_SEED", self.seed.map(|seed| seed.to_string())),
            ("PTXVM_FILL", self.fill.clone()),
            ("PTXVM_STATS", flag(self.stats)),
            ("PTXVM_RECOVER", flag(self.recover)),
            ("PTXVM_HOST_POINTERS", flag(self.host_pointers)),
            ("PTXVM_LOG", self.log.clone()),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?.into())))
        .chain(self.keep_ptx.clone().map(|folder| ("PTXVM_KEEP_PTX", folder.into())))
        .collect()
    }
}
