//! The library as programs load it, and device memory for its tests.
#![allow(dead_code, reason = "each test uses a part")]

use num_complex::Complex;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::OnceLock;

pub(crate) type C64 = Complex<f64>;
pub(crate) type C32 = Complex<f32>;

/// Statuses of the public header.
pub(crate) const SUCCESS: i32 = 0;
pub(crate) const INVALID_VALUE: i32 = 7;
pub(crate) const EXECUTION_FAILED: i32 = 13;
pub(crate) const NOT_SUPPORTED: i32 = 15;

/// The path of a library that cargo built.
fn path(name: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let deps = test.parent().expect("a test lies in a folder");
    let places = [deps.join(name), deps.join("..").join(name)];
    places.into_iter().find(|path| path.exists()).expect("cargo built the libraries")
}

/// Both libraries. The driver is loaded first, so that cuBLAS finds it loaded.
fn libraries() -> &'static [libloading::Library; 2] {
    static LIBRARIES: OnceLock<[libloading::Library; 2]> = OnceLock::new();
    LIBRARIES.get_or_init(|| {
        // SAFETY: the libraries are ptxvm's own, and their constructors do nothing.
        let open = |name| unsafe { libloading::Library::new(path(name)) }.expect("it loads");
        [open("libptxvm_cuda.so"), open("libptxvm_cublas.so")]
    })
}

type Function = unsafe extern "C" fn(
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
    usize,
) -> i32;

/// Calls a function of either library whose arguments are integers and pointers.
pub(crate) fn raw(name: &str, arguments: &[usize]) -> i32 {
    let mut a = [0; 24];
    a[..arguments.len()].copy_from_slice(arguments);
    let symbol = [name.as_bytes(), b"\0"].concat();
    let found = libraries().iter().find_map(|library| {
        // SAFETY: the symbol is a C function.
        unsafe { library.get::<Function>(&symbol[..]) }.ok()
    });
    let function = *found.unwrap_or_else(|| panic!("`{name}` is not exported"));
    // SAFETY: a function does not read arguments beyond its parameters. Pointers are the tests' own, or wrong
    // on purpose.
    unsafe {
        function(
            a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14],
            a[15], a[16], a[17], a[18], a[19], a[20], a[21], a[22], a[23],
        )
    }
}

/// An argument: an integer, the address of a value, or a pointer to the device.
pub(crate) trait Argument {
    fn word(&self) -> usize;
}

impl Argument for i32 {
    fn word(&self) -> usize {
        i64::from(*self) as usize
    }
}

impl Argument for usize {
    fn word(&self) -> usize {
        *self
    }
}

impl<T> Argument for &T {
    fn word(&self) -> usize {
        std::ptr::from_ref::<T>(self).expose_provenance()
    }
}

impl<T> Argument for &mut T {
    fn word(&self) -> usize {
        std::ptr::from_ref::<T>(self).expose_provenance()
    }
}

/// Calls a function with typed arguments.
#[macro_export]
macro_rules! call {
    ($name:expr $(, $argument:expr)* $(,)?) => {
        $crate::support::raw(&$name, &[$($crate::support::Argument::word(&$argument)),*])
    };
}

/// A handle of cuBLAS. The primary context is current on this thread.
pub(crate) struct Handle(pub(crate) usize);

impl Handle {
    pub(crate) fn new() -> Self {
        let mut handle = 0usize;
        assert_eq!(call!("cublasCreate_v2", &mut handle), SUCCESS);
        Self(handle)
    }

    /// Sets the memory of scalars.
    pub(crate) fn device_mode(&self, device: bool) {
        assert_eq!(call!("cublasSetPointerMode_v2", self.0, i32::from(device)), SUCCESS);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        assert_eq!(call!("cuCtxSynchronize"), SUCCESS);
        assert_eq!(call!("cublasDestroy_v2", self.0), SUCCESS);
    }
}

/// Values in device memory.
pub(crate) struct Device<T> {
    pub(crate) at: usize,
    count: usize,
    of: PhantomData<T>,
}

impl<T: Copy> Device<T> {
    pub(crate) fn new(values: &[T]) -> Self {
        let mut at = 0usize;
        let bytes = size_of_val(values);
        assert_eq!(call!("cuMemAlloc_v2", &mut at, bytes.max(1)), SUCCESS);
        assert_eq!(call!("cuMemcpyHtoD_v2", at, values.as_ptr().expose_provenance(), bytes), SUCCESS);
        Self { at, count: values.len(), of: PhantomData }
    }

    /// The values after all work is done.
    pub(crate) fn get(&self) -> Vec<T> {
        assert_eq!(call!("cuCtxSynchronize"), SUCCESS);
        let mut values = Vec::<T>::with_capacity(self.count);
        let bytes = self.count * size_of::<T>();
        assert_eq!(
            call!("cuMemcpyDtoH_v2", values.as_mut_ptr().expose_provenance(), self.at, bytes),
            SUCCESS
        );
        // SAFETY: the copy wrote `count` values.
        unsafe { values.set_len(self.count) };
        values
    }
}

impl<T> Drop for Device<T> {
    fn drop(&mut self) {
        assert_eq!(call!("cuMemFree_v2", self.at), SUCCESS);
    }
}

/// A type of numbers. References are computed with complex numbers of double precision.
pub(crate) trait Number: Copy + PartialEq + std::fmt::Debug + Default + 'static {
    /// Its letter in names.
    const LETTER: &str;
    const COMPLEX: bool;
    /// The tolerance of results that are not exact.
    const EPSILON: f64;
    fn of(value: C64) -> Self;
    fn to(self) -> C64;
}

macro_rules! numbers {
    ($($ty:ty, $letter:literal, $complex:literal, $epsilon:expr, $of:expr, $to:expr;)*) => {$(
        impl Number for $ty {
            const LETTER: &str = $letter;
            const COMPLEX: bool = $complex;
            const EPSILON: f64 = $epsilon;
            fn of(value: C64) -> Self {
                let of: fn(C64) -> $ty = $of;
                of(value)
            }
            fn to(self) -> C64 {
                let to: fn($ty) -> C64 = $to;
                to(self)
            }
        }
    )*};
}

numbers! {
    f32, "S", false, 1e-5, |x| x.re as f32, |x| C64::new(x.into(), 0.0);
    f64, "D", false, 1e-13, |x| x.re, |x| C64::new(x, 0.0);
    C32, "C", true, 1e-5, |x| C32::new(x.re as f32, x.im as f32), |x| C64::new(x.re.into(), x.im.into());
    C64, "Z", true, 1e-13, |x| x, |x| x;
    half::f16, "H", false, 1e-3, |x| half::f16::from_f64(x.re), |x| C64::new(x.into(), 0.0);
    half::bf16, "T", false, 1e-2, |x| half::bf16::from_f64(x.re), |x| C64::new(x.into(), 0.0);
    i8, "B", false, 0.0, |x| x.re as i8, |x| C64::new(x.into(), 0.0);
    i32, "I", false, 0.0, |x| x.re as i32, |x| C64::new(x.into(), 0.0);
}

/// Small integers that depend on the seed. Sums of their products are exact in every type.
pub(crate) fn values<T: Number>(seed: u64, count: usize) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        ((state >> 33) % 5) as f64 - 2.0
    };
    (0..count).map(|_| T::of(C64::new(next(), next()))).collect()
}

/// A matrix of the reference, in column order.
#[derive(Clone, Debug)]
pub(crate) struct Dense {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) values: Vec<C64>,
}

impl Dense {
    pub(crate) fn new(rows: usize, columns: usize, of: impl Fn(usize, usize) -> C64) -> Self {
        let values = (0..columns).flat_map(|j| (0..rows).map(move |i| (i, j))).map(|(i, j)| of(i, j));
        Self { rows, columns, values: values.collect() }
    }

    /// Reads a matrix from memory.
    pub(crate) fn stored<T: Number>(memory: &[T], rows: usize, columns: usize, ld: usize) -> Self {
        Self::new(rows, columns, |i, j| memory[i + j * ld].to())
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> C64 {
        self.values[row + column * self.rows]
    }

    /// op(A): 0 for A, 1 for the transpose, 2 for the conjugate transpose.
    pub(crate) fn op(&self, op: i32) -> Self {
        match op {
            0 => self.clone(),
            1 => Self::new(self.columns, self.rows, |i, j| self.at(j, i)),
            _ => Self::new(self.columns, self.rows, |i, j| self.at(j, i).conj()),
        }
    }

    pub(crate) fn times(&self, other: &Self) -> Self {
        assert_eq!(self.columns, other.rows);
        let mut product = Self::new(self.rows, other.columns, |_, _| C64::default());
        for j in 0..other.columns {
            let sums = &mut product.values[j * self.rows..][..self.rows];
            for l in 0..self.columns {
                let (column, factor) = (&self.values[l * self.rows..][..self.rows], other.at(l, j));
                // Tests are compiled without optimisation, where this form takes a quarter of the time that
                // iterators and operators of complex numbers take.
                let mut i = 0;
                while i < self.rows {
                    let (sum, value) = (&mut sums[i], &column[i]);
                    sum.re += value.re * factor.re - value.im * factor.im;
                    sum.im += value.re * factor.im + value.im * factor.re;
                    i += 1;
                }
            }
        }
        product
    }

    /// self factor + other other_factor
    pub(crate) fn plus(&self, factor: C64, other: &Self, other_factor: C64) -> Self {
        Self::new(self.rows, self.columns, |i, j| self.at(i, j) * factor + other.at(i, j) * other_factor)
    }

    /// The matrix that a triangle (0 is the lower one) represents: 's'ymmetric, 'h'ermitian, 't'riangular,
    /// 'u'nit triangular.
    pub(crate) fn by_triangle(&self, uplo: i32, form: char) -> Self {
        Self::new(self.rows, self.columns, |i, j| {
            let is_stored = if uplo == 0 { i >= j } else { i <= j };
            match (form, i == j) {
                ('h', true) => C64::new(self.at(i, i).re, 0.0),
                ('u', true) => C64::new(1.0, 0.0),
                _ if is_stored => self.at(i, j),
                ('s', _) => self.at(j, i),
                ('h', _) => self.at(j, i).conj(),
                _ => C64::default(),
            }
        })
    }

    /// Stores the matrix; other memory stays unchanged.
    pub(crate) fn store<T: Number>(
        &self,
        memory: &[T],
        ld: usize,
        keeps: impl Fn(usize, usize) -> bool,
    ) -> Vec<T> {
        let mut memory = memory.to_vec();
        for j in 0..self.columns {
            for i in 0..self.rows {
                if keeps(i, j) {
                    memory[i + j * ld] = T::of(self.at(i, j));
                }
            }
        }
        memory
    }
}

/// A vector of BLAS as a matrix of one column.
pub(crate) fn vector<T: Number>(memory: &[T], n: usize, increment: i32) -> Dense {
    Dense::new(n, 1, |i, _| memory[place(i, n, increment)].to())
}

/// The position of an element of a vector of BLAS.
pub(crate) fn place(index: usize, n: usize, increment: i32) -> usize {
    let step = increment.unsigned_abs() as usize;
    if increment < 0 { (n - 1 - index) * step } else { index * step }
}

/// Stores a vector; memory between its elements stays unchanged.
pub(crate) fn store_vector<T: Number>(values: &Dense, memory: &[T], increment: i32) -> Vec<T> {
    let mut memory = memory.to_vec();
    for i in 0..values.rows {
        memory[place(i, values.rows, increment)] = T::of(values.at(i, 0));
    }
    memory
}

/// The length in elements of a vector in memory.
pub(crate) fn span(n: usize, increment: i32) -> usize {
    if n == 0 { 1 } else { (n - 1) * increment.unsigned_abs() as usize + 1 }
}

/// Fails unless the numbers agree up to rounding.
pub(crate) fn close<T: Number>(found: &[T], expected: &[T], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let (found, expected) = (found.to(), expected.to());
        let off = (found - expected).norm();
        assert!(
            off <= T::EPSILON * (1.0 + expected.norm()) * 8.0,
            "{what}: {found} at {index} is not {expected}"
        );
    }
}
