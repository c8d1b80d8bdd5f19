//! Kernels and functions: signature, directives and optional body. PTX ISA §11.2, §11.4.

use super::super::tree::{
    Function, FunctionDirective, FunctionDirectiveKind as D, FunctionKind, Linkage, Name, Spanned, Str,
};
use super::{K, Parse, Parser, Reported};
use crate::diag::{Code, Diagnostic};

/// Whether `.word` is a directive between signature and body.
pub(super) fn is_function_directive(word: &str) -> bool {
    matches!(
        word,
        "maxnreg"
            | "maxntid"
            | "reqntid"
            | "minnctapersm"
            | "maxnctapersm"
            | "noreturn"
            | "reqnctapercluster"
            | "explicitcluster"
            | "maxclusterrank"
            | "blocksareclusters"
            | "abi_preserve"
            | "abi_preserve_control"
            | "language"
            | "minperctamemory"
    )
}

impl Parser<'_> {
    /// `.entry` or `.func`, up to the end of a prototype or the start of the body.
    pub(super) fn function(&mut self, linkage: Option<Spanned<Linkage>>) -> Parse<Function> {
        let kind = if self.word() == "entry" { FunctionKind::Entry } else { FunctionKind::Func };
        let kind = Spanned { value: kind, span: self.bump() };
        let mut function = Function {
            span: linkage.map_or(kind.span, |l| l.span.to(kind.span)),
            linkage,
            kind,
            attributes: Vec::new(),
            returns: Vec::new(),
            name: None,
            parameters: Vec::new(),
            directives: Vec::new(),
            body: None,
        };
        let signature = self.signature(&mut function);
        if signature.is_err() {
            self.skip_signature();
        }
        self.function_end(signature)?;
        function.span = function.span.to(self.previous());
        Ok(function)
    }

    fn signature(&mut self, function: &mut Function) -> Parse<()> {
        if self.word() == "attribute" {
            function.attributes = self.attributes()?;
        }
        if self.is(K::LParen) {
            function.returns = self.parameters()?;
        }
        function.name = Some(self.name("the name of a function")?);
        if self.is(K::LParen) {
            function.parameters = self.parameters()?;
        }
        function.directives = self.function_directives();
        Ok(())
    }

    /// The start of a body, or the semicolon of a prototype, which may be missing before another item.
    fn function_end(&mut self, signature: Parse<()>) -> Parse<()> {
        let complete =
            self.is(K::LBrace) || self.is(K::Semicolon) || self.is_end() || self.begins_next_item();
        let reported = if signature.is_ok() && !complete { Some(self.expected("`{` or `;`")) } else { None };
        if reported.is_some() {
            self.skip_signature();
        }
        if self.is(K::LBrace) {
            self.body_follows = true;
            return Ok(());
        }
        self.eat(K::Semicolon);
        reported.map_or(Ok(()), Err)
    }

    /// Skips to a body, the semicolon of a prototype, or the next item.
    fn skip_signature(&mut self) {
        while !self.is_end() && !self.is(K::LBrace) && !super::is_module_directive(self.word()) {
            if self.is(K::Semicolon) {
                self.at += 1;
                let ends = self.is_end() || self.begins_next_item();
                self.at -= 1;
                if ends {
                    return;
                }
            }
            self.bump();
        }
    }

    /// Whether an item of the module begins here, at the start of a line.
    fn begins_next_item(&self) -> bool {
        let item = match self.kind() {
            Some(K::DwarfLine) => true,
            _ => self.word() != "param" && super::is_directive(self.word()),
        };
        item && self.first_on_line()
    }

    /// The directives between signature and body.
    pub(super) fn function_directives(&mut self) -> Vec<FunctionDirective> {
        let mut directives = Vec::new();
        while self.is(K::DotWord) && !self.is_item_word() {
            let start = self.span();
            match self.function_directive() {
                Ok(kind) => directives.push(FunctionDirective { span: start.to(self.previous()), kind }),
                Err(Reported) => {
                    while !self.is_end()
                        && !matches!(self.kind(), Some(K::LBrace | K::Semicolon | K::DotWord | K::RBrace))
                    {
                        self.bump();
                    }
                }
            }
        }
        directives
    }

    fn is_item_word(&self) -> bool {
        super::is_module_directive(self.word()) || super::declaration::space_named(self.word()).is_some()
    }

    fn function_directive(&mut self) -> Parse<D> {
        let word = self.word();
        let span = self.bump();
        Ok(match word {
            "maxnreg" => D::MaxNReg(self.constant()?),
            "maxntid" => D::MaxNTid(self.extents()?),
            "reqntid" => D::ReqNTid(self.extents()?),
            "minnctapersm" => D::MinNCtaPerSm(self.constant()?),
            "maxnctapersm" => D::MaxNCtaPerSm(self.constant()?),
            "noreturn" => D::NoReturn,
            "pragma" => {
                let strings = self.strings()?;
                self.semicolon()?;
                D::Pragma(strings)
            }
            "reqnctapercluster" => D::ReqNCtaPerCluster(self.extents()?),
            "explicitcluster" => D::ExplicitCluster,
            "maxclusterrank" => D::MaxClusterRank(self.constant()?),
            "blocksareclusters" => D::BlocksAreClusters,
            "abi_preserve" => D::AbiPreserve(self.constant()?),
            "abi_preserve_control" => D::AbiPreserveControl(self.constant()?),
            "language" => {
                self.languages()?;
                D::Language
            }
            "minperctamemory" => D::MinPerCtaMemory(self.constant()?),
            _ => {
                let message = format!("`.{word}` is not a directive of a function");
                let diagnostic = Diagnostic::new(Code::UnknownDirective, span, message)
                    .with_help(
                        "allowed between signature and body: `.maxnreg`, `.maxntid`, `.reqntid`, `.minnctapersm`, \
                         `.maxnctapersm`, `.noreturn`, `.pragma`",
                    )
                    .with_section("11.4");
                if !self.is_muffled() {
                    self.report(diagnostic);
                }
                return Err(Reported);
            }
        })
    }

    fn extents(&mut self) -> Parse<Vec<super::super::tree::Expr>> {
        let mut extents = vec![self.constant()?];
        while self.eat(K::Comma).is_some() {
            extents.push(self.constant()?);
        }
        Ok(extents)
    }

    /// `"…", n`: names and numbers of languages, which are ignored.
    fn languages(&mut self) -> Parse<()> {
        loop {
            if self.is(K::Str) {
                self.string()?;
            } else {
                self.constant()?;
            }
            if self.eat(K::Comma).is_none() {
                return Ok(());
            }
        }
    }

    /// `"…", "…"`
    pub(super) fn strings(&mut self) -> Parse<Vec<Str>> {
        let mut strings = vec![self.string()?];
        while self.eat(K::Comma).is_some() {
            strings.push(self.string()?);
        }
        Ok(strings)
    }

    /// `name, name, …`
    pub(super) fn names(&mut self, what: &str) -> Parse<Vec<Name>> {
        let mut names = vec![self.name(what)?];
        while self.eat(K::Comma).is_some() {
            names.push(self.name(what)?);
        }
        Ok(names)
    }
}
