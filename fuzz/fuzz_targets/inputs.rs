//! What is given beside PTX is read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ptxvm_fuzz::inputs(data));
