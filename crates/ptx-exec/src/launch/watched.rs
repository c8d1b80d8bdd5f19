//! Facts about kernels and launches for observers.

use super::{Kernel, LaunchConfig};
use crate::layout::used_variables;
use crate::warp::GridShape;
use crate::watch::{KernelFacts, LaunchFacts, NativeChecks, NativeNeeds, SharedVariable};
use ptx::isa::Space;
use std::sync::Arc;

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

    /// Whether all memory that the kernel can reach has a shadow, if native code needs one. Memory of the
    /// host has none.
    pub(super) fn has_shadow_for(&self, checks: &NativeChecks) -> bool {
        let memory = &self.module.memory;
        !checks.defined || memory.shadow().is_some() && !memory.reaches_host()
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
