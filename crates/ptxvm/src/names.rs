//! Demangling of C++ and Rust function names.
//!
//! Invariant: only names that the two libraries recognise as mangled are changed. The time and memory for a
//! name are bounded: long names are left unchanged.

/// The longest name that is demangled, in bytes.
const LONGEST: usize = 4096;
/// The longest result in bytes: substitutions can make it much longer than the name.
const LONGEST_RESULT: usize = 4096;

/// The demangled form of a C++ name (`_Z4axpyfPf`) or Rust name (`_R...`, `_ZN...17h...E`); `None` if it is
/// not mangled.
pub fn demangle(name: &str) -> Option<String> {
    use std::fmt::Write as _;
    if name.len() > LONGEST || !(name.starts_with("_Z") || name.starts_with("_R")) {
        return None;
    }
    let mut text = Bounded(String::new());
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        // `{:#}` omits the hash.
        return write!(text, "{rust:#}").is_ok().then_some(text.0);
    }
    let symbol = cpp_demangle::BorrowedSymbol::new(name.as_bytes()).ok()?;
    let options = cpp_demangle::DemangleOptions::new().no_return_type();
    symbol.structured_demangle(&mut text, &options).is_ok().then_some(text.0)
}

/// Text with a length limit.
struct Bounded(String);

impl std::fmt::Write for Bounded {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        if self.0.len() + text.len() > LONGEST_RESULT {
            return Err(std::fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// A trap report with the demangled names of kernel and function after the mangled ones.
pub fn trap_report(trap: &crate::Trap) -> String {
    let mut report = String::new();
    for line in trap.to_string().lines() {
        report.push_str(line);
        let names = [("  kernel:      ", &trap.kernel), ("  function:    ", &trap.function)];
        let name = names.iter().find(|(label, name)| line.strip_prefix(label) == Some(name.as_str()));
        if let Some(plain) = name.and_then(|(_, name)| demangle(name)) {
            report.push_str(&format!(" ({plain})"));
        }
        report.push('\n');
    }
    report
}

#[cfg(test)]
mod tests {
    use super::demangle;

    /// Names from the Itanium C++ ABI and Rust's RFC 2603.
    #[test]
    fn mangled_names() {
        for (name, plain) in [
            ("_Z4axpyifPKfPf", "axpy(int, float, float const*, float*)"),
            ("_ZN2ns3addIfEEvPT_S2_", "ns::add<float>(float*, float*)"),
            ("_RNvC6mycrat3foo", "mycrat::foo"),
            ("_ZN4core3fmt5Debug17h0123456789abcdefE", "core::fmt::Debug"),
        ] {
            assert_eq!(demangle(name).as_deref(), Some(plain), "{name}");
        }
        for name in ["axpy", "_Z", "_Zx", "", "_ZN", "$_Z4axpyv", "_R"] {
            assert_eq!(demangle(name), None, "{name}");
        }
    }

    #[test]
    fn hostile_names_are_bounded() {
        assert_eq!(demangle(&format!("_Z{}", "N".repeat(5000))), None);
        for name in [
            format!("_Z1f{}", "P".repeat(3000)),
            format!("_Z1fI{}E", "S_".repeat(1000)),
            format!("_RN{}", "v".repeat(3000)),
        ] {
            assert!(demangle(&name).is_none_or(|plain| plain.len() <= 4096));
        }
    }
}
