//! Any bytes as device code give texts or an error, with bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ptxvm_fuzz::containers(data));
