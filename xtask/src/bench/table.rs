//! Output of results: a table for people, or one JSON object per line.
//!
//! Invariant: both forms contain the same figures.

use super::overhead::Overhead;
use super::peers::Beside;
use super::{Clock, Options, Row};

/// The heads of the columns.
pub(crate) fn head(options: &Options) {
    if options.json {
        return;
    }
    let (this, other) = match options.clock {
        Clock::Wall => ("ratio", "by cpu"),
        Clock::Cpu => ("ratio", "by wall"),
    };
    println!(
        "{:<16} {:<38} {:>11} {:>11} {:>7} {:>7} {:>7} {:>9} {:>10} {:>7} {:>8}",
        "kernel",
        "size",
        "native",
        "jit",
        "target",
        this,
        other,
        "compiled",
        "G instr/s",
        "interp.",
        "x interp"
    );
}

/// One case.
pub(crate) fn row(options: &Options, row: &Row) {
    let Row { name, what, target, native, jit, ratio, other_ratio, seen, compiled, over_interp, beside } =
        row;
    let interpreted = seen.interpreted as f64 / seen.warp_instructions.max(1) as f64;
    let rate = seen.thread_instructions as f64 / jit / 1e9;
    let compiled = compiled.as_secs_f64() * 1e3;
    let fallbacks: Vec<String> = seen.fallbacks.iter().map(|(name, n)| format!("{name} x {n}")).collect();
    if options.json {
        let optional = |value: Option<f64>| value.map_or("null".to_owned(), |v| format!("{v:.4}"));
        println!(
            "{{\"kernel\": \"{name}\", \"size\": \"{what}\", \"native_ms\": {:.4}, \"jit_ms\": {:.4}, \"target\": {}, \
             \"ratio\": {ratio:.4}, \"ratio_other_clock\": {other_ratio:.4}, \"compile_ms\": {compiled:.3}, \
             \"interpreted\": {interpreted:.6}, \"thread_instructions\": {}, \"over_interp\": {}, \"fallbacks\": [{}], \"peers\": {{{}}}}}",
            native * 1e3,
            jit * 1e3,
            optional(*target),
            seen.thread_instructions,
            optional(*over_interp),
            fallbacks.iter().map(|f| format!("\"{f}\"")).collect::<Vec<_>>().join(", "),
            beside.iter().map(peer_ms).collect::<Vec<_>>().join(", "),
        );
        return;
    }
    let mark = if target.is_some_and(|target| *ratio > target) { "*" } else { " " };
    let target = target.map_or(String::new(), |target| format!("{target:.2}"));
    let over = over_interp.map_or(String::new(), |over| format!("{over:.1}"));
    println!(
        "{name:<16} {what:<38} {:>8.3} ms {:>8.3} ms {target:>7} {ratio:>6.2}{mark} {other_ratio:>7.2} {compiled:>6.1} ms \
         {rate:>10.2} {:>6.2}% {over:>8}",
        native * 1e3,
        jit * 1e3,
        interpreted * 1e2,
    );
    if !fallbacks.is_empty() {
        println!("{:<16} without native code: {}", "", fallbacks.join(", "));
    }
    for Beside { name, took } in beside {
        match took {
            Ok(seconds) => println!(
                "{:<16} {name}: {:.3} ms, {:.2} times as long as native code from PTX",
                "",
                seconds * 1e3,
                seconds / jit
            ),
            Err(why) => println!("{:<16} {name}: {why}", ""),
        }
    }
}

/// A peer's time as a member of a JSON object.
fn peer_ms(Beside { name, took }: &Beside) -> String {
    match took {
        Ok(seconds) => format!("\"{name}_ms\": {:.4}", seconds * 1e3),
        Err(_) => format!("\"{name}_ms\": null"),
    }
}

/// The lines after the cases.
pub(crate) fn end(options: &Options, rows: &[Row], overheads: &[Overhead]) {
    if options.json {
        for Overhead { what, value, unit, limit } in overheads {
            println!(
                "{{\"overhead\": \"{what}\", \"value\": {value:.4}, \"unit\": \"{unit}\", \"limit\": {limit}}}"
            );
        }
        return;
    }
    if rows.len() > 1 {
        let mean = |of: &dyn Fn(&Row) -> f64| {
            (rows.iter().map(|row| of(row).ln()).sum::<f64>() / rows.len() as f64).exp()
        };
        let ratio = mean(&|row| row.ratio);
        let jit = mean(&|row| row.jit) * 1e3;
        println!("geometric means: ratio {ratio:.2}, jit {jit:.3} ms   (* above the target)");
    }
    for Overhead { what, value, unit, limit } in overheads {
        let mark = if value > limit { "*" } else { " " };
        println!("{what:<55} {value:>9.3} {unit:<2}{mark} at most {limit} {unit}");
    }
}
