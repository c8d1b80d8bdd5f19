//! Device code that a program passes to the driver: PTX text, a container of several kinds of code, or
//! machine code.
//!
//! [`Image`] is a copy of the bytes at the caller's pointer, so nothing later depends on the caller's memory.
//! [`Image::texts`] is the PTX in it that is best for a device.
//!
//! Invariant: any bytes give a result or a [`Refusal`]; nothing panics. What it does not do: machine code is
//! neither read nor run.

#[cfg(test)]
mod tests;

use crate::driver::driver;
use crate::ffi::{HostBytes, Pointer};
use crate::log;
use crate::status::Status;
use ptxvm::container::{self, Bundle, Entry, Kind, Malformed, PART_HEADER, PART_MAGIC};

/// First bytes of an ELF file.
const ELF_MAGIC: u32 = u32::from_le_bytes(*b"\x7fELF");

/// First word of a [`Wrapper`].
const WRAPPER_MAGIC: u32 = 0x466243B1;

/// The structure of 24 bytes that compilers put beside a container and register.
#[derive(Clone, Copy, Debug)]
struct Wrapper {
    /// 1: one container; 2: `list` is an array, terminated by null, of the containers that were linked (`nvcc
    /// -rdc=true`).
    version: u32,
    /// Address of a container, or 0.
    data: u64,
    /// Address of the list, or 0. In version 1 it is a name.
    list: u64,
}

impl Wrapper {
    /// Parses the bytes after the magic number.
    fn read(bytes: &[u8; 24]) -> Self {
        let word = |at: usize| u64::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        Self { version: (word(0) >> 32) as u32, data: word(8), list: word(16) }
    }
}

/// Most bytes of the containers of an image, and most containers. Chosen: more than a program and its
/// libraries have.
const BYTES_MAX: usize = 4 << 30;
const PARTS_MAX: usize = 1 << 16;

/// The reason why an image has no usable PTX.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A null pointer, or a container with inconsistent headers: `CUDA_ERROR_INVALID_IMAGE`.
    Invalid(String),
    /// Only machine code, or only PTX for later devices: `CUDA_ERROR_NO_BINARY_FOR_GPU`. The text advises the
    /// user.
    NoBinary(String),
}

impl From<Malformed> for Refusal {
    fn from(Malformed(why): Malformed) -> Self {
        Refusal::Invalid(format!("the container of device code is damaged: {why}"))
    }
}

/// A copy of the caller's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Image {
    /// PTX text.
    Text(String),
    /// Containers.
    Containers(Vec<Vec<u8>>),
    /// Machine code (an ELF file).
    Elf,
}

/// PTX text with a name for diagnostics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// The name that the container gives, or `""`.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// The PTX texts of an image for the driver's devices, each with a name. A refusal is printed to standard
/// error, in one line.
///
/// # Errors
/// `CUDA_ERROR_INVALID_IMAGE` for a null pointer and for a damaged container, `CUDA_ERROR_NO_BINARY_FOR_GPU`
/// if it has no suitable PTX.
pub(crate) fn texts(image: Pointer) -> Result<Vec<(String, String)>, Status> {
    texts_for(image, driver()?.settings.capability as u32)
}

/// Like [`texts`], for a device of a compute capability (80 is 8.0).
///
/// # Errors
/// As [`texts`].
pub(crate) fn texts_for(image: Pointer, sm: u32) -> Result<Vec<(String, String)>, Status> {
    named(Image::capture(image).and_then(|image| image.texts(sm)))
}

/// Like [`texts_for`], for bytes of known length: a file, or an input of the linker. Addresses in them are
/// not followed.
///
/// # Errors
/// As [`texts`].
pub(crate) fn texts_of_bytes(bytes: &[u8], sm: u32) -> Result<Vec<(String, String)>, Status> {
    named(Image::of_bytes(bytes).and_then(|image| image.texts(sm)))
}

fn named(texts: Result<Vec<Text>, Refusal>) -> Result<Vec<(String, String)>, Status> {
    let named = |Text { name, text }: Text| match Bundle::read(&text) {
        // The result of the stand-in for the device linker, in a container.
        Some(bundle) => bundle.texts,
        None => vec![(if name.is_empty() { "<module>".to_owned() } else { name }, text)],
    };
    Ok(texts.map_err(Refusal::said)?.into_iter().flat_map(named).collect())
}

/// The bytes of a file with device code. It must be a regular file of at most 4 GiB.
pub(crate) fn read_file(path: &str) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    // Reading a pipe could block forever.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path)?.take(BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if read > BYTES_MAX { Err(std::io::Error::other("larger than 4 GiB")) } else { Ok(bytes) }
}

/// Like [`read_file`], for a function of the driver API.
///
/// # Errors
/// `CUDA_ERROR_FILE_NOT_FOUND`.
pub(crate) fn file(path: &str) -> Result<Vec<u8>, Status> {
    read_file(path).map_err(|error| {
        log::note(&format!("cannot read `{path}`: {error}"));
        Status::FileNotFound
    })
}

impl Refusal {
    /// Prints the refusal, and returns its status.
    pub(crate) fn said(self) -> Status {
        let (line, status) = match self {
            Refusal::Invalid(line) => (line, Status::InvalidImage),
            Refusal::NoBinary(line) => (line, Status::NoBinaryForGpu),
        };
        log::say(&format!("ptxvm: {line}"));
        status
    }
}

impl Image {
    /// Copies the bytes at the pointer: a [`Wrapper`], a container, an ELF file, or a null-terminated text.
    pub(crate) fn capture(image: Pointer) -> Result<Self, Refusal> {
        // One byte at a time, because a text may be shorter than four bytes.
        let mut magic = [0; 4];
        for (index, byte) in magic.iter_mut().enumerate() {
            *byte = image.offset(index).values::<u8>().get().map_err(|_| null())?;
            if *byte == 0 {
                break;
            }
        }
        match u32::from_le_bytes(magic) {
            WRAPPER_MAGIC => Self::capture_wrapper(image),
            PART_MAGIC => Ok(Image::Containers(vec![copy_part(image, BYTES_MAX)?])),
            ELF_MAGIC => Ok(Image::Elf),
            _ => Ok(Image::Text(image.text().get().map_err(|_| endless())?)),
        }
    }

    fn capture_wrapper(image: Pointer) -> Result<Self, Refusal> {
        let wrapper = Wrapper::read(&copy(image)?);
        let mut parts = Vec::new();
        let mut room = BYTES_MAX;
        let mut add = |address: u64| -> Result<(), Refusal> {
            let part = copy_part(Pointer::from_address(address), room)?;
            room -= part.len();
            if parts.len() == PARTS_MAX {
                return Err(
                    Malformed("expected a list of at most 65536 containers, found a longer one").into()
                );
            }
            parts.push(part);
            Ok(())
        };
        if wrapper.data != 0 {
            add(wrapper.data)?;
        }
        if wrapper.version == 2 && wrapper.list != 0 {
            for member in (wrapper.list..).step_by(8) {
                match u64::from_le_bytes(copy(Pointer::from_address(member))?) {
                    0 => break,
                    part => add(part)?,
                }
            }
        }
        if wrapper.data != 0 && parts.len() > 1 {
            leave_out_linked(&mut parts);
        }
        if parts.is_empty() {
            return Err(Refusal::Invalid("the registered container of device code is empty".to_owned()));
        }
        Ok(Image::Containers(parts))
    }

    /// Like [`Image::capture`], for bytes of known length: a file, or an input of the linker.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Result<Self, Refusal> {
        match bytes.first_chunk().map(|magic| u32::from_le_bytes(*magic)) {
            Some(PART_MAGIC) => Ok(Image::Containers(vec![bytes.to_vec()])),
            Some(ELF_MAGIC) => Ok(Image::Elf),
            // It contains addresses of the program that registered it.
            Some(WRAPPER_MAGIC) => {
                Err(Malformed("expected a container, found the structure that registers one").into())
            }
            Some(_) | None => {
                let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
                Ok(Image::Text(String::from_utf8_lossy(&bytes[..end]).into_owned()))
            }
        }
    }

    /// The best PTX for a device of architecture `sm` (such as 80). An image of linked containers has one
    /// text for each.
    pub(crate) fn texts(&self, sm: u32) -> Result<Vec<Text>, Refusal> {
        match self {
            Image::Text(text) => Ok(vec![Text { name: String::new(), text: text.clone() }]),
            Image::Elf => Err(machine_code(sm)),
            Image::Containers(parts) => all_best(parts, sm),
        }
    }
}

/// Of linked containers, keeps those that together contain the program once as PTX. A device linker links
/// machine code, so its result, the first container, contains only that, and the others contain the texts. If
/// intermediate code was linked, only the first container has a text.
fn leave_out_linked(parts: &mut Vec<Vec<u8>>) {
    let has_text = |part: &Vec<u8>| {
        // A damaged container is kept, so that its error is reported.
        container::entries(part).map_or(true, |entries| entries.iter().any(|entry| entry.kind == Kind::Ptx))
    };
    let Some((linked, members)) = parts.split_first() else { return };
    if !has_text(linked) {
        parts.remove(0);
    } else if !members.iter().any(has_text) {
        parts.truncate(1);
    }
}

/// The best text of each container. Containers with PTX for later devices only are left out if others remain:
/// nvcc links its library for launches by kernels into every program, with PTX for its latest device. If the
/// program needs what is left out, the linker names the missing symbols.
fn all_best(parts: &[Vec<u8>], sm: u32) -> Result<Vec<Text>, Refusal> {
    let (mut texts, mut later) = (Vec::new(), None);
    for part in parts {
        match best(part, sm) {
            Ok(text) => texts.push(text),
            Err(Refusal::NoBinary(why)) if parts.len() > 1 && is_for_later(part, sm) => later = Some(why),
            Err(refusal) => return Err(refusal),
        }
    }
    match later {
        Some(why) if texts.is_empty() => Err(Refusal::NoBinary(why)),
        Some(_) => {
            log::refused("a part of a linked program with PTX for later devices only");
            Ok(texts)
        }
        None => Ok(texts),
    }
}

/// Whether a container has PTX, but only for later devices.
fn is_for_later(container: &[u8], sm: u32) -> bool {
    container::entries(container).is_ok_and(|entries| {
        let mut texts = entries.iter().filter(|entry| entry.kind == Kind::Ptx).peekable();
        texts.peek().is_some() && texts.all(|entry| entry.sm > sm)
    })
}

/// The text of the entry for the latest architecture that the device can run.
fn best(container: &[u8], sm: u32) -> Result<Text, Refusal> {
    let entries = container::entries(container)?;
    let texts = || entries.iter().filter(|entry| entry.kind == Kind::Ptx);
    // Of equal architectures, the first entry.
    match texts().filter(|entry| entry.suits(sm)).reduce(latest) {
        Some(entry) => Ok(Text { name: entry.name.clone(), text: entry.text()? }),
        None => match texts().map(|entry| entry.sm).min() {
            Some(later) => Err(Refusal::NoBinary(format!(
                "the program contains PTX for sm_{later} and later, but this device is sm_{sm}: set PTXVM_SM={later}, or compile for an earlier architecture"
            ))),
            None => Err(machine_code(sm)),
        },
    }
}

fn machine_code(sm: u32) -> Refusal {
    Refusal::NoBinary(format!(
        "the program holds machine code (SASS) and no PTX, which is what ptxvm runs: compile with -gencode arch=compute_{sm},code=compute_{sm} (nvcc, clang: --cuda-include-ptx=all), \
         or let the library emit PTX (`ptxvm exec` sets what CuPy, Triton and numba need)"
    ))
}

fn latest<'a, 'b>(best: &'a Entry<'b>, next: &'a Entry<'b>) -> &'a Entry<'b> {
    if next.sm > best.sm { next } else { best }
}

fn null() -> Refusal {
    Refusal::Invalid("the image is a null pointer or an unmapped address".to_owned())
}

fn endless() -> Refusal {
    Refusal::Invalid("the image is a text without a terminating zero".to_owned())
}

/// The first `N` bytes at a pointer.
fn copy<const N: usize>(from: Pointer) -> Result<[u8; N], Refusal> {
    let bytes = from.values::<u8>().all(N).map_err(|_| null())?;
    Ok(std::array::from_fn(|index| bytes[index]))
}

/// A copy of a container, with the size in its header, if all of it is mapped.
fn copy_part(start: Pointer, room: usize) -> Result<Vec<u8>, Refusal> {
    let header: [u8; PART_HEADER] = copy(start)?;
    let size = container::part_bytes(&header).and_then(|size| usize::try_from(size).ok());
    let size = size.ok_or(Malformed("expected the magic number and the size at its start"))?;
    if size > room {
        return Err(Malformed("expected at most 4 GiB, found a larger size").into());
    }
    let bytes = HostBytes::new(start, size).and_then(|bytes| bytes.copied());
    Ok(bytes.map_err(|_| Malformed("the memory at its address is smaller than its size"))?)
}
