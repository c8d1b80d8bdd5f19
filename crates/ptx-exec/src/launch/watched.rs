//! Facts about kernels and launches for observers.

use super::{Kernel, LaunchConfig};
use crate::layout::used_variables;
use crate::sched::Outcome;
use crate::stamps::Stamps;
use crate::warp::GridShape;
use crate::watch::{KernelFacts, LaunchFacts, NativeChecks, NativeNeeds, SharedVariable};
use ptx::isa::Space;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

impl Kernel {
    /// What native code of the kernel must do for observers.
    pub fn native_needs(&self) -> &NativeNeeds {
        self.native_needs.get_or_init(|| {
            let Some(watch) = self.module.memory.watched() else { return NativeNeeds::Nothing };
            let layout = self.module.layout(self.kernel);
            let program = &self.module.program;
            watch.native_needs(&KernelFacts { program, kernel: self.kernel, variables: &layout.variables })
        })
    }

    /// Whether native code can make these checks in a launch: all memory that the kernel can reach has a
    /// shadow and stamps, if it needs them. Memory of the host has none.
    pub(super) fn may_check(&self, checks: &NativeChecks) -> bool {
        let memory = &self.module.memory;
        let own = !memory.reaches_host() && !memory.has_lent();
        (!checks.defined || memory.shadow().is_some() && own)
            && (!checks.ordered || memory.stamps().is_some() && own && !self.conflicts.load(Relaxed))
    }

    /// Whether native code compares accesses with stamps.
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self.native_needs(), NativeNeeds::Checks(checks) if checks.ordered)
    }

    /// Ends a launch with stamps. Returns whether it must be repeated, because of a conflict, or because a
    /// trap ended it: then memory is as before it.
    pub(super) fn ends_in_conflict(&self, stamps: &Stamps, done: &Outcome) -> bool {
        let kept = stamps.end();
        let conflict = stamps.conflict().load(Relaxed);
        if conflict {
            self.conflicts.store(true, Relaxed);
        }
        let repeats =
            conflict || done.trap.as_ref().is_some_and(|trap| trap.stopped.fault.kind.is_of_program());
        if repeats {
            self.module.memory.restore(kept);
        }
        repeats
    }

    /// Facts about the launch for observers.
    pub(super) fn facts(&self, config: &LaunchConfig, shape: &Arc<GridShape>) -> LaunchFacts {
        let layout = self.module.layout(self.kernel);
        let program = &self.module.program;
        let used = used_variables(program, self.kernel).into_iter();
        let shared = used.map(|id| (id, &program.variables[id as usize]));
        let mut shared: Vec<_> = shared
            .filter(|(_, variable)| variable.space == Space::Shared)
            .map(|(id, variable)| SharedVariable {
                variable: id,
                start: layout.variables[id as usize],
                bytes: if variable.bytes == 0 { u64::from(config.dynamic_shared) } else { variable.bytes },
                name: variable.name.clone(),
            })
            .collect();
        shared.sort_by_key(|variable| variable.start);
        LaunchFacts {
            program: Arc::clone(program),
            kernel: self.kernel,
            shape: Arc::clone(shape),
            seed: config.seed,
            memory: self.module.memory.clone(),
            shared,
            variables: layout.variables,
            shared_bytes: self.shared_bytes(config),
            params: config.params.clone(),
        }
    }
}
