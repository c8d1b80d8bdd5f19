//! Any bytes as device code are texts or an error, within memory.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ptxvm_fuzz::containers(data));
