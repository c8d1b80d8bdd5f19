//! Many bytes at once: copies between the host and memory, and fills.
//!
//! Invariant: whole words are accessed at once, in order of their addresses. Other threads may access them
//! meanwhile, as guest accesses are. The caller has checked that all bytes are in memory.

use super::Memory;
use std::ops::Range;
use std::sync::atomic::Ordering;

impl Memory {
    /// Loads bytes whose bounds the caller has checked.
    pub(super) fn get(&self, address: u64, to: &mut [u8]) {
        let (head, middle, tail) = split(address, to.len() as u64);
        for at in head.chain(tail) {
            to[at as usize] = self.checked_place::<u8>(address + at).load();
        }
        let words = self.checked_words(address, &middle);
        let (to, _) = to[middle.start as usize..middle.end as usize].as_chunks_mut();
        for (to, word) in to.iter_mut().zip(words) {
            *to = word.load(Ordering::Relaxed).to_le_bytes();
        }
    }

    /// Stores bytes to where the caller has checked that they fit.
    pub(super) fn put(&self, address: u64, from: &[u8]) {
        let (head, middle, tail) = split(address, from.len() as u64);
        for at in head.chain(tail) {
            self.checked_place::<u8>(address + at).store(from[at as usize]);
        }
        let words = self.checked_words(address, &middle);
        let (from, _) = from[middle.start as usize..middle.end as usize].as_chunks();
        for (from, word) in from.iter().zip(words) {
            word.store(u64::from_le_bytes(*from), Ordering::Relaxed);
        }
    }

    /// Stores the same byte to all bytes of a range that the caller has checked.
    pub(super) fn put_same(&self, address: u64, bytes: u64, byte: u8) {
        let (head, middle, tail) = split(address, bytes);
        for at in head.chain(tail) {
            self.checked_place::<u8>(address + at).store(byte);
        }
        let value = u64::from_le_bytes([byte; 8]);
        for word in self.checked_words(address, &middle) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// Stores bytes of which `next` supplies eight from an offset on, where the caller has checked that they
    /// fit.
    pub(super) fn put_by(&self, address: u64, bytes: u64, next: impl Fn(u64) -> [u8; 8]) {
        let (head, middle, tail) = split(address, bytes);
        for at in head.chain(tail) {
            let [byte, ..] = next(at);
            self.checked_place::<u8>(address + at).store(byte);
        }
        let words = self.checked_words(address, &middle);
        for (at, word) in middle.step_by(8).zip(words) {
            word.store(u64::from_le_bytes(next(at)), Ordering::Relaxed);
        }
    }
}

/// Splits a range of offsets into single bytes, whole words of eight bytes, and the remaining bytes.
fn split(address: u64, bytes: u64) -> (Range<u64>, Range<u64>, Range<u64>) {
    let head = (address.wrapping_neg() % 8).min(bytes);
    let middle = (bytes - head) / 8 * 8;
    (0..head, head..head + middle, head + middle..bytes)
}
