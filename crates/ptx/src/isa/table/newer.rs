//! Forms later than PTX 6.4, as far as the table describes them. Sections are those of the current manual.
//!
//! Invariant: see [`super`]. Later instructions without rows are known by name in [`later`](crate::isa::later).

use crate::isa::op::Op;
use crate::isa::row::Class::{Lane, Sync, Warp};
use crate::isa::row::{Row, row, s};

const MMA: &str = "d:=frag(d) a:frag(a) b:frag(b) c:frag(c)";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Add,   "add.type d, a, b",                         &[s("type", "u16x2 s16x2")],                          "", "8.0 sm_90", Lane, "9.7.1.1",  &["new.add.16x2"], "d = a + b in each half, wrapping"),
    row(Op::Min,   "min.type d, a, b",                         &[s("type", "u16x2 s16x2")],                          "", "8.0 sm_90", Lane, "9.7.1.12", &["new.minmax.16x2"], "the smaller of a and b in each half"),
    row(Op::Max,   "max.type d, a, b",                         &[s("type", "u16x2 s16x2")],                          "", "8.0 sm_90", Lane, "9.7.1.13", &["new.minmax.16x2"], "the larger of a and b in each half"),
    row(Op::Min,   "min.relu.type d, a, b",                    &[s("type", "s32 s16x2")],                            "", "8.0 sm_90", Lane, "9.7.1.12", &["new.minmax.relu"], "the smaller of a and b, zero where negative"),
    row(Op::Max,   "max.relu.type d, a, b",                    &[s("type", "s32 s16x2")],                            "", "8.0 sm_90", Lane, "9.7.1.13", &["new.minmax.relu"], "the larger of a and b, zero where negative"),
    row(Op::Szext, "szext.mode.type d, a, b",                  &[s("mode", "clamp wrap"), s("type", "u32 s32")],     "b:u32", "7.6 sm_70", Lane, "9.7.1.21", &["new.szext"], "extends the low b bits of a"),
    row(Op::Bmsk,  "bmsk.mode.b32 d, a, b",                    &[s("mode", "clamp wrap")],                           "a:u32 b:u32", "7.6 sm_70", Lane, "9.7.1.22", &["new.bmsk"], "a mask of b ones at position a"),
    row(Op::CvtPack, "cvt.pack.sat.dtype.atype d, a, b",       &[s("dtype", "u16 s16"), s("atype", "s32")],          "d:=b32 a:atype b:atype", "6.5 sm_72", Lane, "9.7.9.22", &["new.cvt.pack"], "clamps two values and packs them"),
    row(Op::CvtPack, "cvt.pack.sat.dtype.atype.type d, a, b, c", &[s("dtype", "u8 s8"), s("atype", "s32"), s("type", "b32")], "d:=b32 a:atype b:atype c:type", "6.5 sm_72", Lane, "9.7.9.22", &["new.cvt.pack"], "clamps two values and packs them under the low half of c"),
    row(Op::ReduxSync, "redux.sync.op.type d, a, membermask",  &[s("op", "add min max"), s("type", "u32 s32")],      "membermask:b32", "7.0 sm_80", Warp, "9.7.13.8", &["new.redux"], "combines a value of all lanes of the mask"),
    row(Op::ReduxSync, "redux.sync.op.type d, a, membermask",  &[s("op", "and or xor"), s("type", "b32")],           "membermask:b32", "7.0 sm_80", Warp, "9.7.13.8", &["new.redux"], "combines the bits of all lanes of the mask"),
    row(Op::ElectSync, "elect.sync d|p, membermask",           &[],                                                  "d:=b32 p:=pred membermask:b32", "8.0 sm_90", Warp, "9.7.13.14", &["new.elect"], "chooses one lane of the mask"),
    row(Op::Griddepcontrol, "griddepcontrol.action",           &[s("action", "launch_dependents wait")],             "", "7.8 sm_90", Sync, "9.7.13.13", &["new.griddepcontrol"], "orders dependent grids"),
    row(Op::Mma, "mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype d, a, b, c", &[s("shape", "m16n8k8"), s("alayout", "row"), s("blayout", "col"), s("dtype", "f16 f32"), s("atype", "f16"), s("btype", "f16"), s("ctype", "f16 f32")], MMA, "6.5 sm_75", Warp, "9.7.14.5", &["new.mma.f16"], "D = A * B + C").bounded("order and rounding of the sum are unspecified"),
    row(Op::Mma, "mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype d, a, b, c", &[s("shape", "m16n8k16"), s("alayout", "row"), s("blayout", "col"), s("dtype", "f16 f32"), s("atype", "f16"), s("btype", "f16"), s("ctype", "f16 f32")], MMA, "7.0 sm_80", Warp, "9.7.14.5", &["new.mma.f16"], "D = A * B + C").bounded("order and rounding of the sum are unspecified"),
    row(Op::Mma, "mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype d, a, b, c", &[s("shape", "m16n8k8 m16n8k16"), s("alayout", "row"), s("blayout", "col"), s("dtype", "f32"), s("atype", "bf16"), s("btype", "bf16"), s("ctype", "f32")], MMA, "7.0 sm_80", Warp, "9.7.14.5", &["new.mma.bf16"], "D = A * B + C of bfloat16").bounded("order and rounding of the sum are unspecified"),
    row(Op::Mma, "mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype d, a, b, c", &[s("shape", "m16n8k4 m16n8k8"), s("alayout", "row"), s("blayout", "col"), s("dtype", "f32"), s("atype", "tf32"), s("btype", "tf32"), s("ctype", "f32")], MMA, "7.0 sm_80", Warp, "9.7.14.5", &["new.mma.tf32"], "D = A * B + C of .tf32").bounded("order and rounding of the sum are unspecified"),
    row(Op::Mma, "mma.sync.aligned.shape.alayout.blayout{.satfinite}.dtype.atype.btype.ctype d, a, b, c", &[s("shape", "m8n8k16 m16n8k16@7.0,sm_80 m16n8k32@7.0,sm_80"), s("alayout", "row"), s("blayout", "col"), s("dtype", "s32"), s("atype", "s8 u8"), s("btype", "s8 u8"), s("ctype", "s32")], MMA, "6.5 sm_75", Warp, "9.7.14.5", &["new.mma.int8"], "D = A * B + C in integers, wrapping or clamped"),
    row(Op::Mma, "mma.sync.aligned.shape.alayout.blayout{.satfinite}.dtype.atype.btype.ctype d, a, b, c", &[s("shape", "m8n8k32 m16n8k32@7.0,sm_80"), s("alayout", "row"), s("blayout", "col"), s("dtype", "s32"), s("atype", "s4 u4"), s("btype", "s4 u4"), s("ctype", "s32")], MMA, "6.5 sm_75", Warp, "9.7.14.5", &["new.mma.int4"], "D = A * B + C in integers, wrapping or clamped"),
    row(Op::Ldmatrix, "ldmatrix.sync.aligned.shape.num{.trans}{.ss}.b16 r, [p]", &[s("shape", "m8n8"), s("num", "x1 x2 x4"), s("ss", "shared shared::cta@7.8,sm_30")], "r:=frag(r) p:addr(ss)", "6.5 sm_75", Warp, "9.7.14.5", &["new.ldmatrix"], "the warp loads 8x8 matrices of 16-bit elements"),
];
