//! The beginning and end of a program: initial values of all registers, and stores of all state of a thread.
//!
//! Invariants: a register has a value before it is read. At the end, memory determines all used state. Most
//! programs first fold their registers into two words: a sum in which every change of one register changes
//! the sum, because code for a store takes longer to compile than code under test.

use super::forms::{DOUBLE, HALF, PREDICATES, SINGLE};
use super::generate::Generator;
use super::program::Line;
use super::run::{CELL, COMMON, OWN, SLOT, WARP};
use std::collections::BTreeSet;

impl Generator<'_> {
    /// The state of a kernel besides numbered registers: each of the generator's registers, with the lines
    /// that initialise it.
    pub(super) fn places(&mut self) -> Vec<(String, String)> {
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
            // Warps of a CTA are numbered by thread number, whatever `%warpid` is.
            item(
                "%wrp",
                format!(
                    "add.u32 %t0, %all, 31;\nshr.u32 %t0, %t0, 5;\nshr.u32 %t1, %tid0, 5;\nmad.lo.u32 %t0, %cta, %t0, %t1;\n\
                     mul.wide.u32 %wrp, %t0, {WARP};\nadd.s64 %wrp, %wrp, %com;\nadd.s64 %wrp, %wrp, {COMMON};"
                ),
            ),
            item(
                "%cell",
                format!(
                    "mul.wide.u32 %cell, %cta, {CELL};\nadd.s64 %cell, %cell, %com;\nadd.s64 %cell, %cell, {};",
                    COMMON + WARP * self.warps()
                ),
            ),
            item("%sh", "mov.u32 %sh, sh;".to_owned()),
            item("%shown", "mad.lo.u32 %shown, %tid0, 32, %sh;".to_owned()),
            item("%shx", "mad.lo.u32 %shx, %tid0, 8, %sh;\nadd.u32 %shx, %shx, 8192;".to_owned()),
            item("%shw", "shr.u32 %shw, %tid0, 5;\nmad.lo.u32 %shw, %shw, 64, %sh;\nadd.u32 %shw, %shw, 13376;".to_owned()),
            item("%tile", "mov.u32 %tile, tile;".to_owned()),
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

    /// Inserts before `body` the `items` that it needs, including items that those need.
    pub(super) fn begin(&mut self, items: Vec<(String, String)>, body: Vec<Line>) {
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

    pub(super) fn declarations(&mut self) {
        self.fixed(format!(
            ".reg .b16 %h<{HALF}>;\n.reg .b32 %r<{SINGLE}>;\n.reg .b64 %d<{DOUBLE}>;\n.reg .pred %p<{PREDICATES}>;\n.reg .pred %q, %qq, %qx;\n\
             .reg .b32 %ta, %tb, %c<8>, %u<3>, %t<3>, %n<3>, %tid0, %all, %cta, %gid, %sh, %shw, %tile, %shown, %shx, %fuel, %live, %am,\n\
             %w<4>, %x<6>, %px, %py, %pw, %ph, %sx, %sy;\n\
             .reg .b64 %da, %db, %b16, %b32, %b64, %own, %slot, %inp, %col, %com, %wrp, %cell, %wk, %gsh, %gloc, %fp,\
             %row1, %row2, %row4, %row8;"
        ));
    }

    /// Initialises every register, with or without dependence on the lane. `kernel`: shared memory of the CTA
    /// exists.
    pub(super) fn first_values(&mut self, kernel: bool) -> Vec<(String, String)> {
        let mut all = Vec::new();
        // Memory holds edge values; code for loads takes long to compile.
        let loads = self.random.pick(&[20, 20, 20, 80]);
        for (letter, count, bits) in [('h', HALF, 16), ('r', SINGLE, 32), ('d', DOUBLE, 64)] {
            let bytes = bits / 8;
            all.push((
                format!("%b{bits}"),
                format!("mul.wide.u32 %b{bits}, %tid0, {bytes};\nadd.s64 %b{bits}, %b{bits}, %inp;"),
            ));
            for i in 0..count {
                let name = format!("%{letter}{i}");
                let at = self.random.below(512) * 64;
                let loaded = self.random.chance(loads);
                let text = match self.random.below(6) {
                    // Zero when a CTA begins.
                    _ if bits > 16 && kernel && self.random.chance(5) => {
                        format!("ld.shared.b{bits} {name}, [%shx];")
                    }
                    0 => format!("mov.b{bits} {name}, 0x{:x};", self.random.value(bits) >> 1),
                    1 => format!("cvt.u{bits}.u32 {name}, %gid;"),
                    2 if loaded => format!("ld.global.b{bits} {name}, [%inp+{at}];"),
                    _ if loaded || i == 0 => format!("ld.global.b{bits} {name}, [%b{bits}+{at}];"),
                    _ => self.another(letter, i, bits),
                };
                all.push((name, text));
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

    /// An initial value from an earlier one, near an edge if that is an edge.
    fn another(&mut self, letter: char, i: usize, bits: u32) -> String {
        let (name, other) = (format!("%{letter}{i}"), format!("%{letter}{}", self.random.below(i)));
        match self.random.below(6) {
            0 => format!("neg.s{bits} {name}, {other};"),
            1 => format!("not.b{bits} {name}, {other};"),
            2 => format!("add.s{bits} {name}, {other}, {};", self.random.pick(&[1, -1, 2])),
            3 if bits > 16 => format!("shr.s{bits} {name}, {other}, {};", self.random.below(bits as usize)),
            4 if bits == 32 => format!("mad.lo.u32 {name}, %gid, 0x{:x}, {other};", self.random.value(31)),
            5 if bits == 64 => format!("mul.wide.u32 {name}, %gid, 0x{:x};", self.random.value(31)),
            // Zero, only the sign bits, or all others.
            _ => {
                format!("xor.b{bits} {name}, {other}, {};", if bits == 16 { "0x7fff" } else { "0x7fffffff" })
            }
        }
    }

    /// Stores all used state of the thread.
    pub(super) fn dump(&mut self) {
        let text: String = self.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>().join("\n");
        let mut words: BTreeSet<&str> =
            text.split(|c: char| !c.is_alphanumeric() && !"%_".contains(c)).collect();
        words.remove("");
        let used = |name: String| words.contains(name.as_str()).then_some(name);
        let local = words.contains("loc") || words.contains("%gloc");
        let registers: Vec<(u32, String)> =
            [('r', SINGLE, 32), ('d', DOUBLE, 64), ('h', HALF, 16), ('p', PREDICATES, 1)]
                .into_iter()
                .flat_map(|(letter, count, bits)| (0..count).map(move |i| (bits, format!("%{letter}{i}"))))
                .filter_map(|(bits, name)| Some((bits, used(name)?)))
                .collect();
        // After the columns, each store has a row, in which threads are adjacent.
        let threads = self.threads();
        let mut next = self.columns();
        let mut row = |bytes: u32| {
            let at = next;
            next += threads * bytes;
            format!("[%row{bytes}+{at}]")
        };
        let mut stores = Vec::new();
        if self.random.chance(25) {
            for (bits, name) in &registers {
                stores.push(match bits {
                    1 => format!("selp.u32 %ta, 1, 0, {name};\nst.global.u8 {}, %ta;", row(1)),
                    _ => format!("st.global.b{bits} {}, {name};", row(bits / 8)),
                });
            }
            if local {
                for at in [0, 8, 16, 24] {
                    stores.push(format!("ld.local.b64 %da, [loc+{at}];\nst.global.b64 {}, %da;", row(8)));
                }
            }
        } else {
            let fold = |(bits, name): &(u32, String)| match bits {
                1 => format!("selp.u32 %tb, 1, 0, {name};\nmad.lo.u32 %ta, %ta, 3, %tb;"),
                16 => format!("cvt.u32.u16 %tb, {name};\nmad.lo.u32 %ta, %ta, 3, %tb;"),
                32 => format!("mad.lo.u32 %ta, %ta, 3, {name};"),
                _ => format!("mad.lo.u64 %da, %da, 3, {name};"),
            };
            // The reducer must not leave an address in these registers, because addresses differ between
            // devices.
            self.fixed("mov.u32 %ta, 0;\nmov.u64 %da, 0;");
            stores.extend(registers.iter().map(fold));
            if local {
                for at in [0, 16] {
                    stores.push(format!(
                        "ld.local.v2.b64 {{%db, %fp}}, [loc+{at}];\nmad.lo.u64 %da, %da, 3, %db;\nmad.lo.u64 %da, %da, 3, %fp;"
                    ));
                }
            }
            stores.push(format!("st.global.b32 {}, %ta;\nst.global.b64 {}, %da;", row(4), row(8)));
        }
        if !self.may_exit() && self.combined {
            // The words that threads of the CTA combined.
            stores.push(format!(
                "bar.sync 0;\nrem.u32 %ta, %tid0, {};\nshl.b32 %ta, %ta, 2;\nadd.u32 %ta, %ta, %sh;\n\
                 ld.shared.b32 %tb, [%ta+12288];\nst.global.b32 {}, %tb;",
                super::memory::COMBINED / 4,
                row(4)
            ));
        }
        self.bytes = next;
        stores.into_iter().for_each(|store| self.line(store));
    }
}
