//! Textures and surfaces: coordinates, samplers and formats as functions of numbers (PTX ISA §5.3, §9.7.9,
//! §9.7.10).
//!
//! A lookup is a composition: [`cube_face`] turns a direction into a face and coordinates,
//! [`lod_of_gradients`] and [`level_of`] select levels, [`float_taps`] and [`texel_tap`] turn a coordinate
//! into texel indices with weights, [`Format::decode`] turns a texel's bits into components, and [`blend`]
//! weights them. The manual leaves most of this to "the CUDA C Programming Guide" and to OpenCL; each
//! function documents its choice. The caller reads the texels.
//!
//! **Invariant:** every result is computed with correctly rounded operations in a fixed order, so every host
//! gives the same result.

mod address;
mod cube;
mod filter;
mod format;
mod level;
mod surface;
#[cfg(test)]
mod tests;

pub use address::*;
pub use cube::*;
pub use filter::*;
pub use format::*;
pub use level::*;
pub use surface::*;
