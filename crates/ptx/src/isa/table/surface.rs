//! Surfaces. PTX ISA §9.7.10.
//!
//! Invariant: see [`super`]. The clamp may be omitted, as in the manual's examples, and is then `.trap`.

use crate::isa::op::Op;
use crate::isa::row::Class::{Lane, Memory};
use crate::isa::row::{Row, Rule, row, s};

const GEOM: &str = "1d 2d 3d@3.0,sm_20 a1d@3.0,sm_20 a2d@3.0,sm_20";
const CLAMP: &str = "trap* clamp@2.0,sm_20 zero@2.0,sm_20";
const LD_COP: &str = "ca@2.0,sm_20 cg@2.0,sm_20 cs@2.0,sm_20 cv@2.0,sm_20";
const ST_COP: &str = "wb@2.0,sm_20 cg@2.0,sm_20 cs@2.0,sm_20 wt@2.0,sm_20";
const BITS: &str = "b8 b16 b32 b64";
const RULES: &[Rule] = &[Rule::Vec128, Rule::ClampGiven];
const CLAMPS: [&str; 5] = ["su.clamp.trap", "su.clamp.clamp", "su.clamp.zero", "su.cacheop", "su.indirect"];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Suld,  "suld.b.geom{.cop}{.vec}.dtype{.clamp} d, [a, b]",  &[s("geom", GEOM), s("cop", LD_COP), s("vec", "v2 v4"), s("dtype", BITS), s("clamp", CLAMP)],
                                                                       "d:=>dtype*vec a:surfref b:coords", "1.5",       Memory, "9.7.10.1",
        &["suld.b.1d", "suld.b.2d", "suld.b.3d", "suld.b.a1d", "suld.b.a2d", CLAMPS[0], CLAMPS[1], CLAMPS[2], CLAMPS[3], CLAMPS[4]],
        "loads bytes of a surface").rules(RULES),
    row(Op::Sust,  "sust.b.geom{.cop}{.vec}.ctype{.clamp} [a, b], c",  &[s("geom", GEOM), s("cop", ST_COP), s("vec", "v2 v4"), s("ctype", BITS), s("clamp", CLAMP)],
                                                                       "a:surfref b:coords c:>ctype*vec",  "1.5",       Memory, "9.7.10.2",
        &["sust.b.1d", "sust.b.2d", "sust.b.3d", "sust.b.a1d", "sust.b.a2d"], "stores bytes to a surface").rules(RULES),
    row(Op::Sust,  "sust.p.geom{.vec}.b32{.clamp} [a, b], c",          &[s("geom", "1d 2d 3d"), s("vec", "v2 v4"), s("clamp", CLAMP)],
                                                                       "a:surfref b:coords c:b32*vec",     "2.0 sm_20", Memory, "9.7.10.2",
        &["sust.p"],            "stores components to a sample of a surface, converted to its format").approximate().rules(RULES),
    row(Op::Sured, "sured.b.op.geom.ctype{.clamp} [a, b], c",          &[s("op", "add"), s("geom", "1d 2d 3d"), s("ctype", "u32 u64 s32"), s("clamp", CLAMP)],
                                                                       "a:surfref b:coords c:ctype",       "2.0 sm_20", Memory, "9.7.10.3",
        &["sured.b.add"],       "adds to a surface").rules(RULES),
    row(Op::Sured, "sured.b.op.geom.ctype{.clamp} [a, b], c",          &[s("op", "min max"), s("geom", "1d 2d 3d"), s("ctype", "u32 s32"), s("clamp", CLAMP)],
                                                                       "a:surfref b:coords c:ctype",       "2.0 sm_20", Memory, "9.7.10.3",
        &["sured.b.minmax"],    "keeps the smaller or larger in a surface").rules(RULES),
    row(Op::Sured, "sured.b.op.geom.ctype{.clamp} [a, b], c",          &[s("op", "and or"), s("geom", "1d 2d 3d"), s("ctype", "b32"), s("clamp", CLAMP)],
                                                                       "a:surfref b:coords c:ctype",       "2.0 sm_20", Memory, "9.7.10.3",
        &["sured.b.andor"],     "combines bits in a surface").rules(RULES),
    row(Op::Sured, "sured.p.op.geom.ctype{.clamp} [a, b], c",          &[s("op", "add min max and or"), s("geom", "1d 2d 3d"), s("ctype", "b32"), s("clamp", CLAMP)],
                                                                       "a:surfref b:coords c:ctype",       "2.0 sm_20", Memory, "9.7.10.3",
        &["sured.p"],           "combines a value with a sample of a surface").rules(RULES),
    row(Op::Suq,   "suq.query.b32 d, [a]",                             &[s("query", "width height depth channel_data_type@2.1 channel_order@2.1 array_size@4.1 memory_layout@4.2")],
                                                                       "a:surfref",                        "1.5",       Lane,   "9.7.10.4",
        &["suq.size", "suq.channel", "suq.array_size", "suq.memory_layout"], "a property of a surface"),
];
