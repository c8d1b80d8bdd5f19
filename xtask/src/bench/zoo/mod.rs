//! `cargo xtask bench --zoo`: kernels of many kinds that nothing was tuned for, beside natural C++.
//!
//! A quarter of them is kept apart: a kernel is measured only with `--kept-apart` if a hash of its name and
//! [`SEED`] says so. Improvements are made while looking at the others, and this quarter then shows whether
//! they are improvements of mechanisms or of kernels.
//!
//! Invariant: row NAME of table FILE is the kernel NAME of `bench/zoo/FILE.cu` and the function NAME of
//! `bench/zoo/FILE.cpp`. The part of a kernel depends on its name only, so another row does not change it.

mod algebra;
mod codes;
mod filters;
mod graphs;
mod learning;
mod setup;
mod sorting;
mod stencils;
mod sums;
mod worlds;

use super::case::{Case, Size};
use super::device::Device;
use super::native::Native;
use super::peers::Peers;
use super::{Options, Row, compare, row, table};
use ptxvm::Engine;
use setup::Setup;

/// The seed of the choice, the number of the issue that asked for it.
const SEED: u32 = 24;

/// A kernel of the zoo.
pub(super) struct Kernel {
    pub(super) name: &'static str,
    make: fn(&mut Setup),
}

/// The tables, with the path of their PTX.
const FILES: &[(&str, &[Kernel])] = &[
    ("zoo/stencils", stencils::ROWS),
    ("zoo/filters", filters::ROWS),
    ("zoo/algebra", algebra::ROWS),
    ("zoo/sums", sums::ROWS),
    ("zoo/sorting", sorting::ROWS),
    ("zoo/graphs", graphs::ROWS),
    ("zoo/codes", codes::ROWS),
    ("zoo/learning", learning::ROWS),
    ("zoo/worlds", worlds::ROWS),
];

/// All kernels, with the path of their PTX.
pub(super) fn rows() -> impl Iterator<Item = (&'static str, &'static Kernel)> {
    FILES.iter().flat_map(|(ptx, rows)| rows.iter().map(move |row| (*ptx, row)))
}

fn case((ptx, kernel): (&'static str, &Kernel), size: Size) -> Case {
    let mut setup = Setup::new(kernel.name, size);
    (kernel.make)(&mut setup);
    setup.case(ptx)
}

/// Whether a kernel belongs to the quarter that is measured only at the end.
fn kept_apart(name: &str) -> bool {
    // FNV-1a, then a final mix, because its lowest bits depend on few bits of the text.
    let seeded = SEED.to_le_bytes();
    let mut hash = seeded
        .iter()
        .chain(name.as_bytes())
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash.is_multiple_of(4)
}

/// Runs the kernels that the options select, and prints the results.
pub(super) fn run(options: &Options, native: &mut Native) -> Result<(), String> {
    let wanted: Vec<_> = rows().filter(|(_, kernel)| options.wants(kernel.name)).collect();
    if options.check {
        return failures(wanted.into_iter().filter_map(|row| check(options, row, native).err()).collect());
    }
    if let Some(name) = options.only.iter().find(|name| kept_apart(name) && !options.kept_apart) {
        return Err(format!("`{name}` is measured only with `--kept-apart`"));
    }
    let (mut open, mut apart, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    table::head(options);
    for wanted in wanted {
        let name = wanted.1.name;
        let kept = kept_apart(name);
        if kept && !options.kept_apart {
            continue;
        }
        match row(options, &case(wanted, Size::Full), native, &mut Peers::none()) {
            Ok(row) => {
                table::row(options, &row);
                if kept { &mut apart } else { &mut open }.push(row);
            }
            Err(error) => failed.push(format!("{name}: {error}")),
        }
    }
    summary(options, "measured while working", &open);
    summary(options, "kept apart", &apart);
    failures(failed)
}

/// Compares the results of both engines with those of native code, on the reduced size.
fn check(
    options: &Options,
    wanted: (&'static str, &'static Kernel),
    native: &mut Native,
) -> Result<(), String> {
    let name = wanted.1.name;
    let case = case(wanted, Size::Reduced);
    for (word, engine) in [("interpreter", Engine::Interp), ("native code", Engine::Jit)] {
        let failed = |error: String| {
            let error = format!("{name}, {word}: {error}");
            println!("{error}");
            error
        };
        let device = Device::new(&case, (options.cpu, options.team), engine, options.threads)
            .map_err(|error| failed(error.to_string()))?;
        device.run().map_err(|error| failed(error.to_string()))?;
        compare(&case, &device, native, |_, _| Ok(())).map_err(failed)?;
    }
    println!("{name}: both engines agree with C++");
    Ok(())
}

/// The geometric mean and the worst ratio of a part.
fn summary(options: &Options, part: &str, rows: &[Row]) {
    let worst = rows.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio));
    let Some(Row { name, ratio, .. }) = worst else { return };
    let mean = (rows.iter().map(|row| row.ratio.ln()).sum::<f64>() / rows.len() as f64).exp();
    let count = rows.len();
    match options.json {
        true => println!(
            "{{\"part\": \"{part}\", \"kernels\": {count}, \"geometric_mean\": {mean:.4}, \"worst\": {ratio:.4}, \"worst_kernel\": \"{name}\"}}"
        ),
        false => println!(
            "{part}: {count} kernels, geometric mean of the ratios {mean:.2}, worst {ratio:.2} ({name})"
        ),
    }
}

fn failures(failed: Vec<String>) -> Result<(), String> {
    match failed.len() {
        0 => Ok(()),
        n => Err(format!("{n} kernels of the zoo failed\n{}", failed.join("\n"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::case::Check;
    use crate::bench::device::text;
    use std::collections::BTreeSet;

    #[test]
    fn rows_name_kernels_and_native_functions_once() {
        let mut names = BTreeSet::new();
        for (ptx, kernel) in rows() {
            let name = kernel.name;
            assert!(names.insert(name), "two rows are named {name}");
            let case = case((ptx, kernel), Size::Reduced);
            assert!(
                case.arrays.iter().any(|array| !matches!(array.check, Check::No)),
                "{name} compares nothing"
            );
            assert!(!case.what.is_empty(), "{name} does not say its size");
            let entries = text(ptx).expect("the PTX is committed");
            for step in &case.steps {
                assert!(
                    entries.contains(&format!(".entry {}(", step.kernel)),
                    "{ptx}.ptx has no {}",
                    step.kernel
                );
            }
            let native = crate::root().join("xtask/bench").join(format!("{ptx}.cpp"));
            let native = std::fs::read_to_string(native).expect("the C++ is committed");
            assert!(native.contains(&format!("NATIVE({name})")), "{ptx}.cpp has no {name}");
        }
        assert!(names.len() >= 60, "the zoo has {} kernels", names.len());
    }

    #[test]
    fn about_a_quarter_is_kept_apart() {
        let (all, apart) = (rows().count(), rows().filter(|(_, kernel)| kept_apart(kernel.name)).count());
        assert!((all / 5..=all * 3 / 10).contains(&apart), "{apart} of {all} kernels are kept apart");
    }
}
