//! The instruction table: one file per section of the manual, one row per syntax line.
//!
//! Invariant: columns are those of `row`, in that order: op · syntax · sets · operand kinds · since · class ·
//! section · feature ids · brief. Each row is proof-read against the section that it names.

use super::row::Row;

mod asynchronous;
mod bfloat;
mod compare;
mod control;
mod data;
mod extended;
mod float;
mod half;
mod hint;
mod integer;
mod logic;
mod matrix;
mod misc;
mod newer;
mod surface;
mod sync;
mod texture;
mod video;

/// Every row, section by section.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    let sections: [&'static [Row]; 17] = [
        integer::ROWS,
        extended::ROWS,
        float::ROWS,
        half::ROWS,
        compare::ROWS,
        logic::ROWS,
        data::ROWS,
        texture::ROWS,
        surface::ROWS,
        control::ROWS,
        sync::ROWS,
        matrix::ROWS,
        misc::ROWS,
        bfloat::ROWS,
        hint::ROWS,
        asynchronous::ROWS,
        newer::ROWS,
    ];
    sections.into_iter().flatten().chain(video::ROWS.iter().copied().flatten())
}

/// Values of sets that several sections share.
mod common {
    /// Integer types of arithmetic.
    pub(super) const INT: &str = "u16 u32 u64 s16 s32 s64";
    /// Types of data movement and selection.
    pub(super) const ANY: &str = "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64@sm_13|map_f64_to_f32";
    /// Types in memory.
    pub(super) const MEM: &str = "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64@sm_13|map_f64_to_f32";
    /// Types in memory for accesses of up to 128 bits.
    pub(super) const WIDE: &str =
        "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64@sm_13|map_f64_to_f32 b128@8.3,sm_70";
    /// Vectors in memory; [`Rule::Vec256`](crate::isa::Rule::Vec256) restricts their elements.
    pub(super) const VEC: &str = "v2 v4 v8";
    /// Gate of double precision.
    pub(super) const F64: &str = "1.0 sm_13|map_f64_to_f32";
}
