//! Records: what each lane accesses one behind another, and far from what its neighbours do. Arrays of structures, messages of some words, points
//! of several coordinates.
//!
//! One access of the program takes one word of each record, which costs an access for each lane. So accesses of a straight piece that make up
//! pieces of records are carried out together: a lane's piece as one access, sorted out in registers.
//!
//! Invariants: only accesses that were checked before the piece began, by all lanes, with nothing between them that could see the
//! difference; records of two lanes that are written do not overlap.

use super::Emit;
use super::ahead::Foreseen;
use super::memory::{Access, Addresses};
use super::{Name, Origin, Rep};
use crate::llvm::Value;
use crate::plan::{Class, Node, Op, OpKind, Pattern};
use ptx::ir::{Addr, Base, Inst, Src};
use ptx::isa::{Op as O, Sem, Space};
use std::collections::HashMap;

/// One access of a piece: its number in the node, and where its element begins.
#[derive(Clone, Copy)]
struct Member {
    at: usize,
    offset: i64,
}

/// Accesses of a node that may be carried out together.
struct Family {
    /// The register of their addresses.
    name: Name,
    access: Access,
    members: Vec<Member>,
}

/// Accesses that are carried out together: elements one behind another, a power of two of them.
#[derive(Clone)]
pub(super) struct Piece {
    name: Name,
    access: Access,
    members: Vec<Member>,
}

/// The pieces of a node, by the number of the access where they are carried out.
pub(super) type Pieces = HashMap<usize, Vec<Piece>>;

impl Emit<'_> {
    /// Finds the pieces of a node; what is dealt with by others is done.
    pub(super) fn find_pieces(&mut self, node: &Node, foreseen: &mut Foreseen) -> Pieces {
        let mut pieces = Pieces::new();
        if !node.full || self.job.program.address_size != ptx::check::module::AddressSize::Bits64 {
            return pieces;
        }
        let mut ended: Vec<Family> = Vec::new();
        let mut loads: Vec<Family> = Vec::new();
        let mut stores: Vec<Family> = Vec::new();
        for (at, op) in node.ops.iter().enumerate() {
            let OpKind::Inst(site) = op.kind else {
                // Who leaves here goes on behind what was stored before.
                if matches!(op.kind, OpKind::Guard(..)) && !foreseen.is_done(at) {
                    ended.append(&mut stores);
                }
                continue;
            };
            let Some(inst) = site.inst(self.job.function) else { continue };
            let member = if foreseen.fits(at) { self.member(inst, op) } else { None };
            match (inst.op, inst.mods.sem()) {
                // Of variables that nobody writes.
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
                _ if crate::machine::is_pure(inst) => {}
                _ => {
                    ended.append(&mut loads);
                    ended.append(&mut stores);
                }
            }
        }
        ended.append(&mut loads);
        ended.append(&mut stores);
        for family in ended {
            for piece in self.pieces_of(family) {
                let numbers = piece.members.iter().map(|member| member.at);
                let place = if piece.access.write { numbers.max() } else { numbers.min() };
                let Some(place) = place else { continue };
                for member in &piece.members {
                    foreseen.leave_out(member.at);
                }
                pieces.entry(place).or_default().push(piece);
            }
        }
        pieces
    }

    /// What an access of one word for each lane is, and how far behind its register.
    fn member(&self, inst: &Inst, op: &Op) -> Option<(Access, i64)> {
        let write = inst.op == O::St;
        let access = self.access_of(inst, write)?;
        let Src::Addr(Addr { base: Base::Reg(_), index: None, offset }) = inst.srcs.first()? else {
            return None;
        };
        let pattern = match self.class(*op.uses.get(1)?) {
            Class::Pattern(pattern) => pattern,
            Class::Bottom | Class::Uniform(_) | Class::Varying => return None,
        };
        let plain = inst.guard.is_none()
            && self.reps[op.uses[0].0 as usize].is_some()
            && self.whole(op)
            && !matches!(self.origins.get(&op.uses[1]), Some(Origin::Local(..)))
            && access.count == 1
            && matches!(access.bits, 32 | 64)
            && matches!(access.space, Space::Global | Space::Shared | Space::Generic)
            && op.defs.len() == usize::from(!write);
        (plain && pattern.rows.is_empty() && self.is_apart(pattern, access)).then_some((access, *offset))
    }

    /// Whether every chunk's lanes are too far from each other for anything better.
    fn is_apart(&self, pattern: &Pattern, access: Access) -> bool {
        let near = (0..self.chunks()).any(|c| {
            let lanes = self.relative(pattern, c);
            let row = lanes.iter().enumerate().all(|(at, lane)| *lane == (at as u32 * access.bytes()) as i32);
            row || lanes.iter().all(|lane| *lane == 0) || self.cluster(&lanes, access, true).is_some()
        });
        !near && self.tiles(pattern, access, true).is_empty()
    }

    /// The pieces of a family: runs of elements, cut into powers of two. What is left over stays as it is.
    fn pieces_of(&self, mut family: Family) -> Vec<Piece> {
        let bytes = i64::from(family.access.bytes());
        family.members.sort_by_key(|member| (member.offset, member.at));
        // The same element may be loaded twice; the second time it is not of the piece.
        family.members.dedup_by_key(|member| member.offset);
        let (Some(first), Some(last)) = (family.members.first(), family.members.last()) else {
            return Vec::new();
        };
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
                pieces.push(Piece { name: family.name, access: family.access, members: members.to_vec() });
            }
            rest = others;
        }
        pieces
    }

    /// Whether records of that many bytes overlap nowhere.
    fn is_disjoint(&self, name: Name, span: i64) -> bool {
        let Some(pattern) = self.pattern(name) else { return false };
        let lanes = match pattern.by_chunk {
            // How chunks lie to each other is not known.
            true => return false,
            false => pattern.lanes,
        };
        let mut sorted: Vec<i64> = lanes.into_iter().map(i64::from).collect();
        sorted.sort_unstable();
        sorted.windows(2).all(|pair| pair[1] - pair[0] >= span)
    }

    /// Carries out what belongs to a piece.
    pub(super) fn piece(&mut self, node: &Node, piece: &Piece) {
        let mut access = piece.access;
        let first = piece.members[0].offset;
        let addresses = self.addresses_from(piece.name, first, &mut access);
        let places = addresses.and_then(|addresses| self.placed(access, &addresses));
        let Some(Addresses::Pattern(bases, pattern)) = places else {
            unreachable!("ptxvm bug: a record without a pattern")
        };
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
                let op = &node.ops[member.at];
                let signed = self.inst_of(op).is_some_and(|inst| inst.mods.ty().is_signed());
                chunks.push(self.extend(vector, Access { signed, ..access }, op.defs[0]));
            }
        }
        if !access.write {
            for (member, chunks) in piece.members.iter().zip(loaded) {
                let def = node.ops[member.at].defs[0];
                self.reps[def.0 as usize] = Some(Rep::Chunks(chunks));
            }
        }
    }

    fn inst_of(&self, op: &Op) -> Option<&Inst> {
        match op.kind {
            OpKind::Inst(site) => site.inst(self.job.function),
            _ => None,
        }
    }

    /// What a store writes in a chunk.
    fn stored(&mut self, op: &Op, c: u32, access: Access) -> Value {
        let OpKind::Inst(site) = op.kind else { unreachable!("ptxvm bug: a store is an instruction") };
        let inst = site.inst(self.job.function).expect("ptxvm bug: a store is an instruction");
        let values = self.values(inst, op, c, 2).expect("ptxvm bug: a store has a value");
        self.narrow(values[0], access)
    }
}

/// Puts an access to those of the same register.
fn join(families: &mut Vec<Family>, name: Name, access: Access, member: Member) {
    let same = |family: &&mut Family| {
        family.name == name && (family.access.bits, family.access.space) == (access.bits, access.space)
    };
    match families.iter_mut().find(same) {
        Some(family) => family.members.push(member),
        None => families.push(Family { name, access, members: vec![member] }),
    }
}
