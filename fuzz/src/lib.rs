//! The fuzz targets as functions of an input, and the mutator that they share.
//!
//! `crates/ptx/tests/text/findings.rs` tests the same properties for every past finding. An input is read as
//! UTF-8, with replacement characters for invalid bytes, because the library takes text.

#[path = "../../crates/ptxvm-cuda/tests/support/calls.rs"]
mod calls;
#[path = "../../crates/ptxvm-cuda/tests/support/containers.rs"]
mod containers;
#[path = "../../crates/ptxvm-cuda/tests/support/counted.rs"]
mod counted;
#[path = "../../crates/ptx/tests/support/facts.rs"]
mod facts;
#[path = "../../crates/ptx/tests/support/forms.rs"]
mod forms;
mod mutator;
#[path = "../../crates/ptx/tests/support/properties.rs"]
mod properties;
#[path = "../../crates/ptxvm/tests/support/run_all.rs"]
mod run_all;
#[path = "../../crates/ptxvm-cuda/tests/support/sequence.rs"]
mod sequence;
mod support;
#[path = "../../crates/ptxvm-cuda/tests/support/table.rs"]
mod table;
#[path = "../../crates/ptxvm-cuda/tests/support/world.rs"]
mod world;

use ptxvm::container::{Packing, write_packed};
use std::sync::OnceLock;

pub use mutator::{mutate, vocabulary};

/// Splits into tokens.
pub fn lexer(data: &[u8]) {
    properties::lexes(&String::from_utf8_lossy(data));
}

/// Parses.
pub fn parser(data: &[u8]) {
    properties::parses(&String::from_utf8_lossy(data));
}

/// Checks.
pub fn checker(data: &[u8]) {
    properties::checks(&String::from_utf8_lossy(data));
}

/// Formats; prints and checks the result again.
pub fn printer(data: &[u8]) {
    properties::prints(&String::from_utf8_lossy(data));
}

/// Lowers, verifies and runs every kernel.
pub fn execute(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    properties::lowers(&text);
    run_all::runs(&text);
}

/// Reads containers of device code; loads and links them.
pub fn containers(data: &[u8]) {
    containers::reads(data);
    let api = support::api();
    static CONTEXT: OnceLock<usize> = OnceLock::new();
    let _current = CONTEXT.get_or_init(|| api.make("cuCtxCreate_v2", |out: *mut usize| (out, 0u32, 0i32)));
    containers::loads(api, data);
}

/// Calls the driver API. `PTXVM_PRINT_CALLS` makes it print each call before it is made.
pub fn driver(data: &[u8]) {
    static PRINTS: OnceLock<bool> = OnceLock::new();
    let prints = *PRINTS.get_or_init(|| std::env::var_os("PTXVM_PRINT_CALLS").is_some());
    sequence::runs(support::api(), data, |step| {
        if prints {
            eprintln!("{step}");
        }
    });
}

/// Reads `.npy` files, launch files and arguments.
pub fn inputs(data: &[u8]) {
    ptxvm_cli::reads(data);
}

/// Modules with a few instructions of random rows each, at every level: seeds that pass the parser.
pub fn generated(seed: u64) -> Vec<String> {
    let mut rng = forms::Rng(seed.max(1));
    forms::LEVELS.iter().map(|level| forms::text(&mutator::instructions(&mut rng, 6), *level)).collect()
}

/// Small texts in containers, compressed in each way.
pub fn packed(texts: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let small = texts.iter().filter(|text| (30..1200).contains(&text.len()));
    small
        .flat_map(|text| {
            // An LZ4 block with one run of literals; a zstd frame with one raw block.
            let mut lz4 = vec![0xf0];
            let rest = text.len() - 15;
            lz4.extend(std::iter::repeat_n(255, rest / 255));
            lz4.push((rest % 255) as u8);
            lz4.extend(text);
            let mut zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
            zstd.extend((text.len() as u32).to_le_bytes());
            zstd.extend(&(1 | (text.len() as u32) << 3).to_le_bytes()[..3]);
            zstd.extend(text);
            let packed = [(Packing::Raw, text.clone()), (Packing::Lz4, lz4), (Packing::Zstd, zstd)];
            packed.map(|(packing, payload)| {
                write_packed("kernel.cu", 70, packing, &payload, text.len() as u64)
            })
        })
        .collect()
}

/// Sequences of calls, most of them with valid arguments.
pub fn sequences() -> Vec<Vec<u8>> {
    let mut rng = forms::Rng(1);
    let mut byte = || rng.below(256) as u8;
    let mut call = || {
        let first = if byte() < 128 { 255 } else { byte() % 4 };
        [byte(), byte() % 2, first, byte(), 255, byte()]
    };
    (1..=100).map(|length| std::iter::repeat_with(&mut call).take(length % 40 + 1).flatten().collect()).collect()
}
