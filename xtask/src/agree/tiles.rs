//! Programs in which threads of a warp or CTA exchange data through shared memory, and pointers that advance.
//!
//! Invariants: between warps, a barrier separates a store and a load of the same bytes, in both directions.
//! Within a warp, the order of its groups is fixed, and of several stores to an address the highest lane's
//! remains.

use super::forms::{SINGLE, register};
use super::generate::Generator;
use super::taste::Taste;

impl Generator<'_> {
    /// Each thread stores a value and reads that of another; exited threads leave zeros, or earlier values.
    pub(super) fn exchange(&mut self) {
        let all = self.block.iter().product::<u32>();
        let (bits, k) = (self.random.pick(&[32, 64]), 1 + self.random.below(40) as u32);
        let (from, to) = (register(&mut self.random, bits), register(&mut self.random, bits));
        let partner = match self.random.below(3) {
            0 => format!("xor.b32 %ta, %tid0, {k};\nmin.u32 %ta, %ta, {};", all - 1),
            1 => format!("add.u32 %ta, %tid0, {};\nsub.u32 %tb, %ta, %all;\nmin.u32 %ta, %ta, %tb;", k % all),
            _ => "sub.u32 %ta, %all, %tid0;\nsub.u32 %ta, %ta, 1;".to_owned(),
        };
        self.line(format!(
            "st.shared.b{bits} [%shx], {from};\nbar.sync 0;\n{partner}\nshl.b32 %ta, %ta, 3;\n\
             add.u32 %ta, %ta, %sh;\nld.shared.b{bits} {to}, [%ta+8192];\nbar.sync 0;"
        ));
    }

    /// The CTA as a matrix that is written by rows and read by columns, or by rows elsewhere; gaps are never
    /// written.
    pub(super) fn tile(&mut self) {
        let [x, y, z] = self.block;
        let rows = y * z;
        let number = if z == 1 {
            "mov.u32 %t0, %tid.x;\nmov.u32 %t1, %tid.y;".to_owned()
        } else {
            format!(
                "mov.u32 %t0, %tid.x;\nmov.u32 %t1, %tid.y;\nmov.u32 %t2, %tid.z;\nmad.lo.u32 %t1, %t2, {y}, %t1;"
            )
        };
        let pad = self.random.below(4) as u32;
        let (from, to) = (register(&mut self.random, 32), register(&mut self.random, 32));
        let step = |step: u32| if step == x { "%n0".to_owned() } else { step.to_string() };
        let known = "mov.u32 %n0, %ntid.x;";
        let back = match self.random.below(4) {
            0 => format!("mad.lo.u32 %ta, %t0, {}, %t1;", step(rows + pad)),
            1 => format!("mad.lo.u32 %ta, %t1, {}, %t0;\nadd.u32 %ta, %ta, 1;", step(x + pad)),
            2 => format!("xor.b32 %t0, %t0, 1;\nmad.lo.u32 %ta, %t1, {}, %t0;", step(x + pad)),
            _ => format!("mov.u32 %ta, {};\nsub.u32 %ta, %ta, %tid0;", x * rows - 1),
        };
        let back_at = self.random.pick(&["%ta, 4, %tile", "%ta, 4, %tile"]);
        // Some threads write nothing, so zero or an earlier value is read.
        let guard = self.guard();
        self.line(format!(
            "{known}\n{number}\nmad.lo.u32 %ta, %t1, {}, %t0;\nmad.lo.u32 %ta, {back_at};\n{guard}st.shared.b32 [%ta], {from};\n\
             bar.sync 0;\n{back}\nmad.lo.u32 %ta, {back_at};\nld.shared.b32 {to}, [%ta];\nbar.sync 0;",
            step(x + pad)
        ));
    }

    /// One warp stores to one address, in shared memory or in the CTA's own bytes, and all threads read it.
    pub(super) fn publish(&mut self) {
        let warps = self.block.iter().product::<u32>().div_ceil(32) as usize;
        let (bits, at) = (self.random.pick(&[16, 32, 64]), 8 * self.random.below(8));
        let (from, to) = (register(&mut self.random, bits), register(&mut self.random, bits));
        let (space, base) =
            self.random.pick(&[("shared", "%sh+14080"), ("shared", "%sh+14080"), ("global", "%cell")]);
        let (skip, one) = (self.label(), self.random.below(warps));
        self.line(format!("shr.u32 %ta, %tid0, 5;\nsetp.ne.u32 %q, %ta, {one};\n@%q bra {skip};"));
        if self.random.chance(60) {
            self.condition();
            self.line(format!("@%q bra {skip};"));
        }
        // Adjacent lanes, or all at one address.
        let spread = if self.random.chance(30) { self.random.pick(&[8, 24]) } else { 0 };
        let (before, place) = match (spread, space) {
            (0, _) => (String::new(), format!("{base}+{at}")),
            (_, "shared") => (
                format!("and.b32 %ta, %tid0, {spread};\nadd.u32 %ta, %ta, %sh;\n"),
                format!("%ta+{}", 14080 + at),
            ),
            _ => (
                format!("and.b32 %ta, %tid0, {spread};\ncvt.u64.u32 %da, %ta;\nadd.s64 %da, %da, %cell;\n"),
                format!("%da+{at}"),
            ),
        };
        self.line(format!("{before}st.{space}.b{bits} [{place}], {from};"));
        self.fixed(format!("{skip}:"));
        self.line(format!("bar.sync 0;\nld.{space}.b{bits} {to}, [{base}+{at}];\nbar.sync 0;"));
    }

    /// Lanes of one warp store to few addresses of their warp, and read there.
    pub(super) fn warp_store(&mut self) {
        if self.function {
            return self.lane();
        }
        let bits = self.random.pick(&[8, 16, 32, 32, 64]);
        let (from, to) = (register(&mut self.random, bits), register(&mut self.random, bits));
        let shared = self.random.chance(40);
        let room = if shared { 64 } else { 128 };
        let index = register(&mut self.random, 32);
        let spread = self.random.pick(&[0, 0, 8, 24, 56]);
        let at = 8 * self.random.below(((room - spread) / 8) as usize) as u32;
        let (space, base) = if shared { ("shared", "%shw") } else { ("global", "%wrp") };
        let (before, place) = match (spread, shared) {
            (0, _) => (String::new(), format!("{base}+{at}")),
            (_, true) => {
                (format!("and.b32 %ta, {index}, {spread};\nadd.u32 %ta, %ta, %shw;\n"), format!("%ta+{at}"))
            }
            (_, false) => (
                format!("and.b32 %ta, {index}, {spread};\ncvt.u64.u32 %da, %ta;\nadd.s64 %da, %da, %wrp;\n"),
                format!("%da+{at}"),
            ),
        };
        let guard = if self.taste == Taste::Coarse { String::new() } else { self.guard() };
        self.line(format!("{before}{guard}st.{space}.b{bits} [{place}], {from};"));
        if self.random.chance(70) {
            let offset = if self.random.chance(50) { at + 8 * (spread / 8) } else { at };
            self.line(format!("ld.{space}.b{bits} {to}, [{base}+{offset}];"));
        }
    }

    /// A pointer that advances in each iteration.
    pub(super) fn walk(&mut self) {
        if self.function {
            return self.lane();
        }
        let (top, end) = (self.label(), self.label());
        let bits = self.random.pick(&[8, 16, 32, 32, 64]);
        let bytes = bits / 8;
        let (value, limit) = (register(&mut self.random, bits), register(&mut self.random, 32));
        // `%fuel` is the counter: graphs reset it, and no other statement is inside.
        let turns = match self.random.below(3) {
            0 => format!("and.b32 %fuel, {limit}, 7;"),
            _ => format!("add.u32 %fuel, %u2, {};", self.random.below(5)),
        };
        if self.random.chance(30) {
            // The thread's own bytes, written one after another.
            self.line(format!("{turns}\nmov.u64 %wk, %own;"));
            self.fixed(format!("{top}:\nsetp.le.s32 %q, %fuel, 0;\n@%q bra {end};"));
            self.lane();
            self.line(format!("st.global.b{bits} [%wk], {value};"));
        } else {
            let apart = bytes * self.random.pick(&[0, 1, 1, 2]);
            let at = 16 * self.random.below(256);
            self.line(format!("{turns}\nmul.wide.u32 %wk, %tid0, {apart};\nadd.s64 %wk, %wk, %inp;"));
            self.fixed(format!("{top}:\nsetp.le.s32 %q, %fuel, 0;\n@%q bra {end};"));
            self.line(format!("ld.global.b{bits} {value}, [%wk+{at}];"));
            self.lane();
        }
        let step = self.random.pick(&[8, 8, 16, 24]);
        self.fixed(format!("sub.s32 %fuel, %fuel, 1;\nadd.s64 %wk, %wk, {step};\nbra {top};\n{end}:"));
    }

    /// Matrices that are distributed over all lanes of the warp, and an asynchronous copy.
    pub(super) fn matrices(&mut self) {
        if !self.forms.has(6, 4, 70) || self.taste == Taste::Coarse {
            return self.lane();
        }
        if self.forms.has(7, 0, 80) && self.random.chance(20) && !self.function {
            let to = register(&mut self.random, 64);
            let guard = self.guard();
            let at = 8 * self.random.below(512);
            let bytes = self.random.pick(&["", ", 8", ", 4", ", %r3"]);
            // A size that a register holds is at most that of the copy.
            return self.line(format!(
                "min.u32 %r3, %r3, 8;\n{guard}cp.async.ca.shared.global [%shx], [%inp+{at}], 8{bytes};\n\
                 cp.async.wait_all;\nld.shared.b64 {to}, [%shx];"
            ));
        }
        if self.forms.has(7, 8, 75) && self.random.chance(20) {
            let (from, to) = (register(&mut self.random, 32), register(&mut self.random, 32));
            return self.line(format!("movmatrix.sync.aligned.m8n8.trans.b16 {to}, {from};"));
        }
        let (a, b) = (self.random.pick(&["row", "col"]), self.random.pick(&["row", "col"]));
        let quads = format!("m8n8k4.{a}.{b}.f32.f16.f16.f32");
        // What it multiplies, and the registers of D, A, B and C.
        let (name, counts) = if self.forms.has(7, 0, 80) {
            self.random.pick(&[
                (quads.as_str(), [8, 2, 2, 8]),
                ("m16n8k16.row.col.f32.f16.f16.f32", [4, 4, 2, 4]),
                ("m16n8k16.row.col.f16.f16.f16.f16", [2, 4, 2, 2]),
                ("m16n8k8.row.col.f32.bf16.bf16.f32", [4, 2, 1, 4]),
                ("m16n8k4.row.col.f32.tf32.tf32.f32", [4, 2, 1, 4]),
                ("m16n8k32.row.col.satfinite.s32.s8.u8.s32", [4, 4, 2, 4]),
                ("m16n8k32.row.col.s32.u4.s4.s32", [4, 2, 1, 4]),
                ("m16n8k128.row.col.s32.b1.b1.s32.xor.popc", [4, 2, 1, 4]),
            ])
        } else {
            (quads.as_str(), [8, 2, 2, 8])
        };
        // The registers of A and B may be those of an earlier product, in the same block or another.
        let names = |from: usize, count: usize| {
            (from..from + count).map(|i| format!("%r{i}")).collect::<Vec<_>>().join(", ")
        };
        let [d, a, b, c] = counts;
        let places = self.random.pick(&[[0, 8, 1, 0], [4, 0, 2, 4], [2, 6, 4, 0], [1, 4, 8, 1]]);
        let text =
            [d, a, b, c].into_iter().zip(places).map(|(count, from)| names(from.min(SINGLE - count), count));
        let lists: Vec<String> = text.map(|names| format!("{{{names}}}")).collect();
        self.line(format!("mma.sync.aligned.{name} {};", lists.join(", ")));
    }
}
