//! The parameters of each function of the driver API, from `arguments.txt`.

use crate::world::Kind;
use std::collections::BTreeMap;

/// A parameter.
pub(crate) struct Parameter {
    #[allow(dead_code, reason = "only texts of sequences name it")]
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// A wrong argument may be ignored.
    #[allow(dead_code, reason = "sequences leave it alone")]
    pub(crate) optional: bool,
}

/// The table.
pub(crate) fn table() -> BTreeMap<&'static str, Vec<Parameter>> {
    let lines = include_str!("../arguments.txt").lines().filter(|line| !line.starts_with('#'));
    let row = |line: &'static str| {
        let (name, parameters) = line.split_once(": ").unwrap_or((line, ""));
        let parameter = |text: &'static str| {
            let (name, kind) = text.split_once(' ').unwrap_or_else(|| panic!("{line}: `{text}`"));
            let optional = kind.ends_with('?');
            Parameter { name, kind: Kind::of(kind.trim_end_matches('?')), optional }
        };
        (name, parameters.split(", ").filter(|text| !text.is_empty()).map(parameter).collect())
    };
    lines.map(row).collect()
}

/// The implemented functions, from the documentation's page, with their names in the table.
pub(crate) fn implemented() -> Vec<(&'static str, &'static str)> {
    let page = include_str!("../../../../docs/cuda-entry-points.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    let names = rows.filter(|(_, brief)| !brief.starts_with("refused")).map(|(name, _)| name);
    names.map(|name| (name, name.trim_end_matches("_ptds").trim_end_matches("_ptsz"))).collect()
}
