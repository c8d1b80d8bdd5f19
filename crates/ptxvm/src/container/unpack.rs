//! Decompresses payloads of a container.
//!
//! Invariant: the memory used is at most what the header states and [`limit`] allows, for any input, so work
//! and memory are bounded by the size of the container. Dictionaries are not supported, because containers do
//! not use them.

use super::{Malformed, Packing, UNPACKED_FREE, limit};
use std::borrow::Cow;
use std::io::Read;

/// The bytes of a payload that unpacks to `unpacked` bytes.
pub(super) fn unpack(packing: Packing, payload: &[u8], unpacked: u64) -> Result<Cow<'_, [u8]>, Malformed> {
    match packing {
        Packing::Raw => Ok(Cow::Borrowed(payload)),
        Packing::Lz4 => lz4(payload, limit(payload.len(), unpacked)?).map(Cow::Owned),
        Packing::Zstd => zstd(payload, limit(payload.len(), unpacked)?).map(Cow::Owned),
    }
}

fn lz4(payload: &[u8], unpacked: usize) -> Result<Vec<u8>, Malformed> {
    // A byte of LZ4 expands to at most 255, so a larger size is refused before memory is allocated.
    if unpacked / 256 > payload.len() {
        return Err(Malformed("an LZ4 payload is too short for its size"));
    }
    let bytes = lz4_flex::block::decompress(payload, unpacked);
    bytes.map_err(|_| Malformed("an LZ4 payload is damaged"))
}

fn zstd(payload: &[u8], unpacked: usize) -> Result<Vec<u8>, Malformed> {
    let damaged = Malformed("a zstd payload is damaged");
    // A frame allocates its window before its first byte, so the window is limited to the allowed size.
    let window = (unpacked as u64).max(UNPACKED_FREE);
    let decoder = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(payload, window);
    let decoder = decoder.map_err(|_| damaged)?;
    let mut bytes = Vec::new();
    decoder.take(unpacked as u64).read_to_end(&mut bytes).map_err(|_| damaged)?;
    Ok(bytes)
}
