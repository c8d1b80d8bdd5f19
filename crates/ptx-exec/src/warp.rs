//! The state of a warp besides registers and memory.
//!
//! [`WarpState`] is the part of it that a step sees: thread numbers, carry flags, clock.
//!
//! Invariant: bit *i* of every mask belongs to lane *i*. Lanes that do not exist, because the last warp of a
//! CTA can be partial, and lanes that have exited are never in the mask of a step.

use crate::lanes::{LANES, Lane, LaneMask};

/// How often each of the events 0 to 15 was triggered. PTX ISA §9.7.17.3.
pub type EventCounts = [u64; 16];

/// The shape and identity of a launch, common to all its warps. PTX ISA ch. 10.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridShape {
    /// `%ntid`: threads of a CTA in each dimension.
    pub ntid: [u32; 3],
    /// `%nctaid`: CTAs in each dimension.
    pub nctaid: [u32; 3],
    /// `%gridid`: a unique number of the launch.
    pub gridid: u64,
    /// `%globaltimer` at the start of the launch.
    pub began: u64,
    /// `%nsmid`: the number of values of `%smid`, which is the number of OS threads of the launch.
    pub nsmid: u32,
    /// `%dynamic_smem_size` in bytes.
    pub dynamic_shared: u32,
    /// `%total_smem_size` in bytes: static and dynamic, rounded up to the target's allocation unit.
    pub total_shared: u32,
    /// `%envreg0` to `%envreg31`.
    pub envreg: [u32; 32],
}

impl GridShape {
    /// Threads of a CTA.
    pub fn threads(&self) -> u32 {
        self.ntid.iter().product()
    }

    /// `%nwarpid`: warps of a CTA.
    pub fn warps(&self) -> u32 {
        self.threads().div_ceil(LANES as u32)
    }
}

/// The state of a warp that is not part of an activation.
#[derive(Clone, Debug)]
pub struct WarpState {
    /// Shape of the launch.
    pub grid: std::sync::Arc<GridShape>,
    /// `%tid.x`, `%tid.y`, `%tid.z` of each lane.
    pub tid: [Lane<u32>; 3],
    /// `%ctaid`
    pub ctaid: [u32; 3],
    /// `%warpid`: the warp's number in its CTA.
    pub warpid: u32,
    /// `%smid`: the number of the OS thread that runs the warp.
    pub smid: u32,
    /// Lanes that exist and have not exited.
    pub live: LaneMask,
    /// The carry flag of each lane: `CC.CF`.
    pub carry: LaneMask,
    /// Instructions that the warp has executed, including those of the running block, plus nanoseconds that
    /// it has slept.
    pub clock: u64,
    /// Set by a step to request that the scheduler runs another warp after this block.
    pub(crate) wants_yield: bool,
    /// Events that `pmevent` triggered since they were last collected; usually `None`.
    pub(crate) events: Option<Box<EventCounts>>,
}

impl WarpState {
    /// Warp `warpid` of CTA `ctaid`, with all its threads live and its clock at zero.
    pub fn new(grid: std::sync::Arc<GridShape>, ctaid: [u32; 3], warpid: u32) -> Self {
        let mut state = Self {
            grid,
            tid: [Lane::splat(0); 3],
            ctaid,
            warpid,
            smid: 0,
            live: 0,
            carry: 0,
            clock: 0,
            wants_yield: false,
            events: None,
        };
        state.start(ctaid, warpid);
        state
    }

    /// Resets the state to that of [`WarpState::new`].
    pub(crate) fn start(&mut self, ctaid: [u32; 3], warpid: u32) {
        let [nx, ny, _] = self.grid.ntid;
        let count = self.grid.threads();
        self.live = 0;
        for lane in 0..LANES {
            let linear = warpid * LANES as u32 + lane as u32;
            if linear < count {
                self.live |= 1 << lane;
            }
            let tid = [linear % nx, linear / nx % ny, linear / nx / ny];
            for (axis, value) in tid.into_iter().enumerate() {
                self.tid[axis].0[lane] = value;
            }
        }
        (self.ctaid, self.warpid) = (ctaid, warpid);
        (self.carry, self.clock, self.wants_yield) = (0, 0, false);
        self.events = None;
    }

    /// `%clock64`: instructions that the warp has executed, including the instruction that reads the clock.
    /// `behind` is the number of instructions after it in its block, which the clock already counts.
    pub fn read_clock(&self, behind: u64) -> u64 {
        self.clock.saturating_sub(behind)
    }

    /// `%globaltimer`: the start time of the launch plus the clock, one nanosecond per tick. It is not
    /// wall-clock time, so that runs are reproducible.
    pub fn read_globaltimer(&self, behind: u64) -> u64 {
        self.grid.began.wrapping_add(self.read_clock(behind))
    }

    /// `pmevent`: triggers each event whose bit is set, once for the warp.
    pub fn trigger(&mut self, events: u16) {
        let counts = self.events.get_or_insert_default();
        for (event, count) in counts.iter_mut().enumerate() {
            *count += u64::from(events >> event & 1);
        }
    }

    /// `nanosleep`: advances the clock, and lets other warps run.
    pub fn sleep(&mut self, nanoseconds: u32) {
        self.clock += u64::from(nanoseconds);
        self.wants_yield = true;
    }

    /// `%tid` of a lane.
    pub fn tid_of(&self, lane: usize) -> [u32; 3] {
        [self.tid[0].0[lane], self.tid[1].0[lane], self.tid[2].0[lane]]
    }
}
