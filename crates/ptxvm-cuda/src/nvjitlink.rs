//! nvJitLink's interface over ptxvm's linker, for clients that link by it and not by the driver.
//!
//! The library is also found under that name (`ptxvm exec` sets this up). Its inputs are PTX, fat binaries
//! with PTX, and earlier results. In place of machine code it returns the image of [`crate::link`], a text
//! that `cuModuleLoadData` accepts.
//!
//! It reports version 12.0 of CUDA. Of later versions clients expect support for NVVM's representation for
//! link-time optimization, which is not PTX; for this version they pass PTX.
//!
//! Invariant: an image is returned only if its texts link. A handle is a number, and never dereferenced. What
//! it does not do: undefined symbols are found when the image is loaded, because a later link may define
//! them; nothing is optimized across inputs; the linked program is not returned as one PTX text.

mod versions;

use crate::ffi::{HostBytes, In, Out, Pointer, Text};
use crate::handles::{Handle, Handles};
use crate::link::{ARCHIVE, linked_bytes};
use crate::{image, log};
use ptxvm::container::Bundle;
use ptxvm::{CheckOptions, Severity};
use std::ffi::{c_char, c_int, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// The values of `nvJitLinkResult` that are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub(crate) enum Outcome {
    Success = 0,
    UnrecognizedOption = 1,
    MissingArch = 2,
    InvalidInput = 3,
    PtxCompile = 4,
    Internal = 6,
    UnrecognizedInput = 8,
}

/// The result of an entry point's body.
type Answer = Result<(), Outcome>;

/// The version that it reports.
const VERSION: (c_uint, c_uint) = (12, 0);

/// Options that concern only machine code or messages, without the text after `=` or `:`.
const OPTIONS: &[&str] = &[
    "-O",
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-Xnvvm",
    "-Xptxas",
    "-device-stack-protector",
    "-fma",
    "-ftz",
    "-g",
    "-jump-table-density",
    "-kernels-used",
    "-lineinfo",
    "-no-cache",
    "-optimize-unused-variables",
    "-prec-div",
    "-prec-sqrt",
    "-split-compile",
    "-split-compile-extended",
    "-time",
    "-v",
    "-variables-used",
    "-verbose",
];

/// Most options of a link. Chosen: more than a command line has.
const OPTIONS_MAX: u32 = 1 << 16;

/// One link.
#[derive(Default)]
struct Link {
    /// Compute capability of the target device: 80 is 8.0.
    capability: u32,
    texts: Vec<(String, String)>,
    /// The limit of registers per thread.
    registers: Option<u32>,
    image: Option<String>,
    errors: String,
    notes: String,
}

type Links = Handles<Mutex<Link>>;

fn links() -> &'static Links {
    static LINKS: OnceLock<Links> = OnceLock::new();
    LINKS.get_or_init(Links::default)
}

fn find(handle: Handle) -> Result<Arc<Mutex<Link>>, Outcome> {
    links().find(handle).ok_or(Outcome::InvalidInput)
}

/// Runs the body of an entry point.
fn enter(name: &str, body: impl FnOnce() -> Answer) -> Outcome {
    let outcome = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Outcome::Success,
        Ok(Err(outcome)) => outcome,
        Err(_) => {
            log::say(&format!(
                "ptxvm bug: `{name}` panicked; please report it with the program and this text"
            ));
            Outcome::Internal
        }
    };
    if outcome != Outcome::Success {
        log::note(&format!("{name}: {outcome:?}"));
    }
    outcome
}

/// Runs the body of an entry point with its link.
fn on(name: &str, handle: Handle, body: impl FnOnce(&mut Link) -> Answer) -> Outcome {
    enter(name, || body(&mut find(handle)?.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// Reads the options.
fn options(given: &[String]) -> Result<Link, Outcome> {
    let (mut arch, mut registers) = (None, None);
    for option in given {
        let (name, value) = option.split_once(['=', ':']).unwrap_or((option, ""));
        match name {
            "-arch" => {
                let number = value.trim_start_matches("sm_").trim_start_matches("compute_");
                let number = number.trim_end_matches(|letter: char| letter.is_ascii_lowercase());
                arch = Some(number.parse().map_err(|_| Outcome::UnrecognizedOption)?);
            }
            "-maxrregcount" => registers = value.parse().ok().filter(|most| *most > 0),
            _ if OPTIONS.contains(&name) => {}
            _ => {
                log::note(&format!("nvJitLink: `{option}` is not supported"));
                return Err(Outcome::UnrecognizedOption);
            }
        }
    }
    let capability = arch.ok_or(Outcome::MissingArch)?;
    Ok(Link { capability, registers, ..Link::default() })
}

impl Link {
    /// Adds an input of a kind (`nvJitLinkInputType`).
    fn add(&mut self, kind: c_int, bytes: &[u8], name: &str) -> Answer {
        match kind {
            1 | 2 | 4 | 5 | 6 | 10 => {}
            3 => {
                self.errors += &format!(
                    "{name}: NVVM's representation for link-time optimisation is not supported; expected PTX\n"
                );
                return Err(Outcome::UnrecognizedInput);
            }
            _ => return Err(Outcome::InvalidInput),
        }
        if bytes.starts_with(ARCHIVE) {
            self.notes += &format!("{name}: ignored an archive of machine code\n");
            return Ok(());
        }
        let texts = match linked_bytes(bytes) {
            Some(linked) => {
                self.registers = self.registers.into_iter().chain(linked.registers).min();
                linked.texts
            }
            None => match image::texts_of_bytes(bytes, self.capability) {
                Ok(mut texts) => {
                    if let [(only, _)] = &mut texts[..] {
                        name.clone_into(only);
                    }
                    texts
                }
                Err(_) => {
                    self.errors += &format!("{name}: expected PTX, found none\n");
                    return Err(Outcome::UnrecognizedInput);
                }
            },
        };
        self.texts.extend(texts);
        Ok(())
    }

    /// Links the inputs.
    fn complete(&mut self) -> Answer {
        if self.texts.is_empty() {
            return Err(Outcome::InvalidInput);
        }
        let mut texts: Vec<_> =
            self.texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        crate::module::with_device_library(&mut texts);
        let checked = ptxvm::link(&texts, &CheckOptions::default());
        for diagnostic in &checked.diagnostics {
            let said = ptxvm::render(diagnostic, &checked.source, false) + "\n";
            match diagnostic.severity {
                Severity::Error => self.errors += &said,
                _ => self.notes += &said,
            }
        }
        if checked.module.is_none() {
            return Err(Outcome::PtxCompile);
        }
        self.image = Some(Bundle::write(&self.texts, self.registers));
        Ok(())
    }

    /// The image, after the link.
    fn image(&self) -> Result<&str, Outcome> {
        self.image.as_deref().ok_or(Outcome::InvalidInput)
    }
}

/// Writes a text and its final zero to memory that the caller made large enough.
fn give(text: &str, place: Pointer) -> Answer {
    place.place::<c_char>().set_text(text, text.len() + 1).map_err(|_| Outcome::InvalidInput)
}

/// Writes the number of bytes that [`give`] writes.
fn size(text: &str, place: Out<usize>) -> Answer {
    place.set(text.len() + 1).map_err(|_| Outcome::InvalidInput)
}

/// The version.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkVersion(major: Out<c_uint>, minor: Out<c_uint>) -> Outcome {
    enter("nvJitLinkVersion", || {
        major.set(VERSION.0).and_then(|()| minor.set(VERSION.1)).map_err(|_| Outcome::InvalidInput)
    })
}

/// Begins a link.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkCreate(handle: Out<Handle>, count: u32, given: In<Text>) -> Outcome {
    enter("nvJitLinkCreate", || {
        handle.check().map_err(|_| Outcome::InvalidInput)?;
        if count > OPTIONS_MAX {
            return Err(Outcome::InvalidInput);
        }
        let given = given.all(count as usize).map_err(|_| Outcome::InvalidInput)?;
        let given: Result<Vec<_>, _> = given.into_iter().map(Text::get).collect();
        let link = options(&given.map_err(|_| Outcome::InvalidInput)?)?;
        handle.set(links().insert(Mutex::new(link))).map_err(|_| Outcome::InvalidInput)
    })
}

/// Ends a link, and clears the handle.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkDestroy(handle: Out<Handle>) -> Outcome {
    enter("nvJitLinkDestroy", || {
        let named = In::from(handle).get().map_err(|_| Outcome::InvalidInput)?;
        links().remove(named).map_err(|_| Outcome::InvalidInput)?;
        handle.set(Handle::NULL).map_err(|_| Outcome::InvalidInput)
    })
}

/// Adds an input, whose name is optional.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkAddData(
    handle: Handle,
    kind: c_int,
    data: Pointer,
    bytes: usize,
    name: Text,
) -> Outcome {
    on("nvJitLinkAddData", handle, |link| {
        if data.is_null() || bytes == 0 {
            return Err(Outcome::InvalidInput);
        }
        let data = HostBytes::new(data, bytes).and_then(|data| data.copied());
        link.add(
            kind,
            &data.map_err(|_| Outcome::InvalidInput)?,
            &name.get().unwrap_or_else(|_| "<linked>".to_owned()),
        )
    })
}

/// Adds a file.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkAddFile(handle: Handle, kind: c_int, path: Text) -> Outcome {
    on("nvJitLinkAddFile", handle, |link| {
        let path = path.get().map_err(|_| Outcome::InvalidInput)?;
        let bytes = image::read_file(&path).map_err(|error| {
            link.errors += &format!("{path}: {error}\n");
            Outcome::InvalidInput
        })?;
        link.add(kind, &bytes, &path)
    })
}

/// Links.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkComplete(handle: Handle) -> Outcome {
    on("nvJitLinkComplete", handle, Link::complete)
}

/// The size of the image.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkGetLinkedCubinSize(handle: Handle, bytes: Out<usize>) -> Outcome {
    on("nvJitLinkGetLinkedCubinSize", handle, |link| size(link.image()?, bytes))
}

/// The image.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkGetLinkedCubin(handle: Handle, place: Pointer) -> Outcome {
    on("nvJitLinkGetLinkedCubin", handle, |link| give(link.image()?, place))
}

/// The size of the linked program as one text, which is not supported.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkGetLinkedPtxSize(handle: Handle, _bytes: Out<usize>) -> Outcome {
    on("nvJitLinkGetLinkedPtxSize", handle, |_| Err(Outcome::InvalidInput))
}

/// The linked program as one text, which is not supported.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkGetLinkedPtx(handle: Handle, _place: Pointer) -> Outcome {
    on("nvJitLinkGetLinkedPtx", handle, |_| Err(Outcome::InvalidInput))
}

/// The size of the error messages.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkGetErrorLogSize(handle: Handle, bytes: Out<usize>) -> Outcome {
    on("nvJitLinkGetErrorLogSize", handle, |link| size(&link.errors, bytes))
}

/// The error messages.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkGetErrorLog(handle: Handle, place: Pointer) -> Outcome {
    on("nvJitLinkGetErrorLog", handle, |link| give(&link.errors, place))
}

/// The size of the other messages.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkGetInfoLogSize(handle: Handle, bytes: Out<usize>) -> Outcome {
    on("nvJitLinkGetInfoLogSize", handle, |link| size(&link.notes, bytes))
}

/// The other messages.
#[unsafe(no_mangle)]
extern "C" fn nvJitLinkGetInfoLog(handle: Handle, place: Pointer) -> Outcome {
    on("nvJitLinkGetInfoLog", handle, |link| give(&link.notes, place))
}
