//! Whether diagnostics are printed in colors.
//!
//! Invariant: the choice is made once, before a command runs; the default is that of `--color auto`.

use crate::options::ColorChoice;

/// The value of `--color`; set once, before a command runs.
static COLOR: std::sync::OnceLock<ColorChoice> = std::sync::OnceLock::new();

/// Sets the value of `--color`.
pub(crate) fn set_color(choice: ColorChoice) {
    let _set_once = COLOR.set(choice);
}

/// Whether diagnostics are coloured: as `--color` says; by default on a terminal, unless `NO_COLOR` is set.
pub(crate) fn colors() -> bool {
    use std::io::IsTerminal as _;
    match COLOR.get() {
        Some(ColorChoice::Always) => true,
        Some(ColorChoice::Never) => false,
        Some(ColorChoice::Auto) | None => {
            let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
            std::io::stderr().is_terminal() && wanted
        }
    }
}
