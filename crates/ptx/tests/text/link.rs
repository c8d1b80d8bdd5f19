//! Linking: which definition is used, and the diagnostics for modules that do not match. PTX ISA §11.6.

use ptx::check::module::{Linkage, LocalRole, Module, Operand, Statement};
use ptx::check::{CheckOptions, Checked, link, unresolved};
use ptx::diag::render::{Color, Source};

const HEAD: &str = ".version 6.4\n.target sm_70\n.address_size 64\n";

/// Links texts that are named `0.ptx`, `1.ptx`, ….
fn linked(texts: &[&str]) -> Checked {
    let texts: Vec<(String, String)> =
        texts.iter().enumerate().map(|(i, text)| (format!("{i}.ptx"), format!("{HEAD}{text}"))).collect();
    let texts: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    link(&texts, &CheckOptions::default())
}

#[track_caller]
fn accepted(texts: &[&str]) -> Module {
    let checked = linked(texts);
    checked.module.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

/// The one error, as people see it.
#[track_caller]
fn refused(texts: &[&str]) -> String {
    let checked = linked(texts);
    assert!(checked.module.is_none());
    let [error] = checked.diagnostics.as_slice() else { panic!("{:?}", checked.diagnostics) };
    let parts = checked.source.parts.iter().map(|part| (part.start, part.name.as_str()));
    Source::with_parts(&checked.source.text, std::borrow::Cow::Borrowed(checked.source.lines()), parts)
        .human(error, Color::Never)
}

#[track_caller]
fn assert_shows(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in\n{text}");
    }
}

/// The names of variables and functions with their linkage, in order.
fn symbols(module: &Module) -> Vec<(&str, Linkage)> {
    let variables = module.variables.iter().map(|v| (v.name.as_str(), v.linkage));
    variables.chain(module.functions.iter().map(|f| (f.name.as_str(), f.linkage))).collect()
}

#[test]
fn external_symbols_find_their_definitions() {
    let module = accepted(&[
        ".extern .global .u32 x;\n.extern .func f;\n.global .u64 p = x;\n.entry k() { call f; ret; }",
        ".global .u32 own;\n.visible .global .u32 x = 7;\n.visible .func f { ret; }",
    ]);
    assert_eq!(
        symbols(&module),
        [
            ("p", Linkage::Internal),
            ("own", Linkage::Internal),
            ("x", Linkage::Visible),
            ("k", Linkage::Internal),
            ("f", Linkage::Visible),
        ]
    );
    let p = module.variables[0].init.as_ref().expect("p has an initialiser");
    assert_eq!(format!("{:?}", p.relocs[0].symbol), "Var(VarId(2))");
    let body = module.functions[0].body.as_ref().expect("k has a body");
    let Statement::Inst(call) = &body.statements[0] else { panic!("the first statement is the call") };
    assert!(call.operands.iter().any(|o| matches!(o, Operand::Function(id) if id.0 == 1)));
    assert_eq!(unresolved(&module), []);
    assert_eq!(module.source.name_of(module.functions[1].span), "1.ptx");
    assert_eq!(module.source.line(module.functions[1].span), 6);
}

#[test]
fn what_nothing_defines_stays_external_once() {
    let text = ".extern .global .u32 x;\n.entry NAME() { .reg .b32 r; ld.global.u32 r, [x]; ret; }";
    let module = accepted(&[&text.replace("NAME", "a"), &text.replace("NAME", "b")]);
    assert_eq!(module.variables.len(), 1);
    assert_eq!(unresolved(&module).len(), 1);
}

#[test]
fn symbols_without_a_directive_stay_apart() {
    let text = ".global .u32 x;\n.func f { ret; }";
    let module = accepted(&[text, text]);
    assert_eq!((module.variables.len(), module.functions.len()), (2, 2));
    // A local symbol satisfies neither an external nor a weak one.
    let module = accepted(&[".extern .global .u32 x;", ".global .u32 x;"]);
    assert_eq!(module.variables.len(), 2);
    let module = accepted(&[".weak .global .u32 x = 1;", ".global .u32 x = 2;"]);
    assert_eq!(module.variables.len(), 2);
}

#[test]
fn a_visible_definition_goes_before_weak_ones() {
    let weak = ".weak .global .u32 x = 1;\n.weak .func f { .shared .u32 own; ret; }";
    let visible = ".visible .global .u32 x = 2;\n.visible .func f { ret; }";
    for texts in [[weak, visible, weak], [visible, weak, weak], [weak, weak, visible]] {
        let module = accepted(&texts);
        assert_eq!(symbols(&module), [("x", Linkage::Visible), ("f", Linkage::Visible)]);
        assert_eq!(module.variables[0].init.as_ref().map(|init| init.bytes.clone()), Some(vec![2, 0, 0, 0]));
    }
    let module = accepted(&[weak, weak]);
    assert_eq!(symbols(&module).len(), 3);
}

#[test]
fn two_visible_definitions_are_an_error_with_both_places() {
    let shown = refused(&[".visible .global .u32 x;", "\n.visible .global .u32 x;"]);
    assert_shows(&shown, &["P0107", "--> 1.ptx:5:23", "0.ptx:4:23", "first defined here"]);
    let shown = refused(&[".entry k() { ret; }", ".entry k() { ret; }"]);
    assert_shows(&shown, &["P0107", "`k` is defined in two modules"]);
}

#[test]
fn declarations_must_agree() {
    let cases = [
        (".extern .global .u32 x;", ".visible .global .f32 x;", "`.f32`, and `.u32`"),
        (".extern .global .u32 x;", ".visible .const .u32 x = 1;", "`.const`, and `.global`"),
        (".extern .global .u32 x[2];", ".visible .global .u32 x[3];", "12 bytes, and 8 bytes"),
        (".extern .func f;", ".visible .global .u32 f;", "a variable, and a function"),
        (
            ".extern .func f(.reg .b32 a);",
            ".visible .func f(.reg .b64 a) { ret; }",
            "`.reg .b64`, and `.reg .b32`",
        ),
        (".extern .func f;", ".visible .entry f() { ret; }", "a kernel, and a device function"),
    ];
    for (a, b, words) in cases {
        assert_shows(&refused(&[a, b]), &["P0307", words, "0.ptx:4", "1.ptx:4"]);
        assert_shows(&refused(&[b, a]), &["P0307", words, "0.ptx:4", "1.ptx:4"]);
    }
    accepted(&[".extern .global .u32 x[];", ".visible .global .u32 x[3];"]);
}

#[test]
fn the_largest_common_definition_counts() {
    let module = accepted(&[
        ".common .global .u32 x;",
        ".common .global .align 16 .b8 x[12];",
        ".common .global .u64 x;",
        ".extern .global .u32 x;",
    ]);
    assert_eq!(module.variables.len(), 1);
    assert_eq!((module.variables[0].bytes, module.variables[0].align), (12, 16));
    let module = accepted(&[".common .global .u64 x = 5;", ".common .global .u32 x;"]);
    assert!(module.variables[0].init.is_some());
    // Of two that are as large, the initialised one counts.
    let module = accepted(&[".common .global .u32 x;", ".common .global .u32 x = 5;"]);
    assert!(module.variables[0].init.is_some());

    let shown = refused(&[".common .global .u32 x = 5;", ".common .global .u64 x;"]);
    assert_shows(&shown, &["P0307", "4 bytes here", "8"]);
    let shown = refused(&[".common .global .u32 x = 5;", ".common .global .u32 x = 5;"]);
    assert_shows(&shown, &["P0402", "initialised in two modules", "0.ptx:4", "1.ptx:4"]);
    let shown = refused(&[".visible .global .u32 x;", ".common .global .u64 x;"]);
    assert_shows(&shown, &["P0307", "must be the largest"]);
}

#[test]
fn prototypes_files_and_dynamic_shared_memory_keep_apart() {
    let text = ".file 1 \"NAME.cu\"\n.file 2 \"common.h\"\n.extern .shared .b8 dynamic[];\n.visible .func NAME(.reg .b64 f) {\n\
                p: .callprototype _;\n.loc 1 3 0\ncall f, p;\n.loc 2 4 0\nret; }";
    let module = accepted(&[&text.replace("NAME", "a"), &text.replace("NAME", "b")]);
    let files: Vec<(u32, &str)> = module.files.iter().map(|(n, name)| (*n, name.as_str())).collect();
    assert_eq!(files, [(1, "a.cu"), (2, "common.h"), (3, "b.cu")]);
    assert_eq!((module.variables.len(), module.prototypes.len()), (2, 2));
    let body = format!("{:?}", module.functions[1].body.as_ref().map(|body| &body.statements));
    assert!(body.contains("Prototype(ProtoId(1))") && !body.contains("Prototype(ProtoId(0))"), "{body}");
    assert!(body.contains("file: 3, line: 3") && body.contains("file: 2, line: 4"), "{body}");
}

#[test]
fn modules_must_fit_together() {
    let small = ".version 6.4\n.target sm_70\n.address_size 32\n";
    let large = HEAD.to_owned() + ".entry k() { ret; }\n";
    let checked = link(&[("small", small), ("large", large.as_str())], &CheckOptions::default());
    assert!(checked.module.is_none());
    assert_eq!(checked.diagnostics.len(), 1);
    assert!(checked.diagnostics[0].message.contains("addresses of different sizes"));
    let constants = ".const .b8 NAME[40000];";
    let shown = refused(&[&constants.replace("NAME", "a"), &constants.replace("NAME", "b")]);
    assert_shows(&shown, &["P0113", "--> 1.ptx:4:12"]);
}

#[test]
fn mistakes_of_each_text_are_reported_with_its_name() {
    let shown = refused(&[".entry a() { ret; }", ".entry b() { rat; }"]);
    assert_shows(&shown, &["P0201", "--> 1.ptx:4:14"]);
}

#[test]
fn registers_of_module_scope_stay_those_of_their_module() {
    let texts = [1, 2].map(|n| {
        format!(
            ".version 2.3\n.target sm_20\n.address_size 64\n.reg .u32 m, n;\n.local .u32 l;\n\
             .visible .func f{n} () {{ mov.u32 n, {n}; st.local.u32 [l], n; ret; }}"
        )
    });
    let checked = link(&[("0.ptx", &texts[0]), ("1.ptx", &texts[1])], &CheckOptions::default());
    let module = checked.module.expect("they fit together");
    assert_eq!((module.registers.len(), module.locals.len()), (4, 2));
    let bodies = || module.functions.iter().filter_map(|f| f.body.as_ref());
    assert_eq!(bodies().map(|body| body.shared[0].1).collect::<Vec<_>>(), [1, 3]);
    let roles: Vec<LocalRole> = bodies().map(|body| body.locals[0].role).collect();
    assert_eq!(roles, [LocalRole::Shared(0), LocalRole::Shared(1)]);
    assert_eq!(ptx::ir::verify::verify(&ptx::ir::lower(module)), []);
}
