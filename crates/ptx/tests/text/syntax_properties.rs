//! Properties of all texts: the joined tokens are equal to the text, parsing ends with a tree of bounded
//! depth, spans nest, and the findings can be rendered.

use proptest::prelude::*;
use ptx::Span;
use ptx::diag::render::{Color, Source};
use ptx::isa::Space;
use ptx::syntax::tree::{
    Address, Block, Declarator, Expr, ExprKind, Initializer, Instruction, Item, Operand, OperandKind,
    Parameter, Specifiers, Statement, Variable,
};
use ptx::syntax::{MAX_NESTING, parse};
use std::fs;
use std::path::Path;

/// Spans must lie in their parent's, and follow each other.
struct Nest {
    within: Span,
    after: u32,
    depth: usize,
}

impl Nest {
    fn new(within: Span, depth: usize) -> Self {
        assert!(within.start <= within.end);
        assert!(depth <= 3 * MAX_NESTING + 8, "the tree is too deep");
        Self { within, after: within.start, depth }
    }

    fn child(&mut self, span: Span) -> Nest {
        assert!(
            self.after <= span.start && span.end <= self.within.end,
            "{span:?} is not in {:?}",
            self.within
        );
        self.after = span.end;
        Nest::new(span, self.depth + 1)
    }

    /// A child whose place among its siblings is free (the words of a declaration).
    fn inner(&self, span: Span) -> Nest {
        assert!(self.within.start <= span.start && span.end <= self.within.end);
        Nest::new(span, self.depth + 1)
    }
}

fn expr(e: &Expr, mut nest: Nest) {
    match &e.kind {
        ExprKind::Paren(a) | ExprKind::Generic(a) | ExprKind::Mask { address: a, .. } => {
            expr(a, nest.child(a.span));
        }
        ExprKind::Unary { operand, .. } => expr(operand, nest.child(operand.span)),
        ExprKind::Binary { left, right, .. } => {
            expr(left, nest.child(left.span));
            expr(right, nest.child(right.span));
        }
        ExprKind::Ternary { condition, then, otherwise } => {
            expr(condition, nest.child(condition.span));
            expr(then, nest.child(then.span));
            expr(otherwise, nest.child(otherwise.span));
        }
        ExprKind::Name(r) => drop(nest.child(r.span)),
        ExprKind::Integer { .. }
        | ExprKind::Double(_)
        | ExprKind::Single(_)
        | ExprKind::WarpSz
        | ExprKind::Section(_)
        | ExprKind::Error => {}
    }
}

fn address(a: &Address, mut nest: Nest) {
    assert!(a.base.is_some() || a.offset.is_some());
    if let Some(base) = &a.base {
        nest.child(base.span);
    }
    if let Some(offset) = &a.offset {
        expr(offset, nest.child(offset.span));
    }
}

fn operand(o: &Operand, mut nest: Nest) {
    match &o.kind {
        OperandKind::Name(r) | OperandKind::Not(r) | OperandKind::Minus(r) => drop(nest.child(r.span)),
        OperandKind::Expr(e) => expr(e, nest.child(e.span)),
        OperandKind::Vector(list) | OperandKind::AddressList(list) | OperandKind::Parameters(list) => {
            for o in list {
                operand(o, nest.child(o.span));
            }
        }
        OperandKind::Address(a) => address(a, nest.child(a.span)),
        OperandKind::Indexed { index, .. } => address(index, nest.child(index.span)),
        OperandKind::Pair(a, b) => {
            operand(a, nest.child(a.span));
            operand(b, nest.child(b.span));
        }
        OperandKind::Sink | OperandKind::Error => {}
    }
}

fn initializer(i: &Initializer, mut nest: Nest) {
    match i {
        Initializer::Value(e) | Initializer::Field { value: e, .. } => expr(e, nest.child(e.span)),
        Initializer::List { items, .. } => {
            for i in items {
                initializer(i, nest.child(i.span()));
            }
        }
    }
}

fn specifiers(s: &Specifiers, nest: &Nest) {
    nest.inner(s.space.span);
    for e in s.bank.iter().chain(&s.align) {
        expr(e, nest.inner(e.span));
    }
    for span in
        [s.ty.map(|t| t.span), s.vector.map(|v| v.span), s.ptr.as_ref().map(|p| p.span)].into_iter().flatten()
    {
        nest.inner(span);
    }
}

fn declarator(d: &Declarator, mut nest: Nest) {
    nest.child(d.name.span);
    if let Some(count) = &d.count {
        expr(count, nest.child(count.span));
    }
    for dimension in &d.dimensions {
        let mut nest = nest.child(dimension.span);
        if let Some(size) = &dimension.size {
            expr(size, nest.child(size.span));
        }
    }
    if let Some(i) = &d.initializer {
        initializer(i, nest.child(i.span()));
    }
}

fn variable(v: &Variable, mut nest: Nest) {
    let may_be_nameless = matches!(v.specifiers.space.value, Space::Global | Space::Const | Space::Shared);
    assert!(may_be_nameless || !v.names.is_empty());
    specifiers(&v.specifiers, &nest);
    for d in &v.names {
        declarator(d, nest.child(d.span));
    }
}

fn parameter(p: &Parameter, mut nest: Nest) {
    specifiers(&p.specifiers, &nest);
    declarator(&p.declarator, nest.child(p.declarator.span));
}

fn instruction(i: &Instruction, mut nest: Nest) {
    if let Some(guard) = &i.guard {
        nest.child(guard.span).child(guard.name.span);
    }
    nest.child(i.mnemonic.span);
    for word in &i.modifiers {
        nest.child(word.span);
    }
    for o in &i.operands {
        operand(o, nest.child(o.span));
    }
}

fn block(b: &Block, mut nest: Nest) {
    for statement in &b.statements {
        let mut nest = nest.child(statement.span());
        match statement {
            Statement::Block(b) => block(b, nest),
            Statement::Variable(v) => variable(v, nest),
            Statement::Instruction(i) => instruction(i, nest),
            Statement::CallPrototype(p) => {
                nest.child(p.label.span);
                for p in p.returns.iter().chain(&p.parameters) {
                    parameter(p, nest.child(p.span));
                }
            }
            Statement::BranchTargets(t) => {
                if let Some(label) = t.label {
                    nest.child(label.span);
                }
                for t in &t.targets {
                    nest.child(t.span);
                }
            }
            Statement::Label(_)
            | Statement::Loc(_)
            | Statement::Pragma(_)
            | Statement::Target(_)
            | Statement::CallTargets(_)
            | Statement::Error(_) => {}
        }
    }
}

fn check(source: &str) {
    let parsed = parse(source);
    let mut end = 0;
    for token in &parsed.tree.tokens {
        assert!(token.span.start == end && token.span.end > end, "tokens follow each other");
        end = token.span.end;
    }
    assert_eq!(end as usize, source.len());
    assert_eq!(parsed.tree.print(source), source);

    let mut nest = Nest::new(Span::new(0, end), 0);
    let mut error = false;
    for item in &parsed.tree.items {
        let mut nest = nest.child(item.span());
        match item {
            Item::Variable(v) => variable(v, nest),
            Item::Function(f) => {
                for p in &f.returns {
                    parameter(p, nest.child(p.span));
                }
                if let Some(name) = f.name {
                    nest.child(name.span);
                }
                for p in &f.parameters {
                    parameter(p, nest.child(p.span));
                }
                for d in &f.directives {
                    nest.child(d.span);
                }
                if let Some(b) = &f.body {
                    block(b, nest.child(b.span));
                }
            }
            Item::Error(_) => error = true,
            Item::Version(_)
            | Item::Target(_)
            | Item::AddressSize(_)
            | Item::Alias(_)
            | Item::File(_)
            | Item::Section(_)
            | Item::Dwarf(_)
            | Item::Pragma(_)
            | Item::Loc(_) => {}
        }
    }
    assert!(!error || !parsed.diagnostics.is_empty(), "an error without a diagnostic");

    let shown = Source::new("x.ptx", source);
    let mut before = 0;
    for d in &parsed.diagnostics {
        assert!(d.span.start >= before && d.span.end <= end.max(d.span.start), "in the order of the text");
        assert!(source.get(d.span.start as usize..d.span.end as usize).is_some(), "on whole characters");
        assert!(!d.message.is_empty());
        before = d.span.start;
    }
    for d in parsed.diagnostics.iter().take(5) {
        shown.human(d, Color::Always);
        shown.json(d);
    }
}

fn fixtures() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/syntax/ok");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("the folder exists")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths.into_iter().map(|path| fs::read_to_string(path).expect("a text")).collect()
}

const PIECES: &[&str] = &[
    " ",
    "\n",
    "\t",
    "//x\n",
    "/*",
    "*/",
    "#",
    "# 1\n",
    "@@DWARF",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ";",
    ":",
    "?",
    "@",
    "!",
    "~",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "&&",
    "|",
    "||",
    "^",
    "<",
    ">",
    "<=",
    ">=",
    "<<",
    ">>",
    "=",
    "==",
    "!=",
    "_",
    "\"",
    "\"a\"",
    ".",
    ".5",
    "1",
    "0x",
    "0x1F",
    "1e5",
    "0f3F800000",
    "0d",
    "18446744073709551616",
    "é",
    "\u{feff}",
    "\0",
    "x",
    "%r1",
    "$",
    "WARP_SZ",
    "generic",
    "call",
    "ld",
    "L:",
    ".version",
    "6.4",
    ".target",
    "sm_70",
    ".address_size",
    ".visible",
    ".extern",
    ".entry",
    ".func",
    ".reg",
    ".param",
    ".global",
    ".const",
    ".align",
    ".ptr",
    ".attribute",
    ".v4",
    ".u32",
    ".s64",
    ".b8",
    ".pred",
    ".x",
    ".maxntid",
    ".noreturn",
    ".pragma",
    ".loc",
    ".file",
    ".section",
    ".debug_info",
    ".alias",
    ".callprototype",
    ".calltargets",
    ".branchtargets",
    "function_name",
    "inlined_at",
    "@p",
    "add.u32 %r1, %r2, 3;",
    ".entry k {",
    ".reg .b32 %r<4>;",
    "ret;",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text(source in ".{0,200}") {
        check(&source);
    }

    #[test]
    fn any_sequence_of_pieces(pieces in prop::collection::vec(prop::sample::select(PIECES), 0..80)) {
        check(&pieces.concat());
    }

    #[test]
    fn changed_texts(
        source in prop::sample::select(fixtures()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0usize..40, prop::sample::select(PIECES)), 1..6),
    ) {
        let mut source = source;
        for (at, length, piece) in changes {
            let start = source.floor_char_boundary(at.index(source.len() + 1));
            let end = source.ceil_char_boundary((start + length).min(source.len()));
            source.replace_range(start..end, piece);
        }
        check(&source);
    }
}

#[test]
fn an_operand_that_is_not_there_has_an_empty_place() {
    check(".entry k { add a,\n.target b }");
}

#[test]
fn texts_may_end_anywhere() {
    for source in fixtures() {
        for (cut, _) in source.char_indices() {
            check(&source[..cut]);
        }
    }
}

#[test]
fn deep_nesting_is_refused_and_not_followed() {
    let many = 100_000;
    let body = |inner: &str, closing: &str| {
        format!(".entry k {{ {} {} ret; }}", inner.repeat(many), closing.repeat(many))
    };
    let value = |inner: &str, closing: &str| {
        format!(".global .u32 x = {}1{};", inner.repeat(many), closing.repeat(many))
    };
    let texts = [
        body("{", "}"),
        body("{", ""),
        body("mov a, (", ""),
        body("L: {", "}"),
        format!(".entry k {{ mov a, {} b; ret; }}", "x[".repeat(many)),
        format!(".entry k {{ mov a, {} b; ret; }}", "[{".repeat(many)),
        format!(".entry k {{ mov a, {} b; ret; }}", "x|".repeat(many)),
        format!(".entry k {{ call ({} b; ret; }}", "{".repeat(many)),
        value("(", ")"),
        value("-", ""),
        value("1+", ""),
        value("1?", ":1"),
        value("1?1:", ""),
        value("(.s64)", ""),
        value("generic(", ")"),
        value("1(", ")"),
        value("{", "}"),
        ".func (".repeat(many),
        ".visible ".repeat(many),
    ];
    for source in texts {
        check(&source);
        assert!(!parse(&source).diagnostics.is_empty(), "{}", &source[..40]);
    }
}
