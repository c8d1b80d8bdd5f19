//! Cache hints after PTX 6.4. Sections are those of the current manual.
//!
//! Invariant: see [`super`]. Hints do not change results. Loads and stores with such hints are separate rows,
//! so that those without keep their spellings: a row has an eviction priority, an amount to prefetch, or a
//! policy.

use super::common::{VEC, WIDE};
use crate::isa::op::Op;
use crate::isa::row::Class::{Lane, Memory};
use crate::isa::row::{Row, Rule, row, s};

const EVICT: &str = "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate";
const FETCH: &str = "L2::64B L2::128B L2::256B@7.4,sm_80";
const LD: &str = "d:=>type*vec a:addr(ss)";
const LD_POLICY: &str = "d:=>type*vec a:addr(ss) policy:b64";
const NC: &str = "d:=>type*vec a:addr(global)";
const NC_POLICY: &str = "d:=>type*vec a:addr(global) policy:b64";
const ST: &str = "a:addr(ss) b:>type*vec";
const ST_POLICY: &str = "a:addr(ss) b:>type*vec policy:b64";
const PRIMARY: &str = "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged";
const SECONDARY: &str = "L2::evict_first L2::evict_unchanged";
const SM_80: &str = "7.4 sm_80";
/// The lengths of vectors of 256 bits.
const VEC_256: &str = "v4 v8";
const WORDS: &str = "b32 u32 s32 f32 b64 u64 s64 f64";
const EVICT_L2: &str = "L2::evict_normal L2::evict_first L2::evict_last";
const SM_100: &str = "8.8 sm_100";
const RULES: &[Rule] = &[Rule::Vec256, Rule::ParamAccess];
const ONLY_256: &[Rule] = &[Rule::Only256, Rule::ParamAccess];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Ld,   "ld{.ss}.evict{.fetch}{.vec}.type d, [a]",                        &[s("ss", "global"), s("evict", EVICT), s("fetch", FETCH), s("vec", VEC), s("type", WIDE)], LD, "7.4 sm_70", Memory, "9.7.9.8", &["new.ld.hint"],
        "loads, with an eviction priority").rules(RULES),
    row(Op::Ld,   "ld{.ss}.fetch{.vec}.type d, [a]",                                &[s("ss", "global"), s("fetch", FETCH), s("vec", VEC), s("type", WIDE)], LD, "7.4 sm_75", Memory, "9.7.9.8", &["new.ld.hint"],
        "loads, and fetches ahead").rules(RULES),
    row(Op::Ld,   "ld{.ss}{.evict}.L2::cache_hint{.fetch}{.vec}.type d, [a], policy", &[s("ss", "global"), s("evict", EVICT), s("fetch", FETCH), s("vec", VEC), s("type", WIDE)], LD_POLICY, SM_80, Memory, "9.7.9.8", &["new.ld.hint"],
        "loads, with a cache policy").rules(RULES),
    row(Op::LdNc, "ld.global.nc.evict{.fetch}{.vec}.type d, [a]",                   &[s("evict", EVICT), s("fetch", FETCH), s("vec", VEC), s("type", WIDE)], NC, "7.4 sm_70", Memory, "9.7.9.9", &["new.ld.nc.hint"],
        "loads data that nothing writes while the kernel runs, with an eviction priority").rules(RULES),
    row(Op::LdNc, "ld.global.nc.fetch{.vec}.type d, [a]",                           &[s("fetch", FETCH), s("vec", VEC), s("type", WIDE)], NC, "7.4 sm_75", Memory, "9.7.9.9", &["new.ld.nc.hint"],
        "loads data that nothing writes while the kernel runs, and fetches ahead").rules(RULES),
    row(Op::LdNc, "ld.global.nc{.evict}.L2::cache_hint{.fetch}{.vec}.type d, [a], policy", &[s("evict", EVICT), s("fetch", FETCH), s("vec", VEC), s("type", WIDE)], NC_POLICY, SM_80, Memory, "9.7.9.9", &["new.ld.nc.hint"],
        "loads data that nothing writes while the kernel runs, with a cache policy").rules(RULES),
    row(Op::St,   "st{.ss}.evict{.vec}.type [a], b",                                &[s("ss", "global"), s("evict", EVICT), s("vec", VEC), s("type", WIDE)], ST, "7.4 sm_70", Memory, "9.7.9.11", &["new.st.hint"],
        "stores, with an eviction priority").rules(RULES),
    row(Op::St,   "st{.ss}{.evict}.L2::cache_hint{.vec}.type [a], b, policy",       &[s("ss", "global"), s("evict", EVICT), s("vec", VEC), s("type", WIDE)], ST_POLICY, SM_80, Memory, "9.7.9.11", &["new.st.hint"],
        "stores, with a cache policy").rules(RULES),
    row(Op::Ld,   "ld{.ss}{.evict}.evict2{.fetch}.vec.type d, [a]",                 &[s("ss", "global"), s("evict", EVICT), s("evict2", EVICT_L2), s("fetch", FETCH), s("vec", VEC_256), s("type", WORDS)], LD, SM_100, Memory, "9.7.9.8", &["new.ld.256"],
        "loads 256 bits, with eviction priorities").rules(ONLY_256),
    row(Op::Ld,   "ld{.ss}{.evict}.evict2.L2::cache_hint{.fetch}.vec.type d, [a], policy", &[s("ss", "global"), s("evict", EVICT), s("evict2", EVICT_L2), s("fetch", FETCH), s("vec", VEC_256), s("type", WORDS)], LD_POLICY, SM_100, Memory, "9.7.9.8", &["new.ld.256"],
        "loads 256 bits, with eviction priorities and a cache policy").rules(ONLY_256),
    row(Op::LdNc, "ld.global.nc{.evict}.evict2{.fetch}.vec.type d, [a]",            &[s("evict", EVICT), s("evict2", EVICT_L2), s("fetch", FETCH), s("vec", VEC_256), s("type", WORDS)], NC, SM_100, Memory, "9.7.9.9", &["new.ld.256"],
        "loads 256 bits that nothing writes while the kernel runs, with eviction priorities").rules(ONLY_256),
    row(Op::LdNc, "ld.global.nc{.evict}.evict2.L2::cache_hint{.fetch}.vec.type d, [a], policy", &[s("evict", EVICT), s("evict2", EVICT_L2), s("fetch", FETCH), s("vec", VEC_256), s("type", WORDS)], NC_POLICY, SM_100, Memory, "9.7.9.9", &["new.ld.256"],
        "loads 256 bits that nothing writes while the kernel runs, with eviction priorities and a cache policy").rules(ONLY_256),
    row(Op::St,   "st{.ss}{.evict}.evict2.vec.type [a], b",                         &[s("ss", "global"), s("evict", EVICT), s("evict2", EVICT_L2), s("vec", VEC_256), s("type", WORDS)], ST, SM_100, Memory, "9.7.9.11", &["new.st.256"],
        "stores 256 bits, with eviction priorities").rules(ONLY_256),
    row(Op::St,   "st{.ss}{.evict}.evict2.L2::cache_hint.vec.type [a], b, policy",  &[s("ss", "global"), s("evict", EVICT), s("evict2", EVICT_L2), s("vec", VEC_256), s("type", WORDS)], ST_POLICY, SM_100, Memory, "9.7.9.11", &["new.st.256"],
        "stores 256 bits, with eviction priorities and a cache policy").rules(ONLY_256),
    row(Op::Prefetch, "prefetch.global.evict [a]",                                  &[s("evict", "L2::evict_last L2::evict_normal")], "a:addr(global)", SM_80, Memory, "9.7.9.15", &["new.prefetch.evict"],
        "asks for a cache line, with an eviction priority"),
    row(Op::Applypriority, "applypriority{.ss}.L2::evict_normal [a], size",         &[s("ss", "global")], "a:addr(ss) size:imm(128..128)", SM_80, Memory, "9.7.9.16", &["new.applypriority"],
        "gives a cache line an eviction priority"),
    row(Op::Discard, "discard{.ss}.L2 [a], size",                                   &[s("ss", "global")], "a:addr(ss) size:imm(128..128)", SM_80, Memory, "9.7.9.17", &["new.discard"],
        "drops a cache line without writing it back"),
    row(Op::Createpolicy, "createpolicy.fractional.evict{.secondary}.b64 d{, fraction}", &[s("evict", PRIMARY), s("secondary", SECONDARY)], "fraction:f32", SM_80, Lane, "9.7.9.18", &["new.createpolicy"],
        "a cache policy for a fraction of accesses").rules(&[Rule::Fraction]),
    row(Op::Createpolicy, "createpolicy.range{.ss}.evict{.secondary}.b64 d, [a], b, c", &[s("ss", "global"), s("evict", PRIMARY), s("secondary", SECONDARY)], "a:addr(ss) b:u32 c:u32", SM_80, Lane, "9.7.9.18", &["new.createpolicy"],
        "a cache policy for a range of addresses"),
    row(Op::Createpolicy, "createpolicy.cvt.L2.b64 d, a",                           &[], "a:b64", SM_80, Lane, "9.7.9.18", &["new.createpolicy"],
        "a cache policy from an access property of CUDA"),
];
