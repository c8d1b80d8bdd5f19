//! Packed video instructions compared with the general function for their configuration.

use super::machine::{Machine, Values, bind_alone};
use super::values::{RELATIONS, ROUNDS, named, read};
use ptx::ir::{Dst, Src};
use ptx_exec::lanes::LANES;
use ptx_sem::*;

/// Packed forms with defaults are separate steps: each is compared with the general function for its
/// configuration.
#[test]
fn packed_video_instructions() {
    use VideoSimdOp::{Absdiff, Add, Avrg, Max, Min, Set, Sub};
    let ops = [("add", Add), ("sub", Sub), ("avrg", Avrg), ("absdiff", Absdiff), ("min", Min), ("max", Max)];
    for (name, op) in ops {
        for (digit, lanes) in [(2, VideoLanes::Two), (4, VideoLanes::Four)] {
            for types in 0..8u32 {
                let is_signed = |bit: u32| types >> bit & 1 != 0;
                let ty = |bit: u32| if is_signed(bit) { "s32" } else { "u32" };
                for (suffix, sat, add) in [("", false, false), (".sat", true, false), (".add", false, true)] {
                    let text = format!("v{name}{digit}.{}.{}.{}{suffix}", ty(0), ty(1), ty(2));
                    let cfg = VideoSimd {
                        dtype_signed: is_signed(0),
                        atype_signed: is_signed(1),
                        btype_signed: is_signed(2),
                        sat,
                        add,
                        ..VideoSimd::new(op, lanes)
                    };
                    video(&text, |a, b, c| video_simd(&cfg, a, b, c));
                }
            }
        }
    }
    for (word, cmp) in &RELATIONS[..6] {
        let cfg = VideoSimd { cmp: *cmp, atype_signed: true, ..VideoSimd::new(Set, VideoLanes::Four) };
        video(&format!("vset4.s32.u32.{word}"), |a, b, c| video_simd(&cfg, a, b, c));
    }
}

/// A packed video form with the selectors that it has by default, all lanes written.
fn video(text: &str, f: impl Fn(u32, u32, u32) -> u32) {
    let mut inst = named(text, 3);
    let halves = text.split('.').next().is_some_and(|mnemonic| mnemonic.ends_with('2'));
    let mut registers = Vec::new();
    for (i, src) in inst.srcs.iter_mut().enumerate() {
        if let Src::Video(video) = src {
            let first = if i == 0 {
                0
            } else if halves {
                2
            } else {
                4
            };
            video.elements = (first..first + if halves { 2 } else { 4 }).collect();
            registers.push(video.value.clone());
        } else {
            registers.push(src.clone());
        }
    }
    let Dst::Video { reg: d, bytes: 0b1111 } = inst.dsts[0] else { panic!("`{text}` writes all bytes") };
    let step = bind_alone(&inst);
    let (mut machine, mut values) = (Machine::new(), Values::new());
    for _ in 0..ROUNDS {
        machine.fill(&mut values);
        let want: Vec<u32> = (0..LANES)
            .map(|lane| {
                let [a, b, c] = [0, 1, 2].map(|i: usize| read::<u32>(&machine, &registers[i], lane));
                f(a, b, c)
            })
            .collect();
        machine.run(&step, u32::MAX);
        assert_eq!(machine.regs.r32[d.index as usize].0[..], want, "{text}");
    }
}
