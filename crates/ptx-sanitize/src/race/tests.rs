//! The detector alone: small programs as sequences of calls, with verdicts from chapter 8 of the manual.

use super::detect::Detector;
use super::facts::{At, Where};
use super::order::{Kind, Missing, Op};

const WEAK: Op = Op {
    kind: Kind::Load,
    strong: false,
    wide: false,
    acquire: false,
    release: false,
    bytes: 4,
    copy: false,
    collective: false,
    packed: false,
};
const SHARED: (u64, u64) = (0x1000_0000, 0x1_0000);
const DATA: u64 = 0x2000;
const FLAG: u64 = 0x3000;

fn weak(kind: Kind) -> Op {
    Op { kind, ..WEAK }
}

fn strong(kind: Kind, wide: bool) -> Op {
    Op { kind, strong: true, wide, ..WEAK }
}

fn acquire(kind: Kind, wide: bool) -> Op {
    Op { acquire: true, ..strong(kind, wide) }
}

fn release(kind: Kind, wide: bool) -> Op {
    Op { release: true, ..strong(kind, wide) }
}

/// CTAs of two warps.
struct Machine(Detector);

/// Lane of warp of CTA.
type T = (u32, u8, usize);

fn at((cta, warp, _): T) -> At {
    At { slot: cta, warp, live: u32::MAX }
}

impl Machine {
    fn new(ctas: u32) -> Self {
        let mut detector = Detector::new(ctas.into());
        for cta in 0..ctas {
            let shared = (SHARED.0 + u64::from(cta) * SHARED.1, SHARED.1);
            detector.cta_begins(cta, cta.into(), &[u32::MAX, u32::MAX], shared);
        }
        Self(detector)
    }

    fn op(&mut self, who: T, op: Op, address: u64) {
        let site = self.0.site(op);
        self.all(who, site, 1 << who.2, &[address; 32], true);
    }

    fn all(&mut self, who: T, site: u32, lanes: u32, addresses: &[u64; 32], agree: bool) {
        self.0.access(at(who), site, &Where { lanes, addresses, chosen: 1, agree });
    }

    fn fence(&mut self, who: T, sc: bool, wide: bool) {
        self.0.fence(at(who), 1 << who.2, sc, wide);
    }

    fn barrier(&mut self, cta: u32) {
        for warp in 0..2 {
            self.0.barrier_arrives(at((cta, warp, 0)), 0, u32::MAX, u32::MAX);
        }
        self.0.barrier_completes(at((cta, 0, 0)), 0);
        for warp in 0..2 {
            self.0.barrier_releases(at((cta, warp, 0)), 0, u32::MAX);
        }
    }

    fn clean(&self) {
        assert!(self.0.races().is_empty(), "{:?}", self.0.races());
    }

    fn race(&self, missing: Missing) {
        let found: Vec<Missing> = self.0.races().iter().map(|race| race.missing).collect();
        assert_eq!(found, [missing], "{:?}", self.0.races());
    }
}

const A: T = (0, 0, 0);
const NEXT: T = (0, 0, 1);
const WARP: T = (0, 1, 0);
const B: T = (1, 0, 0);
const C: T = (2, 0, 0);

#[test]
fn accesses_without_order_race() {
    for (other, missing) in
        [(NEXT, Missing::Syncwarp), (WARP, Missing::Barrier), (B, Missing::ReleaseAcquire)]
    {
        for (first, second) in
            [(Kind::Store, Kind::Load), (Kind::Load, Kind::Store), (Kind::Store, Kind::Store)]
        {
            let mut m = Machine::new(2);
            m.op(A, weak(first), DATA);
            m.op(other, weak(second), DATA);
            m.race(missing);
        }
        let mut m = Machine::new(2);
        m.op(A, weak(Kind::Load), DATA);
        m.op(other, weak(Kind::Load), DATA);
        m.op(other, weak(Kind::Store), DATA + 4);
        m.clean();
    }
}

#[test]
fn barriers_order_their_cta_only() {
    let mut m = Machine::new(2);
    m.op(A, weak(Kind::Store), DATA);
    m.barrier(0);
    m.op(WARP, weak(Kind::Load), DATA);
    m.op(NEXT, weak(Kind::Load), DATA);
    m.clean();
    m.barrier(1);
    m.op(B, weak(Kind::Load), DATA);
    m.race(Missing::ReleaseAcquire);
}

#[test]
fn accesses_behind_an_arrival_are_not_ordered() {
    let mut m = Machine::new(1);
    let (lanes, none) = (u32::MAX, 0);
    m.op(A, weak(Kind::Store), SHARED.0);
    m.0.barrier_arrives(at(A), 1, lanes, none);
    m.op(A, weak(Kind::Store), SHARED.0 + 4);
    m.0.barrier_arrives(at(WARP), 1, lanes, lanes);
    m.0.barrier_completes(at(WARP), 1);
    m.0.barrier_releases(at(WARP), 1, lanes);
    m.op(WARP, weak(Kind::Load), SHARED.0);
    m.clean();
    m.op(WARP, weak(Kind::Load), SHARED.0 + 4);
    m.race(Missing::Barrier);
}

#[test]
fn an_arrival_learns_nothing() {
    let mut m = Machine::new(1);
    let (lanes, none) = (u32::MAX, 0);
    m.op(WARP, weak(Kind::Store), SHARED.0);
    m.0.barrier_arrives(at(A), 1, lanes, none);
    m.0.barrier_arrives(at(WARP), 1, lanes, lanes);
    m.0.barrier_completes(at(WARP), 1);
    m.0.barrier_releases(at(WARP), 1, lanes);
    m.op(A, weak(Kind::Load), SHARED.0);
    m.race(Missing::Barrier);
}

#[test]
fn warp_sync_orders_its_members_only() {
    let mut m = Machine::new(1);
    m.op(A, weak(Kind::Store), SHARED.0);
    m.0.warp_syncs(at(A), 0b11);
    m.op(NEXT, weak(Kind::Load), SHARED.0);
    m.clean();
    m.op((0, 0, 2), weak(Kind::Load), SHARED.0);
    m.race(Missing::Syncwarp);
}

#[test]
fn lanes_that_have_exited_are_ordered_by_no_barrier() {
    let left = !0b10;
    let here = At { live: left, ..at(A) };
    let mut m = Machine::new(1);
    m.op(NEXT, weak(Kind::Store), SHARED.0);
    m.0.warp_syncs(here, left);
    m.op(A, weak(Kind::Load), SHARED.0);
    m.race(Missing::Syncwarp);
    let mut m = Machine::new(1);
    m.op(NEXT, weak(Kind::Store), SHARED.0);
    m.0.barrier_arrives(here, 0, left, left);
    m.0.barrier_arrives(at(WARP), 0, u32::MAX, u32::MAX);
    m.0.barrier_completes(at(WARP), 0);
    m.0.barrier_releases(at(WARP), 0, u32::MAX);
    m.op(WARP, weak(Kind::Load), SHARED.0);
    m.race(Missing::Barrier);
}

fn message(m: &mut Machine, to: T, write: Op, fence: Option<bool>, read: Op, after: Option<bool>) {
    m.op(A, weak(Kind::Store), DATA);
    if let Some(wide) = fence {
        m.fence(A, false, wide);
    }
    m.op(A, write, FLAG);
    m.op(to, read, FLAG);
    if let Some(wide) = after {
        m.fence(to, false, wide);
    }
    m.op(to, weak(Kind::Load), DATA);
}

#[test]
fn message_passing() {
    use Kind::{Load, Store};
    let (st, ld) = (strong(Store, true), strong(Load, true));
    let good = [
        (st, Some(true), ld, Some(true)),
        (release(Store, true), None, acquire(Load, true), None),
        (st, Some(true), acquire(Load, true), None),
        (release(Store, true), None, ld, Some(true)),
        (release(Kind::Rmw, true), None, acquire(Kind::Rmw, true), None),
    ];
    for (write, before, read, after) in good {
        let mut m = Machine::new(2);
        message(&mut m, B, write, before, read, after);
        m.clean();
    }
    let bad = [
        (st, None, ld, Some(true), Missing::ReleaseAcquire),
        (st, Some(true), ld, None, Missing::ReleaseAcquire),
        (st, None, acquire(Load, true), None, Missing::ReleaseAcquire),
        (release(Store, true), None, ld, None, Missing::ReleaseAcquire),
        (st, Some(false), ld, Some(true), Missing::Scope),
        (st, Some(true), ld, Some(false), Missing::Scope),
    ];
    for (write, before, read, after, missing) in bad {
        let mut m = Machine::new(2);
        message(&mut m, B, write, before, read, after);
        m.race(missing);
    }
}

#[test]
fn narrow_scopes_are_wide_enough_inside_a_cta() {
    use Kind::{Load, Store};
    let (st, ld) = (strong(Store, false), strong(Load, false));
    for (write, before, read, after) in
        [(st, Some(false), ld, Some(false)), (release(Store, false), None, acquire(Load, false), None)]
    {
        let mut m = Machine::new(1);
        message(&mut m, WARP, write, before, read, after);
        m.clean();
    }
    // Between CTAs neither the flag nor what it guards is ordered.
    let mut m = Machine::new(2);
    message(&mut m, B, release(Store, false), None, acquire(Load, true), None);
    let missing: Vec<Missing> = m.0.races().iter().map(|race| race.missing).collect();
    assert_eq!(missing, [Missing::Scope, Missing::Scope]);
}

#[test]
fn what_lies_behind_the_fence_is_not_released() {
    let mut m = Machine::new(2);
    m.fence(A, false, true);
    m.op(A, weak(Kind::Store), DATA);
    m.op(A, strong(Kind::Store, true), FLAG);
    m.op(B, acquire(Kind::Load, true), FLAG);
    m.op(B, weak(Kind::Load), DATA);
    m.race(Missing::ReleaseAcquire);
}

#[test]
fn a_fence_serves_all_later_writes() {
    let mut m = Machine::new(2);
    m.op(A, weak(Kind::Store), DATA);
    m.fence(A, false, true);
    m.op(A, strong(Kind::Store, true), FLAG + 64);
    m.op(A, strong(Kind::Store, true), FLAG);
    m.op(B, acquire(Kind::Load, true), FLAG);
    m.op(B, weak(Kind::Load), DATA);
    m.clean();
}

#[test]
fn a_release_serves_later_writes_to_its_location_only() {
    for (address, clean) in [(FLAG, true), (FLAG + 4, false)] {
        let mut m = Machine::new(2);
        m.op(A, weak(Kind::Store), DATA);
        m.op(A, release(Kind::Store, true), FLAG);
        m.op(A, strong(Kind::Store, true), address);
        m.op(B, acquire(Kind::Load, true), address);
        m.op(B, weak(Kind::Load), DATA);
        assert_eq!(m.0.races().is_empty(), clean);
    }
}

#[test]
fn release_sequences_run_through_atomics_only() {
    for (kind, clean) in [(Kind::Rmw, true), (Kind::Store, false)] {
        let mut m = Machine::new(3);
        m.op(A, weak(Kind::Store), DATA);
        m.op(A, release(Kind::Store, true), FLAG);
        m.op(B, strong(kind, true), FLAG);
        m.op(C, acquire(Kind::Load, true), FLAG);
        m.op(C, weak(Kind::Load), DATA);
        assert_eq!(m.0.races().is_empty(), clean, "{kind:?}");
    }
}

#[test]
fn order_is_cumulative() {
    let mut m = Machine::new(3);
    m.op(A, weak(Kind::Store), DATA);
    m.op(A, release(Kind::Store, true), FLAG);
    m.op(B, acquire(Kind::Load, true), FLAG);
    m.op(B, release(Kind::Store, true), FLAG + 4);
    m.op(C, acquire(Kind::Load, true), FLAG + 4);
    m.op(C, weak(Kind::Store), DATA);
    m.clean();
}

#[test]
fn sc_fences_order_each_other() {
    for (sc, wide, clean) in [(true, true, true), (true, false, false), (false, true, false)] {
        let mut m = Machine::new(2);
        m.op(A, weak(Kind::Store), DATA);
        m.fence(A, sc, wide);
        m.fence(B, sc, wide);
        m.op(B, weak(Kind::Load), DATA);
        assert_eq!(m.0.races().is_empty(), clean);
    }
}

#[test]
fn sc_fences_of_one_warp_order_one_way() {
    let mut m = Machine::new(1);
    m.op(A, weak(Kind::Store), DATA);
    m.op(NEXT, weak(Kind::Store), DATA + 4);
    m.0.fence(at(A), 0b11, true, false);
    m.op(NEXT, weak(Kind::Load), DATA);
    m.clean();
    m.op(A, weak(Kind::Load), DATA + 4);
    m.race(Missing::Syncwarp);
}

#[test]
fn atomics_race_with_plain_accesses_and_narrower_ones() {
    let rmw = strong(Kind::Rmw, true);
    let mut m = Machine::new(2);
    m.op(A, rmw, DATA);
    m.op(B, rmw, DATA);
    m.op(WARP, strong(Kind::Rmw, false), DATA + 4);
    m.op(A, strong(Kind::Rmw, false), DATA + 4);
    m.clean();
    m.op(B, rmw, DATA + 4);
    m.race(Missing::Scope);
    let mut m = Machine::new(2);
    m.op(A, rmw, DATA);
    m.op(B, weak(Kind::Load), DATA);
    m.race(Missing::Strong);
    let mut m = Machine::new(1);
    m.op(A, rmw, SHARED.0);
    m.op(WARP, rmw, SHARED.0);
    m.op(A, weak(Kind::Load), SHARED.0);
    m.race(Missing::Barrier);
}

#[test]
fn an_observed_write_happens_before_what_follows_the_observer() {
    // PTX ISA 8.8.5, causality order 2a and 2b.
    let mut m = Machine::new(3);
    m.op(A, strong(Kind::Store, true), FLAG);
    m.op(B, strong(Kind::Load, true), FLAG);
    m.op(B, weak(Kind::Load), FLAG);
    m.clean();
    m.op(B, release(Kind::Store, true), FLAG + 4);
    m.op(C, acquire(Kind::Load, true), FLAG + 4);
    m.op(C, weak(Kind::Store), FLAG);
    m.clean();
    let mut m = Machine::new(2);
    m.op(A, strong(Kind::Store, true), FLAG);
    m.op(B, weak(Kind::Load), FLAG);
    m.race(Missing::Strong);
}

#[test]
fn sizes_must_be_equal_to_be_morally_strong() {
    let mut m = Machine::new(2);
    m.op(A, strong(Kind::Store, true), DATA);
    m.op(B, Op { bytes: 2, ..strong(Kind::Load, true) }, DATA + 2);
    m.race(Missing::Strong);
    // Bytes apart do not conflict, whatever their granules.
    let byte = |kind| Op { bytes: 1, ..weak(kind) };
    let mut m = Machine::new(2);
    m.op(A, weak(Kind::Store), DATA + 4);
    m.op(A, byte(Kind::Store), DATA);
    m.op(B, byte(Kind::Store), DATA + 1);
    m.op(WARP, byte(Kind::Load), DATA + 2);
    m.op(B, Op { bytes: 8, ..weak(Kind::Load) }, DATA + 8);
    m.clean();
    m.op(B, Op { bytes: 8, ..weak(Kind::Load) }, DATA);
    assert_eq!(m.0.races().len(), 2, "the byte and the word of the first thread");
}

#[test]
fn lanes_that_store_one_value_to_one_address_are_one_write() {
    let mut m = Machine::new(1);
    let site = m.0.site(weak(Kind::Store));
    m.all(A, site, u32::MAX, &[DATA; 32], true);
    m.op(NEXT, weak(Kind::Load), DATA);
    m.clean();
    m.op(WARP, weak(Kind::Load), DATA);
    m.race(Missing::Barrier);
    let mut m = Machine::new(1);
    let site = m.0.site(weak(Kind::Store));
    m.all(A, site, u32::MAX, &[DATA; 32], false);
    m.race(Missing::Syncwarp);
}

#[test]
fn reads_of_many_lanes_race_with_a_write_of_one() {
    let mut m = Machine::new(1);
    let site = m.0.site(weak(Kind::Load));
    m.all(A, site, u32::MAX, &[DATA; 32], true);
    m.op(A, weak(Kind::Store), DATA);
    m.race(Missing::Syncwarp);
    let mut m = Machine::new(1);
    let site = m.0.site(weak(Kind::Load));
    m.all(A, site, u32::MAX, &[DATA; 32], true);
    m.0.warp_syncs(at(A), u32::MAX);
    m.op(A, weak(Kind::Store), DATA);
    m.clean();
}

fn copies(wait: impl Fn(&mut Machine)) -> Machine {
    let mut m = Machine::new(1);
    m.op(A, Op { copy: true, ..weak(Kind::Store) }, SHARED.0);
    m.0.copies_commit(at(A), 1);
    m.op(A, Op { copy: true, ..weak(Kind::Store) }, SHARED.0 + 4);
    m.0.copies_commit(at(A), 1);
    wait(&mut m);
    m
}

#[test]
fn copies_are_ordered_when_they_have_been_waited_for() {
    let read = |m: &mut Machine, who, at| m.op(who, weak(Kind::Load), SHARED.0 + at);
    let mut m = copies(|m| m.0.copies_wait(at(A), 1, Some(1)));
    read(&mut m, A, 0);
    m.clean();
    read(&mut m, A, 4);
    m.race(Missing::Barrier);
    let mut m = copies(|m| m.0.copies_wait(at(A), 1, None));
    read(&mut m, A, 4);
    m.clean();
    m.barrier(0);
    read(&mut m, WARP, 0);
    m.clean();
    // A barrier alone does not wait for copies.
    let mut m = copies(|m| m.barrier(0));
    read(&mut m, WARP, 0);
    m.race(Missing::Barrier);
}

#[test]
fn barriers_in_memory_order_what_arrived() {
    let bar = SHARED.0 + 64;
    let mut m = Machine::new(1);
    m.0.mbarrier_init(at(A), bar, 2);
    m.barrier(0);
    m.op(A, weak(Kind::Store), SHARED.0);
    m.op(A, Op { copy: true, ..weak(Kind::Store) }, SHARED.0 + 4);
    m.0.copies_arrive(at(A), 0, bar, true);
    m.0.mbarrier_arrives(at(A), 0, bar, 1, false);
    m.op(A, weak(Kind::Store), SHARED.0 + 8);
    m.0.mbarrier_passed(at(WARP), 0, bar);
    m.op(WARP, weak(Kind::Load), SHARED.0);
    m.op(WARP, weak(Kind::Load), SHARED.0 + 4);
    m.clean();
    m.op(WARP, weak(Kind::Load), SHARED.0 + 8);
    m.race(Missing::Barrier);
}

#[test]
fn new_memory_has_no_past() {
    let mut m = Machine::new(2);
    m.op(A, weak(Kind::Store), DATA);
    m.op(A, weak(Kind::Store), DATA + 16);
    m.0.forget(DATA, 16);
    m.op(B, weak(Kind::Store), DATA);
    m.clean();
    m.op(B, weak(Kind::Store), DATA + 16);
    m.race(Missing::ReleaseAcquire);
}

#[test]
fn shared_memory_of_a_new_cta_has_no_past() {
    let mut m = Machine::new(1);
    m.op(A, weak(Kind::Store), SHARED.0);
    m.0.cta_begins(0, 1, &[u32::MAX, u32::MAX], SHARED);
    m.op(WARP, weak(Kind::Store), SHARED.0);
    m.clean();
}

#[test]
fn a_lock_of_release_and_acquire_orders_its_holders() {
    let mut m = Machine::new(3);
    for round in 0..30 {
        let who = [A, B, WARP, C][round % 4];
        m.op(who, acquire(Kind::Rmw, true), FLAG);
        m.op(who, weak(Kind::Load), DATA);
        m.op(who, weak(Kind::Store), DATA);
        m.op(who, release(Kind::Rmw, true), FLAG);
    }
    m.clean();
    // B held it last.
    m.op(A, weak(Kind::Load), DATA);
    assert_eq!(m.0.races().len(), 1);
}

#[test]
fn the_last_of_many_ctas_knows_all() {
    let ctas = 500;
    let mut m = Machine::new(ctas);
    let (store, add, read) =
        (m.0.site(weak(Kind::Store)), m.0.site(strong(Kind::Rmw, true)), m.0.site(weak(Kind::Load)));
    for cta in 0..ctas {
        let who = (cta, 0, 0);
        m.all(who, store, 1, &[DATA + 64 * u64::from(cta); 32], true);
        m.fence(who, false, true);
        m.all(who, add, 1, &[0x10; 32], true);
    }
    let last = (ctas - 1, 0, 0);
    m.fence(last, false, true);
    for cta in 0..ctas {
        m.all(last, read, 1, &[DATA + 64 * u64::from(cta); 32], true);
    }
    m.clean();
}
