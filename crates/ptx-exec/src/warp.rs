//! All state of a warp.
//!
//! [`WarpState`] is what a step sees of it besides registers and memory: who the threads are, carry flags, clocks.
//!
//! Invariant: bit *i* of every mask belongs to lane *i*; lanes that do not exist (the last warp of a CTA may be partial) or have
//! exited are never in the mask of a step.

use crate::lanes::{LANES, Lane, LaneMask};

/// How often each of the events 0 to 15 was triggered. PTX ISA §9.7.17.3.
pub type EventCounts = [u64; 16];

/// Facts about the launch, the same for all its warps. PTX ISA ch. 10.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GridShape {
    /// `%ntid`: threads of a CTA in each dimension.
    pub ntid: [u32; 3],
    /// `%nctaid`: CTAs in each dimension.
    pub nctaid: [u32; 3],
    /// `%gridid`: a number of its own for each launch.
    pub gridid: u64,
    /// `%globaltimer` where the launch begins.
    pub began: u64,
    /// `%nsmid`: how many values `%smid` has (the OS threads of the launch).
    pub nsmid: u32,
    /// `%dynamic_smem_size` in bytes.
    pub dynamic_shared: u32,
    /// `%total_smem_size` in bytes: static and dynamic, in the target's units.
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

/// State of a warp that outlives an activation.
#[derive(Clone, Debug)]
pub struct WarpState {
    /// Facts about the launch.
    pub grid: std::sync::Arc<GridShape>,
    /// `%tid.x`, `%tid.y`, `%tid.z` of each lane.
    pub tid: [Lane<u32>; 3],
    /// `%ctaid`
    pub ctaid: [u32; 3],
    /// `%warpid`: the warp's number in its CTA.
    pub warpid: u32,
    /// `%smid`: the OS thread that runs it.
    pub smid: u32,
    /// Lanes that exist and have not exited.
    pub live: LaneMask,
    /// The carry flag of each lane: `CC.CF`.
    pub carry: LaneMask,
    /// Instructions that the warp has executed, those of the running block included, and nanoseconds that it has slept.
    pub clock: u64,
    /// A step asks the scheduler to run somebody else after this block.
    pub(crate) wants_yield: bool,
    /// Events that `pmevent` triggered and nobody has taken yet; `None` where there are none, as almost always.
    pub(crate) events: Option<Box<EventCounts>>,
}

impl WarpState {
    /// Warp `warpid` of the CTA `ctaid`, with all its threads live and its clock at zero.
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

    /// Makes it that warp, as [`WarpState::new`].
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

    /// `%clock64`: instructions that the warp has executed, the one included that reads it, behind which its block has so many more.
    pub fn read_clock(&self, behind: u64) -> u64 {
        self.clock.saturating_sub(behind)
    }

    /// `%globaltimer`: when the launch began, and the clock, one nanosecond a tick. It is no clock of the wall, so that runs can be repeated.
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

    /// `nanosleep`: the clock moves on, and others run.
    pub fn sleep(&mut self, nanoseconds: u32) {
        self.clock += u64::from(nanoseconds);
        self.wants_yield = true;
    }

    /// `%tid` of a lane.
    pub fn tid_of(&self, lane: usize) -> [u32; 3] {
        [self.tid[0].0[lane], self.tid[1].0[lane], self.tid[2].0[lane]]
    }
}
