//! The list of findings.
//!
//! Invariant: findings of one kind at one place are one finding with a count; the list is in the order of
//! first findings, without those that a suppression covers. It does not depend on the speed of threads: a
//! finding describes the first CTA of its launch that it happened in.

use crate::Options;
use crate::finding::{Finding, Key};
use crate::suppress::Suppressions;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Records findings; copies of it record in one list.
#[derive(Clone)]
pub struct Recorder {
    list: Arc<Mutex<List>>,
    stop: Arc<AtomicBool>,
    rules: Arc<Suppressions>,
    told: Arc<OnceLock<Told>>,
}

/// What is called with each new finding and its number.
type Told = Box<dyn Fn(usize, &Finding) + Send + Sync>;

#[derive(Debug, Default)]
struct List {
    findings: Vec<Finding>,
    known: BTreeMap<Key, usize>,
    /// Findings that are new or have another count since [`Recorder::changes`] was called.
    changed: BTreeSet<usize>,
    /// What rules cover.
    suppressed: BTreeSet<Key>,
    max: usize,
    stops: bool,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("list", &self.list).finish_non_exhaustive()
    }
}

impl Recorder {
    /// Records as the options say.
    pub(crate) fn new(options: &Options) -> Self {
        let list = List { max: options.max_findings, stops: options.stops, ..List::default() };
        Self {
            list: Arc::new(Mutex::new(list)),
            stop: Arc::default(),
            rules: Arc::new(options.suppressions.clone()),
            told: Arc::default(),
        }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a function called with each new finding and its number, from now on. False where one is called
    /// already.
    pub(crate) fn tell(&self, told: Told) -> bool {
        self.told.set(told).is_ok()
    }

    /// Records a finding, or adds its count to the same one found before. Where the later one needs more to
    /// be mended than the earlier one, it takes its place: a barrier also orders the lanes of one warp, and
    /// `bar.warp.sync` does not order different warps.
    pub fn record(&self, finding: Finding) {
        let mut list = self.list();
        let key = finding.key();
        if let Some(index) = list.known.get(&key).copied() {
            let same = &mut list.findings[index];
            let count = same.count.saturating_add(finding.count);
            let earlier = finding.is_before(same) && !same.needs_more_than(&finding);
            if finding.needs_more_than(same) || earlier {
                *same = finding;
            }
            same.count = count;
            list.changed.insert(index);
            return;
        }
        if self.rules.covers(&finding) {
            list.suppressed.insert(key);
            return;
        }
        let mut new = None;
        if list.findings.len() < list.max {
            let index = list.findings.len();
            list.known.insert(key, index);
            list.changed.insert(index);
            new = self.told.get().map(|told| (told, index, finding.clone()));
            list.findings.push(finding);
        }
        if list.findings.len() >= list.max && list.stops {
            self.stop.store(true, Ordering::Relaxed);
        }
        drop(list);
        if let Some((told, index, finding)) = new {
            told(index, &finding);
        }
    }

    /// What was recorded.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let list = self.list();
        ordered(&list.findings).into_iter().map(|index| list.findings[index].clone()).collect()
    }

    /// Findings that are new or have another count since the last call, with numbers that stay theirs.
    pub(crate) fn changes(&self) -> Vec<(usize, Finding)> {
        let mut list = self.list();
        let changed = std::mem::take(&mut list.changed);
        let order = ordered(&list.findings).into_iter().filter(|index| changed.contains(index));
        order.map(|index| (index, list.findings[index].clone())).collect()
    }

    /// How many different findings rules cover.
    pub(crate) fn suppressed(&self) -> usize {
        self.list().suppressed.len()
    }

    /// Becomes true when no more is recorded and launches are to stop.
    pub(crate) fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Whether no more is recorded.
    pub(crate) fn is_full(&self) -> bool {
        let list = self.list();
        list.findings.len() >= list.max
    }
}

/// The order of findings: those of a launch stand where its first one was found, by CTA, since CTAs run on
/// several threads; those of one CTA are in the order in which they were found.
fn ordered(findings: &[Finding]) -> Vec<usize> {
    let mut firsts = BTreeMap::new();
    let mut order: Vec<_> = (0..findings.len())
        .map(|index| {
            let Finding { launch, cta: [x, y, z], .. } = findings[index];
            let first = if launch == 0 { index } else { *firsts.entry(launch).or_insert(index) };
            ((first, [z, y, x]), index)
        })
        .collect();
    order.sort_by_key(|(key, _)| *key);
    order.into_iter().map(|(_, index)| index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Kind;

    #[test]
    fn races_between_warps_describe_those_within_a_warp() {
        let recorder = Recorder::new(&Options::new([]));
        let race = |missing, thread| Finding {
            missing: Some(missing),
            thread: [thread, 0, 0],
            ..Finding::new(Kind::Race, "race")
        };
        for finding in [race("syncwarp", 0), race("barrier", 31), race("syncwarp", 32), race("barrier", 63)] {
            recorder.record(finding);
        }
        let [finding] = &recorder.findings()[..] else { panic!("expected one finding") };
        assert_eq!((finding.missing, finding.thread[0], finding.count), (Some("barrier"), 31, 4));
    }

    #[test]
    fn findings_do_not_depend_on_which_thread_was_faster() {
        let found = |line, cta, launch| Finding { cta: [cta, 0, 0], launch, ..at(line) };
        let orders = [[(1, 2), (2, 1), (1, 0), (3, 1)], [(1, 0), (2, 1), (3, 1), (1, 2)]];
        let lists = orders.map(|order| {
            let recorder = Recorder::new(&Options::new([]));
            recorder.record(at(9));
            order.iter().for_each(|(line, cta)| recorder.record(found(*line, *cta, 5)));
            recorder.record(at(8));
            recorder.findings()
        });
        assert_eq!(lists[0], lists[1]);
        let seen: Vec<_> = lists[0].iter().map(|f| (f.line, f.cta[0], f.count)).collect();
        assert_eq!(
            seen,
            [(Some(9), 0, 1), (Some(1), 0, 2), (Some(2), 1, 1), (Some(3), 1, 1), (Some(8), 0, 1)]
        );
    }

    fn at(line: u32) -> Finding {
        Finding { line: Some(line), ..Finding::new(Kind::OutOfBounds, "out of bounds") }
    }

    #[test]
    fn one_place_is_one_finding_and_the_number_is_bounded() {
        let recorder = Recorder::new(&Options { max_findings: 2, ..Options::new([]) });
        for line in [1, 1, 2, 3, 2] {
            recorder.record(at(line).times(2));
        }
        let counts: Vec<_> = recorder.findings().iter().map(|f| (f.line, f.count)).collect();
        assert_eq!(counts, [(Some(1), 4), (Some(2), 4)]);
        assert!(recorder.is_full() && recorder.stop().load(Ordering::Relaxed));
    }

    #[test]
    fn changes_are_told_once_and_rules_keep_findings_out() {
        let suppressions = Suppressions::parse("line=2").expect("a rule");
        let recorder = Recorder::new(&Options { suppressions, ..Options::new([]) });
        let told = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&told);
        recorder.tell(Box::new(move |index, finding| list.lock().expect("free").push((index, finding.line))));
        [1, 2, 3, 1].iter().for_each(|line| recorder.record(at(*line)));
        let changes = |recorder: &Recorder| {
            recorder.changes().iter().map(|(index, f)| (*index, f.line, f.count)).collect::<Vec<_>>()
        };
        assert_eq!(changes(&recorder), [(0, Some(1), 2), (1, Some(3), 1)]);
        assert_eq!(changes(&recorder), []);
        [3, 2].iter().for_each(|line| recorder.record(at(*line)));
        assert_eq!(changes(&recorder), [(1, Some(3), 2)]);
        assert_eq!(*told.lock().expect("free"), [(0, Some(1)), (1, Some(3))]);
        assert_eq!(recorder.suppressed(), 1);
    }
}
