//! Copies of vectors and matrices between host and device: `cublasSetVector`, `cublasGetMatrix` and the like.
//!
//! Host memory that the driver does not know (it is not pinned) is read or written before a function returns,
//! as in CUDA. Device memory is accessed in the order of the stream.
//!
//! Invariant: memory between the elements of a vector, and below the last row of a column, is neither read
//! nor written.

use crate::driver;
use crate::entry::guard;
use crate::ffi::Named;
use crate::ffi::{Pointer, Region};
use crate::gemm::{count, leading};
use crate::status::{Answer, Status, buffer, valid};

/// Pieces of memory of equal size at a constant distance.
#[derive(Clone, Copy)]
struct Pieces {
    at: Pointer,
    stride: u64,
}

/// The two sides of a copy.
#[derive(Clone, Copy)]
struct Copy {
    name: &'static str,
    stream: usize,
    /// Size of a piece in bytes, and how many there are.
    bytes: usize,
    pieces: usize,
    from: Pieces,
    to: Pieces,
}

impl Copy {
    fn span(&self, pieces: Pieces) -> u128 {
        (self.pieces as u128 - 1) * u128::from(pieces.stride) + self.bytes as u128
    }

    /// The source, which the driver knows.
    fn source(&self) -> Answer<Region> {
        Region::new(Named::read(self.name, "x"), self.from.at.address(), self.span(self.from), 1)
    }

    /// The destination, which the driver knows.
    fn destination(&self) -> Answer<Region> {
        Region::new(Named::written(self.name, "y"), self.to.at.address(), self.span(self.to), 1)
    }

    fn is_known(&self, pieces: Pieces) -> Answer<bool> {
        let bytes = u64::try_from(self.span(pieces)).map_err(|_| Status::INVALID_VALUE)?;
        driver::knows(pieces.at.address(), bytes)
    }

    fn staging(&self) -> Answer<Vec<u8>> {
        buffer(0, self.bytes.checked_mul(self.pieces).ok_or(Status::ALLOC_FAILED)?)
    }

    /// Copies with both sides in the order of the stream.
    fn inside(self, waits: bool) -> Answer {
        let (from, to) = (self.source()?, self.destination()?);
        let work = move || {
            let mut piece = buffer(0, self.bytes)?;
            for index in 0..self.pieces as u64 {
                from.read(index * self.from.stride, &mut piece);
                to.write(index * self.to.stride, &piece);
            }
            Ok(())
        };
        if waits { driver::perform(self.stream, work) } else { driver::submit(self.name, self.stream, work) }
    }

    fn to_device(self, waits: bool) -> Answer {
        driver::enter()?;
        if self.is_known(self.from)? {
            return self.inside(waits);
        }
        let to = self.destination()?;
        let mut staging = self.staging()?;
        for (index, piece) in staging.chunks_exact_mut(self.bytes).enumerate() {
            self.from.at.offset((index as u64).wrapping_mul(self.from.stride) as usize).read(piece)?;
        }
        let work = move || {
            for (index, piece) in staging.chunks_exact(self.bytes).enumerate() {
                to.write(index as u64 * self.to.stride, piece);
            }
            Ok(())
        };
        if waits { driver::perform(self.stream, work) } else { driver::submit(self.name, self.stream, work) }
    }

    fn to_host(self, waits: bool) -> Answer {
        driver::enter()?;
        if self.is_known(self.to)? {
            return self.inside(waits);
        }
        let from = self.source()?;
        let staging = driver::perform(self.stream, move || {
            let mut staging = self.staging()?;
            for (index, piece) in staging.chunks_exact_mut(self.bytes).enumerate() {
                from.read(index as u64 * self.from.stride, piece);
            }
            Ok(staging)
        })?;
        for (index, piece) in staging.chunks_exact(self.bytes).enumerate() {
            self.to.at.offset((index as u64).wrapping_mul(self.to.stride) as usize).write(piece)?;
        }
        Ok(())
    }
}

/// The direction, the stream, and whether the call waits.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    to_device: bool,
    stream: Pointer,
    waits: bool,
}

impl Way {
    fn go(self, bytes: usize, pieces: usize, from: Pieces, to: Pieces) -> Answer {
        if bytes == 0 || pieces == 0 {
            return Ok(());
        }
        let copy = Copy { name: self.name, stream: self.stream.0, bytes, pieces, from, to };
        if self.to_device { copy.to_device(self.waits) } else { copy.to_host(self.waits) }
    }

    fn vector(self, n: i64, size: i64, from: (Pointer, i64), to: (Pointer, i64)) -> Answer {
        valid(size > 0 && from.1 > 0 && to.1 > 0)?;
        let n = usize::try_from(n).unwrap_or(0);
        let stride = |step: i64| (step as u64).checked_mul(size as u64).ok_or(Status::INVALID_VALUE);
        let pieces = |(at, step): (Pointer, i64)| Ok(Pieces { at, stride: stride(step)? });
        let (from, to, size) = ((pieces(from)?, from.1), (pieces(to)?, to.1), size as usize);
        if from.1 == 1 && to.1 == 1 {
            let bytes = n.checked_mul(size).ok_or(Status::INVALID_VALUE)?;
            return self.go(bytes, n.min(1), from.0, to.0);
        }
        self.go(size, n, from.0, to.0)
    }

    fn matrix(self, rows: i64, columns: i64, size: i64, from: (Pointer, i64), to: (Pointer, i64)) -> Answer {
        let (rows, columns) = (count(rows)?, count(columns)?);
        valid(size > 0)?;
        leading(from.1, rows)?;
        leading(to.1, rows)?;
        let bytes = rows.checked_mul(size as usize).ok_or(Status::INVALID_VALUE)?;
        let pieces = |(at, ld): (Pointer, i64)| {
            let stride = (ld as u64).checked_mul(size as u64).ok_or(Status::INVALID_VALUE)?;
            Ok(Pieces { at, stride })
        };
        self.go(bytes, columns, pieces(from)?, pieces(to)?)
    }
}

macro_rules! transfers {
    ($($int:ident $to_device:literal:
        $vector:ident $vector_async:ident $matrix:ident $matrix_async:ident;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $vector(n: $int, size: $int, x: Pointer, incx: $int, y: Pointer, incy: $int) -> Status {
            let name = stringify!($vector);
            let way = Way { name, to_device: $to_device, stream: Pointer(0), waits: true };
            guard(name, move || way.vector(i64::from(n), i64::from(size), (x, i64::from(incx)), (y, i64::from(incy))))
        }
        #[unsafe(no_mangle)]
        extern "C" fn $vector_async(
            n: $int, size: $int, x: Pointer, incx: $int, y: Pointer, incy: $int, stream: Pointer,
        ) -> Status {
            let name = stringify!($vector_async);
            let way = Way { name, to_device: $to_device, stream, waits: false };
            guard(name, move || way.vector(i64::from(n), i64::from(size), (x, i64::from(incx)), (y, i64::from(incy))))
        }
        #[unsafe(no_mangle)]
        extern "C" fn $matrix(
            rows: $int, columns: $int, size: $int, a: Pointer, lda: $int, b: Pointer, ldb: $int,
        ) -> Status {
            let name = stringify!($matrix);
            let way = Way { name, to_device: $to_device, stream: Pointer(0), waits: true };
            guard(name, move || {
                way.matrix(
                    i64::from(rows), i64::from(columns), i64::from(size), (a, i64::from(lda)), (b, i64::from(ldb)),
                )
            })
        }
        #[unsafe(no_mangle)]
        extern "C" fn $matrix_async(
            rows: $int, columns: $int, size: $int, a: Pointer, lda: $int, b: Pointer, ldb: $int, stream: Pointer,
        ) -> Status {
            let name = stringify!($matrix_async);
            let way = Way { name, to_device: $to_device, stream, waits: false };
            guard(name, move || {
                way.matrix(
                    i64::from(rows), i64::from(columns), i64::from(size), (a, i64::from(lda)), (b, i64::from(ldb)),
                )
            })
        }
    )*};
}

transfers! {
    i32 true: cublasSetVector cublasSetVectorAsync cublasSetMatrix cublasSetMatrixAsync;
    i64 true: cublasSetVector_64 cublasSetVectorAsync_64 cublasSetMatrix_64 cublasSetMatrixAsync_64;
    i32 false: cublasGetVector cublasGetVectorAsync cublasGetMatrix cublasGetMatrixAsync;
    i64 false: cublasGetVector_64 cublasGetVectorAsync_64 cublasGetMatrix_64 cublasGetMatrixAsync_64;
}
