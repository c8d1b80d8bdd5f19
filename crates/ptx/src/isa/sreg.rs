//! Special registers. PTX ISA chapter 10.
//!
//! Invariant: each predefined register name has one variant (numbered families share one with the number
//! inside), and its type and gates are the manual's.

use super::{Gate, Ty};

/// A special register; a component of a vector register is selected separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the variants are the manual's register names")]
pub enum Sreg {
    Tid,
    Ntid,
    Laneid,
    Warpid,
    Nwarpid,
    Ctaid,
    Nctaid,
    Smid,
    Nsmid,
    Gridid,
    LanemaskEq,
    LanemaskLe,
    LanemaskLt,
    LanemaskGe,
    LanemaskGt,
    Clock,
    ClockHi,
    Clock64,
    /// `%pm0` to `%pm7`
    Pm(u8),
    /// `%pm0_64` to `%pm7_64`
    Pm64(u8),
    /// `%envreg0` to `%envreg31`
    Envreg(u8),
    Globaltimer,
    GlobaltimerLo,
    GlobaltimerHi,
    TotalSmemSize,
    DynamicSmemSize,
    ReservedSmemOffsetBegin,
    ReservedSmemOffsetEnd,
    ReservedSmemOffsetCap,
    ReservedSmemOffset0,
    ReservedSmemOffset1,
}

/// The manual's facts about a special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SregFacts {
    /// The register.
    pub sreg: Sreg,
    /// Name with the percent sign; for numbered families without the number.
    pub name: &'static str,
    /// Type of the register, or of each component.
    pub ty: Ty,
    /// Whether it has the components `.x .y .z .w`.
    pub vector: bool,
    /// Gate: PTX version and target, as in the table (`2.0 sm_20`).
    pub since: &'static str,
    /// Section of the manual.
    pub section: &'static str,
}

const fn facts(
    sreg: Sreg,
    name: &'static str,
    ty: Ty,
    vector: bool,
    since: &'static str,
    section: &'static str,
) -> SregFacts {
    SregFacts { sreg, name, ty, vector, since, section }
}

/// The registers that are not numbered families.
const PLAIN: &[SregFacts] = &[
    facts(Sreg::Tid, "%tid", Ty::U32, true, "1.0", "10.1"),
    facts(Sreg::Ntid, "%ntid", Ty::U32, true, "1.0", "10.2"),
    facts(Sreg::Laneid, "%laneid", Ty::U32, false, "1.3", "10.3"),
    facts(Sreg::Warpid, "%warpid", Ty::U32, false, "1.3", "10.4"),
    facts(Sreg::Nwarpid, "%nwarpid", Ty::U32, false, "2.0 sm_20", "10.5"),
    facts(Sreg::Ctaid, "%ctaid", Ty::U32, true, "1.0", "10.6"),
    facts(Sreg::Nctaid, "%nctaid", Ty::U32, true, "1.0", "10.7"),
    facts(Sreg::Smid, "%smid", Ty::U32, false, "1.3", "10.8"),
    facts(Sreg::Nsmid, "%nsmid", Ty::U32, false, "2.0 sm_20", "10.9"),
    facts(Sreg::Gridid, "%gridid", Ty::U64, false, "1.0", "10.10"),
    facts(Sreg::LanemaskEq, "%lanemask_eq", Ty::U32, false, "2.0 sm_20", "10.11"),
    facts(Sreg::LanemaskLe, "%lanemask_le", Ty::U32, false, "2.0 sm_20", "10.12"),
    facts(Sreg::LanemaskLt, "%lanemask_lt", Ty::U32, false, "2.0 sm_20", "10.13"),
    facts(Sreg::LanemaskGe, "%lanemask_ge", Ty::U32, false, "2.0 sm_20", "10.14"),
    facts(Sreg::LanemaskGt, "%lanemask_gt", Ty::U32, false, "2.0 sm_20", "10.15"),
    facts(Sreg::Clock, "%clock", Ty::U32, false, "1.0", "10.16"),
    facts(Sreg::ClockHi, "%clock_hi", Ty::U32, false, "5.0 sm_20", "10.16"),
    facts(Sreg::Clock64, "%clock64", Ty::U64, false, "2.0 sm_20", "10.17"),
    facts(Sreg::Globaltimer, "%globaltimer", Ty::U64, false, "3.1 sm_30", "10.21"),
    facts(Sreg::GlobaltimerLo, "%globaltimer_lo", Ty::U32, false, "3.1 sm_30", "10.21"),
    facts(Sreg::GlobaltimerHi, "%globaltimer_hi", Ty::U32, false, "3.1 sm_30", "10.21"),
    facts(Sreg::TotalSmemSize, "%total_smem_size", Ty::U32, false, "4.1 sm_20", "10.22"),
    facts(Sreg::DynamicSmemSize, "%dynamic_smem_size", Ty::U32, false, "4.1 sm_20", "10.23"),
    facts(Sreg::ReservedSmemOffsetBegin, "%reserved_smem_offset_begin", Ty::B32, false, "7.6 sm_80", "10.31"),
    facts(Sreg::ReservedSmemOffsetEnd, "%reserved_smem_offset_end", Ty::B32, false, "7.6 sm_80", "10.31"),
    facts(Sreg::ReservedSmemOffsetCap, "%reserved_smem_offset_cap", Ty::B32, false, "7.6 sm_80", "10.31"),
    facts(Sreg::ReservedSmemOffset0, "%reserved_smem_offset_0", Ty::B32, false, "7.6 sm_80", "10.31"),
    facts(Sreg::ReservedSmemOffset1, "%reserved_smem_offset_1", Ty::B32, false, "7.6 sm_80", "10.31"),
];

/// Registers later than PTX 6.4, by name: known, not implemented. With the version that introduced each, and
/// its first target.
const LATER: &[(&str, &str)] = &[
    ("%is_explicit_cluster", "7.8 sm_90"),
    ("%clusterid", "7.8 sm_90"),
    ("%nclusterid", "7.8 sm_90"),
    ("%cluster_ctaid", "7.8 sm_90"),
    ("%cluster_nctaid", "7.8 sm_90"),
    ("%cluster_ctarank", "7.8 sm_90"),
    ("%cluster_nctarank", "7.8 sm_90"),
    ("%current_graph_exec", "8.0 sm_50"),
    ("%aggr_smem_size", "8.1 sm_90"),
    ("%perctamemoryoffset", "9.4 sm_80"),
    ("%perctamemorysize", "9.4 sm_80"),
    ("%locality_domain_id", "9.5 sm_100"),
];

/// The gate of a special register that is not implemented; `None` for any other name.
pub fn later(name: &str) -> Option<Gate> {
    let (_, since) = LATER.iter().find(|(n, _)| *n == name)?;
    Gate::parse(since)
}

impl SregFacts {
    /// Its gate.
    pub fn gate(&self) -> Gate {
        Gate::parse(self.since).expect("a test parses the gate of every register")
    }
}

impl Sreg {
    /// Bytes of shared memory that are reserved for the system if the kernel queries them. Chosen: the size
    /// on GPUs.
    pub const RESERVED_SMEM: u32 = 1024;

    /// The value of `%reserved_smem_offset_*`: the reserved bytes precede the kernel's own, in two halves.
    pub const fn reserved_smem(self) -> Option<u32> {
        match self {
            Sreg::ReservedSmemOffsetBegin | Sreg::ReservedSmemOffset0 => Some(0),
            Sreg::ReservedSmemOffset1 => Some(Self::RESERVED_SMEM / 2),
            Sreg::ReservedSmemOffsetEnd | Sreg::ReservedSmemOffsetCap => Some(Self::RESERVED_SMEM),
            _ => None,
        }
    }

    /// The value in a lane of a warp, if that depends on the number of the lane alone. PTX ISA §10.3, §10.11
    /// to §10.15.
    pub const fn of_lane(self, lane: u32) -> Option<u32> {
        let lane = lane % 32;
        let own = 1 << lane;
        let before = own - 1;
        Some(match self {
            Sreg::Laneid => lane,
            Sreg::LanemaskEq => own,
            Sreg::LanemaskLe => before | own,
            Sreg::LanemaskLt => before,
            Sreg::LanemaskGe => !before,
            Sreg::LanemaskGt => !(before | own),
            _ => return None,
        })
    }

    /// Whether it counts executed instructions, so that each read can give another value. PTX ISA §10.16,
    /// §10.17, §10.21.
    pub const fn is_clock(self) -> bool {
        match self {
            Sreg::Clock
            | Sreg::ClockHi
            | Sreg::Clock64
            | Sreg::Globaltimer
            | Sreg::GlobaltimerLo
            | Sreg::GlobaltimerHi => true,
            Sreg::Tid
            | Sreg::Ntid
            | Sreg::Laneid
            | Sreg::Warpid
            | Sreg::Nwarpid
            | Sreg::Ctaid
            | Sreg::Nctaid
            | Sreg::Smid
            | Sreg::Nsmid
            | Sreg::Gridid
            | Sreg::LanemaskEq
            | Sreg::LanemaskLe
            | Sreg::LanemaskLt
            | Sreg::LanemaskGe
            | Sreg::LanemaskGt
            | Sreg::Pm(_)
            | Sreg::Pm64(_)
            | Sreg::Envreg(_)
            | Sreg::TotalSmemSize
            | Sreg::DynamicSmemSize
            | Sreg::ReservedSmemOffsetBegin
            | Sreg::ReservedSmemOffsetEnd
            | Sreg::ReservedSmemOffsetCap
            | Sreg::ReservedSmemOffset0
            | Sreg::ReservedSmemOffset1 => false,
        }
    }

    /// The register of that name (with its percent sign, without a component).
    pub fn from_name(name: &str) -> Option<Sreg> {
        // Nearly all looked-up names are registers such as `%r1`, which begin with none of these letters.
        if !matches!(
            name.as_bytes(),
            [b'%', b'c'..=b'e' | b'g' | b'l'..=b'p' | b's' | b't' | b'w', ..] | [b'%', b'r', b'e', b's', ..]
        ) {
            return None;
        }
        if let Some(facts) = PLAIN.iter().find(|f| f.name == name) {
            return Some(facts.sreg);
        }
        let number = |digits: &str, limit: u8| {
            let canonical = digits == "0" || !digits.starts_with('0');
            digits.parse::<u8>().ok().filter(|n| *n < limit && canonical)
        };
        if let Some(rest) = name.strip_prefix("%envreg") {
            return number(rest, 32).map(Sreg::Envreg);
        }
        let rest = name.strip_prefix("%pm")?;
        match rest.strip_suffix("_64") {
            Some(digits) => number(digits, 8).map(Sreg::Pm64),
            None => number(rest, 8).map(Sreg::Pm),
        }
    }

    /// The manual's facts about it.
    pub fn facts(self) -> SregFacts {
        match self {
            Sreg::Pm(n) => {
                facts(self, "%pm", Ty::U32, false, if n < 4 { "1.3" } else { "3.0 sm_20" }, "10.18")
            }
            Sreg::Pm64(_) => facts(self, "%pm_64", Ty::U64, false, "4.0 sm_50", "10.19"),
            Sreg::Envreg(_) => facts(self, "%envreg", Ty::B32, false, "2.1", "10.20"),
            plain => {
                let found = PLAIN.iter().find(|f| f.sreg == plain);
                *found.expect(
                    "every register outside the numbered families is in PLAIN, which a test asserts by name",
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_registers_agree() {
        for f in PLAIN {
            assert_eq!(Sreg::from_name(f.name), Some(f.sreg), "{}", f.name);
            assert_eq!(f.sreg.facts(), *f);
            assert!(f.gate().ptx.is_some(), "{}", f.name);
        }
        for f in [Sreg::Pm(0), Sreg::Pm(7), Sreg::Pm64(1), Sreg::Envreg(9)].map(Sreg::facts) {
            assert!(f.gate().ptx.is_some(), "{}", f.name);
        }
        for (name, _) in LATER {
            assert!(later(name).is_some_and(|gate| gate.ptx.is_some()), "{name}");
            assert_eq!(Sreg::from_name(name), None, "{name}");
        }
        assert_eq!(Sreg::from_name("%pm7"), Some(Sreg::Pm(7)));
        assert_eq!(Sreg::from_name("%pm3_64"), Some(Sreg::Pm64(3)));
        assert_eq!(Sreg::from_name("%envreg31"), Some(Sreg::Envreg(31)));
        for wrong in ["%pm8", "%pm", "%pm01", "%envreg32", "%tid.x", "tid", "%t", "%pm0_32"] {
            assert_eq!(Sreg::from_name(wrong), None, "{wrong}");
        }
    }
}
