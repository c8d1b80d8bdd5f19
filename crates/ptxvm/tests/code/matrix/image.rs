//! Matrices in an image of memory, numbers as their types hold them, and the engines that run a test.

use crate::levels;
use ptxvm::{Cpu, Engine, Options, Target, Vm};

/// A machine and the engine that it runs kernels with.
pub(super) struct Machine {
    pub(super) vm: Vm,
    pub(super) engine: Engine,
}

impl std::ops::Deref for Machine {
    type Target = Vm;

    fn deref(&self) -> &Vm {
        &self.vm
    }
}

/// The interpreter, and native code of every level that this machine has. Unless `PTXVM_TESTS` is `full`,
/// LLVM does not optimise it, which takes most of the time.
pub(super) fn machines() -> Vec<Machine> {
    let made = |engine, target: Option<Target>| {
        let vm = Vm::with(Options { target, cache: levels::cache(), ..Options::default() }).ok()?;
        Some(Machine { vm, engine })
    };
    let mut machines: Vec<Machine> = made(Engine::Interp, None).into_iter().collect();
    if cfg!(feature = "jit") {
        let all = [Cpu::Avx512, Cpu::Avx2, Cpu::Baseline].into_iter();
        let mut targets: Vec<Target> =
            all.filter(|cpu| levels::is_available(*cpu)).map(Target::from).collect();
        if !levels::is_full() {
            targets.iter_mut().for_each(|target| *target = levels::unoptimised(*target));
        }
        let targets = targets.into_iter().rev();
        machines.extend(targets.filter_map(|target| made(Engine::Jit, Some(target))).filter(compiles));
    }
    assert!(!machines.is_empty());
    machines
}

/// One of the machines. Unless `PTXVM_TESTS` is `full`, mostly the interpreter (the first) or the best level
/// (the last), since LLVM needs several times as long for code with narrower vectors.
pub(super) fn any<'a>(machines: &'a [Machine], random: &mut Random) -> &'a Machine {
    let is_full = levels::is_full();
    let count = machines.len();
    let choice = random.range(0, 12 * count as i64 - 1) as usize;
    let index = match choice / count {
        0..5 if !is_full => 0,
        5..10 if !is_full => count - 1,
        _ => choice % count,
    };
    &machines[index]
}

/// Whether the processor has the level of the machine's native code.
fn compiles(machine: &Machine) -> bool {
    let text = ".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n";
    let module = machine.vm.load("empty.ptx", text).expect("a module");
    let kernel = module.kernel("k").expect("the kernel");
    let launch = ptxvm::Launch::new([1; 3], [1; 3]).threads(1).engine(machine.engine).args(&kernel, &[]);
    machine.vm.launch(&kernel, &launch.expect("arguments")).is_ok()
}

/// xorshift64: the same sequence in every run.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From `low` to `high`, both included.
    pub(super) fn range(&mut self, low: i64, high: i64) -> i64 {
        low + (self.next() >> 8) as i64 % (high - low + 1)
    }
}

/// An integer as `.f16`; exact up to 2048, and infinite beyond the type.
pub(super) fn half(x: i64) -> u16 {
    let sign = if x < 0 { 0x8000 } else { 0 };
    let magnitude = x.unsigned_abs();
    if magnitude == 0 {
        return 0;
    }
    let exponent = magnitude.ilog2();
    if exponent > 15 {
        return sign | 0x7c00;
    }
    let fraction = (magnitude << 10 >> exponent) as u16 & 0x3ff;
    assert!(exponent <= 10 || magnitude.trailing_zeros() >= exponent - 10, "{x} is no half");
    sign | (exponent as u16 + 15) << 10 | fraction
}

/// The value of a finite `.f16`.
pub(super) fn of_half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 0 { magnitude } else { -magnitude }
}

/// How a matrix lies in the image.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Of its first element, in bytes.
    pub(super) offset: usize,
    /// By rows, or by columns.
    pub(super) by_rows: bool,
    /// From row to row (or column to column), in elements.
    pub(super) stride: usize,
    /// Bits of an element.
    pub(super) bits: usize,
}

impl Place {
    /// Puts the low bits of a value at a row and column.
    pub(super) fn put(&self, image: &mut [u8], row: usize, column: usize, value: u64) {
        let (line, at) = if self.by_rows { (row, column) } else { (column, row) };
        let first = self.offset * 8 + (line * self.stride + at) * self.bits;
        for bit in 0..self.bits {
            let (byte, mask) = ((first + bit) / 8, 1 << ((first + bit) % 8));
            if value >> bit & 1 == 0 {
                image[byte] &= !mask;
            } else {
                image[byte] |= mask;
            }
        }
    }

    /// Bytes from the first element to the end of the last row (or column) with its gap.
    pub(super) fn bytes(&self, rows: usize, columns: usize) -> usize {
        let lines = if self.by_rows { rows } else { columns };
        lines * self.stride * self.bits / 8
    }
}
