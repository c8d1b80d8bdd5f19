//! Sequences of calls of the driver API, and findings of the fuzz target `driver`: see `support/sequence.rs`
//! and `support/calls.rs`. A test that fails prints the calls of its sequence.

#[path = "support/calls.rs"]
mod calls;
#[path = "support/sequence.rs"]
mod sequence;
mod support;
#[path = "support/table.rs"]
mod table;
#[path = "support/world.rs"]
mod world;

use std::sync::{Mutex, PoisonError};
use support::Api;

/// The number of random sequences.
const SEQUENCES: u64 = 60;

/// Only one sequence runs at a time.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn sequences_of_calls_leave_nothing_behind() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
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
        println!("# A sequence");
        sequence::runs(api, &bytes, |step| {
            let text = step.to_string();
            println!("{text}");
            assert_eq!(calls::parse(&text).as_deref(), Ok(std::slice::from_ref(step)));
        });
    }
}

#[test]
fn findings_leave_nothing_behind() {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let api = Api::open();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/findings");
    let mut count = 0;
    for file in std::fs::read_dir(folder).expect("the folder is there") {
        let path = file.expect("a folder").path();
        let text = std::fs::read_to_string(&path).expect("a text");
        println!("# {}", path.display());
        let steps = calls::parse(&text).unwrap_or_else(|line| panic!("`{line}` is no call"));
        assert!(!steps.is_empty(), "there is no call");
        let mut made = Vec::new();
        sequence::runs(api, text.as_bytes(), |step| {
            println!("{step}");
            made.push(step.clone());
        });
        assert_eq!(made, steps);
        count += 1;
    }
    assert!(count > 0, "{folder} is empty");
}

#[test]
fn texts_of_calls_are_unambiguous() {
    let text = "cuGraphAddKernelNode\n# A comment.\n\ncuMemcpyDtoH_v2 to=freed bytes=0xffffffff\n\
        cuStreamDestroy_v2 stream=dead:stream\ncuGraphDestroyNode node=call1.node\n\
        cuMemcpy3D_v2 given=[6=device+65535,16=low:255,20=high:3]\nenter\nstrike\n";
    let steps = calls::parse(text).expect("each line is a call");
    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert_eq!(steps.iter().map(ToString::to_string).collect::<Vec<_>>(), lines);
    for wrong in [
        "cuNothing",
        "cuMemcpyDtoH_v2 top=1",
        "cuMemcpyDtoH_v2 to",
        "cuMemcpyDtoH_v2 to=somewhere",
        "cuMemcpyDtoH_v2 to=1x",
        "cuMemcpy3D_v2 given=[6=freed",
        "cuMemcpy3D_v2 given=[40=1]",
        "cuMemcpy3D_v2 given=[1=low:0x100000000]",
        "cuGraphDestroyNode node=call1.nothing",
        "strike context",
    ] {
        assert_eq!(calls::parse(wrong), Err(wrong));
    }
}
