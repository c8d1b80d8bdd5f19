//! Numbers: element types in memory, and the compute types.
//!
//! Invariant: decoding an element is exact. Encoding rounds to the nearest element, ties to even; 8-bit
//! integers are rounded and clamped.

use half::slice::HalfFloatSliceExt as _;
use half::{bf16, f16};
use num_complex::Complex;
use std::num::Wrapping;
use std::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub, SubAssign};

/// Complex numbers of single precision.
pub(crate) type C32 = Complex<f32>;
/// Complex numbers of double precision.
pub(crate) type C64 = Complex<f64>;
/// Integers, which wrap around as on the device.
pub(crate) type Whole = Wrapping<i32>;

/// `cudaDataType`: the values that functions here accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DataType {
    F16,
    Bf16,
    F32,
    F64,
    C32,
    C64,
    I8,
    I32,
}

impl DataType {
    /// The type with a number of the public header.
    pub(crate) fn of(code: i64) -> Option<Self> {
        Some(match code {
            0 => Self::F32,
            1 => Self::F64,
            2 => Self::F16,
            3 => Self::I8,
            4 => Self::C32,
            5 => Self::C64,
            10 => Self::I32,
            14 => Self::Bf16,
            _ => return None,
        })
    }

    /// Its number in the public header.
    pub(crate) fn code(self) -> i32 {
        match self {
            Self::F32 => 0,
            Self::F64 => 1,
            Self::F16 => 2,
            Self::I8 => 3,
            Self::C32 => 4,
            Self::C64 => 5,
            Self::I32 => 10,
            Self::Bf16 => 14,
        }
    }

    /// Size of an element in bytes.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::I8 => 1,
            Self::F16 | Self::Bf16 => 2,
            Self::F32 | Self::I32 => 4,
            Self::F64 | Self::C32 => 8,
            Self::C64 => 16,
        }
    }

    /// The alignment of elements in bytes.
    pub(crate) fn alignment(self) -> u64 {
        self.bytes().min(8)
    }
}

/// Conversions between elements and numbers.
pub(crate) struct Codec<W> {
    pub(crate) ty: DataType,
    /// Converts as many elements as there are numbers.
    pub(crate) decode: fn(&[u8], &mut [W]),
    /// Converts as many numbers as there are elements.
    pub(crate) encode: fn(&[W], &mut [u8]),
}

impl<W> Clone for Codec<W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Codec<W> {}

/// A compute type.
pub(crate) trait Work:
    Copy
    + Default
    + PartialEq
    + std::fmt::Debug
    + Send
    + Sync
    + 'static
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + SubAssign
    + MulAssign
{
    /// The element type of the same format.
    const TYPE: DataType;
    /// 1.
    const ONE: Self;
    /// The codec between an element type and this type, if there is one.
    fn codec(ty: DataType) -> Option<Codec<Self>>;
    /// The codec of real elements of the same precision; it encodes the real part.
    fn real_codec() -> Codec<Self>;
    /// The conjugate.
    fn conj(self) -> Self;
    /// The number without its imaginary part.
    fn real(self) -> Self;
    /// Converts a real number.
    fn of_real(value: f64) -> Self;
    /// The real and the imaginary part.
    fn parts(self) -> [f64; 2];
    /// Makes a number of its real and imaginary part.
    fn of_parts(parts: [f64; 2]) -> Self;
    /// |re| + |im|, by which pivots and largest elements are chosen.
    fn size(self) -> f64 {
        let [re, im] = self.parts();
        re.abs() + im.abs()
    }
    /// C += A B. [`crate::kernel`] describes the strides.
    fn accumulate(shape: crate::kernel::Shape, a: &[Self], b: &[Self], c: &mut [Self]);
}

macro_rules! elements {
    ($decode:ident, $encode:ident, $element:ty, $work:ty, $bytes:literal, $to:expr, $from:expr) => {
        fn $decode(bytes: &[u8], numbers: &mut [$work]) {
            let to: fn($element) -> $work = $to;
            let (elements, _) = bytes.as_chunks::<$bytes>();
            for (number, element) in numbers.iter_mut().zip(elements) {
                *number = to(<$element>::from_ne_bytes(*element));
            }
        }
        fn $encode(numbers: &[$work], bytes: &mut [u8]) {
            let from: fn($work) -> $element = $from;
            let (elements, _) = bytes.as_chunks_mut::<$bytes>();
            for (element, number) in elements.iter_mut().zip(numbers) {
                *element = from(*number).to_ne_bytes();
            }
        }
    };
}

elements!(decode_f32, encode_f32, f32, f32, 4, |x| x, |x| x);
elements!(decode_f64, encode_f64, f64, f64, 8, |x| x, |x| x);
elements!(decode_i32, encode_i32, i32, Whole, 4, Wrapping, |x| x.0);
elements!(decode_i8, encode_i8, i8, Whole, 1, |x| Wrapping(x.into()), |x| x.0.clamp(-128, 127) as i8);
elements!(decode_byte, encode_byte, i8, f32, 1, f32::from, |x| x.round_ties_even() as i8);

/// Elements that are converted at a time.
const PART: usize = 256;

macro_rules! halves {
    ($decode:ident, $encode:ident, $half:ty) => {
        fn $decode(bytes: &[u8], numbers: &mut [f32]) {
            let (elements, _) = bytes.as_chunks::<2>();
            let mut halves = [<$half>::ZERO; PART];
            for (numbers, elements) in numbers.chunks_mut(PART).zip(elements.chunks(PART)) {
                for (half, element) in halves.iter_mut().zip(elements) {
                    *half = <$half>::from_ne_bytes(*element);
                }
                halves[..numbers.len()].convert_to_f32_slice(numbers);
            }
        }
        fn $encode(numbers: &[f32], bytes: &mut [u8]) {
            let (elements, _) = bytes.as_chunks_mut::<2>();
            let mut halves = [<$half>::ZERO; PART];
            for (numbers, elements) in numbers.chunks(PART).zip(elements.chunks_mut(PART)) {
                halves[..numbers.len()].convert_from_f32_slice(numbers);
                for (half, element) in halves.iter().zip(elements) {
                    *element = half.to_ne_bytes();
                }
            }
        }
    };
}

halves!(decode_f16, encode_f16, f16);
halves!(decode_bf16, encode_bf16, bf16);

macro_rules! complex {
    ($decode:ident, $encode:ident, $decode_real:ident, $encode_real:ident, $real:ty, $half:literal) => {
        fn $decode_real(bytes: &[u8], numbers: &mut [Complex<$real>]) {
            let (elements, _) = bytes.as_chunks::<$half>();
            for (number, element) in numbers.iter_mut().zip(elements) {
                *number = Complex::new(<$real>::from_ne_bytes(*element), 0.0);
            }
        }
        fn $encode_real(numbers: &[Complex<$real>], bytes: &mut [u8]) {
            let (elements, _) = bytes.as_chunks_mut::<$half>();
            for (number, element) in numbers.iter().zip(elements) {
                *element = number.re.to_ne_bytes();
            }
        }
        fn $decode(bytes: &[u8], numbers: &mut [Complex<$real>]) {
            let (elements, _) = bytes.as_chunks::<$half>();
            for (number, parts) in numbers.iter_mut().zip(elements.chunks_exact(2)) {
                *number = Complex::new(<$real>::from_ne_bytes(parts[0]), <$real>::from_ne_bytes(parts[1]));
            }
        }
        fn $encode(numbers: &[Complex<$real>], bytes: &mut [u8]) {
            let (elements, _) = bytes.as_chunks_mut::<$half>();
            for (number, parts) in numbers.iter().zip(elements.chunks_exact_mut(2)) {
                parts[0] = number.re.to_ne_bytes();
                parts[1] = number.im.to_ne_bytes();
            }
        }
    };
}

complex!(decode_c32, encode_c32, decode_real_c32, encode_real_c32, f32, 4);
complex!(decode_c64, encode_c64, decode_real_c64, encode_real_c64, f64, 8);

macro_rules! real_work {
    ($work:ty, $ty:ident, $one:literal, [$($element:ident $decode:ident $encode:ident),*], $product:path) => {
        impl Work for $work {
            const TYPE: DataType = DataType::$ty;
            const ONE: Self = $one;
            fn codec(ty: DataType) -> Option<Codec<Self>> {
                $(if ty == DataType::$element {
                    return Some(Codec { ty, decode: $decode, encode: $encode });
                })*
                None
            }
            fn real_codec() -> Codec<Self> {
                real_codec!($ty)
            }
            fn conj(self) -> Self {
                self
            }
            fn real(self) -> Self {
                self
            }
            fn of_real(value: f64) -> Self {
                value as $work
            }
            fn parts(self) -> [f64; 2] {
                [self as f64, 0.0]
            }
            fn of_parts([re, _]: [f64; 2]) -> Self {
                re as $work
            }
            fn accumulate(shape: crate::kernel::Shape, a: &[Self], b: &[Self], c: &mut [Self]) {
                $product(shape, a, b, c);
            }
        }
    };
}

macro_rules! complex_work {
    ($real:ty, $ty:ident, $decode:ident, $encode:ident, $ty_real:ident, $decode_real:ident, $encode_real:ident, $product:path) => {
        impl Work for Complex<$real> {
            const TYPE: DataType = DataType::$ty;
            const ONE: Self = Complex::new(1.0, 0.0);
            fn codec(ty: DataType) -> Option<Codec<Self>> {
                (ty == DataType::$ty).then_some(Codec { ty, decode: $decode, encode: $encode })
            }
            fn real_codec() -> Codec<Self> {
                Codec { ty: DataType::$ty_real, decode: $decode_real, encode: $encode_real }
            }
            fn conj(self) -> Self {
                Complex::conj(&self)
            }
            fn real(self) -> Self {
                Complex::new(self.re, 0.0)
            }
            fn of_real(value: f64) -> Self {
                Complex::new(value as $real, 0.0)
            }
            fn parts(self) -> [f64; 2] {
                [f64::from(self.re), f64::from(self.im)]
            }
            fn of_parts([re, im]: [f64; 2]) -> Self {
                Complex::new(re as $real, im as $real)
            }
            fn accumulate(shape: crate::kernel::Shape, a: &[Self], b: &[Self], c: &mut [Self]) {
                $product(shape, a, b, c);
            }
        }
    };
}

macro_rules! real_codec {
    (F32) => {
        Codec { ty: DataType::F32, decode: decode_f32, encode: encode_f32 }
    };
    (F64) => {
        Codec { ty: DataType::F64, decode: decode_f64, encode: encode_f64 }
    };
}

real_work!(
    f32, F32, 1.0,
    [F32 decode_f32 encode_f32, F16 decode_f16 encode_f16, Bf16 decode_bf16 encode_bf16, I8 decode_byte encode_byte],
    crate::kernel::product_f32
);
real_work!(f64, F64, 1.0, [F64 decode_f64 encode_f64], crate::kernel::product_f64);
complex_work!(
    f32,
    C32,
    decode_c32,
    encode_c32,
    F32,
    decode_real_c32,
    encode_real_c32,
    crate::kernel::product_c32
);
complex_work!(
    f64,
    C64,
    decode_c64,
    encode_c64,
    F64,
    decode_real_c64,
    encode_real_c64,
    crate::kernel::product_c64
);

impl Work for Whole {
    const TYPE: DataType = DataType::I32;
    const ONE: Self = Wrapping(1);
    fn codec(ty: DataType) -> Option<Codec<Self>> {
        match ty {
            DataType::I32 => Some(Codec { ty, decode: decode_i32, encode: encode_i32 }),
            DataType::I8 => Some(Codec { ty, decode: decode_i8, encode: encode_i8 }),
            _ => None,
        }
    }
    fn real_codec() -> Codec<Self> {
        Codec { ty: DataType::I32, decode: decode_i32, encode: encode_i32 }
    }
    fn conj(self) -> Self {
        self
    }
    fn real(self) -> Self {
        self
    }
    fn of_real(value: f64) -> Self {
        Wrapping(value as i32)
    }
    fn parts(self) -> [f64; 2] {
        [f64::from(self.0), 0.0]
    }
    fn of_parts([re, _]: [f64; 2]) -> Self {
        Wrapping(re as i32)
    }
    fn accumulate(shape: crate::kernel::Shape, a: &[Self], b: &[Self], c: &mut [Self]) {
        crate::kernel::product_whole(shape, a, b, c);
    }
}
