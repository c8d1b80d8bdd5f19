//! The header of a module: `.version`, `.target`, `.address_size`. PTX ISA §11.1.
//!
//! Invariant: if the header has an error, [`Header::level`] is `None`, and versions and targets are not
//! checked in the rest of the module.

use super::checker::Checker;
use super::module::{AddressSize, Target};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Level, Sm, Version};
use crate::syntax::tree::{self, Item};

/// The contents of the header.
#[derive(Clone, Debug, Default)]
pub(super) struct Header {
    /// `.version`
    pub(super) version: Option<Version>,
    /// Place of its number.
    pub(super) version_span: Span,
    /// The architecture in force.
    pub(super) sm: Option<Sm>,
    /// Place of its name.
    pub(super) sm_span: Span,
    /// The first `.target`.
    first_target: Option<Span>,
    /// The newest architecture of all `.target`s.
    pub(super) newest: Option<Sm>,
    /// Place of `texmode_...`, and whether it is `texmode_independent`.
    texmode: Option<(bool, Span)>,
    /// Place of `map_f64_to_f32`.
    map_f64: Option<Span>,
    /// Place of `debug`.
    pub(super) debug: Option<Span>,
    /// `.address_size`
    address_size: Option<AddressSize>,
}

impl Header {
    /// Handles an `.address_size` with a syntax error: compilers write 64.
    pub(super) fn broken_address_size(&mut self) {
        self.address_size.get_or_insert(AddressSize::Bits64);
    }

    /// The level for comparisons; `None` if the header has an error.
    pub(super) fn level(&self) -> Option<Level> {
        Some(Level { ptx: self.version?, sm: self.sm?, map_f64: self.map_f64.is_some() })
    }

    /// Width of generic addresses. Without the directive it is 32 bits. Before PTX 2.3, which has no such
    /// directive, it is the host's, 64 bits.
    pub(super) fn address_size(&self) -> AddressSize {
        let before_directive = self.version.is_some_and(|v| v < Version::new(2, 3));
        let default = if before_directive { AddressSize::Bits64 } else { AddressSize::Bits32 };
        self.address_size.unwrap_or(default)
    }

    /// Whether both widths are allowed: before PTX 2.3 a module cannot state its width.
    pub(super) fn address_size_is_open(&self) -> bool {
        self.address_size.is_none() && self.version.is_some_and(|v| v < Version::new(2, 3))
    }

    /// Whether textures and samplers are separate.
    pub(super) fn texmode_independent(&self) -> bool {
        self.texmode.is_some_and(|(independent, _)| independent)
    }

    /// The module's target, for the architecture that it is loaded on.
    pub(super) fn target(&self, gpu_name: Option<Sm>) -> Option<Target> {
        Some(Target {
            sm: gpu_name.or(self.newest)?,
            texmode_independent: self.texmode_independent(),
            map_f64_to_f32: self.map_f64.is_some(),
            debug: self.debug.is_some(),
        })
    }
}

/// Published PTX versions, as the largest minor of each major.
const LARGEST_MINOR: [(u32, u32); 9] =
    [(1, 5), (2, 3), (3, 2), (4, 3), (5, 0), (6, 5), (7, 8), (8, 8), (9, 9)];

const OPTIONS: [&str; 4] = ["texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"];

impl Checker<'_> {
    /// Reads `.version`, the first `.target` and `.address_size` among the first items, and reports a wrong
    /// order.
    pub(super) fn header_of(&mut self, items: &[Item]) {
        let broken_start = matches!(items.first(), Some(Item::Error(_)));
        let any_target = items.iter().any(|item| matches!(item, Item::Target(_)));
        let mut seen_version = false;
        let mut seen_target = false;
        let mut seen_size: Option<Span> = None;
        for (index, item) in items.iter().enumerate() {
            match item {
                Item::Version(version) => {
                    if seen_version {
                        self.duplicate(version.span, ".version", self.header.version_span, "11.1.1");
                    } else {
                        seen_version = true;
                        self.version(version);
                        if index > 0 && !broken_start {
                            self.misplaced(
                                version.span,
                                "`.version` must be the first directive of a module",
                                "11.1.1",
                            );
                        }
                    }
                }
                Item::Target(target) if !seen_target => {
                    seen_target = true;
                    self.header.first_target = Some(target.span);
                    self.target(target);
                    // An `.address_size` between the two is reported itself.
                    let after_version = index > 0
                        && matches!(
                            items[index - 1],
                            Item::Version(_) | Item::Error(_) | Item::AddressSize(_)
                        );
                    if seen_version && !after_version {
                        self.misplaced(target.span, "`.target` must follow `.version` immediately", "11.1.2");
                    }
                }
                Item::AddressSize(size) => {
                    let after_target =
                        index > 0 && matches!(items[index - 1], Item::Target(_) | Item::Error(_));
                    if let Some(earlier) = seen_size {
                        self.duplicate(size.span, ".address_size", earlier, "11.1.3");
                    } else {
                        seen_size = Some(size.span);
                        self.address_size(size);
                        // Without a target the order can only be wrong with respect to the version.
                        if !after_target && (any_target || !seen_version) {
                            self.misplaced(
                                size.span,
                                "`.address_size` must follow `.target` immediately",
                                "11.1.3",
                            );
                        }
                    }
                }
                Item::Target(_)
                | Item::Variable(_)
                | Item::Function(_)
                | Item::Alias(_)
                | Item::File(_)
                | Item::Section(_)
                | Item::Dwarf(_)
                | Item::Pragma(_)
                | Item::Loc(_)
                | Item::Error(_) => {}
            }
        }
        let start = items.first().map_or(Span::default(), |item| {
            let start = item.span().start;
            Span::new(start, start + self.first_word(item.span()).len() as u32)
        });
        if broken_start {
            return;
        }
        if !seen_version {
            self.report.push(
                Diagnostic::new(Code::MissingVersion, start, "a module must begin with `.version`")
                    .with_help("`.version 6.4`, then `.target sm_70`")
                    .with_section("11.1.1"),
            );
        } else if !seen_target {
            self.report.push(
                Diagnostic::new(
                    Code::MissingTarget,
                    self.header.version_span,
                    "`.version` must be followed by `.target`",
                )
                .with_help("`.target sm_70`")
                .with_section("11.1.2"),
            );
        }
    }

    /// Another `.target`, which may change the architecture for the following text.
    pub(super) fn later_target(&mut self, target: &tree::Target) {
        if self.header.first_target == Some(target.span) {
            return;
        }
        self.report.push(
            Diagnostic::new(
                Code::NotPortable,
                target.span,
                "a second `.target` is legal, but ptxas refuses it",
            )
            .with_section("11.1.2"),
        );
        self.target(target);
    }

    /// A `.target` in a function, which ptxas accepts: it has no effect if it repeats what is in force.
    pub(super) fn target_in_body(&mut self, target: &tree::Target) {
        let mut differs = None;
        for name in &target.names {
            let repeats = match name.text(self.text) {
                "texmode_independent" => self.header.texmode_independent(),
                "texmode_unified" => !self.header.texmode_independent(),
                "map_f64_to_f32" => self.header.map_f64.is_some(),
                "debug" => self.header.debug.is_some(),
                // After a wrong header, nothing is compared.
                text => self.header.sm.is_none() || Sm::from_name(text) == self.header.sm,
            };
            if !repeats {
                differs = differs.or(Some(name.span));
            }
        }
        self.report.push(match differs {
            Some(span) => {
                let name = span.text(self.text);
                let message = format!("`.target` inside a function, and `{name}` is not the module's target");
                Diagnostic::new(Code::MisplacedDirective, span, message)
                    .with_related(self.header.sm_span, "the module's target")
                    .with_help("it is allowed at module scope only")
                    .with_section("11.1.2")
            }
            None => Diagnostic::new(Code::NonStandard, target.span, "`.target` inside a function")
                .with_label("has no effect, because it repeats the module's target")
                .with_section("11.1.2"),
        });
    }

    fn version(&mut self, version: &tree::Version) {
        let Some(number) = version.number else { return };
        self.header.version_span = number.span;
        let (major, minor) = number.value;
        let known = LARGEST_MINOR.iter().any(|(m, largest)| *m == major && minor <= *largest);
        let parts = (u8::try_from(major), u8::try_from(minor));
        if let (true, (Ok(major), Ok(minor))) = (known, parts) {
            self.header.version = Some(Version::new(major, minor));
            return;
        }
        self.report.push(
            Diagnostic::new(Code::UnknownVersion, number.span, format!("there is no PTX version {major}.{minor}"))
                .with_help("versions are 1.0 to 1.5, 2.0 to 2.3, 3.0 to 3.2, 4.0 to 4.3, 5.0, 6.0 to 6.5, 7.0 to 7.8, 8.0 to 8.8 and 9.x")
                .with_section("11.1.1"),
        );
    }

    fn target(&mut self, target: &tree::Target) {
        let mut sm: Option<(Sm, Span)> = None;
        let mut bad = false;
        for name in &target.names {
            let text = name.text(self.text);
            if let Some(found) = Sm::from_name(text) {
                if let Some(earlier) = sm {
                    self.report.push(
                        Diagnostic::new(Code::NonStandard, name.span, "a `.target` names one architecture")
                            .with_label("the newest of the architectures is the target")
                            .with_related(earlier.1, "the first")
                            .with_section("11.1.2"),
                    );
                    if earlier.0 >= found {
                        continue;
                    }
                }
                sm = Some((found, name.span));
            } else if OPTIONS.contains(&text) {
                self.target_option(text, name.span);
            } else {
                bad = true;
                self.unknown_target(text, name.span);
            }
        }
        if let Some((found, span)) = sm {
            self.architecture(found, span);
        } else if !bad && self.header.sm.is_none() {
            self.report.push(
                Diagnostic::new(Code::MissingTarget, target.span, "`.target` names no architecture")
                    .with_help("`.target sm_70`")
                    .with_section("11.1.2"),
            );
        }
        if let (Some(span), Some(sm)) = (self.header.map_f64, self.header.sm)
            && sm.number >= 13
        {
            self.report.push(
                Diagnostic::new(
                    Code::ConflictingDirectives,
                    span,
                    format!("`map_f64_to_f32` cannot be used with {sm}"),
                )
                .with_help("it is for targets without `.f64`: sm_10, sm_11, sm_12")
                .with_section("11.1.2"),
            );
        }
    }

    fn architecture(&mut self, sm: Sm, span: Span) {
        self.header.sm = Some(sm);
        // Cached rows were compared with the previous architecture.
        self.selected.clear();
        self.header.sm_span = span;
        self.header.newest = self.header.newest.max(Some(sm));
        if let Some(version) = self.header.version
            && version < sm.introduced()
        {
            self.report.push(
                Diagnostic::new(
                    Code::NeedsNewerVersion,
                    span,
                    format!("{sm} needs PTX {}; this module says {version}", sm.introduced()),
                )
                .with_related(self.header.version_span, "the version")
                .with_section("11.1.2"),
            );
        }
        if let Some(gpu) = self.options.gpu_name
            && !crate::isa::gate::has_features_of(gpu, sm)
        {
            self.report.push(
                Diagnostic::new(Code::TargetMismatch, span, format!("code for {sm} does not run on {gpu}"))
                    .with_label("the module's target")
                    .with_section("11.1.2"),
            );
        }
    }

    fn target_option(&mut self, option: &str, span: Span) {
        match option {
            "texmode_unified" | "texmode_independent" => {
                let independent = option == "texmode_independent";
                self.header_needs(span, option, Version::new(1, 5));
                match self.header.texmode {
                    Some((earlier, place)) if earlier != independent => self.report.push(
                        Diagnostic::new(Code::ConflictingDirectives, span, "a module has one texturing mode")
                            .with_related(place, "the other mode")
                            .with_section("11.1.2"),
                    ),
                    Some(_) | None => self.header.texmode = Some((independent, span)),
                }
            }
            "debug" => {
                self.header_needs(span, option, Version::new(3, 0));
                self.header.debug = Some(span);
            }
            _ => self.header.map_f64 = Some(span),
        }
    }

    fn header_needs(&mut self, span: Span, what: &str, version: Version) {
        if let Some(has) = self.header.version
            && has < version
        {
            self.report.push(
                Diagnostic::new(
                    Code::NeedsNewerVersion,
                    span,
                    format!("`{what}` needs PTX {version}; this module says {has}"),
                )
                .with_related(self.header.version_span, "the version")
                .with_section("11.1.2"),
            );
        }
    }

    fn unknown_target(&mut self, text: &str, span: Span) {
        let published: Vec<String> = Sm::PUBLISHED.iter().map(|(n, _)| format!("sm_{n}")).collect();
        let words = OPTIONS.into_iter().chain(published.iter().map(String::as_str));
        let mut diagnostic =
            Diagnostic::new(Code::UnknownTarget, span, format!("there is no target `{text}`"))
                .with_section("11.1.2");
        if let Some(near) = crate::spelling::closest(text, words) {
            diagnostic = diagnostic.with_help(format!("did you mean `{near}`?"));
        }
        self.report.push(diagnostic);
    }

    fn address_size(&mut self, size: &tree::AddressSize) {
        self.header_needs(size.span, ".address_size", Version::new(2, 3));
        let Some(number) = size.size else { return };
        match number.value {
            32 => self.header.address_size = Some(AddressSize::Bits32),
            64 => self.header.address_size = Some(AddressSize::Bits64),
            other => {
                // Avoids further reports about 64-bit addresses.
                self.header.address_size = Some(AddressSize::Bits64);
                let message = format!("an address has 32 or 64 bits, not {other}");
                self.report
                    .push(Diagnostic::new(Code::BadDeclaration, number.span, message).with_section("11.1.3"));
            }
        }
    }

    fn duplicate(&mut self, span: Span, what: &str, earlier: Span, section: &'static str) {
        self.report.push(
            Diagnostic::new(Code::MisplacedDirective, span, format!("a module has one `{what}`"))
                .with_related(earlier, "the first")
                .with_section(section),
        );
    }

    fn misplaced(&mut self, span: Span, message: &str, section: &'static str) {
        self.report.push(Diagnostic::new(Code::MisplacedDirective, span, message).with_section(section));
    }
}
