//! The role of each instruction in control flow.
//!
//! Invariant: the match on [`Op`] is exhaustive, so a new operation is a compile error here.
#![deny(clippy::wildcard_enum_match_arm)]

use crate::isa::Op;

/// The role of an instruction in control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// None.
    Straight,
    /// `bra`
    Bra,
    /// `brx.idx`
    Switch,
    /// `call`
    Call,
    /// `ret`
    Ret,
    /// `exit`
    Exit,
    /// Lanes of the warp wait for each other.
    WarpSync,
    /// Threads of the CTA wait for each other.
    Barrier,
}

#[rustfmt::skip]
/// The role of instructions with this operation.
pub(crate) fn flow(op: Op) -> Flow {
    match op {
        Op::Bra => Flow::Bra,
        Op::BrxIdx => Flow::Switch,
        Op::Call | Op::CallIndirect => Flow::Call,
        Op::Ret => Flow::Ret,
        Op::Exit => Flow::Exit,
        Op::ShflSync
        | Op::VoteSync
        | Op::MatchAny
        | Op::MatchAll
        | Op::BarWarpSync
        | Op::ReduxSync
        | Op::ElectSync
        | Op::WmmaLoad
        | Op::WmmaStore
        | Op::WmmaMma
        | Op::Mma
        | Op::Ldmatrix
        | Op::Stmatrix
        | Op::Movmatrix => Flow::WarpSync,
        Op::BarSync | Op::BarArrive | Op::BarRed => Flow::Barrier,
        Op::Add | Op::Sub | Op::Mul | Op::Mad | Op::Mul24 | Op::Mad24 | Op::Sad | Op::Div | Op::Rem
        | Op::Abs | Op::Neg | Op::Min | Op::Max | Op::Popc | Op::Clz | Op::Bfind | Op::Fns | Op::Brev
        | Op::Bfe | Op::Bfi | Op::Szext | Op::Bmsk | Op::Dp4a | Op::Dp2a | Op::AddCc | Op::Addc | Op::SubCc
        | Op::Subc | Op::MadCc | Op::Madc | Op::Testp | Op::Copysign | Op::Fma | Op::Rcp | Op::Sqrt
        | Op::Rsqrt | Op::Sin | Op::Cos | Op::Lg2 | Op::Ex2 | Op::Tanh | Op::Set | Op::Setp | Op::Selp
        | Op::Slct | Op::And | Op::Or | Op::Xor | Op::Not | Op::Cnot | Op::Lop3 | Op::Shf | Op::Shl
        | Op::Shr | Op::Mov | Op::MovPack | Op::MovUnpack | Op::MovVec | Op::Shfl | Op::Prmt | Op::Ld
        | Op::LdNc | Op::Ldu | Op::St | Op::Prefetch | Op::Prefetchu | Op::Isspacep | Op::Cvta | Op::CvtaTo
        | Op::Cvt | Op::CvtPack | Op::CpAsync | Op::CpAsyncCommitGroup | Op::CpAsyncWaitGroup
        | Op::CpAsyncWaitAll | Op::Tex | Op::Tld4 | Op::Txq | Op::Istypep | Op::Suld | Op::Sust | Op::Sured
        | Op::Suq | Op::Membar | Op::Fence | Op::Atom | Op::Red | Op::Vote | Op::Activemask | Op::Vadd
        | Op::Vsub | Op::Vabsdiff | Op::Vmin | Op::Vmax | Op::Vshl | Op::Vshr | Op::Vmad | Op::Vset
        | Op::Vadd2 | Op::Vsub2 | Op::Vavrg2 | Op::Vabsdiff2 | Op::Vmin2 | Op::Vmax2 | Op::Vset2 | Op::Vadd4
        | Op::Vsub4 | Op::Vavrg4 | Op::Vabsdiff4 | Op::Vmin4 | Op::Vmax4 | Op::Vset4 | Op::Brkpt
        | Op::Nanosleep | Op::Pmevent | Op::Trap | Op::Createpolicy | Op::Applypriority | Op::Discard | Op::Griddepcontrol | Op::MbarrierInit | Op::MbarrierInval | Op::MbarrierArrive | Op::MbarrierArriveDrop | Op::MbarrierTestWait | Op::MbarrierPendingCount | Op::CpAsyncMbarrierArrive => Flow::Straight,
    }
}
