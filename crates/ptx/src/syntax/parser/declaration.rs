//! Declarations of variables and parameters. PTX ISA §5.1.6, §5.4.
//!
//! Invariant: a declaration whose names can be parsed is kept even if its type or another word is wrong, so
//! that its uses are not reported as undeclared.

use super::super::tree::{
    Attribute, Declarator, Dimension, Initializer, Linkage, Name, Parameter, Ptr, Spanned, Specifiers,
    Variable,
};
use super::{K, Parse, Parser, Reported};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{Space, Ty};

/// The linking directive of that name. PTX ISA §11.6.
pub(super) fn linkage_named(word: &str) -> Option<Linkage> {
    [Linkage::Extern, Linkage::Visible, Linkage::Weak, Linkage::Common].into_iter().find(|l| l.name() == word)
}

/// The state space with this name, if declarations can have it.
pub(super) fn space_named(word: &str) -> Option<Space> {
    [
        Space::Reg,
        Space::Sreg,
        Space::Const,
        Space::Global,
        Space::Local,
        Space::Param,
        Space::Shared,
        Space::Tex,
    ]
    .into_iter()
    .find(|s| s.name() == word)
}

impl Parser<'_> {
    /// A declaration from its state space to its semicolon.
    pub(super) fn variable(&mut self, linkage: Option<Spanned<Linkage>>) -> Parse<Variable> {
        let start = linkage.map_or(self.span(), |l| l.span);
        let specifiers = self.specifiers(linkage)?;
        // ptxas accepts it. In other spaces it is more likely that the names were forgotten.
        let laid_out_once = matches!(specifiers.space.value, Space::Global | Space::Const | Space::Shared);
        if laid_out_once && specifiers.ty.is_some() && self.is(K::Semicolon) {
            let span = start.to(self.bump());
            let diagnostic = Diagnostic::new(Code::NonStandard, span, "a declaration without a name")
                .with_label("declares nothing")
                .with_section("5.4.1");
            self.report(diagnostic);
            return Ok(Variable { span, specifiers, names: Vec::new() });
        }
        let mut names = vec![self.declarator(K::Semicolon)?];
        loop {
            if self.eat(K::Comma).is_none() {
                if !self.is(K::Ident) || self.starts_statement() {
                    break;
                }
                let message = format!("missing `,` before {}", self.found());
                self.unexpected(
                    Diagnostic::new(Code::UnexpectedToken, self.behind(), message).with_section("5.4.1"),
                );
            }
            match self.declarator(K::Semicolon) {
                Ok(declarator) => names.push(declarator),
                Err(Reported) => self.skip_in_list(K::Semicolon),
            }
        }
        if self.semicolon().is_err() {
            self.skip_statement();
        }
        Ok(Variable { span: start.to(self.previous()), specifiers, names })
    }

    /// `(a, b)`, possibly empty.
    pub(super) fn parameters(&mut self) -> Parse<Vec<Parameter>> {
        let open = self.expect(K::LParen, "`(`")?;
        let mut parameters = Vec::new();
        if self.eat(K::RParen).is_some() {
            return Ok(parameters);
        }
        loop {
            let parameter = self.parameter();
            let readable = parameter.is_ok();
            match parameter {
                Ok(parameter) => parameters.push(parameter),
                Err(Reported) => self.skip_in_list(K::RParen),
            }
            if self.eat(K::Comma).is_some() {
                continue;
            }
            if self.eat(K::RParen).is_some() {
                return Ok(parameters);
            }
            if readable {
                self.expected_closing(open);
                if !self.is(K::DotWord) {
                    self.skip_in_list(K::RParen);
                }
            }
            // A missing comma before a parameter is reported and parsing continues; another token ends the
            // list.
            if self.eat(K::Comma).is_none() && space_named(self.word()).is_none() {
                return self.eat(K::RParen).map(|_| parameters).ok_or(Reported);
            }
        }
    }

    fn expected_closing(&mut self, open: Span) {
        let message = format!("expected `,` or `)`, found {}", self.found());
        let diagnostic = Diagnostic::new(Code::UnexpectedToken, self.span(), message)
            .with_related(open, "the list begins here");
        self.unexpected(diagnostic);
    }

    fn parameter(&mut self) -> Parse<Parameter> {
        let start = self.span();
        let specifiers = self.specifiers(None)?;
        let declarator = self.declarator(K::RParen)?;
        Ok(Parameter { span: start.to(self.previous()), specifiers, declarator })
    }

    /// State space, alignment, attributes and type, in any order after the space.
    fn specifiers(&mut self, linkage: Option<Spanned<Linkage>>) -> Parse<Specifiers> {
        let Some(space) = space_named(self.word()) else {
            return Err(self.expected("a state space such as `.reg` or `.param`"));
        };
        let mut specifiers = Specifiers {
            linkage,
            space: Spanned { value: space, span: self.bump() },
            bank: None,
            align: None,
            attributes: Vec::new(),
            vector: None,
            ty: None,
            ptr: None,
        };
        if space == Space::Const && self.eat(K::LBracket).is_some() {
            specifiers.bank = Some(self.constant()?);
            self.expect(K::RBracket, "`]` after the bank")?;
        }
        let mut unreadable_type = false;
        while self.is(K::DotWord) {
            unreadable_type |= self.specifier(&mut specifiers)?;
        }
        if specifiers.ty.is_none() && !unreadable_type {
            let message = format!("expected a type, found {}", self.found());
            let diagnostic = Diagnostic::new(Code::BadDeclaration, self.span(), message)
                .with_help("a declaration is `.space .type name`, such as `.reg .b32 %r<4>`")
                .with_section("5.4.1");
            self.unexpected(diagnostic);
        }
        Ok(specifiers)
    }

    /// Parses one word of a declaration. Returns whether it is at the place of the type and is no type.
    fn specifier(&mut self, specifiers: &mut Specifiers) -> Parse<bool> {
        let word = self.word();
        let span = self.span();
        match word {
            "align" => {
                self.bump();
                let align = self.constant()?;
                self.once(specifiers.align.is_some(), span);
                specifiers.align = Some(align);
            }
            "attribute" => {
                let attributes = self.attributes()?;
                specifiers.attributes.extend(attributes);
            }
            "ptr" => {
                self.once(specifiers.ptr.is_some(), span);
                specifiers.ptr = Some(self.ptr()?);
            }
            _ => {
                self.bump();
                if let Some(count) = word.strip_prefix('v').and_then(|digits| digits.parse().ok()) {
                    self.once(specifiers.vector.is_some(), span);
                    if specifiers.ty.is_some() {
                        let diagnostic = Diagnostic::new(
                            Code::BadDeclaration,
                            span,
                            format!("`.{word}` must precede the type"),
                        )
                        .with_section("5.4.2");
                        self.report(diagnostic);
                    }
                    specifiers.vector = Some(Spanned { value: count, span });
                } else if let Some(ty) = Ty::from_name(word) {
                    self.once(specifiers.ty.is_some(), span);
                    specifiers.ty = Some(Spanned { value: ty, span });
                } else {
                    let message = format!("`.{word}` is not a type, and is not allowed in a declaration");
                    let diagnostic =
                        Diagnostic::new(Code::BadDeclaration, span, message).with_section("5.2.1");
                    self.report(diagnostic);
                    return Ok(specifiers.ty.is_none());
                }
            }
        }
        Ok(false)
    }

    /// Reports a word that occurs twice.
    fn once(&mut self, again: bool, span: Span) {
        if again {
            let message =
                format!("`{}` after another of its kind in the same declaration", span.text(self.source));
            self.report(Diagnostic::new(Code::BadDeclaration, span, message).with_section("5.4.1"));
        }
    }

    /// `.attribute(.managed, …)`
    pub(super) fn attributes(&mut self) -> Parse<Vec<Attribute>> {
        self.bump();
        self.expect(K::LParen, "`(`")?;
        let mut attributes = Vec::new();
        loop {
            let Some(word) = self.eat_word() else {
                return Err(self.expected("an attribute such as `.managed`"));
            };
            let mut arguments = Vec::new();
            if self.eat(K::LParen).is_some() {
                arguments.push(self.constant()?);
                while self.eat(K::Comma).is_some() {
                    arguments.push(self.constant()?);
                }
                self.expect(K::RParen, "`)`")?;
            }
            attributes.push(Attribute { word, arguments });
            if self.eat(K::Comma).is_none() {
                self.expect(K::RParen, "`,` or `)`")?;
                return Ok(attributes);
            }
        }
    }

    /// `.ptr {.space} {.align N}`
    fn ptr(&mut self) -> Parse<Ptr> {
        let start = self.bump();
        let space = space_named(self.word()).map(|value| Spanned { value, span: self.bump() });
        let align = if self.word() == "align" {
            self.bump();
            Some(self.constant()?)
        } else {
            None
        };
        Ok(Ptr { span: start.to(self.previous()), space, align })
    }

    /// A name with count, dimensions and initialiser, in a list that ends with `close`. In parameter lists
    /// `_` is a name. After a syntax error, the rest of the declarator is skipped.
    fn declarator(&mut self, close: K) -> Parse<Declarator> {
        let name = match self.kind() {
            Some(K::Sink) if close == K::RParen => Name { span: self.bump() },
            _ => self.name("a name")?,
        };
        let mut declarator =
            Declarator { span: name.span, name, count: None, dimensions: Vec::new(), initializer: None };
        if self.behind_name(&mut declarator).is_err() {
            self.skip_in_list(close);
        }
        declarator.span = name.span.to(self.previous());
        Ok(declarator)
    }

    fn behind_name(&mut self, declarator: &mut Declarator) -> Parse<()> {
        if self.eat(K::Lt).is_some() {
            declarator.count = Some(self.constant_in_angles()?);
            self.expect(K::Gt, "`>` after the count")?;
        }
        while let Some(open) = self.eat(K::LBracket) {
            let size = if self.is(K::RBracket) { None } else { Some(self.constant()?) };
            let close = self.expect(K::RBracket, "`]`")?;
            declarator.dimensions.push(Dimension { span: open.to(close), size });
        }
        if self.eat(K::Eq).is_some() {
            declarator.initializer = Some(self.initializer()?);
        }
        Ok(())
    }

    fn initializer(&mut self) -> Parse<Initializer> {
        if self.is(K::LBrace) {
            self.enter("initialisers")?;
            let list = self.initializer_list();
            self.leave();
            return list;
        }
        if self.is(K::Ident) && self.kind_ahead(1) == Some(K::Eq) {
            let name = self.name("a field")?;
            self.bump();
            return Ok(Initializer::Field { name, value: self.constant()? });
        }
        Ok(Initializer::Value(self.constant()?))
    }

    fn initializer_list(&mut self) -> Parse<Initializer> {
        let open = self.bump();
        let mut items = Vec::new();
        if let Some(close) = self.eat(K::RBrace) {
            return Ok(Initializer::List { span: open.to(close), items });
        }
        loop {
            items.push(self.initializer()?);
            if let Some(close) = self.eat(K::RBrace) {
                return Ok(Initializer::List { span: open.to(close), items });
            }
            self.expect(K::Comma, "`,` or `}`")?;
        }
    }
}
