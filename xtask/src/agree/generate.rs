//! Generates a program from a seed: initialised registers, statements under structured and unstructured
//! control flow, and finally stores of all state of a thread.
//!
//! Invariants: the program is accepted. Every loop decrements a counter that no other statement writes.
//! Addresses stay within memory that the thread may access. A value stored by one thread is read by another
//! only after a barrier, or within one warp, whose order is fixed. Threads of several warps modify shared
//! values only by operations whose order does not matter. So the result does not depend on the schedule. With
//! misdeeds ([`super::misdeed`]) the program ends in a trap.
//!
//! Registers `%h %r %d %p` with numbers are operands of instructions. Registers with other names (`%own`,
//! `%ta`, `%c0`) belong to the generator, and no instruction from the table writes them.

use super::forms::{Forms, PREDICATES, SINGLE, register};
use super::program::{Line, Program};
use super::random::Random;
use super::taste::{self, Taste};
use ptx::isa::Op;
use std::sync::LazyLock;

/// Versions and targets, so that old and new rows are both used.
const LEVELS: &[(&str, &str)] = &[
    ("6.4", "sm_70"),
    ("6.4", "sm_70"),
    ("8.0", "sm_90"),
    ("7.0", "sm_80"),
    ("5.0", "sm_60"),
    ("6.3", "sm_70"),
];

/// The lanes that member masks may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Together {
    /// All threads of the warp arrive.
    All,
    /// Only the active lanes arrive.
    Active,
}

/// The state of the generator.
pub(super) struct Generator<'a> {
    pub(super) random: Random,
    pub(super) forms: &'a Forms,
    pub(super) lines: Vec<Line>,
    labels: u32,
    /// Loop counters in use.
    pub(super) counters: usize,
    /// Masks of waiting groups in use.
    pub(super) masks: usize,
    /// Whether threads of a CTA combine values.
    pub(super) combined: bool,
    /// Whether a long loop may still be generated.
    long: bool,
    pub(super) taste: Taste,
    /// Bytes of columns and rows.
    pub(super) bytes: u32,
    /// Statements that may still be generated.
    budget: u32,
    /// Misdeeds that are still to be generated.
    pub(super) misdeeds: u32,
    /// Whether all threads of the CTA arrive here.
    pub(super) uniform: bool,
    pub(super) together: Together,
    /// Whether clocks are read: then warps never run as coarse warps.
    clocks: bool,
    /// Whether threads may exit early.
    pub(super) exits: bool,
    /// In a device function: no barriers, no shared memory.
    pub(super) function: bool,
    /// Targets of `break` and `continue` of the enclosing loops, innermost last.
    pub(super) loops: Vec<(String, String)>,
    pub(super) functions: Vec<String>,
    /// Whether every warp of a CTA has 32 threads.
    pub(super) full_warps: bool,
    pub(super) grid: [u32; 3],
    pub(super) block: [u32; 3],
}

/// All levels for which programs are generated. They are computed once, because that takes seconds.
pub(crate) fn levels() -> &'static [Forms] {
    static ALL: LazyLock<Vec<Forms>> =
        LazyLock::new(|| LEVELS.iter().filter_map(|(version, target)| Forms::new(version, target)).collect());
    &ALL
}

/// The program of a seed; with `traps`, one that traps in most cases.
pub(crate) fn program(levels: &[Forms], seed: u64, traps: bool) -> Program {
    let mut random = Random::new(seed);
    let taste = random.pick(&[
        Taste::Any,
        Taste::Any,
        Taste::Any,
        Taste::Coarse,
        Taste::Apart,
        Taste::Rows,
        Taste::Picture,
    ]);
    let forms = loop {
        let forms = &levels[random.below(levels.len())];
        if taste != Taste::Apart || forms.has(6, 0, 70) {
            break forms;
        }
    };
    let (grid, block) = taste::shapes(&mut random, taste);
    // Most are small, because compile time grows with the size and most bugs need little code; some are
    // large.
    let size = match random.below(80) {
        0 => random.pick(&[12, 16, 30]),
        1..=10 => random.pick(&[5, 6, 8]),
        _ => random.pick(&[1, 2, 2, 3, 3, 4]),
    };
    let mut generator = Generator {
        exits: random.chance(25),
        clocks: !taste.is_coarse() && random.chance(15),
        full_warps: block.iter().product::<u32>().is_multiple_of(32),
        random,
        forms,
        lines: Vec::new(),
        labels: 0,
        counters: 0,
        masks: 0,
        combined: false,
        long: true,
        taste,
        bytes: 0,
        budget: size,
        misdeeds: 0,
        uniform: true,
        together: Together::All,
        function: false,
        loops: Vec::new(),
        functions: Vec::new(),
        grid,
        block,
    };
    if traps {
        generator.misdeeds = generator.random.pick(&[1, 1, 1, 2, 3]);
    }
    generator.module();
    Program { lines: generator.lines, grid, block, data: seed, bytes: generator.bytes.next_multiple_of(64) }
}

impl Generator<'_> {
    pub(super) fn fixed(&mut self, text: impl Into<String>) {
        self.lines.push(Line { text: text.into(), fixed: true });
    }

    pub(super) fn line(&mut self, text: impl Into<String>) {
        self.lines.push(Line { text: text.into(), fixed: false });
    }

    pub(super) fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn module(&mut self) {
        let (version, target) = (self.forms.version, self.forms.target);
        self.fixed(format!(".version {version}\n.target {target}\n.address_size 64"));
        let words: Vec<String> = (0..64).map(|_| format!("{}", self.random.value(32))).collect();
        self.fixed(format!(".const .align 16 .b32 table[64] = {{{}}};", words.join(", ")));
        let functions = match self.taste {
            Taste::Any if self.budget > 3 => self.random.pick(&[0, 0, 1, 2]),
            Taste::Any => self.random.pick(&[0, 0, 0, 1]),
            Taste::Coarse | Taste::Rows | Taste::Picture => 0,
            Taste::Apart => self.random.pick(&[0, 1, 1]),
        };
        for index in 0..functions {
            self.device_function(index);
        }
        self.fixed(
            ".visible .entry main(.param .u64 p_out, .param .u64 p_in, .param .u64 p_columns, .param .u64 p_common, .param .u32 p_a, \
             .param .f32 p_b, .param .u64 p_c)\n{",
        );
        let head = std::mem::take(&mut self.lines);
        if self.taste == Taste::Coarse && self.exits {
            // Exited threads take no part in later barriers of the coarse warp.
            self.exit();
            self.barrier();
        }
        if self.taste == Taste::Picture && self.exits {
            self.beyond_picture();
        }
        self.statements(0);
        while self.misdeeds > 0 {
            self.misdeed();
        }
        self.dump();
        self.fixed("exit;\n}");
        let body = std::mem::replace(&mut self.lines, head);
        self.declarations();
        self.fixed(".shared .align 16 .b8 sh[16384];\n.shared .align 16 .b8 tile[4096];");
        // Kernels with local memory have no coarse warps.
        if body.iter().any(|line| line.text.contains("loc")) {
            self.fixed(".local .align 16 .b8 loc[128];");
        }
        let mut items = self.places();
        if self.taste == Taste::Picture {
            items.extend(self.picture_items());
        }
        items.extend(self.first_values(!self.taste.is_alone()));
        self.begin(items, body);
    }

    /// Threads of the grid, rounded so that a row ends at an aligned address.
    pub(super) fn threads(&self) -> u32 {
        (self.block.iter().product::<u32>() * self.grid.iter().product::<u32>()).next_multiple_of(16)
    }

    /// Bytes of the columns, in each of which a thread has 16 bytes adjacent to its neighbours'.
    pub(super) fn columns(&self) -> u32 {
        8 * 16 * self.threads()
    }

    /// Warps of the grid.
    pub(super) fn warps(&self) -> u32 {
        self.block.iter().product::<u32>().div_ceil(32) * self.grid.iter().product::<u32>()
    }

    /// Whether threads may have exited before the end.
    pub(super) fn may_exit(&self) -> bool {
        self.exits
    }

    /// Generates statements until the budget of this level is used.
    pub(super) fn statements(&mut self, depth: u32) {
        let mut here = if depth == 0 { u32::MAX } else { 1 + self.random.below(6) as u32 };
        while self.budget > 0 && here > 0 {
            self.budget -= 1;
            here -= 1;
            if self.misdeeds > 0 && self.random.chance(30) {
                self.misdeed();
            }
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u32) {
        match self.taste {
            Taste::Any => {}
            Taste::Coarse => match self.random.below(100) {
                0..=13 if self.uniform => return self.barrier(),
                14..=20 => return self.warp_store(),
                21..=23 if depth < 2 => return self.long_loop(),
                24..=27 if self.exits => return self.exit(),
                28..=32 if depth < 2 && self.forms.has(6, 0, 70) => return self.apart(depth),
                33..=40 => return self.atomics(),
                _ => {}
            },
            Taste::Apart => match self.random.below(100) {
                0..=21 if depth < 3 => return self.apart(depth),
                22..=27 => return self.warp_store(),
                28..=30 if depth < 2 => return self.long_loop(),
                31..=40 if !self.functions.is_empty() && !self.function => return self.call(),
                41..=44 => return self.stepped(),
                _ => {}
            },
            Taste::Rows => return self.alone(depth),
            Taste::Picture => match self.random.below(100) {
                0..=59 => return self.taps(),
                _ => return self.alone(depth),
            },
        }
        match self.random.below(100) {
            0..=34 => self.lane(),
            35..=36 => self.doubles(),
            37..=39 => self.narrow(),
            40..=55 => self.memory(),
            56..=57 => self.warp_store(),
            58..=59 => self.walk(),
            60..=61 => self.stepped(),
            62..=67 if self.uniform && !self.function => self.barrier(),
            62..=72 => self.warp(),
            73 if self.forms.has(6, 0, 70) && depth < 3 => self.apart(depth),
            74..=75 if !self.functions.is_empty() && !self.function => self.call(),
            76..=78 if self.exits || self.function => self.exit(),
            79 => self.leave_loop(),
            _ if depth >= 4 => self.lane(),
            80..=86 => self.branch(depth),
            87..=92 => self.turns(depth),
            93 if depth < 2 => self.long_loop(),
            94..=95 if self.forms.has(6, 0, 30) => self.switch(depth),
            96..=97 if depth < 2 => self.graph(),
            _ => self.lane(),
        }
    }

    /// A statement that neither exchanges anything between threads nor depends on the warp.
    fn alone(&mut self, depth: u32) {
        match self.random.below(100) {
            0..=29 => self.lane(),
            30..=31 => self.doubles(),
            32..=36 => self.narrow(),
            37..=69 => {
                let op = self.random.pick(&[Op::Ld, Op::Ld, Op::LdNc, Op::St, Op::St]);
                self.access(op);
            }
            70..=74 => self.words(),
            75 if self.exits => self.exit(),
            76..=77 => self.leave_loop(),
            _ if depth >= 4 => self.lane(),
            78..=86 => self.branch(depth),
            87..=94 => self.turns(depth),
            95..=96 if depth < 2 => self.long_loop(),
            97..=98 if self.forms.has(6, 0, 30) => self.switch(depth),
            _ => self.lane(),
        }
    }

    /// A guard, in some cases.
    pub(super) fn guard(&mut self) -> String {
        if !self.random.chance(15) {
            return String::new();
        }
        let not = if self.random.chance(50) { "!" } else { "" };
        format!("@{not}%p{} ", self.random.below(PREDICATES))
    }

    /// A guard, or none.
    pub(super) fn some(&mut self) -> String {
        if self.random.chance(50) { format!("@%p{} ", self.random.below(PREDICATES)) } else { String::new() }
    }

    pub(super) fn lane(&mut self) {
        let guard = self.guard();
        if self.clocks && self.random.chance(50) {
            let (bits, clock) = self.random.pick(&[(32, "%clock"), (32, "%clock_hi"), (64, "%clock64")]);
            let to = register(&mut self.random, bits);
            return self.line(format!("{guard}mov.u{bits} {to}, {clock};"));
        }
        let text = loop {
            let text = self.forms.lane(&mut self.random);
            if !self.taste.is_coarse() || super::forms::is_plain(&text) {
                break text;
            }
        };
        self.line(format!("{guard}{text}"));
    }

    /// Arithmetic in double precision on few registers, so that results are operands. Registers have any
    /// bits, so there are infinities and NaNs of all kinds.
    fn doubles(&mut self) {
        let pool: [String; 4] = std::array::from_fn(|_| register(&mut self.random, 64));
        for _ in 0..2 + self.random.below(14) {
            let mut operand = || match self.random.below(12) {
                0 => register(&mut self.random, 64),
                1 => format!("0d{:016X}", self.random.value(64)),
                _ => pool[self.random.below(4)].clone(),
            };
            let (a, b, c, to) = (operand(), operand(), operand(), &pool[self.random.below(4)]);
            let text = match self.random.below(20) {
                0..=3 => format!("add.rn.f64 {to}, {a}, {b};"),
                4..=6 => format!("sub.f64 {to}, {a}, {b};"),
                7..=9 => format!("mul.f64 {to}, {a}, {b};"),
                10..=14 => format!("fma.rn.f64 {to}, {a}, {b}, {c};"),
                15 => format!("neg.f64 {to}, {a};"),
                16 => format!("div.rn.f64 {to}, {a}, {b};"),
                17 => {
                    self.random.pick(&["sqrt.rn", "rcp.rn", "abs"]).to_owned() + &format!(".f64 {to}, {a};")
                }
                18 => format!("setp.lt.f64 %p{}, {a}, {b};", self.random.below(PREDICATES)),
                _ => format!("cvt.rn.f32.f64 {}, {a};", register(&mut self.random, 32)),
            };
            let guard = if self.random.chance(10) { self.guard() } else { String::new() };
            self.line(format!("{guard}{text}"));
        }
    }

    /// An instruction that native code leaves to the interpreter, at least for some of its words, or
    /// matrices.
    pub(super) fn stepped(&mut self) {
        if self.taste.is_coarse() {
            return self.lane();
        }
        if self.uniform
            && self.together == Together::All
            && self.full_warps
            && !self.exits
            && self.random.chance(30)
        {
            return self.matrices();
        }
        let guard = self.guard();
        let text = self.forms.stepped(&mut self.random);
        self.line(format!("{guard}{text}"));
    }

    /// Sets `%q`. Returns whether it is equal in all threads of the CTA.
    pub(super) fn condition(&mut self) -> bool {
        let cmp = self.random.pick(&["eq", "ne", "lt", "ge", "gt", "le"]);
        match self.random.below(8) {
            0 => {
                let n = self.random.below(3);
                self.line(format!("setp.{cmp}.u32 %q, %u1, {n};"));
                true
            }
            1 => {
                let bit = 1 << self.random.below(32);
                self.line(format!("and.b32 %ta, %u0, {bit};\nsetp.eq.u32 %q, %ta, 0;"));
                true
            }
            2 => {
                let bit = 1 << self.random.below(6);
                self.line(format!("and.b32 %ta, %gid, {bit};\nsetp.eq.u32 %q, %ta, 0;"));
                false
            }
            3 => {
                let n = self.random.below(70);
                self.line(format!("setp.{cmp}.u32 %q, %tid0, {n};"));
                false
            }
            4 => {
                let (a, b) = (register(&mut self.random, 32), register(&mut self.random, 32));
                let ty = self.random.pick(&["s32", "u32", "f32"]);
                self.line(format!("setp.{cmp}.{ty} %q, {a}, {b};"));
                false
            }
            5 => {
                let (a, b) = (register(&mut self.random, 64), register(&mut self.random, 64));
                let ty = self.random.pick(&["s64", "u64", "f64"]);
                self.line(format!("setp.{cmp}.{ty} %q, {a}, {b};"));
                false
            }
            _ => {
                let (p, other) = (self.random.below(PREDICATES), self.random.below(PREDICATES));
                let op = self.random.pick(&["and", "or", "xor"]);
                self.line(format!("{op}.pred %q, %p{p}, %p{other};"));
                false
            }
        }
    }

    /// Generates `body` in a place that only some threads reach.
    pub(super) fn diverged(&mut self, uniform: bool, body: impl FnOnce(&mut Self)) {
        let before = (self.uniform, self.together);
        if !uniform {
            (self.uniform, self.together) = (false, Together::Active);
        }
        body(self);
        (self.uniform, self.together) = before;
    }

    fn branch(&mut self, depth: u32) {
        let uniform = self.condition();
        let not = if self.random.chance(50) { "!" } else { "" };
        let uni = if uniform && self.uniform && self.random.chance(50) { ".uni" } else { "" };
        let end = self.label();
        if self.random.chance(50) {
            let other = self.label();
            self.line(format!("@{not}%q bra{uni} {other};"));
            self.diverged(uniform, |g| g.statements(depth + 1));
            self.line(format!("bra{uni} {end};"));
            self.fixed(format!("{other}:"));
            self.diverged(uniform, |g| g.statements(depth + 1));
        } else {
            self.line(format!("@{not}%q bra{uni} {end};"));
            self.diverged(uniform, |g| g.statements(depth + 1));
        }
        self.fixed(format!("{end}:"));
    }

    /// A loop with its own counter.
    fn turns(&mut self, depth: u32) {
        if self.counters == 8 {
            return self.lane();
        }
        let counter = format!("%c{}", self.counters);
        self.counters += 1;
        let uniform = match self.random.below(4) {
            0 | 1 => {
                let turns = 1 + self.random.below(5);
                self.line(format!("mov.u32 {counter}, {turns};"));
                true
            }
            2 => {
                let bits = self.random.pick(&[1, 3, 7]);
                self.line(format!("and.b32 {counter}, %gid, {bits};"));
                false
            }
            _ => {
                let from = register(&mut self.random, 32);
                self.line(format!("and.b32 {counter}, {from}, 3;"));
                false
            }
        };
        // A thread can leave such a loop alone, so statements inside cannot assume that all threads are
        // present.
        let leaves = self.random.chance(50);
        let (top, next, end) = (self.label(), self.label(), self.label());
        self.fixed(format!("{top}:"));
        let tested_first = self.random.chance(50);
        if tested_first || !uniform {
            self.fixed(format!("setp.le.s32 %q, {counter}, 0;\n@%q bra {end};"));
        }
        if leaves {
            self.loops.push((end.clone(), next.clone()));
        }
        let around = if leaves { Vec::new() } else { std::mem::take(&mut self.loops) };
        self.diverged(uniform && !leaves, |g| g.statements(depth + 1));
        if leaves {
            self.loops.pop();
        } else {
            self.loops = around;
        }
        self.fixed(format!("{next}:"));
        self.fixed(format!("sub.s32 {counter}, {counter}, 1;"));
        if tested_first || !uniform {
            self.fixed(format!("bra {top};"));
        } else {
            self.fixed(format!("setp.gt.s32 %q, {counter}, 0;\n@%q bra {top};"));
        }
        self.fixed(format!("{end}:"));
        self.counters -= 1;
    }

    /// A loop with few statements and so many iterations that native code yields in it.
    fn long_loop(&mut self) {
        if self.counters > 0
            || self.function
            || self.warps() > 24
            || !std::mem::replace(&mut self.long, false)
        {
            return self.lane();
        }
        let turns = match self.random.below(12) {
            0 if self.threads() <= 256 => 9000,
            _ => self.random.pick(&[500, 520, 600, 1100]),
        };
        self.line(format!("mov.u32 %c0, {turns};"));
        let uniform = self.random.chance(60);
        if !uniform {
            let from =
                if self.random.chance(50) { "%gid".to_owned() } else { register(&mut self.random, 32) };
            self.line(format!("and.b32 %ta, {from}, 63;\nadd.u32 %c0, %c0, %ta;"));
        }
        self.counters += 1;
        let top = self.label();
        self.fixed(format!("{top}:"));
        self.lane();
        if self.taste.is_alone() {
            self.lane();
        } else if uniform && self.uniform && turns < 600 && self.random.chance(40) {
            self.exchange();
        } else if turns < 9000 && self.random.chance(30) {
            self.diverged(false, |g| g.warp());
        } else {
            self.lane();
        }
        self.fixed(format!("sub.s32 %c0, %c0, 1;\nsetp.gt.s32 %q, %c0, 0;\n@%q bra {top};"));
        self.counters -= 1;
    }

    fn leave_loop(&mut self) {
        let Some((end, next)) = self.loops.last().cloned() else { return self.lane() };
        let to = if self.random.chance(50) { end } else { next };
        self.condition();
        self.line(format!("@%q bra {to};"));
    }

    pub(super) fn exit(&mut self) {
        // Threads that return from a function are still waited for.
        if self.function && !self.exits && self.masks > 0 {
            return self.lane();
        }
        self.condition();
        let how = if self.function && self.masks > 0 {
            "exit"
        } else if self.exits {
            self.random.pick(&["exit", "ret"])
        } else {
            "ret"
        };
        self.line(format!("@%q {how};"));
    }

    fn switch(&mut self, depth: u32) {
        let count = 2 + self.random.below(3);
        let (end, list) = (self.label(), self.label());
        let labels: Vec<String> = (0..count).map(|_| self.label()).collect();
        let uniform = self.random.chance(30);
        let from = if uniform { "%u1".to_owned() } else { register(&mut self.random, 32) };
        self.line(format!(
            "and.b32 %ta, {from}, 3;\nmin.u32 %ta, %ta, {};\n{list}: .branchtargets {};\nbrx.idx %ta, {list};",
            count - 1,
            labels.join(", ")
        ));
        for label in labels {
            self.fixed(format!("{label}:"));
            self.diverged(uniform, |g| g.statements(depth + 2));
            // Some arms fall through into the next.
            if self.random.chance(70) {
                self.line(format!("bra {end};"));
            }
        }
        self.fixed(format!("{end}:"));
    }

    /// Blocks that jump to each other in any order while the fuel lasts.
    fn graph(&mut self) {
        let count = 2 + self.random.below(4);
        let end = self.label();
        let labels: Vec<String> = (0..count).map(|_| self.label()).collect();
        let fuel = 2 + self.random.below(10);
        self.fixed(format!("add.u32 %fuel, %u2, {fuel};"));
        let (loops, exits) = (std::mem::take(&mut self.loops), self.exits);
        self.counters += 1;
        for label in &labels {
            self.fixed(format!("{label}:"));
            self.fixed(format!("sub.s32 %fuel, %fuel, 1;\nsetp.lt.s32 %q, %fuel, 0;\n@%q bra {end};"));
            self.diverged(false, |g| {
                for _ in 0..1 + g.random.below(3) {
                    match g.random.below(10) {
                        0..=5 => g.lane(),
                        6..=7 => g.memory(),
                        _ => g.warp(),
                    }
                }
            });
            self.condition();
            let to = labels[self.random.below(count)].clone();
            self.line(format!("@%q bra {to};"));
            if self.random.chance(50) {
                let to = if self.random.chance(25) {
                    end.clone()
                } else {
                    labels[self.random.below(count)].clone()
                };
                self.line(format!("bra {to};"));
            }
        }
        self.counters -= 1;
        (self.loops, self.exits) = (loops, exits);
        self.fixed(format!("{end}:"));
    }

    /// A function of three arguments with one result.
    fn device_function(&mut self, index: usize) {
        let name = format!("f{index}");
        self.fixed(format!(
            ".func (.param .b32 result) {name}(.param .b32 a, .param .b64 b, .param .b64 c)\n{{"
        ));
        let head = std::mem::take(&mut self.lines);
        let (budget, before) = (self.budget, (self.uniform, self.together));
        (self.uniform, self.together, self.function) = (false, Together::Active, true);
        self.budget = 1 + self.random.below(budget.min(8) as usize) as u32;
        self.fixed("st.param.b32 [result], %r0;");
        if self.random.chance(20) {
            // Recurses with a smaller argument until it is zero.
            let end = self.label();
            self.line(format!("and.b32 %c7, %r0, 3;\nsetp.eq.u32 %q, %c7, 0;\n@%q bra {end};"));
            self.line(format!(
                "{{\n.param .b32 a0;\n.param .b64 a1;\n.param .b64 a2;\n.param .b32 r0;\nsub.u32 %c7, %c7, 1;\nst.param.b32 [a0], %c7;\n\
                 st.param.b64 [a1], %inp;\nst.param.b64 [a2], %own;\ncall (r0), {name}, (a0, a1, a2);\nld.param.b32 %r1, [r0];\n}}"
            ));
            self.fixed(format!("{end}:"));
        }
        self.statements(0);
        (self.budget, self.function) = (budget, false);
        (self.uniform, self.together) = before;
        let from = self.random.below(SINGLE);
        self.line(format!("st.param.b32 [result], %r{from};"));
        self.fixed("ret;\n}");
        let body = std::mem::replace(&mut self.lines, head);
        self.declarations();
        self.fixed(".local .align 16 .b8 loc[128];");
        let set = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        // Earlier calls may have left other values.
        let stores = (0..8).map(|i| format!("st.local.v4.b32 [loc+{}], {{%gid, %ta, %gid, %gid}};", 16 * i));
        let stores = stores.collect::<Vec<_>>().join("\n");
        let mut items = vec![
            set("%own", "ld.param.b64 %own, [c];"),
            set("%inp", "ld.param.b64 %inp, [b];"),
            set("%tid0", "mov.u32 %tid0, %laneid;"),
            set("%gid", "mov.u32 %gid, %laneid;"),
            set("%u0", "mov.u32 %u0, 77;"),
            set("%u1", "mov.u32 %u1, %ctaid.x;"),
            set("%u2", "mov.u32 %u2, 3;"),
            set("%live", "mov.u32 %live, 0;"),
            set("loc", &format!("mov.u32 %ta, 0x01020304;\n{stores}")),
            set("%gloc", "mov.u64 %gloc, loc;\ncvta.local.u64 %gloc, %gloc;"),
        ];
        items.extend(self.first_values(false));
        // The argument replaces its initial value.
        items.push(set("%r0", "ld.param.b32 %r0, [a];"));
        self.begin(items, body);
        self.functions.push(name);
    }

    pub(super) fn call(&mut self) {
        let name = self.functions[self.random.below(self.functions.len())].clone();
        let (a, result) = (register(&mut self.random, 32), register(&mut self.random, 32));
        let guard = self.guard();
        let arguments = format!(
            ".param .b32 a0;\n.param .b64 a1;\n.param .b64 a2;\n.param .b32 r0;\nst.param.b32 [a0], {a};\nst.param.b64 [a1], %inp;\n\
             st.param.b64 [a2], %own;"
        );
        let indirect = self.random.chance(25);
        // A guarded call that is not executed leaves its result parameter unset.
        let text = if indirect {
            let (first, second) = (self.functions[0].clone(), name);
            let prototype = self.label();
            let p = self.random.below(PREDICATES);
            format!(
                "mov.u64 %fp, {first};\nmov.u64 %da, {second};\nselp.b64 %fp, %fp, %da, %p{p};\n{{\n{arguments}\n\
                 {prototype}: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _, .param .b64 _);\n\
                 call (r0), %fp, (a0, a1, a2), {prototype};\nld.param.b32 {result}, [r0];\n}}"
            )
        } else if guard.is_empty() {
            format!("{{\n{arguments}\ncall (r0), {name}, (a0, a1, a2);\nld.param.b32 {result}, [r0];\n}}")
        } else {
            let skip = self.label();
            let guard = guard.trim_end();
            format!(
                "{guard} bra {skip};\n{{\n{arguments}\ncall (r0), {name}, (a0, a1, a2);\nld.param.b32 {result}, [r0];\n}}\n{skip}:"
            )
        };
        self.line(text);
    }
}
