//! Data movement and conversion. PTX ISA §9.7.8.
//!
//! Invariant: see [`super`]. The manual has two lines for `cvt` and governs them by prose. Here each kind of
//! conversion is a separate row, so that the syntax says whether a rounding is required or forbidden.

use super::common::{ANY, MEM, VEC, WIDE};
use crate::isa::op::Op;
use crate::isa::row::Class::{Lane, Memory, Warp};
use crate::isa::row::{Row, Rule, g, row, s};

const LD_SS: &str =
    "-@2.0,sm_20 const global local param param::entry@8.3 param::func@8.3 shared shared::cta@7.8,sm_30";
const ST_SS: &str = "-@2.0,sm_20 global local param@2.0,sm_20 param::func@8.3 shared shared::cta@7.8,sm_30";
const VOLATILE_SS: &str = "-@2.0,sm_20 global local@9.1 shared shared::cta@7.8,sm_30";
const STRONG_SS: &str = "-@2.0,sm_20 global shared shared::cta@7.8,sm_30";
const LD_COP: &str = "ca@2.0,sm_20 cg@2.0,sm_20 cs@2.0,sm_20 lu@2.0,sm_20 cv@2.0,sm_20";
const NC_COP: &str = "ca cg cs";
const ST_COP: &str = "wb@2.0,sm_20 cg@2.0,sm_20 cs@2.0,sm_20 wt@2.0,sm_20";
const BANKS: &str =
    "const[0] const[1] const[2] const[3] const[4] const[5] const[6] const[7] const[8] const[9] const[10]";
const WEAK: &str = "6.0 sm_70";
const SCOPE: &str = "cta cluster@7.8,sm_90 gpu sys";
const SHFL: &str = "up down bfly idx";
const CVT_INT: &str = "u8 u16 u32 u64 s8 s16 s32 s64";
const CVT_FLOAT: &str = "f16 f32 f64@sm_13|map_f64_to_f32";
const FRND: &str = "rn rz rm rp";
const IRND: &str = "rni rzi rmi rpi";
const MEMORY: &[Rule] = &[Rule::Vec256, Rule::ParamAccess];
const UNIFORM: &[Rule] = &[Rule::Vec128, Rule::ParamAccess];
const BANKED: &[Rule] = &[Rule::Vec128, Rule::ParamAccess, Rule::Deprecated];
const CVT: &[Rule] = &[Rule::FtzNeedsF32];

#[rustfmt::skip]
pub(super) const ROWS: &[Row] = &[
    row(Op::Mov,       "mov.type d, a",      &[s("type", "pred b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64@sm_13|map_f64_to_f32 b128@8.3,sm_70")],
                                                                                     "a:movsrc",            "1.0",                      Lane,   "9.7.8.2",
        &["ins.mov.reg", "ins.mov.sreg", "ins.mov.var", "ins.mov.func", "ins.mov.kernel", "new.mov.b128"],
        "copies a value, a special register, or the address of a variable or function"),
    row(Op::MovPack,   "mov.type d, a",      &[s("type", "b16 b32 b64 b128@8.3,sm_70")], "a:elems",             "1.0",                      Lane,   "9.7.8.3",
        &["ins.mov.pack"],   "packs the elements of a vector, the first into the low bits").rules(&[Rule::PackSizes]),
    row(Op::MovUnpack, "mov.type d, a",      &[s("type", "b16 b32 b64 b128@8.3,sm_70")], "d:=elems",            "1.0",                      Lane,   "9.7.8.3",
        &["ins.mov.unpack"], "unpacks a value into the elements of a vector, the low bits into the first").rules(&[Rule::PackSizes]),
    row(Op::MovVec,    "mov.vec.type d, a",  &[s("vec", "v2 v4"), s("type", ANY)],   "d:=type*vec a:type*vec", "1.0",                   Lane,   "6.4.3",
        &["opnd.vec.mov_v"], "copies a vector").rules(&[Rule::Vec128]),

    row(Op::Shfl,      "shfl.mode.b32 d[|p], a, b, c",                  &[s("mode", SHFL)], "p:=pred b:b32 c:b32", "3.0 sm_30 until 6.4@sm_70", Warp, "9.7.8.4",
        &["ins.shfl.up", "ins.shfl.down", "ins.shfl.bfly", "ins.shfl.idx"],
        "reads a register of another active lane").rules(&[Rule::Deprecated]),
    row(Op::ShflSync,  "shfl.sync.mode.b32 d[|p], a, b, c, membermask", &[s("mode", SHFL)], "p:=pred b:b32 c:b32 membermask:b32", "6.0 sm_30", Warp, "9.7.8.5",
        &["ins.shfl.sync.up", "ins.shfl.sync.down", "ins.shfl.sync.bfly", "ins.shfl.sync.idx"],
        "waits for the lanes of the mask, then reads a register of another lane"),
    row(Op::Prmt,      "prmt.b32{.mode} d, a, b, c", &[s("mode", "f4e b4e rc8 ecl ecr rc16")], "",          "2.0 sm_20",                Lane,   "9.7.8.6",
        &["ins.prmt", "ins.prmt.f4e", "ins.prmt.b4e", "ins.prmt.rc8", "ins.prmt.ecl", "ins.prmt.ecr", "ins.prmt.rc16"],
        "picks four bytes of a register pair"),

    row(Op::Ld,        "ld<{.weak}{.ss}{.cop}>{.vec}.type d, [a]",  &[s("ss", LD_SS), s("cop", LD_COP), s("vec", VEC), s("type", WIDE), g("weak", WEAK)],
                                                                                     "d:=>type*vec a:addr(ss)", "1.0",                  Memory, "9.7.8.7",
        &["ins.ld.generic", "ins.ld.const", "ins.ld.global", "ins.ld.local", "ins.ld.param", "ins.ld.shared", "ins.ld.widen", "ins.ld.f64_target",
          "ld.cache.ca", "ld.cache.cg", "ld.cache.cs", "ld.cache.lu", "ld.cache.cv", "new.ld.256", "new.ld.b128"],
        "loads from memory").rules(MEMORY),
    row(Op::Ld,        "ld<.volatile{.ss}>{.vec}.type d, [a]",      &[s("ss", VOLATILE_SS), s("vec", VEC), s("type", WIDE)],
                                                                                     "d:=>type*vec a:addr(ss)", "1.1",                  Memory, "9.7.8.7",
        &["ins.ld.volatile"], "loads, never elided, ordered with other volatile accesses to the location").rules(MEMORY),
    row(Op::Ld,        "ld<.sem.scope{.ss}>{.vec}.type d, [a]",     &[s("sem", "relaxed acquire"), s("scope", SCOPE), s("ss", STRONG_SS), s("vec", VEC), s("type", WIDE)],
                                                                                     "d:=>type*vec a:addr(ss)", "6.0 sm_70",            Memory, "9.7.8.7",
        &["ins.ld.relaxed", "ins.ld.acquire"], "loads as a strong operation of that scope").rules(MEMORY),
    row(Op::Ld,        "ld.mmio.relaxed.sys{.ss}.type d, [a]",      &[s("ss", "global"), s("type", MEM)],
                                                                                     "d:=>type a:addr(ss)", "8.2 sm_70",                Memory, "9.7.9.8",
        &["new.ld.mmio"], "loads from a device's register: once, and as it stands").rules(MEMORY),
    row(Op::Ld,        "ld.ss{.vec}.type d, [a]",                   &[s("ss", BANKS), s("vec", "v2 v4"), s("type", MEM)],
                                                                                     "d:=>type*vec a:addr(ss)", "1.0",                  Memory, "5.1.3.1",
        &["ins.ld.const_bank"], "loads from a constant bank").rules(BANKED),
    row(Op::LdNc,      "ld<.global{.cop}.nc>{.vec}.type d, [a]",    &[s("cop", NC_COP), s("vec", VEC), s("type", WIDE)],
                                                                                     "d:=>type*vec a:addr(global)", "3.1 sm_32",        Memory, "9.7.8.8",
        &["ins.ld.global.nc"], "loads data that nothing writes while the kernel runs").rules(MEMORY),
    row(Op::Ldu,       "ldu{.ss}{.vec}.type d, [a]",                &[s("ss", "global"), s("vec", "v2 v4"), s("type", WIDE)],
                                                                                     "d:=>type*vec a:addr(ss)", "2.0 sm_20",            Memory, "9.7.8.9",
        &["ins.ldu"], "loads read-only data from an address that is the same in the whole warp").rules(UNIFORM),
    row(Op::St,        "st<{.weak}{.ss}{.cop}>{.vec}.type [a], b",  &[s("ss", ST_SS), s("cop", ST_COP), s("vec", VEC), s("type", WIDE), g("weak", WEAK)],
                                                                                     "a:addr(ss) b:>type*vec", "1.0",                   Memory, "9.7.8.10",
        &["ins.st.generic", "ins.st.global", "ins.st.local", "ins.st.param", "ins.st.shared", "st.cache.wb", "st.cache.wt", "new.st.256", "new.st.b128"],
        "stores to memory").rules(MEMORY),
    row(Op::St,        "st<.volatile{.ss}>{.vec}.type [a], b",      &[s("ss", VOLATILE_SS), s("vec", VEC), s("type", WIDE)],
                                                                                     "a:addr(ss) b:>type*vec", "1.1",                   Memory, "9.7.8.10",
        &["ins.st.volatile"], "stores, never elided, ordered with other volatile accesses to the location").rules(MEMORY),
    row(Op::St,        "st<.sem.scope{.ss}>{.vec}.type [a], b",     &[s("sem", "relaxed release"), s("scope", SCOPE), s("ss", STRONG_SS), s("vec", VEC), s("type", WIDE)],
                                                                                     "a:addr(ss) b:>type*vec", "6.0 sm_70",             Memory, "9.7.8.10",
        &["ins.st.relaxed", "ins.st.release"], "stores as a strong operation of that scope").rules(MEMORY),
    row(Op::St,        "st.mmio.relaxed.sys{.ss}.type [a], b",      &[s("ss", "global"), s("type", MEM)],
                                                                                     "a:addr(ss) b:>type",  "8.2 sm_70",                Memory, "9.7.9.11",
        &["new.st.mmio"], "stores to a device's register: once, and as it stands").rules(MEMORY),
    row(Op::Prefetch,  "prefetch{.space}.level [a]",                &[s("space", "global local"), s("level", "L1 L2")],
                                                                                     "a:addr(space)",       "2.0 sm_20",                Memory, "9.7.8.11",
        &["ins.prefetch"], "asks for a cache line"),
    row(Op::Prefetchu, "prefetchu.L1 [a]",                          &[],             "a:addr(generic)",     "2.0 sm_20",                Memory, "9.7.8.11",
        &["ins.prefetchu"], "asks for a line of the uniform cache"),
    row(Op::Isspacep,  "isspacep.space p, a",                       &[s("space", "const@3.1 global local shared shared::cta@7.8,sm_30 param@7.7,sm_70 param::entry@8.3,sm_70")],
                                                                                     "p:=pred a:ptr",       "2.0 sm_20",                Lane,   "9.7.8.12",
        &["ins.isspacep"], "whether a generic address lies in the window of a state space"),
    row(Op::Cvta,      "cvta.space.size p, a",                      &[s("space", "const@3.1 global local shared shared::cta@7.8,sm_30 param@7.7,sm_70 param::entry@8.3,sm_70"), s("size", "u32 u64")],
                                                                                     "p:=type a:var",       "2.0 sm_20",                Lane,   "9.7.8.13",
        &["ins.cvta"], "makes an address of a state space generic").rules(&[Rule::AddressSize]),
    row(Op::CvtaTo,    "cvta.to.space.size p, a",                   &[s("space", "const@3.1 global local shared shared::cta@7.8,sm_30 param@7.7,sm_70 param::entry@8.3,sm_70"), s("size", "u32 u64")],
                                                                                     "p:=type a:reg(type)", "2.0 sm_20",                Lane,   "9.7.8.13",
        &["ins.cvta.to"], "makes a generic address one of a state space").rules(&[Rule::AddressSize]),

    row(Op::Cvt,       "cvt{.sat}.dtype.atype d, a",                &[s("dtype", CVT_INT), s("atype", CVT_INT)],
                                                                                     "d:=>dtype a:>atype",  "1.0",                      Lane,   "9.7.8.14",
        &["ins.cvt.int_int", "ins.cvt.int_int.sat"], "integer to integer, cut or saturated").rules(&[Rule::SatNarrows]),
    row(Op::Cvt,       "cvt.frnd{.ftz}{.sat}.dtype.atype d, a",     &[s("frnd", FRND), s("dtype", CVT_FLOAT), s("atype", CVT_INT), g("ftz", "1.4")],
                                                                                     "d:=>dtype a:>atype",  "1.0",                      Lane,   "9.7.8.14",
        &["ins.cvt.int_fp"], "integer to floating point, rounded").rules(CVT),
    row(Op::Cvt,       "cvt.irnd{.ftz}{.sat}.dtype.atype d, a",     &[s("irnd", IRND), s("dtype", CVT_INT), s("atype", CVT_FLOAT), g("ftz", "1.4")],
                                                                                     "d:=>dtype a:>atype",  "1.0",                      Lane,   "9.7.8.14",
        &["ins.cvt.fp_int"], "floating point to integer, rounded, clamped to the destination's range").rules(CVT),
    row(Op::Cvt,       "cvt.frnd{.ftz}{.sat}.dtype.atype d, a",     &[s("frnd", FRND), s("dtype", "f16"), s("atype", "f32 f64@sm_13|map_f64_to_f32"), g("ftz", "1.4")],
                                                                                     "d:=>dtype a:>atype",  "1.0",                      Lane,   "9.7.8.14",
        &["ins.cvt.fp_narrow", "ins.cvt.sat_fp", "ins.cvt.ftz", "ins.cvt.ftz_legacy"], "to half precision, rounded").rules(CVT),
    row(Op::Cvt,       "cvt.frnd{.ftz}{.sat}.dtype.atype d, a",     &[s("frnd", FRND), s("dtype", "f32"), s("atype", "f64@sm_13|map_f64_to_f32"), g("ftz", "1.4")],
                                                                                     "d:=>dtype a:>atype",  "1.0",                      Lane,   "9.7.8.14",
        &["ins.cvt.fp_narrow"], "double to single precision, rounded").rules(CVT),
    row(Op::Cvt,       "cvt{.ftz}{.sat}.dtype.atype d, a",          &[s("dtype", "f32"), s("atype", "f16"), g("ftz", "1.4")],
                                                                                     "d:=>dtype a:>atype",  "1.0",                      Lane,   "9.7.8.14",
        &["ins.cvt.fp_widen"], "half to single precision, exactly").rules(CVT),
    row(Op::Cvt,       "cvt{.ftz}{.sat}.dtype.atype d, a",          &[s("dtype", "f64@sm_13|map_f64_to_f32"), s("atype", "f16 f32"), g("ftz", "1.4")],
                                                                                     "d:=>dtype a:>atype",  "1.0",                      Lane,   "9.7.8.14",
        &["ins.cvt.fp_widen"], "to double precision, exactly").rules(CVT),
    row(Op::Cvt,       "cvt{.irnd}{.ftz}{.sat}.dtype.atype d, a",   &[s("irnd", IRND), s("dtype", "f16"), s("atype", "f16"), g("ftz", "1.4")],
                                                                                     "d:=>dtype a:>atype",  "1.0",                      Lane,   "9.7.8.14",
        &["ins.cvt.fp_same", "ins.cvt.fp_integral"], "half precision to itself, to an integral value where a rounding is given").rules(CVT),
    row(Op::Cvt,       "cvt{.irnd}{.ftz}{.sat}.dtype.atype d, a",   &[s("irnd", IRND), s("dtype", "f32"), s("atype", "f32"), g("ftz", "1.4")],
                                                                                     "d:=>dtype a:>atype",  "1.0",                      Lane,   "9.7.8.14",
        &["ins.cvt.fp_same", "ins.cvt.fp_integral"], "single precision to itself, to an integral value where a rounding is given").rules(CVT),
    row(Op::Cvt,       "cvt{.irnd}{.ftz}{.sat}.dtype.atype d, a",   &[s("irnd", IRND), s("dtype", "f64@sm_13|map_f64_to_f32"), s("atype", "f64"), g("ftz", "1.4")],
                                                                                     "d:=>dtype a:>atype",  "1.0",                      Lane,   "9.7.8.14",
        &["ins.cvt.fp_same", "ins.cvt.fp_integral"], "double precision to itself, to an integral value where a rounding is given").rules(CVT),
];
