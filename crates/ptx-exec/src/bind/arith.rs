//! Integer arithmetic, and the dispatch of the mnemonics that integers and floats share (PTX ISA §9.7.1).
//!
//! Invariant: one line per type names the function of `ptx-sem`; where signedness does not change the result,
//! both types share one.

use super::operands::{Bound, Operands};
use super::{Missing, by_type, float, half};
use crate::lift::{self, Carry};
use ptx::isa::{Half, Slot, Word};
use ptx_sem as sem;

pub(super) fn add(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        U16 | S16 => o.lift2(sem::add_u16),
        S32 => if o.has(Word::Sat) { o.lift2(sem::add_sat_s32) } else { o.lift2(sem::add_u32) },
        U16x2 | S16x2 => o.lift2(sem::add_u16x2),
        U32 => o.lift2(sem::add_u32),
        U64 | S64 => o.lift2(sem::add_u64),
        F32 => float::rounded2_f32(o, sem::add_f32),
        F64 => float::rounded2_f64(o, sem::add_quick_f64, sem::add_f64),
        F16 => half::two(o, sem::add_f16),
        F16x2 => half::two_x2(o, sem::add_f16x2),
        Bf16 => half::bf16_two(o, sem::add_bf16),
        Bf16x2 => half::bf16_two(o, sem::add_bf16x2),
        F32x2 => float::two_x2(o, sem::add_f32),
    }
}

pub(super) fn sub(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        U16 | S16 => o.lift2(sem::sub_u16),
        S32 => if o.has(Word::Sat) { o.lift2(sem::sub_sat_s32) } else { o.lift2(sem::sub_u32) },
        U32 => o.lift2(sem::sub_u32),
        U64 | S64 => o.lift2(sem::sub_u64),
        F32 => float::rounded2_f32(o, sem::sub_f32),
        F64 => float::rounded2_f64(o, sem::sub_quick_f64, sem::sub_f64),
        F16 => half::two(o, sem::sub_f16),
        F16x2 => half::two_x2(o, sem::sub_f16x2),
        Bf16 => half::bf16_two(o, sem::sub_bf16),
        Bf16x2 => half::bf16_two(o, sem::sub_bf16x2),
        F32x2 => float::two_x2(o, sem::sub_f32),
    }
}

fn half_of_product(o: &Operands<'_>) -> Result<Half, Missing> {
    o.ask(Slot::Mode, |w| matches!(w, Word::Hi | Word::Lo | Word::Wide), |mods| mods.half())
}

pub(super) fn mul(o: &Operands<'_>) -> Bound {
    let ty = o.ty()?;
    if ty.is_float() && o.has(Word::Ftz) {
        return by_type! { ty;
            F32 => float::rounded2_f32(o, sem::mul_ftz_f32),
            F16 => half::two(o, sem::mul_ftz_f16),
            F16x2 => half::two_x2(o, sem::mul_ftz_f16x2),
            F32x2 => float::two_x2(o, sem::mul_ftz_f32),
        };
    }
    if ty.is_float() {
        return by_type! { ty;
            F32 => float::rounded2_f32(o, sem::mul_f32),
            F64 => float::rounded2_f64(o, sem::mul_quick_f64, sem::mul_f64),
            F16 => half::two(o, sem::mul_f16),
            F16x2 => half::two_x2(o, sem::mul_f16x2),
            Bf16 => half::bf16_two(o, sem::mul_bf16),
            Bf16x2 => half::bf16_two(o, sem::mul_bf16x2),
            F32x2 => float::two_x2(o, sem::mul_f32),
        };
    }
    match half_of_product(o)? {
        Half::Lo => by_type! { ty;
            U16 | S16 => o.lift2(sem::mul_lo_u16),
            U32 | S32 => o.lift2(sem::mul_lo_u32),
            U64 | S64 => o.lift2(sem::mul_lo_u64),
        },
        Half::Hi => by_type! { ty;
            U16 => o.lift2(sem::mul_hi_u16),
            S16 => o.lift2(sem::mul_hi_s16),
            U32 => o.lift2(sem::mul_hi_u32),
            S32 => o.lift2(sem::mul_hi_s32),
            U64 => o.lift2(sem::mul_hi_u64),
            S64 => o.lift2(sem::mul_hi_s64),
        },
        Half::Wide => by_type! { ty;
            U16 => o.lift2(sem::mul_wide_u16),
            S16 => o.lift2(sem::mul_wide_s16),
            U32 => o.lift2(sem::mul_wide_u32),
            S32 => o.lift2(sem::mul_wide_s32),
        },
    }
}

pub(super) fn mad(o: &Operands<'_>) -> Bound {
    let ty = o.ty()?;
    if ty.is_float() {
        return by_type! { ty;
            F32 => float::mad_f32(o),
            F64 => float::rounded3_f64(o, sem::fma_f64),
        };
    }
    match half_of_product(o)? {
        Half::Lo => by_type! { ty;
            U16 | S16 => o.lift3(sem::mad_lo_u16),
            U32 | S32 => o.lift3(sem::mad_lo_u32),
            U64 | S64 => o.lift3(sem::mad_lo_u64),
        },
        Half::Hi => by_type! { ty;
            U16 => o.lift3(sem::mad_hi_u16),
            S16 => o.lift3(sem::mad_hi_s16),
            U32 => o.lift3(sem::mad_hi_u32),
            S32 => if o.has(Word::Sat) { o.lift3(sem::mad_hi_sat_s32) } else { o.lift3(sem::mad_hi_s32) },
            U64 => o.lift3(sem::mad_hi_u64),
            S64 => o.lift3(sem::mad_hi_s64),
        },
        Half::Wide => by_type! { ty;
            U16 => o.lift3(sem::mad_wide_u16),
            S16 => o.lift3(sem::mad_wide_s16),
            U32 => o.lift3(sem::mad_wide_u32),
            S32 => o.lift3(sem::mad_wide_s32),
        },
    }
}

pub(super) fn mul24(o: &Operands<'_>) -> Bound {
    let ty = o.ty()?;
    match half_of_product(o)? {
        Half::Lo => by_type! { ty; U32 => o.lift2(sem::mul24_lo_u32), S32 => o.lift2(sem::mul24_lo_s32) },
        Half::Hi => by_type! { ty; U32 => o.lift2(sem::mul24_hi_u32), S32 => o.lift2(sem::mul24_hi_s32) },
        Half::Wide => Err(Missing),
    }
}

pub(super) fn mad24(o: &Operands<'_>) -> Bound {
    let ty = o.ty()?;
    match half_of_product(o)? {
        Half::Lo => by_type! { ty; U32 => o.lift3(sem::mad24_lo_u32), S32 => o.lift3(sem::mad24_lo_s32) },
        Half::Hi => by_type! { ty;
            U32 => o.lift3(sem::mad24_hi_u32),
            S32 => if o.has(Word::Sat) { o.lift3(sem::mad24_hi_sat_s32) } else { o.lift3(sem::mad24_hi_s32) },
        },
        Half::Wide => Err(Missing),
    }
}

pub(super) fn sad(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        U16 => o.lift3(sem::sad_u16),
        S16 => o.lift3(sem::sad_s16),
        U32 => o.lift3(sem::sad_u32),
        S32 => o.lift3(sem::sad_s32),
        U64 => o.lift3(sem::sad_u64),
        S64 => o.lift3(sem::sad_s64),
    }
}

pub(super) fn div(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        U16 => o.active2(sem::div_u16),
        S16 => o.active2(sem::div_s16),
        U32 => o.active2(sem::div_u32),
        S32 => o.active2(sem::div_s32),
        U64 => o.active2(sem::div_u64),
        S64 => o.active2(sem::div_s64),
        F32 => float::div_f32(o),
        F64 => float::rounded2_f64(o, sem::div_quick_f64, sem::div_f64),
    }
}

pub(super) fn rem(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        U16 => o.active2(sem::rem_u16),
        S16 => o.active2(sem::rem_s16),
        U32 => o.active2(sem::rem_u32),
        S32 => o.active2(sem::rem_s32),
        U64 => o.active2(sem::rem_u64),
        S64 => o.active2(sem::rem_s64),
    }
}

pub(super) fn abs(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        S16 => o.lift1(sem::abs_s16),
        S32 => o.lift1(sem::abs_s32),
        S64 => o.lift1(sem::abs_s64),
        F32 => float::flushed1_f32(o, sem::abs_f32),
        F64 => o.lift1(sem::abs_f64),
        F16 => half::one(o, sem::abs_f16),
        F16x2 => half::one_x2(o, sem::abs_f16x2),
        Bf16 => o.wide1(sem::abs_bf16),
        Bf16x2 => o.wide1(sem::abs_bf16x2),
    }
}

pub(super) fn neg(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        S16 => o.lift1(sem::neg_s16),
        S32 => o.lift1(sem::neg_s32),
        S64 => o.lift1(sem::neg_s64),
        F32 => float::flushed1_f32(o, sem::neg_f32),
        F64 => o.lift1(sem::neg_f64),
        F16 => half::one(o, sem::neg_f16),
        F16x2 => half::one_x2(o, sem::neg_f16x2),
        Bf16 => o.wide1(sem::neg_bf16),
        Bf16x2 => o.wide1(sem::neg_bf16x2),
    }
}

pub(super) fn min(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        U16 => o.lift2(sem::min_u16),
        S16 => o.lift2(sem::min_s16),
        U32 => o.lift2(sem::min_u32),
        S32 => if o.has(Word::Relu) { o.lift2(sem::min_relu_s32) } else { o.lift2(sem::min_s32) },
        U16x2 => o.lift2(sem::min_u16x2),
        S16x2 => if o.has(Word::Relu) { o.lift2(sem::min_relu_s16x2) } else { o.lift2(sem::min_s16x2) },
        U64 => o.lift2(sem::min_u64),
        S64 => o.lift2(sem::min_s64),
        F32 => {
            half::extremum!(o; sem::min_f32, sem::min_nan_f32, sem::min_xorsign_abs_f32,
                sem::min_nan_xorsign_abs_f32; sem::ftz_f32)
        },
        F64 => o.lift2(sem::min_f64),
        F16 => {
            half::extremum!(o; sem::min_f16, sem::min_nan_f16, sem::min_xorsign_abs_f16,
                sem::min_nan_xorsign_abs_f16; sem::ftz_f16)
        },
        F16x2 => {
            half::extremum!(o; sem::min_f16x2, sem::min_nan_f16x2, sem::min_xorsign_abs_f16x2,
                sem::min_nan_xorsign_abs_f16x2; sem::ftz_f16x2)
        },
        Bf16 => {
            half::extremum!(o; sem::min_bf16, sem::min_nan_bf16, sem::min_xorsign_abs_bf16,
                sem::min_nan_xorsign_abs_bf16)
        },
        Bf16x2 => {
            half::extremum!(o; sem::min_bf16x2, sem::min_nan_bf16x2, sem::min_xorsign_abs_bf16x2,
                sem::min_nan_xorsign_abs_bf16x2)
        },
    }
}

pub(super) fn max(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        U16 => o.lift2(sem::max_u16),
        S16 => o.lift2(sem::max_s16),
        U32 => o.lift2(sem::max_u32),
        S32 => if o.has(Word::Relu) { o.lift2(sem::max_relu_s32) } else { o.lift2(sem::max_s32) },
        U16x2 => o.lift2(sem::max_u16x2),
        S16x2 => if o.has(Word::Relu) { o.lift2(sem::max_relu_s16x2) } else { o.lift2(sem::max_s16x2) },
        U64 => o.lift2(sem::max_u64),
        S64 => o.lift2(sem::max_s64),
        F32 => {
            half::extremum!(o; sem::max_f32, sem::max_nan_f32, sem::max_xorsign_abs_f32,
                sem::max_nan_xorsign_abs_f32; sem::ftz_f32)
        },
        F64 => o.lift2(sem::max_f64),
        F16 => {
            half::extremum!(o; sem::max_f16, sem::max_nan_f16, sem::max_xorsign_abs_f16,
                sem::max_nan_xorsign_abs_f16; sem::ftz_f16)
        },
        F16x2 => {
            half::extremum!(o; sem::max_f16x2, sem::max_nan_f16x2, sem::max_xorsign_abs_f16x2,
                sem::max_nan_xorsign_abs_f16x2; sem::ftz_f16x2)
        },
        Bf16 => {
            half::extremum!(o; sem::max_bf16, sem::max_nan_bf16, sem::max_xorsign_abs_bf16,
                sem::max_nan_xorsign_abs_bf16)
        },
        Bf16x2 => {
            half::extremum!(o; sem::max_bf16x2, sem::max_nan_bf16x2, sem::max_xorsign_abs_bf16x2,
                sem::max_nan_xorsign_abs_bf16x2)
        },
    }
}

pub(super) fn popc(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?; B32 => o.lift1(sem::popc_b32), B64 => o.lift1(sem::popc_b64) }
}

pub(super) fn clz(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?; B32 => o.lift1(sem::clz_b32), B64 => o.lift1(sem::clz_b64) }
}

pub(super) fn bfind(o: &Operands<'_>) -> Bound {
    let ty = o.ty()?;
    if o.has(Word::Shiftamt) {
        by_type! { ty;
            U32 => o.lift1(sem::bfind_shiftamt_u32),
            S32 => o.lift1(sem::bfind_shiftamt_s32),
            U64 => o.lift1(sem::bfind_shiftamt_u64),
            S64 => o.lift1(sem::bfind_shiftamt_s64),
        }
    } else {
        by_type! { ty;
            U32 => o.lift1(sem::bfind_u32),
            S32 => o.lift1(sem::bfind_s32),
            U64 => o.lift1(sem::bfind_u64),
            S64 => o.lift1(sem::bfind_s64),
        }
    }
}

pub(super) fn fns(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?; B32 => o.active3(sem::fns_b32) }
}

pub(super) fn brev(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?; B32 => o.lift1(sem::brev_b32), B64 => o.lift1(sem::brev_b64) }
}

pub(super) fn bfe(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?;
        U32 => o.lift3(sem::bfe_u32),
        S32 => o.lift3(sem::bfe_s32),
        U64 => o.lift3(sem::bfe_u64),
        S64 => o.lift3(sem::bfe_s64),
    }
}

pub(super) fn bfi(o: &Operands<'_>) -> Bound {
    by_type! { o.ty()?; B32 => o.lift4(sem::bfi_b32), B64 => o.lift4(sem::bfi_b64) }
}

pub(super) fn dp4a(o: &Operands<'_>) -> Bound {
    match (signed(o, Slot::Atype)?, signed(o, Slot::Btype)?) {
        (false, false) => o.lift3(sem::dp4a_u32_u32),
        (false, true) => o.lift3(sem::dp4a_u32_s32),
        (true, false) => o.lift3(sem::dp4a_s32_u32),
        (true, true) => o.lift3(sem::dp4a_s32_s32),
    }
}

pub(super) fn dp2a(o: &Operands<'_>) -> Bound {
    let half = half_of_product(o)?;
    match (half, signed(o, Slot::Atype)?, signed(o, Slot::Btype)?) {
        (Half::Lo, false, false) => o.lift3(sem::dp2a_lo_u32_u32),
        (Half::Lo, false, true) => o.lift3(sem::dp2a_lo_u32_s32),
        (Half::Lo, true, false) => o.lift3(sem::dp2a_lo_s32_u32),
        (Half::Lo, true, true) => o.lift3(sem::dp2a_lo_s32_s32),
        (Half::Hi, false, false) => o.lift3(sem::dp2a_hi_u32_u32),
        (Half::Hi, false, true) => o.lift3(sem::dp2a_hi_u32_s32),
        (Half::Hi, true, false) => o.lift3(sem::dp2a_hi_s32_u32),
        (Half::Hi, true, true) => o.lift3(sem::dp2a_hi_s32_s32),
        (Half::Wide, ..) => Err(Missing),
    }
}

fn signed(o: &Operands<'_>, slot: Slot) -> Result<bool, Missing> {
    by_type! { o.ty_in(slot).ok_or(Missing)?; U32 => Ok(false), S32 => Ok(true) }
}

/// An extended-precision step. The function takes the carry-in (false if the instruction does not read it)
/// and returns the carry-out.
fn carry_step<T: lift::Value>(
    o: &Operands<'_>,
    carry: Carry,
    f: impl Fn(T, T, T, bool) -> (T, bool) + Copy + Send + Sync + 'static,
) -> Bound {
    let d = o.dst::<T>(0)?;
    let (a, b) = (o.src::<T>(0)?, o.src::<T>(1)?);
    let c = if o.given(2) { o.src::<T>(2)? } else { lift::Operand::splat(Default::default()) };
    Ok(lift::carrying(d, [a, b, c], carry, f))
}

pub(super) fn add_cc(o: &Operands<'_>) -> Bound {
    o.ignore_word(Word::Cc);
    let carry = Carry { reads: false, writes: true };
    by_type! { o.ty()?;
        U32 | S32 => carry_step(o, carry, |a, b, _, _| sem::add_cc_u32(a, b)),
        U64 | S64 => carry_step(o, carry, |a, b, _, _| sem::add_cc_u64(a, b)),
    }
}

pub(super) fn addc(o: &Operands<'_>) -> Bound {
    let carry = Carry { reads: true, writes: o.has(Word::Cc) };
    by_type! { o.ty()?;
        U32 | S32 => carry_step(o, carry, |a, b, _, cf| sem::addc_cc_u32(a, b, cf)),
        U64 | S64 => carry_step(o, carry, |a, b, _, cf| sem::addc_cc_u64(a, b, cf)),
    }
}

pub(super) fn sub_cc(o: &Operands<'_>) -> Bound {
    o.ignore_word(Word::Cc);
    let carry = Carry { reads: false, writes: true };
    by_type! { o.ty()?;
        U32 | S32 => carry_step(o, carry, |a, b, _, _| sem::sub_cc_u32(a, b)),
        U64 | S64 => carry_step(o, carry, |a, b, _, _| sem::sub_cc_u64(a, b)),
    }
}

pub(super) fn subc(o: &Operands<'_>) -> Bound {
    let carry = Carry { reads: true, writes: o.has(Word::Cc) };
    by_type! { o.ty()?;
        U32 | S32 => carry_step(o, carry, |a, b, _, cf| sem::subc_cc_u32(a, b, cf)),
        U64 | S64 => carry_step(o, carry, |a, b, _, cf| sem::subc_cc_u64(a, b, cf)),
    }
}

pub(super) fn mad_cc(o: &Operands<'_>) -> Bound {
    o.ignore_word(Word::Cc);
    let carry = Carry { reads: false, writes: true };
    match half_of_product(o)? {
        Half::Lo => by_type! { o.ty()?;
            U32 | S32 => carry_step(o, carry, |a, b, c, _| sem::mad_lo_cc_u32(a, b, c)),
            U64 | S64 => carry_step(o, carry, |a, b, c, _| sem::mad_lo_cc_u64(a, b, c)),
        },
        Half::Hi => by_type! { o.ty()?;
            U32 => carry_step(o, carry, |a, b, c, _| sem::mad_hi_cc_u32(a, b, c)),
            S32 => carry_step(o, carry, |a, b, c, _| sem::mad_hi_cc_s32(a, b, c)),
            U64 => carry_step(o, carry, |a, b, c, _| sem::mad_hi_cc_u64(a, b, c)),
            S64 => carry_step(o, carry, |a, b, c, _| sem::mad_hi_cc_s64(a, b, c)),
        },
        Half::Wide => Err(Missing),
    }
}

pub(super) fn madc(o: &Operands<'_>) -> Bound {
    let carry = Carry { reads: true, writes: o.has(Word::Cc) };
    match half_of_product(o)? {
        Half::Lo => by_type! { o.ty()?;
            U32 | S32 => carry_step(o, carry, sem::madc_lo_cc_u32),
            U64 | S64 => carry_step(o, carry, sem::madc_lo_cc_u64),
        },
        Half::Hi => by_type! { o.ty()?;
            U32 => carry_step(o, carry, sem::madc_hi_cc_u32),
            S32 => carry_step(o, carry, sem::madc_hi_cc_s32),
            U64 => carry_step(o, carry, sem::madc_hi_cc_u64),
            S64 => carry_step(o, carry, sem::madc_hi_cc_s64),
        },
        Half::Wide => Err(Missing),
    }
}

/// Whether the count is clamped; otherwise it wraps.
fn clamps(o: &Operands<'_>) -> bool {
    o.ignore(Slot::Mode);
    o.mods().get(Slot::Mode) == Some(Word::Clamp)
}

pub(super) fn szext(o: &Operands<'_>) -> Bound {
    let clamps = clamps(o);
    by_type! { o.ty()?;
        U32 => if clamps { o.lift2(sem::szext_clamp_u32) } else { o.lift2(sem::szext_wrap_u32) },
        S32 => if clamps { o.lift2(sem::szext_clamp_s32) } else { o.lift2(sem::szext_wrap_s32) },
    }
}

pub(super) fn bmsk(o: &Operands<'_>) -> Bound {
    let clamps = clamps(o);
    by_type! { o.ty()?; B32 => if clamps { o.lift2(sem::bmsk_clamp_b32) } else { o.lift2(sem::bmsk_wrap_b32) } }
}

pub(super) fn cvt_pack(o: &Operands<'_>) -> Bound {
    o.look(|slot, word| matches!(word, Word::Pack | Word::Sat) || matches!(slot, Slot::Atype | Slot::Type));
    by_type! { o.ty_in(Slot::Dtype).ok_or(Missing)?;
        U16 => o.lift2(sem::cvt_pack_sat_u16_s32),
        S16 => o.lift2(sem::cvt_pack_sat_s16_s32),
        U8 => o.lift3(sem::cvt_pack_sat_u8_s32),
        S8 => o.lift3(sem::cvt_pack_sat_s8_s32),
        U4 => o.lift3(sem::cvt_pack_sat_u4_s32),
        S4 => o.lift3(sem::cvt_pack_sat_s4_s32),
        U2 => o.lift3(sem::cvt_pack_sat_u2_s32),
        S2 => o.lift3(sem::cvt_pack_sat_s2_s32),
    }
}
