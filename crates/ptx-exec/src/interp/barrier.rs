//! CTA barriers as seen by a warp: lanes reach them, the warp arrives, and a completed barrier releases
//! lanes.
//!
//! Invariant: a warp arrives when all its lanes that have not exited wait at compatible barriers. A misuse is
//! a fault with its place.

use super::watched::arrives;
use super::{Arrival, LaunchContext, Run, Stop, bug, equal_lanes, stopped, truths};
use crate::bound::Term;
use crate::frame::{BarrierWait, Current, Group, Wait, WarpFrame};
use crate::lanes::{LANES, Lane, LaneMask, Registers};
use crate::trap::{Fault, FaultKind};
use crate::watch::BarrierEvent;

impl Run<'_> {
    /// Blocks lanes at a barrier of the CTA. The arrival of the warp is handled when no group is ready.
    pub(super) fn barrier(&mut self, current: &Current, barrier: &crate::bound::Barrier) {
        let regs = &self.frame.acts[current.act as usize].regs;
        let id = barrier.id.read(regs);
        let count = barrier.count.map(|count| count.read(regs));
        let truths = barrier.pred.map_or(0, |pred| truths(pred, regs));
        let mut rest = current.mask;
        while rest != 0 {
            let first = rest.trailing_zeros() as usize;
            let count_of = |lane: usize| count.as_ref().map(|c| c.0[lane]);
            let same = |lane: usize| id.0[lane] == id.0[first] && count_of(lane) == count_of(first);
            let group = equal_lanes(rest, same);
            let wait = BarrierWait {
                kind: barrier.kind,
                id: id.0[first],
                count: count_of(first),
                truths: truths & group,
                arrived: false,
            };
            if self.context.watched {
                let BarrierWait { kind, id, count, .. } = wait;
                let event = BarrierEvent::Reached { lanes: group, id, count, kind, aligned: barrier.aligned };
                self.tell(current.act, current.block, |observer, site| observer.barrier(site, &event));
            }
            self.frame.park(current.act, current.block, group, Wait::Barrier(wait));
            rest &= !group;
        }
    }

    /// Handles a warp whose live lanes all wait at barriers: the warp arrives if they are compatible.
    pub(super) fn arrive(&mut self) -> Option<Stop> {
        if self.context.mends && self.part() {
            return None;
        }
        Some(self.arrive_together())
    }

    fn arrive_together(&mut self) -> Stop {
        let mends = self.context.mends;
        let frame = &mut *self.frame;
        let Some(Group { wait: Wait::Barrier(first), .. }) = frame.groups.first() else { return Stop::Stuck };
        let first = *first;
        let place = (frame.groups[0].act, frame.groups[0].block);
        let mut all = BarrierWait { truths: 0, ..first };
        let (mut waiting, mut aligned, mut places) = (0, false, 1);
        let mut odd = None;
        for group in &frame.groups {
            let Wait::Barrier(wait) = group.wait else { continue };
            let lane = group.mask.trailing_zeros() as usize;
            let function = frame.acts[group.act as usize].function;
            let barrier = match self.context.block(function, group.block).map(|b| &b.term) {
                Some(Term::Barrier(barrier)) => barrier,
                _ => return bug(function, group.mask),
            };
            aligned |= barrier.aligned;
            if (group.act, group.block) != place {
                places += 1;
            }
            let why = if wait.id > 15 {
                Some(format!("barrier {} does not exist (0 to 15)", wait.id))
            } else if wait.count.is_some_and(|c| c == 0 || c % LANES as u32 != 0) {
                Some(format!(
                    "a thread count of {} is not a positive multiple of 32",
                    wait.count.unwrap_or(0)
                ))
            } else if places > 1 && aligned {
                Some("lanes of one warp reach an aligned barrier through different instructions".to_owned())
            } else if wait.id != first.id && aligned {
                Some("lanes of one warp name different barriers".to_owned())
            } else if wait.count != first.count && wait.id == first.id {
                Some("lanes of one warp give different thread counts".to_owned())
            } else if is_reduction(wait.kind) != is_reduction(first.kind)
                || is_reduction(first.kind) && wait.kind != first.kind
            {
                Some("lanes of one warp mix reductions with other forms".to_owned())
            } else {
                None
            };
            if let Some(why) = why.filter(|_| !mends) {
                odd = Some((FaultKind::BadBarrier(why), lane, group.act, group.block));
                break;
            }
            if wait.id != first.id && !mends {
                return Stop::Stuck;
            }
            all.truths |= wait.truths;
            if wait.kind != crate::bound::BarrierKind::Arrive {
                waiting |= group.mask;
                all.kind = wait.kind;
            }
        }
        if let Some((kind, lane, act, block)) = odd {
            let function = frame.acts[act as usize].function;
            return match self.context.block(function, block) {
                Some(block) => stopped(Fault::new(kind, lane), function, block.span, block.loc),
                None => bug(function, 1 << lane),
            };
        }
        if mends {
            // An observer has reported the invalid barrier number.
            all.id %= 16;
            all.count = all.count.filter(|count| *count != 0 && count % LANES as u32 == 0);
        }
        if self.context.watched {
            self.frame.set_place(place.0, place.1, 0);
            let index = self.terminator_index(self.frame.acts[place.0 as usize].function, place.1);
            self.frame.set_place(place.0, place.1, index);
            let lanes = self.frame.state.live;
            arrives(self.frame, &all, lanes, waiting);
        }
        let frame = &mut *self.frame;
        // Lanes at `.arrive` continue; the others wait for the CTA.
        for group in std::mem::take(&mut frame.groups) {
            match group.wait {
                Wait::Barrier(wait) if wait.kind == crate::bound::BarrierKind::Arrive => {
                    let function = frame.acts[group.act as usize].function;
                    if let Some(Term::Barrier(b)) = self.context.block(function, group.block).map(|b| &b.term)
                    {
                        frame.push_ready(group.act, b.next.0, group.mask);
                    }
                }
                Wait::Barrier(wait) => {
                    let wait = Wait::Barrier(BarrierWait { arrived: true, ..wait });
                    frame.groups.push(Group { wait, ..group });
                }
                wait => frame.groups.push(Group { wait, ..group }),
            }
        }
        Stop::Arrived(all, Arrival { waiting })
    }
}

/// Result of a barrier's reduction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduced {
    /// Number of true predicates.
    pub(crate) popc: u32,
    /// Whether all predicates are true.
    pub(crate) all: bool,
}

impl Reduced {
    /// Writes the destination of a barrier in these lanes, if the barrier reduces.
    pub(crate) fn put(self, barrier: &crate::bound::Barrier, regs: &mut Registers, lanes: LaneMask) {
        use crate::bound::BarrierKind;
        let Some(reg) = barrier.dst.reg() else { return };
        let index = reg.index as usize;
        let truth = match barrier.kind {
            BarrierKind::And => self.all,
            BarrierKind::Or => self.popc != 0,
            BarrierKind::Sync | BarrierKind::Arrive | BarrierKind::Popc => false,
        };
        match barrier.kind {
            BarrierKind::Popc => regs.r32[index].blend(lanes, &Lane::splat(self.popc)),
            BarrierKind::And | BarrierKind::Or if truth => regs.pred[index] |= lanes,
            BarrierKind::And | BarrierKind::Or => regs.pred[index] &= !lanes,
            BarrierKind::Sync | BarrierKind::Arrive => {}
        }
    }
}

/// Releases the lanes that wait at the completed barrier.
pub(crate) fn release(frame: &mut WarpFrame, context: &LaunchContext<'_>, reduced: Reduced) {
    for group in std::mem::take(&mut frame.groups) {
        let Wait::Barrier(wait @ BarrierWait { arrived: true, .. }) = group.wait else {
            frame.groups.push(group);
            continue;
        };
        let act = &mut frame.acts[group.act as usize];
        let Some(Term::Barrier(barrier)) = context.block(act.function, group.block).map(|b| &b.term) else {
            continue;
        };
        reduced.put(barrier, &mut act.regs, group.mask);
        let (next, id) = (barrier.next.0, wait.id);
        if context.watched {
            let index = |function| {
                (group.block, context.block(function, group.block).map_or(0, |b| b.steps.len() as u32))
            };
            frame.tell(group.act, index, |observer, site| {
                observer.barrier(site, &BarrierEvent::Released { id, lanes: group.mask });
            });
        }
        frame.push_ready(group.act, next, group.mask);
    }
}

/// Whether this form of barrier reduces predicates.
pub(crate) fn is_reduction(kind: crate::bound::BarrierKind) -> bool {
    use crate::bound::BarrierKind;
    match kind {
        BarrierKind::Sync | BarrierKind::Arrive => false,
        BarrierKind::Popc | BarrierKind::And | BarrierKind::Or => true,
    }
}
