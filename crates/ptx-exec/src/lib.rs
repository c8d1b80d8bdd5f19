//! The machine: warp frames, interpreter, scheduler, barriers, memory and traps.
