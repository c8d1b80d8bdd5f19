//! The rows of the list of forms that are not implemented, by family.
//!
//! Invariant: see [`super`]. If several rows match an instruction, the first is used; so a word that is newer
//! than its instruction has an earlier row.

use super::{Body, Later, Operands, between, later, n};

/// Blackwell data centre parts, and the families from PTX 8.8 on.
macro_rules! gate {
    ($ptx:literal tensor) => {
        concat!($ptx, " sm_100a sm_110a sm_101a sm_100f sm_110f sm_101f")
    };
    ($ptx:literal black) => {
        concat!($ptx, " sm_100a sm_110a sm_101a sm_120a sm_100f sm_110f sm_101f sm_120f")
    };
    ($ptx:literal hopper) => {
        concat!($ptx, " sm_90a sm_100a sm_110a sm_101a sm_120a sm_100f sm_110f sm_101f sm_120f")
    };
    ($ptx:literal rubin) => {
        concat!($ptx, " sm_107f")
    };
    ($ptx:literal desktop) => {
        concat!($ptx, " sm_120a sm_120f")
    };
    ($ptx:literal families) => {
        concat!($ptx, " sm_100f sm_110f sm_120f")
    };
}

const ANY: &str = "*";
const SOME: Operands = Operands::between(0, 12);
const RND_FTZ: &str = "rn rz rm rp ftz";
const RND_SAT: &str = "rn rz rm rp sat";
const EIGHT: &str = "rn satfinite e5m2x4 e4m3x4 e3m2x4 e2m3x4 e2m1x4 e2m1p4x4 ue8m0x4";
const CMP: &str = "eq ne lt le gt ge lo ls hi hs";
const MIXED: &str = "rn rz relu satfinite f16 f16x2 bf16 bf16x2 tf32 f32 e4m3x2 e5m2x2 e2m3x2 e3m2x2 e2m1x2 scaled::n1::ue8m0";
const ACCESS: &str = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64 v2 v4 v8 weak relaxed acquire release volatile \
    cta cluster gpu sys const global local shared shared::cta shared::cluster param param::entry ca cg cs lu cv nc wb wt \
    L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate L2::64B L2::128B L2::256B \
    L2::cache_hint L2::evict_normal L2::evict_first L2::evict_last";
const ATOMIC: &str = "relaxed acquire release acq_rel cta cluster gpu sys global shared shared::cta shared::cluster and or xor \
    exch cas add inc dec min max noftz L2::cache_hint b16 b32 b64 b128 u32 s32 u64 s64 f16 f16x2 bf16 bf16x2 f32 f64";
const MBARRIER: &str =
    "parity acquire release relaxed cta cluster shared shared::cta shared::cluster b64 noComplete";

/// The forms.
#[rustfmt::skip]
pub const LATER: &[Later] = &[
    // arithmetic
    later("add|sub.f32.f16|bf16",                           RND_SAT,                 n(3),  "8.6 sm_100",             "a half-precision operand in a single-precision sum"),
    later("fma.f32.f16|bf16.rn|rz|rm|rp",                   "sat",                   n(4),  "8.6 sm_100",             "half-precision factors with a single-precision sum"),
    later("fma.rn.oob.f16|f16x2|bf16|bf16x2",               "relu",                  n(4),  "8.1 sm_90",              "zero where an operand is the NaN of a place outside of a tensor"),
    later("min|max.f32",                                    "ftz NaN abs",           n(4),  "8.8 sm_100",             "the smallest or largest of three"),
    later("add|sub|mul.f32x2.f16x2|bf16x2",                 RND_FTZ,                 n(3),  gate!("9.4" rubin),       "mixed precision in packed arithmetic"),
    later("mul.f16x2.bf16x2",                               RND_FTZ,                 n(3),  gate!("9.4" rubin),       "mixed precision in packed arithmetic"),
    later("fma.f32x2.f16x2|bf16x2",                         RND_FTZ,                 n(4),  gate!("9.4" rubin),       "mixed precision in packed arithmetic"),
    later("add|sub|mul.e5m2x4|e4m3x4",                      EIGHT,                   n(3),  "9.4 sm_100a sm_103a",    "arithmetic on four numbers of eight bits"),
    later("fma.e5m2x4|e4m3x4",                              EIGHT,                   n(4),  "9.4 sm_100a sm_103a",    "arithmetic on four numbers of eight bits"),
    later("sin|cos.approx.2pi.ftz.f32",                     "",                      n(2),  "9.5 sm_75",              "sine and cosine of an angle in turns"),
    later("set.u8x4|s8x4|u16x2|s16x2",                      CMP,                     n(3),  gate!("9.4" rubin),       "comparison of packed integers"),
    later("add|sub.u8x4|s8x4",                              "sat",                   n(3),  "9.2 sm_120f sm_107f",    "arithmetic on four bytes"),
    later("add.sat.u16x2|s16x2|u32",                        "",                      n(3),  "9.2 sm_120f sm_107f",    "sums that are clamped"),
    later("min|max.u8x4|s8x4",                              "relu",                  n(3),  "9.2 sm_107f sm_120f",    "the smaller or larger of four bytes each"),
    later("neg.s8x4",                                       "",                      n(2),  "9.2 sm_107f sm_120f",    "the negatives of four bytes"),
    later("clmad.lo|hi.u64",                                "",                      n(4),  "9.3 sm_80",              "a product without carries, and a sum"),
    // conversion
    later("cvt.rs.f16x2|bf16x2.f32",                        "relu satfinite",        n(4),  "8.7 sm_100a sm_103a",    "conversion with stochastic rounding"),
    later("cvt.rs.satfinite.e4m3x4|e5m2x4|e2m3x4|e3m2x4|e2m1x4.f32", "relu",         n(3),  "8.7 sm_100a sm_103a",    "conversion with stochastic rounding"),
    later("cvt.rn.satfinite.e4m3x2|e5m2x2|e2m3x2|e3m2x2|e2m1x2.bf16x2", "relu",      n(2),  gate!("9.1" families),    "conversion to numbers of eight bits and fewer"),
    later("cvt.rn.bf16x2.e4m3x2|e5m2x2|e2m3x2|e3m2x2|e2m1x2", "relu satfinite scaled::n2::ue8m0", between(2, 3), gate!("9.2" families), "conversion from numbers of eight bits and fewer"),
    later("cvt.rn.satfinite.e2m3x2|e3m2x2|e2m1x2.f32",      "relu",                  n(3),  gate!("8.6" black),       "conversion to numbers of six and four bits"),
    later("cvt.rn.f16x2.e2m3x2|e3m2x2|e2m1x2",              "relu",                  n(2),  gate!("8.6" black),       "conversion from numbers of six and four bits"),
    later("cvt.rn.satfinite.e2m3x2|e3m2x2|e2m1x2.f16x2",    "relu",                  n(2),  gate!("9.1" families),    "conversion to numbers of six and four bits"),
    later("cvt.rz|rp.ue8m0x2.f32",                          "satfinite",             n(3),  gate!("8.6" black),       "conversion to scales"),
    later("cvt.rz|rp.ue8m0x2.bf16x2",                       "satfinite",             n(2),  gate!("8.6" black),       "conversion to scales"),
    later("cvt.rn.bf16x2.ue8m0x2",                          "",                      n(2),  gate!("8.6" black),       "conversion from scales"),
    later("cvt.rn.satfinite.s2f6x2.f32|bf16x2",             "relu scaled::n2::ue8m0", between(2, 4), "9.1 sm_100a sm_103a sm_110a sm_120a sm_121a", "conversion to fixed-point numbers"),
    later("cvt.rn.bf16x2.s2f6x2",                           "satfinite relu scaled::n2::ue8m0", between(2, 3), "9.1 sm_100a sm_103a sm_110a sm_120a sm_121a", "conversion from fixed-point numbers"),
    later("cvt.pzo",                                        MIXED,                   between(2, 4),  gate!("9.4" rubin),       "conversion without negative zero"),
    later("cvt.rz.satfinite.e4m3x2|e5m2x2|e2m3x2|e3m2x2|e2m1x2.f32|f16x2|bf16x2", "relu scaled::n1::ue8m0", between(2, 4), gate!("9.4" rubin), "conversion to numbers of eight bits and fewer, towards zero"),
    later("cvt.satfinite.scaled::n1::ue8m0.e4m3x2|e5m2x2|e2m3x2|e3m2x2|e2m1x2.f32", "rn relu", n(4), gate!("9.4" rubin), "conversion with a scale"),
    later("cvt.ue5m3x2.f32|f16x2|bf16x2",                   "rn rz rp satfinite scaled::n1::ue8m0 scaled::n2::ue8m0", between(2, 4), gate!("9.4" rubin), "conversion of scales"),
    // memory
    later("ld.mmio.acquire",                                ACCESS,                  n(2),  "9.3 sm_75",              "accesses to devices"),
    later("st.mmio.release",                                ACCESS,                  n(2),  "9.3 sm_75",              "accesses to devices"),
    later("ld.proxy::readonly",                             ACCESS,                  between(2, 3),  "9.4 sm_90",              "loads of what nothing writes"),
    later("ld|st.shared::cluster",                          ACCESS,                  between(2, 3),  "7.8 sm_90",              "accesses to the shared memory of a cluster"),
    later("prefetch.tensormap",                             "const param",           n(1),  "8.0 sm_90",              "fetches a tensor map ahead"),
    later("prefetch.L1::32B.valid_addr",                    "global",                n(1),  "9.4 sm_90",              "fetches a line ahead"),
    later("applypriority.async.bulk",                       ANY,                     SOME,    gate!("9.4" rubin),       "changes the priority of many lines"),
    later("cvta.shared::cluster",                           "to u32 u64",            n(2),  "7.8 sm_90",              "addresses in the shared memory of a cluster"),
    later("isspacep.shared::cluster",                       "",                      n(2),  "7.8 sm_90",              "whether an address is one in the shared memory of a cluster"),
    later("mapa",                                           "shared::cluster u32 u64", n(3), "7.8 sm_90",             "maps a shared address to another CTA of the cluster"),
    later("getctarank",                                     "shared::cluster u32 u64", n(2), "7.8 sm_90",             "the rank of the CTA that owns a shared address"),
    later("alloca",                                         "u32 u64",               between(2, 3),  "7.3 sm_52",              "allocates on the stack"),
    later("stacksave|stackrestore",                         "u32 u64",               n(1),  "7.3 sm_52",              "saves or restores the stack pointer"),
    // asynchronous copies
    later("st.async.b128",                                  ANY,                     SOME,    "9.2 sm_90",              "asynchronous stores"),
    later("st|red.async.mmio",                              ANY,                     SOME,    "8.7 sm_100",             "asynchronous stores"),
    later("st|red.async.release",                           ANY,                     SOME,    "8.7 sm_100",             "asynchronous stores"),
    later("st|red.async",                                   ANY,                     SOME,    "8.1 sm_90",              "asynchronous stores"),
    later("st.bulk",                                        "weak shared::cta",      n(3),  "8.6 sm_100",             "fills shared memory"),
    later("cp.reduce.async.bulk.noftz.f32",                 ANY,                     SOME,    "9.4 sm_90",              "bulk copies that combine"),
    later("cp.reduce.async.bulk.relaxed",                   ANY,                     SOME,    "9.3 sm_90",              "bulk copies that combine"),
    later("cp.reduce.async.bulk",                           ANY,                     SOME,    "8.0 sm_90",              "bulk copies that combine"),
    later("cp.async.bulk.wait_group.sync_restrict::proxy::async", "read",            n(1),  "9.5 sm_90",              "waits for bulk copies"),
    later("cp.async.bulk.multicast::cluster::16b|multicast::cluster::32b", ANY,      SOME,    gate!("9.4" rubin),       "bulk copies to several CTAs"),
    later("cp.async.bulk.mbarrier::report::disabled|mbarrier::report::validity::per_16bytes::80000000|mbarrier::report::validity::per_16bytes::8000|mbarrier::report::validity::per_16bytes::80|mbarrier::report::validity::per_16bytes::8|mbarrier::report::validity::per_element::ff", ANY, SOME, gate!("9.4" rubin), "bulk copies that report what they found"),
    later("cp.async.bulk.im2col_no_offs::w",                ANY,                     SOME,    gate!("9.4" rubin),       "bulk copies of tensors"),
    later("cp.async.bulk.override::global_address",         ANY,                     SOME,    gate!("9.4" rubin),       "bulk copies of tensors"),
    later("cp.async.bulk.prefetch.L2::evict_first|L2::evict_last|L2::evict_normal", ANY, SOME, gate!("9.4" rubin),      "fetches much ahead"),
    later("cp.async.bulk.relaxed|weak",                     ANY,                     SOME,    "9.3 sm_90",              "bulk copies as operations of the memory model"),
    later("cp.async.bulk.ignore_oob",                       ANY,                     SOME,    "9.2 sm_90",              "bulk copies that leave parts out"),
    later("cp.async.bulk.cp_mask",                          ANY,                     SOME,    "8.6 sm_100",             "bulk copies of chosen bytes"),
    later("cp.async.bulk.cta_group::1|cta_group::2",        ANY,                     SOME,    gate!("8.6" tensor),      "bulk copies of tensors"),
    later("cp.async.bulk.im2col::w::128",                   ANY,                     SOME,    gate!("8.6" tensor),      "bulk copies of tensors"),
    later("cp.async.bulk.prefetch.tile::gather4|im2col::w", ANY,                     SOME,    gate!("8.6" tensor),      "fetches parts of a tensor ahead"),
    later("cp.async.bulk.im2col::w.shared::cluster",        ANY,                     SOME,    "8.6 sm_100a sm_100f",    "bulk copies of tensors"),
    later("cp.async.bulk.tile::gather4.shared::cluster",    ANY,                     SOME,    "8.6 sm_100a sm_100f",    "bulk copies of tensors"),
    later("cp.async.bulk.tile::scatter4",                   ANY,                     SOME,    gate!("8.6" tensor),      "bulk copies of tensors"),
    later("cp.async.bulk.im2col::w|tile::gather4",          ANY,                     SOME,    "8.6 sm_100",             "bulk copies of tensors"),
    later("cp.async.bulk.global.shared::cta.mbarrier::complete_tx::bytes", ANY,      SOME,    "8.6 sm_90",              "bulk copies"),
    later("cp.async.bulk",                                  ANY,                     SOME,    "8.0 sm_90",              "bulk copies"),
    later("tensormap.replace.swizzle_atomicity",            ANY,                     SOME,    gate!("8.6" black),       "edits a tensor map"),
    later("tensormap.cp_fenceproxy",                        ANY,                     SOME,    "8.3 sm_90",              "copies a tensor map"),
    later("tensormap.query",                                ANY,                     SOME,    "9.5 sm_90a sm_100f sm_110f sm_120f", "asks a tensor map"),
    later("tensormap",                                      ANY,                     SOME,    gate!("8.3" hopper),      "edits a tensor map"),
    later("multimem.st|red.async",                          ANY,                     SOME,    "9.3 sm_100",             "operations on multicast addresses"),
    later("multimem.cp.cp_mask",                            ANY,                     SOME,    "9.1 sm_100",             "operations on multicast addresses"),
    later("multimem.cp",                                    ANY,                     SOME,    "9.1 sm_90",              "operations on multicast addresses"),
    later("multimem.e4m3|e5m2|e4m3x2|e5m2x2|e4m3x4|e5m2x4", ANY,                     SOME,    "8.6 sm_100a sm_110a sm_101a sm_120a sm_121a sm_100f sm_110f", "operations on multicast addresses"),
    later("multimem.ld_reduce.acc::f32",                    ANY,                     SOME,    "8.2 sm_90",              "operations on multicast addresses"),
    later("multimem",                                       ANY,                     SOME,    "8.1 sm_90",              "operations on multicast addresses"),
    later("fabric.commit_group",                            ANY,                     SOME,    "9.5 sm_100",             "operations over the network"),
    later("fabric.wait.sync_restrict::read",                ANY,                     SOME,    "9.5 sm_100",             "operations over the network"),
    later("fabric",                                         ANY,                     SOME,    "9.3 sm_100",             "operations over the network"),
    // atomics
    later("atom|red.add.noftz.f32",                         "relaxed acquire release acq_rel cta cluster gpu sys global shared shared::cta L2::cache_hint v2 v4", between(2, 4), "9.4 sm_90", "sums that keep subnormal numbers"),
    later("atom|red.v2|v4|v8",                              ATOMIC,                  between(2, 4),  "8.1 sm_90",              "atomics on vectors"),
    later("atom|red.shared::cluster",                       ATOMIC,                  between(2, 5),  "7.8 sm_90",              "atomics on the shared memory of a cluster"),
    // synchronisation
    later("barrier.cluster.arrive.release|relaxed",         "aligned",               n(0),  "8.0 sm_90",              "the barrier of a cluster"),
    later("barrier.cluster.wait.acquire",                   "aligned",               n(0),  "8.0 sm_90",              "the barrier of a cluster"),
    later("barrier.cluster.arrive|wait",                    "aligned",               n(0),  "7.8 sm_90",              "the barrier of a cluster"),
    later("mbarrier.multicast::cluster::32b",               ANY,                     SOME,    gate!("9.4" rubin),       "barriers in the memory of several CTAs"),
    later("mbarrier.layout::v0|layout::v1",                 ANY,                     SOME,    "9.3 sm_90",              "layouts of barriers in memory"),
    later("mbarrier.phase_type::primary|phase_type::conditional", ANY,               SOME,    "9.3 sm_90",              "phases of barriers in memory"),
    later("mbarrier.arrive|arrive_drop.expect_tx",          MBARRIER,                n(3),  "8.0 sm_90",              "barriers in memory that count bytes"),
    later("mbarrier.expect_tx|complete_tx",                 MBARRIER,                n(2),  "8.0 sm_90",              "barriers in memory that count bytes"),
    later("mbarrier.arrive|arrive_drop|test_wait|try_wait.relaxed", MBARRIER,        between(2, 4),  "8.6 sm_90",              "barriers in memory, without ordering"),
    later("mbarrier.arrive|arrive_drop.shared::cluster",    "release cluster cta b64", between(2, 3), "8.0 sm_90",             "barriers in the memory of another CTA"),
    later("mbarrier.arrive|arrive_drop|test_wait|try_wait.cluster", MBARRIER,        between(2, 4),  "8.0 sm_90",              "barriers in memory, ordered within a cluster"),
    later("fence.alias.sync_restrict::read.release.sys",    "",                      n(0),  "9.5 sm_90",              "orders accesses through different addresses"),
    later("fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster", "", n(0), "9.4 sm_90",    "orders asynchronous copies"),
    later("fence.proxy.alias.acquire|release",              "cta cluster gpu sys",   n(0),  "9.4 sm_90",              "orders accesses through different addresses"),
    later("fence.proxy.generic::fabric|fabric::generic|fabric::fabric.alias.acquire|release.sys", "", n(0), "9.3 sm_100", "orders accesses over the network"),
    later("fence.proxy.tensormap::generic.acquire.cta|cluster|gpu|sys", "",          n(2),  "8.3 sm_90",              "orders uses of tensor maps"),
    later("fence.proxy.tensormap::generic.release.cta|cluster|gpu|sys", "",          n(0),  "8.3 sm_90",              "orders uses of tensor maps"),
    later("redux.sync.min|max.f32",                         "abs NaN",               n(3),  "8.6 sm_100a sm_100f",    "combines numbers of all lanes of the mask"),
    later("clusterlaunchcontrol.multicast::cluster::all",   ANY,                     SOME,    gate!("8.6" black),       "cancels the launch of another cluster"),
    later("clusterlaunchcontrol",                           ANY,                     SOME,    "8.6 sm_100",             "cancels the launch of another cluster"),
    later("setmaxnreg",                                     ANY,                     SOME,    gate!("8.0" hopper),      "adjusts the registers of a warp group"),
    // matrices
    later("mma.kind::mxf4nvf4.scale_vec::4X.ue8m0",         ANY,                     SOME,    gate!("9.1" desktop),     "products of scaled numbers of four bits"),
    later("mma.sp|sp::ordered_metadata.kind::mxf4|kind::mxf4nvf4", ANY,              SOME,    "8.7 sm_120a sm_121a",    "products of scaled numbers of four bits"),
    later("mma.kind::f8f6f4|kind::mxf8f6f4|kind::mxf4|kind::mxf4nvf4", ANY,          SOME,    gate!("8.7" desktop),     "products of numbers of eight bits and fewer"),
    later("mma.sp|sp::ordered_metadata.e4m3|e5m2.f16",      ANY,                     n(6),    "8.7 sm_120",             "products with a sparse matrix"),
    later("mma.sp|sp::ordered_metadata.e4m3|e5m2.m16n8k32",   ANY,                   n(6),    "8.7 sm_120",             "products with a sparse matrix"),
    later("ldmatrix.s8.s4",                                 ANY,                     SOME,    "9.4 sm_90a sm_100f sm_110f sm_120f", "the warp loads matrices of numbers of four bits"),
    later("ldmatrix.m16n16|m8n16",                          "sync aligned x1 x2 x4 trans shared shared::cta b8 b8x16 b6x16_p32 b4x16_p64", n(2), gate!("8.6" black), "the warp loads matrices of eight bits and fewer"),
    later("stmatrix.m16n8",                                 "sync aligned x1 x2 x4 trans shared shared::cta b8", n(2), gate!("8.6" black), "the warp stores matrices of bytes"),
    later("wgmma.s8.u8",                                    ANY,                     SOME,    "8.4 sm_90a",             "matrix products of a warp group"),
    later("wgmma.sp",                                       ANY,                     SOME,    "8.2 sm_90a",             "matrix products of a warp group"),
    later("wgmma",                                          ANY,                     SOME,    "8.0 sm_90a",             "matrix products of a warp group"),
    later("tcgen05.exclusive",                              ANY,                     SOME,    "9.4 sm_100f sm_110f",    "fifth-generation tensor cores"),
    later("tcgen05.mma.kind::ti16|decompress::lut::b|collector::b::fill|collector::b::use|collector::b::lastuse|collector::b::discard", ANY, SOME, gate!("9.4" rubin), "fifth-generation tensor cores"),
    later("tcgen05.commit.multicast::cluster::16b|multicast::cluster::32b|sync_restrict::shared::read::mma::a", ANY, SOME, gate!("9.4" rubin), "fifth-generation tensor cores"),
    later("tcgen05.ld.spcompress",                          ANY,                     SOME,    "9.4 sm_107a",            "fifth-generation tensor cores"),
    later("tcgen05.ld.red",                                 ANY,                     SOME,    "8.8 sm_110a sm_101a sm_110f sm_101f sm_103f", "fifth-generation tensor cores"),
    later("tcgen05.shift",                                  ANY,                     SOME,    "8.6 sm_100a sm_110a sm_101a sm_103a", "fifth-generation tensor cores"),
    later("tcgen05.mma.kind::i8",                           ANY,                     SOME,    "8.6 sm_100a sm_110a sm_101a", "fifth-generation tensor cores"),
    later("tcgen05.mma.block16|block32",                    ANY,                     SOME,    "8.8 sm_100f sm_110f",    "fifth-generation tensor cores"),
    later("tcgen05.mma.sp.kind::mxf4nvf4",                  ANY,                     SOME,    "8.7 sm_100a sm_110a sm_101a sm_103a", "fifth-generation tensor cores"),
    later("tcgen05.mma.sp.kind::mxf4",                      ANY,                     SOME,    "8.6 sm_100a sm_110a sm_101a sm_103a", "fifth-generation tensor cores"),
    later("tcgen05.mma.kind::mxf4nvf4",                     ANY,                     SOME,    gate!("8.7" tensor),      "fifth-generation tensor cores"),
    later("tcgen05",                                        ANY,                     SOME,    gate!("8.6" tensor),      "fifth-generation tensor cores"),
    later("spcompress|spdecompress",                        ANY,                     SOME,    "9.4 sm_107a",            "compression of sparse matrices"),
    // textures and surfaces
    later("tex|tld4",                                       ANY,                     Operands::with(2, 5, Body::Pair),  "7.1 sm_60",              "a predicate beside the texel"),
    later("sured.min|max.b.u64|s64",                        "1d 2d 3d a1d a2d trap clamp zero", n(2), "8.1 sm_50",     "reductions of 64 bits in a surface"),
    later("sured.min|max.p.b64",                            "1d 2d 3d a1d a2d trap clamp zero", n(2), "8.1 sm_50",     "reductions of 64 bits in a surface"),
];
