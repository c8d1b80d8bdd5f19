//! Instructions that match or do not match a form, and their gates: written from the manual's prose, section
//! by section.

use super::super::*;
use crate::syntax::tree::{Expr, ExprKind, Instruction, Item, Operand, OperandKind, Reference, Statement};

/// The shape of an operand as the parser produces it.
fn outline(source: &str, operand: &Operand) -> OperandShape {
    fn names(expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Name(_) => true,
            ExprKind::Binary { left, right, .. } => names(left) || names(right),
            _ => false,
        }
    }
    let plain = OperandShape::from;
    let selector = |r: &Reference| r.suffix.as_ref().is_some_and(|w| w.text(source).len() > 1);
    match &operand.kind {
        OperandKind::Sink => plain(Body::Sink),
        OperandKind::Name(r) => OperandShape { selector: selector(r), ..plain(Body::Name) },
        OperandKind::Not(_) => OperandShape { not: true, ..plain(Body::Name) },
        OperandKind::Minus(r) => OperandShape { minus: true, selector: selector(r), ..plain(Body::Name) },
        OperandKind::Expr(e) => plain(if names(e) { Body::Name } else { Body::Imm }),
        OperandKind::Vector(v) => plain(Body::Vector(v.len() as u8)),
        OperandKind::Address(_) => plain(Body::Address),
        OperandKind::AddressList(v) => plain(Body::Brackets(v.len() as u8)),
        OperandKind::Indexed { .. } => plain(Body::Indexed),
        OperandKind::Pair(..) => plain(Body::Pair),
        OperandKind::Parameters(v) => plain(Body::List(v.len() as u8)),
        OperandKind::Error => panic!("`{}`", operand.span.text(source)),
    }
}

type Found = (Result<Match, Box<Mismatch>>, Vec<OperandShape>);

/// The result of matching one instruction.
fn find(text: &str) -> Found {
    let source = format!(".version 6.4\n.target sm_70\n.func f() {{ {text}; }}");
    let parsed = crate::syntax::parse(&source);
    assert!(parsed.diagnostics.is_empty(), "{text}: {:?}", parsed.diagnostics);
    let function = parsed.tree.items.iter().find_map(|item| match item {
        Item::Function(f) => f.body.as_ref(),
        _ => None,
    });
    let [Statement::Instruction(i)] = function.expect("a body").statements.as_slice() else {
        panic!("{text}: not one instruction")
    };
    let Instruction { mnemonic, modifiers, bank, operands, .. } = i;
    let mut words: Vec<String> = modifiers.iter().map(|w| w.text(&source).to_owned()).collect();
    if let Some(Expr { kind: ExprKind::Integer { value, .. }, .. }) = bank.as_deref() {
        words[0] = format!("const[{value}]");
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let shapes: Vec<_> = operands.iter().map(|o| outline(&source, o)).collect();
    (select(mnemonic.text(&source), &words, &shapes), shapes)
}

/// The match, if no rule about modifiers or shapes is violated.
fn accepted(text: &str) -> Result<Match, String> {
    let (found, shapes) = find(text);
    let found = found.map_err(|m| format!("{} / {}", m.message, m.label))?;
    match found.mods_error().or_else(|| found.operands_error(&shapes)) {
        Some(error) => Err(error),
        None => Ok(found),
    }
}

#[track_caller]
fn yes(texts: &str) {
    for text in texts.split(';').map(str::trim) {
        if let Err(why) = accepted(text) {
            panic!("{text}: {why}");
        }
    }
}

#[track_caller]
fn no(texts: &str) {
    for text in texts.split(';').map(str::trim) {
        if let Ok(found) = accepted(text) {
            panic!("`{text}` matches `{}`", found.row.row().syntax);
        }
    }
}

#[test]
fn integer_forms() {
    yes("add.s16 d, a, b; add.sat.s32 d, a, 1; mul.wide.s16 d, a, b; mul.hi.u64 d, a, b; \
         mad.hi.sat.s32 d, a, b, c; mad.lo.u16 d, a, b, c; mad24.hi.sat.s32 d, a, b, c; sad.u64 d, a, b, c; \
         bfind.shiftamt.s64 d, a; fns.b32 d, 0xaaaaaaaa, 3, 1; bfi.b64 f, a, b, c, d; \
         dp4a.u32.s32 d, a, b, c; dp2a.lo.u32.u32 d, a, b, c; add.cc.s64 d, a, b; addc.u32 d, a, b; \
         addc.cc.u32 d, a, b; mad.lo.cc.u32 d, a, b, c; madc.hi.u32 d, a, b, c; madc.hi.cc.s32 d, a, b, c");
    no("add.u8 d, a, b; add.b32 d, a, b; add.sat.u32 d, a, b; add.sat.s64 d, a, b; sub.sat.u16 d, a, b; \
         mul.u32 d, a, b; mul.wide.u64 d, a, b; mad.s32 d, a, b, c; mad.wide.s64 d, a, b, c; \
         mad.lo.sat.s32 d, a, b, c; mad.wide.sat.s32 d, a, b, c; mad24.lo.sat.s32 d, a, b, c; \
         mad24.u32 d, a, b, c; mul24.lo.u16 d, a, b; abs.u32 d, a; neg.u32 d, a; popc.u32 d, a; \
         clz.s32 d, a; brev.u32 d, a; bfe.b32 d, a, b, c; dp2a.u32.u32 d, a, b, c; \
         dp4a.lo.u32.u32 d, a, b, c; add.cc.sat.s32 d, a, b; add.cc.u16 d, a, b; mad.wide.cc.u32 d, a, b, c; \
         mad.cc.u32 d, a, b, c; add.s32 d, a; add.s32 d, a, b, c; add.s32 5, a, b; add.s32 d, a, [b]; \
         add.s32 d|p, a, b; add.s32 d, a, !b; add.s32 {d, e}, a, b; div.b32 d, a, b");
}

#[test]
fn float_forms() {
    yes("add.f32 d, a, b; add.rz.ftz.sat.f32 d, a, b; add.rp.f64 d, a, b; fma.rn.ftz.sat.f32 d, a, b, c; \
         div.approx.ftz.f32 d, a, b; div.full.f32 d, a, b; div.rn.f64 d, a, b; rcp.approx.ftz.f64 d, a; \
         rsqrt.approx.f64 d, a; testp.notanumber.f32 p, a; copysign.f64 d, a, b; min.ftz.f32 d, a, b; \
         add.rn.ftz.sat.f16x2 d, a, b; fma.f16 d, a, b, c; neg.ftz.f16 d, a");
    no("add.ftz.f64 d, a, b; add.sat.f64 d, a, b; add.rni.f32 d, a, b; \
         mul.lo.f32 d, a, b; fma.f32 d, a, b, c; fma.f64 d, a, b, c; fma.rn.s32 d, a, b, c; \
         div.sat.f32 d, a, b; div.full.rn.f32 d, a, b; div.approx.f64 d, a, b; rcp.ftz.f64 d, a; \
         sin.approx.f64 d, a; sqrt.approx.rn.f32 d, a; min.rn.f32 d, a, b; add.rz.f16 d, a, b; \
         add.f16 d, a, 1.0; mad.ftz.f64 d, a, b, c; testp.nan.f32 p, a; copysign.ftz.f32 d, a, b");
}

/// bfloat16, and half precision after PTX 6.4.
#[test]
fn sixteen_bit_forms() {
    yes("add.bf16 d, a, b; add.rn.bf16x2 d, a, b; fma.rn.bf16 d, a, b, c; fma.rn.relu.bf16x2 d, a, b, c; \
         fma.rn.ftz.relu.f16 d, a, b, c; neg.bf16 d, a; abs.ftz.f16x2 d, a; min.NaN.bf16x2 d, a, b; \
         max.ftz.NaN.xorsign.abs.f16 d, a, b; min.xorsign.abs.f32 d, a, b; tanh.approx.bf16x2 d, a; \
         ex2.approx.ftz.bf16 d, a; ex2.approx.f16x2 d, a; set.lt.u16.f16 d, a, b; set.ge.and.ftz.s32.f16x2 d, a, b, !c; \
         set.eq.bf16.bf16 d, a, b; set.neu.bf16x2.bf16x2 d, a, b; set.num.u32.bf16x2 d, a, b; \
         setp.lt.bf16 p, a, b; setp.equ.or.bf16x2 p|q, a, b, !c; cvt.rn.relu.f16.f32 d, a; \
         cvt.rz.relu.satfinite.bf16.f32 d, a; cvt.rp.bf16.f32 d, a; cvt.rn.bf16x2.f32 d, a, b; \
         cvt.rn.relu.f16x2.f32 d, a, b; cvt.rna.tf32.f32 d, a; cvt.f32.bf16 d, a; cvt.sat.f64.bf16 d, a; \
         cvt.rni.bf16.bf16 d, a; cvt.rm.sat.bf16.s64 d, a; cvt.rzi.u8.bf16 d, a; cvt.rn.f16.bf16 d, a");
    no(
        "add.ftz.bf16 d, a, b; add.sat.bf16 d, a, b; add.rz.bf16 d, a, b; add.bf16 d, a, 1; fma.bf16 d, a, b, c; \
         fma.rn.sat.relu.f16 d, a, b, c; fma.rn.sat.bf16 d, a, b, c; neg.ftz.bf16 d, a; min.abs.bf16 d, a, b; \
         min.xorsign.f16 d, a, b; max.NaN.f64 d, a, b; ex2.approx.bf16 d, a; ex2.approx.ftz.f16 d, a; \
         tanh.approx.f64 d, a; tanh.f32 d, a; setp.lt.bf16 p|q, a, b; setp.lt.bf16x2 p, a, b; \
         setp.lt.ftz.bf16 p, a, b; set.lt.u16.f16x2 d, a, b; set.lt.f32.bf16 d, a, b; cvt.bf16.f32 d, a; \
         cvt.rn.f32.bf16 d, a; cvt.rm.bf16x2.f32 d, a, b; cvt.rn.bf16x2.f32 d, a; cvt.rn.tf32.f64 d, a; \
         cvt.rn.relu.f16.f64 d, a; cvt.bf16.s32 d, a; cvt.s32.bf16 d, a; cvt.rn.relu.bf16.s32 d, a",
    );
}

#[test]
fn comparisons() {
    yes("setp.lt.s32 p, a, b; setp.lt.s32 p|q, a, b; setp.eq.u32 p|_, a, b; setp.lo.and.u64 p|q, a, b, !c; \
         setp.ltu.ftz.f32 p, a, b; setp.eq.or.b16 p, a, b, c; set.num.f32.f64 d, a, b; \
         set.lt.xor.ftz.u32.f32 d, a, b, !c; set.lt.and.f16.f16 d, a, b, c; set.gtu.f16x2.f16x2 d, a, b; \
         setp.ge.ftz.f16 p, a, b; setp.ge.f16x2 p|q, a, b; selp.f64 d, a, b, p; slct.u64.s32 d, a, b, c; \
         slct.ftz.f32.f32 d, a, b, c");
    no("setp.lt.b32 p, a, b; setp.lo.b32 p, a, b; setp.lo.s32 p, a, b; setp.hs.f32 p, a, b; \
         setp.num.s32 p, a, b; setp.ltu.u32 p, a, b; setp.lt.ftz.f64 p, a, b; \
         setp.lt.ftz.s32 p, a, b; setp.lt.s32 p, a, b, c; setp.lt.and.s32 p, a, b; setp.s32 p, a, b; \
         setp.lt.f16 p|q, a, b; setp.lt.f16x2 p, a, b; setp.lt.u8 p, a, b; set.lt.u16.u32 d, a, b; \
         set.lt.f64.f64 d, a, b; set.lt.f16x2.f16 d, a, b; set.lo.f16.u32 d, a, b; selp.u32 d, a, b, !p; \
         selp.pred d, a, b, p; slct.u32.u32 d, a, b, c; slct.ftz.u32.s32 d, a, b, c");
}

#[test]
fn logic_and_moves() {
    yes("and.pred p, q, r; not.b16 d, a; lop3.b32 d, a, b, c, 0x80; shf.l.wrap.b32 d, a, b, 7; \
         shr.s16 d, a, 3; mov.u32 d, %tid.x; mov.pred p, q; mov.u64 d, x+4; mov.b32 d, {a, b}; \
         mov.b32 {a, b, c, e}, d; mov.b64 {_, b}, d; mov.b128 q, {a, b}; mov.b128 {a, b}, q; mov.b128 q, r; mov.u32 d, x[3]; mov.v4.f32 {a, b, c, d}, V; \
         shfl.sync.idx.b32 d|p, a, 1, 0x1f, -1; shfl.sync.up.b32 d, a, b, 0, m; prmt.b32 d, a, b, 0x3210; \
         prmt.b32.rc16 d, a, b, c");
    no("and.u32 d, a, b; xor.f32 d, a, b; cnot.pred d, a; shl.u32 d, a, b; shf.l.b32 d, a, b, c; \
         shf.l.wrap.b64 d, a, b, c; lop3.b64 d, a, b, c, 1; lop3.b32 d, a, b, c; mov.b8 d, a; mov.f16 d, a; \
         mov.u32 d, {a, b}; mov.b32 5, a; mov.s32 {a, b}, d; \
         shfl.sync.b32 d, a, b, c, m; shfl.sync.idx.u32 d, a, b, c, m; shfl.sync.idx.b32 d, a, b, c; \
         shfl.idx.b32 d, a, b, c, m");
}

#[test]
fn memory_forms() {
    yes("ld.u8 d, [a]; ld.global.f32 d, [a+4]; ld.weak.shared.ca.v4.b32 {a, b, c, d}, [x]; \
         ld.ca.global.u32 d, [a]; ld.v2.f64 {a, b}, [x]; ld.volatile.global.s16 d, [a]; \
         ld.global.volatile.s16 d, [a]; ld.relaxed.gpu.u32 d, [a]; ld.global.acquire.sys.u32 d, [a]; \
         ld.acquire.global.cta.v2.u32 {a, b}, [x]; ld.global.nc.u32 d, [a]; ld.global.ca.nc.u32 d, [a]; \
         ld.global.nc.ca.u32 d, [a]; ld.param.b64 d, [p]; ld.const[3].f32 d, [a]; ld.global.u32 d, x[q]; \
         ld.v4.u64 {a, b, c, d}, [x]; ld.global.v4.f64 {a, b, c, d}, [x]; ld.global.nc.v8.f32 {a, b, c, d, e, f, g, h}, [x]; \
         ld.global.L1::evict_last.L2::evict_first.v8.b32 {a, b, c, d, e, f, g, h}, [x]; st.v8.b32 [x], {a, b, c, d, e, f, g, h}; \
         ld.b128 d, [a]; st.relaxed.gpu.shared.b128 [a], b; ldu.global.b128 d, [a]; ld.global.nc.b128 d, [a]; \
         ld.global.u32 _, [a]; ldu.global.v4.u8 {a, b, c, d}, [x]; ldu.u32 d, [a]; st.global.u32 [a], 5; \
         st.shared.release.cta.u32 [a], b; st.wt.v2.f32 [a], {b, c}; st.volatile.u32 [a], b; \
         st.local.b8 [a], b; prefetch.global.L2 [a]; prefetch.L1 [a]; prefetchu.L1 [a]; isspacep.const p, a; \
         cvta.shared.u64 p, x; cvta.global.u32 p, x+4; cvta.to.local.u64 p, a");
    no(
        "ld.v2.b128 {a, b}, [x]; ld.v8.b16 {a, b, c, d, e, f, g, h}, [x]; ld.v8.u64 {a, b, c, d, e, f, g, h}, [x]; \
         st.local.v8.b32 [x], {a, b, c, d, e, f, g, h}; ld.global.L2::evict_first.v4.b32 {a, b, c, d}, [x]; \
         ldu.global.v4.b64 {a, b, c, d}, [x]; mov.v4.b64 {a, b, c, d}, V; \
         ld.f16 d, [a]; ld.global d, [a]; ld.pred d, [a]; ld.v3.u32 {a, b, c}, [x]; \
         ld.shared.v4.u64 {a, b, c, d}, [x]; ld.volatile.ca.u32 d, [a]; \
         ld.relaxed.u32 d, [a]; ld.relaxed.gpu.const.u32 d, [a]; ld.relaxed.gpu.ca.u32 d, [a]; \
         ld.mmio.u32 d, [a]; ld.relaxed.gpu.local.u32 d, [a]; ld.release.gpu.u32 d, [a]; ld.shared.nc.u32 d, [a]; ld.nc.u32 d, [a]; \
         ld.global.cv.nc.u32 d, [a]; ld.global.nc.volatile.u32 d, [a]; ld.u32 d, a; ld.u32 [a], d; \
         ld.u32 {a, b}, [x]; ld.v2.u32 d, a; ld.wb.u32 d, [a]; ldu.shared.u32 d, [a]; st.const.u32 [a], b; \
         st.acquire.gpu.u32 [a], b; st.global.ca.u32 [a], b; st.u32 b, [a]; prefetch.shared.L1 [a]; \
         prefetch.global [a]; prefetchu.L2 [a]; prefetchu.global.L1 [a]; cvta.u64 p, a; \
         cvta.global.b64 p, a; cvta.to.global.u64 p, 5; cvta.global.u64 p, 5",
    );
}

#[test]
fn conversions() {
    yes("cvt.u8.s32 d, a; cvt.sat.s8.u64 d, a; cvt.rn.f32.s64 d, a; cvt.rzi.ftz.sat.u16.f32 d, a; \
         cvt.rni.s32.f16 d, a; cvt.rz.f16.f64 d, a; cvt.rn.ftz.sat.f32.f64 d, a; cvt.f64.f32 d, a; \
         cvt.ftz.f64.f32 d, a; cvt.f32.f16 d, a; cvt.ftz.sat.f32.f32 d, a; cvt.rpi.f64.f64 d, a; \
         cvt.sat.f16.f16 d, a; cvt.rn.sat.f64.u8 d, a; cvt.rn.ftz.f16.f32 d, a");
    no("cvt.b32.u32 d, a; cvt.rn.s32.s32 d, a; cvt.rzi.s32.s32 d, a; cvt.ftz.s32.s32 d, a; \
         cvt.f32.s32 d, a; cvt.rni.f32.s32 d, a; cvt.s32.f64 d, a; cvt.rn.s32.f32 d, a; cvt.f32.f64 d, a; \
         cvt.rzi.f32.f64 d, a; cvt.rn.f64.f32 d, a; cvt.rn.f32.f32 d, a; cvt.sat.u64.u8 d, a; \
         cvt.sat.s32.u8 d, a; cvt.sat.s32.s32 d, a; cvt.ftz.f64.f16 d, a; cvt.rzi.ftz.s32.f64 d, a; \
         cvt.u32 d, a");
}

/// For integers `.sat` exists if the destination's range does not include the source's: 38 of the 64 pairs,
/// as in the manual's conversion table; here computed from the ranges.
#[test]
fn saturating_conversions_follow_the_ranges() {
    let range = |ty: &str| -> (i128, i128) {
        let bits: u32 = ty[1..].parse().expect("a width");
        if ty.starts_with('s') { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
    };
    let types = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"];
    let mut count = 0;
    for d in types {
        for a in types {
            let useful = range(d).0 > range(a).0 || range(d).1 < range(a).1;
            count += u32::from(useful);
            assert_eq!(accepted(&format!("cvt.sat.{d}.{a} d, a")).is_ok(), useful, "{d} {a}");
        }
    }
    assert_eq!(count, 38);
}

#[test]
fn textures_and_surfaces() {
    yes("tex.1d.v4.f32.s32 {a, b, c, d}, [t, {x}]; tex.1d.v4.f32.s32 {a, b, c, d}, [t, x]; \
         tex.2d.v4.u32.f32 {a, b, c, d}, [t, s, {x, y}]; \
         tex.2d.v4.s32.f32 {a, b, c, d}, [t, {x, y}], {i, j}; \
         tex.2d.v4.f32.f32 {a, b, c, d}, [t, {x, y}], {i, j}, f; \
         tex.2d.v4.f32.f32 {a, b, c, d}, [t, {x, y}], f; tex.2d.v2.f16x2.f32 {a, b}, [t, {x, y}]; \
         tex.base.2d.v4.f32.f32 {a, b, c, d}, [t, {x, y}]; \
         tex.level.3d.v4.f32.f32 {a, b, c, d}, [t, {x, y, z, w}], l; \
         tex.grad.cube.v4.f32.f32 {a, b, c, d}, [t, {x, y, z, w}], {e, f, g, h}, {i, j, k, l}; \
         tex.a2dms.v4.s32.s32 {a, b, c, d}, [t, {i, s, x, y}], {j, k}; \
         tex.1d.v4.f32.f32 {a, b, c, d}, t, {x}; tld4.r.2d.v4.f32.f32 {a, b, c, d}, [t, {x, y}]; \
         tld4.a.acube.v4.u32.f32 {a, b, c, d}, [t, s, {i, x, y, z}], f; txq.width.b32 d, [t]; \
         txq.level.depth.b32 d, [t], l; txq.addr_mode_1.b32 d, [s]; istypep.surfref p, a; \
         suld.b.1d.v4.b32.trap {a, b, c, d}, [s, {x}]; suld.b.3d.ca.b64.clamp d, [s, {x, y, z, w}]; \
         suld.b.a2d.v2.b8.zero {a, b}, [s, {i, x, y, z}]; suld.b.1d.b32 d, [s, {x}]; \
         sust.b.2d.wt.b16.zero [s, {x, y}], a; sust.p.1d.v4.b32.trap [s, {x}], {a, b, c, d}; \
         sured.b.add.2d.u64.trap [s, {x, y}], a; sured.p.or.3d.b32.clamp [s, {x, y, z, w}], a; \
         suq.memory_layout.b32 d, [s]");
    no("tex.1d.v4.f64.f32 {a, b, c, d}, [t, {x}]; tex.1d.v4.f32.u32 {a, b, c, d}, [t, {x}]; \
         tex.1d.v4.f16x2.f32 {a, b, c, d}, [t, {x}]; tex.2d.v2.f32.f32 {a, b}, [t, {x, y}]; \
         tex.2d.f32.f32 d, [t, {x, y}]; tex.cube.v4.f32.s32 {a, b, c, d}, [t, {x, y, z, w}]; \
         tex.2dms.v4.f32.f32 {a, b, c, d}, [t, {s, x, y, z}]; \
         tex.cube.v4.f32.f32 {a, b, c, d}, [t, {x, y, z, w}], {i, j}; \
         tex.3d.v4.f32.f32 {a, b, c, d}, [t, {x, y, z, w}], f; \
         tex.2dms.v4.f32.s32 {a, b, c, d}, [t, {s, x, y, z}], f; \
         tex.2d.v4.f32.s32 {a, b, c, d}, [t, {x, y}], f; \
         tex.level.2dms.v4.f32.s32 {a, b, c, d}, [t, {s, x, y, z}], l; \
         tex.level.2d.v4.f32.f32 {a, b, c, d}, [t, {x, y}]; \
         tex.grad.2d.v4.f32.f32 {a, b, c, d}, [t, {x, y}], {e, f}; \
         tld4.r.1d.v4.f32.f32 {a, b, c, d}, [t, {x}]; tld4.2d.v4.f32.f32 {a, b, c, d}, [t, {x, y}]; \
         tld4.r.2d.v4.f32.s32 {a, b, c, d}, [t, {x, y}]; txq.width.u32 d, [t]; \
         txq.level.array_size.b32 d, [t], l; suld.p.1d.b32.trap d, [s, {x}]; \
         suld.b.2d.u32.trap d, [s, {x, y}]; suld.b.cube.b32.trap d, [s, {x, y}]; \
         suld.b.1d.v4.b64.trap {a, b, c, d}, [s, {x}]; sust.p.1d.u32.trap [s, {x}], a; \
         sust.p.a1d.b32.trap [s, {i, x}], a; sust.p.1d.wt.b32.trap [s, {x}], a; \
         sured.b.xor.1d.b32.trap [s, {x}], a; sured.b.min.1d.u64.trap [s, {x}], a; \
         sured.b.add.1d.b32.trap [s, {x}], a; sured.p.add.1d.u32.trap [s, {x}], a; \
         suq.normalized_coords.b32 d, [s]");
}

#[test]
fn control_and_synchronisation() {
    yes(
        "bra L; bra.uni L; brx.idx r, L; call f; call.uni f, (a); call (r), f, (a, b); call (r), p, (a), L; \
         call p, (a), L; call p, L; ret; ret.uni; exit; trap; brkpt; pmevent 7; pmevent.mask 0xff; \
         nanosleep.u32 t; bar.sync 0; bar.sync a, 64; bar.arrive 1, 64; bar.red.popc.u32 d, 1, p; \
         bar.red.popc.u32 d, 1, 64, !p; bar.red.and.pred p, 1, q; barrier.sync.aligned 0; \
         barrier.sync 0, 32; barrier.red.or.aligned.pred p, 0, !q; barrier.arrive 0, 64; bar.warp.sync -1; \
         membar.gl; fence.sys; fence.sc.gpu; fence.acq_rel.cta; fence.acquire.gpu; fence.cluster",
    );
    no("bra; bra.uni; bra L, M; bra [r]; brx r, L; brx.idx r; call (r), f; exit.uni; trap.uni; pmevent; \
         nanosleep.u64 t; bar.sync; bar.arrive 1; barrier.arrive 0; bar.red.xor.pred p, 1, q; \
         bar.red.popc.pred p, 1, q; bar.sync.aligned 0; barrier 0; bar.warp.sync; membar; membar.gpu; fence; \
         fence.sc; fence.acquire; fence.gl");
}

#[test]
fn atomics_votes_and_matches() {
    yes("atom.add.u32 d, [a], b; atom.global.sys.add.u32 d, [a], b; \
         atom.global.acquire.sys.inc.u32 d, [a], b; atom.acq_rel.gpu.shared.cas.b64 d, [a], b, c; \
         atom.cas.b16 d, [a], b, c; atom.exch.b32 _, [a], b; atom.max.s64 d, [a], b; \
         atom.add.noftz.f16x2 d, [a], b; atom.global.add.f64 d, [a], b; \
         red.release.gpu.global.and.b32 [a], b; red.shared.add.f32 [a], b; red.add.noftz.f16 [a], b; \
         vote.sync.all.pred p, !q, m; vote.sync.ballot.b32 d, q, -1; vote.ballot.b32 d, p; \
         vote.uni.pred p, !q; match.any.sync.b64 d, a, m; match.all.sync.b32 d|p, a, m; \
         match.all.sync.b32 d, a, m; activemask.b32 d");
    no("atom.and.u32 d, [a], b; atom.add.b32 d, [a], b; atom.add.s64 d, [a], b; atom.inc.s32 d, [a], b; \
         atom.min.f32 d, [a], b; atom.cas.u32 d, [a], b, c; atom.cas.b32 d, [a], b; \
         atom.exch.b32 d, [a], b, c; atom.add.f16 d, [a], b; atom.add.noftz.f32 d, [a], b; \
         atom.const.add.u32 d, [a], b; atom.local.add.u32 d, [a], b; atom.sc.add.u32 d, [a], b; \
         atom.add.u32 [a], b; atom.u32 d, [a], b; red.exch.b32 [a], b; red.cas.b32 [a], b, c; \
         red.acquire.gpu.add.u32 [a], b; red.add.u32 d, [a], b; vote.all.b32 d, p; vote.sync.all.pred p, q; \
         vote.sync.ballot.pred p, q, m; vote.sync.pred p, q, m; match.any.sync.b32 d|p, a, m; \
         match.any.sync.u32 d, a, m; match.any.b32 d, a, m; activemask.u32 d; activemask.b32 d, a");
}

#[test]
fn matrices() {
    let f = "{a, b, c, d, e, f, g, h}";
    let q = "{a, b, c, d}";
    let texts = format!(
        "wmma.load.a.sync.aligned.m16n16k16.global.row.f16 {f}, [p], 16;\
         wmma.load.b.sync.aligned.col.m32n8k16.f16 {f}, [p];\
         wmma.load.a.sync.aligned.row.m8n8k32.s4 {{a}}, [p];\
         wmma.load.c.sync.aligned.row.m8n8k128.s32 {{a, b}}, [p];\
         wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [p], {f}, s;\
         wmma.mma.sync.aligned.row.col.m16n16k16.f32.f16 {f}, {f}, {f}, {q};\
         wmma.mma.sync.aligned.m16n16k16.row.col.f16.f16.satfinite {q}, {f}, {f}, {q};\
         wmma.mma.sync.aligned.row.col.m8n8k32.s32.u4.u4.s32.satfinite {{a, b}}, {{c}}, {{d}}, {{e, f}};\
         wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {{a, b}}, {{c}}, {{d}}, {{e, f}};\
         mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16 {f}, {{a, b}}, {{c, d}}, {q}"
    );
    yes(&texts);
    let texts = format!(
        "wmma.load.d.sync.aligned.row.m16n16k16.f16 {f}, [p];\
         wmma.load.a.sync.aligned.row.m16n16k16.f32 {f}, [p];\
         wmma.load.a.sync.aligned.col.m8n8k32.s4 {{a}}, [p];\
         wmma.load.a.sync.aligned.row.f16 {f}, [p];\
         wmma.load.a.sync.aligned.row.m16n16k16.local.f16 {f}, [p];\
         wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.u8.s32 {f}, {{a, b}}, {{c, d}}, {f};\
         wmma.mma.sync.aligned.row.m16n16k16.f32.f32 {f}, {f}, {f}, {f};\
         wmma.mma.sync.aligned.col.row.m8n8k32.s32.u4.u4.s32 {{a, b}}, {{c}}, {{d}}, {{e, f}};\
         wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32.satfinite {{a, b}}, {{c}}, {{d}}, {{e, f}};\
         mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f32 {q}, {{a, b}}, {{c, d}}, {f};\
         mma.sync.m8n8k4.row.col.f16.f16.f16.f16 {q}, {{a, b}}, {{c, d}}, {q}"
    );
    no(&texts);
}

#[test]
fn video_forms() {
    yes("vadd.s32.u32.s32 d, a, b; vadd.s32.u32.s32.sat.min d, a.b0, b.h1, c; \
         vsub.s32.s32.s32 d.h0, a.b0, b.b2, c; vadd.u32.u32.u32 d, a, 5; vshl.s32.u32.u32.sat.clamp d, a, b; \
         vshr.u32.s32.u32.wrap.add d, a, b.h1, c; vset.s32.u32.lt d, a, b; \
         vset.u32.u32.ge.max d, a.b1, b, c; vmad.s32.s32.u32.sat.shr7 d, -a.b0, b, c; \
         vmad.s32.s32.s32 d, -a, -b, -c; vmad.s32.s32.u32.sat d, a, b, -c; \
         vmad.u32.u32.u32.po.sat.shr15 d, a.h0, b.h0, c; vadd2.s32.s32.u32.sat d, a, b, c; \
         vadd4.u32.u32.u32.add d, a, b.b7654, c; vset4.u32.u32.ne d.b310, a, b, c; \
         vavrg2.s32.s32.s32 d.h10, a.h32, b.h01, c");
    no("vadd.u16.u32.u32 d, a, b; vadd.u32.u32 d, a, b; vadd.s32.u32.s32 d, a, b, c; \
         vadd.s32.u32.s32.add d, a, b; vadd.s32.s32.s32.add d.h0, a, b, c; vadd.s32.s32.s32 d.h0, a, b; \
         vadd.s32.s32.s32.mul d, a, b, c; vadd.s32.s32.s32 d, -a, b; vadd.s32.s32.s32.add d, a, b, c.b0; \
         vshl.u32.u32.s32.wrap d, a, b; vshl.u32.u32.u32 d, a, b; vadd.sat.u32.u32.u32 d, a, b; \
         vset.sat.u32.u32.lt d, a, b; vset.u32.u32.u32.lt d, a, b; vset.u32.u32.lo d, a, b; \
         vmad.s32.s32.s32 d, -a, b, -c; vmad.s32.s32.s32.po d, -a, b, c; vmad.s32.s32.s32.sat.po d, a, b, c; \
         vmad.s32.s32.s32.shr7.sat d, a, b, c; vmad.s32.s32.s32 d.h0, a, b, c; \
         vmad.s32.s32.s32.add d, a, b, c; vadd2.s32.s32.s32.sat.add d, a, b, c; vadd2.s32.s32.s32 d, a, b; \
         vadd2.s32.s32.s32.max d, a, b, c; vset2.u32.u32.ne.max d, a, b, c; vset4.u32.u32.ne.sat d, a, b, c; \
         vavg2.u32.u32.u32 d, a, b, c");
}

#[test]
fn selectors() {
    use form::Selector::{Mask2, Mask4, Sel2, Sel4, Sub};
    for (selector, good, bad) in [
        (Sub, "b0 b3 h0 h1", "b4 h2 h10 b b00 x"),
        (Sel2, "h10 h32 h33 h00 h03", "h1 h4 h40 h321 b10"),
        (Sel4, "b3210 b7654 b0000", "b321 b8000 b76543 h10"),
        (Mask2, "h0 h1 h10", "h01 h11 h2 h h00"),
        (Mask4, "b0 b10 b3210 b32 b310", "b00 b01 b33 b4 b0123 b"),
    ] {
        assert!(good.split(' ').all(|s| selector.accepts(s)), "{selector:?}");
        assert!(!bad.split(' ').any(|s| selector.accepts(s)), "{selector:?}");
    }
    let all = |prefix: char, digits: usize| {
        (0..10u32.pow(digits as u32)).map(move |n| format!("{prefix}{n:0digits$}"))
    };
    assert_eq!(all('b', 4).filter(|s| Sel4.accepts(s)).count(), 4096);
    assert_eq!((1..=4).flat_map(|n| all('b', n)).filter(|s| Mask4.accepts(s)).count(), 15);
}

/// Implied modifiers, where the manual states a default or an equivalence.
#[test]
fn defaults_are_explicit() {
    let mods = |text: &str| accepted(text).unwrap_or_else(|e| panic!("{text}: {e}")).mods;
    assert_eq!(mods("add.f32 d, a, b").rnd(), Some(Rnd::Rn));
    assert_eq!(mods("add.rm.f32 d, a, b").rnd(), Some(Rnd::Rm));
    let m = mods("atom.global.add.u32 d, [a], b");
    assert_eq!((m.sem(), m.scope(), m.space()), (Sem::Relaxed, Some(Scope::Gpu), Space::Global));
    let m = mods("atom.acquire.add.u32 d, [a], b");
    assert_eq!((m.sem(), m.scope(), m.space()), (Sem::Acquire, Some(Scope::Gpu), Space::Generic));
    assert_eq!(mods("fence.sys").sem(), Sem::AcqRel);
    assert_eq!((mods("membar.gl").sem(), mods("membar.gl").scope()), (Sem::Sc, Some(Scope::Gpu)));
    assert_eq!(
        (mods("ld.u32 d, [a]").sem(), mods("ld.volatile.u32 d, [a]").sem()),
        (Sem::Weak, Sem::Volatile)
    );
    assert_eq!(mods("ld.global.acquire.sys.u32 d, [a]").sem(), Sem::Acquire);
    assert!(mods("bar.sync 0").has(Word::Aligned) && !mods("barrier.sync 0").has(Word::Aligned));
    assert_eq!(mods("suld.b.1d.b32 d, [s, {x}]").clamp(), Some(Clamp::Trap));
    let m = mods("div.f32 d, a, b");
    assert!(m.has(Word::Approx) && m.has(Word::Ftz) && m.given().len() == 1);
    assert_eq!(mods("mad.f64 d, a, b, c").rnd(), Some(Rnd::Rn));
    assert_eq!(
        (mods("mul.wide.s16 d, a, b").half(), mods("mul.wide.s16 d, a, b").ty()),
        (Some(Half::Wide), Ty::S16)
    );
    assert_eq!((mods("ld.v2.f64 {a, b}, [x]").vec(), mods("ld.f64 d, [x]").vec()), (2, 1));
    assert_eq!((mods("cvt.rzi.u8.f64 d, a").dtype(), mods("cvt.rzi.u8.f64 d, a").atype()), (Ty::U8, Ty::F64));
    assert_eq!(mods("ld.const[3].f32 d, [a]").const_bank(), 3);
    assert_eq!(mods("slct.u64.s32 d, a, b, c").dtype(), Ty::U64);
}

/// Registers of fragments, from the table of the manual's §9.7.13.3 and §9.7.13.5.
#[test]
fn fragments() {
    let registers = |text: &str| -> Vec<u8> {
        let (found, _) = find(text);
        let found = found.unwrap_or_else(|m| panic!("{text}: {}", m.message));
        let operands = &found.row.form().operands;
        operands
            .iter()
            .filter(|o| matches!(o.kind, Kind::Fragment(_)))
            .map(|o| o.lanes(&found.mods))
            .collect()
    };
    let mma = |kinds: &str| registers(&format!("wmma.mma.sync.aligned.row.col.{kinds} d, a, b, c"));
    assert_eq!(mma("m16n16k16.f32.f32"), [8, 8, 8, 8]);
    assert_eq!(mma("m8n32k16.f16.f32"), [4, 8, 8, 8]);
    assert_eq!(mma("m32n8k16.f32.f16"), [8, 8, 8, 4]);
    assert_eq!(mma("m16n16k16.s32.s8.s8.s32"), [8, 2, 2, 8]);
    assert_eq!(mma("m8n32k16.s32.u8.u8.s32"), [8, 1, 4, 8]);
    assert_eq!(mma("m32n8k16.s32.u8.u8.s32"), [8, 4, 1, 8]);
    assert_eq!(mma("m8n8k32.s32.s4.s4.s32"), [2, 1, 1, 2]);
    assert_eq!(registers("wmma.load.a.sync.aligned.row.m8n8k128.b1 r, [p]"), [1]);
    assert_eq!(registers("wmma.load.c.sync.aligned.row.m8n32k16.f16 r, [p]"), [4]);
    assert_eq!(registers("wmma.store.d.sync.aligned.row.m8n8k32.s32 [p], r"), [2]);
    assert_eq!(registers("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16 d, a, b, c"), [8, 2, 2, 4]);
}

#[track_caller]
fn needs(text: &str, ptx: (u8, u8), sm: u16, expected: Option<&str>) {
    let (found, shapes) = find(text);
    let found = found.unwrap_or_else(|m| panic!("{text}: {}", m.message));
    let level = Level { ptx: Version::new(ptx.0, ptx.1), sm: Sm::new(sm), map_f64: false };
    let unmet = found.unmet(&shapes, level).map(|(r, unmet)| format!("{} {unmet}", r.what));
    assert_eq!(unmet.as_deref(), expected, "{text}");
}

#[test]
fn versions_and_targets() {
    needs("add.f32 d, a, b", (1, 0), 10, None);
    needs("add.ftz.f32 d, a, b", (1, 3), 10, Some(".ftz needs PTX 1.4"));
    needs("add.rm.f32 d, a, b", (6, 4), 13, Some(".rm needs sm_20"));
    needs("add.f64 d, a, b", (1, 4), 12, Some("add.f64 needs sm_13"));
    needs("add.u16x2 d, a, b", (6, 4), 70, Some("add.u16x2 needs PTX 8.0 and sm_90"));
    needs("add.f16 d, a, b", (6, 4), 52, Some("add.f16 needs sm_53"));
    needs("div.f32 d, a, b", (1, 3), 10, None);
    needs("div.f32 d, a, b", (1, 4), 10, Some("div.f32 was removed in PTX 1.4"));
    needs("mad.f32 d, a, b, c", (6, 4), 13, None);
    needs("mad.f32 d, a, b, c", (3, 1), 20, None);
    needs("mad.f32 d, a, b, c", (3, 2), 20, Some("mad.f32 was removed in PTX 3.2 for sm_20 and newer"));
    needs("add.cc.u64 d, a, b", (4, 2), 30, Some(".u64 needs PTX 4.3"));
    needs("ld.u32 d, [a]", (1, 4), 13, Some("`ld` without `.ss` needs PTX 2.0 and sm_20"));
    needs("ld.weak.global.u32 d, [a]", (6, 4), 60, Some(".weak needs sm_70"));
    needs("ld.relaxed.gpu.u32 d, [a]", (5, 0), 70, Some("ld.relaxed.gpu.u32 needs PTX 6.0"));
    needs("ld.global.cs.u32 d, [a]", (1, 4), 13, Some(".cs needs PTX 2.0 and sm_20"));
    needs("ld.const[3].u32 d, [a]", (2, 1), 20, None);
    needs("ld.const[3].u32 d, [a]", (6, 4), 70, None);
    needs("ld.global.nc.u32 d, [a]", (6, 4), 30, Some("ld.global.nc.u32 needs sm_32"));
    needs("shfl.idx.b32 d, a, b, c", (6, 3), 70, None);
    needs("shfl.idx.b32 d, a, b, c", (6, 4), 61, None);
    needs(
        "shfl.idx.b32 d, a, b, c",
        (6, 4),
        70,
        Some("shfl.idx.b32 was removed in PTX 6.4 for sm_70 and newer"),
    );
    needs("vote.all.pred p, q", (6, 4), 75, Some("vote.all.pred was removed in PTX 6.4 for sm_70 and newer"));
    needs("bar.sync 0", (1, 0), 10, None);
    needs("bar.sync r", (1, 4), 13, Some("a register as operand `a` needs PTX 2.0 and sm_20"));
    needs("bar.sync 0, 64", (1, 4), 13, Some("operand `b` needs PTX 2.0 and sm_20"));
    needs("membar.sys", (1, 4), 10, Some(".sys needs PTX 2.0 and sm_20"));
    needs("atom.global.add.u32 d, [a], b", (1, 1), 11, None);
    needs("atom.shared.add.u32 d, [a], b", (1, 4), 11, Some(".shared needs sm_12"));
    needs(
        "atom.shared.add.u64 d, [a], b",
        (1, 4),
        13,
        Some("a 64-bit atomic in `.shared` needs PTX 2.0 and sm_20"),
    );
    needs("atom.add.f64 d, [a], b", (6, 4), 52, Some(".f64 needs sm_60"));
    needs("atom.cas.b16 d, [a], b, c", (6, 2), 70, Some(".b16 needs PTX 6.3"));
    needs("atom.sys.add.u32 d, [a], b", (4, 3), 60, Some(".sys needs PTX 5.0"));
    needs("tex.a1d.v4.f32.f32 {a, b, c, d}, [t, {i, x}]", (2, 2), 20, Some(".a1d needs PTX 2.3"));
    needs(
        "tex.2d.v4.f32.f32 {a, b, c, d}, [t, {x, y}], {i, j}",
        (4, 2),
        30,
        Some("operand `e` needs PTX 4.3"),
    );
    needs("txq.array_size.b32 d, [t]", (4, 0), 30, Some(".array_size needs PTX 4.1"));
    needs("suld.b.1d.b32.zero d, [s, {x}]", (1, 5), 13, Some(".zero needs PTX 2.0 and sm_20"));
    needs("wmma.store.d.sync.m16n16k16.row.f32 [p], r", (6, 2), 70, None);
    needs(
        "wmma.store.d.sync.m16n16k16.row.f32 [p], r",
        (6, 3),
        70,
        Some("`wmma` without `.aligned` was removed in PTX 6.3"),
    );
    needs("isspacep.const p, a", (3, 0), 30, Some(".const needs PTX 3.1"));
    needs("cvt.rn.f64.s32 d, a", (1, 4), 10, Some(".f64 needs sm_13"));
    needs("vote.all.pred p, q", (1, 2), 11, Some("vote.all.pred needs sm_12"));
}

#[test]
fn map_f64_serves_for_sm_13() {
    let (found, shapes) = find("add.f64 d, a, b");
    let level = Level { ptx: Version::new(1, 4), sm: Sm::new(11), map_f64: true };
    assert_eq!(found.expect("a form").unmet(&shapes, level), None);
}

#[test]
fn architecture_variants() {
    let sm = |name: &str| Sm::from_name(name).expect("published");
    assert!(gate::has_features_of(sm("sm_90"), sm("sm_70")));
    assert!(
        gate::has_features_of(sm("sm_90a"), sm("sm_90")) && gate::has_features_of(sm("sm_90a"), sm("sm_90a"))
    );
    assert!(
        !gate::has_features_of(sm("sm_90"), sm("sm_90a"))
            && !gate::has_features_of(sm("sm_100a"), sm("sm_90a"))
    );
    assert!(
        gate::has_features_of(sm("sm_103f"), sm("sm_100f"))
            && gate::has_features_of(sm("sm_103a"), sm("sm_100f"))
    );
    assert!(
        !gate::has_features_of(sm("sm_103"), sm("sm_100f"))
            && !gate::has_features_of(sm("sm_120f"), sm("sm_100f"))
    );
}

#[track_caller]
fn explained(text: &str, message: &str, label: &str) {
    let (found, _) = find(text);
    let mismatch = found.expect_err(text);
    assert_eq!((mismatch.message.as_str(), mismatch.label.as_str()), (message, label), "{text}");
}

/// ptxas accepts modifiers in any order; words that could be exchanged keep their order. The order of video
/// instructions is fixed: V20.
#[test]
fn modifiers_in_another_order() {
    #[track_caller]
    fn order(text: &str, words: &[&str], is: &str) {
        let found = find(text).0.expect(text);
        assert_eq!(found.reordered(words).as_deref(), Some(is), "{text}");
    }
    order("add.ftz.rn.f32 d, a, b", &["ftz", "rn", "f32"], ".rn.ftz.f32");
    order("prmt.rc8.b32 d, a, b, c", &["rc8", "b32"], ".b32.rc8");
    order("cvt.f32.s32.rn d, a", &["f32", "s32", "rn"], ".rn.f32.s32");
    // Of video instructions, ptxas accepts only the mode of a shift before `.sat`.
    order(
        "vshr.u32.u32.u32.clamp.sat d, a, b",
        &["u32", "u32", "u32", "clamp", "sat"],
        ".u32.u32.u32.sat.clamp",
    );
    assert!(find("vadd.sat.u32.u32.u32 d, a, b").0.is_err());
    assert!(find("add.u32.f32 d, a, b").0.is_err());
    assert_eq!(find("add.rn.ftz.f32 d, a, b").0.expect("exists").reordered(&["rn", "ftz", "f32"]), None);
}

/// The text of explanations, reviewed line by line.
#[test]
fn explanations() {
    explained(
        "add.sat.u32 d, a, b",
        "`add` has no form `.sat.u32`",
        "`.u32` is not allowed here; expected `.s32` `.f16` `.f16x2` `.f32`",
    );
    explained("adt.u32 d, a, b", "there is no instruction `adt`", "");
    explained(
        "mul.u32 d, a, b",
        "`mul` has no form `.u32`",
        "a modifier is missing before `.u32`: `.hi` `.lo` `.wide`",
    );
    explained(
        "cvt.f32.s32 d, a",
        "`cvt` has no form `.f32.s32`",
        "a modifier is missing before `.f32`: `.rn` `.rz` `.rm` `.rp`",
    );
    explained(
        "fence.sc",
        "`fence` has no form `.sc`",
        "a modifier is missing: `.cta` `.cluster` `.gpu` `.sys`",
    );
    explained("add.warp.u32 d, a, b", "`add` has no form `.warp.u32`", "`.warp` is not a modifier of `add`");
    explained("add.u32 d, a", "`add.u32` takes 3 operands, found 2", "");
    explained("bra", "`bra` takes 1 operand, found 0", "");
    explained(
        "add.u32 d, a, [b]",
        "`add.u32` cannot take such operands",
        "operand `b` is a register or constant of type `.u32`",
    );
    explained(
        "setp.lt.f16x2 p, a, b",
        "`setp.lt.f16x2` cannot take such operands",
        "operand `p` is a pair `d|p`: a register of type `.pred`",
    );
    explained(
        "wgmma.fence.sync.aligned",
        "ptxvm does not implement `wgmma.fence.sync.aligned`",
        "PTX 8.0 introduced it, for sm_90a (matrix products of a warp group)",
    );
    let (found, _) = find("fma.rn.f32.f16 d, a, b, c");
    let later = found.expect_err("not implemented").later.expect("a later form");
    assert_eq!(later.introduced(), "PTX 8.6 introduced it, for sm_100");
}

#[test]
fn reserved_words_come_with_their_version() {
    let v = Version::new;
    assert!(reserved::is_reserved("add", v(1, 0)));
    assert!(!reserved::is_reserved("activemask", v(6, 1)) && reserved::is_reserved("activemask", v(6, 2)));
    assert!(!reserved::is_reserved("mma", v(6, 3)) && reserved::is_reserved("mma", v(6, 4)));
    assert!(!reserved::is_reserved("wgmma", v(6, 4)) && reserved::is_reserved("wgmma", v(8, 0)));
    assert_eq!(reserved::since("foo"), None);
}

#[test]
fn deprecated_forms_say_what_replaces_them() {
    let of = |text: &str| accepted(text).expect(text).deprecation().map(|d| (d.since, d.instead));
    assert_eq!(of("vote.all.pred p, q"), Some((Version::new(6, 0), "`vote.sync`")));
    assert_eq!(of("shfl.up.b32 d, a, b, c"), Some((Version::new(6, 0), "`shfl.sync`")));
    assert_eq!(of("shfl.sync.up.b32 d, a, b, c, m"), None);
    assert_eq!(of("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 d, a, b, c"), None);
    assert!(of("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16.satfinite d, a, b, c").is_some());
}

#[test]
fn what_ptxas_refuses_is_said() {
    let said = |text: &str| {
        let (found, shapes) = find(text);
        found.expect(text).portability(&shapes).is_some()
    };
    for text in [
        "suld.b.1d.b32 d, [s, {x}]",
        "fma.f16 d, a, b, c",
        "vadd2.s32.s32.s32 d, a, b, 0",
        "tex.1d.v4.f32.f32 {a, b, c, d}, t, {x}",
    ] {
        assert!(said(text), "{text}");
    }
    for text in [
        "suld.b.1d.b32.trap d, [s, {x}]",
        "fma.rn.f16 d, a, b, c",
        "vadd2.s32.s32.s32 d, a, b, c",
        "tex.1d.v4.f32.f32 {a, b, c, d}, [t, {x}]",
        "add.f32 d, a, b",
    ] {
        assert!(!said(text), "{text}");
    }
}
