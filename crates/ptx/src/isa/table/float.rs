//! Floating-point arithmetic. PTX ISA §9.7.3.
//!
//! Invariant: see [`super`]. Forms without modifiers of PTX 1.0 to 1.3 are rows that imply their meaning.
//! Without a rounding, `add`, `sub` and `mul` round to nearest even and are never contracted.

use super::common::F64;
use crate::isa::op::Op;
use crate::isa::row::Class::Lane;
use crate::isa::row::{Row, Rule, g, row, s};

const RND: &str = "rn* rz rm@2.0,sm_20 rp@2.0,sm_20";
const RND64: &str = "rn* rz rm rp";
const ALL_RND: &str = "rn rz rm rp";
const DIV64: &str = "rn rz@2.0,sm_20 rm@2.0,sm_20 rp@2.0,sm_20";
const FTZ: &str = "1.4";
const OLD: &str = "1.0 until 1.4";
const OLD64: &str = "1.0 sm_13|map_f64_to_f32 until 1.4";
const NEW64: &str = "1.4 sm_13|map_f64_to_f32";
const PAIRS: &str = "d:=b64 a:reg(b64) b:reg(b64)";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Testp,    "testp.op.type p, a",                 &[s("op", "finite infinite number notanumber normal subnormal"), s("type", "f32 f64")], "p:=pred", "2.0 sm_20", Lane, "9.7.3.1", &["ins.testp"], "whether a number has a property"),
    row(Op::Copysign, "copysign.type d, a, b",              &[s("type", "f32 f64")],                "", "2.0 sm_20", Lane, "9.7.3.2", &["ins.copysign"],      "b with the sign of a"),
    row(Op::Add,  "add{.rnd}{.ftz}{.sat}.f32 d, a, b",      &[s("rnd", RND), g("ftz", FTZ)],        "", "1.0",       Lane, "9.7.3.3",  &["ins.add.f32", "fp.ftz_default", "fp.sat_rule", "fp.contract", "fp.round_table"], "d = a + b"),
    row(Op::Add,  "add{.rnd}.f64 d, a, b",                  &[s("rnd", RND64)],                     "", F64,         Lane, "9.7.3.3",  &["ins.add.f64", "fp.map_f64_to_f32", "fp.nan_payload"], "d = a + b"),
    row(Op::Sub,  "sub{.rnd}{.ftz}{.sat}.f32 d, a, b",      &[s("rnd", RND), g("ftz", FTZ)],        "", "1.0",       Lane, "9.7.3.4",  &["ins.sub.f32"],       "d = a - b"),
    row(Op::Sub,  "sub{.rnd}.f64 d, a, b",                  &[s("rnd", RND64)],                     "", F64,         Lane, "9.7.3.4",  &["ins.sub.f64"],       "d = a - b"),
    row(Op::Mul,  "mul{.rnd}{.ftz}{.sat}.f32 d, a, b",      &[s("rnd", RND), g("ftz", FTZ)],        "", "1.0",       Lane, "9.7.3.5",  &["ins.mul.f32"],       "d = a * b"),
    row(Op::Mul,  "mul{.rnd}.f64 d, a, b",                  &[s("rnd", RND64)],                     "", F64,         Lane, "9.7.3.5",  &["ins.mul.f64"],       "d = a * b"),
    row(Op::Fma,  "fma.rnd{.ftz}{.sat}.f32 d, a, b, c",     &[s("rnd", ALL_RND)],                   "", "2.0 sm_20", Lane, "9.7.3.6",  &["ins.fma.f32"],       "d = a * b + c, rounded once"),
    row(Op::Fma,  "fma.rnd.f64 d, a, b, c",                 &[s("rnd", ALL_RND)],                   "", NEW64,       Lane, "9.7.3.6",  &["ins.fma.f64"],       "d = a * b + c, rounded once"),
    row(Op::Mad,  "mad{.ftz}{.sat}.f32 d, a, b, c",         &[g("ftz", FTZ)],                       "", "1.0 until 3.2@sm_20", Lane, "9.7.3.7", &["ins.mad.f32.sm1x"], "d = a * b + c, the product cut to single precision; fused on sm_20 and newer").rules(&[Rule::Deprecated]),
    row(Op::Mad,  "mad.rnd{.ftz}{.sat}.f32 d, a, b, c",     &[s("rnd", ALL_RND)],                   "", "2.0 sm_20", Lane, "9.7.3.7",  &["ins.mad.f32"],       "d = a * b + c, rounded once"),
    row(Op::Mad,  "mad.rnd.f64 d, a, b, c",                 &[s("rnd", ALL_RND)],                   "", F64,         Lane, "9.7.3.7",  &["ins.mad.f64"],       "d = a * b + c, rounded once"),
    row(Op::Mad,  "mad.f64 d, a, b, c",                     &[],                                    "", OLD64,       Lane, "9.7.3.7",  &["ins.mad.f64.legacy"], "d = a * b + c, rounded once to nearest").implies("rn:rnd"),
    row(Op::Div,  "div.approx{.ftz}.f32 d, a, b",           &[],                                    "", "1.4",       Lane, "9.7.3.8",  &["ins.div.approx.f32"], "d = a / b, as a * (1 / b)").bounded("2 ulp for |b| in [2^-126, 2^126]"),
    row(Op::Div,  "div.full{.ftz}.f32 d, a, b",             &[],                                    "", "1.4",       Lane, "9.7.3.8",  &["ins.div.full.f32"],  "d = a / b, over the full range").bounded("2 ulp"),
    row(Op::Div,  "div.rnd{.ftz}.f32 d, a, b",              &[s("rnd", ALL_RND)],                   "", "1.4 sm_20", Lane, "9.7.3.8",  &["ins.div.rnd.f32"],   "d = a / b"),
    row(Op::Div,  "div.rnd.f64 d, a, b",                    &[s("rnd", DIV64)],                     "", NEW64,       Lane, "9.7.3.8",  &["ins.div.rnd.f64"],   "d = a / b"),
    row(Op::Div,  "div.f32 d, a, b",                        &[],                                    "", OLD,         Lane, "9.7.3.8",  &["ins.div.legacy"],    "d = a / b, approximately").implies("approx ftz").bounded("2 ulp for |b| in [2^-126, 2^126]"),
    row(Op::Div,  "div.f64 d, a, b",                        &[],                                    "", OLD64,       Lane, "9.7.3.8",  &["ins.div.legacy"],    "d = a / b").implies("rn:rnd"),
    row(Op::Abs,  "abs{.ftz}.f32 d, a",                     &[g("ftz", FTZ)],                       "", "1.0",       Lane, "9.7.3.9",  &["ins.abs.f32"],       "d = |a|"),
    row(Op::Abs,  "abs.f64 d, a",                           &[],                                    "", F64,         Lane, "9.7.3.9",  &["ins.abs.f64"],       "d = |a|"),
    row(Op::Neg,  "neg{.ftz}.f32 d, a",                     &[g("ftz", FTZ)],                       "", "1.0",       Lane, "9.7.3.10", &["ins.neg.f32"],       "d = -a"),
    row(Op::Neg,  "neg.f64 d, a",                           &[],                                    "", F64,         Lane, "9.7.3.10", &["ins.neg.f64"],       "d = -a"),
    row(Op::Min,  "min{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b", &[g("ftz", FTZ), g("NaN", "7.0 sm_80"), g("xorsign", "7.2 sm_86")], "", "1.0",       Lane, "9.7.3.11", &["ins.min.f32", "new.min.f32"],       "the smaller of a and b; a number rather than NaN"),
    row(Op::Min,  "min.f64 d, a, b",                        &[],                                    "", F64,         Lane, "9.7.3.11", &["ins.min.f64"],       "the smaller of a and b; a number rather than NaN"),
    row(Op::Max,  "max{.ftz}{.NaN}{.xorsign.abs}.f32 d, a, b", &[g("ftz", FTZ), g("NaN", "7.0 sm_80"), g("xorsign", "7.2 sm_86")], "", "1.0",       Lane, "9.7.3.12", &["ins.max.f32", "new.max.f32"],       "the larger of a and b; a number rather than NaN"),
    row(Op::Max,  "max.f64 d, a, b",                        &[],                                    "", F64,         Lane, "9.7.3.12", &["ins.max.f64"],       "the larger of a and b; a number rather than NaN"),
    row(Op::Rcp,  "rcp.approx{.ftz}.f32 d, a",              &[],                                    "", "1.4",       Lane, "9.7.3.13", &["ins.rcp.approx.f32"], "d = 1 / a").bounded("2^-23.0 absolute over [1, 2]"),
    row(Op::Rcp,  "rcp.rnd{.ftz}.f32 d, a",                 &[s("rnd", ALL_RND)],                   "", "1.4 sm_20", Lane, "9.7.3.13", &["ins.rcp.rnd.f32"],   "d = 1 / a"),
    row(Op::Rcp,  "rcp.rnd.f64 d, a",                       &[s("rnd", DIV64)],                     "", NEW64,       Lane, "9.7.3.13", &["ins.rcp.rnd.f64"],   "d = 1 / a"),
    row(Op::Rcp,  "rcp.f32 d, a",                           &[],                                    "", OLD,         Lane, "9.7.3.13", &["ins.rcp.legacy"],    "d = 1 / a, approximately").implies("approx ftz").bounded("2^-23.0 absolute over [1, 2]"),
    row(Op::Rcp,  "rcp.f64 d, a",                           &[],                                    "", OLD64,       Lane, "9.7.3.13", &["ins.rcp.legacy"],    "d = 1 / a").implies("rn:rnd").rules(&[Rule::RndGiven]),
    row(Op::Rcp,  "rcp.approx.ftz.f64 d, a",                &[],                                    "", "2.1 sm_20", Lane, "9.7.3.14", &["ins.rcp.approx.ftz.f64"], "d = 1 / a from the upper word of a, roughly").approximate(),
    row(Op::Sqrt, "sqrt.approx{.ftz}.f32 d, a",             &[],                                    "", "1.4",       Lane, "9.7.3.15", &["ins.sqrt.approx.f32"], "the square root").approximate(),
    row(Op::Sqrt, "sqrt.rnd{.ftz}.f32 d, a",                &[s("rnd", ALL_RND)],                   "", "1.4 sm_20", Lane, "9.7.3.15", &["ins.sqrt.rnd.f32"],  "the square root"),
    row(Op::Sqrt, "sqrt.rnd.f64 d, a",                      &[s("rnd", DIV64)],                     "", NEW64,       Lane, "9.7.3.15", &["ins.sqrt.rnd.f64"],  "the square root"),
    row(Op::Sqrt, "sqrt.f32 d, a",                          &[],                                    "", OLD,         Lane, "9.7.3.15", &["ins.sqrt.legacy"],   "the square root, approximately").implies("approx ftz").approximate(),
    row(Op::Sqrt, "sqrt.f64 d, a",                          &[],                                    "", OLD64,       Lane, "9.7.3.15", &["ins.sqrt.legacy"],   "the square root").implies("rn:rnd"),
    row(Op::Rsqrt, "rsqrt.approx{.ftz}.f32 d, a",           &[],                                    "", "1.4",       Lane, "9.7.3.16", &["ins.rsqrt.approx.f32"], "one over the square root").bounded("2^-22.4 absolute over [1, 4]"),
    row(Op::Rsqrt, "rsqrt.approx.f64 d, a",                 &[],                                    "", NEW64,       Lane, "9.7.3.16", &["ins.rsqrt.approx.f64"], "one over the square root").approximate(),
    row(Op::Rsqrt, "rsqrt.f32 d, a",                        &[],                                    "", OLD,         Lane, "9.7.3.16", &["ins.rsqrt.legacy"],  "one over the square root").implies("approx ftz").bounded("2^-22.4 absolute over [1, 4]"),
    row(Op::Rsqrt, "rsqrt.f64 d, a",                        &[],                                    "", OLD64,       Lane, "9.7.3.16", &["ins.rsqrt.legacy"],  "one over the square root").implies("approx").approximate(),
    row(Op::Rsqrt, "rsqrt.approx.ftz.f64 d, a",             &[],                                    "", "4.0 sm_20", Lane, "9.7.3.17", &["ins.rsqrt.approx.ftz.f64"], "one over the square root of the upper word of a, roughly").approximate(),
    row(Op::Sin,  "sin.approx{.ftz}.f32 d, a",              &[],                                    "", "1.4",       Lane, "9.7.3.18", &["ins.sin.approx.f32"], "the sine").bounded("2^-20.9 absolute in the first quadrant"),
    row(Op::Sin,  "sin.f32 d, a",                           &[],                                    "", OLD,         Lane, "9.7.3.18", &["ins.sin.legacy"],    "the sine").implies("approx ftz").bounded("2^-20.9 absolute in the first quadrant"),
    row(Op::Cos,  "cos.approx{.ftz}.f32 d, a",              &[],                                    "", "1.4",       Lane, "9.7.3.19", &["ins.cos.approx.f32"], "the cosine").bounded("2^-20.9 absolute in the first quadrant"),
    row(Op::Cos,  "cos.f32 d, a",                           &[],                                    "", OLD,         Lane, "9.7.3.19", &["ins.cos.legacy"],    "the cosine").implies("approx ftz").bounded("2^-20.9 absolute in the first quadrant"),
    row(Op::Lg2,  "lg2.approx{.ftz}.f32 d, a",              &[],                                    "", "1.4",       Lane, "9.7.3.20", &["ins.lg2.approx.f32"], "the binary logarithm").bounded("2^-22.6 absolute for the mantissa"),
    row(Op::Lg2,  "lg2.f32 d, a",                           &[],                                    "", OLD,         Lane, "9.7.3.20", &["ins.lg2.legacy"],    "the binary logarithm").implies("approx ftz").bounded("2^-22.6 absolute for the mantissa"),
    row(Op::Ex2,  "ex2.approx{.ftz}.f32 d, a",              &[],                                    "", "1.4",       Lane, "9.7.3.21", &["ins.ex2.approx.f32"], "two to the power of a").bounded("2^-22.5 absolute for fractions in the primary range"),
    row(Op::Ex2,  "ex2.f32 d, a",                           &[],                                    "", OLD,         Lane, "9.7.3.21", &["ins.ex2.legacy"],    "two to the power of a").implies("approx ftz").bounded("2^-22.5 absolute for fractions in the primary range"),
    row(Op::Add,   "add{.rnd}{.ftz}.type d, a, b",             &[s("rnd", ALL_RND), s("type", "f32x2")],                 PAIRS, "8.6 sm_100", Lane, "9.7.3.3",  &["new.f32x2"], "d = a + b in each half, rounded"),
    row(Op::Sub,   "sub{.rnd}{.ftz}.type d, a, b",             &[s("rnd", ALL_RND), s("type", "f32x2")],                 PAIRS, "8.6 sm_100", Lane, "9.7.3.4",  &["new.f32x2"], "d = a - b in each half, rounded"),
    row(Op::Mul,   "mul{.rnd}{.ftz}.type d, a, b",             &[s("rnd", ALL_RND), s("type", "f32x2")],                 PAIRS, "8.6 sm_100", Lane, "9.7.3.5",  &["new.f32x2"], "d = a * b in each half, rounded"),
    row(Op::Fma,   "fma.rnd{.ftz}.type d, a, b, c",            &[s("rnd", ALL_RND), s("type", "f32x2")],                 "d:=b64 a:reg(b64) b:reg(b64) c:reg(b64)", "8.6 sm_100", Lane, "9.7.3.6",  &["new.f32x2"], "d = a * b + c in each half, rounded once"),
];
