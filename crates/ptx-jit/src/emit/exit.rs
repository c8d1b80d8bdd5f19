//! Entering native code and leaving it.
//!
//! Invariant: when native code returns, every live register of every lane that it owns stands in the frame.

use super::{Emit, LANES};
use crate::frame::{Frame, Reason, code};
use crate::llvm::{IntPred, Likely, Value};
use crate::plan::{Class, Entry, Exit, Name, Site, Why, classes};
use std::mem::{offset_of, size_of};

impl Emit<'_> {
    pub(super) fn declined(&self) {
        self.store_field(offset_of!(Frame, parked_count), self.c32(0));
        self.b.ret(Some(self.c64(code(Reason::Declined, 0, 0))));
    }

    /// Checks what the plan relies on, unless native code left it so, and goes to the entry's node.
    pub(super) fn entry(&mut self, entry: &Entry) {
        let node = self.at(entry.node);
        let relies: Vec<_> =
            entry.relies.iter().filter(|(_, name)| *self.class(*name) != Class::Varying).copied().collect();
        if relies.is_empty() {
            return self.b.br(node);
        }
        let check = self.b.append_block(self.function, "check");
        let refuse = self.b.append_block(self.function, "refuse");
        let trusted = self.load32(offset_of!(Frame, trusted));
        let trusted = self.b.icmp(IntPred::Ne, trusted, self.c32(0));
        self.b.cond_br(trusted, node, check, Likely::Yes);
        self.b.position_at_end(check);
        let mut wrong = self.b.const_int(self.int(1), 0);
        for (reg, name) in relies {
            let odd = self.odd_lanes(reg, name);
            wrong = self.b.or(wrong, odd);
        }
        self.b.cond_br(wrong, refuse, node, Likely::No);
        self.b.position_at_end(refuse);
        self.declined();
    }

    /// Whether a register in the frame is not of the class of the name, in the lanes that run.
    fn odd_lanes(&mut self, reg: ptx::ir::Reg, name: Name) -> Value {
        use super::Rep;
        let rep = self.load_reg(reg, name, self.own);
        let pattern = self.pattern(name);
        let mut odd = self.b.const_int(self.int(1), 0);
        if let (Rep::Bases(bases), Some(pattern)) = (&rep, &pattern)
            && pattern.align > 0
        {
            let low = u64::MAX >> (64 - u32::from(pattern.align).clamp(1, 64));
            for (c, base) in bases.iter().enumerate() {
                let bits = self.b.and(*base, self.b.const_int(base.ty(), low));
                let uneven = self.b.icmp(IntPred::Ne, bits, self.b.zero(base.ty()));
                // Where no lane runs, nobody knows the base.
                let (lanes, _, _) = self.running(self.own, pattern.by_chunk.then_some(c as u32));
                let some = self.b.icmp(IntPred::Ne, lanes, self.c32(0));
                let uneven = self.b.and(uneven, some);
                odd = self.b.or(odd, uneven);
            }
        }
        for c in 0..self.chunks() {
            let have = self.load_chunk(reg, c);
            let (base, from) = match (&rep, &pattern) {
                (Rep::Scalar(value), _) => (*value, 0),
                (Rep::Bases(bases), Some(pattern)) if pattern.by_chunk => (bases[c as usize], c),
                (Rep::Bases(bases), _) => (bases[0], 0),
                (Rep::Chunks(_), _) => continue,
            };
            let mut want = self.b.splat(base, self.width);
            if let Some(pattern) = &pattern {
                let start = (c * self.width) as usize;
                let first = pattern.lanes[if pattern.by_chunk { start } else { from as usize }];
                let lanes = &pattern.lanes[start..start + self.width as usize];
                let lanes: Vec<u64> = lanes.iter().map(|l| i64::from(l - first) as u64).collect();
                let constants = self.b.const_ints(want.ty().element(), &lanes);
                want = self.b.add(want, constants);
            }
            let differ = self.b.icmp(IntPred::Ne, have, want);
            let lanes = self.mask_chunk(self.own, c);
            let differ = self.b.and(differ, lanes);
            let any = self.any(differ);
            odd = self.b.or(odd, any);
        }
        odd
    }

    /// Stores what lives, and returns.
    pub(super) fn exit(&mut self, exit: &Exit) {
        let (reason, block, index) = match exit.why {
            Why::Finished => (Reason::Finished, 0, 0),
            Why::Yield { block } => (Reason::Yield, block, 0),
            Why::Terminator { block } => (Reason::Terminator, block, 0),
            Why::Before(Site { block, index }) => (Reason::Before, block, index),
            Why::Declined => return self.declined(),
        };
        self.counts(exit);
        if let Some(resume) = exit.resume {
            self.wait(resume, exit);
        }
        if exit.why == Why::Finished {
            self.gone();
        }
        let mask = self.scalar(exit.mask);
        // Where all 32 lanes run, nobody else is in the frame.
        let lanes = if self.full { None } else { Some(mask) };
        for (reg, name) in &exit.regs {
            self.store_reg(*reg, *name, lanes);
        }
        let mut count = self.c32(0);
        if !exit.parked.is_empty() {
            let list = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, parked)), 8);
            for parked in &exit.parked {
                let lanes = self.scalar(parked.mask);
                let some = self.b.append_block(self.function, "parked");
                let next = self.b.append_block(self.function, "next");
                let from = self.b.current_block();
                let empty = self.b.icmp(IntPred::Eq, lanes, self.c32(0));
                self.b.cond_br(empty, next, some, Likely::Unknown);
                self.b.position_at_end(some);
                let at = self.b.zext(count, self.int(64));
                let at = self.b.mul(at, self.c64(size_of::<[u32; 2]>() as u64));
                let place = self.b.gep(list, at);
                self.b.store(self.c32(parked.block), place, 4);
                self.b.store(lanes, self.b.offset(place, 4), 4);
                for (reg, name) in &parked.regs {
                    self.store_reg(*reg, *name, Some(lanes));
                }
                let more = self.b.add(count, self.c32(1));
                let filled = self.b.current_block();
                self.b.br(next);
                self.b.position_at_end(next);
                let phi = self.b.phi(self.int(32));
                self.b.add_incoming(phi, count, from);
                self.b.add_incoming(phi, more, filled);
                count = phi;
            }
        }
        self.store_field(offset_of!(Frame, parked_count), count);
        self.b.ret(Some(self.c64(code(reason, block, index))));
    }

    /// Stores masks and counters.
    pub(super) fn counts(&mut self, exit: &Exit) {
        let fields = [
            (offset_of!(Frame, mask), exit.mask),
            (offset_of!(Frame, live), exit.live),
            (offset_of!(Frame, turns), exit.turns),
        ];
        for (offset, name) in fields {
            let value = self.scalar(name);
            self.store_field(offset, value);
        }
        let sums = [
            (offset_of!(Frame, full_steps), exit.full_steps),
            (offset_of!(Frame, masked_steps), exit.masked_steps),
            (offset_of!(Frame, lane_steps), exit.lane_steps),
        ];
        for (offset, name) in sums {
            let more = self.scalar(name);
            // What is known to be nothing is not added.
            if more.is_zero() {
                continue;
            }
            let sum = self.b.add(self.load64(offset), more);
            self.store_field(offset, sum);
        }
        if let Some(carry) = exit.carry {
            let place = self.b.load(self.b.ptr(), self.field(offset_of!(Frame, carry)), 8);
            let new = self.scalar(carry);
            let old = self.b.load(self.int(32), place, 4);
            let own = self.own;
            let kept = self.b.not(own);
            let (old, new) = (self.b.and(old, kept), self.b.and(new, own));
            self.b.store(self.b.or(old, new), place, 4);
        }
    }

    /// Leaves before an instruction that widens a pattern, if a lane of it would wrap around.
    pub(super) fn guard(&mut self, site: Site, exit: &Exit, uses: &[Name]) {
        let Some(wraps) = self.wraps(site, uses) else { return };
        let leave = self.b.append_block(self.function, "wraps");
        let stay = self.b.append_block(self.function, "exact");
        self.b.cond_br(wraps, leave, stay, Likely::No);
        self.b.position_at_end(leave);
        self.exit(exit);
        self.b.position_at_end(stay);
    }

    /// Whether a lane of a pattern wraps around where the instruction widens it; `None`: none can.
    pub(super) fn wraps(&mut self, site: Site, uses: &[Name]) -> Option<Value> {
        let inst = site.inst(self.job.function)?;
        let (ty, _) = classes::widens(inst)?;
        let signed = ty.is_signed();
        let mut wraps: Option<Value> = None;
        for name in uses.iter().take(2) {
            let Some(pattern) = self.pattern(*name) else { continue };
            let count = if pattern.by_chunk { self.chunks() } else { 1 };
            for c in 0..count {
                let lanes: Vec<i32> = if pattern.by_chunk {
                    self.relative(&pattern, c)
                } else {
                    pattern.lanes[..LANES as usize].to_vec()
                };
                let base = self.base(*name, c).expect("a pattern has bases");
                for lane in [lanes.iter().min(), lanes.iter().max()].into_iter().flatten() {
                    if *lane == 0 {
                        continue;
                    }
                    let added = self.b.const_int(base.ty(), i64::from(*lane).unsigned_abs());
                    let name = match (signed, *lane > 0) {
                        (true, true) => "llvm.sadd.with.overflow",
                        (true, false) => "llvm.ssub.with.overflow",
                        (false, true) => "llvm.uadd.with.overflow",
                        (false, false) => "llvm.usub.with.overflow",
                    };
                    let pair = self.b.intrinsic(name, &[base.ty()], &[base, added]);
                    let wrap = self.b.member(pair, 1);
                    wraps = Some(match wraps {
                        None => wrap,
                        Some(others) => self.b.or(others, wrap),
                    });
                }
            }
        }
        wraps
    }
}
