//! Statements: blocks, labels, directives, instructions. PTX ISA §4.3, §9.3, §11.3.

use super::super::tree::{
    Block, BranchTarget, BranchTargets, CallPrototype, CallTargets, Guard, Instruction, Name, Statement,
    Word, Words,
};
use super::declaration::{linkage_named, space_named};
use super::operand::Parens;
use super::{K, Parse, Parser, Reported, Token, is_directive, is_module_directive};
use crate::Span;
use crate::diag::{Code, Diagnostic};

/// A part of a body.
#[derive(Debug)]
pub(crate) enum Piece {
    /// The `{` of an inner block.
    Open(Span),
    /// The `}` of a block.
    Close,
    /// A statement other than a block.
    Statement(Statement),
}

impl Parser<'_> {
    /// Parses a function's body. The current token is its `{`.
    pub(super) fn body(&mut self) -> Block {
        let mut around: Vec<Block> = Vec::new();
        let mut block = Block { span: self.span(), statements: Vec::new() };
        self.begin_body();
        while let Some(piece) = self.piece() {
            match piece {
                Piece::Statement(mut statement) => {
                    if let Statement::Instruction(instruction) = &mut statement {
                        instruction.operands.shrink_to_fit();
                    }
                    block.statements.push(statement);
                }
                Piece::Open(span) => {
                    around.push(std::mem::replace(&mut block, Block { span, statements: Vec::new() }));
                }
                Piece::Close => {
                    block.span = block.span.to(self.previous());
                    if let Some(outer) = around.pop() {
                        let inner = std::mem::replace(&mut block, outer);
                        block.statements.push(Statement::Block(inner));
                    }
                }
            }
        }
        block
    }

    /// Enters a function's body, for [`piece`](Self::piece). The current token is its `{`.
    pub(crate) fn begin_body(&mut self) {
        self.depth = 1;
        self.unexpected_reported = false;
        self.body_follows = false;
        self.open.clear();
        let open = self.bump();
        self.open.push(open);
    }

    /// Recycles the memory of an instruction for the next one.
    pub(crate) fn reuse(&mut self, instruction: Instruction) {
        if instruction.operands.capacity() > self.operands.capacity() {
            self.operands = instruction.operands;
            self.operands.clear();
        }
    }

    /// The next part of the body. The body's own `{` is not returned; its `}` is the last part. A missing
    /// closing brace is reported once and closes all open blocks.
    pub(crate) fn piece(&mut self) -> Option<Piece> {
        let open = *self.open.last()?;
        if !self.unwinding && !self.is(K::RBrace) {
            if !self.is_end() && !self.is_other_item() {
                return Some(self.statement_or_error());
            }
            self.unclosed(open);
            self.unwinding = true;
        }
        if !self.unwinding {
            self.bump();
        }
        self.leave();
        self.open.pop();
        if self.open.is_empty() {
            self.unwinding = false;
            self.last_body = Some(open.to(self.previous()));
        }
        Some(Piece::Close)
    }

    fn statement_or_error(&mut self) -> Piece {
        let before = self.at;
        let start = self.span();
        self.unexpected_reported = false;
        self.statement().unwrap_or_else(|Reported| {
            if self.at == before {
                self.bump();
            }
            self.skip_statement();
            Piece::Statement(Statement::Error(start.to(self.previous())))
        })
    }

    /// The labels of all blocks of the body whose `{` is the current token: place of the block's `{` and
    /// label, in the order of blocks, then of the text. In a text with mistakes the result can differ from
    /// the labels that are parsed later.
    pub(crate) fn labels_ahead(&self) -> Vec<(u32, Name)> {
        let mut labels = Vec::new();
        let mut open = Vec::new();
        let first = self.marks.partition_point(|mark| (*mark as usize) < self.at);
        for mark in &self.marks[first..] {
            let (before, rest) = self.tokens.split_at(*mark as usize);
            let Some(token) = rest.first() else { break };
            match token.kind {
                K::LBrace => open.push(token.span.start),
                K::RBrace => {
                    open.pop();
                    if open.is_empty() {
                        break;
                    }
                }
                K::Colon => {
                    let named = rest.get(1).is_some_and(|next| {
                        next.kind == K::DotWord && is_named_by_label(&next.span.text(self.source)[1..])
                    });
                    if let (Some(name), Some(block), false) = (label_before(before), open.last(), named) {
                        labels.push((*block, name));
                    }
                }
                // A function cannot begin in a body, so the body's end is missing.
                _ => break,
            }
        }
        labels.sort_by_key(|(block, _)| *block);
        labels
    }

    /// The `{` of an inner block. A block that is nested too deeply is reported and skipped.
    fn open_block(&mut self) -> Piece {
        let open = self.span();
        if self.enter("blocks").is_err() {
            self.skip_block();
            return Piece::Statement(Statement::Error(open.to(self.previous())));
        }
        self.bump();
        self.open.push(open);
        Piece::Open(open)
    }

    /// Skips a block without parsing it.
    fn skip_block(&mut self) {
        let mut open = 0usize;
        while !self.is_end() {
            match self.kind() {
                Some(K::LBrace) => open += 1,
                Some(K::RBrace) => open -= 1,
                _ => {}
            }
            self.bump();
            if open == 0 {
                return;
            }
        }
    }

    /// Whether a function begins here, which is not allowed in a body.
    fn is_other_item(&self) -> bool {
        let mut ahead = 0;
        while linkage_named(self.word_ahead(ahead)).is_some() {
            ahead += 1;
        }
        matches!(self.word_ahead(ahead), "entry" | "func")
    }

    /// Reports an unclosed brace.
    pub(super) fn unclosed(&mut self, open: Span) {
        if self.is_end() && self.cut_short {
            return;
        }
        let mut diagnostic = Diagnostic::new(Code::UnbalancedBrace, open, "`{` without its `}`")
            .with_label("opened here")
            .with_help("close the block with `}`");
        if !self.is_end() {
            diagnostic =
                diagnostic.with_related(self.span(), "still open here, where a function cannot begin");
        }
        self.report(diagnostic);
    }

    fn statement(&mut self) -> Parse<Piece> {
        let statement = match self.kind() {
            Some(K::LBrace) => return Ok(self.open_block()),
            Some(K::Ident) if self.kind_ahead(1) == Some(K::Colon) => self.labelled(),
            Some(K::Ident) => self.instruction(None).map(Statement::Instruction),
            Some(K::At) => return self.guarded(),
            Some(K::DotWord) => self.body_directive(),
            Some(K::Semicolon) => {
                let span = self.bump();
                let diagnostic = Diagnostic::new(Code::UnexpectedToken, span, "`;` without a statement")
                    .with_help("remove it")
                    .with_section("4.3");
                self.report(diagnostic);
                Ok(Statement::Error(span))
            }
            _ => Err(self.expected("a statement")),
        };
        statement.map(Piece::Statement)
    }

    /// A label, with the directive that it names.
    fn labelled(&mut self) -> Parse<Statement> {
        let label = self.name("a label")?;
        self.expect(K::Colon, "`:`")?;
        match self.word() {
            "callprototype" => self.call_prototype(label).map(Statement::CallPrototype),
            "calltargets" => {
                self.bump();
                let targets = self.names("the name of a function")?;
                self.semicolon()?;
                let span = label.span.to(self.previous());
                Ok(Statement::CallTargets(CallTargets { span, label, targets }))
            }
            "branchtargets" => self.branch_targets(Some(label)).map(Statement::BranchTargets),
            _ => Ok(Statement::Label(label)),
        }
    }

    fn body_directive(&mut self) -> Parse<Statement> {
        let word = self.word();
        match word {
            "loc" | "loc_intermediate" => {
                let loc = self.loc();
                if loc.is_err() {
                    let start = self.previous();
                    self.skip_line();
                    return Ok(Statement::Error(start.to(self.previous())));
                }
                loc.map(Statement::Loc)
            }
            "pragma" => self.pragma().map(Statement::Pragma),
            "target" if self.kind_ahead(1) == Some(K::Ident) => self.target().map(Statement::Target),
            "branchtargets" => {
                let diagnostic =
                    Diagnostic::new(Code::NonStandard, self.span(), "`.branchtargets` without a label")
                        .with_label("has no effect, because no `brx.idx` can name the list")
                        .with_section("11.3.1");
                self.report(diagnostic);
                self.branch_targets(None).map(Statement::BranchTargets)
            }
            _ if is_named_by_label(word) => {
                let diagnostic = Diagnostic::new(
                    Code::MisplacedDirective,
                    self.span(),
                    format!("`.{word}` without a label"),
                )
                .with_help(format!("write `name: .{word} …;`, and use the name where it is needed"))
                .with_section("11.3");
                Err(self.report(diagnostic))
            }
            _ if space_named(word).is_some() => self.variable(None).map(Box::new).map(Statement::Variable),
            _ if linkage_named(word).is_some() => {
                let linkage = self.linkage();
                self.variable(linkage).map(Box::new).map(Statement::Variable)
            }
            _ if is_module_directive(word) => Ok(self.misplaced(word)),
            _ => Err(self.unknown_directive()),
        }
    }

    /// Reports a directive of module scope in a body, and skips its line.
    fn misplaced(&mut self, word: &str) -> Statement {
        let start = self.span();
        let diagnostic =
            Diagnostic::new(Code::MisplacedDirective, start, format!("`.{word}` inside a function"))
                .with_help("it is allowed at module scope only")
                .with_section("11");
        self.report(diagnostic);
        if word == "section" {
            // Another mistake inside of it is not reported.
            let _ = self.section();
            return Statement::Error(start.to(self.previous()));
        }
        self.bump();
        while !self.is_end() && !self.first_on_line() && !self.is(K::RBrace) {
            self.bump();
        }
        Statement::Error(start.to(self.previous()))
    }

    /// `.callprototype (returns) _ (parameters) .noreturn;`
    fn call_prototype(&mut self, label: Name) -> Parse<CallPrototype> {
        self.bump();
        let returns = if self.is(K::LParen) { self.parameters()? } else { Vec::new() };
        self.expect(K::Sink, "`_` in place of the function's name")?;
        let parameters = if self.is(K::LParen) { self.parameters()? } else { Vec::new() };
        let directives = self.function_directives();
        self.semicolon()?;
        Ok(CallPrototype { span: label.span.to(self.previous()), label, returns, parameters, directives })
    }

    /// `.branchtargets L1, Lbl<10>;`
    fn branch_targets(&mut self, label: Option<Name>) -> Parse<BranchTargets> {
        let directive = self.bump();
        let start = label.map_or(directive, |label| label.span);
        let mut targets = Vec::new();
        loop {
            let name = self.name("a label")?;
            let mut count = None;
            if self.eat(K::Lt).is_some() {
                count = Some(self.constant_in_angles()?);
                self.expect(K::Gt, "`>` after the count")?;
            }
            targets.push(BranchTarget { span: name.span.to(self.previous()), name, count });
            if self.eat(K::Comma).is_none() {
                break;
            }
        }
        self.semicolon()?;
        Ok(BranchTargets { span: start.to(self.previous()), label, targets })
    }

    /// A guard with its instruction. A guarded block is reported, and parsed as an unguarded one.
    fn guarded(&mut self) -> Parse<Piece> {
        let guard = self.guard()?;
        if self.is(K::Colon) {
            let diagnostic = Diagnostic::new(Code::BadGuard, self.span(), "`:` after a guard")
                .with_help("a guard directly precedes its instruction: `@p bra L;`")
                .with_section("4.3.2");
            self.report(diagnostic);
            self.bump();
        }
        if self.is(K::LBrace) {
            let diagnostic = Diagnostic::new(Code::BadGuard, guard.span, "a guard before a block")
                .with_help("a guard holds for one instruction; branch around the block with `@!p bra L;`")
                .with_section("9.3");
            self.report(diagnostic);
            return Ok(self.open_block());
        }
        if is_directive(self.word()) {
            let message = format!("a guard before the directive `{}`", self.text());
            let diagnostic = Diagnostic::new(Code::BadGuard, guard.span, message)
                .with_help("a guard holds for one instruction; remove it here")
                .with_section("4.3.2");
            self.report(diagnostic);
            return self.body_directive().map(Piece::Statement);
        }
        if self.is(K::Ident) && self.kind_ahead(1) == Some(K::Colon) {
            let diagnostic = Diagnostic::new(Code::BadGuard, guard.span, "a guard before a label")
                .with_help("the label first, then the guard: `L: @p bra L;`")
                .with_section("4.3.2");
            self.report(diagnostic);
            return self.labelled().map(Piece::Statement);
        }
        self.instruction(Some(guard)).map(Statement::Instruction).map(Piece::Statement)
    }

    /// `@p` or `@!p`
    fn guard(&mut self) -> Parse<Guard> {
        let start = self.bump();
        let negated = self.eat(K::Bang).is_some();
        if !self.is(K::Ident) {
            return Err(self.expected("a predicate register after `@`"));
        }
        let name = self.reference()?;
        Ok(Guard { span: start.to(name.span), negated, name })
    }

    /// Whether `[1].` directly follows the previous word.
    fn is_bank(&self) -> bool {
        let number = self.kind_ahead(1).is_some_and(K::is_number);
        self.touches()
            && number
            && self.kind_ahead(2) == Some(K::RBracket)
            && self.kind_ahead(3) == Some(K::DotWord)
    }

    /// Reports and skips a bank after a word that takes none.
    fn bank_of_another_space(&mut self, word: Word) {
        let word = word.text(self.source);
        let diagnostic =
            Diagnostic::new(Code::BadModifierUse, self.span(), format!("`.{word}` has no banks"))
                .with_help("only `.const[bank]` has a bank")
                .with_section("5.1.3.1");
        self.report(diagnostic);
        for _ in 0..3 {
            self.bump();
        }
    }

    fn instruction(&mut self, guard: Option<Guard>) -> Parse<Instruction> {
        let start = guard.as_ref().map_or(self.span(), |g| g.span);
        let guard = guard.map(Box::new);
        let mnemonic = self.name("an instruction")?;
        let mut modifiers = Words::new();
        let mut bank = None;
        while self.is(K::DotWord) && !(self.first_on_line() && is_directive(self.word())) {
            let word = Word { span: self.bump() };
            modifiers.push(word);
            if self.is(K::LBracket) && word.text(self.source) == "const" {
                self.bump();
                bank = Some(Box::new(self.constant()?));
                self.expect(K::RBracket, "`]` after the bank")?;
            } else if self.is(K::LBracket) && self.is_bank() {
                self.bank_of_another_space(word);
            }
        }
        let parens =
            if mnemonic.text(self.source) == "call" { Parens::Parameters } else { Parens::Expression };
        let operands = self.operands(parens);
        if self.semicolon().is_err() {
            self.skip_statement();
        }
        Ok(Instruction { span: start.to(self.previous()), guard, mnemonic, modifiers, bank, operands })
    }
}

/// The label at the end of the tokens before a colon. The name in `c ? a : b` is no label, because it does
/// not begin a statement.
fn label_before(before: &[Token]) -> Option<Name> {
    let [.., second, first, name] = before else { return None };
    let begins = match first.kind {
        K::LBrace | K::RBrace | K::Semicolon | K::Colon => true,
        // `.loc` ends without a semicolon.
        kind if kind.is_number() => true,
        // A statement whose semicolon is missing, or a guard before a label, which was reported.
        K::Ident => name.first_on_line || matches!(second.kind, K::At | K::Bang),
        K::RBracket | K::RParen | K::Str | K::UnterminatedStr | K::DotWord | K::Sink => name.first_on_line,
        _ => false,
    };
    (begins && name.kind == K::Ident).then_some(Name { span: name.span })
}

/// Whether a label before `.word` names a list or prototype instead of a place in the program.
fn is_named_by_label(word: &str) -> bool {
    matches!(word, "callprototype" | "calltargets" | "branchtargets")
}
