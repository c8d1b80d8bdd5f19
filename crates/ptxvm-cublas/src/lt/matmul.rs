//! `cublasLtMatmul`: D = epilogue(alpha op(A) op(B) + beta C).
//!
//! Matrices have column or row order. A matrix in row order is treated as the transpose of one in column
//! order, and a product with a result in row order as the transposed product.
//!
//! Invariant: the call of a product and the request for an algorithm make the same checks.

use super::descriptor::{Descriptor, Kind, find};
use super::epilogue::{Epilogue, Place as Elements, codec};
use crate::entry::functions;
use crate::entry::{Call, Scalar};
use crate::ffi::{Named, Pointer, Region};
use crate::gemm::{Base, Kind as Numbers, Place, kind};
use crate::handle::{self, PointerMode, Settings};
use crate::log;
use crate::number::{C32, C64, Codec, DataType, Whole, Work};
use crate::operand::{Op, Operand};
use crate::product::{self, Product, Term};
use crate::status::{Answer, Status, valid};
use crate::storage::Matrix;
use std::slice::from_ref;

const CALL: &str = "cublasLtMatmul";

/// A layout.
#[derive(Clone, Copy)]
struct Layout {
    ty: DataType,
    by_rows: bool,
    rows: usize,
    columns: usize,
    ld: i64,
    batch: usize,
    stride: i64,
    list: bool,
}

impl Layout {
    fn of(descriptor: &Descriptor) -> Answer<Self> {
        let Some(ty) = DataType::of(descriptor.get(0)) else {
            return log::refused(&format!("{CALL} with cudaDataType {}", descriptor.get(0)));
        };
        let by_rows = match descriptor.get(1) {
            0 => false,
            1 => true,
            order => return log::refused(&format!("{CALL} with cublasLtOrder {order}")),
        };
        let count = |number: i32| usize::try_from(descriptor.get(number)).map_err(|_| Status::INVALID_VALUE);
        let list = match descriptor.get(8) {
            0 => false,
            1 => true,
            _ => return Err(Status::INVALID_VALUE),
        };
        if descriptor.get(7) != 0 {
            return log::refused(&format!("{CALL} with complex numbers in separate planes"));
        }
        let (rows, columns, batch) = (count(2)?, count(3)?, count(5)?);
        let layout = Self {
            ty,
            by_rows,
            rows,
            columns,
            ld: descriptor.get(4),
            batch,
            stride: descriptor.get(6),
            list,
        };
        let (inner, _) = layout.stored();
        valid(layout.ld >= 0 && layout.ld as usize >= inner)?;
        Ok(layout)
    }

    /// Rows and columns of the matrix in column order.
    fn stored(&self) -> (usize, usize) {
        if self.by_rows { (self.columns, self.rows) } else { (self.rows, self.columns) }
    }

    fn place<W: Work>(&self, name: &'static str, at: Pointer, codec: Codec<W>) -> Answer<Place<W>> {
        let base = match self.list {
            true => Base::list(Named::read(CALL, name), at, self.batch)?,
            false => Base::Strided(at, self.stride),
        };
        Ok(Place { base, ld: self.ld, codec })
    }
}

/// A checked product.
#[derive(Clone, Copy)]
pub(super) struct Plan {
    ops: [Op; 2],
    a: Layout,
    b: Layout,
    c: Layout,
    d: Layout,
    k: usize,
    epilogue: Epilogue,
    types: [i64; 2],
    device: bool,
}

/// op(A) for an operand in column order, transposed once more if the transposed product is computed.
fn turned(op: Op, by_rows: bool, swapped: bool, is_complex: bool) -> Answer<Op> {
    let transposes = op.transposes() ^ by_rows ^ swapped;
    match (op == Op::Adjoint && is_complex, transposes) {
        (true, true) => Ok(Op::Adjoint),
        (true, false) => log::refused(&format!("{CALL} with a conjugated matrix in row order")),
        (false, true) => Ok(Op::Transposed),
        (false, false) => Ok(Op::Plain),
    }
}

impl Plan {
    /// Reads and checks the descriptors.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_INVALID_VALUE` for descriptors that do not match, `CUBLAS_STATUS_NOT_SUPPORTED`.
    pub(super) fn of(operation: Pointer, [a, b, c, d]: [Pointer; 4]) -> Answer<(Self, Numbers)> {
        let operation = find(operation, Kind::Operation)?;
        let layout = |at: Pointer| find(at, Kind::Layout).and_then(|found| Layout::of(&found));
        let [a, b, c, d] = [layout(a)?, layout(b)?, layout(c)?, layout(d)?];
        let get = |number: i32| operation.get(number);
        for (numbers, what) in [
            (&[17, 18, 19, 20, 23, 36][..], "scales"),
            (&[21, 24], "an output of the largest element"),
            (&[29, 30], "counters of chunks"),
        ] {
            if numbers.iter().any(|number| get(*number) != 0) {
                return log::refused(&format!("{CALL} with {what}"));
            }
        }
        if get(5) != 0 || get(6) != 2 {
            return log::refused(&format!("{CALL} with a transposed C or a triangle of C"));
        }
        let device = match get(2) {
            0 => false,
            1 => true,
            mode => return log::refused(&format!("{CALL} with cublasLtPointerMode {mode}")),
        };
        let ops = [Op::of(get(3))?, Op::of(get(4))?];
        let (left, right) = (ops[0].turn((a.rows, a.columns)), ops[1].turn((b.rows, b.columns)));
        valid(left.1 == right.0 && left.0 == d.rows && right.1 == d.columns)?;
        valid(c.rows == d.rows && c.columns == d.columns && c.by_rows == d.by_rows && c.ty == d.ty)?;
        valid([a.batch, b.batch, c.batch].iter().all(|batch| *batch == d.batch))?;
        let pointer = |number| Pointer(get(number) as usize);
        let (bias, aux) = ((pointer(8), get(10)), (pointer(11), get(12), get(13)));
        let epilogue = Epilogue::new(get(7), bias, aux, d.rows)?;
        if d.by_rows && !epilogue.allows_rows() {
            return log::refused(&format!("{CALL} with cublasLtEpilogue {} in row order", get(7)));
        }
        let numbers = kind(a.ty, d.ty, get(0)).filter(|_| a.ty == b.ty);
        let scale = |numbers: &Numbers| match numbers {
            Numbers::Half => 2,
            Numbers::Single => 0,
            Numbers::Double => 1,
            Numbers::ComplexSingle => 4,
            Numbers::ComplexDouble => 5,
            Numbers::Whole => 10,
        };
        let Some(numbers) = numbers.filter(|numbers| scale(numbers) == get(1)) else {
            return log::refused(&format!(
                "{CALL} with cudaDataType {} and {}, {} for D, in cublasComputeType {} with factors of cudaDataType {}",
                a.ty.code(),
                b.ty.code(),
                d.ty.code(),
                get(0),
                get(1)
            ));
        };
        let is_complex = matches!(numbers, Numbers::ComplexSingle | Numbers::ComplexDouble);
        if !matches!(numbers, Numbers::Half | Numbers::Single | Numbers::Double) && !epilogue.is_nothing() {
            return log::refused(&format!("{CALL} with cublasLtEpilogue {} for these types", get(7)));
        }
        let types = [get(26), get(22)];
        let ops = [
            turned(ops[0], a.by_rows, d.by_rows, is_complex)?,
            turned(ops[1], b.by_rows, d.by_rows, is_complex)?,
        ];
        Ok((Self { ops, a, b, c, d, k: left.1, epilogue, types, device }, numbers))
    }
}

/// The factors and matrices of a call.
#[derive(Clone, Copy)]
struct Arguments {
    alpha: Pointer,
    a: Pointer,
    b: Pointer,
    beta: Pointer,
    c: Pointer,
    d: Pointer,
}

/// A product with its factors.
#[derive(Clone, Copy)]
struct Task<W> {
    plan: Plan,
    alpha: Scalar<W>,
    beta: Scalar<W>,
    a: Place<W>,
    b: Place<W>,
    c: Place<W>,
    d: Place<W>,
    bias: Codec<W>,
    aux: Codec<W>,
}

impl<W: Work> Task<W> {
    fn one(&self, index: usize) -> Answer {
        let plan = &self.plan;
        let matrix = |named, place: &Place<W>, layout: &Layout| place.matrix(named, index, layout.stored());
        let (alpha, beta) = (self.alpha.get(), self.beta.get());
        let d = matrix(Named::written(CALL, "D"), &self.d, &plan.d)?;
        // If beta is 0, C may be missing.
        let c = if beta == W::default() { d } else { matrix(Named::read(CALL, "C"), &self.c, &plan.c)? };
        let mut product = Product::scaled(Scalar::Known(beta), c);
        (product.d, product.k) = (d, plan.k);
        let place = Elements {
            call: CALL,
            index,
            shape: (plan.d.rows, plan.d.columns),
            swapped: plan.d.by_rows,
            bias: self.bias,
            aux: self.aux,
        };
        let a = Operand::general(matrix(Named::read(CALL, "A"), &self.a, &plan.a)?, plan.ops[0]);
        let b = Operand::general(matrix(Named::read(CALL, "B"), &self.b, &plan.b)?, plan.ops[1]);
        let (left, right) = if plan.d.by_rows { (b, a) } else { (a, b) };
        let alpha = Scalar::Known(alpha);
        product.terms.push(Term { alpha, conjugate: false, a: left, b: right });
        if !plan.epilogue.is_nothing() {
            product.finish = Some(plan.epilogue.finish(&place)?);
        }
        product::run(from_ref(&product))?;
        plan.epilogue.gradient(&place, (&a, &b), plan.k, &d)
    }
}

fn start<W: Work>(call: &Call, plan: &Plan, at: &Arguments, scale: Codec<W>) -> Answer {
    let own = |ty| W::codec(ty).ok_or(Status::INTERNAL_ERROR);
    let d = own(plan.d.ty)?;
    let (alpha, beta) = (call.scalar("alpha", at.alpha, scale)?, call.scalar("beta", at.beta, scale)?);
    if plan.d.rows == 0 || plan.d.columns == 0 || plan.d.batch == 0 {
        return Ok(());
    }
    // If C is missing, it is not read.
    let c = if at.c.is_null() { at.d } else { at.c };
    let task = Task {
        plan: *plan,
        alpha,
        beta,
        a: plan.a.place("A", at.a, own(plan.a.ty)?)?,
        b: plan.b.place("B", at.b, own(plan.b.ty)?)?,
        c: plan.c.place("C", c, d)?,
        d: plan.d.place("D", at.d, d)?,
        bias: codec(plan.types[0], d)?,
        aux: codec(plan.types[1], d)?,
    };
    if !plan.d.list {
        let matrix = |named, place: &Place<W>, layout: &Layout| -> Answer<Matrix<W>> {
            place.matrix(named, 0, layout.stored())
        };
        matrix(Named::written(CALL, "D"), &task.d, &plan.d)?;
        matrix(Named::read(CALL, "A"), &task.a, &plan.a)?;
        matrix(Named::read(CALL, "B"), &task.b, &plan.b)?;
    }
    call.submit(move || (0..task.plan.d.batch).try_for_each(|index| task.one(index)))
}

fn matmul(
    handle: Pointer,
    operation: Pointer,
    layouts: [Pointer; 4],
    at: Arguments,
    stream: Pointer,
) -> Answer {
    handle::settings(handle)?;
    let (plan, numbers) = Plan::of(operation, layouts)?;
    let pointer_mode = if plan.device { PointerMode::Device } else { PointerMode::Host };
    let settings = Settings::of(stream.0, pointer_mode);
    let call = Call { name: CALL, wide: false, settings };
    fn own<W: Work>() -> Answer<Codec<W>> {
        crate::entry::own()
    }
    match numbers {
        Numbers::Half => {
            let half = f32::codec(DataType::F16).ok_or(Status::INTERNAL_ERROR)?;
            start(&call, &plan, &at, half)
        }
        Numbers::Single => start::<f32>(&call, &plan, &at, own()?),
        Numbers::Double => start::<f64>(&call, &plan, &at, own()?),
        Numbers::ComplexSingle => start::<C32>(&call, &plan, &at, own()?),
        Numbers::ComplexDouble => start::<C64>(&call, &plan, &at, own()?),
        Numbers::Whole => start::<Whole>(&call, &plan, &at, own()?),
    }
}

functions! {
    cublasLtMatmul(
        handle: Pointer, operation: Pointer, alpha: Pointer, a: Pointer, la: Pointer, b: Pointer, lb: Pointer,
        beta: Pointer, c: Pointer, lc: Pointer, d: Pointer, ld: Pointer, algorithm: Pointer, workspace: Pointer,
        bytes: usize, stream: Pointer
    ) {
        super::algorithm::check(algorithm)?;
        if bytes > 0 && !workspace.is_null() {
            Region::new(Named::written(CALL, "workspace"), workspace.address(), bytes as u128, 16)?;
        }
        let at = Arguments { alpha, a, b, beta, c, d };
        matmul(handle, operation, [la, lb, lc, ld], at, stream)
    }
}
