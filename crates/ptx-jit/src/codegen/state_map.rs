//! State maps: values in memory, in the form of their shapes, at barriers and where native code is entered or
//! left.
//!
//! Invariant: for each register a table tells the host where it is and in which form ([`SavedReg`]); native
//! code and host agree on nothing else.

use super::{Codegen, Repr};
use crate::llvm::Value;
use crate::wir;
use crate::wir::saved_form::{self, Patterns, words};
use crate::wir::{Kind, Shape};
use ptx::ir::Reg;
use ptx_exec::native::{EntryState, ExitPoint, ExitState, Held, Line, SavedReg, bytes_of};
use std::collections::HashMap;

/// How registers are handed over at entries and side exits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StateMap {
    /// The size of the hand-over area in lines.
    pub(crate) lines: u32,
    /// The entries of the function.
    pub(crate) entries: Vec<EntryState>,
    /// The side exits. An exit reports its index plus one; 0 means that the hand-over area is empty.
    pub(crate) exits: Vec<ExitState>,
}

impl StateMap {
    /// Enlarges the hand-over area if necessary.
    pub(super) fn fit(&mut self, room: &Room) {
        self.lines = self.lines.max(room.bytes() / Line::BYTES as u32);
    }
}

/// An area of memory in which places are assigned one after another.
#[derive(Clone, Default)]
pub(super) struct Room {
    end: u32,
    /// The number of warps, less one, whose lanes are in the area.
    more: u32,
}

impl Room {
    /// An area for the registers of a coarse warp.
    pub(super) fn of(warps: u32) -> Self {
        Self { end: 0, more: warps - 1 }
    }

    /// Assigns a place for `count` words of `bytes` bytes each. Returns its offset.
    pub(super) fn place(&mut self, bytes: u32, count: u32) -> u32 {
        let align = (bytes * count).next_power_of_two().clamp(1, 64);
        let offset = self.end.next_multiple_of(align);
        self.end = offset + bytes * count;
        offset
    }

    /// Reserves the first `bytes` bytes.
    pub(super) fn skip(&mut self, bytes: u32) {
        self.end = self.end.max(bytes);
    }

    /// Assigns a place for a register.
    pub(super) fn keep(&mut self, reg: Reg, held: Held) -> SavedReg {
        let offset = self.place(bytes_of(reg.class), words(&held, self.more + 1));
        SavedReg { reg, offset, held }
    }

    /// The size of the area, in whole lines.
    pub(super) fn bytes(&self) -> u32 {
        self.end.next_multiple_of(Line::BYTES as u32)
    }
}

/// Tables of equal values, so that each is created once.
#[derive(Debug, Default)]
pub(super) struct Known {
    patterns: Patterns,
    exits: HashMap<ExitState, u32>,
    points: HashMap<ExitPoint, u32>,
}

impl Codegen<'_> {
    /// The form in which a register with this value is saved.
    pub(super) fn held(&mut self, reg: Reg, name: wir::Value) -> Held {
        let shape = self.shape(name).clone();
        saved_form::held(&shape, reg, (self.lanes, self.width), &mut self.flow.saved_forms.patterns)
    }

    /// The number of a side exit that leaves this state.
    pub(super) fn left(&mut self, left: ExitState, room: &Room) -> u32 {
        if left == ExitState::default() {
            return 0;
        }
        self.out.handed.fit(room);
        let exits = &mut self.out.handed.exits;
        *self.flow.saved_forms.exits.entry(left).or_insert_with_key(|left| {
            exits.push(left.clone());
            exits.len() as u32
        })
    }

    /// The number of a side exit of single warps.
    pub(super) fn exit_number(&mut self, point: ExitPoint) -> u32 {
        let exits = &mut self.out.exits;
        *self.flow.saved_forms.points.entry(point).or_insert_with_key(|point| {
            exits.push(point.clone());
            exits.len() as u32 - 1
        })
    }

    /// Stores a value in its saved form.
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
                scalar(self, self.word(mask), 0);
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

    /// Loads a value from its saved form; `place` is the start of the area.
    pub(super) fn unpack(&mut self, kept: &SavedReg, name: wir::Value, place: Value) -> Repr {
        let place = self.b.offset(place, u64::from(kept.offset));
        let (bytes, ty) = (bytes_of(kept.reg.class), self.scalar_type(self.kind(name)));
        let scalar = |emit: &Self, at: u32| {
            let value = emit.b.load(emit.int(8 * bytes), emit.b.offset(place, u64::from(at * bytes)), bytes);
            if ty.element_bits() == 1 { emit.b.trunc(value, ty) } else { value }
        };
        debug_assert!(matches!(self.kind(name), Kind::Reg(_)));
        let rep = match &kept.held {
            Held::Constant(value) => Repr::Scalar(self.b.const_int(ty, *value)),
            Held::Same => Repr::Scalar(scalar(self, 0)),
            Held::Pattern { each, .. } => {
                Repr::Bases((0..self.lanes / each).map(|at| scalar(self, at)).collect())
            }
            Held::Rows { .. } => Repr::Bases((0..2).map(|at| scalar(self, at)).collect()),
            Held::Mask => {
                let mask = self.b.load(self.mask_type(), place, 4);
                if self.is_one_number(name) && self.shape(name) == &Shape::Varying {
                    return Repr::Number(self.new_mask(mask));
                }
                Repr::Chunks((0..self.chunks()).map(|c| self.chunk_of_word(mask, c)).collect())
            }
            Held::Each => {
                let (vector, step) = (self.b.vec(ty, self.width), self.width * bytes);
                let load =
                    |c: u32| self.b.load(vector, self.b.offset(place, u64::from(c * step)), step.min(64));
                Repr::Chunks((0..self.chunks()).map(load).collect())
            }
        };
        match self.shape(name) {
            Shape::Varying => self.spread(rep, &kept.held),
            Shape::Bottom | Shape::Uniform(_) | Shape::Affine(_) => rep,
        }
    }

    /// The vectors of a value that was saved in a more precise form than its shape says: a phi had several
    /// values when shapes were inferred, and has one since branches have been folded.
    fn spread(&self, rep: Repr, held: &Held) -> Repr {
        let bases = match rep {
            Repr::Scalar(value) => vec![value],
            Repr::Bases(bases) => bases,
            Repr::Mask(_) | Repr::Chunks(_) | Repr::Number(_) | Repr::Narrow(_) | Repr::Kept(_) => {
                return rep;
            }
        };
        let chunk = |c: u32| {
            let start = (c * self.width) as usize;
            let constants = |all: &[i32]| -> Vec<u64> {
                all[start..start + self.width as usize].iter().map(|lane| i64::from(*lane) as u64).collect()
            };
            let splat = |value: Value| self.b.splat(value, self.width);
            let vector = |lanes: &[i32]| self.b.const_ints(bases[0].ty(), &constants(lanes));
            match held {
                Held::Pattern { each, lanes } => {
                    let base = bases[(c * self.width / each) as usize];
                    self.b.add(splat(base), vector(lanes))
                }
                Held::Rows { lanes, rows } => {
                    let steps = self.b.mul(splat(bases[1]), vector(rows));
                    self.b.add(self.b.add(splat(bases[0]), steps), vector(lanes))
                }
                Held::Constant(_) | Held::Same | Held::Mask | Held::Each => splat(bases[0]),
            }
        };
        Repr::Chunks((0..self.chunks()).map(chunk).collect())
    }
}
