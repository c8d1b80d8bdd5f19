//! Epilogues of a product: an added bias, and an activation function or its derivative.
//!
//! GELU is the approximation by tanh. The mask of ReLU has a bit for each element, which is set if the
//! element is greater than 0. The gradient at 0 is 0.
//!
//! Invariant: epilogues apply before elements are rounded to the type of D. Gradients of a bias are summed
//! from D and the operands in memory, after the product.

use crate::ffi::{Named, Pointer, Region};
use crate::log;
use crate::number::{Codec, Work};
use crate::operand::Operand;
use crate::product::Finish;
use crate::status::{Answer, Status, buffer};
use crate::storage::{Matrix, Vector};
use std::sync::Arc;

/// `cublasLtEpilogue_t` and its arguments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epilogue {
    code: i64,
    /// The pointer to the bias or its gradient, and the distance between matrices of a batch in elements.
    pub(super) bias: (Pointer, i64),
    /// An additional input or output: pointer, leading dimension, stride.
    pub(super) aux: (Pointer, i64, i64),
}

const RELU: i64 = 2;
const BIAS: i64 = 4;
const RELU_GRADIENT: i64 = 8;
const BIAS_GRADIENT: i64 = 16;
const GELU: i64 = 32;
const GELU_GRADIENT: i64 = 64;
const AUX: i64 = 128;
const GRADIENT_OF_A: i64 = 256;
const GRADIENT_OF_B: i64 = 512;

impl Epilogue {
    /// The epilogue with a number of the public header.
    ///
    /// # Errors
    /// `CUBLAS_STATUS_INVALID_VALUE` for an unknown number, for missing pointers, and for leading dimensions
    /// that are too small.
    pub(super) fn new(
        code: i64,
        bias: (Pointer, i64),
        aux: (Pointer, i64, i64),
        rows: usize,
    ) -> Answer<Self> {
        let all = [
            1,
            RELU,
            RELU | AUX,
            BIAS,
            RELU | BIAS,
            RELU | AUX | BIAS,
            RELU_GRADIENT | AUX,
            RELU_GRADIENT | AUX | BIAS_GRADIENT,
            GELU,
            GELU | AUX,
            GELU | BIAS,
            GELU | AUX | BIAS,
            GELU_GRADIENT | AUX,
            GELU_GRADIENT | AUX | BIAS_GRADIENT,
            GRADIENT_OF_A,
            GRADIENT_OF_B,
        ];
        Status::INVALID_VALUE.unless(all.contains(&code))?;
        let epilogue = Self { code: if code == 1 { 0 } else { code }, bias, aux };
        if epilogue.has(AUX) {
            let unit = if epilogue.has(RELU | RELU_GRADIENT) { 128 } else { 8 };
            Status::INVALID_VALUE.unless(aux.1 >= rows as i64 && aux.1 % unit == 0 && aux.2 % unit == 0)?;
        }
        Ok(epilogue)
    }

    fn has(&self, any: i64) -> bool {
        self.code & any != 0
    }

    /// Whether it leaves elements unchanged.
    pub(super) fn is_nothing(&self) -> bool {
        self.code == 0
    }

    /// Whether it can be applied to matrices in row order.
    pub(super) fn allows_rows(&self) -> bool {
        self.code & !(RELU | GELU | BIAS) == 0
    }
}

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + inner(x).tanh())
}

fn inner(x: f64) -> f64 {
    std::f64::consts::FRAC_2_PI.sqrt() * (x + 0.044715 * x * x * x)
}

fn gelu_gradient(x: f64) -> f64 {
    let tanh = inner(x).tanh();
    let slope = std::f64::consts::FRAC_2_PI.sqrt() * (1.0 + 3.0 * 0.044715 * x * x);
    0.5 * (1.0 + tanh) + 0.5 * x * (1.0 - tanh * tanh) * slope
}

/// One product of a batch.
pub(super) struct Place<W> {
    pub(super) call: &'static str,
    pub(super) index: usize,
    /// Rows and columns of D.
    pub(super) shape: (usize, usize),
    /// Whether the transposed product is computed.
    pub(super) swapped: bool,
    pub(super) bias: Codec<W>,
    pub(super) aux: Codec<W>,
}

impl<W: Work> Place<W> {
    fn named(&self, argument: &'static str) -> Named {
        Named::read(self.call, argument)
    }

    fn written(&self, argument: &'static str) -> Named {
        Named::written(self.call, argument)
    }

    fn offset(&self, stride: i64, bytes: u64) -> usize {
        (self.index as u64).wrapping_mul(stride as u64).wrapping_mul(bytes) as usize
    }
}

/// Bits of a mask. Each column begins with a new byte.
#[derive(Clone, Copy)]
struct Mask {
    region: Region,
    stride: u64,
}

impl Mask {
    fn new<W: Work>(epilogue: &Epilogue, place: &Place<W>) -> Answer<Self> {
        let (at, ld, stride) = epilogue.aux;
        let bytes = (place.shape.1 as u128 - 1) * (ld as u128 / 8) + (place.shape.0 as u128).div_ceil(8);
        let at = at.offset(place.offset(stride / 8, 1));
        let region = Region::new(epilogue.auxiliary(place), at.address(), bytes, 1)?;
        Ok(Self { region, stride: ld as u64 / 8 })
    }

    fn store(&self, row: usize, column: usize, bits: impl ExactSizeIterator<Item = bool>) {
        let mut bytes = vec![0u8; bits.len().div_ceil(8)];
        for (index, bit) in bits.enumerate() {
            bytes[index / 8] |= u8::from(bit) << (index % 8);
        }
        self.region.write(column as u64 * self.stride + row as u64 / 8, &bytes);
    }

    fn load(&self, row: usize, column: usize, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count.div_ceil(8)];
        self.region.read(column as u64 * self.stride + row as u64 / 8, &mut bytes);
        bytes
    }
}

impl Epilogue {
    /// The auxiliary matrix: functions write it, and their gradients read it.
    fn auxiliary<W: Work>(&self, place: &Place<W>) -> Named {
        let name = "EPILOGUE_AUX_POINTER";
        if self.has(RELU | GELU) { place.written(name) } else { place.named(name) }
    }

    /// The epilogue of one product of a batch.
    ///
    /// # Errors
    /// As [`Region::new`]; `CUBLAS_STATUS_ALLOC_FAILED`.
    pub(super) fn finish<W: Work>(&self, place: &Place<W>) -> Answer<Finish<W>> {
        let bias = if self.has(BIAS) {
            let at = self.bias.0.offset(place.offset(self.bias.1, place.bias.ty.bytes()));
            Some(Vector::new(place.named("BIAS_POINTER"), at, place.shape.0, 1, place.bias)?.all()?)
        } else {
            None
        };
        let mask = match self.has(AUX) && self.has(RELU | RELU_GRADIENT) {
            true => Some(Mask::new(self, place)?),
            false => None,
        };
        let aux = match self.has(AUX) && self.has(GELU | GELU_GRADIENT) {
            true => {
                let (at, ld, stride) = self.aux;
                let at = at.offset(place.offset(stride, place.aux.ty.bytes()));
                Some(Matrix::new(self.auxiliary(place), at, place.shape, ld, place.aux)?)
            }
            false => None,
        };
        let (what, swapped) = (*self, place.swapped);
        Ok(Arc::new(move |row, column, values: &mut [W]| {
            if let Some(bias) = &bias {
                if swapped {
                    values.iter_mut().for_each(|value| *value += bias[column]);
                } else {
                    values.iter_mut().zip(&bias[row..]).for_each(|(value, bias)| *value += *bias);
                }
            }
            what.apply(mask, aux, (row, column), values);
        }))
    }

    fn apply<W: Work>(
        &self,
        mask: Option<Mask>,
        aux: Option<Matrix<W>>,
        (row, column): (usize, usize),
        values: &mut [W],
    ) {
        let change = |values: &mut [W], with: fn(f64) -> f64| {
            values.iter_mut().for_each(|value| *value = W::of_real(with(value.parts()[0])));
        };
        if self.has(RELU) {
            if let Some(mask) = mask {
                mask.store(row, column, values.iter().map(|value| value.parts()[0] > 0.0));
            }
            // NaN stays NaN.
            change(values, |x| if x < 0.0 { 0.0 } else { x });
        } else if self.has(GELU) {
            if let Some(aux) = aux {
                aux.store(row, column, values);
            }
            change(values, gelu);
        } else if let (true, Some(mask)) = (self.has(RELU_GRADIENT), mask) {
            let bits = mask.load(row, column, values.len());
            for (index, value) in values.iter_mut().enumerate() {
                if bits[index / 8] >> (index % 8) & 1 == 0 {
                    *value = W::default();
                }
            }
        } else if let (true, Some(aux)) = (self.has(GELU_GRADIENT), aux) {
            let mut inputs = vec![W::default(); values.len()];
            aux.load(row, column, &mut inputs);
            for (value, input) in values.iter_mut().zip(inputs) {
                *value *= W::of_real(gelu_gradient(input.parts()[0]));
            }
        }
    }

    /// Sums the gradient of a bias, after the product.
    ///
    /// # Errors
    /// As [`Region::new`]; `CUBLAS_STATUS_ALLOC_FAILED`.
    pub(super) fn gradient<W: Work>(
        &self,
        place: &Place<W>,
        (a, b): (&Operand<W>, &Operand<W>),
        k: usize,
        d: &Matrix<W>,
    ) -> Answer {
        let (m, n) = place.shape;
        let sums = if self.has(BIAS_GRADIENT) {
            let mut sums = buffer(W::default(), m)?;
            let mut piece = buffer(W::default(), m)?;
            for column in 0..n {
                d.load(0, column, &mut piece);
                sums.iter_mut().zip(&piece).for_each(|(sum, value)| *sum += *value);
            }
            sums
        } else if self.has(GRADIENT_OF_A) {
            let mut sums = buffer(W::default(), m)?;
            let mut piece = buffer(W::default(), m)?;
            for column in 0..k {
                a.tile(0..m, column..column + 1, &mut piece);
                sums.iter_mut().zip(&piece).for_each(|(sum, value)| *sum += *value);
            }
            sums
        } else if self.has(GRADIENT_OF_B) {
            let mut sums = buffer(W::default(), n)?;
            let mut piece = buffer(W::default(), n)?;
            for row in 0..k {
                b.tile(row..row + 1, 0..n, &mut piece);
                sums.iter_mut().zip(&piece).for_each(|(sum, value)| *sum += *value);
            }
            sums
        } else {
            return Ok(());
        };
        let at = self.bias.0.offset(place.offset(self.bias.1, place.bias.ty.bytes()));
        Vector::new(place.written("BIAS_POINTER"), at, sums.len(), 1, place.bias)?.store(0, &sums);
        Ok(())
    }
}

/// The codec of the type that an attribute names; `-1` means the type of D.
///
/// # Errors
/// `CUBLAS_STATUS_NOT_SUPPORTED`.
pub(super) fn codec<W: Work>(code: i64, of_d: Codec<W>) -> Answer<Codec<W>> {
    if code == -1 {
        return Ok(of_d);
    }
    match crate::number::DataType::of(code).and_then(W::codec) {
        Some(codec) => Ok(codec),
        None => log::refused(&format!("an epilogue of cublasLtMatmul with cudaDataType {code}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gelu_and_its_gradient_belong_together() {
        assert!(gelu(0.0) == 0.0 && (gelu(1.0) - 0.841_191_990_608_276).abs() < 1e-12);
        for x in [-3.0, -1.0, -0.2, 0.0, 0.5, 2.0] {
            let slope = (gelu(x + 1e-6) - gelu(x - 1e-6)) / 2e-6;
            assert!((slope - gelu_gradient(x)).abs() < 1e-8, "{x}");
        }
    }
}
