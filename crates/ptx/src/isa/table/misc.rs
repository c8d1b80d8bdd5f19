//! Miscellaneous instructions. PTX ISA §9.7.17.
//!
//! Invariant: see [`super`].

use crate::isa::op::Op;
use crate::isa::row::Class::{Control, Lane};
use crate::isa::row::{Row, row};

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Brkpt,     "brkpt",             &[], "",                "1.0 sm_11", Control, "9.7.17.1", &["ins.brkpt"],        "suspends execution for a debugger"),
    row(Op::Nanosleep, "nanosleep.u32 t",   &[], "",                "6.3 sm_70", Control, "9.7.17.2", &["ins.nanosleep"],    "waits for about t nanoseconds").bounded("[0, 2t] nanoseconds"),
    row(Op::Pmevent,   "pmevent a",         &[], "a:imm(0..15)",    "1.4",       Lane,    "9.7.17.3", &["ins.pmevent"],      "triggers a performance monitor event"),
    row(Op::Pmevent,   "pmevent.mask a",    &[], "a:imm(0..65535)", "3.0 sm_20", Lane,    "9.7.17.3", &["ins.pmevent.mask"], "triggers the performance monitor events of a mask"),
    row(Op::Trap,      "trap",              &[], "",                "1.0",       Control, "9.7.17.4", &["ins.trap"],         "aborts execution"),
];
