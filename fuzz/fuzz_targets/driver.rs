//! Calls of the driver API in any order leak nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| ptxvm_fuzz::driver(data));
