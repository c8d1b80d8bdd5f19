//! Payloads of a container, unpacked.
//!
//! Invariant: no more memory is taken than the header says, and never more than [`limit`] allows, whatever the bytes
//! say, so that work and memory are bounded by the size of the container. What it does not do: dictionaries, which containers do not use.

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
    // A byte of LZ4 stands for at most 255: a larger claim is a lie, and costs no memory.
    if unpacked / 256 > payload.len() {
        return Err(Malformed("an LZ4 payload is too short for its size"));
    }
    let bytes = lz4_flex::block::decompress(payload, unpacked);
    bytes.map_err(|_| Malformed("an LZ4 payload is damaged"))
}

fn zstd(payload: &[u8], unpacked: usize) -> Result<Vec<u8>, Malformed> {
    let damaged = Malformed("a zstd payload is damaged");
    // A frame sets its window aside before its first byte: no more than the text may have anyhow.
    let window = (unpacked as u64).max(UNPACKED_FREE);
    let decoder = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(payload, window);
    let decoder = decoder.map_err(|_| damaged)?;
    let mut bytes = Vec::new();
    decoder.take(unpacked as u64).read_to_end(&mut bytes).map_err(|_| damaged)?;
    Ok(bytes)
}
