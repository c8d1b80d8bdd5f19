//! Gates: the versions and targets for which a form exists.
//!
//! Notation, in the table: `"2.0"`, `"2.0 sm_20"`, `"1.0 sm_13|map_f64_to_f32"` (one of the two), `"1.0 below
//! sm_20"` (only older targets), `"3.0 sm_30 until 6.4@sm_70"` (removed from PTX 6.4 on, for `sm_70` and
//! newer), `"1.0 until 1.4"` (removed for all), `"7.8 sm_89 late 8.1@sm_90"` (on targets before `sm_90` only
//! from PTX 8.1 on). For a single value of a set the same with commas: `u64@4.3,sm_20`.
//!
//! Invariant: a gate without parts is always open. Each gate is parsed once, and every gate of the table
//! parses (a test parses all).

use super::{Sm, SmVariant, Version};

/// The condition under which a form, a modifier or an operand exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Gate {
    /// First PTX version.
    pub ptx: Option<Version>,
    /// First target.
    pub sm: Option<Sm>,
    /// Whether `.target map_f64_to_f32` is sufficient in place of [`Gate::sm`].
    pub or_map_f64: bool,
    /// Only targets older than this one.
    pub below: Option<Sm>,
    /// Removed from this version on, for this target and newer.
    pub until: Option<(Version, Sm)>,
    /// On targets before this one, only from this version on.
    pub late: Option<(Version, Sm)>,
}

/// The `.version` and `.target` of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// `.version`
    pub ptx: Version,
    /// `.target`
    pub sm: Sm,
    /// `.target ..., map_f64_to_f32`
    pub map_f64: bool,
}

/// Why a gate is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmet {
    /// The module's `.version` is too old.
    Ptx(Version),
    /// The module's `.target` is too old.
    Sm(Sm),
    /// The module's `.version` and `.target` are both too old.
    PtxAndSm(Version, Sm),
    /// Exists only on targets older than this one.
    Below(Sm),
    /// Removed from this version on, for this target and newer.
    Removed(Version, Sm),
}

impl Gate {
    /// A gate that is always open.
    pub const OPEN: Gate =
        Gate { ptx: None, sm: None, or_map_f64: false, below: None, until: None, late: None };

    /// Parses the notation. `None` if it is malformed.
    pub fn parse(text: &str) -> Option<Gate> {
        let mut gate = Gate::OPEN;
        let mut words = text.split([' ', ',']).filter(|w| !w.is_empty());
        while let Some(word) = words.next() {
            if word == "below" {
                gate.below = Some(Sm::from_name(words.next()?)?);
            } else if word == "until" {
                let until = words.next()?;
                let (version, sm) = until.split_once('@').unwrap_or((until, "sm_10"));
                gate.until = Some((version_from(version)?, Sm::from_name(sm)?));
            } else if word == "late" {
                let (version, sm) = words.next()?.split_once('@')?;
                gate.late = Some((version_from(version)?, Sm::from_name(sm)?));
            } else if word.starts_with("sm_") {
                let (sm, map) = word.split_once('|').map_or((word, false), |(sm, _)| (sm, true));
                gate.sm = Some(Sm::from_name(sm)?);
                gate.or_map_f64 = map;
            } else {
                gate.ptx = Some(version_from(word)?);
            }
        }
        Some(gate)
    }

    /// The reason why the gate is closed at this level; `None` if it is open.
    pub fn unmet(&self, level: Level) -> Option<Unmet> {
        if let Some((version, sm)) = self.until
            && level.ptx >= version
            && level.sm.number >= sm.number
        {
            return Some(Unmet::Removed(version, sm));
        }
        if let Some(sm) = self.below
            && level.sm.number >= sm.number
        {
            return Some(Unmet::Below(sm));
        }
        let late = self.late.filter(|(_, sm)| level.sm.number < sm.number).map(|(version, _)| version);
        let ptx = late.or(self.ptx).filter(|v| level.ptx < *v);
        let mapped = self.or_map_f64 && level.map_f64;
        let sm = self.sm.filter(|sm| !mapped && !has_features_of(level.sm, *sm));
        match (ptx, sm) {
            (Some(ptx), Some(sm)) => Some(Unmet::PtxAndSm(ptx, sm)),
            (Some(ptx), None) => Some(Unmet::Ptx(ptx)),
            (None, Some(sm)) => Some(Unmet::Sm(sm)),
            (None, None) => None,
        }
    }
}

impl std::fmt::Display for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts = Vec::new();
        if let Some(ptx) = self.ptx {
            parts.push(format!("PTX {ptx}"));
        }
        if let Some(sm) = self.sm {
            parts.push(if self.or_map_f64 { format!("{sm} or map_f64_to_f32") } else { sm.to_string() });
        }
        if let Some(sm) = self.below {
            parts.push(format!("targets below {sm}"));
        }
        if let Some((ptx, sm)) = self.until {
            parts.push(format!("until PTX {ptx} on {sm} and newer"));
        }
        if let Some((ptx, sm)) = self.late {
            parts.push(format!("PTX {ptx} on targets before {sm}"));
        }
        f.write_str(&parts.join(", "))
    }
}

impl std::fmt::Display for Unmet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unmet::Ptx(ptx) => write!(f, "needs PTX {ptx}"),
            Unmet::Sm(sm) => write!(f, "needs {sm}"),
            Unmet::PtxAndSm(ptx, sm) => write!(f, "needs PTX {ptx} and {sm}"),
            Unmet::Below(sm) => write!(f, "exists only on targets below {sm}"),
            Unmet::Removed(ptx, sm) if sm.number <= 10 => write!(f, "was removed in PTX {ptx}"),
            Unmet::Removed(ptx, sm) => write!(f, "was removed in PTX {ptx} for {sm} and newer"),
        }
    }
}

/// Whether code for `need` runs on `target`. Architecture-specific features (`a`) exist on that architecture
/// alone, family-specific ones (`f`) within the family of the same tens. PTX ISA §11.1.2.
pub fn has_features_of(target: Sm, need: Sm) -> bool {
    match need.variant {
        SmVariant::Base => target.number >= need.number,
        SmVariant::Specific => target.number == need.number && target.variant == SmVariant::Specific,
        SmVariant::Family => {
            target.number / 10 == need.number / 10
                && target.number >= need.number
                && target.variant >= SmVariant::Family
        }
    }
}

fn version_from(text: &str) -> Option<Version> {
    let (major, minor) = text.split_once('.')?;
    Some(Version::new(major.parse().ok()?, minor.parse().ok()?))
}
