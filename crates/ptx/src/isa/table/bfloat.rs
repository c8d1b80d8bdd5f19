//! bfloat16 and `.tf32`, and additions to half precision after PTX 6.4. Sections are those of the current
//! manual.
//!
//! Invariant: see [`super`]. As in [`half`](super::half) there are no constants: sources are registers of
//! untyped bits of the right size, because `.bf16` and `.tf32` are types of instructions and not of
//! registers. If a form was extended for a newer target, the added values carry the gate.

use crate::isa::op::Op;
use crate::isa::row::Class::Lane;
use crate::isa::row::{Row, Rule, g, row, s};

const ONE: &str = "a:reg(type)";
const TWO: &str = "a:reg(type) b:reg(type)";
const THREE: &str = "a:reg(type) b:reg(type) c:reg(type)";
const HALF: &str = "f16 f16x2";
const BRAIN: &str = "bf16 bf16x2";
const CVT: &str = "d:=>dtype a:>atype";
const TWO_SINGLES: &str = "d:=dtype a:atype b:atype";
const CMP: &str = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan";
const BOOL: &str = "and or xor";
const SRC: &str = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f16 bf16 f32 f64";
const SET: &str = "d:=dtype a:stype b:stype";
const SET_BOOL: &str = "d:=dtype a:stype b:stype c:pred";
const SP: &str = "p:=pred a:reg(type) b:reg(type)";
const SP_BOOL: &str = "p:=pred a:reg(type) b:reg(type) c:pred";
const SP2: &str = "p:=pred q:=pred a:reg(type) b:reg(type)";
const SP2_BOOL: &str = "p:=pred q:=pred a:reg(type) b:reg(type) c:pred";
const FRND: &str = "rn rz rm rp";
const IRND: &str = "rni rzi rmi rpi";
const INT: &str = "u8 u16 u32 u64 s8 s16 s32 s64";
const SM_53: &str = "6.5 sm_53";
const SM_80: &str = "7.0 sm_80";
const SM_90: &str = "7.8 sm_90";
/// Gate of `.satfinite`.
const FINITE: &str = "8.1 sm_80";
/// Gate of conversions of 8-bit floats; on `sm_89` they were added later.
const FP8: &str = "7.8 sm_89 late 8.1@sm_90";
const COMPARES: &[Rule] = &[Rule::CmpForType];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Add,  "add{.rnd}.type d, a, b",               &[s("rnd", "rn*"), s("type", BRAIN)],  TWO,   SM_90,       Lane, "9.7.4.1", &["new.add.bf16"],       "d = a + b, in each half"),
    row(Op::Sub,  "sub{.rnd}.type d, a, b",               &[s("rnd", "rn*"), s("type", BRAIN)],  TWO,   SM_90,       Lane, "9.7.4.2", &["new.sub.bf16"],       "d = a - b, in each half"),
    row(Op::Mul,  "mul{.rnd}.type d, a, b",               &[s("rnd", "rn*"), s("type", BRAIN)],  TWO,   SM_90,       Lane, "9.7.4.3", &["new.mul.bf16"],       "d = a * b, in each half"),
    row(Op::Fma,  "fma.rnd{.ftz}.relu.type d, a, b, c",   &[s("rnd", "rn"), s("type", HALF)],    THREE, SM_80,       Lane, "9.7.4.4", &["new.fma.relu.f16"],   "d = a * b + c, rounded once, zero where negative, in each half"),
    row(Op::Fma,  "fma.rnd{.relu}.type d, a, b, c",       &[s("rnd", "rn"), s("type", BRAIN)],   THREE, SM_80,       Lane, "9.7.4.4", &["new.fma.bf16"],       "d = a * b + c, rounded once, in each half"),
    row(Op::Neg,  "neg.type d, a",                        &[s("type", BRAIN)],                   ONE,   SM_80,       Lane, "9.7.4.5", &["new.neg.bf16"],       "d = -a, in each half"),
    row(Op::Abs,  "abs{.ftz}.type d, a",                  &[s("type", HALF)],                    ONE,   SM_53,       Lane, "9.7.4.6", &["new.abs.f16"],        "d = |a|, in each half"),
    row(Op::Abs,  "abs.type d, a",                        &[s("type", BRAIN)],                   ONE,   SM_80,       Lane, "9.7.4.6", &["new.abs.bf16"],       "d = |a|, in each half"),
    row(Op::Min,  "min{.ftz}{.NaN}{.xorsign.abs}.type d, a, b", &[s("type", HALF), g("xorsign", "7.2 sm_86")],  TWO, SM_80, Lane, "9.7.4.7", &["new.min.f16"],  "the smaller of a and b in each half; a number rather than NaN"),
    row(Op::Min,  "min{.NaN}{.xorsign.abs}.type d, a, b",       &[s("type", BRAIN), g("xorsign", "7.2 sm_86")], TWO, SM_80, Lane, "9.7.4.7", &["new.min.bf16"], "the smaller of a and b in each half; a number rather than NaN"),
    row(Op::Max,  "max{.ftz}{.NaN}{.xorsign.abs}.type d, a, b", &[s("type", HALF), g("xorsign", "7.2 sm_86")],  TWO, SM_80, Lane, "9.7.4.8", &["new.max.f16"],  "the larger of a and b in each half; a number rather than NaN"),
    row(Op::Max,  "max{.NaN}{.xorsign.abs}.type d, a, b",       &[s("type", BRAIN), g("xorsign", "7.2 sm_86")], TWO, SM_80, Lane, "9.7.4.8", &["new.max.bf16"], "the larger of a and b in each half; a number rather than NaN"),
    row(Op::Tanh, "tanh.approx.type d, a",                &[s("type", "f32")],                   "",    "7.0 sm_75", Lane, "9.7.3.22", &["new.tanh.f32"],      "the hyperbolic tangent").bounded("2^-11 relative"),
    row(Op::Tanh, "tanh.approx.type d, a",                &[s("type", "f16 f16x2 bf16@7.8,sm_90 bf16x2@7.8,sm_90")], ONE, "7.0 sm_75", Lane, "9.7.4.9", &["new.tanh.f16", "new.tanh.bf16"], "the hyperbolic tangent, in each half").bounded("2^-10.987 absolute, 2^-8 for bfloat16"),
    row(Op::Ex2,  "ex2.approx.type d, a",                 &[s("type", HALF)],                    ONE,   "7.0 sm_75", Lane, "9.7.4.10", &["new.ex2.f16"],       "two to the power of a, in each half").bounded("2^-9.9 relative"),
    row(Op::Ex2,  "ex2.approx.ftz.type d, a",             &[s("type", BRAIN)],                   ONE,   SM_90,       Lane, "9.7.4.10", &["new.ex2.bf16"],      "two to the power of a, in each half").bounded("2^-7 relative"),

    row(Op::Set,  "set.CmpOp{.ftz}.dtype.stype d, a, b",              &[s("CmpOp", CMP), s("dtype", "u16 s16 u32 s32"), s("stype", "f16")], SET, SM_53, Lane, "9.7.6.1", &["new.set.int.f16"],
        "all ones where the comparison holds, else zero").rules(COMPARES),
    row(Op::Set,  "set.CmpOp.BoolOp{.ftz}.dtype.stype d, a, b, {!}c", &[s("CmpOp", CMP), s("BoolOp", BOOL), s("dtype", "u16 s16 u32 s32"), s("stype", "f16")], SET_BOOL, SM_53, Lane, "9.7.6.1", &["new.set.int.f16"],
        "as without .BoolOp, combined with a predicate").rules(COMPARES),
    row(Op::Set,  "set.CmpOp{.ftz}.dtype.stype d, a, b",              &[s("CmpOp", CMP), s("dtype", "u32 s32"), s("stype", "f16x2")], SET, SM_53, Lane, "9.7.6.1", &["new.set.int.f16x2"],
        "all ones in each half where the comparison holds, else zero").rules(COMPARES),
    row(Op::Set,  "set.CmpOp.BoolOp{.ftz}.dtype.stype d, a, b, {!}c", &[s("CmpOp", CMP), s("BoolOp", BOOL), s("dtype", "u32 s32"), s("stype", "f16x2")], SET_BOOL, SM_53, Lane, "9.7.6.1", &["new.set.int.f16x2"],
        "as without .BoolOp, each half combined with a predicate").rules(COMPARES),
    row(Op::Set,  "set.CmpOp.dtype.stype d, a, b",                    &[s("CmpOp", CMP), s("dtype", "bf16"), s("stype", SRC)], SET, SM_90, Lane, "9.7.6.1", &["new.set.bf16"],
        "1.0 as bfloat16 where the comparison holds, else zero").rules(COMPARES),
    row(Op::Set,  "set.CmpOp.BoolOp.dtype.stype d, a, b, {!}c",       &[s("CmpOp", CMP), s("BoolOp", BOOL), s("dtype", "bf16"), s("stype", SRC)], SET_BOOL, SM_90, Lane, "9.7.6.1", &["new.set.bf16"],
        "as without .BoolOp, combined with a predicate").rules(COMPARES),
    row(Op::Set,  "set.CmpOp.dtype.stype d, a, b",                    &[s("CmpOp", CMP), s("dtype", "u16 s16 u32 s32"), s("stype", "bf16")], SET, SM_90, Lane, "9.7.6.1", &["new.set.int.bf16"],
        "all ones where the comparison holds, else zero").rules(COMPARES),
    row(Op::Set,  "set.CmpOp.BoolOp.dtype.stype d, a, b, {!}c",       &[s("CmpOp", CMP), s("BoolOp", BOOL), s("dtype", "u16 s16 u32 s32"), s("stype", "bf16")], SET_BOOL, SM_90, Lane, "9.7.6.1", &["new.set.int.bf16"],
        "as without .BoolOp, combined with a predicate").rules(COMPARES),
    row(Op::Set,  "set.CmpOp.dtype.stype d, a, b",                    &[s("CmpOp", CMP), s("dtype", "bf16x2 u32 s32"), s("stype", "bf16x2")], SET, SM_90, Lane, "9.7.6.1", &["new.set.bf16x2"],
        "1.0 or all ones in each half where the comparison holds, else zero").rules(COMPARES),
    row(Op::Set,  "set.CmpOp.BoolOp.dtype.stype d, a, b, {!}c",       &[s("CmpOp", CMP), s("BoolOp", BOOL), s("dtype", "bf16x2 u32 s32"), s("stype", "bf16x2")], SET_BOOL, SM_90, Lane, "9.7.6.1", &["new.set.bf16x2"],
        "as without .BoolOp, each half combined with a predicate").rules(COMPARES),
    row(Op::Setp, "setp.CmpOp.type p, a, b",                          &[s("CmpOp", CMP), s("type", "bf16")], SP, SM_90, Lane, "9.7.6.2", &["new.setp.bf16"],
        "p = whether the comparison holds").rules(COMPARES),
    row(Op::Setp, "setp.CmpOp.BoolOp.type p, a, b, {!}c",             &[s("CmpOp", CMP), s("BoolOp", BOOL), s("type", "bf16")], SP_BOOL, SM_90, Lane, "9.7.6.2", &["new.setp.bf16"],
        "as without .BoolOp, combined with a predicate").rules(COMPARES),
    row(Op::Setp, "setp.CmpOp.type p|q, a, b",                        &[s("CmpOp", CMP), s("type", "bf16x2")], SP2, SM_90, Lane, "9.7.6.2", &["new.setp.bf16x2"],
        "p = whether it holds in the low half, q = in the high half").rules(COMPARES),
    row(Op::Setp, "setp.CmpOp.BoolOp.type p|q, a, b, {!}c",           &[s("CmpOp", CMP), s("BoolOp", BOOL), s("type", "bf16x2")], SP2_BOOL, SM_90, Lane, "9.7.6.2", &["new.setp.bf16x2"],
        "as without .BoolOp, each half combined with a predicate").rules(COMPARES),

    row(Op::Cvt,  "cvt.frnd.relu{.satfinite}.dtype.atype d, a",       &[s("frnd", "rn rz"), s("dtype", "f16"), s("atype", "f32"), g("satfinite", FINITE)], CVT, SM_80, Lane, "9.7.9.21", &["new.cvt.relu.f16"],
        "single to half precision, rounded, zero where negative"),
    row(Op::Cvt,  "cvt.frnd.satfinite.dtype.atype d, a",              &[s("frnd", "rn rz"), s("dtype", "f16"), s("atype", "f32")], CVT, "8.1 sm_70", Lane, "9.7.9.21", &["new.cvt.satfinite"],
        "single to half precision, rounded, finite"),
    row(Op::Cvt,  "cvt.frnd{.relu}{.satfinite}.dtype.atype d, a",     &[s("frnd", "rn rz rm rp"), s("dtype", "bf16"), s("atype", "f32"), g("satfinite", FINITE)], CVT, SM_80, Lane, "9.7.9.21", &["new.cvt.bf16.f32"],
        "single precision to bfloat16, rounded"),
    row(Op::Cvt,  "cvt.frnd{.relu}{.satfinite}.dtype.atype d, a, b",  &[s("frnd", "rn rz"), s("dtype", "f16x2 bf16x2"), s("atype", "f32"), g("satfinite", FINITE)], TWO_SINGLES, SM_80, Lane, "9.7.9.21", &["new.cvt.x2.f32"],
        "two numbers of single precision, a to the high half and b to the low one, rounded"),
    row(Op::Cvt,  "cvt.rna{.satfinite}.dtype.atype d, a",             &[s("dtype", "tf32"), s("atype", "f32"), g("satfinite", FINITE)], "d:=dtype a:atype", SM_80, Lane, "9.7.9.21", &["new.cvt.tf32"],
        "cut to eleven significant bits, to nearest, ties away from zero"),
    row(Op::Cvt,  "cvt.frnd{.satfinite}{.relu}.dtype.atype d, a",     &[s("frnd", "rn rz"), s("dtype", "tf32"), s("atype", "f32"), g("satfinite", FINITE)], "d:=dtype a:atype", SM_90, Lane, "9.7.9.21", &["new.cvt.tf32"],
        "cut to eleven significant bits"),
    row(Op::Cvt,  "cvt{.ftz}{.sat}.dtype.atype d, a",                 &[s("dtype", "f32"), s("atype", "bf16")], CVT, "7.1 sm_80", Lane, "9.7.9.21", &["new.cvt.f32.bf16"],
        "bfloat16 to single precision, exactly"),
    row(Op::Cvt,  "cvt{.sat}.dtype.atype d, a",                       &[s("dtype", "f64"), s("atype", "bf16")], CVT, SM_90, Lane, "9.7.9.21", &["new.cvt.f64.bf16"],
        "bfloat16 to double precision, exactly"),
    row(Op::Cvt,  "cvt.frnd.sat.dtype.atype d, a",                    &[s("frnd", FRND), s("dtype", "bf16"), s("atype", "f32")], CVT, SM_90, Lane, "9.7.9.21", &["new.cvt.bf16.float"],
        "single precision to bfloat16, rounded, limited to 0.0 to 1.0"),
    row(Op::Cvt,  "cvt.frnd{.sat}.dtype.atype d, a",                  &[s("frnd", FRND), s("dtype", "bf16"), s("atype", "f16 f64")], CVT, SM_90, Lane, "9.7.9.21", &["new.cvt.bf16.float"],
        "to bfloat16, rounded"),
    row(Op::Cvt,  "cvt.frnd{.sat}.dtype.atype d, a",                  &[s("frnd", FRND), s("dtype", "f16"), s("atype", "bf16")], CVT, SM_90, Lane, "9.7.9.21", &["new.cvt.bf16.float"],
        "bfloat16 to half precision, rounded"),
    row(Op::Cvt,  "cvt{.irnd}{.sat}.dtype.atype d, a",                &[s("irnd", IRND), s("dtype", "bf16"), s("atype", "bf16")], CVT, SM_90, Lane, "9.7.9.21", &["new.cvt.bf16.bf16"],
        "bfloat16 to itself, to an integral value where a rounding is given"),
    row(Op::Cvt,  "cvt.frnd{.sat}.dtype.atype d, a",                  &[s("frnd", FRND), s("dtype", "bf16"), s("atype", INT)], CVT, SM_90, Lane, "9.7.9.21", &["new.cvt.bf16.int"],
        "integer to bfloat16, rounded"),
    row(Op::Cvt,  "cvt.irnd{.sat}.dtype.atype d, a",                  &[s("irnd", IRND), s("dtype", INT), s("atype", "bf16")], CVT, SM_90, Lane, "9.7.9.21", &["new.cvt.int.bf16"],
        "bfloat16 to integer, rounded, clamped to the destination's range"),
    row(Op::Cvt,  "cvt.rn.satfinite{.relu}.dtype.atype d, a, b",      &[s("dtype", "e4m3x2 e5m2x2"), s("atype", "f32")], "d:=b16 a:f32 b:f32", FP8, Lane, "9.7.9.21", &["new.cvt.fp8"],
        "two numbers of single precision to two of eight bits, a to the high byte, rounded, finite"),
    row(Op::Cvt,  "cvt.rn.satfinite{.relu}.dtype.atype d, a",         &[s("dtype", "e4m3x2 e5m2x2"), s("atype", "f16x2")], "d:=b16 a:reg(b32)", FP8, Lane, "9.7.9.21", &["new.cvt.fp8"],
        "two numbers of half precision to two of eight bits, rounded, finite"),
    row(Op::Cvt,  "cvt.rn{.relu}.dtype.atype d, a",                   &[s("dtype", "f16x2"), s("atype", "e4m3x2 e5m2x2")], "d:=b32 a:reg(b16)", FP8, Lane, "9.7.9.21", &["new.cvt.fp8"],
        "two numbers of eight bits to two of half precision, exactly"),
];
