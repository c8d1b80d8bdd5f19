//! Accesses whose addresses differ by a constant have one check, and their sums of 32 bits one guard.
//!
//! The accesses of `in[y * w + x - 1]`, `in[y * w + x]` and `in[y * w + x + 1]` have three addresses if the
//! index could wrap around. If the sums of 32 bits are exact from the least to the greatest constant, the
//! addresses are the first one plus constants ([`analysis::distance`](crate::analysis::distance)), as if they
//! were offsets of the accesses.
//!
//! Invariant: an address is relative to another one only if each sum in them that is widened has a guard
//! which is tested where the block begins, and one guard of that sum is tested for all constants between
//! them.

use crate::analysis::address::AddressFacts;
use crate::analysis::distance::{Distance, Distances, Sum};
use crate::analysis::expr::Expr;
use crate::wir::checks::{BlockChecks, Tested};
use crate::wir::{Block, GuardKind, OpKind, Shape, Value};
use std::collections::HashMap;

/// The most bytes between two addresses, and the most between two sums.
const FAR: i64 = 1 << 20;

/// A guard of a sum of 32 bits that is widened.
struct Guarded {
    /// Its place in the guards of the block.
    place: usize,
    value: Value,
    sum: Sum,
    /// Whether it is sign-extended.
    signed: bool,
    /// The constant of the sum.
    by: i64,
}

/// Finds which of the addresses, in program order, are relative to an earlier one, and changes what the
/// guards of the block test.
pub(super) fn merge(
    checks: &mut BlockChecks,
    block: &Block,
    (distances, facts): (Distances<'_>, &AddressFacts),
    addresses: &[Value],
) {
    if addresses.iter().all(|address| *address == addresses[0]) {
        return;
    }
    // Values with one scalar, or one for each chunk, and constants of the lanes.
    let pattern = |value: Value| match &distances.func.shapes[value.0 as usize] {
        Shape::Affine(pattern) if pattern.rows.is_empty() => Some((pattern.by_chunk, &pattern.lanes)),
        _ => None,
    };
    let guarded = |place: usize| {
        let op = &block.ops[checks.guards[place].at];
        let OpKind::Guard(site, GuardKind::Exact, _) = op.kind else { return None };
        let value = *op.uses.first()?;
        let plain = op.uses[1..].iter().all(|other| distances.func.shapes[other.0 as usize].is_uniform());
        pattern(value).filter(|_| plain)?;
        let (ty, _) = Expr::of(site.inst(distances.function)?)?.widens()?;
        let Distance { from, by, .. } = distances.of(value)?;
        Some(Guarded { place, value, sum: from, signed: ty.is_signed(), by })
    };
    let guards: Vec<Guarded> = (0..checks.guards.len()).filter_map(guarded).collect();
    // The guard of each value, and the first one of each sum, which is tested for all of that sum.
    let own = guards.iter().rev().map(|guard| ((guard.value, guard.signed), guard));
    let own: HashMap<(Value, bool), &Guarded> = own.collect();
    let first = guards.iter().rev().map(|guard| ((&guard.sum, guard.signed), guard));
    let first: HashMap<(&Sum, bool), &Guarded> = first.collect();
    // The guard that is tested, and by how much the sum of the other one exceeds its sum.
    let tested = |guard: &Guarded| {
        let tests = first[&(&guard.sum, guard.signed)];
        let by = guard.by.wrapping_sub(tests.by);
        let near = by.abs() < FAR && pattern(tests.value) == pattern(guard.value);
        near.then_some((tests.place, by as i32))
    };
    let mut anchors: HashMap<Sum, (Value, Distance)> = HashMap::new();
    for address in addresses {
        let plain = pattern(*address).is_some() && facts.provenance(*address).is_none();
        if checks.distances.contains_key(address) || !plain {
            continue;
        }
        let Some(distance) = distances.of(*address) else { continue };
        let Some((anchor, anchored)) = anchors.get(&distance.from) else {
            anchors.insert(distance.from.clone(), (*address, distance));
            continue;
        };
        let by = distance.by.wrapping_sub(anchored.by);
        let near = by.unsigned_abs() < FAR as u64;
        if anchor == address || !near || pattern(*anchor) != pattern(*address) {
            continue;
        }
        let widened = anchored.widened.iter().chain(&distance.widened);
        let tests: Option<Vec<_>> = widened.map(|sum| tested(own.get(sum)?)).collect();
        let Some(tests) = tests else { continue };
        for (place, by) in tests {
            if let Tested::Between(low, high) = &mut checks.guards[place].tested {
                (*low, *high) = ((*low).min(by), (*high).max(by));
            }
        }
        checks.distances.insert(*address, (*anchor, by));
    }
    for guard in &guards {
        if let Some((place, by)) = tested(guard)
            && place != guard.place
            && let Tested::Between(low, high) = checks.guards[place].tested
            && (low..=high).contains(&by)
        {
            checks.guards[guard.place].tested = Tested::Elsewhere;
        }
    }
}
