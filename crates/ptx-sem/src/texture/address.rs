//! From a coordinate of one dimension to texel indices and weights: address modes and filter footprints (PTX
//! ISA §5.3.2).
//!
//! **Invariant:** resulting indices are less than the size. Sizes are at least 1.

/// The treatment of a coordinate outside the texture (`addr_mode_0` to `addr_mode_2`). PTX ISA §5.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddrMode {
    /// The texture repeats. With unnormalized coordinates it is [`AddrMode::ClampToEdge`] (reading A30; CUDA
    /// guide).
    Wrap,
    /// The texture repeats, mirrored every second time. With unnormalized coordinates it is
    /// [`AddrMode::ClampToEdge`].
    Mirror,
    /// OpenGL's `GL_CLAMP`: the coordinate is clamped to the texture, and a linear filter blends the edge
    /// with the border.
    ClampOgl,
    /// The nearest texel.
    ClampToEdge,
    /// The border: a texel whose bits are zero.
    ClampToBorder,
}

impl AddrMode {
    /// All modes, in the manual's order. The index is the number that `txq` returns (reading A28).
    pub const ALL: [AddrMode; 5] = [
        AddrMode::Wrap,
        AddrMode::Mirror,
        AddrMode::ClampOgl,
        AddrMode::ClampToEdge,
        AddrMode::ClampToBorder,
    ];

    /// The mode that applies: repetition needs normalized coordinates.
    #[must_use]
    pub fn effective(self, normalized: bool) -> Self {
        match self {
            AddrMode::Wrap | AddrMode::Mirror if !normalized => AddrMode::ClampToEdge,
            AddrMode::Wrap
            | AddrMode::Mirror
            | AddrMode::ClampOgl
            | AddrMode::ClampToEdge
            | AddrMode::ClampToBorder => self,
        }
    }
}

/// `filter_mode`. PTX ISA §5.3.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FilterMode {
    /// The texel that holds the coordinate.
    Nearest,
    /// The texels around the coordinate, weighted.
    Linear,
}

impl FilterMode {
    /// All modes, in the manual's order. The index is the number that `txq` returns (reading A28).
    pub const ALL: [FilterMode; 2] = [FilterMode::Nearest, FilterMode::Linear];
}

/// A texel of one dimension: its index, or `None` for the border.
pub type Tap = Option<u32>;

/// The weight 1. Weights are fixed-point numbers with 8 fractional bits, as the CUDA guide documents for the
/// hardware.
pub const ONE: u32 = 256;

/// The two neighbors that a linear filter blends in one dimension, and the weight of the second, 0 to
/// [`ONE`]. The weight of the first is the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taps {
    /// The texel at or before the coordinate, and the one after it.
    pub texels: [Tap; 2],
    /// Weight of the second.
    pub weight: u32,
}

/// The texel with index `i` under an address mode. An index outside is wrapped, mirrored, moved to the edge,
/// or becomes the border.
fn texel(mode: AddrMode, i: i64, size: u32) -> Tap {
    let n = i64::from(size.max(1));
    let index = match mode {
        AddrMode::Wrap => i.rem_euclid(n),
        AddrMode::Mirror => {
            let twice = i.rem_euclid(2 * n);
            if twice < n { twice } else { 2 * n - 1 - twice }
        }
        AddrMode::ClampToEdge => i.clamp(0, n - 1),
        AddrMode::ClampOgl | AddrMode::ClampToBorder if (0..n).contains(&i) => i,
        AddrMode::ClampOgl | AddrMode::ClampToBorder => return None,
    };
    u32::try_from(index).ok()
}

/// The texel of an integer coordinate (`.s32`). It counts texels even if the texture has normalized
/// coordinates, and is not filtered.
#[must_use]
pub fn texel_tap(mode: AddrMode, size: u32, coordinate: i32, offset: i32) -> Tap {
    let mode = match mode.effective(false) {
        // Without a filter the border is not blended in.
        AddrMode::ClampOgl => AddrMode::ClampToEdge,
        mode => mode,
    };
    texel(mode, i64::from(coordinate) + i64::from(offset), size)
}

/// The position of a coordinate in texels: p = c · size if normalized, else c; plus the offset. It is exact
/// except for coordinates beyond all texels. NaN counts as 0.
fn position(size: u32, normalized: bool, coordinate: f64, offset: i32) -> f64 {
    let scaled = if normalized { coordinate * f64::from(size) } else { coordinate };
    if scaled.is_nan() { 0.0 } else { scaled + f64::from(offset) }
}

/// `floor` as an integer; saturates.
fn floor(p: f64) -> i64 {
    // Larger positions differ by whole textures at most, and half the range leaves room for arithmetic.
    (p.floor() as i64).clamp(i64::MIN / 4, i64::MAX / 4)
}

/// The texels of a floating-point coordinate under a filter.
///
/// Nearest: the texel floor(p), with weight 1 (`weight` 0). Linear: xB = p - 1/2; the texels floor(xB) and
/// the next. The weight of the second is xB - floor(xB), rounded to 8 fractional bits, ties up. With
/// [`AddrMode::ClampOgl`] p is first clamped to the texture.
///
/// # Source
/// PTX ISA §5.3.2; CUDA C Programming Guide, Texture Fetching ("9-bit fixed point format with 8 bits of
/// fractional value"), which does not define the rounding of the weight.
#[must_use]
pub fn float_taps(
    mode: AddrMode,
    filter: FilterMode,
    size: u32,
    normalized: bool,
    coordinate: f64,
    offset: i32,
) -> Taps {
    let mode = mode.effective(normalized);
    let p = position(size, normalized, coordinate, offset);
    match filter {
        FilterMode::Nearest => {
            let mode = if mode == AddrMode::ClampOgl { AddrMode::ClampToEdge } else { mode };
            Taps { texels: [texel(mode, floor(p), size), None], weight: 0 }
        }
        FilterMode::Linear => {
            let (first, fraction) = footprint(mode, size, p);
            let weight = (fraction * f64::from(ONE) + 0.5).floor() as u32;
            Taps { texels: [texel(mode, first, size), texel(mode, first.saturating_add(1), size)], weight }
        }
    }
}

/// The two texels of the linear footprint, regardless of their weights: `tld4` reads them in one dimension.
#[must_use]
pub fn gather_taps(mode: AddrMode, size: u32, normalized: bool, coordinate: f64, offset: i32) -> [Tap; 2] {
    float_taps(mode, FilterMode::Linear, size, normalized, coordinate, offset).texels
}

/// The first texel of the linear footprint at p, and the distance of p from it, 0 to 1.
fn footprint(mode: AddrMode, size: u32, p: f64) -> (i64, f64) {
    let p = if mode == AddrMode::ClampOgl { p.clamp(0.0, f64::from(size)) } else { p };
    let centre = p - 0.5;
    let fraction = centre - centre.floor();
    // An infinite coordinate has no fraction.
    (floor(centre), if fraction.is_finite() { fraction } else { 0.0 })
}
