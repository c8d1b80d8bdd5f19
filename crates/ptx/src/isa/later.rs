//! Instructions later than PTX 6.4 that the table does not describe yet: known by name, so that they are refused as not
//! implemented rather than unknown.
//!
//! Invariant: a mnemonic stands here or has rows in the table, never both (a test asserts it).

use super::Version;

/// A later instruction, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Later {
    /// The mnemonic: the word before the first dot.
    pub mnemonic: &'static str,
    /// The PTX version that introduced it.
    pub since: Version,
    /// What it is for.
    pub brief: &'static str,
}

const fn later(mnemonic: &'static str, major: u8, minor: u8, brief: &'static str) -> Later {
    Later { mnemonic, since: Version::new(major, minor), brief }
}

/// The later instructions, sorted by mnemonic.
#[rustfmt::skip]
pub const LATER: &[Later] = &[
    later("alloca",                  7, 3, "allocate on the stack"),
    later("clusterlaunchcontrol",    8, 6, "cancel the launch of another cluster"),
    later("fabric",                  9, 0, "network operations"),
    later("getctarank",              7, 8, "rank of the CTA that owns a shared address"),
    later("mapa",                    7, 8, "map a shared address to another CTA of the cluster"),
    later("movmatrix",               7, 8, "transpose a matrix across a warp"),
    later("multimem",                8, 1, "operations on multicast addresses"),
    later("setmaxnreg",              8, 0, "adjust the registers per thread"),
    later("stackrestore",            7, 3, "restore the stack pointer"),
    later("stacksave",               7, 3, "save the stack pointer"),
    later("stmatrix",                7, 8, "store matrices from a warp"),
    later("tcgen05",                 8, 6, "fifth-generation tensor core operations"),
    later("tensormap",               8, 3, "edit a tensor map"),
    later("wgmma",                   8, 0, "matrix operations of a warpgroup"),
];

/// Words that only forms later than PTX 6.4 have, with the mnemonics that have them.
#[rustfmt::skip]
const LATER_WORDS: &[(&str, &[&str], Version)] = &[
    ("cluster",         &["ld", "st", "atom", "red", "fence", "barrier"],             Version::new(7, 8)),
    ("shared::cluster", &["ld", "st", "atom", "red", "cvta", "isspacep", "cp"],       Version::new(7, 8)),
    ("param",           &["cvta", "isspacep"],                                        Version::new(7, 7)),
    ("param::entry",    &["ld", "cvta", "isspacep"],                                  Version::new(8, 3)),
    ("param::func",     &["ld", "st"],                                                Version::new(8, 3)),
    ("b128",            &["ld", "st", "mov", "atom"],                                 Version::new(8, 3)),
    ("v8",              &["ld", "st", "atom", "red"],                                 Version::new(8, 1)),
    ("mmio",            &["ld", "st"],                                                Version::new(8, 2)),
    ("unified",         &["ld"],                                                      Version::new(8, 0)),
    ("proxy",           &["fence"],                                                   Version::new(7, 5)),
    ("acquire",         &["fence"],                                                   Version::new(8, 6)),
    ("release",         &["fence"],                                                   Version::new(8, 6)),
    ("bulk",            &["cp", "prefetch", "red"],                                   Version::new(8, 0)),
    ("reduce",          &["cp"],                                                      Version::new(8, 0)),
    ("tensormap",       &["prefetch"],                                                Version::new(8, 0)),
    ("async",           &["st", "red"],                                               Version::new(8, 1)),
    ("expect_tx",       &["mbarrier"],                                                Version::new(8, 0)),
    ("complete_tx",     &["mbarrier"],                                                Version::new(8, 0)),
    ("sp",              &["mma"],                                                     Version::new(7, 1)),
    ("sp::ordered_metadata", &["mma"],                                                Version::new(8, 5)),
    ("block_scale",     &["mma"],                                                     Version::new(8, 7)),
    ("kind::f8f6f4",    &["mma"],                                                     Version::new(8, 7)),
    ("kind::mxf4",      &["mma"],                                                     Version::new(8, 7)),
    ("tf32",            &["wmma", "mma"],                                             Version::new(7, 0)),
    ("f32x2",           &["add", "sub", "mul", "fma"],                                Version::new(8, 6)),
    ("e4m3x2",          &["cvt"],                                                     Version::new(7, 8)),
    ("e5m2x2",          &["cvt"],                                                     Version::new(7, 8)),
    ("e2m1x2",          &["cvt"],                                                     Version::new(8, 6)),
    ("e2m3x2",          &["cvt"],                                                     Version::new(8, 6)),
    ("e3m2x2",          &["cvt"],                                                     Version::new(8, 6)),
    ("ue8m0x2",         &["cvt"],                                                     Version::new(8, 6)),
    ("s16x2",           &["neg"],                                                     Version::new(8, 0)),
    ("oob",             &["fma"],                                                     Version::new(8, 1)),
    ("rs",              &["cvt"],                                                     Version::new(8, 6)),
    ("L2::cache_hint",       &["atom", "red"],                                        Version::new(7, 4)),
    ("L2::evict_last",       &["ld", "st"],                                           Version::new(8, 8)),
    ("L2::evict_normal",     &["ld", "st"],                                           Version::new(8, 8)),
    ("L2::evict_first",      &["ld", "st"],                                           Version::new(8, 8)),
    ("wait",            &["barrier"],                                                 Version::new(7, 8)),
];

/// The later instruction of that mnemonic.
pub fn find(mnemonic: &str) -> Option<&'static Later> {
    LATER.iter().find(|l| l.mnemonic == mnemonic)
}

/// The PTX version that introduced `word` on `mnemonic`, where the table has no such form.
pub fn find_word(mnemonic: &str, word: &str) -> Option<Version> {
    LATER_WORDS.iter().find(|(w, m, _)| *w == word && m.contains(&mnemonic)).map(|(_, _, v)| *v)
}
