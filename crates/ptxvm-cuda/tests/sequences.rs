//! Sequences of calls of the driver API, and findings of the fuzz target `driver`: see `support/sequence.rs`.

#[path = "support/sequence.rs"]
mod sequence;
mod support;
#[path = "support/table.rs"]
mod table;
#[path = "support/world.rs"]
mod world;

use support::Api;

/// The number of random sequences.
const SEQUENCES: u64 = 60;

#[test]
fn sequences_of_calls_leave_nothing_behind() {
    let api = Api::open();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..SEQUENCES {
        let random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        let bytes: Vec<u8> = std::iter::repeat_with(random).take(6 * 40).collect();
        sequence::runs(api, &bytes);
    }
    for name in
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/findings")).into_iter().flatten()
    {
        let bytes = std::fs::read(name.expect("a folder").path()).expect("a file");
        sequence::runs(api, &bytes);
    }
}
