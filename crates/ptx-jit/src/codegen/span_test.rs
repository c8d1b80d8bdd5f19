//! Run-time span test: one vector load for each chunk if a vector has the elements of all its active lanes,
//! else a gather.
//!
//! Some addresses are not known to be next to each other but often are: indices that are clamped at an
//! edge, that wrap around, that come from a sorted table, or that several lanes share. A gather costs a
//! load for each lane. So the first and the last active lane of a chunk are taken for the lanes with the
//! lowest and the highest address. If the others are between them, and all within a vector, the chunk is
//! one load, and each lane takes its element by a permutation.
//!
//! Where the active lanes are not known before, or the target has no permutation, the elements must be
//! consecutive, from that of the first active lane on: at the edge of a picture, inactive lanes have
//! clamped indices.
//!
//! Invariant: a vector is loaded only where each active lane's address, which has been checked, is that of
//! the element which the lane takes. Elements outside of those of the active lanes are not read, unless
//! they are between them.

use super::Codegen;
use super::load_store::Addresses;
use super::mask::Mask;
use crate::llvm::{IntPred, Likely, Value};
use crate::target::Level;
use crate::wir::access::{Active, PerLane, Plan};

/// A chunk whose elements may be in one vector.
struct Span {
    /// The index of the first active lane.
    first: Value,
    /// The indices of the lanes, less that of the first active lane.
    steps: Value,
    /// That of the last active lane.
    last: Value,
}

impl Codegen<'_> {
    /// Loads one vector for each chunk where the test holds for all chunks, and otherwise as `apart` says.
    /// `permuted`: whether lanes take their elements by a permutation. Returns for each chunk the vector of
    /// each element.
    pub(super) fn load_spans_or(
        &self,
        plan: &Plan,
        (apart, permuted): (&[PerLane], bool),
        places: &Addresses,
        mask: Mask,
    ) -> Vec<Vec<Value>> {
        let Addresses::ScaledIndex(spread) = places else { unreachable!("ptxvm bug: no indices to test") };
        // By how much the index of the next element is greater.
        let unit = plan.access.bytes() / spread.scale as u32;
        let mut odd: Option<Value> = None;
        let mut wraps = self.b.const_int(self.int(1), 0);
        let mut spans = Vec::new();
        for (c, index) in (0..).zip(&spread.index) {
            let (span, differ) = if permuted {
                let span = self.span(*index, plan.active.chunks[c as usize]);
                let most = self.c32((self.width - 1) * unit);
                let most = self.b.intrinsic("llvm.umin", &[self.int(32)], &[span.last, most]);
                let differ = self.b.icmp(IntPred::Ugt, span.steps, self.b.splat(most, self.width));
                (span, differ)
            } else {
                let span = self.consecutive_span(*index, unit, (plan.active.chunks[c as usize], mask, c));
                let differ = self.b.icmp(IntPred::Ne, span.steps, self.multiples(unit));
                (span, differ)
            };
            let differ = match self.lanes(plan, mask, c) {
                Some(lanes) => self.b.and(differ, lanes),
                None => differ,
            };
            odd = Some(odd.map_or(differ, |odd| self.b.or(odd, differ)));
            // 32-bit indices that are close may still wrap around.
            let less = if spread.signed { IntPred::Slt } else { IntPred::Ult };
            let end = self.b.add(span.first, span.last);
            wraps = self.b.or(wraps, self.b.icmp(less, end, span.first));
            spans.push(span);
        }
        let odd = self.any(odd.expect("there are chunks"));
        let (together, gather, on) = (
            self.b.append_block(self.function, "together"),
            self.b.append_block(self.function, "apart"),
            self.b.append_block(self.function, "loaded"),
        );
        self.b.cond_br(self.b.or(odd, wraps), gather, together, Likely::Unknown);
        self.b.position_at_end(together);
        let mut near = Vec::new();
        for (c, span) in (0..).zip(spans) {
            let base = self.one_of(spread, span.first);
            self.fetch(base, c, plan.access);
            near.push(match permuted {
                true => vec![self.load_span(base, plan, unit, &span, self.lanes(plan, mask, c))],
                false => self.run(base, c, plan, mask),
            });
        }
        let near_end = self.b.current_block();
        self.b.br(on);
        self.b.position_at_end(gather);
        let far: Vec<Vec<Value>> =
            (0..).zip(apart).map(|(c, how)| self.load_per_lane(plan, how, places, c, mask)).collect();
        let far_end = self.b.current_block();
        self.b.br(on);
        self.b.position_at_end(on);
        let merge = |(near, far): (&Value, &Value)| self.phi_of([(*near, near_end), (*far, far_end)]);
        near.iter().zip(&far).map(|(near, far)| near.iter().zip(far).map(merge).collect()).collect()
    }

    /// The span of a chunk whose lanes take their elements by a permutation.
    fn span(&self, index: Value, active: Active) -> Span {
        let bits = active.bits(self.width).expect("ptxvm bug: a span of lanes that are not known");
        let (low, high) = if bits == 0 { (0, 0) } else { (bits.trailing_zeros(), bits.ilog2()) };
        let (first, last) = (self.b.extract(index, low), self.b.extract(index, high));
        let steps = self.b.sub(index, self.b.splat(first, self.width));
        Span { first, steps, last: self.b.sub(last, first) }
    }

    /// The span of a chunk whose lanes' elements must be consecutive: from the first lane's, if the first
    /// active lane's is where it must be then.
    fn consecutive_span(&self, index: Value, unit: u32, (active, mask, c): (Active, Mask, u32)) -> Span {
        let permutes =
            self.env.target.level() != Level::Baseline && self.width == self.env.target.level().lanes();
        let first = if active == Active::Computed && permutes {
            let (_, low, _) = self.running(self.word(mask), Some(c));
            let own = self.b.extract(self.permuted_by(index, self.b.splat(low, self.width)), 0);
            self.b.sub(own, self.b.mul(low, self.c32(unit)))
        } else {
            self.b.extract(index, 0)
        };
        let steps = self.b.sub(index, self.b.splat(first, self.width));
        Span { first, steps, last: self.c32((self.width - 1) * unit) }
    }

    /// Loads the vector of a span's elements. Returns that of the lanes' elements.
    fn load_span(&self, base: Value, plan: &Plan, unit: u32, span: &Span, lanes: Option<Value>) -> Value {
        let access = plan.access;
        let pointer = self.b.int_to_ptr(base);
        let pointer = lanes.map_or(pointer, |lanes| self.sound(pointer, lanes));
        let read = self.b.icmp(IntPred::Ule, self.multiples(unit), self.b.splat(span.last, self.width));
        let ty = self.b.vec(self.int(access.bits), self.width);
        let loaded = self.masked_load(access.space, pointer, access.bytes(), read, self.b.zero(ty));
        let by = self.b.const_int(span.steps.ty(), unit.trailing_zeros().into());
        self.permuted_by(loaded, self.b.lshr(span.steps, by))
    }

    /// The elements of a vector that 32-bit numbers name, modulo the number of elements.
    fn permuted_by(&self, elements: Value, numbers: Value) -> Value {
        let word = numbers.ty();
        match (elements.ty().element_bits(), self.env.target.level()) {
            (32, Level::Avx512) => {
                self.b.intrinsic("llvm.x86.avx512.permvar.si.512", &[], &[elements, numbers])
            }
            (32, _) => self.b.intrinsic("llvm.x86.avx2.permd", &[], &[elements, numbers]),
            (64, _) => {
                let half = self.width / 2;
                let [low, high] = [0, half].map(|from| self.b.slice(elements, from, half));
                let numbers = self.b.zext(numbers, elements.ty());
                let of = |from| {
                    let numbers = self.b.slice(numbers, from, half);
                    self.b.intrinsic("llvm.x86.avx512.vpermi2var.q.512", &[], &[low, numbers, high])
                };
                self.b.concat(of(0), of(half))
            }
            (_, _) => {
                let wide = self.permuted_by(self.b.zext(elements, word), numbers);
                self.b.trunc(wide, elements.ty())
            }
        }
    }

    /// 0 and the multiples of a number, for the lanes of a chunk.
    fn multiples(&self, of: u32) -> Value {
        let all: Vec<u64> = (0..self.width).map(|lane| u64::from(lane * of)).collect();
        self.b.const_ints(self.int(32), &all)
    }
}
