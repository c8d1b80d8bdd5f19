//! The lattice of shapes: how the value of each lane depends on the lane.
//!
//! A **uniform** value is one scalar. An **affine** value is a scalar (or one for each chunk of lanes) plus a
//! constant of each lane: thread indices, and addresses computed from them. Everything else is **varying**.
//!
//! Invariant: the constants of affine values are small, so that sums and products of a few never overflow.
//! [`analysis::shape`](crate::analysis::shape) infers which value has which shape.

/// Constants of affine values stay below this, so that sums and products of a few never overflow.
pub(crate) const LIMIT: i64 = 1 << 24;
/// Trailing zeros of zero.
pub(crate) const ALIGNED: u8 = 63;

/// How a value depends on the lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Not known yet: the least element of the lattice.
    Bottom,
    /// The same in all lanes; with the number where it is known.
    Uniform(Option<u64>),
    /// A scalar, or one for each chunk, plus a constant of each lane.
    Affine(Box<Affine>),
    /// Any value in any lane: the greatest element.
    Varying,
}

/// The constants of the lanes, beside a scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Affine {
    /// Whether each chunk has a scalar of its own.
    pub by_chunk: bool,
    /// Trailing bits that are zero in every scalar.
    pub align: u8,
    /// The constant of each lane. That of the first lane (of each chunk) is zero.
    pub lanes: Box<[i32]>,
    /// How many times the lane adds a second scalar, the **stride**; zero for the first lane. Empty: there
    /// is no stride. If the lanes of each chunk have equal counts, only coarse warps use this, where
    /// otherwise each chunk would need a scalar of its own.
    pub rows: Box<[i32]>,
}

impl Shape {
    /// Whether all lanes have the same value.
    pub fn is_uniform(&self) -> bool {
        matches!(self, Shape::Uniform(_) | Shape::Bottom)
    }

    /// The least shape that covers both.
    pub(crate) fn join(&self, other: &Shape, chunk: usize) -> Shape {
        match (self, other) {
            (Shape::Bottom, c) | (c, Shape::Bottom) => c.clone(),
            (Shape::Uniform(a), Shape::Uniform(b)) => Shape::Uniform(if a == b { *a } else { None }),
            (Shape::Varying, _) | (_, Shape::Varying) => Shape::Varying,
            (a, b) => {
                let lanes = a.count().max(b.count());
                let (Some(a), Some(b)) = (a.pattern(lanes), b.pattern(lanes)) else { return Shape::Varying };
                let align = a.align.min(b.align);
                // Without a stride, all counts are zero.
                let agree = a.rows == b.rows || a.rows.is_empty() || b.rows.is_empty();
                if a.by_chunk == b.by_chunk
                    && a.lanes == b.lanes
                    && (agree && !a.by_chunk || a.rows == b.rows)
                {
                    let rows = if a.rows.is_empty() { b.rows } else { a.rows.clone() };
                    return Affine { align, rows, ..a }.class();
                }
                match (a.by_chunks(chunk), b.by_chunks(chunk)) {
                    (Some(a), Some(b)) if a.lanes == b.lanes => {
                        Affine { align: a.align.min(b.align), ..a }.class()
                    }
                    _ => Shape::Varying,
                }
            }
        }
    }

    /// How many lanes the constants are for.
    fn count(&self) -> usize {
        match self {
            Shape::Affine(pattern) => pattern.lanes.len(),
            Shape::Bottom | Shape::Uniform(_) | Shape::Varying => 0,
        }
    }

    /// As affine value of so many lanes, if it is one.
    pub fn pattern(&self, lanes: usize) -> Option<Affine> {
        match self {
            Shape::Uniform(value) => {
                let align = value.map_or(0, |v| (v.trailing_zeros() as u8).min(ALIGNED));
                Some(Affine { by_chunk: false, align, lanes: none(lanes), rows: Box::default() })
            }
            Shape::Affine(pattern) => Some((**pattern).clone()),
            Shape::Bottom | Shape::Varying => None,
        }
    }
}

/// Constants that are all zero.
pub(crate) fn none(lanes: usize) -> Box<[i32]> {
    vec![0; lanes].into()
}

impl Affine {
    /// Whether all constants are zero.
    pub fn is_plain(&self) -> bool {
        self.rows.is_empty() && self.lanes.iter().all(|lane| *lane == 0)
    }

    /// By how much the value grows from lane to lane, if that is the same for the first `count` lanes and the
    /// value has one scalar.
    pub fn slope(&self, count: u32) -> Option<i32> {
        let slope = *self.lanes.get(1)?;
        let mut lanes = (0..).zip(self.lanes.iter().take(count as usize));
        let is_even = lanes.all(|(lane, number)| slope.checked_mul(lane) == Some(*number));
        (is_even && !self.by_chunk && self.rows.is_empty()).then_some(slope)
    }

    /// The difference between the last and the first lane of a value with one scalar, if no lane is below the
    /// first.
    pub fn span(&self) -> Option<u64> {
        if self.by_chunk || !self.rows.is_empty() {
            return None;
        }
        let (low, high) = (self.lanes.iter().min()?, self.lanes.iter().max()?);
        (*low == 0).then(|| u64::from(high.unsigned_abs()))
    }

    /// How many scalars represent the value, given the number of chunks.
    pub fn scalars(&self, chunks: u32) -> u32 {
        match (self.by_chunk, self.rows.is_empty()) {
            (true, _) => chunks,
            (false, true) => 1,
            (false, false) => 2,
        }
    }

    pub(crate) fn class(self) -> Shape {
        if self.lanes.iter().any(|lane| i64::from(*lane).abs() >= LIMIT) {
            Shape::Varying
        } else if !self.by_chunk && self.is_plain() {
            Shape::Uniform(None)
        } else {
            Shape::Affine(Box::new(self))
        }
    }

    /// How many consecutive lanes of a chunk have the same count of the stride: a power of two that divides
    /// the chunk, or all lanes if there is no stride.
    pub fn run(&self, chunk: usize) -> usize {
        run_of(&self.rows, chunk)
    }

    /// Whether lanes of one chunk have different counts of the stride.
    pub fn splits(&self, chunk: usize) -> bool {
        self.run(chunk) < chunk
    }

    /// With a scalar for each chunk; `None` where lanes of one chunk have different counts of the stride.
    pub fn by_chunks(&self, chunk: usize) -> Option<Affine> {
        if self.by_chunk {
            return Some(self.clone());
        }
        if self.splits(chunk) {
            return None;
        }
        let start = |lane: usize| self.lanes[lane / chunk * chunk];
        let all = 0..self.lanes.len();
        let lanes = all.clone().map(|lane| self.lanes[lane] - start(lane)).collect();
        let offsets = all.clone().step_by(chunk).map(|lane| self.lanes[lane].trailing_zeros().min(63) as u8);
        let align = offsets
            .zip(all.step_by(chunk))
            .fold(self.align, |align, (tz, lane)| if self.lanes[lane] == 0 { align } else { align.min(tz) });
        let align = if self.rows.is_empty() { align } else { 0 };
        Some(Affine { by_chunk: true, align, lanes, rows: Box::default() })
    }

    /// Whether the lanes of a chunk have the same value.
    pub fn same_in_chunk(&self, chunk: usize) -> bool {
        match self.by_chunk {
            true => self.is_plain(),
            false => !self.splits(chunk) && run_of(&self.lanes, chunk) == chunk,
        }
    }

    /// Whether every lane's constant has ones only in bits that are zero in the scalars.
    pub(crate) fn disjoint(&self) -> bool {
        if !self.rows.is_empty() {
            return false;
        }
        let bits = u32::from(self.align).min(30);
        self.lanes.iter().all(|lane| *lane >= 0 && *lane < 1 << bits)
    }

    /// `None`: the constants are too large.
    pub(crate) fn map(&self, align: u8, f: impl Fn(i64) -> i64) -> Option<Affine> {
        let mut lanes = none(self.lanes.len());
        for (to, from) in lanes.iter_mut().zip(&self.lanes) {
            let value = f(i64::from(*from));
            if value.abs() >= LIMIT {
                return None;
            }
            *to = value as i32;
        }
        Some(Affine { align, lanes, by_chunk: self.by_chunk, rows: self.rows.clone() })
    }
}

/// How many consecutive lanes of a chunk have equal numbers: a power of two that divides the chunk.
pub(crate) fn run_of(lanes: &[i32], chunk: usize) -> usize {
    let alike = |run: &usize| lanes.chunks(*run).all(|lanes| lanes.iter().all(|lane| *lane == lanes[0]));
    std::iter::successors(Some(chunk), |run| Some(run / 2)).find(alike).unwrap_or(1)
}
