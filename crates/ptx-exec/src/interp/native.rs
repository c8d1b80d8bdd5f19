//! Transfers between the interpreter and native code.
//!
//! Invariant: native code runs only while no other group of the warp is ready, so that the convergence policy
//! stays the interpreter's. Afterwards the frame is as if the interpreter had executed the program up to the
//! place where native code stopped.

use super::{Budget, LaunchContext, Run, Stop, bug, stopped};
use crate::frame::{Ahead, Current, WarpFrame};
use crate::lanes::LaneMask;
use crate::native::{Native, NativeCache, NativeCall, NativeStop};
use crate::trap::Fault;

/// The state of a warp after native code; its registers are in the frame.
pub(crate) struct Left {
    /// The reason to stop.
    pub(crate) stop: NativeStop,
    /// The running lanes.
    pub(crate) mask: LaneMask,
    /// The lanes that have not exited.
    pub(crate) live: LaneMask,
    /// The unused part of the slice.
    pub(crate) fuel: i64,
    /// The fault of a step.
    pub(crate) fault: Option<Box<Fault>>,
    /// Whether the code that stopped is the code that would be entered next.
    pub(crate) same: bool,
}

/// How the interpreter continues after native code.
pub(super) enum Entered {
    /// In the current block, at that step; `None`: at its terminator.
    Block(Option<usize>),
    /// The group has no lanes left.
    Gone,
    /// The warp must stop.
    Stop(Stop),
}

/// As [`super::run`], from the place where native code stopped. The warp must be in the kernel's activation
/// and have no other. Lanes that are ready in its frame are behind that place, and run first.
pub(crate) fn run_left(
    frame: &mut WarpFrame,
    context: &LaunchContext<'_>,
    budget: Budget,
    cache: &mut NativeCache,
    native: &dyn Native,
    left: Left,
) -> Stop {
    let Some(act) = frame.acts.iter().position(|act| act.lanes != 0) else { return Stop::Exited };
    let (act, function, age) = (act as u32, frame.acts[act].function, frame.next_age());
    let mut current = Current { act, block: 0, mask: left.mask, limit: u32::MAX, age };
    let others = frame.has_ready();
    let mut run = Run::new(frame, context, budget, cache);
    match run.left(native, &mut current, function, left) {
        Entered::Stop(stop) => return stop,
        Entered::Gone => {}
        Entered::Block(before) if others => {
            let Current { act, block, mask, .. } = current;
            run.frame.ahead = Some(Ahead { act, block, mask, before });
            run.give_way(&current);
        }
        Entered::Block(from) => {
            if let Some(stop) = run.group((current, None), Some(from)) {
                return stop;
            }
        }
    }
    run.whole()
}

impl Run<'_> {
    /// Whether native code can be entered.
    #[inline(always)]
    pub(super) fn enters(&self, native: &dyn Native, current: &Current, function: u32) -> bool {
        native.function() == function
            && native.enters(current.block)
            && current.limit == u32::MAX
            && !self.frame.has_ready()
            && self.steps >= native.most_steps(self.slice - self.spent)
    }

    /// Runs native code, and updates the frame.
    pub(super) fn native(&mut self, native: &dyn Native, current: &mut Current, function: u32) -> Entered {
        let frame = &mut *self.frame;
        if self.context.watched {
            frame.set_place(current.act, current.block, 0);
            if !frame.permits_native(current.mask) {
                return Entered::Block(Some(0));
            }
            frame.unknown |= current.mask;
        }
        let act = &mut frame.acts[current.act as usize];
        let live = frame.state.live;
        let mut call = NativeCall {
            code: self.context.code,
            function,
            block: current.block,
            regs: &mut act.regs,
            warp: &mut frame.state,
            mem: &mut frame.view,
            frame: act.frame as u32,
            mask: current.mask,
            trusted: frame.trusted,
            fuel: self.slice - self.spent,
            cache: self.cache,
            steps: 0,
            lane_steps: 0,
            fallbacks: 0,
            fault: None,
        };
        // Other threads may execute in the interpreter meanwhile.
        self.turn = None;
        let stop = native.run(&mut call);
        self.turn = self.context.turn();
        let NativeCall { mask, fuel, steps, lane_steps, fallbacks, fault, .. } = call;
        let after = frame.state.live;
        // Native code removes exiting lanes from the live lanes.
        frame.state.live = live;
        self.steps = self.steps.saturating_sub(steps);
        frame.steps += steps;
        frame.lane_steps += lane_steps;
        frame.native_steps.0 += steps;
        frame.native_steps.1 += fallbacks;
        self.left(native, current, function, Left { stop, mask, live: after, fuel, fault, same: true })
    }

    /// Updates the frame to the place where native code stopped.
    pub(super) fn left(
        &mut self,
        native: &dyn Native,
        current: &mut Current,
        function: u32,
        left: Left,
    ) -> Entered {
        let Left { stop, mask, live: after, fuel, fault, same } = left;
        let frame = &mut *self.frame;
        let live = frame.state.live;
        if let NativeStop::Declined = stop {
            return Entered::Block(Some(0));
        }
        let spent = self.slice - fuel.max(0);
        let used = spent - self.spent;
        self.spent = spent;
        if let NativeStop::Fault { block, index } = stop {
            let place = self.context.block(function, block);
            let place = place.map(|b| match b.steps.get(index as usize) {
                Some(step) => (step.span, step.loc),
                None => (b.span, b.loc),
            });
            return Entered::Stop(match (fault, place) {
                (Some(fault), Some((span, loc))) => stopped(fault, function, span, loc),
                _ => bug(function, current.mask),
            });
        }
        let gone = live & !after;
        for [block, lanes] in &self.cache.pending {
            frame.push_ready(current.act, *block, *lanes);
        }
        let whole = self.cache.pending.is_empty() && mask == live & !gone;
        if gone != 0 {
            if let Some((block, index)) = self.context.exit {
                self.frame.set_place(current.act, block, index);
            }
            self.exit(current.act, gone);
        }
        let frame = &mut *self.frame;
        frame.trusted = same && whole && gone == 0;
        current.mask = mask;
        current.limit = frame.limit(current.act, 0);
        match stop {
            NativeStop::Finished => Entered::Gone,
            NativeStop::Yield { block } => {
                current.block = block;
                let activity = frame.view.take_activity();
                let idle = native.waits(block) && !activity.changed;
                if frame.has_ready() {
                    // Diverged lanes run after the next slice begins. If the kernel reads clocks, they must
                    // run when the interpreter would run them.
                    let early = native.reads_clocks() && !native.watches(block);
                    frame.quantum = if early { frame.quantum - used } else { -1 };
                }
                self.give_way(current);
                Entered::Stop(Stop::Yielded { idle })
            }
            NativeStop::Terminator { block } => {
                // Native code has counted it.
                frame.native_steps.1 += 1;
                current.block = block;
                Entered::Block(None)
            }
            NativeStop::Before { block, index } => {
                current.block = block;
                Entered::Block(Some(index as usize))
            }
            NativeStop::Declined | NativeStop::Fault { .. } => Entered::Block(Some(0)),
        }
    }
}
