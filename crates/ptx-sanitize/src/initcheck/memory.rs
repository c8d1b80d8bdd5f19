//! Propagation of undefined bits between registers and memory: loads, stores and atomics.
//!
//! Invariant: a load or store of undefined bits is not reported; the shadow of memory has a bit for each
//! stored bit.

use super::*;
use crate::shadow::Reader;

impl Loaded {
    /// Whether no element of so many bytes is entirely undefined.
    fn has_only_parts(&self, element: u32) -> bool {
        let bits = 8 * element.clamp(1, 8);
        lanes_of(self.lanes).all(|lane| {
            self.words.iter().all(|word| {
                (0..64).step_by(bits as usize).all(|at| word.0[lane] >> at & width(bits) != width(bits))
            })
        })
    }
}

impl Initcheck {
    /// An instruction reads memory: what is undefined there.
    pub(super) fn loads(&mut self, site: &Site, access: &Access<'_>) {
        if self.shadow.is_empty() {
            return;
        }
        let words = access.bytes.div_ceil(8).min(4);
        let mut loaded: Option<Loaded> = None;
        let mut reader = self.shadow.reader();
        let first = access.lanes.trailing_zeros() as usize % 32;
        // Most loads are of defined memory; where all lanes load the same, one look is enough for that.
        let all = |reader: &mut Reader<'_>, lane: usize| {
            (0..words).all(|word| {
                let bytes = (access.bytes - 8 * word).min(8);
                reader.bits(access.generic.0[lane] + u64::from(8 * word), bytes) == 0
            })
        };
        if access.same && all(&mut reader, first) {
            return;
        }
        // Where lanes load from a small range, all of it is looked at once.
        if access.lanes == LaneMask::MAX {
            let (lowest, highest) =
                access.generic.0.iter().fold((u64::MAX, 0), |(a, b), at| (a.min(*at), b.max(*at)));
            if reader.is_defined(lowest, highest.saturating_add(u64::from(access.bytes))) {
                return;
            }
        }
        for lane in lanes_of(access.lanes) {
            for word in 0..words {
                let bytes = (access.bytes - 8 * word).min(8);
                let bits = reader.bits(access.generic.0[lane] + u64::from(8 * word), bytes);
                if bits != 0 {
                    let loaded = loaded.get_or_insert_with(|| Loaded {
                        lanes: 0,
                        words: Box::new([Lane::splat(0); 4]),
                        base: *access.generic,
                        origin: 0,
                    });
                    loaded.lanes |= 1 << lane;
                    loaded.words[word as usize].0[lane] = bits;
                }
            }
        }
        let Some(mut found) = loaded else { return };
        let first = found.lanes.trailing_zeros() as usize;
        // A value that was stored undefined came from further back.
        let before = self.stored.get(&(access.generic.0[first] / 4)).map(|stored| stored.value);
        let space = space_name(site, access, first);
        found.origin = match before {
            Some(origin) if origin != 0 => origin,
            _ => {
                let bytes = access.bytes;
                let origin = self.origin(site, first, false, || {
                    format!("read of {bytes} bytes of uninitialised {space} memory")
                });
                let parts = found.has_only_parts(access.element);
                if let Some(from) = self.origins.get_mut(origin as usize) {
                    from.parts &= parts;
                }
                origin
            }
        };
        match &mut self.loaded {
            // Parts of one copy.
            Some(parts) if site.inst().is_some_and(|inst| inst.op == Op::CpAsync) => {
                for lane in lanes_of(found.lanes) {
                    let at = 8 * (found.base.0[lane].wrapping_sub(parts.base.0[lane])) as u32;
                    if let Some(word) = parts.words.get_mut((at / 64) as usize) {
                        word.0[lane] |= found.words[0].0[lane] << (at % 64);
                    }
                }
                parts.lanes |= found.lanes;
            }
            _ => self.loaded = Some(found),
        }
    }

    /// An instruction writes memory: what of it is undefined.
    pub(super) fn stores(&mut self, site: &Site, access: &Access<'_>, inst: &Inst) {
        let element = access.element.min(access.bytes).max(1);
        if inst.op == Op::St && self.stores_defined(site, access, inst) {
            return;
        }
        let copied = if inst.op == Op::CpAsync { self.loaded.take() } else { None };
        for lane in lanes_of(access.lanes) {
            let address = access.generic.0[lane];
            let (mut any, mut whole, mut value) = (0, true, 0);
            for at in (0..access.bytes).step_by(element.min(8) as usize) {
                let bytes = element.min(8).min(access.bytes - at);
                if access.chosen >> (at / element).min(7) & 1 == 0 {
                    continue;
                }
                let bits = match (&copied, inst.op) {
                    (Some(copied), _) => {
                        value = copied.origin;
                        copied
                            .words
                            .get(at as usize / 8)
                            .map_or(0, |word| word.0[lane] >> (8 * (at % 8)) & width(8 * bytes))
                    }
                    (None, Op::St) => {
                        let src = inst.srcs.get(1 + (at / element.min(8)) as usize);
                        let frame = self.frames.at(site);
                        let mut bits = 0;
                        if let Some(Src::Reg(reg)) = src
                            && let Some(known) = frame.get(*reg)
                        {
                            bits = known.of(lane) & width(8 * bytes);
                            if bits != 0 {
                                value = known.origin;
                            }
                        }
                        bits
                    }
                    (None, Op::Stmatrix) => {
                        let (bits, origin) = self.row_stored(site, inst, lane, at as usize / 4);
                        value = if bits != 0 { origin } else { value };
                        bits
                    }
                    (None, _) => 0,
                };
                let bits = if bits != 0 && !self.keeps(site, address) { 0 } else { bits };
                any |= bits;
                whole &= bits == width(8 * bytes);
                self.shadow.set(address + u64::from(at), bytes, bits);
            }
            self.note_store(site, lane, (address, access.bytes), any, whole, value);
        }
    }

    /// A store of defined values: what it writes is defined. Whether it was one.
    fn stores_defined(&mut self, site: &Site, access: &Access<'_>, inst: &Inst) -> bool {
        let frame = self.frames.at(site);
        let undefined = inst.srcs.iter().skip(1).any(|src| match src {
            Src::Reg(reg) => frame.get(*reg).is_some_and(|known| known.lanes & access.lanes != 0),
            _ => false,
        });
        let whole = access.chosen.count_ones() * access.element == access.bytes;
        if undefined || !whole || !self.stored.is_empty() {
            return false;
        }
        if self.shadow.is_empty() {
            return true;
        }
        let bytes = u64::from(access.bytes);
        // Lanes beside each other are one range.
        let mut run = 0..0;
        for lane in lanes_of(access.lanes) {
            let address = access.generic.0[lane];
            if address == run.end && !run.is_empty() {
                run.end += bytes;
            } else {
                self.shadow.define_few(run);
                run = address..address + bytes;
            }
        }
        self.shadow.define_few(run);
        true
    }

    /// `stmatrix`: the undefined bits of a word of the row that a lane gives the address of.
    fn row_stored(&mut self, site: &Site, inst: &Inst, lane: usize, word: usize) -> (u64, u32) {
        let Some(Src::Reg(reg)) = inst.srcs.get(1 + lane / 8) else { return (0, 0) };
        let Some(known) = self.frames.at(site).get(*reg) else { return (0, 0) };
        let (row, transposed) = (lane % 8, inst.mods.has(Word::Trans));
        let element = |column: usize| {
            let (line, place) = if transposed { (column, row) } else { (row, column) };
            known.of(4 * line + place / 2) >> (16 * (place % 2)) & 0xffff
        };
        (element(2 * word) | element(2 * word + 1) << 16, known.origin)
    }

    fn note_store(
        &mut self,
        site: &Site,
        lane: usize,
        (address, bytes): (u64, u32),
        any: u64,
        whole: bool,
        value: u32,
    ) {
        let cells = address / 4..(address + u64::from(bytes)).div_ceil(4);
        if any == 0 {
            if !self.stored.is_empty() {
                cells.for_each(|cell| _ = self.stored.remove(&cell));
            }
            return;
        }
        let whole = whole && !self.origins.get(value as usize).is_some_and(|from| from.parts);
        let store =
            self.origin(site, lane, true, || format!("write of {bytes} bytes of an uninitialised value"));
        for cell in cells {
            self.stored.insert(cell, Stored { store, value, whole });
        }
    }

    /// An atomic operation: the old value goes to the destination, the operands to memory.
    pub(super) fn atomic(&mut self, site: &Site, access: &Access<'_>, inst: &Inst) {
        self.loads(site, access);
        if inst.dsts.is_empty() {
            self.loaded = None;
        }
        if !matches!(inst.op, Op::Atom | Op::Red) {
            return;
        }
        let exchange = inst.mods.atom_op() == Some(AtomOp::Exch);
        for lane in lanes_of(access.lanes) {
            let address = access.generic.0[lane];
            for word in 0..access.bytes.div_ceil(8) {
                let bytes = (access.bytes - 8 * word).min(8);
                let at = address + u64::from(8 * word);
                let old = if exchange { 0 } else { self.shadow.bits(at, bytes) };
                let mut new = 0;
                let frame = self.frames.at(site);
                for src in inst.srcs.iter().skip(1) {
                    if let Src::Reg(reg) = src {
                        new |= frame.get(*reg).map_or(0, |known| known.of(lane));
                    }
                }
                let bits = (if exchange { new } else { smeared(old | new) }) & width(8 * bytes);
                let bits = if bits != 0 && !self.keeps(site, address) { 0 } else { bits };
                if bits != 0 || old != 0 || exchange {
                    self.shadow.set(at, bytes, bits);
                }
            }
        }
    }

    /// What the loads of an instruction give its destinations.
    pub(super) fn give_loaded(&mut self, site: &Site, inst: &Inst, lanes: LaneMask) {
        let loaded = self.loaded.take();
        let Some(loaded) = loaded.filter(|loaded| loaded.lanes & lanes != 0) else {
            return self.define(site, inst, lanes);
        };
        let ty = inst.mods.ty_in(Slot::Type).unwrap_or(Ty::B32);
        let signed = matches!(ty, Ty::S8 | Ty::S16 | Ty::S32 | Ty::S64);
        let part = ty.bits().clamp(8, 64);
        let frame = self.frames.at(site);
        for (i, dst) in inst.dsts.iter().enumerate() {
            let Some(reg) = dst.reg() else { continue };
            let at = i as u32 * part;
            let bits = |lane: usize| {
                let word = loaded.words.get((at / 64) as usize).map_or(0, |word| word.0[lane]);
                let own = word >> (at % 64) & width(part);
                if signed && own >> (part - 1) & 1 != 0 { own | !width(part) } else { own }
            };
            if let Some(old) = frame.get_mut(reg) {
                old.set(
                    lanes,
                    |lane| if loaded.lanes >> lane & 1 != 0 { bits(lane) } else { 0 },
                    all_of(reg),
                    loaded.origin,
                );
            }
        }
    }
}
