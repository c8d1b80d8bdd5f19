//! Instructions that lanes of a warp, or warps of a CTA, execute together.
//!
//! Invariant: a member mask contains only lanes that arrive; a value is read only from a lane that takes
//! part.

use super::forms::{PREDICATES, register};
use super::generate::{Generator, Together};
use super::taste::Taste;
use ptx::isa::Op;
use std::fmt::Write as _;

impl Generator<'_> {
    pub(super) fn warp(&mut self) {
        let d = register(&mut self.random, 32);
        let p = self.random.below(PREDICATES);
        let a = register(&mut self.random, 32);
        let not = if self.random.chance(30) { "!" } else { "" };
        if !self.forms.has(6, 2, 30) {
            if self.taste == Taste::Coarse {
                return self.lane();
            }
            // Without masks: the active lanes.
            let text = match self.random.below(4) {
                0 => format!("vote.ballot.b32 {d}, {not}%p{p};"),
                1 => {
                    let mode = self.random.pick(&["all", "any", "uni"]);
                    format!("vote.{mode}.pred %p{}, {not}%p{p};", self.random.below(PREDICATES))
                }
                // The lane itself always takes part.
                _ => format!("shfl.idx.b32 {d}|%p{p}, {a}, %tid0, 31;"),
            };
            let guard = if self.random.chance(30) { self.guard() } else { String::new() };
            return self.line(format!("{guard}{text}"));
        }
        let everyone = self.together == Together::All && self.full_warps && !self.may_exit();
        let (before, mask) = if everyone && self.random.chance(60) {
            (String::new(), self.random.pick(&["0xffffffff", "%live"]))
        } else {
            ("activemask.b32 %am;\n".to_owned(), "%am")
        };
        let everyone = everyone && before.is_empty();
        let bits = self.random.pick(&[32, 32, 64]);
        let value = register(&mut self.random, bits);
        let text = match self.random.below(12) {
            0..=4 => self.shuffle(&d, &a, everyone, mask),
            5 => format!("vote.sync.ballot.b32 {d}, {not}%p{p}, {mask};"),
            6 => {
                let mode = self.random.pick(&["all", "any", "uni"]);
                format!("vote.sync.{mode}.pred %p{}, {not}%p{p}, {mask};", self.random.below(PREDICATES))
            }
            7 if self.forms.has(6, 0, 70) && self.taste != Taste::Coarse => {
                format!("match.any.sync.b{bits} {d}, {value}, {mask};")
            }
            8 if self.forms.has(6, 0, 70) && self.taste != Taste::Coarse => {
                format!("match.all.sync.b{bits} {d}|%p{p}, {value}, {mask};")
            }
            9 if self.taste != Taste::Coarse && !self.forms.rows(Op::ReduxSync, |_| true).is_empty() => {
                let op = self.random.pick(&[
                    "add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32", "and.b32", "or.b32",
                    "xor.b32",
                ]);
                format!("redux.sync.{op} {d}, {a}, {mask};")
            }
            10 => format!("bar.warp.sync {mask};"),
            _ => format!("activemask.b32 {d};"),
        };
        self.line(format!("{before}{text}"));
    }

    fn shuffle(&mut self, d: &str, a: &str, everyone: bool, mask: &str) -> String {
        let pair = if self.random.chance(50) {
            format!("|%p{}", self.random.below(PREDICATES))
        } else {
            String::new()
        };
        if !everyone {
            // From the first participating lane.
            return format!(
                "brev.b32 %ta, {mask};\nclz.b32 %ta, %ta;\nshfl.sync.idx.b32 {d}{pair}, {a}, %ta, 31, {mask};"
            );
        }
        if self.random.chance(20) {
            return self.butterfly(d, a, mask);
        }
        let mode = self.random.pick(&["up", "down", "bfly", "idx"]);
        let lane = match self.random.below(3) {
            0 => register(&mut self.random, 32),
            _ => self.random.pick(&["0", "1", "2", "4", "8", "16", "31", "5"]).to_owned(),
        };
        let clamp = match self.random.below(5) {
            0 => register(&mut self.random, 32),
            1 => self.random.pick(&["0x181f", "0x1c1f", "0x1000", "0x1e1f", "7"]).to_owned(),
            _ if mode == "up" => "0".to_owned(),
            _ => "31".to_owned(),
        };
        format!("shfl.sync.{mode}.b32 {d}{pair}, {a}, {lane}, {clamp}, {mask};")
    }

    /// Combines all lanes of a warp, mostly so that they get the same value.
    fn butterfly(&mut self, d: &str, a: &str, mask: &str) -> String {
        const COMMUTE: &[&str] = &[
            "add.u32",
            "mul.lo.u32",
            "min.s32",
            "max.u32",
            "and.b32",
            "or.b32",
            "xor.b32",
            "add.f32",
            "mul.f32",
            "min.f32",
            "max.f32",
        ];
        let mut text = format!("mov.b32 %tb, {a};");
        let mut steps = [16, 8, 4, 2, 1];
        for at in 0..steps.len() {
            let other = self.random.below(steps.len());
            steps.swap(at, other);
        }
        for step in steps {
            let op = if self.random.chance(3) { "sub.u32" } else { self.random.pick(COMMUTE) };
            if self.random.chance(95) {
                let (first, second) = if self.random.chance(50) { ("%ta", "%tb") } else { ("%tb", "%ta") };
                write!(
                    text,
                    "\nshfl.sync.bfly.b32 %ta, %tb, {step}, 31, {mask};\n{op} %tb, {first}, {second};"
                )
                .expect("a string takes it");
            }
        }
        format!("{text}\nmov.b32 {d}, %tb;")
    }

    /// All warps of the CTA together.
    pub(super) fn barrier(&mut self) {
        let bar = if self.forms.has(6, 0, 30) { self.random.pick(&["bar", "barrier"]) } else { "bar" };
        let id = self.random.below(4);
        let p = self.random.below(PREDICATES);
        match self.random.below(11) {
            0 => self.line(format!("{bar}.sync {id};")),
            // The count includes exited threads.
            1 if !self.may_exit() => self.line(format!(
                "add.u32 %ta, %all, 31;\nand.b32 %ta, %ta, 0xffffffe0;\n{bar}.sync {id}, %ta;"
            )),
            2 => {
                let d = register(&mut self.random, 32);
                self.line(format!("{bar}.red.popc.u32 {d}, {id}, %p{p};"));
            }
            3 => {
                let op = self.random.pick(&["and", "or"]);
                let d = self.random.below(PREDICATES);
                self.line(format!("{bar}.red.{op}.pred %p{d}, {id}, %p{p};"));
            }
            4 | 5 => self.exchange(),
            6 => self.publish(),
            _ => self.tile(),
        }
    }
}
