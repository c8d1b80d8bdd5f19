//! Reads and writes fatbinaries: the containers of device code that `fatbinary` writes and compilers embed.
//!
//! A container is one or more *parts*, each with a header of 16 bytes and entries. An entry is a header,
//! strings and a payload. A group is an entry whose payload contains the payloads of several entries,
//! compressed together; their sub-headers are in its header. All numbers are little-endian.
//!
//! Invariant: reading never panics and never accesses data outside of the given bytes; an inconsistency is
//! [`Malformed`]. Machine code is recognised but not interpreted.
//!
//! # Source
//! Layout and flags as observed in containers that were packed from our own PTX text, in every compression
//! mode.

mod bundle;
mod unpack;

pub use bundle::Bundle;

use std::ops::Range;
use std::sync::Arc;

/// First word of a part.
pub const PART_MAGIC: u32 = 0xBA55ED50;
/// Bytes of the header of a part.
pub const PART_HEADER: usize = 16;
/// Bytes of the header of an entry before its strings.
const ENTRY_HEADER: usize = 64;
/// The most bytes to which a payload, or all groups together, may be unpacked. Chosen: far more than embedded
/// texts.
const UNPACKED_MAX: u64 = 1 << 30;
/// The largest unpacking ratio of a payload, or of a container with groups, beyond the first
/// [`UNPACKED_FREE`] bytes. Chosen: texts are packed to a tenth or a hundredth.
const RATIO_MAX: u64 = 2048;
/// Bytes to which every payload may be unpacked, at any ratio.
const UNPACKED_FREE: u64 = 16 << 20;
/// The most bytes of a name; longer names are truncated.
const NAME_MAX: u32 = 1024;

/// `kind` of an entry with PTX text.
const KIND_PTX: u16 = 1;
/// `kind` of an entry with machine code (SASS) in an ELF file.
const KIND_ELF: u16 = 2;
/// `kind` of an entry that is a group.
const KIND_GROUP: u16 = 0x100;

const FLAG_64: u64 = 0x1;
const FLAG_LINUX: u64 = 0x10;
const FLAG_LZ4: u64 = 0x2000;
const FLAG_ZSTD: u64 = 0x8000;
/// For an architecture with `a`: runs on exactly that one.
const FLAG_EXACT: u64 = 0x10_0000;
/// For an architecture with `f`: runs on that one and later ones of its generation.
const FLAG_FAMILY: u64 = 0x20_0000;

/// The container contradicts its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(
    /// The inconsistency.
    pub &'static str,
);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// The content of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// PTX text.
    Ptx,
    /// Machine code.
    Elf,
    /// Other content, such as intermediate code of a compiler.
    Other(u16),
}

/// The devices for which an entry is suitable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// That architecture and every later one.
    Later,
    /// That architecture and later ones with the same major number.
    Family,
    /// That architecture only.
    Exact,
}

/// The compression of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// None.
    Raw,
    /// A block of LZ4.
    Lz4,
    /// A frame of zstd.
    Zstd,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its content.
    pub kind: Kind,
    /// The architecture number, such as 75.
    pub sm: u32,
    /// The devices for which it is suitable.
    pub reach: Reach,
    /// The name of its source text, if it has one.
    pub name: String,
    packing: Packing,
    payload: Payload<'a>,
    unpacked: u64,
}

/// Bytes of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Payload<'a> {
    /// Bytes of the container.
    Own(&'a [u8]),
    /// A range of the group's unpacked payload.
    Shared(Arc<[u8]>, Range<usize>),
}

impl Payload<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Payload::Own(bytes) => bytes,
            Payload::Shared(group, part) => group.get(part.clone()).unwrap_or_default(),
        }
    }
}

impl Entry<'_> {
    /// Its text, without padding zeros.
    ///
    /// # Errors
    /// [`Malformed`], if it is compressed and damaged.
    pub fn text(&self) -> Result<String, Malformed> {
        let bytes = unpack::unpack(self.packing, self.payload.bytes(), self.unpacked)?;
        let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
        Ok(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }

    /// Whether a device of that architecture can run it.
    pub fn suits(&self, sm: u32) -> bool {
        match self.reach {
            Reach::Later => self.sm <= sm,
            Reach::Family => self.sm <= sm && self.sm / 10 == sm / 10,
            Reach::Exact => self.sm == sm,
        }
    }
}

/// Bytes of the part that begins with `header`, including the header; `None` if it is no header of a part.
pub fn part_bytes(header: &[u8; PART_HEADER]) -> Option<u64> {
    let fields = Fields(header);
    (fields.u32(0)? == PART_MAGIC).then_some(())?;
    u64::from(fields.u16(6)?).checked_add(fields.u64(8)?)
}

/// The entries of every part of `bytes`.
///
/// # Errors
/// [`Malformed`].
pub fn entries(bytes: &[u8]) -> Result<Vec<Entry<'_>>, Malformed> {
    let mut found = Vec::new();
    // The limit for one payload of that size.
    let mut left = UNPACKED_MAX.min(UNPACKED_FREE + RATIO_MAX.saturating_mul(bytes.len() as u64));
    let mut rest = bytes;
    while let Some(header) = rest.first_chunk::<PART_HEADER>() {
        let Some(size) = part_bytes(header) else {
            // Sections are padded with zeros.
            if rest.iter().all(|b| *b == 0) && rest.len() < bytes.len() {
                break;
            }
            return Err(Malformed("it does not begin with the magic number"));
        };
        let at = usize::from(u16::from_le_bytes([header[6], header[7]]));
        let size = usize::try_from(size).map_err(|_| Malformed("it is larger than memory"))?;
        let part = rest.get(..size).ok_or(Malformed("it ends before its size says"))?;
        let body = part.get(at..).filter(|_| at >= PART_HEADER).ok_or(Malformed("a header is too short"))?;
        part_entries(body, &mut found, &mut left)?;
        rest = &rest[size..];
    }
    if rest.len() == bytes.len() {
        return Err(Malformed("it is shorter than a header"));
    }
    Ok(found)
}

/// `left`: bytes that may still be unpacked.
fn part_entries<'a>(mut rest: &'a [u8], found: &mut Vec<Entry<'a>>, left: &mut u64) -> Result<(), Malformed> {
    while rest.len() >= ENTRY_HEADER {
        let fields = Fields(rest);
        let short = Malformed("an entry ends before its size says");
        let header = fields.u32(4).ok_or(short)? as usize;
        let payload = usize::try_from(fields.u64(8).ok_or(short)?).map_err(|_| short)?;
        let end = header.checked_add(payload).ok_or(short)?;
        if header < ENTRY_HEADER || end > rest.len() {
            return Err(short);
        }
        let (head, payload) = (&rest[..header], &rest[header..end]);
        let read = read_entry(head, payload).ok_or(short)?;
        if Fields(head).u16(0) == Some(KIND_GROUP) {
            group(head, &read, found, left)?;
        } else {
            found.push(read);
        }
        rest = &rest[end..];
    }
    Ok(())
}

/// The entry that a header describes.
fn read_entry<'a>(head: &[u8], payload: &'a [u8]) -> Option<Entry<'a>> {
    let fields = Fields(head);
    let flags = fields.u64(40)?;
    let packing = match (flags & FLAG_LZ4 != 0, flags & FLAG_ZSTD != 0) {
        (false, false) => Packing::Raw,
        (true, _) => Packing::Lz4,
        (false, true) => Packing::Zstd,
    };
    // The payload is padded; the header has the length of the compressed data.
    let packed = fields.u32(16)? as usize;
    let payload = if packing == Packing::Raw { payload } else { payload.get(..packed)? };
    Some(Entry {
        kind: match fields.u16(0)? {
            KIND_PTX => Kind::Ptx,
            KIND_ELF => Kind::Elf,
            other => Kind::Other(other),
        },
        sm: fields.u32(28)?,
        reach: if flags & FLAG_EXACT != 0 {
            Reach::Exact
        } else if flags & FLAG_FAMILY != 0 {
            Reach::Family
        } else {
            Reach::Later
        },
        name: fields.string(fields.u32(32)?, fields.u32(36)?),
        packing,
        payload: Payload::Own(payload),
        unpacked: fields.u64(56)?,
    })
}

/// The entries of a group. Its header ends with the number of sub-headers, their size including these two
/// words, and the sub-headers.
fn group<'a>(
    head: &[u8],
    group: &Entry<'a>,
    found: &mut Vec<Entry<'a>>,
    left: &mut u64,
) -> Result<(), Malformed> {
    let short = Malformed("a group of entries ends before its size says");
    let count = Fields(head).u32(ENTRY_HEADER).ok_or(short)?;
    let mut heads = head.get(ENTRY_HEADER + 8..).ok_or(short)?;
    let large =
        Malformed("groups of entries unpack to more than 1 GiB, or than 16 MiB and 2048 times the container");
    if group.packing != Packing::Raw && group.unpacked > *left {
        return Err(large);
    }
    let payload = unpack::unpack(group.packing, group.payload.bytes(), group.unpacked)?;
    *left = left.checked_sub(payload.len() as u64).ok_or(large)?;
    // Parts may overlap: each is a range, and none is copied.
    let payload: Arc<[u8]> = payload.into();
    for _ in 0..count {
        let fields = Fields(heads);
        // A sub-header has the start of the payload where an entry has the size of its header.
        let start = fields.u32(4).ok_or(short)? as usize;
        let bytes = usize::try_from(fields.u64(8).ok_or(short)?).map_err(|_| short)?;
        let end = start.checked_add(bytes).ok_or(short)?;
        payload.get(start..end).ok_or(short)?;
        let read = read_entry(heads, &[]).ok_or(short)?;
        let payload = Payload::Shared(Arc::clone(&payload), start..end);
        found.push(Entry { packing: Packing::Raw, payload, ..read });
        heads = heads.get(sub_header_bytes(fields).ok_or(short)?..).ok_or(short)?;
    }
    Ok(())
}

/// A sub-header ends with the options of the assembler, terminated and padded to 8 bytes.
fn sub_header_bytes(fields: Fields<'_>) -> Option<usize> {
    let options = fields.u32(20)? as usize;
    let start = fields.u32(options)? as usize;
    let end = start.checked_add(fields.u32(options.checked_add(4)?)? as usize)?.checked_add(1)?;
    Some(end.max(ENTRY_HEADER).next_multiple_of(8))
}

/// Little-endian numbers at offsets.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn array<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    fn u16(self, at: usize) -> Option<u16> {
        self.array(at).map(u16::from_le_bytes)
    }

    fn u32(self, at: usize) -> Option<u32> {
        self.array(at).map(u32::from_le_bytes)
    }

    fn u64(self, at: usize) -> Option<u64> {
        self.array(at).map(u64::from_le_bytes)
    }

    fn string(self, at: u32, bytes: u32) -> String {
        let end = (at as usize).saturating_add(bytes.min(NAME_MAX) as usize);
        let bytes = self.0.get(at as usize..end).unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    }
}

/// A container with one entry: uncompressed PTX text for a device of that architecture.
pub fn write(name: &str, sm: u32, text: &str) -> Vec<u8> {
    write_packed(name, sm, Packing::Raw, text.as_bytes(), 0)
}

/// A container with one entry whose payload is already compressed.
pub fn write_packed(name: &str, sm: u32, packing: Packing, payload: &[u8], unpacked: u64) -> Vec<u8> {
    // A text ends with a zero byte.
    let padded = (payload.len() + 1).next_multiple_of(8);
    let name_bytes = (name.len() + 1).next_multiple_of(8);
    let header = ENTRY_HEADER + name_bytes + 16;
    let (packed, flag) = match packing {
        Packing::Raw => (0, 0),
        Packing::Lz4 => (payload.len(), FLAG_LZ4),
        Packing::Zstd => (payload.len(), FLAG_ZSTD),
    };
    let mut out = Vec::with_capacity(PART_HEADER + header + padded);
    out.extend(PART_MAGIC.to_le_bytes());
    out.extend(1u16.to_le_bytes());
    out.extend((PART_HEADER as u16).to_le_bytes());
    out.extend(((header + padded) as u64).to_le_bytes());
    out.extend(KIND_PTX.to_le_bytes());
    out.extend(0x101u16.to_le_bytes());
    out.extend((header as u32).to_le_bytes());
    out.extend((padded as u64).to_le_bytes());
    out.extend((packed as u32).to_le_bytes());
    out.extend(((ENTRY_HEADER + name_bytes) as u32).to_le_bytes());
    out.extend([0; 4]);
    out.extend(sm.to_le_bytes());
    out.extend((ENTRY_HEADER as u32).to_le_bytes());
    out.extend((name.len() as u32).to_le_bytes());
    out.extend((FLAG_64 | FLAG_LINUX | flag).to_le_bytes());
    out.extend([0; 8]);
    out.extend(unpacked.to_le_bytes());
    out.extend(name.as_bytes());
    out.resize(PART_HEADER + ENTRY_HEADER + name_bytes, 0);
    out.extend(((header - 8) as u32).to_le_bytes());
    out.resize(PART_HEADER + header, 0);
    out.extend(payload);
    out.resize(PART_HEADER + header + padded, 0);
    out
}

/// The most bytes to which a payload of this size may be unpacked.
pub(super) fn limit(payload: usize, unpacked: u64) -> Result<usize, Malformed> {
    if unpacked > UNPACKED_MAX {
        return Err(Malformed("an entry says that it unpacks to more than 1 GiB"));
    }
    if unpacked > UNPACKED_FREE && unpacked / RATIO_MAX > payload as u64 {
        return Err(Malformed("an entry says that it unpacks to more than 16 MiB and 2048 times its size"));
    }
    Ok(unpacked as usize)
}
