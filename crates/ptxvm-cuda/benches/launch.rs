//! The time of a launch through the driver API: `cargo bench -p ptxvm-cuda --bench launch`.
//!
//! The kernel is empty and has one warp. The bench measures the call alone, the call with its execution, and
//! single launches with a wait after each.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::Instant;
use support::Api;

fn main() {
    const COUNT: u32 = 20_000;
    let (api, _) = Api::with_context();
    let function = api.function(api.module(), "nothing");
    let stream = api.make("cuStreamCreate", |out: *mut usize| (out, 0u32));
    let launch = || {
        let arguments = (function, 1u32, 1u32, 1u32, 32u32, 1u32, 1u32, 0u32, stream, 0usize, 0usize);
        assert_eq!(api.call("cuLaunchKernel", arguments), 0);
    };
    let each = |start: Instant| start.elapsed().as_secs_f64() * 1e6 / f64::from(COUNT);
    for _ in 0..3 {
        let start = Instant::now();
        for _ in 0..COUNT {
            launch();
        }
        let called = each(start);
        api.ok("cuStreamSynchronize", (stream,));
        let done = each(start);
        let start = Instant::now();
        for _ in 0..COUNT {
            launch();
            api.ok("cuStreamSynchronize", (stream,));
        }
        let waited = each(start);
        println!("call {called:.2} us, with execution {done:.2} us, with a wait after each {waited:.2} us");
    }
}
