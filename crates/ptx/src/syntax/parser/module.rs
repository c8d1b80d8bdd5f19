//! Items of module scope. PTX ISA §11.1, §11.2.3, §11.4.7.
//!
//! The checker validates order (`.version` first, then `.target`) and values.

use super::super::tree::{AddressSize, Alias, Item, Linkage, Pragma, Spanned, Target, Version};
use super::declaration::{linkage_named, space_named};
use super::function::is_function_directive;
use super::{K, Parse, Parser, Reported, is_directive, is_module_directive};
use crate::Span;
use crate::diag::{Code, Diagnostic};

impl Parser<'_> {
    /// The items, including bodies, up to the item that contains token number `end`; at least one.
    pub(crate) fn items(&mut self, end: usize) -> Vec<Item> {
        let mut items = Vec::new();
        while items.is_empty() || self.at < end {
            let Some(mut item) = self.item() else { break };
            if let Item::Function(function) = &mut item
                && self.body_follows()
            {
                function.body = Some(self.body());
                function.span = function.span.to(self.previous());
            }
            items.push(item);
        }
        items
    }

    /// Whether the last item is a function whose body comes next: [`begin_body`](Self::begin_body) enters it.
    pub(crate) fn body_follows(&self) -> bool {
        self.body_follows
    }

    /// The next item, a function without its body; `None` at the end of the text. A body that was not entered
    /// is skipped.
    pub(crate) fn item(&mut self) -> Option<Item> {
        if self.body_follows {
            self.begin_body();
            while self.piece().is_some() {}
        }
        if self.is_end() {
            return None;
        }
        let before = self.at;
        let start = self.span();
        self.unwinding = false;
        self.depth = 0;
        self.unexpected_reported = false;
        let item = self.item_or_reported();
        if let Ok(Item::Function(_)) = item {
            self.last_body = None;
        }
        Some(item.unwrap_or_else(|Reported| {
            if self.at == before {
                self.bump();
            }
            Item::Error(start.to(self.previous()))
        }))
    }

    fn item_or_reported(&mut self) -> Parse<Item> {
        let last_body = self.last_body;
        match self.kind() {
            Some(K::DotWord) => {
                let before = self.at;
                let is_line = matches!(
                    self.word(),
                    "version" | "target" | "address_size" | "file" | "loc" | "loc_intermediate"
                );
                let item = self.directive();
                if is_line {
                    self.end_of_line(item.is_err());
                } else if item.is_err() {
                    self.skip_item(before);
                }
                item
            }
            Some(K::DwarfLine) => Ok(Item::Dwarf(self.bump())),
            Some(K::RBrace) => {
                let span = self.bump();
                let diagnostic = Diagnostic::new(Code::UnbalancedBrace, span, "`}` without its `{`");
                Err(self.report(with_body(diagnostic, last_body)))
            }
            Some(K::Semicolon) => {
                let span = self.bump();
                let diagnostic = Diagnostic::new(Code::UnexpectedToken, span, "`;` without a statement")
                    .with_help("remove it")
                    .with_section("4.3");
                Err(self.report(diagnostic))
            }
            _ => Err(self.stray(last_body)),
        }
    }

    /// The end of a directive that ends with its line: only another directive may follow on it.
    fn end_of_line(&mut self, reported: bool) {
        if self.is_end() || self.first_on_line() || (self.is(K::DotWord) && !reported) {
            return;
        }
        if !reported {
            self.expected("the end of the line");
        }
        self.skip_line();
    }

    /// Reports a statement outside of a function, once for all statements up to the next item or `}`.
    fn stray(&mut self, last_body: Option<Span>) -> Reported {
        let statement = matches!(self.kind(), Some(K::Ident | K::At));
        let message = if statement {
            format!("statement outside of a function: {}", self.found())
        } else {
            format!("expected a directive, found {}", self.found())
        };
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, self.span(), message).with_section("4.3");
        self.unexpected(with_body(diagnostic, last_body));
        let mut open = 0usize;
        while !self.is_end() {
            match self.kind() {
                Some(K::LBrace) => open += 1,
                Some(K::RBrace) if open == 0 => {
                    self.bump();
                    break;
                }
                Some(K::RBrace) => open -= 1,
                Some(K::DotWord) if self.first_on_line() && is_module_directive(self.word()) => break,
                _ => {}
            }
            self.bump();
        }
        Reported
    }

    fn directive(&mut self) -> Parse<Item> {
        let word = self.word();
        match word {
            "version" => self.version().map(Item::Version),
            "target" => self.target().map(Item::Target),
            "address_size" => self.address_size().map(Item::AddressSize),
            "alias" => self.alias().map(Item::Alias),
            "file" => self.file().map(Item::File),
            "section" => self.section().map(Item::Section),
            "loc" | "loc_intermediate" => self.loc().map(Item::Loc),
            "pragma" => self.pragma().map(Item::Pragma),
            "entry" | "func" => self.function(None).map(Item::Function),
            _ if linkage_named(word).is_some() => self.linked(),
            _ if space_named(word).is_some() => self.variable(None).map(Item::Variable),
            _ => Err(self.unknown_directive()),
        }
    }

    /// The item after a linking directive.
    fn linked(&mut self) -> Parse<Item> {
        let linkage = self.linkage();
        match self.word() {
            "entry" | "func" => self.function(linkage).map(Item::Function),
            word if space_named(word).is_some() => self.variable(linkage).map(Item::Variable),
            _ => Err(self.expected("a state space, `.entry` or `.func`")),
        }
    }

    /// Linking directives. Several are reported, and the first is used.
    pub(super) fn linkage(&mut self) -> Option<Spanned<Linkage>> {
        let mut first: Option<Spanned<Linkage>> = None;
        while let Some(value) = linkage_named(self.word()) {
            let span = self.bump();
            match first {
                None => first = Some(Spanned { value, span }),
                Some(first) => {
                    let message = format!("`.{}` after `.{}`", value.name(), first.value.name());
                    let diagnostic = Diagnostic::new(Code::ConflictingDirectives, span, message)
                        .with_related(first.span, "the first linking directive")
                        .with_section("11.6");
                    self.report(diagnostic);
                }
            }
        }
        first
    }

    pub(super) fn unknown_directive(&mut self) -> Reported {
        if is_function_directive(self.word()) {
            let message = format!("`{}` outside of the head of a function", self.text());
            let diagnostic = Diagnostic::new(Code::MisplacedDirective, self.span(), message)
                .with_help("it belongs between the parameters and the body")
                .with_section("11.4");
            return self.report(diagnostic);
        }
        let message = format!("there is no directive `{}`", self.text());
        self.report(Diagnostic::new(Code::UnknownDirective, self.span(), message).with_section("4.3.1"))
    }

    fn version(&mut self) -> Parse<Version> {
        let start = self.bump();
        if !matches!(self.kind(), Some(K::Decimal | K::Integer)) {
            return Err(self.expected_on_line("a version such as `6.4`"));
        }
        let text = self.text();
        let span = self.bump();
        let parts = text.split_once('.').and_then(|(major, minor)| Some((digits(major)?, digits(minor)?)));
        if parts.is_none() {
            let diagnostic = Diagnostic::new(Code::BadNumber, span, format!("`{text}` is not a version"))
                .with_help("a version is `major.minor`, such as `6.4`")
                .with_section("11.1.1");
            self.report(diagnostic);
        }
        Ok(Version { span: start.to(span), number: parts.map(|value| Spanned { value, span }) })
    }

    pub(super) fn target(&mut self) -> Parse<Target> {
        let start = self.bump();
        if !self.is(K::Ident) {
            return Err(self.expected_on_line("a target such as `sm_70`"));
        }
        let names = self.names("a target such as `sm_70`")?;
        Ok(Target { span: start.to(self.previous()), names })
    }

    fn address_size(&mut self) -> Parse<AddressSize> {
        let start = self.bump();
        let size = Some(self.integer("`32` or `64`")?);
        Ok(AddressSize { span: start.to(self.previous()), size })
    }

    fn alias(&mut self) -> Parse<Alias> {
        let start = self.bump();
        let name = self.name("the name of a function")?;
        self.expect(K::Comma, "`,` and the function that the alias stands for")?;
        let target = self.name("the name of a function")?;
        self.semicolon()?;
        Ok(Alias { span: start.to(self.previous()), name, target })
    }

    /// `.pragma "…", "…";`
    pub(super) fn pragma(&mut self) -> Parse<Pragma> {
        let start = self.bump();
        let strings = self.strings()?;
        self.semicolon()?;
        Ok(Pragma { span: start.to(self.previous()), strings })
    }

    /// Skips to the next item: after a `;` or a balanced `{…}`, or to a directive that begins an item.
    fn skip_item(&mut self, before: usize) {
        let (mut braces, mut parens) = (0usize, 0usize);
        while !self.is_end() {
            let outside = braces == 0 && parens == 0;
            match self.kind() {
                Some(K::Semicolon) if outside => {
                    self.bump();
                    return;
                }
                Some(K::LParen) => parens += 1,
                Some(K::RParen) => parens = parens.saturating_sub(1),
                Some(K::LBrace) => {
                    braces += 1;
                    parens = 0;
                }
                Some(K::RBrace) => {
                    braces = braces.saturating_sub(1);
                    if braces == 0 {
                        self.bump();
                        return;
                    }
                }
                Some(K::DotWord) if self.at > before => {
                    let word = self.word();
                    let declaration =
                        outside && self.first_on_line() && word != "param" && is_directive(word);
                    if declaration || is_module_directive(word) {
                        return;
                    }
                }
                _ => {}
            }
            self.bump();
        }
    }
}

/// Adds the end of the previous body, which may have ended too early, to a diagnostic about a stray part.
fn with_body(diagnostic: Diagnostic, last_body: Option<Span>) -> Diagnostic {
    match last_body {
        Some(body) => {
            let close = Span::new(body.end.saturating_sub(1).max(body.start), body.end);
            diagnostic.with_related(close, "the last function ends here")
        }
        None => diagnostic,
    }
}

fn digits(text: &str) -> Option<u32> {
    let plain = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if plain { text.parse().ok() } else { None }
}
