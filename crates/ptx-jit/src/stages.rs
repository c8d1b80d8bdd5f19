//! A function as text after any pass: what `--emit wir` prints and what file tests compare.
//!
//! Invariant: the text after a pass depends on the function, the launch and the passes alone.

use crate::analysis::{range, shape};
use crate::effects::NativeEffects;
use crate::opt::{dce, gvn, phi_elim};
use crate::pipeline::{Pass, Passes, run};
use crate::wir::parse::parse;
use crate::wir::print::print;
use crate::wir::verify::{Form, verify};
use crate::wir::{Func, Kind, LaunchShape};
use ptx::ir::{Function, Program, RegClass};
use std::fmt::Write;

/// The text of a PTX function after a pass; `None` if it would be too large. `off`: a pass that is left out.
///
/// After [`Pass::Ranges`], the ranges follow the function.
pub fn after(
    (program, function): (&Program, &Function),
    launch: LaunchShape,
    last: Pass,
    off: Option<Pass>,
) -> Option<String> {
    let stop = match last {
        // What they find shows in the graph.
        Pass::Divergence | Pass::IfConvert => Pass::Build,
        Pass::Ranges => Pass::Dce,
        other => other,
    };
    if off == Some(Pass::Build) {
        return Some(String::new());
    }
    let func = run(function, launch, &NativeEffects, Passes::without(off, stop))?;
    let mut text = print(&func, Some((program, function)));
    if last == Pass::Ranges && off != Some(Pass::Ranges) {
        text += &ranges(&func, function, launch);
    }
    Some(text)
}

/// The text of WIR after one pass on it, or without the pass if it is `off`.
///
/// # Errors
/// The text is not WIR of the function, or the pass does not run on WIR.
pub fn on_text(
    text: &str,
    (program, function): (&Program, &Function),
    launch: LaunchShape,
    pass: Pass,
    off: bool,
) -> Result<String, String> {
    let mut func = parse(text).map_err(|error| error.to_string())?;
    if let [first, ..] = verify(&func, function, &NativeEffects, Form::Ssa).as_slice() {
        return Err(first.to_string());
    }
    if off {
        return Ok(print(&func, Some((program, function))));
    }
    let mut more = String::new();
    match pass {
        Pass::PhiElim => phi_elim::simplify(&mut func),
        Pass::Gvn => _ = gvn::unite(&mut func, function, &NativeEffects),
        Pass::Dce => dce::sweep(&mut func, function, &NativeEffects),
        Pass::Ranges => more = ranges(&func, function, launch),
        Pass::Shapes => {
            let ranges = range::bounds(&func, function, launch.ntid, &|_| None);
            shape::classify(&mut func, function, launch, &NativeEffects, ranges);
        }
        Pass::Divergence | Pass::IfConvert | Pass::Build | Pass::Ssa => {
            return Err(format!("`{}` begins with PTX", pass.name()));
        }
    }
    if let [first, ..] = verify(&func, function, &NativeEffects, Form::Ssa).as_slice() {
        return Err(format!("after the pass: {first}"));
    }
    Ok(print(&func, Some((program, function))) + &more)
}

/// The ranges that say more than the width of a register, as comments.
fn ranges(func: &Func, function: &Function, launch: LaunchShape) -> String {
    let mut text = String::new();
    for (at, bound) in range::bounds(func, function, launch.ntid, &|_| None).into_iter().enumerate() {
        let bits = match func.kinds[at] {
            Kind::Reg(RegClass::Pred) => 1,
            Kind::Reg(RegClass::R16) => 16,
            Kind::Reg(RegClass::R32) => 32,
            Kind::Reg(RegClass::R64) => 64,
            Kind::Mask | Kind::Count => continue,
        };
        let Some(bound) = bound else { continue };
        if bound.low > 0 || bound.high < u64::MAX >> (64 - bits) || bound.zeros > 0 {
            let range::Bound { low, high, zeros } = bound;
            let aligned =
                if zeros > 0 && low != high { format!(", {zeros} zero bits") } else { String::new() };
            // Writing to a string does not fail.
            let _ = writeln!(text, "; v{at} is {low} to {high}{aligned}");
        }
    }
    text
}
