//! The state of checking one module, and the traversal of its items.
//!
//! Invariant: items are checked in the order of the text, each once. An item with an error declares its name
//! as [`Entity::Broken`], so that its uses are not reported.

use super::CheckOptions;
use super::header::Header;
use super::module::{Function, LocalVar, Module, Register, Section, Signature, Source, Variable};
use super::recursion::{self, CallEdge};
use super::report::Report;
use super::scope::{Entity, Scopes};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Match, Sm, Version};
use crate::syntax::tree::{self, Item, Name};
use crate::syntax::{Parser, TokenKind, lexer};
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The state of checking one module.
pub(super) struct Checker<'a> {
    pub(super) text: &'a str,
    pub(super) options: CheckOptions,
    pub(super) report: Report,
    pub(super) header: Header,
    pub(super) scopes: Scopes<'a>,
    /// Names of files by index.
    pub(super) files: BTreeMap<u32, String>,
    /// Files used by `.loc`s, with the first use of each; the `.file` may follow.
    pub(super) located: BTreeMap<u32, Span>,
    pub(super) variables: Vec<Variable>,
    pub(super) functions: Vec<Function>,
    pub(super) prototypes: Vec<Signature>,
    /// Bytes of each constant bank so far.
    pub(super) const_bytes: [u64; 11],
    /// Registers and local variables of module scope (PTX before 3.0).
    pub(super) registers: Vec<Register>,
    pub(super) locals: Vec<LocalVar>,
    /// Bytes of all initialisers so far.
    pub(super) initial_bytes: usize,
    /// The number of names and labels from `name<N>` so far, without registers.
    pub(super) expanded: u64,
    /// Direct calls.
    pub(super) calls: Vec<CallEdge>,
    /// Texture identifiers used by `.tex` variables.
    pub(super) texture_ids: u32,
    /// DWARF data.
    pub(super) sections: Vec<Section>,
    pub(super) dwarf: Vec<String>,
    /// Names that were reported as undeclared in this function.
    pub(super) undeclared: HashSet<String>,
    /// The number of computed suggestions.
    pub(super) suggestions: u32,
    /// Rows of instructions that occurred, by their text and the shapes of the operands.
    pub(super) selected: HashMap<(&'a str, u128), Match, RandomState>,
}

impl<'a> Checker<'a> {
    /// Starts with the diagnostics of the preprocessor and lexer.
    pub(super) fn new(text: &'a str, options: CheckOptions, parsed: Vec<Diagnostic>) -> Self {
        Self {
            text,
            options,
            report: Report::new(options.strict, parsed),
            header: Header::default(),
            scopes: Scopes::new(),
            files: BTreeMap::new(),
            located: BTreeMap::new(),
            variables: Vec::new(),
            functions: Vec::new(),
            prototypes: Vec::new(),
            const_bytes: [0; 11],
            registers: Vec::new(),
            locals: Vec::new(),
            initial_bytes: 0,
            expanded: 0,
            calls: Vec::new(),
            texture_ids: 0,
            sections: Vec::new(),
            dwarf: Vec::new(),
            undeclared: HashSet::new(),
            suggestions: 0,
            selected: HashMap::default(),
        }
    }

    /// The module, if there is no error, and the diagnostics.
    pub(super) fn finish(self, source: Arc<Source>) -> (Option<Module>, Vec<Diagnostic>) {
        let clean = self.report.errors() == 0;
        let diagnostics = super::cascade::without_consequences(self.text, self.report.into_sorted());
        let (Some(version), Some(target), true) =
            (self.header.version, self.header.target(self.options.gpu_name), clean)
        else {
            return (None, diagnostics);
        };
        let module = Module {
            source,
            version,
            target,
            address_size: self.header.address_size(),
            files: self.files.into_iter().collect(),
            variables: self.variables,
            functions: self.functions,
            prototypes: self.prototypes,
            registers: self.registers,
            locals: self.locals,
            sections: self.sections,
            dwarf: self.dwarf,
        };
        (Some(module), diagnostics)
    }

    /// Parses and checks all items.
    pub(super) fn module(&mut self, parser: &mut Parser<'_>) {
        while let Some(item) = parser.item() {
            self.report.parsed(parser);
            match &item {
                // The header was parsed before.
                Item::Version(_) | Item::AddressSize(_) => {}
                Item::Error(span) => {
                    let word = self.first_word(*span);
                    if crate::spelling::closest(word, [".address_size"].into_iter()).is_some() {
                        self.header.broken_address_size();
                    }
                    self.broken_names_of(*span);
                }
                Item::Target(target) => self.later_target(target),
                Item::Variable(variable) => self.module_variable(variable),
                Item::Function(function) => self.function(function, parser),
                Item::Alias(alias) => self.alias(alias),
                Item::File(file) => self.file(file),
                Item::Section(section) => self.section(section),
                Item::Dwarf(span) => self.dwarf_line(*span),
                Item::Pragma(pragma) => self.pragma(&pragma.strings),
                Item::Loc(loc) => {
                    self.loc(loc);
                }
            }
        }
        self.report.parsed(parser);
        self.end_of_module();
    }

    /// Whether the module declares at least this version. True if the version is unknown.
    pub(super) fn at_least(&self, version: Version) -> bool {
        self.header.level().is_none_or(|level| level.ptx >= version)
    }

    /// Whether functions have a stack: PTX 2.0 and `sm_20` on. PTX ISA §7.1.1.
    pub(super) fn has_stack(&self) -> bool {
        self.header.level().is_none_or(|level| level.ptx >= Version::new(2, 0) && level.sm.number >= 20)
    }

    /// Reports that `what` needs a newer version or target, if so.
    pub(super) fn needs(
        &mut self,
        span: Span,
        what: &str,
        ptx: Version,
        sm: u16,
        section: &'static str,
    ) -> bool {
        let gate = crate::isa::Gate {
            ptx: Some(ptx),
            sm: (sm > 10).then_some(Sm::new(sm)),
            ..crate::isa::Gate::OPEN
        };
        self.gate(&gate, span, what, section)
    }

    /// Declares a name in the innermost scope, and reports a redeclaration.
    pub(super) fn declare(&mut self, name: Name, entity: Entity) {
        let text = name.text(self.text);
        self.reserved(name);
        if let Err(earlier) = self.scopes.declare(text, entity, name.span) {
            self.redeclared(name.span, text, earlier);
        }
    }

    /// Declares the names in a part with a syntax error as broken, so that their uses are not reported.
    pub(super) fn broken_names_of(&mut self, span: Span) {
        let broken = span.text(self.text);
        for token in lexer::lex(broken).tokens.into_iter().filter(|token| token.kind == TokenKind::Ident) {
            let name = token.span.text(broken);
            let place = Span::new(span.start + token.span.start, span.start + token.span.end);
            if self.scopes.find(name).is_none() {
                self.scopes.break_family(name);
                // It is declared in no scope, so this cannot fail.
                let _ = self.scopes.declare(name, Entity::Broken, place);
            }
        }
    }

    /// Reports a redeclaration. Labels are declared before everything else in their block: if a label has the
    /// name of a register, uses of the register are not reported.
    pub(super) fn redeclared(&mut self, span: Span, name: &str, earlier: Span) {
        self.scopes.break_label(name);
        self.report.push(
            Diagnostic::new(Code::Redeclared, span, format!("`{name}` is declared twice in one scope"))
                .with_label("declared again")
                .with_related(earlier, "first declared here")
                .with_section("5.4.1"),
        );
    }

    /// Reports a reserved name. PTX ISA §4.3.2, §4.4. Programs use names of instructions and special
    /// registers, and ptxas accepts them: a declaration hides the special register.
    pub(super) fn reserved(&mut self, name: Name) {
        let text = name.text(self.text);
        if super::gate::is_opcode(text, self.header.level().map(|l| l.ptx)) {
            let message = format!("`{text}` is the name of an instruction, and so reserved");
            self.report.push(Diagnostic::new(Code::NonStandard, name.span, message).with_section("4.3.2"));
        } else if text == "WARP_SZ" {
            self.report.push(
                Diagnostic::new(
                    Code::ReservedName,
                    name.span,
                    format!("`{text}` cannot be declared: it is a predefined constant"),
                )
                .with_label("reserved")
                .with_help(format!("another name, such as `{text}_`"))
                .with_section("4.4"),
            );
        } else if text.starts_with('%') && crate::isa::Sreg::from_name(text).is_some() {
            let message = format!("`{text}` is the name of a special register, and so reserved");
            self.report.push(
                Diagnostic::new(Code::NonStandard, name.span, message)
                    .with_label("hides the special register")
                    .with_section("4.4"),
            );
        }
    }

    fn end_of_module(&mut self) {
        self.missing_files();
        // Registers or local variables of module scope disable the ABI, and with it the stack.
        if !self.has_stack() || !self.registers.is_empty() || !self.locals.is_empty() {
            recursion::report(self.functions.len(), &self.calls, &mut self.report);
        }
        if let Some(span) = self.header.debug
            && self.sections.is_empty()
            && self.dwarf.is_empty()
            && self.report.errors() == 0
        {
            self.report.push(
                Diagnostic::new(
                    Code::BadDeclaration,
                    span,
                    "`debug` is declared, but there is no DWARF data",
                )
                .with_label("needs `.section .debug_...` or `@@DWARF` lines")
                .with_section("11.1.2"),
            );
        }
    }

    fn section(&mut self, section: &tree::Section) {
        self.needs(section.span, "`.section`", Version::new(2, 0), 10, "11.5.2");
        let section = super::debug::section(self, section);
        self.sections.push(section);
    }

    fn dwarf_line(&mut self, span: Span) {
        self.dwarf.push(span.text(self.text).trim_end().to_owned());
        self.needs(span, "`@@DWARF`", Version::new(1, 2), 10, "11.5.1");
        if span.text(self.text).starts_with("@@dwarf") {
            let text = "`@@dwarf` in lower case is only in a heading of the manual";
            self.report.push(
                Diagnostic::new(Code::NonStandard, span, text).with_help("`@@DWARF`").with_section("11.5.1"),
            );
        }
        if self.at_least(Version::new(2, 0)) && self.header.level().is_some() {
            if self.dwarf.len() == 1 {
                let text = "`@@DWARF` is legal, but ptxas crashes on it in new versions of PTX";
                self.report.push(
                    Diagnostic::new(Code::NotPortable, span, text)
                        .with_help("`.section`")
                        .with_section("11.5.1"),
                );
            }
            self.report.push(
                Diagnostic::new(Code::Deprecated, span, "`@@DWARF` is deprecated from PTX 2.0 on")
                    .with_help("`.section`")
                    .with_section("11.5.1"),
            );
        }
    }
}
