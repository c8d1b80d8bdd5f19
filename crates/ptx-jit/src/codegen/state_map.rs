//! State maps: values in memory, in the form of their shapes, at barriers and where native code is entered or
//! left.
//!
//! Invariant: for each register a table tells the host where it is and in which form ([`SavedReg`]); native code
//! and host agree on nothing else.

use super::{Codegen, LANES, Repr};
use crate::llvm::Value;
use crate::wir;
use crate::wir::{Kind, Shape};
use ptx::ir::{Reg, RegClass};
use ptx_exec::native::{EntryState, ExitState, Held, Line, SavedReg, bytes_of};
use std::collections::HashMap;
use std::sync::Arc;

/// How registers are handed over where native code is entered and left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StateMap {
    /// Lines of the room that it takes.
    pub(crate) lines: u32,
    /// Where it can be entered.
    pub(crate) entries: Vec<EntryState>,
    /// What it leaves, by the number that it gives, less one.
    pub(crate) exits: Vec<ExitState>,
}

impl StateMap {
    /// Makes the room as large as that.
    pub(super) fn fit(&mut self, room: &Room) {
        self.lines = self.lines.max(room.bytes() / Line::BYTES as u32);
    }
}

/// Places in memory, one behind the other.
#[derive(Default)]
pub(super) struct Room {
    end: u32,
    /// Warps besides the first whose lanes stand in it.
    more: u32,
}

impl Room {
    /// For registers of so many warps as one.
    pub(super) fn of(warps: u32) -> Self {
        Self { end: 0, more: warps - 1 }
    }

    /// So many words of so many bytes.
    pub(super) fn place(&mut self, bytes: u32, count: u32) -> u32 {
        let align = (bytes * count).next_power_of_two().clamp(1, 64);
        let offset = self.end.next_multiple_of(align);
        self.end = offset + bytes * count;
        offset
    }

    /// What follows stands behind so many bytes.
    pub(super) fn skip(&mut self, bytes: u32) {
        self.end = self.end.max(bytes);
    }

    /// For a register.
    pub(super) fn keep(&mut self, reg: Reg, held: Held) -> SavedReg {
        let offset = self.place(bytes_of(reg.class), words(&held, self.more + 1));
        SavedReg { reg, offset, held }
    }

    /// What a register of so many warps takes.
    pub(super) fn bytes_of(kept: &SavedReg, warps: u32) -> u32 {
        bytes_of(kept.reg.class) * words(&kept.held, warps)
    }

    /// What all take, in whole lines.
    pub(super) fn bytes(&self) -> u32 {
        self.end.next_multiple_of(Line::BYTES as u32)
    }
}

/// How many values are kept of a register of so many warps.
fn words(held: &Held, warps: u32) -> u32 {
    match held {
        Held::Constant(_) => 0,
        Held::Same => 1,
        Held::Rows { .. } => 2,
        Held::Mask => warps,
        Held::Pattern { each, .. } => LANES * warps / each,
        Held::Each => LANES * warps,
    }
}

/// What is equal and was made once.
#[derive(Debug, Default)]
pub(super) struct Known {
    patterns: HashMap<Box<[i32]>, Arc<[i32]>>,
    exits: HashMap<ExitState, u32>,
}

impl Codegen<'_> {
    /// How a register is kept that has that value.
    pub(super) fn held(&mut self, reg: Reg, name: wir::Value) -> Held {
        match self.shape(name).clone() {
            Shape::Bottom => Held::Constant(0),
            Shape::Uniform(Some(value)) => Held::Constant(value),
            Shape::Uniform(None) => Held::Same,
            Shape::Affine(pattern) => {
                let mut once = |lanes: &[i32]| match self.known.patterns.get(lanes) {
                    Some(known) => known.clone(),
                    None => {
                        let new: Arc<[i32]> = lanes.into();
                        self.known.patterns.insert(lanes.into(), new.clone());
                        new
                    }
                };
                let lanes = once(&pattern.lanes);
                if !pattern.rows.is_empty() {
                    return Held::Rows { lanes, rows: once(&pattern.rows) };
                }
                let each = if pattern.by_chunk { self.width } else { self.lanes };
                Held::Pattern { each, lanes }
            }
            Shape::Varying if reg.class == RegClass::Pred => Held::Mask,
            Shape::Varying => Held::Each,
        }
    }

    /// The number of an exit that leaves that.
    pub(super) fn left(&mut self, left: ExitState, room: &Room) -> u32 {
        if left == ExitState::default() {
            return 0;
        }
        self.out.handed.fit(room);
        let exits = &mut self.out.handed.exits;
        *self.known.exits.entry(left).or_insert_with_key(|left| {
            exits.push(left.clone());
            exits.len() as u32
        })
    }

    /// Stores a value in the shape that is kept.
    pub(super) fn pack(&mut self, kept: &SavedReg, name: wir::Value, place: Value) {
        let bytes = bytes_of(kept.reg.class);
        let scalar = |emit: &Self, value: Value, at: u32| {
            let wide = if value.ty().element_bits() == 1 { emit.b.zext(value, emit.int(32)) } else { value };
            emit.b.store(wide, emit.b.offset(place, u64::from(at * bytes)), bytes);
        };
        match &kept.held {
            Held::Constant(_) => {}
            Held::Same => {
                let value = self.scalar(name);
                scalar(self, value, 0);
            }
            Held::Pattern { each, .. } => {
                for at in 0..self.lanes / each {
                    let base = self.base(name, at).expect("a pattern has bases");
                    scalar(self, base, at);
                }
            }
            Held::Rows { .. } => {
                let base = self.base(name, 0).expect("a pattern has bases");
                let stride = self.stride_of(name).expect("a pattern of rows has a stride");
                scalar(self, base, 0);
                scalar(self, stride, 1);
            }
            Held::Mask => {
                let mask = self.truths(name, false);
                scalar(self, mask, 0);
            }
            Held::Each => {
                let step = self.width * bytes;
                for c in 0..self.chunks() {
                    let chunk = self.chunk(name, c);
                    self.b.store(chunk, self.b.offset(place, u64::from(c * step)), step.min(64));
                }
            }
        }
    }

    /// Loads a value that is kept in that shape, from the place that offsets count from.
    pub(super) fn unpack(&mut self, kept: &SavedReg, name: wir::Value, place: Value) -> Repr {
        let place = self.b.offset(place, u64::from(kept.offset));
        let (bytes, ty) = (bytes_of(kept.reg.class), self.scalar_type(self.kind(name)));
        let scalar = |emit: &Self, at: u32| {
            let value = emit.b.load(emit.int(8 * bytes), emit.b.offset(place, u64::from(at * bytes)), bytes);
            if ty.element_bits() == 1 { emit.b.trunc(value, ty) } else { value }
        };
        debug_assert!(matches!(self.kind(name), Kind::Reg(_)));
        match &kept.held {
            Held::Constant(value) => Repr::Scalar(self.b.const_int(ty, *value)),
            Held::Same => Repr::Scalar(scalar(self, 0)),
            Held::Pattern { each, .. } => {
                Repr::Bases((0..self.lanes / each).map(|at| scalar(self, at)).collect())
            }
            Held::Rows { .. } => Repr::Bases((0..2).map(|at| scalar(self, at)).collect()),
            Held::Mask => {
                let mask = self.b.load(self.mask_type(), place, 4);
                Repr::Chunks((0..self.chunks()).map(|c| self.mask_chunk(mask, c)).collect())
            }
            Held::Each => {
                let (vector, step) = (self.b.vec(ty, self.width), self.width * bytes);
                let load =
                    |c: u32| self.b.load(vector, self.b.offset(place, u64::from(c * step)), step.min(64));
                Repr::Chunks((0..self.chunks()).map(load).collect())
            }
        }
    }
}
