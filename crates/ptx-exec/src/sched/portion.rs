//! How many CTAs a thread takes at once.
//!
//! Invariant: portions shrink towards the end of the grid, so that threads end at about the same time.

/// The most CTAs of a portion.
const MOST: u64 = 256;

/// How many CTAs a thread takes at once. `left`: those that no thread has taken; `ctas`: CTAs that can
/// execute as one. A portion has all of them, unless a thread would get none.
pub(super) fn portion(left: u64, threads: u64, ctas: u64) -> u64 {
    let size = (left / (4 * threads)).clamp(1, MOST);
    if left < threads.saturating_mul(ctas) { size } else { size.next_multiple_of(ctas) }
}

#[cfg(test)]
mod tests {
    use super::{MOST, portion};

    #[test]
    fn portions_shrink_towards_the_end_of_the_grid() {
        assert_eq!([1_000_000, 800, 8, 1].map(|left| portion(left, 2, 1)), [MOST, 100, 1, 1]);
    }

    #[test]
    fn portions_have_all_ctas_that_execute_as_one_unless_threads_would_get_none() {
        assert_eq!([808, 72, 40, 8, 7, 1].map(|left| portion(left, 2, 4)), [104, 12, 8, 4, 1, 1]);
        assert_eq!([64, 63].map(|left| portion(left, 16, 4)), [4, 1]);
    }
}
