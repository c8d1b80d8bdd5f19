//! Recognises files that are not PTX text by their first bytes or words, so that a single diagnostic names
//! their format.
//!
//! Invariant: no text that the checker accepts is refused here: PTX has no byte below a tab, and CUDA source
//! has no `.version` directive. In the text, bytes that are not UTF-8 are replaced by U+FFFD.

use crate::Span;
use crate::diag::{Code, Diagnostic};

/// Bytes that are examined.
const HEAD: usize = 64 << 10;

/// The diagnostic of a text in another format, if the format is recognised.
pub(crate) fn recognise(text: &str) -> Option<Diagnostic> {
    let (what, help) = kind(text)?;
    let first = text.chars().next().map_or(0, char::len_utf8);
    let end = text.find('\n').unwrap_or(text.len()).min(text.floor_char_boundary(80)).max(first);
    Some(
        Diagnostic::new(Code::NotPtx, Span::new(0, end as u32), format!("this is not PTX text, but {what}"))
            .with_help(help)
            .with_section("4.1"),
    )
}

/// The format of a text, and how to get PTX from it.
fn kind(text: &str) -> Option<(&'static str, &'static str)> {
    let head = &text[..text.floor_char_boundary(HEAD)];
    let extract = "`cuobjdump -xptx all FILE` writes the PTX that it holds, if it holds any";
    let binary = [
        ("\u{7f}ELF", "an ELF file: a cubin (machine code of a GPU), an object file or a program", extract),
        // 0xBA55ED50 and 0x466243B1, little-endian.
        ("P\u{fffd}U\u{fffd}", "a fatbinary, a container of device code", extract),
        ("\u{fffd}CbF", "the header of a fatbinary, a container of device code", extract),
        ("BC\u{fffd}\u{fffd}", "LLVM bitcode", "`llc -march=nvptx64 FILE -o -` makes PTX of it"),
        ("!<arch>\n", "an archive of object files", extract),
        ("\u{1f}\u{fffd}", "compressed by gzip", "`gzip -d` unpacks it"),
        ("(\u{fffd}/\u{fffd}", "compressed by zstd", "`zstd -d` unpacks it"),
    ];
    if let Some((_, what, help)) = binary.iter().find(|(magic, _, _)| head.starts_with(magic)) {
        return Some((what, help));
    }
    if is_utf16(head) {
        return Some((
            "text in UTF-16",
            "save it as UTF-8 or ASCII: `iconv -f UTF-16 -t UTF-8 FILE`; PowerShell's `>` writes UTF-16",
        ));
    }
    if text.contains(".version") {
        return None;
    }
    let cuda = ["__global__", "__device__", "#include <", "#include \"", "extern \"C\"", "<<<", "blockIdx."];
    if cuda.iter().any(|word| code_contains(head, word)) {
        return Some((
            "CUDA or C++ source",
            "compile it to PTX: `nvcc -ptx FILE`, or `clang++ -x cuda --cuda-device-only -S FILE`",
        ));
    }
    let llvm =
        ["target triple = \"nvptx", "target datalayout = ", "define ptx_kernel void @", "; ModuleID = "];
    if llvm.iter().any(|word| head.contains(word)) {
        return Some(("LLVM's intermediate language", "`llc -march=nvptx64 FILE -o -` makes PTX of it"));
    }
    None
}

/// Whether every second byte at the start is zero, as in UTF-16 text of ASCII characters.
fn is_utf16(head: &str) -> bool {
    const FEW: usize = 32;
    // A UTF-16 byte order mark is not UTF-8: it becomes two replacement characters.
    let head = head.trim_start_matches('\u{fffd}');
    let chars: Vec<char> = head.chars().take(FEW).collect();
    let zeros = |start: usize| {
        let mut at = chars.iter().skip(start).step_by(2);
        at.len() >= 4 && at.all(|c| *c == '\0')
    };
    let text = |start: usize| chars.iter().skip(start).step_by(2).all(|c| *c != '\0');
    (zeros(1) && text(0)) || (zeros(0) && text(1))
}

/// Whether a word occurs in the text outside of line comments.
fn code_contains(text: &str, word: &str) -> bool {
    text.lines().any(|line| line.split("//").next().is_some_and(|code| code.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(bytes: &[u8]) -> Option<String> {
        recognise(&String::from_utf8_lossy(bytes)).map(|found| found.message)
    }

    #[test]
    fn files_are_recognised() {
        let utf16 = |big: bool, mark: bool| -> Vec<u8> {
            let text = if mark { "\u{feff}.version 6.4\n" } else { ".version 6.4\n" };
            text.encode_utf16()
                .flat_map(|unit| if big { unit.to_be_bytes() } else { unit.to_le_bytes() })
                .collect()
        };
        let cases: &[(&[u8], &str)] = &[
            (b"\x7fELF\x02\x01\x01\x33\x07", "ELF"),
            (&0xBA55_ED50u32.to_le_bytes(), "fatbinary"),
            (&0x4662_43B1u32.to_le_bytes(), "fatbinary"),
            (b"BC\xc0\xde\x35", "bitcode"),
            (b"\x1f\x8b\x08", "gzip"),
            (b"\x28\xb5\x2f\xfd", "zstd"),
            (b"#include <cuda.h>\n__global__ void k() {}\n", "CUDA"),
            (b"; ModuleID = 'k'\n", "LLVM"),
            (&utf16(false, true), "UTF-16"),
            (&utf16(false, false), "UTF-16"),
            (&utf16(true, true), "UTF-16"),
            (&utf16(true, false), "UTF-16"),
        ];
        for (bytes, expected) in cases {
            let found = what(bytes);
            assert!(found.as_ref().is_some_and(|m| m.contains(expected)), "{expected}: {found:?}");
        }
    }

    #[test]
    fn ptx_and_other_text_is_not() {
        for text in [
            "",
            ".version 6.4\n// __global__ void k();\n",
            "// made of __global__ k\n",
            "\0",
            "a\0b",
            "hello\n",
        ] {
            assert_eq!(what(text.as_bytes()), None, "{text:?}");
        }
    }
}
