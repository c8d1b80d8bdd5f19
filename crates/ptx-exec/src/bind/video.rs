//! Video instructions (PTX ISA §9.7.15, §9.7.16).
//!
//! Invariant: an instruction with its selectors and modifiers becomes one configuration of the function in
//! `ptx-sem`. Packed forms that compilers often write have separate steps.

use super::Missing;
use super::compare::sem_cmp;
use super::operands::{Bound, Operands};
use crate::bound::StepFn;
use crate::lift::{self, Operand, Target, Three, Two};
use ptx::ir::{Dst, Src, VideoSrc};
use ptx::isa::{Cmp, Secop, ShiftMode, Slot, Ty, Word};
use ptx_sem::{
    self as sem, VideoLanes, VideoScalar, VideoScalarOp, VideoSel, VideoSimd, VideoSimdOp, Vmad, VmadScale,
};

/// A source with its selector, if it has one.
fn source<'a>(o: &Operands<'a>, index: usize) -> Result<(&'a Src, Option<&'a VideoSrc>), Missing> {
    match o.src_at(index)? {
        Src::Video(video) => Ok((&video.value, Some(video))),
        plain @ (Src::Reg(_) | Src::Imm(_)) => Ok((plain, None)),
        Src::Absent | Src::Not(_) | Src::Sreg(..) | Src::Addr(_) => Err(Missing),
    }
}

/// The third source; zero if the form has none.
fn third(o: &Operands<'_>) -> Result<Operand<u32>, Missing> {
    if o.given(2) { o.value::<u32>(source(o, 2)?.0) } else { Ok(Operand::splat(0)) }
}

fn signed(o: &Operands<'_>, slot: Slot) -> Result<bool, Missing> {
    super::by_type! { o.ty_in(slot).ok_or(Missing)?; U32 => Ok(false), S32 => Ok(true) }
}

/// The part of a register that a scalar form's source names.
fn part(video: Option<&VideoSrc>) -> Result<VideoSel, Missing> {
    let Some(video) = video else { return Ok(VideoSel::Word) };
    match (video.bytes, video.elements.as_slice()) {
        (_, []) => Ok(VideoSel::Word),
        (true, [0]) => Ok(VideoSel::B0),
        (true, [1]) => Ok(VideoSel::B1),
        (true, [2]) => Ok(VideoSel::B2),
        (true, [3]) => Ok(VideoSel::B3),
        (false, [0]) => Ok(VideoSel::H0),
        (false, [1]) => Ok(VideoSel::H1),
        _ => Err(Missing),
    }
}

/// The destination register, and the bytes of it that the instruction writes.
fn target(o: &Operands<'_>) -> Result<(Target<u32>, Option<u8>), Missing> {
    match o.dst_at(0) {
        Dst::Reg(reg) => Ok((super::operands::write_reg::<u32>(reg)?, None)),
        Dst::Video { reg, bytes } => Ok((super::operands::write_reg::<u32>(reg)?, Some(bytes))),
        Dst::Sink => Ok((Target::Sink, None)),
    }
}

fn destination_part(bytes: Option<u8>) -> Result<VideoSel, Missing> {
    match bytes {
        None | Some(0b1111) => Ok(VideoSel::Word),
        Some(0b0001) => Ok(VideoSel::B0),
        Some(0b0010) => Ok(VideoSel::B1),
        Some(0b0100) => Ok(VideoSel::B2),
        Some(0b1000) => Ok(VideoSel::B3),
        Some(0b0011) => Ok(VideoSel::H0),
        Some(0b1100) => Ok(VideoSel::H1),
        Some(_) => Err(Missing),
    }
}

fn relation(o: &Operands<'_>) -> Result<sem::Cmp, Missing> {
    o.ask(Slot::CmpOp, |w| Cmp::from_word(w).is_some(), |mods| mods.cmp()).map(sem_cmp)
}

/// A scalar form other than `vmad`.
pub(super) fn scalar(o: &Operands<'_>, op: VideoScalarOp) -> Bound {
    let (d, bytes) = target(o)?;
    let ((a, a_video), (b, b_video)) = (source(o, 0)?, source(o, 1)?);
    if a_video.is_some_and(|v| v.negated) || b_video.is_some_and(|v| v.negated) {
        return Err(Missing);
    }
    let set = op == VideoScalarOp::Set;
    let shifts = matches!(op, VideoScalarOp::Shl | VideoScalarOp::Shr);
    o.look(|slot, _| slot == Slot::Secop);
    let cfg = VideoScalar {
        op,
        dtype_signed: if set { false } else { signed(o, Slot::Dtype)? },
        atype_signed: signed(o, Slot::Atype)?,
        btype_signed: btype_signed(o)?,
        sat: o.has(Word::Sat),
        asel: part(a_video)?,
        bsel: part(b_video)?,
        dsel: destination_part(bytes)?,
        secop: o.mods().secop().map(|secop| match secop {
            Secop::Add => sem::VideoSecop::Add,
            Secop::Min => sem::VideoSecop::Min,
            Secop::Max => sem::VideoSecop::Max,
        }),
        mode: if shifts { shift_mode(o)? } else { sem::VideoShift::Clamp },
        cmp: if set { relation(o)? } else { sem::Cmp::Eq },
    };
    let (a, b, c) = (o.value::<u32>(a)?, o.value::<u32>(b)?, third(o)?);
    Ok(lift::active3(Three { d, a, b, c }, move |a, b, c| sem::video_scalar(&cfg, a, b, c)))
}

/// The type of `b`: a literal `.u32` in the shifts.
fn btype_signed(o: &Operands<'_>) -> Result<bool, Missing> {
    if o.mods().ty_in(Slot::Btype).is_some() {
        return signed(o, Slot::Btype);
    }
    o.look(|slot, word| matches!(slot, Slot::Type | Slot::Flag) && word == Word::Ty(Ty::U32));
    Ok(false)
}

fn shift_mode(o: &Operands<'_>) -> Result<sem::VideoShift, Missing> {
    let words = |w| matches!(w, Word::Clamp | Word::Wrap);
    Ok(match o.ask(Slot::Mode, words, |mods| mods.shift_mode())? {
        ShiftMode::Clamp => sem::VideoShift::Clamp,
        ShiftMode::Wrap => sem::VideoShift::Wrap,
    })
}

pub(super) fn vmad(o: &Operands<'_>) -> Bound {
    let (d, bytes) = target(o)?;
    if bytes.is_some_and(|bytes| bytes != 0b1111) {
        return Err(Missing);
    }
    let ((a, a_video), (b, b_video), (c, c_video)) = (source(o, 0)?, source(o, 1)?, source(o, 2)?);
    // The type of d does not affect the result (V6).
    signed(o, Slot::Dtype)?;
    o.ignore(Slot::Scale);
    let negated = |video: Option<&VideoSrc>| video.is_some_and(|v| v.negated);
    let cfg = Vmad {
        atype_signed: signed(o, Slot::Atype)?,
        btype_signed: signed(o, Slot::Btype)?,
        sat: o.has(Word::Sat),
        asel: part(a_video)?,
        bsel: part(b_video)?,
        negate_a: negated(a_video),
        negate_b: negated(b_video),
        negate_c: negated(c_video),
        po: o.has(Word::Po),
        scale: match o.mods().vmad_shift() {
            0 => VmadScale::None,
            7 => VmadScale::Shr7,
            15 => VmadScale::Shr15,
            _ => return Err(Missing),
        },
    };
    let (a, b, c) = (o.value::<u32>(a)?, o.value::<u32>(b)?, o.value::<u32>(c)?);
    Ok(lift::active3(Three { d, a, b, c }, move |a, b, c| sem::vmad(&cfg, a, b, c)))
}

/// A packed form.
pub(super) fn simd(o: &Operands<'_>, op: VideoSimdOp, lanes: VideoLanes) -> Bound {
    let (d, bytes) = target(o)?;
    let ((a, a_video), (b, b_video)) = (source(o, 0)?, source(o, 1)?);
    let defaults = VideoSimd::new(op, lanes);
    let set = op == VideoSimdOp::Set;
    let cfg = VideoSimd {
        dtype_signed: if set { false } else { signed(o, Slot::Dtype)? },
        atype_signed: signed(o, Slot::Atype)?,
        btype_signed: signed(o, Slot::Btype)?,
        sat: o.has(Word::Sat),
        add: add(o)?,
        mask: lane_mask(bytes, lanes)?,
        asel: elements(a_video, lanes, defaults.asel)?,
        bsel: elements(b_video, lanes, defaults.bsel)?,
        cmp: if set { relation(o)? } else { defaults.cmp },
        ..defaults
    };
    let (a, b, c) = (o.value::<u32>(a)?, o.value::<u32>(b)?, third(o)?);
    Ok(packed(cfg, Three { d, a, b, c }))
}

/// `.add`: sums the lanes.
fn add(o: &Operands<'_>) -> Result<bool, Missing> {
    o.look(|slot, word| matches!(slot, Slot::Secop | Slot::Flag) && word == Word::Add);
    match o.mods().secop() {
        None => Ok(false),
        Some(Secop::Add) => Ok(true),
        Some(Secop::Min | Secop::Max) => Err(Missing),
    }
}

/// The written lanes, from the written bytes.
fn lane_mask(bytes: Option<u8>, lanes: VideoLanes) -> Result<u8, Missing> {
    let bytes = bytes.unwrap_or(0b1111);
    match lanes {
        VideoLanes::Four => Ok(bytes),
        VideoLanes::Two => match bytes {
            0b0011 => Ok(0b01),
            0b1100 => Ok(0b10),
            0b1111 => Ok(0b11),
            _ => Err(Missing),
        },
    }
}

fn elements(video: Option<&VideoSrc>, lanes: VideoLanes, default: [u8; 4]) -> Result<[u8; 4], Missing> {
    let Some(video) = video else { return Ok(default) };
    if video.negated {
        return Err(Missing);
    }
    match (lanes, video.elements.as_slice()) {
        (_, []) => Ok(default),
        (VideoLanes::Two, &[low, high]) => Ok([low, high, default[2], default[3]]),
        (VideoLanes::Four, &[a, b, c, d]) => Ok([a, b, c, d]),
        _ => Err(Missing),
    }
}

/// The step of a packed form. If `ptx-sem` has a specialised function, which its tests prove equal, it is a
/// separate step whose loop over lanes vectorises.
fn packed(cfg: VideoSimd, o: Three<u32, u32, u32, u32>) -> StepFn {
    use VideoLanes::{Four, Two as Halves};
    use VideoSimdOp::{Absdiff, Add, Avrg, Max, Min, Sub};
    let plain = VideoSimd { sat: cfg.sat, add: cfg.add, ..VideoSimd::new(cfg.op, cfg.lanes) };
    let signed = VideoSimd { dtype_signed: true, atype_signed: true, btype_signed: true, ..plain };
    let is_signed = cfg == signed;
    if cfg != plain && !is_signed {
        return lift::active3(o, move |a, b, c| sem::video_simd(&cfg, a, b, c));
    }
    let Three { d, a, b, c } = o;
    let sources = Two { d, a, b };
    match (cfg.op, cfg.lanes, is_signed, cfg.sat, cfg.add) {
        (Add, Four, _, false, false) => lift::lift2(sources, sem::vadd4_u32),
        (Add, Four, false, true, false) => lift::lift2(sources, sem::vadd4_sat_u32),
        (Add, Four, true, true, false) => lift::lift2(sources, sem::vadd4_sat_s32),
        (Sub, Four, _, false, false) => lift::lift2(sources, sem::vsub4_u32),
        (Sub, Four, false, true, false) => lift::lift2(sources, sem::vsub4_sat_u32),
        (Sub, Four, true, true, false) => lift::lift2(sources, sem::vsub4_sat_s32),
        (Avrg, Four, false, false, false) => lift::lift2(sources, sem::vavrg4_u32),
        (Absdiff, Four, false, false, false) => lift::lift2(sources, sem::vabsdiff4_u32),
        (Absdiff, Four, true, false, false) => lift::lift2(sources, sem::vabsdiff4_s32),
        (Min, Four, false, _, false) => lift::lift2(sources, sem::vmin4_u32),
        (Min, Four, true, _, false) => lift::lift2(sources, sem::vmin4_s32),
        (Max, Four, false, _, false) => lift::lift2(sources, sem::vmax4_u32),
        (Max, Four, true, _, false) => lift::lift2(sources, sem::vmax4_s32),
        (Add, Halves, _, false, false) => lift::lift2(sources, sem::vadd2_u32),
        (Add, Halves, false, true, false) => lift::lift2(sources, sem::vadd2_sat_u32),
        (Add, Halves, true, true, false) => lift::lift2(sources, sem::vadd2_sat_s32),
        (Sub, Halves, _, false, false) => lift::lift2(sources, sem::vsub2_u32),
        (Sub, Halves, false, true, false) => lift::lift2(sources, sem::vsub2_sat_u32),
        (Sub, Halves, true, true, false) => lift::lift2(sources, sem::vsub2_sat_s32),
        (Avrg, Halves, false, false, false) => lift::lift2(sources, sem::vavrg2_u32),
        (Absdiff, Halves, false, false, false) => lift::lift2(sources, sem::vabsdiff2_u32),
        (Absdiff, Halves, true, false, false) => lift::lift2(sources, sem::vabsdiff2_s32),
        (Min, Halves, false, _, false) => lift::lift2(sources, sem::vmin2_u32),
        (Min, Halves, true, _, false) => lift::lift2(sources, sem::vmin2_s32),
        (Max, Halves, false, _, false) => lift::lift2(sources, sem::vmax2_u32),
        (Max, Halves, true, _, false) => lift::lift2(sources, sem::vmax2_s32),
        (Absdiff, Four, false, false, true) => lift::lift3(with(sources, c), sem::vabsdiff4_add_u32),
        (Absdiff, Four, true, false, true) => lift::lift3(with(sources, c), sem::vabsdiff4_add_s32),
        (Absdiff, Halves, false, false, true) => lift::lift3(with(sources, c), sem::vabsdiff2_add_u32),
        (Absdiff, Halves, true, false, true) => lift::lift3(with(sources, c), sem::vabsdiff2_add_s32),
        _ => lift::active3(with(sources, c), move |a, b, c| sem::video_simd(&cfg, a, b, c)),
    }
}

/// Two sources and a third.
fn with<A, B, C, D>(sources: Two<A, B, D>, c: Operand<C>) -> Three<A, B, C, D> {
    Three { d: sources.d, a: sources.a, b: sources.b, c }
}
