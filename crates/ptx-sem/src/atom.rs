//! The values that `atom` and `red` write: the new value as a function of the old one (PTX ISA 6.4 §9.7.12.4,
//! §9.7.12.5).
//!
//! **Invariant:** the functions are pure. The memory provides atomicity, order and the returned old value.

use crate::float::{add_f32 as float_add_f32, add_f64 as float_add_f64, ftz_f32};
use crate::half::{add_f16 as half_add_f16, add_f16x2 as half_add_f16x2};
use crate::soft::Rnd;

/// The operation of `atom` and `red` (`.op`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomOp {
    /// old & b
    And,
    /// old | b
    Or,
    /// old ^ b
    Xor,
    /// b
    Exch,
    /// old + b
    Add,
    /// 0 if old >= b, else old + 1
    Inc,
    /// b if old is 0 or old > b, else old - 1
    Dec,
    /// The smaller of old and b.
    Min,
    /// The greater of old and b.
    Max,
    /// c if old equals b, else old
    Cas,
}

macro_rules! dispatch {
    ($($name:ident $ty:ty;)+) => {$(
        /// The new value at a location that held `old`, for any operation on this type. Only `cas` uses `c`.
        ///
        /// The bit-size types count as the unsigned type of their width. All operations are defined,
        /// including those that the manual does not list for the type.
        ///
        /// # Source
        /// PTX ISA §9.7.12.4.
        #[inline]
        #[must_use]
        pub fn $name(op: AtomOp, old: $ty, b: $ty, c: $ty) -> $ty {
            match op {
                AtomOp::And => old & b,
                AtomOp::Or => old | b,
                AtomOp::Xor => old ^ b,
                AtomOp::Exch => b,
                AtomOp::Add => old.wrapping_add(b),
                AtomOp::Inc => if old >= b { 0 } else { old.wrapping_add(1) },
                AtomOp::Dec => if old == 0 || old > b { b } else { old.wrapping_sub(1) },
                AtomOp::Min => old.min(b),
                AtomOp::Max => old.max(b),
                AtomOp::Cas => if old == b { c } else { old },
            }
        }
    )+};
}
dispatch! {
    atom_u16 u16;
    atom_u32 u32;
    atom_s32 i32;
    atom_u64 u64;
    atom_s64 i64;
}

macro_rules! named {
    ($($name:ident $dispatch:ident $op:ident $ty:ty, $doc:literal;)+) => {$(
        #[doc = $doc]
        ///
        /// # Source
        /// PTX ISA §9.7.12.4.
        #[inline]
        #[must_use]
        pub fn $name(old: $ty, b: $ty) -> $ty {
            $dispatch(AtomOp::$op, old, b, 0)
        }
    )+};
}
named! {
    atom_and_b32  atom_u32 And  u32, "`atom.and.b32`: old & b.";
    atom_and_b64  atom_u64 And  u64, "`atom.and.b64`: old & b.";
    atom_or_b32   atom_u32 Or   u32, "`atom.or.b32`: old | b.";
    atom_or_b64   atom_u64 Or   u64, "`atom.or.b64`: old | b.";
    atom_xor_b32  atom_u32 Xor  u32, "`atom.xor.b32`: old ^ b.";
    atom_xor_b64  atom_u64 Xor  u64, "`atom.xor.b64`: old ^ b.";
    atom_exch_b32 atom_u32 Exch u32, "`atom.exch.b32`: b.";
    atom_exch_b64 atom_u64 Exch u64, "`atom.exch.b64`: b.";
    atom_add_u32  atom_u32 Add  u32, "`atom.add.u32`: old + b modulo 2^32.";
    atom_add_s32  atom_s32 Add  i32, "`atom.add.s32`: old + b modulo 2^32.";
    atom_add_u64  atom_u64 Add  u64, "`atom.add.u64`: old + b modulo 2^64.";
    atom_inc_u32  atom_u32 Inc  u32, "`atom.inc.u32`: 0 if old >= b, else old + 1.";
    atom_dec_u32  atom_u32 Dec  u32, "`atom.dec.u32`: b if old is 0 or greater than b, else old - 1.";
    atom_min_u32  atom_u32 Min  u32, "`atom.min.u32`: the smaller of old and b.";
    atom_min_s32  atom_s32 Min  i32, "`atom.min.s32`: the smaller of old and b, signed.";
    atom_min_u64  atom_u64 Min  u64, "`atom.min.u64`: the smaller of old and b.";
    atom_min_s64  atom_s64 Min  i64, "`atom.min.s64`: the smaller of old and b, signed.";
    atom_max_u32  atom_u32 Max  u32, "`atom.max.u32`: the greater of old and b.";
    atom_max_s32  atom_s32 Max  i32, "`atom.max.s32`: the greater of old and b, signed.";
    atom_max_u64  atom_u64 Max  u64, "`atom.max.u64`: the greater of old and b.";
    atom_max_s64  atom_s64 Max  i64, "`atom.max.s64`: the greater of old and b, signed.";
}

/// `atom.cas.b16`: c if old equals b, else old.
///
/// # Source
/// PTX ISA §9.7.12.4.
#[inline]
#[must_use]
pub fn atom_cas_b16(old: u16, b: u16, c: u16) -> u16 {
    atom_u16(AtomOp::Cas, old, b, c)
}

/// `atom.cas.b32`: c if old equals b, else old.
///
/// # Source
/// PTX ISA §9.7.12.4.
#[inline]
#[must_use]
pub fn atom_cas_b32(old: u32, b: u32, c: u32) -> u32 {
    atom_u32(AtomOp::Cas, old, b, c)
}

/// `atom.cas.b64`: c if old equals b, else old.
///
/// # Source
/// PTX ISA §9.7.12.4.
#[inline]
#[must_use]
pub fn atom_cas_b64(old: u64, b: u64, c: u64) -> u64 {
    atom_u64(AtomOp::Cas, old, b, c)
}

/// `atom.add.f32` with subnormals kept (shared memory): old + b, rounded to nearest even.
///
/// # Source
/// PTX ISA §9.7.12.4.
#[inline]
#[must_use]
pub fn atom_add_f32(old: f32, b: f32) -> f32 {
    float_add_f32(old, b, Rnd::Rn)
}

/// `atom.add.f32` with subnormals flushed (global memory): old + b, with operands and result flushed to a
/// zero with their sign.
///
/// For a generic address, the state space that it points to decides between the two.
///
/// # Source
/// PTX ISA §9.7.12.4.
#[inline]
#[must_use]
pub fn atom_add_ftz_f32(old: f32, b: f32) -> f32 {
    ftz_f32(float_add_f32(ftz_f32(old), ftz_f32(b), Rnd::Rn))
}

/// `atom.add.f64`: old + b, rounded to nearest even.
///
/// # Source
/// PTX ISA §9.7.12.4.
#[inline]
#[must_use]
pub fn atom_add_f64(old: f64, b: f64) -> f64 {
    float_add_f64(old, b, Rnd::Rn)
}

/// `atom.add.noftz.f16`: old + b, rounded to nearest even.
///
/// # Source
/// PTX ISA §9.7.12.4.
#[inline]
#[must_use]
pub fn atom_add_f16(old: u16, b: u16) -> u16 {
    half_add_f16(old, b)
}

/// `atom.add.noftz.f16x2`: old + b in each half, rounded to nearest even; atomic per half only.
///
/// # Source
/// PTX ISA §9.7.12.4.
#[inline]
#[must_use]
pub fn atom_add_f16x2(old: u32, b: u32) -> u32 {
    half_add_f16x2(old, b)
}
