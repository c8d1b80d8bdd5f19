//! `cargo xtask coverage`: counts how many rows of each family of the inventory the tests cover, in four
//! columns.
//!
//! *accepted*: a line of `tests/language` uses the row and checks without an error. *refused*: a line there
//! makes a mistake of the row, and gets the announced diagnostic. *executed*: a test runs it in the
//! interpreter and compares with independent values. *native*: every form of the instruction table that
//! belongs to it is compiled.
//!
//! Invariant: a row counts only if its tests exist and contain a statement of it; a false claim fails the
//! run. Columns that do not apply to a row are listed in `tests/coverage/exempt.tsv`, with a reason. The
//! figures must not fall below `tests/coverage/baseline.tsv`.

mod evidence;
mod inventory;
#[path = "../../../crates/ptx/tests/language/data.rs"]
mod language;
mod statement;

use inventory::{Inventory, Row};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

const COLUMNS: [&str; 4] = ["accepted", "refused", "executed", "native"];
const NATIVE: usize = 3;
const BASELINE: &str = "tests/coverage/baseline.tsv";

/// The options.
#[derive(Debug, Default)]
struct Options {
    /// Fail where a figure is below the baseline.
    check: bool,
    /// Write the baseline.
    bless: bool,
    /// List the rows that are not covered.
    missing: bool,
    /// Print only these families.
    families: Vec<String>,
    /// List only the missing rows of this column.
    column: Option<String>,
}

/// The rows of the inventory that a test executes.
pub(crate) fn executed(root: &Path) -> Result<BTreeSet<String>, String> {
    let inventory = root.join("tests/coverage/inventory.tsv");
    let text = std::fs::read_to_string(&inventory).map_err(|e| format!("{}: {e}", inventory.display()))?;
    Ok(evidence::collect(root, &Inventory::read(&text, &ptxvm::isa(None))?)?.executed)
}

/// Counts, prints, and compares with the baseline.
pub(crate) fn coverage(args: &[String]) -> Result<(), String> {
    let options = options(args)?;
    let root = crate::root();
    let read = |name: &str| {
        std::fs::read_to_string(root.join("tests/coverage").join(name))
            .map_err(|e| format!("tests/coverage/{name}: {e}"))
    };
    let forms = ptxvm::isa(None);
    let inventory = Inventory::read(&read("inventory.tsv")?, &forms)?;
    let evidence = evidence::collect(&root, &inventory)?;
    let exempt = exemptions(&read("exempt.tsv")?, &inventory)?;
    let native = native(&inventory, &forms, &exempt)?;
    let report = Report {
        covered: [evidence.accepted, evidence.refused, evidence.executed, native],
        inventory,
        exempt,
    };
    print!("{}", report.table(&options));
    if options.missing {
        print!("{}", report.missing(&options));
    }
    if !evidence.faults.is_empty() {
        return Err(format!("coverage: claims that are not true:\n  {}", evidence.faults.join("\n  ")));
    }
    if options.bless {
        return bless(&root.join(BASELINE), &report);
    }
    if options.check { check(&read("baseline.tsv")?, &report) } else { Ok(()) }
}

fn options(args: &[String]) -> Result<Options, String> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--check" => options.check = true,
            "--bless" => options.bless = true,
            "--missing" => options.missing = true,
            "--family" => options.families.extend(args.next().cloned()),
            "--column" => options.column = args.next().cloned(),
            _ => {
                return Err("usage: cargo xtask coverage [--missing] [--family F18]... [--column executed] [--check | --bless]".to_owned());
            }
        }
    }
    match &options.column {
        Some(column) if !COLUMNS.contains(&column.as_str()) => {
            Err(format!("a column is one of {}", COLUMNS.join(", ")))
        }
        _ => Ok(options),
    }
}

/// Rows of which every form in the instruction table is compiled.
///
/// # Errors
/// Rows without a form that have no exemption.
fn native(inventory: &Inventory, forms: &[ptxvm::Form], exempt: &Exempt) -> Result<BTreeSet<String>, String> {
    let (mut native, mut formless) = (BTreeSet::new(), Vec::new());
    for row in &inventory.rows {
        let of_row: Vec<_> = forms.iter().filter(|form| form.ids.contains(&row.id.as_str())).collect();
        if of_row.is_empty() != exempt.contains(&(row.id.clone(), NATIVE)) {
            formless.push(row.id.as_str());
        } else if !of_row.is_empty() && of_row.iter().all(|form| form.native == ptxvm::Support::Yes) {
            native.insert(row.id.clone());
        }
    }
    if formless.is_empty() {
        return Ok(native);
    }
    Err(format!(
        "rows with a form in the instruction table and an exemption from `native`, or with neither: {}",
        formless.join(" ")
    ))
}

/// Pairs of row and column that do not apply.
type Exempt = BTreeSet<(String, usize)>;

/// The exempt pairs, from lines of column, rows (a family or a pattern of ids), and reason.
fn exemptions(table: &str, inventory: &Inventory) -> Result<Exempt, String> {
    let mut exempt = BTreeSet::new();
    for (index, line) in table.lines().enumerate().filter(|(_, l)| !l.is_empty() && !l.starts_with('#')) {
        let place = format!("tests/coverage/exempt.tsv:{}", index + 1);
        let columns: Vec<&str> = line.split('\t').collect();
        let [column, rows, reason] = columns[..] else {
            return Err(format!("{place}: column, rows and reason are wanted"));
        };
        let column = COLUMNS
            .iter()
            .position(|c| *c == column)
            .ok_or_else(|| format!("{place}: `{column}` is no column"))?;
        if reason.trim().is_empty() {
            return Err(format!("{place}: no reason"));
        }
        for pattern in rows.split(' ') {
            let named = |row: &&Row| row.family == pattern || statement::matches(pattern, &row.id);
            let before = exempt.len();
            exempt.extend(inventory.rows.iter().filter(named).map(|row| (row.id.clone(), column)));
            if exempt.len() == before {
                return Err(format!("{place}: `{pattern}` exempts nothing"));
            }
        }
    }
    Ok(exempt)
}

/// The rows that each column covers.
struct Report {
    inventory: Inventory,
    covered: [BTreeSet<String>; 4],
    exempt: Exempt,
}

impl Report {
    /// Whether the column applies to the row.
    fn applies(&self, row: &Row, column: usize) -> bool {
        let nothing_to_refuse = COLUMNS[column] == "refused" && row.errors == "-";
        !nothing_to_refuse && !self.exempt.contains(&(row.id.clone(), column))
    }

    /// The number of covered rows, and of rows to which the column applies.
    fn figures(&self, family: Option<&str>, column: usize) -> (usize, usize) {
        let rows = self.inventory.rows.iter().filter(|row| family.is_none_or(|f| row.family == f));
        let (mut covered, mut of) = (0, 0);
        for row in rows.filter(|row| self.applies(row, column)) {
            covered += usize::from(self.covered[column].contains(&row.id));
            of += 1;
        }
        (covered, of)
    }

    fn table(&self, options: &Options) -> String {
        let mut text = format!("{:<8}{:>6}", "family", "rows");
        for column in COLUMNS {
            let _infallible = write!(text, "{column:>12}");
        }
        text.push('\n');
        let mut line = |name: &str, family: Option<&str>| {
            let rows =
                self.inventory.rows.iter().filter(|row| family.is_none_or(|f| row.family == f)).count();
            let _infallible = write!(text, "{name:<8}{rows:>6}");
            for column in 0..COLUMNS.len() {
                let (covered, of) = self.figures(family, column);
                let cell = if of == 0 { "-".to_owned() } else { format!("{covered}/{of}") };
                let _infallible = write!(text, "{cell:>12}");
            }
            text.push('\n');
        };
        for family in self.inventory.families() {
            if options.families.is_empty() || options.families.iter().any(|f| f == family) {
                line(family, Some(family));
            }
        }
        line("total", None);
        text
    }

    /// The rows to which a column applies and that it does not cover.
    fn missing(&self, options: &Options) -> String {
        let mut text = String::new();
        for (column, name) in COLUMNS.iter().enumerate() {
            if options.column.as_ref().is_some_and(|c| c != name) {
                continue;
            }
            for row in &self.inventory.rows {
                let shown = options.families.is_empty() || options.families.contains(&row.family);
                if shown && self.applies(row, column) && !self.covered[column].contains(&row.id) {
                    let what = if *name == "refused" { &row.errors } else { &row.syntax };
                    let _infallible = writeln!(text, "not {name}: {} {}: {what}", row.family, row.id);
                }
            }
        }
        text
    }
}

/// The baseline: family, then the number of rows that each column covers.
fn baseline(table: &str) -> Result<BTreeMap<String, [usize; 4]>, String> {
    let line = |(index, line): (usize, &str)| {
        let bad = || format!("{BASELINE}:{}: family and {} figures are wanted", index + 1, COLUMNS.len());
        let mut columns = line.split('\t');
        let family = columns.next().ok_or_else(bad)?.to_owned();
        let figures: Vec<usize> = columns.filter_map(|c| c.parse().ok()).collect();
        Ok((family, figures.try_into().map_err(|_| bad())?))
    };
    table.lines().enumerate().filter(|(_, l)| !l.is_empty() && !l.starts_with('#')).map(line).collect()
}

/// Fails if a figure is below the baseline.
fn check(table: &str, report: &Report) -> Result<(), String> {
    let baseline = baseline(table)?;
    let mut fallen = Vec::new();
    for family in report.inventory.families() {
        let before = baseline.get(family).ok_or_else(|| format!("{BASELINE}: no line for {family}"))?;
        for (column, before) in before.iter().enumerate() {
            let (now, _) = report.figures(Some(family), column);
            if now < *before {
                fallen.push(format!("{family} {}: {now}, was {before}", COLUMNS[column]));
            }
        }
    }
    if fallen.is_empty() { Ok(()) } else { Err(format!("coverage has fallen:\n  {}", fallen.join("\n  "))) }
}

fn bless(file: &Path, report: &Report) -> Result<(), String> {
    let mut text = format!("# family\t{}\n", COLUMNS.join("\t"));
    for family in report.inventory.families() {
        let figures: Vec<String> =
            (0..COLUMNS.len()).map(|c| report.figures(Some(family), c).0.to_string()).collect();
        let _infallible = writeln!(text, "{family}\t{}", figures.join("\t"));
    }
    std::fs::write(file, text).map_err(|e| format!("{}: {e}", file.display()))
}
