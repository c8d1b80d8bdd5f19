//! Sequences of calls of the driver API that bytes select.
//!
//! Six bytes are a call: the function, and up to two parameters that get another value than a valid one: a
//! wrong number, address or handle, or a result of an earlier call. No call crashes, hangs or panics, and
//! when all contexts are destroyed, all device memory is free again.
//!
//! Calls that wait or work for long by request are omitted: waiting for values in memory that are never
//! written, grids and sizes of billions.

use crate::support::Api;
use crate::table::{Parameter, implemented, table};
use crate::world::{Kind, World};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Most calls of a sequence.
const CALLS: usize = 40;
/// A sequence that takes longer counts as hanging.
const TIMEOUT: Duration = Duration::from_secs(60);

type Row = (&'static str, Vec<Parameter>);

fn rows() -> &'static [Row] {
    static ROWS: OnceLock<Vec<Row>> = OnceLock::new();
    ROWS.get_or_init(|| {
        let row = |(name, row): (&'static str, &'static str)| {
            (name, table().remove(row).unwrap_or_else(|| panic!("{name} is not in the table")))
        };
        implemented().into_iter().map(row).collect()
    })
}

/// A context that always exists, for queries of free memory. It is not current in any sequence.
fn root(api: Api) -> usize {
    static ROOT: OnceLock<usize> = OnceLock::new();
    *ROOT.get_or_init(|| {
        let root = api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32));
        api.ok("cuCtxPopCurrent_v2", (0usize,));
        root
    })
}

/// The free bytes of device memory.
fn free(api: Api) -> usize {
    api.ok("cuCtxPushCurrent_v2", (root(api),));
    let mut total = 0usize;
    let free = api.make("cuMemGetInfo_v2", |free: *mut usize| (free, &raw mut total));
    api.ok("cuCtxPopCurrent_v2", (0usize,));
    free
}

/// Makes the calls. Only one sequence runs at a time.
pub(crate) fn runs(api: Api, bytes: &[u8]) {
    let before = free(api);
    let began = Instant::now();
    let mut sequence = Sequence { api, world: World::new(api), made: Vec::new() };
    for call in bytes.chunks_exact(6).take(CALLS) {
        sequence.step(call.try_into().expect("six bytes"));
    }
    let Sequence { world, made, .. } = sequence;
    // Memory of `cuMemCreate` is freed when nothing maps or counts it.
    let release = || {
        for value in &made {
            let _something_else = api.call("cuMemUnmap", (*value, 2usize << 20));
        }
        for value in &made {
            while api.call("cuMemRelease", (*value,)) == 0 {}
        }
    };
    release();
    // Graphs and pools outlive contexts, and graphs keep modules alive.
    let destroy = |names: &[&str]| {
        for name in names {
            for value in made.iter().chain(world.all()) {
                let _something_else = api.call(name, (*value,));
            }
        }
    };
    destroy(&["cuGraphExecDestroy", "cuGraphDestroy", "cuCtxDestroy_v2", "cuMemPoolDestroy"]);
    while api.call("cuCtxPopCurrent_v2", (0usize,)) == 0 {}
    let _not_retained = api.call("cuDevicePrimaryCtxReset_v2", (0i32,));
    // Where the current context had the error of a trap, these calls returned it and did nothing.
    release();
    destroy(&["cuGraphExecDestroy", "cuGraphDestroy", "cuMemPoolDestroy"]);
    drop(world);
    assert!(began.elapsed() < TIMEOUT, "{:?}", began.elapsed());
    assert_eq!(free(api), before, "bytes of free device memory");
}

struct Sequence {
    api: Api,
    world: World,
    /// Results of calls.
    made: Vec<usize>,
}

impl Sequence {
    fn step(&mut self, [low, high, first, one, second, two]: [u8; 6]) {
        let rows = rows();
        let index = usize::from(u16::from_le_bytes([low, high])) % (rows.len() + 2);
        let Some(row) = rows.get(index) else {
            if index == rows.len() {
                self.world.enter()
            } else {
                self.world.strike_if_there()
            }
            return;
        };
        let (name, parameters) = row;
        let mut arguments = self.world.right(parameters.iter().map(|parameter| &parameter.kind));
        let outs = arguments.clone();
        for (which, choice) in [(first, one), (second, two)] {
            // The upper half of the bytes leaves the arguments unchanged.
            let parameter = parameters.get(usize::from(which)).or_else(|| {
                let count = parameters.len();
                (which < 128 && count > 0).then(|| &parameters[usize::from(which) % count])
            });
            if let Some(parameter) = parameter
                && let Some(value) = self.other(row, &parameter.kind, choice)
            {
                arguments[usize::from(which) % parameters.len()] = value;
            }
        }
        let status = self.api.call_words(name, &arguments);
        assert!((0..999).contains(&status), "{name}({arguments:x?}) answers {status}");
        for (index, parameter) in parameters.iter().enumerate() {
            if status == 0 && parameter.kind == Kind::Out(8) && arguments[index] == outs[index] {
                let room = std::ptr::with_exposed_provenance::<usize>(outs[index]);
                // SAFETY: the environment's room for results lives as long as it does.
                self.made.push(unsafe { room.read_unaligned() });
            }
        }
    }

    /// Another value for a parameter.
    fn other(&self, (name, parameters): &Row, kind: &Kind, choice: u8) -> Option<usize> {
        let counts = parameters.iter().any(|parameter| matches!(parameter.kind, Kind::In(_) | Kind::Image))
            || name.contains("RangeGetAttribute");
        let choice = usize::from(choice);
        let pick = |values: &[usize]| (!values.is_empty()).then(|| values[choice % values.len()]);
        let mut values: Vec<usize> = self.world.wrong(kind).into_iter().map(|(value, _)| value).collect();
        match kind {
            Kind::Handle(_) | Kind::Device | Kind::Managed | Kind::Pinned if choice >= 96 => {
                return pick(&self.made);
            }
            Kind::In(shape) if choice >= 24 => {
                let mut structures = self.world.structures(kind);
                structures.retain(|words| is_small(shape, words));
                let count = structures.len();
                return (count > 0).then(|| {
                    // The byte selects one of ten numbers, together with the function's name.
                    let spread = choice * 7 + name.len() * 13;
                    self.world.give(structures[spread * 11 % count])
                });
            }
            Kind::Number(_) if name.starts_with("cuStreamWaitValue") => return None,
            Kind::Number(_) if name.starts_with("cuLaunch") => {
                values.retain(|value| *value <= 256 || *value > 0x7fff_ffff);
            }
            // Only the caller knows how many elements its structure or buffer has, so only counts that no
            // memory can hold are wrong.
            Kind::Size(_) | Kind::Number(_) if counts => {
                values.retain(|value| *value <= 10 || *value > 0x7fff_ffff);
            }
            Kind::Size(_) | Kind::ImageSize => {
                let flat = !name.contains("D2D") && !name.contains("Pitch");
                let small = if flat { 1 << 16 } else { 1 << 10 };
                values.retain(|value| *value <= small || *value >= 1 << 47);
            }
            _ => {}
        }
        pick(&values)
    }
}

/// Whether a structure asks for no grid of millions.
fn is_small(shape: &str, words: &[u64; 40]) -> bool {
    let sizes = match shape {
        "config" => 0..4,
        "kernelnode" => 1..4,
        _ => return true,
    };
    words[sizes].iter().flat_map(|word| [word & 0xffff_ffff, word >> 32]).all(|half| {
        // A number beyond the upper bound is rejected.
        half <= 256 || half > 0x7fff_ffff
    })
}
