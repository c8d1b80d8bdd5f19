//! The linker: several texts become one image.
//!
//! The result of `cuLinkComplete` is a text ([`Bundle`]). Programs may therefore copy or store the image, and
//! load it after the link is destroyed.
//!
//! Invariant: an image is returned only if its texts link.

use crate::context::{Context, current};
use crate::driver::driver;
use crate::entry::entries;
use crate::ffi::{HostBytes, In, Out, Pointer, Text};
use crate::handles::Handle;
use crate::image;
use crate::jit_options::JitOptions;
use crate::log;
use crate::module::load_texts;
use crate::status::{Answer, Status};
use ptxvm::container::Bundle;
use std::ffi::{CString, c_int, c_uint};
use std::sync::{Arc, Mutex, PoisonError};

/// The first bytes of archives of objects.
pub(crate) const ARCHIVE: &[u8] = b"!<arch>\n";

/// Texts that are to be linked.
pub(crate) struct Link {
    /// The context that it belongs to.
    pub(crate) context: Arc<Context>,
    texts: Mutex<Vec<(String, String)>>,
    options: Mutex<JitOptions>,
    /// The result of `cuLinkComplete`.
    image: Mutex<Option<CString>>,
}

/// The contents of an image in bytes of known length.
pub(crate) fn linked_bytes(bytes: &[u8]) -> Option<Bundle> {
    if !Bundle::PREFIXES.iter().any(|prefix| bytes.starts_with(prefix.as_bytes())) {
        return None;
    }
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    Bundle::read(std::str::from_utf8(&bytes[..end]).ok()?)
}

/// The contents of an image from `cuLinkComplete`, which programs may have copied.
pub(crate) fn linked(image: Pointer) -> Option<Bundle> {
    if !Bundle::PREFIXES.iter().any(|prefix| image.begins_with(prefix.as_bytes())) {
        return None;
    }
    Bundle::read(&image.text().get().ok()?)
}

fn add(state: Handle, kind: c_int, name: String, bytes: Vec<u8>, options: Option<JitOptions>) -> Answer {
    let driver = driver()?;
    let link = driver.links.get(state)?;
    if let Some(mut options) = options {
        let mut known = link.options.lock().unwrap_or_else(PoisonError::into_inner);
        options.limit_registers(known.max_registers);
        *known = options;
    }
    if bytes.starts_with(ARCHIVE) {
        // A library of machine code (`libcudadevrt.a`). ptxvm's own device library has the functions that
        // programs call in it.
        log::note(&format!("ignored `{name}`, an archive of machine code"));
        return Ok(());
    }
    let mut texts = match kind {
        // Cubin, PTX, fatbin, object, library: the content decides.
        0..=4 => image::texts_of_bytes(&bytes, driver.settings.capability as u32)?,
        5 => return Err(Status::NotSupported),
        _ => return Err(Status::InvalidValue),
    };
    if let [(only, _)] = &mut texts[..] {
        only.clone_from(&name);
    }
    link.texts.lock().unwrap_or_else(PoisonError::into_inner).extend(texts);
    Ok(())
}

entries! { ENTRIES;
    /// Begins a link.
    fn cuLinkCreate_v2(count: c_uint, options: In<c_int>, values: Pointer, state: Out<Handle>) {
        let (driver, context) = current()?;
        state.check()?;
        let mut options = JitOptions::read(count, options, values)?;
        options.begin();
        let (texts, image) = (Mutex::default(), Mutex::default());
        state.set(driver.links.insert(Link { context, texts, options: Mutex::new(options), image }))
    }

    /// Adds an input to a link.
    fn cuLinkAddData_v2(
        state: Handle, kind: c_int, data: Pointer, bytes: usize, name: Text,
        count: c_uint, options: In<c_int>, values: Pointer,
    ) {
        if data.is_null() || bytes == 0 {
            return Err(Status::InvalidValue);
        }
        let name = name.get().unwrap_or_else(|_| "<linked>".to_owned());
        let options = if count == 0 { None } else { Some(JitOptions::read(count, options, values)?) };
        let bytes = HostBytes::new(data, bytes)?.copied()?;
        add(state, kind, name, bytes, options)
    }

    /// Adds a file to a link.
    fn cuLinkAddFile_v2(state: Handle, kind: c_int, path: Text, count: c_uint, options: In<c_int>, values: Pointer) {
        let name = path.get()?;
        let options = if count == 0 { None } else { Some(JitOptions::read(count, options, values)?) };
        let bytes = image::file(&name)?;
        add(state, kind, name, bytes, options)
    }

    /// Links. The image can be loaded, and lives as long as the link.
    fn cuLinkComplete(state: Handle, image: Out<Pointer>, bytes: Out<usize>) {
        let driver = driver()?;
        image.check()?;
        let link = driver.links.get(state)?;
        let texts = link.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let mut options = *link.options.lock().unwrap_or_else(PoisonError::into_inner);
        if texts.is_empty() {
            return Err(Status::InvalidValue);
        }
        // Errors of linking are reported now, as a linker does.
        drop(load_texts(&driver.vm, &texts, &mut options)?);
        let whole = Bundle::write(&texts, options.max_registers);
        let mut kept = link.image.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = kept.insert(CString::new(whole).map_err(|_| Status::InvalidSource)?);
        bytes.set_optional(kept.as_bytes_with_nul().len())?;
        image.set(Pointer::of_bytes(kept.as_bytes_with_nul()))
    }

    /// Ends a link.
    fn cuLinkDestroy(state: Handle) {
        driver()?.links.remove(state).map(|_| ())
    }
}
