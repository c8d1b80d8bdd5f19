//! Interleaved groups and windows: accesses of a block that are close together become wide accesses.
//!
//! **Interleaved groups**: each lane accesses consecutive words that are far from its neighbours' words, as
//! in arrays of structures or points of several coordinates. One access of the program takes one word of each
//! lane's record, at the cost of an access for each lane. As a group, a lane's consecutive words are one
//! access, and shuffles distribute them.
//!
//! **Windows**: contiguous vectors that start a few elements apart, as the neighbours of a point in a grid or
//! a picture. Most start within a cache line and so cost two accesses. The aligned vectors that cover all of
//! them are loaded once, and each access is a shuffle of two; where 512-bit operations are double pumped,
//! this is done for every second family of vectors. Loads whose lanes are close but not contiguous belong to
//! [`covering_loads`](super::covering_loads).
//!
//! Invariants: only accesses that all lanes have checked before, with nothing between them that could observe
//! the difference. Records of two lanes that are written do not overlap. Covering vectors do not extend
//! beyond the first and the last vector of the program.

use super::Codegen;
use super::Repr;
use super::check_coalesce::CoalescedChecks;
use super::load_store::Addresses;
use crate::analysis::address::Provenance;
use crate::llvm::Value;
use crate::mem::transposed::is_consecutive;
use crate::target::Level;
use crate::tuning::INTERLEAVED_GROUP_MIN_ROWS;
use crate::wir;
use crate::wir::access::Access;
use crate::wir::{Affine, Op, OpKind, Shape};
use ptx::ir::{Addr, Base, Inst, Src};
use ptx::isa::{Op as O, Sem, Space};
use std::collections::HashMap;
use std::rc::Rc;

/// A member of a group: the index of the access in the block, and the offset of its element.
#[derive(Clone, Copy)]
pub(super) struct Member {
    pub(super) at: usize,
    pub(super) offset: i64,
}

/// Accesses of a block that may be grouped.
struct Family {
    /// The register that the addresses are relative to.
    name: wir::Value,
    access: Access,
    members: Vec<Member>,
}

/// Accesses that are emitted together, in ascending order of their addresses.
pub(super) struct Piece {
    name: wir::Value,
    pub(super) access: Access,
    pub(super) members: Vec<Member>,
    pub(super) kind: Kind,
}

/// The form of a group.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// An interleaved group: a power of two of consecutive elements.
    Record,
    /// A window: loads of overlapping contiguous vectors.
    Rows,
    /// Loads whose lanes access nearby elements ([`covering_loads`](super::covering_loads)).
    Near,
}

/// The groups of a block.
#[derive(Default)]
pub(super) struct InterleavedGroups {
    pieces: Vec<Piece>,
    /// For the index of an access, the groups that are emitted there, and which part of each.
    places: HashMap<usize, Vec<(usize, Part)>>,
    /// For each window, the covering vectors, by run of consecutive chunks.
    vectors: HashMap<usize, Vec<Covered>>,
    /// For the index of an access, all accesses of its group.
    members: HashMap<usize, Rc<[usize]>>,
}

impl InterleavedGroups {
    /// The members of an access's group, including the access; empty if it belongs to no group.
    pub(super) fn with(&self, at: usize) -> &[usize] {
        self.members.get(&at).map_or(&[], |all| all)
    }
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
    /// Finds the groups of a block. Accesses that another pass emits are marked as done.
    pub(super) fn find_interleaved_groups(
        &mut self,
        node: &wir::Block,
        foreseen: &mut CoalescedChecks,
    ) -> InterleavedGroups {
        let mut pieces = InterleavedGroups::default();
        if !node.full || self.job.program.address_size != ptx::check::module::AddressSize::Bits64 {
            return pieces;
        }
        let mut ended: Vec<Family> = Vec::new();
        let mut loads: Vec<Family> = Vec::new();
        let mut stores: Vec<Family> = Vec::new();
        for (at, op) in node.ops.iter().enumerate() {
            let OpKind::Inst(site) = op.kind else {
                // A side exit here resumes after the stores before it, so these must be complete.
                if matches!(op.kind, OpKind::Guard(..)) && !foreseen.is_done(at) {
                    ended.append(&mut stores);
                }
                continue;
            };
            let Some(inst) = site.inst(self.job.function) else { continue };
            let member = if foreseen.fits(at) { self.member(inst, op) } else { None };
            match (inst.op, inst.mods.sem()) {
                // Loads of variables that are never written.
                (O::Ld, Sem::Weak) if matches!(inst.mods.space(), Space::Param | Space::Const) => {}
                (O::Ld | O::LdNc | O::Ldu, Sem::Weak) => {
                    ended.append(&mut stores);
                    if let Some((access, offset)) = member {
                        join(&mut loads, op.uses[1], access, Member { at, offset });
                    }
                }
                (O::St, Sem::Weak) => {
                    ended.append(&mut loads);
                    let same = |family: &Family| {
                        let Some((access, offset)) = member else { return false };
                        let new = family.members.iter().all(|have| have.offset != offset);
                        family.name == op.uses[1]
                            && (family.access.bits, family.access.space) == (access.bits, access.space)
                            && new
                    };
                    if !stores.iter().all(same) {
                        ended.append(&mut stores);
                    }
                    if let Some((access, offset)) = member {
                        join(&mut stores, op.uses[1], access, Member { at, offset });
                    }
                }
                _ if crate::effects::is_pure(inst) => {}
                _ => {
                    ended.append(&mut loads);
                    ended.append(&mut stores);
                }
            }
        }
        ended.append(&mut loads);
        ended.append(&mut stores);
        let mut rows = 0;
        for family in ended {
            for piece in self.groups_of(family) {
                if piece.kind == Kind::Rows {
                    rows += 1;
                    // Where shuffles are as scarce as loads, every second window stays a set of loads.
                    if self.env.target.tuning().double_pumped_512 && rows % 2 == 0 {
                        self.remark_op(&node.ops[piece.members[0].at]);
                        self.missed(
                            "covering-loads",
                            "every second window is loads, since shuffles are as scarce",
                        );
                        continue;
                    }
                }
                self.remark_op(&node.ops[piece.members[0].at]);
                self.remark_piece(&piece);
                let number = pieces.pieces.len();
                let places = piece.members.iter().map(|member| member.at);
                let all = if piece.access.write { places.max() } else { places.min() };
                let members: Rc<[usize]> = piece.members.iter().map(|member| member.at).collect();
                pieces.members.extend(members.iter().map(|at| (*at, members.clone())));
                let mut put = |at: usize, part| pieces.places.entry(at).or_default().push((number, part));
                put(all.unwrap_or(0), Part::All);
                for (row, member) in piece.members.iter().enumerate() {
                    foreseen.omit_store(member.at);
                    if piece.kind == Kind::Rows {
                        put(member.at, Part::Row(row));
                    }
                }
                pieces.pieces.push(piece);
            }
        }
        pieces
    }

    fn remark_piece(&self, piece: &Piece) {
        let count = piece.members.len();
        match piece.kind {
            Kind::Record => self.applied("interleaved", format!("{count} words of each lane are one access")),
            Kind::Rows => {
                self.applied(
                    "covering-loads",
                    format!("{count} overlapping vectors are loaded once and shuffled"),
                );
            }
            Kind::Near => {
                self.applied("covering-loads", format!("{count} loads of near elements share their vectors"));
            }
        }
    }

    /// The access of an instruction that loads or stores one word for each lane, and its offset from the
    /// register.
    fn member(&self, inst: &Inst, op: &Op) -> Option<(Access, i64)> {
        let write = inst.op == O::St;
        let access = self.access_of(inst, write)?;
        let Src::Addr(Addr { base: Base::Reg(_), index: None, offset }) = inst.srcs.first()? else {
            return None;
        };
        let pattern = match self.shape(*op.uses.get(1)?) {
            Shape::Affine(pattern) => pattern,
            Shape::Bottom | Shape::Uniform(_) | Shape::Varying => return None,
        };
        let plain = inst.guard.is_none()
            && self.reps[op.uses[0].0 as usize].is_some()
            && self.whole(op)
            && !matches!(self.analyses.addresses.provenance(op.uses[1]), Some(Provenance::Local(..)))
            && access.count == 1
            && matches!(access.bits, 32 | 64)
            && matches!(access.space, Space::Global | Space::Shared | Space::Generic)
            && op.defs.len() == usize::from(!write);
        let far = || pattern.rows.is_empty() && self.is_apart(pattern, access);
        (plain && (self.is_row(pattern, access) || self.lies_near(pattern, access) || far()))
            .then_some((access, *offset))
    }

    /// Whether the lanes of every chunk are consecutive, and a chunk's vector is as long as a cache line.
    fn is_row(&self, pattern: &Affine, access: Access) -> bool {
        self.env.target.level() == Level::Avx512
            && access.bits == 32
            && !access.write
            && !pattern.splits(self.width as usize)
            && (0..self.chunks()).all(|c| is_consecutive(&self.relative(pattern, c), access))
    }

    /// Whether the lanes of every chunk are too far apart for a cheaper form.
    fn is_apart(&self, pattern: &Affine, access: Access) -> bool {
        let near = (0..self.chunks()).any(|c| {
            let lanes = self.relative(pattern, c);
            is_consecutive(&lanes, access)
                || lanes.iter().all(|lane| *lane == 0)
                || self.vectors().cluster(&lanes, access, true).is_some()
        });
        !near && self.vectors().tiles(pattern, access, true).is_empty()
    }

    /// The groups of a family: runs of consecutive elements, split into powers of two. Remaining accesses
    /// stay single.
    fn groups_of(&self, mut family: Family) -> Vec<Piece> {
        let bytes = i64::from(family.access.bytes());
        family.members.sort_by_key(|member| (member.offset, member.at));
        // If an element is loaded twice, the second load is not a member.
        family.members.dedup_by_key(|member| member.offset);
        let (Some(first), Some(last)) = (family.members.first(), family.members.last()) else {
            return Vec::new();
        };
        if self.pattern(family.name).is_some_and(|pattern| self.is_row(&pattern, family.access)) {
            return self.rows_of(family);
        }
        let (name, access) = (family.name, family.access);
        if let Some(pattern) = self.pattern(name).filter(|pattern| self.lies_near(pattern, access)) {
            let pieces = self.covering_of(&family.members, &pattern, access).into_iter();
            return pieces.map(|members| Piece { name, access, members, kind: Kind::Near }).collect();
        }
        let span = last.offset - first.offset + bytes;
        if family.access.write && !self.is_disjoint(family.name, span) {
            return Vec::new();
        }
        let mut pieces = Vec::new();
        let mut rest = family.members.as_slice();
        while let Some(first) = rest.first() {
            let next = |(at, member): (usize, &Member)| member.offset == first.offset + at as i64 * bytes;
            let run = rest.iter().enumerate().take_while(|(at, member)| next((*at, member))).count();
            let count = 1 << run.min(self.width as usize).ilog2();
            let (members, others) = rest.split_at(count);
            if count > 1 {
                let members = members.to_vec();
                pieces.push(Piece { name: family.name, access: family.access, members, kind: Kind::Record });
            }
            rest = others;
        }
        pieces
    }

    /// The loads of a family that start within one vector's length from the first.
    fn rows_of(&self, family: Family) -> Vec<Piece> {
        let reach = i64::from(self.width * family.access.bytes());
        let mut pieces = Vec::new();
        let mut rest = family.members.as_slice();
        while let Some(first) = rest.first() {
            let near = rest.iter().take_while(|member| member.offset - first.offset <= reach).count();
            let (members, others) = rest.split_at(near);
            if near >= INTERLEAVED_GROUP_MIN_ROWS {
                let members = members.to_vec();
                pieces.push(Piece { name: family.name, access: family.access, members, kind: Kind::Rows });
            }
            rest = others;
        }
        pieces
    }

    /// Whether the records of different lanes do not overlap; each has so many bytes.
    fn is_disjoint(&self, name: wir::Value, span: i64) -> bool {
        let Some(pattern) = self.pattern(name) else { return false };
        let lanes = match pattern.by_chunk {
            // The distances between chunks are not known.
            true => return false,
            false => pattern.lanes,
        };
        let mut sorted: Vec<i64> = lanes.into_iter().map(i64::from).collect();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[1] - pair[0] >= span)
    }

    /// Emits the parts of groups that belong at an access.
    pub(super) fn interleaved_groups_at(
        &mut self,
        node: &wir::Block,
        pieces: &mut InterleavedGroups,
        at: usize,
    ) {
        for (number, part) in pieces.places.remove(&at).into_iter().flatten() {
            let piece = &pieces.pieces[number];
            match part {
                Part::All => match piece.kind {
                    Kind::Record => self.record(node, piece),
                    Kind::Rows => {
                        let vectors = self.cover(node, piece);
                        pieces.vectors.insert(number, vectors);
                    }
                    Kind::Near => self.load_covering(node, piece),
                },
                Part::Row(row) => self.row(node, piece, row, &pieces.vectors[&number]),
            }
        }
    }

    /// The addresses of the first member of a group.
    pub(super) fn places_of(&mut self, piece: &Piece) -> (Vec<Value>, Affine) {
        let mut access = piece.access;
        let addresses = self.addresses_from(piece.name, piece.members[0].offset, &mut access);
        match addresses.and_then(|addresses| self.placed(access, &addresses)) {
            Some(Addresses::Affine(bases, pattern)) => (bases, pattern),
            Some(Addresses::Rows(rows, pattern)) => match self.unrolled(rows, &pattern) {
                Addresses::Affine(bases, pattern) => (bases, pattern),
                _ => unreachable!("ptxvm bug: rows have a base for each chunk"),
            },
            _ => unreachable!("ptxvm bug: a piece without a pattern"),
        }
    }

    /// Loads the vectors that cover a window.
    fn cover(&mut self, node: &wir::Block, piece: &Piece) -> Vec<Covered> {
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
            vectors.push(self.masked_load(at(self, chunks), bytes as u32, ends, self.b.zero(ty)));
            covered.push(Covered { chunks, vectors });
            c += chunks;
        }
        covered
    }

    /// Emits the prefetches that separate loads of the window would have emitted.
    fn prefetch_rows(&mut self, node: &wir::Block, piece: &Piece, bases: &[Value], pattern: &Affine) {
        let first = piece.members[0].offset;
        for member in &piece.members {
            let op = &node.ops[member.at];
            let Some(inst) = self.inst_of(op) else { continue };
            self.prefetch = self.stride(inst, op, piece.access);
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
    fn row(&mut self, node: &wir::Block, piece: &Piece, row: usize, covered: &[Covered]) {
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
        self.reps[op.defs[0].0 as usize] = Some(Repr::Chunks(chunks));
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
    fn record(&mut self, node: &wir::Block, piece: &Piece) {
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

/// Adds an access to the family of its register.
fn join(families: &mut Vec<Family>, name: wir::Value, access: Access, member: Member) {
    let same = |family: &&mut Family| {
        family.name == name && (family.access.bits, family.access.space) == (access.bits, access.space)
    };
    match families.iter_mut().find(same) {
        Some(family) => family.members.push(member),
        None => families.push(Family { name, access, members: vec![member] }),
    }
}
