//! Vector clocks, compressed by CTA and warp.
//!
//! A vector clock maps each thread to the time up to which its accesses happen before the next operation.
//! Here a clock is a map from CTAs to [`CtaKnown`], in which one entry may stand for a thread, a warp, or the
//! whole CTA. The map of other CTAs is a persistent radix tree: two clocks that differ in one CTA share all
//! other branches, and a join visits only branches that differ. So each clock of a look-back scan over many
//! CTAs costs one path, and no clock has an entry for every thread of a grid.
//!
//! Each CTA counts its own time. An asynchronous copy (`cp.async`) counts as a separate thread, with the
//! number of the issuing thread plus [`ASYNC`], because its accesses are not ordered with those of that
//! thread until it waits for them.
//!
//! Invariant: a join never removes an entry; an entry contains no more than synchronisation has established.

use std::sync::Arc;

/// A time of a CTA; 0 comes before all accesses.
pub(crate) type Time = u32;
/// A thread of a CTA: its linear number, plus [`ASYNC`] for its asynchronous copies.
pub(crate) type Thread = u16;
/// Added to the number of a thread for its asynchronous copies: more than a CTA has threads.
pub(crate) const ASYNC: Thread = 1024;
/// No CTA: the holder of clocks that belong to no thread.
pub(crate) const NO_CTA: u32 = u32::MAX;

/// The warp of a thread; those of asynchronous copies follow those of threads.
pub(crate) fn warp_of(thread: Thread) -> u8 {
    (thread / 32) as u8
}

/// The first thread of a warp, or the first of asynchronous copies.
fn first_of(warp: u8) -> Thread {
    Thread::from(warp) * 32
}

/// What is known of one CTA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CtaKnown {
    /// All threads, and all asynchronous copies, up to these times.
    whole: [Time; 2],
    /// Warps, ascending.
    warps: Vec<(u8, Time)>,
    /// Threads, ascending.
    threads: Vec<(Thread, Time)>,
}

fn time_at<K: Ord + Copy>(list: &[(K, Time)], key: K) -> Time {
    list.binary_search_by_key(&key, |entry| entry.0).map_or(0, |at| list[at].1)
}

/// Looks up ascending keys in an ascending list, in one pass over the list.
struct Ascending<'a, K>(&'a [(K, Time)]);

impl<K: Ord + Copy> Ascending<'_, K> {
    /// The time of a key, which is not below the last one; 0 if it is absent.
    fn time(&mut self, key: K) -> Time {
        while let [(first, time), rest @ ..] = self.0 {
            if *first >= key {
                return if *first == key { *time } else { 0 };
            }
            self.0 = rest;
        }
        0
    }
}

/// The later times of two ascending lists, as far as `keeps` says so.
fn merge<K: Ord + Copy>(
    mut a: &[(K, Time)],
    mut b: &[(K, Time)],
    mut keeps: impl FnMut(K, Time) -> bool,
) -> Vec<(K, Time)> {
    let mut merged = Vec::with_capacity(a.len().max(b.len()));
    loop {
        let (key, time) = match (a, b) {
            ([], []) => return merged,
            ([x, rest @ ..], [y, ..]) if x.0 < y.0 => {
                a = rest;
                *x
            }
            ([x, rest @ ..], []) => {
                a = rest;
                *x
            }
            ([x, rest_a @ ..], [y, rest_b @ ..]) if x.0 == y.0 => {
                (a, b) = (rest_a, rest_b);
                (x.0, x.1.max(y.1))
            }
            (_, [y, rest @ ..]) => {
                b = rest;
                *y
            }
        };
        if keeps(key, time) {
            merged.push((key, time));
        }
    }
}

fn raise<K: Ord + Copy>(list: &mut Vec<(K, Time)>, key: K, time: Time) {
    match list.binary_search_by_key(&key, |entry| entry.0) {
        Ok(at) => list[at].1 = list[at].1.max(time),
        Err(at) => list.insert(at, (key, time)),
    }
}

impl CtaKnown {
    fn whole_of(&self, thread: Thread) -> Time {
        self.whole[usize::from(thread >= ASYNC)]
    }

    /// Up to which time all lanes of the thread's warp are known.
    pub(crate) fn warp_time(&self, thread: Thread) -> Time {
        self.whole_of(thread).max(time_at(&self.warps, warp_of(thread)))
    }

    /// Up to which time the thread is known.
    pub(crate) fn time(&self, thread: Thread) -> Time {
        self.warp_time(thread).max(time_at(&self.threads, thread))
    }

    /// Adds a thread up to a time.
    pub(crate) fn raise_thread(&mut self, thread: Thread, time: Time) {
        if self.time(thread) < time {
            raise(&mut self.threads, thread, time);
        }
    }

    /// Adds the warp of a thread up to a time.
    pub(crate) fn raise_warp(&mut self, thread: Thread, time: Time) {
        if self.warp_time(thread) < time {
            let warp = warp_of(thread);
            raise(&mut self.warps, warp, time);
            self.threads.retain(|entry| warp_of(entry.0) != warp || entry.1 > time);
        }
    }

    /// Adds all threads, or all asynchronous copies, up to a time.
    pub(crate) fn raise_whole(&mut self, copies: bool, time: Time) {
        let whole = &mut self.whole[usize::from(copies)];
        if *whole < time {
            *whole = time;
            self.warps.retain(|entry| (entry.0 >= warp_of(ASYNC)) != copies || entry.1 > time);
            self.threads.retain(|entry| (entry.0 >= ASYNC) != copies || entry.1 > time);
        }
    }

    /// Whether the other says no more.
    fn has(&self, other: &Self) -> bool {
        let (mut warps, mut of_threads) = (Ascending(&self.warps), Ascending(&self.warps));
        let mut threads = Ascending(&self.threads);
        (0..2).all(|kind| self.whole[kind] >= other.whole[kind])
            && other
                .warps
                .iter()
                .all(|(warp, time)| self.whole_of(first_of(*warp)) >= *time || warps.time(*warp) >= *time)
            && other.threads.iter().all(|(thread, time)| {
                self.whole_of(*thread) >= *time
                    || of_threads.time(warp_of(*thread)) >= *time
                    || threads.time(*thread) >= *time
            })
    }

    /// What either knows.
    pub(crate) fn join(a: &Arc<Self>, b: &Arc<Self>) -> Arc<Self> {
        if Arc::ptr_eq(a, b) || a.has(b) {
            return Arc::clone(a);
        }
        if b.has(a) {
            return Arc::clone(b);
        }
        let whole = [0, 1].map(|kind| a.whole[kind].max(b.whole[kind]));
        let of = |thread: Thread| whole[usize::from(thread >= ASYNC)];
        let warps = merge(&a.warps, &b.warps, |warp, time| time > of(first_of(warp)));
        let mut of_threads = Ascending(&warps);
        let threads = merge(&a.threads, &b.threads, |thread, time| {
            time > of(thread).max(of_threads.time(warp_of(thread)))
        });
        Arc::new(CtaKnown { whole, warps, threads })
    }
}

/// CTAs that a branch of the tree parts: a power of two.
const FAN: usize = 16;

/// A tree of what is known of CTAs.
#[derive(Clone, Debug)]
enum Node {
    Leaf(Arc<CtaKnown>),
    Branch(Arc<[Option<Node>; FAN]>),
}

impl Node {
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Node::Leaf(a), Node::Leaf(b)) => Arc::ptr_eq(a, b),
            (Node::Branch(a), Node::Branch(b)) => Arc::ptr_eq(a, b),
            (Node::Leaf(_), Node::Branch(_)) | (Node::Branch(_), Node::Leaf(_)) => false,
        }
    }

    fn join(a: &Self, b: &Self) -> Self {
        if a.same(b) {
            return a.clone();
        }
        match (a, b) {
            (Node::Leaf(a), Node::Leaf(b)) => Node::Leaf(CtaKnown::join(a, b)),
            (Node::Branch(left), Node::Branch(right)) => {
                let (mut is_left, mut is_right) = (true, true);
                let all = std::array::from_fn(|at| {
                    let joined = match (&left[at], &right[at]) {
                        (Some(l), Some(r)) => Some(Node::join(l, r)),
                        (Some(one), None) | (None, Some(one)) => Some(one.clone()),
                        (None, None) => None,
                    };
                    is_left &= same_child(&joined, &left[at]);
                    is_right &= same_child(&joined, &right[at]);
                    joined
                });
                match (is_left, is_right) {
                    (true, _) => a.clone(),
                    (false, true) => b.clone(),
                    (false, false) => Node::Branch(Arc::new(all)),
                }
            }
            // All trees of a launch have one height.
            (Node::Leaf(_), Node::Branch(_)) => b.clone(),
            (Node::Branch(_), Node::Leaf(_)) => a.clone(),
        }
    }

    fn path(cta: u32, height: u32, leaf: Arc<CtaKnown>) -> Self {
        (0..height).fold(Node::Leaf(leaf), |below, level| {
            let mut children: [Option<Node>; FAN] = Default::default();
            children[(cta >> (4 * level)) as usize % FAN] = Some(below);
            Node::Branch(Arc::new(children))
        })
    }

    fn find(&self, cta: u32, height: u32) -> Option<&Arc<CtaKnown>> {
        let mut node = self;
        for level in (0..height).rev() {
            let Node::Branch(children) = node else { return None };
            node = children[(cta >> (4 * level)) as usize % FAN].as_ref()?;
        }
        match node {
            Node::Leaf(leaf) => Some(leaf),
            Node::Branch(_) => None,
        }
    }
}

fn same_child(a: &Option<Node>, b: &Option<Node>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.same(b),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Height of the tree for a grid of so many CTAs.
pub(crate) fn height(ctas: u64) -> u32 {
    (64 - ctas.saturating_sub(1).leading_zeros()).div_ceil(4).max(1)
}

/// A vector clock, held by threads of one CTA, or by none.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    cta: u32,
    height: u32,
    /// Of the holder's CTA.
    home: Arc<CtaKnown>,
    /// Of all other CTAs.
    far: Option<Node>,
}

impl Known {
    /// Nothing, held by threads of that CTA ([`NO_CTA`]: by none).
    pub(crate) fn nothing(cta: u32, height: u32) -> Self {
        Self { cta, height, home: Arc::default(), far: None }
    }

    /// Whether both are certainly equal.
    pub(crate) fn same(&self, other: &Self) -> bool {
        self.cta == other.cta && Arc::ptr_eq(&self.home, &other.home) && same_child(&self.far, &other.far)
    }

    /// What is known of a CTA.
    pub(crate) fn of(&self, cta: u32) -> Option<&CtaKnown> {
        if cta == self.cta {
            return Some(&self.home);
        }
        self.far.as_ref()?.find(cta, self.height).map(|leaf| &**leaf)
    }

    /// Changes what is known of the holder's CTA.
    pub(crate) fn at_home(&mut self, change: impl FnOnce(&mut CtaKnown)) {
        change(Arc::make_mut(&mut self.home));
    }

    /// Adds what another clock knows.
    pub(crate) fn absorb(&mut self, other: &Self) {
        if self.cta == other.cta {
            self.home = CtaKnown::join(&self.home, &other.home);
        } else {
            if other.cta != NO_CTA {
                let path = Node::path(other.cta, self.height, Arc::clone(&other.home));
                self.absorb_far(&path);
            }
            if self.cta != NO_CTA
                && let Some(home) = other.far.as_ref().and_then(|far| far.find(self.cta, self.height))
            {
                self.home = CtaKnown::join(&self.home, home);
            }
        }
        if let Some(far) = &other.far {
            self.absorb_far(far);
        }
    }

    fn absorb_far(&mut self, other: &Node) {
        self.far = Some(self.far.as_ref().map_or_else(|| other.clone(), |far| Node::join(far, other)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(known: &Known, cta: u32, thread: Thread) -> Time {
        known.of(cta).map_or(0, |cta| cta.time(thread))
    }

    #[test]
    fn warps_and_whole_ctas_stand_for_their_threads() {
        let mut known = CtaKnown::default();
        known.raise_thread(33, 5);
        known.raise_warp(40, 3);
        assert_eq!((known.time(33), known.time(32), known.time(31)), (5, 3, 0));
        known.raise_whole(false, 4);
        assert_eq!((known.time(33), known.time(32), known.time(700)), (5, 4, 4));
        assert_eq!(known.time(ASYNC + 33), 0, "copies are not their threads");
        known.raise_warp(ASYNC + 33, 9);
        assert_eq!((known.time(ASYNC + 40), known.time(40)), (9, 4));
        known.raise_whole(false, 6);
        assert!(known.threads.is_empty() && known.warps.len() == 1);
    }

    #[test]
    fn clocks_pass_between_ctas() {
        let height = height(1000);
        let mut a = Known::nothing(7, height);
        a.at_home(|cta| cta.raise_thread(1, 4));
        let mut b = Known::nothing(900, height);
        b.at_home(|cta| cta.raise_warp(64, 2));
        b.absorb(&a);
        assert_eq!((time(&b, 7, 1), time(&b, 7, 2), time(&b, 900, 65)), (4, 0, 2));
        // A clock that another CTA returns is joined with the clock of the own CTA.
        a.at_home(|cta| cta.raise_thread(2, 9));
        a.absorb(&b);
        assert_eq!((time(&a, 7, 1), time(&a, 7, 2), time(&a, 900, 70)), (4, 9, 2));
        let mut free = Known::nothing(NO_CTA, height);
        free.absorb(&a);
        let mut c = Known::nothing(900, height);
        c.absorb(&free);
        assert_eq!((time(&c, 7, 2), time(&c, 900, 64)), (9, 2));
    }

    #[test]
    fn clocks_that_differ_in_one_cta_share_the_rest() {
        let height = height(4096);
        let mut base = Known::nothing(NO_CTA, height);
        for cta in 0..4096 {
            let mut one = Known::nothing(cta, height);
            one.at_home(|known| known.raise_whole(false, 1));
            base.absorb(&one);
        }
        let mut more = base.clone();
        let mut one = Known::nothing(5, height);
        one.at_home(|known| known.raise_whole(false, 2));
        more.absorb(&one);
        let (Some(Node::Branch(a)), Some(Node::Branch(b))) = (&base.far, &more.far) else { panic!() };
        let shared = (0..FAN).filter(|at| same_child(&a[*at], &b[*at])).count();
        assert_eq!(shared, FAN - 1);
        let mut joined = base.clone();
        joined.absorb(&more);
        assert!(joined.same(&more), "joining with a clock that has more gives that clock");
    }

    /// Joins agree with the later of two times for each thread, whatever the entries stand for.
    #[test]
    fn joins_take_the_later_time_of_each_thread() {
        let mut state = 1_u32;
        let mut random = |below: u32| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) % below
        };
        let mut make = || {
            let mut known = CtaKnown::default();
            for _ in 0..random(12) {
                let (thread, time) = (random(160) as Thread, random(20));
                let thread = if random(4) == 0 { thread + ASYNC } else { thread };
                match random(8) {
                    0 => known.raise_whole(thread >= ASYNC, time / 2),
                    1 | 2 => known.raise_warp(thread, time),
                    _ => known.raise_thread(thread, time),
                }
            }
            Arc::new(known)
        };
        let threads = || (0..192).chain(ASYNC..ASYNC + 192);
        let (mut contained, mut joined) = (0, 0);
        for _ in 0..3000 {
            let (a, b) = (make(), make());
            let has = threads().all(|thread| a.time(thread) >= b.time(thread));
            // No clock lists all threads of a warp, so entries of warps say more than those of threads.
            assert_eq!(a.has(&b), has, "{a:?} {b:?}");
            let both = CtaKnown::join(&a, &b);
            for thread in threads() {
                assert_eq!(both.time(thread), a.time(thread).max(b.time(thread)), "{thread}: {a:?} {b:?}");
            }
            contained += usize::from(has);
            joined += usize::from(!has && !b.has(&a));
        }
        assert!(contained > 100 && joined > 1000, "{contained} {joined}");
    }

    #[test]
    fn heights_fit_grids() {
        assert_eq!([1, 2, 16, 17, 256, 257, 100_000].map(height), [1, 1, 1, 2, 2, 3, 5]);
    }
}
