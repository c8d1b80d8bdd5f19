//! Threads that are points of a picture, and read their neighbours: clamped, mirrored and wrapped indices,
//! and guarded edges. Native code executes rows of several CTAs as one, and assumes that they are inside of
//! the picture.
//!
//! Invariants: an index that is read is inside of the picture, whose pixels are all in the input. A thread
//! stores to its own element of the columns only.

use super::forms::register;
use super::generate::Generator;
use super::run::INPUT;

/// Bytes between two rows of the picture.
const PITCH: u32 = 2048;
/// The most rows.
const ROWS: u32 = INPUT as u32 / PITCH;

impl Generator<'_> {
    /// The point of a thread, and the size of the picture, which only the running program knows.
    pub(super) fn picture_items(&mut self) -> Vec<(String, String)> {
        let item = |name: &str, text: String| (name.to_owned(), text);
        let point = |axis: &str, letter: &str| {
            format!(
                "mov.u32 %t0, %ctaid.{axis};\nmov.u32 %n0, %ntid.{axis};\nmov.u32 %t1, %tid.{axis};\n\
                 mad.lo.s32 %p{letter}, %t0, %n0, %t1;"
            )
        };
        let [width, height, _] = std::array::from_fn(|axis| self.grid[axis] * self.block[axis]);
        // In some pictures, not all threads have a point, or the edge is far from the last CTA.
        let less = self.random.pick(&[0, 0, 3, width / 3]);
        let bits = self.random.pick(&[0, 7]);
        let size = |letter: &str, most: u32| {
            format!(
                "and.b32 %p{letter}, %u0, {bits};\nsub.s32 %p{letter}, {most}, %p{letter};\nmax.s32 %p{letter}, %p{letter}, 9;"
            )
        };
        vec![
            item("%px", point("x", "x")),
            item("%py", point("y", "y")),
            item("%pw", size("w", (width - less).min(PITCH / 4))),
            item("%ph", size("h", height.min(ROWS))),
        ]
    }

    /// A sum over some neighbours of a point, in a loop or one after another.
    pub(super) fn taps(&mut self) {
        let sum = register(&mut self.random, 32);
        let in_loop = self.random.chance(30) && self.counters < 8;
        let around = in_loop.then(|| {
            let counter = format!("%c{}", self.counters);
            self.counters += 1;
            let (top, turns) = (self.label(), self.random.pick(&[2, 3, 3, 5]));
            self.fixed(format!("mov.u32 {counter}, {turns};\n{top}:"));
            (counter, top)
        });
        let count = 1 + self.random.below(4);
        // The coordinate to which the counter is added.
        let counted = self.random.below(3);
        for _ in 0..count {
            let [x, y] = [3, 2].map(|most| self.random.below(2 * most + 1) as i32 - most as i32);
            self.line(format!("add.s32 %sx, %px, {x};\nadd.s32 %sy, %py, {y};"));
            if let Some((counter, _)) = around.as_ref().filter(|_| counted < 2) {
                let to = if counted == 0 { "%sx" } else { "%sy" };
                self.line(format!("sub.s32 {to}, {to}, {counter};"));
            }
            self.tap(&sum);
        }
        if let Some((counter, top)) = around {
            self.fixed(format!(
                "sub.u32 {counter}, {counter}, 1;\nsetp.ne.u32 %q, {counter}, 0;\n@%q bra {top};"
            ));
            self.counters -= 1;
        }
        if self.random.chance(50) {
            // Adding to an element shows whether a thread has executed twice.
            let at = 16 * self.random.below(8) as u32 * self.threads();
            self.line(format!(
                "ld.global.b32 %ta, [%col+{at}];\nadd.u32 %ta, %ta, {sum};\nst.global.b32 [%col+{at}], %ta;"
            ));
        }
    }

    /// Adds the pixel at `%sx` and `%sy`, or something else behind the edge.
    fn tap(&mut self, sum: &str) {
        let other = self.random.pick(&["", "", "add.u32 ", "xor.b32 "]);
        match self.random.below(10) {
            0..=2 => {
                // A branch around, on all comparisons or on each of the coordinates.
                let (skip, end) = (self.label(), self.label());
                let skips = match self.random.chance(40) {
                    true => format!("not.pred %q, %q;\n@%q bra {skip};"),
                    false => format!("@!%q bra {skip};"),
                };
                let inside = |letter: &str, size: &str, to: &str| {
                    format!(
                        "setp.ge.s32 %q, {letter}, 0;\nsetp.lt.s32 %qq, {letter}, {size};\nand.pred {to}, %q, %qq;"
                    )
                };
                if self.random.chance(60) {
                    self.line(format!(
                        "{}\n{}\nand.pred %q, %q, %qx;",
                        inside("%sx", "%pw", "%qx"),
                        inside("%sy", "%ph", "%q")
                    ));
                    self.fixed(skips);
                } else {
                    self.line(inside("%sx", "%pw", "%q"));
                    self.fixed(skips.clone());
                    self.line(inside("%sy", "%ph", "%q"));
                    self.fixed(skips);
                }
                self.read(sum);
                if other.is_empty() {
                    self.fixed(format!("{skip}:"));
                } else {
                    let number = self.random.below(1000);
                    self.fixed(format!("bra {end};\n{skip}:"));
                    self.line(format!("{other}{sum}, {sum}, {number};"));
                    self.fixed(format!("{end}:"));
                }
            }
            3 => {
                // Unsigned comparisons find negative coordinates, too.
                let skip = self.label();
                self.line("setp.lt.u32 %q, %sx, %pw;\nsetp.lt.u32 %qq, %sy, %ph;\nand.pred %q, %q, %qq;");
                self.fixed(format!("@!%q bra {skip};"));
                self.read(sum);
                self.fixed(format!("{skip}:"));
            }
            _ => {
                for (letter, size) in [("%sx", "%pw"), ("%sy", "%ph")] {
                    self.limited(letter, size);
                }
                self.read(sum);
            }
        }
    }

    /// Makes a coordinate one that is inside.
    fn limited(&mut self, letter: &str, size: &str) {
        let text = match self.random.below(6) {
            0 => format!(
                "sub.s32 %ta, {size}, 1;\nmax.s32 {letter}, {letter}, 0;\nmin.s32 {letter}, {letter}, %ta;"
            ),
            1 => format!(
                "sub.s32 %ta, {size}, 1;\nmin.s32 {letter}, {letter}, %ta;\nmax.s32 {letter}, {letter}, 0;"
            ),
            2 => format!(
                "sub.s32 %ta, {size}, 1;\nsetp.lt.s32 %q, {letter}, {size};\nselp.b32 {letter}, {letter}, %ta, %q;\n\
                 setp.gt.s32 %q, {letter}, 0;\nselp.b32 {letter}, {letter}, 0, %q;"
            ),
            3 => format!(
                "add.s32 {letter}, {letter}, {size};\nadd.s32 {letter}, {letter}, {size};\nrem.s32 {letter}, {letter}, {size};\n\
                 max.s32 {letter}, {letter}, 0;"
            ),
            4 => format!("add.u32 {letter}, {letter}, {size};\nrem.u32 {letter}, {letter}, {size};"),
            // Mirrored; threads far beyond the edge are clamped.
            _ => format!(
                "abs.s32 {letter}, {letter};\nsub.s32 %ta, {size}, 1;\nshl.b32 %tb, %ta, 1;\nsub.s32 %tb, %tb, {letter};\n\
                 setp.lt.s32 %q, {letter}, {size};\nselp.b32 {letter}, {letter}, %tb, %q;\nmax.s32 {letter}, {letter}, 0;\n\
                 min.s32 {letter}, {letter}, %ta;"
            ),
        };
        self.line(text);
    }

    /// Adds the pixel there.
    fn read(&mut self, sum: &str) {
        let ty = self.random.pick(&["b32", "b32", "b32", "u8", "s16"]);
        let factor = self.random.pick(&[1, 3, 5]);
        self.line(format!(
            "mad.lo.s32 %ta, %sy, {}, %sx;\nmul.wide.s32 %da, %ta, 4;\nadd.s64 %da, %da, %inp;\n\
             ld.global.{ty} %tb, [%da];\nmad.lo.u32 {sum}, {sum}, {factor}, %tb;",
            PITCH / 4
        ));
    }

    /// Threads without a point end early.
    pub(super) fn beyond_picture(&mut self) {
        let end = self.random.pick(&["exit", "ret"]);
        self.line(format!(
            "setp.ge.s32 %q, %px, %pw;\nsetp.ge.s32 %qq, %py, %ph;\nor.pred %q, %q, %qq;\n@%q {end};"
        ));
    }
}
