//! Runs every kernel of a text on small data with a small limit of steps: each ends, traps or is refused.

use ptxvm::{Arg, ErrorKind, Launch, Vm};
use std::time::Duration;

/// Warp instructions of a launch.
const STEPS: u64 = 5_000;
/// Beyond this a step is far too slow; the trap of a time limit counts as a failure.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Bytes of the buffer that every parameter of eight bytes points to.
const BUFFER: usize = 4096;
/// How many kernels of a text are run.
const KERNELS: usize = 4;

/// Loads the text and runs its kernels. Only a panic or a hang is a failure: a text may be refused, and a
/// kernel may trap.
pub(crate) fn runs(text: &str) {
    let Some(module) = ptxvm::check("text.ptx", text, &ptxvm::CheckOptions::default()).module else { return };
    let Ok(vm) = Vm::for_addresses(module.address_size) else { return };
    let Ok(module) = vm.load_module(module) else { return };
    let Ok(buffer) = vm.buffer(&[1u8; BUFFER]) else { return };
    let names: Vec<String> = module.kernels().take(KERNELS).map(str::to_owned).collect();
    for (index, name) in names.iter().enumerate() {
        let Ok(kernel) = module.kernel(name) else { continue };
        let zeros: Vec<Vec<u8>> = kernel.params().iter().map(|p| vec![0; p.bytes]).collect();
        let args: Vec<Arg<'_>> = kernel
            .params()
            .iter()
            .zip(&zeros)
            .map(|(param, zeros)| match param.bytes {
                8 => Arg::buffer(&buffer),
                4 => Arg::from(3u32),
                _ => Arg::bytes_of(zeros),
            })
            .collect();
        let shapes = [([1, 1, 1], [33, 1, 1]), ([2, 1, 1], [8, 4, 2])];
        let (grid, block) = shapes[index % shapes.len()];
        let Ok(mut launch) = Launch::new(grid, block).shared(256).threads(1).args(&kernel, &args) else {
            continue;
        };
        launch.max_steps = Some(STEPS);
        launch.timeout = Some(TIMEOUT);
        if let Err(error) = vm.launch(&kernel, &launch)
            && let ErrorKind::Trap(trap, _) = error.kind()
        {
            let said = trap.to_string();
            assert!(!said.contains("time limit"), "{said}");
        }
    }
}
