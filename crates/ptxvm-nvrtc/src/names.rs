//! Name expressions: the symbols that the compiler gave the kernels and variables that a program names.
//!
//! For each expression a line is added to the program's text: a constant that holds the address of the named
//! entity. This instantiates templates, and the PTX then shows the symbol in the constant's initializer. The
//! constants are removed from the PTX afterwards.
//!
//! Invariant: the resulting PTX contains none of the constants.

use std::fmt::Write as _;

/// The prefix of the constants' names.
const NAME: &str = "__ptxvm_name_";

/// The lines for expressions, to be appended to a program's text. Errors in an expression are reported for
/// the file `name expression`.
pub(crate) fn lines(expressions: &[String]) -> String {
    let mut lines = String::new();
    for (index, expression) in expressions.iter().enumerate() {
        let _never_fails = write!(
            lines,
            "\n#line 1 \"name expression\"\n__attribute__((used)) static __constant__ const volatile void *const {NAME}{index} = (const volatile void *)({expression});\n"
        );
    }
    lines
}

/// Removes the constants from a PTX text. Returns the text without them, and the symbol in each of the
/// `count` constants.
pub(crate) fn take(ptx: &str, count: usize) -> (String, Vec<Option<String>>) {
    let mut names = vec![None; count];
    if count == 0 {
        return (ptx.to_owned(), names);
    }
    let mut rest = String::with_capacity(ptx.len());
    for line in ptx.split_inclusive('\n') {
        match constant(line) {
            Some((index, symbol)) => {
                if let Some(name) = names.get_mut(index) {
                    *name = Some(symbol.to_owned());
                }
            }
            None => rest.push_str(line),
        }
    }
    (without_declarations(&rest), names)
}

/// The number of the constant that a line defines, and its symbol.
fn constant(line: &str) -> Option<(usize, &str)> {
    let (_, behind) = line.split_once(NAME)?;
    let (index, value) = behind.split_once(" = ")?;
    let value = value.trim_end().strip_suffix(';')?;
    let symbol = value.strip_prefix("generic(").and_then(|value| value.strip_suffix(')')).unwrap_or(value);
    Some((index.parse().ok()?, symbol))
}

/// Removes declarations of kernels from the text. They exist because the addresses of the kernels were taken;
/// the kernels are also defined.
fn without_declarations(ptx: &str) -> String {
    let mut text = String::with_capacity(ptx.len());
    let mut lines = ptx.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if !line.contains(".entry ") {
            text.push_str(line);
            continue;
        }
        let mut statement = line.to_owned();
        while !statement.trim_end().ends_with([';', '{']) {
            let Some(line) = lines.next() else { break };
            statement.push_str(line);
        }
        if !statement.trim_end().ends_with(';') {
            text.push_str(&statement);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_and_declarations_are_taken_out() {
        let ptx = "\
.version 7.8
.visible .entry _Z1kIfEvPT_
(
\t.param .u64 k_param_0
)
;
.visible .const .align 4 .b8 _ZN2ns1cE[16];
.const .align 8 .u64 _ZL14__ptxvm_name_0 = _Z1kIfEvPT_;
.const .align 8 .u64 _ZL14__ptxvm_name_1 = generic(_ZN2ns1cE);
.visible .entry _Z1kIfEvPT_(
\t.param .u64 k_param_0
)
.maxntid 32
{
\tret;
}
";
        let (text, names) = take(ptx, 3);
        assert_eq!(names, [Some("_Z1kIfEvPT_".to_owned()), Some("_ZN2ns1cE".to_owned()), None]);
        let expected = "\
.version 7.8
.visible .const .align 4 .b8 _ZN2ns1cE[16];
.visible .entry _Z1kIfEvPT_(
\t.param .u64 k_param_0
)
.maxntid 32
{
\tret;
}
";
        assert_eq!(text, expected);
        assert_eq!(take(ptx, 0).0, ptx);
    }
}
