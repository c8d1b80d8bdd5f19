//! Forms later than PTX 6.4, as far as the table describes them. Sections are those of the current manual.
//!
//! Invariant: see [`super`]. Later instructions without rows are known by name in [`later`](crate::isa::later).

use crate::isa::op::Op;
use crate::isa::row::Class::{Lane, Memory, Sync, Warp};
use crate::isa::row::{Row, row, s};

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Add,   "add.type d, a, b",                         &[s("type", "u16x2 s16x2")],                          "", "8.0 sm_90", Lane, "9.7.1.1",  &[], "d = a + b in each half, wrapping"),
    row(Op::Min,   "min.type d, a, b",                         &[s("type", "u16x2 s16x2")],                          "", "8.0 sm_90", Lane, "9.7.1.12", &[], "the smaller of a and b in each half"),
    row(Op::Max,   "max.type d, a, b",                         &[s("type", "u16x2 s16x2")],                          "", "8.0 sm_90", Lane, "9.7.1.13", &[], "the larger of a and b in each half"),
    row(Op::Szext, "szext.mode.type d, a, b",                  &[s("mode", "clamp wrap"), s("type", "u32 s32")],     "b:u32", "7.6 sm_70", Lane, "9.7.1.21", &[], "extends the low b bits of a"),
    row(Op::Bmsk,  "bmsk.mode.b32 d, a, b",                    &[s("mode", "clamp wrap")],                           "a:u32 b:u32", "7.6 sm_70", Lane, "9.7.1.22", &[], "a mask of b ones at position a"),
    row(Op::CvtPack, "cvt.pack.sat.dtype.atype d, a, b",       &[s("dtype", "u16 s16"), s("atype", "s32")],          "d:=b32 a:atype b:atype", "6.5 sm_72", Lane, "9.7.9.22", &[], "clamps two values and packs them"),
    row(Op::CvtPack, "cvt.pack.sat.dtype.atype.type d, a, b, c", &[s("dtype", "u8 s8"), s("atype", "s32"), s("type", "b32")], "d:=b32 a:atype b:atype c:type", "6.5 sm_72", Lane, "9.7.9.22", &[], "clamps two values and packs them under the low half of c"),
    row(Op::ReduxSync, "redux.sync.op.type d, a, membermask",  &[s("op", "add min max"), s("type", "u32 s32")],      "membermask:b32", "7.0 sm_80", Warp, "9.7.13.8", &[], "combines a value of all lanes of the mask"),
    row(Op::ReduxSync, "redux.sync.op.type d, a, membermask",  &[s("op", "and or xor"), s("type", "b32")],           "membermask:b32", "7.0 sm_80", Warp, "9.7.13.8", &[], "combines the bits of all lanes of the mask"),
    row(Op::ElectSync, "elect.sync d|p, membermask",           &[],                                                  "d:=b32 p:=pred membermask:b32", "8.0 sm_90", Warp, "9.7.13.14", &[], "chooses one lane of the mask"),
    row(Op::CpAsync, "cp.async.ca.shared.global [d], [a], size",      &[],                                           "d:addr(shared) a:addr(global) size:imm(4..16)", "7.0 sm_80", Memory, "9.7.9.25", &[], "copies from global to shared memory without waiting"),
    row(Op::CpAsync, "cp.async.cg.shared.global [d], [a], size",      &[],                                           "d:addr(shared) a:addr(global) size:imm(16..16)", "7.0 sm_80", Memory, "9.7.9.25", &[], "copies from global to shared memory without waiting, cached in L2 only"),
    row(Op::CpAsync, "cp.async.ca.shared.global [d], [a], size, src", &[],                                           "d:addr(shared) a:addr(global) size:imm(4..16) src:u32", "7.0 sm_80", Memory, "9.7.9.25", &[], "copies part of it and fills with zero"),
    row(Op::CpAsync, "cp.async.cg.shared.global [d], [a], size, src", &[],                                           "d:addr(shared) a:addr(global) size:imm(16..16) src:u32", "7.0 sm_80", Memory, "9.7.9.25", &[], "copies part of it and fills with zero, cached in L2 only"),
    row(Op::CpAsyncCommitGroup, "cp.async.commit_group",       &[],                                                  "", "7.0 sm_80", Memory, "9.7.9.25", &[], "closes a group of asynchronous copies"),
    row(Op::CpAsyncWaitGroup,   "cp.async.wait_group n",       &[],                                                  "n:imm(0..2147483647)", "7.0 sm_80", Sync, "9.7.9.25", &[], "waits until at most n groups of copies are pending"),
    row(Op::CpAsyncWaitAll,     "cp.async.wait_all",           &[],                                                  "", "7.0 sm_80", Sync, "9.7.9.25", &[], "waits for all asynchronous copies"),
    row(Op::Mma, "mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype d, a, b, c", &[s("shape", "m16n8k8"), s("alayout", "row"), s("blayout", "col"), s("dtype", "f16 f32"), s("atype", "f16"), s("btype", "f16"), s("ctype", "f16 f32")], "d:=frag(d) a:frag(a) b:frag(b) c:frag(c)", "6.5 sm_75", Warp, "9.7.14.5", &[], "D = A * B + C").bounded("order and rounding of the sum are unspecified"),
    row(Op::Mma, "mma.sync.aligned.shape.alayout.blayout.dtype.atype.btype.ctype d, a, b, c", &[s("shape", "m16n8k16"), s("alayout", "row"), s("blayout", "col"), s("dtype", "f16 f32"), s("atype", "f16"), s("btype", "f16"), s("ctype", "f16 f32")], "d:=frag(d) a:frag(a) b:frag(b) c:frag(c)", "7.0 sm_80", Warp, "9.7.14.5", &[], "D = A * B + C").bounded("order and rounding of the sum are unspecified"),
    row(Op::Ldmatrix, "ldmatrix.sync.aligned.shape.num{.trans}{.ss}.b16 r, [p]", &[s("shape", "m8n8"), s("num", "x1 x2 x4"), s("ss", "shared")], "r:=frag(r) p:addr(ss)", "6.5 sm_75", Warp, "9.7.14.5", &[], "the warp loads 8x8 matrices of 16-bit elements"),
];
