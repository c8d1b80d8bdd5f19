//! Sequences of calls of the driver API, as text ([`crate::calls`]) or selected by bytes.
//!
//! Six bytes are a call: the function, and up to two parameters that get another value than a valid one: a
//! wrong number, address or handle, or a result of an earlier call. No call crashes, hangs or panics, and
//! when all contexts are destroyed, all device memory is free again.
//!
//! Calls that wait or work for long by request are omitted: waiting for values in memory that are never
//! written, grids and sizes of billions.

use crate::calls::{Row, Step, Value, Word, parse, rows};
use crate::support::Api;
use crate::world::{Kind, World};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most calls of a sequence that bytes select.
const CALLS: usize = 40;
/// A sequence that takes longer counts as hanging.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A context for queries of free memory, made again if a sequence destroyed it: a number can be its handle.
/// It is not current in any sequence.
fn root(api: Api) -> usize {
    static ROOT: Mutex<usize> = Mutex::new(0);
    let mut root = ROOT.lock().unwrap_or_else(PoisonError::into_inner);
    if api.call("cuCtxPushCurrent_v2", (*root,)) != 0 {
        *root = api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32));
    }
    api.ok("cuCtxPopCurrent_v2", (0usize,));
    *root
}

/// The free bytes of device memory.
fn free(api: Api) -> usize {
    api.ok("cuCtxPushCurrent_v2", (root(api),));
    let mut total = 0usize;
    let free = api.make("cuMemGetInfo_v2", |free: *mut usize| (free, &raw mut total));
    api.ok("cuCtxPopCurrent_v2", (0usize,));
    free
}

/// Makes the calls of a text, or those that bytes select. Only one sequence runs at a time. `note` is told
/// each step before it is made.
pub(crate) fn runs(api: Api, input: &[u8], mut note: impl FnMut(&Step)) {
    let before = free(api);
    let began = Instant::now();
    let mut sequence = Sequence { api, world: World::new(api), results: Vec::new(), count: 0 };
    match std::str::from_utf8(input).map(parse) {
        Ok(Ok(steps)) => {
            for step in &steps {
                note(step);
                sequence.make(step);
            }
        }
        Ok(Err(_)) | Err(_) => {
            for call in input.chunks_exact(6).take(CALLS) {
                let step = sequence.select(call.try_into().expect("six bytes"));
                note(&step);
                sequence.make(&step);
            }
        }
    }
    let Sequence { world, results, .. } = sequence;
    let made: Vec<usize> = results.into_iter().map(|result| result.value).collect();
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
    // A thread that has just compiled a kernel, or run it, may be the last that refers to its module.
    while free(api) != before && began.elapsed() < TIMEOUT {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(free(api), before, "bytes of free device memory");
}

/// A result of a call: the call's place in the sequence, its parameter, and the value.
struct Made {
    call: usize,
    parameter: &'static str,
    value: usize,
}

struct Sequence {
    api: Api,
    world: World,
    results: Vec<Made>,
    /// The number of steps so far.
    count: usize,
}

impl Sequence {
    /// The step that bytes select.
    fn select(&self, [low, high, first, one, second, two]: [u8; 6]) -> Step {
        let rows = rows();
        let index = usize::from(u16::from_le_bytes([low, high])) % (rows.len() + 2);
        let Some(row) = rows.get(index) else {
            return if index == rows.len() { Step::Enter } else { Step::Strike };
        };
        // After other calls the memory may not have the value.
        if row.0.starts_with("cuStreamWaitValue") {
            return Step::Enter;
        }
        let parameters = &row.1;
        let mut changes = Vec::new();
        for (which, choice) in [(first, one), (second, two)] {
            // The upper half of the bytes leaves the arguments unchanged.
            let parameter = if usize::from(which) < parameters.len() {
                usize::from(which)
            } else if which < 128 && !parameters.is_empty() {
                usize::from(which) % parameters.len()
            } else {
                continue;
            };
            if let Some(value) = self.other(row, &parameters[parameter].kind, choice) {
                changes.retain(|(index, _)| *index != parameter);
                changes.push((parameter, value));
            }
        }
        Step::Call(index, changes)
    }

    /// Makes a step.
    fn make(&mut self, step: &Step) {
        self.count += 1;
        let (row, changes) = match step {
            Step::Enter => return self.world.enter(),
            Step::Strike => return self.world.strike_if_there(),
            Step::Call(row, changes) => (*row, changes),
        };
        let (name, parameters) = &rows()[row];
        let mut arguments = self.world.right(parameters.iter().map(|parameter| &parameter.kind));
        let outs = arguments.clone();
        for (index, value) in changes {
            arguments[*index] = self.value(&parameters[*index].kind, value);
        }
        let status = self.api.call_words(name, &arguments);
        assert!((0..999).contains(&status), "{name}({arguments:x?}) answers {status}");
        for (index, parameter) in parameters.iter().enumerate() {
            // A name or text is the library's own memory, which a program that writes there destroys.
            let is_own = matches!(parameter.name, "name" | "text");
            if status == 0 && parameter.kind == Kind::Out(8) && !is_own && arguments[index] == outs[index] {
                let room = std::ptr::with_exposed_provenance::<usize>(outs[index]);
                // SAFETY: the environment's room for results lives as long as it does.
                let value = unsafe { room.read_unaligned() };
                self.results.push(Made { call: self.count, parameter: parameter.name, value });
            }
        }
    }

    /// The value of an argument. A result of a call that failed is 0.
    fn value(&self, kind: &Kind, value: &Value) -> usize {
        match value {
            Value::Number(number) => *number as usize,
            Value::Named(name, offset) => self.world.named(name).wrapping_add(*offset as usize),
            Value::Result(call, parameter) => {
                let is_it = |result: &&Made| result.call == *call && result.parameter == *parameter;
                self.results.iter().find(is_it).map_or(0, |result| result.value)
            }
            Value::Structure(words) => {
                let mut structure = match kind {
                    Kind::In(name) => self.world.structure(name),
                    _ => [0; 40],
                };
                for (index, word) in words {
                    let old = structure[*index];
                    structure[*index] = match word {
                        Word::Whole(value) => self.value(kind, value) as u64,
                        Word::Low(half) => old >> 32 << 32 | u64::from(*half),
                        Word::High(half) => old << 32 >> 32 | u64::from(*half) << 32,
                    };
                }
                self.world.give(structure)
            }
        }
    }

    /// The text of a value: a name, if the environment has one for it.
    fn described(&self, value: usize) -> Value {
        let named = |name: &&&str| value > 0xffff && self.world.named(name) == value;
        if let Some(name) = World::names().iter().find(named) {
            return Value::Named(name, 0);
        }
        // Addresses in an allocation, and of its end.
        let offset =
            |name: &str| value.checked_sub(self.world.named(name)).filter(|offset| *offset <= 1 << 16);
        let inside = ["device", "freed"].into_iter().find_map(|name| Some((name, offset(name)?)));
        inside.map_or(Value::Number(value as u64), |(name, offset)| Value::Named(name, offset as u64))
    }

    /// The text of a structure: the words that differ from those of a valid one.
    fn difference(&self, name: &str, words: &[u64; 40]) -> Value {
        let valid = self.world.structure(name);
        let differs = words.iter().zip(valid).enumerate().filter(|(_, (word, valid))| *word != valid);
        let word = |(index, (word, valid)): (usize, (&u64, u64))| {
            let (low, high) = (*word as u32, (*word >> 32) as u32);
            let described = self.described(*word as usize);
            let word = match described {
                Value::Number(_) if valid > 0xffff && low == valid as u32 => Word::High(high),
                Value::Number(_) if valid > 0xffff && high == (valid >> 32) as u32 => Word::Low(low),
                _ => Word::Whole(described),
            };
            (index, word)
        };
        Value::Structure(differs.map(word).collect())
    }

    /// Another value for a parameter.
    fn other(&self, (name, parameters): &Row, kind: &Kind, choice: u8) -> Option<Value> {
        let counts = parameters.iter().any(|parameter| matches!(parameter.kind, Kind::In(_) | Kind::Image))
            || name.contains("RangeGetAttribute");
        let choice = usize::from(choice);
        let pick =
            |values: &[usize]| (!values.is_empty()).then(|| self.described(values[choice % values.len()]));
        let mut values: Vec<usize> = self.world.wrong(kind).into_iter().map(|(value, _)| value).collect();
        match kind {
            Kind::Handle(_) | Kind::Device | Kind::Managed | Kind::Pinned if choice >= 96 => {
                let count = self.results.len();
                let result = (count > 0).then(|| &self.results[choice % count.max(1)]);
                return result.map(|result| Value::Result(result.call, result.parameter));
            }
            Kind::In(shape) if choice >= 24 => {
                let mut structures = self.world.structures(kind);
                structures.retain(|words| is_small(shape, words));
                let count = structures.len();
                return (count > 0).then(|| {
                    // The byte selects one of ten numbers, together with the function's name.
                    let spread = choice * 7 + name.len() * 13;
                    self.difference(shape, &structures[spread * 11 % count])
                });
            }
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
