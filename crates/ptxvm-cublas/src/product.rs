//! D = alpha op(A) op(B) + beta C, tile by tile.
//!
//! Each tile of D is summed in host memory over pieces of the inner dimension: tiles of A and B are loaded
//! from device memory, converted, and multiplied by [`crate::kernel`]. The memory for this does not grow with
//! the matrices, and element types can be combined freely.
//!
//! Invariant: the order of an element's additions depends only on the inner dimension, so results do not
//! depend on the number of threads. If alpha is 0, A and B are not read; if beta is 0, C is not read.

use crate::entry::Scalar;
use crate::kernel::Shape;
use crate::number::Work;
use crate::operand::{Fill, Operand};
use crate::status::{Answer, Status};
use crate::storage::Matrix;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Most rows and columns of a tile of D, whose sums then fit into the second-level cache.
const TILE: usize = 512;
/// Rows and columns of a tile if there are fewer large tiles than threads.
const SMALL_TILE: usize = 128;
/// The piece of the inner dimension that is multiplied at a time.
const DEPTH: usize = 256;
/// Least number of multiplications that several threads share. Chosen: starting a thread takes about ten
/// microseconds.
const SHARED: u128 = 4_000_000;

/// Applied to a piece of a column of D before it is stored: first row, column, values.
pub(crate) type Finish<W> = Arc<dyn Fn(usize, usize, &mut [W]) + Send + Sync>;

/// alpha op(A) op(B)
#[derive(Clone, Copy)]
pub(crate) struct Term<W> {
    pub(crate) alpha: Scalar<W>,
    /// Whether the conjugate of alpha is the factor.
    pub(crate) conjugate: bool,
    pub(crate) a: Operand<W>,
    pub(crate) b: Operand<W>,
}

/// A product, or a sum of two.
#[derive(Clone)]
pub(crate) struct Product<W> {
    pub(crate) terms: Vec<Term<W>>,
    /// Inner dimension.
    pub(crate) k: usize,
    pub(crate) beta: Scalar<W>,
    pub(crate) c: Matrix<W>,
    pub(crate) d: Matrix<W>,
    /// The triangle of D that is computed; `None` for all of D.
    pub(crate) only: Option<Fill>,
    /// Whether the diagonal of D is real.
    pub(crate) hermitian: bool,
    pub(crate) finish: Option<Finish<W>>,
}

/// Buffers of one thread.
struct Scratch<W> {
    a: Vec<W>,
    b: Vec<W>,
    sums: Vec<W>,
    out: Vec<W>,
}

impl<W: Work> Scratch<W> {
    fn new() -> Self {
        Self { a: Vec::new(), b: Vec::new(), sums: Vec::new(), out: Vec::new() }
    }
}

/// Returns room for `count` values with unspecified contents.
pub(crate) fn room<W: Work>(buffer: &mut Vec<W>, count: usize) -> Answer<&mut [W]> {
    if buffer.len() < count {
        buffer.try_reserve_exact(count - buffer.len()).map_err(|_| Status::ALLOC_FAILED)?;
        buffer.resize(count, W::default());
    }
    Ok(&mut buffer[..count])
}

/// A part of a product: its index, and the rows and columns of D.
struct Tile {
    product: usize,
    rows: Range<usize>,
    columns: Range<usize>,
}

/// Computes independent products.
///
/// # Errors
/// `CUBLAS_STATUS_ALLOC_FAILED`.
pub(crate) fn run<W: Work>(products: &[Product<W>]) -> Answer {
    let cost = |p: &Product<W>| (p.d.rows as u128) * (p.d.columns as u128) * (p.k as u128 + 1);
    let threads = if products.iter().map(cost).sum::<u128>() < SHARED { 1 } else { threads() };
    let mut tiles = Vec::new();
    for (index, product) in products.iter().enumerate() {
        let count = |side: usize| product.d.rows.div_ceil(side) * product.d.columns.div_ceil(side);
        let side = if count(TILE) * products.len() < 2 * threads { SMALL_TILE } else { TILE };
        for column in (0..product.d.columns).step_by(side) {
            let columns = column..(column + side).min(product.d.columns);
            for row in (0..product.d.rows).step_by(side) {
                let rows = row..(row + side).min(product.d.rows);
                let outside = match product.only {
                    Some(Fill::Lower) => rows.end <= columns.start,
                    Some(Fill::Upper) => columns.end <= rows.start,
                    None => false,
                };
                if !outside {
                    tiles.push(Tile { product: index, rows, columns: columns.clone() });
                }
            }
        }
    }
    share(threads, tiles.len(), Scratch::new, |scratch, index| {
        let tile = &tiles[index];
        products[tile.product].tile(scratch, tile)
    })
}

/// Runs `count` tasks on several threads, each with a state of its own.
///
/// # Errors
/// The first error.
pub(crate) fn share<S>(
    threads: usize,
    count: usize,
    own: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> Answer + Sync,
) -> Answer {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Ok(()));
    let body = || {
        let mut own = own();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return;
            }
            if let Err(status) = work(&mut own, index) {
                *failed.lock().unwrap_or_else(PoisonError::into_inner) = Err(status);
                next.store(count, Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(count) {
            // If the system allows no more threads, the existing ones do the work.
            if std::thread::Builder::new().name("ptxvm-cublas".to_owned()).spawn_scoped(scope, body).is_err()
            {
                break;
            }
        }
        body();
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// The number of threads that share large work: `PTXVM_THREADS`, else the number of cores.
pub(crate) fn threads() -> usize {
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| {
        let wanted = std::env::var("PTXVM_THREADS").ok().and_then(|text| text.parse().ok());
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        wanted.filter(|threads| *threads > 0).unwrap_or_else(cores)
    })
}

impl<W: Work> Product<W> {
    /// D = beta C, in place. The caller adds terms.
    pub(crate) fn scaled(beta: Scalar<W>, c: Matrix<W>) -> Self {
        Self { terms: Vec::new(), k: 0, beta, c, d: c, only: None, hermitian: false, finish: None }
    }

    fn tile(&self, scratch: &mut Scratch<W>, tile: &Tile) -> Answer {
        let (m, n) = (tile.rows.len(), tile.columns.len());
        room(&mut scratch.out, m * n)?.fill(W::default());
        for term in &self.terms {
            let alpha = if term.conjugate { term.alpha.get().conj() } else { term.alpha.get() };
            if alpha == W::default() || self.k == 0 {
                continue;
            }
            self.sum(term, scratch, tile)?;
            for (out, sum) in scratch.out[..m * n].iter_mut().zip(&scratch.sums) {
                *out += alpha * *sum;
            }
        }
        self.store(scratch, tile)
    }

    /// The sums of a term for a tile, without alpha.
    fn sum(&self, term: &Term<W>, scratch: &mut Scratch<W>, tile: &Tile) -> Answer {
        let (m, n) = (tile.rows.len(), tile.columns.len());
        let sums = room(&mut scratch.sums, m * n)?;
        sums.fill(W::default());
        for from in (0..self.k).step_by(DEPTH) {
            let inner = from..(from + DEPTH).min(self.k);
            let k = inner.len();
            let left = room(&mut scratch.a, m * k)?;
            let a = term.a.tile(tile.rows.clone(), inner.clone(), left);
            let right = room(&mut scratch.b, k * n)?;
            let b = term.b.tile(inner, tile.columns.clone(), right);
            if n == 1 {
                matrix_vector(left, a, right, sums);
            } else if m == 1 {
                matrix_vector(right, [b[1], b[0]], left, sums);
            } else {
                W::accumulate(Shape { m, n, k, a, b, c: m }, left, right, sums);
            }
        }
        Ok(())
    }

    fn store(&self, scratch: &mut Scratch<W>, tile: &Tile) -> Answer {
        let m = tile.rows.len();
        let beta = self.beta.get();
        for (index, column) in tile.columns.clone().enumerate() {
            let within = self.only.map_or(tile.rows.clone(), |fill| {
                let rows = fill.rows(column, self.d.rows);
                rows.start.max(tile.rows.start)..rows.end.min(tile.rows.end)
            });
            if within.is_empty() {
                continue;
            }
            let first = index * m + within.start - tile.rows.start;
            let out = &mut scratch.out[first..first + within.len()];
            if beta != W::default() {
                let old = room(&mut scratch.a, out.len())?;
                self.c.load(within.start, column, old);
                for (out, old) in out.iter_mut().zip(old) {
                    *out += beta * *old;
                }
            }
            if self.hermitian && within.contains(&column) {
                let diagonal = &mut out[column - within.start];
                *diagonal = diagonal.real();
            }
            if let Some(finish) = &self.finish {
                finish(within.start, column, out);
            }
            self.d.store(within.start, column, out);
        }
        Ok(())
    }
}

/// Partial sums of a dot product.
const LANES: usize = 16;

/// sums += A x, for an A whose rows or columns are contiguous.
fn matrix_vector<W: Work>(a: &[W], [row, column]: [usize; 2], x: &[W], sums: &mut [W]) {
    if row == 1 {
        for (l, factor) in x.iter().enumerate() {
            for (sum, value) in sums.iter_mut().zip(&a[l * column..]) {
                *sum += *value * *factor;
            }
        }
    } else {
        for (sum, values) in sums.iter_mut().zip(a.chunks(row)) {
            *sum += dot(&values[..x.len()], x);
        }
    }
}

/// The dot product, in partial sums that are added at the end.
pub(crate) fn dot<W: Work>(a: &[W], b: &[W]) -> W {
    let mut lanes = [W::default(); LANES];
    let (a_parts, a_rest) = a.as_chunks::<LANES>();
    let (b_parts, b_rest) = b.as_chunks::<LANES>();
    for (a, b) in a_parts.iter().zip(b_parts) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += *a * *b;
        }
    }
    for (lane, (a, b)) in lanes.iter_mut().zip(a_rest.iter().zip(b_rest)) {
        *lane += *a * *b;
    }
    lanes.into_iter().fold(W::default(), |sum, lane| sum + lane)
}
