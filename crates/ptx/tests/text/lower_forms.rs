//! Every form of the table that the checker accepts lowers to a program that obeys the rules of the IR.
//!
//! The texts are generated from the rows (`support/forms.rs`), at the newest level that accepts them. There
//! are more of them if `PTXVM_TESTS` is `full`.

use crate::forms;

use forms::{LEVELS, Rng, instruction, text};
use ptx::check::{CheckOptions, check};
use ptx::ir::lower;
use ptx::ir::verify::verify;
use ptx::isa::RowId;

/// The frame around the instructions has no mistake at any level.
#[test]
fn frame_is_accepted() {
    for level in LEVELS {
        let text = text("ret;", *level);
        let checked = check("frame", &text, &CheckOptions::default());
        assert!(checked.module.is_some(), "{text}\n{:#?}", checked.diagnostics);
    }
}

/// The most texts of a form.
const MOST: usize = 40;

#[test]
fn every_form_lowers() {
    let (mut lowered, mut never) = (0, Vec::new());
    let full = std::env::var("PTXVM_TESTS").as_deref() == Ok("full");
    // As many texts of each form; up to `MOST` until one is accepted.
    let texts = if full { MOST } else { 12 };
    for row in RowId::all() {
        let mut rng = Rng(row.index() as u64 * 2 + 1);
        let mut accepted = 0;
        let mut last = String::new();
        for number in 0..MOST {
            if number >= texts && accepted > 0 {
                break;
            }
            let Some(instruction) = instruction(row, &mut rng) else { continue };
            for level in LEVELS {
                let text = text(&instruction, *level);
                let checked = check("form", &text, &CheckOptions::default());
                let Some(module) = checked.module else {
                    let first = checked.diagnostics.first().map(|d| d.message.clone());
                    let first = format!("{instruction} ({}): {}", level.0, first.unwrap_or_default());
                    if !first.contains(" needs ") && !first.contains("was removed") {
                        last = first;
                    }
                    continue;
                };
                let program = lower(module);
                let violations: Vec<String> = verify(&program).iter().map(ToString::to_string).collect();
                assert!(violations.is_empty(), "{text}\n{}\n{program}", violations.join("\n"));
                accepted += 1;
                break;
            }
        }
        if accepted == 0 {
            never.push(format!("{}\n    {last}", row.row().syntax));
        }
        lowered += accepted;
    }
    assert!(lowered > 250 * texts, "only {lowered} instructions");
    assert!(never.is_empty(), "{} forms never accepted:\n{}", never.len(), never.join("\n"));
}
