//! Extended-precision integer arithmetic. PTX ISA §9.7.2.
//!
//! Invariant: see [`super`]. `.cc` writes the carry flag `CC.CF`; `addc`, `subc` and `madc` read it.

use crate::isa::op::Op;
use crate::isa::row::Class::Lane;
use crate::isa::row::{Row, row, s};

const CC: &str = "u32 s32 u64@4.3,sm_20 s64@4.3,sm_20";
const MAD: &str = "u32 s32 u64@4.3 s64@4.3";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::AddCc, "add.cc.type d, a, b",           &[s("type", CC)],                      "", "1.2",       Lane, "9.7.2.1", &["ins.add.cc", "ext.cc_register"], "d = a + b; CC.CF = carry out"),
    row(Op::Addc,  "addc{.cc}.type d, a, b",        &[s("type", CC)],                      "", "1.2",       Lane, "9.7.2.2", &["ins.addc"],   "d = a + b + CC.CF; with .cc, CC.CF = carry out"),
    row(Op::SubCc, "sub.cc.type d, a, b",           &[s("type", CC)],                      "", "1.2",       Lane, "9.7.2.3", &["ins.sub.cc"], "d = a - b; CC.CF = borrow out"),
    row(Op::Subc,  "subc{.cc}.type d, a, b",        &[s("type", CC)],                      "", "1.2",       Lane, "9.7.2.4", &["ins.subc"],   "d = a - (b + CC.CF); with .cc, CC.CF = borrow out"),
    row(Op::MadCc, "mad.mode.cc.type d, a, b, c",   &[s("mode", "hi lo"), s("type", MAD)], "", "3.0 sm_20", Lane, "9.7.2.5", &["ins.mad.cc"], "a half of a * b, plus c; CC.CF = carry out"),
    row(Op::Madc,  "madc.mode{.cc}.type d, a, b, c", &[s("mode", "hi lo"), s("type", MAD)], "", "3.0 sm_20", Lane, "9.7.2.6", &["ins.madc"],  "a half of a * b, plus c and CC.CF; with .cc, CC.CF = carry out"),
];
