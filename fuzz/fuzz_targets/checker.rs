//! The result is a module or an error, never a panic.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|data: &[u8]| ptxvm_fuzz::checker(data));
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    ptxvm_fuzz::mutate(data, size, max_size, seed)
});
