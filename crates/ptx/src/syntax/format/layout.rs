//! The line starts of a formatted text, from its tree.
//!
//! Invariant: marks are in the order of the text, and each is the start of a token that is no trivia.

use super::super::token::{Token, TokenKind};
use super::super::tree::{
    Block, Function, Instruction, Item, Parameter, Section, SectionLine, Statement, Tree, Variable,
};
use crate::Span;

/// White space before a token that the tree determines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// Start of the token.
    pub(super) offset: u32,
    /// The white space before it.
    pub(super) before: Before,
}

/// White space before a token.
#[derive(Clone, Copy, Debug)]
pub(super) enum Before {
    /// A new line.
    Line(Line),
    /// A blank.
    Space,
    /// A blank and a tab, as before operands.
    Tab,
    /// Nothing.
    Nothing,
}

impl Before {
    /// The line that begins with the token, if it begins one.
    pub(super) fn line(self) -> Option<Line> {
        match self {
            Before::Line(line) => Some(line),
            Before::Space | Before::Tab | Before::Nothing => None,
        }
    }
}

/// A line, by its first token.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    /// Tabs before it.
    pub(super) column: usize,
    /// Tabs before comments that follow it.
    pub(super) inside: usize,
    /// Whether a blank line before it is kept.
    pub(super) blank: Blank,
    /// Whether a blank line directly after it is dropped.
    pub(super) opens: bool,
}

/// Whether a blank line of the source is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Blank {
    /// Never.
    Never,
    /// Only before comments that precede the token.
    BeforeComments,
    /// Always.
    Always,
}

impl Line {
    /// A line of module scope.
    pub(super) const TOP: Self = Self { column: 0, inside: 0, blank: Blank::Always, opens: false };

    /// A statement in a block of this depth.
    const fn statement(depth: usize) -> Self {
        Self { column: depth, inside: depth, ..Self::TOP }
    }

    /// A label in a block of this depth.
    const fn label(depth: usize) -> Self {
        Self { column: 0, inside: depth, ..Self::TOP }
    }
}

/// The marks of a text.
pub(super) fn marks(tree: &Tree) -> Vec<Mark> {
    let mut layout = Layout { tokens: &tree.tokens, marks: Vec::new() };
    for item in &tree.items {
        layout.item(item);
    }
    layout.marks.sort_by_key(|mark| mark.offset);
    layout.marks.dedup_by_key(|mark| mark.offset);
    layout.marks
}

struct Layout<'t> {
    tokens: &'t [Token],
    marks: Vec<Mark>,
}

impl Layout<'_> {
    fn mark(&mut self, offset: u32, before: Before) {
        self.marks.push(Mark { offset, before });
    }

    fn line(&mut self, span: Span, line: Line) {
        self.mark(span.start, Before::Line(line));
    }

    /// The next token of this kind at or after `offset`.
    fn next(&self, offset: u32, kind: TokenKind) -> Option<Span> {
        let first = self.tokens.partition_point(|token| token.span.start < offset);
        self.tokens[first..].iter().find(|token| token.kind == kind).map(|token| token.span)
    }

    fn item(&mut self, item: &Item) {
        let inside = usize::from(matches!(item, Item::Function(f) if !f.parameters.is_empty()));
        self.line(item.span(), Line { inside, ..Line::TOP });
        match item {
            Item::Function(function) => self.function(function),
            Item::Section(section) => self.section(section),
            Item::Version(_)
            | Item::Target(_)
            | Item::AddressSize(_)
            | Item::Variable(_)
            | Item::Alias(_)
            | Item::File(_)
            | Item::Dwarf(_)
            | Item::Pragma(_)
            | Item::Loc(_)
            | Item::Error(_) => {}
        }
    }

    fn function(&mut self, function: &Function) {
        if let Some(name) = function.name {
            self.mark(name.span.start, Before::Space);
        }
        self.parameters(&function.parameters);
        for directive in &function.directives {
            self.line(directive.span, Line { blank: Blank::Never, ..Line::TOP });
        }
        if let Some(body) = &function.body {
            self.block(body, 0, Blank::Never);
        }
    }

    /// Parameters of a kernel or function, each on its own line.
    fn parameters(&mut self, parameters: &[Parameter]) {
        for parameter in parameters {
            self.line(parameter.span, Line { blank: Blank::Never, ..Line::statement(1) });
        }
        if let Some(last) = parameters.last()
            && let Some(close) = self.next(last.span.end, TokenKind::RParen)
        {
            self.line(close, Line { blank: Blank::Never, ..Line::TOP });
        }
    }

    fn block(&mut self, block: &Block, depth: usize, blank: Blank) {
        let open = Line { column: depth, inside: depth + 1, blank, opens: true };
        self.line(block.span, open);
        for statement in &block.statements {
            self.statement(statement, depth + 1);
        }
        let close = Line { column: depth, inside: depth, blank: Blank::BeforeComments, opens: false };
        let end = block.span.end;
        self.line(Span::new(end.saturating_sub(1), end), close);
    }

    fn statement(&mut self, statement: &Statement, depth: usize) {
        match statement {
            Statement::Block(block) => return self.block(block, depth, Blank::Always),
            Statement::Label(_)
            | Statement::CallPrototype(_)
            | Statement::CallTargets(_)
            | Statement::BranchTargets(_) => return self.line(statement.span(), Line::label(depth)),
            Statement::Variable(variable) => self.variable(variable),
            Statement::Instruction(instruction) => self.instruction(instruction),
            Statement::Loc(_) | Statement::Pragma(_) | Statement::Target(_) | Statement::Error(_) => {}
        }
        self.line(statement.span(), Line::statement(depth));
    }

    fn variable(&mut self, variable: &Variable) {
        if let Some(first) = variable.names.first() {
            self.mark(first.span.start, Before::Tab);
        }
    }

    fn instruction(&mut self, instruction: &Instruction) {
        if instruction.guard.is_some() {
            self.mark(instruction.mnemonic.span.start, Before::Space);
        }
        for word in &instruction.modifiers {
            self.mark(word.span.start, Before::Nothing);
        }
        if let Some(first) = instruction.operands.first() {
            self.mark(first.span.start, Before::Tab);
        }
    }

    fn section(&mut self, section: &Section) {
        self.section_name(section.name);
        if let Some(open) = self.next(section.name.end, TokenKind::LBrace) {
            self.line(open, Line { opens: true, inside: 1, blank: Blank::Never, ..Line::TOP });
        }
        for line in &section.lines {
            match line {
                SectionLine::Label(name) => self.line(name.span, Line::label(1)),
                SectionLine::Data { span, .. } => self.line(*span, Line::statement(1)),
            }
        }
        let end = section.span.end;
        let close = Line { blank: Blank::BeforeComments, ..Line::TOP };
        self.line(Span::new(end.saturating_sub(1), end), close);
    }

    /// A section name may consist of several adjacent tokens.
    fn section_name(&mut self, name: Span) {
        let first = self.tokens.partition_point(|token| token.span.start <= name.start);
        let rest = self.tokens[first..].iter().take_while(|token| token.span.start < name.end);
        let rest: Vec<u32> = rest.map(|token| token.span.start).collect();
        for offset in rest {
            self.mark(offset, Before::Nothing);
        }
    }
}
