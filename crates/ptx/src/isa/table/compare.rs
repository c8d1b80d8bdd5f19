//! Comparison and selection. PTX ISA §9.7.5 and, for half precision, §9.7.6.
//!
//! Invariant: see [`super`]. [`Rule::CmpForType`] says which comparisons exist for which type.

use super::common::ANY;
use crate::isa::op::Op;
use crate::isa::row::Class::Lane;
use crate::isa::row::{Row, Rule, g, row, s};

const CMP: &str = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan";
const HALF_CMP: &str = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan";
const BOOL: &str = "and or xor";
const HALF_SRC: &str = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f16 f32 f64";
const RULE: &[Rule] = &[Rule::CmpForType];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Set,  "set.CmpOp{.ftz}.dtype.stype d, a, b",              &[s("CmpOp", CMP), s("dtype", "u32 s32 f32"), s("stype", ANY), g("ftz", "1.4")],
                                                                      "d:=dtype a:stype b:stype",        "1.0",       Lane, "9.7.5.1", &["ins.set"],
        "all ones (1.0) where the comparison holds, else zero").rules(RULE),
    row(Op::Set,  "set.CmpOp.BoolOp{.ftz}.dtype.stype d, a, b, {!}c", &[s("CmpOp", CMP), s("BoolOp", BOOL), s("dtype", "u32 s32 f32"), s("stype", ANY), g("ftz", "1.4")],
                                                                      "d:=dtype a:stype b:stype c:pred", "1.0",       Lane, "9.7.5.1", &["ins.set.bool"],
        "as without .BoolOp, combined with a predicate").rules(RULE),
    row(Op::Set,  "set.CmpOp{.ftz}.dtype.stype d, a, b",              &[s("CmpOp", HALF_CMP), s("dtype", "f16"), s("stype", HALF_SRC)],
                                                                      "d:=dtype a:stype b:stype",        "4.2 sm_53", Lane, "9.7.6.1", &["ins.set.f16"],
        "1.0 in half precision where the comparison holds, else zero").rules(RULE),
    row(Op::Set,  "set.CmpOp.BoolOp{.ftz}.dtype.stype d, a, b, {!}c", &[s("CmpOp", HALF_CMP), s("BoolOp", BOOL), s("dtype", "f16"), s("stype", HALF_SRC)],
                                                                      "d:=dtype a:stype b:stype c:pred", "4.2 sm_53", Lane, "9.7.6.1", &["ins.set.f16"],
        "as without .BoolOp, combined with a predicate").rules(RULE),
    row(Op::Set,  "set.CmpOp{.ftz}.dtype.stype d, a, b",              &[s("CmpOp", HALF_CMP), s("dtype", "f16x2"), s("stype", "f16x2")],
                                                                      "d:=dtype a:stype b:stype",        "4.2 sm_53", Lane, "9.7.6.1", &["ins.set.f16x2"],
        "1.0 in each half where the comparison holds, else zero").rules(RULE),
    row(Op::Set,  "set.CmpOp.BoolOp{.ftz}.dtype.stype d, a, b, {!}c", &[s("CmpOp", HALF_CMP), s("BoolOp", BOOL), s("dtype", "f16x2"), s("stype", "f16x2")],
                                                                      "d:=dtype a:stype b:stype c:pred", "4.2 sm_53", Lane, "9.7.6.1", &["ins.set.f16x2"],
        "as without .BoolOp, each half combined with a predicate").rules(RULE),

    row(Op::Setp, "setp.CmpOp{.ftz}.type p[|q], a, b",                &[s("CmpOp", CMP), s("type", ANY), g("ftz", "1.4")],
                                                                      "p:=pred q:=pred",                 "1.0",       Lane, "9.7.5.2", &["ins.setp"],
        "p = whether the comparison holds, q = whether it does not").rules(RULE),
    row(Op::Setp, "setp.CmpOp.BoolOp{.ftz}.type p[|q], a, b, {!}c",   &[s("CmpOp", CMP), s("BoolOp", BOOL), s("type", ANY), g("ftz", "1.4")],
                                                                      "p:=pred q:=pred c:pred",          "1.0",       Lane, "9.7.5.2", &["ins.setp.bool"],
        "as without .BoolOp, each combined with a predicate").rules(RULE),
    row(Op::Setp, "setp.CmpOp{.ftz}.f16 p, a, b",                     &[s("CmpOp", HALF_CMP)],
                                                                      "p:=pred",                         "4.2 sm_53", Lane, "9.7.6.2", &["ins.setp.f16"],
        "p = whether the comparison holds").rules(RULE),
    row(Op::Setp, "setp.CmpOp.BoolOp{.ftz}.f16 p, a, b, {!}c",        &[s("CmpOp", HALF_CMP), s("BoolOp", BOOL)],
                                                                      "p:=pred c:pred",                  "4.2 sm_53", Lane, "9.7.6.2", &["ins.setp.f16"],
        "as without .BoolOp, combined with a predicate").rules(RULE),
    row(Op::Setp, "setp.CmpOp{.ftz}.f16x2 p|q, a, b",                 &[s("CmpOp", HALF_CMP)],
                                                                      "p:=pred q:=pred",                 "4.2 sm_53", Lane, "9.7.6.2", &["ins.setp.f16x2"],
        "p = whether it holds in the low half, q = in the high half").rules(RULE),
    row(Op::Setp, "setp.CmpOp.BoolOp{.ftz}.f16x2 p|q, a, b, {!}c",    &[s("CmpOp", HALF_CMP), s("BoolOp", BOOL)],
                                                                      "p:=pred q:=pred c:pred",          "4.2 sm_53", Lane, "9.7.6.2", &["ins.setp.f16x2"],
        "as without .BoolOp, each half combined with a predicate").rules(RULE),

    row(Op::Selp, "selp.type d, a, b, c",        &[s("type", ANY)],   "c:pred",                          "1.0",       Lane, "9.7.5.3", &["ins.selp"],
        "a if c holds, else b"),
    row(Op::Slct, "slct.dtype.s32 d, a, b, c",   &[s("dtype", ANY)],  "d:=dtype a:dtype b:dtype c:s32",  "1.0",       Lane, "9.7.5.4", &["ins.slct.s32"],
        "a if c >= 0, else b"),
    row(Op::Slct, "slct{.ftz}.dtype.f32 d, a, b, c", &[s("dtype", ANY), g("ftz", "1.4")], "d:=dtype a:dtype b:dtype c:f32", "1.0", Lane, "9.7.5.4", &["ins.slct.f32"],
        "a if c >= 0, else b; NaN selects b"),
];
