//! Constant permutations of elements that fill several vectors.
//!
//! Invariant: element i of the result is element `table[i]` of the inputs, all of which have one type. An
//! output vector is merged from its inputs in pairs, so every shuffle has two operands, which LLVM selects
//! well at every vector width.

use crate::llvm::{Builder, Value};

/// The elements that `table` names, in vectors of the type of the inputs. The length of the table must be a
/// multiple of their number of lanes.
pub(super) fn permute(b: &Builder<'_>, inputs: &[Value], table: &[usize]) -> Vec<Value> {
    let Some(first) = inputs.first() else { return Vec::new() };
    let lanes = first.ty().lanes() as usize;
    table.chunks(lanes).map(|chunk| output(b, inputs, chunk, lanes)).collect()
}

/// One output vector.
fn output(b: &Builder<'_>, inputs: &[Value], table: &[usize], lanes: usize) -> Value {
    let mut used: Vec<usize> = table.iter().map(|at| at / lanes).collect();
    used.sort_unstable();
    used.dedup();
    // Vectors with the lanes of the output that they hold in place.
    let pair = |pair: &[usize]| {
        let (low, high) = (pair[0], pair[pair.len() - 1]);
        let index = |at: &usize| match (at / lanes, at % lanes) {
            (input, lane) if input == low => lane as i32,
            (input, lane) if input == high => (lanes + lane) as i32,
            _ => -1,
        };
        let indices: Vec<i32> = table.iter().map(index).collect();
        let held: Vec<bool> = indices.iter().map(|index| *index >= 0).collect();
        let same = low == high && indices.iter().enumerate().all(|(at, index)| *index == at as i32);
        let vector = if same { inputs[low] } else { b.shuffle(inputs[low], inputs[high], &indices) };
        (vector, held)
    };
    let mut level: Vec<(Value, Vec<bool>)> = used.chunks(2).map(pair).collect();
    while level.len() > 1 {
        level = level.chunks(2).map(|pair| merged(b, pair)).collect();
    }
    level[0].0
}

/// Two vectors as one, with the lanes that either holds.
fn merged(b: &Builder<'_>, pair: &[(Value, Vec<bool>)]) -> (Value, Vec<bool>) {
    let [(low, in_low), (high, in_high)] = pair else { return pair[0].clone() };
    let lanes = in_low.len();
    let index = |lane: usize| match (in_low[lane], in_high[lane]) {
        (true, _) => lane as i32,
        (false, true) => (lanes + lane) as i32,
        (false, false) => -1,
    };
    let indices: Vec<i32> = (0..lanes).map(index).collect();
    let held = in_low.iter().zip(in_high).map(|(low, high)| *low || *high).collect();
    (b.shuffle(*low, *high, &indices), held)
}
