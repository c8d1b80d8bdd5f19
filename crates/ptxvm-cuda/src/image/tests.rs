//! Containers of device code in every form that compilers use, intact and with every byte damaged.

use super::{Image, Refusal};
use crate::ffi::Pointer;
use ptxvm::container::{self, Kind, Packing, Reach, write_packed};

fn pointer<T>(to: *const T) -> Pointer {
    Pointer::from_address(to.expose_provenance() as u64)
}

const TEXT: &str =
    ".version 6.4\n.target sm_70\n.address_size 64\n// the same words, the same words, the same words\n";

/// Compresses with zstd's "raw" and "RLE" blocks, written by hand, so the decoder is not compared with its
/// own encoder.
fn zstd(text: &[u8]) -> Vec<u8> {
    // A frame: magic number; descriptor (single segment, size in 4 bytes); size.
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0b1010_0000];
    out.extend((text.len() as u32 + 5).to_le_bytes());
    // A block header: last, type, size. Type 0 contains the bytes themselves, type 1 one repeated byte.
    let block = |last: u32, kind: u32, size: usize| (last | kind << 1 | (size as u32) << 3).to_le_bytes();
    out.extend(&block(0, 0, text.len())[..3]);
    out.extend(text);
    out.extend(&block(1, 1, 5)[..3]);
    out.push(b'\n');
    out
}

/// Compresses with LZ4 by hand: literals, then a repetition of the last five bytes, then the last literals.
fn lz4(text: &[u8]) -> Vec<u8> {
    let mut out = vec![0xf0 | (9 - 4)];
    let mut rest = text.len() - 15;
    while rest >= 255 {
        out.push(255);
        rest -= 255;
    }
    out.push(rest as u8);
    out.extend(text);
    out.extend(5u16.to_le_bytes());
    out.push(5 << 4);
    out.extend(b"\n\n\n\n\n");
    out
}

fn one(packing: Packing, payload: &[u8], unpacked: usize) -> Vec<u8> {
    write_packed("kernel.cu", 70, packing, payload, unpacked as u64)
}

fn texts(bytes: &[u8], sm: u32) -> Result<Vec<String>, Refusal> {
    let image = Image::capture(pointer(bytes.as_ptr()))?;
    Ok(image.texts(sm)?.into_iter().map(|text| text.text).collect())
}

#[test]
fn text_comes_out_of_every_packing() {
    assert_eq!(texts(&one(Packing::Raw, TEXT.as_bytes(), 0), 80), Ok(vec![TEXT.to_owned()]));
    let packed = zstd(TEXT.as_bytes());
    assert_eq!(
        texts(&one(Packing::Zstd, &packed, TEXT.len() + 5), 80),
        Ok(vec![format!("{TEXT}\n\n\n\n\n")])
    );
    let tail = &TEXT[TEXT.len() - 5..];
    let expected = format!("{TEXT}{tail}{}\n\n\n\n\n", &tail[..4]);
    let packed = lz4(TEXT.as_bytes());
    assert_eq!(texts(&one(Packing::Lz4, &packed, expected.len()), 80), Ok(vec![expected]));
}

#[test]
fn of_several_texts_the_latest_that_the_device_can_run_is_taken() {
    let part = |sm: u32| container::write("kernel.cu", sm, &format!("// {sm}"));
    let all: Vec<u8> = [75, 52, 90, 80].iter().flat_map(|sm| part(*sm)).collect();
    let chosen = |sm| Image::Containers(vec![all.clone()]).texts(sm).map(|texts| texts[0].text.clone());
    assert_eq!(chosen(80).as_deref(), Ok("// 80"));
    assert_eq!(chosen(89).as_deref(), Ok("// 80"));
    assert_eq!(chosen(79).as_deref(), Ok("// 75"));
    assert_eq!(chosen(120).as_deref(), Ok("// 90"));
    let Err(Refusal::NoBinary(line)) = chosen(50) else { panic!("nothing suits sm_50") };
    assert!(line.contains("PTXVM_SM=52") && !line.contains('\n'), "{line}");
}

#[test]
fn architectures_with_a_letter_do_not_run_on_later_ones() {
    let mut bytes = container::write("kernel.cu", 90, "//");
    // The flags are 40 bytes into the entry, which is after a header of 16 bytes.
    bytes[16 + 42] |= 0x10;
    let entries = container::entries(&bytes).expect("a container");
    assert_eq!((entries[0].reach, entries[0].suits(90), entries[0].suits(100)), (Reach::Exact, true, false));
    bytes[16 + 42] = 0x20;
    let entries = container::entries(&bytes).expect("a container");
    assert_eq!((entries[0].suits(93), entries[0].suits(89), entries[0].suits(100)), (true, false, false));
}

#[test]
fn machine_code_is_no_binary_with_one_line_that_helps() {
    let mut bytes = container::write("kernel.cu", 80, "//");
    bytes[16] = 2;
    assert_eq!(container::entries(&bytes).expect("a container")[0].kind, Kind::Elf);
    for image in [Image::of_bytes(&bytes), Image::of_bytes(b"\x7fELF\x02\x01"), Image::of_bytes(b"\x7fELF")] {
        let Err(Refusal::NoBinary(line)) = image.and_then(|image| image.texts(80)) else {
            panic!("machine code is refused")
        };
        assert!(line.contains("compute_80") && !line.contains('\n'), "{line}");
    }
}

#[test]
fn a_group_unpacks_to_its_members() {
    // Two sub-headers of 80 bytes: 64 bytes, the location of the options, and the (empty) options padded to 8
    // bytes.
    let members = ["// seventy five", "// eighty"];
    let payload: Vec<u8> = members.iter().flat_map(|text| format!("{text:\0<16}").into_bytes()).collect();
    let mut heads = Vec::new();
    for (index, sm) in [75u32, 80].into_iter().enumerate() {
        let mut head = vec![0u8; 80];
        head[0] = 1;
        head[4..8].copy_from_slice(&(index as u32 * 16).to_le_bytes());
        head[8] = 16;
        head[20] = 64;
        head[28..32].copy_from_slice(&sm.to_le_bytes());
        head[64] = 72;
        heads.extend(head);
    }
    let mut bytes = write_packed("", 0, Packing::Raw, &[], 0);
    bytes.truncate(16 + 64);
    bytes[17] = 1;
    bytes[16] = 0;
    bytes.extend(2u32.to_le_bytes());
    bytes.extend((heads.len() as u32 + 8).to_le_bytes());
    bytes.extend(&heads);
    bytes.extend(&payload);
    let header = (64 + 8 + heads.len()) as u32;
    bytes[20..24].copy_from_slice(&header.to_le_bytes());
    bytes[24..32].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    let size = bytes.len() as u64 - 16;
    bytes[8..16].copy_from_slice(&size.to_le_bytes());
    assert_eq!(texts(&bytes, 79), Ok(vec![members[0].to_owned()]));
    assert_eq!(texts(&bytes, 80), Ok(vec![members[1].to_owned()]));
}

#[test]
fn a_wrapper_leads_to_its_containers() {
    let (first, second) =
        (container::write("a.cu", 70, "// first"), container::write("b.cu", 70, "// second"));
    let list = [second.as_ptr().expose_provenance() as u64, 0];
    let texts = |version: u64| {
        let data = first.as_ptr().expose_provenance() as u64;
        let wrapper =
            [u64::from(super::WRAPPER_MAGIC) | version << 32, data, list.as_ptr().expose_provenance() as u64];
        let image = Image::capture(pointer(wrapper.as_ptr())).expect("containers");
        image.texts(80).expect("PTX").into_iter().map(|text| text.text).collect::<Vec<_>>()
    };
    assert_eq!(texts(1), ["// first"]);
    assert_eq!(texts(2), ["// first", "// second"]);
}

#[test]
fn what_a_device_linker_linked_is_taken_once() {
    let text = |name: &str| container::write(name, 80, &format!("// {name}"));
    let machine_code = || {
        let mut bytes = text("code");
        bytes[16] = 2;
        bytes
    };
    let texts = |linked: &[u8], members: &[&[u8]]| {
        let address = |bytes: &&[u8]| bytes.as_ptr().expose_provenance() as u64;
        let list: Vec<_> = members.iter().map(address).chain([0]).collect();
        let list_at = list.as_ptr().expose_provenance() as u64;
        let wrapper = [u64::from(super::WRAPPER_MAGIC) | 2 << 32, address(&linked), list_at];
        let image = Image::capture(pointer(wrapper.as_ptr())).expect("containers");
        Some(image.texts(80).ok()?.into_iter().map(|text| text.text).collect::<Vec<_>>().join(" "))
    };
    let (a, b, code) = (text("a"), text("b"), machine_code());
    assert_eq!(texts(&code, &[&a, &b]).as_deref(), Some("// a // b"));
    assert_eq!(texts(&a, &[&code, &code]).as_deref(), Some("// a"));
    // If a part of the program is machine code only, the program as PTX is incomplete.
    assert_eq!(texts(&code, &[&a, &code]), None);
    assert_eq!(texts(&code, &[&code]), None);
    // nvcc's library for launches by kernels has machine code, and PTX for the latest device only.
    let later = [&code[..], &container::write("library", 121, "// library")[16..]].concat();
    let later = [&code[..8], &(later.len() as u64 - 16).to_le_bytes(), &later[16..]].concat();
    assert_eq!(texts(&code, &[&a, &b, &later]).as_deref(), Some("// a // b"));
    assert_eq!(texts(&code, &[&later]), None);
}

#[test]
fn linked_texts_in_a_container_come_apart() {
    let linked = [("a", "// a"), ("b", "// b")].map(|(name, text)| (name.to_owned(), text.to_owned()));
    let bytes = container::write("image", 80, &container::Bundle::write(&linked, None));
    assert_eq!(super::texts_of_bytes(&bytes, 80), Ok(linked.to_vec()));
}

#[test]
fn short_texts_and_null_are_read_as_far_as_they_go() {
    for text in [c"", c"P", c"\x50\xed", c".ve"] {
        let image = Image::capture(pointer(text.as_ptr()));
        assert_eq!(image, Ok(Image::Text(text.to_string_lossy().into_owned())));
    }
    assert!(matches!(Image::capture(Pointer::from_address(0)), Err(Refusal::Invalid(_))));
}

/// Every truncation, and every byte set to several values: a result or an error, never a panic, and never
/// more memory than allowed.
#[test]
fn damaged_containers_are_refused_or_read() {
    let all = [
        one(Packing::Raw, TEXT.as_bytes(), 0),
        one(Packing::Zstd, &zstd(TEXT.as_bytes()), TEXT.len() + 5),
        one(Packing::Lz4, &lz4(TEXT.as_bytes()), TEXT.len() + 14),
    ];
    let read = |bytes: &[u8]| {
        if let Ok(entries) = container::entries(bytes) {
            for entry in entries {
                let _either = entry.text();
            }
        }
    };
    for whole in &all {
        for cut in 0..whole.len() {
            read(&whole[..cut]);
            assert!(cut < 16 || container::entries(&whole[..cut]).is_err(), "cut at {cut}");
        }
        for at in 0..whole.len() {
            for value in [0, 1, 2, 0x40, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                read(&bytes);
            }
        }
    }
}

/// Random bytes.
#[test]
fn noise_is_refused_or_read() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for _ in 0..20_000 {
        let mut bytes = container::write("k", 70, TEXT);
        for _ in 0..next() % 24 {
            let at = next() as usize % 120;
            bytes[at] = next() as u8;
        }
        if let Ok(entries) = container::entries(&bytes) {
            for entry in entries {
                let _either = entry.text();
            }
        }
    }
}

/// A group whose sub-headers all refer to the same large part. Parts are not copied.
#[test]
fn groups_of_overlapping_parts_take_no_memory() {
    let payload = vec![b'x'; 1 << 20];
    let mut heads = Vec::new();
    for _ in 0..20_000 {
        let mut head = vec![0u8; 80];
        head[0] = 1;
        head[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
        head[20] = 64;
        head[28] = 80;
        // The name, too, is all of the rest.
        head[36..40].copy_from_slice(&u32::MAX.to_le_bytes());
        head[64] = 72;
        heads.extend(head);
    }
    let mut bytes = write_packed("", 0, Packing::Raw, &[], 0);
    bytes.truncate(16 + 64);
    (bytes[16], bytes[17]) = (0, 1);
    bytes.extend(20_000u32.to_le_bytes());
    bytes.extend((heads.len() as u32 + 8).to_le_bytes());
    bytes.extend(&heads);
    bytes.extend(&payload);
    let header = (64 + 8 + heads.len()) as u32;
    bytes[20..24].copy_from_slice(&header.to_le_bytes());
    bytes[24..32].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    let size = bytes.len() as u64 - 16;
    bytes[8..16].copy_from_slice(&size.to_le_bytes());
    let entries = container::entries(&bytes).expect("entries");
    assert_eq!(entries.len(), 20_000);
    assert!(entries.iter().all(|entry| entry.name.len() <= 3 * 1024));
}

#[test]
fn payloads_that_claim_to_be_bombs_are_refused() {
    for packing in [Packing::Zstd, Packing::Lz4] {
        let bytes = write_packed("k", 70, packing, &zstd(TEXT.as_bytes()), 1 << 30);
        let entries = container::entries(&bytes).expect("entries");
        assert!(entries[0].text().is_err());
    }
}
