//! Statements that trap: one or a few per program, in all its threads or in some, among legal statements.
//!
//! Invariant: a misdeed that a thread executes is a trap of a kind that the manual or
//! `ptx_exec::trap::FaultKind` names, under every schedule. If there are several, the reported one depends
//! only on the order of CTAs and warps, so both engines must report the same one.

use super::forms::{DOUBLE, register};
use super::generate::Generator;
use super::run::INPUT;

/// Addresses outside of all allocations of a device.
const NOWHERE: &[u64] =
    &[0, 1, 4, 8, 0x10, 0xffff_ffff, 0x7fff_ffff_ffff_fff0, 0x8000_0000_0000_0000, u64::MAX - 7, u64::MAX];
/// Widths of an access in bytes, with type and vector.
const WIDTHS: &[(u64, &str)] = &[
    (1, "u8"),
    (2, "u16"),
    (4, "u32"),
    (4, "f32"),
    (8, "b64"),
    (8, "v2.b32"),
    (16, "v4.b32"),
    (16, "v2.b64"),
];

impl Generator<'_> {
    /// A misdeed that most or few threads execute.
    pub(super) fn misdeed(&mut self) {
        self.misdeeds -= 1;
        let guard = self.culprits();
        // Other kinds exchange something, or belong to the CTA.
        let kinds = if self.taste.is_alone() { 7 } else { 20 };
        match self.random.below(kinds) {
            0..=2 => {
                let address = self.random.pick(NOWHERE);
                self.line(format!("mov.u64 %da, {address};"));
                let space = self.random.pick(&["global", ""]);
                self.touch(&guard, space, "%da", 1);
            }
            3..=6 => self.beside_input(&guard),
            7..=8 => self.odd(&guard),
            9..=10 => self.beyond_window(&guard),
            11..=12 => self.constant(&guard),
            13..=14 => self.wrong_atomic(&guard),
            15 => self.line(format!("{guard}trap;")),
            16 if !self.functions.is_empty() && !self.function => self.wild_call(&guard),
            17 if self.forms.has(6, 0, 30) => self.wrong_index(&guard),
            18 if self.forms.has(6, 0, 70) => {
                self.line(format!("mov.b32 %ta, 0;\n{guard}bar.warp.sync %ta;"));
            }
            _ => {
                let query = self.random.pick(&["txq.width.b32", "txq.height.b32", "suq.width.b32"]);
                let (to, handle) = (self.unused(), self.random.below(9));
                self.line(format!("mov.u64 %da, {handle};\n{guard}{query} {to}, [%da];"));
            }
        }
    }

    /// A guard that selects the threads which trap.
    fn culprits(&mut self) -> String {
        // In the programs of neighbouring CTAs, the first CTA is not often the one that traps.
        let cases = if self.taste.is_alone() { &[0, 1, 1, 1, 3][..] } else { &[0, 1, 2, 3, 4] };
        match self.random.pick(cases) {
            0 => return String::new(),
            1 => {
                let n = self.random.below(self.threads() as usize);
                let cmp = if self.taste.is_alone() { "ge" } else { "eq" };
                self.line(format!("setp.{cmp}.u32 %q, %gid, {n};"));
            }
            2 => {
                let n = self.random.below(self.block.iter().product::<u32>() as usize);
                self.line(format!("setp.ge.u32 %q, %tid0, {n};"));
            }
            _ => {
                self.condition();
            }
        }
        "@%q ".to_owned()
    }

    /// A register that is used later, or one that is not.
    fn unused(&mut self) -> String {
        if self.random.chance(50) { "%tb".to_owned() } else { register(&mut self.random, 32) }
    }

    /// A load or store at an address, of at least `least` bytes.
    fn touch(&mut self, guard: &str, space: &str, address: &str, least: u64) {
        let (bytes, ty) = loop {
            let width = self.random.pick(WIDTHS);
            if width.0 >= least {
                break width;
            }
        };
        let count = if ty.starts_with("v4") { 4 } else { 1 + usize::from(ty.starts_with("v2")) };
        let wide = bytes as usize / count == 8;
        let load = space == "const" || self.random.chance(50);
        let mut one = |_| match (wide, load && self.random.chance(50)) {
            (false, true) => "%tb".to_owned(),
            (true, true) => "%db".to_owned(),
            (false, false) => register(&mut self.random, 32),
            (true, false) => format!("%d{}", self.random.below(DOUBLE)),
        };
        // The elements of a vector that is loaded must differ.
        let mut elements: Vec<String> = (0..count).map(&mut one).collect();
        elements.sort();
        elements.dedup();
        if elements.len() < count {
            let letter = if wide { 'd' } else { 'r' };
            elements = (0..count).map(|i| format!("%{letter}{i}")).collect();
        }
        let list = if count == 1 { elements.remove(0) } else { format!("{{{}}}", elements.join(", ")) };
        let dot = if space.is_empty() { "" } else { "." };
        self.line(match load {
            true => format!("{guard}ld{dot}{space}.{ty} {list}, [{address}];"),
            false => format!("{guard}st{dot}{space}.{ty} [{address}], {list};"),
        });
    }

    /// An access just outside of the input, or partly outside.
    fn beside_input(&mut self, guard: &str) {
        let end = INPUT as i64;
        let offset = self.random.pick(&[-16, -8, -1, end, end + 8, end - 4, end - 2, end - 1, end + 128]);
        self.line(format!("add.s64 %da, %inp, {offset};"));
        let space = self.random.pick(&["global", ""]);
        self.touch(guard, space, "%da", if offset < end { 16 } else { 1 });
    }

    /// A misaligned address, in any state space.
    fn odd(&mut self, guard: &str) {
        let by: u64 = self.random.pick(&[1, 2, 4, 8, 3, 6]);
        let space = match self.random.below(4) {
            0 if !self.function => {
                self.line(format!("add.u32 %ta, %sh, {by};\ncvt.u64.u32 %da, %ta;"));
                "shared"
            }
            1 => {
                self.line(format!("mov.u64 %da, loc;\nadd.s64 %da, %da, {by};"));
                "local"
            }
            n => {
                self.line(format!("add.s64 %da, %own, {by};"));
                if n == 2 { "" } else { "global" }
            }
        };
        // `%own` is a multiple of 64.
        self.touch(guard, space, "%da", if by == 8 { 16 } else { 2 * (by & by.wrapping_neg()) });
    }

    /// An access beyond the end of shared or local memory.
    fn beyond_window(&mut self, guard: &str) {
        let at = self.random.pick(&["0x100000", "0x10000000", "0xfffffff0", "0xc000"]);
        let space = self.random.pick(&["shared", "local"]);
        // The kernel's shared memory ends far before the first of them.
        let at = if space == "local" && at == "0xc000" { "0xfff00000" } else { at };
        self.line(format!("mov.u64 %da, {at};"));
        self.touch(guard, space, "%da", 1);
    }

    /// An access beyond constants, or a store to them.
    fn constant(&mut self, guard: &str) {
        self.line("mov.u64 %da, table;");
        if self.random.chance(50) {
            let by: i64 = self.random.pick(&[0x10_0000, -0x10_0000, 0x4000_0000]);
            self.line(format!("add.s64 %da, %da, {by};"));
            self.touch(guard, "const", "%da", 1);
        } else {
            let value = register(&mut self.random, 32);
            self.line(format!("cvta.const.u64 %da, %da;\n{guard}st.u32 [%da], {value};"));
        }
    }

    /// An atomic operation at a misaligned or unallocated address.
    fn wrong_atomic(&mut self, guard: &str) {
        let nowhere = self.random.pick(NOWHERE);
        match self.random.below(3) {
            0 => self.line(format!("mov.u64 %da, {nowhere};")),
            1 => self.line("add.s64 %da, %own, 2;"),
            _ => self.line(format!("add.s64 %da, %inp, {INPUT};")),
        }
        let (value, to) = (register(&mut self.random, 32), self.unused());
        let text = match self.random.below(4) {
            0 => format!("atom.global.add.u32 {to}, [%da], {value};"),
            1 => format!("red.global.max.s32 [%da], {value};"),
            2 => format!("atom.cas.b32 {to}, [%da], {value}, 3;"),
            _ => format!("red.global.add.f32 [%da], {value};"),
        };
        self.line(format!("{guard}{text}"));
    }

    /// A call through a value that is not a function address.
    fn wild_call(&mut self, guard: &str) {
        let (skip, prototype) = (self.label(), self.label());
        let value = self.random.pick(&["0", "1", "0x1234567", "0xffffffffffffffff"]);
        let not = match guard.is_empty() {
            true => String::new(),
            false => format!("@!%q bra {skip};\n"),
        };
        self.line(format!(
            "mov.u64 %fp, {value};\n{not}{{\n.param .b32 a0;\n.param .b64 a1;\n.param .b64 a2;\n.param .b32 r0;\nst.param.b32 [a0], %ta;\n\
             st.param.b64 [a1], %inp;\nst.param.b64 [a2], %own;\n\
             {prototype}: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _, .param .b64 _);\n\
             call (r0), %fp, (a0, a1, a2), {prototype};\n}}\n{skip}:"
        ));
    }

    /// A branch with an index beyond its list.
    fn wrong_index(&mut self, guard: &str) {
        let (end, list) = (self.label(), self.label());
        let index = self.random.pick(&["2", "3", "0xffffffff"]);
        let set = match guard.is_empty() {
            true => format!("mov.u32 %ta, {index};"),
            false => format!("selp.u32 %ta, {index}, 1, %q;"),
        };
        self.line(format!("{set}\n{list}: .branchtargets {end}, {end};\nbrx.idx %ta, {list};\n{end}:"));
    }
}
