//! Which matrix instructions have native code, and how a product is computed.
//!
//! Invariant: a [`Plan`] is decided by the modifiers and the target alone. `codegen::matrix` emits it and
//! decides nothing. Layouts come from [`ptx_exec::bind::Product`].

use super::Env;
use crate::llvm::Flush;
use crate::target::Target;
use ptx::isa::{Mods, Op, RowId, Slot, Ty, Word};
use ptx_exec::bind::{Fragment, Product};

/// Whether an instruction of this row with these modifiers has native code on that processor.
pub(crate) fn native(row: RowId, mods: &Mods, target: Target) -> bool {
    let env = Env { target, flush: Flush::Never, sm: 80 };
    match row.row().op {
        Op::Mma | Op::WmmaMma => Plan::of(mods, &env).is_some(),
        Op::Ldmatrix | Op::Stmatrix | Op::Movmatrix => has_rows_of_halves(mods),
        Op::CpAsync | Op::CpAsyncCommitGroup | Op::CpAsyncWaitGroup | Op::CpAsyncWaitAll => true,
        _ => false,
    }
}

/// Whether matrices with these modifiers have rows of eight halves, which native code loads, stores and
/// transposes.
pub(crate) fn has_rows_of_halves(mods: &Mods) -> bool {
    mods.ty() == Ty::B16
}

/// What the elements are multiplied as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    /// Numbers in double precision.
    Double,
    /// Pairs of 16-bit integers, whose products are added to 32-bit sums.
    Pairs,
    /// Words, of whose exclusive or (or conjunction) the bits are counted.
    Bits { xor: bool },
}

impl Arithmetic {
    /// Elements of a line that one step multiplies.
    fn group(self) -> usize {
        match self {
            Arithmetic::Double | Arithmetic::Bits { .. } => 1,
            Arithmetic::Pairs => 2,
        }
    }

    /// Bytes of the elements of a line that one step multiplies, and of a sum.
    pub(crate) fn cell_bytes(self) -> usize {
        match self {
            Arithmetic::Double => 8,
            Arithmetic::Pairs | Arithmetic::Bits { .. } => 4,
        }
    }
}

/// A matrix that is unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    A,
    B,
}

/// A product that has native code.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) product: Product,
    pub(crate) arithmetic: Arithmetic,
    pub(crate) satfinite: bool,
    /// The elements of D, by vectors. A vector is a part of a row, so that one element of A is multiplied in
    /// all its lanes, or where a row is shorter than a vector, as many places of a register as it has lanes.
    pub(crate) results: Vec<usize>,
    /// For each vector of D, the combinations of lines of A and of B that it is computed from: indices of
    /// `lines`.
    pub(crate) vectors: Vec<[usize; 2]>,
    /// The combinations of lines of A and of B.
    lines: [Lines; 2],
    /// Lanes of a vector of D.
    pub(crate) lanes: usize,
}

/// The elements as they lie in the registers, by vectors of that number of lanes. Of registers with several
/// elements, the lowest of all lanes come first.
fn in_place(fragment: &Fragment, lanes: usize) -> Vec<usize> {
    let each = (32 / fragment.bits()) as usize;
    let places = |vector: &[u16]| {
        let of = |at: usize| vector.iter().skip(at).step_by(each).map(|element| usize::from(*element));
        (0..each).flat_map(of).collect::<Vec<usize>>()
    };
    fragment.elements().chunks(lanes * each).flat_map(places).collect()
}

/// The lines of A, or of B, that the lanes of vectors of D need.
#[derive(Clone, Debug)]
struct Lines {
    /// The line of each lane, for each combination. The lanes beyond have the same lines again.
    of_lanes: Vec<Vec<usize>>,
}

impl Lines {
    /// The combinations that occur, and for each vector the index of its own.
    fn of(vectors: &[Vec<usize>]) -> (Lines, Vec<usize>) {
        let mut of_lanes = vectors.to_vec();
        of_lanes.sort();
        of_lanes.dedup();
        let index = |vector| of_lanes.iter().position(|known| known == vector).unwrap_or_default();
        let indices = vectors.iter().map(index).collect();
        let repeats = |period: usize| {
            of_lanes.iter().all(|lanes| lanes.iter().zip(&lanes[period..]).all(|(one, other)| one == other))
        };
        let mut period = vectors[0].len();
        while period > 1 && repeats(period / 2) {
            period /= 2;
        }
        of_lanes.iter_mut().for_each(|lanes| lanes.truncate(period));
        (Lines { of_lanes }, indices)
    }
}

impl Plan {
    /// The plan of a product with these modifiers; `None` if the interpreter's step computes it.
    pub(crate) fn of(mods: &Mods, env: &Env) -> Option<Plan> {
        let product = Product::of(mods)?;
        let types = product.types;
        let satfinite = mods.has(Word::Satfinite);
        let accumulators = (types.d, types.c);
        let is_half = |ty| ty == Ty::F16;
        let arithmetic = match (types.a, types.b) {
            (Ty::F16, Ty::F16) if [types.d, types.c].iter().all(|ty| matches!(ty, Ty::F16 | Ty::F32)) => {
                Arithmetic::Double
            }
            (Ty::Bf16, Ty::Bf16) | (Ty::Tf32, Ty::Tf32)
                if accumulators == (Ty::F32, Ty::F32) && !satfinite =>
            {
                Arithmetic::Double
            }
            (Ty::S8 | Ty::U8, Ty::S8 | Ty::U8) | (Ty::S4 | Ty::U4, Ty::S4 | Ty::U4)
                if accumulators == (Ty::S32, Ty::S32) =>
            {
                Arithmetic::Pairs
            }
            (Ty::B1, Ty::B1) if accumulators == (Ty::S32, Ty::S32) && !satfinite => {
                let is = |word: Word| mods.has(word) || mods.get(Slot::Op) == Some(word);
                match (is(Word::Xor), is(Word::And)) {
                    (true, false) => Arithmetic::Bits { xor: true },
                    (false, true) => Arithmetic::Bits { xor: false },
                    _ => return None,
                }
            }
            _ => return None,
        };
        // Without an instruction, conversions of halves use subnormal numbers.
        let halves = [types.a, types.c, types.d].into_iter().any(is_half);
        if halves && !env.target.has_f16c() && env.flush == Flush::Always {
            return None;
        }
        let fits = !product.sparse
            && product.k.is_multiple_of(arithmetic.group())
            && product.n.is_multiple_of(8)
            && product.m.is_multiple_of(8);
        fits.then(|| Plan::laid_out(product, arithmetic, satfinite, env.target))
    }

    /// The plan, with the vectors of D.
    fn laid_out(product: Product, arithmetic: Arithmetic, satfinite: bool, target: Target) -> Plan {
        let words = target.level().lanes() as usize;
        let lanes = words * 4 / arithmetic.cell_bytes();
        let Product { count, m, n, .. } = product;
        let results = match n.is_multiple_of(lanes) {
            true => (0..count * m * n).collect(),
            false => in_place(&product.d, lanes),
        };
        let lines = |line: &dyn Fn(usize) -> usize| {
            let of_vector = |vector: &[usize]| vector.iter().map(|element| line(*element)).collect();
            Lines::of(&results.chunks(lanes).map(of_vector).collect::<Vec<_>>())
        };
        let (of_a, a) = lines(&|element| element / n);
        let (of_b, b) = lines(&|element| element / (m * n) * n + element % n);
        Plan {
            vectors: a.into_iter().zip(b).map(|(a, b)| [a, b]).collect(),
            results,
            lines: [of_a, of_b],
            lanes,
            product,
            arithmetic,
            satfinite,
        }
    }

    /// The steps from c to d.
    pub(crate) fn steps(&self) -> usize {
        self.product.k / self.arithmetic.group()
    }

    fn lines(&self, side: Side) -> &[Vec<usize>] {
        &self.lines[side as usize].of_lanes
    }

    /// The lanes that differ in one step: further lanes of a vector of D multiply the same elements again.
    pub(crate) fn period(&self, side: Side) -> usize {
        self.lines(side)[0].len()
    }

    /// The distance in bytes between the operands of two consecutive steps.
    pub(crate) fn stride(&self, side: Side) -> usize {
        let period = self.period(side);
        let all = if period == 1 { 1 } else { self.lines(side).len() * period };
        all * self.arithmetic.cell_bytes()
    }

    /// The offset in bytes of a step's operand in an unpacked matrix. `lines`: the index of its combination
    /// of lines.
    pub(crate) fn place(&self, side: Side, step: usize, lines: usize) -> usize {
        let period = self.period(side);
        let each = if period == 1 { self.steps() } else { period };
        step * self.stride(side) + lines * each * self.arithmetic.cell_bytes()
    }

    /// Bytes of an unpacked matrix.
    pub(crate) fn unpacked_bytes(&self, side: Side) -> usize {
        self.steps() * self.lines(side).len() * self.period(side) * self.arithmetic.cell_bytes()
    }

    /// The elements of a matrix in the order in which a product reads them: by steps, combinations of lines,
    /// and lanes. If all lanes need one line, by lines and then by steps, as the elements of a line lie in
    /// its fragment.
    pub(crate) fn order(&self, side: Side) -> Vec<usize> {
        let (k, group) = (self.product.k, self.arithmetic.group());
        let cell = |line: usize, step: usize| (0..group).map(move |at| line * k + step * group + at);
        let lines = || self.lines(side).iter().flatten();
        match self.period(side) {
            1 => lines().flat_map(|line| (0..self.steps()).flat_map(move |step| cell(*line, step))).collect(),
            _ => (0..self.steps()).flat_map(|step| lines().flat_map(move |line| cell(*line, step))).collect(),
        }
    }

    pub(crate) fn fragment(&self, side: Side) -> (&Fragment, Ty) {
        match side {
            Side::A => (&self.product.a, self.product.types.a),
            Side::B => (&self.product.b, self.product.types.b),
        }
    }
}
