//! The functions of a CUDA runtime that a file defines, from its symbol table.
//!
//! Invariant: every file gives a runtime, none, or an error. A table is read only if the file is long enough
//! for it.

use object::elf::{FileHeader64, SHF_EXECINSTR, SHT_DYNSYM, SHT_SYMTAB, STT_FUNC, SectionHeader64};
use object::read::elf::{FileHeader as _, ProgramHeader as _, SectionHeader as _, Sym as _};
use object::{Endianness, ReadCache};
use std::fs::File;
use std::ops::Range;

/// The least number of functions with a runtime's names that makes a runtime. ptxvm's has 488, NVIDIA's 458.
/// Libraries between a program and its runtime, such as profilers, define a few dozen.
const FUNCTIONS_MIN: usize = 100;

/// Most bytes of a table. Chosen: the tables of the largest programs take a tenth of it.
const TABLE_MAX: u64 = 2 << 30;

/// A function whose name is one that a runtime has.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Its address as the file states it.
    pub(crate) address: u64,
    pub(crate) size: u64,
}

/// A file that defines a runtime.
pub(crate) struct Runtime {
    /// The functions, in the order of their addresses.
    pub(crate) functions: Vec<Function>,
    /// Addresses at which a symbol or section of code begins, sorted.
    starts: Vec<u64>,
    /// Sections of code.
    code: Vec<Range<u64>>,
    /// Loaded parts: their addresses, and their offsets in the file.
    loaded: Vec<(Range<u64>, u64)>,
}

type Symbol = object::elf::Sym64<Endianness>;

/// The runtime that a file defines, if it defines one.
pub(crate) fn runtime(file: &File) -> Result<Option<Runtime>, object::read::Error> {
    let data = &ReadCache::new(file);
    let Ok(header) = FileHeader64::<Endianness>::parse(data) else { return Ok(None) };
    let endian = header.endian()?;
    let sections = header.section_headers(endian, data)?;
    let table = |kind| sections.iter().find(|section| section.sh_type(endian) == kind);
    let Some(table) = table(SHT_SYMTAB).or_else(|| table(SHT_DYNSYM)) else { return Ok(None) };
    let Some(names) = sections.get(table.sh_link(endian) as usize) else { return Ok(None) };
    if table.sh_size(endian) > TABLE_MAX || names.sh_size(endian) > TABLE_MAX {
        return Ok(None);
    }
    let symbols: &[Symbol] = table.data_as_array(endian, data)?;
    let names = names.data(endian, data)?;
    let mut functions: Vec<_> = symbols.iter().filter_map(|symbol| function(endian, symbol, names)).collect();
    if functions.len() < FUNCTIONS_MIN {
        return Ok(None);
    }
    functions.sort_by_key(|function| function.address);
    let range = |section: &SectionHeader64<Endianness>| {
        let start = section.sh_addr(endian);
        start..start.saturating_add(section.sh_size(endian))
    };
    let is_code =
        |section: &&SectionHeader64<Endianness>| section.sh_flags(endian) & u64::from(SHF_EXECINSTR) != 0;
    let code = sections.iter().filter(is_code).map(range).collect();
    let mut starts: Vec<_> = symbols.iter().map(|symbol| symbol.st_value(endian)).collect();
    starts.sort_unstable();
    let mut loaded = Vec::new();
    for segment in header.program_headers(endian, data)? {
        if segment.p_type(endian) == object::elf::PT_LOAD {
            let start = segment.p_vaddr(endian);
            let end = start.saturating_add(segment.p_filesz(endian));
            loaded.push((start..end, segment.p_offset(endian)));
        }
    }
    Ok(Some(Runtime { functions, starts, code, loaded }))
}

/// The symbol as a function of a runtime, if its name is `cuda` or `__cuda` followed by a capital letter.
fn function(endian: Endianness, symbol: &Symbol, names: &[u8]) -> Option<Function> {
    if symbol.st_type() != STT_FUNC || symbol.st_shndx(endian) == object::elf::SHN_UNDEF {
        return None;
    }
    let name = names.get(symbol.st_name(endian) as usize..)?;
    let rest = name.strip_prefix(b"__").unwrap_or(name).strip_prefix(b"cuda")?;
    if !rest.first()?.is_ascii_uppercase() {
        return None;
    }
    let end = name.iter().position(|byte| *byte == 0)?;
    Some(Function {
        name: std::str::from_utf8(&name[..end]).ok()?.to_owned(),
        address: symbol.st_value(endian),
        size: symbol.st_size(endian),
    })
}

impl Runtime {
    /// The major version of CUDA that has these functions. Properties of devices have a second function only
    /// in CUDA 12, and the functions that act on threads ended with it.
    pub(crate) fn major(&self) -> u32 {
        let has = |name: &str| self.functions.iter().any(|function| function.name == name);
        if has("cudaGetDeviceProperties_v2") {
            12
        } else if has("cudaThreadExit") {
            11
        } else {
            13
        }
    }

    /// The number of bytes from the end of a function to the next symbol or section.
    pub(crate) fn behind(&self, function: &Function) -> u64 {
        let Some(end) = function.address.checked_add(function.size) else { return 0 };
        let Some(section) = self.code.iter().find(|code| code.contains(&function.address)) else { return 0 };
        let next = self.starts.get(self.starts.partition_point(|start| *start <= function.address));
        next.map_or(section.end, |next| section.end.min(*next)).saturating_sub(end)
    }

    /// The offset in the file of the byte at an address.
    pub(crate) fn offset(&self, address: u64) -> Option<u64> {
        let (range, offset) = self.loaded.iter().find(|(range, _)| range.contains(&address))?;
        offset.checked_add(address - range.start)
    }
}
