//! Inputs other than PTX are accepted or rejected.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ptxvm_fuzz::inputs(data));
