//! Writes the corpora and the dictionary: `cargo run --example seed`.
//!
//! Seeds are all texts of the tests below 48 KiB, and modules made from the rows of the instruction table.
//! The dictionary has the words of the table.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

/// The targets that take PTX texts, each with a corpus of its own.
const TARGETS: &[&str] = &["lexer", "parser", "checker", "printer", "execute"];
/// Values of `--arg`, `--bind` and `--texels`.
const ARGUMENTS: &[&str] = &[
    "u8:255",
    "s32:0xFFFFFFFF",
    "f32:0f3F800000",
    "f64:0d3FF8000000000000",
    "f16:0x3C00",
    "inout:a.npy=b.npy",
    "out:f4[64,2]=c.npy",
    "zeros:12",
    "bytes:00fF",
    "tex:inout:a.npy,filter_mode=linear,normalized_coords=1",
    "sampler:,addr_mode=wrap",
    "s=surf:@t,level=0",
    "t=zeros:64,width=16,channel_data_type=float",
    "u=b.npy,geom=2d",
];
/// Larger texts take more time than they find errors.
const LARGEST: usize = 48 << 10;
/// The number of generated modules for each level.
const GENERATED: u64 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for folder in ["../tests", "../crates/ptx/tests", "../crates/ptxvm/tests"] {
        collect(&here.join(folder), "ptx", &mut paths)?;
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
    for (target, seeds) in [
        ("containers", ptxvm_fuzz::packed(&seeds)),
        ("driver", ptxvm_fuzz::sequences()),
        ("inputs", given(&here.join("../tests"))?),
    ] {
        let corpus = here.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        for (index, seed) in seeds.iter().enumerate() {
            fs::write(corpus.join(format!("seed-{index}")), seed)?;
        }
    }
    let words = ptxvm_fuzz::vocabulary().iter().map(|word| format!("\"{}\"\n", word.replace('"', "\\\"")));
    fs::write(here.join("ptx.dict"), words.collect::<String>())?;
    println!("{} seeds for each of {} targets, and seeds of the other targets", seeds.len(), TARGETS.len());
    Ok(())
}

/// Small `.npy` and launch files of the tests, and an argument of each kind.
fn given(tests: &Path) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut seeds: Vec<Vec<u8>> = ARGUMENTS.iter().map(|text| text.as_bytes().to_vec()).collect();
    seeds.push(ARGUMENTS.join("\n").into_bytes());
    let mut paths = Vec::new();
    collect(tests, "npy", &mut paths)?;
    collect(tests, "json", &mut paths)?;
    for path in paths {
        seeds.push(fs::read(path)?);
    }
    seeds.retain(|seed| seed.len() < 2048);
    Ok(seeds)
}

fn collect(folder: &Path, end: &str, paths: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, end, paths)?;
        } else if path.extension().is_some_and(|e| e == end) {
            paths.push(path);
        }
    }
    Ok(())
}
