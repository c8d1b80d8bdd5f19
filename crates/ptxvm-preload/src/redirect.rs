//! Finds CUDA runtimes in the loaded objects, and redirects them.
//!
//! Invariant: each object is examined once for each time that it is loaded. A function is redirected only if
//! memory holds the bytes of its file.

use crate::code::{Processor, Site, Target, plan};
use crate::elf::{self, Function};
use crate::process::{self, Object, Runtime};
use std::collections::HashSet;
use std::ffi::CString;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};

/// The file name that cargo gives ptxvm's runtime. The file lies beside this library.
const RUNTIME: &str = "libptxvm_cudart.so";
/// The function of ptxvm's runtime that stands in for functions which it lacks. Its argument is the name of
/// the missing function.
const REFUSE: &str = "ptxvm_cudart_refuse";
/// The function of ptxvm's runtime that takes the version of a redirected runtime.
const BUILT_FOR: &str = "ptxvm_cudart_built_for";

/// Bytes of a function that are compared with the file. This is more than any jump takes.
const BYTES: u64 = 64;
/// Most bytes of padding behind a function: the usual alignment of functions.
const PADDING: u64 = 16;

/// The objects that were examined.
#[derive(Default)]
struct Seen {
    count: Option<process::Count>,
    objects: HashSet<(usize, PathBuf)>,
}

/// Redirects the runtimes of all objects that were loaded since the last call.
pub(crate) fn look() {
    static SEEN: Mutex<Option<Seen>> = Mutex::new(None);
    // The loader runs constructors one after another, so the lock is held only if this thread is loading
    // ptxvm's runtime.
    let Ok(mut seen) = SEEN.try_lock() else { return };
    let seen = seen.get_or_insert_default();
    loop {
        let count = process::count();
        if seen.count == Some(count) {
            return;
        }
        if seen.count.is_some_and(|before| before.unloaded != count.unloaded) {
            // An unloaded object's address may now be that of another object.
            seen.objects.clear();
        }
        seen.count = Some(count);
        for object in process::objects() {
            if seen.objects.insert((object.base, object.path.clone())) {
                redirect(&object);
            }
        }
    }
}

/// Writes a line to standard error. A closed standard error is not an error.
pub(crate) fn say(line: &str) {
    let _closed = std::io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}

/// Whether `PTXVM_LOG` is one of these words.
fn is_asked_for(words: &[&str]) -> bool {
    std::env::var("PTXVM_LOG").is_ok_and(|what| words.contains(&what.as_str()))
}

/// ptxvm's runtime, opened at its first use.
fn ours() -> Option<&'static Runtime> {
    static OURS: OnceLock<Option<Runtime>> = OnceLock::new();
    OURS.get_or_init(|| Runtime::open(&process::folder()?.join(RUNTIME))).as_ref()
}

/// Redirects the runtime of an object, if it has one.
fn redirect(object: &Object) {
    let Some(processor) = Processor::host() else { return };
    let Ok(file) = File::open(&object.path) else { return };
    if is_our_runtime(&file) {
        return;
    }
    // A file that cannot be read as ELF has no runtime that could be found.
    let Ok(Some(found)) = elf::runtime(&file) else { return };
    let path = object.path.display();
    let Some(ours) = ours() else {
        say(&format!(
            "ptxvm: `{path}` contains a CUDA runtime, but its replacement `{RUNTIME}` is not beside the library that `ptxvm exec` preloads"
        ));
        return;
    };
    ours.tell(BUILT_FOR, found.major());
    let (sites, mut left) = sites(processor, object, &file, &found, ours);
    let (patches, short) = plan(processor, &sites);
    left += short.len();
    if let Err(error) = process::write(object, &patches) {
        say(&format!(
            "ptxvm: `{path}` contains a CUDA runtime that cannot be redirected to ptxvm's ({error}): build the program with `-cudart shared`"
        ));
    } else if is_asked_for(&["calls"]) || left > 0 && is_asked_for(&["1", "refused", "errors"]) {
        let done = sites.len() - short.len();
        say(&format!(
            "ptxvm: `{path}` contains a CUDA runtime: redirected {done} of its functions, left {left}"
        ));
    }
}

/// Whether the file is ptxvm's runtime, under whatever name.
fn is_our_runtime(file: &File) -> bool {
    static OURS: OnceLock<Option<(u64, u64)>> = OnceLock::new();
    let id = |about: std::fs::Metadata| (about.dev(), about.ino());
    let ours = OURS.get_or_init(|| Some(id(std::fs::metadata(process::folder()?.join(RUNTIME)).ok()?)));
    ours.is_some() && file.metadata().ok().map(id) == *ours
}

/// The functions to redirect, and how many cannot be.
fn sites(
    processor: Processor,
    object: &Object,
    file: &File,
    found: &elf::Runtime,
    ours: &Runtime,
) -> (Vec<Site>, usize) {
    let known: Vec<_> = found.functions.iter().map(|function| ours.function(&function.name)).collect();
    let addresses =
        || found.functions.iter().zip(&known).filter(|(_, ours)| ours.is_some()).map(|(f, _)| f.address);
    let (Some(first), Some(last)) = (addresses().min(), addresses().max()) else { return (Vec::new(), 0) };
    let (mut sites, mut left) = (Vec::<Site>::new(), 0);
    for (function, ours_of_it) in found.functions.iter().zip(known) {
        let target = match ours_of_it {
            Some(function) => Target { function, argument: None },
            // A function between the runtime's functions belongs to a later runtime and is missing in ours;
            // elsewhere it is the program's own.
            None if (first..last).contains(&function.address) => {
                match (ours.function(REFUSE), CString::new(function.name.as_str())) {
                    (Some(refuse), Ok(name)) => {
                        // The name must stay valid as long as the process lives.
                        let name = name.into_raw().expose_provenance() as u64;
                        Target { function: refuse, argument: Some(name) }
                    }
                    _ => continue,
                }
            }
            None => continue,
        };
        let address = (object.base as u64).wrapping_add(function.address);
        match room(processor, object, file, found, function) {
            // For two names of one function, the first counts.
            Some(_) if sites.last().is_some_and(|before| before.address == address) => {}
            Some(room) => sites.push(Site { address, room, target }),
            None => left += 1,
        }
    }
    (sites, left)
}

/// The bytes available for a jump, if memory holds the bytes of the file.
fn room(
    processor: Processor,
    object: &Object,
    file: &File,
    found: &elf::Runtime,
    function: &Function,
) -> Option<u64> {
    let own = function.size.min(BYTES);
    let behind = if own < BYTES { found.behind(function).min(PADDING) } else { 0 };
    let mut bytes = vec![0; (own + behind) as usize];
    file.read_exact_at(&mut bytes, found.offset(function.address)?).ok()?;
    let padding = bytes[own as usize..].iter().take_while(|byte| processor.is_padding(**byte)).count();
    bytes.truncate(own as usize + padding);
    let address = object.base.wrapping_add(function.address as usize);
    (own > 0 && object.holds(address, &bytes)).then_some(bytes.len() as u64)
}
