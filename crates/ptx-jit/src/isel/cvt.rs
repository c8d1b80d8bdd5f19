//! Conversion (PTX ISA §9.7.8.14).
//!
//! Invariant: before a conversion to integers, values are clamped to the range of the type, and NaN is
//! replaced afterwards, since the processor's instruction does not define these cases.

use ptx::isa::{Rnd, Slot, Ty, Word};

use super::query::{Ftz, Query};
use super::round::Round;
use super::{Lower, Lowering, is_signed, tiny};
use crate::llvm::{Builder, FloatPred, Type, Value};

pub(super) fn cvt(q: &Query<'_>) -> Option<Lowering> {
    let d = q.ty_in(Slot::Dtype)?;
    let a = q.ty_in(Slot::Atype)?;
    match (is_integer(d), is_integer(a)) {
        (true, true) => int_to_int(q, d, a),
        (false, true) => int_to_float(q, d, a),
        (true, false) => float_to_int(q, d, a),
        (false, false) => float_to_float(q, d, a),
    }
}

fn is_integer(ty: Ty) -> bool {
    let unsigned = [Ty::U8, Ty::U16, Ty::U32, Ty::U64];
    unsigned.contains(&ty) || is_signed(ty)
}

/// The least and the greatest number of an integer type.
fn range(ty: Ty) -> (i128, i128) {
    if is_signed(ty) {
        (-1 << (ty.bits() - 1), (1 << (ty.bits() - 1)) - 1)
    } else {
        (0, (1 << ty.bits()) - 1)
    }
}

fn int_to_int(q: &Query<'_>, d: Ty, a: Ty) -> Option<Lowering> {
    let sat = q.has(Word::Sat);
    q.map(&[a], d, move |l, v| {
        let value = if sat { clamped(l, v[0], a, d) } else { v[0] };
        l.extended(value, d.bits(), is_signed(a))
    })
}

/// An integer of type `a`, clamped to the range of `d`.
fn clamped(l: &Lower<'_, '_>, value: Value, a: Ty, d: Ty) -> Value {
    let ((from_least, from_most), (to_least, to_most)) = (range(a), range(d));
    let (min, max) = if is_signed(a) { ("llvm.smin", "llvm.smax") } else { ("llvm.umin", "llvm.umax") };
    let mut value = value;
    if to_most < from_most {
        value = l.b.intrinsic(min, &[value.ty()], &[value, l.constant(value, to_most as u64)]);
    }
    if to_least > from_least {
        value = l.b.intrinsic(max, &[value.ty()], &[value, l.constant(value, to_least as u64)]);
    }
    value
}

fn int_to_float(q: &Query<'_>, d: Ty, a: Ty) -> Option<Lowering> {
    // No integer is subnormal, so `.ftz` has no effect.
    q.has(Word::Ftz);
    let sat = q.has(Word::Sat);
    let digits = match d {
        Ty::F16 => 11,
        Ty::F32 => 24,
        Ty::F64 => 53,
        _ => return None,
    };
    let exact = range(a).1 < 1 << digits;
    let round = match q.rnd() {
        None | Some(Rnd::Rn) => Round::Nearest,
        Some(Rnd::Rz | Rnd::Rm | Rnd::Rp) if exact => Round::Nearest,
        Some(_) if d == Ty::F16 => return None,
        // Integers of 32 bits are exact in double precision.
        Some(_) if d == Ty::F32 && a.bits() <= 32 => q.rounding_of_exact()?,
        Some(_) => q.rounding()?,
    };
    if d == Ty::F16 {
        q.half_conversions()?;
        // An integer that is not exactly a single is beyond the range of halves, and so is the single nearest
        // to it.
        return q.map(&[a], d, move |l, v| {
            let half = l.half_of_single(l.number_of(v[0], l.f32(), is_signed(a)));
            if sat { l.saturated_half(half) } else { half }
        });
    }
    q.map(&[a], d, move |l, v| {
        let float = l.raw(d);
        let number = match round {
            Round::Nearest => l.number_of(v[0], float, is_signed(a)),
            Round::Embedded(code) => rounded_number(l, v[0], a, d, code),
            Round::Corrected(direction) => l.corrected(l.number_of(v[0], l.f64(), is_signed(a)), direction),
        };
        if sat { l.saturated(number) } else { number }
    })
}

/// An integer as a floating-point number, with a directed rounding. It has 32 bits if the result is `.f32`,
/// or 64.
fn rounded_number(l: &Lower<'_, '_>, value: Value, a: Ty, d: Ty, code: u32) -> Value {
    let prefix = if is_signed(a) { "llvm.x86.avx512.sitofp.round" } else { "llvm.x86.avx512.uitofp.round" };
    let single = d == Ty::F32;
    let b = l.b;
    let wide = a.bits() == 64;
    let chunk = if wide { 8 } else { 16 };
    let element: fn(&Builder<'_>) -> Type = if single { |b| b.f32() } else { |b| b.f64() };
    // These intrinsics are overloaded, so their types are given.
    let from = b.vec(b.int(if wide { 64 } else { 32 }), chunk);
    let to = b.vec(element(b), chunk);
    l.embedded_as(prefix, &[to, from], code, chunk, element, &[value])
}

fn float_to_int(q: &Query<'_>, d: Ty, a: Ty) -> Option<Lowering> {
    // Every conversion to an integer is clamped, so `.sat` has no effect.
    q.has(Word::Sat);
    let rnd = q.integral()??;
    let ftz = match a {
        Ty::F16 => {
            q.half_conversions()?;
            if q.has(Word::Ftz) {
                return None;
            }
            Ftz::None
        }
        Ty::F32 => q.ftz()?,
        Ty::F64 => {
            q.keeps_subnormals()?;
            Ftz::None
        }
        _ => return None,
    };
    let lowering = q.map(&[a], d, move |l, v| {
        let number = if a == Ty::F16 { l.single_of_half(v[0]) } else { ftz.apply(l, v[0]) };
        let number = if rnd == Rnd::Rzi { number } else { l.integral(number, rnd) };
        l.integer_of(number, d, a)
    })?;
    let (number_srcs, double_srcs) = (u32::from(a == Ty::F32), u32::from(a == Ty::F64));
    Some(Lowering { number_srcs, double_srcs, ..lowering })
}

fn float_to_float(q: &Query<'_>, d: Ty, a: Ty) -> Option<Lowering> {
    if let Some(lowering) = tiny::cvt(q, d, a) {
        return Some(lowering);
    }
    if q.has(Word::Satfinite) {
        return None;
    }
    match (a, d) {
        (Ty::Bf16, Ty::F32) => {
            let (ftz, sat) = (q.ftz()?, q.has(Word::Sat));
            let lowering = q.map(&[a], d, move |l, v| {
                let number = ftz.apply(l, l.single_of(v[0], true));
                if sat { l.saturated(number) } else { number }
            })?;
            Some(Lowering { loose_nan: !sat, ..lowering })
        }
        (Ty::F32, Ty::Bf16 | Ty::Bf16x2 | Ty::F16x2) => to_sixteen_bits(q, d),
        (Ty::F16, Ty::F16) => {
            q.half_conversions()?;
            let (rnd, sat) = (q.integral()?, q.has(Word::Sat));
            q.map(&[a], d, move |l, v| {
                let value = match rnd {
                    Some(rnd) => l.half_of_single(l.integral(l.single_of_half(v[0]), rnd)),
                    None => v[0],
                };
                if sat { l.saturated_half(value) } else { value }
            })
        }
        (Ty::F16, Ty::F32) => {
            q.half_conversions()?;
            // No half is a subnormal single, so `.ftz` has no effect.
            q.has(Word::Ftz);
            let sat = q.has(Word::Sat);
            let lowering = q.map(&[a], d, move |l, v| {
                let number = l.single_of_half(v[0]);
                if sat { l.saturated(number) } else { number }
            })?;
            Some(Lowering { loose_nan: !sat, ..lowering })
        }
        (Ty::F32, Ty::F16) => {
            q.half_conversions()?;
            let (round, sat, relu) = (q.rounding()?, q.has(Word::Sat), q.has(Word::Relu));
            // A subnormal single becomes zero as a half, flushed or not.
            q.has(Word::Ftz);
            if round != Round::Nearest {
                return None;
            }
            let lowering = q.map(&[a], d, move |l, v| {
                let half = l.half_of_single(v[0]);
                let half = if relu { l.not_negative(half) } else { half };
                if sat { l.saturated_half(half) } else { half }
            })?;
            Some(Lowering { number_srcs: 1, ..lowering })
        }
        (Ty::F32, Ty::F32) => same_f32(q),
        (Ty::F32, Ty::F64) => {
            let (ftz, sat) = (q.ftz()?, q.has(Word::Sat));
            q.map(&[a], d, move |l, v| {
                // The bits of a NaN are kept, so the source is not only read as a number.
                let number = l.b.fpext(ftz.apply(l, v[0]), l.f64());
                if sat { l.saturated(number) } else { number }
            })
        }
        (Ty::F64, Ty::F32) => {
            let (round, sat, ftz) = (q.rounding_of_exact()?, q.has(Word::Sat), q.ftz()?);
            if ftz == Ftz::ByMachine {
                // The result could be flushed before it is rounded, so there is no lowering.
                return None;
            }
            let lowering = q.map(&[a], d, move |l, v| {
                let number = if ftz == Ftz::Explicit {
                    flushed_single(l, v[0], round)
                } else {
                    rounded_single(l, v[0], round)
                };
                if sat { l.saturated(number) } else { number }
            })?;
            Some(Lowering { double_srcs: 1, loose_nan: !sat, ..lowering })
        }
        (Ty::F64, Ty::F64) => {
            q.keeps_subnormals()?;
            let (rnd, sat) = (q.integral()?, q.has(Word::Sat));
            q.map(&[a], d, move |l, v| {
                let value = match rnd {
                    Some(rnd) => l.number_or_nan_f64(l.integral(v[0], rnd), v),
                    None => v[0],
                };
                if sat { l.saturated(value) } else { value }
            })
        }
        _ => None,
    }
}

/// One or two single precision numbers to bfloat16, or two to half precision, rounded to nearest. The first
/// of two is in the high half.
fn to_sixteen_bits(q: &Query<'_>, d: Ty) -> Option<Lowering> {
    let brain = d != Ty::F16x2;
    q.sixteen_bits(brain)?;
    let relu = q.has(Word::Relu);
    if q.rounding()? != Round::Nearest || q.has(Word::Sat) {
        return None;
    }
    let one = move |l: &Lower<'_, '_>, number: Value| {
        let bits = l.sixteen_bits_of(number, brain);
        if relu { l.not_negative(bits) } else { bits }
    };
    if d == Ty::Bf16 {
        let lowering = q.map(&[Ty::F32], d, move |l, v| one(l, v[0]))?;
        return Some(Lowering { number_srcs: 1, ..lowering });
    }
    let lowering = q.map(&[Ty::F32, Ty::F32], d, move |l, v| {
        let [high, low] = [v[0], v[1]].map(|v| l.b.zext(one(l, v), l.int(32)));
        l.b.or(l.b.shl(high, l.constant(high, 16)), low)
    })?;
    Some(Lowering { number_srcs: 0b11, ..lowering })
}

fn same_f32(q: &Query<'_>) -> Option<Lowering> {
    let (rnd, sat, ftz) = (q.integral()?, q.has(Word::Sat), q.ftz()?);
    let explicit = ftz != Ftz::None;
    let lowering = q.map(&[Ty::F32], Ty::F32, move |l, v| {
        let flush = |v| if explicit { l.flushed(v) } else { v };
        let value = flush(v[0]);
        let value = match rnd {
            Some(rnd) => l.integral(value, rnd),
            None => value,
        };
        if sat { l.saturated(value) } else { value }
    })?;
    let rounds = rnd.is_some();
    Some(Lowering {
        number_srcs: u32::from(rounds || sat),
        copied_srcs: u32::from(!rounds && !sat),
        loose_nan: rounds && !sat,
        ..lowering
    })
}

/// Double to single precision with `.ftz`: what is subnormal when it is rounded to 24 bits becomes zero.
fn flushed_single(l: &Lower<'_, '_>, double: Value, round: Round) -> Value {
    let b = l.b;
    let single = rounded_single(l, double, round);
    // The scaled number is normal in single precision, so it is rounded to 24 bits. Scaling by 2^64 is exact.
    let scale = b.const_splat(double.ty(), ((1u128 << 64) as f64).to_bits());
    let scaled = rounded_single(l, b.fmul(double, scale), round);
    let magnitude = b.intrinsic("llvm.fabs", &[scaled.ty()], &[scaled]);
    let least = b.const_splat(scaled.ty(), (f32::MIN_POSITIVE * (1u128 << 64) as f32).to_bits().into());
    let bits = b.bitcast(single, l.int(32));
    let zero = b.bitcast(b.and(bits, l.constant(bits, 0x8000_0000)), single.ty());
    b.select(b.fcmp(FloatPred::Olt, magnitude, least), zero, single)
}

/// Double to single precision.
fn rounded_single(l: &Lower<'_, '_>, number: Value, round: Round) -> Value {
    let code = match round {
        Round::Nearest => return l.b.fptrunc(number, l.f32()),
        Round::Corrected(direction) => return l.corrected(number, direction),
        Round::Embedded(code) => code,
    };
    let b = l.b;
    let chunks = l.lanes.div_ceil(8);
    let code = b.const_int(b.int(32), u64::from(code));
    let single = b.vec(b.f32(), 8);
    let all = b.ones(b.int(8));
    let one = |part: Value| {
        b.intrinsic("llvm.x86.avx512.mask.cvtpd2ps.512", &[], &[part, b.zero(single), all, code])
    };
    if l.lanes < 8 {
        return b.slice(one(l.widened(number, 8)), 0, l.lanes);
    }
    let mut parts: Vec<Value> = (0..chunks).map(|i| one(b.slice(number, 8 * i, 8))).collect();
    while parts.len() > 1 {
        parts = parts.chunks(2).map(|pair| b.concat(pair[0], pair[1])).collect();
    }
    parts[0]
}

impl Lower<'_, '_> {
    /// An integer resized to that many bits: truncated, or extended according to its own sign.
    fn extended(&self, value: Value, bits: u32, signed: bool) -> Value {
        let to = self.int(bits);
        match value.ty().element_bits().cmp(&bits) {
            std::cmp::Ordering::Greater => self.b.trunc(value, to),
            std::cmp::Ordering::Less if signed => self.b.sext(value, to),
            std::cmp::Ordering::Less | std::cmp::Ordering::Equal => self.b.zext(value, to),
        }
    }

    /// An integer as a floating-point number, rounded to nearest.
    fn number_of(&self, value: Value, float: Type, signed: bool) -> Value {
        if signed { self.b.sitofp(value, float) } else { self.b.uitofp(value, float) }
    }

    /// A number of type `a` truncated to an integer of type `d`, clamped to its range. NaN becomes an integer
    /// of which only the highest bit is 1 if either type has 64 bits, else zero.
    fn integer_of(&self, number: Value, d: Ty, a: Ty) -> Value {
        let b = self.b;
        let ty = number.ty();
        let digits = if ty.element_bits() == 32 { 24 } else { 53 };
        let constant = |value: i128| {
            let bits =
                if digits == 24 { u64::from((value as f32).to_bits()) } else { (value as f64).to_bits() };
            b.const_splat(ty, bits)
        };
        let (least, most) = range(d);
        // The greatest integer of the type; or, if this precision cannot represent it, the greatest
        // representable number below it.
        let cut = (most.ilog2() + 1).saturating_sub(digits);
        let top = most >> cut << cut;
        let below = b.select(b.fcmp(FloatPred::Olt, number, constant(top)), number, constant(top));
        let inside = b.select(b.fcmp(FloatPred::Ogt, below, constant(least)), below, constant(least));
        // Narrow types are converted through 32 bits, for which there are instructions.
        let wide = self.int(if d.bits() == 64 { 64 } else { 32 });
        let signed = is_signed(d) || d.bits() < 32;
        let integer = if signed { b.fptosi(inside, wide) } else { b.fptoui(inside, wide) };
        let mut integer = self.resized(integer, self.int(d.bits()));
        if top != most {
            let over = b.fcmp(FloatPred::Oge, number, constant(most + 1));
            integer = b.select(over, b.const_int(integer.ty(), most as u64), integer);
        }
        let nan = b.fcmp(FloatPred::Uno, number, number);
        let highest = if d.bits() == 64 || a == Ty::F64 { 1 << (d.bits() - 1) } else { 0 };
        b.select(nan, b.const_int(integer.ty(), highest), integer)
    }
}
