//! Surfaces: the treatment of coordinates out of bounds (PTX ISA §9.7.10).

/// `.clamp` of a surface access. PTX ISA §9.7.10.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SurfaceClamp {
    /// An access out of bounds traps.
    Trap,
    /// An access out of bounds goes to the nearest place.
    Clamp,
    /// A load out of bounds reads zeros, and a store is dropped.
    Zero,
}

/// The result of a coordinate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SurfacePlace {
    /// The place of the access.
    At(u32),
    /// No place: a load reads zeros, a store does nothing.
    Nothing,
    /// The access traps.
    Trap,
}

/// The place of an access of `size` units at `coordinate` in `extent` units. Units are bytes for the first
/// dimension of `.b`, else elements (with size 1).
///
/// An access is in bounds if all of it is. `.clamp` uses the nearest place where the whole access fits,
/// aligned to its size (reading A144); if there is none, the access traps.
///
/// # Source
/// PTX ISA §9.7.10.1 to §9.7.10.3.
#[must_use]
pub fn surface_place(clamp: SurfaceClamp, coordinate: i64, size: u32, extent: u32) -> SurfacePlace {
    let last = i64::from(extent) - i64::from(size);
    if (0..=last).contains(&coordinate) {
        return u32::try_from(coordinate).map_or(SurfacePlace::Trap, SurfacePlace::At);
    }
    match clamp {
        SurfaceClamp::Trap => SurfacePlace::Trap,
        SurfaceClamp::Zero => SurfacePlace::Nothing,
        SurfaceClamp::Clamp if last < 0 => SurfacePlace::Trap,
        SurfaceClamp::Clamp => {
            let nearest = coordinate.clamp(0, last);
            let aligned = nearest - nearest % i64::from(size.max(1));
            u32::try_from(aligned).map_or(SurfacePlace::Trap, SurfacePlace::At)
        }
    }
}
