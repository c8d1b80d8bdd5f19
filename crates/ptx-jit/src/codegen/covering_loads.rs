//! Emits covering loads: several loads whose lanes access nearby elements, which
//! [`mem::group`](crate::mem::group) found, are taken from one set of vectors.
//!
//! Chunks whose lanes have the same addresses share all of it.
//!
//! Invariant: only loads that all lanes have checked before; the vectors do not extend beyond the last
//! element.

use super::Codegen;
use crate::llvm::Value;
use crate::wir;
use crate::wir::access::Access;
use crate::wir::group::{Group, GroupKind, Member};

impl Codegen<'_> {
    /// Emits the loads of a group.
    pub(super) fn load_covering(&mut self, node: &wir::Block, piece: &Group) {
        debug_assert!(piece.kind == GroupKind::Covering, "loads that are near each other");
        let (bases, pattern) = self.places_of(piece);
        let (access, first) = (piece.access, piece.members[0].offset);
        let far = |member: &Member| ((member.offset - first) / i64::from(access.bytes())) as u32;
        let members: Vec<u32> = piece.members.iter().map(far).collect();
        let mut loaded: Vec<Vec<Value>> = vec![Vec::new(); members.len()];
        let lanes = |c: u32| &pattern.lanes[(c * self.width) as usize..((c + 1) * self.width) as usize];
        for c in 0..self.chunks() {
            let like = (0..c).find(|other| !pattern.by_chunk && lanes(*other) == lanes(c));
            if let Some(other) = like {
                loaded.iter_mut().for_each(|chunks| chunks.push(chunks[other as usize]));
                continue;
            }
            let relative = self.relative(&pattern, c);
            let elements = self.vectors().elements(&relative, access).expect("asked before");
            let low = relative.iter().min().map_or(0, |low| i64::from(*low)) + i64::from(lanes(c)[0]);
            let base = if pattern.by_chunk { bases[c as usize] } else { bases[0] };
            let last = elements.iter().max().unwrap_or(&0) + members.last().unwrap_or(&0);
            let vectors = self.load_run(self.b.add(base, self.c64(low as u64)), last + 1, access);
            let own = self.sort_out(&vectors, &elements, &members);
            for ((chunks, value), member) in loaded.iter_mut().zip(own).zip(&piece.members) {
                chunks.push(self.extended(value, access, &node.ops[member.at]));
            }
        }
        for (member, chunks) in piece.members.iter().zip(loaded) {
            self.group_is_loaded(&node.ops[member.at], chunks);
        }
    }

    /// Loads so many consecutive elements.
    fn load_run(&self, base: Value, count: u32, access: Access) -> Vec<Value> {
        let (ty, bytes) = (self.b.vec(self.int(access.bits), self.width), access.bytes());
        let vector = |at: u32| {
            let from = self.b.int_to_ptr(self.b.add(base, self.c64((at * self.width * bytes).into())));
            let left = count - at * self.width;
            if left >= self.width {
                return self.b.load(ty, from, bytes);
            }
            let on: Vec<u64> = (0..self.width).map(|lane| u64::from(lane < left)).collect();
            let on = self.b.const_ints(self.int(1), &on);
            self.masked_load(access.space, from, bytes, on, self.b.zero(ty))
        };
        (0..count.div_ceil(self.width)).map(vector).collect()
    }

    /// For each member, the elements of its lanes; `elements` are the lanes' positions, to which the member's
    /// offset is added.
    fn sort_out(&self, vectors: &[Value], elements: &[u32], members: &[u32]) -> Vec<Value> {
        let mut sorted = Vec::new();
        let mut rest = members;
        while let Some(member) = rest.first() {
            let both = rest.get(1).and_then(|next| self.two_of_four(vectors, elements, [*member, *next]));
            rest = &rest[if both.is_some() { 2 } else { 1 }..];
            match both {
                Some(both) => sorted.extend(both),
                None => sorted.push(self.one_of_vectors(vectors, elements, *member)),
            }
        }
        sorted
    }

    /// The element of each lane, selected from any number of vectors.
    fn one_of_vectors(&self, vectors: &[Value], elements: &[u32], member: u32) -> Value {
        let width = self.width;
        let [first, rest @ ..] = vectors else { unreachable!("ptxvm bug: no element, no vector") };
        let mut have = *first;
        let mut sorted = false;
        for (at, vector) in (1..).zip(rest) {
            let index = |(lane, element): (u32, &u32)| {
                let element = element + member;
                match element / width {
                    from if from == at => width + element % width,
                    _ if sorted => lane,
                    from if from < at => element % width,
                    _ => 0,
                }
            };
            let indices: Vec<i32> = (0..).zip(elements).map(|pair| index(pair) as i32).collect();
            have = self.b.shuffle(have, *vector, &indices);
            sorted = true;
        }
        if sorted {
            return have;
        }
        let indices: Vec<i32> = elements.iter().map(|element| (element + member) as i32).collect();
        self.b.permute(have, &indices)
    }

    /// As [`Codegen::one_of_vectors`] for two members at once, with two permutations for each, if they have
    /// as many elements in the first two vectors together as in the others.
    fn two_of_four(&self, vectors: &[Value], elements: &[u32], members: [u32; 2]) -> Option<[Value; 2]> {
        let [a, b, c, rest @ ..] = vectors else { return None };
        let (width, d) = (self.width, rest.first().unwrap_or(c));
        // For each half, the elements of one member followed by those of the other.
        let mut halves = [Vec::new(), Vec::new()];
        let mut own = [Vec::new(), Vec::new()];
        for (own, member) in own.iter_mut().zip(members) {
            for element in elements {
                let (half, at) = ((element + member) / (2 * width), (element + member) % (2 * width));
                own.push((half * width + halves[half as usize].len() as u32) as i32);
                halves[half as usize].push(at as i32);
            }
        }
        if halves.iter().any(|half| half.len() != width as usize) {
            return None;
        }
        let low = self.b.shuffle(*a, *b, &halves[0]);
        let high = self.b.shuffle(*c, *d, &halves[1]);
        Some(own.map(|own| self.b.shuffle(low, high, &own)))
    }
}
