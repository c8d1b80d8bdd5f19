//! Debugging directives and pragmas: `.file`, `.loc`, `.section`, `.pragma`. PTX ISA §11.4.7, §11.5.
//!
//! Invariant: a checked `.loc` names a file that exists, or has a warning (P0912). The data of sections is
//! checked and kept, but not interpreted: line tables come from `.loc`.

use super::checker::Checker;
use super::constexpr::{self, Value};
use super::module::{self, Loc, Section, SectionValue};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::Version;
use crate::syntax::tree::{self, Expr, ExprKind, SectionLine, Spanned, Str};

impl Checker<'_> {
    /// A `.file`.
    pub(super) fn file(&mut self, file: &tree::File) {
        if file.timestamp.is_some() || file.size.is_some() {
            self.needs(file.span, "a time stamp or size in `.file`", Version::new(3, 2), 10, "11.5.3");
        }
        let Ok(index) = u32::try_from(file.index.value) else {
            self.report.push(
                Diagnostic::new(Code::BadDeclaration, file.index.span, "a file index has 32 bits")
                    .with_section("11.5.3"),
            );
            return;
        };
        let name = file.name.text(self.text).to_owned();
        if let Some(earlier) = self.files.insert(index, name)
            && earlier != file.name.text(self.text)
        {
            self.report.push(
                Diagnostic::new(Code::NotPortable, file.index.span, format!("file {index} is defined twice"))
                    .with_label("the last definition is used")
                    .with_section("11.5.3"),
            );
        }
    }

    /// Reports files that `.loc`s use but no `.file` declares, each once.
    pub(super) fn missing_files(&mut self) {
        for (index, span) in std::mem::take(&mut self.located) {
            if !self.files.contains_key(&index) {
                self.report.push(
                    Diagnostic::new(Code::MissingFile, span, format!("there is no `.file {index}`"))
                        .with_label("reports name no source file for these places")
                        .with_help(format!("`.file {index} \"name\"` at module scope"))
                        .with_section("11.5.4"),
                );
            }
        }
    }

    fn missing_file(&mut self, index: u64, span: Span) {
        self.report.push(
            Diagnostic::new(Code::Undeclared, span, format!("there is no `.file {index}`"))
                .with_help(format!("`.file {index} \"name\"` at module scope"))
                .with_section("11.5.4"),
        );
    }

    /// A `.loc`.
    pub(super) fn loc(&mut self, loc: &tree::Loc) -> Option<Loc> {
        let file = self.loc_file(loc.file)?;
        if let Some(inlined) = &loc.inlined {
            let what = "`.loc` with `inlined_at`";
            // ptxas accepts it from 7.0 on.
            if self.needs(loc.span, what, Version::new(7, 0), 10, "11.5.4")
                && !self.at_least(Version::new(7, 2))
            {
                self.report.push(
                    Diagnostic::new(Code::NonStandard, loc.span, format!("{what} is from PTX 7.2"))
                        .with_section("11.5.4"),
                );
            }
            self.loc_file(inlined.file)?;
        }
        if loc.intermediate {
            self.needs(loc.span, "`.loc_intermediate`", Version::new(9, 4), 10, "11.5");
            return None;
        }
        let number = |n: Spanned<u64>| u32::try_from(n.value).unwrap_or(u32::MAX);
        Some(Loc { file, line: number(loc.line), column: number(loc.column) })
    }

    fn loc_file(&mut self, file: Spanned<u64>) -> Option<u32> {
        let Ok(index) = u32::try_from(file.value) else {
            self.missing_file(file.value, file.span);
            return None;
        };
        self.located.entry(index).or_insert(file.span);
        Some(index)
    }

    /// A `.pragma`: unknown strings have no effect.
    pub(super) fn pragma(&mut self, strings: &[Str]) {
        let Some(first) = strings.first() else { return };
        self.needs(first.span, "`.pragma`", Version::new(2, 0), 10, "11.4.7");
        for string in strings {
            let text = string.text(self.text);
            // `enable_smem_spilling`, `frequency` and `used_bytes_mask` are from later versions; compilers
            // emit them.
            let known = ["nounroll", "enable_smem_spilling", "used_bytes_mask", "frequency"]
                .iter()
                .any(|p| text.starts_with(p));
            if !known {
                self.report.push(
                    Diagnostic::new(
                        Code::NotPortable,
                        string.span,
                        format!("the pragma `{text}` has no effect, and ptxas refuses it"),
                    )
                    .with_section("11.4.7"),
                );
            }
        }
    }
}

/// Checks the data of a section.
pub(super) fn section(checker: &mut Checker<'_>, section: &tree::Section) -> Section {
    let mut lines: Vec<module::SectionLine> = Vec::new();
    for line in &section.lines {
        match line {
            SectionLine::Label(name) => {
                lines.push(module::SectionLine::Label(name.text(checker.text).to_owned()));
                if !checker.at_least(Version::new(7, 0)) {
                    checker.report.push(
                        Diagnostic::new(
                            Code::NotPortable,
                            name.span,
                            "a label in a section is legal, but ptxas accepts it from PTX 7.0 on",
                        )
                        .with_section("11.5.2"),
                    );
                }
            }
            SectionLine::Data { ty, values, .. } => {
                if ty.value.bits() == 16 {
                    checker.needs(ty.span, "`.b16` in a section", Version::new(6, 0), 10, "11.5.2");
                }
                let kept = values.iter().map(|value| section_value(checker, ty.value.bits(), value));
                match lines.last_mut() {
                    Some(module::SectionLine::Data(before, list)) if *before == ty.value => list.extend(kept),
                    Some(_) | None => lines.push(module::SectionLine::Data(ty.value, kept.collect())),
                }
            }
        }
    }
    Section { name: section.name.text(checker.text).to_owned(), lines }
}

/// A value; after an error an arbitrary one.
fn section_value(checker: &mut Checker<'_>, width: u32, value: &Expr) -> SectionValue {
    let address = SectionValue::Address(written(value, checker.text).into());
    let sum = matches!(value.kind, ExprKind::Binary { .. });
    if is_distance(value) {
        checker.needs(
            value.span,
            "the distance between labels in a section",
            Version::new(7, 5),
            10,
            "11.5.2",
        );
        return address;
    }
    if names_section(value) {
        if sum {
            checker.needs(value.span, SUM, Version::new(3, 2), 10, "11.5.2");
        }
        return address;
    }
    match constexpr::evaluate(value, checker.text, &mut checker.report) {
        Some(Value::Const(number)) if !number.fits(width) => out_of_range(checker, value.span, width),
        Some(Value::Const(number)) => {
            let bits = number.bits().unwrap_or(0);
            return SectionValue::Number(bits & (u64::MAX >> (64 - width.clamp(1, 64))));
        }
        Some(Value::Symbol(_)) if sum => {
            checker.needs(value.span, SUM, Version::new(3, 2), 10, "11.5.2");
        }
        Some(Value::Symbol(_)) | None => {}
    }
    address
}

/// An address without blanks and comments.
fn written(value: &Expr, text: &str) -> String {
    match &value.kind {
        ExprKind::Paren(inner) => format!("({})", written(inner, text)),
        ExprKind::Unary { op, operand } => format!("{}{}", op.symbol(), written(operand, text)),
        ExprKind::Binary { op, left, right } => {
            format!("{}{}{}", written(left, text), op.symbol(), written(right, text))
        }
        ExprKind::Section(_)
        | ExprKind::Name(_)
        | ExprKind::Integer { .. }
        | ExprKind::Double(_)
        | ExprKind::Single(_)
        | ExprKind::WarpSz
        | ExprKind::Generic(_)
        | ExprKind::Mask { .. }
        | ExprKind::Ternary { .. }
        | ExprKind::Error => value.span.text(text).to_owned(),
    }
}

/// `label2-label1`
fn is_distance(value: &Expr) -> bool {
    let name = |e: &Expr| matches!(e.kind, ExprKind::Name(_));
    match &value.kind {
        ExprKind::Binary { op: tree::BinaryOp::Sub, left, right } => name(left) && name(right),
        ExprKind::Paren(inner) => is_distance(inner),
        ExprKind::Binary { .. }
        | ExprKind::Section(_)
        | ExprKind::Integer { .. }
        | ExprKind::Double(_)
        | ExprKind::Single(_)
        | ExprKind::WarpSz
        | ExprKind::Name(_)
        | ExprKind::Generic(_)
        | ExprKind::Mask { .. }
        | ExprKind::Unary { .. }
        | ExprKind::Ternary { .. }
        | ExprKind::Error => false,
    }
}

const SUM: &str = "a label plus a number in a section";

/// `.debug_info+12`
fn names_section(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Section(_) => true,
        ExprKind::Binary { left, right, .. } => names_section(left) || names_section(right),
        ExprKind::Paren(inner) => names_section(inner),
        ExprKind::Integer { .. }
        | ExprKind::Double(_)
        | ExprKind::Single(_)
        | ExprKind::WarpSz
        | ExprKind::Name(_)
        | ExprKind::Generic(_)
        | ExprKind::Mask { .. }
        | ExprKind::Unary { .. }
        | ExprKind::Ternary { .. }
        | ExprKind::Error => false,
    }
}

fn out_of_range(checker: &mut Checker<'_>, span: Span, width: u32) {
    checker.report.push(
        Diagnostic::new(
            Code::ImmediateOutOfRange,
            span,
            format!("`{}` does not fit `.b{width}`", span.text(checker.text)),
        )
        .with_section("11.5.2"),
    );
}
