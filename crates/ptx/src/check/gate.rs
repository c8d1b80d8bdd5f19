//! Versions and targets: features that the module's header does not allow. PTX ISA §11.1.
//!
//! Invariant: a feature is compared with the header in force at its place, because a later `.target` may
//! change it. A feature that newer architectures removed is also compared with the architecture on which the
//! module is to be loaded.

use super::checker::Checker;
use crate::Span;
use crate::diag::{Code, Diagnostic};
use crate::isa::{self, Gate, Level, Unmet, Version};

impl Checker<'_> {
    /// Reports that `what` needs another version or target, if so. Returns whether it is allowed.
    pub(super) fn gate(&mut self, gate: &Gate, span: Span, what: &str, section: &'static str) -> bool {
        let Some((unmet, level)) = self.unmet(|level| gate.unmet(level)) else { return true };
        self.unmet_diagnostic(what, unmet, level, span, Some(section), None);
        false
    }

    /// The first unmet requirement of the relevant levels, with its level.
    pub(super) fn unmet<T>(&self, test: impl Fn(Level) -> Option<T>) -> Option<(T, Level)> {
        let level = self.header.level()?;
        if let Some(unmet) = test(level) {
            return Some((unmet, level));
        }
        let loaded = Level { sm: self.options.gpu_name.filter(|gpu| *gpu > level.sm)?, ..level };
        test(loaded).map(|unmet| (unmet, loaded))
    }

    /// Reports an unmet requirement.
    #[allow(clippy::too_many_arguments, reason = "the parts of one diagnostic")]
    pub(super) fn unmet_diagnostic(
        &mut self,
        what: &str,
        unmet: Unmet,
        level: Level,
        span: Span,
        section: Option<&'static str>,
        help: Option<String>,
    ) {
        let (code, says) = match unmet {
            Unmet::Ptx(_) => (Code::NeedsNewerVersion, format!("this module says {}", level.ptx)),
            Unmet::Sm(_) => (Code::NeedsNewerTarget, format!("this module says {}", level.sm)),
            Unmet::PtxAndSm(..) => {
                (Code::NeedsNewerVersion, format!("this module says {} and {}", level.ptx, level.sm))
            }
            Unmet::Below(_) => (Code::RemovedFeature, format!("this is for {}", level.sm)),
            Unmet::Removed(..) => {
                (Code::RemovedFeature, format!("this module says {} and {}", level.ptx, level.sm))
            }
        };
        let mut diagnostic = Diagnostic::new(code, span, format!("{what} {unmet}; {says}"));
        diagnostic.section = section;
        diagnostic.help = help;
        if matches!(unmet, Unmet::Ptx(_) | Unmet::PtxAndSm(..)) {
            diagnostic = diagnostic.with_related(self.header.version_span, "the version");
        }
        if matches!(unmet, Unmet::Sm(_) | Unmet::PtxAndSm(..)) {
            diagnostic = diagnostic.with_related(self.header.sm_span, "the target");
        }
        self.report.push(diagnostic);
    }
}

/// Whether this version reserves the name as an opcode. Opcodes of later versions are not reserved. A1.
pub(super) fn is_opcode(name: &str, version: Option<Version>) -> bool {
    version.is_some_and(|version| isa::reserved::is_reserved(name, version))
}
