//! Relocatable objects that carry PTX: ELF files as device linkers of compilers expect them, with the text in
//! a section and its symbols in the symbol table.
//!
//! Compilers search the symbols in order to decide which members of a library a program needs.
//!
//! Invariant: [`text`] gives the text that [`write()`] was given. The file contains no machine code.

use ptxvm::Linkage;

/// The name of the section with the text.
const SECTION: &str = ".ptxvm.ptx";
/// `EM_CUDA`
const CUDA: u16 = 190;
const ELF_HEADER: usize = 64;
const SECTION_HEADER: usize = 64;

/// Types of sections.
const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;

/// A section of a file.
struct Section<'a> {
    name: &'a str,
    kind: u32,
    contents: &'a [u8],
    /// The section with the names of symbols.
    link: u32,
    /// The first global symbol.
    info: u32,
    /// The size of an entry.
    entry: u64,
}

impl Section<'_> {
    const EMPTY: Self = Section { name: "", kind: 0, contents: &[], link: 0, info: 0, entry: 0 };
}

/// A symbol that other objects can see.
struct Symbol<'a> {
    name: &'a str,
    /// The ELF binding: 1 global, 2 weak.
    binding: u8,
    is_defined: bool,
}

/// The symbols of a checked module.
fn symbols(checked: &ptxvm::Checked) -> Vec<Symbol<'_>> {
    let Some(module) = &checked.module else { return Vec::new() };
    let functions = module.functions.iter();
    let functions = functions.map(|function| (&function.name, function.linkage, function.body.is_some()));
    let variables = module.variables.iter().filter(|variable| variable.owner.is_none());
    let variables = variables.map(|variable| (&variable.name, variable.linkage, true));
    let mut symbols = Vec::new();
    for (name, linkage, has_contents) in functions.chain(variables) {
        let (binding, is_defined) = match linkage {
            Linkage::Internal => continue,
            Linkage::Extern => (1, false),
            Linkage::Visible => (1, has_contents),
            Linkage::Weak | Linkage::Common => (2, has_contents),
        };
        symbols.push(Symbol { name, binding, is_defined });
    }
    symbols
}

/// An object with a checked text.
pub(super) fn write(checked: &ptxvm::Checked, text: &str) -> Vec<u8> {
    let mut names = vec![0];
    let mut table = vec![0; 24];
    for Symbol { name, binding, is_defined } in symbols(checked) {
        table.extend((names.len() as u32).to_le_bytes());
        // The binding, no type, default visibility, and the section: that of the text, or none.
        table.extend([binding << 4, 0, u8::from(is_defined), 0]);
        table.extend([0; 16]);
        names.extend(name.as_bytes());
        names.push(0);
    }
    let sections = [
        Section { name: SECTION, kind: PROGBITS, contents: text.as_bytes(), ..Section::EMPTY },
        Section { name: ".symtab", kind: SYMTAB, contents: &table, link: 3, info: 1, entry: 24 },
        Section { name: ".strtab", kind: STRTAB, contents: &names, ..Section::EMPTY },
    ];
    let mut section_names = vec![0];
    let mut place = |name: &str| {
        let at = section_names.len() as u32;
        section_names.extend(name.as_bytes());
        section_names.push(0);
        at
    };
    let mut places: Vec<u32> = sections.iter().map(|section| place(section.name)).collect();
    let last = Section { name: ".shstrtab", kind: STRTAB, ..Section::EMPTY };
    places.push(place(last.name));
    let last = Section { contents: &section_names, ..last };
    let mut contents = Vec::new();
    let mut headers = vec![0; SECTION_HEADER];
    for (section, place) in sections.iter().chain([&last]).zip(places) {
        contents.resize(contents.len().next_multiple_of(8), 0);
        let offset = (ELF_HEADER + contents.len()) as u64;
        contents.extend(section.contents);
        headers.extend(place.to_le_bytes());
        headers.extend(section.kind.to_le_bytes());
        // Flags and address.
        headers.extend([0; 16]);
        headers.extend(offset.to_le_bytes());
        headers.extend((section.contents.len() as u64).to_le_bytes());
        headers.extend(section.link.to_le_bytes());
        headers.extend(section.info.to_le_bytes());
        headers.extend(8u64.to_le_bytes());
        headers.extend(section.entry.to_le_bytes());
    }
    contents.resize(contents.len().next_multiple_of(8), 0);
    // 64 bits, little-endian, version 1.
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    // `ET_REL`
    file.extend(1u16.to_le_bytes());
    file.extend(CUDA.to_le_bytes());
    file.extend(1u32.to_le_bytes());
    // No entry and no program headers.
    file.extend([0; 16]);
    file.extend(((ELF_HEADER + contents.len()) as u64).to_le_bytes());
    file.extend([0; 4]);
    for half in [ELF_HEADER as u16, 0, 0, SECTION_HEADER as u16, 5, 4] {
        file.extend(half.to_le_bytes());
    }
    file.extend(contents);
    file.extend(headers);
    file
}

/// The text of an object; `None` for other files.
pub(super) fn text(file: &[u8]) -> Option<String> {
    let number = |at: usize, bytes: usize| -> Option<usize> {
        let mut number = [0; 8];
        number.get_mut(..bytes)?.copy_from_slice(file.get(at..at.checked_add(bytes)?)?);
        usize::try_from(u64::from_le_bytes(number)).ok()
    };
    let is_ours = file.starts_with(b"\x7fELF\x02\x01") && number(18, 2)? == usize::from(CUDA);
    let (headers, count) = (number(40, 8)?, number(60, 2)?);
    let header = |index: usize| headers.checked_add(index.checked_mul(SECTION_HEADER)?);
    let bytes_of = |header: usize| {
        let start = number(header.checked_add(24)?, 8)?;
        file.get(start..start.checked_add(number(header.checked_add(32)?, 8)?)?)
    };
    let names = bytes_of(header(number(62, 2)?)?)?;
    let is_text = |header: &usize| {
        let name = number(*header, 4).and_then(|at| names.get(at..));
        name.is_some_and(|name| name.starts_with(SECTION.as_bytes()) && name.get(SECTION.len()) == Some(&0))
    };
    let found = (1..count).filter_map(header).find(is_text).filter(|_| is_ours)?;
    Some(String::from_utf8_lossy(bytes_of(found)?).into_owned())
}

#[cfg(test)]
mod tests {
    use super::{text, write};

    const TEXT: &str = ".version 7.0\n.target sm_75\n.address_size 64\n.extern .func f();\n\
        .visible .global .u32 x;\n.weak .func g() { ret; }\n.visible .entry k() { call f; ret; }\n";

    #[test]
    fn the_text_comes_back_and_symbols_are_found() {
        let checked = ptxvm::check("a", TEXT, &ptxvm::CheckOptions::default());
        assert!(checked.module.is_some(), "{:?}", checked.diagnostics.len());
        let file = write(&checked, TEXT);
        assert_eq!(text(&file).as_deref(), Some(TEXT));
        let found = super::symbols(&checked);
        let found: Vec<_> = found.iter().map(|s| (s.name, s.binding, s.is_defined)).collect();
        for right in [("f", 1, false), ("x", 1, true), ("g", 2, true), ("k", 1, true)] {
            assert!(found.contains(&right), "{right:?} in {found:?}");
        }
    }

    #[test]
    fn other_files_and_damaged_ones_have_no_text() {
        let checked = ptxvm::check("a", TEXT, &ptxvm::CheckOptions::default());
        let file = write(&checked, TEXT);
        assert_eq!(text(b""), None);
        assert_eq!(text(&[&file[..18], &[62], &file[19..]].concat()), None);
        // Without the headers of its sections, which are last, it has no text.
        let headers = file.len() - 5 * super::SECTION_HEADER;
        for cut in 0..file.len() {
            let found = text(&file[..cut]);
            assert!(found.is_none() || cut > headers, "cut at {cut}");
        }
        for at in 0..64 {
            for value in [0, 1, 0x7f, 0xff] {
                let mut damaged = file.clone();
                damaged[at] = value;
                let _either = text(&damaged);
            }
        }
    }
}
