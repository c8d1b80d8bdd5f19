//! Functions that multiply matrices held in fragments, emitted once for each kind of product of a module.
//!
//! A product has three functions, which work on memory:
//! * `unpack` of A and of B puts the elements of a fragment into the order in which the product reads them,
//!   as numbers of the type that it computes with. The results are kept while further products of the block
//!   read the same fragment.
//! * `multiply` computes D, a block of vectors at a time. Each step multiplies the elements of A and of B
//!   that the lanes of a vector need. If a vector is a part of a row of D, that is one element of A,
//!   broadcast, and consecutive elements of B. If rows are shorter than vectors, a vector of D has elements
//!   of several rows, as they lie in a register: with AVX-512, 16 lanes of `m16n8` hold four columns of four
//!   rows, and a step multiplies four elements of A, four times each, by four elements of B, four times.
//!
//! Invariant: every element of D is computed in the order of `ptx_sem::matrix`: from c, over k in ascending
//! order, each sum rounded to double precision, and once rounded to the type of D. A product of two
//! elements is exact in double precision, so a fused multiply-add and a multiplication with an addition have
//! the same bits. Integer sums are exact modulo 2^32 in any order. Lanes are independent, so vectors change
//! nothing.
//!
//! Layouts come from [`ptx_exec::bind::Product`]; none is written here.

use super::permute::permute;
use crate::features::Level;
use crate::isel::matrix::{Arithmetic, Plan, Side};
use crate::isel::{Env, Lower};
use crate::llvm::{Builder, FloatPred, Flush, Function, IntPred, Likely, Value};
use ptx::isa::Ty;
use ptx_exec::bind::{Fragment, Product};
use std::collections::BTreeMap;

/// Lanes of a warp.
const LANES: usize = 32;

const SIDES: [Side; 2] = [Side::A, Side::B];

/// The most combinations of lines of B that a block of vectors of D needs. Chosen: they are in registers at
/// the same time.
const COLUMNS: usize = 4;

/// For each element, the last place of a fragment that holds it, which is the one that the interpreter reads.
fn places(fragment: &Fragment) -> Vec<usize> {
    inverse(fragment.elements().iter().map(|element| usize::from(*element)))
}

/// For each element, its last place in a sequence.
fn inverse(elements: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut places = Vec::new();
    for (place, element) in elements.enumerate() {
        places.resize(places.len().max(element + 1), 0);
        places[element] = place;
    }
    places
}

/// Emits the functions of one module.
pub(super) struct Emitter<'b, 'm> {
    pub(super) b: &'b Builder<'m>,
    pub(super) env: Env,
}

impl<'b, 'm> Emitter<'b, 'm> {
    fn level(&self) -> Level {
        self.env.target.level()
    }

    /// 32-bit lanes of a vector register.
    fn words(&self) -> usize {
        self.level().lanes() as usize
    }

    /// The function of that name with `params` pointers, emitted by `body` if the module does not have it.
    fn function(&self, name: &str, params: u32, body: impl FnOnce(Function, &[Value])) -> Function {
        let b = self.b;
        let ty = b.fn_type(None, &vec![b.ptr(); params as usize]);
        let (function, new) = b.module().internal_function(name, ty, self.env.flush);
        if new {
            let here = b.current_block();
            b.position_at_end(b.append_block(function, ""));
            let params: Vec<Value> = (0..params).map(|at| b.param(function, at)).collect();
            body(function, &params);
            b.ret(None);
            b.position_at_end(here);
        }
        function
    }

    /// The function that unpacks a matrix: from registers of 32 words each, to memory aligned to 64 bytes.
    pub(super) fn unpack(&self, plan: &Plan, name: &str, side: Side) -> Function {
        let suffix = if side == Side::A { "a" } else { "b" };
        self.function(&format!("{name}.{suffix}"), 2, |_, params| {
            let (fragment, ty) = plan.fragment(side);
            let (inputs, index) = self.elements(fragment, params[0]);
            let places = places(fragment);
            let table: Vec<usize> =
                plan.order(side).into_iter().map(|element| index(places[element])).collect();
            let mut offset = 0;
            for vector in permute(self.b, &inputs, &table) {
                for part in self.decoded(plan.arithmetic, vector, ty) {
                    self.b.store(part, self.b.offset(params[1], offset), 16);
                    offset += u64::from(part.ty().lanes() * part.ty().element_bits() / 8);
                }
            }
        })
    }

    /// The elements of a fragment as vectors, and the place of each among their lanes.
    fn elements(&self, fragment: &Fragment, from: Value) -> (Vec<Value>, impl Fn(usize) -> usize + use<>) {
        let b = self.b;
        let bits = fragment.bits();
        let bytes = fragment.registers() * LANES * 4;
        let stored = bits.max(8);
        let ty = b.vec(b.int(stored), (self.words() * 32) as u32 / stored);
        let step = self.words() * 4;
        let load = |at: usize| b.load(ty, b.offset(from, (at * step) as u64), 16);
        let mut vectors: Vec<Value> = (0..bytes / step).map(load).collect();
        // Of elements of half a byte, the low ones come first, then the high ones.
        let nibbles = bits == 4;
        if nibbles {
            let low: Vec<Value> = vectors.iter().map(|v| b.and(*v, b.const_splat(ty, 15))).collect();
            let high = vectors.iter().map(|v| b.lshr(*v, b.const_splat(ty, 4)));
            vectors = low.iter().copied().chain(high).collect();
        }
        (vectors, move |place| if nibbles { place / 2 + place % 2 * bytes } else { place })
    }

    /// A vector in parts of at most `lanes` lanes.
    fn parts(&self, vector: Value, lanes: usize) -> Vec<Value> {
        let (all, lanes) = (vector.ty().lanes(), lanes as u32);
        if all <= lanes {
            return vec![vector];
        }
        (0..all / lanes).map(|at| self.b.slice(vector, at * lanes, lanes)).collect()
    }

    /// Elements of A or B as the numbers that are multiplied.
    fn decoded(&self, arithmetic: Arithmetic, vector: Value, ty: Ty) -> Vec<Value> {
        let b = self.b;
        match arithmetic {
            Arithmetic::Bits { .. } => vec![vector],
            Arithmetic::Pairs => {
                let wide = |part: Value| {
                    let int = b.like(part.ty(), b.int(16));
                    match ty {
                        Ty::S8 => b.sext(part, int),
                        Ty::S4 => {
                            let four = b.const_splat(part.ty(), 4);
                            b.sext(b.ashr(b.shl(part, four), four), int)
                        }
                        _ => b.zext(part, int),
                    }
                };
                self.parts(vector, self.words() * 2).into_iter().map(wide).collect()
            }
            Arithmetic::Double => {
                let parts = self.parts(vector, self.words()).into_iter();
                parts
                    .flat_map(|part| self.parts(self.single(part, ty), self.words() / 2))
                    .map(|s| self.double(s))
                    .collect()
            }
        }
    }

    fn lower(&self, lanes: u32) -> Lower<'b, 'm> {
        Lower { b: self.b, env: self.env, lanes, carry_in: None, carry_out: None, any_nan: false }
    }

    /// Bits of elements as single precision numbers (bits), exactly; a NaN is some NaN.
    fn single(&self, bits: Value, ty: Ty) -> Value {
        let b = self.b;
        let word = b.like(bits.ty(), b.int(32));
        match ty {
            Ty::F16 => b.bitcast(self.lower(bits.ty().lanes()).single_of_half(bits), word),
            Ty::Bf16 => b.shl(b.zext(bits, word), b.const_splat(word, 16)),
            Ty::Tf32 => b.and(bits, b.const_splat(word, 0xffff_e000)),
            _ => bits,
        }
    }

    /// Single precision numbers (bits) in double precision, subnormal ones too if the processor flushes them.
    fn double(&self, bits: Value) -> Value {
        let b = self.b;
        let double = b.like(bits.ty(), b.f64());
        let plain = b.fpext(b.bitcast(bits, b.like(bits.ty(), b.f32())), double);
        if self.env.flush == Flush::Never {
            return plain;
        }
        let k = |bits: u64, like: Value| b.const_splat(like.ty(), bits);
        let long = b.like(bits.ty(), b.int(64));
        let size = b.and(bits, k(0x7fff_ffff, bits));
        let subnormal = b.icmp(IntPred::Ult, size, k(0x80_0000, bits));
        // The least subnormal is 2^-149.
        let number = b.fmul(b.sitofp(size, double), b.const_splat(double, (1023 - 149) << 52));
        let sign = b.and(bits, k(0x8000_0000, bits));
        let sign = b.shl(b.zext(sign, long), b.const_splat(long, 32));
        let signed = b.bitcast(b.or(b.bitcast(number, long), sign), double);
        b.select(subnormal, signed, plain)
    }

    /// Sums as elements of D (bits). A NaN in single precision is some NaN, unless `.satfinite` makes it 0.
    fn rounded(&self, plan: &Plan, sum: Value) -> Value {
        let b = self.b;
        let lower = self.lower(sum.ty().lanes());
        match plan.product.types.d {
            Ty::F16 => {
                let half = lower.half_of_single(lower.odd_single(sum));
                if plan.satfinite { self.finite_half(half) } else { half }
            }
            Ty::F32 => {
                let word = b.like(sum.ty(), b.int(32));
                let bits = self.rounded_single(sum);
                if !plan.satfinite {
                    return bits;
                }
                let nan = b.fcmp(FloatPred::Uno, sum, sum);
                // Infinities become the greatest finite numbers, NaN becomes 0.
                let sign = b.and(bits, b.const_splat(word, 0x8000_0000));
                let size = b.and(bits, b.const_splat(word, 0x7fff_ffff));
                let size = b.intrinsic("llvm.umin", &[word], &[size, b.const_splat(word, 0x7f7f_ffff)]);
                b.select(nan, b.zero(word), b.or(size, sign))
            }
            _ => sum,
        }
    }

    /// `.satfinite` of halves (bits) whose NaNs are 0x7fff.
    fn finite_half(&self, half: Value) -> Value {
        let b = self.b;
        let k = |bits| b.const_splat(half.ty(), bits);
        let size = b.and(half, k(0x7fff));
        let nan = b.icmp(IntPred::Ugt, size, k(0x7c00));
        let size = b.intrinsic("llvm.umin", &[half.ty()], &[size, k(0x7bff)]);
        b.select(nan, k(0), b.or(size, b.and(half, k(0x8000))))
    }

    /// Double precision numbers rounded to single precision (bits), subnormal ones too if the processor
    /// flushes them. A NaN is some NaN.
    fn rounded_single(&self, number: Value) -> Value {
        let b = self.b;
        let word = b.like(number.ty(), b.int(32));
        let plain = b.bitcast(b.fptrunc(number, b.like(number.ty(), b.f32())), word);
        if self.env.flush == Flush::Never {
            return plain;
        }
        let long = b.like(number.ty(), b.int(64));
        let k = |bits: u64| b.const_splat(long, bits);
        let bits = b.bitcast(number, long);
        let size = b.and(bits, k(u64::MAX >> 1));
        let subnormal = b.icmp(IntPred::Ult, size, k((1023 - 126) << 52));
        // The last digit of numbers from 2^-97 up is 2^-149, that of subnormal singles.
        let unit = b.const_splat(number.ty(), (1023 - 97) << 52);
        let sum = b.fadd(b.bitcast(size, number.ty()), unit);
        let digits = b.trunc(b.bitcast(sum, long), word);
        let sign = b.trunc(b.lshr(b.and(bits, k(1 << 63)), k(32)), word);
        b.select(subnormal, b.or(digits, sign), plain)
    }

    /// The function that multiplies: from unpacked A and B and the registers of C to the registers of D.
    pub(super) fn multiply(&self, plan: &Plan, name: &str) -> Function {
        self.function(name, 4, |function, params| {
            let b = self.b;
            let Product { ref c, ref d, .. } = plan.product;
            let (inputs, index) = self.elements(c, params[2]);
            let places = places(c);
            let table: Vec<usize> = plan.results.iter().map(|element| index(places[*element])).collect();
            let sums = permute(b, &inputs, &table);
            let mut results = vec![None; plan.vectors.len()];
            for block in self.blocks(plan) {
                let start: Vec<Value> = block.iter().map(|at| self.start(plan, &sums, *at)).collect();
                let ends = self.steps(plan, function, &block, [params[0], params[1]], start.clone());
                for ((at, end), c) in block.iter().zip(&ends).zip(&start) {
                    results[*at] = Some(self.end(plan, *end, *c));
                }
            }
            let mut results: Vec<Value> = results.into_iter().flatten().collect();
            let lanes = self.words() * 32 / d.bits() as usize;
            while results.first().is_some_and(|result| (result.ty().lanes() as usize) < lanes) {
                results = results.chunks(2).map(|pair| b.concat(pair[0], pair[1])).collect();
            }
            if plan.product.types.d == Ty::F32 && !plan.satfinite {
                results = self.canonical(function, results);
            }
            let found = inverse(plan.results.iter().copied());
            let table: Vec<usize> = d.elements().iter().map(|element| found[usize::from(*element)]).collect();
            for (at, vector) in permute(b, &results, &table).into_iter().enumerate() {
                b.store(vector, b.offset(params[3], (at * self.words() * 4) as u64), 16);
            }
        })
    }

    /// Single precision numbers (bits) with NaNs that have the bits of results. NaNs are rare, so one branch
    /// tests all vectors, in pairs: a comparison with a NaN on either side is unordered.
    fn canonical(&self, function: Function, numbers: Vec<Value>) -> Vec<Value> {
        let b = self.b;
        let float = |bits: Value| b.bitcast(bits, b.like(bits.ty(), b.f32()));
        let unordered = |x: Value, y: Value| b.fcmp(FloatPred::Uno, float(x), float(y));
        let tests: Vec<Value> =
            numbers.chunks(2).map(|pair| unordered(pair[0], pair[pair.len() - 1])).collect();
        let Some(nan) = tests.into_iter().reduce(|one, other| b.or(one, other)) else { return numbers };
        let word = b.int(nan.ty().lanes());
        let nan = b.icmp(IntPred::Ne, b.bitcast(nan, word), b.zero(word));
        let (from, rare, done) =
            (b.current_block(), b.append_block(function, "nan"), b.append_block(function, "numbers"));
        b.cond_br(nan, rare, done, Likely::No);
        b.position_at_end(rare);
        let exact = |bits: &Value| self.lower(bits.ty().lanes()).canonical_f32(*bits);
        let exact: Vec<Value> = numbers.iter().map(exact).collect();
        b.br(done);
        b.position_at_end(done);
        let merge = |(plain, exact): (&Value, &Value)| {
            let phi = b.phi(plain.ty());
            b.add_incoming(phi, *plain, from);
            b.add_incoming(phi, *exact, rare);
            phi
        };
        numbers.iter().zip(&exact).map(merge).collect()
    }

    /// The vectors of D in blocks that are computed together. Beside their sums there are registers for
    /// elements of A and B; each block needs few different ones.
    fn blocks(&self, plan: &Plan) -> Vec<Vec<usize>> {
        let size = 1 << (self.level().vector_registers() * 3 / 4).ilog2();
        let mut order: Vec<usize> = (0..plan.vectors.len()).collect();
        order.sort_by_key(|at| {
            let [a, b] = plan.vectors[*at];
            (b / COLUMNS, a, b)
        });
        order.chunks(size).map(<[usize]>::to_vec).collect()
    }

    /// The sum that a vector of D begins with, from the elements of C in the order of D.
    fn start(&self, plan: &Plan, sums: &[Value], at: usize) -> Value {
        let b = self.b;
        let (each, lanes) = (sums[0].ty().lanes() as usize, plan.lanes);
        let first = at * lanes;
        let vector = sums[first / each];
        let part = if lanes == each { vector } else { b.slice(vector, (first % each) as u32, lanes as u32) };
        match plan.product.types.c {
            Ty::F16 | Ty::F32 => self.double(self.single(part, plan.product.types.c)),
            _ => part,
        }
    }

    /// The elements of D, from the sum after all steps.
    fn end(&self, plan: &Plan, sum: Value, start: Value) -> Value {
        let b = self.b;
        match plan.arithmetic {
            Arithmetic::Double => self.rounded(plan, sum),
            // The sum without c is exact, so one saturating addition clamps the exact sum.
            Arithmetic::Pairs if plan.satfinite => b.intrinsic("llvm.sadd.sat", &[sum.ty()], &[start, sum]),
            Arithmetic::Pairs | Arithmetic::Bits { .. } => sum,
        }
    }

    /// The sums of a block after all steps.
    fn steps(
        &self,
        plan: &Plan,
        function: Function,
        block: &[usize],
        unpacked: [Value; 2],
        mut sums: Vec<Value>,
    ) -> Vec<Value> {
        let b = self.b;
        if plan.satfinite && plan.arithmetic == Arithmetic::Pairs {
            sums = sums.iter().map(|sum| b.zero(sum.ty())).collect();
        }
        let unroll = if self.level() == Level::Avx512 { 4 } else { 2 };
        let unroll = if plan.steps().is_multiple_of(unroll) { unroll } else { 1 };
        if plan.steps() == unroll {
            return self.unrolled(plan, block, unpacked, sums, unroll);
        }
        let (from, turn, done) =
            (b.current_block(), b.append_block(function, "step"), b.append_block(function, "sums"));
        b.br(turn);
        b.position_at_end(turn);
        let long = b.int(64);
        let step = b.phi(long);
        let before: Vec<Value> = sums.iter().map(|sum| b.phi(sum.ty())).collect();
        let places = SIDES.map(|side| {
            let bytes = b.const_int(long, plan.stride(side) as u64);
            b.gep(unpacked[side as usize], b.mul(step, bytes))
        });
        let after = self.unrolled(plan, block, places, before.clone(), unroll);
        let next = b.add(step, b.const_int(long, unroll as u64));
        let end = b.current_block();
        for ((phi, start), after) in before.iter().zip(&sums).zip(&after) {
            b.add_incoming(*phi, *start, from);
            b.add_incoming(*phi, *after, end);
        }
        b.add_incoming(step, b.const_int(long, 0), from);
        b.add_incoming(step, next, end);
        let over = b.icmp(IntPred::Eq, next, b.const_int(long, plan.steps() as u64));
        b.cond_br(over, done, turn, Likely::Unknown);
        b.position_at_end(done);
        after
    }

    /// The sums of a block after `count` steps.
    fn unrolled(
        &self,
        plan: &Plan,
        block: &[usize],
        unpacked: [Value; 2],
        mut sums: Vec<Value>,
        count: usize,
    ) -> Vec<Value> {
        for step in 0..count {
            let mut last: Option<(usize, Value)> = None;
            let mut columns = BTreeMap::new();
            for (at, sum) in block.iter().zip(&mut sums) {
                let [row, column] = plan.vectors[*at];
                let x = match last {
                    Some((known, x)) if known == row => x,
                    _ => self.lines(plan, Side::A, unpacked[0], step, row),
                };
                last = Some((row, x));
                let y = *columns
                    .entry(column)
                    .or_insert_with(|| self.lines(plan, Side::B, unpacked[1], step, column));
                *sum = self.multiplied(plan.arithmetic, *sum, x, y);
            }
        }
        sums
    }

    /// The operand of one step: for each lane of a vector of D, its elements of A or of B.
    fn lines(&self, plan: &Plan, side: Side, unpacked: Value, step: usize, lines: usize) -> Value {
        let b = self.b;
        let (period, cell) = (plan.period(side), plan.arithmetic.cell_bytes());
        let scalar = if plan.arithmetic == Arithmetic::Double { b.f64() } else { b.int(32) };
        let place = b.offset(unpacked, plan.place(side, step, lines) as u64);
        if period == 1 {
            return b.splat(b.load(scalar, place, cell as u32), plan.lanes as u32);
        }
        let loaded = b.load(b.vec(scalar, period as u32), place, 16);
        let indices: Vec<i32> = (0..plan.lanes).map(|lane| (lane % period) as i32).collect();
        if period == plan.lanes { loaded } else { b.shuffle(loaded, loaded, &indices) }
    }

    /// The sum plus a product.
    fn multiplied(&self, arithmetic: Arithmetic, sum: Value, x: Value, y: Value) -> Value {
        let b = self.b;
        match arithmetic {
            Arithmetic::Double if self.env.target.has_fma() => {
                b.intrinsic("llvm.fma", &[sum.ty()], &[x, y, sum])
            }
            Arithmetic::Double => b.fadd(sum, b.fmul(x, y)),
            Arithmetic::Bits { xor } => {
                let bits = if xor { b.xor(x, y) } else { b.and(x, y) };
                b.add(sum, b.intrinsic("llvm.ctpop", &[bits.ty()], &[bits]))
            }
            Arithmetic::Pairs => self.pairs(sum, x, y),
        }
    }

    /// The sums plus two products of signed 16-bit integers each. With VNNI, LLVM selects one instruction for
    /// both.
    fn pairs(&self, sum: Value, x: Value, y: Value) -> Value {
        let b = self.b;
        let lanes = sum.ty().lanes();
        let name = match lanes {
            _ if !cfg!(target_arch = "x86_64") => None,
            4 => Some("llvm.x86.sse2.pmadd.wd"),
            8 => Some("llvm.x86.avx2.pmadd.wd"),
            16 => Some("llvm.x86.avx512.pmaddw.d.512"),
            _ => None,
        };
        if let Some(name) = name {
            let halves = b.vec(b.int(16), lanes * 2);
            let dot = b.intrinsic(name, &[], &[b.bitcast(x, halves), b.bitcast(y, halves)]);
            return b.add(sum, dot);
        }
        let k = b.const_splat(sum.ty(), 16);
        let low = |v: Value| b.ashr(b.shl(v, k), k);
        let high = |v: Value| b.ashr(v, k);
        let sum = b.add(sum, b.mul(low(x), low(y)));
        b.add(sum, b.mul(high(x), high(y)))
    }
}
