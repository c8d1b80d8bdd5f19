//! Where native code takes over from the interpreter, and where it gives back.
//!
//! Invariant: native code runs only where no other group of the warp is ready, so that the convergence policy stays the interpreter's;
//! afterwards the frame is as if the interpreter had come to the place where native code stopped.

use super::{Budget, Run, Stop, World, bug, stopped};
use crate::frame::{Current, WarpFrame};
use crate::lanes::LaneMask;
use crate::native::{Native, NativeCall, NativeStop, Reached};
use crate::trap::Fault;

/// How native code left a warp; its registers are in the frame.
pub(crate) struct Left {
    /// Why.
    pub(crate) stop: NativeStop,
    /// The running lanes.
    pub(crate) mask: LaneMask,
    /// The lanes that have not exited.
    pub(crate) live: LaneMask,
    /// What is left of the slice.
    pub(crate) turns: i64,
    /// What a step was at fault with.
    pub(crate) fault: Option<Box<Fault>>,
    /// Whether the code that left it is the code that would be entered again.
    pub(crate) same: bool,
}

/// What native code left to the interpreter.
pub(super) enum Entered {
    /// The current block, from that step on; or only its terminator.
    Block(Option<usize>),
    /// The group is gone.
    Gone,
    /// The warp must stop.
    Stop(Stop),
}

/// As [`super::run`], from where native code left the warp: in the kernel's activation, which is the only one.
pub(crate) fn run_left(
    frame: &mut WarpFrame,
    world: &World<'_>,
    budget: Budget,
    reached: &mut Reached,
    native: &dyn Native,
    left: Left,
) -> Stop {
    let Some(act) = frame.acts.iter().position(|act| act.lanes != 0) else { return Stop::Exited };
    let (act, function, age) = (act as u32, frame.acts[act].function, frame.next_age());
    let mut current = Current { act, block: 0, mask: left.mask, limit: u32::MAX, age };
    let mut run = Run::new(frame, world, budget, reached);
    match run.left(native, &mut current, function, left) {
        Entered::Stop(stop) => return stop,
        Entered::Gone => {}
        Entered::Block(from) => {
            if let Some(stop) = run.group((current, None), Some(from)) {
                return stop;
            }
        }
    }
    run.whole()
}

impl Run<'_> {
    /// Whether native code takes over.
    #[inline(always)]
    pub(super) fn enters(&self, native: &dyn Native, current: &Current, function: u32) -> bool {
        native.function() == function
            && native.enters(current.block)
            && current.limit == u32::MAX
            && !self.frame.has_ready()
            && self.steps >= native.most_steps(self.slice - self.spent)
    }

    /// Runs native code, and brings the frame to where it stopped.
    pub(super) fn native(&mut self, native: &dyn Native, current: &mut Current, function: u32) -> Entered {
        let frame = &mut *self.frame;
        let act = &mut frame.acts[current.act as usize];
        let live = frame.state.live;
        let mut call = NativeCall {
            code: self.world.code,
            function,
            block: current.block,
            regs: &mut act.regs,
            warp: &mut frame.state,
            mem: &mut frame.view,
            frame: act.frame as u32,
            mask: current.mask,
            trusted: frame.trusted,
            turns: self.slice - self.spent,
            reached: self.reached,
            steps: 0,
            lane_steps: 0,
            fallbacks: 0,
            fault: None,
        };
        let stop = native.run(&mut call);
        let NativeCall { mask, turns, steps, lane_steps, fallbacks, fault, .. } = call;
        let after = frame.state.live;
        // Native code takes lanes that exit out of the live ones.
        frame.state.live = live;
        self.steps = self.steps.saturating_sub(steps);
        frame.steps += steps;
        frame.lane_steps += lane_steps;
        frame.native_steps.0 += steps;
        frame.native_steps.1 += fallbacks;
        self.left(native, current, function, Left { stop, mask, live: after, turns, fault, same: true })
    }

    /// Brings the frame to where native code left the warp.
    pub(super) fn left(
        &mut self,
        native: &dyn Native,
        current: &mut Current,
        function: u32,
        left: Left,
    ) -> Entered {
        let Left { stop, mask, live: after, turns, fault, same } = left;
        let frame = &mut *self.frame;
        let live = frame.state.live;
        if let NativeStop::Declined = stop {
            return Entered::Block(Some(0));
        }
        let spent = self.slice - turns.max(0);
        let used = spent - self.spent;
        self.spent = spent;
        if let NativeStop::Fault { block, index } = stop {
            let place = self.world.block(function, block);
            let step = place.and_then(|b| b.steps.get(index as usize));
            return Entered::Stop(match (fault, step) {
                (Some(fault), Some(step)) => stopped(fault, function, step.span, step.loc),
                _ => bug(function, current.mask),
            });
        }
        let gone = live & !after;
        for [block, lanes] in &self.reached.parked {
            frame.push_ready(current.act, *block, *lanes);
        }
        let whole = self.reached.parked.is_empty() && mask == live & !gone;
        if gone != 0 {
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
                    // The others have their turn when the warp runs again, unless clocks would show that it came early.
                    let early = native.reads_clocks() && !native.watches(block);
                    frame.turn = if early { frame.turn - used } else { -1 };
                }
                self.give_way(current);
                Entered::Stop(Stop::Yielded { idle })
            }
            NativeStop::Terminator { block } => {
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
