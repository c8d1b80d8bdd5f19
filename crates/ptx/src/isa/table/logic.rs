//! Logic and shift. PTX ISA §9.7.7.
//!
//! Invariant: see [`super`]. Shift amounts have 32 bits for every type (A75).

use crate::isa::op::Op;
use crate::isa::row::Class::Lane;
use crate::isa::row::{Row, row, s};

const BITS: &str = "pred b16 b32 b64";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::And,  "and.type d, a, b",                &[s("type", BITS)],               "",      "1.0",       Lane, "9.7.7.1", &["ins.and"],  "d = a & b"),
    row(Op::Or,   "or.type d, a, b",                 &[s("type", BITS)],               "",      "1.0",       Lane, "9.7.7.2", &["ins.or"],   "d = a | b"),
    row(Op::Xor,  "xor.type d, a, b",                &[s("type", BITS)],               "",      "1.0",       Lane, "9.7.7.3", &["ins.xor"],  "d = a ^ b"),
    row(Op::Not,  "not.type d, a",                   &[s("type", BITS)],               "",      "1.0",       Lane, "9.7.7.4", &["ins.not"],  "d = ~a"),
    row(Op::Cnot, "cnot.type d, a",                  &[s("type", "b16 b32 b64")],      "",      "1.0",       Lane, "9.7.7.5", &["ins.cnot"], "1 if a is 0, else 0"),
    row(Op::Lop3, "lop3.b32 d, a, b, c, immLut",     &[],                              "immLut:imm(0..255)", "4.3 sm_50", Lane, "9.7.7.6", &["ins.lop3"], "any function of three bits, in every bit"),
    row(Op::Lop3, "lop3.BoolOp.b32 d|p, a, b, c, immLut, q", &[s("BoolOp", "or and")],         "p:=pred immLut:imm(0..255) q:pred", "8.2 sm_70", Lane, "9.7.8.6", &["new.lop3.bool"], "as without .BoolOp; p = whether any bit is set, combined with q"),
    row(Op::Shf,  "shf.dir.mode.b32 d, a, b, c",     &[s("dir", "l r"), s("mode", "clamp wrap")], "c:u32", "3.1 sm_32", Lane, "9.7.7.7", &["ins.shf.l", "ins.shf.r"], "32 bits of the shifted pair of b and a"),
    row(Op::Shl,  "shl.type d, a, b",                &[s("type", "b16 b32 b64")],      "b:u32", "1.0",       Lane, "9.7.7.8", &["ins.shl"],  "d = a << b, zero from the width on"),
    row(Op::Shr,  "shr.type d, a, b",                &[s("type", "b16 b32 b64 u16 u32 u64 s16 s32 s64")], "b:u32", "1.0", Lane, "9.7.7.9", &["ins.shr"], "d = a >> b, filled with the sign for .sX"),
];
