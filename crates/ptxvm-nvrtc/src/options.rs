//! The options of a compilation as callers of NVRTC write them, and clang's arguments for them.
//!
//! An option has one dash or two. Its value follows `=` or is the next option; the value of `-D`, `-I` and
//! `-U` may also follow directly.
//!
//! Invariant: each argument of clang is made here, so no value from a caller can become an option of clang.
//! Unknown options are rejected. Options that concern only machine code, messages or time are accepted and
//! change nothing.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Architectures that `nvrtcGetSupportedArchs` lists from CUDA 13 on; before that it lists
/// [`OLD_ARCHITECTURES`] too.
pub(crate) const ARCHITECTURES: &[i32] = &[75, 80, 86, 87, 89, 90, 100, 103, 120, 121];
/// Architectures that were dropped with CUDA 13.
pub(crate) const OLD_ARCHITECTURES: &[i32] = &[50, 52, 53, 60, 61, 62, 70, 72];
/// Architectures that can be compiled for but are not listed. Clang knows them under the same number.
const UNNAMED: &[i32] = &[88, 101, 110];

/// The architecture to compile for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Architecture {
    /// The compute capability times ten: 80 is 8.0.
    pub(crate) number: i32,
    /// `a` or `f`, if any.
    pub(crate) suffix: Option<char>,
    /// The option was `sm_XX`: the caller also wants machine code.
    pub(crate) is_real: bool,
}

impl Architecture {
    /// The default architecture of a version of CUDA.
    pub(crate) fn default_of(version: (i32, i32)) -> Self {
        Self { number: if version.0 >= 13 { 75 } else { 52 }, suffix: None, is_real: false }
    }

    fn read(text: &str) -> Option<Self> {
        let (is_real, rest) = match text.split_once('_')? {
            ("sm", rest) => (true, rest),
            ("compute", rest) => (false, rest),
            _ => return None,
        };
        let digits = rest.trim_end_matches(['a', 'f']);
        let suffix = rest.strip_prefix(digits)?;
        let number: i32 = digits.parse().ok().filter(|_| suffix.len() <= 1)?;
        let is_known = [ARCHITECTURES, OLD_ARCHITECTURES, UNNAMED].iter().any(|list| list.contains(&number));
        let has_suffix = suffix.is_empty() || number >= 100 || (number == 90 && suffix == "a");
        (is_known && has_suffix).then_some(Self { number, suffix: suffix.chars().next(), is_real })
    }

    /// The name with a prefix.
    pub(crate) fn name(self, prefix: &str) -> String {
        format!("{prefix}_{}{}", self.number, self.suffix.map(String::from).unwrap_or_default())
    }

    /// The PTX version that has the architecture's instructions.
    fn ptx(self) -> &'static str {
        match self.number {
            ..=89 => "ptx78",
            90..=99 => "ptx80",
            _ => "ptx88",
        }
    }
}

/// The kinds of options.
#[derive(Clone, Copy)]
enum Kind {
    Architecture,
    /// Passed to clang with this letter.
    Letter(&'static str),
    /// A file to include first.
    Include,
    Standard,
    Fact(Fact),
    /// A switch with the value `true` or `false`.
    Truth(Fact),
    /// Has no effect here.
    Nothing,
    /// Has a value and no effect here.
    NothingOf,
    Refused(&'static str),
}

/// A switch that changes the code.
#[derive(Clone, Copy)]
enum Fact {
    Ftz,
    PrecDiv,
    PrecSqrt,
    Fmad,
    FastMath,
    Relocatable,
    WholeProgram,
    Debug,
    Lines,
    DefaultDevice,
    Quiet,
}

const NO_LTO: &str = "makes NVVM's representation for link-time optimisation, which is not PTX: compile for `compute_XX` or `sm_XX` without it";
const NO_OPTIX: &str = "makes a representation for OptiX, which is not PTX";

/// The options by their names, without dashes.
const OPTIONS: &[(&[&str], Kind)] = &[
    (&["gpu-architecture", "arch"], Kind::Architecture),
    (&["define-macro", "D"], Kind::Letter("-D")),
    (&["undefine-macro", "U"], Kind::Letter("-U")),
    (&["include-path", "I"], Kind::Letter("-I")),
    (&["pre-include", "include"], Kind::Include),
    (&["std"], Kind::Standard),
    (&["ftz"], Kind::Truth(Fact::Ftz)),
    (&["prec-div"], Kind::Truth(Fact::PrecDiv)),
    (&["prec-sqrt"], Kind::Truth(Fact::PrecSqrt)),
    (&["fmad"], Kind::Truth(Fact::Fmad)),
    (&["use_fast_math"], Kind::Fact(Fact::FastMath)),
    (&["relocatable-device-code", "rdc"], Kind::Truth(Fact::Relocatable)),
    (&["device-c", "dc"], Kind::Fact(Fact::Relocatable)),
    (&["device-w", "dw"], Kind::Fact(Fact::WholeProgram)),
    (&["device-debug", "G"], Kind::Fact(Fact::Debug)),
    (&["generate-line-info", "lineinfo"], Kind::Fact(Fact::Lines)),
    (&["device-as-default-execution-space", "default-device"], Kind::Fact(Fact::DefaultDevice)),
    (&["disable-warnings", "w"], Kind::Fact(Fact::Quiet)),
    (&["dlink-time-opt", "dlto", "gen-opt-lto", "gen-lto", "lto"], Kind::Refused(NO_LTO)),
    (&["optix-ir"], Kind::Refused(NO_OPTIX)),
    (&["tile-ir"], Kind::Refused("makes a representation of tiles, which is not PTX")),
    (&["fdevice-syntax-only"], Kind::Refused("is not supported")),
    (
        &[
            "extensible-whole-program",
            "ewp",
            "device-int128",
            "device-float128",
            "extra-device-vectorization",
            "restrict",
            "builtin-move-forward",
            "builtin-initializer-list",
            "m64",
            "expt-relaxed-constexpr",
            "extended-lambda",
            "expt-extended-lambda",
            "dopt",
            "no-cache",
            "no-source-include",
            "minimal",
            "version-ident",
            "display-error-number",
            "no-display-error-number",
            "err-no",
            "brief-diagnostics",
            "pch",
            "pch-verbose",
            "pch-messages",
            "instantiate-templates-in-pch",
            "device-stack-protector",
            "ptxas-verbose",
            "resource-usage",
            "v",
        ],
        Kind::Nothing,
    ),
    (
        &[
            "maxrregcount",
            "ptxas-options",
            "Xptxas",
            "optimization-info",
            "opt-info",
            "diag-error",
            "diag-suppress",
            "diag-warn",
            "split-compile",
            "time",
            "fdevice-time-trace",
            "frandom-seed",
            "jump-table-density",
            "modify-stack-limit",
            "ofast-compile",
            "Ofast-compile",
            "create-pch",
            "use-pch",
            "pch-dir",
            "Werror",
            "Wreorder",
            "device-opt",
            "dopt-level",
        ],
        Kind::NothingOf,
    ),
];

/// The options of one compilation.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) architecture: Architecture,
    ftz: bool,
    prec_div: bool,
    prec_sqrt: bool,
    fmad: bool,
    fast_functions: bool,
    relocatable: bool,
    debug: bool,
    lines: bool,
    pub(crate) default_device: bool,
    standard: u32,
    quiet: bool,
    /// Macros, folders and files, in their order.
    rest: Vec<OsString>,
}

impl Options {
    /// Reads the caller's options.
    ///
    /// # Errors
    /// Names the wrong option and the reason.
    pub(crate) fn read(given: &[Vec<u8>], architecture: Architecture) -> Result<Self, String> {
        let mut options = Self {
            architecture,
            ftz: false,
            prec_div: true,
            prec_sqrt: true,
            fmad: true,
            fast_functions: false,
            relocatable: false,
            debug: false,
            lines: false,
            default_device: false,
            standard: 17,
            quiet: false,
            rest: Vec::new(),
        };
        let mut given = given.iter();
        while let Some(option) = given.next() {
            let trimmed = option.trim_ascii();
            if trimmed.is_empty() {
                continue;
            }
            let shown = String::from_utf8_lossy(trimmed).into_owned();
            let (kind, value) = find(trimmed).ok_or_else(|| format!("unknown option `{shown}`"))?;
            options.take(kind, value, || given.next().map(|next| next.as_slice()), &shown)?;
        }
        Ok(options)
    }

    fn take<'a>(
        &mut self,
        kind: Kind,
        value: Option<&'a [u8]>,
        next: impl FnOnce() -> Option<&'a [u8]>,
        shown: &str,
    ) -> Result<(), String> {
        let wanted = || format!("option `{shown}` needs a value");
        match kind {
            Kind::Nothing => {}
            // A value that is not after `=` is the next option, which must not be read as an option itself.
            Kind::NothingOf => {
                value.or_else(next).ok_or_else(wanted)?;
            }
            Kind::Refused(why) => return Err(format!("option `{shown}` {why}")),
            Kind::Fact(fact) if value.is_none() => self.set(fact, true),
            Kind::Fact(_) => return Err(format!("option `{shown}` takes no value")),
            Kind::Truth(fact) => match value.or_else(next) {
                Some(b"true") => self.set(fact, true),
                Some(b"false") => self.set(fact, false),
                _ => return Err(format!("expected `true` or `false` in option `{shown}`")),
            },
            Kind::Architecture => {
                let text = String::from_utf8_lossy(value.or_else(next).ok_or_else(wanted)?).into_owned();
                self.architecture = Architecture::read(&text)
                    .ok_or_else(|| format!("unknown architecture in option `{shown}`"))?;
            }
            Kind::Standard => {
                let text = value.or_else(next).ok_or_else(wanted)?;
                self.standard = match text {
                    // Our headers need C++11.
                    b"c++03" | b"c++98" | b"c++11" => 11,
                    b"c++14" => 14,
                    b"c++17" => 17,
                    b"c++20" => 20,
                    b"c++23" => 23,
                    _ => return Err(format!("unknown C++ standard in option `{shown}`")),
                };
            }
            Kind::Letter(letter) => self.joined(letter, value.or_else(next).ok_or_else(wanted)?),
            Kind::Include => {
                let file = value.or_else(next).ok_or_else(wanted)?;
                self.rest.extend(["-include".into(), OsString::from_vec(file.to_vec())]);
            }
        }
        Ok(())
    }

    fn joined(&mut self, letter: &str, value: &[u8]) {
        let mut argument = OsString::from(letter);
        argument.push(OsStr::from_bytes(value));
        self.rest.push(argument);
    }

    fn set(&mut self, fact: Fact, value: bool) {
        match fact {
            Fact::Ftz => self.ftz = value,
            Fact::PrecDiv => self.prec_div = value,
            Fact::PrecSqrt => self.prec_sqrt = value,
            Fact::Fmad => self.fmad = value,
            Fact::FastMath => {
                (self.ftz, self.prec_div, self.prec_sqrt) = (true, false, false);
                (self.fmad, self.fast_functions) = (true, true);
            }
            Fact::Relocatable => self.relocatable = value,
            Fact::WholeProgram => self.relocatable = !value,
            Fact::Debug => self.debug = value,
            Fact::Lines => self.lines = value,
            Fact::DefaultDevice => self.default_device = value,
            Fact::Quiet => self.quiet = value,
        }
    }

    /// Clang's arguments, except the files that it reads and writes.
    pub(crate) fn arguments(&self, version: (i32, i32)) -> Vec<OsString> {
        let mut list: Vec<OsString> = Vec::new();
        let mut say = |text: &str| list.push(text.into());
        say(&format!("--cuda-gpu-arch={}", self.architecture.name("sm")));
        say(&format!("--cuda-feature=+{}", self.architecture.ptx()));
        say(&format!("-std=c++{}", self.standard));
        say(if self.debug { "-O0" } else { "-O3" });
        match (self.debug, self.lines) {
            (true, _) => ["-g", "--cuda-noopt-device-debug"].map(&mut say).into_iter().collect(),
            (false, true) => say("-gline-tables-only"),
            (false, false) => {}
        }
        say(if self.fmad { "-ffp-contract=fast" } else { "-ffp-contract=off" });
        for (is_exact, option) in
            [(self.prec_div, "-nvptx-prec-divf32"), (self.prec_sqrt, "-nvptx-prec-sqrtf32")]
        {
            if !is_exact {
                say("-mllvm");
                say(&format!("{option}=0"));
            }
        }
        for (is_set, option) in [
            (self.ftz, "-fgpu-flush-denormals-to-zero"),
            (self.fast_functions, "-fgpu-approx-transcendentals"),
            (self.relocatable, "-fgpu-rdc"),
            (self.relocatable, "-D__CUDACC_RDC__=1"),
            (self.debug, "-D__CUDACC_DEBUG__=1"),
            (self.quiet, "-w"),
        ] {
            if is_set {
                say(option);
            }
        }
        say(&format!("-DPTXVM_FTZ={}", u8::from(self.ftz)));
        say(&format!("-DPTXVM_PREC_DIV={}", u8::from(self.prec_div)));
        say(&format!("-DPTXVM_PREC_SQRT={}", u8::from(self.prec_sqrt)));
        say(&format!("-D__CUDACC_VER_MAJOR__={}", version.0));
        say(&format!("-D__CUDACC_VER_MINOR__={}", version.1));
        say("-D__CUDACC_VER_BUILD__=0");
        list.extend(self.rest.iter().cloned());
        list
    }
}

/// The option that a text names, and the value in it.
fn find(text: &[u8]) -> Option<(Kind, Option<&[u8]>)> {
    let name = text.strip_prefix(b"--").or_else(|| text.strip_prefix(b"-"))?;
    let end = name.iter().position(|byte| *byte == b'=');
    let (name_alone, value) = match end {
        Some(end) => (&name[..end], Some(&name[end + 1..])),
        None => (name, None),
    };
    let of = |name: &[u8]| {
        OPTIONS
            .iter()
            .find(|(names, _)| names.iter().any(|known| known.as_bytes() == name))
            .map(|found| found.1)
    };
    // In `-DNAME=1` the letter comes first.
    match name {
        [letter @ (b'D' | b'U' | b'I'), value @ ..] if !text.starts_with(b"--") && !value.is_empty() => {
            let value = value.strip_prefix(b"=").unwrap_or(value);
            Some((of(&[*letter])?, Some(value)))
        }
        _ => Some((of(name_alone)?, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[&str]) -> Result<Options, String> {
        let given: Vec<_> = given.iter().map(|option| option.as_bytes().to_vec()).collect();
        Options::read(&given, Architecture::default_of((12, 9)))
    }

    fn arguments(given: &[&str]) -> Vec<String> {
        let options = read(given).unwrap();
        options.arguments((12, 9)).into_iter().map(|argument| argument.into_string().unwrap()).collect()
    }

    #[test]
    fn options_have_one_dash_or_two_and_their_value_with_them_or_next() {
        for given in [
            &["--gpu-architecture=sm_90a"][..],
            &["-arch=sm_90a"],
            &["--gpu-architecture", "sm_90a"],
            &["-arch", "sm_90a"],
        ] {
            let architecture = read(given).unwrap().architecture;
            assert_eq!(architecture, Architecture { number: 90, suffix: Some('a'), is_real: true });
        }
        for given in
            [&["-DA=1"][..], &["-D", "A=1"], &["-D=A=1"], &["--define-macro=A=1"], &["--define-macro", "A=1"]]
        {
            assert_eq!(arguments(given).last().unwrap(), "-DA=1", "{given:?}");
        }
        assert_eq!(arguments(&["-I/a b", "--include-path=c", "-U", "X"])[11..], ["-I/a b", "-Ic", "-UX"]);
        assert_eq!(arguments(&["--pre-include=x.h"])[11..], ["-include", "x.h"]);
    }

    #[test]
    fn no_value_becomes_an_option_of_clang() {
        assert_eq!(arguments(&["-I", "-fplugin=evil.so"]).last().unwrap(), "-I-fplugin=evil.so");
        assert_eq!(arguments(&["-D", "@file"]).last().unwrap(), "-D@file");
        for wrong in ["-fplugin=evil.so", "-Xclang", "@file", "-mllvm", "x.cu", "-o", "--", "-"] {
            assert!(read(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn wrong_options_are_named() {
        for (given, said) in [
            (&["--wonder"][..], "unknown option `--wonder`"),
            (&["-arch"], "option `-arch` needs a value"),
            (&["-arch=sm_81"], "unknown architecture in option `-arch=sm_81`"),
            (&["-arch=sm_80a"], "unknown architecture in option `-arch=sm_80a`"),
            (&["--ftz=maybe"], "expected `true` or `false` in option `--ftz=maybe`"),
            (&["--std=c++99"], "unknown C++ standard in option `--std=c++99`"),
            (&["-G=1"], "option `-G=1` takes no value"),
        ] {
            assert_eq!(read(given).map(|_| ()), Err(said.to_owned()));
        }
        assert!(read(&["-dlto"]).unwrap_err().contains("link-time"));
    }

    #[test]
    fn fast_mathematics_are_all_of_their_parts() {
        let fast = arguments(&["--use_fast_math"]).join(" ");
        for part in
            ["-nvptx-prec-divf32=0", "-nvptx-prec-sqrtf32=0", "flush-denormals", "approx-transcendentals"]
        {
            assert!(fast.contains(part), "{fast}");
        }
        assert!(arguments(&["-fmad=false", "-G"]).contains(&"-ffp-contract=off".to_owned()));
        assert!(read(&["", "-maxrregcount=32", "--split-compile", "0", "-lineinfo"]).is_ok());
    }
}
