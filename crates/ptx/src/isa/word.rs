//! Modifier words, and the slots that they fill.
//!
//! Invariant: [`Word`] is closed: every word in any row of the table is a variant, and its text is the
//! manual's. A word has a meaning only in a [`Slot`] (`.lo` is a half of a product or a comparison). PTX ISA
//! §4.3.2, §9.7.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::Ty;

macro_rules! words {
    ($($name:ident $text:literal)*) => {
        /// A modifier word of an instruction, such as `.sat` or `.u32`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the variants are the manual's words; `text` spells them")]
        pub enum Word {
            /// A type, such as `.u32`.
            Ty(Ty),
            $($name,)*
        }

        impl Word {
            /// Every word that is not a type, in the order of the enum.
            pub const PLAIN: &'static [Word] = &[$(Word::$name),*];

            /// The word without its dot.
            pub const fn text(self) -> &'static str {
                match self {
                    Word::Ty(ty) => ty.name(),
                    $(Word::$name => $text,)*
                }
            }
        }
    };
}

words! {
    // rounding, §6.5.2
    Rn "rn" Rz "rz" Rm "rm" Rp "rp" Rni "rni" Rzi "rzi" Rmi "rmi" Rpi "rpi" Rna "rna" Rs "rs"
    // arithmetic
    Ftz "ftz" Sat "sat" Satfinite "satfinite" Cc "cc" Hi "hi" Lo "lo" Wide "wide" Approx "approx" Full "full"
    Noftz "noftz" Relu "relu" NaN "NaN" XorsignAbs "xorsign" Abs "abs" Oob "oob"
    Finite "finite" Infinite "infinite" Number "number" Notanumber "notanumber" Normal "normal"
    Subnormal "subnormal"
    Shiftamt "shiftamt" L "l" R "r" Clamp "clamp" Wrap "wrap"
    // comparison, §9.3.1
    Eq "eq" Ne "ne" Lt "lt" Le "le" Gt "gt" Ge "ge" Ls "ls" Hs "hs"
    Equ "equ" Neu "neu" Ltu "ltu" Leu "leu" Gtu "gtu" Geu "geu" Num "num" Nan "nan"
    // operations
    And "and" Or "or" Xor "xor" Popc "popc" Add "add" Inc "inc" Dec "dec" Min "min" Max "max" Exch "exch" Cas "cas"
    // data movement
    F4e "f4e" B4e "b4e" Rc8 "rc8" Ecl "ecl" Ecr "ecr" Rc16 "rc16"
    Up "up" Down "down" Bfly "bfly" Idx "idx"
    To "to" L1 "L1" L2 "L2" Nc "nc"
    V2 "v2" V4 "v4" V8 "v8"
    Ca "ca" Cg "cg" Cs "cs" Lu "lu" Cv "cv" Wb "wb" Wt "wt"
    // state spaces, §5.1
    Const "const" Global "global" Local "local" Param "param" Shared "shared"
    SharedCta "shared::cta" SharedCluster "shared::cluster" ParamEntry "param::entry" ParamFunc "param::func"
    Const0 "const[0]" Const1 "const[1]" Const2 "const[2]" Const3 "const[3]" Const4 "const[4]" Const5 "const[5]"
    Const6 "const[6]" Const7 "const[7]" Const8 "const[8]" Const9 "const[9]" Const10 "const[10]"
    // memory model, §8.4, §8.5
    Weak "weak" Volatile "volatile" Relaxed "relaxed" Acquire "acquire" Release "release" AcqRel "acq_rel" Sc "sc"
    Mmio "mmio" Cta "cta" Cluster "cluster" Gpu "gpu" Sys "sys" Gl "gl" Proxy "proxy" Async "async" Alias "alias"
    AsyncGeneric "async::generic" SyncRestrictCta "sync_restrict::shared::cta"
    SyncRestrictCluster "sync_restrict::shared::cluster"
    // synchronisation and control
    Sync "sync" Arrive "arrive" Red "red" Aligned "aligned" Warp "warp" Wait "wait"
    All "all" Any "any" Uni "uni" Ballot "ballot" Mask "mask"
    // textures and surfaces, §9.7.9, §9.7.10
    D1 "1d" D2 "2d" D3 "3d" A1d "a1d" A2d "a2d" Cube "cube" Acube "acube" D2ms "2dms" A2dms "a2dms"
    Base "base" Level "level" Grad "grad" G "g" A "a" B "b" P "p" C "c" D "d"
    Width "width" Height "height" Depth "depth" ChannelDataType "channel_data_type" ChannelOrder "channel_order"
    NormalizedCoords "normalized_coords" ArraySize "array_size" NumMipmapLevels "num_mipmap_levels"
    NumSamples "num_samples" FilterMode "filter_mode" AddrMode0 "addr_mode_0" AddrMode1 "addr_mode_1"
    AddrMode2 "addr_mode_2" ForceUnnormalizedCoords "force_unnormalized_coords" MemoryLayout "memory_layout"
    Trap "trap" Zero "zero"
    // matrices, §9.7.13
    Load "load" Store "store" Mma "mma" Row "row" Col "col"
    M16n16k16 "m16n16k16" M8n32k16 "m8n32k16" M32n8k16 "m32n8k16" M8n8k32 "m8n8k32" M8n8k128 "m8n8k128"
    M8n8k4 "m8n8k4" M16n8k8 "m16n8k8" M16n8k16 "m16n8k16" M16n8k4 "m16n8k4" M8n8k16 "m8n8k16"
    M16n8k32 "m16n8k32" M16n8k64 "m16n8k64" M16n8k128 "m16n8k128" M16n8k256 "m16n8k256" M8n8 "m8n8"
    M16n16k8 "m16n16k8" Sp "sp" SpOrdered "sp::ordered_metadata" X1 "x1" X2 "x2" X4 "x4" Trans "trans"
    // video, §9.7.14
    Po "po" Shr7 "shr7" Shr15 "shr15"
    // forms later than PTX 6.4
    Init "init" Inval "inval" ArriveDrop "arrive_drop" TestWait "test_wait" TryWait "try_wait" Parity "parity"
    PendingCount "pending_count" NoComplete "noComplete" Mbarrier "mbarrier" Noinc "noinc" MbarrierInit "mbarrier_init"
    LaunchDependents "launch_dependents" Fractional "fractional" Range "range" Cvt "cvt"
    L1EvictNormal "L1::evict_normal" L1EvictUnchanged "L1::evict_unchanged" L1EvictFirst "L1::evict_first"
    L1EvictLast "L1::evict_last" L1NoAllocate "L1::no_allocate" L2EvictNormal "L2::evict_normal"
    L2EvictUnchanged "L2::evict_unchanged" L2EvictFirst "L2::evict_first" L2EvictLast "L2::evict_last"
    L2CacheHint "L2::cache_hint" L2Prefetch64 "L2::64B" L2Prefetch128 "L2::128B" L2Prefetch256 "L2::256B"
    Pack "pack" CommitGroup "commit_group" WaitGroup "wait_group" WaitAll "wait_all"
}

impl Word {
    /// The word with this text (without its dot), if any row has it. A bank is part of its word: `const[3]`
    /// (§5.1.3.1).
    pub fn from_text(text: &str) -> Option<Word> {
        static WORDS: OnceLock<HashMap<&'static str, Word>> = OnceLock::new();
        let words = WORDS.get_or_init(|| {
            let types = Ty::ALL.into_iter().map(Word::Ty);
            types.chain(Word::PLAIN.iter().copied()).map(|w| (w.text(), w)).collect()
        });
        words.get(text).copied()
    }

    /// The type that this word names.
    pub const fn ty(self) -> Option<Ty> {
        match self {
            Word::Ty(ty) => Some(ty),
            _ => None,
        }
    }
}

macro_rules! slots {
    ($($name:ident $($text:literal)+ : $doc:literal;)*) => {
        /// The place of a modifier word in the syntax of a row.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Slot {
            /// A literal word of the syntax, such as `.sat`, `.sync` or `.aligned`.
            Flag,
            $(#[doc = $doc] $name,)*
        }

        impl Slot {
            /// The slot with this name in the syntax column.
            pub fn from_name(name: &str) -> Option<Slot> {
                match name {
                    $($($text)|+ => Some(Slot::$name),)*
                    _ => None,
                }
            }

            /// The manual's name, without its dot.
            pub const fn name(self) -> &'static str {
                match self {
                    Slot::Flag => "",
                    $(Slot::$name => slots!(@first $($text)+),)*
                }
            }
        }
    };
    (@first $text:literal $($rest:literal)*) => { $text };
}

slots! {
    Type "type" "size": "The type of the instruction; a literal type in the syntax fills it as well.";
    Dtype "dtype": "The type of the destination.";
    Stype "stype": "The type of the sources (`set`).";
    Atype "atype": "The type of operand `a`.";
    Btype "btype": "The type of operand `b`.";
    Ctype "ctype": "The type of operand `c`, or of texture coordinates.";
    Rnd "rnd" "frnd" "irnd": "Rounding.";
    CmpOp "CmpOp" "cmp": "Comparison.";
    BoolOp "BoolOp": "Combination of a comparison with a predicate.";
    Ss "ss" "space": "State space.";
    Sem "sem": "Ordering of a memory operation.";
    Scope "scope": "Scope of a memory operation.";
    Cop "cop": "Cache operator.";
    Vec "vec": "Number of vector elements.";
    Direction "dir": "Direction of a funnel shift.";
    Mode "mode" "action": "A mode proper to the instruction (halves of a product, `shfl`, `vote`, `prmt`, `shf`, `vshl`, ...).";
    Op "op": "An operation proper to the instruction (`atom`, `red`, `testp`, `barrier.red`, `sured`).";
    Secop "secop" "op2": "Secondary operation of a video instruction.";
    Scale "scale": "Scaling of `vmad`.";
    Geom "geom": "Texture or surface geometry.";
    Lod "mip": "How the level of detail is given (`.base`, `.level`, `.grad`).";
    Comp "comp": "Component that `tld4` gathers.";
    Query "query" "tquery" "squery" "tlquery": "What `txq` or `suq` asks for.";
    Clamp "clamp": "What a surface access does out of bounds.";
    Shape "shape": "Shape of a matrix operation.";
    Layout "layout": "Layout of a matrix in memory.";
    Alayout "alayout": "Layout of matrix A.";
    Blayout "blayout": "Layout of matrix B.";
    Matrix "matrix": "Which matrix `wmma.load` loads.";
    Level "level": "Cache level.";
    Num "num": "How many matrices `ldmatrix` loads.";
    Evict "evict": "How soon a cache line may be evicted.";
    Evict2 "evict2": "How soon a line of the second cache may be evicted.";
    Second "secondary": "How soon the lines may be evicted that a cache policy does not select.";
    Fetch "fetch": "How much is fetched ahead into the cache.";
}
