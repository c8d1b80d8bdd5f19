//! Propagation of undefined bits from the source registers of an instruction to its destination.
//!
//! Invariant: an instruction makes a bit of its destination undefined only in lanes that execute it, and only
//! if the bit depends on an undefined bit of a source.

use super::*;
use ptx_exec::bind::shfl_semantics;

impl Initcheck {
    /// What an instruction that is no access does to its destinations. Called before it is executed.
    pub(super) fn compute(&mut self, site: &Site, inst: &Inst, lanes: LaneMask, regs: &Registers) {
        let frame = self.frames.at(site);
        let carry_in = matches!(inst.op, Op::Addc | Op::Subc | Op::Madc);
        let carry_out = matches!(inst.op, Op::AddCc | Op::SubCc | Op::MadCc | Op::Addc | Op::Subc | Op::Madc);
        let carried =
            if carry_in { self.carry.get(&site.warp.slot).copied().unwrap_or(0) & lanes } else { 0 };
        let (mut undefined, mut origin) = (carried, 0);
        for src in &inst.srcs {
            src.for_each_reg(&mut |reg| {
                if let Some(known) = frame.get(reg).filter(|known| known.lanes & lanes != 0) {
                    undefined |= known.lanes & lanes;
                    origin = known.origin;
                }
            });
        }
        if carry_out {
            let flags = self.carry.entry(site.warp.slot).or_insert(0);
            *flags = *flags & !lanes | undefined;
        }
        let frame = self.frames.at(site);
        if undefined == 0 {
            for reg in inst.dsts.iter().filter_map(Dst::reg) {
                if let Some(old) = frame.get_mut(reg) {
                    old.lanes &= !lanes;
                }
            }
            return;
        }
        let dsts: Vec<Reg> = inst.dsts.iter().filter_map(Dst::reg).collect();
        match inst.op {
            Op::MovVec => {
                for (dst, src) in inst.dsts.iter().zip(&inst.srcs) {
                    let Some(reg) = dst.reg() else { continue };
                    let bits = Lane(std::array::from_fn(|lane| source(frame, regs, src, lane).undefined));
                    self.pending.push((reg, bits, origin));
                }
            }
            Op::MovPack | Op::MovUnpack => {
                let whole = inst.mods.ty_in(Slot::Type).map_or(64, Ty::bits);
                let pack = inst.op == Op::MovPack;
                let (from, to) = match pack {
                    true => (whole / inst.srcs.len().max(1) as u32, whole / inst.dsts.len().max(1) as u32),
                    false => (whole / inst.srcs.len().max(1) as u32, whole / inst.dsts.len().max(1) as u32),
                };
                let mut parts = vec![Lane::splat(0u64); inst.dsts.len()];
                for lane in lanes_of(undefined) {
                    let joined = inst.srcs.iter().rev().fold(0u128, |all, src| {
                        all << from.min(127)
                            | u128::from(source(frame, regs, src, lane).undefined & width(from))
                    });
                    for (i, part) in parts.iter_mut().enumerate() {
                        part.0[lane] = (joined >> (i as u32 * to).min(127)) as u64 & width(to);
                    }
                }
                for (dst, bits) in inst.dsts.iter().zip(parts) {
                    self.pending.extend(dst.reg().map(|reg| (reg, bits, origin)));
                }
            }
            _ => {
                for (i, reg) in dsts.into_iter().enumerate() {
                    let bits = Lane(std::array::from_fn(|lane| {
                        if undefined >> lane & 1 == 0 {
                            return 0;
                        }
                        if carried >> lane & 1 != 0 || i > 0 {
                            return all_of(reg);
                        }
                        let mut values = [Value::default(); 8];
                        let count = inst.srcs.len().min(8);
                        for (value, src) in values.iter_mut().zip(&inst.srcs) {
                            *value = source(frame, regs, src, lane);
                        }
                        if inst.srcs.len() > 8 {
                            all_of(reg)
                        } else {
                            result(inst, reg.class.bits(), &values[..count])
                        }
                    }));
                    self.pending.push((reg, bits, origin));
                }
            }
        }
    }

    /// Gives destinations what was decided, in the lanes that were executed.
    pub(super) fn settle(&mut self, site: &Site, lanes: LaneMask) {
        for (reg, bits, origin) in self.pending.drain(..) {
            if let Some(old) = self.frames.at(site).get_mut(reg) {
                old.set(lanes, |lane| bits.0[lane], all_of(reg), origin);
            }
        }
    }

    /// Marks destinations as defined.
    pub(super) fn define(&mut self, site: &Site, inst: &Inst, lanes: LaneMask) {
        let frame = self.frames.at(site);
        for reg in inst.dsts.iter().filter_map(Dst::reg) {
            if let Some(old) = frame.get_mut(reg) {
                old.lanes &= !lanes;
            }
        }
    }

    /// `ldmatrix` and `movmatrix`: elements move as they are.
    pub(super) fn rows(&mut self, site: &Site, inst: &Inst, lanes: LaneMask) {
        let loaded = self.loaded.take();
        let moved = match (inst.op, inst.srcs.first()) {
            (Op::Movmatrix, Some(Src::Reg(reg))) => self.frames.at(site).get(*reg).cloned(),
            _ => None,
        };
        let origin = loaded.as_ref().map_or(moved.as_ref().map_or(0, |m| m.origin), |loaded| loaded.origin);
        let transposed = inst.op == Op::Movmatrix || inst.mods.has(Word::Trans);
        let frame = self.frames.at(site);
        for (matrix, dst) in inst.dsts.iter().enumerate() {
            let element = |row: usize, column: usize| match (&loaded, &moved) {
                (Some(loaded), _) => {
                    let word = loaded.words[column / 4].0[(8 * matrix + row) % 32];
                    word >> (16 * (column % 4)) & 0xffff
                }
                (None, Some(moved)) => moved.of(4 * row + column / 2) >> (16 * (column % 2)) & 0xffff,
                (None, None) => 0,
            };
            let part = |line: usize, place: usize| {
                if transposed { element(place, line) } else { element(line, place) }
            };
            let bits = |lane: usize| {
                let (line, place) = (lane / 4, lane % 4 * 2);
                part(line, place) | part(line, place + 1) << 16
            };
            if let Some(reg) = dst.reg()
                && let Some(old) = frame.get_mut(reg)
            {
                old.set(lanes, bits, all_of(reg), origin);
            }
        }
    }

    /// Matrix instructions: undefined only where an operand, or all that was loaded, is undefined as a whole.
    pub(super) fn matrix(&mut self, site: &Site, inst: &Inst, lanes: LaneMask) {
        let frame = self.frames.at(site);
        let mut nothing = None;
        for src in &inst.srcs {
            if let Src::Reg(reg) = src
                && let Some(known) = frame.get(*reg)
                && known.lanes & lanes == lanes
                && known.bits.is_none()
            {
                nothing = Some(known.origin);
            }
        }
        if let Some(loaded) = self.loaded.take().filter(|loaded| loaded.lanes & lanes == lanes)
            && lanes_of(lanes).all(|lane| loaded.words[0].0[lane] & 0xffff == 0xffff)
        {
            nothing = Some(loaded.origin);
        }
        match nothing {
            Some(origin) => {
                for reg in inst.dsts.iter().filter_map(Dst::reg) {
                    if let Some(old) = frame.get_mut(reg) {
                        old.set(lanes, |_| u64::MAX, all_of(reg), origin);
                    }
                }
            }
            None => self.define(site, inst, lanes),
        }
    }

    /// Values of the lanes of a shuffle, a vote or a match, once it has been carried out.
    pub(super) fn exchanged(&mut self, site: &Site, inst: &Inst, lanes: LaneMask, regs: &Registers) {
        let frame = self.frames.at(site);
        let Some(Src::Reg(value) | Src::Not(value)) = inst.srcs.first() else {
            return self.define(site, inst, lanes);
        };
        let Some(known) = frame.get(*value).cloned().filter(|known| known.lanes & lanes != 0) else {
            return self.define(site, inst, lanes);
        };
        if matches!(inst.op, Op::ShflSync | Op::Shfl) {
            // The lane that a value came from is what the instruction computed; without the inputs of other
            // groups the value stands for it.
            let from = shuffled(inst, lanes, regs);
            let fetched = Lane(std::array::from_fn(|lane| known.of(from[lane])));
            self.define(site, inst, lanes);
            if let Some(reg) = inst.dsts.first().and_then(Dst::reg)
                && let Some(old) = self.frames.at(site).get_mut(reg)
            {
                old.set(lanes, |lane| fetched.0[lane], all_of(reg), known.origin);
            }
            return;
        }
        let ballot = inst.dsts.first().and_then(Dst::reg).is_some_and(|reg| reg.class == RegClass::R32)
            && matches!(inst.op, Op::VoteSync | Op::Vote);
        let some = u64::from(known.lanes & lanes);
        for reg in inst.dsts.iter().filter_map(Dst::reg) {
            if let Some(old) = self.frames.at(site).get_mut(reg) {
                old.set(lanes, |_| if ballot { some } else { u64::MAX }, all_of(reg), known.origin);
            }
        }
    }
}

/// The lane that each lane of a shuffle reads from. PTX ISA §9.7.8.5.
fn shuffled(inst: &Inst, lanes: LaneMask, regs: &Registers) -> [usize; 32] {
    let operand = |index: usize, lane: usize| match inst.srcs.get(index) {
        Some(Src::Reg(reg)) => bits_of(regs, *reg, lane) as u32,
        Some(Src::Imm(bits)) => *bits as u32,
        _ => 0,
    };
    let mode = inst.mods.shfl_mode().map_or(ptx_sem::ShflMode::Idx, shfl_semantics);
    std::array::from_fn(|lane| {
        let (from, _) = ptx_sem::shfl_source(mode, lane as u32, operand(1, lane), operand(2, lane));
        if lanes >> from & 1 != 0 { from as usize } else { lane }
    })
}
