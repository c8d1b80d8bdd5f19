//! Writes libraries that only declare symbol versions, and depend on the library with the symbols.
//!
//! Programs that were linked with NVIDIA's runtime require versioned symbols (`cudaMalloc@libcudart.so.13`).
//! The loader checks that the library of that name declares the version, and accepts the symbol from any
//! library without versions. Ours has none, because it implements several versions of the runtime. The
//! generated library declares the version and has no symbols.
//!
//! Invariant: the file is a minimal shared library: no sections, no code.

/// Addresses are offsets into the file, which is one loaded segment.
const HEADER: u64 = 64;
const SEGMENT: u64 = 56;
const SEGMENTS: u64 = 3;
/// The symbol table contains only the null symbol.
const SYMBOL: u64 = 24;

/// `DT_...`
mod tag {
    pub(super) const NEEDED: u64 = 1;
    pub(super) const HASH: u64 = 4;
    pub(super) const STRTAB: u64 = 5;
    pub(super) const SYMTAB: u64 = 6;
    pub(super) const STRSZ: u64 = 10;
    pub(super) const SYMENT: u64 = 11;
    pub(super) const SONAME: u64 = 14;
    pub(super) const VERSYM: u64 = 0x6fff_fff0;
    pub(super) const VERDEF: u64 = 0x6fff_fffc;
    pub(super) const VERDEFNUM: u64 = 0x6fff_fffd;
}

/// The ELF number of this processor, if it is supported.
fn machine() -> Option<u16> {
    if cfg!(target_arch = "x86_64") {
        Some(62)
    } else if cfg!(all(target_arch = "aarch64", target_endian = "little")) {
        Some(183)
    } else {
        None
    }
}

/// A library named `name` that declares the symbol version of its name and depends on the library at `path`.
/// `None` on unsupported processors.
pub(crate) fn library(name: &str, path: &[u8]) -> Option<Vec<u8>> {
    let machine = machine()?;
    // Strings: at 0 the empty one.
    let texts = [b"\0", name.as_bytes(), b"\0", path, b"\0"].concat();
    let (name_at, path_at) = (1, 2 + name.len() as u64);
    let segments = HEADER;
    let hash = segments + SEGMENTS * SEGMENT;
    let symbols = hash + 16;
    let versions = symbols + SYMBOL;
    let definitions = versions + 8;
    let dynamic = definitions + 2 * 28;
    let tags = [
        (tag::SONAME, name_at),
        (tag::NEEDED, path_at),
        (tag::HASH, hash),
        (tag::STRTAB, dynamic + 11 * 16),
        (tag::STRSZ, texts.len() as u64),
        (tag::SYMTAB, symbols),
        (tag::SYMENT, SYMBOL),
        (tag::VERSYM, versions),
        (tag::VERDEF, definitions),
        (tag::VERDEFNUM, 2),
        (0, 0),
    ];
    let strings = dynamic + 16 * tags.len() as u64;
    let end = strings + texts.len() as u64;
    let mut file = header(machine);
    segment(&mut file, 1, 0, end, 0x1000);
    segment(&mut file, 2, dynamic, strings - dynamic, 8);
    // The stack is not executable.
    segment(&mut file, 0x6474_e551, 0, 0, 16);
    // A hash table with one bucket and one symbol, both empty.
    words(&mut file, &[1, 1, 0, 0]);
    file.resize(definitions as usize, 0);
    let hash = hash_of(name);
    words(&mut file, &[1 | 1 << 16, 1 | 1 << 16, hash, 20, 28, name_at as u32, 0]);
    words(&mut file, &[1, 2 | 1 << 16, hash, 20, 0, name_at as u32, 0]);
    file.resize(dynamic as usize, 0);
    for (tag, value) in tags {
        longs(&mut file, &[tag, value]);
    }
    file.extend(texts);
    Some(file)
}

/// The head of a shared library.
fn header(machine: u16) -> Vec<u8> {
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    words(&mut file, &[3 | u32::from(machine) << 16, 1]);
    longs(&mut file, &[0, HEADER, 0]);
    words(&mut file, &[0, HEADER as u32 | (SEGMENT as u32) << 16, SEGMENTS as u32, 0]);
    file
}

/// A segment: readable and writable, because the loader may write to it.
fn segment(file: &mut Vec<u8>, kind: u32, start: u64, bytes: u64, align: u64) {
    words(file, &[kind, 4 | 2]);
    longs(file, &[start, start, start, bytes, bytes, align]);
}

fn words(file: &mut Vec<u8>, words: &[u32]) {
    file.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn longs(file: &mut Vec<u8>, longs: &[u64]) {
    file.extend(longs.iter().flat_map(|long| long.to_le_bytes()));
}

/// The hash of a name, as the System V ABI defines it.
fn hash_of(name: &str) -> u32 {
    name.bytes().fold(0u32, |hash, byte| {
        let hash = (hash << 4).wrapping_add(u32::from(byte));
        let high = hash & 0xf000_0000;
        (hash ^ high >> 24) & !high
    })
}

#[cfg(test)]
mod tests {
    use super::hash_of;

    #[test]
    fn names_hash_as_the_abi_says() {
        // Values that `readelf -V` shows of the C library.
        assert_eq!(hash_of("GLIBC_2.2.5"), 0x0969_1a75);
        assert_eq!(hash_of("GLIBC_2.14"), 0x0696_9194);
    }
}
