//! Sixteen threads, a stream each, launch and copy at once: no update is lost, nothing leaks, nothing hangs.
//!
//! `PTXVM_STRESS_SECONDS` says for how long; without it two seconds.

mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::Api;

const NULL: usize = 0;

fn seconds() -> Duration {
    let given = std::env::var("PTXVM_STRESS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(2))
}

#[test]
fn many_threads_launch_and_copy_at_once() {
    let (api, context) = Api::with_context();
    let module = api.module();
    let (count, double) = (api.function(module, "count"), api.function(module, "double_all"));
    let shared = api.alloc(4);
    api.ok("cuMemsetD32_v2", (shared, 0u32, 1usize));
    let before = free_memory(api);
    let threads = 16;
    let end = Instant::now() + seconds();
    let turns = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let turns = &turns;
            scope.spawn(move || {
                api.ok("cuCtxSetCurrent", (context,));
                let stream = api.make("cuStreamCreate", |out: *mut usize| (out, thread as u32 % 2));
                let data = api.alloc(256);
                let mut host = vec![0u32; 64];
                while Instant::now() < end {
                    let turn = turns.fetch_add(1, Ordering::Relaxed) % 1000;
                    let sent: Vec<u32> = (0..64).map(|n| n * 1000 + turn).collect();
                    api.ok("cuMemcpyHtoDAsync_v2", (data, sent.as_ptr(), 256usize, stream));
                    assert_eq!(api.launch(double, (2, 32), stream, data), 0);
                    assert_eq!(api.launch(count, (1, 32), stream, shared), 0);
                    api.ok("cuMemcpyDtoHAsync_v2", (host.as_mut_ptr(), data, 256usize, stream));
                    api.ok("cuStreamSynchronize", (stream,));
                    assert!(sent.iter().zip(&host).all(|(sent, got)| *got == 2 * sent));
                }
                api.ok("cuMemFree_v2", (data,));
                api.ok("cuStreamDestroy_v2", (stream,));
            });
        }
    });
    api.ok("cuCtxSynchronize", ());
    assert_eq!(api.read(shared, 1), [turns.into_inner().wrapping_mul(32)]);
    // Nothing else runs in this process, so what is free is what was.
    assert_eq!(free_memory(api), before);
}

fn free_memory(api: Api) -> usize {
    api.make("cuMemGetInfo_v2", |out: *mut usize| (out, NULL))
}
