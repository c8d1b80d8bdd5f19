//! Memory use stays constant over many launches, and over modules that are loaded and unloaded.
//!
//! `PTXVM_FLAT_LAUNCHES` and `PTXVM_FLAT_LOADS` set the numbers. The defaults are 20,000 and 1,500, which
//! makes twice as many functions as can have addresses at one time.

mod support;

use std::time::Duration;
use support::{Api, KERNELS};

const NULL: usize = 0;
/// The growth that is allowed between the first tenth and the end: pages that the allocator has not returned.
const BOUND: u64 = 8 << 20;

fn number(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

/// The resident memory of the process in bytes.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    text.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * 4096
}

/// Calls a function `times` times. Returns the bytes that the last nine tenths added.
fn growth(times: usize, mut each: impl FnMut(usize)) -> u64 {
    let mut after_a_tenth = 0;
    for turn in 0..times {
        if turn == times / 10 {
            after_a_tenth = resident();
        }
        each(turn);
    }
    println!("{times} times: from {after_a_tenth} to {} bytes", resident());
    resident().saturating_sub(after_a_tenth)
}

#[test]
fn memory_stays_what_it_is() {
    let (api, _) = Api::with_context();
    let module = api.module();
    let (count, double) = (api.function(module, "count"), api.function(module, "double_all"));
    let data = api.alloc(4096);
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 0u32));
    // Meanwhile they are compiled by a library that allocates memory once.
    let mut before = 0;
    for _ in 0..20 {
        for (function, stream) in [(count, stream), (double, NULL)].repeat(200) {
            assert_eq!(api.launch(function, (3, 32), stream, data), 0);
        }
        api.ok("cuCtxSynchronize", ());
        std::thread::sleep(Duration::from_millis(200));
        if before == resident() {
            break;
        }
        before = resident();
    }
    let launches = growth(number("PTXVM_FLAT_LAUNCHES", 20_000), |turn| {
        let (function, stream) = if turn % 3 == 0 { (count, stream) } else { (double, NULL) };
        assert_eq!(api.launch(function, (1 + turn as u32 % 3, 32), stream, data), 0);
        if turn % 100 == 0 {
            api.ok("cuCtxSynchronize", ());
        }
    });
    assert!(launches < BOUND, "{launches} bytes more after launches");
    // With this many functions a few hundred modules would use up all addresses.
    let many: String = (0..100).map(|n| format!(".visible .entry unused{n}() {{ ret; }}\n")).collect();
    let text = std::ffi::CString::new(format!("{KERNELS}{many}")).expect("no zero in it");
    let loads = growth(number("PTXVM_FLAT_LOADS", 1_500), |turn| {
        let module = api.make("cuModuleLoadData", |out: *mut usize| (out, text.as_ptr()));
        let (mut address, mut bytes) = (0u64, 0usize);
        api.ok("cuModuleGetGlobal_v2", (&raw mut address, &raw mut bytes, module, c"counter".as_ptr()));
        let _texture = api.make("cuModuleGetTexRef", |out: *mut usize| (out, module, c"image".as_ptr()));
        assert_eq!(api.launch(api.function(module, "count"), (1, 32), NULL, data), 0);
        api.ok("cuModuleUnload", (module,));
        // A module lives until its launch is complete, so their number is limited.
        if turn % 4 == 0 {
            api.ok("cuCtxSynchronize", ());
        }
    });
    api.ok("cuCtxSynchronize", ());
    assert!(loads < BOUND, "{loads} bytes more after loads");
}
