//! The two models, and all their rules, which can be removed by name.
//!
//! A rule is a definition or an axiom of chapter 8 of the PTX ISA 6.4 manual, or of the proxies that PTX ISA
//! 7.5 added. [`Rule::without`] describes the effect of removing it; the tests in `tests/litmus` use removals
//! to show that each rule decides some verdict.

/// Which version of the memory consistency model decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Model {
    /// As the manual of PTX ISA 6.0 to 6.4 has it: no proxies; texture and surface accesses are outside of
    /// the model.
    #[default]
    Ptx60,
    /// As PTX ISA 7.5 has it: base causality contains program order, and it must be preserved by the proxies
    /// of both accesses.
    Ptx75,
}

impl Model {
    /// The name that `--model` takes.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ptx60 => "ptx-6.0",
            Self::Ptx75 => "ptx-7.5",
        }
    }

    /// The model of a name; a leading `v` of the number is accepted.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ptx-6.0" | "ptx-v6.0" | "ptx-6.4" => Some(Self::Ptx60),
            "ptx-7.5" | "ptx-v7.5" => Some(Self::Ptx75),
            _ => None,
        }
    }
}

macro_rules! rules {
    ($($variant:ident $name:literal $section:literal $about:literal without $without:literal;)*) => {
        /// A definition or an axiom of the model.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule { $(#[doc = $about] $variant,)* }

        impl Rule {
            /// Every rule, in the order of the manual.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name, as command lines and test files spell it.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The section of the PTX ISA 6.4 manual; 7.5 for what that version added.
            pub fn section(self) -> &'static str {
                match self { $(Self::$variant => $section,)* }
            }

            /// Its meaning.
            pub fn about(self) -> &'static str {
                match self { $(Self::$variant => $about,)* }
            }

            /// What the model is without it.
            pub fn without(self) -> &'static str {
                match self { $(Self::$variant => $without,)* }
            }
        }
    };
}

rules! {
    Applicability "applicability" "8.1" "Texture and surface accesses are outside of the model of PTX ISA 6.4."
        without "they are weak accesses like any other";
    HostWidth "host-width" "8.1.1" "A strong 64-bit `.sys` access to memory shared with the host may be two accesses of 32 bits."
        without "it is one access";
    ByteOverlap "byte-overlap" "8.2.1" "Accesses overlap if they share a byte."
        without "only accesses to the same bytes overlap, and a read sees only writes of its own bytes";
    Vectors "vectors" "8.2.2" "A vector access is a set of scalar accesses."
        without "it is one access to all its bytes";
    Packed "packed" "8.2.3" "An access of type `.f16x2` is two accesses of type `.f16`."
        without "it is one access of 32 bits";
    Initialization "initialization" "8.2.4" "A write that precedes every thread gives each byte its first value."
        without "no byte has a first value, and each read needs a write";
    Spaces "spaces" "8.3" "Causality order closes over all state spaces."
        without "patterns on shared memory order accesses to shared memory alone";
    OperationTypes "operation-types" "8.4" "`.volatile` accesses, and `atom` and `red` without `.sem`, are strong."
        without "they are weak";
    Scopes "scopes" "8.5" "A strong operation reaches the threads of its scope."
        without "it reaches every thread";
    MorallyStrong "morally-strong" "8.6" "Operations are morally strong if strong with scopes that include each other, or of one thread."
        without "all operations are morally strong to each other, if they overlap completely";
    DataRace "data-race" "8.6.1" "Conflicting accesses that are neither morally strong nor ordered by causality race."
        without "nothing is a race";
    MixedSizeRace "mixed-size-race" "8.6.2" "The axioms do not apply to a program with a mixed-size data race."
        without "they do";
    MixedSizeRmw "mixed-size-rmw" "8.6.2" "Overlapping atomic operations whose scopes include each other exclude each other at any size."
        without "they do so only if they overlap completely";
    ReleasePattern "release-pattern" "8.7" "A release, or a release or fence followed by a strong write, is a release pattern."
        without "there are no release patterns";
    AcquirePattern "acquire-pattern" "8.7" "An acquire, or a strong read followed by an acquire or fence, is an acquire pattern."
        without "there are no acquire patterns";
    ProgramOrder "program-order" "8.8.1" "Program order before and after a synchronization extends base causality order."
        without "only the synchronizing operations themselves are ordered";
    ObservationOrder "observation-order" "8.8.2" "Observation order passes through atomic operations."
        without "it relates a write only to reads of its own value";
    FenceScOrder "fence-sc-order" "8.8.3" "Every pair of morally strong `fence.sc` is ordered."
        without "no pair is";
    BarrierSync "barrier-sync" "8.8.4" "A barrier operation synchronizes with the waiting operations of its phase."
        without "barriers order nothing";
    Reductions "reductions" "9.7.12.1" "A barrier with reduction gives each thread the combined predicates of its phase."
        without "it gives each thread its own predicate";
    WarpSync "warp-sync" "9.7.12.2" "`bar.warp.sync` synchronizes with those of the threads that its mask names, phase by phase."
        without "it orders nothing";
    Synchronizes "synchronizes" "8.8.4" "A release pattern synchronizes with the acquire pattern that observes it."
        without "patterns order nothing";
    BaseCausality "base-causality" "8.8.5" "Base causality order is transitive."
        without "it is one synchronization, with program order on both sides";
    ObservedCausality "observed-causality" "8.8.5" "Causality order contains observation followed by base causality or program order."
        without "it is base causality order";
    CoherenceOrder "coherence-order" "8.8.6" "Overlapping writes that are morally strong are ordered by coherence."
        without "only causality orders writes";
    CommunicationOrder "communication-order" "8.8.7" "A read precedes the writes that follow in coherence order the write that it reads."
        without "it precedes no write";
    Coherence "coherence" "8.9.1" "Causality order between overlapping writes is coherence order."
        without "it is not";
    FenceSc "fence-sc" "8.9.2" "Fence-SC order does not contradict causality order."
        without "it may";
    SingleCopyAtomicity "single-copy-atomicity" "8.9.3" "A read sees all of a morally strong write or nothing of it."
        without "it may see a part, and older bytes beside it";
    RmwAtomicity "rmw-atomicity" "8.9.3" "No morally strong write comes between the read and the write of an atomic operation."
        without "it may";
    NoThinAir "no-thin-air" "8.9.4" "No value depends on itself through dependencies and reads."
        without "it may, and is then any constant of the test";
    ScPerLocation "sc-per-location" "8.9.5" "Morally strong communication does not contradict program order between overlapping accesses."
        without "it may";
    Causality "causality" "8.9.6" "Communication order does not contradict causality order."
        without "it may";
    Proxies "proxies" "7.5" "Base causality orders accesses through different proxies only with the fences of these proxies."
        without "it orders accesses through any proxies";
    AliasFence "alias-fence" "7.5" "Base causality orders accesses through different virtual addresses only with a `fence.proxy.alias`."
        without "it orders them by their location";
}

impl Rule {
    /// The rule of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.name() == name)
    }
}

/// Which rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules(u64);

impl Default for Rules {
    /// All of them.
    fn default() -> Self {
        Self(u64::MAX)
    }
}

impl Rules {
    /// These without one.
    #[must_use]
    pub fn without(self, rule: Rule) -> Self {
        Self(self.0 & !(1 << rule as u64))
    }

    /// Whether a rule holds.
    pub fn has(self, rule: Rule) -> bool {
        self.0 >> (rule as u64) & 1 != 0
    }

    /// What is left where the axioms do not apply, because a program has a mixed-size data race (section
    /// 8.6.2): reads return what some write of their bytes wrote, atomic operations exclude each other, and
    /// values do not come from nowhere.
    #[must_use]
    pub(crate) fn of_a_program_with_a_mixed_size_race(self) -> Self {
        use Rule::{Causality, Coherence, FenceSc, RmwAtomicity, ScPerLocation, SingleCopyAtomicity};
        let axioms = [Coherence, FenceSc, SingleCopyAtomicity, RmwAtomicity, ScPerLocation, Causality];
        axioms.into_iter().fold(self, Self::without)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_distinct_and_rules_can_be_taken_out() {
        assert!(Rule::ALL.len() <= 64);
        for rule in Rule::ALL {
            assert_eq!(Rule::named(rule.name()), Some(*rule));
            let rules = Rules::default().without(*rule);
            assert!(Rule::ALL.iter().all(|other| rules.has(*other) == (other != rule)));
            assert!(!rule.about().is_empty() && !rule.without().is_empty() && !rule.section().is_empty());
        }
        for model in [Model::Ptx60, Model::Ptx75] {
            assert_eq!(Model::named(model.name()), Some(model));
        }
    }
}
