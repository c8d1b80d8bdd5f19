//! PTX versions and target architectures. PTX ISA §11.1.1, §11.1.2.
//!
//! Invariant: every published `.version` from 1.0 to 9.x and every published `.target sm_XX` is
//! representable; the order is that of the manual's numbers.

/// A PTX ISA version, as in `.version major.minor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version {
    /// Major number.
    pub major: u8,
    /// Minor number.
    pub minor: u8,
}

impl Version {
    /// Version `major.minor`.
    pub const fn new(major: u8, minor: u8) -> Self {
        Self { major, minor }
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The suffix of an architecture name: none, `a` (this architecture only) or `f` (its family only).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SmVariant {
    /// `sm_90`: code runs on this and later architectures.
    Base,
    /// `sm_100f`
    Family,
    /// `sm_90a`
    Specific,
}

/// A target architecture `sm_XX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sm {
    /// The number: 70 for `sm_70`.
    pub number: u16,
    /// The suffix.
    pub variant: SmVariant,
}

impl Sm {
    /// `sm_NUMBER`, without a suffix.
    pub const fn new(number: u16) -> Self {
        Self { number, variant: SmVariant::Base }
    }

    /// Every published architecture with the PTX version that introduced it. PTX ISA §11.1.2 and its release
    /// notes.
    pub const PUBLISHED: &'static [(u16, Version)] = &[
        (10, Version::new(1, 0)),
        (11, Version::new(1, 0)),
        (12, Version::new(1, 2)),
        (13, Version::new(1, 2)),
        (20, Version::new(2, 0)),
        (21, Version::new(2, 0)),
        (30, Version::new(3, 0)),
        (32, Version::new(4, 0)),
        (35, Version::new(3, 1)),
        (37, Version::new(4, 1)),
        (50, Version::new(4, 0)),
        (52, Version::new(4, 1)),
        (53, Version::new(4, 2)),
        (60, Version::new(5, 0)),
        (61, Version::new(5, 0)),
        (62, Version::new(5, 0)),
        (70, Version::new(6, 0)),
        (72, Version::new(6, 1)),
        (75, Version::new(6, 3)),
        (80, Version::new(7, 0)),
        (86, Version::new(7, 1)),
        (87, Version::new(7, 4)),
        (88, Version::new(9, 0)),
        (89, Version::new(7, 8)),
        (90, Version::new(7, 8)),
        (100, Version::new(8, 6)),
        (101, Version::new(8, 6)),
        (103, Version::new(8, 8)),
        (107, Version::new(9, 4)),
        (110, Version::new(9, 0)),
        (120, Version::new(8, 7)),
        (121, Version::new(8, 8)),
    ];

    /// The architecture named `sm_70`, `sm_90a`, `sm_100f` (also `compute_XX`), if it is published.
    pub fn from_name(name: &str) -> Option<Sm> {
        let rest = name.strip_prefix("sm_").or_else(|| name.strip_prefix("compute_"))?;
        let (digits, variant) = match rest.strip_suffix('a') {
            Some(digits) => (digits, SmVariant::Specific),
            None => match rest.strip_suffix('f') {
                Some(digits) => (digits, SmVariant::Family),
                None => (rest, SmVariant::Base),
            },
        };
        if digits.starts_with('0') || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        let number = digits.parse().ok()?;
        let known = Self::PUBLISHED.iter().any(|(n, _)| *n == number);
        let suffix_known = match variant {
            SmVariant::Base => true,
            SmVariant::Specific => number >= 90,
            SmVariant::Family => number >= 100,
        };
        (known && suffix_known).then_some(Sm { number, variant })
    }

    /// The PTX version that introduced this architecture.
    pub fn introduced(self) -> Version {
        let base =
            Self::PUBLISHED.iter().find(|(n, _)| *n == self.number).map_or(Version::new(1, 0), |(_, v)| *v);
        match self.variant {
            SmVariant::Base => base,
            SmVariant::Specific => base.max(Version::new(8, 0)),
            SmVariant::Family => base.max(Version::new(8, 8)),
        }
    }
}

impl std::fmt::Display for Sm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let suffix = match self.variant {
            SmVariant::Base => "",
            SmVariant::Family => "f",
            SmVariant::Specific => "a",
        };
        write!(f, "sm_{}{suffix}", self.number)
    }
}
