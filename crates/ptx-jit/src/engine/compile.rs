//! From a kernel to the bytes of an object file, or to a listing.
//!
//! A module has a function for coarse warps, one for single warps, or both. Which ones is decided here:
//! [`coarsen`] says how many warps a coarse warp has, and whether single warps are needed beside it.
//!
//! It does not place code in memory, and does not know caches.

use crate::analysis::Analyses;
use crate::coarsen::{self, Gain, Teams};
use crate::codegen::{self, Emitted, Input};
use crate::effects;
use crate::llvm::{Effort, Error, Object, Session, Working, is_ending};
use crate::object::Made;
use crate::pipeline;
use crate::remarks::Remarks;
use crate::scalar;
use crate::tuning::{COARSE_WARP_MAX_WIDENED, MAX_STACK_BYTES};
use crate::wir::section::Section;
use crate::wir::{self, Func, LaunchShape};
use ptx::analysis::calls::reads_clocks;
use ptx::ir::{Function, Program};
use ptx_exec::launch::Kernel;
use ptx_exec::native::CoarseCode;
use ptx_exec::watch::NativeNeeds;

/// The stages of a compilation that a user can print.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listing {
    /// The warp IR ([`wir`](crate::wir)) that the code is generated from.
    Wir,
    /// The result of each decision of the compiler, by PTX line.
    Remarks,
    /// LLVM's intermediate language.
    Llvm,
    /// Assembly of the machine.
    Asm,
}

/// Which code of a kernel a compilation makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    All,
    /// The code that most CTAs need. If code for whole CTAs executes all CTAs but those that it declines, it
    /// is that code alone.
    First,
    /// The code of single warps, which [`Part::First`] has left out.
    Rest {
        /// The number of cached bounds that the first part needs; both parts use one array of them.
        windows: u32,
    },
    /// Scalar code, beside other code that continues where a thread leaves it.
    Scalar {
        /// The number of cached bounds that the other code needs.
        windows: u32,
    },
}

/// Compiles a part of a kernel for one CTA shape. `effort`: `None` chooses it by the size of the code.
///
/// # Errors
/// The reason why it cannot be compiled; the interpreter can still run it.
pub(crate) fn make(
    session: &Session,
    kernel: &Kernel,
    ntid: [u32; 3],
    teams: Teams,
    part: Part,
    effort: Option<Effort>,
) -> Result<Made, Error> {
    let _working = Working::begin()?;
    let Translated { module, emitted, team, partial, is_checked, .. } =
        translate(session, kernel, ntid, teams, part)?;
    let Emitted { windows, fallbacks, externals, cta, handed, exits, postpones, updates, .. } = emitted;
    let compiled = match effort {
        Some(effort) => session.object_by(&module, effort),
        None => session.object(&module),
    };
    let Object { bytes: object, stack, unoptimised } = compiled?;
    if stack > MAX_STACK_BYTES {
        let name = &kernel.function().name;
        return Err(Error::new(format!("the code of `{name}` takes {} MiB of stack", stack >> 20)));
    }
    Ok(Made {
        object,
        stack,
        externals,
        windows,
        fallbacks,
        cta,
        handed,
        exits,
        team,
        postpones,
        updates,
        scalar: matches!(part, Part::Scalar { .. }),
        partial,
        is_checked,
        unoptimised,
    })
}

/// The code of a kernel as text, at the given stage.
///
/// # Errors
/// The reason why it cannot be compiled.
pub fn listing(
    session: &Session,
    kernel: &Kernel,
    ntid: [u32; 3],
    teams: Teams,
    what: Listing,
) -> Result<String, Error> {
    let _working = Working::begin()?;
    kernel.check_block(ntid).map_err(|error| Error::new(error.to_string()))?;
    let Translated { module, funcs, remarks, .. } =
        translate(session, kernel, ntid, teams, listed(kernel, teams))?;
    match what {
        Listing::Remarks => Ok(remarks.text(kernel.module().program(), kernel.function())),
        Listing::Wir => Ok(funcs.iter().map(|(shape, func)| wir_listing(kernel, *shape, func)).collect()),
        Listing::Llvm => {
            module.verify().map_err(|error| Error::new(format!("ptxvm bug: {error}")))?;
            Ok(module.emit_ir())
        }
        Listing::Asm => session.emit_asm(&module),
    }
}

/// The part of the code that is listed.
fn listed(kernel: &Kernel, teams: Teams) -> Part {
    match teams {
        Teams::Threads if scalar::may_run_alone(kernel.function()).is_ok() => Part::Scalar { windows: 0 },
        Teams::Auto | Teams::Never | Teams::Threads | Teams::Of(_) => Part::All,
    }
}

/// A WIR function as text, below a line that names the launch it is for.
fn wir_listing(kernel: &Kernel, shape: LaunchShape, func: &Func) -> String {
    let LaunchShape { ntid: [x, y, z], chunk, team, ctas, rows } = shape;
    let program: &ptx::ir::Program = kernel.module().program();
    let ptx = (program, kernel.function());
    let name = &kernel.function().name;
    let text = wir::print::print(func, Some(ptx));
    let ctas = match (ctas, rows) {
        (1, false) => String::new(),
        (1, true) => " rows".to_owned(),
        _ => format!(" ctas={ctas}"),
    };
    format!("; {name}: ntid={x}x{y}x{z} chunk={chunk} warps={team}{ctas}\n{text}")
}

/// A compilation before its object file is generated.
struct Translated {
    module: crate::llvm::Module,
    emitted: Emitted,
    team: CoarseCode,
    /// Whether code of single warps was left out that [`Part::Rest`] makes.
    partial: bool,
    is_checked: bool,
    /// The WIR functions: that of a coarse warp, if there is one, then that of a single warp, if there is
    /// one.
    funcs: Vec<(LaunchShape, Func)>,
    /// The remarks about coarsening and about the function that CTAs run.
    remarks: Remarks,
}

fn translate(
    session: &Session,
    kernel: &Kernel,
    ntid: [u32; 3],
    teams: Teams,
    part: Part,
) -> Result<Translated, Error> {
    let function = kernel.function();
    let checks = match kernel.native_needs() {
        NativeNeeds::Nothing => None,
        NativeNeeds::Checks(checks) => Some(&**checks),
        NativeNeeds::Events(why) => return Err(Error::new(why.clone())),
    };
    let objects = checks.map(|checks| &checks.objects);
    let (whole, defined) = checks.map_or((false, false), |checks| (checks.whole, checks.defined));
    let ordered = checks.is_some_and(|checks| checks.ordered);
    let program = kernel.module().program();
    let variables = effects::unchecked_variables(program, checks.is_some());
    let effects = effects::NativeEffects { whole, defined, ordered, variables };
    let scalar = matches!(part, Part::Scalar { .. });
    if scalar {
        let clocks = reads_clocks(kernel.module().program(), kernel.id());
        let watched = checks.is_some().then_some("a tool watches it");
        let why = watched.or(clocks.then_some("it reads a clock"));
        why.map_or_else(|| scalar::may_run_alone(function), Err).map_err(|why| Error::new(why.to_owned()))?;
    }
    let chunk = if scalar { 1 } else { session.target().level().lanes() };
    let shape = LaunchShape { ntid, chunk, team: 1, ctas: 1, rows: false };
    let Some(mut func) = pipeline::wir(function, shape, &effects) else {
        return Err(Error::new(format!("`{}` is too large to be compiled", function.name)));
    };
    let layout = kernel.module().layout(kernel.id());
    // Native code of a coarse warp counts instructions for all of its warps together, not for each.
    let clocks = reads_clocks(program, kernel.id());
    // A coarse warp keeps elements of shared memory in registers, where they have no shadow and no stamps.
    let teams = if clocks || defined || ordered { Teams::Never } else { teams };
    let ptx: (&Program, &Function) = (program, function);
    let target = session.target();
    let passes = if defined || ordered { pipeline::Passes::SINGLE_ACCESSES } else { pipeline::Passes::PLANS };
    let analyse = |func: &mut Func, shape: LaunchShape| {
        pipeline::analyse(func, ptx, &layout, shape, target, &effects, passes)
    };
    let plan = |func: &mut Func, analyses: &mut Analyses, shape: LaunchShape, by_warp: bool| {
        let memory = (&layout, objects);
        let launch = (shape, by_warp);
        pipeline::plan_memory((func, analyses), ptx, memory, launch, target, &effects, passes);
    };
    let mut analyses = analyse(&mut func, shape);
    plan(&mut func, &mut analyses, shape, false);
    let job = Input {
        function,
        layout: &layout,
        objects,
        whole,
        defined,
        ordered,
        program,
        func: &func,
        shape,
        flush: false,
        target,
        windows: 0,
        clocks,
        by_warp: false,
    };
    let mut module = session.module(&function.name);
    let level = target.level();
    let (candidates, mut windows) = match part {
        Part::Rest { windows } | Part::Scalar { windows } => (Vec::new(), windows),
        Part::All | Part::First => {
            (coarsen::candidates(teams, (function, program), &func, shape, level, checks.is_some()), 0)
        }
    };
    let (mut together, mut stays) = (None, false);
    let mut funcs = Vec::new();
    let mut remarks = Remarks::default();
    for sizes in candidates {
        if together.is_some() {
            break;
        }
        let mut size = sizes.first;
        // Whether the coarse warp leaves where its lanes diverge: what is still to be tried, the last first.
        let rows = sizes.has_rows();
        let border = rows && coarsen::has_border(job.func, function);
        let mut ways = if border { vec![false, true] } else { vec![false] };
        if size == 1 {
            remarks.missed("coarsen", None, sizes.why);
        }
        while size > 1 && together.is_none() {
            let Some(leaves) = ways.pop() else { break };
            let shape = LaunchShape { team: size, ctas: sizes.ctas, rows, ..shape };
            let warps = match sizes.ctas {
                1 => format!("{size} warps"),
                ctas => format!("{size} warps of {ctas} CTAs"),
            };
            let func = match leaves {
                true => pipeline::wir_without_masks(function, shape, &effects),
                false => pipeline::wir(function, shape, &effects),
            };
            let Some(mut func) = func.filter(|func| coarsen::meets(func, function)) else {
                let why = match leaves {
                    true => "lanes diverge by their data",
                    false => "not all of them wait at every barrier",
                };
                remarks.missed("coarsen", None, format!("{warps}: {why}"));
                continue;
            };
            let by_warp = sizes.gain == Gain::Scalars;
            let widened = match by_warp {
                true => 0,
                false => coarsen::widened(teams, (job.func, &func), function, level),
            };
            if widened > COARSE_WARP_MAX_WIDENED {
                let why =
                    format!("{warps}: {widened} registers of a chunk would hold what is uniform in a warp");
                remarks.missed("coarsen", None, why);
                break;
            }
            let mut analyses = analyse(&mut func, shape);
            if !by_warp && !coarsen::is_small(teams, &func, function, shape) {
                remarks.missed("coarsen", None, format!("{warps}: the code would be too large"));
                if !rows {
                    size = sizes.smaller(size);
                    ways.push(false);
                } else if !border && !leaves {
                    // Without masked copies it is smaller.
                    ways.push(true);
                }
                continue;
            }
            plan(&mut func, &mut analyses, shape, by_warp);
            if let Err(why) =
                coarsen::pays(sizes.gain, (job.func, job.shape), (&func, shape), function, level)
            {
                remarks.missed("coarsen", None, format!("{warps}: {why}"));
                continue;
            }
            let chunk_loops =
                func.blocks.iter().flat_map(|block| &block.sections).any(Section::is_chunk_loop);
            if sizes.apart && size <= sizes.within && !chunk_loops {
                remarks.missed("coarsen", None, format!("{warps}: no section is executed chunk by chunk"));
                break;
            }
            let emitted =
                codegen::emit(&module, "team", Input { func: &func, shape, by_warp, ..job }, analyses);
            if emitted.unfit {
                let why = match by_warp {
                    true => "a block cannot be executed warp by warp",
                    false => "an operation has no code for several warps",
                };
                remarks.missed("coarsen", None, format!("{warps}: {why}"));
                module = session.module(&function.name);
                if size == sizes.within {
                    break;
                }
                size = sizes.smaller(size);
                ways.push(false);
                continue;
            }
            // Single warps execute the CTAs that code for whole CTAs declines, and those at the ends of rows.
            stays = !by_warp && !rows && coarsen::stays(&func, function);
            let why = if size == sizes.first { sizes.why } else { "the largest number that can" };
            remarks.applied("coarsen", None, format!("{warps} as one: {why}"));
            together = Some(emitted);
            funcs.push((shape, func));
        }
    }
    if let Some(team) = &together {
        windows = team.windows;
    }
    // Single warps would run only after a rare side exit of the coarse warp, and take long to compile.
    let needless = stays && teams == Teams::Auto && !coarsen::is_quick(&func, function, shape);
    let partial = part == Part::First && together.is_some() && coarsen::is_in_parts(teams, function);
    let mut alone = false;
    let mut emitted = match &together {
        Some(team) if needless || partial => {
            Emitted { windows, externals: team.externals.clone(), ..Emitted::default() }
        }
        _ => {
            alone = true;
            codegen::emit(&module, "kernel", Input { windows, ..job }, analyses)
        }
    };
    if alone {
        funcs.push((shape, func));
    }
    let mut team = CoarseCode::default();
    // Single warps run only what coarse warps leave, so the remarks are those of the coarse warp.
    let main = together.as_mut().unwrap_or(&mut emitted);
    remarks.append(std::mem::take(&mut main.remarks));
    if let Some(Emitted { windows, cta, leaves, postpones, updates, .. }) = together {
        let (of, coarse) = &funcs[0];
        let least_row = coarsen::least_row(teams, coarse, function, *of);
        let edges_alone = coarsen::edges_alone(coarse, *of);
        team = CoarseCode { warps: of.team, ctas: of.ctas, least_row, edges_alone, cta, leaves };
        // Both functions refer to symbols of the host through the same module.
        emitted.windows = emitted.windows.max(windows);
        emitted.postpones |= postpones;
        emitted.updates |= updates;
    }
    if is_ending() {
        return Err(Error::new("the process is ending"));
    }
    let is_checked = checks.is_some();
    Ok(Translated { module, emitted, team, partial, is_checked, funcs, remarks })
}
