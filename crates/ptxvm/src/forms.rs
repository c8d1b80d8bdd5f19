//! The instruction table for tools: one [`Form`] per row.
//!
//! Invariant: support is measured, not claimed. The checker supports the table's forms; interpreter support
//! is determined by binding the form, compiler support by selecting native code for it.

use ptx::isa::{Exactness, RowId};

/// How much of a form an engine implements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// All types and modifiers.
    Yes,
    /// Some types or modifiers.
    Partly,
    /// None: a module that uses it is refused when it is loaded.
    Missing,
}

impl Support {
    /// `yes`, `partly` or `missing`.
    pub fn word(self) -> &'static str {
        match self {
            Support::Yes => "yes",
            Support::Partly => "partly",
            Support::Missing => "missing",
        }
    }
}

/// One form of an instruction.
#[derive(Clone, Debug)]
pub struct Form {
    /// First word: `add`.
    pub mnemonic: &'static str,
    /// The form in the manual's notation.
    pub syntax: String,
    /// The values of its slots: `.type = .u16 .u32 ...`.
    pub sets: Vec<String>,
    /// Versions and targets, as in the table.
    pub since: &'static str,
    /// First PTX version.
    pub ptx: String,
    /// First target.
    pub target: String,
    /// Section of the manual.
    pub section: &'static str,
    /// What it computes.
    pub brief: &'static str,
    /// `exact`, `approximate`, or the bound.
    pub exactness: &'static str,
    /// Whether the checker supports it.
    pub checked: bool,
    /// Whether the interpreter executes it.
    pub interpreted: Support,
    /// Whether it is compiled natively, for a processor with AVX2 (AVX-512 has more).
    pub native: Support,
    /// Feature ids of the project that it covers.
    pub ids: &'static [&'static str],
}

/// The forms of the table in order; with `name`, those of that mnemonic. The name may include suffix words
/// (`shfl.sync`, `ld.global`), which the form must have.
pub fn isa(name: Option<&str>) -> Vec<Form> {
    RowId::all().filter(|row| name.is_none_or(|name| is_named(*row, name))).map(form).collect()
}

/// A form of a later manual that is not implemented.
#[derive(Clone, Debug)]
pub struct LaterForm {
    /// First word.
    pub mnemonic: &'static str,
    /// The words that the form has, in any order; `|` separates alternatives.
    pub syntax: String,
    /// First PTX version.
    pub ptx: String,
    /// First target; `all` where every target has it.
    pub target: String,
    /// Its purpose.
    pub brief: &'static str,
}

/// Forms that are recognised but not implemented: a module that uses one is refused by name. `name` is as for
/// [`isa`].
pub fn isa_later(name: Option<&str>) -> Vec<LaterForm> {
    let mut forms = Vec::new();
    for later in ptx::isa::later::LATER {
        let words = later.syntax.split_once('.').map_or("", |(_, words)| words);
        let has = |word: &str| {
            let mut all = words.split(['.', '|']).chain(later.may.split(' '));
            later.may == "*" || all.any(|w| w == word)
        };
        for mnemonic in later.mnemonics() {
            let named = name.is_none_or(|name| {
                let mut parts = name.split('.');
                parts.next() == Some(mnemonic) && parts.all(has)
            });
            if named {
                let dot = if words.is_empty() { "" } else { "." };
                forms.push(LaterForm {
                    mnemonic,
                    syntax: format!("{mnemonic}{dot}{words}"),
                    ptx: later.version().to_string(),
                    target: later.targets().next().map_or("all".to_owned(), |sm| sm.to_string()),
                    brief: later.brief,
                });
            }
        }
    }
    forms
}

/// Whether `name` is the row's mnemonic, with words that its suffix has.
fn is_named(row: RowId, name: &str) -> bool {
    let form = row.form();
    let mut words = name.split('.');
    let values = || form.row.sets.iter().flat_map(|set| set.values.split_whitespace());
    let bare = |value: &'static str| value.split('@').next().unwrap_or(value).trim_end_matches('*');
    let suffix = form.row.syntax.split_whitespace().next().unwrap_or_default();
    words.next() == Some(form.mnemonic)
        && words.all(|w| {
            suffix.split(['.', '{', '}', '<', '>']).any(|s| s == w) || values().any(|v| bare(v) == w)
        })
}

fn form(row: RowId) -> Form {
    let form = row.form();
    let columns = form.row;
    Form {
        mnemonic: form.mnemonic,
        syntax: form.syntax(),
        sets: form.choices(),
        since: columns.since,
        ptx: form.gate.ptx.map_or("1.0".to_owned(), |v| v.to_string()),
        target: form.gate.sm.map_or("all".to_owned(), |sm| sm.to_string()),
        section: columns.section,
        brief: columns.brief,
        exactness: match columns.exact {
            Exactness::Exact => "exact",
            Exactness::Bounded(bound) => bound,
            Exactness::Approximate => "approximate",
        },
        checked: true,
        interpreted: match ptx_exec::bind::support(row) {
            ptx_exec::bind::Support::All => Support::Yes,
            ptx_exec::bind::Support::Some => Support::Partly,
            ptx_exec::bind::Support::None => Support::Missing,
        },
        native: native(row),
        ids: columns.ids,
    }
}

/// How much of a row has native code.
#[cfg(feature = "jit")]
fn native(row: RowId) -> Support {
    let all = row.spellings();
    match all
        .iter()
        .filter(|mods| ptx_jit::native(row, mods, ptx_jit::Target::generic(ptx_jit::Level::Avx2)))
        .count()
    {
        0 => Support::Missing,
        n if n == all.len() => Support::Yes,
        _ => Support::Partly,
    }
}

/// How much of a row has native code: nothing, without the compiler.
#[cfg(not(feature = "jit"))]
fn native(_row: RowId) -> Support {
    Support::Missing
}
