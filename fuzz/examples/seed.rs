//! Writes the corpora and the dictionary: `cargo run --example seed`.
//!
//! Every text of the tests is a seed (smaller ones than 48 KiB), as are modules made from the rows of the table. The dictionary
//! holds the words of the table.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The targets, each with a corpus of its own.
const TARGETS: &[&str] = &["lexer", "parser", "checker", "printer", "execute"];
/// Larger texts cost more than they find.
const LARGEST: usize = 48 << 10;
/// Rounds of generated modules, one for each level.
const GENERATED: u64 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for folder in ["../tests", "../crates/ptx/tests", "../crates/ptxvm/tests"] {
        collect(&here.join(folder), &mut paths)?;
    }
    let mut seeds = Vec::new();
    for path in paths {
        let text = fs::read(path)?;
        if text.len() <= LARGEST {
            seeds.push(text);
        }
    }
    seeds.extend((1..=GENERATED).flat_map(ptxvm_fuzz::generated).map(String::into_bytes));
    for target in TARGETS {
        let corpus = here.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        for (index, seed) in seeds.iter().enumerate() {
            fs::write(corpus.join(format!("seed-{index}")), seed)?;
        }
    }
    let words = ptxvm_fuzz::vocabulary().iter().map(|word| format!("\"{}\"\n", word.replace('"', "\\\"")));
    fs::write(here.join("ptx.dict"), words.collect::<String>())?;
    println!("{} seeds for each of {} targets", seeds.len(), TARGETS.len());
    Ok(())
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, paths)?;
        } else if path.extension().is_some_and(|e| e == "ptx") {
            paths.push(path);
        }
    }
    Ok(())
}
