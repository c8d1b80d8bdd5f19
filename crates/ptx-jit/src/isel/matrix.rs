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
        let plan = Plan { product, arithmetic, satfinite };
        let fits = !plan.product.sparse
            && plan.product.k.is_multiple_of(plan.group())
            && plan.product.n.is_multiple_of(8)
            && plan.product.m.is_multiple_of(8);
        fits.then_some(plan)
    }

    /// Elements of a line that one step multiplies.
    fn group(&self) -> usize {
        match self.arithmetic {
            Arithmetic::Double | Arithmetic::Bits { .. } => 1,
            Arithmetic::Pairs => 2,
        }
    }

    /// The steps from c to d.
    pub(crate) fn steps(&self) -> usize {
        self.product.k / self.group()
    }

    /// Bytes of the elements that one step multiplies.
    pub(crate) fn cell_bytes(&self) -> usize {
        match self.arithmetic {
            Arithmetic::Double => 8,
            Arithmetic::Pairs | Arithmetic::Bits { .. } => 4,
        }
    }

    /// Bytes of an unpacked matrix.
    pub(crate) fn unpacked_bytes(&self, side: Side) -> usize {
        let lines = match side {
            Side::A => self.product.m,
            Side::B => self.product.n,
        };
        self.product.count * lines * self.steps() * self.cell_bytes()
    }

    /// The elements of a matrix in the order in which [`Plan::multiply`] reads them: of A by lines, of B by
    /// steps and then by lines.
    pub(crate) fn order(&self, side: Side) -> Vec<usize> {
        let Product { count, m, n, k, .. } = self.product;
        let (steps, group) = (self.steps(), self.group());
        let mut order = Vec::new();
        let mut push = |line: usize, step: usize| {
            order.extend((0..group).map(|at| line * k + step * group + at));
        };
        for one in 0..count {
            match side {
                Side::A => (0..m).for_each(|line| (0..steps).for_each(|step| push(one * m + line, step))),
                Side::B => (0..steps).for_each(|step| (0..n).for_each(|line| push(one * n + line, step))),
            }
        }
        order
    }

    pub(crate) fn fragment(&self, side: Side) -> (&Fragment, Ty) {
        match side {
            Side::A => (&self.product.a, self.product.types.a),
            Side::B => (&self.product.b, self.product.types.b),
        }
    }
}
