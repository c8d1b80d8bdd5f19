//! Loads and stores of local memory in which the words of all lanes at one offset are neighbours
//! ([`LocalLayout::ByWord`](ptx_exec::mem::LocalLayout)).
//!
//! At one offset in all lanes, a chunk's words are a vector. Elements of eight bytes are two words in
//! neighbouring rows, and bytes and halves are parts of words: a store reads the words and writes them again,
//! which other lanes do not notice, since a word belongs to one lane.
//!
//! A generic address may be one of a variable of the function, whose address was stored somewhere. Where such
//! an access is not in its cached bounds, it is tested whether all lanes are at one offset of their memory.
//!
//! Invariant: the accesses have passed their bounds checks, which compare offsets with the bytes in use.

use super::load_store::Addresses;
use super::{Codegen, Repr};
use crate::frame::Frame;
use crate::llvm::{Block, IntPred, Likely, Value};
use crate::wir::access::{Access, Form, Plan};
use crate::wir::{self, Op};
use ptx::isa::Space;
use ptx_exec::mem::{LOCAL_ROW, LOCAL_WORD, LocalLayout};
use std::mem::offset_of;

/// The words of a chunk that elements begin in.
enum Words {
    /// A pointer to the first lane's word; the others follow.
    Row(Value),
    /// A pointer for each lane.
    Each(Value),
}

/// Where the elements of a chunk begin.
struct Start {
    words: Words,
    /// The bits of a word below the first element, for each lane; `None`: an access of whole words.
    shift: Option<Value>,
}

/// Generic addresses of all active lanes at one offset in their local memory.
pub(super) struct OwnOffset {
    /// The offset.
    pub(super) offset: Value,
    /// The LLVM block for other addresses.
    pub(super) elsewhere: Block,
}

impl Codegen<'_> {
    /// Begins code for a generic access that is not in the cached bounds, if all active lanes are at one
    /// offset of their local memory: a pointer to a variable of the function, which each thread has. `None`:
    /// the function has no variables in local memory, or the addresses are not those of the lanes.
    pub(super) fn own_offset(&mut self, plan: &Plan, addresses: &Addresses, op: &Op) -> Option<OwnOffset> {
        let Plan { access, form, .. } = plan;
        let is_apart = matches!(form, Form::Each | Form::ScaledIndex(_)) && access.space == Space::Generic;
        let by_word = self.planner().local_layout() == LocalLayout::ByWord;
        if !is_apart || !by_word || self.job.function.frame_bytes == 0 || self.entry.thread.is_some() {
            return None;
        }
        let [origin, stride, top] = [0, 8, 16].map(|at| self.load64(offset_of!(Frame, local) + at));
        let mask = self.mask(op.uses[0]);
        let mut own = Vec::new();
        for (c, chunk) in (0..).zip(self.each(addresses)) {
            own.push(self.b.sub(chunk, self.strided(origin, stride, c)));
        }
        let (_, low, _) = self.running(self.word(mask), None);
        let offset = self.lane_of(&own, low);
        let mut others = None;
        for (c, own) in (0..).zip(&own) {
            let other = self.b.icmp(IntPred::Ne, *own, self.b.splat(offset, self.width));
            let other = self.b.and(other, self.mask_chunk(mask, c));
            others = Some(others.map_or(other, |others| self.b.or(others, other)));
        }
        let bytes = u64::from(access.bytes());
        let more = self.b.add(top, self.c64(1));
        let limit = self.b.intrinsic("llvm.usub.sat", &[self.int(64)], &[more, self.c64(bytes)]);
        let inside = self.b.icmp(IntPred::Ult, offset, limit);
        let odd = self.b.and(offset, self.c64(bytes - 1));
        let even = self.b.icmp(IntPred::Eq, odd, self.c64(0));
        let same = self.b.not(self.any(others?));
        let fits = self.b.and(self.b.and(inside, even), same);
        let [own, elsewhere] = ["own", "elsewhere"].map(|name| self.b.append_block(self.function, name));
        self.b.cond_br(fits, own, elsewhere, Likely::Unknown);
        self.b.position_at_end(own);
        Some(OwnOffset { offset, elsewhere })
    }

    /// Loads from local memory. Returns the values of each destination.
    pub(super) fn load_local(&mut self, plan: &Plan, places: &Addresses, op: &Op) -> Vec<Repr> {
        let access = plan.access;
        if let (Addresses::Same(offset), Some(_)) = (places, self.entry.thread) {
            let value = |(at, def): (u64, &wir::Value)| {
                Repr::Scalar(self.extend(self.load_own(access, *offset, at), access, *def))
            };
            return (0..).zip(&op.defs).map(value).collect();
        }
        let mask = self.mask(op.uses[0]);
        let mut loaded = vec![Vec::new(); access.count as usize];
        for c in 0..self.chunks() {
            let lanes = self.lanes(plan, mask, c);
            let start = self.local_start(access, places, c);
            for ((at, values), def) in (0..).zip(&mut loaded).zip(&op.defs) {
                let value = self.load_words(access, &start, at, lanes);
                values.push(self.extend(value, access, *def));
            }
        }
        loaded.into_iter().map(Repr::Chunks).collect()
    }

    /// Stores to local memory. The values are given by chunk and element.
    pub(super) fn store_local(&mut self, plan: &Plan, places: &Addresses, op: &Op, values: &[Vec<Value>]) {
        let access = plan.access;
        if let (Addresses::Same(offset), Some(_)) = (places, self.entry.thread) {
            for (at, value) in (0..).zip(&values[0]) {
                self.store_own(access, *offset, at, *value);
            }
            return;
        }
        let mask = self.mask(op.uses[0]);
        for (c, values) in (0..).zip(values) {
            let lanes = self.lanes(plan, mask, c);
            let start = self.local_start(access, places, c);
            for (at, value) in (0..).zip(values) {
                self.store_words(access, &start, at, *value, lanes);
            }
        }
    }

    /// The address of the first word of a warp's local memory.
    fn local_origin(&self) -> Value {
        self.load64(offset_of!(Frame, local))
    }

    /// Bytes from the first row to the word that contains the offset of an access, and the byte of the word;
    /// `None`: zero, since the access is aligned to its size.
    fn row_of_offset(&self, access: Access, offset: Value) -> (Value, Option<Value>) {
        let rows = self.b.const_int(offset.ty(), (LOCAL_ROW / LOCAL_WORD).ilog2().into());
        if u64::from(access.bytes()) >= LOCAL_WORD {
            return (self.b.shl(offset, rows), None);
        }
        let three = self.b.const_int(offset.ty(), LOCAL_WORD - 1);
        let low = self.b.and(offset, three);
        (self.b.shl(self.b.sub(offset, low), rows), Some(low))
    }

    /// Where the elements of a chunk begin.
    fn local_start(&self, access: Access, places: &Addresses, c: u32) -> Start {
        let first = LOCAL_WORD * u64::from(c * self.width);
        let (words, low) = match places {
            Addresses::Same(offset) => {
                let (row, low) = self.row_of_offset(access, *offset);
                let place = self.b.add(self.local_origin(), self.b.add(row, self.c64(first)));
                (Words::Row(self.b.int_to_ptr(place)), low.map(|low| self.b.splat(low, self.width)))
            }
            Addresses::Each(offsets) => {
                let (row, low) = self.row_of_offset(access, offsets[c as usize]);
                let lanes: Vec<u64> =
                    (0..u64::from(self.width)).map(|lane| first + LOCAL_WORD * lane).collect();
                let lanes = self.b.const_ints(self.int(64), &lanes);
                let origin = self.b.splat(self.local_origin(), self.width);
                (Words::Each(self.b.int_to_ptr(self.b.add(origin, self.b.add(row, lanes)))), low)
            }
            Addresses::Affine(..) | Addresses::Rows(..) | Addresses::ScaledIndex(_) => {
                unreachable!("ptxvm bug: no offsets in local memory")
            }
        };
        let ty = self.b.vec(self.int(32), self.width);
        let bits = |low: Value| {
            let low = self.b.trunc(low, ty);
            self.b.shl(low, self.b.const_int(ty, 3))
        };
        let parts = u64::from(access.bits / 8) < LOCAL_WORD;
        Start { words, shift: parts.then(|| low.map_or(self.b.zero(ty), bits)) }
    }

    /// The words that are so many rows behind those in which the elements begin.
    fn rows_behind(&self, words: &Words, rows: u64) -> Words {
        match words {
            Words::Row(pointer) => Words::Row(self.b.offset(*pointer, rows * LOCAL_ROW)),
            Words::Each(pointers) => {
                let more = self.b.splat(self.c64(rows * LOCAL_ROW), self.width);
                Words::Each(self.b.gep_of(self.int(8), *pointers, more))
            }
        }
    }

    fn read(&self, words: &Words, lanes: Option<Value>) -> Value {
        let ty = self.b.vec(self.int(32), self.width);
        match (words, lanes) {
            (Words::Row(pointer), None) => self.b.load(ty, *pointer, LOCAL_WORD as u32),
            (Words::Row(pointer), Some(lanes)) => {
                self.masked_load(Space::Local, *pointer, LOCAL_WORD as u32, lanes, self.b.zero(ty))
            }
            (Words::Each(pointers), lanes) => {
                self.masked_gather(*pointers, LOCAL_WORD as u32, lanes, self.b.zero(ty))
            }
        }
    }

    fn write(&self, words: &Words, value: Value, lanes: Option<Value>) {
        match (words, lanes) {
            (Words::Row(pointer), None) => self.b.store(value, *pointer, LOCAL_WORD as u32),
            (Words::Row(pointer), Some(lanes)) => {
                self.masked_store(Space::Local, value, *pointer, LOCAL_WORD as u32, lanes);
            }
            (Words::Each(pointers), lanes) => {
                self.masked_scatter(value, *pointers, LOCAL_WORD as u32, lanes);
            }
        }
    }

    /// The words that contain element `at` of an access, and the bits below it in each word.
    fn element_of(&self, access: Access, start: &Start, at: u64) -> (Words, Option<Value>) {
        let byte = at * u64::from(access.bits / 8);
        let words = self.rows_behind(&start.words, byte / LOCAL_WORD);
        // An access that is longer than a word begins with a word.
        let shift = start.shift.map(|shift| {
            let more = self.b.const_int(shift.ty(), byte % LOCAL_WORD * 8);
            self.b.add(shift, more)
        });
        (words, shift)
    }

    /// Whether accesses of so many bytes of a lane are contiguous in local memory.
    pub(super) fn is_one_word(&self, bytes: u32) -> bool {
        u64::from(bytes) <= LOCAL_WORD || self.planner().local_layout() == LocalLayout::Apart
    }

    /// The address in the process of a generic address, which in scalar code may be one of the thread's local
    /// memory.
    pub(super) fn own_or_other(&self, access: Access, address: Value) -> Value {
        let bytes = access.bytes();
        let by_word = self.planner().local_layout() == LocalLayout::ByWord;
        let Some(thread) = self.entry.thread.filter(|_| by_word && self.is_one_word(bytes)) else {
            return address;
        };
        let own = self.own_address(access, self.b.sub(address, thread.local[0]));
        self.b.select(thread.has_local(self, address, bytes), own, address)
    }

    /// Loads element `at` of each lane of a chunk.
    fn load_words(&self, access: Access, start: &Start, at: u64, lanes: Option<Value>) -> Value {
        let (words, shift) = self.element_of(access, start, at);
        let low = self.read(&words, lanes);
        if let Some(shift) = shift {
            return self.b.trunc(self.b.lshr(low, shift), self.b.vec(self.int(access.bits), self.width));
        }
        if access.bits == 32 {
            return low;
        }
        let high = self.read(&self.rows_behind(&words, 1), lanes);
        self.b.bitcast(self.interleave(&[low, high]), self.b.vec(self.int(64), self.width))
    }

    /// Stores element `at` of each lane of a chunk.
    fn store_words(&self, access: Access, start: &Start, at: u64, value: Value, lanes: Option<Value>) {
        let (words, shift) = self.element_of(access, start, at);
        let ty = self.b.vec(self.int(32), self.width);
        if let Some(shift) = shift {
            let old = self.read(&words, lanes);
            let part = self.b.shl(self.b.const_int(ty, (1 << access.bits) - 1), shift);
            let new = self.b.shl(self.b.zext(value, ty), shift);
            return self.write(&words, self.b.or(self.b.and(old, self.b.not(part)), new), lanes);
        }
        if access.bits == 32 {
            return self.write(&words, value, lanes);
        }
        let halves = self.b.bitcast(value, self.b.vec(self.int(32), 2 * self.width));
        for half in 0..2 {
            let indices: Vec<i32> = (0..self.width as i32).map(|lane| 2 * lane + half).collect();
            let words = self.rows_behind(&words, half as u64);
            self.write(&words, self.b.permute(halves, &indices), lanes);
        }
    }

    /// A pointer to the word, or the part of a word, in which element `at` of an access of the only thread
    /// begins.
    fn own_place(&self, access: Access, offset: Value, at: u64) -> Value {
        let byte = at * u64::from(access.bits / 8);
        let first = self.b.int_to_ptr(self.own_address(access, offset));
        self.b.offset(first, byte / LOCAL_WORD * LOCAL_ROW + byte % LOCAL_WORD)
    }

    /// The address in the process of a byte of the only thread's local memory.
    fn own_address(&self, access: Access, offset: Value) -> Value {
        let Some(thread) = self.entry.thread else { unreachable!("ptxvm bug: several lanes") };
        let (row, low) = self.row_of_offset(access, offset);
        let lane = self.b.mul(self.b.zext(thread.lane, self.int(64)), self.c64(LOCAL_WORD));
        let place = self.b.add(self.b.add(self.local_origin(), lane), row);
        low.map_or(place, |low| self.b.add(place, low))
    }

    fn load_own(&self, access: Access, offset: Value, at: u64) -> Value {
        let place = self.own_place(access, offset, at);
        if access.bits <= 32 {
            return self.b.load(self.int(access.bits), place, access.bits / 8);
        }
        let word =
            |place: Value| self.b.zext(self.b.load(self.int(32), place, LOCAL_WORD as u32), self.int(64));
        let (low, high) = (word(place), word(self.b.offset(place, LOCAL_ROW)));
        self.b.or(low, self.b.shl(high, self.c64(32)))
    }

    fn store_own(&self, access: Access, offset: Value, at: u64, value: Value) {
        let place = self.own_place(access, offset, at);
        if access.bits <= 32 {
            return self.b.store(value, place, access.bits / 8);
        }
        let high = self.b.lshr(value, self.c64(32));
        self.b.store(self.b.trunc(value, self.int(32)), place, LOCAL_WORD as u32);
        self.b.store(self.b.trunc(high, self.int(32)), self.b.offset(place, LOCAL_ROW), LOCAL_WORD as u32);
    }
}
