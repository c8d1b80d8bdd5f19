//! The list of findings.
//!
//! Invariant: findings of one kind at one place are one finding with a count; the list is in the order of first
//! findings.

use crate::finding::{Finding, Key};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Records findings; copies of it record in one list.
#[derive(Clone, Debug)]
pub struct Recorder {
    list: Arc<Mutex<List>>,
    stop: Arc<AtomicBool>,
}

#[derive(Debug, Default)]
struct List {
    findings: Vec<Finding>,
    known: BTreeMap<Key, usize>,
    max: usize,
}

impl Recorder {
    /// Records at most so many different findings.
    pub(crate) fn new(max: usize) -> Self {
        let list = List { max, ..List::default() };
        Self { list: Arc::new(Mutex::new(list)), stop: Arc::default() }
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a finding, or adds its count to the same one found before.
    pub fn record(&self, finding: Finding) {
        let mut list = self.list();
        let key = finding.key();
        if let Some(index) = list.known.get(&key).copied() {
            let same = &mut list.findings[index];
            same.count = same.count.saturating_add(finding.count);
            return;
        }
        if list.findings.len() < list.max {
            let index = list.findings.len();
            list.known.insert(key, index);
            list.findings.push(finding);
        }
        if list.findings.len() >= list.max {
            self.stop.store(true, Ordering::Relaxed);
        }
    }

    /// What was recorded.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        self.list().findings.clone()
    }

    /// Becomes true when no more is recorded.
    pub(crate) fn stop(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Whether no more is recorded.
    pub(crate) fn is_full(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Kind;

    fn at(line: u32) -> Finding {
        Finding { line: Some(line), ..Finding::new(Kind::OutOfBounds, "out of bounds") }
    }

    #[test]
    fn one_place_is_one_finding_and_the_number_is_bounded() {
        let recorder = Recorder::new(2);
        for line in [1, 1, 2, 3, 2] {
            recorder.record(at(line).times(2));
        }
        let counts: Vec<_> = recorder.findings().iter().map(|f| (f.line, f.count)).collect();
        assert_eq!(counts, [(Some(1), 4), (Some(2), 4)]);
        assert!(recorder.is_full());
    }
}
