//! Contents of the syntax tree: operands, expressions and declarations in a notation that shows their
//! structure.
//!
//! The right-hand sides are written by hand from PTX ISA §4.6.3 (precedence), §5.4 and §6.4.

use ptx::syntax::tree::{
    Address, Declarator, Expr, ExprKind, FunctionDirectiveKind, Initializer, Instruction, Item, Linkage,
    Operand, OperandKind, Reference, SectionLine, Specifiers, Statement,
};
use ptx::syntax::{Parsed, parse};

fn clean(source: &str) -> Parsed {
    let parsed = parse(source);
    assert_eq!(parsed.diagnostics, [], "in {source}");
    parsed
}

fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    items.iter().map(show).collect::<Vec<_>>().join(" ")
}

fn reference(source: &str, reference: &Reference) -> String {
    let suffix = reference.suffix.map_or(String::new(), |word| format!("·{}", word.text(source)));
    format!("{}{suffix}", reference.name.text(source))
}

/// Every operator with its operands in parentheses.
fn expr(source: &str, e: &Expr) -> String {
    match &e.kind {
        ExprKind::Integer { value, unsigned } => format!("{value}{}", if *unsigned { "U" } else { "" }),
        ExprKind::Double(bits) => format!("double {:?}", f64::from_bits(*bits)),
        ExprKind::Single(bits) => format!("single {bits:08x}"),
        ExprKind::WarpSz => "WARP_SZ".into(),
        ExprKind::Name(name) => reference(source, name),
        ExprKind::Section(word) => format!("section {}", word.text(source)),
        ExprKind::Generic(inner) => format!("generic<{}>", expr(source, inner)),
        ExprKind::Mask { mask, address } => format!("mask {mask:x}<{}>", expr(source, address)),
        ExprKind::Paren(inner) => expr(source, inner),
        ExprKind::Unary { op, operand } => format!("({} {})", op.symbol(), expr(source, operand)),
        ExprKind::Binary { op, left, right } => {
            format!("({} {} {})", op.symbol(), expr(source, left), expr(source, right))
        }
        ExprKind::Ternary { condition, then, otherwise } => {
            format!("(? {} {} {})", expr(source, condition), expr(source, then), expr(source, otherwise))
        }
        ExprKind::Error => "error".into(),
    }
}

fn address(source: &str, a: &Address) -> String {
    let base = a.base.as_ref().map_or("-".into(), |base| reference(source, base));
    let offset = a.offset.as_ref().map_or("-".into(), |offset| expr(source, offset));
    format!("{base} offset {offset}")
}

fn operand(source: &str, o: &Operand) -> String {
    match &o.kind {
        OperandKind::Sink => "sink".into(),
        OperandKind::Name(name) => reference(source, name),
        OperandKind::Not(name) => format!("not {}", reference(source, name)),
        OperandKind::Minus(name) => format!("minus {}", reference(source, name)),
        OperandKind::Expr(e) => format!("expr {}", expr(source, e)),
        OperandKind::Vector(elements) => format!("vector<{}>", list(elements, |e| operand(source, e))),
        OperandKind::Address(a) => format!("address<{}>", address(source, a)),
        OperandKind::AddressList(elements) => format!("list<{}>", list(elements, |e| operand(source, e))),
        OperandKind::Indexed { array, index } => {
            format!("{} at <{}>", array.text(source), address(source, index))
        }
        OperandKind::Pair(a, b) => format!("pair<{} {}>", operand(source, a), operand(source, b)),
        OperandKind::Parameters(elements) => format!("params<{}>", list(elements, |e| operand(source, e))),
        OperandKind::Error => "error".into(),
    }
}

fn statements(body: &str) -> (String, Vec<Statement>) {
    let source = format!(".entry k {{ {body} }}");
    let mut parsed = clean(&source);
    match parsed.tree.items.pop() {
        Some(Item::Function(function)) => (source, function.body.expect("a body").statements),
        other => panic!("not a function: {other:?}"),
    }
}

fn instruction(text: &str) -> (String, Instruction) {
    let (source, mut statements) = statements(text);
    assert_eq!(statements.len(), 1, "{text}");
    match statements.pop() {
        Some(Statement::Instruction(instruction)) => (source, instruction),
        other => panic!("not an instruction: {other:?}"),
    }
}

#[test]
fn operands_have_the_shapes_of_the_manual() {
    let cases = [
        ("mov.u32 %r1, %tid.x;", "%r1, %tid·x"),
        ("mov.u32 %r1, WARP_SZ;", "%r1, expr WARP_SZ"),
        ("mov.u32 %r1, -1;", "%r1, expr (- 1)"),
        ("mov.b64 {%r1, _}, x;", "vector<%r1 sink>, x"),
        ("mov.u64 x, array+4;", "x, expr (+ array 4)"),
        ("mov.u32 x, a[1];", "x, a at <- offset 1>"),
        ("ld.u32 x, a[%r2+-4];", "x, a at <%r2 offset (- 4)>"),
        ("ld.u32 x, [y];", "x, address<y offset ->"),
        ("ld.u32 x, [y+-8];", "x, address<y offset (- 8)>"),
        ("ld.u32 x, [y-8];", "x, address<y offset (- 8)>"),
        ("ld.u32 x, [y-8+4*2];", "x, address<y offset (+ (- 8) (* 4 2))>"),
        ("ld.u32 x, [0x10];", "x, address<- offset 16>"),
        ("ld.u32 x, [4+y];", "x, address<- offset (+ 4 y)>"),
        ("ld.u32 x, [v.x+4];", "x, address<v·x offset 4>"),
        ("setp.lt.s32 p|q, a, b, !c;", "pair<p q>, a, b, not c"),
        ("setp.lt.s32 p|_, a, !0;", "pair<p sink>, a, expr (! 0)"),
        ("setp.lt.s32 _|p, a, b;", "pair<sink p>, a, b"),
        ("tex.2d.v4.f32.f32 {a,b,c,d}, [t, s, {x,y}];", "vector<a b c d>, list<t s vector<x y>>"),
        ("tex.1d.v4.f32.s32 v, [t, x];", "v, list<t x>"),
        ("vadd.s32.s32.s32 a.h0, -b.b1, c.b3210, d;", "a·h0, minus b·b1, c·b3210, d"),
        ("call (a), f, (b, 4, -1.5), proto;", "params<a>, f, params<b expr 4 expr (- double 1.5)>, proto"),
        ("add.s32 a, b, (1 + 2) * 3;", "a, b, expr (* (+ 1 2) 3)"),
        ("add.f32 a, -0f3F800000, -b;", "a, expr (- single 3f800000), minus b"),
        ("add.s32 a, -b + 1, !c;", "a, expr (+ (- b) 1), not c"),
        ("ret;", ""),
    ];
    for (text, expected) in cases {
        let (source, instruction) = instruction(text);
        let shown = instruction.operands.iter().map(|o| operand(&source, o)).collect::<Vec<_>>().join(", ");
        assert_eq!(shown, expected, "{text}");
    }
}

#[test]
fn an_opcode_is_a_mnemonic_and_words() {
    let (source, i) = instruction("@!%p1 ld.volatile.const[3].v4.L2::128B.u32 {a,b,c,d}, [x];");
    let guard = i.guard.as_ref().expect("a guard");
    assert!(guard.negated);
    assert_eq!(guard.name.name.text(&source), "%p1");
    assert_eq!(i.mnemonic.text(&source), "ld");
    assert_eq!(list(&i.modifiers, |m| m.text(&source).into()), "volatile const v4 L2::128B u32");
    assert_eq!(i.bank.as_ref().map(|b| expr(&source, b)).as_deref(), Some("3"));
    assert_eq!(i.opcode_span().text(&source), "ld.volatile.const[3].v4.L2::128B.u32");
    assert_eq!(i.span.text(&source), "@!%p1 ld.volatile.const[3].v4.L2::128B.u32 {a,b,c,d}, [x];");
    let (source, i) = instruction("tex.1d.v4.f32.f32 a, [b];");
    assert_eq!(list(&i.modifiers, |m| m.text(&source).into()), "1d v4 f32 f32");
}

#[test]
fn operators_bind_as_in_c() {
    let cases = [
        ("1+2*3", "(+ 1 (* 2 3))"),
        ("1-2-3", "(- (- 1 2) 3)"),
        ("2*3%4/5", "(/ (% (* 2 3) 4) 5)"),
        ("-1+2", "(+ (- 1) 2)"),
        ("!~-+1", "(! (~ (- (+ 1))))"),
        ("1<<2+3", "(<< 1 (+ 2 3))"),
        ("1<2<<3", "(< 1 (<< 2 3))"),
        ("1==2<3", "(== 1 (< 2 3))"),
        ("1&2==3", "(& 1 (== 2 3))"),
        ("1^2&3", "(^ 1 (& 2 3))"),
        ("1|2^3", "(| 1 (^ 2 3))"),
        ("1&&2|3", "(&& 1 (| 2 3))"),
        ("1||2&&3", "(|| 1 (&& 2 3))"),
        ("1?2:3?4:5", "(? 1 2 (? 3 4 5))"),
        ("1?2?3:4:5", "(? 1 (? 2 3 4) 5)"),
        ("1||0?2:3", "(? (|| 1 0) 2 3)"),
        ("(.s64)1+2", "(+ ((.s64) 1) 2)"),
        ("-(.u64)-1", "(- ((.u64) (- 1)))"),
        ("10%3", "(% 10 3)"),
        ("WARP_SZ%3", "(% WARP_SZ 3)"),
        ("(4)%3", "(% 4 3)"),
        ("1>=2!=3<=4", "(!= (>= 1 2) (<= 3 4))"),
        ("8>>1>>2", "(>> (>> 8 1) 2)"),
        ("generic(x)+8", "(+ generic<x> 8)"),
        ("0xFF00(x)", "mask ff00<x>"),
        ("0xffffffffffffffff", "18446744073709551615U"),
    ];
    for (text, expected) in cases {
        let source = format!(".global .u64 a = {text};");
        match clean(&source).tree.items.as_slice() {
            [Item::Variable(v)] => match &v.names[0].initializer {
                Some(Initializer::Value(e)) => {
                    assert_eq!(expr(&source, e), expected, "{text}");
                    assert_eq!(e.span.text(&source), text);
                }
                other => panic!("{text}: {other:?}"),
            },
            other => panic!("{text}: {other:?}"),
        }
    }
}

fn initializer(source: &str, i: &Initializer) -> String {
    match i {
        Initializer::Value(e) => expr(source, e),
        Initializer::List { items, .. } => format!("{{{}}}", list(items, |i| initializer(source, i))),
        Initializer::Field { name, value } => format!("{}={}", name.text(source), expr(source, value)),
    }
}

fn specifiers(source: &str, s: &Specifiers) -> String {
    let mut shown = String::new();
    shown += &s.linkage.map_or(String::new(), |l| format!("{} ", l.value.name()));
    shown += s.space.value.name();
    shown += &s.bank.as_ref().map_or(String::new(), |b| format!(" bank {}", expr(source, b)));
    shown += &s.align.as_ref().map_or(String::new(), |a| format!(" align {}", expr(source, a)));
    shown += &list(&s.attributes, |a| format!(" attribute {}", a.word.text(source)));
    shown += &s.vector.map_or(String::new(), |v| format!(" v{}", v.value));
    shown += &s.ty.map_or(String::new(), |t| format!(" {}", t.value.name()));
    if let Some(ptr) = &s.ptr {
        shown += &format!(" ptr {}", ptr.space.map_or("generic", |space| space.value.name()));
        shown += &ptr.align.as_ref().map_or(String::new(), |a| format!(" align {}", expr(source, a)));
    }
    shown
}

fn declarator(source: &str, d: &Declarator) -> String {
    let count = d.count.as_ref().map_or(String::new(), |c| format!("<{}>", expr(source, c)));
    let dimensions: String = d
        .dimensions
        .iter()
        .map(|n| format!("[{}]", n.size.as_ref().map_or(String::new(), |e| expr(source, e))))
        .collect();
    let value = d.initializer.as_ref().map_or(String::new(), |i| format!(" = {}", initializer(source, i)));
    format!("{}{count}{dimensions}{value}", d.name.text(source))
}

#[test]
fn declarations_have_the_shapes_of_the_manual() {
    let cases = [
        (".reg .pred p, q, r;", "reg pred: p q r"),
        (".reg .b32 %r<100>, x, y<4>;", "reg b32: %r<100> x y<4>"),
        (".global .s32 o[][2] = { {-1, 0}, {0} };", "global s32: o[][2] = {{(- 1) 0} {0}}"),
        (".shared .v2 .u16 uv;", "shared v2 u16: uv"),
        (".extern .shared .align 16 .b8 d[];", "extern shared align 16 b8: d[]"),
        (".const .b8 .align 8 a[4*3];", "const align 8 b8: a[(* 4 3)]"),
        (".const[3] .u32 c[];", "const bank 3 u32: c[]"),
        (".global .attribute(.managed) .u64 x;", "global attribute managed u64: x"),
        (".tex .u32 t;", "tex u32: t"),
        (
            ".global .samplerref s = { addr_mode_0 = wrap, filter_mode = nearest };",
            "global samplerref: s = {addr_mode_0=wrap filter_mode=nearest}",
        ),
        (".weak .global .u32 a = 1, b = {};", "weak global u32: a = 1 b = {}"),
    ];
    for (text, expected) in cases {
        match clean(text).tree.items.as_slice() {
            [Item::Variable(v)] => {
                let shown = format!(
                    "{}: {}",
                    specifiers(text, &v.specifiers),
                    list(&v.names, |d| declarator(text, d))
                );
                assert_eq!(shown, expected);
                assert_eq!(v.span.text(text), text);
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_function_has_its_parts() {
    let source = ".visible .func (.param .b32 r) f(.param .u64 .ptr .global .align 16 p, .reg .f32 x, .param .b8 _[12])
        .noreturn .pragma \"a\", \"b\"; { ret; }";
    match clean(source).tree.items.as_slice() {
        [Item::Function(f)] => {
            assert_eq!(f.linkage.map(|l| l.value), Some(Linkage::Visible));
            assert_eq!(f.name.expect("a name").text(source), "f");
            let show = |p: &ptx::syntax::tree::Parameter| {
                format!("({}: {})", specifiers(source, &p.specifiers), declarator(source, &p.declarator))
            };
            assert_eq!(list(&f.returns, show), "(param b32: r)");
            assert_eq!(
                list(&f.parameters, show),
                "(param u64 ptr global align 16: p) (reg f32: x) (param b8: _[12])"
            );
            assert!(matches!(f.directives[0].kind, FunctionDirectiveKind::NoReturn));
            match &f.directives[1].kind {
                FunctionDirectiveKind::Pragma(strings) => {
                    assert_eq!(list(strings, |s| s.text(source).into()), "a b")
                }
                other => panic!("{other:?}"),
            }
            assert_eq!(f.body.as_ref().map(|b| b.span.text(source)), Some("{ ret; }"));
            assert_eq!(f.span.text(source), source);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn labels_name_the_directives_behind_them() {
    let (source, statements) = statements(
        "a: b: ts: .branchtargets L, M<10>; p: .callprototype (.param .u32 _) _ (.param .f32 _) .noreturn;
         c: .calltargets f, g; end:",
    );
    let shown = list(&statements, |statement| match statement {
        Statement::Label(name) => format!("{}:", name.text(&source)),
        Statement::BranchTargets(t) => {
            let targets = list(&t.targets, |t| {
                let count = t.count.as_ref().map_or(String::new(), |c| format!("<{}>", expr(&source, c)));
                format!("{}{count}", t.name.text(&source))
            });
            format!("{} branches to {targets};", t.label.map_or("", |l| l.text(&source)))
        }
        Statement::CallTargets(t) => {
            format!("{} calls {};", t.label.text(&source), list(&t.targets, |n| n.text(&source).into()))
        }
        Statement::CallPrototype(p) => format!(
            "{} takes {} returns {} with {};",
            p.label.text(&source),
            p.parameters.len(),
            p.returns.len(),
            p.directives.len()
        ),
        other => panic!("{other:?}"),
    });
    assert_eq!(shown, "a: b: ts branches to L M<10>; p takes 1 returns 1 with 1; c calls f g; end:");
}

#[test]
fn header_and_debugging_directives_have_their_numbers() {
    let source = ".version 6.4\n.target sm_70, debug\n.address_size 64\n.file 1 \"a \\\"b\\\".cu\", 12, 34\n\
                  .loc 1 2 3, function_name $L__info+4, inlined_at 5 6 7\n\
                  .section .debug_info { .b8 1, 2\n .b32 .debug_abbrev+4\nl: .b64 l-m }\n@@DWARF .byte 1, 2";
    let parsed = clean(source);
    match parsed.tree.items.as_slice() {
        [
            Item::Version(version),
            Item::Target(target),
            Item::AddressSize(size),
            Item::File(file),
            Item::Loc(loc),
            Item::Section(section),
            Item::Dwarf(dwarf),
        ] => {
            assert_eq!(version.number.map(|n| n.value), Some((6, 4)));
            assert_eq!(list(&target.names, |n| n.text(source).into()), "sm_70 debug");
            assert_eq!(size.size.map(|n| n.value), Some(64));
            assert_eq!((file.index.value, file.name.text(source)), (1, "a \\\"b\\\".cu"));
            assert_eq!((file.timestamp.map(|n| n.value), file.size.map(|n| n.value)), (Some(12), Some(34)));
            assert_eq!((loc.file.value, loc.line.value, loc.column.value), (1, 2, 3));
            let inlined = loc.inlined.as_ref().expect("the inlining part");
            assert_eq!(expr(source, &inlined.function_name), "(+ $L__info 4)");
            assert_eq!((inlined.file.value, inlined.line.value, inlined.column.value), (5, 6, 7));
            assert_eq!(section.name.text(source), ".debug_info");
            let lines = list(&section.lines, |line| match line {
                SectionLine::Label(name) => format!("{}:", name.text(source)),
                SectionLine::Data { ty, values, .. } => {
                    format!("{} {};", ty.value.name(), list(values, |v| expr(source, v)))
                }
            });
            assert_eq!(lines, "b8 1 2; b32 (+ section debug_abbrev 4); l: b64 (- l m);");
            assert_eq!(dwarf.text(source), "@@DWARF .byte 1, 2");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn names_of_faulty_declarations_are_kept() {
    let cases = [
        (".reg .u33 a, b;", "a b"),
        (".reg .u32 a b<4> c;", "a b<4> c"),
        (".global .u32 a = , b, c[2];", "a b c[2]"),
        (".global .align 4 a[3];", "a[3]"),
        (".global .u32 a, 5, c;", "a c"),
    ];
    for (text, expected) in cases {
        let parsed = parse(text);
        assert_eq!(parsed.diagnostics.len(), 1, "{text}");
        match parsed.tree.items.as_slice() {
            [Item::Variable(v)] => assert_eq!(list(&v.names, |d| declarator(text, d)), expected),
            other => panic!("{text}: {other:?}"),
        }
    }
}
