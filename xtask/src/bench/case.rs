//! A benchmark: arrays, launches, the native counterpart, and the comparison of results.
//!
//! Invariant: both sides get the same bytes. Every case has a compared array (`compared` is asserted where
//! cases are run). Cases do not depend on engines or clocks.

/// The size of a benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// The size for which the targets are stated.
    Full,
    /// A size for which the interpreter needs a fraction of a second.
    Reduced,
}

impl Size {
    /// One of two values.
    pub(crate) fn pick<T>(self, full: T, reduced: T) -> T {
        match self {
            Size::Full => full,
            Size::Reduced => reduced,
        }
    }
}

/// How an array is compared after the first run.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Check {
    /// Not compared: an input, or scratch memory.
    No,
    /// Must have the same bytes.
    Bytes,
    /// `|got - expected| <= abs + rel·|expected|` for each `f32`; `why` gives the source of the tolerances.
    Floats { abs: f32, rel: f32, why: &'static str },
    /// The same for `f64`.
    Doubles { abs: f64, rel: f64, why: &'static str },
    /// As `Floats`, except for a share of the elements, where rounding decides a branch.
    MostFloats { abs: f32, rel: f32, share: f64, why: &'static str },
    /// As `Levels`, except for a share of the elements.
    MostLevels { by: u8, share: f64, why: &'static str },
    /// `|got - expected| <= by` for each byte; `why` gives the source of the difference.
    Levels { by: u8, why: &'static str },
    /// The same for `i16`.
    Shorts { by: u8, why: &'static str },
}

/// An array that both sides work on.
pub(crate) struct Array {
    pub(crate) bytes: Vec<u8>,
    pub(crate) check: Check,
    /// Refilled before each run, because a run modifies the input of the next.
    pub(crate) restore: bool,
}

impl Array {
    /// Read only.
    pub(crate) fn input(bytes: Vec<u8>) -> Self {
        Self { bytes, check: Check::No, restore: false }
    }

    /// So many zero bytes, compared.
    pub(crate) fn output(bytes: usize, check: Check) -> Self {
        Self { bytes: vec![0; bytes], check, restore: false }
    }

    /// Read, written and compared.
    pub(crate) fn inout(bytes: Vec<u8>, check: Check) -> Self {
        Self { bytes, check, restore: false }
    }

    /// The same, refilled before each run.
    pub(crate) fn restored(mut self) -> Self {
        self.restore = true;
        self
    }
}

/// An argument of a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value {
    /// The address of that array of the case.
    Array(usize),
    S32(i32),
    F32(f32),
}

/// One launch.
pub(crate) struct Step {
    pub(crate) kernel: &'static str,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) args: Vec<Value>,
}

/// One line of the table.
pub(crate) struct Case {
    /// For `--only`.
    pub(crate) name: &'static str,
    /// Size, for people.
    pub(crate) what: String,
    /// The largest allowed ratio, if the benchmark has a target.
    pub(crate) target: Option<f64>,
    /// `bench/PTX.ptx`.
    pub(crate) ptx: &'static str,
    /// The entry of the native program.
    pub(crate) native: &'static str,
    pub(crate) arrays: Vec<Array>,
    /// Numbers for the native program.
    pub(crate) numbers: Vec<f64>,
    /// Launches of one run, in order.
    pub(crate) steps: Vec<Step>,
}

impl Case {
    /// The name of the PTX file.
    pub(crate) fn file(&self) -> &'static str {
        self.ptx.rsplit_once('/').map_or(self.ptx, |(_, name)| name)
    }

    /// Compares an array with its expected contents; the error names the first difference.
    pub(crate) fn compare(&self, index: usize, got: &[u8], expected: &[u8]) -> Result<(), String> {
        let name = self.name;
        match self.arrays[index].check {
            Check::No => Ok(()),
            Check::Bytes => match got.iter().zip(expected).position(|(a, b)| a != b) {
                None if got.len() == expected.len() => Ok(()),
                None => Err(format!("{name}: {} bytes instead of {}", got.len(), expected.len())),
                Some(at) => Err(format!(
                    "{name}: array {index} differs at byte {at}: {} instead of {}",
                    got[at], expected[at]
                )),
            },
            Check::Floats { abs, rel, why } => {
                self.close(index, (abs.into(), rel.into(), 0.0, why), (floats(got), floats(expected)))
            }
            Check::MostFloats { abs, rel, share, why } => {
                self.close(index, (abs.into(), rel.into(), share, why), (floats(got), floats(expected)))
            }
            Check::Doubles { abs, rel, why } => {
                self.close(index, (abs, rel, 0.0, why), (doubles(got), doubles(expected)))
            }
            Check::Shorts { by, why } => {
                self.close(index, (by.into(), 0.0, 0.0, why), (shorts(got), shorts(expected)))
            }
            Check::Levels { by, why } => {
                self.close(index, (by.into(), 0.0, 0.0, why), (levels(got), levels(expected)))
            }
            Check::MostLevels { by, share, why } => {
                self.close(index, (by.into(), 0.0, share, why), (levels(got), levels(expected)))
            }
        }
    }

    /// Compares numbers within tolerances, except for a share of them. Equal infinities agree; a NaN agrees
    /// with nothing.
    fn close(
        &self,
        index: usize,
        (abs, rel, share, why): (f64, f64, f64, &str),
        (got, expected): (impl Iterator<Item = f64>, impl Iterator<Item = f64>),
    ) -> Result<(), String> {
        let name = self.name;
        let (mut count, mut differ, mut first) = (0, 0, None);
        for (got, expected) in got.zip(expected) {
            let off = if got == expected { 0.0 } else { (got - expected).abs() };
            if off.is_nan() || off > abs + rel * expected.abs() {
                differ += 1;
                first = first.or(Some((count, got, expected)));
            }
            count += 1;
        }
        match first {
            Some((at, got, expected)) if f64::from(differ) > share * f64::from(count) => Err(format!(
                "{name}: array {index} differs at {differ} of {count} elements, first at element {at}: {got} instead of {expected}, \
                 by more than {abs} + {rel} of it ({why})"
            )),
            _ => Ok(()),
        }
    }
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes.chunks_exact(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]])))
}

fn levels(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes.iter().map(|b| f64::from(*b))
}

fn shorts(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes.chunks_exact(2).map(|b| f64::from(i16::from_le_bytes([b[0], b[1]])))
}

fn doubles(bytes: &[u8]) -> impl Iterator<Item = f64> + '_ {
    bytes.chunks_exact(8).map(|b| f64::from_le_bytes([b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7]]))
}

/// A reproducible sequence of pseudo-random numbers.
pub(crate) struct Noise(u32);

impl Noise {
    pub(crate) fn new(seed: u32) -> Self {
        Self(seed.wrapping_mul(2_654_435_761) | 1)
    }

    /// A word of 32 random bits.
    pub(crate) fn word(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }

    /// `n` words, as bytes.
    pub(crate) fn words(&mut self, n: usize) -> Vec<u8> {
        (0..n).flat_map(|_| self.word().to_le_bytes()).collect()
    }

    /// `n` floats from `low` to `high`, as bytes.
    pub(crate) fn floats(&mut self, n: usize, low: f32, high: f32) -> Vec<u8> {
        let mut next = || low + (high - low) * ((self.word() >> 8) as f32 / 16_777_216.0);
        (0..n).flat_map(|_| next().to_le_bytes()).collect()
    }

    /// `n` halves between -1 and 1, multiples of 2^-10, as bytes.
    pub(crate) fn halves(&mut self, n: usize) -> Vec<u8> {
        let mut next = || {
            let word = self.word();
            let (sign, size) = ((word >> 31) as u16, (word >> 8 & 0x3ff) as u16);
            let bits = match size.checked_ilog2() {
                None => 0,
                // 2^high / 2^10 has the exponent high - 10, and the bits below the highest are the fraction.
                Some(high) => (high as u16 + 5) << 10 | (size << (10 - high)) & 0x3ff,
            };
            sign << 15 | bits
        };
        (0..n).flat_map(|_| next().to_le_bytes()).collect()
    }
}
