//! `ptxvm sanitize`: runs a kernel under sanitizers.
//!
//! Invariant: with `--format json` only JSON lines go to standard output. Findings determine the exit status
//! before a trap does.

use crate::options::{Format, SanitizeOptions};
use crate::run::{Watched, attempt, texts};
use crate::{Exit, UsageError};

/// Runs the kernel, once per schedule. Returns the exit status.
pub(crate) fn sanitize(options: &SanitizeOptions) -> Result<u8, UsageError> {
    let mut sanitize = ptxvm::SanitizeOptions::new(options.tool.0.clone());
    sanitize.max_findings = usize::try_from(options.max_findings).unwrap_or(usize::MAX);
    if let Some(file) = &options.suppressions {
        sanitize.suppressions = crate::suppress::read(file)?;
    }
    let texts = texts(&options.run)?;
    let (mut findings, mut seeds, mut exit, mut suppressed) = (Vec::new(), Vec::new(), Exit::Done, 0);
    for turn in 0..options.schedules {
        let seed = options.run.seed.wrapping_add(u64::from(turn));
        let watched = Watched { sanitize: &sanitize, first: turn == 0 };
        let done = attempt(&options.run, &texts, seed, Some(&watched))?;
        if matches!(done.exit, Exit::Rejected | Exit::Usage) {
            return Ok(done.exit as u8);
        }
        if !done.findings.is_empty() {
            seeds.push(seed);
        }
        if done.exit != Exit::Done {
            exit = done.exit;
        }
        suppressed = suppressed.max(done.suppressed);
        ptxvm::merge_findings(&mut findings, done.findings);
        if findings.len() >= sanitize.max_findings || matches!(exit, Exit::Interrupted | Exit::Terminated) {
            break;
        }
    }
    findings.truncate(sanitize.max_findings);
    match options.run.format {
        Format::Human => {
            if options.schedules > 1 {
                crate::print_err(&schedules(options.schedules, &seeds));
            }
            crate::print_err(&ptxvm::findings_text_with(&findings, suppressed));
        }
        Format::Json => crate::print_out(&ptxvm::findings_json_with(&findings, suppressed))?,
    }
    Ok(match (findings.is_empty(), exit) {
        (_, Exit::Interrupted | Exit::Terminated) | (true, _) => exit as u8,
        (false, _) => options.error_exitcode,
    })
}

/// The schedules with findings.
fn schedules(tried: u32, seeds: &[u64]) -> String {
    const NAMED: usize = 16;
    let mut names: Vec<_> = seeds.iter().take(NAMED).map(u64::to_string).collect();
    if seeds.len() > NAMED {
        names.push("...".to_owned());
    }
    match seeds {
        [] => format!("{tried} schedules: none found anything\n"),
        _ => format!("{tried} schedules: {} found something (--seed {})\n", seeds.len(), names.join(", ")),
    }
}
