//! The list of findings.
//!
//! Invariant: findings of one kind at one place are one finding with a count; the list is in the order of
//! first findings, without those that a suppression covers.

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
            if finding.needs_more_than(same) {
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
        self.list().findings.clone()
    }

    /// Findings that are new or have another count since the last call, with their numbers.
    pub(crate) fn changes(&self) -> Vec<(usize, Finding)> {
        let mut list = self.list();
        let changed = std::mem::take(&mut list.changed);
        changed.into_iter().filter_map(|index| Some((index, list.findings.get(index)?.clone()))).collect()
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
