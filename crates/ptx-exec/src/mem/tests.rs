//! Memory compared with a model, and the accesses that a view allows and refuses.

use super::{Class, LocalLayout, Memory, MemoryError, View};
use crate::lanes::{FULL, Lane, lanes_of};
use crate::trap::FaultKind;
use ptx::check::module::AddressSize;
use ptx::isa::{Sem, Space};
use std::collections::BTreeMap;
use std::sync::Arc;

mod devices;

fn memory() -> Arc<Memory> {
    Memory::new(AddressSize::Bits64).expect("an address range")
}

/// A view with windows of 256 bytes shared, 64 bytes local for each lane and 16 bytes of parameters.
struct Windows {
    view: View,
    shared: super::Window,
    local: super::Window,
}

fn windows(memory: &Arc<Memory>) -> Windows {
    windows_of(memory, LocalLayout::ByWord)
}

fn windows_of(memory: &Arc<Memory>, layout: LocalLayout) -> Windows {
    let shared = memory.shared_window(256).expect("memory");
    let local = memory.local_window(32 * 64).expect("memory");
    let params = memory.alloc(Class::Param, 16, 16, "parameters").expect("memory");
    memory.write(params, &[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]).expect("in bounds");
    let mut view = View::new(memory);
    view.set_shared(shared.start(), 256);
    view.set_local(local.start(), 64, layout);
    view.set_local_top(64);
    view.set_params(params, 16);
    Windows { view, shared, local }
}

fn rows(f: impl Fn(u64) -> u64) -> Lane<u64> {
    Lane(std::array::from_fn(|lane| f(lane as u64)))
}

fn load<T: super::Cell + Default>(
    view: &mut View,
    space: Space,
    addrs: &Lane<u64>,
    mask: u32,
) -> Result<Lane<T>, FaultKind> {
    let mut out = Lane::splat(T::default());
    view.load(space, addrs, mask, Sem::Weak, &mut out).map_err(|fault| fault.kind)?;
    Ok(out)
}

/// Vectors of native code reach over the ends of a window, with inactive lanes. The bytes there must have
/// pages: without one, the test would end with a signal.
#[test]
fn pages_are_present_on_both_sides_of_a_window() {
    let memory = memory();
    for bytes in [4, 256, 48 << 10, 64 << 10] {
        let windows = [memory.shared_window(bytes), memory.local_window(bytes)];
        for window in windows.map(|window| window.expect("memory")) {
            let end = window.start() + window.bytes();
            let beside = [window.start() - 1, window.start() - 64, end, end + 63];
            assert_eq!(beside.map(|address| memory.checked_place::<u8>(address).load()), [0; 4]);
        }
    }
}

#[test]
fn two_allocations_and_what_is_beside_them() {
    let memory = memory();
    let places = [40, 64, 4].map(|bytes| memory.alloc(Class::Global, bytes, 1, "words").expect("memory"));
    let constant = memory.alloc(Class::Const, 64, 1, "constants").expect("memory");
    for (at, bytes) in places.into_iter().zip([40_u64, 64, 4]) {
        for word in 0..bytes / 4 {
            memory.write(at + 4 * word, &((at + word) as u32).to_le_bytes()).expect("in bounds");
        }
    }
    let mut view = View::new(&memory);
    let [a, b, c] = places;
    let word = |lane: u64| if lane.is_multiple_of(3) { a + lane % 10 * 4 } else { b + lane % 16 * 4 };
    let expected = |lane: u64| if lane.is_multiple_of(3) { a + lane % 10 } else { b + lane % 16 };
    for mask in [FULL, 0x0f00_a015] {
        let loaded: Lane<u32> = load(&mut view, Space::Global, &rows(word), mask).expect("in bounds");
        assert!(lanes_of(mask).all(|lane| loaded.0[lane] == expected(lane as u64) as u32));
        // One lane accesses a third allocation, behind either, no allocation, an odd address, constants.
        let with = |address: u64| rows(move |lane| if lane == 2 { address } else { word(lane) });
        let mut one = |address: u64| load::<u32>(&mut view, Space::Global, &with(address), mask | 4);
        assert_eq!(one(c).map(|loaded| loaded.0[2]), Ok(c as u32));
        for outside in [a + 40, b + 64, a - 4, 16, constant] {
            assert_eq!(one(outside).err(), Some(FaultKind::IllegalAddress));
        }
        assert_eq!(one(b + 2).err(), Some(FaultKind::Misaligned));
        let mut store = |space: Space, addrs: &Lane<u64>| {
            view.store(space, addrs, mask | 4, Sem::Weak, &Lane::splat(7_u32)).map_err(|fault| fault.kind)
        };
        assert_eq!(store(Space::Generic, &with(constant)), Err(FaultKind::ReadOnly));
        assert_eq!(store(Space::Generic, &with(b + 64)), Err(FaultKind::IllegalAddress));
    }
}

#[test]
fn allocations_are_zero_apart_and_reused() {
    let memory = memory();
    let a = memory.alloc(Class::Global, 100, 1, "a").expect("memory");
    let b = memory.alloc(Class::Global, 0, 1, "b").expect("memory");
    let c = memory.alloc(Class::Global, 5, 4096, "c").expect("memory");
    assert!(a.is_multiple_of(256) && b >= a + 100 + 256 && c >= b + 256 && c.is_multiple_of(4096));
    memory.fill(a, 0xff, 100).expect("in bounds");
    memory.free(a).expect("allocated");
    assert_eq!(memory.free(a), Err(MemoryError::NotAllocated { address: a }));
    let again = memory.alloc(Class::Global, 60, 1, "again").expect("memory");
    assert_eq!(again, a);
    let mut bytes = [1; 60];
    memory.read(again, &mut bytes).expect("in bounds");
    assert_eq!(bytes, [0; 60]);
}

#[test]
fn large_allocations_are_zero_when_reused() {
    let memory = memory();
    for _ in 0..3 {
        let at = memory.alloc(Class::Global, (3 << 20) + 77, 1, "large").expect("memory");
        for offset in [0, 1 << 20, (3 << 20) + 76] {
            let mut byte = [9];
            memory.read(at + offset, &mut byte).expect("in bounds");
            assert_eq!(byte, [0]);
        }
        memory.fill(at, 0xee, (3 << 20) + 77).expect("in bounds");
        memory.free(at).expect("allocated");
    }
}

#[test]
fn what_does_not_fit_is_an_error() {
    let memory = memory();
    for bytes in [1 << 45, u64::MAX, u64::MAX - 300] {
        assert_eq!(memory.alloc(Class::Global, bytes, 1, "x"), Err(MemoryError::OutOfMemory { bytes }));
    }
    assert!(memory.alloc(Class::Global, 8, 1, "x").is_ok());
}

#[test]
fn narrow_addresses_fit_32_bits() {
    let memory = Memory::new(AddressSize::Bits32).expect("an address range");
    let windows = windows(&memory);
    let a = memory.alloc(Class::Global, 1 << 20, 1, "a").expect("memory");
    for end in [a + (1 << 20), windows.shared.start() + 256, windows.local.start() + 2048] {
        assert!(end <= 1 << 32);
    }
}

#[test]
fn the_host_copies_at_any_alignment() {
    let memory = memory();
    let at = memory.alloc(Class::Global, 100, 1, "a").expect("memory");
    for start in 0..9u64 {
        for length in 0..30u64 {
            memory.fill(at, 0xaa, 100).expect("in bounds");
            let bytes: Vec<u8> = (0..length as u8).map(|b| b + 1).collect();
            memory.write(at + start, &bytes).expect("in bounds");
            let mut all = [0; 100];
            memory.read(at, &mut all).expect("in bounds");
            let mut expected = [0xaa; 100];
            expected[start as usize..(start + length) as usize].copy_from_slice(&bytes);
            assert_eq!(all, expected);
            memory.fill(at + start, 0x55, length).expect("in bounds");
            memory.read(at, &mut all).expect("in bounds");
            let filled = expected.iter().enumerate();
            let filled = filled.map(|(i, byte)| match (start..start + length).contains(&(i as u64)) {
                true => 0x55,
                false => *byte,
            });
            assert!(filled.eq(all));
            memory.write(at + start, &bytes).expect("in bounds");
            let mut part = vec![0; length as usize];
            memory.read(at + start, &mut part).expect("in bounds");
            assert_eq!(part, bytes);
        }
    }
    assert!(matches!(memory.write(at + 99, &[1, 2]), Err(MemoryError::OutOfBounds { bytes: 2, .. })));
}

#[test]
fn nearest_says_which_allocation_and_how_far() {
    let memory = memory();
    assert_eq!(memory.nearest(5), "nothing is allocated");
    let a = memory.alloc(Class::Global, 16, 1, "buffer `a`").expect("memory");
    let b = memory.alloc(Class::Global, 16, 1, "buffer `b`").expect("memory");
    let says = |address: u64, name: &str, how: &str| {
        let text = memory.nearest(address);
        assert!(text.starts_with(name) && text.ends_with(how), "{text}");
    };
    says(a + 3, "buffer `a`, 16 bytes at 0x", "3 bytes into it");
    says(a + 20, "buffer `a`", "4 bytes past its end");
    says(b - 1, "buffer `b`", "1 bytes before it");
    says(1 << 60, "buffer `b`", "bytes past its end");
    memory.rename(b, "buffer #2");
    says(b, "buffer #2", "0 bytes into it");
}

#[test]
fn off_by_one_byte_traps_in_every_space() {
    let memory = memory();
    let mut w = windows(&memory);
    let global = memory.alloc(Class::Global, 130, 1, "g").expect("memory");
    let constant = memory.alloc(Class::Const, 132, 1, "c").expect("memory");
    let bad = Some(FaultKind::IllegalAddress);
    // Lane 31's word ends 2 bytes past the end, in a run.
    assert_eq!(load::<u32>(&mut w.view, Space::Global, &rows(|l| global + 4 * l + 4), FULL).err(), bad);
    assert_eq!(load::<u32>(&mut w.view, Space::Global, &rows(|l| global + 4 * l), FULL).err(), None);
    assert_eq!(load::<u16>(&mut w.view, Space::Global, &rows(|_| global + 128), 1).err(), None);
    assert_eq!(load::<u16>(&mut w.view, Space::Global, &rows(|_| global + 130), 1).err(), bad);
    assert_eq!(load::<u8>(&mut w.view, Space::Generic, &rows(|_| global - 1), 1).err(), bad);
    assert_eq!(load::<u32>(&mut w.view, Space::Const, &rows(|_| constant + 128), FULL).err(), None);
    assert_eq!(load::<u8>(&mut w.view, Space::Const, &rows(|_| constant + 132), FULL).err(), bad);
    for (space, end) in [(Space::Shared, 256), (Space::Local, 64), (Space::Param, 16)] {
        assert!(load::<u64>(&mut w.view, space, &rows(|_| end - 8), FULL).is_ok());
        assert_eq!(load::<u8>(&mut w.view, space, &rows(|_| end), 1).err(), bad);
        assert!(load::<u64>(&mut w.view, space, &rows(|_| end), FULL).is_err());
        assert!(load::<u64>(&mut w.view, space, &rows(|_| u64::MAX - 7), 1).is_err());
        assert!(load::<u8>(&mut w.view, space, &rows(|l| if l == 31 { end } else { 0 }), FULL).is_err());
    }
    // State spaces are separate; generic addresses reach all memory that belongs to this warp.
    assert!(load::<u8>(&mut w.view, Space::Global, &rows(|_| constant), 1).is_err());
    assert!(load::<u8>(&mut w.view, Space::Const, &rows(|_| global), 1).is_err());
    assert!(load::<u8>(&mut w.view, Space::Global, &rows(|_| w.shared.start()), 1).is_err());
    for space in [Space::Shared, Space::Local, Space::Param] {
        let generic = w.view.cvta(space, &rows(|_| 8));
        assert!(load::<u64>(&mut w.view, Space::Generic, &generic, FULL).is_ok(), "{space:?}");
        assert_eq!(w.view.cvta_to(space, &generic), rows(|_| 8));
        assert_eq!(w.view.isspacep(space, &generic, 0xff), 0xff);
        assert_eq!(w.view.isspacep(Space::Global, &generic, 0xff), 0);
    }
    // Another lane's local memory, and another CTA's window.
    let other = rows(|l| w.local.start() + 64 * (l ^ 1));
    assert!(load::<u8>(&mut w.view, Space::Generic, &other, FULL).is_err());
    let stranger = memory.shared_window(256).expect("memory");
    assert!(load::<u8>(&mut w.view, Space::Generic, &rows(|_| stranger.start()), 1).is_err());
}

#[test]
fn a_fault_names_the_lowest_lane_and_changes_nothing() {
    let memory = memory();
    let mut view = View::new(&memory);
    let at = memory.alloc(Class::Global, 64, 1, "g").expect("memory");
    let addrs = rows(|l| at + 4 * l);
    let fault =
        view.store(Space::Global, &addrs, FULL, Sem::Weak, &Lane::splat(7u32)).expect_err("out of bounds");
    assert_eq!((fault.lane, fault.kind), (16, FaultKind::IllegalAddress));
    let access = fault.access.expect("an access");
    assert_eq!((access.address, access.bytes, access.space, access.write), (at + 64, 4, Space::Global, true));
    let mut bytes = [1; 64];
    memory.read(at, &mut bytes).expect("in bounds");
    assert_eq!(bytes, [0; 64]);
    assert!(view.store(Space::Global, &addrs, 0xffff, Sem::Weak, &Lane::splat(7u32)).is_ok());
    assert!(view.store(Space::Global, &rows(|_| 0), 0, Sem::Weak, &Lane::splat(7u32)).is_ok());
}

#[test]
fn misaligned_and_read_only_accesses_trap() {
    let memory = memory();
    let mut w = windows(&memory);
    let global = memory.alloc(Class::Global, 1024, 1, "g").expect("memory");
    let constant = memory.alloc(Class::Const, 128, 1, "c").expect("memory");
    assert_eq!(
        load::<u32>(&mut w.view, Space::Global, &rows(|l| global + 2 + 4 * l), FULL),
        Err(FaultKind::Misaligned)
    );
    assert_eq!(load::<u64>(&mut w.view, Space::Shared, &rows(|_| 4), 2), Err(FaultKind::Misaligned));
    let [mut a, mut b] = [Lane::splat(0u32); 2];
    // A vector must be aligned to its total size.
    let fault = w.view.load_vector(Space::Global, &rows(|_| global + 4), 1, Sem::Weak, [&mut a, &mut b]);
    assert_eq!(fault.expect_err("misaligned").kind, FaultKind::Misaligned);
    let mut store = |space, address| {
        let stored = w.view.store(space, &rows(|_| address), 4, Sem::Weak, &Lane::splat(1u8));
        stored.err().map(|fault| fault.kind)
    };
    assert_eq!(store(Space::Const, constant), Some(FaultKind::ReadOnly));
    assert_eq!(store(Space::Generic, constant), Some(FaultKind::ReadOnly));
    assert_eq!(store(Space::Param, 0), Some(FaultKind::ReadOnly));
    assert_eq!(store(Space::Global, constant), Some(FaultKind::IllegalAddress));
    assert_eq!(store(Space::Global, global), None);
}

#[test]
fn a_freed_buffer_is_out_of_bounds_at_once() {
    let memory = memory();
    let mut view = View::new(&memory);
    let at = memory.alloc(Class::Global, 64, 1, "g").expect("memory");
    assert!(load::<u8>(&mut view, Space::Global, &rows(|l| at + l), FULL).is_ok());
    memory.free(at).expect("allocated");
    assert_eq!(load::<u8>(&mut view, Space::Global, &rows(|l| at + l), FULL), Err(FaultKind::IllegalAddress));
}

#[test]
fn the_guest_frees_only_what_malloc_gave() {
    let memory = memory();
    let mut view = View::new(&memory);
    let buffer = memory.alloc(Class::Global, 64, 1, "g").expect("memory");
    assert!(view.free(3, buffer).is_err());
    let heap = view.malloc(40);
    assert!(load::<u64>(&mut view, Space::Global, &rows(|_| heap + 32), FULL).is_ok());
    assert!(view.free(3, heap + 16).is_err());
    assert!(view.free(3, heap).is_ok());
    assert_eq!(view.free(3, heap).expect_err("freed twice").lane, 3);
    assert!(view.free(3, 0).is_ok());
    assert_eq!(view.malloc(u64::MAX), 0);
}

#[test]
fn lanes_store_in_ascending_order_and_vectors_in_element_order() {
    let memory = memory();
    let mut view = View::new(&memory);
    let at = memory.alloc(Class::Global, 1024, 1, "g").expect("memory");
    let values = Lane(std::array::from_fn(|lane| lane as u32 + 1));
    view.store(Space::Global, &rows(|_| at), FULL, Sem::Weak, &values).expect("in bounds");
    assert_eq!(load::<u32>(&mut view, Space::Global, &rows(|_| at), 1).map(|v| v.0[0]), Ok(32));
    let double = Lane(values.0.map(|v| 2 * v));
    view.store_vector(Space::Global, &rows(|l| at + 8 * l), FULL, Sem::Weak, [&values, &double])
        .expect("in bounds");
    let mut bytes = vec![0; 256];
    memory.read(at, &mut bytes).expect("in bounds");
    let expected: Vec<u8> =
        (1..=32u32).flat_map(|v| [v.to_le_bytes(), (2 * v).to_le_bytes()].concat()).collect();
    assert_eq!(bytes, expected);
    let [mut a, mut b] = [Lane::splat(9u32); 2];
    view.load_vector(
        Space::Global,
        &rows(|l| at + 8 * (31 - l)),
        0x8000_0001,
        Sem::Acquire,
        [&mut a, &mut b],
    )
    .expect("in bounds");
    assert_eq!((a.0[0], b.0[0], a.0[31], b.0[31], a.0[1], b.0[30]), (32, 64, 1, 2, 9, 9));
}

#[test]
fn lanes_access_several_allocations_and_windows_at_once() {
    let memory = memory();
    let mut w = windows(&memory);
    let sizes = [40, 4, 24];
    let starts = sizes.map(|bytes| memory.alloc(Class::Global, bytes, 1, "a").expect("memory"));
    for (number, (start, bytes)) in (1..).zip(starts.iter().zip(sizes)) {
        let words: Vec<u8> = (0..bytes as u32 / 4).flat_map(|at| (100 * number + at).to_le_bytes()).collect();
        memory.write(*start, &words).expect("in bounds");
    }
    w.view
        .store(Space::Shared, &rows(|l| 4 * l), FULL, Sem::Weak, &Lane(std::array::from_fn(|l| l as u32)))
        .expect("in bounds");
    // By allocations and by runs of lanes, the last word of each among them.
    for order in [|l: u64| l as usize % 3, |l: u64| l as usize / 11] {
        let word = |l: u64| l * 7 % (sizes[order(l)] / 4);
        let addrs = rows(|l| starts[order(l)] + 4 * word(l));
        let got = load::<u32>(&mut w.view, Space::Global, &addrs, FULL).expect("in bounds");
        let want = rows(|l| 100 * (1 + order(l) as u64) + word(l));
        assert!((0..32).all(|l| u64::from(got.0[l]) == want.0[l]), "{got:?}");
        for lane in [1, 13, 30] {
            let start = starts[order(lane as u64)];
            let shared = w.shared.start() + 4 * lane as u64;
            let with =
                |address: u64| Lane(std::array::from_fn(|l| if l == lane { address } else { addrs.0[l] }));
            let got = load::<u32>(&mut w.view, Space::Generic, &with(shared), FULL).expect("in bounds");
            assert!((0..32).all(|l| u64::from(got.0[l]) == if l == lane { l as u64 } else { want.0[l] }));
            let wrong = [
                (start + sizes[order(lane as u64)], FaultKind::IllegalAddress),
                (start - 4, FaultKind::IllegalAddress),
                (start + 2, FaultKind::Misaligned),
            ];
            for (address, kind) in wrong {
                let mut out = Lane::splat(0_u32);
                let fault = w
                    .view
                    .load(Space::Global, &with(address), FULL, Sem::Weak, &mut out)
                    .expect_err("it is wrong");
                assert_eq!((fault.kind, fault.lane as usize), (kind, lane));
            }
        }
    }
}

#[test]
fn atomics_return_old_values_in_lane_order() {
    let memory = memory();
    let mut w = windows(&memory);
    let global = memory.alloc(Class::Global, 256, 1, "g").expect("memory");
    for (space, base) in [
        (Space::Global, global),
        (Space::Shared, 0),
        (Space::Generic, global),
        (Space::Generic, w.shared.start()),
    ] {
        // All lanes at one address.
        let start = load::<u32>(&mut w.view, space, &rows(|_| base), 1).expect("in bounds").0[0];
        let old = w
            .view
            .atomic::<u32>(space, &rows(|_| base), 0xf0f0, Sem::Relaxed, |lane, old| Some(old + lane as u32))
            .expect("in bounds");
        let mut sum = start;
        for lane in lanes_of(0xf0f0) {
            assert_eq!(old.0[lane], sum);
            sum += lane as u32;
        }
        assert_eq!(load::<u32>(&mut w.view, space, &rows(|_| base), 1).map(|v| v.0[0]), Ok(sum));
        // Compare and swap: one lane finds the old value.
        let swap = |lane: usize, old: u32| (old == sum).then_some(1000 + lane as u32);
        let old = w.view.atomic(space, &rows(|_| base), FULL, Sem::AcqRel, swap).expect("in bounds");
        assert_eq!((old.0[0], old.0[1], old.0[31]), (sum, 1000, 1000));
        // Each lane at its own address.
        let old = w
            .view
            .atomic::<u64>(space, &rows(|l| base + 8 * (l % 31)), FULL, Sem::Sc, |_, old| Some(old | 1));
        let old = old.expect("in bounds");
        assert_eq!((old.0[1], old.0[30], old.0[31]), (0, 0, 1000 | 1));
        w.view.store(space, &rows(|l| base + 8 * l), FULL, Sem::Weak, &Lane::splat(0u64)).expect("in bounds");
    }
}

#[test]
fn atomics_of_many_threads_lose_nothing() {
    let memory = memory();
    let at = memory.alloc(Class::Global, 256, 1, "g").expect("memory");
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let memory = &memory;
            scope.spawn(move || {
                let mut view = View::new(memory);
                for i in 0..1000 {
                    let addrs = if i % 2 == 0 { rows(|_| at) } else { rows(|l| at + 4 * ((l + thread) % 4)) };
                    view.atomic::<u32>(Space::Global, &addrs, FULL, Sem::Relaxed, |_, old| Some(old + 1))
                        .expect("in bounds");
                }
            });
        }
    });
    let mut bytes = [0; 16];
    memory.read(at, &mut bytes).expect("in bounds");
    let sum: u32 = bytes.chunks(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).sum();
    assert_eq!(sum, 4 * 1000 * 32);
}

#[test]
fn activity_tells_waiting_from_working() {
    let memory = memory();
    let mut w = windows(&memory);
    let at = memory.alloc(Class::Global, 256, 1, "g").expect("memory");
    let addrs = rows(|_| at);
    let mut after = |act: &dyn Fn(&mut View)| {
        act(&mut w.view);
        let activity = w.view.take_activity();
        (activity.watched, activity.changed)
    };
    let ld = |sem, space| {
        move |view: &mut View| {
            let addrs = if space == Space::Global { addrs } else { Lane::splat(0) };
            view.load(space, &addrs, 1, sem, &mut Lane::splat(0u32)).expect("in bounds");
        }
    };
    assert_eq!(after(&ld(Sem::Weak, Space::Global)), (false, false));
    assert_eq!(after(&ld(Sem::Volatile, Space::Shared)), (true, false));
    assert_eq!(after(&ld(Sem::Acquire, Space::Global)), (true, false));
    let cas = |view: &mut View| {
        drop(view.atomic::<u32>(Space::Global, &addrs, 1, Sem::Relaxed, |_, old| (old == 5).then_some(1)))
    };
    assert_eq!(after(&cas), (true, false));
    let same = |view: &mut View| {
        drop(view.atomic::<u32>(Space::Global, &addrs, 1, Sem::Relaxed, |_, old| Some(old)))
    };
    assert_eq!(after(&same), (true, false));
    let add = |view: &mut View| {
        drop(view.atomic::<u32>(Space::Global, &addrs, 1, Sem::Relaxed, |_, old| Some(old + 1)))
    };
    assert_eq!(after(&add), (true, true));
    let st = |space| {
        move |view: &mut View| {
            let addrs = match space {
                Space::Global => addrs,
                Space::Generic => view.cvta(Space::Local, &Lane::splat(0)),
                _ => Lane::splat(0),
            };
            view.store(space, &addrs, FULL, Sem::Weak, &Lane::splat(0u32)).expect("in bounds");
        }
    };
    assert_eq!(after(&st(Space::Global)), (false, true));
    assert_eq!(after(&st(Space::Shared)), (false, true));
    assert_eq!(after(&st(Space::Local)), (false, false));
    assert_eq!(after(&st(Space::Generic)), (false, false));
}

#[test]
fn function_addresses_are_numbers_that_nothing_can_access() {
    let memory = memory();
    let first = memory.reserve_functions(3).expect("room");
    let other = memory.reserve_functions(2).expect("room");
    assert_eq!(Memory::function_at(first, 3, Memory::function_address(first, 2)), Some(2));
    assert_eq!(Memory::function_at(first, 3, other), None);
    assert_eq!(Memory::function_at(first, 3, first + 1), None);
    assert_eq!(Memory::function_at(first, 3, 0), None);
    let mut view = View::new(&memory);
    assert!(load::<u8>(&mut view, Space::Generic, &rows(|_| first), 1).is_err());
    assert!(memory.reserve_functions(1 << 20).is_err());
}

#[test]
fn strings_are_read_to_their_end_and_no_further() {
    let memory = memory();
    let mut view = View::new(&memory);
    let at = memory.alloc(Class::Global, 6, 1, "g").expect("memory");
    memory.write(at, b"abc\0ef").expect("in bounds");
    assert_eq!(view.read_c_string(Space::Generic, 5, at), Ok(b"abc".to_vec()));
    let fault = view.read_c_string(Space::Generic, 5, at + 4).expect_err("no end");
    assert_eq!((fault.lane, fault.access.expect("an access").address), (5, at + 6));
    assert_eq!(view.read_bytes(Space::Global, 0, at + 1, 5), Ok(b"bc\0ef".to_vec()));
}

/// Random allocations, frees and accesses of every pattern, compared with a model of bytes.
#[test]
fn random_use_agrees_with_a_model() {
    let memory = memory();
    let mut w = windows(&memory);
    let mut state = 0x1234_5678_9abc_def0u64;
    let mut random = move |n: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % n
    };
    // The model: address to byte, for every accessible byte.
    let mut model: BTreeMap<u64, u8> = BTreeMap::new();
    for at in 0..256 {
        model.insert(w.shared.start() + at, 0);
    }
    let mut live: Vec<(u64, u64)> = Vec::new();
    for _ in 0..30_000 {
        match random(10) {
            0 if live.len() < 12 => {
                let bytes = random(300);
                let at = memory.alloc(Class::Global, bytes, 1, "x").expect("memory");
                assert!(live.iter().all(|(a, n)| at >= a + n + 256 || at + bytes + 256 <= *a));
                model.extend((at..at + bytes).map(|a| (a, 0)));
                live.push((at, bytes));
            }
            1 if !live.is_empty() => {
                let (at, bytes) = live.swap_remove(random(live.len() as u64) as usize);
                memory.free(at).expect("allocated");
                model.retain(|a, _| !(at..at + bytes).contains(a));
            }
            _ => {
                let (base, bytes) = match random(live.len() as u64 + 1) as usize {
                    0 => (w.shared.start(), 256),
                    i => live[i - 1],
                };
                let width = 1u64 << random(4);
                let stride = [0, width, 2 * width, 12][random(4) as usize];
                let start = base.wrapping_add(random(bytes + 40)).wrapping_sub(8) / width * width;
                let odd = random(20) == 0;
                let scattered = random(4) == 0;
                let mut place: Vec<u64> = (0..32).map(|l| start + l * stride).collect();
                if scattered && !live.is_empty() {
                    for p in &mut place {
                        let (at, n) = live[random(live.len() as u64) as usize];
                        *p = (at + random(n + 9)) / width * width;
                    }
                }
                if odd {
                    place[random(32) as usize] += 1;
                }
                let addrs = rows(|l| place[l as usize]);
                let mask = match random(3) {
                    0 => FULL,
                    1 => 1 << random(32),
                    _ => random(1 << 32) as u32,
                };
                let write = random(2) == 0;
                let bad =
                    |a: u64| !a.is_multiple_of(width) || (0..width).any(|i| !model.contains_key(&(a + i)));
                let wrong = lanes_of(mask).find(|l| bad(place[*l]));
                let values: [u64; 32] =
                    std::array::from_fn(|l| 0x0101_0101_0101_0101u64.wrapping_mul(l as u64 + random(97)));
                let result = access(&mut w.view, width, &addrs, mask, write.then_some(&values));
                match (wrong, result) {
                    (Some(lane), Err(found)) => assert_eq!(usize::from(found), lane),
                    (None, Ok(read)) => {
                        for lane in lanes_of(mask) {
                            for i in 0..width {
                                let byte = model.get_mut(&(place[lane] + i)).expect("checked");
                                if write {
                                    *byte = (values[lane] >> (8 * i)) as u8;
                                } else {
                                    assert_eq!((read[lane] >> (8 * i)) as u8, *byte);
                                }
                            }
                        }
                    }
                    (wrong, result) => panic!("model {wrong:?}, memory {result:?}"),
                }
            }
        }
    }
}

/// A load or store of `width` bytes by a generic address; the lane at fault otherwise.
fn access(
    view: &mut View,
    width: u64,
    addrs: &Lane<u64>,
    mask: u32,
    write: Option<&[u64; 32]>,
) -> Result<[u64; 32], u8> {
    fn typed<T: super::Cell + Default + Into<u64>>(
        view: &mut View,
        addrs: &Lane<u64>,
        mask: u32,
        write: Option<[T; 32]>,
    ) -> Result<[u64; 32], u8> {
        let mut out = Lane::splat(T::default());
        let done = match write {
            Some(values) => view.store(Space::Generic, addrs, mask, Sem::Weak, &Lane(values)),
            None => view.load(Space::Generic, addrs, mask, Sem::Weak, &mut out),
        };
        done.map(|()| out.0.map(Into::into)).map_err(|fault| fault.lane)
    }
    match width {
        1 => typed(view, addrs, mask, write.map(|w| w.map(|v| v as u8))),
        2 => typed(view, addrs, mask, write.map(|w| w.map(|v| v as u16))),
        4 => typed(view, addrs, mask, write.map(|w| w.map(|v| v as u32))),
        _ => typed(view, addrs, mask, write.copied()),
    }
}

#[test]
fn memory_of_the_host_is_reached_only_where_it_was_lent() {
    let memory = memory();
    let words: Vec<u64> = (0..64).collect();
    let at = words.as_ptr().expose_provenance() as u64;
    let addrs = rows(|lane| at + 8 * lane);
    let mut view = View::new(&memory);
    let refused = Err(FaultKind::IllegalAddress);
    assert_eq!(load::<u64>(&mut view, Space::Global, &addrs, FULL), refused);
    // SAFETY: the words outlive the view, and are accessed only by atomics.
    unsafe { memory.adopt(at, 32 * 8, "words") }.expect("nothing is lent there");
    assert_eq!(load::<u64>(&mut view, Space::Global, &addrs, FULL), Ok(rows(|lane| lane)));
    assert_eq!(load::<u64>(&mut view, Space::Generic, &addrs, FULL), Ok(rows(|lane| lane)));
    assert_eq!(load::<u64>(&mut view, Space::Global, &rows(|lane| at + 8 + 8 * lane), FULL), refused);
    let mut bytes = [0; 16];
    memory.read(at + 8, &mut bytes).expect("lent");
    assert_eq!(bytes[8], 2);
    // SAFETY: the call is refused, because a part is lent already.
    assert!(unsafe { memory.adopt(at + 64, 64 * 8, "again") }.is_err());
    assert!(memory.free(at).is_err());
    memory.disown(at).expect("it was lent");
    assert!(memory.disown(at).is_err());
    assert_eq!(load::<u64>(&mut view, Space::Global, &addrs, FULL), refused);
    // SAFETY: the guest of this test accesses only the words.
    unsafe { memory.reach_host() };
    assert_eq!(load::<u64>(&mut view, Space::Generic, &addrs, FULL), Ok(rows(|lane| lane)));
    assert_eq!(load::<u64>(&mut view, Space::Global, &rows(|_| 8), FULL), refused);
}

#[test]
fn the_range_of_the_device_is_never_lent() {
    let memory = memory();
    let range = memory.range();
    for (start, bytes) in [(range.start, 8), (range.end - 1, 8), (range.start - 8, 16), (0, 8), (u64::MAX, 8)]
    {
        // SAFETY: the call is refused.
        assert!(unsafe { memory.adopt(start, bytes, "no") }.is_err(), "{start:#x}");
    }
    assert!(memory.disown(range.start).is_err());
    // SAFETY: the guest of this test accesses nothing outside of the device's range.
    unsafe { memory.reach_host() };
    let mut view = View::new(&memory);
    let inside = rows(|lane| range.end - 4096 + 8 * lane);
    assert_eq!(load::<u64>(&mut view, Space::Global, &inside, FULL), Err(FaultKind::IllegalAddress));
}
