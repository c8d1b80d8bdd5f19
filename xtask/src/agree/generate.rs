//! A program from a seed: registers with first values, statements under structured and unstructured control flow, and at the end
//! everything that a thread holds stored where it can be compared.
//!
//! Invariants: the program is accepted; every loop counts something down that nothing else writes; addresses stay within what the
//! thread may access; what one thread stores no other reads without a barrier between, and what threads of several warps share they
//! only combine by operations whose order does not matter. So the result does not depend on the schedule.
//!
//! Registers `%h %r %d %p` with numbers are what instructions work on; those with other names (`%own`, `%ta`, `%c0`) belong to the
//! generator, and no instruction from the table writes them.

use super::forms::{DOUBLE, Forms, HALF, PREDICATES, SINGLE, register};
use super::program::{Line, Program};
use super::random::Random;
use super::run::{COLUMNS, COMMON, OWN, ROWS, SLOT, THREADS, WARP};
use std::collections::BTreeSet;

/// Shapes of CTAs, most of them odd.
const BLOCKS: &[[u32; 3]] = &[
    [1, 1, 1],
    [7, 1, 1],
    [31, 1, 1],
    [32, 1, 1],
    [33, 1, 1],
    [64, 1, 1],
    [64, 1, 1],
    [100, 1, 1],
    [128, 1, 1],
    [8, 8, 1],
    [16, 16, 1],
    [32, 4, 1],
    [5, 9, 1],
    [3, 5, 7],
    [2, 2, 40],
    [33, 3, 1],
];
const GRIDS: &[[u32; 3]] = &[[1, 1, 1], [1, 1, 1], [2, 1, 1], [3, 1, 1], [5, 1, 1], [2, 2, 1], [1, 2, 2]];
/// Version and target, so that old and new rows both take part.
const LEVELS: &[(&str, &str)] = &[
    ("6.4", "sm_70"),
    ("6.4", "sm_70"),
    ("8.0", "sm_90"),
    ("7.0", "sm_80"),
    ("5.0", "sm_60"),
    ("6.3", "sm_70"),
];

/// Which lanes warp-synchronous instructions may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Together {
    /// All threads of the warp come here.
    All,
    /// Those that are active, whichever they are.
    Active,
}

/// A program in the making.
pub(super) struct Generator<'a> {
    pub(super) random: Random,
    pub(super) forms: &'a Forms,
    pub(super) lines: Vec<Line>,
    labels: u32,
    /// Loop counters in use.
    counters: usize,
    /// Statements that may still be made.
    budget: u32,
    /// Whether all threads of the CTA come here.
    pub(super) uniform: bool,
    pub(super) together: Together,
    /// Whether threads may exit early.
    exits: bool,
    /// In a device function: no barriers, no shared memory.
    pub(super) function: bool,
    /// Where `break` and `continue` go, of the loops around, innermost last.
    loops: Vec<(String, String)>,
    functions: Vec<String>,
    /// Whether every warp of a CTA has 32 threads.
    pub(super) full_warps: bool,
    grid: [u32; 3],
    block: [u32; 3],
}

/// All levels that programs are made for.
pub(crate) fn levels() -> Vec<Forms> {
    LEVELS.iter().filter_map(|(version, target)| Forms::new(version, target)).collect()
}

/// The program of a seed.
pub(crate) fn program(levels: &[Forms], seed: u64) -> Program {
    let mut random = Random::new(seed);
    let forms = &levels[random.below(levels.len())];
    let (grid, block) = (random.pick(GRIDS), random.pick(BLOCKS));
    // Most are small, since what compiling takes grows with what is compiled and most mistakes need little to show; some are not.
    let size = match random.below(20) {
        0 => random.pick(&[8, 12, 16, 30]),
        1..=4 => random.pick(&[4, 6, 8]),
        _ => random.pick(&[1, 2, 2, 3, 3, 4]),
    };
    let mut generator = Generator {
        exits: random.chance(25),
        full_warps: block.iter().product::<u32>().is_multiple_of(32),
        random,
        forms,
        lines: Vec::new(),
        labels: 0,
        counters: 0,
        budget: size,
        uniform: true,
        together: Together::All,
        function: false,
        loops: Vec::new(),
        functions: Vec::new(),
        grid,
        block,
    };
    generator.module();
    debug_assert!(grid.iter().product::<u32>() * block.iter().product::<u32>() <= THREADS);
    Program { lines: generator.lines, grid, block, data: seed }
}

impl Generator<'_> {
    pub(super) fn fixed(&mut self, text: impl Into<String>) {
        self.lines.push(Line { text: text.into(), fixed: true });
    }

    pub(super) fn line(&mut self, text: impl Into<String>) {
        self.lines.push(Line { text: text.into(), fixed: false });
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("L{}", self.labels)
    }

    fn module(&mut self) {
        let (version, target) = (self.forms.version, self.forms.target);
        self.fixed(format!(".version {version}\n.target {target}\n.address_size 64"));
        let words: Vec<String> = (0..64).map(|_| format!("{}", self.random.value(32))).collect();
        self.fixed(format!(".const .align 16 .b32 table[64] = {{{}}};", words.join(", ")));
        let functions =
            if self.budget > 3 { self.random.pick(&[0, 0, 1, 2]) } else { self.random.pick(&[0, 0, 0, 1]) };
        for index in 0..functions {
            self.device_function(index);
        }
        self.fixed(
            ".visible .entry main(.param .u64 p_out, .param .u64 p_in, .param .u64 p_columns, .param .u64 p_common, .param .u32 p_a, \
             .param .f32 p_b, .param .u64 p_c)\n{",
        );
        let head = std::mem::take(&mut self.lines);
        self.statements(0);
        self.dump();
        self.fixed("exit;\n}");
        let body = std::mem::replace(&mut self.lines, head);
        self.declarations();
        self.fixed(".shared .align 16 .b8 sh[16384];\n.local .align 16 .b8 loc[128];");
        let mut items = self.places();
        items.extend(self.first_values());
        self.begin(items, body);
    }

    /// What a kernel knows of itself: each register of the generator, with the lines that give it its value.
    fn places(&mut self) -> Vec<(String, String)> {
        let item = |name: &str, text: String| (name.to_owned(), text);
        let row = |bytes: u32| {
            let name = format!("%row{bytes}");
            let text = format!(
                "ld.param.u64 %da, [p_columns];\nmul.wide.u32 {name}, %gid, {bytes};\nadd.s64 {name}, %da, {name};"
            );
            (name, text)
        };
        let flat = self.block[1] * self.block[2] == 1;
        let tid0 = match flat {
            true => "mov.u32 %tid0, %tid.x;".to_owned(),
            false => "mov.u32 %t0, %tid.x;\nmov.u32 %t1, %tid.y;\nmov.u32 %t2, %tid.z;\nmov.u32 %n0, %ntid.x;\nmov.u32 %n1, %ntid.y;\n\
                      mad.lo.u32 %tid0, %t2, %n1, %t1;\nmad.lo.u32 %tid0, %tid0, %n0, %t0;"
                .to_owned(),
        };
        let all = match flat {
            true => "mov.u32 %all, %ntid.x;".to_owned(),
            false => "mov.u32 %n0, %ntid.x;\nmov.u32 %n1, %ntid.y;\nmov.u32 %n2, %ntid.z;\nmul.lo.u32 %all, %n0, %n1;\n\
                      mul.lo.u32 %all, %all, %n2;"
                .to_owned(),
        };
        let cta = match self.grid[1] * self.grid[2] == 1 {
            true => "mov.u32 %cta, %ctaid.x;".to_owned(),
            false => "mov.u32 %t0, %ctaid.x;\nmov.u32 %t1, %ctaid.y;\nmov.u32 %t2, %ctaid.z;\nmov.u32 %n0, %nctaid.x;\n\
                      mov.u32 %n1, %nctaid.y;\nmad.lo.u32 %cta, %t2, %n1, %t1;\nmad.lo.u32 %cta, %cta, %n0, %t0;"
                .to_owned(),
        };
        let live = match self.forms.has(6, 2, 30) {
            true => "activemask.b32 %live;".to_owned(),
            false => "mov.u32 %live, 0xffffffff;".to_owned(),
        };
        vec![
            item("%tid0", tid0),
            item("%all", all),
            item("%cta", cta),
            item("%gid", "mad.lo.u32 %gid, %cta, %all, %tid0;".to_owned()),
            item(
                "%slot",
                format!("ld.param.u64 %da, [p_out];\nmul.wide.u32 %slot, %gid, {SLOT};\nadd.s64 %slot, %da, %slot;"),
            ),
            item("%own", format!("add.s64 %own, %slot, {OWN};")),
            item("%inp", "ld.param.u64 %inp, [p_in];".to_owned()),
            item("%col", "ld.param.u64 %da, [p_columns];\nmul.wide.u32 %col, %gid, 16;\nadd.s64 %col, %da, %col;".to_owned()),
            item("%com", "ld.param.u64 %com, [p_common];".to_owned()),
            item("%row1", "ld.param.u64 %row1, [p_columns];\ncvt.u64.u32 %da, %gid;\nadd.s64 %row1, %row1, %da;".to_owned()),
            row(2),
            row(4),
            row(8),
            // The warps of a CTA are numbered by the thread number, whatever %warpid says.
            item(
                "%wrp",
                format!(
                    "add.u32 %t0, %all, 31;\nshr.u32 %t0, %t0, 5;\nshr.u32 %t1, %tid0, 5;\nmad.lo.u32 %t0, %cta, %t0, %t1;\n\
                     mul.wide.u32 %wrp, %t0, {WARP};\nadd.s64 %wrp, %wrp, %com;\nadd.s64 %wrp, %wrp, {COMMON};"
                ),
            ),
            item("%sh", "mov.u32 %sh, sh;".to_owned()),
            item("%shown", "mad.lo.u32 %shown, %tid0, 32, %sh;".to_owned()),
            item("%shx", "mad.lo.u32 %shx, %tid0, 8, %sh;\nadd.u32 %shx, %shx, 8192;".to_owned()),
            item("%u0", "ld.param.u32 %u0, [p_a];".to_owned()),
            item("%u1", "mov.u32 %u1, %ctaid.x;".to_owned()),
            item("%u2", "mov.u32 %u2, 3;".to_owned()),
            item("%gsh", "cvt.u64.u32 %gsh, %shown;\ncvta.shared.u64 %gsh, %gsh;".to_owned()),
            item("%live", live),
            item(
                "loc",
                // The rest is zero.
                "mov.u32 %ta, 0x01020304;\nst.local.v4.b32 [loc], {%ta, %tid0, %gid, %ta};\nst.local.b32 [loc+20], %gid;\n\
                 st.local.b32 [loc+120], %tid0;"
                    .to_owned(),
            ),
            item("%gloc", "mov.u64 %gloc, loc;\ncvta.local.u64 %gloc, %gloc;".to_owned()),
        ]
    }

    /// Puts before `body` what it needs of `items`, each of which may need earlier ones.
    fn begin(&mut self, items: Vec<(String, String)>, body: Vec<Line>) {
        let mut needed: BTreeSet<String> = BTreeSet::new();
        let words = |text: &str, needed: &mut BTreeSet<String>| {
            let words = text.split(|c: char| !c.is_alphanumeric() && !"%_".contains(c));
            needed.extend(words.map(str::to_owned));
        };
        body.iter().for_each(|line| words(&line.text, &mut needed));
        let mut kept = Vec::new();
        for (name, text) in items.into_iter().rev() {
            if needed.contains(&name) {
                words(&text, &mut needed);
                kept.push(text);
            }
        }
        kept.into_iter().rev().for_each(|text| self.fixed(text));
        self.lines.extend(body);
    }

    /// Whether threads may have exited before the end.
    pub(super) fn may_exit(&self) -> bool {
        self.exits
    }

    fn declarations(&mut self) {
        self.fixed(format!(
            ".reg .b16 %h<{HALF}>;\n.reg .b32 %r<{SINGLE}>;\n.reg .b64 %d<{DOUBLE}>;\n.reg .pred %p<{PREDICATES}>;\n.reg .pred %q, %qq;\n\
             .reg .b32 %ta, %tb, %c<8>, %u<3>, %t<3>, %n<3>, %tid0, %all, %cta, %gid, %sh, %shown, %shx, %fuel, %live, %am;\n\
             .reg .b64 %da, %db, %b16, %b32, %b64, %own, %slot, %inp, %col, %com, %wrp, %gsh, %gloc, %fp,\
             %row1, %row2, %row4, %row8;"
        ));
    }

    /// Every register gets a value that depends on the lane, or does not.
    fn first_values(&mut self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (letter, count, bits) in [('h', HALF, 16), ('r', SINGLE, 32), ('d', DOUBLE, 64)] {
            let bytes = bits / 8;
            all.push((
                format!("%b{bits}"),
                format!("mul.wide.u32 %b{bits}, %tid0, {bytes};\nadd.s64 %b{bits}, %b{bits}, %inp;"),
            ));
            for i in 0..count {
                let at = self.random.below(512) * 64;
                let text = match self.random.below(6) {
                    0 => format!("mov.b{bits} %{letter}{i}, 0x{:x};", self.random.value(bits) >> 1),
                    1 => format!("cvt.u{bits}.u32 %{letter}{i}, %gid;"),
                    2 => format!("ld.global.b{bits} %{letter}{i}, [%inp+{at}];"),
                    _ => format!("ld.global.b{bits} %{letter}{i}, [%b{bits}+{at}];"),
                };
                all.push((format!("%{letter}{i}"), text));
            }
        }
        for i in 0..PREDICATES {
            let bit = self.random.below(7);
            all.push((
                format!("%p{i}"),
                format!("and.b32 %ta, %gid, {};\nsetp.eq.u32 %p{i}, %ta, 0;", 1 << bit),
            ));
        }
        all
    }

    /// Stores everything that the thread holds, of what is used at all.
    fn dump(&mut self) {
        let text: String = self.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
        let mut words: BTreeSet<&str> =
            text.split(|c: char| !c.is_alphanumeric() && !"%_".contains(c)).collect();
        words.remove("");
        let used = |name: String| words.contains(name.as_str()).then_some(name);
        // Behind the columns each register has a row, in which neighbours are neighbours.
        let mut stores = Vec::new();
        let mut next = COLUMNS;
        let mut row = |bytes: u32| {
            let at = next;
            next += THREADS * bytes;
            format!("[%row{bytes}+{at}]")
        };
        for (letter, count, bits) in [('r', SINGLE, 32), ('d', DOUBLE, 64), ('h', HALF, 16)] {
            for name in (0..count).filter_map(|i| used(format!("%{letter}{i}"))) {
                stores.push(format!("st.global.b{bits} {}, {name};", row(bits / 8)));
            }
        }
        for name in (0..PREDICATES).filter_map(|i| used(format!("%p{i}"))) {
            stores.push(format!("selp.u32 %ta, 1, 0, {name};\nst.global.u8 {}, %ta;", row(1)));
        }
        if words.contains("loc") || words.contains("%gloc") {
            for at in [0, 8, 16, 24] {
                stores.push(format!("ld.local.b64 %da, [loc+{at}];\nst.global.b64 {}, %da;", row(8)));
            }
        }
        if !self.exits && text.contains(".shared.") {
            // The words that threads of the CTA combined.
            stores.push(format!(
                "bar.sync 0;\nrem.u32 %ta, %tid0, {};\nshl.b32 %ta, %ta, 2;\nadd.u32 %ta, %ta, %sh;\n\
                 ld.shared.b32 %tb, [%ta+12288];\nst.global.b32 {}, %tb;",
                super::memory::COMBINED / 4,
                row(4)
            ));
        }
        debug_assert!(next <= COLUMNS + THREADS * ROWS, "rows within the buffer");
        stores.into_iter().for_each(|store| self.line(store));
    }

    /// Statements until the budget of this level is used.
    pub(super) fn statements(&mut self, depth: u32) {
        let mut here = if depth == 0 { u32::MAX } else { 1 + self.random.below(6) as u32 };
        while self.budget > 0 && here > 0 {
            self.budget -= 1;
            here -= 1;
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: u32) {
        match self.random.below(100) {
            0..=43 => self.lane(),
            44..=61 => self.memory(),
            62..=67 if self.uniform && !self.function => self.barrier(),
            62..=73 => self.warp(),
            74..=75 if !self.functions.is_empty() && !self.function => self.call(),
            76..=77 if self.exits && !self.function => self.exit(),
            78..=79 => self.leave_loop(),
            _ if depth >= 4 => self.lane(),
            80..=87 => self.branch(depth),
            88..=93 => self.turns(depth),
            94..=95 if self.forms.has(6, 0, 30) => self.switch(depth),
            96..=97 if depth < 2 => self.graph(),
            _ => self.lane(),
        }
    }

    /// A guard, sometimes.
    pub(super) fn guard(&mut self) -> String {
        if !self.random.chance(15) {
            return String::new();
        }
        let not = if self.random.chance(50) { "!" } else { "" };
        format!("@{not}%p{} ", self.random.below(PREDICATES))
    }

    fn lane(&mut self) {
        let guard = self.guard();
        let text = self.forms.lane(&mut self.random);
        self.line(format!("{guard}{text}"));
    }

    /// Sets `%q`. Whether it is the same in all threads of the CTA.
    fn condition(&mut self) -> bool {
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

    /// Runs `body` where only some threads come.
    fn diverged(&mut self, uniform: bool, body: impl FnOnce(&mut Self)) {
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

    /// A loop with a counter of its own.
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
        // A thread may leave such a loop alone, so nobody inside can count on all being there.
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

    fn leave_loop(&mut self) {
        let Some((end, next)) = self.loops.last().cloned() else { return self.lane() };
        let to = if self.random.chance(50) { end } else { next };
        self.condition();
        self.line(format!("@%q bra {to};"));
    }

    fn exit(&mut self) {
        self.condition();
        let how = self.random.pick(&["exit", "ret"]);
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
            // Some fall through into the next.
            if self.random.chance(70) {
                self.line(format!("bra {end};"));
            }
        }
        self.fixed(format!("{end}:"));
    }

    /// Blocks that jump anywhere among themselves, while the fuel lasts.
    fn graph(&mut self) {
        let count = 2 + self.random.below(4);
        let end = self.label();
        let labels: Vec<String> = (0..count).map(|_| self.label()).collect();
        let fuel = 2 + self.random.below(10);
        self.fixed(format!("add.u32 %fuel, %u2, {fuel};"));
        let (loops, exits) = (std::mem::take(&mut self.loops), self.exits);
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
            // Down to nothing, each time with less.
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
        // Earlier calls may have left anything.
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
        items.extend(self.first_values());
        // The argument, whatever its first value was.
        items.push(set("%r0", "ld.param.b32 %r0, [a];"));
        self.begin(items, body);
        self.functions.push(name);
    }

    fn call(&mut self) {
        let name = self.functions[self.random.below(self.functions.len())].clone();
        let (a, result) = (register(&mut self.random, 32), register(&mut self.random, 32));
        let guard = self.guard();
        let arguments = format!(
            ".param .b32 a0;\n.param .b64 a1;\n.param .b64 a2;\n.param .b32 r0;\nst.param.b32 [a0], {a};\nst.param.b64 [a1], %inp;\n\
             st.param.b64 [a2], %own;"
        );
        let indirect = self.random.chance(25);
        // A guarded call leaves its result parameter unset where it is not made.
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
