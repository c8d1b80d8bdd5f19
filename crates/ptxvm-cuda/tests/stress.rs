//! Thirty-two threads use all features at once: no update is lost, no trap affects another context, nothing
//! leaks, nothing hangs.
//!
//! `PTXVM_STRESS_SECONDS` sets the duration; the default is two seconds.

mod support;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use support::Api;

const NULL: usize = 0;
const THREADS: usize = 32;

fn seconds() -> Duration {
    let given = std::env::var("PTXVM_STRESS_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(given.unwrap_or(2))
}

/// Data that the threads share.
struct Shared {
    api: Api,
    context: usize,
    module: usize,
    /// The counter that launches of `count` increase by 32.
    counter: u64,
    launches: AtomicU32,
}

/// Data of one thread.
struct Own {
    stream: usize,
    event: usize,
    data: u64,
    turn: u32,
}

impl Shared {
    fn function(&self, name: &str) -> usize {
        self.api.function(self.module, name)
    }

    fn count(&self, stream: usize) {
        self.launches.fetch_add(1, Ordering::Relaxed);
        assert_eq!(self.api.launch(self.function("count"), (1, 32), stream, self.counter), 0);
    }

    /// Copies numbers to the device, doubles them in a stream, and copies them back.
    fn copies_and_launches(&self, own: &Own) {
        let api = self.api;
        let sent: Vec<u32> = (0..64).map(|n| n * 1000 + own.turn % 1000).collect();
        let mut got = vec![0u32; 64];
        api.ok("cuMemcpyHtoDAsync_v2", (own.data, sent.as_ptr(), 256usize, own.stream));
        assert_eq!(api.launch(self.function("double_all"), (2, 32), own.stream, own.data), 0);
        self.count(own.stream);
        api.ok("cuMemcpyDtoHAsync_v2", (got.as_mut_ptr(), own.data, 256usize, own.stream));
        api.ok("cuStreamSynchronize", (own.stream,));
        assert!(sent.iter().zip(&got).all(|(sent, got)| *got == 2 * sent));
    }

    /// A second stream waits for an event of the first.
    fn events(&self, own: &Own) {
        let api = self.api;
        let other = api.make("cuStreamCreate", |out: *mut usize| (out, 1u32));
        api.ok("cuMemsetD32Async", (own.data, own.turn, 64usize, own.stream));
        api.ok("cuEventRecord", (own.event, own.stream));
        api.ok("cuStreamWaitEvent", (other, own.event, 0u32));
        assert_eq!(api.launch(self.function("double_all"), (2, 32), other, own.data), 0);
        let last = api.make("cuEventCreate", |out: *mut usize| (out, 0u32));
        api.ok("cuEventRecord", (last, other));
        api.ok("cuEventSynchronize", (last,));
        let _milliseconds = api.make("cuEventElapsedTime", |out: *mut f32| (out, own.event, last));
        assert_eq!(api.read(own.data, 64), [own.turn.wrapping_mul(2); 64]);
        api.ok("cuEventDestroy_v2", (last,));
        api.ok("cuStreamDestroy_v2", (other,));
    }

    /// A module of the thread's own, unloaded after its launch.
    fn modules(&self, own: &Own) {
        let api = self.api;
        let module = api.module();
        let (mut address, mut bytes) = (0u64, 0usize);
        api.ok("cuModuleGetGlobal_v2", (&raw mut address, &raw mut bytes, module, c"counter".as_ptr()));
        assert_eq!(api.read(address, 1), [7]);
        let _texture = api.make("cuModuleGetTexRef", |out: *mut usize| (out, module, c"image".as_ptr()));
        api.ok("cuMemsetD32Async", (own.data, 0u32, 64usize, own.stream));
        assert_eq!(api.launch(api.function(module, "count"), (1, 7), own.stream, own.data), 0);
        api.ok("cuModuleUnload", (module,));
        api.ok("cuStreamSynchronize", (own.stream,));
        assert_eq!(api.read(own.data, 1), [7]);
    }

    /// A capture becomes a graph that is launched twice and destroyed before it is complete.
    fn graphs(&self, own: &Own) {
        let api = self.api;
        api.ok("cuStreamBeginCapture_v2", (own.stream, 1i32));
        api.ok("cuMemsetD32Async", (own.data, own.turn, 64usize, own.stream));
        assert_eq!(api.launch(self.function("double_all"), (2, 32), own.stream, own.data), 0);
        let graph = api.make("cuStreamEndCapture", |out: *mut usize| (own.stream, out));
        let launched = api.make("cuGraphInstantiateWithFlags", |out: *mut usize| (out, graph, 0usize));
        for _ in 0..2 {
            api.ok("cuGraphLaunch", (launched, own.stream));
        }
        api.ok("cuGraphExecDestroy", (launched,));
        api.ok("cuGraphDestroy", (graph,));
        api.ok("cuStreamSynchronize", (own.stream,));
        assert_eq!(api.read(own.data, 64), [own.turn.wrapping_mul(2); 64]);
    }

    /// A texture that is destroyed, with its array, after the launch that samples it.
    fn textures(&self, own: &Own) {
        let api = self.api;
        let description = [8usize, 8, 32 | 1 << 32];
        let array = api.make("cuArrayCreate_v2", |out: *mut usize| (out, description.as_ptr()));
        let texels = vec![own.turn as f32; 64];
        let mut copy = [0usize; 16];
        // From the host, in rows of 32 bytes, to the array.
        (copy[2], copy[3], copy[6]) = (1, texels.as_ptr().expose_provenance(), 32);
        (copy[9], copy[12], copy[14], copy[15]) = (3, array, 32, 8);
        api.ok("cuMemcpy2DAsync_v2", (copy.as_ptr(), own.stream));
        let mut resource = [0usize; 18];
        resource[1] = array;
        let sampling = [0usize; 13];
        let make = |out: *mut u64| (out, resource.as_ptr(), sampling.as_ptr(), NULL);
        let texture: u64 = api.make("cuTexObjectCreate", make);
        let params = [&raw const texture, &raw const own.data];
        let arguments = (
            self.function("sample"),
            1u32,
            1u32,
            1u32,
            8u32,
            8u32,
            1u32,
            0u32,
            own.stream,
            params.as_ptr(),
            NULL,
        );
        api.ok("cuLaunchKernel", arguments);
        api.ok("cuTexObjectDestroy", (texture,));
        api.ok("cuArrayDestroy", (array,));
        api.ok("cuStreamSynchronize", (own.stream,));
        assert_eq!(api.read(own.data, 64), [(own.turn as f32).to_bits(); 64]);
    }

    /// A context of the thread's own, in which a kernel traps.
    fn traps(&self) {
        let api = self.api;
        let own = api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32));
        let module = api.module();
        let _allocated_and_left = api.alloc(4096);
        assert_eq!(api.launch(api.function(module, "stops"), (1, 32), NULL, 0), 0);
        assert_eq!(api.call("cuCtxSynchronize", ()), 719);
        assert_eq!(api.call("cuMemAlloc_v2", (&raw mut *Box::new(0usize), 4usize)), 719);
        api.ok("cuCtxDestroy_v2", (own,));
        api.ok("cuCtxSetCurrent", (self.context,));
    }

    fn work(&self, thread: usize, end: Instant) {
        let api = self.api;
        api.ok("cuCtxSetCurrent", (self.context,));
        let mut own = Own {
            stream: api.make("cuStreamCreate", |out: *mut usize| (out, thread as u32 % 2)),
            event: api.make("cuEventCreate", |out: *mut usize| (out, 0u32)),
            data: api.alloc(256),
            turn: thread as u32,
        };
        while Instant::now() < end {
            match own.turn % 16 {
                0..8 => self.copies_and_launches(&own),
                8 | 9 => self.events(&own),
                10 => self.modules(&own),
                11 | 12 => self.graphs(&own),
                13 | 14 => self.textures(&own),
                _ => self.traps(),
            }
            own.turn += 1;
        }
        api.ok("cuMemFree_v2", (own.data,));
        api.ok("cuEventDestroy_v2", (own.event,));
        api.ok("cuStreamDestroy_v2", (own.stream,));
    }
}

#[test]
fn many_threads_use_everything_at_once() {
    let (api, context) = Api::with_context();
    let module = api.module();
    let counter = api.alloc(4);
    api.ok("cuMemsetD32_v2", (counter, 0u32, 1usize));
    // The streams do not wait for the default stream, which may set memory after the call returned.
    api.ok("cuCtxSynchronize", ());
    let before = free_memory(api);
    let shared = Shared { api, context, module, counter, launches: AtomicU32::new(0) };
    let end = Instant::now() + seconds();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let shared = &shared;
            scope.spawn(move || shared.work(thread, end));
        }
    });
    api.ok("cuCtxSynchronize", ());
    assert_eq!(api.read(counter, 1), [shared.launches.into_inner().wrapping_mul(32)]);
    // Nothing else runs in this process, so the free memory must be the same as before. A compilation in the
    // background keeps a module that was unloaded until it ends.
    let patience = Instant::now() + Duration::from_secs(60);
    while free_memory(api) != before && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(free_memory(api), before);
}

fn free_memory(api: Api) -> usize {
    api.make("cuMemGetInfo_v2", |out: *mut usize| (out, NULL))
}
