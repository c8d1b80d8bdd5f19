//! Emits interleaved groups and windows: accesses of a block that [`mem::group`](crate::mem::group) found to
//! be close together become wide accesses.
//!
//! The words of a lane's record are one access, and shuffles distribute them. The aligned vectors that cover
//! the loads of a window are loaded once, and each load is a shuffle of two.
//!
//! Invariant: only accesses that all lanes have checked before.

use super::Codegen;
use super::Repr;
use super::check_coalesce::CoalescedChecks;
use super::load_store::Addresses;
use crate::llvm::Value;
use crate::wir;
use crate::wir::access::Access;
use crate::wir::group::{Group, GroupKind};
use crate::wir::{Affine, Op, OpKind};
use ptx::ir::Inst;
use std::collections::HashMap;
use std::rc::Rc;

/// The groups of a block.
#[derive(Default)]
pub(super) struct InterleavedGroups {
    pieces: Vec<Rc<Group>>,
    /// For the index of an access, the groups that are emitted there, and which part of each.
    places: HashMap<usize, Vec<(usize, Part)>>,
    /// For each window, the covering vectors, by run of consecutive chunks.
    vectors: HashMap<usize, Vec<Covered>>,
}

/// The part of a group that is emitted at an access.
#[derive(Clone, Copy)]
enum Part {
    /// A whole interleaved group, or the covering vectors of a window.
    All,
    /// One vector of a window, by its number.
    Row(usize),
}

/// Chunks whose lanes are consecutive, and the vectors that cover all loads of a window for these chunks.
struct Covered {
    chunks: u32,
    vectors: Vec<Value>,
}

impl<'a> Codegen<'a> {
    /// The groups of a block whose lanes are at constant distances. Their members are marked as done.
    pub(super) fn begin_groups(
        &mut self,
        node: &wir::Block,
        foreseen: &mut CoalescedChecks,
    ) -> InterleavedGroups {
        let mut pieces = InterleavedGroups::default();
        for piece in node.groups.iter().filter(|group| group.kind != GroupKind::Gather) {
            self.remark_op(&node.ops[piece.members[0].at]);
            self.remark_piece(piece);
            if !piece.kind.is_joined() {
                continue;
            }
            let number = pieces.pieces.len();
            let places = piece.members.iter().map(|member| member.at);
            let all = if piece.access.write { places.max() } else { places.min() };
            let mut put = |at: usize, part| pieces.places.entry(at).or_default().push((number, part));
            put(all.unwrap_or(0), Part::All);
            for (row, member) in piece.members.iter().enumerate() {
                foreseen.omit_store(member.at);
                if piece.kind == GroupKind::Window {
                    put(member.at, Part::Row(row));
                }
            }
            pieces.pieces.push(piece.clone());
        }
        pieces
    }

    fn remark_piece(&self, piece: &Group) {
        let count = piece.members.len();
        match piece.kind {
            GroupKind::Interleaved => {
                self.applied("interleaved", format!("{count} words of each lane are one access"));
            }
            GroupKind::Window => {
                let how = format!("{count} overlapping vectors are loaded once and shuffled");
                self.applied("covering-loads", how);
            }
            GroupKind::SeparateWindow => {
                self.missed("covering-loads", "every second window is loads, since shuffles are as scarce");
            }
            GroupKind::Covering => {
                self.applied("covering-loads", format!("{count} loads of near elements share their vectors"));
            }
            // The remark is made where the gather is emitted.
            GroupKind::Gather => {}
        }
    }

    /// Emits the parts of groups that belong at an access.
    pub(super) fn interleaved_groups_at(
        &mut self,
        node: &wir::Block,
        pieces: &mut InterleavedGroups,
        at: usize,
    ) {
        for (number, part) in pieces.places.remove(&at).into_iter().flatten() {
            let piece = &pieces.pieces[number].clone();
            match part {
                Part::All => match piece.kind {
                    GroupKind::Interleaved => self.record(node, piece),
                    GroupKind::Window => {
                        let vectors = self.cover(node, piece);
                        pieces.vectors.insert(number, vectors);
                    }
                    GroupKind::Covering => self.load_covering(node, piece),
                    GroupKind::SeparateWindow | GroupKind::Gather => {}
                },
                Part::Row(row) => self.row(node, piece, row, &pieces.vectors[&number]),
            }
        }
    }

    /// The addresses of the first member of a group.
    pub(super) fn places_of(&mut self, piece: &Group) -> (Vec<Value>, Affine) {
        let mut access = piece.access;
        let addresses = self.addresses_from(piece.base, piece.members[0].offset, &mut access);
        match addresses.and_then(|addresses| self.placed(access, &addresses)) {
            Some(Addresses::Affine(bases, pattern)) => (bases, pattern),
            Some(Addresses::Rows(rows, pattern)) => match self.unrolled(rows.scalars, &pattern) {
                Addresses::Affine(bases, pattern) => (bases, pattern),
                _ => unreachable!("ptxvm bug: rows have a base for each chunk"),
            },
            _ => unreachable!("ptxvm bug: a piece without a pattern"),
        }
    }

    /// Loads the vectors that cover a window.
    fn cover(&mut self, node: &wir::Block, piece: &Group) -> Vec<Covered> {
        let (bases, pattern) = self.places_of(piece);
        self.prefetch_rows(node, piece, &bases, &pattern);
        let bytes = piece.access.bytes() as i32;
        let span = self.width as i32 * bytes;
        let more = (piece.members[piece.members.len() - 1].offset - piece.members[0].offset) as i32 / bytes;
        let first = |c: u32| pattern.lanes[(c * self.width) as usize];
        let mut covered = Vec::new();
        let mut c = 0;
        while c < self.chunks() {
            let mut chunks = 1;
            while !pattern.by_chunk
                && c + chunks < self.chunks()
                && first(c + chunks) == first(c) + chunks as i32 * span
            {
                chunks += 1;
            }
            let base = if pattern.by_chunk { bases[c as usize] } else { bases[0] };
            let ty = self.b.vec(self.int(piece.access.bits), self.width);
            let at = |emit: &Self, number: u32| {
                let far = first(c) + number as i32 * span;
                emit.b.int_to_ptr(emit.b.add(base, emit.c64(i64::from(far) as u64)))
            };
            let mut vectors: Vec<Value> =
                (0..chunks).map(|number| self.b.load(ty, at(self, number), bytes as u32)).collect();
            let ends: Vec<u64> = (0..self.width).map(|lane| u64::from((lane as i32) < more)).collect();
            let ends = self.b.const_ints(self.int(1), &ends);
            vectors.push(self.masked_load(
                piece.access.space,
                at(self, chunks),
                bytes as u32,
                ends,
                self.b.zero(ty),
            ));
            covered.push(Covered { chunks, vectors });
            c += chunks;
        }
        covered
    }

    /// Emits the prefetches that separate loads of the window would have emitted.
    fn prefetch_rows(&mut self, node: &wir::Block, piece: &Group, bases: &[Value], pattern: &Affine) {
        let first = piece.members[0].offset;
        for member in &piece.members {
            let op = &node.ops[member.at];
            self.prefetches.beside_access = self.begin_prefetch(op);
            for c in 0..self.chunks() {
                let base = if pattern.by_chunk { bases[c as usize] } else { bases[0] };
                let far = i64::from(pattern.lanes[(c * self.width) as usize]) + member.offset - first;
                self.fetch(self.b.add(base, self.c64(far as u64)), c, piece.access);
            }
        }
        let op = &node.ops[piece.members[0].at];
        self.prefetch_grid_stride(
            piece.access,
            true,
            &Addresses::Affine(bases.to_vec(), pattern.clone()),
            op,
        );
    }

    /// Selects one load of a window from the covering vectors.
    fn row(&mut self, node: &wir::Block, piece: &Group, row: usize, covered: &[Covered]) {
        let member = piece.members[row];
        let far = (member.offset - piece.members[0].offset) as i32 / piece.access.bytes() as i32;
        let indices: Vec<i32> = (far..far + self.width as i32).collect();
        let op = &node.ops[member.at];
        let mut chunks = Vec::new();
        for Covered { chunks: count, vectors } in covered {
            for pair in vectors.windows(2).take(*count as usize) {
                let own = match far {
                    0 => pair[0],
                    _ => self.b.shuffle(pair[0], pair[1], &indices),
                };
                chunks.push(self.extended(own, piece.access, op));
            }
        }
        self.group_is_loaded(op, chunks);
    }

    /// Defines the result of a load of a group, and records the facts that every load records.
    pub(super) fn group_is_loaded(&mut self, op: &Op, chunks: Vec<Value>) {
        self.values.define(op.defs[0], Repr::Chunks(chunks));
        if let Some(inst) = self.inst_of(op) {
            self.note_result(inst, op);
        }
    }

    /// An element of memory, extended to the register of the access.
    pub(super) fn extended(&self, value: Value, access: Access, op: &Op) -> Value {
        let signed = self.inst_of(op).is_some_and(|inst| inst.mods.ty().is_signed());
        self.extend(value, Access { signed, ..access }, op.defs[0])
    }

    /// Emits the accesses of an interleaved group.
    fn record(&mut self, node: &wir::Block, piece: &Group) {
        let access = piece.access;
        let (bases, pattern) = self.places_of(piece);
        let mut loaded: Vec<Vec<Value>> = vec![Vec::new(); piece.members.len()];
        for c in 0..self.chunks() {
            let own = pattern.lanes[(c * self.width) as usize];
            let base = if pattern.by_chunk { bases[c as usize] } else { bases[0] };
            let base = self.b.add(base, self.c64(i64::from(own) as u64));
            let rows = self.relative(&pattern, c);
            if access.write {
                let vectors = piece.members.iter().map(|member| self.stored(&node.ops[member.at], c, access));
                let vectors: Vec<Value> = vectors.collect();
                self.store_rows(base, &rows, vectors, access.bits);
                continue;
            }
            let vectors = self.load_rows(base, &rows, piece.members.len(), access.bits);
            for ((chunks, vector), member) in loaded.iter_mut().zip(vectors).zip(&piece.members) {
                chunks.push(self.extended(vector, access, &node.ops[member.at]));
            }
        }
        if !access.write {
            for (member, chunks) in piece.members.iter().zip(loaded) {
                self.group_is_loaded(&node.ops[member.at], chunks);
            }
        }
    }

    fn inst_of(&self, op: &Op) -> Option<&'a Inst> {
        match op.kind {
            OpKind::Inst(site) => site.inst(self.job.function),
            _ => None,
        }
    }

    /// The elements that a store writes for a chunk.
    fn stored(&mut self, op: &Op, c: u32, access: Access) -> Value {
        let OpKind::Inst(site) = op.kind else { unreachable!("ptxvm bug: a store is an instruction") };
        let inst = site.inst(self.job.function).expect("ptxvm bug: a store is an instruction");
        let values = self.values(inst, op, c, 2).expect("ptxvm bug: a store has a value");
        self.narrow(values[0], access)
    }
}
