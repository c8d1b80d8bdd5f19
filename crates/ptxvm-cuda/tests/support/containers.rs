//! Device code as programs pass it: any bytes give texts or an error, and the memory used is bounded by their
//! number.

use crate::counted;
use crate::support::Api;
use ptxvm::container::{self, PART_HEADER, PART_MAGIC};

/// Largest texts that are also loaded: larger ones take more time than they find errors, and have fuzz
/// targets of their own.
const LOADED: usize = 16 << 10;

/// The most bytes that reading a container of `bytes` bytes may take. One payload, and all groups together,
/// may be unpacked to 16 MiB plus 2048 times their size; a payload, its copy, its text with replacement
/// characters, and buffers that grow by doubling are each a multiple of that.
fn most(bytes: usize) -> usize {
    8 * ((16 << 20) + 2048 * bytes)
}

/// Reads a container and every text in it.
pub(crate) fn reads(bytes: &[u8]) {
    let (texts, peak) = counted::peak(|| {
        let entries = container::entries(bytes).unwrap_or_default();
        let mut texts = 0;
        for entry in &entries {
            let _suits = entry.suits(80);
            texts += entry.text().map_or(0, |text| text.len());
        }
        texts
    });
    assert!(peak <= most(bytes.len()), "{} bytes with {texts} bytes of text took {peak} bytes", bytes.len());
}

/// Passes the bytes to the loader and to the linker of the driver API, in the current context.
pub(crate) fn loads(api: Api, bytes: &[u8]) {
    let status = |name: &str, status: i32| {
        assert!((0..999).contains(&status), "{name} answers {status}");
        status == 0
    };
    let large = container::entries(bytes)
        .is_ok_and(|entries| entries.iter().any(|entry| entry.text().is_ok_and(|text| text.len() > LOADED)));
    if large || bytes.len() > LOADED {
        return;
    }
    // An image has no length: a text ends with a zero, a container with the size in its header.
    let mut image = bytes.to_vec();
    image.extend([0; 8]);
    let inside = match image.first_chunk::<PART_HEADER>() {
        Some(header) if header.starts_with(&PART_MAGIC.to_le_bytes()) => {
            container::part_bytes(header).is_some_and(|size| size <= image.len() as u64)
        }
        // The structure that registers a container contains addresses, which must be valid.
        _ => !image.starts_with(&0x4662_43b1_u32.to_le_bytes()),
    };
    let mut module = 0usize;
    if inside && status("cuModuleLoadData", api.call("cuModuleLoadData", (&raw mut module, image.as_ptr()))) {
        api.ok("cuModuleUnload", (module,));
    }
    if bytes.is_empty() {
        return;
    }
    let link = api.make("cuLinkCreate_v2", |out: *mut usize| (0u32, 0usize, 0usize, out));
    // Kind fatbin; the content decides.
    let arguments = (link, 2i32, bytes.as_ptr(), bytes.len(), c"linked".as_ptr(), 0u32, 0usize, 0usize);
    if status("cuLinkAddData_v2", api.call("cuLinkAddData_v2", arguments)) {
        let (mut linked, mut size) = (0usize, 0usize);
        let completed = api.call("cuLinkComplete", (link, &raw mut linked, &raw mut size));
        if status("cuLinkComplete", completed) {
            let mut module = 0usize;
            if status("cuModuleLoadData", api.call("cuModuleLoadData", (&raw mut module, linked))) {
                api.ok("cuModuleUnload", (module,));
            }
        }
    }
    api.ok("cuLinkDestroy", (link,));
}
