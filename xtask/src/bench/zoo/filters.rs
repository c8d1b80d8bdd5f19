//! Pictures: convolutions of 3x3 to 17x17 with every kind of edge, blurs, colours, scaling, rotation.
//!
//! Invariant: as in [`super`].

use super::Kernel;
use super::setup::{Setup, approximate, sums, tiles};
use crate::bench::case::Check;

/// Declares the size of a picture as arguments.
fn size(s: &mut Setup) -> [usize; 2] {
    let size = [s.pick(1920, 210), s.pick(1080, 77)];
    s.what(format!("{} x {}", size[0], size[1]));
    size
}

fn launch(s: &mut Setup, [w, h]: [usize; 2]) {
    s.launch(tiles([w, h, 1], [32, 8, 1]), [32, 8, 1]);
}

/// A window over floats: picture, result, size, weights.
fn window(s: &mut Setup, side: usize) -> [usize; 2] {
    let [w, h] = size(s);
    s.floats(w * h, 0.0, 1.0);
    let depth = (side * side + 1) as u32;
    s.output(4 * w * h, sums(depth, 2.0));
    s.numbers([w, h]);
    s.floats(side * side, 0.0, 2.0 / (side * side) as f32);
    [w, h]
}

/// From bytes of one picture to bytes of another of the same size.
fn bytes(s: &mut Setup, from: usize, to: usize, check: Check) -> [usize; 2] {
    let [w, h] = size(s);
    s.bytes(from * w * h);
    s.output(to * w * h, check);
    s.numbers([w, h]);
    [w, h]
}

pub(super) const ROWS: &[Kernel] = &[
    Kernel {
        name: "conv3_clamp",
        make: |s| {
            let size = window(s, 3);
            launch(s, size);
        },
    },
    Kernel {
        name: "conv5_mirror",
        make: |s| {
            let size = window(s, 5);
            launch(s, size);
        },
    },
    Kernel {
        name: "conv7_guard",
        make: |s| {
            let size = window(s, 7);
            launch(s, size);
        },
    },
    Kernel {
        name: "conv9_shared",
        make: |s| {
            let [w, h] = window(s, 9);
            s.launch(tiles([w, h, 1], [16, 16, 1]), [16, 16, 1]);
        },
    },
    Kernel {
        name: "conv17_clamp",
        make: |s| {
            let size = window(s, 17);
            s.int(8);
            launch(s, size);
        },
    },
    Kernel {
        name: "blur_bytes",
        make: |s| {
            let size = bytes(s, 1, 1, Check::Bytes);
            launch(s, size);
        },
    },
    Kernel {
        name: "grey",
        make: |s| {
            let size = bytes(s, 3, 1, Check::Bytes);
            launch(s, size);
        },
    },
    Kernel {
        name: "grey_blur",
        make: |s| {
            let why = "a mean that is a whole number but for rounding is truncated to either";
            let size = bytes(s, 3, 1, Check::Levels { by: 1, why });
            launch(s, size);
        },
    },
    Kernel {
        name: "blur_pixels",
        make: |s| {
            let size = bytes(s, 4, 4, Check::Bytes);
            launch(s, size);
        },
    },
    Kernel {
        name: "hue",
        make: |s| {
            let size = bytes(s, 4, 4, Check::Bytes);
            launch(s, size);
        },
    },
    Kernel {
        name: "sobel",
        make: |s| {
            let why = "the root of a square may be rounded to either side of a whole number";
            let size = bytes(s, 1, 1, Check::Levels { by: 1, why });
            launch(s, size);
        },
    },
    Kernel {
        name: "median",
        make: |s| {
            let size = bytes(s, 1, 1, Check::Bytes);
            launch(s, size);
        },
    },
    Kernel {
        name: "resize",
        make: |s| {
            let [w, h] = size(s);
            let (from_w, from_h) = (w * 2 / 3, h * 3 / 4);
            s.bytes(from_w * from_h);
            s.output(w * h, Check::Bytes);
            s.numbers([w, h, from_w, from_h, 256 * from_w / w, 256 * from_h / h]);
            launch(s, [w, h]);
        },
    },
    Kernel {
        name: "yuv",
        make: |s| {
            let [w, h] = size(s);
            s.bytes(w * h);
            s.bytes(w * h.div_ceil(2) / 2);
            s.bytes(w * h.div_ceil(2) / 2);
            s.output(4 * w * h, Check::Bytes);
            s.numbers([w, h]);
            launch(s, [w, h]);
        },
    },
    Kernel {
        name: "bilateral",
        make: |s| {
            let [w, h] = size(s);
            s.floats(w * h, 0.0, 1.0);
            s.output(4 * w * h, approximate(0.0, 1e-4));
            s.numbers([w, h]);
            s.float(8.0);
            launch(s, [w, h]);
        },
    },
    Kernel {
        name: "rotate",
        make: |s| {
            let [w, h] = size(s);
            s.floats(w * h, 0.0, 1.0);
            // A fraction of a coordinate up to 2000 is exact to 2^-12 on both sides.
            s.output(4 * w * h, sums(4, 2048.0));
            s.numbers([w, h]);
            s.factors([0.955_336_5, 0.295_520_2]);
            launch(s, [w, h]);
        },
    },
];
