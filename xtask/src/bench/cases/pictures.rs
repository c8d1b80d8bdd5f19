//! Image processing.

use crate::bench::case::{Array, Case, Check, Noise, Size, Step, Value};

pub(super) fn mandelbrot(size: Size) -> Case {
    let (width, height) = size.pick((1024usize, 768usize), (128, 96));
    let step = 3.0 / width as f32;
    Case {
        name: "mandelbrot",
        what: format!("{width} x {height}, 255 turns"),
        target: Some(1.0),
        ptx: "kernels/mandelbrot",
        native: "mandelbrot",
        arrays: vec![Array::output(width * height, Check::Bytes)],
        numbers: vec![width as f64, height as f64, -2.0, -1.125, f64::from(step), 255.0],
        steps: vec![Step {
            kernel: "mandelbrot",
            grid: [width as u32 / 32, height as u32 / 8, 1],
            block: [32, 8, 1],
            args: vec![
                Value::Array(0),
                Value::S32(width as i32),
                Value::S32(height as i32),
                Value::F32(-2.0),
                Value::F32(-1.125),
                Value::F32(step),
                Value::S32(255),
            ],
        }],
    }
}

pub(super) fn sad_stereo(size: Size) -> Case {
    let (width, height) = size.pick((640usize, 480usize), (64, 16));
    let pitch = width + 36;
    let words = pitch * (height + 4);
    Case {
        name: "sad_stereo",
        what: format!("{width} x {height}, +-16, window 5 x 5"),
        target: Some(0.4),
        ptx: "kernels/sad",
        native: "sad_stereo",
        arrays: vec![
            Array::input(Noise::new(13).words(words)),
            Array::input(Noise::new(14).words(words)),
            Array::output(width * height, Check::Bytes),
        ],
        numbers: vec![width as f64, height as f64, pitch as f64],
        steps: vec![Step {
            kernel: "sad_stereo",
            grid: [width as u32 / 32, height as u32 / 8, 1],
            block: [32, 8, 1],
            args: vec![
                Value::Array(0),
                Value::Array(1),
                Value::Array(2),
                Value::S32(width as i32),
                Value::S32(pitch as i32),
            ],
        }],
    }
}

pub(super) fn sad_blocks(size: Size) -> Case {
    let (width, height) = size.pick((1280usize, 720usize), (64, 32));
    let (across, down, words) = (width / 16, height / 16, width / 4);
    Case {
        name: "sad_blocks",
        what: format!("{width} x {height}, blocks of 16 x 16"),
        target: None,
        ptx: "kernels/sad",
        native: "sad_blocks",
        arrays: vec![
            Array::input(Noise::new(15).words(words * height)),
            Array::input(Noise::new(16).words((words + 8) * (height + 32))),
            Array::output(4 * across * down, Check::Bytes),
        ],
        numbers: vec![words as f64, across as f64, down as f64],
        steps: vec![Step {
            kernel: "sad_blocks",
            grid: [across as u32, down as u32, 1],
            block: [32, 8, 1],
            args: vec![Value::Array(0), Value::Array(1), Value::Array(2), Value::S32(words as i32)],
        }],
    }
}

pub(super) fn convolution(size: Size) -> Case {
    let (width, height) = size.pick((2048usize, 1024usize), (512, 256));
    Case {
        name: "convolution",
        what: format!("{width} x {height}, 5 x 5"),
        target: None,
        ptx: "kernels/convolution",
        native: "convolution",
        arrays: vec![
            Array::input(Noise::new(25).floats(width * height, 0.0, 1.0)),
            Array::output(
                4 * width * height,
                Check::Floats {
                    abs: 0.0,
                    rel: 4e-6,
                    why: "25 positive terms, contracted or not: 50 · 2^-24 at most",
                },
            ),
        ],
        numbers: vec![width as f64, height as f64],
        steps: vec![Step {
            kernel: "convolution",
            grid: [width as u32 / 32, height as u32 / 16, 1],
            block: [32, 8, 1],
            args: vec![Value::Array(0), Value::Array(1), Value::S32(width as i32), Value::S32(height as i32)],
        }],
    }
}
