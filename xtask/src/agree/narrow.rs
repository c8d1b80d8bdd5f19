//! Integers of few bits: loaded bytes and halves, and arithmetic whose results often have as few, so that
//! native code may compute them in lanes narrower than registers.
//!
//! Invariant: a thread stores to its own bytes and its own element of the columns only.

use super::forms::{PREDICATES, register};
use super::generate::Generator;

/// Numbers at the ends of narrow lanes.
const NUMBERS: &[u32] =
    &[0, 1, 2, 3, 7, 15, 16, 100, 127, 128, 200, 255, 256, 257, 1000, 32767, 32768, 65535];

/// The registers of a chain.
struct Pool {
    words: [String; 5],
    halves: [String; 2],
}

impl Generator<'_> {
    /// A chain of integer arithmetic that begins with few bits, with a branch in some cases.
    pub(super) fn narrow(&mut self) {
        let words = std::array::from_fn(|_| register(&mut self.random, 32));
        let halves = std::array::from_fn(|_| register(&mut self.random, 16));
        let pool = Pool { words, halves };
        self.line("and.b32 %n0, %u0, 255;");
        for at in 0..pool.words.len() {
            self.begin_narrow(&pool, at);
        }
        self.narrow_chain(&pool, 4, 20);
        if self.random.chance(30) {
            self.condition();
            let end = self.label();
            self.line(format!("@%q bra {end};"));
            self.diverged(false, |g| g.narrow_chain(&pool, 1, 6));
            self.fixed(format!("{end}:"));
            self.narrow_chain(&pool, 1, 8);
        }
        for _ in 0..1 + self.random.below(3) {
            self.store_narrow(&pool);
        }
    }

    /// A number of few bits in one of the registers.
    fn begin_narrow(&mut self, pool: &Pool, at: usize) {
        let (to, from) = (&pool.words[at], register(&mut self.random, 32));
        let text = match self.random.below(10) {
            0..=5 => {
                let bits = self.random.pick(&[8, 8, 8, 16]);
                let ty = self.random.pick(&["u", "u", "b", "s"]);
                let at = bits / 8 * self.random.below(64) as u32;
                let index = self.random.pick(&["%tid0", "%tid0", "%gid"]);
                format!(
                    "mul.wide.u32 %da, {index}, {};\nadd.s64 %da, %da, %inp;\nld.global.{ty}{bits} {to}, [%da+{at}];",
                    bits / 8
                )
            }
            6 | 7 => format!("and.b32 {to}, {from}, {};", self.random.pick(&[1, 15, 255, 4095, 65535])),
            8 => format!("shr.u32 {to}, {from}, {};", 12 + self.random.below(18)),
            _ => format!("cvt.u32.u8 {to}, {from};"),
        };
        self.line(text);
    }

    fn narrow_chain(&mut self, pool: &Pool, least: usize, more: usize) {
        for _ in 0..least + self.random.below(more) {
            let text = self.narrow_step(pool);
            let guard = if self.random.chance(6) { self.guard() } else { String::new() };
            self.line(format!("{guard}{text}"));
        }
    }

    fn narrow_step(&mut self, pool: &Pool) -> String {
        let mut word = || pool.words[self.random.below(5)].clone();
        let (to, a, other) = (word(), word(), word());
        let b = match self.random.below(10) {
            0 | 1 => self.random.pick(NUMBERS).to_string(),
            2 => "%n0".to_owned(),
            _ => other.clone(),
        };
        let half = |g: &mut Self| pool.halves[g.random.below(2)].clone();
        let sign = self.random.pick(&["u", "s"]);
        let p = self.random.below(PREDICATES);
        match self.random.below(24) {
            0..=3 => format!("add.{sign}32 {to}, {a}, {b};"),
            4 => format!("sub.{sign}32 {to}, {a}, {b};"),
            5..=8 => format!("{}.{sign}32 {to}, {a}, {b};", self.random.pick(&["min", "max"])),
            9 => format!("mul.lo.{sign}32 {to}, {a}, {};", self.random.pick(&[2, 3, 29, 77, 150, 255])),
            10 => format!("mad.lo.{sign}32 {to}, {a}, {}, {b};", self.random.pick(&[2, 3, 29, 77, 150, 255])),
            11 => format!("shl.b32 {to}, {a}, {};", self.random.below(10)),
            12 | 13 => format!("shr.{sign}32 {to}, {a}, {};", self.random.below(18)),
            14 => format!("{}.b32 {to}, {a}, {b};", self.random.pick(&["and", "or", "xor"])),
            15 => format!("and.b32 {to}, {a}, {};", self.random.pick(&[1, 127, 255, 1023, 65535])),
            16 => format!("selp.b32 {to}, {a}, {b}, %p{p};"),
            17 | 18 => {
                let cmp = self.random.pick(&["eq", "ne", "lt", "le", "gt", "ge"]);
                format!("setp.{cmp}.{sign}32 %p{p}, {a}, {b};")
            }
            19 => {
                let op = self.random.pick(&["and", "or", "xor"]);
                let others = [self.random.below(PREDICATES), self.random.below(PREDICATES)];
                format!("{op}.pred %p{p}, %p{}, %p{};", others[0], others[1])
            }
            20 => format!("cvt.u32.{} {to}, {a};", self.random.pick(&["u8", "u16", "s8", "s16"])),
            21 => format!("cvt.u16.u32 {}, {a};", half(self)),
            22 => format!("cvt.{sign}32.{sign}16 {to}, {};", half(self)),
            _ => {
                let (to, a, b) = (half(self), half(self), half(self));
                format!("{}.{sign}16 {to}, {a}, {b};", self.random.pick(&["add", "min", "max", "mul.lo"]))
            }
        }
    }

    fn store_narrow(&mut self, pool: &Pool) {
        let bits = self.random.pick(&[8, 8, 8, 16, 32]);
        let value = match bits {
            8 | 16 if self.random.chance(20) => pool.halves[self.random.below(2)].clone(),
            _ => pool.words[self.random.below(5)].clone(),
        };
        let at = bits / 8 * self.random.below(16 * 8 / bits as usize) as u32;
        let place = match self.random.chance(50) && !self.function {
            true => format!("%col+{}", self.random.below(8) as u32 * self.threads() * 16 + at),
            false => format!("%own+{at}"),
        };
        self.line(format!("st.global.b{bits} [{place}], {value};"));
    }
}
