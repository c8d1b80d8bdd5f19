//! How a row of the zoo describes its case.
//!
//! Invariant: the kernel gets arrays and numbers in the order in which they were named, unless a step lists
//! its own arguments; the native function gets the same arrays and the same numbers, each in that order.

use crate::bench::case::{Array, Case, Check, Noise, Size, Step, Value};

/// A case while its row describes it.
pub(super) struct Setup {
    name: &'static str,
    size: Size,
    what: String,
    arrays: Vec<Array>,
    scalars: Vec<f64>,
    values: Vec<Value>,
    steps: Vec<Step>,
}

impl Setup {
    pub(super) fn new(name: &'static str, size: Size) -> Self {
        Self {
            name,
            size,
            what: String::new(),
            arrays: Vec::new(),
            scalars: Vec::new(),
            values: Vec::new(),
            steps: Vec::new(),
        }
    }

    /// The finished case.
    pub(super) fn case(self, ptx: &'static str) -> Case {
        let Self { name, what, arrays, scalars: numbers, steps, .. } = self;
        Case { name, what, target: None, ptx, native: name, arrays, numbers, steps }
    }

    /// The size that is measured, or the one for the interpreter.
    pub(super) fn pick(&self, full: usize, reduced: usize) -> usize {
        self.size.pick(full, reduced)
    }

    /// The size, for people.
    pub(super) fn what(&mut self, what: impl Into<String>) {
        self.what = what.into();
    }

    /// Any array.
    pub(super) fn array(&mut self, array: Array) -> Value {
        self.arrays.push(array);
        self.add(Value::Array(self.arrays.len() - 1))
    }

    /// Pseudo-random numbers; each array has a seed of its own.
    pub(super) fn noise(&self) -> Noise {
        Noise::new(self.arrays.len() as u32 + 1)
    }

    /// An input of so many floats.
    pub(super) fn floats(&mut self, n: usize, low: f32, high: f32) -> Value {
        let floats = self.noise().floats(n, low, high);
        self.array(Array::input(floats))
    }

    /// An input of random bytes.
    pub(super) fn bytes(&mut self, n: usize) -> Value {
        let mut words = self.noise().words(n.div_ceil(4));
        words.truncate(n);
        self.array(Array::input(words))
    }

    /// An input of integers.
    pub(super) fn int_array(&mut self, ints: impl IntoIterator<Item = i32>) -> Value {
        self.array(Array::input(le_bytes(ints)))
    }

    /// Zero bytes that a run fills completely and that are compared.
    pub(super) fn output(&mut self, bytes: usize, check: Check) -> Value {
        self.array(Array::output(bytes, check))
    }

    /// The same for sums and counters, which must be zero before each run.
    pub(super) fn zeroed(&mut self, bytes: usize, check: Check) -> Value {
        self.array(Array::output(bytes, check).restored())
    }

    /// Memory that is not compared.
    pub(super) fn scratch(&mut self, bytes: usize) -> Value {
        self.array(Array::output(bytes, Check::No))
    }

    /// The same, zero before each run.
    pub(super) fn zeroed_scratch(&mut self, bytes: usize) -> Value {
        self.array(Array::output(bytes, Check::No).restored())
    }

    /// A number.
    pub(super) fn int(&mut self, n: usize) -> Value {
        self.scalars.push(n as f64);
        self.add(Value::S32(n as i32))
    }

    /// A number.
    pub(super) fn float(&mut self, n: f32) -> Value {
        self.scalars.push(f64::from(n));
        self.add(Value::F32(n))
    }

    /// Several numbers.
    pub(super) fn numbers<const N: usize>(&mut self, numbers: [usize; N]) -> [Value; N] {
        numbers.map(|n| self.int(n))
    }

    /// Several numbers.
    pub(super) fn factors<const N: usize>(&mut self, factors: [f32; N]) -> [Value; N] {
        factors.map(|n| self.float(n))
    }

    fn add(&mut self, value: Value) -> Value {
        self.values.push(value);
        value
    }

    /// Launches the kernel that has the name of the row, with all arguments.
    pub(super) fn launch(&mut self, grid: [u32; 3], block: [u32; 3]) {
        let args = self.values.clone();
        self.step(self.name, grid, block, &args);
    }

    /// Launches a kernel with these arguments.
    pub(super) fn step(&mut self, kernel: &'static str, grid: [u32; 3], block: [u32; 3], args: &[Value]) {
        self.steps.push(Step { kernel, grid, block, args: args.to_vec() });
    }
}

/// CTAs of a line.
pub(super) fn over(n: usize, block: u32) -> [u32; 3] {
    [n.div_ceil(block as usize) as u32, 1, 1]
}

/// CTAs of a box.
pub(super) fn tiles(size: [usize; 3], block: [u32; 3]) -> [u32; 3] {
    let one = |at: usize| size[at].div_ceil(block[at] as usize) as u32;
    [one(0), one(1), one(2)]
}

/// Integers, as bytes.
pub(super) fn le_bytes(ints: impl IntoIterator<Item = i32>) -> Vec<u8> {
    ints.into_iter().flat_map(i32::to_le_bytes).collect()
}

/// The tolerance of sums of `f32` whose terms are added in another order, or with fused multiplications.
/// `depth` bounds the roundings between an input and the result, `magnitude` the sum of the terms' absolute
/// values.
pub(super) fn sums(depth: u32, magnitude: f32) -> Check {
    Check::Floats {
        abs: 2.0 * depth as f32 * magnitude / 16_777_216.0,
        rel: 0.0,
        why: "each side rounds by 2^-24 of the terms' absolute sum for each level of additions",
    }
}

/// The tolerance of results of the approximate exponential, logarithm, root or division.
pub(super) fn approximate(abs: f32, rel: f32) -> Check {
    Check::Floats { abs, rel, why: "approximate functions are good to 2^-20 or so on both sides" }
}
