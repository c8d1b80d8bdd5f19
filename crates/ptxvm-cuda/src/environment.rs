//! Settings from environment variables.
//!
//! Invariant: a value that cannot be parsed is reported and ignored.

/// The value of an environment variable. A value that cannot be parsed is reported and ignored.
pub(crate) fn read<T>(name: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    let text = std::env::var(name).ok().filter(|text| !text.is_empty())?;
    let value = parse(&text);
    if value.is_none() {
        crate::log::say(&format!("ptxvm: ignored `{name}={text}`: invalid value"));
    }
    value
}
