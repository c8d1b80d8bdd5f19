//! The tree reproduces the text, and diagnostics can be rendered.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_target!(|data: &[u8]| ptxvm_fuzz::parser(data));
fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    ptxvm_fuzz::mutate(data, size, max_size, seed)
});
