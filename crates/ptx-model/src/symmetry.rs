//! Threads that can be exchanged without changing the test.
//!
//! Two threads are symmetric if they run the same code from the same initial values, every other thread is in
//! the CTA or on the device of both or of neither, and exchanging their registers in the goal gives the same
//! goal. The search then needs only one order of the two. Masks tell the lanes of a warp apart, so threads
//! that have a lane are symmetric only in tests without `bar.warp.sync`.

use crate::test::{Clause, Op, Scope, Term, Test};
use std::collections::BTreeMap;

/// The classes of symmetric threads, each of at least two, in order.
pub(crate) fn classes(test: &Test, goal: &Clause) -> Vec<Vec<usize>> {
    if goal.has_relations() {
        return Vec::new();
    }
    let codes: Vec<Code> = (0..test.threads.len()).map(|thread| Code::of(test, thread)).collect();
    let plain = canonical(goal, &codes, (0, 0));
    let is_sync = |of: &crate::test::Instruction| matches!(of.op, Op::WarpSync { .. });
    let lanes_matter = test.threads.iter().any(|thread| thread.code.iter().any(is_sync));
    let has_lane = |thread: usize| lanes_matter && test.threads[thread].lane.is_some();
    let same = |a: usize, b: usize| {
        !(has_lane(a) || has_lane(b))
            && codes[a].text == codes[b].text
            && same_place(test, a, b)
            && canonical(goal, &codes, (a, b)) == plain
    };
    let mut classes: Vec<Vec<usize>> = Vec::new();
    for thread in 0..test.threads.len() {
        // Exchanges of any two members are exchanges of a class.
        match classes.iter_mut().find(|class| class.iter().all(|other| same(*other, thread))) {
            Some(class) => class.push(thread),
            None => classes.push(vec![thread]),
        }
    }
    classes.retain(|class| class.len() > 1);
    classes
}

fn same_place(test: &Test, a: usize, b: usize) -> bool {
    let (at_a, at_b) = (test.threads[a].placement, test.threads[b].placement);
    test.threads.iter().enumerate().filter(|(other, _)| *other != a && *other != b).all(|(_, other)| {
        [Scope::Cta, Scope::Gpu]
            .iter()
            .all(|scope| at_a.reaches(*scope, other.placement) == at_b.reaches(*scope, other.placement))
    })
}

/// The code of a thread with its registers renamed in the order in which they occur.
struct Code {
    text: String,
    renamed: BTreeMap<usize, usize>,
}

impl Code {
    fn of(test: &Test, thread: usize) -> Self {
        let thread = &test.threads[thread];
        let mut raw = String::new();
        for instruction in &thread.code {
            raw.push_str(&format!("{:?} {:?};", instruction.guard, instruction.op));
        }
        let mut renamed = BTreeMap::new();
        let mut text = String::new();
        let mut rest = raw.as_str();
        // A register prints as `Reg(7)`; an operand that is one, as `Reg(Reg(7))`.
        while let Some(at) = rest.find("Reg(") {
            let (before, after) = rest.split_at(at + 4);
            text.push_str(before);
            let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
            if let Ok(number) = after[..end].parse::<usize>() {
                let next = renamed.len();
                text.push_str(&renamed.entry(number).or_insert(next).to_string());
            }
            rest = &after[end..];
        }
        text.push_str(rest);
        let mut inits: Vec<(usize, String)> =
            renamed.iter().map(|(old, new)| (*new, format!("{:?}", thread.init[*old]))).collect();
        inits.sort();
        text.push_str(&format!("{inits:?}"));
        Self { text, renamed }
    }
}

/// The goal as text, with two threads exchanged, and the parts of conjunctions and disjunctions sorted.
fn canonical(goal: &Clause, codes: &[Code], swap: (usize, usize)) -> String {
    let term = |term: &Term| match term {
        Term::Reg(thread, reg) => {
            let as_thread = match *thread {
                t if t == swap.0 => swap.1,
                t if t == swap.1 => swap.0,
                t => t,
            };
            match codes[*thread].renamed.get(&reg.0) {
                Some(name) => format!("{as_thread}:{name}"),
                None => format!("{thread}:unused {}", reg.0),
            }
        }
        other => format!("{other:?}"),
    };
    match goal {
        Clause::True | Clause::Related(..) => format!("{goal:?}"),
        Clause::Compare(comparison, a, b) => format!("({} {comparison:?} {})", term(a), term(b)),
        Clause::Not(inner) => format!("not {}", canonical(inner, codes, swap)),
        Clause::And(all) | Clause::Or(all) => {
            let mut parts: Vec<String> = all.iter().map(|one| canonical(one, codes, swap)).collect();
            parts.sort();
            let word = if matches!(goal, Clause::And(_)) { "and" } else { "or" };
            format!("({word} {})", parts.join(" "))
        }
    }
}
