//! Examples of the layout. Both texts of each example are written by hand.

use super::format;

#[track_caller]
fn check(source: &str, expected: &str) {
    let formatted = format(source).expect("the text is well formed");
    assert_eq!(formatted, expected);
    assert_eq!(format(&formatted).expect("still well formed"), expected, "formatting again");
}

#[test]
fn a_kernel() {
    check(
        ".version 6.4 .target sm_70,debug\n\n\n\n.address_size 64\n.visible .entry k(.param .u64 a,\n  .param .align 4 .b8 b[16])\n\
         .maxntid 1,2 , 3 {.reg .b32 %r<3>; .reg .pred p;\n\n\nld .param .u64 %r1,[a+ 8];\n@ ! p bra L; L : add.s32 %r1,%r2, - 4;\n\
         { ret; }\n\n}",
        "\
.version 6.4
.target sm_70, debug

.address_size 64
.visible .entry k(
\t.param .u64 a,
\t.param .align 4 .b8 b[16]
)
.maxntid 1, 2, 3
{
\t.reg .b32 \t%r<3>;
\t.reg .pred \tp;

\tld.param.u64 \t%r1, [a+8];
\t@!p bra \tL;
L:
\tadd.s32 \t%r1, %r2, -4;
\t{
\t\tret;
\t}
}
",
    );
}

#[test]
fn functions_and_prototypes() {
    check(
        ".extern .func(.param .b32 r) f ( .param .b64 _ ) .noreturn ;\n.func g { p : .callprototype(.param .b32 _) _(.param .b64 _) ;\n\
         call.uni (r) , %rd1 , ( a,b ),p; t: .branchtargets L<3>,M; }",
        "\
.extern .func (.param .b32 r) f(
\t.param .b64 _
)
.noreturn;
.func g
{
p: .callprototype (.param .b32 _) _ (.param .b64 _);
\tcall.uni \t(r), %rd1, (a, b), p;
t: .branchtargets L<3>, M;
}
",
    );
}

#[test]
fn comments_stay_where_they_are() {
    check(
        "//a  \n\n\n/* b */ .version 6.4 // c\n# 1 \"x.cu\"\n.entry k() // d\n{ // e\n\n   // f\n\n\n//g\nadd.s32 /* h */ a, // i\nb, c;\n\
         /*0008*/ ret; // j\n\n  // k\n\n}\n// l",
        "\
//a

/* b */ .version 6.4 // c
# 1 \"x.cu\"
.entry k() // d
{ // e
\t// f

\t//g
\tadd.s32 /* h */ a, // i
\t\tb, c;
\t/*0008*/ ret; // j

\t// k
}
// l
",
    );
}

#[test]
fn expressions() {
    check(
        ".global .u32 x[] = {1 %(2),WARP_SZ % 3, - 1,1?2 :3 , (.s64) 4 , ~ 5 & 6};.const[ 2 ] .f32 y=0f3F800000; .global .u64 z=generic( x ) + 4 ;",
        "\
.global .u32 x[] = {1 % (2), WARP_SZ % 3, -1, 1 ? 2 : 3, (.s64)4, ~5&6};
.const[2] .f32 y = 0f3F800000;
.global .u64 z = generic(x)+4;
",
    );
}

#[test]
fn long_lists_are_broken_after_a_comma() {
    let source = format!(".global .b8 x[64] = {{{}}};", vec!["255"; 64].join(","));
    let formatted = format(&source).expect("well formed");
    let lines: Vec<&str> = formatted.lines().collect();
    assert!(lines.iter().all(|line| line.replace('\t', "        ").len() <= super::WIDTH), "{formatted}");
    assert_eq!(lines.len(), 4, "{formatted}");
    assert!(lines[1..].iter().all(|line| line.starts_with("\t255, ")), "{formatted}");
    assert_eq!(format(&formatted).expect("well formed"), formatted);
}

#[test]
fn debugging_directives() {
    check(
        ".section   .debug_str.x-y\n{\nL : .b8 1,2 .b8 -3\n\n.b32 .debug_info .b64 L+4 }\n@@DWARF  x  \n.file 1 \"a b\" ,3,4 .loc 1 2 3 , function_name L+1,inlined_at 1 2 3",
        "\
.section .debug_str.x-y
{
L:
\t.b8 1, 2
\t.b8 -3

\t.b32 .debug_info
\t.b64 L+4
}
@@DWARF  x
.file 1 \"a b\", 3, 4
.loc 1 2 3, function_name L+1, inlined_at 1 2 3
",
    );
}

#[test]
fn what_does_not_parse_is_refused() {
    let diagnostics = format(".version 6.4 .entry k {").expect_err("the brace is open");
    assert_eq!(diagnostics.len(), 1);
}

#[test]
fn nothing_and_little() {
    for empty in ["", " \n\t", "\u{feff}\n", "\0"] {
        check(empty, "");
    }
    check("// x", "// x\n");
    check("/* x\n*/ /* y */", "/* x\n*/ /* y */\n");
}
