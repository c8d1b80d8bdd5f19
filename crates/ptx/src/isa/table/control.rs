//! Control flow. PTX ISA §9.7.11.
//!
//! Invariant: see [`super`]. The declaration of the last operand of an indirect call says whether it is a
//! list of targets or a prototype, so the manual's six lines are three rows.

use crate::isa::op::Op;
use crate::isa::row::Class::Control;
use crate::isa::row::{Row, Rule, row};

const CALL: &[Rule] = &[Rule::CallSignature];
const DIRECT: &[&str] = &["cf.call.direct"];
const INDIRECT: &[&str] = &["cf.call.flist", "cf.call.fproto"];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Bra,          "bra{.uni} tgt",                            &[], "tgt:label",                                "1.0",       Control, "9.7.11.3", &["cf.bra"],     "branches to a label"),
    row(Op::BrxIdx,       "brx.idx{.uni} index, tlist",               &[], "index:reg(u32) tlist:tlist",               "6.0 sm_30", Control, "9.7.11.4", &["cf.brx.idx"], "branches to the label at an index of a list"),
    row(Op::Call,         "call{.uni} (ret), func, (params)",         &[], "ret:=rets func:func params:args",          "1.0",       Control, "9.7.11.5", DIRECT,          "calls a function").rules(CALL),
    row(Op::Call,         "call{.uni} func, (params)",                &[], "func:func params:args",                    "1.0",       Control, "9.7.11.5", DIRECT,          "calls a function that returns nothing").rules(CALL),
    row(Op::Call,         "call{.uni} func",                          &[], "func:func",                                "1.0",       Control, "9.7.11.5", DIRECT,          "calls a function without parameters").rules(CALL),
    row(Op::CallIndirect, "call{.uni} (ret), fptr, (params), flist",  &[], "ret:=rets fptr:fptr params:args flist:targets", "2.1 sm_20", Control, "9.7.11.5", INDIRECT,    "calls through an address").rules(CALL),
    row(Op::CallIndirect, "call{.uni} fptr, (params), flist",         &[], "fptr:fptr params:args flist:targets",      "2.1 sm_20", Control, "9.7.11.5", INDIRECT,        "calls through an address a function that returns nothing").rules(CALL),
    row(Op::CallIndirect, "call{.uni} fptr, flist",                   &[], "fptr:fptr flist:targets",                  "2.1 sm_20", Control, "9.7.11.5", INDIRECT,        "calls through an address a function without parameters").rules(CALL),
    row(Op::Ret,          "ret{.uni}",                                &[], "",                                         "1.0",       Control, "9.7.11.6", &["cf.ret"],     "returns from a function, or ends the thread in an entry"),
    row(Op::Exit,         "exit",                                     &[], "",                                         "1.0",       Control, "9.7.11.7", &["cf.exit"],    "ends the thread"),
];
