//! Asynchronous copies and barriers in memory, after PTX 6.4. Sections are those of the current manual.
//!
//! Invariant: see [`super`]. Sizes of copies are checked by [`Rule::CopySize`], because they are not a range.

use crate::isa::op::Op;
use crate::isa::row::Class::{Lane, Memory, Sync};
use crate::isa::row::{Row, Rule, g, row, s};

const SHARED: &str = "shared shared::cta@7.8,sm_30";
const FETCH: &str = "L2::64B@7.4,sm_80 L2::128B@7.4,sm_80 L2::256B@7.4,sm_80";
const COPY: &str = "d:addr(shared) a:addr(global) size:imm(4..16) src:u32";
const COPY_L2: &str = "d:addr(shared) a:addr(global) size:imm(16..16) src:u32";
const COPY_POLICY: &str = "d:addr(shared) a:addr(global) size:imm(4..16) src:u32 policy:b64";
const COPY_L2_POLICY: &str = "d:addr(shared) a:addr(global) size:imm(16..16) src:u32 policy:b64";
const COPY_IGNORE: &str = "d:addr(shared) a:addr(global) size:imm(4..16) ignore:reg(pred)";
const COPY_L2_IGNORE: &str = "d:addr(shared) a:addr(global) size:imm(16..16) ignore:reg(pred)";
const COPY_IGNORE_POLICY: &str = "d:addr(shared) a:addr(global) size:imm(4..16) ignore:reg(pred) policy:b64";
const COPY_L2_IGNORE_POLICY: &str =
    "d:addr(shared) a:addr(global) size:imm(16..16) ignore:reg(pred) policy:b64";
const SIZE: &[Rule] = &[Rule::CopySize];
const SM_80: &str = "7.0 sm_80";
const HINT: &str = "7.4 sm_80";

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::CpAsync, "cp.async.ca.ss.global{.fetch} [d], [a], size{, src}", &[s("ss", SHARED), s("fetch", FETCH)], COPY, SM_80, Memory, "9.7.9.25", &["new.cp.async"],
        "copies from global to shared memory without waiting, part of it with zeros behind it where src says so").rules(SIZE),
    row(Op::CpAsync, "cp.async.cg.ss.global{.fetch} [d], [a], size{, src}", &[s("ss", SHARED), s("fetch", FETCH)], COPY_L2, SM_80, Memory, "9.7.9.25", &["new.cp.async"],
        "copies from global to shared memory without waiting, cached in L2 only").rules(SIZE),
    row(Op::CpAsync, "cp.async.ca.ss.global.L2::cache_hint{.fetch} [d], [a], size{, src}, policy", &[s("ss", "shared shared::cta"), s("fetch", FETCH)], COPY_POLICY, HINT, Memory, "9.7.9.25", &["new.cp.async"],
        "copies from global to shared memory without waiting, with a cache policy").rules(SIZE),
    row(Op::CpAsync, "cp.async.cg.ss.global.L2::cache_hint{.fetch} [d], [a], size{, src}, policy", &[s("ss", "shared shared::cta"), s("fetch", FETCH)], COPY_L2_POLICY, HINT, Memory, "9.7.9.25", &["new.cp.async"],
        "copies from global to shared memory without waiting, cached in L2 only, with a cache policy").rules(SIZE),
    row(Op::CpAsync, "cp.async.ca.ss.global{.fetch} [d], [a], size, ignore", &[s("ss", "shared shared::cta@7.8,sm_30"), s("fetch", FETCH)], COPY_IGNORE, "7.5 sm_80", Memory, "9.7.9.25", &["new.cp.async.ignore"],
        "copies from global to shared memory without waiting, or writes zeros where the predicate holds").rules(SIZE),
    row(Op::CpAsync, "cp.async.ca.ss.global.L2::cache_hint{.fetch} [d], [a], size, ignore, policy", &[s("ss", "shared shared::cta"), s("fetch", FETCH)], COPY_IGNORE_POLICY, "7.5 sm_80", Memory, "9.7.9.25", &["new.cp.async.ignore"],
        "as without a cache policy").rules(SIZE),
    row(Op::CpAsync, "cp.async.cg.ss.global{.fetch} [d], [a], size, ignore", &[s("ss", "shared shared::cta@7.8,sm_30"), s("fetch", FETCH)], COPY_L2_IGNORE, "7.5 sm_80", Memory, "9.7.9.25", &["new.cp.async.ignore"],
        "copies from global to shared memory without waiting, or writes zeros where the predicate holds").rules(SIZE),
    row(Op::CpAsync, "cp.async.cg.ss.global.L2::cache_hint{.fetch} [d], [a], size, ignore, policy", &[s("ss", "shared shared::cta"), s("fetch", FETCH)], COPY_L2_IGNORE_POLICY, "7.5 sm_80", Memory, "9.7.9.25", &["new.cp.async.ignore"],
        "as without a cache policy").rules(SIZE),
    row(Op::CpAsyncCommitGroup, "cp.async.commit_group", &[], "",                    SM_80, Memory, "9.7.9.25", &["new.cp.async.group"], "closes a group of asynchronous copies"),
    row(Op::CpAsyncWaitGroup, "cp.async.wait_group n",   &[], "n:imm(0..2147483647)", SM_80, Sync,  "9.7.9.25", &["new.cp.async.group"], "waits until at most n groups of copies are pending"),
    row(Op::CpAsyncWaitAll, "cp.async.wait_all",         &[], "",                    SM_80, Sync,   "9.7.9.25", &["new.cp.async.group"], "waits for all asynchronous copies"),
    row(Op::CpAsyncMbarrierArrive, "cp.async.mbarrier.arrive{.noinc}{.ss}.b64 [a]", &[s("ss", SHARED)], "a:addr(ss)", SM_80, Sync, "9.7.13.15", &["new.cp.async.mbarrier"],
        "lets the copies so far arrive at a barrier when they are done"),

    row(Op::MbarrierInit,  "mbarrier.init{.ss}.b64 [a], count",                    &[s("ss", SHARED)], "a:addr(ss) count:u32", SM_80, Sync, "9.7.13.15", &["new.mbarrier.init"], "makes a barrier in memory for so many arrivals"),
    row(Op::MbarrierInval, "mbarrier.inval{.ss}.b64 [a]",                          &[s("ss", SHARED)], "a:addr(ss)",           SM_80, Sync, "9.7.13.15", &["new.mbarrier.init"], "gives the memory of a barrier back"),
    row(Op::MbarrierArrive, "mbarrier.arrive{.release.cta}{.ss}.b64 d, [a]{, count}", &[s("ss", SHARED), g("release", "8.0 sm_80")], "a:addr(ss) count:u32@7.8,sm_90", SM_80, Sync, "9.7.13.15", &["new.mbarrier.arrive"],
        "arrives; gives the state before"),
    row(Op::MbarrierArrive, "mbarrier.arrive.noComplete{.release.cta}{.ss}.b64 d, [a], count", &[s("ss", SHARED), g("release", "8.0 sm_80")], "a:addr(ss) count:u32", SM_80, Sync, "9.7.13.15", &["new.mbarrier.arrive"],
        "arrives so many times, which must not complete the phase; gives the state before"),
    row(Op::MbarrierArriveDrop, "mbarrier.arrive_drop{.release.cta}{.ss}.b64 d, [a]{, count}", &[s("ss", SHARED), g("release", "8.0 sm_80")], "a:addr(ss) count:u32@7.8,sm_90", SM_80, Sync, "9.7.13.15", &["new.mbarrier.drop"],
        "arrives, and is not expected from the next phase on; gives the state before"),
    row(Op::MbarrierArriveDrop, "mbarrier.arrive_drop.noComplete{.release.cta}{.ss}.b64 d, [a], count", &[s("ss", SHARED), g("release", "8.0 sm_80")], "a:addr(ss) count:u32", SM_80, Sync, "9.7.13.15", &["new.mbarrier.drop"],
        "arrives so many times for the last time, which must not complete the phase; gives the state before"),
    row(Op::MbarrierTestWait, "mbarrier.test_wait{.acquire.cta}{.ss}.b64 p, [a], state", &[s("ss", SHARED), g("acquire", "8.0 sm_80")], "p:=pred a:addr(ss) state:b64", SM_80, Sync, "9.7.13.15", &["new.mbarrier.wait"],
        "whether the phase of a state is complete"),
    row(Op::MbarrierTestWait, "mbarrier.test_wait.parity{.acquire.cta}{.ss}.b64 p, [a], parity", &[s("ss", SHARED), g("acquire", "8.0 sm_80")], "p:=pred a:addr(ss) parity:u32", "7.1 sm_80", Sync, "9.7.13.15", &["new.mbarrier.wait"],
        "whether the phase of that parity is complete"),
    row(Op::MbarrierTestWait, "mbarrier.try_wait{.acquire.cta}{.ss}.b64 p, [a], state{, hint}", &[s("ss", SHARED), g("acquire", "8.0 sm_90")], "p:=pred a:addr(ss) state:b64 hint:u32", "7.8 sm_90", Sync, "9.7.13.15", &["new.mbarrier.wait"],
        "whether the phase of a state is complete, perhaps after waiting"),
    row(Op::MbarrierTestWait, "mbarrier.try_wait.parity{.acquire.cta}{.ss}.b64 p, [a], parity{, hint}", &[s("ss", SHARED), g("acquire", "8.0 sm_90")], "p:=pred a:addr(ss) parity:u32 hint:u32", "7.8 sm_90", Sync, "9.7.13.15", &["new.mbarrier.wait"],
        "whether the phase of that parity is complete, perhaps after waiting"),
    row(Op::MbarrierPendingCount, "mbarrier.pending_count.b64 d, state",           &[], "d:=u32 state:b64",                   SM_80, Lane, "9.7.13.15", &["new.mbarrier.pending"], "how many arrivals a state lacks"),
];
