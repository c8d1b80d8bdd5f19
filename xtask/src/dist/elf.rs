//! Strips symbols and debugging information from programs and libraries, for packages.
//!
//! `strip` damages rustc's LLVM, whose sections a post-link optimizer has rearranged. Here every loaded byte
//! keeps its place: the bytes after the last loaded one are removed, and the section table is rewritten with
//! the loaded sections only.
//!
//! Invariant: any input gives a result or an error; nothing is read beyond its end. Source: the ELF-64 object
//! file format (System V ABI), little-endian.

/// Bytes of the header of a file.
const FILE_HEADER: usize = 64;
/// Bytes of the header of a segment.
const SEGMENT: usize = 56;
/// Bytes of the header of a section.
const SECTION: usize = 64;
/// `SHF_ALLOC`: the section is in memory while the program runs.
const ALLOC: u64 = 2;
/// `SHT_NOBITS`: the section has no bytes in the file.
const NOBITS: u32 = 8;
/// `SHT_STRTAB`
const STRTAB: u32 = 3;

/// Little-endian fields of a file.
#[derive(Clone, Copy)]
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn bytes<const N: usize>(self, at: usize) -> Option<[u8; N]> {
        self.0.get(at..)?.first_chunk().copied()
    }

    fn u16(self, at: usize) -> Option<usize> {
        Some(usize::from(u16::from_le_bytes(self.bytes(at)?)))
    }

    fn u32(self, at: usize) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(at)?))
    }

    fn u64(self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(at)?))
    }

    fn place(self, at: usize) -> Option<usize> {
        usize::try_from(self.u64(at)?).ok()
    }

    fn table(self, start: usize, count: usize, size: usize) -> Option<impl Iterator<Item = Fields<'a>>> {
        let bytes = self.0.get(start..)?.get(..count.checked_mul(size)?)?;
        Some(bytes.chunks_exact(size).map(Fields))
    }

    fn sections(self) -> Option<Vec<Fields<'a>>> {
        Some(self.table(self.place(40)?, self.u16(60)?, SECTION)?.collect())
    }
}

/// The file without parts that are not loaded.
pub(crate) fn strip(file: &[u8]) -> Result<Vec<u8>, String> {
    let fields = Fields(file);
    if file.get(..6) != Some(b"\x7fELF\x02\x01") {
        return Err("not a 64-bit little-endian ELF file".to_owned());
    }
    stripped(fields).ok_or_else(|| "an ELF file whose headers point outside of it".to_owned())
}

fn stripped(file: Fields<'_>) -> Option<Vec<u8>> {
    let mut end = FILE_HEADER;
    for segment in file.table(file.place(32)?, file.u16(56)?, SEGMENT)? {
        end = end.max(segment.place(8)?.checked_add(segment.place(32)?)?);
    }
    let mut out = file.0.get(..end)?.to_vec();
    let sections = file.sections()?;
    let names = *sections.get(file.u16(62)?)?;
    let name_of = |section: &Fields<'_>| {
        let start = names.place(24)?.checked_add(section.u32(0)? as usize)?;
        let bytes = file.0.get(start..)?;
        Some(bytes.get(..bytes.iter().position(|byte| *byte == 0)?)?.to_vec())
    };
    // The first header is empty, and the last is that of the names.
    let mut kept = vec![0];
    for (index, section) in sections.iter().enumerate().skip(1) {
        if section.u64(8)? & ALLOC != 0 {
            kept.push(index);
        }
    }
    let new_index = |old: u32| kept.iter().position(|kept| *kept == old as usize).unwrap_or(0) as u32;
    let mut table = vec![0; SECTION];
    let mut strings = vec![0];
    for index in kept.iter().skip(1) {
        let section = sections.get(*index)?;
        let mut header = section.0.to_vec();
        header.get_mut(..4)?.copy_from_slice(&(strings.len() as u32).to_le_bytes());
        header.get_mut(40..44)?.copy_from_slice(&new_index(section.u32(40)?).to_le_bytes());
        strings.extend(name_of(section)?);
        strings.push(0);
        table.extend(header);
    }
    let name = strings.len() as u32;
    strings.extend(b".shstrtab\0");
    let mut last = vec![0; SECTION];
    let place = out.len() as u64;
    last.get_mut(..4)?.copy_from_slice(&name.to_le_bytes());
    last.get_mut(4..8)?.copy_from_slice(&STRTAB.to_le_bytes());
    last.get_mut(24..32)?.copy_from_slice(&place.to_le_bytes());
    last.get_mut(32..40)?.copy_from_slice(&(strings.len() as u64).to_le_bytes());
    last.get_mut(48..56)?.copy_from_slice(&1u64.to_le_bytes());
    table.extend(last);
    out.extend(strings);
    out.resize(out.len().next_multiple_of(8), 0);
    let start = out.len() as u64;
    out.extend(table);
    let count = kept.len() as u16 + 1;
    out.get_mut(40..48)?.copy_from_slice(&start.to_le_bytes());
    out.get_mut(60..62)?.copy_from_slice(&count.to_le_bytes());
    out.get_mut(62..64)?.copy_from_slice(&(count - 1).to_le_bytes());
    Some(out)
}

/// The newest version of the C library that a file requires, as (2, 34).
pub(crate) fn glibc(file: &[u8]) -> Option<(u32, u32)> {
    let fields = Fields(file);
    let mut newest = None;
    for section in fields.sections()? {
        // The loader's names are in memory, and contain the versions.
        if section.u32(4)? != STRTAB || section.u64(8)? & ALLOC == 0 || section.u32(4)? == NOBITS {
            continue;
        }
        let bytes = file.get(section.place(24)?..)?.get(..section.place(32)?)?;
        for name in bytes.split(|byte| *byte == 0) {
            let version = std::str::from_utf8(name).ok().and_then(|name| name.strip_prefix("GLIBC_"));
            let mut numbers = version.into_iter().flat_map(|version| version.split('.')).map(str::parse);
            if let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) {
                newest = newest.max(Some((major, minor)));
            }
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_is_stripped_and_runs() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let small = strip(&file).unwrap();
        assert!(small.len() < file.len(), "{} of {}", small.len(), file.len());
        assert_eq!(glibc(&small), glibc(&file));
        assert!(glibc(&small) >= Some((2, 2)));
        // A stripped file keeps its size.
        assert_eq!(strip(&small).unwrap().len(), small.len());
        let path = std::env::temp_dir().join(format!("ptxvm-strip-{}", std::process::id()));
        std::fs::write(&path, &small).unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        let output = std::process::Command::new(&path).arg("--list").output().unwrap();
        std::fs::remove_file(&path).unwrap();
        assert!(output.status.success());
        assert!(String::from_utf8_lossy(&output.stdout).contains("this_program_is_stripped_and_runs"));
    }

    #[test]
    fn damaged_files_are_errors() {
        let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(strip(b"").is_err() && strip(b"\x7fELF\x02\x01").is_err());
        assert!(strip(&file[..file.len() / 2]).is_err());
        let mut wrong = file[..4096].to_vec();
        wrong[40..48].fill(0xff);
        assert!(strip(&wrong).is_err());
    }
}
