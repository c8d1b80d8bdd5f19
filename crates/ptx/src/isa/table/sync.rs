//! Parallel synchronisation and communication. PTX ISA §9.7.12.
//!
//! Invariant: see [`super`]. The qualifiers of `atom` and `red` may stand in any order: the manual prints one and uses others.

use crate::isa::op::Op;
use crate::isa::row::Class::{Memory, Sync, Warp};
use crate::isa::row::{Row, Rule, Set, g, row, s};

const SEM: &str = "relaxed*@6.0,sm_70 acquire@6.0,sm_70 release@6.0,sm_70 acq_rel@6.0,sm_70";
const RED_SEM: &str = "relaxed*@6.0,sm_70 release@6.0,sm_70";
const SCOPE: &str = "cta@5.0,sm_60 gpu*@5.0,sm_60 sys@5.0,sm_60";
const SPACE: &str = "-@2.0,sm_20 global shared@1.2,sm_12 shared::cta@7.8,sm_30";
/// `.cta`, a word that changes nothing.
const CTA: &[Set] = &[g("cta", "7.8 sm_30")];
const COUNT: &[Rule] = &[Rule::BarrierCount];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::BarSync,   "barrier{.cta}.sync{.aligned} a{, b}",                        CTA,                   "a:u32 b:u32",                              "6.0 sm_30", Sync, "9.7.12.1",
        &["ins.barrier.sync", "ins.barrier.divergent"], "waits until the participants have arrived").rules(COUNT),
    row(Op::BarArrive, "barrier{.cta}.arrive{.aligned} a, b",                        CTA,                   "a:u32 b:u32",                              "6.0 sm_30", Sync, "9.7.12.1",
        &["ins.barrier.arrive"],    "arrives without waiting").rules(COUNT),
    row(Op::BarRed,    "barrier{.cta}.red.popc{.aligned}.u32 d, a{, b}, {!}c",       CTA,                   "a:u32 b:u32 c:pred",                       "6.0 sm_30", Sync, "9.7.12.1",
        &["ins.barrier.red.popc"],  "waits, and counts the participants whose predicate holds").rules(COUNT),
    row(Op::BarRed,    "barrier{.cta}.red.op{.aligned}.pred p, a{, b}, {!}c",        &[s("op", "and or"), g("cta", "7.8 sm_30")],  "p:=pred a:u32 b:u32 c:pred",               "6.0 sm_30", Sync, "9.7.12.1",
        &["ins.barrier.red.andor"], "waits, and tells whether the predicate holds in all or any participants").rules(COUNT),
    row(Op::BarSync,   "bar{.cta}.sync a{, b}",                                      CTA,                   "a:u32%2.0,sm_20 b:u32@2.0,sm_20",          "1.0",       Sync, "9.7.12.1",
        &["ins.bar.sync"],          "waits until the participants have arrived").implies("aligned").rules(COUNT),
    row(Op::BarArrive, "bar{.cta}.arrive a, b",                                      CTA,                   "a:u32 b:u32",                              "2.0 sm_20", Sync, "9.7.12.1",
        &["ins.bar.arrive"],        "arrives without waiting").implies("aligned").rules(COUNT),
    row(Op::BarRed,    "bar{.cta}.red.popc.u32 d, a{, b}, {!}c",                     CTA,                   "a:u32 b:u32 c:pred",                       "2.0 sm_20", Sync, "9.7.12.1",
        &["ins.bar.red.popc"],      "waits, and counts the participants whose predicate holds").implies("aligned").rules(COUNT),
    row(Op::BarRed,    "bar{.cta}.red.op.pred p, a{, b}, {!}c",                      &[s("op", "and or"), g("cta", "7.8 sm_30")],  "p:=pred a:u32 b:u32 c:pred",               "2.0 sm_20", Sync, "9.7.12.1",
        &["ins.bar.red.andor"],     "waits, and tells whether the predicate holds in all or any participants").implies("aligned").rules(COUNT),
    row(Op::BarWarpSync, "bar.warp.sync membermask",                           &[],                   "membermask:b32",                           "6.0 sm_30", Sync, "9.7.12.2",
        &["ins.bar.warp.sync"],     "waits for the lanes of the mask"),
    row(Op::Membar,    "membar.scope",                                         &[s("scope", "cta gl sys@2.0,sm_20")], "",                         "1.4",       Sync, "9.7.12.3",
        &["ins.membar"],            "orders this thread's memory accesses").implies("sc:sem"),
    row(Op::Fence,     "fence{.sem}.scope",                                    &[s("sem", "sc acq_rel*"), s("scope", "cta gpu sys")], "",        "6.0 sm_70", Sync, "9.7.12.3",
        &["ins.fence.sc", "ins.fence.acq_rel"], "orders this thread's memory accesses"),
    row(Op::Fence,     "fence.proxy.alias",                                    &[],                   "",                                         "7.5 sm_70", Sync, "9.7.13.4",
        &["new.fence.proxy"], "orders accesses to one location through different addresses").implies("sc:sem"),
    row(Op::Fence,     "fence.proxy.async{.ss}",                               &[s("ss", "global shared::cta")], "",                              "8.0 sm_90", Sync, "9.7.13.4",
        &["new.fence.proxy"], "orders plain accesses and those of asynchronous copies").implies("sc:sem"),
    row(Op::Fence,     "fence.mbarrier_init.release.cluster",                  &[],                   "",                                         "8.0 sm_90", Sync, "9.7.13.4",
        &["new.fence.mbarrier_init"], "shows the cluster mbarriers that were initialised").implies("sc:sem"),

    row(Op::Atom, "atom<{.sem}{.scope}{.space}>.op.type d, [a], b",            &[s("sem", SEM), s("scope", SCOPE), s("space", SPACE), s("op", "and or xor"), s("type", "b32 b64@3.1,sm_32")],
                                                                               "a:addr(space)",       "1.1 sm_11", Memory, "9.7.12.4",
        &["ins.atom.bitop", "ins.atom.sem", "ins.atom.scope", "ins.atom.order", "ins.atom.space", "ins.atom.sink"], "combines bits in memory; gives the old value"),
    row(Op::Atom, "atom<{.sem}{.scope}{.space}>.op.type d, [a], b",            &[s("sem", SEM), s("scope", SCOPE), s("space", SPACE), s("op", "exch"), s("type", "b32 b64@1.2,sm_12 b128@8.3,sm_90")],
                                                                               "a:addr(space)",       "1.1 sm_11", Memory, "9.7.12.4",
        &["ins.atom.exch", "new.atom.b128"],      "exchanges a value with memory").rules(&[Rule::Shared64]),
    row(Op::Atom, "atom<{.sem}{.scope}{.space}>.op.type d, [a], b, c",         &[s("sem", SEM), s("scope", SCOPE), s("space", SPACE), s("op", "cas"), s("type", "b32 b64@1.2,sm_12 b16@6.3,sm_70 b128@8.3,sm_90")],
                                                                               "a:addr(space)",       "1.1 sm_11", Memory, "9.7.12.4",
        &["ins.atom.cas", "ins.atom.cas.b16"], "stores c where memory holds b; gives the old value").rules(&[Rule::Shared64]),
    row(Op::Atom, "atom<{.sem}{.scope}{.space}>.op.type d, [a], b",            &[s("sem", SEM), s("scope", SCOPE), s("space", SPACE), s("op", "add"), s("type", "u32 s32 u64@1.2,sm_12 f32@2.0,sm_20 f64@5.0,sm_60")],
                                                                               "a:addr(space)",       "1.1 sm_11", Memory, "9.7.12.4",
        &["ins.atom.add.int", "ins.atom.add.f32", "ins.atom.add.f64"], "adds to memory; gives the old value").rules(&[Rule::Shared64]),
    row(Op::Atom, "atom<{.sem}{.scope}{.space}>.op.type d, [a], b",            &[s("sem", SEM), s("scope", SCOPE), s("space", SPACE), s("op", "inc dec"), s("type", "u32")],
                                                                               "a:addr(space)",       "1.1 sm_11", Memory, "9.7.12.4",
        &["ins.atom.incdec"],    "counts in memory, wrapping at b; gives the old value"),
    row(Op::Atom, "atom<{.sem}{.scope}{.space}>.op.type d, [a], b",            &[s("sem", SEM), s("scope", SCOPE), s("space", SPACE), s("op", "min max"), s("type", "u32 s32 u64@3.1,sm_32 s64@3.1,sm_32")],
                                                                               "a:addr(space)",       "1.1 sm_11", Memory, "9.7.12.4",
        &["ins.atom.minmax"],    "keeps the smaller or larger in memory; gives the old value"),
    row(Op::Atom, "atom<{.sem}{.scope}{.space}>.op.noftz.type d, [a], b",      &[s("sem", SEM), s("scope", SCOPE), s("space", SPACE), s("op", "add"), s("type", "f16@6.3,sm_70 f16x2 bf16@7.8,sm_90 bf16x2@7.8,sm_90")],
                                                                               "a:addr(space)",       "6.2 sm_60", Memory, "9.7.12.4",
        &["ins.atom.add.f16", "ins.atom.add.f16x2", "new.atom.add.bf16"], "adds half-precision numbers to memory; gives the old values"),
    row(Op::Red,  "red<{.sem}{.scope}{.space}>.op.type [a], b",                &[s("sem", RED_SEM), s("scope", SCOPE), s("space", SPACE), s("op", "and or xor"), s("type", "b32 b64@3.1,sm_32")],
                                                                               "a:addr(space)",       "1.2 sm_11", Memory, "9.7.12.5",
        &["ins.red.bitop", "ins.red.sem"], "combines bits in memory"),
    row(Op::Red,  "red<{.sem}{.scope}{.space}>.op.type [a], b",                &[s("sem", RED_SEM), s("scope", SCOPE), s("space", SPACE), s("op", "add"), s("type", "u32 s32 u64@sm_12 f32@2.0,sm_20 f64@5.0,sm_60")],
                                                                               "a:addr(space)",       "1.2 sm_11", Memory, "9.7.12.5",
        &["ins.red.add.int", "ins.red.add.f32", "ins.red.add.f64"], "adds to memory").rules(&[Rule::Shared64]),
    row(Op::Red,  "red<{.sem}{.scope}{.space}>.op.type [a], b",                &[s("sem", RED_SEM), s("scope", SCOPE), s("space", SPACE), s("op", "inc dec"), s("type", "u32")],
                                                                               "a:addr(space)",       "1.2 sm_11", Memory, "9.7.12.5",
        &["ins.red.incdec"],     "counts in memory, wrapping at b"),
    row(Op::Red,  "red<{.sem}{.scope}{.space}>.op.type [a], b",                &[s("sem", RED_SEM), s("scope", SCOPE), s("space", SPACE), s("op", "min max"), s("type", "u32 s32 u64@3.1,sm_32 s64@3.1,sm_32")],
                                                                               "a:addr(space)",       "1.2 sm_11", Memory, "9.7.12.5",
        &["ins.red.minmax"],     "keeps the smaller or larger in memory"),
    row(Op::Red,  "red<{.sem}{.scope}{.space}>.op.noftz.type [a], b",          &[s("sem", RED_SEM), s("scope", SCOPE), s("space", SPACE), s("op", "add"), s("type", "f16@6.3,sm_70 f16x2 bf16@7.8,sm_90 bf16x2@7.8,sm_90")],
                                                                               "a:addr(space)",       "6.2 sm_60", Memory, "9.7.12.5",
        &["ins.red.add.f16", "ins.red.add.f16x2", "new.red.add.bf16"], "adds half-precision numbers to memory"),

    row(Op::Vote,      "vote.mode.pred d, {!}a",                  &[s("mode", "all any uni")],    "",                        "1.2 sm_12 until 6.4@sm_70", Warp, "9.7.12.6",
        &["ins.vote.all", "ins.vote.any", "ins.vote.uni"], "whether a predicate holds in all or any active lanes, or is the same in all").rules(&[Rule::Deprecated]),
    row(Op::Vote,      "vote.mode.b32 d, {!}a",                   &[s("mode", "ballot")],         "a:pred",                  "2.0 sm_20 until 6.4@sm_70", Warp, "9.7.12.6",
        &["ins.vote.ballot"], "the mask of active lanes whose predicate holds").rules(&[Rule::Deprecated]),
    row(Op::VoteSync,  "vote.sync.mode.pred d, {!}a, membermask", &[s("mode", "all any uni")],    "membermask:b32",          "6.0 sm_30", Warp, "9.7.12.7",
        &["ins.vote.sync.all", "ins.vote.sync.any", "ins.vote.sync.uni"], "whether a predicate holds in all or any lanes of the mask, or is the same in all"),
    row(Op::VoteSync,  "vote.sync.mode.b32 d, {!}a, membermask",  &[s("mode", "ballot")],         "a:pred membermask:b32",   "6.0 sm_30", Warp, "9.7.12.7",
        &["ins.vote.sync.ballot"], "the lanes of the mask whose predicate holds"),
    row(Op::MatchAny,  "match.any.sync.type d, a, membermask",    &[s("type", "b32 b64")],        "d:=b32 membermask:b32",   "6.0 sm_70", Warp, "9.7.12.8",
        &["ins.match.any"],  "the lanes of the mask that hold the same value"),
    row(Op::MatchAll,  "match.all.sync.type d[|p], a, membermask", &[s("type", "b32 b64")],       "d:=b32 p:=pred membermask:b32", "6.0 sm_70", Warp, "9.7.12.8",
        &["ins.match.all"],  "the mask if all its lanes hold the same value, else zero"),
    row(Op::Activemask, "activemask.b32 d",                       &[],                            "",                        "6.2 sm_30", Warp, "9.7.12.9",
        &["ins.activemask"], "the active lanes"),
];
