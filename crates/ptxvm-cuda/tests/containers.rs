//! Containers of device code that claim more than they contain: memory stays within a bound of their size.

#[path = "support/containers.rs"]
mod containers;
#[path = "support/counted.rs"]
mod counted;
mod support;

use ptxvm::container::{self, Packing, write_packed};
use support::Api;

/// A frame of zstd that requests a window of 120 MiB for five bytes.
#[test]
fn a_window_is_no_larger_than_texts_are() {
    // No size of the content; a window of 2^26 * 15/8 bytes; one last block, a byte five times.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 16 << 3 | 7];
    frame.extend(&(1 | 1 << 1 | 5u32 << 3).to_le_bytes()[..3]);
    frame.push(b'\n');
    let bytes = write_packed("kernel.cu", 70, Packing::Zstd, &frame, 5);
    let entries = container::entries(&bytes).expect("a container");
    let (text, peak) = counted::peak(|| entries[0].text());
    assert!(text.is_err(), "{text:?}");
    assert!(peak < 1 << 20, "{peak} bytes");
    // The same with a window of 1 MiB.
    let small: Vec<u8> = [&frame[..5], &[10 << 3], &frame[6..]].concat();
    let bytes = write_packed("kernel.cu", 70, Packing::Zstd, &small, 5);
    let entries = container::entries(&bytes).expect("a container");
    assert_eq!(entries[0].text().as_deref(), Ok("\n\n\n\n\n"));
}

/// Sixty groups of 16 MiB each, in 40 KiB.
#[test]
fn groups_together_unpack_to_no_more_than_one_payload_may() {
    let (block, count) = (128u32 << 10, 128);
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3];
    for index in 1..=count {
        let last = u32::from(index == count);
        frame.extend(&(last | 1 << 1 | block << 3).to_le_bytes()[..3]);
        frame.push(b'\n');
    }
    let mut group = write_packed("", 0, Packing::Zstd, &frame, u64::from(block) * count as u64);
    // A group without members: the bytes after its header are zero.
    group[16..18].copy_from_slice(&0x100u16.to_le_bytes());
    let name_and_rest = 64 + 8 + 16;
    assert_eq!(group[20..24], (name_and_rest as u32).to_le_bytes());
    group[80..88].fill(0);
    assert!(container::entries(&group).is_ok());
    let (read, peak) = counted::peak(|| container::entries(&group.repeat(60)).map(|entries| entries.len()));
    assert!(read.is_err() || peak < 256 << 20, "{read:?}");
    assert!(peak < 256 << 20, "{peak} bytes");
}

#[test]
fn damaged_containers_load_link_or_are_refused() {
    let (api, _context) = Api::with_context();
    let text = b".version 6.4\n.target sm_70\n.address_size 64\n.visible .entry k() { ret; }\n";
    let whole = write_packed("kernel.cu", 70, Packing::Raw, text, 0);
    containers::loads(api, b"\x7fELF");
    for at in 0..whole.len() {
        for value in [0, 0x80, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            containers::reads(&bytes);
            containers::loads(api, &bytes);
        }
    }
}
