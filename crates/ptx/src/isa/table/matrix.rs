//! Warp-level matrix multiply-accumulate. PTX ISA §9.7.13.
//!
//! Invariant: see [`super`]. Layouts, shape and state space are accepted in any order (A146); `.aligned` is
//! implied before PTX 6.3.

use crate::isa::op::Op;
use crate::isa::row::Class::Warp;
use crate::isa::row::{Row, Rule, Set, row, s};

const ALIGNED: Set = s("aligned", "aligned* -@until,6.3");
const SS: Set = s("ss", "global shared shared::cta@7.8,sm_70");
const LAYOUT: Set = s("layout", "row col");
const ROW: Set = s("layout", "row");
const COL: Set = s("layout", "col");
const SHAPES: Set = s("shape", "m16n16k16 m8n32k16@6.1 m32n8k16@6.1");
const K8: Set = s("shape", "m16n16k8");
const K4: Set = s("shape", "m8n8k4");
const INT_SHAPES: Set = s("shape", "m16n16k16 m8n32k16 m32n8k16");
const SUB4: Set = s("shape", "m8n8k32");
const BIT: Set = s("shape", "m8n8k128");
const SUB: Set = s("shape", "m8n8k32 m8n8k128");
const ALAYOUT: Set = s("alayout", "row col");
const BLAYOUT: Set = s("blayout", "row col");
const LOAD: &str = "r:=frag(matrix) p:addr(ss) stride:u32";
const STORE: &str = "r:frag(d) p:addr(ss) stride:u32";
const MMA: &str = "d:=frag(d) a:frag(a) b:frag(b) c:frag(c)";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, LAYOUT, SHAPES, SS, s("matrix", "a b"), s("type", "f16")],     LOAD, "6.0 sm_70", Warp, "9.7.13.6",
        &["wmma.load.f16ab", "wmma.fragment", "wmma.shape", "wmma.types", "wmma.storage"], "the warp loads matrix A or B"),
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, LAYOUT, SHAPES, SS, s("matrix", "c"), s("type", "f16 f32")],   LOAD, "6.0 sm_70", Warp, "9.7.13.6",
        &["wmma.load.c.fp"],  "the warp loads matrix C"),
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, LAYOUT, INT_SHAPES, SS, s("matrix", "a b"), s("type", "s8 u8")], LOAD, "6.3 sm_72", Warp, "9.7.13.6",
        &["wmma.load.int8"],  "the warp loads matrix A or B of bytes"),
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, LAYOUT, INT_SHAPES, SS, s("matrix", "c"), s("type", "s32")],   LOAD, "6.3 sm_72", Warp, "9.7.13.6",
        &["wmma.load.c.s32"], "the warp loads matrix C of integers"),
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, LAYOUT, SUB, SS, s("matrix", "c"), s("type", "s32")],          LOAD, "6.3 sm_75", Warp, "9.7.13.6",
        &["wmma.load.c.s32"], "the warp loads matrix C of integers"),
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, ROW, SUB4, SS, s("matrix", "a"), s("type", "s4 u4")],          LOAD, "6.3 sm_75", Warp, "9.7.13.6",
        &["wmma.load.sub4"],  "the warp loads matrix A of nibbles"),
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, COL, SUB4, SS, s("matrix", "b"), s("type", "s4 u4")],          LOAD, "6.3 sm_75", Warp, "9.7.13.6",
        &["wmma.load.sub4"],  "the warp loads matrix B of nibbles"),
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, ROW, BIT, SS, s("matrix", "a"), s("type", "b1")],              LOAD, "6.3 sm_75", Warp, "9.7.13.6",
        &["wmma.load.b1"],    "the warp loads matrix A of bits"),
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, COL, BIT, SS, s("matrix", "b"), s("type", "b1")],              LOAD, "6.3 sm_75", Warp, "9.7.13.6",
        &["wmma.load.b1"],    "the warp loads matrix B of bits"),
    row(Op::WmmaStore, "wmma.store.d.sync{.aligned}<.layout.shape{.ss}>.type [p], r{, stride}",     &[ALIGNED, LAYOUT, SHAPES, SS, s("type", "f16 f32")],                    STORE, "6.0 sm_70", Warp, "9.7.13.7",
        &["wmma.store.fp"],   "the warp stores matrix D"),
    row(Op::WmmaStore, "wmma.store.d.sync{.aligned}<.layout.shape{.ss}>.type [p], r{, stride}",     &[ALIGNED, LAYOUT, INT_SHAPES, SS, s("type", "s32")],                    STORE, "6.3 sm_72", Warp, "9.7.13.7",
        &["wmma.store.s32"],  "the warp stores matrix D of integers"),
    row(Op::WmmaStore, "wmma.store.d.sync{.aligned}<.layout.shape{.ss}>.type [p], r{, stride}",     &[ALIGNED, LAYOUT, SUB, SS, s("type", "s32")],                           STORE, "6.3 sm_75", Warp, "9.7.13.7",
        &["wmma.store.s32"],  "the warp stores matrix D of integers"),
    row(Op::WmmaMma,   "wmma.mma.sync{.aligned}<(.alayout.blayout).shape>.dtype.ctype{.satfinite} d, a, b, c",       &[ALIGNED, ALAYOUT, BLAYOUT, SHAPES, s("dtype", "f16 f32"), s("ctype", "f16 f32")], MMA, "6.0 sm_70", Warp, "9.7.13.8",
        &["wmma.mma.fp", "wmma.mma.fp.satfinite"], "D = A * B + C").implies("f16:atype f16:btype").bounded("order and rounding of the sum are unspecified").rules(&[Rule::Deprecated]),
    row(Op::WmmaMma,   "wmma.mma.sync{.aligned}<(.alayout.blayout).shape>.dtype.atype.btype.ctype{.satfinite} d, a, b, c", &[ALIGNED, ALAYOUT, BLAYOUT, INT_SHAPES, s("dtype", "s32"), s("atype", "s8 u8"), s("btype", "s8 u8"), s("ctype", "s32")], MMA, "6.3 sm_72", Warp, "9.7.13.8",
        &["wmma.mma.int8"],   "D = A * B + C in integers, wrapping or clamped").rules(&[Rule::SameAb]),
    row(Op::WmmaMma,   "wmma.mma.sync{.aligned}<(.alayout.blayout).shape>.dtype.atype.btype.ctype{.satfinite} d, a, b, c", &[ALIGNED, s("alayout", "row"), s("blayout", "col"), SUB4, s("dtype", "s32"), s("atype", "s4 u4"), s("btype", "s4 u4"), s("ctype", "s32")], MMA, "6.3 sm_75", Warp, "9.7.13.8",
        &["wmma.mma.sub4"],   "D = A * B + C in integers, wrapping or clamped").rules(&[Rule::SameAb]),
    row(Op::WmmaMma,   "wmma.mma.xor.popc.sync{.aligned}<(.alayout.blayout).shape>.dtype.atype.btype.ctype d, a, b, c",    &[ALIGNED, s("alayout", "row"), s("blayout", "col"), BIT, s("dtype", "s32"), s("atype", "b1"), s("btype", "b1"), s("ctype", "s32")], MMA, "6.3 sm_75", Warp, "9.7.13.8",
        &["wmma.mma.b1"],     "D = C plus the number of bits in which rows of A and columns of B differ"),
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, LAYOUT, SHAPES, SS, s("matrix", "a b"), s("type", "bf16")],    LOAD, "7.0 sm_80", Warp, "9.7.14.4",
        &["new.wmma.bf16"],   "the warp loads matrix A or B of bfloat16"),
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, LAYOUT, K8, SS, s("matrix", "a b"), s("type", "tf32")],        LOAD, "7.0 sm_80", Warp, "9.7.14.4",
        &["new.wmma.tf32"],   "the warp loads matrix A or B of `.tf32`"),
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, LAYOUT, K8, SS, s("matrix", "c"), s("type", "f32")],           LOAD, "7.0 sm_80", Warp, "9.7.14.4",
        &["new.wmma.tf32"],   "the warp loads matrix C"),
    row(Op::WmmaLoad,  "wmma.load.matrix.sync{.aligned}<.layout.shape{.ss}>.type r, [p]{, stride}", &[ALIGNED, LAYOUT, K4, SS, s("matrix", "a b c"), s("type", "f64")],       LOAD, "7.0 sm_80", Warp, "9.7.14.4",
        &["new.wmma.f64"],    "the warp loads a matrix in double precision"),
    row(Op::WmmaStore, "wmma.store.d.sync{.aligned}<.layout.shape{.ss}>.type [p], r{, stride}",     &[ALIGNED, LAYOUT, K8, SS, s("type", "f32")],                            STORE, "7.0 sm_80", Warp, "9.7.14.4",
        &["new.wmma.tf32"],   "the warp stores matrix D"),
    row(Op::WmmaStore, "wmma.store.d.sync{.aligned}<.layout.shape{.ss}>.type [p], r{, stride}",     &[ALIGNED, LAYOUT, K4, SS, s("type", "f64")],                            STORE, "7.0 sm_80", Warp, "9.7.14.4",
        &["new.wmma.f64"],    "the warp stores matrix D in double precision"),
    row(Op::WmmaMma,   "wmma.mma.sync{.aligned}<(.alayout.blayout).shape>.dtype.atype.btype.ctype d, a, b, c",       &[ALIGNED, ALAYOUT, BLAYOUT, SHAPES, s("dtype", "f32"), s("atype", "bf16"), s("btype", "bf16"), s("ctype", "f32")], MMA, "7.0 sm_80", Warp, "9.7.14.4",
        &["new.wmma.bf16"],   "D = A * B + C of bfloat16").bounded("order and rounding of the sum are unspecified"),
    row(Op::WmmaMma,   "wmma.mma.sync{.aligned}<(.alayout.blayout).shape>.dtype.atype.btype.ctype d, a, b, c",       &[ALIGNED, ALAYOUT, BLAYOUT, K8, s("dtype", "f32"), s("atype", "tf32"), s("btype", "tf32"), s("ctype", "f32")], MMA, "7.0 sm_80", Warp, "9.7.14.4",
        &["new.wmma.tf32"],   "D = A * B + C of `.tf32`").bounded("order and rounding of the sum are unspecified"),
    row(Op::WmmaMma,   "wmma.mma.sync{.aligned}<(.alayout.blayout).shape>{.rnd}.dtype.atype.btype.ctype d, a, b, c", &[ALIGNED, ALAYOUT, BLAYOUT, K4, s("rnd", "rn rz rm rp"), s("dtype", "f64"), s("atype", "f64"), s("btype", "f64"), s("ctype", "f64")], MMA, "7.0 sm_80", Warp, "9.7.14.4",
        &["new.wmma.f64"],    "D = A * B + C in double precision"),
    row(Op::WmmaMma,   "wmma.mma.and.popc.sync{.aligned}<(.alayout.blayout).shape>.dtype.atype.btype.ctype d, a, b, c",    &[ALIGNED, s("alayout", "row"), s("blayout", "col"), BIT, s("dtype", "s32"), s("atype", "b1"), s("btype", "b1"), s("ctype", "s32")], MMA, "7.1 sm_80", Warp, "9.7.14.4",
        &["new.wmma.b1.and"], "D = C plus the number of bits that are set in rows of A and columns of B"),
    row(Op::Mma,       "mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype d, a, b, c", &[s("shape", "m8n8k4"), ALAYOUT, BLAYOUT, s("dtype", "f16 f32"), s("atype", "f16"), s("btype", "f16"), s("ctype", "f16 f32")], MMA, "6.4 sm_70", Warp, "9.7.13.9",
        &["mma.m8n8k4", "mma.m8n8k4.frag_a", "mma.m8n8k4.frag_b", "mma.m8n8k4.frag_c16", "mma.m8n8k4.frag_c32"], "four products D = A * B + C, one per group of eight lanes").bounded("order and rounding of the sum are unspecified").rules(&[Rule::CtypeNeedsDtype]),
];
