//! Half-precision arithmetic. PTX ISA §9.7.4.
//!
//! Invariant: see [`super`]. There are no half-precision constants (A94): sources are registers of the right
//! size.

use crate::isa::op::Op;
use crate::isa::row::Class::Lane;
use crate::isa::row::{Row, Rule, row, s};

const TWO: &str = "a:reg(type) b:reg(type)";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Add, "add{.rnd}{.ftz}{.sat}.type d, a, b",     &[s("rnd", "rn*"), s("type", "f16 f16x2")], TWO, "4.2 sm_53", Lane, "9.7.4.1", &["ins.add.f16", "ins.add.f16x2"], "d = a + b, in each half"),
    row(Op::Sub, "sub{.rnd}{.ftz}{.sat}.type d, a, b",     &[s("rnd", "rn*"), s("type", "f16 f16x2")], TWO, "4.2 sm_53", Lane, "9.7.4.2", &["ins.sub.f16", "ins.sub.f16x2"], "d = a - b, in each half"),
    row(Op::Mul, "mul{.rnd}{.ftz}{.sat}.type d, a, b",     &[s("rnd", "rn*"), s("type", "f16 f16x2")], TWO, "4.2 sm_53", Lane, "9.7.4.3", &["ins.mul.f16", "ins.mul.f16x2"], "d = a * b, in each half"),
    row(Op::Fma, "fma{.rnd}{.ftz}{.sat}.type d, a, b, c",  &[s("rnd", "rn*"), s("type", "f16 f16x2")], "a:reg(type) b:reg(type) c:reg(type)", "4.2 sm_53", Lane, "9.7.4.4", &["ins.fma.f16", "ins.fma.f16x2"], "d = a * b + c, rounded once, in each half").rules(&[Rule::RndGiven]),
    row(Op::Neg, "neg{.ftz}.type d, a",                    &[s("type", "f16 f16x2")],                  "a:reg(type)", "6.0 sm_53", Lane, "9.7.4.5", &["ins.neg.f16", "ins.neg.f16x2"], "d = -a, in each half"),
];
