//! Launches: their options, arguments and reports.

use crate::{Buffer, Element, Engine, Error, Kernel, Object, Ran};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

/// The options of a launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// CTAs in each dimension.
    pub grid: [u32; 3],
    /// Threads of a CTA in each dimension.
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub shared: u32,
    /// Whether its CTAs may wait for each other, as `grid.sync()` of CUDA's cooperative groups does.
    pub cooperative: bool,
    /// The parameter buffer, laid out as [`Kernel::params`] says; usually filled by [`Launch::args`].
    pub params: Vec<u8>,
    /// OS threads; `None`: one for each core.
    pub threads: Option<u32>,
    /// Schedule seed: 0 is the natural order, any other number permutes warps and CTAs and varies their time
    /// slices. With one OS thread, equal seeds give equal runs.
    pub seed: u64,
    /// Stop with a trap after this many warp instructions.
    pub max_steps: Option<u64>,
    /// Stop with a trap after this time, including compilation.
    pub timeout: Option<Duration>,
    /// Setting this to true from another thread stops the launch with a trap soon afterwards.
    pub cancel: Option<Arc<AtomicBool>>,
    /// Counts finished CTAs while the launch runs: see [`Launch::ctas`].
    pub progress: Option<Arc<AtomicU64>>,
    /// A thread to trace, instruction by instruction, in the interpreter.
    pub trace: Option<ptx_exec::trace::Trace>,
    /// The output limit: bytes of text, plus 32 for each CTA that prints; see [`Launch::OUTPUT_LIMIT`]. Later
    /// output is dropped, and counted in [`Report::dropped`].
    pub output_limit: u64,
    /// Which engine executes.
    pub engine: Engine,
}

impl Launch {
    /// The default output limit: 64 MiB.
    pub const OUTPUT_LIMIT: u64 = ptx_exec::launch::OUTPUT_BYTES;

    /// The number of CTAs.
    pub fn ctas(&self) -> u64 {
        self.grid.iter().fold(1, |product: u64, n| product.saturating_mul(u64::from(*n)))
    }

    /// A launch of `grid` CTAs of `block` threads, without parameters.
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            shared: 0,
            cooperative: false,
            params: Vec::new(),
            threads: None,
            seed: 0,
            max_steps: None,
            timeout: None,
            cancel: None,
            progress: None,
            trace: None,
            output_limit: Self::OUTPUT_LIMIT,
            engine: Engine::Auto,
        }
    }

    /// With that many bytes of dynamic shared memory.
    pub fn shared(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// As a cooperative launch.
    pub fn cooperative(mut self) -> Self {
        self.cooperative = true;
        self
    }

    /// On that many OS threads.
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Stops with a trap after this time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Stops with a trap after this many warp instructions.
    pub fn max_steps(mut self, steps: u64) -> Self {
        self.max_steps = Some(steps);
        self
    }

    /// With that engine.
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// With that schedule seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// With these arguments, one for each parameter of `kernel`, in order.
    ///
    /// # Errors
    /// Of the caller, where the number of arguments or the width of one differs from the kernel's parameters.
    pub fn args(mut self, kernel: &Kernel, args: &[Arg<'_>]) -> Result<Self, Error> {
        let slots = kernel.params();
        if slots.len() != args.len() {
            let (name, wants, has) = (kernel.name(), slots.len(), args.len());
            return Err(Error::caller(format!(
                "kernel `{name}` has {wants} parameters, but {has} arguments were given"
            )));
        }
        self.params = vec![0; kernel.param_bytes()];
        for (slot, arg) in slots.iter().zip(args) {
            let bytes = arg.bytes(slot.bytes);
            if bytes.len() != slot.bytes {
                let (name, has, wants) = (&slot.name, bytes.len(), slot.bytes);
                return Err(Error::caller(format!(
                    "the argument for `{name}` has {has} bytes, but the parameter {wants}"
                )));
            }
            self.params[slot.offset..slot.offset + slot.bytes].copy_from_slice(bytes);
        }
        Ok(self)
    }
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Arg<'a>(Value<'a>);

#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Scalar([u8; 8], usize),
    Address([u8; 8]),
    Bytes(&'a [u8]),
}

impl<'a> Arg<'a> {
    /// The address of a buffer.
    pub fn buffer<T: Element>(buffer: &'a Buffer<T>) -> Self {
        Self(Value::Address(buffer.address().to_le_bytes()))
    }

    /// A texture, sampler or surface: its handle.
    pub fn object(object: &'a Object) -> Self {
        Self(Value::Address(object.handle().to_le_bytes()))
    }

    /// A device address.
    pub fn address(address: u64) -> Self {
        Self(Value::Address(address.to_le_bytes()))
    }

    /// A parameter passed by value: its bytes.
    pub fn bytes_of(bytes: &'a [u8]) -> Self {
        Self(Value::Bytes(bytes))
    }

    /// The bytes for a parameter of `width` bytes: an address is truncated to 32 bits if the parameter has
    /// 32.
    fn bytes(&self, width: usize) -> &[u8] {
        match &self.0 {
            Value::Scalar(bytes, width) => &bytes[..*width],
            Value::Address(bytes) if width == 4 && bytes[4..] == [0; 4] => &bytes[..4],
            Value::Address(bytes) => bytes,
            Value::Bytes(bytes) => bytes,
        }
    }
}

impl<T: Element> From<T> for Arg<'_> {
    fn from(value: T) -> Self {
        let mut scalar = [0; 8];
        value.put(&mut scalar[..size_of::<T>()]);
        Self(Value::Scalar(scalar, size_of::<T>()))
    }
}

/// The result of a launch.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What the kernel printed (`vprintf`).
    pub output: Vec<u8>,
    /// Bytes of output that were dropped: beyond [`Launch::output_limit`], or beyond 4 MiB in one call of a
    /// warp.
    pub dropped: u64,
    /// CTAs that finished: all of them, unless a trap stopped the launch.
    pub ctas: u64,
    /// Time from the start of the first CTA to the end of the last.
    pub elapsed: Duration,
    /// OS threads that took part.
    pub threads: u32,
    /// Instructions that warps executed.
    pub warp_instructions: u64,
    /// Executed instructions, counted per active lane.
    pub thread_instructions: u64,
    /// How often warps triggered each of the events 0 to 15 (`pmevent`, `__prof_trigger`).
    pub events: Box<[u64; 16]>,
    /// The engine and its details.
    pub ran: Box<Ran>,
}

impl Report {
    pub(crate) fn new(report: ptx_exec::launch::LaunchReport, ran: Ran) -> Self {
        let ptx_exec::launch::LaunchReport {
            steps,
            thread_instructions,
            native: _,
            native_steps,
            fallback_steps,
            side_exits,
            output,
            dropped,
            finished,
            events,
            elapsed,
            threads,
        } = report;
        let ran = Box::new(Ran {
            native_instructions: native_steps,
            fallback_instructions: fallback_steps,
            side_exits,
            ..ran
        });
        Self {
            output,
            dropped,
            ctas: finished,
            elapsed,
            threads,
            warp_instructions: steps,
            thread_instructions,
            events: Box::new(events),
            ran,
        }
    }
}
