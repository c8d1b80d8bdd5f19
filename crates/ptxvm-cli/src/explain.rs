//! `ptxvm explain`: the meaning of a diagnostic code, or the list of codes.

use crate::options::ExplainOptions;
use crate::{Exit, UsageError};
use std::fmt::Write as _;

/// Prints the page of a code, or all codes.
pub(crate) fn explain(options: &ExplainOptions) -> Result<Exit, UsageError> {
    let Some(name) = &options.code else {
        let mut list = String::new();
        for code in ptxvm::Code::ALL {
            let _infallible = writeln!(list, "{}  {}", code.name(), code.title());
        }
        crate::print_out(&list)?;
        return Ok(Exit::Done);
    };
    let Some(code) = code_named(name) else {
        return Err(format!("there is no code `{name}`; `ptxvm explain` lists them").into());
    };
    crate::print_out(&format!("# {}: {}\n\n{}", code.name(), code.title(), code.page()))?;
    Ok(Exit::Done)
}

/// `P0213`, `p213` and `213` are the same code.
fn code_named(name: &str) -> Option<ptxvm::Code> {
    let digits = name.strip_prefix(['P', 'p']).unwrap_or(name);
    let number: u16 = digits.parse().ok()?;
    ptxvm::Code::ALL.iter().copied().find(|code| code.number() == number)
}

#[cfg(test)]
mod tests {
    use super::code_named;
    use ptxvm::Code;

    #[test]
    fn names_of_codes() {
        for name in ["P0202", "p202", "202"] {
            assert_eq!(code_named(name), Some(Code::NoSuchForm), "{name}");
        }
        for name in ["", "P", "P9999", "Q0202", "-1", "P0202x"] {
            assert_eq!(code_named(name), None, "{name}");
        }
    }
}
