//! A function as text after any pass, for `--emit wir` and for file tests.
//!
//! Invariant: the text after a pass depends on the function, the launch, the target and the passes alone.

use crate::analysis::{Analyses, range};
use crate::coarsen;
use crate::effects::{NativeEffects, unchecked_variables};
use crate::opt::{dce, gvn, phi_elim, version_indices};
use crate::pipeline::{self, Pass, Passes, analyse, infer_shapes, plan_memory};
use crate::target::{Level, Target};
use crate::wir::parse::parse;
use crate::wir::print::print;
use crate::wir::verify::{Form, verify};
use crate::wir::{Func, Kind, LaunchShape, Shape, Value};
use ptx::check::module::FuncId;
use ptx::ir::{Function, Program, RegClass};
use ptx_exec::layout::Layout;
use std::fmt::Write;

/// Any processor of the level whose chunks are as wide as those of a launch.
pub fn generic_target(launch: LaunchShape) -> Target {
    let level = Level::ALL.into_iter().find(|level| level.lanes() == launch.chunk);
    Target::generic(level.unwrap_or(Level::Baseline))
}

/// The text of a PTX function after a pass; `None` if it would be too large. `off`: a pass that is left out.
///
/// After [`Pass::Ranges`] and [`Pass::Constants`], what they found follows the function.
pub fn after(
    (program, function): (&Program, &Function),
    (launch, target): (LaunchShape, Target),
    last: Pass,
    off: Option<Pass>,
) -> Option<String> {
    let stop = match last {
        // What they find shows in the graph.
        Pass::Divergence | Pass::IfConvert => Pass::Build,
        Pass::Ranges => Pass::Dce,
        Pass::FoldBranches
        | Pass::FloatChains
        | Pass::Constants
        | Pass::Accesses
        | Pass::Checks
        | Pass::LoopPredication
        | Pass::Groups
        | Pass::Prefetches
        | Pass::BarrierSlots
        | Pass::VersionPrefix
        | Pass::VersionUnmasked
        | Pass::ChunkLoops
        | Pass::OrderSections
        | Pass::SinkMasks
        | Pass::NarrowLanes
        | Pass::EndpointTests
        | Pass::WarpStrips => Pass::VersionIndices,
        other => other,
    };
    if off == Some(Pass::Build) {
        return Some(String::new());
    }
    let effects = effects_of(program);
    let single =
        || pipeline::wir(function, LaunchShape { team: 1, ctas: 1, rows: false, ..launch }, &effects);
    // As the compiler tries first.
    let leaves =
        launch.leaves_at_edges() && single().is_some_and(|func| coarsen::has_border(&func, function));
    let mut func = pipeline::built(function, launch, &effects, Passes::without(off, stop), leaves)?;
    if last >= Pass::FoldBranches && last != Pass::Constants {
        plan(&mut func, (program, function), (launch, target), Passes::without(off, last));
    }
    let mut text = print(&func, Some((program, function)));
    if last == Pass::Constants && off != Some(last) {
        text += &constants(&func, (program, function), launch);
    }
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
    (launch, target): (LaunchShape, Target),
    pass: Pass,
    off: bool,
) -> Result<String, String> {
    let mut func = parse(text).map_err(|error| error.to_string())?;
    if let [first, ..] = verify(&func, function, &effects_of(program), Form::Ssa).as_slice() {
        return Err(first.to_string());
    }
    if off {
        return Ok(print(&func, Some((program, function))));
    }
    let mut more = String::new();
    match pass {
        Pass::PhiElim => phi_elim::simplify(&mut func),
        Pass::Gvn => _ = gvn::unite(&mut func, function, &effects_of(program)),
        Pass::Dce => dce::sweep(&mut func, function, &effects_of(program)),
        Pass::Ranges => more = ranges(&func, function, launch),
        Pass::Shapes => {
            infer_shapes(&mut func, function, launch, &effects_of(program), Passes::ALL);
        }
        Pass::VersionIndices => {
            let effects = effects_of(program);
            let classify = |func: &mut Func| infer_shapes(func, function, launch, &effects, Passes::ALL);
            if func.shapes.is_empty() {
                return Err("values without shapes".to_owned());
            }
            _ = version_indices::version(&mut func, function, &effects, classify);
        }
        Pass::Constants => more = constants(&func, (program, function), launch),
        Pass::FoldBranches
        | Pass::FloatChains
        | Pass::Accesses
        | Pass::Checks
        | Pass::LoopPredication
        | Pass::Groups
        | Pass::Prefetches
        | Pass::BarrierSlots
        | Pass::VersionPrefix
        | Pass::VersionUnmasked
        | Pass::ChunkLoops
        | Pass::OrderSections
        | Pass::SinkMasks
        | Pass::NarrowLanes
        | Pass::EndpointTests
        | Pass::WarpStrips => {
            plan(&mut func, (program, function), (launch, target), Passes::without(None, pass));
        }
        Pass::Divergence | Pass::IfConvert | Pass::Build | Pass::Ssa => {
            return Err(format!("`{}` begins with PTX", pass.name()));
        }
    }
    if let [first, ..] = verify(&func, function, &effects_of(program), Form::Ssa).as_slice() {
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

/// Plans how a function accesses memory, with its variables where they are in a program of one module.
fn plan(
    func: &mut Func,
    (program, function): (&Program, &Function),
    (launch, target): (LaunchShape, Target),
    passes: Passes,
) {
    let (effects, layout) = (effects_of(program), layout(program));
    let ptx = (program, function);
    let mut analyses = analyse(func, ptx, &layout, launch, target, &effects, passes);
    let memory = (&layout, None);
    plan_memory((func, &mut analyses), ptx, memory, (launch, false), target, &effects, passes);
}

fn layout(program: &Program) -> Layout {
    let (variables, functions) = (program.variables.len(), program.functions.len());
    Layout::for_kernel(program, FuncId(0), vec![0; variables], vec![0; functions])
}

/// The constants that are not in the shapes, as comments: for each chunk, runs of a first number, a step and
/// a count, or a question mark.
fn constants(func: &Func, (program, function): (&Program, &Function), launch: LaunchShape) -> String {
    let analyses = Analyses::of(func, (program, function), &layout(program), launch);
    let mut text = String::new();
    for value in (0..func.kinds.len() as u32).map(Value) {
        if let Shape::Uniform(Some(_)) = func.shapes[value.0 as usize] {
            continue;
        }
        let chunks = (0..launch.lanes() / launch.chunk).map(|c| analyses.constants.chunk(value, c));
        let texts: Vec<String> = chunks.map(|lanes| lanes.map_or("?".to_owned(), runs)).collect();
        if texts.iter().any(|text| text != "?") {
            // Writing to a string does not fail.
            let _ = writeln!(text, "; v{} is {}", value.0, texts.join(" | "));
        }
    }
    text
}

/// Numbers as runs.
fn runs(numbers: &[u64]) -> String {
    let mut runs: Vec<(u64, u64, u32)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((first, step, count)) if *count == 1 => {
                (*step, *count) = (number.wrapping_sub(*first), 2);
            }
            Some((first, step, count))
                if first.wrapping_add(step.wrapping_mul(u64::from(*count))) == *number =>
            {
                *count += 1
            }
            _ => runs.push((*number, 0, 1)),
        }
    }
    let run = |(first, step, count): (u64, u64, u32)| match count {
        1 => format!("{first}"),
        _ => format!("{first}{:+}x{count}", step as i64),
    };
    runs.into_iter().map(run).collect::<Vec<_>>().join(" ")
}

/// The properties of a program's instructions without observers.
fn effects_of(program: &Program) -> NativeEffects<'_> {
    NativeEffects { variables: unchecked_variables(program, false), ..NativeEffects::default() }
}
