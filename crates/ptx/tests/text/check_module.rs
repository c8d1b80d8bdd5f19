//! Contents of a checked module: values and handles, compared with the text.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ptx::check::module::{AddressBase, LocalRole, Operand, Reloc, Statement, Symbol};
use ptx::check::{CheckOptions, Module, Unresolved, check, unresolved};

const HEAD: &str = ".version 7.1\n.target sm_70\n.address_size 64\n";

fn module(text: &str) -> Module {
    let checked = check("test.ptx", &format!("{HEAD}{text}"), &CheckOptions::default());
    checked.module.unwrap_or_else(|| panic!("{:#?}", checked.diagnostics))
}

/// The operands of the instructions of the last function.
fn operands(text: &str) -> Vec<Vec<Operand>> {
    let module = module(text);
    let statements = &module.functions.last().unwrap().body.as_ref().unwrap().statements;
    let insts = statements.iter().filter_map(|s| if let Statement::Inst(i) = s { Some(i) } else { None });
    insts.map(|inst| inst.operands.clone()).collect()
}

fn bytes(text: &str) -> Vec<u8> {
    module(text).variables.last().unwrap().init.as_ref().unwrap().bytes.clone()
}

#[test]
fn initial_bytes_are_little_endian_and_nested() {
    assert_eq!(bytes(".global .u16 x[3] = { 1, -2 };"), [1, 0, 0xFE, 0xFF]);
    let ragged = [1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
    assert_eq!(bytes(".global .s32 x[3][2] = { {1, 2}, {3} };"), ragged);
    assert_eq!(bytes(".global .f32 x = 1.5;"), 0x3FC0_0000u32.to_le_bytes());
    // 0.1 in binary32, rounded to nearest: 0x3DCCCCCD.
    assert_eq!(bytes(".const .f32 x = 0.1;"), 0x3DCC_CCCDu32.to_le_bytes());
    assert_eq!(bytes(".global .v2 .u8 x[2] = { {1, 2}, {3} };"), [1, 2, 3]);
    assert_eq!(bytes(".global .u64 x = ~0 - 1;"), (u64::MAX - 1).to_le_bytes());
}

#[test]
fn the_first_dimension_comes_from_the_initialiser() {
    let module = module(".global .u32 x[][2] = { {1}, {2}, {3} };");
    let x = &module.variables[0];
    assert_eq!((x.dims.as_slice(), x.bytes, x.align), ([3, 2].as_slice(), 24, 4));
}

#[test]
fn addresses_become_relocations() {
    let module = module(
        ".func f() { ret; }\n.global .u32 x[4];\n.global .u64 t[4] = { f, x+4, generic(x)-8, 5 };\n\
         .global .align 8 .u8 b[12] = { 1, 2, 3, 4, 0xFF(x), 0xFF00(x), 0xFF0000(x), 0xFF000000(x) };",
    );
    let relocs = |name: &str| {
        let variable = module.variables.iter().find(|v| v.name == name).unwrap();
        let plain = |r: &Reloc| (r.offset, r.bytes, matches!(r.symbol, Symbol::Func(_)), r.addend, r.generic);
        variable.init.as_ref().unwrap().relocs.iter().map(plain).collect::<Vec<_>>()
    };
    assert_eq!(relocs("t"), [(0, 8, true, 0, false), (8, 8, false, 4, false), (16, 8, false, -8, true)]);
    assert_eq!(relocs("b"), [(4, 4, false, 0, false)]);
}

#[test]
fn before_3_1_global_addresses_are_generic() {
    let text = ".version 3.0\n.target sm_20\n.address_size 64\n.global .u32 x; .const .u32 c; .global .u64 p[2] = { x, c };";
    let checked = check("old.ptx", text, &CheckOptions::default());
    let module = checked.module.unwrap();
    let relocs = &module.variables[2].init.as_ref().unwrap().relocs;
    assert_eq!((relocs[0].generic, relocs[1].generic), (true, false));
}

#[test]
fn immediates_are_bits_of_the_operand_type() {
    let text = ".visible .entry k() { .reg .b16 h; .reg .b32 r; .reg .b64 d; .reg .f32 f; .reg .pred p;\n\
        mov.u16 h, -1; add.s32 r, r, -2; mov.f64 d, 1.5; add.f32 f, f, 0.1; mov.b32 r, 0f3F800000; mov.pred p, 7; }";
    let immediates: Vec<Operand> = operands(text).into_iter().map(|mut o| o.pop().unwrap()).collect();
    let wanted = [0xFFFF, 0xFFFF_FFFE, 0x3FF8_0000_0000_0000, 0x3DCC_CCCD, 0x3F80_0000, 1];
    assert_eq!(immediates, wanted.map(Operand::Imm));
}

#[test]
fn optional_operands_keep_their_places() {
    let text = ".visible .entry k() { .reg .pred p; .reg .b32 r; bar.red.popc.u32 r, 1, !p; bar.red.popc.u32 r, 1, 64, p; }";
    let found = operands(text);
    assert_eq!(found[0].len(), 4);
    assert_eq!(found[0][2], Operand::Absent);
    assert!(matches!(found[0][3], Operand::Not(_)));
    assert_eq!(found[1][2], Operand::Imm(64));
}

#[test]
fn offsets_are_sign_extended_from_32_bits() {
    let text = ".visible .entry k() { .reg .b32 r; .reg .b64 d;\n\
        ld.global.u32 r, [d+-4]; ld.global.u32 r, [d+0xFFFFFFFC]; ld.local.u32 r, [0xFFFFFFFC]; }";
    let offsets: Vec<i64> = operands(text)
        .iter()
        .map(|o| if let Operand::Address(a) = &o[1] { a.offset } else { panic!("{o:?}") })
        .collect();
    assert_eq!(offsets, [-4, -4, 0xFFFF_FFFC]);
}

#[test]
fn static_variables_of_functions_are_hoisted() {
    let module = module(
        ".visible .entry a() { .shared .u32 s; ret; }\n.visible .entry b() { { .shared .u32 s; } .reg .u32 r; ld.shared.u32 r, [t]; ret; }"
            .replace("[t]", "[16]")
            .as_str(),
    );
    let owners: Vec<Option<u32>> = module.variables.iter().map(|v| v.owner.map(|f| f.0)).collect();
    assert_eq!(owners, [Some(0), Some(1)]);
}

#[test]
fn parameters_have_roles_and_storage() {
    let module =
        module(".func (.param .b32 r) f(.param .b32 x, .reg .b64 y) { .param .b32 z; .local .b32 l; ret; }");
    let function = &module.functions[0];
    let roles: Vec<LocalRole> = function.body.as_ref().unwrap().locals.iter().map(|l| l.role).collect();
    assert_eq!(roles, [LocalRole::Return(0), LocalRole::Input(0), LocalRole::CallParam, LocalRole::Local]);
    assert!(function.signature.params.iter().all(|p| p.storage.is_some()));
}

#[test]
fn a_prototype_and_its_definition_are_one_function() {
    let module = module(
        ".visible .func f(.param .b32 _);\n.visible .entry k() { .param .b32 a; call f, (a); ret; }\n\
         .visible .func f(.param .b32 x) { ret; }\n.extern .func unused();\n.extern .func g();\n.visible .entry l() { call g; ret; }\n.func h();\n.alias h, f0;\n"
            .replace(".func h();\n.alias h, f0;\n", "")
            .as_str(),
    );
    assert_eq!(
        module.functions.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
        ["f", "k", "unused", "g", "l"]
    );
    assert!(module.functions[0].body.is_some());
    let missing: Vec<Unresolved> = unresolved(&module);
    assert_eq!(missing, [Unresolved::Func(ptx::check::module::FuncId(3))]);
}

#[test]
fn parameterised_registers_come_into_being_when_used() {
    let module = module(".visible .entry k() { .reg .b32 %r<4000000000>; mov.b32 %r3999999999, %r0; ret; }");
    let registers = &module.functions[0].body.as_ref().unwrap().registers;
    let names: Vec<&str> = registers.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["%r3999999999", "%r0"]);
}

#[test]
fn a_constant_index_counts_elements() {
    let text = ".global .u32 a[8]; .visible .entry k() { .reg .b64 d; mov.u64 d, a[5]; mov.u64 d, a+5; }";
    let offsets: Vec<i64> = operands(text)
        .iter()
        .map(|o| match &o[1] {
            Operand::SymbolAddress(AddressBase::Var(_), offset) => *offset,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(offsets, [20, 5]);
}
