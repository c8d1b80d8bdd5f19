//! The processor that code is generated for, as a plain value: a level of vector instructions, features
//! beyond it, a tuning, and how much LLVM optimises.
//!
//! Invariants: [`Target::host`] is the only reader of CPUID; everything else that depends on the processor
//! depends on a `Target`. A feature is in a target only if its level allows it. The [`Display`](fmt::Display)
//! form determines the target, and [`Target::parse`] reads it back, so it can stand in the key of a cache.
//!
//! Code for a target can be generated, printed and compared on any machine of the architecture. It can be
//! executed where [`Target::runs_here`] says so.

pub use crate::features::Level;
pub(crate) use crate::features::{Feature, Features};
use crate::tuning::{MicroArchitecture, Tuning};
use std::fmt;
use std::sync::OnceLock;

/// A processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    level: Level,
    features: Features,
    tuning: Tuning,
    optimisation: Option<Optimisation>,
}

/// How much LLVM optimises when it makes machine code of LLVM IR.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Optimisation {
    /// LLVM's level 0: compiles in a fraction of the time, to slower code.
    None,
    /// LLVM's level 1.
    Less,
}

impl Target {
    /// Any processor of that level: nothing beyond it, and no measurement of one processor.
    pub fn generic(level: Level) -> Target {
        let tuning = MicroArchitecture::Generic.tuning(level);
        Target { level, features: Features::default(), tuning, optimisation: None }
    }

    /// The processor of this machine, at its widest level.
    pub fn host() -> Target {
        static HOST: OnceLock<Target> = OnceLock::new();
        // Virtual machines take as long to answer CPUID as a short launch takes.
        *HOST.get_or_init(host::read)
    }

    /// The processor of this machine, held to that level. Of a level that the machine lacks, the generic
    /// processor.
    pub fn host_at(level: Level) -> Target {
        let host = Target::host();
        if level > host.level {
            return Target::generic(level);
        }
        let features = if level == Level::Avx512 { host.features } else { Features::default() };
        let tuning =
            Tuning { l1d_ways: host.tuning.l1d_ways, ..host.tuning.micro_architecture.tuning(level) };
        Target { level, features, tuning, optimisation: None }
    }

    /// How much LLVM optimises; `None`: little if there is much code.
    pub(crate) fn optimisation(self) -> Option<Optimisation> {
        self.optimisation
    }

    /// Reads a target: a level or `native`, then in any number, after commas, `tuning=NAME`, `+FEATURE`,
    /// `-FEATURE`, and values of the tuning, `l1d_ways=N|unknown`, `l2_prefetch=on|off`,
    /// `near_prefetch=on|off`, `double_pumped_512=on|off`, `root_by_estimate=on|off`; and LLVM's level of
    /// optimisation, `opt=0|1|auto`.
    ///
    /// A tuning brings the features of its micro-architecture; what stands after it changes single ones.
    /// `native` is the processor of this machine. Nothing else depends on this machine.
    ///
    /// # Errors
    /// A sentence that names the word, and what could stand in its place.
    pub fn parse(text: &str) -> Result<Target, String> {
        let mut words = text.split(',');
        let first = words.next().unwrap_or_default();
        let mut target = match (first, Level::from_name(first)) {
            ("native", _) => Target::host(),
            (_, Some(level)) => Target::generic(level),
            _ => return Err(format!("`{first}` is no level: `native`, `avx512`, `avx2` or `baseline`")),
        };
        if target.level != Level::Baseline && !cfg!(target_arch = "x86_64") {
            return Err(format!("`{first}` is a level of x86-64, and this build makes no code for that"));
        }
        for word in words {
            target.change(word)?;
        }
        Ok(target)
    }

    fn change(&mut self, word: &str) -> Result<(), String> {
        if let Some((sign, name)) = word.strip_prefix(['+', '-']).map(|name| (word.starts_with('+'), name)) {
            let feature =
                Feature::ALL.into_iter().find(|feature| feature.name() == name).ok_or_else(|| {
                    let names: Vec<&str> = Feature::ALL.iter().map(|feature| feature.name()).collect();
                    format!("`{name}` is no feature: {}", names.join(", "))
                })?;
            if sign && self.level != Level::Avx512 {
                return Err(format!("`{name}` needs the level `avx512`, not `{}`", self.level.name()));
            }
            self.features.set(feature, sign);
            return Ok(());
        }
        let switch = |value: &str| match value {
            "on" => Ok(true),
            "off" => Ok(false),
            _ => Err(format!("`{word}`: the value is `on` or `off`")),
        };
        match word.split_once('=') {
            Some(("tuning", name)) => {
                let found = MicroArchitecture::ALL.into_iter().find(|one| one.name() == name);
                let micro_architecture = found.ok_or_else(|| {
                    let names: Vec<&str> = MicroArchitecture::ALL.iter().map(|one| one.name()).collect();
                    format!("`{name}` is no tuning: {}", names.join(", "))
                })?;
                self.tuning = micro_architecture.tuning(self.level);
                self.features = match self.level {
                    Level::Avx512 => micro_architecture.features(),
                    Level::Avx2 | Level::Baseline => Features::default(),
                };
            }
            Some(("l1d_ways", "unknown")) => self.tuning.l1d_ways = None,
            Some(("l1d_ways", number)) => {
                let ways = number.parse().ok().filter(|ways| (1..=1024).contains(ways));
                let ways = ways.ok_or_else(|| format!("`{word}`: a number from 1 to 1024, or `unknown`"))?;
                self.tuning.l1d_ways = Some(ways);
            }
            Some(("l2_prefetch", value)) => self.tuning.l2_prefetch = switch(value)?,
            Some(("near_prefetch", value)) => self.tuning.near_prefetch = switch(value)?,
            Some(("double_pumped_512", value)) => self.tuning.double_pumped_512 = switch(value)?,
            Some(("root_by_estimate", value)) => {
                let on = switch(value)?;
                if on && self.level != Level::Avx512 {
                    return Err(format!("`{word}` needs the level `avx512`, not `{}`", self.level.name()));
                }
                self.tuning.root_by_estimate = on;
            }
            Some(("opt", "0")) => self.optimisation = Some(Optimisation::None),
            Some(("opt", "1")) => self.optimisation = Some(Optimisation::Less),
            Some(("opt", "auto")) => self.optimisation = None,
            Some(("opt", _)) => return Err(format!("`{word}`: the value is `0`, `1` or `auto`")),
            _ => {
                return Err(format!(
                    "`{word}` is nothing of a target: `tuning=NAME`, `+FEATURE`, `-FEATURE`, `l1d_ways=N`, `l2_prefetch=on`, \
                     `near_prefetch=on`, `double_pumped_512=on`, `root_by_estimate=on`, `opt=0`"
                ));
            }
        }
        Ok(())
    }

    /// Its level of vector instructions.
    pub fn level(self) -> Level {
        self.level
    }

    /// Costs of its instructions and caches.
    pub(crate) fn tuning(self) -> Tuning {
        self.tuning
    }

    /// Whether the processor has that feature.
    pub(crate) fn has(self, feature: Feature) -> bool {
        self.features.has(feature)
    }

    /// Whether the processor fuses multiplication and addition in one instruction, scalar and vector.
    pub(crate) fn has_fma(self) -> bool {
        self.level >= Level::Avx2 || cfg!(target_arch = "aarch64")
    }

    /// Whether the processor converts between half and single precision.
    pub(crate) fn has_f16c(self) -> bool {
        self.level >= Level::Avx2
    }

    /// Whether this machine executes code for the target: it has the level and all of the features. The
    /// tuning does not matter.
    pub fn runs_here(self) -> bool {
        self.missing_here().is_none()
    }

    /// What this machine lacks, as a command line names it: the level, or else the first feature.
    pub fn missing_here(self) -> Option<&'static str> {
        let host = Target::host();
        if self.level > host.level {
            return Some(self.level.name());
        }
        let lacks = |feature: &Feature| self.has(*feature) && !host.has(*feature);
        Feature::ALL.into_iter().find(lacks).map(Feature::name)
    }

    /// LLVM's name of a processor, and the features that the target has or lacks beside it; none on
    /// architectures other than x86-64, where LLVM is asked for the host's.
    pub(crate) fn llvm_names(self) -> Option<(&'static str, String)> {
        if !cfg!(target_arch = "x86_64") {
            return None;
        }
        Some(match self.level {
            Level::Baseline => ("x86-64", String::new()),
            Level::Avx2 => ("x86-64-v3", String::new()),
            Level::Avx512 => {
                let sign = |feature| if self.has(feature) { '+' } else { '-' };
                let features = Feature::ALL.map(|feature| format!("{}{}", sign(feature), feature.name()));
                (self.tuning.micro_architecture.llvm_name(), features.join(","))
            }
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tuning {
            micro_architecture,
            l1d_ways,
            l2_prefetch,
            near_prefetch,
            double_pumped_512,
            root_by_estimate,
        } = self.tuning;
        f.write_str(self.level.name())?;
        let mut usual = Target::generic(self.level);
        if micro_architecture != MicroArchitecture::Generic {
            write!(f, ",tuning={}", micro_architecture.name())?;
            usual.change(&format!("tuning={}", micro_architecture.name())).map_err(|_| fmt::Error)?;
        }
        for feature in Feature::ALL.into_iter().filter(|feature| usual.has(*feature) != self.has(*feature)) {
            write!(f, ",{}{}", if self.has(feature) { '+' } else { '-' }, feature.name())?;
        }
        let switch = |on| if on { "on" } else { "off" };
        if l1d_ways != usual.tuning.l1d_ways {
            let ways = l1d_ways.map_or("unknown".to_owned(), |ways| ways.to_string());
            write!(f, ",l1d_ways={ways}")?;
        }
        if l2_prefetch != usual.tuning.l2_prefetch {
            write!(f, ",l2_prefetch={}", switch(l2_prefetch))?;
        }
        if near_prefetch != usual.tuning.near_prefetch {
            write!(f, ",near_prefetch={}", switch(near_prefetch))?;
        }
        if double_pumped_512 != usual.tuning.double_pumped_512 {
            write!(f, ",double_pumped_512={}", switch(double_pumped_512))?;
        }
        if root_by_estimate != usual.tuning.root_by_estimate {
            write!(f, ",root_by_estimate={}", switch(root_by_estimate))?;
        }
        match self.optimisation {
            Some(Optimisation::None) => f.write_str(",opt=0")?,
            Some(Optimisation::Less) => f.write_str(",opt=1")?,
            None => {}
        }
        Ok(())
    }
}

#[cfg(target_arch = "x86_64")]
mod host {
    use super::{Feature, Features, Level, Target};
    use crate::tuning::{MicroArchitecture, Tuning};
    use std::arch::x86_64::{__cpuid, __cpuid_count, __get_cpuid_max};

    /// What the processor says of itself.
    pub(super) fn read() -> Target {
        let level = match (has_avx2(), has_avx512()) {
            (true, true) => Level::Avx512,
            (true, false) => Level::Avx2,
            (false, _) => Level::Baseline,
        };
        let mut features = Features::default();
        if level == Level::Avx512 {
            Feature::ALL.into_iter().for_each(|feature| features.set(feature, has(feature)));
        }
        let micro_architecture = micro_architecture(level, features);
        let tuning = Tuning { l1d_ways: l1d_ways(), ..micro_architecture.tuning(level) };
        Target { level, features, tuning, optimisation: None }
    }

    fn has(feature: Feature) -> bool {
        match feature {
            Feature::Avx512Vnni => is_x86_feature_detected!("avx512vnni"),
            Feature::Avx512Vpopcntdq => is_x86_feature_detected!("avx512vpopcntdq"),
            Feature::Avx512Bitalg => is_x86_feature_detected!("avx512bitalg"),
            Feature::Avx512Vbmi => is_x86_feature_detected!("avx512vbmi"),
            Feature::Avx512Vbmi2 => is_x86_feature_detected!("avx512vbmi2"),
            Feature::Avx512Ifma => is_x86_feature_detected!("avx512ifma"),
            Feature::Avx512Bf16 => is_x86_feature_detected!("avx512bf16"),
            Feature::Avx512Fp16 => is_x86_feature_detected!("avx512fp16"),
            Feature::Avx512Vp2intersect => is_x86_feature_detected!("avx512vp2intersect"),
            Feature::AvxVnni => is_x86_feature_detected!("avxvnni"),
            Feature::Gfni => is_x86_feature_detected!("gfni"),
            Feature::Vaes => is_x86_feature_detected!("vaes"),
            Feature::Vpclmulqdq => is_x86_feature_detected!("vpclmulqdq"),
            Feature::Sse4a => is_x86_feature_detected!("sse4a"),
            Feature::Prfchw => has_leaf(0x8000_0001) && __cpuid(0x8000_0001).ecx >> 8 & 1 != 0,
        }
    }

    fn has_avx2() -> bool {
        is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("f16c")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("movbe")
            && is_x86_feature_detected!("popcnt")
    }

    fn has_avx512() -> bool {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512cd")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
    }

    fn has_leaf(leaf: u32) -> bool {
        __get_cpuid_max(leaf & 0x8000_0000).0 >= leaf
    }

    /// Ways of the first-level data cache, where the processor says so.
    fn l1d_ways() -> Option<u32> {
        // AMD's leaf has the form of Intel's, and is there where that is empty.
        let amd = has_leaf(0x8000_001d) && __cpuid(0x8000_0001).ecx >> 22 & 1 != 0;
        let leaf = if amd { 0x8000_001d } else { 4 };
        let mut caches = (0..4).filter(|_| has_leaf(leaf)).map(|cache| __cpuid_count(leaf, cache));
        // The low byte: level 1 in the bits from 5 on, a data cache in the bits below.
        caches.find(|cache| cache.eax & 0xff == 0x21).map(|cache| (cache.ebx >> 22) + 1)
    }

    /// The micro-architecture by vendor, family and model, for those that have a tuning. A model of Intel's
    /// that is not known (a later one, or one that a hypervisor made up) counts as the last design whose
    /// features it has: all have one divider, and caches of one kind.
    fn micro_architecture(level: Level, features: Features) -> MicroArchitecture {
        let vendor = __cpuid(0);
        let version = __cpuid(1).eax;
        let (mut family, mut model) = (version >> 8 & 0xf, version >> 4 & 0xf);
        if family == 6 || family == 15 {
            model |= version >> 12 & 0xf0;
        }
        if family == 15 {
            family += version >> 20 & 0xff;
        }
        let wide = level == Level::Avx512;
        match (&vendor.ebx.to_le_bytes(), family, model) {
            // Processors of this family without AVX-512 are a Zen 3.
            (b"Auth", 0x19, _) if wide => MicroArchitecture::Zen4,
            (b"Auth", 0x1a, _) if wide => MicroArchitecture::Zen5,
            (b"Genu", 6, 0x55) if wide => MicroArchitecture::SkylakeServer,
            (b"Genu", 6, 0x6a | 0x6c) if wide => MicroArchitecture::IceLakeServer,
            (b"Genu", 6, 0x8f | 0xcf | 0xad | 0xae) if wide => MicroArchitecture::SapphireRapids,
            (b"Genu", _, _) if wide && features.has(Feature::Avx512Fp16) => MicroArchitecture::SapphireRapids,
            (b"Genu", _, _) if wide && features.has(Feature::Avx512Vbmi2) => MicroArchitecture::IceLakeServer,
            (b"Genu", _, _) if wide => MicroArchitecture::SkylakeServer,
            _ => MicroArchitecture::Generic,
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod host {
    use super::{Level, Target};

    /// Without CPUID nothing is known beyond the architecture.
    pub(super) fn read() -> Target {
        Target::generic(Level::Baseline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_read_as_it_is_written() {
        let mut texts = vec![Target::host().to_string()];
        for level in Level::ALL {
            texts.push(Target::host_at(level).to_string());
            for micro_architecture in MicroArchitecture::ALL {
                texts.push(format!("{},tuning={}", level.name(), micro_architecture.name()));
            }
        }
        let changed = "avx512,tuning=zen4,-avx512vnni,+avx512fp16,l1d_ways=12,l2_prefetch=off,near_prefetch=on,\
                       double_pumped_512=off,root_by_estimate=on";
        texts.extend(
            [changed, "avx2,l1d_ways=unknown,l2_prefetch=on", "avx2,opt=0", "baseline,opt=1"]
                .map(str::to_owned),
        );
        for text in texts {
            let target = Target::parse(&text).unwrap_or_else(|why| panic!("{text}: {why}"));
            assert_eq!(Target::parse(&target.to_string()), Ok(target), "{text} is written as {target}");
        }
        assert_eq!(Target::parse(changed).map(|target| target.to_string()), Ok(changed.to_owned()));
    }

    #[test]
    fn a_tuning_brings_the_features_of_its_processor_at_the_widest_level_alone() {
        let target = |text| Target::parse(text).expect("a target");
        assert!(target("avx512,tuning=zen4").has(Feature::Avx512Vnni));
        assert!(!target("avx512").has(Feature::Avx512Vnni));
        assert!(!target("avx2,tuning=zen4").has(Feature::Avx512Vnni));
        assert!(!target("avx512,tuning=zen4,-avx512vnni").has(Feature::Avx512Vnni));
        let (_, features) = target("avx512,tuning=zen5").llvm_names().expect("this is x86-64");
        assert!(features.contains("+avx512vp2intersect") && features.contains("-avx512fp16"), "{features}");
    }

    #[test]
    fn grid_stride_loops_prefetch_into_the_second_level_cache_where_that_is_faster() {
        let prefetches = |text: &str| Target::parse(text).expect("a target").tuning().l2_prefetch;
        assert!(prefetches("avx512,tuning=zen4"));
        assert!(prefetches("avx512,tuning=sapphirerapids") && prefetches("avx2,tuning=sapphirerapids"));
        assert!(!prefetches("avx512,tuning=zen5") && !prefetches("avx512"));
    }

    #[test]
    fn wrong_targets_are_refused_by_the_word_that_is_wrong() {
        let wrong = [
            ("", "``"),
            ("avx1024", "`avx1024`"),
            ("avx512,", "``"),
            ("avx512,tuning=z80", "`z80`"),
            ("avx512,tuning", "`tuning`"),
            ("avx512,+x87", "`x87`"),
            ("avx2,+avx512vnni", "`avx512vnni`"),
            ("avx512,l1d_ways=0", "`l1d_ways=0`"),
            ("avx512,l1d_ways=99999999999", "`l1d_ways=99999999999`"),
            ("avx512,l2_prefetch=yes", "`l2_prefetch=yes`"),
            ("avx512,opt=3", "`opt=3`"),
        ];
        for (text, word) in wrong {
            let why = Target::parse(text).expect_err(text);
            assert!(why.starts_with(word), "{text}: {why}");
        }
    }

    #[test]
    fn code_for_this_machine_runs_here_and_code_for_more_does_not() {
        for level in Level::ALL.into_iter().filter(|level| *level <= Target::host().level()) {
            assert_eq!(Target::host_at(level).missing_here(), None);
            assert!(Target::generic(level).runs_here());
        }
        let all = Feature::ALL.iter().fold("avx512".to_owned(), |text, feature| text + ",+" + feature.name());
        // No processor has all of them: SSE4a is AMD's, and half precision in 512 bits is Intel's.
        assert!(Target::parse(&all).expect("a target").missing_here().is_some());
    }
}
