//! Programs in which groups of one warp wait for each other.
//!
//! A warp splits into arms, and each arm reaches the same warp-synchronous instructions or barriers at its
//! own place. So lanes wait in the frame while others run on, call functions, leave native code and return.
//!
//! Invariants: all lanes of a member mask arrive equally often, or exit. A value is read only from a lane
//! that takes part.

use super::forms::{PREDICATES, register};
use super::generate::{Generator, Together};
use super::taste::Taste;
use ptx::isa::Op;

/// The instruction at which arms meet, without the registers, which may differ between arms.
#[derive(Clone, Debug)]
enum Meeting {
    /// A barrier of all threads of the CTA, optionally with a comma and their number.
    Cta(String),
    CtaRed(&'static str, usize),
    Warp,
    Ballot,
    Vote(&'static str),
    /// From the first lane.
    Shuffle,
    Butterfly(u32),
    Match(u32),
    Redux(&'static str),
}

impl Generator<'_> {
    /// Adds arms that meet.
    pub(super) fn apart(&mut self, depth: u32) {
        let everyone = self.together == Together::All && self.full_warps && !self.exits;
        if self.masks == 4 || (self.taste == Taste::Coarse && !everyone) {
            return self.lane();
        }
        // A coarse warp knows the members only if they are a constant.
        let number = everyone && (self.taste == Taste::Coarse || self.random.chance(30));
        let mask = if number { "0xffffffff".to_owned() } else { format!("%w{}", self.masks) };
        self.masks += 1;
        let cta = self.uniform && !self.function && self.random.chance(40);
        let count = 1 + self.random.below(3);
        let mut meetings: Vec<Meeting> = (0..count).map(|_| self.meeting(cta, everyone)).collect();
        // In one arm the meetings are in a loop, in the other they follow each other.
        let repeated = self.random.chance(35);
        if repeated {
            meetings = vec![meetings[0].clone(); 2];
        }
        let arms = if self.random.chance(70) { 2 } else { 3 };
        if !number {
            self.line(format!("activemask.b32 {mask};"));
        }
        let loops = std::mem::take(&mut self.loops);
        let end = self.label();
        for arm in 0..arms {
            let next = self.label();
            if arm + 1 < arms {
                self.condition();
                let not = if self.random.chance(50) { "!" } else { "" };
                self.line(format!("@{not}%q bra {next};"));
            }
            self.diverged(false, |g| {
                if repeated && arm == 0 {
                    g.repeated(depth, &mask, &meetings[0]);
                } else {
                    for meeting in &meetings {
                        g.between(depth);
                        g.meet(meeting, &mask);
                    }
                }
                g.between(depth);
            });
            if arm + 1 < arms {
                self.line(format!("bra {end};"));
            }
            self.fixed(format!("{next}:"));
        }
        self.fixed(format!("{end}:"));
        self.loops = loops;
        self.masks -= 1;
    }

    /// Two iterations of a loop.
    fn repeated(&mut self, depth: u32, mask: &str, meeting: &Meeting) {
        let top = self.label();
        self.fixed(format!("mov.u32 %x{depth}, 1;\n{top}:"));
        self.between(depth.max(2));
        self.meet(meeting, mask);
        self.fixed(format!(
            "sub.s32 %x{depth}, %x{depth}, 1;\nsetp.ge.s32 %q, %x{depth}, 0;\n@%q bra {top};"
        ));
    }

    /// Statements of an arm before a meeting.
    fn between(&mut self, depth: u32) {
        match self.random.below(9) {
            0 | 1 => self.lane(),
            2 if !self.functions.is_empty() && !self.function => self.call(),
            3 if self.exits => self.exit(),
            4 => self.memory(),
            5 => self.warp_store(),
            6 if self.taste == Taste::Coarse => self.lane(),
            6 => self.warp(),
            7 => {
                self.lane();
                self.stepped();
            }
            _ => self.statements(depth + 1),
        }
    }

    fn meeting(&mut self, cta: bool, everyone: bool) -> Meeting {
        if cta {
            let id = self.random.below(3);
            return match self.random.below(5) {
                0 => Meeting::CtaRed("popc.u32", id),
                1 => Meeting::CtaRed(self.random.pick(&["and.pred", "or.pred"]), id),
                _ => Meeting::Cta(id.to_string()),
            };
        }
        if self.taste == Taste::Coarse {
            return match self.random.below(4) {
                0 => Meeting::Warp,
                1 => Meeting::Ballot,
                2 => Meeting::Vote(self.random.pick(&["all", "any", "uni"])),
                _ => Meeting::Shuffle,
            };
        }
        let redux = !self.forms.rows(Op::ReduxSync, |_| true).is_empty();
        match self.random.below(9) {
            0..=1 => Meeting::Warp,
            2 => Meeting::Ballot,
            3 => Meeting::Vote(self.random.pick(&["all", "any", "uni"])),
            4 | 5 if !self.exits => Meeting::Shuffle,
            6 if everyone => Meeting::Butterfly(self.random.pick(&[1, 2, 8, 16, 31])),
            7 => Meeting::Match(self.random.pick(&[32, 64])),
            8 if redux => Meeting::Redux(self.random.pick(&["add.u32", "min.s32", "max.u32", "xor.b32"])),
            _ => Meeting::Warp,
        }
    }

    fn meet(&mut self, meeting: &Meeting, mask: &str) {
        let (d, a) = (register(&mut self.random, 32), register(&mut self.random, 32));
        let (p, other) = (self.random.below(PREDICATES), self.random.below(PREDICATES));
        let text = match meeting {
            Meeting::Cta(id) => format!("barrier.sync {id};"),
            Meeting::CtaRed(op, id) if op.ends_with("pred") => {
                format!("barrier.red.{op} %p{p}, {id}, %p{other};")
            }
            Meeting::CtaRed(op, id) => format!("barrier.red.{op} {d}, {id}, %p{p};"),
            Meeting::Warp => format!("bar.warp.sync {mask};"),
            Meeting::Ballot => format!("vote.sync.ballot.b32 {d}, %p{p}, {mask};"),
            Meeting::Vote(mode) => format!("vote.sync.{mode}.pred %p{p}, %p{other}, {mask};"),
            Meeting::Shuffle => format!(
                "mov.u32 %ta, {mask};\nbrev.b32 %ta, %ta;\nclz.b32 %ta, %ta;\nshfl.sync.idx.b32 {d}, {a}, %ta, 31, {mask};"
            ),
            // Where all threads are together, the mask contains all lanes.
            Meeting::Butterfly(lane) => format!("shfl.sync.bfly.b32 {d}, {a}, {lane}, 31, {mask};"),
            Meeting::Match(bits) => {
                let value = register(&mut self.random, *bits);
                format!("match.any.sync.b{bits} {d}, {value}, {mask};")
            }
            Meeting::Redux(op) => format!("redux.sync.{op} {d}, {a}, {mask};"),
        };
        self.line(text);
    }
}
