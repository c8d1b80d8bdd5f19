//! The texture functions against independent definitions: steps along a line, integer comparisons,
//! differences.

use super::*;

/// The texel at which a walk from 0 to `i` ends, one step at a time.
fn walk(mode: AddrMode, i: i64, size: u32) -> Tap {
    let last = i64::from(size) - 1;
    let (mut at, mut forward) = (0i64, true);
    for _ in 0..i.unsigned_abs() {
        match mode {
            AddrMode::Wrap => {
                at = if i > 0 {
                    if at == last { 0 } else { at + 1 }
                } else if at == 0 {
                    last
                } else {
                    at - 1
                }
            }
            AddrMode::Mirror => {
                // Forwards the texels are 0 1 2 2 1 0 0 1 ..., backwards 0 0 1 2 2 1 ...
                let turned = if i > 0 {
                    forward && at == last || !forward && at == 0
                } else {
                    forward && at == 0 || !forward && at == last
                };
                match (turned, forward == (i > 0)) {
                    (true, _) => forward = !forward,
                    (false, true) => at += 1,
                    (false, false) => at -= 1,
                }
            }
            AddrMode::ClampOgl | AddrMode::ClampToEdge | AddrMode::ClampToBorder => {}
        }
    }
    match mode {
        AddrMode::Wrap | AddrMode::Mirror => u32::try_from(at).ok(),
        AddrMode::ClampToEdge if i < 0 => Some(0),
        AddrMode::ClampToEdge if i > last => Some(size - 1),
        _ if i < 0 || i > last => None,
        _ => u32::try_from(i).ok(),
    }
}

#[test]
fn nearest_texels_by_walking() {
    for size in 1..5u32 {
        for mode in AddrMode::ALL {
            for i in -11..12i64 {
                // Without a filter `clamp_ogl` blends no border in.
                let plain = if mode == AddrMode::ClampOgl { AddrMode::ClampToEdge } else { mode };
                for quarter in 0..4 {
                    let c = (i as f64 + f64::from(quarter) / 4.0) / f64::from(size);
                    let got = float_taps(mode, FilterMode::Nearest, size, true, c, 0);
                    // For size 3 the coordinate is rounded, so texel edges are omitted.
                    if quarter > 0 || size != 3 {
                        assert_eq!(got.texels[0], walk(plain, i, size), "{mode:?} {size} {i} {quarter}");
                    }
                    assert_eq!(got.weight, 0);
                }
                let once = plain.effective(false);
                assert_eq!(texel_tap(mode, size, i as i32, 0), walk(once, i, size), "{mode:?} {size} {i}");
                assert_eq!(
                    texel_tap(mode, size, 0, i as i32),
                    walk(once, i, size),
                    "offset {mode:?} {size} {i}"
                );
            }
        }
    }
}

#[test]
fn linear_weights_are_distances_in_256ths() {
    for step in -2000..2000i32 {
        // A position p = step / 1024 + 1/2 is between texel centers floor(step / 1024) and the next.
        let p = f64::from(step) / 1024.0 + 0.5;
        let taps = float_taps(AddrMode::ClampToBorder, FilterMode::Linear, 4, false, p, 0);
        let first = step.div_euclid(1024);
        // Ties up.
        let weight = (step.rem_euclid(1024) + 2) / 4;
        assert_eq!(taps.weight, weight as u32, "{step}");
        let texel = |i: i32| u32::try_from(i).ok().filter(|i| *i < 4);
        assert_eq!(taps.texels, [texel(first), texel(first + 1)], "{step}");
        assert_eq!(gather_taps(AddrMode::ClampToBorder, 4, false, p, 0), taps.texels);
        let moved = float_taps(AddrMode::ClampToBorder, FilterMode::Linear, 4, false, p - 3.0, 3);
        assert_eq!(moved, taps, "an offset of 3 texels is 3 texels");
    }
    // `clamp_ogl` clamps the coordinate to the texture, so half of the edge is border.
    for p in [-9.0, -0.25, 0.0] {
        let taps = float_taps(AddrMode::ClampOgl, FilterMode::Linear, 4, false, p, 0);
        assert_eq!((taps.texels, taps.weight), ([None, Some(0)], 128), "{p}");
    }
    for p in [4.0, 4.5, 100.0] {
        let taps = float_taps(AddrMode::ClampOgl, FilterMode::Linear, 4, false, p, 0);
        assert_eq!((taps.texels, taps.weight), ([Some(3), None], 128), "{p}");
    }
}

#[test]
fn coordinates_that_are_no_numbers_stay_inside() {
    for mode in AddrMode::ALL {
        for filter in FilterMode::ALL {
            for normalized in [false, true] {
                for c in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, -1e300, f64::MIN_POSITIVE] {
                    for size in [1, 7, u32::MAX] {
                        let taps = float_taps(mode, filter, size, normalized, c, i32::MIN);
                        assert!(taps.weight <= ONE);
                        assert!(taps.texels.iter().flatten().all(|i| *i < size), "{mode:?} {c} {size}");
                    }
                }
            }
        }
        for i in [i32::MIN, i32::MAX] {
            assert!(texel_tap(mode, 5, i, i).is_none_or(|i| i < 5));
        }
    }
}

#[test]
fn levels_halve_until_one() {
    for (size, sizes) in
        [(1u32, &[1u32, 1][..]), (5, &[5, 2, 1, 1]), (256, &[256, 128, 64, 32, 16, 8, 4, 2, 1, 1])]
    {
        for (level, want) in sizes.iter().enumerate() {
            assert_eq!(level_size(size, level as u32), *want);
        }
        assert_eq!(complete_levels([size, 1, 1]) as usize, sizes.len() - 1);
    }
    assert_eq!(level_size(7, 32), 1);
    assert_eq!(level_size(7, u32::MAX), 1);
    assert_eq!(complete_levels([3, 9, 4]), 4);
}

#[test]
fn a_level_of_detail_selects_levels() {
    for (lod, nearest, linear, weight) in [
        (-1.0, 0, [0, 1], 0),
        (0.0, 0, [0, 1], 0),
        (0.25, 0, [0, 1], 64),
        // A half is rounded down.
        (0.5, 0, [0, 1], 128),
        (0.501, 1, [0, 1], 128),
        (1.75, 2, [1, 2], 192),
        (3.0, 3, [3, 3], 0),
        (9.0, 3, [3, 3], 0),
        (f64::NAN, 0, [0, 1], 0),
        (f64::INFINITY, 3, [3, 3], 0),
        (f64::NEG_INFINITY, 0, [0, 1], 0),
    ] {
        assert_eq!(level_of(FilterMode::Nearest, lod, 4), ([nearest, nearest], 0), "{lod}");
        assert_eq!(level_of(FilterMode::Linear, lod, 4), (linear, weight), "{lod}");
    }
    assert_eq!(level_of(FilterMode::Linear, 2.0, 1), ([0, 0], 0));
    assert_eq!(level_of(FilterMode::Nearest, 2.0, 0), ([0, 0], 0));
}

#[test]
fn gradients_measure_in_texels() {
    // Exact if the longer gradient's length is a power of two; else within 2^-16 of the logarithm, and below
    // it.
    assert_eq!(lod_of_gradients([8.0, 0.0, 0.0], [0.0, 1.0, 0.0]), 3.0);
    assert_eq!(lod_of_gradients([0.0; 3], [0.0, 0.0, 0.25]), -2.0);
    assert_eq!(lod_of_gradients([0.0; 3], [0.0; 3]), f64::NEG_INFINITY);
    assert_eq!(lod_of_gradients([f64::INFINITY, 0.0, 0.0], [0.0; 3]), f64::INFINITY);
    assert_eq!(lod_of_gradients([f64::NAN, 0.0, 0.0], [2.0, 0.0, 0.0]), 1.0);
    // The square is subnormal.
    assert_eq!(lod_of_gradients([2.0f64.powi(-532), 0.0, 0.0], [0.0; 3]), -532.0);
    for n in 1..2000 {
        let g = [f64::from(n) / 37.0, f64::from(n % 7), 0.0];
        let exact = (g[0] * g[0] + g[1] * g[1]).log2() / 2.0;
        let got = lod_of_gradients(g, [0.0; 3]);
        assert!(got <= exact + 1e-12 && got >= exact - 1.0 / 65536.0, "{g:?}: {got} {exact}");
    }
}

#[test]
fn directions_hit_the_face_they_point_at() {
    // The center of each face, and points to the right of it and below it, from OpenGL's picture of the
    // unfolded cube.
    for (face, centre, right, below) in [
        (0, [1.0f32, 0.0, 0.0], [0.0f32, 0.0, -1.0], [0.0f32, -1.0, 0.0]),
        (1, [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]),
        (2, [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]),
        (3, [0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]),
        (4, [0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, -1.0, 0.0]),
        (5, [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]),
    ] {
        for scale in [1.0f32, 0.001, 3e8] {
            let at = |a: f32, b: f32| [0, 1, 2].map(|i| (centre[i] + a * right[i] + b * below[i]) * scale);
            assert_eq!(cube_face(at(0.0, 0.0)), CubePoint { face, s: 0.5, t: 0.5 });
            assert_eq!(cube_face(at(0.5, 0.0)), CubePoint { face, s: 0.75, t: 0.5 });
            assert_eq!(cube_face(at(0.0, -0.5)), CubePoint { face, s: 0.5, t: 0.25 });
        }
    }
    // For equal magnitudes x precedes y and y precedes z.
    assert_eq!(cube_face([1.0, 1.0, 1.0]).face, 0);
    assert_eq!(cube_face([0.5, -1.0, 1.0]).face, 3);
}

#[test]
fn the_gradient_on_a_face_is_the_difference_of_its_points() {
    for d in [[1.0f32, 0.25, -0.5], [-0.3, 2.0, 0.7], [0.1, 0.2, -0.9], [-4.0, 1.0, 2.0]] {
        for change in [[0.0f32, 1.0, 0.0], [1.0, 0.0, 0.0], [0.5, -0.25, 0.125]] {
            let step = 1.0 / 4096.0;
            let moved = |sign: f32| [0, 1, 2].map(|i| d[i] + sign * step * change[i]);
            let (a, b) = (cube_face(moved(-1.0)), cube_face(moved(1.0)));
            let want = [b.s - a.s, b.t - a.t].map(|x| x / (2.0 * f64::from(step)));
            let got = cube_gradient(d, change);
            for i in 0..2 {
                assert!((got[i] - want[i]).abs() < 1e-3, "{d:?} {change:?}: {got:?} {want:?}");
            }
        }
    }
}

fn format(data_type: ChannelType, order: ChannelOrder) -> Format {
    Format::new(data_type, order).expect("fits")
}

/// Whether `x` is the float nearest to `numerator / denominator`: its neighbors are not nearer. Products are
/// exact in f64.
fn is_nearest(x: f32, numerator: i32, denominator: i32) -> bool {
    let away = |x: f32| (f64::from(x) * f64::from(denominator) - f64::from(numerator)).abs();
    away(x) <= away(x.next_up()) && away(x) <= away(x.next_down())
}

#[test]
fn normalised_components_are_the_nearest_fractions_and_come_back() {
    let r = ChannelOrder::R;
    let one = |ty: ChannelType, raw: u32| f32::from_bits(format(ty, r).decode(u128::from(raw))[0]);
    for raw in 0..=255u32 {
        assert!(is_nearest(one(ChannelType::UnormInt8, raw), raw as i32, 255));
        let signed = i32::from(raw as u8 as i8);
        assert!(is_nearest(one(ChannelType::SnormInt8, raw), signed.max(-127), 127));
    }
    for raw in 0..=0xffffu32 {
        assert!(is_nearest(one(ChannelType::UnormInt16, raw), raw as i32, 65535));
        let signed = i32::from(raw as u16 as i16);
        assert!(is_nearest(one(ChannelType::SnormInt16, raw), signed.max(-32767), 32767));
    }
    for (ty, most) in [
        (ChannelType::UnormInt8, 255u32),
        (ChannelType::SnormInt8, 255),
        (ChannelType::UnormInt16, 0xffff),
        (ChannelType::SnormInt16, 0xffff),
    ] {
        let format = format(ty, r);
        for raw in 0..=most {
            let back = format.encode(format.decode(u128::from(raw))) as u32;
            // The least signed number also means -1, and is stored as the number above it.
            let least = matches!(ty, ChannelType::SnormInt8 | ChannelType::SnormInt16) && raw == most / 2 + 1;
            assert_eq!(back, raw + u32::from(least), "{ty:?}");
        }
    }
}

#[test]
fn channels_lie_in_the_order_that_is_named() {
    // Stored bytes 1 2 3 4 from the lowest, and the resulting R G B A. Missing components are 0, alpha is 1.
    for (order, want) in [
        (ChannelOrder::R, [1, 0, 0, 1]),
        (ChannelOrder::A, [0, 0, 0, 1]),
        (ChannelOrder::Rg, [1, 2, 0, 1]),
        (ChannelOrder::Ra, [1, 0, 0, 2]),
        (ChannelOrder::Rgb, [1, 2, 3, 1]),
        (ChannelOrder::Rgba, [1, 2, 3, 4]),
        (ChannelOrder::Bgra, [3, 2, 1, 4]),
        (ChannelOrder::Argb, [2, 3, 4, 1]),
        (ChannelOrder::Intensity, [1, 1, 1, 1]),
        (ChannelOrder::Luminance, [1, 1, 1, 1]),
    ] {
        let format = format(ChannelType::UnsignedInt8, order);
        assert_eq!(format.decode(0x0403_0201), want, "{order:?}");
        let kept = (1u128 << (8 * format.bytes())) - 1;
        assert_eq!(format.encode(want), 0x0403_0201 & kept, "{order:?}");
    }
    for (index, ty) in ChannelType::ALL.into_iter().enumerate() {
        assert_eq!(ty.number(), 0x10D0 + index as u32);
    }
    for (index, order) in ChannelOrder::ALL.into_iter().enumerate() {
        assert_eq!(order.number(), 0x10B0 + index as u32);
    }
    assert_eq!(Format::new(ChannelType::UnormShort565, ChannelOrder::Rgba), None);
}

#[test]
fn integers_saturate_and_floats_that_are_no_numbers_are_zero() {
    let r = ChannelOrder::R;
    let store = |ty, value: u32| format(ty, r).encode([value, 0, 0, 0]) as u32;
    assert_eq!(store(ChannelType::SignedInt8, 200), 127);
    assert_eq!(store(ChannelType::SignedInt8, -200i32 as u32), 0x80);
    assert_eq!(store(ChannelType::SignedInt16, 0x7fff_ffff), 0x7fff);
    assert_eq!(store(ChannelType::UnsignedInt8, 256), 255);
    assert_eq!(store(ChannelType::UnsignedInt16, u32::MAX), 0xffff);
    for (value, unorm, snorm) in [
        (f32::NAN, 0, 0),
        (-0.5, 0, 0xc0),
        (2.0, 255, 127),
        (-7.0, 0, 0x81),
        (f32::INFINITY, 255, 127),
        // 127.5 and 63.5: ties to even.
        (0.5, 128, 64),
    ] {
        assert_eq!(store(ChannelType::UnormInt8, value.to_bits()), unorm, "{value}");
        assert_eq!(store(ChannelType::SnormInt8, value.to_bits()), snorm, "{value}");
    }
    assert_eq!(store(ChannelType::HalfFloat, 1.0f32.to_bits()), 0x3c00);
    assert_eq!(
        format(ChannelType::UnormShort565, ChannelOrder::Rgb)
            .encode([1.0f32, 0.0, 1.0, 0.0].map(f32::to_bits)),
        0xf81f
    );
    assert_eq!(
        format(ChannelType::UnormInt101010, ChannelOrder::Rgb)
            .encode([0.0f32, 1.0, 0.0, 0.0].map(f32::to_bits)),
        0x3ff << 10
    );
}

#[test]
fn depths_compare_as_the_operators_say() {
    let values = [-1.0f32, -0.0, 0.0, 0.5, 1.0, f32::INFINITY, f32::NAN];
    for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b))) {
        for (compare, holds) in [
            (Compare::Never, false),
            (Compare::Less, a < b),
            (Compare::Equal, a == b),
            (Compare::Lequal, a <= b),
            (Compare::Greater, a > b),
            (Compare::Notequal, a != b),
            (Compare::Gequal, a >= b),
            (Compare::Always, true),
        ] {
            assert_eq!(depth_compare(compare, a, b), if holds { 1.0 } else { 0.0 }, "{a} {compare:?} {b}");
        }
    }
}

#[test]
fn blends_of_equal_texels_are_that_texel() {
    for fraction in 0..=ONE {
        let taps = [
            Taps { texels: [Some(0), Some(1)], weight: fraction },
            Taps { texels: [Some(0), Some(1)], weight: ONE - fraction },
        ];
        let corners = [[0, 0], [1, 0], [0, 1], [1, 1]].map(|which| weight(&taps, |d| which[d]));
        assert_eq!(corners.iter().sum::<f64>(), 1.0);
        let texel = [0.1f32, -7.25, 1e-30, 3e30];
        assert_eq!(blend(&corners.map(|w| (texel, w))), texel);
    }
    // A texel without weight is ignored.
    assert_eq!(blend(&[([f32::NAN; 4], 0.0), ([2.0; 4], 1.0)]), [2.0; 4]);
}

#[test]
fn surface_places_by_trying_all() {
    for extent in 0..20u32 {
        for size in [1u32, 2, 4, 8, 16] {
            let fits: Vec<u32> = (0..extent).filter(|at| at + size <= extent).collect();
            for c in -20..40i64 {
                let inside = fits.iter().find(|at| i64::from(**at) == c);
                let [trap, clamp, zero] = [SurfaceClamp::Trap, SurfaceClamp::Clamp, SurfaceClamp::Zero]
                    .map(|mode| surface_place(mode, c, size, extent));
                if let Some(at) = inside {
                    assert_eq!([trap, clamp, zero], [SurfacePlace::At(*at); 3]);
                    continue;
                }
                assert_eq!((trap, zero), (SurfacePlace::Trap, SurfacePlace::Nothing));
                // The nearest aligned place that fits.
                let nearest =
                    fits.iter().filter(|at| *at % size == 0).min_by_key(|at| (i64::from(**at) - c).abs());
                assert_eq!(
                    clamp,
                    nearest.map_or(SurfacePlace::Trap, |at| SurfacePlace::At(*at)),
                    "{c} {size} {extent}"
                );
            }
        }
    }
}
