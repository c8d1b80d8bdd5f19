//! §9.7.15, §9.7.16: video instructions against the manual's stages in exact integers, and the choices where
//! it is ambiguous.

use crate::values::{Random, edges};
use ptx_sem::*;

const SELECTORS: [VideoSel; 7] =
    [VideoSel::Word, VideoSel::B0, VideoSel::B1, VideoSel::B2, VideoSel::B3, VideoSel::H0, VideoSel::H1];
const RELATIONS: [Cmp; 6] = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge];

/// The part of a that a selector names, as an exact integer.
fn part_select(a: u32, signed: bool, sel: VideoSel) -> i128 {
    let bytes = a.to_le_bytes();
    let (value, size): (i128, u32) = match sel {
        VideoSel::Word => (a.into(), 32),
        VideoSel::B0 => (bytes[0].into(), 8),
        VideoSel::B1 => (bytes[1].into(), 8),
        VideoSel::B2 => (bytes[2].into(), 8),
        VideoSel::B3 => (bytes[3].into(), 8),
        VideoSel::H0 => ((a % 65536).into(), 16),
        VideoSel::H1 => ((a / 65536).into(), 16),
    };
    if signed && value >= 1 << (size - 1) { value - (1 << size) } else { value }
}

fn holds(cmp: Cmp, a: i128, b: i128) -> bool {
    match cmp {
        Cmp::Eq => a == b,
        Cmp::Ne => a != b,
        Cmp::Lt => a < b,
        Cmp::Le => a <= b,
        Cmp::Gt => a > b,
        _ => a >= b,
    }
}

/// The four stages of §9.7.15.
fn scalar(cfg: &VideoScalar, a: u32, b: u32, c: u32) -> u32 {
    let shift = matches!(cfg.op, VideoScalarOp::Shl | VideoScalarOp::Shr);
    let set = cfg.op == VideoScalarOp::Set;
    let ta = part_select(a, cfg.atype_signed, cfg.asel);
    let tb = part_select(b, cfg.btype_signed && !shift, cfg.bsel);
    let count = if cfg.mode == VideoShift::Wrap { tb.rem_euclid(32) } else { tb.min(32) };
    let mut tmp = match cfg.op {
        VideoScalarOp::Add => ta + tb,
        VideoScalarOp::Sub => ta - tb,
        VideoScalarOp::Absdiff => (ta - tb).abs(),
        VideoScalarOp::Min => ta.min(tb),
        VideoScalarOp::Max => ta.max(tb),
        VideoScalarOp::Shl => ta * (1 << count),
        VideoScalarOp::Shr => ta.div_euclid(1 << count),
        VideoScalarOp::Set => holds(cfg.cmp, ta, tb).into(),
    };
    let signed = cfg.dtype_signed && !set;
    if cfg.sat && !set {
        let (least, greatest) = match (cfg.dsel, signed) {
            (VideoSel::Word, true) => (-2_147_483_648, 2_147_483_647),
            (VideoSel::Word, false) => (0, 4_294_967_295),
            (VideoSel::H0 | VideoSel::H1, true) => (-32768, 32767),
            (VideoSel::H0 | VideoSel::H1, false) => (0, 65535),
            (_, true) => (-128, 127),
            (_, false) => (0, 255),
        };
        tmp = tmp.clamp(least, greatest);
    }
    let c_value = part_select(c, signed, VideoSel::Word);
    match cfg.secop {
        Some(VideoSecop::Add) => return (tmp + c_value) as u32,
        Some(VideoSecop::Min) => return tmp.min(c_value) as u32,
        Some(VideoSecop::Max) => return tmp.max(c_value) as u32,
        None => {}
    }
    let t = tmp as u32;
    match cfg.dsel {
        VideoSel::Word => t,
        VideoSel::H0 => (t & 0xffff) | (0xffff_0000 & c),
        VideoSel::H1 => ((t & 0xffff) << 16) | (0x0000_ffff & c),
        VideoSel::B0 => (t & 0xff) | (0xffff_ff00 & c),
        VideoSel::B1 => ((t & 0xff) << 8) | (0xffff_00ff & c),
        VideoSel::B2 => ((t & 0xff) << 16) | (0xff00_ffff & c),
        VideoSel::B3 => ((t & 0xff) << 24) | (0x00ff_ffff & c),
    }
}

fn pick<T: Copy>(random: &mut Random, list: &[T]) -> T {
    list[random.u32() as usize % list.len()]
}

/// An edge value or a random one.
fn word(random: &mut Random, edges: &[u64]) -> u32 {
    if random.u32().is_multiple_of(2) { pick(random, edges) as u32 } else { random.u32() }
}

fn flag(random: &mut Random) -> bool {
    random.u32().is_multiple_of(2)
}

#[test]
fn scalar_instructions() {
    use VideoScalarOp::{Absdiff, Add, Max, Min, Set, Shl, Shr, Sub};
    let mut random = Random::new(31);
    let list = edges(32);
    for i in 0..400_000 {
        let random = &mut random;
        let merges = flag(random);
        let cfg = VideoScalar {
            op: [Add, Sub, Absdiff, Min, Max, Shl, Shr, Set][i % 8],
            dtype_signed: flag(random),
            atype_signed: flag(random),
            btype_signed: flag(random),
            sat: flag(random),
            asel: pick(random, &SELECTORS),
            bsel: pick(random, &SELECTORS),
            dsel: if merges { pick(random, &SELECTORS) } else { VideoSel::Word },
            secop: if merges {
                None
            } else {
                pick(random, &[None, Some(VideoSecop::Add), Some(VideoSecop::Min), Some(VideoSecop::Max)])
            },
            mode: pick(random, &[VideoShift::Clamp, VideoShift::Wrap]),
            cmp: pick(random, &RELATIONS),
        };
        let (a, c) = (word(random, &list), word(random, &list));
        let b = if flag(random) { random.u32() % 70 } else { word(random, &list) };
        assert_eq!(video_scalar(&cfg, a, b, c), scalar(&cfg, a, b, c), "{cfg:?} {a:#x} {b:#x} {c:#x}");
    }
}

#[test]
fn scalar_readings() {
    use VideoScalarOp::{Absdiff, Min, Set, Shl, Shr, Sub};
    let new = VideoScalar::new;
    // The second operation sees the exact result.
    let cfg = VideoScalar { secop: Some(VideoSecop::Min), ..new(Sub) };
    assert_eq!(video_scalar(&cfg, 0, 1, 5), 0xffff_ffff);
    // A left shift by 32 has a value, which saturates or leaves a low word of zero.
    assert_eq!(video_scalar(&VideoScalar { sat: true, ..new(Shl) }, 4, 32, 0), 0xffff_ffff);
    assert_eq!(video_scalar(&new(Shl), 4, 32, 0), 0);
    // Counts are unsigned, also for a selected byte; the fill uses the sign of a.
    let cfg = VideoScalar { bsel: VideoSel::B0, btype_signed: true, atype_signed: true, ..new(Shr) };
    assert_eq!(video_scalar(&cfg, 0x8000_0000, 0xff, 0), 0xffff_ffff);
    assert_eq!(
        video_scalar(&VideoScalar { mode: VideoShift::Wrap, ..cfg }, 0x8000_0000, 0xff, 0),
        0xffff_ffff
    );
    assert_eq!(video_scalar(&VideoScalar { atype_signed: false, ..cfg }, 0x8000_0000, 0xff, 0), 0);
    // Mixed signs compare by value.
    let cfg = VideoScalar { atype_signed: true, cmp: Cmp::Lt, ..new(Set) };
    assert_eq!(video_scalar(&cfg, u32::MAX, 0, 0), 1);
    let cfg = VideoScalar { btype_signed: true, dtype_signed: true, ..new(Min) };
    assert_eq!(video_scalar(&cfg, 1, u32::MAX, 0), u32::MAX);
    // Saturation with a merge clamps to the part: the manual's vabsdiff example, |200 - (-100)| into a signed
    // half.
    let cfg =
        VideoScalar { sat: true, dsel: VideoSel::B1, bsel: VideoSel::B2, btype_signed: true, ..new(Absdiff) };
    assert_eq!(video_scalar(&cfg, 200, 0x009c_0000, 0x1122_3344), 0x1122_ff44);
    // A clamped result is not clamped again after the sum.
    let cfg = VideoScalar { sat: true, secop: Some(VideoSecop::Add), ..new(VideoScalarOp::Add) };
    assert_eq!(video_scalar(&cfg, u32::MAX, 1, 2), 1);
}

/// §9.7.15.3 as a formula: the negated product or c, plus one, scaled by a floor division, clamped.
fn multiply_add(cfg: &Vmad, a: u32, b: u32, c: u32) -> u32 {
    let product = part_select(a, cfg.atype_signed, cfg.asel) * part_select(b, cfg.btype_signed, cfg.bsel);
    let negated = cfg.negate_a != cfg.negate_b;
    let signed = cfg.atype_signed || cfg.btype_signed || negated || cfg.negate_c;
    let c = part_select(c, signed, VideoSel::Word);
    let sum =
        if negated { -product } else { product } + if cfg.negate_c { -c } else { c } + i128::from(cfg.po);
    let scaled = match cfg.scale {
        VmadScale::None => sum,
        VmadScale::Shr7 => sum.div_euclid(128),
        VmadScale::Shr15 => sum.div_euclid(32768),
    };
    let clamped = match (cfg.sat, signed) {
        (false, _) => scaled,
        (true, true) => scaled.clamp(-2_147_483_648, 2_147_483_647),
        (true, false) => scaled.clamp(0, 4_294_967_295),
    };
    clamped as u32
}

#[test]
fn vmad_multiplies_and_adds() {
    let mut random = Random::new(32);
    let list = edges(32);
    for _ in 0..400_000 {
        let random = &mut random;
        let mut cfg = Vmad {
            atype_signed: flag(random),
            btype_signed: flag(random),
            sat: flag(random),
            asel: pick(random, &SELECTORS),
            bsel: pick(random, &SELECTORS),
            po: random.u32().is_multiple_of(4),
            scale: pick(random, &[VmadScale::None, VmadScale::Shr7, VmadScale::Shr15]),
            ..Vmad::default()
        };
        // The legal minuses: none with .po, else the product or c.
        if !cfg.po {
            (cfg.negate_a, cfg.negate_b, cfg.negate_c) = pick(
                random,
                &[
                    (false, false, false),
                    (true, false, false),
                    (false, true, false),
                    (true, true, false),
                    (false, false, true),
                    (true, true, true),
                ],
            );
        }
        let (a, b, c) = (word(random, &list), word(random, &list), word(random, &list));
        assert_eq!(vmad(&cfg, a, b, c), multiply_add(&cfg, a, b, c), "{cfg:?} {a:#x} {b:#x} {c:#x}");
    }
}

#[test]
fn vmad_readings() {
    // (u32 * u32) - u32 takes c as signed, by the pseudocode: 0 - (-2^31) clamps to the greatest value.
    let cfg = Vmad { negate_c: true, sat: true, ..Vmad::default() };
    assert_eq!(vmad(&cfg, 0, 0, 0x8000_0000), 0x7fff_ffff);
    // All 128 bits are clamped: the low 64 of -(2^32-1)^2 are positive.
    let cfg = Vmad { negate_a: true, sat: true, ..Vmad::default() };
    assert_eq!(vmad(&cfg, u32::MAX, u32::MAX, 0), 0x8000_0000);
    // A scaled negative result keeps its sign.
    let cfg = Vmad { atype_signed: true, sat: true, scale: VmadScale::Shr7, ..Vmad::default() };
    assert_eq!(vmad(&cfg, (-256i32).cast_unsigned(), 1, 0), (-2i32).cast_unsigned());
    // Rounding average: (a * 128 + c + 1) >> 7.
    let cfg = Vmad { po: true, scale: VmadScale::Shr7, ..Vmad::default() };
    assert_eq!(vmad(&cfg, 3, 128, 127), 4);
}

/// Element i of the 4 or 8 elements of {b, a}.
fn element(a: u32, b: u32, lanes: VideoLanes, i: u8, signed: bool) -> i128 {
    match lanes {
        VideoLanes::Two => {
            let sel = [VideoSel::H0, VideoSel::H1][usize::from(i % 2)];
            part_select(if i % 4 < 2 { a } else { b }, signed, sel)
        }
        VideoLanes::Four => {
            let sel = [VideoSel::B0, VideoSel::B1, VideoSel::B2, VideoSel::B3][usize::from(i % 4)];
            part_select(if i < 4 { a } else { b }, signed, sel)
        }
    }
}

/// The stages of §9.7.16, lane by lane.
fn simd(cfg: &VideoSimd, a: u32, b: u32, c: u32) -> u32 {
    let (count, modulus) = match cfg.lanes {
        VideoLanes::Two => (2, 65536),
        VideoLanes::Four => (4, 256),
    };
    let mut sum = i128::from(c);
    let mut merged = 0;
    for lane in 0..count {
        let va = element(a, b, cfg.lanes, cfg.asel[lane], cfg.atype_signed);
        let vb = element(a, b, cfg.lanes, cfg.bsel[lane], cfg.btype_signed);
        let mut t = match cfg.op {
            VideoSimdOp::Add => va + vb,
            VideoSimdOp::Sub => va - vb,
            // One half rounds away from zero.
            VideoSimdOp::Avrg => (va + vb).signum() * (((va + vb).abs() + 1) / 2),
            VideoSimdOp::Absdiff => (va - vb).abs(),
            VideoSimdOp::Min => va.min(vb),
            VideoSimdOp::Max => va.max(vb),
            VideoSimdOp::Set => holds(cfg.cmp, va, vb).into(),
        };
        if cfg.sat {
            t = if cfg.dtype_signed {
                t.clamp(-modulus / 2, modulus / 2 - 1)
            } else {
                t.clamp(0, modulus - 1)
            };
        }
        let place = modulus.pow(lane as u32);
        if cfg.mask & 1 << lane != 0 {
            sum += t;
            merged += t.rem_euclid(modulus) * place;
        } else {
            merged += i128::from(c) / place % modulus * place;
        }
    }
    if cfg.add { sum as u32 } else { merged as u32 }
}

#[test]
fn simd_instructions() {
    use VideoSimdOp::{Absdiff, Add, Avrg, Max, Min, Set, Sub};
    let mut random = Random::new(33);
    let list: Vec<u64> =
        edges(32).into_iter().chain([0x7f80_ff00, 0x8000_7fff, 0x807f_ff01, 0x0100_ffff]).collect();
    for i in 0..400_000 {
        let random = &mut random;
        let (lanes, elements, all) = pick(random, &[(VideoLanes::Two, 4, 3), (VideoLanes::Four, 8, 15)]);
        let mut select = |default: [u8; 4]| {
            if flag(random) { default } else { [0; 4].map(|_| (random.u32() % elements) as u8) }
        };
        let new = VideoSimd::new([Add, Sub, Avrg, Absdiff, Min, Max, Set][i % 7], lanes);
        let (asel, bsel) = (select(new.asel), select(new.bsel));
        let add = flag(random);
        let cfg = VideoSimd {
            dtype_signed: flag(random),
            atype_signed: flag(random),
            btype_signed: flag(random),
            sat: !add && flag(random),
            add,
            mask: (random.u32() % all) as u8 + 1,
            asel,
            bsel,
            cmp: pick(random, &RELATIONS),
            ..new
        };
        let (a, b, c) = (word(random, &list), word(random, &list), word(random, &list));
        assert_eq!(video_simd(&cfg, a, b, c), simd(&cfg, a, b, c), "{cfg:?} {a:#x} {b:#x} {c:#x}");
    }
}

#[test]
fn simd_readings() {
    use VideoSimdOp::{Absdiff, Add, Avrg, Set};
    // Sums use the exact lane: |127 - (-128)| is 255 for signed lanes too.
    let signed = VideoSimd {
        dtype_signed: true,
        atype_signed: true,
        btype_signed: true,
        ..VideoSimd::new(Absdiff, VideoLanes::Four)
    };
    assert_eq!(video_simd(&VideoSimd { add: true, ..signed }, 0x7f7f_7f7f, 0x8080_8080, 10), 4 * 255 + 10);
    // Unmasked lanes come from the same lane of c.
    let cfg = VideoSimd { mask: 0b0101, ..VideoSimd::new(Add, VideoLanes::Four) };
    assert_eq!(video_simd(&cfg, 0x0102_0304, 0x1010_1010, 0xaabb_ccdd), 0xaa12_cc14);
    let cfg = VideoSimd { mask: 0b01, cmp: Cmp::Lt, ..VideoSimd::new(Set, VideoLanes::Two) };
    assert_eq!(video_simd(&cfg, 1, 0x5555_0002, 0xaaaa_bbbb), 0xaaaa_0001);
    // The mean of -1 and 0 is -1, of 1 and 0 is 1, of -3 and 0 is -2.
    let cfg = VideoSimd { atype_signed: true, btype_signed: true, ..VideoSimd::new(Avrg, VideoLanes::Four) };
    assert_eq!(video_simd(&cfg, 0x0001_fdff, 0, 0), 0x0001_feff);
    // .h21 takes lane 0 from half 1 of a, lane 1 from half 0 of b.
    let cfg = VideoSimd {
        asel: [1, 2, 0, 0],
        bsel: [0, 0, 0, 0],
        ..VideoSimd::new(VideoSimdOp::Max, VideoLanes::Two)
    };
    assert_eq!(video_simd(&cfg, 0x1234_0001, 0x0009_0008, 0), 0x0008_1234);
}

#[test]
fn named_functions_equal_the_general_one() {
    use VideoLanes::{Four, Two};
    use VideoSimdOp::{Absdiff, Add, Avrg, Max, Min, Sub};
    type Two2 = fn(u32, u32) -> u32;
    type Three = fn(u32, u32, u32) -> u32;
    let merges: [(Two2, VideoSimdOp, VideoLanes, bool, bool); 26] = [
        (vadd4_u32, Add, Four, false, false),
        (vsub4_u32, Sub, Four, false, false),
        (vadd4_sat_u32, Add, Four, false, true),
        (vsub4_sat_u32, Sub, Four, false, true),
        (vadd4_sat_s32, Add, Four, true, true),
        (vsub4_sat_s32, Sub, Four, true, true),
        (vavrg4_u32, Avrg, Four, false, false),
        (vabsdiff4_u32, Absdiff, Four, false, false),
        (vabsdiff4_s32, Absdiff, Four, true, false),
        (vmin4_u32, Min, Four, false, false),
        (vmax4_u32, Max, Four, false, false),
        (vmin4_s32, Min, Four, true, false),
        (vmax4_s32, Max, Four, true, false),
        (vadd2_u32, Add, Two, false, false),
        (vsub2_u32, Sub, Two, false, false),
        (vadd2_sat_u32, Add, Two, false, true),
        (vsub2_sat_u32, Sub, Two, false, true),
        (vadd2_sat_s32, Add, Two, true, true),
        (vsub2_sat_s32, Sub, Two, true, true),
        (vavrg2_u32, Avrg, Two, false, false),
        (vabsdiff2_u32, Absdiff, Two, false, false),
        (vabsdiff2_s32, Absdiff, Two, true, false),
        (vmin2_u32, Min, Two, false, false),
        (vmax2_u32, Max, Two, false, false),
        (vmin2_s32, Min, Two, true, false),
        (vmax2_s32, Max, Two, true, false),
    ];
    let sums: [(Three, VideoLanes, bool); 4] = [
        (vabsdiff4_add_u32, Four, false),
        (vabsdiff4_add_s32, Four, true),
        (vabsdiff2_add_u32, Two, false),
        (vabsdiff2_add_s32, Two, true),
    ];
    let mut random = Random::new(34);
    let list: Vec<u64> = edges(32).into_iter().chain([0x7f80_ff00, 0x8000_7fff, 0x807f_ff01]).collect();
    for _ in 0..20_000 {
        let random = &mut random;
        let (a, b, c) = (word(random, &list), word(random, &list), word(random, &list));
        let typed = |op, lanes, signed| VideoSimd {
            dtype_signed: signed,
            atype_signed: signed,
            btype_signed: signed,
            ..VideoSimd::new(op, lanes)
        };
        for (f, op, lanes, signed, sat) in merges {
            let cfg = VideoSimd { sat, ..typed(op, lanes, signed) };
            assert_eq!(f(a, b), video_simd(&cfg, a, b, c), "{cfg:?} {a:#x} {b:#x}");
        }
        for (f, lanes, signed) in sums {
            let cfg = VideoSimd { add: true, ..typed(Absdiff, lanes, signed) };
            assert_eq!(f(a, b, c), video_simd(&cfg, a, b, c), "{cfg:?} {a:#x} {b:#x}");
        }
        // Wrapping sums and differences do not depend on the types.
        assert_eq!(vadd4_u32(a, b), video_simd(&typed(Add, Four, true), a, b, c));
        assert_eq!(vsub2_u32(a, b), video_simd(&typed(Sub, Two, true), a, b, c));
    }
}
