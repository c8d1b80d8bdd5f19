//! Integer arithmetic. PTX ISA §9.7.1.
//!
//! Invariant: see [`super`]. The manual prints `.hi`, `.lo` and `.wide` as optional, but they have no
//! default: they are required (A58).

use super::common::INT;
use crate::isa::op::Op;
use crate::isa::row::Class::Lane;
use crate::isa::row::{Row, Rule, row, s};

const NARROW: &str = "u16 u32 s16 s32";
const SIGNED: &str = "s16 s32 s64";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Add,   "add.type d, a, b",                   &[s("type", INT)],                       "", "1.0",       Lane, "9.7.1.1",  &["ins.add.int"],            "d = a + b, wrapping"),
    row(Op::Add,   "add.sat.s32 d, a, b",                &[],                                     "", "1.0",       Lane, "9.7.1.1",  &["ins.add.sat.s32"],        "d = a + b, clamped to the range of .s32"),
    row(Op::Sub,   "sub.type d, a, b",                   &[s("type", INT)],                       "", "1.0",       Lane, "9.7.1.2",  &["ins.sub.int"],            "d = a - b, wrapping"),
    row(Op::Sub,   "sub.sat.s32 d, a, b",                &[],                                     "", "1.0",       Lane, "9.7.1.2",  &["ins.sub.sat.s32"],        "d = a - b, clamped to the range of .s32"),
    row(Op::Mul,   "mul.mode.type d, a, b",              &[s("mode", "hi lo"), s("type", INT)],   "", "1.0",       Lane, "9.7.1.3",  &["ins.mul.hi", "ins.mul.lo"], "the upper or lower half of a * b"),
    row(Op::Mul,   "mul.mode.type d, a, b",              &[s("mode", "wide"), s("type", NARROW)], "d:=wide(type)", "1.0", Lane, "9.7.1.3", &["ins.mul.wide"],      "d = a * b, twice as wide"),
    row(Op::Mad,   "mad.mode.type d, a, b, c",           &[s("mode", "hi lo"), s("type", INT)],   "", "1.0",       Lane, "9.7.1.4",  &["ins.mad.hi", "ins.mad.lo"], "the upper or lower half of a * b, plus c, wrapping"),
    row(Op::Mad,   "mad.mode.type d, a, b, c",           &[s("mode", "wide"), s("type", NARROW)], "d:=wide(type) c:wide(type)", "1.0", Lane, "9.7.1.4", &["ins.mad.wide"], "d = a * b + c, twice as wide"),
    row(Op::Mad,   "mad.mode.sat.s32 d, a, b, c",        &[s("mode", "hi")],                      "", "1.0",       Lane, "9.7.1.4",  &["ins.mad.hi.sat.s32"],     "the upper half of a * b, plus c, clamped to the range of .s32"),
    row(Op::Mul24, "mul24.mode.type d, a, b",            &[s("mode", "hi lo"), s("type", "u32 s32")], "", "1.0",   Lane, "9.7.1.5",  &["ins.mul24.hi", "ins.mul24.lo"], "the upper or lower 32 bits of the 48-bit product of 24-bit values"),
    row(Op::Mad24, "mad24.mode.type d, a, b, c",         &[s("mode", "hi lo"), s("type", "u32 s32")], "", "1.0",   Lane, "9.7.1.6",  &["ins.mad24.hi", "ins.mad24.lo"], "32 bits of the 48-bit product of 24-bit values, plus c, wrapping"),
    row(Op::Mad24, "mad24.mode.sat.s32 d, a, b, c",      &[s("mode", "hi")],                      "", "1.0",       Lane, "9.7.1.6",  &["ins.mad24.hi.sat.s32"],   "the upper 32 bits of the 48-bit product, plus c, clamped to the range of .s32"),
    row(Op::Sad,   "sad.type d, a, b, c",                &[s("type", INT)],                       "", "1.0",       Lane, "9.7.1.7",  &["ins.sad"],                "d = c + |a - b|, wrapping"),
    row(Op::Div,   "div.type d, a, b",                   &[s("type", INT)],                       "", "1.0",       Lane, "9.7.1.8",  &["ins.div.int"],            "d = a / b, towards zero"),
    row(Op::Rem,   "rem.type d, a, b",                   &[s("type", INT)],                       "", "1.0",       Lane, "9.7.1.9",  &["ins.rem.int"],            "d = a % b, with the sign of a"),
    row(Op::Abs,   "abs.type d, a",                      &[s("type", SIGNED)],                    "", "1.0",       Lane, "9.7.1.10", &["ins.abs.int"],            "d = |a|, wrapping"),
    row(Op::Neg,   "neg.type d, a",                      &[s("type", SIGNED)],                    "", "1.0",       Lane, "9.7.1.11", &["ins.neg.int"],            "d = -a, wrapping"),
    row(Op::Min,   "min.type d, a, b",                   &[s("type", INT)],                       "", "1.0",       Lane, "9.7.1.12", &["ins.min.int"],            "the smaller of a and b"),
    row(Op::Max,   "max.type d, a, b",                   &[s("type", INT)],                       "", "1.0",       Lane, "9.7.1.13", &["ins.max.int"],            "the larger of a and b"),
    row(Op::Popc,  "popc.type d, a",                     &[s("type", "b32 b64")],                 "d:=u32", "2.0 sm_20", Lane, "9.7.1.14", &["ins.popc"],          "the number of ones"),
    row(Op::Clz,   "clz.type d, a",                      &[s("type", "b32 b64")],                 "d:=u32", "2.0 sm_20", Lane, "9.7.1.15", &["ins.clz"],           "the number of leading zeros"),
    row(Op::Bfind, "bfind{.shiftamt}.type d, a",         &[s("type", "u32 u64 s32 s64")],         "d:=u32", "2.0 sm_20", Lane, "9.7.1.16", &["ins.bfind", "ins.bfind.shiftamt"], "the position of the highest significant bit, or how far to shift it to the top"),
    row(Op::Fns,   "fns.b32 d, mask, base, offset",      &[],                                     "base:u32 offset:s32", "6.0 sm_30", Lane, "9.7.1.17", &["ins.fns"], "the position of the n-th set bit from a base"),
    row(Op::Brev,  "brev.type d, a",                     &[s("type", "b32 b64")],                 "", "2.0 sm_20", Lane, "9.7.1.18", &["ins.brev"],               "the bits reversed"),
    row(Op::Bfe,   "bfe.type d, a, b, c",                &[s("type", "u32 u64 s32 s64")],         "b:u32 c:u32", "2.0 sm_20", Lane, "9.7.1.19", &["ins.bfe"],     "the field of c bits at position b, extended"),
    row(Op::Bfi,   "bfi.type f, a, b, c, d",             &[s("type", "b32 b64")],                 "f:=type c:u32 d:u32", "2.0 sm_20", Lane, "9.7.1.20", &["ins.bfi"], "b with the low d bits of a at position c"),
    row(Op::Dp4a,  "dp4a.atype.btype d, a, b, c",        &[s("atype", "u32 s32"), s("btype", "u32 s32")], "d:=u32 a:atype b:btype c:u32", "5.0 sm_61", Lane, "9.7.1.21", &["ins.dp4a"], "c plus the sum of four products of bytes, wrapping").rules(&[Rule::Dot]),
    row(Op::Dp2a,  "dp2a.mode.atype.btype d, a, b, c",   &[s("mode", "lo hi"), s("atype", "u32 s32"), s("btype", "u32 s32")], "d:=u32 a:atype b:btype c:u32", "5.0 sm_61", Lane, "9.7.1.22", &["ins.dp2a"], "c plus the sum of two products of halves and bytes, wrapping").rules(&[Rule::Dot]),
];
