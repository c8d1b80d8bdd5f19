//! Several devices on one memory, mapped pages and their rights, and pages that are exported.

use super::super::{Access, Class, DeviceId, Memory, MemoryError, Pages, View};
use super::{load, memory, rows};
use crate::lanes::{FULL, Lane};
use crate::trap::FaultKind;
use ptx::isa::{Sem, Space};
use std::os::fd::AsFd;
use std::sync::Arc;

const MIB: u64 = 1 << 20;

fn device(index: usize) -> DeviceId {
    DeviceId::new(index).expect("not so many devices")
}

fn store(view: &mut View, address: u64, value: u32) -> Result<(), FaultKind> {
    let values = Lane::splat(value);
    view.store(Space::Global, &rows(|_| address), 1, Sem::Weak, &values).map_err(|fault| fault.kind)
}

/// Two megabytes of pages, mapped, with those rights for device 0.
fn mapped(memory: &Arc<Memory>, access: Access) -> (u64, Arc<Pages>) {
    let pages = memory.pages(2 * MIB).expect("pages");
    let at = memory.reserve(2 * MIB, 2 * MIB, 0).expect("addresses");
    memory.map((at, 2 * MIB), (&pages, 0), 0..2 * MIB, "mapped").expect("free addresses");
    memory.set_access(at, 2 * MIB, device(0), access).expect("a mapping");
    (at, pages)
}

#[test]
fn a_device_reaches_what_belongs_to_another_where_it_may() {
    let one = memory();
    let two = one.of_device(device(1));
    let of_one = one.alloc(Class::Global, 256, 1, "first").expect("memory");
    let of_two = two.alloc(Class::Global, 256, 1, "second").expect("memory");
    let common = one.alloc_common(256, 1, "both").expect("memory");
    let (mut first, mut second) = (View::new(&one), View::new(&two));
    for _ in 0..2 {
        assert_eq!(store(&mut first, of_one, 1), Ok(()));
        assert_eq!(store(&mut second, of_two, 2), Ok(()));
        assert_eq!(store(&mut first, of_two, 3), Err(FaultKind::IllegalAddress));
        assert_eq!(store(&mut second, of_one, 4), Err(FaultKind::IllegalAddress));
        assert_eq!(store(&mut first, common, 5), Ok(()));
        assert_eq!(store(&mut second, common, 6), Ok(()));
        assert_eq!(first.reach(Space::Global, of_two, false), None);
        // Device 1 may reach the memory of device 0, which changes nothing the other way round.
        one.let_reach(device(1), true);
        assert_eq!(store(&mut second, of_one, 7), Ok(()));
        assert_eq!(store(&mut first, of_two, 8), Err(FaultKind::IllegalAddress));
        one.let_reach(device(1), false);
    }
    one.grant(of_one, device(1), Access::Read).expect("an allocation");
    assert_eq!(store(&mut second, of_one, 9), Err(FaultKind::ReadOnly));
    one.grant(of_one, device(1), Access::None).expect("an allocation");
    assert_eq!(store(&mut second, of_one, 9), Err(FaultKind::IllegalAddress));
    assert_eq!(store(&mut first, of_one, 9), Ok(()));
    assert!(one.grant(common, device(1), Access::Read).is_err());
    let why = first.nearest(Space::Global, 0, of_two);
    assert!(why.ends_with("it belongs to device 1, whose memory device 0 may not access"), "{why}");
    assert_eq!((one.owner_of(of_two), one.usage().0, two.usage().0), (Some(device(1)), 512, 256));
    // The host copies from everywhere.
    let mut bytes = [0; 4];
    one.read(of_two, &mut bytes).expect("an allocation");
    assert_eq!(bytes, [2, 0, 0, 0]);
    two.free(of_one).expect("an allocation");
    assert_eq!((one.usage().0, two.usage().0), (256, 256));
}

#[test]
fn mapped_pages_are_accessed_as_their_rights_say() {
    let memory = memory();
    let mut view = View::new(&memory);
    let (at, pages) = mapped(&memory, Access::None);
    assert_eq!(store(&mut view, at, 1), Err(FaultKind::IllegalAddress));
    assert!(memory.write(at, &[1]).is_err() && memory.read(at, &mut [1]).is_err());
    assert_eq!(memory.allocation_at(at), None);
    memory.set_access(at, 2 * MIB, device(0), Access::ReadWrite).expect("a mapping");
    assert_eq!(store(&mut view, at + 2 * MIB - 4, 7), Ok(()));
    assert_eq!(store(&mut view, at + 2 * MIB, 7), Err(FaultKind::IllegalAddress));
    memory.set_access(at, 2 * MIB, device(0), Access::Read).expect("a mapping");
    assert_eq!(store(&mut view, at, 1), Err(FaultKind::ReadOnly));
    assert_eq!(view.reach(Space::Global, at, true), None);
    assert_eq!(view.reach(Space::Global, at, false), Some((at, 2 * MIB)));
    let last = rows(|_| at + 2 * MIB - 4);
    assert_eq!(load::<u32>(&mut view, Space::Global, &last, FULL).map(|row| row.0[31]), Ok(7));
    assert!(memory.write(at, &[1]).is_err() && memory.read(at, &mut [1]).is_ok());
    assert_eq!(memory.access_at(at, device(0)), Some(Access::Read));
    assert_eq!(memory.access_at(at, device(1)), Some(Access::None));
    memory.unmap(at, 2 * MIB).expect("a mapping");
    assert!(load::<u32>(&mut view, Space::Global, &last, FULL).is_err());
    assert!(memory.unreserve(at, MIB).is_err());
    memory.unreserve(at, 2 * MIB).expect("a reservation");
    assert_eq!(memory.usage().0, 2 * MIB);
    drop(pages);
    assert_eq!(memory.usage().0, 0);
    assert!(memory.free(at).is_err());
}

#[test]
fn pages_at_two_addresses_are_the_same_memory() {
    let memory = memory();
    let mut view = View::new(&memory);
    let (first, pages) = mapped(&memory, Access::ReadWrite);
    let second = memory.reserve(4 * MIB, 2 * MIB, 0).expect("addresses");
    memory.map((second, MIB), (&pages, MIB), 0..MIB, "upper half").expect("free addresses");
    memory.set_access(second, MIB, device(0), Access::ReadWrite).expect("a mapping");
    assert_eq!(store(&mut view, second + 8, 77), Ok(()));
    let row = load::<u32>(&mut view, Space::Global, &rows(|_| first + MIB + 8), FULL).expect("mapped");
    assert_eq!(row.0[0], 77);
    let reach = view.reach(Space::Global, first, true).expect("mapped");
    assert_eq!(view.aliases(reach), view.aliases((second, MIB)));
    // A descriptor gives the same pages; other files do not.
    let copy = pages.descriptor().expect("descriptors");
    let again = Pages::import(copy.as_fd()).expect("one of ours");
    assert_eq!((again.bytes(), again.device()), (2 * MIB, device(0)));
    let other = std::fs::File::open("/proc/self/exe").expect("a file");
    assert_eq!(Pages::import(other.as_fd()).err(), Some(MemoryError::Share));
}

#[test]
fn mappings_that_touch_are_one_allocation() {
    let memory = memory();
    let at = memory.reserve(4 * MIB, 2 * MIB, 0).expect("addresses");
    let next = memory.reserve(2 * MIB, 2 * MIB, at + 4 * MIB).expect("addresses");
    assert_eq!(next, at + 4 * MIB);
    for start in [at, at + 2 * MIB, next] {
        let pages = memory.pages(2 * MIB).expect("pages");
        memory.map((start, 2 * MIB), (&pages, 0), 0..2 * MIB, "part").expect("free addresses");
        assert!(memory.map((start, 2 * MIB), (&pages, 0), 0..2 * MIB, "again").is_err());
    }
    memory.set_access(at, 6 * MIB, device(0), Access::ReadWrite).expect("mappings");
    assert_eq!(View::new(&memory).reach(Space::Global, at, true), Some((at, 6 * MIB)));
    assert_eq!(memory.allocation_at(at + 5 * MIB), Some(at..at + 6 * MIB));
    memory.write(at + 2 * MIB - 2, &[1, 2, 3, 4]).expect("mapped");
    memory.set_access(next, 2 * MIB, device(0), Access::Read).expect("a mapping");
    let mut bytes = vec![0; 6 * MIB as usize];
    memory.read(at, &mut bytes).expect("readable");
    assert_eq!(bytes[2 * MIB as usize - 2..][..4], [1, 2, 3, 4]);
    assert!(memory.fill(next - 2, 1, 4).is_err());
    // Whole mappings alone are taken away.
    assert!(memory.unmap(at, MIB).is_err() && memory.unmap(at, 5 * MIB).is_err());
    assert!(memory.unreserve(at, 4 * MIB).is_err());
    memory.unmap(at + 2 * MIB, 2 * MIB).expect("a mapping");
    assert!(memory.read(at, &mut bytes).is_err());
    assert!(memory.map((at + MIB, MIB), (&memory.pages(MIB).expect("pages"), 0), 0..MIB, "x").is_err());
}

#[test]
fn exported_memory_keeps_contents_and_neighbours() {
    let memory = memory();
    let a = memory.alloc(Class::Global, 100, 1, "a").expect("memory");
    let b = memory.alloc(Class::Global, 3 * MIB, 1, "b").expect("memory");
    let c = memory.alloc(Class::Global, 100, 1, "c").expect("memory");
    for (at, bytes) in [(a, 100), (b, 3 * MIB), (c, 100)] {
        memory.fill(at, at as u8 | 1, bytes).expect("in bounds");
        memory.write(at, &at.to_le_bytes()).expect("in bounds");
    }
    for (at, bytes) in [(b, 3 * MIB), (a, 100), (c, 100), (b, 3 * MIB)] {
        let exported = memory.export(at).expect("an allocation");
        assert_eq!(exported.bytes, bytes);
        // Another machine, as another process would.
        let there = Memory::new(memory.address_size()).expect("an address range");
        let pages = Pages::import(exported.pages.descriptor().expect("descriptors").as_fd()).expect("ours");
        let (offset, skip) = (exported.offset / 65536 * 65536, exported.offset % 65536);
        let length = (skip + bytes).next_multiple_of(65536);
        let start = there.reserve(length, 2 * MIB, 0).expect("addresses");
        there.map((start, length), (&pages, offset), skip..skip + bytes, "imported").expect("pages");
        there.set_access(start, length, device(0), Access::ReadWrite).expect("a mapping");
        assert_eq!(there.allocation_at(start + skip), Some(start + skip..start + skip + bytes));
        let mut word = [0; 8];
        there.read(start + skip, &mut word).expect("mapped");
        assert_eq!(u64::from_le_bytes(word), at);
        there.write(start + skip + 50, &[9]).expect("mapped");
        memory.read(at + 50, &mut word).expect("in bounds");
        assert_eq!(word[0], 9);
        assert!(there.read(start + skip + bytes, &mut word).is_err());
    }
    // What is freed reads as zero when it is used again.
    memory.free(b).expect("an allocation");
    let again = memory.alloc(Class::Global, 3 * MIB, 1, "again").expect("memory");
    let mut bytes = vec![1; 3 * MIB as usize];
    memory.read(again, &mut bytes).expect("in bounds");
    assert!(again == b && bytes.iter().all(|byte| *byte == 0));
    let mut word = [0; 8];
    memory.read(c, &mut word).expect("in bounds");
    assert_eq!(u64::from_le_bytes(word), c);
    let common = memory.alloc_common(8, 1, "common").expect("memory");
    assert!(memory.export(common).is_err() && memory.export(a + 1).is_err());
}
