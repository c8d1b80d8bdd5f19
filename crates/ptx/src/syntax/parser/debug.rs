//! Debugging directives. PTX ISA §11.5; the inlining part of `.loc` is from PTX 7.2.

use super::super::tree::{Expr, File, Inlined, Loc, Name, Section, SectionLine, Spanned};
use super::{K, Parse, Parser, Reported};
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::Ty;

impl Parser<'_> {
    /// `.file index "name"{, timestamp, size}`
    pub(super) fn file(&mut self) -> Parse<File> {
        let start = self.bump();
        let index = self.integer("a file index")?;
        let name = self.string()?;
        let (mut timestamp, mut size) = (None, None);
        if self.eat(K::Comma).is_some() {
            timestamp = Some(self.integer("a timestamp")?);
            if self.eat(K::Comma).is_none() {
                return Err(self.expected_on_line("`,` and the file's size"));
            }
            size = Some(self.integer("the file's size")?);
        }
        Ok(File { span: start.to(self.previous()), index, name, timestamp, size })
    }

    /// `.loc file line column{, function_name label{+n}, inlined_at file line column}`, `.loc_intermediate
    /// file line column`
    pub(super) fn loc(&mut self) -> Parse<Loc> {
        let intermediate = self.word() == "loc_intermediate";
        let start = self.bump();
        let file = self.integer("a file index")?;
        let line = self.integer("a line number")?;
        let column = self.integer("a column")?;
        let inlined = if self.eat(K::Comma).is_some() { Some(Box::new(self.inlined()?)) } else { None };
        Ok(Loc { span: start.to(self.previous()), file, line, column, inlined, intermediate })
    }

    fn inlined(&mut self) -> Parse<Inlined> {
        self.keyword("function_name")?;
        let function_name = self.constant()?;
        self.expect(K::Comma, "`, inlined_at`")?;
        self.keyword("inlined_at")?;
        let file = self.integer("a file index")?;
        let line = self.integer("a line number")?;
        let column = self.integer("a column")?;
        Ok(Inlined { function_name, file, line, column })
    }

    fn keyword(&mut self, word: &str) -> Parse<Span> {
        if self.is(K::Ident) && self.text() == word {
            return Ok(self.bump());
        }
        Err(self.expected(&format!("`{word}`")))
    }

    /// `.section name { lines }`
    pub(super) fn section(&mut self) -> Parse<Section> {
        let start = self.bump();
        let mut name = self.expect(K::DotWord, "the name of a section")?;
        while self.touches() && matches!(self.kind(), Some(K::DotWord | K::Ident | K::Minus | K::Sink)) {
            name = name.to(self.bump());
        }
        let open = self.expect(K::LBrace, "`{`")?;
        let mut lines = Vec::new();
        while !self.is(K::RBrace) {
            if self.is_end() {
                self.unclosed(open);
                return Ok(Section { span: start.to(self.previous()), name, lines });
            }
            let before = self.at;
            self.unexpected_reported = false;
            self.in_section = true;
            let line = self.section_line();
            self.in_section = false;
            match line {
                Ok(line) => lines.push(line),
                Err(Reported) => self.skip_section_line(before),
            }
        }
        self.bump();
        Ok(Section { span: start.to(self.previous()), name, lines })
    }

    fn section_line(&mut self) -> Parse<SectionLine> {
        if self.is(K::Ident) {
            let name: Name = self.name("a label")?;
            self.expect(K::Colon, "`:` after a label")?;
            return Ok(SectionLine::Label(name));
        }
        let ty = match self.word() {
            "b8" => Ty::B8,
            "b16" => Ty::B16,
            "b32" => Ty::B32,
            "b64" => Ty::B64,
            word => {
                let is_type = Ty::from_name(word).is_some();
                if !is_type {
                    return Err(self.expected("`.b8`, `.b16`, `.b32`, `.b64` or a label"));
                }
                let message = format!("a section has no data of type `.{word}`");
                let diagnostic = Diagnostic::new(Code::UnexpectedToken, self.span(), message)
                    .with_help("the types of a section are `.b8`, `.b16`, `.b32` and `.b64`")
                    .with_section("11.5.2");
                return Err(self.unexpected(diagnostic));
            }
        };
        let ty = Spanned { value: ty, span: self.bump() };
        let mut values: Vec<Expr> = Vec::new();
        loop {
            if Ty::from_name(self.word()).is_some() || self.is(K::RBrace) {
                return Err(self.expected_on_line("a value"));
            }
            values.push(self.constant()?);
            if self.eat(K::Comma).is_none() {
                break;
            }
        }
        Ok(SectionLine::Data { span: ty.span.to(self.previous()), ty, values })
    }

    /// Skips to the next line, or to the end of the section.
    fn skip_section_line(&mut self, before: usize) {
        if self.at == before && !self.is(K::RBrace) {
            self.bump();
        }
        while !self.is_end() && !self.is(K::RBrace) && !self.first_on_line() {
            self.bump();
        }
    }
}
