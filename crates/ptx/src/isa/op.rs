//! The operations of instructions.
//!
//! Invariant: [`Op`] is closed, and every op belongs to at least one row of the table (a test asserts it). An
//! op is roughly a mnemonic; it is split where operands differ in kind (`mov` of a vector, indirect calls).
//! Types, rounding, halves of products and the like are in the row's modifiers ([`Mods`](super::Mods)).

macro_rules! ops {
    ($($name:ident $text:literal)*) => {
        /// The operation of an instruction, without its modifiers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the variants are the manual's instruction names; `name` spells them")]
        pub enum Op {
            $($name,)*
        }

        impl Op {
            /// Every op, in the order of the enum.
            pub const ALL: &'static [Op] = &[$(Op::$name),*];

            /// The manual's name: `add`, `add.cc`, `bar.sync`.
            pub const fn name(self) -> &'static str {
                match self { $(Op::$name => $text),* }
            }
        }
    };
}

ops! {
    // §9.7.1 integer arithmetic; add, sub, mul, mad, div, abs, neg, min and max also for floating point
    Add "add" Sub "sub" Mul "mul" Mad "mad" Mul24 "mul24" Mad24 "mad24" Sad "sad" Div "div" Rem "rem" Abs "abs" Neg "neg"
    Min "min" Max "max" Popc "popc" Clz "clz" Bfind "bfind" Fns "fns" Brev "brev" Bfe "bfe" Bfi "bfi" Szext "szext"
    Bmsk "bmsk" Dp4a "dp4a" Dp2a "dp2a"
    // §9.7.2 extended precision
    AddCc "add.cc" Addc "addc" SubCc "sub.cc" Subc "subc" MadCc "mad.cc" Madc "madc"
    // §9.7.3 floating point
    Testp "testp" Copysign "copysign" Fma "fma" Rcp "rcp" Sqrt "sqrt" Rsqrt "rsqrt" Sin "sin" Cos "cos" Lg2 "lg2" Ex2 "ex2"
    Tanh "tanh"
    // §9.7.5 comparison and selection
    Set "set" Setp "setp" Selp "selp" Slct "slct"
    // §9.7.7 logic and shift
    And "and" Or "or" Xor "xor" Not "not" Cnot "cnot" Lop3 "lop3" Shf "shf" Shl "shl" Shr "shr"
    // §9.7.8 data movement and conversion
    Mov "mov" MovPack "mov (pack)" MovUnpack "mov (unpack)" MovVec "mov (vector)" Shfl "shfl" ShflSync "shfl.sync" Prmt "prmt"
    Ld "ld" LdNc "ld.global.nc" Ldu "ldu" St "st" Prefetch "prefetch" Prefetchu "prefetchu" Isspacep "isspacep"
    Cvta "cvta" CvtaTo "cvta.to" Cvt "cvt" CvtPack "cvt.pack" CpAsync "cp.async" CpAsyncCommitGroup "cp.async.commit_group"
    CpAsyncWaitGroup "cp.async.wait_group" CpAsyncWaitAll "cp.async.wait_all" Createpolicy "createpolicy"
    Applypriority "applypriority" Discard "discard"
    // §9.7.9 textures
    Tex "tex" Tld4 "tld4" Txq "txq" Istypep "istypep"
    // §9.7.10 surfaces
    Suld "suld" Sust "sust" Sured "sured" Suq "suq"
    // §9.7.11 control flow
    Bra "bra" BrxIdx "brx.idx" Call "call" CallIndirect "call (indirect)" Ret "ret" Exit "exit"
    // §9.7.12 synchronisation and communication
    BarSync "barrier.sync" BarArrive "barrier.arrive" BarRed "barrier.red" BarWarpSync "bar.warp.sync" Membar "membar" Fence "fence"
    Atom "atom" Red "red" Vote "vote" VoteSync "vote.sync" MatchAny "match.any" MatchAll "match.all" Activemask "activemask"
    ReduxSync "redux.sync" ElectSync "elect.sync" Griddepcontrol "griddepcontrol"
    MbarrierInit "mbarrier.init" MbarrierInval "mbarrier.inval" MbarrierArrive "mbarrier.arrive"
    MbarrierArriveDrop "mbarrier.arrive_drop" MbarrierTestWait "mbarrier.test_wait"
    MbarrierPendingCount "mbarrier.pending_count" CpAsyncMbarrierArrive "cp.async.mbarrier.arrive"
    // §9.7.13 matrices
    WmmaLoad "wmma.load" WmmaStore "wmma.store" WmmaMma "wmma.mma" Mma "mma" Ldmatrix "ldmatrix" Stmatrix "stmatrix"
    Movmatrix "movmatrix"
    // §9.7.14 video
    Vadd "vadd" Vsub "vsub" Vabsdiff "vabsdiff" Vmin "vmin" Vmax "vmax" Vshl "vshl" Vshr "vshr" Vmad "vmad" Vset "vset"
    Vadd2 "vadd2" Vsub2 "vsub2" Vavrg2 "vavrg2" Vabsdiff2 "vabsdiff2" Vmin2 "vmin2" Vmax2 "vmax2" Vset2 "vset2"
    Vadd4 "vadd4" Vsub4 "vsub4" Vavrg4 "vavrg4" Vabsdiff4 "vabsdiff4" Vmin4 "vmin4" Vmax4 "vmax4" Vset4 "vset4"
    // §9.7.17 miscellaneous
    Brkpt "brkpt" Nanosleep "nanosleep" Pmevent "pmevent" Trap "trap"
}

impl Op {
    /// Whether it can trap: by an invalid address, handle, member mask, barrier or callee, by stack overflow,
    /// or as `trap`. An instruction that can trap has a side effect: it must execute in exactly the active
    /// lanes, in order, even if its result is unused. A test in `ptx-exec` executes every row with invalid
    /// operands.
    pub const fn traps(self) -> bool {
        match self {
            Op::Add | Op::Sub | Op::Mul | Op::Mad | Op::Mul24 | Op::Mad24 | Op::Sad | Op::Div | Op::Rem => {
                false
            }
            Op::Abs | Op::Neg | Op::Min | Op::Max | Op::Popc | Op::Clz | Op::Bfind | Op::Fns | Op::Brev => {
                false
            }
            Op::Bfe | Op::Bfi | Op::Szext | Op::Bmsk | Op::Dp4a | Op::Dp2a => false,
            Op::AddCc | Op::Addc | Op::SubCc | Op::Subc | Op::MadCc | Op::Madc => false,
            Op::Testp | Op::Copysign | Op::Fma | Op::Rcp | Op::Sqrt | Op::Rsqrt | Op::Sin | Op::Cos => false,
            Op::Lg2 | Op::Ex2 | Op::Tanh => false,
            Op::Set | Op::Setp | Op::Selp | Op::Slct => false,
            Op::And | Op::Or | Op::Xor | Op::Not | Op::Cnot | Op::Lop3 | Op::Shf | Op::Shl | Op::Shr => false,
            Op::Mov | Op::MovPack | Op::MovUnpack | Op::MovVec | Op::Prmt | Op::Cvt | Op::CvtPack => false,
            // They act on the active lanes, for any mask.
            Op::Shfl | Op::Vote | Op::Activemask => false,
            Op::ShflSync | Op::VoteSync | Op::MatchAny | Op::MatchAll | Op::BarWarpSync => true,
            Op::ReduxSync | Op::ElectSync => true,
            Op::Ld | Op::LdNc | Op::Ldu | Op::St | Op::Atom | Op::Red | Op::CpAsync => true,
            // Hints access no memory, and any address can be converted and queried.
            Op::Prefetch | Op::Prefetchu | Op::Createpolicy | Op::Applypriority | Op::Discard => false,
            Op::Isspacep | Op::Cvta | Op::CvtaTo | Op::Istypep => false,
            Op::CpAsyncCommitGroup | Op::CpAsyncWaitGroup | Op::CpAsyncWaitAll => false,
            Op::Tex | Op::Tld4 | Op::Txq | Op::Suld | Op::Sust | Op::Sured | Op::Suq => true,
            Op::Bra | Op::Ret | Op::Exit => false,
            Op::BrxIdx | Op::Call | Op::CallIndirect => true,
            Op::BarSync | Op::BarArrive | Op::BarRed => true,
            Op::Membar | Op::Fence | Op::Griddepcontrol => false,
            Op::MbarrierInit | Op::MbarrierInval | Op::MbarrierArrive | Op::MbarrierArriveDrop => true,
            Op::MbarrierTestWait | Op::CpAsyncMbarrierArrive => true,
            Op::MbarrierPendingCount => false,
            Op::WmmaLoad | Op::WmmaStore | Op::WmmaMma | Op::Mma => true,
            Op::Ldmatrix | Op::Stmatrix | Op::Movmatrix => true,
            Op::Vadd | Op::Vsub | Op::Vabsdiff | Op::Vmin | Op::Vmax | Op::Vshl | Op::Vshr | Op::Vmad => {
                false
            }
            Op::Vset => false,
            Op::Vadd2 | Op::Vsub2 | Op::Vavrg2 | Op::Vabsdiff2 | Op::Vmin2 | Op::Vmax2 | Op::Vset2 => false,
            Op::Vadd4 | Op::Vsub4 | Op::Vavrg4 | Op::Vabsdiff4 | Op::Vmin4 | Op::Vmax4 | Op::Vset4 => false,
            Op::Brkpt | Op::Nanosleep | Op::Pmevent => false,
            Op::Trap => true,
        }
    }
}
