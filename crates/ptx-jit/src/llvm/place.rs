//! Places the code of an object file in memory without LLVM: code from the cache runs in a process that never
//! loads LLVM.
//!
//! Supports the ELF objects that LLVM generates for our modules on x86-64: no writable data, and few kinds of
//! relocations. Any other content is refused by name ([`Refused`]), and ORC places the object instead.
//!
//! Invariants: memory is first written, then executed, never both at once; every offset in the object is
//! checked before it is used, so bytes that are not an object are refused. The behaviour of the code is
//! trusted: objects from outside must be checked before.

use std::ffi::c_void;
use std::ptr;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Why an object was not placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refused(pub(super) &'static str);

impl Refused {
    const NO_MEMORY: Refused = Refused("the system has no memory for code");
    const NOT_EXECUTABLE: Refused = Refused("the system grants no executable memory");

    /// Whether the system refused, and not the form of the object: then another way to place it would fail
    /// too.
    pub(super) fn is_the_systems(self) -> bool {
        self == Refused::NO_MEMORY || self == Refused::NOT_EXECUTABLE
    }
}

/// Placed code, which is unmapped when this is dropped.
#[derive(Debug)]
pub(super) struct Placed {
    start: *mut c_void,
    bytes: usize,
    /// Exported functions with their addresses.
    functions: Vec<(String, usize)>,
}

// SAFETY: nothing in it changes once it is made; the memory may be executed by any thread.
unsafe impl Send for Placed {}
// SAFETY: as above.
unsafe impl Sync for Placed {}

impl Drop for Placed {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `Memory::map` for this value alone, and who runs the code holds the
        // value. An error here could only be reported.
        let _ = unsafe { munmap(self.start, self.bytes) };
    }
}

impl Placed {
    /// The address of a function.
    pub(super) fn lookup(&self, name: &str) -> Option<usize> {
        self.functions.iter().find(|(have, _)| have == name).map(|(_, address)| *address)
    }
}

/// The numbers of ELF that occur here. System V ABI, and its supplement for AMD64.
mod elf {
    pub(super) const HEADER: usize = 64;
    pub(super) const SECTION: usize = 64;
    pub(super) const SYMBOL: usize = 24;
    pub(super) const RELA: usize = 24;
    pub(super) const MACHINE_AMD64: u16 = 62;
    pub(super) const PROGBITS: u32 = 1;
    pub(super) const SYMTAB: u32 = 2;
    pub(super) const RELA_TYPE: u32 = 4;
    pub(super) const REL_TYPE: u32 = 9;
    pub(super) const WRITE: u64 = 1;
    pub(super) const ALLOC: u64 = 2;
    pub(super) const TLS: u64 = 0x400;
    pub(super) const UNDEFINED: u16 = 0;
    pub(super) const ABSOLUTE: u16 = 0xfff1;
    pub(super) const RESERVED: u16 = 0xff00;
    pub(super) const GLOBAL: u8 = 1;
    pub(super) const FUNCTION: u8 = 2;
}

/// The largest object that is placed. Chosen: a thousand times what a large kernel needs.
const LARGEST: usize = 1 << 30;
/// The alignment of code: a cache line, as functions are aligned.
const ALIGN: usize = 64;

/// The bytes of an object, read with bounds checks.
#[derive(Clone, Copy)]
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn at(self, offset: usize, len: usize) -> Result<&'a [u8], Refused> {
        let end = offset.checked_add(len).ok_or(Refused("an offset past the end"))?;
        self.0.get(offset..end).ok_or(Refused("an offset past the end"))
    }

    fn word<const N: usize>(self, offset: usize) -> Result<[u8; N], Refused> {
        <[u8; N]>::try_from(self.at(offset, N)?).map_err(|_| Refused("an offset past the end"))
    }

    fn u16(self, offset: usize) -> Result<u16, Refused> {
        self.word(offset).map(u16::from_le_bytes)
    }

    fn u32(self, offset: usize) -> Result<u32, Refused> {
        self.word(offset).map(u32::from_le_bytes)
    }

    fn u64(self, offset: usize) -> Result<u64, Refused> {
        self.word(offset).map(u64::from_le_bytes)
    }

    fn size(self, offset: usize) -> Result<usize, Refused> {
        usize::try_from(self.u64(offset)?).map_err(|_| Refused("a size of more than the machine's"))
    }

    fn name(self, table: Section, offset: u32) -> Result<&'a str, Refused> {
        let names = self.at(table.offset, table.bytes)?;
        let rest = names.get(offset as usize..).ok_or(Refused("a name past the end"))?;
        let end = rest.iter().position(|byte| *byte == 0).ok_or(Refused("a name without an end"))?;
        std::str::from_utf8(&rest[..end]).map_err(|_| Refused("a name that is no text"))
    }
}

/// A section's header.
#[derive(Clone, Copy, Debug)]
struct Section {
    name: u32,
    kind: u32,
    flags: u64,
    offset: usize,
    bytes: usize,
    link: usize,
    info: usize,
    align: usize,
}

/// A symbol.
#[derive(Clone, Copy, Debug)]
struct Symbol<'a> {
    name: &'a str,
    info: u8,
    section: u16,
    value: u64,
}

/// Places the code of an object; `resolve` returns the addresses of undefined symbols.
///
/// # Errors
/// The part of the object that is not supported.
pub(super) fn place(object: &[u8], resolve: &dyn Fn(&str) -> Option<usize>) -> Result<Placed, Refused> {
    let file = Bytes(object);
    let sections = sections(file)?;
    let (symbols, table) = symbols(file, &sections)?;
    // The offset of each section from the start of the memory.
    let mut homes: Vec<Option<usize>> = vec![None; sections.len()];
    let mut end = 0usize;
    for (home, section) in homes.iter_mut().zip(&sections) {
        if section.flags & elf::ALLOC == 0 || section.bytes == 0 {
            continue;
        }
        if section.kind != elf::PROGBITS || section.flags & elf::TLS != 0 {
            return Err(Refused("a section that is neither code nor constants"));
        }
        if section.flags & elf::WRITE != 0 && !is_constant(file, &sections, section)? {
            return Err(Refused("a writable section"));
        }
        if section.bytes > LARGEST || !section.align.max(1).is_power_of_two() || section.align > 4096 {
            return Err(Refused("a section too large or too strictly aligned"));
        }
        end = end.next_multiple_of(section.align.max(1));
        *home = Some(end);
        end += section.bytes;
    }
    // Behind the sections: an address for each symbol that is accessed through one.
    let slots = end.next_multiple_of(ALIGN);
    let bytes = slots + symbols.len() * 8;
    if end == 0 || bytes > LARGEST {
        return Err(Refused("no code, or too much"));
    }
    let mut memory = Memory::map(bytes)?;
    for (home, section) in homes.iter().zip(&sections) {
        if let Some(home) = home {
            memory.write(*home, file.at(section.offset, section.bytes)?)?;
        }
    }
    let address = |memory: &Memory, index: usize| -> Result<u64, Refused> {
        let symbol: &Symbol<'_> = symbols.get(index).ok_or(Refused("a symbol past the end"))?;
        match symbol.section {
            elf::UNDEFINED if index == 0 => Ok(0),
            elf::UNDEFINED => {
                let address = resolve(symbol.name).ok_or(Refused("a symbol that nothing defines"))?;
                Ok(address as u64)
            }
            elf::ABSOLUTE => Ok(symbol.value),
            section if section >= elf::RESERVED => Err(Refused("a symbol of a special section")),
            section => {
                let home = homes.get(usize::from(section)).copied().flatten();
                let home = home.ok_or(Refused("a symbol of a section without a place"))?;
                Ok(((memory.start() + home) as u64).wrapping_add(symbol.value))
            }
        }
    };
    for section in &sections {
        let target = homes.get(section.info).copied().flatten();
        let (Some(home), elf::RELA_TYPE | elf::REL_TYPE) = (target, section.kind) else { continue };
        if section.kind == elf::REL_TYPE || section.link != table {
            return Err(Refused("relocations of another form"));
        }
        let patched = sections[section.info];
        for n in 0..section.bytes / elf::RELA {
            let entry = Bytes(file.at(entry(section.offset, n, elf::RELA)?, elf::RELA)?);
            let (offset, info, addend) = (entry.size(0)?, entry.u64(8)?, entry.u64(16)?);
            if offset > patched.bytes {
                return Err(Refused("a relocation past the end"));
            }
            let (index, kind) = ((info >> 32) as usize, info as u32);
            let value = address(&memory, index)?;
            let place = home + offset;
            let here = (memory.start() + place) as u64;
            let (width, value) = match kind {
                // R_X86_64_64
                1 => (8, value.wrapping_add(addend)),
                // R_X86_64_PC32, R_X86_64_PLT32
                2 | 4 => (4, value.wrapping_add(addend).wrapping_sub(here)),
                // R_X86_64_GOTPCREL, R_X86_64_GOTPCRELX, R_X86_64_REX_GOTPCRELX
                9 | 41 | 42 => {
                    let slot = slots + index * 8;
                    memory.write(slot, &value.to_le_bytes())?;
                    let slot = (memory.start() + slot) as u64;
                    (4, slot.wrapping_add(addend).wrapping_sub(here))
                }
                // R_X86_64_PC64
                24 => (8, value.wrapping_add(addend).wrapping_sub(here)),
                _ => return Err(Refused("a relocation of another kind")),
            };
            if offset.checked_add(width).is_none_or(|end| end > patched.bytes) {
                return Err(Refused("a relocation past the end"));
            }
            if width == 4 && i32::try_from(value as i64).is_err() {
                return Err(Refused("a symbol that is too far away"));
            }
            memory.write(place, &value.to_le_bytes()[..width])?;
        }
    }
    let mut functions = Vec::new();
    for (index, symbol) in symbols.iter().enumerate() {
        if symbol.info == elf::GLOBAL << 4 | elf::FUNCTION && symbol.section != elf::UNDEFINED {
            functions.push((symbol.name.to_owned(), address(&memory, index)? as usize));
        }
    }
    memory.execute(functions)
}

fn sections(file: Bytes<'_>) -> Result<Vec<Section>, Refused> {
    // 64 bits, little-endian, version 1; relocatable.
    if file.at(0, 7)? != b"\x7fELF\x02\x01\x01" || file.u16(16)? != 1 {
        return Err(Refused("no relocatable object of 64 bits"));
    }
    if file.u16(18)? != elf::MACHINE_AMD64 || !cfg!(target_arch = "x86_64") {
        return Err(Refused("an object of another machine"));
    }
    if usize::from(file.u16(52)?) != elf::HEADER || usize::from(file.u16(58)?) != elf::SECTION {
        return Err(Refused("headers of another size"));
    }
    let (start, count) = (file.size(40)?, usize::from(file.u16(60)?));
    (0..count)
        .map(|n| {
            let header = Bytes(file.at(entry(start, n, elf::SECTION)?, elf::SECTION)?);
            Ok(Section {
                name: header.u32(0)?,
                kind: header.u32(4)?,
                flags: header.u64(8)?,
                offset: header.size(24)?,
                bytes: header.size(32)?,
                link: header.u32(40)? as usize,
                info: header.u32(44)? as usize,
                align: header.size(48)?,
            })
        })
        .collect()
}

/// The symbol table, and the number of its section.
fn symbols<'a>(file: Bytes<'a>, sections: &[Section]) -> Result<(Vec<Symbol<'a>>, usize), Refused> {
    let table = sections.iter().position(|section| section.kind == elf::SYMTAB);
    let table = table.ok_or(Refused("no symbols"))?;
    let names = *sections.get(sections[table].link).ok_or(Refused("symbols without names"))?;
    let entries = (0..sections[table].bytes / elf::SYMBOL).map(|n| {
        let symbol = Bytes(file.at(entry(sections[table].offset, n, elf::SYMBOL)?, elf::SYMBOL)?);
        let [info] = symbol.word(4)?;
        let name = file.name(names, symbol.u32(0)?)?;
        Ok(Symbol { name, info, section: symbol.u16(6)?, value: symbol.u64(8)? })
    });
    Ok((entries.collect::<Result<_, _>>()?, table))
}

/// The offset of entry `n` of a table.
fn entry(start: usize, n: usize, bytes: usize) -> Result<usize, Refused> {
    n.checked_mul(bytes).and_then(|offset| start.checked_add(offset)).ok_or(Refused("an offset past the end"))
}

/// Whether only relocations write to a section.
fn is_constant(file: Bytes<'_>, sections: &[Section], section: &Section) -> Result<bool, Refused> {
    let names = *sections.get(usize::from(file.u16(62)?)).ok_or(Refused("sections without names"))?;
    Ok(file.name(names, section.name)?.starts_with(".data.rel.ro"))
}

/// Memory that is being written.
struct Memory(Placed);

impl Memory {
    fn map(bytes: usize) -> Result<Memory, Refused> {
        // SAFETY: a new range of the system's choice; no memory that is in use changes.
        let start = unsafe {
            mmap_anonymous(ptr::null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        let start = start.map_err(|_| Refused::NO_MEMORY)?;
        Ok(Memory(Placed { start, bytes, functions: Vec::new() }))
    }

    fn start(&self) -> usize {
        self.0.start as usize
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) -> Result<(), Refused> {
        if offset.checked_add(bytes.len()).is_none_or(|end| end > self.0.bytes) {
            return Err(Refused("an offset past the end"));
        }
        // SAFETY: the offset is within the range.
        let to = unsafe { self.0.start.cast::<u8>().add(offset) };
        // SAFETY: the bytes from there are within the range, which is mapped for writing and not shared yet.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    }

    fn execute(mut self, functions: Vec<(String, usize)>) -> Result<Placed, Refused> {
        let flags = MprotectFlags::READ | MprotectFlags::EXEC;
        // SAFETY: this value owns the range, and it is not written to any more.
        unsafe { mprotect(self.0.start, self.0.bytes, flags) }.map_err(|_| Refused::NOT_EXECUTABLE)?;
        self.0.functions = functions;
        Ok(self.0)
    }
}
